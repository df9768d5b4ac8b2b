//! Streams of iperf3 over every rated network against the model's expectation and its upper bound.
//!
//! Model:   `iperf3 -t 5 -O 1`, no window or congestion options. The rate is that of the *server's* own intervals
//!          (`--get-server-output`): whole ones that it does not mark as omitted, bytes over seconds. The client's
//!          `sum_received` is not used: its last interval ends when the client stops, not when the last byte has come.
//!          Networks take turns, so that a busy minute of the machine falls on all.
//! Units:   bits of user data a second; Mb/s are 10^6.
//! Checked: `the_server_s_whole_intervals_count`.

use anyhow::{Context, Result};
use serde_json::Value;
use sonde_link::{Headers, tcp_max};
use sonde_virtual::{Sender, tcp_expected};

use crate::prove::lab::{Lab, spec};
use crate::prove::table::{Table, verdict};
use crate::prove::{ATTACHMENTS, Ground, Proof, RATED, median};

/// A run is near what was expected within this.
pub const NEAR: f64 = 0.015;
/// No run is above the bound by more: the clocks of two programs.
pub const ABOVE: f64 = 0.002;

const SECONDS: u64 = 5;

/// One run of iperf3.
pub struct Run {
    /// Bits a second at the receiver.
    pub bps: f64,
    /// Whether the lab's own verdict was passed.
    pub passed: bool,
    /// How late deliveries were at the 99th percentile.
    pub late_us: Option<f64>,
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let cells: Vec<_> = ATTACHMENTS
        .iter()
        .flat_map(|a| RATED.iter().map(move |n| (*n, *a)))
        .collect();
    let mut runs: Vec<Vec<Result<Run>>> = cells.iter().map(|_| Vec::new()).collect();
    for turn in 1..=ground.runs {
        for ((network, attachment), runs) in cells.iter().zip(&mut runs) {
            let run = one(ground, network, attachment);
            match &run {
                Ok(run) => eprintln!(
                    "prove tcp: {turn}/{} {network} {attachment}: {:.3} Mb/s",
                    ground.runs,
                    run.bps / 1e6
                ),
                Err(error) => eprintln!(
                    "prove tcp: {turn}/{} {network} {attachment}: {error:#}",
                    ground.runs
                ),
            }
            runs.push(run);
        }
    }
    let mut table = Table::new(&[
        "network",
        "attachment",
        "runs",
        "Mb/s, median",
        "expected, Mb/s",
        "ratio, median (worst)",
        "highest / upper bound",
        "fidelity passed",
        "lateness p99, µs",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for ((network, attachment), runs) in cells.iter().zip(runs) {
        if let Err(error) = judge(&mut table, &mut unmet, network, attachment, runs) {
            table.broken(&[network, attachment], &error);
            unmet.push(format!("{network}, {attachment}: {error:#}"));
        }
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("tcp"), ground.runs),
        note: format!(
            "iperf3 with its defaults, a stream of 5 s after a first second, the rate at the receiver. *Expected* is what the virtual clock reaches with a kernel-like sender; every run is to be within {:.1} % of it. The *upper bound* is that of the headers alone; no run may be more than {:.1} % above. At least four of five runs must pass the lab's own fidelity verdict.",
            100.0 * NEAR,
            100.0 * ABOVE
        ),
        tables: vec![table],
        unmet,
    })
}

/// One run of the usual length in a lab of its own.
pub fn one(ground: &Ground, network: &str, attachment: &str) -> Result<Run> {
    lasting(ground, network, attachment, SECONDS)
}

/// One run in a lab of its own: a second that does not count, then so many that do.
pub fn lasting(ground: &Ground, network: &str, attachment: &str, seconds: u64) -> Result<Run> {
    let script = format!(
        "sonde lab exec --detach h2 -- iperf3 -s -1 -J >/dev/null 2>&1; sleep 0.3; iperf3 -c 10.9.0.2 -t {seconds} -O 1 -J --get-server-output"
    );
    let ran = Lab::new(network, attachment).sh(ground, &script)?;
    Ok(Run {
        bps: rate(&ran.output)?,
        passed: ran.report.passed(),
        late_us: ran.report.lateness_ns_p99.map(|ns| ns as f64 / 1e3),
    })
}

/// The rate over the server's whole intervals after the omitted ones.
pub fn rate(text: &str) -> Result<f64> {
    let all: Value = serde_json::from_str(text).context("reading what iperf3 -J wrote")?;
    let intervals = all
        .pointer("/server_output_json/intervals")
        .and_then(Value::as_array);
    let intervals =
        intervals.context("iperf3 gave no intervals of its server (3.1 or later does)")?;
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for sum in intervals.iter().filter_map(|interval| interval.get("sum")) {
        let number = |key: &str| sum.get(key).and_then(Value::as_f64).unwrap_or(0.0);
        if sum.get("omitted") == Some(&Value::Bool(false)) && number("seconds") > 0.5 {
            bytes += number("bytes");
            seconds += number("seconds");
        }
    }
    anyhow::ensure!(seconds > 0.9, "the server of iperf3 saw no whole second");
    Ok(bytes * 8.0 / seconds)
}

fn judge(
    table: &mut Table,
    unmet: &mut Vec<String>,
    network: &str,
    attachment: &str,
    runs: Vec<Result<Run>>,
) -> Result<()> {
    let spec = spec(network)?;
    let expected = tcp_expected(&spec, &Sender::modern())
        .map_err(|reason| anyhow::anyhow!("nothing is expected: {reason:?}"))?
        as f64;
    let most =
        tcp_max(&spec, Headers::Timestamps).context("the network has no upper bound")? as f64;
    let failed = runs.iter().filter(|run| run.is_err()).count();
    let (good, bad): (Vec<_>, Vec<_>) = runs.into_iter().partition(Result::is_ok);
    let good: Vec<Run> = good.into_iter().flatten().collect();
    if good.is_empty() {
        return bad.into_iter().next().map_or(Ok(()), |run| run.map(|_| ()));
    }
    let rates: Vec<f64> = good.iter().map(|run| run.bps).collect();
    let ratios: Vec<f64> = rates.iter().map(|bps| bps / expected).collect();
    let worst = ratios.iter().copied().fold(1.0, |worst: f64, ratio| {
        if (ratio - 1.0).abs() > (worst - 1.0).abs() {
            ratio
        } else {
            worst
        }
    });
    let highest = rates.iter().copied().fold(0.0, f64::max) / most;
    let passed = good.iter().filter(|run| run.passed).count();
    let mut why = Vec::new();
    if failed > 0 {
        why.push(format!("{failed} runs failed"));
    }
    if (worst - 1.0).abs() > NEAR {
        let off = ratios
            .iter()
            .filter(|ratio| (**ratio - 1.0).abs() > NEAR)
            .count();
        why.push(format!("{off} of {} runs are more than {:.1} % from the expected rate, the worst at {:.4} of it", good.len(), 100.0 * NEAR, worst));
    }
    if highest > 1.0 + ABOVE {
        why.push(format!("a run is at {highest:.4} of the upper bound"));
    }
    if passed * 5 < good.len() * 4 {
        why.push(format!(
            "only {passed} of {} runs passed the fidelity verdict",
            good.len()
        ));
    }
    let late: Vec<f64> = good.iter().filter_map(|run| run.late_us).collect();
    table.row(vec![
        network.to_owned(),
        attachment.to_owned(),
        good.len().to_string(),
        format!("{:.3}", median(rates) / 1e6),
        format!("{:.3}", expected / 1e6),
        format!("{:.4} ({worst:.4})", median(ratios)),
        format!("{highest:.4}"),
        format!("{passed} of {}", good.len()),
        if late.is_empty() {
            "–".to_owned()
        } else {
            format!("{:.0}", median(late))
        },
        verdict(why.is_empty()),
    ]);
    unmet.extend(
        why.into_iter()
            .map(|why| format!("{network}, {attachment}: {why}")),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_s_whole_intervals_count() {
        let interval = |bytes: u64, seconds: f64, omitted: bool| {
            format!(
                "{{\"sum\": {{\"bytes\": {bytes}, \"seconds\": {seconds}, \"omitted\": {omitted}}}}}"
            )
        };
        let parts = [
            interval(1, 1.0, true),
            interval(100, 1.0, false),
            interval(300, 1.0, false),
            interval(999, 0.01, false),
        ];
        let text = format!(
            "{{\"server_output_json\": {{\"intervals\": [{}]}}}}",
            parts.join(",")
        );
        assert!((rate(&text).unwrap() - 1_600.0).abs() < 1e-6);
        assert!(rate("{}").is_err() && rate("iperf3: error").is_err());
    }
}
