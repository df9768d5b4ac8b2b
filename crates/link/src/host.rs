//! What a host's processor takes for a frame: presets for the machines of the studies, and a user's own.
//!
//! Model:   to send a frame: call + packet + bytes x (copies / copy rate + checksum). To receive it: interrupt + packet +
//!          context switch + call + the same for its bytes. `speed` divides all of it.
//! Units:   spans a frame; rates of copying and of the checksum in bits a second of user data.
//! Source:  each preset cites its figures, and the arithmetic where one is derived.
//! Checked: `presets_are_whole`, `costs_add_up`; `tests/hosted.rs` for the published figures.

use crate::{NetworkSpec, Port, SpecError};
use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Bytes, Ratio, Span};
use std::collections::BTreeMap;

const PRESETS: &[(&str, &str)] = &[
    ("modern", include_str!("../hosts/modern.toml")),
    ("sparc-2", include_str!("../hosts/sparc-2.toml")),
    ("sparc-10", include_str!("../hosts/sparc-10.toml")),
    ("sparc-20", include_str!("../hosts/sparc-20.toml")),
    ("sparccenter", include_str!("../hosts/sparccenter.toml")),
    ("ss5-85", include_str!("../hosts/ss5-85.toml")),
    ("ultra-1", include_str!("../hosts/ultra-1.toml")),
    ("rs6000-590", include_str!("../hosts/rs6000-590.toml")),
    ("sp2-node", include_str!("../hosts/sp2-node.toml")),
    ("cray-c90", include_str!("../hosts/cray-c90.toml")),
];

/// The hosts of a network: a preset, and what is different from it; a host may differ from the others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// A machine by name; `modern` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The hosts (h1 is 1) that this is about, in `[[host.unlike]]`; none in `[host]` itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<u16>,
    /// A system call that sends or receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Span>,
    /// The protocol's work on a packet that is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<Span>,
    /// The protocol's work on a packet that has arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive: Option<Span>,
    /// An interrupt, one a PDU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<Span>,
    /// From the arrival to the program that waits, and for each frame handled while the host computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<Span>,
    /// How often the data are copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<u64>,
    /// How fast one copy is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<BitRate>,
    /// How fast the checksum is; none: the adapter makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<BitRate>,
    /// How much faster than all these figures the processor is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Ratio>,
    /// PDUs that the adapter keeps for the processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<u64>,
    /// What may wait to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// Hosts that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<HostSpec>,
    /// Where each figure comes from, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cite: BTreeMap<String, String>,
}

/// The costs of one host, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Costs {
    send: Span,
    receive: Span,
    pub switch: Span,
    interrupt: Span,
    copies: u64,
    copy: Option<BitRate>,
    checksum: Option<BitRate>,
    speed: Ratio,
    pub ring: usize,
    pub queue: Bytes,
}

impl Costs {
    fn bytes(&self, len: Bytes) -> Span {
        let copy = self.copy.map_or(Span::ZERO, |rate| rate.time(len)) * self.copies;
        copy + self.checksum.map_or(Span::ZERO, |rate| rate.time(len))
    }

    /// A span of the figures on this processor.
    fn scaled(&self, span: Span) -> Span {
        let (numerator, denominator) = self.speed.parts();
        let picos = u128::from(span.as_picos()) * u128::from(denominator);
        Span::picos(picos.div_ceil(u128::from(numerator)) as u64)
    }

    /// To send a frame.
    pub fn send(&self, len: Bytes) -> Span {
        self.scaled(self.send + self.bytes(len))
    }

    /// To receive one.
    pub fn receive(&self, len: Bytes) -> Span {
        self.scaled(self.receive + self.bytes(len))
    }

    /// `span` beside interrupts of background traffic at so many thousandths a second.
    pub fn slowed(&self, span: Span, rate: u64) -> Span {
        if rate == 0 {
            return span;
        }
        let interrupt = self.scaled(self.interrupt).as_picos();
        // Thousandths a second times picoseconds: a part of 10^15.
        let more = u128::from(span.as_picos()) * u128::from(rate) * u128::from(interrupt)
            / 1_000_000_000_000_000;
        span + Span::picos(more as u64)
    }
}

/// The costs of the host at `port`.
///
/// # Errors
/// [`SpecError`] at a preset that is not known, or a value out of its range.
pub(crate) fn costs(spec: &NetworkSpec, port: Port) -> Result<Costs, SpecError> {
    let common = spec.host.clone().unwrap_or_default();
    let own = common
        .unlike
        .iter()
        .find(|one| one.at.contains(&(port.0 + 1)));
    let mut host = own.cloned().unwrap_or_default();
    if host.preset.is_none() {
        host = host.over(&common);
    }
    let host = host.whole()?;
    let of = |value: Option<Span>| value.unwrap_or(Span::ZERO);
    Ok(Costs {
        send: of(host.call) + of(host.send),
        receive: of(host.interrupt) + of(host.receive) + of(host.switch) + of(host.call),
        switch: of(host.switch),
        interrupt: of(host.interrupt),
        copies: host.copies.unwrap_or(0),
        copy: host.copy,
        checksum: host.checksum,
        speed: host.speed.unwrap_or(Ratio::ONE),
        ring: host.ring.unwrap_or(64) as usize,
        queue: host.queue.unwrap_or(spec.station.queue),
    })
}

impl HostSpec {
    /// Its own values, and those of `other` where it has none.
    fn over(&self, other: &Self) -> Self {
        Self {
            preset: self.preset.clone().or_else(|| other.preset.clone()),
            at: self.at.clone(),
            call: self.call.or(other.call),
            send: self.send.or(other.send),
            receive: self.receive.or(other.receive),
            interrupt: self.interrupt.or(other.interrupt),
            switch: self.switch.or(other.switch),
            copies: self.copies.or(other.copies),
            copy: self.copy.or(other.copy),
            checksum: self.checksum.or(other.checksum),
            speed: self.speed.or(other.speed),
            ring: self.ring.or(other.ring),
            queue: self.queue.or(other.queue),
            unlike: Vec::new(),
            cite: BTreeMap::new(),
        }
    }

    /// With the values of its preset.
    fn whole(&self) -> Result<Self, SpecError> {
        let name = self.preset.as_deref().unwrap_or("modern");
        Ok(self.over(&preset(name)?))
    }

    /// Whether presets are known and values in their ranges.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let refuse = |key, problem: &str| {
            Err(SpecError {
                key,
                problem: problem.into(),
            })
        };
        if !self.at.is_empty() {
            return refuse(
                "host.at",
                "is for [[host.unlike]]; [host] is about all hosts",
            );
        }
        for host in std::iter::once(self).chain(&self.unlike) {
            let whole = host.whole()?;
            if whole.speed.is_some_and(Ratio::is_zero) {
                return refuse(
                    "host.speed",
                    "is 0; a processor has a speed, such as 1 or 2.5",
                );
            }
            if whole.ring.is_some_and(|ring| !(1..=65_536).contains(&ring)) {
                return refuse("host.ring", "must be 1 to 65536 PDUs");
            }
            let spans = [
                whole.call,
                whole.send,
                whole.receive,
                whole.interrupt,
                whole.switch,
            ];
            if spans.iter().flatten().any(|span| *span > Span::secs(1)) {
                return refuse(
                    "host",
                    "has a cost above one second per frame; give it in us, as in `call = \"20us\"`",
                );
            }
            if !host.unlike.is_empty() && !std::ptr::eq(host, self) {
                return refuse(
                    "host.unlike",
                    "stands within [[host.unlike]]; list all under [host]",
                );
            }
        }
        if self.unlike.iter().any(|host| host.at.is_empty()) {
            return refuse(
                "host.unlike",
                "has no `at`; say which hosts it is about, as in `at = [1]` for h1",
            );
        }
        Ok(())
    }
}

/// A preset by name.
fn preset(name: &str) -> Result<HostSpec, SpecError> {
    let found = PRESETS.iter().find(|(known, _)| *known == name);
    let Some((_, text)) = found else {
        let known: Vec<_> = PRESETS.iter().map(|(name, _)| *name).collect();
        return Err(SpecError {
            key: "host.preset",
            problem: format!("is `{name}`, which is none of {}", known.join(", ")),
        });
    };
    let host: HostSpec = toml::from_str(text).expect("presets are tested");
    match &host.preset {
        // A preset may be another one at a different speed.
        Some(base) => Ok(host.over(&preset(base)?)),
        None => Ok(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve;

    #[test]
    fn presets_are_whole() {
        for (name, text) in PRESETS {
            let host: HostSpec = toml::from_str(text).unwrap();
            host.check().unwrap();
            for key in ["call", "send", "receive", "interrupt", "switch"] {
                assert!(host.cite.contains_key(key), "{name}: {key} is not cited");
            }
        }
    }

    #[test]
    fn costs_add_up() {
        let mut spec = resolve("ethernet-100", &|_| unreachable!()).unwrap();
        spec.host = Some(
            toml::from_str(
                r#"
                call = "10us"
                send = "20us"
                receive = "30us"
                interrupt = "5us"
                switch = "7us"
                copies = 2
                copy = "80Mbit"
                checksum = "160Mbit"
                [[unlike]]
                at = [2]
                speed = "2"
                "#,
            )
            .unwrap(),
        );
        // A byte: 0.1 us a copy, 0.05 us for the sum.
        let one = costs(&spec, Port(0)).unwrap();
        assert_eq!(one.send(Bytes(1_000)), Span::micros(30 + 250));
        assert_eq!(one.receive(Bytes(1_000)), Span::micros(52 + 250));
        let other = costs(&spec, Port(1)).unwrap();
        assert_eq!(other.send(Bytes(1_000)), Span::micros(140));
        // A thousand interrupts of 5 us a second take half a percent more.
        let slowed = one.slowed(Span::micros(1_000), 1_000_000);
        assert_eq!(slowed, Span::micros(1_005));
    }

    #[test]
    fn wrong_hosts_are_refused() {
        for (text, word) in [
            ("preset = \"vax\"", "sparc-10"),
            ("at = [1]", "unlike"),
            ("[[unlike]]\nspeed = \"2\"", "at"),
            ("speed = \"0\"", "speed"),
            ("ring = 0", "ring"),
        ] {
            let host: HostSpec = toml::from_str(text).unwrap();
            let error = host.check().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
