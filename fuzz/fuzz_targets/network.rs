//! A network's description of the user's, with knobs, up to the model that is built of it.
//! Parses: crates/link/src/catalogue.rs, crates/link/src/spec.rs, crates/link/src/site/spec.rs, crates/link/src/schedule.rs
#![no_main]

#[path = "../entries/network.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
