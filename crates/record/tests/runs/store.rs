//! Runs that are stored and read again, and stores that are not what they should be.

use crate::sample::{Folder, cell, failed, full, launch, measurement, planned};
use rusqlite::Connection;
use sonde_measure::{ClockRecord, LaunchRecord, Phase, Quantity, RunState};
use sonde_record::{Store, StoreError};
use std::fs;

fn told(error: &StoreError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

#[test]
fn a_run_comes_back_as_it_was() {
    let dir = Folder::new("store");
    // In one piece.
    let run = full("a");
    Store::open(&dir).unwrap().begin(&run).unwrap();
    assert_eq!(Store::open(&dir).unwrap().load("a").unwrap(), run);
    // Bit by bit.
    let mut run = planned("b", full("b").cells);
    let store = Store::open(&dir.join("deeper/still")).unwrap();
    store.begin(&run).unwrap();
    for launch in full("b").launches {
        store.launch("b", &launch).unwrap();
        run.launches.push(launch);
        assert_eq!(store.load("b").unwrap(), run);
    }
    run.hosts[1].clock = Some(ClockRecord {
        offset_ns: i64::MIN,
        drift_ppb: Some(-3),
        bound_ns: 1,
    });
    store.host("b", &run.hosts[1]).unwrap();
    run.networks[0].backpressure = None;
    store.network("b", &run.networks[0]).unwrap();
    run.cells[1].launches = 9;
    store.cell("b", &run.cells[1]).unwrap();
    run.cells.push(cell("latency", 4_096, 3));
    store.cell("b", &run.cells[4]).unwrap();
    for text in ["second", "third"] {
        run.warnings.push(text.into());
        store.warning("b", text).unwrap();
        let event = sonde_measure::EventRecord {
            text: text.into(),
            ..run.events[0].clone()
        };
        store.event("b", &event).unwrap();
        run.events.push(event);
    }
    (run.head.state, run.head.ended_unix_ns) = (RunState::Partial, Some(1_796_000_000_000_000_000));
    store
        .end_at("b", run.head.state, run.head.ended_unix_ns)
        .unwrap();
    drop(store);
    let read = Store::read(&dir.join("deeper/still"))
        .unwrap()
        .load("b")
        .unwrap();
    assert_eq!(read, run);
    assert_eq!(read.rows(), run.rows());
}

#[test]
fn a_failed_launch_is_replaced_and_a_measured_one_kept() {
    let dir = Folder::new("replace");
    let store = Store::open(&dir).unwrap();
    let cell = cell("latency", 1, 2);
    store.begin(&planned("r", vec![cell.clone()])).unwrap();
    let good = |value| {
        launch(
            &cell,
            0,
            vec![measurement(Quantity::LatencyNs, Phase::Warm, [value])],
        )
    };
    store.launch("r", &failed(&cell, 0, "lost")).unwrap();
    store.launch("r", &failed(&cell, 0, "lost again")).unwrap();
    assert_eq!(store.load("r").unwrap().missing().len(), 2);
    store.launch("r", &good(5)).unwrap();
    let run = store.load("r").unwrap();
    assert_eq!((run.launches.len(), run.missing().len()), (1, 1));
    // Neither a failure nor another measurement takes its place, and what comes with it is not stored either.
    for other in [good(6), failed(&cell, 0, "late")] {
        let next = LaunchRecord {
            index: 1,
            ..good(7)
        };
        let error = store.launches("r", &[next, other]).unwrap_err();
        told(&error, &["launch 0 of cell", "measured already"]);
    }
    assert_eq!(store.load("r").unwrap(), run);
}

#[test]
fn runs_are_listed_by_their_begin() {
    let dir = Folder::new("list");
    let store = Store::open(&dir).unwrap();
    assert_eq!(
        (
            store.runs().unwrap().len(),
            store.latest().unwrap(),
            store.resumable().unwrap()
        ),
        (0, None, None)
    );
    for (id, began, state) in [
        ("x", 30, RunState::Complete),
        ("y", 10, RunState::Open),
        ("z", 20, RunState::Partial),
    ] {
        let mut run = planned(id, Vec::new());
        (run.head.began_unix_ns, run.head.state) = (began, state);
        store.begin(&run).unwrap();
    }
    let ids: Vec<_> = store
        .runs()
        .unwrap()
        .into_iter()
        .map(|head| head.id)
        .collect();
    assert_eq!(ids, ["y", "z", "x"]);
    assert_eq!(store.latest().unwrap().unwrap().id, "x");
    assert_eq!(store.resumable().unwrap().unwrap().id, "z");
    store.end("z", RunState::Complete).unwrap();
    assert_eq!(store.resumable().unwrap().unwrap().id, "y");
    let ended = store.latest().unwrap().unwrap().ended_unix_ns;
    assert_eq!(ended, None);
    assert!(store.load("z").unwrap().head.ended_unix_ns.is_some());
    store.end("z", RunState::Open).unwrap();
    assert_eq!(store.load("z").unwrap().head.ended_unix_ns, None);
    told(
        &store.begin(&planned("x", Vec::new())).unwrap_err(),
        &["run x", "has one of that id"],
    );
}

#[test]
fn unknown_runs_name_the_nearest() {
    let dir = Folder::new("nearest");
    let store = Store::open(&dir).unwrap();
    told(&store.load("r").unwrap_err(), &["no run r", "none yet"]);
    for id in [
        "20261121T043302Z-1f09c3",
        "20261121T050000Z-aaaaaa",
        "20250101T000000Z-bbbbbb",
        "20251111T000000Z-cccccc",
    ] {
        store.begin(&planned(id, Vec::new())).unwrap();
    }
    let error = store.load("20261121T043302Z-1f09c4").unwrap_err();
    told(
        &error,
        &[
            "no run 20261121T043302Z-1f09c4",
            "sonde.db",
            "nearest: 20261121T043302Z-1f09c3, ",
        ],
    );
    assert!(matches!(&error, StoreError::NoRun { nearest, .. } if nearest.len() == 3));
    told(
        &store.end("r", RunState::Complete).unwrap_err(),
        &["no run r"],
    );
}

#[test]
fn what_points_nowhere_is_refused() {
    let dir = Folder::new("orphan");
    let store = Store::open(&dir).unwrap();
    let run = full("r");
    store.begin(&planned("r", Vec::new())).unwrap();
    told(
        &store.launch("r", &run.launches[0]).unwrap_err(),
        &["cannot store a launch", &run.launches[0].cell],
    );
    for error in [
        store.warning("no", "w").unwrap_err(),
        store.event("no", &run.events[0]).unwrap_err(),
        store.cell("no", &run.cells[0]).unwrap_err(),
        store.host("no", &run.hosts[0]).unwrap_err(),
        store.network("no", &run.networks[0]).unwrap_err(),
    ] {
        told(&error, &["run no is not in the store"]);
    }
    let mut huge = full("h");
    huge.launches[3].took_ns = u64::MAX;
    told(
        &store.begin(&huge).unwrap_err(),
        &["launch.took_ns", "18446744073709551615"],
    );
    told(&store.load("h").unwrap_err(), &["no run h"]);
}

#[test]
fn large_samples_come_back() {
    let dir = Folder::new("large");
    let store = Store::open(&dir).unwrap();
    let cell = cell("latency", 1, 1);
    let mut run = planned("r", vec![cell.clone()]);
    let series = measurement(
        Quantity::LatencyNs,
        Phase::Warm,
        (0..1_500).map(|n| u64::MAX - n * n),
    );
    run.launches = vec![launch(&cell, 0, vec![series])];
    store.begin(&run).unwrap();
    assert_eq!(store.load("r").unwrap(), run);
}

#[test]
fn a_store_of_version_1_is_read_and_brought_up() {
    let dir = Folder::new("old");
    let run = full("r");
    Store::open(&dir).unwrap().begin(&run).unwrap();
    let old = Connection::open(dir.join("sonde.db")).unwrap();
    old.execute_batch("ALTER TABLE cell DROP COLUMN knobs; PRAGMA user_version = 1")
        .unwrap();
    drop(old);
    let mut cells = run.cells;
    cells.iter_mut().for_each(|cell| cell.factors.knobs.clear());
    let loaded = |store: Store| store.load("r").unwrap().cells;
    assert_eq!(loaded(Store::read(&dir).unwrap()), cells);
    assert_eq!(loaded(Store::open(&dir).unwrap()), cells);
    let version: i64 = Connection::open(dir.join("sonde.db"))
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 2);
}

#[test]
fn other_files_are_told_apart() {
    let dir = Folder::new("foreign");
    let file = dir.join("sonde.db");
    let open = || Store::open(&dir).unwrap_err();
    told(&Store::read(&dir).unwrap_err(), &["no store at", "--out"]);
    assert!(!file.exists(), "reading makes nothing");
    fs::write(
        &file,
        "not a database, but some words that are longer than the head of one: ".repeat(20),
    )
    .unwrap();
    told(&open(), &["no store of sonde", "no database", "--out"]);
    told(&Store::read(&dir).unwrap_err(), &["no database"]);
    fs::remove_file(&file).unwrap();
    Connection::open(&file)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    told(&open(), &["database of another program"]);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    told(&open(), &["it is a folder"]);
    fs::remove_dir(&file).unwrap();
    Store::open(&dir).unwrap();
    Connection::open(&file)
        .unwrap()
        .execute_batch("PRAGMA user_version = 7")
        .unwrap();
    told(&open(), &["version 7", "versions up to 2", "--out"]);
    told(&Store::read(&dir).unwrap_err(), &["version 7"]);
    // A file where the folder should be.
    told(
        &Store::open(&file).unwrap_err(),
        &["cannot make the folder", "--out"],
    );
    // An empty file, as `touch` makes it, is as good as none.
    fs::write(&file, "").unwrap();
    told(&Store::read(&dir).unwrap_err(), &["no store at"]);
    Store::open(&dir).unwrap().begin(&full("r")).unwrap();
}

#[test]
fn damage_is_told() {
    let changes = [
        (
            "UPDATE series SET first = x'80' WHERE launch = 1 AND place = 0",
            "series 0 of launch 1: its bytes end",
        ),
        (
            "UPDATE series SET buckets = x'0101' WHERE launch = 1 AND place = 0",
            "series 0 of launch 1",
        ),
        (
            "UPDATE series SET count = 7 WHERE place = 1 AND launch = 1",
            "7 should be",
        ),
        ("UPDATE series SET quantity = 'beauty'", "beauty"),
        ("UPDATE series SET sum = 'much'", "sum"),
        ("UPDATE series SET min = -5", "min"),
        ("UPDATE launch SET settings = '{'", "settings"),
        (
            "UPDATE launch SET verdict = '{\"status\": \"passed\"}'",
            "verdict",
        ),
        ("UPDATE cell SET layer = 'cake'", "cake"),
        ("UPDATE run SET seed = x'00'", "seed"),
        ("UPDATE run SET state = 'well'", "well"),
        ("UPDATE network SET ceilings = '[1]'", "ceilings"),
    ];
    for (change, word) in changes {
        let dir = Folder::new("damage");
        let store = Store::open(&dir).unwrap();
        store.begin(&full("r")).unwrap();
        let other = Connection::open(store.path()).unwrap();
        assert!(other.execute(change, []).unwrap() > 0, "{change}");
        let error = store.load("r").unwrap_err();
        assert!(
            matches!(error, StoreError::Damaged { .. }),
            "{change}: {error:?}"
        );
        told(&error, &["is damaged", ".recover"]);
        told(&error, &[word]);
    }
}

/// Bytes of the file itself, changed anywhere: an error or a run, and never a panic.
#[test]
fn a_torn_file_is_an_error_or_a_run() {
    let dir = Folder::new("torn");
    Store::open(&dir).unwrap().begin(&full("r")).unwrap();
    let file = dir.join("sonde.db");
    let whole = fs::read(&file).unwrap();
    let (mut errors, mut runs) = (0, 0);
    for step in 0..200 {
        let at = step * 7_919 % whole.len();
        let mut torn = whole.clone();
        if step % 4 == 0 {
            torn.truncate(at);
        } else {
            torn.iter_mut()
                .skip(at)
                .take(40)
                .for_each(|byte| *byte = byte.wrapping_add(step as u8));
        }
        fs::write(&file, torn).unwrap();
        match Store::read(&dir).and_then(|store| store.load("r")) {
            Ok(_) => runs += 1,
            Err(error) => {
                errors += 1;
                told(&error, &["sonde.db"]);
            }
        }
    }
    assert!(errors > 20 && runs > 0, "{errors} errors, {runs} runs");
}

#[test]
fn a_reader_and_a_writer_at_once() {
    let dir = Folder::new("both");
    let (reader, writer) = (Store::open(&dir).unwrap(), Store::open(&dir).unwrap());
    let run = full("r");
    writer.begin(&planned("r", run.cells.clone())).unwrap();
    for (count, launch) in run.launches.iter().enumerate() {
        assert_eq!(reader.load("r").unwrap().launches.len(), count);
        writer.launch("r", launch).unwrap();
    }
    let mode: String = Connection::open(writer.path())
        .unwrap()
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "delete");
    let names: Vec<_> = fs::read_dir(&*dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["sonde.db"]);
}
