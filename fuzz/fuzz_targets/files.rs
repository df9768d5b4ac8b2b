//! Messages of NFS and MOUNT: as calls to a server, as replies to a client, and as records of a stream; lines and text of FTP.
//! Parses: crates/workload/src/files/xdr.rs, crates/workload/src/files/rpc.rs, crates/workload/src/files/counts.rs, crates/workload/src/files/ftp/dialogue.rs, crates/workload/src/files/nfs/mount.rs, crates/workload/src/files/nfs/v2.rs, crates/workload/src/files/nfs/v3.rs
#![no_main]

#[path = "../entries/files.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
