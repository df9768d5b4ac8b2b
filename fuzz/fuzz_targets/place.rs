//! Communication matrices, clusters, and the topologies of ranks.
//! Parses: crates/units/src/matrix.rs, crates/units/src/topology/words.rs, crates/place/src/file.rs, crates/place/src/cluster.rs, crates/place/src/launcher.rs
#![no_main]

#[path = "../entries/place.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
