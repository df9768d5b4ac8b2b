//! Figures of emulated networks, held against the model's bounds, which nothing that is sound exceeds.
//!
//! Model:   a library may end many messages at once, long after their bytes crossed; its receiver's rate is then that of what
//!          waited. And what a library takes at once may need many seconds on a slow line. The bounds are the network's
//!          own, in the record of the run: a rate's upper, a time's lower.

use crate::lab;
use crate::lab::{Case, Stage, attachments, is_long, skip};
use serde_json::Value;
use sonde_sys::noise::measured;

/// The most that a figure may lie above the bound: the lab's clock, read at two ends of a second.
const ABOVE: f64 = 1.003;

/// A stage with the ranks' program and the adapters.
fn stage(case: Case) -> Option<Stage> {
    let rank = lab::sonde().with_file_name("sonde-rank");
    if !rank.is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return None;
    }
    let stage = Stage::new(case);
    stage.copy_in(&rank);
    let build = stage.sonde(&["doctor", "--build-adapters"]);
    let build = build.env("SONDE_ADAPTERS", stage.path("adapters"));
    drop(build.limit(120).output());
    Some(stage)
}

/// The paths whose library is here; those that are not are told.
fn paths(stage: &Stage, all: &[&'static str]) -> Vec<&'static str> {
    let is_here = |path: &&&str| {
        let library = path.split(':').next().unwrap_or(path);
        let file = format!("adapters/sonde-{library}.so");
        let is_here = library == "native" || stage.folder.join(file).is_file();
        if !is_here {
            println!("left out: {path} for want of its adapter");
        }
        is_here
    };
    all.iter().filter(is_here).copied().collect()
}

/// The throughputs of streams of 64 KiB over a network, a row a path.
fn streams(stage: &Stage, network: &str, paths: &[&str], launches: &str) -> Vec<Value> {
    let (out, paths) = (stage.path("runs"), paths.join(","));
    let mut words = vec!["probe", "throughput", "--mode", "stream", "--json"];
    words.extend(["--path", &paths, "--size", "64KiB", "--launches", launches]);
    words.extend(["--testbed", "lab", "--network", network, "--hosts", "2"]);
    words.extend(["--out", &out, "--attachment", stage.case.attachment]);
    let mut call = stage.sonde(&words);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    let call = call
        .env("SONDE_RANK", stage.path("sonde-rank"))
        .env("SONDE_ADAPTERS", stage.path("adapters"));
    let outcome = call.limit(580).output();
    let document: Value =
        serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{outcome}"));
    let rows = document["results"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["quantity"] == "throughput_bps");
    let rows: Vec<Value> = rows.cloned().collect();
    assert!(
        rows.iter().all(|row| row["status"] == "measured"),
        "{outcome}"
    );
    rows
}

/// What the headers leave of a network, as the command itself lists it.
fn bound_bps(stage: &Stage, network: &str) -> f64 {
    let listed = stage.sonde(&["lab", "list", "--json"]).expect(0);
    let document: Value = serde_json::from_str(&listed.out).unwrap();
    let mut networks = document["networks"].as_array().unwrap().iter();
    let network = networks.find(|one| one["name"] == network).unwrap();
    network["tcp_max_bps"].as_f64().unwrap()
}

#[test]
fn no_library_seems_faster_than_its_line() {
    measured(|| {
        let Some(&case) = attachments().first() else {
            return;
        };
        let Some(stage) = stage(case) else { return };
        let all = ["openmpi:tcp", "mpich:tcp", "native:tcp", "pvm:direct"];
        let paths = paths(&stage, &all);
        let bound = bound_bps(&stage, "sci-sbus");
        let launches = if is_long() { "6" } else { "1" };
        let rows = streams(&stage, "sci-sbus", &paths, launches);
        assert_eq!(rows.len(), paths.len());
        for row in rows {
            let share = row["max"].as_f64().unwrap() / bound;
            println!("{}: {share:.4} of the bound", row["path"]);
            assert!(share <= ABOVE, "{share}: {row}");
            // And it is a rate of that line: nothing that crossed is left out.
            let share = row["p50"].as_f64().unwrap() / bound;
            assert!(share > 0.5, "{share}: {row}");
        }
    });
}

/// A load of one shared line is there once, however many hosts; and what it left in the queues has gone before the next repetition, which
/// may be an idle one.
#[test]
fn a_segment_is_idle_after_a_load() {
    measured(|| {
        let Some(&case) = attachments().first() else {
            return;
        };
        let stage = Stage::new(case);
        let out = stage.path("runs");
        let words = "probe throughput --json --path tcp --size 64KiB --launches 4 --testbed lab --network ethernet-10 --hosts 2 --load 0,0.6";
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(["--out", &out, "--attachment", stage.case.attachment]);
        let mut call = stage.sonde(&words);
        if let Some(tun) = stage.tun() {
            call.command.arg("--tun").arg(tun);
        }
        let outcome = call.limit(200).output();
        let document: Value =
            serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{outcome}"));
        let row = |load: Value| {
            let mut rows = document["results"].as_array().unwrap().iter();
            let is_it = |row: &&Value| row["quantity"] == "throughput_bps" && row["load"] == load;
            let row = rows.find(is_it).unwrap_or_else(|| panic!("{outcome}"));
            println!("{load}: {} to {}", row["min"], row["max"]);
            ["min", "p50", "max"].map(|name| row[name].as_f64().unwrap())
        };
        let (idle, loaded) = (row(Value::Null), row("0.6".into()));
        assert!(idle[0] > 0.95 * idle[2], "{outcome}");
        // Two that always have frames take turns, half each, but for stations that collide: 0.29 to 0.63 of it in 18 launches.
        let share = loaded[1] / idle[1];
        assert!(0.2 < share && share < 0.8, "{share}: {outcome}");
    });
}

#[test]
fn a_stream_over_the_slowest_lines_ends_with_a_figure() {
    measured(|| {
        let Some(&case) = attachments().first() else {
            return;
        };
        let Some(stage) = stage(case) else { return };
        // A library each in the short tier: what one takes at once takes it up to a quarter of a minute to carry.
        let all = ["openmpi:tcp", "mpich:tcp", "native:tcp"];
        for (network, some) in [("atm-ds1", &all[..1]), ("satellite", &all[1..2])] {
            let paths = paths(&stage, if is_long() { &all } else { some });
            if paths.is_empty() {
                continue;
            }
            let bound = bound_bps(&stage, network);
            let rows = streams(&stage, network, &paths, "1");
            assert_eq!(rows.len(), paths.len(), "{network}");
            for row in rows {
                let share = row["max"].as_f64().unwrap() / bound;
                println!("{network}, {}: {share:.4} of the bound", row["path"]);
                assert!(share > 0.2 && share <= ABOVE, "{network}: {share}: {row}");
            }
        }
    });
}

/// One launch of every probe of two hosts, by every path that has a bound.
const PROBES: &str = r#"
[testbed]
kind = "lab"
hosts = 2
[[probe]]
kind = "startup"
path = ["tcp", "udp"]
size = ["8"]
[[probe]]
kind = "latency"
path = ["tcp", "udp", "packet", "native:tcp", "openmpi:tcp", "mpich:tcp", "pvm:direct"]
size = ["1", "4KiB", "60KiB"]
samples = 100
budget = "300ms"
[[probe]]
kind = "throughput"
mode = "message"
path = ["tcp", "native:tcp", "openmpi:tcp", "mpich:tcp", "pvm:direct"]
size = ["1KiB", "64KiB"]
samples = 100
budget = "300ms"
[[probe]]
kind = "throughput"
mode = "stream"
path = ["tcp", "udp", "packet", "native:tcp", "openmpi:tcp", "mpich:tcp", "pvm:direct"]
size = ["1KiB", "64KiB"]
budget = "500ms"
[repeat]
launches = 1
max = 1
"#;

/// The best figure of a row over its bound in the record of its network; none where it has no bound.
fn part_of_bound(row: &Value, ceilings: &[Value]) -> Option<f64> {
    let size = match row["mode"] == "stream" {
        true => &Value::Null,
        false => &row["size_bytes"],
    };
    let is_of = |bound: &&Value| {
        ["quantity", "phase", "path"]
            .iter()
            .all(|key| bound[key] == row[key])
            && bound.get("size_bytes").unwrap_or(&Value::Null) == size
    };
    let bound = ceilings.iter().find(is_of)?["value"].as_f64()?;
    match row["quantity"] == "throughput_bps" {
        true => row["max"].as_f64().map(|most| most / bound),
        false => row["min"].as_f64().map(|least| bound / least),
    }
}

/// Every network of the catalogue that has a rate; of the short tier the slow ring alone.
#[test]
fn no_figure_of_any_probe_and_path_is_above_its_bound() {
    let Some(&case) = attachments().first() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    let all = sonde_link::catalogue();
    let names = all.iter().map(|spec| spec.name.as_str());
    let names: Vec<&str> = match is_long() {
        true => names.collect(),
        false => vec!["sci-sbus"],
    };
    let (mut most, mut above) = (Vec::<(f64, String)>::new(), Vec::new());
    for name in names {
        let (plan, out) = (stage.path("plan.toml"), stage.path(name));
        let text = format!("[[network]]\nname = \"{name}\"\n{PROBES}");
        std::fs::write(&plan, text).unwrap();
        let mut call = stage.sonde(&["assess", &plan, "--json", "--out", &out]);
        if let Some(tun) = stage.tun() {
            call.command.arg("--tun").arg(tun);
        }
        let call = call
            .env("SONDE_RANK", stage.path("sonde-rank"))
            .env("SONDE_ADAPTERS", stage.path("adapters"));
        let outcome = call.limit(900).output();
        let document: Value =
            serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{outcome}"));
        let kept = stage.sonde(&["report", "export", "--json", "--out", &out]);
        let kept: Value = serde_json::from_str(&kept.expect(0).out).unwrap();
        let ceilings = kept["run"]["networks"][0]["ceilings"].as_array().unwrap();
        let rows = document["results"].as_array().unwrap().iter();
        let mut bounded = 0;
        for row in rows.filter(|row| row["step"].is_null()) {
            let Some(part) = part_of_bound(row, ceilings) else {
                continue;
            };
            bounded += 1;
            if part > ABOVE || !row["verdict"]["above_bound"].is_null() {
                above.push(format!("{part:.4} of its bound: {row:#}"));
            }
            let what = ["quantity", "mode", "path", "size_bytes"]
                .map(|key| row[key].to_string())
                .join(" ");
            most.push((part, format!("{name} {what}")));
        }
        println!("{name}: {bounded} figures with a bound");
        assert!(bounded >= 16, "{name}: {bounded}: {outcome}");
    }
    most.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (part, what) in most.iter().take(10) {
        println!("{part:.4} of its bound: {what}");
    }
    assert!(above.is_empty(), "{}", above.join("\n"));
}
