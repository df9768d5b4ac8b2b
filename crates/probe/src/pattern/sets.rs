//! Sets of ordered pairs: who sends to whom at once. Pure.
//!
//! Model:   hosts are 0 to N-1. `even-next` {i to i+1, i even}; `odd-previous` {i to i-1, i odd}; `half-ring` {i to i+N/2,
//!          i < N/2}; `shift:K` {i to i+K}; `reverse:K` {i to i-K}, all modulo N; `all-to-one`, `one-to-all`, `all-to-all`;
//!          `neighbours` {i to i+1 and back}, an open line; `natural-ring` the same, closed; `random-ring:SEED` the same over hosts
//!          in a random order; `random:SEED` a permutation without fixed points; or pairs by name, `h1>h2,h3>h4`. Senders
//!          are swept by taking the flows of the first senders, in the order of hosts. Matchings are rounds of disjoint
//!          pairs by the circle method: every pair is in exactly one.
//! Source:  the SCI study's sets (C23 to C28); HPCC b_eff for the rings; Fisher and Yates after Knuth, TAOCP 2 §3.4.2,
//!          repeated until nothing stays in place, so that every derangement is as likely as any other (Sattolo's would
//!          give cycles only); SplitMix64 of Steele, Lea and Flood 2014. Deviations: none.
//! Checked: `the_sets_of_the_study`, `random_permutations_are_uniform`, `every_pair_is_in_one_matching`, `texts_round_trip`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An ordered pair of hosts, from the first to the second.
pub type Pair = (usize, usize);

/// A set of ordered pairs for any number of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Set {
    /// Each host of an even number to the next.
    EvenNext,
    /// Each host of an odd number to the one before.
    OddPrevious,
    /// Each host of the first half to the one half a ring away.
    HalfRing,
    /// Each host to the one so many further.
    Shift(usize),
    /// Each host to the one so many before.
    Reverse(usize),
    /// All others to the first.
    AllToOne,
    /// The first to all others.
    OneToAll,
    /// Each to each.
    AllToAll,
    /// Each host to both of its neighbours in an open line.
    Neighbours,
    /// Each host to both of its neighbours in a ring.
    NaturalRing,
    /// The same, in an order drawn from the seed.
    RandomRing(u64),
    /// A permutation without fixed points, drawn from the seed.
    Random(u64),
    /// These, counted from 0.
    Pairs(Vec<Pair>),
}

/// Why a text names no set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no pattern `{text}`: {problem}")]
pub struct SetError {
    /// What was written.
    pub text: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

pub(super) const NAMES: &str = "write even-next, odd-previous, half-ring, shift:1, reverse:1, all-to-one, one-to-all, all-to-all, neighbours, \
    natural-ring, random-ring:7, random:7 or pairs as h1>h2,h3>h4; of all hosts together all-pairs or incast";

impl Set {
    /// Its pairs among `hosts`, in the order of their senders.
    ///
    /// # Errors
    /// The set needs more hosts, or sends from a host to itself.
    pub fn pairs(&self, hosts: usize) -> Result<Vec<Pair>, SetError> {
        let refuse = |problem: String| {
            Err(SetError {
                text: self.to_string(),
                problem,
            })
        };
        if hosts < 2 {
            return refuse("it needs at least two hosts".into());
        }
        let n = hosts;
        let ring = |order: &[usize]| {
            let count = order.len();
            let both = |at: usize| {
                let next = (order[at], order[(at + 1) % count]);
                let previous = (order[at], order[(at + count - 1) % count]);
                [next, previous]
            };
            let pairs: BTreeSet<Pair> = (0..count).flat_map(both).collect();
            pairs.into_iter().collect::<Vec<_>>()
        };
        Ok(match self {
            Self::EvenNext => (0..n - 1).step_by(2).map(|i| (i, i + 1)).collect(),
            Self::OddPrevious => (1..n).step_by(2).map(|i| (i, i - 1)).collect(),
            Self::HalfRing => (0..n / 2).map(|i| (i, i + n / 2)).collect(),
            Self::Shift(by) | Self::Reverse(by) if by % n == 0 => {
                return refuse(format!(
                    "a shift by {by} of {n} hosts is from each to itself"
                ));
            }
            Self::Shift(by) => (0..n).map(|i| (i, (i + by) % n)).collect(),
            Self::Reverse(by) => (0..n).map(|i| (i, (i + n - by % n) % n)).collect(),
            Self::AllToOne => (1..n).map(|i| (i, 0)).collect(),
            Self::OneToAll => (1..n).map(|i| (0, i)).collect(),
            Self::AllToAll => (0..n)
                .flat_map(|i| (0..n).filter(move |j| *j != i).map(move |j| (i, j)))
                .collect(),
            Self::Neighbours => (0..n)
                .flat_map(|i| {
                    let before = i.checked_sub(1).map(|before| (i, before));
                    let after = (i + 1 < n).then_some((i, i + 1));
                    [before, after].into_iter().flatten()
                })
                .collect(),
            Self::NaturalRing => ring(&(0..n).collect::<Vec<_>>()),
            Self::RandomRing(seed) => ring(&Draw::new(*seed).permutation(n)),
            Self::Random(seed) => derangement(n, *seed).into_iter().enumerate().collect(),
            Self::Pairs(pairs) => {
                let beyond = pairs.iter().find(|(a, b)| *a >= n || *b >= n || a == b);
                if let Some((a, b)) = beyond {
                    return refuse(format!(
                        "h{}>h{} is not a pair of {n} different hosts",
                        a + 1,
                        b + 1
                    ));
                }
                pairs.clone()
            }
        })
    }

    /// The pairs of the first `senders` that send.
    ///
    /// # Errors
    /// Those of [`pairs`](Self::pairs); more senders than there are.
    pub fn of_senders(&self, hosts: usize, senders: usize) -> Result<Vec<Pair>, SetError> {
        let pairs = self.pairs(hosts)?;
        let sending: BTreeSet<usize> = pairs.iter().map(|pair| pair.0).collect();
        if senders == 0 || senders > sending.len() {
            return Err(SetError {
                text: self.to_string(),
                problem: format!(
                    "it has 1 to {} senders among {hosts} hosts, not {senders}",
                    sending.len()
                ),
            });
        }
        let first: BTreeSet<usize> = sending.into_iter().take(senders).collect();
        Ok(pairs
            .into_iter()
            .filter(|pair| first.contains(&pair.0))
            .collect())
    }

    /// How many hosts send.
    ///
    /// # Errors
    /// Those of [`pairs`](Self::pairs).
    pub fn senders(&self, hosts: usize) -> Result<usize, SetError> {
        let pairs = self.pairs(hosts)?;
        Ok(pairs
            .iter()
            .map(|pair| pair.0)
            .collect::<BTreeSet<_>>()
            .len())
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EvenNext => f.write_str("even-next"),
            Self::OddPrevious => f.write_str("odd-previous"),
            Self::HalfRing => f.write_str("half-ring"),
            Self::Shift(by) => write!(f, "shift:{by}"),
            Self::Reverse(by) => write!(f, "reverse:{by}"),
            Self::AllToOne => f.write_str("all-to-one"),
            Self::OneToAll => f.write_str("one-to-all"),
            Self::AllToAll => f.write_str("all-to-all"),
            Self::Neighbours => f.write_str("neighbours"),
            Self::NaturalRing => f.write_str("natural-ring"),
            Self::RandomRing(seed) => write!(f, "random-ring:{seed}"),
            Self::Random(seed) => write!(f, "random:{seed}"),
            Self::Pairs(pairs) => {
                let words: Vec<String> = pairs
                    .iter()
                    .map(|(a, b)| format!("h{}>h{}", a + 1, b + 1))
                    .collect();
                f.write_str(&words.join(","))
            }
        }
    }
}

/// Draws from a seed.
struct Draw(u64);

impl Draw {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`, each number as likely as any other.
    fn below(&mut self, bound: u64) -> u64 {
        let uneven = u64::MAX - u64::MAX % bound;
        loop {
            let drawn = self.next();
            if drawn < uneven {
                return drawn % bound;
            }
        }
    }

    fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for last in (1..n).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
        order
    }
}

/// A permutation that leaves nothing in place: 2.7 draws in the mean.
fn derangement(n: usize, seed: u64) -> Vec<usize> {
    let mut draw = Draw::new(seed);
    loop {
        let order = draw.permutation(n);
        if order.iter().enumerate().all(|(at, to)| at != *to) {
            return order;
        }
    }
}

/// Rounds of disjoint pairs: every pair of `hosts` is in exactly one round, in one order.
pub fn matchings(hosts: usize) -> Vec<Vec<Pair>> {
    matched(&(0..hosts).collect::<Vec<_>>())
}

/// So many of them, of hosts in an order drawn from the seed; all where there are no more.
pub fn random_matchings(hosts: usize, rounds: usize, seed: u64) -> Vec<Vec<Pair>> {
    let mut draw = Draw::new(seed);
    let order = draw.permutation(hosts);
    let all = matched(&order);
    let chosen = draw.permutation(all.len());
    chosen
        .into_iter()
        .take(rounds)
        .map(|at| all[at].clone())
        .collect()
}

/// The circle method: the first stays, the others go round; with an odd number one has a rest.
fn matched(order: &[usize]) -> Vec<Vec<Pair>> {
    let seats = order.len() + order.len() % 2;
    if order.len() < 2 {
        return Vec::new();
    }
    let moving = seats - 1;
    let round = |turn: usize| {
        let seat = |at: usize| {
            if at == 0 {
                0
            } else {
                1 + (at - 1 + turn) % moving
            }
        };
        (0..seats / 2)
            .filter_map(|at| {
                let (a, b) = (seat(at), seat(seats - 1 - at));
                Some((*order.get(a)?, *order.get(b)?))
            })
            .collect()
    };
    (0..moving).map(round).collect()
}

/// Rounds for pairs that must be measured alone with others around them: no host is in two pairs of a round.
pub fn disjoint_rounds(pairs: &[Pair]) -> Vec<Vec<Pair>> {
    let mut rounds: Vec<(BTreeSet<usize>, Vec<Pair>)> = Vec::new();
    let mut degree: BTreeMap<usize, usize> = BTreeMap::new();
    for pair in pairs {
        *degree.entry(pair.0).or_default() += 1;
        *degree.entry(pair.1).or_default() += 1;
    }
    let mut sorted = pairs.to_vec();
    sorted.sort_by_key(|(a, b)| std::cmp::Reverse(degree[a] + degree[b]));
    for (a, b) in sorted {
        let free = rounds
            .iter_mut()
            .find(|(busy, _)| !busy.contains(&a) && !busy.contains(&b));
        match free {
            Some((busy, round)) => {
                busy.extend([a, b]);
                round.push((a, b));
            }
            None => rounds.push((BTreeSet::from([a, b]), vec![(a, b)])),
        }
    }
    rounds.into_iter().map(|(_, round)| round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str, hosts: usize) -> Vec<Pair> {
        text.parse::<Set>().unwrap().pairs(hosts).unwrap()
    }

    #[test]
    fn the_sets_of_the_study() {
        assert_eq!(
            pairs("even-next", 10),
            [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
        );
        assert_eq!(
            pairs("odd-previous", 10),
            [(1, 0), (3, 2), (5, 4), (7, 6), (9, 8)]
        );
        assert_eq!(
            pairs("half-ring", 10),
            [(0, 5), (1, 6), (2, 7), (3, 8), (4, 9)]
        );
        let shift: Vec<Pair> = (0..10).map(|i| (i, (i + 1) % 10)).collect();
        assert_eq!(pairs("shift:1", 10), shift);
        assert_eq!(pairs("even-next", 3), [(0, 1)]);
        assert_eq!(
            pairs("reverse:3", 5),
            [(0, 2), (1, 3), (2, 4), (3, 0), (4, 1)]
        );
        assert_eq!(pairs("all-to-one", 3), [(1, 0), (2, 0)]);
        assert_eq!(pairs("one-to-all", 3), [(0, 1), (0, 2)]);
        assert_eq!(pairs("neighbours", 3), [(0, 1), (1, 0), (1, 2), (2, 1)]);
        assert_eq!(pairs("natural-ring", 2), [(0, 1), (1, 0)]);
        assert_eq!(pairs("natural-ring", 4).len(), 8);
        assert_eq!(pairs("h1>h2,h3>h2", 3), [(0, 1), (2, 1)]);
    }

    #[test]
    fn sets_hold_for_every_number_of_hosts() {
        for hosts in 2..=40 {
            for text in [
                "even-next",
                "odd-previous",
                "half-ring",
                "shift:1",
                "reverse:1",
                "all-to-one",
                "one-to-all",
                "all-to-all",
                "neighbours",
                "natural-ring",
                "random-ring:3",
                "random:3",
            ] {
                let all = pairs(text, hosts);
                let different: BTreeSet<&Pair> = all.iter().collect();
                assert_eq!(different.len(), all.len(), "{text} {hosts}");
                assert!(all.iter().all(|(a, b)| a != b && *a < hosts && *b < hosts));
                let set: Set = text.parse().unwrap();
                let senders = set.senders(hosts).unwrap();
                for count in 1..=senders {
                    let some = set.of_senders(hosts, count).unwrap();
                    let sending: BTreeSet<usize> = some.iter().map(|pair| pair.0).collect();
                    assert_eq!(sending.len(), count);
                }
                assert_eq!(set.of_senders(hosts, senders).unwrap(), all);
                assert!(set.of_senders(hosts, senders + 1).is_err());
            }
            assert_eq!(pairs("all-to-all", hosts).len(), hosts * (hosts - 1));
            for by in 1..hosts {
                let to: BTreeSet<usize> = pairs(&format!("shift:{by}"), hosts)
                    .iter()
                    .map(|p| p.1)
                    .collect();
                assert_eq!(to.len(), hosts, "a shift is a permutation");
            }
        }
    }

    #[test]
    fn texts_round_trip() {
        for text in [
            "even-next",
            "shift:3",
            "reverse:2",
            "random:9",
            "random-ring:1",
            "all-to-all",
            "h1>h2,h4>h3",
        ] {
            assert_eq!(text.parse::<Set>().unwrap().to_string(), text);
        }
        for (text, said) in [
            ("ring", "write even-next"),
            ("shift:x", "not a whole number"),
            ("all-to-one:3", "write even-next"),
            ("h1>h2,h1>h2", "write even-next"),
            ("h0>h1", "write even-next"),
        ] {
            let error = text.parse::<Set>().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let refused = |text: &str, hosts| {
            text.parse::<Set>()
                .unwrap()
                .pairs(hosts)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("shift:4", 4).contains("from each to itself"));
        assert!(refused("h1>h5", 4).contains("h1>h5 is not a pair of 4"));
        assert!(refused("all-to-all", 1).contains("at least two"));
    }

    #[test]
    fn random_permutations_are_uniform() {
        // Of four hosts there are nine derangements; 8 degrees of freedom: 26.1 is passed once in a thousand times.
        let draws = 9_000;
        let mut seen: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
        for seed in 0..draws {
            *seen.entry(derangement(4, seed)).or_default() += 1;
        }
        assert_eq!(seen.len(), 9);
        let expected = draws as f64 / 9.0;
        let chi: f64 = seen
            .values()
            .map(|n| (*n as f64 - expected).powi(2) / expected)
            .sum();
        assert!(chi < 26.1, "{chi} {seen:?}");
        // Of all permutations of five: 120, 119 degrees of freedom.
        let mut draw = Draw::new(5);
        let mut seen: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
        for _ in 0..60_000 {
            *seen.entry(draw.permutation(5)).or_default() += 1;
        }
        let chi: f64 = seen
            .values()
            .map(|n| (*n as f64 - 500.0).powi(2) / 500.0)
            .sum();
        assert!(seen.len() == 120 && chi < 172.0, "{chi}");
        assert_eq!(derangement(16, 7), derangement(16, 7));
    }

    #[test]
    fn every_pair_is_in_one_matching() {
        for hosts in 2..=33 {
            for rounds in [matchings(hosts), random_matchings(hosts, hosts, 9)] {
                let mut seen = BTreeSet::new();
                for round in &rounds {
                    let busy: BTreeSet<usize> = round.iter().flat_map(|(a, b)| [*a, *b]).collect();
                    assert_eq!(busy.len(), 2 * round.len(), "no host twice");
                    assert_eq!(round.len(), hosts / 2);
                    for (a, b) in round {
                        assert!(seen.insert((a.min(b).to_owned(), a.max(b).to_owned())));
                    }
                }
                assert_eq!(seen.len(), hosts * (hosts - 1) / 2);
            }
        }
        assert_eq!(random_matchings(1_000, 8, 1).len(), 8);
        assert_eq!(matchings(1), Vec::<Vec<Pair>>::new());
    }

    #[test]
    fn rounds_are_disjoint() {
        let star: Vec<Pair> = (1..6).map(|i| (0, i)).chain([(1, 2), (3, 4)]).collect();
        let rounds = disjoint_rounds(&star);
        assert_eq!(rounds.len(), 5);
        assert_eq!(rounds.iter().map(Vec::len).sum::<usize>(), 7);
        for round in rounds {
            let busy: BTreeSet<usize> = round.iter().flat_map(|(a, b)| [*a, *b]).collect();
            assert_eq!(busy.len(), 2 * round.len());
        }
    }
}
