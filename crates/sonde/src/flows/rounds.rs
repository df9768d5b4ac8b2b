//! Which flows go at once, and for how long.
//!
//! Model:   a set has a round for each kind and number of senders. A matrix has, for each matching, one of latency, one of streams
//!          each way, and one of both ways; all matchings up to 64 hosts, with `--quick` up to
//!          16, six of random ones above. Incast
//!          has rounds of no sender to all, each with the canary.
//! Checked: `the_same_way_is_never_twice_in_a_row`, `an_order_of_chance_keeps_the_same_way_apart`; `tests/lab_pattern.rs`, `tests/lab_verdict.rs`.

use super::{Flows, Shape};
use crate::failure::Failure;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_fleet::Round;
use sonde_probe::pattern::sets::{self, Pair};
use sonde_probe::pattern::{Kind, What};
use sonde_report::matrix::{self, LeftOpen, Suspects};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const STREAM_BYTES: u64 = 64 << 10;
/// Matchings of a quick matrix, and of one of many hosts.
const MATCHINGS_QUICK: usize = 6;
const HOSTS_FOR_ALL: usize = 64;
/// A quick one of so few hosts has all: a single bad way is in only one of them.
const HOSTS_FOR_ALL_QUICK: usize = 16;
/// Good hosts that a suspicious one is measured against, and pairs of good ones beside.
const PARTNERS: usize = matrix::RETEST.partners;
/// The most that is measured again.
const HOSTS_AGAIN: usize = 8;
const PAIRS_AGAIN: usize = 12;

/// Lead and window of a stream that is measured again.
const RETEST: (Duration, Duration) = (
    ms(50),
    Duration::from_nanos(matrix::RETEST.stream_ns).saturating_sub(ms(50)),
);

/// Why a pair is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Together,
    /// As before, since a disturbance left open what it is: for the first time (0), or for the second.
    Anew(usize),
    Again,
    Alone,
    Reference,
}

impl Stage {
    /// Whether its rounds are those of the first measurement.
    pub fn is_as_first(self) -> bool {
        matches!(self, Self::Together | Self::Anew(_))
    }

    /// As a knob; none for the first measurement.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Together => None,
            Self::Anew(time) => matrix::ANEW.get(time).copied(),
            Self::Again => Some("again"),
            Self::Alone => Some("alone"),
            Self::Reference => Some("reference"),
        }
    }
}

/// A round, and what its cells are called.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundRequest {
    pub round: Round,
    /// Of the pattern's knob.
    pub pattern: String,
    /// Of the cells' mode.
    pub mode: &'static str,
    pub senders: Option<usize>,
    pub stage: Stage,
    /// Whether the flows have a cell together.
    pub sum: bool,
}

impl RoundRequest {
    /// Whether a pair of hosts is in both rounds.
    fn shares_with(&self, other: &Self) -> bool {
        let ways = |asked: &Self| -> BTreeSet<Pair> {
            let flows = asked.round.flows.iter();
            flows.map(|(a, b, _)| (*a.min(b), *a.max(b))).collect()
        };
        !ways(self).is_disjoint(&ways(other))
    }

    pub fn flows(&self) -> usize {
        self.round.flows.len()
    }

    /// Whether all flows of a kind have a cell together; who only asks beside an incast is alone.
    pub fn has_sum(&self, kind: Kind) -> bool {
        self.sum && (self.pattern != "incast" || kind == Kind::Stream)
    }

    /// Of its first flow: an incast's canary comes last.
    pub fn path(&self) -> &'static str {
        let first = self.round.flows.first();
        first.map_or("tcp", |(_, _, what)| path(what.kind))
    }

    pub fn estimate_ns(&self) -> u64 {
        let span = self.round.lead + self.round.window + self.round.window / 4;
        u64::try_from(span.as_nanos()).unwrap_or(u64::MAX) + 100_000_000
    }
}

/// The path by which a flow of this kind goes.
pub fn path(kind: Kind) -> &'static str {
    match kind {
        Kind::LatencyUdp => "udp",
        _ => "tcp",
    }
}

/// 0 to `count`, in an order drawn from the seed.
pub fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    order
}

/// The rounds of a launch in an order drawn from the seed, in which no pair is in two after each other where that can be: what is left in a
/// slow way's queue would keep the next flow from being let in.
pub fn in_order(asked: &[RoundRequest], seed: u64) -> Vec<&RoundRequest> {
    let mut rest: Vec<&RoundRequest> = shuffled(asked.len(), seed)
        .into_iter()
        .map(|at| &asked[at])
        .collect();
    let mut order: Vec<&RoundRequest> = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let next = rest
            .iter()
            .position(|one| order.last().is_none_or(|last| !one.shares_with(last)));
        order.push(rest.remove(next.unwrap_or(0)));
    }
    order
}

fn span(span: sonde_units::Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The rounds of one kind after those of another, with good pairs between the suspects: what one of them left in a slow way's
/// queue is gone when the same way is measured next.
fn apart(
    again: &[Vec<RoundRequest>],
    alone: &[Vec<RoundRequest>],
    references: &[Vec<RoundRequest>],
) -> Vec<RoundRequest> {
    let (some, others) = references.split_at(references.len().div_ceil(2));
    let parts = [again, some, alone, others];
    let kinds = parts.iter().flat_map(|part| part.iter());
    let kinds = kinds.map(Vec::len).max().unwrap_or(0);
    let of = |kind: usize| {
        let rounds = parts.iter().flat_map(|part| part.iter());
        rounds.filter_map(move |rounds| rounds.get(kind).cloned())
    };
    (0..kinds).flat_map(of).collect()
}

impl Flows {
    /// All rounds of a launch among so many hosts.
    pub fn rounds(&self, hosts: usize) -> Result<Vec<RoundRequest>, Failure> {
        let mut all = Vec::new();
        for shape in &self.shapes {
            match shape {
                Shape::AllPairs => all.extend(self.matrix(hosts)?),
                Shape::Incast => all.extend(self.incast(hosts)?),
                Shape::Set(set) => {
                    let most = set.senders(hosts).map_err(Failure::usage)?;
                    let (low, high) = self.senders.unwrap_or((most, most));
                    for senders in low..=high {
                        let pairs = set.of_senders(hosts, senders).map_err(Failure::usage)?;
                        for what in &self.kinds {
                            all.push(RoundRequest {
                                senders: self.senders.map(|_| senders),
                                ..self.one(&set.to_string(), what.kind(), &pairs)
                            });
                        }
                    }
                }
            }
        }
        Ok(all)
    }

    /// A round of flows of one kind, with the usual times where none were given.
    fn one(&self, pattern: &str, kind: Kind, pairs: &[Pair]) -> RoundRequest {
        let latency = matches!(kind, Kind::Latency | Kind::LatencyUdp);
        let size_bytes = self
            .size_bytes
            .unwrap_or(if latency { 1 } else { STREAM_BYTES });
        let (lead, window) = match (kind, self.quick) {
            (Kind::Stream, true) => (ms(100), ms(300)),
            (Kind::Stream, false) => (ms(1_000), ms(1_000)),
            (_, true) => (ms(20), ms(300)),
            (_, false) => (ms(100), ms(1_500)),
        };
        let what = What { kind, size_bytes };
        RoundRequest {
            round: Round {
                flows: pairs.iter().map(|(a, b)| (*a, *b, what)).collect(),
                lead: self.lead.map_or(lead, span),
                window: self.window.map_or(window, span),
                gap: span(self.gap),
                samples_max: self.samples,
            },
            pattern: pattern.to_owned(),
            mode: kind.name(),
            senders: None,
            stage: Stage::Together,
            sum: true,
        }
    }

    /// The four rounds of disjoint pairs.
    fn of_pairs(&self, pairs: &[Pair], stage: Stage) -> Vec<RoundRequest> {
        let back: Vec<Pair> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        let both: Vec<Pair> = pairs.iter().chain(&back).copied().collect();
        let retest = !stage.is_as_first();
        let quick = self.quick || retest;
        let (lead, window) = match (retest, quick) {
            (true, _) => RETEST,
            (false, true) => (ms(50), ms(150)),
            (false, false) => (ms(200), ms(500)),
        };
        let round = |mode: &'static str, kind: Kind, pairs: &[Pair]| {
            let mut asked = self.one(sonde_report::matrix::ALL_PAIRS, kind, pairs);
            (asked.mode, asked.stage, asked.sum) = (mode, stage, false);
            asked.round.lead = self.lead.map_or(lead, span);
            asked.round.window = self.window.map_or(window, span);
            if kind == Kind::Latency {
                asked.round.lead = ms(10);
                if retest && self.window.is_none() {
                    asked.round.window = ms(150);
                }
                if !quick {
                    asked.round.window = asked.round.window.max(ms(1_500));
                }
            }
            asked
        };
        vec![
            round("latency", Kind::Latency, pairs),
            round("stream", Kind::Stream, pairs),
            round("stream", Kind::Stream, &back),
            round("duplex", Kind::Stream, &both),
        ]
    }

    fn matchings(&self, hosts: usize) -> Vec<Vec<Pair>> {
        let all = if self.quick {
            HOSTS_FOR_ALL_QUICK
        } else {
            HOSTS_FOR_ALL
        };
        if hosts > all {
            sets::random_matchings(hosts, MATCHINGS_QUICK, self.seed)
        } else {
            sets::matchings(hosts)
        }
    }

    fn matrix(&self, hosts: usize) -> Result<Vec<RoundRequest>, Failure> {
        if self.senders.is_some() || self.size_bytes.is_some() {
            return Err(Failure::usage(
                "all-pairs measures every host in each size that it needs: leave `--senders` and `--size` out",
            ));
        }
        let of = |pairs: &Vec<Pair>| self.of_pairs(pairs, Stage::Together);
        Ok(self.matchings(hosts).iter().flat_map(of).collect())
    }

    /// What is measured anew, for the first time (0) or the second: the rounds of which disturbances left a flow open, as they were. None
    /// where these are more than half of all: the machine is no quieter then.
    pub fn anew(&self, names: &[String], open: &LeftOpen, time: usize) -> Vec<RoundRequest> {
        let name = |host: usize| names.get(host).cloned().unwrap_or_default();
        let is_open = |asked: &RoundRequest| {
            let flows = asked.round.flows.iter();
            let mut flows = flows.map(|(src, dst, _)| (asked.mode, name(*src), name(*dst)));
            flows.any(|flow| open.flows.contains(&flow))
        };
        let of = |pairs: &Vec<Pair>| self.of_pairs(pairs, Stage::Anew(time));
        let all: Vec<RoundRequest> = self.matchings(names.len()).iter().flat_map(of).collect();
        let open: Vec<RoundRequest> = all.iter().filter(|asked| is_open(asked)).cloned().collect();
        match 2 * open.len() > all.len() {
            true => Vec::new(),
            false => open,
        }
    }

    /// What is measured again: matchings that suspects were in, suspects alone, and others alone.
    pub fn retest(&self, names: &[String], suspects: &Suspects) -> Vec<RoundRequest> {
        let number: BTreeMap<&str, usize> = names
            .iter()
            .enumerate()
            .map(|(number, name)| (name.as_str(), number))
            .collect();
        let of = |name: &String| number.get(name.as_str()).copied();
        let hosts: Vec<usize> = suspects
            .hosts
            .iter()
            .filter_map(of)
            .take(HOSTS_AGAIN)
            .collect();
        let good: Vec<usize> = suspects.good.iter().filter_map(of).collect();
        let pairs: BTreeSet<Pair> = suspects
            .pairs
            .iter()
            .filter_map(|(a, b)| Some((of(a)?, of(b)?)))
            .map(|(a, b)| (a.min(b), a.max(b)))
            .take(PAIRS_AGAIN)
            .collect();
        let mut again = Vec::new();
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        for matching in self.matchings(names.len()) {
            let mut wanted = false;
            for (a, b) in &matching {
                wanted |= pairs.contains(&(*a.min(b), *a.max(b)));
                for host in [a, b].into_iter().filter(|host| hosts.contains(host)) {
                    let times = seen.entry(*host).or_default();
                    *times += 1;
                    wanted |= *times <= PARTNERS;
                }
            }
            if wanted {
                again.push(self.of_pairs(&matching, Stage::Again));
            }
        }
        let references: Vec<Pair> = good
            .chunks_exact(2)
            .map(|pair| (pair[0].min(pair[1]), pair[0].max(pair[1])))
            .filter(|pair| !pairs.contains(pair))
            .take(PARTNERS)
            .collect();
        let mut alone: BTreeSet<Pair> = pairs;
        for (at, host) in hosts.iter().enumerate() {
            // Each with others, so that no good host is in all.
            let partners = good
                .iter()
                .cycle()
                .skip(at * PARTNERS)
                .take(PARTNERS.min(good.len()));
            alone.extend(partners.map(|partner| (*host.min(partner), *host.max(partner))));
        }
        let one = |stage: Stage| move |pair: &Pair| self.of_pairs(&[*pair], stage);
        let alone: Vec<_> = alone.iter().map(one(Stage::Alone)).collect();
        let references: Vec<_> = references.iter().map(one(Stage::Reference)).collect();
        apart(&again, &alone, &references)
    }

    fn incast(&self, hosts: usize) -> Result<Vec<RoundRequest>, Failure> {
        if hosts < 3 {
            return Err(Failure::usage(
                "an incast needs three hosts: a server, a client and a sender; set `--hosts` to 3 or more",
            ));
        }
        let most = hosts - 2;
        let (low, high) = self.senders.unwrap_or((1, most));
        if high > most {
            return Err(Failure::usage(format!(
                "{high} hosts cannot send: of {hosts} one receives and one is the client; write at most {most}"
            )));
        }
        let canary = (
            hosts - 1,
            0,
            What {
                kind: Kind::Latency,
                size_bytes: 1,
            },
        );
        let round = |senders: usize| {
            let pairs: Vec<Pair> = (1..=senders).map(|from| (from, 0)).collect();
            let mut asked = self.one("incast", Kind::Stream, &pairs);
            asked.round.flows.push(canary);
            asked.senders = Some(senders);
            // A tail needs a thousand samples: a quick launch has none.
            if self.window.is_none() && !self.quick {
                asked.round.window = ms(1_500);
            }
            asked.round.gap = asked.round.gap.min(ms(1));
            asked
        };
        Ok(std::iter::once(0).chain(low..=high).map(round).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of which only the stage counts, and the pair.
    fn of(stage: Stage, pair: Pair) -> Vec<RoundRequest> {
        let round = |mode| RoundRequest {
            round: Round {
                flows: vec![(
                    pair.0,
                    pair.1,
                    What {
                        kind: Kind::Stream,
                        size_bytes: 1,
                    },
                )],
                lead: ms(1),
                window: ms(1),
                gap: ms(1),
                samples_max: 1,
            },
            pattern: "all-pairs".into(),
            mode,
            senders: None,
            stage,
            sum: false,
        };
        ["latency", "stream", "stream", "duplex"]
            .map(round)
            .to_vec()
    }

    #[test]
    fn what_is_open_is_measured_anew_as_it_was() {
        let flows = Flows {
            shapes: vec![Shape::AllPairs],
            kinds: Vec::new(),
            size_bytes: None,
            senders: None,
            window: None,
            lead: None,
            gap: sonde_units::Span::ZERO,
            samples: 100,
            quick: true,
            seed: 1,
        };
        let names: Vec<String> = (1..=8).map(|number| format!("h{number}")).collect();
        let open = |flows: &[(&'static str, &str, &str)]| LeftOpen {
            flows: (flows.iter())
                .map(|(mode, src, dst)| (*mode, (*src).to_owned(), (*dst).to_owned()))
                .collect(),
            whose: Vec::new(),
        };
        let first = flows.rounds(8).unwrap();
        let some = [
            ("stream", "h5", "h2"),
            ("stream", "h2", "h5"),
            ("duplex", "h3", "h7"),
        ];
        for time in [0, 1] {
            let anew = flows.anew(&names, &open(&some), time);
            assert_eq!(anew.len(), 3, "{anew:?}");
            for asked in &anew {
                assert_eq!(asked.stage.name(), Some(matrix::ANEW[time]));
                // Nothing but the name differs from a round of the first measurement.
                let as_first = RoundRequest {
                    stage: Stage::Together,
                    ..asked.clone()
                };
                assert!(first.contains(&as_first), "{asked:?}");
            }
        }
        assert_eq!(flows.anew(&names, &open(&[]), 0), []);
        // All that is open is most of it.
        let ways = names.iter().flat_map(|a| names.iter().map(move |b| (a, b)));
        let all = ways.filter(|(a, b)| a != b).flat_map(|(a, b)| {
            ["latency", "stream", "duplex"].map(|mode| (mode, a.as_str(), b.as_str()))
        });
        let all: Vec<_> = all.collect();
        assert_eq!(flows.anew(&names, &open(&all), 0), []);
    }

    #[test]
    fn an_order_of_chance_keeps_the_same_way_apart() {
        let asked: Vec<RoundRequest> = (0..5)
            .flat_map(|n| of(Stage::Together, (2 * n, 2 * n + 1)))
            .collect();
        for seed in 0..50 {
            let order = in_order(&asked, seed);
            assert_eq!(order.len(), asked.len());
            let near = order
                .windows(2)
                .filter(|two| two[0].shares_with(two[1]))
                .count();
            // Two may be left over at the end.
            assert!(near <= 3, "{seed}: {near}");
        }
        assert_eq!(in_order(&asked[..4], 1).len(), 4);
    }

    #[test]
    fn the_same_way_is_never_twice_in_a_row() {
        let references = [(4, 5), (6, 7), (8, 9)].map(|pair| of(Stage::Reference, pair));
        let again = [of(Stage::Again, (0, 1))];
        let alone = [of(Stage::Alone, (0, 1))];
        let all = apart(&again, &alone, &references);
        assert_eq!(all.len(), 4 * 5);
        let pair = |asked: &RoundRequest| (asked.round.flows[0].0, asked.round.flows[0].1);
        assert!(all.windows(2).all(|two| pair(&two[0]) != pair(&two[1])));
        let kinds: Vec<&str> = all.iter().map(|asked| asked.mode).collect();
        assert_eq!(kinds[..5], ["latency"; 5]);
        assert_eq!(kinds[15..], ["duplex"; 5]);
    }
}
