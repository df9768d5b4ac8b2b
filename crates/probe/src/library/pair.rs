//! Round trips between ranks 0 and 1, by the loop of [`crate::trips`].
//!
//! Model:   a message without bytes ends a size. Each size has its first round trip, its warm-up and its samples as over a
//!          channel; only of the first size it is also the first message between the two ranks.
//! Checked: `tests/library.rs`, `latency_*`, `message_*`.

use sonde_channel::{Aligned, payload};
use sonde_measure::{Knobs, Sampling};
use sonde_message::{Comm, Messenger, Source, Tagged};

use super::{DATA, Job, receive, whole};
use crate::Result;
use crate::moments::{Log, Waits};
use crate::talk::{Measured, Served, SizeServed};
use crate::trips::{Carrier, Peer, Sample, Trips};
use crate::watch::Watch;

/// Messages between this rank and another.
pub(super) struct Pair<'a> {
    pub(super) messenger: &'a mut dyn Messenger,
    pub(super) other: usize,
}

impl Carrier for Pair<'_> {
    #[inline]
    fn carry(&mut self, ping: &[u8], pong: &mut [u8]) -> Result<u32> {
        self.messenger.send(Comm::WORLD, self.other, DATA, ping)?;
        receive(self.messenger, self.other, DATA, pong)?;
        Ok(0)
    }
}

pub(super) fn measure(
    messenger: &mut dyn Messenger,
    job: &Job,
    how: (Sampling, Sample),
    measured: &mut Measured,
) -> Result<()> {
    for &size_bytes in &job.sizes_bytes {
        let logged = job
            .moments
            .then(|| Log::room_of_ranks(job.sizes_bytes.len()));
        let mut trips = Trips::of_ranks(how, job.verify, size_bytes as usize, logged)?;
        let mut pair = Pair {
            messenger,
            other: 1,
        };
        let watch = Watch::begin_of(true)?;
        let times = trips.all(&mut pair, |_, _| Ok(()))?;
        watch.end(&mut measured.interference, None)?;
        messenger.send(Comm::WORLD, 1, DATA, &[])?;
        trips.tell(&mut measured.evidence);
        let size = times.measured(size_bytes, &mut measured.evidence);
        measured.sizes.push(size);
    }
    Ok(())
}

pub(super) fn serve(
    messenger: &mut dyn Messenger,
    job: &Job,
    sample: Sample,
    served: &mut Served,
) -> Result<()> {
    for &size_bytes in &job.sizes_bytes {
        let size = size_bytes as usize;
        let mut message = Aligned::new(payload::message(size), &Knobs::default())?;
        let answer = sample.answer_bytes(size);
        let mut one = SizeServed::default();
        let watch = Watch::begin_of(true)?;
        let mut waits = job.moments.then(Waits::begin);
        loop {
            let (from, tag) = (Source::Rank(0), Tagged::With(DATA));
            let status = messenger.recv(Comm::WORLD, from, tag, &mut message)?;
            if status.bytes == 0 {
                break;
            }
            whole(0, status.bytes, size)?;
            messenger.send(Comm::WORLD, 0, DATA, &message[..answer])?;
            check(&message, one.messages as u32, job.verify)?;
            one.messages += 1;
            one.bytes += size_bytes;
            if let Some(waits) = &mut waits {
                waits.passed();
            }
        }
        one.away = waits.and_then(Waits::end);
        watch.end(&mut served.interference, None)?;
        served.sizes.push(one);
    }
    Ok(())
}

/// Whether this message is the one with this number.
pub(super) fn check(message: &[u8], number: u32, verify: bool) -> Result<()> {
    let checked = if verify {
        payload::verify(message, number)
    } else {
        payload::check(message, number)
    };
    checked.map_err(|mismatch| Peer::Rank(0).differs(mismatch))
}
