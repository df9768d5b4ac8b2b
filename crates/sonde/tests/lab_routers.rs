//! Routers, and hosts on several segments, in a running lab: what a host's own programs see of subnets, and that the virtual clock says the same.
//!
//! Model:   three subnets in a row: FDDI, Ethernet, ATM; each router holds a datagram for a millisecond. Times are bounded from below by the
//!          model, which is never early.
//! Checked: here.

use crate::lab::{Stage, attached, attachments, has, spread};
use crate::paired::lab_networks::{lines, on_h1, round_trips_us};

const SITE: &str = r#"name = "row"
summary = "three subnets in a row"
[[segment]]
name = "ring"
network = "fddi"
hosts = ["near-[1-2]"]
[[segment]]
name = "middle"
network = "ethernet-100"
hosts = ["mid"]
[[segment]]
name = "end"
network = "atm-oc3c"
hosts = ["far-[1-2]"]
[[router]]
name = "r1"
joins = ["ring", "middle"]
latency = "1ms"
[[router]]
name = "r2"
joins = ["middle", "end"]
latency = "1ms"
"#;

fn site(stage: &Stage) -> String {
    let file = stage.path("row.toml");
    std::fs::write(&file, SITE).unwrap();
    file
}

/// Sends twenty datagrams that may be cut up on the way, and receives them.
const UDP: &str = r#"
import socket, sys
data = bytes(range(256)) * 15
if sys.argv[1] == "receive":
    there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    there.bind(("", 7000))
    there.settimeout(10)
    open("listens", "w").close()
    for _ in range(20): assert there.recv(1 << 16) == data
    print("received 20 of", len(data))
else:
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # IP_MTU_DISCOVER, IP_PMTUDISC_DONT: they may be cut up on the way.
    here.setsockopt(socket.IPPROTO_IP, 10, 0)
    for _ in range(20): here.sendto(data, ("far-1", 7000))
"#;

#[test]
fn programs_run_over_routers_and_the_virtual_clock_says_the_same() {
    if !has("ping") || !has("ip") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        let (file, ledger) = (site(&stage), stage.path("ledger"));
        let script = "ip route | cut -d' ' -f1-3 | sort; echo begin; ping -c 4 -i 0.05 far-2; echo begin of others
            answers router r2; answers side r2-end; answers mid mid; answers own near-2
            ping -c 1 -W 1 -t 1 far-1 | grep -o 'From r1 .*exceeded'; ping -c 1 -W 1 -t 2 far-1 | grep -o 'From r2 .*exceeded'
            ping -c 1 -W 1 -M do -s 4000 far-1 2>&1 | grep -o 'From r1 .*mtu = 1500.'
            ip route get 10.9.2.1 | grep -o 'mtu 1500'; sonde lab exec far-1 -- sonde lab exec h1 -- hostname; true";
        let outcome = on_h1(&stage, &["--site", &file, "--ledger", &ledger], script);
        let seen = lines(&outcome);
        let want = [
            "10.9.0.0/24 dev eth0",
            "10.9.1.0/24 via 10.9.0.254",
            "10.9.2.0/24 via 10.9.0.254",
        ];
        assert_eq!(seen[..3], want, "{case:?}: {outcome}");
        let others = seen.iter().position(|line| *line == "begin of others");
        let want = [
            "router yes",
            "side yes",
            "mid yes",
            "own yes",
            "From r1 (10.9.0.254) icmp_seq=1 Time to live exceeded",
            "From r2 (10.9.1.253) icmp_seq=1 Time to live exceeded",
            "From r1 (10.9.0.254) icmp_seq=1 Frag needed and DF set (mtu = 1500)",
            "mtu 1500",
            "near-1",
        ];
        assert_eq!(seen[others.unwrap() + 1..], want, "{case:?}: {outcome}");
        let far = round_trips_us(&outcome.out, "begin");
        assert!(far.len() == 4 && far[0] >= 4_000, "{case:?}: {far:?}");
        assert!(outcome.out.contains("ttl=62"), "{outcome}");
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        for word in [
            "row with 5 hosts",
            "parity      same admissions",
            " 0 early",
        ] {
            assert!(replay.out.contains(word), "{word}: {replay}");
        }
    }
}

#[test]
fn routers_cut_up_what_is_too_long() {
    if !has("ping") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        let (file, ledger) = (site(&stage), stage.path("ledger"));
        std::fs::write(stage.path("udp.py"), UDP).unwrap();
        // 3,840 bytes are a frame of the ring, and three of the Ethernet; both ways in the echo.
        let script = "sonde lab exec far-1 -- /usr/bin/python3 udp.py receive & until [ -e listens ]; do sleep 0.05; done
            /usr/bin/python3 udp.py send; wait
            ping -q -c 3 -i 0.1 -W 2 -M dont -s 4000 far-2 | grep -o '3 received'";
        let outcome = on_h1(&stage, &["--site", &file, "--ledger", &ledger], script);
        let want = ["received 20 of 3840", "3 received"];
        assert_eq!(lines(&outcome), want, "{case:?}: {outcome}");
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        assert!(
            replay
                .out
                .contains("same admissions, same order, same losses"),
            "{replay}"
        );
    }
}

#[test]
fn a_bridge_between_unlike_mtus_cuts_up_or_is_a_black_hole() {
    const TCP: &str = r#"
import socket, sys
data = bytes(range(256)) * 4096
if sys.argv[1] == "receive":
    there = socket.create_server(("", 7001))
    open("serves", "w").close()
    one, _ = there.accept()
    came = b"".join(iter(lambda: one.recv(1 << 16), b""))
    print("a stream of", len(came), came == data)
else:
    with socket.create_connection(("far-1", 7001)) as here:
        here.sendall(data)
        # The Ethernet's segments, which both sides agree on (TCP_MAXSEG).
        print("segments of", here.getsockopt(socket.IPPROTO_TCP, 2))
"#;
    if !has("ping") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        let (file, ledger) = (stage.path("bridged.toml"), stage.path("ledger"));
        for (name, text) in [("udp.py", UDP), ("tcp.py", TCP)] {
            std::fs::write(stage.path(name), text).unwrap();
        }
        let text = |too_long| {
            format!(
                "name = \"bridged\"\nsummary = \"a ring and an Ethernet\"\n\
                 [[segment]]\nname = \"ring\"\nnetwork = \"fddi\"\nhosts = [\"near-[1-2]\"]\n\
                 [[segment]]\nname = \"end\"\nnetwork = \"ethernet-100\"\nhosts = [\"far-[1-2]\"]\n\
                 [[bridge]]\nname = \"bridge\"\njoins = [\"ring\", \"end\"]\ntoo_long = \"{too_long}\"\n"
            )
        };
        // 3,840 bytes are a frame of the ring, and three of the Ethernet; of 8,000 the host itself makes two of the ring.
        std::fs::write(&file, text("fragment")).unwrap();
        let script = "sonde lab exec far-1 -- /usr/bin/python3 udp.py receive & until [ -e listens ]; do sleep 0.05; done
            /usr/bin/python3 udp.py send; wait
            sonde lab exec far-1 -- /usr/bin/python3 tcp.py receive & until [ -e serves ]; do sleep 0.05; done
            /usr/bin/python3 tcp.py send; wait
            ping -q -c 3 -i 0.1 -W 2 -M dont -s 4000 far-2 | grep -o '. received'
            ping -q -c 3 -i 0.1 -W 2 -M dont -s 8000 far-2 | grep -o '. received'
            ping -q -c 2 -i 0.1 -W 1 -M do -s 4000 far-2 | grep -o '. received.*loss'";
        let outcome = on_h1(&stage, &["--site", &file, "--ledger", &ledger], script);
        let want = [
            "received 20 of 3840",
            "segments of 1448",
            "a stream of 1048576 True",
            "3 received",
            "3 received",
            "0 received, 100% packet loss",
        ];
        assert_eq!(lines(&outcome), want, "{case:?}: {outcome}");
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        assert!(
            replay
                .out
                .contains("same admissions, same order, same losses"),
            "{replay}"
        );
        std::fs::write(&file, text("drop")).unwrap();
        let script = "ping -q -c 2 -i 0.1 -W 1 -M dont -s 4000 far-2 | grep -o '. received.*loss'
            ping -q -c 2 -i 0.1 -W 1 -s 1000 far-2 | grep -o '. received'";
        let outcome = on_h1(&stage, &["--site", &file], script);
        let want = ["0 received, 100% packet loss", "2 received"];
        assert_eq!(lines(&outcome), want, "{case:?}: {outcome}");
    }
}

#[test]
fn streams_and_ranks_cross_subnets() {
    let tools = [
        (
            "iperf3",
            "sonde lab exec --detach far-1 -- iperf3 -s -1 >/dev/null; sleep 0.5; iperf3 -c far-1 -t 1 -f m | grep -c receiver",
            "1",
        ),
        (
            "mpirun.openmpi",
            "mpirun.openmpi -n 5 hostname | sort | xargs echo openmpi",
            "openmpi far-1 far-2 mid near-1 near-2",
        ),
        (
            "mpirun.mpich",
            "mpirun.mpich -n 5 hostname | sort | xargs echo mpich",
            "mpich far-1 far-2 mid near-1 near-2",
        ),
    ];
    for (case, (program, script, want)) in spread(&attached("tap"), &tools) {
        if !has(program) {
            continue;
        }
        let stage = Stage::new(case);
        let outcome = on_h1(&stage, &["--site", &site(&stage), "--cpus", "free"], script);
        assert_eq!(lines(&outcome), [want], "{case:?}: {outcome}");
    }
}

/// A server on all three segments, a store on two, and a router between two of them.
const SEVERAL: &str = r#"name = "several"
summary = "a server on all segments"
[[segment]]
name = "west"
network = "ethernet-100"
hosts = ["w", "server"]
[[segment]]
name = "east"
network = "fddi"
hosts = ["e", "server", "store"]
[[segment]]
name = "back"
network = "atm-oc3c"
hosts = ["server", "store"]
[[router]]
name = "r"
joins = ["west", "east"]
latency = "1ms"
"#;

#[test]
fn hosts_on_several_segments_use_the_nearest() {
    if !has("ping") || !has("ip") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        let (file, ledger) = (stage.path("several.toml"), stage.path("ledger"));
        std::fs::write(&file, SEVERAL).unwrap();
        let script = "see() { echo $1 $2 $(sonde lab exec $1 -- ping -n -c 1 -W 2 $2 2>&1 | grep -o 'from .* ttl=..\\|100% packet loss\\|unreachable'); }
            see w server; see w server-east; see e server; see e w; see server store; see server store-back; see w store; see w store-back
            sonde lab exec server -- ip route | cut -d' ' -f1-3 | sort; ip route | cut -d' ' -f1-3 | sort
            sonde lab exec store-back -- hostname; sonde lab exec 10.9.2.2 -- hostname
            sonde lab tell eth2 link h2 down; see server store-back; see server store
            sonde lab tell eth3 link h2 down; sonde lab tell eth1 link h1 down; true";
        let outcome = on_h1(&stage, &["--site", &file, "--ledger", &ledger], script);
        let want = [
            "w server from 10.9.0.2: icmp_seq=1 ttl=64",
            // The answer takes the server's own way to the west.
            "w server-east from 10.9.1.3: icmp_seq=1 ttl=64",
            "e server from 10.9.1.3: icmp_seq=1 ttl=64",
            "e w from 10.9.0.1: icmp_seq=1 ttl=63",
            "server store from 10.9.1.2: icmp_seq=1 ttl=64",
            "server store-back from 10.9.2.1: icmp_seq=1 ttl=64",
            "w store from 10.9.1.2: icmp_seq=1 ttl=63",
            "w store-back unreachable",
            "10.9.0.0/24 dev eth0",
            "10.9.1.0/24 dev eth1",
            "10.9.2.0/24 dev eth2",
            "10.9.0.0/24 dev eth0",
            "10.9.1.0/24 via 10.9.0.254",
            "store",
            "server",
            "server store-back 100% packet loss",
            "server store from 10.9.1.2: icmp_seq=1 ttl=64",
        ];
        assert_eq!(lines(&outcome), want, "{case:?}: {outcome}");
        let refused = outcome.err.matches("no interface of this number there");
        assert_eq!(refused.count(), 2, "{case:?}: {outcome}");
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        for word in ["several with 4 hosts", "parity      same admissions"] {
            assert!(replay.out.contains(word), "{word}: {replay}");
        }
    }
}

#[test]
fn one_program_runs_on_the_cluster_and_the_parallel_machine() {
    let stage = Stage::new(attached("tap")[0]);
    let script = "see() { sonde lab exec $1 -- ping -n -c 1 -W 2 $2 | grep -o 'from .* ttl=..'; }
        see leather01 lace32; see leather01 leather16-switch; see leather01 lace32-atm; see leather02 lace32-atm
        for host in leather01 leather02; do sonde lab exec $host -- ip route get 10.9.2.16 | grep -o 'via [0-9.]*'; done
        mpirun.openmpi -n 48 --map-by node hostname | sort -u | wc -l";
    let want = [
        "from 10.9.0.32: icmp_seq=1 ttl=64",
        "from 10.9.1.16: icmp_seq=1 ttl=64",
        "from 10.9.2.16: icmp_seq=1 ttl=63",
        "from 10.9.2.16: icmp_seq=1 ttl=63",
        // By turns: each of the two takes another gateway.
        "via 10.9.1.254",
        "via 10.9.1.253",
        "48",
    ];
    if !has("ping") || !has("ip") || !has("mpirun.openmpi") {
        return;
    }
    let outcome = on_h1(&stage, &["--site", "lace-sp2", "--cpus", "free"], script);
    assert_eq!(lines(&outcome), want, "{outcome}");
}

/// Answers whom it hears, by broadcast and by the group of mDNS too; or asks whom it is told, and says who answered.
pub const DISCOVERY: &str = r#"
import os, socket, sys, time
GROUP = "224.0.0.251"
own = socket.gethostbyname(socket.gethostname())
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "answer":
    link.bind(("", 5353))
    link.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton(own))
    open("listens." + socket.gethostname(), "w").close()
    while True: link.sendto(socket.gethostname().encode(), link.recvfrom(100)[1])
link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
link.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
for whom in sys.argv[2:]: link.sendto(b"who", (whom, 5353))
heard, end = set(), time.monotonic() + 1
while (left := end - time.monotonic()) > 0:
    link.settimeout(left)
    try: heard.add(link.recv(100).decode())
    except TimeoutError: break
print(sys.argv[1], *sorted(heard))
"#;

#[test]
fn a_discovery_ends_at_the_router() {
    for case in attached("veth") {
        let stage = Stage::new(case);
        let program = stage.path("discovery.py");
        std::fs::write(&program, DISCOVERY).unwrap();
        let script = format!(
            "run='/usr/bin/python3 {program}'
            for host in near-2 mid far-1; do sonde lab exec --detach $host -- $run answer; until [ -e listens.$host ]; do sleep 0.05; done; done
            $run named near-2 mid far-1; $run broadcast 10.9.0.255; $run mdns 224.0.0.251"
        );
        let outcome = on_h1(&stage, &["--site", &site(&stage)], &script);
        let want = ["named far-1 mid near-2", "broadcast near-2", "mdns near-2"];
        assert_eq!(lines(&outcome), want, "{case:?}: {outcome}");
    }
}
