//! One entry as a record of 48 bytes, little endian.
//!
//! Model:   time 0, kind 40. An offer: id 8, flow 16, length 24 (4 bytes), sender 32, port of `Resolve` and `Routed` 34, destination 36,
//!          admission 41, kind of frame 42, class 43, ECN 44, kind of destination 45, TTL 46, whole 47. A command: `command`. A delivery: id
//!          8, real time 16 (all ones: none), MTU of an answer 24, port 32, interfaces of routers 34 and 36, mark 41, edit 42, answer 43,
//!          routers passed 44. A loss: id 8, port 32, place 41, cause 42. All else is 0.
//! Checked: property `any_entry_round_trips`, property `any_record_is_read_or_refused`, `the_tables_follow_the_numbers`.

use super::Entry;
use crate::{
    Admission, Answer, Cause, Class, Ecn, Edit, Frame, FrameId, GroupId, Kind, Mark, Piece, Place,
    Port, Routed, To,
};
use sonde_units::{Bytes, Instant};

/// Bytes of a record.
pub const RECORD: usize = 48;
/// Times up to 106 days, so that no sum with a span of a network overflows.
const TIME_MAX: u64 = u64::MAX / 2;
const NO_TIME: u64 = u64::MAX;

impl Entry {
    /// Its record.
    pub fn encode(&self) -> [u8; RECORD] {
        let mut r = Record([0; RECORD]);
        r.u64(0, self.at().as_picos());
        match *self {
            Self::Offer {
                frame, admission, ..
            } => {
                r.byte(TAG, 1);
                r.byte(41, u8::from(admission == Admission::Taken));
                r.frame(&frame);
            }
            Self::Command {
                number, command, ..
            } => {
                r.byte(TAG, 2);
                r.u16(46, number);
                r.command(&command);
            }
            Self::Deliver {
                id,
                to,
                mark,
                edit,
                actual,
                ..
            } => {
                r.byte(TAG, 3);
                r.u64(8, id.0);
                r.u64(16, actual.map_or(NO_TIME, Instant::as_picos));
                r.u16(32, to.0);
                r.byte(41, mark as u8);
                r.edit(&edit);
            }
            Self::Lost {
                id,
                to,
                place,
                cause,
                ..
            } => {
                r.byte(TAG, 4);
                r.u64(8, id.0);
                r.u16(32, to.0);
                r.byte(41, place as u8);
                r.byte(42, cause as u8);
            }
            Self::End { .. } => r.byte(TAG, 5),
        }
        r.0
    }

    /// The entry of a record.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence about the record.
    pub fn decode(bytes: &[u8; RECORD]) -> Result<Self, &'static str> {
        let r = Record(*bytes);
        let at = r.time(0)?;
        let (id, to) = (FrameId(r.read_u64(8)), Port(r.read_u16(32)));
        let entry = match r.0[TAG] {
            1 => Self::Offer {
                at,
                frame: r.read_frame()?,
                admission: pick(&[Admission::Blocked, Admission::Taken], r.0[41])
                    .ok_or("has an unknown admission")?,
            },
            2 => Self::Command {
                at,
                number: r.read_u16(46),
                command: r.read_command()?,
            },
            3 => Self::Deliver {
                at,
                id,
                to,
                mark: pick(&MARKS, r.0[41]).ok_or("has an unknown mark")?,
                edit: r.read_edit()?,
                actual: if r.read_u64(16) == NO_TIME {
                    None
                } else {
                    Some(r.time(16)?)
                },
            },
            4 => Self::Lost {
                at,
                id,
                to,
                place: pick(&PLACES, r.0[41]).ok_or("has an unknown place")?,
                cause: pick(&CAUSES, r.0[42]).ok_or("has an unknown cause")?,
            },
            5 => Self::End { at },
            _ => return Err("is of an unknown kind"),
        };
        if entry.encode() == *bytes {
            Ok(entry)
        } else {
            Err("has bytes set that its kind does not use")
        }
    }
}

const TAG: usize = 40;
const MARKS: [Mark; 3] = [Mark::Ok, Mark::Ce, Mark::Corrupt];
const PLACES: [Place; 7] = [
    Place::Station,
    Place::Path,
    Place::Output,
    Place::Medium,
    Place::Receiver,
    Place::Bridge,
    Place::Router,
];
const CAUSES: [Cause; 16] = [
    Cause::TooLong,
    Cause::Overflow,
    Cause::Random,
    Cause::NoCircuit,
    Cause::NoBroadcast,
    Cause::NoSuchPort,
    Cause::Collisions,
    Cause::Discarded,
    Cause::Policed,
    Cause::Rejected,
    Cause::LinkDown,
    Cause::HostDown,
    Cause::Parted,
    Cause::Restart,
    Cause::Expired,
    Cause::Misdelivered,
];
const ECNS: [Ecn; 3] = [Ecn::NotCapable, Ecn::Capable, Ecn::Experienced];

fn pick<T: Copy>(known: &[T], index: u8) -> Option<T> {
    known.get(usize::from(index)).copied()
}

/// Bytes with numbers in them.
pub(super) struct Record(pub(super) [u8; RECORD]);

impl Record {
    pub(super) fn byte(&mut self, at: usize, value: u8) {
        self.put(at, [value]);
    }
    pub(super) fn u16(&mut self, at: usize, value: u16) {
        self.put(at, value.to_le_bytes());
    }
    pub(super) fn u64(&mut self, at: usize, value: u64) {
        self.put(at, value.to_le_bytes());
    }
    pub(super) fn u32(&mut self, at: usize, value: u32) {
        self.put(at, value.to_le_bytes());
    }
    /// Every place of the layout lies within a record: `any_entry_round_trips` would see one that did not.
    fn put<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        if let Some(place) = self.0.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = value;
        }
    }
    fn read<const N: usize>(&self, at: usize) -> [u8; N] {
        let place = self.0.get(at..).and_then(<[u8]>::first_chunk);
        place.copied().unwrap_or([0; N])
    }
    pub(super) fn read_u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.read(at))
    }
    pub(super) fn read_u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.read(at))
    }
    pub(super) fn read_u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.read(at))
    }

    pub(super) fn time(&self, at: usize) -> Result<Instant, &'static str> {
        let picos = self.read_u64(at);
        if picos > TIME_MAX {
            return Err("has a time beyond 106 days");
        }
        Ok(Instant::from_picos(picos))
    }

    fn frame(&mut self, frame: &Frame) {
        self.u64(8, frame.id.0);
        self.u64(16, frame.flow);
        self.u64(24, frame.len.0);
        self.u16(32, frame.from.0);
        let (kind, asked) = match frame.kind {
            Kind::Ip => (0, 0),
            Kind::Arp => (1, 0),
            Kind::Resolve(port) => (2, port.0),
            Kind::Other => (3, 0),
            Kind::Routed(routed) => {
                self.byte(46, routed.ttl);
                self.byte(47, u8::from(routed.is_whole));
                (4, routed.to.0)
            }
        };
        let (to, place) = match frame.to {
            To::One(port) => (0, u32::from(port.0)),
            To::All => (1, 0),
            To::Group(group) => (2, group.0),
            To::Unknown => (3, 0),
        };
        self.u16(34, asked);
        self.u32(36, place);
        self.byte(42, kind);
        self.byte(43, frame.class.0);
        self.byte(44, frame.ecn as u8);
        self.byte(45, to);
    }

    fn edit(&mut self, edit: &Edit) {
        let (kind, by, hops) = match *edit {
            Edit::None => return,
            Edit::Routed { by, hops, piece } => {
                if let Some(Piece { offset, len }) = piece {
                    self.u16(24, len);
                    self.u16(36, offset);
                }
                (1, by, hops)
            }
            Edit::Answer { of, by, hops, what } => {
                let (answer, mtu) = match what {
                    Answer::Echo => (0, 0),
                    Answer::TimeExceeded => (1, 0),
                    Answer::TooLong { mtu } => (2, mtu),
                };
                self.u16(24, mtu);
                self.u16(36, of.0);
                self.byte(43, answer);
                (2, by, hops)
            }
        };
        self.u16(34, by.0);
        self.byte(42, kind);
        self.byte(44, hops);
    }

    fn read_edit(&self) -> Result<Edit, &'static str> {
        let mtu = self.read_u16(24);
        let answers = [Answer::Echo, Answer::TimeExceeded, Answer::TooLong { mtu }];
        let what = pick(&answers, self.0[43]).ok_or("has an unknown answer")?;
        let (by, of, hops) = (Port(self.read_u16(34)), Port(self.read_u16(36)), self.0[44]);
        // No piece is empty.
        let (offset, len) = (of.0, mtu);
        let piece = (len > 0).then_some(Piece { offset, len });
        let edits = [
            Edit::None,
            Edit::Routed { by, hops, piece },
            Edit::Answer { of, by, hops, what },
        ];
        pick(&edits, self.0[42]).ok_or("has an unknown edit")
    }

    fn read_frame(&self) -> Result<Frame, &'static str> {
        let len = self.read_u64(24);
        if len > u64::from(u32::MAX) {
            return Err("has a frame longer than 4 GiB");
        }
        let place = self.read_u32(36);
        let asked = Port(self.read_u16(34));
        let routed = Routed {
            to: asked,
            ttl: self.0[46],
            is_whole: self.0[47] != 0,
        };
        let kinds = [
            Kind::Ip,
            Kind::Arp,
            Kind::Resolve(asked),
            Kind::Other,
            Kind::Routed(routed),
        ];
        // What does not fit into a port is told by the comparison of bytes.
        let one = To::One(Port(place as u16));
        let ends = [one, To::All, To::Group(GroupId(place)), To::Unknown];
        Ok(Frame {
            id: FrameId(self.read_u64(8)),
            from: Port(self.read_u16(32)),
            to: pick(&ends, self.0[45]).ok_or("has an unknown kind of destination")?,
            len: Bytes(len),
            kind: pick(&kinds, self.0[42]).ok_or("has an unknown kind of frame")?,
            class: Class(self.0[43]),
            ecn: pick(&ECNS, self.0[44]).ok_or("has an unknown ECN mark")?,
            flow: self.read_u64(16),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ports() -> impl Strategy<Value = Port> {
        (0u16..4).prop_map(Port)
    }

    fn frames() -> impl Strategy<Value = Frame> {
        let to = prop_oneof![
            any::<u16>().prop_map(|port| To::One(Port(port))),
            Just(To::All),
            any::<u32>().prop_map(|group| To::Group(GroupId(group))),
            Just(To::Unknown),
        ];
        let kind = prop_oneof![
            Just(Kind::Ip),
            Just(Kind::Arp),
            any::<u16>().prop_map(|port| Kind::Resolve(Port(port))),
            Just(Kind::Other),
            (any::<u16>(), any::<u8>(), any::<bool>()).prop_map(|(to, ttl, is_whole)| {
                Kind::Routed(Routed {
                    to: Port(to),
                    ttl,
                    is_whole,
                })
            }),
        ];
        let ecn = (0u8..3).prop_map(|i| ECNS[usize::from(i)]);
        let numbers = (any::<u64>(), any::<u32>(), any::<u8>(), any::<u64>());
        (numbers, ports(), to, kind, ecn).prop_map(
            |((id, len, class, flow), from, to, kind, ecn)| Frame {
                id: FrameId(id),
                from,
                to,
                len: Bytes(u64::from(len)),
                kind,
                class: Class(class),
                ecn,
                flow,
            },
        )
    }

    fn edits() -> impl Strategy<Value = Edit> {
        let answer = prop_oneof![
            Just(Answer::Echo),
            Just(Answer::TimeExceeded),
            any::<u16>().prop_map(|mtu| Answer::TooLong { mtu }),
        ];
        let port = || any::<u16>().prop_map(Port);
        prop_oneof![
            Just(Edit::None),
            (port(), any::<u8>()).prop_map(|(by, hops)| Edit::Routed {
                by,
                hops,
                piece: None
            }),
            (port(), any::<u8>(), any::<u16>(), 1..=u16::MAX).prop_map(
                |(by, hops, offset, len)| Edit::Routed {
                    by,
                    hops,
                    piece: Some(Piece { offset, len })
                }
            ),
            (port(), port(), any::<u8>(), answer).prop_map(|(of, by, hops, what)| Edit::Answer {
                of,
                by,
                hops,
                what
            }),
        ]
    }

    /// Entries of a network with four ports, in any order.
    pub fn entries() -> impl Strategy<Value = Entry> {
        let at = || (0..=TIME_MAX).prop_map(Instant::from_picos);
        let index = |below: usize| 0..below;
        prop_oneof![
            (at(), frames(), any::<bool>()).prop_map(|(at, frame, taken)| Entry::Offer {
                at,
                frame,
                admission: if taken {
                    Admission::Taken
                } else {
                    Admission::Blocked
                },
            }),
            (at(), any::<u16>(), super::super::command::tests::commands()).prop_map(
                |(at, number, command)| Entry::Command {
                    at,
                    number,
                    command
                }
            ),
            (
                at(),
                any::<u64>(),
                ports(),
                index(3),
                prop::option::of(at()),
                edits()
            )
                .prop_map(|(at, id, to, mark, actual, edit)| Entry::Deliver {
                    at,
                    id: FrameId(id),
                    to,
                    mark: MARKS[mark],
                    edit,
                    actual,
                }),
            (at(), any::<u64>(), ports(), index(7), index(15)).prop_map(
                |(at, id, to, place, cause)| Entry::Lost {
                    at,
                    id: FrameId(id),
                    to,
                    place: PLACES[place],
                    cause: CAUSES[cause],
                }
            ),
            at().prop_map(|at| Entry::End { at }),
        ]
    }

    #[test]
    fn the_tables_follow_the_numbers() {
        for (i, mark) in MARKS.into_iter().enumerate() {
            assert_eq!(mark as usize, i);
        }
        for (i, place) in PLACES.into_iter().enumerate() {
            assert_eq!(place as usize, i);
        }
        for (i, cause) in CAUSES.into_iter().enumerate() {
            assert_eq!(cause as usize, i);
        }
        for (i, ecn) in ECNS.into_iter().enumerate() {
            assert_eq!(ecn as usize, i);
        }
    }

    proptest! {
        #[test]
        fn any_entry_round_trips(entry in entries()) {
            let bytes = entry.encode();
            let read = Entry::decode(&bytes).unwrap();
            prop_assert_eq!(format!("{:?}", read), format!("{:?}", entry));
            prop_assert_eq!(read.encode(), bytes);
        }

        /// What is read of any record is written back as it was.
        #[test]
        fn any_record_is_read_or_refused(mut bytes in prop::array::uniform32(any::<u8>()), tag in 0u8..8, small in prop::array::uniform16(0u8..4)) {
            bytes[7] &= 0x7f;
            let mut record = [0; RECORD];
            record[..32].copy_from_slice(&bytes);
            record[32..].copy_from_slice(&small);
            record[TAG] = tag;
            if let Ok(entry) = Entry::decode(&record) {
                prop_assert_eq!(entry.encode(), record);
            }
        }
    }
}
