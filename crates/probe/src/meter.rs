//! The rate of a stream, by its receiver's clock.
//!
//! Model:   the window begins with the first arrival at least one second after the very first, and ends with the first
//!          arrival at least the budget later, so that a pause across the end is within it. The bytes of the arrival that
//!          begins the window are not counted, those of the one that ends it are. A stream that ends earlier is rated to
//!          its last arrival, over one second at least.
//!          Where the kernel counts what has come (TCP_INFO), the bytes of the window are the difference of its counts: a receiver
//!          that had no CPU finds bytes that crossed before the window began, and those are not counted.
//!          Beside the rate stand the bytes of each slot of time: of 100 ms, and whenever [`SLOTS_MAX`] are full, of twice
//!          the time, so that memory is bounded whatever the duration. The window has slices of 10 ms, likewise: what met a disturbance is
//!          told slice by slice.
//! Units:   nanoseconds; bits a second, rounded down.
//! Checked: `slots_grow_and_memory_does_not`, `a_steady_stream_has_its_rate`, `a_slow_begin_does_not_count`, `a_pause_at_the_end_counts`, `short_streams_are_refused`,
//!          `bytes_that_waited_are_not_rated`, `the_window_has_slices`.

use serde::{Deserialize, Serialize};
use sonde_measure::Moments;
use sonde_measure::spec::{LEAD_IN_NS, WINDOW_NS_MIN};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::thread_cpu_ns;

use crate::moments::Waits;
use crate::{Error, Result};

pub(crate) const SLOT_NS: u64 = 100_000_000;
/// Parts of the window that is rated.
const SLICE_NS: u64 = 10_000_000;
/// Six minutes and more of the shortest.
const SLOTS_MAX: usize = 4_096;

/// Bytes that came in each of equal parts of a stream's time, since its first arrival.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// The length of a part: 100 ms, doubled as often as it took.
    pub slot_ns: u64,
    /// User bytes in each; at most 4,096.
    pub bytes: Vec<u64>,
}

impl Default for Slots {
    fn default() -> Self {
        Self::within(SLOT_NS, 0)
    }
}

impl Slots {
    /// None yet, of parts of this length, with room for those of a time.
    fn within(slot_ns: u64, span_ns: u64) -> Self {
        Self {
            slot_ns,
            bytes: Vec::with_capacity(SLOTS_MAX.min((span_ns / slot_ns) as usize)),
        }
    }

    /// Of parts of 100 ms, made longer where there are too many.
    pub(crate) fn of(bytes: Vec<u64>) -> Self {
        let mut slots = Self {
            bytes,
            ..Self::default()
        };
        while slots.bytes.len() > SLOTS_MAX {
            slots.coarsen();
        }
        slots
    }

    /// Takes bytes that came so long after the first ones.
    #[inline]
    pub(crate) fn on_arrival(&mut self, since_ns: u64, bytes: u64) {
        while since_ns / self.slot_ns >= SLOTS_MAX as u64 {
            self.coarsen();
        }
        let slot = (since_ns / self.slot_ns) as usize;
        if slot >= self.bytes.len() {
            self.bytes.resize(slot + 1, 0);
        }
        self.bytes[slot] += bytes;
    }

    /// Every two neighbours become one.
    #[cold]
    fn coarsen(&mut self) {
        let pairs = self.bytes.len().div_ceil(2);
        for pair in 0..pairs {
            let second = self.bytes.get(2 * pair + 1).copied().unwrap_or(0);
            self.bytes[pair] = self.bytes[2 * pair] + second;
        }
        self.bytes.truncate(pairs);
        self.slot_ns *= 2;
    }
}

/// The bytes of a window in parts of 10 ms, made longer where there are too many.
#[derive(Debug)]
pub(crate) struct Slices(Slots);

impl Slices {
    /// With room for those of a time.
    pub(crate) fn within(span_ns: u64) -> Self {
        Self(Slots::within(SLICE_NS, span_ns))
    }

    /// Takes bytes that came so long after the window's begin.
    #[inline]
    pub(crate) fn on_arrival(&mut self, since_ns: u64, bytes: u64) {
        self.0.on_arrival(since_ns, bytes);
    }

    /// The rates of those that lie within the window, with when they were and when the receiving thread waited; none where that is not
    /// known.
    pub(crate) fn moments(&self, (begin_ns, end_ns): (u64, u64), waits: Waits) -> Option<Moments> {
        let slice_ns = self.0.slot_ns;
        let whole = end_ns.saturating_sub(begin_ns) / slice_ns;
        let rate = |at: usize| {
            let bytes = self.0.bytes.get(at).copied().unwrap_or(0);
            let bps = u128::from(bytes) * 8_000_000_000 / u128::from(slice_ns);
            [0, slice_ns, u64::try_from(bps).unwrap_or(u64::MAX)]
        };
        Some(Moments {
            origin_ns: begin_ns,
            samples: (0..whole as usize).map(rate).collect(),
            away: waits.end()?,
        })
    }
}

/// What was rated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// User bytes received in it.
    pub bytes: u64,
    /// Its length.
    pub window_ns: u64,
    /// The rate.
    pub bps: u64,
    /// CPU time of the receiving thread in it; null when the stream ended before the window.
    pub cpu_ns: Option<u64>,
}

/// What is read at the two ends of a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// When, after all else was read.
    pub(crate) at_ns: u64,
    /// CPU time used so far.
    pub(crate) cpu_ns: u64,
    /// Bytes that have come so far, taken or not, where the kernel counts them.
    pub(crate) came_bytes: Option<u64>,
}

impl Reading {
    /// Of this thread, whose kernel counts nothing.
    pub(crate) fn of_thread() -> Self {
        Self {
            cpu_ns: thread_cpu_ns(),
            came_bytes: None,
            at_ns: monotonic_ns(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    at_ns: u64,
    bytes: u64,
    cpu_ns: Option<u64>,
    came_bytes: Option<u64>,
}

/// Rates arrivals.
#[derive(Debug)]
pub(crate) struct Meter {
    budget_ns: u64,
    first_ns: Option<u64>,
    begin: Option<Mark>,
    end: Option<Mark>,
    last_ns: u64,
    bytes: u64,
    slots: Slots,
    slices: Slices,
}

impl Meter {
    pub(crate) fn new(budget_ns: u64) -> Self {
        Self {
            budget_ns,
            first_ns: None,
            begin: None,
            end: None,
            last_ns: 0,
            bytes: 0,
            slots: Slots::within(SLOT_NS, LEAD_IN_NS + 2 * budget_ns),
            slices: Slices::within(2 * budget_ns),
        }
    }

    /// Takes an arrival; `read` is called at the window's two ends only.
    #[inline]
    pub(crate) fn on_arrival(&mut self, now_ns: u64, bytes: u64, read: impl FnOnce() -> Reading) {
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        self.bytes += bytes;
        self.last_ns = now_ns;
        self.slots.on_arrival(now_ns - first_ns, bytes);
        let mark = |at_ns: u64, reading: Reading| {
            Some(Mark {
                at_ns,
                bytes: self.bytes,
                cpu_ns: Some(reading.cpu_ns),
                came_bytes: reading.came_bytes,
            })
        };
        match (self.begin, self.end) {
            (None, _) if now_ns - first_ns >= LEAD_IN_NS => self.begin = mark(now_ns, read()),
            (Some(begin), None) if now_ns - begin.at_ns >= self.budget_ns => {
                self.slices.on_arrival(now_ns - begin.at_ns, bytes);
                // What was counted has come before the reading's own time.
                let reading = read();
                let is_counted = reading.came_bytes.is_some();
                let at_ns = if is_counted { reading.at_ns } else { now_ns };
                self.end = mark(at_ns, reading);
            }
            (Some(begin), None) => self.slices.on_arrival(now_ns - begin.at_ns, bytes),
            (Some(_), Some(_)) | (None, _) => {}
        }
    }

    /// Whether the window has its end.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The window's slices; none where it is not known when the receiving thread waited, and before the window has its end.
    pub(crate) fn slices(&self, waits: Waits) -> Option<Moments> {
        let (begin, end) = self.begin.zip(self.end)?;
        self.slices.moments((begin.at_ns, end.at_ns), waits)
    }

    pub(crate) fn into_slots(self) -> Slots {
        self.slots
    }

    pub(crate) fn window(&self) -> Result<Window> {
        let too_short = |window_ns| Error::TooShort {
            window_ns,
            needed_ns: WINDOW_NS_MIN,
        };
        let begin = self.begin.ok_or_else(|| too_short(0))?;
        let end = self.end.unwrap_or(Mark {
            at_ns: self.last_ns,
            bytes: self.bytes,
            cpu_ns: None,
            came_bytes: None,
        });
        let window_ns = end.at_ns - begin.at_ns;
        if window_ns < WINDOW_NS_MIN {
            return Err(too_short(window_ns));
        }
        let bytes = match (begin.came_bytes, end.came_bytes) {
            (Some(begin), Some(end)) => end.saturating_sub(begin),
            _ => end.bytes - begin.bytes,
        };
        let bps = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(window_ns);
        Ok(Window {
            bytes,
            window_ns,
            bps: u64::try_from(bps).unwrap_or(u64::MAX),
            cpu_ns: end
                .cpu_ns
                .zip(begin.cpu_ns)
                .map(|(end, begin)| end.saturating_sub(begin)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Arrivals of 1,000 bytes each millisecond (8 Mbit/s) in these milliseconds.
    fn meter(budget_ms: u64, arrivals_ms: impl Iterator<Item = u64>) -> Meter {
        let mut meter = Meter::new(budget_ms * MS);
        for at in arrivals_ms {
            meter.on_arrival(5_000 * MS + at * MS, 1_000, || reading(at * 10, None));
        }
        meter
    }

    fn reading(cpu_ns: u64, came_bytes: Option<u64>) -> Reading {
        Reading {
            at_ns: 9_000 * MS,
            cpu_ns,
            came_bytes,
        }
    }

    #[test]
    fn bytes_that_waited_are_not_rated() {
        // A line of 8 Mbit/s; the receiver has no CPU from 0.9 to 1.1 s, and takes at 1.1 s what waited in pieces of 100 kB.
        let mut meter = Meter::new(1_000 * MS);
        let came = |at_ms: u64| Some(77 + at_ms * 1_000);
        let mut taken = 0;
        for at_ms in (0..2_200).filter(|at_ms| !(900..1_100).contains(at_ms)) {
            let pieces = if at_ms == 1_100 { 2 } else { 1 };
            for piece in (0..pieces).rev() {
                let bytes = at_ms * 1_000 + 1_000 - piece * 100_000 - taken;
                taken += bytes;
                meter.on_arrival(5_000 * MS + at_ms * MS, bytes, || Reading {
                    at_ns: 5_000 * MS + at_ms * MS,
                    ..reading(0, came(at_ms))
                });
            }
        }
        let window = meter.window().unwrap();
        assert_eq!((window.bps, window.bytes), (8_000_000, 1_000_000));
        assert_eq!(
            meter.end.unwrap().bytes - meter.begin.unwrap().bytes,
            1_100_000
        );
    }

    #[test]
    fn a_steady_stream_has_its_rate() {
        let meter = meter(2_000, 0..4_000);
        let window = meter.window().unwrap();
        assert_eq!(
            (window.bps, window.window_ns, window.bytes),
            (8_000_000, 2_000 * MS, 2_000_000)
        );
        assert_eq!(window.cpu_ns, Some(20_000));
        assert!(meter.is_over());
        assert_eq!(meter.bytes(), 4_000_000);
        assert_eq!(meter.into_slots().bytes, vec![100_000; 40]);
    }

    #[test]
    fn the_window_has_slices() {
        // Nothing comes from 1.5 to 1.52 s.
        let meter = meter(1_000, (0..1_500).chain(1_520..2_500));
        let slices = meter.slices(Waits::begin()).unwrap();
        assert_eq!(slices.origin_ns, 6_000 * MS);
        let rates: Vec<u64> = slices.samples.iter().map(|one| one[2]).collect();
        assert_eq!(rates.len(), 100);
        // The arrival that begins the window is not of it.
        assert_eq!(rates[..2], [7_200_000, 8_000_000]);
        assert_eq!(rates[49..53], [8_000_000, 0, 0, 8_000_000]);
        assert_eq!(slices.samples[7], [0, 10 * MS, 8_000_000]);
        // A stream that ended early has none; one of an hour has 4,096 at most.
        assert_eq!(meter_of(2_000, 2_500).slices(Waits::begin()), None);
        let hour = meter_of(3_600_000, 3_602_000)
            .slices(Waits::begin())
            .unwrap();
        assert_eq!(
            (hour.samples.len(), hour.samples[1][1]),
            (2_812, 1_280 * MS)
        );
    }

    fn meter_of(budget_ms: u64, until_ms: u64) -> Meter {
        meter(budget_ms, 0..until_ms)
    }

    #[test]
    fn slots_grow_and_memory_does_not() {
        // Ten hours with an arrival each second.
        let hours = 36_000;
        let slots = meter(1_000, (0..hours).map(|second| second * 1_000)).into_slots();
        assert_eq!(slots.slot_ns, 128 * SLOT_NS);
        assert!(slots.bytes.len() <= SLOTS_MAX && slots.bytes.len() > SLOTS_MAX / 2);
        assert_eq!(slots.bytes.iter().sum::<u64>(), hours * 1_000);
        let last = slots.bytes.len() - 1;
        assert!(
            slots.bytes[..last]
                .iter()
                .all(|bytes| [12_000, 13_000].contains(bytes))
        );
    }

    #[test]
    fn a_slow_begin_does_not_count() {
        let window = meter(1_000, (0..1_000).step_by(100).chain(1_000..3_000))
            .window()
            .unwrap();
        assert_eq!(window.bps, 8_000_000);
    }

    #[test]
    fn a_pause_at_the_end_counts() {
        // Nothing from 2.9 to 4 s: the window goes from 1 to 4 s and holds 1.9 s of traffic.
        let window = meter(2_000, (0..2_900).chain(4_000..4_500))
            .window()
            .unwrap();
        assert_eq!((window.window_ns, window.bytes), (3_000 * MS, 1_900_000));
    }

    #[test]
    fn short_streams_are_refused() {
        assert!(meter(1_000, 0..0).window().is_err());
        assert!(meter(1_000, 0..900).window().is_err());
        let error = meter(2_000, 0..1_500).window().unwrap_err().to_string();
        assert!(error.contains("499000000 ns"), "{error}");
        let cut = meter(2_000, 0..2_500).window().unwrap();
        assert_eq!(
            (cut.bps, cut.window_ns, cut.cpu_ns),
            (8_000_000, 1_499 * MS, None)
        );
    }
}
