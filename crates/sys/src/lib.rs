//! Linux: namespaces, netlink, TAP, packet sockets, clocks, affinity, counters.
//!
//! Model:   one module per concern, each a thin layer of typed calls that do what they say or return an
//!          [`Error`] naming what was attempted. Settings are read back where the kernel may ignore them.
//! Units:   plain integers with the unit last in the name (`_ns`, `_bytes`, `_bytes_per_s`).
//! Checked: unit tests beside the code; `tests/` run in fresh user and network namespaces.
//!
//! The crate knows nothing of sonde's models: it is the one place where the command and the lab meet the
//! kernel, and with `channel` the only one that may write `unsafe`. Nothing here calls getaddrinfo or
//! getpw*, so that it works in a static program.

pub mod batch;
pub mod clock;
pub mod cpu;
pub mod datagrams;
pub mod epoll;
mod error;
pub mod ethtool;
pub mod exec;
pub mod file;
pub mod foreign;
pub mod frames;
pub mod gate;
pub mod host;
pub mod memory;
pub mod message;
pub mod mount;
pub mod namespace;
pub mod netlink;
pub mod nicstamps;
pub mod noise;
pub mod packet;
pub mod pages;
pub mod process;
pub mod processes;
pub mod pty;
pub mod ring;
pub mod shared;
pub mod socket;
pub mod stamps;
pub mod sysctl;
pub mod tap;
pub mod tbf;
pub mod thread;
pub mod told;
pub mod topology;
pub mod tsc;
pub mod uring;
pub mod xdp;
pub mod zerocopy;

pub use error::{Error, Result};
