//! Saturated rings against the arithmetic of what each link carries.
//!
//! Source:  a block of 64 bytes over k of n hops: request 82 bytes on k links, echo 10 on n - k, response 18 on n - k, its
//!          echo 10 on k (IEEE 1596-1992).

use super::ring::Rings;
use super::source::NEVER;
use crate::edge::Edge;
use crate::medium::{Medium, Target};
use crate::network::{Command, Event};
use crate::{Fault, Frame, FrameId, NetworkSpec, Port, To, resolve};
use sonde_units::{BitRate, Bytes, Instant, Span};

const LEN: u64 = 1_024;

fn spec(selector: &str) -> NetworkSpec {
    resolve(selector, &|path| panic!("{path} is not in the catalogue")).expect(selector)
}

/// A ring with a saturated sender for each flow, for some time.
struct Run {
    rings: Rings,
    /// Payload bytes of each flow that came in the second half.
    bytes: Vec<u64>,
    /// Link bytes at half time.
    before: Vec<u64>,
    half: Span,
}

fn frame(id: u64, from: u16, to: u16, len: u64) -> Frame {
    Frame::datagram(FrameId(id), Port(from), Port(to), Bytes(len))
}

impl Run {
    /// Frames of each station go to the targets of its list in turn.
    fn new(spec: &NetworkSpec, targets: &[Vec<u16>], half: Span) -> Self {
        let ports = targets.len() as u16;
        let table = spec.sci.as_ref().expect("it is a ring");
        let mut run = Self {
            rings: Rings::new(spec, table, ports, 1).expect("it can be built"),
            bytes: vec![0; targets.len()],
            before: Vec::new(),
            half,
        };
        let mut edge = Edge::new(spec, ports, 1);
        let mut sent = vec![0u64; targets.len()];
        let mut now = Instant::START;
        loop {
            for (from, to) in targets.iter().enumerate().filter(|(_, to)| !to.is_empty()) {
                let port = Port(from as u16);
                while run.rings.ready(port) && run.rings.admits(now, port, Bytes(LEN)) {
                    let to = to[sent[from] as usize % to.len()];
                    let frame = frame(sent[from] << 16 | from as u64, port.0, to, LEN);
                    run.rings.take(now, frame, Target::One(Port(to)), &mut edge);
                    sent[from] += 1;
                }
            }
            let Some(at) = run
                .rings
                .next_at()
                .filter(|at| *at <= Instant::START + half * 2)
            else {
                return run;
            };
            assert!(at >= now);
            now = at;
            run.rings.step(&mut edge);
            if run.before.is_empty() && now > Instant::START + half {
                run.before = run.rings.nodes.iter().map(|node| node.carried).collect();
            }
            while let Some(event) = edge.tell() {
                if let Event::Deliver { at, id, .. } = event {
                    assert_eq!(at, now);
                    if !run.before.is_empty() {
                        run.bytes[(id.0 & 0xffff) as usize] += LEN;
                    }
                }
            }
        }
    }

    /// Payload bytes a second, of all.
    fn total(&self) -> f64 {
        self.bytes.iter().sum::<u64>() as f64 / (self.half.as_picos() as f64 / 1e12)
    }

    /// No link carried more than its rate, and no packet waited for more than one packet and an echo.
    fn holds(&self, bytes_a_second: f64) {
        let second = self.half.as_picos() as f64 / 1e12;
        for (node, before) in self.rings.nodes.iter().zip(&self.before) {
            let carried = (node.carried - before) as f64;
            assert!(carried <= bytes_a_second * second + 2.0 * 82.0, "{carried}");
            let most = (82.0 + 10.0) / bytes_a_second * 1e12;
            assert!(node.lag_max.as_picos() as f64 <= most, "{}", node.lag_max);
        }
    }
}

fn ring(n: u16, step: u16) -> Vec<Vec<u16>> {
    (0..n).map(|from| vec![(from + step) % n]).collect()
}

/// All links alike: n links of 125 MB/s over what a block needs of them.
#[test]
fn neighbours_fill_all_links() {
    for (n, want) in [(4u16, 182e6), (10, 232.6e6), (20, 256.4e6)] {
        let k = 1.0;
        let need = (82.0 + 10.0) * k + (18.0 + 10.0) * (f64::from(n) - k);
        let bound = f64::from(n) * 125e6 * 64.0 / need;
        assert!((bound / want - 1.0).abs() < 0.002, "{bound}");
        let spec = spec("sci-sbus:host_rate=10Gbit:store_time=0s:active=64:input=64:fair=false");
        let run = Run::new(&spec, &ring(n, 1), Span::millis(20));
        run.holds(125e6);
        let share = run.total() / bound;
        println!("neighbours {n}: {share:.4} of {bound:.0}");
        assert!(share > 0.97 && share <= 1.001, "{n}: {share}");
    }
}

/// Half way round costs 60 n bytes of link time a block: 133 MB/s whatever n.
#[test]
fn half_way_round_is_133_whatever_the_size() {
    for n in [4u16, 10, 20, 40] {
        let spec = spec("sci-sbus:host_rate=10Gbit:store_time=0s:active=64:input=64:fair=false");
        let run = Run::new(&spec, &ring(n, n / 2), Span::millis(20));
        run.holds(125e6);
        let share = run.total() / 133.3e6;
        println!("half way {n}: {share:.4}");
        assert!(share > 0.97 && share <= 1.001, "{n}: {share}");
    }
}

/// Without responses: 2 C Lp / (Ls + Le), 1.39 C.
#[test]
fn moves_without_a_response_reach_1_39_of_the_link() {
    let spec = spec(
        "sci-sbus:host_rate=10Gbit:store_time=0s:active=64:input=64:fair=false:response=false",
    );
    let run = Run::new(&spec, &ring(10, 5), Span::millis(20));
    run.holds(125e6);
    let share = run.total() / 125e6;
    println!("moves: {share:.4}");
    assert!(share > 1.39 * 0.97 && share < 1.3913 * 1.002, "{share}");
}

/// 36 Mb/s a node: 133 MB/s are reached at 29.6 nodes, half way round; every other half way less or more.
#[test]
fn the_knee_is_between_20_and_30_nodes() {
    for n in [5u16, 10, 20, 24, 28, 32, 40] {
        let offered = f64::from(n) * 36e6 / 8.0;
        let spec = spec("sci-sbus:active=64");
        let half = n / 2;
        let run = Run::new(&spec, &ring(n, half), Span::millis(20));
        run.holds(125e6);
        let share = run.total() / offered;
        let of_links = run.total() / 133.3e6;
        println!("{n} nodes: {share:.4} of the offered, {of_links:.4} of the ring");
        if n <= 28 {
            assert!(share > 0.985, "{n}: {share}");
        } else {
            assert!(share < 0.95 && of_links > 0.95, "{n}: {share}, {of_links}");
        }
    }
}

/// A node after a sender that fills the ring gets one packet through, and its share with go bits, at a price.
#[test]
fn go_bits_end_starvation_at_a_price() {
    // The third node's traffic is in nobody's way, and stops with the others.
    let targets = [vec![2], vec![2], vec![3], vec![]];
    let run = |fair: &str| {
        let selector = format!("sci-1g8:rate=1Gbit:input=64:fair={fair}");
        let run = Run::new(&spec(&selector), &targets, Span::millis(20));
        println!(
            "fair {fair}: {:?}, lag {}",
            run.bytes, run.rings.nodes[1].lag_max
        );
        run.holds(125e6);
        (run.bytes[0], run.bytes[1], run.total())
    };
    let (first, second, total) = run("false");
    assert!(second * 20 < first, "{first}, {second}");
    let (first, second, fair_total) = run("true");
    assert!(
        second * 4 > first && first * 4 > second,
        "{first}, {second}"
    );
    assert!(fair_total < total);
}

/// Eight senders into one: what the interface takes is delivered, the rest is echoed busy and comes again.
#[test]
fn a_busy_target_is_tried_again() {
    for aging in ["true", "false"] {
        let mut targets = vec![vec![8u16]; 8];
        targets.push(vec![]);
        let spec = spec(&format!("sci-sbus:aging={aging}"));
        let run = Run::new(&spec, &targets, Span::millis(100));
        let busy: u64 = run.rings.nodes.iter().map(|node| node.busy).sum();
        let share = run.total() / 4.5e6;
        println!("aging {aging}: {busy} busy, {share:.4}, {:?}", run.bytes);
        assert!(busy > 1_000, "{busy}");
        assert!(
            share > 0.98 && share <= 1.002 + 8.0 * 1_024.0 / 450e3,
            "{share}"
        );
        let (least, most) = (run.bytes.iter().take(8).min(), run.bytes.iter().max());
        if aging == "true" {
            assert!(2 * least.unwrap() > *most.unwrap(), "{:?}", run.bytes);
        }
    }
}

/// Two rings with traffic of their own carry twice what one does; what crosses needs both.
#[test]
fn two_rings_carry_twice_as_much() {
    let base =
        "sci-sbus:host_rate=10Gbit:store_time=0s:active=64:input=64:fair=false:switch_queue=64";
    let one = Run::new(&spec(base), &ring(6, 3), Span::millis(20)).total();
    // Six hosts and the switch on each ring.
    let two = spec(&format!("{base}:rings=2"));
    let own: Vec<_> = (0..12u16)
        .map(|p| vec![p / 6 * 6 + (p % 6 + 3) % 6])
        .collect();
    let apart = Run::new(&two, &own, Span::millis(20)).total();
    let across: Vec<_> = (0..12u16).map(|p| vec![(p + 6) % 12]).collect();
    let across = Run::new(&two, &across, Span::millis(20)).total();
    println!("one {one:.0}, two apart {apart:.0}, across {across:.0}");
    // Half way between six hosts is 3 or, past the switch, 4 of 7 hops: 3.5 in the mean.
    assert!((apart / (2.0 * 133.3e6) - 1.0).abs() < 0.03, "{apart}");
    assert!((one / 133.3e6 - 1.0).abs() < 0.03, "{one}");
    assert!(across < 0.55 * apart && across > 0.3 * apart, "{across}");
}

/// The rate of a link changes from the next packet on.
#[test]
fn a_slower_rate_makes_all_slower() {
    let spec = spec("sci-1g8");
    let mut rings = Rings::new(&spec, spec.sci.as_ref().unwrap(), 2, 1).unwrap();
    let mut edge = Edge::new(&spec, 2, 1);
    let rate = Fault::Rate {
        rate: Some(BitRate::mbit(100)),
    };
    rings
        .command(Instant::START, Command::Fault(rate), &mut edge)
        .unwrap();
    rings.take(
        Instant::START,
        frame(1, 0, 1, 64),
        Target::One(Port(1)),
        &mut edge,
    );
    while rings.next_at().is_some() {
        rings.step(&mut edge);
    }
    let Some(Event::Deliver { at, .. }) = edge.tell() else {
        panic!("it was delivered");
    };
    // 82 bytes at 80 ns, 3 m and a node.
    assert_eq!(at.as_picos(), 82 * 80_000 + 15_000 + 200_000);
    let restart = Fault::Restart {
        down: Span::millis(1),
    };
    assert!(
        rings
            .command(at, Command::Fault(restart), &mut edge)
            .is_err()
    );
    assert_ne!(at, NEVER);
}

/// Whatever the rings, queues and times of retry: all that was offered in 60 ms is delivered within a second, so that no
/// two nodes wait for each other, and none for ever for its turn or for a place that nobody gives back.
#[test]
fn everything_arrives() {
    use rand_core::{Rng, SeedableRng};
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(3);
    for round in 0..1_500 {
        let mut pick = |of: &[&'static str]| of[(rng.next_u64() % of.len() as u64) as usize];
        let selector = [
            pick(&["sci-sbus", "sci-1g8"]),
            pick(&["", "rings=2", "rings=3:switch_queue=1"]),
            pick(&["input=1", "input=2", "input=8"]),
            pick(&["active=1", "active=8", "active=64"]),
            pick(&["retry=0s", "retry=1ns", "retry=1us"]),
            pick(&["fair=false", "fair=true"]),
            pick(&["aging=false", "", ""]),
            pick(&["response=false", ""]),
            pick(&["nodes=9", ""]),
            pick(&["host_rate=36Mbit", ""]),
        ]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(":");
        let spec = spec(&selector);
        let mut rings = Rings::new(&spec, spec.sci.as_ref().unwrap(), 6, 1).unwrap();
        let mut edge = Edge::new(&spec, 6, 1);
        let frames = 1 + rng.next_u64() % 60;
        let mut at = Instant::START;
        for id in 0..frames {
            // At once, or a moment later.
            at = at + Span::nanos(rng.next_u64() % 2 * (rng.next_u64() % 1_000_000));
            rings.run(at, &mut edge);
            let from = (rng.next_u64() % 5) as u16;
            // Half of them to the last.
            let to = if rng.next_u64() % 2 == 0 {
                5
            } else {
                (from + 1 + (rng.next_u64() % 4) as u16) % 5
            };
            let frame = frame(id, from, to, rng.next_u64() % 1_500);
            rings.take(at, frame, Target::One(Port(to)), &mut edge);
        }
        rings.run(Instant::START + Span::secs(1), &mut edge);
        let told = std::iter::from_fn(|| edge.tell());
        let arrived = told.filter(|event| matches!(event, Event::Deliver { .. }));
        let left = frames - arrived.count() as u64;
        assert_eq!(left, 0, "{round} {selector}: {left} of {frames} are left");
        assert_eq!(rings.live, 0, "{round} {selector}");
        assert!(rings.nodes.iter().all(|node| node.held == 0), "{selector}");
    }
}

/// Any frames at any times: lone transactions at once are what their packets do one by one.
#[test]
fn a_jump_is_its_packets() {
    use rand_core::{Rng, SeedableRng};
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(7);
    let mut jumped = 0;
    for round in 0..300 {
        let selector = [
            "sci-sbus",
            "sci-sbus:response=false:nodes=9",
            "sci-sbus:store=8:store_time=15us",
            "sci-sbus:input=1:active=1",
            "sci-1g8:dma_setup=9us",
            "sci-1g8:rings=2:host_rate=300Mbit",
            "sci-sbus:offset=20:fair=false",
        ][round % 7];
        let spec = spec(selector);
        let mut at = Instant::START;
        let mut acts = Vec::new();
        for id in 0..1 + rng.next_u64() % 12 {
            let gap = [0, 3_000_000, 60_000_000, 900_000_000][(rng.next_u64() % 4) as usize];
            at = at + Span::picos(rng.next_u64() % (gap + 1));
            let from = (rng.next_u64() % 4) as u16;
            let to = (from + 1 + (rng.next_u64() % 3) as u16) % 4;
            acts.push((at, frame(id, from, to, rng.next_u64() % 1_500)));
        }
        let play = |jumps: bool| {
            let mut rings = Rings::new(&spec, spec.sci.as_ref().unwrap(), 4, 1).unwrap();
            rings.jumps = jumps;
            let mut edge = Edge::new(&spec, 4, 1);
            let mut steps = 0;
            for (at, frame) in &acts {
                while rings.next_at().is_some_and(|due| due <= *at) {
                    rings.step(&mut edge);
                    steps += 1;
                }
                let To::One(to) = frame.to else { panic!() };
                rings.take(*at, *frame, Target::One(to), &mut edge);
            }
            while rings.next_at().is_some() {
                rings.step(&mut edge);
            }
            rings.run(Instant::from_picos(u64::MAX / 2), &mut edge);
            let events: Vec<_> = std::iter::from_fn(|| edge.tell()).collect();
            let counts = rings.nodes.iter().map(|n| (n.carried, n.busy, n.lag_max));
            assert_eq!(rings.live, 0);
            assert!(rings.sources.iter().all(|source| source.active == 0));
            (events, counts.collect::<Vec<_>>(), steps)
        };
        let (by_jumps, by_packets) = (play(true), play(false));
        assert_eq!(by_jumps.0, by_packets.0, "{selector}");
        assert_eq!(by_jumps.1, by_packets.1, "{selector}");
        jumped += by_jumps.0.len();
    }
    assert!(jumped > 1_000);
}
