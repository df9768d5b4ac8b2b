//! What a comparison says: one sentence, the factors in which the runs differ, and the cells of both as a table.
//!
//! Model:   the sentence names what became worse before what became better, each by its largest change; where nothing changed, the
//!          largest of what was seen, and how many more repetitions would find the change asked for. No cell is named by its id.
//! Units:   changes of the second run against the first, in per cent.
//! Checked: `the_sentence_comes_first`, `nothing_in_common_says_why`, `the_table_fits`.

use super::{Change, CompareRow, Comparison, Difference, Limits, SIGNIFICANCE};
use crate::format::{bytes, counted, significant};
use crate::table::{Sheet, quantity_name, wrapped};
use sonde_measure::{Factors, Line, Number, Run};
use sonde_units::plain;

/// So many values of a factor are shown.
const VALUES: usize = 4;
/// So many factors are named.
const NAMED: usize = 6;
/// So many cells that one run has alone are named.
const CELLS: usize = 3;

/// `latency of 64 B over tcp on wire`.
fn cell(probe: &str, mode: Option<&str>, line: &Line, size_bytes: u64) -> String {
    let mode = mode.map_or(String::new(), |mode| format!(" {mode}"));
    let size = match size_bytes {
        0 => String::new(),
        size => format!(" of {}", bytes(size)),
    };
    let load = line.load.as_ref();
    let load = load.map_or(String::new(), |load| format!(" under load {load}"));
    format!(
        "{probe}{mode}{size} over {} on {}{load}",
        line.by(),
        line.network
    )
}

/// A cell in words.
pub(crate) fn named(factors: &Factors) -> String {
    let line = factors.line();
    cell(
        &factors.probe,
        factors.mode.as_deref(),
        &line,
        factors.size_bytes,
    )
}

impl CompareRow {
    /// What its first cell is of, with the flow and stage of a pattern.
    fn line(&self) -> Line {
        Line {
            network: self.network.clone(),
            path: self.path.clone(),
            method: self.method.clone(),
            wait: self.wait.clone(),
            load: self.load.clone(),
            knobs: self.knobs.clone(),
        }
    }

    /// The cell in words, as `latency of 64 B over tcp on wire`.
    pub fn named(&self) -> String {
        cell(
            &self.probe,
            self.mode.as_deref(),
            &self.line(),
            self.size_bytes,
        )
    }

    /// The change of the medians, where there are intervals.
    fn size(&self) -> f64 {
        self.ratio.map_or(0.0, |ratio| ratio.0 - 1.0)
    }

    /// `+1.6 %, 95 % CI -3.9 to +7.4 %`.
    fn change(&self) -> String {
        let change = percent(self.ratio);
        match (self.ratio_low, self.ratio_high) {
            (Some(low), Some(high)) => format!(
                "{change} %, 95 % CI {} to {} %",
                percent(Some(low)),
                percent(Some(high))
            ),
            _ => format!("{change} %"),
        }
    }

    /// Repetitions that are missing in each run.
    fn more(&self) -> Option<u64> {
        let least = self.launches_a.min(self.launches_b);
        self.launches_wanted
            .map(|wanted| wanted.saturating_sub(least))
    }
}

fn percent(ratio: Option<Number>) -> String {
    ratio.map_or_else(
        || "-".into(),
        |ratio| format!("{:+.1}", (ratio.0 - 1.0) * 100.0),
    )
}

/// What follows from a comparison.
pub(super) fn sentence(rows: &[CompareRow], differences: &[Difference], limits: &Limits) -> String {
    if rows.is_empty() {
        return match differences.is_empty() {
            true => "Nothing was compared: the runs have no configuration in common.".into(),
            false => format!(
                "Nothing was compared: no configuration is the same in both runs; they differ in {}.",
                factors(differences)
            ),
        };
    }
    let of = |change: Change| rows.iter().filter(move |row| row.change == change);
    let all = rows.len();
    let largest = |change: Change| {
        of(change).max_by(|one, other| one.size().abs().total_cmp(&other.size().abs()))
    };
    let changed = [("worse", Change::Worse), ("better", Change::Better)];
    let mut parts: Vec<String> = Vec::new();
    for (word, change) in changed {
        let Some(row) = largest(change) else { continue };
        parts.push(match (of(change).count(), all) {
            (_, 1) => format!("{word}: {}, {}", row.named(), row.change()),
            (count, _) => format!(
                "{count} of {all} configurations {word} (the most {}: {})",
                row.named(),
                row.change()
            ),
        });
    }
    if parts.is_empty() {
        parts.extend(largest(Change::Same).map(|row| match all {
            1 => format!("no significant change: {}", row.change()),
            _ => format!(
                "no significant change in {} (the largest {}: {})",
                counted(of(Change::Same).count() as u64, "configuration"),
                row.named(),
                row.change()
            ),
        }));
    }
    match of(Change::Unsure).count() {
        0 => {}
        unsure if unsure == all => parts.push("too few repetitions to say what changed".into()),
        unsure => parts.push(format!("{unsure} of {all} have too few repetitions")),
    }
    let more = rows
        .iter()
        .filter_map(CompareRow::more)
        .max()
        .filter(|more| *more > 0);
    parts.extend(more.map(|more| {
        let share = limits.detect_per_mille as f64 / 10.0;
        format!(
            "a {share} % change would need {}",
            counted(more, "more repetition")
        )
    }));
    let share = limits.detect_per_mille as f64 / 1_000.0;
    let hopeless = rows
        .iter()
        .filter(|row| row.equal_runs_apart.is_some_and(|apart| apart.0 >= share));
    match hopeless.count() {
        0 => {}
        count => parts.push(format!(
            "equal runs differ by {} % or more in {count} of {all}, where more repetitions do not help: \
             see `sonde report history`",
            share * 100.0
        )),
    }
    let text = parts.join("; ");
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// How far apart equal runs are.
fn equal_runs(rows: &[CompareRow]) -> String {
    let known: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(row.equal_runs_apart?.0))
        .collect();
    let least = known.iter().copied().reduce(f64::min);
    let most = known.iter().copied().reduce(f64::max);
    let per_cent = |share: f64| significant(share * 100.0, 2);
    match (least, most) {
        (Some(least), Some(most)) if per_cent(least) == per_cent(most) => format!(
            "Equal runs differ by up to {} % here, as the other runs say.",
            per_cent(most)
        ),
        (Some(least), Some(most)) => format!(
            "Equal runs differ by up to {} % to {} % here, depending on the configuration, as the other runs say.",
            per_cent(least),
            per_cent(most)
        ),
        _ => "How far equal runs differ here is not known: measure the baseline twice or more."
            .into(),
    }
}

/// `network (wire; fddi), profile (modern; era)`.
fn factors(differences: &[Difference]) -> String {
    let values = |all: &[String]| {
        let shown = all
            .iter()
            .take(VALUES)
            .map(|value| plain(value).to_string());
        let more = (all.len() > VALUES).then(|| "...".to_owned());
        let shown: Vec<String> = shown.chain(more).collect();
        if shown.is_empty() {
            "none".into()
        } else {
            shown.join(", ")
        }
    };
    let one = |one: &Difference| {
        format!(
            "{} ({}; {})",
            plain(&one.factor),
            values(&one.a),
            values(&one.b)
        )
    };
    let mut all: Vec<String> = differences.iter().take(NAMED).map(one).collect();
    let more = differences.len().saturating_sub(NAMED);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    all.join(", ")
}

/// What is said beside the rows of a comparison.
pub(crate) struct Beside {
    /// Configurations of the first run alone.
    pub(crate) only_a: Vec<String>,
    /// Those of the second.
    pub(crate) only_b: Vec<String>,
    /// How far apart equal runs are.
    pub(crate) equal_runs: String,
    /// How configurations that differ can be compared.
    pub(crate) remedy: Option<String>,
}

/// What is said beside the rows of a comparison of these runs.
pub(crate) fn beside(comparison: &Comparison, runs: [&Run; 2]) -> Beside {
    let only = |run: &Run, only: &[String]| {
        let cells = run.cells.iter().filter(|cell| only.contains(&cell.id));
        cells.map(|cell| named(&cell.factors)).collect()
    };
    let differences = &comparison.differences;
    Beside {
        only_a: only(runs[0], &comparison.only_a),
        only_b: only(runs[1], &comparison.only_b),
        equal_runs: equal_runs(&comparison.rows),
        remedy: (!differences.is_empty()).then(|| remedy(differences)),
    }
}

/// The comparison for a terminal: the sentence, what both have, and what one has alone.
pub fn compare_table(comparison: &Comparison, runs: [&Run; 2], width: usize) -> String {
    let ids = format!(
        "A: {}, B: {}",
        plain(&comparison.run_a),
        plain(&comparison.run_b)
    );
    let mut parts = vec![
        wrapped(&plain(&comparison.sentence), width, ""),
        wrapped(&ids, width, ""),
    ];
    if !comparison.rows.is_empty() {
        parts.push(format!("\n{}\n", table(&comparison.rows, width)));
        let count = comparison.rows.len();
        let differ = comparison
            .rows
            .iter()
            .filter(|row| matches!(row.change, Change::Better | Change::Worse));
        let legend = format!(
            "{} in both runs; significant changes: {} (of equal runs, any at all in one comparison of {}). Medians; change: of B \
             against A; ~: no significant change, or one below the threshold. {}",
            counted(count as u64, "configuration"),
            differ.count(),
            (1.0 / SIGNIFICANCE).round(),
            equal_runs(&comparison.rows),
        );
        parts.push(wrapped(&legend, width, ""));
    }
    let sides = [("A", &comparison.only_a), ("B", &comparison.only_b)];
    for ((name, only), run) in sides.into_iter().zip(runs) {
        if only.is_empty() {
            continue;
        }
        let known = run
            .cells
            .iter()
            .filter(|cell| only.contains(&cell.id))
            .take(CELLS);
        let mut shown: Vec<String> = known
            .map(|cell| plain(&named(&cell.factors)).to_string())
            .collect();
        let more = only.len() - shown.len();
        if more > 0 {
            shown.push(format!("{more} more"));
        }
        let count = counted(only.len() as u64, "configuration");
        parts.push(wrapped(
            &format!("Only in {name}, {count}: {}.", shown.join("; ")),
            width,
            "",
        ));
    }
    if !comparison.differences.is_empty() {
        // The sentence has them where nothing was compared.
        if !comparison.rows.is_empty() {
            let text = format!("These differ in {}.", factors(&comparison.differences));
            parts.push(wrapped(&text, width, ""));
        }
        parts.push(wrapped(&remedy(&comparison.differences), width, ""));
    }
    parts.join("\n")
}

/// How cells that differ can be compared.
fn remedy(differences: &[Difference]) -> String {
    let fixed = differences.iter().find(|one| !one.may_differ);
    match fixed {
        Some(fixed) => format!(
            "Configurations of another {} are never compared: measure the same again.",
            plain(&fixed.factor)
        ),
        None => {
            let names = differences.iter().map(|one| plain(&one.factor).to_string());
            let names: Vec<String> = names.collect();
            format!("`--ignore {}` compares them all the same.", names.join(","))
        }
    }
}

fn table(rows: &[CompareRow], width: usize) -> String {
    let heads = [
        "network",
        "probe",
        "path",
        "load",
        "size\nB",
        "quantity",
        "A",
        "B",
        "change\n%",
        "95 % CI\n%",
        "result",
    ];
    const LOAD: usize = 3;
    let mut sheet = Sheet {
        heads: heads.map(Into::into).to_vec(),
        lines: rows.iter().map(line).collect(),
        keys: LOAD + 2,
        first: 3,
        words: LOAD + 1,
        loose: true,
    };
    sheet.leave_out_marked([(LOAD, rows.iter().all(|row| row.load.is_none()))]);
    sheet.text(width)
}

fn line(row: &CompareRow) -> Vec<String> {
    let interval = match (row.ratio_low, row.ratio_high) {
        (Some(low), Some(high)) => format!("{} to {}", percent(Some(low)), percent(Some(high))),
        _ => "-".into(),
    };
    let more = row.more().filter(|more| *more > 0);
    let more = more.map(|more| format!("; needs {}", counted(more, "more repetition")));
    let word = match row.change {
        Change::Better => "better",
        Change::Worse => "worse",
        Change::Same => "~",
        Change::Unsure => "too few repetitions",
    };
    let mode = row.mode.as_deref().map(|mode| format!(" {mode}"));
    vec![
        plain(&row.network),
        format!("{}{}", plain(&row.probe), plain(&mode.unwrap_or_default())),
        plain(&row.line().by()),
        plain(row.load.as_deref().unwrap_or("-")),
        match row.size_bytes {
            // What has no message of a size, as a kernel.
            0 => "-".into(),
            size => size.to_string(),
        },
        quantity_name(row.quantity),
        significant(row.p50_a.0, 4),
        significant(row.p50_b.0, 4),
        percent(row.ratio),
        interval,
        format!("{word}{}", more.unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::compare;
    use super::super::tests::{STEADY, run, times};
    use super::*;
    use crate::Chronicle;

    fn said(a: &[u64], b: &[u64]) -> String {
        let found = compare(
            &run("a", "wire", a),
            &run("b", "wire", b),
            &Chronicle::default(),
            &Limits::default(),
        );
        found.unwrap().sentence
    }

    #[test]
    fn the_sentence_comes_first() {
        let worse = said(&STEADY, &times(1_050));
        assert!(
            worse.starts_with("Worse: latency of 1 B over tcp on wire, +5.0 %, 95 % CI +4."),
            "{worse}"
        );
        assert!(said(&STEADY, &times(900)).starts_with("Better: latency"));
        let same = said(&STEADY, &STEADY);
        assert!(
            same.starts_with("No significant change: +0.0 %, 95 % CI -0."),
            "{same}"
        );
        let wild = [1_000, 1_400, 800, 1_200, 900, 1_100];
        let wide = said(&wild, &wild);
        assert!(
            wide.contains("; a 5 % change would need ") && wide.ends_with(" more repetitions."),
            "{wide}"
        );
        let few = said(&STEADY[..3], &STEADY[..3]);
        assert!(
            few.starts_with("Too few repetitions to say what changed; a 5 % change"),
            "{few}"
        );
    }

    #[test]
    fn nothing_in_common_says_why() {
        let (a, b) = (run("a", "wire", &STEADY), run("b", "wan", &STEADY));
        let found = compare(&a, &b, &Chronicle::default(), &Limits::default()).unwrap();
        let text = compare_table(&found, [&a, &b], 120);
        assert!(
            text.starts_with("Nothing was compared: no configuration is the same in both runs;"),
            "{text}"
        );
        assert!(text.contains("differ in network (wire; wan)."), "{text}");
        assert!(text.contains("`--ignore network` compares them"), "{text}");
        assert!(
            text.contains("Only in A, 1 configuration: latency of 1 B over tcp on wire."),
            "{text}"
        );
        assert!(!text.contains(&a.cells[0].id), "no hash: {text}");
    }

    #[test]
    fn the_table_fits() {
        let (a, b) = (run("a", "wire", &STEADY), run("b", "wire", &times(1_050)));
        let found = compare(&a, &b, &Chronicle::default(), &Limits::default()).unwrap();
        for width in [40, 80, 132] {
            let text = compare_table(&found, [&a, &b], width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= width, "{width}:\n{text}");
            assert!(text.starts_with("Worse: latency"), "{text}");
        }
    }
}
