//! Several networks of the same real hosts: h1 of a lab with two networks is the user's machine, h2 to h4 are its hosts, by
//! ssh; eth0 and eth1 are networks that differ.
//!
//! Model:   OpenSSH servers as in `lab_hosts.rs`. The networks are `ethernet-1g` and `ethernet-100`, so that what went where is
//!          seen in the figures too. The trap is planted as it happens on real hosts: a route sends the packets to an address
//!          of eth1 out of eth0, and the other host answers for it there. Needs root, whose ssh reads its config from a home
//!          that only h1 sees. The hosts find the command in their PATH, so that no copy of it crosses the networks.

use crate::lab::{self, Case, Outcome, Stage, attachments, has, is_root, skip};
use serde_json::Value;

const BEGIN: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3 h4 h5
cp "$keys/ssh_config" /root/.ssh/config
serve() { sonde lab exec --detach --root "$1" -- sh "$ssh_setup" serve "$keys" -o SetEnv=PATH=/run/sonde/bin:DIR:/usr/bin:/bin >/dev/null 2>&1; }
answers() { until ssh -o BatchMode=yes "$1" true 2>/dev/null; do sleep 0.1; done; }
for host in h2 h3 h4; do serve $host; answers $host; done
on() { host=$1; shift; sonde lab exec --root "$host" -- "$@"; }
try() { name=$1; shift; code=0; "$@" --out DIR/runs >DIR/$name.json 2>DIR/$name.err || code=$?; echo "$name ended with $code"; }
"#;

/// Runs a script in a lab with two networks; nothing where something is missing.
pub fn in_lab(networks: [&str; 2], script: &str) -> Option<(Stage, Outcome)> {
    if !is_root() {
        skip("root, whose ssh config the test can replace");
        return None;
    }
    if !["sshd", "ssh", "ip"].into_iter().all(has) {
        return None;
    }
    let case = attachments().first().copied()?;
    let stage = Stage::new(Case {
        is_user: false,
        ..case
    });
    let sshd = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleet/tests/sshd.sh");
    let sshd = stage.copy_in(&sshd);
    // Where it is missing its tests say so.
    let rank = lab::sonde().with_file_name("sonde-rank");
    if rank.is_file() {
        stage.copy_in(&rank);
    }
    let script = format!("{BEGIN}{script}")
        .replace("SSHD", sshd.to_str().unwrap())
        .replace("DIR", stage.folder.to_str().unwrap());
    let [first, second] = networks;
    let options = [
        "--hosts",
        "5",
        "--network",
        first,
        "--network",
        second,
        "--root",
    ];
    let outcome = stage
        .run(&options, &["sh", "-c", &script])
        .limit(300)
        .output();
    assert_eq!(outcome.code, 0, "{outcome}{}", errors(&stage));
    Some((stage, outcome))
}

/// What the calls wrote to standard error.
pub fn errors(stage: &Stage) -> String {
    let files = std::fs::read_dir(&stage.folder).unwrap().flatten();
    let texts = files
        .filter(|file| file.path().extension().is_some_and(|end| end == "err"))
        .map(|file| {
            format!(
                "{:?}: {}\n",
                file.file_name(),
                std::fs::read_to_string(file.path()).unwrap_or_default()
            )
        });
    texts.collect()
}

pub fn json(stage: &Stage, name: &str) -> Value {
    let text = std::fs::read_to_string(stage.path(&format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}\n{}", errors(stage)))
}

/// The medians of a quantity's main rows.
pub fn medians(document: &Value, network: &str, quantity: &str) -> Vec<f64> {
    let rows = document["results"].as_array().unwrap();
    let of = rows.iter().filter(|row| {
        row["network"] == network
            && row["quantity"] == quantity
            && row["step"].is_null()
            && row["phase"] == "warm"
    });
    of.filter_map(|row| row["p50"].as_f64()).collect()
}

pub const FAST: [&str; 2] = ["ethernet-1g", "ethernet-100"];

const TRAP: &str = r#"
on h2 ip route replace 10.9.1.3/32 dev eth0 src 10.9.1.2
on h3 ip route replace 10.9.1.2/32 dev eth0 src 10.9.1.3
for host in h2 h3; do
    on $host sh -c 'for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$file; done' || true
done
try astray sonde probe latency --testbed hosts:h2,h3 --network fast=eth1 --network eth=eth0 --launches 2 --json
on h2 ip route del 10.9.1.3/32 dev eth0
on h3 ip route del 10.9.1.2/32 dev eth0
on h2 ip neigh flush dev eth0; on h3 ip neigh flush dev eth0
try healed sonde probe latency --testbed hosts:h2,h3 --network fast=eth1 --network eth=eth0 --launches 2 --json
"#;

#[test]
fn bytes_that_take_another_network_are_refused_with_the_evidence() {
    let Some((stage, outcome)) = in_lab(FAST, TRAP) else {
        return;
    };
    assert!(
        outcome.out.contains("astray ended with 1\n"),
        "{outcome}{}",
        errors(&stage)
    );
    let astray = json(&stage, "astray");
    assert!(
        medians(&astray, "fast", "latency_ns").is_empty(),
        "nothing is measured of it: {astray:#}"
    );
    assert_eq!(medians(&astray, "eth", "latency_ns").len(), 1, "{astray:#}");
    let said = std::fs::read_to_string(stage.path("astray.err")).unwrap();
    for words in [
        "the bytes took another interface: on h",
        "the interface eth1 sent",
        "of at least",
        "eth0 sent",
        "arp_ignore",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let failed = astray["results"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["network"] == "fast");
    let failed = failed.expect("the row is there, with its reason");
    assert!(
        failed["status"] == "failed" && failed["reason"].as_str().unwrap().contains("eth1 sent"),
        "{failed:#}"
    );
    assert!(
        outcome.out.contains("healed ended with 0\n"),
        "{outcome}{}",
        errors(&stage)
    );
    assert_eq!(
        medians(&json(&stage, "healed"), "fast", "latency_ns").len(),
        1
    );
}

const LOST: &str = r#"
try down sonde probe latency --testbed hosts:h2,h5,h3 --launches 6 --budget 50ms --json
try strict sonde probe latency --testbed hosts:h2,h5,h3 --launches 6 --budget 50ms --json --strict
try few sonde probe latency --testbed hosts:h2,h5 --launches 2 --json
try loss sonde probe throughput --testbed hosts:h2,h3 --network eth=eth0 --path udp --size 1KiB --with rcvbuf=4KiB --launches 2 --json
try text sonde report show
try stream sonde probe latency --testbed hosts:h2,h3 --launches 3 --budget 50ms --json-stream
"#;

#[test]
fn a_host_that_is_down_is_left_out_and_losses_have_a_place() {
    let Some((stage, outcome)) = in_lab(FAST, LOST) else {
        return;
    };
    let all = || format!("{outcome}{}", errors(&stage));
    let said = |name: &str| std::fs::read_to_string(stage.path(&format!("{name}.err"))).unwrap();
    assert!(outcome.out.contains("down ended with 1\n"), "{}", all());
    assert!(
        said("down").contains("h5") && said("down").contains("the others are measured"),
        "{}",
        all()
    );
    let down = json(&stage, "down");
    assert_eq!(medians(&down, "default", "latency_ns").len(), 1);
    // Of six launches among three hosts two are between the two that are there.
    assert_eq!(down["results"][0]["launches"], 2, "{down:#}");
    assert!(
        outcome.out.contains("strict ended with 2\n") && outcome.out.contains("few ended with 2\n"),
        "{}",
        all()
    );
    assert!(outcome.out.contains("loss ended with 0\n"), "{}", all());
    let text = std::fs::read_to_string(stage.path("text.json")).unwrap();
    assert!(
        text.contains("datagrams over udp (rcvbuf=4KiB) on eth"),
        "{text}"
    );
    assert!(text.contains("at the receiver's socket"), "{text}");
    // Lines as launches end: a row for each quantity after each of three launches.
    assert!(outcome.out.contains("stream ended with 0\n"), "{}", all());
    let lines = std::fs::read_to_string(stage.path("stream.json")).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["event"], &lines[lines.len() - 1]["event"]),
        (&"start".into(), &"end".into())
    );
    let main = lines
        .iter()
        .filter(|line| line["row"]["quantity"] == "latency_ns" && line["row"]["phase"] == "warm");
    let counts: Vec<u64> = main
        .map(|line| line["row"]["launches"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [1, 2, 3]);
}
