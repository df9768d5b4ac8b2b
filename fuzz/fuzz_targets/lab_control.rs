//! What comes over a lab's sockets, frames of its hosts, and the words of rsh.
//! Parses: crates/lab/src/control.rs, crates/lab/src/switch/talk.rs, crates/lab/src/wire.rs, crates/lab/src/rsh.rs, crates/lab/src/account.rs, crates/lab/src/ids.rs
#![no_main]

#[path = "../entries/lab_control.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
