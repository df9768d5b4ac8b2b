//! A shared segment against what is known of CSMA/CD.
//!
//! Model:   saturated stations, pairs and Poisson loads on `ethernet-10`; "carried" counts frames with preamble and gap, as
//!          Boggs, Mogul and Kent do.
//! Source:  Boggs, Mogul, Kent 1988 (SIGCOMM), figure 12; Metcalfe and Boggs 1976 (CACM 19(7)), the bound; Shoch and Hupp
//!          1980; the 10BASE-T1S showcase of INET 4.7 (CSMA/CD mode): 9.56 to 9.59 Mb/s of goodput at 1518 B, 53 % of
//!          payload at 64 B, worst access delay 0.2 to 0.28 s at 70 to 85 % of load.

use sonde_link::{
    Admission, Cause, Class, Command, Ecn, Event, Fabric, Fault, Frame, FrameId, Headers, Kind,
    Network, NetworkSpec, Place, Port, Refused, To, named, resolve, tcp_max,
};
use sonde_units::{BitRate, Bytes, Instant, Span};
use std::collections::BTreeMap;

/// Layer-3 bytes of the smallest and of the largest frame.
const SMALL: u64 = 46;
const LARGE: u64 = 1_500;

fn resolved(selector: &str) -> NetworkSpec {
    resolve(selector, &|path| Err(format!("asked for {path}"))).expect(selector)
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

/// Stations that always have frames to send, each to the next.
struct Saturated {
    network: Fabric,
    stations: u16,
    len: u64,
    offered: u64,
    senders: BTreeMap<u64, u16>,
    delivered: Vec<u64>,
    lost: Vec<(Place, Cause)>,
    /// The sender of each delivery, in order, and when.
    order: Vec<(Instant, u16)>,
}

impl Saturated {
    fn new(spec: &NetworkSpec, stations: u16, len: u64, seed: u64) -> Self {
        Self {
            network: Fabric::new(spec, stations.max(2), seed).expect("the catalogue is right"),
            stations,
            len,
            offered: 0,
            senders: BTreeMap::new(),
            delivered: vec![0; usize::from(stations)],
            lost: Vec::new(),
            order: Vec::new(),
        }
    }

    fn fill(&mut self, now: Instant, from: u16) {
        let ports = self.stations.max(2);
        while self.network.ready(Port(from), Class::default()) {
            let to = To::One(Port((from + 1) % ports));
            self.senders.insert(self.offered, from);
            let offer = frame(self.offered, from, to, self.len);
            assert_eq!(self.network.offer(now, offer), Admission::Taken);
            self.offered += 1;
        }
    }

    fn run(mut self, length: Span) -> Self {
        for from in 0..self.stations {
            self.fill(Instant::START, from);
        }
        while let Some(now) = self.network.poll_at().filter(|now| *now <= at(length)) {
            while let Some(event) = self.network.poll(now) {
                match event {
                    Event::Deliver { at, id, .. } => {
                        let from = self.senders.remove(&id.0).expect("it was sent once");
                        self.delivered[usize::from(from)] += 1;
                        self.order.push((at, from));
                    }
                    Event::Lost { id, place, cause, .. } => {
                        self.senders.remove(&id.0);
                        self.lost.push((place, cause));
                    }
                    Event::Ready { port, .. } => self.fill(now, port.0),
                    _ => {}
                }
            }
        }
        self
    }

    /// Mb/s of frames, with preamble and gap.
    fn carried(&self, length: Span) -> f64 {
        let bits = self.delivered.iter().sum::<u64>() * (self.len.max(46) + 38) * 8;
        bits as f64 / (length.as_picos() as f64 / 1e6)
    }

    fn collisions(&self) -> u64 {
        self.network.counters().access.iter().map(|a| a.collisions).sum()
    }
}

/// Mb/s that saturated stations carry on a segment.
fn carried(stations: u16, len: u64) -> f64 {
    let length = Span::secs(10);
    let spec = named("ethernet-10").expect("it is in the catalogue");
    Saturated::new(&spec, stations, len, 7).run(length).carried(length)
}

#[test]
fn show() {
    for len in [46, 494, 1_500] {
        for n in [1, 2, 5, 10, 24] {
            print!("{:.3} ", carried(n, len));
        }
        println!();
    }
}
