//! `sonde place` without a lab: predicted costs, files for launchers, circuits, and what is refused.

use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn place(arguments: &[&str]) -> Output {
    let program = std::env::var_os("SONDE_BIN")
        .unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_sonde")));
    Command::new(program)
        .arg("place")
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap()
}

const SITES: &str = "./plans/examples/networks/two-sites.toml";

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("place-{name}"));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn document(arguments: &[&str]) -> Value {
    let output = place(&[arguments, &["--json"]].concat());
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {err}"))
}

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["placements"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

#[test]
fn a_mapping_costs_less_than_chance_and_is_the_same_again() {
    for pattern in ["stencil-2d", "transpose", "ring"] {
        let arguments = ["--pattern", pattern, "--network", SITES, "--slots", "4"];
        let first = document(&arguments);
        assert_eq!(
            (&first["ranks"], &first["schema"]),
            (&16.into(), &"sonde/2".into())
        );
        let cost = |name| row(&first, name)["cost_s"].as_f64().unwrap();
        assert!(
            cost("mapped") * 1.5 < cost("random"),
            "{pattern}: {first:#}"
        );
        for other in ["block", "round-robin"] {
            assert!(
                cost("mapped") <= cost(other) * (1.0 + 1e-9),
                "{pattern}: {first:#}"
            );
        }
        let line = row(&first, "random")["line"].as_str().unwrap();
        assert!(line.starts_with("the trunk "), "{pattern}: {line}");
        assert_eq!(document(&arguments)["placements"], first["placements"]);
    }
}

#[test]
fn files_are_written_for_each_launcher() {
    let folder = folder("files");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let kinds = ["openmpi", "openmpi-hosts", "openmpi-seq", "mpich", "slurm"];
    let words: Vec<String> = kinds
        .iter()
        .flat_map(|kind| ["--write".into(), format!("{kind}:{}", path(kind))])
        .collect();
    let mut arguments = vec![
        "--pattern",
        "stencil-2d",
        "--network",
        SITES,
        "--slots",
        "2",
    ];
    arguments.extend(words.iter().map(String::as_str));
    let said = document(&arguments);
    let hosts: Vec<_> = row(&said, "mapped")["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host.as_str().unwrap())
        .collect();
    let text = |kind: &str| fs::read_to_string(folder.join(kind)).unwrap();
    assert_eq!(text("slurm").lines().collect::<Vec<_>>(), hosts);
    for (rank, line) in text("openmpi").lines().enumerate() {
        assert!(
            line.starts_with(&format!("rank {rank}={} slot=", hosts[rank])),
            "{line}"
        );
    }
    assert_eq!(text("openmpi-hosts").lines().count(), 4);
    let counted: usize = text("mpich")
        .lines()
        .map(|line| line.split_once(':').unwrap().1.parse::<usize>().unwrap())
        .sum();
    assert_eq!(counted, 8);
    let output = place(&arguments);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        err.contains("--rankfile") && err.contains("--distribution=arbitrary"),
        "{err}"
    );
}

#[test]
fn both_modes_of_circuits_are_compared() {
    let said = document(&[
        "--pattern",
        "all-to-all",
        "--network",
        "atm-oc3c",
        "--hosts",
        "8",
        "--topology",
        "hypercube",
    ]);
    let [direct, forwarded] = [0, 1].map(|at| &said["circuits"][at]);
    assert_eq!(
        (&direct["mode"], &direct["circuits"], &direct["hops_max"]),
        (&"direct".into(), &28.into(), &1.into())
    );
    assert_eq!(
        (
            &forwarded["mode"],
            &forwarded["circuits"],
            &forwarded["hops_max"]
        ),
        (&"forwarded".into(), &12.into(), &3.into())
    );
    assert!(forwarded["cost_s"].as_f64() > direct["cost_s"].as_f64());
    assert_eq!(forwarded["circuits_host_max"], 3);
}

#[test]
fn a_matrix_and_a_cluster_of_ones_own() {
    let folder = folder("own");
    let path = |name: &str, text: &str| {
        fs::write(folder.join(name), text).unwrap();
        folder.join(name).to_str().unwrap().to_owned()
    };
    let cluster = path(
        "cluster.toml",
        "[[site]]\nname = \"a\"\nhosts = [\"a1\", \"a2\"]\nrate = \"1Gbit\"\nlatency = \"50us\"\n\
         [[site]]\nname = \"b\"\nhosts = [\"b1\", \"b2\"]\nrate = \"1Gbit\"\nlatency = \"50us\"\n\
         [[trunk]]\nbetween = [\"a\", \"b\"]\nrate = \"2Mbit\"\nlatency = \"20ms\"\n",
    );
    // 0 with 2, 1 with 3.
    let table = path(
        "matrix.csv",
        "0,0,900000,0\n0,0,0,900000\n900000,0,0,0\n0,900000,0,0\n",
    );
    let said = document(&["--matrix", &table, "--cluster", &cluster]);
    let mapped = row(&said, "mapped");
    assert_eq!(mapped["far_bytes"], 0, "{mapped:#}");
    assert_eq!(row(&said, "block")["far_bytes"], 3_600_000);
    let hosts = mapped["hosts"].as_array().unwrap();
    assert_eq!(
        hosts[0].as_str().unwrap()[..1],
        hosts[2].as_str().unwrap()[..1]
    );
    let shown = place(&["--matrix", &table, "--cluster", &cluster]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(
        text.contains("round-robin") && text.contains("mapped: "),
        "{text}"
    );
    let bad = path("bad.csv", "0,1\n2\n");
    let negative = path(
        "negative.json",
        "{\"schema\": \"sonde-matrix/1\", \"ranks\": 2, \"bytes\": [[0,-1],[0,0]], \"messages\": [[0,1],[0,0]]}",
    );
    let site = |hosts: &str, slots: &str| {
        format!(
            "[[site]]\nname = \"a\"\nhosts = {hosts}\nslots = {slots}\nrate = \"1Gbit\"\nlatency = \"50us\"\n"
        )
    };
    let slots = path(
        "slots.toml",
        &site("[\"a1\", \"a2\"]", "18446744073709551615"),
    );
    let many = path("many.toml", &site("[\"a1\", \"a2\"]", "4294967295"));
    let lines = path(
        "lines.toml",
        &site("[\"b1\\nrank 0=evil slot=0\", \"b2\"]", "4"),
    );
    let silent = path(
        "silent.json",
        "{\"schema\": \"sonde-matrix/1\", \"ranks\": 2, \"bytes\": [[0,9],[0,0]], \"messages\": [[0,0],[0,0]]}",
    );
    let wide = path(
        "wide.csv",
        "0,1,1,1,1\n0,0,0,0,0\n0,0,0,0,0\n0,0,0,0,0\n0,0,0,0,0\n",
    );
    for (arguments, word) in [
        (
            vec!["--matrix", &bad, "--cluster", &cluster],
            "must be square",
        ),
        (
            vec!["--pattern", "ring", "--ranks", "4", "--cluster", &slots],
            "slots.toml",
        ),
        (
            vec!["--pattern", "ring", "--ranks", "4", "--cluster", &many],
            "4294967295 slots, and 0 to 4096",
        ),
        (
            vec!["--pattern", "ring", "--ranks", "8", "--cluster", &lines],
            "is not the name of a host",
        ),
        (
            vec!["--matrix", &silent, "--cluster", &cluster],
            "9 bytes to rank 1 in no message",
        ),
        (
            vec!["--matrix", "/dev/zero", "--cluster", &cluster],
            "a line of it has",
        ),
        (
            vec!["--matrix", &negative, "--cluster", &cluster],
            "`-1`, but a count",
        ),
        (
            vec!["--matrix", &wide, "--cluster", &cluster],
            "5 ranks do not fit on 4 slots of 4 hosts",
        ),
        (
            vec!["--matrix", &table, "--cluster", &cluster, "--slots", "c9=2"],
            "no host `c9`: there are a1, a2, b1, b2",
        ),
        (
            vec!["--matrix", &table, "--cluster", &cluster, "--slots=-3"],
            "`-3` is not a number of slots",
        ),
        (vec!["--matrix", &table], "the hosts are missing"),
        (
            vec!["--cluster", &cluster],
            "the communication matrix is missing",
        ),
        (
            vec!["--matrix", "/nowhere", "--cluster", &cluster],
            "cannot read /nowhere",
        ),
        (
            vec!["--pattern", "knot", "--cluster", &cluster],
            "`knot` is not a pattern",
        ),
        (
            vec![
                "--pattern",
                "hypercube",
                "--ranks",
                "3",
                "--cluster",
                &cluster,
            ],
            "2, 4, 8",
        ),
        (
            vec!["--pattern", "ring", "--network", "no-such-net"],
            "no-such-net",
        ),
        (
            vec![
                "--pattern",
                "ring",
                "--network",
                "./plans/examples/networks/sites.toml",
                "--hosts",
                "40",
            ],
            "places for 12 hosts",
        ),
        (
            vec![
                "--pattern",
                "ring",
                "--cluster",
                &cluster,
                "--write",
                "lam:x",
            ],
            "`lam` is not a launcher's file",
        ),
        (
            vec![
                "--pattern",
                "ring",
                "--cluster",
                &cluster,
                "--topology",
                "torus",
            ],
            "torus:AxBxC or hypercube",
        ),
        (
            vec!["--pattern", "ring", "--cluster", &cluster, "--verify"],
            "--network",
        ),
        (vec!["record", "--", "./job.sh"], "--mpi openmpi"),
    ] {
        let output = place(&arguments);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {err}");
        assert!(err.contains(word), "{arguments:?}: {err}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let absent = place(&[
        "--pattern",
        "ring",
        "--measured",
        "latest",
        "--out",
        folder.join("none").to_str().unwrap(),
    ]);
    assert_eq!(
        absent.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&absent.stderr)
    );
}
