//! Frames of the native engine, what its ranks say while they meet, letters and packed timelines.
//! Parses: crates/message/src/native/frame.rs, crates/message/src/native/record.rs, crates/message/src/letters/letter.rs, crates/message/src/timeline/packed.rs
#![no_main]

#[path = "../entries/native_frames.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
