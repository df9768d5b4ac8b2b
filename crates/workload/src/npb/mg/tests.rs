//! Official values, and what holds of any size.

use sonde_message::Comm;
use sonde_message::collectives::Choice;
use sonde_message::counted::Counted;
use sonde_message::native::Memory;

use super::*;

fn outcomes(size: Size, ranks: usize, smoother: Coefficients) -> Vec<(Outcome, f64)> {
    Memory::run(ranks, |messenger| {
        let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
        run_with(&mut world, &size, smoother).unwrap()
    })
}

fn checked(size: Size, ranks: usize) {
    for (outcome, charges) in outcomes(size, ranks, size.smoother.coefficients()) {
        let check = &outcome.checks[0];
        assert!(check.error().unwrap() < 2e-12, "{size:?} {ranks} {check:?}");
        let wanted = (20.0 / (size.points as f64).powi(3)).sqrt();
        assert!((charges / wanted - 1.0).abs() < 1e-14);
    }
}

#[test]
fn official_values() {
    for ranks in [1, 2, 4, 8, 16, 64] {
        checked(Size::of(Class::S), ranks);
    }
    for ranks in [1, 2, 4] {
        checked(Size::of(Class::W), ranks);
    }
}

#[test]
fn another_size_of_the_nineties() {
    for smoother in [Smoother::A, Smoother::B] {
        for ranks in [1, 2, 4] {
            let size = Size {
                points: 64,
                cycles: 4,
                smoother,
            };
            checked(size, ranks);
        }
    }
}

#[test]
fn cycles_fall_as_they_should() {
    #[derive(Deserialize)]
    struct Known {
        cycles: Vec<usize>,
        rnm2_after_cycles_smoother_a: Vec<f64>,
    }
    let known: Known = reference::unofficial("mg_64_4").unwrap();
    let norms = known.rnm2_after_cycles_smoother_a;
    for (cycles, wanted) in known.cycles.into_iter().zip(norms).take(8) {
        let size = Size {
            points: 64,
            cycles,
            smoother: Smoother::A,
        };
        let found = outcomes(size, 1, size.smoother.coefficients())[0].0.checks[0].found;
        assert!(
            (found / wanted - 1.0).abs() < 1e-6,
            "{cycles} {found} {wanted}"
        );
    }
}

#[test]
fn a_wrong_coefficient_fails() {
    let size = Size::of(Class::S);
    let mut wrong = size.smoother.coefficients();
    wrong[1] += 1e-5;
    let (outcome, _) = outcomes(size, 2, wrong).swap_remove(0);
    assert_eq!(outcome.passes(), Some(false));
    let right = size.smoother.coefficients();
    assert_eq!(outcomes(size, 2, right)[0].0.passes(), Some(true));
}

/// Messages of rank 0 in cycles, their bytes, and the longest.
fn sent(size: Size, ranks: usize) -> (u64, u64) {
    let of = |messenger: &mut Memory| {
        let mut counted = Counted::new(messenger);
        let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
        run(&mut world, &size).unwrap();
        let phases = counted.profile().phases;
        let cycles = phases
            .iter()
            .filter(|phase| ["start", "down", "up", "top"].contains(&phase.name.as_str()));
        cycles.fold((0, 0), |(messages, longest), phase| {
            let total = &phase.sent.total;
            (messages + total.messages, longest.max(total.bytes_max))
        })
    };
    Memory::run(ranks, of)[0]
}

/// npb.md 5.5: the reference makes 6 (3 log2 n - 1) each cycle, 84 of class S and 138 of class A, whatever the ranks.
#[test]
fn messages_are_as_many_as_counted() {
    let size = Size::of(Class::S);
    let cycles = size.cycles as u64;
    // The longest: a face across z of 34 x 18 points.
    assert_eq!(sent(size, 4), (cycles * 84 * 2 / 3 + 4, 4_896));
    assert_eq!(sent(size, 8).0, cycles * 84 + 6);
    assert_eq!(sent(size, 2).0, cycles * 84 / 3 + 2);
    assert_eq!(sent(size, 1).0, 0);
}

/// On cos(a x + b y + c z) each operator is a number.
#[test]
fn operators_of_a_wave() {
    let (points, [a, b, c]) = (
        16,
        [1.0, 2.0, 3.0].map(|k| k * std::f64::consts::TAU / 16.0),
    );
    let lie = operators::Lie {
        row: points + 2,
        rows: points + 2,
    };
    let wave: Vec<f64> = (0..lie.plane() * 3)
        .map(|at| {
            let [i, j, k] = [at % lie.row, at / lie.row % lie.rows, at / lie.plane()];
            (a * i as f64 + b * j as f64 + c * k as f64).cos()
        })
        .collect();
    let [x, y, z] = [a, b, c].map(f64::cos);
    let [c0, c1, c2, c3] = operators::RESIDUAL;
    let sums = [x + y + z, x * y + y * z + z * x, x * y * z];
    let of_residual = c0 + 2.0 * c1 * sums[0] + 4.0 * c2 * sums[1] + 8.0 * c3 * sums[2];
    let [s0, s1, s2, _] = Smoother::A.coefficients();
    let of_smoother = s0 + 2.0 * s1 * sums[0] + 4.0 * s2 * sums[1];
    let mut room = vec![0.0; ROOMS * lie.row];
    let planes = three(&wave, lie.plane(), 1);
    let mut r = vec![0.0; lie.plane()];
    residual(planes, None, &mut r, lie, &mut room);
    let mut u = vec![0.0; lie.plane()];
    smooth(planes, &mut u, Smoother::A.coefficients(), lie, &mut room);
    for j in 1..=points {
        for i in 1..=points {
            let at = i + lie.row * j;
            let here = planes[1][at];
            assert!((r[at] + of_residual * here).abs() < 1e-14);
            assert!((u[at] - of_smoother * here).abs() < 1e-14);
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let size = Size::of(Class::S);
    assert_eq!(size.admits(16), Ok(()));
    assert!(size.admits(6).unwrap_err().contains("4 is near"));
    let odd = Size { points: 48, ..size };
    assert!(odd.admits(4).unwrap_err().contains("64 is near"));
}
