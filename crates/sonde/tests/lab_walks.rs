//! The tutorial and the how-tos of docs/: their commands, run as a reader types them, print what the page shows and end in what it decides by.
//!
//! Model:   a page is played from its begin to its end in one folder. A block behind "Write this as `NAME`" is a file, each other block of `sh` is
//!          run, and a block of `text` must have the shape of what the block before it printed. In a shape a row of numbers is any row of numbers, and a
//!          unit any of its kind; a line that ends in `...` is compared as far as it goes, one that begins with a label in capitals by its label, and
//!          what is indented or says how disturbed this machine was (`sonde: `) is not compared. `<!-- long: why -->` before a block leaves it to the long
//!          tier, and what needs hosts of the reader's own is not run. Long walks are also run with fewer hosts, shorter times or one network in place of
//!          those that are written, so that they take seconds; there the words that the decision rests on must appear. Of the other pages each command
//!          that one machine can run is run in the long tier, with `--quick` where it would repeat for minutes.
//! Checked: `shapes_are_compared`, `a_page_is_read_block_by_block`.

use crate::lab::{Call, Case, Stage, attachments, has, is_long, skip, sonde};
use std::path::Path;
use std::sync::Mutex;

const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");
const FIND: &str = include_str!("../../../docs/find-a-bad-link.md");
const TRY: &str = include_str!("../../../docs/try-a-program.md");
const COMPARE: &str = include_str!("../../../docs/compare-libraries.md");
const WHY: &str = include_str!("../../../docs/why-is-it-slow.md");

/// Pages whose commands stand for themselves.
const REFERENCE: &[(&str, &str)] = &[
    ("README.md", include_str!("../../../README.md")),
    (
        "accept-a-cluster.md",
        include_str!("../../../docs/accept-a-cluster.md"),
    ),
    ("contend.md", include_str!("../../../docs/contend.md")),
    ("fidelity.md", include_str!("../../../docs/fidelity.md")),
    ("files.md", include_str!("../../../docs/files.md")),
    ("install.md", include_str!("../../../docs/install.md")),
    ("json.md", include_str!("../../../docs/json.md")),
    ("kernels.md", include_str!("../../../docs/kernels.md")),
    ("lab.md", include_str!("../../../docs/lab.md")),
    ("measuring.md", include_str!("../../../docs/measuring.md")),
    ("messages.md", include_str!("../../../docs/messages.md")),
    ("networks.md", include_str!("../../../docs/networks.md")),
    (
        "old-studies.md",
        include_str!("../../../docs/old-studies.md"),
    ),
    ("place.md", include_str!("../../../docs/place.md")),
    ("staging.md", include_str!("../../../docs/staging.md")),
    ("suits.md", include_str!("../../../docs/suits.md")),
    ("tune.md", include_str!("../../../docs/tune.md")),
];

/// A fenced block of a page.
#[derive(Debug, PartialEq)]
struct Block<'a> {
    language: &'a str,
    text: String,
    /// The file that the reader writes it to.
    file: Option<&'a str>,
    is_long: bool,
}

/// The blocks of a page, in its order.
fn read(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open) = (Vec::new(), None::<Block<'_>>);
    let (mut file, mut is_long) = (None, false);
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let text = String::new();
                open = Some(Block {
                    language,
                    text,
                    file,
                    is_long,
                });
                (file, is_long) = (None, false);
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.extend([line, "\n"]),
            (None, None) => {
                let named = line.split_once("this as `");
                file = named.and_then(|(_, rest)| rest.split('`').next()).or(file);
                is_long |= line.starts_with("<!-- long: ");
            }
        }
    }
    blocks
}

/// The words of a line, with `#` for numbers and one unit for all of a kind.
fn shape(line: &str) -> Vec<String> {
    let mut words: Vec<_> = line.split_whitespace().map(word).collect();
    // A number may have blanks within, and a table another number of them.
    words.dedup_by(|word, last| word == "#" && last == "#");
    words
}

fn word(word: &str) -> String {
    let (mut shape, mut letters) = (String::new(), word.trim_matches('~').chars().peekable());
    while let Some(letter) = letters.next() {
        let is_before = letters.peek().is_some_and(char::is_ascii_digit);
        match letter {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            '.' | ',' if is_before && shape.ends_with('#') => {}
            '-' | '+' if is_before && shape.is_empty() => {}
            _ => shape.push(letter),
        }
    }
    match shape.as_str() {
        "ns" | "µs" | "us" | "ms" | "s" => "s".into(),
        "b/s" | "kb/s" | "Mb/s" | "Gb/s" => "b/s".into(),
        "-" | "?" => "#".into(),
        _ => shape,
    }
}

/// The lines of `shown` that no line of `printed` has the shape of.
fn missing<'a>(shown: &'a str, printed: &str) -> Vec<&'a str> {
    let printed: Vec<_> = printed.lines().map(shape).collect();
    let is_there = |line: &str| {
        let first = line.split(' ').next().unwrap_or_default();
        let is_label = first.len() > 3 && first.chars().all(|letter| letter.is_ascii_uppercase());
        let (wanted, is_begin) = match line.strip_suffix("...") {
            _ if is_label => (first, true),
            Some(begin) => (begin, true),
            None => (line, false),
        };
        let wanted = shape(wanted);
        let mut all = printed.iter();
        all.any(|line| line.starts_with(&wanted) && (is_begin || line.len() == wanted.len()))
    };
    let is_compared = |line: &&str| {
        !line.is_empty() && !line.starts_with([' ', '─']) && !line.starts_with("sonde: ")
    };
    let lines = shown.lines().filter(is_compared);
    lines.filter(|line| !is_there(line)).collect()
}

/// Plays a page.
fn walk(page: &str) {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(Case::own(case.attachment));
    let (mut printed, mut runs) = (None::<String>, 0);
    for block in read(page) {
        let is_run = block.language == "sh"
            && (is_long() || !block.is_long)
            && !block.text.contains("hosts:a,b");
        if let Some(name) = block.file {
            std::fs::write(stage.folder.join(name), &block.text).unwrap();
        } else if block.language == "text" {
            let missing = printed
                .as_ref()
                .map(|printed| missing(&block.text, printed));
            let missing = missing.unwrap_or_default();
            assert!(
                missing.is_empty(),
                "{missing:#?} in\n{}",
                printed.unwrap_or_default()
            );
        } else if block.language == "sh" {
            let said = is_run.then(|| shell(&stage, &block.text).limit(900).output());
            // A verdict is 1 or 3.
            assert!(
                said.as_ref()
                    .is_none_or(|said| matches!(said.code, 0 | 1 | 3)),
                "{said:?}"
            );
            printed = said.map(|said| said.out + &said.err);
            runs += usize::from(is_run);
        }
    }
    assert!(runs > 0, "no block was run");
}

#[test]
fn shapes_are_compared() {
    let printed =
        "tcp   block  43.17    42.00 – 43.43  6000     -\n1 host, 3.2 ms\nTRUST    LOW   x\n";
    for shown in [
        "tcp block 1 2 – 3 400 1 701",
        "17 host, 9 µs",
        "tcp block ...",
        "TRUST    HIGH  y",
        "  indented\nsonde: late",
    ] {
        assert_eq!(missing(shown, printed), [""; 0], "{shown}");
    }
    for shown in ["udp block ...", "1 host", "1 host, 3.2 Mb/s", "MORE  x"] {
        assert_eq!(missing(shown, printed), [shown]);
    }
}

#[test]
fn a_page_is_read_block_by_block() {
    let page = "Write this as `a.sh`, and:\n\n```sh\nls\n```\nso\n<!-- long: an hour -->\n```sh\nb\nc\n```\n\n```text\nd\n```\n";
    let block = |language, text: &str, file, is_long| Block {
        language,
        text: text.into(),
        file,
        is_long,
    };
    let wanted = [
        block("sh", "ls\n", Some("a.sh"), false),
        block("sh", "b\nc\n", None, true),
        block("text", "d\n", None, false),
    ];
    assert_eq!(read(page), wanted);
}

/// Whether what ranks of libraries need is beside the command.
fn has_ranks() -> bool {
    let is_there = |name: &str| sonde().with_file_name(name).exists();
    is_there("sonde-rank")
        && is_there("adapters/sonde-pvm.so")
        && is_there("adapters/sonde-openmpi.so")
        || skip("sonde-rank and adapters beside the command: `sonde doctor --build-adapters`")
}

#[test]
fn the_tutorial_is_true() {
    walk(TUTORIAL);
}

#[test]
fn a_bad_host_is_found() {
    if ["sshd", "ssh", "ssh-keygen"].into_iter().all(has) {
        walk(FIND);
    }
}

#[test]
fn programs_are_tried() {
    let has_database =
        Path::new("/usr/lib/postgresql").exists() || skip("PostgreSQL is not installed");
    if has_database
        && ["iperf3", "mpicc.openmpi", "mpirun.openmpi"]
            .into_iter()
            .all(has)
    {
        walk(TRY);
    }
}

#[test]
fn libraries_are_compared() {
    if ["mpirun.openmpi", "pvm"].into_iter().all(has) && has_ranks() {
        walk(COMPARE);
    }
}

#[test]
fn what_is_slow_has_a_reason() {
    if has("pvm") && has_ranks() {
        walk(WHY);
    }
}

/// The block of a language that holds these words.
fn block(page: &str, language: &str, words: &str) -> String {
    let mut found = read(page).into_iter();
    let block = found.find(|block| block.language == language && block.text.contains(words));
    block
        .unwrap_or_else(|| panic!("no block of {language} has {words}"))
        .text
}

/// The text with each of these replaced, which must be there.
fn with(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in {text}");
        text.replace(from, to)
    })
}

/// A shell in the folder of the stage, which finds the command under test as `sonde`, and what its ranks need beside that command.
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
    .env("SONDE_RANK", sonde().with_file_name("sonde-rank"))
    .env("SONDE_ADAPTERS", sonde().with_file_name("adapters"))
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
            &block(FIND, "text", "loss h5"),
            &[("0s rate h9 5Mbit\n", ""), ("0.5%", "5%")],
        ),
    );
    write(
        "servers.sh",
        &with(&block(FIND, "sh", "ssh-keygen"), &[("seq 2 17", "seq 2 5")]),
    );
    let accept = &block(FIND, "sh", "sonde accept --quick");
    write("accept.sh", &with(accept, &[("h[2-17]", "h[2-5]")]));
    let line = &block(FIND, "sh", "sonde lab run --hosts 17");
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
        &block(TRY, "sh", "pgbench"),
        &[
            ("-T 10", "-T 3"),
            ("for clients in 1 8", "for clients in 1"),
        ],
    );
    std::fs::write(stage.folder.join("database.sh"), script).unwrap();
    let lines = &block(TRY, "sh", "-- sh database.sh");
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
        block(TRY, "c", "MPI_Allreduce"),
    )
    .unwrap();
    let lines = with(
        &block(TRY, "sh", "mpicc.openmpi"),
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

/// What a command has that one machine without preparations has not: hosts of the reader's own, a batch system, root by sudo, a program or a file of
/// the reader's, a shell in a lab, folders of the system.
const ELSEWHERE: &[&str] = &[
    "hosts:",
    "salloc",
    "srun",
    "sbatch",
    "scontrol",
    "mpirun:",
    "testbed mpirun",
    "listen:",
    "sudo ",
    "./anything",
    "./prog",
    "lab shell",
    "sonde lab tell",
    "sonde lab exec",
    "rsh -n",
    "--listen",
    "/var/lib",
    "cargo ",
    "make ",
    "git clone",
    "matrix.json",
    "tcpdump -nr",
    "./my-network",
    "RUN_A",
];

/// The commands of a block, each as it is typed; a script is one.
fn typed(block: &str) -> Vec<String> {
    let block = block.replace("\\\n", " ");
    let lines: Vec<&str> = block
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let is_alone = |line: &&str| {
        line.starts_with("sonde ") || line.starts_with("printf ") || line.starts_with("echo ")
    };
    match lines.iter().all(is_alone) {
        true => lines.into_iter().map(str::to_owned).collect(),
        false => vec![block],
    }
}

/// The command with few repetitions, where it says nothing of them; plans of studies and what is thorough, which take a quarter of an hour and more,
/// are laid out alone.
fn quick(line: &str) -> String {
    let mut words = line.split(' ').skip(1);
    let is_measured = matches!(
        words.next(),
        Some("assess" | "accept" | "contend" | "probe" | "stage" | "tune")
    );
    let says = [
        "--quick",
        "--launches",
        "--dry-run",
        "--print-plan",
        "--resume",
        "--samples",
    ];
    if !is_measured || says.iter().any(|word| line.contains(word)) {
        return line.to_owned();
    }
    let end = [" #", " >", " |"]
        .iter()
        .filter_map(|mark| line.find(mark))
        .min();
    let (command, rest) = line.split_at(end.unwrap_or(line.len()));
    let is_long = line.contains("plans/papers/") || line.contains("--thorough");
    let option = match (is_long, line.contains(".toml")) {
        (true, _) => " --dry-run",
        (_, true) if line.starts_with("sonde assess") => "",
        _ => " --quick",
    };
    format!("{}{option}{rest}", command.trim_end())
}

/// What the commands of the pages take for granted: the plans, and runs of the names that they have.
fn furnish(stage: &Stage) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::os::unix::fs::symlink(root.join("plans"), stage.folder.join("plans")).unwrap();
    let prepare = "sonde probe latency --network wire --hosts 2 --path tcp --size 8 --quick --print-plan >nightly.toml
        for name in before after nightly nightly; do sonde assess nightly.toml --name $name; done";
    let said = shell(stage, prepare).limit(120).output();
    assert_eq!(said.code, 0, "{said}");
}

/// Runs the commands of a page; those that end as they should not are `wrong`.
fn walk_page(stage: &Stage, page: &str, text: &str, wrong: &mut Vec<String>) {
    // Two ranks of MPICH that wait for each other on two CPUs beside the network wait for the kernel.
    let has_three_cpus = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 2);
    for block in read(text) {
        if let Some(name) = block.file {
            std::fs::write(stage.folder.join(name), &block.text).unwrap();
        }
        if block.language != "sh" || block.file.is_some() {
            continue;
        }
        for line in typed(&block.text) {
            if ELSEWHERE.iter().any(|words| line.contains(words))
                || line.contains("NPmpich2") && !has_three_cpus
            {
                continue;
            }
            let (mut line, began) = (quick(&line), std::time::Instant::now());
            // What serves goes on until it is told to end.
            if line.starts_with("sonde report serve") {
                let (command, _) = line.split_once(" #").unwrap_or((&line, ""));
                line = format!("timeout -s INT 3 {command} || [ $? = 124 ]");
            }
            let said = shell(stage, &line).limit(900).output();
            println!(
                "{page}: {} after {} s: {line}",
                said.code,
                began.elapsed().as_secs()
            );
            if !matches!(said.code, 0 | 1 | 3) {
                wrong.push(format!("{page}: {line}\n{said}"));
            }
        }
    }
}

#[test]
fn the_commands_of_the_other_pages_run() {
    if !is_long() {
        println!("skipped: the commands of the reference pages run in the long tier");
        return;
    }
    let Some(case) = attachments().first().copied() else {
        return;
    };
    // The pages that are asked for, else all; two lanes take them in turn, since most of their time is waited for.
    let only = std::env::var("SONDE_PAGES").ok();
    let is_asked = |page: &str| {
        only.as_ref()
            .is_none_or(|only| only.split(',').any(|one| one == page))
    };
    let pages = REFERENCE.iter().filter(|(page, _)| is_asked(page));
    let pages = Mutex::new(pages);
    let next = || pages.lock().unwrap().next();
    let lane = || {
        let stage = Stage::new(Case::own(case.attachment));
        furnish(&stage);
        let mut wrong = Vec::new();
        while let Some((page, text)) = next() {
            walk_page(&stage, page, text, &mut wrong);
        }
        wrong
    };
    let wrong = std::thread::scope(|scope| {
        let lanes = [scope.spawn(lane), scope.spawn(lane)];
        let lanes = lanes.map(|lane| lane.join().unwrap());
        lanes.concat()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
