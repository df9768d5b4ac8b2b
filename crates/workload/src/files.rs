//! File services: NFS and FTP of our own. NFS is state machines that a driver of sockets or a network model moves.
//!
//! Model:   `xdr`, `rpc` and `nfs` write and read messages; [`server`] and [`session`] are the two ends, told the time and given
//!          messages, with a [`store`] and a model of a [`disk`] beneath. `host` and `mount` move them by sockets. What was measured
//!          apart is added up beside what was seen: nothing is fitted.
//! Source:  RFC 4506, 5531, 1094, 1813.

pub mod client;
pub mod counts;
pub mod disk;
mod exchange;
mod fs;
pub mod ftp;
#[doc(hidden)]
pub mod fuzz;
pub mod host;
mod launch;
pub mod mount;
pub mod nfs;
pub mod pattern;
mod rounds;
pub mod rpc;
pub mod server;
pub mod session;
pub mod sockets;
pub mod store;
pub mod xdr;

pub use exchange::Exchange;
pub use launch::{SCRATCH_MARK, SERVICE};
