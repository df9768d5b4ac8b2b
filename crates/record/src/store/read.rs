//! Runs as they were stored.
//!
//! Model:   a run is read within one transaction, so that a writer meanwhile is seen wholly or not at all. What cannot have
//!          been written by a store is an error that names the place.
//! Checked: `a_run_comes_back_as_it_was`, `damage_is_told`, `unknown_runs_name_the_nearest`, `runs_are_found_by_what_people_type` in tests/store.rs.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::collections::BTreeMap;

use rusqlite::types::{FromSql, FromSqlError, Type};
use rusqlite::{OptionalExtension, Row, Transaction, TransactionBehavior};
use sonde_stats::{Parts, Series};

use super::value::{Json, Wide, Wide64, Word};
use super::{Fault, Store, StoreError, VERSION, blob, old};
use sonde_measure::{
    CellRecord, CellResult, ClockRecord, Disturbance, EventRecord, Factors, HostRecord, KnobValues,
    LaunchRecord, Measurement, NetworkRecord, Noise, Run, RunHead, Touch,
};

/// The word for the run that began last.
pub const LATEST: &str = "latest";

/// What a run is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName {
    /// Its id.
    pub run: String,
    /// The name.
    pub name: String,
}

/// The kind of the event that says what a run is called.
pub const NAMED: &str = "named";

/// How many ids are named when one is not found.
const NEAREST: usize = 3;

const HEAD: &str =
    "SELECT id, command, plan, seed, version, began_unix_ns, ended_unix_ns, state FROM run";

impl Store {
    /// The heads of all runs, the oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs(&self) -> Result<Vec<RunHead>, StoreError> {
        let sql = format!("{HEAD} ORDER BY began_unix_ns, id");
        self.reading(|transaction| all(transaction, &sql, [], head))
    }

    /// The run that began last.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn latest(&self) -> Result<Option<RunHead>, StoreError> {
        self.reading(|transaction| last(transaction, "true"))
    }

    /// Of the runs that are not complete and have a plan to go on with, the one that began last: what `--resume` takes.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn resumable(&self) -> Result<Option<RunHead>, StoreError> {
        let can_be = "state <> 'complete' AND plan <> ''";
        self.reading(|transaction| last(transaction, can_be))
    }

    /// How disturbed the machine of this name was for the run that began last, where it was looked at since then.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn noise_since(&self, machine: &str, unix_ns: u64) -> Result<Option<Noise>, StoreError> {
        self.reading(|transaction| {
            let Some(run) = last(transaction, "true")? else {
                return Ok(None);
            };
            let hosts = all(transaction, HOSTS, [&run.id], host)?;
            let seen = hosts.into_iter().filter_map(|host| host.facts.noise);
            let mut fresh = seen.filter(|one| one.machine == machine && one.at_unix_ns >= unix_ns);
            Ok(fresh.next())
        })
    }

    /// What runs are called, in the order in which they were named: of a run the last counts. Several may have one name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn names(&self) -> Result<Vec<RunName>, StoreError> {
        let sql = "SELECT run, text FROM event WHERE kind = ?1 ORDER BY id";
        self.reading(|transaction| {
            all(transaction, sql, [NAMED], |row| {
                Ok(RunName {
                    run: row.get(0)?,
                    name: row.get(1)?,
                })
            })
        })
    }

    /// The id of the run that a text names: an id, a prefix of one id alone, [`LATEST`], `latest~2` for the second before it, a
    /// name, of which the last run is meant, or `name~1` for the one of it before.
    ///
    /// # Errors
    /// When there is none, or several begin so, or the store cannot be read.
    pub fn find(&self, text: &str) -> Result<String, StoreError> {
        let known = self.runs()?.into_iter().map(|head| head.id);
        let known: Vec<String> = known.collect();
        let (name, back) = match text.split_once('~') {
            None => (text, Some(0)),
            Some((name, back)) => (name, back.parse().ok()),
        };
        let names = self.names()?;
        let is_called = |id: &&String| {
            let mut of = names.iter().rev();
            name == LATEST
                || of
                    .find(|one| one.run == **id)
                    .is_some_and(|of| of.name == name)
        };
        let mut called = known.iter().rev().filter(is_called);
        if let Some(id) = back.and_then(|back| called.nth(back)) {
            return Ok(id.clone());
        }
        if name == LATEST {
            return Err(self.no_run(text)?);
        }
        if known.iter().any(|id| id == text) {
            return Ok(text.to_owned());
        }
        let is_meant = |id: &&String| !text.is_empty() && id.starts_with(text);
        let mut meant = known.iter().filter(is_meant);
        match (meant.next(), meant.count()) {
            (Some(id), 0) => Ok(id.clone()),
            (Some(_), others) => Err(StoreError::Several {
                path: self.path.clone(),
                begin: text.into(),
                count: others.saturating_add(1),
            }),
            (None, _) => Err(self.no_run(text)?),
        }
    }

    /// A whole run.
    ///
    /// # Errors
    /// When there is none of that id, or it cannot be read.
    pub fn load(&self, id: &str) -> Result<Run, StoreError> {
        self.reading(|transaction| {
            let sql = format!("{HEAD} WHERE id = ?1");
            let found = transaction.query_row(&sql, [id], head).optional()?;
            let head = match found {
                Some(head) => head,
                None => return Err(self.no_run(id)?.into()),
            };
            Ok(Run {
                head,
                hosts: all(transaction, HOSTS, [id], host)?,
                networks: all(transaction, NETWORKS, [id], network)?,
                cells: all(transaction, CELLS, [id], cell)?,
                launches: match self.pragma("user_version")? {
                    3..=VERSION => launches(transaction, id)?,
                    _ => old::launches(transaction, id, old::Tables::AS_THEY_WERE)?,
                },
                events: all(transaction, EVENTS, [id], event)?,
                warnings: all(transaction, WARNINGS, [id], |row| row.get(0))?,
            })
        })
    }

    /// The error for a run that is not there.
    pub(super) fn no_run(&self, id: &str) -> Result<StoreError, StoreError> {
        let likeness = |known: &str| strsim::jaro_winkler(known, id);
        let mut nearest: Vec<String> = self.known().map_err(|fault| self.error("read", fault))?;
        nearest.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)).then(b.cmp(a)));
        nearest.truncate(NEAREST);
        Ok(StoreError::NoRun {
            path: self.path.clone(),
            id: id.into(),
            nearest,
        })
    }

    pub(super) fn known(&self) -> Result<Vec<String>, Fault> {
        let mut statement = self.connection.prepare("SELECT id FROM run")?;
        let ids = statement.query_map([], |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    fn reading<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let begun = Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred);
        let read = begun
            .map_err(Fault::from)
            .and_then(|transaction| work(&transaction));
        read.map_err(|fault| self.error("read", fault))
    }
}

pub(super) fn all<T>(
    transaction: &Transaction<'_>,
    sql: &str,
    parameters: impl rusqlite::Params,
    of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Fault> {
    let mut statement = transaction.prepare(sql)?;
    let rows = statement.query_map(parameters, of)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn last(transaction: &Transaction<'_>, condition: &str) -> Result<Option<RunHead>, Fault> {
    let sql = format!("{HEAD} WHERE {condition} ORDER BY began_unix_ns DESC, id DESC LIMIT 1");
    Ok(transaction.query_row(&sql, [], head).optional()?)
}

fn head(row: &Row<'_>) -> rusqlite::Result<RunHead> {
    Ok(RunHead {
        id: field(row, "id")?,
        command: field(row, "command")?,
        plan: field(row, "plan")?,
        seed: unsigned(row, "seed")?,
        version: field(row, "version")?,
        began_unix_ns: unsigned(row, "began_unix_ns")?,
        ended_unix_ns: optional_unsigned(row, "ended_unix_ns")?,
        state: field::<Word<_>>(row, "state")?.0,
    })
}

const HOSTS: &str = "SELECT * FROM host WHERE run = ?1 ORDER BY place";

fn host(row: &Row<'_>) -> rusqlite::Result<HostRecord> {
    let offset: Option<i64> = field(row, "clock_offset_ns")?;
    let clock = match offset {
        None => None,
        Some(offset_ns) => Some(ClockRecord {
            offset_ns,
            drift_ppb: field(row, "clock_drift_ppb")?,
            bound_ns: unsigned(row, "clock_bound_ns")?,
        }),
    };
    Ok(HostRecord {
        name: field(row, "name")?,
        address: field(row, "address")?,
        facts: field::<Json<_>>(row, "facts")?.0,
        clock,
    })
}

const NETWORKS: &str = "SELECT * FROM network WHERE run = ?1 ORDER BY place";

fn network(row: &Row<'_>) -> rusqlite::Result<NetworkRecord> {
    Ok(NetworkRecord {
        row: field::<Json<_>>(row, "description")?.0,
        ceilings: field::<Json<_>>(row, "ceilings")?.0,
        attachment: field(row, "attachment")?,
        backpressure: optional_word(row, "backpressure")?,
        spec: field(row, "spec")?,
    })
}

/// A column; an error names it.
pub(super) fn field<T: FromSql>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    use rusqlite::Error as E;
    row.get(column).map_err(|error| match error {
        E::FromSqlConversionFailure(at, kind, cause) => {
            E::FromSqlConversionFailure(at, kind, format!("column {column}: {cause}").into())
        }
        E::IntegralValueOutOfRange(at, value) => {
            let text = format!("column {column}: {value} is out of range");
            E::FromSqlConversionFailure(at, Type::Integer, text.into())
        }
        other => other,
    })
}

pub(super) fn unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(field::<Wide64>(row, column)?.0)
}

fn optional_unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    Ok(field::<Option<Wide64>>(row, column)?.map(|value| value.0))
}

fn optional_word<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<Option<T>> {
    Ok(field::<Option<Word<T>>>(row, column)?.map(|word| word.0))
}

const CELLS: &str = "SELECT * FROM cell WHERE run = ?1 ORDER BY place";

fn cell(row: &Row<'_>) -> rusqlite::Result<CellRecord> {
    Ok(CellRecord {
        id: field(row, "id")?,
        factors: Factors {
            probe: field(row, "probe")?,
            mode: field(row, "mode")?,
            layer: field::<Word<_>>(row, "layer")?.0,
            path: field(row, "path")?,
            method: field(row, "method")?,
            knobs: knobs(row)?,
            wait: field(row, "wait")?,
            network: field(row, "network")?,
            testbed: field::<Word<_>>(row, "testbed")?.0,
            hosts: field::<Json<_>>(row, "hosts")?.0,
            profile: field(row, "profile")?,
            attachment: field(row, "attachment")?,
            load: field(row, "load")?,
            size_bytes: unsigned(row, "size_bytes")?,
        },
        launches: unsigned(row, "launches")?,
        skipped: field(row, "skipped")?,
    })
}

/// A store of version 1, read as it is, has no such column.
fn knobs(row: &Row<'_>) -> rusqlite::Result<KnobValues> {
    match row.as_ref().column_index("knobs") {
        Ok(_) => Ok(field::<Json<_>>(row, "knobs")?.0),
        Err(_) => Ok(Default::default()),
    }
}

const LAUNCHES: &str = "SELECT * FROM launch WHERE run = ?1 ORDER BY id";

fn launches(transaction: &Transaction<'_>, run: &str) -> Result<Vec<LaunchRecord>, Fault> {
    let mut results = results(transaction, run)?;
    let mut disturbances = by_owner(
        transaction,
        DISTURBANCES,
        run,
        ["disturbance", "launch"],
        |row| Ok(disturbance(row)?),
    )?;
    all(transaction, LAUNCHES, [run], |row| {
        let id: i64 = field(row, "id")?;
        let aside = set_aside(row)?;
        Ok(LaunchRecord {
            src: field(row, "src")?,
            dst: field(row, "dst")?,
            began_unix_ns: unsigned(row, "began_unix_ns")?,
            took_ns: unsigned(row, "took_ns")?,
            set_aside: aside.is_some(),
            results: aside.or_else(|| results.remove(&id)).unwrap_or_default(),
            evidence: field::<Json<_>>(row, "evidence")?.0,
            interference: field::<Json<_>>(row, "interference")?.0,
            verdict: field::<Option<Json<_>>>(row, "verdict")?.map(|json| json.0),
            disturbances: disturbances.remove(&id).unwrap_or_default(),
        })
    })
}

/// What a launch gave that was set aside. A store of an older version, read as it is, has no such column.
fn set_aside(row: &Row<'_>) -> rusqlite::Result<Option<Vec<CellResult>>> {
    match row.as_ref().column_index("set_aside") {
        Ok(_) => Ok(field::<Option<Json<_>>>(row, "set_aside")?.map(|json| json.0)),
        Err(_) => Ok(None),
    }
}

const RESULTS: &str = "SELECT * FROM result WHERE run = ?1 ORDER BY id";

/// The results of each launch of a run.
fn results(
    transaction: &Transaction<'_>,
    run: &str,
) -> Result<BTreeMap<i64, Vec<CellResult>>, Fault> {
    let mut series = by_owner(transaction, SERIES, run, ["series", "result"], measurement)?;
    by_owner(transaction, RESULTS, run, ["result", "launch"], |row| {
        let id: i64 = field(row, "id")?;
        Ok(CellResult {
            cell: field(row, "cell")?,
            index: unsigned(row, "number")?,
            failure: field(row, "failure")?,
            series: series.remove(&id).unwrap_or_default(),
        })
    })
}

const DISTURBANCES: &str =
    "SELECT disturbance.* FROM launch JOIN disturbance ON disturbance.launch = launch.id
    WHERE launch.run = ?1 ORDER BY launch.id, disturbance.place";

fn disturbance(row: &Row<'_>) -> rusqlite::Result<Disturbance> {
    Ok(Disturbance {
        source: field::<Word<_>>(row, "source")?.0,
        host: field(row, "host")?,
        interface: field(row, "interface")?,
        from_unix_ns: unsigned(row, "from_unix_ns")?,
        to_unix_ns: unsigned(row, "to_unix_ns")?,
        most_ns: unsigned(row, "most_ns")?,
        events: unsigned(row, "events")?,
    })
}

const SERIES: &str = "SELECT series.* FROM result JOIN series ON series.result = result.id
    WHERE result.run = ?1 ORDER BY result.id, series.place";

/// What belongs to each line of another table, whose id stands in the column `owner`; in the order of `sql`. An error says
/// `what` it is.
pub(super) fn by_owner<T>(
    transaction: &Transaction<'_>,
    sql: &str,
    run: &str,
    [what, owner]: [&str; 2],
    mut of: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<BTreeMap<i64, Vec<T>>, Fault> {
    let mut statement = transaction.prepare(sql)?;
    let mut rows = statement.query([run])?;
    let mut found: BTreeMap<i64, Vec<T>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let id = field(row, owner)?;
        let all = found.entry(id).or_default();
        all.push(of(row).map_err(|fault| match fault {
            Fault::Damaged(why) => {
                let place = all.len();
                Fault::Damaged(format!("{what} {place} of {owner} {id}: {why}"))
            }
            other => other,
        })?);
    }
    Ok(found)
}

pub(super) fn measurement(row: &Row<'_>) -> Result<Measurement, Fault> {
    let parts = Parts {
        min: optional_unsigned(row, "min")?.unwrap_or(0),
        max: optional_unsigned(row, "max")?.unwrap_or(0),
        sum: field::<Wide>(row, "sum")?.0,
        first: blob::samples(row.get_ref("first")?.as_blob().map_err(no_blob)?)?,
        buckets: blob::buckets(row.get_ref("buckets")?.as_blob().map_err(no_blob)?)?,
    };
    let series = Series::try_from(parts)?;
    let count: u64 = unsigned(row, "count")?;
    if series.count() != count {
        let found = series.count();
        let what = format!("its histogram has {found} samples where {count} should be");
        return Err(Fault::Damaged(what));
    }
    Ok(Measurement {
        touched: touched(row)?,
        quantity: field::<Word<_>>(row, "quantity")?.0,
        phase: field::<Word<_>>(row, "phase")?.0,
        step: optional_word(row, "step")?,
        series,
        reason: field(row, "reason")?,
    })
}

/// A store of an older version, read as it is, has no such column.
fn touched(row: &Row<'_>) -> rusqlite::Result<Option<Touch>> {
    match row.as_ref().column_index("touched") {
        Ok(_) => Ok(field::<Option<Json<_>>>(row, "touched")?.map(|json| json.0)),
        Err(_) => Ok(None),
    }
}

fn no_blob(error: FromSqlError) -> Fault {
    Fault::Damaged(error.to_string())
}

const EVENTS: &str = "SELECT at_unix_ns, kind, text FROM event WHERE run = ?1 ORDER BY id";

fn event(row: &Row<'_>) -> rusqlite::Result<EventRecord> {
    Ok(EventRecord {
        at_unix_ns: unsigned(row, "at_unix_ns")?,
        kind: field(row, "kind")?,
        text: field(row, "text")?,
    })
}

const WARNINGS: &str = "SELECT text FROM warning WHERE run = ?1 ORDER BY id";
