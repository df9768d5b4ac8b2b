//! `sonde doctor --leftovers`: what is left where a command, its agent and all guards are killed is found, and cleared; what others
//! have by like names stays.
//!
//! Model:   a host of a lab is the machine: the agent there gets by a file what an orchestrator would say.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sonde_probe::host::{Setting, Settings};
use sonde_probe::{Program, Request, frame};

use crate::lab::Stage;

/// Each process that is killed is one that the script has started, or a child of one, by its number.
const SCRIPT: &str = r#"
set -u
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
until_so() { tries=0; until eval "$1"; do tries=$((tries + 1)); [ $tries -lt 100 ] || { echo "never: $1"; exit 3; }; sleep 0.05; done; }
rmem() { sysctl -n net.ipv4.tcp_rmem; }
lives() { kill -0 "$1" 2>/dev/null; }
before=$(rmem)
cd /tmp

# An agent that has changed a setting, with its guard; one whose worker runs a program that leaves its session.
mkfifo one two
sonde agent <one >/dev/null 2>&1 & changer=$!
exec 3>one; cat DIR/settings >&3
until_so '[ "$(rmem)" != "$before" ]'
guard=$(pgrep -P $changer)
sonde agent <two >/dev/null 2>&1 3>&- & runner=$!
exec 4>two; cat DIR/program >&4
until_so '[ -s /tmp/sleeper ]'
worker=$(pgrep -P $runner)
sleeper=$(cat /tmp/sleeper)
# A launcher, and the guard of its folder in shared memory.
sh GUARDED sleep 4712 3>&- 4>&- & launcher=$!
until_so 'ls /dev/shm/sonde-*/sonde >/dev/null 2>&1'
sweeper=$(pgrep -P $launcher)
echo "alive: $(sonde doctor --leftovers --out DIR/none | head -1)"

# At one time: none takes away what another one leaves.
all="$guard $changer $runner $worker $sweeper $launcher"
kill -STOP $all; kill -9 $all
# What others have by such names.
mkdir -m 700 /dev/shm/sonde-ABCDEFGH /tmp/sonde-abcdefgh
echo sonde-folder/2 >/tmp/sonde-abcdefgh/sonde
SONDE_PROGRAM=another sleep 4713 3>&- 4>&- & another=$!

sonde doctor --leftovers --json --out DIR/none >DIR/found.json; echo "found: $?"
lives $sleeper && [ "$(rmem)" != "$before" ] && echo "looking changed nothing"
sonde doctor --leftovers --clear --json --out DIR/none >DIR/cleared.json; echo "cleared: $?"
echo "after: $(sonde doctor --leftovers --out DIR/none | head -1)"
[ "$(rmem)" = "$before" ] && echo "put back"
lives $sleeper || echo "program gone"
ls -d /dev/shm/sonde-* /tmp/sonde-* | sed 's/^/left /'
lives $another && echo "another's lives"
kill $another
"#;

/// What an orchestrator would say.
fn said(requests: &[Request]) -> Vec<u8> {
    let frames = requests
        .iter()
        .map(|request| frame::encode(request).unwrap());
    frames.collect::<Vec<_>>().concat()
}

fn kinds(document: &Value) -> Vec<&str> {
    let all = document["leftovers"].as_array().unwrap();
    all.iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn dead_runs_are_found_and_cleared() {
    let Some(stage) = Stage::of_root(&["pgrep", "sysctl", "setsid"]) else {
        return;
    };
    let settings = Request::Settings(Settings {
        peer: IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)),
        set: vec![Setting::new("net.ipv4.tcp_rmem", "4096 16384 32768")],
        look: false,
    });
    let program = Program::new(
        [
            "sh",
            "-c",
            "setsid sh -c 'echo $$ >/tmp/sleeper; exec sleep 4711' & sleep 300",
        ],
        Duration::from_secs(300),
    );
    std::fs::write(stage.path("settings"), said(&[settings])).unwrap();
    std::fs::write(stage.path("program"), said(&[Request::Run(program)])).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleet/src/ranks/folder.sh");
    let script = SCRIPT
        .replace("GUARDED", stage.copy_in(&folder).to_str().unwrap())
        .replace("DIR", stage.folder.to_str().unwrap());
    let outcome = stage
        .run(&["--hosts", "2", "--root"], &["sh", "-c", &script])
        .limit(120)
        .expect(0);
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(stage.path(name)).unwrap()).unwrap()
    };
    for line in [
        "alive: Dead runs of sonde left nothing on this machine.",
        "found: 1",
        "looking changed nothing",
        "cleared: 0",
        "after: Dead runs of sonde left nothing on this machine.",
        "put back",
        "program gone",
        "left /dev/shm/sonde-ABCDEFGH",
        "left /tmp/sonde-abcdefgh",
        "another's lives",
    ] {
        assert!(
            outcome.out.lines().any(|found| found == line),
            "{line}: {outcome}"
        );
    }
    assert_eq!(outcome.out.matches("left /").count(), 2, "{outcome}");
    let (found, cleared) = (read("found.json"), read("cleared.json"));
    assert_eq!(found["command"], "doctor leftovers");
    // Both programs of the worker: the one that left its session, and the one that it waited for.
    assert_eq!(
        kinds(&found),
        ["settings", "process", "process", "folder"],
        "{found:#}"
    );
    assert_eq!(kinds(&cleared), kinds(&found));
    for one in found["leftovers"].as_array().unwrap() {
        assert_eq!(
            (&one["remains"], &one["done"]),
            (&true.into(), &Value::Null)
        );
        assert!(!one["known_by"].as_str().unwrap().is_empty());
    }
    for one in cleared["leftovers"].as_array().unwrap() {
        assert!(
            one["remains"] == false && one["done"].is_string(),
            "{one:#}"
        );
    }
}
