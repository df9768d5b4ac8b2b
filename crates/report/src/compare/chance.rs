//! How often a comparison names what is chance, and how often it finds what is not: simulated machines.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::tests::{STEADY, run, times};
use super::*;
use crate::testing::{Runs, net};

/// A normal deviate.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let mut uniform = || ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

/// A machine whose runs differ from each other by `between`, each as a whole, and their launches by `within`.
struct Machine {
    random: Pcg64Mcg,
    between: f64,
    within: f64,
}

impl Machine {
    /// A run of `cells` sizes with so many launches; the first `changed` of them are 5 % slower.
    fn run(&mut self, id: &str, cells: u64, launches: u64, changed: u64) -> Run {
        let sizes: Vec<u64> = (0..cells).collect();
        let sizes = sizes.iter().map(|size| {
            let own = self.between * normal(&mut self.random);
            let slower = if *size < changed { 1.05_f64.ln() } else { 0.0 };
            let launches = (0..launches).map(|_| {
                let all = own + slower + self.within * normal(&mut self.random);
                (20_000.0 * all.exp()) as u64
            });
            launches.collect::<Vec<u64>>()
        });
        of_sizes(id, &sizes.collect::<Vec<_>>())
    }

    fn past(&mut self, runs: u64, cells: u64) -> Chronicle {
        let mut past = Chronicle::default();
        for number in 0..runs {
            past.add(&self.run(&format!("before-{number}"), cells, 6, 0));
        }
        past
    }
}

/// A run with latencies of these medians, a cell for each size from 1 B on.
fn of_sizes(id: &str, sizes: &[Vec<u64>]) -> Run {
    let mut runs = Runs::new().network(net("wire")).together().launches(1);
    for size in 1..=sizes.len() as u64 {
        runs = runs.latency("wire", "tcp", size, 20_000);
    }
    let mut run = runs.done();
    run.head.id = id.into();
    let mut first = run.launches.remove(0);
    for result in &mut first.results {
        result.series.truncate(1);
    }
    run.launches = (0..sizes[0].len())
        .map(|index| {
            let mut launch = first.clone();
            for (result, medians) in launch.results.iter_mut().zip(sizes) {
                result.index = index as u64;
                result.series[0].series = [medians[index]].into_iter().collect();
            }
            launch
        })
        .collect();
    run
}

fn differ(a: &Run, b: &Run, past: &Chronicle) -> usize {
    let found = compare(a, b, past, &Limits::default()).unwrap();
    let changed = |row: &&CompareRow| matches!(row.change, Change::Better | Change::Worse);
    found.rows.iter().filter(changed).count()
}

/// Of 200 comparisons of equal runs at most 18 find any difference: with a share of one in twenty, 19 or more come once in 200.
#[test]
fn equal_runs_differ_rarely() {
    for (between, within, runs, cells, launches) in [
        (0.0, 0.03, 0, 1, 6),
        (0.0, 0.03, 0, 24, 6),
        (0.0, 0.10, 0, 8, 20),
        (0.03, 0.01, 4, 24, 6),
        (0.03, 0.01, 8, 8, 10),
        (0.05, 0.05, 12, 1, 10),
    ] {
        let random = Pcg64Mcg::seed_from_u64(20_261_127);
        let mut machine = Machine {
            random,
            between,
            within,
        };
        let found = (0..200).filter(|_| {
            let past = machine.past(runs, cells);
            let a = machine.run("a", cells, launches, 0);
            let b = machine.run("b", cells, launches, 0);
            differ(&a, &b, &past) > 0
        });
        let found = found.count();
        println!("{between} between, {within} within, {runs} before, {cells} cells: {found}");
        assert!(
            found <= 18,
            "{between} {within} {runs} {cells}: {found} of 200"
        );
    }
}

/// With the launches that a comparison asks for, 5 % more are found in at least 84 of 100, in one configuration of many as in all.
#[test]
fn a_planted_change_is_found() {
    for (within, cells, changed) in [(0.01, 1, 1), (0.03, 1, 1), (0.03, 12, 1), (0.03, 12, 12)] {
        let random = Pcg64Mcg::seed_from_u64(5);
        let mut machine = Machine {
            random,
            between: 0.0,
            within,
        };
        let (mut found, mut asked) = (0, 0);
        for _ in 0..100 {
            let none = Chronicle::default();
            let [a, b] = ["a", "b"].map(|id| machine.run(id, cells, 8, 0));
            let pilot = compare(&a, &b, &none, &Limits::default()).unwrap();
            let wanted = pilot.rows[0].launches_wanted.unwrap_or(8);
            asked += wanted;
            let a = machine.run("a", cells, wanted, 0);
            let b = machine.run("b", cells, wanted, changed);
            let found_now = compare(&a, &b, &none, &Limits::default()).unwrap();
            found += u64::from(found_now.rows[0].change == Change::Worse);
        }
        println!(
            "{within} within, {changed} of {cells}: {found} with {}",
            asked / 100
        );
        assert!(found >= 84, "{within} {changed} of {cells}: {found} of 100");
    }
}

#[test]
fn what_equal_runs_differ_by_is_no_change() {
    let mut past = Chronicle::default();
    for per_mille in [1_000, 1_060, 950, 1_030, 980, 1_050, 960] {
        past.add(&run("before", "wire", &times(per_mille)));
    }
    let (a, b) = (run("a", "wire", &STEADY), run("b", "wire", &times(1_060)));
    past.add(&a);
    let known = compare(&a, &b, &past, &Limits::default()).unwrap();
    let apart = known.rows[0].equal_runs_apart.unwrap().0;
    assert!((0.10..0.18).contains(&apart), "{apart}");
    assert_eq!(known.rows[0].change, Change::Same);
    assert_eq!(known.rows[0].launches_wanted, None);
    assert!(
        known
            .sentence
            .contains("; equal runs differ by 5 % or more in 1 of 1, where more"),
        "{}",
        known.sentence
    );
    // Without them, as before.
    let unknown = compare(&a, &b, &Chronicle::default(), &Limits::default()).unwrap();
    assert_eq!(unknown.rows[0].change, Change::Worse);
    // A change of level is no scatter.
    let mut changed = Chronicle::default();
    for per_mille in [1_000, 1_002, 999, 1_001, 1_500, 1_503, 1_501, 1_499] {
        changed.add(&run("before", "wire", &times(per_mille)));
    }
    let found = compare(&a, &b, &changed, &Limits::default()).unwrap();
    assert!(found.rows[0].equal_runs_apart.unwrap().0 < 0.01);
    assert_eq!(found.rows[0].change, Change::Worse);
}
