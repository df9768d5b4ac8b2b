//! Many flows at once, as a plan says them: `[probe.flows]` of a probe of kind pattern.
//!
//! Model:   texts become types here alone; what the hosts' number allows is found as soon as it is known.
//! Units:   bytes where bare, else with a suffix; times with a suffix.
//! Checked: `flows_are_read_and_refused`, `senders_and_sizes_are_read`.

use super::{Kind, Plan, ProbeKind, ProbePlan, Repeat, TestbedPlan};
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::flows::{Flows, Shape, What};
use serde::{Deserialize, Serialize};
use sonde_measure::{KnobValues, Knobs, Wait};
use sonde_units::{Bytes, Span};

/// The most bytes of a message.
const SIZE_MAX: u64 = 64 << 20;
/// Samples of a flow in a launch, where nothing is said.
pub const SAMPLES: u64 = 1_000;

/// Which flows go at once, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowsPlan {
    /// Who sends to whom: sets of pairs one after the other, as `shift:1,all-to-one`; or `all-pairs`, or `incast`.
    pub pattern: String,
    /// What each flow of a set does, one after the other. Without any: stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub what: Vec<What>,
    /// User bytes in a message. Without it 64KiB, of latencies 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// How many hosts send, the first ones of the pattern: `4`, or `1..8` for each number. Without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senders: Option<String>,
    /// What counts of each flow. Without it what its kind needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// The part before it, which does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<Span>,
    /// Latency: from an answer to the next message.
    #[serde(default = "milli")]
    pub gap: Span,
    /// Shorter windows, and of more than 16 hosts not all pairs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
}

fn milli() -> Span {
    Span::millis(1)
}

/// The numbers of senders that a text says, from the least to the most.
///
/// # Errors
/// What is wrong with it.
pub fn senders(text: &str) -> Result<(usize, usize), String> {
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
            "{low}..{high} is not a range of senders: write 1..8"
        ));
    }
    Ok((low, high))
}

/// The bytes of a message.
fn size(text: &str) -> Result<u64, String> {
    let bare = text.parse::<u64>().ok();
    let bytes = bare.or_else(|| text.parse::<Bytes>().ok().map(|bytes| bytes.0));
    bytes
        .filter(|bytes| (1..=SIZE_MAX).contains(bytes))
        .ok_or_else(|| {
            format!("`{text}` is not the size of a message: write 1 to 64MiB, as in 64KiB")
        })
}

/// The number of a host of a lab, written `h2`.
///
/// # Errors
/// It is written otherwise.
pub fn host_number(text: &str) -> Result<u16, String> {
    text.strip_prefix('h')
        .and_then(|number| number.parse().ok())
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("`{text}` is not a host: write h1, h2 and so on"))
}

/// The host that a command is run at, by its number from 1, and the command.
///
/// # Errors
/// What is wrong with the text.
pub fn prepared(text: &str) -> Result<(u16, String), String> {
    let (host, command) = text
        .split_once(':')
        .ok_or("write HOST: COMMAND, as in `h3: ip link set eth0 mtu 1400`")?;
    Ok((host_number(host.trim())?, command.trim().to_owned()))
}

impl ProbePlan {
    /// The flows of a pattern, and what is set of their sockets; none of another kind.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn flows(&self, repeat: &Repeat) -> Result<Option<(Flows, Knobs)>, Failure> {
        let refuse = |what: &str| Err(Failure::usage(what));
        let plan = match (&self.flows, self.kind) {
            (None, ProbeKind::Pattern) => {
                return refuse(
                    "a [[probe]] of kind pattern says who sends to whom: add [probe.flows] with pattern = \"shift:1\"",
                );
            }
            (Some(_), kind) if kind != ProbeKind::Pattern => {
                return refuse(
                    "[probe.flows] are of a [[probe]] of kind pattern: remove them, or write kind = \"pattern\"",
                );
            }
            (None, _) => return Ok(None),
            (Some(plan), _) => plan,
        };
        let shapes = Shape::parse(&plan.pattern)?;
        let is_set = |shape: &Shape| matches!(shape, Shape::Set(_));
        if !shapes.iter().all(is_set) && !plan.what.is_empty() {
            return refuse(
                "all-pairs and incast set their own kinds of flow: leave `--kind` out (`what` of [probe.flows])",
            );
        }
        if self.path != [AnyPath::TCP] {
            return refuse(
                "flows of a pattern run over TCP, or over UDP where `what` says so: leave `path` out",
            );
        }
        if self.wait != [Wait::Block] {
            return refuse(
                "flows of a pattern complete by blocking, since a host has several: leave `wait` out",
            );
        }
        let Ok([knobs]) = <[KnobValues; 1]>::try_from(self.settings()) else {
            return refuse("flows of a pattern have one value of each knob in [probe.with]");
        };
        let knobs = Knobs::parse(&knobs).map_err(Failure::usage)?;
        let senders = plan.senders.as_deref().map(senders).transpose();
        let size_bytes = plan.size.as_deref().map(size).transpose();
        let flows = Flows {
            shapes,
            kinds: match plan.what.is_empty() {
                true => vec![What::Stream],
                false => plan.what.clone(),
            },
            size_bytes: size_bytes.map_err(Failure::usage)?,
            senders: senders.map_err(Failure::usage)?,
            window: plan.window,
            lead: plan.lead,
            gap: plan.gap,
            samples: self.samples.unwrap_or(SAMPLES),
            quick: plan.quick,
            seed: repeat.seed,
        };
        Ok(Some((flows, knobs)))
    }
}

impl TestbedPlan {
    /// What hosts of a lab run before anything is measured, by their numbers from 1.
    ///
    /// # Errors
    /// What is wrong with a text, or a host that is not there.
    pub fn prepared(&self) -> Result<Vec<(u16, String)>, Failure> {
        let all = self.prepare.iter().map(|text| prepared(text));
        let all = all.collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?;
        match all.iter().find(|(host, _)| *host > self.hosts) {
            Some((host, _)) => Err(Failure::usage(format!(
                "there is no host h{host}: the lab has h1 to h{}",
                self.hosts
            ))),
            None => Ok(all),
        }
    }

    /// Names for the hosts as far as the plan says them.
    ///
    /// # Errors
    /// What is wrong with a name, or with the file of hosts.
    pub fn host_names(&self) -> Result<Vec<String>, Failure> {
        let numbered = |count: usize| (1..=count).map(|host| format!("h{host}")).collect();
        Ok(match self.kind {
            Kind::Hosts => {
                let targets = self.targets()?;
                targets.into_iter().map(|target| target.name).collect()
            }
            Kind::Local | Kind::Lab => numbered(usize::from(self.hosts)),
            _ => numbered(self.count().unwrap_or(usize::from(self.hosts))),
        })
    }
}

impl Plan {
    /// Refuses patterns that cannot be, and what is said of a lab where there is none.
    pub(super) fn check_flows(&self) -> Result<(), Failure> {
        let refuse = |what: String| Err(Failure::usage(what));
        let testbed = &self.testbed;
        let of_lab =
            testbed.script.is_some() || !(testbed.prepare.is_empty() && testbed.beside.is_empty());
        if of_lab && testbed.kind != Kind::Lab {
            return refuse(
                "`--script`, `--prepare` and networks beside another are for a lab's hosts: use `--testbed lab`".into(),
            );
        }
        if testbed.script.is_some() && !testbed.beside.is_empty() {
            return refuse("a script is of one network: name one, or leave `--script` out".into());
        }
        testbed.prepared()?;
        for probe in &self.probes {
            let Some((flows, _)) = probe.flows(&self.repeat)? else {
                continue;
            };
            let networks = match probe.networks.len() {
                0 => self.networks.len(),
                some => some,
            };
            if networks > 1 {
                return refuse(format!(
                    "a pattern is measured in one network, not in {networks}: give `--network` once, or `network` of its [[probe]]"
                ));
            }
            if !self.loads.is_empty() {
                return refuse(
                    "the flows of a pattern are the load: name them as pairs, as in h1>h2,h3>h4, and leave `--load` out ([[load]] of a plan)".into(),
                );
            }
            match testbed.kind {
                Kind::Local => {
                    return refuse(
                        "a pattern needs hosts: use `--testbed lab` or `--testbed hosts:a,b`"
                            .into(),
                    );
                }
                Kind::Lab => {
                    let hosts = self.lab_hosts(probe.networks.first());
                    drop(flows.rounds(usize::from(hosts))?);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_and_sizes_are_read() {
        assert_eq!(senders("4"), Ok((4, 4)));
        assert_eq!(senders("1..8"), Ok((1, 8)));
        for bad in ["0", "3..2", "x", "1..", ""] {
            assert!(senders(bad).is_err(), "{bad}");
        }
        assert_eq!(prepared("h3: true"), Ok((3, "true".into())));
        assert!(prepared("true").is_err() && prepared("x: true").is_err());
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(size("7"), Ok(7));
        assert!(size("0").is_err() && size("1GiB").is_err());
    }

    #[test]
    fn flows_are_read_and_refused() {
        let plan = |more: &str| {
            let text = format!("[[probe]]\nkind = \"pattern\"\n{more}");
            Plan::parse(&text)
        };
        let whole = plan("[probe.flows]\npattern = \"all-pairs\"\nquick = true\n").unwrap();
        let probe = &whole.probes[0];
        assert_eq!((probe.launches, probe.samples), (Some(1), Some(SAMPLES)));
        assert_eq!(Plan::parse(&whole.text().unwrap()).unwrap(), whole);
        let (flows, _) = probe.flows(&whole.repeat).unwrap().unwrap();
        // Three matchings of four hosts, each in four rounds.
        assert_eq!(flows.rounds(4).unwrap().len(), 12);
        let of = |flows: &str| format!("[probe.flows]\n{flows}\n");
        for (more, said) in [
            (String::new(), "add [probe.flows]"),
            (of("pattern = \"sideways\""), "there is no pattern"),
            (of("pattern = \"incast\"\nwhat = [\"stream\"]"), "leave"),
            (of("pattern = \"shift:4\""), "from each to itself"),
            (
                of("pattern = \"shift:1\"\nsenders = \"0\""),
                "not a range of senders",
            ),
            (
                of("pattern = \"shift:1\"\nsize = \"1GiB\""),
                "size of a message",
            ),
            (
                format!("path = [\"openmpi:tcp\"]\n{}", of("pattern = \"shift:1\"")),
                "leave `path` out",
            ),
            (
                format!("wait = [\"poll\"]\n{}", of("pattern = \"shift:1\"")),
                "complete by blocking",
            ),
            (
                format!(
                    "{}[[network]]\nname = \"fddi\"\n[[network]]\nname = \"wire\"\n",
                    of("pattern = \"shift:1\"")
                ),
                "one network, not in 2",
            ),
            (
                format!(
                    "{}[testbed]\nkind = \"lab\"\nprepare = [\"h9: true\"]\n",
                    of("pattern = \"shift:1\"")
                ),
                "no host h9",
            ),
        ] {
            let error = plan(&more).unwrap_err().to_string();
            assert!(error.contains(said), "{more}: {error}");
        }
        let latency =
            Plan::parse("[[probe]]\nkind = \"latency\"\n[probe.flows]\npattern = \"x\"\n");
        assert!(latency.unwrap_err().to_string().contains("of kind pattern"));
    }
}
