//! What is out: which segments were sent, reported, given up and sent again.
//!
//! Model:   `pipe` = segments out, less those reported or taken for lost, plus those sent again. With selective
//!          acknowledgements a segment is lost when three above it were reported; one that was sent again is lost again
//!          when segments sent three or more after it were reported. Without them each duplicate acknowledgement stands for
//!          one that has left, and only the first hole is known. A timeout takes all for lost that were not reported. A
//!          segment that arrives late without having been sent again shows how far this network reorders: from then on so
//!          many reports above make a loss, at most 300.
//! Source:  RFC 6675 §2 to §4 (`IsLost`, `SetPipe`, `NextSeg` rules 1 and 2), RFC 6582 §3.2, RFC 2018 §5; Linux up to 4.3
//!          `tcp_mark_lost_retrans` (lost retransmissions), `tcp_check_sack_reordering` (late segments). Deviations: `NextSeg` rules 3 and 4 (sending on suspicion) are
//!          left out.
//! Units:   segments, counted from 0. Each is passed over once by each pointer: the cost of an acknowledgement does not grow
//!          with the window.
//! Checked: `three_above_are_a_loss`, `a_lost_resend_is_seen`, property `counts_are_those_of_a_plain_scan`.

use sonde_units::Instant;
use std::collections::VecDeque;

/// So many reports above a segment make it lost (RFC 5681 §3.2, RFC 6675 §2), where nothing was seen late.
pub(crate) const THRESHOLD: u64 = 3;
/// Linux `net.ipv4.tcp_max_reordering`.
const THRESHOLD_MAX: u64 = 300;

#[derive(Clone, Copy)]
struct Segment {
    sent_at: Instant,
    /// Reported by a selective acknowledgement.
    sacked: bool,
    /// Taken for lost.
    lost: bool,
    /// Sent again since it was taken for lost.
    resent: bool,
    /// Never sent twice.
    once: bool,
}

/// What an acknowledgement took off.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    /// Segments.
    pub count: u64,
    /// Those of them that had not been reported before.
    pub fresh: u64,
    /// When the first of them was sent, unless one of them was sent twice.
    pub sent_at: Option<Instant>,
    /// When the first of them was sent again, if it was and had not been reported.
    pub resent_at: Option<Instant>,
    /// How far above it others had been reported.
    pub overtaken: u64,
}

/// The segments between the first unacknowledged and the next to be sent.
pub(crate) struct Scoreboard {
    first: u64,
    segments: VecDeque<Segment>,
    sacked: u64,
    lost: u64,
    resent: u64,
    /// Duplicate acknowledgements, without selective ones.
    duplicates: u64,
    /// Reported, in ascending order, with gaps between them.
    ranges: VecDeque<(u64, u64)>,
    /// All below it is reported or lost; `above` were reported from it on.
    edge: u64,
    above: u64,
    /// Nothing below it waits to be sent again.
    resend_from: u64,
    /// What was sent again, and the next new segment at that time.
    resends: VecDeque<(u64, u64)>,
    /// So many reports above make a loss.
    threshold: u64,
}

impl Scoreboard {
    /// Nothing is out.
    pub fn new() -> Self {
        Self {
            first: 0,
            segments: VecDeque::new(),
            sacked: 0,
            lost: 0,
            resent: 0,
            duplicates: 0,
            ranges: VecDeque::new(),
            edge: 0,
            above: 0,
            resend_from: 0,
            resends: VecDeque::new(),
            threshold: THRESHOLD,
        }
    }

    /// The first unacknowledged segment.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The next new segment.
    pub fn next(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    /// Segments out, reported or not.
    pub fn out(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Segments that are thought to be in the network.
    pub fn pipe(&self) -> u64 {
        let gone = self.sacked + self.lost + self.duplicates;
        (self.out() + self.resent).saturating_sub(gone)
    }

    /// Duplicate acknowledgements since the last other one.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Whether a segment is taken for lost, sent again or not.
    pub fn is_lossy(&self) -> bool {
        self.lost > 0
    }

    /// Whether a segment is taken for lost that was not sent again.
    pub fn has_lost(&self) -> bool {
        self.lost > self.resent
    }

    fn at(&mut self, seq: u64) -> &mut Segment {
        &mut self.segments[(seq - self.first) as usize]
    }

    /// The next new segment was sent.
    pub fn send(&mut self, now: Instant) {
        self.segments.push_back(Segment {
            sent_at: now,
            sacked: false,
            lost: false,
            resent: false,
            once: true,
        });
    }

    /// A lost segment was sent again.
    pub fn resend(&mut self, seq: u64, now: Instant) {
        let next = self.next();
        let segment = self.at(seq);
        (segment.sent_at, segment.resent, segment.once) = (now, true, false);
        self.resent += 1;
        self.resends.push_back((seq, next));
    }

    /// The first segment that waits to be sent again.
    pub fn first_lost(&mut self) -> Option<u64> {
        if !self.has_lost() {
            return None;
        }
        self.resend_from = self.resend_from.max(self.first);
        loop {
            let segment = *self.at(self.resend_from);
            if segment.lost && !segment.resent {
                return Some(self.resend_from);
            }
            self.resend_from += 1;
        }
    }

    /// After the highest that was reported.
    fn highest(&self) -> u64 {
        self.ranges.back().map_or(0, |range| range.1)
    }

    /// A segment arrived after others that were sent up to so many later.
    pub fn tolerate(&mut self, overtaken: u64) {
        self.threshold = self.threshold.max(overtaken + 1).min(THRESHOLD_MAX);
    }

    /// All before `next` arrived.
    pub fn acknowledge(&mut self, next: u64) -> Acked {
        let highest = self.highest();
        let mut acked = Acked::default();
        if let Some(first) = self.segments.front().filter(|_| next > self.first) {
            acked.overtaken = highest.saturating_sub(self.first + 1);
            acked.resent_at = (!first.once && !first.sacked).then_some(first.sent_at);
        }
        let mut twice = false;
        while self.first < next {
            let Some(segment) = self.segments.pop_front() else {
                break;
            };
            acked.count += 1;
            twice |= !segment.once;
            if segment.sacked {
                self.sacked -= 1;
                self.above -= u64::from(self.first >= self.edge);
            } else {
                acked.fresh += 1;
                acked.sent_at = acked.sent_at.or(Some(segment.sent_at));
                if segment.once && self.first + 1 < highest {
                    self.tolerate(highest - self.first - 1);
                }
                self.lost -= u64::from(segment.lost);
                self.resent -= u64::from(segment.resent);
            }
            self.first += 1;
        }
        if twice {
            acked.sent_at = None;
        }
        self.edge = self.edge.max(self.first);
        while self.ranges.front().is_some_and(|range| range.1 <= next) {
            self.ranges.pop_front();
        }
        if let Some(range) = self.ranges.front_mut() {
            range.0 = range.0.max(next);
        }
        while self.resends.front().is_some_and(|resend| resend.0 < next) {
            self.resends.pop_front();
        }
        acked
    }

    /// The segments from `start` to before `end` arrived; how many of them are news.
    pub fn report(&mut self, start: u64, end: u64) -> u64 {
        let (start, end) = (start.max(self.first), end.min(self.next()));
        if start >= end {
            return 0;
        }
        let highest = self.highest();
        let from = self.ranges.partition_point(|range| range.1 < start);
        let (mut place, mut seq, mut news) = (from, start, 0);
        while seq < end {
            let (known, known_end) = *self.ranges.get(place).unwrap_or(&(end, end));
            for fresh in seq..known.clamp(seq, end) {
                self.report_one(fresh, highest);
                news += 1;
            }
            seq = known_end.max(seq);
            place += 1;
        }
        if news > 0 {
            let to = self.ranges.partition_point(|range| range.0 <= end);
            if from == to {
                self.ranges.insert(from, (start, end));
            } else {
                let joined = (
                    start.min(self.ranges[from].0),
                    end.max(self.ranges[to - 1].1),
                );
                self.ranges[from] = joined;
                self.ranges.drain(from + 1..to);
            }
        }
        news
    }

    fn report_one(&mut self, seq: u64, highest: u64) {
        let segment = self.at(seq);
        let (lost, resent, once) = (segment.lost, segment.resent, segment.once);
        (segment.sacked, segment.lost, segment.resent) = (true, false, false);
        self.sacked += 1;
        self.lost -= u64::from(lost);
        self.resent -= u64::from(resent);
        self.above += u64::from(seq >= self.edge);
        if once && seq + 1 < highest {
            self.tolerate(highest - seq - 1);
        }
    }

    /// Takes for lost what has too many reported above it.
    pub fn find_lost(&mut self) {
        while self.above >= self.threshold {
            let edge = self.edge;
            let segment = self.at(edge);
            if segment.sacked {
                self.above -= 1;
            } else if !segment.lost {
                segment.lost = true;
                self.lost += 1;
                self.resend_from = self.resend_from.min(edge);
            }
            self.edge += 1;
        }
        let highest = self.highest();
        while let Some(&(seq, next)) = self.resends.front() {
            if seq >= self.first && self.at(seq).resent {
                if highest <= next + self.threshold {
                    return;
                }
                self.at(seq).resent = false;
                self.resent -= 1;
                self.resend_from = self.resend_from.min(seq);
            }
            self.resends.pop_front();
        }
    }

    /// An acknowledgement said the same again, without selective ones: one segment has left.
    pub fn duplicate(&mut self) {
        // A hole stays a hole.
        if self.duplicates + self.lost.max(1) < self.out() {
            self.duplicates += 1;
        }
    }

    /// The acknowledgement of `acked` segments filled one hole; the others were duplicates before.
    pub fn fill_hole(&mut self, acked: u64) {
        self.duplicates = self.duplicates.saturating_sub(acked.saturating_sub(1));
    }

    /// Forgets duplicate acknowledgements.
    pub fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    /// Takes the first segment for lost.
    pub fn lose_first(&mut self) {
        let first = self.first;
        if self.segments.is_empty() || self.at(first).lost {
            return;
        }
        self.at(first).lost = true;
        self.lost += 1;
        self.resend_from = first;
        self.edge = self.edge.max(first + 1);
    }

    /// Takes all for lost that were not reported.
    pub fn lose_all(&mut self) {
        // As Linux `tcp_enter_loss`: reports were there, and did not suffice.
        if self.sacked >= THRESHOLD {
            self.threshold = THRESHOLD;
        }
        for segment in &mut self.segments {
            segment.lost = !segment.sacked;
            segment.resent = false;
        }
        self.lost = self.out() - self.sacked;
        (self.resent, self.duplicates, self.above) = (0, 0, 0);
        self.edge = self.next();
        self.resend_from = self.first;
        self.resends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(count: u64) -> Scoreboard {
        let mut board = Scoreboard::new();
        for i in 0..count {
            board.send(Instant::from_nanos(i));
        }
        board
    }

    #[test]
    fn three_above_are_a_loss() {
        let mut board = sent(10);
        assert_eq!(board.report(1, 3), 2);
        board.find_lost();
        assert_eq!((board.pipe(), board.first_lost()), (8, None));
        assert_eq!(board.report(1, 4), 1);
        board.find_lost();
        assert_eq!((board.pipe(), board.first_lost()), (6, Some(0)));
        board.resend(0, Instant::from_nanos(99));
        assert_eq!((board.pipe(), board.first_lost()), (7, None));
        let acked = board.acknowledge(4);
        // One of the four was sent twice: no time can be told.
        assert_eq!((acked.count, acked.fresh, acked.sent_at), (4, 1, None));
        assert_eq!((board.first(), board.pipe()), (4, 6));
        let want = Some(Instant::from_nanos(4));
        assert_eq!(board.acknowledge(6).sent_at, want);
    }

    #[test]
    fn holes_below_three_reports_are_all_lost() {
        let mut board = sent(10);
        for seq in [1, 3, 5] {
            board.report(seq, seq + 1);
        }
        board.find_lost();
        // Three above 0, two above 2, one above 4.
        assert_eq!((board.pipe(), board.first_lost()), (6, Some(0)));
        board.report(9, 10);
        board.find_lost();
        board.resend(0, Instant::START);
        assert_eq!(board.first_lost(), Some(2));
    }

    #[test]
    fn a_lost_resend_is_seen() {
        let mut board = sent(10);
        board.report(1, 4);
        board.find_lost();
        board.resend(0, Instant::START);
        for _ in 10..14 {
            board.send(Instant::START);
        }
        board.report(10, 13);
        board.find_lost();
        // 4 to 9 have three above them; 0 may still be on its way.
        assert_eq!(board.first_lost(), Some(4));
        board.report(13, 14);
        board.find_lost();
        assert_eq!(board.first_lost(), Some(0));
    }

    #[test]
    fn a_late_segment_raises_the_threshold() {
        let mut board = sent(20);
        board.report(1, 3);
        // 0 arrives after two later ones, 4 after six.
        board.acknowledge(3);
        assert_eq!(board.threshold, 3);
        board.report(5, 7);
        board.report(10, 11);
        board.report(4, 5);
        assert_eq!(board.threshold, 7);
        // Seven above 3 now: it is lost in any case.
        board.report(11, 14);
        board.find_lost();
        assert_eq!(board.first_lost(), Some(3));
        board.lose_all();
        assert_eq!(board.threshold, 3);
    }

    #[test]
    fn a_timeout_keeps_what_was_reported() {
        let mut board = sent(10);
        board.report(2, 5);
        board.find_lost();
        board.resend(0, Instant::START);
        board.lose_all();
        assert_eq!((board.pipe(), board.first_lost()), (0, Some(0)));
        board.resend(0, Instant::START);
        board.resend(1, Instant::START);
        assert_eq!((board.pipe(), board.first_lost()), (2, Some(5)));
    }

    /// Reports and acknowledgements of any ranges, in any order.
    fn steps() -> impl Strategy<Value = Vec<(u8, u64, u64)>> {
        prop::collection::vec((0u8..6, 0u64..40, 1u64..8), 1..80)
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_plain_scan(steps in steps()) {
            let mut board = sent(20);
            for (kind, offset, length) in steps {
                let start = board.first() + offset;
                match kind {
                    0 => {
                        let out = board.out();
                        let acked = board.acknowledge((board.first() + length).min(board.next()));
                        prop_assert_eq!(board.out() + acked.count, out);
                    }
                    1 => board.send(Instant::START),
                    2 => if let Some(seq) = board.first_lost() {
                        board.resend(seq, Instant::START);
                    },
                    3 if offset == 0 => board.lose_all(),
                    _ => {
                        board.report(start, start + length);
                        board.find_lost();
                    }
                }
                let count = |is: fn(&Segment) -> bool| board.segments.iter().filter(|s| is(s)).count() as u64;
                let pipe = count(|s| !s.sacked && (!s.lost || s.resent));
                prop_assert_eq!(board.pipe(), pipe);
                prop_assert_eq!(board.sacked, count(|s| s.sacked));
                let in_ranges: u64 = board.ranges.iter().map(|range| range.1 - range.0).sum();
                prop_assert_eq!(board.sacked, in_ranges);
                let apart = board.ranges.iter().zip(board.ranges.iter().skip(1));
                prop_assert!(apart.clone().all(|(a, b)| a.1 < b.0));
                let first_lost = (board.first()..board.next())
                    .find(|seq| { let s = board.segments[(seq - board.first) as usize]; s.lost && !s.resent });
                // Whatever has three reported above it is reported or lost.
                let mut reported = 0;
                for segment in board.segments.iter().rev() {
                    prop_assert!(reported < board.threshold || segment.sacked || segment.lost);
                    reported += u64::from(segment.sacked);
                }
                prop_assert_eq!(board.first_lost(), first_lost);
            }
        }
    }
}
