//! Wrong input: each message says what is wrong and what to do, and the exit code says whose fault it is.

use crate::lab;
use crate::lab::{Case, Stage, cases, has, is_root, path_of, skip};
use sonde_sys::namespace::{IdMap, write_id_maps};
use std::os::unix::fs::PermissionsExt;

const USAGE: i32 = 64;
const PASSING: i32 = 125;

/// `sonde lab run OPTIONS -- true` ends with `code` and tells all of `words`.
fn refused(options: &[&str], code: i32, words: &[&str]) {
    let stage = Stage::new(Case::own("veth"));
    refused_on(&stage, options, code, words);
}

fn refused_on(stage: &Stage, options: &[&str], code: i32, words: &[&str]) {
    let arguments = [&["lab", "run"], options, &["--", "true"]].concat();
    let outcome = stage.sonde(&arguments).limit(20).expect(code);
    outcome.tells(words);
    assert!(outcome.out.is_empty(), "{outcome}");
    assert!(!outcome.err.contains("panicked"), "{outcome}");
}

#[test]
fn networks_that_are_not_there() {
    refused(
        &["--network", "ethernet-1t"],
        USAGE,
        &["no network `ethernet-1t`", "ethernet-1g", "sonde lab list"],
    );
    refused(&["--network", ""], USAGE, &["no network ``"]);
    refused(
        &["--network", "./nowhere.toml"],
        USAGE,
        &["cannot read", "./nowhere.toml", "No such file"],
    );
    refused(&["--network", "/etc"], USAGE, &["/etc", "irectory"]);
}

#[test]
fn knobs_that_do_not_turn() {
    refused(
        &["--network", "ethernet-100:speed=3"],
        USAGE,
        &["`speed=3` is not a knob", "rate", "mtu"],
    );
    refused(
        &["--network", "ethernet-100:mtu"],
        USAGE,
        &["`mtu`", "knob=value"],
    );
    refused(
        &["--network", "ethernet-100:mtu=big"],
        USAGE,
        &["`mtu=big`", "whole number"],
    );
    refused(
        &["--network", "ethernet-100:rate=fast"],
        USAGE,
        &["rate=fast"],
    );
    refused(
        &["--network", "ethernet-100:rate=1bit"],
        USAGE,
        &["line.rate", "1kbit to"],
    );
    refused(
        &["--network", "ethernet-100:loss=200%"],
        USAGE,
        &["path.loss", "at most 1"],
    );
    refused(
        &["--network", "ethernet-100:vc=svc"],
        USAGE,
        &["`vc=svc`", "no [circuits]"],
    );
    refused(
        &["--network", "atm-oc3c:vc=maybe"],
        USAGE,
        &["vc=maybe", "pvc", "svc"],
    );
    refused(
        &["--network", "ethernet-100:mtu=20"],
        USAGE,
        &["`mtu`", "68"],
    );
}

#[test]
fn files_with_mistakes_name_the_line() {
    let stage = Stage::new(Case::own("veth"));
    let good = include_str!("../../link/catalogue/ethernet-100.toml");
    let write = |name: &str, text: String| {
        let path = stage.path(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let line_of = |text: &str, wanted: &str| {
        text.lines()
            .position(|line| line.starts_with(wanted))
            .unwrap()
            + 1
    };

    let text = good.replace("length_m", "lenght_m");
    let line = format!("line {}", line_of(&text, "lenght_m"));
    let path = write("unknown.toml", text);
    refused_on(
        &stage,
        &["--network", &path],
        USAGE,
        &[&path, &line, "lenght_m", "length_m"],
    );

    let text = good.replace("rate = \"100Mbit\"", "rate = \"900Gbit\"");
    let line = format!("line {}", line_of(&text, "rate = "));
    let path = write("fast.toml", text);
    refused_on(
        &stage,
        &["--network", &path],
        USAGE,
        &[&path, &line, "line.rate", "800Gbit"],
    );

    let path = write("broken.toml", good.replace("[switch]", "[switch"));
    refused_on(&stage, &["--network", &path], USAGE, &[&path, "line "]);

    let path = write("empty.toml", String::new());
    refused_on(&stage, &["--network", &path], USAGE, &[&path, "name"]);

    // And a good one runs, by a relative path too.
    write(
        "good.toml",
        good.replace("name = \"ethernet-100\"", "name = \"mine\""),
    );
    stage
        .sonde(&[
            "lab",
            "run",
            "--hosts",
            "2",
            "--network",
            "./good.toml:rate=10Mbit",
            "--",
            "true",
        ])
        .expect(0);
}

#[test]
fn an_mtu_that_no_interface_carries() {
    let stage = Stage::new(Case::own("veth"));
    let path = stage.path("own.toml");
    std::fs::copy(
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../link/catalogue/ethernet-100.toml"
        ),
        &path,
    )
    .unwrap();
    let selector = format!("{path}:mtu=65530");
    let arguments = ["lab", "run", "--network", &selector, "--", "true"];
    let outcome = stage.sonde(&arguments).limit(20).output();
    assert!([USAGE, PASSING].contains(&outcome.code), "{outcome}");
    outcome.tells(&["65530", "65521", "lower it", ":mtu=9000"]);
}

#[test]
fn numbers_out_of_range() {
    for hosts in ["0", "1", "257", "65535"] {
        refused(&["--hosts", hosts], USAGE, &["2 to 256 hosts", hosts]);
    }
    refused(&["--hosts", "many"], USAGE, &["--hosts", "many"]);
    refused(&["--hosts", "-1"], USAGE, &["-1"]);
    refused(&["--hosts", "65536"], USAGE, &["65536"]);
}

#[test]
fn captures_of_hosts_that_are_not_there() {
    let stage = Stage::new(Case::own("veth"));
    for host in ["h9", "h3"] {
        let option = format!("{host}={}", stage.path("capture"));
        refused_on(
            &stage,
            &["--hosts", "2", "--pcap", &option],
            USAGE,
            &[host, "h1 to h2"],
        );
    }
    refused_on(&stage, &["--pcap", "h0=x"], USAGE, &["`h0` is not a host"]);
    refused_on(
        &stage,
        &["--pcap", "2=x"],
        USAGE,
        &["`2` is not a host", "h1, h2"],
    );
    refused_on(&stage, &["--pcap", "h2"], USAGE, &["HOST=FILE"]);
    assert_eq!(
        std::fs::read_dir(&stage.folder).unwrap().count(),
        0,
        "nothing was written"
    );
}

#[test]
fn plans_profiles_and_attachments_that_are_not_there() {
    refused(
        &["--cpus", "half"],
        USAGE,
        &["`half`", "`one`, `split` or `free`"],
    );
    refused(&["--profile", "old"], USAGE, &["`old`", "`modern`, `era`"]);
    refused(
        &["--profile", "era:window=1000000"],
        USAGE,
        &["1000000", "65535"],
    );
    refused(&["--attachment", "bridge"], USAGE, &["bridge", "tap"]);
    refused(&["--seed", "x"], USAGE, &["--seed"]);
    refused(&["--no-such-option"], USAGE, &["--no-such-option"]);
}

#[test]
fn no_program() {
    let stage = Stage::new(Case::own("veth"));
    stage
        .sonde(&["lab", "run"])
        .expect(USAGE)
        .tells(&["required"]);
    stage
        .sonde(&["lab", "run", "--"])
        .expect(USAGE)
        .tells(&["required"]);
    stage
        .sonde(&["lab", "exec", "h1"])
        .expect(USAGE)
        .tells(&["required"]);
    // An empty name is a program that is not there.
    let empty = stage.sonde(&["lab", "run", "--", ""]).output();
    assert!([125, 127].contains(&empty.code), "{empty}");
    // A shell wants a terminal, which a test's standard input is not.
    stage
        .sonde(&["lab", "shell"])
        .expect(USAGE)
        .tells(&["terminal", "sonde lab run"]);
}

#[test]
fn a_tap_device_that_is_none() {
    refused(
        &["--attachment", "tap", "--tun", "/dev/null"],
        PASSING,
        &["/dev/null"],
    );
    refused(
        &["--attachment", "tap", "--tun", "/nowhere/tun"],
        PASSING,
        &["/nowhere/tun", "No such file"],
    );
    // Where the attachment may be chosen, the lab runs on the other and says so.
    let stage = Stage::new(Case::own("veth"));
    let outcome = stage
        .sonde(&[
            "lab",
            "run",
            "--hosts",
            "2",
            "--tun",
            "/nowhere/tun",
            "--",
            "true",
        ])
        .expect(0);
    outcome.tells(&["veth", "/nowhere/tun"]);
    if let Some(case) = cases().into_iter().find(|case| case.is_user) {
        let stage = Stage::new(case);
        let node = stage.path("closed");
        std::fs::write(&node, "").unwrap();
        std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o600)).unwrap();
        let asked = [
            "lab",
            "run",
            "--attachment",
            "tap",
            "--tun",
            &node,
            "--",
            "true",
        ];
        stage
            .sonde(&asked)
            .expect(PASSING)
            .tells(&[&node, "Permission denied"]);
    }
}

#[test]
fn outputs_that_cannot_be_written() {
    let away = "/nowhere/at/all";
    refused(
        &["--ledger", away],
        PASSING,
        &["cannot write", away, "No such file"],
    );
    refused(
        &["--pcap", "h1=/nowhere/at/all"],
        PASSING,
        &["cannot write", away],
    );
    refused(&["--ledger", "/proc/version"], PASSING, &["ledger"]);
    let stage = Stage::new(Case::own("veth"));
    let report = stage
        .sonde(&["lab", "run", "--hosts", "2", "--report", away, "--", "true"])
        .expect(PASSING);
    report.tells(&["cannot write", away]);
    // A full disk is told, not passed over.
    let full = stage
        .sonde(&[
            "lab",
            "run",
            "--hosts",
            "2",
            "--ledger",
            "/dev/full",
            "--",
            "true",
        ])
        .expect(PASSING);
    full.tells(&["ledger", "No space left"]);
    let full = stage
        .sonde(&[
            "lab",
            "run",
            "--hosts",
            "2",
            "--pcap",
            "h1=/dev/full",
            "--",
            "true",
        ])
        .expect(PASSING);
    full.tells(&["the capture /dev/full", "No space left"]);
}

/// Root of a user namespace that may have no further one and holds no capability is as badly off as an ordinary user
/// where the administrator forbids them.
#[test]
fn no_user_namespace_to_be_had() {
    if !has("unshare") || !has("setpriv") {
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces || exit 77
        exec setpriv --bounding-set -all --inh-caps -all -- \"$0\" lab run --hosts 2 -- true";
    let mut call = stage.call(&path_of("unshare").unwrap());
    call.command
        .args(["-Ur", "sh", "-c", forbid])
        .arg(lab::sonde());
    let outcome = call.output();
    if outcome.code == 77 || outcome.err.contains("unshare failed") {
        skip("a user namespace in which the limit can be set");
        return;
    }
    assert_eq!(outcome.code, PASSING, "{outcome}");
    outcome.tells(&["user.max_user_namespaces", "sysctl"]);
}

/// Root needs one too: without it the lab's root would be the machine's.
#[test]
fn root_where_user_namespaces_are_forbidden() {
    if !is_root() || !has("unshare") {
        skip("root");
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    // The map that is written last. A shell that starts between the two takes itself for set-user-id, and gives up its
    // capabilities, unless `-p` has it keep its user.
    let forbid = "until grep -q . /proc/self/gid_map; do sleep 0.01; done
        echo 0 > /proc/sys/user/max_user_namespaces || exit 77
        exec \"$0\" lab run --hosts 2 --attachment veth -- true";
    let mut call = stage.call(&path_of("unshare").unwrap());
    call.command
        .args(["-U", "--keep-caps", "sh", "-p", "-c", forbid])
        .arg(lab::sonde());
    let running = call.limit(20).start();
    let all = [IdMap {
        inside: 0,
        outside: 0,
        count: 65_536,
    }];
    let map = || write_id_maps(running.pid(), &all, &all, false);
    // Refused until the process has left its first namespace.
    let mapped = lab::eventually(map, Result::is_ok);
    assert!(mapped.is_ok(), "{mapped:?}");
    let outcome = running.finish();
    assert_eq!(outcome.code, PASSING, "{outcome}");
    outcome.tells(&["user.max_user_namespaces", "sysctl"]);
}

#[test]
fn a_script_of_many_lines_is_taken() {
    let stage = Stage::new(Case::own("veth"));
    let script = stage.path("many");
    std::fs::write(&script, "900s link h1 up\n".repeat(20_000)).unwrap();
    stage
        .sonde(&[
            "lab", "run", "--hosts", "2", "--script", &script, "--", "true",
        ])
        .limit(30)
        .expect(0);
    std::fs::write(&script, "900s link h1 up\n".repeat(100_000)).unwrap();
    let options = ["--script", script.as_str()];
    refused_on(&stage, &options, USAGE, &[&script, "longer than 1024 KiB"]);
}
