//! The rate of a stream at its receiver, and why there may be none.
//!
//! Model:   user bytes that arrive between two deliveries, divided by the time between them; the first delivery is not
//!          counted, the last is. A stream whose window stands still is deterministic and periodic: it need be followed
//!          neither through its warm-up nor for the whole of the next, and where it comes in bursts it is measured
//!          from the start of a burst to the start of another: the first and the last delivery after a gap of at least
//!          half the largest one. Bursts of a stream that still grows, and bursts fewer than two, are divided by the whole
//!          second, as a receiver with a watch sees them.
//! Units:   bits a second, rounded down.
//! Checked: `bursts_are_measured_in_whole_periods`, `a_single_burst_is_not_the_rate`,
//!          `growing_bursts_are_divided_by_the_second`,
//!          `a_steady_stream_is_measured_exactly`.

use sonde_link::{Cause, Place, SpecError};
use sonde_units::{Bytes, Instant, Span};
use thiserror::Error;

/// Deliveries that suffice of a stream that stands still; one more or less changes its rate by less than 10^-4.
pub(crate) const ENOUGH: u64 = 16_384;
/// The most deliveries that are looked at.
const DELIVERIES_MAX: usize = 1 << 22;

/// Why no rate can be expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// The network is not one.
    #[error("the network cannot be built: {0}")]
    Network(#[from] SpecError),
    /// Nothing bounds the stream.
    #[error(
        "the network has neither a rate nor a delay, so nothing bounds a stream; turn the knob `delay`, or `rate` on a network that has one"
    )]
    Boundless,
    /// Nothing arrives, or the network lost a segment in a way that sending it again does not mend.
    #[error(
        "segments are lost for good ({place:?}, {cause:?}): no sender recovers from that; turn the knob `loss` down, or give the network \
         a path for them"
    )]
    Lost {
        /// Where.
        place: Place,
        /// Why.
        cause: Cause,
    },
    /// The stream is too slow for the window of measurement.
    #[error(
        "fewer than two segments arrived between {from} and {until} of the stream; the network is too slow or too long for that window"
    )]
    TooFew {
        /// Start of the window, from the start of the stream.
        from: Span,
        /// Its end.
        until: Span,
    },
    /// More frames than are followed.
    #[error(
        "more than {DELIVERIES_MAX} segments arrived before the stream stood still; give circuits a longer `resolution_lifetime`, or a lower rate"
    )]
    TooMany,
    /// Windows of no byte.
    #[error("the sender has a window or a buffer of 0 bytes; give it at least one segment")]
    NoWindow,
    /// A datagram that would be cut.
    #[error("a datagram of {payload} user bytes needs {} bytes at layer 3, but the MTU is {mtu} bytes, and fragments are not modelled; ask for less", .payload.0 + 28)]
    Fragments {
        /// User bytes.
        payload: Bytes,
        /// The longest frame.
        mtu: u64,
    },
}

/// Watches deliveries from `from` until `until`.
pub(crate) struct Meter {
    start: Instant,
    from: Instant,
    until: Instant,
    /// The stream stood still before the window began.
    standing: bool,
    enough: usize,
    full: bool,
    /// The last delivery before the window.
    before: Option<Instant>,
    deliveries: Vec<(Instant, Bytes)>,
}

impl Meter {
    /// A stream that starts at `start` and is rated for `length` after it has been warm for `warm_up`; `enough` deliveries
    /// suffice once it stands still.
    pub fn new(start: Instant, warm_up: Span, length: Span, enough: u64) -> Self {
        let from = start + warm_up;
        Self {
            start,
            from,
            until: from + length,
            standing: false,
            enough: usize::try_from(enough).map_or(DELIVERIES_MAX, |n| n.min(DELIVERIES_MAX)),
            full: false,
            before: None,
            deliveries: Vec::new(),
        }
    }

    /// The end of the window.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// The stream stands still from `now` on; where that is before the window, the window begins now.
    pub fn settle(&mut self, now: Instant) {
        if now < self.from {
            self.until = now + self.until.since(self.from);
            self.from = now;
            self.standing = true;
        }
    }

    /// `bytes` arrived at `at`; whether there is more to see.
    pub fn deliver(&mut self, at: Instant, bytes: Bytes) -> Result<bool, Reason> {
        if at < self.from {
            self.before = Some(at);
            return Ok(true);
        }
        self.deliveries.push((at, bytes));
        if self.standing && self.deliveries.len() >= self.enough {
            self.full = true;
            return Ok(false);
        }
        if self.deliveries.len() >= DELIVERIES_MAX {
            return Err(Reason::TooMany);
        }
        Ok(true)
    }

    /// Bits a second.
    pub fn rate(&self) -> Result<u64, Reason> {
        let [.., (end, _)] = self.deliveries[..] else {
            return Err(self.too_few());
        };
        let mut earlier = self.before;
        let gaps = self.deliveries.iter().map(|&(at, _)| {
            let gap = earlier.map_or(Span::ZERO, |earlier| at.since(earlier));
            earlier = Some(at);
            gap
        });
        let gaps: Vec<_> = gaps.collect();
        // The silence up to the end of the window, if it was watched that long.
        let silence = if self.full {
            Span::ZERO
        } else {
            self.until.since(end)
        };
        let largest = gaps.iter().copied().fold(silence, Span::max);
        let all = self.deliveries.len();
        // Where no gap is above twice the mean, every delivery will do.
        let length = self.until.since(self.from);
        let even =
            u128::from(largest.as_picos()) * all as u128 <= u128::from(length.as_picos()) * 2;
        let is_anchor = |gap: &Span| !gap.is_zero() && *gap * 2 >= largest;
        let ends = if self.standing {
            let first = gaps.iter().position(is_anchor);
            first.zip(gaps.iter().rposition(is_anchor))
        } else {
            even.then_some((0, all - 1))
        };
        let (counted, span) = match ends {
            Some((first, last)) if first < last => (
                &self.deliveries[first + 1..=last],
                self.deliveries[last].0.since(self.deliveries[first].0),
            ),
            _ => (&self.deliveries[1..], length),
        };
        if counted.is_empty() || span.is_zero() {
            return Err(self.too_few());
        }
        let bytes: Bytes = counted.iter().map(|(_, bytes)| *bytes).sum();
        let bits = u128::from(bytes.0) * 8_000_000_000_000;
        Ok((bits / u128::from(span.as_picos())) as u64)
    }

    fn too_few(&self) -> Reason {
        Reason::TooFew {
            from: self.from.since(self.start),
            until: self.until.since(self.start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Meter {
        Meter::new(Instant::START, Span::secs(1), Span::secs(1), ENOUGH)
    }

    #[test]
    fn a_steady_stream_is_measured_exactly() {
        let mut meter = meter();
        for i in 0..3_000 {
            let at = Instant::from_nanos(i * 777_777);
            assert_eq!(meter.deliver(at, Bytes(1_000)), Ok(true));
        }
        assert_eq!(meter.rate(), Ok(8_000_000_000_000 / 777_777));
    }

    #[test]
    fn bursts_are_measured_in_whole_periods() {
        let mut meter = meter();
        meter.settle(Instant::START + Span::millis(999));
        // 40 segments in 4 ms, every 20 ms, seen from the middle of a burst to the end of another.
        for at in (0..100).flat_map(|burst| (0..40).map(move |i| burst * 20_000 + i * 100)) {
            let at = Instant::START + Span::micros(at + 998_000);
            meter.deliver(at, Bytes(1_000)).unwrap();
        }
        assert_eq!(meter.rate(), Ok(40 * 8_000 * 50));
    }

    /// 10, 20, 40 and 80 segments at four times of the second: without the first one, what came in it.
    #[test]
    fn growing_bursts_are_divided_by_the_second() {
        let mut meter = meter();
        for (turn, segments) in [(0, 10), (1, 20), (2, 40), (3, 80)] {
            for i in 0..segments {
                let at = Instant::START + Span::micros(1_100_000 + turn * 200_000 + i);
                meter.deliver(at, Bytes(1_000)).unwrap();
            }
        }
        assert_eq!(meter.rate(), Ok(149 * 8_000));
    }

    /// 41 segments within 4 ms, and silence before and after: 40 segments in the second, not the rate of the burst.
    #[test]
    fn a_single_burst_is_not_the_rate() {
        let mut meter = meter();
        for at in (0..2).flat_map(|burst| (0..41).map(move |i| burst * 1_500_000 + i * 100)) {
            let at = Instant::START + Span::micros(at);
            meter.deliver(at, Bytes(1_000)).unwrap();
        }
        assert_eq!(meter.rate(), Ok(40 * 8_000));
    }

    /// Even for a tenth of the second, and then nothing: what came in the second, not the rate of that tenth.
    #[test]
    fn silence_up_to_the_end_counts() {
        let mut meter = meter();
        for i in 0..11_000 {
            let at = Instant::START + Span::micros(i * 100);
            meter.deliver(at, Bytes(1_000)).unwrap();
        }
        assert_eq!(meter.rate(), Ok(999 * 8_000));
    }

    #[test]
    fn nothing_has_no_rate() {
        let mut meter = meter();
        assert!(matches!(meter.rate(), Err(Reason::TooFew { .. })));
        meter.deliver(Instant::from_nanos(1), Bytes(1)).unwrap();
        let at = Instant::START + Span::secs(1);
        meter.deliver(at, Bytes(1)).unwrap();
        assert!(matches!(meter.rate(), Err(Reason::TooFew { .. })));
        meter.deliver(at + Span::millis(999), Bytes(1)).unwrap();
        assert_eq!(meter.rate(), Ok(8));
    }
}
