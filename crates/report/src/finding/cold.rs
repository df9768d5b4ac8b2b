//! What first use costs.
//!
//! Model:   `cold-start`: the whole cold start takes at least three times a warm round trip of the same size; advice from ten
//!          times on. The part that carries most of it is the longest of the steps neighbour, vc and connect, and of the
//!          first message less the second. `idle-cost`: the first message after a pause takes at least twice the second
//!          message of a start-up and is at least 10 µs slower.
//! Source:  NASA TM-107196 (cold and warm start apart). Thresholds: a start-up of one handshake and one exchange is two round
//!          trips, so that three is more than TCP itself needs; below 10 µs a pause costs no more than a wake-up varies.
//! Checked: `the_step_that_carries_most_is_named`, `a_cheap_start_is_not_said`, `a_pause_costs`.

use sonde_measure::Step;

use super::{Finding, Severity};
use crate::format::{bytes, share, significant, time};
use crate::index::{Index, LATENCY, Line, START, p50, step};

const COSTS: f64 = 3.0;
const COSTS_MUCH: f64 = 10.0;
const IDLE_COSTS: f64 = 2.0;
const IDLE_NS_MIN: f64 = 10_000.0;

/// `cold-start`.
pub(super) fn start(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let warm = index.of(line, LATENCY);
    let (cold, trip_ns, size) = index.of(line, START).into_iter().find_map(|cold| {
        let same = warm
            .iter()
            .find(|row| row.size_bytes == cold.size_bytes && p50(row) > 0.0)?;
        Some((cold, 2.0 * p50(same), cold.size_bytes?))
    })?;
    let times = p50(cold) / trip_ns;
    if times < COSTS {
        return None;
    }
    let most = longest(index, line, size);
    let carries = most.map_or(String::new(), |(part, ns)| {
        format!(
            " Most of it is {}: {}, {} of it.",
            part.words(),
            time(ns),
            share((ns / p50(cold)).min(1.0))
        )
    });
    let severity = if times >= COSTS_MUCH {
        Severity::Advice
    } else {
        Severity::Note
    };
    let sentence = format!(
        "The first message of {} by {} on {} takes {}, {} times a warm round trip of {}.{carries}",
        bytes(size),
        line.by(),
        line.network,
        time(p50(cold)),
        significant(times, 2),
        time(trip_ns)
    );
    let finding = Finding::new("cold-start", severity, sentence)
        .on(line)
        .since(format!(
            "{} - {} = {} paid once",
            time(p50(cold)),
            time(trip_ns),
            time(p50(cold) - trip_ns)
        ));
    Some(finding.remedy(most.map_or(Part::Message, |(part, _)| part).remedy()))
}

/// A part of a start-up.
#[derive(Debug, Clone, Copy)]
enum Part {
    Neighbour,
    Circuit,
    Connect,
    Message,
}

impl Part {
    fn words(self) -> &'static str {
        match self {
            Self::Neighbour => "the neighbour's address",
            Self::Circuit => "the circuit's set-up",
            Self::Connect => "the handshake",
            Self::Message => "what the first message costs more than the second",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Neighbour => {
                "keep the addresses: raise net.ipv4.neigh.default.base_reachable_time_ms, or set permanent entries \
                 (`ip neigh replace ... nud permanent`)"
            }
            Self::Circuit => {
                "use permanent circuits, or keep switched ones open by sending before they time out"
            }
            Self::Connect => {
                "keep connections open between messages, and open them before they are needed"
            }
            Self::Message => {
                "send a message when the program starts, before the first one that counts"
            }
        }
    }
}

/// The longest part of the start-ups of this size; parts that were not measured are left out.
fn longest(index: &Index<'_>, line: &Line, size: u64) -> Option<(Part, f64)> {
    let of = |which: Step| {
        index
            .of(line, step(which))
            .into_iter()
            .find(|row| row.size_bytes == Some(size))
            .map(p50)
    };
    let first = of(Step::First)
        .zip(of(Step::Second))
        .map(|(first, second)| first - second);
    [
        (Part::Neighbour, of(Step::Neighbour)),
        (Part::Circuit, of(Step::Vc)),
        (Part::Connect, of(Step::Connect)),
        (Part::Message, first),
    ]
    .into_iter()
    .filter_map(|(part, ns)| Some((part, ns.filter(|ns| *ns > 0.0)?)))
    .max_by(|one, other| one.1.total_cmp(&other.1))
}

/// `idle-cost`.
pub(super) fn idle(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let seconds = index.of(line, step(Step::Second));
    let (idle, second) = index
        .of(line, step(Step::Idle))
        .into_iter()
        .find_map(|idle| {
            let second = seconds
                .iter()
                .find(|row| row.size_bytes == idle.size_bytes)?;
            Some((p50(idle), p50(second)))
        })?;
    if second <= 0.0 || idle < IDLE_COSTS * second || idle - second < IDLE_NS_MIN {
        return None;
    }
    let sentence = format!(
        "After a pause a message by {} on {} takes {}, {} times the one before it.",
        line.by(),
        line.network,
        time(idle),
        significant(idle / second, 2)
    );
    let finding = Finding::new("idle-cost", Severity::Note, sentence)
        .on(line)
        .since(format!(
            "{} - {} = {}",
            time(idle),
            time(second),
            time(idle - second)
        ));
    Some(finding.remedy(
        "CPUs that sleep deeply and interfaces that gather interrupts wake slowly: `tuned-adm profile network-latency`, or \
         keep a message on its way",
    ))
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
            "The first message of 8 B by tcp on atm-oc3c:vc=svc takes 21.40 ms, 214 times a warm round trip of 100.0 µs. \
             Most of it is the circuit's set-up: 20.90 ms, 97.7 % of it."
        );
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("21.40 ms - 100.0 µs = 21.30 ms paid once")
        );
        assert_eq!(finding.severity, Severity::Advice);
        assert!(finding.remedy.unwrap().contains("permanent circuits"));
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
            "After a pause a message by udp on lan takes 90.00 µs, 4.5 times the one before it."
        );
        assert_eq!(found(39_000), None);
    }
}
