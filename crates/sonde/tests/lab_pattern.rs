//! `sonde probe pattern` in a lab: killed and gone on with, and what is refused.

use crate::lab::{Case, Stage, attachments};
use serde_json::Value;

pub fn stage() -> Option<Stage> {
    attachments()
        .first()
        .map(|case| Stage::new(Case::own(case.attachment)))
}

#[test]
fn a_killed_pattern_goes_on() {
    let Some(stage) = stage() else { return };
    let out = stage.path("kept");
    // Two sets, each with its sum: ten cells, which a launch measures in a second.
    let words =
        "probe pattern shift:1,reverse:1 --hosts 4 --network ethernet-100:rate=10Mbit --launches 3";
    let words: Vec<&str> = words.split(' ').collect();
    let words = [&words[..], &["--window", "200ms", "--lead", "50ms"]].concat();
    let plan = stage.sonde(&[&words[..], &["--print-plan"]].concat());
    let file = stage.path("plan.toml");
    std::fs::write(&file, plan.expect(0).out).unwrap();
    let dry = [&words[..], &["--dry-run"]].concat();
    let dry = stage.sonde(&dry).expect(0);
    assert!(dry.out.contains("10 cells, 3 repetitions"), "{dry}");
    let same = stage.sonde(&["assess", &file, "--dry-run"]).expect(0);
    assert_eq!(same.out, dry.out);

    let words = [&words[..], &["--out", &out]].concat();
    let streamed = [&words[..], &["--json-stream"]].concat();
    let mut running = stage.sonde(&streamed).limit(120).start();
    running.wait_for("\"row\"");
    // By kill -9.
    drop(running);
    let launches = || {
        let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
        let run: Value = serde_json::from_str(&export.expect(0).out).unwrap();
        let mut seen: Vec<(String, u64)> = Vec::new();
        for launch in run["run"]["launches"].as_array().unwrap() {
            for result in launch["results"].as_array().unwrap() {
                let cell = result["cell"].as_str().unwrap().to_owned();
                seen.push((cell, result["index"].as_u64().unwrap()));
            }
        }
        seen.sort();
        seen
    };
    let before = launches();
    assert!([10, 20].contains(&before.len()), "{before:?}");
    let resumed = stage.sonde(&["probe", "pattern", "--resume", "--out", &out]);
    let resumed = resumed.limit(120).expect(0);
    assert!(resumed.out.contains("h4>h1"), "{resumed}");
    let mut after = launches();
    assert!(before.iter().all(|one| after.contains(one)));
    let all = after.len();
    after.dedup();
    assert_eq!((all, after.len()), (30, 30), "each cell once a launch");
    let again = stage.sonde(&["probe", "pattern", "--resume", "--out", &out]);
    assert!(again.expect(64).err.contains("unfinished"));
}

#[test]
fn what_cannot_be_is_refused() {
    let Some(stage) = stage() else { return };
    for (arguments, said) in [
        (&["sideways"][..], "there is no pattern `sideways`"),
        (&["shift:4", "--hosts", "4"], "from each to itself"),
        (
            &["all-to-one", "--senders", "9"],
            "1 to 3 senders among 4 hosts, not 9",
        ),
        (
            &["shift:1", "--load", "0.5"],
            "does not take `--load`: its flows are the load",
        ),
        (
            &["shift:1", "--kind", "shout"],
            "`shout` is not a kind of flow",
        ),
        (&["all-pairs", "--kind", "stream"], "leave `--kind` out"),
        (&["incast", "--hosts", "2"], "needs three hosts"),
        (&["shift:1", "--testbed", "local"], "needs hosts"),
        (&["shift:1", "--prepare", "nothing"], "HOST: COMMAND"),
    ] {
        let out = stage.path("refused");
        let all = [&["probe", "pattern"], arguments, &["--out", &out]].concat();
        let output = stage.sonde(&all).limit(60).expect(64);
        assert!(output.err.contains(said), "{arguments:?}: {}", output.err);
    }
    // Before anything is started, too.
    for (arguments, said) in [
        (&["all-pairs", "--testbed", "hosts:./none"][..], "./none"),
        (&["all-pairs", "--script", "./none"], "./none"),
        (&["all-pairs", "--prepare", "h9: true"], "no host h9"),
        (&["all-pairs", "--network", "none"], "none"),
    ] {
        let all = [&["probe", "pattern", "--dry-run"], arguments].concat();
        let output = stage.sonde(&all).limit(60).expect(64);
        assert!(output.err.contains(said), "{arguments:?}: {}", output.err);
    }
    let all = ["probe", "pattern", "--dry-run", "--json", "all-pairs"];
    let output = stage.sonde(&all).expect(0);
    let planned: Value = serde_json::from_str(&output.out).unwrap();
    let rounds = planned["blocks"].as_array().unwrap();
    // Three matchings of four hosts, each in four rounds of its flows.
    assert_eq!((rounds.len(), &planned["cells"]), (12, &30.into()));
    assert_eq!(rounds[0]["program"], "flows at once: 2");
}
