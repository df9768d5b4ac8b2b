//! The real clock driving `link`: an emulated cluster on this machine.
//!
//! Model:   the command starts a nest of processes in fresh namespaces: a cradle that unshares, the switch as the first
//!          process of the lab, and one init a host. The switch moves frames between the hosts' interfaces and the models;
//!          each init is a server that starts programs in its host. When any of command, cradle or switch dies, the kernel
//!          ends all the others.
//! Units:   nanoseconds of CLOCK_MONOTONIC at the edges, picoseconds since the lab's start inside.
//! Checked: `tests/` of the command, with real programs in real namespaces.
//!
//! The lab never sees `virtual`; parity between the two clocks is shown through the ledger.
#![forbid(unsafe_code)]
// What is told goes by `sonde_sys::tell!`, which does not panic.
#![deny(clippy::print_stderr)]

mod account;
mod client;
mod config;
mod control;
mod cradle;
mod exec;
mod fail_over;
mod furnish;
#[doc(hidden)]
pub mod fuzz;
mod host;
mod ids;
mod interface;
mod libraries;
mod meter;
mod pcap;
mod pool;
mod port;
mod priority;
mod rsh;
mod switch;
mod wire;

pub use client::{Lab, LabError, tell};
pub use config::{
    Attachment, Config, CpuPlan, HOSTS, Info, Profile, ProfileKind, User, WrittenFile,
};
pub use cradle::{CRADLE, entry};
pub use exec::{Ended, Exec, ExecError, Session, Terminal, follow, signals};
pub use meter::{AttachmentLosses, FlowReport, Report};
pub use priority::{HadPriority, Priority};
pub use rsh::number;
pub use wire::addresses;
