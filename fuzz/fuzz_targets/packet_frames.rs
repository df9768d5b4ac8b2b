//! Frames of the paths packet and xdp.
//! Parses: crates/channel/src/packet/head.rs
#![no_main]

#[path = "../entries/packet_frames.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
