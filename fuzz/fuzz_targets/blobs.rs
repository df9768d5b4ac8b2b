//! What is read back from a store or an exported file: blobs, series.
//! Parses: crates/record/src/store/blob.rs, crates/stats/src/series/parts.rs
#![no_main]

#[path = "../entries/blobs.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
