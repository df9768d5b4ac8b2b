//! Traps that other measuring programs fell into, each a test that fails if sonde falls into it too.
//!
//! Model:   the names are those of the defects. One short run on this machine is looked at from several sides; what a run
//!          cannot show is tried on the parts that would do it.
//! Source:  the defects were found in iperf3, netperf, sockperf, qperf, perftest, OSU and others, by reading and by measuring.

use serde_json::Value;
use sonde_measure::spec::SAMPLES_MAX;
use sonde_measure::{Number, Sampling};
use sonde_stats::{Parts, SAMPLES_FOR_P99, Series, Summary};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

fn command(arguments: &[&str]) -> Command {
    let program =
        std::env::var_os("SONDE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_sonde").into());
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn sonde(arguments: &[&str]) -> Output {
    let run = command(arguments).output();
    run.expect("the command can be started")
}

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("sonde-traps-{}", std::process::id()))
}

/// A short run of two launches by both paths, as JSON; and what was said beside it.
fn run() -> &'static (Value, String) {
    static RUN: OnceLock<(Value, String)> = OnceLock::new();
    RUN.get_or_init(|| {
        let out = folder();
        let words = "probe latency --testbed local --path tcp,udp --size 1,64 --launches 2 --budget 100ms --json --out";
        let mut words: Vec<&str> = words.split_whitespace().collect();
        words.push(out.to_str().expect("a path of text"));
        let output = sonde(&words);
        assert_eq!(output.status.code(), Some(0));
        let json = serde_json::from_slice(&output.stdout).expect("JSON alone on stdout");
        (json, String::from_utf8_lossy(&output.stderr).into())
    })
}

fn rows() -> &'static Vec<Value> {
    run().0["results"].as_array().expect("rows")
}

fn sources(room: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(room)
        .join("src");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
        let path = entry.expect("it can be read").path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("it can be read");
            all.push((path, text));
        }
    }
    assert!(all.len() > 4, "{folder:?}");
    all
}

#[test]
fn a_max_that_is_not_the_max() {
    let mut series: Series = (0..100_000).map(|n| 20_000 + n % 500).collect();
    series.record(1_234_567_891);
    series.record(3);
    let summary = series.summary().unwrap();
    assert_eq!((summary.min, summary.max), (3, 1_234_567_891));
}

#[test]
fn sd_through_an_integer() {
    // No standard deviation at all: of skewed times it says nothing. The mean is of the exact sum.
    for row in rows() {
        let names: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert!(
            names
                .iter()
                .all(|name| !name.contains("sd") && !name.contains("dev")),
            "{names:?}"
        );
    }
    let large = [u64::MAX, u64::MAX - 2];
    assert_eq!(
        large.into_iter().collect::<Series>().mean(),
        Some(u64::MAX - 1)
    );
}

#[test]
fn linear_buckets() {
    // From a nanosecond to an hour each value is known to a thousandth.
    for power in 0..42 {
        let value = (1_u64 << power) + (1 << power) / 3;
        // More than are kept as they came, so that the buckets answer.
        let series: Series = (0..5_000)
            .map(|n| if n < 2_000 { value } else { 1 << 43 })
            .collect();
        let found = series.quantile(1, 5).unwrap();
        assert!(
            found >= value && found - value <= value / 1_000,
            "{value} became {found}"
        );
    }
}

#[test]
fn mixed_populations() {
    let figure = |row: &Value, name: &str| row[name].as_f64();
    for row in rows().iter().filter(|row| row["status"] == "measured") {
        let names = ["min", "p50", "p90", "p99", "p999", "max"];
        let figures: Vec<f64> = names.iter().filter_map(|name| figure(row, name)).collect();
        assert!(figures.len() >= 4 && figures.is_sorted(), "{row}");
        let mean = figure(row, "mean").unwrap();
        assert!(
            figures[0] <= mean && mean <= *figures.last().unwrap(),
            "{row}"
        );
        // A tail without samples is none.
        let samples = row["samples"].as_u64().unwrap();
        assert_eq!(
            row["p99"].is_null(),
            samples < SAMPLES_FOR_P99 as u64,
            "{row}"
        );
    }
}

#[test]
fn a_clamp_at_a_microsecond() {
    let series: Series = [1, 7, 300].into_iter().collect();
    let Summary { min, p50, max, .. } = series.summary().unwrap();
    assert_eq!((min, p50, max), (1, 7, 300));
    assert_eq!(serde_json::to_string(&Number::of(7, 1)).unwrap(), "7");
}

#[test]
fn a_wall_clock() {
    // A clock that is stepped while something is timed by it.
    for room in ["probe", "channel"] {
        for (path, text) in sources(room) {
            // The kernel's time stamps of packets are on that clock, and moments out of their order are left out there.
            if path
                .components()
                .any(|part| part.as_os_str().to_string_lossy().starts_with("anatomy"))
            {
                continue;
            }
            for word in [
                "SystemTime",
                "realtime_ns",
                "CLOCK_REALTIME",
                "gettimeofday",
            ] {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

#[test]
fn a_stamp_at_the_real_send() {
    let out = folder().join("rate");
    let words =
        "probe rate --testbed local --path udp --rate 500 --budget 300ms --launches 1 --json --out";
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.push(out.to_str().unwrap());
    let output = sonde(&words);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |quantity: &str| {
        let mut rows = document["results"].as_array().unwrap().iter();
        let row = rows.find(|row| row["quantity"] == quantity);
        row.unwrap_or_else(|| panic!("no {quantity}")).clone()
    };
    let (response, service) = (of("response_ns"), of("service_ns"));
    assert_eq!(response["samples"], service["samples"]);
    for name in ["min", "p50", "max", "mean"] {
        assert!(
            response[name].as_f64() >= service[name].as_f64(),
            "{name}: {response} {service}"
        );
    }
    assert_eq!(response["knobs"]["rate"], "500");
    // The achieved rate stands beside the wanted one.
    assert!(of("rate_per_s")["p50"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_sample_array_that_limits_duration() {
    // An hour of a message a nanosecond.
    const { assert!(SAMPLES_MAX < 3_600_000_000_000 && SAMPLES_MAX > 100_000_000_000) };
    let sizes = [100_000, 3_000_000].map(|count: u64| {
        let series: Series = (0..count).map(|n| 10_000 + (n * 7_919) % 90_000).collect();
        let parts = Parts::from(series);
        (parts.first.len(), parts.buckets.len())
    });
    assert_eq!(sizes[0], sizes[1], "memory grows with the samples");
}

#[test]
fn fixed_counts() {
    let usual = Sampling::LATENCY;
    assert!(usual.samples_min < usual.samples_max && usual.precision_per_mille.is_some());
    // How many were taken stands in each row, and is not the most that may be.
    let counts: Vec<u64> = rows()
        .iter()
        .filter(|row| row["phase"] == "warm" && row["quantity"] == "latency_ns")
        .map(|row| row["samples"].as_u64().unwrap())
        .collect();
    assert_eq!(counts.len(), 4);
    assert!(
        counts.iter().all(|count| (2..2 * 10_000).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_mean_as_headline() {
    run();
    let out = folder();
    let out = out.to_str().unwrap();
    for words in [
        vec!["report", "show", "--out", out],
        vec!["report", "show", "--rows", "--out", out],
    ] {
        let shown = String::from_utf8(sonde(&words).stdout).unwrap();
        assert!(!shown.is_empty());
        // A finding may advise against it.
        let shown = shown.replace("not by its mean", "");
        let mut words = shown.split(|letter: char| !letter.is_alphabetic());
        assert!(
            !words.any(|word| word == "mean" || word == "average"),
            "{shown}"
        );
    }
}

#[test]
fn a_warm_up_that_is_hidden() {
    // The first message is a row of its own, and no part of the warm ones.
    for size in [1, 64] {
        let of = |phase: &str| {
            let mut rows = rows()
                .iter()
                .filter(|row| row["size_bytes"] == size && row["path"] == "tcp");
            rows.find(|row| row["phase"] == phase)
                .unwrap_or_else(|| panic!("no {phase} row"))
        };
        assert_eq!(of("cold")["step"], "first");
        assert_eq!(of("cold")["samples"], 2);
        assert!(of("warm")["step"].is_null());
    }
}

#[test]
fn nan_in_json() {
    for (number, text) in [(f64::NAN, "null"), (f64::INFINITY, "null"), (0.5, "0.5")] {
        assert_eq!(
            serde_json::to_string(&Number(number)).unwrap_or("null".into()),
            text
        );
    }
    // What was not measured is null and has a reason.
    for row in rows().iter().filter(|row| row["status"] != "measured") {
        assert!(row["p50"].is_null() && row["reason"].is_string(), "{row}");
    }
}

#[test]
fn exit_0_on_failure() {
    let out = folder().join("failed");
    let out = out.to_str().unwrap();
    for (words, code) in [
        (
            vec![
                "probe",
                "latency",
                "--testbed",
                "hosts:./no-such-file",
                "--json",
                "--out",
                out,
            ],
            64,
        ),
        (vec!["probe", "latency", "--testbed", "moon"], 64),
        (vec!["probe", "rate", "--rate", "0"], 64),
        (vec!["report", "show", "--out", "/nonexistent/sonde"], 2),
        (vec!["report", "compare", "no-such-run", "--out", out], 2),
    ] {
        let output = sonde(&words);
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "{words:?}"
        );
    }
}

#[test]
fn a_panic_where_the_reader_has_had_enough() {
    let mut command = command(&["lab", "list"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut begun = command.spawn().expect("the command can be started");
    drop(begun.stdout.take());
    let ended = begun.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(141));
}

#[test]
fn the_same_option_typed_twice_on_two_hosts() {
    // Both sides get the same terms from one place; the far side has no options that could differ.
    let help = String::from_utf8(sonde(&["agent", "--help"]).stdout).unwrap();
    assert!(!help.is_empty());
    for option in [
        "--size",
        "--path",
        "--wait",
        "--budget",
        "--samples",
        "--rate",
    ] {
        assert!(
            !help.contains(option),
            "{option} can be said to an agent:\n{help}"
        );
    }
}

#[test]
fn cpu_per_cent_without_saying_of_how_many_cpus() {
    run();
    let out = folder();
    let words = ["report", "export", "--json", "--out", out.to_str().unwrap()];
    let export: Value = serde_json::from_slice(&sonde(&words).stdout).unwrap();
    let launches = export["run"]["launches"].as_array().unwrap();
    assert!(!launches.is_empty());
    for end in launches
        .iter()
        .flat_map(|launch| launch["interference"].as_array().unwrap())
    {
        assert!(
            end["cpus"].as_u64().unwrap() >= 1 && end["host_cpu_ns"].is_u64(),
            "{end}"
        );
    }
}

#[test]
fn silent_loss_of_the_confidence_target() {
    let (document, said) = run();
    assert!(said.contains("have no confidence interval"), "{said}");
    let warnings = document["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|one| one.as_str().unwrap().contains("fewer than 6")),
        "{warnings:?}"
    );
    for row in rows() {
        assert!(
            row["ci95_low"].is_null() && row["ci95_high"].is_null(),
            "{row}"
        );
    }
}
