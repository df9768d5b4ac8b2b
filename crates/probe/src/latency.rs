//! Warm: a ping-pong, the measuring side.
//!
//! Model:   warm-up round trips are discarded, and their number reported; then every round trip is a sample until there
//!          are enough or the budget is used up. Between the two readings of the clock there is one send and one receive;
//!          stamping, checking and storing lie outside, and nothing is allocated. Closed loop: this is no load test.
//! Units:   nanoseconds; half a round trip is rounded down.
//! Checked: `tests/conversation.rs`, `latency_*`.

use std::time::Duration;

use sonde_channel::{Channel, Losses, Path, Tcp, Udp, payload};
use sonde_stats::Samples;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::thread_cpu_ns;

use crate::{EndedBy, Error, Figures, Latency, Measure, Measured, Result, admission};

/// A ping is sent again after this many times the slowest round trip of the warm-up…
const RESEND_ROUND_TRIPS: u64 = 10;
/// …but not before this time.
const RESEND_AFTER_NS_MIN: u64 = 50_000_000;

/// A ping-pong under way.
struct PingPong {
    ping: Vec<u8>,
    pong: Vec<u8>,
    sequence: u32,
    verify: bool,
    measure: Measure,
}

impl PingPong {
    /// One round trip; `None` when the ping had to be sent again.
    #[inline]
    fn round_trip(&mut self, channel: &mut impl Channel) -> Result<Option<u64>> {
        payload::stamp(&mut self.ping, self.sequence);
        let begin_ns = monotonic_ns();
        let resent = channel.exchange(&self.ping, &mut self.pong)?;
        let end_ns = monotonic_ns();
        let checked = match self.verify {
            true => payload::verify(&self.pong, self.sequence),
            false => payload::check(&self.pong, self.sequence),
        };
        checked.map_err(|mismatch| sonde_channel::Error::Payload {
            peer: self.measure.peer,
            mismatch,
        })?;
        self.sequence = self.sequence.wrapping_add(1);
        Ok((resent == 0).then_some(end_ns - begin_ns))
    }
}

pub(crate) fn measure(measure: &Measure) -> Result<Measured> {
    let terms = &measure.terms;
    match terms.path {
        Path::Tcp => {
            let mut channel = Tcp::connect(measure.peer, terms.options())?;
            admission::hello_tcp(&mut channel, &measure.token, terms, true)?;
            let latency = ping_pong(measure, &mut channel, |_, _| Ok(()))?;
            Ok(Measured {
                settings: channel.settings()?,
                figures: Figures::Latency(latency),
            })
        }
        Path::Udp => {
            let mut channel = Udp::connect(measure.peer, terms.options())?;
            admission::hello_udp(&mut channel, &measure.token, terms, false)?;
            channel.set_resend_after(Duration::from_secs(1))?;
            let mut before = Losses::default();
            let mut latency = ping_pong(measure, &mut channel, |channel, slowest_ns| {
                before = channel.losses();
                let after_ns = (RESEND_ROUND_TRIPS * slowest_ns).max(RESEND_AFTER_NS_MIN);
                Ok(channel.set_resend_after(Duration::from_nanos(after_ns))?)
            })?;
            let losses = channel.losses();
            latency.late = losses.late - before.late;
            latency.lost = (losses.resent - before.resent).saturating_sub(latency.late);
            let settings = channel.settings()?;
            admission::end_udp(&mut channel, 0, terms)?;
            Ok(Measured {
                settings,
                figures: Figures::Latency(latency),
            })
        }
    }
}

/// Warm-up, then samples; `warmed` hears the slowest round trip of the warm-up, when there was one.
fn ping_pong<C: Channel>(
    measure: &Measure,
    channel: &mut C,
    warmed: impl FnOnce(&mut C, u64) -> Result<()>,
) -> Result<Latency> {
    let terms = &measure.terms;
    let ping = payload::message(terms.size());
    let pong = vec![0; ping.len()];
    let mut loops = PingPong {
        ping,
        pong,
        sequence: 0,
        verify: terms.verify,
        measure: measure.clone(),
    };
    let mut samples = Vec::with_capacity(terms.samples as usize);
    let (mut slowest_ns, mut warmup_discarded) = (0, 0);
    let warm_end_ns = monotonic_ns() + terms.budget_ns / 4;
    while warmup_discarded < terms.warmup && monotonic_ns() < warm_end_ns {
        slowest_ns = slowest_ns.max(loops.round_trip(channel)?.unwrap_or(0));
        warmup_discarded += 1;
    }
    if slowest_ns > 0 {
        warmed(channel, slowest_ns)?;
    }
    let cpu_begin_ns = thread_cpu_ns();
    let end_ns = monotonic_ns() + terms.budget_ns;
    let mut ended_by = EndedBy::Samples;
    for _ in 0..terms.samples {
        samples.extend(loops.round_trip(channel)?);
        if monotonic_ns() >= end_ns {
            ended_by = EndedBy::Budget;
            break;
        }
    }
    let cpu_ns = thread_cpu_ns() - cpu_begin_ns;
    let returned = samples.len().min(terms.samples_returned_max as usize);
    let rtt_samples_ns = samples[..returned].to_vec();
    let halves = samples.iter().map(|rtt_ns| rtt_ns / 2).collect();
    let none =
        || Error::Integrity("every ping was lost, so there is no round trip to report".into());
    Ok(Latency {
        latency_ns: Samples::new(halves).ok_or_else(none)?.summary(),
        rtt_ns: Samples::new(samples).ok_or_else(none)?.summary(),
        rtt_samples_ns,
        warmup_discarded,
        ended_by,
        lost: 0,
        late: 0,
        cpu_ns,
    })
}
