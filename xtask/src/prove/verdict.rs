//! The verdict on all pairs: ten planted faults on 16 hosts of a lab, each found and named, and healthy runs beside.
//!
//! Model:   `sonde probe pattern all-pairs --quick`, once for each fault, always at h3 or on the way from h2 to h3. A fault is found
//!          where a line of the verdict has its rule and its host. A healthy run is one whose verdict says so.

use anyhow::{Context, Result};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof};

const NETWORK: &str = "ethernet-100:rate=20Mbit";
const HEALTHY: usize = 10;

/// What is planted, how, and what the verdict must hold.
struct Fault {
    name: &'static str,
    script: &'static str,
    prepare: &'static str,
    rules: &'static [&'static str],
    whom: &'static str,
}

const fn by_script(
    name: &'static str,
    script: &'static str,
    rules: &'static [&'static str],
    whom: &'static str,
) -> Fault {
    Fault {
        name,
        script,
        prepare: "",
        rules,
        whom,
    }
}

const fn by_command(
    name: &'static str,
    prepare: &'static str,
    rules: &'static [&'static str],
) -> Fault {
    Fault {
        name,
        script: "",
        prepare,
        rules,
        whom: "h3",
    }
}

const FAULTS: [Fault; 10] = [
    by_command(
        "small window",
        "h3: sysctl -w net.ipv4.tcp_rmem='4096 4096 4096'",
        &["host-window", "host-odd"],
    ),
    by_script("MTU black hole", "mtu h3 1400", &["host-black-hole"], "h3"),
    by_script("loss 0.5 %", "loss h3 0.5%", &["host-loss"], "h3"),
    by_script(
        "duplex-like collapse",
        "collide h3 20%",
        &["host-duplex"],
        "h3",
    ),
    by_script("slow host", "rate h3 5Mbit", &["host-slow"], "h3"),
    by_script(
        "slow link",
        "rate h2 h3 5Mbit",
        &["direction-slow", "link-slow"],
        "h2 to h3",
    ),
    by_command("offload off", "h3: ethtool -K eth0 gro off", &["host-odd"]),
    by_script("reordering", "reorder h3 5% 3ms", &["host-reorders"], "h3"),
    by_command(
        "CPU hog",
        "h3: nice -n 5 sh -c 'while :; do :; done' >/dev/null 2>&1 &",
        &["host-busy"],
    ),
    by_command(
        "wrong interface",
        "h3: ip route replace 10.9.0.0/24 dev eth1 src 10.9.0.3",
        &["host-odd"],
    ),
];

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&["planted", "how", "what the verdict says", "s", "verdict"]);
    let mut unmet = Vec::new();
    for fault in &FAULTS {
        let (said, seconds) = said(ground, fault.script, fault.prepare)?;
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with("verdict: ["))
            .collect();
        let found = lines.iter().find(|line| {
            fault
                .rules
                .iter()
                .any(|rule| line.contains(&format!("[{rule}]")))
                && line.contains(fault.whom)
        });
        let how = if fault.script.is_empty() {
            fault.prepare
        } else {
            fault.script
        };
        let text = found.or(lines.first()).map_or("healthy", |line| line);
        table.row(vec![
            fault.name.into(),
            how.into(),
            text.trim_start_matches("verdict: ").into(),
            format!("{seconds:.0}"),
            verdict(found.is_some()),
        ]);
        if found.is_none() {
            unmet.push(format!("{}: the verdict was: {text}", fault.name));
        }
    }
    for run in 1..=HEALTHY {
        let (said, seconds) = said(ground, "", "")?;
        let line = said.lines().find(|line| line.starts_with("verdict: "));
        let line = line.unwrap_or("nothing").trim_start_matches("verdict: ");
        let healthy = line.starts_with("healthy");
        table.row(vec![
            format!("nothing ({run})"),
            String::new(),
            line.into(),
            format!("{seconds:.0}"),
            verdict(healthy),
        ]);
        if !healthy {
            unmet.push(format!("healthy run {run}: the verdict was: {line}"));
        }
    }
    Ok(Proof {
        command: Ground::retry("verdict"),
        note: format!(
            "`sonde probe pattern all-pairs --quick --hosts 16 --network {NETWORK}`; the wrong interface is that of a second network. The first finding that names the fault is shown."
        ),
        tables: vec![table],
        unmet,
    })
}

/// What a quick matrix says, and how long it took.
fn said(ground: &Ground, script: &str, prepare: &str) -> Result<(String, f64)> {
    let began = Instant::now();
    let file = ground.scratch.join("fault.txt");
    let mut command = Command::new(&ground.sonde);
    command.args(["probe", "pattern", "all-pairs", "--quick", "--hosts", "16"]);
    command.args(["--network", NETWORK, "--out"]);
    command.arg(ground.scratch.join("verdict"));
    if !script.is_empty() {
        std::fs::write(&file, format!("0s {script}\n"))?;
        command.arg("--script").arg(&file);
    }
    if !prepare.is_empty() {
        command.args(["--prepare", prepare]);
    }
    if prepare.contains("eth1") {
        command.args(["--network", "ethernet-10"]);
    }
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("starting sonde")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((text, began.elapsed().as_secs_f64()))
}
