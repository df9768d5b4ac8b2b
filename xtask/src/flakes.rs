//! `cargo xtask flakes`: runs the tests of the suite again and again and keeps a list of those that do not pass each time.
//!
//! Model:   a run is `scripts/test.sh tests [NAME]`, which decides what the tests are and in which order they run; what became of
//!          each is read from the logs that it leaves. A test that failed, or that noise excused, is an entry of the list, with
//!          the commit, the load and the stolen time of its last such run. A test has one open entry for each of the two: what
//!          happens again is counted there. Who finds the cause writes it into the last column, which closes the entry.
//! Source:  /proc/loadavg as proc_loadavg(5) has it; stolen time as `sonde_sys::host` reads it.
//! Checked: `one_entry_stays_open_for_a_test`, `a_list_is_read_as_it_was_written`, `what_is_no_test_is_kept_too`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use sonde_sys::{clock, cpu, host};

use crate::outcomes::{Outcomes, Trouble};

/// The list, in the repository.
const FILE: &str = "tests/flakes.md";

/// Runs where nobody says how many.
const RUNS: u32 = 5;

const HEAD: &str = "# Tests that do not pass each time

`cargo xtask flakes N [--filter NAME]` runs the tests of the suite N times and adds what failed, and what was skipped for noise. An
entry is open until its last column says the cause; a closed one stays, so that the same cause is known when it comes back.
`seen` counts the runs in which it happened, `runs` those in which the test could have run. Commit (`+`: with changes), load (the
mean of the minute before the run) and stolen (of all CPU time of the run) are those of the last time.

| test | outcome | seen | runs | last | commit | load | stolen | cause |
|---|---|---|---|---|---|---|---|---|
";

/// The circumstances of one run.
#[derive(Debug, Clone, PartialEq)]
struct Run {
    date: String,
    commit: String,
    load: String,
    stolen: String,
}

/// A line of the list.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    test: String,
    /// `failed`, or `skipped for noise: FIGURE`.
    outcome: String,
    seen: u32,
    runs: u32,
    last: Run,
    /// Empty while the entry is open.
    cause: String,
}

impl Entry {
    /// The kind of outcome, without its figure.
    fn kind(&self) -> &str {
        self.outcome.split(':').next().unwrap_or_default()
    }

    fn parse(line: &str) -> Option<Self> {
        let cells = line.strip_prefix("| `")?.strip_suffix('|')?;
        let (test, rest) = cells.split_once("` |")?;
        let cells: Vec<&str> = rest.split('|').map(str::trim).collect();
        let [outcome, seen, runs, date, commit, load, stolen, cause] = cells[..] else {
            return None;
        };
        Some(Self {
            test: test.into(),
            outcome: outcome.into(),
            seen: seen.parse().ok()?,
            runs: runs.parse().ok()?,
            last: Run {
                date: date.into(),
                commit: commit.into(),
                load: load.into(),
                stolen: stolen.into(),
            },
            cause: cause.into(),
        })
    }

    fn line(&self) -> String {
        let Run {
            date,
            commit,
            load,
            stolen,
        } = &self.last;
        // A bar would end the cell.
        let [test, outcome] = [&self.test, &self.outcome].map(|text| text.replace('|', "/"));
        format!(
            "| `{test}` | {outcome} | {} | {} | {date} | {commit} | {load} | {stolen} | {} |",
            self.seen, self.runs, self.cause
        )
    }
}

/// Runs the command with the words that follow its name; success where no test failed in any run.
///
/// # Errors
/// A word that is not known; the script cannot be run; the list cannot be read or written.
pub fn run(root: &Path, words: &[String]) -> Result<ExitCode> {
    let (mut runs, mut filter) = (RUNS, String::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--filter" {
            filter.clone_from(words.next().context("--filter takes a part of a name")?);
        } else {
            let count = word.parse().ok().filter(|count| *count > 0);
            runs = count.with_context(|| format!("flakes takes a number of runs, not `{word}`"))?;
        }
    }
    let path = root.join(FILE);
    let mut failed = 0;
    for number in 1..=runs {
        println!("== run {number} of {runs}");
        let (run, troubles) = one_run(root, &filter)?;
        failed += troubles.iter().filter(|one| one.noise.is_none()).count();
        // After each run: an interrupt loses one at most.
        let before = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => HEAD.to_owned(),
            read => read.with_context(|| format!("reading {}", path.display()))?,
        };
        std::fs::create_dir_all(path.parent().unwrap_or(root))?;
        std::fs::write(&path, added(&before, &run, &troubles, &filter)?)
            .with_context(|| format!("writing {}", path.display()))?;
        for one in &troubles {
            println!("run {number}: {one}");
        }
    }
    println!("{runs} runs, {failed} failures; the list is {FILE}");
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Runs the tests once, and prints what they print.
fn one_run(root: &Path, filter: &str) -> Result<(Run, Vec<Trouble>)> {
    let load = std::fs::read_to_string("/proc/loadavg").context("reading /proc/loadavg")?;
    let load = load.split_whitespace().next().unwrap_or("?").to_owned();
    let (begin_ns, before) = (clock::monotonic_ns(), host::cpu_times());
    let mut script = Command::new("scripts/test.sh");
    script
        .arg("tests")
        .args(Some(filter).filter(|filter| !filter.is_empty()));
    let mut child = script
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting scripts/test.sh")?;
    let output = child
        .stdout
        .take()
        .context("the output of scripts/test.sh")?;
    let (mut last, mut said) = (String::new(), Vec::new());
    for line in BufReader::new(output).lines() {
        last = line.context("reading what scripts/test.sh prints")?;
        println!("{last}");
        said.extend(last.strip_prefix("FAILED ").map(str::to_owned));
    }
    child.wait().context("waiting for scripts/test.sh")?;
    ensure!(
        last.ends_with(" skipped"),
        "scripts/test.sh did not come to its end: {last}"
    );
    let whole_ns = (clock::monotonic_ns() - begin_ns) * cpu::online()?.len() as u64;
    let stolen = before.zip(host::cpu_times()).map(|(before, after)| {
        let stolen_ns = after.steal_ns.saturating_sub(before.steal_ns);
        format!("{:.1} %", stolen_ns as f64 / whole_ns.max(1) as f64 * 100.0)
    });
    let run = Run {
        date: said_by(root, "date", &["-u", "+%F"])?,
        commit: commit(root)?,
        load,
        stolen: stolen.unwrap_or_else(|| "?".into()),
    };
    let mut logs = String::new();
    for entry in std::fs::read_dir(root.join("target/test-logs"))? {
        let bytes = std::fs::read(entry?.path())?;
        let _ = writeln!(logs, "{}", String::from_utf8_lossy(&bytes));
    }
    Ok((run, troubles(&logs, &said)))
}

/// What the logs say of tests, and what the script says beside: a step that did not build, a test program that crashed.
fn troubles(logs: &str, said: &[String]) -> Vec<Trouble> {
    let mut all = Outcomes::read(logs).troubles;
    let is_step = |line: &&String| {
        ["tests: ", "build", "noise: "]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    all.extend(said.iter().filter(is_step).map(|line| Trouble {
        test: line.split(" (").next().unwrap_or(line).to_owned(),
        noise: None,
    }));
    all
}

fn said_by(root: &Path, program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).current_dir(root).output();
    let output = output.with_context(|| format!("starting {program}"))?;
    ensure!(
        output.status.success(),
        "{program} {} failed",
        words.join(" ")
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn commit(root: &Path) -> Result<String> {
    let id = said_by(root, "git", &["rev-parse", "--short", "HEAD"])?;
    // The list itself is no change.
    let changes = said_by(
        root,
        "git",
        &[
            "status",
            "--porcelain",
            "-uno",
            "--",
            ".",
            ":!tests/flakes.md",
        ],
    )?;
    Ok(if changes.is_empty() { id } else { id + "+" })
}

/// The list with what one run adds to it.
fn added(list: &str, run: &Run, troubles: &[Trouble], filter: &str) -> Result<String> {
    let begin = list.lines().position(|line| line.starts_with("|---"));
    let Some(begin) = begin else {
        bail!("{FILE} has no table: remove it, or put the table back");
    };
    let head: Vec<&str> = list.lines().take(begin + 1).collect();
    let rest = list
        .lines()
        .skip(begin + 1)
        .filter(|line| !line.trim().is_empty());
    let read =
        |line: &str| Entry::parse(line).with_context(|| format!("{FILE}: not an entry: {line}"));
    let mut entries: Vec<Entry> = rest.map(read).collect::<Result<_>>()?;
    // A step that did not build is in no filter.
    let has_run = |test: &str| test.contains(filter) || troubles.iter().any(|new| new.test == test);
    for one in entries.iter_mut().filter(|one| one.cause.is_empty()) {
        one.runs += u32::from(has_run(&one.test));
    }
    for trouble in troubles {
        let new = Entry {
            test: trouble.test.clone(),
            outcome: match &trouble.noise {
                Some(figure) => format!("skipped for noise: {figure}"),
                None => "failed".into(),
            },
            seen: 1,
            runs: 1,
            last: run.clone(),
            cause: String::new(),
        };
        let is_same = |one: &&mut Entry| {
            one.cause.is_empty() && one.test == new.test && one.kind() == new.kind()
        };
        match entries.iter_mut().find(is_same) {
            Some(open) => {
                open.seen += 1;
                open.outcome = new.outcome;
                open.last = new.last;
            }
            None => entries.push(new),
        }
    }
    let lines = entries.iter().map(Entry::line);
    let all: Vec<String> = head.into_iter().map(str::to_owned).chain(lines).collect();
    Ok(all.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(commit: &str) -> Run {
        Run {
            date: "2026-11-24".into(),
            commit: commit.into(),
            load: "1.20".into(),
            stolen: "0.3 %".into(),
        }
    }

    fn trouble(test: &str, noise: Option<&str>) -> Trouble {
        Trouble {
            test: test.into(),
            noise: noise.map(str::to_owned),
        }
    }

    fn lines(list: &str) -> Vec<&str> {
        list.lines()
            .filter(|line| line.starts_with("| `"))
            .collect()
    }

    #[test]
    fn one_entry_stays_open_for_a_test() {
        let failed = trouble("paced", None);
        let noisy = trouble("paced", Some("gap 12 ms before it"));
        let once = added(HEAD, &run("a1"), &[failed.clone(), noisy], "").unwrap();
        assert!(once.starts_with(HEAD));
        assert_eq!(
            lines(&once),
            [
                "| `paced` | failed | 1 | 1 | 2026-11-24 | a1 | 1.20 | 0.3 % |  |",
                "| `paced` | skipped for noise: gap 12 ms before it | 1 | 1 | 2026-11-24 | a1 | 1.20 | 0.3 % |  |",
            ]
        );
        let louder = trouble("paced", Some("others 50 % of the CPU time after it"));
        let twice = added(&once, &run("b2"), &[louder], "pace").unwrap();
        assert_eq!(
            lines(&twice),
            [
                "| `paced` | failed | 1 | 2 | 2026-11-24 | a1 | 1.20 | 0.3 % |  |",
                "| `paced` | skipped for noise: others 50 % of the CPU time after it | 2 | 2 | 2026-11-24 | b2 | 1.20 | 0.3 % |  |",
            ]
        );
        // A filter under which it does not run counts no run; a closed entry stays as it is, and the next time is a new one.
        assert_eq!(added(&twice, &run("c3"), &[], "other").unwrap(), twice);
        let unnamed = added(&twice, &run("c3"), std::slice::from_ref(&failed), "other").unwrap();
        assert!(lines(&unnamed)[0].contains("| failed | 2 | 3 | 2026-11-24 | c3 |"));
        let closed = twice.replacen("|  |", "| a race |", 1);
        let again = added(&closed, &run("c3"), &[failed], "").unwrap();
        let again = lines(&again);
        assert_eq!((again.len(), again[0]), (3, lines(&closed)[0]));
        assert!(again[2].contains("| failed | 1 | 1 | 2026-11-24 | c3 |"));
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let one = added(HEAD, &run("a1+"), &[trouble("a::b", None)], "").unwrap();
        let line = lines(&one)[0];
        assert_eq!(Entry::parse(line).unwrap().line(), line);
        let error = added(&format!("{one}| `half |\n"), &run("a1"), &[], "").unwrap_err();
        assert!(error.to_string().contains("not an entry"), "{error}");
        assert!(added("no table", &run("a1"), &[], "").is_err());
    }

    #[test]
    fn what_is_no_test_is_kept_too() {
        let logs = "test paced ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored;\n";
        let said = [
            "paced (target/test-logs/lab.log)",
            "tests: units: cargo test ended with 101 (target/test-logs/units.log)",
        ]
        .map(String::from);
        let crash = trouble("tests: units: cargo test ended with 101", None);
        assert_eq!(troubles(logs, &said), [trouble("paced", None), crash]);
    }
}
