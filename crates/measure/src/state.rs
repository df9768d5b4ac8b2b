//! What a figure is worth: sound, uncertain with the reasons, or not measured.
//!
//! Model:   a median is sound where six repetitions gave it, the interval within which the undisturbed median lies is within 5 % or 5 us
//!          of it to either side (2 % of a throughput), nothing was lost between hosts and network, no stranger came, and no
//!          figure is above its bound. That interval is near enough whatever met a disturbance, or at least 100 of the samples (of a stream
//!          its slices) met none and it is near enough with the others at their limits; where it was not seen which did, the emulation
//!          kept its times. The interval of a share is within 0.02 to either side; a count has no width that could be judged, and what the program
//!          alone decides meets no disturbance.
//! Source:  the width: Hoefler & Belli, SC'15, rule 5. Deviations: an absolute floor for times.
//! Units:   of the row's quantity.
//! Checked: `each_condition_is_needed`, `what_holds_whatever_met_a_disturbance_is_sound`, `disturbance_lengthens_only_what_is_alone`,
//!          `what_disturbs_is_told_from_what_varies`, `a_stream_is_judged_by_its_slices`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_stats::{
    Bounds, Limit, Series, bounded_interval, bounds, rate_bounds, untouched_quantile,
};

use crate::{Measurement, Number, Quantity, Touch, Verdict};

/// Samples that met no disturbance; fewer say nothing.
const UNTOUCHED_MIN: u64 = 100;
/// Of a figure, to either side.
const WIDTH: f64 = 0.05;
/// The same of a throughput.
const WIDTH_OF_THROUGHPUT: f64 = 0.02;
/// The same of a share, which is one of the whole.
const WIDTH_OF_SHARE: f64 = 0.02;
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

/// Why a figure is uncertain.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Fewer than six repetitions gave it: it has no interval.
    FewRepetitions,
    /// Fewer than 100 of its samples met no disturbance, and most met none.
    FewSamples,
    /// More than half of its repetitions were set aside, since a disturbance met most of their time: those that count are a choice.
    SetAside,
    /// A disturbance met so many of its samples that the undisturbed figure has no bound, or none that is near.
    Disturbed,
    /// The emulation was behind schedule, and it was not seen which samples met that.
    Late,
    /// No frame was delivered, so that the emulation cannot be judged.
    NotJudged,
    /// Its repetitions differ.
    Wide,
    /// Frames were lost between a host and the network, where the model loses none.
    FramesLost,
    /// A program replaced a host's queueing discipline, by which the network holds senders back.
    GateReplaced,
    /// It is above what the model allows: an error of the measurement.
    AboveBound,
    /// Unauthenticated peers came to a data port.
    Strangers,
}

impl Doubt {
    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::FewRepetitions => "fewer than six repetitions",
            Self::FewSamples => "fewer than 100 undisturbed samples",
            Self::SetAside => "most repetitions set aside",
            Self::Disturbed => "disturbed samples",
            Self::Late => "the emulation behind schedule",
            Self::NotJudged => "no frame to judge the emulation by",
            Self::Wide => "repetitions that differ",
            Self::FramesLost => "frames lost outside of the model",
            Self::GateReplaced => "a queueing discipline replaced",
            Self::AboveBound => "above what the model allows",
            Self::Strangers => "unauthenticated peers",
        }
    }

    /// Whether a quieter machine would have given a better figure.
    pub const fn is_disturbance(self) -> bool {
        matches!(
            self,
            Self::SetAside
                | Self::Disturbed
                | Self::Late
                | Self::NotJudged
                | Self::FramesLost
                | Self::GateReplaced
        )
    }

    /// Whether it is about how many repetitions and samples there are and how far they differ, and not about what each is worth.
    pub const fn is_of_repetitions(self) -> bool {
        matches!(self, Self::FewRepetitions | Self::FewSamples | Self::Wide)
    }
}

/// Where a median lies, in the quantity's base unit; an end that is `None` has no bound.
pub type Ends = (Option<u64>, Option<u64>);

/// What is known of the disturbance of a row's samples, of a stream its slices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Touched {
    /// Samples that met one.
    pub touched: u64,
    /// All of them.
    pub samples: u64,
    /// The median of those that met none, of a stream that of its launches; `None` of none.
    pub median: Option<u64>,
    /// Where the undisturbed median lies.
    pub interval: Option<Ends>,
}

/// What else went on while samples were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// One message was outstanding, without other traffic and without a retransmission.
    OneMessage,
    /// A stream, without other traffic.
    Stream,
    /// Anything else.
    Other,
}

/// Of samples that a disturbance met, where their undisturbed values may lie: `best` is what the model of the path allows, of a rate at
/// most, of a time at least (0 without a model).
///
/// Disturbance can only have lengthened a sample where there is one message outstanding, no other traffic and no retransmission, and
/// the clock is read before the call and after it; and it can only have lowered the rate of a stream beside which there is no other.
/// Elsewhere nothing is known: a delayed competitor or load makes the samples of others shorter.
pub fn limits(quantity: Quantity, traffic: Traffic, best: Option<u64>) -> (Limit, Limit) {
    match (quantity, traffic) {
        (Quantity::LatencyNs, Traffic::OneMessage) => {
            (Limit::Value(best.unwrap_or(0)), Limit::Recorded)
        }
        (Quantity::ThroughputBps, Traffic::OneMessage | Traffic::Stream) => {
            (Limit::Recorded, best.map_or(Limit::None, Limit::Value))
        }
        _ => (Limit::None, Limit::None),
    }
}

/// Where the median of a row's launches lies, whatever of their samples met a disturbance; of fewer than six, where their medians do.
pub fn whatever(launches: &[&Measurement], limits: (Limit, Limit)) -> Option<Ends> {
    let of = |one: &&Measurement| {
        let of = bounds(&one.series, &one.series, (1, 2), limits)?;
        Some(begun_late(one, of))
    };
    row_of(&launches.iter().filter_map(of).collect::<Vec<_>>())
}

/// Of so few launches that there is no interval, from the lowest end to the highest: what their medians may be.
fn row_of(ends: &[Bounds]) -> Option<Ends> {
    if let Some(of) = bounded_interval(ends, 0.95) {
        return Some((of.low, of.high));
    }
    // Of lows `None` is below all values.
    let low = ends.iter().map(|of| of.low).min()?;
    let highs: Option<Vec<u64>> = ends.iter().map(|of| of.high).collect();
    Some((low, highs.and_then(|highs| highs.into_iter().max())))
}

/// Where the undisturbed median of one launch lies; `None` where it is not known which of its samples met a disturbance.
pub fn ends(launch: &Measurement, limits: (Limit, Limit)) -> Option<Bounds> {
    match launch.touched.as_ref()? {
        Touch::Samples(touched) => bounds(&launch.series, touched, (1, 2), limits),
        Touch::Slices { all, touched, .. } => {
            let of = rate_bounds(launch.series.median()?, all, touched, limits)?;
            Some(begun_late(launch, of))
        }
    }
}

fn begun_late(launch: &Measurement, of: Bounds) -> Bounds {
    Bounds {
        low: of.low.map(|low| least(launch, low)),
        ..of
    }
}

/// What is left of a launch's rate where what is rated began late: what was held up came with what follows.
pub fn least(launch: &Measurement, bps: u64) -> u64 {
    let Some(Touch::Slices {
        span_ns, late_ns, ..
    }) = launch.touched
    else {
        return bps;
    };
    let (span_ns, late_ns) = (u128::from(span_ns.max(1)), u128::from(late_ns));
    (u128::from(bps) * span_ns / (span_ns + late_ns)) as u64
}

impl Touched {
    /// Of a row's launches; `None` where of one of them it is not known.
    pub fn of(launches: &[&Measurement], limits: (Limit, Limit)) -> Option<Self> {
        let (mut sum, mut count) = (0_u64, 0_u64);
        let (none, mut pooled) = (Series::new(), Vec::new());
        for one in launches {
            // What met a slice of a stream has not met its rate, which is one sample.
            let (all, touched, met) = match one.touched.as_ref()? {
                Touch::Samples(touched) => (&one.series, touched, touched),
                Touch::Slices { all, touched, .. } => (all, touched, &none),
            };
            pooled.push((&one.series, met));
            sum = sum.saturating_add(touched.count());
            count = count.saturating_add(all.count());
        }
        let ends = launches.iter().filter_map(|one| ends(one, limits));
        let ends: Vec<Bounds> = ends.collect();
        Some(Self {
            touched: sum,
            samples: count,
            median: untouched_quantile(&pooled, (1, 2)),
            interval: row_of(&ends),
        })
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
    /// Repetitions that were made again for a disturbance.
    pub set_aside: u64,
    /// What is known of the disturbance of its samples.
    pub touched: Option<Touched>,
    /// Where the undisturbed median lies, whatever met a disturbance.
    pub whatever: Option<Ends>,
    /// How true the emulation was.
    pub verdict: Option<&'a Verdict>,
    /// Repetitions in which strangers came to a data port.
    pub among_strangers: u64,
}

impl Worth<'_> {
    /// Why the figure is uncertain, in kind and in words; nothing of a sound one.
    pub fn doubts(&self) -> Vec<(Doubt, String)> {
        let mut doubts = Vec::new();
        if self.launches < 6 {
            doubts.push((
                Doubt::FewRepetitions,
                "fewer than six repetitions".to_owned(),
            ));
        }
        if self.set_aside > self.launches {
            let all = self.set_aside + self.launches;
            doubts.push((
                Doubt::SetAside,
                format!(
                    "{} of {all} repetitions were set aside for a disturbance",
                    self.set_aside
                ),
            ));
        }
        let holds = self.whatever.and_then(|ends| self.is_near(ends)) == Some(true);
        if !holds && !self.quantity.is_of_program() {
            doubts.extend(self.disturbed());
            if self.varies() {
                doubts.push((
                    Doubt::Wide,
                    format!("its repetitions differ by more than {}", self.width()),
                ));
            }
        }
        if let Some(verdict) = self.verdict {
            if verdict.attachment_losses > 0 {
                let why = "frames were lost between a host and the network";
                doubts.push((Doubt::FramesLost, why.into()));
            }
            if verdict.gate_rearmed > 0 {
                let why = "a program replaced a host's queueing discipline";
                doubts.push((Doubt::GateReplaced, why.into()));
            }
            if verdict.above_bound.is_some() {
                let why = "a figure is above what the model allows";
                doubts.push((Doubt::AboveBound, why.into()));
            }
        }
        if self.among_strangers > 0 {
            let why = "unauthenticated peers came to a data port";
            doubts.push((Doubt::Strangers, why.into()));
        }
        doubts
    }

    /// What a disturbance leaves of it, where it may be anything.
    fn disturbed(&self) -> Option<(Doubt, String)> {
        if self.verdict.is_some_and(|verdict| verdict.deliveries == 0) {
            let why = "no frame was delivered, so the emulation cannot be judged";
            return Some((Doubt::NotJudged, why.into()));
        }
        let Some(touched) = self.touched else {
            let late = self
                .verdict
                .filter(|verdict| verdict.late * 100 > verdict.deliveries)?;
            return Some((
                Doubt::Late,
                format!(
                    "{} of {} deliveries were behind schedule, and which samples met them is not known",
                    late.late, late.deliveries
                ),
            ));
        };
        let left = touched.samples - touched.touched;
        if left < UNTOUCHED_MIN {
            let doubt = match left < touched.touched {
                true => Doubt::Disturbed,
                false => Doubt::FewSamples,
            };
            let why = format!(
                "{left} of {} samples met no disturbance, 100 are needed",
                touched.samples
            );
            return Some((doubt, why));
        }
        let why = match touched.interval? {
            (Some(_), Some(_)) if self.is_near(touched.interval?)? || self.varies() => return None,
            (Some(_), Some(_)) => format!(
                "disturbed samples leave the median known to worse than {}",
                self.width()
            ),
            _ => "disturbed samples leave the median without a bound".into(),
        };
        Some((Doubt::Disturbed, why))
    }

    /// Whether the interval of the samples as they were recorded is too wide.
    fn varies(&self) -> bool {
        let (Some((low, high)), Some(allowed)) = (self.interval, self.allowed()) else {
            return false;
        };
        (high.0 - self.p50.0).max(self.p50.0 - low.0) > allowed
    }

    /// Whether an interval has two ends that are near enough; `None` where the quantity has no width.
    fn is_near(&self, (low, high): Ends) -> Option<bool> {
        let allowed = self.allowed()?;
        let per_unit = self.quantity.per_unit();
        let number = |end: Option<u64>| end.map(|end| Number::of(end, per_unit).0);
        let half = number(low)
            .zip(number(high))
            .map(|(low, high)| (high - self.p50.0).max(self.p50.0 - low));
        Some(half.is_some_and(|half| half <= allowed))
    }

    /// How far an end of the interval may be from the median; `None` of what has no width.
    fn allowed(&self) -> Option<f64> {
        match self.quantity {
            Quantity::ThroughputBps => Some(WIDTH_OF_THROUGHPUT * self.p50.0),
            quantity if quantity.is_time() => Some((WIDTH * self.p50.0).max(WIDTH_NS)),
            Quantity::RatePerS | Quantity::MopPerS => Some(WIDTH * self.p50.0),
            quantity if quantity.is_share() => Some(WIDTH_OF_SHARE),
            _ => None,
        }
    }

    /// The same in words.
    fn width(&self) -> &'static str {
        match self.quantity {
            Quantity::ThroughputBps => "2 %",
            quantity if quantity.is_time() => "5 % and 5 µs",
            quantity if quantity.is_share() => "0.02",
            _ => "5 %",
        }
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
            interval: Some((Number(195_000.0), Number(205_000.0))),
            launches: 6,
            set_aside: 5,
            touched: Some(Touched {
                touched: 50,
                samples: 150,
                median: None,
                interval: Some((Some(190_000), Some(210_000))),
            }),
            whatever: Some((Some(0), Some(210_000))),
            verdict: Some(verdict),
            among_strangers: 0,
        }
    }

    /// The kinds, and the words of all.
    fn told(worth: &Worth<'_>) -> (Vec<Doubt>, String) {
        let (kinds, words): (Vec<_>, Vec<_>) = worth.doubts().into_iter().unzip();
        (kinds, words.join("; "))
    }

    #[test]
    fn each_condition_is_needed() {
        let late = verdict(500, 0);
        // The emulation was often late, but not for these samples.
        assert_eq!(sound(&late).doubts(), []);
        let touched = |touched, interval| {
            Some(Touched {
                touched,
                samples: 150,
                median: None,
                interval,
            })
        };
        let near = Some((Some(190_000), Some(210_000)));
        let lossy = verdict(0, 1);
        let above = verdict(0, 0).bounded(1.1);
        let nothing = Verdict::judge(&Lateness::default(), Fidelity::default());
        for (worth, doubt, reason) in [
            (
                Worth {
                    launches: 5,
                    ..sound(&late)
                },
                Doubt::FewRepetitions,
                "fewer than six",
            ),
            (
                Worth {
                    set_aside: 7,
                    ..sound(&late)
                },
                Doubt::SetAside,
                "7 of 13 repetitions",
            ),
            (
                Worth {
                    touched: touched(51, near),
                    ..sound(&late)
                },
                Doubt::FewSamples,
                "99 of 150 samples met no disturbance",
            ),
            (
                Worth {
                    touched: touched(76, near),
                    ..sound(&late)
                },
                Doubt::Disturbed,
                "74 of 150 samples met no disturbance",
            ),
            (
                Worth {
                    touched: touched(50, Some((Some(189_999), Some(210_000)))),
                    ..sound(&late)
                },
                Doubt::Disturbed,
                "worse than 5 % and 5",
            ),
            (
                Worth {
                    touched: touched(50, Some((Some(190_000), None))),
                    ..sound(&late)
                },
                Doubt::Disturbed,
                "without a bound",
            ),
            (
                Worth {
                    touched: None,
                    ..sound(&late)
                },
                Doubt::Late,
                "500 of 1000 deliveries",
            ),
            (
                Worth {
                    verdict: Some(&nothing),
                    ..sound(&late)
                },
                Doubt::NotJudged,
                "no frame was delivered",
            ),
            (
                Worth {
                    interval: Some((Number(1.0), Number(9e9))),
                    ..sound(&late)
                },
                Doubt::Wide,
                "differ by more than 5 %",
            ),
            (
                Worth {
                    verdict: Some(&lossy),
                    ..sound(&late)
                },
                Doubt::FramesLost,
                "frames were lost",
            ),
            (
                Worth {
                    verdict: Some(&above),
                    ..sound(&late)
                },
                Doubt::AboveBound,
                "above what the model allows",
            ),
            (
                Worth {
                    among_strangers: 1,
                    ..sound(&late)
                },
                Doubt::Strangers,
                "unauthenticated",
            ),
        ] {
            let (kinds, why) = told(&worth);
            assert_eq!(kinds, [doubt], "{why}");
            assert!(why.contains(reason), "{why}");
        }
        // Of short times 5 us, of a throughput 2 %.
        let short = Worth {
            p50: Number(20_000.0),
            interval: Some((Number(15_000.0), Number(25_000.0))),
            touched: touched(0, Some((Some(15_000), Some(25_000)))),
            ..sound(&late)
        };
        assert_eq!(short.doubts(), []);
        let rate = Worth {
            quantity: Quantity::ThroughputBps,
            interval: None,
            touched: touched(0, Some((Some(190_000), Some(200_000)))),
            ..sound(&late)
        };
        assert!(told(&rate).1.contains("2 %"));
        let share = |low, high| Worth {
            quantity: Quantity::CommunicatingShare,
            p50: Number(0.9),
            interval: Some((Number(low), Number(high))),
            touched: None,
            whatever: None,
            verdict: None,
            ..sound(&late)
        };
        assert_eq!(share(0.89, 0.91).doubts(), []);
        assert_eq!(told(&share(0.87, 0.91)).0, [Doubt::Wide]);
        // What the program alone decides meets no disturbance.
        let messages = Worth {
            quantity: Quantity::Messages,
            touched: None,
            whatever: None,
            ..sound(&late)
        };
        assert_eq!(messages.doubts(), []);
    }

    #[test]
    fn what_holds_whatever_met_a_disturbance_is_sound() {
        // A stream at its ceiling; a message that takes hardly longer than the line.
        let late = verdict(900, 0);
        for (quantity, whatever) in [
            (Quantity::ThroughputBps, (Some(197_000), Some(202_000))),
            (Quantity::LatencyNs, (Some(191_000), Some(201_000))),
        ] {
            let unseen = Worth {
                quantity,
                touched: None,
                interval: Some((Number(197_000.0), Number(201_000.0))),
                whatever: Some(whatever),
                ..sound(&late)
            };
            assert_eq!(unseen.doubts(), []);
            let all = Worth {
                touched: Some(Touched {
                    touched: 150,
                    samples: 150,
                    median: None,
                    interval: None,
                }),
                ..unseen
            };
            assert_eq!(all.doubts(), []);
        }
        let far = Worth {
            touched: None,
            whatever: Some((Some(180_000), Some(201_000))),
            ..sound(&late)
        };
        assert_eq!(told(&far).0, [Doubt::Late]);
    }

    #[test]
    fn what_disturbs_is_told_from_what_varies() {
        // The bounds are wide, since the repetitions are: a quieter machine is not known to help.
        let quiet = verdict(0, 0);
        let varied = Worth {
            interval: Some((Number(150_000.0), Number(250_000.0))),
            touched: Some(Touched {
                touched: 1,
                samples: 600,
                median: None,
                interval: Some((Some(149_000), Some(250_000))),
            }),
            ..sound(&quiet)
        };
        assert_eq!(told(&varied).0, [Doubt::Wide]);
        assert!(!Doubt::Wide.is_disturbance() && Doubt::Disturbed.is_disturbance());
    }

    fn measurement(series: &[u64], touched: Option<Touch>) -> Measurement {
        Measurement {
            quantity: Quantity::ThroughputBps,
            phase: crate::Phase::Warm,
            step: None,
            series: series.iter().copied().collect(),
            touched,
            reason: None,
        }
    }

    #[test]
    fn a_stream_is_judged_by_its_slices() {
        let begun = |all: &[u64], touched: &[u64], late_ns| {
            let of = |rates: &[u64]| rates.iter().copied().collect();
            let touch = Touch::Slices {
                all: of(all),
                touched: of(touched),
                span_ns: 40,
                late_ns,
            };
            measurement(&[90], Some(touch))
        };
        let slices = |all: &[u64], touched: &[u64]| begun(all, touched, 0);
        let limits = limits(Quantity::ThroughputBps, Traffic::Stream, Some(100));
        let six = vec![slices(&[100, 100, 100, 60], &[60]); 6];
        let found = Touched::of(&six.iter().collect::<Vec<_>>(), limits).unwrap();
        assert_eq!((found.touched, found.samples), (6, 24));
        assert_eq!(found.median, Some(90), "its rate is one sample");
        assert_eq!(found.interval, Some((Some(90), Some(100))));
        let whatever = whatever(&six.iter().collect::<Vec<_>>(), limits);
        assert_eq!(whatever, Some((Some(90), Some(100))));
        let unseen = measurement(&[90], None);
        assert_eq!(Touched::of(&[&six[0], &unseen], limits), None);
        // 90 in 40 ns, or in 45 if its begin was 5 ns late.
        let late = begun(&[60, 100, 100, 100], &[60], 5);
        assert_eq!(ends(&late, limits).map(|of| of.low), Some(Some(80)));
        assert_eq!((least(&late, 90), least(&unseen, 90)), (80, 90));
    }

    #[test]
    fn the_median_of_those_that_met_none_is_pooled() {
        let of = |rates: &[u64]| rates.iter().copied().collect();
        let latency = |series: &[u64], touched: &[u64]| {
            measurement(series, Some(Touch::Samples(of(touched))))
        };
        let two = [latency(&[1, 2, 90], &[90]), latency(&[3, 4, 95], &[95])];
        let limits = limits(Quantity::LatencyNs, Traffic::OneMessage, None);
        let found = Touched::of(&two.iter().collect::<Vec<_>>(), limits).unwrap();
        assert_eq!(found.median, Some(2));
        let all = latency(&[1], &[1]);
        assert_eq!(Touched::of(&[&all], limits).unwrap().median, None);
    }

    #[test]
    fn disturbance_lengthens_only_what_is_alone() {
        let of = |quantity, traffic| limits(quantity, traffic, Some(7));
        let none = (Limit::None, Limit::None);
        let (latency, rate) = (Quantity::LatencyNs, Quantity::ThroughputBps);
        let (one, stream, other) = (Traffic::OneMessage, Traffic::Stream, Traffic::Other);
        assert_eq!(of(latency, one), (Limit::Value(7), Limit::Recorded));
        assert_eq!(of(latency, stream), none);
        assert_eq!(of(latency, other), none);
        assert_eq!(of(rate, one), (Limit::Recorded, Limit::Value(7)));
        assert_eq!(of(rate, stream), (Limit::Recorded, Limit::Value(7)));
        assert_eq!(of(rate, other), none);
        assert_eq!(of(Quantity::OneWayNs, one), none);
        let unknown = |quantity, traffic| limits(quantity, traffic, None);
        assert_eq!(unknown(latency, one), (Limit::Value(0), Limit::Recorded));
        assert_eq!(unknown(rate, stream), (Limit::Recorded, Limit::None));
    }
}
