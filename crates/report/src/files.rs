//! Files of a server, cell by cell: what was measured, and what a call should take by terms that were measured apart.
//!
//! Model:   with one call outstanding a call takes what the server takes for it, a round trip and its bytes on the line:
//!          `own_call - own_null + null + wire`. None is fitted: the first two are the server's own, over its loopback and from its cache,
//!          the third is a call that does nothing, over the network, the last is of the network's model. A transfer by FTP is made of
//!          [`Stages`] instead. Counts are summed over repetitions, times are their medians.
//! Units:   nanoseconds, bits a second, calls.
//! Checked: `terms_add_up`, `a_transfer_is_made_of_stages`, `the_page_has_parts_of_calls_and_stages_of_transfers`,
//!          `cells_have_what_was_set_and_counted`, and the tests of `finding::files` and `table::files`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::files::{Files, FilesPath, Service, Stage, Stages, window_ns};
use sonde_measure::{FilesFacts, KnobValues, Line, Number, Quantity, ResultRow, Status};

use crate::index::{FILES, Index, p50};

/// What was counted and measured apart, of all repetitions of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub calls: u64,
    pub retransmissions: u64,
    pub lost_server_buffer: u64,
    pub receive_buffer_bytes: u64,
    pub held_ns: u64,
    pub span_ns: u64,
    /// What the server takes, a round trip, and the bytes on the line, where they are known.
    pub service_ns: Option<u64>,
    pub trip_ns: Option<u64>,
    pub wire_ns: Option<u64>,
}

/// What was measured apart, as medians of repetitions.
fn medians(all: &[&FilesFacts]) -> FilesFacts {
    let median = |fact: fn(&FilesFacts) -> Option<u64>| {
        let mut values: Vec<u64> = all.iter().filter_map(|one| fact(one)).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    };
    FilesFacts {
        null_ns: median(|one| one.null_ns),
        own_null_ns: median(|one| one.own_null_ns),
        own_call_ns: median(|one| one.own_call_ns),
        wire_ns: median(|one| one.wire_ns),
        trip_ns: median(|one| one.trip_ns),
        stream_ns: median(|one| one.stream_ns),
        source_ns: median(|one| one.source_ns),
        sink_ns: median(|one| one.sink_ns),
        translate_source_ns: median(|one| one.translate_source_ns),
        translate_sink_ns: median(|one| one.translate_sink_ns),
        ..FilesFacts::default()
    }
}

impl Facts {
    /// Of repetitions.
    pub(crate) fn of<'f>(all: impl Iterator<Item = &'f FilesFacts> + Clone) -> Self {
        let sum = |fact: fn(&FilesFacts) -> Option<u64>| all.clone().filter_map(fact).sum();
        let median = |fact: fn(&FilesFacts) -> Option<u64>| {
            let mut values: Vec<u64> = all.clone().filter_map(fact).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied()
        };
        Self {
            calls: sum(|one| one.calls),
            retransmissions: sum(|one| one.retransmissions),
            lost_server_buffer: sum(|one| one.lost_server_buffer),
            receive_buffer_bytes: median(|one| one.receive_buffer_bytes).unwrap_or(0),
            held_ns: sum(|one| one.held_ns),
            span_ns: sum(|one| one.span_ns),
            service_ns: median(|one| Some(one.own_call_ns?.saturating_sub(one.own_null_ns?))),
            trip_ns: median(|one| one.null_ns),
            wire_ns: median(|one| one.wire_ns),
        }
    }

    /// What a call should take where one is outstanding; none where a term is not known. Without a model the bytes on the line are
    /// left out.
    pub(crate) fn expected_ns(&self) -> Option<u64> {
        Some(self.service_ns? + self.trip_ns? + self.wire_ns.unwrap_or(0))
    }
}

/// A cell of files.
#[derive(Debug, Clone)]
pub(crate) struct FilesCell<'i> {
    /// Throughput, or the rate of calls on names.
    pub row: &'i ResultRow,
    pub line: Line,
    /// What was set of it.
    pub files: Files,
    /// From the first send of a call to its reply, the median.
    pub call_ns: Option<f64>,
    pub facts: Facts,
    /// Of a transfer by FTP.
    pub stages: Option<Stages>,
    /// What the window lets through in the round trips that it takes, by FTP.
    pub window_ns: Option<u64>,
}

impl FilesCell<'_> {
    /// Whether it is a transfer and not made of calls.
    pub(crate) fn is_transfer(&self) -> bool {
        self.files.service == Service::Ftp
    }
}

/// A part of what a call or a transfer takes, measured apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesPart {
    /// `server`, `round trip` and `line` of a call; the stages of a transfer.
    pub name: String,
    /// What it takes.
    pub ns: u64,
}

/// A cell of files for the page: what it reached, and what its calls or transfers take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesRow {
    /// The cell.
    pub cell: String,
    /// The network.
    pub network: String,
    /// The path.
    pub path: String,
    /// What was set, by name.
    #[serde(default)]
    pub knobs: KnobValues,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// The load, as `0.6`; null where the network was idle.
    pub load: Option<String>,
    /// As `--op` has it.
    pub operation: String,
    /// The size of the file; null of calls on names.
    pub size_bytes: Option<u64>,
    /// Bits a second, or calls a second of calls on names.
    pub rate: Number,
    /// Whether it is a transfer of a whole file, and not made of calls.
    pub is_transfer: bool,
    /// What a call or a transfer takes, the median; null where it was not measured.
    pub took_ns: Option<Number>,
    /// Of a call that has others beside it none: it waits for them too. Parts of a call follow each other, stages of a transfer overlap.
    #[serde(default)]
    pub parts: Vec<FilesPart>,
    /// What the parts give together; null where one is not known.
    pub expected_ns: Option<u64>,
    /// The stage that takes longest.
    pub slowest: Option<String>,
}

impl FilesRow {
    /// All cells of a run; those without a rate are left out.
    pub(crate) fn all(index: &Index<'_>) -> Vec<Self> {
        cells(index).iter().filter_map(Self::of).collect()
    }

    fn of(cell: &FilesCell<'_>) -> Option<Self> {
        let FilesCell {
            row, files, facts, ..
        } = cell;
        let is_alone = !cell.is_transfer() && files.outstanding == 1;
        let of_call = [
            ("server", facts.service_ns.filter(|_| is_alone)),
            ("round trip", facts.trip_ns.filter(|_| is_alone)),
            ("line", facts.wire_ns.filter(|_| is_alone)),
        ];
        let part = |(name, ns): (&str, Option<u64>)| {
            let name = name.to_owned();
            ns.map(|ns| FilesPart { name, ns })
        };
        let parts: Vec<FilesPart> = match &cell.stages {
            Some(stages) => {
                let all = Stage::ALL.into_iter();
                let all = all.filter(|stage| {
                    *stage != Stage::Translation || stages.translation_ns.is_some()
                });
                all.filter_map(|stage| part((stage.name(), Some(stages.ns(stage)))))
                    .collect()
            }
            None => of_call.into_iter().filter_map(part).collect(),
        };
        let expected_ns = match &cell.stages {
            Some(stages) => Some(stages.expected_ns),
            None => facts.expected_ns().filter(|_| is_alone),
        };
        Some(Self {
            cell: row.cell.clone(),
            network: row.network.clone(),
            path: row.path.clone(),
            knobs: row.knobs.clone(),
            wait: row.wait.clone(),
            load: row.load.clone(),
            operation: files.operation.name().into(),
            size_bytes: row.size_bytes,
            rate: row.p50?,
            is_transfer: cell.is_transfer(),
            took_ns: cell.call_ns.map(Number),
            parts,
            expected_ns,
            slowest: cell.stages.map(|stages| stages.slowest.name().into()),
        })
    }
}

/// The cells of files of a run, in the order of its rows.
pub(crate) fn cells<'i>(index: &'i Index<'_>) -> Vec<FilesCell<'i>> {
    let is_main = |row: &&ResultRow| {
        let main = match row.size_bytes {
            Some(_) => Quantity::ThroughputBps,
            None => Quantity::RatePerS,
        };
        row.probe == FILES && row.quantity == main
    };
    let rows = index.rows.iter().filter(is_main);
    rows.filter_map(|row| cell(index, row)).collect()
}

fn cell<'i>(index: &'i Index<'_>, row: &'i ResultRow) -> Option<FilesCell<'i>> {
    let size = row.size_bytes.unwrap_or(0);
    let launches: Vec<&FilesFacts> = index
        .launches(&row.cell)
        .filter_map(|launch| launch.evidence.files.get(&size))
        .collect();
    let call = index.row_beside(row, Quantity::ServiceNs);
    let call = call.filter(|row| row.status == Status::Measured).map(p50);
    let files = set(&row.path, &row.knobs)?;
    let apart = medians(&launches);
    Some(FilesCell {
        row,
        line: index.cell(&row.cell)?.factors.line(),
        files,
        call_ns: call,
        facts: Facts::of(launches.iter().copied()),
        stages: Stages::of(&files, size, &apart),
        window_ns: window_ns(&files, size, &apart),
    })
}

/// What the names and values of a row set; none of a store that a later version wrote.
fn set(path: &str, knobs: &KnobValues) -> Option<Files> {
    let path: FilesPath = path.parse().ok()?;
    let mut own = knobs.clone();
    own.retain(|name, _| Files::NAMES.iter().any(|(known, _)| known == name));
    Files::parse(path, &own).ok()
}

#[cfg(test)]
pub(crate) mod testing {
    //! A run of one cell of files.

    use super::*;
    use crate::testing::{Runs, net};
    use sonde_measure::{
        CellRecord, CellResult, Factors, LaunchRecord, Layer, Measurement, Phase, Run, Testbed,
    };

    /// Reads of files of 1 MiB over nfs2:udp at 303 Mb/s, whose calls take 200 µs.
    pub(crate) fn run(knobs: &[(&str, &str)], facts: FilesFacts) -> Run {
        run_of("nfs2:udp", knobs, facts, [303_000_000, 4_620_000, 200_000])
    }

    /// The same by FTP: 13.9 Mb/s from a disk of 16 Mb/s, a transfer in 603 ms.
    pub(crate) fn transfer() -> Run {
        let facts = FilesFacts {
            trip_ns: Some(200_000),
            null_ns: Some(1_000_000),
            own_null_ns: Some(200_000),
            own_call_ns: Some(1_200_000),
            stream_ns: Some(71_000_000),
            source_ns: Some(524_288_000),
            sink_ns: Some(300_000),
            wire_ns: Some(69_000_000),
            ..FilesFacts::default()
        };
        let knobs = [("op", "read"), ("disk", "16Mbit"), ("window", "64KiB")];
        run_of("ftp", &knobs, facts, [13_900_000, 1_658, 603_000_000])
    }

    fn run_of(path: &str, knobs: &[(&str, &str)], facts: FilesFacts, reached: [u64; 3]) -> Run {
        let [bps, milli_calls, call_ns] = reached;
        let mut run = Runs::new().network(net("ethernet-100")).done();
        let knobs = knobs.iter();
        let factors = Factors {
            probe: FILES.into(),
            mode: None,
            layer: Layer::Files,
            path: path.into(),
            method: Some("plain".into()),
            knobs: knobs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            wait: Some("block".into()),
            network: "ethernet-100".into(),
            testbed: Testbed::Lab,
            hosts: vec!["h1".into(), "h2".into()],
            profile: Some("modern".into()),
            attachment: Some("tap".into()),
            load: None,
            size_bytes: 1 << 20,
        };
        let id = factors.cell().unwrap();
        run.cells.push(CellRecord {
            id: id.clone(),
            factors,
            launches: 1,
            skipped: None,
        });
        let one = |quantity, value: u64| Measurement {
            touched: None,
            quantity,
            phase: Phase::Warm,
            step: None,
            series: std::iter::once(value).collect(),
            reason: None,
        };
        let mut launch = LaunchRecord {
            src: "h1".into(),
            dst: "h2".into(),
            began_unix_ns: run.head.began_unix_ns,
            took_ns: 1_000_000,
            results: vec![CellResult {
                cell: id,
                series: vec![
                    one(Quantity::ThroughputBps, bps),
                    one(Quantity::RatePerS, milli_calls),
                    one(Quantity::ServiceNs, call_ns),
                ],
                ..CellResult::default()
            }],
            ..LaunchRecord::default()
        };
        launch.evidence.files.insert(1 << 20, facts);
        run.launches.push(launch);
        run
    }

    /// Terms of 40 µs at the server, 110 µs of a round trip and 35 µs on the line.
    pub(crate) fn facts() -> FilesFacts {
        FilesFacts {
            calls: Some(1_000),
            retransmissions: Some(0),
            span_ns: Some(1_000_000_000),
            null_ns: Some(110_000),
            own_null_ns: Some(20_000),
            own_call_ns: Some(60_000),
            wire_ns: Some(35_000),
            ..FilesFacts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_what_was_set_and_counted() {
        let run = testing::run(&[("op", "read")], testing::facts());
        let index = Index::new(&run);
        let all = cells(&index);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].call_ns, Some(200_000.0));
        assert_eq!(all[0].facts.expected_ns(), Some(40_000 + 110_000 + 35_000));
        assert!(crate::has_own_tables(&run));
    }

    #[test]
    fn a_transfer_is_made_of_stages() {
        let run = testing::transfer();
        let index = Index::new(&run);
        let all = cells(&index);
        let stages = all[0].stages.unwrap();
        assert!(all[0].is_transfer() && all[0].call_ns == Some(603_000_000.0));
        // 524 ms of the disk and 70 of the network in turn, 16 round trips, the first of 16 pieces at the sink, and the opening.
        assert_eq!(stages.slowest, sonde_measure::files::Stage::SourceDisk);
        assert_eq!(stages.expected_ns / 1_000_000, 598);
        assert_eq!(all[0].window_ns, Some(16 * 200_000));
    }

    #[test]
    fn the_page_has_parts_of_calls_and_stages_of_transfers() {
        let of = |run: &sonde_measure::Run| FilesRow::all(&Index::new(run));
        let transfer = &of(&testing::transfer())[0];
        let names = |row: &FilesRow| -> Vec<String> {
            row.parts.iter().map(|part| part.name.clone()).collect()
        };
        assert_eq!(
            names(transfer),
            ["source disk", "socket", "network", "sink disk"]
        );
        assert_eq!(transfer.slowest.as_deref(), Some("source disk"));
        assert!(
            transfer.is_transfer
                && transfer
                    .expected_ns
                    .is_some_and(|ns| ns > transfer.parts[0].ns)
        );
        let call = &of(&testing::run(&[("op", "read")], testing::facts()))[0];
        assert_eq!(names(call), ["server", "round trip", "line"]);
        assert_eq!(
            call.expected_ns,
            Some(call.parts.iter().map(|part| part.ns).sum())
        );
        assert_eq!(
            (call.rate.0, call.took_ns.map(|ns| ns.0)),
            (303e6, Some(200_000.0))
        );
        // What waits for others is not made of these.
        let many = &of(&testing::run(
            &[("op", "read"), ("outstanding", "8")],
            testing::facts(),
        ))[0];
        assert_eq!((many.parts.len(), many.expected_ns), (0, None));
    }

    #[test]
    fn terms_add_up() {
        let one = |null_ns, own_call_ns| FilesFacts {
            calls: Some(10),
            null_ns: Some(null_ns),
            own_null_ns: Some(20),
            own_call_ns: Some(own_call_ns),
            wire_ns: Some(700),
            ..FilesFacts::default()
        };
        let all = [one(100, 50), one(300, 90), one(200, 70)];
        let facts = Facts::of(all.iter());
        assert_eq!((facts.calls, facts.service_ns), (30, Some(50)));
        assert_eq!(facts.expected_ns(), Some(50 + 200 + 700));
        assert_eq!(Facts::of([].iter()).expected_ns(), None);
    }

    #[test]
    fn rows_say_what_was_set() {
        let knobs = [("op", "write"), ("outstanding", "4"), ("mtu", "9000")];
        let knobs = knobs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let files = set("nfs3:udp", &knobs.into_iter().collect()).unwrap();
        assert_eq!((files.outstanding, files.operation.name()), (4, "write"));
        assert!(set("tcp", &KnobValues::new()).is_none());
    }
}
