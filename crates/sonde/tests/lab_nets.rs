//! Several networks of the same real hosts: h1 of a lab with two networks is the user's machine, h2 to h4 are its hosts, by
//! ssh; eth0 and eth1 are networks that differ.
//!
//! Model:   OpenSSH servers as in `lab_hosts.rs`. The networks are `ethernet-1g` and `ethernet-100`, so that what went where is
//!          seen in the figures too. The trap is planted as it happens on real hosts: a route sends the packets to an address
//!          of eth1 out of eth0, and the other host answers for it there. Needs root, whose ssh reads its config from a home
//!          that only h1 sees. The hosts find the command in their PATH, so that no copy of it crosses the networks.

use crate::lab::{Case, Outcome, Stage, attachments, has, is_root, skip};
use serde_json::Value;
use sonde_sys::noise::measured;

const BEGIN: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3 h4 h5
cp "$keys/ssh_config" /root/.ssh/config
serve() { sonde lab exec --detach --root "$1" -- sh "$ssh_setup" serve "$keys" -o SetEnv=PATH=/run/sonde/bin:/usr/bin:/bin >/dev/null 2>&1; }
answers() { until ssh -o BatchMode=yes "$1" true 2>/dev/null; do sleep 0.1; done; }
for host in h2 h3 h4; do serve $host; answers $host; done
on() { host=$1; shift; sonde lab exec --root "$host" -- "$@"; }
try() { name=$1; shift; code=0; "$@" --out DIR/runs >DIR/$name.json 2>DIR/$name.err || code=$?; echo "$name ended with $code"; }
"#;

/// Runs a script in a lab with two networks; nothing where something is missing.
fn in_lab(networks: [&str; 2], script: &str) -> Option<(Stage, Outcome)> {
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
fn errors(stage: &Stage) -> String {
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

const FAST: [&str; 2] = ["ethernet-1g", "ethernet-100"];

const BOTH: &str = r#"
try both sonde probe throughput --testbed hosts:h2,h3 --network eth=eth0 --network fast=eth1 --launches 2 --path tcp,udp --json
sqlite=DIR/runs
try shown sonde report export --json
try strangers sonde probe latency --testbed hosts:h2,h3 --network ib=ib0 --launches 2
"#;

#[test]
fn both_networks_are_measured_in_one_run_and_differ() {
    measured(|| {
        let script = BOTH
            .replace("sqlite=DIR/runs\n", "")
            .replace("eth=eth0", "eth=10.9.0.0/24");
        let Some((stage, outcome)) = in_lab(FAST, &script) else {
            return;
        };
        assert!(
            outcome.out.contains("both ended with 0\n"),
            "{outcome}{}",
            errors(&stage)
        );
        let both = json(&stage, "both");
        let rate = |network: &str| {
            let mut all = medians(&both, network, "throughput_bps");
            all.sort_by(f64::total_cmp);
            assert_eq!(all.len(), 2, "{both:#}");
            all[0]
        };
        // A tenth of the line rate; what a busy machine makes of the faster one is not told from here.
        assert!(
            rate("eth") > 1.3 * rate("fast"),
            "{} and {}",
            rate("eth"),
            rate("fast")
        );
        assert!(rate("fast") < 100e6);
        // Launches of both networks are interleaved, and say what carried them.
        let shown = json(&stage, "shown")["run"].clone();
        let launches = shown["launches"].as_array().unwrap();
        for launch in launches {
            let [src, dst] = ["src", "dst"].map(|side| &launch["evidence"][side]);
            let cell = shown["cells"]
                .as_array()
                .unwrap()
                .iter()
                .find(|cell| cell["id"] == launch["results"][0]["cell"]);
            let network = cell.unwrap()["factors"]["network"].as_str().unwrap();
            let (own, other) = if network == "eth" {
                ("eth0", "eth1")
            } else {
                ("eth1", "eth0")
            };
            for side in [src, dst] {
                assert_eq!(side["transfer"]["interface"], own);
            }
            let sent = |name: &str| src["interfaces"][name]["tx_bytes"].as_u64().unwrap_or(0);
            assert!(
                sent(own) > 1_000_000 && sent(own) > 20 * sent(other),
                "{network}: {src:#}"
            );
        }
        let said = std::fs::read_to_string(stage.path("strangers.err")).unwrap();
        assert!(
            outcome.out.contains("strangers ended with 2\n"),
            "{outcome}"
        );
        for words in [
            "h2 is not on ib: there is no interface ib0",
            "h3 is not on ib",
            "eth1 (10.9.1.2/24",
            "h1/ib0,h2/ib1",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    });
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
        "the bytes did not go there: on h",
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

const PRIVATE: &str = r#"
probe() { sonde probe latency --testbed hosts:h2,h3 --network private=eth0 --network public=eth1 --launches 4 --budget 200ms --size 64 --json "$@"; }
public() { sonde lab tell eth1 load 1 h2 rho=$1; sonde lab tell eth1 load 2 h3 rho=$1; sleep 0.2; }
for turn in 1 2 3; do
    try quiet$turn probe
    public 0.7
    try busy$turn probe
    public 0
done
"#;

#[test]
fn a_private_network_is_not_touched_by_load_on_the_public_one() {
    measured(|| {
        let Some((stage, outcome)) = in_lab(["ethernet-100:rate=20Mbit"; 2], PRIVATE) else {
            return;
        };
        // The best of three turns each: what else this machine does makes no latency less.
        let best = |name: &str, network: &str| {
            let turn = |turn: u32| {
                let name = format!("{name}{turn}");
                let ended = format!("{name} ended with 0\n");
                assert!(outcome.out.contains(&ended), "{outcome}{}", errors(&stage));
                medians(&json(&stage, &name), network, "latency_ns")[0]
            };
            (1..=3).map(turn).fold(f64::INFINITY, f64::min)
        };
        let grown = |network: &str| best("busy", network) / best("quiet", network);
        let (public, private) = (grown("public"), grown("private"));
        println!(
            "half a round trip under load over idle: public {public:.2}, private {private:.2}"
        );
        // A frame of the load takes 615 us, a message 50 us.
        assert!(public > 1.5, "{public}");
        assert!(
            private < 1.3 && private < public / 1.3,
            "{private} beside {public}"
        );
    });
}

const LOADS: &str = r#"
flows() { sonde load --testbed hosts:h2,h3,h4 --network eth=eth1 --of 100Mbit --out DIR/loads "$@" --json; }
bytes() { on h2 cat /proc/net/dev; on h3 cat /proc/net/dev; on h4 cat /proc/net/dev; }
received() { bytes | awk '/eth1:/ { sub(/.*:/, ""); sum += $1 } END { printf "%d", sum }'; }
# Until it has gone on for more than a second: how long agents take to start is not told.
flowing() { from=$(received); until [ "$(received)" -gt $((from + 8000000)) ]; do sleep 0.1; done; }
alone() { name=$1; shift; code=0; "$@" >DIR/$name.json 2>DIR/$name.err || code=$?; echo "$name ended with $code"; }
alone made flows --flow 'h2>h3' --flow 'h3>h4' --rho 0.2 --for 3s
id=$(sed -n 's/.*"run": "\(.*\)",.*/\1/p' DIR/made.json)
alone kept sonde report export --json --out DIR/loads
alone keptshown sonde report show --out DIR/loads
alone keptcompared sonde report compare $id $id --out DIR/loads
alone much flows --flow 'h2>h4' --flow 'h3>h4' --rho 0.8 --for 2s
alone norate sonde load --testbed hosts:h2,h3 --rho 0.1 --out DIR/loads
alone noflow flows --flow 'h2>h9' --rho 0.1
sonde load --testbed hosts:h2,h3,h4 --network eth=eth1 --of 100Mbit --rho 0.2 --for 60s --out DIR/loads --json >DIR/cut.json 2>DIR/cut.err &
cut=$!
flowing; kill -INT $cut; code=0; wait $cut || code=$?
echo "cut ended with $code"
sonde load --testbed hosts:h2,h3,h4 --network eth=eth1 --of 100Mbit --rho 0.2 --for 60s --out DIR/loads --json >DIR/dead.json 2>DIR/dead.err &
dead=$!
flowing; kill -9 $dead; wait $dead || true
sleep 4
for host in h2 h3; do
    on $host ps -eo args | grep -E ' agent$|--sonde-worker' | grep -v grep | sed "s/^/left on $host: /" || true
done
try beside sonde probe latency --testbed hosts:h2,h3,h4 --network eth=eth1 --load 0,0.3 --load-flow 'h4>h3' --load-of 100Mbit --launches 4 --budget 100ms --json
try shown sonde report export --json
try text sonde report show
"#;

#[test]
fn loads_are_made_counted_and_ended() {
    measured(|| {
        let Some((stage, outcome)) = in_lab(["ethernet-1g", "ethernet-100"], LOADS) else {
            return;
        };
        let all = || format!("{outcome}{}", errors(&stage));
        let flow = |name: &str, at: usize| json(&stage, name)["flows"][at].clone();
        let share = |row: &Value, name: &str| row[name].as_f64().unwrap();
        assert!(outcome.out.contains("made ended with 0\n"), "{}", all());
        for at in [0, 1] {
            let row = flow("made", at);
            let (planned, came) = (share(&row, "planned_share"), share(&row, "received_share"));
            assert!(
                (0.17..0.23).contains(&planned) && came > 0.95 * planned && came <= planned,
                "{row:#}"
            );
        }
        kept_load(&stage, &outcome);
        // Two flows of 0.8 meet in the port of one host: what came is less, and said.
        assert!(outcome.out.contains("much ended with 1\n"), "{}", all());
        let came = [0, 1].map(|at| share(&flow("much", at), "received_share"));
        assert!(came.iter().sum::<f64>() < 1.05, "{came:?}");
        let said =
            |name: &str| std::fs::read_to_string(stage.path(&format!("{name}.err"))).unwrap();
        assert!(
            outcome.out.contains("norate ended with 2\n") && said("norate").contains("--of 1Gbit"),
            "{}",
            all()
        );
        assert!(
            outcome.out.contains("noflow ended with 64\n") && said("noflow").contains("no host h9"),
            "{}",
            all()
        );
        assert!(
            outcome.out.contains("cut ended with 130\n") && said("cut").contains("interrupted"),
            "{}",
            all()
        );
        assert!((1.0..30.0).contains(&share(&flow("cut", 0), "span_s")));
        assert!(!outcome.out.contains("left on"), "{outcome}");
        // Beside a measurement: what was reached is in each launch, and in the report.
        assert!(outcome.out.contains("beside ended with 0\n"), "{}", all());
        let shown = json(&stage, "shown")["run"].clone();
        let level = "0.3:of=100Mbit:flow=h4>h3";
        let cells = shown["cells"].as_array().unwrap();
        let loaded = cells
            .iter()
            .find(|cell| cell["factors"]["load"] == level)
            .expect("its factors name it");
        let launches = shown["launches"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|launch| launch["results"][0]["cell"] == loaded["id"]);
        for launch in launches {
            let flow = &launch["evidence"]["load_flows"]["h4>h3"];
            let of = |name: &str| flow[name].as_f64().unwrap();
            assert!((of("wanted") - 0.3).abs() < 1e-9);
            let (planned, came) = (of("planned"), of("achieved"));
            assert!(came > 0.9 * planned, "{came} of {planned}");
        }
        let text = std::fs::read_to_string(stage.path("text.json")).unwrap();
        assert!(text.contains(&format!("load {level} of eth")), "{text}");
    });
}

/// The load that was made is a run: exported, shown, and the same as itself.
fn kept_load(stage: &Stage, outcome: &Outcome) {
    // One launch is too few to tell whether it is the same.
    for (name, code) in [("kept", 0), ("keptshown", 0), ("keptcompared", 3)] {
        let ended = format!("{name} ended with {code}\n");
        assert!(outcome.out.contains(&ended), "{outcome}{}", errors(stage));
    }
    let kept = json(stage, "kept");
    let launches = kept["run"]["launches"].as_array().unwrap();
    let flows: Vec<&str> = launches
        .iter()
        .flat_map(|launch| launch["evidence"]["load_flows"].as_object().unwrap())
        .map(|(flow, _)| flow.as_str())
        .collect();
    assert_eq!(flows, ["h2>h3", "h3>h4"]);
    let state = &kept["run"]["head"]["state"];
    assert_eq!(state, "complete", "{state}");
    let shown = std::fs::read_to_string(stage.path("keptshown.json")).unwrap();
    assert!(shown.contains("load 0.2:of=100Mbit of eth"), "{shown}");
}

const LOST: &str = r#"
try down sonde probe latency --testbed hosts:h2,h5,h3 --launches 6 --budget 50ms --json
try strict sonde probe latency --testbed hosts:h2,h5,h3 --launches 6 --budget 50ms --json --strict
try few sonde probe latency --testbed hosts:h2,h5 --launches 2 --json
try loss sonde probe throughput --testbed hosts:h2,h3 --network eth=eth0 --path udp --with rcvbuf=4KiB --launches 2 --json
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
        text.contains("datagrams by udp (rcvbuf=4KiB) on eth"),
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
