//! Which of the options that every measurement takes mean nothing for a command, and why.
//!
//! Model:   one table; what is not in it means for the command what its help says. An option that would change nothing is refused,
//!          so that nobody takes a run for what it is not.
//! Checked: `each_is_refused_with_its_reason`.

use super::options::Common;
use crate::failure::Failure;
use crate::plan::Kind;

/// A command that takes the common options and for which not all of them mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `sonde probe pattern`.
    Pattern,
    /// `sonde tune`.
    Tune,
    /// `sonde lab check`.
    LabCheck,
    /// `sonde probe check`.
    Check,
    /// `sonde npb`.
    Npb,
    /// `sonde contend`.
    Contend,
    /// `sonde stage`.
    Stage,
    /// Every one of them.
    Any,
}

use Command::{Any, Check, Contend, LabCheck, Npb, Pattern, Stage, Tune};

impl Command {
    const fn name(self) -> &'static str {
        match self {
            Pattern => "sonde probe pattern",
            Tune => "sonde tune",
            LabCheck => "sonde lab check",
            Check => "sonde probe check",
            Npb => "sonde npb",
            Contend => "sonde contend",
            Stage => "sonde stage",
            Any => "this testbed",
        }
    }
}

/// Whether an option was given.
type Given = fn(&Common) -> bool;

const TESTBED: (&str, Given) = ("`--testbed`", |common| common.testbed.0 != Kind::Lab);
const LISTEN: (&str, Given) = ("`--listen`", |common| common.listen.is_some());
const LOAD: (&str, Given) = ("`--load`", |common| !common.loads.is_empty());
const WAIT: (&str, Given) = ("`--wait`", |common| !common.waits.is_empty());
const WAITS: (&str, Given) = ("several values of `--wait`", |common| {
    common.waits.len() > 1
});
const BETWEEN: (&str, Given) = ("`--between`", |common| common.between.is_some());
const NETWORKS: (&str, Given) = ("several networks", |common| {
    common.networks().len() + common.sites.len() > 1
});
const JSON_STREAM: (&str, Given) = ("`--json-stream`", |common| common.json_stream);
const REQUIRE: (&str, Given) = ("`--require`", |common| common.require.is_given());
const STRICT: (&str, Given) = ("`--strict`", |common| common.strict);

const HOSTS: (&str, Given) = ("`--hosts`", |common| {
    common.hosts.hosts.is_some() && common.testbed.0 != Kind::Lab
});

const UNTIL_QUIET: (&str, Given) = ("`--until-quiet`", |common| {
    common.preflight.until_quiet.is_some() && common.testbed.0.is_real()
});

/// What is refused, and what to do instead.
const REFUSED: [(Command, (&str, Given), &str); 23] = [
    (
        Any,
        HOSTS,
        "it is the number of a lab's hosts: leave it out, or use `--testbed lab`",
    ),
    (
        Any,
        UNTIL_QUIET,
        "it looks at this machine, which only steers the hosts: leave it out",
    ),
    (
        Pattern,
        LOAD,
        "its flows are the load: name them as pairs, as in h1>h2,h3>h4",
    ),
    (
        Pattern,
        WAIT,
        "its flows complete by blocking, since a host has several: leave it out",
    ),
    (
        Pattern,
        STRICT,
        "its verdict sets the exit code as it is: leave it out",
    ),
    (
        Tune,
        LOAD,
        "a load is not a setting: measure its effect by `sonde probe throughput --load`",
    ),
    (Tune, WAITS, "tune one after the other"),
    (Tune, NETWORKS, "tune one after the other"),
    (
        Tune,
        JSON_STREAM,
        "it measures again after each change: use `--json`",
    ),
    (
        LabCheck,
        TESTBED,
        "it checks an emulation, which only a lab is: leave it out",
    ),
    (
        LabCheck,
        LISTEN,
        "a lab's agents need no address: leave it out",
    ),
    (LabCheck, NETWORKS, "check one after the other"),
    (
        Pattern,
        BETWEEN,
        "its flows say between whom: name them as pairs, as in h1>h2",
    ),
    (
        LabCheck,
        LOAD,
        "its bounds are those of an idle network: measure it by `sonde probe latency --load`",
    ),
    (
        LabCheck,
        WAIT,
        "the cost of hosts cancels where both sides block: leave it out",
    ),
    (
        Tune,
        REQUIRE,
        "it compares settings: require a rate of `sonde probe throughput`",
    ),
    (
        LabCheck,
        REQUIRE,
        "its bounds are those of the model: leave it out",
    ),
    (
        Check,
        REQUIRE,
        "what a library must give is known: leave it out",
    ),
    (
        Npb,
        REQUIRE,
        "its verdict is the benchmark's: give it to `sonde assess PLAN`, with the plan that `--print-plan` prints",
    ),
    (
        Contend,
        LOAD,
        "a load is one of its workloads: name it as load:0.6",
    ),
    (
        Contend,
        REQUIRE,
        "it compares: require a rate of what it measures alone",
    ),
    (Stage, WAITS, "a job waits one way: name one"),
    (
        Stage,
        REQUIRE,
        "it compares: require a rate of `sonde probe files`, or the time of `sonde npb`",
    ),
];

impl Common {
    /// Refuses what means nothing for the command.
    ///
    /// # Errors
    /// The first option that does not, with the reason.
    pub fn check(&self, command: Command) -> Result<(), Failure> {
        for (of, (option, is_given), reason) in REFUSED {
            if of == command && is_given(self) {
                let name = match command {
                    Any => command.name().to_owned(),
                    _ => format!("`{}`", command.name()),
                };
                return Err(Failure::usage(format!(
                    "{name} does not take {option}: {reason}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        common: Common,
    }

    #[test]
    fn each_is_refused_with_its_reason() {
        let words = |option: &str| match option.trim_matches('`') {
            "--testbed" => vec!["--testbed", "local"],
            "--hosts" => vec!["--hosts", "8", "--testbed", "local"],
            "--listen" => vec!["--listen", "10.0.0.1:4000"],
            "--load" => vec!["--load", "0.5"],
            "--wait" => vec!["--wait", "poll"],
            "several values of `--wait" => vec!["--wait", "block,poll"],
            "several networks" => vec!["--network", "fddi", "--network", "wire"],
            "--json-stream" => vec!["--json-stream"],
            "--strict" => vec!["--strict"],
            "--until-quiet" => vec!["--until-quiet", "--testbed", "a,b"],
            "--require" => vec!["--require", "latency<=1ms"],
            "--between" => vec!["--between", "h1>h2"],
            other => panic!("{other}"),
        };
        let common = |words: Vec<&str>| Line::parse_from([vec!["line"], words].concat()).common;
        for (command, (option, _), reason) in REFUSED {
            let said = common(words(option))
                .check(command)
                .unwrap_err()
                .to_string();
            assert!(said.contains(option) && said.contains(reason), "{said}");
        }
        for command in [Pattern, Tune, LabCheck, Check, Npb, Contend, Stage, Any] {
            common(Vec::new()).check(command).unwrap();
            common(vec!["--quick", "--json", "--network", "fddi"])
                .check(command)
                .unwrap();
        }
    }
}
