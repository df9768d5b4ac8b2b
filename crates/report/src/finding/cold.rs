//! What first use costs.
//!
//! Model:   `cold-start`: the whole cold start takes at least three times a warm round trip of the same size; advice from ten
//!          times on. Its parts are the steps spawn, init, neighbour, vc and connect, and of the first message what it takes more than the second;
//!          these and one round trip (the second message, else a warm one) are what explains it, and what they leave is told as not explained.
//!          A part carries most of it from one half on, and only then it is the one to be cured; else a message sent ahead cures
//!          all of them. `idle-cost`: the first message after a pause takes at least twice the second
//!          message of a start-up and is at least 10 µs slower.
//! Source:  NASA TM-107196 (cold and warm start apart). Thresholds: a start-up of one handshake and one exchange is two round
//!          trips, so that three is more than TCP itself needs; below 10 µs a pause costs no more than a wake-up varies; medians
//!          of steps add up within 5 %, the interval that a run aims for.
//! Checked: `the_step_that_carries_most_is_named`, `a_part_below_one_half_is_not_most`, `a_cheap_start_is_not_said`,
//!          `a_pause_costs`.

use sonde_measure::{Line, Step};

use super::{Finding, Severity};
use crate::index::{Index, LATENCY, START, p50, step};
use crate::words::cold as words;
use crate::words::cold::Part;

const COSTS: f64 = 3.0;
const COSTS_MUCH: f64 = 10.0;
const IDLE_COSTS: f64 = 2.0;
const IDLE_NS_MIN: f64 = 10_000.0;
/// The part of the whole from which a step is most of it, in thousandths: as it is printed.
const MOST_PER_MILLE: f64 = 500.0;
/// The part of the whole from which what no step explains is told.
const REST: f64 = 0.05;

/// `cold-start`.
pub(super) fn start(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let warm = index.of(line, LATENCY);
    let (cold, trip_ns, size_bytes) = index.of(line, START).into_iter().find_map(|cold| {
        let same = warm
            .iter()
            .find(|row| row.size_bytes == cold.size_bytes && p50(row) > 0.0)?;
        Some((cold, 2.0 * p50(same), cold.size_bytes?))
    })?;
    let whole_ns = p50(cold);
    let times = whole_ns / trip_ns;
    if times < COSTS {
        return None;
    }
    let parts = parts(index, line, size_bytes);
    let largest = parts.known.iter().copied();
    let largest = largest.max_by(|one, other| one.1.total_cmp(&other.1));
    let explained: f64 = parts.known.iter().map(|(_, ns)| ns).sum();
    let rest_ns = whole_ns - explained - parts.message_ns.unwrap_or(trip_ns);
    let found = words::Start {
        line,
        size_bytes,
        whole_ns,
        trip_ns,
        largest,
        is_most: largest.is_some_and(|(_, ns)| (1e3 * ns / whole_ns).round() >= MOST_PER_MILLE),
        rest_ns: Some(rest_ns).filter(|ns| largest.is_some() && *ns >= REST * whole_ns),
    };
    let severity = if times >= COSTS_MUCH {
        Severity::Advice
    } else {
        Severity::Note
    };
    Some(Finding::said("cold-start", severity, &found).on(line))
}

/// What a start-up is made of.
struct Parts {
    /// What is paid once; parts that were not measured are left out.
    known: Vec<(Part, f64)>,
    /// The second message, as any other one.
    message_ns: Option<f64>,
}

fn parts(index: &Index<'_>, line: &Line, size: u64) -> Parts {
    let of = |which: Step| {
        index
            .of(line, step(which))
            .into_iter()
            .find(|row| row.size_bytes == Some(size))
            .map(p50)
    };
    let message_ns = of(Step::Second);
    let first = of(Step::First)
        .zip(message_ns)
        .map(|(first, second)| first - second);
    let known = [
        (Part::Spawn, of(Step::Spawn)),
        (Part::Init, of(Step::Init)),
        (Part::Neighbour, of(Step::Neighbour)),
        (Part::Circuit, of(Step::Vc)),
        (Part::Connect, of(Step::Connect)),
        (Part::Message, first),
    ];
    let known = known.into_iter();
    Parts {
        known: known
            .filter_map(|(part, ns)| Some((part, ns.filter(|ns| *ns > 0.0)?)))
            .collect(),
        message_ns,
    }
}

/// `idle-cost`.
pub(super) fn idle(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let seconds = index.of(line, step(Step::Second));
    let (idle_ns, second_ns) = index
        .of(line, step(Step::Idle))
        .into_iter()
        .find_map(|idle| {
            let second = seconds
                .iter()
                .find(|row| row.size_bytes == idle.size_bytes)?;
            Some((p50(idle), p50(second)))
        })?;
    if second_ns <= 0.0 || idle_ns < IDLE_COSTS * second_ns || idle_ns - second_ns < IDLE_NS_MIN {
        return None;
    }
    let found = words::Idle {
        line,
        idle_ns,
        second_ns,
    };
    Some(Finding::said("idle-cost", Severity::Note, &found).on(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};

    fn atm(whole_ns: u64) -> Runs {
        Runs::new()
            .network(net("atm-oc3c:vc=svc"))
            .latency("atm-oc3c:vc=svc", "tcp", 8, 50_000)
            .startup("atm-oc3c:vc=svc", "tcp", 8, None, whole_ns)
    }

    #[test]
    fn the_step_that_carries_most_is_named() {
        let run = atm(21_400_000)
            .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::Neighbour), 110_000)
            .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::Vc), 20_900_000)
            .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::Connect), 120_000)
            .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::First), 130_000)
            .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::Second), 101_000)
            .done();
        let finding = start(&Index::new(&run), &line("atm-oc3c:vc=svc", "tcp")).unwrap();
        assert_eq!(
            finding.sentence,
            "The first message of 8 B over tcp on atm-oc3c:vc=svc takes 21.40 ms, 214 times a warm round trip of 100.0 µs. \
             Most of it is the circuit's set-up: 20.90 ms, 97.7 % of it."
        );
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("21.40 ms - 100.0 µs = 21.30 ms paid once")
        );
        assert_eq!(finding.severity, Severity::Advice);
        assert!(finding.remedy.unwrap().contains("permanent circuits"));
    }

    /// 45 % of it is the largest that is known: it is not most, and what it leaves is told.
    #[test]
    fn a_part_below_one_half_is_not_most() {
        let run = |whole_ns| {
            let run = atm(whole_ns)
                .startup(
                    "atm-oc3c:vc=svc",
                    "tcp",
                    8,
                    Some(Step::Neighbour),
                    1_099_000,
                )
                .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::Connect), 200_000)
                .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::First), 130_000)
                .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::Second), 101_000)
                .done();
            start(&Index::new(&run), &line("atm-oc3c:vc=svc", "tcp")).unwrap()
        };
        let finding = run(2_457_000);
        assert!(
            finding.sentence.ends_with(
                " The largest known part is address resolution (ARP): 1.099 ms, 44.7 % of it. 41.8 % is not explained by any step."
            ),
            "{finding:?}"
        );
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("2.457 ms - 100.0 µs = 2.357 ms paid once; 1.028 ms of it not explained")
        );
        assert!(
            finding
                .remedy
                .unwrap()
                .starts_with("send a message when the program starts")
        );
        // The same parts of a shorter whole: one is most of it, and nothing is left.
        let finding = run(1_480_000);
        assert!(
            finding
                .sentence
                .ends_with(" Most of it is address resolution (ARP): 1.099 ms, 74.3 % of it."),
            "{finding:?}"
        );
        assert!(finding.remedy.unwrap().starts_with("keep the addresses"));
    }

    #[test]
    fn a_cheap_start_is_not_said() {
        let found = |whole_ns| {
            let run = atm(whole_ns).done();
            start(&Index::new(&run), &line("atm-oc3c:vc=svc", "tcp"))
        };
        assert_eq!(found(290_000), None);
        assert_eq!(found(310_000).unwrap().severity, Severity::Note);
    }

    #[test]
    fn a_pause_costs() {
        let found = |idle_ns| {
            let run = Runs::new()
                .network(net("lan"))
                .startup("lan", "udp", 8, Some(Step::Second), 20_000)
                .startup("lan", "udp", 8, Some(Step::Idle), idle_ns)
                .done();
            idle(&Index::new(&run), &line("lan", "udp"))
        };
        assert_eq!(
            found(90_000).unwrap().sentence,
            "After a pause, a message over udp on lan takes 90.00 µs, 4.5 times the one before it (idle wake-up cost)."
        );
        assert_eq!(found(39_000), None);
    }
}
