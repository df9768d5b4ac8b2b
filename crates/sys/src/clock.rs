//! The monotonic clock, sleeping to an instant of it, and its distance from the real-time clock.
//!
//! Model:   one time line, CLOCK_MONOTONIC; kernel stamps (SO_TIMESTAMPNS) come in CLOCK_REALTIME and are
//!          moved over by an offset sampled between two monotonic readings.
//! Units:   nanoseconds.
//! Checked: `sleeping_is_never_early`, `the_offset_is_bracketed`, `the_clock_of_one_process_is_one`.

use std::num::NonZeroU64;

use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::Result;
use crate::error::Attempt;

#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}

/// Now, on CLOCK_MONOTONIC.
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// What processes have in common whose CLOCK_MONOTONIC is the same: the boot's id and the time namespace. `None` where
/// the kernel does not tell the boot's id.
pub fn identity() -> Option<String> {
    let boot = crate::error::read_text("/proc/sys/kernel/random/boot_id").ok()?;
    // A kernel without time namespaces has no such file: then there is one clock.
    let space = std::fs::read_link("/proc/self/ns/time")
        .map(|space| space.display().to_string())
        .unwrap_or_default();
    Some(format!("{} {space}", boot.trim()))
}

/// Now, on CLOCK_REALTIME, since 1970.
pub fn realtime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Sleeps until `deadline_ns` on CLOCK_MONOTONIC; returns at once when that is past. Never early.
pub fn sleep_until_ns(deadline_ns: u64) {
    let request = Timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as _,
        tv_nsec: (deadline_ns % 1_000_000_000) as _,
    };
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request) == Err(Errno::INTR)
    {
    }
}

/// Asks the kernel for wake-ups without slack (1 ns instead of 50 us) for the calling thread.
///
/// The default slack makes `clock_nanosleep` and `epoll_pwait2` some 50 us later at the median; timerfd is
/// not affected. Seen with 200 us periods: median 89-96 us late with, 38-41 us without.
pub fn timer_slack_min() -> Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
        .attempt(|| "set the timer slack to 1 ns".into())
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealtimeOffset {
    /// Real time minus monotonic time.
    pub offset_ns: i64,
    /// Half the distance between the two monotonic readings around the real-time one.
    pub bound_ns: u64,
}

impl RealtimeOffset {
    /// The monotonic time of a real-time stamp; zero for stamps before the machine started.
    pub fn monotonic_ns(&self, stamp_realtime_ns: u64) -> u64 {
        u64::try_from(stamp_realtime_ns as i64 - self.offset_ns).unwrap_or(0)
    }
}

/// Samples CLOCK_REALTIME minus CLOCK_MONOTONIC, the tightest of 16 bracketed readings.
///
/// Valid until the real-time clock is stepped; slewing moves it by at most 0.5 ms a second, so sample again
/// about once a second.
pub fn realtime_minus_monotonic_ns() -> RealtimeOffset {
    let sample = |_| {
        let before = monotonic_ns();
        let real = realtime_ns();
        let after = monotonic_ns();
        let bound_ns = (after - before).div_ceil(2);
        RealtimeOffset {
            offset_ns: real as i64 - (before + (after - before) / 2) as i64,
            bound_ns,
        }
    };
    let first = sample(0);
    (1..16).map(sample).fold(first, |best, next| {
        if next.bound_ns < best.bound_ns {
            next
        } else {
            best
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_is_never_early() {
        let deadline = monotonic_ns() + 2_000_000;
        sleep_until_ns(deadline);
        assert!(monotonic_ns() >= deadline);
        sleep_until_ns(0);
    }

    #[test]
    fn the_offset_is_bracketed() {
        let offset = realtime_minus_monotonic_ns();
        let before = monotonic_ns();
        let moved = offset.monotonic_ns(realtime_ns());
        let after = monotonic_ns();
        // A clock discipline may slew between the two samples; a millisecond is far above that.
        assert!(
            moved + 1_000_000 >= before && moved <= after + 1_000_000,
            "{before} {moved} {after}"
        );
    }

    #[test]
    fn the_clock_of_one_process_is_one() {
        let Some(own) = identity() else {
            return println!(
                "skipped: the boot's id: /proc/sys/kernel/random/boot_id cannot be read"
            );
        };
        let other = std::thread::spawn(identity).join().unwrap();
        assert!(
            own.len() > 30 && other.as_deref() == Some(own.as_str()),
            "{own} {other:?}"
        );
    }

    #[test]
    fn the_slack_takes() {
        timer_slack_min().unwrap();
        assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
    }
}
