//! The native engine: messages among ranks over memory, shared memory, UNIX sockets and TCP, with nothing beneath but the
//! kernel.
//!
//! Model:   `engine` says what is sent and where to what comes goes, without a clock or a socket; `matching` finds receives
//!          and messages for one another; `progress` moves frames and bytes, in the calls of the one thread of a rank, over
//!          `wires`: `memory`, `shm` or `stream`. `join` makes the wires among processes.
//! Units:   bytes; ranks from zero.

pub(crate) mod engine;
mod family;
pub(crate) mod frame;
pub(crate) mod group;
mod join;
pub mod matching;
mod memory;
mod messenger;
pub(crate) mod operation;
pub(crate) mod peer;
mod progress;
pub(crate) mod record;
mod shm;
mod stream;
#[cfg(test)]
mod tests;
mod wires;

pub use join::{Bootstrap, Meeting, Transport};
pub use memory::Memory;
pub use messenger::{Manner, Native, TAG_ENGINE};
