//! How much faster text is translated by blocks than by characters, in memory.

use sonde_measure::files::Translation;
use sonde_sys::noise::measured;
use sonde_workload::files::ftp::translate::{FromNetwork, to_network};
use sonde_workload::files::pattern;
use std::time::{Duration, Instant};

const FILE: usize = 1 << 20;
const COPY: usize = 64 << 10;
/// Passes over the file, of which the fastest counts.
const PASSES: usize = 15;
/// Measurements of both after the first.
const ROUNDS: usize = 10;

fn fastest(mut pass: impl FnMut()) -> Duration {
    let time = |_| {
        let begin = Instant::now();
        pass();
        begin.elapsed()
    };
    (0..PASSES).map(time).min().unwrap()
}

fn lesser(a: [Duration; 2], b: [Duration; 2]) -> [Duration; 2] {
    let ([a, b], [c, d]) = (a, b);
    [a.min(c), b.min(d)]
}

/// To the network and from it.
fn both_ways(by: Translation) -> [Duration; 2] {
    let file = pattern::text(0, FILE);
    let mut network = Vec::new();
    to_network(by, file, &mut network);
    let mut to = Vec::new();
    let sending = fastest(|| {
        for piece in file.chunks(COPY) {
            to.clear();
            to_network(by, piece, &mut to);
        }
    });
    let receiving = fastest(|| {
        let mut from = FromNetwork::new(by);
        for piece in network.chunks(COPY) {
            to.clear();
            from.push(piece, &mut to);
        }
    });
    [sending, receiving]
}

#[test]
fn blocks_are_five_times_as_fast_as_characters() {
    measured(|| {
        let mut slow = both_ways(Translation::Character);
        let mut fast = both_ways(Translation::Block);
        // By turns, so that what slows the machine for a while is not one's alone.
        for _ in 0..ROUNDS {
            slow = lesser(slow, both_ways(Translation::Character));
            fast = lesser(fast, both_ways(Translation::Block));
        }
        for (slow, fast) in slow.into_iter().zip(fast) {
            let ratio = slow.as_secs_f64() / fast.as_secs_f64();
            println!("by character {slow:?}, by block {fast:?}: {ratio:.1}");
            assert!(ratio >= 5.0, "{slow:?} {fast:?}");
        }
    });
}
