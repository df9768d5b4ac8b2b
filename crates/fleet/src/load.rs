//! Background traffic while a launch measures.
//!
//! Model:   in an emulated network a flow to each of the hosts that talk, from elsewhere: they meet the measured frames in
//!          the queue before each host, so that half a round trip waits once in the mean. Between real hosts flows of
//!          datagrams, made by the hosts themselves. Text: `RHO[:law=LAW][:size=BYTES]`, of real hosts also
//!          `[:of=RATE][:flow=A>B+C>D]`.
//! Checked: `loads_are_read_and_written`; `tests/lab_fleet.rs`.
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

use sonde_link::{Class, Flow, Law, LoadSpec, NetworkSpec, Port, SiteSpec, is_one_line};
use sonde_units::{BitRate, Bytes, Ratio, Span};
use std::collections::BTreeSet;
use std::{fmt, str::FromStr};

/// A level of load and its law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The share of each link, 0 to 1.
    pub rho: Ratio,
    /// How its frames are spread in time.
    pub law: Law,
    /// Layer-3 bytes of each frame; 0: one cell on ATM, else a full frame.
    pub size: Bytes,
    /// Real hosts: the rate of the link that it is a share of; none takes the interface's.
    pub of: Option<BitRate>,
    /// Real hosts: from which host to which, by name; none chooses.
    pub flows: Vec<(String, String)>,
}

/// The two hosts of a flow, written `a>b`.
///
/// # Errors
/// A sentence that says how it is written.
pub fn flow(text: &str) -> Result<(String, String), String> {
    let is_name = |name: &&str| !name.is_empty() && !name.contains(['>', '+', '=', ' ']);
    let pair = text
        .split_once('>')
        .filter(|(from, to)| is_name(from) && is_name(to) && from != to);
    let (from, to) = pair.ok_or_else(|| {
        format!("`{text}` is not a flow: write the two hosts that it goes between, as in 'a>b'")
    })?;
    Ok((from.into(), to.into()))
}

impl Load {
    /// Independent frames at `rho`.
    pub fn poisson(rho: Ratio) -> Self {
        Self {
            rho,
            law: Law::Poisson,
            size: Bytes::ZERO,
            of: None,
            flows: Vec::new(),
        }
    }

    /// Its flows to hosts of a site, counted from 0: one to the link of each at its first interface, or a single one to a segment whose hosts
    /// share one line, which is to have this level. Level 0 ends those before.
    pub fn to_hosts(&self, site: &SiteSpec, hosts: &[u16]) -> Vec<Flow> {
        let ends = site.ends();
        let segment = |host: &u16| ends.get(usize::from(*host)).map(|end| end.carrier);
        let is_shared = |number: usize| {
            let segment = site.segment.get(number);
            segment.is_some_and(|one| is_one_line(&one.network))
        };
        let mut lines = BTreeSet::new();
        let is_next = |host: &&u16| {
            segment(host).is_some_and(|number| !is_shared(number) || lines.insert(number))
        };
        let flow = |host: &u16| Flow {
            number: *host as u8,
            from: None,
            to: Port(*host),
            rho: self.rho,
            law: self.law,
            size: self.size,
            class: Class::default(),
        };
        hosts.iter().filter(is_next).map(flow).collect()
    }

    /// The same in the schedule of a network of so many hosts, from its start on.
    pub fn scheduled(&self, network: &NetworkSpec, hosts: u16) -> Vec<LoadSpec> {
        let all: Vec<u16> = (0..hosts).collect();
        let site = SiteSpec::single(network.clone(), hosts);
        let flows = self.to_hosts(&site, &all).into_iter();
        let scheduled = flows.map(|flow| LoadSpec {
            from: flow.from,
            to: flow.to,
            rho: flow.rho,
            law: flow.law,
            size: flow.size,
            class: flow.class.0,
            at: Span::ZERO,
            until: None,
            duplex: false,
        });
        scheduled.collect()
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A law may have a number behind a colon: what has no `=` belongs to what is before it.
        let mut parts: Vec<String> = Vec::new();
        for part in text.split(':') {
            match parts.last_mut() {
                Some(last) if last.contains('=') && !part.contains('=') => {
                    last.push(':');
                    last.push_str(part);
                }
                _ => parts.push(part.to_owned()),
            }
        }
        let mut parts = parts.iter();
        let level = parts.next().map_or("", String::as_str);
        let rho = level
            .parse::<Ratio>()
            .ok()
            .filter(|rho| *rho <= Ratio::ONE)
            .ok_or_else(|| {
                format!("`{level}` is not a level of load: write a share of the link from 0 to 1, as in 0.6")
            })?;
        let mut load = Self::poisson(rho);
        for part in parts {
            match part.split_once('=') {
                Some(("law", law)) => load.law = law.parse()?,
                Some(("size", size)) => {
                    load.size = size
                        .parse::<u64>()
                        .map(Bytes)
                        .or_else(|_| size.parse())
                        .map_err(|_| {
                            format!("`{size}` is not a size of a frame: write bytes, as in 1500")
                        })?;
                }
                Some(("of", rate)) => {
                    let rate = rate.parse::<BitRate>();
                    load.of = Some(rate.map_err(|error| format!("the link's rate: {error}"))?);
                }
                Some(("flow", flows)) => {
                    load.flows = flows.split('+').map(flow).collect::<Result<_, _>>()?;
                }
                _ => {
                    return Err(format!(
                        "`{part}` is not a part of a load: write RHO[:law=LAW][:size=BYTES], as in 0.6:law=poisson:size=1500"
                    ));
                }
            }
        }
        Ok(load)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (numerator, denominator) = self.rho.parts();
        let decimal = (numerator as f64 / denominator as f64).to_string();
        // A third has no decimals that are it.
        if decimal.parse() == Ok(self.rho) {
            write!(f, "{decimal}")?;
        } else {
            write!(f, "{numerator}/{denominator}")?;
        }
        if self.law != Law::Poisson {
            write!(f, ":law={}", self.law)?;
        }
        if self.size != Bytes::ZERO {
            write!(f, ":size={}", self.size.0)?;
        }
        if let Some(of) = self.of {
            write!(f, ":of={of}")?;
        }
        for (at, (from, to)) in self.flows.iter().enumerate() {
            let before = if at == 0 { ":flow=" } else { "+" };
            write!(f, "{before}{from}>{to}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_the_level_once() {
        let load = Load::poisson(Ratio::new(3, 5));
        // Of a segment or a ring all hosts share the line.
        for (network, to, of_four) in [
            ("atm-oc3c", &[1, 3][..], 4),
            ("ethernet-10", &[1], 1),
            ("fddi", &[1], 1),
        ] {
            let network = sonde_link::named(network).unwrap();
            let site = SiteSpec::single(network.clone(), 4);
            let flows = load.to_hosts(&site, &[1, 3]);
            assert!(flows.iter().all(|flow| flow.rho == load.rho));
            let hosts: Vec<u16> = flows.iter().map(|flow| flow.to.0).collect();
            assert_eq!(hosts, to, "{}", network.name);
            assert_eq!(load.scheduled(&network, 4).len(), of_four);
        }
    }

    #[test]
    fn loads_are_read_and_written() {
        for text in [
            "0",
            "0.6",
            "1/3",
            "0.9:law=constant",
            "0.25:law=geometric:size=1500",
            "0.5:law=on-off:20:size=60",
            "0.5:flow=a>b",
            "0.5:law=on-off:20:size=60:flow=a>b+c.d>e",
        ] {
            let load: Load = text.parse().unwrap();
            assert_eq!(load.to_string(), text);
            let again: Load = load.to_string().parse().unwrap();
            assert_eq!(load, again, "{text}");
        }
        for (text, word) in [
            ("1.5", "0 to 1"),
            ("much", "0.6"),
            ("0.5:size=big", "bytes"),
            ("0.5:colour=red", "law"),
            ("0.5:flow=a", "'a>b'"),
            ("0.5:flow=a>a", "'a>b'"),
            ("0.5:flow=a>b+", "'a>b'"),
            ("0.5:of=fast", "rate"),
        ] {
            let error = text.parse::<Load>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
