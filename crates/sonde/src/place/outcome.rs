//! What `sonde place` says: a table for people, a document for programs.
//!
//! Units:   seconds, bytes; ratios without a unit.

use crate::output;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_place::{Circuits, Cluster, Cost, Matrix, Mode, Placement, Traffic};
use sonde_report::{sheet, wrapped};
use std::fmt::Write;

/// What is told of placements.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Placements {
    /// How many ranks.
    pub ranks: usize,
    /// Where the random draws began.
    pub seed: u64,
    /// The hosts, with their slots.
    pub hosts: Vec<HostRow>,
    /// The placements: `mapped` first, then `block`, `round-robin` and `random`.
    pub placements: Vec<PlacementRow>,
    /// What the virtual topology needs, `direct` and `forwarded`; empty where none was asked for.
    pub circuits: Vec<CircuitsRow>,
}

/// A host.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PlaceHost")]
pub struct HostRow {
    /// Its name.
    pub name: String,
    /// Its site.
    pub site: String,
    /// How many ranks it takes at most.
    pub slots: usize,
}

/// The columns of `--csv`.
pub const CSV_COLUMNS: [&str; 11] = [
    "name",
    "hosts",
    "cost_s",
    "rank_s",
    "line_s",
    "line",
    "within_bytes",
    "site_bytes",
    "far_bytes",
    "cost_ratio",
    "measured",
];

/// A placement, what it should cost, and what it was measured to.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlacementRow {
    /// `mapped`, `block`, `round-robin` or `random`; of the last it is the draw whose cost is the median.
    pub name: String,
    /// The host of each rank, in order.
    pub hosts: Vec<String>,
    /// What is minimised: the sum of the next two.
    pub cost_s: f64,
    /// What a rank's messages take one after the other, on average.
    pub rank_s: f64,
    /// What the most loaded line takes.
    pub line_s: f64,
    /// That line.
    pub line: Option<String>,
    /// Bytes that stay within a host.
    pub within_bytes: u64,
    /// Bytes between hosts of one site.
    pub site_bytes: u64,
    /// Bytes between sites.
    pub far_bytes: u64,
    /// How many times the cost of `mapped` this is; null where that costs nothing.
    pub cost_ratio: Option<f64>,
    /// What was measured; null without `--verify`.
    pub measured: Option<Measured>,
}

/// Launches of a placement.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "PlaceMeasured")]
pub struct Measured {
    /// The time of each launch, in the order they were made.
    pub times_ns: Vec<u64>,
    /// Their median.
    pub p50_ns: u64,
    /// How many times the median of `mapped`, or of `direct`, that is; null for itself.
    pub ratio: Option<f64>,
    /// Lower end of its interval at 95 %; null below six launches.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// Whether launches and those others differ by more than chance; null below six launches.
    pub apart: Option<bool>,
}

/// One of the modes of a virtual topology.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CircuitsRow {
    /// `direct` or `forwarded`.
    pub mode: String,
    /// Virtual circuits in all.
    pub circuits: usize,
    /// The most that end at one host.
    pub circuits_host_max: usize,
    /// Circuits on the way of a message between hosts, on average.
    pub hops_mean: f64,
    /// The longest way.
    pub hops_max: usize,
    /// What all circuits carry.
    pub carried_bytes: u64,
    /// What the busiest carries.
    pub busiest_bytes: u64,
    /// What it costs.
    pub cost_s: f64,
    /// What a replay took, beside `direct`; null without `--verify`, and where a program was tried.
    pub measured: Option<Measured>,
}

impl PlacementRow {
    /// The row of a placement.
    pub fn new(
        name: &str,
        matrix: &Matrix,
        cluster: &Cluster,
        placement: &Placement,
        cost: &Cost,
    ) -> Self {
        let traffic = Traffic::of(matrix, cluster, placement);
        let names = placement
            .hosts()
            .iter()
            .map(|host| cluster.hosts[*host].name.clone());
        Self {
            name: name.into(),
            hosts: names.collect(),
            cost_s: cost.total_s(),
            rank_s: cost.rank_s,
            line_s: cost.line_s,
            line: cost.line.map(|line| cluster.lines[line].name.clone()),
            within_bytes: traffic.within_bytes,
            site_bytes: traffic.site_bytes,
            far_bytes: traffic.far_bytes,
            cost_ratio: None,
            measured: None,
        }
    }
}

impl From<&Circuits> for CircuitsRow {
    fn from(of: &Circuits) -> Self {
        Self {
            mode: match of.mode {
                Mode::Direct => "direct".into(),
                Mode::Forwarded => "forwarded".into(),
            },
            circuits: of.circuits,
            circuits_host_max: of.circuits_host_max,
            hops_mean: of.hops_mean,
            hops_max: of.hops_max,
            carried_bytes: of.carried_bytes,
            busiest_bytes: of.busiest_bytes,
            cost_s: of.cost.total_s(),
            measured: None,
        }
    }
}

/// Seconds with three digits that count.
fn time(seconds: f64) -> String {
    sonde_report::time(seconds * 1e9)
}

/// Bytes by thousands, with three digits that count.
fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    let (unit, scale) = match bytes {
        _ if bytes < 1e3 => return format!("{bytes} B"),
        _ if bytes < 1e6 => ("kB", 1e3),
        _ if bytes < 1e9 => ("MB", 1e6),
        _ => ("GB", 1e9),
    };
    format!("{} {unit}", sonde_report::significant(bytes / scale, 3))
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}x"))
}

impl Placements {
    /// The placements for people.
    pub fn text(&self) -> String {
        let mut text = self.placements_text();
        if let Some(mapped) = self.placements.first() {
            let line = format!("mapped: {}", runs(&mapped.hosts));
            writeln!(text, "{}", wrapped(&line, output::width(), "")).expect("a string takes all");
        }
        if !self.circuits.is_empty() {
            write!(text, "\n{}", self.circuits_text()).expect("a string takes all");
        }
        text
    }

    fn placements_text(&self) -> String {
        let is_measured = self.placements.iter().any(|row| row.measured.is_some());
        let mut heads = vec![
            "placement",
            "cost",
            "to mapped",
            "a rank",
            "busiest line",
            "",
            "between hosts",
            "between sites",
        ];
        if is_measured {
            heads.extend(["measured", "to mapped", "95 %", "apart"]);
        }
        let rows = self.placements.iter().map(|row| {
            let mut cells = vec![
                row.name.clone(),
                time(row.cost_s),
                times(row.cost_ratio),
                time(row.rank_s),
                time(row.line_s),
                row.line.clone().unwrap_or_else(|| "-".into()),
                size(row.site_bytes + row.far_bytes),
                size(row.far_bytes),
            ];
            cells.extend(row.measured.iter().flat_map(Measured::cells));
            cells
        });
        sheet(&heads, rows).text(output::width()) + "\n"
    }

    fn circuits_text(&self) -> String {
        let mut heads = vec![
            "circuits",
            "number",
            "most at a host",
            "hops",
            "at most",
            "carried",
            "busiest",
            "cost",
        ];
        if self.circuits.iter().any(|row| row.measured.is_some()) {
            heads.extend(["measured", "to direct", "95 %", "apart"]);
        }
        let rows = self.circuits.iter().map(|row| {
            let mut cells = vec![
                row.mode.clone(),
                row.circuits.to_string(),
                row.circuits_host_max.to_string(),
                format!("{:.2}", row.hops_mean),
                row.hops_max.to_string(),
                size(row.carried_bytes),
                size(row.busiest_bytes),
                time(row.cost_s),
            ];
            cells.extend(row.measured.iter().flat_map(Measured::cells));
            cells
        });
        sheet(&heads, rows).text(output::width()) + "\n"
    }
}

impl Measured {
    /// Its cells in a table: median, ratio, interval, whether it is apart.
    fn cells(&self) -> [String; 4] {
        let ends = self.ratio_low.zip(self.ratio_high);
        let word = |apart| if apart { "yes" } else { "no" };
        [
            time(self.p50_ns as f64 * 1e-9),
            times(self.ratio),
            ends.map_or_else(
                || "-".into(),
                |(low, high)| format!("{low:.2} to {high:.2}"),
            ),
            self.apart.map_or("-", word).into(),
        ]
    }
}

/// Ranks by host: `h1 0-3,7; h2 4-6`.
fn runs(hosts: &[String]) -> String {
    let mut order: Vec<&String> = Vec::new();
    for host in hosts {
        if !order.contains(&host) {
            order.push(host);
        }
    }
    let of = |host: &String| {
        let mine: Vec<usize> = (0..hosts.len())
            .filter(|rank| hosts[*rank] == *host)
            .collect();
        let parts = mine.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        });
        format!("{host} {}", parts.collect::<Vec<_>>().join(","))
    };
    order.into_iter().map(of).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_shown_by_host() {
        let hosts = ["b", "b", "a", "b", "a", "a"].map(String::from);
        assert_eq!(runs(&hosts), "b 0-1,3; a 2,4-5");
    }
}
