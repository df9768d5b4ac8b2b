//! A plan of the user's: what is taken can be laid out as text and read back.
//! Parses: crates/sonde/src/plan/mod.rs, crates/sonde/src/any_path.rs
#![no_main]

#[path = "../entries/plan.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
