//! Congestion control: how many segments may be in the network.
//!
//! Model:   slow start adds what was acknowledged, up to the threshold. Then Reno adds one segment for each window that was
//!          acknowledged; CUBIC follows `W(t) = C (t - K)^3 + W_max` with `K = cbrt((W_max - cwnd) / C)`, never slower than
//!          a Reno sender that reduces as little. A loss reduces once a window: Reno to a half, CUBIC to 0.7, neither below
//!          two segments; a timeout goes back to one.
//! Source:  RFC 5681 §3.1 and §3.2; RFC 9438 §4.1 to §4.8 (C = 0.4, beta = 0.7, alpha = 9/17 up to the earlier window, then
//!          1; fast convergence); RFC 3465 §2.1 (by what is acknowledged), without its limit L, as Linux `tcp_slow_start`.
//!          Deviations: HyStart is off, slow start ends at a loss or at the cap; the window also grows while the station
//!          and not the window holds the sender back, but a reduction starts from what was in flight.
//! Units:   windows in 2^-20 segments, times of the cubic in microseconds, all rounded down.
//! Checked: `reno_adds_one_a_window`, `cubic_is_the_cubic`, `cubic_is_never_slower_than_reno`, `the_average_of_cubic`,
//!          `cube_roots`.

use sonde_units::{Instant, Span};

/// One segment.
const UNIT: u64 = 1 << 20;
/// No sender goes below.
const WINDOW_MIN: u64 = 2 * UNIT;
const MICROS_CUBED: u128 = 1_000_000_000_000_000_000;
/// Farther from its plateau the cubic is beyond every window: 1000 s.
const FAR_MICROS: u64 = 1_000_000_000;

/// Which rule sets the window after the first loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Additive increase, halved at a loss (RFC 5681).
    Reno,
    /// A cubic of the time since the last reduction (RFC 9438).
    Cubic,
}

/// The window of one connection.
pub(crate) struct Control {
    rule: Congestion,
    window: u64,
    threshold: u64,
    cap: u64,
    /// Acknowledged segments that have not yet opened the window, for Reno.
    credit: u64,
    curve: Curve,
    /// Window, threshold and curve before the last reduction, while it can be undone.
    before: Option<(u64, u64, Curve)>,
}

/// What CUBIC remembers.
#[derive(Clone, Copy, Default)]
struct Curve {
    /// When the present growth began; none before its first acknowledgement.
    epoch: Option<Instant>,
    /// The window at the last reduction, lowered by fast convergence.
    w_max: u64,
    /// The window at the last reduction.
    prior: u64,
    /// Where the plateau lies.
    origin: u64,
    plateau_micros: u64,
    /// What a Reno sender would have.
    estimate: u64,
}

impl Control {
    /// Starts in slow start with `initial` segments; the window never passes `cap`.
    pub fn new(rule: Congestion, initial: u64, cap: u64) -> Self {
        let cap = cap.saturating_mul(UNIT);
        Self {
            rule,
            window: initial.saturating_mul(UNIT).clamp(UNIT, cap),
            threshold: u64::MAX,
            cap,
            credit: 0,
            curve: Curve::default(),
            before: None,
        }
    }

    /// Whole segments.
    pub fn window(&self) -> u64 {
        self.window / UNIT
    }

    /// `acked` segments were acknowledged at `now`, on a round trip of `rtt`.
    pub fn on_ack(&mut self, now: Instant, mut acked: u64, rtt: Span) {
        if self.window < self.threshold {
            let used = acked.min((self.threshold - self.window).div_ceil(UNIT));
            let grown = self.window.saturating_add(used.saturating_mul(UNIT));
            self.window = grown.min(self.threshold);
            acked -= used;
        }
        if acked > 0 {
            match self.rule {
                Congestion::Reno => self.add(acked),
                Congestion::Cubic => self.curve.on_ack(&mut self.window, now, acked, rtt),
            }
        }
        self.window = self.window.min(self.cap);
    }

    /// RFC 5681 §3.1: one segment for each window.
    fn add(&mut self, acked: u64) {
        self.credit += acked;
        while self.credit >= self.window() && self.window < self.cap {
            self.credit -= self.window();
            self.window += UNIT;
        }
    }

    /// The first loss of a window of which `flight` segments were out; at once the window is the threshold.
    pub fn on_loss(&mut self, flight: u64) {
        self.before = Some((self.window, self.threshold, self.curve));
        self.reduce(flight);
        self.window = self.threshold;
    }

    /// The loss was none: all is as before.
    pub fn undo(&mut self) {
        if let Some((window, threshold, curve)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
            self.curve = curve;
        }
    }

    /// The timer ran out; `first` unless the same segment ran out before.
    pub fn on_timeout(&mut self, flight: u64, first: bool) {
        if first {
            self.reduce(flight);
        }
        self.window = UNIT;
        self.before = None;
        // RFC 9438 §4.8: the next growth starts from its own beginning.
        self.curve.w_max = 0;
        self.curve.epoch = None;
    }

    fn reduce(&mut self, flight: u64) {
        let used = self.window.min(flight.saturating_mul(UNIT));
        self.threshold = match self.rule {
            Congestion::Reno => used / (2 * UNIT) * UNIT,
            Congestion::Cubic => {
                self.curve.reduce(used);
                used / 10 * 7
            }
        }
        .max(WINDOW_MIN);
        self.credit = 0;
    }

    /// After a recovery that ends with `flight` segments out: no burst (RFC 6582 §3.2, step 3, option 1).
    pub fn restrain(&mut self, flight: u64) {
        let restrained = (flight.max(1) + 1).saturating_mul(UNIT);
        self.window = self.window.min(restrained);
    }
}

impl Curve {
    fn reduce(&mut self, window: u64) {
        // Fast convergence (§4.7): who had to give way twice leaves room.
        self.w_max = if window < self.w_max {
            window / 20 * 17
        } else {
            window
        };
        self.prior = window;
        self.epoch = None;
    }

    fn on_ack(&mut self, window: &mut u64, now: Instant, acked: u64, rtt: Span) {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(*window, now),
        };
        // §4.3: alpha = 3 (1 - beta) / (1 + beta) until the earlier window is reached.
        let (numerator, denominator) = if self.estimate < self.prior {
            (9, 17)
        } else {
            (1, 1)
        };
        let share = u128::from(acked) * u128::from(UNIT) * u128::from(UNIT);
        let gain = share * numerator / (u128::from(*window) * denominator);
        self.estimate = self.estimate.saturating_add(gain as u64);
        let elapsed = now.since(epoch);
        if self.at(elapsed) < self.estimate {
            *window = (*window).max(self.estimate);
            return;
        }
        let most = window.saturating_add(*window / 2);
        let target = self.at(elapsed + rtt).clamp(*window, most);
        let step = u128::from(target - *window) * u128::from(UNIT) * u128::from(acked);
        *window += (step / u128::from(*window)) as u64;
    }

    fn begin(&mut self, window: u64, now: Instant) -> Instant {
        let below = self.w_max.saturating_sub(window);
        let cube = u128::from(below) * 5 * MICROS_CUBED / (2 * u128::from(UNIT));
        self.plateau_micros = cube_root(cube);
        self.origin = self.w_max.max(window);
        self.estimate = window;
        self.epoch = Some(now);
        now
    }

    /// The cubic, `elapsed` after the beginning of its growth (§4.2, figure 1).
    fn at(&self, elapsed: Span) -> u64 {
        let micros = elapsed.as_picos() / 1_000_000;
        let off = micros.abs_diff(self.plateau_micros).min(FAR_MICROS);
        let cube = u128::from(off) * u128::from(off) * u128::from(off);
        let height = cube * u128::from(2 * UNIT) / (5 * MICROS_CUBED);
        let height = u64::try_from(height).unwrap_or(u64::MAX);
        if micros < self.plateau_micros {
            self.origin.saturating_sub(height)
        } else {
            self.origin.saturating_add(height)
        }
    }
}

/// The largest number whose cube is not above `n`.
fn cube_root(n: u128) -> u64 {
    if n == 0 {
        return 0;
    }
    // Newton's method from above: it falls until it is there.
    let mut root = 1u128 << (128 - n.leading_zeros()).div_ceil(3);
    loop {
        let next = (2 * root + n / (root * root)) / 3;
        if next >= root {
            return root as u64;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: Span = Span::millis(100);

    /// One round trip without loss: all of the window is acknowledged, two segments at a time.
    fn turn(control: &mut Control, now: Instant) {
        for _ in 0..control.window().div_ceil(2) {
            control.on_ack(now, 2, RTT);
        }
    }

    #[test]
    fn slow_start_ends_at_the_threshold() {
        let mut control = Control::new(Congestion::Reno, 10, 1_000);
        control.on_loss(10);
        assert_eq!((control.window(), control.threshold / UNIT), (5, 5));
        control.on_timeout(5, true);
        assert_eq!((control.window(), control.threshold / UNIT), (1, 2));
        // A repeated timeout keeps the threshold.
        control.on_timeout(1, false);
        assert_eq!((control.window(), control.threshold / UNIT), (1, 2));
        control.on_ack(Instant::START, 1, RTT);
        assert_eq!(control.window(), 2);
    }

    #[test]
    fn reno_adds_one_a_window() {
        let mut control = Control::new(Congestion::Reno, 40, 100);
        control.on_loss(40);
        assert_eq!(control.window(), 20);
        for want in 21..=30 {
            turn(&mut control, Instant::START);
            // Half a segment may be left of an odd window.
            assert!(control.window().abs_diff(want) <= 1, "{want}");
        }
        for _ in 0..1_000 {
            turn(&mut control, Instant::START);
        }
        assert_eq!(control.window(), 100);
    }

    /// The window against the formula, where the round trip is long and the Reno estimate is below.
    #[test]
    fn cubic_is_the_cubic() {
        let w_max = 10_000.0f64;
        let mut control = Control::new(Congestion::Cubic, 10_000, 1 << 20);
        control.on_loss(10_000);
        assert_eq!(control.window(), 7_000);
        let k = (w_max * 0.3 / 0.4).cbrt();
        for turn_number in 0..350u64 {
            let elapsed = turn_number as f64 * 0.1;
            let want = 0.4 * (elapsed - k).powi(3) + w_max;
            let got = control.window as f64 / UNIT as f64;
            assert!((got - want).abs() <= want * 0.01, "{elapsed}: {got} {want}");
            turn(&mut control, Instant::START + RTT * turn_number);
        }
    }

    #[test]
    fn fast_convergence_leaves_room() {
        let mut control = Control::new(Congestion::Cubic, 1_000, 1 << 20);
        control.on_loss(1_000);
        assert_eq!(control.curve.w_max / UNIT, 1_000);
        control.on_loss(700);
        assert_eq!(control.curve.w_max / UNIT, 595);
        control.on_timeout(490, true);
        assert_eq!(control.curve.w_max, 0);
    }

    #[test]
    fn cubic_is_never_slower_than_reno() {
        // On a short round trip the cubic hardly moves: alpha 9/17 a window until the old window is reached, then 1.
        let rtt = Span::micros(100);
        let mut control = Control::new(Congestion::Cubic, 100, 1 << 20);
        control.on_loss(100);
        let mut turns = 0u64;
        while control.window() < 100 {
            for _ in 0..control.window() {
                control.on_ack(Instant::START + rtt * turns, 1, rtt);
            }
            turns += 1;
        }
        // 30 segments at 9/17 a turn.
        assert!((55..=59).contains(&turns), "{turns}");
    }

    /// RFC 9438 §5.1: one loss in 1/p segments gives a mean window of (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4),
    /// that is 1.054 (RTT / p)^(3/4). The formula has each loss at the earlier window exactly: without fast convergence,
    /// which gives more room whenever a loss is only a little earlier; and it is reached slowly, so the test starts there.
    #[test]
    fn the_average_of_cubic() {
        let (rtt, per_loss) = (0.1, 1_000_000u64);
        let mut control = Control::new(Congestion::Cubic, 6_408, 1 << 22);
        control.on_loss(6_408);
        let (mut now, mut left, mut area, mut turns) = (Instant::START, per_loss, 0.0, 0.0);
        for loss in 0..40 {
            while left > control.window() {
                left -= control.window();
                if loss >= 10 {
                    area += control.window as f64 / UNIT as f64;
                    turns += 1.0;
                }
                turn(&mut control, now);
                now = now + RTT;
            }
            left = per_loss;
            control.on_loss(control.window());
            control.curve.w_max = control.curve.prior;
        }
        let want = 1.054 * (rtt * per_loss as f64).powf(0.75);
        let got = area / turns;
        assert!((got / want - 1.0).abs() < 0.03, "{got}, not {want}");
    }

    proptest! {
        #[test]
        fn cube_roots(n in prop_oneof![0u128..1_000, any::<u128>().prop_map(|n| n >> 8)]) {
            let root = u128::from(cube_root(n));
            prop_assert!(root * root * root <= n && n < (root + 1) * (root + 1) * (root + 1));
        }
    }
}
