//! What breaks under the command is told as what it is: no panic, the first cause by its name, and nothing of it takes the terminal.
//!
//! Model:   each test breaks one thing that is the command's to use, the output, a disk, a limit, a host, and reads what it says.

use crate::lab::{
    Call, Case, Outcome, Process, Stage, attached, attachments, has, is_root, marked, path_of,
    skip, sonde, spread, write_script,
};
use sonde_sys::process::kill;
use std::path::Path;

const NOTHING: i32 = 2;
const USAGE: i32 = 64;
const UNWRITTEN: i32 = 74;
const PASSING: i32 = 125;
const SIGKILL: i32 = 9;
const SIGXFSZ: u32 = 25;

/// A script of the shell, in which `SONDE` stands for the command.
fn shell(stage: &Stage, script: &str) -> Call {
    let mut call = stage.call(Path::new("/bin/sh"));
    let script = script.replace("SONDE", sonde().to_str().unwrap());
    call.command.args(["-c", &script]);
    call
}

#[test]
fn a_full_standard_output_is_told() {
    let stage = Stage::new(Case::own("veth"));
    let outcome = shell(&stage, "SONDE lab list >/dev/full").expect(UNWRITTEN);
    outcome.tells(&["sonde: cannot write to standard output: No space left on device"]);
    assert_eq!(outcome.err.lines().count(), 1, "{outcome}");
}

#[test]
fn a_full_standard_error_ends_nothing() {
    let stage = Stage::new(Case::own("veth"));
    // Both are full: the code alone is left to tell it.
    shell(&stage, "SONDE lab list >/dev/full 2>&1").expect(UNWRITTEN);
    shell(&stage, "SONDE lab run --network nope -- true 2>/dev/full").expect(USAGE);
    // Its reader has ended, as `head -1` does.
    let gone = "{ sleep 0.2; SONDE lab run --network nope -- true; echo $? >code; } 2>&1 | true; sleep 0.1; cat code";
    let outcome = shell(&stage, gone).expect(0);
    assert_eq!(outcome.out.trim(), USAGE.to_string(), "{outcome}");
    // What was to be done is done.
    let place = "SONDE place --pattern ring --ranks 4 --network ethernet-1g --placement block --write openmpi-hosts:hosts 2>/dev/full";
    shell(&stage, place).expect(0);
    assert!(stage.folder.join("hosts").exists());
}

#[test]
fn hostile_words_reach_no_terminal() {
    let stage = Stage::new(Case::own("veth"));
    let ssh = r"printf '\033[31mRED\033]0;T\007\nsonde: all is well\n' >&2; exit 255";
    write_script(&stage.folder.join("ssh"), &format!("#!/bin/sh\n{ssh}\n"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", stage.folder.display());
    let probe = "SONDE probe latency --quick --testbed hosts:a,b --out o";
    let outcome = shell(&stage, probe).env("PATH", path).expect(NOTHING);
    outcome.tells(&["\\u{1b}[31mRED\\u{1b}]0;T\\u{7}"]);
    assert_harmless(&outcome);
    // A line of another's that looks like one of the command's stands apart from these.
    assert!(!outcome.err.contains("\nsonde: all is well"), "{outcome}");

    let hosts = "[[site]]\nname = \"a\"\nrate = \"1Gbit\"\nlatency = \"1us\"\nhosts = [\"b\\u001b[31m\", \"b\\u001b[31m\"]\n";
    std::fs::write(stage.folder.join("cluster"), hosts).unwrap();
    let place = "SONDE place --pattern ring --ranks 2 --cluster cluster";
    assert_harmless(shell(&stage, place).output().tells(&["\\u{1b}[31m"]));
}

#[test]
fn a_message_repeats_little_of_an_input() {
    const LONG: usize = 100_000;
    let stage = Stage::new(Case::own("veth"));
    let long = |name: &str, begin: &str| {
        std::fs::write(
            stage.folder.join(name),
            format!("{begin}{}", "x".repeat(LONG)),
        )
        .unwrap();
    };
    long("script", "1s ");
    long("matrix", "");
    long("hosts", "-");
    long("net.toml", "x = ");
    for (line, told) in [
        ("lab run --script script -- true", "line 1: `xxx"),
        ("place --matrix matrix --network ethernet-1g", "xxx"),
        ("probe latency --quick --testbed hosts:./hosts", "`-xxx"),
        (
            "lab run --network \"$(head -c 90000 matrix)\" -- true",
            "there is no network `xxx",
        ),
    ] {
        let outcome = shell(&stage, &format!("SONDE {line}")).output();
        assert_ne!(outcome.code, 0, "{outcome}");
        outcome.tells(&[told, "…"]);
        let bytes = outcome.err.len();
        assert!(bytes < 2_000, "{line}: {bytes} bytes are told");
    }
}

#[test]
fn a_limit_of_processes_is_told() {
    if !is_root() || !has("setpriv") || !has("prlimit") {
        skip("root, setpriv and prlimit, to run as a user with few processes");
        return;
    }
    let stage = Stage::new(Case::user("veth"));
    let program = stage.copy_in(&sonde());
    let mut told = 0;
    for limit in 1..=8 {
        let mut call = stage.call(&path_of("prlimit").unwrap());
        call.command.arg(format!("--nproc={limit}")).arg(&program);
        let probe = "probe latency --quick --testbed local --out o";
        let outcome = {
            call.command.args(probe.split(' '));
            call.output()
        };
        assert!([0, 1, NOTHING].contains(&outcome.code), "{outcome}");
        assert!(!outcome.err.contains("panicked"), "{outcome}");
        if outcome.code != 0 {
            outcome.tells(&[&format!("`ulimit -u` is {limit}")]);
            told += 1;
        }
    }
    assert!(told > 0, "no limit was met");
}

/// A lab of this case with these options, whose program is a script.
fn lab(stage: &Stage, options: &[&str], script: &str) -> Call {
    stage.run(options, &["sh", "-c", script]).limit(40)
}

#[test]
fn a_full_disk_ends_no_lab() {
    if !is_root() {
        skip("root, who can mount a small disk");
        return;
    }
    for (case, name) in spread(&attachments(), &["pcap", "ledger"]) {
        let stage = Stage::new(case);
        let disk = stage.folder.join(name);
        std::fs::create_dir(&disk).unwrap();
        let file = format!("{name}/file");
        let option = match name {
            "pcap" => format!("--pcap h1={file}"),
            _ => format!("--ledger {file}"),
        };
        // Its own mounts, which end with it; what is read afterwards is copied out of them.
        let script = format!(
            "mount -t tmpfs -o size=40k none {name} || exit 9
            SONDE lab run --attachment {} --network ethernet-100 --hosts 2 {option} -- \\
                sh -c 'ping -q -i 0.002 -c 1500 -s 600 h2 && echo the program went on'
            echo code $?; cp {file} kept",
            case.attachment
        );
        let mut call = stage.call(&path_of("unshare").unwrap());
        let script = script.replace("SONDE", sonde().to_str().unwrap());
        call.command.args(["-m", "sh", "-c", &script]);
        let outcome = call.expect(0);
        assert!(outcome.out.contains("the program went on"), "{outcome}");
        assert!(
            outcome.out.contains(&format!("code {PASSING}")),
            "{outcome}"
        );
        let disk = disk.to_str().unwrap();
        let full = format!("the disk at {disk} is full");
        outcome.tells(&[&format!(" {file}: No space left on device"), &full]);
        assert!(!outcome.err.contains("is gone"), "{outcome}");
        let kept = std::fs::read(stage.folder.join("kept")).unwrap();
        assert!(kept.len() > 30_000, "{} bytes of {name}", kept.len());
        if name == "pcap" {
            assert!(is_whole(&kept), "a frame is cut in {} bytes", kept.len());
        } else {
            let replay = "SONDE lab replay kept";
            assert!(!shell(&stage, replay).output().err.contains("panicked"));
        }
    }
}

/// Whether a capture ends with a whole frame.
fn is_whole(capture: &[u8]) -> bool {
    let mut at = 24;
    while at < capture.len() {
        let Some(length) = capture.get(at + 8..at + 12) else {
            return false;
        };
        at += 16 + u32::from_le_bytes(length.try_into().unwrap()) as usize;
    }
    at == capture.len()
}

#[test]
fn a_removed_interface_is_named() {
    for case in attachments() {
        let stage = Stage::new(case);
        let script = "sonde lab exec --root h2 -- ip link del eth0
            ping -q -c 3 -i 0.2 -W 1 h2; ping -q -c 1 -W 1 h3 > /dev/null && echo h3 answers";
        let outcome = lab(&stage, &["--hosts", "3"], script).expect(PASSING);
        assert!(outcome.out.contains("h3 answers"), "{outcome}");
        outcome.tells(&["sonde: eth0 of h2 is gone: it was removed while the lab ran"]);
        assert!(!outcome.err.contains("init"), "{outcome}");
        // What was sent to it is counted, and no verdict passes over it.
        outcome.tells(&[
            "frames were lost outside the model: ",
            " on the path to an interface",
        ]);
    }
}

#[test]
fn a_killed_host_is_named() {
    for case in attached("tap") {
        let stage = Stage::new(case);
        let script = "echo up; sleep 1; ping -c 2 -W 1 h3; true";
        let mut running = lab(&stage, &["--hosts", "3"], script).start();
        running.wait_for("up\n");
        let is_init = |process: &Process| process.line.contains(" --sonde-lab-host");
        let inits = marked(&running.mark).into_iter().filter(is_init);
        let third = inits.max_by_key(|process| process.pid).unwrap();
        kill(third.pid, SIGKILL).unwrap();
        let outcome = running.finish();
        assert_eq!(outcome.code, PASSING, "{outcome}");
        outcome.tells(&["sonde: h3 is gone: its init was killed by signal 9"]);
        assert!(!outcome.err.contains('{'), "{outcome}");
    }
}

#[test]
fn a_full_disk_keeps_no_part_of_a_file() {
    if !is_root() {
        skip("root, who can mount a small disk");
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    let probe = "SONDE probe latency --quick --testbed local --out";
    shell(&stage, &format!("{probe} runs")).expect(0);
    let script = format!(
        "mkdir d && mount -t tmpfs -o size=16k none d || exit 9
        {probe} d; echo store $? $(ls -A d | wc -l)
        SONDE report html --out runs --to d/page.html; echo page $? $(ls -A d | wc -l)"
    );
    let script = script.replace("SONDE", sonde().to_str().unwrap());
    let mut call = stage.call(&path_of("unshare").unwrap());
    call.command.args(["-m", "sh", "-c", &script]);
    let outcome = call.expect(0);
    assert!(outcome.out.contains("store 2 0"), "{outcome}");
    outcome.tells(&["the disk is full"]);
    if outcome.err.contains("without the report page") {
        skip("the report page, which this program is built without");
        return;
    }
    let page = format!("page {UNWRITTEN} 0");
    assert!(outcome.out.contains(&page), "{outcome}");
    outcome.tells(&["no HTML report: cannot write d/page.html", "free space"]);
}

#[test]
fn a_limit_of_a_files_size_is_an_error() {
    let stage = Stage::new(Case::own("veth"));
    let probe = "ulimit -f 8; SONDE probe latency --quick --testbed local --out o";
    let outcome = shell(&stage, probe).expect(NOTHING);
    outcome.tells(&["sonde: cannot ", "o/sonde.db", "`ulimit -f`"]);
    // Programs have the signal as they had it.
    let mask = "SONDE lab run --hosts 2 -- grep ^SigIgn: /proc/self/status";
    let outcome = shell(&stage, mask).expect(0);
    let (_, mask) = outcome.out.trim().split_once(':').unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    assert_eq!(mask & 1 << (SIGXFSZ - 1), 0, "{outcome}");
}

#[test]
fn a_killed_agent_is_told_as_one() {
    let stage = Stage::new(Case::own("veth"));
    // What looks for a launcher is started by a worker of the agent.
    let kill = "#!/bin/sh\nset -- $(cat /proc/$PPID/stat)\nkill -9 $4\n";
    for name in ["mpirun", "mpirun.openmpi"] {
        write_script(&stage.folder.join(name), kill);
    }
    write_script(&stage.folder.join("sonde-rank"), "#!/bin/sh\n");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", stage.folder.display());
    let probe = "SONDE probe latency --quick --testbed local --path openmpi --out o";
    let outcome = shell(&stage, probe).env("PATH", path).output();
    assert_ne!(outcome.code, 0, "{outcome}");
    outcome.tells(&["agent local-1 ended", "whether it was killed"]);
    assert!(!outcome.err.contains("there is no launcher"), "{outcome}");
}

/// Fails where standard error could move a terminal's cursor or change its colours.
fn assert_harmless(outcome: &Outcome) {
    let harms = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!outcome.err.contains(harms), "{:?}", outcome.err);
}
