//! What sonde's ping-pong costs over a bare one in C: the same calls, options, sizes and placement.
//!
//! Model:   pairs, one run of each after the other, the order alternating; both ends on one CPU, so that no wake-up crosses
//!          CPUs. Of each pair two differences, sonde minus bare: of the medians of the round trips (what is within what is
//!          timed), and of the time of the whole loop for each sample (all that the harness does, storing included). Printed
//!          are the pairs and the median of the differences with its rank interval.
//! Units:   nanoseconds a round trip.
//!
//! `cargo bench -p sonde-probe --bench harness -- clock [PAIRS [SAMPLES]]`: what the time stamp counter saves against
//! clock_gettime, sonde against itself: pairs of the same round trips through shared memory between two CPUs that poll, timed
//! by one and by the other. Needs an invariant counter and two CPUs; promises nothing.
//!
//! `cargo bench -p sonde-probe --bench harness -- [PAIRS [SAMPLES]]`; needs `cc`. Ends with 1 when the median of a whole
//! loop's difference is beyond 60 ns.

use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use sonde_measure::{Clock, Knobs, Path, Wait};
use sonde_measure::{Phase, Quantity};
use sonde_measure::{Probe, Procedure, Sampling, Spec};
use sonde_probe::{AgentLink, Conversation, agent};
use sonde_stats::median_rank_interval;

const PROMISED_NS: i64 = 60;
const AGENT: &str = "--agent";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Of one run: the median round trip, and the whole loop for each round trip.
#[derive(Clone, Copy)]
struct Run {
    median_ns: i64,
    whole_ns: i64,
}

fn main() -> ExitCode {
    if let Some(code) = agent::entry(None) {
        return ExitCode::from(code as u8);
    }
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    if arguments.first().is_some_and(|word| word == AGENT) {
        return ExitCode::from(agent::run(std::io::stdin(), std::io::stdout()).is_err() as u8);
    }
    if arguments.first().is_some_and(|word| word == "clock") {
        return clocks(&arguments[1..]);
    }
    let number = |at: usize| arguments.get(at).and_then(|word| word.parse::<u64>().ok());
    let (pairs, samples) = (number(0).unwrap_or(41), number(1).unwrap_or(20_000));
    let Some(bare) = compile() else {
        println!("skipped: no C compiler (`cc`)");
        return ExitCode::SUCCESS;
    };
    let cpus = sonde_sys::cpu::online().expect("the affinity can be read");
    let cpu = cpus[cpus.len() - 1];
    sonde_sys::cpu::pin(&[cpu]).expect("a CPU of ours can be bound to");
    println!(
        "{pairs} pairs of {samples} round trips, block, both ends on CPU {cpu}; ns a round trip"
    );
    let mut kept = true;
    for (path, size) in [
        (Path::Tcp, 1),
        (Path::Tcp, 1_024),
        (Path::Udp, 1),
        (Path::Udp, 1_024),
    ] {
        kept &= compare(&bare, path, size, pairs, samples);
    }
    // Only this process's own file.
    let _ = std::fs::remove_file(bare);
    ExitCode::from(u8::from(!kept))
}

/// The same round trips by both clocks.
fn clocks(arguments: &[String]) -> ExitCode {
    let number = |at: usize| arguments.get(at).and_then(|word| word.parse::<u64>().ok());
    let (pairs, samples) = (number(0).unwrap_or(41), number(1).unwrap_or(200_000));
    let cpus = sonde_sys::cpu::online().expect("the affinity can be read");
    if let Some(why) = sonde_sys::tsc::obstacle() {
        println!("skipped: the time stamp counter: {why}");
        return ExitCode::SUCCESS;
    }
    let (&[first, ..], &[.., last]) = (&cpus[..], &cpus[..]) else {
        unreachable!("a process has a CPU")
    };
    if first == last {
        println!("skipped: two CPUs");
        return ExitCode::SUCCESS;
    }
    let (monotonic, counter) = (
        sonde_sys::host::clock_worth(),
        sonde_sys::tsc::Counter::begin()
            .expect("it has no obstacle")
            .worth(),
    );
    println!(
        "a reading: clock_gettime {} ns, tsc {} ns; {pairs} pairs of {samples} round trips of 8 B by shm, poll, CPUs {first} and {last}",
        monotonic.read_ns, counter.read_ns
    );
    let run = |clock: Clock| {
        let spec = Spec {
            sizes_bytes: vec![8],
            knobs: Knobs {
                clock: Some(clock),
                ..Knobs::default()
            },
            ..spec(Path::Shm, Wait::Poll, samples)
        };
        converse(spec, [first, last])
    };
    let (mut timed, mut whole) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (by_tsc, by_call);
        if pair % 2 == 0 {
            by_call = run(Clock::Monotonic);
            by_tsc = run(Clock::Tsc);
        } else {
            by_tsc = run(Clock::Tsc);
            by_call = run(Clock::Monotonic);
        }
        println!(
            "  shm 8 B  tsc median {:>5} whole {:>5}   clock_gettime median {:>5} whole {:>5}",
            by_tsc.median_ns, by_tsc.whole_ns, by_call.median_ns, by_call.whole_ns
        );
        timed.push(by_call.median_ns - by_tsc.median_ns);
        whole.push(by_call.whole_ns - by_tsc.whole_ns);
    }
    print_median("clock_gettime instead of tsc, within what is timed", &timed);
    print_median("clock_gettime instead of tsc, the whole loop", &whole);
    ExitCode::SUCCESS
}

/// The bare program, compiled.
fn compile() -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/harness/bare.c");
    let program = std::env::temp_dir().join(format!("sonde-bare-{}", std::process::id()));
    let compiled = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    compiled.ok()?.success().then_some(program)
}

fn compare(bare: &std::path::Path, path: Path, size: u64, pairs: u64, samples: u64) -> bool {
    let (mut timed, mut whole) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (ours, theirs);
        if pair % 2 == 0 {
            theirs = run_bare(bare, path, size, samples);
            ours = run_sonde(path, size, samples);
        } else {
            ours = run_sonde(path, size, samples);
            theirs = run_bare(bare, path, size, samples);
        }
        timed.push(ours.median_ns - theirs.median_ns);
        whole.push(ours.whole_ns - theirs.whole_ns);
        println!(
            "  {} {size:>5} B  sonde median {:>6} whole {:>6}   bare median {:>6} whole {:>6}   difference {:>5} {:>5}",
            path.name(),
            ours.median_ns,
            ours.whole_ns,
            theirs.median_ns,
            theirs.whole_ns,
            ours.median_ns - theirs.median_ns,
            ours.whole_ns - theirs.whole_ns,
        );
    }
    let timed = print_median(
        &format!("{} {size} B: within what is timed", path.name()),
        &timed,
    );
    let whole = print_median(&format!("{} {size} B: the whole loop", path.name()), &whole);
    timed <= PROMISED_NS && whole <= PROMISED_NS
}

fn print_median(what: &str, differences: &[i64]) -> i64 {
    // The interval is of ranks: a shift of all leaves them.
    const SHIFT: i64 = 1 << 40;
    let shifted: Vec<u64> = differences.iter().map(|ns| (ns + SHIFT) as u64).collect();
    let mut sorted = differences.to_vec();
    sorted.sort_unstable();
    let median = sorted[(sorted.len() - 1) / 2];
    match median_rank_interval(&shifted, 0.95) {
        Some(interval) => {
            let (low, high) = (interval.low as i64 - SHIFT, interval.high as i64 - SHIFT);
            println!(
                "{what}: {median} ns more than bare ({low} to {high} at {:.0} %)",
                interval.coverage * 100.0
            );
        }
        None => println!("{what}: {median} ns more than bare (too few pairs for an interval)"),
    }
    median
}

fn run_bare(bare: &std::path::Path, path: Path, size: u64, samples: u64) -> Run {
    let output = Command::new(bare)
        .args([path.name(), &size.to_string(), &samples.to_string()])
        .output()
        .expect("the bare program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse().expect("a number"));
    Run {
        median_ns: numbers.next().expect("a median"),
        whole_ns: numbers.next().expect("a whole"),
    }
}

fn start(name: &str) -> (Child, AgentLink) {
    let mut child = Command::new("/proc/self/exe")
        .arg(AGENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("an agent starts");
    let (to, from) = (
        child.stdin.take().expect("a pipe"),
        child.stdout.take().expect("a pipe"),
    );
    let link = AgentLink::open(name, from, to, TIMEOUT).expect("an agent greets");
    (child, link)
}

fn spec(path: Path, wait: Wait, samples: u64) -> Spec {
    Spec {
        procedure: Procedure::Latency(Sampling {
            samples_min: samples,
            samples_max: samples,
            precision_per_mille: None,
            budget_ns: 60_000_000_000,
            ..Sampling::LATENCY
        }),
        ..Spec::new(Probe::Latency, path, wait)
    }
}

fn run_sonde(path: Path, size: u64, samples: u64) -> Run {
    let spec = Spec {
        sizes_bytes: vec![size],
        ..spec(path, Wait::Block, samples)
    };
    let cpus = sonde_sys::cpu::online().expect("the affinity can be read");
    let cpu = cpus[cpus.len() - 1];
    converse(spec, [cpu, cpu])
}

/// One conversation between agents on these CPUs.
fn converse(spec: Spec, [one, other]: [usize; 2]) -> Run {
    let bound = |cpu| sonde_sys::cpu::pin(&[cpu]).expect("a CPU of ours can be bound to");
    bound(one);
    let (mut client, mut near) = start("client");
    bound(other);
    let (mut server, mut far) = start("server");
    let conversation = Conversation::new(spec, [127, 0, 0, 1].into()).expect("a token");
    let outcome = conversation
        .run(&mut near, &mut far)
        .expect("a conversation");
    drop((near, far));
    let _ = (client.wait(), server.wait());
    let rows = &outcome.sizes[0].measurements;
    let warm = rows
        .iter()
        .find(|row| row.quantity == Quantity::LatencyNs && row.phase == Phase::Warm)
        .expect("a warm row");
    // The watch is around the first, the warm-up of a hundred, and the samples.
    Run {
        median_ns: 2 * warm.series.median().expect("samples") as i64,
        whole_ns: (outcome.interference[0].span_ns / (warm.series.count() + 101)) as i64,
    }
}
