//! Each command that measures: killed in the midst of it, resumed where it can be, shown, exported and compared with itself.
//!
//! Model:   the table of ARCHITECTURE.md says which go on. A run is killed by kill -9 once the store has a launch of it, or after a
//!          second where that is all it takes; then it goes on, or is made anew. Two minutes: `make test-long` alone has it.

use crate::lab::{Case, Stage, is_long};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A command, what it measures here, and whether it goes on.
pub const COMMANDS: [(&str, &str, bool); 11] = [
    ("assess", "--hosts 2 --network ethernet-10 --quick", true),
    (
        "probe latency",
        "--hosts 2 --network ethernet-10 --size 1,64 --launches 4 --budget 200ms",
        true,
    ),
    (
        "probe pattern",
        "shift:1 --hosts 3 --network ethernet-100 --launches 3 --window 200ms --lead 50ms",
        true,
    ),
    (
        "probe sweep",
        "--hosts 2 --network ethernet-10 --with window=8KiB,32KiB --size 64KiB --launches 2",
        true,
    ),
    (
        "probe messages",
        "--path native:tcp --hosts 2 --network ethernet-10 --count 400 --mean 2000 --median 8 --graph ring --ranks 2 --launches 3",
        true,
    ),
    (
        "probe check",
        "--hosts 2 --network ethernet-10 --path native:tcp,openmpi:tcp --ranks 2 --cases 20",
        true,
    ),
    (
        "npb",
        "is --testbed lab --class S --hosts 2 --network ethernet-10 --ranks 2 --path native:tcp --launches 12",
        true,
    ),
    (
        "tune",
        "--network wan-100m-20ms --profile era --quick",
        true,
    ),
    (
        "lab check",
        "--network ethernet-100 --hosts 2 --launches 1",
        true,
    ),
    (
        "load",
        "--testbed lab --hosts 3 --network ethernet-10 --rho 0.3 --for 2s",
        false,
    ),
    (
        "place",
        "--pattern ring --network ethernet-100 --hosts 2 --slots 2 --size 1KiB --messages 2 --verify --launches 2",
        false,
    ),
];

/// What a store holds of its latest run: id, state, and each cell with the numbers of its launches that did not fail.
#[derive(Debug, Default)]
pub struct Kept {
    pub id: String,
    pub state: String,
    pub all: Vec<(String, u64)>,
}

impl Kept {
    pub fn of(stage: &Stage, out: &str) -> Option<Self> {
        let export = stage.sonde(&["report", "export", "--json", "--out", out]);
        let export = export.output();
        let document: Value = serde_json::from_str(&export.out).ok()?;
        let run = &document["run"];
        let mut all = Vec::new();
        for launch in run["launches"].as_array()? {
            let results = launch["results"].as_array()?.iter();
            for result in results.filter(|result| result["failure"].is_null()) {
                let cell = result["cell"].as_str()?.to_owned();
                all.push((cell, result["index"].as_u64()?));
            }
        }
        Some(Self {
            id: run["head"]["id"].as_str()?.to_owned(),
            state: run["head"]["state"].as_str()?.to_owned(),
            all,
        })
    }
}

/// Starts it and kills it; what is kept by then.
fn killed(stage: &Stage, words: &[&str], out: &str) -> Option<Kept> {
    let running = stage.sonde(words).limit(300).start();
    let begun = Instant::now();
    let mut kept = None;
    while begun.elapsed() < Duration::from_secs(60) {
        kept = Kept::of(stage, out);
        let has_one = kept.as_ref().is_some_and(|kept| !kept.all.is_empty());
        if has_one || begun.elapsed() > Duration::from_secs(1) && words[0] == "load" {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // By kill -9.
    drop(running);
    kept
}

#[test]
fn each_is_killed_resumed_shown_exported_and_compared() {
    if !is_long() {
        println!("skipped: two minutes; SONDE_TESTS=long has it");
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    for (at, (command, options, goes_on)) in COMMANDS.iter().enumerate() {
        let out = stage.path(&format!("runs-{at}"));
        let split = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        let words = [split(command), split(options), vec!["--out", &out]].concat();
        let before = killed(&stage, &words, &out);
        let resume = match *goes_on {
            true => [split(command), vec!["--resume", "--out", &out]].concat(),
            false => words.clone(),
        };
        let ended = stage.sonde(&resume).limit(300).output();
        assert!([0, 1].contains(&ended.code), "{command}: {ended}");
        let after = Kept::of(&stage, &out).unwrap_or_else(|| panic!("{command}: {ended}"));
        let once: BTreeSet<_> = after.all.iter().collect();
        assert_eq!(once.len(), after.all.len(), "{command}: each once");
        assert!(!once.is_empty(), "{command}: {ended}");
        let before = before.filter(|_| *goes_on);
        assert_eq!(before.is_some(), *goes_on, "{command}");
        if let Some(before) = before {
            assert_eq!(before.id, after.id, "{command}: {ended}");
            assert!(before.all.iter().all(|one| once.contains(one)), "{command}");
            assert_eq!(after.state, "complete", "{command}: {ended}");
        }
        let id = &after.id;
        let report = |words: &[&str]| {
            let all = [&["report"], words, &["--out", &out]].concat();
            stage.sonde(&all).output()
        };
        let shown = report(&["show", id]);
        assert!(
            shown.code == 0 && !shown.out.is_empty(),
            "{command}: {shown}"
        );
        let csv = report(&["export", "--csv", id]);
        assert!(
            csv.code == 0 && csv.out.lines().count() > 1,
            "{command}: {csv}"
        );
        let compared = report(&["compare", id, id]);
        // Below six launches nothing is told of a difference.
        assert!([0, 3].contains(&compared.code), "{command}: {compared}");
        println!(
            "{command}: {} results, ended with {}, compared with itself {}",
            after.all.len(),
            ended.code,
            compared.code
        );
    }
}
