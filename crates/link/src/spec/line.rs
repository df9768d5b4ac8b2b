//! The line of a station: its rate, framing and length.
//!
//! Units:   `length_m` in metres; a signal takes 5 ns for each.
//! Checked: `tests/catalogue.rs`, `tests/times.rs`.

use super::{SpecError, in_time, rate_is_possible, refuse};
use crate::framing::{Bursts, Fill};
use crate::{Encapsulation, Framing};
use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Bytes, Ratio, Span};

/// How frames become bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FramingName {
    None,
    Ethernet,
    Atm,
    Fddi,
    FibreChannel,
    Hippi,
}

/// A full-duplex line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The nominal rate; without it a frame takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// The share of it that frames or cells may use, such as 26/27 in SONET.
    #[serde(default = "whole")]
    pub payload: Ratio,
    pub(super) framing: FramingName,
    /// How IP is put into cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) encapsulation: Option<Encapsulation>,
    /// From one end to the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    propagation: Option<Span>,
    /// Its length in metres of cable or fibre, in place of `propagation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length_m: Option<u64>,
    /// Bytes of a full burst of HIPPI: 256 words of 4 or 8 bytes; 1 KiB if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<Bytes>,
    /// Bytes of time from one burst of HIPPI to the next, checksum word included; 4 words if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gap: Option<Bytes>,
    /// Whether the last burst of a HIPPI packet is filled up to a burst, as if left out, or to a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fill: Option<Fill>,
    /// What coding adds at each line, such as collecting and decoding a block of forward error correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coding: Option<Span>,
}

/// HIPPI at 800 Mb/s: 256 words of 4 bytes.
const BURST: Bytes = Bytes::kib(1);

/// A signal takes 5 ns for a metre of fibre or copper: two thirds of the speed of light.
const PROPAGATION_PER_METRE: Span = Span::nanos(5);
/// The highest rate that a figure in the literature of clusters asks for.
pub(super) const RATE_MAX: BitRate = BitRate::gbit(800);
pub(super) const RATE_MIN_BPS: u64 = 1_000;

const fn whole() -> Ratio {
    Ratio::ONE
}

impl Line {
    /// The framing, complete.
    pub fn framing(&self) -> Framing {
        match self.framing {
            FramingName::None => Framing::None,
            FramingName::Ethernet => Framing::Ethernet,
            FramingName::Fddi => Framing::Fddi,
            FramingName::FibreChannel => Framing::FibreChannel,
            FramingName::Hippi => {
                let burst = self.burst.unwrap_or(BURST);
                Framing::Hippi(Bursts {
                    burst,
                    gap: self.gap.unwrap_or(Bytes(burst.0 / 64)),
                    fill: self.fill.unwrap_or(Fill::Burst),
                })
            }
            FramingName::Atm => Framing::Atm(self.encapsulation.unwrap_or(Encapsulation::LlcSnap)),
        }
    }

    /// Bursts are HIPPI's only, and 256 words of 4 or 8 bytes.
    pub(super) fn check_bursts(&self) -> Result<(), SpecError> {
        let named = [
            ("line.burst", self.burst.is_some()),
            ("line.gap", self.gap.is_some()),
            ("line.fill", self.fill.is_some()),
        ];
        if let Framing::Hippi(bursts) = self.framing() {
            if ![BURST, BURST.saturating_mul(2)].contains(&bursts.burst) {
                let problem = format!(
                    "is {}, but a burst is 256 words of 4 or 8 bytes: `1KiB` or `2KiB`",
                    bursts.burst
                );
                return refuse("line.burst", problem);
            }
            if bursts.gap > bursts.burst {
                let problem = format!(
                    "is {}, longer than a burst; a gap is a few words, such as `16B`",
                    bursts.gap
                );
                return refuse("line.gap", problem);
            }
            return Ok(());
        }
        match named.into_iter().find(|(_, is_there)| *is_there) {
            Some((key, _)) => refuse(key, "needs `framing = \"hippi\"`; leave it out".into()),
            None => Ok(()),
        }
    }

    /// From one end to the other: as given, or 5 ns a metre; and what coding adds.
    pub fn propagation(&self) -> Span {
        let cable = PROPAGATION_PER_METRE.saturating_mul(self.length_m.unwrap_or(0));
        self.propagation
            .unwrap_or(cable)
            .saturating_add(self.coding.unwrap_or(Span::ZERO))
    }

    /// The same line with figures of its own where they are given.
    pub(crate) fn altered(
        mut self,
        rate: Option<BitRate>,
        payload: Option<Ratio>,
        propagation: Option<Span>,
        length_m: Option<u64>,
    ) -> Self {
        self.rate = rate.or(self.rate);
        self.payload = payload.unwrap_or(self.payload);
        if propagation.is_some() || length_m.is_some() {
            (self.propagation, self.length_m) = (propagation, length_m);
        }
        self
    }

    /// Whether its figures are in their ranges.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if let Some(rate) = self.rate.filter(|rate| !rate_is_possible(*rate)) {
            return refuse(
                "line.rate",
                format!("is {rate}, but a line has 1kbit to {RATE_MAX}"),
            );
        }
        if self.payload > Ratio::ONE || self.payload.is_zero() {
            return refuse(
                "line.payload",
                format!("is {}, but a share is above 0 and at most 1", self.payload),
            );
        }
        if self.usable().is_some_and(|rate| rate.bps() < RATE_MIN_BPS) {
            let problem = format!(
                "is {}, which leaves less than 1kbit of the rate",
                self.payload
            );
            return refuse("line.payload", problem);
        }
        if self.propagation.is_some() && self.length_m.is_some() {
            return refuse(
                "line.length_m",
                "stands beside `propagation`; keep one of them".into(),
            );
        }
        if self.length_m.is_some_and(|metres| metres > 100_000_000) {
            return refuse(
                "line.length_m",
                "is above 100 000 km; give `propagation` instead if it is meant".into(),
            );
        }
        in_time(
            "line.coding",
            self.coding.unwrap_or(Span::ZERO),
            Span::secs(1),
        )?;
        in_time("line.propagation", self.propagation(), Span::secs(10))
    }

    /// The rate that is left for frames or cells.
    pub fn usable(&self) -> Option<BitRate> {
        self.rate.map(|rate| rate.scaled(self.payload))
    }

    /// How long one unit of `wire` bytes takes: a frame, or a cell.
    pub fn unit_time(&self, wire: Bytes) -> Span {
        self.usable().map_or(Span::ZERO, |rate| rate.time(wire))
    }

    /// How long a frame of `len` layer-3 bytes holds the line. Cells are timed one by one.
    pub fn time(&self, len: Bytes) -> Span {
        match self.framing() {
            framing @ Framing::Atm(_) => {
                let cell = self.unit_time(crate::CELL_WIRE);
                cell.saturating_mul(framing.units(len))
            }
            framing => self.unit_time(framing.wire(len)),
        }
    }
}
