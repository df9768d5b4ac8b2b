//! `sonde doctor`, run as people run it: a real lab is started, and what it says agrees with what it exits with.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::process::{Command, Output};

const SONDE: &str = env!("CARGO_BIN_EXE_sonde");

fn doctor(arguments: &[&str]) -> Output {
    Command::new(SONDE)
        .arg("doctor")
        .args(arguments)
        .output()
        .unwrap()
}

fn checks(output: &Output) -> Vec<Value> {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "sonde/2");
    document["checks"].as_array().unwrap().clone()
}

fn find<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check `{name}`"))
}

#[test]
fn a_lab_is_started_and_the_exit_code_says_how_it_went() {
    let output = doctor(&["--json"]);
    let checks = checks(&output);
    let namespaces = find(&checks, "user namespaces");
    let start = find(&checks, "start of a lab");
    let store = find(&checks, "folder of the store");
    if namespaces["status"] == "missing" {
        println!("skipped: {}", namespaces["value"]);
        assert_eq!(
            (output.status.code(), &start["status"]),
            (Some(1), &"missing".into())
        );
        return;
    }
    assert_eq!(start["status"], "ok", "{start}");
    let value = start["value"].as_str().unwrap();
    assert!(
        value.contains("attached by ") && value.contains("gone in"),
        "{value}"
    );
    assert_eq!(store["status"], "ok", "{store}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn people_read_the_same() {
    let output = doctor(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap();
    let can = last.starts_with("`sonde assess` can measure on the lab");
    assert_eq!(can, output.status.success(), "{text}");
    let words = ["ok", "limited", "missing"];
    let lines = text
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let mut count = 0;
    for line in lines {
        count += 1;
        assert!(
            words.contains(&line.split_whitespace().next().unwrap()),
            "{line}"
        );
    }
    assert!(count > 20, "{text}");
}

#[test]
fn the_noise_is_told_and_json_md_names_all_of_it() {
    let output = doctor(&["--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let noise = document["noise"].as_object().expect("it was seen");
    assert!(noise["span_ns"].as_u64() >= Some(300_000_000), "{noise:?}");
    assert!(noise["cpus_allowed"].as_u64() >= Some(1), "{noise:?}");
    let causes = noise["causes"].as_array().unwrap();
    assert_eq!(noise["quiet"], causes.is_empty(), "{noise:?}");
    let checks = checks(&output);
    let check = find(&checks, "noise");
    assert_eq!(check["status"] == "ok", causes.is_empty(), "{check}");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let gap = noise["gaps"][0].as_object().expect("a CPU was bound to");
    let names = document.as_object().unwrap().keys();
    let names = names.chain(checks[0].as_object().unwrap().keys());
    for name in names.chain(noise.keys()).chain(gap.keys()) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
