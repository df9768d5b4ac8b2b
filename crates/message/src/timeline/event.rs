//! One thing that a rank did, as it is kept and as it goes to rank 0.
//!
//! Model:   six words: begin, end, bytes, peer and tag, calls and phase, and five small numbers. A peer or tag of all ones is none.
//! Units:   nanoseconds, bytes, ranks of the world.
//! Checked: `events_come_back_from_their_words`, `words_that_are_no_event_are_refused`.

use crate::counted::{Direction, Timed};
use crate::{Kind, Status, Tag};

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A call.
    Call(Timed),
    /// A message that ended with the call before it: of an exchange, a test or a wait.
    Message,
    /// A phase of the program, around its calls.
    Phase,
    /// A hold in place of computing on a slower host.
    Busy,
}

/// Numbers of those that are no calls, behind those of [`Timed::ALL`].
const OTHERS: [What; 3] = [What::Message, What::Phase, What::Busy];

impl What {
    /// As it is written: the call's name, `message`, `phase`, `busy`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call(timed) => timed.name(),
            Self::Message => "message",
            Self::Phase => "phase",
            Self::Busy => "busy",
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Call(timed) => timed as u64,
            other => {
                let place = OTHERS.iter().position(|what| *what == other);
                (Timed::ALL.len() + place.expect("one of the others")) as u64
            }
        }
    }

    fn of_number(number: usize) -> Option<Self> {
        let call = Timed::ALL.get(number).copied().map(Self::Call);
        call.or_else(|| OTHERS.get(number.checked_sub(Timed::ALL.len())?).copied())
    }
}

/// One thing that a rank did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When it began.
    pub begin_ns: u64,
    /// When it ended, not before.
    pub end_ns: u64,
    /// The message's bytes; of a library's collective what this rank put in, of a scatter what it got.
    pub bytes: u64,
    /// The other rank of a message.
    pub peer: Option<u32>,
    /// A message's tag.
    pub tag: Option<Tag>,
    /// The number of the phase's name.
    pub phase: u32,
    /// What it was.
    pub what: What,
    /// Which way a message went; none of what moved none.
    pub way: Option<Direction>,
    /// The collective that the library made.
    pub kind: Option<Kind>,
    /// The call ended in an error.
    pub is_failed: bool,
    /// A test or a look that found nothing.
    pub is_idle: bool,
    /// How many calls it is: those in a row that found nothing are one event, from the first begin to the last end.
    pub calls: u32,
}

/// An event on its way.
pub(super) type Words = [u64; 6];

const NO: u32 = u32::MAX;

impl Event {
    /// Of no time and no meaning.
    pub(super) const NONE: Self = Self {
        begin_ns: u64::MAX,
        end_ns: u64::MAX,
        bytes: 0,
        peer: None,
        tag: None,
        phase: 0,
        what: What::Message,
        way: None,
        kind: None,
        is_failed: false,
        is_idle: false,
        calls: 1,
    };

    /// It moved this message to or from that rank of the world.
    #[inline]
    pub(super) fn moves(&mut self, way: Direction, peer: usize, status: Status) {
        self.way = Some(way);
        self.peer = Some(peer as u32);
        self.tag = Some(status.tag);
        self.bytes = status.bytes as u64;
    }

    /// Both are looks that found nothing, one after the other.
    #[inline]
    pub(super) fn goes_on_as(&self, next: &Self) -> bool {
        let are_idle = self.is_idle && next.is_idle && self.calls < u32::MAX;
        are_idle && (self.what, self.phase) == (next.what, next.phase)
    }

    pub(super) fn words(&self) -> Words {
        let (peer, tag) = (self.peer.unwrap_or(NO), self.tag.unwrap_or(NO));
        let way = self.way.map_or(0, |way| 1 + way as u64);
        let kind = self.kind.map_or(0, |kind| 1 + kind as u64);
        let small = [
            self.what.number(),
            way,
            kind,
            u64::from(self.is_failed),
            u64::from(self.is_idle),
        ];
        let small = small.into_iter().rev().fold(0, |all, one| all << 8 | one);
        [
            self.begin_ns,
            self.end_ns,
            self.bytes,
            u64::from(peer) << 32 | u64::from(tag),
            u64::from(self.calls) << 32 | u64::from(self.phase),
            small,
        ]
    }

    /// `None` where these are words of no event of so many phases.
    pub(super) fn of_words(words: Words, phases: usize) -> Option<Self> {
        let [begin_ns, end_ns, bytes, peer_tag, calls_phase, small] = words;
        let [what, way, kind, failed, idle, rest @ ..] = small.to_le_bytes().map(usize::from);
        let some = |number: u32| (number != NO).then_some(number);
        let is_sound = begin_ns <= end_ns
            && (calls_phase as u32 as usize) < phases
            && way <= 2
            && kind <= Kind::ALL.len()
            && failed <= 1
            && idle <= 1
            && rest == [0; 3];
        is_sound.then_some(())?;
        Some(Self {
            begin_ns,
            end_ns,
            bytes,
            peer: some((peer_tag >> 32) as u32),
            tag: some(peer_tag as u32),
            phase: calls_phase as u32,
            what: What::of_number(what)?,
            way: [None, Some(Direction::Sent), Some(Direction::Received)][way],
            kind: kind.checked_sub(1).map(|kind| Kind::ALL[kind]),
            is_failed: failed == 1,
            is_idle: idle == 1,
            calls: (calls_phase >> 32) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_from_their_words() {
        let calls = Timed::ALL.map(What::Call);
        for (number, what) in calls.into_iter().chain(OTHERS).enumerate() {
            for (way, kind, peer, tag) in [
                (None, None, None, None),
                (Some(Direction::Sent), Some(Kind::Barrier), Some(0), Some(0)),
                (
                    Some(Direction::Received),
                    Some(Kind::Scan),
                    Some(7),
                    Some(NO - 1),
                ),
            ] {
                let event = Event {
                    begin_ns: 5,
                    end_ns: 1 << 60,
                    bytes: number as u64,
                    peer,
                    tag,
                    phase: 3,
                    what,
                    way,
                    kind,
                    is_failed: number % 2 == 1,
                    is_idle: number % 3 == 1,
                    calls: 1 + 7 * number as u32,
                };
                assert_eq!(Event::of_words(event.words(), 4), Some(event));
                assert_eq!(Event::of_words(event.words(), 3), None);
            }
        }
        assert!(size_of::<Event>() == 56, "{}", size_of::<Event>());
    }

    #[test]
    fn words_that_are_no_event_are_refused() {
        let good = Event {
            begin_ns: 1,
            end_ns: 2,
            ..Event::NONE
        };
        let words = good.words();
        assert_eq!(Event::of_words(words, 1), Some(good));
        for (at, value) in [
            (1, 0),
            (4, 1),
            (5, 0xff),
            (5, 0x3_00),
            (5, 0xff_00_00),
            (5, 2 << 24),
            (5, 2 << 32),
            (5, 1 << 40),
        ] {
            let mut wrong = words;
            wrong[at] = value;
            assert_eq!(Event::of_words(wrong, 1), None, "{at} {value}");
        }
    }
}
