//! The clock of single samples: what it is, and that one measurement has one.
//!
//! Model:   the time stamp counter where it can be trusted ([`sonde_sys::tsc`]) and a reading of it costs less than one of
//!          CLOCK_MONOTONIC; else that. Its rate is counted once in a process, before anything is connected, and again after
//!          each size: where the two differ by more than what is allowed, all samples of the size are thrown away and
//!          taken again by CLOCK_MONOTONIC. Both readings of a sample are of the same clock by construction: a sample is a
//!          difference of what one [`Timer`] said.
//! Units:   `now` in the clock's own unit, all else in nanoseconds.
//! Checked: `one_clock_a_span`, `an_override_is_kept`; `latency_is_timed_by_the_clock_asked_for` of `tests/conversation.rs`.

use std::sync::OnceLock;

use sonde_measure::{Clock, SampleClock, Setting, SettingValue, Settings};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::tsc::{self, Counter, Stray};

use crate::{Error, Result};

/// A clock that times samples.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Timer {
    Tsc(Counter),
    Monotonic,
}

/// The counter of this process, or why there is none.
fn counter() -> &'static std::result::Result<Counter, String> {
    static COUNTER: OnceLock<std::result::Result<Counter, String>> = OnceLock::new();
    COUNTER.get_or_init(Counter::begin)
}

/// Whether the counter is worth it.
fn is_cheaper(counter: &Counter) -> std::result::Result<(), String> {
    static COSTS: OnceLock<[u64; 2]> = OnceLock::new();
    let [ours, theirs] = *COSTS.get_or_init(|| {
        let monotonic = sonde_sys::host::clock_worth();
        [counter.worth().read_ns, monotonic.read_ns]
    });
    if ours < theirs {
        return Ok(());
    }
    Err(format!(
        "a reading of the time stamp counter costs {ours} ns, as one of CLOCK_MONOTONIC ({theirs} ns) or more"
    ))
}

impl Timer {
    /// The clock that was asked for, or the cheaper of those that can be trusted. The first call in a process takes some 11 ms.
    ///
    /// # Errors
    /// The counter was asked for, and cannot be trusted here.
    pub(crate) fn choose(asked: Option<Clock>) -> Result<Self> {
        match (asked, counter()) {
            (Some(Clock::Monotonic), _) => Ok(Self::Monotonic),
            (Some(Clock::Tsc), Ok(counter)) => Ok(Self::Tsc(*counter)),
            (Some(Clock::Tsc), Err(why)) => Err(Error::Unmeasurable {
                what: format!("the time stamp counter is not a clock here: {why}"),
                remedy: "leave `clock=tsc` out; `sonde doctor` shows what would make it one",
            }),
            (None, Ok(counter)) if is_cheaper(counter).is_ok() => Ok(Self::Tsc(*counter)),
            (None, _) => Ok(Self::Monotonic),
        }
    }

    /// Now, in its own unit.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::Tsc(_) => tsc::ticks(),
            Self::Monotonic => monotonic_ns(),
        }
    }

    /// The time between two readings.
    #[inline]
    pub(crate) fn ns(&self, begin: u64, end: u64) -> u64 {
        match self {
            Self::Tsc(counter) => counter.ns(end.saturating_sub(begin)),
            Self::Monotonic => end.saturating_sub(begin),
        }
    }

    /// The reading that is so much later.
    pub(crate) fn later(&self, now: u64, ns: u64) -> u64 {
        match self {
            Self::Tsc(counter) => now + counter.ticks(ns),
            Self::Monotonic => now + ns,
        }
    }

    /// What is wrong with what it has timed so far; `None` where nothing is.
    pub(crate) fn strayed(&self) -> Option<Stray> {
        match self {
            Self::Tsc(counter) => Some(counter.end()).filter(|stray| stray.is_far()),
            Self::Monotonic => None,
        }
    }

    /// What it is, for the record; with the reason where the counter would have been cheaper.
    pub(crate) fn told(&self, asked: Option<Clock>) -> SampleClock {
        let why = || match counter() {
            _ if asked == Some(Clock::Monotonic) => "asked for".into(),
            Err(why) => format!("the time stamp counter is not a clock here: {why}"),
            Ok(counter) => is_cheaper(counter).err().unwrap_or_default(),
        };
        match self {
            Self::Tsc(counter) => SampleClock::Tsc {
                khz: counter.hz() / 1_000,
            },
            Self::Monotonic => SampleClock::Monotonic { why: why().into() },
        }
    }
}

/// The clock of single samples as facts of this host, and what the counter is worth.
pub(crate) fn facts(all: &mut Settings) {
    let Ok(timer) = Timer::choose(None) else {
        return;
    };
    all.insert(Setting::ClockSamples, SettingValue::Clock(timer.told(None)));
    if let Ok(counter) = counter() {
        let worth = counter.worth();
        let figures = [
            (Setting::ClockTscRead, worth.read_ns),
            (Setting::ClockTscResolution, worth.resolution_ns),
        ];
        for (setting, ns) in figures {
            all.insert(setting, SettingValue::Number(ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_clock_a_span() {
        for asked in [None, Some(Clock::Monotonic), Some(Clock::Tsc)] {
            let timer = match Timer::choose(asked) {
                Ok(timer) => timer,
                Err(why) => {
                    println!("skipped: {why}");
                    continue;
                }
            };
            let outer = monotonic_ns();
            let begin = timer.now();
            std::thread::sleep(std::time::Duration::from_millis(5));
            let took = timer.ns(begin, timer.now());
            let most = monotonic_ns() - outer;
            // A time daemon may slew one of them by 500 ppm.
            assert!(
                took >= 4_990_000 && took <= most + most / 500,
                "{took} {most}"
            );
            let due = timer.later(begin, 1_000_000);
            assert!(timer.ns(begin, due).abs_diff(1_000_000) <= 1);
            // A span that would be negative is none.
            assert_eq!(timer.ns(due, begin), 0);
            assert!(timer.strayed().is_none());
        }
    }

    #[test]
    fn an_override_is_kept() {
        let monotonic = Timer::choose(Some(Clock::Monotonic)).unwrap();
        assert_eq!(
            monotonic.told(Some(Clock::Monotonic)),
            SampleClock::Monotonic {
                why: "asked for".into()
            }
        );
        match (Timer::choose(Some(Clock::Tsc)), tsc::obstacle()) {
            (Ok(timer), None) => assert!(matches!(timer.told(None), SampleClock::Tsc { .. })),
            (Err(error), Some(why)) => {
                assert!(error.to_string().contains(&why) && error.remedy().contains("doctor"));
            }
            (found, why) => panic!("{found:?} {why:?}"),
        }
        let mut all = Settings::default();
        facts(&mut all);
        let clock = all.get(Setting::ClockSamples).unwrap().to_string();
        assert!(!clock.contains("()"), "{clock}");
        let count = if tsc::obstacle().is_none() { 3 } else { 1 };
        assert_eq!(all.iter().count(), count);
    }
}
