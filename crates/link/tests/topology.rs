//! Several switches: closed forms of times, rates and losses over trunks.
//!
//! Model:   frames of Ethernet on lines of known rate; what each test expects is written out from the lengths of the parts.
//! Source:  IEEE 802.3 (38 bytes around a frame); 5 ns a metre and 5 us a kilometre of fibre.

use proptest::prelude::*;
use sonde_link::{
    Admission, Cause, Class, Command, Ecn, Event, Fabric, Fault, Flow, Frame, FrameId, Kind, Law,
    Mark, Network, NetworkSpec, Place, Port, To, parse,
};
use sonde_units::{BitRate, Bytes, Instant, Span};
use std::collections::{BTreeMap, BTreeSet};

/// A network of 100 Mb/s lines of 100 m and switches that are in no hurry.
fn spec(words: &str, forwarding: &str, buffer: &str) -> NetworkSpec {
    let text = format!(
        "name = \"x\"\nsummary = \"x\"\ntechnology = \"ethernet\"\nmtu = 1500\n{words}\n\
         [line]\nrate = \"100Mbit\"\nframing = \"ethernet\"\nlength_m = 100\n\
         [switch]\nforwarding = \"{forwarding}\"\nlatency = \"10us\"\nbuffer = \"{buffer}\"\n"
    );
    parse("x", &text).unwrap_or_else(|error| panic!("{error}: {words}"))
}

fn frame(id: u64, from: u16, to: To, len: u64) -> Frame {
    Frame {
        id: FrameId(id),
        from: Port(from),
        to,
        len: Bytes(len),
        kind: Kind::Ip,
        class: Class::default(),
        ecn: Ecn::NotCapable,
        flow: id,
    }
}

/// Offers `frames` at the start and tells all that happens.
fn tell(network: &mut Fabric, frames: &[Frame]) -> Vec<Event> {
    for frame in frames {
        assert_eq!(network.offer(Instant::START, *frame), Admission::Taken);
    }
    finish(network)
}

fn finish(network: &mut Fabric) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(due) = network.poll_at() {
        events.extend(std::iter::from_fn(|| network.poll(due)));
    }
    events
}

fn arrivals(events: &[Event]) -> BTreeMap<(u64, u16), Instant> {
    let each = events.iter().filter_map(|event| match *event {
        Event::Deliver { at, id, to, .. } => Some(((id.0, to.0), at)),
        _ => None,
    });
    each.collect()
}

fn losses(events: &[Event]) -> Vec<(u64, u16, Place, Cause)> {
    let each = events.iter().filter_map(|event| match *event {
        Event::Lost {
            id,
            to,
            place,
            cause,
            ..
        } => Some((id.0, to.0, place, cause)),
        _ => None,
    });
    each.collect()
}

/// The way of one full frame from host to host in an empty network.
fn one_way(spec: &NetworkSpec, ports: u16, from: u16, to: u16) -> Span {
    let mut network = Fabric::new(spec, ports, 1).unwrap();
    let events = tell(&mut network, &[frame(0, from, To::One(Port(to)), 1_500)]);
    arrivals(&events)[&(0, to)].since(Instant::START)
}

/// 1538 bytes at 100 Mb/s.
const FRAME: Span = Span::nanos(123_040);
/// 100 m.
const WAY: Span = Span::nanos(500);
const LATENCY: Span = Span::micros(10);

/// Keeps stations full for `span`: the user bytes of layer 3 that arrive a second, by receiver.
fn saturate(
    spec: &NetworkSpec,
    ports: u16,
    pairs: &[(u16, u16)],
    span: Span,
) -> BTreeMap<u16, f64> {
    let mut network = Fabric::new(spec, ports, 1).unwrap();
    let (mut bytes, mut offered) = (BTreeMap::new(), 0);
    let end = Instant::START + span;
    let half = Instant::START + Span::picos(span.as_picos() / 2);
    let mut fill = |network: &mut Fabric, now, from: Port| {
        for (_, to) in pairs.iter().filter(|pair| pair.0 == from.0) {
            while network.ready(from, Class::default()) {
                offered += 1;
                let mut frame = frame(offered, from.0, To::One(Port(*to)), 1_500);
                frame.flow = u64::from(from.0);
                assert_eq!(network.offer(now, frame), Admission::Taken);
            }
        }
    };
    for pair in pairs {
        fill(&mut network, Instant::START, Port(pair.0));
    }
    while let Some(due) = network.poll_at().filter(|due| *due <= end) {
        while let Some(event) = network.poll(due) {
            match event {
                Event::Ready { port, .. } => fill(&mut network, due, port),
                Event::Deliver { at, to, .. } if at > half => {
                    *bytes.entry(to.0).or_insert(0) += 1_500
                }
                _ => {}
            }
        }
    }
    let seconds = end.since(half).as_picos() as f64 / 1e12;
    let rate = |(port, bytes): (u16, u64)| (port, bytes as f64 * 8.0 / seconds / 1e6);
    bytes.into_iter().map(rate).collect()
}

const TWO: &str = "topology = \"two-switches\"\nfabric = { switches = 2, hosts_per_switch = 3 }\n";

#[test]
fn store_and_forward_adds_a_frame_time_a_switch() {
    let words = format!("{TWO}trunk = [{{ between = [0, 1], rate = \"10Mbit\", length_m = 50 }}]");
    let spec = spec(&words, "store-and-forward", "64KiB");
    assert_eq!(one_way(&spec, 6, 0, 1), FRAME * 2 + WAY * 2 + LATENCY);
    let trunk = FRAME * 10 + Span::nanos(250);
    assert_eq!(
        one_way(&spec, 6, 0, 3),
        FRAME * 2 + trunk + WAY * 2 + LATENCY * 2
    );
}

#[test]
fn cut_through_adds_a_head_a_switch() {
    let words = format!("{TWO}trunk = [{{ between = [0, 1], length_m = 50 }}]");
    let head = Span::nanos(5_120);
    let two = FRAME + head * 2 + LATENCY * 2 + WAY * 2 + Span::nanos(250);
    assert_eq!(one_way(&spec(&words, "cut-through", "64KiB"), 6, 0, 3), two);
    // Ten times as fast in the middle: the trunk waits until its line cannot run dry, and so does the last line.
    let words = format!("{TWO}trunk = [{{ between = [0, 1], rate = \"1Gbit\", length_m = 50 }}]");
    let fast = Span::picos(FRAME.as_picos() / 10);
    let last_bit = FRAME + WAY + LATENCY + Span::nanos(250) + LATENCY;
    let start = last_bit - fast + Span::nanos(512);
    assert_eq!(
        one_way(&spec(&words, "cut-through", "64KiB"), 6, 0, 3),
        start + FRAME + WAY
    );
}

/// N3 in frames: one trunk of 100 and two of 45 Mb/s.
#[test]
fn a_flow_stays_below_its_trunk_and_three_fill_all() {
    let trunks = "trunk = [{ between = [0, 1], name = \"taxi\" }, { between = [0, 1], name = \"ds3\", count = 2, rate = \"45Mbit\" }]";
    let spec = spec(&format!("{TWO}{trunks}"), "store-and-forward", "64KiB");
    let share = 1_500.0 / 1_538.0;
    let pairs = [(0, 3), (1, 4), (2, 5)];
    let all = saturate(&spec, 6, &pairs, Span::millis(400));
    let rates: Vec<_> = all.values().map(|rate| rate / share).collect();
    for (rate, trunk) in rates.iter().zip([100.0, 45.0, 45.0]) {
        assert!(
            (rate / trunk - 1.0).abs() < 2e-3 && *rate <= trunk * 1.000_1,
            "{rates:?}"
        );
    }
    let total: f64 = rates.iter().sum();
    assert!((total / 190.0 - 1.0).abs() < 2e-3, "{total}");
    // Alone, the second still has no more than its own trunk.
    let alone = saturate(&spec, 6, &[(1, 4)], Span::millis(400));
    assert!((alone[&4] / share / 45.0 - 1.0).abs() < 2e-3, "{alone:?}");
}

#[test]
fn an_assigned_pair_takes_its_trunk() {
    let words = format!(
        "{TWO}trunk = [{{ between = [0, 1] }}, {{ between = [0, 1], rate = \"10Mbit\" }}]\nassign = [{{ from = 0, to = 3, trunk = 1 }}]"
    );
    let spec = spec(&words, "store-and-forward", "64KiB");
    let (slow, fast) = (FRAME * 12, FRAME * 3);
    let rest = (WAY + LATENCY) * 2 + WAY;
    assert_eq!(one_way(&spec, 6, 0, 3), slow + rest);
    assert_eq!(one_way(&spec, 6, 1, 3), fast + rest);
    let mut network = Fabric::new(&spec, 6, 1).unwrap();
    let down = Command::Fault(Fault::Trunk {
        trunk: 1,
        up: false,
    });
    network.command(Instant::START, down).unwrap();
    let events = tell(&mut network, &[frame(0, 0, To::One(Port(3)), 1_500)]);
    assert_eq!(
        arrivals(&events)[&(0, 3)].since(Instant::START),
        fast + rest
    );
}

/// Every host of a fat-tree to its like in the next pod, at the full rate of its line.
#[test]
fn a_fat_tree_has_full_bisection() {
    let spec = spec(
        "topology = \"fat-tree\"\nfabric = { k = 4 }",
        "store-and-forward",
        "64KiB",
    );
    for shift in [4, 8, 12] {
        let pairs: Vec<_> = (0..16).map(|from| (from, (from + shift) % 16)).collect();
        let rates = saturate(&spec, 16, &pairs, Span::millis(100));
        assert_eq!(rates.len(), 16);
        for rate in rates.values() {
            assert!((rate / 97.529 - 1.0).abs() < 5e-3, "{rates:?}");
        }
    }
    // All by the first way: half of an edge switch's hosts share one line.
    let first = "topology = \"fat-tree\"\nfabric = { k = 4, assign = \"first\" }";
    let pairs: Vec<_> = (0..16).map(|from| (from, (from + 4) % 16)).collect();
    let spec = self::spec(first, "store-and-forward", "64KiB");
    let total: f64 = saturate(&spec, 16, &pairs, Span::millis(100))
        .values()
        .sum();
    assert!(total < 0.55 * 16.0 * 97.529, "{total}");
}

/// The number of trunks of a torus is the sum of the shorter ways round.
#[test]
fn torus_distances() {
    let words = "topology = \"torus\"\nfabric = { dimensions = [4, 4], hosts_per_switch = 1 }";
    let spec = spec(words, "store-and-forward", "64KiB");
    for (a, b) in [(0u16, 1u16), (0, 3), (0, 10), (5, 15), (0, 15), (2, 8)] {
        let round = |a: u16, b: u16| u64::from(a.abs_diff(b).min(4 - a.abs_diff(b)));
        let trunks = round(a % 4, b % 4) + round(a / 4, b / 4);
        let want = (FRAME + WAY) * (trunks + 2) + LATENCY * (trunks + 1);
        assert_eq!(one_way(&spec, 16, a, b), want, "{a} to {b}");
    }
}

/// N48: 500 km are 2.5 ms; two sites by way of the middle have the sum of their ways.
#[test]
fn sites_are_five_microseconds_a_kilometre_apart() {
    let sites = "topology = \"sites\"\nsite = [{ name = \"a\", hosts = 2 }, { name = \"b\", hosts = 2 }]\ntrunk = [{ between = [0, 1], distance_km = 500 }]";
    let spec = spec(sites, "store-and-forward", "64KiB");
    let far = FRAME * 3 + LATENCY * 2 + WAY * 2 + Span::micros(2_500);
    assert_eq!(one_way(&spec, 4, 0, 2), far);
    let middle = "topology = \"sites\"\nsite = [{ name = \"a\", hosts = 2, delay = \"50us\" }, { name = \"b\", hosts = 2, delay = \"250us\" }]";
    let spec = self::spec(middle, "store-and-forward", "64KiB");
    let far = FRAME * 4 + LATENCY * 3 + WAY * 2 + Span::micros(300);
    assert_eq!(one_way(&spec, 4, 0, 3), far);
}

/// S16: four clients of 10 Mb/s each gain nothing from a switch when all write to one port of 10 Mb/s; S17: a port of
/// 100 Mb/s takes all four.
#[test]
fn a_switch_gains_nothing_towards_one_port() {
    let ten = "topology = \"star\"\nport = [";
    let lines = |hosts: std::ops::Range<u16>| {
        let one = |port| format!("{{ port = {port}, rate = \"10Mbit\" }}");
        format!("{ten}{}]", hosts.map(one).collect::<Vec<_>>().join(", "))
    };
    let pairs: Vec<_> = (1..5).map(|from| (from, 0)).collect();
    let share = 1_500.0 / 1_538.0;
    for (hosts, want) in [(0..5, 10.0), (1..5, 40.0)] {
        let spec = spec(&lines(hosts), "store-and-forward", "64KiB");
        let got = saturate(&spec, 5, &pairs, Span::secs(4))[&0] / share;
        assert!((got / want - 1.0).abs() < 3e-3, "{got}");
    }
}

/// S17: 100 frames from 100 to 10 Mb/s, and 60 from each of two: all but what leaves meanwhile and what waits is lost.
#[test]
fn fast_to_slow_and_many_to_one_overflow() {
    let words = "topology = \"star\"\nport = [{ port = 0, rate = \"10Mbit\" }]";
    let spec = spec(words, "store-and-forward", "20frames");
    let burst = |senders: u16, each: u64| {
        let mut network = Fabric::new(&spec, 4, 1).unwrap();
        let frames: Vec<_> = (0..u64::from(senders) * each)
            .map(|id| {
                frame(
                    id,
                    1 + (id % u64::from(senders)) as u16,
                    To::One(Port(0)),
                    1_500,
                )
            })
            .collect();
        let events = tell(&mut network, &frames);
        for (.., place, cause) in losses(&events) {
            assert_eq!((place, cause), (Place::Output, Cause::Overflow));
        }
        arrivals(&events).len() as u64
    };
    // The last of 100 comes 99 frame times after the first: 9 more have begun by then, and 20 wait.
    assert_eq!(burst(1, 100), 1 + 9 + 20);
    // Two senders: the last comes 59 frame times after the first, 5 more have begun.
    assert_eq!(burst(2, 60), 1 + 5 + 20);
}

/// S50: all nodes send to their neighbour at once; on a switch each frame takes as long as one alone.
#[test]
fn a_neighbour_exchange_does_not_contend() {
    for ports in [2u16, 8, 32] {
        let spec = spec("topology = \"star\"", "store-and-forward", "64KiB");
        let mut network = Fabric::new(&spec, ports, 1).unwrap();
        let next = |from| {
            frame(
                u64::from(from),
                from,
                To::One(Port((from + 1) % ports)),
                1_500,
            )
        };
        let events = tell(&mut network, &(0..ports).map(next).collect::<Vec<_>>());
        let alone = Instant::START + FRAME * 2 + WAY * 2 + LATENCY;
        assert!(arrivals(&events).values().all(|at| *at == alone), "{ports}");
    }
}

/// What is on a trunk when it goes down is lost; with another way later frames take that, without one they are lost too.
#[test]
fn a_trunk_goes_down_and_comes_up() {
    let words = "topology = \"ring\"\nfabric = { switches = 4, hosts_per_switch = 1 }";
    let spec = spec(words, "store-and-forward", "64KiB");
    let mut network = Fabric::new(&spec, 4, 1).unwrap();
    let go = |network: &mut Fabric, now, id| {
        assert_eq!(
            network.offer(now, frame(id, 0, To::One(Port(1)), 1_500)),
            Admission::Taken
        );
    };
    let fault = |trunk, up| Command::Fault(Fault::Trunk { trunk, up });
    go(&mut network, Instant::START, 0);
    // In the middle of the trunk's time.
    let now = Instant::START + FRAME + WAY + LATENCY + Span::micros(60);
    network.command(now, fault(0, false)).unwrap();
    go(&mut network, now, 1);
    let events = finish(&mut network);
    assert_eq!(losses(&events), [(0, 1, Place::Output, Cause::LinkDown)]);
    let long = (FRAME + WAY) * 5 + LATENCY * 4;
    assert_eq!(arrivals(&events)[&(1, 1)], now + long);
    let now = now + Span::secs(1);
    network.command(now, fault(2, false)).unwrap();
    go(&mut network, now, 2);
    let events = finish(&mut network);
    assert_eq!(losses(&events), [(2, 1, Place::Output, Cause::LinkDown)]);
    let now = now + Span::secs(1);
    network.command(now, fault(0, true)).unwrap();
    go(&mut network, now, 3);
    let events = finish(&mut network);
    assert_eq!(
        arrivals(&events)[&(3, 1)],
        now + (FRAME + WAY) * 3 + LATENCY * 2
    );
    assert!(
        network
            .command(now + Span::secs(1), fault(4, false))
            .is_err()
    );
}

/// A restart takes what waits in the switch and what comes until it is up, and nothing else.
#[test]
fn a_restart_empties_the_switch() {
    let spec = spec(
        "topology = \"star\"\nport = [{ port = 0, rate = \"10Mbit\" }]",
        "store-and-forward",
        "64KiB",
    );
    let mut network = Fabric::new(&spec, 3, 1).unwrap();
    for id in 0..20 {
        assert_eq!(
            network.offer(Instant::START, frame(id, 1, To::One(Port(0)), 1_500)),
            Admission::Taken
        );
    }
    // One of ten times the time has left, the second is on the line; 11 have come. Four more come until it is up.
    let first = Instant::START + FRAME + WAY + LATENCY + FRAME * 10;
    let (now, down) = (first + Span::micros(20), FRAME * 4);
    network
        .command(now, Command::Fault(Fault::Restart { down }))
        .unwrap();
    let events = finish(&mut network);
    let lost = losses(&events);
    assert!(
        lost.iter()
            .all(|loss| (loss.2, loss.3) == (Place::Output, Cause::Restart))
    );
    let ids: BTreeSet<_> = lost.iter().map(|loss| loss.0).collect();
    assert_eq!(ids, (1..15).collect());
    assert_eq!(arrivals(&events).len(), 6);
}

#[test]
fn another_rate_holds_from_the_next_frame_on() {
    let spec = spec("topology = \"star\"", "store-and-forward", "64KiB");
    let mut network = Fabric::new(&spec, 2, 1).unwrap();
    let fault = |rate| Command::Fault(Fault::Rate { rate });
    network
        .command(Instant::START, fault(Some(BitRate::mbit(10))))
        .unwrap();
    let events = tell(&mut network, &[frame(0, 0, To::One(Port(1)), 1_500)]);
    let slow = FRAME * 20 + WAY * 2 + LATENCY;
    assert_eq!(arrivals(&events)[&(0, 1)], Instant::START + slow);
    let now = Instant::START + Span::secs(1);
    network.command(now, fault(None)).unwrap();
    assert_eq!(
        network.offer(now, frame(1, 0, To::One(Port(1)), 1_500)),
        Admission::Taken
    );
    let events = finish(&mut network);
    assert_eq!(
        arrivals(&events)[&(1, 1)],
        now + FRAME * 2 + WAY * 2 + LATENCY
    );
    assert!(
        network
            .command(now + Span::secs(1), fault(BitRate::new(1)))
            .is_err()
    );
}

/// A frame of two that meets a queue as long as the mark carries it to its receiver, if its transport takes part.
#[test]
fn a_long_queue_marks() {
    let mut spec = spec("topology = \"star\"", "store-and-forward", "64KiB");
    spec.switch.as_mut().unwrap().mark = Some("2frames".parse().unwrap());
    let mut network = Fabric::new(&spec, 5, 1).unwrap();
    let frames: Vec<_> = (0..4u16)
        .map(|from| Frame {
            ecn: if from == 3 {
                Ecn::NotCapable
            } else {
                Ecn::Capable
            },
            ..frame(u64::from(from), from, To::One(Port(4)), 1_500)
        })
        .collect();
    let events = tell(&mut network, &frames);
    let marked: Vec<_> = events
        .iter()
        .filter_map(|event| match *event {
            Event::Deliver { id, mark, .. } => Some((id.0, mark)),
            _ => None,
        })
        .collect();
    assert_eq!(
        marked,
        [(0, Mark::Ok), (1, Mark::Ok), (2, Mark::Ce), (3, Mark::Ok)]
    );
}

/// The examples can be read and carry a frame between any two hosts, and one to all.
#[test]
fn the_examples_carry_frames() {
    for (name, ports) in [
        ("two-switches", 6),
        ("ring", 8),
        ("mesh", 9),
        ("fat-tree", 16),
        ("sites", 6),
    ] {
        let path = format!(
            "{}/../../plans/examples/networks/{name}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(&path).expect(&path);
        let spec = parse(&path, &text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.name, name);
        for from in 0..ports {
            let mut network = Fabric::new(&spec, ports, 1).unwrap();
            let others = (0..ports).filter(|to| *to != from);
            let mut frames: Vec<_> = others
                .map(|to| frame(u64::from(to), from, To::One(Port(to)), 576))
                .collect();
            frames.push(frame(99, from, To::All, 576));
            let events = tell(&mut network, &frames);
            assert_eq!(
                arrivals(&events).len(),
                2 * usize::from(ports - 1),
                "{name}"
            );
        }
    }
}

/// Outputs that share a memory lose what passes it, though each alone has room.
#[test]
fn outputs_share_a_memory() {
    let mut spec = spec(
        "topology = \"star\"\nport = [{ port = 0, rate = \"10Mbit\" }, { port = 1, rate = \"10Mbit\" }]",
        "store-and-forward",
        "100frames",
    );
    let burst = |spec: &NetworkSpec| {
        let mut network = Fabric::new(spec, 4, 1).unwrap();
        let each = |id| {
            frame(
                id,
                2 + (id % 2) as u16,
                To::One(Port((id % 2) as u16)),
                1_500,
            )
        };
        let events = tell(&mut network, &(0..80).map(each).collect::<Vec<_>>());
        (arrivals(&events).len(), losses(&events).len())
    };
    assert_eq!(burst(&spec), (80, 0));
    spec.switch.as_mut().unwrap().memory = Some(Bytes(15_000));
    // Of 40 each, one goes at once, 3 begin while the others come, and 10 wait in all.
    assert_eq!(burst(&spec), (18, 62));
}

/// The same network with switches that pause their senders.
fn paused(words: &str, forwarding: &str) -> NetworkSpec {
    let text = format!(
        "name = \"x\"\nsummary = \"x\"\ntechnology = \"ethernet\"\nmtu = 1500\n{words}\n\
         [line]\nrate = \"100Mbit\"\nframing = \"ethernet\"\nlength_m = 100\n\
         [switch]\nforwarding = \"{forwarding}\"\nlatency = \"10us\"\nbuffer = \"32KiB\"\nflow_control = \"pause\"\n"
    );
    parse("x", &text).unwrap_or_else(|error| panic!("{error}: {words}"))
}

/// Eight hosts into one through two switches and a slow trunk: all arrives, and the slowest line on the way never rests.
#[test]
fn pauses_lose_nothing_and_keep_the_line_full() {
    let two = "topology = \"switches\"\nfabric = { switches = 2, placement = [0, 0, 0, 0, 0, 0, 1, 1, 1] }\ntrunk = [{ between = [0, 1], rate = \"45Mbit\" }]";
    for (words, want) in [("topology = \"star\"", 100.0), (two, 100.0)] {
        for forwarding in ["store-and-forward", "cut-through"] {
            let pairs: Vec<_> = (0..8).map(|from| (from, 8)).collect();
            let spec = paused(words, forwarding);
            let rate = saturate(&spec, 9, &pairs, Span::millis(500))[&8] * 1_538.0 / 1_500.0;
            assert!((rate / want - 1.0).abs() < 3e-3, "{rate} of {want}");
            let mut network = Fabric::new(&spec, 9, 1).unwrap();
            let each = |id| frame(id, (id % 8) as u16, To::One(Port(8)), 1_500);
            let events = tell(&mut network, &(0..8 * 80).map(each).collect::<Vec<_>>());
            assert_eq!((arrivals(&events).len(), losses(&events).len()), (640, 0));
        }
    }
    // Without pauses the same blast overflows.
    let mut spec = paused("topology = \"star\"", "store-and-forward");
    spec.switch.as_mut().unwrap().flow_control = sonde_link::FlowControl::None;
    let mut network = Fabric::new(&spec, 9, 1).unwrap();
    let each = |id| frame(id, (id % 8) as u16, To::One(Port(8)), 1_500);
    let events = tell(&mut network, &(0..8 * 80).map(each).collect::<Vec<_>>());
    assert!(losses(&events).len() > 400);
}

/// In an empty network pauses change no time; where switches could wait in a circle they are refused.
#[test]
fn pauses_cost_nothing_while_there_is_room() {
    let words = format!("{TWO}trunk = [{{ between = [0, 1], rate = \"10Mbit\" }}]");
    for forwarding in ["store-and-forward", "cut-through"] {
        let (with, without) = (
            paused(&words, forwarding),
            spec(&words, forwarding, "32KiB"),
        );
        for to in [1, 3] {
            assert_eq!(one_way(&with, 6, 0, to), one_way(&without, 6, 0, to));
        }
    }
    let mut ring = paused(
        "topology = \"full-mesh\"\nfabric = { switches = 4 }",
        "cut-through",
    );
    ring.topology = sonde_link::Topology::Ring;
    let error = ring.check().unwrap_err().to_string();
    assert!(error.contains("wait for each other"), "{error}");
    let mut small = paused("topology = \"star\"", "cut-through");
    small.switch.as_mut().unwrap().buffer = "6000B".parse().unwrap();
    let error = small.check().unwrap_err().to_string();
    assert!(error.contains("before a pause takes hold"), "{error}");
}

/// A trunk joins two switches: what is written beyond the second was once passed over.
#[test]
fn a_trunk_has_two_ends() {
    for between in ["[0]", "[0, 99]", "[0, 1, 1]", "[0, 1, 77, 99]"] {
        let text = format!(
            "name = \"x\"\nsummary = \"x\"\ntechnology = \"ethernet\"\nmtu = 1500\n{TWO}trunk = [{{ between = {between}, length_m = 50 }}]\n\
             [line]\nrate = \"100Mbit\"\nframing = \"ethernet\"\nlength_m = 100\n\
             [switch]\nforwarding = \"store-and-forward\"\nlatency = \"10us\"\nbuffer = \"64KiB\"\n"
        );
        let refused = parse("x", &text).unwrap_err().to_string();
        assert!(
            refused.contains("between") || refused.contains("trunk"),
            "{between}: {refused}"
        );
    }
}

/// Background traffic of half a station's line leaves its host the other half, with and without pauses, over trunks too.
#[test]
fn background_traffic_takes_its_share() {
    let words = format!("{TWO}trunk = [{{ between = [0, 1], count = 2 }}]");
    for spec in [
        spec(&words, "store-and-forward", "64KiB"),
        paused(&words, "cut-through"),
    ] {
        let mut network = Fabric::new(&spec, 6, 1).unwrap();
        let flow = Flow {
            number: 0,
            from: Some(Port(0)),
            to: Port(3),
            rho: "50%".parse().unwrap(),
            law: Law::Constant,
            size: Bytes::ZERO,
            class: Class::default(),
        };
        network
            .command(Instant::START, Command::Load(flow))
            .unwrap();
        let end = Instant::START + Span::millis(500);
        let (mut id, mut arrived) = (0, 0);
        let mut due = Instant::START;
        while due <= end {
            while network.ready(Port(0), Class::default()) {
                id += 1;
                assert_eq!(
                    network.offer(due, frame(id, 0, To::One(Port(4)), 1_500)),
                    Admission::Taken
                );
            }
            due = network.poll_at().unwrap();
            while let Some(event) = network.poll(due) {
                // After the first queue, which was there before it.
                let late = Instant::START + Span::millis(100);
                arrived += u64::from(matches!(event, Event::Deliver { at, .. } if at > late));
            }
        }
        let share = arrived as f64 * FRAME.as_picos() as f64 / 4e11;
        assert!((share - 0.5).abs() < 0.01, "{share}");
    }
}

/// A random network of switches, in the words of a file, and how many hosts it has.
fn networks() -> impl Strategy<Value = (NetworkSpec, u16)> {
    let assign = prop_oneof![Just("first"), Just("spread"), Just("flow-hash")];
    let forwarding = prop_oneof![Just("store-and-forward"), Just("cut-through")];
    let rate = prop_oneof![Just("10Mbit"), Just("100Mbit"), Just("1Gbit")];
    (0usize..6, 2u16..7, 2u16..10, assign, forwarding, rate, 1u64..30).prop_map(
        |(kind, n, ports, assign, forwarding, rate, buffer)| {
            let trunks = format!("rate = \"{rate}\", length_m = 1000, assign = \"{assign}\"");
            let words = match kind {
                0 => format!("topology = \"ring\"\nfabric = {{ switches = {n}, {trunks} }}"),
                1 => format!("topology = \"full-mesh\"\nfabric = {{ switches = {n}, {trunks} }}"),
                2 => format!("topology = \"torus\"\nfabric = {{ dimensions = [{n}, 3], {trunks} }}"),
                3 => format!("topology = \"fat-tree\"\nfabric = {{ k = 4, {trunks} }}"),
                4 => {
                    let site = |i| format!("{{ name = \"{i}\", hosts = 5, distance_km = {} }}", 10 * i);
                    let sites: Vec<_> = (0..n).map(site).collect();
                    format!("topology = \"sites\"\nfabric = {{ {trunks} }}\nsite = [{}]", sites.join(", "))
                }
                _ => format!(
                    "topology = \"switches\"\nfabric = {{ switches = 2, {trunks} }}\ntrunk = [{{ between = [0, 1], count = {n} }}, {{ between = [1, 0], rate = \"45Mbit\" }}]"
                ),
            };
            (spec(&words, forwarding, &format!("{buffer}frames")), ports)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever is offered where switches pause: nothing is lost, and poll times do not matter.
    #[test]
    fn pauses_lose_nothing(
        (kind, cut, slow) in (0usize..4, any::<bool>(), any::<bool>()),
        acts in proptest::collection::vec((0u64..300_000_000, any::<u16>(), any::<u16>(), 0u8..20, 1u64..1_500, any::<bool>()), 1..200),
    ) {
        let rate = if slow { "10Mbit" } else { "200Mbit" };
        let words = [
            "topology = \"star\"\nport = [{ port = 0, rate = \"10Mbit\" }]".to_owned(),
            format!("{TWO}trunk = [{{ between = [0, 1], rate = \"{rate}\", count = 2 }}]"),
            format!("topology = \"fat-tree\"\nfabric = {{ k = 4, rate = \"{rate}\", hosts_per_switch = 1 }}"),
            format!("topology = \"full-mesh\"\nfabric = {{ switches = 3, rate = \"{rate}\" }}"),
        ];
        let spec = paused(&words[kind], if cut { "cut-through" } else { "store-and-forward" });
        let play = |polls: bool| {
            let mut network = Fabric::new(&spec, 6, 3).unwrap();
            let (mut now, mut events, mut left) = (Instant::START, Vec::new(), BTreeSet::new());
            for (id, &(gap, a, b, kind, len, polled)) in (0..).zip(&acts) {
                now = now + Span::picos(gap);
                let (from, to) = (a % 6, b % 6);
                let to = if kind == 0 || from == to { To::All } else { To::One(Port(to)) };
                if network.offer(now, frame(id, from, to, len)) == Admission::Taken {
                    match to {
                        To::One(to) => drop(left.insert((id, to.0))),
                        _ => left.extend((0..6).filter(|to| *to != from).map(|to| (id, to))),
                    }
                }
                if polled && polls {
                    events.extend(std::iter::from_fn(|| network.poll(now)));
                }
            }
            events.extend(finish(&mut network));
            (events, left)
        };
        let (events, mut left) = play(true);
        prop_assert_eq!(losses(&events), []);
        for arrival in arrivals(&events).keys() {
            prop_assert!(left.remove(arrival));
        }
        prop_assert!(left.is_empty(), "{left:?}");
        prop_assert_eq!(events, play(false).0);
    }

    /// Whatever goes up and down: each copy leaves once, in the order of time, and twice the same.
    #[test]
    fn each_copy_leaves_once_and_always_alike(
        (spec, ports) in networks(),
        acts in proptest::collection::vec((0u64..300_000_000, any::<u16>(), any::<u16>(), 0u8..20, 1u64..1_500), 1..80),
    ) {
        let play = || {
            let mut network = Fabric::new(&spec, ports, 3).unwrap();
            let (mut now, mut events, mut left) = (Instant::START, Vec::new(), BTreeSet::new());
            for (id, &(gap, a, b, kind, len)) in (0..).zip(&acts) {
                now = now + Span::picos(gap);
                let (from, to) = (a % ports, b % ports);
                let fault = match kind {
                    0 => Fault::Restart { down: Span::micros(u64::from(b)) },
                    1 => Fault::Rate { rate: BitRate::new(1_000_000 * (1 + u64::from(b))) },
                    2..6 => Fault::Trunk { trunk: b % 8, up: kind > 4 },
                    _ => {
                        let to = if kind < 9 || from == to { To::All } else { To::One(Port(to)) };
                        if network.offer(now, frame(id, from, to, len)) == Admission::Taken {
                            match to {
                                To::One(to) => drop(left.insert((id, to.0))),
                                _ => left.extend((0..ports).filter(|to| *to != from).map(|to| (id, to))),
                            }
                        }
                        continue;
                    }
                };
                let trunk_is_there = network.command(now, Command::Fault(fault)).is_ok();
                assert!(trunk_is_there || matches!(fault, Fault::Trunk { .. }), "{fault:?}");
                events.extend(std::iter::from_fn(|| network.poll(now)));
            }
            events.extend(finish(&mut network));
            (events, left)
        };
        let (events, mut left) = play();
        let mut last = Instant::START;
        for event in &events {
            let (Event::Deliver { at, id, to, .. } | Event::Lost { at, id, to, .. }) = *event else {
                continue;
            };
            prop_assert!(at >= last, "{event:?}");
            last = at;
            prop_assert!(left.remove(&(id.0, to.0)), "{event:?} again");
        }
        prop_assert!(left.is_empty(), "{left:?}");
        prop_assert_eq!(events, play().0);
    }
}
