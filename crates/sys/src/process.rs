//! Processes: dying with the parent, signals as a descriptor, reaping, ids.
//!
//! Model:   a host's first process sets [`die_with_parent`], blocks its signals into a [`SignalFd`], and
//!          reaps every child it is told of.
//! Checked: unit tests below; `tests/namespace.rs` for what needs a namespace.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::io::Errno;

use crate::error::{Attempt, checked, read_text};
use crate::{Error, Result};

/// Asks the kernel to kill this process (SIGKILL) when its parent thread ends.
///
/// `expected` is the parent's id, for the case that it has ended already; a process that is pid 1 of a new
/// pid namespace sees parent 0 whether or not it lives, and needs an end-of-file on a pipe as the second
/// guard. The signal follows the *thread* that forked: set it in children of a main thread only. It
/// survives exec (unless setuid), unshare and the writing of id maps, and is cleared by a change of uid:
/// call again after [`set_ids`].
pub fn die_with_parent(expected: u32) -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .attempt(|| "ask for SIGKILL at the parent's end".into())?;
    let found = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    if found == expected {
        Ok(())
    } else {
        Err(Error::Orphaned { expected, found })
    }
}

/// Takes [`die_with_parent`] back: for a process that has something to end before it ends itself.
pub fn outlive_parent() -> Result<()> {
    rustix::process::set_parent_process_death_signal(None)
        .attempt(|| "take back what was asked for the parent's end".into())
}

/// A descriptor that becomes readable when a child ends, before anybody has collected it: until then its id is nobody else's.
pub fn end_of(child: u32) -> Result<OwnedFd> {
    let pid = i32::try_from(child)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    pid.ok_or(Errno::SRCH)
        .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()))
        .attempt(|| format!("watch for the end of process {child}"))
}

/// The parent's process id; 0 when it is outside the pid namespace.
pub fn parent() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32)
}

/// Sets the host name of the current UTS namespace, and reads it back.
pub fn set_hostname(name: &str) -> Result<()> {
    rustix::system::sethostname(name.as_bytes())
        .attempt(|| format!("set the host name to {name}"))?;
    let found = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    if found == name {
        return Ok(());
    }
    Err(Error::NotTaken {
        name: "host name".into(),
        asked: name.into(),
        found,
    })
}

/// Locks a file for all that share this opening of it, until the last of them has closed it (flock(2)); false where
/// another opening has it, unless `wait` says to wait for that one's end.
pub fn lock(file: impl AsFd, wait: bool) -> Result<bool> {
    let operation = if wait {
        rustix::fs::FlockOperation::LockExclusive
    } else {
        rustix::fs::FlockOperation::NonBlockingLockExclusive
    };
    match rustix::fs::flock(file, operation) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        done => done.attempt(|| "lock a file".into()).map(|()| true),
    }
}

/// The user whose rights this process has.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Collects every child that has ended, without waiting.
pub fn reap() -> Vec<(u32, ExitStatus)> {
    let mut ended = Vec::new();
    loop {
        let mut status = 0;
        // SAFETY: `status` is a live local.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        match pid {
            1.. => ended.push((pid as u32, ExitStatus::from_raw(status))),
            _ => return ended,
        }
    }
}

/// One signal read from a [`SignalFd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number.
    pub signal: i32,
    /// Who sent it, or the child that ended (SIGCHLD).
    pub pid: u32,
}

/// Signals taken from a descriptor instead of by a handler; non-blocking.
#[derive(Debug)]
pub struct SignalFd {
    fd: OwnedFd,
}

fn signal_set(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data and sigemptyset initialises it; sigaddset only rejects bad numbers.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

impl SignalFd {
    /// Blocks `signals` for the calling thread and threads it starts later, and opens the descriptor.
    ///
    /// Call it before any other thread is started: a signal to the process that one thread leaves unblocked
    /// goes to that thread, and SIGCHLD is then lost without a trace (its default is to be ignored).
    ///
    /// Children inherit the blocking: call [`unblock_signals`] in them before exec.
    pub fn new(signals: &[i32]) -> Result<Self> {
        let set = signal_set(signals);
        // SAFETY: `set` is initialised; the old mask is not asked for.
        let status = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        if status != 0 {
            return Err(Errno::from_raw_os_error(status))
                .attempt(|| format!("block the signals {signals:?}"));
        }
        // SAFETY: `set` is initialised; the returned descriptor is owned by nobody else.
        let fd = unsafe {
            checked(libc::signalfd(
                -1,
                &set,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            ))
            .map(|fd| OwnedFd::from_raw_fd(fd))
        };
        Ok(Self {
            fd: fd.attempt(|| format!("open a descriptor for the signals {signals:?}"))?,
        })
    }

    /// The next signal, if one is waiting.
    pub fn read(&self) -> Result<Option<Arrival>> {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let mut bytes = [0u8; SIZE];
        match rustix::io::read(&self.fd, &mut bytes) {
            Ok(SIZE) => {
                let word = |at: usize| {
                    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
                };
                // struct signalfd_siginfo: ssi_signo, ssi_errno, ssi_code, ssi_pid.
                Ok(Some(Arrival {
                    signal: word(0) as i32,
                    pid: word(12),
                }))
            }
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno).attempt(|| "read the signal descriptor".into()),
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Unblocks every signal; async-signal-safe, for use between fork and exec.
pub fn unblock_signals() -> Result<()> {
    let set = signal_set(&[]);
    // SAFETY: `set` is initialised; the old mask is not asked for.
    let status = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut()) };
    if status == 0 {
        return Ok(());
    }
    Err(Errno::from_raw_os_error(status)).attempt(|| "unblock the signals".into())
}

/// Sends a signal to one process. A process that is gone is `Error::Call` with ESRCH.
pub fn kill(pid: u32, signal: i32) -> Result<()> {
    // The cast of an id above i32::MAX would name a group: refused.
    let status = if pid == 0 || pid > i32::MAX as u32 {
        Err(Errno::SRCH)
    } else {
        // SAFETY: no pointers.
        checked(unsafe { libc::kill(pid as i32, signal) })
    };
    status.attempt(|| format!("send signal {signal} to process {pid}"))?;
    Ok(())
}

/// Sends a signal to a process group.
pub fn kill_group(group: u32, signal: i32) -> Result<()> {
    // 0 and 1 would name the caller's own group and every process: refused.
    let status = if group <= 1 || group > i32::MAX as u32 {
        Err(Errno::SRCH)
    } else {
        // SAFETY: no pointers.
        checked(unsafe { libc::kill(-(group as i32), signal) })
    };
    status.attempt(|| format!("send signal {signal} to process group {group}"))?;
    Ok(())
}

/// Starts a new session without a controlling terminal.
pub fn setsid() -> Result<()> {
    rustix::process::setsid().attempt(|| "start a session".into())?;
    Ok(())
}

/// Makes `terminal` the controlling terminal of this session; call after [`setsid`].
pub fn control_terminal(terminal: impl AsFd) -> Result<()> {
    rustix::process::ioctl_tiocsctty(terminal).attempt(|| "take a controlling terminal".into())
}

/// Becomes user `uid` and group `gid` in all threads, dropping other groups where that is permitted.
///
/// Returns whether the other groups were dropped: a namespace whose setgroups is denied refuses it, and
/// there the groups outside the map show as 65534 and give nothing.
pub fn set_ids(uid: u32, gid: u32) -> Result<bool> {
    // SAFETY: an empty list needs no pointer.
    let dropped = match checked(unsafe { libc::setgroups(0, std::ptr::null()) }) {
        Ok(_) => true,
        Err(Errno::PERM) => false,
        Err(errno) => return Err(errno).attempt(|| "drop supplementary groups".into()),
    };
    // SAFETY: no pointers.
    checked(unsafe { libc::setresgid(gid, gid, gid) }).attempt(|| format!("become group {gid}"))?;
    // SAFETY: no pointers.
    checked(unsafe { libc::setresuid(uid, uid, uid) }).attempt(|| format!("become user {uid}"))?;
    Ok(dropped)
}

/// A capability, by its number in capabilities(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Owners of files.
    Chown = 0,
    /// Files without regard to their modes.
    DacOverride = 1,
    /// Reading files and folders without regard to their modes.
    DacReadSearch = 2,
    /// Modes of files of others.
    Fowner = 3,
    /// Keeping the set-group-id bit.
    Fsetid = 4,
    /// Signals to processes of others.
    Kill = 5,
    /// Becoming any group.
    Setgid = 6,
    /// Becoming any user.
    Setuid = 7,
    /// Capabilities of the bounding set.
    Setpcap = 8,
    /// Ports below 1024.
    NetBindService = 10,
    /// Broadcasts.
    NetBroadcast = 11,
    /// Interfaces, routes, queueing disciplines.
    NetAdmin = 12,
    /// Raw and packet sockets.
    NetRaw = 13,
    /// System V objects of others.
    IpcOwner = 15,
    /// chroot.
    SysChroot = 18,
    /// Tracing processes of others.
    SysPtrace = 19,
    /// Mounts, namespaces, host name.
    SysAdmin = 21,
    /// Priorities of processes of others.
    SysNice = 23,
    /// Limits upwards.
    SysResource = 24,
    /// Capabilities of files.
    Setfcap = 31,
}

/// Gives up for good all capabilities but `kept`, for this thread and what it starts. A user namespace that is made or joined later
/// has all of them again, within itself.
pub fn bound_capabilities(kept: &[Capability]) -> Result<()> {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let kept = kept.iter().fold(0, |set, one| set | 1 << *one as u64);
    for number in (0..u64::BITS).filter(|number| kept & 1 << number == 0) {
        // SAFETY: no pointers.
        let dropped =
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number as libc::c_ulong, 0, 0, 0) };
        match checked(dropped) {
            Ok(_) => {}
            // The kernel has no more.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno).attempt(|| format!("give up capability {number}")),
        }
    }
    let what = || "give up capabilities".to_string();
    let mut sets = capabilities(None).attempt(what)?;
    let kept = CapabilitySet::from_bits_retain(kept);
    sets.permitted &= kept;
    sets.effective &= kept;
    sets.inheritable &= kept;
    set_capabilities(None, sets).attempt(what)
}

/// Leaves the session keyring, and with it the keys of who started this process, for an empty one.
pub fn leave_keyring() -> Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: the name is null, which asks for a keyring without one.
    let joined = unsafe {
        let nameless = std::ptr::null::<libc::c_char>();
        libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nameless)
    };
    // A kernel without keys has none to leave, and what is forbidden here (a container's filter) is so for all programs.
    match checked(joined as libc::c_int) {
        Ok(_) | Err(Errno::NOSYS | Errno::PERM) => Ok(()),
        Err(errno) => Err(errno).attempt(|| "leave the session keyring".into()),
    }
}

/// Whether the calling thread holds a capability in its own user namespace now.
pub fn holds(capability: Capability) -> Result<bool> {
    let path = "/proc/thread-self/status";
    let text = read_text(path)?;
    let bits = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = bits.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let bits = bits.ok_or_else(|| Error::Answer {
        what: format!("read CapEff in {path}"),
        text: "absent".into(),
    })?;
    Ok(bits & (1 << capability as u32) != 0)
}

/// The real user and group id.
pub fn ids() -> (u32, u32) {
    (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    )
}

/// The raw descriptor number, for messages and tables.
pub fn number(fd: impl AsFd) -> i32 {
    fd.as_fd().as_raw_fd()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn signals_arrive_as_reads() {
        std::thread::spawn(|| {
            let signals = SignalFd::new(&[libc::SIGUSR2]).unwrap();
            assert_eq!(signals.read().unwrap(), None);
            // SAFETY: no pointers; the signal is blocked in this thread.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2) };
            let arrival = signals.read().unwrap().unwrap();
            assert_eq!(
                arrival,
                Arrival {
                    signal: libc::SIGUSR2,
                    pid: std::process::id()
                }
            );
            unblock_signals().unwrap();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_process_can_be_killed_but_not_everyone() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        kill(child.id(), libc::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        for id in [0, u32::MAX] {
            assert_eq!(kill(id, 0).unwrap_err().errno(), Some(Errno::SRCH));
            assert_eq!(kill_group(id, 0).unwrap_err().errno(), Some(Errno::SRCH));
        }
        assert!(kill_group(1, 0).is_err());
    }

    #[test]
    fn what_is_given_up_does_not_come_back() {
        if !holds(Capability::Setpcap).unwrap() {
            println!("skipped: the right to give up capabilities");
            return;
        }
        let kept = [Capability::NetRaw, Capability::Setpcap];
        // A thread has capabilities of its own.
        let seen = std::thread::spawn(move || {
            bound_capabilities(&kept).unwrap();
            let inner = "grep -E 'Cap(Eff|Bnd)' /proc/self/status";
            let output = Command::new("sh").args(["-c", inner]).output().unwrap();
            (
                holds(Capability::SysAdmin).unwrap(),
                String::from_utf8(output.stdout).unwrap(),
            )
        });
        let (is_admin, text) = seen.join().unwrap();
        assert!(!is_admin);
        assert_eq!(
            text,
            "CapEff:\t0000000000002100\nCapBnd:\t0000000000002100\n"
        );
        assert!(
            holds(Capability::SysAdmin).unwrap(),
            "the others have theirs"
        );
    }

    #[test]
    fn capabilities_follow_the_user() {
        let root = rustix::process::geteuid().is_root();
        assert_eq!(holds(Capability::NetRaw).unwrap(), root);
    }
}
