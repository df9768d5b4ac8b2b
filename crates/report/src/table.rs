//! What the terminal shows: a line a network, path and load, every row, and the findings.
//!
//! Model:   numbers stand right-aligned below a head with their unit; what was not measured is a dash. All are laid out by [`Sheet`].
//! Units:   µs, Mb/s (decimal), bytes, ns a byte, per cent.
//! Checked: `the_summary_reads_without_a_plot`, `a_narrow_terminal_has_two_tables`, `rows_name_what_differs`,
//!          `findings_are_wrapped`, `a_load_is_a_line_of_its_own`, `hostile_names_stay_in_their_line`, `nothing_measured_is_said`.

mod checks;
mod files;
mod flows;
mod kernels;
mod library;
mod messages;
mod placements;
mod places;
mod sheet;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use sonde_measure::{
    Doubt, KnobValues, Line, Number, Phase, Quantity, ResultRow, Run, State, Status, Step,
};

use crate::anatomy::AnatomyRow;
use crate::finding::Severity;
use crate::fit::{HalfSize, half_size};
use crate::format::{bytes, completion, counted, percent, significant};
use crate::index::{Index, LATENCY, START, p50, step};
use crate::queueing::QueueingRow;
use crate::sweep::SweepCurve;
use crate::view::View;
use sonde_units::plain;

pub use checks::checks_table;
pub use files::files_table;
pub use flows::flows_table;
pub use kernels::kernel_table;
pub use library::library_table;
pub use messages::messages_table;
pub use placements::placements_table;
pub use sheet::{Sheet, sheet};

const DASH: &str = "-";

/// The quantity as it is in `--json`.
pub(crate) fn quantity_name(quantity: Quantity) -> String {
    serde_json::to_value(quantity)
        .ok()
        .and_then(|value| value.as_str().map(Into::into))
        .unwrap_or_default()
}

/// One line a network, path and load: cold and warm, the rate beside its ceiling, what it costs, and what the figures are worth.
pub fn summary_table(run: &Run, width: usize) -> String {
    let index = Index::new(run);
    let all = index.every_line();
    if all.is_empty() {
        return "Nothing was measured.".into();
    }
    let mut sheet = Sheet {
        heads: HEADS.iter().map(|head| (*head).into()).collect(),
        lines: all.iter().map(|line| summary_line(&index, line)).collect(),
        keys: LOAD + 1,
        first: 4,
        words: LOAD + 1,
        loose: false,
    };
    // The load is a column only where there is any, method, settings and wait where there are several.
    sheet.leave_out_marked([(LOAD, all.iter().all(Line::is_idle))]);
    sheet.leave_out_marked(alike(all));
    format!("{}\n\n{}", sheet.text(width), legend(&index, width))
}

const METHOD: usize = 2;
const WITH: usize = 3;
const WAIT: usize = 4;
const LOAD: usize = 5;
const HEADS: [&str; 17] = [
    "network",
    "path",
    "method",
    "with",
    "completion",
    "load",
    "cold start\nµs",
    "first\nµs",
    "second\nµs",
    "latency\nµs",
    "stream\nMb/s",
    "ceiling\nMb/s",
    "reached\n%",
    "n½\nB",
    "src\nns/B",
    "dst\nns/B",
    "state\n ",
];

/// The columns that name a line: network, path, method, settings, wait and load, which is `idle` where there is none.
fn named(line: &Line, idle: &str) -> Vec<String> {
    let or_dash = |text: &Option<String>| plain(text.as_deref().unwrap_or(DASH));
    vec![
        plain(&line.network),
        plain(&line.path),
        or_dash(&line.method),
        with(&line.knobs),
        or_dash(&line.wait),
        plain(line.load.as_deref().unwrap_or(idle)),
    ]
}

/// The columns of wait, settings and method, each marked where it is the same of all lines.
fn alike(lines: &[Line]) -> [(usize, bool); 3] {
    let all = |same: fn(&Line, &Line) -> bool| lines.iter().all(|line| same(line, &lines[0]));
    [
        (WAIT, all(|one, first| one.wait == first.wait)),
        (WITH, all(|one, first| one.knobs == first.knobs)),
        (METHOD, all(|one, first| one.method == first.method)),
    ]
}

fn summary_line(index: &Index<'_>, line: &Line) -> Vec<String> {
    let smallest = |kind| index.of(line, kind).first().map(|row| p50(row));
    let stream = index.stream(line);
    let ceiling = index.ceiling(line);
    let bps = stream.map(p50);
    let cost = |quantity| stream.and_then(|row| index.beside(row, quantity));
    let half = half_size(index, line).map_or(DASH.into(), |size| match size {
        HalfSize::At(size) => significant(size as f64, 4),
        HalfSize::Above(size) => format!("> {}", significant(size as f64, 4)),
        HalfSize::Below(size) => format!("≤ {}", significant(size as f64, 4)),
    });
    let mut cells = named(line, "idle");
    cells.extend([
        micros(smallest(START)),
        micros(smallest(step(Step::First))),
        micros(smallest(step(Step::Second))),
        micros(smallest(LATENCY)),
        scaled(bps, 1e6, 4),
        scaled(ceiling, 1e6, 4),
        bps.zip(ceiling)
            .map_or(DASH.into(), |(bps, ceiling)| percent(bps / ceiling)),
        half,
        scaled(cost(Quantity::CpuSrcNsPerByte), 1.0, 3),
        scaled(cost(Quantity::CpuDstNsPerByte), 1.0, 3),
        state(index, line),
    ]);
    cells
}

/// Whether the figures of a line are sound, or how many of them are not.
fn state(index: &Index<'_>, line: &Line) -> String {
    let rows = index.figures().filter(|row| index.line(row) == line);
    let (mut all, mut uncertain) = (0, 0);
    for row in rows {
        all += 1;
        uncertain += usize::from(row.state == State::Uncertain);
    }
    match (all, uncertain) {
        (0, _) => DASH.into(),
        (_, 0) => "sound".into(),
        (all, uncertain) => format!("{uncertain}/{all} uncertain"),
    }
}

/// How many figures are uncertain, and for what; none where all are sound.
fn uncertain(index: &Index<'_>) -> Option<String> {
    let mut doubts: BTreeMap<Doubt, usize> = BTreeMap::new();
    let uncertain = index.figures().filter(|row| row.state == State::Uncertain);
    let uncertain = uncertain.inspect(|row| {
        for doubt in &row.doubts {
            *doubts.entry(*doubt).or_default() += 1;
        }
    });
    let uncertain = uncertain.count();
    let all = index.figures().count() as u64;
    let each = doubts
        .iter()
        .map(|(doubt, rows)| format!("{} ({rows})", doubt.words()));
    let each: Vec<String> = each.collect();
    let text = || {
        format!(
            "{uncertain} of {} uncertain: {}.",
            counted(all, "figure"),
            each.join(", ")
        )
    };
    (uncertain > 0).then(text)
}

/// What the columns are, with the sizes that they are of.
fn legend(index: &Index<'_>, width: usize) -> String {
    let size = |kind| {
        let sizes: std::collections::BTreeSet<u64> = index
            .every_line()
            .iter()
            .filter_map(|line| index.of(line, kind).first()?.size_bytes)
            .collect();
        match (sizes.len(), sizes.first()) {
            (1, Some(size)) => bytes(*size),
            _ => "the smallest size".into(),
        }
    };
    let text = format!(
        "Medians. cold start: time to first reply including ARP and connect ({}); first, second: round trips of its first messages; \
         latency: one-way latency, RTT/2, warm ({}); n½: half-performance size, at which single messages reach half of the ceiling, or \
         of their own best; src, dst: CPU time per byte of the sender and the receiver; state: whether the figures are \
         sound, or how many of them are uncertain.",
        size(START),
        size(LATENCY)
    );
    let load = if index.every_line().iter().all(Line::is_idle) {
        ""
    } else {
        " load: background traffic, as a share of a link; the ceiling is that of an idle one."
    };
    let uncertain = uncertain(index).map_or(String::new(), |text| format!(" {text}"));
    wrapped(&(text + load + &uncertain), width, "")
}

fn micros(ns: Option<f64>) -> String {
    scaled(ns, 1e3, 4)
}

fn scaled(value: Option<f64>, scale: f64, digits: u32) -> String {
    value.map_or(DASH.into(), |value| significant(value / scale, digits))
}

/// How many per cent of a program's frames the network lost in a cell, where that is known.
fn lost(index: &Index<'_>, cell: &str) -> String {
    match index.lost(cell) {
        Some(0.0) => NONE.into(),
        share => scaled(share, 0.01, 2),
    }
}

/// Whether no line of a table has lost anything.
fn none_lost(lines: &[Vec<String>], column: usize) -> bool {
    let mut shown = lines.iter().map(|line| line[column].as_str());
    shown.all(|text| [DASH, NONE].contains(&text))
}

const NONE: &str = "0";

/// How a quantity is shown: its name and unit, and what its own unit is divided by.
fn shown(row: &ResultRow) -> (&'static str, f64) {
    match row.quantity {
        Quantity::LatencyNs => ("latency µs", 1e3),
        Quantity::RttNs => ("round trip µs", 1e3),
        Quantity::StartupNs => ("start-up µs", 1e3),
        Quantity::ExchangeNs => ("exchange µs", 1e3),
        Quantity::ThroughputBps => ("rate Mb/s", 1e6),
        Quantity::CpuSrcNsPerByte => ("CPU src ns/B", 1.0),
        Quantity::CpuDstNsPerByte => ("CPU dst ns/B", 1.0),
        Quantity::LostShare => ("lost %", 0.01),
        Quantity::ReorderedShare => ("reordered %", 0.01),
        Quantity::DuplicatedShare => ("duplicated %", 0.01),
        Quantity::BusyShare => ("busy %", 0.01),
        Quantity::RwndLimitedShare => ("window-limited %", 0.01),
        Quantity::SndbufLimitedShare => ("buffer-limited %", 0.01),
        Quantity::Retransmits => ("retransmitted", 1.0),
        Quantity::OneWayNs => ("one way µs", 1e3),
        Quantity::SendCallNs => ("send call µs", 1e3),
        Quantity::QueueNs => ("queue µs", 1e3),
        Quantity::WireNs => ("wire µs", 1e3),
        Quantity::WakeNs => ("wake-up µs", 1e3),
        Quantity::ReceiveNs => ("receive call µs", 1e3),
        Quantity::AckNs => ("acknowledged µs", 1e3),
        Quantity::NicTripNs => ("card to card µs", 1e3),
        Quantity::ResponseNs => ("response µs", 1e3),
        Quantity::ServiceNs => ("service µs", 1e3),
        Quantity::CollectiveNs => ("collective µs", 1e3),
        Quantity::EntryLateNs => ("entered late µs", 1e3),
        Quantity::RatePerS => ("messages/s", 1.0),
        Quantity::LateShare => ("sent late %", 0.01),
        Quantity::KernelNs => ("kernel ms", 1e6),
        Quantity::MopPerS => ("Mop/s", 1.0),
        Quantity::CommunicatingShare => ("communicating %", 0.01),
        Quantity::Messages => ("messages", 1.0),
        Quantity::MessageBytesMean => ("mean message B", 1.0),
        Quantity::MessageBytesMedian => ("median message B", 1.0),
        Quantity::ReplayNs => ("messages ms", 1e6),
        Quantity::MessageBytes => ("bytes", 1.0),
        Quantity::NetworkLostShare => ("lost in the network %", 0.01),
        Quantity::Checks => ("checks", 1.0),
        Quantity::ProgramNs => ("program ms", 1e6),
    }
}

/// A factor's name, and how it is read off a row.
type Factor = (&'static str, fn(&ResultRow) -> String);

/// Where the time of messages goes, a line a cell; `None` where none were cut.
pub fn anatomy_table(run: &Run, width: usize) -> Option<String> {
    let rows = crate::anatomy::anatomies(&Index::new(run));
    if rows.is_empty() {
        return None;
    }
    let keys: Vec<Line> = rows.iter().map(AnatomyRow::line).collect();
    let line = |(row, key): (&AnatomyRow, &Line)| {
        let mut line = named(key, DASH);
        line.push(significant(row.size_bytes as f64, 1));
        line.push(micros(Some(row.one_way_ns as f64)));
        line.extend(row.parts().map(|part| micros(part.map(|ns| ns as f64))));
        line.push(micros(Some(row.rest_ns as f64).filter(|rest| *rest > 0.0)));
        line
    };
    let mut sheet = Sheet {
        heads: ANATOMY.map(Into::into).to_vec(),
        lines: rows.iter().zip(&keys).map(line).collect(),
        keys: 7,
        first: 3,
        words: 6,
        loose: false,
    };
    sheet.leave_out_marked(alike(&keys));
    let legend = "Where a message's time goes, by the kernel's time stamps: the mean of the middle half of each repetition's messages, \
        so that the parts add up. Send call: to the packet scheduler; queue: to the driver; wire: to the peer's kernel; \
                  wake-up: until the reader runs; receive call: until it has the message; rest: not attributed.";
    Some(format!(
        "{}\n\n{}",
        sheet.text(width),
        wrapped(legend, width, "")
    ))
}

const ANATOMY: [&str; 14] = [
    "network",
    "path",
    "method",
    "with",
    "completion",
    "load",
    "size\nB",
    "one way\nµs",
    "send call\nµs",
    "queue\nµs",
    "wire\nµs",
    "wake-up\nµs",
    "receive\nµs",
    "rest\nµs",
];

/// The sweep of a run: the rate against the program's buffer for each combination of settings, then the receiver's CPU time
/// a byte; none where only one buffer and setting was measured.
pub fn sweep_table(run: &Run, width: usize) -> Option<String> {
    let curves = crate::sweep::sweep(run);
    let first = curves.first()?;
    let sizes: BTreeSet<u64> = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.size_bytes))
        .collect();
    let keys = |curve: &SweepCurve| {
        vec![
            plain(&curve.network),
            plain(&curve.by()),
            plain(&curve.setting()),
        ]
    };
    let mega = |bps: f64| significant(bps / 1e6, 4);
    let at = |curve: &SweepCurve, size: u64| {
        curve
            .points
            .iter()
            .find(|point| point.size_bytes == size)
            .cloned()
    };
    let line = |curve: &SweepCurve| {
        let mut line = keys(curve);
        line.push(mega(curve.plateau_bps.0));
        line.push(bytes(curve.knee_bytes));
        line.push(match (curve.knee_low, curve.knee_high) {
            (Some(low), Some(high)) => format!("{} – {}", bytes(low), bytes(high)),
            _ => DASH.into(),
        });
        line.push(curve.bound_bps.map_or(DASH.into(), |bps| mega(bps.0)));
        let rates = sizes
            .iter()
            .map(|size| at(curve, *size).map_or(DASH.into(), |point| mega(point.bps.0)));
        line.extend(rates);
        line
    };
    let cpu = |curve: &SweepCurve| {
        let mut line = keys(curve);
        let times = sizes.iter().map(|size| {
            let point = at(curve, *size);
            let part =
                |time: Option<Number>| time.map_or(DASH.into(), |time| significant(time.0, 2));
            point.map_or(DASH.into(), |point| {
                format!("{} / {}", part(point.cpu_src), part(point.cpu_dst))
            })
        });
        line.extend(times);
        line
    };
    let heads = |more: &[&str]| {
        let mut heads: Vec<String> = ["network", "path", "setting"]
            .iter()
            .chain(more)
            .map(|head| (*head).into())
            .collect();
        heads.extend(sizes.iter().map(|size| bytes(*size)));
        heads
    };
    let sheet = |heads: Vec<String>, lines: Vec<Vec<String>>, first| {
        let mut sheet = Sheet {
            heads,
            lines,
            keys: 3,
            first,
            words: 3,
            loose: false,
        };
        sheet.first = sheet.first.min(sheet.heads.len() - sheet.keys);
        sheet.text(width)
    };
    let rates = sheet(
        heads(&["plateau", "knee", "95 % interval", "window/RTT"]),
        curves.iter().map(line).collect(),
        4,
    );
    let times = sheet(heads(&[]), curves.iter().map(cpu).collect(), usize::MAX);
    let legend = format!(
        "Mb/s by bytes of each call; the knee is the smallest call that reaches {} of the plateau. Below: CPU time of sender / \
         receiver, ns per byte.",
        crate::share(crate::PLATEAU)
    );
    // Of several each line says its own.
    let wait = first
        .wait
        .as_deref()
        .filter(|_| curves.iter().all(|curve| curve.wait == first.wait))
        .map_or(String::new(), |wait| format!(", {}", completion(wait)));
    Some(format!(
        "sweep{wait}\n{rates}\n\n{}\n\n{times}",
        wrapped(&legend, width, "")
    ))
}

/// What load adds to latency, a line a cell; `None` where nothing was measured both loaded and idle.
pub fn queueing_table(run: &Run, width: usize) -> Option<String> {
    let rows = crate::queueing::queueing(&Index::new(run));
    if rows.is_empty() {
        return None;
    }
    let keys: Vec<Line> = rows.iter().map(QueueingRow::line).collect();
    let ns = |ns: i64| micros(Some(ns as f64));
    let line = |(row, key): (&QueueingRow, &Line)| {
        let interval = match (row.ci95_low_ns, row.ci95_high_ns) {
            (Some(low), Some(high)) => format!("{} – {}", ns(low), ns(high)),
            _ => DASH.into(),
        };
        let agrees = match row.agrees() {
            Some(true) => "within",
            Some(false) => "outside",
            None => DASH,
        };
        let mut line = named(key, DASH);
        line.extend([
            significant(row.size_bytes as f64, 1),
            micros(Some(row.idle_ns as f64)),
            micros(Some(row.loaded_ns as f64)),
            ns(row.waits_ns),
            interval,
            row.model_waits_ns().map_or(DASH.into(), ns),
            agrees.into(),
        ]);
        line
    };
    let mut sheet = Sheet {
        heads: QUEUEING.map(Into::into).to_vec(),
        lines: rows.iter().zip(&keys).map(line).collect(),
        keys: 7,
        first: 3,
        words: 6,
        loose: false,
    };
    sheet.leave_out_marked(alike(&keys));
    let legend = "One-way latency (RTT/2), warm; waits: loaded less idle, with its 95 % interval; model: the same on the virtual clock, \
                  for messages of one frame, and whether it lies in the interval.";
    Some(format!(
        "{}\n\n{}",
        sheet.text(width),
        wrapped(legend, width, "")
    ))
}

const QUEUEING: [&str; 13] = [
    "network",
    "path",
    "method",
    "with",
    "completion",
    "load",
    "size\nB",
    "idle\nµs",
    "loaded\nµs",
    "waits\nµs",
    "95 % interval\nµs",
    "model\nµs",
    "model is\n ",
];

/// Every row with its median, interval, extremes and count. What all rows share stands above them once.
pub fn rows_table(rows: &[ResultRow], width: usize) -> String {
    if rows.is_empty() {
        return "Nothing was measured.".into();
    }
    let factors: [Factor; 10] = [
        ("probe", probe),
        ("network", |row| plain(&row.network)),
        ("path", |row| plain(&row.path)),
        ("method", |row| plain(row.method.as_deref().unwrap_or(DASH))),
        ("with", |row| with(&row.knobs)),
        ("completion", |row| {
            plain(row.wait.as_deref().unwrap_or(DASH))
        }),
        ("load", |row| plain(row.load.as_deref().unwrap_or(DASH))),
        ("from", |row| plain(row.src.as_deref().unwrap_or(DASH))),
        ("to", |row| plain(row.dst.as_deref().unwrap_or(DASH))),
        ("repetitions", |row| row.launches.to_string()),
    ];
    let (same, differ): (Vec<_>, Vec<_>) = factors
        .into_iter()
        .partition(|(_, of)| rows.iter().all(|row| of(row) == of(&rows[0])));
    let mut text = String::new();
    for (name, of) in same {
        let value = of(&rows[0]);
        if value != DASH {
            let gap = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{gap}{name} {value}"); // Writing to a String cannot fail.
        }
    }
    text = wrapped(&text, width, "");
    let mut heads: Vec<String> = differ.iter().map(|(name, _)| (*name).into()).collect();
    heads.extend(FIGURES.map(Into::into));
    let lines = rows.iter().map(|row| {
        let factors = differ.iter().map(|(_, of)| of(row));
        factors.chain(figures(row)).collect()
    });
    let sheet = Sheet {
        heads,
        lines: lines.collect(),
        keys: differ.len() + 3,
        first: 3,
        words: differ.len() + 2,
        loose: false,
    };
    let _ = write!(text, "\n{}", sheet.text(width));
    for reason in reasons(rows) {
        let _ = write!(text, "\n{}", wrapped(&reason, width, ""));
    }
    text.trim_start().to_string()
}

/// What else was set, as `law=constant rate=1000`.
fn with(knobs: &KnobValues) -> String {
    let knobs: Vec<String> = knobs
        .iter()
        .map(|(name, value)| format!("{}={}", plain(name), plain(value)))
        .collect();
    if knobs.is_empty() {
        DASH.into()
    } else {
        knobs.join(" ")
    }
}

fn probe(row: &ResultRow) -> String {
    let mode = row.mode.as_deref().map(|mode| format!(" {mode}"));
    plain(&format!("{}{}", row.probe, mode.unwrap_or_default()))
}

const FIGURES: [&str; 9] = [
    "phase",
    "quantity",
    "size B",
    "p50",
    "95 % interval",
    "n",
    "min",
    "p99",
    "max",
];

fn figures(row: &ResultRow) -> [String; 9] {
    let (quantity, scale) = shown(row);
    let figure = |number: Option<Number>| scaled(number.map(|number| number.0), scale, 4);
    let phase = match (row.phase, row.step) {
        (None, _) => DASH.to_string(),
        (Some(Phase::Cold), None) => "cold".into(),
        (Some(Phase::Warm), None) => "warm".into(),
        (Some(_), Some(step)) => match step {
            Step::Neighbour => "neighbour",
            Step::Vc => "vc",
            Step::Connect => "connect",
            Step::First => "first",
            Step::Second => "second",
            Step::Idle => "idle",
            Step::Spawn => "spawn",
            Step::Init => "init",
        }
        .into(),
    };
    let interval = match (row.ci95_low, row.ci95_high) {
        (Some(_), Some(_)) => format!("{} – {}", figure(row.ci95_low), figure(row.ci95_high)),
        _ => DASH.into(),
    };
    let samples = match row.status {
        Status::Measured => significant(row.samples as f64, 1),
        Status::Failed => "failed".into(),
        Status::Skipped => "skipped".into(),
    };
    [
        phase,
        quantity.into(),
        row.size_bytes
            .map_or(DASH.into(), |size| significant(size as f64, 1)),
        figure(row.p50),
        interval,
        samples,
        figure(row.min),
        figure(row.p99),
        figure(row.max),
    ]
}

/// Why rows are not measured, or what to know of them; each reason once.
fn reasons(rows: &[ResultRow]) -> Vec<String> {
    let mut all: Vec<(&str, usize)> = Vec::new();
    for reason in rows.iter().filter_map(|row| row.reason.as_deref()) {
        match all.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => all.push((reason, 1)),
        }
    }
    all.into_iter()
        .map(|(reason, count)| match count {
            1 => plain(reason),
            count => format!("{} ({count} rows)", plain(reason)),
        })
        .collect()
}

/// The findings, warnings first, each with its figures and what to do.
pub fn findings_text(view: &View, width: usize) -> String {
    if view.findings.is_empty() {
        return "No findings.".into();
    }
    let mut text = String::new();
    for (at, finding) in view.findings.iter().enumerate() {
        let severity = match finding.severity {
            Severity::Note => "note",
            Severity::Advice => "advice",
            Severity::Warning => "warning",
        };
        let sentence = format!("{} [{}]", plain(&finding.sentence), plain(&finding.rule));
        let sentence = wrapped(&sentence, width, INDENT);
        let _ = writeln!(text, "{severity:<9}{}", sentence.trim_start());
        // What is to be done about several of one rule is said after the last of them.
        let again = view
            .findings
            .get(at + 1)
            .is_some_and(|next| next.rule == finding.rule && next.remedy == finding.remedy);
        let rest = [
            ("=", finding.arithmetic.as_deref()),
            ("→", finding.remedy.as_deref().filter(|_| !again)),
        ];
        for (mark, part) in rest {
            if let Some(part) = part {
                let line = format!("{mark} {}", plain(part));
                let _ = writeln!(text, "{}", wrapped(&line, width, INDENT));
            }
        }
    }
    text.trim_end().to_string()
}

pub(crate) const INDENT: &str = "         ";

/// Words in lines of at most `width`, each after `indent`; a word that is longer stands alone, and what is between backquotes
/// is one word, so that it can be copied. At most 120 columns, since longer lines are hard to read.
pub fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let room = width.clamp(40, 120) - indent.len();
    let mut quoted = false;
    let words = text.split(|c: char| {
        quoted ^= c == '`';
        c == ' ' && !quoted
    });
    let mut lines: Vec<String> = vec![String::new()];
    for word in words.filter(|word| !word.is_empty()) {
        let last = lines.last_mut().expect("there is a first line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= room {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.into());
        }
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("{indent}{line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
