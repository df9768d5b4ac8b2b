//! `--testbed hosts:` against real OpenSSH servers: three hosts of a lab, reached from a fourth with an ordinary ssh config.
//!
//! Model:   h1 is the user's machine; h2 to h4 run Debian's sshd, set up by `crates/fleet/tests/sshd.sh`. In the middle of a
//!          run the server of h3 is killed with everything of sonde's there. Needs root, whose ssh reads its config from a
//!          home that only h1 sees.

mod lab;

use lab::Stage;
use serde_json::Value;

const SCRIPT: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys runs=DIR/runs
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3 h4
cp "$keys/ssh_config" /root/.ssh/config
serve() { sonde lab exec --detach --root "$1" -- sh "$ssh_setup" serve "$keys" >/dev/null 2>&1; }
answers() { until ssh -o BatchMode=yes "$1" true 2>/dev/null; do sleep 0.1; done; }
for host in h2 h3 h4; do serve $host; answers $host; done

sonde assess DIR/plan.toml --json --out "$runs" >DIR/first.json 2>DIR/first.err &
run=$!
sleep 3
sonde lab exec --root h3 -- pkill -9 -f 'sshd|sonde|/proc/self/fd' || true
code=0; wait $run || code=$?
echo "first ended with $code"

serve h3; answers h3
code=0; sonde assess --resume --json --out "$runs" >DIR/second.json 2>DIR/second.err || code=$?
echo "second ended with $code"

sleep 0.5
for host in h2 h3 h4; do
    sonde lab exec --root $host -- ps -eo args | grep -E ' agent$|--sonde-worker' | sed "s/^/left on $host: /" || true
    sonde lab exec --root $host -- ls -A /tmp /dev/shm /run/user 2>/dev/null | grep -i sonde | sed "s/^/left on $host: /" || true
done
"#;

const PLAN: &str = r#"
[testbed]
kind = "hosts"
names = "h[2-4]"
[[probe]]
kind = "startup"
path = ["tcp", "udp"]
size = ["8"]
[[probe]]
kind = "latency"
path = ["tcp", "udp"]
size = ["1", "mtu"]
budget = "100ms"
[[probe]]
kind = "throughput"
path = ["tcp"]
size = ["64KiB"]
[repeat]
launches = 6
"#;

fn json(stage: &Stage, name: &str) -> Value {
    let text = std::fs::read_to_string(stage.path(name)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| {
        let err =
            std::fs::read_to_string(stage.path(&name.replace("json", "err"))).unwrap_or_default();
        panic!("{name}: {e}: {text}\n{err}")
    })
}

#[test]
fn a_host_that_is_killed_is_named_the_rest_measured_and_the_gap_filled() {
    let Some(stage) = Stage::of_root(&["sshd", "ssh", "pkill", "ps"]) else {
        return;
    };
    std::fs::write(stage.path("plan.toml"), PLAN).unwrap();
    let script = stage.with_sshd(SCRIPT);
    let outcome = stage
        .run(
            &["--hosts", "4", "--network", "ethernet-1g", "--root"],
            &["sh", "-c", &script],
        )
        .limit(240)
        .output();
    let first_err = std::fs::read_to_string(stage.path("first.err")).unwrap_or_default();
    assert_eq!(outcome.code, 0, "{outcome}{first_err}");
    assert!(
        outcome.out.contains("first ended with 1\n"),
        "{outcome}{first_err}"
    );
    let second_err = std::fs::read_to_string(stage.path("second.err")).unwrap_or_default();
    assert!(
        outcome.out.contains("second ended with 0\n"),
        "{outcome}{second_err}"
    );
    assert!(!outcome.out.contains("left on"), "{outcome}");
    assert!(first_err.contains("h3"), "the host is named: {first_err}");
    let (first, second) = (json(&stage, "first.json"), json(&stage, "second.json"));
    assert_eq!(first["run"], second["run"]);
    let launches = |document: &Value, all: bool| {
        let rows = document["results"].as_array().unwrap();
        let main = rows.iter().filter(|row| {
            row["step"].is_null()
                && ["startup_ns", "latency_ns", "throughput_bps"]
                    .contains(&row["quantity"].as_str().unwrap())
        });
        let counts: Vec<u64> = main.map(|row| row["launches"].as_u64().unwrap()).collect();
        assert!(!counts.is_empty());
        if all {
            counts.iter().all(|count| *count == 6)
        } else {
            counts.iter().all(|count| *count >= 1)
        }
    };
    assert!(
        launches(&first, false) && !launches(&first, true),
        "the others were measured: {first:#}"
    );
    assert!(launches(&second, true), "the gap is filled: {second:#}");
    for row in second["results"].as_array().unwrap() {
        assert_eq!(
            (&row["testbed"], &row["network"]),
            (&"hosts".into(), &"default".into())
        );
    }
}
