//! One connection over a wire that loses, delays or marks the frames that a test names.

use super::*;
use crate::Congestion;
use proptest::prelude::*;
use sonde_link::{Command, Counters, Edit, Fabric, Refused, named};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const DELAY: Span = Span::millis(10);
const SEGMENT: u64 = 1_448;

/// Takes every frame and delivers it after [`DELAY`], but for some segments, named by the order in which they were sent.
struct Wire {
    lost: BTreeSet<u64>,
    marked: BTreeSet<u64>,
    late: BTreeMap<u64, Span>,
    /// Acknowledgements that are lost, by their order.
    unheard: BTreeSet<u64>,
    offered: [u64; 2],
    pending: BTreeMap<(Instant, u64), Event>,
    told: u64,
    /// When each frame was offered, for the test to take.
    log: VecDeque<(Instant, FrameId)>,
    /// Lends its counters.
    idle: Fabric,
}

impl Wire {
    fn new(lost: &[u64]) -> Self {
        Self {
            lost: lost.iter().copied().collect(),
            marked: BTreeSet::new(),
            late: BTreeMap::new(),
            unheard: BTreeSet::new(),
            offered: [0; 2],
            pending: BTreeMap::new(),
            told: 0,
            log: VecDeque::new(),
            idle: Fabric::new(&named("wire").unwrap(), 2, 0).unwrap(),
        }
    }

    fn tell(&mut self, at: Instant, event: Event) {
        self.pending.insert((at, self.told), event);
        self.told += 1;
    }
}

impl Network for Wire {
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission {
        let direction = usize::from(frame.from.0);
        let number = self.offered[direction];
        self.offered[direction] += 1;
        self.log.push_back((now, frame.id));
        let To::One(to) = frame.to else {
            panic!("flows send to one station")
        };
        let (id, is_segment) = (frame.id, direction == 0);
        let late = self.late.get(&number).filter(|_| is_segment).copied();
        let at = now + DELAY + late.unwrap_or(Span::ZERO);
        let lost = if is_segment {
            &self.lost
        } else {
            &self.unheard
        };
        let event = if lost.contains(&number) {
            Event::Lost {
                at,
                id,
                to,
                place: Place::Path,
                cause: Cause::Random,
            }
        } else {
            let is_marked = is_segment && self.marked.contains(&number);
            assert!(!is_marked || frame.ecn == Ecn::Capable);
            let mark = if is_marked { Mark::Ce } else { Mark::Ok };
            Event::Deliver {
                at,
                id,
                to,
                mark,
                edit: Edit::None,
            }
        };
        self.tell(at, event);
        self.tell(at, Event::Done { id });
        Admission::Taken
    }

    fn ready(&self, _: Port, _: Class) -> bool {
        true
    }

    fn command(&mut self, _: Instant, _: Command) -> Result<(), Refused> {
        Err(Refused::NoCircuits)
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        let (at, _) = self.pending.first_key_value()?;
        if at.0 > now {
            return None;
        }
        self.pending.pop_first().map(|(_, event)| event)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.pending.first_key_value().map(|((at, _), _)| *at)
    }

    fn counters(&self) -> Counters {
        self.idle.counters()
    }
}

fn sender(sack: bool, congestion: Congestion, window: u64) -> Sender {
    Sender {
        sack,
        congestion,
        initial_segments: window,
        ..Sender::modern()
    }
}

/// A flow of `segments` over `wire`, which has seen a round trip.
fn traffic(wire: Wire, sender: &Sender, segments: u64) -> Traffic<Wire> {
    let flow = Flow {
        from: Port(0),
        to: Port(1),
        bytes: Some(Bytes(segments * SEGMENT)),
        rtt: Some(DELAY * 2),
    };
    Traffic::new(wire, Bytes(1_500), sender, &[flow]).unwrap()
}

/// The segments that are sent, by the millisecond, until all have arrived.
fn sent(traffic: &mut Traffic<Wire>) -> BTreeMap<u64, Vec<u64>> {
    let mut sent: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut arrived = BTreeSet::new();
    traffic.begin(0);
    loop {
        while let Some((at, id)) = traffic.clock.network_mut().log.pop_front() {
            if let Some(Cargo::Segment { seq, .. }) = traffic.hold.see(id) {
                let millis = at.as_nanos() / 1_000_000;
                sent.entry(millis).or_default().push(seq);
            }
        }
        if traffic.is_complete(0) {
            return sent;
        }
        match traffic.step(Instant::START + Span::secs(100_000)) {
            None => panic!("the flow stands still; sent {sent:?}"),
            Some(Outcome::Arrived { bytes, .. }) => {
                assert!(arrived.insert(arrived.len()) && bytes == SEGMENT);
            }
            Some(_) => {}
        }
    }
}

/// Segment 3 of ten is lost. Each of the first acknowledgements lets two segments go, each of the first two duplicates a new
/// one (limited transmit), and the third sends the lost one. One round trip later all is repaired.
#[test]
fn one_loss_is_repaired_in_a_round_trip() {
    for sack in [true, false] {
        let sender = sender(sack, Congestion::Reno, 10);
        let mut traffic = traffic(Wire::new(&[3]), &sender, 30);
        let sent = sent(&mut traffic);
        assert_eq!(sent[&0], (0..10).collect::<Vec<_>>());
        let want = [10, 11, 12, 13, 14, 15, 16, 17, 3];
        assert_eq!(sent[&20][..9], want, "sack: {sack}");
        // Half of 13 is 6: of the 15 that are out six have left and one is there twice, so none goes.
        assert_eq!(sent[&20].len(), 9);
        // 8 came back at 40 ms, and the repaired one acknowledges everything up to 18.
        let at_40: Vec<_> = sent[&40].clone();
        assert_eq!(at_40[0], 18, "{at_40:?}");
        assert!(sent.values().flatten().filter(|seq| **seq == 3).count() == 2);
        assert_eq!(traffic.transmit(0).timeouts(), 0);
        assert_eq!(traffic.transmit(0).resent(), 1);
    }
}

/// Four losses of one window: without selective acknowledgements one hole a round trip, with them all in the first.
#[test]
fn holes_are_filled_one_a_round_trip_or_all_at_once() {
    let holes = [2, 5, 8, 11];
    let repaired = |sack| {
        let sender = sender(sack, Congestion::Reno, 20);
        let mut traffic = traffic(Wire::new(&holes), &sender, 40);
        let sent = sent(&mut traffic);
        assert_eq!(traffic.transmit(0).timeouts(), 0);
        assert_eq!(traffic.transmit(0).resent(), 4);
        let when = |hole: &u64| {
            let last = sent.iter().rfind(|(_, seqs)| seqs.contains(hole));
            *last.unwrap().0
        };
        holes.iter().map(when).collect::<Vec<_>>()
    };
    assert_eq!(repaired(false), [20, 40, 60, 80]);
    assert_eq!(repaired(true), [20, 20, 20, 20]);
}

/// Nothing comes back: 220 ms (a round trip of 20 ms and the minimum), then twice that, and twice again.
#[test]
fn timeouts_double() {
    let sender = sender(true, Congestion::Cubic, 10);
    let mut traffic = traffic(Wire::new(&[0, 1, 2, 3]), &sender, 1);
    let times: Vec<_> = sent(&mut traffic).into_keys().collect();
    assert_eq!(times, [0, 220, 660, 1_540, 3_300]);
    assert_eq!(traffic.transmit(0).timeouts(), 4);
}

/// The last three of ten are lost: no acknowledgement tells, so the timer must; then one, then two.
#[test]
fn a_lost_tail_waits_for_the_timer() {
    let sender = sender(true, Congestion::Cubic, 10);
    let mut traffic = traffic(Wire::new(&[7, 8, 9]), &sender, 10);
    let sent = sent(&mut traffic);
    let resent: Vec<_> = sent.range(1..).collect();
    assert_eq!(resent.len(), 2, "{sent:?}");
    // The timer was restarted by the acknowledgements at 20 ms.
    assert_eq!(resent[0].1, &[7]);
    assert!(*resent[0].0 >= 220 && *resent[0].0 <= 240, "{sent:?}");
    assert_eq!(resent[1].1, &[8, 9]);
}

/// A retransmission that is lost is seen when later ones arrive, without a timeout.
#[test]
fn a_lost_repair_is_repaired() {
    let sender = sender(true, Congestion::Reno, 20);
    // The twenty first, and what the two acknowledgements before the hole and two duplicates let go; then segment 2.
    let repair = 20 + 2 * 2 + 2;
    let mut traffic = traffic(Wire::new(&[2, repair]), &sender, 200);
    let sent = sent(&mut traffic);
    let times: Vec<_> = sent
        .iter()
        .filter(|(_, seqs)| seqs.contains(&2))
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(times.len(), 3, "{sent:?}");
    assert!(times[2] <= 80, "{times:?}");
    assert_eq!(traffic.transmit(0).timeouts(), 0);
}

/// Two that came before it are no loss, three are.
#[test]
fn three_later_ones_are_a_loss() {
    for (places, resent) in [(2, None), (3, Some(0))] {
        for sack in [true, false] {
            let (mut transmit, mut receive) = ends(&sender(sack, Congestion::Reno, 8), 8);
            let now = Instant::START;
            for seq in 1..=places {
                receive.on_segment(now, seq, now);
                transmit.on_ack(now, &receive.ack());
            }
            assert_eq!(transmit.poll(), resent, "{places} {sack}");
        }
    }
}

/// A sender that has sent all its segments, and a receiver that has none.
fn ends(sender: &Sender, segments: u64) -> (Transmit, Receive) {
    let mut transmit = Transmit::new(sender, 100, segments, None);
    while let Some(seq) = transmit.poll() {
        transmit.on_sent(Instant::START, seq);
    }
    let blocks = if sender.sack { 3 } else { 0 };
    (transmit, Receive::new(sender, blocks))
}

/// The first arrives after six later ones and was sent again: its time stamp says that it was only late. The window is as
/// before, and six places later are no loss from then on.
#[test]
fn a_late_segment_is_no_loss_in_the_end() {
    let sender = sender(true, Congestion::Cubic, 40);
    let (mut transmit, mut receive) = ends(&sender, 40);
    let later = |millis| Instant::START + Span::millis(millis);
    let mut arrive = |transmit: &mut Transmit, seq, millis| {
        if receive
            .on_segment(later(millis), seq, Instant::START)
            .acknowledge
        {
            let ack = receive.ack();
            receive.on_acknowledged();
            transmit.on_ack(later(millis), &ack);
        }
    };
    for seq in 1..=6 {
        arrive(&mut transmit, seq, 10);
    }
    assert_eq!((transmit.poll(), transmit.window()), (Some(0), 28));
    transmit.on_sent(later(10), 0);
    arrive(&mut transmit, 0, 11);
    assert!(transmit.window() >= 40 && !transmit.recovers());
    for seq in (8..=13).chain([7]) {
        arrive(&mut transmit, seq, 12);
    }
    assert!(transmit.window() >= 40 && transmit.resent() == 1);
}

/// A mark on two segments of one window halves it once; the echo ends when the sender has heard.
#[test]
fn marks_reduce_once_a_window() {
    let sender = Sender {
        ecn: true,
        ..sender(true, Congestion::Reno, 10)
    };
    let mut wire = Wire::new(&[]);
    wire.marked = [2, 5].into();
    let mut traffic = traffic(wire, &sender, 200);
    traffic.begin(0);
    while traffic.step(Instant::START + Span::millis(39)).is_some() {}
    // 12 after two acknowledgements, of which half is left; more cannot be added before the next turn.
    assert_eq!(traffic.transmit(0).window(), 6);
    while traffic.step(Instant::START + Span::secs(9)).is_some() {}
    assert!(traffic.is_complete(0) && traffic.transmit(0).resent() == 0);
    assert!(!traffic.flows[0].receive.ack().congested);
}

#[test]
fn a_lost_acknowledgement_costs_nothing() {
    let mut wire = Wire::new(&[]);
    wire.unheard = (0..100).filter(|n| n % 3 != 2).collect();
    let sender = sender(false, Congestion::Reno, 10);
    let mut traffic = traffic(wire, &sender, 300);
    sent(&mut traffic);
    assert_eq!(
        (traffic.transmit(0).resent(), traffic.transmit(0).timeouts()),
        (0, 0)
    );
}

/// Memory is taken at the start: a window later no queue grows.
#[test]
fn frames_are_reused() {
    let sender = sender(true, Congestion::Reno, 10);
    let lost: Vec<_> = (0..20_000).filter(|n| n % 97 == 3).collect();
    let mut traffic = traffic(Wire::new(&lost), &sender, 20_000);
    sent(&mut traffic);
    assert!(
        traffic.hold.cargo.len() < 500,
        "{}",
        traffic.hold.cargo.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever is lost, late or unheard: everything arrives, each segment once, and nothing is left behind.
    #[test]
    fn all_arrives_once(
        lost in prop::collection::btree_set(0u64..200, 0..60),
        unheard in prop::collection::btree_set(0u64..200, 0..60),
        late in prop::collection::btree_map(0u64..200, 1u64..60, 0..20),
        sack in any::<bool>(),
        timestamps in any::<bool>(),
        cubic in any::<bool>(),
        segments in 1u64..150,
        initial in 1u64..40,
        window in 1u64..60,
    ) {
        let mut wire = Wire::new(&[]);
        (wire.lost, wire.unheard) = (lost, unheard);
        wire.late = late.into_iter().map(|(n, millis)| (n, Span::millis(millis))).collect();
        let headers = if timestamps { Headers::Timestamps } else { Headers::Plain };
        let segment = headers.segment(Bytes(1_500)).0;
        let sender = Sender {
            headers,
            receive_window: Bytes(window * segment),
            ..sender(sack, if cubic { Congestion::Cubic } else { Congestion::Reno }, initial)
        };
        let flow = Flow { from: Port(0), to: Port(1), bytes: Some(Bytes(segments * segment - 1)), rtt: None };
        let mut traffic = Traffic::new(wire, Bytes(1_500), &sender, &[flow]).unwrap();
        traffic.begin(0);
        let (mut count, mut bytes) = (0, 0);
        while let Some(told) = traffic.step(Instant::START + Span::secs(1_000_000)) {
            if let Outcome::Arrived { bytes: arrived, .. } = told {
                count += 1;
                bytes += arrived;
            }
            prop_assert!(traffic.flows[0].transmit.window() >= 1);
        }
        prop_assert!(traffic.is_complete(0), "{count} of {segments}");
        prop_assert_eq!((count, bytes), (segments, segments * segment - 1));
        // The last acknowledgement has come: nothing is out, and the timer is off.
        prop_assert_eq!(traffic.flows[0].transmit.due(), None);
        prop_assert_eq!(traffic.hold.free.len(), traffic.hold.cargo.len());
    }
}
