//! The screen of every frozen run: within its bounds, whatever the run holds.
//!
//! Model:   the stores of `corpus/runs` are unpacked and read as the command reads them; a run that `sonde report show` prints as tables
//!          has a screen here, too, so that none of what a plan can hold is too wide or too long for it.

use sonde_record::Store;
use sonde_report::{Assessment, COLUMNS, LINES, Place, View};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unpacks a store into a folder of its own.
fn unpacked(from: &Path, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("screen-{name}"));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("a folder");
    let xz = Command::new("xz").arg("-dc").arg(from).output();
    let xz = xz.expect("xz can be started");
    assert!(xz.status.success(), "{xz:?}");
    std::fs::write(folder.join("sonde.db"), xz.stdout).expect("a store");
    folder
}

#[test]
fn every_frozen_run_fits() {
    if Command::new("xz").arg("--version").output().is_err() {
        println!("skipped: xz is not installed, which unpacks the corpus");
        return;
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/runs");
    let (mut runs, mut shown) = (0, 0);
    for entry in std::fs::read_dir(corpus).expect("the corpus") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name");
        let packed = entry.path().join("sonde.db.xz");
        if !packed.exists() {
            continue;
        }
        let folder = unpacked(&packed, &name);
        let store = Store::open(&folder).expect("a store of this version");
        for head in store.runs().expect("its runs") {
            let run = store.load(&head.id).expect("a run");
            let place = Place {
                page: Some(format!("{}/{}.html", "a-long-folder/".repeat(9), head.id)),
                options: " --out a-folder/of/some/length".into(),
            };
            let assessment = Assessment::of(&run);
            let text = assessment.text(&place);
            assert!(text.lines().count() <= LINES, "{name}:\n{text}");
            let is_narrow = |line: &str| line.chars().count() <= COLUMNS;
            assert!(text.lines().all(is_narrow), "{name}:\n{text}");
            assert!(text.contains(&head.id), "{name}:\n{text}");
            // What the screen counts is what there is.
            assert_eq!(assessment.findings, View::of(&run).findings.len() as u64);
            (runs, shown) = (runs + 1, shown + usize::from(Assessment::is_of(&run)));
        }
        drop(std::fs::remove_dir_all(&folder));
    }
    assert!(runs > 80 && shown > 1, "{shown} of {runs} runs");
}
