//! What a campaign shows while it runs on a terminal: a bar, the time left, what is measured now, the latest medians, and how far
//! they can be trusted so far.
//!
//! Model:   two lines below what was printed. The bar is of guessed times; the time left is what is guessed for the rest times how
//!          much longer than guessed the part before it took. A figure is the median of the medians of a cell's launches, as the
//!          tables have it; the latest cells of the network at hand are shown, each once. The trust is that of
//!          [`sonde_report::Tally`]: it costs nothing beside the measurements. Nothing is shown on a pipe; without colours where
//!          NO_COLOR is set.
//! Checked: `figures_are_the_latest_medians`, `the_time_left_follows_what_was_guessed`; `tests/lab_progress.rs`, on a terminal and on
//!          a pipe.

use crate::failure::Failure;
use crate::layout::Block;
use crate::plan::{Mode, ProbeKind};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use sonde_measure::{CellRecord, LaunchRecord, Quantity, Run};
use sonde_report::{Tally, TrustLevel, bytes, figure};
use sonde_sys::thread;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The most cells whose figures are shown.
const SHOWN: usize = 4;

/// The bar and what stands below it.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    tally: Tally,
    figures: Figures,
}

impl Progress {
    /// Of launches that take so long by a guess; nothing is shown before the first of them.
    ///
    /// # Errors
    /// The layout is not one, which is a defect.
    pub fn new(guessed_ns: u64) -> Result<Self, Failure> {
        let tally = Tally::default();
        Ok(Self {
            bar: ProgressBar::new(guessed_ns).with_style(style(tally)?),
            began: Instant::now(),
            tally,
            figures: Figures::default(),
        })
    }

    /// Turns the spinner until the bar is finished. Without a thread for it, it stands still.
    pub fn turn_spinner(&self) {
        let bar = self.bar.clone();
        let turn = move || {
            while !bar.is_finished() {
                bar.tick();
                std::thread::sleep(Duration::from_millis(200));
            }
        };
        if !self.bar.is_hidden() {
            drop(thread::start("the spinner", turn));
        }
    }

    /// What is measured now.
    pub fn begins(&self, now: &str) {
        let all = self.bar.length().unwrap_or(0);
        let left = left(self.bar.position(), all, self.began.elapsed());
        self.bar.set_message(format!("{left} left; {now}"));
    }

    /// What is guessed for a launch is over.
    pub fn ended(&self, guessed_ns: u64) {
        self.bar.inc(guessed_ns);
    }

    /// More is to be measured.
    pub fn grows(&self, guessed_ns: u64) {
        self.bar.inc_length(guessed_ns);
    }

    /// What the last `count` launches of the run, which are of a block on a network, gave.
    pub fn saw(&mut self, network: &str, block: &Block, run: &Run, count: usize) {
        if self.bar.is_hidden() {
            return;
        }
        let from = run.launches.len().saturating_sub(count);
        let records = run.launches.get(from..).unwrap_or_default();
        // Flows that went together have one emulation.
        if let Some(first) = records.first() {
            self.tally.add(first);
        }
        self.figures.add(network, block, records);
        // A layout that was taken once is taken again.
        if let Ok(style) = style(self.tally) {
            self.bar.set_style(style);
        }
        self.bar.set_prefix(self.figures.words());
    }

    /// Prints something above the bar.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes it away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The layout, with the trust in its colour.
fn style(tally: Tally) -> Result<ProgressStyle, Failure> {
    let colour = match tally.level() {
        TrustLevel::High => "green",
        TrustLevel::Medium => "yellow",
        TrustLevel::Low => "red",
    };
    let template = format!(
        "{{spinner}} {{percent:>3}} % {{wide_bar}} {{msg}}\n  {{trust:.{colour}}}{{prefix}}"
    );
    let words = tally.words();
    let trust = move |_: &ProgressState, to: &mut dyn Write| {
        // Writing to a String cannot fail.
        let _ = to.write_str(&words);
    };
    let style = ProgressStyle::with_template(&template).map_err(Failure::cannot)?;
    Ok(style.with_key("trust", trust))
}

/// The medians of cells, and which of them were measured last.
#[derive(Debug, Default)]
struct Figures {
    medians: BTreeMap<String, Vec<u64>>,
    /// What is shown of each network, the latest first: what, and its figure.
    latest: BTreeMap<String, VecDeque<(String, String)>>,
    /// The network at hand.
    network: String,
}

impl Figures {
    fn add(&mut self, network: &str, block: &Block, records: &[LaunchRecord]) {
        network.clone_into(&mut self.network);
        let quantity = block.quantity();
        let mut of_launch: Vec<(&str, u64)> = Vec::new();
        for result in records.iter().flat_map(|record| &record.results) {
            let series = result.series.iter().find(|one| one.quantity == quantity);
            let median = series.and_then(|one| one.series.median());
            if let Some(median) = median.filter(|_| result.failure.is_none()) {
                of_launch.push((&result.cell, median));
            }
        }
        if block.rounds().is_some() {
            let all = of_launch.iter().map(|(_, median)| *median).collect();
            if let Some(median) = middle(all) {
                let what = format!("{} flows", of_launch.len());
                self.show(what, &figure(quantity, median as f64));
            }
            return;
        }
        for (cell, median) in &of_launch {
            let known = self.medians.entry((*cell).into()).or_default();
            known.push(*median);
        }
        if let Some((cell, words)) = told(block) {
            let medians = self.medians.get(&cell.id).cloned().unwrap_or_default();
            if let Some(median) = middle(medians) {
                self.show(words, &figure(quantity, median as f64));
            }
        }
    }

    fn show(&mut self, what: String, figure: &str) {
        let latest = self.latest.entry(self.network.clone()).or_default();
        latest.retain(|(known, _)| *known != what);
        latest.push_front((what, figure.into()));
        latest.truncate(SHOWN);
    }

    /// The latest figures: `, wire: tcp latency of 8 B 43.1 µs, ...`; nothing before the first.
    fn words(&self) -> String {
        let all = self.latest.get(&self.network).into_iter().flatten();
        let all: Vec<String> = all
            .map(|(what, figure)| format!("{what} {figure}"))
            .collect();
        match all.is_empty() {
            true => String::new(),
            false => format!("; {}: {}", self.network, all.join(", ")),
        }
    }
}

/// The median; the lower one of two.
fn middle(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// The cell of a block that is told of, and what it is: the smallest message of a latency, else the largest.
fn told(block: &Block) -> Option<(&CellRecord, String)> {
    let is_of_time = matches!(block.quantity(), Quantity::LatencyNs | Quantity::StartupNs);
    let cells = block.cells.iter().filter(|cell| cell.skipped.is_none());
    let cell = match is_of_time {
        true => cells.min_by_key(|cell| cell.factors.size_bytes),
        false => cells.max_by_key(|cell| cell.factors.size_bytes),
    }?;
    let what = match (block.kind(), block.mode()) {
        (_, Some(Mode::Stream)) => "stream".into(),
        (_, Some(Mode::Message)) => format!("messages of {}", bytes(cell.factors.size_bytes)),
        (ProbeKind::Npb | ProbeKind::Messages | ProbeKind::Check, _) => block.kind().name().into(),
        (kind, _) => format!("{} of {}", kind.name(), bytes(cell.factors.size_bytes)),
    };
    Some((cell, format!("{} {what}", block.path().name())))
}

/// The time left, by how much longer than guessed launches have taken so far.
fn left(at: u64, all: u64, elapsed: Duration) -> String {
    let guessed = Duration::from_nanos(all.saturating_sub(at));
    let left = match elapsed.as_nanos().checked_div(u128::from(at)) {
        Some(_) if at > all / 50 => guessed.mul_f64(elapsed.as_nanos() as f64 / at as f64),
        _ => guessed,
    };
    let seconds = left.as_secs() + 1;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{blocks, tests::net};
    use crate::plan::{Plan, ProbePlan, Repeat, TestbedPlan};
    use crate::{any_path::AnyPath, plan::Kind};
    use sonde_measure::{CellResult, Measurement, Phase};

    /// The blocks of a latency of two sizes and of a stream.
    fn measured() -> Vec<Block> {
        let mut stream = ProbePlan::new(ProbeKind::Throughput, &[AnyPath::TCP], &["64KiB"]);
        stream.mode = Some(Mode::Stream);
        let probes = vec![
            ProbePlan::new(ProbeKind::Latency, &[AnyPath::TCP], &["8", "1KiB"]),
            stream,
        ];
        let testbed = TestbedPlan {
            kind: Kind::Lab,
            ..TestbedPlan::default()
        };
        let plan = Plan::new(testbed, probes, Repeat::default()).filled();
        blocks(&plan, &[net("ethernet-100")]).unwrap()
    }

    fn launch(block: &Block, value: u64) -> LaunchRecord {
        let result = |cell: &CellRecord| CellResult {
            cell: cell.id.clone(),
            series: vec![Measurement {
                touched: None,
                quantity: block.quantity(),
                phase: Phase::Warm,
                step: None,
                series: std::iter::once(value).collect(),
                reason: None,
            }],
            ..CellResult::default()
        };
        LaunchRecord {
            results: block.cells.iter().map(result).collect(),
            ..LaunchRecord::default()
        }
    }

    #[test]
    fn figures_are_the_latest_medians() {
        let all = measured();
        let (latency, stream) = (&all[0], &all[1]);
        let mut figures = Figures::default();
        assert_eq!(figures.words(), "");
        for ns in [40_000, 90_000, 43_000] {
            figures.add("lan", latency, &[launch(latency, ns)]);
        }
        assert_eq!(figures.words(), "; lan: tcp latency of 8 B 43.00 µs");
        figures.add("lan", stream, &[launch(stream, 94_000_000)]);
        assert_eq!(
            figures.words(),
            "; lan: tcp stream 94.00 Mb/s, tcp latency of 8 B 43.00 µs"
        );
        // What failed gives no figure, and another network has its own.
        let mut failed = launch(stream, 1);
        failed.results[0].failure = Some("h2 is gone".into());
        figures.add("lan", stream, &[failed]);
        assert!(figures.words().contains("stream 94.00 Mb/s"));
        figures.add("wan", stream, &[launch(stream, 1_000_000)]);
        assert!(
            figures.words().starts_with("; wan: tcp stream "),
            "{figures:?}"
        );
        assert!(!figures.words().contains("latency"));
        figures.add("lan", stream, &[launch(stream, 96_000_000)]);
        assert_eq!(
            figures.words(),
            "; lan: tcp stream 94.00 Mb/s, tcp latency of 8 B 43.00 µs"
        );
    }

    #[test]
    fn the_time_left_follows_what_was_guessed() {
        let second = 1_000_000_000;
        let of = |at, seconds| left(at * second, 100 * second, Duration::from_secs(seconds));
        assert_eq!(of(0, 0), "1:41");
        // Too little is over to tell.
        assert_eq!(of(1, 60), "1:40");
        assert_eq!(of(50, 100), "1:41");
        assert_eq!(of(50, 25), "0:26");
    }
}
