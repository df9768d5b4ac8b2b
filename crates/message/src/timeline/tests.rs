//! Programs whose course is known, beside what is counted of them.

use serde_json::Value;
use sonde_sys::cpu::thread_cpu_ns;
use sonde_units::Ratio;

use super::*;
use crate::Operation;
use crate::aged::Aged;
use crate::collectives::{Choice, Communicator, Maker};
use crate::counted::{Counted, Profile};
use crate::native::Memory;

const WORLD: Comm = Comm::WORLD;

/// Every kind of call, in two phases; as many sends as receives.
fn program(messenger: &mut dyn Messenger) {
    let (rank, size) = (messenger.rank(WORLD), messenger.size(WORLD));
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let from = Source::Rank(last);
    let mut room = [0; 64];
    messenger.phase("pairs");
    messenger.send(WORLD, next, 1, &[0; 10]).unwrap();
    messenger
        .recv(WORLD, from, Tagged::With(1), &mut room)
        .unwrap();
    let mut statuses = [envelope(0, 0, 0); 2];
    let mut ops = [
        Op::Recv {
            from,
            tag: Tagged::With(2),
            room: &mut room,
        },
        Op::Send {
            to: next,
            tag: 2,
            payload: &[0; 20],
        },
    ];
    messenger.exchange(WORLD, &mut ops, &mut statuses).unwrap();
    messenger.phase("requests, \"of\" all");
    for tag in [3, 4] {
        let mut receive = messenger
            .irecv(WORLD, from, Tagged::With(tag), vec![0; 30])
            .unwrap();
        let send = messenger.isend(WORLD, next, tag, vec![0; 30]).unwrap();
        messenger.progress().unwrap();
        if tag == 3 {
            messenger.wait(receive).unwrap();
        } else {
            while let Err(again) = messenger.test(receive).unwrap() {
                receive = again;
            }
        }
        messenger.wait(send).unwrap();
    }
    messenger.phase("pairs");
    let choice = Choice::all(Maker::Sonde).unwrap();
    let mut group = Communicator::new(messenger, WORLD, choice);
    let mut sum = [0_i64];
    group.allreduce(&[1], &mut sum, Operation::Sum).unwrap();
    assert_eq!(sum, [size as i64]);
}

/// The program of so many ranks: recordings and counts.
fn recorded(ranks: usize, room: usize) -> Vec<(Recording, Profile)> {
    Memory::run(ranks, |messenger| {
        let mut timeline = Timeline::new(Counted::new(messenger), room);
        program(&mut timeline);
        let (recording, counted) = timeline.end();
        (recording, counted.profile())
    })
}

#[test]
fn sums_are_those_of_the_counts() {
    for (recording, profile) in recorded(3, 1_000) {
        assert_eq!(recording.dropped, 0);
        for phase in &profile.phases {
            let number = recording.phases.iter().position(|name| *name == phase.name);
            let events = recording.events.iter();
            let events: Vec<_> = events
                .filter(|event| Some(event.phase as usize) == number)
                .collect();
            for calls in &phase.calls {
                let wanted = |event: &&&Event| event.what.name() == calls.call;
                let made: Vec<_> = events.iter().filter(wanted).collect();
                let count: u32 = made.iter().map(|event| event.calls).sum();
                assert_eq!(u64::from(count), calls.count, "{}", calls.call);
                let spans = made.iter().map(|event| event.end_ns - event.begin_ns);
                // The timeline is around the counts; two clocks differ by 100 ppm at the most.
                let time_ns = spans.sum::<u64>();
                assert!(
                    time_ns + time_ns / 1_000 + 100 * calls.count >= calls.time_ns,
                    "{} {time_ns} {}",
                    calls.call,
                    calls.time_ns
                );
            }
            for (way, lengths) in [
                (Direction::Sent, &phase.sent),
                (Direction::Received, &phase.received),
            ] {
                let moved = events.iter().filter(|event| event.way == Some(way));
                let (count, bytes) = moved.fold((0, 0), |(count, bytes), event| {
                    (count + 1, bytes + event.bytes)
                });
                assert_eq!(
                    (count, bytes),
                    (lengths.total.messages, lengths.total.bytes),
                    "{way:?} in {}",
                    phase.name
                );
            }
            for flow in &phase.flows {
                let way = if flow.sent {
                    Direction::Sent
                } else {
                    Direction::Received
                };
                let moved = events.iter().filter(|event| {
                    (event.way, event.peer, event.tag)
                        == (Some(way), Some(flow.rank as u32), Some(flow.tag))
                });
                assert_eq!(moved.count() as u64, flow.total.messages);
            }
        }
        let names: Vec<_> = profile.phases.iter().map(|phase| &phase.name).collect();
        assert_eq!(names, ["pairs", "requests, \"of\" all"]);
    }
}

/// Begins ascend; a span is within every one that began before it and has not ended.
fn nest(events: impl IntoIterator<Item = (u64, u64)>) {
    let mut open: Vec<(u64, u64)> = Vec::new();
    let mut last = 0;
    for (begin, end) in events {
        assert!(last <= begin && begin <= end, "{last} {begin} {end}");
        last = begin;
        while open
            .last()
            .is_some_and(|(_, until)| *until <= begin && *until < end)
        {
            open.pop();
        }
        if let Some((_, until)) = open.last() {
            assert!(end <= *until, "{begin} {end} {until}");
        }
        open.push((begin, end));
    }
}

#[test]
fn events_nest_and_ascend() {
    for (recording, _) in recorded(3, 1_000) {
        nest(
            recording
                .events
                .iter()
                .map(|event| (event.begin_ns, event.end_ns)),
        );
        let whats = recording.events.iter().map(|event| event.what);
        let phases: Vec<_> = whats.filter(|what| *what == What::Phase).collect();
        assert_eq!(phases.len(), 4, "the first one, and three that were named");
        let pair: Vec<_> = recording
            .events
            .windows(3)
            .filter(|events| events[0].what == What::Call(Timed::Exchange))
            .map(|events| [events[1], events[2]])
            .collect();
        let messages = &pair[0];
        assert_eq!(
            messages.map(|event| (event.what, event.way, event.tag, event.bytes)),
            [
                (What::Message, Some(Direction::Received), Some(2), 20),
                (What::Message, Some(Direction::Sent), Some(2), 20)
            ]
        );
    }
}

#[test]
fn what_does_not_fit_is_counted() {
    let whole = recorded(1, 1_000).remove(0).0;
    for room in [0, 1, 5] {
        let (part, _) = recorded(1, room).remove(0);
        assert_eq!(part.events.len(), room);
        // How often a request was looked at differs from run to run; of one rank it is always once.
        assert_eq!(part.dropped, (whole.events.len() - room) as u64);
        let whats = |recording: &Recording| -> Vec<_> {
            let events = recording.events.iter().take(room);
            events.map(|event| (event.what, event.bytes)).collect()
        };
        assert_eq!(whats(&part), whats(&whole));
    }
}

#[test]
fn ranks_are_those_of_the_world() {
    Memory::run(4, |messenger| {
        let mut timeline = Timeline::new(messenger, 100);
        let rank = timeline.rank(WORLD);
        let part = timeline.split(WORLD, Some(rank as u32 / 2), -(rank as i32));
        let part = part.unwrap().unwrap();
        let own = timeline.rank(part);
        timeline.send(part, 1 - own, 3, &[0; 8]).unwrap();
        timeline
            .recv(part, Source::Any, Tagged::Any, &mut [0; 8])
            .unwrap();
        let error = timeline.send(WORLD, 99, 3, &[]);
        assert!(error.is_err());
        let events = timeline.end().0.events;
        let moved: Vec<_> = events
            .iter()
            .map(|event| (event.what.name(), event.peer, event.is_failed))
            .collect();
        let peer = Some(rank as u32 ^ 1);
        let wanted = [
            ("phase", None, false),
            ("split", None, false),
            ("send", peer, false),
            ("recv", peer, false),
            ("send", None, true),
        ];
        assert_eq!(moved, wanted);
    });
}

fn traced(ranks: usize) -> Trace {
    let traces = Memory::run(ranks, |messenger| {
        let before = Clocks::read(messenger).unwrap();
        let timeline = Timeline::new(messenger, 1_000);
        let mut aged = Aged::new(timeline, Ratio::new(200, 1)).unwrap();
        let begin = thread_cpu_ns();
        while thread_cpu_ns() < begin + 1_000_000 {
            std::hint::spin_loop();
        }
        program(&mut aged);
        let (recording, messenger) = aged.into_inner().end();
        Trace::gather(messenger, recording, Some(&before)).unwrap()
    });
    let mut traces = traces.into_iter();
    let first = traces.next().unwrap();
    assert!(traces.all(|trace| trace.is_none()), "only rank 0 has it");
    first.unwrap()
}

#[test]
fn a_trace_of_four_ranks_has_its_fields() {
    let trace = traced(4);
    let mut text = Vec::new();
    trace.write_chrome(&mut text).unwrap();
    let value: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value["displayTimeUnit"], "ns");
    let other = &value["otherData"];
    assert_eq!(other["schema"], TRACE_SCHEMA);
    assert!(other["zero_ns"].as_u64().unwrap() > 0);
    let events = value["traceEvents"].as_array().unwrap();
    for rank in 0..4 {
        let told = &other["ranks"][rank];
        assert_eq!((&told["rank"], &told["dropped"]), (&rank.into(), &0.into()));
        assert!(told["clock_bound_ns"].is_u64() && told["clock_offset_ns"].is_i64());
        assert!(told["clock_is_same"].is_boolean());
        let own: Vec<_> = events
            .iter()
            .filter(|event| event["pid"] == rank + 1 && event["cat"] != "arrow")
            .collect();
        assert_eq!(own[0]["args"]["name"], format!("rank {rank}"));
        assert_eq!((&own[0]["ph"], &own[1]["ph"]), (&"M".into(), &"M".into()));
        assert_eq!(own.len() - 2, told["events"].as_u64().unwrap() as usize);
        check(&own[2..], rank);
    }
    assert_eq!(
        events
            .iter()
            .map(|event| &event["pid"])
            .max_by_key(|pid| pid.as_u64()),
        Some(&4.into())
    );
    // Every message of the ring and of the sum was sent and received once.
    let count = |is: &dyn Fn(&Value) -> bool| events.iter().filter(|event| is(event)).count();
    let sent = count(&|event| event["args"]["way"] == "sent");
    assert_eq!(sent, count(&|event| event["args"]["way"] == "received"));
    for ph in ["s", "f"] {
        let of = |event: &Value| event["cat"] == "arrow" && event["ph"] == ph;
        assert_eq!(count(&of), sent, "{ph}");
    }
}

#[test]
fn arrows_join_sends_and_receives_in_their_order() {
    let trace = traced(4);
    let all = arrows::arrows(&trace.ranks);
    assert!(!all.is_empty());
    for arrow in &all {
        assert!(arrow.from != arrow.to && arrow.from < 4 && arrow.to < 4);
        // Nothing is received before it is sent; the clocks of threads are one.
        assert!(arrow.begin_ns <= arrow.end_ns, "{arrow:?}");
    }
    for from in 0..4 {
        for to in 0..4 {
            let of = all
                .iter()
                .filter(|arrow| (arrow.from, arrow.to) == (from, to));
            let ends: Vec<u64> = of.map(|arrow| arrow.end_ns).collect();
            assert!(ends.is_sorted(), "{from} to {to}: {ends:?}");
        }
    }
    // A send whose receive was not kept has none.
    let mut cut = trace;
    for rank in &mut cut.ranks[1..] {
        rank.recording
            .events
            .retain(|event| event.way != Some(Direction::Received));
    }
    assert!(arrows::arrows(&cut.ranks).iter().all(|arrow| arrow.to == 0));
}

/// Fields of one rank's events.
fn check(own: &[&Value], rank: usize) {
    let nanos = |value: &Value| (value.as_f64().unwrap() * 1_000.0).round() as u64;
    nest(own.iter().map(|event| {
        let begin = nanos(&event["ts"]);
        match event["ph"].as_str().unwrap() {
            "X" => (begin, begin + nanos(&event["dur"])),
            "i" => {
                assert_eq!(event["s"], "t");
                (begin, begin)
            }
            other => panic!("{other}"),
        }
    }));
    for event in own {
        assert!(event["name"].is_string() && event["tid"] == 1);
        assert!(event["args"]["phase"].is_string());
        if event["args"]["way"] == "sent" && event["args"]["collective"].is_null() {
            assert_eq!(event["args"]["peer"], (rank + 1) % 4);
            assert!(event["args"]["tag"].is_u64() && event["args"]["bytes"].is_u64());
        }
    }
    let is_own = |event: &&&Value| event["args"]["collective"].is_null();
    let of = |category: &str| {
        let has = own
            .iter()
            .filter(is_own)
            .filter(|event| event["cat"] == category);
        has.count()
    };
    assert_eq!(of("phase"), 4);
    assert!(of("busy") >= 1, "a millisecond was stretched by 200");
    assert_eq!(
        of("message"),
        4,
        "two of the exchange, one of wait, one of test"
    );
    let sums = own
        .iter()
        .filter(|event| event["args"]["collective"] == "allreduce");
    assert!(sums.count() > 0);
}

#[test]
fn a_table_has_a_row_for_each_event() {
    let trace = traced(2);
    let mut text = Vec::new();
    trace.write_csv(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut lines = text.lines();
    let head = lines.next().unwrap();
    assert_eq!(
        head,
        "rank,what,begin_ns,end_ns,phase,way,peer,tag,bytes,collective,failed,calls,clock_bound_ns,dropped"
    );
    let rows: Vec<_> = lines.collect();
    let events = trace.ranks.iter().map(|rank| rank.recording.events.len());
    assert_eq!(rows.len(), events.sum::<usize>());
    assert!(rows.iter().any(|row| row.starts_with("1,send,")));
    let send = rows.iter().find(|row| row.starts_with("0,send,")).unwrap();
    let fields: Vec<_> = send.split(',').collect();
    assert_eq!(
        fields[4..11],
        ["pairs", "sent", "1", "1", "10", "", "false"][..]
    );
    assert!(
        rows.iter()
            .any(|row| row.contains(",\"requests, \"\"of\"\" all\","))
    );
    assert!(
        rows.iter()
            .any(|row| row.starts_with("0,phase,") && row.contains(",start,,,,,,false,"))
    );
}

#[test]
fn clocks_of_other_ranks_are_refused() {
    let mut wrong = Memory::run(1, |messenger| {
        let none = Clocks { ranks: Vec::new() };
        let recording = Timeline::new(&mut *messenger, 4).end().0;
        Trace::gather(messenger, recording, Some(&none))
    });
    let error = wrong.remove(0).unwrap_err().to_string();
    assert!(
        error.contains("is 0, and must be 1, one of each rank"),
        "{error}"
    );
}
