//! Ranks whose time is told by hand, and a real one.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::counted::Counted;
use crate::native::Memory;

/// A clock that goes by what is told it.
#[derive(Debug, Default)]
struct Hands {
    now_ns: u64,
    worked_ns: u64,
    /// What each reading of the CPU's time costs.
    reading_ns: u64,
    /// By what each sleep is late.
    late_ns: u64,
    slept: Vec<u64>,
}

#[derive(Debug, Default, Clone)]
struct Fake(Rc<RefCell<Hands>>);

impl Fake {
    fn compute(&self, ns: u64) {
        let mut hands = self.0.borrow_mut();
        hands.now_ns += ns;
        hands.worked_ns += ns;
    }

    fn put_aside(&self, ns: u64) {
        self.0.borrow_mut().now_ns += ns;
    }

    fn now(&self) -> u64 {
        self.0.borrow().now_ns
    }

    fn slept(&self) -> Vec<u64> {
        self.0.borrow().slept.clone()
    }
}

impl Time for Fake {
    fn now_ns(&mut self) -> u64 {
        self.now()
    }

    fn worked_ns(&mut self) -> u64 {
        let mut hands = self.0.borrow_mut();
        let told = hands.worked_ns;
        hands.worked_ns += hands.reading_ns;
        hands.now_ns += hands.reading_ns;
        told
    }

    fn sleep_until_ns(&mut self, at_ns: u64) {
        let mut hands = self.0.borrow_mut();
        assert!(at_ns > hands.now_ns, "nothing to sleep for");
        let slept = at_ns - hands.now_ns + hands.late_ns;
        hands.slept.push(slept);
        hands.now_ns += slept;
    }
}

/// A rank alone, counted, by a clock of one's own.
fn alone(factor: Ratio, time: &Fake) -> Aged<Counted<Memory>, Fake> {
    let memory = Memory::all(1).remove(0);
    Aged::with(Counted::new(memory), factor, time.clone()).unwrap()
}

#[test]
fn computing_takes_its_factor() {
    let time = Fake::default();
    let mut aged = alone(Ratio::new(25, 2), &time);
    aged.phase("work");
    time.compute(1_000_000);
    aged.progress().unwrap();
    assert_eq!((time.now(), time.slept()), (12_500_000, vec![11_500_000]));
    // What belongs to a phase is held in it.
    time.compute(2_000_000);
    aged.phase("more");
    assert_eq!(time.now(), 37_500_000);
    time.compute(10_000);
    aged.progress().unwrap();
    let charges = Charges {
        computed_ns: 3_010_000,
        held_ns: 3_010_000 / 2 * 23,
        holds: 3,
    };
    assert_eq!(aged.charges(), charges);
    let profile = aged.inner().profile();
    let busy: Vec<_> = profile
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.busy_ns))
        .collect();
    assert_eq!(busy, [("work", 34_500_000), ("more", 115_000)]);
    assert_eq!(aged.facts().unwrap().aged, Some("25/2".into()));
}

#[test]
fn calls_are_not_stretched() {
    let time = Fake::default();
    let mut aged = alone(Ratio::new(100, 1), &time);
    time.compute(1_000);
    // The call itself takes long, and all of it CPU time.
    aged.between(|_| time.compute(5_000_000));
    aged.progress().unwrap();
    assert_eq!(aged.charges().computed_ns, 1_000);
    assert_eq!((time.slept().len(), time.now()), (1, 5_100_000));
}

#[test]
fn holds_do_not_drift() {
    let time = Fake::default();
    time.0.borrow_mut().late_ns = 73_001;
    time.0.borrow_mut().reading_ns = 211;
    let factor = Ratio::new(100_003, 7_001);
    let mut aged = alone(factor, &time);
    let (begin, mut computed) = (time.now(), 0);
    for step in 0..10_000_u64 {
        let span = 37 + step * step % 9_973;
        time.compute(span);
        computed += span;
        aged.progress().unwrap();
    }
    let exact = u128::from(computed) * 100_003 / 7_001;
    let passed = u128::from(time.now() - begin);
    // Off by no more than one sleep's lateness or what is not yet worth a sleep, and the readings of one span; not by their sum.
    assert!(
        passed.abs_diff(exact) <= 73_001 + 1_000 + u128::from(GRAIN_NS),
        "{passed} {exact}"
    );
    let charges = aged.charges();
    assert!(charges.holds > 100, "{charges:?}");
    assert_eq!(
        (charges.computed_ns, charges.held_ns),
        (computed, time.slept().iter().sum())
    );
    assert_eq!(aged.inner().profile().phases[0].busy_ns, charges.held_ns);
}

#[test]
fn small_spans_are_held_together() {
    let time = Fake::default();
    let mut aged = alone(Ratio::new(3, 1), &time);
    for _ in 0..24 {
        time.compute(1_000);
        aged.progress().unwrap();
    }
    assert!(time.slept().is_empty(), "2 us each: 48 us");
    time.compute(1_000);
    aged.progress().unwrap();
    assert_eq!(time.slept(), [50_000]);
    time.compute(10);
    aged.finish().unwrap();
    assert_eq!(time.slept(), [50_000, 20], "at the end all of it");
}

#[test]
fn what_others_had_is_part_of_the_span() {
    let time = Fake::default();
    let mut aged = alone(Ratio::new(10, 1), &time);
    time.compute(100_000);
    time.put_aside(300_000);
    aged.progress().unwrap();
    assert_eq!((time.now(), time.slept()), (1_000_000, vec![600_000]));
    // Longer than the span: made good by the next one.
    time.compute(100_000);
    time.put_aside(1_200_000);
    aged.progress().unwrap();
    assert_eq!((time.now(), time.slept().len()), (2_300_000, 1));
    time.compute(100_000);
    aged.progress().unwrap();
    assert_eq!(
        (time.now(), time.slept()),
        (3_000_000, vec![600_000, 600_000])
    );
}

#[test]
fn what_is_timed_has_an_account_of_its_own() {
    let time = Fake::default();
    let mut aged = alone(Ratio::new(10, 1), &time);
    // Put aside for far longer than the setup should take: nothing of it is taken off what is timed.
    time.compute(100_000);
    time.put_aside(50_000_000);
    aged.due();
    let begin = time.now();
    time.compute(1_000_000);
    aged.progress().unwrap();
    // Behind the last call, and before the clock is read.
    time.compute(2_000_000);
    aged.due();
    assert_eq!(time.now() - begin, 30_000_000);
    let timed = Charges {
        computed_ns: 3_000_000,
        held_ns: 27_000_000,
        holds: 2,
    };
    assert_eq!(aged.timed(), timed);
    assert_eq!(aged.charges().computed_ns, 3_100_000);
    // Another reading at once: nothing lies between.
    aged.due();
    assert_eq!(aged.timed(), Charges::default());
}

#[test]
fn factors_are_checked() {
    // 16.66 s then, 102 ms now.
    assert_eq!(
        factor(16_660_000_000, 102_000_000).unwrap(),
        Ratio::new(8_330, 51)
    );
    assert_eq!(factor(5, 5).unwrap(), Ratio::ONE);
    let said = |recorded, own| factor(recorded, own).unwrap_err().to_string();
    assert!(said(1, 0).contains("is 0 ns, and must be longer"));
    assert!(said(0, 1).contains("is 0/1, and must be 1 to 1000000"));
    assert!(said(99, 100).contains("cannot be made faster"));
    assert!(said(2_000_000, 1).contains("2000000/1"));
    let memory = Memory::all(1).remove(0);
    assert!(Aged::new(memory, Ratio::new(1, 2)).is_err());
}

#[test]
fn a_real_rank_is_held() {
    Memory::run(2, |messenger| {
        let counted = Counted::new(messenger);
        let begin = monotonic_ns();
        let mut aged = Aged::new(counted, Ratio::new(4, 1)).unwrap();
        let other = 1 - aged.rank(Comm::WORLD);
        for _ in 0..3 {
            let worked = thread_cpu_ns();
            while thread_cpu_ns() < worked + 2_000_000 {
                std::hint::spin_loop();
            }
            aged.send(Comm::WORLD, other, 1, &[1]).unwrap();
            aged.recv(Comm::WORLD, Source::Rank(other), Tagged::With(1), &mut [0])
                .unwrap();
        }
        let passed = monotonic_ns() - begin;
        let charges = aged.charges();
        let profile = aged.inner().profile();
        assert!(charges.computed_ns >= 6_000_000 - 3 * aged.reading_ns);
        // All that is owed but less than a grain was waited for, or others had the CPU as long.
        assert!(
            passed + GRAIN_NS >= 4 * charges.computed_ns,
            "{passed} {charges:?}"
        );
        assert_eq!(profile.phases[0].busy_ns, charges.held_ns);
    });
}
