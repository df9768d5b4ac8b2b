//! Measurement conversations between two hosts: `startup`, `latency`, `throughput` over `tcp` and `udp`.
//!
//! Model:   an agent runs on each host and obeys one orchestrator over its stdio. One agent serves, the other measures;
//!          the data port exists for one conversation and for the peer that holds its token. Startup is cold: nothing of
//!          the control plane touches the network that is measured before the timed exchange.
//! Units:   integer nanoseconds on CLOCK_MONOTONIC, bits a second, bytes.
//! Checked: the tests of each module, and `tests/conversation.rs`: every kind over loopback, and what goes wrong.
#![forbid(unsafe_code)]

mod admission;
pub mod agent;
mod conversation;
mod error;
pub mod frame;
mod latency;
mod link;
mod meter;
mod serve;
mod startup;
mod terms;
mod throughput;

pub use conversation::{Conversation, Outcome};
pub use error::{Error, Result};
pub use link::AgentLink;
pub use meter::Window;
pub use terms::{
    Answer, EndedBy, Figures, Latency, Measure, Measured, Probe, Request, SAMPLES_MAX,
    SenderWindow, Sent, Serve, Served, Startup, Terms,
};
