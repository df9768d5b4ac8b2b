//! What people run on a cluster, made to be measured.
//!
//! Model:   a workload of ranks runs on a [`Communicator`](sonde_message::collectives::Communicator) and knows nothing of what is beneath; one
//!          of [`files`] is a client and a server.
#![forbid(unsafe_code)]

pub mod files;
pub mod npb;
pub mod replay;
