//! What each fuzz target does with an input: the targets share it with the test that replays every input that is kept.
//!
//! Model:   an entry takes any bytes and ends without a panic; what it asserts holds of whatever is taken. A target of the same name is
//!          in `fuzz_targets`, its seeds are in `seeds/NAME`, and inputs that once ended in a panic in `found/NAME`.

mod blobs;
mod columns;
mod connect_frames;
mod control_frames;
mod data_port;
mod datagrams;
mod documents;
mod files;
mod hosts;
mod lab_control;
mod launchers;
mod ledger;
mod load;
mod native_frames;
mod network;
mod packet_frames;
mod place;
mod plan;
mod requests;
mod script;
mod words;

/// What takes an input.
pub type Entry = fn(&[u8]);

/// All entries by the names of their targets.
#[rustfmt::skip]
pub const ENTRIES: &[(&str, Entry)] = &[
    ("blobs", blobs::run),
    ("columns", columns::run),
    ("connect_frames", connect_frames::run),
    ("control_frames", control_frames::run),
    ("data_port", data_port::run),
    ("datagrams", datagrams::run),
    ("documents", documents::run),
    ("files", files::run),
    ("hosts", hosts::run),
    ("lab_control", lab_control::run),
    ("launchers", launchers::run),
    ("ledger", ledger::run),
    ("load", load::run),
    ("native_frames", native_frames::run),
    ("network", network::run),
    ("packet_frames", packet_frames::run),
    ("place", place::run),
    ("plan", plan::run),
    ("requests", requests::run),
    ("script", script::run),
    ("words", words::run),
];
