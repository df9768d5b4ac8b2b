//! A stream of messages one way, from rank 0 to rank 1, with a window of messages under way.
//!
//! Model:   the sender has as many messages under way as make 4 MiB, from 2 to 64; the receiver has as many receives posted.
//!          A message is under way until the receiver has taken it, which it says for every half of a window: a send alone
//!          may end in the memory of a daemon, which would take gigabytes of them. The receiver rates what comes
//!          ([`crate::meter`]): from its second second on, for the budget. Then it says so beside the stream; the sender
//!          ends it by a window of messages without bytes, which take the receives that are still posted, and hears all that
//!          was said.
//! Units:   nanoseconds; bits a second; bytes.
//! Checked: `windows_follow_the_size`; `tests/library.rs`, `stream_*`.

use std::collections::VecDeque;

use sonde_channel::payload;
use sonde_measure::Interference;
use sonde_message::{Comm, Completion, Messenger, Request, Source, Tagged};
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

/// Said beside the stream: half a window was taken.
const TAKEN: u8 = 0;
/// Said beside the stream: it has been rated.
const RATED: u8 = 1;
/// Said beside the stream: nothing more is.
const LAST: u8 = 2;

/// What the receiver says of the stream.
struct Word<'a> {
    messenger: &'a mut dyn Messenger,
    awaited: Option<Request>,
    /// Halves of a window that were taken.
    halves: u64,
    rated: bool,
    over: bool,
}

impl Word<'_> {
    /// Has a receive posted for what is said next; none after the last word.
    fn listen(&mut self) -> Result<()> {
        if self.awaited.is_some() || self.over {
            return Ok(());
        }
        let (from, tag) = (Source::Rank(1), Tagged::With(BESIDE));
        let request = self.messenger.irecv(Comm::WORLD, from, tag, vec![0; 1])?;
        self.awaited = Some(request);
        Ok(())
    }

    fn hear(&mut self, done: &Completion) {
        match done.buffer[..] {
            [TAKEN] => self.halves += 1,
            [LAST] => self.over = true,
            _ => self.rated = true,
        }
    }

    /// Hears what was said so far.
    fn look(&mut self) -> Result<()> {
        while let Some(request) = self.awaited.take() {
            match self.messenger.test(request)? {
                Ok(done) => {
                    self.hear(&done);
                    self.listen()?;
                }
                Err(request) => {
                    self.awaited = Some(request);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Waits for the next word.
    fn wait(&mut self) -> Result<()> {
        self.listen()?;
        if let Some(request) = self.awaited.take() {
            let done = self.messenger.wait(request)?;
            self.hear(&done);
        }
        Ok(())
    }
}

impl Pipe for Word<'_> {
    fn account(&self) -> Result<Option<TcpInfo>> {
        Ok(None)
    }

    fn is_rated(&mut self) -> Result<bool> {
        self.listen()?;
        self.look()?;
        Ok(self.rated)
    }
}

pub(super) fn measure(
    messenger: &mut dyn Messenger,
    terms: &Terms,
    measured: &mut Measured,
) -> Result<()> {
    for &size_bytes in &terms.sizes_bytes {
        let sent = send(messenger, terms, size_bytes, &mut measured.interference)?;
        measured.evidence.size(size_bytes).window_messages = Some(window(size_bytes) as u64);
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
    let half = window(size_bytes) as u64 / 2;
    let mut word = Word {
        messenger,
        awaited: None,
        halves: 0,
        rated: false,
        over: false,
    };
    word.listen()?;
    let mut under_way = VecDeque::with_capacity(window(size_bytes));
    let mut schedule = Schedule::of_process(monotonic_ns(), terms);
    let mut messages = 0_u64;
    loop {
        while messages - word.halves * half >= window(size_bytes) as u64 {
            word.wait()?;
        }
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
    while !word.over {
        word.wait()?;
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
    let half = window(size_bytes) as u64 / 2;
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
        if one.messages % half == 0 {
            messenger.send(world, 0, BESIDE, &[TAKEN])?;
        }
        posted.push_back(messenger.irecv(world, from, tag, done.buffer)?);
        if meter.is_over() && !told {
            told = true;
            messenger.send(world, 0, BESIDE, &[RATED])?;
        }
    }
    messenger.send(world, 0, BESIDE, &[LAST])?;
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
