//! Sites: what bridges do, closed forms of it, what holds for every site, and files that are wrong.

use proptest::prelude::*;
use sonde_link::{
    Admission, Cause, Class, Edit, Event, Frame, FrameId, Internetwork, Mark, Network, Place, Port,
    SiteSpec, To, parse_site,
};
use sonde_units::{Bytes, Instant, Ratio, Span};
use std::collections::{BTreeMap, BTreeSet};

pub fn site(text: &str) -> SiteSpec {
    let text = format!("name = \"test\"\nsummary = \"test\"\n{text}");
    parse_site("test", &text, &|path| {
        panic!("{path} is not in the catalogue")
    })
    .expect(&text)
}

pub fn refused(text: &str) -> String {
    let text = format!("name = \"test\"\nsummary = \"test\"\n{text}");
    let read = |path: &str| Err(format!("{path} is not there"));
    parse_site("test", &text, &read)
        .expect_err(&text)
        .to_string()
}

/// Segments one after the other with hosts and a bridge between each two.
fn chain(networks: &[&str], hosts: usize, bridge: &str) -> String {
    let mut text = String::new();
    for (number, network) in networks.iter().enumerate() {
        let first = number * hosts + 1;
        text += &format!(
            "[[segment]]\nname = \"s{number}\"\nnetwork = \"{network}\"\nhosts = [\"h[{first}-{}]\"]\n",
            first + hosts - 1
        );
    }
    for number in 1..networks.len() {
        text += &format!(
            "[[bridge]]\nname = \"b{number}\"\njoins = [\"s{}\", \"s{number}\"]\n{bridge}\n",
            number - 1
        );
    }
    text
}

pub fn frame(id: u64, from: u16, to: u16, len: u64) -> Frame {
    Frame::datagram(FrameId(id), Port(from), Port(to), Bytes(len))
}

/// Until it is idle: when each frame came where.
pub fn drain(network: &mut Internetwork) -> Vec<Event> {
    let mut all = Vec::new();
    while let Some(at) = network.poll_at() {
        while let Some(event) = network.poll(at) {
            all.push(event);
        }
    }
    all
}

fn arrivals(events: &[Event]) -> Vec<(Instant, u64, u16)> {
    let of = |event: &Event| match *event {
        Event::Deliver {
            at,
            id,
            to,
            mark: Mark::Ok,
            ..
        } => Some((at, id.0, to.0)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn a_bridge_adds_what_its_file_says() {
    let times = "frame_time = \"50us\"\nbyte_time = \"10ns\"\nlatency = \"7us\"";
    let site = site(&chain(&["ethernet-100", "ethernet-100"], 2, times));
    let mut network = Internetwork::new(&site, 1).unwrap();
    network.offer(Instant::START, frame(1, 0, 1, 1_000));
    let near = arrivals(&drain(&mut network))[0].0;
    let begin = network.poll_at().unwrap_or(near);
    network.offer(begin, frame(2, 0, 2, 1_000));
    let far = arrivals(&drain(&mut network))[0];
    assert_eq!((far.1, far.2), (2, 2));
    // Once more through a segment, and the bridge's own: 50 us + 1000 x 10 ns + 7 us.
    let twice = Span::picos(2 * near.since(Instant::START).as_picos()) + Span::micros(67);
    assert_eq!(far.0.since(begin), twice);
}

#[test]
fn what_was_heard_is_not_flooded() {
    // Three segments of a bus joined by one bridge of three interfaces.
    let text = "[[segment]]\nname = \"a\"\nnetwork = \"ethernet-10\"\nhosts = [\"h1\", \"h2\"]\n\
        [[segment]]\nname = \"b\"\nnetwork = \"ethernet-10\"\nhosts = [\"h3\"]\n\
        [[segment]]\nname = \"c\"\nnetwork = \"ethernet-10\"\nhosts = [\"h4\"]\n\
        [[bridge]]\nname = \"r\"\njoins = [\"a\", \"b\", \"c\"]\nageing = \"1s\"\n";
    let mut network = Internetwork::new(&site(text), 1).unwrap();
    let mut now = Instant::START;
    let mut sent = 0;
    let mut counts = |network: &mut Internetwork, from: u16, to: u16, after: Span| {
        now = now + after;
        sent += 1;
        network.offer(now, frame(sent, from, to, 100));
        let came = arrivals(&drain(network));
        assert_eq!(
            came.len(),
            1,
            "{from} to {to}: one copy, wherever else it went"
        );
        let of = network.nodes()[0];
        (of.flooded, of.forwarded, of.filtered)
    };
    let soon = Span::millis(10);
    // Nothing is known of h2, which is on the same segment: to the others too.
    assert_eq!(counts(&mut network, 0, 1, soon), (1, 0, 0));
    // h1 was heard: its answer stays.
    assert_eq!(counts(&mut network, 1, 0, soon), (1, 0, 1));
    assert_eq!(counts(&mut network, 0, 1, soon), (1, 0, 2));
    // From another segment to h1, which was heard; then back.
    assert_eq!(counts(&mut network, 2, 0, soon), (1, 1, 2));
    assert_eq!(counts(&mut network, 0, 2, soon), (1, 2, 2));
    // h4 was never heard.
    assert_eq!(counts(&mut network, 0, 3, soon), (2, 2, 2));
    // After a second everything is forgotten.
    assert_eq!(counts(&mut network, 2, 0, Span::secs(2)), (3, 2, 2));
}

#[test]
fn the_switch_of_a_star_floods_what_it_has_not_heard_of() {
    let site = site(&chain(&["ethernet-100", "ethernet-100"], 3, ""));
    let mut network = Internetwork::new(&site, 1).unwrap();
    // h5, behind the bridge, was never heard: the switch sends the frame to all its stations, and the bridge to all of its segment's.
    network.offer(Instant::START, frame(1, 0, 4, 1_000));
    assert_eq!(arrivals(&drain(&mut network)).len(), 1);
    let now = Instant::START + Span::secs(1);
    network.offer(now, frame(2, 4, 0, 1_000));
    let came = arrivals(&drain(&mut network));
    assert_eq!((came.len(), came[0].2), (1, 0));
    assert_eq!(network.nodes()[0].flooded, 1, "h1 was heard");
}

#[test]
fn a_full_bridge_loses_for_those_behind_it() {
    let knobs = ":queue=3kB";
    let site = site(&chain(
        &["ethernet-100", &format!("ethernet-10{knobs}")],
        2,
        "buffer = \"4KiB\"",
    ));
    let mut network = Internetwork::new(&site, 1).unwrap();
    for id in 0..40 {
        assert_eq!(
            network.offer(Instant::START, frame(id, 0, 2, 1_500)),
            Admission::Taken
        );
    }
    let events = drain(&mut network);
    let is_lost = |event: &&Event| {
        matches!(
            event,
            Event::Lost {
                to: Port(2),
                place: Place::Bridge,
                cause: Cause::Overflow,
                ..
            }
        )
    };
    let (lost, came) = (
        events.iter().filter(is_lost).count(),
        arrivals(&events).len(),
    );
    assert_eq!(lost + came, 40);
    // Each takes 0.12 ms to come and 1.23 ms to leave. One goes on the line, two into the station's queue, two into the buffer; when those of
    // the station have left after 2.5 ms, two more find room. All have come when that happens again, after 4.9 ms.
    assert_eq!(lost, 33);
    assert_eq!(network.nodes()[0].dropped, lost as u64);
    assert_eq!(network.counters().lost_total(), lost as u64);
    // A frame to all is lost to the two behind, and reaches the one beside.
    let mut network = Internetwork::new(&site, 1).unwrap();
    for id in 0..40 {
        let all = Frame {
            to: To::All,
            ..frame(id, 0, 0, 1_500)
        };
        network.offer(Instant::START, all);
    }
    let events = drain(&mut network);
    let near = arrivals(&events)
        .iter()
        .filter(|(_, _, to)| *to == 1)
        .count();
    assert_eq!(near, 40);
    assert_eq!(
        arrivals(&events).len() + network.counters().lost_total() as usize,
        120
    );
}

#[test]
fn a_command_is_for_the_segment_of_its_hosts() {
    let site = site(&chain(&["ethernet-100", "ethernet-10"], 2, ""));
    let mut network = Internetwork::new(&site, 1).unwrap();
    let at = |seconds: u64| Instant::START + Span::secs(seconds);
    let came = |network: &mut Internetwork, now: Instant, to: u16| {
        network.offer(now, frame(9, 0, to, 100));
        arrivals(&drain(network)).len()
    };
    network
        .command(at(1), "link h3 down".parse().unwrap())
        .unwrap();
    assert_eq!(came(&mut network, at(2), 2), 0);
    assert_eq!(came(&mut network, at(3), 3), 1);
    network
        .command(at(4), "link h3 up".parse().unwrap())
        .unwrap();
    assert_eq!(came(&mut network, at(5), 2), 1);
    // One that names none is for each; one that no segment has is refused, as are hosts of two.
    let later = at(6);
    network
        .command(later, "corrupt all 100%".parse().unwrap())
        .unwrap();
    assert_eq!(came(&mut network, at(7), 1), 0, "it is corrupt");
    let later = at(8);
    let refused = |network: &mut Internetwork, text: &str| {
        network
            .command(later, text.parse().unwrap())
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&mut network, "trunk 0 down").contains("trunk"));
    assert!(refused(&mut network, "cut h1 h3 on").contains("the same segment"));
    assert!(refused(&mut network, "link h5 down").contains("h1 to h4"));
    // A schedule becomes one of each segment.
    let mut scheduled = site.clone();
    scheduled
        .schedule(Span::millis(1), "link h4 down".parse().unwrap())
        .unwrap();
    scheduled
        .schedule(Span::millis(1), "loss all 1%".parse().unwrap())
        .unwrap();
    let faults: Vec<_> = scheduled
        .segment
        .iter()
        .map(|one| one.network.fault.len())
        .collect();
    assert_eq!(faults, [1, 2]);
    assert_eq!(
        scheduled.segment[1].network.fault[0].command,
        "link h2 down".parse().unwrap()
    );
    assert!(
        scheduled
            .schedule(Span::ZERO, "cut h1 h3 on".parse().unwrap())
            .is_err()
    );
}

#[test]
fn the_sites_of_the_catalogue_carry_frames_between_all_hosts() {
    for site in sonde_link::sites() {
        let mut network = Internetwork::new(&site, 1).unwrap();
        let (hosts, subnets) = (site.count(), site.subnets().unwrap());
        let mut now = Instant::START;
        for host in 0..hosts {
            for other in [(host + 1) % hosts, (host + hosts / 2) % hosts] {
                let (from, to) = subnets.between(host, other).unwrap();
                now = now + Span::millis(20);
                network.offer(now, frame(u64::from(host), from.0, to.0, 1_000));
                let events = drain(&mut network);
                assert_eq!(
                    arrivals(&events).len(),
                    1,
                    "{} {host} {other}: {events:?}",
                    site.name
                );
            }
        }
        assert!(sonde_link::resolve_site(&site.name.to_uppercase(), &|_| unreachable!()).is_ok());
    }
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/catalogue/sites"));
    let files = folder
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_file());
    assert_eq!(files.count(), sonde_link::sites().len());
    let unknown = sonde_link::resolve_site("campus", &|_| unreachable!())
        .unwrap_err()
        .to_string();
    assert!(
        unknown.contains("there are two-rooms, lace, lace-sp2, sandia-engineering"),
        "{unknown}"
    );
}

#[test]
fn knobs_of_segments_stand_behind_the_name() {
    let of = |selector: &str| sonde_link::resolve_site(selector, &|_| Err("no file".into()));
    let site = of("two-cities:line.delay=2ms:west.mtu=1500").unwrap();
    assert_eq!(site.name, "two-cities:line.delay=2ms:west.mtu=1500");
    let [west, line, east] = &site.segment[..] else {
        panic!("{:?}", site.segment);
    };
    assert_eq!(line.network.path.delay, Span::millis(2));
    assert_eq!((west.network.mtu, east.network.mtu), (1_500, 9_180));
    // Of a file as of the catalogue, and a half of a share has a dot of its own.
    let text = "name = \"x\"\nsummary = \"x\"\n[[segment]]\nname = \"a\"\nnetwork = \"ethernet-10\"\nhosts = [\"b\", \"c\"]\n";
    let file = |_: &str| Ok(text.to_owned());
    let site = sonde_link::resolve_site("./x.toml:a.loss=0.5%", &file).unwrap();
    assert_eq!(site.segment[0].network.path.loss, Ratio::new(1, 200));
    for (selector, told) in [
        (
            "two-cities:delay=2ms",
            "`delay=2ms` is not a knob of a site: write SEGMENT.KNOB=VALUE",
        ),
        (
            "two-cities:line.delay",
            "`line.delay` is not a knob of a site",
        ),
        (
            "two-cities:lane.delay=2ms",
            "there is no segment `lane` whose `delay=2ms` could be set: there are west, line, east",
        ),
        ("two-cities:line.dealy=2ms", "segment `line`"),
        ("two-cities:line.delay=soon", "segment `line`"),
    ] {
        let refused = of(selector).unwrap_err().to_string();
        assert!(refused.contains(told), "{selector}: {refused}");
    }
}

/// The mean wait of Poisson arrivals on the way from a port to another, of which one takes `service` for each, at half of what it can do: in
/// `service`, with half of the interval of 40 batches at 99.9 %.
pub fn mean_wait(site: &SiteSpec, (from, to): (u16, u16), len: u64, service: Span) -> (f64, f64) {
    let mut network = Internetwork::new(site, 1).unwrap();
    // The way there without a queue, after both sides were heard.
    network.offer(Instant::START, frame(0, to, from, len));
    drain(&mut network);
    let begin = Instant::START + Span::secs(1);
    network.offer(begin, frame(1, from, to, len));
    let alone = arrivals(&drain(&mut network))[0].0.since(begin).as_picos();
    let mut random = rand_pcg::Pcg64Mcg::new(0x5eed);
    let mut uniform = || (rand_core::Rng::next_u64(&mut random) >> 11) as f64 / (1u64 << 53) as f64;
    let service = service.as_picos() as f64;
    let (batches, size) = (40, 2_000);
    let mut now = begin + Span::secs(1);
    let mut means = Vec::new();
    let mut id = 2;
    for _ in 0..batches {
        let mut sent = BTreeMap::new();
        let mut waits = 0.0;
        let mut events = Vec::new();
        for _ in 0..size {
            let gap = -(1.0 - uniform()).ln() * 2.0 * service;
            now = now + Span::picos(gap as u64);
            while let Some(event) = network.poll(now) {
                events.push(event);
            }
            assert_eq!(
                network.offer(now, frame(id, from, to, len)),
                Admission::Taken
            );
            sent.insert(id, now);
            id += 1;
        }
        while let Some(at) = network.poll_at() {
            now = now.max(at);
            while let Some(event) = network.poll(at) {
                events.push(event);
            }
        }
        let arrived = arrivals(&events);
        assert_eq!(arrived.len(), size);
        for (at, id, _) in arrived {
            waits += (at.since(sent[&id]).as_picos() - alone) as f64 / service;
        }
        means.push(waits / size as f64);
    }
    let n = f64::from(batches);
    let mean = means.iter().sum::<f64>() / n;
    let deviation = (means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    // Student's t of 39 degrees at 99.9 %.
    (mean, 3.56 * deviation / n.sqrt())
}

#[test]
fn a_processor_that_takes_its_time_is_an_m_d_1_queue() {
    // The mean wait is rho / (2 (1 - rho)) of its time.
    let site = site(&chain(
        &["ethernet-1g", "ethernet-1g"],
        1,
        "frame_time = \"1ms\"\nbuffer = \"1GiB\"",
    ));
    let (mean, half) = mean_wait(&site, (0, 1), 64, Span::millis(1));
    assert!(
        (mean - 0.5).abs() < half,
        "{mean} +- {half} where 0.5 are due"
    );
}

#[test]
fn wrong_files_are_told_with_their_line() {
    let two = "[[segment]]\nname = \"a\"\nnetwork = \"ethernet-10\"\nhosts = [\"h1\"]\n\
        [[segment]]\nname = \"b\"\nnetwork = \"ethernet-10\"\nhosts = [\"h2\"]\n";
    let bridge = "[[bridge]]\nname = \"r\"\njoins = [\"a\", \"b\"]\n";
    for (text, line, said) in [
        (
            two.to_owned(),
            8,
            "nothing leads from host `h1` to segment `b`",
        ),
        (
            format!("{two}{bridge}[[bridge]]\nname = \"q\"\njoins = [\"b\", \"a\"]\n"),
            16,
            "round for ever",
        ),
        (
            format!("{two}[[bridge]]\nname = \"r\"\njoins = [\"a\", \"c\"]\n"),
            13,
            "there is no segment `c`: there are a, b",
        ),
        (
            format!("{two}[[bridge]]\nname = \"r\"\njoins = [\"a\"]\n"),
            13,
            "two segments or more",
        ),
        (
            two.replace("\"b\"", "\"a\"") + bridge,
            8,
            "two segments `a`",
        ),
        (two.replace("h2", "h 2") + bridge, 10, "is no name"),
        (two.replace("h2", "h3") + bridge, 10, "it is called h2 too"),
        (
            two.replace(
                "network = \"ethernet-10\"\nhosts = [\"h2\"]",
                "network = \"hippi-800\"\nhosts = [\"h2\"]",
            ) + bridge,
            13,
            "carries no frames to all",
        ),
        (
            two.replace(
                "network = \"ethernet-10\"\nhosts = [\"h2\"]",
                "network = \"ethernet-11\"\nhosts = [\"h2\"]",
            ) + bridge,
            9,
            "there is no network `ethernet-11`",
        ),
        (two.replace("h2", "h[1-9999]") + bridge, 10, "is no name"),
        (
            two.replace("h2", "x[1-4096]") + bridge,
            10,
            "more than 4096 interfaces of hosts",
        ),
        (
            two.replace("[\"h2\"]", "[]")
                .replace("\"h1\"", "\"h1\", \"h2\"")
                + bridge,
            10,
            "has no hosts",
        ),
        (
            two.replace("\"ethernet-10\"\nhosts = [\"h2", "\"fddi\"\nhosts = [\"h2") + bridge,
            13,
            "as in `fddi:mtu=1500`, or write what becomes of longer ones, as `too_long = \"fragment\"`",
        ),
        (
            format!("{two}{bridge}too_long = \"cut\"\n"),
            0,
            "expected `fragment` or `drop`",
        ),
        (two.replace("h2", "h3") + bridge, 10, "it is called h2 too"),
        (
            format!("{two}{bridge}colour = \"red\"\n"),
            0,
            "unknown field `colour`",
        ),
    ] {
        let error = refused(&text);
        assert!(error.contains(said), "{text}\n{error}");
        assert!(
            line == 0 || error.contains(&format!("line {line}:")),
            "{text}\n{error}"
        );
    }
}

/// A random site, and what is offered to it: after how many nanoseconds, from whom, to whom (beyond the hosts: to all), how long.
type Scene = (String, Vec<(u64, u16, u16, u64)>);

fn scenes() -> impl Strategy<Value = Scene> {
    let network = prop_oneof![
        Just("ethernet-10"),
        Just("ethernet-100"),
        Just("fddi"),
        Just("ethernet-1g:buffer=4KiB")
    ];
    let segment = (network, 1usize..4, any::<prop::sample::Index>());
    let times = (0u64..200, 0u64..100, 0u64..100, 3u64..40);
    let offer = (0u64..2_000_000, any::<u16>(), any::<u16>(), 20u64..3_000);
    (prop::collection::vec(segment, 2..6), times, prop::collection::vec(offer, 1..60)).prop_map(|(segments, times, offers)| {
        let (mut text, mut hosts) = (String::new(), 0);
        for (number, (network, count, _)) in segments.iter().enumerate() {
            text += &format!("[[segment]]\nname = \"s{number}\"\nnetwork = \"{network}\"\nhosts = [\"h[{}-{}]\"]\n", hosts + 1, hosts + count);
            hosts += count;
        }
        let (frame, byte, latency, buffer) = times;
        for (number, (_, _, to)) in segments.iter().enumerate().skip(1) {
            // Each is joined to one of those before it: a tree.
            text += &format!(
                "[[bridge]]\nname = \"b{number}\"\njoins = [\"s{}\", \"s{number}\"]\nframe_time = \"{frame}us\"\nbyte_time = \"{byte}ns\"\n\
                 latency = \"{latency}us\"\nbuffer = \"{buffer}KiB\"\nageing = \"3ms\"\ntoo_long = \"fragment\"\n",
                to.index(number)
            );
        }
        let hosts = hosts as u16;
        let offers = offers.into_iter().map(|(after, from, to, len)| (after, from % hosts, to % (hosts + 2), len));
        (text, offers.collect())
    })
}

/// Plays a scene; the events and what was taken. Polled after each offer, or only at the end.
fn play(
    (text, offers): &Scene,
    is_polled: bool,
) -> (Vec<Event>, BTreeMap<u64, (Instant, Frame)>, Internetwork) {
    let site = site(text);
    let mut network = Internetwork::new(&site, 7).unwrap();
    let hosts = network.ends();
    let (mut now, mut events, mut taken) = (Instant::START, Vec::new(), BTreeMap::new());
    for (id, &(after, from, to, len)) in (0..).zip(offers) {
        now = now + Span::nanos(after);
        let is_due =
            |network: &Internetwork| is_polled && network.poll_at().is_some_and(|due| due <= now);
        while is_due(&network) {
            let due = network.poll_at().unwrap_or(now);
            while let Some(event) = network.poll(due) {
                events.push(event);
            }
        }
        let to = if to < hosts {
            To::One(Port(to))
        } else {
            To::All
        };
        let frame = Frame {
            to,
            ..frame(id, from, 0, len)
        };
        if network.ready(Port(from), Class::default())
            && network.offer(now, frame) == Admission::Taken
        {
            taken.insert(id, (now, frame));
        }
    }
    events.extend(drain(&mut network));
    (events, taken, network)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_copy_leaves_once_in_order_and_never_early(scene in scenes()) {
        let (events, taken, network) = play(&scene, true);
        let mut copies: BTreeSet<(u64, u16)> = BTreeSet::new();
        let mut ended: BTreeSet<u64> = BTreeSet::new();
        let mut last: BTreeMap<(u16, u16), (u64, u16)> = BTreeMap::new();
        // Of datagrams that came in fragments: how much has come.
        let mut came: BTreeMap<(u64, u16), u64> = BTreeMap::new();
        let mut before = Instant::START;
        for event in &events {
            match *event {
                Event::Deliver { at, id, to, .. } | Event::Lost { at, id, to, .. } => {
                    prop_assert!(at >= before, "{event:?} before {before:?}");
                    before = at;
                    prop_assert!(!ended.contains(&id.0), "after its end: {event:?}");
                    let (begin, frame) = taken[&id.0];
                    let copy = (id.0, to.0);
                    let mut is_whole = true;
                    if let Event::Deliver { edit, .. } = event {
                        let piece = match edit {
                            Edit::Routed { piece, .. } => *piece,
                            _ => None,
                        };
                        let len = piece.map_or(frame.len.0, |piece| 20 + u64::from(piece.len));
                        // The shortest frame at the fastest line.
                        prop_assert!(at > begin + Span::nanos(len * 8));
                        let place = (id.0, piece.map_or(0, |piece| piece.offset));
                        let order = last.insert((frame.from.0, to.0), place);
                        prop_assert!(order.is_none_or(|order| order < place), "overtaken: {event:?}");
                        if let Some(piece) = piece {
                            let all = came.entry(copy).or_default();
                            *all += u64::from(piece.len);
                            is_whole = *all == frame.len.0 - 20;
                        }
                    }
                    prop_assert!(!is_whole || copies.insert(copy), "twice: {event:?}");
                }
                Event::Done { id } => prop_assert!(ended.insert(id.0)),
                _ => {}
            }
        }
        for (id, (_, frame)) in &taken {
            prop_assert!(ended.contains(id), "{id} never ended");
            let due: Vec<u16> = match frame.to {
                To::One(to) if to == frame.from => vec![to.0],
                To::One(to) => vec![to.0],
                _ => (0..network.ends()).filter(|host| *host != frame.from.0).collect(),
            };
            for to in due {
                prop_assert!(copies.remove(&(*id, to)), "{id} to {to} is nowhere");
            }
        }
        prop_assert!(copies.is_empty(), "{copies:?}");
    }

    #[test]
    fn when_it_is_polled_does_not_matter(scene in scenes()) {
        // Where a station wants no more, what is offered depends on when that was told: offers far apart.
        let mut scene = scene;
        for offer in &mut scene.1 {
            offer.0 += 20_000_000;
        }
        prop_assert_eq!(play(&scene, true).0, play(&scene, false).0);
    }
}
