//! The workspace's own checks, run as `cargo xtask tidy`.
//!
//! Each module is one family of rules; a rule takes text or a tree and returns findings, so that its tests can
//! feed it bad input. What compilers and clippy already check is not repeated here.
#![forbid(unsafe_code)]

mod coverage;
mod edges;
mod finding;
mod floats;
mod heads;
mod links;
mod shape;
mod source;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::finding::Finding;
use crate::tree::Tree;

const HELP: &str = "\
cargo xtask COMMAND

  tidy    check the workspace; prints file:line: what is wrong; the remedy
  help    this text

What tidy checks:

  edges      each crate sees only the rooms that xtask/src/edges.rs allows it; pure crates stay pure
  heads      each .rs file begins with a module head `//!` that says what it is
  unsafe     only in sys and channel; every other crate root has #![forbid(unsafe_code)]
  floats     no f32, f64 or float literal in units, link and virtual, tests and lines with `// float: why` apart
  shape      no .rs file over 800 lines, none named util, helper, common or the like; each crate has a README.md
  coverage   plans/papers/coverage.toml: every claim has evidence that exists
  links      relative links in README, ARCHITECTURE, CONTRIBUTING, CHANGELOG, docs/ and crate READMEs lead somewhere
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    match (command.as_deref(), arguments.next()) {
        (Some("tidy"), None) => report(tidy()),
        (Some("help" | "--help" | "-h"), None) | (None, None) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("unknown command\n\n{HELP}");
            ExitCode::from(64)
        }
    }
}

/// Runs every rule over the workspace.
fn tidy() -> Result<Vec<Finding>> {
    let tree = Tree::read(&workspace_root()?)?;
    let mut findings = edges::check(&edges::cargo_metadata(tree.root())?)?;
    findings.extend(heads::check(&tree));
    findings.extend(floats::check(&tree));
    findings.extend(shape::check(&tree));
    findings.extend(coverage::check(&tree));
    findings.extend(links::check(&tree));
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
