//! `--testbed hosts:` against real OpenSSH servers: three hosts of a lab, reached from a fourth with an ordinary ssh config.
//!
//! Model:   h1 is the user's machine; h2 to h4 run Debian's sshd, set up by `crates/fleet/tests/sshd.sh`. In the middle of a
//!          run the server of h3 is killed with everything of sonde's there. Needs root, whose ssh reads its config from a
//!          home that only h1 sees. For ranks of libraries the hosts see nothing of what lies beside the command, as other
//!          machines would not.

use crate::lab;
use crate::lab::Stage;
use serde_json::Value;

const SCRIPT: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys runs=DIR/runs
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3 h4
cp "$keys/ssh_config" /root/.ssh/config
serve() { sonde lab exec --detach --root "$1" -- sh "$ssh_setup" serve "$keys" >/dev/null 2>&1; }
answers() { until ssh -o BatchMode=yes "$1" true 2>/dev/null; do sleep 0.1; done; }
for host in h2 h3 h4; do serve $host; answers $host; done

sonde assess DIR/plan.toml --json --out "$runs" >DIR/first.json 2>DIR/first.err &
run=$!
# Not while it begins: a host that is lost then ends the run. Not by a clock either: a busy machine begins later.
until sonde report export --json --out "$runs" 2>/dev/null | grep -q '"took_ns"'; do sleep 0.1; done
sonde lab exec --root h3 -- pkill -9 -f 'sshd|sonde|/proc/self/fd' || true
code=0; wait $run || code=$?
echo "first ended with $code"

serve h3; answers h3
code=0; sonde assess --resume --json --out "$runs" >DIR/second.json 2>DIR/second.err || code=$?
echo "second ended with $code"

sleep 0.5
for host in h2 h3 h4; do
    sonde lab exec --root $host -- ps -eo args | grep -E ' agent$|--sonde-worker' | sed "s/^/left on $host: /" || true
    sonde lab exec --root $host -- ls -A /tmp /dev/shm /run/user 2>/dev/null | grep -i sonde | sed "s/^/left on $host: /" || true
done
"#;

const PLAN: &str = r#"
[testbed]
kind = "hosts"
names = "h[2-4]"
[[probe]]
kind = "startup"
path = ["tcp", "udp"]
size = ["8"]
[[probe]]
kind = "latency"
path = ["tcp", "udp"]
size = ["1", "mtu"]
budget = "100ms"
[[probe]]
kind = "throughput"
path = ["tcp"]
size = ["64KiB"]
[repeat]
launches = 6
"#;

fn json(stage: &Stage, name: &str) -> Value {
    let text = std::fs::read_to_string(stage.path(name)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| {
        let err =
            std::fs::read_to_string(stage.path(&name.replace("json", "err"))).unwrap_or_default();
        panic!("{name}: {e}: {text}\n{err}")
    })
}

#[test]
fn a_host_that_is_killed_is_named_the_rest_measured_and_the_gap_filled() {
    let Some(stage) = Stage::of_root(&["sshd", "ssh", "pkill", "ps"]) else {
        return;
    };
    std::fs::write(stage.path("plan.toml"), PLAN).unwrap();
    let script = stage.with_sshd(SCRIPT);
    let outcome = stage
        .run(
            &["--hosts", "4", "--network", "ethernet-1g", "--root"],
            &["sh", "-c", &script],
        )
        .limit(240)
        .output();
    let first_err = std::fs::read_to_string(stage.path("first.err")).unwrap_or_default();
    assert_eq!(outcome.code, 0, "{outcome}{first_err}");
    assert!(
        outcome.out.contains("first ended with 1\n"),
        "{outcome}{first_err}"
    );
    let second_err = std::fs::read_to_string(stage.path("second.err")).unwrap_or_default();
    assert!(
        outcome.out.contains("second ended with 0\n"),
        "{outcome}{second_err}"
    );
    assert!(!outcome.out.contains("left on"), "{outcome}");
    assert!(first_err.contains("h3"), "the host is named: {first_err}");
    let (first, second) = (json(&stage, "first.json"), json(&stage, "second.json"));
    assert_eq!(first["run"], second["run"]);
    let launches = |document: &Value, all: bool| {
        let rows = document["results"].as_array().unwrap();
        let main = rows.iter().filter(|row| {
            row["step"].is_null()
                && ["startup_ns", "latency_ns", "throughput_bps"]
                    .contains(&row["quantity"].as_str().unwrap())
        });
        let counts: Vec<u64> = main.map(|row| row["launches"].as_u64().unwrap()).collect();
        assert!(!counts.is_empty());
        if all {
            counts.iter().all(|count| *count == 6)
        } else {
            counts.iter().all(|count| *count >= 1)
        }
    };
    assert!(
        launches(&first, false) && !launches(&first, true),
        "the others were measured: {first:#}"
    );
    assert!(launches(&second, true), "the gap is filled: {second:#}");
    for row in second["results"].as_array().unwrap() {
        assert_eq!(
            (&row["testbed"], &row["network"]),
            (&"hosts".into(), &"default".into())
        );
    }
}

/// What befalls h3, each time with everything served anew: while it measures, or before.
const CHAOS: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3 h4
cp "$keys/ssh_config" /root/.ssh/config
printf '    ServerAliveInterval 2\n    ServerAliveCountMax 3\n' >>/root/.ssh/config
on() { host=$1; shift; sonde lab exec --root "$host" -- "$@"; }
serve() { host=$1; shift; sonde lab exec --detach --root "$host" -- sh "$ssh_setup" serve "$keys" "$@" >/dev/null 2>&1; }
answers() { until ssh -o BatchMode=yes "$1" true 2>/dev/null; do sleep 0.1; done; }
clear() { on h3 pkill -9 -f 'sshd|sonde|/proc/self/fd' || true; on h3 sh -c 'rm -f /tmp/full /dev/shm/full'; }
for host in h2 h4; do serve $host; answers $host; done
assess() { sonde assess DIR/plan.toml --json --out DIR/runs-$1 >DIR/$1.json 2>DIR/$1.err; }
pattern() {
    sonde probe pattern natural-ring --testbed 'hosts:h[2-4]' --launches 2 --window 300ms --lead 100ms --json --out DIR/runs-$1 \
        >DIR/$1.json 2>DIR/$1.err
}
ended() { # NAME CODE BEGIN
    kept=$(sonde report export --json --out DIR/runs-$1 2>/dev/null | grep -c '"took_ns"' || true)
    echo "$1 ended with $2 after $(($(date +%s) - $3)) s, kept $kept"
}
# NAME and what is done to h3 when the first repetition is kept.
meanwhile() {
    name=$1; shift
    serve h3; answers h3
    assess $name & run=$!
    until sonde report export --json --out DIR/runs-$name 2>/dev/null | grep -q '"took_ns"'; do sleep 0.1; done
    begin=$(date +%s)
    "$@" || true
    code=0; wait $run || code=$?
    ended $name $code $begin
    on h3 ip link set eth0 up
    clear
}
# NAME, the command, and how the server of h3 is started.
before() {
    name=$1 command=$2; shift 2
    serve h3 "$@"
    sleep 1
    begin=$(date +%s) code=0
    $command $name || code=$?
    ended $name $code $begin
    clear
}
for turn in TURNS; do
    meanwhile killed-$turn on h3 pkill -9 -f 'sshd|sonde|/proc/self/fd'
    meanwhile frozen-$turn on h3 pkill -STOP -f ' agen[t]$|/proc/self/f[d]'
    meanwhile cut-$turn on h3 ip link set eth0 down
    on h3 sh -c 'for folder in /tmp /dev/shm; do cat /dev/zero >$folder/full 2>/dev/null || true; done'
    before full-$turn assess -o "SetEnv=HOME=/nowhere"
    before nonsense-$turn assess -o "ForceCommand=sh DIR/nonsense.sh"
    before clock-$turn pattern -o "ForceCommand=sh DIR/clock.sh"
    before drift-$turn pattern -o "ForceCommand=sh DIR/drift.sh"
done
sleep 1
for host in h2 h4; do
    on $host ps -eo args | grep -E ' agent$|--sonde-worker' | sed "s/^/left on $host: /" || true
done
"#;

/// It greets as an agent does; what follows is noise.
const NONSENSE: &str = "printf '\\nsonde-host/1 have Linux x86_64 - - - -\\nsonde-agent/1\\n'; exec cat /dev/urandom\n";

/// An agent of which each answer about its clock is changed on its way.
const CLOCK: &str = r#"sh -c "$SSH_ORIGINAL_COMMAND" | perl -e '
while (sysread(STDIN, my $bytes, 65536)) {
    $bytes =~ s/("monotonic_ns":)(\d)/$1 . (($2 + 4) % 10 || 9)/ge;
    syswrite(STDOUT, $bytes);
}'
"#;

/// An agent whose clock, by its answers, goes too fast by a twentieth.
const DRIFT: &str = r#"sh -c "$SSH_ORIGINAL_COMMAND" | perl -e '
while (sysread(STDIN, my $bytes, 65536)) {
    $bytes =~ s/("monotonic_ns":)(\d+)/$begin ||= $2; $1 . int($2 + ($2 - $begin) \/ 20)/ge;
    syswrite(STDOUT, $bytes);
}'
"#;

/// A host that is killed, frozen, cut off, without room, or answers nonsense or false times, costs its own results alone, in time.
#[test]
fn whatever_befalls_a_host_is_named_in_time_and_keeps_the_rest() {
    const SECONDS: u64 = 90;
    if !lab::is_long() {
        println!("skipped: minutes; SONDE_TESTS=long has it");
        return;
    }
    let Some(stage) = Stage::of_root(&["sshd", "ssh", "pkill", "ps", "perl"]) else {
        return;
    };
    for (name, text) in [
        ("plan.toml", PLAN),
        ("nonsense.sh", NONSENSE),
        ("clock.sh", CLOCK),
        ("drift.sh", DRIFT),
    ] {
        std::fs::write(stage.path(name), text).unwrap();
    }
    let turns = lab::number("SONDE_TURNS", 3);
    let all: Vec<String> = (1..=turns).map(|turn| turn.to_string()).collect();
    let script = stage.with_sshd(CHAOS).replace("TURNS", &all.join(" "));
    let options = ["--hosts", "4", "--network", "ethernet-1g", "--root"];
    let run = stage.run(&options, &["sh", "-c", &script]);
    let outcome = run.limit(1_000 * turns).output();
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(!outcome.out.contains("left on"), "{outcome}");
    let ended = outcome
        .out
        .lines()
        .filter(|line| line.contains(" ended with "));
    assert_eq!(ended.clone().count() as u64, 7 * turns, "{outcome}");
    for line in ended {
        println!("{line}");
        let words: Vec<&str> = line.split(' ').collect();
        let (name, code, seconds, kept) = (words[0], words[3], words[5], words[8]);
        let number = |word: &str| word.trim_end_matches(',').parse::<u64>().unwrap();
        let err = std::fs::read_to_string(stage.path(&format!("{name}.err"))).unwrap();
        assert!(number(seconds) < SECONDS, "{line}\n{err}");
        assert!(err.contains("h3"), "the host is named: {line}\n{err}");
        assert!(!err.contains("panicked"), "{line}\n{err}");
        assert!(
            number(kept) >= 1,
            "what was measured is kept: {line}\n{err}"
        );
        // Who is lost before anything is measured is left out, and nothing is missing.
        let is_lost_before = name.starts_with("full") || name.starts_with("nonsense");
        // A round begins right after its clocks are read: the drift is told, and figures are as they were.
        let is_drift = name.starts_with("drift");
        assert!(
            !is_drift || err.contains("its clock drifts"),
            "{line}\n{err}"
        );
        let codes: &[&str] = if is_lost_before || is_drift {
            &["0", "1"]
        } else {
            &["1"]
        };
        assert!(codes.contains(&code), "{line}\n{err}");
    }
}

const LIBRARIES: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys runs=DIR/runs
unset SONDE_RANK
in_host() { host=$1; shift; sonde lab exec --root "$host" -- "$@"; }
sh "$ssh_setup" keys "$keys" h2 h3 h4 10.9.0.2 10.9.0.3 10.9.0.4
at_home="mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh"
sh -c "$at_home" && cp "$keys/ssh_config" /root/.ssh/config
for host in h2 h3 h4; do
    in_host $host sh -c "$at_home"
    sonde lab exec --detach --root $host -- sh "$ssh_setup" serve "$keys" -o "SetEnv=PATH=DIR/bin:/usr/bin:/bin" >/dev/null 2>&1
    until ssh -o BatchMode=yes $host true 2>/dev/null; do sleep 0.1; done
done
# The hosts see nothing of what lies beside this command, as other machines would not.
hide() { for host in h2 h3 h4; do in_host $host mount -t tmpfs tmpfs "$1"; done; }
hide BESIDE
probe() {
    name=$1; shift
    code=0; sonde probe latency --testbed 'hosts:h[2-4]' --path PATHS --size 8 --quick --budget 50ms --json --out "$runs" \
        "$@" >DIR/$name.json 2>DIR/$name.err || code=$?
    echo "$name ended with $code"
}
probe bare
mkdir DIR/bin && cp -r DIR/parts/* DIR/bin/
probe alone
for host in h2 h3 h4; do in_host $host cp "$keys/ssh_config" /root/.ssh/config; done
probe whole
sleep 0.5
for host in h2 h3 h4; do
    in_host $host ps -eo args | grep -E ' agent$|--sonde-worker|sonde-rank|pvm|mpi|hydra|orted' | sed "s/^/left on $host: /" || true
    in_host $host ls -A /tmp /dev/shm /run/user 2>/dev/null | grep -iE 'sonde|pvm' | sed "s/^/left on $host: /" || true
done
"#;

/// The paths whose library is installed, and with them the adapter built; the native engine first.
fn library_paths(parts: &std::path::Path) -> Vec<&'static str> {
    let all = [
        ("native:tcp", "native", "sh"),
        ("openmpi:tcp", "openmpi", "mpirun.openmpi"),
        ("mpich:tcp", "mpich", "mpiexec.mpich"),
        ("pvm:default", "pvm", "pvm"),
        ("pvm:direct", "pvm", "pvm"),
    ];
    let is_there = |library: &str, program: &str| {
        let adapter = parts.join(format!("adapters/sonde-{library}.so"));
        lab::path_of(program).is_some() && (library == "native" || adapter.is_file())
    };
    let (there, missing): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, library, program)| is_there(library, program));
    for (path, ..) in missing {
        println!("left out: {path} for want of the library or of its adapter");
    }
    there.into_iter().map(|(path, ..)| path).collect()
}

#[test]
fn ranks_of_every_library_start_on_real_hosts_or_say_what_is_missing() {
    let Some(stage) = Stage::of_root(&["sshd", "ssh", "ps"]) else {
        return;
    };
    let beside = lab::sonde().with_file_name("sonde-rank");
    if !beside.is_file() {
        lab::skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return;
    }
    let parts = stage.folder.join("parts");
    std::fs::create_dir_all(parts.join("adapters")).unwrap();
    lab::copy_program(&beside, &parts.join("sonde-rank"));
    let adapters = beside.with_file_name("adapters");
    for file in std::fs::read_dir(adapters).into_iter().flatten() {
        let file = file.unwrap();
        lab::copy_program(&file.path(), &parts.join("adapters").join(file.file_name()));
    }
    let paths = library_paths(&parts);
    let folder = beside.parent().unwrap().canonicalize().unwrap();
    let script = stage
        .with_sshd(LIBRARIES)
        .replace("PATHS", &paths.join(","))
        .replace("BESIDE", folder.to_str().unwrap());
    let outcome = stage
        .run(
            &["--hosts", "4", "--network", "ethernet-1g", "--root"],
            &["sh", "-c", &script],
        )
        .limit(240)
        .output();
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(!outcome.out.contains("left on"), "{outcome}");
    let rows = |name: &str, path: &str| {
        let document = json(&stage, &format!("{name}.json"));
        let all = document["results"].as_array().unwrap().iter();
        let own: Vec<Value> = all.filter(|row| row["path"] == path).cloned().collect();
        assert!(!own.is_empty(), "{name}: {path}: {document:#}");
        own
    };
    let refused = |name: &str, path: &str, words: &[&str]| {
        for row in rows(name, path) {
            assert_eq!(row["status"], "skipped", "{name}: {row}");
            let reason = row["reason"].as_str().unwrap();
            for word in words {
                assert!(reason.contains(word), "{name}: {path}: `{word}`: {reason}");
            }
        }
    };
    let measured = |name: &str, path: &str| {
        let rows = rows(name, path);
        let warm = rows
            .iter()
            .filter(|row| row["phase"] == "warm" && row["status"] == "measured");
        let errors = std::fs::read_to_string(stage.path(&format!("{name}.err"))).unwrap();
        assert_eq!(warm.count(), 1, "{name}: {path}: {rows:#?}\n{errors}");
    };
    for path in &paths {
        // Nothing of sonde's is on any host.
        refused("bare", path, &["h2", "sonde-rank", "PATH"]);
        // What the first host starts on others wants to get there without being asked.
        if *path == "native:tcp" {
            measured("alone", path);
        } else {
            let words = ["h2", "ssh", "10.9.0.3", "without a password"];
            refused("alone", path, &words);
        }
        measured("whole", path);
    }
}
