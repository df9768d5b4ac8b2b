//! What a run may take of the networks that it measures: the most that a host sends, and for how long.
//!
//! Model:   the rate is a knob of each channel, so that a figure says under which bound it came about; what a library sends cannot be
//!          held to one and is left out. The time is that of the campaign: no repetition begins that would end after it by its
//!          estimate. Before a run on real hosts one line says how much of the link it takes, and for how long.
//! Units:   bits of users a second; times with a suffix.
//! Checked: `a_bound_becomes_a_knob`, `what_a_run_takes_is_announced`; `lab_bounds.rs`.

use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::layout::Block;
use crate::plan::ProbeKind;
use clap::Args;
use serde::{Deserialize, Serialize};
use sonde_measure::KnobValues;
use sonde_report::rate;
use sonde_units::{BitRate, Span};
use std::time::Duration;

/// The knob of a channel.
pub const MAX_RATE: &str = "max-rate";

/// The bounds, as a plan says them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Allowance {
    /// The most bits of users a second that a host sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// The time that all repetitions may take together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
}

/// The bounds, as the command line says them.
#[derive(Debug, Clone, Default, Args)]
pub struct AllowanceOptions {
    /// Send no more than this from a host, in bits of user data per second, as 100Mbit. What libraries and file services send
    /// cannot be bounded and is left out.
    #[arg(long, value_name = "RATE", value_parser = BitRate::of_option)]
    max_rate: Option<BitRate>,
    /// Begin no repetition that would end after this time of measuring, as 10min or bare seconds.
    #[arg(long, value_name = "TIME", value_parser = Span::of_option)]
    max_seconds: Option<Span>,
}

impl AllowanceOptions {
    /// A plan's bounds, with what was given in place of them.
    pub fn over(&self, plan: &Allowance) -> Allowance {
        Allowance {
            rate: self.max_rate.or(plan.rate),
            time: self.max_seconds.or(plan.time),
        }
    }
}

impl Allowance {
    /// Whether nothing is bounded.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The time, where it is bounded.
    pub fn time(&self) -> Option<Duration> {
        self.time.map(|time| Duration::from_nanos(time.as_nanos()))
    }

    /// Holds what goes by `path` to the rate, by its knobs; why it cannot be held, if it cannot.
    ///
    /// # Errors
    /// A rate among the knobs that is none.
    pub fn hold(
        &self,
        path: AnyPath,
        kind: ProbeKind,
        knobs: &mut KnobValues,
    ) -> Result<Option<String>, Failure> {
        let Some(most) = self.rate else {
            return Ok(None);
        };
        let Some(channel) = path.channel() else {
            return Ok(Some(format!(
                "{path} cannot be held to {most}, for only transports of sonde's own pace what they send: leave `--max-rate` out (`rate` of [allow]) to measure it"
            )));
        };
        if channel.is_within_machine() {
            // Nothing of it is on a network.
            return Ok(None);
        }
        knobs.insert(MAX_RATE.into(), most.to_string());
        // Of messages at a rate it is messages a second, which the specification holds against the bound.
        if let (ProbeKind::Throughput, Some(wanted)) = (kind, knobs.get_mut("rate")) {
            let rate: BitRate = wanted.parse().map_err(Failure::usage)?;
            *wanted = rate.min(most).to_string();
        }
        Ok(None)
    }

    /// What a run takes of real hosts' networks, in one sentence; of a line of this rate, where it is known.
    pub fn announced(&self, blocks: &[Block], line_bps: Option<u64>) -> String {
        let all_s = seconds(blocks, |_| true);
        let streams_s = seconds(blocks, |block| {
            matches!(
                block.kind(),
                ProbeKind::Throughput | ProbeKind::Pattern | ProbeKind::Npb
            )
        });
        let all_s = match self.time() {
            Some(most) => all_s.min(most.as_secs_f64()),
            None => all_s,
        };
        let streams_s = streams_s.min(all_s);
        let takes = match (self.rate, line_bps) {
            (Some(most), Some(line)) => format!(
                "up to {} of a link ({:.1} % of {})",
                rate(most.bps() as f64),
                most.bps() as f64 * 100.0 / line as f64,
                rate(line as f64)
            ),
            (Some(most), None) => format!("up to {} of a link", rate(most.bps() as f64)),
            (None, Some(line)) => format!("all of a link that they get (of {})", rate(line as f64)),
            (None, None) => "all of a link that they get".into(),
        };
        let takes = match streams_s > 0.0 {
            true => format!(
                "its streams take {takes}, for about {:.0} s of these",
                streams_s.ceil()
            ),
            false => "it has no streams, only messages one at a time".into(),
        };
        format!(
            "this run sends on real networks for about {:.0} s; {takes}; `--max-rate RATE` and `--max-seconds TIME` bound it",
            all_s.ceil()
        )
    }
}

/// The estimated time of all launches of some blocks.
fn seconds(blocks: &[Block], of: impl Fn(&Block) -> bool) -> f64 {
    let blocks = blocks.iter().filter(|block| of(block));
    let all = blocks.map(|block| block.estimate_ns.saturating_mul(block.launches));
    all.fold(0, u64::saturating_add) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{TestNetwork, blocks};
    use crate::plan::Plan;
    use sonde_measure::Testbed;

    fn plan(allow: &str, probe: &str) -> Plan {
        let text = format!(
            "[testbed]\nkind = \"hosts\"\nnames = \"a,b\"\n[allow]\n{allow}\n[[probe]]\n{probe}\n[repeat]\nlaunches = 6\n"
        );
        Plan::parse(&text).unwrap()
    }

    fn net() -> TestNetwork {
        TestNetwork {
            testbed: Testbed::Hosts,
            name: "hosts".into(),
            mtu: Some(1_500),
            hosts: vec!["a".into(), "b".into()],
            ..TestNetwork::unknown()
        }
    }

    #[test]
    fn a_bound_becomes_a_knob() {
        let allow = "rate = \"10Mbit\"\ntime = \"1min\"";
        let probe = "kind = \"throughput\"\npath = [\"tcp\", \"udp\", \"native:tcp\"]";
        let plan = plan(allow, probe);
        assert_eq!(plan.allow.time(), Some(Duration::from_secs(60)));
        // It is kept with the run, and read back.
        assert_eq!(Plan::parse(&plan.text().unwrap()).unwrap(), plan);
        let all = blocks(&plan, &[net()]).unwrap();
        for block in &all {
            match block.channel() {
                Some(spec) => {
                    assert_eq!(spec.knobs.max_rate_bps, Some(10_000_000));
                    assert_eq!(
                        block.knobs.get(MAX_RATE).map(String::as_str),
                        Some("10Mbit")
                    );
                }
                None => assert!(block.skipped().unwrap().contains("--max-rate")),
            }
        }
        assert_eq!(
            all.iter().filter(|block| block.skipped().is_some()).count(),
            1
        );
        // A rate that was asked for is no higher than the bound; a lower one stays.
        for (asked, sent) in [("1Gbit", "10Mbit"), ("2Mbit", "2Mbit")] {
            let mut knobs = KnobValues::new();
            knobs.insert("rate".into(), asked.into());
            let held = plan.allow.hold(
                AnyPath::Channel(sonde_measure::Path::Udp),
                ProbeKind::Throughput,
                &mut knobs,
            );
            assert_eq!(held.unwrap(), None);
            assert_eq!(knobs.get("rate").map(String::as_str), Some(sent));
        }
        // Messages at a rate that is above it are refused.
        let fast = self::plan(
            allow,
            "kind = \"rate\"\npath = [\"tcp\"]\nsize = [\"1000\"]\n[probe.with]\nrate = [\"2000\"]",
        );
        let refused = blocks(&fast, &[net()]).unwrap_err().to_string();
        assert!(
            refused.contains("16000000 b/s") && refused.contains("--max-rate"),
            "{refused}"
        );
    }

    #[test]
    fn what_a_run_takes_is_announced() {
        let said = |allow: &str, probe: &str| {
            let plan = plan(allow, probe);
            let all = blocks(&plan, &[net()]).unwrap();
            plan.allow.announced(&all, Some(1_000_000_000))
        };
        let streams = "kind = \"throughput\"\npath = [\"tcp\"]";
        let bounded = said("rate = \"10Mbit\"\ntime = \"5s\"", streams);
        assert!(
            bounded.contains("about 5 s") && bounded.contains("(1.0 % of 1.000 Gb/s)"),
            "{bounded}"
        );
        let free = said("", streams);
        assert!(
            free.contains("all of a link that they get (of 1.000 Gb/s)"),
            "{free}"
        );
        let latency = said("", "kind = \"latency\"\npath = [\"tcp\"]");
        assert!(latency.contains("no streams"), "{latency}");
    }
}
