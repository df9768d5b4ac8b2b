//! Sites in a running lab: what a host's own programs see of bridges, and that the virtual clock says the same.
//!
//! Model:   `two-rooms` of the catalogue, and files of this test's own. Times are bounded from below by the model, which is never early.
//! Checked: here.

use crate::lab::{Case, Stage, attached, attachments, has, spread};
use crate::paired::lab_networks::{lines, on_h1, round_trips_us};
use serde_json::Value;

const USAGE: i32 = 64;

/// Rooms in a row: two hosts each at both ends, none between, and a bridge between each two.
fn row(network: &str, rooms: usize) -> String {
    let mut text = "name = \"row\"\nsummary = \"rooms in a row\"\n".to_owned();
    for room in 1..=rooms {
        let hosts = match room {
            1 => "\"near-[1-2]\"",
            last if last == rooms => "\"far-[1-2]\"",
            _ => "",
        };
        text += &format!(
            "[[segment]]\nname = \"room-{room}\"\nnetwork = \"{network}\"\nhosts = [{hosts}]\n"
        );
    }
    for room in 1..rooms {
        let next = room + 1;
        text += &format!(
            "[[bridge]]\nname = \"bridge-{room}\"\njoins = [\"room-{room}\", \"room-{next}\"]\nlatency = \"1ms\"\n"
        );
    }
    text
}

/// The segments of a site as `lab list --sites` has them.
fn segments(stage: &Stage, site: &str) -> Vec<Value> {
    let outcome = stage
        .sonde(&["lab", "list", "--sites", site, "--json"])
        .expect(0);
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(document["command"], "lab sites");
    document["sites"][0]["segments"].as_array().unwrap().clone()
}

#[test]
fn hosts_of_a_site_have_the_names_of_its_file() {
    for case in attachments() {
        let stage = Stage::new(case);
        let script = "hostname; cat /etc/hostname; echo $SONDE_HOST $SONDE_HOSTS $HOSTNAME
            sonde lab exec b2 -- hostname; sonde lab exec h6 -- hostname; /run/sonde/bin/rsh b3 hostname
            grep -c . /etc/hosts; grep b4 /etc/hosts | tr '\\t' ' '; sonde lab exec c1 -- true; echo $?";
        let outcome = on_h1(&stage, &["--site", "two-rooms"], script);
        let seen = lines(&outcome);
        let want = [
            "a1",
            "a1",
            "h1 8 a1",
            "b2",
            "b2",
            "b3",
            "9",
            "10.9.0.8 b4 h8",
            "64",
        ];
        assert_eq!(seen, want, "{case:?}: {outcome}");
        outcome.tells(&["`c1` is not a host of a lab"]);
    }
}

#[test]
fn programs_run_over_bridges_and_the_virtual_clock_says_the_same() {
    if !has("ping") {
        return;
    }
    for (case, (network, rooms)) in
        spread(&attachments(), &[("ethernet-10", 2), ("ethernet-100", 4)])
    {
        let stage = Stage::new(case);
        let (file, ledger) = (stage.path("row.toml"), stage.path("ledger"));
        std::fs::write(&file, row(network, rooms)).unwrap();
        let script = "echo begin; ping -c 5 -i 0.05 far-2; echo begin; ping -c 5 -i 0.05 near-2; ping -b -c 2 -i 0.2 10.9.0.255 >/dev/null 2>&1; true";
        let outcome = on_h1(&stage, &["--site", &file, "--ledger", &ledger], script);
        let (far, near) = outcome.out.rsplit_once("begin\n").unwrap();
        let (far, near) = (
            round_trips_us(far, "begin"),
            round_trips_us(&format!("begin\n{near}"), "begin"),
        );
        assert_eq!(
            (far.len(), near.len()),
            (5, 5),
            "{case:?} {network}: {outcome}"
        );
        // The model is never early, and each bridge holds a frame for a millisecond.
        let bridges = rooms as u64 - 1;
        assert!(
            far[0] >= 2_000 * bridges && near[0] < 2_000,
            "{case:?} {network}: {far:?} {near:?}"
        );
        let path = &segments(&stage, &file)[rooms - 1];
        assert_eq!(
            (&path["nodes"], &path["hosts"][1]),
            (&bridges.into(), &"far-2".into())
        );
        let way_ns = path["one_way_1b_ns"].as_u64().unwrap();
        assert!(
            way_ns > 1_000_000 * bridges && 2 * way_ns / 1_000 < far[0],
            "{path}: {far:?}"
        );
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        for word in [
            "row with 4 hosts",
            "parity      same admissions",
            " 0 early",
        ] {
            assert!(replay.out.contains(word), "{word}: {replay}");
        }
    }
}

#[test]
fn what_a_site_breaks_is_said_by_its_hosts() {
    if !has("ping") {
        return;
    }
    for case in attached("veth") {
        let stage = Stage::new(case);
        let script_file = stage.path("script");
        std::fs::write(&script_file, "0s loss h5 100%\n").unwrap();
        let script = "fails lost b1; answers kept b2; answers near a2
            tell link h6 down; fails down b2; tell link h6 up; answers up b2
            tell delay all 20ms; echo begin later; ping -c 3 -i 0.1 b2 | grep time=
            sonde lab tell trunk 0 down; echo $?; sonde lab tell cut h1 h5 on; echo $?";
        let outcome = on_h1(
            &stage,
            &["--site", "two-rooms", "--script", &script_file],
            script,
        );
        let said: Vec<_> = lines(&outcome)
            .into_iter()
            .filter(|line| !line.contains("time="))
            .collect();
        let want = [
            "lost no",
            "kept yes",
            "near yes",
            "down no",
            "up yes",
            "begin later",
            "2",
            "2",
        ];
        assert_eq!(said, want, "{case:?}: {outcome}");
        // Each of two segments delays, there and back.
        assert!(
            round_trips_us(&outcome.out, "begin later")[0] >= 80_000,
            "{outcome}"
        );
        outcome.tells(&["two hosts of the same segment"]);
    }
}

#[test]
fn wrong_sites_are_refused_with_their_line() {
    let stage = Stage::new(Case::own("veth"));
    let file = stage.path("site.toml");
    for (text, said) in [
        (
            row("ethernet-10", 2)
                + "[[bridge]]\nname = \"more\"\njoins = [\"room-2\", \"room-1\"]\n",
            "another way to segment `room-1`",
        ),
        (
            row("ethernet-10", 2).replace("far-[1-2]", "near-[2-3]"),
            "host `near-2` is on segments `room-1` and `room-2`, which bridges join",
        ),
        (
            row("ethernet-10", 2).replace("\"far-[1-2]\"", ""),
            "line 10: segment `room-2` has no hosts",
        ),
        (
            row("ethernet-10", 2).replace("far-[1-2]", "far-[1-300]"),
            "a lab has 2 to 256 hosts, not 302",
        ),
        (
            row("ethernet-1t", 2),
            "line 5: segment `room-1`: there is no network `ethernet-1t`",
        ),
        (
            row("ethernet-10", 2).replace("latency", "delay"),
            "unknown field `delay`",
        ),
        (row("hippi-800", 2), "carries no frames to all"),
        ("not toml".into(), "site.toml: "),
    ] {
        std::fs::write(&file, &text).unwrap();
        let outcome = stage.run(&["--site", &file], &["true"]).limit(20).output();
        assert!([USAGE, 125].contains(&outcome.code), "{outcome}");
        outcome.tells(&[said]);
        assert!(!outcome.err.contains("panicked"), "{outcome}");
    }
    let unknown = stage.run(&["--site", "campus"], &["true"]).expect(USAGE);
    unknown.tells(&[
        "there is no site `campus`: there are two-rooms, lace, lace-sp2, sandia-engineering",
        "./campus.toml",
    ]);
    for words in [["--network", "fddi"], ["--hosts", "3"]] {
        let both = stage.run(&[&["--site", "two-rooms"], &words[..]].concat(), &["true"]);
        both.expect(USAGE).tells(&["cannot be used with"]);
    }
    let listed = stage.sonde(&["lab", "list", "--sites"]).expect(0);
    for word in [
        "two-rooms: two shared Ethernets",
        "rus-campus",
        "ring-24",
        "r24-1 to r24-4",
    ] {
        assert!(listed.out.contains(word), "{word}: {listed}");
    }
    stage
        .sonde(&["lab", "list", "--sites", "--csv"])
        .expect(USAGE)
        .tells(&["write `--json`"]);
    let shown = segments(&stage, "rus-campus");
    let nodes = |segment: usize| shown[segment]["nodes"].as_u64();
    assert_eq!(
        (nodes(0), nodes(1), nodes(23), nodes(24)),
        (Some(0), Some(1), Some(2), None)
    );
}

#[test]
fn down_time_is_counted_by_cause_for_networks_side_by_side() {
    let stage = Stage::new(Case::own("veth"));
    let script = stage.path("outages.txt");
    // Six weeks of a trial: the manager of ATM's circuits loses contact and clears them when it is back; whoever is on shift sets
    // up those of h1 by hand in three minutes. Ethernet beside it has a host that goes.
    let text = "500h manager down\n500.01h manager up\n";
    let by_hand = (2..=4).map(|host| format!("500.06h vc establish h1 h{host}\n"));
    std::fs::write(&script, text.to_owned() + &by_hand.collect::<String>()).unwrap();
    let words = ["lab", "downtime", "atm-oc3c", "--script", &script];
    let outcome = stage.sonde(&[&words[..], &["--json"]].concat()).expect(0);
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(document["lasts_s"], 42.0 * 86_400.0);
    let network = &document["networks"][0];
    let cause = &network["causes"][0];
    assert_eq!(cause["cause"], "no circuit", "{network:#}");
    assert_eq!(cause["times"], 1, "{network:#}");
    let any = cause["any_s"].as_f64().unwrap();
    assert!(any > 180.0, "{network:#}");
    let share = network["availability"].as_f64().unwrap();
    assert!(share > 0.5 && share < 1.0, "{network:#}");

    std::fs::write(&script, "500h host h2 down\n500.5h host h2 up\n").unwrap();
    let words = [
        "lab",
        "downtime",
        "atm-oc3c",
        "ethernet-10",
        "--script",
        &script,
    ];
    let outcome = stage.sonde(&[&words[..], &["--json"]].concat()).expect(0);
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    for network in document["networks"].as_array().unwrap() {
        // Half of the pairs of four hosts, for half an hour.
        let all = &network["all"];
        assert_eq!(
            (&all["times"], &all["any_s"]),
            (&Value::from(1), &Value::from(1_800.0))
        );
        assert_eq!(all["mean_s"], 900.0, "{network:#}");
        assert_eq!(network["causes"][0]["cause"], "host down or standing still");
    }
    let shown = stage.sonde(&words).expect(0);
    for word in ["ethernet-10", "15.00", "30.00", "99.9752 % of 1008 h"] {
        assert!(shown.out.contains(word), "{word}: {shown}");
    }
    // A script that this network has no part for, a time that is none.
    std::fs::write(&script, "1h manager down\n").unwrap();
    let refused = stage.sonde(&["lab", "downtime", "fddi", "--script", &script]);
    refused.expect(USAGE).tells(&["manager"]);
    let refused = stage.sonde(&["lab", "downtime", "fddi", "--for", "0"]);
    refused.expect(USAGE).tells(&["`--for` is no time"]);
}

#[test]
fn what_an_option_for_a_site_changes_is_counted() {
    let stage = Stage::new(Case::own("veth"));
    let words = [
        "lab",
        "compare-sites",
        "sandia-engineering",
        "sandia-hybrid",
    ];
    let outcome = stage.sonde(&[&words[..], &["--json"]].concat()).expect(0);
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    let size = |side: &str| {
        let keys = [
            "hosts",
            "interfaces",
            "segments",
            "bridges",
            "routers",
            "ports",
            "subnets",
            "addresses",
        ];
        keys.map(|key| document[side][key].as_u64().unwrap())
    };
    // 74, 62, 2 and 14 interfaces and a router of three before; one interface of each host, bridges and a router of two after.
    assert_eq!(size("before"), [136, 152, 4, 0, 1, 155, 4, 155]);
    assert_eq!(size("after"), [136, 136, 4, 2, 1, 142, 2, 138]);
    let number = |key: &str| document[key].as_u64().unwrap();
    // Eight power users, two servers and twelve nodes get ATM for one, three and two Ethernets; the second Ethernet's 60 desktops get another
    // address.
    assert_eq!(
        (number("interfaces_added"), number("interfaces_removed")),
        (22, 38)
    );
    assert_eq!(
        (number("hosts_readdressed"), number("hosts_interrupted")),
        (60, 78)
    );
    assert_eq!((number("hosts_added"), number("hosts_removed")), (0, 0));
    let paths = document["paths"].as_array().unwrap();
    let of = |from: &str| paths.iter().find(|path| path["from"] == from).unwrap();
    let gain = |path: &Value| {
        let bps = |side: &str| path[side]["tcp_expected_bps"].as_f64().unwrap();
        bps("after") / bps("before")
    };
    assert!(paths.iter().all(|path| path["to"] == "file-server"));
    let hosts: u64 = paths
        .iter()
        .map(|path| path["hosts"].as_u64().unwrap())
        .sum();
    assert_eq!(hosts, 135);
    // A power user gains what the line does, who stays on Ethernet hardly anything.
    assert!(
        gain(of("desk1-1")) > 10.0 && gain(of("desk1-5")) < 1.1,
        "{paths:#?}"
    );
    assert_eq!(of("outside-1")["before"]["nodes"], 1);

    let shown = stage.sonde(&words).expect(0);
    for word in [
        "136 hosts stay, 0 go and 0 come. Of those that stay 78 are interrupted",
        "desk1-1 to file-server",
    ] {
        assert!(shown.out.contains(word), "{word}: {shown}");
    }
    // Hosts that come and go, hosts of no common name, and words that are none.
    let file = stage.path("rooms.toml");
    std::fs::write(&file, row("ethernet-10", 2)).unwrap();
    let more = stage.path("more.toml");
    std::fs::write(
        &more,
        row("ethernet-10", 2).replace("far-[1-2]", "far-[2-4]"),
    )
    .unwrap();
    let changed = stage
        .sonde(&["lab", "compare-sites", &file, &more, "--host", "far-2"])
        .expect(0);
    assert!(
        changed
            .out
            .contains("3 hosts stay, 1 go and 2 come. Of those that stay 0 are interrupted"),
        "{changed}"
    );
    for (words, said) in [
        (vec![&*file, "two-rooms"], "have no host of one name"),
        (
            vec![&*file, &*more, "--host", "far-1"],
            "`far-1` is not a host of both sites, which have near-1",
        ),
        (vec![&*file, "campus"], "there is no site `campus`"),
        (vec![&*file, &*more, "--csv"], "write `--json`"),
    ] {
        let refused = stage
            .sonde(&[&["lab", "compare-sites"], &words[..]].concat())
            .expect(USAGE);
        refused.tells(&[said]);
    }
}
