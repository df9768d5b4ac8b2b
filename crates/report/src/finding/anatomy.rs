//! Whether passing by TCP/IP is worth it, and why.
//!
//! Model:   `past-ip`: messages of one size, wait and load on one network, cut by the path packet and by UDP. The difference of
//!          the one-way times is told with the parts that make it, the largest first; where it is less than a tenth of the
//!          longer one, the two are told to be the same, for the middle means of a few launches differ by so much.
//! Source:  the NASA study of 1995, where an interface to the adapter past the protocols gave no gain over UDP, by its
//!          context switches: `nasa.api.no_gain`, `nasa.api.cause`.
//! Checked: `the_part_that_makes_the_difference_is_named`, `small_differences_are_none`, `one_path_alone_says_nothing`.

use super::{Finding, Severity};
use crate::anatomy::{AnatomyRow, PARTS, anatomies};
use crate::format::{bytes, share, time};
use crate::index::Index;

/// A smaller difference, as a part of the longer time, is none.
const SAME: f64 = 0.1;

/// `past-ip`, for each pair of cells.
pub(super) fn past_ip(index: &Index<'_>) -> Vec<Finding> {
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
    let gain = less(udp.one_way_ns, packet.one_way_ns);
    let longer = udp.one_way_ns.max(packet.one_way_ns).max(1) as f64;
    let of = format!(
        "messages of {}{}{}",
        bytes(packet.size_bytes),
        packet
            .wait
            .as_ref()
            .map_or(String::new(), |wait| format!(" ({wait})")),
        packet
            .load
            .as_ref()
            .map_or(String::new(), |load| format!(" at a load of {load}")),
    );
    let mut parts: Vec<(f64, &str)> = PARTS
        .iter()
        .zip(udp.parts().iter().zip(packet.parts()))
        .filter_map(|((_, name), (udp, packet))| Some((less((*udp)?, packet?), *name)))
        .collect();
    parts.sort_by(|one, other| other.0.abs().total_cmp(&one.0.abs()));
    let word = |(gain, name): &(f64, &str)| {
        let way = if *gain >= 0.0 { "less" } else { "more" };
        format!("{name} {} {way}", time(gain.abs()))
    };
    let (sentence, remedy) = if gain.abs() < SAME * longer {
        (
            format!(
                "On {} passing by TCP/IP changes little for {of}: {} by {}, {} by UDP.",
                packet.network,
                time(packet.one_way_ns as f64),
                packet.by_method(),
                time(udp.one_way_ns as f64)
            ),
            "use udp: it needs no privilege",
        )
    } else {
        let (verb, remedy) = match gain > 0.0 {
            true => (
                "saves",
                "a program that may open packet sockets can have this",
            ),
            false => ("costs", "use udp"),
        };
        let way = packet
            .method
            .as_deref()
            .filter(|method| *method != "plain")
            .map_or(String::new(), |method| format!(" ({method})"));
        let most = parts.first().map_or(String::new(), |part| {
            format!(", most of it in: {}", word(part))
        });
        (
            format!(
                "On {} passing by TCP/IP{way} {verb} {} ({}) of the one-way time of {of}{most}.",
                packet.network,
                time(gain.abs()),
                share(gain.abs() / longer)
            ),
            remedy,
        )
    };
    let mut arithmetic = format!(
        "udp {} - {} {}",
        time(udp.one_way_ns as f64),
        packet.by_method(),
        time(packet.one_way_ns as f64)
    );
    for part in &parts {
        arithmetic += &format!("; {}", word(part));
    }
    Finding::new("past-ip", Severity::Note, sentence)
        .on_network(&packet.network)
        .since(arithmetic)
        .remedy(remedy)
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
        past_ip(&Index::new(&run))
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
        assert!(past_ip(&Index::new(&run)).is_empty());
    }
}
