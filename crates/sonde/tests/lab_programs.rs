//! Real programs in a lab: sockperf, ssh, tcpdump, what moves files today, and sixty-four hosts.

use crate::lab::{
    Stage, assert_attachment_lost_nothing, attachments, cases, crossed, has, is_root, path_of,
    report, skip, spread,
};
use std::path::Path;

const FILES_TODAY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../plans/examples/files-today"
);

#[test]
fn sockperf_measures_a_round_trip() {
    if !has("sockperf") {
        return;
    }
    for (case, options) in spread(&attachments(), &["", "--tcp"]) {
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
    for (case, network) in spread(&cases(), &["ethernet-100", "atm-oc3c"]) {
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

/// Each script compares the copy with the file by their hashes, and ends with 77 where a program is missing.
#[test]
fn what_moves_files_today_moves_them_whole() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    for (name, needs_root) in [
        ("scp", false),
        ("rsync", false),
        ("tar-ssh", false),
        ("nginx-curl", false),
        ("nfs4-ganesha", true),
    ] {
        if needs_root && (!is_root() || case.is_user) {
            skip("root, whose lab has hosts with root's rights");
            continue;
        }
        let stage = Stage::new(case);
        let script = Path::new(FILES_TODAY).join(format!("{name}.sh"));
        let mut options = vec!["--hosts", "2", "--network", "ethernet-100"];
        options.extend(needs_root.then_some("--root"));
        let call = stage.run(&options, &["sh", script.to_str().unwrap()]);
        let call = call.env("SIZE", "100001").env("SUDO_UID", "");
        let outcome = call.env("SUDO_GID", "").limit(60).output();
        if outcome.code == 77 {
            assert!(outcome.err.contains("install the package"), "{outcome}");
            skip(outcome.err.trim());
            continue;
        }
        assert_eq!(outcome.code, 0, "{outcome}");
        let line = format!("{name}: 100001 bytes in ");
        assert!(outcome.out.starts_with(&line), "{outcome}");
        assert!(outcome.out.ends_with(" Mb/s\n"), "{outcome}");
    }
}

#[test]
fn a_copy_that_differs_ends_a_script() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let script = format!(
        ". {FILES_TODAY}/shared.sh; spoilt() {{ tr a b <\"$DIR/source\" >\"$DIR/copy\"; }}; moved spoilt spoilt"
    );
    let call = stage.run(&["--hosts", "2"], &["sh", "-c", &script]);
    let outcome = call.env("SIZE", "100001").expect(1);
    assert!(outcome.err.contains("the copy differs"), "{outcome}");
    assert_eq!(outcome.out, "");
}

#[test]
fn sixty_four_hosts() {
    if !has("ping") {
        return;
    }
    for (case, network) in spread(&crossed(), &["ethernet-1g", "atm-oc3c"]) {
        let stage = Stage::new(case);
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
        println!("{network} {case:?}: with 64 pings {:?}", pinged.took);
        assert_attachment_lost_nothing(&report(&written));
    }
}
