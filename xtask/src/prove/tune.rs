//! `sonde tune` where a window limits a stream, and where nothing does.
//!
//! Model:   three kinds of hosts on networks of the lab. Two have a window that is too small, by TCP settings of the early
//!          nineties and by a program's receive buffer of 64 KiB: `sonde tune --apply` is to find it, to foretell what lifting it
//!          brings, and to reach that. On healthy networks it is to recommend nothing. All figures are of sonde's own JSON:
//!          the gain foretold, the gain of its trial (median with over median without), the rate afterwards over
//!          the rate that the network allows.
//! Units:   Mb/s are 10^6 bits of user data a second.
//! Checked: `a_tuned_pair_is_judged`.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::prove::own::{document, sonde_words};
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof};

/// The gain is to be foretold within this.
const FORETOLD: f64 = 0.10;
/// What is to be reached of what the network allows.
const REACHED: f64 = 0.9;
const LIMITED: [(&str, &str); 2] = [
    ("TCP settings of the early nineties", "--profile era"),
    ("a receive buffer of 64 KiB", "--with rcvbuf=64KiB"),
];
const WAN: &str = "wan-100m-20ms";
const HEALTHY: [&str; 4] = ["ethernet-100", "ethernet-1g", "atm-oc3c", WAN];
/// Rules that say that a window is too small.
const WINDOWS: [&str; 2] = ["receive-window", "send-buffer"];

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut unmet = Vec::new();
    let mut limited = Table::new(&[
        "what limits",
        "rule found",
        "before, Mb/s",
        "gain foretold",
        "gain reached",
        "after, Mb/s",
        "of the ceiling",
        "verdict",
    ]);
    for (what, words) in LIMITED {
        let line = format!("tune --network {WAN} {words} --apply --yes");
        let words = sonde_words(&line);
        match document(ground, &words).and_then(|found| tuned(&found["tune"])) {
            Ok(found) => {
                let mut cells = vec![what.to_owned()];
                cells.extend(found.cells());
                limited.row(cells);
                if !found.is_met() {
                    unmet.push(format!("{what}: {}", found.cells().join(", ")));
                }
            }
            Err(error) => {
                limited.broken(&[what], &error);
                unmet.push(format!("{what}: {error:#}"));
            }
        }
    }
    let mut healthy = Table::new(&[
        "healthy network",
        "Mb/s",
        "of the ceiling",
        "recommended",
        "verdict",
    ]);
    for network in HEALTHY {
        let line = format!("tune --network {network}");
        let words = sonde_words(&line);
        if let Err(error) = document(ground, &words)
            .and_then(|found| left_alone(network, &found["tune"], &mut healthy, &mut unmet))
        {
            healthy.broken(&[network], &error);
            unmet.push(format!("{network}: {error:#}"));
        }
    }
    Ok(Proof {
        command: Ground::retry("tune"),
        note: format!(
            "`sonde tune --network {WAN} … --apply`: the window is to be found, its gain foretold within {:.0} %, and at least {:.0} % of what the network allows a stream reached (median of six launches each). Then `sonde tune --network …` where nothing is wrong: nothing is to be recommended.",
            100.0 * FORETOLD,
            100.0 * REACHED
        ),
        tables: vec![limited, healthy],
        unmet,
    })
}

/// What came of a pair that was tuned.
#[derive(Debug)]
struct Tuned {
    rule: String,
    before_bps: f64,
    foretold: f64,
    reached: f64,
    after_bps: f64,
    ceiling_bps: f64,
    kept: bool,
}

fn number(value: &Value, what: &str) -> Result<f64> {
    value
        .as_f64()
        .with_context(|| format!("sonde tune gave no {what}"))
}

fn tuned(report: &Value) -> Result<Tuned> {
    let rule = report["recommendations"][0]["cause"]["rule"].as_str();
    let trials = report["trials"].as_array().context("nothing was tried")?;
    let trial = trials.first().context("nothing was tried")?;
    Ok(Tuned {
        rule: rule.context("nothing was recommended")?.to_owned(),
        before_bps: number(&report["before"]["rate_bps"], "rate before")?,
        foretold: number(&trial["expected_gain"], "foretold gain")?,
        reached: number(&trial["gain"], "gain")?,
        after_bps: number(&report["after"]["rate_bps"], "rate after")?,
        ceiling_bps: number(&report["before"]["reach_bps"], "ceiling")?,
        kept: trial["kept"] == true,
    })
}

impl Tuned {
    fn is_met(&self) -> bool {
        WINDOWS.contains(&self.rule.as_str())
            && self.kept
            && (self.reached / self.foretold - 1.0).abs() <= FORETOLD
            && self.after_bps >= REACHED * self.ceiling_bps
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.rule.clone(),
            format!("{:.2}", self.before_bps / 1e6),
            format!("{:.3}", self.foretold),
            format!("{:.3}", self.reached),
            format!("{:.2}", self.after_bps / 1e6),
            format!("{:.3}", self.after_bps / self.ceiling_bps),
            verdict(self.is_met()),
        ]
    }
}

fn left_alone(
    network: &str,
    report: &Value,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let rate = number(&report["before"]["rate_bps"], "rate")?;
    let ceiling = number(&report["before"]["reach_bps"], "ceiling")?;
    let all = report["recommendations"].as_array();
    let rules: Vec<String> = all
        .context("sonde tune gave no recommendations")?
        .iter()
        .map(|one| one["cause"]["rule"].as_str().unwrap_or("?").to_owned())
        .collect();
    table.row(vec![
        network.into(),
        format!("{:.2}", rate / 1e6),
        format!("{:.3}", rate / ceiling),
        if rules.is_empty() {
            "nothing".into()
        } else {
            rules.join(", ")
        },
        verdict(rules.is_empty()),
    ]);
    if !rules.is_empty() {
        unmet.push(format!(
            "{network} is healthy, and {} was recommended",
            rules.join(", ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(gain: f64) -> Value {
        serde_json::json!({
            "recommendations": [{"cause": {"rule": "receive-window"}}],
            "trials": [{"expected_gain": 4.2, "gain": gain, "kept": true}],
            "before": {"rate_bps": 22e6, "reach_bps": 95e6},
            "after": {"rate_bps": 22e6 * gain},
        })
    }

    #[test]
    fn a_tuned_pair_is_judged() {
        assert!(tuned(&report(4.15)).unwrap().is_met());
        assert!(!tuned(&report(3.5)).unwrap().is_met(), "foretold too much");
        let mut other = report(4.15);
        other["recommendations"][0]["cause"]["rule"] = "loss".into();
        assert!(!tuned(&other).unwrap().is_met(), "not the window");
        other["trials"] = Value::Array(Vec::new());
        assert!(tuned(&other).is_err());
        let (mut table, mut unmet) = (Table::new(&["a", "b", "c", "d", "e"]), Vec::new());
        left_alone("x", &report(1.0), &mut table, &mut unmet).unwrap();
        assert!(
            unmet[0].contains("receive-window was recommended"),
            "{unmet:?}"
        );
    }
}
