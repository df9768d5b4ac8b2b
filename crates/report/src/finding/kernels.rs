//! What networks, routes, places and load do to the kernels.
//!
//! Model:   rules over [`kernels`]; two times are apart where their rank intervals do not meet, and a rule says which are not.
//!          `kernel-route`: PVM's direct route below its default one. `kernel-load`: the highest level above idle. `kernel-route-load`: by which route a load adds more seconds.
//!          `kernel-loss`: networks that lose frames beside the same that do not ([`losses`]).
//!          `kernel-places`: several hosts below every run on one, shared memory aside. `kernel-reference`: several hosts beside
//!          shared memory. `kernel-one-host`: whether a load slows several ranks on one host less than one rank alone.
//!          `kernel-messages`: counts beside a paper's. Where a paper prints the same, its factor is in the arithmetic.
//! Source:  U26, U39 to U44: what the UPC study found.
//! Units:   factors between medians.
//! Checked: the tests below, for each rule a run that triggers it and one that does not.

mod losses;

use super::{Finding, Severity};
use crate::format::{significant, time};
use crate::index::Index;
use crate::kernels::{KernelRow, kernels};

const ROUTES: [&str; 2] = ["pvm:default", "pvm:direct"];

/// All of them.
pub(super) fn all(index: &Index<'_>) -> Vec<Finding> {
    let rows = kernels(index);
    let ages = grouped(rows.iter(), |row| row.age().map(String::from));
    let ages = ages.into_iter().flat_map(|(age, rows)| {
        let rows: Vec<KernelRow> = rows.into_iter().cloned().collect();
        let mut all = of_one_age(index, &rows);
        for finding in all.iter_mut().filter(|_| age.is_some()) {
            let age = age.as_deref().unwrap_or_default();
            finding.sentence += &format!(" Hosts are of another age ({age}).");
        }
        all
    });
    ages.collect()
}

/// Rows of hosts of one age: those of another are not comparable.
fn of_one_age(index: &Index<'_>, rows: &[KernelRow]) -> Vec<Finding> {
    let mut all = routes(rows);
    all.extend(loads(rows));
    all.extend(route_loads(rows));
    all.extend(losses::all(index, rows));
    all.extend(places(rows));
    all.extend(references(rows));
    all.extend(one_host(rows));
    all.extend(messages(rows));
    all
}

/// Two runs of a kernel beside each other.
struct Compared {
    /// The kernel with its load: `CG at 0.6`.
    what: String,
    /// How many times the smaller one the other is expected to be.
    times: f64,
    /// Whether it is, intervals apart; `None` where there are none.
    apart: Option<bool>,
    /// The same factor as a paper prints it.
    printed: Option<f64>,
}

/// So many that do not hold are named; of more how far they go.
const NAMED_MAX: usize = 6;

impl Compared {
    /// `less` is expected to take less time than `more`.
    fn of(what: String, less: &KernelRow, more: &KernelRow) -> Self {
        let seconds = |row: &KernelRow| Some(row.printed.as_ref()?.seconds.0);
        Self {
            what,
            times: more.times(less),
            apart: less.is_below(more),
            printed: seconds(more)
                .zip(seconds(less))
                .map(|(more, less)| more / less),
        }
    }
}

fn factor(times: f64) -> String {
    significant(times, 3)
}

/// `, intervals apart, in 20 of 24: 1.05 to 3.20 times; not CG idle (0.99)`, and what it follows from, which names all where the
/// sentence cannot. Without any interval the medians are told, and that they are no more.
fn tally(all: &[Compared]) -> (String, String) {
    let is_told = all.iter().any(|one| one.apart.is_some());
    let is_so = |one: &Compared| match is_told {
        true => one.apart == Some(true),
        false => one.times > 1.0,
    };
    let (good, others): (Vec<&Compared>, Vec<&Compared>) = all.iter().partition(|one| is_so(one));
    let how = match is_told {
        true => ", intervals apart,",
        false => ", by their medians,",
    };
    let mut text = format!("{how} in {} of {}", good.len(), all.len());
    if !good.is_empty() {
        text += &format!(": {} times", range(good.iter().map(|one| one.times)));
    }
    if others.len() > NAMED_MAX {
        let times = range(others.iter().map(|one| one.times));
        text += &format!("; not in {}: {times} times", others.len());
    } else if !others.is_empty() {
        let named = others
            .iter()
            .map(|one| format!("{} ({})", one.what, factor(one.times)));
        text += &format!("; not {}", named.collect::<Vec<_>>().join(", "));
    }
    if !is_told {
        text += "; which of it is sure cannot be told: an interval needs six launches";
    }
    let figures = all.iter().map(|one| {
        let printed = one.printed.map_or(String::new(), |times| {
            format!(" (printed {})", factor(times))
        });
        format!("{} {}{printed}", one.what, factor(one.times))
    });
    (text, figures.collect::<Vec<_>>().join(", "))
}

/// From the least to the greatest factor; one where they read the same.
fn range(factors: impl Iterator<Item = f64> + Clone) -> String {
    let least = factor(factors.clone().fold(f64::INFINITY, f64::min));
    let most = factor(factors.fold(0.0, f64::max));
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

/// Rows in groups that have a key in common, in the order of the rows.
fn grouped<'r, K: PartialEq>(
    rows: impl Iterator<Item = &'r KernelRow>,
    key: impl Fn(&KernelRow) -> K,
) -> Vec<(K, Vec<&'r KernelRow>)> {
    let mut groups: Vec<(K, Vec<&KernelRow>)> = Vec::new();
    for row in rows {
        let own = key(row);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, group)) => group.push(row),
            None => groups.push((own, vec![row])),
        }
    }
    groups
}

/// A kernel as papers write it: `is` alone would read as a word.
fn name(row: &KernelRow) -> String {
    row.kernel.to_uppercase()
}

/// A kernel with its load.
fn named(row: &KernelRow) -> String {
    match &row.load {
        Some(load) => format!("{} at {load}", name(row)),
        None => format!("{} idle", name(row)),
    }
}

/// How many, of what size.
fn size(row: &KernelRow) -> String {
    format!("class {}, {} ranks", row.class, row.ranks)
}

/// What was measured over a network.
fn spread(rows: &[KernelRow]) -> impl Iterator<Item = &KernelRow> {
    rows.iter().filter(|row| row.hosts > 1)
}

fn on(mut finding: Finding, row: &KernelRow) -> Finding {
    (finding.network, finding.path) = (Some(row.network.clone()), Some(row.path.clone()));
    finding
}

/// `kernel-route`, once a network, class and count of ranks.
fn routes(rows: &[KernelRow]) -> Vec<Finding> {
    let [default, direct] = ROUTES;
    let key = |row: &KernelRow| (row.network.clone(), row.class.clone(), row.ranks);
    let told = |group: Vec<&KernelRow>| {
        let all: Vec<Compared> = of_path(&group, default)
            .filter_map(|slow| {
                let same = |fast: &&KernelRow| fast.is_like(slow) && fast.knobs == slow.knobs;
                let fast = of_path(&group, direct).find(same)?;
                Some(Compared::of(named(slow), fast, slow))
            })
            .collect();
        let first = group.first().filter(|_| !all.is_empty())?;
        let (text, figures) = tally(&all);
        let sentence = format!(
            "On {} ({}) kernels take longer by {default} than by {direct}{text}.",
            first.network,
            size(first)
        );
        let finding = Finding::new("kernel-route", Severity::Note, sentence).since(figures);
        Some(finding.on_network(&first.network))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}

fn of_path<'g>(
    group: &'g [&'g KernelRow],
    path: &'g str,
) -> impl Iterator<Item = &'g KernelRow> + 'g {
    group.iter().copied().filter(move |row| row.path == path)
}

/// Idle and the highest level of each kernel in a group of one path, with all levels between, ascending.
fn by_kernel<'g>(group: &[&'g KernelRow]) -> Vec<Vec<&'g KernelRow>> {
    let groups = grouped(group.iter().copied(), |row| row.kernel.clone());
    let mut all: Vec<Vec<&KernelRow>> = groups.into_iter().map(|(_, rows)| rows).collect();
    for rows in &mut all {
        rows.sort_by(|one, other| one.level.0.total_cmp(&other.level.0));
    }
    all.retain(|rows| {
        rows.first().is_some_and(|row| row.load.is_none())
            && rows.last().is_some_and(|row| row.load.is_some())
    });
    all
}

/// In how many kernels the time grows with each of several levels.
fn rising(kernels: &[Vec<&KernelRow>]) -> String {
    if kernels.iter().all(|levels| levels.len() < 3) {
        return String::new();
    }
    let rising = kernels.iter().filter(|levels| {
        let mut pairs = levels.windows(2);
        pairs.all(|pair| pair[0].time_ns <= pair[1].time_ns)
    });
    format!(
        "; the time grows with each level in {} of {}",
        rising.count(),
        kernels.len()
    )
}

/// `kernel-load`, once a network, path, class and count of ranks.
fn loads(rows: &[KernelRow]) -> Vec<Finding> {
    let key = |row: &KernelRow| (row.network.clone(), row.by(), row.class.clone(), row.ranks);
    let told = |group: Vec<&KernelRow>| {
        let kernels = by_kernel(&group);
        let first = kernels.first()?[0];
        let all: Vec<Compared> = kernels
            .iter()
            .filter_map(|levels| {
                let (idle, most) = (levels.first()?, levels.last()?);
                Some(Compared::of(named(most), idle, most))
            })
            .collect();
        let (text, _) = tally(&all);
        let figures = kernels.iter().map(|levels| {
            let factors = levels.iter().skip(1);
            let factors =
                factors.map(|row| format!("{} at {}", factor(row.times(levels[0])), row.under()));
            format!(
                "{} {}",
                name(levels[0]),
                factors.collect::<Vec<_>>().join(" and ")
            )
        });
        let sentence = format!(
            "Under load on {} ({}) kernels by {} take longer than idle{text}{}.",
            first.network,
            size(first),
            first.by(),
            rising(&kernels)
        );
        let finding = Finding::new("kernel-load", Severity::Note, sentence);
        Some(on(finding, first).since(figures.collect::<Vec<_>>().join("; ")))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}

/// What the highest load adds to each kernel by a path, in nanoseconds.
fn added<'r>(group: &[&'r KernelRow], path: &str) -> Vec<(&'r KernelRow, f64)> {
    let of_path = group.iter().copied().filter(|row| row.path == path);
    let kernels = by_kernel(&of_path.collect::<Vec<_>>());
    let apart = kernels.iter().map(|levels| {
        let (idle, most) = (levels[0], levels[levels.len() - 1]);
        (most, most.time_ns.0 - idle.time_ns.0)
    });
    apart.collect()
}

/// `kernel-route-load`, once a network, class and count of ranks.
fn route_loads(rows: &[KernelRow]) -> Vec<Finding> {
    let key = |row: &KernelRow| {
        (
            row.network.clone(),
            row.class.clone(),
            row.ranks,
            row.knobs.clone(),
        )
    };
    let told = |group: Vec<&KernelRow>| {
        let [default, direct] = ROUTES.map(|path| added(&group, path));
        let pairs: Vec<(&KernelRow, f64, f64)> = default
            .iter()
            .filter_map(|(row, slow)| {
                let fast = direct
                    .iter()
                    .find(|(other, _)| other.kernel == row.kernel)?;
                Some((*row, *slow, fast.1))
            })
            .collect();
        let (first, ..) = pairs.first()?;
        let more = pairs.iter().filter(|(_, slow, fast)| slow > fast).count();
        let sentence = format!(
            "On {} ({}) the highest load adds more time by {} than by {} in {more} of {} kernels.",
            first.network,
            size(first),
            ROUTES[0],
            ROUTES[1],
            pairs.len()
        );
        let figures = pairs
            .iter()
            .map(|(row, slow, fast)| format!("{} {} and {}", name(row), time(*slow), time(*fast)));
        let finding = Finding::new("kernel-route-load", Severity::Note, sentence);
        let finding = finding.since(figures.collect::<Vec<_>>().join("; "));
        Some(finding.on_network(&first.network))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}

fn fastest<'r>(rows: impl Iterator<Item = &'r KernelRow>) -> Option<&'r KernelRow> {
    rows.min_by(|one, other| one.time_ns.0.total_cmp(&other.time_ns.0))
}

/// `kernel-places`, once a network, class and count of hosts.
fn places(rows: &[KernelRow]) -> Vec<Finding> {
    let key = |row: &KernelRow| (row.network.clone(), row.class.clone(), row.hosts);
    let told = |group: Vec<&KernelRow>| {
        let problems = grouped(group.iter().copied(), |row| {
            (row.kernel.clone(), row.load.clone())
        });
        let all: Vec<Compared> = problems
            .into_iter()
            .filter_map(|(_, same)| {
                let best = fastest(same.into_iter())?;
                let here = rows
                    .iter()
                    .filter(|row| row.hosts == 1 && !row.shares_memory() && row.is_like(best));
                Some(Compared::of(named(best), best, fastest(here)?))
            })
            .collect();
        let first = group.first().filter(|_| !all.is_empty())?;
        let (text, figures) = tally(&all);
        let sentence = format!(
            "{} hosts of {} (class {}) beat every run on one host, shared memory aside{text}.",
            first.hosts, first.network, first.class
        );
        let finding = Finding::new("kernel-places", Severity::Note, sentence).since(figures);
        Some(finding.on_network(&first.network))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}

/// `kernel-reference`, once a network and class.
fn references(rows: &[KernelRow]) -> Vec<Finding> {
    let key = |row: &KernelRow| (row.network.clone(), row.class.clone());
    let told = |group: Vec<&KernelRow>| {
        let kernels = grouped(group.iter().copied(), |row| row.kernel.clone());
        let all: Vec<(&KernelRow, &KernelRow)> = kernels
            .into_iter()
            .filter_map(|(_, same)| {
                let best = fastest(same.into_iter())?;
                let shared = rows.iter().filter(|row| {
                    row.shares_memory()
                        && row.load.is_none()
                        && (&row.kernel, &row.class) == (&best.kernel, &best.class)
                });
                Some((best, fastest(shared)?))
            })
            .collect();
        let (first, shared) = all.first()?;
        let beaten = all
            .iter()
            .filter(|(best, shared)| best.is_below(shared) == Some(true))
            .count();
        let sentence = format!(
            "The fastest runs over {} take {} times as long as {}, which is beaten in {beaten} of {} kernels.",
            first.network,
            range(all.iter().map(|(best, shared)| best.times(shared))),
            shared.place(),
            all.len()
        );
        let figures = all
            .iter()
            .map(|(best, shared)| format!("{} {}", name(best), factor(best.times(shared))));
        let finding = Finding::new("kernel-reference", Severity::Note, sentence);
        let finding = finding.since(figures.collect::<Vec<_>>().join(", "));
        Some(finding.on_network(&first.network))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}

/// `kernel-one-host`, once a network, path and class: several ranks on one host under load beside one rank alone.
fn one_host(rows: &[KernelRow]) -> Vec<Finding> {
    let here: Vec<&KernelRow> = rows.iter().filter(|row| row.hosts == 1).collect();
    let slowed = |of: &dyn Fn(&KernelRow) -> bool| -> Vec<(String, String, f64)> {
        let chosen: Vec<&KernelRow> = here.iter().copied().filter(|row| of(row)).collect();
        let kernels = by_kernel(&chosen);
        let slowed = kernels.iter().map(|levels| {
            let (idle, most) = (levels[0], levels[levels.len() - 1]);
            (name(most), most.under().to_string(), most.times(idle))
        });
        slowed.collect()
    };
    let key = |row: &KernelRow| (row.network.clone(), row.by(), row.class.clone());
    let several = here.iter().copied().filter(|row| row.ranks > 1);
    let groups = grouped(several, key).into_iter();
    let told = |(network, path, class): (String, String, String)| {
        let of = |row: &KernelRow| (&row.network, &row.class) == (&network, &class);
        let together = slowed(&|row| of(row) && row.ranks > 1 && row.by() == path);
        // Of several libraries the first.
        let lone = here.iter().find(|row| of(row) && row.ranks == 1)?.by();
        let alone = slowed(&|row| of(row) && row.ranks == 1 && row.by() == lone);
        let pairs: Vec<_> = together
            .iter()
            .filter_map(|one| {
                let other = alone
                    .iter()
                    .find(|other| (&other.0, &other.1) == (&one.0, &one.1));
                Some((&one.0, one.2, other?.2))
            })
            .collect();
        let load = &together.first().filter(|_| !pairs.is_empty())?.1;
        let less = pairs.iter().filter(|(_, several, one)| several < one);
        let sentence = format!(
            "At {load} of {network} (class {class}) several ranks on one host by {path} are slowed less than one rank alone in {} of {} \
             kernels.",
            less.count(),
            pairs.len()
        );
        let figures = pairs.iter().map(|(kernel, several, one)| {
            format!("{kernel} {} and {} times", factor(*several), factor(*one))
        });
        let finding = Finding::new("kernel-one-host", Severity::Note, sentence);
        let mut finding = finding.since(figures.collect::<Vec<_>>().join(", "));
        (finding.network, finding.path) = (Some(network.clone()), Some(path.clone()));
        Some(finding)
    };
    groups.filter_map(|(key, _)| told(key)).collect()
}

/// `kernel-messages`: once a study.
fn messages(rows: &[KernelRow]) -> Vec<Finding> {
    let counted = spread(rows).filter(|row| row.messages.is_some() && row.load.is_none());
    let groups = grouped(
        counted.filter(|row| row.printed_messages.is_some()),
        |row| {
            row.printed_messages
                .as_ref()
                .map(|printed| printed.cite.clone())
        },
    );
    let told = |cite: &str, group: Vec<&KernelRow>| {
        let kernels = grouped(group.into_iter(), |row| row.kernel.clone());
        let all: Vec<(&KernelRow, f64)> = kernels
            .into_iter()
            .filter_map(|(_, same)| {
                let row = *same.first()?;
                let printed = row.printed_messages.as_ref()?.messages.0;
                Some((row, row.messages?.0 / printed))
            })
            .collect();
        let sentence = format!(
            "Ranks send {} times the messages that {cite} counts, in {} kernels.",
            range(all.iter().map(|(_, part)| *part)),
            all.len()
        );
        let figures = all.iter().map(|(row, _)| {
            let count = |value: f64| significant(value, 1);
            let printed = row
                .printed_messages
                .as_ref()
                .map_or(0.0, |one| one.messages.0);
            let own = row.messages.map_or(0.0, |one| one.0);
            format!("{} {} of {}", name(row), count(own), count(printed))
        });
        let finding = Finding::new("kernel-messages", Severity::Note, sentence);
        Some(finding.since(figures.collect::<Vec<_>>().join(", ")))
    };
    let groups = groups.into_iter();
    groups
        .filter_map(|(cite, group)| told(&cite?, group))
        .collect()
}

#[cfg(test)]
mod tests;
