//! Real programs in a lab: iperf3 at the ceiling of each kind of network, sockperf, ssh, tcpdump, and sixty-four hosts.

use crate::lab::{
    Stage, assert_attachment_lost_nothing, attachments, cases, crossed, has, is_root, path_of,
    report,
};
use sonde_link::Headers;
use sonde_sys::noise::measured;
use sonde_virtual::{Sender, tcp_expected};

/// What iperf3 received, in bits a second, without its first second.
fn iperf3(stage: &Stage, network: &str, profile: &str) -> u64 {
    let script = "sonde lab exec --detach h2 -- iperf3 -s -1 > /dev/null; sleep 0.3; iperf3 -J -O 1 -t 2 -c h2";
    let written = stage.path("report");
    let options = [
        "--hosts",
        "2",
        "--network",
        network,
        "--profile",
        profile,
        "--report",
        &written,
    ];
    let outcome = stage.run(&options, &["sh", "-c", script]).expect(0);
    let result: serde_json::Value =
        serde_json::from_str(&outcome.out).unwrap_or_else(|e| panic!("{e}: {outcome}"));
    let received = result["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap();
    let sent = &result["end"]["sum_sent"]["retransmits"];
    let report = report(&written);
    println!(
        "{network} {profile} {:?}: {received:.0} b/s, {sent} retransmitted, late {} of {}",
        stage.case, report["late"], report["deliveries"]
    );
    if network != "wire" {
        assert_attachment_lost_nothing(&report);
        assert_eq!(report["lost"], serde_json::json!({}), "{report:#}");
    }
    received as u64
}

/// A network of each kind of medium, and the one without a rate; `cargo xtask prove networks` takes all.
const KINDS: [&str; 9] = [
    "wire",
    "ethernet-10",
    "ethernet-100",
    "atm-oc3c",
    "fddi",
    "fc-266",
    "hippi-800",
    "allnode",
    "sci-sbus",
];
/// Where the attachment and the user make a difference, if anywhere: these are run in every case.
const EVERY_CASE: [&str; 2] = ["ethernet-100", "atm-oc3c"];

#[test]
fn iperf3_reaches_what_is_expected_and_no_more_than_the_ceiling() {
    measured(|| {
        if !has("iperf3") {
            return;
        }
        for (number, case) in crossed().into_iter().enumerate() {
            for network in KINDS {
                if number > 0 && !EVERY_CASE.contains(&network) {
                    continue;
                }
                let spec = sonde_link::named(network).expect("a network of the catalogue");
                let ceiling = sonde_link::tcp_max(&spec, Headers::Timestamps);
                let expected = tcp_expected(&spec, &Sender::modern()).ok();
                let stage = Stage::new(case);
                let within = |rate: u64| {
                    rate > 0
                        && ceiling.is_none_or(|ceiling| rate * 1_000 <= ceiling * 1_002)
                        && expected.is_none_or(|expected| rate * 10 >= expected * 9)
                };
                let rate = iperf3(&stage, network, "modern");
                assert!(
                    within(rate),
                    "{network}: {rate} b/s of {expected:?}, at most {ceiling:?}"
                );
                assert_eq!(expected.is_some(), network != "wire", "{network}");
            }
        }
    });
}

/// A window on a long way bounds the rate: 64 KiB in 20 ms are 26.2 Mb/s. Linux lets a smaller window follow the share of
/// data in the receive buffer (tcp_measure_rcv_mss), whatever the route says: 17.8 kB were seen for 16,384.
#[test]
fn a_window_bounds_the_rate_on_a_long_way() {
    measured(|| {
        if !has("iperf3") {
            return;
        }
        for case in attachments() {
            let stage = Stage::new(case);
            for (profile, window) in [("era", 65_535), ("era:window=16384", 16_384 * 5 / 4)] {
                let rate = iperf3(&stage, "wan-100m-20ms", profile);
                let most = window * 8 * 1_000 / 20;
                assert!(
                    rate <= most && rate * 10 >= most * 7,
                    "{profile}: {rate} of {most} b/s"
                );
            }
        }
    });
}

#[test]
fn sockperf_measures_a_round_trip() {
    if !has("sockperf") {
        return;
    }
    for case in attachments() {
        for options in ["", "--tcp"] {
            let stage = Stage::new(case);
            let script = format!(
                "sonde lab exec --detach h2 -- sockperf server {options} -i 10.9.0.2 -p 7000; sleep 0.5; sockperf ping-pong {options} -i 10.9.0.2 -p 7000 -t 1 -m 64"
            );
            let written = stage.path("report");
            let lab = [
                "--hosts",
                "2",
                "--cpus",
                "one",
                "--network",
                "wire:delay=500us",
                "--report",
                &written,
            ];
            let outcome = stage.run(&lab, &["sh", "-c", &script]).expect(0);
            let line = outcome
                .out
                .lines()
                .find(|line| line.contains("percentile 50.000"));
            let p50: f64 = line
                .and_then(|line| line.split_whitespace().last()?.parse().ok())
                .unwrap_or_else(|| panic!("{outcome}"));
            println!(
                "{case:?} {options}: half a round trip {p50} us at the median, 500 us of them delay"
            );
            assert!(p50 >= 500.0, "{outcome}");
            assert_attachment_lost_nothing(&report(&written));
        }
    }
}

/// Half a round trip of 64 B over TCP at the median, in microseconds, and what the lab says of itself.
fn round_trip(stage: &Stage, options: &[&str]) -> (f64, serde_json::Value) {
    let script = "sonde lab exec --detach h2 -- sockperf server --tcp -i 10.9.0.2 -p 7000; sleep 0.5; sockperf ping-pong --tcp -i 10.9.0.2 -p 7000 -t 1 -m 64";
    let written = stage.path("report");
    let usual = ["--hosts", "2", "--network", "ethernet-1g"];
    let options = [&usual[..], &["--report", &written], options].concat();
    let outcome = stage.run(&options, &["sh", "-c", script]).expect(0);
    let line = outcome
        .out
        .lines()
        .find(|line| line.contains("percentile 50.000"));
    let p50 = line.and_then(|line| line.split_whitespace().last()?.parse().ok());
    (p50.unwrap_or_else(|| panic!("{outcome}")), report(&written))
}

#[test]
fn a_round_trip_is_that_of_one_cpu() {
    if !has("sockperf") {
        return;
    }
    measured(|| {
        for case in attachments() {
            let stage = Stage::new(case);
            let (usual, one) = (
                round_trip(&stage, &[]),
                round_trip(&stage, &["--cpus", "one"]),
            );
            println!("{case:?}: {} us by default, {} on one CPU", usual.0, one.0);
            assert!(usual.0 <= 1.3 * one.0, "{case:?}: {} {}", usual.0, one.0);
            assert_eq!(usual.1["cpu_plan"], "auto");
            assert!(usual.1["cpu_moves"].as_u64() >= Some(1), "{:#}", usual.1);
            assert_eq!(
                (&one.1["cpu_plan"], &one.1["cpu_moves"]),
                (&"one".into(), &0.into())
            );
            // A stream has the switch apart, but for a trial now and then.
            iperf3(&stage, "ethernet-1g", "modern");
            let stream = report(&stage.path("report"));
            let part = |name: &str| stream[name].as_u64().unwrap();
            assert!(10 * part("cpu_shared_ns") <= part("span_ns"), "{stream:#}");
        }
    });
}

/// A server on h2 and a client on h1, both as the same user of the lab. Root needs PAM and a folder; an ordinary user needs
/// neither, but a name that is not locked, which the hosts have.
fn ssh(stage: &Stage, root: bool) {
    let (as_root, prepare, pam, user) = if root {
        ("--root", "mkdir -p /run/sshd;", "yes", "root")
    } else {
        ("", "", "no", "$(id -un)")
    };
    let script = format!(
        "umask 077; mkdir -p $D/keys && cd $D/keys || exit 70
        ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f user && cp user.pub authorized || exit 71
        sonde lab exec {as_root} --detach h2 -- sh -c '{prepare} exec {sshd} -D -e -f /dev/null -p 2222 -h $D/keys/host -o PidFile=none -o StrictModes=no -o UsePAM={pam} -o AuthorizedKeysFile=$D/keys/authorized 2> log'
        for i in $(seq 100); do grep -q listening log 2>/dev/null && break; sleep 0.05; done
        ssh -p 2222 -i user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes {user}@h2 'hostname; cat; exit 5' < user.pub > said
        code=$?; cat said; test $code = 5 || {{ cat log >&2; exit 72; }}",
        sshd = path_of("sshd").unwrap().display(),
    );
    let options: &[&str] = if root {
        &["--root", "--hosts", "2"]
    } else {
        &["--hosts", "2"]
    };
    let call = stage
        .run(options, &["sh", "-c", &script])
        .env("D", &stage.folder);
    let outcome = call.env("SUDO_UID", "").env("SUDO_GID", "").expect(0);
    assert!(outcome.out.starts_with("h2\nssh-ed25519 "), "{outcome}");
}

#[test]
fn ssh_goes_from_host_to_host() {
    if !has("sshd") || !has("ssh") || !has("ssh-keygen") {
        return;
    }
    for case in cases() {
        if is_root() && !case.is_user {
            ssh(&Stage::new(case), true);
        }
        ssh(&Stage::new(case), false);
    }
}

/// The scripts of the manual, as who may run them: the first by anyone, root too.
#[test]
fn the_manuals_scripts_for_ssh_print_h2() {
    if !has("sshd") || !has("ssh") || !has("ssh-keygen") {
        return;
    }
    let page = include_str!("../../../docs/lab.md");
    let script = |name: &str| {
        let after = page.split(&format!("Write this as `{name}`")).nth(1);
        let block = after.and_then(|text| text.split("```sh\n").nth(1));
        let text = block.and_then(|text| text.split("```").next());
        text.expect("the manual has the script")
    };
    for case in crossed() {
        let stage = Stage::new(case);
        let mut wanted = vec![("ssh-user.sh", vec!["--hosts", "2"])];
        if is_root() && !case.is_user {
            wanted.push(("ssh-root.sh", vec!["--hosts", "2", "--root"]));
        }
        for (name, options) in wanted {
            std::fs::write(stage.folder.join(name), script(name)).unwrap();
            let call = stage.run(&options, &["sh", name]);
            let outcome = call.env("SUDO_UID", "").env("SUDO_GID", "").expect(0);
            assert_eq!(outcome.out, "h2\n", "{name} {case:?}");
        }
    }
}

#[test]
fn tcpdump_reads_a_capture() {
    if !has("tcpdump") || !has("ping") {
        return;
    }
    for case in cases() {
        for network in ["ethernet-100", "atm-oc3c"] {
            let stage = Stage::new(case);
            let capture = stage.path("h2.pcap");
            let options = [
                "--hosts",
                "3",
                "--network",
                network,
                "--pcap",
                &format!("h2={capture}"),
            ];
            stage
                .run(
                    &options,
                    &["sh", "-c", "ping -c 3 -i 0.1 -s 1000 h2 && ping -c 1 h3"],
                )
                .expect(0);
            let mut call = stage.call(&path_of("tcpdump").unwrap());
            call.command.args(["-n", "-r", &capture]);
            let read = call.expect(0);
            let count = |text: &str| read.out.lines().filter(|line| line.contains(text)).count();
            assert_eq!(count("10.9.0.1 > 10.9.0.2: ICMP echo request"), 3, "{read}");
            assert_eq!(count("10.9.0.2 > 10.9.0.1: ICMP echo reply"), 3, "{read}");
            assert_eq!(count("length 1008"), 6, "{read}");
            assert_eq!(count("10.9.0.3:"), 0, "another host's frames: {read}");
            assert!(
                count("ARP") >= 1 && !read.err.contains("truncated"),
                "{read}"
            );
        }
    }
}

#[test]
fn sixty_four_hosts() {
    if !has("ping") {
        return;
    }
    for case in crossed() {
        for network in ["ethernet-1g", "atm-oc3c"] {
            let stage = Stage::new(case);
            let empty = stage
                .run(&["--hosts", "64", "--network", network], &["true"])
                .expect(0);
            let written = stage.path("report");
            let options = [
                "--hosts",
                "64",
                "--network",
                network,
                "--each",
                "--report",
                &written,
            ];
            let pinged = stage
                .run(&options, &["ping", "-c", "1", "-W", "5", "h1"])
                .expect(0);
            assert_eq!(
                pinged.out.matches(" 0% packet loss").count(),
                64,
                "{pinged}"
            );
            println!(
                "{network} {case:?}: up and down {:?}, with 64 pings {:?}",
                empty.took, pinged.took
            );
            assert_attachment_lost_nothing(&report(&written));
        }
    }
}
