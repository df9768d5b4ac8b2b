//! PVM's virtual machine: hosts come and go, and however it ends no daemon, socket or folder of it stays.

mod stage;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sonde_fleet::{Fleet, VirtualMachine};
use stage::{Stage, config, has_openssh, part};

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

#[test]
fn kill_9_leaves_nothing_behind_ssh() {
    if !has_pvm() || !has_openssh() {
        return;
    }
    let stage = Stage::new(4);
    for how in ["kill", "end"] {
        let mut steer = stage.steer(&stage.keys(), "h2,h3,h4");
        assert!(steer.answer().starts_with("ok started"));
        let id = steer.expect("machine 0 1");
        assert_eq!(steer.expect("add 2"), "10.9.0.2 10.9.0.3 10.9.0.4");
        assert_eq!(steer.expect("delete 1"), "10.9.0.2 10.9.0.4");
        assert_eq!(daemons(&id), 2, "{:?}", processes(&id));
        if how == "kill" {
            steer.kill();
        } else {
            assert_eq!(steer.expect("end"), "gone");
            assert_eq!(steer.stop(), "ok stopped");
        }
        assert_gone(&id);
        let end = Instant::now() + SOON;
        let is_of_it = |line: &String| line.contains(&id) || line.contains("pvm");
        for host in 1..=4 {
            while stage.left(host).iter().any(is_of_it) {
                assert!(Instant::now() < end, "h{host}: {:#?}", stage.left(host));
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
