//! Tests that measure: one that fails while the machine is not quiet counts as skipped for noise, not as failed.
//!
//! Model:   the noise figure is taken before the test's body and, if the body panics, once more after it. Where either was not
//!          quiet, the test says so in a line of a fixed form and passes; `cargo xtask tally` counts that line as skipped, not as
//!          passed. Where both were quiet, the panic goes on and the test fails. The body runs once. A body that passes has
//!          passed, however noisy the machine was.
//!          Tests of one program that run beside each other are noise to each other. There a failure would always be excused, so
//!          only a test that runs alone (`--test-threads=1`) is.
//! Checked: `a_failure_is_excused_by_noise_alone`, `a_test_beside_others_is_not_excused`, `a_body_has_the_name_of_its_test`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use super::{Noise, measure};

/// How long a failed body's processes have to end before the machine is looked at: they are no excuse.
const SETTLE: Duration = Duration::from_secs(1);

/// Runs the body of a test that asserts times, rates or ratios of the real clock. Only what noise may change belongs in it;
/// what must hold on every machine is asserted outside.
///
/// # Panics
/// As `body` does, on a quiet machine or where other tests run beside it.
pub fn measured<F: FnOnce()>(body: F) {
    let name = test_of(std::any::type_name::<F>());
    let is_alone = is_alone(std::env::args(), std::env::var("RUST_TEST_THREADS").ok());
    // A figure that cannot be taken excuses nothing.
    let look = || measure().ok();
    if let Some(excuse) = run(body, is_alone, look) {
        println!("skipped for noise: {name}: {excuse}");
    }
}

/// Why a failure is excused; nothing where the body passed.
fn run(
    body: impl FnOnce(),
    is_alone: bool,
    mut look: impl FnMut() -> Option<Noise>,
) -> Option<String> {
    if !is_alone {
        body();
        return None;
    }
    let before = look();
    let panic = catch_unwind(AssertUnwindSafe(body)).err()?;
    thread::sleep(SETTLE);
    let after = look();
    let figures: Vec<String> = [(before, "before"), (after, "after")]
        .into_iter()
        .filter_map(|(noise, when)| Some((noise?, when)))
        .filter(|(noise, _)| !noise.is_quiet())
        .map(|(noise, when)| format!("{} {when} it", figure(&noise)))
        .collect();
    if figures.is_empty() {
        resume_unwind(panic);
    }
    Some(figures.join("; "))
}

/// What disturbs, in a few words: `gap 12 ms, others 40 % of the CPU time`.
fn figure(noise: &Noise) -> String {
    let causes = noise.causes();
    let words: Vec<String> = causes.iter().rev().map(super::Cause::figure).collect();
    words.join(", ")
}

/// Whether this test program runs one test at a time.
fn is_alone(arguments: impl Iterator<Item = String>, variable: Option<String>) -> bool {
    let mut threads = variable;
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if argument == "--test-threads" {
            threads = arguments.next();
        } else if let Some(count) = argument.strip_prefix("--test-threads=") {
            threads = Some(count.to_owned());
        }
    }
    threads.as_deref() == Some("1")
}

/// The test in the name of its body's type: `paced` of `lab_streams::paced::{{closure}}`.
fn test_of(body: &str) -> &str {
    let path = body.split("::{{closure}}").next().unwrap_or(body);
    path.split_once("::").map_or(path, |(_, test)| test)
}

#[cfg(test)]
mod tests {
    use super::super::Gap;
    use super::*;
    use std::cell::Cell;

    fn noise(others: f64, gap_ns_max: u64) -> Noise {
        Noise {
            span_ns: 300_000_000,
            cpus_online: 2,
            cpus_allowed: 2,
            load_1min: None,
            stolen_share: None,
            others_share: Some(others),
            tick_share: 0.0167,
            gaps: vec![Gap { cpu: 0, gap_ns_max }],
            wake_late_ns_p50: 0,
            wake_late_ns_p99: 0,
            wake_late_ns_max: 0,
        }
    }

    /// What `run` makes of a body that panics, and how often the body ran and the machine was looked at.
    fn failing(
        is_alone: bool,
        looks: [Option<Noise>; 2],
    ) -> (Result<Option<String>, ()>, [u32; 2]) {
        let (bodies, looked) = (Cell::new(0), Cell::new(0));
        let mut looks = looks.into_iter();
        let body = || {
            bodies.set(bodies.get() + 1);
            panic!("as it should");
        };
        let look = || {
            looked.set(looked.get() + 1);
            looks.next().flatten()
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| run(body, is_alone, look)));
        (outcome.map_err(drop), [bodies.get(), looked.get()])
    }

    #[test]
    fn a_failure_is_excused_by_noise_alone() {
        let (quiet, noisy) = (noise(0.01, 90_000), noise(0.4, 12_000_000));
        let words = "gap 12 ms, others 40 % of the CPU time";
        for (looks, wanted) in [
            ([&quiet, &quiet], Err(())),
            ([&noisy, &quiet], Ok(format!("{words} before it"))),
            ([&quiet, &noisy], Ok(format!("{words} after it"))),
            (
                [&noisy, &noisy],
                Ok(format!("{words} before it; {words} after it")),
            ),
        ] {
            let seen = failing(true, looks.map(|noise| Some(noise.clone())));
            assert_eq!(seen, (wanted.map(Some), [1, 2]));
        }
        assert_eq!(failing(true, [None, None]), (Err(()), [1, 2]));
        // What passes has passed.
        assert_eq!(run(|| (), true, || Some(noisy.clone())), None);
    }

    #[test]
    fn a_test_beside_others_is_not_excused() {
        let noisy = || Some(noise(0.9, 30_000_000));
        assert_eq!(failing(false, [noisy(), noisy()]), (Err(()), [1, 0]));
        let of = |words: &str, variable: Option<&str>| {
            is_alone(words.split(' ').map(Into::into), variable.map(Into::into))
        };
        assert!(of("--test-threads=1", None) && of("--test-threads 1", Some("4")));
        assert!(of("a name", Some("1")));
        assert!(!of("--test-threads=2", Some("1")) && !of("--nocapture", None));
        assert!(!of("--test-threads=12", None) && !of("--test-threads", None));
    }

    #[test]
    fn a_body_has_the_name_of_its_test() {
        fn name<F: FnOnce()>(_: F) -> &'static str {
            test_of(std::any::type_name::<F>())
        }
        let wanted = "noise::trial::tests::a_body_has_the_name_of_its_test";
        assert_eq!(name(|| ()), wanted);
        let within = || name(|| ());
        assert_eq!(within(), wanted);
        assert_eq!(test_of("main"), "main");
    }
}
