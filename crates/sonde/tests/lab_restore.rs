//! `sonde tune --apply` between real OpenSSH servers leaves nothing behind, however it ends: agents and commands are killed,
//! and interrupted, in the middle of a trial. What helps is kept.
//!
//! Model:   h1 is the user's machine; h2 and h3 run Debian's sshd, by `crates/fleet/tests/sshd.sh`; h3 has a small receive
//!          buffer. What is changed and what puts it back is read from the hosts themselves.

use crate::lab::{Outcome, Stage};

/// Three servers, h3 with a small receive buffer; what begins a run and waits until all is put back.
const STAGE: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys runs=DIR/runs
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3 h4
cp "$keys/ssh_config" /root/.ssh/config
on() { sonde lab exec --root "$@"; }
for host in h2 h3 h4; do
    sonde lab exec --detach --root $host -- sh "$ssh_setup" serve "$keys" >/dev/null 2>&1
    until ssh -o BatchMode=yes $host true 2>/dev/null; do sleep 0.1; done
done
on h3 -- sysctl -qw net.ipv4.tcp_rmem="4096 32768 32768"
state() {
    for host in h2 h3; do
        on $host -- sh -c 'sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem; ip route; ls -A /run/sonde-changes 2>/dev/null || true' | sed "s/^/$host /"
    done
}
state >DIR/before
tune() { exec sonde tune --testbed hosts:h2,h3 --apply --quick --out "$runs" "$@" </dev/null; }
# Starts it in the background, until h3's settings are others than before. On a machine with other work a run may find nothing
# to change: it is tried again.
begin() {
    for attempt in 1 2 3 4; do
        (tune --yes) >DIR/$1.out 2>DIR/$1.err & run=$!
        while kill -0 $run 2>/dev/null; do
            [ "$(on h3 -- sysctl -n net.ipv4.tcp_rmem)" = "4096	32768	32768" ] || return 0
            sleep 0.05
        done
        wait $run || true
    done
    echo "$1: nothing was changed"; cat DIR/$1.out DIR/$1.err
    return 1
}
restored() {
    tries=0
    until state >DIR/after && cmp -s DIR/before DIR/after; do
        tries=$((tries + 1)); [ $tries -lt 100 ] || { echo "$1: not put back"; diff DIR/before DIR/after || true; return 0; }
        sleep 0.1
    done
    echo "$1: put back"
}
kill_on() { on $1 -- sh -c "pkill -9 -f '$2'" || true; }

"#;

const INTERRUPTED: &str = r#"
for attempt in 1 2 3 4; do
    code=0; (tune) >/dev/null 2>DIR/asked.err || code=$?
    [ $code = 0 ] || break
done
echo "asked ended with $code"; restored asked

begin int; kill -INT $run; code=0; wait $run || code=$?
echo "int ended with $code"; restored int
"#;

const COMMAND_KILLED: &str = r#"
begin command; kill -KILL $run; wait $run || true; restored command

(tune --yes --json) >DIR/kept.json 2>DIR/kept.err || echo "kept failed"
on h3 -- sysctl -n net.ipv4.tcp_rmem | sed 's/^/kept /'
on h3 -- sh -c 'ls -A /run/sonde-changes 2>/dev/null || true' | sed 's/^/left /'
"#;

const AGENT_KILLED: &str = r#"
begin agent; kill_on h3 ' agen[t]$'; kill -INT $run; wait $run || true; restored agent

# Only its agents, while the command goes on: repetitions fail.
begin lost; for once in 1 2 3 4 5 6; do kill_on h3 ' agen[t]$'; kill_on h2 ' agen[t]$'; sleep 0.3; done
code=0; wait $run || code=$?
echo "lost ended with $code"; restored lost
"#;

const AGENT_AND_GUARD_KILLED: &str = r#"
begin both; on h3 -- sh -c 'pkill -STOP -f "sonde-guar[d]"'; kill_on h3 ' agen[t]$'; kill_on h3 'sonde-guar[d]'
kill -INT $run; wait $run || true
on h3 -- sysctl -n net.ipv4.tcp_rmem | sed 's/^/both left /'
code=0; sonde probe latency --testbed hosts:h2,h3 --size 8 --launches 1 --out "$runs" >/dev/null 2>DIR/next.err || code=$?
restored both
"#;

/// Runs the script on a stage of its own; its output, and what the files were that it wrote there.
fn staged(script: &str) -> Option<(Outcome, impl Fn(&str) -> String)> {
    let stage = Stage::of_root(&["sshd", "ssh", "pkill", "sysctl"])?;
    let script = stage.with_sshd(&format!("{STAGE}{script}"));
    let options = ["--hosts", "4", "--network", "wan-100m-20ms", "--root"];
    let outcome = stage
        .run(&options, &["sh", "-c", &script])
        .limit(600)
        .output();
    assert_eq!(outcome.code, 0, "{outcome}");
    let read = move |name: &str| std::fs::read_to_string(stage.path(name)).unwrap_or_default();
    Some((outcome, read))
}

fn assert_put_back(outcome: &Outcome, ways: &[&str]) {
    for way in ways {
        assert!(
            outcome.out.contains(&format!("{way}: put back")),
            "{outcome}"
        );
    }
}

#[test]
fn settings_are_put_back_where_an_agent_is_killed() {
    let Some((outcome, read)) = staged(AGENT_KILLED) else {
        return;
    };
    assert_put_back(&outcome, &["agent", "lost"]);
    // A trial whose repetitions failed is no recommendation, nor a success.
    let failed = ["1", "2"].map(|code| format!("lost ended with {code}\n"));
    let lost = read("lost.err");
    assert!(
        failed.iter().any(|end| outcome.out.contains(end)),
        "{outcome}\n{lost}"
    );
    assert!(lost.contains("h3") || lost.contains("h2"), "{lost}");
}

#[test]
fn settings_are_put_back_by_the_next_run_where_agent_and_guard_are_killed() {
    let Some((outcome, read)) = staged(AGENT_AND_GUARD_KILLED) else {
        return;
    };
    assert_put_back(&outcome, &["both"]);
    // With both killed the settings stayed until the next start, which says so.
    assert!(
        !outcome.out.contains("both left 4096\t32768\t32768"),
        "{outcome}"
    );
    let next = read("next.err");
    assert!(
        next.contains("h3") && next.contains("was restored"),
        "{next}"
    );
}

#[test]
fn settings_are_put_back_where_nobody_agrees_and_on_an_interrupt() {
    let Some((outcome, read)) = staged(INTERRUPTED) else {
        return;
    };
    // Not a terminal: who is not asked is not changed.
    assert!(outcome.out.contains("asked ended with 64"), "{outcome}");
    let asked = read("asked.err");
    assert!(
        asked.contains("--yes") && asked.contains("h3 (eth0;"),
        "{asked}"
    );
    assert_put_back(&outcome, &["asked", "int"]);
    assert!(
        read("int.err").contains("no setting is kept, and all are restored"),
        "{}",
        read("int.err")
    );
}

#[test]
fn settings_are_put_back_where_the_command_is_killed_and_kept_where_they_help() {
    let Some((outcome, read)) = staged(COMMAND_KILLED) else {
        return;
    };
    assert_put_back(&outcome, &["command"]);
    let kept: serde_json::Value = serde_json::from_str(&read("kept.json"))
        .unwrap_or_else(|error| panic!("{error}: {}", read("kept.err")));
    let tuned = &kept["tune"];
    let first = &tuned["recommendations"][0]["cause"];
    assert_eq!(
        (&first["rule"], &first["host"]),
        (&"receive-window".into(), &"h3".into())
    );
    let better =
        |trial: &serde_json::Value| trial["kept"] == true && trial["gain"].as_f64() > Some(2.0);
    assert!(
        tuned["trials"].as_array().unwrap().iter().any(better),
        "{tuned:#}"
    );
    assert!(!tuned["undo"].as_array().unwrap().is_empty());
    assert!(outcome.out.contains("kept 4096\t131072\t"), "{outcome}");
    assert!(!outcome.out.contains("\nleft "), "{outcome}");
}
