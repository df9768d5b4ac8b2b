//! A stream of the kernel's TCP over every network of the catalogue up to 1 Gb/s.
//!
//! Model:   iperf3 as in `tcp`, three seconds after a first one (ten on slow lines), on TAPs; a run is compared with what the virtual clock
//!          reaches in as long. A run counts where the lab's own verdict says that it was true to the model, which it must be
//!          in four of five; every one that counts is to be within 1.5 %, and so is the median of all. Networks take
//!          turns, so that a busy minute of the machine falls on all. A way of more than 100 ms has no steady state after
//!          a second: it is measured, and not judged.
//! Units:   bits of user data a second; Mb/s are 10^6.
//! Checked: `runs_are_judged`, `rows_are_those_with_a_rate`.

use anyhow::Result;
use sonde_link::{NetworkSpec, catalogue};
use sonde_units::{BitRate, Span};
use sonde_virtual::{Sender, tcp_expected_over};

use crate::prove::table::{Table, verdict};
use crate::prove::tcp::{NEAR, Run, lasting};
use crate::prove::{Ground, Proof, load_average, median};

const ATTACHMENT: &str = "tap";
const SECONDS: u64 = 3;
/// On a line so slow that a segment more or less is a percent of that.
const SECONDS_SLOW: u64 = 10;
const SLOW: BitRate = BitRate::mbit(5);
const RATE_MAX: BitRate = BitRate::gbit(1);
const DELAY_MAX: Span = Span::millis(100);
/// Of five.
const RUNS_PASSED: usize = 4;

/// What came of the runs on one network.
#[derive(Default)]
struct Outcome {
    runs: Vec<Run>,
    loads: Vec<f64>,
    failed: Vec<String>,
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let specs = rows();
    let mut outcomes: Vec<Outcome> = specs.iter().map(|_| Outcome::default()).collect();
    for turn in 1..=ground.runs {
        for (spec, outcome) in specs.iter().zip(&mut outcomes) {
            outcome.loads.extend(load_average());
            let run = lasting(ground, &spec.name, ATTACHMENT, seconds(spec));
            let told = match &run {
                Ok(run) => format!("{:.3} Mb/s, passed: {}", run.bps / 1e6, run.passed),
                Err(error) => format!("{error:#}"),
            };
            eprintln!(
                "prove networks: {turn}/{} {}: {told}",
                ground.runs, spec.name
            );
            match run {
                Ok(run) => outcome.runs.push(run),
                Err(error) => outcome.failed.push(format!("{error:#}")),
            }
        }
    }
    let mut table = Table::new(&[
        "network",
        "Mb/s, median",
        "expected, Mb/s",
        "ratio, median",
        "worst of those that count",
        "fidelity passed",
        "lateness p99, µs",
        "load average",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for (spec, outcome) in specs.iter().zip(&outcomes) {
        match row(spec, outcome) {
            Ok((cells, why)) => {
                table.row(cells);
                unmet.extend(why.into_iter().map(|why| format!("{}: {why}", spec.name)));
            }
            Err(error) => {
                table.broken(&[&spec.name], &error);
                unmet.push(format!("{}: {error:#}", spec.name));
            }
        }
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("networks"), ground.runs),
        note: format!(
            "iperf3 with its defaults on a TAP, {SECONDS} s ({SECONDS_SLOW} s below 5 Mb/s) after a first second, {} runs a network, the rate at the receiver. *Expected* is what the virtual clock reaches with a kernel-like sender in as long. At least {RUNS_PASSED} of 5 runs are to pass the lab's own fidelity verdict; every run that does is to be within {:.1} % of the expected rate, and so is the median of all. The satellite's stream is still starting then: it is shown without a verdict.",
            ground.runs,
            100.0 * NEAR,
        ),
        tables: vec![table],
        unmet,
    })
}

/// The networks with a rate that this lab promises to carry.
fn rows() -> Vec<NetworkSpec> {
    catalogue()
        .into_iter()
        .filter(|spec| {
            spec.line.usable().is_some() && spec.line.rate.is_some_and(|rate| rate <= RATE_MAX)
        })
        .collect()
}

/// How long a stream is measured.
fn seconds(spec: &NetworkSpec) -> u64 {
    let is_slow = spec.line.rate.is_some_and(|rate| rate < SLOW);
    if is_slow { SECONDS_SLOW } else { SECONDS }
}

/// The cells of a network, and what was not met.
fn row(spec: &NetworkSpec, outcome: &Outcome) -> Result<(Vec<String>, Vec<String>)> {
    let expected = tcp_expected_over(spec, &Sender::modern(), Span::secs(seconds(spec)))
        .map_err(|reason| anyhow::anyhow!("nothing is expected: {reason:?}"))?
        as f64;
    if outcome.runs.is_empty() {
        anyhow::bail!("no run came to its end: {}", outcome.failed.join("; "));
    }
    let is_judged = spec.path.delay <= DELAY_MAX;
    let (why, worst) = judge(outcome, expected);
    let why = if is_judged { why } else { Vec::new() };
    let runs = &outcome.runs;
    let rate = median(runs.iter().map(|run| run.bps).collect());
    let late: Vec<f64> = runs.iter().filter_map(|run| run.late_us).collect();
    let middle = |values: Vec<f64>, digits: usize| match values.is_empty() {
        true => "–".to_owned(),
        false => format!("{:.digits$}", median(values)),
    };
    let passed = runs.iter().filter(|run| run.passed).count();
    let cells = vec![
        spec.name.clone(),
        format!("{:.3}", rate / 1e6),
        format!("{:.3}", expected / 1e6),
        format!("{:.4}", rate / expected),
        worst.map_or("–".to_owned(), |worst| format!("{worst:.4}")),
        format!("{passed} of {}", runs.len() + outcome.failed.len()),
        middle(late, 0),
        middle(outcome.loads.clone(), 1),
        if is_judged {
            verdict(why.is_empty())
        } else {
            "not judged".to_owned()
        },
    ];
    Ok((cells, why))
}

/// What was not met, and the ratio farthest from one among the runs that count.
fn judge(outcome: &Outcome, expected: f64) -> (Vec<String>, Option<f64>) {
    let mut why: Vec<String> = outcome.failed.clone();
    let counted = outcome.runs.iter().filter(|run| run.passed);
    let ratios: Vec<f64> = counted.map(|run| run.bps / expected).collect();
    let off = |ratio: f64| (ratio - 1.0).abs();
    let worst = ratios
        .iter()
        .copied()
        .max_by(|a, b| off(*a).total_cmp(&off(*b)));
    let middle = median(outcome.runs.iter().map(|run| run.bps / expected).collect());
    if off(middle) > NEAR {
        why.push(format!("the median is {middle:.4} of the expected rate"));
    }
    if let Some(worst) = worst.filter(|worst| off(*worst) > NEAR) {
        why.push(format!(
            "a run that was true to the model is at {worst:.4} of the expected rate"
        ));
    }
    let all = outcome.runs.len() + outcome.failed.len();
    if ratios.len() * 5 < all * RUNS_PASSED {
        why.push(format!(
            "only {} of {all} runs passed the fidelity verdict",
            ratios.len()
        ));
    }
    (why, worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(runs: &[(f64, bool)]) -> Outcome {
        let run = |&(bps, passed): &(f64, bool)| Run {
            bps,
            passed,
            late_us: None,
        };
        Outcome {
            runs: runs.iter().map(run).collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn runs_are_judged() {
        let said = |runs: &[(f64, bool)]| judge(&outcome(runs), 100.0).0.len();
        assert_eq!(
            said(&[
                (99.0, true),
                (101.0, true),
                (100.0, true),
                (60.0, false),
                (100.0, true)
            ]),
            0
        );
        assert_eq!(
            said(&[(99.0, true), (60.0, false), (60.0, false)]),
            2,
            "median, and too few"
        );
        assert_eq!(
            said(&[(100.0, true), (100.0, true), (98.0, true)]),
            1,
            "one that counts is far"
        );
    }

    #[test]
    fn rows_are_those_with_a_rate() {
        let names: Vec<String> = rows().into_iter().map(|spec| spec.name).collect();
        for there in [
            "ethernet-10",
            "fddi",
            "ethernet-1g",
            "hippi-800",
            "sci-sbus",
            "atm-ds1",
        ] {
            assert!(names.iter().any(|name| name == there), "{there}");
        }
        for absent in ["wire", "ethernet-10g", "hippi-1600", "sci-1g8", "atm-oc48c"] {
            assert!(!names.iter().any(|name| name == absent), "{absent}");
        }
    }
}
