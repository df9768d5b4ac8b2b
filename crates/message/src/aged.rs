//! A messenger whose rank computes as slowly as a host of another age.
//!
//! Model:   between two calls the program computes. [`Aged`] measures that as CPU time of the rank's thread, and holds the
//!          rank at the next call (and where a phase begins, and at the end) until the span has taken `factor` times as
//!          long. Time that others had the CPU in a span is a part of it, as if this rank had gone on on a CPU of its own. What is
//!          still to be held is one account in whole nanoseconds: a sleep that ends late and a rank that was put aside for longer than
//!          its span are taken off the holds that follow, so that the sum never drifts; they can only bring the rank back to where
//!          it should be, never before. Less than [`GRAIN_NS`] is not held but stays on the account.
//!          A held rank sleeps, so that other ranks on its CPU go on: hosts of another age are slow beside each other, and
//!          several of them stand on one CPU of today. Nothing moves in this rank's engine meanwhile, as nothing does
//!          while it computes. Calls themselves are not stretched: what an old host needs for frames is the network's
//!          `[host]`. A program that waits outside of calls (a disk, a sleep) is not for this: its waits are taken for time
//!          that others had. The timeout of the other ranks has to be longer than the longest span. Where the program reads its own
//!          clock it says so ([`Messenger::due`]): what is owed is held for before, and what was held too long is forgotten, so that
//!          what is timed has an account of its own.
//! Source:  a factor is the time of a sequential run on the old host over that of the same run here ([`factor`]).
//! Units:   nanoseconds of CLOCK_MONOTONIC and of CPU time; an exact ratio.
//! Checked: `computing_takes_its_factor`, `holds_do_not_drift`, `what_others_had_is_part_of_the_span`, `factors_are_checked`,
//!          `a_real_rank_is_held`, `what_is_timed_has_an_account_of_its_own`.

use sonde_sys::clock::{monotonic_ns, sleep_until_ns};
use sonde_sys::cpu::thread_cpu_ns;
use sonde_units::Ratio;

use crate::{
    Call, Capabilities, Comm, Completion, Error, Messenger, Op, Request, Result, Source, Status,
    Tag, Tagged,
};

/// Less is not slept for: as long as a sleep is late of itself.
pub const GRAIN_NS: u64 = 50_000;
/// Factors above this are mistakes.
pub const FACTOR_MAX: u64 = 1_000_000;
/// Readings of the CPU's time to find what one costs; the cheapest counts.
const READINGS: u32 = 64;

/// What tells the time of a rank and lets it pass.
pub trait Time {
    /// Nanoseconds that never go back; of CLOCK_MONOTONIC where spans go to a timeline.
    fn now_ns(&mut self) -> u64;

    /// CPU time of the calling thread, in nanoseconds.
    fn worked_ns(&mut self) -> u64;

    /// Gives the CPU away until then; may return late, never early.
    fn sleep_until_ns(&mut self, at_ns: u64);
}

/// The clocks of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

impl Time for Machine {
    fn now_ns(&mut self) -> u64 {
        monotonic_ns()
    }

    fn worked_ns(&mut self) -> u64 {
        thread_cpu_ns()
    }

    fn sleep_until_ns(&mut self, at_ns: u64) {
        sleep_until_ns(at_ns);
    }
}

/// How many times as long computing takes: a recorded time of a sequential run on the old host over the time of the same run, of one rank
/// on an idle CPU, here. Both in nanoseconds.
///
/// # Errors
/// Those of [`Aged::new`]; a time is zero.
pub fn factor(recorded_ns: u64, own_ns: u64) -> Result<Ratio> {
    if own_ns == 0 {
        return Err(Error::Argument {
            what: "the time of the sequential run here",
            value: "0 ns".into(),
            wanted: "longer: take a run that the clock can see".into(),
        });
    }
    let ratio = Ratio::new(recorded_ns, own_ns);
    check(ratio)?;
    Ok(ratio)
}

/// Refuses what no host of another age is.
///
/// # Errors
/// The factor is below 1 or above [`FACTOR_MAX`].
pub fn check(factor: Ratio) -> Result<()> {
    if (Ratio::ONE..=Ratio::new(FACTOR_MAX, 1)).contains(&factor) {
        return Ok(());
    }
    Err(Error::Argument {
        what: "the factor of a historical host",
        value: told(factor),
        wanted: format!(
            "1 to {FACTOR_MAX}: the recorded time over the own one, both in the same unit; a program cannot be made faster \
             than this machine"
        ),
    })
}

fn told(factor: Ratio) -> String {
    let (numerator, denominator) = factor.parts();
    format!("{numerator}/{denominator}")
}

/// What was measured and held until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Charges {
    /// Computing between calls, as CPU time.
    pub computed_ns: u64,
    /// Held beside it, asleep.
    pub held_ns: u64,
    /// How often.
    pub holds: u64,
}

/// A moment of a rank.
#[derive(Debug, Clone, Copy)]
struct Moment {
    now_ns: u64,
    worked_ns: u64,
}

/// Stretches what a rank computes between the calls of a messenger. It is the outermost of several that watch.
pub struct Aged<M, T = Machine> {
    inner: M,
    time: T,
    factor: Ratio,
    /// The end of the last call.
    last: Moment,
    /// What a reading of the CPU's time adds to a span.
    reading_ns: u64,
    /// What is still to be held; below zero what was held too long.
    owed_ns: i64,
    /// The part of a nanosecond that is not yet owed, in parts of the factor's denominator.
    rest: u64,
    charges: Charges,
    /// At the last [`due`](Messenger::due), and between the last two.
    at_due: Charges,
    timed: Charges,
}

impl<M: Messenger> Aged<M> {
    /// Stretches from now on, by the clocks of this machine.
    ///
    /// # Errors
    /// The factor is below 1 or above 1,000,000.
    pub fn new(inner: M, factor: Ratio) -> Result<Self> {
        Self::with(inner, factor, Machine)
    }
}

impl<M: Messenger, T: Time> Aged<M, T> {
    /// The same by other clocks.
    ///
    /// # Errors
    /// Those of [`new`](Aged::new).
    pub fn with(inner: M, factor: Ratio, mut time: T) -> Result<Self> {
        check(factor)?;
        let mut cost = || {
            let before = time.worked_ns();
            time.worked_ns().saturating_sub(before)
        };
        let first = cost();
        let reading_ns = (1..READINGS).fold(first, |least, _| least.min(cost()));
        let last = Moment {
            now_ns: time.now_ns(),
            worked_ns: time.worked_ns(),
        };
        Ok(Self {
            inner,
            time,
            factor,
            last,
            reading_ns,
            owed_ns: 0,
            rest: 0,
            charges: Charges::default(),
            at_due: Charges::default(),
            timed: Charges::default(),
        })
    }

    /// What was measured and held between the last two times that the program read its clock: in what it times.
    pub const fn timed(&self) -> Charges {
        self.timed
    }

    /// What was measured and held until now; the span since the last call is not in it.
    pub const fn charges(&self) -> Charges {
        self.charges
    }

    /// What is beneath; what is done to it directly is taken for computing.
    pub const fn inner(&mut self) -> &mut M {
        &mut self.inner
    }

    /// What was beneath. What is still owed, less than [`GRAIN_NS`] unless the rank computed since its last call, is let go.
    pub fn into_inner(self) -> M {
        self.inner
    }

    /// Ends a span: what it owes, and the hold for it where that is at least `least_ns`.
    fn settle(&mut self, least_ns: u64) {
        let worked_ns = self.time.worked_ns();
        let now_ns = self.time.now_ns();
        let computed_ns = worked_ns
            .saturating_sub(self.last.worked_ns)
            .saturating_sub(self.reading_ns);
        let passed_ns = now_ns.saturating_sub(self.last.now_ns);
        self.last = Moment { now_ns, worked_ns };
        self.charges.computed_ns += computed_ns;
        let (numerator, denominator) = self.factor.parts();
        let parts = u128::from(computed_ns) * u128::from(numerator) + u128::from(self.rest);
        self.rest = (parts % u128::from(denominator)) as u64;
        let wanted_ns = parts / u128::from(denominator);
        self.owed_ns += wanted_ns as i64 - passed_ns as i64;
        if self.owed_ns >= least_ns as i64 {
            self.hold(now_ns);
        }
    }

    fn hold(&mut self, now_ns: u64) {
        self.time.sleep_until_ns(now_ns + self.owed_ns as u64);
        let awake_ns = self.time.now_ns();
        let held_ns = awake_ns.saturating_sub(now_ns);
        self.owed_ns -= held_ns as i64;
        self.charges.held_ns += held_ns;
        self.charges.holds += 1;
        self.inner.busy(now_ns, awake_ns);
    }

    /// A span begins.
    fn begin(&mut self) {
        self.last = Moment {
            now_ns: self.time.now_ns(),
            worked_ns: self.time.worked_ns(),
        };
    }

    fn between<R>(&mut self, call: impl FnOnce(&mut M) -> R) -> R {
        self.settle(GRAIN_NS);
        let result = call(&mut self.inner);
        self.begin();
        result
    }
}

impl<M: Messenger, T: Time> Messenger for Aged<M, T> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn rank(&self, comm: Comm) -> usize {
        self.inner.rank(comm)
    }

    fn size(&self, comm: Comm) -> usize {
        self.inner.size(comm)
    }

    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        self.between(|inner| inner.send(comm, to, tag, payload))
    }

    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        self.between(|inner| inner.recv(comm, from, tag, room))
    }

    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        self.between(|inner| inner.exchange(comm, ops, statuses))
    }

    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        self.between(|inner| inner.isend(comm, to, tag, payload))
    }

    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
        self.between(|inner| inner.irecv(comm, from, tag, room))
    }

    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        self.between(|inner| inner.test(request))
    }

    fn wait(&mut self, request: Request) -> Result<Completion> {
        self.between(|inner| inner.wait(request))
    }

    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        self.between(|inner| inner.iprobe(comm, from, tag))
    }

    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        self.between(|inner| inner.split(comm, colour, key))
    }

    fn collective(&mut self, comm: Comm, call: &mut Call<'_>) -> Result<bool> {
        self.between(|inner| inner.collective(comm, call))
    }

    fn progress(&mut self) -> Result<()> {
        self.between(M::progress)
    }

    /// What was computed until now belongs to the phase that ends.
    fn phase(&mut self, name: &str) {
        self.between(|inner| inner.phase(name));
    }

    fn busy(&mut self, begin_ns: u64, end_ns: u64) {
        self.inner.busy(begin_ns, end_ns);
    }

    /// Holds for what is owed, in the phase that it is of.
    fn due(&mut self) {
        self.settle(GRAIN_NS);
        self.owed_ns = self.owed_ns.max(0);
        let Charges {
            computed_ns,
            held_ns,
            holds,
        } = self.at_due;
        self.timed = Charges {
            computed_ns: self.charges.computed_ns - computed_ns,
            held_ns: self.charges.held_ns - held_ns,
            holds: self.charges.holds - holds,
        };
        self.at_due = self.charges;
        self.inner.due();
        self.begin();
    }

    /// Those beneath, and `aged`, the factor.
    fn strangers(&self) -> u64 {
        self.inner.strangers()
    }

    fn facts(&self) -> Result<sonde_measure::Library> {
        Ok(sonde_measure::Library {
            aged: Some(told(self.factor).into()),
            ..self.inner.facts()?
        })
    }

    fn abort(&mut self, why: &str) {
        self.inner.abort(why);
    }

    /// Holds for all that is owed before.
    fn finish(&mut self) -> Result<()> {
        self.settle(1);
        self.inner.finish()
    }
}

#[cfg(test)]
mod tests;
