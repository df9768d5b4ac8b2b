//! The lab's rate beside those of the kernel's shapers, all set to 100 Mb/s.
//!
//! Model:   the stream of `tcp`, cubic, through a line of 100 Mb/s in the lab, and between two network namespaces through a veth pair with
//!          `tc qdisc … tbf` or `htb` in front of it, by turns. The exact line is Fast Ethernet's: of each frame's
//!          1,538 bytes the stream gets 1,448. A shaper that is told only the rate does not count preamble, check sequence
//!          and gap: it is 1.5 % too fast; told of them it is measured again.
//! Units:   bits of user data a second.
//! Checked: `shapers_are_set_to_the_same_rate`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use sonde_link::{Headers, tcp_max};

use crate::prove::lab::spec;
use crate::prove::table::{Table, verdict};
use crate::prove::tcp::{one, rate};
use crate::prove::{Ground, Proof, load_average, median};

const NETWORK: &str = "ethernet-100";
const BOUND: f64 = 0.0015;
/// What the kernel is to count beside the 14 bytes of Ethernet's header.
const TOLD: &str = "linklayer ethernet overhead 24 mpu 84";
/// Two namespaces, one nested in the other for the sake of its process; what $QDISC is comes before.
const STREAM: &str = r#"
unshare -n sleep 60 & far=$!; sleep 0.2
there="nsenter -t $far -n"
ip link add near type veth peer name far && ip link set far netns $far || exit 1
ip addr add 10.8.0.1/24 dev near && ip link set near up || exit 1
$there ip addr add 10.8.0.2/24 dev far && $there ip link set far up || exit 1
ip route replace 10.8.0.0/24 dev near src 10.8.0.1 congctl cubic || exit 1
eval "$QDISC" || exit 1
$there iperf3 -s -1 -J >/dev/null 2>&1 & sleep 0.5
iperf3 -c 10.8.0.2 -t 5 -O 1 -J --get-server-output; code=$?
kill $far; exit $code
"#;

/// The shapers, and how the kernel is told of each.
fn shapers() -> [(&'static str, String); 4] {
    let tbf = |more: &str| {
        format!("tc qdisc add dev near root tbf rate 100mbit burst 64kb limit 1mb {more}")
    };
    let htb = |more: &str| {
        format!(
            "tc qdisc add dev near root handle 1: htb default 1 && tc class add dev near parent 1: classid 1:1 htb rate 100mbit {more}"
        )
    };
    [
        ("htb", htb("")),
        ("tbf", tbf("")),
        ("htb, told of the line", htb(TOLD)),
        ("tbf, told of the line", tbf(TOLD)),
    ]
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let exact = tcp_max(&spec(NETWORK)?, Headers::Timestamps).context("no ceiling")? as f64;
    let shapers = shapers();
    let mut lab = Vec::new();
    let mut kernel: Vec<Result<Vec<f64>>> = shapers.iter().map(|_| Ok(Vec::new())).collect();
    let mut loads = Vec::new();
    for turn in 1..=ground.runs {
        loads.extend(load_average());
        let run = one(ground, NETWORK, "tap")?;
        eprintln!(
            "prove shapers: {turn}/{} lab: {:.3} Mb/s, passed: {}",
            ground.runs,
            run.bps / 1e6,
            run.passed
        );
        lab.push(run);
        for ((name, qdisc), rates) in shapers.iter().zip(&mut kernel) {
            let Ok(known) = rates else { continue };
            match shaped(qdisc) {
                Ok(bps) => {
                    eprintln!(
                        "prove shapers: {turn}/{} {name}: {:.3} Mb/s",
                        ground.runs,
                        bps / 1e6
                    );
                    known.push(bps);
                }
                Err(error) => *rates = Err(error),
            }
        }
    }
    let mut table = Table::new(&[
        "shaper",
        "Mb/s, median",
        "exact, Mb/s",
        "error, median",
        "largest",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    // A run that the lab itself calls untrue to the model shows nothing of its rate.
    let valid: Vec<f64> = lab
        .iter()
        .filter(|run| run.passed)
        .map(|run| run.bps)
        .collect();
    let all: Vec<f64> = lab.iter().map(|run| run.bps).collect();
    let (name, judged) = if valid.is_empty() {
        (
            format!(
                "lab (none of {} runs passed the fidelity verdict)",
                lab.len()
            ),
            all,
        )
    } else {
        (
            format!(
                "lab ({} of {} runs passed the fidelity verdict)",
                valid.len(),
                lab.len()
            ),
            valid,
        )
    };
    let error = (median(judged.clone()) / exact - 1.0).abs();
    let is_met = error <= BOUND;
    table.row(cells(&name, judged, exact, verdict(is_met)));
    if !is_met {
        unmet.push(format!(
            "the lab's rate is {:.2} % off, more than {:.2} %",
            100.0 * error,
            100.0 * BOUND
        ));
    }
    for ((name, _), rates) in shapers.iter().zip(kernel) {
        match rates {
            Ok(rates) => table.row(cells(name, rates, exact, "for information".into())),
            Err(error) => table.broken(&[name], &error),
        }
    }
    let load = if loads.is_empty() {
        f64::NAN
    } else {
        median(loads)
    };
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("shapers"), ground.runs),
        note: format!(
            "iperf3, 5 s after a first second, cubic, over `{NETWORK}` on a TAP, and over veth pairs with the kernel's shapers set to 100 Mbit, by turns; load average {load:.1}. *Exact* is what 100 Mb/s of Fast Ethernet leave of a stream with time stamps. The lab's median error is to be at most {:.2} %; of the kernel's shapers about 1.5 % are to be expected unless they are told of what Ethernet adds to a frame.",
            100.0 * BOUND
        ),
        tables: vec![table],
        unmet,
    })
}

fn cells(name: &str, rates: Vec<f64>, exact: f64, verdict: String) -> Vec<String> {
    let off = |bps: &f64| 100.0 * (bps / exact - 1.0);
    let largest = rates
        .iter()
        .map(off)
        .max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let middle = median(rates);
    vec![
        name.to_owned(),
        format!("{:.3}", middle / 1e6),
        format!("{:.3}", exact / 1e6),
        format!("{:+.3} %", off(&middle)),
        largest.map_or("–".to_owned(), |error| format!("{error:+.3} %")),
        verdict,
    ]
}

/// A stream through a shaper of the kernel, in namespaces of its own.
fn shaped(qdisc: &str) -> Result<f64> {
    let output = Command::new("timeout")
        .args([
            "--kill-after=5",
            "60",
            "unshare",
            "-Urn",
            "sh",
            "-c",
            STREAM,
        ])
        .env("QDISC", qdisc)
        .stdin(Stdio::null())
        .output()
        .context("starting `timeout`")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{}: {}",
            output.status,
            said.lines().last().unwrap_or("nothing was said")
        );
    }
    rate(&String::from_utf8_lossy(&output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapers_are_set_to_the_same_rate() {
        for (name, qdisc) in shapers() {
            assert!(qdisc.contains("rate 100mbit"), "{name}");
            assert_eq!(
                qdisc.contains("overhead 24"),
                name.contains("told"),
                "{name}"
            );
        }
    }

    #[test]
    fn errors_are_signed() {
        let cells = cells("x", vec![101.0, 99.5, 100.0], 100.0, verdict(true));
        assert_eq!(
            (cells[3].as_str(), cells[4].as_str()),
            ("+0.000 %", "+1.000 %")
        );
    }
}
