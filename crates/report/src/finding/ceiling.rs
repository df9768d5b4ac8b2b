//! Streams beside what their network allows.
//!
//! Model:   `near-ceiling`: at least 95 % of the ceiling. `below-expectation`: less than 90 % of what the model's kernel-like
//!          sender reaches in the same window (TCP), or of the ceiling. `above-ceiling`: more than 1 % above the ceiling,
//!          which cannot be: the rate of the line, the framing or a clock is not what it is taken for.
//! Source:  Hoefler & Belli, SC'15, rule 11 (show an upper bound). Thresholds: acknowledgements take up to 5 % of a shared
//!          line; 10 % is twice the interval that a run aims for; 1 % covers a burst at the edges of a window of a second.
//! Checked: `near_below_and_above`, `expectation_counts_the_window`.

use super::{Finding, Severity};
use crate::format::{rate, share};
use crate::index::{Index, Line, p50};

const NEAR: f64 = 0.95;
const SHORT: f64 = 0.9;
const ABOVE: f64 = 1.01;

/// `near-ceiling`, for all lines.
pub(super) fn near(index: &Index<'_>) -> Vec<Finding> {
    let near = |line: &Line| {
        let (stream, ceiling) = (index.stream(line)?, index.ceiling(line)?);
        let reached = p50(stream) / ceiling;
        (NEAR..=ABOVE).contains(&reached).then(|| {
            let sentence = format!(
                "The stream by {} reaches {} of what {} allows.",
                line.by(),
                share(reached),
                line.network
            );
            Finding::new("near-ceiling", Severity::Note, sentence)
                .on(line)
                .since(format!(
                    "{} / {} = {}",
                    rate(p50(stream)),
                    rate(ceiling),
                    share(reached)
                ))
        })
    };
    index.lines().filter_map(near).collect()
}

/// `above-ceiling`, for all lines.
pub(super) fn above(index: &Index<'_>) -> Vec<Finding> {
    let above = |line: &Line| {
        let (stream, ceiling) = (index.stream(line)?, index.ceiling(line)?);
        (p50(stream) > ABOVE * ceiling).then(|| {
            let sentence = format!(
                "The stream by {} on {} is faster than the network can be: {} of its ceiling.",
                line.by(),
                line.network,
                share(p50(stream) / ceiling)
            );
            Finding::new("above-ceiling", Severity::Warning, sentence)
                .on(line)
                .since(format!("{} > {}", rate(p50(stream)), rate(ceiling)))
                .remedy(
                    "do not trust either figure: check the rate of the interface (`ethtool`), and that the bytes went by it",
                )
        })
    };
    index.lines().filter_map(above).collect()
}

/// `below-expectation`.
pub(super) fn below(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    let ceiling = index.ceiling(line);
    let expected = index
        .network(&line.network)?
        .row
        .tcp_expected_bps
        .filter(|bps| *bps > 0 && line.path.starts_with("tcp"))
        .map(|bps| bps as f64);
    let (bound, what) = match (expected, ceiling) {
        (Some(expected), _) => (expected, "what the model expects of such a sender"),
        (None, Some(ceiling)) => (ceiling, "what the network allows"),
        (None, None) => return None,
    };
    let reached = p50(stream) / bound;
    (reached < SHORT).then(|| {
        let sentence = format!(
            "The stream by {} on {} reaches {}, {} of {what}.",
            line.by(),
            line.network,
            rate(p50(stream)),
            share(reached)
        );
        let known = causes(index, line);
        let remedy = if known.is_empty() {
            "no limit of window, buffer, CPU or loss explains it: look at the interface (`ethtool -S`), its queues, the \
             switch between, and other traffic"
                .to_string()
        } else {
            format!("see {}, which explains it", known.join(" and "))
        };
        Finding::new("below-expectation", Severity::Advice, sentence)
            .on(line)
            .since(format!(
                "{} / {} = {}",
                rate(p50(stream)),
                rate(bound),
                share(reached)
            ))
            .remedy(remedy)
    })
}

/// The rules that say why a stream is slow, of those that found something on this line.
fn causes(index: &Index<'_>, line: &Line) -> Vec<String> {
    let found = [
        super::window::receiver(index, line),
        super::window::sender(index, line),
        super::cpu::thread(index, line),
        super::loss::datagrams(index, line),
        super::loss::retransmits(index, line),
    ];
    let host = super::cpu::host_exhausted(index, None)
        .into_iter()
        .chain(super::fidelity::untrue(index, None))
        .find(|finding| finding.network.as_deref() == Some(&line.network));
    found
        .into_iter()
        .flatten()
        .chain(host)
        .map(|finding| finding.rule)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};

    fn rules(bps: u64) -> Vec<String> {
        let run = Runs::new()
            .network(net("atm-oc3c").line(155_520_000).tcp_max(134_340_000))
            .stream("atm-oc3c", "tcp", bps)
            .done();
        let index = Index::new(&run);
        near(&index)
            .into_iter()
            .chain(above(&index))
            .chain(below(&index, &line("atm-oc3c", "tcp")))
            .map(|finding| finding.rule + ": " + &finding.sentence)
            .collect()
    }

    #[test]
    fn near_below_and_above() {
        assert_eq!(
            rules(134_206_000),
            ["near-ceiling: The stream by tcp reaches 99.9 % of what atm-oc3c allows."]
        );
        assert_eq!(rules(125_000_000), [""; 0]);
        assert_eq!(
            rules(100_000_000),
            [
                "below-expectation: The stream by tcp on atm-oc3c reaches 100.0 Mb/s, 74.4 % of what the network allows."
            ]
        );
        assert_eq!(
            rules(150_000_000),
            [
                "above-ceiling: The stream by tcp on atm-oc3c is faster than the network can be: 111.7 % of its ceiling."
            ]
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
}
