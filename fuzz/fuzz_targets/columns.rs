//! Columns of a store, as they are read into types.
//! Parses: crates/record/src/store/value.rs, crates/record/src/store/read.rs, crates/measure/src/text.rs
#![no_main]

#[path = "../entries/columns.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
