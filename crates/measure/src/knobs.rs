//! What can be set of a channel beside its path, method and wait: the factors of a sweep.
//!
//! Model:   each knob has a name and values as texts, so that plans, sweeps and records say them alike; one that is not
//!          set is the kernel's own choice.
//! Units:   names end in their unit where values are bare; sizes take binary suffixes.
//! Checked: `knobs_are_read_by_name`, `wrong_knobs_are_refused`.
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

use crate::KnobValues;

use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Bytes};

/// What is set of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knobs {
    /// `sndbuf`: the send buffer, usable bytes; null leaves it to the kernel, which tunes TCP's as it goes.
    pub send_buffer_bytes: Option<usize>,
    /// `rcvbuf`: the receive buffer; as above.
    pub recv_buffer_bytes: Option<usize>,
    /// `window`: the largest window that TCP's receiver offers, held while it receives; null leaves it to the kernel.
    #[serde(default)]
    pub window_bytes: Option<usize>,
    /// `congestion`: TCP's congestion control; null is the host's.
    pub congestion: Option<String>,
    /// `rate`: bits of users a second at which a stream of datagrams is sent; null sends as fast as it goes.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// `max-rate`: bits of users a second above which neither end sends; null sends as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate_bps: Option<u64>,
    /// `streams`: connections that carry a stream at the same time, 1 to 128.
    pub streams: u32,
    /// `busy-poll`: how long a receive that would sleep looks at the device's queue, microseconds; null is the host's.
    pub busy_poll_us: Option<u32>,
    /// `chunk`: bytes that the receiver of a TCP stream asks for in a call; null is sonde's own choice.
    pub chunk_bytes: Option<usize>,
    /// `lowat`: bytes that must have come before a receive of a TCP stream returns (SO_RCVLOWAT).
    pub low_water_bytes: Option<usize>,
    /// `connected`: a UDP socket has one peer in the kernel; otherwise each call names it, and each arrival is compared.
    pub connected: bool,
    /// `nodelay`: a small segment is sent at once (TCP_NODELAY), as every answer of a conversation must be; without it the
    /// kernel holds the last part of a send back until it has a segment full or an acknowledgement.
    pub nodelay: bool,
    /// `align`: where user buffers begin, and in shared memory what is written, in bytes after a line of 64; null leaves it
    /// to the allocator.
    pub align: Option<u32>,
    /// `clock`: what times a round trip; null is the cheapest that can be trusted.
    #[serde(default)]
    pub clock: Option<Clock>,
    /// `buffers`: whether the cache has users' buffers.
    #[serde(default)]
    pub buffers: Buffers,
    /// `place`: the CPU of each end; null leaves it to the testbed.
    #[serde(default)]
    pub place: Option<Seat>,
}

/// Whether the cache has users' buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffers {
    /// The same memory for each message.
    #[default]
    Warm,
    /// Each message has memory of its own that no cache has.
    Cold,
}

/// The CPU of an end, against the one that takes its interface's packets off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seat {
    /// That CPU itself.
    Same,
    /// Another thread of its core.
    Sibling,
    /// Another core of its memory node, of the same last-level cache where there is one.
    Near,
    /// A CPU of another memory node.
    Far,
    /// This CPU, whichever that is.
    Cpu(u32),
}

impl Seat {
    fn parse(value: &str) -> Option<Self> {
        Some(match value {
            "same" => Self::Same,
            "sibling" => Self::Sibling,
            "near" => Self::Near,
            "far" => Self::Far,
            number => Self::Cpu(number.parse().ok().filter(|cpu| *cpu < 1_024)?),
        })
    }
}

/// What times a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The CPU's time stamp counter.
    Tsc,
    /// CLOCK_MONOTONIC, by clock_gettime.
    Monotonic,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            send_buffer_bytes: None,
            recv_buffer_bytes: None,
            window_bytes: None,
            congestion: None,
            rate_bps: None,
            max_rate_bps: None,
            streams: 1,
            busy_poll_us: None,
            chunk_bytes: None,
            low_water_bytes: None,
            connected: true,
            nodelay: true,
            align: None,
            clock: None,
            buffers: Buffers::Warm,
            place: None,
        }
    }
}

/// A knob that cannot be set so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}={value}` cannot be set: {why}")]
pub struct BadKnob {
    /// Its name.
    pub name: String,
    /// The value that was asked for.
    pub value: String,
    /// What is wrong with it, and what can be written.
    pub why: String,
}

const STREAMS_MAX: u32 = 128;
const BUFFER_BYTES_MAX: u64 = 1 << 30;
const BUSY_POLL_US_MAX: u32 = 1_000_000;

impl Knobs {
    /// The names, with what they take, for help texts.
    pub const NAMES: &'static [(&'static str, &'static str)] = &[
        ("sndbuf", "send buffer, as 64KiB"),
        ("rcvbuf", "receive buffer, as 64KiB"),
        ("window", "largest window of TCP's receiver, as 64KiB"),
        ("congestion", "congestion control, as cubic"),
        ("rate", "a stream of datagrams' constant rate, as 50Mbit"),
        ("max-rate", "the most that an end sends, as 100Mbit"),
        ("streams", "connections at once, 1 to 128"),
        (
            "busy-poll",
            "microseconds for which a receive polls the device, as 50",
        ),
        ("chunk", "bytes of a receiver's call, as 256KiB"),
        ("lowat", "bytes that wake a receiver, as 128KiB"),
        ("nodelay", "TCP sends small segments at once: yes or no"),
        ("connected", "UDP by a connected socket: yes or no"),
        (
            "align",
            "bytes after a line of 64 where buffers begin, 0 to 63",
        ),
        ("clock", "what times round trips: tsc or monotonic"),
        ("buffers", "in the cache or not: warm or cold"),
        (
            "place",
            "each end's CPU against its interface's: same, sibling, near, far, or a number",
        ),
    ];

    /// At how many bits of users a second datagrams of a stream are sent; null as fast as it goes.
    pub fn sent_bps(&self) -> Option<u64> {
        match (self.rate_bps, self.max_rate_bps) {
            (Some(rate), Some(most)) => Some(rate.min(most)),
            (rate, most) => rate.or(most),
        }
    }

    /// How long a message of so many bytes keeps the next one back, so that all of them stay below the bound; 0 without one.
    pub fn pause_ns(&self, bytes: u64) -> u64 {
        let pause = |most: u64| {
            let bits_ns = u128::from(bytes).saturating_mul(8_000_000_000);
            let pause_ns = bits_ns.div_ceil(u128::from(most.max(1)));
            u64::try_from(pause_ns).unwrap_or(u64::MAX)
        };
        self.max_rate_bps.map_or(0, pause)
    }

    /// The knobs of these names and values.
    ///
    /// # Errors
    /// A name that is none, a value that it does not take.
    pub fn parse(values: &KnobValues) -> Result<Self, BadKnob> {
        let mut knobs = Self::default();
        for (name, value) in values {
            knobs.set(name, value).map_err(|why| BadKnob {
                name: name.clone(),
                value: value.clone(),
                why,
            })?;
        }
        Ok(knobs)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "sndbuf" => self.send_buffer_bytes = Some(buffer(value)?),
            "rcvbuf" => self.recv_buffer_bytes = Some(buffer(value)?),
            "window" => self.window_bytes = Some(buffer(value)?),
            "congestion" => self.congestion = Some(value.into()),
            "rate" => self.rate_bps = Some(rate(value)?),
            "max-rate" => self.max_rate_bps = Some(rate(value)?),
            "streams" => self.streams = within(value, 1, STREAMS_MAX)?,
            "busy-poll" => self.busy_poll_us = Some(within(value, 0, BUSY_POLL_US_MAX)?),
            "chunk" => self.chunk_bytes = Some(buffer(value)?),
            "lowat" => self.low_water_bytes = Some(buffer(value)?),
            "nodelay" => self.nodelay = yes(value)?,
            "connected" => self.connected = yes(value)?,
            "align" => self.align = Some(within(value, 0, 63)?),
            "buffers" => {
                self.buffers = match value {
                    "warm" => Buffers::Warm,
                    "cold" => Buffers::Cold,
                    _ => return Err("write warm or cold".into()),
                };
            }
            "place" => {
                let seat = Seat::parse(value);
                self.place =
                    Some(seat.ok_or("write same, sibling, near, far, or a CPU below 1024")?);
            }
            "clock" => {
                self.clock = Some(match value {
                    "tsc" => Clock::Tsc,
                    "monotonic" => Clock::Monotonic,
                    _ => {
                        return Err(
                            "write tsc or monotonic; without it the cheaper is taken".into()
                        );
                    }
                });
            }
            _ => {
                let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "there is no such knob; there are {}",
                    names.join(", ")
                ));
            }
        }
        Ok(())
    }
}

fn buffer(value: &str) -> Result<usize, String> {
    let bytes = value
        .parse::<u64>()
        .or_else(|_| value.parse::<Bytes>().map(|bytes| bytes.0));
    bytes
        .ok()
        .filter(|bytes| (1..=BUFFER_BYTES_MAX).contains(bytes))
        .map(|bytes| bytes as usize)
        .ok_or_else(|| "write 1 to 1073741824 bytes, or as 64KiB".into())
}

fn yes(value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("write yes or no".into()),
    }
}

fn rate(value: &str) -> Result<u64, String> {
    let rate = value.parse::<BitRate>().ok().map(BitRate::bps);
    rate.filter(|bps| (1_000..=1_000_000_000_000).contains(bps))
        .ok_or_else(|| "write a rate from 1kbit to 1000Gbit, as 50Mbit".into())
}

fn within(value: &str, low: u32, high: u32) -> Result<u32, String> {
    value
        .parse()
        .ok()
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| format!("write a number from {low} to {high}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Knobs, BadKnob> {
        let values = pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Knobs::parse(&values.collect())
    }

    #[test]
    fn knobs_are_read_by_name() {
        assert_eq!(parse(&[]), Ok(Knobs::default()));
        let knobs = parse(&[
            ("sndbuf", "64KiB"),
            ("streams", "4"),
            ("congestion", "reno"),
            ("busy-poll", "50"),
            ("chunk", "1MiB"),
            ("connected", "no"),
            ("nodelay", "no"),
            ("rate", "50Mbit"),
            ("max-rate", "8Mbit"),
            ("clock", "monotonic"),
            ("buffers", "cold"),
            ("place", "3"),
        ])
        .unwrap();
        let found = (knobs.clock, knobs.buffers, knobs.place);
        let wanted = (Some(Clock::Monotonic), Buffers::Cold, Some(Seat::Cpu(3)));
        assert_eq!(found, wanted);
        let far = parse(&[("place", "far"), ("buffers", "warm")]).unwrap();
        assert_eq!((far.place, far.buffers), (Some(Seat::Far), Buffers::Warm));
        assert_eq!(
            (knobs.busy_poll_us, knobs.chunk_bytes),
            (Some(50), Some(1 << 20))
        );
        assert!(!knobs.connected && !knobs.nodelay);
        assert_eq!(knobs.send_buffer_bytes, Some(65_536));
        assert_eq!(knobs.rate_bps, Some(50_000_000));
        assert_eq!(knobs.sent_bps(), Some(8_000_000));
        // 1,000 bytes take a millisecond at 8 Mb/s; a byte more is never early.
        assert_eq!(
            (knobs.pause_ns(1_000), knobs.pause_ns(1)),
            (1_000_000, 1_000)
        );
        assert_eq!((far.pause_ns(1_000), far.sent_bps()), (0, None));
        assert_eq!(
            (knobs.streams, knobs.congestion.as_deref()),
            (4, Some("reno"))
        );
    }

    #[test]
    fn wrong_knobs_are_refused() {
        for (name, value, why) in [
            ("sndbuf", "0", "1 to 1073741824"),
            ("streams", "129", "from 1 to 128"),
            ("busy-poll", "1000001", "from 0 to 1000000"),
            ("chunk", "0", "1 to 1073741824"),
            ("connected", "true", "yes or no"),
            ("rate", "50", "as 50Mbit"),
            ("stream", "1", "there are sndbuf, rcvbuf"),
            ("align", "64", "from 0 to 63"),
            ("clock", "hpet", "tsc or monotonic"),
            ("buffers", "hot", "warm or cold"),
            ("place", "1024", "CPU below 1024"),
            ("place", "here", "same, sibling"),
        ] {
            let error = parse(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(name), "{error}");
        }
    }
}
