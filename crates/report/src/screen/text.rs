//! An assessment as text: at most 24 lines of 80 columns.
//!
//! Model:   the head, the trust, the verdict on all pairs and the networks have their lines; what is lost gets those that are left, at most two an entry. What does
//!          not fit is left out from its end, clause by clause, and counted where it is an entry. A figure that is null is a dash,
//!          one that is not distinguishable from 0 a question mark; `~` marks what a disturbance leaves uncertain.
//! Units:   µs; bits a second, decimal; per cent.
//! Checked: the tests of `screen`; `tests/screen.rs` of the command.

use sonde_measure::{Judged, Testbed};

use super::{AssessedFiles, AssessedNetwork, Assessment, Figures, OneWay, Scope};
use crate::format::{bytes, lasted, significant};
use crate::lost::LostAt;
use crate::table::wrapped;
use crate::words::lost::distance;
use sonde_units::plain;

/// The most lines.
pub const LINES: usize = 24;
/// The most columns.
pub const COLUMNS: usize = 80;
/// The most networks; the others are counted.
const NETWORKS: usize = 6;
/// The most lines of an entry.
const ENTRY: usize = 2;
/// So many of the largest keep them where there is no room for all.
const WHOLE: usize = 2;
/// The most lines of the verdict on all pairs: where one thing stands out, and of each of several.
const PAIRS: (usize, usize) = (3, 2);
/// The most lines of what to do.
const NEXT: usize = 2;
/// The indentation of what follows a word in capitals.
const INDENT: usize = 9;
/// The same of a loss, after its number and name.
const LOSS: usize = 13;
const STREAM: usize = 20;
const ONE_WAY: usize = 18;
const KERNEL: usize = 5;
/// From this part on a message is the line's.
const DISTANCE: f64 = 0.9;
const DASH: &str = "-";
/// What `~` says.
const UNCERTAIN: &str = "~ uncertain";

/// Where the rest of a run is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file of the page; none where there is none.
    pub page: Option<String>,
    /// What names the run's store to `sonde report`, as ` --out DIR`; empty where that is not needed.
    pub options: String,
}

impl Assessment {
    /// The screen.
    pub fn text(&self, place: &Place) -> String {
        let mut lines = vec![self.head()];
        lines.extend(self.trusted());
        lines.extend(self.pairs());
        lines.extend(self.measured());
        lines.extend(self.files());
        let last = self.last(place);
        let room = LINES - lines.len() - last.len() - 1;
        lines.push(rule(&[(0, "LOST, largest first")]));
        lines.extend(self.losses(room));
        lines.extend(last);
        let lines: Vec<String> = lines
            .iter()
            .map(|line| cut(&plain(line), COLUMNS).trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    fn head(&self) -> String {
        let left = self.scope.words();
        let room = COLUMNS.saturating_sub(self.scope.run.chars().count() + 1);
        format!("{:<room$} {}", cut(&left, room), self.scope.run)
    }

    fn trusted(&self) -> Vec<String> {
        let trust = &self.trust;
        let level = trust.level.word().to_uppercase();
        let usable = self.usable();
        let reasons = trust.reasons.join("; ");
        let most = 2 - usize::from(usable.is_some());
        let mut lines = fit(&reasons, COLUMNS - 2 * INDENT, most);
        lines.extend(usable);
        let heads = std::iter::once(format!("{:<INDENT$}{level:<INDENT$}", "TRUST"));
        let heads = heads.chain(std::iter::repeat(" ".repeat(2 * INDENT)));
        heads.zip(lines).map(|(head, line)| head + &line).collect()
    }

    /// The verdict on all pairs, and how many pairs the other figures are of.
    fn pairs(&self) -> Vec<String> {
        let Some(all) = &self.all_pairs else {
            return Vec::new();
        };
        let most = match (all.state, all.reasons.len()) {
            (Judged::Pass, _) | (_, 1) => PAIRS.0,
            _ => PAIRS.1,
        };
        let mut lines: Vec<String> = Vec::new();
        for reason in all.reasons.iter().take(2) {
            let mut text = reason.clone();
            if all.state == Judged::Pass {
                text = format!("on {} {text}", all.network);
                if self.scope.pairs_beside < all.pairs_all {
                    let (beside, of) = (self.scope.pairs_beside, all.pairs_all);
                    text += &format!("; the other figures are of {beside} of {of}");
                }
            }
            let head = match lines.is_empty() {
                true => format!("{}: ", all.state.word()),
                false => String::new(),
            };
            lines.extend(fit(&(head + &text), COLUMNS - INDENT, most));
        }
        let rest = all.reasons.len().saturating_sub(2);
        if rest > 0 {
            lines.push(format!("and {rest} more: --findings"));
        }
        headed(&mut lines, "PAIRS");
        lines
    }

    /// Which figures can be used though some are disturbed.
    fn usable(&self) -> Option<String> {
        let trust = &self.trust;
        let named = |all: &[Figures]| {
            let all = all.iter().map(|one| one.words());
            all.collect::<Vec<_>>().join(", ")
        };
        let text = match (trust.usable.is_empty(), trust.unusable.is_empty()) {
            (true, true) => return None,
            (false, true) => "Few figures are affected: all kinds can be used.".into(),
            (true, false) => "No kind of figures can be used without a look at its rows.".into(),
            (false, false) => format!(
                "Can be used: {}; not: {}.",
                named(&trust.usable),
                named(&trust.unusable)
            ),
        };
        Some(text)
    }

    /// The networks with their heads.
    fn measured(&self) -> Vec<String> {
        let columns = Columns::of(self);
        let mut lines = columns.heads(self);
        let shown = self.networks.iter().take(NETWORKS);
        lines.extend(shown.map(|network| columns.line(network)));
        let rest = self.networks.len().saturating_sub(NETWORKS);
        if rest > 0 {
            lines.push(format!("and {rest} more: --table"));
        }
        lines
    }

    /// What services of files reach of each network's stream, on one line: the networks on which that is least, and what is left from there on.
    fn files(&self) -> Option<String> {
        let mut services: Vec<&AssessedFiles> = Vec::new();
        let is_same = |one: &AssessedFiles, other: &AssessedFiles| {
            one.path == other.path && one.operation == other.operation
        };
        let shown = || self.networks.iter().filter(|network| !network.is_floor);
        for one in shown().flat_map(|network| &network.files) {
            if !services.iter().any(|known| is_same(known, one)) {
                services.push(one);
            }
        }
        let percent = |value: f64| significant(value, 2);
        let mut told: Vec<(f64, String)> = Vec::new();
        for network in shown().filter(|network| !network.files.is_empty()) {
            let of = network.reached_bps?.max(1) as f64;
            let share = |one: &AssessedFiles| 100.0 * one.reached_bps as f64 / of;
            let text = |service: &&AssessedFiles| {
                let own = network.files.iter().find(|one| is_same(one, service));
                own.map_or(DASH.into(), |one| {
                    percent(share(one)) + if one.is_disturbed { "~" } else { "" }
                })
            };
            let texts: Vec<String> = services.iter().map(text).collect();
            let least = network.files.iter().map(share).fold(f64::MAX, f64::min);
            told.push((least, format!("{} {}", network.network, texts.join("/"))));
        }
        told.sort_by(|one, other| one.0.total_cmp(&other.0));
        let operation = &services.first()?.operation;
        let is_one = services.iter().all(|one| one.operation == *operation);
        let name = |one: &&AssessedFiles| match is_one {
            true => one.name.clone(),
            false => format!("{} {}", one.name, one.operation),
        };
        let names: Vec<String> = services.iter().map(name).collect();
        let head = format!("{:<INDENT$}{}, % of TCP: ", "FILES", names.join("/"));
        let line = |kept: usize| {
            let mut texts: Vec<String> = told.iter().take(kept).map(|one| one.1.clone()).collect();
            if let Some((least, _)) = told.get(kept) {
                let rest = told.len() - kept;
                texts.push(format!("{rest} more from {}", percent(*least)));
            }
            head.clone() + &texts.join(", ")
        };
        let lines: Vec<String> = (1..=told.len()).rev().map(line).collect();
        let has_room = |line: &&String| line.chars().count() <= COLUMNS;
        lines.iter().find(has_room).or(lines.first()).cloned()
    }

    fn losses(&self, room: usize) -> Vec<String> {
        let far = self.networks.iter().filter_map(|network| {
            let one_way = network.one_way.iter().flatten().next()?;
            let share = one_way.wire_ns? as f64 / one_way.whole_ns.max(1) as f64;
            (share >= DISTANCE).then(|| ("distance", distance(&network.network, share.min(1.0))))
        });
        let found = self.lost.iter();
        let found = found.map(|loss| (label(loss.at), loss.sentence.clone()));
        let entries: Vec<(&str, String)> = found.chain(far).collect();
        if entries.is_empty() {
            let text = match self.trust.repetitions {
                Some(_) => "No measurement shows a noticeable loss.",
                None => DASH,
            };
            return vec![text.into()];
        }
        let told = entries.iter().enumerate().map(|(at, (label, sentence))| {
            let most = if at < WHOLE { ENTRY } else { 1 };
            let heads = std::iter::once(format!("{:>2} {label:<10}", at + 1));
            let heads = heads.chain(std::iter::repeat(" ".repeat(LOSS)));
            let of = |most| {
                let told = fit(sentence, COLUMNS - LOSS, most).into_iter();
                let lines = heads.clone().zip(told).map(|(head, line)| head + &line);
                lines.collect::<Vec<String>>()
            };
            (of(ENTRY), of(most))
        });
        let (whole, short): (Vec<_>, Vec<_>) = told.unzip();
        // All have their lines where there is room for them.
        let has_room = whole.iter().map(Vec::len).sum::<usize>() <= room;
        let told = if has_room { whole } else { short };
        let all = told.len();
        let mut lines: Vec<String> = Vec::new();
        for (at, entry) in told.into_iter().enumerate() {
            // A line is kept to count those that follow.
            let kept = usize::from(at + 1 < all);
            if lines.len() + entry.len() + kept > room {
                lines.truncate(room - 1);
                lines.push(format!("   and {} more: --findings", all - at));
                break;
            }
            lines.extend(entry);
        }
        lines
    }

    /// What to do, and where the rest is.
    fn last(&self, place: &Place) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for next in &self.next {
            let text = match &next.command {
                Some(command) => format!("{}: `{command}`", next.what),
                None => next.what.clone(),
            };
            let told = fit(&text, COLUMNS - INDENT, NEXT);
            if lines.len() + told.len() <= NEXT {
                lines.extend(told);
            }
        }
        headed(&mut lines, "DO NEXT");
        let (findings, options) = (self.findings, &place.options);
        let mut more = vec![format!(
            "sonde report show --table | --findings ({findings}){options}"
        )];
        match &place.page {
            Some(page) => more.push(tail(page, COLUMNS - INDENT)),
            None => more.push(format!("sonde report html{}", place.options)),
        }
        let mut page = more.split_off(1);
        headed(&mut more, "MORE");
        headed(&mut page, "REPORT");
        lines.into_iter().chain(more).chain(page).collect()
    }
}

/// Puts a word in capitals before the first line, and room before the others.
fn headed(lines: &mut [String], head: &str) {
    for (at, line) in lines.iter_mut().enumerate() {
        let head = if at == 0 { head } else { "" };
        *line = format!("{head:<INDENT$}{line}");
    }
}

const fn label(at: LostAt) -> &'static str {
    match at {
        LostAt::Host => "host",
        LostAt::Route => "route",
        LostAt::Stream => "stream",
        LostAt::LibraryRate => "rate",
        LostAt::Library => "library",
        LostAt::Hosts => "hosts",
        LostAt::Start => "start",
        LostAt::Pause => "pause",
        LostAt::Datagrams => "UDP",
    }
}

impl Scope {
    /// How long it took, as `3 min 12 s`; none while it runs, and after it was killed.
    pub fn took(&self) -> Option<String> {
        self.took_ns.map(lasted)
    }

    fn words(&self) -> String {
        let count = |count: u64, one: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {one}s"),
        };
        let hosts = self.hosts.len() as u64;
        let mut words = match self.testbed {
            None => return "no cells".into(),
            Some(Testbed::Local) => vec!["this machine".to_owned()],
            Some(Testbed::Lab) => vec![count(hosts, "emulated host")],
            Some(Testbed::Hosts | Testbed::Virtual) => vec![count(hosts, "host")],
        };
        if hosts > 2 && self.pairs < self.pairs_all {
            words.push(format!("{} of {} pairs", self.pairs, self.pairs_all));
        }
        words.push(count(self.networks, "network"));
        words.extend(self.took());
        words.join(", ")
    }
}

/// Which columns there are, and how wide.
struct Columns {
    name: usize,
    paths: usize,
    kernel: bool,
}

impl Columns {
    fn of(all: &Assessment) -> Self {
        let (paths, kernel) = (all.paths.len(), all.kernel.is_some());
        let rest = 1 + STREAM + paths * (1 + ONE_WAY) + usize::from(kernel) * (1 + KERNEL);
        let names = all.networks.iter().take(NETWORKS);
        let widest = names.map(|network| plain(&network.network).chars().count());
        Self {
            name: widest
                .max()
                .unwrap_or(0)
                .clamp(UNCERTAIN.len(), COLUMNS - rest),
            paths,
            kernel,
        }
    }

    /// A line of cells, each right-aligned in its column but the first.
    fn cells(&self, name: &str, cells: &[String]) -> String {
        let widths = std::iter::once(STREAM)
            .chain(std::iter::repeat_n(ONE_WAY, self.paths))
            .chain(std::iter::repeat_n(KERNEL, usize::from(self.kernel)));
        let name = cut(&plain(name), self.name);
        let first = format!("{name:<width$}", width = self.name);
        let cells = cells.iter().zip(widths);
        cells.fold(first, |line, (cell, width)| {
            format!("{line} {cell:>width$}")
        })
    }

    fn heads(&self, all: &Assessment) -> Vec<String> {
        let size = all.message_bytes.map_or(String::new(), bytes);
        let one_way = format!("ONE WAY OF {size}, µs");
        let kernel = all.kernel.as_ref().map(|name| name.to_uppercase());
        let at = self.name + 1;
        let paths_at = at + STREAM + 2;
        let mut titles = vec![(at + 4, "TCP STREAM")];
        if self.paths > 0 {
            titles.push((paths_at, one_way.as_str()));
        }
        let kernel_at = paths_at + self.paths * (1 + ONE_WAY) + 1;
        titles.extend(kernel.as_deref().map(|name| (kernel_at, name)));
        let is_any = all.networks.iter().take(NETWORKS).any(has_disturbed);
        let mark = if is_any { UNCERTAIN } else { "" };
        let mut first = vec!["reached/possible ".to_owned()];
        let mut second = vec![String::new()];
        for path in &all.paths {
            first.push(format!("{} ", path.name));
            second.push("wire+TCP+lib= all ".into());
        }
        if self.kernel {
            first.push("times".into());
            second.push("1host".into());
        }
        let heads = [(mark, first), ("", second)];
        let heads = heads.iter().map(|(name, cells)| self.cells(name, cells));
        let heads = heads.filter(|line| !line.trim().is_empty());
        std::iter::once(rule(&titles)).chain(heads).collect()
    }

    fn line(&self, network: &AssessedNetwork) -> String {
        let mut cells = vec![stream(network)];
        let one_way = network.one_way.iter();
        cells.extend(one_way.map(|one| one.as_ref().map_or("- ".into(), taken_apart)));
        if self.kernel {
            let times = network.kernel_times;
            cells.push(times.map_or(DASH.into(), |times| match times.0 {
                times @ 9.95.. => format!("{times:.0}"),
                times => format!("{times:.1}"),
            }));
        }
        self.cells(&network.network, &cells)
    }
}

fn has_disturbed(network: &AssessedNetwork) -> bool {
    let mut one_way = network.one_way.iter().flatten();
    network.is_stream_disturbed || one_way.any(|one| one.is_disturbed)
}

/// What stands after a figure.
const fn mark(is_disturbed: bool) -> char {
    if is_disturbed { '~' } else { ' ' }
}

/// `94.1/94.1 Mb/s 100%`.
fn stream(network: &AssessedNetwork) -> String {
    let Some(largest) = network.possible_bps.or(network.reached_bps) else {
        return "- ".into();
    };
    let (unit, scale) = match largest {
        1_000_000_000.. => ("Gb/s", 1e9),
        1_000_000.. => ("Mb/s", 1e6),
        _ => ("kb/s", 1e3),
    };
    let figure = |bps: Option<u64>| {
        let known = bps.map(|bps| significant(bps as f64 / scale, 3));
        known.unwrap_or_else(|| DASH.into())
    };
    let share = network.reached_bps.zip(network.possible_bps);
    let share = share.map_or(DASH.into(), |(reached, possible)| {
        // What is not all of it does not look like it.
        let percent = 100.0 * reached as f64 / possible.max(1) as f64;
        match percent {
            99.5..100.0 if percent < 99.95 => "99%".into(),
            percent => format!("{percent:.0}%"),
        }
    });
    format!(
        "{}/{} {unit} {share:>4}{}",
        figure(network.reached_bps),
        figure(network.possible_bps),
        mark(network.is_stream_disturbed)
    )
}

/// µs in three columns.
fn micros(ns: f64) -> String {
    match ns / 1e3 {
        us @ 9.95.. => format!("{us:.0}"),
        us if us >= 0.05 || us == 0.0 => format!("{us:.1}"),
        _ => "<.1".into(),
    }
}

/// ` 26+ 17+ 74=  117`, or the largest part where one has no room.
fn taken_apart(one: &OneWay) -> String {
    let parts = [
        ("wire", one.wire_ns.map(|ns| ns as f64), false),
        ("TCP", one.hosts_ns.map(|ns| ns as f64), one.is_hosts_unsure),
        (
            "lib",
            one.library_ns.map(|ns| ns as f64),
            one.is_library_unsure,
        ),
    ];
    let whole = one.whole_ns as f64;
    let has_room = |ns: f64| ns < 999_500.0;
    let sure = parts.iter().filter(|(_, _, is_unsure)| !is_unsure);
    let known: Vec<(&str, f64)> = sure
        .filter_map(|(name, ns, _)| Some((*name, (*ns)?)))
        .collect();
    if known.iter().all(|(_, ns)| has_room(*ns)) && whole < 99_999_500.0 {
        let texts = parts.map(|(_, ns, is_unsure)| match ns {
            Some(_) if is_unsure => "?".into(),
            Some(ns) => micros(ns),
            None => DASH.into(),
        });
        let [wire, hosts, library] = texts;
        let (all, mark) = (micros(whole), mark(one.is_disturbed));
        return format!("{wire:>3}+{hosts:>3}+{library:>3}={all:>5}{mark}");
    }
    let largest = known
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1));
    let all = match whole / 1e3 {
        us @ 1e6.. => format!("{:.0}ms", us / 1e3),
        us => format!("{us:.0}"),
    };
    let part = largest.map_or(String::new(), |(name, ns)| {
        let percent = (100.0 * ns / whole).min(100.0);
        let digits = usize::from(percent > 99.0 && percent < 100.0);
        // Rounded down: what is not all of it does not look like it.
        let percent = (percent * 10.0).floor() / 10.0;
        format!("{name} {percent:.digits$}%=")
    });
    format!("{part}{all}{}", mark(one.is_disturbed))
}

/// A line with titles in it, each at its column.
fn rule(titles: &[(usize, &str)]) -> String {
    let mut line = String::new();
    let mut width = 0;
    for (at, title) in titles {
        let dashes = at.saturating_sub(width + 1);
        line += &"─".repeat(dashes);
        let gap = if width + dashes == 0 { "" } else { " " };
        line += &format!("{gap}{title} ");
        width += dashes + gap.len() + title.chars().count() + 1;
    }
    line + &"─".repeat(COLUMNS.saturating_sub(width))
}

/// A text in at most so many lines: clauses are left out from its end where they do not fit, then letters.
fn fit(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut kept = plain(text);
    loop {
        let lines: Vec<String> = wrapped(&kept, width, "").lines().map(Into::into).collect();
        let is_within = lines.iter().all(|line| line.chars().count() <= width);
        if lines.len() <= most && is_within {
            return lines;
        }
        let clause = ["; ", " (", ", "].iter().find_map(|end| kept.rfind(end));
        match clause {
            Some(at) => kept.truncate(at),
            None => {
                let mut lines: Vec<String> = lines.into_iter().take(most).collect();
                if let Some(last) = lines.last_mut() {
                    *last += "…";
                }
                lines.iter_mut().for_each(|line| *line = cut(line, width));
                return lines;
            }
        }
    }
}

/// The first letters of a text that is too long.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text
            .chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => text.into(),
    }
}

/// The last letters of a path that is too long.
fn tail(path: &str, width: usize) -> String {
    let letters = path.chars().count();
    match letters > width {
        true => {
            let last = path.chars().skip(letters - width + 1);
            std::iter::once('…').chain(last).collect()
        }
        false => path.into(),
    }
}
