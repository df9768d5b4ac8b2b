//! Background load against queueing theory: single cells into an output of an OC-3c switch, frames of exponential length into
//! one of a plain star.
//!
//! Model:   M/D/1: mean wait rho / (2 (1 - rho)), P(W > x) = 1 - (1 - rho) sum over k to x of (rho (k - x))^k / k! e^(-rho (k - x)).
//!          N D/D/1: Roberts and Virtamo's sum. N Geo/D/1: (N - 1) / N rho / (2 (1 - rho)) for N sources of rho / N, in slots.
//!          M/D/1/K: P(loss) = 1 - 1 / (pi0 + rho), pi0 from the chain at departures. M/M/1/K:
//!          (1 - rho) rho^K / (1 - rho^(K + 1)).
//! Source:  Kleinrock 1975 §3.6, §5; Takagi 1993 (M/G/1/K); Roberts & Virtamo 1991; Karol, Hluchyj & Morgan 1987 (slotted
//!          output queue).
//! Units:   one cell's time on the line, unless said.
//! Checked: means and shares of 40 batches, each a seed of its own, within 3.6 standard errors (Student, 39 degrees of
//!          freedom: passed by one right model in a thousand); the seeds are fixed.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_link::{
    Admission, Captured, Class, Command, Event, Fabric, Flow, Frame, FrameId, Law, Network, Port,
    parse, resolve,
};
use sonde_units::{Bytes, Instant, Ratio, Span};

const BATCHES: u64 = 40;
const SIGMAS: f64 = 3.6;

/// Mean and standard error of batches.
fn mean(batches: &[f64]) -> (f64, f64) {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn agree(what: &str, batches: &[f64], want: f64) {
    let (mean, error) = mean(batches);
    println!("{what}: {mean:.5} ± {error:.5}, theory {want:.5}");
    assert!(
        (mean - want).abs() <= SIGMAS * error,
        "{what}: {mean} ± {error}, not {want}"
    );
    // A test that would take anything is none.
    assert!(
        error < want * 0.2 + 1e-5,
        "{what}: {mean} ± {error} says little"
    );
}

fn uniform(random: &mut Pcg64Mcg) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

fn flow(number: u8, law: Law, rho: Ratio) -> Flow {
    Flow {
        number,
        from: None,
        to: Port(1),
        rho,
        law,
        size: Bytes::ZERO,
        class: Class::default(),
    }
}

/// What single cells of foreground wait, in cells: the delay beyond that of an empty network. They come like a Poisson
/// stream that takes `share` of the line, after `warm` cells.
fn waits(seed: u64, flows: &[Flow], share: f64, probes: u64, warm: u64) -> Vec<f64> {
    let spec = resolve("atm-oc3c:buffer=60000cells", &|_| unreachable!()).unwrap();
    let cell = spec.frame_time(Bytes(32));
    let mut network = Fabric::new(&spec, 2, seed).unwrap();
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0xbeef);
    for flow in flows {
        network
            .command(Instant::START, Command::Load(*flow))
            .unwrap();
    }
    let (mut at, mut sent, mut waits) = (Instant::START + cell * warm, Vec::new(), Vec::new());
    let mut empty = Fabric::new(&spec, 2, seed).unwrap();
    let offer = |network: &mut Fabric, at: Instant, id: u64| {
        let probe = Frame::datagram(FrameId(id), Port(0), Port(1), Bytes(32));
        assert_eq!(network.offer(at, probe), Admission::Taken);
    };
    offer(&mut empty, Instant::START, 0);
    let base = empty.poll_at().map(|_| {
        let mut arrived = Span::ZERO;
        while let Some(due) = empty.poll_at() {
            while let Some(event) = empty.poll(due) {
                if let Event::Deliver { at, .. } = event {
                    arrived = at.since(Instant::START);
                }
            }
        }
        arrived
    });
    let base = base.unwrap();
    let hear = |network: &mut Fabric, now: Instant, sent: &[Instant], waits: &mut Vec<f64>| {
        while let Some(event) = network.poll(now) {
            if let Event::Deliver { at, id, .. } = event {
                let wait = at.since(sent[id.0 as usize] + base);
                waits.push(wait.as_picos() as f64 / cell.as_picos() as f64);
            }
        }
    };
    for id in 0..probes {
        let gap = -uniform(&mut random).ln() / share * cell.as_picos() as f64;
        at = at + Span::picos(gap as u64);
        hear(&mut network, at, &sent, &mut waits);
        // The station's own line may make it wait: the cell counts from when that is over.
        let begins = at.max(sent.last().map_or(at, |last: &Instant| *last + cell));
        sent.push(begins);
        offer(&mut network, at, id);
    }
    hear(&mut network, at + cell * 5_000, &sent, &mut waits);
    assert_eq!(waits.len() as u64, probes);
    waits
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn share_above(values: &[f64], x: f64) -> f64 {
    // A wait of x cells is rounded to picoseconds.
    values.iter().filter(|wait| **wait > x + 1e-5).count() as f64 / values.len() as f64
}

fn md1_tail(rho: f64, x: u32) -> f64 {
    let term = |k: u32| {
        let y = rho * (f64::from(k) - f64::from(x));
        let power = (1..=k).fold(1.0, |product, i| product * y / f64::from(i));
        power * (-y).exp()
    };
    1.0 - (1.0 - rho) * (0..=x).map(term).sum::<f64>()
}

#[test]
fn poisson_cells_wait_as_in_m_d_1() {
    // A twentieth of the load is foreground, which is Poisson too: the whole is what theory means.
    for (rho, want, probes, warm) in [
        (0.5, 0.5, 600, 500),
        (0.8, 2.0, 1_000, 2_000),
        (0.9, 4.5, 1_500, 8_000),
        (0.95, 9.5, 3_000, 30_000),
    ] {
        let share = rho / 20.0;
        let level = Ratio::new((rho * 950_000.0) as u64, 1_000_000);
        let batches: Vec<_> = (0..BATCHES)
            .map(|seed| waits(seed, &[flow(0, Law::Poisson, level)], share, probes, warm))
            .collect();
        let of = |f: &dyn Fn(&[f64]) -> f64| batches.iter().map(|w| f(w)).collect::<Vec<_>>();
        agree(&format!("M/D/1 mean at {rho}"), &of(&|w| average(w)), want);
        for x in [1, 2, 5, 10] {
            let tail = md1_tail(rho, x);
            if tail > 0.002 {
                let shares = of(&|w| share_above(w, x.into()));
                agree(&format!("M/D/1 P(W > {x}) at {rho}"), &shares, tail);
            }
        }
    }
}

#[test]
fn the_tail_formula_is_the_table_s() {
    for (rho, x, want) in [
        (0.8, 5, 1.01e-1),
        (0.8, 10, 1.17e-2),
        (0.9, 5, 3.31e-1),
        (0.9, 10, 1.18e-1),
        (0.95, 5, 5.81e-1),
    ] {
        assert!(
            (md1_tail(rho, x) / want - 1.0).abs() < 0.01,
            "{rho} {x}: {}",
            md1_tail(rho, x)
        );
    }
    for (n, d, x, want) in [
        (40, 50, 2, 3.0e-1),
        (40, 50, 5, 3.15e-2),
        (45, 50, 5, 1.1e-1),
        (45, 50, 10, 1.52e-3),
    ] {
        assert!(
            (ndd1_tail(n, d, x) / want - 1.0).abs() < 0.01,
            "{n} {d} {x}: {}",
            ndd1_tail(n, d, x)
        );
    }
}

fn ndd1_tail(n: u32, d: u32, x: u32) -> f64 {
    let (big_n, big_d, x) = (f64::from(n), f64::from(d), f64::from(x));
    let term = |k: u32| {
        let choose = (0..k).fold(1.0, |product, i| {
            product * (big_n - f64::from(i)) / f64::from(i + 1)
        });
        let k = f64::from(k);
        let p = (k - x) / big_d;
        choose * p.powf(k) * (1.0 - p).powf(big_n - k) * (big_d - big_n + x) / (big_d - k + x)
    };
    (x as u32 + 1..=n).map(term).sum()
}

#[test]
fn constant_cells_wait_as_in_n_d_d_1() {
    for n in [40u8, 45] {
        let flows: Vec<_> = (0..n)
            .map(|i| flow(i, Law::Constant, Ratio::new(1, 50)))
            .collect();
        // A seed is one choice of phases: many are needed, each seen a few times, far apart so that the probes add nothing.
        let batches: Vec<Vec<f64>> = (0..BATCHES)
            .map(|batch| {
                let seeds = (0..50).map(|i| batch * 50 + i);
                seeds
                    .flat_map(|seed| waits(seed, &flows, 0.001, 4, 100))
                    .collect()
            })
            .collect();
        for x in [0, 2, 5] {
            let shares: Vec<_> = batches.iter().map(|w| share_above(w, x.into())).collect();
            agree(
                &format!("{n} D/D/1 of 50, P(W > {x})"),
                &shares,
                ndd1_tail(n.into(), 50, x),
            );
        }
    }
}

/// What cells of the flows themselves would wait, of arrivals in slots: a probe before a slot sees what is left of the last.
#[test]
fn geometric_cells_wait_as_in_a_slotted_queue() {
    // One source fills at most each slot: nothing waits for it but the rest of a slot, half of them on average.
    let alone: Vec<_> = (0..BATCHES)
        .map(|seed| {
            average(&waits(
                seed,
                &[flow(0, Law::Geometric, Ratio::new(4, 5))],
                0.0005,
                300,
                100,
            ))
        })
        .collect();
    agree("Geo/D/1 alone, workload", &alone, 0.8 / 2.0);
    let n = 8u32;
    let flows: Vec<_> = (0..n as u8)
        .map(|i| flow(i, Law::Geometric, Ratio::new(1, 10)))
        .collect();
    let rho = 0.8;
    // Just after a slot's arrivals the work is A + what was left; during the slot it falls by one, so that a probe at a random
    // time sees rho / 2 more than what is left at its end: the queue of Karol, rho times the wait of a cell.
    let left = rho * f64::from(n - 1) / f64::from(n) * rho / (2.0 * (1.0 - rho)) / rho;
    let want = left * rho + rho / 2.0;
    let batches: Vec<_> = (0..BATCHES)
        .map(|seed| average(&waits(seed, &flows, 0.001, 600, 2_000)))
        .collect();
    agree("8 Geo/D/1, workload", &batches, want);
}

/// The chance of loss with one cell in service and `waiting` behind it.
fn md1k_loss(rho: f64, waiting: usize) -> f64 {
    let room = waiting + 1;
    let arrivals = |k: usize| (1..=k).fold((-rho).exp(), |product, i| product * rho / i as f64);
    // pi(j + 1) a0 = pi(j) - pi(0) a(j) - sum over i to j of pi(i) a(j - i + 1), at departures, up to room - 1 left behind.
    let mut pi = vec![1.0];
    for j in 0..room - 1 {
        let sum: f64 = (1..=j).map(|i| pi[i] * arrivals(j - i + 1)).sum();
        pi.push((pi[j] - pi[0] * arrivals(j) - sum) / arrivals(0));
    }
    let pi0 = pi[0] / pi.iter().sum::<f64>();
    1.0 - 1.0 / (pi0 + rho)
}

#[test]
fn poisson_cells_are_lost_as_in_m_d_1_k() {
    for (rho, waiting, frames) in [
        (0.9, 4, 20_000u64),
        (0.9, 9, 50_000),
        (0.5, 2, 40_000),
        (1.0, 9, 50_000),
    ] {
        let spec = resolve(
            &format!("atm-oc3c:buffer={waiting}cells"),
            &|_| unreachable!(),
        )
        .unwrap();
        let cell = spec.frame_time(Bytes(32));
        let level = Ratio::new((rho * 1_000.0) as u64, 1_000);
        let batches: Vec<_> = (0..BATCHES)
            .map(|seed| {
                let mut network = Fabric::new(&spec, 2, seed).unwrap();
                network
                    .command(Instant::START, Command::Load(flow(0, Law::Poisson, level)))
                    .unwrap();
                while network.poll(Instant::START + cell * frames).is_some() {}
                let flow = network.counters().flows[0];
                flow.lost as f64 / flow.sent as f64
            })
            .collect();
        agree(
            &format!("M/D/1/{waiting}+1 loss at {rho}"),
            &batches,
            md1k_loss(rho, waiting),
        );
    }
}

const STAR: &str = "name = \"star\"\nsummary = \"a plain star\"\ntechnology = \"wire\"\ntopology = \"star\"\nmtu = 65535
[line]\nrate = \"8Mbit\"\nframing = \"none\"
[switch]\nforwarding = \"store-and-forward\"\nlatency = \"0s\"\nbuffer = \"Nframes\"\n";

/// Lengths are a law of their own in a capture: frames at times and of sizes that the test drew, replayed.
#[test]
fn frames_of_exponential_length_are_lost_as_in_m_m_1_k() {
    const MEAN: f64 = 500.0;
    for (room, frames, want) in [(10, 8_000u64, 5.08e-2), (50, 80_000, 5.18e-4)] {
        let spec = STAR.replace('N', &(room - 1).to_string());
        let spec = parse("star", &spec).unwrap();
        let rho = 0.9f64;
        let theory = (1.0 - rho) * rho.powi(room) / (1.0 - rho.powi(room + 1));
        assert!((theory / want - 1.0).abs() < 0.01);
        let batches: Vec<_> = (0..BATCHES)
            .map(|seed| {
                let mut random = Pcg64Mcg::seed_from_u64(seed);
                let mut at = 0.0;
                let capture = (0..frames).map(|_| {
                    // A byte takes a microsecond.
                    at += -uniform(&mut random).ln() * MEAN / rho * 1e6;
                    let len = (-uniform(&mut random).ln() * MEAN)
                        .round()
                        .clamp(1.0, 65_535.0);
                    Captured {
                        after: Span::picos(at as u64),
                        len: Bytes(len as u64),
                        from: None,
                        to: Port(1),
                    }
                });
                let mut network = Fabric::with_capture(&spec, 2, seed, capture.collect()).unwrap();
                let replay = Command::Load(flow(0, Law::Replay, Ratio::ONE));
                network.command(Instant::START, replay).unwrap();
                while let Some(at) = network.poll_at() {
                    let told = network.poll(at);
                    assert!(matches!(told, None | Some(Event::State { .. })), "{told:?}");
                }
                let flow = network.counters().flows[0];
                assert_eq!((flow.sent, flow.arrived + flow.lost), (frames, frames));
                flow.lost as f64 / flow.sent as f64
            })
            .collect();
        agree(&format!("M/M/1/{room} loss"), &batches, theory);
    }
}

#[test]
fn nothing_waits_at_level_0() {
    for law in [Law::Poisson, Law::Constant, Law::OnOff(10)] {
        assert!(
            waits(1, &[flow(0, law, Ratio::ZERO)], 0.001, 200, 0)
                .iter()
                .all(|wait| *wait == 0.0)
        );
    }
}
