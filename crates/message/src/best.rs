//! The best of several ways: for each pair and length the one that costs least.
//!
//! Model:   what a message of n bytes costs on a way follows from what messages of [`SIZES`] cost, by lines between these, by a table for
//!          each way and rank. A message goes by the way of the least cost (of equals the first), whole, as one message of that way. The
//!          messages of a pair are numbered; what comes early by a faster way waits until those before it are there, so that none
//!          overtakes another. A message thus never costs more than by the best single way, but for the head of 24 bytes and the
//!          search of the table (requirement N52).
//! Measured: in each of n rounds rank r meets (round - r) mod n, so that no rank is in two pairs of a round; first the lower of a pair
//!          measures, then the higher. A cost is the median time of messages with an empty answer, less the way of an empty one.
//! Units:   nanoseconds, bytes a second; costs are compared in picoseconds.
//! Checked: `no_message_costs_more_than_by_the_best_single_way`, `none_overtakes_another`, `collectives_go_by_the_best_way`,
//!          `costs_are_measured_between_all_pairs`; `a_message_takes_the_better_network` of the command.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::letters::{Carrier, Letter, Letters};
use crate::postbox::{Leaving, Postbox};
use crate::{Comm, Error, Messenger, Result, Source, Tag, Tagged};
use sonde_measure::Total;

/// A messenger over the best of several.
pub type Best<M> = Letters<Ways<M>>;

/// User bytes of the messages whose cost is measured.
pub const SIZES: [usize; 5] = [0, 1 << 10, 8 << 10, 64 << 10, 512 << 10];
const LARGEST: usize = SIZES[SIZES.len() - 1];
/// Messages of a size, of which the first is left out.
const TRIPS: usize = 6;
/// After a message that takes longer greater ones are not sent: their cost follows from the two before.
const LONG_NS: u64 = 50_000_000;
/// What a message that is measured asks for: an answer, or that none follows.
const TRIP: Tag = 0;
const END: Tag = 1;

/// What messages cost on a way to a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Of a message of each of [`SIZES`], none less than the one before.
    ns: [u64; SIZES.len()],
}

impl Cost {
    /// Of a way on which bytes follow the latency at one rate, at least 1.
    pub const fn linear(latency_ns: u64, bytes_per_s: u64) -> Self {
        let mut ns = [0; SIZES.len()];
        let mut at = 0;
        while at < SIZES.len() {
            let follow = SIZES[at] as u128 * 1_000_000_000 / bytes_per_s as u128;
            ns[at] = latency_ns + follow as u64;
            at += 1;
        }
        Self { ns }
    }

    /// Of a message of so many bytes, rounded down.
    pub fn picoseconds(&self, bytes: usize) -> u128 {
        let between = &SIZES[1..SIZES.len() - 1];
        let at = between.iter().take_while(|size| **size <= bytes).count();
        let (least, more) = (SIZES[at], SIZES[at + 1]);
        let rise_ns = u128::from(self.ns[at + 1] - self.ns[at]);
        let follow = (bytes - least) as u128 * rise_ns * 1_000 / (more - least) as u128;
        u128::from(self.ns[at]) * 1_000 + follow
    }

    /// That of a way to a rank, which answers meanwhile.
    fn measure(way: &mut impl Messenger, to: usize, bytes: &[u8]) -> Result<Self> {
        let mut ns = [0; SIZES.len()];
        let mut back_ns = 0;
        for (at, size) in SIZES.into_iter().enumerate() {
            ns[at] = match at.checked_sub(2) {
                Some(two) if ns[at - 1] > LONG_NS => {
                    let rise = u128::from(ns[at - 1] - ns[two]) * (size - SIZES[at - 1]) as u128;
                    ns[at - 1] + (rise / (SIZES[at - 1] - SIZES[two]) as u128) as u64
                }
                _ => {
                    let trip_ns = median_trip_ns(way, to, &bytes[..size])?;
                    if at == 0 {
                        back_ns = trip_ns / 2;
                    }
                    let before = ns[at.saturating_sub(1)];
                    trip_ns.saturating_sub(back_ns).max(before)
                }
            };
        }
        way.send(Comm::WORLD, to, END, &[])?;
        Ok(Self { ns })
    }
}

/// The median time of messages with an empty answer.
fn median_trip_ns(way: &mut impl Messenger, to: usize, bytes: &[u8]) -> Result<u64> {
    let mut trips = [0; TRIPS];
    for trip in &mut trips {
        let begin = Instant::now();
        way.send(Comm::WORLD, to, TRIP, bytes)?;
        way.recv(Comm::WORLD, Source::Rank(to), Tagged::With(TRIP), &mut [])?;
        *trip = begin.elapsed().as_nanos() as u64;
    }
    let counted = &mut trips[1..];
    counted.sort_unstable();
    Ok(counted[counted.len() / 2])
}

/// Answers a rank that measures.
fn answer(way: &mut impl Messenger, from: usize, room: &mut [u8]) -> Result<()> {
    loop {
        let asked = way.recv(Comm::WORLD, Source::Rank(from), Tagged::Any, room)?;
        if asked.tag == END {
            return Ok(());
        }
        way.send(Comm::WORLD, from, TRIP, &[])?;
    }
}

/// What messages cost on a way to each rank, found out by all ranks at once; none to itself.
fn costs(way: &mut impl Messenger) -> Result<Vec<Option<Cost>>> {
    let (rank, ranks) = (way.rank(Comm::WORLD), way.size(Comm::WORLD));
    let mut costs = vec![None; ranks];
    let mut room = vec![0; LARGEST];
    for round in 0..ranks {
        let other = (round + ranks - rank) % ranks;
        if other == rank {
            continue;
        }
        for measures in [rank.min(other), rank.max(other)] {
            if measures == rank {
                costs[other] = Some(Cost::measure(way, other, &room)?);
            } else {
                answer(way, other, &mut room)?;
            }
        }
    }
    Ok(costs)
}

/// What carries letters by the best way.
#[derive(Debug)]
pub struct Ways<M> {
    postboxes: Vec<Postbox<M>>,
    /// By rank, by way; none where a way does not lead there.
    costs: Vec<Vec<Option<Cost>>>,
    rank: usize,
    sent: Vec<u32>,
    expected: Vec<u32>,
    /// Letters that came before others of their sender, by sender and number.
    early: BTreeMap<(u32, u32), Letter>,
    come: VecDeque<Letter>,
    moved: u64,
    chosen: Vec<Total>,
    /// By way.
    names: Vec<String>,
}

impl<M: Messenger> Letters<Ways<M>> {
    /// Over ways with a name, whose costs are measured first. All ranks call it.
    ///
    /// # Errors
    /// As of [`new`](Self::new), and of messages.
    pub fn measured(ways: Vec<(String, M)>) -> Result<Self> {
        let (names, mut ways): (Vec<String>, Vec<M>) = ways.into_iter().unzip();
        let costs: Result<Vec<_>> = ways.iter_mut().map(costs).collect();
        let mut best = Self::new(ways, &costs?)?;
        best.carrier.names = names;
        Ok(best)
    }

    /// Over several messengers of the same ranks, each of which can probe. `costs[way][rank]` is what it costs from this rank;
    /// none where the way does not lead there. The ranks need not have the same costs.
    ///
    /// # Errors
    /// No way, or one that cannot probe; ways of different ranks; costs that are not one a way and rank; a rank to which none
    /// leads.
    pub fn new(ways: Vec<M>, costs: &[Vec<Option<Cost>>]) -> Result<Self> {
        let place = |way: &M| (way.rank(Comm::WORLD), way.size(Comm::WORLD));
        let argument = |what, value: String, wanted: String| Error::Argument {
            what,
            value,
            wanted,
        };
        let (rank, ranks) = ways
            .first()
            .map(place)
            .ok_or_else(|| argument("the number of ways", "0".into(), "at least 1".into()))?;
        if let Some(other) = ways.iter().map(place).find(|other| *other != (rank, ranks)) {
            let value = format!("rank {} of {}", other.0, other.1);
            return Err(argument(
                "a way",
                value,
                format!("rank {rank} of {ranks}, as the first"),
            ));
        }
        if costs.len() != ways.len() || costs.iter().any(|of| of.len() != ranks) {
            let value = format!(
                "{} rows of {:?}",
                costs.len(),
                costs.iter().map(Vec::len).max()
            );
            let wanted = format!("{} ways of {ranks} ranks", ways.len());
            return Err(argument("the table of costs", value, wanted));
        }
        let by_rank = |rank: usize| costs.iter().map(|of| of[rank]).collect();
        let by_rank: Vec<Vec<Option<Cost>>> = (0..ranks).map(by_rank).collect();
        let alone = |to: &usize| *to != rank && by_rank[*to].iter().all(Option::is_none);
        if let Some(to) = (0..ranks).find(alone) {
            let wanted = "the cost of one way at least".into();
            return Err(argument(
                "what leads to a rank",
                format!("nothing to rank {to}"),
                wanted,
            ));
        }
        let others: Vec<_> = (0..ranks).filter(|other| *other != rank).collect();
        let names = ways.iter().map(Messenger::library).collect();
        let postboxes: Result<Vec<_>> = ways
            .into_iter()
            .map(|way| Postbox::new(way, &others))
            .collect();
        let postboxes = postboxes?;
        Ok(Self::over(Ways {
            chosen: vec![Total::NONE; postboxes.len()],
            postboxes,
            costs: by_rank,
            rank,
            sent: vec![0; ranks],
            expected: vec![0; ranks],
            early: BTreeMap::new(),
            come: VecDeque::new(),
            moved: 0,
            names,
        }))
    }

    /// The way for a message of so many bytes to a rank; its own is not on any.
    pub fn way(&self, to: usize, bytes: usize) -> Option<usize> {
        self.carrier.way(to, bytes)
    }

    /// What went by each way, without heads.
    pub fn chosen(&self) -> &[Total] {
        &self.carrier.chosen
    }

    /// The messengers below.
    pub fn ways(&mut self) -> impl Iterator<Item = &mut M> {
        self.carrier
            .postboxes
            .iter_mut()
            .map(|postbox| &mut postbox.inner)
    }
}

impl<M> Ways<M> {
    fn way(&self, to: usize, bytes: usize) -> Option<usize> {
        if to == self.rank {
            return None;
        }
        let costs = self.costs[to].iter().enumerate();
        let costs = costs.filter_map(|(way, cost)| Some((cost.as_ref()?.picoseconds(bytes), way)));
        costs.min().map(|(_, way)| way)
    }

    /// Gives on what is next of its sender, and what waited for it.
    fn order(&mut self, letter: Letter) {
        let source = letter.head.source;
        let expected = &mut self.expected[source as usize];
        if letter.head.number != *expected {
            self.early.insert((source, letter.head.number), letter);
            return;
        }
        self.come.push_back(letter);
        *expected = expected.wrapping_add(1);
        while let Some(next) = self.early.remove(&(source, *expected)) {
            self.come.push_back(next);
            *expected = expected.wrapping_add(1);
        }
    }
}

impl<M: Messenger> Carrier for Ways<M> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.costs.len()
    }

    fn bytes_max(&self) -> u64 {
        let all = self.postboxes.iter();
        let all = all.map(|postbox| postbox.inner.capabilities().message_bytes_max);
        all.min().unwrap_or(0)
    }

    fn post(&mut self, mut letter: Letter) -> Result<()> {
        self.moved += 1;
        let (to, bytes) = (letter.head.to as usize, letter.payload().len());
        let Some(way) = self.way(to, bytes) else {
            self.come.push_back(letter);
            return Ok(());
        };
        letter.head.number = self.sent[to];
        self.sent[to] = self.sent[to].wrapping_add(1);
        self.chosen[way].add(bytes as u64);
        self.postboxes[way].post(to, letter.into_bytes())
    }

    fn poll(&mut self) -> Result<Option<Letter>> {
        if self.come.is_empty() {
            for way in 0..self.postboxes.len() {
                self.postboxes[way].progress()?;
                while let Some(bytes) = self.postboxes[way].take()? {
                    let letter = Letter::of_bytes(bytes, self.costs.len())?;
                    self.moved += 1;
                    self.order(letter);
                }
            }
        }
        Ok(self.come.pop_front())
    }

    fn moved(&self) -> u64 {
        self.moved
    }

    fn leave(&mut self, timeout: Duration) -> Result<()> {
        let (parent, children) = match self.rank {
            0 => (None, (1..self.costs.len()).collect()),
            _ => (Some(0), Vec::new()),
        };
        let mut leaving = Leaving::new(parent, children);
        let way_to = |rank| self.way(rank, 0).unwrap_or(0);
        let ways: Vec<_> = (0..self.costs.len()).map(way_to).collect();
        let begin = Instant::now();
        loop {
            // What comes now is of no call.
            while self.poll()?.is_some() {}
            let is_sent = self.postboxes.iter().all(Postbox::is_sent);
            if leaving.poll(&mut self.postboxes, |rank| ways[rank], is_sent)? {
                break;
            }
            if begin.elapsed() > timeout {
                return Err(Error::Silent {
                    rank: leaving.awaited(),
                    during: "ending together".into(),
                    timeout,
                });
            }
            std::thread::yield_now();
        }
        let mut ways = self.postboxes.iter_mut();
        ways.try_for_each(|postbox| postbox.inner.finish())
    }

    fn facts(&self) -> Result<sonde_measure::Library> {
        let ways = self.names.iter().zip(&self.chosen);
        let ways = ways.map(|(name, chosen)| format!("{name}: {} messages", chosen.messages));
        Ok(sonde_measure::Library {
            library: Some("best".into()),
            provider: Some(ways.collect::<Vec<_>>().join(", ").into()),
            ..sonde_measure::Library::default()
        })
    }

    fn abort(&mut self, why: &str) {
        let ways = self.postboxes.iter_mut();
        ways.for_each(|postbox| postbox.inner.abort(why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::{Choice, Communicator};
    use crate::counted::Counted;
    use crate::native::Memory;
    use crate::oracle;

    const KB: usize = 1_000;
    /// Shared memory among ranks of one half, a fast start, and a high rate.
    const NEAR: Cost = Cost::linear(300, 8_000_000_000);
    const QUICK: Cost = Cost::linear(40_000, 10_000_000);
    const BROAD: Cost = Cost::linear(200_000, 1_000_000_000);

    /// Runs ranks that each have a messenger of every way.
    fn run(ranks: usize, ways: usize, rank: impl Fn(Vec<Counted<Memory>>) + Sync) {
        let mut all: Vec<Vec<_>> = (0..ranks).map(|_| Vec::new()).collect();
        for _ in 0..ways {
            let way = Memory::all(ranks).into_iter().map(Counted::new);
            all.iter_mut()
                .zip(way)
                .for_each(|(ways, one)| ways.push(one));
        }
        std::thread::scope(|scope| {
            for ways in all {
                let rank = &rank;
                scope.spawn(move || rank(ways));
            }
        });
    }

    fn table(rank: usize, ranks: usize) -> Vec<Vec<Option<Cost>>> {
        let near = |other: usize| (other % 2 == rank % 2).then_some(NEAR);
        vec![
            (0..ranks).map(near).collect(),
            vec![Some(QUICK); ranks],
            vec![Some(BROAD); ranks],
        ]
    }

    /// The length of a message, of all sizes.
    fn length(from: usize, to: usize, number: usize) -> usize {
        (from * 7_919 + to * 104_729 + number * 15_485_863) % [10, 1_000, 20 * KB][number % 3]
    }

    /// Messages from each to each, received in order; their payload says which they are.
    fn all_pairs<M: Messenger>(messenger: &mut M, numbers: usize) {
        let (rank, size) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
        for number in 0..numbers {
            for to in 0..size {
                let mut payload = vec![rank as u8; length(rank, to, number) + 4];
                payload[..4].copy_from_slice(&(number as u32).to_le_bytes());
                messenger
                    .send(Comm::WORLD, to, number as Tag % 2, &payload)
                    .unwrap();
            }
        }
        let mut room = vec![0; 20 * KB + 4];
        for from in 0..size {
            for number in 0..numbers {
                let status =
                    messenger.recv(Comm::WORLD, Source::Rank(from), Tagged::Any, &mut room);
                let status = status.unwrap();
                assert_eq!(status.bytes, length(from, rank, number) + 4);
                assert_eq!(room[..4], (number as u32).to_le_bytes());
            }
        }
    }

    #[test]
    fn none_overtakes_another() {
        run(5, 3, |ways| {
            let costs = table(ways[0].rank(Comm::WORLD), 5);
            let mut best = Best::new(ways, &costs).unwrap();
            all_pairs(&mut best, 60);
            best.finish().unwrap();
            assert!(best.chosen().iter().all(|total| total.messages > 0));
        });
    }

    #[test]
    fn no_message_costs_more_than_by_the_best_single_way() {
        const RANKS: usize = 4;
        const NUMBERS: usize = 30;
        run(RANKS, 3, |ways| {
            let rank = ways[0].rank(Comm::WORLD);
            let costs = table(rank, RANKS);
            let mut best = Best::new(ways, &costs).unwrap();
            all_pairs(&mut best, NUMBERS);
            best.finish().unwrap();
            // What went by each way, as the way's own messenger counted it: one message a message, and its head.
            let mut spent = 0;
            let profiles: Vec<_> = best.ways().map(|way| way.profile()).collect();
            for (profile, costs) in profiles.iter().zip(&costs) {
                let phase = &profile.phases[0];
                let flows = phase.flows.iter().filter(|flow| flow.sent);
                for flow in flows.filter(|flow| flow.tag == crate::letters::LETTER_TAG) {
                    let cost = costs[flow.rank].expect("a way that leads there");
                    let heads = flow.total.messages * crate::letters::Head::BYTES as u64;
                    spent += u128::from(flow.total.messages) * cost.picoseconds(0);
                    spent +=
                        cost.picoseconds((flow.total.bytes - heads) as usize) - cost.picoseconds(0);
                }
            }
            let sent = |way: usize| -> Option<u128> {
                let to = (0..RANKS).filter(|to| *to != rank);
                let all = to.flat_map(|to| (0..NUMBERS).map(move |number| (to, number)));
                all.map(|(to, number)| {
                    Some(costs[way][to]?.picoseconds(length(rank, to, number) + 4))
                })
                .sum()
            };
            let single = [sent(1).unwrap(), sent(2).unwrap()];
            assert_eq!(sent(0), None, "it does not lead to all");
            assert!(
                spent < *single.iter().min().unwrap(),
                "{spent} of {single:?}"
            );
            let messages: u64 = best.chosen().iter().map(|total| total.messages).sum();
            assert_eq!(messages as usize, NUMBERS * (RANKS - 1));
            // Sums of rates are rounded once a flow, and single messages each.
            let least: u128 = (0..RANKS)
                .filter(|to| *to != rank)
                .flat_map(|to| (0..NUMBERS).map(move |number| (to, number)))
                .map(|(to, number)| {
                    let bytes = length(rank, to, number) + 4;
                    let all = costs.iter().filter_map(|of| of[to]);
                    all.map(|cost| cost.picoseconds(bytes)).min().unwrap()
                })
                .sum();
            assert!(
                spent.abs_diff(least) <= messages.into(),
                "{spent}, not {least}"
            );
        });
    }

    #[test]
    fn the_way_follows_the_table() {
        run(3, 3, |ways| {
            let rank = ways[0].rank(Comm::WORLD);
            let best = Best::new(ways, &table(rank, 3)).unwrap();
            for other in (0..3).filter(|other| *other != rank) {
                if other % 2 == rank % 2 {
                    assert_eq!(best.way(other, 1 << 20), Some(0));
                } else {
                    // 40 us and 100 ns a byte against 200 us and 1 ns a byte: they are equal between these.
                    assert_eq!(best.way(other, 1_616), Some(1));
                    assert_eq!(best.way(other, 1_617), Some(2));
                }
            }
            assert_eq!(best.way(rank, 1), None);
        });
    }

    #[test]
    fn costs_are_measured_between_all_pairs() {
        for ranks in [2, 3, 5] {
            run(ranks, 2, |ways| {
                let rank = ways[0].rank(Comm::WORLD);
                let names = ["a", "b"].map(String::from);
                let mut best = Best::measured(names.into_iter().zip(ways).collect()).unwrap();
                for (to, costs) in best.carrier.costs.iter().enumerate() {
                    assert_eq!(costs.iter().all(Option::is_some), to != rank, "{costs:?}");
                    for cost in costs.iter().flatten() {
                        assert!(cost.ns[0] > 0 && cost.ns.is_sorted(), "{cost:?}");
                    }
                }
                all_pairs(&mut best, 20);
                let facts = best.facts().unwrap();
                let provider = facts.provider.unwrap().to_string();
                let sent = |at: usize| -> usize {
                    let part = provider.split(", ").nth(at).unwrap();
                    let count = part.split(' ').nth(1).unwrap();
                    count.parse().unwrap()
                };
                assert!(provider.starts_with("a: "), "{provider}");
                assert_eq!(sent(0) + sent(1), 20 * (ranks - 1), "{provider}");
                best.finish().unwrap();
            });
        }
    }

    #[test]
    fn between_sizes_a_cost_follows_a_line() {
        let cost = Cost {
            ns: [10_000, 12_048, 20_000, 100_000, 1_000_000],
        };
        assert_eq!(cost.picoseconds(0), 10_000_000);
        assert_eq!(cost.picoseconds(512), 11_024_000);
        assert_eq!(cost.picoseconds(1 << 10), 12_048_000);
        assert_eq!(cost.picoseconds(36 << 10), 60_000_000);
        // Beyond the largest, as between the last two.
        let beyond = cost.picoseconds(LARGEST + (448 << 10));
        assert_eq!(beyond, 1_900_000_000);
    }

    #[test]
    fn collectives_go_by_the_best_way() {
        run(6, 3, |ways| {
            let costs = table(ways[0].rank(Comm::WORLD), 6);
            let mut best = Best::new(ways, &costs).unwrap();
            let mut group = Communicator::new(&mut best, Comm::WORLD, Choice::default());
            for case in oracle::cases(11, oracle::round()) {
                oracle::check_in(&mut group, &case).unwrap();
            }
            best.finish().unwrap();
        });
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        run(2, 1, |ways| {
            let refused = Best::new(ways, &[vec![None, None]]);
            let error = refused.map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("nothing to rank"), "{error}");
        });
    }
}
