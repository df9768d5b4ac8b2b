//! Many flows at once, of any set of ordered pairs: one worker a host has all flows of its host.
//!
//! Model:   `join` opens the worker's data port, and it stays for several rounds. A round (`go`) names the flows that leave
//!          this host and those that come, and a time on this host's clock. All connect before that time and begin at it;
//!          who begins later than is allowed says so, and the round's sample of that flow is not valid. A stream is rated
//!          by its receiver between two times that all hosts share, so that rates of flows add up. A flow that fails has
//!          the reason; the others have their results. `stop` ends the worker.
//! Source:  mpiGraph and GPCNeT for the shapes of patterns; starts at agreed times after Hunold and Carpen-Amarie, TPDS
//!          27(12) 2016, §4. Deviations: no barrier is in the network that is measured.
//! Units:   nanoseconds on this host's CLOCK_MONOTONIC.
//! Checked: the tests of `listener` and `flow`; `tests/pattern.rs`.

mod flow;
mod gate;
pub(crate) mod listener;
mod others;
pub mod sets;
mod words;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use sonde_channel::Options;
use sonde_measure::{Interference, Knobs, Moments, Wait};
use sonde_stats::Series;
use sonde_sys::clock::monotonic_ns;

use crate::meter::Window;
use crate::watch::Watch;
use crate::{Answer, Error, Request, Result, frame};

/// The most flows of one host in one round, those that leave it and those that come.
pub const FLOWS_MAX: usize = 4_096;
/// The longest message.
const SIZE_BYTES_MAX: u64 = 64 << 20;
const TIME_NS_MAX: u64 = 3_600 * 1_000_000_000;

/// The kinds of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Sends one way, as fast as it can.
    Stream,
    /// A ping-pong, by TCP.
    Latency,
    /// A ping-pong, by UDP.
    LatencyUdp,
    /// Each host sends a message on every flow, waits for one on every flow that comes, and begins again.
    Exchange,
}

/// Take part in a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// The address to open the data port on.
    pub bind: IpAddr,
    /// What peers must know: 32 characters.
    pub token: String,
    /// The addresses of the pattern's hosts, from which they come.
    pub peers: Vec<IpAddr>,
    /// What is set of the sockets.
    pub knobs: Knobs,
    /// The longest that a connection may take.
    pub timeout_ns: u64,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Go {
    /// When all flows begin, by this host's clock.
    pub start_ns: u64,
    /// The first part after the start, which does not count.
    pub lead_ns: u64,
    /// The part after it, which does.
    pub window_ns: u64,
    /// A flow that begins later than this after the start is not valid.
    pub late_max_ns: u64,
    /// Ping-pong: from one answer to the next message; 0: at once.
    pub gap_ns: u64,
    /// Ping-pong, exchange: the most samples of a flow.
    pub samples_max: u64,
    /// Ping-pong: the most samples of a flow whose times are told. 0: of no flow is it told when it went on.
    pub log_max: u64,
    /// The flows that leave this host.
    pub leaving: Vec<OutgoingFlow>,
    /// The flows that come.
    pub coming: Vec<Due>,
}

/// A flow that leaves this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutgoingFlow {
    /// Its number, which no other flow of the pattern has.
    pub flow: u64,
    /// The peer's data port.
    pub peer: SocketAddr,
    /// What it does.
    pub what: What,
}

/// A flow that comes to this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Due {
    /// Its number.
    pub flow: u64,
    /// What it does.
    pub what: What,
}

/// What a flow does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct What {
    /// Its kind.
    pub kind: Kind,
    /// User bytes in a message.
    pub size_bytes: u64,
}

/// What a host saw of a round.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Went {
    /// The flows that left it, in the order of the request.
    pub left: Vec<Left>,
    /// The flows that came, in the order of the request.
    pub came: Vec<Came>,
    /// What else its host did, from the start to the end.
    pub interference: Interference,
    /// CPU time that programs other than sonde took meanwhile on this host; null where /proc cannot be read.
    pub others_cpu_ns: Option<u64>,
    /// Peers turned away since the port was opened.
    pub refused: u64,
}

/// A flow as its sending or asking host saw it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Left {
    /// Its number.
    pub flow: u64,
    /// Why there is no result.
    pub failure: Option<String>,
    /// Its peer did not let it in before the start.
    #[serde(default)]
    pub not_admitted: bool,
    /// How long after the start it began.
    pub late_ns: u64,
    /// User bytes handed to the kernel.
    pub bytes: u64,
    /// Ping-pong: half of each round trip.
    pub trips: Series,
    /// Ping-pong by UDP: messages without an answer.
    pub lost: u64,
    /// When its samples were taken, and its thread waited for a CPU; null where that is not wanted or not known.
    pub seen: Option<Moments>,
    /// What the kernel counted of its socket.
    pub counts: Counts,
}

/// What the kernel counted of one socket; null where it does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Segments with data sent, repeats included.
    pub segments: Option<u64>,
    /// Segments sent again.
    pub retransmits: Option<u64>,
    /// Repeats that the peer had already.
    pub in_vain: Option<u64>,
    /// Times that segments were seen to have overtaken others.
    pub overtaken: Option<u64>,
    /// Time with something to send.
    pub busy_us: Option<u64>,
    /// Of that, held by the peer's window.
    pub rwnd_limited_us: Option<u64>,
    /// The shortest round trip.
    pub min_rtt_us: Option<u64>,
    /// Segments that came before one that precedes them.
    pub early: Option<u64>,
}

/// A flow as its receiving or answering host saw it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Came {
    /// Its number.
    pub flow: u64,
    /// Why there is no result.
    pub failure: Option<String>,
    /// User bytes received.
    pub bytes: u64,
    /// Stream: what was rated.
    pub window: Option<Window>,
    /// Exchange: from the begin of a step on this host to the arrival of the whole message.
    pub steps: Series,
    /// When the slices of a stream's window were, and its thread waited for a CPU; null where that is not wanted or not known.
    pub seen: Option<Moments>,
    /// What the kernel counted of its socket.
    pub counts: Counts,
}

impl Kind {
    /// As it is written: `stream`, `latency`, `latency-udp`, `exchange`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Latency => "latency",
            Self::LatencyUdp => "latency-udp",
            Self::Exchange => "exchange",
        }
    }
}

impl Join {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// The token or the timeout is out of range.
    pub fn check(&self) -> Result<()> {
        if self.token.len() != listener::TOKEN_BYTES || !self.token.is_ascii() {
            return Err(Error::Unmeasurable {
                what: format!("a token has 32 characters, not {}", self.token.len()),
                remedy: "give 32 characters",
            });
        }
        within("a timeout", self.timeout_ns, 1_000_000, TIME_NS_MAX)
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            timeout: std::time::Duration::from_nanos(self.timeout_ns),
            knobs: self.knobs.clone(),
            source: Some(self.bind),
            ..Options::new(Wait::Block)
        }
    }
}

fn within(what: &str, value: u64, low: u64, high: u64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::Unmeasurable {
        what: format!("{what} of {value} is out of range"),
        remedy: "ask for 1 B to 64 MiB, up to an hour, up to 4,096 flows a host and 1,000,000 samples",
    })
}

impl Go {
    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// A size, a count or a time out of range.
    pub fn check(&self) -> Result<()> {
        let leaving = self.leaving.iter().map(|way| way.what);
        for what in leaving.chain(self.coming.iter().map(|due| due.what)) {
            within("a message", what.size_bytes, 1, SIZE_BYTES_MAX)?;
            if what.kind == Kind::LatencyUdp {
                within(
                    "a datagram",
                    what.size_bytes,
                    1,
                    sonde_channel::UDP_MESSAGE_BYTES_MAX as u64,
                )?;
            }
        }
        within("a window", self.window_ns, 1_000_000, TIME_NS_MAX)?;
        within("a lead-in", self.lead_ns, 0, TIME_NS_MAX)?;
        within("a gap", self.gap_ns, 0, TIME_NS_MAX)?;
        within(
            "a number of samples",
            self.samples_max,
            1,
            sonde_measure::spec::SAMPLES_MAX,
        )?;
        let flows = self.leaving.len() + self.coming.len();
        within("a number of flows", flows as u64, 1, FLOWS_MAX as u64)
    }

    /// Its flows at one time.
    pub(crate) fn flows(&self) -> u64 {
        self.leaving.len().max(self.coming.len()).max(1) as u64
    }

    /// With pauses between the messages of a ping-pong that keep what this host sends below the bound of `knobs`.
    fn held_to(&self, knobs: &Knobs) -> Self {
        let trips = self.leaving.iter().map(|way| way.what);
        let trips = trips.filter(|what| matches!(what.kind, Kind::Latency | Kind::LatencyUdp));
        let largest = trips.map(|what| what.size_bytes).max().unwrap_or(0);
        let pause_ns = knobs.pause_ns(largest.saturating_mul(self.flows()));
        Self {
            gap_ns: self.gap_ns.max(pause_ns),
            ..self.clone()
        }
    }

    /// When what counts begins and ends.
    pub(crate) fn counted_ns(&self) -> (u64, u64) {
        let begin_ns = self.start_ns.saturating_add(self.lead_ns);
        (begin_ns, begin_ns.saturating_add(self.window_ns))
    }
}

/// Plays a worker's part from `join` to the end: rounds are read from `from`, answers go to `to`.
pub(crate) fn take_part(join: &Join, from: &mut File, to: &mut impl Write) -> Result<Answer> {
    join.check()?;
    // Sleeps end when they should.
    sonde_sys::clock::timer_slack_min()?;
    let mut listener = listener::Listener::open(join)?;
    frame::write(
        to,
        &Answer::Serving {
            port: listener.local().port(),
        },
    )?;
    loop {
        let Some(body) = frame::read(from)? else {
            return Err(Error::Abandoned);
        };
        match frame::parse::<Request>(&body)? {
            Request::Go(go) => {
                let went = round(join, &go, &mut listener)?;
                frame::write(to, &Answer::Went(went))?;
            }
            Request::Stop {} => {
                return Ok(Answer::Left {
                    refused: listener.close(),
                });
            }
            _ => return Err(Error::Abandoned),
        }
    }
}

/// One round, with all flows of this host.
fn round(join: &Join, go: &Go, listener: &mut listener::Listener) -> Result<Went> {
    go.check()?;
    let go = &go.held_to(&join.knobs);
    let before = listener.refused();
    let gate = gate::Gate::new(go.leaving.len() + go.coming.len());
    let others = others::Others::begin();
    let mut watch = None;
    let (left, came) = std::thread::scope(|scope| {
        let leaving: Vec<_> = go
            .leaving
            .iter()
            .map(|way| {
                let gate = &gate;
                let run = move || flow::leave(join, go, way, gate);
                (way.flow, spawn(scope, run))
            })
            .collect();
        let mut coming = BTreeMap::new();
        listener.admit(join, go, |due: Due, peer| {
            let gate = &gate;
            let run = move || flow::come(join, go, &due, peer, gate);
            coming.insert(due.flow, spawn(scope, run));
        });
        watch = Watch::begin().ok();
        if coming.len() < go.coming.len() {
            // What waits for the others of this host would wait in vain.
            gate.leave(go.coming.len() - coming.len());
        }
        let left = leaving
            .into_iter()
            .map(|(flow, thread)| {
                join_thread(thread).unwrap_or_else(|failure| Left {
                    flow,
                    failure: Some(failure),
                    ..Left::default()
                })
            })
            .collect();
        let came = go
            .coming
            .iter()
            .map(|due| {
                let flow = &due.flow;
                let missing = || "its peer did not connect before the start".to_owned();
                let thread = coming.remove(flow).ok_or_else(missing);
                thread.and_then(join_thread).unwrap_or_else(|failure| Came {
                    flow: *flow,
                    failure: Some(failure),
                    ..Came::default()
                })
            })
            .collect();
        (left, came)
    });
    let mut went = Went {
        left,
        came,
        others_cpu_ns: others.and_then(others::Others::end),
        refused: listener.refused(),
        ..Went::default()
    };
    if let Some(watch) = watch {
        watch.end(&mut went.interference, None)?;
    }
    went.interference.strangers = went.refused.saturating_sub(before);
    Ok(went)
}

type Thread<'scope, T> = std::result::Result<std::thread::ScopedJoinHandle<'scope, T>, String>;

/// A flow's thread needs little: hosts may have thousands.
const STACK_BYTES: usize = 128 << 10;

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Thread<'scope, T> {
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn_scoped(scope, run)
        .map_err(|error| sonde_sys::thread::refused("a flow", error).to_string())
}

fn join_thread<T>(thread: Thread<'_, T>) -> std::result::Result<T, String> {
    thread?.join().map_err(|_| "its thread panicked".to_owned())
}

/// Sleeps until that time; how much later it is.
pub(crate) fn await_start(start_ns: u64) -> u64 {
    sonde_sys::clock::sleep_until_ns(start_ns);
    monotonic_ns().saturating_sub(start_ns)
}
