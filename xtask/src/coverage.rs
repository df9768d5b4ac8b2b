//! The ledger of what is shown: plans/papers/coverage.toml, where every claim must have evidence that exists.
//!
//! Model:   each `[[requirement]]` has `id`, `status` (`shown`, `partly` or `later`), `evidence` and `missing`.
//!          Evidence is `test:FILE#FUNCTION`, a test that runs, or `command:sonde …`, whose subcommand the program has
//!          and whose `.toml` arguments exist. `shown` and `partly` need evidence; `partly` and `later` say what is missing.
//! Checked: the tests below, one for each way in which a claim can be empty.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use crate::finding::Finding;
use crate::source::{code_of, words};
use crate::subcommands;
use crate::tree::Tree;

/// Where the ledger lies.
const LEDGER: &str = "plans/papers/coverage.toml";

/// The first letter of an identifier names its kind.
const KINDS: &str = "NSUCHX";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    #[serde(default)]
    requirement: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    status: Status,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    missing: String,
    /// What is asked for, in words; free text.
    #[serde(default)]
    #[serde(rename = "what")]
    _what: String,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Shown,
    Partly,
    Later,
}

/// Finds claims without evidence, and evidence that is not there.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let file = Path::new(LEDGER);
    let Some(text) = tree.text(file) else {
        return vec![Finding::new(
            file,
            1,
            "the ledger is missing",
            "write it: one [[requirement]] for each published claim",
        )];
    };
    let ledger: Ledger = match toml::from_str(text) {
        Ok(ledger) => ledger,
        Err(error) => {
            let line = error.span().map_or(1, |span| {
                crate::source::line_of(text, span.start.min(text.len()))
            });
            return vec![Finding::new(
                file,
                line,
                format!("not a ledger: {}", error.message()),
                "see xtask/src/coverage.rs",
            )];
        }
    };
    let commands = subcommands::of(tree);
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for requirement in &ledger.requirement {
        let line = line_of_id(text, &requirement.id);
        let mut faults = form_faults(requirement);
        if !seen.insert(&requirement.id) {
            faults.push("appears twice".into());
        }
        faults.extend(
            requirement
                .evidence
                .iter()
                .filter_map(|evidence| evidence_fault(tree, &commands, evidence)),
        );
        findings.extend(faults.into_iter().map(|fault| {
            let what = format!("requirement {}: {fault}", requirement.id);
            Finding::new(
                file,
                line,
                what,
                "correct the ledger, or write what it promises",
            )
        }));
    }
    findings
}

/// What is wrong with a requirement before its evidence is looked at.
fn form_faults(requirement: &Requirement) -> Vec<String> {
    let mut faults = Vec::new();
    let id = &requirement.id;
    let number = id.strip_prefix(|kind| KINDS.contains(kind)).unwrap_or("");
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        faults.push(format!("its id is not one of {KINDS} and a number"));
    }
    if requirement.status != Status::Later && requirement.evidence.is_empty() {
        faults.push("is said to be shown, without evidence".into());
    }
    if requirement.status != Status::Shown && requirement.missing.trim().is_empty() {
        faults.push("does not say what is missing".into());
    }
    if requirement.status == Status::Shown && !requirement.missing.trim().is_empty() {
        faults.push("is said to be shown, and that something is missing: call it partly".into());
    }
    faults
}

/// What is wrong with one piece of evidence, or nothing.
fn evidence_fault(tree: &Tree, commands: &BTreeSet<String>, evidence: &str) -> Option<String> {
    if let Some(test) = evidence.strip_prefix("test:") {
        test_fault(tree, test)
    } else if let Some(command) = evidence.strip_prefix("command:") {
        command_fault(tree, commands, command)
    } else {
        Some(format!(
            "`{evidence}` is neither test:FILE#FUNCTION nor command:sonde …"
        ))
    }
}

fn test_fault(tree: &Tree, test: &str) -> Option<String> {
    let Some((file, function)) = test.split_once('#') else {
        return Some(format!("`test:{test}` is not test:FILE#FUNCTION"));
    };
    let Some(text) = tree.text(file) else {
        return Some(format!("there is no file {file}"));
    };
    match test_attributes(&code_of(text), function) {
        None => Some(format!("{file} has no function {function}")),
        Some(attributes) if !attributes.contains("#[test]") => {
            Some(format!("{function} in {file} is not a #[test]"))
        }
        Some(attributes) if attributes.contains("#[ignore") => Some(format!(
            "{function} in {file} is ignored, so it shows nothing"
        )),
        Some(_) => None,
    }
}

/// The attributes of a function, without spaces; `None` where the code has no such function. A test written in
/// `proptest!` carries its #[test] inside the macro, and is found in the same way.
fn test_attributes(code: &str, function: &str) -> Option<String> {
    let at = words(code, function).find(|at| code[..*at].trim_end().ends_with("fn"))?;
    // Attributes stand between the end of the item before (or its enclosing brace) and the function's name.
    let before = &code[..at];
    let from = before.rfind(['}', '{', ';']).map_or(0, |place| place + 1);
    Some(before[from..].split_whitespace().collect())
}

fn command_fault(tree: &Tree, commands: &BTreeSet<String>, command: &str) -> Option<String> {
    let mut said = command.split_whitespace();
    if said.next() != Some("sonde") {
        return Some(format!("`{command}` does not begin with sonde"));
    }
    let subcommand = said.next().unwrap_or("");
    if !commands.contains(subcommand) {
        return Some(format!("sonde has no subcommand `{subcommand}`"));
    }
    let absent = said.find(|word| word.ends_with(".toml") && !tree.exists(Path::new(word)))?;
    Some(format!("there is no file {absent}"))
}

/// The line that gives this id.
fn line_of_id(text: &str, id: &str) -> usize {
    let quoted = format!("\"{id}\"");
    text.lines()
        .position(|line| line.trim_start().starts_with("id") && line.contains(&quoted))
        .map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "//! ATM cells.\nfn plain() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn cells_count() {}\n    \
        #[test]\n    #[ignore]\n    fn slow_one() {}\n    proptest! {\n        #[test]\n        fn never_early(x in 0..5) {}\n    }\n}\n";
    const MAIN: &str = "//! The command.\n#[derive(Debug, clap::Subcommand)]\nenum Command {\n    /// One measurement.\n    \
        Probe(ProbeArgs),\n    #[command(name = \"lab\", about)]\n    Laboratory {\n        Inner: u8,\n    },\n    ReportAll,\n}\n";

    fn faults(ledger: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (LEDGER, ledger),
            ("crates/link/src/atm.rs", TESTS),
            ("crates/sonde/src/main.rs", MAIN),
            ("plans/papers/one.toml", ""),
        ]);
        check(&tree)
            .iter()
            .map(|finding| finding.what().to_string())
            .collect()
    }

    /// The faults of one requirement that is shown by this evidence.
    fn shown_by(evidence: &str) -> Vec<String> {
        faults(&format!(
            "[[requirement]]\nid = \"N1\"\nstatus = \"shown\"\nevidence = [\"{evidence}\"]\n"
        ))
    }

    #[test]
    fn evidence_that_exists_passes() {
        for evidence in [
            "test:crates/link/src/atm.rs#cells_count",
            "test:crates/link/src/atm.rs#never_early",
            "command:sonde probe latency --path tcp",
            "command:sonde lab run",
            "command:sonde report-all plans/papers/one.toml",
        ] {
            assert_eq!(shown_by(evidence), Vec::<String>::new(), "{evidence}");
        }
    }

    #[test]
    fn evidence_that_does_not_exist_is_found() {
        for (evidence, fault) in [
            (
                "test:crates/link/src/atm.rs#absent",
                "crates/link/src/atm.rs has no function absent",
            ),
            (
                "test:crates/link/src/atm.rs#plain",
                "plain in crates/link/src/atm.rs is not a #[test]",
            ),
            (
                "test:crates/link/src/atm.rs#slow_one",
                "slow_one in crates/link/src/atm.rs is ignored, so it shows nothing",
            ),
            (
                "test:crates/link/src/fddi.rs#x",
                "there is no file crates/link/src/fddi.rs",
            ),
            (
                "test:cells_count",
                "`test:cells_count` is not test:FILE#FUNCTION",
            ),
            ("command:sonde fly", "sonde has no subcommand `fly`"),
            ("command:sonde inner", "sonde has no subcommand `inner`"),
            ("command:make test", "`make test` does not begin with sonde"),
            (
                "command:sonde probe plans/papers/two.toml",
                "there is no file plans/papers/two.toml",
            ),
            (
                "seen by eye",
                "`seen by eye` is neither test:FILE#FUNCTION nor command:sonde …",
            ),
        ] {
            assert_eq!(shown_by(evidence), [format!("requirement N1: {fault}")]);
        }
    }

    #[test]
    fn a_claim_without_evidence_or_rest_is_found() {
        let ledger = "[[requirement]]\nid = \"N1\"\nstatus = \"shown\"\n\n[[requirement]]\nid = \"S2\"\nstatus = \"later\"\n";
        assert_eq!(
            faults(ledger),
            [
                "requirement N1: is said to be shown, without evidence",
                "requirement S2: does not say what is missing"
            ]
        );
        let mixed = "[[requirement]]\nid = \"N1\"\nstatus = \"shown\"\nevidence = [\"command:sonde probe\"]\nmissing = \"half\"\n";
        assert_eq!(faults(mixed).len(), 1);
    }

    #[test]
    fn ids_are_well_formed_and_unique() {
        let one = |id: &str| {
            format!("[[requirement]]\nid = \"{id}\"\nstatus = \"later\"\nmissing = \"all\"\n")
        };
        assert_eq!(faults(&(one("N1") + &one("X12"))), Vec::<String>::new());
        assert_eq!(
            faults(&(one("N1") + &one("N1"))),
            ["requirement N1: appears twice"]
        );
        for id in ["A1", "N", "N1b", "1", ""] {
            assert_eq!(faults(&one(id)).len(), 1, "{id}");
        }
    }

    #[test]
    fn a_ledger_that_is_missing_or_misspelt_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
        let findings = check(&Tree::of(&[(
            LEDGER,
            "[[requirement]]\nid = \"N1\"\nstatus = \"done\"\n",
        )]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line(), 3);
    }
}
