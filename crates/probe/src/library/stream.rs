//! A stream of messages one way, from rank 0 to rank 1, rated by what crosses between two moments at which nothing is under way.
//!
//! Model:   a library may hold a message back until many later ones have crossed: Open MPI and MPICH send the heads of all
//!          messages of a window before the tail of the first, so that a window's messages end all at once. Whoever rates from
//!          one arrival to another then rates bytes that crossed before. So the stream has two parts, each of which begins
//!          when nothing is under way. The first one, of a second at least, is not rated; it also finds how much
//!          may be under way ([`Allowance`]). The second one is rated whole: all that was sent in it was received in it.
//!          A message without bytes is a fence: the receiver answers it when all before it was taken. The second part
//!          begins a round trip after the receiver's last answer, for none of its bytes can come earlier; the round trip is the
//!          least of those of fences alone. It ends with the last message, so that no library can seem faster than its
//!          wire. The receiver says when the time is up: the budget, and at least ten such round trips.
//!          The sender then ends the stream by a window of messages without bytes, which take the receives that are still
//!          posted, and hears all that was said. A message is under way until the receiver has taken it, which it says for each
//!          [`grain`]: a send alone may end in the memory of a daemon, which would take gigabytes of them.
//! Units:   nanoseconds; bits a second, rounded down; bytes.
//! Checked: `windows_follow_the_size`, `what_waits_at_the_receiver_is_not_rated`, `the_second_part_is_rated_whole`,
//!          `what_is_under_way_follows_the_network`; `tests/library.rs`, `stream_*`; `lab_streams` of the command.

use std::collections::VecDeque;

use sonde_channel::payload;
use sonde_measure::Interference;
use sonde_measure::spec::{LEAD_IN_NS, WINDOW_NS_MIN};
use sonde_message::{Comm, Completion, Messenger, Request, Source, Tagged};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::process_cpu_ns;

use super::pair::check;
use super::{BESIDE, DATA, Job, whole};
use crate::meter::{Slots, Window};
use crate::talk::{Measured, SenderWindow, Sent, Served, SizeMeasured, SizeServed};
use crate::watch::{Watch, cpu_ns};
use crate::{Error, Result};

/// Bytes under way, about, at most.
const AHEAD_BYTES: u64 = 4 << 20;
/// Bytes of a grain, about.
const GRAIN_BYTES: u64 = 256 << 10;
/// More is allowed under way while what is under way is taken within this time, or within so many round trips.
const AHEAD_NS: u64 = 250_000_000;
const AHEAD_TRIPS: u64 = 4;
/// The rated part lasts at least so many round trips: a library may need one more to end its last messages.
const TRIPS_MIN: u64 = 10;
/// Fences in a row: at least so many, so that there are round trips of fences alone; more while they are quick.
const FENCES_MIN: u64 = 3;
const FENCES_MAX: u64 = 8;
const QUICK_NS: u64 = 20_000_000;

/// Messages under way, at most.
fn window(size_bytes: u64) -> u64 {
    (AHEAD_BYTES / size_bytes.max(1)).clamp(2, 64)
}

/// Messages between two words of the receiver; at most half a window.
fn grain(size_bytes: u64) -> u64 {
    (GRAIN_BYTES / size_bytes.max(1)).clamp(1, window(size_bytes) / 2)
}

/// The bytes that are under way on any network, however slow: two grains.
pub(super) fn under_way_bytes_min(size_bytes: u64) -> u64 {
    2 * grain(size_bytes) * size_bytes
}

/// Said beside the stream: a grain was taken.
const TAKEN: u8 = 0;
/// Said beside the stream: its time is up.
const RATED: u8 = 1;
/// Said beside the stream: nothing more is.
const LAST: u8 = 2;
/// Said beside the stream: all before a fence was taken.
const CLEAR: u8 = 3;

/// How many messages may be under way: two grains at first, and twice as many for as long as what is under way is taken soon.
/// On a slow line the whole window would take minutes to cross.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    messages: u64,
    messages_max: u64,
    soon_ns: u64,
    is_settled: bool,
}

impl Allowance {
    fn new(size_bytes: u64, trip_ns: u64) -> Self {
        let messages = 2 * grain(size_bytes);
        let messages_max = window(size_bytes).max(messages);
        Self {
            messages,
            messages_max,
            soon_ns: AHEAD_NS.max(AHEAD_TRIPS * trip_ns),
            is_settled: messages == messages_max,
        }
    }

    /// A grain was taken so long after its last message was sent.
    fn on_taken(&mut self, after_ns: u64) {
        if self.is_settled {
            return;
        }
        if after_ns < self.soon_ns {
            self.messages = (2 * self.messages).min(self.messages_max);
        }
        self.is_settled = after_ns >= self.soon_ns || self.messages == self.messages_max;
    }
}

/// The sending side.
struct Sender<'a> {
    messenger: &'a mut dyn Messenger,
    size_bytes: u64,
    /// Buffers of messages that the library has not given back.
    sending: VecDeque<Request>,
    awaited: Option<Request>,
    allowance: Allowance,
    sent: u64,
    taken: u64,
    /// When the last message of each grain was sent that was not taken yet.
    grains_ns: VecDeque<u64>,
    /// Fences that were answered.
    clear: u64,
    is_rated: bool,
    is_over: bool,
}

impl<'a> Sender<'a> {
    fn new(messenger: &'a mut dyn Messenger, size_bytes: u64) -> Self {
        Self {
            messenger,
            size_bytes,
            sending: VecDeque::with_capacity(window(size_bytes) as usize),
            awaited: None,
            allowance: Allowance::new(size_bytes, 0),
            sent: 0,
            taken: 0,
            grains_ns: VecDeque::new(),
            clear: 0,
            is_rated: false,
            is_over: false,
        }
    }

    /// Has a receive posted for what is said next; none after the last word.
    fn listen(&mut self) -> Result<()> {
        if self.awaited.is_none() && !self.is_over {
            let (from, tag) = (Source::Rank(1), Tagged::With(BESIDE));
            let request = self.messenger.irecv(Comm::WORLD, from, tag, vec![0; 1])?;
            self.awaited = Some(request);
        }
        Ok(())
    }

    /// Waits for the next word.
    fn hear(&mut self) -> Result<()> {
        self.listen()?;
        let Some(request) = self.awaited.take() else {
            return Ok(());
        };
        let done: Completion = self.messenger.wait(request)?;
        match done.buffer[..] {
            [TAKEN] => {
                self.taken += grain(self.size_bytes);
                if let Some(sent_ns) = self.grains_ns.pop_front() {
                    self.allowance.on_taken(monotonic_ns() - sent_ns);
                }
            }
            [CLEAR] => self.clear += 1,
            [RATED] => self.is_rated = true,
            _ => self.is_over = true,
        }
        self.listen()
    }

    /// Sends the next message, when so many may be under way.
    fn message(&mut self) -> Result<()> {
        while self.sent - self.taken >= self.allowance.messages {
            self.hear()?;
        }
        let mut buffer = if (self.sending.len() as u64) < window(self.size_bytes) {
            payload::message(self.size_bytes as usize)
        } else {
            // The window is never empty.
            let oldest = self.sending.pop_front().expect("a full window");
            self.messenger.wait(oldest)?.buffer
        };
        payload::stamp(&mut buffer, self.sent as u32);
        let request = self.messenger.isend(Comm::WORLD, 1, DATA, buffer)?;
        self.sending.push_back(request);
        self.sent += 1;
        if self.sent % grain(self.size_bytes) == 0 {
            self.grains_ns.push_back(monotonic_ns());
        }
        Ok(())
    }

    /// Gives back all buffers, waits until everything sent was taken, and finds the least round trip of fences alone.
    fn fences(&mut self) -> Result<u64> {
        while let Some(request) = self.sending.pop_front() {
            self.messenger.wait(request)?;
        }
        let begin_ns = monotonic_ns();
        let mut least_ns = u64::MAX;
        for number in 0..FENCES_MAX {
            let sent_ns = monotonic_ns();
            if number >= FENCES_MIN && sent_ns - begin_ns > QUICK_NS {
                break;
            }
            self.messenger.send(Comm::WORLD, 1, DATA, &[])?;
            let clear = self.clear + 1;
            while self.clear < clear {
                self.hear()?;
            }
            if number > 0 {
                least_ns = least_ns.min(monotonic_ns() - sent_ns);
            }
        }
        Ok(least_ns)
    }

    /// The stream, to its end.
    fn run(&mut self, interference: &mut Interference) -> Result<Sent> {
        let trip_ns = self.fences()?;
        self.allowance = Allowance::new(self.size_bytes, trip_ns);
        let begin_ns = monotonic_ns();
        while monotonic_ns() - begin_ns < LEAD_IN_NS || !self.allowance.is_settled {
            self.message()?;
        }
        self.fences()?;
        let watch = Watch::begin_of(true)?;
        let (first, begin_cpu_ns, begin_ns) = (self.sent, cpu_ns(true)?, monotonic_ns());
        while !self.is_rated {
            self.message()?;
        }
        let window = SenderWindow {
            window_ns: monotonic_ns() - begin_ns,
            bytes: (self.sent - first) * self.size_bytes,
            cpu_ns: cpu_ns(true)? - begin_cpu_ns,
            busy_us: None,
            rwnd_limited_us: None,
            sndbuf_limited_us: None,
            retransmits: None,
        };
        watch.end(interference, None)?;
        self.end()?;
        Ok(Sent {
            bytes: self.sent * self.size_bytes,
            messages: self.sent,
            window,
            away: None,
        })
    }

    fn end(&mut self) -> Result<()> {
        for _ in 0..window(self.size_bytes) {
            self.messenger.send(Comm::WORLD, 1, DATA, &[])?;
        }
        while let Some(request) = self.sending.pop_front() {
            self.messenger.wait(request)?;
        }
        while !self.is_over {
            self.hear()?;
        }
        Ok(())
    }
}

pub(super) fn measure(
    messenger: &mut dyn Messenger,
    sizes_bytes: &[u64],
    measured: &mut Measured,
) -> Result<()> {
    for &size_bytes in sizes_bytes {
        let mut sender = Sender::new(messenger, size_bytes);
        let sent = sender.run(&mut measured.interference)?;
        let messages = sender.allowance.messages;
        measured.evidence.size(size_bytes).window_messages = Some(messages);
        measured.sizes.push(SizeMeasured {
            moments: None,
            size_bytes,
            measurements: Vec::new(),
            round_trips: 0,
            sent: Some(sent),
        });
    }
    Ok(())
}

pub(super) fn serve(
    messenger: &mut dyn Messenger,
    job: &Job,
    window_ns: u64,
    served: &mut Served,
) -> Result<()> {
    for &size_bytes in &job.sizes_bytes {
        let watch = Watch::begin_of(true)?;
        served
            .sizes
            .push(receive(messenger, job, window_ns, size_bytes)?);
        watch.end(&mut served.interference, None)?;
    }
    Ok(())
}

/// Rates the second part of a stream.
#[derive(Debug, Default)]
struct Rating {
    budget_ns: u64,
    /// When the last fence was answered, where nothing has come since.
    clear_ns: Option<u64>,
    /// The least time from an answer to the next fence, with nothing between.
    trip_ns: Option<u64>,
    parts: u32,
    /// When the first message of all came.
    first_ns: Option<u64>,
    begin_ns: u64,
    last_ns: u64,
    /// Of the second part.
    bytes: u64,
    slots: Slots,
}

impl Rating {
    fn new(budget_ns: u64) -> Self {
        Self {
            budget_ns: budget_ns.max(WINDOW_NS_MIN),
            ..Self::default()
        }
    }

    /// A fence came, and so has all before it.
    fn on_fence(&mut self, now_ns: u64) {
        if let Some(clear_ns) = self.clear_ns.take() {
            let trip_ns = now_ns - clear_ns;
            self.trip_ns = Some(self.trip_ns.map_or(trip_ns, |least| least.min(trip_ns)));
        }
    }

    /// A fence is about to be answered.
    fn on_clear(&mut self, now_ns: u64) {
        self.clear_ns = Some(now_ns);
    }

    /// A message came; whether the time is up.
    #[inline]
    fn on_message(&mut self, now_ns: u64, bytes: u64) -> bool {
        if let Some(clear_ns) = self.clear_ns.take() {
            self.parts += 1;
            self.begin_ns = now_ns.min(clear_ns + self.trip_ns.unwrap_or(0));
        }
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        self.slots.on_arrival(now_ns - first_ns, bytes);
        if self.parts < 2 {
            return false;
        }
        self.bytes += bytes;
        self.last_ns = now_ns;
        let needed_ns = self
            .budget_ns
            .max(TRIPS_MIN * self.trip_ns.unwrap_or_default());
        now_ns - self.begin_ns >= needed_ns
    }

    /// What was rated; `cpu_ns` was used from the part's begin to its end.
    fn window(&self, cpu_ns: u64) -> Result<Window> {
        let window_ns = self.last_ns.saturating_sub(self.begin_ns);
        if self.parts < 2 || window_ns < WINDOW_NS_MIN {
            return Err(Error::TooShort {
                window_ns: if self.parts < 2 { 0 } else { window_ns },
                needed_ns: WINDOW_NS_MIN,
            });
        }
        let bps = u128::from(self.bytes) * 8 * 1_000_000_000 / u128::from(window_ns);
        Ok(Window {
            bytes: self.bytes,
            window_ns,
            bps: u64::try_from(bps).unwrap_or(u64::MAX),
            cpu_ns: Some(cpu_ns),
        })
    }
}

fn receive(
    messenger: &mut dyn Messenger,
    job: &Job,
    window_ns: u64,
    size_bytes: u64,
) -> Result<SizeServed> {
    let (world, size) = (Comm::WORLD, size_bytes as usize);
    let (from, tag) = (Source::Rank(0), Tagged::With(DATA));
    let mut posted = VecDeque::with_capacity(window(size_bytes) as usize);
    for _ in 0..window(size_bytes) {
        posted.push_back(messenger.irecv(world, from, tag, vec![0; size])?);
    }
    let mut rating = Rating::new(window_ns);
    let mut one = SizeServed::default();
    let mut is_rated = false;
    // A process has one CPU time; it is asked for at the two ends of what is rated alone.
    let pid = std::process::id();
    let (mut begin_cpu_ns, mut end_cpu_ns) = (0, None);
    while let Some(request) = posted.pop_front() {
        let done = messenger.wait(request)?;
        let now_ns = monotonic_ns();
        if done.status.bytes == 0 {
            if is_rated {
                if end_cpu_ns.is_none() {
                    end_cpu_ns = Some(process_cpu_ns(pid)?);
                }
                continue;
            }
            rating.on_fence(now_ns);
            posted.push_back(messenger.irecv(world, from, tag, done.buffer)?);
            begin_cpu_ns = process_cpu_ns(pid)?;
            rating.on_clear(monotonic_ns());
            messenger.send(world, 0, BESIDE, &[CLEAR])?;
            continue;
        }
        whole(0, done.status.bytes, size)?;
        let is_up = rating.on_message(now_ns, size_bytes);
        check(&done.buffer[..size], one.messages as u32, job.verify)?;
        one.messages += 1;
        if one.messages % grain(size_bytes) == 0 {
            messenger.send(world, 0, BESIDE, &[TAKEN])?;
        }
        posted.push_back(messenger.irecv(world, from, tag, done.buffer)?);
        if is_up && !is_rated {
            is_rated = true;
            messenger.send(world, 0, BESIDE, &[RATED])?;
        }
    }
    messenger.send(world, 0, BESIDE, &[LAST])?;
    one.bytes = one.messages * size_bytes;
    let cpu_ns = end_cpu_ns.unwrap_or(begin_cpu_ns) - begin_cpu_ns;
    one.window = Some(rating.window(cpu_ns)?);
    one.slots = rating.slots;
    Ok(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Meter, Reading};

    const MS: u64 = 1_000_000;

    #[test]
    fn windows_follow_the_size() {
        let sizes = [1, 8 << 10, 64 << 10, 1 << 20, 16 << 20];
        assert_eq!(sizes.map(window), [64, 64, 64, 4, 2]);
        assert_eq!(sizes.map(grain), [32, 32, 4, 1, 1]);
        // A grain is never more than half of what may be under way: a sender that waits for its word would wait for ever.
        for size in (0..25).map(|bit| 1 << bit) {
            assert!(2 * grain(size) <= window(size), "{size}");
            assert!(under_way_bytes_min(size) <= (2 * size).max(2 * GRAIN_BYTES));
        }
    }

    #[test]
    fn what_is_under_way_follows_the_network() {
        // A grain of 64 KiB messages crosses 1.5 Mbit/s in 1.4 s: nothing is added.
        let mut slow = Allowance::new(64 << 10, 20 * MS);
        slow.on_taken(2_700 * MS);
        assert_eq!((slow.messages, slow.is_settled), (8, true));
        // 34 Mbit/s: two grains cross in 124 ms, four in 247, eight in 494.
        let mut middle = Allowance::new(64 << 10, MS);
        for after_ms in [124, 247, 494, 1] {
            middle.on_taken(after_ms * MS);
        }
        assert_eq!((middle.messages, middle.is_settled), (32, true));
        // A round trip of 560 ms holds up nothing by itself.
        let mut far = Allowance::new(64 << 10, 560 * MS);
        for _ in 0..4 {
            far.on_taken(1_200 * MS);
        }
        assert_eq!((far.messages, far.is_settled), (64, true));
        // Small messages have the whole window from the begin.
        assert!(Allowance::new(1_000, MS).is_settled);
    }

    /// 64 messages of 15,625 bytes, a megabyte, that a library ends at once: within 6.4 ms of `at_ms`.
    fn burst(at_ms: u64, mut on_message: impl FnMut(u64)) {
        for number in 0..64 {
            on_message(at_ms * MS + number * MS / 10);
        }
    }

    #[test]
    fn what_waits_at_the_receiver_is_not_rated() {
        // A line that carries a megabyte a second. From one arrival to another nearly two are rated in one second.
        let mut meter = Meter::new(1_000 * MS);
        for at_ms in [0, 1_000, 1_994, 3_000] {
            burst(at_ms, |at_ns| {
                meter.on_arrival(at_ns, 15_625, Reading::of_thread)
            });
        }
        assert!(meter.window().unwrap().bps > 15_000_000);
        // Between two moments at which nothing is under way there are as many as have crossed.
        let mut rating = Rating::new(1_000 * MS);
        let mut at_ms = 0;
        for bursts_ms in [&[1_000, 1_994][..], &[994, 1_994, 2_994]] {
            for _ in 0..3 {
                // A round trip takes a millisecond.
                at_ms += 1;
                rating.on_fence(at_ms * MS);
                rating.on_clear(at_ms * MS);
            }
            let begin_ms = at_ms + 1;
            for after_ms in bursts_ms {
                at_ms = begin_ms + after_ms;
                let mut is_up = false;
                burst(at_ms, |at_ns| is_up = rating.on_message(at_ns, 15_625));
                assert_eq!(is_up, bursts_ms.len() == 3, "after {after_ms} ms");
            }
            at_ms += 7;
        }
        let window = rating.window(5).unwrap();
        assert_eq!((window.bytes, window.cpu_ns), (3_000_000, Some(5)));
        assert!((7_990_000..=8_000_000).contains(&window.bps), "{window:?}");
    }

    #[test]
    fn the_second_part_is_rated_whole() {
        let trips = |trip_ms: u64| {
            let mut rating = Rating::new(1_000 * MS);
            for part in 0..2 {
                let base = part * 1_000 * MS;
                rating.on_fence(base);
                rating.on_clear(base);
                rating.on_fence(base + trip_ms * MS);
                rating.on_clear(base + trip_ms * MS);
                rating.on_message(base + 600 * MS, 10);
            }
            rating
        };
        // It begins a round trip after the last answer, or with the first message where that came sooner.
        assert_eq!(trips(100).begin_ns, 1_200 * MS);
        assert_eq!(trips(400).begin_ns, 1_600 * MS);
        // It lasts at least ten round trips.
        let mut rating = trips(150);
        assert!(!rating.on_message(2_799 * MS, 10));
        assert!(rating.on_message(2_800 * MS, 10));
        let window = rating.window(0).unwrap();
        assert_eq!((window.bytes, window.window_ns), (30, 1_500 * MS));
        // What never had a second part has no rate.
        let mut short = Rating::new(0);
        short.on_clear(0);
        assert!(!short.on_message(5_000 * MS, 10) && short.window(0).is_err());
    }
}
