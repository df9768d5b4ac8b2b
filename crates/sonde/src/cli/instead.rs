//! What to type instead of what was refused: the right command for a word that is none, the right option, and no text of the parser's
//! own language.
//!
//! Model:   a word that is a command of another place is looked for in the tree of commands; other words, and options of other tools,
//!          stand in two tables.
//! Checked: the tests below; `tests/typed.rs`.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::ffi::OsString;

/// Words that other tools begin with, and what does it here.
const WORDS: [(&str, &str); 21] = [
    ("ping", "sonde probe latency` or `sonde lab run ping h2"),
    ("networks", "sonde lab list"),
    ("catalogue", "sonde lab list"),
    ("catalog", "sonde lab list"),
    ("ls", "sonde lab list` or `sonde report list"),
    ("runs", "sonde report list"),
    ("results", "sonde report show"),
    ("bench", "sonde assess"),
    ("benchmark", "sonde assess"),
    ("measure", "sonde assess"),
    ("test", "sonde assess"),
    ("iperf", "sonde probe throughput"),
    ("iperf3", "sonde probe throughput"),
    ("netperf", "sonde probe throughput"),
    ("kernels", "sonde npb"),
    ("all-pairs", "sonde probe pattern all-pairs"),
    ("emulate", "sonde lab run"),
    ("staging", "sonde stage"),
    ("setup", "sonde doctor"),
    ("install", "sonde doctor"),
    ("version", "sonde --version"),
];

/// Options of other tools, and what does it here.
const OPTIONS: [(&[&str], &str); 9] = [
    (&["-u", "--udp"], "UDP is a path: `--path udp`"),
    (
        &["-c", "--client", "-s", "--server", "--host", "-H"],
        "hosts are of the testbed, and nothing is to be started on them: `--testbed hosts:a,b`",
    ),
    (
        &["-I", "--interface", "--device"],
        "an interface of real hosts is a network: `--network eth=eth0`",
    ),
    (
        &["-1", "-2"],
        "the run before the latest is `latest~1`, and that before it `latest~2`",
    ),
    (
        &["--latency", "--bandwidth", "--throughput"],
        "each is a command: `sonde probe latency`, `sonde probe throughput`",
    ),
    (
        &["-b", "--bitrate"],
        "datagrams at a rate: `sonde probe throughput --path udp --with rate=100M`; background traffic: `sonde load`",
    ),
    (
        &["-v", "--verbose"],
        "all that was measured is shown by `sonde report show --table`, and by `--json`",
    ),
    (
        &["-np", "--np", "--nprocs"],
        "the number of ranks is `--ranks`",
    ),
    (
        &["help"],
        "help on a command: add `--help`, or `-h` for less of it",
    ),
];

/// The error with what to type instead.
pub fn explained(mut error: Error, root: &Command, words: &[OsString]) -> Error {
    let text = |error: &Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(&error, ContextKind::InvalidSubcommand).unwrap_or_default();
            let here = here(root, words);
            if let Some(command) = command(root, &here, &word) {
                error.remove(ContextKind::SuggestedSubcommand);
                tip(&mut error, format!("write `{command}`"));
            } else if let Some(ContextValue::Strings(near)) =
                error.remove(ContextKind::SuggestedSubcommand)
            {
                let is_shown = |name: &String| !is_hidden(root, &here, name);
                let near: Vec<String> = near.into_iter().filter(is_shown).collect();
                if !near.is_empty() {
                    error.insert(
                        ContextKind::SuggestedSubcommand,
                        ContextValue::Strings(near),
                    );
                }
            }
            error
        }
        ErrorKind::UnknownArgument => {
            let word = text(&error, ContextKind::InvalidArg).unwrap_or_default();
            let found = OPTIONS
                .iter()
                .find(|(names, _)| names.contains(&word.as_str()));
            if let Some((_, instead)) = found {
                error.remove(ContextKind::SuggestedArg);
                tip(&mut error, (*instead).into());
            }
            error
        }
        ErrorKind::ValueValidation if is_of_numbers(&error) => {
            let mut ours = Error::new(ErrorKind::ValueValidation).with_cmd(root);
            for kind in [ContextKind::InvalidArg, ContextKind::InvalidValue] {
                if let Some(value) = error.remove(kind) {
                    ours.insert(kind, value);
                }
            }
            tip(&mut ours, "it is a whole number, in digits".into());
            ours
        }
        _ => error,
    }
}

fn tip(error: &mut Error, text: String) {
    let tips = vec![StyledStr::from(text)];
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
}

/// Whether a number was not read, for which the standard library has words of its own.
fn is_of_numbers(error: &Error) -> bool {
    use std::error::Error as _;
    error.source().is_some_and(|source| {
        source.is::<std::num::ParseIntError>() || source.is::<std::num::ParseFloatError>()
    })
}

/// The commands that the words name, from the first on.
fn here<'a>(root: &'a Command, words: &[OsString]) -> Vec<&'a str> {
    let (mut at, mut path) = (root, Vec::new());
    for word in words.iter().skip(1) {
        let Some(next) = word.to_str().and_then(|word| at.find_subcommand(word)) else {
            break;
        };
        path.push(next.get_name());
        at = next;
    }
    path
}

fn is_hidden(root: &Command, here: &[&str], name: &str) -> bool {
    let at = here
        .iter()
        .try_fold(root, |at, name| at.find_subcommand(name));
    at.and_then(|at| at.find_subcommand(name))
        .is_some_and(Command::is_hide_set)
}

/// The command that a word is of, where it is none here: of the tree, of the tables, or a collective call.
fn command(root: &Command, here: &[&str], word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    // A command in another case.
    if let Some(name) = here
        .iter()
        .try_fold(root, |at, name| at.find_subcommand(name))
        .and_then(|at| at.find_subcommand(&lower))
        .filter(|found| !found.is_hide_set())
    {
        let path = [&["sonde"][..], here, &[name.get_name()]].concat();
        return Some(path.join(" "));
    }
    let groups = root.get_subcommands().filter(|group| !group.is_hide_set());
    let found = groups.filter_map(|group| {
        let of = group.find_subcommand(&lower)?;
        (of.get_name() != "help").then(|| format!("sonde {} {}", group.get_name(), of.get_name()))
    });
    let mut found: Vec<String> = found.collect();
    let is_top = root.find_subcommand(&lower);
    if let (Some(of), false) = (is_top, here.is_empty()) {
        found.push(format!("sonde {}", of.get_name()));
    }
    if found.is_empty() {
        let known = WORDS.iter().find(|(known, _)| *known == lower);
        found.extend(known.map(|(_, command)| (*command).to_owned()));
    }
    if found.is_empty() {
        let call = super::typed::call(&lower).ok();
        found.extend(call.map(|call| format!("sonde probe collective {call}")));
    }
    (!found.is_empty()).then(|| found.join("` or `"))
}

#[cfg(test)]
mod tests {
    use super::super::Arguments;
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn words_lead_to_commands() {
        let root = Arguments::command();
        for (here, word, wanted) in [
            (&[][..], "latency", "sonde probe latency"),
            (&[], "list", "sonde lab list` or `sonde report list"),
            (&[], "run", "sonde lab run"),
            (&[], "networks", "sonde lab list"),
            (&[], "Probe", "sonde probe"),
            (&[], "bcast", "sonde probe collective broadcast"),
            (&["lab"], "latency", "sonde probe latency"),
            (&["report"], "assess", "sonde assess"),
        ] {
            assert_eq!(
                command(&root, here, word).as_deref(),
                Some(wanted),
                "{word}"
            );
        }
        assert_eq!(command(&root, &[], "xyzzy"), None);
    }

    #[test]
    fn what_is_named_instead_exists() {
        let root = Arguments::command();
        for (_, instead) in WORDS {
            for command in instead.split("` or `") {
                let mut at = &root;
                for name in command.split(' ').skip(1) {
                    match at.find_subcommand(name) {
                        Some(next) => at = next,
                        None => break,
                    }
                }
                assert!(
                    command.contains("--version") || at.get_name() != "sonde",
                    "{command}"
                );
            }
        }
        for (names, _) in OPTIONS {
            for name in names.iter().filter_map(|name| name.strip_prefix("--")) {
                let here = |command: &Command| {
                    let mut all = command.get_arguments();
                    all.any(|option| option.get_long() == Some(name))
                };
                let probe = root.find_subcommand("probe").unwrap();
                assert!(
                    !here(probe.find_subcommand("throughput").unwrap()),
                    "{name}"
                );
            }
        }
    }
}
