//! The pending steps of a network: which queue keeps them best.
//!
//! Model:   hold model: of a queue with so many steps the first is taken, and one is put in later, by an increment drawn from
//!          those of a real run. Each run gives its 32 quantiles and the mean size of its queue, and was recorded by writing
//!          each `insert` and `pop` of `calendar.rs` (and of the heap in `medium/atm/cells.rs`) while `benches/fabric.rs`
//!          ran 3000 frames: 8 ports of `atm-oc3c`, each to the next, as trains and cell by cell (`discard=epd`); a fat-tree
//!          of 16 hosts; eight into one of `ethernet-1g`. A step has 48 bytes beside its time, as those of a switch have.
//!          The queues: the binary heap with a sequence number; a B-tree by time and number; a calendar queue (days of the
//!          width that leaves about two steps in each, a sorted bucket a day, more and fewer days as it grows and shrinks);
//!          a heap of times and numbers alone, whose steps lie still in a slab.
//! Source:  Jones, CACM 29(4) 1986 (hold model); Brown, CACM 31(10) 1988 (calendar queue).
//! Units:   picoseconds; a hold is one pop and one insert.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::hint::black_box;

/// What a network keeps for a step.
type Step = [u64; 6];

/// Time and number: ties break by insertion.
type Key = (u64, u64);

trait Queue: Default {
    fn insert(&mut self, key: Key, step: Step);
    fn pop(&mut self) -> Option<(Key, Step)>;
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: Key,
    step: Step,
}

/// As `calendar.rs` has it.
#[derive(Default)]
struct Heap(BinaryHeap<Reverse<Entry>>);

impl Queue for Heap {
    fn insert(&mut self, key: Key, step: Step) {
        self.0.push(Reverse(Entry { key, step }));
    }
    fn pop(&mut self) -> Option<(Key, Step)> {
        let Reverse(entry) = self.0.pop()?;
        Some((entry.key, entry.step))
    }
}

#[derive(Default)]
struct Tree(BTreeMap<Key, Step>);

impl Queue for Tree {
    fn insert(&mut self, key: Key, step: Step) {
        self.0.insert(key, step);
    }
    fn pop(&mut self) -> Option<(Key, Step)> {
        self.0.pop_first()
    }
}

/// Keys in a heap, steps in a slab.
#[derive(Default)]
struct Slab {
    heap: BinaryHeap<Reverse<(Key, u32)>>,
    steps: Vec<Step>,
    free: Vec<u32>,
}

impl Queue for Slab {
    fn insert(&mut self, key: Key, step: Step) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.steps.push(step);
            self.steps.len() as u32 - 1
        });
        self.steps[place as usize] = step;
        self.heap.push(Reverse((key, place)));
    }
    fn pop(&mut self) -> Option<(Key, Step)> {
        let Reverse((key, place)) = self.heap.pop()?;
        self.free.push(place);
        Some((key, self.steps[place as usize]))
    }
}

/// Brown's calendar queue.
struct Days {
    days: Vec<VecDeque<(Key, Step)>>,
    width: u64,
    /// The day of the year that is looked at, and the time at which it ends.
    today: usize,
    end: u64,
    last: u64,
    len: usize,
}

impl Default for Days {
    fn default() -> Self {
        Self::new(2, 1_000_000, 0)
    }
}

impl Days {
    fn new(days: usize, width: u64, last: u64) -> Self {
        let mut queue = Self {
            days: vec![VecDeque::new(); days],
            width,
            today: 0,
            end: 0,
            last,
            len: 0,
        };
        queue.look_at(last);
        queue
    }

    fn look_at(&mut self, at: u64) {
        self.today = (at / self.width) as usize % self.days.len();
        self.end = (at / self.width + 1) * self.width;
    }

    /// Another number of days, of a width that is three times the mean gap of those who come first.
    fn resize(&mut self, days: usize) {
        let mut all: Vec<_> = self.days.drain(..).flatten().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        let sample = all.len().min(64);
        let first = all.first().map_or(0, |(key, _)| key.0);
        let reach = all
            .get(sample.saturating_sub(1))
            .map_or(0, |(key, _)| key.0)
            - first;
        let width = (3 * reach / sample.max(1) as u64).max(1);
        *self = Self::new(days, width, self.last);
        for (key, step) in all {
            self.put(key, step);
        }
    }

    fn put(&mut self, key: Key, step: Step) {
        let count = self.days.len();
        let day = &mut self.days[(key.0 / self.width) as usize % count];
        let place = day.iter().rposition(|(other, _)| *other < key);
        day.insert(place.map_or(0, |place| place + 1), (key, step));
        self.len += 1;
    }
}

impl Queue for Days {
    fn insert(&mut self, key: Key, step: Step) {
        if self.len >= 2 * self.days.len() {
            self.resize(2 * self.days.len());
        }
        self.put(key, step);
    }

    fn pop(&mut self) -> Option<(Key, Step)> {
        if self.len == 0 {
            return None;
        }
        if self.len * 2 < self.days.len() && self.days.len() > 2 {
            self.resize(self.days.len() / 2);
        }
        for _ in 0..self.days.len() {
            let day = &mut self.days[self.today];
            if day.front().is_some_and(|(key, _)| key.0 < self.end) {
                self.len -= 1;
                let first = day.pop_front();
                self.last = first.map_or(self.last, |(key, _)| key.0);
                return first;
            }
            self.today = (self.today + 1) % self.days.len();
            self.end += self.width;
        }
        // Nothing in a whole year: to the first of all.
        let fronts = self.days.iter().filter_map(|day| day.front());
        let (first, _) = fronts.map(|(key, _)| *key).min()?;
        self.look_at(first);
        self.pop()
    }
}

/// A recorded run.
struct Pattern {
    name: &'static str,
    /// The mean number of steps.
    size: usize,
    /// Of the times from a step to one that it brought about, in picoseconds.
    quantiles: [u64; 32],
}

const PATTERNS: [Pattern; 4] = [
    Pattern {
        name: "8 ports of ATM, trains",
        size: 113,
        quantiles: [
            3_111_197,
            3_111_197,
            3_111_197,
            3_111_197,
            3_111_197,
            3_111_197,
            3_111_197,
            3_111_197,
            3_111_197,
            3_111_197,
            540_758_627,
            540_758_627,
            540_758_627,
            540_758_627,
            540_758_627,
            540_758_627,
            540_758_627,
            540_758_627,
            540_758_627,
            540_758_627,
            3_274_650_141,
            4_348_718_592,
            4_361_829_789,
            4_905_419_613,
            5_449_009_437,
            5_449_009_437,
            5_992_599_261,
            6_536_189_085,
            7_079_778_909,
            7_623_368_733,
            7_623_368_733,
            8_166_958_557,
        ],
    },
    Pattern {
        name: "8 ports of ATM, cells",
        size: 20,
        quantiles: [
            2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197,
            2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197,
            2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197,
            2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197, 2_831_197,
        ],
    },
    Pattern {
        name: "fat-tree",
        size: 1_477,
        quantiles: [
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            601_200,
            7_280_400,
            7_280_400,
            7_280_400,
            7_280_400,
            7_280_400,
            51_214_000,
            333_199_600,
            463_346_800,
            535_650_800,
            600_724_400,
            673_028_400,
            745_332_400,
            817_636_400,
        ],
    },
    Pattern {
        name: "8 into 1",
        size: 2_803,
        quantiles: [
            152_748_000,
            443_044_000,
            731_036_000,
            1_014_028_000,
            1_297_020_000,
            1_587_316_000,
            1_875_308_000,
            2_158_300_000,
            2_256_732_000,
            2_355_164_000,
            2_465_900_000,
            2_564_332_000,
            2_675_068_000,
            2_773_500_000,
            2_884_236_000,
            2_982_668_000,
            3_093_404_000,
            3_191_836_000,
            3_297_572_000,
            3_401_004_000,
            3_499_436_000,
            3_610_172_000,
            3_708_604_000,
            3_819_340_000,
            3_917_772_000,
            4_028_508_000,
            4_126_940_000,
            4_237_676_000,
            4_503_364_000,
            6_791_908_000,
            8_612_900_000,
            8_612_900_000,
        ],
    },
];

/// As many holds as an iteration does.
const HOLDS: u64 = 10_000;

/// A queue in its steady state.
struct Hold<Q> {
    queue: Q,
    random: Pcg64Mcg,
    inserted: u64,
}

impl<Q: Queue> Hold<Q> {
    fn new(pattern: &Pattern) -> Self {
        let mut hold = Self {
            queue: Q::default(),
            random: Pcg64Mcg::seed_from_u64(1),
            inserted: 0,
        };
        for _ in 0..pattern.size {
            hold.insert(0, pattern);
        }
        hold.run(pattern, 20 * pattern.size as u64);
        hold
    }

    fn insert(&mut self, now: u64, pattern: &Pattern) {
        let draw = self.random.next_u64();
        let later = pattern.quantiles[(draw >> 59) as usize];
        self.queue.insert((now + later, self.inserted), [draw; 6]);
        self.inserted += 1;
    }

    fn run(&mut self, pattern: &Pattern, holds: u64) {
        for _ in 0..holds {
            let ((now, _), step) = self.queue.pop().expect("it never runs dry");
            black_box(step);
            self.insert(now, pattern);
        }
    }
}

/// The same order out of each.
fn agree(pattern: &Pattern) {
    fn order<Q: Queue>(pattern: &Pattern) -> Vec<Key> {
        let mut hold = Hold::<Q>::new(pattern);
        std::iter::from_fn(|| hold.queue.pop().map(|(key, _)| key)).collect()
    }
    let heap = order::<Heap>(pattern);
    assert_eq!(heap.len(), pattern.size);
    assert!(heap == order::<Tree>(pattern) && heap == order::<Slab>(pattern));
    assert!(heap == order::<Days>(pattern), "{}", pattern.name);
}

fn holds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hold");
    group.throughput(Throughput::Elements(HOLDS));
    for pattern in &PATTERNS {
        agree(pattern);
        macro_rules! bench {
            ($name:literal, $queue:ty) => {
                let mut hold = Hold::<$queue>::new(pattern);
                group.bench_function(BenchmarkId::new($name, pattern.name), |bencher| {
                    bencher.iter(|| hold.run(pattern, HOLDS));
                });
            };
        }
        bench!("heap", Heap);
        bench!("b-tree", Tree);
        bench!("heap and slab", Slab);
        bench!("calendar queue", Days);
    }
    group.finish();
}

criterion_group!(benches, holds);
criterion_main!(benches);
