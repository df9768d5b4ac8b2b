//! Stores of versions 1 to 4: how the launches of the first two are read, and how all are brought up to this version.
//!
//! Model:   version 1 had no knobs of cells. In both a launch was stored once for each of its cells, with its evidence as a map
//!          of texts. Version 3 did not know which samples met a disturbance, version 4 set no launch aside. Lines that follow each other, began and ended together and saw the same are one launch.
//! Checked: `stores_of_older_versions_are_read_and_brought_up` in tests/store.rs; the runs of the corpus.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{Row, Transaction};
use sonde_measure::{CellResult, Evidence, LaunchRecord};

use super::read::{all, by_owner, field, measurement, unsigned};
use super::value::Json;
use super::{Fault, SCHEMA, Store};

/// From version 1 to 2: cells have knobs.
const KNOBS: &str = "ALTER TABLE cell ADD COLUMN knobs TEXT NOT NULL DEFAULT '{}'";
/// From version 3 to 4.
const TOUCHED: &str = "ALTER TABLE series ADD COLUMN touched TEXT";
/// From version 4 to 5.
const SET_ASIDE: &str = "ALTER TABLE launch ADD COLUMN set_aside TEXT";
const PUT_ASIDE: &str =
    "ALTER TABLE launch RENAME TO launch_2; ALTER TABLE series RENAME TO series_2";
const REMOVE: &str = "DROP TABLE series_2; DROP TABLE launch_2";

/// What was of one size, though its name did not say so.
const OF_ONE_SIZE: [&str; 2] = ["load.model_idle_ns", "load.model_loaded_ns"];

/// The names of the tables that changed.
#[derive(Clone, Copy)]
pub(super) struct Tables {
    launch: &'static str,
    series: &'static str,
}

impl Tables {
    pub(super) const AS_THEY_WERE: Self = Self {
        launch: "launch",
        series: "series",
    };
    const ASIDE: Self = Self {
        launch: "launch_2",
        series: "series_2",
    };
}

impl Store {
    /// Brings an older store up to this version.
    pub(super) fn bring_up(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        match self.pragma("user_version")? {
            4 => return Ok(transaction.execute_batch(SET_ASIDE)?),
            3 => {
                transaction.execute_batch(TOUCHED)?;
                return Ok(transaction.execute_batch(SET_ASIDE)?);
            }
            1 => transaction.execute_batch(KNOBS)?,
            _ => {}
        }
        transaction.execute_batch(PUT_ASIDE)?;
        transaction.execute_batch(SCHEMA)?;
        for id in self.known()? {
            for launch in launches(transaction, &id, Tables::ASIDE)? {
                self.insert_launch(transaction, &id, &launch)?;
            }
        }
        Ok(transaction.execute_batch(REMOVE)?)
    }
}

/// One line: a launch with one result, and all that lines of one launch have in common.
struct Line {
    launch: LaunchRecord,
    shared: BTreeMap<String, String>,
}

impl Line {
    fn is_of(&self, other: &Self) -> bool {
        let (one, two) = (&self.launch, &other.launch);
        (&one.src, &one.dst, one.began_unix_ns, one.took_ns)
            == (&two.src, &two.dst, two.began_unix_ns, two.took_ns)
            && self.shared == other.shared
            && one.interference == two.interference
            && one.verdict == two.verdict
    }
}

/// The launches of a run.
pub(super) fn launches(
    transaction: &Transaction<'_>,
    run: &str,
    Tables { launch, series }: Tables,
) -> Result<Vec<LaunchRecord>, Fault> {
    let sql = format!(
        "SELECT {series}.* FROM {launch} JOIN {series} ON {series}.launch = {launch}.id
         WHERE {launch}.run = ?1 ORDER BY {launch}.id, {series}.place"
    );
    let mut series = by_owner(transaction, &sql, run, ["series", "launch"], measurement)?;
    let sql = format!(
        "SELECT {launch}.*, cell.size_bytes FROM {launch}
         LEFT JOIN cell ON cell.run = {launch}.run AND cell.id = {launch}.cell
         WHERE {launch}.run = ?1 ORDER BY {launch}.id"
    );
    let mut made: Vec<Line> = Vec::new();
    for (id, mut next) in all(transaction, &sql, [run], line)? {
        // One that failed has none.
        if let Some(result) = next.launch.results.first_mut() {
            result.series = series.remove(&id).unwrap_or_default();
        }
        match made.last_mut() {
            Some(last) if last.is_of(&next) => {
                last.launch.evidence.merge(next.launch.evidence);
                last.launch.results.append(&mut next.launch.results);
            }
            _ => made.push(next),
        }
    }
    Ok(made.into_iter().map(|line| line.launch).collect())
}

/// A line and its id.
fn line(row: &Row<'_>) -> rusqlite::Result<(i64, Line)> {
    let texts: BTreeMap<String, String> = field::<Json<_>>(row, "settings")?.0;
    let mut shared = texts.clone();
    shared.retain(|name, _| !OF_ONE_SIZE.contains(&name.as_str()));
    let evidence = Evidence::read(texts, unsigned(row, "size_bytes")?).map_err(|unread| {
        let text = format!("column settings: {unread}");
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, text.into())
    })?;
    let result = CellResult {
        cell: field(row, "cell")?,
        index: unsigned(row, "number")?,
        failure: field(row, "failure")?,
        series: Vec::new(),
    };
    let launch = LaunchRecord {
        src: field(row, "src")?,
        dst: field(row, "dst")?,
        began_unix_ns: unsigned(row, "began_unix_ns")?,
        took_ns: unsigned(row, "took_ns")?,
        results: vec![result],
        evidence,
        interference: field::<Json<_>>(row, "interference")?.0,
        verdict: field::<Option<Json<_>>>(row, "verdict")?.map(|json| json.0),
        disturbances: Vec::new(),
        set_aside: false,
    };
    Ok((field(row, "id")?, Line { launch, shared }))
}
