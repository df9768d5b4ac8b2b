//! Texts of loads, laws, limits and amounts.
//! Parses: crates/fleet/src/load.rs, crates/link/src/words.rs, crates/units/src/parse.rs
#![no_main]

#[path = "../entries/load.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
