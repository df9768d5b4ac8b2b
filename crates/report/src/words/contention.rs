//! What is said of workloads at once.
//!
//! Checked: `who_hurts_whom_is_said`, `few_repetitions_are_inconclusive`.

use std::collections::BTreeSet;

use sonde_measure::workload::AND;

use crate::contention::{Slowdown, SlowdownState};
use crate::format::counted;

/// Of this machine's loopback.
pub(crate) const LOOPBACK: &str = "This machine's loopback: all slow-downs are the CPUs'.";
/// Why there is no slow-down: nothing to hold it against.
pub(crate) const NOT_ALONE: &str = "it was not measured alone";
/// Why there is no slow-down.
pub(crate) const NO_FIGURE: &str = "no repetition gave its figure";

/// Why it is inconclusive: so many repetitions have no interval.
pub(crate) fn too_few(launches: u64) -> String {
    let launches = counted(launches, "repetition");
    format!("{launches}: 6 are needed for an interval")
}

/// Why it is inconclusive: the bound is within its interval.
pub(crate) fn undecided(low: f64, high: f64, bound: f64) -> String {
    format!("its interval, {low:.2} to {high:.2}, holds {bound}: more repetitions narrow it")
}

/// What is slowed, by whom and where.
pub(crate) fn name(one: &Slowdown) -> String {
    let beside = one.beside.join(AND);
    format!("{} beside {beside} on {}", one.workload, one.network)
}

/// A sentence on a network: who slows whom most, and whom nothing slows.
pub(crate) fn who_hurts_whom(network: &str, all: &[Slowdown]) -> Option<String> {
    let here = || all.iter().filter(|one| one.network == network);
    let alone = || here().filter(|one| one.beside.len() == 1);
    let slowed = || alone().filter(|one| one.state == SlowdownState::Slowed);
    let value = |one: &Slowdown| one.slowdown.map_or(0.0, |value| value.0);
    let mut parts = Vec::new();
    if let Some(worst) = slowed().max_by(|a, b| value(a).total_cmp(&value(b))) {
        parts.push(format!(
            "{} slows {} most, {:.2} times{}",
            worst.beside[0],
            worst.workload,
            value(worst),
            worst.cpu_slowdown.map_or_else(String::new, |cpu| {
                format!(" ({:.2} by the CPUs alone)", cpu.0)
            })
        ));
        let others = slowed().filter(|one| one.cell != worst.cell);
        let others: Vec<String> = others
            .map(|one| format!("{} {} {:.2}", one.beside[0], one.workload, value(one)))
            .collect();
        if !others.is_empty() {
            parts.push(format!("then {}", others.join(", ")));
        }
    }
    let names: BTreeSet<&str> = here().map(|one| one.workload.as_str()).collect();
    let unhurt = names.into_iter().filter(|name| {
        here()
            .filter(|one| one.workload == **name)
            .all(|one| one.state == SlowdownState::NotSlowed)
    });
    let unhurt: Vec<&str> = unhurt.collect();
    if !unhurt.is_empty() {
        parts.push(format!("nothing slows {}", unhurt.join(" and ")));
    }
    if parts.is_empty() {
        here().next()?;
        parts.push("nothing is known to slow anything".into());
    }
    Some(format!("{network}: {}.", parts.join("; ")))
}

/// What a network of its own for another workload brings to this one.
pub(crate) fn apart(one: &Slowdown, all: &[Slowdown]) -> Option<String> {
    let [beside] = &one.beside[..] else {
        return None;
    };
    let (other, network) = beside.split_once('@')?;
    let shared = all.iter().find(|shared| {
        shared.network == one.network && shared.workload == one.workload && shared.beside == [other]
    })?;
    let (own, both) = (one.slowdown?, shared.slowdown?);
    Some(format!(
        "With {other} on {network}, {} takes {:.2} times as long as alone ({}), with both on {} {:.2} times ({}).",
        one.workload,
        own.0,
        one.state.words(),
        one.network,
        both.0,
        shared.state.words()
    ))
}
