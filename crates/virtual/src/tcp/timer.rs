//! The retransmission timer: how long to wait for an acknowledgement.
//!
//! Model:   RTO = SRTT + max(4 RTTVAR, minimum), doubled by each timeout until a new round trip was seen, at most 120 s.
//!          Round trips are seen on segments that were sent once (Karn), or told by the time stamp that came back.
//! Source:  RFC 6298 §2, §3 and §5; RFC 7323 §4. Deviations: the minimum is 200 ms and bounds the variation's part, not the
//!          sum, as in Linux (`__tcp_set_rto`, `rttvar_us >= tcp_rto_min`).
//! Units:   picoseconds, rounded down.
//! Checked: `estimates_follow`, `timeouts_double`.

use sonde_units::Span;

/// The longest wait: Linux `TCP_RTO_MAX`.
pub(crate) const RTO_MAX: Span = Span::secs(120);
/// Before any round trip was seen (RFC 6298 §2.1).
const RTO_FIRST: Span = Span::secs(1);

/// What was learned of the round trip.
pub(crate) struct Estimate {
    min: Span,
    /// Smoothed round trip and its variation; none before the first.
    smoothed: Option<(u64, u64)>,
    backoff: u32,
}

impl Estimate {
    pub fn new(min: Span) -> Self {
        Self {
            min,
            smoothed: None,
            backoff: 0,
        }
    }

    /// The smoothed round trip; nothing before the first.
    pub fn rtt(&self) -> Span {
        Span::picos(self.smoothed.map_or(0, |(rtt, _)| rtt))
    }

    /// A round trip was seen.
    pub fn see(&mut self, rtt: Span) {
        let seen = rtt.as_picos();
        self.smoothed = Some(match self.smoothed {
            None => (seen, seen / 2),
            Some((rtt, variation)) => {
                let off = rtt.abs_diff(seen);
                (
                    rtt - rtt / 8 + seen / 8,
                    variation - variation / 4 + off / 4,
                )
            }
        });
        self.backoff = 0;
    }

    /// The timer ran out.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// How long to wait now.
    pub fn rto(&self) -> Span {
        let base = self.smoothed.map_or(RTO_FIRST, |(rtt, variation)| {
            Span::picos(rtt) + Span::picos(variation.saturating_mul(4)).max(self.min)
        });
        let doubled = base.as_picos().saturating_mul(1 << self.backoff.min(20));
        Span::picos(doubled).min(RTO_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_follow() {
        let mut estimate = Estimate::new(Span::millis(200));
        assert_eq!(estimate.rto(), Span::secs(1));
        estimate.see(Span::millis(400));
        assert_eq!(estimate.rto(), Span::millis(400 + 4 * 200));
        for _ in 0..200 {
            estimate.see(Span::millis(100));
        }
        let rto = estimate.rto();
        assert!(
            rto.saturating_sub(Span::millis(300)) < Span::micros(1),
            "{rto}"
        );
        assert!(estimate.rtt().saturating_sub(Span::millis(100)) < Span::micros(1));
    }

    #[test]
    fn timeouts_double() {
        let mut estimate = Estimate::new(Span::millis(200));
        estimate.see(Span::ZERO);
        for doubled in [200, 400, 800, 1_600] {
            assert_eq!(estimate.rto(), Span::millis(doubled));
            estimate.back_off();
        }
        for _ in 0..100 {
            estimate.back_off();
        }
        assert_eq!(estimate.rto(), RTO_MAX);
        estimate.see(Span::ZERO);
        assert_eq!(estimate.rto(), Span::millis(200));
    }
}
