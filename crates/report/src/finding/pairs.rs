//! Pairs of hosts that differ from the others, and the host that they share.
//!
//! Model:   of each cell of an idle network that several pairs measured, a pair's slowness is its launches' median over that of the lower
//!          quartile of the pairs (of rates, the inverse). A pair's slowness on a network is the median over all its cells.
//!          `host-apart`: every pair with one host is at least 25 % slow, and every pair without it at most 10 %; there
//!          are at least two of the former and one of the latter. `pair-apart`: else, a pair that is at least 25 % slow while the median pair is
//!          at most 10 %. Cells are needed: three at least, of each pair.
//! Source:  NVIDIA/nccl#325: if 1–3 and 2–4 are good and 1–2 is bad, suspect the way between, not the host. Thresholds:
//!          pairs of like hosts agree within an interval of 5 % to either side.
//! Checked: `a_slow_host_is_named`, `a_slow_pair_is_named`, `like_pairs_are_not_said`.

use std::collections::{BTreeMap, BTreeSet};

use sonde_measure::{Quantity, Repetition, ResultRow, Status};

use super::{Finding, Severity};
use crate::index::{Index, is_main, median};
use crate::words::pairs as words;

const SLOW: f64 = 1.25;
const LIKE: f64 = 1.1;
const CELLS_MIN: usize = 3;

type Pair<'a> = (&'a str, &'a str);

/// `host-apart` and `pair-apart`, for all networks.
pub(super) fn apart(index: &Index<'_>) -> Vec<Finding> {
    let networks: BTreeSet<&str> = index.rows.iter().map(|row| row.network.as_str()).collect();
    networks
        .into_iter()
        .flat_map(|network| {
            let pairs = slowness(index, network);
            slow_host(network, &pairs)
                .map_or_else(|| slow_pairs(network, &pairs), |host| vec![host])
        })
        .collect()
}

/// How slow each pair is on a network; 1 is like a quick one.
fn slowness<'a>(index: &Index<'a>, network: &str) -> BTreeMap<Pair<'a>, f64> {
    let mut cells: BTreeMap<Pair<'a>, Vec<f64>> = BTreeMap::new();
    let of_network = |row: &&ResultRow| {
        row.network == network
            && row.load.is_none()
            && row.status == Status::Measured
            && is_main(row)
    };
    for row in index.rows.iter().filter(of_network) {
        for (pair, slow) in slowness_in(index, row) {
            cells.entry(pair).or_default().push(slow);
        }
    }
    cells
        .into_iter()
        .filter(|(_, slow)| slow.len() >= CELLS_MIN)
        .filter_map(|(pair, slow)| Some((pair, median(slow)?)))
        .collect()
}

fn slowness_in<'a>(index: &Index<'a>, row: &ResultRow) -> Vec<(Pair<'a>, f64)> {
    let mut pairs: BTreeMap<Pair<'a>, Vec<f64>> = BTreeMap::new();
    for Repetition { launch, result } in index.repetitions(&row.cell) {
        let measured = result.series.iter().find(|one| {
            one.quantity == row.quantity && Some(one.phase) == row.phase && one.step == row.step
        });
        let Some(middle) = measured
            .and_then(|one| one.series.median())
            .filter(|m| *m > 0)
        else {
            continue;
        };
        let cost = if row.quantity == Quantity::ThroughputBps {
            1.0 / middle as f64
        } else {
            middle as f64
        };
        pairs
            .entry((&launch.src, &launch.dst))
            .or_default()
            .push(cost);
    }
    let pairs: Vec<(Pair<'a>, f64)> = pairs
        .into_iter()
        .filter_map(|(pair, costs)| Some((pair, median(costs)?)))
        .collect();
    let mut sorted: Vec<f64> = pairs.iter().map(|(_, cost)| *cost).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(quick) = sorted.get(sorted.len() / 4).filter(|_| pairs.len() > 1) else {
        return Vec::new();
    };
    pairs
        .into_iter()
        .map(|(pair, cost)| (pair, cost / quick))
        .collect()
}

fn slow_host(network: &str, pairs: &BTreeMap<Pair<'_>, f64>) -> Option<Finding> {
    let hosts: BTreeSet<&str> = pairs.keys().flat_map(|(src, dst)| [*src, *dst]).collect();
    hosts.into_iter().find_map(|host| {
        let (with, without): (Vec<_>, Vec<_>) = pairs
            .iter()
            .partition(|((src, dst), _)| *src == host || *dst == host);
        let stands_apart = with.len() >= 2
            && !without.is_empty()
            && with.iter().all(|(_, slow)| **slow >= SLOW)
            && without.iter().all(|(_, slow)| **slow <= LIKE);
        if !stands_apart {
            return None;
        }
        let all = listed(pairs);
        let found = words::Host {
            network,
            host,
            own: with.len(),
            usual: median(with.iter().map(|(_, slow)| **slow).collect())?,
            pairs: &all,
        };
        Some(Finding::said("host-apart", Severity::Warning, &found).on_network(network))
    })
}

fn slow_pairs(network: &str, pairs: &BTreeMap<Pair<'_>, f64>) -> Vec<Finding> {
    let like = median(pairs.values().copied().collect()).is_some_and(|middle| middle <= LIKE);
    let all = listed(pairs);
    let slow = all.iter();
    let slow = slow.filter(|pair| like && pairs.len() > 2 && pair.slow >= SLOW);
    slow.map(|pair| {
        let found = words::OddPair {
            network,
            pair,
            pairs: &all,
        };
        Finding::said("pair-apart", Severity::Warning, &found).on_network(network)
    })
    .collect()
}

fn listed(pairs: &BTreeMap<Pair<'_>, f64>) -> Vec<words::Pair> {
    let of = |((src, dst), slow): (&Pair<'_>, &f64)| words::Pair {
        src: (*src).into(),
        dst: (*dst).into(),
        slow: *slow,
    };
    pairs.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    /// Four hosts, twelve pairs, four cells; `slow` says how much slower a pair is, in per cent.
    fn found(slow: fn(&str, &str) -> u64) -> Vec<Finding> {
        let hosts = ["h1", "h2", "h3", "h4"];
        let pairs: Vec<(&str, &str)> = hosts
            .iter()
            .flat_map(|src| hosts.iter().map(move |dst| (*src, *dst)))
            .filter(|(src, dst)| src != dst)
            .collect();
        let mut runs = Runs::new().network(net("lan"));
        for (at, size) in [1, 64, 512, 4_096].into_iter().enumerate() {
            runs = runs.latency_between("lan", "tcp", size, &pairs, |src, dst| {
                (10_000 + 100 * at as u64) * (100 + slow(src, dst)) / 100
            });
        }
        let run = runs.done();
        apart(&Index::new(&run))
    }

    #[test]
    fn a_slow_host_is_named() {
        let all = found(|src, dst| if src == "h3" || dst == "h3" { 60 } else { 2 });
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].rule, "host-apart");
        assert_eq!(
            all[0].sentence,
            "h3 is an outlier on lan: its 6 pairs are 56.9 % slower than those of the other hosts."
        );
        assert!(all[0].arithmetic.as_ref().unwrap().contains("h1-h3 x1.57"));
    }

    #[test]
    fn a_slow_pair_is_named() {
        let all = found(|src, dst| if (src, dst) == ("h1", "h2") { 50 } else { 0 });
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(
            all[0].sentence,
            "From h1 to h2 lan is 50.0 % slower than between other hosts, while these two are not slow with others."
        );
    }

    #[test]
    fn like_pairs_are_not_said() {
        assert_eq!(found(|src, _| if src == "h1" { 8 } else { 0 }), []);
        assert_eq!(found(|_, _| 0), []);
    }
}
