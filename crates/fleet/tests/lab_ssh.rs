//! Hosts by ssh: OpenSSH servers on the hosts of a lab, and an orchestrator on its first host.
//!
//! Model:   what the programs are that run on a host is read from its /proc; what is left behind from there and from its
//!          folders, which are its own.

use crate::stage::{Stage, has_openssh, part};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// A host that says nothing is noticed by ssh within 15 s; the rest is for the machine.
const NOTICED: Duration = Duration::from_secs(25);

/// The program that runs as agent on a host.
fn agent(stage: &Stage, host: u16) -> String {
    let programs = stage.programs(host);
    let agents: Vec<_> = programs
        .iter()
        .filter(|line| line.ends_with(" agent "))
        .collect();
    assert_eq!(agents.len(), 1, "on h{host}: {programs:#?}");
    agents[0].clone()
}

#[test]
fn agents_start_measure_and_leave_nothing() {
    if !has_openssh() {
        return;
    }
    let mut stage = Stage::new(4);
    // h3: its shell talks, and nothing may be run from its /dev/shm. h4: it has the program.
    stage.end_server(3);
    stage.serve(3, &["-o", r#"ForceCommand=printf "welcome to sonde-host/1\nno line end"; eval "$SSH_ORIGINAL_COMMAND""#]);
    if stage.is_root() {
        // Mounts of the lab are locked: another one lies above.
        stage.run(
            3,
            &["mount", "-t", "tmpfs", "-o", "noexec", "none", "/dev/shm"],
        );
    }
    let bin = stage.folder.join("bin");
    fs::create_dir(&bin).unwrap();
    // By a child: a program that this process has open for writing while another test forks cannot be run.
    let copied = Command::new("cp")
        .arg(part())
        .arg(bin.join("sonde"))
        .status();
    assert!(copied.unwrap().success());
    stage.end_server(4);
    let path = format!("SetEnv=PATH={}:/usr/bin:/bin", bin.display());
    // Its agent may not change its neighbours, as on a real host.
    let starter = ["setpriv", "--bounding-set", "-net_admin"];
    let starter = if stage.is_root() { &starter[..] } else { &[] };
    stage.serve_by(4, starter, &["-o", &path]);

    let began = Instant::now();
    let mut steer = stage.steer(&stage.keys(), "h[2-3],h4");
    assert_eq!(
        steer.answer(),
        "ok started 10.9.0.2 10.9.0.3 10.9.0.4",
        "{}",
        stage.log()
    );
    println!("three agents by ssh after {:?}", began.elapsed());
    assert!(
        agent(&stage, 2).starts_with("/dev/shm/.sonde."),
        "{}",
        agent(&stage, 2)
    );
    assert!(agent(&stage, 2).contains(" (deleted) "));
    let place = if stage.is_root() {
        "/tmp/.sonde."
    } else {
        "/dev/shm/.sonde."
    };
    assert!(agent(&stage, 3).starts_with(place), "{}", agent(&stage, 3));
    assert!(
        agent(&stage, 4).starts_with(&*bin.join("sonde ").to_string_lossy()),
        "{}",
        agent(&stage, 4)
    );

    assert!(
        steer
            .expect("measure latency 0 1")
            .starts_with("LatencyNs ")
    );
    assert!(
        steer
            .expect("measure startup 1 2")
            .starts_with("StartupNs ")
    );
    assert!(
        steer
            .expect("measure latency 2 0")
            .starts_with("LatencyNs ")
    );
    assert!(
        steer
            .expect("measure startup 2 1")
            .starts_with("StartupNs ")
    );
    println!("notes: {}", steer.expect("notes"));
    let facts = steer.expect("facts");
    assert_eq!(facts, "h2,eth0,1500 h3,eth0,1500 h4,eth0,1500");
    let clocks = steer.expect("clocks");
    let clocks: Vec<&str> = clocks.split(' ').collect();
    assert_eq!(clocks[0], "none");
    for clock in &clocks[1..] {
        // All hosts read the same clock here: what is found must be within what is promised.
        let words: Vec<&str> = clock.split(',').collect();
        let (offset, bound): (i64, i64) = (words[0].parse().unwrap(), words[2].parse().unwrap());
        assert!(offset.abs() <= bound, "{clocks:?}");
        assert!(words[1].starts_with("Some("), "{clocks:?}");
        println!(
            "offset {offset} ns within {bound} ns, drift {} ns/s",
            words[1]
        );
    }
    assert_eq!(steer.stop(), "ok stopped");
    stage.assert_nothing_left();
}

#[test]
fn a_killed_host_is_named_and_the_rest_goes_on() {
    if !has_openssh() {
        return;
    }
    let mut stage = Stage::new(4);
    let mut steer = stage.steer(&stage.keys(), "h2,h3,h4");
    assert!(steer.answer().starts_with("ok started"));
    for (src, dst) in [(0, 1), (1, 2)] {
        steer.tell(&format!("measure stream {src} {dst}"));
        std::thread::sleep(Duration::from_millis(1_500));
        let killed = Instant::now();
        stage.kill_all(3);
        let told = steer.answer();
        assert!(told.starts_with("failed lost=true host=h3 "), "{told}");
        assert!(
            told.contains(&format!(
                "measure stream over tcp from h{} to h{}",
                src + 2,
                dst + 2
            )),
            "{told}"
        );
        assert!(killed.elapsed() < NOTICED, "{:?}", killed.elapsed());
        println!("told after {:?}: {told}", killed.elapsed());
        assert_eq!(steer.expect("alive 1"), "false");
        assert!(
            steer
                .expect("measure latency 0 2")
                .starts_with("LatencyNs ")
        );
        assert!(
            steer
                .ask("measure latency 0 1")
                .contains("h3: cannot use it: it was lost before")
        );
        let refused = steer.ask("revive 1");
        assert!(
            refused.contains("Connection refused") && refused.contains("no ssh server answers"),
            "{refused}"
        );
        stage.serve(3, &[]);
        assert_eq!(steer.expect("revive 1"), "revived");
        assert!(
            steer
                .expect("measure latency 2 1")
                .starts_with("LatencyNs ")
        );
    }
    assert_eq!(steer.stop(), "ok stopped");
    stage.assert_nothing_left();
}

#[test]
fn a_host_that_is_gone_as_soon_as_it_greeted_is_lost_and_the_rest_goes_on() {
    if !has_openssh() {
        return;
    }
    let mut stage = Stage::new(4);
    stage.end_server(4);
    let greets_only = r#"ForceCommand=sh -c "$SSH_ORIGINAL_COMMAND" | sed -u '/^sonde-agent.1$/q'"#;
    stage.serve(4, &["-o", greets_only]);
    fs::write(format!("{}/some", stage.keys()), "").unwrap();
    let mut steer = stage.steer(&stage.keys(), "h2,h3,h4");
    let told = steer.answer();
    assert!(told.starts_with("ok started"), "{told}");
    assert_eq!(steer.expect("alive 2"), "false");
    assert!(
        steer
            .expect("measure latency 0 1")
            .starts_with("LatencyNs ")
    );
    assert_eq!(steer.stop(), "ok stopped");
    stage.assert_nothing_left();
}

#[test]
fn a_host_that_vanishes_is_lost_in_time() {
    if !has_openssh() {
        return;
    }
    let stage = Stage::new(4);
    if !stage.is_root() {
        println!("skipped: only the lab's root can take an interface down");
        return;
    }
    fs::write(format!("{}/silence", stage.keys()), "8").unwrap();
    let mut steer = stage.steer(&stage.keys(), "h2,h3,h4");
    assert!(steer.answer().starts_with("ok started"));
    for (src, dst, vanishing) in [(0, 1, 3), (2, 0, 4)] {
        steer.tell(&format!("measure stream {src} {dst}"));
        std::thread::sleep(Duration::from_millis(1_500));
        let vanished = Instant::now();
        // No end of a connection is seen by anyone.
        stage.run(vanishing, &["ip", "link", "set", "eth0", "down"]);
        let told = steer.answer();
        println!("told after {:?}: {told}", vanished.elapsed());
        assert!(
            told.starts_with(&format!("failed lost=true host=h{vanishing} ")),
            "{told}"
        );
        assert!(vanished.elapsed() < NOTICED, "{:?}", vanished.elapsed());
        stage.run(vanishing, &["ip", "link", "set", "eth0", "up"]);
        assert_eq!(
            steer.expect(&format!("revive {}", vanishing - 2)),
            "revived"
        );
    }
    assert!(
        steer
            .expect("measure latency 1 2")
            .starts_with("LatencyNs ")
    );
    assert_eq!(steer.stop(), "ok stopped");
}

#[test]
fn kill_9_of_the_orchestrator_leaves_nothing() {
    if !has_openssh() {
        return;
    }
    let stage = Stage::new(4);
    // While it starts and copies, idle, and from the begin to the middle of a measurement.
    let starting =
        [0, 10, 20, 40, 60, 80, 100, 130, 160, 200].map(|wait_ms| (wait_ms, false, false));
    let running = [
        (0, true, false),
        (20, true, true),
        (200, true, true),
        (1_500, true, true),
    ];
    for (wait_ms, started, measuring) in starting.into_iter().chain(running) {
        let mut steer = stage.steer(&stage.keys(), "h2,h3,h4");
        if started {
            assert!(steer.answer().starts_with("ok started"));
        }
        if measuring {
            steer.tell("measure stream 0 1");
        }
        std::thread::sleep(Duration::from_millis(wait_ms));
        steer.kill();
        stage.assert_nothing_left();
    }
}

#[test]
fn what_ssh_refuses_is_told_with_a_remedy() {
    if !has_openssh() {
        return;
    }
    let mut stage = Stage::new(3);
    let keys = stage.keys();
    let usual = fs::read_to_string(format!("{keys}/ssh_config")).unwrap();
    let other = |name: &str, from: &str, to: &str| {
        let folder = format!("{keys}/{name}");
        fs::create_dir(&folder).unwrap();
        assert!(usual.contains(from), "{usual}");
        fs::write(format!("{folder}/ssh_config"), usual.replace(from, to)).unwrap();
        folder
    };
    let unknown = other("unknown", &format!("{keys}/known_hosts"), "/dev/null");
    let denied = other("denied", &format!("{keys}/user"), &format!("{keys}/host"));
    let silent = other(
        "silent",
        "Host *",
        "Host *\n    ProxyCommand sleep 60\n    ConnectTimeout 1",
    );
    let closed = format!("h2,h3:{}", stage.port() + 1);
    for (folder, hosts, host, said, remedy) in [
        (
            &*unknown,
            "h2,h3",
            "h2 and h3",
            "Host key verification failed",
            "its key is not known",
        ),
        (
            &denied,
            "h2,h3",
            "h2 and h3",
            "Permission denied",
            "ssh-copy-id h3",
        ),
        (
            &keys,
            "h2,nosuch.invalid",
            "nosuch.invalid",
            "Could not resolve hostname",
            "HostName",
        ),
        (
            &keys,
            &closed,
            &closed[3..],
            "Connection refused",
            "no ssh server answers",
        ),
        (
            &silent,
            "h2,h3",
            "h2 and h3",
            "timed out",
            "no firewall drops ssh",
        ),
        (
            &keys,
            "./same",
            "h2",
            "10.9.0.2 is also the address of h3",
            "address=10.0.0.1",
        ),
        (&keys, "h2", "", "1 of at least 2 hosts", "node[01-16]"),
    ] {
        fs::write(format!("{keys}/same"), "h2\nh3 address=10.9.0.2\n").unwrap();
        let mut steer = stage.steer(folder, hosts);
        let told = steer.answer();
        assert!(told.starts_with("failed "), "{hosts}: {told}");
        for word in [said, remedy] {
            assert!(told.contains(word), "{hosts}: `{word}` is not in: {told}");
        }
        assert!(
            host.is_empty() || told.contains(&format!("host={host} ")),
            "{hosts}: {told}"
        );
        stage.assert_nothing_left();
    }
    // Another machine, by its own account.
    let bin = stage.folder.join("bin");
    fs::create_dir(&bin).unwrap();
    let uname = bin.join("uname");
    fs::write(&uname, "#!/bin/sh\n[ $1 = -s ] && echo Linux || echo vax\n").unwrap();
    stage.run(1, &["chmod", "755", uname.to_str().unwrap()]);
    stage.end_server(3);
    stage.serve(
        3,
        &[
            "-o",
            &format!("SetEnv=PATH={}:/usr/bin:/bin", bin.display()),
        ],
    );
    let told = stage.steer(&keys, "h2,h3").answer();
    assert!(
        told.contains("host=h3 ") && told.contains("it is vax, and this program is for "),
        "{told}"
    );
    stage.assert_nothing_left();
}

#[test]
fn hosts_that_do_not_reach_each_other_are_both_named() {
    if !has_openssh() {
        return;
    }
    let stage = Stage::new(3);
    if !stage.is_root() {
        println!("skipped: only the lab's root can change a route");
        return;
    }
    let mut steer = stage.steer(&stage.keys(), "h2,h3");
    assert!(steer.answer().starts_with("ok started"));
    // As a firewall does: what h2 sends to h3 is dropped.
    stage.run(2, &["ip", "route", "add", "blackhole", "10.9.0.3/32"]);
    let told = steer.ask("measure latency 0 1");
    assert!(
        told.starts_with("failed lost=false host=h2 and h3 "),
        "{told}"
    );
    for word in [
        "from h2 to h3",
        "10.9.0.3:",
        "ip_local_port_range",
        "address=",
    ] {
        assert!(told.contains(word), "`{word}` is not in: {told}");
    }
    stage.run(2, &["ip", "route", "del", "blackhole", "10.9.0.3/32"]);
    assert!(
        steer
            .expect("measure latency 0 1")
            .starts_with("LatencyNs ")
    );
    assert_eq!(steer.stop(), "ok stopped");
    stage.assert_nothing_left();
}

#[test]
fn a_master_that_the_user_has_open_is_used() {
    if !has_openssh() {
        return;
    }
    let stage = Stage::new(3);
    let keys = stage.keys();
    let config = format!("{keys}/ssh_config");
    let usual = fs::read_to_string(&config).unwrap();
    // As many have it: a master is made by the first session, and stays.
    let more = format!(
        "{usual}    ControlMaster auto\n    ControlPath {keys}/%h\n    ControlPersist yes\n"
    );
    fs::write(&config, more).unwrap();
    let (master, _) = stage.start(
        1,
        &[
            "ssh",
            "-F",
            &config,
            "-o",
            "ControlPersist=no",
            "-M",
            "-N",
            "h2",
        ],
    );
    let socket = format!("until [ -S {keys}/h2 ]; do sleep 0.02; done");
    stage.run(1, &["timeout", "10", "sh", "-c", &socket]);
    // h3 has none, and gets none.
    let mut steer = stage.steer(&keys, "h2,h3");
    assert!(steer.answer().starts_with("ok started"));
    let connections = |host| {
        stage
            .run(host, &["sh", "-c", "ss -Htn state established | wc -l"])
            .trim()
            .to_owned()
    };
    assert_eq!((connections(2), connections(3)), ("1".into(), "1".into()));
    assert!(
        steer
            .expect("measure latency 0 1")
            .starts_with("LatencyNs ")
    );
    steer.tell("measure stream 1 0");
    std::thread::sleep(Duration::from_millis(500));
    steer.kill();
    drop(master);
    stage.assert_nothing_left();
}
