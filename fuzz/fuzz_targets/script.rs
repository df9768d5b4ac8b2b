//! A script of changes to a network, and single commands.
//! Parses: crates/link/src/script.rs
#![no_main]

#[path = "../entries/script.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
