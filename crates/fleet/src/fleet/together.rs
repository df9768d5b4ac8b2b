//! Several measurements at once, between the same two hosts.
//!
//! Model:   each has an agent of its own on every host that it needs, by its number. All of them make ready; what they measure begins
//!          at one time, that each host is told on its own clock, and lasts as long as their specifications say. Ranks are started first
//!          and heard last; each conversation has a thread meanwhile. Where one was not ready by then, all of it is made again with
//!          more time than that took, and what was enough once is given from then on under the same load. Where one fails otherwise,
//!          the others are ended at once: none of them was measured beside all. Each may go by a network of its own.
//! Units:   nanoseconds of CLOCK_MONOTONIC.
//! Checked: `tests/lab_contend.rs` of the command.

use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use sonde_lab::Report;
use sonde_measure::Spec;
use sonde_message::Library;
use sonde_probe::{Conversation, Error, LATE, Outcome, clock};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::thread;

use super::Fleet;
use crate::agent::Agent;
use crate::error::{FleetError, Result};
use crate::launch::{Ask, Between};
use crate::load::Load;
use crate::placement::Placement;
use crate::ranks::native::BegunRanks;
use crate::ranks::{RanksAsk, limit};

/// What making ready may take at first: worker processes, and what comes before a window, as a stream's first second.
const LEAD: Duration = Duration::from_millis(2_500);
/// What it may take at most: agents wait no longer.
const LEAD_MAX: Duration = Duration::from_secs(100);
/// What is attempted, where it is none of them alone.
const ATTEMPT: &str = "measure several at once";
/// How often all of it is made where something was not ready.
const TRIES: u32 = 3;
/// Exchanges for one reading of a clock against the orchestrator's.
const CLOCK_EXCHANGES: u32 = 5;

/// Measurements to be made at once.
#[derive(Debug, Clone)]
pub struct TogetherAsk {
    /// Where, and under which load.
    pub between: Between,
    /// Each of them, one or more.
    pub parts: Vec<Part>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct Part {
    /// By which of the networks that were joined; none is the one by which the hosts reach each other.
    pub network: Option<usize>,
    /// What is measured.
    pub what: What,
}

/// What is measured.
#[derive(Debug, Clone)]
pub enum What {
    /// A conversation over a channel, of any kind but start-up.
    Channel(Box<Spec>),
    /// A kernel, whose job says how long it is run; its place is that of all.
    Ranks(Box<RanksAsk>),
}

/// What they gave.
#[derive(Debug)]
pub struct TogetherLaunched {
    /// Each, in the order of the request, or why there is none; nothing of one that was ended because another one failed.
    pub parts: Vec<Result<Option<Outcome>>>,
    /// What an emulated network did meanwhile; none for other networks.
    pub report: Option<Report>,
    /// How often it was made again, since something was not ready.
    pub again: u32,
}

/// The seats of a part: its agents on both hosts.
type Keys = [(usize, Placement); 2];

/// A conversation whose agents were taken out of the fleet for it.
struct Talk {
    part: usize,
    conversation: Conversation,
    agents: [Agent; 2],
}

/// Whether it was not ready by the agreed time.
fn is_late(error: &FleetError) -> bool {
    !error.lost && error.happened.contains(LATE)
}

/// Has all others end: the other end can be read from now on.
fn raise(alarm: &UnixStream) {
    // It fails only where both ends are closed.
    drop(alarm.shutdown(Shutdown::Both));
}

/// Which agents a part has on the two hosts.
fn keys(between: &Between, part: usize) -> Keys {
    let lane = Placement::Lane(u8::try_from(part).unwrap_or(u8::MAX));
    [(between.src, lane), (between.dst, lane)]
}

impl Fleet {
    /// Makes one launch of measurements at once.
    ///
    /// # Errors
    /// None of them could be begun: a host takes no agent, or the emulated network is gone.
    ///
    /// # Panics
    /// A host is not of this fleet, or both are the same.
    pub fn together(&mut self, ask: &TogetherAsk) -> Result<TogetherLaunched> {
        let between = &ask.between;
        let (src, dst, count) = (between.src, between.dst, self.hosts.len());
        assert!(
            src < count && dst < count && src != dst,
            "hosts {src} and {dst} of {count}"
        );
        self.make_ready(ask)?;
        let loaded = self.machines.load(between.load.as_ref(), &[src, dst]);
        loaded.map_err(|error| self.machines_failed(error))?;
        let longest = ask.parts.iter().map(|part| match &part.what {
            What::Channel(spec) => spec.duration_max(),
            What::Ranks(ranks) => limit(&ranks.job),
        });
        let longest = longest.max().unwrap_or_default() + LEAD_MAX;
        let traffic = self.load_for(between, longest * TRIES)?;
        let load = between.load.as_ref().map(Load::to_string);
        let mut lead = self.leads.get(&load).copied().unwrap_or(LEAD);
        let mut again = 0;
        let made = loop {
            let began = Instant::now();
            let made = self.at_once(ask, lead);
            let late = |part: &Result<Option<Outcome>>| part.as_ref().is_err_and(is_late);
            let late = made.as_ref().is_ok_and(|parts| parts.iter().any(late));
            if !late || again + 1 >= TRIES {
                break made;
            }
            again += 1;
            lead = (began.elapsed() * 5 / 4).clamp(lead, LEAD_MAX);
        };
        self.leads.insert(load, lead);
        let mut made = made;
        if let Some(traffic) = traffic {
            let parts = made.as_mut().ok().into_iter().flatten();
            let first = parts.filter_map(|part| part.as_mut().ok()?.as_mut()).next();
            self.unload(&traffic, first)?;
        }
        Ok(TogetherLaunched {
            parts: made?,
            report: self.emulated()?,
            again,
        })
    }

    /// Every agent is there, and what hosts have of the programs of ranks is known: finding that out takes its time.
    fn make_ready(&mut self, ask: &TogetherAsk) -> Result<()> {
        for (number, part) in ask.parts.iter().enumerate() {
            let keys = keys(&ask.between, number);
            for (host, placement) in keys {
                self.ensure(host, placement)?;
            }
            let What::Ranks(ranks) = &part.what else {
                continue;
            };
            let attempt = format!("measure {} over {}", ranks.job.name(), ranks.path);
            if matches!(
                ranks.path.library,
                Library::OpenMpi | Library::Mpich | Library::Pvm
            ) {
                return Err(FleetError::of_all(
                    attempt,
                    "its own launcher starts its ranks, which begin when it likes",
                    "beside other measurements take native, ucx or ofi",
                ));
            }
            for (host, placement) in self.seats(ranks, keys) {
                self.ensure(host, placement)?;
                self.tool((host, placement), ranks.path)
                    .map_err(|why| FleetError::at(self.name(host), &attempt, why, ""))?;
            }
        }
        Ok(())
    }

    /// All of them, once.
    fn at_once(
        &mut self,
        ask: &TogetherAsk,
        lead: Duration,
    ) -> Result<Vec<Result<Option<Outcome>>>> {
        let (alarm, stop) = UnixStream::pair().map_err(|error| {
            FleetError::of_all(
                ATTEMPT,
                error,
                "look at the limit of open files: `ulimit -n`",
            )
        })?;
        let begun = self.machines.begin(Placement::Lane(0));
        begun.map_err(|error| self.machines_failed(error))?;
        let before = self.network;
        let offset_ns = self.offset_of(ask)?;
        let lead_ns = u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX);
        let begin_ns = (monotonic_ns() + lead_ns).saturating_add_signed(offset_ns);
        let mut all: Vec<Option<Result<Option<Outcome>>>> =
            ask.parts.iter().map(|_| None).collect();
        let (mut numbers, mut ranks, mut talks) = (Vec::new(), Vec::new(), Vec::new());
        for (number, part) in ask.parts.iter().enumerate() {
            self.network = part.network;
            let keys = keys(&ask.between, number);
            let begun = match &part.what {
                What::Ranks(ranks_ask) => self.begin_at(ranks_ask, keys, begin_ns).map(|begun| {
                    numbers.push(number);
                    ranks.push(begun);
                }),
                What::Channel(spec) => self
                    .talk(number, spec, keys, begin_ns)
                    .map(|talk| talks.push(talk)),
            };
            if let Err(error) = begun {
                raise(&alarm);
                all[number] = Some(Err(error));
            }
        }
        self.network = before;
        let talked = std::thread::scope(|scope| {
            let (alarm, stop) = (&alarm, stop.as_fd());
            let start = |mut talk: Talk| {
                let started = thread::start_in(scope, "one of several measurements", move || {
                    let [client, server] = &mut talk.agents;
                    let outcome = talk
                        .conversation
                        .run_until(client.link(), server.link(), stop);
                    let failed = outcome.as_ref().err().map(Error::to_string);
                    if failed.is_some_and(|failed| !failed.contains(LATE)) {
                        raise(alarm);
                    }
                    (talk, outcome)
                });
                started.inspect_err(|_| raise(alarm))
            };
            let threads: Vec<_> = talks.into_iter().map(start).collect();
            while let Some(at) = self.first_to_end(&ranks, stop) {
                let (number, (ask, begun)) = (numbers.remove(at), ranks.remove(at));
                let ran = self.end_ranks(&ask, &ask.job, &begun);
                let ran = ran.and_then(|ran| self.outcome_of(&ask, &ask.job, &ran));
                if ran.as_ref().is_err_and(|error| !is_late(error)) {
                    raise(alarm);
                }
                all[number] = Some(ran.map(Some));
            }
            for (number, (ask, begun)) in numbers.into_iter().zip(ranks) {
                self.stop_ranks(&ask, &begun);
                all[number] = Some(Ok(None));
            }
            let joined = threads.into_iter().map(|thread| {
                let joined = thread.map(std::thread::ScopedJoinHandle::join);
                joined.map(|joined| joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            joined.collect::<Vec<_>>()
        });
        for one in talked {
            // A thread that was refused took its agents with it: they are started anew.
            let Ok((talk, outcome)) = one else { continue };
            let keys = keys(&ask.between, talk.part);
            for (key, agent) in keys.into_iter().zip(talk.agents) {
                self.agents.0.insert(key, agent);
            }
            let asked = Ask {
                spec: talk.conversation.spec,
                between: ask.between.clone(),
            };
            all[talk.part] = Some(match outcome {
                Err(Error::Ended) => Ok(None),
                outcome => outcome
                    .map(Some)
                    .map_err(|error| self.failed(&asked, keys, &error)),
            });
        }
        let none = || {
            FleetError::of_all(
                ATTEMPT,
                "a thread was refused",
                "look at the limits of processes: `ulimit -u`",
            )
        };
        let all = all.into_iter();
        Ok(all.map(|one| one.unwrap_or_else(|| Err(none()))).collect())
    }

    /// The measuring host's clock minus ours.
    fn offset_of(&mut self, ask: &TogetherAsk) -> Result<i64> {
        let key = keys(&ask.between, 0)[0];
        let Some(agent) = self.agents.0.get_mut(&key) else {
            unreachable!("it was made ready");
        };
        if self.machines.one_clock() {
            return Ok(0);
        }
        let clock = clock::offset(agent.link(), CLOCK_EXCHANGES);
        let clock = clock.map_err(|error| {
            FleetError::at(self.name(key.0), "read its clock", &error, error.remedy())
        })?;
        Ok(clock.offset_ns)
    }

    /// Starts ranks that begin at this time of rank 0's clock.
    fn begin_at(
        &mut self,
        ask: &RanksAsk,
        keys: Keys,
        begin_ns: u64,
    ) -> Result<(RanksAsk, BegunRanks)> {
        let mut ask = ask.clone();
        if let Some(during) = &mut ask.job.during {
            during.begin_ns = Some(begin_ns);
        }
        let begun = self.begin_ranks(&ask, &ask.job, keys)?;
        Ok((ask, begun))
    }

    /// A conversation that begins at this time of the measuring host's clock, with its agents.
    fn talk(&mut self, part: usize, spec: &Spec, keys: Keys, begin_ns: u64) -> Result<Talk> {
        for (host, placement) in keys {
            self.ensure(host, placement)?;
        }
        let server = self.address_of(keys[1].0);
        let conversation = Conversation::new(spec.clone(), server)
            .map_err(|error| FleetError::of_all(ATTEMPT, &error, error.remedy()))?;
        let agents = keys.map(|key| self.agents.0.remove(&key));
        let [Some(client), Some(server)] = agents else {
            unreachable!("both are checked");
        };
        Ok(Talk {
            part,
            conversation: Conversation {
                client: self.own_end(keys[0].0).map(|end| end.address),
                begin_ns: Some(begin_ns),
                ..conversation
            },
            agents: [client, server],
        })
    }
}
