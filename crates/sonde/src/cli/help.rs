//! How help is arranged: options under four headings, the few of them that `-h` shows, and exit codes behind `--help`.
//!
//! Model:   one table for all commands, by the long name of an option; an option that is not in it stands under "Options".
//! Checked: `every_option_of_a_measurement_has_its_heading`; `tests/typed.rs`.

use clap::Command;

const WHAT: &str = "What";
const WHERE: &str = "Where";
const HOW_OFTEN: &str = "How often";
const OUTPUT: &str = "Output";

/// Whether `-h` shows an option too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Always,
    LongOnly,
}

use Shown::{Always, LongOnly};

const OPTIONS: [(&str, &str, Shown); 70] = [
    ("path", WHAT, Always),
    ("size", WHAT, Always),
    ("op", WHAT, Always),
    ("transfer", WHAT, Always),
    ("outstanding", WHAT, Always),
    ("clients", WHAT, Always),
    ("input", WHAT, Always),
    ("output", WHAT, Always),
    ("verify", WHAT, Always),
    ("mode", WHAT, LongOnly),
    ("streams", WHAT, Always),
    ("method", WHAT, LongOnly),
    ("with", WHAT, LongOnly),
    ("wait", WHAT, LongOnly),
    ("kind", WHAT, Always),
    ("senders", WHAT, LongOnly),
    ("gap", WHAT, LongOnly),
    ("rate", WHAT, Always),
    ("law", WHAT, LongOnly),
    ("ranks", WHAT, Always),
    ("algorithm", WHAT, LongOnly),
    ("class", WHAT, Always),
    ("age", WHAT, LongOnly),
    ("udp-limit", WHAT, Always),
    ("lost", WHAT, LongOnly),
    ("apply", WHAT, Always),
    ("flow", WHAT, Always),
    ("rho", WHAT, Always),
    ("application", WHAT, Always),
    ("of", WHAT, LongOnly),
    ("testbed", WHERE, Always),
    ("network", WHERE, Always),
    ("site", WHERE, Always),
    ("between", WHERE, LongOnly),
    ("second-network", WHERE, Always),
    ("no-wire", WHERE, LongOnly),
    ("hosts", WHERE, LongOnly),
    ("busy", WHERE, Always),
    ("listen", WHERE, LongOnly),
    ("load", WHERE, LongOnly),
    ("load-flow", WHERE, LongOnly),
    ("load-of", WHERE, LongOnly),
    ("line-rate", WHERE, LongOnly),
    ("max-rate", HOW_OFTEN, LongOnly),
    ("max-seconds", HOW_OFTEN, LongOnly),
    ("attachment", WHERE, LongOnly),
    ("priority", WHERE, LongOnly),
    ("profile", WHERE, LongOnly),
    ("script", WHERE, LongOnly),
    ("prepare", WHERE, LongOnly),
    ("collapsed", WHERE, LongOnly),
    ("launches", HOW_OFTEN, Always),
    ("quick", HOW_OFTEN, Always),
    ("thorough", HOW_OFTEN, LongOnly),
    ("budget", HOW_OFTEN, LongOnly),
    ("for", HOW_OFTEN, Always),
    ("window", HOW_OFTEN, LongOnly),
    ("lead", HOW_OFTEN, LongOnly),
    ("samples", HOW_OFTEN, LongOnly),
    ("precision", HOW_OFTEN, LongOnly),
    ("seed", HOW_OFTEN, LongOnly),
    ("until-quiet", HOW_OFTEN, LongOnly),
    ("no-preflight", HOW_OFTEN, LongOnly),
    ("name", OUTPUT, LongOnly),
    ("html", OUTPUT, LongOnly),
    ("open", OUTPUT, LongOnly),
    ("json-stream", OUTPUT, LongOnly),
    ("strict", OUTPUT, LongOnly),
    ("print-plan", OUTPUT, LongOnly),
    ("resume", OUTPUT, LongOnly),
];

/// Of every command that measures, whatever else it has.
const OF_OUTPUT: [&str; 7] = ["out", "json", "csv", "to", "dry-run", "table", "findings"];

const MORE: &str = "`--help` shows all options, with their defaults, and the exit codes.";

const EXIT_CODES: &str = "Exit codes: 0 done; 1 a requirement, a check or a verdict failed, or cells are missing; 2 nothing could be measured;
3 what was required or compared is inconclusive, or with --strict a figure is uncertain; 64 the command line was not understood;
70 a defect of sonde; 74 output cannot be written; 130 interrupted.";

/// The command with its help arranged.
pub fn arranged(command: Command) -> Command {
    let is_measurement = command
        .get_arguments()
        .any(|option| option.get_long() == Some("dry-run"));
    let command = command.mut_subcommands(arranged);
    if !is_measurement {
        return command;
    }
    let after = command.get_after_help().cloned().unwrap_or_default();
    let command = command.mut_args(|option| {
        let Some(name) = option.get_long().map(str::to_owned) else {
            return option;
        };
        if OF_OUTPUT.contains(&name.as_str()) {
            return option.help_heading(OUTPUT);
        }
        let known = OPTIONS.iter().find(|(known, ..)| *known == name);
        match known {
            Some((_, heading, shown)) => option
                .help_heading(*heading)
                .hide_short_help(*shown == LongOnly),
            None => option.hide_short_help(true),
        }
    });
    command
        .after_help(MORE)
        .after_long_help(format!("{after}\n\n{EXIT_CODES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &Command) -> Vec<&Command> {
        let below: Vec<&Command> = command.get_subcommands().flat_map(leaves).collect();
        [vec![command], below].concat()
    }

    /// The parser looks at such names in debug builds alone, of which there are none; this panics where one is unknown.
    #[test]
    fn what_excludes_another_names_what_exists() {
        let mut root = super::super::command();
        root.build();
        let mut pairs = 0;
        for command in leaves(&root) {
            for option in command.get_arguments() {
                pairs += command.get_arg_conflicts_with(option).len();
            }
        }
        assert!(pairs > 20, "{pairs}");
    }

    /// As above: two of a name are one that is never read.
    #[test]
    fn no_command_has_two_options_of_a_name() {
        let mut root = super::super::command();
        root.build();
        for command in leaves(&root) {
            let names = command.get_arguments().filter_map(clap::Arg::get_long);
            let mut seen = std::collections::BTreeSet::new();
            for name in names {
                assert!(seen.insert(name), "{} --{name}", command.get_name());
            }
        }
    }

    #[test]
    fn every_option_of_a_measurement_has_its_heading() {
        let root = super::super::command();
        let all = leaves(&root);
        let names: Vec<&str> = all
            .iter()
            .flat_map(|command| {
                command
                    .get_arguments()
                    .filter_map(|option| option.get_long())
            })
            .collect();
        for name in OPTIONS.iter().map(|(name, ..)| name).chain(&OF_OUTPUT) {
            assert!(names.contains(name), "no command has --{name}");
        }
        let probe = root.find_subcommand("probe").unwrap();
        let latency = probe.find_subcommand("latency").unwrap();
        let options = latency
            .get_arguments()
            .filter(|option| !option.is_hide_set());
        for option in options.filter(|option| option.get_long().is_some()) {
            assert!(
                option.get_help_heading().is_some(),
                "{:?}",
                option.get_long()
            );
        }
        let short = latency.clone().render_help().to_string();
        let long = latency.clone().render_long_help().to_string();
        let count = |text: &str| {
            text.lines()
                .filter(|line| line.trim_start().starts_with('-'))
                .count()
        };
        assert!((6..=14).contains(&count(&short)), "{short}");
        assert!(count(&long) > 20 && long.contains("Exit codes:"), "{long}");
        for heading in [WHAT, WHERE, HOW_OFTEN, OUTPUT] {
            assert!(long.contains(&format!("{heading}:")), "{long}");
        }
        assert!(long.contains("Examples:"), "{long}");
    }
}
