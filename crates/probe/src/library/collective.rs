//! A collective call among all ranks, timed from an agreed begin to its end at the last rank.
//!
//! Model:   every rank's clock is read against rank 0's by the shortest of some exchanges. Before each call rank 0 tells all
//!          when it begins; each waits for that time by its own clock and calls. The sample is the longest time from the
//!          agreed begin to a rank's return. A call that a rank entered late by more than half of the sample is no sample:
//!          it was held up by the machine, not by the call; how late the last rank was in the others stands beside. Every
//!          call has data of its own, and each rank checks what it got, outside of what is timed.
//! Source:  Hunold & Carpen-Amarie, TPDS 27(12) 2016, §3, for agreed begins. Deviation: no model of drift; clocks are read
//!          again for each size.
//! Units:   nanoseconds; the size is what each rank gives (barrier: nothing, and one size).
//! Checked: `sums_have_no_carry`; `tests/library.rs`, `collective_*`.

use sonde_measure::{EndedBy, Measurement, Phase, Quantity, Sampling, Step};
use sonde_message::collectives::{Choice, Communicator, UnnamedChoice};
use sonde_message::{Call, Comm, Element, Kind, Messenger, Operation, Parts};
use sonde_stats::Series;
use sonde_sys::clock::{monotonic_ns, sleep_until_ns};

use super::{BESIDE, SEEN, receive};
use crate::talk::{Measured, Served, SizeMeasured, SizeServed};
use crate::trips::is_known;
use crate::watch::Watch;
use crate::{Error, Result};

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
    found.ok_or_else(|| Error::Unmeasurable {
        what: format!("there is no collective call `{name}`"),
        remedy: "write barrier, broadcast, reduce, allreduce, gather, scatter, allgather, alltoall or scan",
    })
}

/// Who makes calls of this kind: the library where it has it, unless another is named.
pub(super) fn choice(kind: &str, algorithm: Option<&str>) -> Result<Choice> {
    let Some(algorithm) = algorithm else {
        return Ok(Choice::default());
    };
    let choice = format!("{kind}={algorithm}").parse();
    choice.map_err(|error: UnnamedChoice| Error::Unmeasurable {
        what: error.to_string(),
        remedy: "leave `algorithm` out for what the library has",
    })
}

/// All ranks, with the memory of the algorithms.
type Group<'a> = Communicator<'a, dyn Messenger + 'a>;

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
struct CallTimes {
    /// From the agreed begin to its return.
    time_ns: u64,
    /// From the agreed begin to its own.
    late_ns: u64,
}

pub(super) fn all(
    messenger: &mut dyn Messenger,
    (sampling, sizes_bytes): (Sampling, &[u64]),
    (kind, choice): (Kind, Choice),
    measured: &mut Measured,
    served: &mut Served,
) -> Result<()> {
    let rank = messenger.rank(Comm::WORLD);
    // One for all sizes: its memory is not taken anew by each call.
    let mut group = Communicator::new(messenger, Comm::WORLD, choice);
    for &size_bytes in sizes_bytes {
        let mut data = Data::new(kind, group.messenger(), size_bytes as usize);
        let clocks = read_clocks(group.messenger())?;
        let watch = Watch::begin_of(true)?;
        if rank == 0 {
            let (size, ended_by) = lead(&mut group, sampling, &mut data, clocks)?;
            let facts = measured.evidence.size(size_bytes);
            facts.made_by = Some(data.made_by.into());
            facts.ended_by = Some(ended_by);
            watch.end(&mut measured.interference, None)?;
            measured.sizes.push(size);
        } else {
            let messages = follow(&mut group, &mut data, clocks)?;
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
    group: &mut Group<'_>,
    sampling: Sampling,
    data: &mut Data,
    clocks: Clocks,
) -> Result<(SizeMeasured, EndedBy)> {
    let [mut warm, mut entry] = [(); 2].map(|()| Series::up_to(1 << 40));
    let (mut first_ns, mut calls, mut late) = (None, 0_u64, 0_u64);
    let deadline = monotonic_ns() + sampling.budget_ns;
    let low = sampling.samples_min.max(1);
    let mut look_at = sampling
        .precision_per_mille
        .map_or(sampling.samples_max, |_| low);
    let ended_by = loop {
        let is_warm = calls > sampling.warmup;
        if is_warm && warm.count() >= sampling.samples_max {
            break EndedBy::Samples;
        }
        if is_warm && (monotonic_ns() >= deadline || (warm.is_empty() && late >= LATE_MAX)) {
            break EndedBy::Budget;
        }
        if is_warm && warm.count() >= look_at {
            if is_known(&warm, sampling.precision_per_mille) {
                break EndedBy::Precision;
            }
            look_at = (look_at + look_at.div_ceil(4)).min(sampling.samples_max);
        }
        let begin_ns = monotonic_ns() + clocks.telling_ns + AHEAD_NS;
        tell_all(group.messenger(), begin_ns)?;
        let mut seen = data.call(group, calls, begin_ns)?;
        for other in 1..data.ranks {
            let mut words = [0; 16];
            receive(group.messenger(), other, SEEN, &mut words)?;
            seen = seen.and(CallTimes::of(words));
        }
        // Before the second one nothing is warm.
        if calls == 0 {
            first_ns = Some(seen.time_ns);
        } else if is_warm && !seen.is_held_up() {
            warm.record(seen.time_ns);
            entry.record(seen.late_ns);
        }
        late += u64::from(is_warm && seen.is_held_up());
        calls += 1;
    };
    tell_all(group.messenger(), OVER)?;
    let size = size_measured(data, [warm, entry], first_ns, calls, late);
    Ok((size, ended_by))
}

fn size_measured(
    data: &Data,
    [warm, entry]: [Series; 2],
    first_ns: Option<u64>,
    calls: u64,
    late: u64,
) -> SizeMeasured {
    let first = Measurement {
        touched: None,
        quantity: Quantity::CollectiveNs,
        phase: Phase::Cold,
        step: Some(Step::First),
        series: first_ns.into_iter().collect(),
        reason: None,
    };
    let none = || {
        format!(
            "{late} calls were each entered late by a rank, by more than half of their time: give every rank a CPU, or a \
             longer budget"
        )
    };
    let why = warm.is_empty().then(none);
    let of_calls = |quantity, series| Measurement {
        touched: None,
        quantity,
        phase: Phase::Warm,
        step: None,
        reason: why.clone(),
        series,
    };
    let warm = of_calls(Quantity::CollectiveNs, warm);
    let entry = of_calls(Quantity::EntryLateNs, entry);
    SizeMeasured {
        moments: None,
        size_bytes: data.size as u64,
        measurements: vec![first, warm, entry],
        round_trips: calls,
        sent: None,
    }
}

/// All others: wait to be told, take part, and say what they saw; how many calls there were.
fn follow(group: &mut Group<'_>, data: &mut Data, clocks: Clocks) -> Result<u64> {
    let mut calls = 0;
    loop {
        let mut words = [0; 8];
        receive(group.messenger(), 0, BESIDE, &mut words)?;
        let begin_ns = u64::from_le_bytes(words);
        if begin_ns == OVER {
            return Ok(calls);
        }
        let own_ns = begin_ns.saturating_add_signed(clocks.offset_ns);
        let seen = data.call(group, calls, own_ns)?;
        let words = seen.words();
        group.messenger().send(Comm::WORLD, 0, SEEN, &words)?;
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

impl CallTimes {
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
    /// Who made the last call: the library, or an algorithm.
    made_by: &'static str,
}

/// Byte `at` of what `rank` gives in call `call`.
fn given(rank: usize, at: usize, call: u64) -> u8 {
    (rank * 7 + at % 251) as u8 ^ call as u8
}

/// The same where it is summed: so small that sums of all ranks have no carry, whichever integers the bytes are. Open MPI
/// 4.1 does not wrap sums of bytes on machines with AVX but cuts them at 255.
fn addend(rank: usize, at: usize, call: u64, ranks: usize) -> u8 {
    (usize::from(given(rank, at, call)) % (255 / ranks).max(1)) as u8
}

/// The largest integers that such a message is made of.
fn element(size: usize) -> Element {
    match size {
        _ if size % 8 == 0 => Element::I64,
        _ if size % 4 == 0 => Element::I32,
        _ => Element::U8,
    }
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
            made_by: "nobody",
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
                Kind::Reduce | Kind::Allreduce | Kind::Scan => addend(rank, at, call, self.ranks),
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
            let all = (0..ranks).map(|rank| addend(rank, at, call, self.ranks));
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
    fn call(&mut self, group: &mut Group<'_>, call: u64, begin_ns: u64) -> Result<CallTimes> {
        self.fill(call);
        sleep_until_ns(begin_ns.saturating_sub(WATCH_NS));
        let mut now_ns = monotonic_ns();
        while now_ns < begin_ns {
            std::hint::spin_loop();
            now_ns = monotonic_ns();
        }
        self.make(group)?;
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
        Ok(CallTimes {
            time_ns: end_ns.saturating_sub(begin_ns),
            late_ns: now_ns.saturating_sub(begin_ns),
        })
    }

    fn make(&mut self, group: &mut Group<'_>) -> Result<()> {
        let (input, output) = (&self.input[..], &mut self.output[..]);
        let (root, parts) = (ROOT, Parts::Even(self.size));
        let (element, operation) = (element(self.size), Operation::Sum);
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
        self.made_by = group.call(&mut call)?.name();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_no_carry() {
        for ranks in [2, 3, 17, 255, 300] {
            for at in [0, 7, 250, 1_000] {
                let all = (0..ranks.min(255)).map(|rank| addend(rank, at, 5, ranks));
                assert!(all.map(usize::from).sum::<usize>() <= 255, "{ranks} ranks");
            }
        }
        assert_eq!(
            [1, 8, 12, 1_000].map(element),
            [Element::U8, Element::I64, Element::I32, Element::I64]
        );
    }

    #[test]
    fn late_calls_are_no_samples() {
        let seen = |time_ns, late_ns| CallTimes { time_ns, late_ns };
        assert!(!seen(100, 50).is_held_up() && seen(100, 51).is_held_up());
        let both = seen(100, 10).and(seen(80, 60));
        assert_eq!((both.time_ns, both.late_ns), (100, 60));
        assert!(both.is_held_up());
        let back = CallTimes::of(seen(7, 1 << 40).words());
        assert_eq!((back.time_ns, back.late_ns), (7, 1 << 40));
    }
}
