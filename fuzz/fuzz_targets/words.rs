//! Short words of the command line and of plans: knobs, paths, methods, paces, profiles, sets of pairs, collectives.
//! Parses: crates/measure/src/path.rs, crates/measure/src/pace.rs, crates/measure/src/knobs.rs, crates/lab/src/config.rs, crates/message/src/path.rs, crates/message/src/collectives/choice.rs, crates/probe/src/pattern/words.rs, crates/fleet/src/networks.rs, crates/fleet/src/launcher/mod.rs, crates/workload/src/npb/size.rs, crates/sonde/src/messages.rs, crates/sonde/src/plan/mod.rs
#![no_main]

#[path = "../entries/words.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
