//! The lines of the tables, as they are written.
//!
//! Checked: `a_run_comes_back_as_it_was`, `a_failed_launch_is_replaced_and_a_measured_one_kept` in tests/store.rs.

use rusqlite::{Transaction, params};
use sonde_measure::{
    CellRecord, CellResult, Disturbance, EventRecord, HostRecord, LaunchRecord, Measurement,
    NetworkRecord, RunHead,
};

use super::value::{Wide, json, whole, word};
use super::{Fault, Store, StoreError, blob};

impl Store {
    pub(super) fn insert_head(
        &self,
        transaction: &Transaction<'_>,
        head: &RunHead,
    ) -> Result<(), Fault> {
        let ended = head.ended_unix_ns.map(|ns| whole("run.ended_unix_ns", ns));
        let inserted = transaction.execute(
            "INSERT INTO run (id, command, plan, seed, version, began_unix_ns, ended_unix_ns, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
            params![
                head.id,
                head.command,
                head.plan,
                Wide(head.seed.into()),
                head.version,
                whole("run.began_unix_ns", head.began_unix_ns)?,
                ended.transpose()?,
                word(&head.state),
            ],
        )?;
        match inserted {
            0 => Err(StoreError::Taken {
                path: self.path.clone(),
                id: head.id.clone(),
            }
            .into()),
            _ => Ok(()),
        }
    }

    pub(super) fn insert_launch(
        &self,
        transaction: &Transaction<'_>,
        run: &str,
        launch: &LaunchRecord,
    ) -> Result<(), Fault> {
        let inserted = transaction.execute(
            "INSERT INTO launch (run, src, dst, began_unix_ns, took_ns, evidence, interference, verdict, set_aside)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                run,
                launch.src,
                launch.dst,
                whole("launch.began_unix_ns", launch.began_unix_ns)?,
                whole("launch.took_ns", launch.took_ns)?,
                json(&launch.evidence),
                json(&launch.interference),
                launch.verdict.as_ref().map(json),
                launch.set_aside.then(|| json(&launch.results)),
            ],
        );
        inserted.map_err(|error| self.orphan(error.into(), "a repetition", run))?;
        let id = transaction.last_insert_rowid();
        for (place, one) in launch.disturbances.iter().enumerate() {
            insert_disturbance(transaction, id, place, one)?;
        }
        // What was set aside has the numbers of what was made in its place.
        let counted = launch.results.iter().filter(|_| !launch.set_aside);
        for result in counted {
            self.insert_result(transaction, run, id, result)?;
        }
        Ok(())
    }

    fn insert_result(
        &self,
        transaction: &Transaction<'_>,
        run: &str,
        launch: i64,
        result: &CellResult,
    ) -> Result<(), Fault> {
        let number = whole("result.number", result.index)?;
        remove_failed(transaction, run, &result.cell, number)?;
        let inserted = transaction.execute(
            "INSERT INTO result (launch, run, cell, number, failure) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO NOTHING",
            params![launch, run, result.cell, number, result.failure],
        );
        let missing = format!("{run} with cell {}", result.cell);
        let inserted =
            inserted.map_err(|error| self.orphan(error.into(), "a repetition", &missing))?;
        if inserted == 0 {
            return Err(StoreError::Measured {
                path: self.path.clone(),
                cell: result.cell.clone(),
                index: result.index,
            }
            .into());
        }
        let id = transaction.last_insert_rowid();
        for (place, one) in result.series.iter().enumerate() {
            insert_series(transaction, id, place, one)?;
        }
        Ok(())
    }
}

/// Removes the result of this cell and number if it failed, and its launch with it where nothing else is left of that.
fn remove_failed(
    transaction: &Transaction<'_>,
    run: &str,
    cell: &str,
    number: i64,
) -> rusqlite::Result<()> {
    transaction.execute(
        "DELETE FROM launch WHERE id =
             (SELECT launch FROM result WHERE run = ?1 AND cell = ?2 AND number = ?3 AND failure IS NOT NULL)
         AND (SELECT count(*) FROM result WHERE result.launch = launch.id) = 1",
        params![run, cell, number],
    )?;
    transaction.execute(
        "DELETE FROM result WHERE run = ?1 AND cell = ?2 AND number = ?3 AND failure IS NOT NULL",
        params![run, cell, number],
    )?;
    Ok(())
}

fn insert_disturbance(
    transaction: &Transaction<'_>,
    launch: i64,
    place: usize,
    one: &Disturbance,
) -> Result<(), Fault> {
    transaction.execute(
        "INSERT INTO disturbance (launch, place, source, host, interface, from_unix_ns, to_unix_ns, most_ns, events)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            launch,
            place as i64,
            word(&one.source),
            one.host,
            one.interface,
            whole("disturbance.from_unix_ns", one.from_unix_ns)?,
            whole("disturbance.to_unix_ns", one.to_unix_ns)?,
            whole("disturbance.most_ns", one.most_ns)?,
            whole("disturbance.events", one.events)?,
        ],
    )?;
    Ok(())
}

pub(super) fn insert_host(
    transaction: &Transaction<'_>,
    run: &str,
    host: &HostRecord,
) -> Result<(), Fault> {
    let bound = host
        .clock
        .map(|clock| whole("host.clock_bound_ns", clock.bound_ns));
    transaction.execute(
        "INSERT INTO host (run, place, name, address, facts, clock_offset_ns, clock_drift_ppb, clock_bound_ns)
         VALUES (?1, (SELECT count(*) FROM host WHERE run = ?1), ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (run, name) DO UPDATE SET address = excluded.address, facts = excluded.facts,
             clock_offset_ns = excluded.clock_offset_ns, clock_drift_ppb = excluded.clock_drift_ppb,
             clock_bound_ns = excluded.clock_bound_ns",
        params![
            run,
            host.name,
            host.address,
            json(&host.facts),
            host.clock.map(|clock| clock.offset_ns),
            host.clock.and_then(|clock| clock.drift_ppb),
            bound.transpose()?,
        ],
    )?;
    Ok(())
}

pub(super) fn insert_network(
    transaction: &Transaction<'_>,
    run: &str,
    network: &NetworkRecord,
) -> Result<(), Fault> {
    transaction.execute(
        "INSERT INTO network (run, place, name, description, ceilings, attachment, backpressure, spec)
         VALUES (?1, (SELECT count(*) FROM network WHERE run = ?1), ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (run, name) DO UPDATE SET description = excluded.description, ceilings = excluded.ceilings,
             attachment = excluded.attachment, backpressure = excluded.backpressure, spec = excluded.spec",
        params![
            run,
            network.row.name,
            json(&network.row),
            json(&network.ceilings),
            network.attachment,
            network.backpressure.as_ref().map(word),
            network.spec,
        ],
    )?;
    Ok(())
}

pub(super) fn insert_cell(
    transaction: &Transaction<'_>,
    run: &str,
    cell: &CellRecord,
) -> Result<(), Fault> {
    let factors = &cell.factors;
    transaction.execute(
        "INSERT INTO cell (run, place, id, probe, mode, layer, path, method, wait, network, testbed, hosts, profile,
             attachment, load, size_bytes, launches, skipped, knobs)
         VALUES (?1, (SELECT count(*) FROM cell WHERE run = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
             ?15, ?16, ?17, ?18)
         ON CONFLICT (run, id) DO UPDATE SET launches = excluded.launches, skipped = excluded.skipped",
        params![
            run,
            cell.id,
            factors.probe,
            factors.mode,
            word(&factors.layer),
            factors.path,
            factors.method,
            factors.wait,
            factors.network,
            word(&factors.testbed),
            json(&factors.hosts),
            factors.profile,
            factors.attachment,
            factors.load,
            whole("cell.size_bytes", factors.size_bytes)?,
            whole("cell.launches", cell.launches)?,
            cell.skipped,
            json(&factors.knobs),
        ],
    )?;
    Ok(())
}

fn insert_series(
    transaction: &Transaction<'_>,
    result: i64,
    place: usize,
    one: &Measurement,
) -> Result<(), Fault> {
    let series = &one.series;
    let wide = |value: Option<u64>| value.map(|value| Wide(value.into()));
    transaction.execute(
        "INSERT INTO series (result, place, quantity, phase, step, reason, count, min, max, sum, first, buckets, touched)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            result,
            place as i64,
            word(&one.quantity),
            word(&one.phase),
            one.step.as_ref().map(word),
            one.reason,
            whole("series.count", series.count())?,
            wide(series.min()),
            wide(series.max()),
            Wide(series.sum()),
            blob::of_samples(series.first()),
            blob::of_buckets(&series.buckets()),
            one.touched.as_ref().map(json),
        ],
    )?;
    Ok(())
}

pub(super) fn insert_event(
    transaction: &Transaction<'_>,
    run: &str,
    event: &EventRecord,
) -> Result<(), Fault> {
    let at = whole("event.at_unix_ns", event.at_unix_ns)?;
    transaction.execute(
        "INSERT INTO event (run, at_unix_ns, kind, text) VALUES (?1, ?2, ?3, ?4)",
        params![run, at, event.kind, event.text],
    )?;
    Ok(())
}

pub(super) fn insert_warning(
    transaction: &Transaction<'_>,
    run: &str,
    warning: &str,
) -> Result<(), Fault> {
    transaction.execute(
        "INSERT INTO warning (run, text) VALUES (?1, ?2)",
        params![run, warning],
    )?;
    Ok(())
}
