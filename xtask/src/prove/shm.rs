//! sonde's shared memory beside what two cores can do at best, and beside UCX and Open MPI, in rounds.
//!
//! Model:   a round runs sonde by each method, ucx_perftest by each of its ways through memory, and a ping-pong over Open
//!          MPI, all polling on the same two CPUs ([`crate::prove::rounds`]). A latency is compared with the floor around
//!          the very same turn, the least of five batches before and five after it; with the peers within the round. A
//!          stream is compared with what two cores can do at best by copying in and out at once
//!          ([`floor::handed_bps`]), measured in the same round. Each state of the machine has its own rows.
//! Units:   nanoseconds one way, half of a round trip; Gb/s are 10^9 bits of user data a second.
//! Checked: `the_percentile_is_found`; those of `rounds` and `floor`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::prove::own::{Sought, sonde};
use crate::prove::rounds::{self, Bar, Member, Rounds};
use crate::prove::table::Table;
use crate::prove::{Ground, Proof, floor};

const LATENCY_MOST: f64 = 1.3;
const COPY_LEAST: f64 = 0.9;
const SIZE: &str = "8";
/// Bytes of a stream's messages.
const MESSAGE: usize = 64 << 10;
const PINGPONG: &str = include_str!("../../../crates/sonde/tests/libraries/pingpong.c");
/// Where ucx_perftest meets its other half.
const UCX_PORT: &str = "13557";

/// What takes a turn in a round of latencies.
struct Rival {
    name: &'static str,
    is_own: bool,
    run: fn(&Ground) -> Result<f64>,
}

const RIVALS: [Rival; 5] = [
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
        name: "Open MPI, btl vader",
        is_own: false,
        run: open_mpi,
    },
];

const FIGURE_HEADS: [&str; 7] = [
    "what",
    "program",
    "state",
    "floor, ns",
    "turns",
    "median",
    "lowest to highest",
];

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut figures = Table::new(&FIGURE_HEADS);
    let mut verdicts = Table::new(&rounds::HEADS);
    let mut unmet = Vec::new();
    let told = [
        latencies(ground, &mut figures, &mut verdicts, &mut unmet)?,
        streams(ground, &mut figures, &mut verdicts, &mut unmet)?,
    ];
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("shm"), ground.runs),
        note: format!(
            "Latency: messages of {SIZE} B, ns one way, every program polling on the same two CPUs; sonde's p50 is to be at most {LATENCY_MOST} of a line's way from core to core, measured right before and after the same turn, and below the others' of the same round. A stream: Gb/s of 64 KiB messages, at least {COPY_LEAST} of what two cores hand over at best in the same round: one copies messages in from memory of its own while the other copies them out into memory of its own, by the best sizes of pieces and shared memory. The copy alone of what the other core wrote is shown for direction: no message passing reaches it, since somebody must write as well. The segment waits for its reader after each message, as the study's did, so its stream is shown and not judged. Latency took {}, streams {}.",
            told[0], told[1]
        ),
        tables: vec![figures, verdicts],
        unmet,
    })
}

fn latencies(
    ground: &Ground,
    figures: &mut Table,
    verdicts: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<String> {
    let mut members: Vec<Member<'_>> = RIVALS
        .iter()
        .map(|rival| Member {
            name: rival.name.into(),
            run: Box::new(move || Ok(vec![(rival.run)(ground)?])),
        })
        .collect();
    let rounds = Rounds::play("shm latency", ground.runs, &mut members, floor::state_ns)?;
    let names = RIVALS.iter().map(|rival| rival.name.to_owned());
    let listed: Vec<_> = names
        .enumerate()
        .map(|(at, name)| (name, (at, 0)))
        .collect();
    rounds.rows("8 B, ns", &listed, figures);
    for (own, rival) in RIVALS.iter().enumerate() {
        if let Some(error) = &rounds.broken[own] {
            unmet.push(format!("{}: {error:#}", rival.name));
        }
        if !rival.is_own {
            continue;
        }
        let bar = Bar::at_most(format!("{} to the floor", rival.name), LATENCY_MOST);
        rounds::judge(&rounds.figures((own, 0), true), &bar, verdicts, unmet);
        for (peer, other) in RIVALS.iter().enumerate() {
            if !other.is_own && rounds.broken[peer].is_none() {
                let bar = Bar::at_most(format!("{} to {}", rival.name, other.name), 1.0);
                rounds::judge(&rounds.ratios((own, 0), (peer, 0)), &bar, verdicts, unmet);
            }
        }
    }
    Ok(rounds.told())
}

fn streams(
    ground: &Ground,
    figures: &mut Table,
    verdicts: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<String> {
    let own = |method: &'static str| Member {
        name: format!("sonde shm {method}"),
        run: Box::new(move || {
            let words = local("throughput", method, "64KiB");
            let bps = sonde(ground, &words)?.p50(Sought::warm("throughput", "throughput_bps"))?;
            Ok(vec![bps / 1e9])
        }),
    };
    let mut members = [
        own("segment"),
        own("plain"),
        Member {
            name: "floor: handed over by two cores".into(),
            run: Box::new(|| Ok(vec![floor::handed_bps(MESSAGE)? / 1e9])),
        },
        Member {
            name: "a copy alone of what the other wrote".into(),
            run: Box::new(|| Ok(vec![floor::copy_bps()? / 1e9])),
        },
    ];
    let rounds = Rounds::play("shm stream", ground.runs, &mut members, floor::state_ns)?;
    let names = members.iter().map(|member| member.name.clone());
    let listed: Vec<_> = names
        .enumerate()
        .map(|(at, name)| (name, (at, 0)))
        .collect();
    rounds.rows("64 KiB stream, Gb/s", &listed, figures);
    for (at, what, least) in [
        (1, "a stream by shm plain to the floor", COPY_LEAST),
        (0, "a stream by shm segment to the floor", 0.0),
    ] {
        let bar = Bar::at_least(what.into(), least);
        rounds::judge(&rounds.ratios((at, 0), (2, 0)), &bar, verdicts, unmet);
    }
    Ok(rounds.told())
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
    let [client_cpu, server_cpu] = floor::cpus()?.map(|cpu| cpu.to_string());
    let server = command(&[], &server_cpu).stdout(Stdio::null()).spawn();
    let _server = Ended(server.context(missing)?);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(200));
        let output = command(&["127.0.0.1", "-f"], &client_cpu).output();
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
    let median_ns = text.split_whitespace().next();
    median_ns
        .and_then(|word| word.parse().ok())
        .with_context(|| {
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
