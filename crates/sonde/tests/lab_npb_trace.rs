//! Kernels that are watched, by `sonde npb`: what each rank did when, where its time went.
//!
//! Model:   class S. A trace is held against what was counted in the same run. What is not installed says `skipped:`.

use crate::lab::{Case, Stage, skip};
use crate::paired::lab_npb::{call, document, npb, stage};
use serde_json::Value;

/// Phases of the timed part of one rank.
pub fn timed(rank: &Value) -> Vec<&Value> {
    let phases = rank["phases"].as_array().unwrap().iter();
    phases.filter(|phase| phase["timed"] == true).collect()
}

fn assert_is_of(trace: &Value, result: &Value) {
    let events = trace["traceEvents"].as_array().unwrap();
    let ranks = result["launch"]["ranks"].as_array().unwrap();
    for (rank, counted) in ranks.iter().enumerate() {
        let told = &trace["otherData"]["ranks"][rank];
        assert_eq!(told["dropped"], 0, "{told}");
        let own = events.iter().filter(|event| event["pid"] == rank + 1);
        let phases = timed(counted);
        let is_timed = |event: &&Value| {
            let phase = &event["args"]["phase"];
            phases.iter().any(|known| known["name"] == *phase)
        };
        let calls = own.filter(|event| event["cat"] == "call").filter(is_timed);
        let mut in_calls_ns = 0.0;
        for event in calls {
            for field in ["ts", "dur", "tid"] {
                assert!(
                    event[field].as_f64().is_some_and(|value| value >= 0.0),
                    "{event}"
                );
            }
            assert!(event["name"].is_string() && event["ph"] == "X", "{event}");
            in_calls_ns += event["dur"].as_f64().unwrap() * 1e3;
        }
        let counted = phases
            .iter()
            .map(|phase| phase["communicating_ns"].as_f64().unwrap());
        let times = in_calls_ns / counted.sum::<f64>();
        assert!((0.5..3.0).contains(&times), "rank {rank}: {times}");
    }
    let count = |is: &dyn Fn(&Value) -> bool| events.iter().filter(|event| is(event)).count();
    let sent = count(&|event| event["args"]["way"] == "sent");
    let received = count(&|event| event["args"]["way"] == "received");
    assert!(sent > 1_000, "{sent}");
    assert_eq!(sent, received);
    for ph in ["s", "f"] {
        let arrows = count(&|event| event["cat"] == "arrow" && event["ph"] == ph);
        assert_eq!(arrows, sent, "{ph}");
    }
}

#[test]
fn a_trace_has_what_was_counted() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    drop(call(&stage, &["doctor", "--build-adapters"]).output());
    for path in ["native:shm", "pvm:direct", "openmpi:sm", "mpich:sm"] {
        let file = stage.path("trace.json");
        drop(std::fs::remove_file(&file));
        let words = [
            "cg", "--path", path, "--runs", "2", "--json", "--trace", &file,
        ];
        let outcome = npb(&stage, &words).output();
        if path != "native:shm" && outcome.code == 2 {
            skip(&format!("{path}: {}", outcome.err.trim()));
            continue;
        }
        assert_eq!(outcome.code, 0, "{path}: {outcome}");
        assert!(
            outcome.err.contains("of 4 ranks, of the last run"),
            "{outcome}"
        );
        let told = document(&outcome.out);
        let trace = document(&std::fs::read_to_string(&file).unwrap());
        assert_eq!(trace["otherData"]["schema"], "sonde-trace/1");
        assert_is_of(&trace, &told["kernels"][0]);
        // What is in the file is not printed as well.
        assert!(!outcome.out.contains("npb.trace"), "{path}");
    }
}

#[test]
fn a_trace_of_one_rank_is_a_table() {
    let stage = Stage::new(Case::own("veth"));
    let file = stage.path("alone.csv");
    let words = ["npb", "mg", "--ranks", "1", "--trace", &file, "--phases"];
    let outcome = stage.sonde(&words).limit(60).expect(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines = text.lines();
    assert!(
        lines.next().unwrap().starts_with("rank,what,begin_ns"),
        "{text}"
    );
    assert!(lines.all(|line| line.starts_with("0,")), "{text}");
    assert!(text.contains(",phase,"), "{text}");
    for word in ["computing ms", "communicating ms", "setup", "down"] {
        assert!(outcome.out.contains(word), "{word}: {outcome}");
    }
}

#[test]
fn what_is_no_age_and_no_trace_is_refused() {
    let stage = Stage::new(Case::own("veth"));
    for (words, said) in [
        (&["cg", "--age", "0"][..], "1 to 1000000"),
        (&["cg", "--age", "0.5"], "1 to 1000000"),
        (&["cg", "--age", "-2"], "1 to 1000000"),
        (&["cg", "--age", "NaN"], "1 to 1000000"),
        (&["cg", "--age", "1e9"], "1 to 1000000"),
        (&["cg", "--age", "1000000000"], "1 to 1000000"),
        (&["cg", "--age", "old"], "there is upc"),
        (&["cg", "--class", "A", "--age", "upc"], "upc, S"),
        (&["lu", "--class", "A", "--age", "500000"], "an hour"),
        (&["cg", "--trace", "cg.txt"], ".json or .csv"),
        (&["cg", "--trace", "no-such/cg.json"], "make it first"),
        (&["all", "--trace", "all.json"], "one repetition"),
        (&["cg", "--phases", "--json"], "--json"),
    ] {
        let call = stage.sonde(&[&["npb"], words].concat());
        let outcome = call.limit(30).output();
        assert_eq!(outcome.code, 64, "{words:?}: {outcome}");
        assert!(outcome.err.contains(said), "{words:?}: {outcome}");
        assert!(outcome.out.is_empty(), "{words:?}: {outcome}");
    }
}
