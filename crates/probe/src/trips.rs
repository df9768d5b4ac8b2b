//! Round trips in a closed loop, the measuring side: a ping-pong (`latency`), single messages (`message`), and batches of
//! messages with one answer (message rates of a library).
//!
//! Model:   every size has a socket of its own. Its first round trip is a row by itself (cold, first); then `warmup` round
//!          trips are discarded, and then each is a sample until there are enough, the median is known well enough, or the
//!          budget is used up. Samples go into a histogram as they come, so that memory does not grow with them. Between the two readings of the clock there is one send and one receive; stamping, checking
//!          and storing lie outside. Which clock it is, [`crate::timer`] says. Closed loop: this is not a load test.
//!          A ping-pong's answer has the size of its ping, and half of the round trip is the latency. A message's answer is
//!          its first byte alone, sent when the whole message is in the peer's memory: the rate is the size over the time
//!          from the call that sends to the return of the call that receives this byte. One clock; nothing is
//!          subtracted, so that the trip of the answer (a segment or datagram of one byte) and the wake-ups at both ends
//!          are within it, and the rate of a small message is close to its size over a round trip.
//! Units:   nanoseconds; half a round trip is rounded down; bits a second, rounded down.
//! Checked: `the_median_ends_a_size`; `tests/conversation.rs`, `latency_*`, `message_*`; `benches/harness` for the cost.

use std::net::SocketAddr;
use std::time::Duration;

use sonde_channel::payload::Mismatch;
use sonde_channel::{Aligned, ByteStream, Channel, Losses, Shm, Tcp, Unix, payload};
use sonde_measure::{
    Buffers, Clock, EndedBy, Evidence, Interference, Knobs, Measurement, Moments, Path, Phase,
    Procedure, Quantity, Sampling, Step, Strayed,
};
use sonde_stats::Series;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::tsc::Stray;

use crate::admission::{self, Visit};
use crate::begin::await_begin;
use crate::moments::{Log, Waits};
use crate::pace::Hold;
use crate::placed::placed;
use crate::talk::{Measure, Measured, SizeMeasured};
use crate::timer::Timer;
use crate::watch::Watch;
use crate::{Error, Result, packet};

/// A size that at the end of its budget has so many samples, and is not [`ENOUGH`], goes on to these, for at most three budgets more: six repetitions
/// shall have 100 that met no disturbance.
const ENOUGH_IN_REACH: u64 = 9;
const ENOUGH: u64 = 25;

/// A ping is sent again after this many times the slowest round trip of the warm-up…
pub(crate) const RESEND_ROUND_TRIPS: u64 = 10;
/// …but not before this time.
pub(crate) const RESEND_AFTER_NS_MIN: u64 = 50_000_000;
const CONFIDENCE: f64 = 0.95;
/// Up to this a sample finds its bucket there: 17 minutes, or a terabit a second.
const ROOM: u64 = 1 << 40;

/// What carries a round trip: a channel, or the messages of a library.
pub(crate) trait Carrier {
    /// Sends `ping` and receives its answer, which begins like it, into `pong`; how often `ping` was sent again.
    fn carry(&mut self, ping: &[u8], pong: &mut [u8]) -> Result<u32>;
}

impl<C: Channel> Carrier for C {
    #[inline]
    fn carry(&mut self, ping: &[u8], pong: &mut [u8]) -> Result<u32> {
        Ok(self.exchange(ping, pong)?)
    }
}

/// The other end, for what is said of a wrong answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    At(SocketAddr),
    Rank(usize),
}

impl Peer {
    /// What a wrong answer is.
    pub(crate) fn differs(self, mismatch: Mismatch) -> Error {
        match self {
            Self::At(peer) => sonde_channel::Error::Payload { peer, mismatch }.into(),
            Self::Rank(rank) => Error::Integrity(format!("from rank {rank}: {mismatch}")),
        }
    }
}

/// What a round trip is a sample of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sample {
    /// Half its time; the answer is as long as the message.
    Latency,
    /// The rate of a message with an answer of one byte, bits a second.
    Throughput,
    /// The rate of so many messages with one answer of one byte, messages per second in thousandths.
    Burst(u64),
}

impl Sample {
    const fn quantity(self) -> Quantity {
        match self {
            Self::Latency => Quantity::LatencyNs,
            Self::Throughput => Quantity::ThroughputBps,
            Self::Burst(_) => Quantity::RatePerS,
        }
    }

    /// Bytes of the answer to a message.
    pub(crate) const fn answer_bytes(self, size: usize) -> usize {
        match self {
            Self::Latency => size,
            Self::Throughput | Self::Burst(_) => 1,
        }
    }

    #[inline]
    fn value(self, size_bytes: u64, ns: u64) -> u64 {
        match self {
            Self::Latency => ns / 2,
            Self::Throughput => bps(size_bytes, ns),
            Self::Burst(messages) => per_s(messages, ns),
        }
    }
}

/// Round trips of one size under way.
pub(crate) struct Trips {
    sampling: Sampling,
    sample: Sample,
    /// What was asked for.
    clock: Option<Clock>,
    is_cold: bool,
    verify: bool,
    peer: Peer,
    ping: Aligned,
    pong: Aligned,
    sequence: u32,
    timer: Timer,
    /// What became of the clock.
    strayed: Option<Stray>,
    hold: Hold,
    /// The agreed begin of the samples.
    begin_ns: Option<u64>,
    /// Of so many samples it is said when they were taken.
    logged: Option<u64>,
}

impl Trips {
    /// Over a channel.
    pub(crate) fn new(measure: &Measure, sampling: Sampling, size: usize) -> Result<Self> {
        let spec = &measure.spec;
        let sample = match spec.procedure {
            Procedure::Message(_) => Sample::Throughput,
            _ => Sample::Latency,
        };
        let peer = Peer::At(measure.peer);
        let knobs = (&spec.knobs, spec.verify);
        Ok(Self {
            begin_ns: measure.begin_ns,
            logged: measure.moments.then(|| Log::room(spec.sizes_bytes.len())),
            ..Self::with((sampling, sample), knobs, peer, size)?
        })
    }

    /// Of rank 0 with rank 1; of so many samples it is said when they were taken.
    pub(crate) fn of_ranks(
        how: (Sampling, Sample),
        verify: bool,
        size: usize,
        logged: Option<u64>,
    ) -> Result<Self> {
        Ok(Self {
            logged,
            ..Self::with(how, (&Knobs::default(), verify), Peer::Rank(1), size)?
        })
    }

    fn with(
        (sampling, sample): (Sampling, Sample),
        (knobs, verify): (&Knobs, bool),
        peer: Peer,
        size: usize,
    ) -> Result<Self> {
        Ok(Self {
            sampling,
            sample,
            clock: knobs.clock,
            is_cold: knobs.buffers == Buffers::Cold,
            verify,
            peer,
            ping: Aligned::new(payload::message(size), knobs)?,
            pong: Aligned::new(vec![0; sample.answer_bytes(size)], knobs)?,
            sequence: 0,
            timer: Timer::choose(knobs.clock)?,
            strayed: None,
            hold: Hold::new(knobs.pause_ns(size as u64)),
            begin_ns: None,
            logged: None,
        })
    }

    /// One round trip: when it began and ended by `timer`; `None` when the ping had to be sent again.
    #[inline]
    fn one(&mut self, channel: &mut impl Carrier, timer: Timer) -> Result<Option<(u64, u64)>> {
        self.ping.number(self.sequence);
        self.hold.wait();
        let begin = timer.now();
        let resent = channel.carry(&self.ping, &mut self.pong)?;
        let end = timer.now();
        self.check()?;
        self.ping.used(self.sequence);
        self.pong.taken();
        self.sequence = self.sequence.wrapping_add(1);
        Ok((resent == 0).then_some((begin, end)))
    }

    /// What is to be known of the clock.
    pub(crate) fn tell(&self, evidence: &mut Evidence) {
        evidence.src.place.clock = Some(self.timer.told(self.clock));
        if let Some(Stray { ppm, allowed_ppm }) = self.strayed {
            evidence.size(self.ping.len() as u64).strayed = Some(Strayed { ppm, allowed_ppm });
        }
    }

    #[inline]
    fn check(&self) -> Result<()> {
        let checked = if self.pong.len() < self.ping.len() {
            payload::check_answer(&self.pong, &self.ping)
        } else if self.verify {
            payload::verify(&self.pong, self.sequence)
        } else {
            payload::check(&self.pong, self.sequence)
        };
        checked.map_err(|mismatch| self.peer.differs(mismatch))
    }
}

/// The times of one size.
pub(crate) struct Times {
    /// `None` when it was lost.
    first_ns: Option<u64>,
    /// In the unit of the quantity.
    pub(crate) warm: Series,
    ended_by: EndedBy,
    /// All round trips, those discarded and those lost included.
    pub(crate) count: u64,
    sample: Sample,
    is_cold: bool,
    moments: Option<Moments>,
}

pub(crate) fn measure(measure: &Measure, sampling: Sampling) -> Result<Measured> {
    // Counting the counter's rate takes its time: before anybody waits.
    Timer::choose(measure.spec.knobs.clock)?;
    let mut measured = Measured {
        sizes: Vec::new(),
        evidence: Default::default(),
        interference: Interference::default(),
    };
    for visit in Visit::all(&measure.spec) {
        let size = match measure.spec.path {
            Path::Tcp => stream::<Tcp>(measure, sampling, visit, &mut measured)?,
            Path::Udp => udp(measure, sampling, visit, &mut measured)?,
            Path::Unix => stream::<Unix>(measure, sampling, visit, &mut measured)?,
            Path::Shm => stream::<Shm>(measure, sampling, visit, &mut measured)?,
            Path::Packet | Path::Xdp => packet::trips(measure, sampling, visit, &mut measured)?,
        };
        measured.sizes.push(size);
    }
    Ok(measured)
}

fn stream<C: ByteStream>(
    measure: &Measure,
    sampling: Sampling,
    visit: Visit,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let spec = &measure.spec;
    let number = admission::number(spec, visit);
    let mut channel: C = admission::connect(measure, number, measure.options())?;
    admission::hello_stream(&mut channel, measure, visit)?;
    channel.use_method()?;
    let size = spec.sizes_bytes[visit.size];
    let mut trips = Trips::new(measure, sampling, size as usize)?;
    let retransmits = |channel: &C| -> Result<Option<u64>> {
        Ok(channel.account()?.map(|info| info.total_retrans.into()))
    };
    let before = retransmits(&channel)?;
    let watch = Watch::begin()?;
    let times = trips.all(&mut channel, |_, _| Ok(()))?;
    trips.tell(&mut measured.evidence);
    let after = retransmits(&channel)?;
    let between = after.zip(before).map(|(after, before)| after - before);
    watch.end(&mut measured.interference, between)?;
    measured.evidence.src.socket = channel.settings()?;
    if let Some(tcp) = channel.as_tcp() {
        placed(tcp, &mut measured.evidence.src.place);
    }
    Ok(times.measured(size, &mut measured.evidence))
}

fn udp(
    measure: &Measure,
    sampling: Sampling,
    visit: Visit,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let spec = &measure.spec;
    let mut channel = admission::connect_udp(measure, visit)?;
    admission::hello_udp(&mut channel, measure, visit)?;
    channel.set_resend_after(Duration::from_secs(1))?;
    let size = spec.sizes_bytes[visit.size];
    let mut trips = Trips::new(measure, sampling, size as usize)?;
    let watch = Watch::begin()?;
    let mut warm = Losses::default();
    let times = trips.all(&mut channel, |channel, slowest_ns| {
        warm = channel.losses();
        let after_ns = (RESEND_ROUND_TRIPS * slowest_ns).max(RESEND_AFTER_NS_MIN);
        Ok(channel.set_resend_after(Duration::from_nanos(after_ns))?)
    })?;
    watch.end(&mut measured.interference, None)?;
    trips.tell(&mut measured.evidence);
    measured.evidence.src.socket = channel.settings()?;
    placed(&channel, &mut measured.evidence.src.place);
    let losses = channel.losses();
    admission::end_udp(&mut channel, times.count, spec)?;
    let late = losses.late - warm.late;
    let lost = (losses.resent - warm.resent).saturating_sub(late);
    let sent = times.warm.count() + losses.resent - warm.resent;
    let mut size = times.measured(size, &mut measured.evidence);
    size.measurements
        .push(share(Quantity::LostShare, lost, sent));
    Ok(size)
}

impl Trips {
    /// The first, the warm-up, the samples; `warmed` hears the slowest round trip so far, when there was one.
    pub(crate) fn all<C: Carrier>(
        &mut self,
        channel: &mut C,
        warmed: impl FnOnce(&mut C, u64) -> Result<()>,
    ) -> Result<Times> {
        let sampling = self.sampling;
        let mut slowest_ns = 0;
        let begin_ns = monotonic_ns();
        // One sample is no place to save: what is cold has one clock everywhere.
        let cold = Timer::Monotonic;
        let first_ns = self
            .one(channel, cold)?
            .map(|(begin, end)| cold.ns(begin, end));
        // The warm-up has a quarter of the budget, and where the first message alone takes that, one round trip.
        let warm_end_ns = begin_ns + sampling.budget_ns / 4;
        for discarded in 0..sampling.warmup {
            if discarded > 0 && monotonic_ns() >= warm_end_ns {
                break;
            }
            if let Some((begin, end)) = self.one(channel, self.timer)? {
                slowest_ns = slowest_ns.max(self.timer.ns(begin, end));
            }
        }
        slowest_ns = slowest_ns.max(first_ns.filter(|_| slowest_ns == 0).unwrap_or(0));
        if slowest_ns > 0 {
            warmed(channel, slowest_ns)?;
        }
        await_begin(self.begin_ns, 0)?;
        let mut warm = Series::up_to(ROOM);
        let (mut ended_by, mut moments) = self.samples(channel, &mut warm, self.timer)?;
        self.strayed = self.timer.strayed();
        if self.strayed.is_some() {
            warm = Series::up_to(ROOM);
            (ended_by, moments) = self.samples(channel, &mut warm, Timer::Monotonic)?;
        }
        Ok(Times {
            first_ns,
            warm,
            ended_by,
            count: self.sequence.into(),
            sample: self.sample,
            is_cold: self.is_cold,
            moments,
        })
    }

    fn samples(
        &mut self,
        channel: &mut impl Carrier,
        warm: &mut Series,
        timer: Timer,
    ) -> Result<(EndedBy, Option<Moments>)> {
        let most = self.sampling.samples_max;
        let begin = |room: u64| (Log::begin(timer, most.min(room)), Waits::begin());
        let mut seen = self.logged.map(begin);
        let ended_by = self.taken(channel, warm, timer, &mut seen)?;
        let moments = seen.and_then(|(log, waits)| log.end(waits));
        Ok((ended_by, moments))
    }

    /// Takes samples until there are enough.
    fn taken(
        &mut self,
        channel: &mut impl Carrier,
        warm: &mut Series,
        timer: Timer,
        seen: &mut Option<(Log, Waits)>,
    ) -> Result<EndedBy> {
        let (sampling, sample) = (self.sampling, self.sample);
        let size_bytes = self.ping.len() as u64;
        let (low, high) = (sampling.samples_min, sampling.samples_max);
        let begin = timer.now();
        let deadline = timer.later(begin, sampling.budget_ns);
        let at_last = timer.later(begin, sampling.budget_ns.saturating_mul(4));
        let mut look_at = sampling.precision_per_mille.map_or(high, |_| low);
        let mut tries = 0;
        loop {
            while tries < look_at {
                tries += 1;
                let end = match self.one(channel, timer)? {
                    Some((begin, end)) => {
                        // Within its room: nothing is allocated.
                        let ns = timer.ns(begin, end);
                        let value = sample.value(size_bytes, ns);
                        warm.record(value);
                        if let Some((log, waits)) = seen {
                            log.push(begin, end, value);
                            waits.passed();
                        }
                        end
                    }
                    None => timer.now(),
                };
                let goes_on = (ENOUGH_IN_REACH..ENOUGH).contains(&tries) && end < at_last;
                if end >= deadline && !goes_on {
                    return Ok(EndedBy::Budget);
                }
            }
            if tries >= high {
                return Ok(EndedBy::Samples);
            }
            if is_known(warm, sampling.precision_per_mille) {
                return Ok(EndedBy::Precision);
            }
            // Looking goes through all buckets: not after every sample.
            look_at = (look_at + look_at.div_ceil(4)).min(high);
        }
    }
}

/// Whether the interval of the median is narrow enough.
pub(crate) fn is_known(samples: &Series, precision_per_mille: Option<u64>) -> bool {
    let (Some(wanted), Some(interval), Some(median)) = (
        precision_per_mille,
        samples.median_interval(CONFIDENCE),
        samples.median(),
    ) else {
        return false;
    };
    interval
        .half_width_per_mille(median)
        .is_none_or(|width| width <= wanted)
}

impl Times {
    pub(crate) fn measured(self, size_bytes: u64, evidence: &mut Evidence) -> SizeMeasured {
        evidence.size(size_bytes).ended_by = Some(self.ended_by);
        let quantity = self.sample.quantity();
        // Both ends fill their areas after the hello: the first message would wait for the peer's.
        let first_ns = self.first_ns.filter(|_| !self.is_cold);
        let none_first = match self.is_cold {
            true => "the first message waits until the peer has filled its cold buffers",
            false => "the message or its answer was lost and retransmitted",
        };
        let first = Measurement {
            touched: None,
            quantity,
            phase: Phase::Cold,
            step: Some(Step::First),
            series: first_ns
                .map(|ns| self.sample.value(size_bytes, ns))
                .into_iter()
                .collect(),
            reason: first_ns.is_none().then(|| none_first.into()),
        };
        let none = || {
            "every message or its answer was lost; look for what loses datagrams of this size"
                .to_string()
        };
        let warm = Measurement {
            touched: None,
            quantity,
            phase: Phase::Warm,
            step: None,
            reason: self.warm.is_empty().then(none),
            series: self.warm,
        };
        SizeMeasured {
            size_bytes,
            measurements: vec![first, warm],
            round_trips: self.count,
            sent: None,
            moments: self.moments,
        }
    }
}

/// Messages a second, in thousandths.
fn per_s(messages: u64, ns: u64) -> u64 {
    let rate = u128::from(messages) * 1_000_000_000_000 / u128::from(ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// The rate of so many bytes in so much time.
pub(crate) fn bps(bytes: u64, ns: u64) -> u64 {
    let bps = u128::from(bytes) * 8_000_000_000 / u128::from(ns.max(1));
    u64::try_from(bps).unwrap_or(u64::MAX)
}

/// A share of a whole, as one warm sample.
pub(crate) fn share(quantity: Quantity, part: u64, whole: u64) -> Measurement {
    let millionths = u128::from(part) * 1_000_000 / u128::from(whole.max(1));
    Measurement {
        touched: None,
        quantity,
        phase: Phase::Warm,
        step: None,
        series: Series::from_iter([u64::try_from(millionths).unwrap_or(u64::MAX)]),
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ends_a_size() {
        let steady: Series = (0..100).map(|n| 1_000 + n % 10).collect();
        assert!(is_known(&steady, Some(50)) && !is_known(&steady, None));
        let wild: Series = (0..100).map(|n| 1_000 + n * 30).collect();
        assert!(!is_known(&wild, Some(50)));
        // Too few for an interval.
        assert!(!is_known(&(0..5).collect(), Some(1_000)));
        // More than are kept: out of the buckets.
        let many: Series = (0..100_000).map(|n| 1_000 + n % 1_000).collect();
        assert!(is_known(&many, Some(50)) && !is_known(&many, Some(0)));
    }

    #[test]
    fn rates_and_shares_are_rounded_down() {
        assert_eq!(bps(1_000, 3_000), 2_666_666_666);
        assert_eq!(bps(1, 0), 8_000_000_000);
        let one = share(Quantity::LostShare, 1, 3);
        let parts = sonde_stats::Parts::from(one.series);
        assert_eq!(parts.first, [333_333]);
    }
}
