//! What became of each test of `cargo test`, read from its log; `cargo xtask tally` counts it for scripts/test.sh.
//!
//! Model:   the log is that of `cargo test … -- --show-output`. libtest writes a line for each test; then, under `successes:`, a
//!          section for each passing test that wrote something; the same under `failures:`; then the names of both once more
//!          under the same headings, and a line `test result:`. A passing test is skipped for noise where its section has the
//!          line that `sonde_sys::noise::measured` writes, else skipped where it has one that begins with `skipped:`. The rest
//!          of a section counts nothing, were it the log of another test program.
//! Checked: `passed_failed_and_skipped_are_counted`, `noise_is_named_and_counted_once_a_test`, `a_log_within_a_section_counts_nothing`.

use std::fmt;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

/// What begins the line of a test that noise excused; `NAME: FIGURE` follows.
const NOISE: &str = "skipped for noise: ";

/// A test that failed, or that noise excused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The test, as libtest names it.
    pub test: String,
    /// The noise that excused it; `None` where it failed.
    pub noise: Option<String>,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.noise {
            Some(figure) => write!(f, "{NOISE}{}: {figure}", self.test),
            None => write!(f, "failed: {}", self.test),
        }
    }
}

/// What a log of `cargo test` says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Each test that failed or that noise excused.
    pub troubles: Vec<Trouble>,
    /// Those that libtest calls passed.
    ran_well: usize,
    /// Those of them that say that they were skipped.
    said_skipped: usize,
    failed: usize,
    ignored: usize,
}

impl Outcomes {
    /// Reads a log, of one test program or of many.
    pub fn read(log: &str) -> Self {
        let mut all = Self::default();
        let (mut heading, mut section): (Option<bool>, Option<Section>) = (None, None);
        for line in log.lines() {
            let opened = section_of(line).zip(heading);
            if ["successes:", "failures:"].contains(&line) {
                heading = Some(line == "successes:");
                all.close(section.take());
            } else if let Some((test, is_passing)) = opened {
                all.close(section.replace(Section::new(test, is_passing)));
            } else if let Some(section) = &mut section {
                section.hear(line);
            } else if all.add_result(line) {
                heading = None;
            } else if let Some(test) = failed_test(line).filter(|_| heading.is_none()) {
                let test = test.to_owned();
                all.troubles.push(Trouble { test, noise: None });
            }
        }
        all.close(section);
        all
    }

    /// Counts what one test wrote: it stands among the passed of a line `test result:`.
    fn close(&mut self, section: Option<Section>) {
        let Some(section) = section.filter(|one| one.is_passing && one.is_skipped) else {
            return;
        };
        self.said_skipped += 1;
        self.troubles.extend(section.noise.map(|figure| Trouble {
            test: section.test,
            noise: Some(figure),
        }));
    }

    /// Adds a line `test result: ok. 7 passed; 0 failed; 1 ignored; …`; whether it is one.
    fn add_result(&mut self, line: &str) -> bool {
        let Some(result) = line.strip_prefix("test result: ") else {
            return false;
        };
        let words: Vec<&str> = result.split_whitespace().collect();
        let of = |name: &str| -> usize {
            let at = words.iter().position(|word| *word == name);
            let count = at.and_then(|at| words.get(at.checked_sub(1)?));
            count.and_then(|count| count.parse().ok()).unwrap_or(0)
        };
        self.ran_well += of("passed;");
        self.failed += of("failed;");
        self.ignored += of("ignored;");
        true
    }

    /// Tests that ran and passed; none of those skipped.
    pub fn passed(&self) -> usize {
        self.ran_well.saturating_sub(self.said_skipped)
    }

    /// Tests that did not run, could not run, or were excused by noise.
    pub fn skipped(&self) -> usize {
        self.ignored + self.said_skipped
    }

    /// Tests that failed.
    pub fn failed(&self) -> usize {
        self.failed
    }
}

/// What one test wrote.
struct Section {
    test: String,
    is_passing: bool,
    is_skipped: bool,
    /// The first figure.
    noise: Option<String>,
}

impl Section {
    fn new(test: &str, is_passing: bool) -> Self {
        Self {
            test: test.to_owned(),
            is_passing,
            is_skipped: false,
            noise: None,
        }
    }

    fn hear(&mut self, line: &str) {
        let noise = line.strip_prefix(NOISE);
        self.is_skipped |= noise.is_some() || line.starts_with("skipped:");
        let figure = noise.map(|said| said.split_once(": ").map_or(said, |(_, figure)| figure));
        self.noise = self.noise.take().or(figure.map(str::to_owned));
    }
}

/// The test of a line `---- a::test stdout ----`.
fn section_of(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The test of a line `test a::test ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// `cargo xtask tally LOG`: a line of three counts, passed, failed and skipped, then a line for each test that noise excused.
///
/// # Errors
/// The log cannot be read.
pub fn tally(words: &[String]) -> Result<ExitCode> {
    let [log] = words else {
        bail!("tally takes one file, the log of a `cargo test`");
    };
    let bytes = std::fs::read(log).with_context(|| format!("reading {log}"))?;
    let all = Outcomes::read(&String::from_utf8_lossy(&bytes));
    println!("{} {} {}", all.passed(), all.failed(), all.skipped());
    for one in all.troubles.iter().filter(|one| one.noise.is_some()) {
        println!("{one}");
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(log: &str) -> [usize; 3] {
        let all = Outcomes::read(log);
        [all.passed(), all.failed(), all.skipped()]
    }

    const UNITS: &str = "     Running unittests src/lib.rs (target/release/deps/a-1)

running 5 tests
test a::first ... ok
test a::second ... FAILED
test a::third ... ok
test a::fourth ... ignored
test a::fifth ... ok

successes:

---- a::fifth stdout ----
skipped: ping
skipped: a second thing

---- a::third stdout ----
what it says
 skipped: not at the begin of a line

successes:
    a::fifth
    a::first
    a::third

failures:

---- a::second stdout ----
skipped: one thing of two
assertion failed

failures:
    a::second

test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.0s
";

    const LAB: &str = "
running 3 tests
test paced ... ok
test steady ... ok
test timed ... ok

successes:

---- paced stdout ----
a figure
skipped for noise: paced: gap 12 ms, others 40 % of the CPU time before it
skipped for noise: paced: others 90 % of the CPU time after it

---- timed stdout ----
skipped: one library of two
skipped for noise: timed: sleep 7 ms late after it

successes:
    paced
    steady
    timed

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.9s
";

    #[test]
    fn passed_failed_and_skipped_are_counted() {
        assert_eq!(counts(UNITS), [2, 1, 2]);
        assert_eq!(counts(""), [0, 0, 0]);
        let failed = Trouble {
            test: "a::second".into(),
            noise: None,
        };
        assert_eq!(Outcomes::read(UNITS).troubles, [failed]);
    }

    #[test]
    fn noise_is_named_and_counted_once_a_test() {
        let both = format!("{UNITS}{LAB}");
        assert_eq!(counts(&both), [3, 1, 4]);
        let all = Outcomes::read(&both);
        let said: Vec<String> = all.troubles.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "failed: a::second",
                "skipped for noise: paced: gap 12 ms, others 40 % of the CPU time before it",
                "skipped for noise: timed: sleep 7 ms late after it",
            ]
        );
    }

    /// As of tests that start themselves again in fresh namespaces.
    #[test]
    fn a_log_within_a_section_counts_nothing() {
        let nested = "
running 1 test
test inside ... ok

successes:

---- inside stdout ----

running 1 test
test inside ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 8 filtered out; finished in 0.0s
skipped: XDP

successes:
    inside

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s
";
        assert_eq!(counts(nested), [0, 0, 1]);
    }
}
