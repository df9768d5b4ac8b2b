//! Rows that differ in method alone, or in one knob alone, are told apart wherever a report speaks of them.
//!
//! Model:   two runs of everything that lines are made of: messages, single messages, streams and what is beside them, loads,
//!          messages that were cut. In each, half of the cells differ from the other half in one thing only. Each half has
//!          figures of its own, so that a place which joins them shows one of them only.

use sonde_measure::{Line, Quantity, Run};

use crate::anatomy::PARTS;
use crate::index::Index;
use crate::testing::{Runs, net};
use crate::{
    View, anatomy_table, compare, compare_table, findings_text, queueing_table, rows_table,
    summary_table, sweep_table,
};

/// Everything once, `slow` times slower than the usual.
fn measured(runs: Runs, slow: u64) -> Runs {
    let mut runs = runs
        .launches(8)
        .latency("lan", "tcp", 1, 40_000 * slow)
        .latency("lan", "tcp", 1_448, 60_000 * slow)
        .latency("lan", "tcp", 1_449, 80_000 * slow)
        .startup("lan", "tcp", 1, None, 900_000 * slow)
        .message("lan", "tcp", 1_024, 20_000_000 / slow)
        .message("lan", "tcp", 65_536, 80_000_000 / slow)
        .stream("lan", "tcp", 60_000_000 / slow)
        .beside(Quantity::RwndLimitedShare, 800_000)
        .beside(Quantity::CpuDstNsPerByte, 1_000 * slow)
        .anatomy("lan", "udp", 64, &[1_000 * slow; 40]);
    for (quantity, _) in PARTS {
        runs = runs.beside_each(quantity, &[200 * slow; 40]);
    }
    runs
}

fn loaded(runs: Runs, slow: u64) -> Runs {
    runs.latency("lan", "tcp", 1, 90_000 * slow)
}

/// What differs, as a cell is given it, and the words that must tell it.
type Setting = (fn(Runs) -> Runs, &'static str);

const SETTINGS: [Setting; 2] = [
    (|runs| runs.method("zerocopy"), "zerocopy"),
    (|runs| runs.knob("sndbuf", "64KiB"), "sndbuf=64KiB"),
];

fn lan() -> Runs {
    Runs::new().network(net("lan").line(100_000_000))
}

/// Idle and loaded, with and without the setting.
fn run(set: fn(Runs) -> Runs) -> Run {
    let half = |slow: u64, set: fn(Runs) -> Runs| {
        let idle = measured(set(lan()), slow).done();
        let under = loaded(set(lan().launches(8).load("0.6")), slow).done();
        [idle, under]
    };
    let mut whole = lan().done();
    for part in half(1, |runs| runs).into_iter().chain(half(3, set)) {
        whole.cells.extend(part.cells);
        whole.launches.extend(part.launches);
    }
    whole
}

/// The lines of a text that speak of a word, and those that do not, of those that have `part` in them.
fn parted<'t>(text: &'t str, part: &str, word: &str) -> (Vec<&'t str>, Vec<&'t str>) {
    text.lines()
        .filter(|line| line.contains(part))
        .partition(|line| line.contains(word))
}

#[test]
fn each_is_a_line_with_figures_of_its_own() {
    for (set, word) in SETTINGS {
        let run = run(set);
        let index = Index::new(&run);
        let tcp: Vec<&Line> = index.lines().filter(|line| line.path == "tcp").collect();
        assert_eq!(tcp.len(), 2, "{word}: {tcp:?}");
        assert!(!tcp[0].by().contains(word) && tcp[1].by().contains(word));
        let trips: Vec<f64> = tcp
            .iter()
            .filter_map(|line| index.round_trip_ns(line))
            .collect();
        assert_eq!(trips, [80_000.0, 240_000.0], "{word}");
        for line in &tcp {
            let own = index
                .rows
                .iter()
                .filter(|row| index.line(row) == *line)
                .count();
            let all = index.rows.iter().filter(|row| row.path == "tcp").count();
            assert!(own > 0 && own < all, "{word}: {own} of {all}");
        }
    }
}

#[test]
fn each_is_a_line_of_every_table() {
    for (set, word) in SETTINGS {
        let run = run(set);
        let tables = [
            ("rows", rows_table(&run.rows(), 400)),
            ("summary", summary_table(&run, 400)),
            ("anatomy", anatomy_table(&run, 400).unwrap()),
            ("queueing", queueing_table(&run, 400).unwrap()),
            ("sweep", sweep_table(&run, 400).unwrap()),
        ];
        for (name, text) in tables {
            let (with, without) = parted(&text, "lan", word);
            let (with, without) = match name {
                // The network is the same everywhere, and stands above.
                "rows" => parted(&text, "latency", word),
                _ => (with, without),
            };
            assert!(
                !with.is_empty() && !without.is_empty(),
                "{word}, {name}:\n{text}"
            );
            assert_eq!(with.len(), without.len(), "{word}, {name}:\n{text}");
        }
    }
}

#[test]
fn each_has_findings_that_say_it() {
    for (set, word) in SETTINGS {
        let run = run(set);
        let view = View::of(&run);
        for rule in [
            "window-limited",
            "below-expectation",
            "cold-start",
            "queueing",
        ] {
            let told: Vec<&str> = view
                .findings
                .iter()
                .filter(|finding| finding.rule == rule)
                .map(|finding| finding.sentence.as_str())
                .collect();
            let with = told.iter().filter(|text| text.contains(word)).count();
            assert_eq!((told.len(), with), (2, 1), "{word}, {rule}: {told:#?}");
        }
        let mut sentences: Vec<&String> = view.findings.iter().map(|one| &one.sentence).collect();
        sentences.sort();
        let all = sentences.len();
        sentences.dedup();
        assert_eq!(sentences.len(), all, "{}", findings_text(&view, 120));
    }
}

#[test]
fn the_page_has_each_of_them() {
    for (set, word) in SETTINGS {
        let view = View::of(&run(set));
        let value = serde_json::to_value(&view).unwrap();
        for part in ["fits", "queueing", "anatomy", "interference"] {
            let rows = value[part].as_array().unwrap();
            let mut kinds: Vec<String> = rows
                .iter()
                .map(|row| format!("{} {} {}", row["path"], row["method"], row["knobs"]))
                .collect();
            kinds.sort();
            kinds.dedup();
            let paths = rows.iter().map(|row| row["path"].to_string());
            let paths: std::collections::BTreeSet<String> = paths.collect();
            assert_eq!(kinds.len(), 2 * paths.len(), "{word}, {part}: {kinds:#?}");
        }
    }
}

#[test]
fn each_is_compared_with_itself() {
    for (set, word) in SETTINGS {
        let (a, b) = (run(set), run(set));
        let comparison = compare(
            &a,
            &b,
            &crate::Chronicle::default(),
            &crate::Limits::default(),
        )
        .unwrap();
        assert_eq!((comparison.only_a.len(), comparison.only_b.len()), (0, 0));
        let word = word.split('=').next().unwrap_or(word);
        let text = compare_table(&comparison, [&a, &b], 200);
        let table = text.split("\n\n").nth(1).unwrap();
        let (with, without) = parted(table, "tcp", word);
        assert_eq!(with.len(), without.len(), "{text}");
        assert!(!with.is_empty(), "{text}");
    }
}

#[test]
fn rates_without_loss_are_told_for_each() {
    for (set, word) in SETTINGS {
        let at = |runs: Runs, sent: &str, bps: u64, lost: u64| {
            runs.knob("rate", sent)
                .stream_of("lan", "udp", 1_472, bps)
                .beside(Quantity::LostShare, lost)
        };
        let plain = at(at(lan(), "50Mbit", 50_000_000, 0), "90Mbit", 90_000_000, 0).done();
        let own = at(
            at(set(lan()), "50Mbit", 50_000_000, 0),
            "90Mbit",
            60_000_000,
            300_000,
        );
        let mut run = own.done();
        run.cells.extend(plain.cells);
        run.launches.extend(plain.launches);
        let view = View::of(&run);
        let told: Vec<&str> = view
            .findings
            .iter()
            .filter(|finding| finding.rule == "udp-loss-limit")
            .map(|finding| finding.sentence.as_str())
            .collect();
        assert_eq!(told.len(), 2, "{told:#?}");
        assert!(
            told.iter()
                .any(|text| text.contains(word) && text.contains("are lost"))
        );
        assert!(
            told.iter()
                .any(|text| !text.contains(word) && text.contains("every constant"))
        );
    }
}
