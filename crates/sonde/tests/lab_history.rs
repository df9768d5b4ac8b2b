//! `sonde report history` of a network that changes, in a lab: the change is found two runs after it, and none before.
//!
//! Model:   h1 measures itself and h2 by ssh, each time as a run of its own; the network is made slower by a word to the lab, which the
//!          run does not know. After each run the history is asked.

use crate::lab;
use crate::lab::Stage;
use serde_json::Value;

const SCRIPT: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys runs=DIR/runs
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3
cp "$keys/ssh_config" /root/.ssh/config
for host in h2 h3; do
    sonde lab exec --detach --root $host -- sh "$ssh_setup" serve "$keys" >/dev/null 2>&1
    until ssh -o BatchMode=yes $host true 2>/dev/null; do sleep 0.1; done
done
for run in $(seq BEFORE) changed again; do
    [ $run != changed ] || sonde lab tell rate 18Mbit
    sonde probe throughput --path tcp --size 64KiB --budget 300ms --launches 6 --testbed hosts:h2,h3 --name nightly --out "$runs" >/dev/null 2>DIR/err
    code=0
    sonde report history --name nightly --fail-on-regression --out "$runs" --json >DIR/history.json || code=$?
    echo "$run ended with $code"
done
sonde report history --out "$runs"
sonde report export --open-metrics --out "$runs" | grep -c '^sonde_throughput_bits_per_second{.*path="tcp"'
"#;

#[test]
fn a_network_that_became_slower_is_found_two_runs_later() {
    const BEFORE: usize = 30;
    if !lab::is_long() {
        println!(
            "skipped: minutes; SONDE_TESTS=long has it, the tests of `report::history` the same without a network"
        );
        return;
    }
    let Some(stage) = Stage::of_root(&["sshd", "ssh"]) else {
        return;
    };
    let script = stage
        .with_sshd(SCRIPT)
        .replace("BEFORE", &BEFORE.to_string());
    let options = [
        "--hosts",
        "3",
        "--network",
        "ethernet-100:rate=20Mbit",
        "--root",
    ];
    let run = stage.run(&options, &["sh", "-c", &script]);
    let outcome = run.limit(1_800).output();
    assert_eq!(outcome.code, 0, "{outcome}");
    let number = |line: &str| {
        line.rsplit(' ')
            .next()
            .and_then(|code| code.parse::<i32>().ok())
    };
    let ended = outcome
        .out
        .lines()
        .filter(|line| line.contains(" ended with "));
    let codes: Vec<i32> = ended.filter_map(number).collect();
    // Too few; no change; one run alone is none; two are.
    let mut wanted = vec![3; 5];
    wanted.resize(BEFORE + 1, 0);
    wanted.push(1);
    assert_eq!(codes, wanted, "{outcome}");
    let text = std::fs::read_to_string(stage.path("history.json")).unwrap();
    let history: Value = serde_json::from_str(&text).unwrap();
    let runs = history["runs"].as_array().unwrap().len();
    assert_eq!(runs, BEFORE + 2, "{history:#}");
    let configurations = history["configurations"].as_array().unwrap();
    let changed: Vec<&Value> = configurations
        .iter()
        .filter(|one| one["changes"] != serde_json::json!([]))
        .collect();
    assert_eq!(changed.len(), 1, "{history:#}");
    let change = &changed[0]["changes"][0];
    assert_eq!(
        (change["run"].as_u64(), &change["change"]),
        (Some(BEFORE as u64), &"worse".into())
    );
    let ratio = change["ratio"].as_f64().unwrap();
    assert!((0.88..0.92).contains(&ratio), "{change:#}");
    assert!(
        outcome
            .out
            .contains(" 1 became worse (throughput stream of 64 KiB over tcp"),
        "{outcome}"
    );
    assert!(
        outcome.out.ends_with("\n1\n"),
        "one gauge of the rate: {outcome}"
    );
    println!("{}", outcome.out);
}
