//! The cost of a frame and of a cell: offer, polls, until its `Done`, with every station always full.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sonde_link::{
    Admission, CELL_PAYLOAD, Class, Ecn, Event, Fabric, Frame, FrameId, Internetwork, Kind,
    Network, Port, To, parse_site, resolve,
};
use sonde_units::{Bytes, Instant, Span};
use std::hint::black_box;

/// A network, and stations that send full frames whenever they may.
struct Saturated<N> {
    network: N,
    now: Instant,
    offered: u64,
    len: Bytes,
    /// Who sends to whom.
    pairs: Vec<(Port, Port)>,
}

impl Saturated<Fabric> {
    fn new(name: &str, ports: u16, pairs: Vec<(Port, Port)>) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
        let spec = resolve(name, &read).expect("it is in the catalogue, or an example");
        let network = Fabric::new(&spec, ports, 1).expect("it is in the catalogue");
        Self::of(network, spec.mtu, pairs)
    }
}

impl<N: Network> Saturated<N> {
    fn of(network: N, mtu: u64, pairs: Vec<(Port, Port)>) -> Self {
        let mut saturated = Self {
            network,
            now: Instant::START,
            offered: 0,
            len: Bytes(mtu),
            pairs,
        };
        for pair in saturated.pairs.clone() {
            saturated.fill(pair);
        }
        saturated
    }

    fn fill(&mut self, (from, to): (Port, Port)) {
        while self.network.ready(from, Class::default()) {
            let frame = Frame {
                id: FrameId(self.offered),
                from,
                to: To::One(to),
                len: self.len,
                kind: Kind::Ip,
                class: Class::default(),
                ecn: Ecn::NotCapable,
                flow: 0,
            };
            self.offered += 1;
            assert_eq!(self.network.offer(self.now, frame), Admission::Taken);
        }
    }

    /// Goes on until `frames` are done.
    fn run(&mut self, frames: u64) {
        let mut done = 0;
        while done < frames {
            self.now = self.network.poll_at().expect("there is always more");
            while let Some(event) = self.network.poll(self.now) {
                match black_box(event) {
                    Event::Done { .. } => done += 1,
                    Event::Ready { port, .. } => {
                        let pair = self.pairs.iter().find(|(from, _)| *from == port);
                        self.fill(*pair.expect("only senders wait"));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Each port to the next, all lines full in both directions.
fn round(ports: u16) -> Vec<(Port, Port)> {
    (0..ports)
        .map(|from| (Port(from), Port((from + 1) % ports)))
        .collect()
}

/// So many ports to one more.
fn incast(senders: u16) -> Vec<(Port, Port)> {
    (0..senders)
        .map(|from| (Port(from), Port(senders)))
        .collect()
}

const FAT_TREE: &str = "../../plans/examples/networks/fat-tree.toml";

fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame");
    group.throughput(Throughput::Elements(10_000));
    let two_into_one = vec![(Port(0), Port(2)), (Port(1), Port(2))];
    let pods = (0..16).map(|from| (Port(from), Port((from + 4) % 16)));
    let pods = pods.collect();
    for (name, what, ports, pairs) in [
        ("ethernet-1g", "2 ports", 2, round(2)),
        ("ethernet-1g", "8 ports", 8, round(8)),
        ("ethernet-100g", "8 ports", 8, round(8)),
        ("ethernet-1g:flow_control=pause", "8 ports", 8, round(8)),
        ("ethernet-1g:flow_control=pause", "8 into 1", 9, incast(8)),
        (FAT_TREE, "16 ports, 5 switches on the way", 16, pods),
        ("hippi-800", "8 ports", 8, round(8)),
        ("hippi-800", "8 into 1", 9, incast(8)),
        ("allnode", "8 ports", 8, round(8)),
        ("allnode", "8 into 1", 9, incast(8)),
        ("atm-oc3c", "2 ports", 2, round(2)),
        ("ethernet-10", "1 of 2 ports", 2, vec![(Port(0), Port(1))]),
        ("ethernet-10", "8 ports", 8, round(8)),
        ("ethernet-10", "24 ports", 24, round(24)),
        ("fddi", "8 ports", 8, round(8)),
        ("atm-oc3c", "2 into 1", 3, two_into_one),
        ("sci-sbus", "4 nodes, 1 sender", 4, vec![(Port(0), Port(1))]),
        ("sci-sbus", "4 nodes", 4, round(4)),
        ("sci-1g8", "4 nodes, 1 sender", 4, vec![(Port(0), Port(1))]),
        ("sci-1g8", "4 nodes", 4, round(4)),
    ] {
        let mut saturated = Saturated::new(name, ports, pairs);
        saturated.run(10_000);
        group.bench_function(BenchmarkId::new(name, what), |bencher| {
            bencher.iter(|| saturated.run(10_000));
        });
    }
    group.finish();
}

/// The same over three segments of a site of a thousand hosts: each of fifty rooms sends from one host to the next room.
fn hops(criterion: &mut Criterion) {
    const ROOMS: u16 = 50;
    const HOSTS: u16 = 20;
    let mut text = "name = \"rooms\"\nsummary = \"rooms\"\n".to_owned();
    text += "[[segment]]\nname = \"core\"\nnetwork = \"ethernet-10g\"\nhosts = []\n";
    for room in 0..ROOMS {
        text += &format!(
            "[[segment]]\nname = \"room-{room}\"\nnetwork = \"ethernet-100\"\nhosts = [\"x{room}-[1-{HOSTS}]\"]\n\
             [[bridge]]\nname = \"b{room}\"\njoins = [\"room-{room}\", \"core\"]\n"
        );
    }
    let site = parse_site("rooms", &text, &|_| unreachable!()).expect("it is a site");
    let network = Internetwork::new(&site, 1).expect("it is a site");
    let pairs = (0..ROOMS).map(|room| (Port(room * HOSTS), Port((room + 1) % ROOMS * HOSTS)));
    let mut saturated = Saturated::of(network, site.mtu(), pairs.collect());
    saturated.run(100_000);
    let mut group = criterion.benchmark_group("hop");
    group.throughput(Throughput::Elements(3 * 10_000));
    group.bench_function("1,000 hosts, 3 segments on the way", |bencher| {
        bencher.iter(|| saturated.run(10_000));
    });
    group.finish();
}

/// The same by the cell: 192 of them in a frame of 9180 bytes.
fn cells(criterion: &mut Criterion) {
    let cells = (9_180 + 8 + 8u64).div_ceil(CELL_PAYLOAD.0);
    let mut group = criterion.benchmark_group("cell");
    group.throughput(Throughput::Elements(1_000 * cells));
    let two_into_one = vec![(Port(0), Port(2)), (Port(1), Port(2))];
    // Trains, and each cell alone: with a rule for discard, and with a rate for each circuit.
    for (name, what, ports, pairs) in [
        ("atm-oc3c", "2 into 1", 3, two_into_one.clone()),
        ("atm-oc3c", "8 ports", 8, round(8)),
        ("atm-oc3c:discard=epd", "2 into 1", 3, two_into_one),
        ("atm-oc3c:discard=epd", "8 ports", 8, round(8)),
        ("atm-oc3c:pcr=70Mbit", "8 ports", 8, round(8)),
    ] {
        let mut saturated = Saturated::new(name, ports, pairs);
        saturated.run(1_000);
        group.bench_function(BenchmarkId::new(name, what), |bencher| {
            bencher.iter(|| saturated.run(1_000));
        });
    }
    group.finish();
}

/// The same by the packet: 31 in a datagram of 65280 bytes on Fibre Channel, 265 in one of 65520 on the SP-2.
fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet");
    let into_one = |ports| (1..ports).map(|from| (Port(from), Port(0))).collect();
    for (name, what, ports, pairs, packets) in [
        ("fc-266", "1 to 1", 2, vec![(Port(0), Port(1))], 31),
        ("fc-266", "2 ports", 2, round(2), 31),
        ("fc-266", "8 ports", 8, round(8), 31),
        ("fc-266", "8 into 1", 9, into_one(9), 31),
        ("sp2", "1 to 1", 8, vec![(Port(0), Port(5))], 265),
        ("sp2", "8 ports", 8, round(8), 265),
        ("sp2", "8 into 1", 9, into_one(9), 265),
    ] {
        let mut saturated = Saturated::new(name, ports, pairs);
        saturated.run(100);
        group.throughput(Throughput::Elements(100 * packets));
        group.bench_function(BenchmarkId::new(name, what), |bencher| {
            bencher.iter(|| saturated.run(100));
        });
    }
    group.finish();
}

/// A frame of background traffic: single cells, and full frames, at 0.9 of the link.
fn ghosts(criterion: &mut Criterion) {
    const FRAMES: u64 = 10_000;
    let mut group = criterion.benchmark_group("ghost");
    group.throughput(Throughput::Elements(FRAMES));
    for (name, law) in [
        ("atm-oc3c", "constant"),
        ("atm-oc3c", "poisson"),
        ("atm-oc3c", "geometric"),
        ("atm-oc3c", "self-similar:20"),
        ("ethernet-1g", "poisson"),
    ] {
        let spec = sonde_link::named(name).expect("it is in the catalogue");
        let mut network = Fabric::new(&spec, 2, 1).expect("it is in the catalogue");
        let load = format!("load 0 h2 rho=0.9 law={law}");
        let load = load.parse().expect("it is a command");
        network
            .command(Instant::START, load)
            .expect("it has a rate");
        let time = network.counters().flows[0].frame_time;
        let mut until = Instant::START;
        group.bench_function(BenchmarkId::new(name, law), |bencher| {
            bencher.iter(|| {
                // So many in the mean.
                until = until + Span::picos(time.as_picos() * 10 / 9) * FRAMES;
                while let Some(now) = network.poll_at().filter(|now| *now <= until) {
                    black_box(network.poll(now));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, frames, hops, cells, packets, ghosts);
criterion_main!(benches);
