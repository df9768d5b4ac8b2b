//! A ledger file: header, records, end.
//! Parses: crates/link/src/ledger.rs
#![no_main]

#[path = "../entries/ledger.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
