//! The sending end of a connection: what to send next, and what an acknowledgement or a timeout changes.
//!
//! Model:   open, in recovery until what was out at the first loss is acknowledged, or after a timeout until what was out
//!          then is. Whenever `pipe` is below the window, the first segment that is taken for lost is sent, or else a new
//!          one; the first of a recovery is sent whatever `pipe` is. The first two duplicate acknowledgements so let new
//!          segments go (limited transmit). The timer restarts at each acknowledgement of something new and when the first
//!          segment is sent again.
//! Source:  RFC 5681 §3, RFC 6582 §3.2 (a partial acknowledgement sends the next hole; no fast retransmit below what was
//!          out), RFC 6675 §5, RFC 3042 §2, RFC 6298 §5, RFC 3168 §6.1.2 (one reduction a window). Deviations: no tail loss
//!          probe and no RACK (RFC 8985), no proportional reduction (RFC 6937); only a fast retransmit is undone that a time
//!          stamp shows to have been needless (RFC 3522, RFC 4015), not a timeout (RFC 5682); a second timeout of one recovery does not reduce again, and the timer restarts at every
//!          partial acknowledgement, as in Linux.
//! Units:   segments.
//! Checked: in `traffic/tests.rs`: `one_loss_is_repaired_in_a_round_trip`,
//!          `holes_are_filled_one_a_round_trip_or_all_at_once`, `timeouts_double`, `a_lost_tail_waits_for_the_timer`,
//!          `three_later_ones_are_a_loss`, `a_late_segment_is_no_loss_in_the_end`, `marks_reduce_once_a_window`.

use super::Sender;
use super::congestion::Control;
use super::receive::Ack;
use super::recovery::{Acked, Scoreboard, THRESHOLD};
use super::timer::Estimate;
use sonde_link::Headers;
use sonde_units::{Instant, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Until this segment is the first.
    Recovery(u64),
    /// The same after a timeout.
    Timeout(u64),
}

/// The sending end.
pub(crate) struct Transmit {
    board: Scoreboard,
    control: Control,
    estimate: Estimate,
    state: State,
    sack: bool,
    timestamps: bool,
    /// How many segments there are to send.
    total: u64,
    /// How many may be out, whatever the window.
    cap: u64,
    /// No fast retransmit before this segment is acknowledged; none before the first loss.
    guard: Option<u64>,
    /// No reduction for a mark of congestion before this one is.
    reduced_until: u64,
    /// The window was reduced for a mark; the next new segment says so.
    reduced: bool,
    /// The next segment is sent whatever is out.
    urgent: bool,
    /// The first segment at the last timeout.
    timed_out: Option<u64>,
    due: Option<Instant>,
    timeouts: u64,
    resent: u64,
}

impl Transmit {
    /// A sender of `total` segments with at most `cap` out, which has seen a round trip of `rtt`, if any.
    pub fn new(sender: &Sender, cap: u64, total: u64, rtt: Option<Span>) -> Self {
        let mut estimate = Estimate::new(sender.rto_min);
        if let Some(rtt) = rtt {
            estimate.see(rtt);
        }
        Self {
            board: Scoreboard::new(),
            control: Control::new(sender.congestion, sender.initial_segments, cap),
            estimate,
            state: State::Open,
            sack: sender.sack,
            timestamps: sender.headers == Headers::Timestamps,
            total,
            cap,
            guard: None,
            reduced_until: 0,
            reduced: false,
            urgent: false,
            timed_out: None,
            due: None,
            timeouts: 0,
            resent: 0,
        }
    }

    /// The congestion window.
    pub fn window(&self) -> u64 {
        self.control.window()
    }

    /// Timeouts so far.
    pub fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// Segments sent again so far.
    pub fn resent(&self) -> u64 {
        self.resent
    }

    /// Whether something was taken for lost and not yet acknowledged.
    pub fn recovers(&self) -> bool {
        self.state != State::Open
    }

    /// When the timer runs out; none where nothing is out.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What to send next, if anything may be sent.
    pub fn poll(&mut self) -> Option<u64> {
        let is_open = self.board.pipe() < self.control.window();
        if is_open || self.urgent {
            if let Some(seq) = self.board.first_lost() {
                return Some(seq);
            }
        }
        let next = self.board.next();
        (is_open && next < self.total && self.board.out() < self.cap).then_some(next)
    }

    /// The segment of [`Self::poll`] was sent; whether it says that the window was reduced for a mark.
    pub fn on_sent(&mut self, now: Instant, seq: u64) -> bool {
        if seq == self.board.next() {
            self.board.send(now);
        } else {
            self.board.resend(seq, now);
            self.resent += 1;
            self.urgent = false;
            if seq == self.board.first() {
                self.due = None;
            }
        }
        self.due = self.due.or(Some(now + self.estimate.rto()));
        std::mem::take(&mut self.reduced)
    }

    /// An acknowledgement came.
    pub fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let acked = self.board.acknowledge(ack.next);
        self.see(now, &acked, ack);
        let mut news = acked.fresh;
        if self.sack {
            for &(start, end) in ack.blocks() {
                news += self.board.report(start, end);
            }
            self.board.find_lost();
        } else {
            self.count_duplicates(&acked, ack);
        }
        if acked.count > 0 {
            let is_out = self.board.out() > 0;
            self.due = is_out.then(|| now + self.estimate.rto());
        }
        match self.state {
            State::Open => self.grow(now, acked.count),
            State::Recovery(until) => self.continue_recovery(&acked, ack, until),
            State::Timeout(until) => {
                self.grow(now, news);
                if self.board.first() >= until {
                    self.state = State::Open;
                }
            }
        }
        if self.state == State::Open {
            if self.is_lossy() {
                self.recover();
            } else if ack.congested && self.board.first() >= self.reduced_until {
                self.control.on_loss(self.board.out());
                self.reduced_until = self.board.next();
                self.reduced = true;
            }
        }
    }

    fn grow(&mut self, now: Instant, segments: u64) {
        if segments > 0 {
            self.control.on_ack(now, segments, self.estimate.rtt());
        }
    }

    /// RFC 7323 §4.1: what fills a gap carries the time at which it was sent again.
    fn see(&mut self, now: Instant, acked: &Acked, ack: &Ack) {
        if acked.count == 0 {
            return;
        }
        let echo = self.timestamps.then_some(ack.echo);
        if let Some(sent_at) = acked.sent_at.or(echo) {
            self.estimate.see(now.since(sent_at));
        }
    }

    fn count_duplicates(&mut self, acked: &Acked, ack: &Ack) {
        match self.state {
            State::Recovery(_) if acked.count > 0 => self.board.fill_hole(acked.count),
            _ if acked.count > 0 => self.board.forget_duplicates(),
            // What arrives after a timeout was taken for lost already.
            State::Timeout(_) => {}
            _ if ack.next == self.board.first() && self.board.out() > 0 => self.board.duplicate(),
            _ => {}
        }
    }

    /// Whether the segment that was sent again had only been late, and nothing else is missing (RFC 3522 §3.2: what came
    /// back was sent before).
    fn is_spurious(&mut self, acked: &Acked, ack: &Ack) -> bool {
        let late = acked.resent_at.is_some_and(|at| ack.echo < at);
        if !late || !self.sack || !self.timestamps {
            return false;
        }
        self.board.tolerate(acked.overtaken);
        !self.board.is_lossy()
    }

    fn is_lossy(&self) -> bool {
        if self.sack {
            return self.board.is_lossy();
        }
        let first = self.board.first();
        self.board.duplicates() >= THRESHOLD && self.guard.is_none_or(|guard| first > guard)
    }

    fn recover(&mut self) {
        let next = self.board.next();
        self.control.on_loss(self.board.out());
        self.state = State::Recovery(next);
        self.reduced_until = next;
        self.guard = Some(next);
        self.urgent = true;
        if !self.sack {
            self.board.lose_first();
        }
    }

    fn continue_recovery(&mut self, acked: &Acked, ack: &Ack, until: u64) {
        if self.is_spurious(acked, ack) {
            self.control.undo();
            self.state = State::Open;
            self.urgent = false;
        } else if self.board.first() >= until {
            self.state = State::Open;
            self.urgent = false;
            if !self.sack {
                self.board.forget_duplicates();
                self.control.restrain(self.board.out());
            }
        } else if acked.count > 0 && !self.sack {
            self.board.lose_first();
            self.urgent = true;
        }
    }

    /// The timer may have run out.
    pub fn on_timer(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        let (first, next) = (self.board.first(), self.board.next());
        let is_first = self.timed_out != Some(first) && !matches!(self.state, State::Recovery(_));
        self.control.on_timeout(self.board.out(), is_first);
        self.board.lose_all();
        self.estimate.back_off();
        self.state = State::Timeout(next);
        self.guard = Some(next);
        self.reduced_until = next;
        self.timed_out = Some(first);
        self.urgent = false;
        self.timeouts += 1;
        self.due = Some(now + self.estimate.rto());
    }
}
