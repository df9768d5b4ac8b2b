//! What agents that come back and relays say: pieces of a trunk, hellos, welcomes, tokens.
//! Parses: crates/fleet/src/connect/handshake.rs, crates/fleet/src/connect/trunk.rs, crates/fleet/src/connect/relay.rs, crates/fleet/src/connect/token.rs
#![no_main]

#[path = "../entries/connect_frames.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
