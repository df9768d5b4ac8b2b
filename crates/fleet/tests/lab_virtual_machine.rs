//! PVM's virtual machine: hosts come and go, and however it ends no daemon, socket or folder of it stays.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::stage::{Stage, config, has_openssh, part};
use sonde_fleet::{Fleet, VirtualMachine};

/// What is to end has ended after this.
const SOON: Duration = Duration::from_secs(20);

fn has_pvm() -> bool {
    let has = Path::new("/usr/bin/pvm").exists();
    if !has {
        println!("skipped: PVM (pvm)");
    }
    has
}

/// The processes on any host that are of the machine with this id.
fn processes(id: &str) -> Vec<String> {
    let wanted = format!("PVM_VMID={id}");
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let is_of_it = environment
            .split(|byte| *byte == 0)
            .any(|one| one == wanted.as_bytes());
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        is_of_it.then(|| String::from_utf8_lossy(&line).replace('\0', " "))
    });
    all.collect()
}

fn daemons(id: &str) -> usize {
    let all = processes(id);
    all.iter().filter(|line| line.contains("pvmd -")).count()
}

fn assert_gone(id: &str) {
    let end = Instant::now() + SOON;
    while !processes(id).is_empty() || Path::new("/tmp").join(id).exists() {
        assert!(Instant::now() < end, "{:#?}", processes(id));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn id(machine: &VirtualMachine) -> String {
    machine.environment()["PVM_VMID"].clone()
}

fn addresses(numbers: &[u8]) -> Vec<String> {
    let address = |number: &u8| format!("10.9.0.{number}");
    numbers.iter().map(address).collect()
}

#[test]
fn hosts_come_and_go_in_a_lab() {
    if !has_pvm() {
        return;
    }
    let mut fleet = Fleet::lab(&part(), &config("ethernet-1g", 4)).unwrap();
    let mut machine = fleet.virtual_machine(&[0, 1, 2]).unwrap();
    let first = id(&machine);
    assert_eq!(machine.configuration().unwrap(), addresses(&[1, 2, 3]));
    machine.add(3).unwrap();
    machine.delete(1).unwrap();
    assert_eq!(machine.configuration().unwrap(), addresses(&[1, 3, 4]));
    assert_eq!(daemons(&first), 3);
    machine.add(1).unwrap();
    assert_eq!(machine.hosts(), [0, 2, 3, 1]);
    assert_eq!(daemons(&first), 4);
    let refused = machine.delete(0).unwrap_err().to_string();
    assert!(refused.contains("has the first daemon"), "{refused}");
    let refused = machine.add(1).unwrap_err().to_string();
    assert!(refused.contains("10.9.0.2"), "{refused}");
    // Another one of the same user beside it.
    let mut other = fleet.virtual_machine(&[3, 0]).unwrap();
    assert_eq!(other.configuration().unwrap(), addresses(&[4, 1]));
    machine.end().unwrap();
    assert_gone(&first);
    let second = id(&other);
    assert_eq!(other.configuration().unwrap(), addresses(&[4, 1]));
    drop(other);
    assert_gone(&second);
}

/// An orchestrator that holds a machine over this one host, and is killed.
#[test]
fn kill_9_leaves_nothing_on_this_machine() {
    if !has_pvm() {
        return;
    }
    for wait_ms in [0, 200] {
        let mut holder = Command::new(part())
            .arg("machine")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut from = BufReader::new(holder.stdout.take().unwrap());
        from.read_line(&mut line).unwrap();
        let id = line
            .trim()
            .strip_prefix("ok ")
            .unwrap_or_else(|| panic!("{line}"));
        assert_eq!(daemons(id), 1, "{:?}", processes(id));
        std::thread::sleep(Duration::from_millis(wait_ms));
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_gone(id);
    }
}

/// Programs and files on a host that were not there before: those of a machine, and of who made it.
fn left(stage: &Stage, host: u16, before: &[String]) -> Vec<String> {
    let mut now = stage.left(host);
    now.retain(|one| !before.contains(one));
    now
}

fn assert_left_nothing(stage: &Stage, before: &[Vec<String>], case: &str) {
    let end = Instant::now() + SOON;
    for (host, before) in (1..).zip(before) {
        while !left(stage, host, before).is_empty() {
            let left = left(stage, host, before);
            assert!(Instant::now() < end, "{case}: h{host}: {left:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Kills one of the processes of a host whose command line matches, the one that this number falls on; what it was, empty if there is
/// none. A process that ends between the look and the kill makes it look again.
fn kill_one(stage: &Stage, host: u16, like: &str, number: u32) -> String {
    // The guard is what cleans up, and this shell is none of them.
    let script = format!(
        "until [ -n \"$was\" ] && kill -9 $1; do set --; for p in /proc/[0-9]*; do n=${{p#/proc/}}; [ $n != $$ ] || continue; \
         line=$(tr '\\0' ' ' <$p/cmdline); case $line in *read*line*|*'for p in'*) ;; *'{like}'*) set -- \"$@\" $n ;; esac; \
         done; [ $# != 0 ] || exit 0; shift $(({number} % $#)); was=$(tr '\\0' ' ' </proc/$1/cmdline); done 2>/dev/null; echo $was"
    );
    stage.run(host, &["sh", "-c", &script])
}

/// A machine of PVM's own over this host alone, of this user or of an ordinary one, where everybody has theirs; the process that is
/// it. By the lab's file of hosts it would start daemons on the others, later.
fn stranger(stage: &Stage, user: Option<&str>) -> (sonde_lab::Session, UnixStream) {
    let daemon = "exec env -u PVM_VMID -u PVM_TMP -u PVMHOSTFILE HOME=/tmp PVM_ALLOW_ROOT=1 PVM_ROOT=/usr/lib/pvm3 PVM_ARCH=LINUX64 \
                  PVM_DPATH=/usr/lib/pvm3/lib/pvmd /usr/lib/pvm3/lib/pvmd -nh1";
    let mut words = vec!["sh", "-c", daemon];
    if let Some(user) = user {
        let becomes = [
            "setpriv",
            "--reuid",
            user,
            "--regid",
            user,
            "--clear-groups",
        ];
        words.splice(0..0, becomes);
    }
    let started = stage.start(1, &words);
    let socket = format!(
        "/tmp/pvmd.{}",
        user.unwrap_or(if stage.is_root() { "0" } else { "$(id -u)" })
    );
    let up = format!("until [ -e {socket} ]; do sleep 0.02; done");
    stage.run(1, &["timeout", "10", "sh", "-c", &up]);
    started
}

/// Whatever dies, and whenever: the machine is gone, and those of others stay. The guard alone must live.
#[test]
fn kill_9_of_anything_at_any_moment_leaves_nothing() {
    if !has_pvm() || !has_openssh() {
        return;
    }
    let stage = Stage::new(2);
    let mut strangers = vec![stranger(&stage, None)];
    if stage.is_root() {
        strangers.push(stranger(&stage, Some("1000")));
    }
    let before = [stage.left(1), stage.left(2)];
    let mut seed = 0x5eed_u32;
    let mut draw = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    let mut killed = std::collections::BTreeSet::new();
    const CLASSES: [&str; 4] = [" machine", " agent", "pvmd -n1", "--sonde-worker"];
    // Each while it starts, and when it is up.
    for round in 0..2 * CLASSES.len() {
        let (session, socket) = stage.start(1, &[part().to_str().unwrap(), "machine"]);
        let is_up = round % 2 == 1;
        if is_up {
            let mut line = String::new();
            BufReader::new(&socket).read_line(&mut line).unwrap();
            assert!(line.starts_with("ok "), "{line}");
        }
        std::thread::sleep(Duration::from_millis(
            draw(if is_up { 50 } else { 400 }).into(),
        ));
        let class = CLASSES[round / 2];
        let case = format!("{class} in round {round}");
        if class == " machine" {
            drop(session.signal(9));
        } else {
            let was = kill_one(&stage, 1, class, draw(8));
            if !was.is_empty() {
                killed.insert(class);
            }
            std::thread::sleep(Duration::from_millis(draw(200).into()));
            socket.shutdown(std::net::Shutdown::Write).unwrap();
        }
        drop(session.wait());
        assert_left_nothing(&stage, &before, &case);
    }
    println!("killed beside the command: {killed:?}");
    assert_eq!(killed.len(), CLASSES.len() - 1, "{killed:?}");
    let ask = "echo conf | env -u PVM_VMID -u PVM_TMP pvm";
    let told = stage.run(
        1,
        &[
            "sh",
            "-c",
            &format!("PVM_ALLOW_ROOT=1 HOME=/tmp; export PVM_ALLOW_ROOT HOME; {ask}"),
        ],
    );
    assert!(
        told.contains("already running") && told.contains("40000"),
        "{told}"
    );
    let daemons = stage.programs(1);
    let still = daemons.iter().filter(|line| line.contains("pvmd -nh1"));
    assert_eq!(still.count(), strangers.len(), "{daemons:#?}");
}

/// A shell that is about to start a daemon has the machine's id in its words alone.
#[test]
fn kill_9_while_a_daemon_is_on_its_way_leaves_nothing() {
    if !has_pvm() || !has_openssh() {
        return;
    }
    let mut stage = Stage::new(3);
    stage.end_server(3);
    let slow = r#"ForceCommand=case "$SSH_ORIGINAL_COMMAND" in *pvmd*) sleep 2 ;; esac; sh -c "$SSH_ORIGINAL_COMMAND""#;
    stage.serve(3, &["-o", slow]);
    let before: Vec<_> = (1..=3).map(|host| stage.left(host)).collect();
    let mut steer = stage.steer(&stage.keys(), "h2,h3");
    assert!(steer.answer().starts_with("ok started"));
    steer.tell("machine 0 1");
    let end = Instant::now() + SOON;
    while !stage.programs(3).iter().any(|one| one.contains("sleep 2")) {
        assert!(Instant::now() < end, "{:#?}", stage.programs(3));
        std::thread::sleep(Duration::from_millis(20));
    }
    steer.kill();
    // The daemon would be there by then.
    std::thread::sleep(Duration::from_secs(4));
    assert_left_nothing(&stage, &before, "on its way");
}

#[test]
fn kill_9_leaves_nothing_behind_ssh() {
    if !has_pvm() || !has_openssh() {
        return;
    }
    let stage = Stage::new(4);
    let before: Vec<_> = (1..=4).map(|host| stage.left(host)).collect();
    for how in ["command", "end", "first daemon", "other daemon", "agent"] {
        let mut steer = stage.steer(&stage.keys(), "h2,h3,h4");
        assert!(steer.answer().starts_with("ok started"));
        let id = steer.expect("machine 0 1");
        assert_eq!(steer.expect("add 2"), "10.9.0.2 10.9.0.3 10.9.0.4");
        assert_eq!(steer.expect("delete 1"), "10.9.0.2 10.9.0.4");
        assert_eq!(daemons(&id), 2, "{:?}", processes(&id));
        let was = match how {
            "first daemon" => kill_one(&stage, 2, "pvmd -n1", 0),
            "other daemon" => kill_one(&stage, 4, "pvmd -s", 0),
            "agent" => kill_one(&stage, 2, " agent", 1),
            _ => how.into(),
        };
        assert!(!was.is_empty(), "{how}");
        match how {
            "end" => {
                assert_eq!(steer.expect("end"), "gone");
                assert_eq!(steer.stop(), "ok stopped");
            }
            "command" => steer.kill(),
            // Nobody is told: what is left of it goes by itself, and with the fleet's end.
            _ => drop(steer.stop()),
        }
        assert_gone(&id);
        assert_left_nothing(&stage, &before, how);
    }
}
