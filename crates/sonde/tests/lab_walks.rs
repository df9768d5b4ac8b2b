//! The walks of docs/walk-*.md: their scripts, run as a reader types them, end in what the page decides by.
//!
//! Model:   files are the fenced blocks of the page, commands its own lines, both with fewer hosts, shorter times or one network in
//!          place of those that are written, so that a walk takes seconds; the words that the decision rests on must appear.

use crate::lab::{Call, Case, Stage, attachments, has, sonde};
use std::path::Path;

const ACCEPT: &str = include_str!("../../../docs/walk-accept.md");
const WAN: &str = include_str!("../../../docs/walk-wan.md");

/// The fenced blocks of a language.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let rest = page.split(&fence).skip(1);
    rest.map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The block that holds these words.
fn block(page: &'static str, language: &str, words: &str) -> &'static str {
    let found = blocks(page, language)
        .into_iter()
        .find(|block| block.contains(words));
    found.unwrap_or_else(|| panic!("no block of {language} has {words}"))
}

/// The text with each of these replaced, which must be there.
fn with(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in {text}");
        text.replace(from, to)
    })
}

/// A shell in the folder of the stage, which finds the command under test as `sonde`.
fn shell(stage: &Stage, line: &str) -> Call {
    let program = stage.folder.join("sonde");
    if !program.exists() {
        crate::lab::copy_program(&sonde(), &program);
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut call = stage.call(Path::new("/bin/sh"));
    call.command.args(["-c", line]);
    call.env(
        "PATH",
        format!("{}:{path}:/usr/sbin", stage.folder.display()),
    )
    .limit(240)
}

#[test]
fn hosts_are_accepted_over_ssh() {
    if !["sshd", "ssh", "ssh-keygen"].into_iter().all(has) {
        return;
    }
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(Case::own(case.attachment));
    let write = |name: &str, text: &str| std::fs::write(stage.folder.join(name), text).unwrap();
    // A loss that a few short streams show for sure.
    write(
        "faults",
        &with(
            block(ACCEPT, "text", "loss h5"),
            &[("0s rate h9 5Mbit\n", ""), ("0.5%", "5%")],
        ),
    );
    write(
        "servers.sh",
        &with(
            block(ACCEPT, "sh", "ssh-keygen"),
            &[("seq 2 17", "seq 2 5")],
        ),
    );
    let accept = block(ACCEPT, "sh", "sonde accept --quick");
    write("accept.sh", &with(accept, &[("h[2-17]", "h[2-5]")]));
    let line = block(ACCEPT, "sh", "sonde lab run --hosts 17");
    let said = shell(&stage, &with(line, &[("--hosts 17", "--hosts 5")])).output();
    assert_eq!(said.code, 0, "{said}");
    assert!(
        said.out
            .starts_with("ACCEPTANCE FAIL  4 hosts, 12 of 12 ordered pairs"),
        "{said}"
    );
    for words in ["all pairs: h5 is bad: ", "DETECTABLE ", "exit code 1\n"] {
        assert!(said.out.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_database_runs_over_a_wide_area_network() {
    let is_there =
        std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut all| all.next().is_some());
    if !is_there {
        println!("skipped: PostgreSQL is not installed");
        return;
    }
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(Case::own(case.attachment));
    let script = with(
        block(WAN, "sh", "pgbench"),
        &[
            ("-T 10", "-T 3"),
            ("for clients in 1 8", "for clients in 1"),
        ],
    );
    std::fs::write(stage.folder.join("database.sh"), script).unwrap();
    let lines = block(WAN, "sh", "-- sh database.sh");
    let line = lines
        .lines()
        .find(|line| line.contains("wan-100m-20ms"))
        .unwrap();
    let said = shell(&stage, line).output();
    assert_eq!(said.code, 0, "{said}");
    let (_, latency) = said
        .out
        .split_once("1 clients: latency average = ")
        .unwrap();
    let latency_ms: f64 = latency.split(' ').next().unwrap().parse().unwrap();
    // Seven statements, each of which waits for the one before it.
    assert!(latency_ms >= 7.0 * 20.0, "{said}");
}

#[test]
fn an_mpi_program_runs_over_a_wide_area_network() {
    if !["mpicc.openmpi", "mpirun.openmpi"].into_iter().all(has) {
        return;
    }
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(Case::own(case.attachment));
    std::fs::write(
        stage.folder.join("stencil.c"),
        block(WAN, "c", "MPI_Allreduce"),
    )
    .unwrap();
    let lines = with(
        block(WAN, "sh", "mpicc.openmpi"),
        &[("ethernet-1g wan-100m-20ms", "wan-100m-20ms")],
    );
    let said = shell(&stage, &lines).output();
    assert_eq!(said.code, 0, "{said}");
    let seconds = |every: &str| -> f64 {
        let (_, rest) = said
            .out
            .split_once(&format!("a check each {every} steps: "))
            .unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    // 200 steps of a swap with the neighbours, 10 ms away; and of a check by all beside it.
    assert!(seconds("50") >= 2.0, "{said}");
    assert!(seconds("1") >= seconds("50") + 2.0, "{said}");
}
