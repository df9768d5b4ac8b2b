//! Streams beside what their network allows.
//!
//! Model:   `near-ceiling`: at least 95 % of the ceiling. `below-expectation`: less than 90 % of what the model's kernel-like
//!          sender reaches in the same window (TCP), or of the ceiling; the causes that it names are those whose own limit
//!          explains this rate: windows and buffers, a thread or a host without CPU, segments sent again where the congestion
//!          control keeps no more with them, datagrams lost where they are half of what is missing or more. Of a
//!          library that reaches little `library-rate` speaks instead. `above-ceiling`: more than 1 % above the ceiling
//!          of a real network, or a verdict whose best figure is above 1.003 of what the model allows,
//!          which cannot be: the rate of the line, the framing or a clock is not what it is taken for.
//! Source:  Hoefler & Belli, SC'15, rule 11 (show an upper bound). Thresholds: acknowledgements take up to 5 % of a shared
//!          line; 10 % is twice the interval that a run aims for; 1 % covers a burst at the edges of a window of a second.
//! Checked: `near_below_and_above`, `what_a_model_does_not_allow_is_found`, `expectation_counts_the_window`, `only_what_explains_is_named`.

use std::collections::BTreeMap;

use sonde_measure::{Line, Quantity, ResultRow};

use super::{Finding, Severity};
use crate::index::{Index, p50};
use crate::limit::BUSY;
use crate::words::ceiling as words;

const NEAR: f64 = 0.95;
const SHORT: f64 = 0.9;
const ABOVE: f64 = 1.01;
/// The part of what is missing from which lost datagrams are the cause.
const MOST: f64 = 0.5;

/// `near-ceiling`.
fn near(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let found = words::Near(reached(index, line)?);
    let is_near = (NEAR..=ABOVE).contains(&found.0.part());
    is_near.then(|| Finding::said("near-ceiling", Severity::Note, &found).on(line))
}

/// The same of all lines: told together, after what is amiss.
pub(super) fn near_all(index: &Index<'_>) -> Vec<Finding> {
    let lines = index.lines();
    lines.filter_map(|line| near(index, line)).collect()
}

/// `above-ceiling`: of networks with a model each once, with its worst row; of others each stream.
pub(super) fn above_all(index: &Index<'_>) -> Vec<Finding> {
    let mut found = beyond(index);
    found.extend(index.lines().filter_map(|line| above(index, line)));
    found
}

/// The rate or time of each network that is better than its model allows, the worst.
fn beyond(index: &Index<'_>) -> Vec<Finding> {
    let mut networks: BTreeMap<&str, words::Beyond<'_>> = BTreeMap::new();
    for row in &index.rows {
        let part = row.verdict.as_ref().and_then(|verdict| verdict.above_bound);
        let Some(part) = part else { continue };
        let worst = networks
            .entry(&row.network)
            .or_insert(words::Beyond { row, part });
        if part > worst.part {
            *worst = words::Beyond { row, part };
        }
    }
    networks
        .into_iter()
        .map(|(network, worst)| {
            Finding::said("above-ceiling", Severity::Warning, &worst).on_network(network)
        })
        .collect()
}

/// A stream above the ceiling of a network without a model.
fn above(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let found = words::Above(reached(index, line)?);
    let has_model = index.stream(line)?.verdict.is_some();
    let is_above = !has_model && found.0.part() > ABOVE;
    is_above.then(|| Finding::said("above-ceiling", Severity::Warning, &found).on(line))
}

fn reached<'l>(index: &Index<'_>, line: &'l Line) -> Option<words::Reached<'l>> {
    Some(words::Reached {
        line,
        rate_bps: p50(index.stream(line)?),
        bound_bps: index.ceiling(line)?,
    })
}

/// `below-expectation`.
pub(super) fn below(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    if super::library_rate::slow(index, line).is_some() {
        return None;
    }
    let expected = index
        .network(&line.network)?
        .row
        .tcp_expected_bps
        .filter(|bps| *bps > 0 && line.path.starts_with("tcp"))
        .map(|bps| bps as f64);
    let bound_bps = expected.or_else(|| index.ceiling(line))?;
    let reached = words::Reached {
        line,
        rate_bps: p50(stream),
        bound_bps,
    };
    if reached.part() >= SHORT {
        return None;
    }
    let found = words::Below {
        causes: causes(index, line, stream, bound_bps),
        is_expected: expected.is_some(),
        is_disturbed: stream.is_disturbed(),
        reached,
    };
    Some(Finding::said("below-expectation", Severity::Advice, &found).on(line))
}

/// The rules whose own limit explains this stream.
fn causes(index: &Index<'_>, line: &Line, stream: &ResultRow, bound_bps: f64) -> Vec<String> {
    let lost = |finding: &Finding| match finding.rule.as_str() {
        "retransmits" => super::loss::explains(index, line),
        _ => {
            let lost = index.beside(stream, Quantity::LostShare).unwrap_or(0.0);
            let sent = p50(stream) / (1.0 - lost).max(f64::EPSILON);
            sent - p50(stream) >= MOST * (bound_bps - p50(stream))
        }
    };
    let found = [
        super::window::receiver(index, line),
        super::window::sender(index, line),
        super::window::reader(index, line),
        super::cpu::thread(index, line),
        super::loss::of_datagrams(index, line).filter(lost),
        super::loss::retransmits(index, line).filter(lost),
    ];
    let busy = index
        .host_busy(&stream.cell)
        .filter(|busy| *busy >= BUSY && !line.polls());
    found
        .into_iter()
        .flatten()
        .map(|finding| finding.rule)
        .chain(busy.map(|_| super::cpu::HOST_EXHAUSTED.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};
    use sonde_measure::{Fidelity, Lateness, Verdict};

    fn rules(bps: u64) -> Vec<String> {
        let run = Runs::new()
            .network(net("atm-oc3c").line(155_520_000).tcp_max(134_340_000))
            .stream("atm-oc3c", "tcp", bps)
            .done();
        let index = Index::new(&run);
        let line = line("atm-oc3c", "tcp");
        [near, above, below]
            .into_iter()
            .filter_map(|rule| rule(&index, &line))
            .map(|finding| finding.rule + ": " + &finding.sentence)
            .collect()
    }

    #[test]
    fn near_below_and_above() {
        assert_eq!(
            rules(134_206_000),
            ["near-ceiling: The stream over tcp reaches 99.9 % of what atm-oc3c allows."]
        );
        assert_eq!(rules(125_000_000), [""; 0]);
        assert_eq!(
            rules(100_000_000),
            [
                "below-expectation: The stream over tcp on atm-oc3c reaches 100.0 Mb/s, 74.4 % of what the network allows."
            ]
        );
        assert_eq!(
            rules(150_000_000),
            [
                "above-ceiling: The stream over tcp on atm-oc3c is faster than the network can be: 111.7 % of its ceiling."
            ]
        );
    }

    /// A figure of a network with a model: the row's verdict says it, of messages and times too.
    #[test]
    fn what_a_model_does_not_allow_is_found() {
        let calm = Lateness {
            count: 1_000,
            ..Default::default()
        };
        let found = |part: f64| {
            let run = Runs::new()
                .network(net("lan").ceiling("tcp", Quantity::LatencyNs, Some(1), 10_000))
                .verdict(Verdict::judge(
                    &calm,
                    Fidelity {
                        late: 0,
                        bound_ns: Some(50_000),
                        ..Fidelity::default()
                    },
                ))
                .latency("lan", "tcp", 1, (10_000.0 / part) as u64)
                .done();
            above_all(&Index::new(&run))
        };
        assert_eq!(found(0.9), []);
        assert_eq!(found(1.002), []);
        let above = found(1.25);
        assert_eq!(above.len(), 1);
        assert_eq!(
            above[0].sentence,
            "The best figure of latency of 1 B over tcp on lan is 125.0 % of what the network's model allows: do not trust the row."
        );
    }

    #[test]
    fn expectation_counts_the_window() {
        let wan = |bps| {
            let run = Runs::new()
                .network(
                    net("wan")
                        .line(100_000_000)
                        .tcp_max(94_148_000)
                        .tcp_expected(26_000_000),
                )
                .stream("wan", "tcp", bps)
                .done();
            below(&Index::new(&run), &line("wan", "tcp"))
        };
        assert_eq!(wan(25_900_000), None);
        let finding = wan(13_000_000).unwrap();
        assert!(
            finding
                .sentence
                .contains("50.0 % of what the model expects"),
            "{finding:?}"
        );
        assert!(finding.remedy.unwrap().contains("no limit of window"));
    }

    /// Segments are sent again in each: only where reno keeps no more with it, it is the cause.
    #[test]
    fn only_what_explains_is_named() {
        let remedy = |control: &str, again: u64, bps: u64| {
            let run = Runs::new()
                .network(net("wan").line(100_000_000))
                .setting("src_congestion", control)
                .latency("wan", "tcp", 1, 10_000_000)
                .stream("wan", "tcp", bps)
                .beside(Quantity::Retransmits, again)
                .done();
            let finding = below(&Index::new(&run), &line("wan", "tcp")).unwrap();
            finding.remedy.unwrap()
        };
        // 10 Mb/s are 863 segments a second: 4 again are 0.46 %, with which reno keeps 10.5 Mb/s.
        assert_eq!(
            remedy("reno", 4, 10_000_000),
            "see retransmits, which explains it"
        );
        // With 0.1 % it would keep 22 Mb/s: that is not what holds 1 Mb/s.
        assert!(remedy("reno", 1, 1_000_000).contains("no limit of window"));
        assert!(remedy("bbr", 4, 10_000_000).contains("no limit of window"));
        // A hundredth of the datagrams is lost, and a third of the rate is missing: something else is larger.
        let datagrams = |lost: u64, bps: u64| {
            let run = Runs::new()
                .network(net("lan").ceiling("udp", Quantity::ThroughputBps, None, 90_000_000))
                .stream("lan", "udp", bps)
                .beside(Quantity::LostShare, lost)
                .done();
            let finding = below(&Index::new(&run), &line("lan", "udp")).unwrap();
            finding.remedy.unwrap()
        };
        assert!(datagrams(10_000, 60_000_000).contains("no limit of window"));
        assert_eq!(
            datagrams(300_000, 60_000_000),
            "see datagram-loss, which explains it"
        );
    }
}
