//! Commands as they are typed, and scripts of them.
//!
//! Model:   a command is a verb and its words: `link h2 down`, `loss h2 1%`, `load 1 h2 rho=0.6 law=poisson`. A script has one
//!          a line after its time (`2.5s pause h1 on`); what follows a `#` is for people.
//! Units:   hosts are h1, h2, …, which are the ports 0, 1, …; other values carry their unit.
//! Checked: `commands_parse_and_print`, property `any_command_round_trips`, `what_is_wrong_is_named`, `scripts_name_the_line`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use crate::schedule::TIME_MAX;
use crate::{Class, Command, Fault, Flow, Law, Port, VcCommand};
use sonde_units::{BitRate, Bytes, Instant, Span, excerpt};
use std::{fmt, str::FromStr};
use thiserror::Error;

/// The verbs, each with an example.
const VERBS: &[(&str, &str)] = &[
    ("link", "link h2 down"),
    ("host", "host h2 down"),
    ("pause", "pause h1 on"),
    ("cut", "cut h1 h2 on"),
    ("loss", "loss h2 1%"),
    ("corrupt", "corrupt h2 0.1%"),
    ("duplicate", "duplicate all 1%"),
    ("reorder", "reorder h2 5% 1ms"),
    ("delay", "delay all 5ms"),
    ("mtu", "mtu h2 1400"),
    ("collide", "collide h2 20%"),
    ("rate", "rate 10Mbit"),
    ("trunk", "trunk 0 down"),
    ("restart", "restart 2s"),
    ("manager", "manager down"),
    ("load", "load 1 h1 h2 rho=0.6 law=poisson"),
    ("vc", "vc establish h1 h2"),
    ("busy", "busy h1 10ms"),
];

/// Why a text is not a command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{}`: {problem}; write it as in `{example}`", excerpt(text))]
pub struct CommandError {
    /// What was typed.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
    /// The nearest that is right.
    pub example: &'static str,
}

/// Why a script cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct ScriptError {
    /// Which line, counted from 1.
    pub line: usize,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

/// Commands at their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// In the order of their times; at equal times in that of the lines.
    pub commands: Vec<(Instant, Command)>,
}

impl Script {
    /// Reads a script: lines of `TIME COMMAND`, times counting from the start of the network.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut commands = Vec::new();
        for (number, whole) in (1..).zip(text.lines()) {
            let line = whole.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let error = |problem: String| ScriptError {
                line: number,
                problem,
            };
            let (at, command) = line.split_once(char::is_whitespace).ok_or_else(|| {
                error(format!(
                    "`{}` has a time or a command, not both; write `2s link h2 down`",
                    excerpt(line)
                ))
            })?;
            let at: Span = at
                .parse()
                .map_err(|e| error(format!("{e}, before the command, as in `2s link h2 down`")))?;
            if at > TIME_MAX {
                return Err(error(format!(
                    "{at} is later than 13 weeks; a run is shorter"
                )));
            }
            let command = command
                .parse()
                .map_err(|e: CommandError| error(e.to_string()))?;
            commands.push((Instant::START.saturating_add(at), command));
        }
        commands.sort_by_key(|(at, _)| *at);
        Ok(Self { commands })
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, command) in &self.commands {
            writeln!(f, "{} {command}", at.since(Instant::START))?;
        }
        Ok(())
    }
}

/// The port of a host's name.
///
/// # Errors
/// What is wrong with it, as the begin of a sentence.
pub(crate) fn host(text: &str) -> Result<Port, String> {
    let number = text.strip_prefix('h').and_then(|n| n.parse::<u16>().ok());
    let port = number.and_then(|number| number.checked_sub(1));
    port.map(Port)
        .ok_or_else(|| format!("`{}` is not a host: they are h1, h2, …", excerpt(text)))
}

/// The words after a verb.
struct Words<'a>(std::iter::Peekable<std::str::SplitWhitespace<'a>>);

impl Words<'_> {
    fn next(&mut self, what: &str) -> Result<&str, String> {
        self.0.next().ok_or_else(|| format!("{what} is missing"))
    }

    fn host(&mut self) -> Result<Port, String> {
        host(self.next("the host")?)
    }

    /// A host, or all where none or `all` is named.
    fn host_or_all(&mut self) -> Result<Option<Port>, String> {
        match self.0.peek() {
            Some(&"all") => {
                self.0.next();
                Ok(None)
            }
            Some(word) if word.starts_with('h') => self.host().map(Some),
            _ => Ok(None),
        }
    }

    fn value<T: FromStr<Err: fmt::Display>>(&mut self, what: &str) -> Result<T, String> {
        let word = self.next(what)?;
        word.parse().map_err(|e| format!("{e}"))
    }

    /// One of two words; the first is true.
    fn either(&mut self, yes: &str, no: &str) -> Result<bool, String> {
        let word = self.next(&format!("`{yes}` or `{no}`"))?;
        match word {
            _ if word == yes => Ok(true),
            _ if word == no => Ok(false),
            _ => Err(format!("`{}` is neither `{yes}` nor `{no}`", excerpt(word))),
        }
    }

    fn up(&mut self) -> Result<bool, String> {
        self.either("up", "down")
    }

    fn number<T: FromStr>(&mut self, what: &str) -> Result<T, String> {
        let word = self.next(what)?;
        word.parse()
            .map_err(|_| format!("`{}` is not {what}", excerpt(word)))
    }

    fn flow(&mut self) -> Result<Flow, String> {
        let number = self.number("the number of a flow, 0 to 63,")?;
        let first = self.host()?;
        let (from, to) = match self.0.peek() {
            Some(word) if word.starts_with('h') => (Some(first), self.host()?),
            _ => (None, first),
        };
        let (mut rho, mut law, mut size, mut class) = (None, Law::Poisson, Bytes::ZERO, 0);
        for word in self.0.by_ref() {
            let say = |e: &dyn fmt::Display| e.to_string();
            match word.split_once('=') {
                Some(("rho", value)) => rho = Some(value.parse().map_err(|e| say(&e))?),
                Some(("law", value)) => law = value.parse()?,
                Some(("size", value)) => size = value.parse().map_err(|e| say(&e))?,
                Some(("class", value)) => {
                    class = value
                        .parse()
                        .map_err(|_| format!("`{value}` is not a class of 0 to 255"))?;
                }
                _ => {
                    return Err(format!(
                        "`{}` is none of rho=, law=, size=, class=",
                        excerpt(word)
                    ));
                }
            }
        }
        Ok(Flow {
            number,
            from,
            to,
            rho: rho.ok_or("the level `rho=` is missing")?,
            law,
            size,
            class: Class(class),
        })
    }

    fn fault(&mut self, verb: &str) -> Result<Fault, String> {
        Ok(match verb {
            "link" => Fault::Link {
                port: match self.0.peek() {
                    Some(&"all") => self.host_or_all()?,
                    _ => Some(self.host()?),
                },
                up: self.up()?,
            },
            "host" => Fault::Host {
                port: self.host()?,
                up: self.up()?,
            },
            "pause" => Fault::Pause {
                port: self.host()?,
                on: self.either("on", "off")?,
            },
            "cut" => Fault::Cut {
                a: self.host()?,
                b: self.host()?,
                on: self.0.peek().is_none() || self.either("on", "off")?,
            },
            "loss" => Fault::Loss {
                port: self.host_or_all()?,
                share: self.value("the probability")?,
            },
            "corrupt" => Fault::Corruption {
                port: self.host_or_all()?,
                share: self.value("the probability")?,
            },
            "duplicate" => Fault::Duplication {
                port: self.host_or_all()?,
                share: self.value("the probability")?,
            },
            "reorder" => Fault::Reordering {
                port: self.host_or_all()?,
                share: self.value("the probability")?,
                by: self.value("how long they are held back")?,
            },
            "delay" => Fault::Delay {
                port: self.host_or_all()?,
                by: self.value("how much")?,
            },
            "mtu" => Fault::Narrow {
                port: self.host_or_all()?,
                longest: match self.next("the longest frame in bytes, or `own`,")? {
                    "own" => None,
                    word => Some(Bytes(word.parse().map_err(|_| {
                        format!("`{}` is not a number of bytes, as in 1400", excerpt(word))
                    })?)),
                },
            },
            "collide" => Fault::Collision {
                port: self.host_or_all()?,
                share: self.value("the probability")?,
            },
            "rate" => self.rate()?,
            "trunk" => Fault::Trunk {
                trunk: self.number("the number of a trunk")?,
                up: self.up()?,
            },
            "restart" => Fault::Restart {
                down: self.value("how long it takes")?,
            },
            _ => Fault::Manager { up: self.up()? },
        })
    }

    /// Of all lines, of the line to a host, or of the way from one host to another.
    fn rate(&mut self) -> Result<Fault, String> {
        let mut host = || {
            let is_host = self.0.peek().is_some_and(|word| word.starts_with('h'));
            is_host.then(|| self.host()).transpose()
        };
        let (first, second) = (host()?, host()?);
        let rate = match self.next("the rate, or `own`,")? {
            "own" => None,
            word => Some(word.parse::<BitRate>().map_err(|e| e.to_string())?),
        };
        Ok(match (first, second) {
            (None, _) => Fault::Rate { rate },
            (Some(to), None) => Fault::Slow {
                from: None,
                to,
                rate,
            },
            (from, Some(to)) => Fault::Slow { from, to, rate },
        })
    }

    fn command(&mut self, verb: &str) -> Result<Command, String> {
        let command = match verb {
            "vc" => {
                let establish = self.either("establish", "release")?;
                let (a, b) = (self.host()?, self.host()?);
                Command::Vc(if establish {
                    VcCommand::Establish(a, b)
                } else {
                    VcCommand::Release(a, b)
                })
            }
            "load" => Command::Load(self.flow()?),
            "busy" => Command::Busy(self.host()?, self.value("how long")?),
            _ => Command::Fault(self.fault(verb)?),
        };
        match self.0.next() {
            Some(word) => Err(format!("`{}` is too much", excerpt(word))),
            None => Ok(command),
        }
    }
}

impl Command {
    /// Reads a command as it is typed: `link h2 down`.
    ///
    /// # Errors
    /// [`CommandError`], with the nearest that is right.
    pub fn parse(text: &str) -> Result<Self, CommandError> {
        text.parse()
    }
}

impl FromStr for Command {
    type Err = CommandError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = Words(text.split_whitespace().peekable());
        let verb = words.0.next().unwrap_or_default();
        let nearest = VERBS
            .iter()
            .min_by_key(|(known, _)| strsim::damerau_levenshtein(known, verb));
        let (known, example) = nearest.copied().unwrap_or_default();
        let result = if known == verb {
            words.command(verb)
        } else {
            let verbs: Vec<_> = VERBS.iter().map(|(verb, _)| *verb).collect();
            Err(format!(
                "`{}` is not a command, the nearest is `{known}`; there are {}",
                excerpt(verb),
                verbs.join(", ")
            ))
        };
        result.map_err(|problem| CommandError {
            text: text.to_owned(),
            problem,
            example,
        })
    }
}

/// A host's name.
struct Host(Port);

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h{}", u32::from(self.0.0).saturating_add(1))
    }
}

/// A host's name, or `all`.
struct HostOrAll(Option<Port>);

impl fmt::Display for HostOrAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(port) => Host(port).fmt(f),
            None => f.write_str("all"),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Vc(VcCommand::Establish(a, b)) => {
                write!(f, "vc establish {} {}", Host(a), Host(b))
            }
            Self::Vc(VcCommand::Release(a, b)) => write!(f, "vc release {} {}", Host(a), Host(b)),
            Self::Busy(port, span) => write!(f, "busy {} {span}", Host(port)),
            Self::Fault(fault) => fault.fmt(f),
            Self::Load(flow) => {
                write!(f, "load {} ", flow.number)?;
                if let Some(from) = flow.from {
                    write!(f, "{} ", Host(from))?;
                }
                write!(f, "{} rho={} law={}", Host(flow.to), flow.rho, flow.law)?;
                write!(f, " size={} class={}", flow.size, flow.class.0)
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up = |up| if up { "up" } else { "down" };
        let on = |on| if on { "on" } else { "off" };
        match *self {
            Self::Link { port, up: is_up } => {
                write!(f, "link {} {}", HostOrAll(port), up(is_up))
            }
            Self::Host { port, up: is_up } => write!(f, "host {} {}", Host(port), up(is_up)),
            Self::Pause { port, on: is_on } => write!(f, "pause {} {}", Host(port), on(is_on)),
            Self::Cut { a, b, on: is_on } => write!(f, "cut {} {} {}", Host(a), Host(b), on(is_on)),
            Self::Loss { port, share } => write!(f, "loss {} {share}", HostOrAll(port)),
            Self::Corruption { port, share } => write!(f, "corrupt {} {share}", HostOrAll(port)),
            Self::Duplication { port, share } => write!(f, "duplicate {} {share}", HostOrAll(port)),
            Self::Reordering { port, share, by } => {
                write!(f, "reorder {} {share} {by}", HostOrAll(port))
            }
            Self::Delay { port, by } => write!(f, "delay {} {by}", HostOrAll(port)),
            Self::Narrow { port, longest } => match longest {
                Some(longest) => write!(f, "mtu {} {}", HostOrAll(port), longest.0),
                None => write!(f, "mtu {} own", HostOrAll(port)),
            },
            Self::Collision { port, share } => write!(f, "collide {} {share}", HostOrAll(port)),
            Self::Slow { from, to, rate } => {
                f.write_str("rate ")?;
                if let Some(from) = from {
                    write!(f, "{} ", Host(from))?;
                }
                match rate {
                    Some(rate) => write!(f, "{} {rate}", Host(to)),
                    None => write!(f, "{} own", Host(to)),
                }
            }
            Self::Rate { rate: Some(rate) } => write!(f, "rate {rate}"),
            Self::Rate { rate: None } => f.write_str("rate own"),
            Self::Trunk { trunk, up: is_up } => write!(f, "trunk {trunk} {}", up(is_up)),
            Self::Restart { down } => write!(f, "restart {down}"),
            Self::Manager { up: is_up } => write!(f, "manager {}", up(is_up)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::commands;
    use proptest::prelude::*;

    #[test]
    fn commands_parse_and_print() {
        for (verb, example) in VERBS {
            let command = Command::parse(example).unwrap();
            assert!(command.to_string().starts_with(verb));
            assert_eq!(Command::parse(&command.to_string()), Ok(command));
        }
        let same = [
            ("delay 5ms", "delay all 5ms"),
            ("cut h1 h2", "cut h1 h2 on"),
            ("mtu 1400", "mtu all 1400"),
            (
                "load 1 h2 rho=0.6",
                "load 1 h2 rho=60% law=poisson size=0B class=0",
            ),
        ];
        for (short, long) in same {
            assert_eq!(
                Command::parse(short).unwrap(),
                Command::parse(long).unwrap()
            );
        }
    }

    proptest! {
        #[test]
        fn any_command_round_trips(command in commands()) {
            prop_assert_eq!(Command::parse(&command.to_string()), Ok(command));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wanted) in [
            ("", "not a command"),
            ("lnik h2 down", "nearest is `link`"),
            ("link h2", "`up` or `down` is missing"),
            ("link h0 down", "`h0` is not a host"),
            ("link h2 off", "neither `up` nor `down`"),
            ("loss h2 much", "is not a ratio"),
            ("load 1 h2 law=poisson", "`rho=` is missing"),
            ("load 1 h2 rho=0.5 low=1", "none of rho="),
            ("load 999 h2 rho=0.5", "0 to 63"),
            ("link h2 down now", "`now` is too much"),
            ("delay h2 5", "5"),
            ("mtu h2 small", "not a number of bytes"),
            ("rate h2 h3", "the rate, or `own`, is missing"),
        ] {
            let error = Command::parse(text).unwrap_err().to_string();
            assert!(
                error.contains(wanted) && error.contains("write it as in"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn scripts_name_the_line() {
        let text = "# a flap\n2s link h2 down\n\n2.5s link h2 up # mended\n1s loss 1%\n";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.commands.len(), 3);
        assert!(script.commands.is_sorted_by_key(|(at, _)| *at));
        assert_eq!(Script::parse(&script.to_string()), Ok(script));
        for (text, line) in [
            ("1s\n", 1),
            ("\nlink h2 down\n", 2),
            ("1s loss 1%\n2s los h2\n", 2),
            ("9999999s loss 1%", 1),
        ] {
            assert_eq!(Script::parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
