//! What networks, routes, places and load do to the kernels.
//!
//! Model:   rules over [`kernels`]; two times are apart where their rank intervals do not meet, and a rule says which are not.
//!          `kernel-route`: PVM's direct route below its default one. `kernel-load`: the highest level above idle. `kernel-route-load`: by which route a load adds more seconds.
//!          `kernel-loss`: networks that lose frames beside the same that do not ([`losses`]).
//!          `kernel-placement`: several hosts below every run on one, shared memory aside. `kernel-reference`: several hosts beside
//!          shared memory. `kernel-one-host`: whether a load slows several ranks on one host less than one rank alone.
//!          `kernel-messages`: counts beside a paper's. Where a paper prints the same, its factor is in the arithmetic.
//! Source:  U26, U39 to U44: what the UPC study found.
//! Units:   factors between medians.
//! Checked: the tests below, for each rule a run that triggers it and one that does not.

mod losses;

use sonde_measure::Line;

use super::{Finding, Severity};
use crate::index::{Index, grouped};
use crate::kernels::{KernelRow, kernels};
use crate::words::kernels as words;
use crate::words::kernels::{Compared, Kernel, Of};

/// All of them.
pub(super) const IDS: &[&str] = &[
    "kernel-route",
    "kernel-load",
    "kernel-route-load",
    "kernel-loss",
    "kernel-placement",
    "kernel-reference",
    "kernel-one-host",
    "kernel-messages",
];

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
            finding.sentence += &words::of_age(age);
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

/// `less` is expected to take less time than `more`.
fn compared(kernel: Kernel, less: &KernelRow, more: &KernelRow) -> Compared {
    let seconds = |row: &KernelRow| Some(row.printed.as_ref()?.seconds.0);
    Compared {
        kernel,
        times: more.times(less),
        apart: less.is_below(more),
        printed: seconds(more)
            .zip(seconds(less))
            .map(|(more, less)| more / less),
    }
}

/// A kernel with its load.
fn named(row: &KernelRow) -> Kernel {
    Kernel {
        name: row.kernel.clone(),
        load: row.load.clone(),
    }
}

fn of(row: &KernelRow) -> Of {
    Of {
        network: row.network.clone(),
        class: row.class.clone(),
        ranks: row.ranks,
    }
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
    let key = |row: &&KernelRow| (row.network.clone(), row.class.clone(), row.ranks);
    let told = |group: Vec<&KernelRow>| {
        let all: Vec<Compared> = of_path(&group, default)
            .filter_map(|slow| {
                let same = |fast: &&KernelRow| fast.is_like(slow) && fast.knobs == slow.knobs;
                let fast = of_path(&group, direct).find(same)?;
                Some(compared(named(slow), fast, slow))
            })
            .collect();
        let first = group.first().filter(|_| !all.is_empty())?;
        let found = words::Routes {
            of: of(first),
            routes: ROUTES,
            all,
        };
        let finding = Finding::said("kernel-route", Severity::Note, &found);
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

/// In how many kernels the time grows with each level; `None` where there is one level alone.
fn rising(kernels: &[Vec<&KernelRow>]) -> Option<usize> {
    if kernels.iter().all(|levels| levels.len() < 3) {
        return None;
    }
    let rising = kernels.iter().filter(|levels| {
        let mut pairs = levels.windows(2);
        pairs.all(|pair| pair[0].time_ns <= pair[1].time_ns)
    });
    Some(rising.count())
}

/// `kernel-load`, once a network, path, class and count of ranks.
fn loads(rows: &[KernelRow]) -> Vec<Finding> {
    let key = |row: &&KernelRow| (row.idle_line(), row.class.clone(), row.ranks);
    let told = |group: Vec<&KernelRow>| {
        let kernels = by_kernel(&group);
        let first = kernels.first()?[0];
        let all: Vec<Compared> = kernels
            .iter()
            .filter_map(|levels| {
                let (idle, most) = (levels.first()?, levels.last()?);
                Some(compared(named(most), idle, most))
            })
            .collect();
        let levels = kernels.iter().map(|levels| words::Levels {
            kernel: named(levels[0]),
            factors: levels
                .iter()
                .skip(1)
                .map(|row| (row.times(levels[0]), row.under().to_owned()))
                .collect(),
        });
        let found = words::Load {
            of: of(first),
            by: first.by(),
            all,
            levels: levels.collect(),
            rising: rising(&kernels),
        };
        Some(on(
            Finding::said("kernel-load", Severity::Note, &found),
            first,
        ))
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
    let key = |row: &&KernelRow| {
        (
            row.network.clone(),
            row.class.clone(),
            row.ranks,
            row.knobs.clone(),
        )
    };
    let told = |group: Vec<&KernelRow>| {
        let [default, direct] = ROUTES.map(|path| added(&group, path));
        let pairs: Vec<(&KernelRow, [f64; 2])> = default
            .iter()
            .filter_map(|(row, slow)| {
                let fast = direct
                    .iter()
                    .find(|(other, _)| other.kernel == row.kernel)?;
                Some((*row, [*slow, fast.1]))
            })
            .collect();
        let (first, _) = *pairs.first()?;
        let found = words::RouteLoad {
            of: of(first),
            routes: ROUTES,
            added_ns: pairs
                .iter()
                .map(|(row, added)| (named(row), *added))
                .collect(),
        };
        let finding = Finding::said("kernel-route-load", Severity::Note, &found);
        Some(finding.on_network(&first.network))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}

fn fastest<'r>(rows: impl Iterator<Item = &'r KernelRow>) -> Option<&'r KernelRow> {
    rows.min_by(|one, other| one.time_ns.0.total_cmp(&other.time_ns.0))
}

/// `kernel-placement`, once a network, class and count of hosts.
fn places(rows: &[KernelRow]) -> Vec<Finding> {
    let key = |row: &&KernelRow| (row.network.clone(), row.class.clone(), row.hosts);
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
                Some(compared(named(best), best, fastest(here)?))
            })
            .collect();
        let first = group.first().filter(|_| !all.is_empty())?;
        let found = words::Places {
            network: first.network.clone(),
            class: first.class.clone(),
            hosts: first.hosts,
            all,
        };
        let finding = Finding::said("kernel-placement", Severity::Note, &found);
        Some(finding.on_network(&first.network))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}

/// `kernel-reference`, once a network and class.
fn references(rows: &[KernelRow]) -> Vec<Finding> {
    let key = |row: &&KernelRow| (row.network.clone(), row.class.clone());
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
        let found = words::Reference {
            network: first.network.clone(),
            shared: shared.place(),
            beaten,
            times: all
                .iter()
                .map(|(best, shared)| (named(best), best.times(shared)))
                .collect(),
        };
        let finding = Finding::said("kernel-reference", Severity::Note, &found);
        Some(finding.on_network(&first.network))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}

/// `kernel-one-host`, once a network, path and class: several ranks on one host under load beside one rank alone.
fn one_host(rows: &[KernelRow]) -> Vec<Finding> {
    let here: Vec<&KernelRow> = rows.iter().filter(|row| row.hosts == 1).collect();
    let slowed = |is: &dyn Fn(&KernelRow) -> bool| -> Vec<(String, String, f64)> {
        let chosen: Vec<&KernelRow> = here.iter().copied().filter(|row| is(row)).collect();
        let kernels = by_kernel(&chosen);
        let slowed = kernels.iter().map(|levels| {
            let (idle, most) = (levels[0], levels[levels.len() - 1]);
            (
                most.kernel.clone(),
                most.under().to_string(),
                most.times(idle),
            )
        });
        slowed.collect()
    };
    let key = |row: &&KernelRow| (row.idle_line(), row.class.clone());
    let several = here.iter().copied().filter(|row| row.ranks > 1);
    let groups = grouped(several, key).into_iter();
    let told = |(line, class): (Line, String)| {
        let is_of = |row: &KernelRow| (&row.network, &row.class) == (&line.network, &class);
        let together = slowed(&|row| is_of(row) && row.ranks > 1 && row.idle_line() == line);
        // Of several libraries the first.
        let lone = here
            .iter()
            .find(|row| is_of(row) && row.ranks == 1)?
            .idle_line();
        let alone = slowed(&|row| is_of(row) && row.ranks == 1 && row.idle_line() == lone);
        let pairs = together.iter().filter_map(|one| {
            let other = alone
                .iter()
                .find(|other| (&other.0, &other.1) == (&one.0, &one.1));
            let kernel = Kernel {
                name: one.0.clone(),
                load: None,
            };
            Some((kernel, [one.2, other?.2]))
        });
        let slowed: Vec<_> = pairs.collect();
        let load = together.first().filter(|_| !slowed.is_empty())?.1.clone();
        let path = line.by();
        let found = words::OneHost {
            network: line.network.clone(),
            class: class.clone(),
            path: path.clone(),
            load,
            slowed,
        };
        let mut finding = Finding::said("kernel-one-host", Severity::Note, &found);
        (finding.network, finding.path) = (Some(line.network), Some(path));
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
        let counts = kernels.into_iter().filter_map(|(_, same)| {
            let row = *same.first()?;
            let printed = row.printed_messages.as_ref()?.messages.0;
            Some((named(row), row.messages?.0, printed))
        });
        let found = words::Messages {
            cite: cite.to_owned(),
            counts: counts.collect(),
        };
        Some(Finding::said("kernel-messages", Severity::Note, &found))
    };
    let groups = groups.into_iter();
    groups
        .filter_map(|(cite, group)| told(&cite?, group))
        .collect()
}

#[cfg(test)]
mod tests;
