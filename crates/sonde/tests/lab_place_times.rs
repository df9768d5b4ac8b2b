//! Placements measured: programs under each placement on two sites and on a site with a loaded line, and forwarding beside a circuit for
//! each pair.
//!
//! Model:   six launches of each placement, below which nothing is said of chance. The transpose, which gains most, is what the
//!          short tier has of programs on two sites.

use crate::lab::{Stage, is_long, skip};
use crate::paired::lab_place::{build, can_verify, record, tried};
use serde_json::Value;
use sonde_sys::noise::measured;
use std::path::Path;

/// `sonde place --verify` on two sites with 8 ranks.
fn verified(stage: &Stage, options: &[&str], program: &[&str]) -> Value {
    let network =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/examples/networks/two-sites.toml");
    let network = stage.copy_in(&network);
    let mut words = vec![
        "place",
        "--network",
        network.to_str().unwrap(),
        "--slots",
        "2",
        "--verify",
        "--json",
    ];
    words.extend(options);
    if !program.is_empty() {
        words.push("--");
        words.extend(program);
    }
    tried(stage, &words)
}

/// The one with this name.
fn row<'a>(said: &'a Value, name: &str) -> &'a Value {
    said["placements"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == name)
        .unwrap()
}

fn beats_random(said: &Value, least: f64) {
    let random = row(said, "random");
    let trial = &random["measured"];
    assert_eq!(trial["apart"], true, "{said:#}");
    assert!(trial["ratio_low"].as_f64().unwrap() > least, "{said:#}");
    assert!(
        random["cost_ratio"].as_f64().unwrap() > least,
        "predicted too: {said:#}"
    );
    for row in said["placements"].as_array().unwrap() {
        assert_eq!(row["measured"]["times_ns"].as_array().unwrap().len(), 6);
    }
}

#[test]
fn a_placed_stencil_beats_random_on_two_sites() {
    if !is_long() {
        skip("24 launches as the transpose's: make test-long");
        return;
    }
    measured(|| {
        let Some(stage) = can_verify(false) else {
            return;
        };
        let program = build(&stage, "mpicc.openmpi", "stencil");
        let arguments = ["2", "4", "65536", "10"];
        record(&stage, "openmpi", &program, &arguments, 8);
        let matrix = stage.path("openmpi.json");
        let program = [&[program.to_str().unwrap()], &arguments[..]].concat();
        beats_random(&verified(&stage, &["--matrix", &matrix], &program), 1.1);
    });
}

#[test]
fn a_placed_transpose_beats_random_on_two_sites() {
    measured(|| {
        let Some(stage) = can_verify(true) else {
            return;
        };
        let program = build(&stage, "mpicc.openmpi", "transpose");
        let arguments = ["4", "65536", "10"];
        record(&stage, "openmpi", &program, &arguments, 8);
        let matrix = stage.path("openmpi.json");
        let program = [&[program.to_str().unwrap()], &arguments[..]].concat();
        beats_random(&verified(&stage, &["--matrix", &matrix], &program), 1.3);
    });
}

/// All to all over eight ATM hosts: 28 circuits, or the 8 of a ring, on which messages go 16/7 hops on average.
#[test]
fn forwarding_is_measured_beside_a_circuit_for_each_pair() {
    measured(|| {
        let Some(stage) = can_verify(false) else {
            return;
        };
        let mut words = vec![
            "place",
            "--network",
            "atm-oc3c",
            "--hosts",
            "8",
            "--verify",
            "--json",
        ];
        words.extend([
            "--pattern",
            "all-to-all",
            "--messages",
            "5",
            "--topology",
            "ring",
        ]);
        let said = tried(&stage, &words);
        let [direct, forwarded] = [0, 1].map(|at| &said["circuits"][at]);
        assert_eq!(
            (&direct["circuits"], &forwarded["circuits"]),
            (&28.into(), &8.into())
        );
        assert!(direct["measured"]["ratio"].is_null(), "{said:#}");
        let measured = &forwarded["measured"];
        println!("forwarded to direct: {measured}");
        assert_eq!(measured["apart"], true, "{said:#}");
        assert!(measured["ratio_low"].as_f64().unwrap() > 1.2, "{said:#}");
        assert_eq!(measured["times_ns"].as_array().unwrap().len(), 6);
        let left = std::fs::read_dir(&stage.folder).unwrap();
        let left = left.filter_map(Result::ok).map(|entry| entry.file_name());
        let left: Vec<_> = left
            .filter(|name| name.to_string_lossy().starts_with(".sonde-place"))
            .collect();
        assert!(left.is_empty(), "the folder of the trial is gone: {left:?}");
    });
}

/// Three places of two hosts; of the lines of 10 Mb/s between them that of a and b has background traffic on eight tenths, both ways.
#[test]
fn a_placement_leaves_a_loaded_line_to_others() {
    const LINE: &str = "name = \"NAME\"\nsummary = \"x\"\ntechnology = \"wan\"\ntopology = \"line\"\nmtu = 1500\n\
        [line]\nrate = \"10Mbit\"\nframing = \"ethernet\"\nlength_m = 1000000\n";
    const LOAD: &str =
        "[[load]]\nfrom = \"h1\"\nto = \"h2\"\nrho = \"0.8\"\nlaw = \"poisson\"\nduplex = true\n";
    measured(|| {
        let Some(stage) = can_verify(false) else {
            return;
        };
        let mut text = String::from("name = \"places\"\nsummary = \"x\"\n");
        let write = |name: &str, text: &str| {
            std::fs::write(stage.path(name), text).unwrap();
            stage.path(name)
        };
        for place in ["a", "b", "c"] {
            text += &format!(
                "[[segment]]\nname = \"{place}\"\nnetwork = \"ethernet-100\"\nhosts = [\"{place}-[1-2]\"]\n"
            );
        }
        for (between, load) in [("ab", LOAD), ("ac", ""), ("bc", "")] {
            let line = format!("{}{load}", LINE.replace("NAME", between));
            let file = write(&format!("{between}.toml"), &line);
            text +=
                &format!("[[segment]]\nname = \"{between}\"\nnetwork = \"{file}\"\nhosts = []\n");
        }
        for (place, lines) in [
            ("a", "ab\", \"ac"),
            ("b", "ab\", \"bc"),
            ("c", "ac\", \"bc"),
        ] {
            text += &format!(
                "[[router]]\nname = \"router-{place}\"\njoins = [\"{place}\", \"{lines}\"]\n"
            );
        }
        let site = write("places.toml", &text);
        let mut words = vec![
            "place", "--site", &site, "--slots", "2", "--verify", "--json",
        ];
        words.extend("--pattern all-to-all --ranks 8 --size 8KiB --messages 3".split(' '));
        let said = tried(&stage, &words);
        // Launchers take the hosts in their order, and with them the loaded line.
        let block = row(&said, "block");
        let trial = &block["measured"];
        println!(
            "block over mapped: predicted {}, {trial}",
            block["cost_ratio"]
        );
        assert!(block["cost_ratio"].as_f64().unwrap() > 2.0, "{said:#}");
        assert_eq!(trial["apart"], true, "{said:#}");
        assert!(trial["ratio_low"].as_f64().unwrap() > 1.3, "{said:#}");
    });
}
