//! `cargo xtask quick`: the tests that a change is likely to break, in minutes.
//!
//! Model:   a crate is changed where a file that it is made of is; the tests are those of the changed crates and of the crates
//!          that depend on one directly, for building or for testing. Those that need a lab or a quiet machine are left out, but
//!          one test starts a lab. What changed is seen from where the branch left main; on main, from the commit before the last.
//!          Uncommitted changes count, new files too.
//! Checked: `files_belong_to_crates`, `direct_dependents_are_tested_and_no_others`, `labs_and_what_measures_are_left_out`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::metadata::{Metadata, Package, cargo, cargo_metadata};

/// The program, and the one test of it, that starts a lab; its crate is always built.
const SMOKE: (&str, &str, &str) = (
    "sonde-cli",
    "sonde",
    "paired::lab_run::each_host_runs_it_and_a_failure_is_told",
);

/// The classes of tests that need a lab or a quiet machine, as each crate's tests/main.rs groups them.
const APART: [&str; 2] = ["paired::", "alone::"];

/// What of the tree outside of a crate's folder is part of it: the page that it embeds, the sources that it compiles, the
/// documents and files that its tests read.
const PARTS: [(&str, &str); 6] = [
    ("web/", "report"),
    ("adapters/", "adapter"),
    ("docs/", "sonde"),
    ("plans/", "sonde"),
    ("README.md", "sonde"),
    ("corpus/", "xtask"),
];

/// What all crates are made of.
const WHOLE: [&str; 3] = ["Cargo.toml", "Cargo.lock", ".cargo/"];

/// Runs the command with the words that follow its name.
///
/// # Errors
/// A word that is not known; git or cargo cannot be started.
pub fn run(root: &Path, words: &[String]) -> Result<ExitCode> {
    let (mut base, mut is_print) = (
        std::env::var("BASE").ok().filter(|rev| !rev.is_empty()),
        false,
    );
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--base" => base = Some(words.next().context("--base takes a revision")?.to_owned()),
            "--print" => is_print = true,
            other => bail!("quick takes --base REV and --print, not `{other}`"),
        }
    }
    let base = base.map_or_else(|| base_of(root), Ok)?;
    let files = changed_files(root, &base)?;
    let metadata = cargo_metadata(root)?;
    let changed = changed_crates(&metadata, &files);
    println!("changed since {base}: {}", list(&changed));
    let tested = with_dependents(&metadata, &changed);
    println!("tested: {}", list(&tested));
    let calls = calls(&metadata, &tested);
    for call in &calls {
        println!("cargo {}", call.join(" "));
        if is_print {
            continue;
        }
        let mut cargo = Command::new(cargo());
        // The command that the tests were built with, and no snapshot to review.
        cargo.env_remove("SONDE_BIN").env("INSTA_UPDATE", "no");
        let status = cargo.args(call).current_dir(root).status();
        if !status.context("starting cargo")?.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "no crate".into();
    }
    names.iter().cloned().collect::<Vec<_>>().join(" ")
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git").args(words).current_dir(root).output();
    let output = output.context("starting git")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "git {}: {}",
        words.join(" "),
        said.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Since when changes count where nobody says it.
fn base_of(root: &Path) -> Result<String> {
    match git(root, &["rev-parse", "--abbrev-ref", "HEAD"])?.as_str() {
        "main" => git(root, &["rev-parse", "--short", "HEAD^"]),
        _ => {
            let base = git(root, &["merge-base", "HEAD", "main"])?;
            git(root, &["rev-parse", "--short", &base])
        }
    }
}

fn changed_files(root: &Path, base: &str) -> Result<Vec<PathBuf>> {
    let known = git(root, &["diff", "--name-only", base, "--"])?;
    let new = git(root, &["ls-files", "--others", "--exclude-standard"])?;
    Ok(known
        .lines()
        .chain(new.lines())
        .map(PathBuf::from)
        .collect())
}

/// The names of the crates that these files, relative to the root, are of.
fn changed_crates(metadata: &Metadata, files: &[PathBuf]) -> BTreeSet<String> {
    let is_whole = |file: &PathBuf| WHOLE.iter().any(|part| file.starts_with(part));
    if files.iter().any(is_whole) {
        return metadata
            .packages
            .iter()
            .map(|one| one.name.clone())
            .collect();
    }
    let of_file = |file: &PathBuf| {
        let part = PARTS.iter().find(|(part, _)| file.starts_with(part));
        let own = metadata.packages.iter().find(|one| match part {
            Some((_, room)) => metadata.folder_of(one).ends_with(room),
            None => file.starts_with(metadata.folder_of(one)),
        });
        own.map(|one| one.name.clone())
    };
    files.iter().filter_map(of_file).collect()
}

/// These crates and those that name one of them as a dependency of any kind.
fn with_dependents(metadata: &Metadata, changed: &BTreeSet<String>) -> BTreeSet<String> {
    let depends = |one: &&Package| {
        let mut names = one.dependencies.iter();
        changed.contains(&one.name) || names.any(|other| changed.contains(&other.name))
    };
    let tested = metadata.packages.iter().filter(depends);
    tested.map(|one| one.name.clone()).collect()
}

/// What cargo is called with: the tests of these crates, then the one with a lab.
fn calls(metadata: &Metadata, tested: &BTreeSet<String>) -> Vec<Vec<String>> {
    // One selection for both: another would unify features otherwise and build dependencies again.
    let mut selection: Vec<String> = ["test", "--release", "--no-fail-fast"]
        .map(String::from)
        .into();
    let (crate_of_smoke, smoke_target, smoke) = SMOKE;
    let all: BTreeSet<&str> = tested
        .iter()
        .map(String::as_str)
        .chain([crate_of_smoke])
        .collect();
    for name in &all {
        selection.extend(["-p".into(), (*name).into()]);
    }
    let is_selected = |one: &&Package| all.contains(one.name.as_str());
    let targets = metadata
        .packages
        .iter()
        .filter(is_selected)
        .flat_map(|one| &one.targets);
    let mut options = BTreeSet::new();
    for target in targets {
        let has = |kind: &str| target.kind.iter().any(|one| one == kind);
        if has("lib") {
            options.insert("--lib".to_owned());
        } else if has("bin") {
            options.insert("--bins".to_owned());
        } else if has("test") {
            options.insert(format!("--test={}", target.name));
        }
    }
    let mut calls = Vec::new();
    if !tested.is_empty() {
        let skips = APART.map(|class| format!("--skip={class}"));
        let options = options.into_iter().chain(["--".into()]).chain(skips);
        calls.push([selection.clone(), options.collect()].concat());
    }
    let with_lab = [&format!("--test={smoke_target}"), "--", "--exact", smoke].map(String::from);
    calls.push([selection, with_lab.into()].concat());
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, Target};

    fn package(folder: &str, name: &str, needs: &[&str], targets: &[(&str, &str)]) -> Package {
        let dependency = |name: &&str| Dependency {
            name: (*name).into(),
            path: None,
        };
        let target = |(kind, name): &(&str, &str)| Target {
            name: (*name).into(),
            kind: vec![(*kind).into()],
            src_path: format!("/w/{folder}/{name}.rs").into(),
        };
        Package {
            name: name.into(),
            manifest_path: format!("/w/{folder}/Cargo.toml").into(),
            dependencies: needs.iter().map(dependency).collect(),
            targets: targets.iter().map(target).collect(),
        }
    }

    /// link <- probe <- sonde, report <- sonde, report <- xtask.
    fn workspace() -> Metadata {
        let sonde = [("bin", "sonde"), ("test", "sonde")];
        let probe = [("lib", "sonde_probe"), ("test", "probe")];
        Metadata {
            packages: vec![
                package(
                    "crates/link",
                    "sonde-link",
                    &["serde"],
                    &[("lib", "sonde_link")],
                ),
                package("crates/probe", "sonde-probe", &["sonde-link"], &probe),
                package(
                    "crates/report",
                    "sonde-report",
                    &[],
                    &[("lib", "sonde_report")],
                ),
                package(
                    "crates/sonde",
                    "sonde-cli",
                    &["sonde-probe", "sonde-report"],
                    &sonde,
                ),
                package("xtask", "xtask", &["sonde-report"], &[("bin", "xtask")]),
            ],
            workspace_root: "/w".into(),
        }
    }

    fn changed(files: &[&str]) -> Vec<String> {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        changed_crates(&workspace(), &files).into_iter().collect()
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn files_belong_to_crates() {
        assert_eq!(
            changed(&["crates/link/src/a.rs", "CHANGELOG.md"]),
            ["sonde-link"]
        );
        assert_eq!(
            changed(&["web/src/view.ts", "xtask/src/main.rs"]),
            ["sonde-report", "xtask"]
        );
        assert_eq!(changed(&["docs/lab.md"]), ["sonde-cli"]);
        assert_eq!(changed(&["crates/linked/a.rs", "Makefile"]), [""; 0]);
        assert_eq!(changed(&["Cargo.lock"]).len(), 5);
    }

    #[test]
    fn direct_dependents_are_tested_and_no_others() {
        let tested = |names: &[&str]| with_dependents(&workspace(), &set(names));
        assert_eq!(tested(&["sonde-link"]), set(&["sonde-link", "sonde-probe"]));
        let of_report = ["sonde-cli", "sonde-report", "xtask"];
        assert_eq!(tested(&["sonde-report"]), set(&of_report));
        assert_eq!(tested(&[]), set(&[]));
    }

    #[test]
    fn labs_and_what_measures_are_left_out() {
        let said = |names: &[&str]| -> Vec<String> {
            let calls = calls(&workspace(), &set(names));
            calls.iter().map(|call| call.join(" ")).collect()
        };
        let smoke =
            "--test=sonde -- --exact paired::lab_run::each_host_runs_it_and_a_failure_is_told";
        let skips = "-- --skip=paired:: --skip=alone::";
        let both = "test --release --no-fail-fast -p sonde-cli -p sonde-probe";
        assert_eq!(
            said(&["sonde-probe"]),
            [
                format!("{both} --bins --lib --test=probe --test=sonde {skips}"),
                format!("{both} {smoke}"),
            ]
        );
        let alone = "test --release --no-fail-fast -p sonde-cli";
        assert_eq!(said(&[]), [format!("{alone} {smoke}")]);
    }
}
