//! A blocking multistage network: ALLNODE.
//!
//! Model:   an omega network of elements with `radix` inputs and outputs: before each stage the wires are shuffled, each
//!          element sends a frame on by one digit of its destination. A frame holds every wire of its path while it is sent
//!          (cut-through, no storage inside); one that finds a wire busy waits at its station and holds none, so that there
//!          is no deadlock. Those that wait are looked at in the order of arrival whenever wires come free; one that was
//!          passed over 16 times keeps its wires from all others until it has them. Several paths: as many copies of the
//!          inner wires, of which the first that is free from end to end is taken.
//! Source:  Lawrie 1975 (omega network); Patel 1981 (its bandwidth); NASA TP-3532. Deviations: the elements of
//!          ALLNODE are not documented; a path is taken at once, as if requests took no time.
//! Units:   sizes in layer-3 bytes; times in picoseconds, rounded up a frame.
//! Checked: `tests/stages.rs`.

mod net;

use crate::framing::Framing;
use crate::{Line, NetworkSpec, SpecError, Topology};
pub(crate) use net::Net;
use serde::{Deserialize, Serialize};
use sonde_units::{Bytes, Span};

/// A network of small switches in stages.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stages {
    /// Inputs and outputs of an element, 2 to 64.
    #[serde(default = "radix")]
    pub radix: u16,
    /// Stages, 1 to 16; without it as few as reach all stations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u16>,
    /// Paths between two stations: copies of the wires inside, 1 to 64.
    #[serde(default = "paths")]
    pub paths: u16,
    /// A bit's way through one stage.
    pub hop: Span,
    /// By which software frames come and go.
    #[serde(default)]
    pub interface: Interface,
    /// What the user's interface adds to each frame.
    #[serde(default = "api_latency")]
    pub api_latency: Span,
    /// How long the address server takes for an answer.
    #[serde(default = "resolution_delay")]
    pub resolution_delay: Span,
}

/// By which software frames come and go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// The IP driver: its cost is the host's.
    #[default]
    Ip,
    /// The user's own interface to the adapter, of a fixed latency.
    Api,
}

/// An address of the network is below this.
const ADDRESSES_MAX: u64 = 1 << 24;

const fn radix() -> u16 {
    8
}
const fn paths() -> u16 {
    1
}
const fn api_latency() -> Span {
    Span::micros(20)
}
const fn resolution_delay() -> Span {
    Span::millis(1)
}

fn refuse(key: &'static str, problem: String) -> Result<(), SpecError> {
    Err(SpecError { key, problem })
}

impl Stages {
    /// Whether its values are in their ranges and fit the rest of `spec`.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        if spec.topology != Topology::Multistage {
            let problem = "does not fit [stages]: write \"multistage\"";
            return refuse("topology", problem.into());
        }
        if spec.switch.is_some() {
            let problem = "stands beside [stages], which are the switch; leave it out";
            return refuse("switch", problem.into());
        }
        if spec.line.rate.is_none() {
            let problem = "is missing; the wires of stages need one, such as `32Mbit`";
            return refuse("line.rate", problem.into());
        }
        if let Framing::Atm(_) = spec.line.framing() {
            let problem = "is \"atm\", but stages carry whole frames: write \"none\"";
            return refuse("line.framing", problem.into());
        }
        let counts = [
            ("stages.radix", self.radix, 2, 64),
            ("stages.depth", self.depth.unwrap_or(1), 1, 16),
            ("stages.paths", self.paths, 1, 64),
        ];
        for (key, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                let problem = format!("is {value}, but {least} to {most} are possible");
                return refuse(key, problem);
            }
        }
        let depth = u32::from(self.depth.unwrap_or(1));
        let addresses = u64::from(self.radix).checked_pow(depth);
        if addresses.is_none_or(|addresses| addresses > ADDRESSES_MAX) {
            let problem = format!(
                "is {depth}, which makes more than {ADDRESSES_MAX} addresses of {} a stage; take fewer",
                self.radix
            );
            return refuse("stages.depth", problem);
        }
        let spans = [
            ("stages.hop", self.hop),
            ("stages.api_latency", self.api_latency),
            ("stages.resolution_delay", self.resolution_delay),
        ];
        for (key, span) in spans {
            if span > Span::secs(60) {
                return refuse(key, format!("is {span}, but at most 60s are possible"));
            }
        }
        Ok(())
    }

    /// How many stages join so many stations.
    ///
    /// # Errors
    /// `stages.depth`, if it is given and too small.
    pub(crate) fn depth(&self, ports: u16) -> Result<u32, SpecError> {
        let radix = u64::from(self.radix);
        let least = (1..)
            .find(|depth| radix.pow(*depth) >= u64::from(ports))
            .expect("a power of two or more passes 65,535");
        match self.depth.map(u32::from) {
            None => Ok(least),
            Some(depth) if depth >= least => Ok(depth),
            Some(depth) => Err(SpecError {
                key: "stages.depth",
                problem: format!(
                    "is {depth}, but {ports} stations at elements of {radix} need {least}; write that, or leave it out"
                ),
            }),
        }
    }

    /// From a station to another, through so many stages, and what the interface adds.
    pub(crate) fn way(&self, line: &Line, depth: u32) -> Span {
        let software = match self.interface {
            Interface::Ip => Span::ZERO,
            Interface::Api => self.api_latency,
        };
        line.propagation() * 2 + self.hop * u64::from(depth) + software
    }

    /// For how long a frame of `len` layer-3 bytes keeps others of a stream off the bottleneck.
    pub(crate) fn frame_time(&self, spec: &NetworkSpec, len: Bytes) -> Span {
        spec.line.time(len)
    }
}
