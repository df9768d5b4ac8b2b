//! Official values, and what holds of any size.

use sonde_message::Comm;
use sonde_message::collectives::Choice;
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
        println!(
            "{size:?} on {ranks}: {:e} {:?} {:?} ms",
            check.found,
            check.error(),
            outcome.timed_ns as f64 / 1e6
        );
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
