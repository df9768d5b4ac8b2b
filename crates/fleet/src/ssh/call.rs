//! One `ssh` to one host, from its start to the agent's marker.
//!
//! Model:   the remote command is `host.sh` on one line. It greets with what the host is, past whatever shell and server
//!          say; then the program is written if it is wanted, and the agent's marker awaited. Every wait ends.
//! Checked: `the_remote_line_reaches_any_shell`, `a_copy_runs_without_a_name`, `a_greeting_is_read`,
//!          `programs_name_their_machine`; `tests/lab_ssh.rs`.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sha2::{Digest, Sha256};
use sonde_channel::{Woken, readable};
use sonde_probe::AgentLink;
use sonde_sys::exec::{Step, before_exec};
use sonde_sys::thread;

use super::greeting::{Greeter, Greeting, Heard, NOISE_BYTES_MAX};
use super::{SshOptions, advice};
use crate::agent::{Agent, Body, ErrorTail, end_process};
use crate::error::{FleetError, Result};
use crate::target::Target;

/// What log-in and shell may take beside the connection.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest that a copy may stand still.
const COPY_TIMEOUT: Duration = Duration::from_secs(15);
/// From its start to the agent's marker.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// A pipe that polls as writable takes this much without blocking: PIPE_BUF.
const PIECE_BYTES: usize = 4_096;
const ATTEMPT: &str = "start an agent by ssh";

/// The program that hosts are to run.
pub(crate) struct Program {
    bytes: Vec<u8>,
    sha256: String,
}

impl Program {
    /// Reads it.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| {
            let attempt = format!("read the program {} for the hosts", path.display());
            FleetError::of_all(attempt, error, "run sonde from a file that is still there")
        })?;
        let sha256 = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Self { bytes, sha256 })
    }

    /// The remote command: `host.sh` on one line.
    pub(super) fn remote_line(&self) -> String {
        let lines = include_str!("host.sh").lines().map(str::trim);
        let script: Vec<&str> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        format!(
            "exec sh -c '{}' sonde {} {}",
            script.join(" "),
            self.sha256,
            self.bytes.len()
        )
    }

    /// The machines that run it, as `uname -m` says them; empty where this sonde does not know them.
    fn machines(&self) -> &'static [&'static str] {
        // ELF: e_machine at 18, little-endian on all of these.
        match self.bytes.get(18..20) {
            Some([62, 0]) => &["x86_64", "amd64"],
            Some([183, 0]) => &["aarch64", "arm64"],
            Some([243, 0]) => &["riscv64"],
            Some([21, 0]) => &["ppc64le"],
            _ => &[],
        }
    }
}

/// An ssh that was started and has not greeted.
pub(crate) struct Calling {
    target: Target,
    destination: String,
    child: Option<Child>,
    to: ChildStdin,
    from: ChildStdout,
    said: ErrorTail,
}

/// Starts ssh to a host. It dies with the calling thread, which must be the main one.
pub(crate) fn call(target: &Target, options: &SshOptions, program: &Program) -> Result<Calling> {
    let mut command = options.command(target, program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let expected = std::process::id();
    before_exec(
        &mut command,
        vec![Step::DieWithParent { expected }, Step::NewGroup],
    );
    let failed = |happened: sonde_sys::Error, remedy: &str| {
        FleetError::at(&target.name, ATTEMPT, happened, remedy).and_lost()
    };
    let mut child = command.spawn().map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => "install the OpenSSH client (openssh-client)",
            _ => "",
        };
        failed(
            thread::refused(&options.program.display().to_string(), error),
            remedy,
        )
    })?;
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(to), Some(from), Some(error)) = streams else {
        unreachable!("all three were asked for");
    };
    let said = ErrorTail::collect(error).map_err(|error| {
        // It may have ended by itself.
        drop(child.kill());
        drop(child.wait());
        failed(error, "")
    })?;
    Ok(Calling {
        destination: target.user.as_ref().map_or_else(
            || target.host.clone(),
            |user| format!("{user}@{}", target.host),
        ),
        target: target.clone(),
        child: Some(child),
        to,
        from,
        said,
    })
}

impl Calling {
    /// Goes on until the agent runs; the address at which the host was reached, if it says one.
    pub(crate) fn greet(
        mut self,
        options: &SshOptions,
        program: &Program,
    ) -> Result<(Agent, Option<IpAddr>)> {
        let timeout = options.connect_timeout + LOGIN_TIMEOUT;
        let greeting = self.hear_greeting(timeout)?;
        self.check(&greeting, program)?;
        if greeting.has_program == Some(false) {
            self.copy(program)?;
        }
        let name = self.target.name.clone();
        // The streams stay with the link, the child with the agent.
        let opened = (
            self.from.as_fd().try_clone_to_owned(),
            self.to.as_fd().try_clone_to_owned(),
        );
        let (Ok(from), Ok(to)) = opened else {
            return Err(self.failed(
                "no descriptor is left".into(),
                "raise the limit of open files: `ulimit -n`",
            ));
        };
        let link = AgentLink::open(
            &*name,
            std::fs::File::from(from),
            std::fs::File::from(to),
            START_TIMEOUT,
        );
        let link = link.map_err(|error| {
            let said = self.said.text();
            let happened = if said.is_empty() { error.to_string() } else { format!("{error}; it said: {said}") };
            let remedy = "let the host run the static program that `make build` makes, and see whether its system is older than 2015";
            self.failed(happened, remedy)
        })?;
        let child = self.child.take().expect("it is taken once, here");
        Ok((
            Agent::new(link, Body::Process(child), self.said.clone()),
            greeting.server,
        ))
    }

    fn hear_greeting(&mut self, timeout: Duration) -> Result<Greeting> {
        let end = Instant::now() + timeout;
        let mut greeter = Greeter::default();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if !matches!(readable(&[self.from.as_fd()], left), Ok(Woken::Readable(_))) {
                let happened = format!("no shell answered within {} s", timeout.as_secs());
                return Err(self.failed(happened, "see what its log-in waits for"));
            }
            // What follows the greeting is the agent's.
            let mut byte = [0];
            if self.from.read(&mut byte).unwrap_or(0) == 0 {
                return Err(self.refused());
            }
            let [byte] = byte;
            match greeter.on_byte(byte) {
                Heard::Nothing => {}
                Heard::Greeting(greeting) => return Ok(greeting),
                Heard::Noise => {
                    let happened = format!(
                        "its shell wrote {NOISE_BYTES_MAX} bytes without running the command"
                    );
                    return Err(self.failed(
                        happened,
                        "let the shell's start-up files write nothing without a terminal",
                    ));
                }
            }
        }
    }

    /// ssh or the shell ended before the host said anything.
    fn refused(&mut self) -> FleetError {
        let said = self.said.text();
        let status = self
            .child
            .as_mut()
            .and_then(|child| end_process(child, Instant::now() + START_TIMEOUT));
        let status = status.unwrap_or_else(|| "ended before it ran the command".into());
        let happened = if said.is_empty() {
            format!("ssh {status}")
        } else {
            said
        };
        let remedy = advice::remedy(&happened, &self.destination);
        self.failed(happened, &remedy)
    }

    fn check(&self, greeting: &Greeting, program: &Program) -> Result<()> {
        if greeting.system != "Linux" {
            let happened = format!("it runs {}", greeting.system);
            return Err(self.failed(happened, "name hosts that run Linux"));
        }
        let machines = program.machines();
        if !machines.is_empty() && !machines.contains(&&*greeting.machine) {
            let happened = format!(
                "it is {}, and this program is for {}",
                greeting.machine, machines[0]
            );
            return Err(self.failed(
                happened,
                "name hosts of one architecture, and start from one of them",
            ));
        }
        if greeting.has_program.is_none() {
            let happened = format!(
                "none of its folders takes a program of {} KiB and lets it run",
                program.bytes.len() / 1_024
            );
            let remedy = "give it room in /dev/shm, /tmp or the home folder, on a file system without `noexec`, or install this very sonde in its PATH";
            return Err(self.failed(happened, remedy));
        }
        Ok(())
    }

    /// Writes the program, never more at a time than the pipe takes without blocking.
    fn copy(&mut self, program: &Program) -> Result<()> {
        let total = program.bytes.len();
        let timeout = Timespec {
            tv_sec: COPY_TIMEOUT.as_secs() as _,
            tv_nsec: 0,
        };
        for (index, piece) in program.bytes.chunks(PIECE_BYTES).enumerate() {
            let ready = loop {
                let mut list = [PollFd::new(&self.to, PollFlags::OUT)];
                match poll(&mut list, Some(&timeout)) {
                    Err(rustix::io::Errno::INTR) => {}
                    ready => break ready,
                }
            };
            let written = match ready {
                Ok(0) => Err(format!("it took nothing for {} s", COPY_TIMEOUT.as_secs())),
                Ok(_) => self.to.write_all(piece).map_err(|error| error.to_string()),
                Err(errno) => Err(errno.to_string()),
            };
            if let Err(problem) = written {
                let said = self.said.text();
                let happened = format!(
                    "{problem} after {} of {total} bytes of the program {said}",
                    index * PIECE_BYTES
                );
                let remedy = advice::remedy(&said, &self.destination);
                return Err(self.failed(happened.trim_end().into(), &remedy));
            }
        }
        Ok(())
    }

    fn failed(&self, happened: String, remedy: &str) -> FleetError {
        FleetError::at(&self.target.name, ATTEMPT, happened, remedy).and_lost()
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself, and was then waited for.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn program(bytes: &[u8]) -> Program {
        Program {
            bytes: bytes.into(),
            sha256: "00".repeat(32),
        }
    }

    #[test]
    fn the_remote_line_reaches_any_shell() {
        let line = program(b"1234567").remote_line();
        let script = line.strip_prefix("exec sh -c '").unwrap();
        let (script, arguments) = script.split_once('\'').unwrap();
        // No quote of any shell ends here, and csh's history and fish's escapes have nothing to work on.
        assert!(!script.contains(['\'', '\\', '!', '\n']), "{script}");
        assert_eq!(arguments, format!(" sonde {} 7", "00".repeat(32)));
        assert!(script.ends_with("exec /proc/self/fd/4 agent;"), "{script}");
        let parsed = Command::new("sh")
            .args(["-n", "-c", script])
            .status()
            .unwrap();
        assert!(parsed.success());
    }

    #[test]
    fn a_copy_runs_without_a_name() {
        // The program is a script here, which needs its file by name: what is checked is what reaches the exec.
        let stand_in = b"#!/bin/sh\necho started; ls -l /proc/$$/fd/4; cat\n";
        let folder = std::env::temp_dir().join(format!("sonde-copy-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", &program(stand_in).remote_line()])
            .env("XDG_RUNTIME_DIR", &folder)
            .env("SSH_CONNECTION", "10.9.0.1 41000 10.9.0.3 22")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut to = child.stdin.take().unwrap();
        to.write_all(stand_in).unwrap();
        to.write_all(b"end of input\n").unwrap();
        drop(to);
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let left = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(left, 0, "a file was left: {text}");
        assert!(text.contains("\nsonde-host/1 want Linux "), "{text}");
        assert!(
            text.contains("started") && text.contains("(deleted)"),
            "{text}"
        );
        assert!(text.ends_with("end of input\n"), "{text}");
    }

    #[test]
    fn a_greeting_is_read() {
        let greeting = Greeting::parse("want Linux x86_64 10.9.0.1 41000 10.9.0.3 22").unwrap();
        assert_eq!(greeting.has_program, Some(false));
        assert_eq!(greeting.machine, "x86_64");
        assert_eq!(greeting.server, Some("10.9.0.3".parse().unwrap()));
        let bare = Greeting::parse("have Linux aarch64 - - - -").unwrap();
        assert_eq!((bare.has_program, bare.server), (Some(true), None));
        for bad in [
            "",
            "have",
            "maybe Linux x86_64 a 1 b 2",
            "have Linux x86_64 a 1 b",
        ] {
            assert!(Greeting::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn programs_name_their_machine() {
        let own = Program::read(Path::new("/proc/self/exe")).unwrap();
        let machine = Command::new("uname").arg("-m").output().unwrap().stdout;
        let machine = String::from_utf8(machine).unwrap();
        assert!(own.machines().contains(&machine.trim()), "{machine}");
        assert!(program(b"#!/bin/sh\n        ").machines().is_empty());
        assert_eq!(own.sha256.len(), 64);
    }
}
