//! IS: integer keys ranked by buckets.
//!
//! Model:   a key is the sum of four uniform numbers in a range, nearly Gaussian. Each of ten iterations changes two keys, counts
//!          keys by buckets of their upper bits, sums the counts over the ranks, gives each rank a run of buckets with about as
//!          many keys, sends keys there, and counts them: how many keys are less than each. One rank has no need of buckets and
//!          counts at once. Afterwards, outside of the time, the keys are put in order and looked at.
//! Source:  RNR-94-007 §2.3.1; NPB 3.4.3 for buckets, key changes and tests. Deviations: keys are parted by the rank they go to, not by
//!          bucket; none on one rank.
//! Units:   operations are keys ranked.
//! Checked: `official_ranks_on_any_ranks`, `sorted_keys_are_the_known_ones`, `two_ranks_have_the_keys_of_one`,
//!          `a_wrong_key_fails`, `messages_are_those_counted`.

use std::ops::Range;

use serde::Deserialize;
use sonde_message::collectives::Communicator;
use sonde_message::{Comm, Messenger, Op, Operation, Result, Source, Status, Tag, Tagged};

use super::random::Stream;
use super::{Check, Class, Outcome, now_ns, reference};

const SEED: u64 = 314_159_265;
/// Rankings of the timed part.
pub(super) const ITERATIONS: usize = 10;
const BORDER_TAG: Tag = 1;
/// Keys are taken from so many stretches in turns, each with counts of its own: a count need not wait for the one before.
const LANES: usize = 4;
/// Words behind the counts for what is not to be counted, taken in turns for the same reason.
const ASIDE: usize = 8;
/// A rank has at least so many keys; those that iterations change are on rank 0.
const KEYS_MIN: usize = 32;
const RANKS_MAX: usize = 1 << 10;
/// The keys of a rank are counted in 32 bits.
const RANK_KEYS_LOG2_MAX: u32 = 29;
/// So many can still be shared.
const KEYS_LOG2_MAX: u32 = RANKS_MAX.ilog2() + RANK_KEYS_LOG2_MAX;

/// How many keys of which range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Keys, as a power of two.
    pub keys_log2: u32,
    /// Keys are below this power of two; at most 30.
    pub range_log2: u32,
    /// Buckets, as a power of two; not more than the range.
    pub buckets_log2: u32,
}

/// Values to be held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Places of the keys that are looked at.
    pub places: Vec<usize>,
    /// By iteration, then key: how many keys are less.
    pub ranks: Vec<Vec<i64>>,
}

/// A class as the file has it.
#[derive(Deserialize)]
struct Official {
    test_index: Vec<usize>,
    test_rank: Vec<i64>,
    sign: Vec<i64>,
    offset: Vec<i64>,
}

#[derive(Deserialize)]
struct Unofficial {
    test_index: Vec<usize>,
    rank_by_iteration: Vec<Vec<i64>>,
}

impl Official {
    fn ranks(&self, iteration: i64) -> Vec<i64> {
        let moves = self.sign.iter().zip(&self.offset);
        let tests = self.test_rank.iter().zip(moves);
        let rank =
            |(rank, (sign, offset)): (&i64, (&i64, &i64))| rank + sign * (iteration + offset);
        tests.map(rank).collect()
    }
}

impl Size {
    /// That of the UPC study; nothing official is known of it.
    pub const UPC: Self = Self {
        keys_log2: 19,
        range_log2: 19,
        buckets_log2: 10,
    };

    /// That of a class.
    pub const fn of(class: Class) -> Self {
        let (keys_log2, range_log2, buckets_log2) = match class {
            Class::S => (16, 11, 9),
            Class::W => (20, 16, 10),
            Class::A => (23, 19, 10),
            Class::B => (25, 21, 10),
            Class::C => (27, 23, 10),
            Class::D => (31, 27, 10),
        };
        Self {
            keys_log2,
            range_log2,
            buckets_log2,
        }
    }

    /// Keys ranked.
    pub fn operations(&self) -> f64 {
        (ITERATIONS as u64 * self.keys() as u64) as f64
    }

    /// Keys, in the order of the ranks they go to, those received, and the count of each that can be here; on one rank the
    /// keys, in order, and counts. Keys are in the middle of their range: of four ranks those at its ends count 1.6 times as
    /// many different ones, and those between them less.
    pub const fn memory_bytes(&self, ranks: usize) -> u64 {
        let ranks = if ranks == 0 { 1 } else { ranks as u64 };
        let own = self.keys() as u64 / ranks;
        let moved = if ranks > 1 {
            2 * own - own / ranks
        } else {
            own
        };
        4 * (own + moved + (1 << self.range_log2) / ranks)
    }

    /// Powers of two, and enough keys for each.
    ///
    /// # Errors
    /// It is none, or too few or many; the size is none that can be.
    pub fn admits(&self, ranks: usize) -> std::result::Result<(), String> {
        let Self {
            keys_log2,
            range_log2,
            buckets_log2,
        } = *self;
        if !(5..=KEYS_LOG2_MAX).contains(&keys_log2)
            || range_log2 > 30
            || buckets_log2 > range_log2.min(16)
        {
            return Err(format!(
                "IS takes 2^5 to 2^{KEYS_LOG2_MAX} keys below at most 2^30, and at most 2^16 buckets and as many as keys can be, not 2^{keys_log2} below 2^{range_log2} in 2^{buckets_log2}"
            ));
        }
        if 1 << range_log2 <= ITERATIONS {
            return Err(format!(
                "IS changes keys up to {ITERATIONS}: they must be below at least 2^4, not 2^{range_log2}"
            ));
        }
        let most = match self.keys_log2 {
            0..=16 => 128.min(self.keys() / KEYS_MIN),
            _ => RANKS_MAX,
        };
        let least = 1_usize << self.keys_log2.saturating_sub(RANK_KEYS_LOG2_MAX);
        if ranks.is_power_of_two() && (least..=most).contains(&ranks) {
            return Ok(());
        }
        let below = ranks.checked_ilog2().map_or(1, |log| 1_usize << log);
        let near = below + if ranks > below + below / 2 { below } else { 0 };
        Err(format!(
            "IS of 2^{} keys runs on a power of two of ranks from {least} to {most}, not on {ranks}: take {}",
            self.keys_log2,
            near.clamp(least, most)
        ))
    }

    /// What is known of this size.
    pub fn reference(&self) -> Option<Reference> {
        let mut classes = Class::ALL.into_iter();
        if let Some(class) = classes.find(|class| Self::of(*class) == *self) {
            let official: Official = reference::of("is", class)?;
            let iterations = 1..=ITERATIONS as i64;
            return Some(Reference {
                ranks: iterations.map(|of| official.ranks(of)).collect(),
                places: official.test_index,
            });
        }
        let name = format!("is_2e{}_range_2e{}", self.keys_log2, self.range_log2);
        reference::unofficial(&name).map(|values: Unofficial| Reference {
            places: values.test_index,
            ranks: values.rank_by_iteration,
        })
    }

    const fn keys(&self) -> usize {
        1 << self.keys_log2
    }

    const fn buckets(&self) -> usize {
        1 << self.buckets_log2
    }
}

/// Runs it; all ranks call it.
///
/// # Errors
/// Those of the messenger.
pub fn run<M: Messenger + ?Sized>(world: &mut Communicator<'_, M>, size: &Size) -> Result<Outcome> {
    Ok(ranked(world, size, SEED)?.0)
}

/// The outcome, and the keys of this rank in order.
fn ranked<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    size: &Size,
    seed: u64,
) -> Result<(Outcome, Vec<i32>)> {
    world.messenger().phase("setup");
    let reference = size.reference();
    let places = reference
        .as_ref()
        .map_or(Vec::new(), |of| of.places.clone());
    let mut ranking = Ranking::new(size, seed, places, world.rank(), world.size());
    ranking.iterate(world, 1)?;
    ranking.found.fill(0);
    ranking.is_timed = true;
    let begin = now_ns(world);
    for iteration in 1..=ITERATIONS {
        ranking.iterate(world, iteration)?;
    }
    let timed_ns = now_ns(world) - begin;
    world.messenger().phase("verification");
    let (sorted, is_sorted) = ranking.sorted(world)?;
    let mut own = std::mem::take(&mut ranking.found);
    own.push(i64::from(is_sorted));
    let mut found = vec![0; own.len()];
    world.allreduce(&own, &mut found, Operation::Sum)?;
    let checks = checks(&found, reference.as_ref(), world.size());
    Ok((Outcome { timed_ns, checks }, sorted))
}

/// Of the ranks found, by iteration and key, and in how many ranks keys are in order.
fn checks(found: &[i64], reference: Option<&Reference>, ranks: usize) -> Vec<Check> {
    let exact = |name: String, found: i64, wanted: Option<i64>| Check {
        name,
        found: found as f64,
        wanted: wanted.map(|wanted| wanted as f64),
        tolerance: 0.0,
    };
    let (found, sorted) = found.split_at(found.len() - 1);
    let mut checks = Vec::new();
    if let Some(reference) = reference {
        let tests = reference.places.len();
        let wanted = reference.ranks.iter().flatten();
        let right = found.iter().zip(wanted).filter(|(a, b)| a == b).count();
        let all = (tests * ITERATIONS) as i64;
        checks.push(exact("ranks as wanted".into(), right as i64, Some(all)));
        let last = found[found.len() - tests..].iter();
        let wanted = reference.ranks[ITERATIONS - 1].iter();
        for ((found, wanted), place) in last.zip(wanted).zip(&reference.places) {
            checks.push(exact(format!("rank of key {place}"), *found, Some(*wanted)));
        }
    } else {
        checks.push(exact("ranks as wanted".into(), 0, None));
    }
    checks.push(exact(
        "ranks in order".into(),
        sorted[0],
        Some(ranks as i64),
    ));
    checks
}

/// A rank's part of all.
struct Ranking {
    /// The untimed iteration belongs to the setup.
    is_timed: bool,
    size: Size,
    rank: usize,
    ranks: usize,
    /// Of the stream's keys the ones that begin at `rank * keys.len()`.
    keys: Vec<i32>,
    /// Places of the keys that are looked at.
    places: Vec<usize>,
    /// By iteration and such key: how many keys are less, where this rank knows.
    found: Vec<i64>,
    /// By stretch of the keys, then bucket.
    stretches: [Vec<i32>; LANES],
    /// By bucket: own keys, and after them the keys that are looked at; then those of all ranks.
    counts: Vec<i32>,
    sums: Vec<i32>,
    /// By bucket: the rank it goes to.
    owners: Vec<u16>,
    /// By rank: keys to it and from it.
    sent: Vec<usize>,
    received: Vec<usize>,
    sent_words: Vec<i32>,
    received_words: Vec<i32>,
    /// By stretch, then rank: where the next key goes.
    next: [Vec<usize>; LANES],
    parted: Vec<i32>,
    /// Of `parted` those that stay.
    stay: Range<usize>,
    came: Vec<i32>,
    /// How many came, the least key that could be here, and how many could be.
    come: usize,
    least: usize,
    width: usize,
    /// Keys of all ranks before.
    before: i64,
    /// By key from `least`: how many are here, then how many keys here are less; behind the `width` of them words of no meaning.
    less: Vec<i32>,
}

impl Ranking {
    fn new(size: &Size, seed: u64, places: Vec<usize>, rank: usize, ranks: usize) -> Self {
        let count = size.keys() / ranks;
        let words = size.buckets() + places.len();
        let moved = if ranks > 1 { count } else { 0 };
        Self {
            is_timed: false,
            size: *size,
            rank,
            ranks,
            keys: keys(size, seed, rank * count, count),
            found: vec![0; ITERATIONS * places.len()],
            places,
            stretches: std::array::from_fn(|_| vec![0; size.buckets()]),
            counts: vec![0; words],
            sums: vec![0; words],
            owners: vec![0; size.buckets()],
            sent: vec![0; ranks],
            received: vec![0; ranks],
            sent_words: vec![0; ranks],
            received_words: vec![0; ranks],
            next: std::array::from_fn(|_| vec![0; ranks]),
            parted: vec![0; moved],
            stay: 0..0,
            came: Vec::new(),
            come: 0,
            least: 0,
            width: 1 << size.range_log2,
            before: 0,
            less: vec![0; (1 << size.range_log2) + ASIDE],
        }
    }

    fn phase<M: Messenger + ?Sized>(&self, world: &mut Communicator<'_, M>, name: &str) {
        if self.is_timed {
            world.messenger().phase(name);
        }
    }

    fn shift(&self) -> u32 {
        self.size.range_log2 - self.size.buckets_log2
    }

    fn iterate<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        iteration: usize,
    ) -> Result<()> {
        if self.rank == 0 {
            self.keys[iteration] = iteration as i32;
            self.keys[iteration + ITERATIONS] = (1 << self.size.range_log2) - iteration as i32;
        }
        let tested = self.size.buckets();
        if self.ranks == 1 {
            self.phase(world, "count");
            let less = &mut self.less[..self.width];
            less.fill(0);
            count(&self.keys, 0, less);
            sum_up(less);
            for (word, place) in self.sums[tested..].iter_mut().zip(&self.places) {
                *word = self.keys[*place];
            }
        } else {
            self.phase(world, "buckets");
            self.count_buckets();
            world.allreduce(&self.counts, &mut self.sums, Operation::Sum)?;
            self.give_buckets();
            if self.ranks == 2 {
                self.part_in_two();
            } else {
                self.part();
            }
            self.phase(world, "keys");
            self.send(world)?;
            self.phase(world, "count");
            let less = &mut self.less[..self.width];
            if self.ranks > 2 {
                less.fill(0);
                count(&self.parted[self.stay.clone()], self.least, less);
            }
            count(&self.came[..self.come], self.least, less);
            sum_up(less);
        }
        let tests = self.places.len();
        let found = &mut self.found[(iteration - 1) * tests..iteration * tests];
        for (found, key) in found.iter_mut().zip(&self.sums[tested..]) {
            let place = (*key as usize).wrapping_sub(self.least);
            if place < self.width {
                *found = self.before + i64::from(self.less[place]);
            }
        }
        Ok(())
    }

    fn count_buckets(&mut self) {
        let (shift, buckets) = (self.shift(), self.size.buckets());
        self.stretches.iter_mut().for_each(|counts| counts.fill(0));
        let [a, b, c, d] = self.stretches.each_mut().map(Vec::as_mut_slice);
        for [w, x, y, z] in in_turns(&self.keys) {
            a[(w >> shift) as usize] += 1;
            b[(x >> shift) as usize] += 1;
            c[(y >> shift) as usize] += 1;
            d[(z >> shift) as usize] += 1;
        }
        let (counts, tested) = self.counts.split_at_mut(buckets);
        for (bucket, sum) in counts.iter_mut().enumerate() {
            *sum = self.stretches.iter().map(|counts| counts[bucket]).sum();
        }
        let first = self.rank * self.keys.len();
        for (word, place) in tested.iter_mut().zip(&self.places) {
            let own = self.keys.get(place.wrapping_sub(first));
            *word = own.copied().unwrap_or(0);
        }
    }

    /// Runs of buckets to ranks: a rank's ends where the keys so far are its share and those of the ones before.
    fn give_buckets(&mut self) {
        let (share, shift) = (self.keys.len() as i64, self.shift());
        let (mut owner, mut sum) = (0, 0);
        (self.before, self.least, self.width) = (0, 0, 0);
        self.sent.fill(0);
        self.next.iter_mut().for_each(|next| next.fill(0));
        let counts = self.counts.iter().zip(&self.sums).zip(&mut self.owners);
        for (bucket, ((own, all), to)) in counts.enumerate() {
            *to = owner as u16;
            self.sent[owner] += *own as usize;
            for (next, counts) in self.next.iter_mut().zip(&self.stretches) {
                next[owner] += counts[bucket] as usize;
            }
            if owner < self.rank {
                self.before += i64::from(*all);
            } else if owner == self.rank {
                if self.width == 0 {
                    self.least = bucket << shift;
                }
                self.width += 1 << shift;
            }
            sum += i64::from(*all);
            if sum >= (owner as i64 + 1) * share && owner + 1 < self.ranks {
                owner += 1;
            }
        }
    }

    /// Of two ranks: puts the keys that go together, and counts those that stay where they are. Which of both a key does is as good
    /// as chance: each does both, one of them aside.
    fn part_in_two(&mut self) {
        let (least, width) = (self.least as u32, self.width);
        self.sent[self.rank] = 0;
        let go = self.sent[1 - self.rank];
        self.stay = go..go;
        let (less, parted) = (&mut self.less[..width + ASIDE], &mut self.parted[..]);
        less.fill(0);
        let mut next = 0;
        for (place, key) in self.keys.iter().enumerate() {
            let from_least = (*key as u32).wrapping_sub(least) as usize;
            let stays = from_least < width;
            parted[next] = *key;
            next += usize::from(!stays);
            less[if stays {
                from_least
            } else {
                width + place % ASIDE
            }] += 1;
        }
        debug_assert_eq!(next, go);
    }

    /// Puts the keys in the order of the ranks they go to.
    fn part(&mut self) {
        let shift = self.shift();
        let mut sum = 0;
        let mut begin = |rank: usize| {
            let first = sum;
            for next in &mut self.next {
                sum += std::mem::replace(&mut next[rank], sum);
            }
            first..sum
        };
        for rank in (0..self.ranks).filter(|rank| *rank != self.rank) {
            begin(rank);
        }
        // What stays is counted where it is, behind all that goes.
        self.stay = begin(self.rank);
        self.sent[self.rank] = 0;
        let (parted, owners) = (&mut self.parted[..], &self.owners[..]);
        let [a, b, c, d] = self.next.each_mut().map(Vec::as_mut_slice);
        let mut put = |next: &mut [usize], key: i32| {
            let next = &mut next[usize::from(owners[(key >> shift) as usize])];
            parted[*next] = key;
            *next += 1;
        };
        for [w, x, y, z] in in_turns(&self.keys) {
            put(a, w);
            put(b, x);
            put(c, y);
            put(d, z);
        }
    }

    fn send<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        for (word, count) in self.sent_words.iter_mut().zip(&self.sent) {
            *word = *count as i32;
        }
        world.alltoall(&self.sent_words, &mut self.received_words)?;
        for (count, word) in self.received.iter_mut().zip(&self.received_words) {
            *count = *word as usize;
        }
        self.come = self.received.iter().sum();
        if self.came.len() < self.come {
            // The untimed iteration finds out how much comes: afterwards no more than a few keys change.
            self.came = Vec::new();
            self.came = vec![0; self.come + self.come / 64 + 2 * ITERATIONS];
        }
        let (go, came) = (&self.parted[..self.stay.start], &mut self.came[..self.come]);
        world.alltoallv(go, &self.sent, came, &self.received)?;
        Ok(())
    }

    /// The keys here in order, and whether they are, and not below those of the rank before.
    fn sorted<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
    ) -> Result<(Vec<i32>, bool)> {
        if self.ranks == 2 {
            self.part();
        }
        // Where keys were parted, they are put in order in the place of what they were parted from.
        let (keys, mut sorted) = if self.ranks == 1 {
            ([&self.keys[..], &[]], Vec::new())
        } else {
            let sorted = std::mem::take(&mut self.keys);
            let keys = [&self.parted[self.stay.clone()], &self.came[..self.come]];
            (keys, sorted)
        };
        sorted.resize(keys[0].len() + keys[1].len(), -1);
        for key in keys.into_iter().flatten() {
            let next = &mut self.less[*key as usize - self.least];
            sorted[*next as usize] = *key;
            *next += 1;
        }
        let before = self.border(world, &sorted)?;
        let first = sorted.first().copied().unwrap_or(before);
        let is_sorted = before <= first && sorted.is_sorted();
        Ok((sorted, is_sorted))
    }

    /// The greatest key of the ranks before; those without keys pass on what they are told.
    fn border<M: Messenger + ?Sized>(
        &self,
        world: &mut Communicator<'_, M>,
        sorted: &[i32],
    ) -> Result<i32> {
        let mut before = [0];
        let own = [sorted.last().copied().unwrap_or(0)];
        let comm: Comm = world.comm();
        let mut ops = Vec::new();
        if self.rank + 1 < self.ranks && !sorted.is_empty() {
            ops.push(Op::Send {
                to: self.rank + 1,
                tag: BORDER_TAG,
                payload: bytemuck::cast_slice(&own),
            });
        }
        if self.rank > 0 {
            ops.push(Op::Recv {
                from: Source::Rank(self.rank - 1),
                tag: Tagged::With(BORDER_TAG),
                room: bytemuck::cast_slice_mut(&mut before),
            });
        }
        let nothing = Status {
            from: 0,
            tag: 0,
            bytes: 0,
        };
        let mut statuses = vec![nothing; ops.len()];
        world.messenger().exchange(comm, &mut ops, &mut statuses)?;
        if self.rank + 1 < self.ranks && sorted.is_empty() {
            let payload = bytemuck::cast_slice(&before);
            world
                .messenger()
                .send(comm, self.rank + 1, BORDER_TAG, payload)?;
        }
        Ok(before[0])
    }
}

/// The keys of the stream from `first` on.
fn keys(size: &Size, seed: u64, first: usize, count: usize) -> Vec<i32> {
    let mut stream = Stream::new(seed).jumped(4 * first as u64);
    // A number is its integer by 2^46, and the sum of four is scaled by a quarter of the range: all of it is exact.
    let shift = 48 - size.range_log2;
    let key = |_| {
        let sum = stream.step() + stream.step() + stream.step() + stream.step();
        (sum >> shift) as i32
    };
    (0..count).map(key).collect()
}

/// A key of each stretch at a time.
#[inline(always)]
fn in_turns(keys: &[i32]) -> impl Iterator<Item = [i32; LANES]> + '_ {
    let (front, back) = keys.split_at(keys.len() / 2);
    let (a, b) = front.split_at(front.len() / 2);
    let (c, d) = back.split_at(back.len() / 2);
    let pairs = a.iter().zip(b).zip(c.iter().zip(d));
    pairs.map(|((a, b), (c, d))| [*a, *b, *c, *d])
}

/// Adds to how many there are of each key from `least` on.
fn count(keys: &[i32], least: usize, counts: &mut [i32]) {
    for key in keys {
        counts[*key as usize - least] += 1;
    }
}

/// How many there are of each, into how many are less.
fn sum_up(counts: &mut [i32]) {
    let mut sum = 0;
    for count in counts {
        sum += std::mem::replace(count, sum);
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};
    use sonde_message::collectives::Choice;
    use sonde_message::counted::Counted;
    use sonde_message::native::Memory;

    use super::*;

    fn all(size: Size, seed: u64, ranks: usize) -> (Outcome, Vec<i32>) {
        let ended = Memory::run(ranks, |messenger| {
            let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
            ranked(&mut world, &size, seed).unwrap()
        });
        let sorted = ended.iter().flat_map(|(_, sorted)| sorted.clone());
        let sorted = sorted.collect();
        (ended.into_iter().next().unwrap().0, sorted)
    }

    fn hash(keys: &[i32]) -> String {
        let mut hasher = Sha256::new();
        keys.iter().for_each(|key| hasher.update(key.to_le_bytes()));
        let hex = |byte: &u8| format!("{byte:02x}");
        hasher.finalize().iter().map(hex).collect()
    }

    #[test]
    fn official_ranks_on_any_ranks() {
        for class in [Class::S, Class::W] {
            for ranks in [1, 2, 4, 8] {
                let (outcome, _) = all(Size::of(class), SEED, ranks);
                assert_eq!(outcome.passes(), Some(true), "{class} {ranks} {outcome:?}");
                assert_eq!(outcome.checks.len(), 7);
            }
        }
        let (outcome, _) = all(Size::of(Class::S), SEED, 64);
        assert_eq!(outcome.passes(), Some(true), "{outcome:?}");
    }

    #[test]
    fn sorted_keys_are_the_known_ones() {
        #[derive(Deserialize)]
        #[allow(non_snake_case)]
        struct Hashes {
            S: String,
            W: String,
        }
        #[derive(Deserialize)]
        struct Upc {
            sorted_keys_sha256_le_i32: String,
            key_sum_after_iteration_10: i64,
        }
        let hashes: Hashes = reference::unofficial("is_sorted_sha256_le_i32").unwrap();
        assert_eq!(hash(&all(Size::of(Class::S), SEED, 4).1), hashes.S);
        assert_eq!(hash(&all(Size::of(Class::W), SEED, 2).1), hashes.W);
        let upc: Upc = reference::unofficial("is_2e19_range_2e19").unwrap();
        for ranks in [1, 4] {
            let (outcome, sorted) = all(Size::UPC, SEED, ranks);
            assert_eq!(outcome.passes(), Some(true), "{outcome:?}");
            assert_eq!(outcome.checks[0].found as usize, 100);
            assert_eq!(hash(&sorted), upc.sorted_keys_sha256_le_i32);
            let sum: i64 = sorted.iter().map(|key| i64::from(*key)).sum();
            assert_eq!(sum, upc.key_sum_after_iteration_10);
        }
    }

    #[test]
    fn two_ranks_have_the_keys_of_one() {
        // With one bucket all keys stay on one rank and go from the other.
        for (buckets_log2, range_log2) in [(0, 6), (1, 11), (4, 4), (9, 11)] {
            let size = Size {
                keys_log2: 10,
                range_log2,
                buckets_log2,
            };
            let (alone, two) = (all(size, SEED, 1), all(size, SEED, 2));
            assert_eq!(alone.1, two.1, "{size:?}");
            let order = two.0.checks.last().expect("a check");
            assert_eq!(order.passes(), Some(true), "{size:?}: {order:?}");
        }
    }

    #[test]
    fn a_wrong_key_fails() {
        let (outcome, sorted) = all(Size::of(Class::S), SEED + 2, 2);
        assert_eq!(outcome.passes(), Some(false));
        assert!(sorted.is_sorted());
    }

    #[test]
    fn messages_are_those_counted() {
        let size = Size::of(Class::S);
        let profiles = Memory::run(2, |messenger| {
            let mut counted = Counted::new(messenger);
            let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
            run(&mut world, &size).unwrap();
            counted.profile()
        });
        for profile in profiles {
            let sent = |name: &str| {
                let phase = profile.phases.iter().find(|phase| phase.name == name);
                phase.unwrap().sent.total
            };
            // Ten iterations: of the buckets an all-reduce of 2068 B in one exchange or two halves.
            let (buckets, keys) = (sent("buckets"), sent("keys"));
            assert!(buckets.messages <= 20 && buckets.bytes == 10 * 2068);
            assert_eq!((keys.messages, keys.bytes_min), (20, 4));
            assert!((64_000..67_000).contains(&keys.bytes_max), "{keys:?}");
            assert!(sent("verification").bytes_max < 1000);
        }
    }

    #[test]
    fn ranks_are_a_power_of_two() {
        Size::of(Class::S).admits(128).unwrap();
        Size::of(Class::A).admits(1024).unwrap();
        for (class, ranks, near) in [
            (Class::S, 3, 2),
            (Class::S, 256, 128),
            (Class::A, 0, 1),
            (Class::D, 2, 4),
        ] {
            let error = Size::of(class).admits(ranks).unwrap_err();
            assert!(error.ends_with(&format!("take {near}")), "{error}");
        }
        let wide = Size {
            range_log2: 31,
            ..Size::UPC
        };
        wide.admits(1).unwrap_err();
    }
}
