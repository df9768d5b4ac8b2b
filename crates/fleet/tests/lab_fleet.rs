//! A fleet on an emulated cluster: cold and warm, the verdict, and what becomes of agents and hosts that are killed.

use std::path::Path as File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::stage::{config, part};
use sonde_fleet::{Ask, Between, Fleet};
use sonde_lab::Config;
use sonde_measure::{Measurement, Quantity, Step};
use sonde_measure::{Path, Wait};
use sonde_measure::{Probe, Procedure, Spec};
use sonde_sys::noise::measured;

fn ask(probe: Probe, src: usize, dst: usize) -> Ask {
    let mut spec = Spec::new(probe, Path::Tcp, Wait::Block);
    spec.timeout_ns = 3_000_000_000;
    Ask {
        spec,
        between: Between {
            src,
            dst,
            one_way_ns: Some(100_000),
            load: None,
        },
    }
}

fn smallest(measurements: &[Measurement], step: Option<Step>) -> u64 {
    let one = measurements
        .iter()
        .find(|one| one.quantity == Quantity::StartupNs && one.step == step);
    let one = one.unwrap_or_else(|| panic!("no step {step:?} in {measurements:?}"));
    assert!(!one.series.is_empty(), "step {step:?}: {:?}", one.reason);
    sonde_stats::Parts::from(one.series.clone()).min
}

/// One lab at a time: processes are told apart by their lab's being this process's.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // A test that failed before spoils nothing.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processes of the lab that this test started last: host and command line.
fn lab_processes() -> Vec<(u32, String, String)> {
    let own = std::process::id();
    let text = |pid: u32, name: &str| {
        std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default()
    };
    let parent = |pid: u32| -> Option<u32> {
        text(pid, "stat")
            .rsplit(") ")
            .next()?
            .split(' ')
            .nth(1)?
            .parse()
            .ok()
    };
    let is_ours = |mut pid: u32| {
        while pid > 1 {
            if pid == own {
                return true;
            }
            pid = parent(pid).unwrap_or(0);
        }
        false
    };
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let of_host = |pid: u32| {
        let uts = text(pid, "root/etc/hostname").trim().to_owned();
        (pid, uts, text(pid, "cmdline").replace('\0', " "))
    };
    processes
        .filter(|pid| *pid != own && is_ours(*pid))
        .map(of_host)
        .collect()
}

fn kill(host: &str, part: &str) {
    let found: Vec<_> = lab_processes()
        .into_iter()
        .filter(|(_, name, line)| name == host && line.contains(part))
        .collect();
    assert!(
        !found.is_empty(),
        "no {part} on {host} in {:#?}",
        lab_processes()
    );
    for (pid, ..) in found {
        // A worker ends with its agent.
        drop(sonde_sys::process::kill(pid, 9));
    }
}

#[test]
fn every_start_up_is_cold_and_judged() {
    let config = config("atm-oc3c:vc=svc", 3);
    let setup_ns = config
        .site
        .network()
        .unwrap()
        .circuits
        .unwrap()
        .setup
        .as_nanos();
    assert_every_start_up_is_cold(&config, setup_ns);
}

#[test]
fn every_start_up_logs_in() {
    let config = config("fc-266", 3);
    let login_ns = config
        .site
        .network()
        .unwrap()
        .credit
        .as_ref()
        .unwrap()
        .login
        .as_nanos();
    assert_every_start_up_is_cold(&config, login_ns);
}

/// Each pays what joins two hosts of this network, and is judged.
fn assert_every_start_up_is_cold(config: &Config, setup_ns: u64) {
    let _alone = alone();
    let mut fleet = Fleet::lab(&part(), config).unwrap();
    let names: Vec<_> = fleet
        .hosts()
        .iter()
        .map(|host| (&*host.name, &*host.address))
        .collect();
    assert_eq!(
        names,
        [("h1", "10.9.0.1"), ("h2", "10.9.0.2"), ("h3", "10.9.0.3")]
    );
    for host in fleet.hosts() {
        assert_eq!(host.facts.interface.as_deref(), Some("eth0"), "{host:?}");
        assert_eq!(host.facts.hostname, host.name);
    }
    assert!(matches!(
        fleet.attachment().as_deref(),
        Some("tap" | "veth")
    ));
    assert!(fleet.backpressure().is_some() && fleet.lab_info().is_some());
    let mut start = ask(Probe::Startup, 0, 1);
    start.spec.sizes_bytes = vec![1, 1_000, 9_000];
    let mut setups: Vec<u64> = Vec::new();
    for (src, dst) in [(0, 1), (1, 2), (1, 0), (0, 1)] {
        let launched = fleet
            .converse(&Ask {
                spec: start.spec.clone(),
                between: Between {
                    src,
                    dst,
                    ..start.between.clone()
                },
            })
            .unwrap();
        assert_eq!(launched.outcome.sizes.len(), 3);
        for size in &launched.outcome.sizes {
            // Whatever warmed the way would have taken the set-up away.
            let whole = smallest(&size.measurements, None);
            let vc = smallest(&size.measurements, Some(Step::Vc));
            let line = format!("{} B: {whole} and {vc} of {setup_ns} ns", size.size_bytes);
            assert!(whole > setup_ns, "{line}");
            setups.push(vc);
            println!(
                "{} B: whole {whole} ns, vc {vc} ns, set-up {setup_ns} ns",
                size.size_bytes
            );
        }
        let verdict = launched.report.unwrap().verdict();
        assert!(
            verdict.deliveries > 0 && verdict.bound_ns == 50_000,
            "{verdict:?}"
        );
        assert_eq!(launched.outcome.interference.len(), 2);
    }
    // Of twelve the middle one: a side that is woken late sees the rest of its set-up alone, or more than it. Nothing else is in that
    // step: not the other host's address resolution, which takes as long as that of this one.
    setups.sort_unstable();
    let middle = setups[setups.len() / 2];
    let within = setup_ns * 9 / 10..setup_ns + 1_000_000;
    measured(|| assert!(within.contains(&middle), "{setups:?} of {setup_ns} ns"));
    let latency = fleet.converse(&ask(Probe::Latency, 2, 0)).unwrap();
    println!(
        "latency took {:?}, verdict {:?}",
        latency.took,
        latency.report.map(|report| report.verdict())
    );
    assert_eq!(fleet.stop().unwrap(), Vec::<String>::new());
}

#[test]
fn a_killed_agent_is_started_again_and_a_killed_host_is_lost() {
    let _alone = alone();
    let mut fleet = Fleet::lab(&part(), &config("ethernet-100", 4)).unwrap();
    assert!(fleet.converse(&ask(Probe::Latency, 0, 1)).is_ok());
    let mut long = ask(Probe::Stream, 1, 2);
    long.spec.procedure = Procedure::Stream {
        window_ns: 6_000_000_000,
    };
    let killer = |host: &'static str, part: &'static str| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1_500));
            kill(host, part);
        })
    };
    let kills = [
        ("h2", " agent", 1, 2),
        ("h3", " agent", 1, 2),
        ("h3", "--sonde-worker", 1, 2),
    ];
    for (host, part, src, dst) in kills {
        let killing = killer(host, part);
        let error = fleet
            .converse(&Ask {
                spec: long.spec.clone(),
                between: Between {
                    src,
                    dst,
                    ..long.between.clone()
                },
            })
            .unwrap_err();
        killing.join().unwrap();
        println!("{host} without {part}: {error}");
        assert!(error.to_string().contains(host) && !error.lost, "{error}");
        assert!((0..4).all(|host| fleet.alive(host)));
        assert!(fleet.converse(&ask(Probe::Latency, 1, 2)).is_ok());
    }
    let killing = killer("h3", "--sonde-lab-host");
    let error = fleet.converse(&long).unwrap_err();
    killing.join().unwrap();
    println!("{error}");
    assert_eq!(
        (error.host.as_deref(), error.lost),
        (Some("h3"), true),
        "{error}"
    );
    assert_eq!(
        [0, 1, 2, 3].map(|host| fleet.alive(host)),
        [true, true, false, true]
    );
    assert!(fleet.loss(2).is_some_and(|why| why.contains("h3")));
    let again = fleet.converse(&long).unwrap_err();
    assert!(
        again.lost && again.to_string().contains("lost before"),
        "{again}"
    );
    assert!(fleet.revive(2).is_err() && !fleet.alive(2));
    assert!(fleet.converse(&ask(Probe::Latency, 3, 1)).is_ok());
    // Without the switch nothing is left to measure on.
    for (pid, _, line) in lab_processes() {
        if line.contains("--sonde-lab-switch") {
            sonde_sys::process::kill(pid, 9).unwrap();
        }
    }
    let error = fleet.converse(&ask(Probe::Latency, 0, 1)).unwrap_err();
    assert!(
        error.lost && (0..4).all(|host| !fleet.alive(host)),
        "{error}"
    );
    println!("stop: {:?}", fleet.stop().unwrap());
}

#[test]
fn a_lab_that_cannot_be_had_is_an_error() {
    let _alone = alone();
    let error = Fleet::lab(&part(), &config("ethernet-100", 257))
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("cannot start the lab") && !error.lost,
        "{error}"
    );
    let error = Fleet::lab(File::new("/nonexistent/sonde"), &config("ethernet-100", 2))
        .err()
        .unwrap();
    assert!(error.host.is_none(), "{error}");
}

#[test]
fn many_hosts_have_agents() {
    let _alone = alone();
    let began = Instant::now();
    let mut fleet = Fleet::lab(&part(), &config("ethernet-1g", 64)).unwrap();
    println!("64 hosts with agents after {:?}", began.elapsed());
    assert_eq!(fleet.hosts().len(), 64);
    for (src, dst) in [(0, 63), (63, 31), (31, 0)] {
        assert!(fleet.converse(&ask(Probe::Latency, src, dst)).is_ok());
    }
    let ending = Instant::now();
    assert_eq!(fleet.stop().unwrap(), Vec::<String>::new());
    println!("ended after {:?}", ending.elapsed());
}
