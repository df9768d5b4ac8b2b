//! A stream of messages one way, from rank 0 to rank 1, with a window of messages under way.
//!
//! Model:   the sender has as many messages under way as make 4 MiB, from 2 to 64; the receiver has as many receives posted.
//!          The receiver rates what comes ([`crate::meter`]): from its second second on, for the budget. Then it says so
//!          beside the stream; the sender ends it by a window of messages without bytes, which take the receives that are
//!          still posted.
//! Units:   nanoseconds; bits a second; bytes.
//! Checked: `windows_follow_the_size`; `tests/library.rs`, `stream_*`.

use std::collections::VecDeque;

use sonde_channel::payload;
use sonde_message::{Comm, Messenger, Request, Source, Tagged};
use sonde_record::Interference;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::process_cpu_ns;
use sonde_sys::socket::TcpInfo;

use super::pair::check;
use super::{BESIDE, DATA, whole};
use crate::meter::Meter;
use crate::stream::{Pipe, Schedule};
use crate::talk::{Measured, Sent, Served, SizeMeasured, SizeServed};
use crate::watch::Watch;
use crate::{Result, Terms};

/// Bytes under way, about.
const AHEAD_BYTES: u64 = 4 << 20;

/// Messages under way.
fn window(size_bytes: u64) -> usize {
    (AHEAD_BYTES / size_bytes.max(1)).clamp(2, 64) as usize
}

/// What the receiver says of the stream.
struct Word<'a> {
    messenger: &'a mut dyn Messenger,
    awaited: Option<Request>,
}

impl Pipe for Word<'_> {
    fn account(&self) -> Result<Option<TcpInfo>> {
        Ok(None)
    }

    fn is_rated(&mut self) -> Result<bool> {
        if let Some(request) = self.awaited.take() {
            self.awaited = self.messenger.test(request)?.err();
        }
        Ok(self.awaited.is_none())
    }
}

pub(super) fn measure(
    messenger: &mut dyn Messenger,
    terms: &Terms,
    measured: &mut Measured,
) -> Result<()> {
    for &size_bytes in &terms.sizes_bytes {
        let sent = send(messenger, terms, size_bytes, &mut measured.interference)?;
        let name = format!("window.{size_bytes}");
        measured
            .settings
            .insert(name, window(size_bytes).to_string());
        measured.sizes.push(SizeMeasured {
            size_bytes,
            measurements: Vec::new(),
            round_trips: 0,
            ended_by: None,
            sent: Some(sent),
        });
    }
    Ok(())
}

fn send(
    messenger: &mut dyn Messenger,
    terms: &Terms,
    size_bytes: u64,
    interference: &mut Interference,
) -> Result<Sent> {
    let world = Comm::WORLD;
    let (from, tag) = (Source::Rank(1), Tagged::With(BESIDE));
    let awaited = messenger.irecv(world, from, tag, vec![0; 1])?;
    let mut word = Word {
        messenger,
        awaited: Some(awaited),
    };
    let mut under_way = VecDeque::with_capacity(window(size_bytes));
    let mut schedule = Schedule::of_process(monotonic_ns(), terms);
    let mut messages = 0_u64;
    loop {
        let mut buffer = if under_way.len() < window(size_bytes) {
            payload::message(size_bytes as usize)
        } else {
            // The window is never empty.
            let oldest = under_way.pop_front().expect("a full window");
            word.messenger.wait(oldest)?.buffer
        };
        payload::stamp(&mut buffer, messages as u32);
        under_way.push_back(word.messenger.isend(world, 1, DATA, buffer)?);
        messages += 1;
        if !schedule.on_sent(messages * size_bytes, &mut word, interference)? {
            break;
        }
    }
    for _ in 0..window(size_bytes) {
        word.messenger.send(world, 1, DATA, &[])?;
    }
    for request in under_way {
        word.messenger.wait(request)?;
    }
    if let Some(request) = word.awaited.take() {
        word.messenger.wait(request)?;
    }
    Ok(Sent {
        bytes: messages * size_bytes,
        messages,
        window: schedule.window()?,
    })
}

pub(super) fn serve(
    messenger: &mut dyn Messenger,
    terms: &Terms,
    served: &mut Served,
) -> Result<()> {
    for &size_bytes in &terms.sizes_bytes {
        let watch = Watch::begin_of(true)?;
        served.sizes.push(receive(messenger, terms, size_bytes)?);
        watch.end(&mut served.interference, None)?;
    }
    Ok(())
}

fn receive(messenger: &mut dyn Messenger, terms: &Terms, size_bytes: u64) -> Result<SizeServed> {
    let (world, size) = (Comm::WORLD, size_bytes as usize);
    let (from, tag) = (Source::Rank(0), Tagged::With(DATA));
    let mut posted = VecDeque::with_capacity(window(size_bytes));
    for _ in 0..window(size_bytes) {
        posted.push_back(messenger.irecv(world, from, tag, vec![0; size])?);
    }
    let mut meter = Meter::new(terms.budget_ns);
    let mut one = SizeServed::default();
    let mut told = false;
    let pid = std::process::id();
    while let Some(request) = posted.pop_front() {
        let done = messenger.wait(request)?;
        if done.status.bytes == 0 {
            continue;
        }
        whole(0, done.status.bytes, size)?;
        // It is at the window's two ends alone that the time is asked for, and a process has one.
        meter.on_arrival(monotonic_ns(), size_bytes, || {
            process_cpu_ns(pid).unwrap_or(0)
        });
        check(&done.buffer[..size], one.messages as u32, terms)?;
        one.messages += 1;
        posted.push_back(messenger.irecv(world, from, tag, done.buffer)?);
        if meter.is_over() && !told {
            told = true;
            messenger.send(world, 0, BESIDE, &[0])?;
        }
    }
    if !told {
        messenger.send(world, 0, BESIDE, &[0])?;
    }
    one.bytes = meter.bytes();
    one.window = Some(meter.window()?);
    one.slots = meter.into_slots();
    Ok(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_follow_the_size() {
        assert_eq!([1, 64 << 10, 1 << 20, 16 << 20].map(window), [64, 64, 4, 2]);
    }
}
