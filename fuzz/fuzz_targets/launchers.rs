//! What ssh, srun, PVM and the launchers of MPI print, and the report of a rank among it.
//! Parses: crates/fleet/src/ssh/greeting.rs, crates/fleet/src/launcher/mod.rs, crates/fleet/src/virtual_machine/console.rs, crates/fleet/src/ranks/output.rs, crates/probe/src/library/report.rs
#![no_main]

#[path = "../entries/launchers.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
