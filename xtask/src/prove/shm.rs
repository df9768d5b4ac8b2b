//! sonde's shared memory beside what two cores can do at best, and beside UCX and Open MPI, in turns.
//!
//! Model:   a turn is one batch of the floor, one launch of sonde by each method, one run of ucx_perftest by each of its
//!          ways through memory, and one of a ping-pong over Open MPI, all polling. The floor of latency is the least of ten batches or
//!          more, one a turn; of the copy the best. All else is the median over turns of the median of each run.
//! Units:   nanoseconds one way, half of a round trip; Gb/s are 10^9 bits of user data a second.
//! Checked: `the_percentile_is_found`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::prove::own::{Sought, sonde};
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof, floor, median};

const TURNS_MIN: usize = 10;
const LATENCY_MOST: f64 = 1.3;
const COPY_LEAST: f64 = 0.9;
const SIZE: &str = "8";
const PINGPONG: &str = include_str!("pingpong.c");
/// Where ucx_perftest meets its other half.
const UCX_PORT: &str = "13557";

/// What is measured in each turn, beside the floor.
struct Rival {
    name: &'static str,
    is_own: bool,
    run: fn(&Ground) -> Result<f64>,
}

const RIVALS: [Rival; 5] = [
    Rival {
        name: "sonde shm plain",
        is_own: true,
        run: |ground| latency(ground, "plain"),
    },
    Rival {
        name: "sonde shm segment",
        is_own: true,
        run: |ground| latency(ground, "segment"),
    },
    Rival {
        name: "ucx_perftest posix",
        is_own: false,
        run: |_| ucx("posix"),
    },
    Rival {
        name: "ucx_perftest sysv",
        is_own: false,
        run: |_| ucx("sysv"),
    },
    Rival {
        name: "Open MPI, btl vader",
        is_own: false,
        run: open_mpi,
    },
];

pub fn measure(ground: &Ground) -> Result<Proof> {
    let turns = ground.runs.max(TURNS_MIN);
    let mut unmet = Vec::new();
    Ok(Proof {
        command: format!("{} --runs {turns}", Ground::retry("shm")),
        note: format!(
            "{turns} turns of everything. Latency: messages of {SIZE} B, every program polling on two CPUs; sonde's p50 is to be at most {LATENCY_MOST} of a line's way from core to core, and below the others'. A stream: 64 KiB messages, at least {COPY_LEAST} of the best copy by one core of what the other wrote."
        ),
        tables: vec![
            latencies(ground, turns, &mut unmet)?,
            streams(ground, turns, &mut unmet)?,
        ],
        unmet,
    })
}

fn latencies(ground: &Ground, turns: usize, unmet: &mut Vec<String>) -> Result<Table> {
    let mut floor_ns = f64::INFINITY;
    let mut found: Vec<Result<Vec<f64>>> = RIVALS.iter().map(|_| Ok(Vec::new())).collect();
    for turn in 1..=turns {
        floor_ns = floor_ns.min(floor::line_ns()?);
        for (rival, times) in RIVALS.iter().zip(&mut found) {
            let Ok(known) = times else { continue };
            match (rival.run)(ground) {
                Ok(ns) => {
                    eprintln!("prove shm: {turn}/{turns} {}: {ns:.1} ns", rival.name);
                    known.push(ns);
                }
                Err(error) => *times = Err(error),
            }
        }
    }
    let mut table = Table::new(&["what", "p50 one way, ns", "over the floor", "verdict"]);
    table.row(vec![
        "floor: a line from core to core".into(),
        format!("{floor_ns:.1}"),
        "1.00".into(),
        "–".into(),
    ]);
    let medians: Vec<Result<f64>> = found.into_iter().map(|times| Ok(median(times?))).collect();
    let peers = RIVALS.iter().zip(&medians);
    let best_peer = peers
        .filter(|(rival, _)| !rival.is_own)
        .filter_map(|(_, ns)| ns.as_ref().ok().copied())
        .fold(f64::INFINITY, f64::min);
    for (rival, ns) in RIVALS.iter().zip(medians) {
        let ns = match ns {
            Ok(ns) => ns,
            Err(error) => {
                table.broken(&[rival.name], &error);
                unmet.push(format!("{}: {error:#}", rival.name));
                continue;
            }
        };
        let ratio = ns / floor_ns;
        let is_met = ratio <= LATENCY_MOST && ns < best_peer;
        table.row(vec![
            rival.name.into(),
            format!("{ns:.1}"),
            format!("{ratio:.2}"),
            if rival.is_own {
                verdict(is_met)
            } else {
                "–".into()
            },
        ]);
        if rival.is_own && !is_met {
            unmet.push(format!(
                "{}: {ns:.1} ns are {ratio:.2} of the floor; the best peer takes {best_peer:.1} ns",
                rival.name
            ));
        }
    }
    Ok(table)
}

fn streams(ground: &Ground, turns: usize, unmet: &mut Vec<String>) -> Result<Table> {
    let methods = ["plain", "segment"];
    let mut best_bps = 0.0f64;
    let mut found = [Vec::new(), Vec::new()];
    for turn in 1..=turns {
        best_bps = best_bps.max(floor::copy_bps()?);
        for (method, rates) in methods.iter().zip(&mut found) {
            let words = local("throughput", method, "64KiB");
            let bps = sonde(ground, &words)?.p50(Sought::warm("throughput", "throughput_bps"))?;
            eprintln!(
                "prove shm: {turn}/{turns} stream {method}: {:.2} Gb/s",
                bps / 1e9
            );
            rates.push(bps);
        }
    }
    let mut table = Table::new(&["what", "Gb/s", "of the best copy", "verdict"]);
    table.row(vec![
        "floor: the best copy between two cores".into(),
        format!("{:.2}", best_bps / 1e9),
        "1.00".into(),
        "–".into(),
    ]);
    for (method, rates) in methods.iter().zip(found) {
        let bps = median(rates);
        let ratio = bps / best_bps;
        // The segment waits for its reader after each message, as the study's did: it is shown, not judged.
        let is_judged = *method == "plain";
        table.row(vec![
            format!("sonde shm {method}"),
            format!("{:.2}", bps / 1e9),
            format!("{ratio:.3}"),
            if is_judged {
                verdict(ratio >= COPY_LEAST)
            } else {
                "–".into()
            },
        ]);
        if is_judged && ratio < COPY_LEAST {
            unmet.push(format!(
                "a stream by shm {method} is {ratio:.3} of the best copy"
            ));
        }
    }
    Ok(table)
}

/// A probe on this machine, with one launch that polls.
fn local<'a>(kind: &'a str, method: &'a str, size: &'a str) -> Vec<&'a str> {
    let mut words = vec!["probe", kind, "--testbed", "local", "--path", "shm"];
    words.extend(["--method", method, "--size", size]);
    words.extend(["--wait", "poll", "--launches", "1"]);
    words
}

fn latency(ground: &Ground, method: &str) -> Result<f64> {
    sonde(ground, &local("latency", method, SIZE))?.p50(Sought::warm("latency", "latency_ns"))
}

/// A process that does not outlive this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only for one that has ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The median that ucx_perftest prints, of tagged messages by one of its transports.
fn ucx(transport: &str) -> Result<f64> {
    let command = |rest: &[&str], cpu: &str| {
        // It ends by itself: without this, a side whose other half is missing would wait forever.
        let mut command = Command::new("timeout");
        command.args(["20", "ucx_perftest"]).args(rest);
        command.args(["-p", UCX_PORT, "-t", "tag_lat", "-s", SIZE]);
        command.args(["-n", "100000", "-c", cpu]);
        command.env("UCX_TLS", format!("{transport},self"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    let missing = "starting ucx_perftest (package ucx-utils)";
    let server = command(&[], "0").stdout(Stdio::null()).spawn();
    let _server = Ended(server.context(missing)?);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(200));
        let output = command(&["127.0.0.1", "-f"], "1").output();
        let output = output.context(missing)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return percentile_ns(&text);
        }
    }
    bail!("ucx_perftest by {transport} did not connect or failed; run it by hand to see why")
}

/// The half of what `ucx_perftest -f` prints last: iterations, then microseconds at the median.
fn percentile_ns(text: &str) -> Result<f64> {
    let number = |line: &str| -> Option<f64> {
        let mut words = line.split_whitespace();
        words.next()?.parse::<u64>().ok()?;
        words.next()?.parse().ok()
    };
    let us: f64 = text
        .lines()
        .rev()
        .find_map(number)
        .context("no result line")?;
    Ok(us * 1e3)
}

fn open_mpi(ground: &Ground) -> Result<f64> {
    let program = pingpong(&ground.scratch)?;
    let output = Command::new("timeout")
        .args(["60", "mpirun.openmpi", "--allow-run-as-root", "-np", "2"])
        .args(["--bind-to", "core", "--mca", "pml", "ob1"])
        .args(["--mca", "btl", "vader,self"])
        .arg(&program)
        .args([SIZE, "100000"])
        .stdin(Stdio::null())
        .output()
        .context("starting mpirun.openmpi (package openmpi-bin)")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| {
        format!(
            "reading Open MPI's ping-pong: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// The compiled ping-pong.
fn pingpong(scratch: &Path) -> Result<PathBuf> {
    let (source, program) = (scratch.join("pingpong.c"), scratch.join("pingpong"));
    if program.exists() && std::fs::read_to_string(&source).is_ok_and(|text| text == PINGPONG) {
        return Ok(program);
    }
    std::fs::write(&source, PINGPONG).context("writing the ping-pong's source")?;
    let status = Command::new("mpicc.openmpi")
        .args(["-O2", "-o"])
        .args([&program, &source])
        .status()
        .context("starting mpicc.openmpi (package libopenmpi-dev)")?;
    if !status.success() {
        bail!("mpicc.openmpi does not compile the ping-pong: {status}");
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_found() {
        let text = "| Test | # iterations | 50.0%ile |\n+---+---+\n                      200000      0.085     3.024    16.627        2.52       0.46      330644       60141\n";
        assert!((percentile_ns(text).unwrap() - 85.0).abs() < 1e-9);
        assert!(percentile_ns("| Test |\n").is_err());
    }
}
