//! One conversation between two agents, driven to its end.
//!
//! Model:   serve, wait for the port, measure, wait for the measurement, then for the serving side's report; of start-ups
//!          once for each size, so that each finds both hosts as cold as the first. When the measuring side fails the
//!          serving side is told to stop, and both stories are in the error. One of several at once is ended as soon as another one
//!          fails, and hears both sides: a client of files goes on without its server for as long as it may.
//! Checked: `tests/conversation.rs`, `tests/trouble.rs`.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use sonde_measure::{Away, Evidence, Moments, Path, Probe, Spec};
use sonde_measure::{Interference, Measurement, Phase, Quantity};

use crate::library::{Job, Task};
use crate::talk::{SizeMeasured, SizeServed};
use crate::trips::share;
use crate::{
    AgentLink, Answer, Error, Heard, Measure, Measured, Request, Result, Serve, Served, Slots,
};

/// What an answer may take longer than the agent's own waits.
const GRACE: Duration = Duration::from_secs(2);
/// How long one side may tell its own story where the other has failed, and others are held up by both.
const STORY: Duration = Duration::from_secs(1);
const MEASUREMENT: &str = "the measurement";
const REPORT: &str = "its report";
/// The longest that an agreed begin is waited for.
const BEGIN_MAX: Duration = Duration::from_secs(120);

/// What is to be measured between two agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// What both sides agree on.
    pub spec: Spec,
    /// The serving side's address on the network that is measured.
    pub server: IpAddr,
    /// What the peer must know.
    pub token: String,
    /// The measuring side's interface whose neighbours are forgotten before every start-up.
    pub flush_client: Option<String>,
    /// The serving side's, before the port opens.
    pub flush_server: Option<String>,
    /// The measuring side's address on the network that is measured; none leaves it to its routes.
    pub client: Option<IpAddr>,
    /// When the measuring side begins, by its own clock, with others that begin then; none as soon as it is ready.
    pub begin_ns: Option<u64>,
    /// Both hosts have one clock: samples tell when they were taken.
    pub moments: bool,
}

/// What user data moved, as both sides know it: what interfaces must have carried at least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// User bytes that the measuring side sent.
    pub sent_bytes: u64,
    /// User bytes of these that came.
    pub received_bytes: u64,
    /// User bytes of the answers.
    pub answered_bytes: u64,
    /// Messages that needed a frame of their own each way, since each waited for the answer to the one before.
    pub trips: u64,
    /// Datagrams of streams that were sent.
    pub datagrams: u64,
    /// Of these, those that never came.
    pub lost_datagrams: u64,
}

impl Moved {
    /// Adds another conversation's.
    pub fn add(&mut self, other: &Self) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.answered_bytes += other.answered_bytes;
        self.trips += other.trips;
        self.datagrams += other.datagrams;
        self.lost_datagrams += other.lost_datagrams;
    }

    fn of(agreed: &Agreed, measured: &SizeMeasured, served: &SizeServed) -> Self {
        let size = measured.size_bytes;
        match &measured.sent {
            Some(sent) => Self {
                sent_bytes: sent.bytes,
                received_bytes: match agreed.path {
                    Path::Udp => served.messages * size,
                    _ => sent.bytes,
                },
                datagrams: served.lost.map_or(0, |_| sent.messages),
                lost_datagrams: served.lost.unwrap_or(0),
                ..Self::default()
            },
            // Of datagrams the serving side counts what it answered; those that were lost are in neither.
            None => Self {
                sent_bytes: served.messages * size,
                received_bytes: served.messages * size,
                answered_bytes: served.messages * agreed.answer_bytes.unwrap_or(size),
                trips: served.messages,
                ..Self::default()
            },
        }
    }
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// One entry for each size of the specification, in their order.
    pub sizes: Vec<SizeOutcome>,
    /// What was seen beside the samples.
    pub evidence: Evidence,
    /// What else the hosts did: measuring side, serving side. Their names are those of the links.
    pub interference: Vec<Interference>,
    /// What moved.
    pub moved: Moved,
}

/// What was measured of one size.
#[derive(Debug, Clone)]
pub struct SizeOutcome {
    /// User bytes in a message.
    pub size_bytes: u64,
    /// Every quantity, with its samples or why there are none.
    pub measurements: Vec<Measurement>,
    /// Stream: bytes in each part of its time.
    pub slots: Slots,
    /// When it went on, and when either side waited for a CPU; none where that was not seen.
    pub seen: Option<Seen>,
}

/// When what was measured of one size went on.
#[derive(Debug, Clone)]
pub enum Seen {
    /// Of each sample.
    Samples(Moments),
    /// Of a stream.
    Stream {
        /// Its slices, with their rates.
        slices: Moments,
        /// Whether segments were sent again.
        resent: bool,
    },
}

/// A fresh token: 32 hexadecimal digits of 128 random bits.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn token() -> Result<String> {
    let mut random = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut random))
        .map_err(|source| Error::Control {
            what: "read /dev/urandom for a token".into(),
            source,
        })?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Conversation {
    /// A conversation with a fresh token.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn new(spec: Spec, server: IpAddr) -> Result<Self> {
        let token = token()?;
        Ok(Self {
            spec,
            server,
            token,
            flush_client: None,
            flush_server: None,
            client: None,
            begin_ns: None,
            moments: false,
        })
    }

    /// Has it: `client` measures, `server` serves.
    ///
    /// # Errors
    /// Either side fails or is gone ([`Error::lost`]); what was received is not what was sent. Links stay usable unless
    /// they say otherwise ([`AgentLink::in_step`]).
    pub fn run(&self, client: &mut AgentLink, server: &mut AgentLink) -> Result<Outcome> {
        self.have(client, server, None)
    }

    /// Has it as one of several at once: it ends as soon as `stop` can be read, and as soon as one of its sides has failed.
    ///
    /// # Errors
    /// Those of [`Conversation::run`]; [`Error::Ended`] where `stop` could be read.
    pub fn run_until(
        &self,
        client: &mut AgentLink,
        server: &mut AgentLink,
        stop: BorrowedFd<'_>,
    ) -> Result<Outcome> {
        self.have(client, server, Some(stop))
    }

    fn have(
        &self,
        client: &mut AgentLink,
        server: &mut AgentLink,
        stop: Option<BorrowedFd<'_>>,
    ) -> Result<Outcome> {
        self.spec.check()?;
        let mut outcome = Outcome {
            sizes: Vec::new(),
            evidence: Evidence::default(),
            interference: vec![named(client), named(server)],
            moved: Moved::default(),
        };
        if self.spec.probe() == Probe::Startup {
            for &size_bytes in &self.spec.sizes_bytes {
                let spec = self.spec.for_size(size_bytes);
                self.exchange(&spec, client, server, stop, &mut outcome)?;
            }
        } else {
            self.exchange(&self.spec, client, server, stop, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// One serving, one measuring.
    fn exchange(
        &self,
        spec: &Spec,
        client: &mut AgentLink,
        server: &mut AgentLink,
        stop: Option<BorrowedFd<'_>>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let timeout = spec.timeout() + GRACE;
        let peer = self.peer(client, timeout)?;
        server.send(&Request::Serve(Serve {
            spec: spec.clone(),
            bind: self.server,
            token: self.token.clone(),
            peer,
            flush_neighbour: self.flush_server.clone(),
        }))?;
        let port = match heard(server, "its data port", timeout, stop)? {
            Answer::Serving { port } => port,
            other => return Err(out_of_turn(server, "its data port", &other)),
        };
        let (measured, early) = match stop {
            None => {
                let measured = self.measure(spec, client, port);
                let measured = measured.map_err(|error| abandon(spec, server, error))?;
                (measured, None)
            }
            Some(stop) => self.measure_until(spec, client, server, port, stop)?,
        };
        let report = match early {
            Some(report) => report,
            None => {
                if spec.probe() == Probe::Files {
                    // A server of files cannot know that nobody will come any more.
                    server.send(&Request::Stop {})?;
                }
                heard(server, REPORT, timeout, stop)?
            }
        };
        let served = match report {
            Answer::Served(served) => served,
            other => return Err(out_of_turn(server, REPORT, &other)),
        };
        outcome.add(&Agreed::of(spec), measured, served)
    }

    /// The address that the measuring side sends from; none where no route leads to the peer, which the attempt to reach it tells.
    fn peer(&self, client: &mut AgentLink, timeout: Duration) -> Result<Option<IpAddr>> {
        if self.client.is_some() {
            return Ok(self.client);
        }
        client.send(&Request::Source { peer: self.server })?;
        match client.answer("its address", timeout)? {
            Answer::Source { address } => Ok(address),
            other => Err(out_of_turn(client, "its address", &other)),
        }
    }

    fn measure(&self, spec: &Spec, client: &mut AgentLink, port: u16) -> Result<Measured> {
        self.begin(spec, client, port)?;
        let answer = client.answer(MEASUREMENT, self.measured_within(spec))?;
        measured(client, answer)
    }

    /// The same, heeding `stop` and the serving side, whose answer it may have heard by then.
    fn measure_until(
        &self,
        spec: &Spec,
        client: &mut AgentLink,
        server: &mut AgentLink,
        port: u16,
        stop: BorrowedFd<'_>,
    ) -> Result<(Measured, Option<Answer>)> {
        if let Err(error) = self.begin(spec, client, port) {
            return Err(give_up(server, error));
        }
        let timeout = self.measured_within(spec);
        let until = Instant::now() + timeout;
        let mut report = None;
        let failure = loop {
            let left = until.saturating_duration_since(Instant::now());
            let beside = [stop, server.as_fd()];
            let beside = &beside[..if report.is_none() { 2 } else { 1 }];
            match client.hear(MEASUREMENT, left, beside) {
                Ok(Heard::Answer(answer)) => match measured(client, *answer) {
                    Ok(measured) => return Ok((measured, report)),
                    Err(error) => break error,
                },
                Ok(Heard::Beside(0)) => {
                    end(client);
                    if report.is_none() {
                        end(server);
                    }
                    return Err(Error::Ended);
                }
                Ok(Heard::Beside(_)) => match server.answer(REPORT, left) {
                    Ok(answer) => report = Some(answer),
                    Err(error) => return Err(joined(client, error)),
                },
                Ok(Heard::Nothing) => break client.silent(MEASUREMENT, timeout),
                Err(error) => break error,
            }
        };
        Err(match report {
            Some(_) => failure,
            None => give_up(server, failure),
        })
    }

    /// The longest that the measuring side takes.
    fn measured_within(&self, spec: &Spec) -> Duration {
        let waits = self.begin_ns.map_or(Duration::ZERO, |_| BEGIN_MAX);
        waits + spec.duration_max() + GRACE
    }

    fn begin(&self, spec: &Spec, client: &mut AgentLink, port: u16) -> Result<()> {
        client.send(&Request::Measure(Measure {
            spec: spec.clone(),
            peer: SocketAddr::new(self.server, port),
            token: self.token.clone(),
            flush_neighbour: self.flush_client.clone(),
            source: self.client,
            begin_ns: self.begin_ns,
            moments: self.moments,
        }))
    }
}

fn measured(client: &AgentLink, answer: Answer) -> Result<Measured> {
    match answer {
        Answer::Measured(measured) => Ok(measured),
        other => Err(out_of_turn(client, MEASUREMENT, &other)),
    }
}

/// The next answer; what the agent does is ended once `stop` can be read.
fn heard(
    link: &mut AgentLink,
    awaited: &'static str,
    timeout: Duration,
    stop: Option<BorrowedFd<'_>>,
) -> Result<Answer> {
    let Some(stop) = stop else {
        return link.answer(awaited, timeout);
    };
    match link.hear(awaited, timeout, &[stop])? {
        Heard::Answer(answer) => Ok(*answer),
        Heard::Beside(_) => {
            end(link);
            Err(Error::Ended)
        }
        Heard::Nothing => Err(link.silent(awaited, timeout)),
    }
}

/// Ends at once what an agent does, whose answer is missing.
fn end(link: &mut AgentLink) {
    // Of one that is gone there is nothing to end.
    if link.send(&Request::Abort {}).is_err() {
        return;
    }
    // A port may have opened just before.
    while let Ok(Answer::Serving { .. }) = link.answer("its end", GRACE) {}
}

/// The serving side has failed: the measuring side's story beside it, where that has one.
fn joined(client: &mut AgentLink, error: Error) -> Error {
    match client.hear(MEASUREMENT, STORY, &[]) {
        Ok(Heard::Nothing) => {
            end(client);
            error
        }
        Ok(_) => error,
        Err(own) => Error::both(own, error),
    }
}

/// As [`abandon`], for those who hold up others.
fn give_up(server: &mut AgentLink, error: Error) -> Error {
    let stopped = server.send(&Request::Stop {});
    match stopped.and_then(|()| server.hear(REPORT, STORY, &[])) {
        Ok(Heard::Nothing) => {
            end(server);
            error
        }
        story => with_story(error, story.map(drop)),
    }
}

/// Ends the serving side's part after the measuring side failed, and joins the two stories.
fn abandon(spec: &Spec, server: &mut AgentLink, error: Error) -> Error {
    let stopped = server.send(&Request::Stop {});
    let story = stopped.and_then(|()| server.answer(REPORT, 2 * spec.timeout() + GRACE));
    with_story(error, story.map(drop))
}

/// An error with that of the serving side, where that is more than the end of its wait.
fn with_story(error: Error, story: Result<()>) -> Error {
    match story {
        Ok(()) => error,
        Err(Error::Agent { what, .. }) if what == Error::Abandoned.to_string() => error,
        Err(other) => Error::both(error, other),
    }
}

fn named(link: &AgentLink) -> Interference {
    Interference {
        host: link.name().into(),
        ..Interference::default()
    }
}

fn out_of_turn(link: &AgentLink, awaited: &'static str, found: &Answer) -> Error {
    Error::OutOfTurn {
        agent: link.name().into(),
        awaited,
        found: found.kind().into(),
    }
}

/// What both sides can be held against each other by.
pub(crate) struct Agreed {
    /// That of messages; of ranks one that loses nothing.
    pub(crate) path: Path,
    /// Bytes of an answer; as many as the message's where none.
    pub(crate) answer_bytes: Option<u64>,
    /// Both sides count messages, each of which was answered.
    pub(crate) counts_messages: bool,
}

impl Agreed {
    fn of(spec: &Spec) -> Self {
        let probe = spec.probe();
        Self {
            path: spec.path,
            answer_bytes: (probe == Probe::Message).then_some(1),
            counts_messages: matches!(probe, Probe::Latency | Probe::Message | Probe::Rate),
        }
    }

    pub(crate) fn of_job(job: &Job) -> Self {
        let is_whole = matches!(
            job.task,
            Task::Latency(_) | Task::Startup {} | Task::Stream { .. }
        );
        Self {
            path: Path::Unix,
            answer_bytes: (!is_whole).then_some(1),
            counts_messages: !matches!(job.task, Task::Startup {} | Task::Stream { .. }),
        }
    }
}

impl Outcome {
    /// Joins what both sides saw.
    pub(crate) fn add(
        &mut self,
        agreed: &Agreed,
        measured: Measured,
        served: Served,
    ) -> Result<()> {
        if measured.sizes.len() != served.sizes.len() {
            return Err(Error::Integrity(format!(
                "{} sizes were measured and {} served",
                measured.sizes.len(),
                served.sizes.len()
            )));
        }
        for (measured, served) in measured.sizes.into_iter().zip(served.sizes) {
            compare(agreed, &measured, &served)?;
            self.moved.add(&Moved::of(agreed, &measured, &served));
            let mut measurements = measured.measurements.clone();
            if let Some(sent) = &measured.sent {
                measurements.extend(rated(agreed.path, sent, &served));
            }
            self.sizes.push(SizeOutcome {
                size_bytes: measured.size_bytes,
                measurements,
                slots: served.slots,
                seen: Seen::of(&measured, served.slices, served.away),
            });
        }
        self.evidence.merge(measured.evidence);
        self.evidence.merge(served.evidence);
        let [src, dst] = &mut self.interference[..] else {
            unreachable!("there are two sides");
        };
        src.add(&measured.interference);
        dst.add(&served.interference);
        dst.strangers += served.refused;
        Ok(())
    }
}

impl Seen {
    /// Of its samples, or of a stream of its slices.
    pub const fn moments(&self) -> &Moments {
        match self {
            Self::Samples(moments)
            | Self::Stream {
                slices: moments, ..
            } => moments,
        }
    }

    /// What both sides know; of a stream the receiving one has the `slices`.
    fn of(
        measured: &SizeMeasured,
        slices: Option<Moments>,
        away: Option<Vec<Away>>,
    ) -> Option<Self> {
        let Some(sent) = &measured.sent else {
            let samples = measured.moments.clone()?;
            return Some(Self::Samples(samples.beside(&away?)));
        };
        Some(Self::Stream {
            slices: slices?.beside(sent.away.as_ref()?),
            resent: sent.window.retransmits.is_some_and(|segments| segments > 0),
        })
    }
}

/// Whether what was received is what was sent.
fn compare(agreed: &Agreed, measured: &SizeMeasured, served: &SizeServed) -> Result<()> {
    let (what, sent, received) = match &measured.sent {
        Some(sent) if agreed.path.is_lossless() => ("bytes", sent.bytes, served.bytes),
        Some(sent) => (
            "datagrams",
            sent.messages,
            served.messages + served.lost.unwrap_or(0),
        ),
        None if agreed.counts_messages && agreed.path.is_lossless() => {
            ("messages", measured.round_trips, served.messages)
        }
        None => return Ok(()),
    };
    if sent != received {
        return Err(Error::Integrity(format!(
            "{sent} {what} of {} bytes were sent and {received} accounted for",
            measured.size_bytes
        )));
    }
    Ok(())
}

/// A stream's quantities.
fn rated(path: Path, sent: &crate::Sent, served: &SizeServed) -> Vec<Measurement> {
    let warm = |quantity, found: std::result::Result<u64, String>| Measurement {
        touched: None,
        quantity,
        phase: Phase::Warm,
        step: None,
        series: found.iter().copied().collect(),
        reason: found.err(),
    };
    let picoseconds = |cpu_ns: u64, bytes: u64| {
        let ps = u128::from(cpu_ns) * 1_000 / u128::from(bytes.max(1));
        u64::try_from(ps).unwrap_or(u64::MAX)
    };
    let early = || "the stream ended before its window did".to_string();
    let (rate, cpu_dst) = match &served.window {
        Some(window) => (
            Ok(window.bps),
            window
                .cpu_ns
                .map(|cpu_ns| picoseconds(cpu_ns, window.bytes))
                .ok_or_else(early),
        ),
        None => (Err(early()), Err(early())),
    };
    let window = &sent.window;
    let cpu_src = picoseconds(window.cpu_ns, window.bytes);
    let mut all = vec![
        warm(Quantity::ThroughputBps, rate),
        warm(Quantity::CpuSrcNsPerByte, Ok(cpu_src)),
        warm(Quantity::CpuDstNsPerByte, cpu_dst),
    ];
    match path {
        Path::Tcp => {
            let untold = || "this kernel does not say so in TCP_INFO".to_string();
            let whole_us = window.window_ns / 1_000;
            for (quantity, part_us) in [
                (Quantity::BusyShare, window.busy_us),
                (Quantity::RwndLimitedShare, window.rwnd_limited_us),
                (Quantity::SndbufLimitedShare, window.sndbuf_limited_us),
            ] {
                all.push(match part_us {
                    // The kernel counts in jiffies, and may count one more than the window has.
                    Some(part_us) => share(quantity, part_us.min(whole_us), whole_us),
                    None => warm(quantity, Err(untold())),
                });
            }
            all.push(warm(
                Quantity::Retransmits,
                window.retransmits.ok_or_else(untold),
            ));
        }
        Path::Udp | Path::Packet | Path::Xdp => {
            let (lost, again) = (served.lost.unwrap_or(0), served.duplicated.unwrap_or(0));
            let late = served.reordered.unwrap_or(0);
            let received = served.messages + again;
            all.push(share(Quantity::LostShare, lost, sent.messages));
            all.push(share(Quantity::ReorderedShare, late, received));
            all.push(share(Quantity::DuplicatedShare, again, received));
        }
        // Within one machine nothing can be lost, and the kernel keeps no account.
        Path::Unix | Path::Shm => {}
    }
    all
}
