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
