//! A network on which time passes by hand, and what became of each frame.

use sonde_link::{
    Admission, Cause, Change, Class, Command, Ecn, Event, Fabric, Frame, FrameId, Kind, Network,
    NetworkSpec, Place, Port, Refused, To, parse, resolve,
};
use sonde_units::{Bytes, Instant, Span};
use std::collections::BTreeMap;

/// What became of a copy: when, and where and why it was lost.
pub type Fate = (Instant, Option<(Place, Cause)>);

pub struct Rig {
    pub network: Fabric,
    pub now: Instant,
    pub frames: Vec<Frame>,
    pub fates: BTreeMap<(FrameId, Port), Fate>,
    pub changes: Vec<(Instant, Change)>,
}

/// A network of the catalogue, with knobs and tables of its own.
pub fn spec(selector: &str, tables: &str) -> NetworkSpec {
    let spec = resolve(selector, &|path| panic!("{path} is not in the catalogue")).expect(selector);
    if tables.is_empty() {
        return spec;
    }
    let mut text: toml::Table = toml::Table::try_from(&spec).expect("it was read");
    for (key, value) in toml::from_str::<toml::Table>(tables).expect(tables) {
        text.insert(key, value);
    }
    parse("test", &text.to_string()).expect(tables)
}

impl Rig {
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Self {
        Self {
            network: Fabric::new(spec, ports, seed).expect("it can be built"),
            now: Instant::START,
            frames: Vec::new(),
            fates: BTreeMap::new(),
            changes: Vec::new(),
        }
    }

    pub fn of(selector: &str, tables: &str, ports: u16) -> Self {
        Self::new(&spec(selector, tables), ports, 1)
    }

    pub fn offer(&mut self, from: u16, to: To, len: u64, class: u8) -> FrameId {
        let id = FrameId(self.frames.len() as u64);
        let frame = Frame {
            id,
            from: Port(from),
            to,
            len: Bytes(len),
            kind: Kind::Ip,
            class: Class(class),
            ecn: Ecn::NotCapable,
            flow: 0,
        };
        self.frames.push(frame);
        assert_eq!(self.network.offer(self.now, frame), Admission::Taken);
        id
    }

    pub fn send(&mut self, from: u16, to: u16, len: u64) -> FrameId {
        self.offer(from, To::One(Port(to)), len, 0)
    }

    pub fn is_ready(&self, from: u16) -> bool {
        self.network.ready(Port(from), Class(0))
    }

    pub fn command(&mut self, command: Command) -> Result<(), Refused> {
        self.network.command(self.now, command)
    }

    /// Takes note of all that happens until `now + span`.
    pub fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        while let Some(event) = self.network.poll(self.now) {
            self.hear(event);
        }
    }

    /// To the next step; false if there is none until `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        let Some(at) = self.network.poll_at().filter(|at| *at <= end) else {
            return false;
        };
        self.pass(at.since(self.now));
        true
    }

    /// Until nothing more happens.
    pub fn settle(&mut self) {
        while self.step(Instant::from_picos(u64::MAX)) {}
    }

    fn hear(&mut self, event: Event) {
        let (key, fate) = match event {
            Event::Deliver { at, id, to, .. } => ((id, to), (at, None)),
            Event::Lost {
                at,
                id,
                to,
                place,
                cause,
            } => ((id, to), (at, Some((place, cause)))),
            Event::State { at, change } => return self.changes.push((at, change)),
            _ => return,
        };
        assert!(self.fates.insert(key, fate).is_none(), "{event:?} twice");
    }

    /// Keeps the stations of `senders` full of frames of `len` to `to` until `end`.
    pub fn blast(&mut self, senders: &[(u16, u16)], len: u64, end: Instant) {
        loop {
            for (from, to) in senders {
                while self.is_ready(*from) {
                    self.send(*from, *to, len);
                }
            }
            if !self.step(end) {
                return;
            }
        }
    }

    /// When a frame arrived; it must have.
    pub fn arrival(&self, id: FrameId, to: u16) -> Instant {
        match self.fates.get(&(id, Port(to))) {
            Some((at, None)) => *at,
            fate => panic!("{id:?}: {fate:?}"),
        }
    }

    /// Why a frame did not arrive; it must not have.
    pub fn loss(&self, id: FrameId, to: u16) -> (Place, Cause) {
        match self.fates.get(&(id, Port(to))) {
            Some((_, Some(why))) => *why,
            fate => panic!("{id:?}: {fate:?}"),
        }
    }

    /// Layer-3 bytes that arrived, and frames that were lost.
    pub fn sums(&self) -> (u64, u64) {
        let (mut bytes, mut lost) = (0, 0);
        for ((id, _), (_, why)) in &self.fates {
            match why {
                None => bytes += self.frames[id.0 as usize].len.0,
                Some(_) => lost += 1,
            }
        }
        (bytes, lost)
    }
}
