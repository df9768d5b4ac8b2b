//! The tests of workloads from outside, in one program: it links once. What kernels allocate counts a program of its own.

mod files_launch;
mod files_partners;
mod files_sockets;
mod files_store;
mod files_virtual;
mod fs_launch;
mod ftp_launch;
mod ftp_partners;
mod ftp_sockets;
mod memory;
mod messages;

/// What asserts times, rates or ratios of the real clock: one at a time.
#[path = "."]
mod alone {
    mod ftp_translate_times;
}
