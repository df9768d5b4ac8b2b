//! Message rates: many messages posted at once from rank 0 to rank 1, and one answer when all have come.
//!
//! Model:   the receives of the next batch are posted before the answer to this one is sent, so that no message of it is
//!          unexpected. Messages of a batch have one number. A batch of messages without bytes ends a size.
//! Source:  the OSU micro-benchmarks' osu_mbw_mr for the window; Deviations: receives are posted beforehand.
//! Units:   a sample is messages per second, in thousandths.
//! Checked: `tests/library.rs`, `rate_*`.

use sonde_channel::payload::{self, HEADER_BYTES};
use sonde_measure::Sampling;
use sonde_message::{Comm, Messenger, Request, Source, Tagged};

use super::pair::check;
use super::{BESIDE, DATA, Job, receive, whole};
use crate::Result;
use crate::talk::{Measured, Served, SizeServed};
use crate::trips::{Carrier, Sample, Trips};
use crate::watch::Watch;

/// Batches to rank 1, with the buffers of their messages.
struct Batches<'a> {
    messenger: &'a mut dyn Messenger,
    buffers: Vec<Vec<u8>>,
    posted: Vec<Request>,
}

impl Carrier for Batches<'_> {
    fn carry(&mut self, ping: &[u8], pong: &mut [u8]) -> Result<u32> {
        let head = ping.len().min(HEADER_BYTES);
        for mut buffer in self.buffers.drain(..) {
            buffer[..head].copy_from_slice(&ping[..head]);
            self.posted
                .push(self.messenger.isend(Comm::WORLD, 1, DATA, buffer)?);
        }
        for request in self.posted.drain(..) {
            self.buffers.push(self.messenger.wait(request)?.buffer);
        }
        receive(self.messenger, 1, BESIDE, pong)?;
        Ok(0)
    }
}

pub(super) fn measure(
    messenger: &mut dyn Messenger,
    job: &Job,
    (window, sampling): (u64, Sampling),
    measured: &mut Measured,
) -> Result<()> {
    for &size_bytes in &job.sizes_bytes {
        let how = (sampling, Sample::Burst(window));
        let mut trips = Trips::of_ranks(how, job.verify, size_bytes as usize, None)?;
        let message = payload::message(size_bytes as usize);
        let mut batches = Batches {
            messenger,
            buffers: vec![message; window as usize],
            posted: Vec::with_capacity(window as usize),
        };
        let watch = Watch::begin_of(true)?;
        let times = trips.all(&mut batches, |_, _| Ok(()))?;
        watch.end(&mut measured.interference, None)?;
        for _ in 0..window {
            messenger.send(Comm::WORLD, 1, DATA, &[])?;
        }
        trips.tell(&mut measured.evidence);
        let size = times.measured(size_bytes, &mut measured.evidence);
        measured.sizes.push(size);
    }
    measured.evidence.ranks.burst_messages = Some(window);
    Ok(())
}

pub(super) fn serve(
    messenger: &mut dyn Messenger,
    job: &Job,
    window: u64,
    served: &mut Served,
) -> Result<()> {
    for &size_bytes in &job.sizes_bytes {
        let size = size_bytes as usize;
        let mut one = SizeServed::default();
        let watch = Watch::begin_of(true)?;
        let mut buffers = vec![vec![0; size]; window as usize];
        let mut posted = Vec::with_capacity(buffers.len());
        loop {
            for buffer in buffers.drain(..) {
                let (from, tag) = (Source::Rank(0), Tagged::With(DATA));
                posted.push(messenger.irecv(Comm::WORLD, from, tag, buffer)?);
            }
            if one.messages > 0 {
                // The first byte of every message is that of its number.
                let number = (one.messages - 1) as u8;
                messenger.send(Comm::WORLD, 0, BESIDE, &[number])?;
            }
            let mut is_over = false;
            for request in posted.drain(..) {
                let done = messenger.wait(request)?;
                is_over |= done.status.bytes == 0;
                if !is_over {
                    whole(0, done.status.bytes, size)?;
                    check(&done.buffer[..size], one.messages as u32, job.verify)?;
                    one.bytes += size_bytes;
                }
                buffers.push(done.buffer);
            }
            if is_over {
                break;
            }
            one.messages += 1;
        }
        watch.end(&mut served.interference, None)?;
        served.sizes.push(one);
    }
    Ok(())
}
