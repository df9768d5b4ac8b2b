//! What people run on a cluster, made to be measured.
//!
//! Model:   a workload runs on the ranks of a [`Communicator`](sonde_message::collectives::Communicator) and knows nothing of what is beneath.
#![forbid(unsafe_code)]

pub mod npb;
pub mod replay;
