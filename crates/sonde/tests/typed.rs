//! A transcript of what people typed at the command, and what it says: nothing is measured.
//!
//! Model:   each row is a command line, the exit code, and a part of what it says on either stream. Lines that would measure end with
//!          `--dry-run` or are refused for another reason that only shows once the rest was read.
//! Checked: the rows themselves; no row may show a text of the parser's own language.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Words, exit code, and what must be said.
type Row = (&'static str, i32, &'static str);

/// First words that are none.
const WORDS: [Row; 14] = [
    ("latency", 64, "write `sonde probe latency`"),
    ("bandwidth", 64, "write `sonde probe throughput`"),
    ("ping h2", 64, "`sonde lab run ping h2`"),
    ("list", 64, "write `sonde lab list` or `sonde report list`"),
    ("networks", 64, "write `sonde lab list`"),
    ("run -- ping h2", 64, "write `sonde lab run`"),
    ("Probe latency", 64, "write `sonde probe`"),
    ("allreduce", 64, "write `sonde probe collective allreduce`"),
    ("", 64, "Usage: sonde <COMMAND>"),
    ("assess help", 0, "Usage: sonde assess"),
    ("probe latency help", 64, "`--help`"),
    ("lab latency", 64, "write `sonde probe latency`"),
    (
        "lab run --network nowhere ping -c 1 h2",
        64,
        "there is no network `nowhere`",
    ),
    (
        "lab run --network nowhere -- ping h2",
        64,
        "there is no network `nowhere`",
    ),
];

/// Names that other tools give, or another case.
const NAMES: [Row; 36] = [
    ("probe bw --dry-run", 0, "throughput"),
    ("probe bandwidth --dry-run", 0, "throughput"),
    ("probe lat --dry-run", 0, "latency"),
    ("probe bibw --dry-run", 64, "unrecognized subcommand"),
    (
        "probe latency --network Ethernet-1G --dry-run",
        0,
        "ethernet-1g ",
    ),
    (
        "probe latency --network fddi,atm-oc3c --dry-run",
        0,
        "atm-oc3c",
    ),
    ("probe latency --path UDP --dry-run", 0, "udp"),
    ("probe latency --path tcp,udp --dry-run", 0, "udp"),
    ("npb CG --dry-run", 0, "cg S on 4"),
    ("npb cg --class s --dry-run", 0, "cg S on 4"),
    ("npb cg --ranks 3 --dry-run", 64, "take 2"),
    ("probe collective Allreduce --dry-run", 0, "collective"),
    ("probe collective bcast --dry-run", 0, "collective"),
    ("probe collective alltoall --dry-run", 0, "collective"),
    ("probe collective all-to-all --dry-run", 0, "collective"),
    (
        "probe collective sum --dry-run",
        64,
        "is not a collective call",
    ),
    ("probe pattern alltoall --dry-run", 0, "flows at once: 12"),
    ("probe pattern all-to-all --dry-run", 0, "flows at once: 12"),
    (
        "probe pattern sideways --dry-run",
        64,
        "all-pairs or incast",
    ),
    ("probe latency --path mpi --dry-run", 0, ":tcp"),
    ("probe latency --path openmpi --dry-run", 0, "openmpi:tcp"),
    ("probe latency --path pvm --dry-run", 0, "pvm:default"),
    ("probe latency --path rdma --dry-run", 64, "perftest"),
    ("probe latency --path ofi:verbs --dry-run", 64, "perftest"),
    ("probe latency --path nccl --dry-run", 64, "nccl-tests"),
    ("lab list atm-oc3c", 0, "atm-oc3c"),
    ("lab show fddi", 0, "fddi"),
    (
        "lab check nowhere --dry-run",
        64,
        "there is no network `nowhere`",
    ),
    ("lab list 1g", 64, "of 1Gbit there are ethernet-1g"),
    ("lab list gigabit", 64, "there are ethernet-1g"),
    ("lab list 10ms", 64, "`wire:delay=10ms`"),
    ("lab list lo", 64, "--testbed hosts:a,b --network eth=lo"),
    (
        "lab list eth=eth0",
        64,
        "--testbed hosts:a,b --network eth=eth0",
    ),
    ("lab list wire,fddi", 0, "fddi"),
    (
        "lab list link:rate=100Mbit:delay=10ms:loss=1%",
        0,
        "link:rate=100Mbit:delay=10ms:loss=1%",
    ),
    ("lab list link:bandwidth=20mbit:latency=5ms", 0, " 20.00 "),
];

/// Quantities with their units.
const UNITS: [Row; 34] = [
    ("probe latency --size 1k --dry-run", 0, " 1024 "),
    ("probe latency --size 1K --dry-run", 0, " 1024 "),
    ("probe latency --size 1KB --dry-run", 0, " 1024 "),
    ("probe latency --size 1kB --dry-run", 0, " 1024 "),
    ("probe latency --size 1M --dry-run", 0, " 1048576 "),
    ("probe latency --size 64k --dry-run", 0, " 65536 "),
    ("probe latency --size 4:8 --dry-run", 0, " 4 8 "),
    ("probe latency --size 4-8 --dry-run", 0, " 4 8 "),
    ("probe latency --size 1500B --dry-run", 0, " 1500 "),
    ("probe latency --size 1MiB --dry-run", 0, " 1048576 "),
    (
        "probe latency --size some --dry-run",
        64,
        "is not the size of a message",
    ),
    ("lab list ethernet-1g:rate=10G", 0, "rate=10Gbit"),
    ("lab list ethernet-1g:rate=100mbit", 0, "rate=100Mbit"),
    ("lab list ethernet-1g:rate=1Gbit/s", 0, "rate=1Gbit "),
    ("lab list ethernet-1g:rate=12.5MB", 0, "rate=100Mbit"),
    ("lab list ethernet-1g:buffer=64k", 0, "buffer=64KiB"),
    ("lab list wire:delay=10", 64, "10ms or 10s"),
    ("lab list wire:latency=10ms", 0, "wire:latency=10ms"),
    ("lab list wire:loss=1", 64, "1% or 100%"),
    ("lab list wire:loss=1%", 0, "wire:loss=1%"),
    (
        "lab list ethernet-1g:jitter=often",
        64,
        "`often` is not a time",
    ),
    ("load --of 1G --rho 60% --for 1ms", 64, "100ms to a day"),
    ("load --of 1G --rho 60 --for 1ms", 64, "60% or 6000%"),
    ("probe latency --budget 5 --dry-run", 0, "latency"),
    ("probe latency --budget 1m --dry-run", 0, "latency"),
    (
        "probe latency --budget 5x --dry-run",
        64,
        "a number alone is seconds",
    ),
    ("probe rate --rate 10k --dry-run", 0, "rate"),
    ("probe rate --rate many --dry-run", 64, "as in 1000 or 10k"),
    ("probe latency --precision 5% --dry-run", 0, "latency"),
    ("probe latency --precision 50 --dry-run", 64, "50% or 5%"),
    ("probe latency --precision 0 --dry-run", 0, "latency"),
    ("report compare a --threshold 50", 64, "50% or 5%"),
    ("report compare a --detect 100", 64, "100% or 10%"),
    (
        "place --pattern ring --ranks many --network wire",
        64,
        "it is a whole number",
    ),
];

/// Options of other tools, short ones, and hosts.
const OPTIONS: [Row; 51] = [
    ("probe throughput --duration 5 --dry-run", 0, "throughput"),
    ("probe throughput --time 5 --dry-run", 0, "throughput"),
    ("probe throughput -t 5 --dry-run", 0, "throughput"),
    ("probe throughput -P 4 --dry-run", 0, "throughput"),
    ("probe throughput --streams 4 --dry-run", 0, "throughput"),
    ("probe throughput -u --dry-run", 64, "`--path udp`"),
    ("probe throughput --udp --dry-run", 64, "`--path udp`"),
    (
        "probe throughput -c h2 --dry-run",
        64,
        "`--testbed hosts:a,b`",
    ),
    ("probe latency -n 3 --dry-run", 0, " 3 "),
    ("probe latency -q --dry-run", 0, " 2 "),
    (
        "probe latency -v --dry-run",
        64,
        "`sonde report show --table`",
    ),
    ("probe latency -o elsewhere --dry-run", 0, "latency"),
    ("probe latency --output elsewhere --dry-run", 0, "latency"),
    ("probe latency -p udp --dry-run", 0, "udp"),
    ("probe latency --testbed a,b --dry-run", 0, "latency"),
    ("probe latency --testbed localhost --dry-run", 0, "loopback"),
    ("probe latency --testbed ssh:a,b --dry-run", 0, "latency"),
    (
        "probe latency --testbed nowhere --dry-run",
        64,
        "name two hosts or more",
    ),
    (
        "assess --testbed hosts:./nope --dry-run",
        64,
        "there is no such file",
    ),
    ("assess hosts:a,b --dry-run", 64, "`--testbed hosts:a,b`"),
    ("assess fddi --dry-run", 64, "`--network fddi`"),
    ("assess --hosts a,b --dry-run", 64, "`--testbed hosts:a,b`"),
    ("assess --hosts 257 --dry-run", 64, "2 to 256"),
    (
        "assess --hosts 8 --testbed local --dry-run",
        64,
        "does not take `--hosts`",
    ),
    (
        "assess --hosts 8 --testbed hosts:a,b --dry-run",
        64,
        "does not take `--hosts`",
    ),
    (
        "probe latency --testbed local --network fddi --dry-run",
        64,
        "leave `--network` out",
    ),
    (
        "probe latency --testbed local --load 0.5 --dry-run",
        64,
        "leave `--load` out",
    ),
    ("report show -1", 64, "is `latest~1`"),
    ("report export --jsn", 64, "'--json'"),
    ("probe latency --help", 0, "Exit codes: 0 done"),
    ("probe latency -h", 0, "`--help` shows all options"),
    ("assess --html x --dry-run", 64, "write x.html"),
    ("assess --html x.html --open --dry-run", 0, "latency"),
    (
        "assess --csv --dry-run",
        0,
        "network,probe,mode,program,path",
    ),
    ("assess --csv --json --dry-run", 64, "cannot be used with"),
    ("assess --to x.html --dry-run", 64, "`--html FILE`"),
    ("assess --to x.csv --json --dry-run", 64, "another form"),
    ("assess --name before --dry-run", 0, "latency"),
    ("assess --tag before --dry-run", 0, "latency"),
    ("assess --name latest --dry-run", 64, "as in before"),
    ("report html --open", 2, "there is no store"),
    ("report serve", 2, "there is no store"),
    (
        "report serve --listen 0.0.0.0:80",
        64,
        "`ssh -L 80:127.0.0.1:80 HOST`",
    ),
    ("report compare a --html b", 64, "write b.html"),
    (
        "lab list wire:rate=100Mbit",
        64,
        "link:rate=100Mbit:delay=10ms",
    ),
    ("load --rho 0.5 --dry-run", 0, "h1>h2 "),
    (
        "load --rho 0.5 --flow h1>h9 --hosts 3 --dry-run",
        64,
        "the hosts are h1, h2, h3",
    ),
    ("tune --dry-run", 0, "throughput stream tcp"),
    ("tune --hosts 3 --dry-run", 64, "leave `--hosts` out"),
    ("tune --launches 2 --dry-run", 64, "`--launches 4`"),
    (
        "tune --with rcvbuf=64k,128k --dry-run",
        64,
        "`sonde probe sweep` tries several",
    ),
];

/// Runs that are stored; the store is one of two runs or more.
const RUNS: [Row; 14] = [
    ("report show latest", 0, ""),
    ("report show latest~1", 0, ""),
    ("report show latest~99", 2, "there is no run latest~99"),
    ("report show 2", 2, "write more of the id"),
    ("report show nosuch", 2, "there is no run nosuch"),
    (
        "report compare latest",
        3,
        "Too few repetitions to say what changed",
    ),
    ("report compare latest --json", 3, "\"sentence\": "),
    ("report list", 0, "began, UTC took state command"),
    ("report list --json", 0, "\"command\": \"report list\""),
    ("report list -n 1 --csv", 0, "run,name,began_unix_ns"),
    ("report list --name nosuch", 0, "no run of the name nosuch"),
    (
        "report export",
        64,
        "`--csv` for the rows, `--json` for everything, or `--open-metrics`",
    ),
    ("report export --csv --to rows.csv", 0, ""),
    ("report export --to rows.csv", 0, ""),
];

/// What the command says to these words in this folder, and its exit code.
fn said(words: &str, folder: &Path) -> (i32, String) {
    let program = std::env::var_os("SONDE_BIN")
        .unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_sonde")));
    let output = Command::new(program)
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    (output.status.code().unwrap_or(-1), text)
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("typed-{name}"));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// All rows that are not as they are written, each with what was said.
fn wrong(rows: &[Row], folder: &Path) -> Vec<String> {
    let parsers = [
        "invalid digit",
        "invalid float",
        "cannot parse",
        "FromStr",
        "os error 2)",
    ];
    let of = |(words, code, part): &Row| {
        let (found, text) = said(words, folder);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // A table's columns are as wide as they have to be: words of a row stand in a text with single spaces.
        let padded = format!(" {flat} ");
        let is_right = found == *code
            && padded.contains(part)
            && !parsers.iter().any(|parser| text.contains(parser));
        let short: String = flat.chars().take(300).collect();
        (!is_right).then(|| format!("sonde {words}: {found}, not {code} with `{part}`: {short}"))
    };
    rows.iter().filter_map(of).collect()
}

#[test]
fn what_people_type_is_understood_or_answered() {
    let folder = folder("lines");
    let all = [&WORDS[..], &NAMES, &UNITS, &OPTIONS];
    let wrong: Vec<String> = all.iter().flat_map(|rows| wrong(rows, &folder)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a shell is offered at the end of a line.
fn offered(line: &str, folder: &Path) -> Vec<String> {
    let program = std::env::var_os("SONDE_BIN")
        .unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_sonde")));
    let words: Vec<&str> = line.split(' ').collect();
    let output = Command::new(program)
        .arg("--")
        .args(&words)
        .env("SONDE_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .env("_CLAP_IFS", "\n")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn values_are_completed() {
    let folder = folder("completion");
    for (line, wanted) in [
        ("sonde pro", "probe"),
        ("sonde probe lat", "latency"),
        ("sonde probe latency --netw", "--network"),
        ("sonde probe latency --network ethernet-1g", "ethernet-1g"),
        ("sonde probe latency --network fddi,wi", "fddi,wire"),
        ("sonde lab list sat", "satellite"),
        ("sonde lab run --network lin", "link"),
        ("sonde probe latency --path openmpi:t", "openmpi:tcp"),
        ("sonde npb c", "cg"),
        ("sonde npb cg,l", "cg,lu"),
        ("sonde probe collective allr", "allreduce"),
        ("sonde probe latency --testbed lo", "local"),
    ] {
        let found = offered(line, &folder);
        assert!(found.iter().any(|one| one == wanted), "{line}: {found:?}");
    }
    assert_eq!(
        offered("sonde report show lat", &folder),
        Vec::<String>::new(),
        "there is no store"
    );
    assert!(
        !offered("sonde a", &folder).contains(&"agent".to_owned()),
        "it is hidden"
    );
}

#[test]
fn runs_are_named_as_people_name_them() {
    if Command::new("xz").arg("--version").output().is_err() {
        println!("skipped: xz is not installed, which unpacks the corpus");
        return;
    }
    let folder = folder("runs");
    let empty = wrong(&[("report show latest", 2, "there is no store")], &folder);
    assert!(empty.is_empty(), "{}", empty.join("\n"));
    let packed = "../../corpus/runs/compared/sonde.db.xz";
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join(packed);
    let xz = Command::new("xz").arg("-dc").arg(packed).output().unwrap();
    assert!(xz.status.success(), "{xz:?}");
    fs::create_dir_all(folder.join("sonde-runs")).unwrap();
    fs::write(folder.join("sonde-runs/sonde.db"), xz.stdout).unwrap();
    let list = said("report list --csv", &folder).1;
    let ids: Vec<&str> = list
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    assert!(
        ids.len() > 1 && ids.is_sorted_by(|one, other| one >= other),
        "the newest first: {ids:?}"
    );
    let found = offered("sonde report show ", &folder);
    assert!(
        ids.iter().all(|id| found.contains(&(*id).to_owned())),
        "{found:?}"
    );
    assert!(found.contains(&"latest".to_owned()), "{found:?}");
    let wrong = wrong(&RUNS, &folder);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
