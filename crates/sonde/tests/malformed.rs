//! Malformed input in every form of file that a person writes: some hundred damages of files that are right.
//!
//! Model:   each file is first taken as it is; then each of its lines is left out, doubled, cut, or gets a value of another kind or
//!          size, and the whole is cut, made binary, nested or made too long. What comes of it is exit 0 or a refusal: the exit code of
//!          bad input, one message that names the file, of bounded length and without control characters; never a panic, nor more
//!          than [`MEMORY_BYTES`] and [`SECONDS`].
//! Checked: the count of cases, and that most of them are refused.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const MEMORY_BYTES: u64 = 1 << 30;
const SECONDS: u64 = 20;
const MESSAGE_BYTES: usize = 2_000;
/// What bad input may end with: refused, or nothing to be measured.
const REFUSED: [i32; 2] = [64, 2];

/// A form of file: its name, a right one, and the words that read `FILE` and start nothing.
struct Form {
    name: &'static str,
    right: &'static str,
    words: &'static [&'static str],
}

const FORMS: [Form; 5] = [
    Form {
        name: "plan.toml",
        right: "[testbed]\nkind = \"lab\"\nhosts = 4\n[profile]\nname = \"modern\"\n[[network]]\nname = \"atm-oc3c:vc=svc\"\n\
            [[load]]\nlevel = \"0.5\"\n[[probe]]\nkind = \"latency\"\npath = [\"tcp\", \"udp\"]\nwait = [\"block\"]\n\
            size = [\"1\", \"mtu\", \"64..1KiB\"]\nbudget = \"50ms\"\nsamples = 3000\n[[probe]]\nkind = \"throughput\"\n\
            path = [\"udp\"]\nlost = \"0.1%\"\n[probe.with]\nrate = [\"10Mbit\"]\n[repeat]\nlaunches = 6\nmax = 12\n\
            budget = \"10min\"\nseed = 1\n[[require]]\nquantity = \"throughput_bps\"\np50_min = 130e6\n",
        words: &["assess", "FILE", "--dry-run"],
    },
    Form {
        name: "network.toml",
        right: "name = \"two\"\nsummary = \"two\"\ntechnology = \"wan\"\ntopology = \"switches\"\nmtu = 1500\n[line]\nrate = \"100Mbit\"\n\
            framing = \"ethernet\"\nlength_m = 20\n[switch]\nforwarding = \"store-and-forward\"\nlatency = \"10us\"\n\
            buffer = \"512KiB\"\n[fabric]\nswitches = 2\n[[trunk]]\nbetween = [0, 1]\nrate = \"44.736Mbit\"\ndistance_km = 100\n\
            [[fault]]\ncommand = \"link h1 down\"\nat = \"1s\"\nlasts = \"2s\"\n[cite]\nmtu = \"IEEE 802.3-2022\"\n",
        words: &["assess", "--network", "FILE", "--dry-run"],
    },
    Form {
        name: "cluster.toml",
        right: "[[site]]\nname = \"a\"\nhosts = [\"a1\", \"a2\"]\nslots = 4\nrate = \"1Gbit\"\nlatency = \"50us\"\n[[site]]\n\
            name = \"b\"\nhosts = [\"b1\", \"b2\"]\nrate = \"1Gbit\"\nlatency = \"50us\"\n[[trunk]]\nbetween = [\"a\", \"b\"]\n\
            rate = \"2Mbit\"\nlatency = \"20ms\"\n[within]\nrate = \"8Gbit\"\nlatency = \"2us\"\n",
        words: &[
            "place",
            "--pattern",
            "ring",
            "--ranks",
            "4",
            "--cluster",
            "FILE",
        ],
    },
    Form {
        name: "matrix.json",
        right: "{\"schema\": \"sonde-matrix/1\",\n\"ranks\": 3,\n\"time_ns\": 5,\n\"bytes\": [\n[0, 8, 0],\n[8, 0, 9],\n[0, 1, 0]\n],\n\
            \"messages\": [\n[0, 1, 0],\n[1, 0, 1],\n[0, 1, 0]\n]\n}\n",
        words: &["place", "--network", "ethernet-1g", "--matrix", "FILE"],
    },
    Form {
        name: "hosts",
        right: "# ours\na1\nb[01-03]\nuser@c\n",
        words: &["assess", "--testbed", "hosts:FILE", "--dry-run"],
    },
];

/// Values in place of a right one: of another kind, out of range, hostile to a terminal, or long.
fn values() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        "\"\"",
        "0",
        "-1",
        "1e400",
        "nan",
        "18446744073709551615",
        "18446744073709551616",
        "true",
        "[]",
        "{}",
        "[0, 1, 2, 3]",
        "\"\\u001b[31mred\\u0007\"",
        "\"\u{1b}]0;x\u{7}\"",
        "\"a\\nb\"",
        "\"../../etc/passwd\"",
        "\"$(id)\"",
        "\"-oProxyCommand=id\"",
        "1970-01-01",
        "\"99999999999999999999Gbit\"",
        "\"1e99s\"",
        "'",
    ]
    .map(String::from)
    .to_vec();
    all.push(format!("\"{}\"", "x".repeat(100_000)));
    all
}

/// All damages of a right text, each with what it is.
fn damages(right: &str) -> Vec<(String, Vec<u8>)> {
    let lines: Vec<&str> = right.lines().collect();
    let with = |at: usize, line: &[&str]| {
        let all = [&lines[..at], line, &lines[at + 1..]].concat();
        all.join("\n").into_bytes()
    };
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        all.push((format!("line {at} left out"), with(at, &[])));
        all.push((format!("line {at} doubled"), with(at, &[line, line])));
        all.push((
            format!("line {at} cut"),
            with(at, &[&line[..line.len() / 2]]),
        ));
        let split = line.find([':', '=']).map(|colon| line.split_at(colon + 1));
        let (key, _) = split.unwrap_or(("", line));
        // Each value at some line, each line with some values.
        for (number, value) in values().iter().enumerate() {
            if (number + at) % 4 == 0 {
                let text = format!("{key} {value}");
                all.push((format!("line {at} with value {number}"), with(at, &[&text])));
            }
        }
    }
    let bytes = right.as_bytes();
    let mut binary = bytes.to_vec();
    binary[right.len() / 2] = 0xff;
    let wholes: [(&str, Vec<u8>); 9] = [
        ("nothing", Vec::new()),
        ("half of it", bytes[..bytes.len() / 2].to_vec()),
        ("not UTF-8", binary),
        ("a NUL in front", [b"\0", bytes].concat()),
        ("a byte order mark", [b"\xef\xbb\xbf", bytes].concat()),
        (
            "random bytes",
            (0..4_096_u32)
                .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect(),
        ),
        ("nested", [&b"x = "[..], &b"[".repeat(100_000)].concat()),
        ("nested JSON", b"[".repeat(200_000)),
        ("one long line", b"y".repeat(3 << 20)),
    ];
    all.extend(wholes.map(|(what, text)| (what.to_owned(), text)));
    all
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("malformed");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// What the command says to a file, within bounds of memory and time.
fn called(form: &Form, file: &str) -> (Output, Duration) {
    let program = std::env::var_os("SONDE_BIN")
        .unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_sonde")));
    let words = form.words.iter().map(|word| word.replace("FILE", file));
    let began = Instant::now();
    let output = Command::new("prlimit")
        .arg(format!("--as={MEMORY_BYTES}"))
        .arg(format!("--cpu={SECONDS}"))
        .arg(program)
        .args(words)
        .current_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join("malformed"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output, began.elapsed())
}

/// What is wrong with what came of a damaged file, if anything is.
fn trouble(output: &Output, took: Duration, file: &str) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let head: String = said.chars().take(300).collect();
    let hostile = said.chars().find(|one| one.is_control() && *one != '\n');
    let code = output.status.code();
    if said.contains("panicked") || code.is_none_or(|code| code != 0 && !REFUSED.contains(&code)) {
        return Some(format!("ended with {:?}: {head}", output.status));
    }
    if took > Duration::from_secs(SECONDS) {
        return Some(format!("took {took:?}"));
    }
    if let Some(hostile) = hostile {
        return Some(format!("{hostile:?} reaches the terminal: {head:?}"));
    }
    if code == Some(0) {
        return None;
    }
    if said.len() > MESSAGE_BYTES {
        return Some(format!("{} bytes are said: {head}", said.len()));
    }
    (!said.starts_with("sonde: ") || !said.contains(file))
        .then(|| format!("the file is not named: {head}"))
}

#[test]
fn malformed_files_are_refused_by_name() {
    let folder = folder();
    let (mut cases, mut refused, mut troubles) = (0, 0, String::new());
    for form in &FORMS {
        let file = format!("./{}", form.name);
        fs::write(folder.join(form.name), form.right).unwrap();
        let (output, _) = called(form, &file);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{} as it is: {said}",
            form.name
        );
        for (what, text) in damages(form.right) {
            fs::write(folder.join(form.name), text).unwrap();
            let (output, took) = called(form, &file);
            cases += 1;
            refused += usize::from(output.status.code() != Some(0));
            if let Some(trouble) = trouble(&output, took, form.name) {
                writeln!(troubles, "{}, {what}: {trouble}", form.name).unwrap();
            }
        }
        for device in ["/dev/zero", "/dev/null", "/", "./nowhere"] {
            let (output, took) = called(form, device);
            cases += 1;
            if let Some(trouble) = trouble(&output, took, device) {
                writeln!(troubles, "{} is {device}: {trouble}", form.name).unwrap();
            }
        }
    }
    assert!(troubles.is_empty(), "of {cases}:\n{troubles}");
    assert!(
        cases >= 400 && refused * 2 > cases,
        "{refused} of {cases} were refused"
    );
    println!("{cases} files, {refused} of them refused");
}
