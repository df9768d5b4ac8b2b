//! The receiving end of a connection: what has arrived, and when to say so.
//!
//! Model:   every second segment in order is acknowledged at once, a lone one after a delay, the first few at once; so is
//!          every segment that is out of order, fills a gap or came before. Without a gap an acknowledgement says what is
//!          next; with gaps it reports up to four ranges above it (three beside time stamps), the latest first, then the lowest.
//! Source:  RFC 5681 §4.2, RFC 2018 §3 and §4, RFC 7323 §4.3 (which time stamp returns), RFC 3168 §6.1.3 (a mark is echoed
//!          until the sender says that it heard). Deviations: no duplicate reports (RFC 2883); a program that reads at once.
//! Units:   segments.
//! Checked: `gaps_are_reported_latest_first`, `pairs_are_acknowledged`, property `each_segment_is_counted_once`.

use super::Sender;
use sonde_units::{Instant, Span};
use std::collections::VecDeque;

/// The most ranges that fit into the options of a segment.
pub(crate) const BLOCKS_MAX: usize = 4;

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// All before it arrived.
    pub next: u64,
    blocks: [(u64, u64); BLOCKS_MAX],
    count: usize,
    /// When the segment was sent that this answers.
    pub echo: Instant,
    /// A mark of congestion was seen.
    pub congested: bool,
}

impl Ack {
    /// Ranges above `next` that arrived.
    pub fn blocks(&self) -> &[(u64, u64)] {
        &self.blocks[..self.count]
    }

    /// Bytes of options for them, in whole words.
    pub fn options(&self) -> u64 {
        match self.count as u64 {
            0 => 0,
            count => 4 + 8 * count,
        }
    }
}

/// What the arrival of a segment means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// It had not arrived before.
    pub fresh: bool,
    /// Say so at once.
    pub acknowledge: bool,
}

/// The receiving end.
pub(crate) struct Receive {
    next: u64,
    acknowledged: u64,
    /// What arrived above `next`, in ascending order, with gaps between.
    ranges: VecDeque<(u64, u64)>,
    /// A segment of each range that was touched lately, the latest first.
    recent: [u64; BLOCKS_MAX],
    recent_count: usize,
    blocks_max: usize,
    quick_acks: u64,
    delay: Span,
    due: Option<Instant>,
    echo: Instant,
    congested: bool,
}

impl Receive {
    /// Reports at most `blocks_max` ranges, at most [`BLOCKS_MAX`].
    pub fn new(sender: &Sender, blocks_max: usize) -> Self {
        Self {
            next: 0,
            acknowledged: 0,
            ranges: VecDeque::new(),
            recent: [0; BLOCKS_MAX],
            recent_count: 0,
            blocks_max: blocks_max.min(BLOCKS_MAX),
            quick_acks: sender.quick_acks,
            delay: sender.delayed_ack,
            due: None,
            echo: Instant::START,
            congested: false,
        }
    }

    /// All before it arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// When a lone segment must be acknowledged; none where there is no such.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A segment arrived that was sent at `sent_at`.
    pub fn on_segment(&mut self, now: Instant, seq: u64, sent_at: Instant) -> Arrival {
        if seq <= self.acknowledged {
            self.echo = self.echo.max(sent_at);
        }
        if seq != self.next {
            let fresh = seq > self.next && self.keep(seq);
            return Arrival {
                fresh,
                acknowledge: true,
            };
        }
        self.next += 1;
        let has_gap = !self.ranges.is_empty();
        if self
            .ranges
            .front()
            .is_some_and(|range| range.0 == self.next)
        {
            let (_, end) = self.ranges.pop_front().expect("there is a first");
            self.next = end;
        }
        let acknowledge = if self.quick_acks > 0 || self.next - self.acknowledged >= 2 {
            self.quick_acks = self.quick_acks.saturating_sub(1);
            true
        } else {
            has_gap
        };
        if !acknowledge {
            self.due = Some(now + self.delay);
        }
        Arrival {
            fresh: true,
            acknowledge,
        }
    }

    /// The network marked a segment (`marked`), or the sender says that it heard of an earlier mark (`heard`).
    pub fn on_mark(&mut self, marked: bool, heard: bool) {
        self.congested = marked || (self.congested && !heard);
    }

    /// Keeps a segment that is not the next; whether it is new.
    fn keep(&mut self, seq: u64) -> bool {
        let place = self.ranges.partition_point(|range| range.1 < seq);
        let touches = |range: Option<&(u64, u64)>| range.is_some_and(|range| range.0 <= seq + 1);
        let fresh = if touches(self.ranges.get(place)) {
            let (start, end) = self.ranges[place];
            if seq + 1 == start {
                self.ranges[place].0 = seq;
            } else if seq == end {
                self.ranges[place].1 = seq + 1;
                if let Some(&(_, end)) = self.ranges.get(place + 1).filter(|r| r.0 == seq + 1) {
                    self.ranges[place].1 = end;
                    self.ranges.remove(place + 1);
                }
            }
            seq + 1 == start || seq == end
        } else {
            self.ranges.insert(place, (seq, seq + 1));
            true
        };
        self.touch(seq);
        fresh
    }

    /// The range that holds `seq`, if one does.
    fn range(&self, seq: u64) -> Option<(u64, u64)> {
        let place = self.ranges.partition_point(|range| range.1 <= seq);
        let found = self.ranges.get(place).copied();
        found.filter(|range| range.0 <= seq)
    }

    /// The range of `seq` is the latest now.
    fn touch(&mut self, seq: u64) {
        let latest = self.range(seq);
        let (mut recent, mut count) = ([seq; BLOCKS_MAX], 1);
        for &other in &self.recent[..self.recent_count] {
            let range = self.range(other);
            if range.is_some() && range != latest && count < BLOCKS_MAX {
                recent[count] = other;
                count += 1;
            }
        }
        (self.recent, self.recent_count) = (recent, count);
    }

    /// What an acknowledgement would say now.
    pub fn ack(&self) -> Ack {
        let mut ack = Ack {
            next: self.next,
            blocks: [(0, 0); BLOCKS_MAX],
            count: 0,
            echo: self.echo,
            congested: self.congested,
        };
        let recent = self.recent[..self.recent_count].iter();
        let latest = recent.filter_map(|seq| self.range(*seq));
        for range in latest.chain(self.ranges.iter().copied()) {
            if ack.count == self.blocks_max {
                break;
            }
            if !ack.blocks().contains(&range) {
                ack.blocks[ack.count] = range;
                ack.count += 1;
            }
        }
        ack
    }

    /// It was sent.
    pub fn on_acknowledged(&mut self) {
        self.acknowledged = self.next;
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn receive() -> Receive {
        let sender = Sender {
            quick_acks: 0,
            ..Sender::modern()
        };
        Receive::new(&sender, 3)
    }

    fn arrive(receive: &mut Receive, seq: u64) -> bool {
        let arrival = receive.on_segment(Instant::START, seq, Instant::from_nanos(seq));
        if arrival.acknowledge {
            receive.on_acknowledged();
        }
        arrival.acknowledge
    }

    #[test]
    fn pairs_are_acknowledged() {
        let mut receive = receive();
        let said: Vec<_> = (0..4).map(|seq| arrive(&mut receive, seq)).collect();
        assert_eq!(said, [false, true, false, true]);
        // The time stamp is that of the first of the two.
        assert_eq!(receive.ack().echo, Instant::from_nanos(2));
        // 5 is missing.
        assert!(!arrive(&mut receive, 4));
        assert_eq!(receive.due(), Some(Instant::START + Span::millis(40)));
        assert!(arrive(&mut receive, 6) && receive.due().is_none());
        assert!(arrive(&mut receive, 5) && receive.next() == 7);
        assert!(arrive(&mut receive, 3) && receive.next() == 7);
        assert!(!arrive(&mut receive, 7));
    }

    #[test]
    fn gaps_are_reported_latest_first() {
        let mut receive = receive();
        for seq in [2, 6, 4, 10, 3] {
            assert!(arrive(&mut receive, seq));
        }
        let ack = receive.ack();
        assert_eq!(ack.blocks(), [(2, 5), (10, 11), (6, 7)]);
        assert_eq!((ack.next, ack.options()), (0, 28));
        arrive(&mut receive, 0);
        arrive(&mut receive, 1);
        assert_eq!(receive.ack().next, 5);
        assert_eq!(receive.ack().blocks(), [(10, 11), (6, 7)]);
    }

    #[test]
    fn a_mark_is_echoed_until_it_is_heard() {
        let mut receive = receive();
        for (marked, heard, want) in [
            (false, false, false),
            (true, false, true),
            (false, false, true),
            (false, true, false),
            (true, true, true),
        ] {
            receive.on_mark(marked, heard);
            assert_eq!(receive.ack().congested, want);
        }
    }

    proptest! {
        #[test]
        fn each_segment_is_counted_once(order in prop::collection::vec(0u64..30, 0..120)) {
            let mut receive = receive();
            let mut seen = std::collections::BTreeSet::new();
            for seq in order {
                let arrival = receive.on_segment(Instant::START, seq, Instant::START);
                prop_assert_eq!(arrival.fresh, seen.insert(seq));
                let next = (0..).find(|seq| !seen.contains(seq)).unwrap();
                prop_assert_eq!(receive.next(), next);
                let ack = receive.ack();
                for &(start, end) in ack.blocks() {
                    prop_assert!(start > next && (start..end).all(|seq| seen.contains(&seq)));
                    prop_assert!(!seen.contains(&(start - 1)) && !seen.contains(&end));
                }
                prop_assert!(ack.blocks().is_empty() == (next > *seen.last().unwrap()));
            }
        }
    }
}
