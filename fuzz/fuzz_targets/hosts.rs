//! Lists of hosts, as words and as files.
//! Parses: crates/fleet/src/target.rs
#![no_main]

#[path = "../entries/hosts.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
