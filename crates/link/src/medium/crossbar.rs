//! A crossbar without storage, by circuits: HIPPI.
//!
//! Model:   a connection for each datagram: request with the I-field, answer, data in bursts, release. The sending side of
//!          the source and a channel of the destination are seized for set-up, the signals' way there and back, and the
//!          packet; nothing is stored between them, so the frame at a station's head holds back those behind it. A busy
//!          destination camps the request on, in a queue of its own, or refuses it. Bursts are sent against credits, which
//!          come back end to end. With a slot, connections begin at its multiples only: the input-queued crossbar of theory.
//! Source:  ANSI X3.183 (HIPPI-PH), X3.222 (HIPPI-SC), RFC 2067; HIPPI/RUS study. Deviations: all lines have one
//!          length, so that times are kept as the sources see them; the way between crossbars is in `crossing`; a source
//!          with several channels sends one datagram over `stripes` of them, not several datagrams.
//! Units:   sizes in layer-3 bytes; times in picoseconds, rounded up a transfer.
//! Checked: `tests/crossbar.rs`.

mod channels;
mod switch;

use crate::framing::Framing;
use crate::{Line, NetworkSpec, SpecError, Topology};
use serde::{Deserialize, Serialize};
use sonde_units::{Bytes, Span};
pub(crate) use switch::Switch;

/// A crossbar without storage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crossbar {
    /// What switch and destination take to make a connection, besides the signals' way there and back.
    pub setup: Span,
    /// Crossbars from source to destination, 1 to 64.
    #[serde(default = "one")]
    pub crossbars: u16,
    /// There and back through one of them, wires to it included: half of it each way. A switch that buffers has a long one.
    #[serde(default = "crossing")]
    pub crossing: Span,
    /// What becomes of a request whose destination is busy.
    #[serde(default)]
    pub busy: Busy,
    /// For how long a request camps on before it is refused; without it until it is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camp_limit: Option<Span>,
    /// Which of the requests that wait for a destination is served next.
    #[serde(default)]
    pub order: Order,
    /// A refused source tries again after this, or up to twice as long, drawn evenly: two do not meet again and again.
    #[serde(default = "retry")]
    pub retry: Span,
    /// After so many refusals the source gives the datagram up: at least 1.
    #[serde(default = "tries")]
    pub tries: u32,
    /// Parallel channels to each destination, 1 to 64.
    #[serde(default = "one")]
    pub channels: u16,
    /// Which free one is taken.
    #[serde(default)]
    pub choice: Choice,
    /// Over how many channels a datagram is spread, at most `channels`: it takes that many at once.
    #[serde(default = "one")]
    pub stripes: u16,
    /// Bursts that a source may send before the destination has told it that one was taken, 1 to 65535.
    #[serde(default = "credits")]
    pub credits: u64,
    /// The longest that the words of a packet may hold a connection, gaps between bursts not counted.
    #[serde(default = "hold")]
    pub hold: Span,
    /// Whether the next connection is asked for while data flow.
    #[serde(default)]
    pub signals: Signals,
    /// Connections begin at its multiples only; without it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Span>,
    /// How long the address server takes for an answer.
    #[serde(default = "resolution_delay")]
    pub resolution_delay: Span,
}

/// What becomes of a request whose destination is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Busy {
    /// It waits (the camp-on bit of the I-field).
    #[default]
    CampOn,
    /// It is refused; the source tries again.
    Reject,
}

/// Which of several requests is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The first that came.
    #[default]
    Fifo,
    /// Any, with equal chance.
    Random,
}

/// Which of several free channels is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// That of the lowest number.
    #[default]
    Priority,
    /// The next after the one that was taken last.
    RoundRobin,
    /// Any, with equal chance.
    Random,
}

/// How connections are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signals {
    /// On the lines of the connection before: after it has ended.
    #[default]
    Inband,
    /// Apart, by an arbiter of its own: while the connection before still carries data.
    Outband,
}

const fn one() -> u16 {
    1
}
const fn crossing() -> Span {
    Span::nanos(500)
}
const fn retry() -> Span {
    Span::micros(100)
}
const fn tries() -> u32 {
    16
}
const fn credits() -> u64 {
    63
}
const fn hold() -> Span {
    Span::micros(660)
}
const fn resolution_delay() -> Span {
    Span::millis(1)
}

fn refuse(key: &'static str, problem: String) -> Result<(), SpecError> {
    Err(SpecError { key, problem })
}

impl Crossbar {
    /// Whether its values are in their ranges and fit the rest of `spec`.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        self.check_place(spec)?;
        let counts = [
            ("crossbar.crossbars", u64::from(self.crossbars), 64),
            ("crossbar.tries", u64::from(self.tries), u64::from(u32::MAX)),
            ("crossbar.channels", u64::from(self.channels), 64),
            ("crossbar.credits", self.credits, 65_535),
        ];
        for (key, value, most) in counts {
            if !(1..=most).contains(&value) {
                return refuse(key, format!("is {value}, but 1 to {most} are possible"));
            }
        }
        if !(1..=self.channels).contains(&self.stripes) {
            let problem = format!(
                "is {}, but a datagram can take 1 to {} `channels` at once",
                self.stripes, self.channels
            );
            return refuse("crossbar.stripes", problem);
        }
        let spans = [
            ("crossbar.setup", self.setup),
            ("crossbar.crossing", self.crossing),
            ("crossbar.retry", self.retry),
            ("crossbar.camp_limit", self.camp_limit.unwrap_or_default()),
            ("crossbar.slot", self.slot.unwrap_or_default()),
            ("crossbar.hold", self.hold),
            ("crossbar.resolution_delay", self.resolution_delay),
        ];
        for (key, span) in spans {
            if span > Span::secs(60) {
                return refuse(key, format!("is {span}, but at most 60s are possible"));
            }
        }
        self.check_waiting()?;
        self.check_hold(spec)
    }

    /// The tables and keys beside it.
    fn check_place(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        if spec.topology != Topology::Star {
            let problem = "does not fit a crossbar, which stands in the middle: write \"star\"";
            return refuse("topology", problem.into());
        }
        if spec.switch.is_some() {
            let problem = "stands beside [crossbar], which is the switch; leave it out";
            return refuse("switch", problem.into());
        }
        if spec.line.rate.is_none() {
            let problem = "is missing; a connection carries data at one, such as `800Mbit`";
            return refuse("line.rate", problem.into());
        }
        if let Framing::Atm(_) = spec.line.framing() {
            let problem =
                "is \"atm\", but a crossbar of connections carries no cells: write \"hippi\"";
            return refuse("line.framing", problem.into());
        }
        Ok(())
    }

    /// What belongs to requests that wait.
    fn check_waiting(&self) -> Result<(), SpecError> {
        let camps = self.busy == Busy::CampOn;
        if self.camp_limit.is_some_and(Span::is_zero) {
            let problem = "is 0, so that no request ever waits: write `busy = \"reject\"`";
            return refuse("crossbar.camp_limit", problem.into());
        }
        if self.camp_limit.is_some() && !camps {
            let problem = "needs `busy = \"camp-on\"`; leave it out";
            return refuse("crossbar.camp_limit", problem.into());
        }
        if self.retry.is_zero() && (!camps || self.camp_limit.is_some()) {
            let problem = "is 0, so that a refused source asks without end; write such as `100us`";
            return refuse("crossbar.retry", problem.into());
        }
        if self.slot.is_some_and(Span::is_zero) {
            return refuse("crossbar.slot", "is 0; leave it out".into());
        }
        if self.slot.is_some() && !camps {
            let problem = "needs `busy = \"camp-on\"`: requests wait for the next slot";
            return refuse("crossbar.slot", problem.into());
        }
        Ok(())
    }

    /// Whether the largest packet keeps to the limit of a connection.
    fn check_hold(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        let Framing::Hippi(bursts) = spec.line.framing() else {
            return Ok(());
        };
        // What is longer than IPv4 allows is refused for that.
        let longest = Bytes(spec.mtu.min(65_535));
        let words = spec.line.unit_time(bursts.words(self.piece(longest)));
        if words <= self.hold {
            return Ok(());
        }
        let problem = format!(
            "is {}, but a datagram of {} bytes holds a connection for {words}; lower `mtu`, or raise the limit",
            self.hold, spec.mtu
        );
        refuse("crossbar.hold", problem)
    }

    /// What of a datagram goes over one channel.
    fn piece(&self, len: Bytes) -> Bytes {
        Bytes(len.0.div_ceil(u64::from(self.stripes)))
    }

    /// A signal's way to the destination and back.
    pub(crate) fn round_trip(&self, line: &Line) -> Span {
        line.propagation() * 4 + self.crossing * u64::from(self.crossbars)
    }

    /// A bit's way to the destination.
    pub(crate) fn one_way(&self, line: &Line) -> Span {
        let inside = (self.crossing * u64::from(self.crossbars)).as_picos();
        line.propagation() * 2 + Span::picos(inside.div_ceil(2))
    }

    /// What goes before the data of a connection.
    pub(crate) fn opening(&self, line: &Line) -> Span {
        self.setup + self.round_trip(line)
    }

    /// How long the data of a datagram of `len` flow: its bursts, and the waits for credits. A credit comes back a round trip
    /// after the last word of its burst was sent, so that each full set of credits costs at least that and a burst.
    pub(crate) fn transfer(&self, line: &Line, len: Bytes) -> Span {
        let piece = self.piece(len);
        let time = line.time(piece);
        let Framing::Hippi(bursts) = line.framing() else {
            return time;
        };
        let burst = line.unit_time(bursts.burst + bursts.gap);
        let set = burst * self.credits;
        let stall = (burst + self.round_trip(line)).saturating_sub(set);
        time + stall * ((bursts.count(piece) - 1) / self.credits)
    }

    /// For how long a frame of `len` layer-3 bytes keeps others of a stream off the bottleneck.
    pub(crate) fn frame_time(&self, spec: &NetworkSpec, len: Bytes) -> Span {
        let (opening, transfer) = (self.opening(&spec.line), self.transfer(&spec.line, len));
        let whole = match self.signals {
            Signals::Inband => opening + transfer,
            Signals::Outband => opening.max(transfer),
        };
        self.slot.map_or(whole, |slot| {
            slot * whole.as_picos().div_ceil(slot.as_picos())
        })
    }
}
