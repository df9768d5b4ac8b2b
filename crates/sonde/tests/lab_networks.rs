//! Networks in a running lab: several at once, changed by word and by script, loaded, with circuits, without loss, with hosts.
//!
//! Model:   what a host's own programs see: `ping`, its interfaces' counters, datagrams that are counted at both ends. Times are
//!          bounded from below by the model, which is never early, and else compared with each other in one lab.

use crate::lab::{
    Case, Outcome, Stage, assert_attachment_lost_nothing, attached, attachments, has, is_long,
    spread,
};
use crate::part::{ended, traffic};
use serde_json::json;

const USAGE: i32 = 64;
/// Shell functions of the scripts: `fails` and `answers` say whether h2 (or who is named) answers, with what word for it.
const PINGS: &str = "
answers() { ping -q -c 2 -i 0.1 -W 2 ${2:-h2} >/dev/null && echo $1 yes || echo $1 no; }
fails() { ping -q -c 2 -i 0.1 -W 0.3 ${2:-h2} >/dev/null && echo $1 yes || echo $1 no; }
tell() { sonde lab tell \"$@\" || exit 9; }
";

/// Runs `script` on h1; its last word on a network.
pub fn on_h1(stage: &Stage, options: &[&str], script: &str) -> Outcome {
    let script = format!("{PINGS}{script}");
    stage.run(options, &["sh", "-c", &script]).expect(0)
}

/// The lines that a script wrote.
pub fn lines(outcome: &Outcome) -> Vec<&str> {
    outcome.out.lines().collect()
}

/// When the echoes of `ping -D` came, in microseconds.
fn echoes(text: &str) -> Vec<u64> {
    let stamps = text.lines().filter_map(|line| {
        let stamp = line.strip_prefix('[')?.split_once(']')?.0;
        let (seconds, micros) = stamp.split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
    });
    stamps.collect()
}

/// The longest time without an echo.
fn gap_us(outcome: &Outcome) -> u64 {
    let stamps = echoes(&outcome.out);
    let gaps = stamps.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max()
        .unwrap_or_else(|| panic!("no two echoes: {outcome}"))
}

/// The round trips that `ping` printed after the line `begin`, in microseconds, ascending.
pub fn round_trips_us(text: &str, begin: &str) -> Vec<u64> {
    let mut lines = text.lines().skip_while(|line| *line != begin).skip(1);
    let mut times = Vec::new();
    for line in lines
        .by_ref()
        .take_while(|line| !line.starts_with("begin "))
    {
        let time = line
            .split_once("time=")
            .and_then(|(_, rest)| rest.split_whitespace().next());
        times.extend(
            time.and_then(|time| time.parse::<f64>().ok())
                .map(|ms| (ms * 1e3) as u64),
        );
    }
    times.sort_unstable();
    assert!(!times.is_empty(), "no echo after `{begin}`: {text}");
    times
}

pub fn median(times: &[u64]) -> u64 {
    times[times.len() / 2]
}

#[test]
fn hosts_on_two_networks_use_the_one_they_address() {
    if !has("ping") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        let ledger = stage.path("ledger");
        let sent = "awk '/eth[01]:/ { print $10 }' /proc/net/dev";
        let script = format!(
            "ping -q -c 1 10.9.0.2 >/dev/null && ping -q -c 1 h2-eth1 >/dev/null || exit 7
            {sent}; on h2 receive > heard & wait_for heard; part blast 10.9.1.2 1000 300 > sent; wait; {sent}; cat heard"
        );
        let options = [
            "--hosts",
            "2",
            "--network",
            "ethernet-100",
            "--network",
            "fddi",
            "--ledger",
            &ledger,
        ];
        let (outcome, report) = traffic(&stage, &options, &script);
        let counts: Vec<u64> = lines(&outcome)
            .iter()
            .filter_map(|line| line.parse().ok())
            .collect();
        let [before0, before1, after0, after1] = counts[..] else {
            panic!("not four counters: {outcome}");
        };
        assert!(after1 - before1 >= 300 * 1_028, "{outcome}");
        assert!(
            after0 - before0 < 1_028,
            "nothing went by the other network: {outcome}"
        );
        assert_eq!(
            (outcome.part(0, "received"), outcome.part(0, "wrong")),
            (300, 0),
            "{outcome}"
        );
        assert_attachment_lost_nothing(&report);
        assert_eq!(report["lost"], json!({}), "{report:#}");
        // One ledger has both, and the virtual clock says the same.
        let replayed = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        for word in [
            "ethernet-100 and fddi with 2 hosts",
            "same admissions, same order, same losses",
        ] {
            assert!(replayed.out.contains(word), "{word}: {replayed}");
        }
    }
}

#[test]
fn a_link_has_jitter_and_unlike_directions() {
    const STREAM: &str = r#"
import socket, sys, time
if sys.argv[1] == "send":
    with socket.create_server(("", 7000)) as there:
        open("listens", "w").close()
        there.accept()[0].sendall(bytes(1 << 20))
else:
    with socket.create_connection(("h2", 7000)) as talk:
        begin, count = time.monotonic(), 0
        while piece := talk.recv(1 << 16): count += len(piece)
    print("stream", count, int((time.monotonic() - begin) * 1e6))
"#;
    if !has("ping") {
        return;
    }
    for case in attached("tap") {
        let stage = Stage::new(case);
        std::fs::write(stage.path("stream.py"), STREAM).unwrap();
        let script = format!(
            "sonde lab exec h2 -- {PYTHON} stream.py send & until [ -e listens ]; do sleep 0.05; done
            {PYTHON} stream.py receive; wait; echo begin; ping -c 20 -i 0.02 h2"
        );
        let ledger = stage.path("ledger");
        let options = [
            "--link",
            "100Mbit/10Mbit,30ms/10ms,0,5ms",
            "--hosts",
            "2",
            "--ledger",
            &ledger,
        ];
        let outcome = on_h1(&stage, &options, &script);
        // A mebibyte back at 10 Mb/s, with at least 54 bytes a frame of at most 1,460.
        let line = lines(&outcome)[0].split_whitespace();
        let words: Vec<u64> = line.skip(1).map(|word| word.parse().unwrap()).collect();
        assert_eq!(words[0], 1 << 20, "{outcome}");
        assert!(words[1] > 860_000, "{outcome}");
        // 40 ms there and back, and up to 5 more in each direction, unlike each time.
        let times = round_trips_us(&outcome.out, "begin");
        assert!(
            times.len() == 20 && times.iter().all(|time| *time >= 40_000),
            "{times:?}"
        );
        let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert!(most - least > 1_000, "{times:?}");
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        assert!(replay.out.contains(" 0 early"), "{replay}");
    }
}

/// The system's own: what stands before it in `PATH` may take a CPU for 0.1 s, on each of many hosts.
const PYTHON: &str = "/usr/bin/python3";
/// Each host sends one datagram to each other, once all of them listen.
const ALL_TO_ALL: &str = r#"
import os, socket, time
count, own = int(os.environ["SONDE_HOSTS"]), int(os.environ["SONDE_HOST"][1:])
names = [f"h{number}" for number in range(1, count + 1)]
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind(("", 7000))
link.settimeout(30)
open(f"listens.{own}", "w").close()
while not os.path.exists("go"): time.sleep(0.02)
for name in names:
    if name != f"h{own}": link.sendto(name.encode(), (name, 7000))
heard = set()
while len(heard) < count - 1:
    text, peer = link.recvfrom(100)
    assert text == f"h{own}".encode()
    heard.add(peer[0])
with open(f"part.{own}", "w") as file: file.write(f"{len(heard)}\n")
os.rename(f"part.{own}", f"heard.{own}")
"#;

/// The kernel's table of learnt neighbours holds 1,024 entries of all hosts together; 128 hosts have 16,256 neighbours.
#[test]
fn many_hosts_all_reach_each_other() {
    if !has(PYTHON) || !has("ip") {
        return;
    }
    for (case, hosts) in attachments().into_iter().zip([128, 256]) {
        let stage = Stage::new(case);
        std::fs::write(stage.path("all.py"), ALL_TO_ALL).unwrap();
        let script = format!(
            "for n in $(seq {hosts}); do sonde lab exec --detach h$n -- {PYTHON} all.py; done
            await() {{ tries=0; until [ $(ls $1.* 2>/dev/null | wc -l) = {hosts} ]; do tries=$((tries + 1)); [ $tries -lt 400 ] || return 1; sleep 0.1; done; }}
            await listens || exit 7; touch go; await heard || exit 8
            cat heard.* | sort -u; ip neigh show nud permanent | grep -c lladdr
            getent hosts h{hosts}"
        );
        let options = ["--hosts", &hosts.to_string(), "--network", "ethernet-1g"];
        let (outcome, report) = traffic(&stage, &options, &script);
        let address = match hosts {
            256 => "10.9.1.0",
            _ => "10.9.0.128",
        };
        let others = (hosts - 1).to_string();
        let [heard, known, last] = &lines(&outcome)[..] else {
            panic!("{outcome}");
        };
        assert_eq!([*heard, *known], [&*others; 2], "{outcome}");
        assert!(last.starts_with(address), "{outcome}");
        assert_eq!(report["lost"], json!({}), "{report:#}");
    }
}

#[test]
fn what_is_told_happens_and_ends() {
    if !has("ping") {
        return;
    }
    let script = "
answers start
tell link h2 down; fails link; tell link h2 up; answers link
tell loss h2 100%; fails loss; tell loss h2 0%; answers loss
tell pause h2 on; fails pause; tell pause h2 off; answers pause
tell cut h1 h2 on; fails cut; answers beside h3; tell cut h1 h2 off; answers cut
tell host h3 down; fails host h3; tell host h3 up; answers host h3
tell vc release h1 h2; fails vc; tell vc establish h1 h2; answers vc";
    let wanted = "start yes, link no, link yes, loss no, loss yes, pause no, pause yes, cut no, beside yes, cut yes, host no, host yes, vc no, vc yes";
    for case in attached("veth") {
        let stage = Stage::new(case);
        let outcome = on_h1(&stage, &["--hosts", "3", "--network", "atm-oc3c"], script);
        assert_eq!(lines(&outcome).join(", "), wanted, "{outcome}");
    }
}

#[test]
fn delay_and_rate_are_told_and_taken_back() {
    if !has("ping") {
        return;
    }
    let script = "ping='ping -c 5 -i 0.1 -s 1400'
echo begin first; $ping h2; tell delay all 20ms; echo begin delayed; $ping h2; tell delay all 0s
tell rate 1Mbit; echo begin slow; $ping h2; tell rate own; echo begin last; $ping h2";
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let outcome = on_h1(
        &stage,
        &["--hosts", "2", "--network", "ethernet-100"],
        script,
    );
    let [first, delayed, slow, last] = ["first", "delayed", "slow", "last"]
        .map(|name| round_trips_us(&outcome.out, &format!("begin {name}")));
    assert!(delayed[0] >= 40_000, "two ways of 20 ms: {outcome}");
    // 1,442 bytes and what Ethernet adds, four times: two ways, each stored once.
    assert!(slow[0] >= 4 * 11_600, "{outcome}");
    assert!(
        median(&first) < slow[0] && median(&last) < slow[0],
        "{outcome}"
    );
}

#[test]
fn what_cannot_be_told_is_said() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let tell = |words: &str, code: i32, said: &[&str]| {
        let script = format!("sonde lab tell {words}");
        stage
            .run(&["--hosts", "2"], &["sh", "-c", &script])
            .expect(code)
            .tells(said);
    };
    tell(
        "lnk h2 down",
        USAGE,
        &["`lnk` is not a command", "`link`", "link h2 down"],
    );
    tell(
        "eth3 link h1 down",
        2,
        &["no interface of this number there", "eth0"],
    );
    tell("trunk 0 down", 2, &["no such trunk"]);
    tell("vc release h1 h2", 2, &["no virtual circuits", "atm-oc3c"]);
    tell("link h9 down", 2, &["h9 cannot be meant", "h1 to h2"]);
    stage
        .sonde(&["lab", "tell", "link", "h2", "down"])
        .expect(2)
        .tells(&["cannot reach the switch", "lab shell"]);
}

#[test]
fn a_script_is_played_at_its_times_and_read_line_by_line() {
    if !has("ping") {
        return;
    }
    for case in attached("tap") {
        let stage = Stage::new(case);
        let script = stage.path("script");
        std::fs::write(&script, "1s link h2 down # for a second\n\n2s link h2 up\n").unwrap();
        let options = ["--hosts", "2", "--script", &script];
        let program = ["ping", "-D", "-c", "30", "-i", "0.1", "-W", "1", "h2"];
        let outcome = stage.run(&options, &program).expect(0);
        let gap = gap_us(&outcome);
        println!("{case:?}: no echo for {gap} us, the link was down for 1 s");
        // An echo leaves up to a tenth before the link fails, and comes up to a tenth, and what a busy machine adds, after; one that
        // is late itself shortens it.
        assert!((800_000..2_000_000).contains(&gap), "{gap} us: {outcome}");
        for (text, said) in [
            (
                "1s link h2 down\n# so\n2s lnk h2 up\n",
                "line 3: `lnk h2 up`",
            ),
            ("link h2 down\n", "line 1"),
            ("\n1 link h2 down\n", "line 2"),
        ] {
            std::fs::write(&script, text).unwrap();
            stage
                .run(&options, &["true"])
                .expect(USAGE)
                .tells(&[said, "script"]);
        }
    }
}

#[test]
fn a_run_with_script_and_load_is_repeated_by_the_virtual_clock() {
    if !has("ping") {
        return;
    }
    for (case, network) in spread(&attachments(), &["atm-oc3c", "ethernet-10"]) {
        let stage = Stage::new(case);
        let (script, ledger) = (stage.path("script"), stage.path("ledger"));
        std::fs::write(
            &script,
            "0.5s loss h2 30%\n1s delay all 3ms\n1.2s link h2 down\n1.5s link h2 up\n",
        )
        .unwrap();
        let options = [
            "--hosts",
            "2",
            "--network",
            network,
            "--load",
            "0.3",
            "--script",
            &script,
            "--ledger",
            &ledger,
        ];
        stage
            .run(
                &options,
                &["ping", "-q", "-c", "40", "-i", "0.05", "-s", "1000", "h2"],
            )
            .expect(0);
        let replayed = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        assert!(
            replayed
                .out
                .contains("same admissions, same order, same losses"),
            "{replayed}"
        );
        let losses = replayed
            .out
            .lines()
            .find_map(|line| line.strip_prefix("losses")?.trim().parse::<u64>().ok());
        assert!(
            losses.is_some_and(|losses| losses > 0),
            "the script lost something: {replayed}"
        );
    }
}

/// A manager that comes back has forgotten the circuits: it restores them in its time, or someone establishes them.
#[test]
fn permanent_circuits_are_lost_at_a_restart_of_their_manager_and_restored() {
    if !has("ping") {
        return;
    }
    let restart = "tell manager down; sleep 0.2; tell manager up";
    for case in attached("veth") {
        let stage = Stage::new(case);
        let script = format!("ping -D -c 30 -i 0.1 -W 1 h2 & sleep 0.8; {restart}; wait");
        let network = "atm-oc3c:restoration=automatic:restore=1s";
        let outcome = on_h1(&stage, &["--hosts", "2", "--network", network], &script);
        let gap = gap_us(&outcome);
        println!("{case:?}: no echo for {gap} us, restored after 1 s");
        assert!((990_000..2_400_000).contains(&gap), "{gap} us: {outcome}");

        let script = format!(
            "answers there; {restart}; sleep 0.2; fails lost; tell vc establish h1 h2; answers again"
        );
        let outcome = on_h1(&stage, &["--hosts", "2", "--network", "atm-oc3c"], &script);
        assert_eq!(
            lines(&outcome),
            ["there yes", "lost no", "again yes"],
            "{outcome}"
        );
    }
}

/// All that was sent is found: at the programs, or counted by the receiving host's own kernel, which a busy machine overruns.
fn all_arrived(case: Case, network: &str, hosts: u64, (size, count): (u64, u64)) {
    let stage = Stage::new(case);
    let script = format!(
        "rm -f heard; part receive > heard & wait_for heard; for n in $(seq 2 {hosts}); do on h$n blast h1 {size} {count} > sent.$n & done; wait; cat heard"
    );
    let options = ["--hosts", &hosts.to_string(), "--network", network];
    let (outcome, report) = traffic(&stage, &options, &script);
    let heard = |name| outcome.part(0, name);
    let [received, overrun, torn] = ["received", "overrun", "torn"].map(heard);
    println!(
        "{network} {case:?}, {hosts} hosts: {received} of {}, overrun {overrun}, torn {torn}",
        (hosts - 1) * count
    );
    assert_eq!(
        received + overrun + torn,
        (hosts - 1) * count,
        "{network}: {outcome}\n{report:#}"
    );
    assert_eq!(heard("wrong"), 0, "{outcome}");
    assert_eq!(report["lost"], json!({}), "{network}: {report:#}");
    assert_attachment_lost_nothing(&report);
}

/// One sender, as fast as it may, with datagrams of one frame as large as the network's.
#[test]
fn media_without_loss_lose_nothing_of_a_blast() {
    let of = [
        ("hippi-800", 65_000),
        ("sp2", 65_000),
        ("fc-266", 60_000),
        ("sci-sbus", 1_472),
    ];
    for (case, (network, size)) in spread(&attachments(), &of) {
        all_arrived(case, network, 2, (size, 200));
    }
}

/// The lab's root may change its host's queues, as the manual says. What it puts in the place of the gate is replaced when the
/// network next holds the host back, the lab goes on, and its report and its verdict say so.
#[test]
fn another_queue_in_the_place_of_a_gate_is_replaced_and_told() {
    if !has("tc") {
        return;
    }
    let changes = [
        "del dev eth0 root",
        "replace dev eth0 root pfifo limit 1000",
        "del dev eth0 root; tc qdisc add dev eth0 root handle 1: pfifo limit 1000",
    ];
    for (case, change) in spread(&attachments(), &changes) {
        let stage = Stage::new(case);
        let script = format!(
            "part receive > heard & wait_for heard; tc qdisc {change} || exit 7
            on h2 blast h1 1472 5 > sent; sonde lab exec --root h2 -- sh -c 'tc qdisc {change}' || exit 8
            on h2 blast h1 1472 300 > sent; on h2 blast h1 1472 300 > sent; wait; cat heard
            sonde lab exec h2 -- tc qdisc show dev eth0"
        );
        let mut options = vec!["--root", "--hosts", "2", "--network", "ethernet-10"];
        // One of them fails by what the others only tell.
        let is_strict = change == changes[1];
        options.extend(is_strict.then_some("--strict"));
        let code = if is_strict { 125 } else { 0 };
        let (outcome, report) = ended(&stage, &options, &script, code);
        // The second of the great blasts meets the gate again and loses nothing.
        assert!(outcome.part(0, "received") >= 305, "{outcome}");
        assert!(outcome.out.contains("qdisc tbf 1: root"), "{outcome}");
        let rearmed = report["gate_rearmed"].as_u64();
        assert!(rearmed.is_some_and(|n| n > 0), "{report:#}");
        outcome.tells(&["deviated from its model", "restored"]);
    }
}

/// Eight hosts on a TAP each: seven send to one at once.
#[test]
fn media_without_loss_lose_nothing_of_an_incast() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let of = [
        ("hippi-800", 9_000),
        ("fc-266", 9_000),
        ("sci-sbus", 1_472),
        ("allnode", 1_472),
        ("sp2", 9_000),
        ("ultranet", 9_000),
    ];
    // A network of each kind of medium; the last two are of credits as `fc-266` is.
    let some = if is_long() { &of[..] } else { &of[..4] };
    for &(network, size) in some {
        all_arrived(case, network, 8, (size, 60));
    }
}

#[test]
fn the_largest_packets_pass_whole() {
    if !has("ping") {
        return;
    }
    for (case, (network, mtu)) in spread(
        &attachments(),
        &[("hippi-800", 65_280_u32), ("sp2", 65_520)],
    ) {
        let stage = Stage::new(case);
        let script = format!(
            "ping -M do -q -c 3 -i 0.1 -s {} h2 && sonde lab exec --root h2 -- ip -o link show eth0",
            mtu - 28
        );
        let outcome = on_h1(&stage, &["--hosts", "2", "--network", network], &script);
        assert!(outcome.out.contains(&format!(" mtu {mtu} ")), "{outcome}");
        assert!(outcome.out.contains(" 0% packet loss"), "{outcome}");
    }
}
