//! What strangers send to a data port, over TCP after the length and over UDP.
//! Parses: crates/channel/src/payload.rs, crates/probe/src/admission.rs
#![no_main]

#[path = "../entries/data_port.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
