//! A host's private world: mounts, terminals, host name, process ids.

use crate::fresh;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use sonde_sys::exec::{Step, before_exec};
use sonde_sys::namespace::{IdMap, Kind, Namespaces};
use sonde_sys::process::Capability;
use sonde_sys::pty::Pty;
use sonde_sys::{clock, mount, namespace, process};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sonde-sys-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn mounts_are_private() {
    fresh::inside(
        "mounts_are_private",
        Namespaces::ALL.without(Kind::Pid),
        || {
            mount::make_private("/".as_ref()).unwrap();
            let root = folder("mounts");
            mount::tmpfs(&root, 0o1777, 1 << 20).unwrap();
            assert_eq!(
                fs::metadata(&root).unwrap().permissions().mode() & 0o7777,
                0o1777
            );
            let big = fs::File::create(root.join("big"))
                .unwrap()
                .write_all(&vec![0; 2 << 20]);
            assert!(big.is_err(), "the size holds");
            fs::remove_file(root.join("big")).unwrap();
            for (name, text) in [("one", "1"), ("two", "2")] {
                fs::write(root.join(name), text).unwrap();
            }
            mount::bind(&root.join("one"), &root.join("two")).unwrap();
            assert_eq!(fs::read_to_string(root.join("two")).unwrap(), "1");
            mount::unmount(&root.join("two")).unwrap();
            assert_eq!(fs::read_to_string(root.join("two")).unwrap(), "2");
            fs::create_dir(root.join("sys")).unwrap();
            mount::sysfs(&root.join("sys")).unwrap();
            let names: Vec<_> = fs::read_dir(root.join("sys/class/net"))
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            assert_eq!(names, ["lo"], "the interfaces of this network namespace");
            process::set_hostname("h1").unwrap();
            mount::unmount(&root).unwrap();
            assert!(!root.join("one").exists());
            fs::remove_dir(&root).unwrap();
        },
    );
}

#[test]
fn terminals_are_of_the_new_devpts() {
    fresh::inside(
        "terminals_are_of_the_new_devpts",
        Namespaces::ALL.without(Kind::Pid),
        || {
            mount::make_private("/".as_ref()).unwrap();
            mount::devpts("/dev/pts".as_ref()).unwrap();
            let pty = Pty::open().unwrap();
            assert!(
                fs::metadata("/dev/pts/0").is_ok(),
                "the first of its instance"
            );
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "tty; ps -o tty= -p $$"]);
            command
                .stdin(pty.terminal.try_clone().unwrap())
                .stdout(pty.terminal.try_clone().unwrap());
            before_exec(&mut command, vec![Step::NewSession, Step::ControlTerminal]);
            assert!(command.status().unwrap().success());
            drop((command, pty.terminal));
            let text = written(pty.controller);
            assert_eq!(
                text.split_whitespace().collect::<Vec<_>>(),
                ["/dev/pts/0", "pts/0"]
            );
        },
    );
}

/// All that was written at a terminal, whose own ends are closed: the kernel hands it over piece by piece.
fn written(controller: OwnedFd) -> String {
    let mut all = Vec::new();
    let end = fs::File::from(controller).read_to_end(&mut all);
    // The end of a terminal is an error of input and output, behind all that was written.
    assert_eq!(end.unwrap_err().raw_os_error(), Some(libc::EIO));
    String::from_utf8(all).unwrap()
}

#[test]
fn a_new_pid_namespace_begins_at_one() {
    // Not left by this process itself, which could then start no thread (see `Kind::Pid`).
    let set = Namespaces::of(&[Kind::User, Kind::Mount]);
    fresh::inside("a_new_pid_namespace_begins_at_one", set, || {
        mount::make_private("/".as_ref()).unwrap();
        let mut shell = Command::new("/bin/sh");
        // The inner shell is the first process of the namespace; it mounts proc and looks around.
        shell.args([
            "-c",
            "sh -c 'mount -t proc proc /proc && echo $$ $(ls -d /proc/[0-9]*)'; exit $?",
        ]);
        let parent = std::process::id();
        before_exec(
            &mut shell,
            vec![
                Step::Unshare(Namespaces::of(&[Kind::Pid])),
                Step::UnblockSignals,
                Step::DieWithParent { expected: parent },
            ],
        );
        let output = shell.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(
            words.len() >= 2 && words[..2] == ["1", "/proc/1"] && words.len() < 6,
            "{text}"
        );
    });
}

#[test]
fn children_are_reaped_by_number() {
    fresh::inside(
        "children_are_reaped_by_number",
        Namespaces::of(&[Kind::User]),
        || {
            let mut child = Command::new("/bin/sh")
                .args(["-c", "exit 7"])
                .spawn()
                .unwrap();
            let ended = (0..2000).find_map(|_| {
                clock::sleep_until_ns(clock::monotonic_ns() + 1_000_000);
                process::reap().pop()
            });
            let (pid, status) = ended.unwrap();
            assert_eq!((pid, status.code()), (child.id(), Some(7)));
            assert!(process::reap().is_empty());
            assert!(child.wait().is_err(), "nothing is left to wait for");
        },
    );
}

#[test]
fn a_program_joins_a_host_as_an_ordinary_user() {
    fresh::inside(
        "a_program_joins_a_host_as_an_ordinary_user",
        Namespaces::of(&[Kind::User, Kind::Uts]),
        || {
            assert!(process::holds(Capability::NetRaw).unwrap());
            // The host: a user namespace within, held by a sleeping program, with uid 2001 for its root.
            let mut holder = Command::new("/bin/sleep");
            let map = vec![IdMap {
                inside: 2001,
                outside: 0,
                count: 1,
            }];
            before_exec(
                holder.arg("100"),
                vec![
                    Step::Unshare(Namespaces::of(&[Kind::User])),
                    Step::MapIds {
                        uid: map.clone(),
                        gid: map,
                        deny_setgroups: true,
                    },
                    Step::DieWithParent {
                        expected: std::process::id(),
                    },
                ],
            );
            let mut holder = holder.spawn().unwrap();
            let user = namespace::open(holder.id(), Kind::User).unwrap();
            let mut program = Command::new("/bin/sh");
            program.args(["-c", "id -u; id -g; grep CapEff /proc/self/status"]);
            before_exec(
                &mut program,
                vec![
                    Step::Join(user, Kind::User),
                    Step::SetIds {
                        uid: 2001,
                        gid: 2001,
                    },
                ],
            );
            let output = program.output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let words: Vec<_> = text.split_whitespace().collect();
            assert_eq!(words, ["2001", "2001", "CapEff:", "0000000000000000"]);
            process::kill(holder.id(), 9).unwrap();
            holder.wait().unwrap();
        },
    );
}

#[test]
fn ranges_of_ids_need_the_setuid_programs() {
    let (uid, gid) = process::ids();
    let ranges = namespace::subid_ranges(uid);
    let (Some(users), Some(groups)) = (ranges.uid.first(), ranges.gid.first()) else {
        return println!("skipped: user {uid} has no range in /etc/subuid and /etc/subgid");
    };
    if let Some(obstacle) = namespace::obstacle().unwrap() {
        return println!("skipped: {obstacle}");
    }
    let mut child = Command::new("/bin/sleep");
    before_exec(
        child.arg("100"),
        vec![Step::Unshare(Namespaces::of(&[Kind::User]))],
    );
    let mut child = child.spawn().unwrap();
    let maps = |own, first, count| {
        [
            IdMap {
                inside: 0,
                outside: own,
                count: 1,
            },
            IdMap {
                inside: 1,
                outside: first,
                count,
            },
        ]
    };
    namespace::newuidmap(child.id(), &maps(uid, users.first, users.count)).unwrap();
    namespace::newgidmap(child.id(), &maps(gid, groups.first, groups.count)).unwrap();
    let found = fs::read_to_string(format!("/proc/{}/uid_map", child.id())).unwrap();
    assert_eq!(found.lines().count(), 2);
    assert!(
        namespace::newuidmap(
            child.id(),
            &[IdMap {
                inside: 0,
                outside: 0,
                count: 9
            }]
        )
        .is_err()
    );
    child.kill().unwrap();
    child.wait().unwrap();
}
