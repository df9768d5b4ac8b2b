//! `sonde probe pattern`: its options.

use super::options::Common;
use super::refused::Command;
use crate::failure::Failure;
use crate::pattern::{Shape, Task, What};
use crate::testbed;
use clap::Args;
use sonde_measure::Knobs;
use sonde_units::Span;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:
  sonde probe pattern shift:1 --hosts 8 --network sci-1g8
  sonde probe pattern all-to-one --hosts 8 --senders 1..7
  sonde probe pattern natural-ring,random-ring:7 --kind latency --testbed hosts:a,b[01-16]
  sonde probe pattern neighbours --kind exchange --size 64KiB
  sonde probe pattern all-pairs --quick --testbed hosts:a,b[01-64]      which host, link or direction is bad, or the fabric
  sonde probe pattern incast --hosts 8 --network ethernet-100           what a crowd does to who only asks";

/// What a pattern takes.
#[derive(Debug, Args)]
pub struct PatternOptions {
    /// Who sends to whom at once, several after each other: even-next, odd-previous, half-ring, shift:1, reverse:1, all-to-one,
    /// one-to-all, all-to-all, neighbours, natural-ring, random-ring:7, random:7; or all-pairs, or incast, or one set of
    /// pairs as h1>h2,h3>h4.
    #[arg(default_value = "shift:1")]
    pub pattern: String,
    #[command(flatten)]
    pub common: Common,
    /// What each flow does: stream, latency, latency-udp, exchange.
    #[arg(long = "kind", value_delimiter = ',')]
    pub kinds: Vec<What>,
    /// User bytes in a message. Without it: 64KiB, of latencies 1 B.
    #[arg(long)]
    pub size: Option<String>,
    /// How many hosts send: the first ones of the pattern; 1..8 for each number.
    #[arg(long, value_name = "N..M", value_parser = senders)]
    pub senders: Option<(usize, usize)>,
    /// What counts of each flow.
    #[arg(long, value_name = "TIME")]
    pub window: Option<Span>,
    /// The part before it, which does not count.
    #[arg(long, value_name = "TIME")]
    pub lead: Option<Span>,
    /// Latency: from an answer to the next message.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub gap: Span,
    /// Latency, exchange: the most samples of a flow in a launch.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub samples: u64,
    /// What else is set: sndbuf, rcvbuf (as 64KiB), congestion.
    #[arg(long = "with", value_name = "KNOB=VALUE")]
    pub knobs: Vec<String>,
    /// Of a lab: what breaks and changes, and when, as `sonde lab run` takes it.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Of a lab: a command that a host runs as root before the measurement, as `h3: sysctl -w net.ipv4.tcp_rmem='4096 4096 4096'`.
    #[arg(long, value_name = "HOST: COMMAND", value_parser = prepare)]
    pub prepare: Vec<(u16, String)>,
}

fn senders(text: &str) -> Result<(usize, usize), String> {
    let number = |word: &str| {
        word.parse::<usize>()
            .map_err(|_| format!("`{word}` is not a number: write 4, or 1..8"))
    };
    let (low, high) = match text.split_once("..") {
        Some((low, high)) => (number(low)?, number(high)?),
        None => (number(text)?, number(text)?),
    };
    if low == 0 || low > high {
        return Err(format!(
            "{low}..{high} are no numbers of senders: write 1..8"
        ));
    }
    Ok((low, high))
}

fn prepare(text: &str) -> Result<(u16, String), String> {
    let (host, command) = text
        .split_once(':')
        .ok_or("write HOST: COMMAND, as in `h3: ip link set eth0 mtu 1400`")?;
    Ok((
        testbed::host_number(host.trim())?,
        command.trim().to_owned(),
    ))
}

impl PatternOptions {
    /// Measures; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        self.task()?.run()
    }

    fn task(self) -> Result<Task, Failure> {
        let common = &self.common;
        common.check(Command::Pattern)?;
        if common.networks.len() > 1 && self.script.is_some() {
            return Err(Failure::usage(
                "a script is of one network: name one, or leave `--script` out",
            ));
        }
        let mut knobs = BTreeMap::new();
        for one in &self.knobs {
            let (name, value) = one.split_once('=').ok_or_else(|| {
                Failure::usage(format!(
                    "`{one}` is not a knob: write KNOB=VALUE, as in rcvbuf=64KiB"
                ))
            })?;
            knobs.insert(name.to_owned(), value.to_owned());
        }
        let parsed = Knobs::parse(&knobs).map_err(Failure::usage)?;
        let size_bytes = self.size.as_deref().map(size).transpose()?;
        let shapes = Shape::parse(&self.pattern)?;
        let launches = common.effort.chosen();
        let quick = common.effort.effort() == crate::plan::Effort::Quick;
        let kinds = self.kinds;
        if shapes.iter().any(|shape| !matches!(shape, Shape::Set(_))) && !kinds.is_empty() {
            return Err(Failure::usage(
                "all-pairs and incast measure what they need: leave `--kind` out",
            ));
        }
        Ok(Task {
            shapes,
            kinds: if kinds.is_empty() {
                vec![What::Stream]
            } else {
                kinds
            },
            size_bytes,
            senders: self.senders,
            window: self.window,
            lead: self.lead,
            gap: self.gap,
            samples: self.samples,
            knobs: parsed,
            knobs_text: knobs,
            script: self.script,
            prepare: self.prepare,
            quick,
            launches,
            common: self.common,
        })
    }
}

fn size(text: &str) -> Result<u64, Failure> {
    let bytes = text
        .parse::<u64>()
        .ok()
        .or_else(|| text.parse::<sonde_units::Bytes>().ok().map(|bytes| bytes.0));
    bytes
        .filter(|bytes| (1..=64 << 20).contains(bytes))
        .ok_or_else(|| {
            Failure::usage(format!(
                "`{text}` is not the size of a message: write 1 to 64MiB, as in 64KiB"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_read() {
        assert_eq!(senders("4"), Ok((4, 4)));
        assert_eq!(senders("1..8"), Ok((1, 8)));
        for bad in ["0", "3..2", "x", "1..", ""] {
            assert!(senders(bad).is_err(), "{bad}");
        }
        assert_eq!(prepare("h3: true"), Ok((3, "true".into())));
        assert!(prepare("true").is_err() && prepare("x: true").is_err());
        assert_eq!(size("64KiB").unwrap(), 65_536);
        assert_eq!(size("7").unwrap(), 7);
        assert!(size("0").is_err() && size("1GiB").is_err());
    }
}
