//! What is printed, and where to: to a reader that has ended, to a full disk, to files, to terminals of several widths, with and without
//! colours. Nothing is measured.
//!
//! Model:   one table of command lines that print; each is tried with each output.
//! Checked: the table holds every command that prints, as `--help` lists them (`every_command_that_prints_is_tried`).

use crate::lab::{skip, sonde};
use sonde_sys::pty::{Pty, WindowSize, set_window_size};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const UNWRITTEN: i32 = 74;
const UNREAD: i32 = 141;

/// Lines that print something of their own, whatever becomes of it; `STORE` stands for a folder with runs.
const PRINTING: [&str; 63] = [
    "--help",
    "--version",
    "assess help",
    "probe latency --help",
    "assess --dry-run",
    "assess --dry-run --json",
    "assess --dry-run --csv",
    "assess --print-plan",
    "accept --require throughput>=9Mbit --network fddi --dry-run",
    "probe startup --dry-run",
    "probe latency --dry-run",
    "probe throughput --dry-run",
    "probe anatomy --dry-run",
    "probe rate --dry-run",
    "probe collective barrier --dry-run",
    "probe messages upc:cg --dry-run",
    "probe check --dry-run",
    "probe files --dry-run",
    "probe pattern all-pairs --dry-run",
    "probe sweep --dry-run",
    "npb cg --dry-run",
    "contend nfs:write stream --dry-run",
    "contend latency stream --print-plan",
    "stage --dry-run",
    "stage --print-plan",
    "tune --dry-run",
    "suits --list",
    "suits --list --json",
    "suits --list --csv",
    "suits web --out STORE",
    "place --pattern ring --ranks 4 --network ethernet-1g",
    "place --pattern ring --ranks 4 --network ethernet-1g --json",
    "place --pattern ring --ranks 4 --network ethernet-1g --csv",
    "lab list",
    "lab list --json",
    "lab list --csv",
    "lab list --sites",
    "lab list --sites --json",
    "lab compare-sites sandia-engineering sandia-hybrid",
    "lab compare-sites sandia-engineering sandia-hybrid --json",
    "lab downtime atm-oc3c",
    "lab downtime two-rooms --sites --json",
    "lab check fddi --dry-run",
    "load --rho 0.5 --dry-run",
    "load --rho 0.5 --dry-run --json",
    "report list --out STORE",
    "report list --out STORE --json",
    "report list --out STORE --csv",
    "report show --out STORE",
    "report show --out STORE --rows",
    "report show --out STORE --table",
    "report show --out STORE --csv",
    "report compare latest~2 latest~1 --ignore congestion --out STORE",
    "report compare latest~2 latest~1 --ignore congestion --out STORE --csv",
    "report history --out STORE",
    "report history --out STORE --csv",
    "report export --open-metrics --out STORE",
    "report export --csv --out STORE",
    "report export --json --out STORE",
    // It prints where it serves, and serves nobody who cannot read that.
    "report serve --out STORE",
    "report schema",
    "doctor --leftovers --out STORE",
    "completions bash",
];

/// A folder whose store has several runs; none where it cannot be unpacked.
fn store(name: &str) -> Option<PathBuf> {
    if Command::new("xz").arg("--version").output().is_err() {
        skip("xz, which unpacks the corpus");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("output-{name}"));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    let packed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/runs/compared/sonde.db.xz");
    let xz = Command::new("xz").arg("-dc").arg(packed).output().unwrap();
    assert!(xz.status.success(), "{xz:?}");
    fs::write(folder.join("sonde.db"), xz.stdout).unwrap();
    Some(folder)
}

fn command(line: &str, store: &Path) -> Command {
    let mut command = Command::new(sonde());
    let words = line.split(' ').map(|word| match word {
        "STORE" => store.as_os_str().to_owned(),
        word => word.into(),
    });
    command.args(words).current_dir(store).stdin(Stdio::null());
    command.env_remove("NO_COLOR").env_remove("SLURM_JOB_ID");
    command
}

/// What the command says with this standard output.
fn with_output(line: &str, store: &Path, output: Stdio) -> Output {
    let mut command = command(line, store);
    command.stdout(output).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_printed_to_nobody_is_told() {
    let Some(store) = store("nobody") else { return };
    let mut wrong = Vec::new();
    for line in PRINTING {
        let (reader, writer) = UnixStream::pair().unwrap();
        drop(reader);
        let unread = with_output(line, &store, OwnedFd::from(writer).into());
        let said = String::from_utf8_lossy(&unread.stderr);
        if unread.status.code() != Some(UNREAD)
            || said.contains("cannot write")
            || said.contains("panicked")
        {
            wrong.push(format!("{line}, closed: {unread:?}"));
        }
        let full = File::options().write(true).open("/dev/full").unwrap();
        let full = with_output(line, &store, full.into());
        let said = String::from_utf8_lossy(&full.stderr);
        let sentence = "sonde: cannot write to standard output: No space left on device";
        if full.status.code() != Some(UNWRITTEN) || said.matches(sentence).count() != 1 {
            wrong.push(format!("{line}, full: {full:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The commands that `--help` lists, with those below them.
fn listed(words: &[&str], store: &Path) -> Vec<String> {
    let line = [words, &["--help"]].concat().join(" ");
    let help = command(&line, store).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.trim().is_empty());
    let mut all = Vec::new();
    for name in commands.filter(|line| !line.starts_with("   ")) {
        let name = name.split_whitespace().next().unwrap_or_default();
        if name == "help" {
            continue;
        }
        let below = listed(&[words, &[name]].concat(), store);
        match below.is_empty() {
            true => all.push([words, &[name]].concat().join(" ")),
            false => all.extend(below),
        }
    }
    all
}

#[test]
fn every_command_that_prints_is_tried() {
    // These print nothing of their own: a program's output, files, changes of a lab.
    let silent: BTreeSet<&str> = [
        "lab run",
        "lab shell",
        "lab exec",
        "lab tell",
        "report html",
        "man",
        "place record",
        // It reads a ledger, which only a lab writes.
        "lab replay",
    ]
    .into();
    let store = std::env::temp_dir();
    let all = listed(&[], &store);
    assert!(all.len() > 20, "{all:?}");
    let is_tried = |command: &&String| {
        let mut lines = PRINTING.iter();
        silent.contains(command.as_str())
            || lines.any(|line| *line == **command || line.starts_with(&format!("{command} ")))
    };
    let missing: Vec<&String> = all.iter().filter(|command| !is_tried(command)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What the command shows on a terminal of so many columns.
fn on_terminal(line: &str, store: &Path, columns: u16, environment: &[(&str, &str)]) -> String {
    let pty = Pty::open().unwrap();
    let size = WindowSize { rows: 24, columns };
    set_window_size(&pty.terminal, size).unwrap();
    let mut command = command(line, store);
    command
        .env("TERM", "xterm")
        .envs(environment.iter().copied());
    let mut child = command
        .stdout(pty.terminal)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Its end of the terminal is closed here with the command, so that reading comes to an end.
    drop(command);
    let mut bytes = Vec::new();
    // An error is how a terminal ends whose programs have ended.
    drop(File::from(pty.controller).read_to_end(&mut bytes));
    child.wait().unwrap();
    String::from_utf8(bytes).unwrap().replace('\r', "")
}

/// The text without its colours.
fn bare(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

#[test]
fn tables_fit_the_terminal() {
    let Some(store) = store("widths") else { return };
    let mut wrong = Vec::new();
    for line in [
        "lab list",
        "lab list fddi",
        "assess --dry-run",
        "probe pattern all-pairs --dry-run",
        "load --rho 0.5 --dry-run",
        "contend nfs:write npb:lu stream load:0.6 --dry-run",
        "suits --list",
        "place --pattern ring --ranks 4 --network ethernet-1g",
        "report list --out STORE",
        "report show --out STORE",
        "report show --out STORE --rows",
        "report compare latest~2 latest~1 --ignore congestion --out STORE",
    ] {
        for columns in [40, 80, 132] {
            let text = bare(&on_terminal(line, &store, columns, &[]));
            // What is to be copied is never broken.
            let lines = text.lines().filter(|line| !line.contains('`'));
            let widest = lines.max_by_key(|line| line.chars().count());
            let widest = widest.unwrap_or_default();
            if widest.chars().count() > usize::from(columns) {
                wrong.push(format!("{line}, {columns} columns: {widest}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let Some(store) = store("colours") else {
        return;
    };
    let line = "report list --out STORE";
    let coloured = on_terminal(line, &store, 80, &[]);
    assert!(
        coloured.contains("\u{1b}[32mcomplete\u{1b}[0m"),
        "{coloured}"
    );
    let plain = bare(&coloured);
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let text = on_terminal(line, &store, 80, &[environment]);
        assert_eq!(text, plain, "{environment:?}");
    }
    assert_ne!(
        on_terminal(line, &store, 80, &[("NO_COLOR", "")]),
        plain,
        "empty is unset"
    );
    let piped = command(line, &store).output().unwrap();
    assert!(!String::from_utf8_lossy(&piped.stdout).contains('\u{1b}'));
}

#[test]
fn a_history_is_of_the_newest_runs() {
    let Some(store) = store("history") else {
        return;
    };
    let runs = |line: &str| {
        let output = command(line, &store).output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["runs"].as_array().unwrap().clone()
    };
    let all = runs("report history --out STORE --json");
    let last = runs("report history -n 2 --out STORE --json");
    assert!(all.len() > 2);
    assert_eq!(last, all[all.len() - 2..]);
}

#[test]
fn results_go_to_a_file() {
    let Some(store) = store("files") else { return };
    let said = |line: &str| {
        let output = command(line, &store).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (
            output.status.code(),
            text,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    for (line, file) in [
        ("lab list --json", "a.json"),
        ("lab list --csv", "a.csv"),
        ("report list --out STORE --json", "b.json"),
        ("report show --out STORE --csv", "b.csv"),
        ("report export --out STORE --csv", "c.csv"),
        (
            "place --pattern ring --ranks 4 --network ethernet-1g --csv",
            "d.csv",
        ),
    ] {
        let (_, printed, _) = said(line);
        // The name says the form.
        let plain = line.trim_end_matches(" --json").trim_end_matches(" --csv");
        let (code, out, err) = said(&format!("{plain} --to {file}"));
        assert_eq!((code, out.as_str()), (Some(0), ""), "{line}: {err}");
        let written = fs::read_to_string(store.join(file)).unwrap();
        match file.ends_with(".json") {
            // The document says the arguments.
            true => assert!(
                serde_json::from_str::<serde_json::Value>(&written).is_ok(),
                "{written}"
            ),
            false => assert_eq!(written, printed, "{line}"),
        }
    }
    fs::write(store.join("kept"), "what was there").unwrap();
    let (code, ..) = said("report show nosuch --out STORE --to kept");
    assert_eq!(code, Some(2));
    let kept = fs::read_to_string(store.join("kept")).unwrap();
    assert_eq!(
        kept, "what was there",
        "a command that fails writes nothing"
    );
    let (code, _, err) = said("lab list --to /dev/full");
    assert_eq!(code, Some(UNWRITTEN));
    assert!(
        err.contains("sonde: cannot write /dev/full: No space left"),
        "{err}"
    );
    let (code, _, err) = said("lab list --to no/such/folder");
    assert_eq!(code, Some(UNWRITTEN), "{err}");
}
