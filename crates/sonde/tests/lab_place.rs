//! Placements: what unmodified MPI programs send, counted; trials that are kept; launchers that follow their files.

use crate::lab::{Call, Stage, attachments, cases, eventually, has, is_root};
use serde_json::Value;
use sonde_place::{Launcher, Matrix, Pattern, Placement};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds one of the programs of tests/mpi.
pub fn build(stage: &Stage, compiler: &str, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mpi/{name}.c"));
    let program = stage.folder.join(format!("{name}.{compiler}"));
    let built = Command::new(compiler)
        .arg("-O2")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    program
}

/// `sonde place record` of a program started by one of the MPIs on this machine.
pub fn record(
    stage: &Stage,
    mpi: &str,
    program: &Path,
    arguments: &[&str],
    ranks: usize,
) -> Matrix {
    let to = stage.path(&format!("{mpi}.json"));
    let count = ranks.to_string();
    let mut words = vec!["place", "record", "--to", &to, "--"];
    match mpi {
        "openmpi" => {
            words.extend([
                "mpirun.openmpi",
                "-np",
                &count,
                "--oversubscribe",
                "--bind-to",
                "none",
                "--mca",
                "mpi_yield_when_idle",
                "1",
            ]);
        }
        _ => words.extend(["mpiexec.mpich", "-n", &count]),
    }
    words.push(program.to_str().unwrap());
    words.extend(arguments);
    let outcome = stage
        .sonde(&words)
        .env("XDG_CACHE_HOME", stage.path("cache"))
        .limit(120)
        .expect(0);
    outcome.tells(&["ranks sent"]);
    Matrix::parse(&std::fs::read_to_string(&to).unwrap()).unwrap()
}

/// The MPIs that are installed.
fn installed() -> Vec<(&'static str, &'static str)> {
    let all = [
        ("openmpi", "mpicc.openmpi", "mpirun.openmpi"),
        ("mpich", "mpicc.mpich", "mpiexec.mpich"),
    ];
    let there = all
        .into_iter()
        .filter(|(_, compiler, launcher)| has(compiler) && has(launcher));
    there.map(|(mpi, compiler, _)| (mpi, compiler)).collect()
}

#[test]
fn calls_are_counted_as_stated() {
    for (mpi, compiler) in installed() {
        let Some(case) = attachments().into_iter().next() else {
            return;
        };
        let stage = Stage::new(case);
        let program = build(&stage, compiler, "calls");
        let mut wanted = Matrix::new(4).unwrap();
        let others = |rank: usize| (0..4).filter(move |other| *other != rank);
        // Eight from 0 to 1.
        wanted.add(0, 1, 800, 8);
        for rank in 0..4 {
            // Round, twice.
            wanted.add(rank, (rank + 1) % 4, 20, 2);
            // Reduce to 3 and gather to 0.
            if rank != 3 {
                wanted.add(rank, 3, 40, 1);
            }
            if rank != 0 {
                wanted.add(rank, 0, 5, 1);
            }
            for to in others(rank) {
                // Two allreduces of 80 bytes; allgather, alltoall, alltoallv.
                wanted.add(rank, to, 2 * 40, 2 * 2);
                wanted.add(rank, to, 7 + 3 + to as u64 + 1, 3);
            }
            // Scan; barrier; neighbours.
            if rank < 3 {
                wanted.add(rank, rank + 1, 8, 1);
                wanted.add(rank, rank + 1, 13, 1);
                wanted.add(rank + 1, rank, 13, 1);
            }
            wanted.add(rank, (rank + 1) % 4, 0, 1);
            wanted.add(rank, (rank + 2) % 4, 0, 1);
        }
        for to in others(2) {
            wanted.add(2, to, 1_000, 1);
        }
        for to in others(0) {
            wanted.add(0, to, to as u64 + 1, 1);
        }
        wanted.add(0, 2, 11, 1);
        wanted.add(2, 0, 11, 1);
        for arguments in [&[][..], &["threads"]] {
            let counted = record(&stage, mpi, &program, arguments, 4);
            assert!(counted.time_ns.is_some_and(|ns| ns > 0));
            for (from, to) in (0..16).map(|at| (at / 4, at % 4)) {
                let of = |matrix: &Matrix| (matrix.bytes(from, to), matrix.messages(from, to));
                assert_eq!(of(&counted), of(&wanted), "{mpi}: {from} to {to}");
            }
        }
        let stencil = build(&stage, compiler, "stencil");
        let mut counted = record(&stage, mpi, &stencil, &["2", "3", "5000", "4"], 6);
        let drawn = Pattern::Stencil2d.matrix(6, 5_000, 4, 1).unwrap();
        counted.time_ns = None;
        assert_eq!(counted, drawn, "{mpi}");
    }
}

#[test]
fn a_program_without_mpi_is_told() {
    let [(_, _), ..] = installed()[..] else {
        return;
    };
    if !has("mpirun.openmpi") || !has("mpicc.openmpi") {
        return;
    }
    let Some(case) = attachments().into_iter().next() else {
        return;
    };
    let stage = Stage::new(case);
    let to = stage.path("m.json");
    let words = [
        "place",
        "record",
        "--to",
        &to,
        "--",
        "mpirun.openmpi",
        "-np",
        "1",
    ];
    let call = |program: &[&str]| {
        stage
            .sonde(&[&words[..], program].concat())
            .env("XDG_CACHE_HOME", stage.path("cache"))
    };
    call(&["true"])
        .expect(125)
        .tells(&["left no matrix", "MPI_Init"]);
    call(&["sh", "-c", "exit 3"]).expect(3);
    // What the caller says of root stands: Open MPI refuses then.
    if is_root() {
        let refused = call(&["true"]).env("OMPI_ALLOW_RUN_AS_ROOT", "0").output();
        assert_ne!(refused.code, 0, "{refused}");
        assert!(!refused.err.contains("allowed to run as root"), "{refused}");
    }
}

/// What a trial said.
pub fn tried(stage: &Stage, words: &[&str]) -> Value {
    let (task, rest) = words.split_first().unwrap();
    let mut call: Call = stage
        .sonde(&[*task, "--attachment", stage.case.attachment])
        .limit(600);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    call.command.args(rest);
    let outcome = call.expect(0);
    let said: Value =
        serde_json::from_str(&outcome.out).unwrap_or_else(|e| panic!("{e}: {outcome}"));
    for row in said["placements"].as_array().unwrap() {
        println!(
            "{}: predicted {}, measured {}",
            row["name"], row["cost_ratio"], row["measured"]
        );
    }
    said
}

/// A stage of the process's own user, or of an ordinary one where that is root.
pub fn can_verify(as_user: bool) -> Option<Stage> {
    if !has("mpirun.openmpi") || !has("mpicc.openmpi") {
        return None;
    }
    let cases = cases();
    let wanted = cases.iter().find(|case| case.is_user == as_user);
    wanted.or(cases.first()).copied().map(Stage::new)
}

/// A trial is a run like any other: shown, exported and compared; when it is killed what it measured is there.
#[test]
fn a_trial_is_kept() {
    let Some(stage) = can_verify(false) else {
        return;
    };
    let out = stage.path("kept");
    let words = |launches| {
        let words = "place --network ethernet-100 --hosts 2 --slots 2 --pattern ring --size 1KiB --messages 2 --verify --json --launches";
        let words = words.split(' ').chain([launches, "--out", &*out]);
        words.collect::<Vec<_>>()
    };
    let said = tried(&stage, &words("2"));
    let report = |words: &[&str]| {
        let all = [&["report"], words, &["--out", &out]].concat();
        stage.sonde(&all).output()
    };
    let exported = |id: &str| -> Value {
        let text = report(&["export", "--json", id]).out;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let id = said["run"].as_str().unwrap();
    let run = &exported(id)["run"];
    let count = |name: &str| run[name].as_array().unwrap().len();
    assert_eq!((count("cells"), count("launches")), (4, 8), "{run:#}");
    for launch in run["launches"].as_array().unwrap() {
        let hosts = launch["evidence"]["ranks"]["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), 4, "{launch:#}");
        assert!(!launch["verdict"].is_null(), "{launch:#}");
    }
    let shown = report(&["show", id]);
    for part in [
        "A program under placements",
        "mapped",
        "round-robin",
        "1.00x",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown}");
    }
    let csv = report(&["export", "--csv", id]);
    let is_time = |line: &&str| {
        line.starts_with("place,application,openmpi:tcp") && line.contains(",program_ns,")
    };
    assert_eq!(csv.out.lines().filter(is_time).count(), 4, "{csv}");
    // Too few launches to tell anything of them.
    assert_eq!(report(&["compare", id, id]).code, 3);

    let mut call = stage.sonde(&words("1000")).limit(120);
    call.command.args(["--attachment", stage.case.attachment]);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    let running = call.start();
    let latest = || -> Option<Value> {
        let text = report(&["export", "--json"]).out;
        let run = serde_json::from_str::<Value>(&text).ok()?["run"].take();
        (run["head"]["id"] != id && run["launches"].as_array().is_some_and(|all| all.len() > 1))
            .then_some(run)
    };
    let begun = eventually(latest, Option::is_some);
    // By kill -9.
    drop(running);
    let begun = begun.expect("launches are in the store while others are made");
    let killed = begun["head"]["id"].as_str().unwrap();
    let run = &exported(killed)["run"];
    assert_eq!(run["head"]["state"], "open", "{run:#}");
    let resumed = stage
        .sonde(&["assess", "--resume", killed, "--out", &out])
        .expect(64);
    resumed.tells(&["cannot be resumed"]);
    let none = stage
        .sonde(&["assess", "--resume", "--out", &out])
        .expect(64);
    none.tells(&["is unfinished"]);
}

/// Ranks say where they run; each launcher's file puts them where the placement says.
#[test]
fn launchers_follow_their_files() {
    if !has("mpirun.openmpi") || !has("mpiexec.mpich") {
        return;
    }
    let Some(case) = attachments().into_iter().next() else {
        return;
    };
    let stage = Stage::new(case);
    let text = "[[site]]\nname = \"a\"\nhosts = [\"h1\", \"h2\", \"h3\"]\nslots = 2\nrate = \"1Gbit\"\nlatency = \"9us\"\n";
    let cluster = sonde_place::parse_cluster(text).unwrap();
    let placement = Placement::new(vec![2, 0, 1, 2, 0]);
    let write = |launcher: Launcher, name: &str| {
        std::fs::write(stage.folder.join(name), launcher.file(&placement, &cluster)).unwrap();
        stage.path(name)
    };
    let (seq, mpich) = (
        write(Launcher::OpenMpiSeq, "seq"),
        write(Launcher::Mpich, "mpich"),
    );
    let open_say = "sh -c 'echo $OMPI_COMM_WORLD_RANK $(hostname)'";
    let hydra_say = "sh -c 'echo $PMI_RANK $(hostname)'";
    // A rankfile binds, and hosts of a lab have few CPUs: one slot is the first one of each.
    let single = Placement::new(vec![2, 0, 1]);
    std::fs::write(
        stage.folder.join("rankfile"),
        Launcher::OpenMpi.file(&single, &cluster),
    )
    .unwrap();
    let rankfile = stage.path("rankfile");
    for (line, wanted) in [
        (
            format!("mpirun.openmpi -np 5 --map-by seq --hostfile {seq} {open_say}"),
            "0 h3 1 h1 2 h2 3 h3 4 h1",
        ),
        (
            format!("mpiexec.mpich -n 5 -f {mpich} {hydra_say}"),
            "0 h3 1 h1 2 h2 3 h3 4 h1",
        ),
        (
            format!("mpirun.openmpi -np 3 --rankfile {rankfile} {open_say}"),
            "0 h3 1 h1 2 h2",
        ),
    ] {
        let outcome = stage.run(&["--hosts", "3"], &["sh", "-c", &line]).expect(0);
        let mut lines: Vec<&str> = outcome.out.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.join(" "), wanted, "{line}: {outcome}");
    }
}
