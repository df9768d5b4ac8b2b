//! What outputs drop, and what that costs frames.

use super::rig::{Rig, spec};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_link::{Cause, Network, Place, Port};
use sonde_units::{Instant, Span};

/// Random frames between four stations: each cell alone, and trains.
fn outcome(
    every_cell: bool,
    buffer: u64,
    path: &str,
    acts: &[(u64, u16, u16, u64)],
) -> (impl PartialEq + std::fmt::Debug, u64, u64) {
    let tables = format!("[path]\n{path}\n[atm]\nevery_cell = {every_cell}\n");
    let spec = spec(&format!("atm-oc3c:buffer={buffer}cells"), &tables);
    let mut rig = Rig::new(&spec, 4, 7);
    for (gap, from, to, len) in acts {
        rig.pass(Span::nanos(*gap));
        if from != to && rig.is_ready(*from) {
            rig.send(*from, *to, *len);
        }
    }
    rig.settle();
    let counters = rig.network.counters();
    (rig.fates, counters.cells_lost, counters.cells_wasted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_cell_alone_equals_trains(
        acts in proptest::collection::vec((prop_oneof![Just(0u64), 0u64..3_000, 0u64..500_000], 0u16..4, 0u16..4, 0u64..9_180), 1..100),
        buffer in prop_oneof![1u64..20, 20u64..600, Just(13_312)],
        path in prop_oneof![Just(""), Just("delay = \"3us\"\nloss = \"5%\""), Just("reorder = \"10%\"\nreorder_by = \"400us\"")],
    ) {
        let trains = outcome(false, buffer, path, &acts);
        let cells = outcome(true, buffer, path, &acts);
        prop_assert_eq!(trains.1, cells.1);
        prop_assert_eq!(trains.2, cells.2);
        prop_assert_eq!(format!("{:?}", trains.0), format!("{:?}", cells.0));
    }
}

/// The table of cell loss: a frame of n cells is lost with probability 1 - (1 - c)^n.
#[test]
fn cell_loss_is_amplified() {
    for (len, cells, published) in [
        (552, 12, 1.19e-2),
        (1_500, 32, 3.15e-2),
        (4_352, 91, 8.70e-2),
        (9_180, 192, 17.5e-2),
    ] {
        let mut rig = Rig::of("atm-oc3c:cell_loss=0.001", "", 2);
        let want = 1.0 - 0.999f64.powi(cells);
        assert!((want / published - 1.0).abs() < 0.01);
        let n = 20_000;
        while rig.frames.len() < n {
            while rig.is_ready(0) && rig.frames.len() < n {
                rig.send(0, 1, len);
            }
            rig.step(Instant::from_picos(u64::MAX));
        }
        rig.settle();
        let lost = rig.sums().1 as f64;
        let sigma = (n as f64 * want * (1.0 - want)).sqrt();
        assert!(
            (lost - n as f64 * want).abs() < 4.0 * sigma,
            "{len}: {lost}"
        );
        let random = rig.network.counters().lost[&(Place::Path, Cause::Random, Port(0))];
        assert_eq!(random, lost as u64);
    }
}

/// Cells that a switch sends to a station which they are not for (S70): a frame of n cells is lost as often as by cell loss, the place is
/// the switch, and each such cell takes its time on another line.
#[test]
fn misdelivered_cells_are_lost_in_the_switch_and_use_another_line() {
    const FRAMES: usize = 20_000;
    const CELLS: i32 = 32;
    for every_frame in [false, true] {
        let share = if every_frame { "1" } else { "0.001" };
        let mut rig = Rig::of(&format!("atm-oc3c:misdelivery={share}"), "", 3);
        let count = if every_frame { 100 } else { FRAMES };
        while rig.frames.len() < count {
            while rig.is_ready(0) && rig.frames.len() < count {
                rig.send(0, 1, 1_500);
            }
            rig.step(Instant::from_picos(u64::MAX));
        }
        rig.settle();
        let counters = rig.network.counters();
        let lost = rig.sums().1;
        let of = (Place::Output, Cause::Misdelivered, Port(0));
        assert_eq!(counters.lost[&of], lost);
        let cells = count as u64 * CELLS as u64;
        assert_eq!(counters.cells_sent, cells);
        if every_frame {
            assert_eq!((lost, counters.cells_misdelivered), (count as u64, cells));
            continue;
        }
        let want = 1.0 - 0.999f64.powi(CELLS);
        let sigma = |n: f64, p: f64| 4.0 * (n * p * (1.0 - p)).sqrt();
        let n = count as f64;
        assert!((lost as f64 - n * want).abs() < sigma(n, want), "{lost}");
        let (strays, n) = (counters.cells_misdelivered as f64, cells as f64);
        assert!((strays - n * 0.001).abs() < sigma(n, 0.001), "{strays}");
    }
}

/// Of what the port can carry.
const LOAD: f64 = 1.5;
const FRAMES: u64 = 8_000;

/// Ten stations send frames at random times into one port, more than it carries: bytes that arrive, and the share of the
/// cells on its line that are of lost frames.
fn goodput(rule: &str, buffer: u64, len: u64) -> (u64, f64) {
    let tables = format!("[atm]\ndiscard = \"{rule}\"\nevery_cell = true");
    let spec = spec(&format!("atm-oc3c:buffer={buffer}cells"), &tables);
    let mut rig = Rig::new(&spec, 11, 1);
    let mean = spec.frame_time(sonde_units::Bytes(len)).as_picos() as f64 * 10.0 / LOAD;
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut gap = || {
        let even = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        Span::picos((-(1.0 - even).ln() * mean) as u64)
    };
    let mut next: Vec<_> = (0..10).map(|_| Instant::START + gap()).collect();
    for _ in 0..FRAMES {
        let (from, at) = (0..)
            .zip(&mut next)
            .min_by_key(|(_, at)| **at)
            .expect("ten");
        rig.pass(at.since(rig.now));
        *at = *at + gap();
        // A station that is full already loses nothing by not being offered more.
        if rig.is_ready(from) {
            rig.send(from, 10, len);
        }
    }
    rig.settle();
    let counters = rig.network.counters();
    let wasted = counters.cells_wasted as f64 / counters.cells_sent as f64;
    (rig.sums().0, wasted)
}

#[test]
fn plain_is_below_ppd_and_ppd_below_epd() {
    for len in [552, 1_500, 4_352, 9_180] {
        for buffer in [256, 512, 1_024, 2_048] {
            let [plain, ppd, epd] = ["tail", "ppd", "epd"].map(|rule| goodput(rule, buffer, len));
            println!("{len} {buffer}: {plain:?} {ppd:?} {epd:?}");
            assert!(
                plain.0 < ppd.0 && ppd.0 < epd.0,
                "{len} {buffer}: {plain:?} {ppd:?} {epd:?}"
            );
            assert!(
                plain.1 > ppd.1 && ppd.1 > epd.1,
                "{len} {buffer}: {plain:?} {ppd:?} {epd:?}"
            );
        }
    }
}
