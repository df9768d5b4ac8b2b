//! Frames that an emulated network lost: where, why and whose.
//!
//! Model:   the words of place and cause are the network's own ([`Place`], [`Cause`]), in lower case. A loss is a key, and written as
//!          one text in JSON too: `output-overflow-from-h1`, with `-on-eth1` behind it where the host has several networks.
//! Units:   hosts from 1, interfaces from 0.
//! Checked: `losses_come_back`; `any_evidence_comes_back`.
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

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sonde_link::{Cause, Place};

use crate::text::{Text, as_words};

as_words! {
    Place {
        Station = "station",
        Path = "path",
        Output = "output",
        Medium = "medium",
        Receiver = "receiver",
        Bridge = "bridge",
        Router = "router",
    }
    Cause {
        TooLong = "toolong",
        Overflow = "overflow",
        Random = "random",
        NoCircuit = "nocircuit",
        NoBroadcast = "nobroadcast",
        NoSuchPort = "nosuchport",
        Collisions = "collisions",
        Discarded = "discarded",
        Policed = "policed",
        Rejected = "rejected",
        LinkDown = "linkdown",
        HostDown = "hostdown",
        Parted = "parted",
        Restart = "restart",
        Expired = "expired",
        Misdelivered = "misdelivered",
    }
}

/// Where and why frames were lost, and whose they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// Where.
    pub place: Place,
    /// Why.
    pub cause: Cause,
    /// The sender, counted from 1.
    pub host: u16,
    /// Its interface, counted from 0.
    pub interface: u16,
}

impl Text for Loss {
    fn read(text: &str) -> Option<Self> {
        let (what, from) = text.split_once("-from-h")?;
        let (place, cause) = what.split_once('-')?;
        let (host, interface) = from.split_once("-on-eth").unwrap_or((from, "0"));
        Some(Self {
            place: Text::read(place)?,
            cause: Text::read(cause)?,
            host: host.parse().ok()?,
            interface: interface.parse().ok()?,
        })
    }

    fn write(&self) -> String {
        let (place, cause) = (self.place.write(), self.cause.write());
        let on = match self.interface {
            0 => String::new(),
            interface => format!("-on-eth{interface}"),
        };
        format!("{place}-{cause}-from-h{}{on}", self.host)
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.write())
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text)
            .filter(|read| read.write() == text)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not a loss of a network")))
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[a-z]+-[a-z]+-from-h[0-9]+(-on-eth[0-9]+)?$",
            "description": "Where and why frames were lost, and whose they were: `output-overflow-from-h1`, with `-on-eth1` \
                behind it where the host has several networks."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_come_back() {
        let first = Loss {
            place: Place::Output,
            cause: Cause::Overflow,
            host: 1,
            interface: 0,
        };
        let second = Loss {
            cause: Cause::NoSuchPort,
            host: 12,
            interface: 1,
            ..first
        };
        assert_eq!(first.write(), "output-overflow-from-h1");
        assert_eq!(second.write(), "output-nosuchport-from-h12-on-eth1");
        for loss in [first, second] {
            assert_eq!(Loss::read(&loss.write()), Some(loss));
            let json = serde_json::to_string(&loss).unwrap();
            assert_eq!(serde_json::from_str::<Loss>(&json).unwrap(), loss);
        }
        for text in [
            "",
            "output-from-h1",
            "output-overflow-from-1",
            "output-lost-from-h1",
        ] {
            assert_eq!(Loss::read(text), None, "{text}");
        }
        assert!(serde_json::from_str::<Loss>("\"output-overflow-from-h01\"").is_err());
    }
}
