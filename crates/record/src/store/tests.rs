//! A store that is made while others look for it, and one that could not be made.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU32};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sonde-store-{}-{name}", std::process::id()));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Ends those that look, whatever ends those that make.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The file was once there, empty, before anything was in it, and was removed where nothing could be written: whoever had opened it
/// meanwhile wrote into a file that was gone.
#[test]
fn who_looks_finds_a_whole_store_or_none() {
    let dir = folder("looks");
    let (over, turn) = (AtomicBool::new(false), AtomicU32::new(0));
    let at = |turn: u32| dir.join(turn.to_string());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut sizes = std::collections::BTreeSet::new();
                while !over.load(Ordering::Relaxed) {
                    let dir = at(turn.load(Ordering::Relaxed));
                    let about = fs::metadata(dir.join(FILE));
                    sizes.extend(about.map(|about| about.len() > 0));
                    let read = Store::read(&dir).map(drop);
                    let is_sound = matches!(read, Ok(()) | Err(StoreError::Absent { .. }));
                    assert!(is_sound, "{read:?}");
                }
                assert!(!sizes.contains(&false), "an empty file was there");
            });
        }
        let _ending = Ending(&over);
        for number in 0..40 {
            turn.store(number, Ordering::Relaxed);
            let dir = at(number);
            // Several make it at a time; all have the same one.
            let opened: Vec<Store> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3)
                    .map(|_| scope.spawn(|| Store::open(&dir).unwrap()))
                    .collect();
                let opened = threads.into_iter().map(|thread| thread.join().unwrap());
                opened.collect()
            });
            for (number, store) in opened.iter().enumerate() {
                let text = format!("PRAGMA user_version = {VERSION}; CREATE TABLE t{number} (x)");
                store.connection.execute_batch(&text).unwrap();
            }
            let read = Store::read(&dir).unwrap();
            let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('t0', 't1', 't2')";
            let found: i64 = read
                .connection
                .query_row(tables, [], |row| row.get(0))
                .unwrap();
            assert_eq!(found, 3);
            drop((opened, read));
            assert_eq!(names(&dir), [FILE]);
        }
    });
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_could_not_be_made_leaves_nothing_and_takes_nothing_away() {
    let dir = folder("failed");
    let path = dir.join(FILE);
    // No file may be longer than its first page: a limit as a full disk is one, of this connection alone.
    let fresh = dir.join("fresh");
    let store = Store::connect(&fresh, path.clone(), CREATE).unwrap();
    store
        .connection
        .execute_batch("PRAGMA max_page_count = 1")
        .unwrap();
    let error = store.prepare().unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
    assert!(error.to_string().contains(FILE), "{error}");
    drop(store);
    fs::remove_file(fresh).unwrap();
    // A name that leads nowhere.
    std::os::unix::fs::symlink("/nowhere/at/all", &path).unwrap();
    assert!(Store::open(&dir).is_err());
    assert_eq!(names(&dir), [FILE]);
    fs::remove_file(&path).unwrap();
    // An empty file of somebody's becomes a store; it is not replaced.
    fs::write(&path, "").unwrap();
    let kept = fs::File::open(&path).unwrap();
    drop(Store::open(&dir).unwrap());
    assert!(kept.metadata().unwrap().len() > 0);
    assert_eq!(names(&dir), [FILE]);
    fs::remove_dir_all(dir).unwrap();
}

/// Of a process that was killed in the midst of a write: its file and its journal.
#[test]
fn who_only_looks_writes_nothing_and_rolls_nothing_back() {
    let [dir, left] = ["looked-at", "left"].map(folder);
    let journal = format!("{FILE}-journal");
    let store = Store::open(&dir).unwrap();
    let look = Store::look(&dir).unwrap();
    assert!(look.runs().unwrap().is_empty());
    let error = look.end("r", RunState::Complete).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    // Its pages are in the file before it is done, as those of a long write are.
    let begin = "PRAGMA cache_size = 1; BEGIN IMMEDIATE; CREATE TABLE big (x);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO big SELECT randomblob(4000) FROM n";
    store.connection.execute_batch(begin).unwrap();
    for name in [FILE, &journal] {
        fs::copy(dir.join(name), left.join(name)).unwrap();
    }
    drop((store, look));
    let bytes = || [FILE, &journal].map(|name| fs::read(left.join(name)).unwrap());
    let was = bytes();
    let error = Store::look(&left).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    assert!(bytes() == was, "something was written");
    assert!(Store::read(&left).unwrap().runs().unwrap().is_empty());
    assert!(Store::look(&left).is_ok() && names(&left) == [FILE]);
    for dir in [dir, left] {
        fs::remove_dir_all(dir).unwrap();
    }
}
