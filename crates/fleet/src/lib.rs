//! Starting and steering agents: on this machine, in an emulated cluster, on real hosts by ssh.
//!
//! Model:   a [`Fleet`] is hosts with agents on them, and one conversation at a time between two of them. It keeps agents
//!          from one conversation to the next, starts them anew when they are gone or out of step, makes everything cold
//!          before a start-up, and knows which hosts are lost. It leaves nothing behind on any host, however it ends.
//! Units:   nanoseconds; hosts are counted from 0 in the order of [`Fleet::hosts`].
//! Checked: the tests of each module; `tests/local.rs`, `tests/lab_fleet.rs`, `tests/lab_ssh.rs` with agents that are
//!          processes, in a lab, and behind OpenSSH servers.
#![forbid(unsafe_code)]

mod agent;
mod bed;
mod error;
mod fleet;
mod lab;
mod launch;
mod load;
mod local;
mod placement;
mod ssh;
mod target;

pub use error::{FleetError, Result};
pub use fleet::{Fleet, FlowOutcome, PatternAsk, PatternLaunched, Round, RoundOutcome};
pub use launch::{Ask, Launched};
pub use load::Load;
pub use ssh::SshOptions;
pub use target::{HOSTS_MAX, Target, TargetError, targets};
