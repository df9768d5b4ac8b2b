//! What is said of libraries that reach a small part of their network.
//!
//! Units:   bits a second, bytes.
//! Checked: the tests of `finding::library_rate`.

use sonde_measure::Line;

use super::Words;
use crate::format::{bytes, rate, share};
use crate::lost::{Lost, LostAt, LostPart, whole};

/// A library whose rate is small.
pub(crate) struct Slow<'l> {
    pub line: &'l Line,
    /// The size of single messages; `None` of a stream.
    pub message_bytes: Option<u64>,
    pub rate_bps: f64,
    /// What the network allows; where that is not known, what the transport reaches.
    pub possible_bps: f64,
    /// The transport beneath, and what it reaches.
    pub transport: Option<(&'static str, f64)>,
    /// Whether a disturbance leaves this figure uncertain.
    pub is_disturbed: bool,
}

impl Slow<'_> {
    /// The transport, where its rate is not what stands for the limit.
    fn beside(&self) -> Option<(&'static str, f64)> {
        self.transport
            .filter(|(_, bps)| bps.total_cmp(&self.possible_bps).is_ne())
    }
}

impl Words for Slow<'_> {
    fn sentence(&self) -> String {
        let (by, network) = (self.line.by(), &self.line.network);
        let what = match self.message_bytes {
            Some(size) => format!("Messages of {} over {by} on {network} reach", bytes(size)),
            None => format!("A stream over {by} on {network} reaches"),
        };
        let of = match (self.beside(), self.transport) {
            (Some((name, bps)), _) => {
                format!("the network allows, where {name} reaches {}", rate(bps))
            }
            (None, Some((name, _))) => format!("{name} reaches"),
            (None, None) => "the network allows".into(),
        };
        format!(
            "{what} {}, {} of what {of}.",
            rate(self.rate_bps),
            share(self.rate_bps / self.possible_bps)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} / {} = {}",
            rate(self.rate_bps),
            rate(self.possible_bps),
            share(self.rate_bps / self.possible_bps)
        ))
    }

    fn remedy(&self) -> Option<String> {
        let text = match self.is_disturbed {
            true => {
                "a disturbance leaves this figure uncertain (disturbed): measure again on a quiet machine, before the library is suspected"
            }
            false => {
                "compare sizes (`sonde probe throughput --mode message --size 1KiB..4MiB`): a library that copies or waits for an \
                      acknowledgement of each part gains by larger messages, several in flight, or its direct route"
            }
        };
        Some(text.into())
    }

    fn lost(&self) -> Option<Lost> {
        let mut lost = Lost::of_rate(
            LostAt::LibraryRate,
            &self.line.path,
            self.rate_bps,
            self.possible_bps,
        );
        lost.parts.extend(self.beside().map(|(name, bps)| LostPart {
            name: name.into(),
            value: whole(bps),
        }));
        Some(lost)
    }
}
