//! The tests of the built command, in one program: it links once.

mod docs;
mod doctor;
/// The hosts and networks of NFS on virtual time, and their tests.
#[path = "../../workload/tests/files_virtual.rs"]
mod files_virtual;
mod lab;
mod malformed;
mod old_files;
mod old_files_ftp;
mod output;
#[path = "lab/part.rs"]
mod part;
mod place;
mod screen;
mod seeds;
mod serve;
mod traps;
mod typed;

/// With a lab or with many ranks, and nothing measured: three at a time.
#[path = "."]
mod paired {
    mod json;
    mod lab_accept;
    pub mod lab_assess;
    mod lab_bounds;
    mod lab_broken;
    pub mod lab_check;
    pub mod lab_commands;
    pub mod lab_emulation;
    mod lab_ends;
    mod lab_fail_over;
    pub mod lab_files;
    mod lab_fs;
    pub mod lab_ftp;
    mod lab_hosts;
    mod lab_input;
    mod lab_leftovers;
    pub mod lab_libraries;
    mod lab_library;
    mod lab_measured_sites;
    mod lab_messages;
    pub mod lab_nets;
    pub mod lab_networks;
    pub mod lab_npb;
    pub mod lab_npb_trace;
    mod lab_ordinary;
    mod lab_package;
    mod lab_paths;
    pub mod lab_pattern;
    pub mod lab_place;
    mod lab_powers;
    mod lab_programs;
    mod lab_progress;
    mod lab_restore;
    pub mod lab_routers;
    mod lab_run;
    mod lab_shell;
    mod lab_sites;
    mod lab_slurm;
    mod lab_stage;
    mod lab_suits;
    pub mod lab_traffic;
    pub mod lab_verdict;
    mod lab_virtual_lans;
    mod lab_walks;
    mod output_measured;
}

/// What asserts times, rates or ratios of the real clock: one at a time. A file here has what is measured of the file of that name
/// in `paired`, and takes its functions.
#[path = "."]
mod alone {
    mod lab_ages;
    mod lab_assess_times;
    mod lab_check_times;
    mod lab_contend;
    mod lab_emulation_times;
    mod lab_ftp_times;
    mod lab_history;
    mod lab_hosts_times;
    mod lab_kills;
    mod lab_libraries_times;
    mod lab_nets_times;
    mod lab_networks_times;
    mod lab_pattern_times;
    mod lab_peers;
    mod lab_place_times;
    mod lab_preflight;
    mod lab_priority;
    mod lab_programs_times;
    mod lab_strangers;
    mod lab_streams;
    mod lab_traffic_times;
    mod lab_tune;
    mod lab_verdict_times;
    mod lab_verify;
}
