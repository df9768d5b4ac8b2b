//! A network as data: the schema of the catalogue and of a user's own file.
//!
//! Units:   sizes, rates and times carry their unit in the text (`64KiB`, `155.52Mbit`, `10us`); `mtu` is in bytes,
//!          `length_m` in metres, `table` in circuits.
//! Checked: `tests/catalogue.rs` reads good and bad files.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod line;

pub use line::Line;
use line::{FramingName, RATE_MAX, RATE_MIN_BPS};

use crate::graph::{self, Assignment, Layout, PortLine, Site, Trunk};
use crate::medium::atm::spec::{self as atm_spec, AtmTraffic, Lane, Pvc, PvcLayout, Restoration};
use crate::{
    Bus, Credit, Crossbar, Encapsulation, Framing, HostSpec, Limit, Sci, Stages, TokenRing, medium,
};
use crate::{FaultSpec, LoadSpec, schedule};
use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Bytes, Ratio, Span};
use std::collections::BTreeMap;
use thiserror::Error;

/// A network: one line a station, joined by a switch or directly.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub summary: String,
    /// Its family.
    pub technology: Technology,
    /// How the stations are joined.
    pub topology: Topology,
    /// The largest layer-3 frame, in bytes.
    pub mtu: u64,
    /// The line of each station.
    pub line: Line,
    /// The queue of each station.
    #[serde(default)]
    pub station: Station,
    /// The switch of a star.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Switch>,
    /// How several switches are laid out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Layout>,
    /// Trunks between them, beside those that the topology has by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trunk: Vec<Trunk>,
    /// Places far from each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub site: Vec<Site>,
    /// Hosts whose lines are not as the others'.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortLine>,
    /// Who goes by which trunk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assign: Vec<Assignment>,
    /// Virtual circuits, with ATM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuits: Option<Circuits>,
    /// What outputs and stations do with ATM cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atm: Option<AtmTraffic>,
    /// How LAN emulation carries first frames and those to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// Permanent circuits, where not every two stations have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pvc: Vec<Pvc>,
    /// A segment that all stations share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<Bus>,
    /// A ring with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenRing>,
    /// A crossbar that joins two stations for a datagram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossbar: Option<Crossbar>,
    /// A blocking network of several stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
    /// A fabric whose buffers are guarded by credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<Credit>,
    /// Rings with register insertion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sci: Option<Sci>,
    /// What the hosts cost; without it they take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSpec>,
    /// Delay, loss and reordering on the way.
    #[serde(default)]
    pub path: PathSpec,
    /// Background traffic, by schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadSpec>,
    /// Faults and other commands, by schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<FaultSpec>,
    /// Where each figure comes from, by key.
    #[serde(default)]
    pub cite: BTreeMap<String, String>,
}

/// A family of link technologies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technology {
    /// No line at all: a delay.
    Wire,
    /// Switched, full-duplex IEEE 802.3.
    Ethernet,
    /// Asynchronous transfer mode.
    Atm,
    /// A wide-area line.
    Wan,
    /// Fiber distributed data interface.
    Fddi,
    /// Fibre Channel.
    FibreChannel,
    /// High-performance parallel interface.
    Hippi,
    /// IBM's ALLNODE switch.
    Allnode,
    /// The switch of IBM's SP-2.
    Sp2,
    /// Scalable coherent interface.
    Sci,
    /// The UltraNet hub.
    Ultranet,
}

impl Technology {
    /// Its name as in the catalogue.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Ethernet => "ethernet",
            Self::Atm => "atm",
            Self::Wan => "wan",
            Self::Fddi => "fddi",
            Self::FibreChannel => "fibre-channel",
            Self::Hippi => "hippi",
            Self::Allnode => "allnode",
            Self::Sp2 => "sp2",
            Self::Sci => "sci",
            Self::Ultranet => "ultranet",
        }
    }
}

/// How stations are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Two stations, one line.
    Line,
    /// Every two stations by a line of their own, without a rate.
    Mesh,
    /// All stations at one switch.
    Star,
    /// All stations on one segment.
    Bus,
    /// Stations, or switches, one after the other, and back to the first.
    Ring,
    /// Stations at a network of small switches in stages.
    Multistage,
    /// Several switches with the trunks that are written; also called `two-switches`.
    #[serde(alias = "two-switches")]
    Switches,
    /// Several switches, each two joined by a trunk.
    FullMesh,
    /// Switches in a grid of any number of dimensions, whose ends are joined.
    Torus,
    /// Edge, aggregation and core switches with as many lines up as down.
    FatTree,
    /// Places with a switch each, joined by long trunks.
    Sites,
}

/// IPv4 cannot describe more, nor AAL5.
const MTU_MAX: u64 = 65_535;
/// RFC 791 §3.2.
const MTU_MIN: u64 = 68;

/// The sending side of a station.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// What its adapter queues; it asks for no more when half of it is used.
    pub queue: Bytes,
}

impl Default for Station {
    fn default() -> Self {
        Self {
            queue: Bytes::kib(256),
        }
    }
}

/// A switch with a queue at each output.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// When it begins to forward.
    pub forwarding: Forwarding,
    /// From there to the output queue.
    pub latency: Span,
    /// What waits at each output, at most.
    pub buffer: Limit,
    /// What waits at all outputs of the switch together, at most; none: as much as each may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Frames whose transport takes part are marked where so much waits, they among it; none: no marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Limit>,
    /// Whether it holds its senders back rather than lose frames; `buffer` is then what it holds of each line that comes in.
    #[serde(default)]
    pub flow_control: FlowControl,
}

/// What a switch does before its buffer is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowControl {
    /// Nothing: it loses what finds no room.
    #[default]
    None,
    /// It pauses the senders of the lines that fill it.
    Pause,
}

/// When a switch begins to forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// After the last bit of a frame.
    StoreAndForward,
    /// After the first 64 bytes of a frame.
    CutThrough,
    /// After the last bit of each cell.
    Cells,
}

/// Virtual circuits and the address service that goes with them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Circuits {
    /// By hand or by signalling.
    pub signalling: Signalling,
    /// From the first frame to the circuit, end to end.
    pub setup: Span,
    /// An unused circuit is given up after this.
    pub idle_release: Span,
    /// How many a station can have.
    pub table: u64,
    /// How long the address server takes for an answer.
    pub resolution_delay: Span,
    /// A circuit goes when the address entry behind it is older than this.
    pub resolution_lifetime: Span,
    /// Which permanent circuits there are, unless `[[pvc]]` names them.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub layout: PvcLayout,
    /// Setting up the logical link over a new circuit: added to the first frame.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub llc_setup: Span,
    /// A circuit that was idle for `reallocate_after` has given its bandwidth back; to have it again takes this. 0: it keeps it.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub reallocation: Span,
    /// See `reallocation`.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub reallocate_after: Span,
    /// Permanent circuits come up one after the other, this long apart, when the network starts. 0: all are up then.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub boot: Span,
    /// What happens after the connection manager cleared the permanent circuits.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub restoration: Restoration,
    /// How long the connection manager takes for each circuit that it restores.
    #[serde(
        default = "Circuits::usual_restore",
        skip_serializing_if = "Circuits::is_usual_restore"
    )]
    pub restore: Span,
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Circuits {
    const fn usual_restore() -> Span {
        Span::secs(1)
    }

    fn is_usual_restore(restore: &Span) -> bool {
        *restore == Self::usual_restore()
    }
}

/// How circuits come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signalling {
    /// Permanent, configured by hand.
    Pvc,
    /// Switched, at first use.
    Svc,
}

/// How stations learn each other's link address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Requests go to all.
    Broadcast,
    /// A server at the switch answers.
    Server,
}

/// Elements between the line and the switch, or between two stations without one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PathSpec {
    /// Added to every frame.
    pub delay: Span,
    /// The probability that a frame is lost.
    pub loss: Ratio,
    /// The probability that a frame is held back.
    pub reorder: Ratio,
    /// How much longer it then takes.
    pub reorder_by: Span,
    /// Each frame comes later by up to this, drawn evenly, and none overtakes another by it.
    pub jitter: Span,
}

impl Default for PathSpec {
    fn default() -> Self {
        Self {
            delay: Span::ZERO,
            loss: Ratio::ZERO,
            reorder: Ratio::ZERO,
            reorder_by: Span::ZERO,
            jitter: Span::ZERO,
        }
    }
}

/// What is wrong with a network: the key, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{key}` {problem}")]
pub struct SpecError {
    /// The key, with its table.
    pub key: &'static str,
    /// What is wrong with its value and what to write instead.
    pub problem: String,
}

impl NetworkSpec {
    /// How link addresses are learnt here.
    pub fn resolution(&self) -> Resolution {
        if self.broadcasts() {
            Resolution::Broadcast
        } else {
            Resolution::Server
        }
    }

    /// Whether a station can send to all others.
    pub fn broadcasts(&self) -> bool {
        let is_lane = self.line.framing() == Framing::Atm(Encapsulation::Lane);
        let by_circuits = (self.circuits.is_some() && !is_lane) || self.crossbar.is_some();
        let by_address = self.stages.is_some() || self.credit.is_some() || self.sci.is_some();
        !by_circuits && !by_address
    }

    /// Whether the first frame between two stations waits until they are joined: by a switched circuit, by a login.
    pub fn joins_first(&self) -> bool {
        let is_switched = |circuits: Circuits| circuits.signalling == Signalling::Svc;
        let logs_in = |credit: &Credit| !credit.login.is_zero();
        self.circuits.is_some_and(is_switched) || self.credit.as_ref().is_some_and(logs_in)
    }

    /// For how long a frame of `len` layer-3 bytes keeps others of a stream off the bottleneck: what bounds the rate of a
    /// stream of such frames.
    pub fn frame_time(&self, len: Bytes) -> Span {
        if let Some(token) = &self.token {
            return token.frame_time(self, len);
        }
        if let Some(bus) = &self.bus {
            return bus.frame_time(self, len);
        }
        if let Some(crossbar) = &self.crossbar {
            return crossbar.frame_time(self, len);
        }
        if let Some(stages) = &self.stages {
            return stages.frame_time(self, len);
        }
        if let Some(credit) = &self.credit {
            return credit.frame_time(self, len);
        }
        if let Some(sci) = &self.sci {
            return sci.frame_time(self, len);
        }
        if let Some(pcr) = self.atm.as_ref().and_then(|traffic| traffic.pcr) {
            let cell = self.line.unit_time(crate::CELL_WIRE);
            let each = cell.max(pcr.time(crate::CELL_WIRE));
            return each.saturating_mul(self.line.framing().units(len));
        }
        self.line.time(len)
    }

    /// Whether the parts fit together and each value is in its range.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        if !(MTU_MIN..=MTU_MAX).contains(&self.mtu) {
            return refuse(
                "mtu",
                format!(
                    "is {}, but IPv4 asks for {MTU_MIN} to {MTU_MAX} bytes",
                    self.mtu
                ),
            );
        }
        if let [first, second, ..] = *medium::tables(self) {
            let problem = format!(
                "stands beside [{first}]; a network has one medium, keep one of the tables"
            );
            return refuse(second, problem);
        }
        self.check_line()?;
        self.check_switch()?;
        graph::check(self)?;
        medium::check(self)?;
        atm_spec::check(self)?;
        self.host.as_ref().map_or(Ok(()), HostSpec::check)?;
        self.check_path()?;
        schedule::schedule(&self.load, &self.fault)?;
        let two = Bytes(self.mtu.saturating_mul(2));
        if self.station.queue < two {
            let problem = format!(
                "is {}, but the queue must hold two frames: at least {two}",
                self.station.queue,
            );
            return refuse("station.queue", problem);
        }
        let Some(circuits) = self.circuits else {
            return Ok(());
        };
        if !matches!(self.line.framing(), Framing::Atm(_)) {
            return refuse(
                "circuits",
                "need `framing = \"atm\"`; leave the table out otherwise".into(),
            );
        }
        if circuits.table == 0 || circuits.table > 65_535 {
            return refuse(
                "circuits.table",
                format!(
                    "is {}, but a station has 1 to 65535 circuits",
                    circuits.table
                ),
            );
        }
        in_time("circuits.setup", circuits.setup, Span::secs(60))?;
        in_time("circuits.llc_setup", circuits.llc_setup, Span::secs(60))?;
        in_time(
            "circuits.reallocation",
            circuits.reallocation,
            Span::secs(60),
        )?;
        in_time("circuits.boot", circuits.boot, Span::secs(60))?;
        in_time("circuits.restore", circuits.restore, Span::secs(3_600))?;
        in_time(
            "circuits.resolution_delay",
            circuits.resolution_delay,
            Span::secs(60),
        )
    }

    fn check_line(&self) -> Result<(), SpecError> {
        let line = &self.line;
        line.check()?;
        line.check_bursts()?;
        let is_atm = line.framing == FramingName::Atm;
        if line.encapsulation.is_some() && !is_atm {
            return refuse("line.encapsulation", "needs `framing = \"atm\"`".into());
        }
        if is_atm && line.rate.is_none() {
            return refuse(
                "line.rate",
                "is missing; cells need one, such as `155.52Mbit`".into(),
            );
        }
        if is_atm && self.circuits.is_none() {
            return refuse("circuits", "are missing; `framing = \"atm\"` needs the table, with `signalling = \"pvc\"` or \"svc\"".into());
        }
        Ok(())
    }

    fn check_switch(&self) -> Result<(), SpecError> {
        let is_atm = self.line.framing == FramingName::Atm;
        match (self.topology, &self.switch) {
            (Topology::Star, None) if self.crossbar.is_none() => {
                return refuse("switch", "is missing; a star has one in its middle".into());
            }
            (Topology::Line | Topology::Mesh, Some(_)) => {
                return refuse(
                    "switch",
                    "needs `topology = \"star\"`, or one of several switches".into(),
                );
            }
            (Topology::Mesh, None) if self.line.rate.is_some() => {
                return refuse(
                    "topology",
                    "is a mesh, whose lines have no rate; use the network `link`, as in link:rate=100Mbit:delay=10ms, or \"star\" with a \
                     switch, or \"line\""
                        .into(),
                );
            }
            _ => {}
        }
        let Some(switch) = self.switch else {
            return Ok(());
        };
        if self.line.rate.is_none() {
            return refuse(
                "line.rate",
                "is missing; the outputs of a switch need one".into(),
            );
        }
        in_time("switch.latency", switch.latency, Span::secs(1))?;
        if (switch.forwarding == Forwarding::Cells) != is_atm {
            return refuse(
                "switch.forwarding",
                "is \"cells\" with `framing = \"atm\"` and only there".into(),
            );
        }
        if let Some(memory) = switch.memory.filter(|memory| is_atm || memory.0 < self.mtu) {
            let problem = format!("is {memory}; it holds frames, at least one, and no cells");
            return refuse("switch.memory", problem);
        }
        if let Some(mark) = switch.mark.filter(|_| is_atm) {
            return refuse(
                "switch.mark",
                format!("is {mark}, but cells have no such mark; leave it out"),
            );
        }
        if let Some(mark @ Limit::Cells(_)) = switch.mark {
            return refuse("switch.mark", format!("is {mark}; write frames or a size"));
        }
        if is_atm && switch.flow_control != FlowControl::None {
            return refuse(
                "switch.flow_control",
                "is \"pause\", which cells do not have; leave it out".into(),
            );
        }
        self.check_buffer("switch.buffer", switch.buffer)
    }

    /// Whether a switch can have such a buffer here.
    pub(crate) fn check_buffer(&self, key: &'static str, buffer: Limit) -> Result<(), SpecError> {
        if matches!(buffer, Limit::Cells(_)) != (self.line.framing == FramingName::Atm) {
            return refuse(
                key,
                format!("is {buffer}, but cells count on ATM and only there"),
            );
        }
        let one_frame = match buffer {
            Limit::Bytes(bytes) => bytes.0 >= self.mtu,
            Limit::Frames(n) | Limit::Cells(n) => n >= 1,
        };
        if !one_frame {
            return refuse(
                key,
                format!("is {buffer}, which holds no frame of {} bytes", self.mtu),
            );
        }
        Ok(())
    }

    fn check_path(&self) -> Result<(), SpecError> {
        let path = &self.path;
        in_time("path.delay", path.delay, Span::secs(60))?;
        in_time("path.reorder_by", path.reorder_by, Span::secs(60))?;
        in_time("path.jitter", path.jitter, Span::secs(60))?;
        for (key, share) in [("path.loss", path.loss), ("path.reorder", path.reorder)] {
            if share > Ratio::ONE {
                return refuse(key, format!("is {share}, but a probability is at most 1"));
            }
        }
        if !path.reorder.is_zero() && path.reorder_by.is_zero() {
            return refuse(
                "path.reorder_by",
                "is missing; say how long a reordered frame is held back, such as `1ms`".into(),
            );
        }
        Ok(())
    }
}

pub(crate) fn refuse<T>(key: &'static str, problem: String) -> Result<T, SpecError> {
    Err(SpecError { key, problem })
}

/// Whether a line can have this rate.
pub(crate) fn rate_is_possible(rate: BitRate) -> bool {
    rate <= RATE_MAX && rate.bps() >= RATE_MIN_BPS
}

pub(crate) fn in_time(key: &'static str, value: Span, most: Span) -> Result<(), SpecError> {
    if value > most {
        refuse(key, format!("is {value}, but at most {most} is possible"))
    } else {
        Ok(())
    }
}
