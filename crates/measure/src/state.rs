//! What a figure is worth: sound, uncertain with the reason, or not measured.
//!
//! Model:   a median is sound where six repetitions gave it, at least 100 of its samples met no disturbance (where that is known), the
//!          interval within which the undisturbed median lies is within 5 % or 5 us of it to either side (2 % of a
//!          throughput), nothing was lost between hosts and network, no stranger came, and no figure is above its bound. A
//!          share or a count has no width that could be judged.
//! Source:  the width: Hoefler & Belli, SC'15, rule 5. Deviations: an absolute floor for times.
//! Units:   of the row's quantity.
//! Checked: `each_condition_is_needed`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_stats::{Bounds, Limit, bounded_interval, bounds};

use crate::{Measurement, Number, Quantity, Verdict};

/// Samples that met no disturbance; fewer say nothing.
const UNTOUCHED_MIN: u64 = 100;
/// Of a figure, to either side.
const WIDTH: f64 = 0.05;
/// The same of a throughput.
const WIDTH_OF_THROUGHPUT: f64 = 0.02;
/// A time may be so far off whatever its share.
const WIDTH_NS: f64 = 5_000.0;

/// What a figure is worth.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is what an undisturbed machine would have given, within its interval.
    Sound,
    /// It may be; why not, `why` says.
    Uncertain,
    /// There is none; `reason` says why.
    NotMeasured,
}

/// What is known of the disturbance of a row's samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Touched {
    /// Samples that met one.
    pub touched: u64,
    /// All of them.
    pub samples: u64,
    /// Where the undisturbed median lies, in the quantity's base unit; an end that is `None` has no bound.
    pub interval: Option<(Option<u64>, Option<u64>)>,
}

/// Of samples that a disturbance met, where their undisturbed values may lie: `least` is what the model of the path allows, 0 without
/// one, of a rate `most`.
///
/// Disturbance can only have lengthened a sample where there is one message outstanding, no other traffic and no retransmission, and
/// the clock is read before the call and after it. Elsewhere nothing is known: a delayed competitor or load makes the samples of others
/// shorter, and what was held up comes faster than the line afterwards.
pub fn limits(quantity: Quantity, is_alone: bool, best: Option<u64>) -> (Limit, Limit) {
    match quantity {
        Quantity::LatencyNs if is_alone => (Limit::Value(best.unwrap_or(0)), Limit::Recorded),
        Quantity::ThroughputBps if is_alone => {
            (Limit::Recorded, best.map_or(Limit::None, Limit::Value))
        }
        _ => (Limit::None, Limit::None),
    }
}

impl Touched {
    /// Of a row's launches; `None` where of one of them it is not known.
    pub fn of(launches: &[&Measurement], limits: (Limit, Limit)) -> Option<Self> {
        let mut sum = Self {
            touched: 0,
            samples: 0,
            interval: None,
        };
        let mut ends: Vec<Bounds> = Vec::new();
        for one in launches {
            let touched = one.touched.as_ref()?;
            sum.touched = sum.touched.saturating_add(touched.count());
            sum.samples = sum.samples.saturating_add(one.series.count());
            ends.extend(bounds(&one.series, touched, (1, 2), limits));
        }
        sum.interval = bounded_interval(&ends, 0.95).map(|of| (of.low, of.high));
        Some(sum)
    }

    /// The share of the samples, 0 to 1.
    pub fn share(&self) -> f64 {
        self.touched as f64 / self.samples.max(1) as f64
    }
}

/// What is looked at.
pub struct Worth<'a> {
    /// What the figure is of.
    pub quantity: Quantity,
    /// The median.
    pub p50: Number,
    /// Its interval by the samples as they were recorded.
    pub interval: Option<(Number, Number)>,
    /// Repetitions that gave samples.
    pub launches: u64,
    /// What is known of the disturbance of its samples.
    pub touched: Option<Touched>,
    /// How true the emulation was.
    pub verdict: Option<&'a Verdict>,
    /// Repetitions in which strangers came to a data port.
    pub among_strangers: u64,
}

impl Worth<'_> {
    /// Why the figure is uncertain; `None` of a sound one.
    pub fn why(&self) -> Option<String> {
        let mut why = Vec::new();
        if self.launches < 6 {
            why.push("fewer than six repetitions".to_owned());
        }
        match (self.touched, self.verdict) {
            (Some(touched), _) if touched.samples - touched.touched < UNTOUCHED_MIN => {
                let left = touched.samples - touched.touched;
                why.push(format!(
                    "{left} of {} samples met no disturbance, 100 are needed",
                    touched.samples
                ));
            }
            (_, Some(verdict)) if verdict.deliveries == 0 => {
                why.push("no frame was delivered, so the emulation cannot be judged".into());
            }
            (None, Some(verdict)) if verdict.late * 100 > verdict.deliveries => why.push(format!(
                "{} of {} deliveries were behind schedule, and which samples met them is not known",
                verdict.late, verdict.deliveries
            )),
            _ => {}
        }
        why.extend(self.wide());
        if let Some(verdict) = self.verdict {
            if verdict.attachment_losses > 0 {
                why.push("frames were lost between a host and the network".into());
            }
            if verdict.gate_rearmed > 0 {
                why.push("a program replaced a host's queueing discipline".into());
            }
            if verdict.above_bound.is_some() {
                why.push("a figure is above what the model allows".into());
            }
        }
        if self.among_strangers > 0 {
            why.push("unauthenticated peers came to a data port".into());
        }
        (!why.is_empty()).then(|| why.join("; "))
    }

    /// Whether the interval is too wide, or has no end.
    fn wide(&self) -> Option<String> {
        let allowed = match self.quantity {
            Quantity::ThroughputBps => WIDTH_OF_THROUGHPUT * self.p50.0,
            quantity if quantity.is_time() => (WIDTH * self.p50.0).max(WIDTH_NS),
            Quantity::RatePerS | Quantity::MopPerS => WIDTH * self.p50.0,
            _ => return None,
        };
        let per_unit = self.quantity.per_unit();
        let interval = match self.touched {
            Some(touched) => {
                let (low, high) = touched.interval?;
                let number = |end: Option<u64>| end.map(|end| Number::of(end, per_unit));
                number(low).zip(number(high))
            }
            None => Some(self.interval?),
        };
        let Some((low, high)) = interval else {
            return Some("disturbed samples leave the median without a bound".into());
        };
        let half = (high.0 - self.p50.0).max(self.p50.0 - low.0);
        (half > allowed).then(|| match self.quantity {
            Quantity::ThroughputBps => "the median is known to worse than 2 %".into(),
            quantity if quantity.is_time() => {
                "the median is known to worse than 5 % and 5 µs".into()
            }
            _ => "the median is known to worse than 5 %".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fidelity, Lateness};

    fn verdict(late: u64, losses: u64) -> Verdict {
        let lateness = Lateness {
            count: 1_000,
            ..Lateness::default()
        };
        let fidelity = Fidelity {
            late,
            attachment_losses: losses,
            ..Fidelity::default()
        };
        Verdict::judge(&lateness, fidelity)
    }

    fn sound(verdict: &Verdict) -> Worth<'_> {
        Worth {
            quantity: Quantity::LatencyNs,
            p50: Number(200_000.0),
            interval: Some((Number(1.0), Number(9e9))),
            launches: 6,
            touched: Some(Touched {
                touched: 50,
                samples: 150,
                interval: Some((Some(190_000), Some(210_000))),
            }),
            verdict: Some(verdict),
            among_strangers: 0,
        }
    }

    #[test]
    fn each_condition_is_needed() {
        let late = verdict(500, 0);
        // The emulation was often late, but not for these samples.
        assert_eq!(sound(&late).why(), None);
        let touched = |touched, interval| {
            Some(Touched {
                touched,
                samples: 150,
                interval,
            })
        };
        let near = Some((Some(190_000), Some(210_000)));
        let lossy = verdict(0, 1);
        let above = verdict(0, 0).bounded(1.1);
        for (worth, reason) in [
            (
                Worth {
                    launches: 5,
                    ..sound(&late)
                },
                "fewer than six",
            ),
            (
                Worth {
                    touched: touched(51, near),
                    ..sound(&late)
                },
                "99 of 150 samples met no disturbance",
            ),
            (
                Worth {
                    touched: touched(50, Some((Some(189_999), Some(210_000)))),
                    ..sound(&late)
                },
                "worse than 5 % and 5",
            ),
            (
                Worth {
                    touched: touched(50, Some((Some(190_000), None))),
                    ..sound(&late)
                },
                "without a bound",
            ),
            (
                Worth {
                    touched: None,
                    ..sound(&late)
                },
                "500 of 1000 deliveries",
            ),
            (
                Worth {
                    touched: None,
                    ..sound(&above)
                },
                "worse than 5 %",
            ),
            (
                Worth {
                    verdict: Some(&lossy),
                    ..sound(&late)
                },
                "frames were lost",
            ),
            (
                Worth {
                    verdict: Some(&above),
                    ..sound(&late)
                },
                "above what the model allows",
            ),
            (
                Worth {
                    among_strangers: 1,
                    ..sound(&late)
                },
                "unauthenticated",
            ),
        ] {
            let why = worth.why().unwrap();
            assert!(why.contains(reason), "{why}");
        }
        // Of short times 5 us, of a throughput 2 %.
        let short = Worth {
            p50: Number(20_000.0),
            touched: touched(0, Some((Some(15_000), Some(25_000)))),
            ..sound(&late)
        };
        assert_eq!(short.why(), None);
        let rate = Worth {
            quantity: Quantity::ThroughputBps,
            touched: touched(0, Some((Some(190_000), Some(200_000)))),
            ..sound(&late)
        };
        assert!(rate.why().unwrap().contains("2 %"));
        // A share has no width.
        let share = Worth {
            quantity: Quantity::LostShare,
            touched: None,
            verdict: None,
            ..sound(&late)
        };
        assert_eq!(share.why(), None);
    }

    #[test]
    fn disturbance_lengthens_only_what_is_alone() {
        let of = |quantity, is_alone| limits(quantity, is_alone, Some(7));
        assert_eq!(
            of(Quantity::LatencyNs, true),
            (Limit::Value(7), Limit::Recorded)
        );
        assert_eq!(of(Quantity::LatencyNs, false), (Limit::None, Limit::None));
        assert_eq!(
            of(Quantity::ThroughputBps, true),
            (Limit::Recorded, Limit::Value(7))
        );
        assert_eq!(of(Quantity::OneWayNs, true), (Limit::None, Limit::None));
        assert_eq!(
            limits(Quantity::LatencyNs, true, None),
            (Limit::Value(0), Limit::Recorded)
        );
    }
}
