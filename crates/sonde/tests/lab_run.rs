//! `sonde lab run` and `exec` as a user meets them: codes, streams, folders, ids, signals, interfaces and settings.

use crate::lab::{
    Case, Outcome, Stage, USER, assert_attachment_lost_nothing, attached, cases, crossed,
    eventually, has, is_long, is_root, marked, report, spread,
};
use sonde_link::ledger::{Entry, Reader};
use std::os::unix::process::CommandExt;
use std::path::Path;

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

fn sh(stage: &Stage, options: &[&str], script: &str) -> Outcome {
    stage.run(options, &["sh", "-c", script]).expect(0)
}

#[test]
fn the_code_is_the_programs() {
    for case in cases() {
        let stage = Stage::new(case);
        for code in [0, 1, 7, 255] {
            stage
                .run(&[], &["sh", "-c", &format!("exit {code}")])
                .expect(code);
        }
        stage.run(&[], &["sh", "-c", "kill -9 $$"]).expect(128 + 9);
        stage
            .run(&[], &["sh", "-c", "kill -TERM $$"])
            .expect(128 + SIGTERM);
        let missing = stage.run(&[], &["no-such-program"]).expect(127);
        missing.tells(&["h1", "no-such-program", "install it"]);
        let refused = stage.run(&[], &["/etc/passwd"]).output();
        assert_eq!(refused.code, 126, "{refused}");
        refused.tells(&["h1", "/etc/passwd", "executable"]);
    }
}

#[test]
fn each_host_runs_it_and_a_failure_is_told() {
    for case in attached("tap") {
        let stage = Stage::new(case);
        let all = stage
            .run(&["--hosts", "5", "--each"], &["hostname"])
            .expect(0);
        let mut names: Vec<_> = all.out.lines().collect();
        names.sort_unstable();
        assert_eq!(names, ["h1", "h2", "h3", "h4", "h5"], "{all}");
        let one = "test $(hostname) != h3 || exit 42";
        stage
            .run(&["--hosts", "4", "--each"], &["sh", "-c", one])
            .expect(42);
        stage
            .run(&["--hosts", "3", "--each"], &["no-such-program"])
            .expect(127);
    }
}

#[test]
fn streams_pass_through() {
    for case in cases() {
        let stage = Stage::new(case);
        let text: Vec<u8> = (0..3_000_000u32).map(|i| b'a' + (i % 26) as u8).collect();
        let through = stage.run(&[], &["cat"]).input(&text).expect(0);
        assert!(
            through.out.as_bytes() == text,
            "{} of {} bytes",
            through.out.len(),
            text.len()
        );
        let both = sh(&stage, &[], "echo to out; echo to err >&2");
        assert_eq!(both.out, "to out\n");
        assert!(
            both.err.contains("to err\n") && !both.out.contains("err"),
            "{both}"
        );
        // The end of the input is the end of the input in the host.
        assert_eq!(stage.run(&[], &["wc", "-c"]).expect(0).out.trim(), "0");
        // On another host too.
        let far = stage
            .run(&[], &["sonde", "lab", "exec", "h2", "--", "md5sum"])
            .input(&text)
            .expect(0);
        let near = stage.run(&[], &["md5sum"]).input(&text).expect(0);
        assert_eq!(far.out, near.out);
    }
}

#[test]
fn folder_and_environment_are_the_callers() {
    for case in cases() {
        let stage = Stage::new(case);
        let folder = stage.folder.to_str().unwrap();
        assert_eq!(sh(&stage, &[], "pwd").out.trim(), folder);
        sh(&stage, &[], "echo written > here");
        let written = std::fs::read_to_string(stage.folder.join("here")).unwrap();
        assert_eq!(written, "written\n");
        let call = stage.run(
            &[],
            &[
                "sh",
                "-c",
                "printf %s \"$ODD\"; printf %s \"$HOSTNAME$SONDE_HOST$SONDE_HOSTS\"",
            ],
        );
        let odd = call
            .env("ODD", "a b\n=\"ü")
            .env("HOSTNAME", "outside")
            .expect(0);
        assert_eq!(odd.out, "a b\n=\"üh1h14");
    }
}

#[test]
fn a_folder_below_tmp_is_kept_though_tmp_is_private() {
    for case in cases() {
        let stage = Stage::new(case);
        let below = Path::new("/tmp").join(stage.folder.file_name().unwrap());
        std::fs::create_dir(&below).unwrap();
        std::fs::write(below.join("seen"), "here\n").unwrap();
        let beside = below.with_extension("beside");
        std::fs::write(&beside, "").unwrap();
        let kept = stage.run(
            &["--hosts", "2"],
            &[
                "sh",
                "-c",
                "pwd; cat seen; ls -A /tmp | grep -c beside; sonde lab exec h2 -- cat seen",
            ],
        );
        let kept = kept.dir(&below).output();
        std::fs::remove_dir_all(&below).unwrap();
        std::fs::remove_file(&beside).unwrap();
        assert_eq!(
            (kept.code, kept.out),
            (0, format!("{}\nhere\n0\nhere\n", below.display())),
            "{}",
            kept.err
        );
    }
}

#[test]
fn a_host_has_a_name_and_knows_the_others() {
    for case in cases() {
        let stage = Stage::new(case);
        let names = sh(
            &stage,
            &["--hosts", "3"],
            "hostname; cat /etc/hostname; getent ahostsv4 h1 h2 h3 | grep -c STREAM; getent hosts h3",
        );
        let words: Vec<_> = names.out.split_whitespace().collect();
        assert_eq!(words, ["h1", "h1", "3", "10.9.0.3", "h3"], "{names}");
        assert_eq!(
            sh(
                &stage,
                &["--hosts", "3"],
                "sonde lab exec h3 -- cat /etc/hostname"
            )
            .out,
            "h3\n"
        );
    }
}

#[test]
fn programs_are_an_ordinary_user_unless_root_is_asked_for() {
    for case in cases() {
        let stage = Stage::new(case);
        let own = sonde_sys::process::ids().0;
        let expected = match (case.is_user, own) {
            (true, _) => USER,
            (false, 0) => 1_000,
            (false, own) => own,
        };
        let ask = "id -u; grep CapEff /proc/self/status; sonde lab exec h2 -- id -u; sonde lab exec --root h2 -- id -u";
        let call = stage
            .run(&[], &["sh", "-c", ask])
            .env("SUDO_UID", "")
            .env("SUDO_GID", "");
        let ids = call.expect(0);
        let words: Vec<_> = ids.out.split_whitespace().collect();
        let user = expected.to_string();
        assert_eq!(
            words,
            [&user, "CapEff:", "0000000000000000", &user, "0"],
            "{ids}"
        );
        if is_root() && !case.is_user {
            let call = stage
                .run(&[], &["id", "-u"])
                .env("SUDO_UID", "4321")
                .env("SUDO_GID", "4321");
            assert_eq!(call.expect(0).out.trim(), "4321");
        }
        // Root of the lab may change the host's network, the ordinary user may not.
        let change = "id -u; ip link set dev eth0 txqueuelen 77 && ip link show dev eth0";
        let root = sh(&stage, &["--root"], change);
        assert!(
            root.out.starts_with("0\n") && root.out.contains("qlen 77"),
            "{root}"
        );
        assert_ne!(stage.run(&[], &["sh", "-c", change]).output().code, 0);
    }
}

#[test]
fn hosts_share_neither_folders_nor_processes() {
    for case in cases() {
        let stage = Stage::new(case);
        let script = "touch /tmp/mine /dev/shm/mine || exit 1
            sleep 40 & echo pid $!
            tr '\\0' ' ' < /proc/1/cmdline; echo
            sonde lab exec h2 -- sh -c 'ls -A /tmp /dev/shm; ls -d /proc/[0-9]*; tr \"\\0\" \" \" < /proc/1/cmdline'
            kill $!";
        let seen = sh(&stage, &["--hosts", "2"], script);
        assert!(!seen.out.contains("mine"), "{seen}");
        assert_eq!(seen.out.matches("--sonde-lab-host").count(), 2, "{seen}");
        // init, sh, ls: and neither the sleep of h1 nor the machine's other processes.
        assert!(seen.out.matches("/proc/").count() < 8, "{seen}");
        assert!(!Path::new("/tmp/mine").exists() && !Path::new("/dev/shm/mine").exists());
        let modes = sh(
            &stage,
            &[],
            "stat -c %a /tmp /dev/shm; test -w /dev/null; test -e /dev/ptmx; mktemp",
        );
        assert!(modes.out.starts_with("1777\n1777\n/tmp/"), "{modes}");
    }
}

#[test]
fn programs_start_on_other_hosts() {
    for case in cases() {
        let stage = Stage::new(case);
        let passed = sh(
            &stage,
            &["--hosts", "2"],
            "sonde lab exec h2 -- sh -c 'hostname; exit 6'; echo code $?",
        );
        assert_eq!(passed.out, "h2\ncode 6\n", "{passed}");
        let failed = sh(
            &stage,
            &["--hosts", "2"],
            "sonde lab exec h2 -- no-such; echo $?; sonde lab exec h3 -- true; echo $?; sonde lab exec two -- true; echo $?",
        );
        assert_eq!(failed.out, "127\n125\n64\n", "{failed}");
        failed.tells(&[
            "h2: there is no program `no-such`",
            "is there a host h3?",
            "`two` is not a host of a lab: write h1",
        ]);
        // The folder goes along, and so does the environment.
        let there = sh(
            &stage,
            &["--hosts", "2"],
            "cd /usr && A=b sonde lab exec h2 -- sh -c 'pwd; echo $A'",
        );
        assert_eq!(there.out, "/usr\nb\n");
    }
    let stage = Stage::new(Case::own("veth"));
    let outside = stage
        .sonde(&["lab", "exec", "h1", "--", "true"])
        .expect(125);
    outside.tells(&["is this a program in a lab"]);
}

#[test]
fn a_detached_program_outlives_its_starter_and_ends_with_the_lab() {
    for case in cases() {
        let stage = Stage::new(case);
        let script =
            "sonde lab exec --detach h2 -- sh -c 'sleep 0.3; echo late > late; exec sleep 1000'
            test ! -e late && echo early
            for i in $(seq 100); do test -e late && break; sleep 0.05; done
            cat late";
        let call = stage.run(&["--hosts", "2"], &["sh", "-c", script]).start();
        let mark = call.mark.clone();
        let outcome = call.finish();
        assert_eq!(
            (outcome.code, outcome.out.as_str()),
            (0, "early\nlate\n"),
            "{outcome}"
        );
        let left = eventually(|| marked(&mark), Vec::is_empty);
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_program_on_another_host_ends_with_its_starter() {
    for case in attached("veth") {
        let stage = Stage::new(case);
        let script = "sonde lab exec h2 -- sleep 1000 & sleep 0.3
            sonde lab exec h2 -- sh -c 'ls /proc/*/comm | xargs grep -l sleep 2>/dev/null | wc -l'
            kill -9 $!; sleep 0.3
            sonde lab exec h2 -- sh -c 'ls /proc/*/comm | xargs grep -l sleep 2>/dev/null | wc -l'";
        let seen = sh(&stage, &["--hosts", "2"], script);
        assert_eq!(seen.out, "1\n0\n", "{seen}");
    }
}

#[test]
fn an_interrupt_goes_to_the_program_and_a_second_one_ends_the_lab() {
    let signals = [("HUP", SIGHUP), ("INT", SIGINT), ("TERM", SIGTERM)];
    for (at, case) in cases().into_iter().enumerate() {
        // Each of them in the long tier, else each once.
        let is_turn = |number: usize| is_long() || number % 2 == at % 2;
        let own = signals
            .iter()
            .enumerate()
            .filter(|(number, _)| is_turn(*number));
        for (_, &(name, signal)) in own {
            let stage = Stage::new(case);
            let script = format!(
                "trap 'echo caught; exit 9' {name}; echo ready; while :; do sleep 0.02; done"
            );
            let mut running = stage.run(&["--hosts", "2"], &["sh", "-c", &script]).start();
            running.wait_for("ready");
            sonde_sys::process::kill(running.pid(), signal).unwrap();
            let ended = running.finish();
            assert_eq!((ended.code, ended.out.as_str()), (9, "caught\n"), "{ended}");
        }
        let stage = Stage::new(case);
        let deaf = "trap '' INT; echo ready; while :; do sleep 0.02; done";
        let mut running = stage.run(&["--hosts", "2"], &["sh", "-c", deaf]).start();
        running.wait_for("ready");
        let mark = running.mark.clone();
        sonde_sys::process::kill(running.pid(), SIGINT).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(
            running.is_alive(),
            "the program does not mind one interrupt"
        );
        sonde_sys::process::kill(running.pid(), SIGINT).unwrap();
        let ended = running.finish();
        assert_eq!(ended.code, 128 + SIGINT, "{ended}");
        assert!(eventually(|| marked(&mark), Vec::is_empty).is_empty());
    }
}

/// A shell sends an interrupt to the whole foreground group; the lab's own processes must not be in it.
#[test]
fn an_interrupt_to_the_group_does_not_tear_the_lab_down() {
    for case in attached("tap") {
        let stage = Stage::new(case);
        let script = "trap 'sonde lab exec h2 -- hostname; exit 3' INT; echo ready; while :; do sleep 0.02; done";
        let mut call = stage.run(&["--hosts", "2"], &["sh", "-c", script]);
        call.command.process_group(0);
        let mut running = call.start();
        running.wait_for("ready");
        sonde_sys::process::kill_group(running.pid(), SIGINT).unwrap();
        let ended = running.finish();
        assert_eq!((ended.code, ended.out.as_str()), (3, "h2\n"), "{ended}");
    }
}

#[test]
fn full_size_frames_pass_and_larger_ones_do_not() {
    if !has("ping") {
        return;
    }
    let networks = [
        ("ethernet-100", 1_500),
        ("wire", 1_500),
        ("atm-oc3c", 9_180),
        ("atm-oc3c:mtu=65280", 65_280),
    ];
    for (case, (network, mtu)) in spread(&crossed(), &networks) {
        let stage = Stage::new(case);
        let script = format!(
            "id -u; ping -c 3 -i 0.1 -W 3 h2 && ping -c 2 -i 0.1 -W 3 -M do -s {} h2 || exit 1
            ping -c 1 -W 1 -M do -s {} h2 && exit 2; exit 0",
            mtu - 28,
            mtu - 27
        );
        let report_path = stage.path("report");
        let options = [
            "--hosts",
            "2",
            "--network",
            network,
            "--report",
            &report_path,
        ];
        let pinged = sh(&stage, &options, &script);
        assert!(
            !pinged.out.starts_with("0\n"),
            "as an ordinary user: {pinged}"
        );
        assert!(
            pinged.out.contains("5 received") || pinged.out.matches(" 0% packet loss").count() == 2,
            "{pinged}"
        );
        let report = report(&report_path);
        assert_attachment_lost_nothing(&report);
        assert_eq!(report["lost"], serde_json::json!({}), "{report:#}");
    }
}

#[test]
fn settings_are_those_of_the_profile() {
    const KEYS: &str = "tcp_sack tcp_timestamps tcp_window_scaling tcp_moderate_rcvbuf tcp_no_metrics_save tcp_ecn tcp_rmem";
    let read = format!(
        "for key in {KEYS}; do cat /proc/sys/net/ipv4/$key; done; ip route show dev eth0; cat /proc/sys/net/ipv6/conf/all/disable_ipv6; ip -6 addr show"
    );
    let profiles = [
        (
            "modern",
            "1 1 1 1 1 0 4096 131072 6291456",
            "congctl cubic",
            None,
        ),
        (
            "era",
            "0 0 0 0 1 0 4096 131070 131070",
            "congctl reno",
            Some("window 65535"),
        ),
        (
            "era:window=16384",
            "0 0 0 0 1 0 4096 32768 32768",
            "congctl reno",
            Some("window 16384"),
        ),
    ];
    for (case, (profile, values, congestion, window)) in spread(&cases(), &profiles) {
        let stage = Stage::new(case);
        for on_h2 in ["", "sonde lab exec h2 -- "] {
            let found = stage
                .run(
                    &["--hosts", "2", "--profile", profile],
                    &["sh", "-c", &format!("{on_h2}sh -c '{read}'")],
                )
                .expect(0);
            let words = found.out.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.starts_with(values), "{profile}: {found}");
            assert!(
                words.contains(congestion) && window.is_none_or(|window| words.contains(window)),
                "{profile}: {found}"
            );
            assert!(!words.contains("inet6"), "{found}");
            if Path::new("/proc/sys/net/ipv6").exists() {
                assert!(words.ends_with(" 1"), "{found}");
            }
        }
    }
}

/// A TAP is told the speed of its line; a veth takes none and keeps the kernel's.
#[test]
fn ethtool_says_the_speed_of_the_line() {
    if !has("ethtool") {
        return;
    }
    for case in crossed() {
        let stage = Stage::new(case);
        let lines = [
            ("ethernet-10", "10Mb/s", "Half"),
            ("ethernet-100", "100Mb/s", "Full"),
            ("atm-oc3c", "156Mb/s", "Full"),
            ("atm-ds1", "2Mb/s", "Full"),
            ("wire", "Unknown!", "Full"),
        ];
        // A veth says the same of each.
        let is_one = case.attachment == "veth" && !is_long();
        for (network, speed, duplex) in lines.into_iter().take(if is_one { 1 } else { 5 }) {
            let found = sh(&stage, &["--network", network], "ethtool eth0").out;
            let value = |key: &str| {
                let line = found.lines().find_map(|line| line.trim().strip_prefix(key));
                line.unwrap_or_else(|| panic!("{key} {found}")).trim()
            };
            let want = if case.attachment == "tap" {
                (speed, duplex)
            } else {
                ("10000Mb/s", "Full")
            };
            assert_eq!((value("Speed:"), value("Duplex:")), want, "{network}");
        }
    }
}

#[test]
fn an_idle_network_has_no_frames() {
    for case in crossed() {
        let stage = Stage::new(case);
        let (ledger, pcap, written) = (
            stage.path("ledger"),
            stage.path("pcap"),
            stage.path("report"),
        );
        let options = [
            "--hosts",
            "3",
            "--ledger",
            &ledger,
            "--pcap",
            &format!("h2={pcap}"),
            "--report",
            &written,
        ];
        sh(&stage, &options, "sleep 2.5");
        let report = report(&written);
        assert_eq!(
            (report["taken"].as_u64(), report["deliveries"].as_u64()),
            (Some(0), Some(0)),
            "{report:#}"
        );
        assert_eq!(
            std::fs::metadata(&pcap).unwrap().len(),
            24,
            "a header and no frame"
        );
        let entries: Vec<_> = Reader::new(std::fs::File::open(&ledger).unwrap())
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(
            matches!(entries.as_slice(), [Entry::End { .. }]),
            "{entries:?}"
        );
    }
}
