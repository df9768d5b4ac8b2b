//! `--json-stream`: what happens in a run, one JSON object a line, as it happens.
//!
//! Model:   `start` with the run's name and its cells; after each launch a `row` for each row of the cells that it was of, as
//!          they stand now: a later row of the same cell, quantity, phase and step takes the place of the earlier; `warning`;
//!          and `end`, with how far the run came and the code that the command ends with. A line is written whole.
//! Checked: `events_are_lines`; `tests/lab_nets.rs`.

use crate::campaign::Observer;
use crate::failure::Failure;
use crate::output;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{CellRecord, ResultRow, Run};
use sonde_record::SchemaName;
use std::collections::BTreeSet;

/// Something that happened.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// The run begins, or goes on.
    Start {
        /// `sonde/2`.
        schema: SchemaName,
        /// Its name.
        run: &'a str,
        /// The command as it was given.
        command: &'a str,
        /// Cells that are to be measured.
        cells: usize,
        /// Launches that the plan wants.
        launches: u64,
    },
    /// A launch ended: a row as it stands now.
    Row {
        /// The launch's number, from 0.
        launch: u64,
        /// The row.
        row: Box<ResultRow>,
    },
    /// Check this before trusting the results.
    Warning {
        /// In words.
        text: &'a str,
    },
    /// It is over.
    End {
        /// Its name.
        run: &'a str,
        /// Launches that are missing.
        missing: usize,
        /// What the command ends with.
        code: i32,
    },
}

impl Event<'_> {
    /// The begin of a run.
    pub fn start(run: &Run) -> Event<'_> {
        Event::Start {
            schema: SchemaName::V2,
            run: &run.head.id,
            command: &run.head.command,
            cells: run.cells.len(),
            launches: run.cells.iter().map(|cell| cell.launches).sum(),
        }
    }

    /// Prints it.
    ///
    /// # Errors
    /// It holds what is not a figure.
    pub fn say(&self) -> Result<(), Failure> {
        output::text(&self.line()?);
        Ok(())
    }

    fn line(&self) -> Result<String, Failure> {
        let line = serde_json::to_string(self).map_err(Failure::cannot)?;
        Ok(line + "\n")
    }
}

/// Who writes the events down.
pub struct Stream;

impl Observer for Stream {
    fn began(&mut self, run: &Run) -> Result<(), Failure> {
        Event::start(run).say()
    }

    fn launched(&mut self, run: &Run) {
        let Some(launch) = run.launches.last() else {
            return;
        };
        let of = |cell: &&CellRecord| launch.results.iter().any(|one| one.cell == cell.id);
        let cells: Vec<CellRecord> = run.cells.iter().filter(of).cloned().collect();
        let index = launch.results.first().map_or(0, |one| one.index);
        for row in rows(run, &cells) {
            let row = Box::new(row);
            // A row that is no JSON is in the store all the same.
            drop(Event::Row { launch: index, row }.say());
        }
    }
}

/// The rows of some cells as they stand now.
fn rows(run: &Run, cells: &[CellRecord]) -> Vec<ResultRow> {
    let ids: BTreeSet<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
    let of = |result: &sonde_measure::CellResult| ids.contains(result.cell.as_str());
    let launches = run.launches.iter();
    let part = Run {
        head: run.head.clone(),
        hosts: run.hosts.clone(),
        networks: run.networks.clone(),
        cells: cells.to_vec(),
        launches: launches
            .filter(|launch| launch.results.iter().any(of))
            .cloned()
            .collect(),
        events: Vec::new(),
        warnings: Vec::new(),
    };
    part.rows()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines() {
        let warning = Event::Warning { text: "two\nlines" };
        let end = Event::End {
            run: "r",
            missing: 3,
            code: 1,
        };
        let text = warning.line().unwrap() + &end.line().unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (&lines[0]["event"], &lines[0]["text"]),
            (&"warning".into(), &"two\nlines".into())
        );
        assert_eq!(
            (&lines[1]["event"], &lines[1]["code"]),
            (&"end".into(), &1.into())
        );
    }
}
