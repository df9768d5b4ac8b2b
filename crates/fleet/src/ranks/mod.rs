//! Ranks of a library, started on the hosts of a fleet, and what rank 0 gave.
//!
//! Model:   ranks are processes of `sonde-rank`. Native ones are started by the agents of their hosts, at the same time; those
//!          of an MPI by its own launcher, which the agent of rank 0's host starts, with the hosts, the interface and the
//!          transport made explicit; those of PVM by the virtual machine. The agent ends everything that it has started
//!          when it is told to stop, when its time is up, or when it ends itself. What rank 0 writes behind its marker is the
//!          report; whoever else failed is named with what it said.
//! Units:   nanoseconds; ranks and hosts are counted from 0.
//! Checked: `first_words_are_the_cause`; `lab_library` and `lab_hosts` of the command.

mod mpi;
pub(crate) mod native;
pub(crate) mod output;
mod pvm;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sonde_measure::Probe;
use sonde_message::{Library, Path};
use sonde_probe::library::{Job, Report, Task};
use sonde_probe::{Answer, EndOf, Outcome, Program, Ran, Request};

use self::output::words;
use crate::error::{FleetError, Result};
use crate::fleet::Fleet;
use crate::launch::{Between, Launched};
use crate::placement::Placement;

pub(crate) use tool::Tools;

/// What starting and ending ranks may take beside the job.
const START_LIMIT: Duration = Duration::from_secs(30);
/// What an agent may take to end a program and answer.
const GRACE: Duration = Duration::from_secs(5);
/// When rank 0 has ended, the others have so long.
const FOLLOW: Duration = Duration::from_secs(8);

/// Ranks to be started.
#[derive(Debug, Clone)]
pub struct RanksAsk {
    /// The hosts of ranks 0 and 1 as source and destination, the load, the model's time.
    pub between: Between,
    /// What carries messages.
    pub path: Path,
    /// What all ranks do.
    pub job: Job,
    /// How many there are: the first two on the hosts of the pair, the others on the hosts after these, and round again.
    pub count: usize,
    /// Options of the adapter, by name.
    pub settings: Vec<(String, String)>,
    /// The ranks go round so many hosts, the pair's first; round all where none. One is the machine that is collapsed.
    pub spread: Option<usize>,
}

impl Fleet {
    /// Makes one launch of ranks.
    ///
    /// # Errors
    /// They did not start, one of them failed or is gone, or the report is not what it must be; the rank or the host is
    /// named.
    ///
    /// # Panics
    /// A host is not of this fleet, or both are the same.
    pub fn ranks(&mut self, ask: &RanksAsk) -> Result<Launched> {
        let placements = match ask.job.task.is_program() {
            true => [self.machines.kernel_placement(); 2],
            false => self.machines.placements(ask.job.wait, alike(&ask.job.task)),
        };
        let [src, dst] = placements;
        let seats = self.seats(ask, [(ask.between.src, src), (ask.between.dst, dst)]);
        // The ways to all hosts that have ranks are loaded.
        let hosts: BTreeSet<usize> = seats.iter().map(|seat| seat.0).collect();
        let hosts: Vec<usize> = hosts.into_iter().collect();
        let launch_max = limit(&ask.job);
        let network = self.network();
        if ask.path.is_over_all_networks() {
            // What goes by all of them need not pass the one in use.
            self.take_network(None);
        }
        let launched = self.launch_with(
            &ask.between,
            launch_max,
            placements,
            &hosts,
            |fleet, keys| {
                let mut joined: Option<Outcome> = None;
                for mut job in pieces(&ask.job) {
                    job.moments = fleet.machines.one_clock();
                    fleet.ready(keys)?;
                    let outcome = fleet.one_job(ask, &job, keys)?;
                    match &mut joined {
                        Some(joined) => crate::launch::join(joined, outcome),
                        none => *none = Some(outcome),
                    }
                }
                // A job without a size is refused before.
                joined.ok_or_else(|| failed(ask, "it has no size", "ask for one"))
            },
        );
        self.take_network(network);
        launched
    }

    /// Why this path cannot be had on these hosts, with the remedy; `None` where it can.
    ///
    /// # Errors
    /// A host is lost.
    pub fn lacks(&mut self, path: Path, hosts: &[usize]) -> Result<Option<String>> {
        let placement = self.first_placement();
        for (at, &host) in hosts.iter().enumerate() {
            self.ensure(host, placement)?;
            // Each tries the next one: all pairs would be too many.
            let next = hosts[(at + 1) % hosts.len()];
            let key = (host, placement);
            let found = self.tool(key, path);
            if let Err(why) = found.and_then(|_| self.goes_on(key, next, path.library)) {
                return Ok(Some(format!("{}: {why}", self.name(host))));
            }
        }
        Ok(None)
    }

    fn one_job(
        &mut self,
        ask: &RanksAsk,
        job: &Job,
        keys: [(usize, Placement); 2],
    ) -> Result<Outcome> {
        let ran = match ask.path.library {
            Library::OpenMpi | Library::Mpich => self.by_mpi(ask, job, keys),
            Library::Pvm => self.by_pvm(ask, job, keys),
            Library::Native | Library::Ucx | Library::Ofi => self.by_agents(ask, job, keys),
        }?;
        self.outcome_of(ask, job, &ran)
    }

    /// What rank 0 reported.
    pub(crate) fn outcome_of(&self, ask: &RanksAsk, job: &Job, ran: &Ran) -> Result<Outcome> {
        let report = Report::find(&ran.output)
            .map_err(|error| failed(ask, &error, error.remedy()))?
            .ok_or_else(|| {
                let said = words(&ran.errors);
                let what = format!("rank 0 gave no report: it {}{said}", ran.told());
                failed(ask, what, "look at what it said, and at `sonde doctor`")
            })?;
        let names = [ask.between.src, ask.between.dst].map(|host| self.name(host).to_owned());
        let names = names.each_ref().map(String::as_str);
        let mut outcome = report
            .outcome(job, ran.began_ns, names)
            .map_err(|error| failed(ask, &error, error.remedy()))?;
        if !went_well(ran) {
            let told = format!("{}{}", ran.told(), words(&ran.errors));
            outcome.evidence.ranks.end = Some(told.into());
        }
        Ok(outcome)
    }

    /// Whether all hosts are this machine, which shares one memory among them.
    pub fn is_one_machine(&self) -> bool {
        self.machines.one_machine() || self.lab_info().is_some()
    }

    pub(crate) fn name(&self, host: usize) -> &str {
        self.hosts().get(host).map_or("", |host| &host.name)
    }

    /// Has an agent run a program to its end.
    fn run_program(
        &mut self,
        key: (usize, Placement),
        program: Program,
        attempt: &str,
    ) -> Result<Ran> {
        let limit = Duration::from_nanos(program.limit_ns);
        self.begin_program(key, program, attempt)?;
        self.end_program(key, limit + GRACE, attempt)
    }

    fn begin_program(
        &mut self,
        key: (usize, Placement),
        program: Program,
        attempt: &str,
    ) -> Result<()> {
        self.ensure(key.0, key.1)?;
        let name = self.name(key.0).to_owned();
        let Some(agent) = self.agents.0.get_mut(&key) else {
            unreachable!("it is checked");
        };
        let sent = agent.link().send(&Request::Run(program));
        sent.map_err(|error| FleetError::at(&name, attempt, &error, error.remedy()))
    }

    fn end_program(
        &mut self,
        key: (usize, Placement),
        timeout: Duration,
        attempt: &str,
    ) -> Result<Ran> {
        let name = self.name(key.0).to_owned();
        let gone = || FleetError::at(&name, attempt, "its agent is gone", "run it again");
        let agent = self.agents.0.get_mut(&key).ok_or_else(gone)?;
        match agent.link().answer("the end of a program", timeout) {
            Ok(Answer::Ran(ran)) => Ok(ran),
            Ok(other) => Err(FleetError::at(
                &name,
                attempt,
                format!("its agent broke the protocol: {other:?}"),
                "give both hosts the same version of sonde",
            )),
            Err(error) => Err(FleetError::at(&name, attempt, &error, error.remedy())),
        }
    }

    /// Ends what an agent runs, and hears its end.
    fn stop_program(&mut self, key: (usize, Placement), attempt: &str) -> Result<Ran> {
        if let Some(agent) = self.agents.0.get_mut(&key) {
            // Where it is gone, so is the program.
            drop(agent.link().send(&Request::Stop {}));
        }
        self.end_program(key, GRACE, attempt)
    }

    /// Where each rank runs: the first two where the pair does.
    pub(crate) fn seats(
        &self,
        ask: &RanksAsk,
        keys: [(usize, Placement); 2],
    ) -> Vec<(usize, Placement)> {
        let count = self.hosts().len();
        let mut order = vec![ask.between.src, ask.between.dst];
        let others = (1..count).map(|step| (ask.between.dst + step) % count);
        order.extend(others.filter(|host| *host != ask.between.src && self.alive(*host)));
        order.dedup();
        order.truncate(ask.spread.unwrap_or(count).max(1));
        let seat = |rank: usize| match rank {
            _ if order.len() == 1 => keys[0],
            0 | 1 => keys[rank],
            _ => (order[rank % order.len()], keys[1].1),
        };
        (0..ask.count).map(seat).collect()
    }

    /// Binds each rank where its agent is bound, in words for `sonde-rank`: what starts it may be bound elsewhere.
    fn bound(&self, job: &Job, seats: &[(usize, Placement)]) -> Vec<String> {
        let text = |seat: &(usize, Placement)| {
            let cpus = self.machines.cpus_of(seat.1);
            let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
            cpus.join(",")
        };
        let cpus: Vec<String> = seats.iter().map(text).collect();
        let is_known = cpus.iter().all(|cpus| !cpus.is_empty());
        match is_known && (seats.len() == 2 || job.task.is_program()) {
            true => vec!["--cpus".into(), cpus.join(":")],
            false => Vec::new(),
        }
    }

    /// What ranks on this machine, or in a lab on it, take from the environment of the command: where adapters are.
    pub(super) fn rank_environment(&self) -> BTreeMap<String, String> {
        if !self.is_one_machine() {
            return BTreeMap::new();
        }
        let names = ["HOME", sonde_message::adapters::VARIABLE];
        let known = names
            .into_iter()
            .filter_map(|name| Some((name.to_string(), std::env::var(name).ok()?)));
        known.collect()
    }
}

/// The whole time that ranks may take.
pub(crate) fn limit(job: &Job) -> Duration {
    START_LIMIT + job.duration_max()
}

/// The probe over a channel beside whose ends the first two ranks are placed.
const fn alike(task: &Task) -> Probe {
    match task {
        Task::Startup {} => Probe::Startup,
        Task::Latency(_) => Probe::Latency,
        Task::Stream { .. } => Probe::Stream,
        _ => Probe::Message,
    }
}

/// A start-up has one size: what one message sets up serves all others.
fn pieces(job: &Job) -> Vec<Job> {
    if job.task != (Task::Startup {}) {
        return vec![job.clone()];
    }
    let sizes = job.sizes_bytes.iter();
    let one = |size: &u64| {
        let mut job = job.clone();
        job.sizes_bytes = vec![*size];
        job
    };
    sizes.map(one).collect()
}

fn attempt(ask: &RanksAsk) -> String {
    format!("measure {} over {}", ask.job.name(), ask.path)
}

fn failed(ask: &RanksAsk, what: impl std::fmt::Display, remedy: impl Into<String>) -> FleetError {
    FleetError::of_all(attempt(ask), what, remedy)
}

/// Whether it did what it should.
fn went_well(ran: &Ran) -> bool {
    ran.end == EndOf::Itself && ran.code == Some(0)
}

/// A moment to wait between two looks.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_are_the_cause() {
        let errors = "-----\nmpirun noticed\n----\nsonde-rank: rank 1 on h2: it broke\nmore\n";
        assert_eq!(
            words(errors),
            "; it said: sonde-rank: rank 1 on h2: it broke"
        );
        assert_eq!(words("\n--\nno such file\n"), "; it said: no such file");
        let noticed =
            "mpirun noticed that process rank 1 with PID 7 on node h2 exited on signal 9 (Killed).";
        let errors = format!("Primary job terminated normally\n---\n{noticed}\nmore\n");
        assert_eq!(words(&errors), format!("; it said: {noticed}"));
        assert_eq!(words("---\n"), "");
    }

    #[test]
    fn the_stack_of_another_rank_is_no_cause() {
        let errors = "[vm:926:0:926] Caught signal 7 (Bus error: kill(2) or raise(3))
==== backtrace (tid:    926) ====
 5  /usr/lib/sonde/sonde-mpich.so(+0x3462) [0x7f46952df462]
 7  /tmp/sonde-rank(+0x254018) [0x5650b7c1c018]
=================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 925 RUNNING AT localhost
=   EXIT CODE: 9
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
";
        let wanted = "; it said: =   PID 925 RUNNING AT localhost / =   EXIT CODE: 9 / \
            YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)";
        assert_eq!(words(errors), wanted);
        // What a launcher says of the program is its own.
        let lacking = "execvp error on file /tmp/sonde-rank (No such file or directory)";
        assert_eq!(words(lacking), format!("; it said: {lacking}"));
    }
}
