//! Values of facts: as JSON, and as the texts that they were in stores of versions 1 and 2.
//!
//! Model:   in JSON a value is what it is: a struct its fields, a variant its word in `snake_case`, a number a number. A [`Text`] has
//!          exactly one written form. What is read is written again and compared, so that a text that would come back otherwise is
//!          refused and nothing is lost by reading.
//! Units:   those of the name beside the value.
//! Checked: `values_come_back`, `other_forms_are_refused`, `json_is_as_it_is_told`; `any_evidence_comes_back` of `evidence`.
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

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::Stage;
use crate::fixed::Fixed;
use crate::npb::Kernel;
use crate::replay::Replay;

/// A value with one written form.
pub trait Text: Sized {
    /// The value that `text` says; `None` where it says none.
    fn read(text: &str) -> Option<Self>;
    /// Its form.
    fn write(&self) -> String;
}

/// Implements [`Text`] by `FromStr` and `Display`.
macro_rules! as_displayed {
    ($($type:ty),*) => {$(
        impl Text for $type {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn write(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

/// Implements [`Text`] for enums of fixed words.
macro_rules! as_words {
    ($($type:ty { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        impl Text for $type {
            fn read(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn write(&self) -> String {
                match self {
                    $(Self::$variant => $word,)*
                }
                .into()
            }
        }
    )*};
}

pub(crate) use as_words;

as_displayed!(u64, u32, usize, bool, IpAddr);

/// What `text` has between two fixed parts.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

/// A name: of an interface, a host, a library's part. What a program outside or a host calls a thing, as data.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Name(pub String);

/// Words of a program outside, of a kernel or of a library, kept as they came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Words(pub String);

macro_rules! as_given {
    ($($type:ident),*) => {$(
        impl Text for $type {
            fn read(text: &str) -> Option<Self> {
                Some(Self(text.into()))
            }

            fn write(&self) -> String {
                self.0.clone()
            }
        }

        impl From<&str> for $type {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $type {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::ops::Deref for $type {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }
    )*};
}

as_given!(Name, Words);

/// Names with one character between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Names<const BETWEEN: char>(pub Vec<Name>);

impl<const BETWEEN: char> Text for Names<BETWEEN> {
    fn read(text: &str) -> Option<Self> {
        let names = text.split(BETWEEN).filter(|name| !name.is_empty());
        Some(Self(names.map(Name::from).collect()))
    }

    fn write(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|name| &**name).collect();
        names.join(&BETWEEN.to_string())
    }
}

/// A buffer as asked for and as granted. Units: usable bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Asked for; absent where it is left to the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_bytes: Option<usize>,
    /// Granted; of a buffer that the kernel tunes, its size at the time.
    pub granted_bytes: usize,
}

impl Buffer {
    /// What was granted of what was asked for; `None` of a buffer that is left to the kernel.
    pub fn wanted_bytes(&self) -> Option<u64> {
        self.asked_bytes.map(|_| self.granted_bytes as u64)
    }
}

impl Text for Buffer {
    fn read(text: &str) -> Option<Self> {
        let (granted, rest) = text.split_once(' ').unwrap_or((text, ""));
        let granted_bytes = granted.parse().ok()?;
        let asked_bytes = match rest {
            "" => Some(granted_bytes),
            "(the kernel's)" => None,
            asked => Some(between(asked, "(asked for ", ")")?.parse().ok()?),
        };
        Some(Self {
            asked_bytes,
            granted_bytes,
        })
    }

    fn write(&self) -> String {
        let granted = self.granted_bytes;
        match self.asked_bytes {
            Some(asked) if asked != granted => format!("{granted} (asked for {asked})"),
            Some(_) => granted.to_string(),
            None => format!("{granted} (the kernel's)"),
        }
    }
}

/// A setting of a host that was changed for a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostChange {
    /// Its value before.
    pub before: Words,
    /// What was asked for.
    pub asked: Words,
    /// Its value afterwards, read back.
    pub after: Words,
}

impl Text for HostChange {
    fn read(text: &str) -> Option<Self> {
        let (after, rest) = text.strip_suffix(')')?.split_once(" (asked for ")?;
        let (asked, before) = rest.rsplit_once(", was ")?;
        Some(Self {
            before: before.into(),
            asked: asked.into(),
            after: after.into(),
        })
    }

    fn write(&self) -> String {
        format!(
            "{} (asked for {}, was {})",
            self.after, self.asked, self.before
        )
    }
}

/// What timed single samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SampleClock {
    /// The time stamp counter.
    Tsc {
        /// Its rate.
        khz: u64,
    },
    /// CLOCK_MONOTONIC by clock_gettime.
    Monotonic {
        /// Why not the counter.
        why: Words,
    },
}

impl Text for SampleClock {
    fn read(text: &str) -> Option<Self> {
        if let Some(khz) = between(text, "tsc, ", " kHz") {
            return Some(Self::Tsc {
                khz: khz.parse().ok()?,
            });
        }
        let why = between(text, "clock_gettime (", ")")?.into();
        Some(Self::Monotonic { why })
    }

    fn write(&self) -> String {
        match self {
            Self::Tsc { khz } => format!("tsc, {khz} kHz"),
            Self::Monotonic { why } => format!("clock_gettime ({why})"),
        }
    }
}

/// The time stamp counter went astray, so that all samples of a size were taken again by clock_gettime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Strayed {
    /// By how much, against CLOCK_MONOTONIC.
    pub ppm: u64,
    /// By how much it may.
    pub allowed_ppm: u64,
}

const STRAYED: &str = "clock_gettime, all samples taken again: the time stamp counter strayed by ";

impl Text for Strayed {
    fn read(text: &str) -> Option<Self> {
        let (ppm, allowed) = text
            .strip_prefix(STRAYED)?
            .split_once(" ppm, allowed are ")?;
        Some(Self {
            ppm: ppm.parse().ok()?,
            allowed_ppm: allowed.parse().ok()?,
        })
    }

    fn write(&self) -> String {
        format!(
            "{STRAYED}{} ppm, allowed are {}",
            self.ppm, self.allowed_ppm
        )
    }
}

/// The CPU that an end was bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// Its number.
    pub cpu: usize,
    /// What it was chosen against.
    pub why: Words,
}

impl Text for Placed {
    fn read(text: &str) -> Option<Self> {
        let (cpu, why) = text.strip_prefix("CPU ")?.split_once(": ")?;
        Some(Self {
            cpu: cpu.parse().ok()?,
            why: why.into(),
        })
    }

    fn write(&self) -> String {
        format!("CPU {}: {}", self.cpu, self.why)
    }
}

/// Users' buffers that no cache has: each message takes others of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColdBuffers {
    /// The area.
    pub area_kib: u64,
    /// The last-level cache: which level.
    pub cache_level: u64,
    /// Its size.
    pub cache_kib: u64,
}

impl Text for ColdBuffers {
    fn read(text: &str) -> Option<Self> {
        let rest = between(text, "cold: areas of ", " KiB)")?;
        let (area, rest) = rest.split_once(" KiB, twice the last-level cache (L")?;
        let (level, cache) = rest.split_once(", ")?;
        Some(Self {
            area_kib: area.parse().ok()?,
            cache_level: level.parse().ok()?,
            cache_kib: cache.parse().ok()?,
        })
    }

    fn write(&self) -> String {
        format!(
            "cold: areas of {} KiB, twice the last-level cache (L{}, {} KiB)",
            self.area_kib, self.cache_level, self.cache_kib
        )
    }
}

/// Slots that a packet socket shares with the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingShape {
    /// How many, each way.
    pub slots: u64,
    /// How large each is.
    pub slot_bytes: u64,
}

impl Text for RingShape {
    fn read(text: &str) -> Option<Self> {
        let (slots, bytes) = between(text, "", " bytes each way")?.split_once(" slots of ")?;
        Some(Self {
            slots: slots.parse().ok()?,
            slot_bytes: bytes.parse().ok()?,
        })
    }

    fn write(&self) -> String {
        format!("{} slots of {} bytes each way", self.slots, self.slot_bytes)
    }
}

/// Where AF_XDP takes frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum XdpMode {
    /// In the driver.
    Driver,
    /// In the kernel's generic hook.
    Skb,
}

/// Messages whose bodies are handed over as pages of a file (sendfile), behind a header that is sent plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Splice {
    /// Each body so.
    Bodies,
}

/// What became of MSG_ZEROCOPY where it was of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZerocopyNote {
    /// The kernel copied every byte.
    CopiedAll,
}

/// Why no further sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The median is known well enough.
    Precision,
    /// All were taken.
    Samples,
    /// The budget was used up.
    Budget,
}

/// Whether all results of a kernel are the official ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// No official value is known.
    NotPerformed,
    /// All are.
    Successful,
    /// Some are not.
    Unsuccessful,
}

as_words! {
    XdpMode {
        Driver = "driver, by copies, past the queueing discipline",
        Skb = "skb, by copies, past the queueing discipline",
    }
    Splice { Bodies = "each header by send, each body by sendfile from memory" }
    ZerocopyNote {
        CopiedAll = "the kernel copied every byte after all, as it does where frames stay on this host (loopback, veth) or the device cannot gather",
    }
    EndedBy { Precision = "precision", Samples = "samples", Budget = "budget" }
    Stage {
        SourceDisk = "source disk",
        Translation = "translation",
        Socket = "socket",
        Network = "network",
        SinkDisk = "sink disk",
    }
    Verification {
        NotPerformed = "not performed",
        Successful = "successful",
        Unsuccessful = "unsuccessful",
    }
}

/// Whose address was resolved at a start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// Whether it is a gateway on the route to the peer, else the peer itself.
    pub is_gateway: bool,
}

impl Text for Neighbour {
    fn read(text: &str) -> Option<Self> {
        let (address, role) = text.split_once(' ')?;
        Some(Self {
            address: address.parse().ok()?,
            is_gateway: match role {
                "(the gateway)" => true,
                "(the peer)" => false,
                _ => return None,
            },
        })
    }

    fn write(&self) -> String {
        let role = if self.is_gateway { "gateway" } else { "peer" };
        format!("{} (the {role})", self.address)
    }
}

/// What held a load below what was planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadLimit {
    /// The kernel had no room for so many percent of the time.
    #[serde(rename = "no_room_percent")]
    NoRoom(Fixed<0>),
    /// The sender's CPU: so many milliseconds behind at the end.
    #[serde(rename = "sender_cpu_behind_ms")]
    SenderCpu(Fixed<1>),
    /// The sender failed.
    Failed(Words),
}

impl Text for LoadLimit {
    fn read(text: &str) -> Option<Self> {
        let room = between(text, "the kernel had no room for ", NO_ROOM).and_then(Fixed::read);
        let cpu = between(
            text,
            SENDER_CPU,
            " ms behind at the end; larger datagrams need less of it",
        );
        let cpu = cpu.and_then(Fixed::read);
        Some(match (room, cpu) {
            (Some(percent), _) => Self::NoRoom(percent),
            (None, Some(behind_ms)) => Self::SenderCpu(behind_ms),
            (None, None) => Self::Failed(text.into()),
        })
    }

    fn write(&self) -> String {
        match self {
            Self::NoRoom(percent) => {
                format!("the kernel had no room for {}{NO_ROOM}", percent.write())
            }
            Self::SenderCpu(behind_ms) => format!(
                "{SENDER_CPU}{} ms behind at the end; larger datagrams need less of it",
                behind_ms.write()
            ),
            Self::Failed(words) => words.write(),
        }
    }
}

const NO_ROOM: &str = " % of the time: the way takes no more";
const SENDER_CPU: &str = "the sender's CPU was the limit: it was ";

/// How native ranks hand over long messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LongMessages {
    /// After a rendezvous, from the socket to where they belong.
    Rendezvous,
    /// In one copy out of the sender's memory.
    OneCopy,
    /// Through rings, in two copies.
    Rings {
        /// Why not in one.
        why: Words,
    },
}

const RENDEZVOUS: &str = "by request, straight to where they belong";
const ONE_COPY: &str = "one copy out of the sender's memory (process_vm_readv)";
const RINGS: &str = "through rings, in two copies: ";

impl Text for LongMessages {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            RENDEZVOUS => Self::Rendezvous,
            ONE_COPY => Self::OneCopy,
            rings => Self::Rings {
                why: rings.strip_prefix(RINGS)?.into(),
            },
        })
    }

    fn write(&self) -> String {
        match self {
            Self::Rendezvous => RENDEZVOUS.into(),
            Self::OneCopy => ONE_COPY.into(),
            Self::Rings { why } => format!("{RINGS}{why}"),
        }
    }
}

fn json<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

fn as_json(value: &impl Serialize) -> String {
    // The members of these types have fixed names: there is nothing that JSON does not take.
    serde_json::to_string(value).unwrap_or_default()
}

impl Text for Kernel {
    fn read(text: &str) -> Option<Self> {
        json(text)
    }

    fn write(&self) -> String {
        as_json(self)
    }
}

impl Text for Replay {
    fn read(text: &str) -> Option<Self> {
        json(text)
    }

    fn write(&self) -> String {
        as_json(self)
    }
}

#[cfg(test)]
mod tests;
