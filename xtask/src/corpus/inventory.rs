//! What the command offers, as text: help, exit codes, documents, columns, tables, findings, events, plan keys, knobs.
//!
//! Model:   all but two parts are what the program itself says; the identifiers of findings and the variables of the environment
//!          are read out of the sources.
//! Checked: `identifiers_are_found_in_sources`, `commands_are_found_in_help`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use serde_json::Value;

use super::frozen::Stores;
use super::program::{Folder, Program};
use super::{Files, views};
use crate::tree::Tree;

/// Calls whose exit codes are promised. `{NAME}` is the store of a frozen run, `{empty}` a folder without one, `{plans}` the
/// plans of the repository.
const CALLS: &[&str] = &[
    "--version",
    "",
    "nosuch",
    "--help",
    "assess --help",
    "assess --dry-run",
    "assess --dry-run --quick --testbed local",
    "assess --dry-run --network nosuch",
    "assess --dry-run --load 2",
    "assess --dry-run {plans}/upc.toml",
    "assess {plans}/absent.toml",
    "assess --testbed slurm --out {empty}",
    "assess --resume --out {empty}",
    "assess --resume nosuch --out {killed}",
    "probe latency --testbed local --resume --out {killed}",
    "probe latency --testbed local --resume --out {resumed}",
    "assess --quick --thorough",
    "probe latency --testbed nosuch",
    "probe latency --path nosuch",
    "probe latency --size 0 --testbed local --out {empty}",
    "probe latency --size lots --testbed local --out {empty}",
    "probe latency --wait soon",
    "probe latency --with nosuch=1 --testbed local --out {empty}",
    "probe latency --with nosuch --testbed local",
    "probe latency --testbed local --path xdp --quick --out {empty}",
    "probe latency --launches 0",
    "probe latency --precision 2000",
    "probe latency --json --json-stream",
    "probe throughput --mode half",
    "probe collective nosuch",
    "probe rate --rate 0",
    "probe sweep --network ethernet-100 --with mtu=9000 --out {empty}",
    "probe sweep --testbed local --udp-limit --out {empty}",
    "probe pattern shift:1 --resume --out {empty}",
    "probe pattern all-pairs --kind stream --out {empty}",
    "probe pattern shift:1 --senders 3..1",
    "probe messages --count 0 --testbed local --out {empty}",
    "probe check --ranks 0",
    "npb nosuch",
    "npb sp --ranks 3 --path native:shm",
    "npb is --class D",
    "npb is --age 0",
    "load --testbed local --rho 2",
    "load --testbed local --rho 0.1 --of 1Gbit --for 1ms",
    "load --testbed local --rho 0.1 --for 100ms",
    "tune --load 0.5",
    "tune --resume",
    "tune --launches 2 --out {empty}",
    "tune --yes",
    "place",
    "place --pattern ring --verify",
    "place --pattern ring --ranks 4 --network ethernet-100 --hosts 2 --slots 2",
    "place --pattern ring --measured latest --out {empty}",
    "place --pattern ring --measured latest --slots 2 --out {pattern-all-pairs}",
    "place --matrix absent.json --network ethernet-100",
    "place record -- nosuch-launcher",
    "lab list",
    "lab list --network nosuch",
    "lab list --network atm-oc3c:nosuch=1",
    "lab list --profile nosuch",
    "lab run --network nosuch -- true",
    "lab run --hosts 0 -- true",
    "lab run --hosts 2 -- true",
    "lab run --hosts 2 -- false",
    "lab run --hosts 2 -- nosuch-program",
    "lab exec h2 -- true",
    "lab tell link h2 down",
    "lab replay absent.ledger",
    "report list --out {empty}",
    "report list --out {local-startup}",
    "report show --out {empty}",
    "report show nosuch --out {local-startup}",
    "report show --rows --json --out {local-startup}",
    "report show --out {skipped-all}",
    "report export --out {local-startup}",
    "report export --csv --json --out {local-startup}",
    "report compare nosuch --out {local-startup}",
    "report compare --out {local-startup}",
    "report html --to /nonexistent/page.html --out {local-startup}",
    "agent --connect 127.0.0.1:1",
    "agent --token-file x",
    "completions nosuch",
    "man",
];

/// Plans with one wrong key each: what is said of it names the right ones.
const WRONG_PLANS: &[(&str, &str)] = &[
    ("plan", "nosuch = 1"),
    ("[testbed]", "[testbed]\nkind = \"local\"\nnosuch = 1"),
    ("[testbed] kind", "[testbed]\nkind = \"nosuch\""),
    ("[profile]", "[profile]\nnosuch = 1"),
    ("[[network]]", "[[network]]\nnosuch = 1"),
    ("[[load]]", "[[load]]\nnosuch = 1"),
    ("[[probe]]", "[[probe]]\nnosuch = 1"),
    ("[[probe]] kind", "[[probe]]\nkind = \"nosuch\""),
    (
        "[[probe]] mode",
        "[[probe]]\nkind = \"throughput\"\nmode = \"nosuch\"",
    ),
    (
        "[probe.flows]",
        "[[probe]]\nkind = \"pattern\"\n[probe.flows]\nnosuch = 1",
    ),
    (
        "[probe.flows] what",
        "[[probe]]\nkind = \"pattern\"\n[probe.flows]\npattern = \"shift:1\"\nwhat = [\"nosuch\"]",
    ),
    ("[repeat]", "[repeat]\nnosuch = 1"),
    ("[[require]]", "[[require]]\nnosuch = 1"),
    ("[[require]] quantity", "[[require]]\nquantity = \"nosuch\""),
];

/// Probes whose knobs are asked for by a wrong one.
const KNOBS: &[&str] = &[
    "probe latency --path tcp",
    "probe latency --path udp",
    "probe latency --path shm",
    "probe latency --path packet",
    "probe latency --path native:tcp",
    "probe latency --path pvm:direct",
    "probe throughput",
    "probe throughput --mode message",
    "probe rate",
    "probe rate --path native:shm",
    "probe startup",
    "probe anatomy",
    "probe collective allreduce",
    "probe sweep",
    "tune",
];

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "elvish", "powershell"];

/// All of it.
///
/// # Errors
/// The program or the sources are not there, or something is not as expected.
pub fn of(root: &Path, program: &Program, stores: &Stores) -> Result<Files> {
    let folder = Folder::new("inventory")?;
    let here = folder.path();
    let mut files = Files::new();
    let mut add = |name: &str, text: String| drop(files.insert(name.into(), text));
    add("help.txt", help(program, here)?);
    add("exit-codes.txt", exit_codes(root, program, here, stores)?);
    add("plan-keys.txt", plan_keys(program, here)?);
    add("knobs.txt", knobs(program, here)?);
    add("dry-runs.txt", dry_runs(root, program)?);
    add("networks.txt", program.call(here, &["lab", "list"])?.out);
    add(
        "networks.json",
        program.call(here, &["lab", "list", "--json"])?.out,
    );
    let (events, tables, columns) = small_run(program, here)?;
    add("events.txt", events);
    add("tables.sql", tables);
    add("csv-columns.txt", columns);
    for shell in SHELLS {
        add(
            &format!("completions.{shell}"),
            program.call(here, &["completions", shell])?.out,
        );
    }
    add("man.txt", man(program, here)?);
    let tree = Tree::read(root)?;
    add("findings.txt", findings(&tree));
    add("environment.txt", environment(&tree));
    add(
        "schema.json",
        program.call(here, &["report", "schema"])?.out,
    );
    Ok(files)
}

/// The help of every command, from the top down, hidden ones too.
fn help(program: &Program, here: &Path) -> Result<String> {
    let mut text = String::new();
    let mut left = vec![vec!["agent".to_owned()], Vec::new()];
    while let Some(command) = left.pop() {
        let mut words = command.clone();
        words.push("--help".into());
        let said = program.call(here, &words)?;
        text += &format!(
            "$ sonde {}\n{}\n",
            words.join(" "),
            views::transcript(&said)
        );
        for name in commands(&said.out).into_iter().rev() {
            let mut below = command.clone();
            below.push(name);
            left.push(below);
        }
    }
    Ok(text)
}

/// The names below `Commands:`.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| line.starts_with("  ") || line.is_empty());
    // A name is indented by two; what it says goes on further right.
    names
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(String::from)
        .collect()
}

fn exit_codes(root: &Path, program: &Program, here: &Path, stores: &Stores) -> Result<String> {
    let empty = here.join("empty");
    let mut text = String::new();
    for call in CALLS {
        let mut words = Vec::new();
        for word in call.split_whitespace() {
            words.push(
                match word.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                    Some(("empty", _)) => empty.display().to_string(),
                    Some(("plans", rest)) => {
                        format!("{}{rest}", root.join("plans/papers").display())
                    }
                    Some((name, _)) => stores.copy(name)?.display().to_string(),
                    None => word.to_owned(),
                },
            );
        }
        let _ = std::fs::remove_dir_all(&empty);
        // Plans name their networks from the root.
        let said = program.call(if call.contains("{plans}") { root } else { here }, &words)?;
        text += &format!("{:>3}  sonde {call}\n", said.code);
    }
    Ok(text)
}

fn plan_keys(program: &Program, here: &Path) -> Result<String> {
    let mut text = String::new();
    for (name, wrong) in WRONG_PLANS {
        std::fs::write(here.join("wrong.toml"), wrong)?;
        let said = program.call(here, &["assess", "--dry-run", "wrong.toml"])?;
        let last = said
            .err
            .lines()
            .rfind(|line| !line.is_empty())
            .unwrap_or_default();
        text += &format!("{name}: {last}\n");
    }
    Ok(text)
}

fn knobs(program: &Program, here: &Path) -> Result<String> {
    let mut text = String::new();
    for probe in KNOBS {
        let mut words: Vec<&str> = probe.split(' ').collect();
        words.extend(["--testbed", "local", "--with", "nosuch=1", "--dry-run"]);
        let said = program.call(here, &words)?;
        text += &format!("{probe}: {}\n", views::transcript(&said).trim_end());
    }
    Ok(text)
}

/// What the published plans, and the main job, come to: every cell's factors and the time.
fn dry_runs(root: &Path, program: &Program) -> Result<String> {
    let mut plans: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(root.join("plans/papers"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".toml") && name != "coverage.toml" {
            plans.push(format!("plans/papers/{name}"));
        }
    }
    plans.sort();
    let usual = [
        "",
        "--quick",
        "--thorough",
        "--testbed local",
        "--load 0,0.6",
    ];
    let mut text = String::new();
    for plan in usual.into_iter().chain(plans.iter().map(String::as_str)) {
        let mut words = vec!["assess", "--dry-run"];
        words.extend(plan.split_whitespace());
        let said = program.call(root, &words)?;
        text += &format!("$ sonde {}\n{}", words.join(" "), views::transcript(&said));
    }
    // The rules between a table's rows say nothing, and would be more than half of it.
    let is_rule = |line: &&str| !line.is_empty() && line.trim_matches(['─', '═']).is_empty();
    let lines = text.lines().filter(|line| !is_rule(line));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

/// A run of a second within this machine, with a warning that its interval is too wide: the names in its events, the tables of its store, the columns of its export.
fn small_run(program: &Program, here: &Path) -> Result<(String, String, String)> {
    let words = "probe latency --testbed local --size 1 --launches 6 --precision 0.1% --budget 20ms --samples 20 --json-stream --out small";
    let words: Vec<&str> = words.split(' ').collect();
    let said = program.call(here, &words)?;
    ensure!(
        said.code == 0,
        "a small run failed: {}",
        views::transcript(&said)
    );
    let mut events = BTreeSet::new();
    for line in said.out.lines() {
        let event: Value = serde_json::from_str(line).context("in --json-stream")?;
        let kind = event["event"].as_str().unwrap_or("?").to_owned();
        events.extend(
            views::shape(&event)
                .lines()
                .map(|path| format!("{kind}{path}\n")),
        );
    }
    let store = Connection::open(here.join("small/sonde.db"))?;
    let mut tables = String::new();
    for pragma in ["application_id", "user_version"] {
        let value: i64 = store.pragma_query_value(None, pragma, |row| row.get(0))?;
        tables += &format!("PRAGMA {pragma} = {value};\n");
    }
    let mut all =
        store.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
    for sql in all.query_map([], |row| row.get::<_, String>(0))? {
        tables += &format!("{};\n", sql?);
    }
    let rows = program.call(here, &["report", "export", "--csv", "--out", "small"])?;
    let columns = rows
        .out
        .lines()
        .next()
        .unwrap_or_default()
        .replace(',', "\n");
    Ok((events.into_iter().collect(), tables, columns + "\n"))
}

/// The pages, each by its length and checksum: their text is that of the help.
fn man(program: &Program, here: &Path) -> Result<String> {
    let said = program.call(here, &["man", "man"])?;
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(here.join("man"))? {
        let entry = entry?;
        let bytes = std::fs::read(entry.path())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        lines.push(format!(
            "{name} {} bytes {:016x}\n",
            bytes.len(),
            views::checksum(&bytes)
        ));
    }
    lines.sort();
    Ok(views::transcript(&said) + &lines.concat())
}

/// The identifiers of findings, by the sources of `report`: what stands behind `Finding::said(`, `rule(&[`,
/// `cause(` or `rule:`, and every word with a hyphen in the folders of rules.
fn findings(tree: &Tree) -> String {
    const FOLDERS: [&str; 4] = ["finding", "diagnosis", "matrix", "rules"];
    let mut found = BTreeSet::new();
    let sources = tree
        .sources()
        .filter(|(path, _)| path.starts_with("crates/report/src"));
    for (path, text) in sources {
        let is_of_rules = path.iter().any(|part| {
            FOLDERS
                .iter()
                .any(|folder| part.to_string_lossy().trim_end_matches(".rs") == *folder)
        });
        if !path.ends_with("tests.rs") && !path.ends_with("testing.rs") {
            found.extend(identifiers(text, is_of_rules));
        }
    }
    found.into_iter().map(|id| id + "\n").collect()
}

fn identifiers(text: &str, with_hyphens: bool) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let mut parts = code.split('"');
    let mut before = parts.next().unwrap_or_default();
    let mut found = Vec::new();
    while let (Some(word), Some(after)) = (parts.next(), parts.next()) {
        let lead = before.trim_end();
        let is_named = ["Finding::said(", "rule(&[", "cause(", "rule:"]
            .iter()
            .any(|name| lead.ends_with(name));
        let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        if is_word && (is_named || (with_hyphens && word.contains('-'))) {
            found.push(word.to_owned());
        }
        before = after;
    }
    found
}

/// Variables of the environment that the sources name.
fn environment(tree: &Tree) -> String {
    let mut found = BTreeSet::new();
    for (path, text) in tree.sources() {
        if path.starts_with("xtask") {
            continue;
        }
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for rest in text.split("\"SONDE_").skip(1) {
            let name = rest.split('"').next().unwrap_or_default();
            if name.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
                found.insert(format!("SONDE_{name}\n"));
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_found_in_sources() {
        let text = "// \"not-this\"\nFinding::said(\n  \"drift\", x, \"a b\");\nrule(&[\"cpu\"], x);\nrule(&[\"mtu\"], x);\nlet way = \"to\";\nif x { \"link-slow\" }\n#[cfg(test)]\nrule: \"no\"";
        assert_eq!(identifiers(text, false), ["drift", "cpu", "mtu"]);
        assert_eq!(
            identifiers(text, true),
            ["drift", "cpu", "mtu", "link-slow"]
        );
    }

    #[test]
    fn commands_are_found_in_help() {
        let help = "What\n\nUsage: x\n\nCommands:\n  one   It\n         goes on\n  two-b\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["one", "two-b"]);
    }
}
