//! A fabric whose buffers are guarded by credits: Fibre Channel, SP-2, UltraNet.
//!
//! Model:   a datagram is a sequence of packets. Each direction of a line has as many credits as its far end has packet
//!          buffers: a packet starts when its line is free and a credit is there, and the credit comes back when the packet
//!          has left that buffer, one propagation later. Nothing is dropped: who finds no credit waits, and those behind it
//!          wait too. The parts: [`packing`] (packets and their times), [`wiring`] (lines and ways), [`machine`] (packets
//!          from buffer to buffer), [`ends`] (stations, acknowledgements, login), [`connection`] (class 1), [`train`] (what is alone on its way, in one step).
//! Source:  ANSI X3.230-1994 (FC-PH): frames, classes, buffer-to-buffer and end-to-end credit; RFC 2625 (IP),
//!          §8, §10. Deviations: R_RDY and ACK delimiters take no line time of their own but for the ACK's frame; a
//!          loop is not modelled.
//! Units:   picoseconds; a packet's time is rounded up.
//! Checked: `tests/credit.rs`, `tests/properties.rs`.

use crate::{Framing, Limit, NetworkSpec, SpecError, Topology};
use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Bytes, Span};

mod agenda;
mod connection;
mod ends;
mod machine;
mod net;
mod packing;
mod train;
mod wiring;

pub(crate) use net::Net;
use packing::Packing;

/// A fabric whose buffers are guarded by credits: Fibre Channel, SP-2, UltraNet.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credit {
    /// Fibre Channel's class of service. 1: a connection for each conversation; 2: each frame is acknowledged; 3: neither.
    /// Fabrics that know no classes are of class 3.
    #[serde(default = "datagrams")]
    pub class: u8,
    /// What a packet carries, at most; not with `framing = "fibre-channel"`, where it is 2112 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Bytes>,
    /// Bytes around each packet; not with `framing = "fibre-channel"`, where they are 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Bytes>,
    /// Bytes before each datagram; not with `framing = "fibre-channel"`, where they are 24.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Bytes>,
    /// Packet buffers of a station, or of its adapter, for each direction: 1 to 65535. Those of a switch's inputs are
    /// `switch.buffer`.
    pub credits: u32,
    /// Packets that the central queue of each switch chip holds, beside the buffers of its inputs: 0 to 65535.
    #[serde(default)]
    pub shared: u32,
    /// Bytes of a packet that a cut-through switch reads before it forwards.
    #[serde(default = "frame_header")]
    pub head: Bytes,
    /// Stations at a chip of the first stage, with `topology = "multistage"`: 1 to 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<u16>,
    /// Chips of the second stage, with `topology = "multistage"`: 1 to 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub middle: Option<u16>,
    /// The rate between a host and its adapter, in each direction; without it the adapter is as fast as its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter_rate: Option<BitRate>,
    /// Class 2: frames from one station to another that are not acknowledged yet, at most: 1 to 65535.
    #[serde(default = "end_credits")]
    pub end_credits: u32,
    /// Class 1: what a switch takes to set up a connection, beside the way of the connect frame there and back.
    #[serde(default)]
    pub connect: Span,
    /// Class 1: a connection that was idle for longer is given up; one that another station asks for as soon as it is idle.
    #[serde(default)]
    pub hold: Span,
    /// From the first frame between two stations until both are logged in; 0: no login.
    #[serde(default)]
    pub login: Span,
    /// Class 3: a frame that waits longer in an input of a switch is discarded, and its datagram is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discard_after: Option<Span>,
    /// How long the fabric's server takes to answer for an address.
    #[serde(default = "answer")]
    pub resolution_delay: Span,
}

const fn datagrams() -> u8 {
    3
}
/// SOF 4 and header 24.
const fn frame_header() -> Bytes {
    Bytes(28)
}
const fn end_credits() -> u32 {
    65_535
}
const fn answer() -> Span {
    Span::millis(1)
}

fn refuse(key: &'static str, problem: String) -> Result<(), SpecError> {
    Err(SpecError { key, problem })
}

impl Credit {
    /// Whether its values are in their ranges and fit the rest of `spec`.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        if spec.line.rate.is_none() {
            let problem = "is missing; packets need one, such as `212.5Mbit`".into();
            return refuse("line.rate", problem);
        }
        self.check_packets(spec)?;
        self.check_counts()?;
        self.check_wiring(spec)?;
        if !(1..=3).contains(&self.class) {
            let problem = format!("is {}, but Fibre Channel has 1, 2 and 3", self.class);
            return refuse("credit.class", problem);
        }
        if self.discard_after.is_some() && (self.class != 3 || self.shared > 0) {
            let problem = "needs `class = 3` and no `shared`; leave it out otherwise".into();
            return refuse("credit.discard_after", problem);
        }
        if let Some(rate) = self.adapter_rate.filter(|rate| rate.bps() < 1_000) {
            return refuse(
                "credit.adapter_rate",
                format!("is {rate}; give 1kbit or more"),
            );
        }
        let spans = [
            ("credit.connect", self.connect),
            ("credit.hold", self.hold),
            ("credit.login", self.login),
            ("credit.resolution_delay", self.resolution_delay),
            (
                "credit.discard_after",
                self.discard_after.unwrap_or(Span::ZERO),
            ),
        ];
        for (key, span) in spans {
            if span > Span::secs(60) {
                return refuse(key, format!("is {span}, but at most 60s is possible"));
            }
        }
        Ok(())
    }

    fn check_packets(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        let own = [
            ("credit.packet", self.packet.is_some()),
            ("credit.around", self.around.is_some()),
            ("credit.header", self.header.is_some()),
        ];
        match spec.line.framing() {
            Framing::FibreChannel => {
                if let Some((key, _)) = own.iter().find(|(_, there)| *there) {
                    let problem = "is fixed by `framing = \"fibre-channel\"`; leave it out".into();
                    return refuse(key, problem);
                }
            }
            Framing::None if self.packet.is_none() => {
                let problem = "is missing; say what a packet carries, such as `250B`".into();
                return refuse("credit.packet", problem);
            }
            Framing::None => {}
            _ => {
                let problem = "does not go with credits; use \"fibre-channel\", or \"none\" and `packet`, `around` and `header` in [credit]".into();
                return refuse("line.framing", problem);
            }
        }
        let packet = self.packet.unwrap_or(Bytes(1));
        if packet.0 == 0 || packet.0 > 1 << 20 {
            let problem = format!("is {packet}, but a packet carries 1B to 1MiB");
            return refuse("credit.packet", problem);
        }
        for (key, bytes) in [
            ("credit.head", Some(self.head)),
            ("credit.around", self.around),
            ("credit.header", self.header),
        ] {
            if let Some(bytes) = bytes.filter(|bytes| bytes.0 > 65_536) {
                return refuse(key, format!("is {bytes}, but at most 64KiB is possible"));
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), SpecError> {
        for (key, count, least) in [
            ("credit.credits", self.credits, 1),
            ("credit.end_credits", self.end_credits, 1),
            ("credit.shared", self.shared, 0),
        ] {
            if !(least..=65_535).contains(&count) {
                return refuse(key, format!("is {count}, but {least} to 65535 can be"));
            }
        }
        Ok(())
    }

    fn check_wiring(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        let is_staged = spec.topology == Topology::Multistage;
        if !is_staged && !matches!(spec.topology, Topology::Star | Topology::Line) {
            let problem = "does not go with credits; use \"star\", \"multistage\" or \"line\"";
            return refuse("topology", problem.into());
        }
        for (key, count) in [("credit.chip", self.chip), ("credit.middle", self.middle)] {
            if count.is_some() != is_staged {
                let problem = "goes with `topology = \"multistage\"`, and only there".into();
                return refuse(key, problem);
            }
            if let Some(count) = count.filter(|count| !(1..=1_024).contains(count)) {
                return refuse(key, format!("is {count}, but 1 to 1024 can be"));
            }
        }
        let Some(switch) = spec.switch else {
            if is_staged {
                let problem = "is missing; say what a chip does with a packet".into();
                return refuse("switch", problem);
            }
            return Ok(());
        };
        if !matches!(switch.buffer, Limit::Frames(1..=65_535)) {
            let problem = format!(
                "is {}, but the packets of an input count here, such as `16frames`, 1 to 65535",
                switch.buffer
            );
            return refuse("switch.buffer", problem);
        }
        Ok(())
    }

    /// For how long a frame of `len` layer-3 bytes keeps others of a stream off the bottleneck: its packets, one after the
    /// other, on the line or at the adapter.
    pub(crate) fn frame_time(&self, spec: &NetworkSpec, len: Bytes) -> Span {
        let packing = Packing::new(spec, self);
        let on_line = spec.line.usable().map(|rate| packing.time(rate, len));
        let at_adapter = self.adapter_rate.map(|rate| packing.time(rate, len));
        on_line.max(at_adapter).unwrap_or(Span::ZERO)
    }
}
