//! How much longer messages wait on a loaded network than on an idle one, beside the virtual clock's figure.
//!
//! Model:   a cell under load is set beside the cell that differs in nothing but the load. Queueing delay = median of the
//!          loaded launches' medians less that of the idle ones; the interval is that of two medians' difference. What hosts
//!          and kernel take is in both and falls out. The model's is the difference of its own two medians, for messages of
//!          one frame.
//! Source:  `sonde_stats::difference`; [`sonde_measure::Load`] of the loaded launches.
//! Units:   nanoseconds of half a round trip.
//! Checked: `a_loaded_cell_beside_its_idle_one`, `other_cells_are_no_siblings`, `two_launches_have_a_wait_without_interval`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{CellRecord, Factors, KnobValues, Line, Phase, Quantity, SizeFacts};
use sonde_stats::Difference;

use crate::index::Index;

/// Of the resampling behind an interval: the same run gives the same text.
const SEED: u64 = 1;

/// What a load adds to the latency of one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueingRow {
    /// The loaded cell.
    pub cell: String,
    /// The network.
    pub network: String,
    /// The path.
    pub path: String,
    /// How bytes are handed over, as `zerocopy`.
    #[serde(default)]
    pub method: Option<String>,
    /// What else was set, by name.
    #[serde(default)]
    pub knobs: KnobValues,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// The load, as `0.6`.
    pub load: String,
    /// The message's size.
    pub size_bytes: u64,
    /// The median of the idle launches' medians.
    pub idle_ns: u64,
    /// The median of the loaded launches' medians.
    pub loaded_ns: u64,
    /// How much more the loaded one is.
    pub waits_ns: i64,
    /// Lower end of the interval at 95 %; null below six launches of either.
    pub ci95_low_ns: Option<i64>,
    /// Upper end of the interval at 95 %; null below six launches of either.
    pub ci95_high_ns: Option<i64>,
    /// Half a round trip on the virtual clock, idle; null for messages of several frames.
    pub model_idle_ns: Option<u64>,
    /// The same under the load.
    pub model_loaded_ns: Option<u64>,
}

impl QueueingRow {
    /// What it is of, loaded.
    pub(crate) fn line(&self) -> Line {
        Line {
            network: self.network.clone(),
            path: self.path.clone(),
            method: self.method.clone(),
            wait: self.wait.clone(),
            load: Some(self.load.clone()),
            knobs: self.knobs.clone(),
        }
    }

    /// How much longer a message waits by the virtual clock.
    pub fn model_waits_ns(&self) -> Option<i64> {
        let [loaded, idle] = [self.model_loaded_ns?, self.model_idle_ns?].map(i64::try_from);
        Some(loaded.ok()? - idle.ok()?)
    }

    /// Whether the model's figure lies in the interval; `None` where one of them is missing.
    pub fn agrees(&self) -> Option<bool> {
        let model = self.model_waits_ns()?;
        Some((self.ci95_low_ns?..=self.ci95_high_ns?).contains(&model))
    }
}

/// All latency cells under load that have an idle sibling, in the order of the cells.
pub(crate) fn queueing(index: &Index<'_>) -> Vec<QueueingRow> {
    let cells = index.run.cells.iter();
    cells.filter_map(|cell| row(index, cell)).collect()
}

fn row(index: &Index<'_>, cell: &CellRecord) -> Option<QueueingRow> {
    let line = cell.factors.line();
    let load = line.load?;
    let sibling = Factors {
        load: None,
        ..cell.factors.clone()
    };
    let idle = index.run.cells.iter().find(|one| one.factors == sibling)?;
    let (loaded, idle) = (medians(index, cell), medians(index, idle));
    let (loaded_ns, idle_ns) = (middle(&loaded)?, middle(&idle)?);
    let known = sonde_stats::difference(&loaded, &idle, SEED);
    let waits_ns = match known {
        Some(Difference { value, .. }) => value,
        None => i64::try_from(loaded_ns).ok()? - i64::try_from(idle_ns).ok()?,
    };
    let size_bytes = cell.factors.size_bytes;
    let model = |half_trip: fn(&SizeFacts) -> Option<u64>| {
        let launches = index.launches(&cell.id);
        launches
            .filter_map(|launch| half_trip(launch.evidence.sizes.get(&size_bytes)?))
            .min()
    };
    Some(QueueingRow {
        cell: cell.id.clone(),
        network: line.network,
        path: line.path,
        method: line.method,
        knobs: line.knobs,
        wait: line.wait,
        load,
        size_bytes,
        idle_ns,
        loaded_ns,
        waits_ns,
        ci95_low_ns: known.map(|known| known.low),
        ci95_high_ns: known.map(|known| known.high),
        model_idle_ns: model(|size| size.load_model_idle_ns),
        model_loaded_ns: model(|size| size.load_model_loaded_ns),
    })
}

/// The medians of a cell's launches: warm latency.
fn medians(index: &Index<'_>, cell: &CellRecord) -> Vec<u64> {
    index
        .repetitions(&cell.id)
        .filter_map(|one| {
            one.result
                .samples(Quantity::LatencyNs, Phase::Warm)?
                .median()
        })
        .collect()
}

/// The middle one, or halfway between the two in the middle.
fn middle(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let half = sorted.len() / 2;
    let high = *sorted.get(half)?;
    if sorted.len() % 2 == 1 {
        return Some(high);
    }
    Some(sorted[half - 1].midpoint(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    fn loaded(loaded_ns: u64, launches: u64) -> Vec<QueueingRow> {
        let run = Runs::new()
            .network(net("atm-oc3c"))
            .launches(launches)
            .spread(0.01)
            .latency("atm-oc3c", "tcp", 1, 40_000)
            .setting("load.model_idle_ns", "16223")
            .setting("load.model_loaded_ns", "28123")
            .load("0.9")
            .latency("atm-oc3c", "tcp", 1, loaded_ns)
            .done();
        queueing(&Index::new(&run))
    }

    #[test]
    fn a_loaded_cell_beside_its_idle_one() {
        let rows = loaded(52_100, 6);
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!((row.idle_ns, row.loaded_ns), (40_000, 52_100));
        assert_eq!((row.load.as_str(), row.waits_ns), ("0.9", 12_100));
        assert_eq!(row.model_waits_ns(), Some(11_900));
        let (low, high) = (row.ci95_low_ns.unwrap(), row.ci95_high_ns.unwrap());
        assert!(low <= 12_100 && high >= 12_100 && high > low, "{row:?}");
        assert_eq!(row.agrees(), Some(true));
        assert_eq!(loaded(62_100, 6)[0].agrees(), Some(false));
    }

    #[test]
    fn two_launches_have_a_wait_without_interval() {
        let row = &loaded(52_100, 2)[0];
        assert_eq!((row.ci95_low_ns, row.agrees()), (None, None));
        // The last launch of each cell is 1 % above the other.
        assert_eq!(row.waits_ns, 52_360 - 40_200);
    }

    #[test]
    fn other_cells_are_no_siblings() {
        let run = Runs::new()
            .network(net("lan"))
            .latency("lan", "tcp", 8, 40_000)
            .latency("lan", "udp", 1, 40_000)
            .stream("lan", "tcp", 90_000_000)
            .load("0.9")
            .latency("lan", "tcp", 1, 50_000)
            .stream("lan", "tcp", 9_000_000)
            .done();
        assert_eq!(queueing(&Index::new(&run)), []);
    }
}
