//! A collective call among all ranks, timed from an agreed begin to its end at the last rank.
//!
//! Model:   every rank's clock is read against rank 0's by the shortest of some exchanges. Before each call rank 0 tells all
//!          when it begins; each waits for that time by its own clock and calls. The sample is the longest time from the
//!          agreed begin to a rank's return. A call that a rank entered late by more than half of the sample is no sample:
//!          it was held up by the machine, not by the call. Every call has data of its own, and each rank checks what it
//!          got, outside of what is timed.
//! Source:  Hunold & Carpen-Amarie, TPDS 27(12) 2016, §3, for agreed begins. Deviation: no model of drift; clocks are read
//!          again for each size.
//! Units:   nanoseconds; the size is what each rank gives (barrier: nothing, and one size).
//! Checked: `data_are_of_their_call`; `tests/library.rs`, `collective_*`.

use sonde_message::{Call, Comm, Element, Kind, Messenger, Operation, Parts};
use sonde_record::{Measurement, Phase, Quantity, Step};
use sonde_stats::Series;
use sonde_sys::clock::{monotonic_ns, sleep_until_ns};

use super::{BESIDE, SEEN, receive};
use crate::talk::{EndedBy, Measured, Served, SizeMeasured, SizeServed};
use crate::trips::is_known;
use crate::watch::Watch;
use crate::{Error, Result, Terms};

/// Exchanges for one reading of a clock; the shortest counts.
const READINGS: u32 = 20;
/// From being told to the begin, beside what the telling takes.
const AHEAD_NS: u64 = 100_000;
/// How long before a begin the clock is watched instead of slept by.
const WATCH_NS: u64 = 60_000;
/// In place of a begin: no further call of this size.
const OVER: u64 = 0;
/// Whose data a broadcast and a scatter give, and who gets those of a reduction and a gather.
const ROOT: usize = 0;
/// Of so many calls in a row none is a sample: others cannot be expected.
const LATE_MAX: u64 = 200;

/// The kind with this name.
pub(super) fn kind(name: &str) -> Result<Kind> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| Error::Terms {
        what: format!("there is no collective call `{name}`"),
        remedy: "write barrier, broadcast, reduce, allreduce, gather, scatter, allgather, alltoall or scan",
    })
}

/// How this rank's clock stands.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    /// What is to be added to a time of rank 0.
    offset_ns: i64,
    /// What telling all ranks takes, at rank 0.
    telling_ns: u64,
}

/// One call, as a rank saw it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// From the agreed begin to its return.
    time_ns: u64,
    /// From the agreed begin to its own.
    late_ns: u64,
}

pub(super) fn all(
    messenger: &mut dyn Messenger,
    terms: &Terms,
    name: &str,
    measured: &mut Measured,
    served: &mut Served,
) -> Result<()> {
    let kind = kind(name)?;
    let rank = messenger.rank(Comm::WORLD);
    for &size_bytes in &terms.sizes_bytes {
        let mut data = Data::new(kind, messenger, size_bytes as usize);
        let clocks = read_clocks(messenger)?;
        let watch = Watch::begin_of(true)?;
        if rank == 0 {
            let size = lead(messenger, terms, &mut data, clocks)?;
            watch.end(&mut measured.interference, None)?;
            let ended_by = size.ended_by.map_or("", EndedBy::name);
            let name = format!("ended_by.{size_bytes}");
            measured.settings.insert(name, ended_by.into());
            measured.sizes.push(size);
        } else {
            let messages = follow(messenger, &mut data, clocks)?;
            watch.end(&mut served.interference, None)?;
            served.sizes.push(SizeServed {
                messages,
                ..SizeServed::default()
            });
        }
    }
    Ok(())
}

/// Rank 0: tells when, takes part, and collects.
fn lead(
    messenger: &mut dyn Messenger,
    terms: &Terms,
    data: &mut Data,
    clocks: Clocks,
) -> Result<SizeMeasured> {
    let mut warm = Series::up_to(1 << 40);
    let (mut first_ns, mut calls, mut late) = (None, 0_u64, 0_u64);
    let deadline = monotonic_ns() + terms.budget_ns;
    let low = terms.samples_min.max(1);
    let mut look_at = terms.precision_per_mille.map_or(terms.samples_max, |_| low);
    let ended_by = loop {
        let is_warm = calls > terms.warmup;
        if is_warm && warm.count() >= terms.samples_max {
            break EndedBy::Samples;
        }
        if is_warm && (monotonic_ns() >= deadline || (warm.is_empty() && late >= LATE_MAX)) {
            break EndedBy::Budget;
        }
        if is_warm && warm.count() >= look_at {
            if is_known(&warm, terms.precision_per_mille) {
                break EndedBy::Precision;
            }
            look_at = (look_at + look_at.div_ceil(4)).min(terms.samples_max);
        }
        let begin_ns = monotonic_ns() + clocks.telling_ns + AHEAD_NS;
        tell_all(messenger, begin_ns)?;
        let mut seen = data.call(messenger, calls, begin_ns)?;
        for other in 1..data.ranks {
            let mut words = [0; 16];
            receive(messenger, other, SEEN, &mut words)?;
            seen = seen.and(Seen::of(words));
        }
        // Before the second one nothing is warm.
        if calls == 0 {
            first_ns = Some(seen.time_ns);
        } else if is_warm && !seen.is_held_up() {
            warm.record(seen.time_ns);
        }
        late += u64::from(is_warm && seen.is_held_up());
        calls += 1;
    };
    tell_all(messenger, OVER)?;
    Ok(size_measured(data, warm, first_ns, calls, late, ended_by))
}

fn size_measured(
    data: &Data,
    warm: Series,
    first_ns: Option<u64>,
    calls: u64,
    late: u64,
    ended_by: EndedBy,
) -> SizeMeasured {
    let first = Measurement {
        quantity: Quantity::CollectiveNs,
        phase: Phase::Cold,
        step: Some(Step::First),
        series: first_ns.into_iter().collect(),
        reason: None,
    };
    let none = || {
        format!(
            "of {late} calls each was entered late by a rank, by more than half of its time: give every rank a CPU, or a \
             longer budget"
        )
    };
    let warm = Measurement {
        quantity: Quantity::CollectiveNs,
        phase: Phase::Warm,
        step: None,
        reason: warm.is_empty().then(none),
        series: warm,
    };
    SizeMeasured {
        size_bytes: data.size as u64,
        measurements: vec![first, warm],
        round_trips: calls,
        ended_by: Some(ended_by),
        sent: None,
    }
}

/// All others: wait to be told, take part, and say what they saw; how many calls there were.
fn follow(messenger: &mut dyn Messenger, data: &mut Data, clocks: Clocks) -> Result<u64> {
    let mut calls = 0;
    loop {
        let mut words = [0; 8];
        receive(messenger, 0, BESIDE, &mut words)?;
        let begin_ns = u64::from_le_bytes(words);
        if begin_ns == OVER {
            return Ok(calls);
        }
        let own_ns = begin_ns.saturating_add_signed(clocks.offset_ns);
        let seen = data.call(messenger, calls, own_ns)?;
        messenger.send(Comm::WORLD, 0, SEEN, &seen.words())?;
        calls += 1;
    }
}

fn tell_all(messenger: &mut dyn Messenger, begin_ns: u64) -> Result<()> {
    for other in 1..messenger.size(Comm::WORLD) {
        messenger.send(Comm::WORLD, other, BESIDE, &begin_ns.to_le_bytes())?;
    }
    Ok(())
}

/// Every rank's clock against rank 0's.
fn read_clocks(messenger: &mut dyn Messenger) -> Result<Clocks> {
    let (rank, ranks) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
    let mut words = [0; 8];
    if rank > 0 {
        for _ in 0..READINGS {
            receive(messenger, 0, BESIDE, &mut words)?;
            messenger.send(Comm::WORLD, 0, BESIDE, &monotonic_ns().to_le_bytes())?;
        }
        receive(messenger, 0, BESIDE, &mut words)?;
        return Ok(Clocks {
            offset_ns: i64::from_le_bytes(words),
            telling_ns: 0,
        });
    }
    let mut telling_ns = 0;
    for other in 1..ranks {
        let mut best = (u64::MAX, 0_i64);
        for _ in 0..READINGS {
            let begin_ns = monotonic_ns();
            messenger.send(Comm::WORLD, other, BESIDE, &words)?;
            receive(messenger, other, BESIDE, &mut words)?;
            let trip_ns = monotonic_ns() - begin_ns;
            let theirs = u64::from_le_bytes(words) as i64;
            if trip_ns < best.0 {
                best = (trip_ns, theirs - (begin_ns + trip_ns / 2) as i64);
            }
        }
        messenger.send(Comm::WORLD, other, BESIDE, &best.1.to_le_bytes())?;
        telling_ns += best.0;
    }
    Ok(Clocks {
        offset_ns: 0,
        telling_ns,
    })
}

impl Seen {
    /// The longest of both.
    fn and(self, other: Self) -> Self {
        Self {
            time_ns: self.time_ns.max(other.time_ns),
            late_ns: self.late_ns.max(other.late_ns),
        }
    }

    fn is_held_up(self) -> bool {
        self.late_ns > self.time_ns / 2
    }

    fn words(self) -> [u8; 16] {
        let mut words = [0; 16];
        words[..8].copy_from_slice(&self.time_ns.to_le_bytes());
        words[8..].copy_from_slice(&self.late_ns.to_le_bytes());
        words
    }

    fn of(words: [u8; 16]) -> Self {
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&words[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        Self {
            time_ns: number(0),
            late_ns: number(8),
        }
    }
}

/// What a rank gives and gets in a call.
struct Data {
    kind: Kind,
    rank: usize,
    ranks: usize,
    size: usize,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Byte `at` of what `rank` gives in call `call`.
fn given(rank: usize, at: usize, call: u64) -> u8 {
    (rank * 7 + at % 251) as u8 ^ call as u8
}

impl Data {
    fn new(kind: Kind, messenger: &dyn Messenger, size: usize) -> Self {
        let (rank, ranks) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
        let mut data = Self {
            kind,
            rank,
            ranks,
            size,
            input: Vec::new(),
            output: Vec::new(),
        };
        let (input, output) = data.lengths();
        (data.input, data.output) = (vec![0; input], vec![0; output]);
        data
    }

    /// Bytes that this rank gives and gets.
    fn lengths(&self) -> (usize, usize) {
        let (size, whole) = (self.size, self.size * self.ranks);
        let at_root = |bytes| if self.rank == ROOT { bytes } else { 0 };
        match self.kind {
            Kind::Barrier => (0, 0),
            Kind::Broadcast => (0, size),
            Kind::Reduce => (size, at_root(size)),
            Kind::Allreduce | Kind::Scan => (size, size),
            Kind::Gather => (size, at_root(whole)),
            Kind::Scatter => (at_root(whole), size),
            Kind::Allgather => (size, whole),
            Kind::Alltoall => (whole, whole),
        }
    }

    /// Fresh data of this call.
    fn fill(&mut self, call: u64) {
        let rank = self.rank;
        // A scatter's whole is what each rank would give, in order of rank.
        let (size, kind) = (self.size.max(1), self.kind);
        for (at, byte) in self.input.iter_mut().enumerate() {
            *byte = match kind {
                Kind::Scatter => given(at / size, at % size, call),
                _ => given(rank, at, call),
            };
        }
        self.output.fill(0);
        if kind == Kind::Broadcast && rank == ROOT {
            for (at, byte) in self.output.iter_mut().enumerate() {
                *byte = given(ROOT, at, call);
            }
        }
    }

    /// Byte `at` of what this rank must get.
    fn wanted(&self, at: usize, call: u64) -> u8 {
        let size = self.size.max(1);
        let sum = |ranks: usize| {
            let all = (0..ranks).map(|rank| given(rank, at, call));
            all.fold(0_u8, u8::wrapping_add)
        };
        match self.kind {
            Kind::Barrier => 0,
            Kind::Broadcast => given(ROOT, at, call),
            Kind::Reduce | Kind::Allreduce => sum(self.ranks),
            Kind::Scan => sum(self.rank + 1),
            Kind::Gather | Kind::Allgather => given(at / size, at % size, call),
            Kind::Scatter => given(self.rank, at, call),
            Kind::Alltoall => given(at / size, self.rank * size + at % size, call),
        }
    }

    /// Waits for the begin, calls, and checks what came.
    fn call(&mut self, messenger: &mut dyn Messenger, call: u64, begin_ns: u64) -> Result<Seen> {
        self.fill(call);
        sleep_until_ns(begin_ns.saturating_sub(WATCH_NS));
        let mut now_ns = monotonic_ns();
        while now_ns < begin_ns {
            std::hint::spin_loop();
            now_ns = monotonic_ns();
        }
        self.make(messenger)?;
        let end_ns = monotonic_ns();
        let wrong = (0..self.output.len()).find(|at| self.output[*at] != self.wanted(*at, call));
        if let Some(at) = wrong {
            return Err(Error::Integrity(format!(
                "byte {at} of what rank {} got from {} number {call} of {} bytes is {:#04x}, and {:#04x} is right",
                self.rank,
                self.kind.name(),
                self.size,
                self.output[at],
                self.wanted(at, call)
            )));
        }
        Ok(Seen {
            time_ns: end_ns.saturating_sub(begin_ns),
            late_ns: now_ns.saturating_sub(begin_ns),
        })
    }

    fn make(&mut self, messenger: &mut dyn Messenger) -> Result<()> {
        let (input, output) = (&self.input[..], &mut self.output[..]);
        let (root, parts) = (ROOT, Parts::Even(self.size));
        let (element, operation) = (Element::U8, Operation::Sum);
        let mut call = match self.kind {
            Kind::Barrier => Call::Barrier,
            Kind::Broadcast => Call::Broadcast { root, data: output },
            Kind::Reduce => Call::Reduce {
                root,
                input,
                output,
                element,
                operation,
            },
            Kind::Allreduce => Call::Allreduce {
                input,
                output,
                element,
                operation,
            },
            Kind::Gather => Call::Gather {
                root,
                input,
                output,
                parts,
            },
            Kind::Scatter => Call::Scatter {
                root,
                input,
                output,
                parts,
            },
            Kind::Allgather => Call::Allgather {
                input,
                output,
                parts,
            },
            Kind::Alltoall => Call::Alltoall {
                input,
                sent: parts,
                output,
                received: Parts::Even(self.size),
            },
            Kind::Scan => Call::Scan {
                input,
                output,
                element,
                operation,
            },
        };
        make(messenger, &mut call)
    }
}

/// Makes a call with what the library has of its own.
fn make(messenger: &mut dyn Messenger, call: &mut Call<'_>) -> Result<()> {
    let kind = call.kind();
    if messenger.collective(Comm::WORLD, call)? {
        return Ok(());
    }
    Err(sonde_message::Error::Missing {
        library: "this library".into(),
        what: format!("{} of its own", kind.name()),
    }
    .into())
}
