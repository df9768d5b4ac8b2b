//! A lab of as many hosts as there can be: up, idle, down.
//!
//! Model:   up is from the start of the command to the first word of the program; down from the program's last word to the end
//!          of the command. Between them the switch is watched from outside, the only grandchild of the command: VmRSS of
//!          /proc/PID/status, and the CPU time of /proc/PID/schedstat over five seconds in which nothing happens.
//! Units:   seconds; MB are 10^6 bytes; per cent of one CPU.

use std::fs::read_to_string;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::prove::table::{Table, verdict};
use crate::prove::{ATTACHMENTS, Ground, Proof};

const HOSTS: &str = "64";
const WATCH: Duration = Duration::from_secs(5);
const SCRIPT: &str = "echo up; sleep 7; echo end";
const UP_S: f64 = 5.0;
const DOWN_S: f64 = 1.0;
const MEMORY_MB: f64 = 30.0;
const BUSY: f64 = 1.0;

struct Cost {
    up_s: f64,
    down_s: f64,
    memory_mb: f64,
    busy: f64,
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&[
        "attachment",
        "hosts",
        "up, s (at most 5)",
        "down, s (at most 1)",
        "switch, MB (at most 30)",
        "idle switch, % of a CPU (at most 1)",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for attachment in ATTACHMENTS {
        eprintln!("prove hosts: {HOSTS} hosts, {attachment}");
        match one(ground, attachment) {
            Ok(cost) => judge(&mut table, &mut unmet, attachment, &cost),
            Err(error) => {
                table.broken(&[attachment], &error);
                unmet.push(format!("{attachment}: {error:#}"));
            }
        }
    }
    Ok(Proof {
        command: Ground::retry("hosts"),
        note: format!(
            "`sonde lab run --network ethernet-1g --hosts {HOSTS} -- sh -c '{SCRIPT}'`: from the start of the command to `up`, and from `end` to the end of the command; between them five seconds of rest."
        ),
        tables: vec![table],
        unmet,
    })
}

fn judge(table: &mut Table, unmet: &mut Vec<String>, attachment: &str, cost: &Cost) {
    let limits = [
        ("up, s", cost.up_s, UP_S),
        ("down, s", cost.down_s, DOWN_S),
        ("memory of the switch, MB", cost.memory_mb, MEMORY_MB),
        ("idle switch, % of a CPU", cost.busy, BUSY),
    ];
    let over: Vec<_> = limits
        .iter()
        .filter(|(_, found, most)| found >= most)
        .collect();
    table.row(vec![
        attachment.to_owned(),
        HOSTS.to_owned(),
        format!("{:.3}", cost.up_s),
        format!("{:.3}", cost.down_s),
        format!("{:.1}", cost.memory_mb),
        format!("{:.3}", cost.busy),
        verdict(over.is_empty()),
    ]);
    unmet.extend(
        over.iter().map(|(what, found, most)| {
            format!("{attachment}: {what}: {found:.3}, not below {most}")
        }),
    );
}

fn one(ground: &Ground, attachment: &str) -> Result<Cost> {
    let begin = Instant::now();
    let mut command = Command::new(&ground.sonde);
    command.args([
        "lab",
        "run",
        "--network",
        "ethernet-1g",
        "--hosts",
        HOSTS,
        "--attachment",
        attachment,
    ]);
    command
        .args(["--", "sh", "-c", SCRIPT])
        .current_dir(&ground.root);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the lab")?;
    let mut lines = BufReader::new(child.stdout.take().context("the lab has no output")?).lines();
    let mut said = |word: &str| -> Result<Instant> {
        let line = lines.next().context("the lab ended early")??;
        anyhow::ensure!(line == word, "the program said `{line}`, not `{word}`");
        Ok(Instant::now())
    };
    let outcome = said("up").and_then(|up| {
        let (memory_mb, busy) = watch(child.id())?;
        Ok((up, memory_mb, busy, said("end")?))
    });
    if outcome.is_err() {
        // It may have ended by itself.
        drop(child.kill());
    }
    let status = child.wait().context("waiting for the lab")?;
    let gone = Instant::now();
    let (up, memory_mb, busy, end) = outcome?;
    anyhow::ensure!(status.success(), "the lab ended with {status}");
    let seconds = |to: Instant, from: Instant| to.duration_since(from).as_secs_f64();
    Ok(Cost {
        up_s: seconds(up, begin),
        down_s: seconds(gone, end),
        memory_mb,
        busy,
    })
}

/// Memory and share of a CPU of the switch of a command.
fn watch(command: u32) -> Result<(f64, f64)> {
    let switch = only_child(only_child(command)?)?;
    std::thread::sleep(Duration::from_millis(500));
    let before = busy_ns(switch)?;
    std::thread::sleep(WATCH);
    let busy = (busy_ns(switch)? - before) as f64 / WATCH.as_nanos() as f64;
    let status =
        read_to_string(format!("/proc/{switch}/status")).context("reading the switch's memory")?;
    let rss = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .split_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    });
    Ok((
        rss.context("the switch has no VmRSS")? * 1_024.0 / 1e6,
        100.0 * busy,
    ))
}

fn only_child(pid: u32) -> Result<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = read_to_string(&path).with_context(|| format!("reading {path}"))?;
    children
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .with_context(|| format!("process {pid} has no child"))
}

fn busy_ns(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/schedstat");
    let text = read_to_string(&path).with_context(|| format!("reading {path}"))?;
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .with_context(|| format!("{path} is empty"))
}
