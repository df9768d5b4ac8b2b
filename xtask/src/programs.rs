//! The programs that integration tests are built into: one a crate, and which of its tests run apart.
//!
//! Model:   `tests/main.rs` names each file beside it as a module, in a group or in none. The groups are `paired` and `alone`, which
//!          scripts/test.sh chooses by the first part of a test's path. A file that no `mod` names would be built by nobody.
//! Checked: `a_second_program_is_found`, `a_file_that_nobody_names_is_found`, `groups_hold_what_is_theirs`,
//!          `a_group_outside_of_tests_is_found`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::finding::Finding;
use crate::metadata::{Metadata, Target};
use crate::source::{code_of, is_name_byte, line_of, words};
use crate::tree::{Tree, place};

/// What counts for its whole program has one of its own.
const OWN: &str = "#[global_allocator]";

/// What excuses a test by noise.
const MEASURED: &str = "noise::measured";

/// The groups that run apart from all other tests.
const GROUPS: [&str; 2] = ["paired", "alone"];

/// Finds second programs, files of tests that are in none, tests in the wrong group, and modules that are named like a group.
pub fn check(tree: &Tree, metadata: &Metadata) -> Vec<Finding> {
    let mut findings = second_programs(tree, metadata);
    for (path, text) in tree.with_extension("rs") {
        match place(path) {
            Some((_, "tests")) if path.iter().count() == 4 => {
                findings.extend(misplaced(tree, path, text))
            }
            Some((_, "src")) => findings.extend(named_like_a_group(path, text)),
            _ => {}
        }
    }
    findings
}

fn second_programs(tree: &Tree, metadata: &Metadata) -> Vec<Finding> {
    let is_shared = |target: &&Target| {
        let file = target
            .src_path
            .strip_prefix(&metadata.workspace_root)
            .unwrap_or(&target.src_path);
        let is_own = tree.text(file).is_some_and(|text| text.contains(OWN));
        target.kind.iter().any(|kind| kind == "test") && !is_own
    };
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let names = package
            .targets
            .iter()
            .filter(is_shared)
            .map(|one| one.name.as_str());
        let names: Vec<&str> = names.collect();
        if names.len() > 1 {
            findings.push(Finding::new(
                &metadata.folder_of(package).join("Cargo.toml"),
                1,
                format!("{} programs of tests: {}", names.len(), names.join(", ")),
                "make each a module of tests/main.rs, with autotests = false and one [[test]]: each program costs a link",
            ));
        }
    }
    findings
}

/// A file directly below `tests` that its main.rs does not name, or not where it belongs.
fn misplaced(tree: &Tree, path: &Path, text: &str) -> Option<Finding> {
    let main = path.with_file_name("main.rs");
    let groups = groups(tree.text(&main).filter(|_| path != main)?);
    let name = path.file_stem()?.to_str()?;
    if text.contains(OWN) {
        return None;
    }
    let Some(group) = groups.get(name) else {
        let what = format!(
            "no test of it is built: {} does not name it",
            main.display()
        );
        return Some(Finding::new(
            path,
            1,
            what,
            format!("add `mod {name};` there"),
        ));
    };
    let (what, remedy) = if text.contains(MEASURED) && *group != "alone" {
        (
            "it measures beside other tests",
            "name it in the group `alone`",
        )
    } else if name.starts_with("lab_") && group.is_empty() {
        (
            "it starts labs beside the unit tests",
            "name it in the group `paired`, or `alone`",
        )
    } else {
        return None;
    };
    Some(Finding::new(
        path,
        1,
        what,
        format!("{remedy} of {}", main.display()),
    ))
}

/// The group of each module that a main.rs names; empty where it is in none.
fn groups(main: &str) -> BTreeMap<&str, &str> {
    let (mut group, mut of) = ("", BTreeMap::new());
    for line in main.lines().map(str::trim) {
        if line == "}" {
            group = "";
        } else if let Some(rest) = line
            .strip_prefix("pub ")
            .unwrap_or(line)
            .strip_prefix("mod ")
        {
            match (rest.strip_suffix(" {"), rest.strip_suffix(';')) {
                (Some(name), _) => group = name,
                (_, Some(name)) => drop(of.insert(name, group)),
                _ => {}
            }
        }
    }
    of
}

/// A unit test in a module of such a name would be passed over with the group.
fn named_like_a_group(path: &Path, text: &str) -> Option<Finding> {
    let code = code_of(text);
    let is_like = |at: &usize| {
        let rest = code[at + "mod".len()..].trim_start().bytes();
        let name: Vec<u8> = rest.take_while(|byte| is_name_byte(*byte)).collect();
        GROUPS.iter().any(|group| name.ends_with(group.as_bytes()))
    };
    let at = words(&code, "mod").find(is_like)?;
    let what = "a module is named like a group of tests";
    let remedy = "name it otherwise: scripts/test.sh passes over its tests";
    Some(Finding::new(path, line_of(&code, at), what, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    const MAIN: &str = "//! All.\nmod connect;\n#[path = \".\"]\nmod paired {\n    mod lab_ssh;\n}\n\
        #[path = \".\"]\nmod alone {\n    mod rate;\n}\n";

    fn found(files: &[(&str, &str)], programs: &[&str]) -> Vec<String> {
        let target = |name: &&str| Target {
            name: (*name).into(),
            kind: vec!["test".into()],
            src_path: format!("/w/crates/fleet/tests/{name}.rs").into(),
        };
        let package = Package {
            name: "sonde-fleet".into(),
            manifest_path: "/w/crates/fleet/Cargo.toml".into(),
            dependencies: Vec::new(),
            targets: programs.iter().map(target).collect(),
        };
        let metadata = Metadata {
            packages: vec![package],
            workspace_root: "/w".into(),
        };
        let findings = check(&Tree::of(files), &metadata);
        findings.iter().map(|one| one.what().to_owned()).collect()
    }

    fn beside_main(name: &str, text: &str) -> Vec<String> {
        let path = format!("crates/fleet/tests/{name}.rs");
        found(&[("crates/fleet/tests/main.rs", MAIN), (&path, text)], &[])
    }

    #[test]
    fn a_second_program_is_found() {
        assert!(found(&[], &["main"]).is_empty());
        assert_eq!(
            found(&[], &["main", "rate"]),
            ["2 programs of tests: main, rate"]
        );
        let counting = (
            "crates/fleet/tests/rate.rs",
            "#[global_allocator]\nstatic A: B = B;\n",
        );
        assert!(found(&[counting], &["main", "rate"]).is_empty());
    }

    #[test]
    fn a_file_that_nobody_names_is_found() {
        let said = ["no test of it is built: crates/fleet/tests/main.rs does not name it"];
        assert_eq!(beside_main("local", ""), said);
        assert!(beside_main("connect", "").is_empty());
        assert!(beside_main("local", "#[global_allocator]").is_empty());
        assert!(found(&[("crates/fleet/tests/local.rs", "")], &["local"]).is_empty());
    }

    #[test]
    fn groups_hold_what_is_theirs() {
        let measures = "use sonde_sys::noise::measured;";
        assert!(beside_main("rate", measures).is_empty());
        assert!(beside_main("lab_ssh", "").is_empty());
        // One whose functions another group takes.
        let public = "mod paired {\n    pub mod lab_ssh;\n}\n";
        let files = [
            ("crates/fleet/tests/main.rs", public),
            ("crates/fleet/tests/lab_ssh.rs", ""),
        ];
        assert!(found(&files, &[]).is_empty());
        for name in ["connect", "lab_ssh"] {
            assert_eq!(
                beside_main(name, measures),
                ["it measures beside other tests"]
            );
        }
        let main = ("crates/fleet/tests/main.rs", "mod lab_ssh;\n");
        let lab = ("crates/fleet/tests/lab_ssh.rs", "");
        assert_eq!(
            found(&[main, lab], &[]),
            ["it starts labs beside the unit tests"]
        );
    }

    #[test]
    fn a_group_outside_of_tests_is_found() {
        let source = |text| found(&[("crates/fleet/src/tree.rs", text)], &[]);
        assert_eq!(
            source("pub mod standalone;\n"),
            ["a module is named like a group of tests"]
        );
        assert_eq!(source("mod alone { fn x() {} }\n").len(), 1);
        assert!(source("// mod alone\nmod alone_now;\nfn alone() {}\n").is_empty());
    }
}
