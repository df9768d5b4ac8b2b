//! The tests of the built command, in one program: it links once.

mod docs;
mod doctor;
mod lab;
mod malformed;
#[path = "lab/part.rs"]
mod part;
mod place;
mod screen;
mod traps;

/// With a lab, and nothing measured: two at a time.
#[path = "."]
mod paired {
    mod json;
    mod lab_broken;
    mod lab_ends;
    mod lab_hosts;
    mod lab_input;
    mod lab_library;
    mod lab_messages;
    mod lab_ordinary;
    mod lab_powers;
    mod lab_restore;
    mod lab_run;
    mod lab_shell;
    mod lab_slurm;
}

/// What measures, or is sensitive to timing: one at a time.
#[path = "."]
mod alone {
    mod lab_assess;
    mod lab_check;
    mod lab_commands;
    mod lab_emulation;
    mod lab_libraries;
    mod lab_nets;
    mod lab_networks;
    mod lab_npb;
    mod lab_npb_trace;
    mod lab_paths;
    mod lab_pattern;
    mod lab_peers;
    mod lab_place;
    mod lab_programs;
    mod lab_streams;
    mod lab_traffic;
    mod lab_tune;
    mod lab_verdict;
}
