//! Virtual circuits through the whole network: what they cost, when they go, and who waits for them.
//!
//! Source:  RFC 2225 §8 (address entries of 15 minutes), RFC 1755 §3.4 (release after 20 idle minutes); 21 ms to set up.

use sonde_link::{
    Admission, Cause, Change, Class, Command, Ecn, Event, Fabric, Frame, FrameId, Kind, Network,
    Place, Port, Refused, To, VcCommand, resolve,
};
use sonde_units::{Bytes, Instant, Span};

/// A frame of one cell, and of 192, in an idle network: all cells on the first line, the last again on the second.
const SMALL: Span = Span::picos(2 * 2_831_197 + 2 * 140_000 + 10_000_000);
const FULL: Span = Span::picos(193 * 2_831_197 + 2 * 140_000 + 10_000_000);
const SETUP: Span = Span::millis(21);

/// A network on which time passes by hand.
struct Atm {
    network: Fabric,
    now: Instant,
    offered: u64,
}

impl Atm {
    fn new(selector: &str) -> Self {
        Self::of(selector, 4)
    }

    fn of(selector: &str, ports: u16) -> Self {
        let spec = resolve(selector, &|_| unreachable!()).expect(selector);
        Self {
            network: Fabric::new(&spec, ports, 1).expect("it can be built"),
            now: Instant::START,
            offered: 0,
        }
    }

    fn offer(&mut self, from: u16, to: To, len: u64, kind: Kind) -> FrameId {
        let id = FrameId(self.offered);
        self.offered += 1;
        let frame = Frame {
            id,
            from: Port(from),
            to,
            len: Bytes(len),
            kind,
            class: Class::default(),
            ecn: Ecn::NotCapable,
            flow: 0,
        };
        assert_eq!(self.network.offer(self.now, frame), Admission::Taken);
        id
    }

    /// Offers a frame of one cell.
    fn small(&mut self, from: u16, to: u16) -> FrameId {
        self.offer(from, To::One(Port(to)), 29, Kind::Ip)
    }

    fn vc(&mut self, command: fn(Port, Port) -> VcCommand, a: u16, b: u16) -> Result<(), Refused> {
        let command = Command::Vc(command(Port(a), Port(b)));
        self.network.command(self.now, command)
    }

    /// All that happens within `span`, but for `Done`.
    fn pass(&mut self, span: Span) -> Vec<Event> {
        self.now = self.now + span;
        std::iter::from_fn(|| self.network.poll(self.now))
            .filter(|event| !matches!(event, Event::Done { .. }))
            .collect()
    }

    /// How long each delivery of the next second takes from now; nothing may be lost.
    fn arrivals(&mut self) -> Vec<(FrameId, Span)> {
        let from = self.now;
        let events = self.pass(Span::secs(1));
        let lost = |event: &Event| matches!(event, Event::Lost { .. });
        assert!(!events.iter().any(lost), "{events:?}");
        let arrived = events.into_iter().filter_map(|event| match event {
            Event::Deliver { at, id, .. } => Some((id, at.since(from))),
            _ => None,
        });
        arrived.collect()
    }
}

#[test]
fn only_the_first_frame_on_a_switched_circuit_pays() {
    let mut atm = Atm::new("atm-oc3c:vc=svc");
    let first = atm.small(0, 1);
    assert_eq!(atm.arrivals(), [(first, SETUP + SMALL)]);
    // Both directions share the circuit.
    for (from, to) in [(0, 1), (1, 0)] {
        let next = atm.small(from, to);
        assert_eq!(atm.arrivals(), [(next, SMALL)]);
    }
    let other = atm.small(0, 2);
    assert_eq!(atm.arrivals(), [(other, SETUP + SMALL)]);
    assert_eq!(atm.network.counters().circuit_setups, 2);

    let mut atm = Atm::new("atm-oc3c");
    let first = atm.small(0, 1);
    assert_eq!(atm.arrivals(), [(first, SMALL)]);
    assert_eq!(atm.network.counters().circuit_setups, 0);
}

#[test]
fn frames_wait_in_their_order() {
    let mut atm = Atm::new("atm-oc3c:vc=svc");
    let full = atm.offer(0, To::One(Port(1)), 9_180, Kind::Ip);
    let small = atm.small(0, 1);
    let back = atm.small(1, 0);
    let aside = atm.pass(Span::millis(10));
    assert_eq!(aside, [], "nothing moves before the circuit is up");
    let at = atm.now + SETUP - Span::millis(10);
    let up = Change::CircuitUp(Port(0), Port(1), SETUP);
    let events = atm.pass(Span::secs(1));
    assert_eq!(events[0], Event::State { at, change: up });
    let arrived: Vec<_> = events[1..]
        .iter()
        .map(|event| match event {
            Event::Deliver { at, id, .. } => (*id, at.since(Instant::START)),
            event => panic!("{event:?}"),
        })
        .collect();
    let cell = Span::picos(2_831_197);
    assert_eq!(
        arrived,
        [
            (back, SETUP + SMALL),
            (full, SETUP + FULL),
            (small, SETUP + FULL + cell)
        ]
    );
}

/// Sixteen hosts: each is asked for, gets a circuit, and a datagram of 192 cells by it; of fifteen circuits the table keeps eight.
#[test]
fn a_host_of_sixteen_keeps_the_circuits_of_its_table() {
    let mut atm = Atm::of("atm-oc3c:vc=svc:table=8", 16);
    for to in 1..16 {
        let question = atm.offer(0, To::All, 29, Kind::Resolve(Port(to)));
        assert_eq!(atm.arrivals()[0].0, question);
        let first = atm.offer(0, To::One(Port(to)), 9_180, Kind::Ip);
        assert_eq!(atm.arrivals(), [(first, SETUP + FULL)]);
    }
    assert_eq!(atm.network.counters().circuit_setups, 15);
    for (to, cost) in [(15, Span::ZERO), (8, Span::ZERO), (1, SETUP)] {
        let again = atm.offer(0, To::One(Port(to)), 9_180, Kind::Ip);
        assert_eq!(atm.arrivals(), [(again, cost + FULL)], "{to}");
    }
}

#[test]
fn idle_and_aged_circuits_are_set_up_again() {
    let mut atm = Atm::new("atm-oc3c:vc=svc:idle_release=100s:resolution_lifetime=250s");
    atm.small(0, 1);
    atm.pass(Span::secs(50));
    for (wait, cost) in [
        (50, Span::ZERO),
        // Idle since 100 s before: not yet longer.
        (100, Span::ZERO),
        // Used within 100 s, but asked for 250 s ago and more.
        (99, SETUP),
        (99, Span::ZERO),
        (101, SETUP),
    ] {
        let before = atm.network.counters().circuit_releases;
        atm.now = atm.now + Span::secs(wait - 1);
        assert_eq!(
            atm.pass(Span::ZERO),
            [],
            "releases are found out at the next use"
        );
        let id = atm.small(1, 0);
        assert_eq!(atm.arrivals(), [(id, cost + SMALL)], "after {wait} s");
        let released = atm.network.counters().circuit_releases - before;
        assert_eq!(released, u64::from(!cost.is_zero()));
    }
}

#[test]
fn a_full_table_gives_up_the_circuit_used_longest_ago() {
    let mut atm = Atm::new("atm-oc3c:vc=svc:table=2");
    for to in [1, 2] {
        atm.small(0, to);
        atm.pass(Span::secs(1));
    }
    let used = atm.small(0, 1);
    assert_eq!(atm.arrivals(), [(used, SMALL)]);
    let at = atm.now;
    atm.small(0, 3);
    let down = Change::CircuitDown(Port(0), Port(2));
    assert_eq!(atm.pass(Span::ZERO), [Event::State { at, change: down }]);
    // While both entries are being set up, there is none to give up.
    let mut atm = Atm::new("atm-oc3c:vc=svc:table=2");
    atm.small(0, 1);
    atm.small(0, 2);
    let (at, id) = (atm.now, atm.small(0, 3));
    let refused = Event::Lost {
        at,
        id,
        to: Port(3),
        place: Place::Station,
        cause: Cause::NoCircuit,
    };
    assert_eq!(atm.pass(Span::ZERO), [refused]);
    let full = Refused::TableFull {
        port: Port(0),
        table: 2,
    };
    assert_eq!(atm.vc(VcCommand::Establish, 3, 0), Err(full));
    assert_eq!(atm.arrivals().len(), 2);
}

/// A table that is full at one end only gives nothing up at the other.
#[test]
fn a_refused_circuit_costs_none() {
    let mut atm = Atm::new("atm-oc3c:vc=svc:table=1");
    atm.small(0, 1);
    atm.pass(Span::secs(1));
    atm.small(2, 3);
    atm.small(0, 2);
    atm.pass(Span::secs(1));
    assert_eq!(atm.network.counters().circuit_releases, 0);
    let id = atm.small(0, 1);
    assert_eq!(atm.arrivals(), [(id, SMALL)]);
}

#[test]
fn a_call_given_up_never_comes_up() {
    let mut atm = Atm::new("atm-oc3c:vc=svc");
    let lost = atm.small(0, 1);
    atm.pass(Span::millis(20));
    atm.vc(VcCommand::Release, 1, 0).unwrap();
    let at = atm.now;
    let gone = Event::Lost {
        at,
        id: lost,
        to: Port(1),
        place: Place::Station,
        cause: Cause::NoCircuit,
    };
    let change = Change::CircuitDown(Port(0), Port(1));
    assert_eq!(atm.pass(Span::ZERO), [Event::State { at, change }, gone]);
    // Begun anew 1 ms before the first call would have ended.
    let next = atm.small(0, 1);
    assert_eq!(atm.arrivals(), [(next, SETUP + SMALL)]);
    assert_eq!(atm.network.counters().circuit_setups, 1);
}

/// Frames that waited for a circuit stop their station; when they are given up, it goes on.
#[test]
fn a_station_goes_on_after_a_release() {
    let mut atm = Atm::new("atm-oc3c:vc=svc");
    while atm.network.ready(Port(0), Class::default()) {
        atm.offer(0, To::One(Port(1)), 9_180, Kind::Ip);
    }
    atm.vc(VcCommand::Release, 0, 1).unwrap();
    let at = atm.now;
    let ready = Event::Ready {
        at,
        port: Port(0),
        class: Class::default(),
    };
    assert_eq!(atm.pass(Span::ZERO).last(), Some(&ready));
    assert!(atm.network.ready(Port(0), Class::default()));
}

#[test]
fn circuits_are_set_up_and_taken_down_on_command() {
    let mut atm = Atm::new("atm-oc3c:vc=svc");
    atm.vc(VcCommand::Establish, 0, 1).unwrap();
    atm.pass(SETUP);
    let id = atm.small(0, 1);
    assert_eq!(atm.arrivals(), [(id, SMALL)]);
    // Establishing what is there changes nothing, releasing what is not neither.
    atm.vc(VcCommand::Establish, 1, 0).unwrap();
    atm.vc(VcCommand::Release, 2, 3).unwrap();
    assert_eq!(atm.pass(Span::secs(1)), []);

    let mut atm = Atm::new("atm-oc3c");
    atm.vc(VcCommand::Release, 0, 1).unwrap();
    let id = atm.small(0, 1);
    let events = atm.pass(Span::secs(1));
    assert!(
        matches!(events[1], Event::Lost { id: lost, cause: Cause::NoCircuit, .. } if lost == id)
    );
    atm.vc(VcCommand::Establish, 0, 1).unwrap();
    let id = atm.small(0, 1);
    assert_eq!(atm.arrivals(), [(id, SMALL)]);
}

#[test]
fn commands_are_refused_with_a_reason() {
    let mut atm = Atm::new("atm-oc3c");
    for (a, b, port) in [(0, 4, 4), (9, 1, 9), (2, 2, 2)] {
        let refused = Refused::NoSuchPort {
            port: Port(port),
            ports: 4,
        };
        assert_eq!(atm.vc(VcCommand::Establish, a, b), Err(refused.clone()));
        assert_eq!(atm.vc(VcCommand::Release, a, b), Err(refused));
    }
    let mut ethernet = Atm::new("ethernet-100");
    assert_eq!(
        ethernet.vc(VcCommand::Establish, 0, 1),
        Err(Refused::NoCircuits)
    );
    let told = Refused::NoCircuits.to_string();
    assert!(told.contains("atm-oc3c"), "{told}");
}

/// The server has the request after one line and the switch, and sends it back after its own time over the same line.
#[test]
fn the_address_server_answers() {
    let mut atm = Atm::new("atm-oc3c:vc=svc");
    let cell = Span::picos(2_831_197);
    let way = Span::nanos(140);
    for (len, cells) in [(29, 1), (100, 3)] {
        let id = atm.offer(2, To::All, len, Kind::Resolve(Port(1)));
        let answer = cell * cells + way + Span::micros(10) + Span::millis(1) + cell * cells + way;
        assert_eq!(atm.arrivals(), [(id, answer)]);
    }
    let at = atm.now;
    for kind in [Kind::Ip, Kind::Arp, Kind::Other] {
        let id = atm.offer(2, To::All, 29, kind);
        let lost = Event::Lost {
            at,
            id,
            to: Port(2),
            place: Place::Station,
            cause: Cause::NoBroadcast,
        };
        assert_eq!(atm.pass(Span::ZERO), [lost]);
    }
}

#[test]
fn a_mesh_of_permanent_circuits_must_fit() {
    let spec = resolve("atm-oc3c:table=2", &|_| unreachable!()).expect("it is in the catalogue");
    assert!(Fabric::new(&spec, 3, 1).is_ok());
    let error = Fabric::new(&spec, 4, 1)
        .err()
        .expect("three circuits do not fit into two entries");
    assert_eq!(error.key, "circuits.table");
}
