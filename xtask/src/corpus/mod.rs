//! `cargo xtask corpus`: what the command makes of frozen runs, and all that it offers, beside how both were frozen.
//!
//! Model:   `corpus/MANIFEST.toml` names the runs. Of a store everything is worked out again by the program and compared line by
//!          line; of a command that stores nothing the exit code and the names in its JSON, where it is quick enough to be run.
//!          A difference must stand in `corpus/differences.toml`, and each entry there must still match one.
//! Checked: `a_planted_difference_is_found_and_may_be_allowed`, and the tests of `diff` and `allowed`.

mod allowed;
mod diff;
mod frozen;
mod inventory;
#[cfg(test)]
mod leaves;
mod program;
mod views;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use allowed::Allowed;
use program::Program;

/// The most that all files of the corpus may take.
const BYTES_MAX: u64 = 4 << 20;
/// Lines of a difference that are shown without `--full`.
const LINES_SHOWN: usize = 24;
/// Characters of such a line.
const COLUMNS_SHOWN: usize = 160;
/// The inventory, where a run's name stands elsewhere.
const INVENTORY: &str = "inventory";

/// Files by name.
type Files = BTreeMap<String, String>;

/// What `MANIFEST.toml` says.
#[derive(Debug, Deserialize)]
struct Manifest {
    run: Vec<Entry>,
}

/// A frozen run.
#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    kind: Kind,
    /// The arguments of one that stores nothing and is run again; `{dir}` is a folder for its files.
    #[serde(default)]
    again: Vec<String>,
    exit: toml::Value,
    /// Further commands over the store, words apart by spaces; `{other:NAME}` is the folder of another run.
    #[serde(default)]
    views: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Store,
    Said,
}

/// What is to be done.
#[derive(Debug, Default)]
struct Task {
    names: Vec<String>,
    full: bool,
    write: Option<PathBuf>,
}

impl Task {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut task = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--full" => task.full = true,
                "--write" => {
                    let from = words.next().context(
                        "`--write` wants the folder that scripts/corpus.sh made, or `corpus` to work out anew what is frozen",
                    )?;
                    task.write = Some(from.into());
                }
                option if option.starts_with('-') => {
                    bail!(
                        "there is no option `{option}`: write --full, --write FOLDER, or names of runs"
                    )
                }
                name => task.names.push(name.into()),
            }
        }
        Ok(task)
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

/// Compares, or writes; success only where nothing differs that may not.
pub fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let task = Task::parse(arguments)?;
    let program = Program::find(root)?;
    let corpus = root.join("corpus");
    if let Some(from) = &task.write {
        return write(root, &corpus, from, &program);
    }
    let outcome = compare(root, &corpus, &program, &task)?;
    Ok(if outcome == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn manifest(folder: &Path) -> Result<Manifest> {
    let path = folder.join("MANIFEST.toml");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("in {}", path.display()))
}

/// How many things are wrong.
fn compare(root: &Path, corpus: &Path, program: &Program, task: &Task) -> Result<usize> {
    let manifest = manifest(corpus)?;
    for name in &task.names {
        ensure!(
            name == INVENTORY || manifest.run.iter().any(|run| run.name == *name),
            "there is no run `{name}` in corpus/MANIFEST.toml"
        );
    }
    let mut allowed = Allowed::read(&corpus.join("differences.toml"))?;
    let mut wrong = 0;
    let stores = frozen::Stores::new(corpus)?;
    for entry in manifest.run.iter().filter(|run| task.wants(&run.name)) {
        let folder = corpus.join("runs").join(&entry.name);
        let (before, after) = match entry.kind {
            Kind::Store => (
                frozen::read(&folder)?,
                views::of_store(program, entry, &stores)?,
            ),
            Kind::Said if entry.again.is_empty() => continue,
            Kind::Said => (
                views::shape_of_said(&frozen::read(&folder)?, &entry.exit)?,
                views::said_again(program, entry, root)?,
            ),
        };
        wrong += judge(&entry.name, &before, &after, &mut allowed, task.full);
        if entry.kind == Kind::Store {
            for run in stores.changed_by_version(&entry.name)? {
                println!(
                    "{}: run {run} is another once its store is of this version",
                    entry.name
                );
                wrong += 1;
            }
        }
    }
    if task.wants(INVENTORY) {
        let before = frozen::read(&corpus.join(INVENTORY))?;
        let after = inventory::of(root, program, &stores)?;
        wrong += judge(INVENTORY, &before, &after, &mut allowed, task.full);
    }
    if task.names.is_empty() {
        for entry in allowed.unused() {
            println!("differences.toml: nothing matches any more: {entry}; take it out");
            wrong += 1;
        }
        println!(
            "corpus: {} runs and the inventory, {wrong} {}",
            manifest.run.len(),
            if wrong == 1 { "trouble" } else { "troubles" }
        );
    }
    Ok(wrong)
}

/// Prints what differs; how many files do so without leave.
fn judge(name: &str, before: &Files, after: &Files, allowed: &mut Allowed, full: bool) -> usize {
    let mut differing = 0;
    let empty = String::new();
    let mut files: Vec<&String> = before.keys().chain(after.keys()).collect();
    files.sort();
    files.dedup();
    for file in files {
        let (old, new) = (
            before.get(file).unwrap_or(&empty),
            after.get(file).unwrap_or(&empty),
        );
        let hunks = allowed.without(name, file, diff::hunks(old, new));
        if hunks.is_empty() {
            continue;
        }
        differing += 1;
        println!("{name}/{file} differs:");
        let text = diff::text(old, &hunks);
        let lines: Vec<&str> = text.lines().collect();
        let shown = if full {
            lines.len()
        } else {
            lines.len().min(LINES_SHOWN)
        };
        for line in &lines[..shown] {
            let most = if full { usize::MAX } else { COLUMNS_SHOWN };
            println!("    {}", line.chars().take(most).collect::<String>());
        }
        if shown < lines.len() {
            println!(
                "    … {} lines more: --full shows them",
                lines.len() - shown
            );
        }
    }
    if differing == 0 {
        println!("{name}: equal");
    }
    differing
}

/// Freezes what the script made, and works out everything beside it.
fn write(root: &Path, corpus: &Path, from: &Path, program: &Program) -> Result<ExitCode> {
    let is_fresh = from.canonicalize()? != corpus.canonicalize().unwrap_or_default();
    if is_fresh {
        frozen::take(from, corpus, &manifest(from)?)?;
    }
    let manifest = manifest(corpus)?;
    let stores = frozen::Stores::new(corpus)?;
    for entry in manifest.run.iter().filter(|run| run.kind == Kind::Store) {
        let files = views::of_store(program, entry, &stores)?;
        frozen::write(&corpus.join("runs").join(&entry.name), &files)?;
        println!("{}", entry.name);
    }
    frozen::write(
        &corpus.join(INVENTORY),
        &inventory::of(root, program, &stores)?,
    )?;
    let bytes = frozen::size(corpus)?;
    println!("corpus: {} KiB in all", bytes / 1024);
    ensure!(
        bytes <= BYTES_MAX,
        "the corpus may take {BYTES_MAX} bytes: trim samples or runs"
    );
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::Folder;

    /// A stand-in for the command, whose `report show` prints a file of the run's folder.
    const STAND_IN: &str = "#!/bin/sh\ncase \"$*\" in\n*\"report show R --out .\") cat ../said ;;\n*) echo \"$*\" | tr ' ' '\\n' ;;\nesac\n";

    #[test]
    fn a_planted_difference_is_found_and_may_be_allowed() {
        let folder = Folder::new("corpus-test").unwrap();
        let (root, corpus) = (folder.path(), folder.path().join("corpus"));
        let run = corpus.join("runs/one");
        std::fs::create_dir_all(&run).unwrap();
        std::fs::write(
            corpus.join("MANIFEST.toml"),
            "[[run]]\nname = \"one\"\nkind = \"store\"\nexit = 0\n",
        )
        .unwrap();
        let head = sonde_measure::RunHead {
            id: "R".into(),
            command: "probe latency".into(),
            plan: String::new(),
            seed: 1,
            version: "0.1.0".into(),
            began_unix_ns: 1,
            ended_unix_ns: None,
            state: sonde_measure::RunState::Open,
        };
        let store = sonde_record::Store::open(root).unwrap();
        let measured = sonde_measure::Run {
            head,
            hosts: Vec::new(),
            networks: Vec::new(),
            cells: Vec::new(),
            launches: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
        };
        store.begin(&measured).unwrap();
        frozen::keep_store(store.path(), &run).unwrap();
        let said = folder.path().join("said");
        let program = Program::stand_in(
            &folder,
            &STAND_IN.replace("../said", said.to_str().unwrap()),
        );
        let task = Task {
            names: vec!["one".into()],
            ..Task::default()
        };
        let wrong = || compare(root, &corpus, &program, &task).unwrap();

        std::fs::write(&said, "rate 10\nfinding a\n").unwrap();
        let entry = &manifest(&corpus).unwrap().run[0];
        let files =
            views::of_store(&program, entry, &frozen::Stores::new(&corpus).unwrap()).unwrap();
        frozen::write(&run, &files).unwrap();
        assert_eq!(wrong(), 0);

        std::fs::write(&said, "rate 11\nfinding a\n").unwrap();
        assert_eq!(wrong(), 1);
        let list = corpus.join("differences.toml");
        let entry = "[[difference]]\nrun = \"one\"\nfile = \"show.txt\"\nreason = \"r\"\nbefore = \"rate 10\"\nafter = \"rate 11\"\n";
        std::fs::write(&list, entry).unwrap();
        assert_eq!(wrong(), 0);
        std::fs::write(&said, "rate 12\nfinding a\n").unwrap();
        assert_eq!(wrong(), 1);
        // What was lost is a difference too.
        std::fs::write(&said, "rate 11\n").unwrap();
        assert_eq!(wrong(), 1);
    }
}
