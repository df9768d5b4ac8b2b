//! A fleet on this machine: two agents that are processes, over loopback.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sonde_fleet::{Ask, Between, Fleet, Launched, Stream};
use sonde_link::Law;
use sonde_measure::{Path, Wait};
use sonde_measure::{Probe, Procedure, Sampling, Spec};
use sonde_measure::{Quantity, Step};
use sonde_units::Ratio;

fn part() -> PathBuf {
    env!("CARGO_BIN_EXE_sonde-fleet-part").into()
}

fn ask(probe: Probe, path: Path) -> Ask {
    let mut spec = Spec::new(probe, path, Wait::Block);
    if let Some(sampling) = spec.procedure.sampling_mut() {
        sampling.budget_ns = 1_000_000_000;
    }
    Ask {
        spec,
        between: Between {
            src: 0,
            dst: 1,
            one_way_ns: None,
            load: None,
        },
    }
}

fn quantities(launched: &Launched) -> Vec<(Quantity, Option<Step>)> {
    let measurements = &launched.outcome.sizes[0].measurements;
    let given = measurements.iter().filter(|one| one.series.count() > 0);
    given.map(|one| (one.quantity, one.step)).collect()
}

/// The processes that play agents for this one, in this thread's fleet: their ids.
fn agents() -> Vec<u32> {
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_agent = |pid: &u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        line.ends_with("\0agent\0") && parent == Some(own)
    };
    processes.filter(is_agent).collect()
}

fn cpus_of(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().into()
}

// One test, since what it looks for are this process's children.
#[test]
fn two_agents_talk_over_loopback() {
    let mut fleet = Fleet::local(&part()).unwrap();
    let hosts = fleet.hosts();
    assert_eq!(
        (&*hosts[0].name, &*hosts[1].name, hosts.len()),
        ("local-1", "local-2", 2)
    );
    for host in hosts {
        assert_eq!(
            (&*host.address, host.facts.interface.as_deref()),
            ("127.0.0.1", Some("lo"))
        );
        assert!(host.facts.cpus > 0 && host.clock.is_none());
    }
    assert!(
        fleet.lab_info().is_none()
            && fleet.attachment().is_none()
            && fleet.backpressure().is_none()
    );

    // Both agents on one CPU, and then two others apart.
    for path in [Path::Tcp, Path::Udp] {
        let latency = fleet.converse(&ask(Probe::Latency, path)).unwrap();
        assert!(
            quantities(&latency)
                .iter()
                .any(|one| one.0 == Quantity::LatencyNs)
        );
        assert!(latency.report.is_none() && latency.took > Duration::ZERO);
    }
    let first = agents();
    let same: Vec<String> = first.iter().map(|pid| cpus_of(*pid)).collect();
    assert_eq!(first.len(), 2);
    assert!(
        same[0] == same[1] && same[0].parse::<usize>().is_ok(),
        "{same:?}"
    );
    let stream = fleet.converse(&ask(Probe::Stream, Path::Tcp)).unwrap();
    assert!(
        quantities(&stream)
            .iter()
            .any(|one| one.0 == Quantity::ThroughputBps)
    );
    let all = agents();
    assert_eq!(all.len(), 4);
    if sonde_sys::cpu::online().unwrap().len() > 1 {
        let apart: Vec<String> = all
            .iter()
            .filter(|pid| !first.contains(pid))
            .map(|pid| cpus_of(*pid))
            .collect();
        assert_ne!(apart[0], apart[1]);
    }

    // A start-up is one outcome of many pieces: of each size the whole and its steps.
    let mut start = ask(Probe::Startup, Path::Tcp);
    start.spec.sizes_bytes = vec![1, 1_000];
    let start = fleet.converse(&start).unwrap();
    assert_eq!(start.outcome.sizes.len(), 2);
    for size in &start.outcome.sizes {
        let steps: Vec<_> = size.measurements.iter().map(|one| one.step).collect();
        for step in [
            None,
            Some(Step::Connect),
            Some(Step::First),
            Some(Step::Idle),
        ] {
            assert!(
                steps.contains(&step),
                "{step:?} of {} B in {steps:?}",
                size.size_bytes
            );
        }
    }

    // Agents that are killed are started again at their next use.
    for pid in agents() {
        sonde_sys::process::kill(pid, 9).unwrap();
    }
    while !agents().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    fleet.converse(&ask(Probe::Latency, Path::Tcp)).unwrap();
    // One that is killed in the middle is told, and its host stays.
    let pids = agents();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        pids.iter()
            .for_each(|pid| drop(sonde_sys::process::kill(*pid, 9)));
    });
    let mut long = ask(Probe::Latency, Path::Tcp);
    long.spec.procedure = Procedure::Latency(Sampling {
        precision_per_mille: None,
        samples_min: 1_000_000,
        samples_max: 1_000_000,
        budget_ns: 20_000_000_000,
        ..Sampling::LATENCY
    });
    let error = fleet.converse(&long).unwrap_err();
    killer.join().unwrap();
    assert!(!error.lost && fleet.alive(0) && fleet.alive(1), "{error}");
    assert!(
        error
            .to_string()
            .contains("measure latency over tcp from local-1 to local-2"),
        "{error}"
    );
    fleet.converse(&ask(Probe::Latency, Path::Udp)).unwrap();

    // A load that cannot begin leaves no agents of its own: 27 bytes hold no header.
    let before = agents();
    let stream = Stream {
        src: 0,
        dst: 1,
        rho: Ratio::new(1, 2),
        law: Law::Poisson,
        size_bytes: 27,
        of_bps: 1_000_000_000,
        mtu_bytes: 1_500,
    };
    let lasts = Duration::from_secs(1);
    let error = fleet.begin_load(&[stream], lasts, lasts, 1).unwrap_err();
    assert!(error.to_string().contains("27 bytes"), "{error}");
    assert_eq!(agents(), before);

    let began = Instant::now();
    // Those that were killed and not needed again are told of.
    let told = fleet.stop().unwrap();
    assert!(
        told.len() == 2 && told.iter().all(|one| one.contains("SIGKILL")),
        "{told:?}"
    );
    assert_eq!(agents(), Vec::<u32>::new());
    println!("stopped after {:?}", began.elapsed());

    let error = Fleet::local(std::path::Path::new("/nonexistent/sonde"))
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("/nonexistent/sonde") && error.lost,
        "{error}"
    );
    let error = Fleet::local(std::path::Path::new("/bin/true"))
        .err()
        .unwrap();
    assert!(error.to_string().contains("local-1"), "{error}");
}
