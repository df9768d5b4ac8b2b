//! Requests to `sonde report serve`.

pub fn run(bytes: &[u8]) {
    sonde_cli::fuzz::request(bytes);
}
