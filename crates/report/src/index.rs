//! A run as rules look at it: its rows by what they are of, and the launches behind a cell.
//!
//! Model:   rows are looked up by [`Line`] and [`Kind`]; rows of kernels and of programs' messages give no line. Lines come
//!          in the order of the rows. Rules about ceilings, cold starts, windows and the like
//!          look at idle lines only; ceilings are of an idle network. A round trip that was not measured on a line is that of
//!          the line nearest to it.
//! Checked: `loads_are_lines_of_their_own`, `methods_and_knobs_are_lines_of_their_own`, `flows_are_of_one_line`,
//!          `kernels_are_of_no_line`; the tests of the rules that use it.

use std::collections::BTreeMap;

use sonde_measure::{
    CellRecord, Interference, LaunchRecord, Line, LineField, NetworkRecord, Phase, Quantity,
    Repetition, ResultRow, Run, Socket, Status, Step,
};

/// What a row is of, beside its line and size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub probe: &'static str,
    pub mode: Option<&'static str>,
    pub quantity: Quantity,
    pub phase: Phase,
    pub step: Option<Step>,
}

/// The whole of a cold start.
pub(crate) const START: Kind = Kind {
    probe: "startup",
    mode: None,
    quantity: Quantity::StartupNs,
    phase: Phase::Cold,
    step: None,
};
/// Half a round trip, warm.
pub(crate) const LATENCY: Kind = Kind {
    probe: "latency",
    mode: None,
    quantity: Quantity::LatencyNs,
    phase: Phase::Warm,
    step: None,
};
/// The rate of a stream.
pub(crate) const STREAM: Kind = Kind {
    probe: "throughput",
    mode: Some("stream"),
    quantity: Quantity::ThroughputBps,
    phase: Phase::Warm,
    step: None,
};
/// The rate of single messages.
pub(crate) const MESSAGE: Kind = Kind {
    mode: Some("message"),
    ..STREAM
};

/// One step of a cold start.
pub(crate) const fn step(step: Step) -> Kind {
    Kind {
        step: Some(step),
        ..START
    }
}

/// The probe of flows at once.
pub(crate) const PATTERN: &str = "pattern";

/// The probe of kernels.
pub(crate) const KERNEL: &str = "npb";

/// The probe of messages without what a program computes.
pub(crate) const MESSAGES: &str = "messages";

/// The probe that checks libraries.
pub(crate) const CHECK: &str = "check";

/// The probe of files.
pub(crate) const FILES: &str = "files";

/// The probe of programs under placements.
pub(crate) const PLACE: &str = "place";

/// Probes with tables of their own: theirs are no lines of a transport.
const OWN_TABLES: [&str; 6] = [KERNEL, MESSAGES, CHECK, PLACE, PATTERN, FILES];

/// Whether all cells of a run stand in tables of their own.
pub fn has_own_tables(run: &Run) -> bool {
    let mut probes = run.cells.iter().map(|cell| cell.factors.probe.as_str());
    !run.cells.is_empty() && probes.all(|probe| OWN_TABLES.contains(&probe))
}

/// A run, looked up.
pub(crate) struct Index<'a> {
    pub run: &'a Run,
    pub rows: Vec<ResultRow>,
    lines: Vec<Line>,
    cells: BTreeMap<&'a str, (&'a CellRecord, Line)>,
    repetitions: BTreeMap<&'a str, Vec<Repetition<'a>>>,
}

impl Index<'_> {
    /// The figures: what was measured of what the probes are for.
    pub fn figures(&self) -> impl Iterator<Item = &ResultRow> {
        let measured = self.rows.iter();
        measured.filter(|row| row.status == Status::Measured && is_main(row))
    }
}

impl<'a> Index<'a> {
    pub fn new(run: &'a Run) -> Self {
        // Repeated to see drift, and no result of its own.
        let mut rows = run.rows();
        rows.retain(|row| !row.knobs.contains_key("reference"));
        let cells = run.cells.iter();
        let cells: BTreeMap<&str, (&CellRecord, Line)> = cells
            .map(|cell| (cell.id.as_str(), (cell, cell.factors.line())))
            .collect();
        let mut lines: Vec<Line> = Vec::new();
        let is_of_line = |row: &&ResultRow| !OWN_TABLES.contains(&row.probe.as_str());
        for row in rows.iter().filter(is_of_line) {
            let (_, line) = &cells[row.cell.as_str()];
            if !lines.contains(line) {
                lines.push(line.clone());
            }
        }
        let mut repetitions: BTreeMap<&str, Vec<Repetition<'_>>> = BTreeMap::new();
        for one in run.repetitions().filter(Repetition::succeeded) {
            repetitions.entry(&one.result.cell).or_default().push(one);
        }
        Self {
            run,
            rows,
            lines,
            cells,
            repetitions,
        }
    }

    /// The lines of idle networks.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.is_idle())
    }

    /// All lines, those under load too.
    pub fn every_line(&self) -> &[Line] {
        &self.lines
    }

    /// Every load of the run in the order of the rows; `None` for idle.
    pub fn loads(&self) -> Vec<Option<&str>> {
        let mut all = Vec::new();
        for row in &self.rows {
            let load = row.load.as_deref();
            if !all.contains(&load) {
                all.push(load);
            }
        }
        all
    }

    pub fn cell(&self, id: &str) -> Option<&'a CellRecord> {
        self.cells.get(id).map(|(cell, _)| *cell)
    }

    /// The line that a row of this run is of.
    ///
    /// # Panics
    /// Where no cell of the run has the row.
    pub fn line(&self, row: &ResultRow) -> &Line {
        &self.cells[row.cell.as_str()].1
    }

    /// The repetitions of a cell that gave something.
    pub fn repetitions(&self, cell: &str) -> impl Iterator<Item = Repetition<'a>> + '_ {
        self.repetitions.get(cell).into_iter().flatten().copied()
    }

    /// Their launches.
    pub fn launches(&self, cell: &str) -> impl Iterator<Item = &'a LaunchRecord> + '_ {
        self.repetitions(cell).map(|one| one.launch)
    }

    /// The launches of the run that gave something, each with the first cell of which it did.
    pub fn starts(&self) -> impl Iterator<Item = (&'a LaunchRecord, &'a CellRecord)> + '_ {
        self.run.counted().filter_map(|launch| {
            let first = launch.repetitions().find(Repetition::succeeded)?;
            Some((launch, self.cell(&first.result.cell)?))
        })
    }

    pub fn network(&self, name: &str) -> Option<&'a NetworkRecord> {
        self.run
            .networks
            .iter()
            .find(|network| network.row.name == name)
    }

    /// The measured rows of a kind on a line, by ascending size.
    pub fn of<'i>(&'i self, line: &Line, kind: Kind) -> Vec<&'i ResultRow> {
        let mut rows: Vec<&ResultRow> = self
            .rows
            .iter()
            .filter(|row| {
                row.status == Status::Measured
                    && row.p50.is_some()
                    && row.probe == kind.probe
                    && row.mode.as_deref() == kind.mode
                    && row.quantity == kind.quantity
                    && row.phase == Some(kind.phase)
                    && row.step == kind.step
                    && self.line(row) == line
            })
            .collect();
        rows.sort_by_key(|row| row.size_bytes);
        rows
    }

    /// The fastest stream of a line.
    pub fn stream(&self, line: &Line) -> Option<&ResultRow> {
        self.of(line, STREAM)
            .into_iter()
            .max_by(|one, other| p50(one).total_cmp(&p50(other)))
    }

    /// The median of another quantity of the same cell.
    pub fn beside(&self, row: &ResultRow, quantity: Quantity) -> Option<f64> {
        self.row_beside(row, quantity)?.p50.map(|number| number.0)
    }

    /// The share of frames that the network lost in a cell of a program, at the median launch.
    pub fn lost(&self, cell: &str) -> Option<f64> {
        let of = self.rows.iter().find(|row| {
            row.cell == cell
                && row.quantity == Quantity::NetworkLostShare
                && row.status == Status::Measured
        })?;
        of.p50.map(|share| share.0)
    }

    /// The row of another quantity of the same cell, warm and whole.
    pub fn row_beside(&self, row: &ResultRow, quantity: Quantity) -> Option<&ResultRow> {
        self.rows.iter().find(|other| {
            other.cell == row.cell
                && other.quantity == quantity
                && other.phase != Some(Phase::Cold)
                && other.step.is_none()
                && other.status == Status::Measured
        })
    }

    /// What a stream can reach by the model: the ceiling of its path on an idle network. Under load there is none.
    pub fn ceiling(&self, line: &Line) -> Option<f64> {
        let network = self.network(&line.network).filter(|_| line.is_idle())?;
        let stated = network
            .ceilings
            .iter()
            .find(|ceiling| {
                ceiling.path == line.path
                    && ceiling.quantity == Quantity::ThroughputBps
                    && ceiling.size_bytes.is_none()
            })
            .map(|ceiling| ceiling.value);
        let known = stated.or_else(|| {
            network
                .row
                .tcp_max_bps
                .filter(|_| line.path.starts_with("tcp"))
        });
        known.filter(|bps| *bps > 0).map(|bps| bps as f64)
    }

    /// The line itself, then those that differ from it in method, wait and knobs alone, the nearest first.
    fn relatives<'i>(&'i self, line: &'i Line) -> impl Iterator<Item = &'i Line> {
        let apart = [LineField::Method, LineField::Wait, LineField::Knobs];
        let lines = self.lines.iter();
        let mut all: Vec<&Line> = lines
            .filter(|other| other.is_same_but(line, &apart))
            .collect();
        all.sort_by_key(|other| {
            (
                other.knobs_apart(line),
                other.wait != line.wait,
                other.method != line.method,
            )
        });
        std::iter::once(line).chain(all)
    }

    /// A round trip of the smallest message on the line: measured, else that of its nearest relative, else the model's.
    pub fn round_trip_ns(&self, line: &Line) -> Option<f64> {
        let measured = self
            .relatives(line)
            .find_map(|one| Some(2.0 * p50(self.of(one, LATENCY).first()?)))
            .filter(|ns| *ns > 0.0);
        measured.or_else(|| {
            let model = self
                .network(&line.network)
                .filter(|_| line.is_idle())?
                .row
                .one_way_1b_ns?;
            Some(2.0 * model as f64)
        })
    }

    /// Part of one CPU that the sending and the receiving thread of a stream used.
    pub fn cpu_shares(&self, row: &ResultRow) -> [Option<f64>; 2] {
        let bytes_per_ns = p50(row) / 8e9;
        [Quantity::CpuSrcNsPerByte, Quantity::CpuDstNsPerByte].map(|quantity| {
            self.beside(row, quantity)
                .map(|ns_per_byte| ns_per_byte * bytes_per_ns)
        })
    }

    /// The two ends of every launch of a cell.
    pub fn interference(&self, cell: &str) -> impl Iterator<Item = &'a Interference> + '_ {
        self.launches(cell)
            .flat_map(|launch| launch.interference.iter())
    }

    /// Part of all its CPUs that a host used while a cell was measured: the median over launches of the busier host.
    pub fn host_busy(&self, cell: &str) -> Option<f64> {
        let busiest = self.launches(cell).filter_map(|launch| {
            launch
                .interference
                .iter()
                .filter_map(busy)
                .max_by(f64::total_cmp)
        });
        median(busiest.collect())
    }

    /// What the sockets of a cell's launches had of something, at either end; the smallest.
    pub fn least(&self, cell: &str, of: impl Fn(&Socket) -> Option<u64>) -> Option<u64> {
        let sides = self
            .launches(cell)
            .flat_map(|launch| launch.evidence.sides());
        sides.filter_map(|side| of(&side.socket)).min()
    }

    /// User bytes in a full TCP segment of a line, from what was read back, else from the profile's headers.
    pub fn segment_bytes(&self, line: &Line, cell: &str) -> Option<u64> {
        let mtu = self.network(&line.network)?.row.mtu_bytes;
        let era = self
            .cell(cell)
            .and_then(|cell| cell.factors.profile.as_deref())
            .is_some_and(|profile| profile.starts_with("era"));
        // 20 of IP, 20 of TCP, and 12 of its time stamps.
        let headers = if era { 40 } else { 52 };
        self.least(cell, |socket| socket.mss_bytes.map(u64::from))
            .or_else(|| mtu.checked_sub(headers))
            .filter(|bytes| *bytes > 0)
    }

    /// The frames of a message on a line; `None` where the MTU is not known.
    pub fn frames(&self, line: &Line, cell: &str, size: u64) -> Option<u64> {
        if line.path.starts_with("tcp") {
            return Some(size.div_ceil(self.segment_bytes(line, cell)?).max(1));
        }
        // The first fragment has 8 bytes of UDP; all but the last carry a multiple of 8 (RFC 791 §3.2).
        let last = self
            .network(&line.network)?
            .row
            .mtu_bytes
            .checked_sub(20)
            .filter(|bytes| *bytes >= 8)?;
        let most = last / 8 * 8;
        Some(1 + (size + 8).saturating_sub(last).div_ceil(most))
    }

    /// Whether an emulated network, by its description, loses or overtakes nothing between two hosts that it holds back. With
    /// faults or background traffic of the user's own it may, and a site with bridges or routers whose buffers are full: what is lost there
    /// is what was asked for.
    pub fn is_lossless(&self, line: &Line) -> bool {
        let Some(record) = self.network(&line.network) else {
            return false;
        };
        let held =
            record.backpressure == Some(sonde_measure::Backpressure::Gate) && line.load.is_none();
        let spec = record.spec.as_deref();
        held && spec.is_some_and(|text| {
            !text.lines().any(|line| {
                let (key, value) = line.split_once('=').unwrap_or((line, ""));
                let is_part = |part: &&str| key.trim().ends_with(&format!("{part}]]"));
                ["fault", "load", "bridge", "router"].iter().any(is_part)
                    || matches!(key.trim(), "loss" | "reorder")
                        && value.chars().any(|c| ('1'..='9').contains(&c))
            })
        })
    }
}

/// Items in groups that have a key in common, in the order in which the keys first come.
pub(crate) fn grouped<T, K: PartialEq>(
    items: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let own = key(&item);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, group)) => group.push(item),
            None => groups.push((own, vec![item])),
        }
    }
    groups
}

/// The median of a row; zero where it has none.
pub(crate) fn p50(row: &ResultRow) -> f64 {
    row.p50.map_or(0.0, |number| number.0)
}

/// The interval of a row.
pub(crate) fn interval(row: &ResultRow) -> Option<(f64, f64)> {
    Some((row.ci95_low?.0, row.ci95_high?.0))
}

/// A shorter watch says nothing of a host's CPUs. The kernel samples who runs each few milliseconds, and /proc/stat counts ticks of
/// 10 ms, each kind of time for itself: two readings are apart by one to three ticks too many or too few. Over 2 ms that made
/// 455 % of two full CPUs, over 50 ms 120 %, over 200 ms 105 %.
const WATCHED_NS_MIN: u64 = 200_000_000;

/// Part of all its CPUs that a host used while it was watched, at most 1; null where that was too short to tell.
pub(crate) fn busy(at: &Interference) -> Option<f64> {
    of_cpus(at, at.host_cpu_ns)
}

/// The same of other CPU time of the host, as the stolen.
pub(crate) fn of_cpus(at: &Interference, ns: Option<u64>) -> Option<f64> {
    let whole = at.span_ns.checked_mul(at.cpus).filter(|ns| *ns > 0)?;
    let share = ns? as f64 / whole as f64;
    (at.span_ns >= WATCHED_NS_MIN).then(|| share.min(1.0))
}

/// The median of what is there; the lower one of two.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// Whether a row is of what its probe is for: not a step, and not what is measured beside.
pub(crate) fn is_main(row: &ResultRow) -> bool {
    row.step.is_none()
        && matches!(
            row.quantity,
            Quantity::LatencyNs
                | Quantity::RttNs
                | Quantity::StartupNs
                | Quantity::ThroughputBps
                | Quantity::KernelNs
                | Quantity::ReplayNs
                | Quantity::ProgramNs
        )
}

/// A row in a few words: `latency of 1 B over tcp on wire`.
pub(crate) fn words(row: &ResultRow) -> String {
    let what = match (row.probe.as_str(), row.mode.as_deref()) {
        ("throughput", Some(mode)) => format!("the {mode} rate"),
        (probe, _) => probe.to_string(),
    };
    let phase = match (row.phase, row.probe.as_str()) {
        (Some(Phase::Cold), "startup") | (Some(Phase::Warm) | None, _) => "",
        (Some(Phase::Cold), _) => "cold ",
    };
    let size = row
        .size_bytes
        .map_or(String::new(), |size| format!(" of {}", crate::bytes(size)));
    let load = under(row.load.as_deref());
    let path = row.line().by();
    format!("{phase}{what}{size} over {path} on {}{load}", row.network)
}

/// What follows a network's name where it was not idle: ` under load 0.9`.
pub(crate) fn under(load: Option<&str>) -> String {
    load.map_or(String::new(), |load| format!(" under load {load}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};

    #[test]
    fn kernels_are_of_no_line() {
        let run = Runs::new()
            .network(net("lan"))
            .load("0.9")
            .kernel("lan", "pvm:direct", "cg S 2", 1_000_000)
            .done();
        let index = Index::new(&run);
        assert_eq!(index.every_line(), []);
        // What is judged by load and by row knows them.
        assert_eq!(index.loads(), [Some("0.9")]);
        assert!(index.rows.iter().all(is_main));
    }

    #[test]
    fn loads_are_lines_of_their_own() {
        let run = Runs::new()
            .network(net("lan").line(100_000_000))
            .latency("lan", "udp", 1, 10_000)
            .load("0.9")
            .latency("lan", "udp", 1, 50_000)
            .done();
        let index = Index::new(&run);
        assert_eq!(index.loads(), [None, Some("0.9")]);
        let idle = line("lan", "udp");
        assert_eq!(index.lines().collect::<Vec<_>>(), [&idle]);
        let loaded = &index.every_line()[1];
        let medians = |line| {
            let rows = index.of(line, LATENCY);
            rows.into_iter().map(p50).collect::<Vec<_>>()
        };
        assert_eq!(
            (medians(&idle), medians(loaded)),
            (vec![10_000.0], vec![50_000.0])
        );
        let tcp = |load: Option<&str>| Line {
            load: load.map(Into::into),
            ..line("lan", "tcp")
        };
        assert_eq!(index.ceiling(&tcp(None)), Some(94_148_000.0));
        assert_eq!(index.ceiling(&tcp(Some("0.9"))), None);
        let rows = index.of(loaded, LATENCY);
        assert_eq!(
            words(rows[0]),
            "latency of 1 B over udp on lan under load 0.9"
        );
    }
}
