//! Namespaces: leaving, joining, id maps, and why a user namespace cannot be had here.
//!
//! Model:   `unshare(NEWUSER|…)` in a process with a single thread, then the id maps: an ordinary user may
//!          map one uid and must give up setgroups; ranges need the setuid programs of package uidmap.
//! Source:  user_namespaces(7), newuidmap(1), subuid(5).
//! Checked: `subordinate_ranges_are_parsed`, `a_trial_leaves_this_process_alone`, and every integration test.
//!
//! Linux refuses `unshare(NEWUSER)` with two threads (EINVAL). A parent-death signal survives unshare and
//! the writing of maps.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Attempt, checked, read_text};
use crate::{Error, Result};

/// One kind of namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Users, groups and capabilities.
    User,
    /// Mounts.
    Mount,
    /// Network.
    Net,
    /// Process ids; takes effect for children. A process that has left its own can start no thread
    /// (clone gives EINVAL): leave it in a program that only forks, or between fork and exec.
    Pid,
    /// Host name.
    Uts,
    /// System V IPC and POSIX queues.
    Ipc,
}

impl Kind {
    pub(crate) fn flag(self) -> i32 {
        match self {
            Self::User => libc::CLONE_NEWUSER,
            Self::Mount => libc::CLONE_NEWNS,
            Self::Net => libc::CLONE_NEWNET,
            Self::Pid => libc::CLONE_NEWPID,
            Self::Uts => libc::CLONE_NEWUTS,
            Self::Ipc => libc::CLONE_NEWIPC,
        }
    }

    /// Its name in /proc/PID/ns.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Mount => "mnt",
            Self::Net => "net",
            Self::Pid => "pid",
            Self::Uts => "uts",
            Self::Ipc => "ipc",
        }
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespaces(pub(crate) i32);

impl Namespaces {
    /// All six kinds.
    pub const ALL: Self = Self::of(&[
        Kind::User,
        Kind::Mount,
        Kind::Net,
        Kind::Pid,
        Kind::Uts,
        Kind::Ipc,
    ]);

    /// The set of `kinds`.
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < kinds.len() {
            bits |= match kinds[i] {
                Kind::User => libc::CLONE_NEWUSER,
                Kind::Mount => libc::CLONE_NEWNS,
                Kind::Net => libc::CLONE_NEWNET,
                Kind::Pid => libc::CLONE_NEWPID,
                Kind::Uts => libc::CLONE_NEWUTS,
                Kind::Ipc => libc::CLONE_NEWIPC,
            };
            i += 1;
        }
        Self(bits)
    }

    /// This set and `kind`.
    pub fn with(self, kind: Kind) -> Self {
        Self(self.0 | kind.flag())
    }

    /// This set without `kind`.
    pub fn without(self, kind: Kind) -> Self {
        Self(self.0 & !kind.flag())
    }

    /// Whether `kind` is in the set.
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & kind.flag() != 0
    }
}

/// Moves the caller into fresh namespaces.
///
/// Async-signal-safe as long as it succeeds, so it may be called between fork and exec. A user namespace
/// needs a process with one thread; other kinds move the calling thread only.
pub fn unshare(namespaces: Namespaces) -> Result<()> {
    // SAFETY: no pointers; no flag here shares or unshares memory or the descriptor table.
    checked(unsafe { libc::unshare(namespaces.0) }).attempt(|| {
        format!(
            "leave the namespaces (flags {:#x}; a user namespace needs a process with one thread)",
            namespaces.0
        )
    })?;
    Ok(())
}

/// Moves the calling thread (for `Pid`: its future children) into the namespace behind `fd`.
pub fn setns(fd: impl AsFd, kind: Kind) -> Result<()> {
    // SAFETY: no pointers.
    checked(unsafe { libc::setns(fd.as_fd().as_raw_fd(), kind.flag()) })
        .attempt(|| format!("join a {} namespace", kind.name()))?;
    Ok(())
}

/// Opens the namespace of process `pid` (0: of the calling thread). The descriptor keeps it alive.
pub fn open(pid: u32, kind: Kind) -> Result<OwnedFd> {
    let path = match pid {
        0 => format!("/proc/thread-self/ns/{}", kind.name()),
        pid => format!("/proc/{pid}/ns/{}", kind.name()),
    };
    rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .attempt(|| format!("open {path}"))
}

/// A run of ids: `inside..inside+count` in the namespace are `outside..outside+count` outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdMap {
    /// First id inside.
    pub inside: u32,
    /// First id outside.
    pub outside: u32,
    /// How many.
    pub count: u32,
}

pub(crate) fn map_text(maps: &[IdMap]) -> String {
    maps.iter()
        .map(|map| format!("{} {} {}\n", map.inside, map.outside, map.count))
        .collect()
}

/// Writes the id maps of process `pid` (0: the caller) directly; each can be written once.
///
/// An ordinary user may map its own single uid and gid, and must pass `deny_setgroups`.
pub fn write_id_maps(pid: u32, uid: &[IdMap], gid: &[IdMap], deny_setgroups: bool) -> Result<()> {
    let folder = if pid == 0 {
        "/proc/self".to_string()
    } else {
        format!("/proc/{pid}")
    };
    let write = |name: &str, text: &str| {
        let path = std::path::PathBuf::from(format!("{folder}/{name}"));
        std::fs::write(&path, text).map_err(|source| Error::File {
            what: format!("write \"{}\" to", text.trim_end().replace('\n', ", ")),
            path,
            source,
        })
    };
    if deny_setgroups {
        write("setgroups", "deny")?;
    }
    write("uid_map", &map_text(uid))?;
    write("gid_map", &map_text(gid))
}

/// A range of subordinate ids: `first..first+count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubIds {
    /// First id.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// The subordinate uid and gid ranges of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubIdRanges {
    /// From /etc/subuid.
    pub uid: Vec<SubIds>,
    /// From /etc/subgid.
    pub gid: Vec<SubIds>,
}

fn parse_sub_ids(text: &str, name: &str, uid: u32) -> Vec<SubIds> {
    let number = uid.to_string();
    let parse = |line: &str| {
        let mut words = line.trim().split(':');
        let owner = words.next()?;
        let first = words.next()?.parse().ok()?;
        let count = words.next()?.parse().ok().filter(|&count| count > 0)?;
        ((!name.is_empty() && owner == name) || owner == number).then_some(SubIds { first, count })
    };
    text.lines().filter_map(parse).collect()
}

/// The ranges /etc/subuid and /etc/subgid give to user `uid`; empty where the files are absent.
pub fn subid_ranges(uid: u32) -> SubIdRanges {
    let name = user_name(uid).unwrap_or_default();
    let ranges = |path: &str| {
        read_text(path)
            .map(|text| parse_sub_ids(&text, &name, uid))
            .unwrap_or_default()
    };
    SubIdRanges {
        uid: ranges("/etc/subuid"),
        gid: ranges("/etc/subgid"),
    }
}

/// The name of user `uid` in /etc/passwd (read directly: getpw* does not work in a static program).
pub fn user_name(uid: u32) -> Option<String> {
    let text = read_text("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let mut words = line.split(':');
        let name = words.next()?;
        (words.nth(1)?.parse() == Ok(uid)).then(|| name.to_string())
    })
}

/// Writes the uid map of `pid` by the setuid program `newuidmap`, for ranges of subordinate ids.
///
/// Must be called from outside the new user namespace.
pub fn newuidmap(pid: u32, maps: &[IdMap]) -> Result<()> {
    run_map_program("newuidmap", pid, maps)
}

/// Writes the gid map of `pid` by the setuid program `newgidmap`.
pub fn newgidmap(pid: u32, maps: &[IdMap]) -> Result<()> {
    run_map_program("newgidmap", pid, maps)
}

fn run_map_program(program: &str, pid: u32, maps: &[IdMap]) -> Result<()> {
    let mut command = Command::new(program);
    command.arg(pid.to_string());
    for map in maps {
        command.args([map.inside, map.outside, map.count].map(|id| id.to_string()));
    }
    let text = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
        Err(error) => error.to_string(),
    };
    Err(Error::IdMap {
        program: program.to_string(),
        text,
    })
}

/// Why a user namespace with a network inside cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Debian's switch `kernel.unprivileged_userns_clone` is 0.
    CloneDisabled,
    /// `user.max_user_namespaces` is 0 (or used up).
    LimitZero,
    /// Ubuntu's `kernel.apparmor_restrict_unprivileged_userns` is 1 and no profile admits this program.
    AppArmor,
    /// A seccomp filter is active: a container's.
    Seccomp(Errno),
    /// Another refusal, with the step at which it came.
    Refused(&'static str, Errno),
}

impl Obstacle {
    /// One sentence that says what to do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::CloneDisabled => "as root: sysctl -w kernel.unprivileged_userns_clone=1",
            Self::LimitZero => "as root: sysctl -w user.max_user_namespaces=15000",
            Self::AppArmor => {
                "as root: add an AppArmor profile for this program (a file in /etc/apparmor.d with \
                 `profile sonde /path/to/sonde flags=(unconfined) { userns, }`, then apparmor_parser -r FILE), or \
                 sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
            }
            Self::Seccomp(_) => {
                "run outside the container, or start it with --security-opt seccomp=unconfined or --privileged"
            }
            Self::Refused(..) => {
                "run as root, or outside the container or chroot that forbids it (a chroot always does)"
            }
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CloneDisabled => write!(
                f,
                "user namespaces are off: kernel.unprivileged_userns_clone is 0"
            )?,
            Self::LimitZero => write!(
                f,
                "user namespaces are off: user.max_user_namespaces is reached"
            )?,
            Self::AppArmor => write!(
                f,
                "AppArmor takes the capabilities away: kernel.apparmor_restrict_unprivileged_userns is 1"
            )?,
            Self::Seccomp(errno) => {
                write!(f, "a seccomp filter forbids user namespaces ({errno})")?
            }
            Self::Refused(step, errno) => write!(
                f,
                "the kernel refuses a user namespace when asked to {step}: {errno}"
            )?,
        }
        write!(f, "; {}", self.remedy())
    }
}

const STEPS: [&str; 3] = [
    "unshare the user namespace",
    "write its uid map",
    "unshare the others within it",
];
/// What the trial child reports through the failing `pre_exec` when all went well.
const TRIED: i32 = 1_000_000;

/// Tries a user namespace in a short-lived child and names the obstacle; `None` when it can be had.
///
/// The child never execs: its `pre_exec` closure always fails, and carries the outcome in the error number
/// that the standard library sends back. This is safe with threads (only async-signal-safe calls between
/// fork and exit), and tries what AppArmor forbids late: there unshare(NEWUSER) succeeds, but the
/// capabilities inside are gone, so the second unshare fails.
pub fn obstacle() -> Result<Option<Obstacle>> {
    let map = format!("0 {} 1", rustix::process::geteuid().as_raw());
    let mut command = Command::new("/proc/self/exe");
    let trial = move || -> std::io::Result<()> {
        let outcome = match attempt_namespaces(map.as_bytes()) {
            Ok(()) => TRIED,
            Err((step, errno)) => (step + 1) * 1000 + errno.raw_os_error(),
        };
        Err(std::io::Error::from_raw_os_error(outcome))
    };
    // SAFETY: the closure only makes system calls, allocates nothing and takes no lock.
    unsafe { command.pre_exec(trial) };
    let outcome = match command.spawn() {
        Err(error) => error.raw_os_error().unwrap_or(0),
        Ok(mut child) => {
            let _ = child.kill();
            let _ = child.wait();
            0
        }
    };
    match outcome {
        TRIED => Ok(None),
        code @ 1000.. => {
            let step = STEPS[((code / 1000 - 1) as usize).min(STEPS.len() - 1)];
            Ok(Some(culprit(step, Errno::from_raw_os_error(code % 1000))))
        }
        code => Err(Errno::from_raw_os_error(code.max(1)))
            .attempt(|| "fork a child to try a user namespace".into()),
    }
}

fn attempt_namespaces(map: &[u8]) -> std::result::Result<(), (i32, Errno)> {
    // SAFETY: no pointers.
    checked(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map_err(|errno| (0, errno))?;
    put(c"/proc/self/setgroups", b"deny").map_err(|errno| (1, errno))?;
    put(c"/proc/self/uid_map", map).map_err(|errno| (1, errno))?;
    let others = libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWPID;
    // SAFETY: no pointers.
    checked(unsafe { libc::unshare(others) }).map_err(|errno| (2, errno))?;
    Ok(())
}

/// Writes a file of /proc in one call without allocating.
pub(crate) fn put(path: &std::ffi::CStr, text: &[u8]) -> rustix::io::Result<()> {
    let fd = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(fd, text).map(|_| ())
}

fn culprit(step: &'static str, errno: Errno) -> Obstacle {
    let is = |name: &str, value: &str| crate::sysctl::read(name).is_ok_and(|found| found == value);
    let privileged = rustix::process::geteuid().is_root();
    if !privileged && is("kernel/unprivileged_userns_clone", "0") {
        return Obstacle::CloneDisabled;
    }
    // ENOSPC is documented for the limit; max_user_namespaces=0 gives it too.
    if is("user/max_user_namespaces", "0") || errno == Errno::NOSPC {
        return Obstacle::LimitZero;
    }
    if !privileged && is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        return Obstacle::AppArmor;
    }
    let filtered = read_text("/proc/self/status").is_ok_and(|text| {
        text.lines().any(|line| {
            line.strip_prefix("Seccomp:")
                .is_some_and(|v| v.trim() == "2")
        })
    });
    if filtered {
        Obstacle::Seccomp(errno)
    } else {
        Obstacle::Refused(step, errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_ranges_are_parsed() {
        let text =
            "ann:100000:65536\nbob:165536:65536\n1001:300000:10\n# note\nann:bad:1\nann:5:0\n";
        let range = |first, count| SubIds { first, count };
        assert_eq!(
            parse_sub_ids(text, "ann", 1001),
            [range(100_000, 65_536), range(300_000, 10)]
        );
        assert_eq!(parse_sub_ids(text, "", 7), []);
        assert_eq!(user_name(0).as_deref(), Some("root"));
    }

    #[test]
    fn a_trial_leaves_this_process_alone() {
        let user = || std::fs::read_link("/proc/self/ns/user").unwrap();
        let before = user();
        match obstacle().unwrap() {
            None => {}
            Some(obstacle) => println!("skipped: {obstacle}"),
        }
        assert_eq!(user(), before);
    }

    #[test]
    fn sets_hold_their_kinds() {
        let set = Namespaces::of(&[Kind::User, Kind::Net]);
        assert!(set.contains(Kind::Net) && !set.contains(Kind::Pid));
        assert_eq!(
            Namespaces::ALL.without(Kind::Net).with(Kind::Net),
            Namespaces::ALL
        );
        assert!(open(0, Kind::Net).is_ok() && open(u32::MAX, Kind::Net).is_err());
    }
}
