//! The CPU's time stamp counter as a clock of short spans, where it is one.
//!
//! Model:   it is used where the CPU says that it counts at one rate in every state (CPUID 0x80000007, EDX bit 8), the
//!          kernel keeps its own time by it (which it stops doing when the counters of two CPUs part), and no one has
//!          forbidden it to this thread. A reading waits for all that is before it and is waited for by all that is after
//!          it: `lfence; rdtsc; lfence`. Its rate is counted against CLOCK_MONOTONIC_RAW, which no time daemon slews, and
//!          counted again over the whole of what was measured: where the two differ, nothing that it timed is to be used.
//! Source:  Intel SDM vol. 3B §17.17 (invariant TSC) and vol. 2B RDTSC; AMD APM vol. 2 §13.2.4 and LFENCE (Linux makes it
//!          serializing on AMD, arch/x86/kernel/cpu/amd.c). Deviations: no RDTSCP, which does not keep later loads back.
//! Units:   ticks; nanoseconds; rates in parts of a million (ppm). A span is rounded down.
//! Checked: `the_counter_goes_with_the_kernels_clock`, `a_counter_that_strays_is_told`, `obstacles_are_in_words`.

use rustix::time::{ClockId, clock_gettime};

use crate::host::{ClockWorth, worth_of};

/// Two countings of the rate may differ by this, beside what their own bounds allow.
pub const STRAY_PPM: u64 = 100;
/// A rate is counted over this at least: the bounds of the two readings, some 50 ns each, are then 10 ppm.
const BASE_NS: u64 = 10_000_000;
/// Brackets of which the tightest is kept.
const BRACKETS: u32 = 32;

/// A reading of the counter.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has both instructions. Whoever reads has a `Counter`, which is not to be had where the
    // counter is forbidden; without one it is a number like any other.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = core::arch::x86_64::_rdtsc();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

fn raw_ns() -> u64 {
    let time = clock_gettime(ClockId::MonotonicRaw);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Why the counter is not a clock here; `None` where it is one.
pub fn obstacle() -> Option<String> {
    let source = crate::host::clock_source();
    judged(is_invariant(), is_forbidden(), source.as_deref())
}

fn judged(invariant: Option<bool>, forbidden: bool, source: Option<&str>) -> Option<String> {
    match (invariant, source) {
        (None, _) => Some("only x86-64 has it".into()),
        (Some(false), _) => {
            Some("the CPU does not say that it is invariant (CPUID 0x80000007, EDX bit 8)".into())
        }
        _ if forbidden => Some("it is forbidden to this program (PR_SET_TSC)".into()),
        (_, Some("tsc")) => None,
        (_, other) => Some(format!(
            "the kernel keeps its time by {}, not by tsc",
            other.unwrap_or("a clock that it does not report")
        )),
    }
}

/// What the CPU says of its counter; `None` where there is none.
fn is_invariant() -> Option<bool> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 CPU has CPUID; the leaf is asked for only where the CPU says that it has it.
        #[allow(unused_unsafe)]
        let invariant = unsafe {
            let most = core::arch::x86_64::__cpuid(0x8000_0000).eax;
            most >= 0x8000_0007 && core::arch::x86_64::__cpuid(0x8000_0007).edx & 1 << 8 != 0
        };
        Some(invariant)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

fn is_forbidden() -> bool {
    let mut mode: libc::c_int = libc::PR_TSC_ENABLE;
    // SAFETY: the kernel writes one int to the live local; where it knows no such option it writes nothing.
    unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    mode != libc::PR_TSC_ENABLE
}

/// The counter and the kernel's clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    ticks: u64,
    raw_ns: u64,
    /// Half of the ticks around the kernel's clock.
    bound_ticks: u64,
}

fn reading() -> Reading {
    let bracket = |_| {
        let before = ticks();
        let raw_ns = raw_ns();
        let half = (ticks() - before).div_ceil(2);
        Reading {
            ticks: before + half,
            raw_ns,
            bound_ticks: half,
        }
    };
    let first = bracket(0);
    (1..BRACKETS)
        .map(bracket)
        .fold(first, |best, next| match next.bound_ticks {
            bound if bound < best.bound_ticks => next,
            _ => best,
        })
}

/// Ticks in 2^32 nanoseconds, and by how many parts of a million that may be wrong.
fn rate(from: Reading, to: Reading) -> Option<(u64, u64)> {
    let (ticks, ns) = (
        to.ticks.checked_sub(from.ticks)?,
        to.raw_ns.checked_sub(from.raw_ns)?,
    );
    let rate = u64::try_from((u128::from(ticks) << 32) / u128::from(ns.max(1))).ok()?;
    let bound = u128::from(from.bound_ticks + to.bound_ticks) * 1_000_000;
    let bound_ppm = bound.div_ceil(u128::from(ticks.max(1)));
    (rate > 0).then_some((rate, u64::try_from(bound_ppm).ok()?))
}

/// What the end of a measurement says of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// The rate over the whole differs from the one at its begin by this.
    pub ppm: u64,
    /// What is allowed: [`STRAY_PPM`], and what the two countings themselves leave open.
    pub allowed_ppm: u64,
}

impl Stray {
    /// Whether what was timed is to be thrown away.
    pub fn is_far(self) -> bool {
        self.ppm > self.allowed_ppm
    }
}

/// The counter with its rate, for one measurement.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    begin: Reading,
    /// Ticks in 2^32 ns.
    rate: u64,
    /// 2^32 times the nanoseconds of a tick.
    tick: u64,
    bound_ppm: u64,
}

impl Counter {
    /// Counts the rate, for 10 ms.
    ///
    /// # Errors
    /// It is not a clock here: why.
    pub fn begin() -> Result<Self, String> {
        if let Some(why) = obstacle() {
            return Err(why);
        }
        let begin = reading();
        while raw_ns() - begin.raw_ns < BASE_NS {
            std::hint::spin_loop();
        }
        let (rate, bound_ppm) = rate(begin, reading())
            .filter(|(rate, _)| *rate > 1 << 26)
            .ok_or("it does not count with the kernel's clock")?;
        Ok(Self {
            begin,
            rate,
            tick: u64::try_from((1_u128 << 64) / u128::from(rate)).unwrap_or(u64::MAX),
            bound_ppm,
        })
    }

    /// The time of so many ticks.
    #[inline]
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.tick)) >> 32) as u64
    }

    /// The ticks of so much time.
    #[must_use]
    pub fn ticks(&self, ns: u64) -> u64 {
        ((u128::from(ns) * u128::from(self.rate)) >> 32) as u64
    }

    /// Its rate, in ticks a second.
    #[must_use]
    pub fn hz(&self) -> u64 {
        ((u128::from(self.rate) * 1_000_000_000) >> 32) as u64
    }

    /// What a reading costs, and its smallest step: some 11,000 readings, for about a quarter of a millisecond.
    #[must_use]
    pub fn worth(&self) -> ClockWorth {
        let worth = worth_of(ticks);
        ClockWorth {
            read_ns: self.ns(worth.read_ns),
            // A step of less than a nanosecond is told as one.
            resolution_ns: self.ns(worth.resolution_ns).max(1),
        }
    }

    /// The rate over all since the begin, against the one that was counted then.
    #[must_use]
    pub fn end(&self) -> Stray {
        self.compared(reading())
    }

    fn compared(&self, end: Reading) -> Stray {
        let Some((rate, bound_ppm)) = rate(self.begin, end) else {
            // It went back.
            return Stray {
                ppm: 1_000_000,
                allowed_ppm: STRAY_PPM,
            };
        };
        let off = u128::from(rate.abs_diff(self.rate)) * 1_000_000;
        let ppm = off.div_ceil(u128::from(self.rate));
        Stray {
            ppm: u64::try_from(ppm).unwrap_or(u64::MAX),
            allowed_ppm: STRAY_PPM + self.bound_ppm + bound_ppm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obstacles_are_in_words() {
        assert_eq!(judged(Some(true), false, Some("tsc")), None);
        for (invariant, forbidden, source, said) in [
            (None, false, Some("arch_sys_counter"), "x86-64"),
            (Some(false), false, Some("tsc"), "invariant"),
            (Some(true), true, Some("tsc"), "PR_SET_TSC"),
            (Some(true), false, Some("kvm-clock"), "by kvm-clock"),
            (Some(true), false, None, "does not report"),
        ] {
            let why = judged(invariant, forbidden, source).unwrap();
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn the_counter_goes_with_the_kernels_clock() {
        let counter = match Counter::begin() {
            Ok(counter) => counter,
            Err(why) => {
                assert_eq!(obstacle(), Some(why.clone()));
                return println!("skipped: the time stamp counter: {why}");
            }
        };
        for _ in 0..3 {
            let (outer, begin) = (raw_ns(), ticks());
            let inner = raw_ns();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let least = raw_ns() - inner;
            let span = counter.ns(ticks() - begin);
            let most = raw_ns() - outer;
            // Both bounds are of the kernel's clock; the rate may be wrong by what is allowed, and more under load.
            let slack = most / 1_000;
            assert!(
                span + slack >= least && span <= most + slack,
                "{least} {span} {most}"
            );
        }
        let stray = counter.end();
        assert!(!stray.is_far(), "{stray:?}");
        // There and back loses no more than a rounding.
        assert!(counter.ns(counter.ticks(1_000_000)).abs_diff(1_000_000) <= 1);
        assert!((100_000_000..20_000_000_000).contains(&counter.hz()));
        assert!(counter.worth().resolution_ns > 0);
    }

    #[test]
    fn a_counter_that_strays_is_told() {
        let at = |ticks, raw_ns| Reading {
            ticks,
            raw_ns,
            bound_ticks: 50,
        };
        let begin = at(1_000, 0);
        let (rate, bound_ppm) = rate(begin, at(20_001_000, 10_000_000)).unwrap();
        assert_eq!((rate, bound_ppm), (2 << 32, 5));
        let counter = Counter {
            begin,
            rate,
            tick: 1 << 31,
            bound_ppm,
        };
        assert_eq!((counter.ns(2_001), counter.ticks(7)), (1_000, 14));
        assert_eq!(counter.hz(), 2_000_000_000);
        // 50 ppm more, 200 ppm more, back.
        assert!(!counter.compared(at(2_000_101_000, 1_000_000_000)).is_far());
        let far = counter.compared(at(2_000_401_000, 1_000_000_000));
        assert_eq!((far.ppm, far.is_far()), (200, true));
        assert!(counter.compared(at(0, 1_000_000_000)).is_far());
    }
}
