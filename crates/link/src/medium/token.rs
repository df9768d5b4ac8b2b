//! A token ring with timed token: FDDI.

use crate::edge::Edge;
use crate::medium::{Medium, Target};
use crate::{Command, Frame, NetworkSpec, Port, Refused, SpecError};
use serde::{Deserialize, Serialize};
use sonde_units::{Bytes, Instant, Span};

/// A token ring with timed token: FDDI.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRing {}

impl TokenRing {
    /// Whether its values are in their ranges and fit the rest of `spec`.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self, _spec: &NetworkSpec) -> Result<(), SpecError> {
        Err(SpecError {
            key: "token",
            problem: "is not built yet".into(),
        })
    }

    /// For how long a frame of `len` layer-3 bytes keeps others of a stream off the bottleneck.
    pub(crate) fn frame_time(&self, spec: &NetworkSpec, len: Bytes) -> Span {
        spec.line.time(len)
    }
}

/// The medium.
pub(crate) enum Ring {}

impl Ring {
    pub fn new(
        spec: &NetworkSpec,
        table: &TokenRing,
        _ports: u16,
        _seed: u64,
    ) -> Result<Self, SpecError> {
        table.check(spec)?;
        unreachable!("it was refused")
    }
}

impl Medium for Ring {
    fn admits(&mut self, _: Instant, _: Port, _: Bytes) -> bool {
        match *self {}
    }
    fn ready(&self, _: Port) -> bool {
        match *self {}
    }
    fn backlog(&mut self, _: Instant, _: Port) -> Bytes {
        match *self {}
    }
    fn take(&mut self, _: Instant, _: Frame, _: Target, _: &mut Edge) {
        match *self {}
    }
    fn background(&mut self, _: Instant, _: Frame, _: Port, _: &mut Edge) {
        match *self {}
    }
    fn command(&mut self, _: Instant, _: Command, _: &mut Edge) -> Result<(), Refused> {
        match *self {}
    }
    fn next_at(&self) -> Option<Instant> {
        match *self {}
    }
    fn step(&mut self, _: &mut Edge) {
        match *self {}
    }
}
