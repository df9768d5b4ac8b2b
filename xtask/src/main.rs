//! The workspace's own checks, `cargo xtask tidy`, the measurement of what it promises, `cargo xtask bench`, the comparison
//! with frozen runs, `cargo xtask corpus`, the page's types, `cargo xtask types`, and what runs its tests: `cargo xtask quick`, `flakes` and
//! `tally`.
//!
//! Each module is one family of rules; a rule takes text or a tree and returns findings, so that its tests can
//! feed it bad input. What compilers and clippy already check is not repeated here.
#![forbid(unsafe_code)]

mod bench;
mod book;
mod corpus;
mod coverage;
mod edges;
mod finding;
mod flakes;
mod floats;
mod heads;
mod links;
mod metadata;
mod outcomes;
mod parsers;
mod programs;
mod quick;
mod requirements;
mod sentences;
mod shape;
mod source;
mod subcommands;
mod texts;
mod tree;
mod typescript;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::finding::Finding;
use crate::tree::Tree;

const HELP: &str = "\
cargo xtask COMMAND

  tidy    check the workspace; prints file:line: what is wrong; the remedy
  bench   [NAME...] [--list] [--write] [--budget TIME] [--rounds N] [--any-noise] [--more]: run the benches of bench/ (all, or those named) with the built
          command beside other programs, in turns, and print their rows; rounds beside which the machine was not quiet are dropped
          and repeated. With --write what was found is kept in bench/results/ and docs/performance.md is made anew; with
          --budget no round begins after TIME (`--budget 0s --write` only makes the document). --any-noise counts disturbed rounds, to
          try a bench. --more adds rounds to those that were recorded at the same commit. --list: what there is
  floor   what two cores can do at best: a bench starts it
  deal    how often intervals of stored launches hold what they claim: a bench starts it
  corpus  [NAME...] [--full] [--write FOLDER]: compare what the built command makes of the frozen runs of corpus/, and all that
          it offers, with how both were frozen; NAME is a run, or inventory. With --write freeze them anew
  quick   [--base REV] [--print]: the tests of the crates that changed since REV and of those that depend on one of them, and one
          test with a lab; nothing that needs a lab otherwise or a quiet machine. REV is where the branch left main, on main the
          commit before the last; --print shows the calls of cargo. `make quick` is it
  flakes  [N] [--filter NAME]: run the tests of the suite N times (5) and add those that failed or were skipped for noise to
          tests/flakes.md; with NAME those whose name contains it
  coverage [ID...]: how many requirements of plans/papers are shown, by study; with ids the words of these, and what shows them
  tally   LOG: what scripts/test.sh counts of a log of `cargo test`: passed, failed, skipped; then who was skipped for noise
  types   [--write]: the types of the page's data in TypeScript, made of those of the crate report; with --write into web/src/view.ts
  help    this text

What tidy checks:

  edges      each crate sees only the rooms that xtask/src/edges.rs allows it; pure crates stay pure
  heads      each .rs file begins with a module head `//!` that says what it is
  unsafe     only in sys, channel and adapter; every other crate root has #![forbid(unsafe_code)]
  floats     no f32, f64 or float literal in units, link and virtual, tests and lines with `// float: why` apart
  shape      no .rs file over 800 lines, none named util, helper, common or the like; each crate has a README.md
  programs   one program of integration tests a crate; each file of tests in it, what measures or has a lab in its group
  sentences  what findings say stands in crates/report/src/words: no sentence in a rule
  texts      facts have types: no map or list of texts, no JSON of any shape, but where xtask/src/texts.rs says why
  words      help, sentences, tables, README and docs/ use the field's words: what went is in xtask/src/words.rs
  parsers    modules that read bytes from outside deny what can panic; fuzz targets name what they parse
  coverage   plans/papers: every requirement has one entry in coverage.toml, and every claim evidence that exists
  page       web/src/view.ts is what `cargo xtask types` makes
  bench      files of bench/ can be read, and docs/performance.md is what they and bench/results/ make
  links      relative links in README, ARCHITECTURE, CONTRIBUTING, CHANGELOG, docs/ and crate READMEs lead somewhere
  book       docs/SUMMARY.md has each file docs/*.md once, and links to nothing else
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["tidy"] => report(tidy()),
        ["bench", ..] => measured("bench", |root| bench::run(root, &arguments[1..])),
        ["floor"] => measured("floor", |_| bench::floor()),
        ["deal", ..] => measured("deal", |_| bench::deal(&arguments[1..])),
        ["corpus", ..] => measured("corpus", |root| corpus::run(root, &arguments[1..])),
        ["quick", ..] => measured("quick", |root| quick::run(root, &arguments[1..])),
        ["flakes", ..] => measured("flakes", |root| flakes::run(root, &arguments[1..])),
        ["coverage", ..] => measured("coverage", |root| coverage::run(root, &arguments[1..])),
        ["types", ..] => measured("types", |root| typescript::run(root, &arguments[1..])),
        ["tally", ..] => measured("tally", |_| outcomes::tally(&arguments[1..])),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("unknown command\n\n{HELP}");
            ExitCode::from(64)
        }
    }
}

/// What drives the built command; success only where all was as promised.
fn measured(name: &str, work: impl FnOnce(&Path) -> Result<ExitCode>) -> ExitCode {
    match workspace_root().and_then(|root| work(&root)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {name} could not run: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs every rule over the workspace.
fn tidy() -> Result<Vec<Finding>> {
    let tree = Tree::read(&workspace_root()?)?;
    let metadata = metadata::cargo_metadata(tree.root())?;
    let mut findings = edges::check(&metadata)?;
    findings.extend(programs::check(&tree, &metadata));
    findings.extend(heads::check(&tree));
    findings.extend(floats::check(&tree));
    findings.extend(shape::check(&tree));
    findings.extend(sentences::check(&tree));
    findings.extend(texts::check(&tree));
    findings.extend(words::check(&tree));
    findings.extend(parsers::check(&tree));
    findings.extend(coverage::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(book::check(&tree));
    findings.extend(typescript::check(tree.root())?);
    findings.extend(bench::check(&tree)?);
    findings.sort();
    Ok(findings)
}

/// The directory of the workspace that holds the current directory.
fn workspace_root() -> Result<PathBuf> {
    let here = std::env::current_dir().context("reading the current directory")?;
    here.ancestors()
        .find(|dir| dir.join("xtask/Cargo.toml").is_file())
        .map(PathBuf::from)
        .with_context(|| {
            format!(
                "no xtask/Cargo.toml in {} or above; run this inside the workspace",
                here.display()
            )
        })
}

/// Prints the findings; success only when there are none.
fn report(outcome: Result<Vec<Finding>>) -> ExitCode {
    match outcome {
        Ok(findings) if findings.is_empty() => {
            println!("tidy: nothing found");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            println!("tidy: {} found", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: tidy could not run: {error:#}");
            ExitCode::from(2)
        }
    }
}
