//! Permanent circuits: which there are, when they come up, and what the connection manager does to them.

use super::rig::{Rig, spec};
use sonde_link::{
    Cause, Change, Class, Command, Ecn, Event, Fabric, Fault, Frame, FrameId, Kind, Network, Place,
    Port, Refused, To, VcCommand,
};
use sonde_units::{Bytes, Instant, Span};

const NONE: (Place, Cause) = (Place::Station, Cause::NoCircuit);

/// The ordered pairs of `ports` stations between which a frame arrives.
fn joined(rig: &mut Rig, ports: u16) -> Vec<(u16, u16)> {
    let pairs = (0..ports).flat_map(|a| (0..ports).map(move |b| (a, b)));
    let sent: Vec<_> = pairs
        .filter(|(a, b)| a != b)
        .map(|(a, b)| (a, b, rig.send(a, b, 29)))
        .collect();
    rig.settle();
    let mut there = Vec::new();
    for (a, b, id) in sent {
        match rig.fates[&(id, Port(b))].1 {
            None => there.push((a, b)),
            Some(why) => assert_eq!(why, NONE),
        }
    }
    there
}

/// 66 duplex circuits join 12 hosts as a mesh, 11 as a star; or only those that are named.
#[test]
fn only_configured_circuits_are_there() {
    let mut mesh = Rig::of("atm-oc3c", "", 12);
    assert_eq!(joined(&mut mesh, 12).len(), 2 * 66);
    let mut star = Rig::of("atm-oc3c:layout=star", "", 12);
    let there = joined(&mut star, 12);
    assert_eq!(there.len(), 2 * (12 - 1));
    assert!(there.iter().all(|(a, b)| *a == 0 || *b == 0));
    let named = "[[pvc]]\nbetween = [3, 1]\n[[pvc]]\nbetween = [2, 3]";
    let mut named = Rig::of("atm-oc3c", named, 4);
    assert_eq!(joined(&mut named, 4), [(1, 3), (2, 3), (3, 1), (3, 2)]);
}

#[test]
fn a_circuit_to_nowhere_is_refused() {
    let spec = spec("atm-oc3c", "[[pvc]]\nbetween = [0, 5]");
    let error = Fabric::new(&spec, 4, 1).err().expect("there is no port 5");
    assert_eq!(error.key, "pvc");
    // A star needs as many entries at its middle as a mesh.
    let spec = super::rig::spec("atm-oc3c:layout=star:table=2", "");
    assert!(Fabric::new(&spec, 3, 1).is_ok() && Fabric::new(&spec, 4, 1).is_err());
}

fn manager(rig: &mut Rig, up: bool) {
    rig.command(Command::Fault(Fault::Manager { up }))
        .expect("there is one");
}

/// Contact lost changes nothing; regained it clears all circuits, which come back one a second.
#[test]
fn the_manager_clears_and_restores() {
    let mut rig = Rig::of("atm-oc3c:restoration=automatic:restore=1500ms", "", 3);
    manager(&mut rig, false);
    assert_eq!(joined(&mut rig, 3).len(), 6);
    let refused = rig.command(Command::Vc(VcCommand::Establish(Port(0), Port(1))));
    assert!(matches!(refused, Err(Refused::NotHere { .. })));
    rig.pass(Span::secs(60));
    rig.changes.clear();
    manager(&mut rig, true);
    let at = rig.now;
    let lost = [(0, 1), (1, 2), (2, 0)].map(|(a, b)| (rig.send(a, b, 29), b));
    rig.settle();
    for (id, b) in lost {
        assert_eq!(rig.loss(id, b), NONE);
    }
    let port = Port;
    let down = |a, b| (at, Change::CircuitDown(port(a), port(b)));
    let up = |n, a, b| {
        let took = Span::millis(1_500) * n;
        (at + took, Change::CircuitUp(port(a), port(b), took))
    };
    let told = [
        down(0, 1),
        down(0, 2),
        down(1, 2),
        (at, Change::Fault(Fault::Manager { up: true })),
        up(1, 0, 1),
        up(2, 0, 2),
        up(3, 1, 2),
    ];
    assert_eq!(rig.changes, told);
    assert_eq!(joined(&mut rig, 3).len(), 6);
}

/// Without restoration they stay down until someone sets them up; contact lost again stops a restoration.
#[test]
fn circuits_come_back_by_hand_or_not() {
    let mut rig = Rig::of("atm-oc3c", "", 3);
    manager(&mut rig, false);
    manager(&mut rig, true);
    rig.pass(Span::secs(1_000));
    assert_eq!(joined(&mut rig, 3), []);
    let hand = Command::Vc(VcCommand::Establish(Port(2), Port(0)));
    rig.command(hand).expect("the manager is there");
    assert_eq!(joined(&mut rig, 3), [(0, 2), (2, 0)]);

    let mut rig = Rig::of("atm-oc3c:restoration=automatic", "", 3);
    manager(&mut rig, false);
    manager(&mut rig, true);
    rig.pass(Span::millis(1_500));
    manager(&mut rig, false);
    rig.pass(Span::secs(100));
    assert_eq!(joined(&mut rig, 3), [(0, 1), (1, 0)]);
}

/// Circuits come up n ms after the start, in their order.
#[test]
fn circuits_come_up_at_boot() {
    let mut rig = Rig::of("atm-oc3c:boot=40ms", "", 3);
    rig.pass(Span::millis(79));
    let (early, there) = (rig.send(0, 2, 29), rig.send(0, 1, 29));
    rig.pass(Span::millis(1));
    let later = rig.send(0, 2, 29);
    rig.settle();
    assert_eq!(rig.loss(early, 2), NONE);
    rig.arrival(there, 1);
    rig.arrival(later, 2);
    let ups: Vec<_> = rig.changes.iter().map(|(at, _)| at.as_nanos()).collect();
    assert_eq!(ups, [40_000_000, 80_000_000, 120_000_000]);
}

/// Hosts of three makers at one switch (Sandia, S26): h3's adapter sets its circuits up 30 s after the start, h4's is set to another
/// encapsulation, and what h2's driver takes is its own.
#[test]
fn each_maker_has_its_own_boot_encapsulation_and_driver() {
    let tables = "[[port]]\nport = 2\nboot = \"30s\"\n[atm]\nmismatched = [3]\n";
    let mut rig = Rig::of("atm-oc3c:boot=1s", tables, 4);
    // Six circuits, a second apart, in the order of their stations: that of h1 and h2 is the first.
    rig.pass(Span::secs(7));
    let early = [rig.send(0, 1, 29), rig.send(1, 0, 29), rig.send(2, 0, 29)];
    let other = rig.send(3, 0, 29);
    rig.pass(Span::secs(24));
    let later = [rig.send(0, 2, 29), rig.send(2, 1, 29)];
    rig.settle();
    rig.arrival(early[0], 1);
    rig.arrival(early[1], 0);
    assert_eq!(rig.loss(early[2], 0), NONE);
    assert_eq!(rig.loss(other, 0), (Place::Receiver, Cause::Rejected));
    rig.arrival(later[0], 2);
    rig.arrival(later[1], 1);
    let ups = rig.changes.iter();
    let mut ups: Vec<_> = ups.map(|(at, _)| at.as_nanos() / 1_000_000_000).collect();
    ups.sort_unstable();
    assert_eq!(ups, [1, 3, 5, 30, 30, 30]);

    let text = format!(
        "{tables}[host]\npreset = \"modern\"\n[[host.unlike]]\nat = [2]\nsend = \"900us\"\nreceive = \"700us\"\n"
    );
    let mixed = spec("atm-oc3c", &text);
    let times = [(0, 2), (1, 2), (0, 1)].map(|(from, to)| {
        let mut network = sonde_link::build(&mixed, 4, 1).unwrap();
        let begin = Instant::START + Span::secs(40);
        while network.poll(begin).is_some() {}
        let frame = Frame {
            id: FrameId(0),
            from: Port(from),
            to: To::One(Port(to)),
            len: Bytes(29),
            kind: Kind::Ip,
            class: Class(0),
            ecn: Ecn::NotCapable,
            flow: 0,
        };
        network.offer(begin, frame);
        loop {
            let at = network.poll_at().expect("it is on its way");
            while let Some(event) = network.poll(at) {
                if let Event::Deliver { at, .. } = event {
                    return at.since(begin).as_nanos() / 1_000;
                }
            }
        }
    });
    let [plain, sent, received] = times;
    let more = |time: u64, by: u64| time > plain + by - 100 && time < plain + by;
    assert!(more(sent, 900) && more(received, 700), "{times:?}");
}

/// Setting up the logical link is paid by the first frame of a circuit; getting bandwidth back by the first after a silence.
#[test]
fn first_frames_pay() {
    let way = Span::picos(2 * 2_831_197 + 2 * 140_000 + 10_000_000);
    let once = |rig: &mut Rig, from: u16, to: u16| {
        let (at, id) = (rig.now, rig.send(from, to, 29));
        rig.pass(Span::millis(500));
        rig.arrival(id, to).since(at)
    };
    let llc = Span::millis(7);
    for (vc, setup) in [("pvc", Span::ZERO), ("svc", Span::millis(21))] {
        let mut rig = Rig::of(&format!("atm-oc3c:vc={vc}:llc_setup=7ms"), "", 3);
        assert_eq!(once(&mut rig, 0, 1), setup + llc + way, "{vc}");
        assert_eq!(once(&mut rig, 1, 0), way, "{vc}");
        assert_eq!(once(&mut rig, 1, 2), setup + llc + way, "{vc}");
    }
    let knobs = "atm-oc3c:vc=svc:reallocation=2ms:reallocate_after=1s";
    let mut rig = Rig::of(knobs, "", 2);
    assert_eq!(once(&mut rig, 0, 1), Span::millis(21) + way);
    assert_eq!(once(&mut rig, 0, 1), way);
    rig.pass(Span::millis(501));
    assert_eq!(once(&mut rig, 0, 1), Span::millis(2) + way);
    assert_eq!(rig.network.spec().name, knobs);
}

/// A switch that restarts loses what it holds and what comes; switched circuits are gone, permanent ones stay.
#[test]
fn a_restart_empties_the_switch() {
    for every_cell in [false, true] {
        for (vc, setup) in [("pvc", 0u64), ("svc", 21)] {
            let tables = format!("[atm]\nevery_cell = {every_cell}");
            let mut rig = Rig::of(&format!("atm-oc3c:vc={vc}"), &tables, 3);
            let first = [rig.send(0, 2, 9_180), rig.send(1, 2, 9_180)];
            rig.pass(Span::millis(setup) + Span::micros(900));
            let down = Span::millis(1);
            rig.command(Command::Fault(Fault::Restart { down }))
                .expect("there is a switch");
            let second = rig.send(0, 2, 29);
            rig.pass(Span::millis(2));
            let third = rig.send(0, 2, 29);
            rig.settle();
            for id in first {
                assert_eq!(rig.loss(id, 2), (Place::Output, Cause::Restart), "{vc}");
            }
            if vc == "pvc" {
                assert_eq!(rig.loss(second, 2), (Place::Output, Cause::Restart));
                rig.arrival(third, 2);
            } else {
                // The call begins when the switch is up.
                let up = Instant::START + Span::millis(2 * setup + 1) + Span::micros(900);
                assert!(
                    rig.arrival(second, 2) > up && rig.arrival(second, 2) < rig.arrival(third, 2)
                );
            }
        }
    }
}

/// Stations that are set to different encapsulations do not understand each other.
#[test]
fn encapsulations_must_match() {
    for every_cell in [false, true] {
        let tables = format!("[atm]\nmismatched = [2, 3]\nevery_cell = {every_cell}");
        let mut rig = Rig::of("atm-oc3c", &tables, 4);
        for a in 0..4u16 {
            for b in (0..4u16).filter(|b| *b != a) {
                let id = rig.send(a, b, 100);
                rig.settle();
                if (a < 2) == (b < 2) {
                    rig.arrival(id, b);
                } else {
                    assert_eq!(rig.loss(id, b), (Place::Receiver, Cause::Rejected));
                }
            }
        }
    }
}
