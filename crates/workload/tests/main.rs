//! The tests of workloads from outside, in one program: it links once. What kernels allocate counts a program of its own.

mod files_launch;
mod files_partners;
mod files_sockets;
mod files_store;
mod files_virtual;
mod memory;
mod messages;
