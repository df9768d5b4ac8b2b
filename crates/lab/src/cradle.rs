//! The nest of processes: cradle, switch, inits, each a fresh start of this program.
//!
//! Model:   the command starts the cradle, which moves into a new user and pid namespace before it has a second thread, and
//!          waits for its id maps and becomes the lab's root; then it starts the switch, the first process of the lab. Each dies with its parent: by
//!          the parent-death signal, and by the end of its socket as the second guard. The inits of the hosts need no
//!          signal: when the first process of a pid namespace ends, the kernel kills all the others.
//! Checked: the end-to-end tests kill each of them at random moments.

use crate::control::{Answer, Request, TalkError, hear, say};
use crate::{host, rsh, switch};
use sonde_sys::namespace::{self, Kind, Namespaces};
use sonde_sys::{clock, process};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

/// First arguments of the hidden programs.
pub const CRADLE: &str = "--sonde-lab-cradle";
const SWITCH: &str = "--sonde-lab-switch";
pub(crate) const HOST: &str = "--sonde-lab-host";
pub(crate) const LENDER: &str = "--sonde-lab-lender";

/// Runs the part of the lab that this process was started as, or a remote shell in it, and gives its exit code; none for any
/// other process. To be called first of all, before a thread exists.
pub fn entry() -> Option<i32> {
    let mut arguments = std::env::args_os().skip(1);
    let part = arguments.next()?;
    let mut parent = || {
        arguments
            .next()
            .and_then(|pid| pid.to_str()?.parse().ok())
            .unwrap_or(0)
    };
    match part.to_str()? {
        CRADLE => Some(cradle(parent())),
        SWITCH => Some(switch::run()),
        HOST => Some(host::run()),
        LENDER => Some(host::lend_user_namespace()),
        rsh::REMOTE_SHELL => Some(rsh::run(arguments)),
        _ => None,
    }
}

/// Starts a part with `socket` as its standard input.
pub(crate) fn start(part: &str, socket: OwnedFd) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(part).arg(std::process::id().to_string());
    command
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .spawn()
}

fn cradle(parent: u32) -> i32 {
    let socket = std::io::stdin();
    match nest(&socket, parent) {
        Ok(code) => code,
        Err(problem) => {
            // If the command is gone too there is nobody left to tell.
            drop(say(&socket, &Answer::Failed(problem), &[]));
            1
        }
    }
}

fn nest(socket: impl AsFd, parent: u32) -> Result<i32, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    // A terminal's interrupt is the command's to handle: the nest is no part of its foreground group.
    process::setsid().map_err(|e| text(&e))?;
    process::die_with_parent(parent).map_err(|e| text(&e))?;
    namespace::unshare(Namespaces::of(&[Kind::User])).map_err(|e| explain(&e))?;
    say(&socket, &Answer::Unshared, &[]).map_err(|e| text(&e))?;
    match hear::<Request>(&socket) {
        Ok((Request::Mapped, _)) => {}
        Ok(_) | Err(TalkError::Ended) => {
            return Err("the command ended before the lab began".into());
        }
        Err(e) => return Err(text(&e)),
    }
    if process::ids().0 != 0 {
        // Root outside, but not in the lab: from here on this is the lab's root, who is nobody outside.
        process::set_ids(0, 0).map_err(|e| text(&e))?;
        process::die_with_parent(parent).map_err(|e| text(&e))?;
    }
    process::leave_keyring().map_err(|e| text(&e))?;
    namespace::unshare(Namespaces::of(&[Kind::Pid])).map_err(|e| explain(&e))?;
    let copy = socket.as_fd().try_clone_to_owned().map_err(|e| text(&e))?;
    // The switch has it from here: who loses real-time priority has the slack that it began with.
    clock::timer_slack_min().map_err(|e| text(&e))?;
    let mut switch = start(SWITCH, copy).map_err(|e| format!("cannot start the switch: {e}"))?;
    let status = switch.wait().map_err(|e| text(&e))?;
    Ok(status.code().unwrap_or(1))
}

/// What stands in the way of namespaces, with the remedy; else what the kernel said.
fn explain(error: &sonde_sys::Error) -> String {
    match namespace::obstacle() {
        Ok(Some(obstacle)) => obstacle.to_string(),
        Ok(None) | Err(_) => error.to_string(),
    }
}
