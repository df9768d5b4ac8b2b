//! Running a test's body in fresh namespaces: the test starts itself again, and the child leaves its
//! namespaces between fork and exec.

use std::panic::Location;
use std::path::Path;
use std::process::Command;

use sonde_sys::exec::{Step, before_exec};
use sonde_sys::namespace::{IdMap, Namespaces};
use sonde_sys::{namespace, process};

const STAGE: &str = "SONDE_SYS_STAGE";

/// Runs `body` as root of fresh `namespaces` (a user namespace among them), in a process of its own. `name` is the test's in
/// the calling file, which is a module of its own.
#[track_caller]
pub fn inside(name: &str, namespaces: Namespaces, body: impl FnOnce()) {
    if std::env::var(STAGE).is_ok_and(|stage| stage == name) {
        return body();
    }
    if let Some(obstacle) = namespace::obstacle().unwrap() {
        println!("skipped: {obstacle}");
        return;
    }
    let (uid, gid) = process::ids();
    let one = |outside| {
        vec![IdMap {
            inside: 0,
            outside,
            count: 1,
        }]
    };
    let file = Path::new(Location::caller().file()).file_stem().unwrap();
    let path = format!("{}::{name}", file.to_str().unwrap());
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", &path, "--nocapture", "--test-threads=1"]);
    command.env(STAGE, name);
    let steps = vec![
        Step::Unshare(namespaces),
        Step::MapIds {
            uid: one(uid),
            gid: one(gid),
            deny_setgroups: true,
        },
        Step::DieWithParent {
            expected: std::process::id(),
        },
    ];
    before_exec(&mut command, steps);
    // `output` and not `status`: what the child prints goes where this test's own output goes.
    let output = command.output().unwrap();
    print!("{}", String::from_utf8_lossy(&output.stdout));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} failed inside:\n{error}");
}
