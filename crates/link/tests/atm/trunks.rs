//! Two switches and the trunks between them: NASA's testbed, one TAXI and two DS-3.

use super::rig::{Rig, spec};
use sonde_link::{Cause, Command, Fault, Network, NetworkSpec, Place, Script};
use sonde_units::{Bytes, Instant, Span};

fn nasa(more: &str) -> NetworkSpec {
    let tables = format!(
        "topology = \"two-switches\"\n{more}\n[fabric]\nswitches = 2\nplacement = [0, 0, 0, 1, 1, 1]\n\
         [[trunk]]\nbetween = [0, 1]\nname = \"taxi\"\n\
         [[trunk]]\nbetween = [0, 1]\nname = \"ds3\"\ncount = 2\nrate = \"44.736Mbit\"\npayload = \"212/233\"\n"
    );
    spec("atm-taxi", &tables)
}

const ASSIGNED: &str = "assign = [{from = 0, to = 3, trunk = 0}, {from = 1, to = 4, trunk = 1}, {from = 2, to = 5, trunk = 2}]";

/// Bits a second of layer 3 that arrive at each receiver in half a second.
fn rates(spec: &NetworkSpec, pairs: &[(u16, u16)]) -> (Vec<f64>, Rig) {
    let mut rig = Rig::new(spec, 6, 1);
    rig.blast(pairs, 9_180, Instant::START + Span::millis(500));
    let of = |to: u16| {
        rig.network.counters().ports[usize::from(to)]
            .delivered_bytes
            .0 as f64
            * 16.0
    };
    let rates = pairs.iter().map(|(_, to)| of(*to)).collect();
    (rates, rig)
}

/// A circuit has what its own trunk carries; three circuits on three trunks have their sum.
#[test]
fn a_circuit_stays_on_its_trunk() {
    // Whole frames are refused where a TAXI host is faster than its trunk; else parts of all would cross it.
    let spec = nasa(&format!("{ASSIGNED}\natm = {{discard = \"epd\"}}"));
    let taxi = 100e6 * 9_180.0 / (192.0 * 53.0);
    let ds3 = 40.704e6 * 9_180.0 / (192.0 * 53.0);
    let (got, rig) = rates(&spec, &[(0, 3), (1, 4), (2, 5)]);
    for (got, most) in got.iter().zip([taxi, ds3, ds3]) {
        assert!(*got <= most && *got > 0.97 * most, "{got} of {most}");
    }
    // The unequal trunks carry 163.4 Mb/s of layer 3 of 190 nominal.
    assert!(got.iter().sum::<f64>() > 158e6);
    assert!(
        rig.network
            .counters()
            .lost
            .keys()
            .all(|key| key.0 == Place::Output)
    );
    let (alone, _) = rates(&spec, &[(1, 4)]);
    assert!(alone[0] <= ds3 && alone[0] > 0.97 * ds3);
}

/// Cells go on one by one: a frame takes its own time once, and a cell, a way and a switch for each further line.
#[test]
fn cells_cut_through_each_switch() {
    let mut rig = Rig::new(&nasa(ASSIGNED), 6, 1);
    let id = rig.send(0, 3, 9_180);
    rig.settle();
    let cell = Span::picos(4_240_000);
    let way = cell * (192 + 2) + Span::nanos(140) * 3 + Span::micros(10) * 2;
    assert_eq!(rig.arrival(id, 3), Instant::START + way);
    // On a DS-3 its cells come apart by that line's cell time.
    let ds3 = spec("atm-ds3", "").line.unit_time(Bytes(53));
    rig = Rig::new(&nasa(ASSIGNED), 6, 1);
    let id = rig.send(1, 4, 9_180);
    rig.settle();
    let way = cell * 2 + ds3 * 192 + Span::nanos(140) * 3 + Span::micros(10) * 2;
    assert_eq!(rig.arrival(id, 4), Instant::START + way);
}

/// A trunk that fails loses what waits for it; its circuits take another, and come back.
#[test]
fn circuits_move_when_a_trunk_fails() {
    let mut rig = Rig::new(&nasa(ASSIGNED), 6, 1);
    let trunk = |trunk, up| Command::Fault(Fault::Trunk { trunk, up });
    let on_it = rig.send(0, 3, 9_180);
    rig.pass(Span::micros(200));
    rig.command(trunk(0, false)).expect("it is there");
    rig.settle();
    assert_eq!(rig.loss(on_it, 3), (Place::Output, Cause::LinkDown));
    let moved = rig.send(0, 3, 9_180);
    let at = rig.now;
    rig.settle();
    assert!(
        rig.arrival(moved, 3).since(at) > Span::micros(1_900),
        "it goes by a DS-3"
    );
    for number in [1, 2] {
        rig.command(trunk(number, false)).expect("it is there");
    }
    let parted = rig.send(0, 3, 29);
    rig.settle();
    assert_eq!(rig.loss(parted, 3), (Place::Output, Cause::LinkDown));
    rig.command(trunk(0, true)).expect("it is there");
    let back = rig.send(0, 3, 9_180);
    let at = rig.now;
    rig.settle();
    assert!(rig.arrival(back, 3).since(at) < Span::millis(1));
    assert!(rig.command(trunk(3, true)).is_err());
}

/// UPC's two switches with five OC-3c lines: drops of 3 m, a trunk of 50 m, which are 56 m or 0.28 us from host to host.
#[test]
fn the_switches_of_the_upc_study() {
    let tables = "topology = \"two-switches\"\n[fabric]\nswitches = 2\nplacement = [0, 0, 1, 1]\n\
                  [[trunk]]\nbetween = [0, 1]\nlength_m = 50\n";
    let mut rig = Rig::of("atm-oc3c:length_m=3", tables, 4);
    // Lines are duplex: what crosses the trunk the other way at the same time is in nobody's way.
    let sent = [(0, 2), (2, 0), (1, 0), (2, 3)].map(|(from, to)| (to, rig.send(from, to, 29)));
    rig.settle();
    let cell = Span::picos(2_831_197);
    let far = cell * 3 + Span::nanos(280) + Span::micros(10) * 2;
    let near = cell * 2 + Span::nanos(30) + Span::micros(10);
    let took = sent.map(|(to, id)| rig.arrival(id, to).since(Instant::START));
    // The last station's second cell leaves behind its first.
    assert_eq!(took, [far, far, near, near + cell]);
}

/// One line of a batch file sets the circuit of a pair at both switches; the file run again changes nothing.
#[test]
fn one_entry_sets_both_switches() {
    let mut rig = Rig::new(&nasa(ASSIGNED), 6, 1);
    let play = |rig: &mut Rig, text: &str| {
        for (_, command) in Script::parse(text).expect("it is a script").commands {
            rig.command(command).expect("there are circuits");
        }
        rig.pass(Span::secs(1));
    };
    play(&mut rig, "0s vc release h1 h4\n0s vc release h2 h5\n");
    let lost = [(0, 3), (3, 0), (1, 4)].map(|(from, to)| (to, rig.send(from, to, 29)));
    let other = rig.send(2, 5, 29);
    rig.settle();
    for (to, id) in lost {
        assert_eq!(rig.loss(id, to), (Place::Station, Cause::NoCircuit));
    }
    rig.arrival(other, 5);
    for _ in 0..2 {
        play(&mut rig, "0s vc establish h1 h4\n0s vc establish h2 h5\n");
        let there = [(0, 3), (3, 0), (1, 4)].map(|(from, to)| (to, rig.send(from, to, 29)));
        rig.settle();
        for (to, id) in there {
            rig.arrival(id, to);
        }
    }
}
