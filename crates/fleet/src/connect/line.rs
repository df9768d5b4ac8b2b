//! The way to an agent that came back: a connection of its own, or a lane of a relay's.
//!
//! Checked: `tests/connect.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sonde_channel::{Woken, readable};
use sonde_probe::AgentLink;

use super::trunk::{Lane, LaneReader, LaneWriter, Trunk};

/// A way to an agent. Hanging up ends the agent, and that ends the way.
#[derive(Debug)]
pub(crate) enum Line {
    /// Its own.
    Stream(TcpStream),
    /// One of several in a trunk.
    Lane {
        trunk: Arc<Trunk>,
        lane: Arc<Lane>,
        ticket: u32,
    },
}

impl Line {
    /// Reads the agent's marker.
    pub(super) fn open(&self, name: &str, timeout: Duration) -> sonde_probe::Result<AgentLink> {
        let failed = |source| sonde_probe::Error::Link {
            agent: name.into(),
            what: "reach",
            source,
        };
        match self {
            Self::Stream(stream) => {
                let from = stream.try_clone().map_err(failed)?;
                let to = stream.try_clone().map_err(failed)?;
                AgentLink::open(name, from, to, timeout)
            }
            Self::Lane {
                trunk,
                lane,
                ticket,
            } => {
                let (trunk, ticket) = (Arc::clone(trunk), *ticket);
                let from = LaneReader(Arc::clone(lane));
                AgentLink::open(name, from, LaneWriter { trunk, ticket }, timeout)
            }
        }
    }

    /// Whether the agent's end was not seen. Bytes that wait are taken for life.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Stream(stream) => {
                let silent = readable(&[stream.as_fd()], Duration::ZERO);
                matches!(silent, Ok(Woken::Silence)) || matches!(stream.peek(&mut [0]), Ok(1..))
            }
            Self::Lane { lane, .. } => !lane.has_ended(),
        }
    }

    /// Ends the agent's input.
    pub(crate) fn hang_up(&self) {
        // Both fail only where the agent is gone.
        match self {
            Self::Stream(stream) => drop(stream.shutdown(Shutdown::Write)),
            Self::Lane { trunk, ticket, .. } => drop(trunk.say(*ticket, &[])),
        }
    }

    /// Waits for the agent's end after [`hang_up`](Self::hang_up); false where it does not come in time.
    pub(crate) fn await_end(&self, end_by: Instant) -> bool {
        let left = || end_by.saturating_duration_since(Instant::now());
        match self {
            Self::Stream(stream) => {
                let mut rest = [0; 4 << 10];
                loop {
                    match readable(&[stream.as_fd()], left()) {
                        Ok(Woken::Readable(_)) => match (&mut &*stream).read(&mut rest) {
                            Ok(0) | Err(_) => return true,
                            Ok(_) => {}
                        },
                        Ok(Woken::Silence) | Err(_) => return false,
                    }
                }
            }
            Self::Lane { lane, .. } => lane.await_end(left()),
        }
    }
}
