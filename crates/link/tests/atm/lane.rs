//! LAN emulation: what goes by the broadcast server, and what waits for a circuit.

use super::rig::Rig;
use sonde_link::{Cause, Change, Command, Place, Port, To, VcCommand};
use sonde_units::{Instant, Span};

const CELL: Span = Span::picos(2_831_197);
const WAY: Span = Span::nanos(140);
const LATENCY: Span = Span::micros(10);
const SERVER: Span = Span::millis(1);
/// LE_ARP and signalling.
const SETUP: Span = Span::millis(22);

fn at(span: Span) -> Instant {
    Instant::START + span
}

fn rigs(ports: u16) -> impl Iterator<Item = Rig> {
    [false, true].into_iter().map(move |every_cell| {
        let tables = format!("[atm]\nevery_cell = {every_cell}");
        Rig::of(
            "atm-oc3c:mtu=1500:encapsulation=lane:vc=svc",
            &tables,
            ports,
        )
    })
}

/// All cells to the server, its time, then all of them from the switch.
fn by_server(cells: u64) -> Span {
    CELL * cells + WAY + LATENCY + SERVER + CELL * cells + WAY
}

#[test]
fn the_first_frame_goes_by_the_server_and_the_rest_by_the_circuit() {
    for mut rig in rigs(3) {
        let first = rig.send(0, 1, 1_500);
        let second = rig.send(0, 1, 1_500);
        rig.settle();
        assert_eq!(rig.arrival(first, 1), at(by_server(32)));
        let direct = CELL * 33 + WAY * 2 + LATENCY;
        assert_eq!(rig.arrival(second, 1), at(SETUP + direct));
        let up = Change::CircuitUp(Port(0), Port(1), SETUP);
        assert_eq!(rig.changes, [(at(SETUP), up)]);
    }
}

/// One unknown frame a second for each destination; none where the first is still waiting behind others.
#[test]
fn unknown_frames_are_few() {
    let mut rig = Rig::of("atm-oc3c:encapsulation=lane:vc=svc:setup=10s", "", 3);
    let (a, b, other) = (rig.send(0, 1, 29), rig.send(0, 1, 29), rig.send(0, 2, 29));
    rig.pass(Span::secs(2));
    rig.arrival(a, 1);
    rig.arrival(other, 2);
    assert_eq!(rig.fates.len(), 2);
    let c = rig.send(0, 1, 29);
    rig.settle();
    assert!(rig.arrival(b, 1) > at(Span::secs(10)) && rig.arrival(b, 1) < rig.arrival(c, 1));
}

/// A circuit that is up before the server has sent the first frame on waits for that (flush).
#[test]
fn the_circuit_waits_for_the_server() {
    for every_cell in [false, true] {
        let tables = format!("[atm]\nevery_cell = {every_cell}\n[lane]\nbus_delay = \"50ms\"");
        let mut rig = Rig::of("atm-oc3c:encapsulation=lane:vc=svc", &tables, 2);
        // 24 + 16 + 8 bytes are one cell.
        let (first, second) = (rig.send(0, 1, 24), rig.send(0, 1, 24));
        rig.settle();
        let sent_on = CELL + WAY + LATENCY + Span::millis(50);
        assert_eq!(rig.arrival(first, 1), at(sent_on + CELL + WAY));
        assert_eq!(rig.changes[0].0, at(sent_on));
        assert!(rig.arrival(second, 1) > rig.arrival(first, 1));
    }
}

/// A circuit that is released while frames of it wait for its rate: the next frame does not pass them by the server.
#[test]
fn frames_that_wait_for_a_rate_are_not_overtaken() {
    let tables = "[[atm.contract]]\nclass = 0\ncategory = \"cbr\"\npcr = \"424kbit\"";
    let mut rig = Rig::of("atm-oc3c:encapsulation=lane:vc=svc", tables, 2);
    // It has the circuit signalled; those from the other side wait for that.
    rig.send(0, 1, 24);
    rig.send(0, 1, 24);
    let slow = rig.send(1, 0, 1_500);
    rig.pass(SETUP + Span::micros(1));
    let release = VcCommand::Release(Port(0), Port(1));
    rig.command(Command::Vc(release)).unwrap();
    let next = rig.send(1, 0, 24);
    rig.settle();
    assert!(rig.arrival(slow, 0) < rig.arrival(next, 0));
}

#[test]
fn frames_to_all_go_by_the_server() {
    for mut rig in rigs(4) {
        let id = rig.offer(2, To::All, 100, 0);
        rig.settle();
        // 100 + 16 + 8 bytes are three cells.
        for to in [0, 1, 3] {
            assert_eq!(rig.arrival(id, to), at(by_server(3)));
        }
        assert_eq!(rig.fates.len(), 3);
    }
    // Lost on the way to the server it is lost for each.
    let mut rig = Rig::of("atm-oc3c:encapsulation=lane:vc=svc:cell_loss=1", "", 3);
    let id = rig.offer(2, To::All, 100, 0);
    rig.settle();
    for to in [0, 1] {
        assert_eq!(rig.loss(id, to), (Place::Path, Cause::Random));
    }
}
