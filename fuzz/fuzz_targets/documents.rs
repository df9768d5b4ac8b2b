//! Documents and exports that are read back.
//! Parses: crates/record/src/document.rs, crates/measure/src/settings.rs, crates/measure/src/text.rs, crates/sonde/src/messages.rs
#![no_main]

#[path = "../entries/documents.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
