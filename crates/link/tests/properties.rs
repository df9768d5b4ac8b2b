//! What holds for every network, whatever is offered to it.
//!
//! Model:   random offers and circuit commands to the networks of the catalogue and to random ones; the same is played
//!          with different poll times. Times are bounded by formulas written here from the standards.
//! Source:  IEEE 802.3 §3.1.1, §4.4.2 (38 bytes around 46); I.363.5, I.361 (trailer 8, 48 of 53 bytes); RFC 2684 §5.1 (8).

use proptest::prelude::*;
use sonde_link::{
    Admission, Cause, Class, Command, Ecn, Encapsulation, Event, Fabric, FlowControl, Forwarding,
    Frame, FrameId, Framing, GroupId, Kind, Mark, Network, NetworkSpec, Place, Port, Refused,
    Signalling, To, Topology, VcCommand, catalogue, parse,
};
use sonde_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Something done to a network.
#[derive(Clone, Copy, Debug)]
enum Act {
    Offer(Frame),
    Command(Command),
}

impl Act {
    /// Whose station it changes first.
    fn port(&self) -> Port {
        match *self {
            Self::Offer(frame) => frame.from,
            Self::Command(Command::Vc(VcCommand::Establish(a, _) | VcCommand::Release(a, _))) => a,
            Self::Command(_) => Port(0),
        }
    }
}

/// A network, and what is done to it when.
#[derive(Clone, Debug)]
struct Scene {
    spec: NetworkSpec,
    ports: u16,
    seed: u64,
    acts: Vec<(Instant, Act)>,
}

/// When a scene is polled.
#[derive(Clone, Debug)]
enum Polls {
    AfterEach,
    /// Exactly when the network asks for it.
    AtPollAt,
    /// After some, and in between at the given share (of 256) of the way to the next.
    Random(Vec<(bool, u8)>),
    AtEnd,
}

/// What a network did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Story {
    events: Vec<Event>,
    admissions: Vec<Option<Admission>>,
    refusals: Vec<Option<Refused>>,
}

impl Scene {
    fn network(&self) -> Fabric {
        Fabric::new(&self.spec, self.ports, self.seed).expect("the specification is right")
    }

    /// Plays the scene; `seen` is told each act with the network and the events until then, after it.
    fn play(&self, polls: &Polls, mut seen: impl FnMut(usize, &Fabric, &Story)) -> (Story, Fabric) {
        let (mut network, mut story) = (self.network(), Story::default());
        let drain = |network: &mut Fabric, story: &mut Story, now: Instant| {
            while let Some(event) = network.poll(now) {
                assert!(
                    time(&event).is_none_or(|at| at <= now),
                    "{event:?} at {now:?}"
                );
                story.events.push(event);
            }
        };
        for (index, &(at, act)) in self.acts.iter().enumerate() {
            if let Polls::AtPollAt = polls {
                while let Some(due) = network.poll_at().filter(|due| *due <= at) {
                    drain(&mut network, &mut story, due);
                }
            }
            let (mut admission, mut refusal) = (None, None);
            match act {
                Act::Offer(frame) => admission = Some(network.offer(at, frame)),
                Act::Command(command) => refusal = network.command(at, command).err(),
            }
            story.admissions.push(admission);
            story.refusals.push(refusal);
            match polls {
                Polls::AfterEach => drain(&mut network, &mut story, at),
                Polls::Random(draws) => {
                    let (polled, share) = draws[index % draws.len()];
                    let next = self.acts.get(index + 1).map_or(at, |act| act.0);
                    let gap = next.since(at).as_picos() / 256 * u64::from(share);
                    if polled {
                        drain(&mut network, &mut story, at + Span::picos(gap));
                    }
                }
                Polls::AtPollAt | Polls::AtEnd => {}
            }
            seen(index, &network, &story);
        }
        if let Polls::AtEnd = polls {
            drain(&mut network, &mut story, Instant::from_picos(u64::MAX / 2));
        }
        while let Some(due) = network.poll_at() {
            drain(&mut network, &mut story, due);
        }
        (story, network)
    }

    fn tell(&self) -> Story {
        self.play(&Polls::AtPollAt, |_, _, _| {}).0
    }

    /// The frames that were taken, with their times, by name.
    fn taken(&self, story: &Story) -> BTreeMap<FrameId, (Instant, Frame)> {
        let acts = self.acts.iter().zip(&story.admissions);
        acts.filter_map(|(&(at, act), admission)| match (act, admission) {
            (Act::Offer(frame), Some(Admission::Taken)) => Some((frame.id, (at, frame))),
            _ => None,
        })
        .collect()
    }

    /// Where copies of a frame go, or why none does.
    fn copies(&self, frame: &Frame) -> Result<BTreeSet<Port>, Cause> {
        if frame.len.0 > self.spec.mtu {
            return Err(Cause::TooLong);
        }
        match frame.to {
            To::One(to) if to.0 >= self.ports || to == frame.from => Err(Cause::NoSuchPort),
            To::One(to) => Ok([to].into()),
            _ if self.spec.broadcasts() => Ok((0..self.ports)
                .map(Port)
                .filter(|port| *port != frame.from)
                .collect()),
            _ if matches!(frame.kind, Kind::Resolve(_)) => Ok([frame.from].into()),
            _ => Err(Cause::NoBroadcast),
        }
    }
}

fn time(event: &Event) -> Option<Instant> {
    match *event {
        Event::Deliver { at, .. }
        | Event::Lost { at, .. }
        | Event::Ready { at, .. }
        | Event::Busy { at, .. }
        | Event::State { at, .. } => Some(at),
        Event::Done { .. } => None,
    }
}

/// Copies that arrived: when, which, where.
fn deliveries(story: &Story) -> impl Iterator<Item = (Instant, FrameId, Port)> + '_ {
    let is_marked =
        |event: &Event| matches!(event, Event::Deliver { mark, .. } if *mark != Mark::Ok);
    assert!(!story.events.iter().any(is_marked));
    story.events.iter().filter_map(|event| match *event {
        Event::Deliver { at, id, to, .. } => Some((at, id, to)),
        _ => None,
    })
}

/// Picoseconds that `bytes` take on the line, and that a frame takes: rounded up, on ATM a cell.
fn line_times(spec: &NetworkSpec, len: Bytes) -> (impl Fn(u64) -> u64, u64) {
    let (n, d) = spec.line.payload.parts();
    let usable = spec
        .line
        .rate
        .map(|rate| (u128::from(rate.bps()) * u128::from(n) / u128::from(d)).max(1));
    let of = move |bytes: u64| {
        usable.map_or(0, |bps| {
            (u128::from(bytes) * 8_000_000_000_000).div_ceil(bps) as u64
        })
    };
    let frame = match spec.line.framing() {
        Framing::None => {
            // Without packets one of any length, and nothing around it.
            let credit = spec.credit.as_ref();
            let bytes = |key: fn(&sonde_link::Credit) -> Option<Bytes>| {
                credit.and_then(key).map(|bytes| bytes.0)
            };
            let data = len.0 + bytes(|credit| credit.header).unwrap_or(0);
            let packets = data
                .div_ceil(bytes(|credit| credit.packet).unwrap_or(u64::MAX))
                .max(1);
            of(data + packets * bytes(|credit| credit.around).unwrap_or(0))
        }
        Framing::Ethernet => of(len.0.max(46) + 8 + 14 + 4 + 12),
        // Preamble, delimiters and addresses 22, LLC/SNAP 8, FCS 4, end and status 2.
        Framing::Fddi => of(len.0 + 22 + 8 + 4 + 2),
        // 24 bytes of network header, 2112 a frame, 36 around it and 24 between two.
        Framing::FibreChannel => of(len.0 + 24 + (len.0 + 24).div_ceil(2_112) * 60),
        // Full bursts of 256 words, each with a gap of 4.
        Framing::Hippi(bursts) => {
            of((len.0 + 40).div_ceil(bursts.burst.0) * (bursts.burst.0 / 64 * 65))
        }
        Framing::Atm(encapsulation) => {
            let header = match encapsulation {
                Encapsulation::LlcSnap => 8,
                Encapsulation::Lane => 16,
                Encapsulation::Null => 0,
            };
            of(53) * (len.0 + header + 8).div_ceil(48)
        }
    };
    (of, frame)
}

/// From the offer of a frame to its delivery in an empty network, circuits up: the least possible.
fn unloaded(spec: &NetworkSpec, frame: &Frame, to: Port) -> Span {
    let (of, time) = line_times(spec, frame.len);
    let way = spec.line.propagation().as_picos();
    if spec.bus.is_some() {
        // The gap behind a frame is no part of it; the way is that between two of the stations.
        return Span::picos(of(frame.len.0.max(46) + 26) + spec.path.delay.as_picos());
    }
    let up = time + way + spec.path.delay.as_picos();
    if let Some(crossbar) = &spec.crossbar {
        // There and back before the data, then there; twice by way of the server.
        let inside = crossbar.crossing.as_picos() * u64::from(crossbar.crossbars);
        let once = crossbar.setup.as_picos() + 6 * way + inside + inside / 2 + time;
        return there(spec, frame, to, once, crossbar.resolution_delay);
    }
    if let Some(stages) = &spec.stages {
        let once = time + 2 * way + stages.hop.as_picos();
        return there(spec, frame, to, once, stages.resolution_delay);
    }
    if let Some(credit) = &spec.credit {
        // Packets overlap on the lines: all of them on one, and through one chip at least.
        let latency = spec.switch.map_or(0, |switch| switch.latency.as_picos());
        let served = credit.resolution_delay.as_picos() + time;
        let least = up + way + latency + if to == frame.from { served } else { 0 };
        return Span::picos(least);
    }
    let picos = match (spec.switch, spec.circuits) {
        (switch, Some(circuits)) if to == frame.from => {
            let latency = switch.map_or(0, |switch| switch.latency.as_picos());
            up + latency + circuits.resolution_delay.as_picos() + time + way
        }
        (None, _) => up,
        (Some(switch), _) => {
            let head = match switch.forwarding {
                Forwarding::StoreAndForward => time,
                Forwarding::CutThrough => of(64).min(time),
                Forwarding::Cells => of(53),
            };
            up - time + head + switch.latency.as_picos() + time + way
        }
    };
    Span::picos(picos)
}

/// Once for a frame to another station; twice, and the server's delay, for an address request.
fn there(spec: &NetworkSpec, frame: &Frame, to: Port, once: u64, server: Span) -> Span {
    let whole = if to == frame.from {
        2 * once + server.as_picos()
    } else {
        once
    };
    Span::picos(whole) + spec.path.delay
}

/// A random network, in the words of a file.
fn networks() -> impl Strategy<Value = NetworkSpec> {
    let kinds = 0usize..8;
    let mtu = prop_oneof![
        Just(68u64),
        Just(576),
        Just(1_500),
        Just(9_180),
        68u64..20_000
    ];
    let rate = prop_oneof![
        64_000u64..10_000_000,
        10_000_000u64..1_000_000_000,
        1_000_000_000u64..800_000_000_000
    ];
    let share = prop_oneof![Just("1/1"), Just("26/27"), Just("1/3")];
    let queues = (2u64..20, 1u64..8, any::<bool>(), 1u64..400);
    let times = (
        prop_oneof![Just(0u64), 0u64..5_000_000],
        prop_oneof![Just(0u64), 0u64..50_000_000],
        prop_oneof![Just(0u64), 0u64..2_000_000_000],
    );
    let path = (
        prop_oneof![Just("0/1"), Just("1/10")],
        prop_oneof![Just("0/1"), Just("1/5")],
    );
    let circuits = (
        any::<bool>(),
        0u64..30_000,
        0u64..60_000,
        1u64..4,
        0u64..2_000,
        0u64..100_000,
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (kinds, mtu, rate, share, queues, times, path, circuits, flags).prop_map(
        |(kind, mtu, rate, share, queues, times, path, circuits, flags)| {
            let topology = [
                "mesh", "line", "line", "star", "star", "ring", "torus", "sites",
            ][kind];
            let is_atm = kind == 2 || kind == 4;
            let framing = match (is_atm, flags.0) {
                (true, _) => "atm",
                (false, true) => "ethernet",
                (false, false) => "none",
            };
            let (frames, buffered, by_bytes, cells) = queues;
            let is_lane = topology == "star" && is_atm && cells % 5 == 0;
            let mtu = if is_lane { mtu.min(18_174) } else { mtu };
            let (propagation, latency, delay) = times;
            let mut text = format!(
                "name = \"random\"\nsummary = \"random\"\ntechnology = \"wire\"\ntopology = \"{topology}\"\nmtu = {mtu}\n\
                 [station]\nqueue = \"{}B\"\n\
                 [path]\ndelay = \"{delay}ps\"\nloss = \"{}\"\nreorder = \"{}\"\nreorder_by = \"3ms\"\n\
                 [line]\nframing = \"{framing}\"\npropagation = \"{propagation}ps\"\n",
                mtu * frames, path.0, path.1,
            );
            if kind > 0 {
                text += &format!("rate = \"{rate}bit\"\npayload = \"{share}\"\n");
            }
            if is_atm {
                let name = ["llc-snap", "null", "lane"][if is_lane { 2 } else { usize::from(flags.1) }];
                text += &format!("encapsulation = \"{name}\"\n");
            }
            if kind >= 3 {
                let forwarding = match (is_atm, flags.1) {
                    (true, _) => "cells",
                    (false, true) => "cut-through",
                    (false, false) => "store-and-forward",
                };
                let buffer = match (is_atm, by_bytes) {
                    (true, _) => format!("{cells}cells"),
                    (false, true) => format!("{}B", buffered * mtu),
                    (false, false) => format!("{buffered}frames"),
                };
                text += &format!(
                    "[switch]\nforwarding = \"{forwarding}\"\nlatency = \"{latency}ps\"\nbuffer = \"{buffer}\"\n"
                );
            }
            // Several switches: trunks slower and faster than the lines.
            let trunks = ["10Mbit", "100Gbit"][usize::from(flags.2)];
            let assign = ["spread", "flow-hash"][usize::from(flags.0)];
            text += &match topology {
                "ring" => format!("[fabric]\nswitches = {}\nrate = \"{trunks}\"\nassign = \"{assign}\"\n", 1 + frames),
                "torus" => format!("[fabric]\ndimensions = [{frames}, 2]\nrate = \"{trunks}\"\nassign = \"{assign}\"\n"),
                "sites" => "[[site]]\nname = \"a\"\nhosts = 2\ndelay = \"3ms\"\n[[site]]\nname = \"b\"\nhosts = 9\n[[site]]\nname = \"c\"\nhosts = 0\n".to_owned(),
                _ => String::new(),
            };
            if is_atm {
                let (is_svc, setup, idle, table, delay, lifetime) = circuits;
                let (name, table) = if is_svc { ("svc", table) } else { ("pvc", 64) };
                text += &format!(
                    "[circuits]\nsignalling = \"{name}\"\nsetup = \"{setup}us\"\nidle_release = \"{idle}us\"\ntable = {table}\n\
                     resolution_delay = \"{delay}us\"\nresolution_lifetime = \"{lifetime}us\"\n"
                );
                // Times that were drawn for others choose among the rules for cells.
                let first = ["", "llc_setup = \"3ms\"\n", "reallocation = \"1ms\"\nreallocate_after = \"2ms\"\n", "boot = \"1ms\"\n"];
                text += first[(setup / 8 % 4) as usize];
                if setup % 8 > 1 {
                    let lossy = ["", "cell_loss = \"1/500\"\n"][(idle % 2) as usize];
                    let rule = match setup % 8 {
                        2 => "every_cell = true".to_owned(),
                        3 => "discard = \"ppd\"".to_owned(),
                        4 => "discard = \"epd\"".to_owned(),
                        5 => "discard = \"selective\"\nmodule = 2".to_owned(),
                        6 => format!("pcr = \"{}bit\"", (rate / 7).max(424)),
                        _ => format!("[[atm.contract]]\nclass = 0\ncategory = \"cbr\"\npcr = \"{}bit\"\ncdvt = \"1us\"", (rate / 5).max(424)),
                    };
                    text += &format!("[atm]\n{lossy}{rule}\n");
                }
            }
            parse("random", &text).expect(&text)
        },
    )
}

/// A random segment or ring.
fn shared() -> impl Strategy<Value = NetworkSpec> {
    let rate = prop_oneof![Just(10_000_000u64), 1_000_000u64..200_000_000];
    let mtu = prop_oneof![Just(68u64), Just(1_500), Just(4_352), 68u64..9_000];
    let ring = (0u64..30, 200u64..2_000, 0u64..3_000, 0u64..9_000);
    (any::<bool>(), rate, mtu, 2u64..20, 0u64..=20, 1u32..=16, ring).prop_map(
        |(is_ring, rate, mtu, frames, way, attempts, (stations, delay, fibre, spare))| {
            let head = format!(
                "name = \"random\"\nsummary = \"random\"\ntechnology = \"ethernet\"\nmtu = {mtu}\n"
            );
            let tail = format!("[station]\nqueue = \"{}B\"\n[line]\nrate = \"{rate}bit\"\n", mtu * frames);
            let text = if is_ring {
                // 30 bytes a station, so that the token has its place on a ring of two at any rate.
                let delay = 240_000_000_000 / rate + delay;
                let frame = (mtu + 47) * 8_000_000_000 / rate + 1;
                let round = delay * stations.max(7) + fibre * 6;
                format!(
                    "topology = \"ring\"\n{head}{tail}framing = \"fddi\"\n[token]\nttrt = \"{}ns\"\nstations = {stations}\n\
                     station_delay = \"{delay}ns\"\nfibre_m = {fibre}\n",
                    frame + round + spare * 1_000
                )
            } else {
                // At most 240 bit times fit into a slot there and back.
                let way = 240_000_000_000_000 / rate * way / 20;
                // None in a third of them.
                let turnaround = spare.saturating_sub(3_000);
                format!(
                    "topology = \"bus\"\n{head}{tail}framing = \"ethernet\"\npropagation = \"{way}ps\"\n\
                     [bus]\nattempts = {attempts}\nturnaround = \"{turnaround}ns\"\n"
                )
            };
            parse("random", &text).expect(&text)
        },
    )
}

/// Networks without storage, by every way of asking for connections and of waiting for paths.
fn connections() -> impl Strategy<Value = NetworkSpec> {
    let asking = [
        "busy=camp-on",
        "busy=camp-on:camp_limit=300us",
        "busy=reject:tries=1",
        "busy=reject:tries=50:retry=9us",
    ];
    let serving = ["order=fifo", "order=random"];
    let signals = [
        "signals=inband",
        "signals=outband",
        "setup=2ms:signals=outband",
        "setup=0ns:crossing=0ns",
    ];
    let more = [
        "credits=63",
        "credits=2:length_m=3000",
        "rate=1Gbit:mtu=9180:queue=20KiB",
        "mtu=576",
    ];
    let slots = ["", ":slot=7us", ":slot=700us"];
    let stages = [
        "radix=2",
        "radix=2:paths=1",
        "radix=3:interface=api",
        "depth=3:hop=0ns",
        "mtu=68:queue=1KiB",
    ];
    let hippi = (
        0..asking.len(),
        0..serving.len(),
        0..signals.len(),
        0..more.len(),
        0..slots.len(),
    )
        .prop_map(move |(a, b, c, d, e)| {
            let slot = if asking[a].starts_with("busy=camp") {
                slots[e]
            } else {
                ""
            };
            format!(
                "hippi-800:{}:{}:{}:{}{slot}",
                asking[a], serving[b], signals[c], more[d]
            )
        });
    let allnode = (0..stages.len()).prop_map(move |index| format!("allnode:{}", stages[index]));
    prop_oneof![3 => hippi, 1 => allnode].prop_map(|selector| {
        let read = |path: &str| Err(format!("{path} is not in the catalogue"));
        sonde_link::resolve(&selector, &read).expect(&selector)
    })
}

/// Those of the catalogue, with and without trouble on the way, and random ones.
fn any_network() -> impl Strategy<Value = NetworkSpec> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let listed = (0..catalogue().len(), flags).prop_map(|(index, (is_svc, is_lossy, pauses))| {
        let mut spec = catalogue().swap_remove(index);
        let by_frames = spec.circuits.is_none() && spec.credit.is_none() && pauses;
        if let Some(switch) = spec.switch.as_mut().filter(|_| by_frames) {
            switch.flow_control = FlowControl::Pause;
            switch.buffer = "64MiB".parse().expect("a size");
            switch.memory = None;
        }
        if is_lossy {
            spec.path.loss = "5%".parse().expect("a share");
            spec.path.reorder = "10%".parse().expect("a share");
            spec.path.reorder_by = Span::micros(700);
        }
        if let Some(circuits) = spec.circuits.as_mut().filter(|_| is_svc) {
            circuits.signalling = Signalling::Svc;
        }
        if let Some(credit) = spec.credit.as_mut().filter(|_| is_svc) {
            (credit.class, credit.login) = (1 + (index % 2) as u8, Span::micros(300));
        }
        spec
    });
    prop_oneof![1 => listed, 2 => networks(), 1 => shared(), 1 => connections()]
}

fn scenes() -> impl Strategy<Value = Scene> {
    let gap = prop_oneof![
        4 => Just(0u64),
        2 => 0u64..1_000_000,
        2 => 0u64..1_000_000_000,
        1 => 0u64..100_000_000_000,
    ];
    let len = prop_oneof![3 => Just(u64::MAX), 2 => 0u64..1_600, 1 => 0u64..20_000];
    let draw = (gap, 0u16..64, 0u16..64, 0u8..16, 0u8..12, len);
    (
        any_network(),
        2u16..7,
        any::<u64>(),
        proptest::collection::vec(draw, 1..120),
    )
        .prop_map(|(spec, ports, seed, draws)| {
            let ports = if spec.topology == Topology::Line {
                2
            } else {
                ports
            };
            let mut at = Instant::START;
            let acts = draws
                .into_iter()
                .enumerate()
                .map(|(index, (gap, a, b, to, kind, len))| {
                    at = at + Span::picos(gap);
                    let (from, other) = (Port(a % ports), Port(b % ports));
                    let act = match (to, kind) {
                        (0, 0..3) => Act::Command(Command::Vc(VcCommand::Release(from, other))),
                        (0, 3..6) => Act::Command(Command::Vc(VcCommand::Establish(from, other))),
                        _ => Act::Offer(Frame {
                            id: FrameId(index as u64),
                            from,
                            to: match to {
                                0 => To::One(Port(b)),
                                1 => To::All,
                                2 => To::Unknown,
                                3 => To::Group(GroupId(7)),
                                _ => To::One(other),
                            },
                            len: Bytes(if len == u64::MAX {
                                spec.mtu
                            } else {
                                len % (spec.mtu + 100)
                            }),
                            kind: [Kind::Ip, Kind::Arp, Kind::Resolve(other), Kind::Other]
                                [usize::from(kind % 4)],
                            class: Class::default(),
                            ecn: Ecn::NotCapable,
                            flow: 0,
                        }),
                    };
                    (at, act)
                });
            let acts = acts.collect();
            Scene {
                spec,
                ports,
                seed,
                acts,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn each_copy_leaves_once(scene in scenes()) {
        let story = scene.tell();
        let taken = scene.taken(&story);
        let mut left: BTreeMap<FrameId, BTreeSet<Port>> = BTreeMap::new();
        let mut done = BTreeSet::new();
        for event in &story.events {
            let (id, to, cause) = match *event {
                Event::Deliver { id, to, .. } => (id, to, None),
                Event::Lost { id, to, cause, .. } => (id, to, Some(cause)),
                Event::Done { id } => {
                    let want = scene.copies(&taken[&id].1);
                    let none = [taken[&id].1.from].into();
                    prop_assert_eq!(left.get(&id), Some(&want.unwrap_or(none)), "{:?}", id);
                    prop_assert!(done.insert(id), "{id:?} is done twice");
                    continue;
                }
                Event::Ready { .. } | Event::Busy { .. } | Event::State { .. } => continue,
            };
            prop_assert!(!done.contains(&id), "{event:?} after it was done");
            prop_assert!(left.entry(id).or_default().insert(to), "{event:?} again");
            if let Err(why) = scene.copies(&taken[&id].1) {
                prop_assert_eq!(cause, Some(why));
            }
        }
        prop_assert_eq!(done, taken.keys().copied().collect::<BTreeSet<_>>());
    }

    #[test]
    fn poll_times_do_not_matter(scene in scenes(), draws in proptest::collection::vec(any::<(bool, u8)>(), 1..60)) {
        let exact = scene.tell();
        for polls in [Polls::AfterEach, Polls::Random(draws), Polls::AtEnd] {
            prop_assert_eq!(&scene.play(&polls, |_, _, _| {}).0, &exact, "{:?}", polls);
        }
    }

    #[test]
    fn events_come_in_order_and_an_idle_network_has_none(scene in scenes()) {
        let (story, mut network) = scene.play(&Polls::AfterEach, |_, _, _| {});
        let times: Vec<_> = story.events.iter().filter_map(time).collect();
        prop_assert!(times.is_sorted());
        prop_assert_eq!(network.poll_at(), None);
        prop_assert_eq!(network.poll(Instant::from_picos(u64::MAX)), None);
    }

    #[test]
    fn one_pair_is_first_in_first_out(mut scene in scenes()) {
        scene.spec.path.reorder = sonde_units::Ratio::ZERO;
        let story = scene.tell();
        let taken = scene.taken(&story);
        let mut last = BTreeMap::new();
        for (_, id, to) in deliveries(&story) {
            // Names count up in the order of the offers.
            // Frames to all may go another way than those to one: along a tree of switches, or by the server of a LAN emulation.
            let frame = taken[&id].1;
            let is_apart = scene.spec.circuits.is_some() || scene.spec.topology != Topology::Star;
            let aside = is_apart && !matches!(frame.to, To::One(_));
            let earlier = last.insert((frame.from, to, aside), id);
            prop_assert!(earlier.is_none_or(|earlier| earlier < id), "{id:?} overtook {earlier:?}");
        }
    }

    #[test]
    fn never_early(scene in scenes()) {
        let story = scene.tell();
        let taken = scene.taken(&story);
        for (at, id, to) in deliveries(&story) {
            let (offered, frame) = taken[&id];
            let least = unloaded(&scene.spec, &frame, to);
            prop_assert!(at >= offered + least, "{id:?}: {} after {least}", at.since(offered));
        }
    }

    /// What was offered in a window and arrived in it at one port, or from one station, fits into it.
    #[test]
    fn never_above_the_rate(scene in scenes()) {
        let story = scene.tell();
        let taken = scene.taken(&story);
        let mut at_port: BTreeMap<Port, Vec<_>> = BTreeMap::new();
        let mut of_station: BTreeMap<Port, BTreeMap<FrameId, _>> = BTreeMap::new();
        for (at, id, to) in deliveries(&story) {
            let (offered, frame) = taken[&id];
            let entry = (offered, at, line_times(&scene.spec, frame.len).1);
            at_port.entry(to).or_default().push(entry);
            of_station.entry(frame.from).or_default().entry(id).or_insert(entry);
        }
        let of_station = of_station.into_values().map(|frames| frames.into_values().collect::<Vec<_>>());
        // On a segment the gap behind a frame passes when it has arrived.
        let gap = Span::picos(if scene.spec.bus.is_some() { line_times(&scene.spec, Bytes(0)).0(12) } else { 0 });
        // On a star, each port's frames also come through one serializer, one whole frame after the other.
        // Cells and packets of several mix there.
        let is_mixed = scene.spec.circuits.is_some() || scene.spec.credit.is_some();
        let is_serial = scene.spec.switch.is_some() && !is_mixed;
        for window in at_port.values().filter(|_| is_serial).flat_map(|frames| frames.windows(2)) {
            prop_assert!(window[1].1.since(window[0].1) >= Span::picos(window[1].2));
        }
        for mut frames in at_port.into_values().chain(of_station) {
            frames.sort_by_key(|(_, at, _)| *at);
            for &(from, ..) in &frames {
                let mut used = 0;
                for &(_, at, time) in frames.iter().filter(|(offered, ..)| *offered >= from) {
                    used += time;
                    prop_assert!(at.since(from) + gap >= Span::picos(used), "{used} in {}", at.since(from));
                }
            }
        }
    }

    #[test]
    fn ready_is_kept_and_announced(scene in scenes()) {
        let mut wants = vec![true; usize::from(scene.ports)];
        let (mut told, mut turned, mut wakes) = (0, 0, 0);
        // The address server at the end of a line takes a station's turn, which no offer shows.
        let is_served_line = scene.spec.topology == Topology::Line && scene.spec.circuits.is_some();
        let mut blocked_at = BTreeMap::new();
        let (story, network) = scene.play(&Polls::AfterEach, |index, network, story| {
            let port = scene.acts[index].1.port();
            let was = wants[usize::from(port.0)];
            for event in &story.events[told..] {
                if let Event::Ready { port, .. } = event {
                    wakes += 1;
                    wants[usize::from(port.0)] = true;
                }
            }
            told = story.events.len();
            if story.admissions[index] == Some(Admission::Blocked) {
                // Only a station that said so before refuses a frame.
                assert!(!was || is_served_line, "{port:?} was ready and refused");
                blocked_at.insert(port, told);
            }
            if wants[usize::from(port.0)] && !network.ready(port, Class::default()) {
                wants[usize::from(port.0)] = false;
                turned += 1;
            }
        });
        wakes += story.events[told..].iter().filter(|event| matches!(event, Event::Ready { .. })).count();
        prop_assert!(wakes == turned || is_served_line, "{wakes} for {turned}");
        for port in (0..scene.ports).map(Port) {
            prop_assert!(network.ready(port, Class::default()), "{port:?} never wanted frames again");
        }
        for (port, told) in blocked_at {
            let announced = |event: &Event| matches!(event, Event::Ready { port: ready, .. } if *ready == port);
            prop_assert!(story.events[told..].iter().any(announced));
        }
    }

    #[test]
    fn one_seed_one_story(scene in scenes()) {
        prop_assert_eq!(format!("{:?}", scene.tell()), format!("{:?}", scene.tell()));
    }

    #[test]
    fn counters_agree_with_events(scene in scenes()) {
        let (story, network) = scene.play(&Polls::AtEnd, |_, _, _| {});
        let (taken, counters) = (scene.taken(&story), network.counters());
        let mut ports = vec![sonde_link::PortCounters::default(); usize::from(scene.ports)];
        for (_, frame) in taken.values() {
            ports[usize::from(frame.from.0)].taken += 1;
            ports[usize::from(frame.from.0)].taken_bytes += frame.len;
        }
        for ((_, act), admission) in scene.acts.iter().zip(&story.admissions) {
            if let (Act::Offer(frame), Some(Admission::Blocked)) = (act, admission) {
                ports[usize::from(frame.from.0)].blocked += 1;
            }
        }
        for (_, id, to) in deliveries(&story) {
            ports[usize::from(to.0)].delivered += 1;
            ports[usize::from(to.0)].delivered_bytes += taken[&id].1.len;
        }
        for (port, counted) in ports.iter_mut().zip(&counters.ports) {
            // What the address server at the end of a line sends there is not asked for room.
            let is_served_line = scene.spec.topology == Topology::Line && scene.spec.circuits.is_some();
            prop_assert!(is_served_line || counted.backlog_bytes_max <= scene.spec.station.queue);
            port.backlog_bytes_max = counted.backlog_bytes_max;
        }
        prop_assert_eq!(&counters.ports, &ports);
        let mut lost: BTreeMap<(Place, Cause, Port), u64> = BTreeMap::new();
        for event in &story.events {
            if let Event::Lost { id, place, cause, .. } = event {
                *lost.entry((*place, *cause, taken[id].1.from)).or_default() += 1;
            }
        }
        prop_assert_eq!(&counters.lost, &lost);
        prop_assert_eq!(counters.lost_total(), lost.values().sum::<u64>());
    }

    /// A station that stops when it is told, but for half a queue less a frame that slips through, is never refused.
    #[test]
    fn what_slips_finds_room(spec in any_network(), draws in proptest::collection::vec((0u64..2_000_000_000, 1u64..9_999, any::<bool>()), 1..200)) {
        let mut network = Fabric::new(&spec, 2, 1).expect("the specification is right");
        let (mut now, mut slipped) = (Instant::START, 0);
        for (index, (gap, len, slips)) in draws.into_iter().enumerate() {
            now = now + Span::picos(gap);
            while network.poll(now).is_some() {}
            let len = len % spec.mtu + 1;
            if network.ready(Port(0), Class::default()) {
                slipped = 0;
            } else if slips && slipped + len + spec.mtu <= spec.station.queue.0 / 2 {
                slipped += len;
            } else {
                continue;
            }
            let frame = Frame::datagram(FrameId(index as u64), Port(0), Port(1), Bytes(len));
            prop_assert_eq!(network.offer(now, frame), Admission::Taken);
        }
    }
}

/// A tenth of the frames is held back by far more than the distance between two.
#[test]
fn reordered_frames_are_overtaken() {
    let mut spec = sonde_link::named("wan-100m-20ms").expect("it is in the catalogue");
    spec.path.reorder = "10%".parse().expect("a share");
    spec.path.reorder_by = Span::millis(5);
    let acts = (0..400).map(|id| {
        let frame = Frame::datagram(FrameId(id), Port(0), Port(1), Bytes(1_000));
        (Instant::START + Span::micros(200) * id, Act::Offer(frame))
    });
    let acts = acts.collect();
    let scene = Scene {
        spec,
        ports: 2,
        seed: 3,
        acts,
    };
    let order: Vec<_> = deliveries(&scene.tell()).map(|(_, id, _)| id).collect();
    assert_eq!(order.len(), 400);
    let overtaken = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
    // Forty are expected, six standard deviations either way.
    assert!((4..=76).contains(&overtaken), "{overtaken}");
}
