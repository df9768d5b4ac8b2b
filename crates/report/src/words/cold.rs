//! What is said of cold starts and of messages after a pause.
//!
//! Units:   nanoseconds, bytes.
//! Checked: the tests of `finding::cold`.

use sonde_measure::Line;

use super::Words;
use crate::format::{bytes, share, significant, time};
use crate::lost::{Lost, LostAt, LostPart, LostUnit, whole};

/// What no step explains, among the parts of a loss.
pub(crate) const NOT_EXPLAINED: &str = "not explained";

/// A part of a start-up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// Of a library: the start of its ranks.
    Spawn,
    /// Of a library: until it can send.
    Init,
    Neighbour,
    Circuit,
    Connect,
    /// What the first message takes more than the second.
    Message,
}

impl Part {
    fn words(self) -> &'static str {
        match self {
            Self::Spawn => "the start of the ranks",
            Self::Init => "the library's own set-up",
            Self::Neighbour => "address resolution (ARP)",
            Self::Circuit => "the circuit's set-up",
            Self::Connect => "the handshake",
            Self::Message => "the extra time of the first message over the second",
        }
    }

    /// In a word or two.
    fn name(self) -> &'static str {
        match self {
            Self::Spawn => "start of the ranks",
            Self::Init => "library",
            Self::Neighbour => "ARP",
            Self::Circuit => "circuit",
            Self::Connect => "handshake",
            Self::Message => "first message",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Spawn | Self::Init => {
                "start the ranks once, and give them one task after the other"
            }
            Self::Neighbour => {
                "keep the addresses: raise net.ipv4.neigh.default.base_reachable_time_ms, or set permanent entries \
                 (`ip neigh replace ... nud permanent`)"
            }
            Self::Circuit => {
                "use permanent circuits, or keep switched ones open by sending before they time out"
            }
            Self::Connect => {
                "keep connections open between messages, and open them before they are needed"
            }
            Self::Message => {
                "send a message when the program starts, before the first one that counts"
            }
        }
    }
}

/// A cold start that costs.
pub(crate) struct Start<'l> {
    pub line: &'l Line,
    pub size_bytes: u64,
    pub whole_ns: f64,
    /// A warm round trip of the same size.
    pub trip_ns: f64,
    /// The largest part that is known.
    pub largest: Option<(Part, f64)>,
    /// Whether that is half of the whole or more.
    pub is_most: bool,
    /// What no step explains, where it is worth a word.
    pub rest_ns: Option<f64>,
}

impl Words for Start<'_> {
    fn sentence(&self) -> String {
        let part_of = |ns: f64| share((ns / self.whole_ns).min(1.0));
        let largest = self.largest.map_or(String::new(), |(part, ns)| {
            let what = match self.is_most {
                true => "Most of it",
                false => "The largest known part",
            };
            format!(
                " {what} is {}: {}, {} of it.",
                part.words(),
                time(ns),
                part_of(ns)
            )
        });
        let rest = self.rest_ns.map_or(String::new(), |ns| {
            format!(" {} is not explained by any step.", part_of(ns))
        });
        format!(
            "The first message of {} over {} on {} takes {}, {} times a warm round trip of {}.{largest}{rest}",
            bytes(self.size_bytes),
            self.line.by(),
            self.line.network,
            time(self.whole_ns),
            significant(self.whole_ns / self.trip_ns, 2),
            time(self.trip_ns)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let rest = self.rest_ns.map_or(String::new(), |ns| {
            format!("; {} of it not explained", time(ns))
        });
        Some(format!(
            "{} - {} = {} paid once{rest}",
            time(self.whole_ns),
            time(self.trip_ns),
            time(self.whole_ns - self.trip_ns)
        ))
    }

    /// What cures the part that is most of it; else what cures all of them.
    fn remedy(&self) -> Option<String> {
        let most = self.largest.filter(|_| self.is_most);
        let part = most.map_or(Part::Message, |(part, _)| part);
        Some(part.remedy().into())
    }

    fn lost(&self) -> Option<Lost> {
        let of = [self.whole_ns - self.trip_ns, self.whole_ns];
        let part = |name: &str, ns| LostPart {
            name: name.into(),
            value: whole(ns),
        };
        let largest = self.largest.map(|(one, ns)| part(one.name(), ns));
        let rest = self.rest_ns.map(|ns| part(NOT_EXPLAINED, ns));
        Some(Lost {
            parts: largest.into_iter().chain(rest).collect(),
            ..Lost::new(LostAt::Start, &self.line.path, LostUnit::NsOnce, of)
        })
    }
}

/// A message after a pause.
pub(crate) struct Idle<'l> {
    pub line: &'l Line,
    pub idle_ns: f64,
    pub second_ns: f64,
}

impl Words for Idle<'_> {
    fn sentence(&self) -> String {
        format!(
            "After a pause, a message over {} on {} takes {}, {} times the one before it (idle wake-up cost).",
            self.line.by(),
            self.line.network,
            time(self.idle_ns),
            significant(self.idle_ns / self.second_ns, 2)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} - {} = {}",
            time(self.idle_ns),
            time(self.second_ns),
            time(self.idle_ns - self.second_ns)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "CPUs that sleep deeply and interfaces that gather interrupts wake slowly: `tuned-adm profile network-latency`, or keep \
             messages in flight"
                .into(),
        )
    }

    fn lost(&self) -> Option<Lost> {
        let of = [self.idle_ns - self.second_ns, self.idle_ns];
        Some(Lost::new(
            LostAt::Pause,
            &self.line.path,
            LostUnit::NsOnce,
            of,
        ))
    }
}
