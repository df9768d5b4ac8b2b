//! The messages of a program as plans and the command ask for them, to be sent without what the program computes.
//!
//! Model:   they are known by their statistic (how many, the mean and the median length) and a graph. Both are a paper's
//!          (`upc:cg`), or of an own run (what `sonde npb --json` printed, or a matrix), or said one by one; what is said beside a name
//!          stands instead of what it tells. A matrix tells no median: that is to be said.
//! Source:  requirement U27. Deviations: the graphs of the paper's kernels are those of their decompositions, for it tells none.
//! Units:   bytes, messages of all ranks together.
//! Checked: `statistics_are_named_or_said`, `own_runs_are_read`, `what_cannot_be_is_refused`; `tests/lab_messages.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use crate::failure::Failure;
use serde_json::Value;
use sonde_measure::replay::ReplayRequest;
use sonde_measure::{KnobValues, Wait};
use sonde_probe::library::{Job, PROGRAM_NS, RANKS_MAX, Task};
use sonde_sys::file;
use sonde_units::{Bytes, Matrix, Span};
use sonde_workload::npb::Kernel;
use sonde_workload::replay::{BYTES_MAX, Statistic, launch, upc};
use std::io::Read;
use std::path::Path;

/// The usual graph.
const EVERYBODY: &str = "all-to-all";
/// In a name: those of the UPC study.
const UPC: &str = "upc:";
/// What a rank takes beside its messages: the program, a library's buffers; and what it keeps of each.
const RANK_BYTES: u64 = 32 << 20;
const MESSAGE_BYTES: u64 = 96;

/// Messages among ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct MessagesRequest {
    /// By which name they were asked for, if by one.
    of: Option<String>,
    /// The statistic and the graph.
    pub told: ReplayRequest,
    /// Among how many.
    pub ranks: usize,
    /// The longest one.
    pub longest_bytes: u64,
}

impl MessagesRequest {
    /// In words: `upc:cg on 4`, `1000 of 2000 B on 6`.
    pub fn name(&self) -> String {
        let told = &self.told;
        let (count, mean) = (told.messages, told.bytes_mean().round());
        let said = || format!("{count} of {mean} B");
        format!("{} on {}", self.of.clone().unwrap_or_else(said), self.ranks)
    }

    /// What all ranks do. `limit` is what a launch may take.
    pub fn job(&self, runs: u64, wait: Wait, limit: Option<Span>) -> Job {
        let task = Task::Messages {
            asked: self.told.clone(),
            runs,
            limit_ns: limit.map_or(PROGRAM_NS, Span::as_nanos),
        };
        Job::new(task, wait)
    }

    /// A guess at a replay: half a round trip for each message of a rank, and its bytes over its line.
    pub fn estimate_ns(&self, trip_ns: u64, line_bps: Option<u64>) -> u64 {
        let each = |all: u64| all.checked_div(self.ranks as u64).unwrap_or(0);
        let steps_ns = each(self.told.messages).saturating_mul(trip_ns / 2);
        let bits = u128::from(each(self.told.bytes)).saturating_mul(8_000_000_000);
        let line_ns = line_bps.and_then(|bps| bits.checked_div(bps.into()));
        steps_ns.saturating_add(u64::try_from(line_ns.unwrap_or(0)).unwrap_or(u64::MAX))
    }

    /// Why it does not fit into memory where a host has so many of its ranks.
    pub fn too_large(&self, available: u64, here: usize) -> Option<String> {
        let each = RANK_BYTES
            .saturating_add(self.longest_bytes.saturating_mul(2))
            .saturating_add(MESSAGE_BYTES.saturating_mul(self.told.messages));
        let wanted = each.saturating_mul(here as u64);
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        (wanted > available).then(|| {
            format!(
                "{here} ranks on one host take {} MiB for {} messages of up to {} B, and {} MiB are available there: take fewer \
                 or shorter messages",
                mib(wanted),
                self.told.messages,
                self.longest_bytes,
                mib(available)
            )
        })
    }
}

/// What is known of some messages before everything is.
#[derive(Debug, Default, PartialEq)]
struct Known {
    messages: Option<u64>,
    bytes_mean: Option<f64>,
    bytes_median: Option<u64>,
    graph: Option<String>,
    /// How often each rank sends to each.
    messages_to: Vec<Vec<u64>>,
    ranks: Option<usize>,
}

/// Takes messages out of the knobs of a plan: `of`, or `count`, `mean`, `median` and `graph`; `ranks`, and how many `runs` a launch
/// makes. `seed` is the plan's.
///
/// # Errors
/// One is missing, or names nothing; no messages are so.
pub fn take(knobs: &mut KnobValues, seed: u64) -> Result<(MessagesRequest, u64), Failure> {
    let of = knobs.remove("of");
    let mut known = of.as_deref().map_or(Ok(Known::default()), named)?;
    let mut number = |name: &str| knobs.take_number(name).map_err(Failure::usage);
    let (count, ranks, runs) = (number("count")?, number("ranks")?, number("runs")?);
    known.messages = count.or(known.messages);
    if let Some(text) = knobs.remove("mean") {
        known.bytes_mean = Some(mean(&text)?);
    }
    if let Some(text) = knobs.remove("median") {
        known.bytes_median = Some(length("median", &text)?);
    }
    if let Some(graph) = knobs.remove("graph") {
        (known.graph, known.messages_to) = (Some(graph), Vec::new());
    }
    let ranks = match (ranks, known.ranks) {
        (Some(ranks), _) => ranks as usize,
        (None, known) => known.unwrap_or(upc::RANKS),
    };
    let asked = asked(known, ranks, seed)?;
    Ok((MessagesRequest { of, ..asked }, runs.unwrap_or(1)))
}

/// Everything is there, and can be.
fn asked(known: Known, ranks: usize, seed: u64) -> Result<MessagesRequest, Failure> {
    if !(2..=RANKS_MAX).contains(&ranks) {
        return Err(Failure::usage(format!(
            "messages go among 2 to {RANKS_MAX} ranks, not {ranks}: write ranks=4"
        )));
    }
    let lacks = |name: &str, example: &str| {
        Failure::usage(format!(
            "the {name} of these messages is not known: write {example}, or `of` with upc:cg or a file of `sonde npb --json`"
        ))
    };
    let statistic = Statistic {
        messages: known
            .messages
            .ok_or_else(|| lacks("number", "count=1000"))?,
        bytes_mean: known
            .bytes_mean
            .ok_or_else(|| lacks("mean length", "mean=2000"))?,
        bytes_median: known
            .bytes_median
            .ok_or_else(|| lacks("median length", "median=8"))?,
    };
    let longest_bytes = statistic.longest(BYTES_MAX).map_err(Failure::usage)?;
    let is_matrix = !known.messages_to.is_empty();
    let usual = if is_matrix { "matrix" } else { EVERYBODY };
    let told = ReplayRequest {
        messages: statistic.messages,
        bytes: (statistic.messages as f64 * statistic.bytes_mean).round() as u64,
        bytes_median: statistic.bytes_median,
        graph: known.graph.unwrap_or_else(|| usual.into()),
        messages_to: known.messages_to,
        seed,
    };
    let graph = launch::graph(&told).map_err(Failure::usage)?;
    graph.check(ranks).map_err(Failure::usage)?;
    Ok(MessagesRequest {
        of: None,
        told,
        ranks,
        longest_bytes,
    })
}

/// Messages by their name.
fn named(name: &str) -> Result<Known, Failure> {
    let Some(kernel) = name.strip_prefix(UPC) else {
        return of_file(name);
    };
    let kernel: Kernel = kernel.parse().map_err(Failure::usage)?;
    let Some((statistic, graph)) = upc::known(kernel).statistic else {
        return Err(Failure::usage(format!(
            "the UPC study prints no messages of {kernel}, which hardly communicates: write upc:cg, upc:ft, upc:is, upc:mg, upc:lu, \
             upc:sp or upc:bt"
        )));
    };
    Ok(Known {
        messages: Some(statistic.messages),
        bytes_mean: Some(statistic.bytes_mean),
        bytes_median: Some(statistic.bytes_median),
        graph: match graph {
            sonde_workload::replay::Graph::Neighbours(text) => Some(text),
            _ => None,
        },
        messages_to: Vec::new(),
        ranks: None,
    })
}

/// Messages of an own run: what `sonde npb --json` printed, or a matrix.
fn of_file(name: &str) -> Result<Known, Failure> {
    let mut text = String::new();
    let file = file::bounded(Path::new(name), file::MADE_BYTES_MAX);
    let read = file.and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| {
        Failure::usage(format!(
            "`{name}` does not name messages: write upc:cg, or a file that `sonde npb` wrote by --json or --matrix ({error})"
        ))
    })?;
    of_text(&text).map_err(|why| Failure::usage(format!("{name}: {why}")))
}

fn of_text(text: &str) -> Result<Known, String> {
    let document: Option<Value> = serde_json::from_str(text).ok();
    let of_npb = document.as_ref().filter(|value| value["command"] == "npb");
    match of_npb {
        Some(document) => of_document(document),
        None => of_matrix(text),
    }
}

/// Whether a file's text tells of messages, all of them as they would be replayed.
pub(crate) fn is_of_messages(text: &str) -> bool {
    let known = of_text(text).ok();
    let ranks = known.as_ref().and_then(|known| known.ranks);
    known
        .zip(ranks)
        .is_some_and(|(known, ranks)| asked(known, ranks, 1).is_ok())
}

/// Of the last run of the one launch in it.
fn of_document(document: &Value) -> Result<Known, String> {
    let results = document["kernels"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let told: Vec<&Value> = results
        .iter()
        .map(|result| &result["launch"])
        .filter(|launch| launch["ranks"].as_array().is_some_and(|all| all.len() > 1))
        .collect();
    let [launch] = told[..] else {
        return Err(format!(
            "messages are those of one repetition among several ranks, and this document has {}: run `sonde npb --json` with one kernel, \
             size, number of \
             ranks and path",
            told.len()
        ));
    };
    let sent = launch["runs"].as_array().and_then(|runs| runs.last());
    let sent = sent.map_or(&Value::Null, |run| &run["sent"]);
    let row = |rank: &Value| -> Option<Vec<u64>> {
        let row = rank["messages_to"].as_array()?;
        row.iter().map(Value::as_u64).collect()
    };
    let ranks = launch["ranks"].as_array().map_or(&[][..], Vec::as_slice);
    let messages_to: Option<Vec<Vec<u64>>> = ranks.iter().map(row).collect();
    // Counted to a 64th of itself, which may be beyond the ends.
    let within = |median: u64| {
        let end = |name: &str| sent[name].as_u64();
        Some(median.max(end("bytes_min")?).min(end("bytes_max")?))
    };
    let known = Known {
        messages: sent["messages"].as_u64(),
        bytes_mean: sent["bytes_mean"].as_f64(),
        bytes_median: sent["bytes_median"].as_u64().and_then(within),
        graph: None,
        ranks: Some(ranks.len()),
        messages_to: messages_to.unwrap_or_default(),
    };
    let is_whole = known.bytes_median.is_some() && !known.messages_to.is_empty();
    is_whole
        .then_some(known)
        .ok_or_else(|| "it has no messages; was none sent?".into())
}

/// All but the median.
fn of_matrix(text: &str) -> Result<Known, String> {
    let matrix = Matrix::parse(text).map_err(|error| error.to_string())?;
    let (bytes, messages) = matrix.total();
    let row = |from| (0..matrix.ranks()).map(move |to| (from, to));
    let count = |(from, to)| matrix.messages(from, to);
    Ok(Known {
        messages: Some(messages),
        bytes_mean: (messages > 0).then(|| bytes as f64 / messages as f64),
        bytes_median: None,
        graph: None,
        messages_to: (0..matrix.ranks())
            .map(|from| row(from).map(count).collect())
            .collect(),
        ranks: Some(matrix.ranks()),
    })
}

/// Bytes, which need not be whole.
fn mean(text: &str) -> Result<f64, Failure> {
    match text.parse() {
        Ok(mean) => Ok(mean),
        Err(_) => length("mean", text).map(|bytes| bytes as f64),
    }
}

fn length(name: &str, text: &str) -> Result<u64, Failure> {
    let bare = text.parse::<u64>();
    bare.or_else(|_| text.parse::<Bytes>().map(|bytes| bytes.0))
        .map_err(|_| {
            Failure::usage(format!(
                "`{name}={text}` is not a length: write {name}=2000 or {name}=2KiB"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<(MessagesRequest, u64), String> {
        let pairs = pairs.iter();
        let mut knobs = pairs
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let read = take(&mut knobs, 9).map_err(|failure| failure.to_string())?;
        assert!(knobs.is_empty(), "{knobs:?}");
        Ok(read)
    }

    fn file(name: &str, text: &str) -> String {
        let path = std::env::temp_dir().join(format!("sonde-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    #[test]
    fn statistics_are_named_or_said() {
        let (cg, runs) = read(&[("of", "upc:cg")]).unwrap();
        assert_eq!((cg.ranks, runs, cg.told.messages), (4, 1, 7_116));
        assert_eq!((cg.told.bytes, cg.told.bytes_median), (7_116 * 1_963, 8));
        assert_eq!((cg.told.graph.as_str(), cg.told.seed), ("mesh", 9));
        // What is said stands instead.
        let said = [
            ("of", "upc:sp"),
            ("count", "1000"),
            ("graph", "ring"),
            ("ranks", "6"),
            ("runs", "3"),
        ];
        let (part, runs) = read(&said).unwrap();
        assert_eq!((part.ranks, runs, part.told.bytes), (6, 3, 1_373_000));
        assert_eq!(part.told.graph, "ring");
        let said = [("count", "4"), ("mean", "2KiB"), ("median", "2048")];
        let (own, _) = read(&said).unwrap();
        assert_eq!((own.told.bytes, own.longest_bytes), (8_192, 2_048));
        assert_eq!(own.told.graph, EVERYBODY);
        assert_eq!(own.name(), "4 of 2048 B on 4");
        assert!(own.estimate_ns(2_000, Some(1_000_000)) > own.estimate_ns(2_000, None));
        assert_eq!(own.too_large(u64::MAX, 4), None);
        assert!(own.too_large(1 << 20, 4).unwrap().contains("4 ranks"));
        let job = own.job(2, Wait::Block, Some(Span::secs(5)));
        assert_eq!(job.duration_max().as_nanos(), 5_000_000_000);
        job.check().unwrap();
    }

    #[test]
    fn own_runs_are_read() {
        let launch = r#"{"runs": [{"sent": {"messages": 5, "bytes": 500, "bytes_min": 100, "bytes_max": 100, "bytes_mean": 100.0,
            "bytes_median": 101}}], "ranks": [{"messages_to": [0, 3]}, {"messages_to": [2, 0]}]}"#;
        let document = |launches: &[&str]| {
            let all: Vec<String> = launches
                .iter()
                .map(|launch| format!("{{\"launch\": {launch}}}"))
                .collect();
            format!("{{\"command\": \"npb\", \"kernels\": [{}]}}", all.join(","))
        };
        // A launch that failed, and one of one rank, are none.
        let one = file(
            "one.json",
            &document(&[launch, "null", r#"{"ranks": [{}]}"#]),
        );
        let (own, _) = read(&[("of", &one)]).unwrap();
        assert_eq!((own.ranks, own.told.messages, own.told.bytes), (2, 5, 500));
        assert_eq!(own.told.bytes_median, 100);
        assert_eq!(own.told.messages_to, [[0, 3], [2, 0]]);
        assert_eq!(own.told.graph, "matrix");
        let two = file("two.json", &document(&[launch, launch]));
        let mut matrix = Matrix::new(3).unwrap();
        matrix.add(0, 2, 90, 9);
        let matrix = file("matrix.json", &matrix.to_json());
        let (own, _) = read(&[("of", &matrix), ("median", "10")]).unwrap();
        assert_eq!((own.ranks, own.told.messages, own.told.bytes), (3, 9, 90));
        for (pairs, said) in [
            (&[("of", two.as_str())][..], "this document has 2"),
            (
                &[("of", &matrix)],
                "the median length of these messages is not known",
            ),
            (
                &[("of", &matrix), ("median", "10"), ("ranks", "4")],
                "is of 3 ranks, and there are 4",
            ),
        ] {
            let error = read(pairs).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        for path in [one, two, matrix] {
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (pairs, said) in [
            (&[][..], "number of these messages"),
            (&[("count", "5")], "mean=2000"),
            (&[("count", "5"), ("mean", "9")], "median=8"),
            (&[("of", "upc:ep")], "hardly communicates"),
            (&[("of", "upc:dg")], "ep, cg"),
            (&[("of", "nowhere.json")], "write upc:cg, or a file"),
            (&[("of", "upc:cg"), ("count", "0")], "1 message or more"),
            (&[("of", "upc:cg"), ("count", "-1")], "not a number"),
            (
                &[("of", "upc:cg"), ("count", "9999999999")],
                "replay a part",
            ),
            (&[("of", "upc:cg"), ("median", "5000")], "mean is"),
            (&[("of", "upc:cg"), ("median", "4x")], "not a length"),
            (&[("of", "upc:cg"), ("mean", "-4")], "-4 B"),
            (
                &[("of", "upc:cg"), ("graph", "mesh:2x2"), ("ranks", "6")],
                "4 points",
            ),
            (&[("of", "upc:cg"), ("graph", "star")], "or all-to-all"),
            (&[("of", "upc:cg"), ("ranks", "1")], "2 to"),
        ] {
            let error = read(pairs).unwrap_err();
            assert!(error.contains(said), "{pairs:?}: {error}");
        }
        let text = file("csv", "1,2\n3");
        let error = read(&[("of", &text)]).unwrap_err();
        std::fs::remove_file(&text).unwrap();
        assert!(error.contains(&text), "{error}");
    }
}
