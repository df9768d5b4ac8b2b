//! Agents that connect back: where something else than sonde starts processes on hosts, and gives no stream to them.
//!
//! Model:   the orchestrator listens at one port and starts, by a launcher, one agent a host, which comes to it
//!          ([`peer`]). Who shows the run's token ([`handshake`]) is asked who it is. The first [`DIRECT_MAX`] hosts stay on
//!          their connections; where there are more, those become relays, and each further host is sent to the relay
//!          with the fewest, so that the orchestrator has no more connections than that. A second agent of a host is told to
//!          go. The port closes when all are there.
//! Checked: the tests of each module; `tests/connect.rs` with processes, strangers and a tree of 130.

mod gather;
pub(crate) mod handshake;
mod line;
mod listener;
mod peer;
mod relay;
mod token;
pub(crate) mod trunk;

pub use peer::{Joining, join};
pub use token::Token;

pub(crate) use gather::{Assembly, Expected, Member};
pub(crate) use line::Line;
pub(crate) use peer::addresses_of;

/// The most connections of an orchestrator; beyond so many hosts they are relays.
pub const DIRECT_MAX: usize = 64;
