//! Hosts that send on by their own kernel, virtual LANs on one network, and the star of circuits that is both, in a running lab.
//!
//! Model:   sites of the catalogue and a file of this test's own. Round trips are bounded from below by the model, which is never early.
//! Checked: here.

use crate::lab::{Case, Stage, attached, attachments, has};
use crate::paired::lab_networks::{lines, on_h1, round_trips_us};
use crate::paired::lab_routers::DISCOVERY;
use serde_json::Value;

/// Two virtual LANs on one switch with a server on both, which each desktop reaches by its own; a router between.
const OFFICES: &str = r#"name = "offices"
summary = "two virtual LANs on one switch"
[[segment]]
name = "switch"
network = "ethernet-100"
hosts = []
[[segment]]
name = "design"
on = "switch"
hosts = ["d1", "d2", "server"]
[[segment]]
name = "sales"
on = "switch"
hosts = ["s1", "s2", "server"]
[[router]]
name = "r"
joins = ["design", "sales"]
latency = "1ms"
"#;

#[test]
fn a_workstation_sends_on_between_hippi_and_fddi() {
    const STREAM: &str = r#"
import hashlib, socket, sys
data = bytes(range(256)) * 4096
if sys.argv[1] == "receive":
    there = socket.create_server(("", 7000))
    open("listens", "w").close()
    talk, whole = there.accept()[0], b""
    while piece := talk.recv(1 << 16): whole += piece
    print("whole", whole == data)
else:
    with socket.create_connection(("cluster-4", 7000)) as talk: talk.sendall(data)
"#;
    if !has("ping") || !has("ip") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        std::fs::write(stage.path("stream.py"), STREAM).unwrap();
        let ledger = stage.path("ledger");
        let script = "ip route | cut -d' ' -f1-3 | sort
            sonde lab exec gateway -- cat /proc/sys/net/ipv4/ip_forward; cat /proc/sys/net/ipv4/ip_forward
            ping -c 1 -W 1 -t 1 cluster-1 | grep -o 'From gateway.*exceeded'
            ping -c 1 -W 1 -M do -s 8000 cluster-1 2>&1 | grep -o 'From .*mtu = 4352.'
            ping -c 1 -W 1 cluster-2 | grep -o 'ttl=..'
            sonde lab exec cluster-1 -- ping -c 1 -W 1 ymp | grep -o 'ttl=..'
            sonde lab exec cluster-4 -- /usr/bin/python3 stream.py receive & until [ -e listens ]; do sleep 0.05; done
            /usr/bin/python3 stream.py send; wait
            sonde lab exec gateway -- awk '/^Ip: [0-9]/ { print ($7 > 300) }' /proc/net/snmp";
        let options = ["--site", "rus-workstation", "--ledger", &ledger];
        let outcome = on_h1(&stage, &options, script);
        let want = [
            "10.9.0.0/24 dev eth0",
            "10.9.1.0/24 via 10.9.0.3",
            "1",
            "0",
            "From gateway (10.9.0.3) icmp_seq=1 Time to live exceeded",
            "From gateway (10.9.0.3) icmp_seq=1 Frag needed and DF set (mtu = 4352)",
            "ttl=63",
            "ttl=63",
            "whole True",
            // Datagrams that its kernel sent on.
            "1",
        ];
        assert_eq!(lines(&outcome), want, "{case:?}: {outcome}");
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        for word in ["parity      same admissions", " 0 early"] {
            assert!(replay.out.contains(word), "{word}: {replay}");
        }
    }
}

#[test]
fn leaves_of_a_star_reach_each_other_by_its_hub() {
    if !has("ping") {
        return;
    }
    for case in attached("tap") {
        let stage = Stage::new(case);
        let ledger = stage.path("ledger");
        let script = "sonde lab exec ultra-2 -- sh -c 'ping -c 1 -W 1 ultra-1 | grep -o ttl=..; ping -c 1 -W 1 ultra-3 | grep -o ttl=..; ip -o -4 address | grep -c eth'
            ip -o -4 address | grep -c eth; echo begin
            sonde lab exec ultra-2 -- ping -c 6 -i 0.05 -W 1 -s 9000 ultra-3";
        let options = ["--site", "upc-saba", "--ledger", &ledger];
        let outcome = on_h1(&stage, &options, script);
        assert_eq!(
            lines(&outcome)[..4],
            ["ttl=64", "ttl=63", "1", "3"],
            "{outcome}"
        );
        // Four times the cells of 9,028 bytes on a line: there and back, each by the hub.
        let cells = (9_028u64 + 8 + 8).div_ceil(48);
        let line_us = cells * 424 * 100 / 14_976;
        let times = round_trips_us(&outcome.out, "begin");
        assert!(
            times.len() == 6 && times.iter().all(|time| *time >= 4 * line_us),
            "{times:?}"
        );
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        assert!(
            replay.out.contains("parity      same admissions"),
            "{replay}"
        );
    }
}

#[test]
fn a_discovery_ends_at_the_virtual_lan() {
    for case in attachments() {
        let stage = Stage::new(case);
        let (file, program) = (stage.path("offices.toml"), stage.path("discovery.py"));
        std::fs::write(&file, OFFICES).unwrap();
        std::fs::write(&program, DISCOVERY).unwrap();
        let script = format!(
            "run='/usr/bin/python3 {program}'
            for host in d2 server s1; do sonde lab exec --detach $host -- $run answer; until [ -e listens.$host ]; do sleep 0.05; done; done
            $run named d2 server s1; $run broadcast 10.9.0.255; sonde lab exec s2 -- $run broadcast 10.9.1.255
            ping -c 1 -W 1 server | grep -o 'from .* ttl=..'; ping -c 1 -W 1 s2 | grep -o 'from .* ttl=..'
            sonde lab exec s2 -- ping -c 1 -W 1 server | grep -o 'from .* ttl=..'"
        );
        let outcome = on_h1(&stage, &["--site", &file], &script);
        let want = [
            "named d2 s1 server",
            "broadcast d2 server",
            "broadcast s1 server",
            "from server (10.9.0.3): icmp_seq=1 ttl=64",
            "from s2 (10.9.1.2): icmp_seq=1 ttl=63",
            "from server (10.9.1.3): icmp_seq=1 ttl=64",
        ];
        assert_eq!(lines(&outcome), want, "{case:?}: {outcome}");
    }
}

#[test]
fn a_move_between_virtual_lans_needs_an_address_and_no_line() {
    let stage = Stage::new(Case::own("veth"));
    let before = OFFICES.to_owned();
    let apart = before
        .replace(
            "name = \"switch\"\nnetwork = \"ethernet-100\"\nhosts = []\n[[segment]]\n",
            "",
        )
        .replace("on = \"switch\"", "network = \"ethernet-100\"");
    let counts = |before: &str| {
        let after = before
            .replace("\"d1\", \"d2\"", "\"d1\"")
            .replace("\"s1\", \"s2\"", "\"s1\", \"s2\", \"d2\"");
        let files = [("before.toml", before.to_owned()), ("after.toml", after)];
        let [old, new] = files.map(|(name, text)| {
            let path = stage.path(name);
            std::fs::write(&path, text).unwrap();
            path
        });
        let words = ["lab", "compare-sites", &old, &new, "--json"];
        let outcome = stage.sonde(&words).expect(0);
        let document: Value = serde_json::from_str(&outcome.out).unwrap();
        let keys = [
            "interfaces_added",
            "interfaces_removed",
            "hosts_recabled",
            "hosts_readdressed",
            "hosts_interrupted",
        ];
        keys.map(|key| document[key].as_u64().unwrap())
    };
    // Interfaces that come and go, lines, addresses, users: on one switch, and on two.
    assert_eq!(counts(&before), [0, 0, 0, 1, 1]);
    assert_eq!(counts(&apart), [0, 0, 1, 1, 1]);
}
