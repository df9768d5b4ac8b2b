//! Every input that is kept for the fuzz targets, once more through the same functions: the seeds, and what once ended in a panic.
//!
//! Checked: `a_panic_is_told_by_its_file`.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/entries/mod.rs"]
mod entries;

use entries::{ENTRIES, Entry};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The files of a folder, in order; none where it is not there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The inputs that end in a panic.
fn panics(entry: Entry, inputs: &[PathBuf]) -> Vec<String> {
    let fails = |input: &&PathBuf| {
        let bytes = std::fs::read(input).unwrap();
        catch_unwind(AssertUnwindSafe(|| entry(&bytes))).is_err()
    };
    let failed = inputs.iter().filter(fails);
    failed.map(|input| input.display().to_string()).collect()
}

#[test]
fn every_input_that_is_kept_ends_without_a_panic() {
    let mut failed = Vec::new();
    for (name, entry) in ENTRIES {
        let seeds = files(&fuzz().join("seeds").join(name));
        assert!(!seeds.is_empty(), "fuzz/seeds/{name} has no seed");
        failed.extend(panics(*entry, &seeds));
        failed.extend(panics(*entry, &files(&fuzz().join("found").join(name))));
    }
    assert!(failed.is_empty(), "a panic of {}", failed.join(", "));
}

/// A target, an entry, a line that builds it and a folder of seeds for each name, and none for another.
#[test]
fn every_target_has_an_entry_and_every_folder_a_target() {
    let entries: BTreeSet<String> = ENTRIES.iter().map(|(name, _)| (*name).into()).collect();
    let stem = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let named = |folder: &str| -> BTreeSet<String> {
        files(&fuzz().join(folder)).iter().map(stem).collect()
    };
    assert_eq!(named("fuzz_targets"), entries);
    assert_eq!(named("seeds"), entries);
    assert!(named("found").is_subset(&entries), "{:?}", named("found"));
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in &entries {
        let line = format!("path = \"fuzz_targets/{name}.rs\"");
        assert!(manifest.contains(&line), "fuzz/Cargo.toml lacks {line}");
    }
}

#[test]
fn a_panic_is_told_by_its_file() {
    let folder = std::env::temp_dir().join(format!("sonde-seeds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in [("bad", b"1"), ("good", b"0")] {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let found = panics(|bytes| assert_ne!(bytes, b"1"), &files(&folder));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found, [folder.join("bad").display().to_string()]);
}
