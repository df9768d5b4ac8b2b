//! The screen on runs made by hand.

use sonde_measure::{Ceiling, Judged, Phase, Quantity, Run, RunState, Step, Testbed};

use super::*;
use crate::testing::{Net, Runs, net, verdict};

/// The screen, which has its bounds.
fn screen(run: &Run) -> String {
    let text = Assessment::of(run).text(&Place {
        page: Some("./sonde-runs/20261121T043302Z-1f09c3.html".into()),
        options: String::new(),
    });
    assert!(text.lines().count() <= LINES, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= COLUMNS, "{line}\n{text}");
    }
    text
}

/// The line of the screen that begins so.
fn line<'t>(text: &'t str, begin: &str) -> &'t str {
    let found = text
        .lines()
        .find(|line| line.trim_start().starts_with(begin));
    found.unwrap_or_else(|| panic!("no line begins with {begin}:\n{text}"))
}

/// A network whose wire takes 26 µs for 8 B.
fn lan(name: &str) -> Net {
    net(name)
        .line(100_000_000)
        .ceiling("tcp", Quantity::LatencyNs, Some(8), 26_000)
}

/// TCP and three libraries on a network; `pvm_ns` by the daemons.
fn assessed(runs: Runs, name: &str, bps: u64, pvm_ns: u64) -> Runs {
    runs.network(lan(name))
        .wait("poll")
        .latency(name, "tcp", 8, 48_000)
        .latency(name, "openmpi:tcp", 8, 57_000)
        .wait("block")
        .latency(name, "tcp", 8, 43_000)
        .latency(name, "pvm:default", 8, pvm_ns)
        .latency(name, "pvm:direct", 8, 60_000)
        .stream(name, "tcp", bps)
}

fn quiet() -> Runs {
    Runs::new().spread(0.01).verdict(verdict(0))
}

#[test]
fn a_quiet_run_is_told_on_one_screen() {
    let run = assessed(quiet(), "ethernet-100", 94_000_000, 117_000)
        .startup("ethernet-100", "tcp", 8, None, 2_457_000)
        .startup("ethernet-100", "tcp", 8, Some(Step::Neighbour), 1_099_000)
        .done();
    let text = screen(&run);
    assert!(
        text.starts_with("2 emulated hosts, 1 network, 3 min 0 s "),
        "{text}"
    );
    assert!(
        text.lines()
            .next()
            .unwrap()
            .ends_with(" 20261121T043302Z-1f09c3")
    );
    assert!(line(&text, "TRUST").starts_with("TRUST    HIGH"), "{text}");
    // Wire, what TCP and its hosts take above it, the library above TCP, and all of it.
    let network = line(&text, "ethernet-100");
    assert!(network.contains("94.0/94.1 Mb/s  99%"), "{network}");
    assert!(network.contains(" 26+ 22+9.0=   57"), "{network}");
    assert!(network.contains(" 26+ 17+ 74=  117"), "{network}");
    let library = line(&text, "1 library");
    assert!(
        library.contains("PVM by daemons adds 74 µs to a message, 63 % of it"),
        "{library}"
    );
    assert!(
        line(&text, "2 hosts").contains("TCP and the hosts take"),
        "{text}"
    );
    let start = line(&text, "3 start");
    assert!(
        start.contains("ethernet-100: the first message over TCP takes 2.457 ms, 29 times"),
        "{start}"
    );
    assert!(text.contains("PvmRouteDirect"), "{text}");
    assert!(line(&text, "MORE").contains("--findings ("), "{text}");
    assert!(line(&text, "REPORT").ends_with("1f09c3.html"), "{text}");
}

#[test]
fn what_may_be_none_is_a_question_mark() {
    // One launch of six is far away: the interval of the difference holds zero.
    let run = Runs::new()
        .network(lan("lan"))
        .latency("lan", "tcp", 8, 43_000)
        .latency("lan", "openmpi:tcp", 8, 43_000)
        .stream("lan", "tcp", 94_000_000)
        .done();
    let text = screen(&run);
    assert!(line(&text, "lan").contains(" 26+ 17+  ?=   43"), "{text}");
    assert!(!text.contains("library"), "{text}");
    // A path without a transport at equal wait beside it has no parts.
    let run = Runs::new()
        .network(lan("lan"))
        .latency("lan", "tcp", 8, 43_000)
        .wait("poll")
        .latency("lan", "openmpi:tcp", 8, 60_000)
        .done();
    assert!(
        line(&screen(&run), "lan").contains(" 26+  -+  -=   60"),
        "{}",
        screen(&run)
    );
}

/// Polled TCP was put aside for milliseconds: its part of the library's time is not known, and no loss of the hosts.
#[test]
fn a_transport_slower_than_the_library_tells_no_part() {
    let run = quiet()
        .network(lan("lan"))
        .wait("poll")
        .latency("lan", "tcp", 8, 3_000_000)
        .latency("lan", "openmpi:tcp", 8, 80_000)
        .stream("lan", "tcp", 94_000_000)
        .done();
    let text = screen(&run);
    assert!(line(&text, "lan").contains(" 26+  ?+  ?=   80"), "{text}");
    assert!(Assessment::of(&run).lost.is_empty(), "{text}");
}

#[test]
fn a_late_run_is_not_trusted() {
    let late = Runs::new()
        .spread(0.01)
        .verdict(verdict(3_200))
        .disturbed(|at| {
            at.cpus = 2;
            at.span_ns = 1_000_000_000;
            at.steal_ns = Some(320_000_000);
        });
    let mut run = assessed(late, "ethernet-100", 93_000_000, 117_000).done();
    run.networks[0].ceilings.push(Ceiling {
        path: "tcp".into(),
        quantity: Quantity::ThroughputBps,
        phase: Phase::Warm,
        size_bytes: None,
        value: 94_150_000,
    });
    let text = screen(&run);
    let trust = line(&text, "TRUST");
    assert!(
        trust.starts_with("TRUST    LOW      a disturbance leaves 5 of 6 figures uncertain"),
        "{trust}"
    );
    // The stream is at its ceiling: whatever met the late frames, it would not have been faster.
    assert!(
        text.contains("Can be used: streams; not: latencies."),
        "{text}"
    );
    let network = line(&text, "ethernet-100");
    assert!(
        network.contains("93.0/94.2 Mb/s  99% ") && network.contains("=  117~"),
        "{network}"
    );
    assert!(text.contains("~ uncertain"), "{text}");
    let next = line(&text, "DO NEXT");
    assert!(
        next.contains("`sonde assess --hosts 2 --network ethernet-100`"),
        "{next}"
    );
    let facts = Assessment::of(&run).trust;
    assert_eq!(
        (facts.level, facts.disturbed, facts.figures),
        (TrustLevel::Low, 5, 6)
    );
    assert_eq!(facts.stolen.map(|(_, most)| most.0), Some(0.16));
    // A stream that is far below it may be slow for that reason.
    let slow = assessed(
        Runs::new().verdict(verdict(3_200)),
        "ethernet-100",
        50_000_000,
        117_000,
    );
    assert!(screen(&slow.done()).contains("No kind of figures can be used"));
}

#[test]
fn two_launches_have_no_intervals() {
    let run = assessed(quiet().launches(2), "lan", 94_000_000, 117_000).done();
    let text = screen(&run);
    let trust = line(&text, "TRUST");
    assert!(
        trust.contains("MEDIUM   2 repetitions: no confidence intervals"),
        "{trust}"
    );
    assert!(
        text.contains("for intervals: `sonde assess --launches 6`"),
        "{text}"
    );
    // It is the run's own command, but for how often; a plan says that itself.
    let mut run = run;
    run.head.command = "assess --quick --network lan --launches 2".into();
    let again = screen(&run);
    assert!(
        again.contains("`sonde assess --network lan --launches 6`"),
        "{again}"
    );
    run.head.command = "assess plan.toml".into();
    let again = screen(&run);
    assert!(!again.contains("--launches 6"), "{again}");
}

#[test]
fn many_networks_are_counted() {
    let runs = (0..18u64).fold(quiet(), |runs, at| {
        let bps = 94_000_000 - 4_000_000 * at;
        assessed(runs, &format!("lan-{at:02}"), bps, 117_000)
    });
    let run = runs.done();
    let text = screen(&run);
    assert!(text.contains("\nand 12 more: --table\n"), "{text}");
    assert!(text.contains("18 networks"), "{text}");
    // Each loses most by PVM's daemons but the last one, of whose stream three quarters are lost.
    let first = &Assessment::of(&run).networks[0];
    assert_eq!(first.network, "lan-17");
    assert!(
        line(&text, "1 stream").contains("lan-17: TCP reaches 26.00 Mb/s of 94.15 Mb/s, 28 %"),
        "{text}"
    );
    assert!(
        line(&text, "DO NEXT").contains("`sonde tune --network lan-17`"),
        "{text}"
    );
}

#[test]
fn losses_that_have_no_room_are_counted() {
    let long = "a-network-of-a-very-long-name-indeed:mtu=1500";
    let runs = (0..7u64).fold(quiet(), |runs, at| {
        assessed(runs, &format!("{long}{at}"), 50_000_000, 117_000)
            .startup(&format!("{long}{at}"), "tcp", 8, None, 2_457_000)
            .startup(
                &format!("{long}{at}"),
                "tcp",
                8,
                Some(Step::Second),
                100_000,
            )
            .startup(&format!("{long}{at}"), "tcp", 8, Some(Step::Idle), 900_000)
            .stream(&format!("{long}{at}"), "udp", 50_000_000)
            .beside(Quantity::LostShare, 250_000)
    });
    let text = screen(&runs.done());
    assert!(text.contains(" more: --findings"), "{text}");
    assert_eq!(text.lines().count(), LINES, "{text}");
}

/// Real hosts: the same frame, with how many of their pairs were measured.
#[test]
fn real_hosts_are_counted_in_pairs() {
    let names: Vec<String> = (1..=16).map(|host| format!("c{host:02}")).collect();
    let pairs: Vec<(&str, &str)> = names
        .windows(2)
        .take(8)
        .map(|two| (&*two[0], &*two[1]))
        .collect();
    let mut run = Runs::new()
        .launches(8)
        .network(net("default"))
        .latency_between("default", "tcp", 8, &pairs, |_, _| 20_000)
        .stream("default", "tcp", 23_400_000_000)
        .done();
    for cell in &mut run.cells {
        cell.factors.testbed = Testbed::Hosts;
        cell.factors.hosts.clone_from(&names);
    }
    let text = screen(&run);
    assert!(
        text.starts_with("16 hosts, 8 of 240 pairs, 1 network"),
        "{text}"
    );
    // No rate of the line is known, and no model: these are no zeros.
    let network = line(&text, "default");
    assert!(network.contains("23.4/- Gb/s    -"), "{network}");
    assert!(network.contains("  -+ 20+  -=   20"), "{network}");
    let next = line(&text, "DO NEXT");
    assert!(next.contains("measure every pair"), "{next}");
    assert!(
        text.contains("sonde probe pattern all-pairs --testbed hosts:c01,c02"),
        "{text}"
    );
    assert!(line(&text, "TRUST").contains("HIGH"), "{text}");
}

/// An assessment that begins with all pairs of four hosts.
fn with_all_pairs(change: impl Fn(&mut Run)) -> Run {
    let mut run = assessed(quiet(), "lan", 94_000_000, 117_000).done();
    let mut matrix = crate::testing::all_pairs(4);
    change(&mut matrix);
    let names: Vec<String> = matrix.hosts.iter().map(|host| host.name.clone()).collect();
    for cell in run.cells.iter_mut().chain(&mut matrix.cells) {
        cell.factors.hosts.clone_from(&names);
    }
    for launch in &mut run.launches {
        (launch.src, launch.dst) = (names[0].clone(), names[1].clone());
    }
    run.hosts = matrix.hosts;
    run.cells.splice(0..0, matrix.cells);
    run.launches.splice(0..0, matrix.launches);
    run
}

#[test]
fn all_pairs_stand_above_the_networks() {
    let run = with_all_pairs(|_| ());
    assert!(Assessment::is_of(&run));
    let text = screen(&run);
    assert!(
        line(&text, "PAIRS")
            .ends_with("PASS: on lan of 4 hosts and 12 ordered pairs none stands out; the other"),
        "{text}"
    );
    assert!(text.contains("         figures are of 1 of 12\n"), "{text}");
    // One launch has every pair: that is neither few repetitions nor a late cell of the figures below.
    assert!(line(&text, "TRUST").contains("HIGH"), "{text}");
    let facts = Assessment::of(&run);
    assert_eq!((facts.scope.pairs, facts.scope.pairs_beside), (12, 1));
    // Other patterns have tables of their own.
    let mut other = run;
    for cell in &mut other.cells {
        if let Some(pattern) = cell.factors.knobs.get_mut("pattern") {
            *pattern = "shift:1".into();
        }
    }
    assert!(!Assessment::is_of(&other));
}

#[test]
fn a_bad_host_is_named_with_its_figures() {
    let run = with_all_pairs(|matrix| {
        for launch in &mut matrix.launches {
            if launch.src == "node0002" || launch.dst == "node0002" {
                launch.results[0].series.clear();
                launch.results[0].failure = Some("no route to host".into());
            }
        }
    });
    let text = screen(&run);
    let pairs = line(&text, "PAIRS");
    assert!(
        pairs.starts_with("PAIRS    FAIL: node0002 is bad: 6 of its 6 pairs gave no result; check"),
        "{text}"
    );
    assert!(!line(&text, "TRUST").contains("host-unreached"), "{text}");
    let facts = Assessment::of(&run).all_pairs.unwrap();
    assert_eq!((facts.state, facts.pairs), (Judged::Fail, 6));
    assert_eq!(facts.hosts, ["node0002"]);
}

#[test]
fn nothing_measured_is_said() {
    let text = screen(&Runs::new().done());
    assert!(
        line(&text, "TRUST").contains("LOW      nothing was measured"),
        "{text}"
    );
    let run = Runs::new()
        .network(lan("lan"))
        .failed_cell("lan", "tcp", "h2 is gone")
        .done();
    let text = screen(&run);
    assert!(
        line(&text, "TRUST").contains("nothing was measured: 6 failed: h2 is gone"),
        "{text}"
    );
    assert!(
        line(&text, "DO NEXT").contains("sonde assess --resume"),
        "{text}"
    );
}

#[test]
fn an_interrupted_run_says_what_is_missing() {
    let mut run = assessed(quiet(), "lan", 94_000_000, 117_000).done();
    run.head.state = RunState::Partial;
    run.launches.truncate(run.launches.len() - 3);
    let text = screen(&run);
    assert!(
        line(&text, "TRUST").contains("MEDIUM   3 repetitions are missing"),
        "{text}"
    );
}

/// A library that reaches 6 % is a loss of its network, with what TCP reaches beside it.
#[test]
fn a_slow_library_is_a_loss() {
    let run = assessed(quiet(), "lan", 94_000_000, 45_000)
        .stream("lan", "native:tcp", 5_600_000)
        .done();
    let text = screen(&run);
    let rate = line(&text, "1 rate");
    assert!(
        rate.contains("lan: native reaches 5.600 Mb/s of 94.15 Mb/s, 5.9 %"),
        "{text}"
    );
    let found = &Assessment::of(&run).lost[0];
    assert_eq!(
        (found.at, &*found.rules),
        (LostAt::LibraryRate, &["library-rate".to_owned()][..])
    );
}

#[test]
fn the_line_itself_is_told_last() {
    let far = net("wan")
        .line(100_000_000)
        .ceiling("tcp", Quantity::LatencyNs, Some(8), 10_000_000);
    let run = quiet()
        .network(far)
        .latency("wan", "tcp", 8, 10_030_000)
        .stream("wan", "tcp", 94_000_000)
        .done();
    let text = screen(&run);
    assert!(line(&text, "wan").contains("wire 99.7%=10030"), "{text}");
    assert!(
        line(&text, "1 distance").contains("wan: 100 % of a small message is the line"),
        "{text}"
    );
}

/// What a loopback loses is not the network's, and its line comes last.
#[test]
fn a_loopback_beside_networks_is_a_floor() {
    let mut run = assessed(quiet(), "loopback", 1_000_000, 900_000).done();
    let local = run.cells.len();
    for cell in &mut run.cells {
        cell.factors.testbed = Testbed::Local;
    }
    let mut others = assessed(quiet(), "lan", 94_000_000, 117_000).done();
    others.cells.splice(0..0, run.cells.drain(..local));
    others.launches.append(&mut run.launches);
    let all = Assessment::of(&others);
    let names: Vec<&str> = all
        .networks
        .iter()
        .map(|one| one.network.as_str())
        .collect();
    assert_eq!(names, ["lan", "loopback"]);
    assert_eq!(all.scope.networks, 1);
    let lossy = all.lost.iter().flat_map(|loss| &loss.networks);
    assert!(lossy.clone().count() > 0 && lossy.clone().all(|name| name == "lan"));
}

#[test]
fn only_the_main_job_has_a_screen() {
    let probe = Runs::new().latency("lan", "tcp", 8, 43_000);
    assert!(!Assessment::is_of(&probe.done()));
    assert!(!Assessment::is_of(&Runs::new().done()));
    let kernel = Runs::new().kernel("lan", "pvm:direct", "cg S 2", 1_000_000);
    assert!(!Assessment::is_of(&kernel.done()));
    let both = Runs::new()
        .latency("lan", "tcp", 8, 43_000)
        .stream("lan", "tcp", 94_000_000);
    assert!(Assessment::is_of(&both.done()));
    // A sweep measures a round trip beside its streams.
    let sweep = Runs::new()
        .latency("lan", "tcp", 8, 43_000)
        .stream_of("lan", "tcp", 1_024, 50_000_000)
        .stream_of("lan", "tcp", 65_536, 94_000_000);
    assert!(!Assessment::is_of(&sweep.done()));
}

#[test]
fn hostile_names_stay_in_their_line() {
    let run = assessed(quiet(), "lan\u{1b}[2J\n\u{202e}", 94_000_000, 117_000).done();
    let text = screen(&run);
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
}

#[test]
fn the_facts_are_json() {
    let run = assessed(quiet(), "lan", 94_000_000, 117_000).done();
    let facts = Assessment::of(&run);
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<Assessment>(&text).unwrap(), facts);
    assert!(text.contains("\"wire_ns\":26000"), "{text}");
}

#[test]
fn each_rule_is_one_entry() {
    let runs = (0..3u64).fold(quiet(), |runs, at| {
        let pvm_ns = 100_000 + 10_000 * at;
        assessed(runs, &format!("lan-{at}"), 50_000_000, pvm_ns)
    });
    let text = findings_by_rule(&runs.done(), 80);
    assert_eq!(text.matches("[below-expectation]").count(), 1, "{text}");
    assert!(
        text.contains("[below-expectation] (3) on lan-0, lan-1, lan-2: 47 % lost"),
        "{text}"
    );
    // The weightiest of them is told: the daemons on the last network.
    assert!(text.contains("pvm:default adds 77"), "{text}");
    assert!(text.contains("[library-cost]"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert_eq!(
        findings_by_rule(&quiet().latency("lan", "tcp", 8, 1).done(), 80),
        "No findings."
    );
}

#[test]
fn what_files_reach_is_one_line() {
    let mut runs = quiet();
    for (name, bps) in [("ethernet-100", 90_000_000), ("atm-oc3c", 120_000_000)] {
        runs = assessed(runs, name, bps, 117_000);
    }
    let mut all = Assessment::of(&runs.done());
    let place = Place::default();
    assert!(!all.text(&place).contains("FILES"));
    for (at, network) in all.networks.iter_mut().enumerate() {
        let reached = network.reached_bps.unwrap();
        let one = |path: &str, name: &str, tenths: u64| AssessedFiles {
            path: path.into(),
            name: name.into(),
            operation: "read".into(),
            reached_bps: reached * tenths / 10,
            is_disturbed: at == 1,
        };
        network.files = vec![one("nfs3:tcp", "NFS v3", 8 - 3 * at as u64)];
        network.files.push(one("ftp", "FTP", 9));
    }
    let names: Vec<String> = all.networks.iter().map(|one| one.network.clone()).collect();
    let text = all.text(&place);
    let told = format!("{} 50~/90~, {} 80/90", names[1], names[0]);
    assert!(line(&text, "FILES").ends_with(&told), "{told}: {text}");
    // Where there is no room for all, those that lose most stay.
    all.networks[0].network = "a-network-with-a-name-that-is-long".into();
    let text = all.text(&place);
    let line = line(&text, "FILES");
    assert!(line.ends_with(" 50~/90~, 1 more from 80"), "{text}");
    assert!(line.chars().count() <= COLUMNS, "{line}");
}
