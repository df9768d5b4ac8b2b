//! The figures of the gate's own tests.
//!
//! Model:   `cargo test -p sonde-sys --test sys gate::` in release, one test after the other; each prints what it found. A test that
//!          could not run prints `skipped:`, which is told and does not count as met.
//! Checked: `figures_and_outcomes_are_found`.

use std::process::Command;

use anyhow::{Context, Result};

use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof};

const ARGUMENTS: [&str; 11] = [
    "test",
    "--release",
    "-p",
    "sonde-sys",
    "--test",
    "sys",
    "--",
    "gate::",
    "--nocapture",
    "--test-threads=1",
    "--include-ignored",
];

pub fn measure(ground: &Ground) -> Result<Proof> {
    eprintln!("prove gate: cargo {}", ARGUMENTS.join(" "));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(ARGUMENTS)
        .current_dir(&ground.root)
        .output()
        .context("starting cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (figures, tests) = read(&text);
    anyhow::ensure!(
        !tests.is_empty(),
        "no test ran: {}",
        String::from_utf8_lossy(&output.stderr)
            .lines()
            .last()
            .unwrap_or("cargo said nothing")
    );
    let mut table = Table::new(&["test", "found", "verdict"]);
    let mut unmet = Vec::new();
    for (name, outcome) in tests {
        let mut found: Vec<&str> = figures
            .iter()
            .filter(|(of, _)| *of == name)
            .map(|(_, figure)| *figure)
            .collect();
        let is_met = outcome == "ok" && !found.iter().any(|figure| figure.contains("skipped:"));
        if !is_met {
            let why = found
                .iter()
                .find(|figure| figure.contains("skipped:"))
                .unwrap_or(&outcome);
            unmet.push(format!("{name}: {why}"));
        }
        if found.is_empty() {
            found.push("–");
        }
        table.row(vec![
            format!("`{name}`"),
            found.join("<br>"),
            verdict(is_met),
        ]);
    }
    Ok(Proof {
        command: format!("cargo {}", ARGUMENTS.join(" ")),
        note: "Openings and shuttings of a gate under load, on a TAP and on a veth pair: times of a change, and frames sent, received and lost.".into(),
        tables: vec![table],
        unmet,
    })
}

/// A test's name, and something of it.
type Of<'a> = (&'a str, &'a str);

/// What the tests printed, each line with its test, and how each ended.
fn read(text: &str) -> (Vec<Of<'_>>, Vec<Of<'_>>) {
    let (mut figures, mut tests) = (Vec::new(), Vec::new());
    let mut current = None;
    for line in text.lines() {
        let mut rest = line;
        if let Some((name, after)) = line
            .strip_prefix("test ")
            .and_then(|line| line.split_once(" ... "))
        {
            current = Some(name.strip_prefix("gate::").unwrap_or(name));
            rest = after;
        }
        let Some(name) = current else { continue };
        match rest.trim() {
            outcome @ ("ok" | "FAILED" | "ignored") => {
                tests.push((name, outcome));
                current = None;
            }
            // The test starts itself again inside namespaces: the lines of that harness are no figures.
            inner
                if inner.is_empty()
                    || inner.starts_with("running ")
                    || inner.starts_with("test result:")
                    || inner.starts_with("failures:") => {}
            figure => figures.push((name, figure)),
        }
    }
    tests.dedup();
    (figures, tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_outcomes_are_found() {
        let text = "\nrunning 2 tests\ntest gate::a ... \nrunning 1 test\ntest gate::a ... tap: open p50 3 us\nok\n\ntest result: ok. 1 passed\nok\ntest b ... skipped: no TAP\nok\ntest result: ok.\n";
        let (figures, tests) = read(text);
        assert_eq!(
            figures,
            [("a", "tap: open p50 3 us"), ("b", "skipped: no TAP")]
        );
        assert_eq!(tests, [("a", "ok"), ("b", "ok")]);
    }
}
