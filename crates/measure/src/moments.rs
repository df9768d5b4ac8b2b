//! When samples were taken, and which of them met a disturbance.
//!
//! Model:   who measures logs of each sample how long it took and the pause before it. A sample is touched where its time, from its
//!          begin to its end, meets a span in which the emulation, a host or a stranger disturbed its path. Both are of one
//!          clock: this is for hosts that share one, as those of a lab do.
//! Units:   nanoseconds of CLOCK_MONOTONIC.
//! Checked: `samples_that_meet_a_span_are_touched`, `a_begin_is_as_late_as_what_held_it_up`, `time_that_was_met_counts_once`,
//!          `spans_are_joined`.

use serde::{Deserialize, Serialize};
use sonde_stats::Series;

use crate::Touch;

/// From the end of what held a program up to its next reading of the clock: a wake-up, and waits too short to be seen.
const UNSEEN_NS: u64 = 200_000;

/// The times of all samples of a series, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    /// Where the first pause begins.
    pub origin_ns: u64,
    /// Of each sample the pause before it, the time that it took, and its value as in the series.
    pub samples: Vec<[u64; 3]>,
    /// When either program waited for a CPU.
    pub away: Vec<Away>,
}

/// A time in which something was away or late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Away {
    /// Its begin.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// The longest that one event in it was held up.
    pub most_ns: u64,
}

impl Moments {
    /// With when the other program waited.
    pub fn beside(mut self, other: &[Away]) -> Self {
        self.away.extend(other);
        self
    }

    /// The samples that met a time in which either program waited or the emulation was `behind`.
    pub fn touched(&self, behind: &[Away]) -> Series {
        self.met(behind, false)
    }

    /// The same of the slices of a stream. One that lost segments is slower after a disturbance: where it `resent`, all slices that
    /// follow the first touched one are touched.
    pub fn slices(&self, behind: &[Away], resent: bool) -> Touch {
        Touch::Slices {
            span_ns: self.span_ns(),
            late_ns: self.late_ns(behind),
            all: self
                .samples
                .iter()
                .map(|[.., value]| *value)
                .collect::<Series>()
                .closed(),
            touched: self.met(behind, resent),
        }
    }

    /// How long the first arrival may have been held up: by the emulation, then by its receiver's wait for a CPU.
    fn late_ns(&self, behind: &[Away]) -> u64 {
        let most = |spans: &[Away], from_ns| {
            let held = joined(spans.to_vec()).into_iter();
            held.filter(|span| span.from_ns <= self.origin_ns)
                .filter(|span| span.to_ns.saturating_add(UNSEEN_NS) >= from_ns)
                .map(|span| span.most_ns.min(self.origin_ns - span.from_ns))
                .max()
                .unwrap_or(0)
        };
        let by_host = most(&self.away, self.origin_ns);
        by_host.saturating_add(most(behind, self.origin_ns - by_host))
    }

    /// For how much of the time of its samples, and of the pauses between them, either program waited or the emulation was `behind`; and
    /// all that time.
    pub fn met_ns(&self, behind: &[Away]) -> [u64; 2] {
        let end_ns = self.origin_ns.saturating_add(self.span_ns());
        let met = joined([&self.away, behind].concat()).into_iter();
        let within = |span: Away| {
            let from_ns = span.from_ns.max(self.origin_ns);
            span.to_ns.min(end_ns).saturating_sub(from_ns)
        };
        [met.map(within).sum(), self.span_ns()]
    }

    fn span_ns(&self) -> u64 {
        let each_ns = self
            .samples
            .iter()
            .map(|[pause, took, _]| pause.saturating_add(*took));
        each_ns.fold(0, u64::saturating_add)
    }

    fn met(&self, behind: &[Away], and_all_after: bool) -> Series {
        let spans = joined([&self.away, behind].concat());
        let mut rest = &spans[..];
        let mut now_ns = self.origin_ns;
        let mut touched = Series::new();
        for [pause_ns, took_ns, value] in &self.samples {
            let begin_ns = now_ns.saturating_add(*pause_ns);
            now_ns = begin_ns.saturating_add(*took_ns);
            while let [first, others @ ..] = rest
                && first.to_ns < begin_ns
            {
                rest = others;
            }
            let is_met = rest.first().is_some_and(|span| span.from_ns <= now_ns);
            if is_met || and_all_after && !touched.is_empty() {
                touched.record(*value);
            }
        }
        touched.closed()
    }
}

/// The same spans in the order of time, none of which meets another.
fn joined(mut spans: Vec<Away>) -> Vec<Away> {
    spans.sort_unstable();
    let mut all: Vec<Away> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if span.from_ns <= last.to_ns => {
                last.to_ns = last.to_ns.max(span.to_ns);
                last.most_ns = last.most_ns.max(span.most_ns);
            }
            Some(_) | None => all.push(span),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away(from_ns: u64, to_ns: u64) -> Away {
        Away {
            from_ns,
            to_ns,
            most_ns: to_ns - from_ns,
        }
    }

    #[test]
    fn samples_that_meet_a_span_are_touched() {
        // At 105 to 115, 120 to 130, 130 to 230 and 235 to 245.
        let moments = Moments {
            origin_ns: 100,
            samples: vec![[5, 10, 1], [5, 10, 2], [0, 100, 3], [5, 10, 4]],
            away: Vec::new(),
        };
        let of = |spans: &[Away]| moments.touched(spans).first().to_vec();
        assert_eq!(of(&[]), [0; 0]);
        // Before all, in a pause, after all.
        assert_eq!(of(&[away(0, 104), away(116, 119), away(246, 300)]), [0; 0]);
        // Both ends count; one sample meets several, one span several samples.
        assert_eq!(of(&[away(0, 105)]), [1]);
        assert_eq!(of(&[away(130, 130)]), [2, 3]);
        assert_eq!(
            of(&[away(150, 160), away(170, 180), away(245, 250)]),
            [3, 4]
        );
        assert_eq!(of(&[away(0, 1_000)]), [1, 2, 3, 4]);
        // In any order, and of both kinds.
        let both = Moments {
            away: vec![away(240, 241), away(110, 111)],
            ..moments.clone()
        };
        assert_eq!(both.touched(&[away(125, 126)]).first(), [1, 2, 4]);
        // Slices of a stream, one after the other.
        let of = |resent| match moments.slices(&[away(125, 126)], resent) {
            Touch::Slices { all, touched, .. } => (all.first().to_vec(), touched.first().to_vec()),
            other @ Touch::Samples(_) => panic!("{other:?}"),
        };
        assert_eq!(of(false), (vec![1, 2, 3, 4], vec![2]));
        assert_eq!(of(true).1, [2, 3, 4]);
    }

    #[test]
    fn a_begin_is_as_late_as_what_held_it_up() {
        let moments = Moments {
            origin_ns: 1_000_000,
            samples: vec![[0, 50, 1], [0, 50, 2]],
            away: vec![away(10, 20)],
        };
        let of = |moments: &Moments, behind: &[Away]| match moments.slices(behind, false) {
            Touch::Slices {
                span_ns, late_ns, ..
            } => (span_ns, late_ns),
            other @ Touch::Samples(_) => panic!("{other:?}"),
        };
        assert_eq!(of(&moments, &[]), (100, 0));
        // Over long before it, and after it.
        let apart = [away(500_000, 799_999), away(1_000_001, 1_000_010)];
        assert_eq!(of(&moments, &apart), (100, 0));
        assert_eq!(of(&moments, &[away(999_960, 1_000_010)]), (100, 40));
        // Over when the clock is read.
        assert_eq!(of(&moments, &[away(700_000, 800_000)]), (100, 100_000));
        // No longer than anything in it was.
        let short = Away {
            most_ns: 7,
            ..away(999_960, 1_000_010)
        };
        assert_eq!(of(&moments, &[short]), (100, 7));
        // The emulation held it up first, then the host.
        let behind = [away(500_000, 600_000)];
        let waited = moments.clone().beside(&[away(700_000, 1_000_020)]);
        assert_eq!(of(&waited, &behind), (100, 400_000));
        assert_eq!(of(&moments, &behind), (100, 0));
    }

    #[test]
    fn time_that_was_met_counts_once() {
        // From 100 to 245.
        let moments = Moments {
            origin_ns: 100,
            samples: vec![[5, 10, 1], [5, 10, 2], [0, 100, 3], [5, 10, 4]],
            away: vec![away(110, 120), away(240, 1_000)],
        };
        assert_eq!(moments.met_ns(&[]), [15, 145]);
        // Before all and into it, in one that counts already, after all.
        let behind = [away(0, 103), away(112, 125), away(300, 400)];
        assert_eq!(moments.met_ns(&behind), [3 + 15 + 5, 145]);
        assert_eq!(moments.met_ns(&[away(0, 99)]), [15, 145]);
        assert_eq!(Moments::default().met_ns(&behind), [0, 0]);
    }

    #[test]
    fn spans_are_joined() {
        assert_eq!(joined(Vec::new()), []);
        let spans = vec![
            away(50, 60),
            away(10, 20),
            away(15, 30),
            away(30, 40),
            away(41, 45),
        ];
        let wanted = Away {
            most_ns: 15,
            ..away(10, 40)
        };
        assert_eq!(joined(spans), [wanted, away(41, 45), away(50, 60)]);
        // One within another.
        assert_eq!(
            joined(vec![away(0, 100), away(5, 6), away(99, 101)]),
            [Away {
                most_ns: 100,
                ..away(0, 101)
            }]
        );
    }
}
