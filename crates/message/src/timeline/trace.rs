//! What all ranks did, on one time, as it is written for Chrome and Perfetto and as a table.
//!
//! Model:   rank 0 asks one rank after the other for its recording and moves its times to its own clock. In the trace a rank is a
//!          process, whose number is one more than the rank's (viewers take 0 for what is idle), with one thread. Phases, calls and
//!          holds are complete events (`ph` is `X`) that nest; messages of an exchange, a test or a wait are instants (`i`).
//!          From the call that sent a message an arrow (`s`, `f`) goes to the one that received it.
//! Source:  the Trace Event Format (Google, 2016), JSON object form: `traceEvents` of `name`, `cat`, `ph`, `ts`, `dur`, `pid`,
//!          `tid`, `args`, and metadata events (`M`) that name processes. Deviations: none.
//! Units:   in the trace microseconds with three digits behind the point, as its format has it; in the table nanoseconds. Both from
//!          the first event of all ranks.
//! Checked: `a_trace_of_four_ranks_has_its_fields`, `a_table_has_a_row_for_each_event`.

use std::io::{self, Write};

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use super::arrows::{Arrow, arrows};
use super::clocks::{Clocks, Course, Standing};
use super::event::{Event, What, Words};
use super::{Recording, TAG, collective_of, disorder, receive};
use crate::counted::{Direction, Timed};
use crate::{Comm, Error, Messenger, Result};

/// The schema of both forms.
pub const TRACE_SCHEMA: &str = "sonde-trace/1";

/// Events of one message to rank 0.
const PIECE: usize = 4_096;

const COLUMNS: &str = "rank,what,begin_ns,end_ns,phase,way,peer,tag,bytes,collective,failed,calls,\
                       clock_bound_ns,dropped";

/// What all ranks did, on rank 0's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// In their order.
    pub ranks: Vec<RankTrace>,
}

/// What one rank did, on rank 0's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankTrace {
    /// Its events, phases, and how many events had no room.
    pub recording: Recording,
    /// How its clock stood to rank 0's in the end.
    pub clock: Standing,
    /// By how much its times may be wrong beside rank 0's.
    pub clock_bound_ns: u64,
}

/// What a rank says before its events.
#[derive(Serialize, Deserialize)]
struct Head {
    events: u64,
    dropped: u64,
    phases: Vec<String>,
}

impl Trace {
    /// Brings what all ranks wrote down to rank 0, which has it. All ranks call it, when all messages are received. With
    /// clocks that were read before the run, times are moved along their drift.
    ///
    /// # Errors
    /// Those of the messenger; messages of the program are in the way; clocks of another number of ranks.
    pub fn gather<M: Messenger + ?Sized>(
        messenger: &mut M,
        own: Recording,
        before: Option<&Clocks>,
    ) -> Result<Option<Self>> {
        let after = Clocks::read(messenger)?;
        if messenger.rank(Comm::WORLD) > 0 {
            give(messenger, &own)?;
            return Ok(None);
        }
        let before = before.unwrap_or(&after);
        if before.ranks.len() != after.ranks.len() {
            return Err(Error::Argument {
                what: "the number of clocks read before the run",
                value: before.ranks.len().to_string(),
                wanted: format!("{}, one of each rank", after.ranks.len()),
            });
        }
        let mut ranks = Vec::with_capacity(after.ranks.len());
        let mut own = Some(own);
        for (rank, (first, last)) in before.ranks.iter().zip(&after.ranks).enumerate() {
            let recording = match own.take() {
                Some(own) => own,
                None => take(messenger, rank)?,
            };
            let course = Course {
                first: *first,
                last: *last,
            };
            ranks.push(RankTrace::new(recording, course));
        }
        Ok(Some(Self { ranks }))
    }

    /// The first begin of all.
    fn zero_ns(&self) -> u64 {
        let firsts = self
            .ranks
            .iter()
            .filter_map(|rank| rank.recording.events.first());
        firsts.map(|event| event.begin_ns).min().unwrap_or(0)
    }

    /// Writes what Chrome (`chrome://tracing`) and Perfetto show.
    ///
    /// `args` of a call or message: `phase`, and where it has them `way`, `peer`, `tag`, `bytes`, `collective`, `calls` (looks in a row that found nothing), `failed`.
    /// `otherData` has `schema`, `zero_ns` (the begin of times, by rank 0's CLOCK_MONOTONIC) and for each of `ranks` its
    /// number, `events`, `dropped`, `clock_offset_ns`, `clock_bound_ns` and `clock_is_same`.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_chrome(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut out, &Chrome(self))?;
        out.flush()
    }

    /// Writes a table: a line with the columns' names, then one for each event; what it has not is empty. `clock_bound_ns` and
    /// `dropped` are of the whole rank.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        let zero_ns = self.zero_ns();
        writeln!(out, "{COLUMNS}")?;
        for (rank, one) in self.ranks.iter().enumerate() {
            let recording = &one.recording;
            for event in &recording.events {
                writeln!(
                    out,
                    "{rank},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                    event.what.name(),
                    event.begin_ns - zero_ns,
                    event.end_ns - zero_ns,
                    quoted(&recording.phases[event.phase as usize]),
                    event.way.map_or("", way_name),
                    shown(event.peer),
                    shown(event.tag),
                    shown(moved_bytes(event)),
                    collective_of(event).map_or("", |kind| kind.name()),
                    event.is_failed,
                    event.calls,
                    one.clock_bound_ns,
                    recording.dropped,
                )?;
            }
        }
        out.flush()
    }
}

impl RankTrace {
    fn new(mut recording: Recording, course: Course) -> Self {
        for event in &mut recording.events {
            event.begin_ns = course.moved(event.begin_ns);
            event.end_ns = course.moved(event.end_ns);
        }
        Self {
            recording,
            clock: course.last,
            clock_bound_ns: course.bound_ns(),
        }
    }
}

fn give<M: Messenger + ?Sized>(messenger: &mut M, own: &Recording) -> Result<()> {
    receive(messenger, 0, &mut [])?;
    let head = Head {
        events: own.events.len() as u64,
        dropped: own.dropped,
        phases: own.phases.clone(),
    };
    let text = serde_json::to_vec(&head).expect("numbers and names can be written");
    let length = (text.len() as u64).to_le_bytes();
    messenger.send(Comm::WORLD, 0, TAG, &length)?;
    messenger.send(Comm::WORLD, 0, TAG, &text)?;
    for piece in own.events.chunks(PIECE) {
        let words: Vec<Words> = piece.iter().map(Event::words).collect();
        messenger.send(Comm::WORLD, 0, TAG, bytemuck::cast_slice(&words))?;
    }
    Ok(())
}

fn take<M: Messenger + ?Sized>(messenger: &mut M, rank: usize) -> Result<Recording> {
    /// Names of phases of a program are shorter than this.
    const HEAD_MAX: u64 = 64 << 20;
    messenger.send(Comm::WORLD, rank, TAG, &[])?;
    let mut length = [0; 8];
    receive(messenger, rank, &mut length)?;
    let length = u64::from_le_bytes(length);
    if length > HEAD_MAX {
        return Err(disorder(rank, format!("its head has {length} bytes")));
    }
    let mut text = vec![0; length as usize];
    receive(messenger, rank, &mut text)?;
    let head: Head =
        serde_json::from_slice(&text).map_err(|error| disorder(rank, error.to_string()))?;
    let mut events = Vec::new();
    let mut words = Vec::new();
    let mut left = head.events;
    while left > 0 {
        let count = left.min(PIECE as u64) as usize;
        words.resize(count, Words::default());
        receive(messenger, rank, bytemuck::cast_slice_mut(&mut words))?;
        for words in &words {
            let event = Event::of_words(*words, head.phases.len());
            events.push(event.ok_or_else(|| disorder(rank, format!("{words:?} is not an event")))?);
        }
        left -= count as u64;
    }
    Ok(Recording {
        events,
        phases: head.phases,
        dropped: head.dropped,
    })
}

const fn way_name(way: Direction) -> &'static str {
    match way {
        Direction::Sent => "sent",
        Direction::Received => "received",
    }
}

/// The bytes of what moved some.
fn moved_bytes(event: &Event) -> Option<u64> {
    (event.way.is_some() || event.kind.is_some()).then_some(event.bytes)
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

/// The trace as one object.
struct Chrome<'a>(&'a Trace);

/// Its events, one after the other.
struct Events<'a>(&'a Trace);

#[derive(Serialize)]
struct EventDocument<'a> {
    name: &'a str,
    cat: &'static str,
    ph: &'static str,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    pid: usize,
    tid: u32,
    /// The scope of an instant: its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    /// Both ends of an arrow have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    /// An arrow's end is in the event around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    args: Args<'a>,
}

#[derive(Serialize)]
struct Args<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    way: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collective: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
}

#[derive(Serialize)]
struct Other {
    schema: &'static str,
    zero_ns: u64,
    ranks: Vec<OtherRank>,
}

#[derive(Serialize)]
struct OtherRank {
    rank: usize,
    events: usize,
    dropped: u64,
    clock_offset_ns: i64,
    clock_bound_ns: u64,
    clock_is_same: bool,
}

impl Serialize for Chrome<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let ranks = self.0.ranks.iter().enumerate();
        let other = Other {
            schema: TRACE_SCHEMA,
            zero_ns: self.0.zero_ns(),
            ranks: ranks
                .map(|(rank, one)| OtherRank {
                    rank,
                    events: one.recording.events.len(),
                    dropped: one.recording.dropped,
                    clock_offset_ns: one.clock.offset_ns,
                    clock_bound_ns: one.clock_bound_ns,
                    clock_is_same: one.clock.is_same,
                })
                .collect(),
        };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("displayTimeUnit", "ns")?;
        map.serialize_entry("otherData", &other)?;
        map.serialize_entry("traceEvents", &Events(self.0))?;
        map.end()
    }
}

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let zero_ns = self.0.zero_ns();
        let all = self.0.ranks.iter().enumerate().flat_map(|(rank, one)| {
            let recording = &one.recording;
            let events = recording.events.iter();
            named(rank)
                .into_iter()
                .chain(events.map(move |event| shown_event(rank, event, recording, zero_ns)))
        });
        let arrows = arrows(&self.0.ranks).into_iter().enumerate();
        let arrows = arrows.flat_map(|(id, arrow)| shown_arrow(id, arrow, zero_ns));
        serializer.collect_seq(all.chain(arrows))
    }
}

impl Args<'_> {
    const NONE: Self = Self {
        name: None,
        sort_index: None,
        phase: None,
        way: None,
        peer: None,
        tag: None,
        bytes: None,
        collective: None,
        calls: None,
        failed: false,
    };
}

/// What names a rank's process and gives it its place.
fn named<'a>(rank: usize) -> [EventDocument<'a>; 2] {
    let event = |name, args| EventDocument {
        name,
        cat: "__metadata",
        ph: "M",
        ts: 0.0,
        dur: None,
        pid: rank + 1,
        tid: 1,
        s: None,
        id: None,
        bp: None,
        args,
    };
    let name = Args {
        name: Some(format!("rank {rank}")),
        ..Args::NONE
    };
    let place = Args {
        sort_index: Some(rank),
        ..Args::NONE
    };
    [
        event("process_name", name),
        event("process_sort_index", place),
    ]
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

/// Its two ends.
fn shown_arrow<'a>(id: usize, arrow: Arrow, zero_ns: u64) -> [EventDocument<'a>; 2] {
    let end = |ph, rank: usize, at_ns: u64, bp| EventDocument {
        name: "message",
        cat: "arrow",
        ph,
        ts: micros(at_ns - zero_ns),
        dur: None,
        pid: rank + 1,
        tid: 1,
        s: None,
        id: Some(id),
        bp,
        args: Args::NONE,
    };
    [
        end("s", arrow.from, arrow.begin_ns, None),
        end("f", arrow.to, arrow.end_ns, Some("e")),
    ]
}

fn shown_event<'a>(
    rank: usize,
    event: &Event,
    recording: &'a Recording,
    zero_ns: u64,
) -> EventDocument<'a> {
    let phase = recording.phases[event.phase as usize].as_str();
    let collective = collective_of(event).map(|kind| kind.name());
    let (name, cat) = match event.what {
        What::Phase => (phase, "phase"),
        What::Busy => ("busy", "busy"),
        What::Message => (event.way.map_or("message", way_name), "message"),
        What::Call(Timed::Collective) => (collective.unwrap_or("collective"), "call"),
        What::Call(timed) => (timed.name(), "call"),
    };
    let is_instant = event.what == What::Message;
    EventDocument {
        name,
        cat,
        ph: if is_instant { "i" } else { "X" },
        ts: micros(event.begin_ns - zero_ns),
        dur: (!is_instant).then(|| micros(event.end_ns - event.begin_ns)),
        pid: rank + 1,
        tid: 1,
        s: is_instant.then_some("t"),
        id: None,
        bp: None,
        args: Args {
            phase: Some(phase),
            way: event.way.map(way_name),
            peer: event.peer,
            tag: event.tag,
            bytes: moved_bytes(event),
            collective,
            calls: event.is_idle.then_some(event.calls),
            failed: event.is_failed,
            ..Args::NONE
        },
    }
}
