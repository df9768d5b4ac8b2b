//! The engine among ranks that are nothing but engines, their frames delivered in any order that pairs allow.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::super::frame::Head;
use super::super::operation::Place;
use super::*;
use crate::TAG_MAX;

const RANKS: usize = 3;
const LIMITS: Limits = Limits {
    eager_bytes: 64,
    window_bytes: 160,
    envelopes: 6,
};

/// A frame under way: its head, and the bytes of its body.
type Frame = (Head, Vec<u8>);

/// Engines, what is under way between each two, and the bytes of their operations.
struct World {
    engines: Vec<Engine>,
    ways: Vec<VecDeque<Frame>>,
    bytes: Vec<BTreeMap<u32, Vec<u8>>>,
}

impl World {
    fn new() -> Self {
        Self {
            engines: (0..RANKS as u32)
                .map(|rank| Engine::new(rank, RANKS, LIMITS))
                .collect(),
            ways: vec![VecDeque::new(); RANKS * RANKS],
            bytes: vec![BTreeMap::new(); RANKS],
        }
    }

    fn send(&mut self, from: usize, to: usize, context: u32, tag: u32, payload: Vec<u8>) -> u32 {
        let envelope = Envelope {
            context,
            source: from as u32,
            tag,
        };
        let engine = &mut self.engines[from];
        let place = (Place::Own, 0);
        let op = if from == to {
            engine.post_to_self(place, envelope, payload.clone())
        } else {
            engine.post_send(place, to as u32, envelope, (payload.len(), 0))
        };
        self.bytes[from].insert(op, payload);
        self.settle(from);
        op
    }

    fn receive(&mut self, rank: usize, pattern: Pattern, room: usize) -> u32 {
        let op = self.engines[rank].post_recv((Place::Own, 0), pattern, room);
        self.bytes[rank].insert(op, vec![0; room]);
        self.settle(rank);
        op
    }

    /// Does what the engine asks for, and puts what it has to send on its way.
    fn settle(&mut self, rank: usize) {
        let engine = &mut self.engines[rank];
        while let Some(action) = engine.actions.pop_front() {
            let Action::Fill { op, kept } = action else {
                unreachable!("nothing is pulled here");
            };
            let room = self.bytes[rank].get_mut(&op).unwrap();
            let payload = engine.payload(kept);
            let count = payload.len().min(room.len());
            room[..count].copy_from_slice(&payload[..count]);
            engine.on_filled(op, kept);
        }
        while let Some(to) = engine.busy.first().copied() {
            while let Some((head, body, _)) = engine.front(to) {
                let bytes = match body {
                    Body::Empty => Vec::new(),
                    Body::Pair(pair) => pair.to_vec(),
                    Body::Of(op) => self.bytes[rank][&op].clone(),
                    Body::Text(text) => text.as_bytes().to_vec(),
                };
                assert_eq!(head.body(), bytes.len() as u64);
                self.ways[rank * RANKS + to as usize].push_back((head, bytes));
                engine.on_sent(to);
            }
            engine.on_idle(to);
        }
    }

    /// Delivers the first frame of a way, in two parts where `halt` is true; its envelope if it has one.
    fn deliver(&mut self, way: usize) -> Option<Head> {
        let (from, to) = ((way / RANKS) as u32, way % RANKS);
        let (head, bytes) = self.ways[way].pop_front()?;
        let engine = &mut self.engines[to];
        let landing = engine.on_head(from, head).unwrap();
        let part = &bytes[..landing.keep];
        match landing.target {
            Target::Of(op) => {
                self.bytes[to].get_mut(&op).unwrap()[..part.len()].copy_from_slice(part);
            }
            Target::Unexpected(kept) => engine.payload(kept).copy_from_slice(part),
            Target::Pair => engine.peer(from).inbound.pair[..part.len()].copy_from_slice(part),
            Target::Text => engine.peer(from).inbound.text.copy_from_slice(part),
        }
        engine.on_body(from, landing).unwrap();
        self.settle(to);
        Some(head)
    }
}

/// What a program does, or the network.
#[derive(Debug, Clone)]
enum Step {
    Send {
        from: usize,
        to: usize,
        context: u32,
        tag: u32,
        bytes: usize,
    },
    Receive {
        rank: usize,
        context: u32,
        source: Option<u32>,
        tag: Option<u32>,
        room: usize,
    },
    Deliver(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let tag = || prop_oneof![3 => Just(0_u32), 2 => Just(1), 1 => Just(TAG_MAX + 1)];
    let bytes = || prop_oneof![Just(0_usize), 1..80_usize, 60..400_usize];
    let send = (0..RANKS, 0..RANKS, 0..2_u32, tag(), bytes()).prop_map(
        |(from, to, context, tag, bytes)| Step::Send {
            from,
            to,
            context,
            tag,
            bytes,
        },
    );
    let source = proptest::option::weighted(0.6, 0..RANKS as u32);
    let some_tag = proptest::option::weighted(0.6, tag());
    let receive = (0..RANKS, 0..2_u32, source, some_tag, bytes()).prop_map(
        |(rank, context, source, tag, room)| Step::Receive {
            rank,
            context,
            source,
            tag,
            room,
        },
    );
    let deliver = (0..RANKS * RANKS).prop_map(Step::Deliver);
    proptest::collection::vec(prop_oneof![2 => send, 2 => receive, 3 => deliver], 1..150)
}

/// A message as the model knows it: its sender, context, tag, and bytes.
type Message = (u32, u32, u32, Vec<u8>);

/// What each rank's lists hold, as a plain list would; and which message each receive has got.
#[derive(Default)]
struct Model {
    posted: [Vec<(Pattern, u32)>; RANKS],
    there: [Vec<Message>; RANKS],
    /// Sent, and not seen by its receiver yet.
    under_way: BTreeMap<(usize, usize), VecDeque<Message>>,
    got: Vec<(usize, u32, Message)>,
}

fn fits(pattern: &Pattern, message: &Message) -> bool {
    pattern.context == message.1
        && pattern.source.is_none_or(|source| source == message.0)
        && pattern
            .tag
            .map_or(message.2 <= TAG_MAX, |tag| tag == message.2)
}

impl Model {
    fn arrive(&mut self, rank: usize, message: Message) {
        let posted = &mut self.posted[rank];
        match posted
            .iter()
            .position(|(pattern, _)| fits(pattern, &message))
        {
            Some(at) => self.got.push((rank, posted.remove(at).1, message)),
            None => self.there[rank].push(message),
        }
    }

    fn receive(&mut self, rank: usize, pattern: Pattern, op: u32) {
        let there = &mut self.there[rank];
        match there.iter().position(|message| fits(&pattern, message)) {
            Some(at) => self.got.push((rank, op, there.remove(at))),
            None => self.posted[rank].push((pattern, op)),
        }
    }
}

fn deliver(world: &mut World, model: &mut Model, way: usize) {
    let (from, to) = (way / RANKS, way % RANKS);
    if let Some(head) = world.deliver(way) {
        if matches!(head.kind, Kind::Eager | Kind::RequestToSend) {
            let sent = model.under_way.get_mut(&(from, to)).unwrap();
            let message = sent.pop_front().unwrap();
            model.arrive(to, message);
        }
    }
}

proptest! {
    #[test]
    fn programs_end_as_the_model_says(steps in steps()) {
        let (mut world, mut model) = (World::new(), Model::default());
        let mut sends = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send { from, to, context, tag, bytes } => {
                    let payload: Vec<u8> = (0..bytes).map(|at| (at + 37 * number) as u8).collect();
                    let message = (from as u32, context, tag, payload.clone());
                    if from == to {
                        model.arrive(to, message);
                    } else {
                        model.under_way.entry((from, to)).or_default().push_back(message);
                    }
                    sends.push((from, world.send(from, to, context, tag, payload)));
                }
                Step::Receive { rank, context, source, tag, room } => {
                    let pattern = Pattern { context, source, tag };
                    let op = world.receive(rank, pattern, room);
                    model.receive(rank, pattern, op);
                }
                Step::Deliver(way) => deliver(&mut world, &mut model, way),
            }
        }
        // To the end: all frames, then a receive for each message that is left, in order of arrival.
        loop {
            while let Some(way) = world.ways.iter().position(|way| !way.is_empty()) {
                deliver(&mut world, &mut model, way);
            }
            let Some(rank) = model.there.iter().position(|there| !there.is_empty()) else {
                break;
            };
            let (source, context, tag, payload) = &model.there[rank][0];
            let pattern = Pattern { context: *context, source: Some(*source), tag: Some(*tag) };
            let op = world.receive(rank, pattern, payload.len());
            model.receive(rank, pattern, op);
        }
        prop_assert!(model.under_way.values().all(VecDeque::is_empty));
        for (rank, op) in sends {
            prop_assert!(world.engines[rank].is_done(op), "a send of rank {rank} is not over");
        }
        for (rank, op, (source, _, tag, payload)) in &model.got {
            let engine = &world.engines[*rank];
            prop_assert!(engine.is_done(*op));
            let done = engine.op(*op);
            prop_assert_eq!((done.peer, done.tag, done.bytes), (*source, *tag, payload.len() as u64));
            let room = &world.bytes[*rank][op];
            prop_assert_eq!(done.is_cut(), payload.len() > room.len());
            if !done.is_cut() {
                prop_assert!(room[..payload.len()] == payload[..]);
            }
        }
        for (rank, posted) in model.posted.iter().enumerate() {
            for (_, op) in posted {
                prop_assert!(!world.engines[rank].is_done(*op));
            }
        }
    }
}

/// However much is sent to who does not receive, no more is kept than the window.
#[test]
fn credit_bounds_what_is_kept() {
    let mut world = World::new();
    for number in 0..100 {
        world.send(0, 1, 0, 0, vec![number; 50]);
        while world.deliver(1).is_some() {}
    }
    let kept: usize = world.engines[1]
        .kept
        .iter()
        .map(|kept| kept.payload.len())
        .sum();
    assert!(
        kept > 0 && kept <= LIMITS.window_bytes as usize,
        "{kept} bytes"
    );
    assert_eq!(world.engines[1].matching.unexpected(), 6);
    let pattern = Pattern {
        context: 0,
        source: None,
        tag: None,
    };
    for number in 0..100 {
        let op = world.receive(1, pattern, 50);
        while world.deliver(1).is_some() || world.deliver(RANKS).is_some() {}
        assert!(world.engines[1].is_done(op), "message {number}");
        assert_eq!(world.bytes[1][&op], [number; 50]);
    }
}

#[test]
fn protocol_violations_are_refused() {
    let head = |kind, tag, bytes| Head::new(kind, 0, tag, bytes);
    let refused = |head: Head| {
        let mut engine = Engine::new(0, 2, LIMITS);
        match engine.on_head(1, head) {
            Err(what) => what,
            Ok(landing) => engine.on_body(1, landing).unwrap_err(),
        }
    };
    assert!(refused(head(Kind::Eager, 0, 65)).contains("65 bytes unasked"));
    assert!(refused(head(Kind::Data, 0, 8)).contains("for no receive"));
    assert!(refused(head(Kind::ClearToSend, 3, 8)).contains("for no send"));
    assert!(refused(head(Kind::Done, 3, 8)).contains("for no send"));
    assert!(refused(head(Kind::Fail, 0, 1 << 40)).contains("a reason of"));
    let mut credit = head(Kind::Credit, 0, 0);
    credit.credit = 1;
    assert!(refused(credit).contains("credit for 161 bytes"));
    let mut engine = Engine::new(0, 2, LIMITS);
    for _ in 0..2 {
        let landing = engine.on_head(1, head(Kind::Eager, 0, 64)).unwrap();
        engine.on_body(1, landing).unwrap();
    }
    let above = engine.on_head(1, head(Kind::Eager, 0, 64)).unwrap_err();
    assert!(above.contains("above its credit"), "{above}");
}
