//! Several networks of the same real hosts, measured: one faster than the other, load on one that leaves the other alone, loads
//! that come as planned, and messages that take the better network.
//!
//! Model:   the lab of `lab_nets.rs`.

use crate::lab::{Outcome, Stage, skip, sonde};
use crate::paired::lab_nets::{FAST, errors, in_lab, json, medians};
use serde_json::Value;
use sonde_sys::noise::measured;

const BOTH: &str = r#"
try both sonde probe throughput --testbed hosts:h2,h3 --network eth=10.9.0.0/24 --network fast=eth1 --launches 2 --path tcp,udp --json
try shown sonde report export --json
try strangers sonde probe latency --testbed hosts:h2,h3 --network ib=ib0 --launches 2
"#;

#[test]
fn both_networks_are_measured_in_one_run_and_differ() {
    measured(|| {
        let Some((stage, outcome)) = in_lab(FAST, BOTH) else {
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

const PRIVATE: &str = r#"
probe() { sonde probe latency --testbed hosts:h2,h3 --network private=eth0 --network public=eth1 --launches 2 --budget 200ms --size 64 --json "$@"; }
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
alone made flows --flow 'h2>h3' --flow 'h3>h4' --rho 0.2 --for 2s
id=$(sed -n 's/.*"run": "\(.*\)",.*/\1/p' DIR/made.json)
alone kept sonde report export --json --out DIR/loads
alone keptshown sonde report show --out DIR/loads
alone keptcompared sonde report compare $id $id --out DIR/loads
alone much flows --flow 'h2>h4' --flow 'h3>h4' --rho 0.8 --for 1s
alone norate sonde load --testbed hosts:h2,h3 --rho 0.1 --out DIR/loads
alone noflow flows --flow 'h2>h9' --rho 0.1
sonde load --testbed hosts:h2,h3,h4 --network eth=eth1 --of 100Mbit --rho 0.2 --for 60s --out DIR/loads --json >DIR/cut.json 2>DIR/cut.err &
cut=$!
flowing; kill -INT $cut; code=0; wait $cut || code=$?
echo "cut ended with $code"
sonde load --testbed hosts:h2,h3,h4 --network eth=eth1 --of 100Mbit --rho 0.2 --for 60s --out DIR/loads --json >DIR/dead.json 2>DIR/dead.err &
dead=$!
flowing; kill -9 $dead; wait $dead || true
# Their ends have four seconds.
for host in h2 h3; do for turn in 1 2 3 4 5 6 7 8; do
    left=$(on $host ps -eo args | grep -E ' agent$|--sonde-worker' | grep -v grep || true)
    [ -n "$left" ] || break
    sleep 0.5
done; [ -z "$left" ] || echo "left on $host: $left"; done
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
        assert!(text.contains(&format!("load {level} on eth")), "{text}");
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
    assert!(shown.contains("load 0.2:of=100Mbit on eth"), "{shown}");
}

const BEST: &str = r#"
try best sonde probe latency --testbed hosts:h2,h3 --network quick=eth0 --network broad=eth1 --path native:tcp,native:best --wait poll --size 100,1KiB,64KiB --launches 3 --budget 1s --json
try shown sonde report export --json
try sole sonde probe latency --testbed hosts:h2,h3 --network quick=eth0 --path native:best --launches 1 --json
"#;

/// Of the row of such a message its median, ns.
fn half_trip_ns(document: &Value, network: &str, path: &str, bytes: u64) -> f64 {
    let rows = document["results"].as_array().unwrap();
    let of = rows.iter().find(|row| {
        row["network"] == network
            && row["path"] == path
            && row["size_bytes"] == bytes
            && row["phase"] == "warm"
    });
    let median = of.and_then(|row| row["p50"].as_f64());
    median.unwrap_or_else(|| panic!("{network} {path} {bytes}: {document:#}"))
}

#[test]
fn a_message_takes_the_better_network() {
    // 10 Mb/s at once, and 1 Gb/s after 4 ms.
    const NETWORKS: [&str; 2] = ["ethernet-10", "ethernet-1g:length_m=400000"];
    const MARGIN_NS: f64 = 200e3;
    if !sonde().with_file_name("sonde-rank").is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return;
    }
    measured(|| {
        let Some((stage, outcome)) = in_lab(NETWORKS, BEST) else {
            return;
        };
        let all = || format!("{outcome}{}", errors(&stage));
        assert!(outcome.out.contains("best ended with 0\n"), "{}", all());
        let best = json(&stage, "best");
        for (bytes, better) in [(100, "quick"), (1 << 10, "quick"), (64 << 10, "broad")] {
            let single = |network| half_trip_ns(&best, network, "native:tcp", bytes);
            let (quick, broad) = (single("quick"), single("broad"));
            let chosen = half_trip_ns(&best, "quick", "native:best", bytes);
            println!("{bytes} B: quick {quick}, broad {broad}, the better of both {chosen} ns");
            assert_eq!(quick < broad, better == "quick", "{bytes}: {quick} {broad}");
            // A head of 24 bytes, and the choice.
            let most = quick.min(broad) + MARGIN_NS;
            assert!(chosen <= most, "{bytes}: {chosen} of {quick} and {broad}");
        }
        // It is said what went by which, and why the other network has no such figure.
        let shown = json(&stage, "shown")["run"]["launches"].to_string();
        assert!(
            shown.contains("quick: ") && shown.contains(", broad: "),
            "{shown}"
        );
        let rows = best["results"].as_array().unwrap();
        let of_both = rows.iter().filter(|row| row["path"] == "native:best");
        let skipped = of_both.filter(|row| row["network"] == "broad").map(|row| {
            assert_eq!(row["status"], "skipped", "{row}");
            row["reason"].as_str().unwrap()
        });
        assert!(skipped.clone().count() > 0);
        for reason in skipped {
            assert!(reason.contains("its figure stands at quick"), "{reason}");
        }
        let sole = json(&stage, "sole");
        let reason = sole["results"][0]["reason"].as_str().unwrap();
        assert!(
            reason.contains("these hosts have one: name them"),
            "{reason}"
        );
    });
}
