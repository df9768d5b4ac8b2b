//! A trace as one short text, on its way from rank 0 to who started it.
//!
//! Model:   JSON, in which the events of a rank are one word: of each event nine numbers, the begin as what has passed since
//!          the one before, as digits of 5 bits, lowest first, a sixth bit for more to come. What has no room is left out
//!          from the end of every rank in the same part, and counted as dropped.
//! Source:  the VLQ of source maps (ECMA-426 §6) for digits and alphabet; without its sign.
//! Units:   nanoseconds, bytes; characters of the text.
//! Checked: `a_packed_trace_comes_back`, `what_is_too_long_is_dropped_from_all`, `words_that_are_no_trace_are_refused`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use serde::{Deserialize, Serialize};

use super::clocks::Standing;
use super::event::{Event, Words};
use super::trace::{RankTrace, Trace};
use super::{Recording, disorder};
use crate::Result;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BITS: u32 = 5;
const MORE: u64 = 1 << BITS;
/// Numbers of an event.
const NUMBERS: usize = 9;
/// What is kept of a trace that is too long, beside its part: events differ in their length.
const MARGIN: (usize, usize) = (31, 32);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackedRank {
    phases: Vec<String>,
    dropped: u64,
    clock: Standing,
    clock_bound_ns: u64,
    events: String,
}

impl Trace {
    /// As a text of at most so many characters, unless the names of phases alone are longer. What has no room is dropped.
    pub fn packed(mut self, most: usize) -> String {
        loop {
            let text = self.text();
            let count = |rank: &RankTrace| rank.recording.events.len();
            if text.len() <= most || self.ranks.iter().all(|rank| count(rank) == 0) {
                return text;
            }
            let (part, of) = MARGIN;
            let room = (most as u128).saturating_mul(part as u128);
            let taken = (text.len() as u128).saturating_mul(of as u128);
            for rank in &mut self.ranks {
                let had = count(rank);
                let kept = (had as u128).saturating_mul(room).checked_div(taken);
                rank.recording.events.truncate(kept.unwrap_or(0) as usize);
                let gone = had.saturating_sub(count(rank)) as u64;
                rank.recording.dropped = rank.recording.dropped.saturating_add(gone);
            }
        }
    }

    fn text(&self) -> String {
        let ranks = self.ranks.iter().map(|rank| PackedRank {
            phases: rank.recording.phases.clone(),
            dropped: rank.recording.dropped,
            clock: rank.clock,
            clock_bound_ns: rank.clock_bound_ns,
            events: word(&rank.recording.events),
        });
        let ranks: Vec<PackedRank> = ranks.collect();
        // Numbers and names can be written.
        serde_json::to_string(&ranks).unwrap_or_default()
    }

    /// What [`packed`](Self::packed) gave.
    ///
    /// # Errors
    /// It is none.
    pub fn unpacked(text: &str) -> Result<Self> {
        let ranks: Vec<PackedRank> =
            serde_json::from_str(text).map_err(|error| disorder(0, error.to_string()))?;
        let ranks = ranks.into_iter().enumerate().map(|(rank, packed)| {
            let events = events(&packed.events, packed.phases.len());
            let events = events.ok_or_else(|| disorder(rank, "its word has no events".into()))?;
            Ok(RankTrace {
                recording: Recording {
                    events,
                    phases: packed.phases,
                    dropped: packed.dropped,
                },
                clock: packed.clock,
                clock_bound_ns: packed.clock_bound_ns,
            })
        });
        Ok(Self {
            ranks: ranks.collect::<Result<_>>()?,
        })
    }
}

/// Numbers of all ones are none, and short so.
const fn half(half: u32) -> u64 {
    half.wrapping_add(1) as u64
}

fn word(events: &[Event]) -> String {
    let mut text = String::new();
    let mut last_ns = 0;
    for event in events {
        let [begin_ns, end_ns, bytes, peer_tag, calls_phase, small] = event.words();
        // The order is that of the begins; were it not, the sum would still come back.
        for number in [
            begin_ns.wrapping_sub(last_ns),
            end_ns.saturating_sub(begin_ns),
            bytes,
            half((peer_tag >> 32) as u32),
            half(peer_tag as u32),
            calls_phase >> 32,
            u64::from(calls_phase as u32),
            u64::from(small as u16),
            small >> 16,
        ] {
            digits(number, &mut text);
        }
        last_ns = begin_ns;
    }
    text
}

fn digits(mut number: u64, text: &mut String) {
    while number >= MORE {
        text.push(digit((number % MORE) | MORE));
        number >>= BITS;
    }
    text.push(digit(number));
}

/// The alphabet has two digits for each number below [`MORE`].
fn digit(number: u64) -> char {
    let digit = ALPHABET.get(number as usize).or(ALPHABET.first());
    char::from(digit.copied().unwrap_or(b'?'))
}

fn events(word: &str, phases: usize) -> Option<Vec<Event>> {
    let mut all = Vec::new();
    let mut left = word.bytes();
    let mut last_ns = 0_u64;
    while left.len() > 0 {
        let mut numbers = [0; NUMBERS];
        for number in &mut numbers {
            *number = value(&mut left)?;
        }
        let [since, took, bytes, peer, tag, calls, phase, low, high] = numbers;
        let is_half = |number: u64| number <= u64::from(u32::MAX);
        let are_halves = [peer, tag, calls, phase].into_iter().all(is_half);
        if !are_halves || low > u64::from(u16::MAX) || high >= 1 << 48 {
            return None;
        }
        let begin_ns = last_ns.wrapping_add(since);
        let own = |half: u64| u64::from((half as u32).wrapping_sub(1));
        let words: Words = [
            begin_ns,
            begin_ns.checked_add(took)?,
            bytes,
            own(peer) << 32 | own(tag),
            calls << 32 | phase,
            high << 16 | low,
        ];
        all.push(Event::of_words(words, phases)?);
        last_ns = begin_ns;
    }
    Some(all)
}

fn value(digits: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut sum, mut shift) = (0_u64, 0);
    loop {
        let digit = digits.next()?;
        let digit = ALPHABET.iter().position(|known| *known == digit)? as u64;
        let part = (digit % MORE).checked_shl(shift)?;
        // A digit beyond the 64th bit.
        if part.checked_shr(shift) != Some(digit % MORE) {
            return None;
        }
        sum |= part;
        if digit < MORE {
            return Some(sum);
        }
        shift = u32::saturating_add(shift, BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted::{Direction, Timed};
    use proptest::prelude::*;

    fn event(begin_ns: u64, took_ns: u64, bytes: u64, peer: Option<u32>) -> Event {
        Event {
            begin_ns,
            end_ns: begin_ns + took_ns,
            bytes,
            peer,
            tag: peer,
            what: super::super::What::Call(Timed::Send),
            way: peer.map(|_| Direction::Sent),
            calls: 1,
            ..Event::NONE
        }
    }

    fn trace(events: Vec<Event>) -> Trace {
        let clock = Standing {
            at_ns: 5,
            offset_ns: -7,
            bound_ns: 3,
            is_same: false,
        };
        let rank = RankTrace {
            recording: Recording {
                events,
                phases: vec!["a \"b\"".into()],
                dropped: 2,
            },
            clock,
            clock_bound_ns: 3,
        };
        Trace {
            ranks: vec![rank.clone(), rank],
        }
    }

    proptest! {
        #[test]
        fn a_packed_trace_comes_back(all in prop::collection::vec((0_u64..1 << 62, 0_u64..1 << 40, any::<u64>(), prop::option::of(0_u32..u32::MAX)), 0..40)) {
            let mut all: Vec<Event> = all.into_iter().map(|(begin, took, bytes, peer)| event(begin, took, bytes, peer)).collect();
            all.sort_by_key(|event| event.begin_ns);
            let whole = trace(all);
            let text = whole.clone().packed(usize::MAX);
            prop_assert_eq!(Trace::unpacked(&text).unwrap(), whole);
        }

        #[test]
        fn words_that_are_no_trace_are_refused(word in "[A-Za-z0-9+/ ]{0,60}") {
            // Whatever it is, it is events that give the same word again, or none.
            if let Some(all) = events(&word, 3) {
                let again = super::word(&all);
                prop_assert_eq!(events(&again, 3), Some(all));
            }
        }
    }

    #[test]
    fn what_is_too_long_is_dropped_from_all() {
        let all = (0..10_000).map(|at| event(at * 1_000, 700, at, Some(at as u32 % 4)));
        let whole = trace(all.collect());
        let text = whole.clone().packed(20_000);
        assert!((10_000..=20_000).contains(&text.len()), "{}", text.len());
        let cut = Trace::unpacked(&text).unwrap();
        for (cut, whole) in cut.ranks.iter().zip(&whole.ranks) {
            let kept = cut.recording.events.len();
            assert_eq!(cut.recording.events, whole.recording.events[..kept]);
            assert_eq!(cut.recording.dropped, 2 + 10_000 - kept as u64);
        }
        for text in ["", "{}", "[{}]", "[1]"] {
            assert!(Trace::unpacked(text).is_err(), "{text}");
        }
    }
}
