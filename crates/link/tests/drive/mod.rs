//! Sources before a network: each with a list, a law or a thinking time, and what became of their frames.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_link::{
    Admission, Cause, Class, Event, Fabric, Frame, FrameId, Network, NetworkSpec, Place, Port,
    parse, resolve,
};
use sonde_units::{Bytes, Instant};

/// A network of the catalogue with knobs.
pub fn network(selector: &str) -> NetworkSpec {
    resolve(selector, &|path| panic!("{path} is not in the catalogue")).expect(selector)
}

/// A network from the text of a file.
pub fn written(text: &str) -> NetworkSpec {
    parse("test", text).expect(text)
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    Lost(Place, Cause),
}

/// A frame that has left the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    pub at: Instant,
    pub id: u64,
    pub from: Port,
    pub to: Port,
    pub fate: Fate,
}

/// A network, what was offered and what came out.
pub struct Drive {
    pub network: Fabric,
    pub now: Instant,
    pub random: Pcg64Mcg,
    sent: Vec<(Port, Port)>,
}

impl Drive {
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Self {
        Self {
            network: Fabric::new(spec, ports, seed).expect("the network can be built"),
            now: Instant::START,
            random: Pcg64Mcg::seed_from_u64(seed ^ 0x7465_7374),
            sent: Vec::new(),
        }
    }

    /// Below `bound`, evenly.
    pub fn draw(&mut self, bound: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Offers a frame now; whether it was taken.
    pub fn offer(&mut self, from: u16, to: u16, len: u64) -> bool {
        let frame = Frame::datagram(
            FrameId(self.sent.len() as u64),
            Port(from),
            Port(to),
            Bytes(len),
        );
        let taken = self.network.offer(self.now, frame) == Admission::Taken;
        if taken {
            self.sent.push((Port(from), Port(to)));
        }
        taken
    }

    pub fn ready(&self, port: u16) -> bool {
        self.network.ready(Port(port), Class::default())
    }

    /// The frames that leave at `at`, which is the time of the drive from then on.
    pub fn advance(&mut self, at: Instant, exits: &mut Vec<Exit>) {
        self.now = at;
        while let Some(event) = self.network.poll(at) {
            let (at, id, to, fate) = match event {
                Event::Deliver { at, id, to, .. } => (at, id.0, to, Fate::Delivered),
                Event::Lost {
                    at,
                    id,
                    to,
                    place,
                    cause,
                } => (at, id.0, to, Fate::Lost(place, cause)),
                _ => continue,
            };
            let from = self.sent[id as usize].0;
            exits.push(Exit {
                at,
                id,
                from,
                to,
                fate,
            });
        }
    }

    /// Until the network is idle.
    pub fn drain(&mut self) -> Vec<Exit> {
        let mut exits = Vec::new();
        while let Some(at) = self.network.poll_at() {
            self.advance(at, &mut exits);
        }
        exits
    }

    /// Keeps every source at work with frames of `len` to where `to` says, until `until`.
    pub fn saturate(
        &mut self,
        sources: u16,
        len: u64,
        until: Instant,
        mut to: impl FnMut(&mut Self, u16) -> u16,
    ) -> Vec<Exit> {
        let mut exits = Vec::new();
        loop {
            for source in 0..sources {
                while self.ready(source) {
                    let destination = to(self, source);
                    assert!(
                        self.offer(source, destination, len),
                        "a ready station takes"
                    );
                }
            }
            match self.network.poll_at().filter(|at| *at <= until) {
                Some(at) => self.advance(at, &mut exits),
                None => return exits,
            }
        }
    }
}
