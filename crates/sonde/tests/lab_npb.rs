//! The kernels of the NAS benchmarks by `sonde npb` and by a plan: over a lab, over every library here, alone, refused and broken.
//!
//! Model:   class S throughout. Of a run only what holds of any is checked: that all results are the official ones, that messages
//!          were counted and add up, that nothing is left behind. What is not installed says `skipped:`.

use crate::lab;
use crate::lab::{Call, Case, Process, Stage, attachments, eventually, is_long, marked, skip};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const KERNELS: [&str; 8] = ["ep", "cg", "mg", "ft", "is", "lu", "sp", "bt"];

/// A stage with the ranks' program where its user sees it.
pub fn stage(case: Case) -> Option<Stage> {
    let rank = lab::sonde().with_file_name("sonde-rank");
    if !rank.is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return None;
    }
    let stage = Stage::new(case);
    stage.copy_in(&rank);
    Some(stage)
}

pub fn call(stage: &Stage, words: &[&str]) -> Call {
    stage
        .sonde(words)
        .env("SONDE_RANK", stage.path("sonde-rank"))
        .env("SONDE_ADAPTERS", stage.path("adapters"))
        .limit(120)
}

/// One repetition, where the words do not say how many.
pub fn npb(stage: &Stage, words: &[&str]) -> Call {
    let is_said = ["--launches", "--quick", "--resume"];
    let once: &[&str] = match words.iter().any(|word| is_said.contains(word)) {
        true => &[],
        false => &["--launches", "1"],
    };
    call(stage, &[&["npb"], words, once].concat())
}

pub fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Holds a result of class S on four ranks against what every one must be.
fn assert_is_right(result: &Value) {
    assert_eq!(result["verified"], true, "{result:#}");
    assert!(result["error"].is_null(), "{result:#}");
    let number = |name: &str| result[name].as_f64().unwrap();
    assert!(number("time_s") > 0.0 && number("mop_per_s") > 0.0);
    let share = number("communicating_share");
    assert!((0.0..=1.0).contains(&share), "{share}");
    let launch = &result["launch"];
    let sent = launch["runs"][0]["sent"]["messages"].as_u64().unwrap();
    let ranks = launch["ranks"].as_array().unwrap();
    assert_eq!(ranks.len() as u64, result["ranks"].as_u64().unwrap());
    let sum = ranks
        .iter()
        .flat_map(|rank| rank["messages_to"].as_array().unwrap());
    let sum: u64 = sum.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(sent, sum, "{}", result["kernel"]);
}

fn results<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    let all = document["kernels"].as_array().unwrap().iter();
    all.filter(|result| result["path"] == path).collect()
}

#[test]
fn a_kernel_is_run_three_times_where_nothing_is_said() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    let out = stage.path("runs");
    let words = ["is", "--ranks", "2", "--path", "native:shm", "--out", &out];
    let usual = call(&stage, &[&["npb"], &words[..]].concat()).expect(0);
    assert_eq!(usual.out.matches("Time in seconds").count(), 3, "{usual}");
    let table: Vec<Vec<&str>> = usual
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .skip_while(|words: &Vec<&str>| words.first() != Some(&"kernel"))
        .collect();
    assert_eq!(
        table[0][4..8],
        ["seconds", "lowest", "highest", "n"],
        "{usual}"
    );
    let row = table.iter().find(|row| row.first() == Some(&"is")).unwrap();
    let number = |at: usize| row[at].parse::<f64>().unwrap();
    assert!(number(5) <= number(4) && number(4) <= number(6), "{usual}");
    assert_eq!(row[7], "3", "{usual}");
    // Once where that is said, and then it says what is not known.
    let once = npb(&stage, &words).expect(0);
    assert_eq!(once.out.matches("Time in seconds").count(), 1, "{once}");
    assert!(once.out.contains("One repetition each"), "{once}");
}

#[test]
fn all_eight_run_between_the_hosts_of_a_lab() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    let words = [
        "all",
        "--testbed",
        "lab",
        "--network",
        "ethernet-1g",
        "--path",
        "native:tcp",
        "--json",
        "--attachment",
        case.attachment,
    ];
    let mut call = npb(&stage, &words);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    let mark = call.mark().to_string();
    let document = document(&call.expect(0).out);
    let found = results(&document, "native:tcp");
    let kernels: Vec<&str> = found
        .iter()
        .map(|result| result["kernel"].as_str().unwrap())
        .collect();
    assert_eq!(kernels, KERNELS);
    for result in found {
        assert_is_right(result);
        let messages = &result["launch"]["runs"][0]["sent"]["messages"];
        assert!(messages.as_u64().unwrap() > 0, "{result:#}");
        let hosts = &result["evidence"]["ranks"]["hosts"];
        assert_eq!(hosts, &serde_json::json!(["h1", "h2", "h3", "h4"]));
    }
    let left = eventually(|| marked(&mark), Vec::is_empty);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn all_eight_run_by_every_library_here() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let build = call(&stage, &["doctor", "--build-adapters"]);
    drop(build.output());
    let paths = [
        "native:shm",
        "pvm:default",
        "pvm:direct",
        "openmpi",
        "mpich",
    ];
    let outcome = npb(&stage, &["all", "--json", "--path", &paths.join(",")]).output();
    let document = document(&outcome.out);
    let mut lacking = 0;
    for path in [
        "native:shm",
        "pvm:default",
        "pvm:direct",
        "openmpi:sm",
        "mpich:sm",
    ] {
        let found = results(&document, path);
        if found.is_empty() {
            lacking += 1;
            skip(&format!("{path}: {}", document["left_out"]));
            continue;
        }
        assert_eq!(found.len(), KERNELS.len(), "{path}: {outcome}");
        found.into_iter().for_each(assert_is_right);
    }
    assert!(!results(&document, "native:shm").is_empty(), "{outcome}");
    assert_eq!(outcome.code, i32::from(lacking > 0), "{outcome}");
}

/// Class S of a kernel by PVM's two routes among hosts far from each other.
fn assert_is_right_far_away(kernel: &str, hosts: &str, delay: &str) {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    drop(call(&stage, &["doctor", "--build-adapters"]).output());
    let wire = format!("wire:delay={delay}");
    let (lab, network) = (["--testbed", "lab"], ["--network", &wire]);
    let among = ["--hosts", hosts, "--ranks", hosts, "--attachment", "veth"];
    let by = ["--path", "pvm:default,pvm:direct", "--json"];
    let outcome = npb(
        &stage,
        &[&[kernel], &lab[..], &network, &among, &by].concat(),
    )
    .output();
    if outcome.code == 2 && outcome.err.contains("pvm") {
        skip(&outcome.err);
        return;
    }
    let document = document(&outcome.out);
    for path in ["pvm:default", "pvm:direct"] {
        let found = results(&document, path);
        assert_eq!(found.len(), 1, "{path}: {outcome}");
        assert_is_right(found[0]);
    }
}

/// The other rank has finished long before rank 0 hears of it, and is not to take that for a loss.
#[test]
fn a_rank_far_away_leaves_in_order() {
    assert_is_right_far_away("ep", "2", "150ms");
}

/// Ranks whose first messages to each other cross have them all in order.
#[test]
fn first_messages_are_not_overtaken() {
    assert_is_right_far_away("mg", "4", "10ms");
}

#[test]
fn the_sizes_of_the_upc_study_verify() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let outcome = npb(&stage, &["all", "--size", "upc", "--json"]).expect(0);
    let document = document(&outcome.out);
    let found = results(&document, "native:shm");
    let extents: Vec<&str> = found
        .iter()
        .map(|result| result["extent"].as_str().unwrap())
        .collect();
    let flow = "12 x 12 x 12";
    let cube = "64 x 64 x 64";
    let wanted = ["8388608", "1400", cube, cube, "524288", flow, flow, flow];
    assert_eq!(extents, wanted);
    for result in found {
        assert_is_right(result);
        // What no class is has values of its own to be held against.
        let is_own = ["ep", "mg", "is"].contains(&result["kernel"].as_str().unwrap());
        assert_eq!(result["class"].is_null(), is_own, "{result:#}");
    }
}

/// What all ranks took of a launch, and what they were told to keep in arrays.
fn memory(stage: &Stage, words: &[&str], ranks: &str) -> Option<(u64, u64)> {
    let words = [words, &["--ranks", ranks, "--json"]].concat();
    let document = document(&npb(stage, &words).expect(0).out);
    let result = &document["kernels"][0];
    let all = result["launch"]["ranks"].as_array().unwrap();
    let taken = all.iter().map(|rank| rank["memory_bytes"].as_u64());
    let taken: Option<u64> = taken.sum();
    let told = result["arrays_bytes"].as_u64().unwrap() * all.len() as u64;
    Some((taken?, told))
}

#[test]
fn ranks_take_what_they_tell() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    for ranks in if is_long() { &["4", "1"][..] } else { &["4"] } {
        // A rank without arrays: the program's first steps, and messages.
        let empty = memory(&stage, &["ep", "--size", "pairs_log2=18"], ranks);
        let Some((empty, _)) = empty else {
            skip("the most that a process had in memory: /proc/self/clear_refs");
            return;
        };
        for words in [
            ["cg", "rows=75000:nonzer=13:steps=1:shift=60"],
            ["mg", "points=256:cycles=1"],
            ["ft", "nx=256:ny=256:nz=128:iterations=1"],
            ["is", "keys_log2=23:range_log2=19:buckets_log2=10"],
            ["lu", "points=102:steps=1:dt=2"],
            ["sp", "points=102:steps=1:dt=0.001"],
            ["bt", "points=102:steps=1:dt=0.0003"],
        ] {
            let [kernel, size] = words;
            let (taken, told) = memory(&stage, &[kernel, "--size", size], ranks).unwrap();
            let own = taken.saturating_sub(empty);
            let line = format!("{kernel} {size} on {ranks}: told {told}, taken {own}");
            println!("{line}");
            assert!(own <= told / 10 * 11, "{line}");
            assert!(own >= told / 2, "{line}");
        }
    }
}

#[test]
fn one_rank_is_the_sequential_reference() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let words = [
        "all",
        "--ranks",
        "1",
        "--runs",
        "2",
        "--path",
        "pvm:direct",
        "--json",
    ];
    let outcome = npb(&stage, &words).limit(60).expect(0);
    let document = document(&outcome.out);
    let found = results(&document, "sequential");
    assert_eq!(found.len(), KERNELS.len(), "{outcome}");
    for result in found {
        assert_is_right(result);
        assert_eq!(result["launch"]["runs"].as_array().unwrap().len(), 2);
        assert_eq!(result["launch"]["runs"][1]["sent"]["messages"], 0);
    }
}

/// A kernel is measured as any other: planned, kept, shown, exported, compared, and gone on with where it was ended.
#[test]
fn a_run_of_kernels_is_kept_and_goes_on() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let out = stage.path("kept");
    let words = ["is,mg", "--ranks", "1,4", "--launches", "3", "--out", &out];
    let dry = npb(&stage, &[&words[..], &["--dry-run"]].concat()).expect(0);
    assert!(dry.out.contains("4 cells, 12 repetitions"), "{dry}");
    let json = npb(&stage, &[&words[..], &["--dry-run", "--json"]].concat()).expect(0);
    let planned = document(&json.out);
    assert_eq!(
        (&planned["cells"], &planned["launches"]),
        (&4.into(), &12.into())
    );
    assert_eq!(planned["blocks"][0]["program"], "is S on 1", "{planned:#}");
    let lost = [
        "is",
        "--testbed",
        "hosts:./nowhere",
        "--path",
        "native:tcp",
        "--dry-run",
    ];
    let refused = npb(&stage, &lost).expect(64);
    assert!(refused.err.contains("nowhere"), "{refused}");
    let plan = npb(&stage, &[&words[..], &["--print-plan"]].concat()).expect(0);
    let file = stage.path("plan.toml");
    std::fs::write(&file, &plan.out).unwrap();
    let same = call(&stage, &["assess", &file, "--dry-run"]).expect(0);
    assert_eq!(same.out, dry.out);
    assert!(!Path::new(&out).exists(), "nothing was measured: {dry}");

    let mut running = npb(&stage, &words).start();
    running.wait_for("Verification");
    // By kill -9.
    drop(running);
    let export = || call(&stage, &["report", "export", "--json", "--out", &out]).output();
    let launches = |text: &str| {
        let launches = document(text)["run"]["launches"].as_array().map(Vec::len);
        launches.unwrap_or_default()
    };
    let before = launches(&export().out);
    assert!((1..12).contains(&before), "{before}");
    let resumed = npb(&stage, &["--resume", "--out", &out]).expect(0);
    for line in [
        "is S on 4 over native:shm",
        "mg",
        "sequential",
        "native:shm",
    ] {
        assert!(resumed.out.contains(line), "{line}: {resumed}");
    }
    assert_eq!(launches(&export().out), 12, "each launch once");
    let shown = call(&stage, &["report", "show", "--out", &out]).expect(0);
    assert!(shown.out.contains("Kernels of sonde"), "{shown}");
    let id = resumed
        .err
        .lines()
        .find_map(|line| line.strip_prefix("sonde: run "));
    let id = id.and_then(|line| line.split(' ').next()).unwrap();
    let compared = call(&stage, &["report", "compare", id, id, "--out", &out]).output();
    // Three launches are too few to tell anything of them.
    assert_eq!(compared.code, 3, "{compared}");
}

#[test]
fn a_block_and_a_table_are_printed_and_a_matrix_is_written() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let matrix = stage.path("matrix.json");
    let outcome = npb(&stage, &["sp", "--collapsed", "--matrix", &matrix]).expect(0);
    for line in [
        "sp S on 4 over native:shm",
        " Benchmark       =                           SP",
        " Class           =                            S",
        " Total processes =                            4",
        " Verification    =                   SUCCESSFUL",
        "communicating",
    ] {
        assert!(outcome.out.contains(line), "{line}: {outcome}");
    }
    let matrix = document(&std::fs::read_to_string(matrix).unwrap());
    assert_eq!(
        (&matrix["schema"], &matrix["ranks"]),
        (&"sonde-matrix/1".into(), &4.into())
    );
    assert!(matrix["bytes"][0][1].as_u64().unwrap() > 0, "{matrix}");
}

#[test]
fn a_plan_makes_rows_of_kernels() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let plan = stage.path("kernels.toml");
    let text = "[testbed]\nkind = \"local\"\n[repeat]\nlaunches = 2\nmax = 2\n[[probe]]\nkind = \"npb\"\n\
        path = [\"native:shm\"]\n[probe.with]\nkernel = [\"cg\", \"lu\"]\nclass = [\"S\"]\nranks = [\"4\", \"6\"]\n";
    std::fs::write(&plan, text).unwrap();
    let dry = call(&stage, &["assess", &plan, "--dry-run"]).expect(0);
    assert!(dry.out.contains("npb lu S on 6"), "{dry}");
    let out = stage.path("runs");
    let outcome = call(&stage, &["assess", &plan, "--json", "--out", &out]).expect(0);
    let document = document(&outcome.out);
    let rows = document["results"].as_array().unwrap();
    let of = |kernel: &str, ranks: &str, quantity: &str| {
        let is = |row: &&Value| {
            let knobs = &row["knobs"];
            row["quantity"] == quantity && knobs["kernel"] == kernel && knobs["ranks"] == ranks
        };
        rows.iter()
            .find(is)
            .unwrap_or_else(|| panic!("{kernel} {ranks} {quantity}: {outcome}"))
    };
    for quantity in [
        "kernel_ns",
        "mop_per_s",
        "communicating_share",
        "messages",
        "message_bytes_mean",
        "message_bytes_median",
    ] {
        for (kernel, ranks) in [("cg", "4"), ("lu", "4"), ("lu", "6")] {
            let row = of(kernel, ranks, quantity);
            assert_eq!(row["status"], "measured", "{row:#}");
            assert_eq!(
                (&row["layer"], &row["probe"]),
                (&"application".into(), &"npb".into())
            );
            assert_eq!(
                (&row["launches"], &row["size_bytes"]),
                (&2.into(), &Value::Null)
            );
        }
    }
    let left_out = of("cg", "6", "kernel_ns");
    assert_eq!(left_out["status"], "skipped", "{left_out:#}");
    let reason = left_out["reason"].as_str().unwrap();
    assert!(
        reason.contains("cg S on 6") && reason.contains("power of two"),
        "{reason}"
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let empty = stage.path("nothing");
    for (words, code, said) in [
        (&["cg", "--ranks", "3"][..], 64, "power of two"),
        (&["sp,bt", "--ranks", "2"], 64, "square"),
        (&["lu", "--ranks", "5"], 64, "4 is near"),
        (&["cg", "--class", "D"], 64, "parameters alone"),
        (&["cg", "--class", "E"], 64, "S, W, A"),
        (&["dg"], 64, "or all"),
        (&["cg", "--ranks", "0"], 64, "1,2,4"),
        (&["cg", "--path", "openmpi:xx"], 64, "openmpi:sm"),
        (&["mg", "--size", "points=many"], 64, "whole number"),
        (&["all", "--matrix", "m.json"], 64, "one repetition"),
        (&["cg", "--load", "0.5"], 64, "--testbed lab"),
        (
            &["cg", "--testbed", "lab", "--path", "native:shm"],
            64,
            "--collapsed",
        ),
        (
            &["ft", "--size", "nx=8192:ny=8192:nz=8192"],
            2,
            "MiB are available",
        ),
        (&["cg", "--size", "rows=2147483648"], 2, "MiB are available"),
        (
            &["lu,bt", "--size", "points=8192", "--ranks", "1"],
            2,
            "MiB are available",
        ),
        (&["mg", "--size", "points=8192"], 2, "class C fits"),
        (&["is", "--size", "keys_log2=40"], 64, "2^39 keys"),
        (&["is", "--size", "keys_log2=39"], 64, "from 1024 to 1024"),
        (&["ep", "--size", "pairs_log2=50"], 64, "2^43"),
        (&["cg", "--path", "ucx:tcp"], 2, "no adapter for ucx in "),
        (&["cg", "--path", "openmpi"], 2, "libopenmpi-dev"),
        (&["cg", "--path", "mpich"], 2, "doctor --build-adapters"),
        (&["cg", "--path", "pvm:direct"], 2, "pvm-dev"),
    ] {
        let call = npb(&stage, words)
            .env("SONDE_ADAPTERS", &empty)
            .env("HOME", &empty);
        let outcome = call.limit(30).output();
        assert_eq!(outcome.code, code, "{words:?}: {outcome}");
        assert!(outcome.err.contains(said), "{words:?}: {outcome}");
        assert!(outcome.out.is_empty(), "{words:?}: {outcome}");
    }
}

/// A control group of this user that may have so many bytes; removed when dropped. Says so where there can be none.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("sonde-test-{}", std::process::id());
        for (root, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let folder = Path::new(root).join(&name);
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self(folder);
            if std::fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        skip("a control group of its own, with a limit of memory");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever was in it may take a moment to be gone.
        eventually(|| std::fs::remove_dir(&self.0).is_ok(), |is_done| *is_done);
    }
}

#[test]
fn what_a_control_group_has_no_room_for_is_refused() {
    let Some(group) = Group::new(256 << 20) else {
        return;
    };
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let within = |words: &str| {
        let script = format!(
            "echo $$ > {0}/cgroup.procs && exec {1} npb {words}",
            group.0.display(),
            lab::sonde().display()
        );
        let mut call = stage.call(Path::new("/bin/sh"));
        call.command.args(["-c", &script]);
        let call = call.env("SONDE_RANK", stage.path("sonde-rank"));
        call.limit(60).output()
    };
    for words in ["ft --class A", "ft --class A --ranks 1"] {
        let outcome = within(words);
        assert_eq!(outcome.code, 2, "{words}: {outcome}");
        for part in ["MiB are available", "class W fits"] {
            assert!(outcome.err.contains(part), "{words}: {outcome}");
        }
        assert!(outcome.out.is_empty(), "{words}: {outcome}");
    }
    // What has room runs there.
    let outcome = within("cg --class S");
    assert_eq!(outcome.code, 0, "{outcome}");
}

/// The ranks of a stage: its copy of their program is nobody else's.
fn ranks(program: &PathBuf) -> Vec<u32> {
    let rank = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let own = std::fs::read_link(entry.path().join("exe")).ok()?;
        (own == *program).then(|| entry.file_name().to_str()?.parse().ok())?
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(rank).collect()
}

/// Whether a path's library and its adapter are here; says so where not.
fn is_here(stage: &Stage, path: &str) -> bool {
    let words = ["ep", "--size", "pairs_log2=18", "--path", path];
    let outcome = npb(stage, &words).output();
    let is_here = !outcome.err.contains("is left out") && outcome.code == 0;
    is_here || skip(&format!("{path}: {}", outcome.err))
}

#[test]
fn a_killed_rank_ends_the_kernel_with_a_word() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    drop(call(&stage, &["doctor", "--build-adapters"]).output());
    let program = PathBuf::from(stage.path("sonde-rank"));
    let program = program.canonicalize().unwrap();
    for path in [
        "native:shm",
        "native:unix",
        "native:tcp",
        "pvm:default",
        "pvm:direct",
        "openmpi:sm",
        "mpich:sm",
    ] {
        if !is_here(&stage, path) {
            continue;
        }
        // So long that it is still under way.
        let words = ["lu", "--class", "B", "--path", path];
        let mut running = npb(&stage, &words).start();
        let begun = eventually(|| ranks(&program), |ranks| ranks.len() == 4);
        let is_alive = running.is_alive();
        assert!(begun.len() == 4 && is_alive, "{path}: {begun:?}");
        std::thread::sleep(Duration::from_millis(700));
        let victim = begun.iter().max().unwrap().to_string();
        let killed = Command::new("kill").args(["-9", &victim]).status();
        assert!(killed.unwrap().success());
        let left = eventually(|| ranks(&program), Vec::is_empty);
        assert!(left.is_empty(), "{path}: {left:?} of {begun:?} go on");
        let outcome = running.finish();
        assert_eq!(outcome.code, 2, "{path}: {outcome}");
        let name = format!("lu B on 4 over {path}");
        assert!(outcome.err.contains(&name), "{path}: {outcome}");
        let named = ["is gone", "by signal 9", "signal 9"];
        let is_named = named.iter().any(|words| outcome.err.contains(words));
        assert!(is_named, "{path}: {outcome}");
    }
}

/// The folder that the launcher with this mark has its ranks' files in.
fn folder_of(mark: &str) -> Option<PathBuf> {
    let is_launcher = |one: &Process| {
        one.line
            .split(' ')
            .next()
            .is_some_and(|word| word.contains("mpirun"))
    };
    let launcher = marked(mark).into_iter().find(is_launcher)?;
    let environment = std::fs::read(format!("/proc/{}/environ", launcher.pid)).ok()?;
    let mut all = environment.split(|byte| *byte == 0);
    let folder = all.find_map(|one| one.strip_prefix(b"TMPDIR="))?;
    Some(PathBuf::from(String::from_utf8(folder.to_vec()).ok()?))
}

#[test]
fn a_killed_launcher_leaves_no_folder() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    drop(call(&stage, &["doctor", "--build-adapters"]).output());
    if !is_here(&stage, "openmpi:sm") {
        return;
    }
    let program = PathBuf::from(stage.path("sonde-rank"));
    let program = program.canonicalize().unwrap();
    // The command, and the launcher beneath it.
    for of_launcher in [false, true] {
        let running = npb(&stage, &["lu", "--class", "B", "--path", "openmpi:sm"]).start();
        let begun = eventually(|| ranks(&program), |ranks| ranks.len() == 4);
        assert_eq!(begun.len(), 4, "{begun:?}");
        let mark = running.mark.clone();
        let folder = eventually(|| folder_of(&mark), Option::is_some);
        let folder = folder.expect("a folder of its own");
        assert!(folder.starts_with("/dev/shm"), "{folder:?}");
        let is_shared = |folder: &PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries
                .filter_map(Result::ok)
                .any(|one| one.file_name().to_string_lossy().contains("vader_segment"))
        };
        let there = eventually(|| is_shared(&folder), |there| *there);
        assert!(there, "the ranks' memory is in {folder:?}");
        if of_launcher {
            let killed = Command::new("pkill")
                .args(["-9", "-f", "--", &format!("mpirun.*{}", program.display())])
                .status();
            assert!(killed.unwrap().success());
            eventually(|| ranks(&program), Vec::is_empty);
        }
        drop(running);
        let is_there = eventually(|| folder.exists(), |is_there| !is_there);
        assert!(!is_there, "{folder:?} stays");
    }
}

/// Coefficients of the density in the exact solution that BT, SP and LU share, as the program has them.
const COEFFICIENTS: [f64; 13] = [
    2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3,
];

#[test]
fn a_wrong_coefficient_fails_the_launch() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    // The program of the ranks with one of its coefficients off by a millionth.
    let program = stage.path("sonde-rank");
    let mut bytes = std::fs::read(&program).unwrap();
    let known: Vec<u8> = COEFFICIENTS
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect();
    let places: Vec<usize> = (0..bytes.len() - known.len())
        .filter(|at| bytes[*at..].starts_with(&known))
        .collect();
    let [place] = places[..] else {
        panic!("the coefficients are {} times in {program}", places.len());
    };
    let last = place + known.len() - 8;
    let wrong: f64 = COEFFICIENTS[12] * (1.0 + 1e-6);
    bytes[last..last + 8].copy_from_slice(&wrong.to_ne_bytes());
    std::fs::write(&program, bytes).unwrap();
    let outcome = npb(&stage, &["cg,lu,sp,bt"]).output();
    assert_eq!(outcome.code, 1, "{outcome}");
    for kernel in ["lu", "sp", "bt"] {
        let line = format!(
            "{kernel} S on 4 over native:shm on loopback: repetition 1 failed: {kernel} S does not verify in run 1: "
        );
        let line = outcome.err.lines().find(|told| told.contains(&line));
        let line = line.unwrap_or_else(|| panic!("{kernel}: {outcome}"));
        for part in [" is official", "a relative error of ", "where 1e-8 passes"] {
            assert!(line.contains(part), "{line}");
        }
    }
    assert!(!outcome.err.contains("cg S on 4"), "{outcome}");
    for line in [
        " Verification    =                 UNSUCCESSFUL",
        " Verification    =                   SUCCESSFUL",
        "FAILS",
    ] {
        assert!(outcome.out.contains(line), "{line}: {outcome}");
    }
    let json = npb(&stage, &["lu,cg", "--json"]).output();
    assert_eq!(json.code, 1, "{json}");
    let document = document(&json.out);
    let found = results(&document, "native:shm");
    assert_eq!(
        (&found[0]["verified"], &found[1]["verified"]),
        (&false.into(), &true.into())
    );
    assert!(found[0]["error"].as_str().unwrap().contains("is official"));
}
