//! `sonde lab run`, `shell` and `exec`: programs on emulated hosts.
//!
//! Model:   the program's streams are the command's; its end is the command's end. An interrupt goes to the program, a
//!          second one ends the lab. A shell has a terminal of its own in its host, joined to the command's.

use crate::cli::ProgramOptions;
use crate::failure::Failure;
use crate::testbed::LabOptions;
use sonde_lab::{Ended, Exec, Lab, Session, Terminal};
use sonde_link::Command;
use sonde_sys::epoll::{Epoll, Event, Interest};
use sonde_sys::process::SignalFd;
use sonde_sys::pty::{self, RawTerminal};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const SIGWINCH: i32 = 28;

/// `sonde lab run`.
pub fn run(
    options: &LabOptions,
    program: &ProgramOptions,
    each: bool,
    command: &[OsString],
) -> Result<i32, Failure> {
    let signals = SignalFd::new(&[SIGHUP, SIGINT, SIGTERM])?;
    let (lab, config) = options.start()?;
    announce(&lab);
    let exec = Exec {
        cpus: config.cpus.hosts,
        ..exec_here(command, program.root)
    };
    let hosts = if each { 1..=lab.hosts() } else { 1..=1 };
    let mut sessions = Vec::new();
    for host in hosts {
        sessions.push(lab.exec(host, &exec, streams())?.0);
    }
    let code = follow(&sessions, &signals)?;
    finish(lab, program)?;
    Ok(code)
}

/// `sonde lab shell`.
pub fn shell(options: &LabOptions, program: &ProgramOptions) -> Result<i32, Failure> {
    if !pty::is_terminal(std::io::stdin()) {
        return Err(Failure::usage(
            "a shell needs a terminal; `sonde lab run -- sh script` runs without one",
        ));
    }
    let signals = SignalFd::new(&[SIGHUP, SIGTERM, SIGWINCH])?;
    let (lab, config) = options.start()?;
    announce(&lab);
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let size = pty::window_size(std::io::stdin())?;
    let exec = Exec {
        cpus: config.cpus.hosts,
        terminal: Some((size.rows, size.columns)),
        ..exec_here(&[shell], program.root)
    };
    let (session, terminal) = lab.exec(1, &exec, streams())?;
    let Terminal(terminal) = terminal.ok_or_else(|| Failure::cannot("h1 gave no terminal"))?;
    let raw = RawTerminal::enter(std::io::stdin())?;
    let ended = relay(&session, File::from(terminal), &signals);
    drop(raw);
    let code = ended?.code();
    finish(lab, program)?;
    Ok(code)
}

/// `sonde lab exec`, inside a lab.
pub fn exec(host: u16, detached: bool, root: bool, command: &[OsString]) -> Result<i32, Failure> {
    let signals = SignalFd::new(&[SIGHUP, SIGINT, SIGTERM])?;
    let exec = Exec {
        detached,
        ..exec_here(command, root)
    };
    let (session, _) = Session::inside(host, &exec, streams())?;
    if detached {
        Ok(0)
    } else {
        follow(&[session], &signals)
    }
}

/// `sonde lab tell`, inside a lab.
pub fn tell(text: &str) -> Result<i32, Failure> {
    let words = match text.split_once(' ') {
        Some((name, rest)) if name.starts_with("eth") => rest,
        _ => text,
    };
    // What is written wrongly is said here; the rest by the network.
    words.parse::<Command>().map_err(Failure::usage)?;
    sonde_lab::tell(text)?;
    Ok(0)
}

/// A program with this process's environment and folder.
pub fn exec_here(command: &[OsString], root: bool) -> Exec {
    Exec {
        argv: command.to_vec(),
        environment: std::env::vars_os().collect(),
        directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        root,
        detached: false,
        terminal: None,
        cpus: Vec::new(),
    }
}

fn streams() -> [BorrowedFd<'static>; 3] {
    // The standard streams are open for as long as the process lives.
    static STREAMS: std::sync::OnceLock<(std::io::Stdin, std::io::Stdout, std::io::Stderr)> =
        std::sync::OnceLock::new();
    let (input, output, error) =
        STREAMS.get_or_init(|| (std::io::stdin(), std::io::stdout(), std::io::stderr()));
    [input.as_fd(), output.as_fd(), error.as_fd()]
}

/// Says what the lab is, where that is not what was asked for first.
fn announce(lab: &Lab) {
    if let Some(reason) = &lab.info().attachment_reason {
        eprintln!("sonde: hosts are attached by veth: {reason}");
    }
    if sonde_sys::cpu::online().is_ok_and(|online| online.len() == 1) {
        eprintln!("sonde: there is one CPU for switch and programs: deliveries will often be late");
    }
    for note in &lab.info().notes {
        eprintln!("sonde: note: {note}");
    }
}

/// Waits for all programs, passing signals on; the first code that is not 0. A second interrupt ends them.
fn follow(sessions: &[Session], signals: &SignalFd) -> Result<i32, Failure> {
    let epoll = Epoll::new()?;
    let token = sessions.len() as u64;
    epoll.add(signals, token, Interest::Read)?;
    for (index, session) in sessions.iter().enumerate() {
        epoll.add(session.fd(), index as u64, Interest::Read)?;
    }
    let (mut left, mut code, mut interrupts) = (sessions.len(), 0, 0);
    let mut events = [Event::EMPTY; 8];
    while left > 0 {
        for event in epoll.wait(&mut events, None)?.to_vec() {
            if event.token() < token {
                let session = &sessions[event.token() as usize];
                let ended = session.wait()?;
                epoll.remove(session.fd())?;
                left -= 1;
                code = if code == 0 { ended.code() } else { code };
                continue;
            }
            while let Some(arrival) = signals.read()? {
                interrupts += 1;
                if interrupts > 1 {
                    return Ok(Ended::Signal(arrival.signal).code());
                }
                sessions
                    .iter()
                    .try_for_each(|session| session.signal(arrival.signal))?;
            }
        }
    }
    Ok(code)
}

/// Joins two terminals until the program ends.
fn relay(session: &Session, mut terminal: File, signals: &SignalFd) -> Result<Ended, Failure> {
    let (input, ours, theirs, end) = (std::io::stdin(), 0, 1, 2);
    // Unbuffered: what is typed goes on at once.
    let keyboard = File::from(
        input
            .as_fd()
            .try_clone_to_owned()
            .map_err(|e| Failure::cannot(format!("cannot read the terminal: {e}")))?,
    );
    let epoll = Epoll::new()?;
    epoll.add(&input, ours, Interest::Read)?;
    epoll.add(&terminal, theirs, Interest::Read)?;
    epoll.add(session.fd(), end, Interest::Read)?;
    epoll.add(signals, 3, Interest::Read)?;
    let broken = |e: std::io::Error| Failure::cannot(format!("the terminal is gone: {e}"));
    let mut output = std::io::stdout();
    let (mut buffer, mut events) = ([0; 4_096], [Event::EMPTY; 4]);
    loop {
        let ready: Vec<u64> = epoll
            .wait(&mut events, None)?
            .iter()
            .map(Event::token)
            .collect();
        for token in ready {
            match token {
                0 => {
                    let count = (&keyboard).read(&mut buffer).map_err(broken)?;
                    terminal.write_all(&buffer[..count]).map_err(broken)?;
                }
                1 => match terminal.read(&mut buffer) {
                    Ok(count) if count > 0 => output
                        .write_all(&buffer[..count])
                        .and_then(|()| output.flush())
                        .map_err(broken)?,
                    // The last program on the terminal has closed it; its end is told on the session.
                    Ok(_) | Err(_) => return Ok(session.wait()?),
                },
                2 => {
                    let ended = session.wait()?;
                    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
                        output
                            .write_all(&buffer[..count])
                            .and_then(|()| output.flush())
                            .map_err(broken)?;
                    }
                    return Ok(ended);
                }
                _ => {
                    while let Some(arrival) = signals.read()? {
                        if arrival.signal != SIGWINCH {
                            return Ok(Ended::Signal(arrival.signal));
                        }
                        pty::set_window_size(&terminal, pty::window_size(&input)?)?;
                    }
                }
            }
        }
    }
}

/// Says whether the emulation was true to the model, writes the report if asked for, and ends the lab.
fn finish(lab: Lab, program: &ProgramOptions) -> Result<(), Failure> {
    let report = lab.report()?;
    let failures = if report.deliveries == 0 {
        Vec::new()
    } else {
        report.failures()
    };
    if !failures.is_empty() {
        eprintln!("sonde: not true to the model: {}", failures.join("; "));
    }
    if let Some(path) = &program.report {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::cannot)?;
        std::fs::write(path, text + "\n")
            .map_err(|e| Failure::cannot(format!("cannot write {}: {e}", path.display())))?;
    }
    lab.stop().map_err(Failure::from)
}
