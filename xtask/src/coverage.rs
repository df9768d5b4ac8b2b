//! The ledger of what is shown: plans/papers/coverage.toml, where every claim must have evidence that exists.
//!
//! Model:   each requirement of plans/papers/requirements.md has one `[[requirement]]` with its `id`, its name as `what`, `status`
//!          (`shown`, `partly` or `later`), `evidence` and `missing`. Evidence is `test:FILE#FUNCTION`, a test that runs;
//!          `run:FILE COMMIT COMMAND`, figures that FILE has beside the command by which they were measured at COMMIT; or
//!          `command:sonde …`, whose subcommand the program has and whose `.toml` arguments exist. `shown` needs a test or a run,
//!          and figures to which nothing was `fitted`; `partly` needs evidence; `partly` and `later` say what is missing.
//! Checked: the tests below, one for each way in which a claim can be empty.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::finding::Finding;
use crate::requirements::{self, STUDIES};
use crate::source::{code_of, words};
use crate::subcommands;
use crate::tree::Tree;

/// Where the ledger lies.
const LEDGER: &str = "plans/papers/coverage.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    #[serde(default)]
    requirement: Vec<Entry>,
}

/// What is claimed of one requirement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    /// The requirement's name, so that a mistaken id is found.
    what: String,
    status: Status,
    /// A model's figures were chosen so that they give what the study prints.
    #[serde(default)]
    fitted: bool,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    missing: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Shown,
    Partly,
    Later,
}

impl Status {
    const ALL: [Status; 3] = [Status::Shown, Status::Partly, Status::Later];

    const fn name(self) -> &'static str {
        match self {
            Status::Shown => "shown",
            Status::Partly => "partly",
            Status::Later => "later",
        }
    }
}

/// Finds requirements without an entry, claims without evidence, and evidence that is not there.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut absent = Vec::new();
    for (file, remedy) in [
        (
            LEDGER,
            "write it: one [[requirement]] for each published claim",
        ),
        (
            requirements::FILE,
            "write it: one row for each published claim",
        ),
    ] {
        if tree.text(file).is_none() {
            absent.push(Finding::new(Path::new(file), 1, "it is missing", remedy));
        }
    }
    let (Some(text), Some(asked)) = (tree.text(LEDGER), tree.text(requirements::FILE)) else {
        return absent;
    };
    let ledger: Ledger = match toml::from_str(text) {
        Ok(ledger) => ledger,
        Err(error) => {
            let line = error.span().map_or(1, |span| {
                crate::source::line_of(text, span.start.min(text.len()))
            });
            return vec![Finding::new(
                Path::new(LEDGER),
                line,
                format!("not a ledger: {}", error.message()),
                "see xtask/src/coverage.rs",
            )];
        }
    };
    let (asked, mut findings) = requirements::read(asked);
    findings.extend(entries_faults(tree, text, &ledger, &asked));
    let mut seen = BTreeSet::new();
    for requirement in &asked {
        let id = requirement.id;
        let mut fault = |what: &str, remedy: &str| {
            let what = format!("requirement {id}: {what}");
            findings.push(Finding::new(
                Path::new(requirements::FILE),
                requirement.line,
                what,
                remedy,
            ));
        };
        if !seen.insert(id) {
            fault("appears twice", "give it an id of its own");
        } else if !ledger.requirement.iter().any(|entry| entry.id == id) {
            fault(
                "has no entry in the ledger",
                "say in plans/papers/coverage.toml what is shown of it",
            );
        }
    }
    findings
}

/// What is wrong with the entries, each by itself and beside its requirement.
fn entries_faults(
    tree: &Tree,
    text: &str,
    ledger: &Ledger,
    asked: &[requirements::Requirement<'_>],
) -> Vec<Finding> {
    let commands = subcommands::of(tree);
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for entry in &ledger.requirement {
        let mut faults = form_faults(entry);
        match asked.iter().find(|one| one.id == entry.id) {
            None => faults.push(format!("is not in {}", requirements::FILE)),
            Some(one) if one.name != entry.what => faults.push(format!(
                "is called `{}` there, and `{}` here",
                one.name, entry.what
            )),
            Some(_) => {}
        }
        if !seen.insert(&entry.id) {
            faults.push("appears twice".into());
        }
        let evidence = entry.evidence.iter();
        faults.extend(evidence.filter_map(|one| evidence_fault(tree, &commands, one)));
        let line = line_of_id(text, &entry.id);
        findings.extend(faults.into_iter().map(|fault| {
            Finding::new(
                Path::new(LEDGER),
                line,
                format!("requirement {}: {fault}", entry.id),
                "correct the ledger, or write what it promises",
            )
        }));
    }
    findings
}

/// What is wrong with an entry before its evidence is looked at.
fn form_faults(entry: &Entry) -> Vec<String> {
    let mut faults = Vec::new();
    let is_command = |evidence: &String| evidence.starts_with("command:");
    if entry.status != Status::Later && entry.evidence.is_empty() {
        faults.push("is said to be shown, without evidence".into());
    } else if entry.status == Status::Shown && entry.evidence.iter().all(is_command) {
        faults.push("is said to be shown by commands alone, which show that they parse: name a test or a recorded run".into());
    }
    if entry.status == Status::Shown && entry.fitted {
        faults.push(
            "is said to be shown by figures that were fitted to the study: call it partly".into(),
        );
    }
    if entry.status != Status::Shown && entry.missing.trim().is_empty() {
        faults.push("does not say what is missing".into());
    }
    if entry.status == Status::Shown && !entry.missing.trim().is_empty() {
        faults.push("is said to be shown, and that something is missing: call it partly".into());
    }
    faults
}

/// Prints how much is shown, by study; with ids what is claimed of these, in the requirements' words.
///
/// # Errors
/// A ledger that cannot be read, or an id that it does not have.
pub fn run(root: &Path, ids: &[String]) -> Result<ExitCode> {
    let tree = Tree::read(root)?;
    let ledger = tree.text(LEDGER).context(LEDGER)?;
    let ledger: Ledger = toml::from_str(ledger).context(LEDGER)?;
    let (asked, _) = requirements::read(tree.text(requirements::FILE).unwrap_or_default());
    if ids.is_empty() {
        print!("{}", counts(&ledger));
    }
    for id in ids {
        let entry = ledger.requirement.iter().find(|entry| &entry.id == id);
        let words = asked.iter().find(|one| one.id == id);
        let (Some(entry), Some(words)) = (entry, words) else {
            bail!("there is no requirement {id} in {LEDGER}");
        };
        println!("{id} {}{}", words.name, words.rest);
        let missing = entry.missing.trim();
        let colon = if missing.is_empty() { "" } else { ": " };
        println!("  {}{colon}{missing}", entry.status.name());
        for evidence in &entry.evidence {
            println!("  {evidence}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The table of how many requirements of each study are shown, partly shown and not.
fn counts(ledger: &Ledger) -> String {
    let mut by_study: BTreeMap<(char, Status), usize> = BTreeMap::new();
    for entry in &ledger.requirement {
        let study = entry.id.chars().next().unwrap_or('?');
        *by_study.entry((study, entry.status)).or_default() += 1;
    }
    let mut table = String::from("study   shown  partly   later      of\n");
    let mut row = |name: &str, counts: [usize; 3]| {
        let all: usize = counts.iter().sum();
        let [shown, partly, later] = counts;
        let _ = writeln!(table, "{name:<5}{shown:>8}{partly:>8}{later:>8}{all:>8}");
    };
    for study in STUDIES.chars() {
        let of = |status| by_study.get(&(study, status)).copied().unwrap_or(0);
        row(&study.to_string(), Status::ALL.map(of));
    }
    let of = |status| {
        let is_its =
            |((_, its), count): (&(char, Status), &usize)| (*its == status).then_some(*count);
        by_study.iter().filter_map(is_its).sum()
    };
    row("all", Status::ALL.map(of));
    table
}

/// What is wrong with one piece of evidence, or nothing.
fn evidence_fault(tree: &Tree, commands: &BTreeSet<String>, evidence: &str) -> Option<String> {
    if let Some(test) = evidence.strip_prefix("test:") {
        test_fault(tree, test)
    } else if let Some(run) = evidence.strip_prefix("run:") {
        run_fault(tree, commands, run)
    } else if let Some(command) = evidence.strip_prefix("command:") {
        command_fault(tree, commands, command)
    } else {
        Some(format!(
            "`{evidence}` is none of test:FILE#FUNCTION, run:FILE COMMIT COMMAND and command:sonde …"
        ))
    }
}

/// A recorded run: its file has the command's very words beside the figures; the commit is that of the program that was run.
fn run_fault(tree: &Tree, commands: &BTreeSet<String>, run: &str) -> Option<String> {
    let mut parts = run.splitn(3, ' ');
    let (Some(file), Some(commit), Some(command)) = (parts.next(), parts.next(), parts.next())
    else {
        return Some(format!("`run:{run}` is not run:FILE COMMIT COMMAND"));
    };
    let Some(text) = tree.text(file) else {
        return Some(format!("there is no file {file}"));
    };
    let is_hash = (7..=40).contains(&commit.len())
        && commit
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash {
        return Some(format!("`{commit}` is not a commit"));
    }
    if !text.contains(command) {
        return Some(format!("{file} has no run of `{command}`"));
    }
    let is_own = command.starts_with("sonde ");
    is_own.then(|| command_fault(tree, commands, command))?
}

fn test_fault(tree: &Tree, test: &str) -> Option<String> {
    let Some((file, function)) = test.split_once('#') else {
        return Some(format!("`test:{test}` is not test:FILE#FUNCTION"));
    };
    let Some(text) = tree.text(file) else {
        return Some(format!("there is no file {file}"));
    };
    if file.ends_with(".ts") {
        // A test of the page is named by its words: test('…' or browserTest('….
        let named = format!("est('{function}'");
        return (!text.contains(&named)).then(|| format!("{file} has no test {function}"));
    }
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

    const ASKED: &str =
        "# What is asked for\n- **N1 — Cells** are counted. M\n- **S2 — A trial.** T\n";
    const REST: &str =
        "[[requirement]]\nid = \"S2\"\nwhat = \"A trial\"\nstatus = \"later\"\nmissing = \"all\"\n";

    fn faults(ledger: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (LEDGER, ledger),
            (requirements::FILE, ASKED),
            ("crates/link/src/atm.rs", TESTS),
            ("crates/sonde/src/main.rs", MAIN),
            ("web/test/page.spec.ts", "test('a graph each', () => {})\n"),
            (
                "docs/runs.md",
                "| 3 cells |\n\n    sonde probe plans/papers/one.toml\n",
            ),
            ("plans/papers/one.toml", ""),
        ]);
        check(&tree)
            .iter()
            .map(|finding| finding.what().to_string())
            .collect()
    }

    /// N1 with these further lines, and S2.
    fn with(lines: &str) -> String {
        format!("[[requirement]]\nid = \"N1\"\nwhat = \"Cells\"\n{lines}\n{REST}")
    }

    /// The faults of one requirement that is said to be so, by this evidence.
    fn said(status: &str, evidence: &str) -> Vec<String> {
        let rest = match status {
            "shown" => "",
            _ => "missing = \"half\"\n",
        };
        faults(&with(&format!(
            "status = \"{status}\"\nevidence = [\"{evidence}\"]\n{rest}"
        )))
    }

    #[test]
    fn evidence_that_exists_passes() {
        for (status, evidence) in [
            ("shown", "test:crates/link/src/atm.rs#cells_count"),
            ("shown", "test:crates/link/src/atm.rs#never_early"),
            ("shown", "test:web/test/page.spec.ts#a graph each"),
            (
                "shown",
                "run:docs/runs.md 0123abc sonde probe plans/papers/one.toml",
            ),
            ("partly", "command:sonde probe latency --path tcp"),
            ("partly", "command:sonde lab run"),
            ("partly", "command:sonde report-all plans/papers/one.toml"),
        ] {
            assert_eq!(said(status, evidence), Vec::<String>::new(), "{evidence}");
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
                "test:web/test/page.spec.ts#no graph",
                "web/test/page.spec.ts has no test no graph",
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
                "`seen by eye` is none of test:FILE#FUNCTION, run:FILE COMMIT COMMAND and command:sonde …",
            ),
            (
                "run:docs/runs.md 0123abc",
                "`run:docs/runs.md 0123abc` is not run:FILE COMMIT COMMAND",
            ),
            (
                "run:docs/none.md 0123abc sonde probe",
                "there is no file docs/none.md",
            ),
            (
                "run:docs/runs.md today sonde probe",
                "`today` is not a commit",
            ),
            (
                "run:docs/runs.md 0123abc sonde lab run",
                "docs/runs.md has no run of `sonde lab run`",
            ),
        ] {
            assert_eq!(
                said("partly", evidence),
                [format!("requirement N1: {fault}")]
            );
        }
    }

    #[test]
    fn a_claim_without_evidence_or_rest_is_found() {
        let one = |lines: &str| {
            let faults = faults(&with(lines));
            assert_eq!(faults.len(), 1, "{faults:?}");
            faults[0].clone()
        };
        assert_eq!(
            one("status = \"shown\""),
            "requirement N1: is said to be shown, without evidence"
        );
        assert_eq!(
            one("status = \"later\""),
            "requirement N1: does not say what is missing"
        );
        let test = "evidence = [\"test:crates/link/src/atm.rs#cells_count\"]";
        let mixed = format!("status = \"shown\"\n{test}\nmissing = \"half\"");
        assert!(one(&mixed).ends_with("call it partly"));
        // A command shows that it parses, and a figure that was fitted shows nothing.
        assert!(said("shown", "command:sonde probe")[0].contains("by commands alone"));
        let fitted = format!("status = \"shown\"\nfitted = true\n{test}");
        assert!(one(&fitted).contains("fitted to the study"));
    }

    #[test]
    fn every_requirement_has_one_entry_of_its_name() {
        assert_eq!(faults(REST), ["requirement N1: has no entry in the ledger"]);
        let later = with("status = \"later\"\nmissing = \"all\"");
        assert_eq!(faults(&later), Vec::<String>::new());
        assert_eq!(
            faults(&(later.clone() + REST)),
            ["requirement S2: appears twice"]
        );
        assert_eq!(
            faults(&later.replace("Cells", "Frames")),
            ["requirement N1: is called `Cells` there, and `Frames` here"]
        );
        let unknown = REST.replace("S2", "S3");
        assert_eq!(
            faults(&(later + &unknown)),
            ["requirement S3: is not in plans/papers/requirements.md"]
        );
        let twice = format!("{ASKED}- **N1 — Cells** again. M\n");
        let tree = Tree::of(&[
            (LEDGER, &*with("status = \"later\"\nmissing = \"all\"")),
            (requirements::FILE, &*twice),
        ]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].line(), findings[0].what()),
            (4, "requirement N1: appears twice")
        );
    }

    #[test]
    fn counts_are_by_study() {
        let ledger = with("status = \"shown\"") + &REST.replace("S2", "S4");
        let table = counts(&toml::from_str(&ledger).unwrap());
        let numbers = |row: &str| {
            let found = table.lines().find(|line| line.starts_with(row)).unwrap();
            let words = found.split_whitespace().skip(1);
            words
                .map(|word| word.parse().unwrap())
                .collect::<Vec<usize>>()
        };
        assert_eq!(numbers("N "), [1, 0, 0, 1]);
        assert_eq!(numbers("S "), [0, 0, 2, 2]);
        assert_eq!(numbers("all"), [1, 0, 2, 3]);
    }

    #[test]
    fn a_ledger_that_is_missing_or_misspelt_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 2);
        let findings = check(&Tree::of(&[
            (requirements::FILE, ASKED),
            (LEDGER, "[[requirement]]\nid = \"N1\"\nstatus = \"done\"\n"),
        ]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line(), 3);
    }
}
