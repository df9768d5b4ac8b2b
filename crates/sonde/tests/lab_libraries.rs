//! Message-passing libraries as they are, by their own commands: Open MPI, MPICH and PVM, and Debian's programs above them.

use crate::lab;
use crate::lab::{
    Case, Outcome, Stage, attachments, cases, eventually, has, marked, path_of, report, skip,
    spread,
};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const SIGINT: i32 = 2;

/// An MPI: its compiler, and the commands that start ranks.
#[derive(Clone, Copy, Debug)]
struct Make {
    compiler: &'static str,
    launchers: &'static [&'static str],
}

const MAKES: [Make; 2] = [
    Make {
        compiler: "mpicc.openmpi",
        launchers: &["mpirun.openmpi", "orterun"],
    },
    Make {
        compiler: "mpicc.mpich",
        launchers: &["mpiexec.mpich", "mpirun.mpich", "mpiexec.hydra"],
    },
];

/// Those that are installed, each as a skip of its own where it is not.
fn makes() -> Vec<Make> {
    let mut makes = MAKES.to_vec();
    makes.retain(|make| has(make.compiler) && has(make.launchers[0]));
    makes
}

/// Compiles a program of this folder for the stage; its path, which all hosts see.
fn compile(stage: &Stage, compiler: &str, source: &str, more: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libraries");
    let program = stage.path(source.trim_end_matches(".c"));
    let mut command = Command::new(path_of(compiler).unwrap());
    command
        .arg(folder.join(source))
        .args(["-O1", "-o", &program]);
    let output = command.args(more).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    program
}

/// `patient COMMAND`: MPICH 4.0 sometimes does not end (github.com/pmodels/mpich/pull/6596), and is then tried again.
const PATIENT: &str =
    "patient() { for i in 1 2 3 4 5; do timeout 15 \"$@\" > out.$$ 2> err.$$; code=$?
    [ $code = 124 ] && continue; cat out.$$; cat err.$$ >&2; return $code; done; return 124; }\n";

fn sh(stage: &Stage, options: &[&str], script: &str) -> Outcome {
    let four = ["--hosts", "4"];
    let script = &format!("{PATIENT}{script}");
    let call = stage.run(&[&four, options].concat(), &["sh", "-c", script]);
    call.limit(240).output()
}

/// The lines of `out` that begin with `word`, in order of their text.
fn lines<'a>(out: &'a str, word: &str) -> Vec<&'a str> {
    let mut lines: Vec<_> = out.lines().filter(|line| line.starts_with(word)).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn mpi_runs_as_it_is_on_every_host() {
    for make in makes() {
        for (case, launcher) in spread(&two_cases(), make.launchers) {
            let stage = Stage::new(case);
            let program = compile(&stage, make.compiler, "mpi.c", &[]);
            let script = format!(
                "echo cpus $(nproc); patient {launcher} -n 4 {program} fail 2 7; echo code $?"
            );
            let outcome = sh(
                &stage,
                &["--network", "atm-oc3c", "--cpus", "free"],
                &script,
            );
            let cpus = lines(&outcome.out, "cpus")[0];
            let ranks: Vec<String> = (0..4)
                .map(|rank| {
                    format!(
                        "rank {rank} of 4 on h{0}, told h{0}, {cpus}, right 4",
                        rank + 1
                    )
                })
                .collect();
            assert_eq!(
                lines(&outcome.out, "rank"),
                ranks,
                "{make:?} {case:?} {outcome}"
            );
            assert_eq!(lines(&outcome.out, "code"), ["code 7"], "{outcome}");
            for rank in 0..4 {
                let said = outcome.err.matches(&format!("error of {rank}")).count();
                assert_eq!(said, 1, "{make:?} {case:?} {outcome}");
            }
        }
    }
}

#[test]
fn ranks_are_spread_and_may_be_more_than_hosts() {
    for make in makes() {
        let Some(case) = attachments().first().copied() else {
            return;
        };
        let stage = Stage::new(case);
        let program = compile(&stage, make.compiler, "mpi.c", &[]);
        let launcher = make.launchers[0];
        // Two hosts, then one and a half ranks a host, then as many as there are hosts where no number is given.
        let script = format!(
            "for ranks in '-n 2' '-n 6' ''; do patient {launcher} $ranks {program} | sed \"s/,.*//; s/^/of '$ranks': /\" || exit; done; mpirun -n 4 hostname | sort | xargs echo hosts"
        );
        let outcome = sh(&stage, &["--cpus", "free"], &script);
        // Of six Open MPI puts neighbours together, Hydra goes round.
        let six = if make.compiler == "mpicc.openmpi" {
            [1, 1, 2, 2, 3, 4]
        } else {
            [1, 2, 3, 4, 1, 2]
        };
        for (ranks, hosts) in [("-n 2", &[1, 2][..]), ("-n 6", &six), ("", &[1, 2, 3, 4])] {
            let of = lines(&outcome.out, &format!("of '{ranks}'"));
            let size = hosts.len();
            let placed = hosts.iter().enumerate();
            let placed: Vec<_> = placed
                .map(|(rank, host)| format!("of '{ranks}': rank {rank} of {size} on h{host}"))
                .collect();
            assert_eq!(of, placed, "{make:?} {outcome}");
        }
        assert_eq!(
            lines(&outcome.out, "hosts"),
            ["hosts h1 h2 h3 h4"],
            "{outcome}"
        );
    }
}

#[test]
fn root_runs_them_too() {
    for make in makes() {
        let Some(case) = cases().into_iter().next_back() else {
            return;
        };
        let stage = Stage::new(case);
        let program = compile(&stage, make.compiler, "mpi.c", &[]);
        let launcher = make.launchers[0];
        let script =
            format!("patient {launcher} -n 4 {program} && {launcher} -n 4 id -u | xargs echo ids");
        let outcome = sh(&stage, &["--root", "--cpus", "free"], &script);
        assert_eq!(lines(&outcome.out, "rank").len(), 4, "{make:?} {outcome}");
        assert_eq!(lines(&outcome.out, "ids"), ["ids 0 0 0 0"], "{outcome}");
    }
}

/// With a rank a host, and with two ranks a host, which share memory. Of MPICH two ranks, for four do not always end.
#[test]
fn one_sided_operations_complete() {
    for make in makes() {
        let Some(case) = attachments().into_iter().next() else {
            return;
        };
        let stage = Stage::new(case);
        let program = compile(&stage, make.compiler, "onesided.c", &[]);
        let launcher = make.launchers[0];
        let rounds: &[(&str, usize)] = if make.compiler.contains("mpich") {
            &[("4", 2)]
        } else {
            &[("4", 4), ("2", 4)]
        };
        for (hosts, ranks) in rounds {
            let script = format!("{PATIENT}patient {launcher} -n {ranks} {program}");
            let options = ["--cpus", "free", "--hosts", hosts];
            let call = stage.run(&options, &["sh", "-c", &script]);
            let outcome = call.limit(120).output();
            let want: Vec<_> = (0..*ranks)
                .map(|rank| {
                    let before = (rank + ranks - 1) % ranks + 1;
                    format!("rank {rank} got {before} of its neighbour, sum {ranks}")
                })
                .collect();
            assert_eq!(lines(&outcome.out, "rank"), want, "{make:?} {outcome}");
            assert_eq!(outcome.code, 0, "{outcome}");
        }
    }
}

/// The manual's own line for PVM ends with the program's code, though `halt` ends the console that it is typed in.
#[test]
fn the_manuals_pvm_script_ends_well() {
    if !has("pvm") {
        return;
    }
    let page = include_str!("../../../docs/lab.md");
    let line = page
        .lines()
        .find(|line| line.contains("echo conf | pvm; ./anything"))
        .expect("the manual has it");
    let script = line.split('\'').nth(1).expect("it is quoted");
    for (case, (program, code)) in spread(&two_cases(), &[("true", 0), ("sh -c \"exit 7\"", 7)]) {
        let stage = Stage::new(case);
        let outcome = sh(&stage, &[], &script.replace("./anything", program));
        assert!(outcome.out.contains("4 hosts, 1 data format"), "{outcome}");
        assert_eq!(outcome.code, code, "{case:?} {outcome}");
    }
}

#[test]
fn an_interrupt_ends_all_ranks() {
    for (case, make) in spread(&two_cases(), &makes()) {
        let stage = Stage::new(case);
        let program = compile(&stage, make.compiler, "mpi.c", &[]);
        let launcher = make.launchers[0];
        let options = ["--hosts", "4", "--cpus", "free"];
        let call = stage.run(&options, &[launcher, "-n", "4", &program, "wait"]);
        let mark = call.mark().to_owned();
        let mut running = call.start();
        // Hydra may put a line of one rank into that of another.
        running.wait_for_all("waiting", 4);
        sonde_sys::process::kill(running.pid(), SIGINT).unwrap();
        let ended = running.finish();
        // Hydra's own code: 0, MPICH's 2, or 255 where its proxies meet the end of mpiexec (pmip_cb.c:899, `!closed`).
        // None of them is killed by force, and sonde itself ends in order.
        let is_hydra = make.compiler.ends_with("mpich") && ended.code == 255;
        assert!(
            ended.code < 128 + 9 || ended.code == 143 || is_hydra,
            "{make:?} {case:?} {ended}"
        );
        let left = eventually(|| marked(&mark), Vec::is_empty);
        assert!(left.is_empty(), "{left:?}");
    }
    for make in makes() {
        // In a lab that goes on nothing of it is left on any host.
        let stage = Stage::new(Case::own("veth"));
        let program = compile(&stage, make.compiler, "mpi.c", &[]);
        let script = format!(
            "{} -n 4 {program} wait > out & until [ \"$(grep -o waiting out | wc -l)\" = 4 ]; do sleep 0.05; done
            kill -TERM $!; wait $!; echo code $?
            for host in h1 h2 h3 h4; do for i in $(seq 100); do
                left=$(sonde lab exec $host -- ps -eo comm | grep -Ex 'mpi|orted|hydra_pmi_.*'); [ -z \"$left\" ] && break; sleep 0.1; done
                echo \"left on $host: $left\"; done",
            make.launchers[0]
        );
        let outcome = sh(&stage, &["--cpus", "free"], &script);
        assert_eq!(lines(&outcome.out, "code").len(), 1, "{outcome}");
        let nothing = ["h1", "h2", "h3", "h4"].map(|host| format!("left on {host}: "));
        assert_eq!(lines(&outcome.out, "left"), nothing, "{make:?} {outcome}");
    }
}

/// The variables that the page lists are those that programs find, and a user's own stay.
#[test]
fn the_page_lists_what_is_set() {
    let page = include_str!("../../../docs/lab.md");
    let rows = page.lines().filter(|line| {
        ["| `OMPI_", "| `HYDRA_", "| `UCX_", "| `PVM"]
            .iter()
            .any(|begin| line.starts_with(begin))
    });
    let mut listed = Vec::new();
    for row in rows {
        let mut cells = row.split(" | ");
        let names = cells.next().unwrap().trim_start_matches("| ");
        let value = cells.next().unwrap().trim_matches('`');
        let names = names.split(", ").map(|name| name.trim_matches('`'));
        listed.extend(names.map(|name| format!("{name}={value}")));
    }
    listed.sort();
    assert!(listed.len() > 20, "{listed:?}");
    for (case, root) in [(Case::own("veth"), true), (Case::own("veth"), false)] {
        let stage = Stage::new(case);
        let mut options = vec!["--hosts", "2"];
        options.extend(root.then_some("--root"));
        let mut call = stage.run(&options, &["env"]);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if ["OMPI_", "HYDRA_", "UCX_", "PVM"]
                .iter()
                .any(|begin| name.starts_with(begin))
            {
                call.command.env_remove(&*name);
            }
        }
        let outcome = call.env("UCX_TLS", "").env("PVM_TMP", "/mine").expect(0);
        let is_ours = |line: &&str| {
            ["OMPI_", "HYDRA_", "UCX_", "PVM"]
                .iter()
                .any(|begin| line.starts_with(begin))
        };
        let mut found: Vec<_> = outcome.out.lines().filter(is_ours).collect();
        found.sort_unstable();
        let expected: Vec<_> = listed
            .iter()
            .filter(|line| root || !line.contains("ALLOW_"))
            .map(|line| match line.split_once('=').unwrap().0 {
                "UCX_TLS" => "UCX_TLS=",
                "PVM_TMP" => "PVM_TMP=/mine",
                _ => line,
            })
            .collect();
        assert_eq!(found, expected);
    }
}

/// What is left of PVM on each of four hosts, soon after it was told to end.
const LEFT_OF_PVM: &str = "
    for host in h1 h2 h3 h4; do for i in $(seq 100); do
        left=$(sonde lab exec $host -- sh -c 'ps -eo comm | grep -x pvmd; ls /run/pvm | grep -v pvml'); [ -z \"$left\" ] && break; sleep 0.1; done
        echo \"left on $host: $left\"; done";

#[test]
fn pvm_runs_as_it_is_by_both_routes() {
    if !has("pvm") || !has_headers_of_pvm() {
        return;
    }
    for (case, ()) in spread(&two_cases(), &[()]) {
        let stage = Stage::new(case);
        let program = compile(&stage, "cc", "pvm.c", &["-lpvm3"]);
        let script = format!(
            "echo conf | pvm || exit 1
            for route in default direct; do {program} $route || exit 2; done
            echo halt | pvm > halted 2>&1; {LEFT_OF_PVM}"
        );
        let outcome = sh(&stage, &["--network", "atm-oc3c"], &script);
        for host in ["h1", "h2", "h3", "h4"] {
            for route in ["default", "direct"] {
                let line = format!("{host}: {route} child on {host}");
                assert!(outcome.out.contains(&line), "{line}: {case:?} {outcome}");
            }
            let nothing = format!("left on {host}: \n");
            assert!(outcome.out.contains(&nothing), "{case:?} {outcome}");
        }
    }
}

fn has_headers_of_pvm() -> bool {
    let has = Path::new("/usr/include/pvm3.h").exists();
    if !has {
        println!("skipped: the headers of PVM (pvm-dev)");
    }
    has
}

/// One attachment as this process's own user, another as an ordinary one where this is root.
fn two_cases() -> Vec<Case> {
    let cases = cases();
    let last = cases.last().copied().filter(|_| cases.len() > 1);
    cases.first().copied().into_iter().chain(last).collect()
}

/// Debian's hpcc, on four hosts. Of its time all but a second is its messages of 2 MB, whose number no setting changes.
/// SONDE_TESTS=long cargo test --release -p sonde-cli --test lab_libraries hpcc -- --nocapture
#[test]
fn hpcc_runs_as_it_is() {
    if !lab::is_long() {
        skip("2 MB messages over ATM and DS-3 take minutes: make test-long");
        return;
    }
    if !has("hpcc") || !has("mpirun.openmpi") {
        return;
    }
    for case in two_cases() {
        for network in ["atm-oc3c", "wan-ds3"] {
            let stage = Stage::new(case);
            let input = include_str!("libraries/hpccinf.txt");
            std::fs::write(stage.folder.join("hpccinf.txt"), input).unwrap();
            let options = ["--hosts", "4", "--network", network, "--cpus", "free"];
            let call = stage.run(&options, &["mpirun.openmpi", "-np", "4", "hpcc"]);
            let outcome = call.limit(900).expect(0);
            let said = std::fs::read_to_string(stage.path("hpccoutf.txt")).unwrap();
            assert!(
                said.contains("\nSuccess=1\n"),
                "{case:?} {network} {outcome} {said}"
            );
            let figures = said.lines().filter(|line| line.contains("PingPong"));
            println!(
                "{case:?} {network} {:?}: {:?}",
                outcome.took,
                figures.collect::<Vec<_>>()
            );
        }
    }
}

/// A benchmark of GPCNeT's kind, eight ranks on four hosts, to its end: each pattern of load is made, and latencies are measured beside
/// it. Of MPICH its last line counts, for its ranks do not always leave `MPI_Finalize`.
#[test]
fn a_congestion_benchmark_runs_to_its_end() {
    if !lab::is_long() {
        skip("a congestion benchmark above each MPI: make test-long");
        return;
    }
    for make in makes() {
        let is_mpich = make.compiler.ends_with("mpich");
        for (seed, case) in two_cases().into_iter().enumerate() {
            let stage = Stage::new(case);
            let program = compile(&stage, make.compiler, "congestion.c", &["-Wall", "-Werror"]);
            // What has said its last word has ten seconds to end.
            let script = format!(
                "({} -n 8 {program} {seed} > out 2> err; echo $? > code) &
                for i in $(seq 600); do [ -s code ] && break; grep -q '^to its end' out && break; sleep 0.2; done
                for i in $(seq 50); do [ -s code ] && break; sleep 0.2; done
                cat out; cat err >&2; [ -s code ] && exit $(cat code); exit 124",
                make.launchers[0]
            );
            let outcome = sh(&stage, &["--cpus", "free"], &script);
            println!("{make:?} {case:?} {outcome}");
            assert!(outcome.code == 0 || is_mpich, "{outcome}");
            for (state, count) in [("isolated", 2), ("congested", 10), ("load", 5)] {
                assert_eq!(lines(&outcome.out, state).len(), count, "{outcome}");
            }
            assert_eq!(lines(&outcome.out, "to its end").len(), 1, "{outcome}");
            assert!(!outcome.out.contains("mean 0.0 us"), "{outcome}");
        }
    }
}

/// A program of NetPIPE, what else it needs, sonde's path by the same library, and how it is started between h1 and another
/// host; its options stand for `$O`.
pub type NetPipe = (&'static str, &'static str, &'static str, &'static str);

/// The last one waits by asking without pause, so that where CPUs are few its times are the kernel's.
pub const NETPIPES: [NetPipe; 4] = [
    (
        "NPtcp",
        "NPtcp",
        "tcp",
        "sonde lab exec --detach h4 -- NPtcp $O -o /tmp/o; sleep 1; NPtcp -h h4 $O -o NPtcp.out",
    ),
    (
        "NPopenmpi",
        "mpirun.openmpi",
        "openmpi:tcp",
        "patient mpirun.openmpi -np 2 NPopenmpi $O -o NPopenmpi.out",
    ),
    (
        "NPpvm",
        "pvm",
        "pvm:direct",
        "echo conf | pvm; sonde lab exec --detach h2 -- NPpvm $O -o /tmp/o; sleep 1; NPpvm -h h2 $O -o NPpvm.out",
    ),
    (
        "NPmpich2",
        "mpiexec.mpich",
        "mpich:tcp",
        "patient mpiexec.mpich -n 2 NPmpich2 $O -o NPmpich2.out",
    ),
];

/// Runs those that are installed; the last line of each: bytes, rate in 2^20 bits a second, seconds one way.
pub fn netpipe(
    stage: &Stage,
    network: &str,
    options: &str,
    programs: &[NetPipe],
) -> Vec<(&'static str, [f64; 3])> {
    let mut script = format!("O='{options}'\n");
    let mut there = programs.to_vec();
    there.retain(|(program, needs, ..)| has(program) && has(needs));
    for (.., start) in &there {
        writeln!(script, "( {start} ) >> np.log 2>&1 < /dev/null || exit 3").unwrap();
    }
    let outcome = sh(stage, &["--network", network, "--cpus", "free"], &script);
    let log = std::fs::read_to_string(stage.path("np.log")).unwrap_or_default();
    assert_eq!(outcome.code, 0, "{network} {outcome} {log}");
    let last = |program: &str| {
        let text = std::fs::read_to_string(stage.path(&format!("{program}.out"))).unwrap();
        let line = text.lines().last().unwrap_or_default().split_whitespace();
        let words: Vec<f64> = line.map(|word| word.parse().unwrap()).collect();
        <[f64; 3]>::try_from(words).unwrap_or_else(|_| panic!("{program}: {text}"))
    };
    there
        .iter()
        .map(|(program, _, path, _)| (*path, last(program)))
        .collect()
}

/// NetPIPE above each library, as Debian has it, as an ordinary user where there is a choice; `netpipe_and_sonde_agree` runs it as
/// this process's own. Its Mbps is 2^20 bits a second.
#[test]
fn netpipe_runs_as_it_is() {
    let Some(case) = two_cases().pop() else {
        return;
    };
    let spec = sonde_link::named("atm-oc3c").unwrap();
    let ceiling = sonde_link::tcp_max(&spec, sonde_link::Headers::Timestamps).unwrap();
    let options = "-p 0 -l 65536 -u 65536 -n 2";
    for (path, [bytes, rate, seconds]) in netpipe(&Stage::new(case), "atm-oc3c", options, &NETPIPES)
    {
        println!("{case:?} {path}: {rate} Mbps at {bytes} bytes, {seconds} s");
        assert_eq!(bytes as u64, 65_536);
        let rate = rate * 1_048_576.0;
        assert!(
            rate > 0.0 && rate <= ceiling as f64,
            "{path}: {rate} of {ceiling}"
        );
        let by_time = bytes * 8.0 / seconds / rate;
        assert!((0.99..1.01).contains(&by_time), "{path}: {by_time}");
    }
}

/// Load and faults come beside a program that mpirun started: frames are lost, and it ends well all the same.
#[test]
fn load_and_script_work_beside_mpirun() {
    for make in makes() {
        let Some(case) = attachments().first().copied() else {
            return;
        };
        let stage = Stage::new(case);
        // A host that cannot be reached while the ranks are being started.
        const SCRIPT: &str = "10ms loss all 2%\n20ms link h3 down\n1500ms link h3 up\n";
        let program = compile(&stage, make.compiler, "mpi.c", &[]);
        std::fs::write(stage.folder.join("script"), SCRIPT).unwrap();
        let report_path = stage.path("report");
        let options = [
            "--network",
            "ethernet-100",
            "--load",
            "0.3",
            "--script",
            "script",
            "--report",
            &report_path,
            "--cpus",
            "free",
        ];
        let launcher = make.launchers[0];
        let outcome = sh(
            &stage,
            &options,
            &format!("patient {launcher} -n 4 {program}"),
        );
        assert_eq!(outcome.code, 0, "{make:?} {outcome}");
        assert_eq!(lines(&outcome.out, "rank").len(), 4, "{outcome}");
        let report = report(&report_path);
        let lost = report["lost"].to_string();
        for cause in ["-linkdown-", "-random-"] {
            assert!(lost.contains(cause), "{cause}: {report:#}");
        }
        assert_eq!(report["flows"].as_array().unwrap().len(), 4, "{report:#}");
    }
}

/// An allocation outside is none of the lab's.
#[test]
fn an_allocation_outside_stays_outside() {
    for make in makes() {
        let Some(case) = attachments().first().copied() else {
            return;
        };
        let stage = Stage::new(case);
        let mut call = stage.run(
            &["--hosts", "4"],
            &[make.launchers[0], "-n", "4", "hostname"],
        );
        for (name, value) in [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOBID", "7"),
            ("SLURM_NODELIST", "n[1-2]"),
            ("SLURM_NNODES", "2"),
            ("SLURM_TASKS_PER_NODE", "1(x2)"),
            ("PMI_RANK", "3"),
        ] {
            call = call.env(name, value);
        }
        let outcome = call.expect(0);
        assert_eq!(
            lines(&outcome.out, "h"),
            ["h1", "h2", "h3", "h4"],
            "{make:?} {outcome}"
        );
    }
}
