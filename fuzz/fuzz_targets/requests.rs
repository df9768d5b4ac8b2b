//! Requests to `sonde report serve`.
//! Parses: crates/sonde/src/serve/request.rs
#![no_main]

#[path = "../entries/requests.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
