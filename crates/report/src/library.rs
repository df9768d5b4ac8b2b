//! What a library costs over the transport beneath it: the ladder's rung between the kernel and the program.
//!
//! Model:   a library's latency cell is set beside the transport's cell that differs in nothing but path and layer: the same
//!          network, hosts, profile, load, size and wait. A library that polls is never held against a transport that
//!          sleeps. The cost of a size is the difference of the medians of the launches' medians, with its bootstrap
//!          interval. For each message: that of the smallest size. For each byte: the slope between the smallest and the
//!          largest size, worked out launch by launch, the library's less the transport's. A negative cost is shown as it
//!          is: the library then is the faster way, for example by memory where the transport goes through the kernel.
//! Source:  `sonde_stats::difference`; Efron & Tibshirani §13.3 for the interval.
//! Units:   nanoseconds of half a round trip; picoseconds a byte.
//! Checked: `a_cost_is_a_difference_at_equal_wait`, `what_may_be_none_is_told_so`, `costs_may_be_negative`, `other_cells_are_no_siblings`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{CellRecord, Factors, KnobValues, Layer, Line, Phase, Quantity, Repetition};
use sonde_stats::Difference;

use crate::finding::{Finding, Severity};
use crate::format::significant;
use crate::index::{Index, grouped};

/// Of the resampling behind an interval: the same run gives the same text.
pub(crate) const SEED: u64 = 1;

/// A difference with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The library's median less the transport's.
    pub value: i64,
    /// Lower end of the interval at 95 %; null below six launches of either.
    pub ci95_low: Option<i64>,
    /// Upper end of the interval at 95 %; null below six launches of either.
    pub ci95_high: Option<i64>,
}

/// The cost of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeCost {
    /// User bytes in a message.
    pub size_bytes: u64,
    /// What the network's model takes for it over the transport; null where there is no model.
    #[serde(default)]
    pub wire_ns: Option<u64>,
    /// Half a round trip of the transport.
    pub transport_ns: u64,
    /// Half a round trip of the library.
    pub library_ns: u64,
    /// The difference, in nanoseconds.
    pub cost_ns: Cost,
}

/// What a library costs on one network, by one way of waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LibraryRow {
    /// The network.
    pub network: String,
    /// The library's path.
    pub path: String,
    /// The transport's that it is held against.
    pub beneath: String,
    /// `block` or `poll`, of both.
    pub wait: Option<String>,
    /// Traffic of others, of both; null when idle.
    pub load: Option<String>,
    /// For each message: at the smallest size; nanoseconds.
    pub per_message_ns: Cost,
    /// For each byte between the smallest and the largest size; picoseconds; null where one size was measured.
    pub per_byte_ps: Option<Cost>,
    /// Each size, ascending.
    pub sizes: Vec<SizeCost>,
}

impl LibraryRow {
    /// The transport's line that it is held against, without method and knobs, which a row does not say.
    pub(crate) fn transport(&self) -> Line {
        Line {
            network: self.network.clone(),
            path: self.beneath.clone(),
            method: None,
            wait: self.wait.clone(),
            load: self.load.clone(),
            knobs: KnobValues::new(),
        }
    }
}

/// The transport that a library's path is held against: what carries its bytes, as far as it is one that is measured.
pub(crate) fn beneath(path: &str) -> &'static str {
    match path.split_once(':').map_or("", |(_, transport)| transport) {
        "unix" => "unix",
        "udp" => "udp",
        "shm" | "sm" | "posix" | "sysv" | "cma" => "shm",
        _ => "tcp",
    }
}

/// All libraries that were measured beside their transport, in the order of the cells.
pub(crate) fn libraries(index: &Index<'_>) -> Vec<LibraryRow> {
    let cells = index.run.cells.iter();
    let pairs = cells.filter_map(|cell| Pair::of(index, cell));
    let groups = grouped(pairs, |pair| pair.line.clone()).into_iter();
    groups
        .filter_map(|(line, pairs)| row(index, line, pairs))
        .collect()
}

/// The launches of one size, by number: the library's and the transport's medians.
struct Pair {
    /// The library's.
    line: Line,
    size_bytes: u64,
    library: BTreeMap<u64, u64>,
    transport: BTreeMap<u64, u64>,
}

impl Pair {
    fn of(index: &Index<'_>, cell: &CellRecord) -> Option<Self> {
        let factors = &cell.factors;
        if factors.layer != Layer::Library || factors.probe != "latency" {
            return None;
        }
        let sibling = Factors {
            layer: Layer::Transport,
            path: beneath(&factors.path).into(),
            ..factors.clone()
        };
        let transport = index.run.cells.iter().find(|one| one.factors == sibling)?;
        let (library, transport) = (medians(index, cell), medians(index, transport));
        (!library.is_empty() && !transport.is_empty()).then(|| Self {
            line: factors.line(),
            size_bytes: factors.size_bytes,
            library,
            transport,
        })
    }
}

/// The median of each launch of a cell, by its number: warm latency.
pub(crate) fn medians(index: &Index<'_>, cell: &CellRecord) -> BTreeMap<u64, u64> {
    let median = |one: Repetition<'_>| {
        let series = one.result.samples(Quantity::LatencyNs, Phase::Warm)?;
        Some((one.result.index, series.median()?))
    };
    index.repetitions(&cell.id).filter_map(median).collect()
}

/// What the model takes for a message over a transport, on an idle network.
pub(crate) fn wire_ns(index: &Index<'_>, line: &Line, size_bytes: u64) -> Option<u64> {
    let network = index.network(&line.network).filter(|_| line.is_idle())?;
    let mut ceilings = network.ceilings.iter();
    let of = ceilings.find(|ceiling| {
        ceiling.path == beneath(&line.path)
            && ceiling.quantity == Quantity::LatencyNs
            && ceiling.phase == Phase::Warm
            && ceiling.size_bytes == Some(size_bytes)
    })?;
    Some(of.value)
}

fn row(index: &Index<'_>, line: Line, mut pairs: Vec<Pair>) -> Option<LibraryRow> {
    pairs.sort_by_key(|pair| pair.size_bytes);
    let (first, last) = (pairs.first()?, pairs.last()?);
    let all = |launches: &BTreeMap<u64, u64>| launches.values().copied().collect::<Vec<_>>();
    let per_byte_ps = (last.size_bytes > first.size_bytes)
        .then(|| {
            let apart = last.size_bytes - first.size_bytes;
            let slopes = |of: fn(&Pair) -> &BTreeMap<u64, u64>| -> Vec<u64> {
                let of_launch = |(index, large): (&u64, &u64)| {
                    let small = of(first).get(index)?;
                    Some(large.saturating_sub(*small) * 1_000 / apart)
                };
                of(last).iter().filter_map(of_launch).collect()
            };
            cost(
                &slopes(|pair| &pair.library),
                &slopes(|pair| &pair.transport),
            )
        })
        .flatten();
    let sizes = pairs.iter().filter_map(|pair| {
        let (library, transport) = (all(&pair.library), all(&pair.transport));
        Some(SizeCost {
            size_bytes: pair.size_bytes,
            wire_ns: wire_ns(index, &line, pair.size_bytes),
            transport_ns: middle(&transport)?,
            library_ns: middle(&library)?,
            cost_ns: cost(&library, &transport)?,
        })
    });
    let sizes: Vec<SizeCost> = sizes.collect();
    Some(LibraryRow {
        network: line.network,
        beneath: beneath(&line.path).into(),
        path: line.path,
        wait: line.wait,
        load: line.load,
        per_message_ns: sizes.first()?.cost_ns,
        per_byte_ps,
        sizes,
    })
}

fn cost(library: &[u64], transport: &[u64]) -> Option<Cost> {
    let known = sonde_stats::difference(library, transport, SEED);
    let value = match known {
        Some(Difference { value, .. }) => value,
        None => i64::try_from(middle(library)?).ok()? - i64::try_from(middle(transport)?).ok()?,
    };
    Some(Cost {
        value,
        ci95_low: known.map(|known| known.low),
        ci95_high: known.map(|known| known.high),
    })
}

/// The middle one, or halfway between the two in the middle.
pub(crate) fn middle(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let half = sorted.len() / 2;
    let high = *sorted.get(half)?;
    if sorted.len() % 2 == 1 {
        return Some(high);
    }
    Some(sorted[half - 1].midpoint(high))
}

impl Cost {
    /// Whether the interval leaves out zero.
    pub(crate) fn is_apart(&self) -> bool {
        matches!((self.ci95_low, self.ci95_high), (Some(low), Some(high)) if low > 0 || high < 0)
    }

    /// Whether the interval holds zero: the difference is not distinguishable from none. Without an interval it is not known.
    pub(crate) fn is_none_possible(&self) -> bool {
        matches!((self.ci95_low, self.ci95_high), (Some(low), Some(high)) if low <= 0 && high >= 0)
    }

    /// The same the other way: what is saved instead of what is paid.
    pub(crate) fn turned(&self) -> Self {
        Self {
            value: -self.value,
            ci95_low: self.ci95_high.map(|high| -high),
            ci95_high: self.ci95_low.map(|low| -low),
        }
    }

    /// In thousands: `12.3 µs (95 % CI 11.8 to 13.1)`.
    pub(crate) fn told(&self, unit: &str) -> String {
        let shown = |value: i64| significant(value as f64 / 1e3, 3);
        match (self.ci95_low, self.ci95_high) {
            (Some(low), Some(high)) => {
                format!(
                    "{} {unit} (95 % CI {} to {})",
                    shown(self.value),
                    shown(low),
                    shown(high)
                )
            }
            _ => format!("{} {unit}", shown(self.value)),
        }
    }
}

/// `library-cost`: a note for each library that was measured beside its transport, idle, whose cost for a message has an
/// interval without zero.
pub(crate) fn costs(index: &Index<'_>) -> Vec<Finding> {
    let rows = libraries(index).into_iter();
    let rows = rows.filter(|row| row.load.is_none() && row.per_message_ns.is_apart());
    rows.map(|row| {
        let found = crate::words::layer_cost::Library { row: &row };
        let mut finding = Finding::said("library-cost", Severity::Note, &found);
        finding.network = Some(row.network.clone());
        finding.path = Some(row.path.clone());
        finding
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    fn runs() -> Runs {
        Runs::new().network(net("wire")).spread(0.01)
    }

    #[test]
    fn a_cost_is_a_difference_at_equal_wait() {
        let run = runs()
            .latency("wire", "tcp", 8, 20_000)
            .latency("wire", "tcp", 1_008, 30_000)
            .latency("wire", "native:tcp", 8, 23_000)
            .latency("wire", "native:tcp", 1_008, 35_000)
            .wait("poll")
            .latency("wire", "openmpi:tcp", 8, 21_000)
            .done();
        let rows = libraries(&Index::new(&run));
        assert_eq!(
            rows.len(),
            1,
            "polling has no transport beside it: {rows:?}"
        );
        let row = &rows[0];
        assert_eq!(
            (row.path.as_str(), row.beneath.as_str()),
            ("native:tcp", "tcp")
        );
        assert_eq!(row.sizes.len(), 2);
        let near = |cost: Cost, wanted: i64| (cost.value - wanted).abs() * 50 <= wanted.abs();
        assert!(near(row.per_message_ns, 3_000), "{row:?}");
        // 12 less 10 ns a byte.
        assert!(near(row.per_byte_ps.unwrap(), 2_000), "{row:?}");
        assert!(row.per_message_ns.is_apart());
        let finding = costs(&Index::new(&run)).remove(0);
        assert_eq!(finding.rule, "library-cost");
        assert!(
            finding.sentence.contains("native:tcp adds 3"),
            "{finding:?}"
        );
        assert!(finding.sentence.contains("(both blocking)"), "{finding:?}");
    }

    #[test]
    fn what_may_be_none_is_told_so() {
        let cost = |value, low, high| Cost {
            value,
            ci95_low: Some(low),
            ci95_high: Some(high),
        };
        let row = LibraryRow {
            network: "wire".into(),
            path: "native:tcp".into(),
            beneath: "tcp".into(),
            wait: Some("block".into()),
            load: None,
            per_message_ns: cost(3_000, 2_900, 3_100),
            per_byte_ps: Some(cost(-48_300, -103_000, 31_500)),
            sizes: Vec::new(),
        };
        let found = crate::words::layer_cost::Library { row: &row };
        use crate::words::Words;
        assert_eq!(
            found.sentence(),
            "native:tcp adds 3.00 µs (95 % CI 2.90 to 3.10) per message to tcp on wire (both blocking); for each byte it is not distinguishable from tcp"
        );
        let since = found.arithmetic().unwrap();
        assert!(
            since.ends_with("for each byte -48.3 ns (95 % CI -103 to 31.5)"),
            "{since}"
        );
    }

    #[test]
    fn costs_may_be_negative() {
        let run = runs()
            .latency("wire", "tcp", 8, 20_000)
            .latency("wire", "native:tcp", 8, 18_000)
            .done();
        let index = Index::new(&run);
        let row = libraries(&index).remove(0);
        assert!(row.per_message_ns.value < -1_900 && row.per_byte_ps.is_none());
        let finding = costs(&index).remove(0);
        assert!(
            finding.sentence.contains("native:tcp saves 2"),
            "{finding:?}"
        );
        assert!(!finding.sentence.contains('-'), "{finding:?}");
    }

    #[test]
    fn other_cells_are_no_siblings() {
        for run in [
            runs()
                .latency("wire", "tcp", 64, 20_000)
                .latency("wire", "native:tcp", 8, 18_000),
            runs()
                .latency("wire", "udp", 8, 20_000)
                .latency("wire", "native:tcp", 8, 18_000),
            runs()
                .latency("wire", "tcp", 8, 20_000)
                .load("0.5")
                .latency("wire", "native:tcp", 8, 18_000),
        ] {
            assert_eq!(libraries(&Index::new(&run.done())), []);
        }
        // Two launches have a cost without an interval, and no finding.
        let run = runs()
            .launches(2)
            .latency("wire", "tcp", 8, 20_000)
            .latency("wire", "native:tcp", 8, 30_000)
            .done();
        let index = Index::new(&run);
        assert_eq!(libraries(&index)[0].per_message_ns.ci95_low, None);
        assert_eq!(costs(&index), []);
    }
}
