//! The timed token against its theory.
//!
//! Model:   saturated stations on rings whose idle rotation, with the token's own time, is the theory's D.
//! Source:  Jain 1991 (DTJ 3(3)): n saturated stations leave n (T - D) / (n T + D) of the rate, and wait for at most
//!          (n - 1) T + 2 D; Johnson 1987: rotation at most 2 T, in the mean at most T.

use sonde_link::{
    Admission, Class, Command, Ecn, Event, Fabric, Fault, Frame, FrameId, Headers, Kind, Network,
    NetworkSpec, Port, Refused, To, named, resolve, tcp_max,
};
use sonde_units::{BitRate, Bytes, Instant, Span};
use std::collections::BTreeMap;

/// The token's own time: 11 bytes.
const TOKEN: Span = Span::nanos(880);

/// A ring of `stations` on which the theory's D and T are `latency` and `ttrt`.
fn ring(stations: u64, ttrt: Span, latency: Span) -> NetworkSpec {
    let mut spec = named("fddi").expect("it is in the catalogue");
    let token = spec.token.as_mut().expect("it is a ring");
    let delay = latency.as_picos() / stations;
    (token.ttrt, token.stations, token.fibre_m) = (ttrt, stations, 0);
    token.station_delay = Span::picos(delay);
    spec
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
        flow: 0,
    }
}

fn at(span: Span) -> Instant {
    Instant::START + span
}

/// Stations of which the first few always have frames to send, each to the next.
struct Saturated {
    network: Fabric,
    ports: u16,
    len: u64,
    offered: u64,
    senders: BTreeMap<u64, u16>,
    delivered: Vec<u64>,
    /// The sender of each delivery, and when.
    order: Vec<(Instant, u16)>,
}

impl Saturated {
    fn run(spec: &NetworkSpec, ports: u16, busy: u16, len: u64, length: Span) -> Self {
        let mut ring = Self {
            network: Fabric::new(spec, ports, 1).expect("the ring is right"),
            ports,
            len,
            offered: 0,
            senders: BTreeMap::new(),
            delivered: vec![0; usize::from(ports)],
            order: Vec::new(),
        };
        for from in 0..busy {
            ring.fill(Instant::START, from);
        }
        while let Some(now) = ring.network.poll_at().filter(|now| *now <= at(length)) {
            while let Some(event) = ring.network.poll(now) {
                match event {
                    Event::Deliver { at, id, .. } => {
                        let from = ring.senders.remove(&id.0).expect("it was sent once");
                        ring.delivered[usize::from(from)] += 1;
                        ring.order.push((at, from));
                    }
                    Event::Lost { .. } => panic!("{event:?}: a ring loses nothing"),
                    Event::Ready { port, .. } => ring.fill(now, port.0),
                    _ => {}
                }
            }
        }
        ring
    }

    fn fill(&mut self, now: Instant, from: u16) {
        while self.network.ready(Port(from), Class::default()) {
            let to = To::One(Port((from + 1) % self.ports));
            self.senders.insert(self.offered, from);
            let offer = frame(self.offered, from, to, self.len);
            assert_eq!(self.network.offer(now, offer), Admission::Taken);
            self.offered += 1;
        }
    }

    /// The share of a rate that frames had in a window.
    fn efficiency(&self, rate: BitRate, from: Span, length: Span) -> f64 {
        let window = at(from)..at(from + length);
        let frames = self.order.iter().filter(|(at, _)| window.contains(at));
        let bits = frames.count() as u64 * (self.len + 36) * 8;
        bits as f64 * 1e12 / rate.bps() as f64 / length.as_picos() as f64
    }
}

#[test]
fn show() {
    for (rate, n, t, d, len) in [(1000, 1u16, 8u64, 2_000u64, 3_714u64), (1000, 5, 8, 2_000, 3_714), (1000, 20, 8, 2_000, 3_714), (1000, 20, 4, 120, 3_844), (1000, 1, 4, 2_000, 2_500 - 36),(100,1,8,2000,3714),(100,5,8,2000,3714),(100,20,8,2_000,3714),(100,20,4,120,2_389),(100,20,8,2000,4352),(100,5,8,2000,4352),(100,1,8,2000,4352),(100,1,8,3,4352),(10000,20,8,2000,3714),(10000,20,4,120,3844)] {
        let spec = ring(u64::from(n.max(2)), Span::millis(t), Span::micros(d));
        let mut spec = spec; spec.station.queue = Bytes::mib(4); spec.line.rate = Some(BitRate::mbit(rate));
        let cycle = Span::millis(u64::from(n) * t) + Span::micros(d); let length = cycle * (6_000_000_000_000 / cycle.as_picos());
        let run = Saturated::run(&spec, n.max(2), n, len, length + Span::secs(2));
        let want = spec.token.as_ref().unwrap().efficiency(n, Span::micros(d));
        let tau = 88.0 / rate as f64 * 1e-3;
        let (nf, tf, df) = (n as f64, t as f64, d as f64 / 1e3);
        let with = nf*(tf-df)/(nf*tf+df+nf*tau);
        println!("{rate} {n} {t} {d}: {:.6} {want:.6} {with:.6} max rot {}", run.efficiency(BitRate::mbit(rate), Span::secs(1), length), run.network.counters().token_rotation_max);
    }
}
