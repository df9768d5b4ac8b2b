//! What a history says on a terminal: one sentence, each change with what changed beside it, and the rest as a table.
//!
//! Units:   changes of a level against the one before, in per cent.
//! Checked: `a_change_is_told_with_what_changed`, `few_runs_tell_nothing`; `lab_history.rs`.

use super::{Condition, Configuration, History, LevelChange};
use crate::compare::Change;
use crate::format::{counted, figure, share, utc};
use crate::index::median;
use crate::table::{sheet, wrapped};
use sonde_measure::Number;
use sonde_units::plain;

/// So many runs of a configuration tell a change from chance.
pub(super) const RUNS_MIN: usize = 6;
/// So many configurations without a change are listed unasked.
const LISTED: usize = 12;
/// So many conditions are named beside a change.
const CONDITIONS: usize = 6;
/// So many runs have a bar, the newest.
const BARS: usize = 30;
/// The bars from low to high.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// From the lowest bar to the highest there is this share at least, so that noise looks small.
const SPAN: f64 = 0.2;

/// What follows.
pub(super) fn sentence(history: &History) -> String {
    let all = &history.configurations;
    let runs = counted(history.runs.len() as u64, "run");
    if all.is_empty() {
        return format!("{runs}: the newest has no measured configuration.");
    }
    if history.is_short() {
        return format!(
            "{runs}: a change is told from chance where a configuration has {RUNS_MIN} or more."
        );
    }
    let last = |change: Change| {
        let last = all
            .iter()
            .filter_map(|one| Some((one, one.changes.last()?)));
        last.filter(move |(_, last)| last.change == change)
    };
    let told = [("worse", Change::Worse), ("better", Change::Better)].map(|(word, change)| {
        let most = last(change).max_by(|one, other| far(one.1).total_cmp(&far(other.1)))?;
        let count = last(change).count();
        let (one, at) = most;
        let (name, by) = (&one.name, percent(at.ratio));
        Some(match count {
            1 => format!("1 became {word} ({name}: {by})"),
            _ => format!("{count} became {word} (the most {name}: {by})"),
        })
    });
    let mut parts: Vec<String> = told.into_iter().flatten().collect();
    let same = all.iter().filter(|one| one.changes.is_empty()).count();
    if parts.is_empty() {
        parts.push("none changed".into());
    } else if same > 0 {
        parts.push(format!("{same} did not change"));
    }
    let configurations = counted(all.len() as u64, "configuration");
    format!("Of {configurations} in {runs} {}.", parts.join(", "))
}

fn far(change: &LevelChange) -> f64 {
    change.ratio.0.max(f64::MIN_POSITIVE).ln().abs()
}

fn percent(ratio: Number) -> String {
    format!("{:+.1} %", (ratio.0 - 1.0) * 100.0)
}

/// The history for a terminal; with `all` every configuration.
pub fn history_text(history: &History, all: bool, width: usize) -> String {
    let mut parts = vec![wrapped(&plain(&history.sentence), width, "")];
    if let (Some(first), Some(last)) = (history.runs.first(), history.runs.last()) {
        let span = format!(
            "From {} ({}) to {} ({}).",
            utc(first.began_unix_ns),
            plain(&first.run),
            utc(last.began_unix_ns),
            plain(&last.run)
        );
        parts.push(wrapped(&span, width, ""));
    }
    let (changed, same): (Vec<_>, Vec<_>) = history
        .configurations
        .iter()
        .partition(|one| !one.changes.is_empty());
    for one in &changed {
        parts.push(block(history, one, width));
    }
    if !same.is_empty() && (all || same.len() <= LISTED) {
        parts.push(format!("\n{}\n", table(&same, width)));
    }
    let known: Vec<f64> = same
        .iter()
        .filter_map(|one| one.detectable)
        .map(|share| share.0)
        .collect();
    let most = known.iter().copied().fold(0.0, f64::max);
    if let Some(middle) = median(known) {
        let what = match same.len() {
            1 => format!(
                "It would show a change of {} after two runs.",
                share(middle)
            ),
            _ => format!(
                "Two runs after a change half of those that did not change would show one of {}, all one of {}.",
                share(middle),
                share(most)
            ),
        };
        parts.push(wrapped(&what, width, ""));
    }
    if !all && same.len() > LISTED {
        let more = counted(same.len() as u64, "configuration");
        parts.push(wrapped(
            &format!("`--all` lists the {more} that did not change."),
            width,
            "",
        ));
    }
    parts.join("\n")
}

/// A configuration that changed.
fn block(history: &History, one: &Configuration, width: usize) -> String {
    let mut lines = vec![String::new(), wrapped(&plain(&one.name), width, "")];
    lines.push(format!("  {}", bars(one)));
    for change in &one.changes {
        let run = history.runs.get(change.run as usize);
        let ago = history.runs.len() as u64 - change.run;
        let word = match change.change {
            Change::Better => "better",
            _ => "worse",
        };
        let told = format!(
            "{word} since {}: {} to {} ({}), {} ago",
            run.map_or("?".into(), |run| plain(&run.run).to_string()),
            figure(one.quantity, change.before.0),
            figure(one.quantity, change.after.0),
            percent(change.ratio),
            counted(ago, "run")
        );
        lines.push(wrapped(&told, width.saturating_sub(2), "  "));
        if let Some(told) = conditions(&change.conditions) {
            lines.push(wrapped(&told, width.saturating_sub(4), "    "));
        }
    }
    lines.extend(one.trend.map(|share| format!("  {}", trend(share))));
    lines.join("\n")
}

fn trend(share: Number) -> String {
    format!(
        "its newest level moved by {:+.1} % from its first run to its last",
        share.0 * 100.0
    )
}

fn conditions(all: &[Condition]) -> Option<String> {
    let value = |value: &Option<String>| {
        value
            .as_ref()
            .map_or_else(|| "not there".into(), |value| plain(value).to_string())
    };
    let told = all.iter().take(CONDITIONS).map(|one| {
        let hosts = match one.hosts.is_empty() {
            true => String::new(),
            false => format!(" of {}", plain(&one.hosts.join(" "))),
        };
        let what = plain(&one.what);
        format!(
            "{what}{hosts}: {} before, {} now",
            value(&one.before),
            value(&one.after)
        )
    });
    let mut told: Vec<String> = told.collect();
    let more = all.len().saturating_sub(CONDITIONS);
    if more > 0 {
        told.push(format!("{more} more"));
    }
    (!told.is_empty()).then(|| format!("what else changed with it: {}", told.join("; ")))
}

/// A bar for each of the newest runs.
fn bars(one: &Configuration) -> String {
    let from = one.past.len().saturating_sub(BARS);
    let values: Vec<f64> = one.past.iter().skip(from).map(|past| past.p50.0).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let middle = f64::midpoint(low, high);
    let span = (high - low).max(SPAN * middle).max(f64::MIN_POSITIVE);
    let last = (BLOCKS.len() - 1) as f64;
    let block = |value: &f64| {
        let part = (value - middle) / span + 0.5;
        let at = (part * last).round().clamp(0.0, last) as usize;
        BLOCKS.get(at).copied().unwrap_or(' ')
    };
    values.iter().map(block).collect()
}

fn table(all: &[&Configuration], width: usize) -> String {
    let heads = [
        "configuration",
        "history",
        "runs",
        "latest",
        "trend\n%",
        "would show\n%",
    ];
    let lines = all.iter().map(|one| {
        let latest = one.past.last().map(|past| figure(one.quantity, past.p50.0));
        let percent = |share: Option<Number>| {
            share.map_or("-".into(), |share| format!("{:.1}", share.0 * 100.0))
        };
        vec![
            one.name.clone(),
            bars(one),
            one.past.len().to_string(),
            latest.unwrap_or_default(),
            percent(one.trend),
            percent(one.detectable),
        ]
    });
    sheet(&heads, lines).worded(2).text(width)
}
