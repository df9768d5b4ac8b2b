//! `sonde accept` of hosts by ssh: those of a healthy network are accepted, and one that loses frames is named.
//!
//! Model:   as `lab_hosts.rs`. Streams are held against a rate: beside other labs a stream of a short window may give nothing.

use crate::lab::{Stage, is_long};
use serde_json::Value;

const ACCEPTANCE: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys runs=DIR/runs
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3 h4 h5
cp "$keys/ssh_config" /root/.ssh/config
for host in h2 h3 h4 h5; do
    # The program is there: a copy of it would take the slow line for seconds.
    sonde lab exec --detach --root $host -- sh "$ssh_setup" serve "$keys" -o SetEnv=PATH=/run/sonde/bin:/usr/bin:/bin >/dev/null 2>&1
    until ssh -o BatchMode=yes $host true 2>/dev/null; do sleep 0.1; done
done
accept() {
    code=0; sonde accept --quick --path tcp --testbed 'hosts:h[2-5]' --line-rate 20Mbit --out "$runs" "$@" || code=$?
    echo "ended with $code"
}
accept --require 'throughput>=10%'
sonde lab tell loss h4 10%
accept --json --require 'throughput>=1%' >DIR/faulty.json
sonde report show --out "$runs"
for host in h2 h3 h4 h5; do
    sonde lab exec --root $host -- ps -eo args | grep -E ' agent$|--sonde-worker' | sed "s/^/left on $host: /" || true
done
"#;

#[test]
fn hosts_by_ssh_are_accepted_and_a_lossy_one_is_not() {
    if !is_long() {
        println!(
            "skipped: a minute; SONDE_TESTS=long has it, `lab_walks` the same by ssh in seconds"
        );
        return;
    }
    let Some(stage) = Stage::of_root(&["sshd", "ssh", "ps"]) else {
        return;
    };
    let script = stage.with_sshd(ACCEPTANCE);
    let outcome = stage
        .run(
            &[
                "--hosts",
                "5",
                "--network",
                "ethernet-100:rate=20Mbit",
                "--root",
            ],
            &["sh", "-c", &script],
        )
        .limit(300)
        .output();
    assert_eq!(outcome.code, 0, "{outcome}");
    let (healthy, faulty) = outcome.out.split_once("ended with ").unwrap();
    let (code, shown) = faulty.split_once('\n').unwrap();
    // A busy machine may make it inconclusive, and never bad.
    let state = match code {
        "0" => "ACCEPTANCE PASS  4 hosts, 12 of 12 ordered pairs, default 20.00 Mb/s",
        _ => "ACCEPTANCE INCONCLUSIVE  4 hosts, 12 of 12 ",
    };
    assert!(["0", "3"].contains(&code), "{outcome}");
    assert!(healthy.starts_with(state), "{outcome}");
    let text = std::fs::read_to_string(stage.path("faulty.json")).unwrap();
    let (document, end) = text.rsplit_once("ended with ").unwrap();
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(end, "1\n", "{outcome}");
    let acceptance = &document["acceptance"];
    assert_eq!(acceptance["state"], "fail", "{acceptance:#}");
    assert_eq!(
        acceptance["all_pairs"]["hosts"],
        serde_json::json!(["h4"]),
        "{acceptance:#}"
    );
    assert_eq!(acceptance["scope"]["testbed"], "hosts");
    assert!(
        shown.contains("FAIL          all pairs: h4 is bad: "),
        "{outcome}"
    );
    assert!(!outcome.out.contains("left on"), "{outcome}");
}
