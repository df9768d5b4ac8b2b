//! Whether bypassing TCP/IP is worth it, and why.
//!
//! Model:   `kernel-bypass`: messages of one size, wait and load on one network, over the paths packet and UDP. The difference of
//!          the one-way times is told with the parts that make it, the largest first; a part is most of it from one half on, and
//!          what the parts leave of it is told as not explained. Where it is less than a tenth of the
//!          longer one, the two are told to be the same, for the middle means of a few launches differ by so much.
//! Source:  the NASA study of 1995, where an interface to the adapter past the protocols gave no gain over UDP, by its
//!          context switches: `nasa.api.no_gain`, `nasa.api.cause`.
//! Checked: `the_part_that_makes_the_difference_is_named`, `no_part_is_most_of_it`, `small_differences_are_none`,
//!          `one_path_alone_says_nothing`.

use super::{Finding, Severity};
use crate::anatomy::{AnatomyRow, PARTS, anatomies};
use crate::index::Index;
use crate::words::kernel_bypass::{KernelBypass, Part};

/// A smaller difference, as a part of the longer time, is none.
const SAME: f64 = 0.1;
/// The part of a difference from which a part is most of it.
const MOST: f64 = 0.5;
/// The part of a difference from which what no part explains is told.
const REST: f64 = 0.05;

/// `kernel-bypass`, for each pair of cells.
pub(super) fn kernel_bypass(index: &Index<'_>) -> Vec<Finding> {
    let rows = anatomies(index);
    let beside = |row: &&AnatomyRow| row.path == "packet";
    rows.iter()
        .filter(beside)
        .filter_map(|packet| {
            let same = |row: &&AnatomyRow| {
                row.path == "udp"
                    && (&row.network, &row.wait, &row.load, row.size_bytes)
                        == (
                            &packet.network,
                            &packet.wait,
                            &packet.load,
                            packet.size_bytes,
                        )
                    && row.knobs == packet.knobs
            };
            Some(compared(packet, rows.iter().find(same)?))
        })
        .collect()
}

fn compared(packet: &AnatomyRow, udp: &AnatomyRow) -> Finding {
    let less = |udp: u64, packet: u64| udp as f64 - packet as f64;
    let gain_ns = less(udp.one_way_ns, packet.one_way_ns);
    let longer_ns = udp.one_way_ns.max(packet.one_way_ns).max(1) as f64;
    let mut parts: Vec<Part> = PARTS
        .iter()
        .zip(udp.parts().iter().zip(packet.parts()))
        .filter_map(|((_, name), (udp, packet))| {
            Some(Part {
                name,
                gain_ns: less((*udp)?, packet?),
            })
        })
        .collect();
    parts.sort_by(|one, other| other.gain_ns.abs().total_cmp(&one.gain_ns.abs()));
    // A part that goes the other way makes none of the difference.
    let along = |part: &&Part| part.gain_ns * gain_ns > 0.0;
    let largest = parts.iter().find(along).copied();
    let rest_ns = gain_ns - parts.iter().map(|part| part.gain_ns).sum::<f64>();
    let found = KernelBypass {
        packet,
        udp,
        gain_ns,
        longer_ns,
        is_same: gain_ns.abs() < SAME * longer_ns,
        is_most: largest.is_some_and(|part| part.gain_ns.abs() >= MOST * gain_ns.abs()),
        largest,
        rest_ns: Some(rest_ns).filter(|ns| ns.abs() >= REST * gain_ns.abs()),
        parts,
    };
    Finding::said("kernel-bypass", Severity::Note, &found).on_network(&packet.network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    fn cut(runs: Runs, path: &str, parts: [u64; 5]) -> Runs {
        let each = |value: u64| vec![value; 20];
        let mut runs = runs.anatomy("lan", path, 64, &each(parts.iter().sum()));
        for ((quantity, _), value) in PARTS.iter().zip(parts) {
            runs = runs.beside_each(*quantity, &each(value));
        }
        runs
    }

    fn found(packet: [u64; 5], udp: [u64; 5]) -> Vec<Finding> {
        let runs = cut(Runs::new().network(net("lan")), "packet", packet);
        let run = cut(runs, "udp", udp).done();
        kernel_bypass(&Index::new(&run))
    }

    #[test]
    fn the_part_that_makes_the_difference_is_named() {
        let all = found(
            [1_000, 500, 4_000, 2_000, 300],
            [3_000, 500, 4_100, 2_000, 500],
        );
        let text = &all[0].sentence;
        assert!(
            text.contains("saves 2.3") && text.contains("most of it in: send call 2"),
            "{text}"
        );
        let slower = found(
            [3_000, 500, 4_000, 2_000, 300],
            [1_000, 500, 4_000, 2_000, 300],
        );
        assert!(
            slower[0].sentence.contains("costs 2"),
            "{}",
            slower[0].sentence
        );
        assert!(
            slower[0]
                .arithmetic
                .as_deref()
                .unwrap()
                .contains("send call 2")
        );
    }

    #[test]
    fn no_part_is_most_of_it() {
        // 3 000 less in all: 1 000 by each of three.
        let all = found(
            [1_000, 500, 3_000, 1_000, 300],
            [2_000, 500, 4_000, 2_000, 300],
        );
        let text = &all[0].sentence;
        assert!(
            text.ends_with(", the largest part of it in: send call 1.000 µs less."),
            "{text}"
        );
        // The largest part goes the other way: what makes the difference is another.
        let all = found(
            [5_000, 500, 1_000, 1_000, 300],
            [1_000, 500, 7_000, 3_000, 300],
        );
        assert!(
            all[0]
                .sentence
                .contains("most of it in: wire 6.000 µs less"),
            "{all:?}"
        );
    }

    #[test]
    fn small_differences_are_none() {
        let all = found(
            [1_000, 500, 4_000, 2_000, 300],
            [1_100, 500, 4_100, 2_000, 300],
        );
        assert!(
            all[0].sentence.contains("changes little"),
            "{}",
            all[0].sentence
        );
    }

    #[test]
    fn one_path_alone_says_nothing() {
        let run = cut(Runs::new().network(net("lan")), "packet", [1, 2, 3, 4, 5]).done();
        assert!(kernel_bypass(&Index::new(&run)).is_empty());
    }
}
