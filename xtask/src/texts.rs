//! Facts have types: maps and lists of texts, and JSON of any shape, stand only where that is what they are.
//!
//! Model:   in `src` of each crate the types of [`TYPES`] are counted, file by file, and must be as many as [`ALLOWED`] says of
//!          the file: none where it says nothing. Fewer are a finding too, so that what has been mended stays so. Items under
//!          `#[cfg(test)]` and files of tests do not count.
//! Checked: `a_map_of_texts_is_found`, `as_many_as_are_allowed_pass`, `fewer_are_told`, `tests_may`.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{code_of, line_of, test_spans};
use crate::tree::Tree;

/// What holds anything by any name.
const TYPES: [&str; 4] = [
    "BTreeMap<String, String>",
    "HashMap<String, String>",
    "Vec<(String, String)>",
    "serde_json::Value",
];

const ENVIRONMENT: &str = "environment of a program: names and values are another's";
const CITATIONS: &str = "citations: free text by a key of the file's author";
const HOST_FILES: &str = "settings of a host by the kernel's names, as they are read and written";
const STORED: &str = "texts of facts in stores of versions 1 and 2, read here alone";
const PAIRS: &str = "pairs of names of hosts, no facts";
const DOCUMENT: &str = "a document or schema of JSON as a whole";
const KNOBS: &str = "the one home of knobs by name";
const PAGE: &str = "names and words of the page's data, for people";
const GENERIC: &str = "a launch as the JSON of its types, leaf by leaf";
const ADVICE: &str = "settings to be made, by the names that the agents take";
const OPTIONS: &str = "what a foreign library says or takes, handed on as it is";

/// Which files have how many of these types, and why; a line for each reason.
#[rustfmt::skip]
const ALLOWED: &[(&str, usize, &str)] = &[
    ("crates/adapter/src/load.rs", 1, OPTIONS),
    ("crates/adapter/src/loaded.rs", 1, OPTIONS),
    ("crates/fleet/src/connect/peer.rs", 1, ENVIRONMENT),
    ("crates/fleet/src/launcher/slurm.rs", 1, ENVIRONMENT),
    ("crates/fleet/src/load.rs", 1, PAIRS),
    ("crates/fleet/src/networks.rs", 1, PAIRS),
    ("crates/fleet/src/ranks/mod.rs", 2, ENVIRONMENT),
    ("crates/fleet/src/ranks/mpi.rs", 3, ENVIRONMENT),
    ("crates/fleet/src/virtual_machine.rs", 3, ENVIRONMENT),
    ("crates/lab/src/config.rs", 1, HOST_FILES),
    ("crates/lab/src/exec.rs", 1, ENVIRONMENT),
    ("crates/lab/src/interface.rs", 1, HOST_FILES),
    ("crates/lab/src/switch/attach.rs", 1, HOST_FILES),
    ("crates/link/src/host.rs", 1, CITATIONS),
    ("crates/link/src/site/spec.rs", 1, CITATIONS),
    ("crates/link/src/spec.rs", 1, CITATIONS),
    ("crates/measure/src/cell.rs", 1, DOCUMENT),
    ("crates/measure/src/evidence.rs", 1, STORED),
    ("crates/measure/src/facts.rs", 2, STORED),
    ("crates/measure/src/knob_values.rs", 2, KNOBS),
    ("crates/probe/src/admission.rs", 1, DOCUMENT),
    ("crates/probe/src/host/changes.rs", 1, HOST_FILES),
    ("crates/probe/src/program.rs", 1, ENVIRONMENT),
    ("crates/rank/src/arguments.rs", 1, OPTIONS),
    ("crates/record/src/document.rs", 1, DOCUMENT),
    ("crates/record/src/export.rs", 1, DOCUMENT),
    ("crates/record/src/store/value.rs", 1, DOCUMENT),
    ("crates/record/src/store/old.rs", 2, STORED),
    ("crates/report/src/diagnosis/mod.rs", 1, ADVICE),
    ("crates/report/src/diagnosis/rules.rs", 1, ADVICE),
    ("crates/report/src/matrix/suspect.rs", 1, PAIRS),
    ("crates/report/src/page.rs", 1, DOCUMENT),
    ("crates/report/src/seen.rs", 1, GENERIC),
    ("crates/report/src/seen.rs", 1, PAGE),
    ("crates/report/src/view.rs", 2, PAGE),
    ("crates/report/src/words/matrix.rs", 1, PAIRS),
    ("crates/sonde/src/cli/load.rs", 1, PAIRS),
    ("crates/sonde/src/library.rs", 2, OPTIONS),
    ("crates/sonde/src/messages.rs", 1, DOCUMENT),
    ("crates/sonde/src/place/trial.rs", 1, DOCUMENT),
    ("crates/units/src/matrix.rs", 1, DOCUMENT),
];

/// Finds maps and lists of texts where none are allowed.
pub fn check(tree: &Tree) -> Vec<Finding> {
    check_by(tree, ALLOWED)
}

fn check_by(tree: &Tree, allowed: &[(&str, usize, &str)]) -> Vec<Finding> {
    let sources = tree
        .sources()
        .filter(|(path, _)| path.starts_with("crates"))
        .filter(|(path, _)| !path.ends_with("tests.rs") && !path.ends_with("testing.rs"));
    let here = sources.filter_map(|(path, text)| {
        let found = places(text);
        let entries = allowed.iter().filter(|(file, ..)| path == Path::new(file));
        let most = entries.map(|(_, most, _)| most).sum();
        match found.get(most) {
            Some(at) => Some(Finding::new(
                path,
                line_of(text, *at),
                "a map or list of texts, or JSON of any shape",
                "give what it holds a type",
            )),
            None if found.len() < most => Some(Finding::new(
                path,
                1,
                format!(
                    "xtask/src/texts.rs allows {most} maps of texts here, and there are {}",
                    found.len()
                ),
                "allow as many as there are",
            )),
            None => None,
        }
    });
    let gone = allowed
        .iter()
        .filter(|(file, ..)| tree.text(Path::new(file)).is_none());
    let gone = gone.map(|(file, ..)| {
        let what = format!("it allows maps of texts in {file}, which is not there");
        Finding::new(
            Path::new("xtask/src/texts.rs"),
            1,
            what,
            "take the line out",
        )
    });
    here.chain(gone).collect()
}

/// Where these types stand, in order.
fn places(text: &str) -> Vec<usize> {
    let code = code_of(text);
    let tests = test_spans(&code);
    let mut found: Vec<usize> = TYPES
        .iter()
        .flat_map(|name| code.match_indices(name).map(|(at, _)| at))
        .chain(imports(&code))
        .filter(|at| !tests.iter().any(|test| test.contains(at)))
        .collect();
    found.sort_unstable();
    found
}

/// Where `Value` is imported from `serde_json` by a list of names.
fn imports(code: &str) -> impl Iterator<Item = usize> + '_ {
    let lists = code.match_indices("use serde_json::{");
    lists.filter_map(|(at, _)| {
        let list = code[at..].split_once('}')?.0;
        list.contains("Value").then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/probe/src/a.rs";

    fn found(text: &str, allowed: &[(&str, usize, &str)]) -> Vec<usize> {
        let found = check_by(&Tree::of(&[(FILE, text)]), allowed);
        found.iter().map(Finding::line).collect()
    }

    #[test]
    fn a_map_of_texts_is_found() {
        assert_eq!(found("struct A;\n", &[]), [] as [usize; 0]);
        for text in [
            "//! a\nstruct A(BTreeMap<String, String>);\n",
            "//! a\nfn a() -> Vec<(String, String)> { vec![] }\n",
            "//! a\nuse serde_json::{Value, json};\n",
            "//! a\ntype A = std::collections::HashMap<String, String>;\n",
        ] {
            assert_eq!(found(text, &[]), [2], "{text}");
        }
    }

    #[test]
    fn as_many_as_are_allowed_pass() {
        let text = "struct A(Vec<(String, String)>);\nstruct B(Vec<(String, String)>);\n";
        assert_eq!(found(text, &[(FILE, 2, "")]), [] as [usize; 0]);
        assert_eq!(found(text, &[(FILE, 1, "a"), (FILE, 1, "b")]), [0_usize; 0]);
        assert_eq!(found(text, &[(FILE, 1, "")]), [2]);
    }

    #[test]
    fn fewer_are_told() {
        assert_eq!(found("struct A;\n", &[(FILE, 1, "")]), [1]);
        let gone = [("crates/probe/src/gone.rs", 1, "")];
        assert_eq!(check_by(&Tree::of(&[]), &gone).len(), 1);
    }

    #[test]
    fn tests_may() {
        let text = "#[cfg(test)]\nmod tests {\n    fn a(_: serde_json::Value) {}\n}\n";
        assert_eq!(found(text, &[]), [] as [usize; 0]);
        let tests = Tree::of(&[(
            "crates/probe/src/a/tests.rs",
            "fn a(_: serde_json::Value) {}\n",
        )]);
        assert_eq!(check_by(&tests, &[]), []);
    }
}
