//! `sonde lab run`, `shell` and `exec`: programs on emulated hosts.
//!
//! Model:   the program's streams are the command's; its end is the command's end. An interrupt goes to the program, a
//!          second one ends the lab. A shell has a terminal of its own in its host, joined to the command's.

use crate::cli::ProgramOptions;
use crate::failure::Failure;
use crate::testbed::LabOptions;
use sonde_lab::{Ended, Exec, Lab, Session, Terminal, follow, signals};
use sonde_link::Command;
use sonde_sys::epoll::{Epoll, Event, Interest};
use sonde_sys::process::SignalFd;
use sonde_sys::pty::{self, RawTerminal};
use sonde_sys::tell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

const SIGHUP: i32 = 1;
const SIGTERM: i32 = 15;
const SIGWINCH: i32 = 28;

/// What a resource manager says of its own hosts: in the lab it would lead `mpirun` out of it.
const ALLOCATION: [&str; 4] = ["SLURM_", "PBS_", "PMI_", "PMIX_"];

/// A program that goes into a lab with what is set here, but for an allocation outside.
fn entering(command: &[OsString], root: bool) -> Exec {
    let mut exec = Exec::here(command, root);
    let is_outside = |name: &OsString| {
        let name = name.to_string_lossy();
        ALLOCATION.iter().any(|begin| name.starts_with(begin))
    };
    exec.environment.retain(|(name, _)| !is_outside(name));
    exec
}

/// `sonde lab run`.
pub fn run(
    options: &LabOptions,
    program: &ProgramOptions,
    each: bool,
    command: &[OsString],
) -> Result<i32, Failure> {
    let signals = signals()?;
    let (lab, config) = options.start()?;
    announce(&lab);
    let exec = Exec {
        cpus: config.cpus.hosts,
        ..entering(command, program.root)
    };
    let hosts = if each { 1..=lab.hosts() } else { 1..=1 };
    let mut sessions = Vec::new();
    for host in hosts {
        sessions.push(lab.exec(host, &exec, streams())?.0);
    }
    match follow(&sessions, &signals) {
        Ok(code) => {
            finish(lab, program)?;
            Ok(code)
        }
        Err(error) => Err(lab.cause(error).into()),
    }
}

/// `sonde lab shell`.
pub fn shell(options: &LabOptions, program: &ProgramOptions, host: u16) -> Result<i32, Failure> {
    if !pty::is_terminal(std::io::stdin()) {
        return Err(Failure::usage(
            "a shell needs a terminal; `sonde lab run -- sh script` runs without one",
        ));
    }
    let hosts = options.config()?.hosts();
    if host > hosts {
        return Err(Failure::usage(format!(
            "there is no host h{host}: this lab has h1 to h{hosts}"
        )));
    }
    let signals = SignalFd::new(&[SIGHUP, SIGTERM, SIGWINCH])?;
    let (lab, config) = options.start()?;
    announce(&lab);
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let size = pty::window_size(std::io::stdin())?;
    let exec = Exec {
        cpus: config.cpus.hosts,
        terminal: Some((size.rows, size.columns)),
        ..entering(&[shell], program.root)
    };
    let (session, terminal) = lab.exec(host, &exec, streams())?;
    let Terminal(terminal) =
        terminal.ok_or_else(|| Failure::cannot(format!("h{host} gave no terminal")))?;
    let raw = RawTerminal::enter(std::io::stdin())?;
    let ended = relay(&session, File::from(terminal), &signals);
    drop(raw);
    let code = ended?.code();
    finish(lab, program)?;
    Ok(code)
}

/// `sonde lab exec`, inside a lab.
pub fn exec(host: &str, detached: bool, root: bool, command: &[OsString]) -> Result<i32, Failure> {
    let host = sonde_lab::number(host).map_err(Failure::usage)?;
    let signals = signals()?;
    let exec = Exec {
        detached,
        ..Exec::here(command, root)
    };
    let (session, _) = Session::inside(host, &exec, streams())?;
    if detached {
        Ok(0)
    } else {
        Ok(follow(&[session], &signals)?)
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
        tell!("sonde: hosts are attached by veth: {reason}");
    }
    if sonde_sys::cpu::online().is_ok_and(|online| online.len() == 1) {
        tell!("sonde: switch and programs share one CPU: deliveries will often be behind schedule");
    }
    for note in &lab.info().notes {
        tell!("sonde: note: {note}");
    }
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
    let mut broken = lab.broken()?;
    let report = lab.report()?;
    let verdict = report.verdict();
    if report.deliveries > 0 && !verdict.passed() {
        let lag = report.lag().map(|(share, most_ns)| {
            let most = sonde_report::time(most_ns as f64);
            format!(
                " (behind it {:.1} % of the time, by {most} at most)",
                share * 100.0
            )
        });
        let text = format!(
            "the emulation deviated from its model{}: {}",
            lag.unwrap_or_default(),
            verdict.reasons.join("; ")
        );
        if program.strict {
            broken.push(text);
        } else {
            tell!("sonde: {text}");
        }
    }
    if report.attachment.total() > 0 {
        tell!(
            "sonde: frames were lost outside the model: {}",
            report.attachment
        );
    }
    if let Some(path) = &program.report {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::cannot)?;
        let written = std::fs::write(path, text + "\n");
        let unwritten = |e| format!("cannot write {}: {e}", path.display());
        broken.extend(written.err().map(unwritten));
    }
    broken.extend(lab.stop().err().map(|error| error.to_string()));
    match &broken[..] {
        [] => Ok(()),
        broken => Err(Failure::cannot(broken.join("; "))),
    }
}
