//! What a network's own file says shall happen to it: loads and faults, at their times.
//!
//! Model:   `[[load]]` is one flow or, with `duplex`, two; flows are numbered from 0 in the order of the file. `[[fault]]` has
//!          a command as it is typed, once or again `every` so often, and ended after it `lasts` so long. All become
//!          commands in the order of their times, at equal times in that of the file, loads first.
//! Units:   times count from the start of the network and carry their unit in the text; hosts are h1, h2, ….
//! Checked: `tests/loads.rs`, `tests/faults.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::load::FLOWS_MAX;
use crate::{Class, Command, Fault, Flow, Law, Port, SpecError, VcCommand};
use serde::{Deserialize, Serialize};
use sonde_units::{Bytes, Instant, Ratio, Span};
use std::collections::VecDeque;

/// A schedule has no more commands.
const COMMANDS_MAX: usize = 100_000;
/// No time of a schedule or a script is later: a trial of a quarter.
pub(crate) const TIME_MAX: Span = Span::secs(13 * 7 * 24 * 3_600);

/// Background traffic on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// The host whose line it comes by; none: from elsewhere, straight to the link of `to`.
    #[serde(default, with = "host::maybe", skip_serializing_if = "Option::is_none")]
    pub from: Option<Port>,
    /// The host that it ends at.
    #[serde(with = "host")]
    pub to: Port,
    /// The share of the link, 0 to 1.
    pub rho: Ratio,
    /// How its frames follow each other: `constant`, `poisson`, `geometric`, `on-off:20`, `self-similar:20` or `replay`.
    #[serde(with = "as_text")]
    pub law: Law,
    /// Layer-3 bytes of each frame; without it one cell on ATM, else a full frame.
    #[serde(default)]
    pub size: Bytes,
    /// Its class.
    #[serde(default)]
    pub class: u8,
    /// When it begins.
    #[serde(default)]
    pub at: Span,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// Whether as much goes the other way; needs `from`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplex: bool,
}

/// A command at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// When.
    pub at: Span,
    /// What, as it is typed: `link h2 down`.
    #[serde(with = "as_text")]
    pub command: Command,
    /// After how long it is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// How often it comes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// Until when it comes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
}

/// Commands to come, in the order of their times.
pub(crate) type Schedule = VecDeque<(Instant, Command)>;

fn refuse<T>(
    key: &'static str,
    number: usize,
    problem: impl std::fmt::Display,
) -> Result<T, SpecError> {
    Err(SpecError {
        key,
        problem: format!("number {number} {problem}"),
    })
}

impl LoadSpec {
    fn check(&self, number: usize) -> Result<(), SpecError> {
        if self.duplex && self.from.is_none() {
            return refuse(
                "load",
                number,
                "is duplex but has no `from`; say which host is the other end",
            );
        }
        if self.until.is_some_and(|until| until <= self.at) {
            return refuse("load", number, "ends before it begins; raise `until`");
        }
        if self.at.max(self.until.unwrap_or_default()) > TIME_MAX {
            return refuse(
                "load",
                number,
                "is later than 13 weeks; lower `at` or `until`",
            );
        }
        Ok(())
    }

    fn flow(&self, number: u8) -> Flow {
        Flow {
            number,
            from: self.from,
            to: self.to,
            rho: self.rho,
            law: self.law,
            size: self.size,
            class: Class(self.class),
        }
    }
}

impl FaultSpec {
    fn check(&self, number: usize) -> Result<(), SpecError> {
        if self.every.is_some() != self.until.is_some() {
            return refuse(
                "fault",
                number,
                "has one of `every` and `until`; give both or none",
            );
        }
        if self
            .every
            .is_some_and(|every| every <= self.lasts.unwrap_or_default())
        {
            return refuse(
                "fault",
                number,
                "comes again before it ends; raise `every` above `lasts`",
            );
        }
        if self.lasts.is_some() && undone(self.command).is_none() {
            return refuse(
                "fault",
                number,
                "has `lasts`, but nothing undoes it; leave that out",
            );
        }
        if self.at.max(self.until.unwrap_or_default()) > TIME_MAX
            || self.lasts.is_some_and(|lasts| lasts > TIME_MAX)
        {
            return refuse("fault", number, "is later than 13 weeks; lower its times");
        }
        Ok(())
    }
}

/// The command that ends what `command` begins.
fn undone(command: Command) -> Option<Command> {
    let none = Ratio::ZERO;
    let fault = match command {
        Command::Vc(VcCommand::Establish(a, b)) => {
            return Some(Command::Vc(VcCommand::Release(a, b)));
        }
        Command::Vc(VcCommand::Release(a, b)) => {
            return Some(Command::Vc(VcCommand::Establish(a, b)));
        }
        Command::Load(flow) => return Some(Command::Load(Flow { rho: none, ..flow })),
        Command::Busy(..) | Command::Fault(Fault::Restart { .. }) => return None,
        Command::Fault(fault) => match fault {
            Fault::Link { port, up } => Fault::Link { port, up: !up },
            Fault::Host { port, up } => Fault::Host { port, up: !up },
            Fault::Pause { port, on } => Fault::Pause { port, on: !on },
            Fault::Cut { a, b, on } => Fault::Cut { a, b, on: !on },
            Fault::Loss { port, .. } => Fault::Loss { port, share: none },
            Fault::Corruption { port, .. } => Fault::Corruption { port, share: none },
            Fault::Duplication { port, .. } => Fault::Duplication { port, share: none },
            Fault::Reordering { port, .. } => Fault::Reordering {
                port,
                share: none,
                by: Span::ZERO,
            },
            Fault::Delay { port, .. } => Fault::Delay {
                port,
                by: Span::ZERO,
            },
            Fault::Narrow { port, .. } => Fault::Narrow {
                port,
                longest: None,
            },
            Fault::Collision { port, .. } => Fault::Collision { port, share: none },
            Fault::Slow { from, to, .. } => Fault::Slow {
                from,
                to,
                rate: None,
            },
            Fault::Rate { .. } => Fault::Rate { rate: None },
            Fault::Trunk { trunk, up } => Fault::Trunk { trunk, up: !up },
            Fault::Manager { up } => Fault::Manager { up: !up },
            Fault::Restart { .. } => return None,
        },
    };
    Some(Command::Fault(fault))
}

/// The commands of faults, in the order of their times: what each repetition begins, and what ends it.
///
/// # Errors
/// The entry that cannot be, counted from 1.
pub fn commands(faults: &[FaultSpec]) -> Result<Vec<(Instant, Command)>, SpecError> {
    schedule(&[], faults).map(Vec::from)
}

/// The commands of a network's file.
///
/// # Errors
/// The entry that cannot be, counted from 1.
pub(crate) fn schedule(loads: &[LoadSpec], faults: &[FaultSpec]) -> Result<Schedule, SpecError> {
    let mut commands = Vec::new();
    let mut numbers = 0..FLOWS_MAX;
    for (index, load) in (1..).zip(loads) {
        load.check(index)?;
        let back = load.from.filter(|_| load.duplex).map(|from| LoadSpec {
            from: Some(load.to),
            to: from,
            ..*load
        });
        for load in [Some(*load), back].into_iter().flatten() {
            let Some(number) = numbers.next() else {
                return refuse(
                    "load",
                    index,
                    "is one flow too many; a network has 64, a duplex one counts twice",
                );
            };
            let flow = load.flow(number);
            let begin = Instant::START.saturating_add(load.at);
            commands.push((begin, Command::Load(flow)));
            let end = Command::Load(Flow {
                rho: Ratio::ZERO,
                ..flow
            });
            let until = load.until.map(|until| Instant::START.saturating_add(until));
            commands.extend(until.map(|until| (until, end)));
        }
    }
    for (index, fault) in (1..).zip(faults) {
        fault.check(index)?;
        let mut at = fault.at;
        loop {
            let begin = Instant::START.saturating_add(at);
            commands.push((begin, fault.command));
            let end = fault
                .lasts
                .and_then(|lasts| Some((begin.saturating_add(lasts), undone(fault.command)?)));
            commands.extend(end);
            let next = fault.every.map(|every| at.saturating_add(every));
            at = match (next, fault.until) {
                (Some(next), Some(until)) if next < until => next,
                _ => break,
            };
            if commands.len() > COMMANDS_MAX {
                return refuse(
                    "fault",
                    index,
                    "comes too often; a schedule has 100000 commands, raise `every`",
                );
            }
        }
    }
    commands.sort_by_key(|(at, _)| *at);
    Ok(commands.into())
}

/// Values that a file writes as they are typed.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::{fmt::Display, str::FromStr};

    pub fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(Error::custom)
    }
}

/// Hosts, written h1 for port 0.
mod host {
    use crate::Port;
    use crate::script::host;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(port: &Port, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("h{}", u32::from(port.0).saturating_add(1)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Port, D::Error> {
        host(&String::deserialize(deserializer)?).map_err(Error::custom)
    }

    pub mod maybe {
        use super::{Deserializer, Port, Serializer};

        pub fn serialize<S: Serializer>(
            port: &Option<Port>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match port {
                Some(port) => super::serialize(port, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Port>, D::Error> {
            super::deserialize(deserializer).map(Some)
        }
    }
}
