//! Plain programs in a lab beside sonde's own probes over the same network: what both measure is the same.
//!
//! Model:   pairs by turns, a program and a probe, each in a lab of its own; what is held against a bound is the median of their
//!          ratios. osu_latency prints a mean: where delays have a long tail it is far above a median. MPI's ranks run with
//!          `--cpus free`, as the probes' do: they wait by polling, and in the other plans both share one of two CPUs, which alone
//!          makes their round trips 1.1 to 1.5 times as long.
//! Found:   MPICH never yields, so that three pollers on two CPUs wait for the kernel's slices, 2 to 4 ms, in 1 % of the rounds:
//!          the mean is 2.4 times the median. sonde's ranks yield between their questions: their median is up to 1.5 times the
//!          program's, and their mean below it.
//! Source:  osu_latency and osu_allreduce of the OSU micro-benchmarks and netperf's UDP_STREAM, whose calls the programs in
//!          `libraries` make.

use crate::lab::{Stage, attachments, has, is_long, path_of, skip};
use serde_json::Value;
use sonde_sys::noise::measured;
use std::path::Path;
use std::process::Command;

/// What two figures of the same thing may differ by, either way.
const ALIKE: f64 = 1.3;
/// The same where ranks take turns on the CPUs.
const ALIKE_IN_TURNS: f64 = 1.5;

/// Compiles a program of this folder for the stage.
fn compile(stage: &Stage, compiler: &str, source: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libraries");
    let program = stage.path(source);
    let mut command = Command::new(path_of(compiler).unwrap());
    command.args(["-O2", "-o", &program]);
    let output = command.arg(folder.join(source).with_extension("c"));
    let output = output.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    program
}

/// The figures that a program in the lab prints first, in its own unit.
fn program<const N: usize>(stage: &Stage, lab: &[&str], script: &str) -> [f64; N] {
    let outcome = stage.run(lab, &["sh", "-c", script]).limit(120).output();
    let figures = outcome
        .out
        .split_whitespace()
        .map_while(|word| word.parse().ok());
    let figures: Vec<f64> = figures.take(N).collect();
    figures.try_into().unwrap_or_else(|_| panic!("{outcome}"))
}

/// Statistics of the warm rows of quantities that a probe gives.
fn probe<const N: usize>(stage: &Stage, words: &[&str], wanted: [(&str, &str); N]) -> [f64; N] {
    let out = stage.path("runs");
    let more = [
        "--attachment",
        stage.case.attachment,
        "--out",
        &out,
        "--json",
    ];
    let call = stage.sonde(&[&["probe"], words, &more, &["--launches", "1"]].concat());
    let outcome = call.limit(120).output();
    let document: Value =
        serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{outcome}"));
    let rows = document["results"].as_array().unwrap();
    wanted.map(|(quantity, statistic)| {
        let is_wanted = |row: &&Value| row["quantity"] == quantity && row["phase"] == "warm";
        let row = rows.iter().find(is_wanted).expect("a row");
        row[statistic].as_f64().unwrap_or_else(|| panic!("{row:#}"))
    })
}

/// The median of the ratios of so many pairs.
fn ratio(pairs: usize, what: &str, mut pair: impl FnMut() -> (f64, f64)) -> f64 {
    let mut ratios: Vec<f64> = Vec::new();
    for _ in 0..pairs {
        let (theirs, ours) = pair();
        println!("{what}: {theirs:.0} by the program, {ours:.0} by the probe");
        ratios.push(theirs / ours);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[pairs / 2];
    println!("{what}: {median:.3} of the probe, median of {ratios:.3?}");
    median
}

fn is_alike(ratio: f64, bound: f64) -> bool {
    (1.0 / bound..=bound).contains(&ratio)
}

/// A stage, where there is a way to attach hosts and all is wanted.
fn stage() -> Option<Stage> {
    if !is_long() {
        skip("pairs by turns take minutes: make test-long");
        return None;
    }
    attachments().first().map(|case| Stage::new(*case))
}

#[test]
fn a_round_trip_of_tcp_is_the_probes() {
    let Some(stage) = stage().filter(|_| has("cc")) else {
        return;
    };
    let plain = compile(&stage, "cc", "plain");
    let script =
        format!("sonde lab exec --detach h2 -- {plain} answer; sleep 0.3; {plain} ask h2 5000");
    measured(|| {
        for network in ["ethernet-100", "ethernet-1g", "atm-oc3c", "hippi-800"] {
            let lab = ["--hosts", "2", "--network", network];
            let latency = ["latency", "--path", "tcp", "--size", "1"];
            let words = [&latency[..], &lab].concat();
            let ratio = ratio(10, network, || {
                let [theirs_us] = program(&stage, &lab, &script);
                let [ours] = probe(&stage, &words, [("latency_ns", "p50")]);
                (theirs_us * 1e3, ours)
            });
            assert!(ratio <= ALIKE, "{network}: {ratio}");
        }
    });
}

/// A library's compiler, how its launcher starts so many ranks, and its path.
struct Library {
    compiler: &'static str,
    launch: fn(u32) -> String,
    path: &'static str,
}

const OPEN_MPI: Library = Library {
    compiler: "mpicc.openmpi",
    launch: |ranks| format!("mpirun.openmpi -np {ranks}"),
    path: "openmpi:tcp",
};
const MPICH: Library = Library {
    compiler: "mpicc.mpich",
    launch: |ranks| format!("mpiexec.mpich -n {ranks}"),
    path: "mpich:tcp",
};

#[test]
fn a_ping_pong_of_mpi_is_the_probes() {
    let Some(stage) = stage() else { return };
    for library in [OPEN_MPI, MPICH] {
        if !has(library.compiler) {
            continue;
        }
        let ping = compile(&stage, library.compiler, "pingpong");
        let script = format!("timeout 60 {} {ping} 1 5000", (library.launch)(2));
        measured(|| {
            for network in ["ethernet-1g", "atm-oc3c"] {
                let (lab, path) = (["--hosts", "2", "--network", network], library.path);
                let latency = ["latency", "--path", path, "--size", "1"];
                let words = [&latency[..], &lab].concat();
                let lab = [&lab[..], &["--cpus", "free"]].concat();
                let mut means = Vec::new();
                let median = ratio(9, &format!("{network} {path}, median"), || {
                    let [p50, mean] = program(&stage, &lab, &script);
                    let rows = [("latency_ns", "p50"), ("latency_ns", "mean")];
                    let [our_p50, our_mean] = probe(&stage, &words, rows);
                    means.push((mean, our_mean));
                    (p50, our_p50)
                });
                let mut means = means.into_iter();
                let mean = ratio(9, &format!("{network} {path}, mean"), || {
                    means.next().unwrap()
                });
                let (yields, says) = (path == OPEN_MPI.path, format!("{network} {path}"));
                assert!(
                    median <= ALIKE && mean >= 1.0 / ALIKE,
                    "{says}: {median}, {mean}"
                );
                let both = is_alike(median, ALIKE) && is_alike(mean, ALIKE);
                assert!(!yields || both, "{says}: {median}, {mean}");
            }
        });
    }
}

#[test]
fn what_an_allreduce_has_beyond_a_plain_loop_is_told_beside_it() {
    let Some(stage) = stage().filter(|_| has(OPEN_MPI.compiler)) else {
        return;
    };
    let loop_ = compile(&stage, OPEN_MPI.compiler, "pingpong");
    measured(|| {
        for ranks in ["2", "4"] {
            let lab = ["--hosts", ranks, "--network", "ethernet-1g"];
            let call = [
                "collective",
                "allreduce",
                "--path",
                OPEN_MPI.path,
                "--size",
                "8",
            ];
            let words = [&call[..], &lab, &["--ranks", ranks]].concat();
            let lab = [&lab[..], &["--cpus", "free"]].concat();
            let launcher = (OPEN_MPI.launch)(ranks.parse().unwrap());
            let script = format!("timeout 60 {launcher} {loop_} 8 2000 allreduce");
            let ratio = ratio(9, &format!("{ranks} ranks, without late entries"), || {
                let [_, theirs] = program(&stage, &lab, &script);
                let rows = [("collective_ns", "mean"), ("entry_late_ns", "mean")];
                let [ours, late] = probe(&stage, &words, rows);
                (theirs, ours - late)
            });
            assert!(is_alike(ratio, ALIKE_IN_TURNS), "{ranks} ranks: {ratio}");
        }
    });
}

#[test]
fn a_stream_of_datagrams_is_the_probes() {
    let Some(stage) = stage().filter(|_| has("cc")) else {
        return;
    };
    let plain = compile(&stage, "cc", "plain");
    let script = format!("sonde lab exec h2 -- {plain} take & sleep 0.3; {plain} send h2 2; wait");
    measured(|| {
        for network in ["ethernet-100", "atm-oc3c", "ethernet-1g", "ethernet-10g"] {
            let lab = ["--hosts", "2", "--network", network];
            let stream = ["throughput", "--mode", "stream", "--path", "udp"];
            let words = [&stream[..], &["--size", "1472", "--budget", "2s"], &lab].concat();
            let ratio = ratio(5, network, || {
                let [theirs_mbps] = program(&stage, &lab, &script);
                let [ours] = probe(&stage, &words, [("throughput_bps", "p50")]);
                (theirs_mbps * 1e6, ours)
            });
            assert!(is_alike(ratio, ALIKE), "{network}: {ratio}");
        }
    });
}
