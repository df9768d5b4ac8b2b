//! `cargo xtask bench`: runs the benches of `bench/`, records what came of them, and makes `docs/performance.md` of it.
//!
//! Model:   a bench is data ([`file`]): members that take turns ([`play`]) on this machine ([`machine`]), readers of their output
//!          ([`read`]), and rows over their figures ([`row`]). Two things that commands cannot say are programs of xtask that members
//!          start: [`floor`], what two cores can do at best, and [`deal`], how often intervals hold what they claim.
//! Checked: `options_are_read`, `rounds_are_added_to_those_of_the_same_commit`, `a_document_that_differs_is_found`; the tests of each module.

mod deal;
mod document;
mod file;
mod floor;
mod given;
mod machine;
mod play;
mod read;
mod result;
mod row;
mod term;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use sonde_units::Span;

use crate::bench::document::DOCUMENT;
use crate::bench::file::{Bench, FOLDER, Values};
use crate::bench::machine::{Here, missing, places};
use crate::bench::play::{Machine, play};
use crate::bench::result::Recorded;
use crate::bench::row::{Line, lines};
use crate::finding::Finding;
use crate::tree::Tree;

pub use deal::run as deal;
pub use floor::run as floor;

/// A bench, and what was recorded of it.
pub type Known = (Bench, Option<Recorded>);

#[derive(Debug, Default, PartialEq)]
struct Options {
    names: Vec<String>,
    is_list: bool,
    write: bool,
    budget: Option<Duration>,
    rounds: Option<usize>,
    any_noise: bool,
    more: bool,
}

/// `cargo xtask bench [NAME...] [--list] [--write] [--budget TIME] [--rounds N] [--any-noise] [--more]`; exit code 1 where what is wanted was not met or not run.
///
/// # Errors
/// An option or a bench that does not exist, a file of `bench/` that is wrong, a command that is not built.
pub fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let options = options(arguments)?;
    let (benches, faults) = all(root)?;
    if !faults.is_empty() {
        for fault in &faults {
            eprintln!("{fault}");
        }
        bail!("{} faults in files of {FOLDER}/", faults.len());
    }
    let names: Vec<&str> = benches
        .iter()
        .map(|(bench, _)| bench.name.as_str())
        .collect();
    if let Some(unknown) = options
        .names
        .iter()
        .find(|name| !names.contains(&name.as_str()))
    {
        bail!(
            "there is no bench `{unknown}`; there are {}",
            names.join(", ")
        );
    }
    if options.is_list {
        list(&benches);
        return Ok(ExitCode::SUCCESS);
    }
    let mut here = Here::new(root)?;
    here.any_noise = options.any_noise;
    let budget = options.budget;
    here.deadline = budget.and_then(|budget| Instant::now().checked_add(budget));
    let is_chosen = |name: &str| {
        let is_named = options.names.iter().any(|wanted| wanted == name);
        budget != Some(Duration::ZERO) && (options.names.is_empty() || is_named)
    };
    let commit = commit(root);
    let (mut unmet, mut absent, mut long) = (Vec::new(), Vec::new(), Vec::new());
    let chosen = benches.iter().filter(|(bench, _)| is_chosen(&bench.name));
    for (bench, recorded) in chosen {
        let name = &bench.name;
        if bench.long && options.names.is_empty() {
            long.push(format!("{name}: it takes long; name it"));
        } else if here.is_over() == Some(true) {
            absent.push(format!("{name}: the budget was spent"));
        } else {
            let rounds = options.rounds.unwrap_or(bench.rounds);
            let recorded = recorded.as_ref().filter(|_| options.more);
            let earlier = recorded.map(|one| earlier(one, &commit)).transpose()?;
            let recorded = measured(bench, &mut here, rounds, (&commit, earlier))?;
            println!("{}", document::section(bench, Some(&recorded)));
            unmet.extend(missed(bench, &recorded));
            let what = recorded.absent.iter();
            absent.extend(what.map(|what| format!("{name}: {what}")));
            if options.write && recorded.case.iter().any(|case| case.rounds > 0) {
                let text = toml::to_string(&recorded).context("writing the result")?;
                let path = root.join(document::place(name));
                std::fs::write(&path, text)
                    .with_context(|| format!("writing {}", path.display()))?;
            }
        }
    }
    for (what, list) in [
        ("not met", &unmet),
        ("not run", &absent),
        ("not run", &long),
    ] {
        for line in list {
            println!("{what}: {line}");
        }
    }
    if options.write {
        // What was recorded just now is among it.
        let (benches, _) = all(root)?;
        std::fs::write(root.join(DOCUMENT), document::made(&benches))
            .with_context(|| format!("writing {DOCUMENT}"))?;
        eprintln!("bench: {DOCUMENT} is made of {FOLDER}/");
    }
    let is_well = unmet.is_empty() && absent.is_empty();
    Ok(ExitCode::from(u8::from(!is_well)))
}

/// The rows that are not met, in words.
fn missed(bench: &Bench, recorded: &Recorded) -> Vec<String> {
    let all = lines(bench, recorded);
    let missed = all.iter().filter(|line| line.is_met() == Some(false));
    // Why nothing was measured has been said, but where a program ran and printed no such figure.
    let missed = missed.filter(|line| !line.values.is_empty() || recorded.absent.is_empty());
    let told = |line: &Line| format!("{}: {}", bench.name, line.cells().join(", "));
    missed.map(told).collect()
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--list" => options.is_list = true,
            "--write" => options.write = true,
            "--any-noise" => options.any_noise = true,
            "--more" => options.more = true,
            "--budget" => {
                let text = words
                    .next()
                    .context("--budget needs a time, such as 20min")?;
                let span = Span::of_option(text).map_err(|error| anyhow!("--budget: {error}"))?;
                options.budget = Some(Duration::from_nanos(span.as_nanos()));
            }
            "--rounds" => {
                let rounds = words.next().and_then(|text| text.parse().ok());
                options.rounds = Some(
                    rounds
                        .filter(|rounds| *rounds > 0)
                        .context("--rounds needs a number above 0")?,
                );
            }
            other if other.starts_with('-') => bail!(
                "there is no option `{other}`; there are --list, --write, --budget, --rounds, --any-noise, --more"
            ),
            name => options.names.push(name.to_owned()),
        }
    }
    if options.any_noise && options.write {
        bail!(
            "--any-noise counts disturbed rounds, to try a bench: leave --write out, or --any-noise"
        );
    }
    Ok(options)
}

/// Every bench with what was recorded of it, by name, and all that is wrong with their files.
///
/// # Errors
/// The folder cannot be read.
pub fn all(root: &Path) -> Result<(Vec<Known>, Vec<Finding>)> {
    let mut texts = Vec::new();
    let folder = root.join(FOLDER);
    for entry in
        std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
    {
        let path = entry?.path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
            .to_owned();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("reading {}", path.display()))?;
            let recorded = std::fs::read_to_string(root.join(document::place(&name))).ok();
            texts.push((name, text, recorded));
        }
    }
    texts.sort();
    Ok(parsed(&texts))
}

/// Its name, its file's text, and that of its result.
type Text = (String, String, Option<String>);

fn parsed(texts: &[Text]) -> (Vec<Known>, Vec<Finding>) {
    let (mut benches, mut faults) = (Vec::new(), Vec::new());
    for (name, text, recorded) in texts {
        let recorded = match recorded.as_deref().map(toml::from_str::<Recorded>) {
            Some(Err(error)) => {
                let what = error.message().replace('\n', " ");
                let remedy = format!("record it anew: cargo xtask bench {name} --write");
                faults.push(Finding::new(
                    Path::new(&document::place(name)),
                    1,
                    what,
                    remedy,
                ));
                None
            }
            Some(Ok(recorded)) => Some(recorded),
            None => None,
        };
        match Bench::parse(name, text) {
            Ok(bench) => benches.push((bench, recorded)),
            Err(found) => faults.extend(found),
        }
    }
    (benches, faults)
}

/// Finds faults in files of `bench/`, and a document that is not what they make.
///
/// # Errors
/// The folder cannot be read.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let (benches, mut faults) = all(tree.root())?;
    let held = tree.text(Path::new(DOCUMENT)).unwrap_or_default();
    if faults.is_empty() {
        faults.extend(difference(held, &document::made(&benches)));
    }
    Ok(faults)
}

fn difference(held: &str, made: &str) -> Option<Finding> {
    let same = held
        .lines()
        .zip(made.lines())
        .take_while(|(held, made)| held == made);
    let what = "the document is not what bench/ makes";
    let remedy = "make it: cargo xtask bench --budget 0s --write";
    (held != made).then(|| Finding::new(Path::new(DOCUMENT), same.count() + 1, what, remedy))
}

fn list(benches: &[Known]) {
    for (bench, recorded) in benches {
        let cases = bench.cases().len();
        let when = recorded
            .as_ref()
            .map_or("not measured yet".into(), |recorded| {
                let how = if recorded.carried.is_some() {
                    "carried over"
                } else {
                    "measured"
                };
                format!("{how} {}", recorded.date)
            });
        println!(
            "{:<12} {} ({cases} cases, {} rounds; {when})",
            bench.name,
            bench.title.get_ref(),
            bench.rounds
        );
        for what in bench.member.iter().filter_map(missing) {
            println!("{:<12}   {what}", "");
        }
    }
}

/// What was recorded of a bench, to which rounds are added.
///
/// # Errors
/// It is of another commit, or its rounds were not kept.
fn earlier<'a>(recorded: &'a Recorded, commit: &str) -> Result<&'a Recorded> {
    if recorded.carried.is_some() {
        bail!(
            "--more adds rounds to those that are recorded, and here none were kept: leave it out"
        );
    }
    if recorded.commit != commit {
        bail!(
            "--more adds rounds to those of {}, and this is {commit}: check that commit out, or leave --more out",
            recorded.commit
        );
    }
    Ok(recorded)
}

/// Plays a bench on this machine, on from the rounds that were recorded `earlier`.
fn measured(
    bench: &Bench,
    here: &mut Here,
    rounds: usize,
    (commit, earlier): (&str, Option<&Recorded>),
) -> Result<Recorded> {
    eprintln!("bench {}: {}", bench.name, bench.title.get_ref());
    let mut absent = Vec::new();
    let mut members = Vec::new();
    for (at, member) in bench.member.iter().enumerate() {
        match missing(member) {
            Some(what) => absent.push(what),
            None => members.push(at),
        }
    }
    let places = places()?;
    let mut cases = bench.cases();
    for case in &mut cases {
        case.extend(places.clone());
        givens(bench, case)?;
    }
    let none = Recorded::default();
    let before = earlier.unwrap_or(&none);
    let mut played = play(bench, &members, (&cases, &before.case), rounds, here)?;
    absent.extend(played.absent);
    played.causes.extend(before.causes.clone());
    played.causes.sort();
    played.causes.dedup();
    let machine = match here.any_noise {
        true => format!("{}, disturbed rounds too", here.told()),
        false => here.told(),
    };
    let machines = before.machine.split("; ").filter(|one| *one != machine);
    let machines = machines.filter(|one| !one.is_empty()).chain([&*machine]);
    Ok(Recorded {
        commit: commit.to_owned(),
        date: today()?,
        machine: machines.collect::<Vec<_>>().join("; "),
        tried: before.tried + played.tried,
        dropped: before.dropped + played.dropped,
        causes: played.causes,
        absent,
        carried: None,
        case: played.cases,
    })
}

/// Adds the figures of the models to the values of a case.
fn givens(bench: &Bench, case: &mut Values) -> Result<()> {
    for given in &bench.given {
        let [network, bytes, seconds] =
            [&given.network, &given.bytes, &given.seconds].map(|text| file::filled(text, case));
        let value = given::figure(given.is.get_ref(), &network, &bytes, &seconds);
        let value =
            value.with_context(|| format!("{FOLDER}/{}.toml: {}", bench.name, given.name))?;
        case.insert(given.name.clone(), value.to_string());
    }
    Ok(())
}

/// The last commit that changed more than what benches write, marked where more has been changed since.
fn commit(root: &Path) -> String {
    let git = |words: &[&str]| {
        let output = std::process::Command::new("git")
            .args(words)
            .current_dir(root)
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let results = format!(":!{FOLDER}/results");
    let document = format!(":!{DOCUMENT}");
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ".",
        &results,
        &document,
    ]);
    let mark = if changed.is_none_or(|changed| !changed.is_empty()) {
        "-changed"
    } else {
        ""
    };
    let last = ["log", "-1", "--abbrev=8", "--format=%h", "--", "."];
    let commit = git(&[&last[..], &[&results, &document]].concat());
    commit.map_or("unknown".into(), |commit| format!("{commit}{mark}"))
}

fn today() -> Result<String> {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .context("the clock is before 1970")?;
    let now = sonde_report::utc(u64::try_from(now.as_nanos()).context("the clock is after 2500")?);
    Ok(now.split(' ').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let read = |text: &str| {
            options(
                &text
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        let found = read("peers svc --budget 20min --write --rounds 3").unwrap();
        let wanted = Options {
            names: vec!["peers".into(), "svc".into()],
            is_list: false,
            write: true,
            budget: Some(Duration::from_secs(1_200)),
            rounds: Some(3),
            any_noise: false,
            more: false,
        };
        assert_eq!(found, wanted);
        assert!(read("ways --more").unwrap().more);
        assert_eq!(read("--budget 0s").unwrap().budget, Some(Duration::ZERO));
        assert!(read("--list").unwrap().is_list);
        for (wrong, why) in [
            ("--budget", "--budget needs a time, such as 20min"),
            ("--budget soon", "--budget:"),
            ("--rounds 0", "--rounds needs a number above 0"),
            ("--any-noise --write", "leave --write out, or --any-noise"),
            ("--all", "there is no option `--all`; there are --list"),
        ] {
            let said = read(wrong).unwrap_err().to_string();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    #[test]
    fn rounds_are_added_to_those_of_the_same_commit() {
        let mut recorded = Recorded {
            commit: "01234567".into(),
            ..Recorded::default()
        };
        assert_eq!(earlier(&recorded, "01234567").unwrap(), &recorded);
        let said = earlier(&recorded, "89abcdef").unwrap_err().to_string();
        assert!(
            said.contains("those of 01234567, and this is 89abcdef"),
            "{said}"
        );
        recorded.carried = Some(result::Carried {
            command: "x".into(),
            text: "| x |".into(),
        });
        let said = earlier(&recorded, "01234567").unwrap_err().to_string();
        assert!(said.contains("leave it out"), "{said}");
    }

    #[test]
    fn a_document_that_differs_is_found() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let found = difference("a\nb\nc\n", "a\nB\nc\n").unwrap().to_string();
        assert_eq!(
            found,
            "docs/performance.md:2: the document is not what bench/ makes; make it: cargo xtask bench --budget 0s --write"
        );
        assert!(difference("a\n", "a\nb\n").is_some());
        let text = |recorded: &str| {
            (
                "x".to_owned(),
                "title = 1".to_owned(),
                Some(recorded.to_owned()),
            )
        };
        let (benches, faults) = parsed(&[text("commit = 1")]);
        assert!(benches.is_empty());
        let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(
            said[0].starts_with("bench/results/x.toml:1:")
                && said[0].contains("cargo xtask bench x --write"),
            "{said:?}"
        );
        assert!(said[1].starts_with("bench/x.toml:1:"), "{said:?}");
    }
}
