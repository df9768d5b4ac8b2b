//! What a child does between fork and exec.
//!
//! Model:   a list of steps, run in order in the child; the first refusal ends it and comes back as the
//!          error of `Command::spawn`. The steps make system calls only, allocate nothing and take no lock,
//!          so that a process with threads may spawn.
//! Source:  signal-safety(7), fork(2).
//! Checked: `steps_are_taken_in_order`, `a_refusal_comes_back`, and every integration test.
//!
//! A user namespace is left here, since the child of a fork has one thread. The id maps must be written
//! before exec: a program started with an unmapped uid loses its capabilities.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;

use crate::error::checked;
use crate::namespace::{IdMap, Kind, Namespaces, map_text, put};

/// One step; give them in the order in which they must happen.
#[derive(Debug)]
pub enum Step {
    /// Die (SIGKILL) with the thread that spawns; `0` for `expected` skips the check of the parent's id.
    /// After [`Step::SetIds`], which clears it.
    DieWithParent {
        /// The process that spawns.
        expected: u32,
    },
    /// Leave namespaces. `Pid` holds for the children of the new program.
    Unshare(Namespaces),
    /// Join a namespace. A user namespace first, when it owns the others.
    Join(OwnedFd, Kind),
    /// Write the child's own id maps.
    MapIds {
        /// Users.
        uid: Vec<IdMap>,
        /// Groups.
        gid: Vec<IdMap>,
        /// Give up setgroups; compulsory for an ordinary user.
        deny_setgroups: bool,
    },
    /// Become a user and group, without others where that is permitted.
    SetIds {
        /// User.
        uid: u32,
        /// Group.
        gid: u32,
    },
    /// No program that is run from here on gives more rights: no set-user-id bit, no capability of a file.
    NoNewPrivileges,
    /// A new session without terminal.
    NewSession,
    /// A process group of its own.
    NewGroup,
    /// Make the new program's standard input, a terminal, the controlling one; after `NewSession`.
    ControlTerminal,
    /// Unblock all signals, for a parent that reads them from a descriptor.
    UnblockSignals,
    /// Run only when nobody else wants the CPU.
    SchedIdle,
    /// Real-time priority, if the parent has it, ends here.
    UsualPriority,
}

/// A step with everything allocated beforehand.
enum Ready {
    Step(Step),
    MapIds {
        uid: Vec<u8>,
        gid: Vec<u8>,
        deny_setgroups: bool,
    },
}

/// Adds steps to a command. May be called again; later steps follow.
pub fn before_exec(command: &mut Command, steps: Vec<Step>) {
    let ready = |step| match step {
        Step::MapIds {
            uid,
            gid,
            deny_setgroups,
        } => Ready::MapIds {
            uid: map_text(&uid).into(),
            gid: map_text(&gid).into(),
            deny_setgroups,
        },
        other => Ready::Step(other),
    };
    let steps: Vec<Ready> = steps.into_iter().map(ready).collect();
    let run = move || -> std::io::Result<()> {
        for step in &steps {
            take(step).map_err(|errno| std::io::Error::from_raw_os_error(errno.raw_os_error()))?;
        }
        Ok(())
    };
    // SAFETY: `take` only makes system calls: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(run) };
}

fn take(step: &Ready) -> rustix::io::Result<()> {
    match step {
        Ready::MapIds {
            uid,
            gid,
            deny_setgroups,
        } => {
            if *deny_setgroups {
                put(c"/proc/self/setgroups", b"deny")?;
            }
            put(c"/proc/self/uid_map", uid)?;
            put(c"/proc/self/gid_map", gid)
        }
        Ready::Step(step) => match step {
            Step::DieWithParent { expected } => die_with_parent(*expected),
            Step::Unshare(namespaces) => {
                // SAFETY: no pointers; no flag of `Namespaces` touches memory or descriptors.
                checked(unsafe { libc::unshare(namespaces.0) }).map(|_| ())
            }
            Step::Join(fd, kind) => {
                // SAFETY: no pointers.
                checked(unsafe { libc::setns(fd.as_raw_fd(), kind.flag()) }).map(|_| ())
            }
            Step::SetIds { uid, gid } => set_ids(*uid, *gid),
            Step::NoNewPrivileges => rustix::thread::set_no_new_privs(true),
            Step::NewSession => rustix::process::setsid().map(|_| ()),
            Step::NewGroup => rustix::process::setpgid(None, None),
            Step::ControlTerminal => rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()),
            Step::UnblockSignals => unblock_signals(),
            Step::SchedIdle => sched_idle(),
            Step::UsualPriority => crate::cpu::take_real_time(0),
            // Turned into `Ready::MapIds` by `before_exec`.
            Step::MapIds { .. } => Err(Errno::INVAL),
        },
    }
}

fn die_with_parent(expected: u32) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    if expected == 0 || crate::process::parent() == expected {
        Ok(())
    } else {
        Err(Errno::SRCH)
    }
}

fn set_ids(uid: u32, gid: u32) -> rustix::io::Result<()> {
    // SAFETY: an empty list needs no pointer.
    match checked(unsafe { libc::setgroups(0, std::ptr::null()) }) {
        Ok(_) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    // SAFETY: no pointers.
    checked(unsafe { libc::setresgid(gid, gid, gid) })?;
    // SAFETY: no pointers.
    checked(unsafe { libc::setresuid(uid, uid, uid) }).map(|_| ())
}

fn unblock_signals() -> rustix::io::Result<()> {
    // SAFETY: sigset_t is plain data that sigemptyset initialises; the old mask is not asked for.
    let status = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut())
    };
    if status == 0 {
        Ok(())
    } else {
        Err(Errno::from_raw_os_error(status))
    }
}

fn sched_idle() -> rustix::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` is a live local.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_taken_in_order() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "ps -o pid= -o sid= -o cls= -p $$"]);
        before_exec(
            &mut command,
            vec![Step::NewSession, Step::SchedIdle, Step::UnblockSignals],
        );
        before_exec(
            &mut command,
            vec![Step::DieWithParent {
                expected: std::process::id(),
            }],
        );
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(
            words.len() == 3 && words[0] == words[1] && words[2] == "IDL",
            "{text}"
        );
    }

    #[test]
    fn a_refusal_comes_back() {
        let mut command = Command::new("/bin/true");
        before_exec(
            &mut command,
            vec![Step::DieWithParent { expected: u32::MAX }],
        );
        assert_eq!(
            command.spawn().unwrap_err().raw_os_error(),
            Some(libc::ESRCH)
        );
    }
}
