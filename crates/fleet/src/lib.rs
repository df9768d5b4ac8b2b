//! Starting and steering agents: on this machine, in an emulated cluster, on real hosts by ssh, Slurm or an MPI.
//!
//! Model:   a [`Fleet`] is hosts with agents on them, and one conversation at a time between two of them. It keeps agents
//!          from one conversation to the next, starts them anew when they are gone or out of step, makes everything cold
//!          before a start-up, and knows which hosts are lost. It leaves nothing behind on any host, however it ends.
//! Units:   nanoseconds; hosts are counted from 0 in the order of [`Fleet::hosts`].
//! Checked: the tests of each module; `tests/local.rs`, `tests/lab_fleet.rs`, `tests/lab_ssh.rs`, `tests/connect.rs` with agents
//!          that are processes, in a lab, behind OpenSSH servers, and that connect back.
#![forbid(unsafe_code)]
// What is told goes by `sonde_sys::tell!`, which does not panic.
#![deny(clippy::print_stderr)]

mod agent;
mod connect;
mod connected;
mod error;
mod fleet;
#[doc(hidden)]
pub mod fuzz;
mod joined;
mod lab;
mod launch;
mod launcher;
mod load;
mod local;
mod machines;
mod networks;
mod placement;
mod ranks;
mod ssh;
mod target;
mod traffic;
mod virtual_machine;

pub use connect::{DIRECT_MAX, Joining, Token, join};
pub use error::{FleetError, Result};
pub use fleet::{
    Fleet, FlowOutcome, Part, PatternAsk, PatternLaunched, Round, RoundOutcome, TogetherAsk,
    TogetherLaunched, What,
};
pub use launch::{Ask, Between, Launched};
pub use launcher::{Allocation, ConnectOptions, Launcher, Listen, Mpi, TOKEN_VARIABLE, mpi_of};
pub use load::{Load, flow};
pub use networks::{Choice, End, Joined, NetworkError, Selector};
pub use ranks::RanksAsk;
pub use ssh::SshOptions;
pub use target::{HOSTS_MAX, Target, TargetError, targets};
pub use traffic::{Stream, StreamReport, Traffic, TrafficReport};
pub use virtual_machine::VirtualMachine;

/// How a folder is known that a run makes for a while: its file, the first line of that, and the variable by which a guard knows it. The
/// second line is the process that made it, by its number and when it began.
#[derive(Debug, Clone, Copy)]
pub struct FolderMark {
    /// The file.
    pub file: &'static str,
    /// Its first line.
    pub line: &'static str,
    /// In the environment of a guard.
    pub guard: &'static str,
}

/// The mark of folders of `ranks/folder.sh`, `virtual_machine/keeper.sh`, and others.
pub const FOLDER_MARK: FolderMark = FolderMark {
    file: "sonde",
    line: "sonde-folder/1",
    guard: "FOLDER",
};

/// What a host writes into the place for a copy of the program, for a moment (`ssh/host.sh`).
pub const COPY_MARK: &str = "exit 0; : sonde-host/1\n";
