//! What a shell completes: commands, options, and the values that they take, runs of the store among them.
//!
//! Model:   the script of a shell calls this program with [`VARIABLE`] set and the words so far behind `--`; it prints what may stand there.
//!          Values come by the id of an argument, from one table. Words of a list are completed behind its last comma. The store is that
//!          of `--out` among the words, else the usual one.
//! Checked: `values_are_completed` of `tests/typed.rs`; `every_argument_is_there`.

use super::OUT;
use crate::suits::applications::{Application, printed};
use clap::Command;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate, Shell};
use sonde_record::{LATEST, Store};
use sonde_workload::npb::Kernel;
use std::ffi::OsStr;
use std::path::PathBuf;

/// What is set where a shell asks.
const VARIABLE: &str = "SONDE_COMPLETE";
/// So many runs are offered, the newest.
const RUNS: usize = 50;

/// What may stand at a place.
type Values = fn() -> Vec<CompletionCandidate>;

/// The ids of arguments, and what each takes.
const VALUES: [(&[&str], Values); 10] = [
    (
        &[
            "network_lists",
            "networks",
            "network",
            "second_network",
            "names",
        ],
        networks,
    ),
    (&["run", "baseline", "resume", "measured"], runs),
    (&["name"], names),
    (&["kernels"], kernels),
    (&["classes"], || all(&["S", "W", "A", "B", "C"])),
    (&["testbed"], || {
        all(&["local", "lab", "hosts:", "slurm", "mpirun", "listen:"])
    }),
    (&["waits"], || all(&["block", "poll"])),
    (&["profile"], || all(&["modern", "era"])),
    (&["workloads"], || {
        all(&[
            "stream",
            "message",
            "latency",
            "rate:",
            "nfs:read",
            "nfs:write",
            "npb:lu",
            "load:0.6",
        ])
    }),
    (&["application"], applications),
];

fn all(words: &[&'static str]) -> Vec<CompletionCandidate> {
    words.iter().map(CompletionCandidate::new).collect()
}

fn networks() -> Vec<CompletionCandidate> {
    let all = sonde_link::catalogue().into_iter();
    let candidate = |network: sonde_link::NetworkSpec| {
        CompletionCandidate::new(network.name).help(Some(network.summary.into()))
    };
    all.map(candidate).collect()
}

fn kernels() -> Vec<CompletionCandidate> {
    let names = Kernel::ALL.iter().map(|kernel| kernel.name());
    names.chain(["all"]).map(CompletionCandidate::new).collect()
}

fn applications() -> Vec<CompletionCandidate> {
    let all = printed().map(|(_, all)| all).unwrap_or_default();
    let candidate =
        |one: Application| CompletionCandidate::new(one.name).help(Some(one.what.into()));
    all.into_iter().map(candidate).collect()
}

/// The folder of the store that the words so far name.
fn store() -> Option<Store> {
    let words: Vec<_> = std::env::args_os().collect();
    let mut named = words.windows(2).rev().filter(|pair| {
        let option = pair.first().and_then(|word| word.to_str());
        option.is_some_and(|option| ["-o", "--out", "--output"].contains(&option))
    });
    let folder = named.next().and_then(|pair| pair.get(1));
    let folder = folder.map_or_else(|| PathBuf::from(OUT), PathBuf::from);
    Store::read(&folder).ok()
}

/// Runs by their ids and names, the newest first.
fn runs() -> Vec<CompletionCandidate> {
    let Some(store) = store() else {
        return Vec::new();
    };
    let heads = store
        .runs()
        .unwrap_or_default()
        .into_iter()
        .rev()
        .take(RUNS);
    let ids = heads.map(|head| CompletionCandidate::new(head.id).help(Some(head.command.into())));
    let latest = CompletionCandidate::new(LATEST);
    [latest]
        .into_iter()
        .chain(ids)
        .chain(of_store(&store))
        .collect()
}

fn names() -> Vec<CompletionCandidate> {
    store().as_ref().map(of_store).unwrap_or_default()
}

/// The names of a store's runs.
fn of_store(store: &Store) -> Vec<CompletionCandidate> {
    let names = store.names().unwrap_or_default().into_iter();
    let mut names: Vec<String> = names.map(|one| one.name).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// What may follow what is typed: behind the last comma, where it is a list.
fn behind(typed: &OsStr, values: Values) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let (before, begin) = typed.split_at(typed.rfind(',').map_or(0, |comma| comma + 1));
    let is_meant = |one: &CompletionCandidate| one.get_value().to_string_lossy().starts_with(begin);
    let meant = values().into_iter().filter(is_meant);
    meant.map(|one| one.add_prefix(before.to_owned())).collect()
}

/// The command with what its arguments take.
fn completed(command: Command) -> Command {
    let command = command.mut_subcommands(completed);
    command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let found = VALUES.iter().find(|(ids, _)| ids.contains(&id));
        match found {
            Some((_, values)) => {
                let values = *values;
                argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
                    behind(typed, values)
                }))
            }
            None => argument,
        }
    })
}

/// Answers a shell, where one asks; whether one did.
pub fn answered() -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(|| completed(super::command())).var(VARIABLE);
    // What cannot be completed is no reason to say anything in the midst of a line.
    asked
        .try_complete(std::env::args_os(), here.as_deref())
        .unwrap_or(true)
}

/// The script of a shell.
pub fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    if let Some(of) = shells.completer(&shell.to_string()) {
        // Writing into memory cannot fail.
        let _ = of.write_registration(VARIABLE, "sonde", "sonde", "sonde", &mut script);
    }
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use sonde_workload::npb::Class;
    use std::collections::BTreeSet;

    fn ids(command: &Command) -> BTreeSet<String> {
        let own = command.get_arguments().map(|one| one.get_id().to_string());
        let below = command.get_subcommands().flat_map(ids);
        own.chain(below).collect()
    }

    #[test]
    fn every_argument_is_there() {
        let known = ids(&super::super::command());
        for id in VALUES.iter().flat_map(|(ids, _)| *ids) {
            assert!(known.contains(*id), "no argument has the id {id}");
        }
        let classes = ["S", "W", "A", "B", "C"];
        assert!(classes.iter().all(|class| class.parse::<Class>().is_ok()));
    }

    #[test]
    fn a_list_is_completed_behind_its_comma() {
        let found = |typed: &str| {
            let found = behind(OsStr::new(typed), networks);
            let values = found
                .iter()
                .map(|one| one.get_value().to_string_lossy().into_owned());
            values.collect::<Vec<_>>()
        };
        assert_eq!(found("fddi,wi"), ["fddi,wire"]);
        assert_eq!(found("fddi-"), ["fddi-switched"]);
        assert!(found("").len() > 30 && found("x").is_empty());
    }

    #[test]
    fn every_shell_has_a_script() {
        for shell in Shell::value_variants() {
            assert!(script(*shell).contains(VARIABLE), "{shell}");
        }
    }
}
