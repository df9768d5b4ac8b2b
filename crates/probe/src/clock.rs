//! A host's clock against the orchestrator's.
//!
//! Model:   ask for the time, again and again. Their reading was taken between our sending and our receiving, so that
//!          their clock minus ours is their reading minus the middle of ours, within half of the exchange; the shortest
//!          exchange binds it best. Asked a second time later, the change of the offset is the drift.
//! Source:  Cristian 1989, Probabilistic clock synchronization, §3. Deviations: no minimum delay is assumed known.
//! Units:   nanoseconds on CLOCK_MONOTONIC, parts of a thousand million.
//! Checked: `the_shortest_exchange_counts`, `a_clock_that_gains_drifts`; `tests/conversation.rs`.

use std::time::Duration;

use sonde_measure::ClockRecord;
use sonde_sys::clock::monotonic_ns;

use crate::{AgentLink, Answer, Error, Request, Result};

/// An agent tells the time within this, or it is not well.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The agent's clock minus ours, from the shortest of `exchanges` (at least one is made).
///
/// # Errors
/// The agent is gone, or says something else.
pub fn offset(link: &mut AgentLink, exchanges: u32) -> Result<ClockRecord> {
    let mut best = exchange(link)?;
    for _ in 1..exchanges {
        best = shorter(best, exchange(link)?);
    }
    Ok(best)
}

/// The change of the offset from `begin` to `end`, which was asked `span_ns` later, in nanoseconds a second. It is known no
/// better than the sum of the two bounds allows.
pub fn drift(begin: &ClockRecord, end: &ClockRecord, span_ns: u64) -> i64 {
    let change = i128::from(end.offset_ns) - i128::from(begin.offset_ns);
    let ppb = change * 1_000_000_000 / i128::from(span_ns.max(1));
    i64::try_from(ppb).unwrap_or(if ppb < 0 { i64::MIN } else { i64::MAX })
}

fn exchange(link: &mut AgentLink) -> Result<ClockRecord> {
    let sent_ns = monotonic_ns();
    link.send(&Request::Clock {})?;
    let answer = link.answer("its clock", TIMEOUT)?;
    let came_ns = monotonic_ns();
    match answer {
        Answer::Clock { monotonic_ns } => Ok(reading(sent_ns, monotonic_ns, came_ns)),
        other => Err(Error::OutOfTurn {
            agent: link.name().into(),
            awaited: "its clock",
            found: other.kind().into(),
        }),
    }
}

fn reading(sent_ns: u64, theirs_ns: u64, came_ns: u64) -> ClockRecord {
    let took_ns = came_ns.saturating_sub(sent_ns);
    ClockRecord {
        offset_ns: theirs_ns as i64 - (sent_ns + took_ns / 2) as i64,
        drift_ppb: None,
        bound_ns: took_ns.div_ceil(2),
    }
}

fn shorter(one: ClockRecord, other: ClockRecord) -> ClockRecord {
    if other.bound_ns < one.bound_ns {
        other
    } else {
        one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_exchange_counts() {
        // Their clock is 5,000 ahead. The second answer was late on its way back by 900.
        let best = shorter(reading(100, 5_150, 200), reading(300, 5_350, 1_300));
        assert_eq!((best.offset_ns, best.bound_ns), (5_000, 50));
        let late = reading(300, 5_350, 1_300);
        // What is wrong about it is within its bound.
        assert!((late.offset_ns - 5_000).unsigned_abs() <= late.bound_ns);
        assert_eq!(reading(10, 3, 15).offset_ns, -9);
    }

    #[test]
    fn a_clock_that_gains_drifts() {
        let at = |offset_ns| ClockRecord {
            offset_ns,
            drift_ppb: None,
            bound_ns: 10,
        };
        // 50 µs in 2 s.
        assert_eq!(drift(&at(-1_000), &at(49_000), 2_000_000_000), 25_000);
        assert_eq!(drift(&at(0), &at(-7), 1_000_000_000), -7);
        assert_eq!(drift(&at(i64::MIN), &at(i64::MAX), 0), i64::MAX);
    }
}
