//! A job's files: its time is the sum of its parts, none of which is shorter than the wire lets it be; programs that compute meanwhile
//! are there, are recorded, and end with their agents.
//!
//! Model:   only bounds that hold however slow the machine is: no bit arrives before the line can have sent it.

use crate::lab::{Call, Process, Stage, attachments, eventually, members};
use serde_json::Value;

const LINE_BPS: f64 = 10e6;

fn stage(stage: &Stage, words: &str) -> Call {
    let out = stage.path("runs");
    let mut all: Vec<&str> = std::iter::once("stage").chain(words.split(' ')).collect();
    all.extend(["--testbed", "lab", "--hosts", "2", "--out", &out]);
    all.extend(["--attachment", stage.case.attachment]);
    let mut call = stage.sonde(&all);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    call.limit(200)
}

fn number(row: &Value, name: &str) -> f64 {
    row[name]
        .as_f64()
        .unwrap_or_else(|| panic!("no {name}: {row:#}"))
}

#[test]
fn a_jobs_time_is_the_sum_of_its_parts() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let bed = Stage::new(case);
    let words = "is --input 128K --output 32K --network ethernet-10 --launches 1 -t 50ms --json";
    let outcome = stage(&bed, words).expect(0);
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(
        (&document["command"], &document["job"]),
        (&"stage".into(), &"npb:is".into())
    );
    let shares = document["shares"].as_array().unwrap();
    let paths: Vec<&str> = shares
        .iter()
        .filter_map(|one| one["path"].as_str())
        .collect();
    assert_eq!(paths, ["nfs2:udp", "ftp", "tcp"]);
    for one in shares {
        let parts = ["input_s", "kernel_s", "output_s"].map(|name| number(one, name));
        for (part, bytes) in [(parts[0], 128 << 10), (parts[2], 32 << 10)] {
            assert!(part >= f64::from(8 * bytes) / LINE_BPS, "{one:#}");
        }
        // One repetition: its medians are its own.
        let job: f64 = parts.iter().sum();
        assert!((number(one, "job_s") / job - 1.0).abs() < 1e-6, "{one:#}");
        let share = (parts[0] + parts[2]) / job;
        assert!((number(one, "share") - share).abs() < 1e-6, "{one:#}");
        assert!(one["low"].is_null(), "{one:#}");
        assert!(one["why"].as_str().unwrap().contains("6 are needed"));
    }
    // All three ran beside the same kernel, whose rows are those of any run.
    let kernels: Vec<&Value> = shares.iter().map(|one| &one["cell_kernel"]).collect();
    assert!(kernels.iter().all(|cell| *cell == kernels[0]));
    let rows = document["results"].as_array().unwrap();
    let of = |probe: &str| rows.iter().filter(|row| row["probe"] == probe).count();
    assert!(of("files") > 0 && of("throughput") > 0 && of("npb") > 0);
}

/// The agents of this run that have so many threads at least.
fn with_threads(mark: &str, count: usize) -> Vec<Process> {
    let threads = |process: &Process| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid));
        tasks.map_or(0, Iterator::count)
    };
    let is_agent = |process: &Process| !process.line.contains("--sonde-worker");
    let all = members(mark).into_iter().filter(is_agent);
    all.filter(|process| threads(process) >= count).collect()
}

#[test]
fn busy_loops_end_with_their_agents() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let bed = Stage::new(case);
    let words = "is --path tcp --input 4K --output 4K --network ethernet-100 -t 20ms --busy 5";
    let outcome = stage(&bed, &format!("{words} --launches 1 --json")).expect(0);
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    let shares = document["shares"].as_array().unwrap();
    let levels: Vec<f64> = shares.iter().map(|one| number(one, "busy")).collect();
    assert_eq!(levels, [0.0, 5.0]);
    assert!(
        shares.iter().all(|one| one["share"].is_number()),
        "{document:#}"
    );
    let out = bed.path("runs");
    let exported = bed.sonde(&["report", "export", "--json", "--out", &out]);
    let exported: Value = serde_json::from_str(&exported.expect(0).out).unwrap();
    let launches = exported["run"]["launches"].as_array().unwrap();
    for side in ["src", "dst"] {
        let name = format!("{side}.host.busy.asked");
        let mut texts = launches.iter().map(|one| one["evidence"].to_string());
        assert!(
            texts.any(|text| text.contains("busy") && text.contains("\"5\"")),
            "no {name}: {exported:#}"
        );
    }
    // An orchestrator that is killed while its hosts are busy.
    let running = stage(&bed, &format!("{words} --launches 50")).start();
    let mark = running.mark.clone();
    let busy = eventually(|| with_threads(&mark, 6), |found| !found.is_empty());
    assert!(!busy.is_empty(), "no agent has five threads beside its own");
    let pid = running.pid().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid])
        .status()
        .unwrap();
    assert!(killed.success());
    let left = eventually(|| members(&mark), Vec::is_empty);
    assert!(left.is_empty(), "{left:#?}");
    drop(running);
}
