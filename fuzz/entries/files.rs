//! Messages of NFS and MOUNT: as calls to a server, as replies to a client, and as records of a stream; lines and text of FTP.

pub fn run(bytes: &[u8]) {
    sonde_workload::files::fuzz::message(bytes);
}
