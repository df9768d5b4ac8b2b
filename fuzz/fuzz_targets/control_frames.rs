//! What an agent and its orchestrator read from each other: frames, requests, answers.
//! Parses: crates/probe/src/frame.rs, crates/measure/src/spec.rs
#![no_main]

#[path = "../entries/control_frames.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
