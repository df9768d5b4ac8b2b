//! Workloads at once: on one network they share it, on two they do not; what fails is named, and a run goes on.
//!
//! Model:   what is asserted of rates follows from the wire: half-duplex Ethernet carries one frame at a time, so that two flows of TCP
//!          together bring no more than one of them alone, whatever they are; two networks share nothing but the hosts.

use crate::lab::{Call, Process, Stage, attachments, eventually, members};
use serde_json::Value;
use sonde_sys::noise::measured;

/// Streams are rated by the receiver's clock, and what was queued before a window comes within it: so much more than the wire.
const ABOVE: f64 = 1.1;

fn contend(stage: &Stage, words: &[&str]) -> Call {
    let out = stage.path("runs");
    let own = [
        "--testbed",
        "lab",
        "--hosts",
        "2",
        "--attachment",
        stage.case.attachment,
        "--json",
        "--out",
        &out,
    ];
    let mut call = stage.sonde(&[&["contend"], words, &own].concat());
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    call.limit(400)
}

fn document_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What became of a workload beside these.
fn beside<'a>(document: &'a Value, network: &str, workload: &str, others: &[&str]) -> &'a Value {
    let all = document["slowdowns"].as_array().unwrap();
    let is_it = |one: &&Value| {
        let of: Vec<&str> = one["beside"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        one["network"] == network && one["workload"] == workload && of == others
    };
    all.iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {workload} beside {others:?} on {network}: {document:#}"))
}

fn number(row: &Value, name: &str) -> f64 {
    row[name]
        .as_f64()
        .unwrap_or_else(|| panic!("no {name}: {row:#}"))
}

#[test]
fn two_flows_share_a_half_duplex_wire() {
    measured(|| {
        let Some(case) = attachments().first().copied() else {
            return;
        };
        let stage = Stage::new(case);
        let words = ["nfs:write", "stream", "--network", "ethernet-10"];
        let words = [&words[..], &["--no-wire", "--for", "2s", "--launches", "2"]].concat();
        let outcome = contend(&stage, &words).expect(0);
        let document = document_of(&outcome.out);
        assert_eq!(document["command"], "contend");
        let nfs = beside(&document, "ethernet-10", "nfs:write", &["stream"]);
        let stream = beside(&document, "ethernet-10", "stream", &["nfs:write"]);
        let both = number(nfs, "together") + number(stream, "together");
        let alone = number(stream, "alone");
        assert!(both <= ABOVE * alone, "{both} > {alone}: {document:#}");
        // The wire is idle no longer than with the stream alone: what one loses the other has, but for collisions.
        assert!(both >= 0.6 * alone, "{both} << {alone}: {document:#}");
        for row in [nfs, stream] {
            assert!(number(row, "slowdown") > 1.1, "{row:#}");
            assert_eq!(row["quantity"], "throughput_bps");
            // Two repetitions have no interval.
            assert_eq!(
                (&row["state"], &row["low"]),
                (&"inconclusive".into(), &Value::Null)
            );
        }
        // Both cannot be less than halved: the sum of their shares is one.
        let slowest = number(nfs, "slowdown").max(number(stream, "slowdown"));
        assert!(slowest >= 1.6, "{document:#}");
        // The rows are those of any run, each under what was beside it.
        let rows = document["results"].as_array().unwrap();
        let loads: Vec<&str> = rows.iter().filter_map(|row| row["load"].as_str()).collect();
        assert!(
            loads.contains(&"stream") && loads.contains(&"nfs:write"),
            "{loads:?}"
        );
    });
}

#[test]
fn two_networks_share_nothing() {
    measured(|| {
        let Some(case) = attachments().first().copied() else {
            return;
        };
        let stage = Stage::new(case);
        let words = ["nfs:write", "stream", "--network", "ethernet-10"];
        let more = [
            "--second-network",
            "atm-25",
            "--for",
            "2s",
            "--launches",
            "2",
        ];
        let outcome = contend(&stage, &[&words[..], &more].concat()).expect(0);
        let document = document_of(&outcome.out);
        let shared = beside(&document, "ethernet-10", "stream", &["nfs:write"]);
        let apart = beside(&document, "ethernet-10", "stream", &["nfs:write@atm-25"]);
        let files = beside(&document, "atm-25", "nfs:write", &["stream@ethernet-10"]);
        // Nothing of a frame meets another one: what is left is the hosts' CPUs, which these rates leave idle.
        for row in [apart, files] {
            assert!(number(row, "slowdown") < 1.3, "{row:#}");
            assert!(
                number(shared, "slowdown") > number(row, "slowdown"),
                "{document:#}"
            );
        }
        let sentences = document["sentences"].as_array().unwrap();
        let is_of_second = |one: &&Value| {
            one.as_str()
                .is_some_and(|one| one.starts_with("With nfs:write on atm-25, stream"))
        };
        assert!(
            sentences.iter().any(|one| is_of_second(&one)),
            "{sentences:?}"
        );
    });
}

#[test]
fn a_workload_that_dies_ends_the_set_and_is_named() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let words = [
        "nfs:write",
        "stream",
        "--network",
        "ethernet-100",
        "--no-wire",
    ];
    let running = contend(
        &stage,
        &[&words[..], &["--for", "4s", "--launches", "1"]].concat(),
    )
    .start();
    // One worker of whichever set is under way, that has begun its window.
    let is_worker = |process: &Process| process.line.contains("--sonde-worker");
    let worker = eventually(
        || members(&running.mark).into_iter().find(is_worker),
        Option::is_some,
    );
    std::thread::sleep(std::time::Duration::from_secs(3));
    let pid = worker.unwrap().pid.to_string();
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid])
        .status()
        .unwrap();
    let began = std::time::Instant::now();
    let outcome = running.finish();
    let ended = began.elapsed();
    assert!(killed.success(), "{outcome}");
    // A client of files goes on without its server for a minute; nobody waits for it.
    assert!(
        ended < std::time::Duration::from_secs(60),
        "{ended:?}: {outcome}"
    );
    // Its repetition is missing; the other sets are measured, and the run is kept.
    assert_eq!(outcome.code, 1, "{outcome}");
    assert!(outcome.err.contains("was killed by signal 9"), "{outcome}");
    let document = document_of(&outcome.out);
    let rows = document["results"].as_array().unwrap();
    let of = |status: &str| rows.iter().filter(|row| row["status"] == status).count();
    assert!(of("measured") > 0, "{document:#}");
    let slowdowns = document["slowdowns"].as_array().unwrap();
    let lost = slowdowns
        .iter()
        .filter(|one| one["state"] == "not_measured");
    assert!(lost.clone().count() > 0, "{document:#}");
    let named = |why: &str| {
        ["nfs:write", "stream", "files over tcp"]
            .iter()
            .any(|name| why.contains(name))
    };
    assert!(
        lost.filter_map(|one| one["why"].as_str()).all(named),
        "{document:#}"
    );
}

#[test]
fn a_plan_of_sets_is_measured_as_any_other() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    // What is asked for by words is a plan, whose run has the rows of all others.
    let words = [
        "latency",
        "stream",
        "--network",
        "ethernet-100",
        "--no-wire",
        "--for",
        "1s",
    ];
    let printed = stage.sonde(&[&["contend"], &words[..], &["--print-plan"]].concat());
    let plan = printed.limit(60).expect(0).out;
    assert!(
        plan.contains("together = [\"latency\", \"stream\"]"),
        "{plan}"
    );
    let file = stage.path("plan.toml");
    std::fs::write(
        &file,
        plan.replace("launches = 6", "launches = 1")
            .replace("max = 6", "max = 1"),
    )
    .unwrap();
    let out = stage.path("runs");
    let assessed = stage.sonde(&["assess", &file, "--json", "--out", &out]);
    let document = document_of(&assessed.limit(120).expect(0).out);
    let rows = document["results"].as_array().unwrap();
    let of = |mode: &str, load: Option<&str>| {
        let is_it = |row: &&Value| {
            row["probe"] == mode && row["load"].as_str() == load && row["phase"] == "warm"
        };
        rows.iter().filter(is_it).count()
    };
    assert!(
        of("latency", None) > 0 && of("latency", Some("stream")) > 0,
        "{document:#}"
    );
    assert!(
        of("throughput", None) > 0 && of("throughput", Some("latency")) > 0,
        "{document:#}"
    );
}
