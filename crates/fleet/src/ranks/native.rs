//! Ranks that no library starts: each by the agent of its host, at the same time.
//!
//! Model:   all are told how many they are, where rank 0 listens and the run's secret, in their environment. The port is
//!          drawn; where another program has it, the launch is made again with another one. The answer of rank 0 is
//!          awaited, then those of the others, who have ended by then or are stopped. Of failures the one is told that is
//!          not about another rank: a rank that was killed is named before those that missed it.
//! Checked: `the_cause_comes_first`; `lab_library` of the command.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use sonde_channel::{Woken, readable};
use sonde_message::{BEST, Library};
use sonde_probe::library::{Job, NATIVE, Native, Way};
use sonde_probe::{Program, Ran, token};

use super::{FOLLOW, GRACE, RanksAsk, attempt, failed, left, limit, went_well, words};
use crate::agent::Agent;
use crate::error::{FleetError, Result};
use crate::fleet::Fleet;
use crate::placement::Placement;

/// Ports that are drawn, below those that the kernel gives by itself.
const PORT_FIRST: u16 = 20_000;
const PORTS: u16 = 12_000;
/// Draws of a port.
const TRIES: u32 = 4;
/// Why there is no best of several networks, and what to do.
const NO_CHOICE: &str =
    "these hosts have one network in common, and the best is chosen among several";
const CHOICE: &str = "name the networks of real hosts, as in `--network a=eth0 --network b=eth1`, or a site whose hosts are on several segments";
/// What a rank says of a port that another program has.
const TAKEN: &str = "Address already in use";

type Seat = (usize, Placement);

/// Ranks that were started.
#[derive(Debug)]
pub(crate) struct BegunRanks {
    seats: Vec<Seat>,
    /// Each agent's ranks, that of rank 0 first.
    started: Vec<(Seat, Vec<usize>)>,
}

impl Fleet {
    pub(super) fn by_agents(&mut self, ask: &RanksAsk, job: &Job, keys: [Seat; 2]) -> Result<Ran> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.started_once(ask, job, keys) {
                Err(error) if error.happened.contains(TAKEN) && tries < TRIES => {}
                done => return done,
            }
        }
    }

    fn started_once(&mut self, ask: &RanksAsk, job: &Job, keys: [Seat; 2]) -> Result<Ran> {
        let begun = self.begin_ranks(ask, job, keys)?;
        self.end_ranks(ask, job, &begun)
    }

    /// Starts ranks, and waits for nothing.
    pub(crate) fn begin_ranks(
        &mut self,
        ask: &RanksAsk,
        job: &Job,
        keys: [Seat; 2],
    ) -> Result<BegunRanks> {
        let seats = self.seats(ask, keys);
        let attempt = attempt(ask);
        // Each agent starts one rank, which starts the others of its host.
        let mut started: Vec<(Seat, Vec<usize>)> = Vec::new();
        for (rank, seat) in seats.iter().enumerate() {
            match started.iter_mut().find(|(known, _)| known == seat) {
                Some((_, ranks)) => ranks.push(rank),
                None => started.push((*seat, vec![rank])),
            }
        }
        let meetings = self.meetings(ask, &seats)?;
        let mut under_way = Vec::new();
        for (seat, ranks) in &started {
            let program = self.rank_of(ask, job, *seat, ranks, &meetings[seat]);
            let begun = program.and_then(|program| self.begin_program(*seat, program, &attempt));
            if let Err(error) = begun {
                for (seat, _) in &started[..under_way.len()] {
                    drop(self.stop_program(*seat, &attempt));
                }
                return Err(error);
            }
            under_way.push(*seat);
        }
        Ok(BegunRanks { seats, started })
    }

    /// Waits for the ends of ranks that were started; rank 0's.
    pub(crate) fn end_ranks(
        &mut self,
        ask: &RanksAsk,
        job: &Job,
        BegunRanks { seats, started }: &BegunRanks,
    ) -> Result<Ran> {
        let attempt = attempt(ask);
        let mut ends: BTreeMap<usize, Result<Ran>> = BTreeMap::new();
        let first = self.end_program(started[0].0, limit(job) + GRACE, &attempt);
        let until = Instant::now() + FOLLOW;
        let went = first.as_ref().is_ok_and(went_well);
        ends.insert(0, first);
        for (seat, ranks) in started.iter().skip(1) {
            let timeout = if went { left(until).max(GRACE) } else { GRACE };
            let mut end = self.end_program(*seat, timeout, &attempt);
            if end.is_err() && self.agents.0.contains_key(seat) {
                end = self.stop_program(*seat, &attempt);
            }
            ends.insert(ranks[0], end);
        }
        self.cause(ask, seats, ends)
    }

    /// Ends ranks that were started.
    pub(crate) fn stop_ranks(&mut self, ask: &RanksAsk, begun: &BegunRanks) {
        let attempt = attempt(ask);
        for (seat, _) in &begun.started {
            drop(self.stop_program(*seat, &attempt));
        }
    }

    /// Which of several runs ends first, as far as its rank 0 tells; none once `stop` can be read.
    pub(crate) fn first_to_end(
        &self,
        all: &[(RanksAsk, BegunRanks)],
        stop: BorrowedFd<'_>,
    ) -> Option<usize> {
        let first = all.iter().map(|(_, begun)| begun.started[0].0);
        let first = first.map(|seat| self.agents.0.get(&seat).and_then(Agent::fd));
        let Some(first) = first.collect::<Option<Vec<_>>>() else {
            // One is gone, which its end says.
            return Some(0);
        };
        let timeout = all.iter().map(|(ask, _)| limit(&ask.job)).max()?;
        match readable(&[&[stop], &first[..]].concat(), timeout + GRACE) {
            Ok(Woken::Readable(at)) => at.checked_sub(1),
            Ok(Woken::Silence) | Err(_) => Some(0),
        }
    }

    /// What the ranks of each seat are told, but for their numbers.
    fn meetings(&self, ask: &RanksAsk, seats: &[Seat]) -> Result<BTreeMap<Seat, Native>> {
        let secret = || token().map_err(|error| failed(ask, &error, error.remedy()));
        let (token, drawn) = (secret()?, secret()?);
        // UCX and libfabric find each other by the native engine's sockets.
        let transport = match ask.path.library {
            Library::Native => ask.path.transport,
            _ if ask.path.is_within_machine() => "unix",
            _ => "tcp",
        };
        let hosts: Vec<usize> = seats.iter().map(|seat| seat.0).collect();
        let networks = match transport {
            "tcp" => {
                let addresses = hosts.iter().map(|host| self.address_of(*host));
                vec![(transport.to_owned(), addresses.collect())]
            }
            BEST => self.common(&hosts),
            _ => Vec::new(),
        };
        if transport == BEST && networks.len() < 2 {
            return Err(failed(ask, NO_CHOICE, CHOICE));
        }
        let number = u16::from_str_radix(&drawn[..4], 16).unwrap_or(0);
        let port = PORT_FIRST + number % PORTS;
        let by_name = Way {
            name: transport.into(),
            meeting: drawn,
            own: None,
        };
        let told = |at: usize| {
            let by_address = networks.iter().map(|(name, addresses)| Way {
                name: name.clone(),
                meeting: SocketAddr::new(addresses[0], port).to_string(),
                own: Some(addresses[at]),
            });
            Native {
                rank: 0,
                size: seats.len(),
                beside: Vec::new(),
                transport: transport.into(),
                ways: match networks.is_empty() {
                    true => vec![by_name.clone()],
                    false => by_address.collect(),
                },
                token: token.clone(),
                timeout_ns: ask.job.timeout_ns,
            }
        };
        let each = seats.iter().enumerate();
        Ok(each.map(|(at, seat)| (*seat, told(at))).collect())
    }

    /// The program of a rank and those beside it.
    fn rank_of(
        &mut self,
        ask: &RanksAsk,
        job: &Job,
        seat: Seat,
        ranks: &[usize],
        meeting: &Native,
    ) -> Result<Program> {
        let program = self
            .tool(seat, ask.path)
            .map_err(|why| FleetError::at(self.name(seat.0), attempt(ask), why, ""))?;
        let told = Native {
            rank: ranks[0],
            beside: ranks[1..].to_vec(),
            ..meeting.clone()
        };
        let mut words = vec![program];
        match ask.path.library {
            Library::Native => words.push("--native".into()),
            _ => words.extend(["--adapter".into(), ask.path.to_string()]),
        }
        if ask.path.library == Library::Ucx && !ask.path.is_within_machine() {
            let device = format!("device={}", self.launch_interface(seat.0));
            words.extend(["--set".into(), device]);
        }
        if ask.path.library == Library::Ofi && !ask.path.is_within_machine() {
            let address = format!("address={}", self.address_of(seat.0));
            words.extend(["--set".into(), address]);
        }
        words.push(job.text());
        let mut program = Program::new(words, limit(job));
        let text = serde_json::to_string(&told);
        let text = text.map_err(|error| failed(ask, error, "report this"))?;
        program.environment = self.rank_environment();
        program.environment.insert(NATIVE.into(), text);
        Ok(program)
    }

    /// Rank 0's end where all went well; else the failure that explains the others.
    fn cause(
        &self,
        ask: &RanksAsk,
        seats: &[Seat],
        mut ends: BTreeMap<usize, Result<Ran>>,
    ) -> Result<Ran> {
        let mut told: Vec<(u32, String)> = Vec::new();
        for (rank, end) in &ends {
            let host = self.name(seats[*rank].0);
            match end {
                Ok(ran) if went_well(ran) => {}
                Ok(ran) => {
                    let text =
                        format!("rank {rank} on {host} {}{}", ran.told(), words(&ran.errors));
                    told.push((weight(ran), text));
                }
                // An agent that is gone explains everything.
                Err(error) => told.push((0, error.to_string())),
            }
        }
        told.sort();
        if told.is_empty() {
            if let Some(ended) = ends.remove(&0) {
                return ended;
            }
        }
        let told: Vec<String> = told.into_iter().take(2).map(|(_, text)| text).collect();
        Err(failed(
            ask,
            told.join("; "),
            "look at what each rank said; more time: `--budget`",
        ))
    }
}

/// The least explains most: killed, then its own trouble, then trouble with another rank, then stopped.
fn weight(ran: &Ran) -> u32 {
    let about_others = ["is gone", "nothing moved", "has not come", "have not come"];
    match (ran.end, ran.signal) {
        (sonde_probe::EndOf::Itself, Some(_)) => 1,
        (sonde_probe::EndOf::Itself, None)
            if !about_others.iter().any(|words| ran.errors.contains(words)) =>
        {
            2
        }
        (sonde_probe::EndOf::Itself, None) => 3,
        (sonde_probe::EndOf::Limit, _) => 4,
        (sonde_probe::EndOf::Stop, _) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_probe::EndOf;

    fn ran(end: EndOf, code: Option<i32>, signal: Option<i32>, errors: &str) -> Ran {
        Ran {
            end,
            code,
            signal,
            output: String::new(),
            output_beyond: 0,
            errors: errors.into(),
            began_ns: 0,
            took_ns: 0,
        }
    }

    #[test]
    fn the_cause_comes_first() {
        let killed = ran(EndOf::Itself, None, Some(9), "");
        let broken = ran(EndOf::Itself, Some(1), None, "byte 3 of message 7");
        let missed = ran(
            EndOf::Itself,
            Some(1),
            None,
            "rank 1 is gone while receiving",
        );
        let stopped = ran(EndOf::Stop, None, Some(15), "");
        let weights = [&killed, &broken, &missed, &stopped].map(weight);
        assert!(weights.is_sorted(), "{weights:?}");
    }
}
