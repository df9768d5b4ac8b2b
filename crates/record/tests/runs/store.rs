//! Runs that are stored and read again, and stores that are not what they should be.

use crate::sample::{Folder, cell, failed, full, launch, launch_of, measurement, planned};
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
        let mut next = good(7);
        next.results[0].index = 1;
        let error = store.launches("r", &[next, other]).unwrap_err();
        told(&error, &["repetition 0 of cell", "measured already"]);
    }
    assert_eq!(store.load("r").unwrap(), run);
}

#[test]
fn results_of_one_launch_are_replaced_one_by_one() {
    let dir = Folder::new("replace-one");
    let store = Store::open(&dir).unwrap();
    let cells = [1, 64].map(|size| cell("latency", size, 1));
    store.begin(&planned("r", cells.to_vec())).unwrap();
    let good = |at: usize| launch_of(&cells[at..=at], 0);
    // One of two cells came through.
    let mut half = good(0);
    half.results.extend(failed(&cells[1], 0, "lost").results);
    store.launch("r", &half).unwrap();
    assert_eq!(store.load("r").unwrap().launches, [half.clone()]);
    store.launch("r", &good(1)).unwrap();
    half.results.pop();
    let run = store.load("r").unwrap();
    assert_eq!((run.launches, run.cells.len()), (vec![half, good(1)], 2));
    // Both failed: nothing is left of the launch when both were made again.
    let mut none = failed(&cells[0], 1, "lost");
    none.results.extend(failed(&cells[1], 1, "lost").results);
    store.launch("r", &none).unwrap();
    for at in [0, 1] {
        let mut again = good(at);
        again.results[0].index = 1;
        store.launch("r", &again).unwrap();
    }
    assert_eq!(store.load("r").unwrap().launches.len(), 4);
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
        ("without a plan", 25, RunState::Partial),
    ] {
        let mut run = planned(id, Vec::new());
        if id == "without a plan" {
            run.head.plan.clear();
        }
        (run.head.began_unix_ns, run.head.state) = (began, state);
        store.begin(&run).unwrap();
    }
    let ids: Vec<_> = store
        .runs()
        .unwrap()
        .into_iter()
        .map(|head| head.id)
        .collect();
    assert_eq!(ids, ["y", "z", "without a plan", "x"]);
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
fn runs_are_found_by_what_people_type() {
    let dir = Folder::new("found");
    let store = Store::open(&dir).unwrap();
    told(&store.find("latest").unwrap_err(), &["no run latest"]);
    let ids = [
        "20251111T000000Z-cccccc",
        "20261121T043302Z-1f09c3",
        "20261121T050000Z-aaaaaa",
    ];
    for id in ids {
        store.begin(&planned(id, Vec::new())).unwrap();
    }
    for (typed, wanted) in [
        ("latest", ids[2]),
        ("latest~0", ids[2]),
        ("latest~2", ids[0]),
        ("2025", ids[0]),
        ("20261121T05", ids[2]),
        (ids[1], ids[1]),
    ] {
        assert_eq!(store.find(typed).unwrap(), wanted, "{typed}");
    }
    told(
        &store.find("20261121").unwrap_err(),
        &["2 runs", "begin with 20261121", "write more"],
    );
    for absent in ["latest~3", "latest~", "latest1", "", "2027"] {
        told(&store.find(absent).unwrap_err(), &["no run"]);
    }
}

#[test]
fn what_points_nowhere_is_refused() {
    let dir = Folder::new("orphan");
    let store = Store::open(&dir).unwrap();
    let run = full("r");
    store.begin(&planned("r", Vec::new())).unwrap();
    told(
        &store.launch("r", &run.launches[0]).unwrap_err(),
        &[
            "cannot store a repetition",
            &run.launches[0].results[0].cell,
        ],
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

/// The tables of version 4: no launch is set aside.
const AS_VERSION_4: &str = "ALTER TABLE launch DROP COLUMN set_aside; PRAGMA user_version = 4";
/// From there to those of version 3: nothing of what met a disturbance.
const AS_VERSION_3: &str = "ALTER TABLE series DROP COLUMN touched; PRAGMA user_version = 3";
/// From there to those of version 2: a launch for each of its cells, and its evidence as texts.
const AS_VERSION_2: &str = "
    ALTER TABLE launch RENAME TO launch_3;
    ALTER TABLE series RENAME TO series_3;
    CREATE TABLE launch (id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, cell TEXT NOT NULL, number INTEGER NOT NULL,
        src TEXT NOT NULL, dst TEXT NOT NULL, began_unix_ns INTEGER NOT NULL, took_ns INTEGER NOT NULL, failure TEXT,
        settings TEXT NOT NULL, interference TEXT NOT NULL, verdict TEXT, UNIQUE (run, cell, number),
        FOREIGN KEY (run, cell) REFERENCES cell (run, id) ON DELETE CASCADE) STRICT;
    CREATE TABLE series (launch INTEGER NOT NULL REFERENCES launch (id) ON DELETE CASCADE, place INTEGER NOT NULL,
        quantity TEXT NOT NULL, phase TEXT NOT NULL, step TEXT, reason TEXT, count INTEGER NOT NULL, min ANY, max ANY,
        sum ANY NOT NULL, first BLOB NOT NULL, buckets BLOB NOT NULL, PRIMARY KEY (launch, place)) STRICT;
    INSERT INTO launch SELECT result.id, result.run, cell, number, src, dst, began_unix_ns, took_ns, failure,
        '{\"dst_congestion\": \"cubic\", \"load.model_idle_ns\": \"' || size_bytes || '\"}', interference, verdict
        FROM result JOIN launch_3 ON launch_3.id = result.launch JOIN cell ON cell.id = result.cell;
    INSERT INTO series SELECT * FROM series_3;
    DROP TABLE series_3; DROP TABLE result; DROP TABLE disturbance; DROP TABLE launch_3;
    PRAGMA user_version = 2";

#[test]
fn stores_of_older_versions_are_read_and_brought_up() {
    for version in [4, 3, 2, 1] {
        let dir = Folder::new("old");
        let mut run = full("r");
        let cells = [8, 4_096].map(|size| cell("latency", size, 2));
        run.launches
            .extend([0, 1].map(|index| launch_of(&cells, index)));
        run.cells.extend(cells);
        for launch in &mut run.launches {
            for result in &launch.results {
                let of = run.cells.iter().find(|cell| cell.id == result.cell);
                let size_bytes = of.unwrap().factors.size_bytes;
                let facts = launch.evidence.size(size_bytes);
                facts.load_model_idle_ns = Some(size_bytes);
            }
        }
        Store::open(&dir).unwrap().begin(&run).unwrap();
        let old = Connection::open(dir.join("sonde.db")).unwrap();
        old.execute_batch(AS_VERSION_4).unwrap();
        if version < 4 {
            old.execute_batch(AS_VERSION_3).unwrap();
            let results = run
                .launches
                .iter_mut()
                .flat_map(|launch| &mut launch.results);
            let series = results.flat_map(|result| &mut result.series);
            series.for_each(|one| one.touched = None);
        }
        if version < 3 {
            old.execute_batch(AS_VERSION_2).unwrap();
            let launches = run.launches.iter_mut();
            launches.for_each(|launch| launch.disturbances.clear());
        }
        if version == 1 {
            old.execute_batch("ALTER TABLE cell DROP COLUMN knobs; PRAGMA user_version = 1")
                .unwrap();
            let cells = run.cells.iter_mut();
            cells.for_each(|cell| cell.factors.knobs.clear());
        }
        drop(old);
        assert_eq!(Store::read(&dir).unwrap().load("r").unwrap(), run);
        assert_eq!(Store::open(&dir).unwrap().load("r").unwrap(), run);
        let now = Connection::open(dir.join("sonde.db")).unwrap();
        let version: i64 = now
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .unwrap();
        assert_eq!(version, 5);
        let fresh = Folder::new("fresh");
        let fresh = Connection::open(Store::open(&fresh).unwrap().path()).unwrap();
        assert_eq!(columns(&now), columns(&fresh));
        // It takes what is measured from here on.
        let store = Store::open(&dir).unwrap();
        store
            .launch("r", &launch(&run.cells[2], 1, Vec::new()))
            .unwrap();
        assert_eq!(store.load("r").unwrap().missing(), []);
    }
}

#[test]
fn what_is_set_aside_stands_beside_what_counts() {
    let dir = Folder::new("aside");
    let mut run = planned("r", vec![cell("latency", 1, 2)]);
    let of = |index, set_aside| LaunchRecord {
        set_aside,
        ..launch(&run.cells[0], index, Vec::new())
    };
    // Twice of one number, and of one that was not made again.
    let launches = [(0, true), (0, true), (0, false), (1, true)];
    let launches = launches.map(|(index, set_aside)| of(index, set_aside));
    let store = Store::open(&dir).unwrap();
    store.begin(&run).unwrap();
    store.launches("r", &launches).unwrap();
    run.launches = launches.into();
    let loaded = store.load("r").unwrap();
    assert_eq!(loaded, run);
    assert_eq!(
        (loaded.repetitions().count(), loaded.set_aside().count()),
        (1, 3)
    );
    assert_eq!(loaded.missing(), [(run.cells[0].id.clone(), 1)]);
}

/// What an old store is that was damaged is told, and it stays as it was.
#[test]
fn an_old_store_that_cannot_be_read_stays_as_it_was() {
    let dir = Folder::new("old-damaged");
    Store::open(&dir).unwrap().begin(&full("r")).unwrap();
    let old = Connection::open(dir.join("sonde.db")).unwrap();
    for older in [AS_VERSION_4, AS_VERSION_3, AS_VERSION_2] {
        old.execute_batch(older).unwrap();
    }
    old.execute_batch("UPDATE launch SET settings = '{\"src_colour\": \"red\"}' WHERE id = 3")
        .unwrap();
    let before = columns(&old);
    drop(old);
    for error in [
        Store::read(&dir).unwrap().load("r").unwrap_err(),
        Store::open(&dir).unwrap_err(),
    ] {
        told(&error, &["src_colour", "is not known"]);
    }
    let after = Connection::open(dir.join("sonde.db")).unwrap();
    assert_eq!(columns(&after), before);
    // A launch of a cell that is not there is not left out.
    after
        .execute_batch(
            "UPDATE launch SET settings = '{}'; PRAGMA foreign_keys = OFF;
             DELETE FROM cell WHERE id = (SELECT cell FROM launch WHERE id = 3)",
        )
        .unwrap();
    for error in [
        Store::read(&dir).unwrap().load("r").unwrap_err(),
        Store::open(&dir).unwrap_err(),
    ] {
        told(&error, &["is damaged", "size_bytes"]);
    }
}

/// All tables and indexes with their columns.
fn columns(of: &Connection) -> Vec<(String, String)> {
    let sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.name NOT LIKE 'sqlite_%'
        UNION SELECT name, '' FROM sqlite_schema WHERE type = 'index' ORDER BY 1, 2";
    let mut statement = of.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
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
    told(
        &open(),
        &["not a store of sonde", "not a database", "--out"],
    );
    told(&Store::read(&dir).unwrap_err(), &["not a database"]);
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
    std::os::unix::fs::symlink(&file, &file).unwrap();
    let loops = ["cannot open", "symbolic links", "--out"];
    told(&open(), &loops);
    told(&Store::read(&dir).unwrap_err(), &loops);
    fs::remove_file(&file).unwrap();
    Store::open(&dir).unwrap();
    Connection::open(&file)
        .unwrap()
        .execute_batch("PRAGMA user_version = 7")
        .unwrap();
    told(&open(), &["version 7", "versions up to 5", "--out"]);
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
            "UPDATE series SET first = x'80' WHERE result = 1 AND place = 0",
            "series 0 of result 1: its bytes end",
        ),
        (
            "UPDATE series SET buckets = x'0101' WHERE result = 1 AND place = 0",
            "series 0 of result 1",
        ),
        (
            "UPDATE series SET count = 7 WHERE place = 1 AND result = 1",
            "7 should be",
        ),
        ("UPDATE series SET quantity = 'beauty'", "beauty"),
        ("UPDATE series SET sum = 'much'", "sum"),
        ("UPDATE series SET min = -5", "min"),
        ("UPDATE launch SET evidence = '{'", "evidence"),
        ("UPDATE disturbance SET source = 'ghosts'", "ghosts"),
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

#[test]
fn a_missing_table_is_damage_to_who_reads_and_to_who_writes() {
    let dir = Folder::new("missing-table");
    let store = Store::open(&dir).unwrap();
    store.begin(&full("r")).unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("DROP TABLE warning").unwrap();
    let missing = ["is damaged", "no such table: warning", ".recover"];
    told(&store.load("r").unwrap_err(), &missing);
    told(&store.warning("r", "late").unwrap_err(), &missing);
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
