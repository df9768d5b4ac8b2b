//! Datagrams at data ports: of conversations, patterns, circuits and loads.
//! Parses: crates/probe/src/admission.rs, crates/probe/src/circuit.rs, crates/probe/src/pattern/listener.rs, crates/probe/src/load/sink.rs
#![no_main]

#[path = "../entries/datagrams.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
