//! Contracts, host rate control and buffers: who loses, and who does not.

use super::rig::{Rig, spec};
use sonde_link::{Cause, Network, Place, Port, To};
use sonde_units::{Instant, Span};

fn end(millis: u64) -> Instant {
    Instant::START + Span::millis(millis)
}

/// Two saturating senders into one OC-3c port lose cells in the output buffer; not at half the rate, nor with room for all.
#[test]
fn two_into_one_lose_but_with_rate_control_or_room() {
    let lost = |selector: &str| {
        let mut rig = Rig::of(selector, "", 3);
        rig.blast(&[(0, 2), (1, 2)], 9_180, end(100));
        rig.settle();
        let counters = rig.network.counters();
        assert!(
            counters
                .lost
                .keys()
                .all(|(place, cause, _)| { (*place, *cause) == (Place::Output, Cause::Overflow) })
        );
        (rig.sums(), counters.cells_lost)
    };
    let ((arrived, frames), cells) = lost("atm-oc3c:buffer=1024cells");
    assert!(frames > 100 && cells > 10_000, "{frames} {cells}");
    let ((controlled, frames), cells) = lost("atm-oc3c:buffer=1024cells:pcr=74.88Mbit");
    assert_eq!((frames, cells), (0, 0));
    // Without loss the port carries more than with it, and far more than Ethernet.
    assert!(
        controlled > arrived && controlled * 8 * 10 > 130_000_000,
        "{controlled} {arrived}"
    );
    let ((_, frames), _) = lost("atm-oc3c:buffer=40000cells");
    assert_eq!(frames, 0);
}

/// Two windows of 64 KiB at once need room for one of them: 1366 cells, and none is lost.
#[test]
fn the_sum_of_the_windows_is_room_enough() {
    for (buffer, lossless) in [(1_400u64, true), (1_200, false)] {
        let mut rig = Rig::of(&format!("atm-oc3c:buffer={buffer}cells"), "", 3);
        for _ in 0..7 {
            rig.send(0, 2, 9_180);
            rig.send(1, 2, 9_180);
        }
        rig.settle();
        assert_eq!(rig.sums().1 == 0, lossless, "{buffer}");
    }
}

/// A paced circuit sends a cell each increment; two of one station mix.
#[test]
fn peak_rate_holds_for_each_circuit() {
    let mut rig = Rig::of("atm-oc3c:pcr=42.4Mbit", "", 3);
    let (a, b) = (rig.send(0, 1, 9_180), rig.send(0, 2, 9_180));
    rig.settle();
    let cell = Span::picos(2_831_197);
    let paced = Span::micros(10) * 191 + cell * 2 + Span::picos(10_280_000);
    assert_eq!(rig.arrival(a, 1), Instant::START + paced);
    assert_eq!(rig.arrival(b, 2), Instant::START + cell + paced);
}

const VOICE: &str = "[[atm.contract]]\nclass = 4\ncategory = \"cbr\"\npcr = \"4.24Mbit\"\n";

/// One cell of voice each 100 us waits for the cell that is being sent and no more, whatever the data do.
#[test]
fn voice_passes_data() {
    let mut rig = Rig::of("atm-oc3c", VOICE, 4);
    let mut voice = Vec::new();
    for _ in 0..500 {
        let next = rig.now + Span::micros(100);
        rig.blast(&[(0, 3), (1, 3)], 9_180, next);
        rig.pass(next.since(rig.now));
        voice.push((rig.now, rig.offer(2, To::One(Port(3)), 29, 4)));
    }
    rig.settle();
    let empty = Span::picos(2 * 2_831_197 + 2 * 140_000 + 10_000_000);
    for (at, id) in voice {
        let took = rig.arrival(id, 3).since(at);
        assert!(
            took >= empty && took < empty + Span::picos(2_831_197),
            "{took}"
        );
    }
}

/// What keeps to its contract passes; what does not loses just the cells above it.
#[test]
fn the_switch_polices() {
    let sent = |shape: bool, extra: &str| {
        let contract = format!("{VOICE}cdvt = \"1us\"\nshape = {shape}\n{extra}");
        let mut rig = Rig::of("atm-oc3c", &contract, 2);
        // One cell a frame, ten times the agreed rate, for 10 ms.
        for _ in 0..1_000 {
            rig.offer(0, To::One(Port(1)), 29, 4);
            rig.pass(Span::micros(10));
        }
        rig.settle();
        (rig.sums().1, rig.network.counters().cells_policed)
    };
    assert_eq!(sent(true, ""), (0, 0));
    let (frames, cells) = sent(false, "");
    assert_eq!((frames, cells), (900, 900));
    assert_eq!(sent(false, "police = false"), (0, 0));

    // Bursts of 50 cells at the peak rate, one each 50 sustained increments, keep to a VBR contract.
    let vbr = |burst: u64| {
        let contract = "[[atm.contract]]\nclass = 3\ncategory = \"rt-vbr\"\npcr = \"42.4Mbit\"\nscr = \"4.24Mbit\"\nmbs = 50\ncdvt = \"1us\"\nshape = false\n";
        let mut rig = Rig::of("atm-oc3c", contract, 2);
        for _ in 0..4 {
            for _ in 0..burst {
                rig.offer(0, To::One(Port(1)), 29, 3);
                rig.pass(Span::micros(10));
            }
            rig.pass(Span::micros(100 * 50 - 10 * burst));
        }
        rig.settle();
        rig.sums().1
    };
    assert_eq!((vbr(50), vbr(51)), (0, 4));
}

/// Loss is told by circuit, place and output.
#[test]
fn losses_are_counted_by_place() {
    let spec = spec("atm-oc3c:buffer=100cells", "");
    let mut rig = Rig::new(&spec, 4, 1);
    rig.blast(&[(0, 2), (1, 2), (3, 0)], 9_180, end(20));
    rig.settle();
    let counters = rig.network.counters();
    assert_eq!(
        counters.cells_lost_at.keys().copied().collect::<Vec<_>>(),
        [Port(2)]
    );
    assert_eq!(counters.cells_lost_at[&Port(2)], counters.cells_lost);
    let by_circuit: u64 = counters.circuits_lost.values().sum();
    assert_eq!(by_circuit, counters.lost_total());
    assert!(
        counters
            .circuits_lost
            .keys()
            .all(|(_, to, place)| (*to, *place) == (Port(2), Place::Output))
    );
}
