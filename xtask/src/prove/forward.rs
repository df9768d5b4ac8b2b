//! The bench of the lab's switch against a bare forwarder.
//!
//! Model:   `cargo bench -p sonde-lab --bench forward -- --pairs N forward`; its table is taken over as it is, its last column is
//!          the verdict.
//! Checked: `the_table_is_found`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof};

const PAIRS_MIN: usize = 5;
const LEAST: f64 = 0.6;
const HEADS: [&str; 9] = [
    "attachment",
    "frame",
    "bare forwarder, frames/s",
    "switch, frames/s",
    "ratio (at least 0.60)",
    "bare, CPU ns/frame",
    "switch, CPU ns/frame",
    "switch, lost at its ports",
    "verdict",
];

pub fn measure(ground: &Ground) -> Result<Proof> {
    let pairs = PAIRS_MIN.max(ground.runs / 2).to_string();
    let arguments = [
        "bench",
        "-p",
        "sonde-lab",
        "--bench",
        "forward",
        "--",
        "--pairs",
        &pairs,
        "forward",
    ];
    eprintln!("prove forward: cargo {}", arguments.join(" "));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(&ground.root)
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    anyhow::ensure!(
        output.status.success(),
        "the bench ended with {}",
        output.status
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = rows(&text);
    anyhow::ensure!(!rows.is_empty(), "the bench printed no table");
    let mut table = Table::new(&HEADS);
    let mut unmet: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("skipped:"))
        .map(str::to_owned)
        .collect();
    for mut cells in rows {
        let ratio: f64 = cells[4].parse().context("the ratio of the bench")?;
        let is_met = ratio >= LEAST;
        if !is_met {
            unmet.push(format!(
                "{}, {}: {ratio:.2} of a bare forwarder",
                cells[0], cells[1]
            ));
        }
        cells.push(verdict(is_met));
        table.row(cells);
    }
    Ok(Proof {
        command: format!("cargo {}", arguments.join(" ")),
        note: "Frames a second at h2's interface under a blast from h1, through the lab's switch on `wire` and through a loop of epoll, read and write on the same two interfaces; medians of pairs that take turns. A line without a rate promises no loss-free blast: what the ports of the switch lost, its own verdict would tell.".into(),
        tables: vec![table],
        unmet,
    })
}

/// The rows of the bench's table, without its head.
fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let rows = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(cells);
    rows.filter(|cells| cells.len() == HEADS.len() - 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_found() {
        let text = "noise\n| a | b | c | d | e | f | g | h |\n|---|---|---|---|---|---|---|---|\n| tap | 92 B | 900 | 800 | 0.89 | 500 | 600 | 0 |\n\n";
        let rows = rows(text);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0][4].as_str(), rows[0][7].as_str()), ("0.89", "0"));
        assert!(super::rows("nothing").is_empty());
    }
}
