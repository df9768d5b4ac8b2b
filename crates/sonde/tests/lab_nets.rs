//! Several networks of the same real hosts: h1 of a lab with two networks is the user's machine, h2 to h4 are its hosts, by
//! ssh; eth0 and eth1 are networks that differ.
//!
//! Model:   OpenSSH servers as in `lab_hosts.rs`. The networks are `ethernet-1g` and `ethernet-100`, so that what went where is
//!          seen in the figures too. The trap is planted as it happens on real hosts: a route sends the packets to an address
//!          of eth1 out of eth0, and the other host answers for it there. Needs root, whose ssh reads its config from a home
//!          that only h1 sees.

mod lab;

use lab::{Case, Outcome, Stage, attachments, has, is_root, skip};
use serde_json::Value;

const BEGIN: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3 h4 h5
cp "$keys/ssh_config" /root/.ssh/config
serve() { sonde lab exec --detach --root "$1" -- sh "$ssh_setup" serve "$keys" >/dev/null 2>&1; }
answers() { until ssh -o BatchMode=yes "$1" true 2>/dev/null; do sleep 0.1; done; }
for host in h2 h3 h4; do serve $host; answers $host; done
on() { host=$1; shift; sonde lab exec --root "$host" -- "$@"; }
try() { name=$1; shift; code=0; "$@" --out DIR/runs >DIR/$name.json 2>DIR/$name.err || code=$?; echo "$name ended with $code"; }
"#;

/// Runs a script in a lab with two networks; nothing where something is missing.
fn in_lab(hosts: &str, script: &str) -> Option<(Stage, Outcome)> {
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
    let script = format!("{BEGIN}{script}")
        .replace("SSHD", sshd.to_str().unwrap())
        .replace("DIR", stage.folder.to_str().unwrap());
    let options = ["--hosts", hosts, "--network", "ethernet-1g", "--network", "ethernet-100", "--root"];
    let outcome = stage.run(&options, &["sh", "-c", &script]).limit(300).output();
    assert_eq!(outcome.code, 0, "{outcome}{}", errors(&stage));
    Some((stage, outcome))
}

/// What the calls wrote to standard error.
fn errors(stage: &Stage) -> String {
    let files = std::fs::read_dir(&stage.folder).unwrap().flatten();
    let texts = files
        .filter(|file| file.path().extension().is_some_and(|end| end == "err"))
        .map(|file| format!("{:?}: {}\n", file.file_name(), std::fs::read_to_string(file.path()).unwrap_or_default()));
    texts.collect()
}

fn json(stage: &Stage, name: &str) -> Value {
    let text = std::fs::read_to_string(stage.path(&format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}\n{}", errors(stage)))
}

/// The medians of a quantity's main rows.
fn medians(document: &Value, network: &str, quantity: &str) -> Vec<f64> {
    let rows = document["results"].as_array().unwrap();
    let of = rows.iter().filter(|row| {
        row["network"] == network
            && row["quantity"] == quantity
            && row["step"].is_null()
            && row["phase"] == "warm"
    });
    of.filter_map(|row| row["p50"].as_f64()).collect()
}

const BOTH: &str = r#"
try both sonde probe throughput --testbed hosts:h2,h3 --network eth=eth0 --network fast=eth1 --launches 4 --path tcp,udp --json
sqlite=DIR/runs
try shown sonde report export --json
try strangers sonde probe latency --testbed hosts:h2,h3 --network ib=ib0 --launches 2
"#;

#[test]
fn both_networks_are_measured_in_one_run_and_differ() {
    let script = BOTH
        .replace("sqlite=DIR/runs\n", "")
        .replace("eth=eth0", "eth=10.9.0.0/24");
    let Some((stage, outcome)) = in_lab("4", &script) else {
        return;
    };
    assert!(outcome.out.contains("both ended with 0\n"), "{outcome}{}", errors(&stage));
    let both = json(&stage, "both");
    let rate = |network: &str| {
        let mut all = medians(&both, network, "throughput_bps");
        all.sort_by(f64::total_cmp);
        assert_eq!(all.len(), 2, "{both:#}");
        all[0]
    };
    // A tenth of the line rate; what a busy machine makes of the faster one is not told from here.
    assert!(rate("eth") > 1.3 * rate("fast"), "{} and {}", rate("eth"), rate("fast"));
    assert!(rate("fast") < 100e6);
    // Launches of both networks are interleaved, and say what carried them.
    let shown = json(&stage, "shown");
    let launches = shown["launches"].as_array().unwrap();
    for launch in launches {
        let settings = &launch["settings"];
        let cell = shown["cells"].as_array().unwrap().iter().find(|cell| cell["id"] == launch["cell"]);
        let network = cell.unwrap()["factors"]["network"].as_str().unwrap();
        let (own, other) = if network == "eth" { ("eth0", "eth1") } else { ("eth1", "eth0") };
        assert_eq!((settings["src_interface"].as_str(), settings["dst_interface"].as_str()), (Some(own), Some(own)));
        let sent = |name: &str| {
            let count = settings[format!("src_if.{name}.tx_bytes")].as_str();
            count.map_or(0, |count| count.parse::<u64>().unwrap())
        };
        assert!(sent(own) > 1_000_000 && sent(own) > 20 * sent(other), "{network}: {settings:#}");
    }
    let said = std::fs::read_to_string(stage.path("strangers.err")).unwrap();
    assert!(outcome.out.contains("strangers ended with 2\n"), "{outcome}");
    for words in ["h2 is not on ib: there is no interface ib0", "h3 is not on ib", "eth1 (10.9.1.2/24", "h1/ib0,h2/ib1"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

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
    let Some((stage, outcome)) = in_lab("4", TRAP) else {
        return;
    };
    assert!(outcome.out.contains("astray ended with 1\n"), "{outcome}{}", errors(&stage));
    let astray = json(&stage, "astray");
    assert_eq!(medians(&astray, "fast", "latency_ns"), [], "nothing is measured of it: {astray:#}");
    assert_eq!(medians(&astray, "eth", "latency_ns").len(), 1, "{astray:#}");
    let said = std::fs::read_to_string(stage.path("astray.err")).unwrap();
    for words in ["the bytes did not go there: on h", "the interface eth1 sent", "of at least", "eth0 sent", "arp_ignore"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let failed = astray["results"].as_array().unwrap().iter().find(|row| row["network"] == "fast");
    let failed = failed.expect("the row is there, with its reason");
    assert!(failed["status"] == "failed" && failed["reason"].as_str().unwrap().contains("eth1 sent"), "{failed:#}");
    assert!(outcome.out.contains("healed ended with 0\n"), "{outcome}{}", errors(&stage));
    assert_eq!(medians(&json(&stage, "healed"), "fast", "latency_ns").len(), 1);
}
