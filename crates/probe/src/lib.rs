//! Measurement conversations between two hosts: `startup`, `latency`, `stream`, `message`, `anatomy`, `rate` over the paths
//! of `channel`.
//!
//! Model:   an agent runs on each host and obeys one orchestrator over its stdio. One agent serves, the other measures,
//!          each by a fresh worker process; the data port exists for one conversation and for the peer that holds its
//!          token. Start-up is cold: nothing of the control plane touches the network that is measured before the timed
//!          exchange.
//! Units:   integer nanoseconds on CLOCK_MONOTONIC, bits a second, bytes.
//! Checked: the tests of each module, and `tests/conversation.rs`: every kind over loopback, and what goes wrong.
#![forbid(unsafe_code)]
// What is told goes by `sonde_sys::tell!`, which does not panic.
#![deny(clippy::print_stderr)]

mod admission;
pub mod agent;
mod anatomy;
mod begin;
mod circuit;
pub mod clock;
mod conversation;
mod error;
mod facts;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
pub mod host;
mod interfaces;
pub mod library;
mod link;
pub mod load;
mod meter;
mod moments;
mod numbers;
mod pace;
mod packet;
pub mod pattern;
mod placed;
mod program;
mod rate;
mod serve;
mod startup;
mod stream;
mod streams;
mod talk;
mod timer;
mod trips;
mod watch;

pub use admission::admits;
pub use begin::{LATE, await_begin};
pub use conversation::{Conversation, Moved, Outcome, Seen, SizeOutcome, token};
pub use error::{Error, Result};
pub use interfaces::{Counters, Interface, Interfaces};
pub use link::{AgentLink, Heard};
pub use meter::{Slots, Window};
pub use program::{EndOf, MARK as PROGRAM_MARK, OUTPUT_BYTES_MAX, Program, Ran, worker_of};
pub use talk::{
    Answer, Measure, Measured, Request, SenderWindow, Sent, Serve, Served, SizeMeasured, SizeServed,
};
pub use watch::Watch;
