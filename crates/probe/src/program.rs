//! A program that an agent runs on its host: a rank, `mpirun`, a daemon.
//!
//! Model:   the program leads a process group of its own and has a mark in its environment, which all that it starts
//!          inherits. However it ends (by itself, by its limit, by a stop, by the end of the agent), afterwards no process
//!          with the mark is left on the host: a program that is to end gets SIGTERM, so that a launcher ends what it has
//!          started elsewhere, and after a grace everything that has the mark is killed, group or not. The worker that
//!          does this outlives its agent for so long.
//! Units:   nanoseconds on CLOCK_MONOTONIC; bytes.
//! Checked: `tests/program.rs`: output, code and signal, limit, stop, an agent that is killed, children in sessions of their
//!          own; `what_is_too_long_is_cut`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sonde_channel::{Woken, readable};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::exec::{Step, before_exec};
use sonde_sys::{process, processes, thread};

use crate::{Error, Result, frame, token};

/// The most of a program's standard output that is kept: the begin of it. It fits a frame, however it is written in JSON.
pub const OUTPUT_BYTES_MAX: usize = 2 << 20;
/// The most of its standard error: the end of it.
const ERRORS_BYTES_MAX: usize = 16 << 10;
/// What a program may take to end after it was told to.
const GRACE: Duration = Duration::from_millis(1_000);
/// Rounds of killing: what starts others meanwhile is found in the next.
const ROUNDS: u32 = 50;
/// Rounds after which a process without an environment has none, and is not amid the start of a program.
const EXEC_ROUNDS: u32 = 10;
/// The longest that a program may be given.
const LIMIT_NS_MAX: u64 = 24 * 3_600 * 1_000_000_000;
/// In the environment of everything that a program starts: what no other run has, and the worker that started it, by its number and
/// when it began.
pub const MARK: &str = "SONDE_PROGRAM";
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name or path, and its arguments.
    pub argv: Vec<String>,
    /// Added to the agent's own environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its working directory; null is the agent's.
    #[serde(default)]
    pub directory: Option<String>,
    /// Its standard input; null is empty.
    #[serde(default)]
    pub input: Option<String>,
    /// After this it is ended.
    pub limit_ns: u64,
}

/// Why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOf {
    /// By itself.
    Itself,
    /// It was still running at its limit.
    Limit,
    /// It was stopped.
    Stop,
}

/// What became of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// Why it ended.
    pub end: EndOf,
    /// Its exit code; null where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its standard output, at most [`OUTPUT_BYTES_MAX`] bytes of its begin; what is no UTF-8 is replaced.
    pub output: String,
    /// Bytes of its standard output beyond those.
    pub output_beyond: u64,
    /// The end of its standard error.
    pub errors: String,
    /// When it was started, by the host's CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// From there to its end.
    pub took_ns: u64,
}

impl Program {
    /// A program with these arguments, for at most `limit`.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>, limit: Duration) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            directory: None,
            input: None,
            limit_ns: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    fn name(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Unmeasurable { what, remedy });
        if self.name().is_empty() {
            return refuse("there is no program to run".into(), "name one");
        }
        let bad = |text: &String| text.contains('\0');
        if self.argv.iter().any(bad) || self.environment.values().any(bad) {
            return refuse(
                format!("an argument of `{}` has a zero byte in it", self.name()),
                "leave it out",
            );
        }
        if self.limit_ns == 0 || self.limit_ns > LIMIT_NS_MAX {
            return refuse(
                format!("a program cannot be limited to {} ns", self.limit_ns),
                "ask for up to a day",
            );
        }
        Ok(())
    }

    fn start(&self, mark: &str) -> Result<Child> {
        let mut command = Command::new(self.name());
        command
            .args(self.argv.iter().skip(1))
            .envs(&self.environment)
            .env(MARK, mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        // Its own group, so that it is ended with what it starts; should this worker be killed, it is too.
        let expected = std::process::id();
        before_exec(
            &mut command,
            vec![Step::NewGroup, Step::DieWithParent { expected }],
        );
        command.spawn().map_err(|error| Error::Setting {
            what: format!("cannot run `{}` on this host: {error}", self.name()),
            remedy: match error.kind() {
                std::io::ErrorKind::NotFound => "install it there, or give its path",
                _ => "look at the program's permissions, and at the host's memory",
            }
            .into(),
        })
    }
}

impl Ran {
    /// How it ended, in words: `ended with code 1`, `was killed by signal 9`, `did not end within 3.000 s`.
    pub fn told(&self) -> String {
        match (self.end, self.code, self.signal) {
            (EndOf::Limit, ..) => {
                format!("did not end within {:.3} s", self.took_ns as f64 / 1e9)
            }
            (EndOf::Stop, ..) => "was stopped".into(),
            (EndOf::Itself, Some(code), _) => format!("ended with code {code}"),
            (EndOf::Itself, None, Some(signal)) => format!("was killed by signal {signal}"),
            (EndOf::Itself, None, None) => "ended".into(),
        }
    }
}

/// Runs it, until its end, its limit, a stop or the end of `from`.
pub(crate) fn run(program: &Program, from: &mut File) -> Result<Ran> {
    program.check()?;
    let mark = mark()?;
    // From here on the end of the input is what ends this worker, after it has ended the program.
    process::outlive_parent()?;
    // A signal to the agent's group is none to the one that cleans up.
    drop(process::setsid());
    let began_ns = monotonic_ns();
    let mut child = program.start(&mark)?;
    let group = child.id();
    let streams = Streams::begin(&mut child, program);
    let watched = match &streams {
        Ok(_) => watch(&child, program.limit_ns, from),
        // It is ended, and what it is for is told.
        Err(_) => Ok(Some(EndOf::Stop)),
    };
    if !matches!(watched, Ok(Some(EndOf::Itself))) {
        // It may have ended just now.
        drop(process::kill_group(group, SIGTERM));
        drop(process::end_of(group).map(|end| readable(&[end.as_fd()], GRACE)));
    }
    // Until it is collected its id is nobody else's.
    drop(process::kill_group(group, SIGKILL));
    let status = child.wait();
    end_marked(&mark);
    let took_ns = monotonic_ns().saturating_sub(began_ns);
    let Streams {
        writer,
        output,
        errors,
    } = streams?;
    let (output, output_beyond) = output.map_or_else(Default::default, joined);
    let (errors, _) = errors.map_or_else(Default::default, joined);
    // Everybody who could read its other end is gone.
    drop(writer.map(JoinHandle::join));
    let Some(end) = watched? else {
        return Err(Error::Abandoned);
    };
    let status = status.map_err(|source| Error::Control {
        what: format!("collect `{}`", program.name()),
        source,
    })?;
    Ok(Ran {
        end,
        code: status.code(),
        signal: ExitStatus::signal(&status),
        output,
        output_beyond,
        errors,
        began_ns,
        took_ns,
    })
}

/// The threads at a program's standard streams.
struct Streams {
    writer: Option<JoinHandle<()>>,
    output: Option<Collected>,
    errors: Option<Collected>,
}

type Collected = JoinHandle<(Vec<u8>, u64)>;

impl Streams {
    fn begin(child: &mut Child, program: &Program) -> Result<Self> {
        let input = child.stdin.take().zip(program.input.clone());
        let writer = input.map(|(mut to, text)| {
            // Who reads no input has none.
            thread::start("the writer of a program's input", move || {
                drop(to.write_all(text.as_bytes()));
            })
        });
        let output = child.stdout.take().map(|from| collect(from, true));
        let errors = child.stderr.take().map(|from| collect(from, false));
        Ok(Self {
            writer: writer.transpose()?,
            output: output.transpose()?,
            errors: errors.transpose()?,
        })
    }
}

/// Waits for what ends the program; none is the end of the input.
fn watch(child: &Child, limit_ns: u64, from: &mut File) -> Result<Option<EndOf>> {
    let end = process::end_of(child.id())?;
    let until = Instant::now() + Duration::from_nanos(limit_ns);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let woken = readable(&[end.as_fd(), from.as_fd()], left);
        match woken.map_err(|source| Error::Control {
            what: "wait for a program".into(),
            source,
        })? {
            Woken::Readable(0) => return Ok(Some(EndOf::Itself)),
            Woken::Readable(_) => match frame::read(from)? {
                None => return Ok(None),
                // Whatever it is: nothing else is said to a program that runs.
                Some(_) => return Ok(Some(EndOf::Stop)),
            },
            Woken::Silence if left.is_zero() => return Ok(Some(EndOf::Limit)),
            Woken::Silence => {}
        }
    }
}

/// Reads to the end on a thread of its own: the begin or the end of it is kept, and how much was beyond that.
fn collect(mut from: impl Read + Send + 'static, begin: bool) -> Result<Collected> {
    let collecting = move || {
        let mut kept = Excerpt::new(begin);
        let mut piece = [0; 16 << 10];
        loop {
            match from.read(&mut piece) {
                Ok(count @ 1..) => kept.take(piece.get(..count).unwrap_or(&piece)),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return (kept.bytes, kept.beyond),
            }
        }
    };
    Ok(thread::start(
        "the reader of a program's output",
        collecting,
    )?)
}

/// The begin or the end of what came.
struct Excerpt {
    begin: bool,
    bytes: Vec<u8>,
    beyond: u64,
}

impl Excerpt {
    fn new(begin: bool) -> Self {
        Self {
            begin,
            bytes: Vec::new(),
            beyond: 0,
        }
    }

    fn take(&mut self, piece: &[u8]) {
        let cut = if self.begin {
            let room = OUTPUT_BYTES_MAX.saturating_sub(self.bytes.len());
            let (fits, cut) = piece.split_at_checked(room).unwrap_or((piece, &[]));
            self.bytes.extend_from_slice(fits);
            cut.len()
        } else {
            self.bytes.extend_from_slice(piece);
            let beyond = self.bytes.len().saturating_sub(ERRORS_BYTES_MAX);
            self.bytes.drain(..beyond);
            beyond
        };
        self.beyond = self.beyond.saturating_add(cut as u64);
    }
}

fn joined(reader: JoinHandle<(Vec<u8>, u64)>) -> (String, u64) {
    // It does nothing that could panic; without it there is nothing to tell.
    let (bytes, beyond) = reader.join().unwrap_or_default();
    (String::from_utf8_lossy(&bytes).into_owned(), beyond)
}

fn mark() -> Result<String> {
    let own = std::process::id();
    let began = processes::began(own).unwrap_or_default();
    Ok(format!("{}.{own}.{began}", token()?))
}

/// The worker that a mark names: its number, and when it began.
pub fn worker_of(mark: &str) -> Option<(u32, u64)> {
    let (rest, began) = mark.rsplit_once('.')?;
    let (_, pid) = rest.rsplit_once('.')?;
    Some((pid.parse().ok()?, began.parse().ok()?))
}

/// Kills all processes that have the mark, also those that left the group, until there is none.
fn end_marked(mark: &str) {
    let entry = format!("{MARK}={mark}");
    let since = worker_of(mark).map_or(0, |(_, began)| began);
    for round in 0..ROUNDS {
        let found = marked(entry.as_bytes(), since);
        let is_over = |one: &Marked| matches!(one, Marked::Begins) && round >= EXEC_ROUNDS;
        if found.iter().all(is_over) {
            return;
        }
        for one in found {
            if let Marked::Is(pid) = one {
                // It may have ended just now.
                drop(process::kill(pid, SIGKILL));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that has the mark, or may have it.
enum Marked {
    /// It has.
    Is(u32),
    /// It has no environment: it is amid execve(2), or was given none.
    Begins,
}

/// The processes whose environment has this entry, and of those that began `since` then those whose environment is not there. What other
/// users have cannot be read, and is none of ours.
fn marked(entry: &[u8], since: u64) -> Vec<Marked> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let has = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        // What has ended, and a thread of the kernel, has no program either.
        let begins = || {
            let has_program = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
            has_program && processes::began(pid).is_some_and(|began| began >= since)
        };
        match environment.is_empty() {
            true => begins().then_some(Marked::Begins),
            false => entries.any(|one| one == entry).then_some(Marked::Is(pid)),
        }
    };
    processes
        .filter_map(|process| has(process.ok()?.file_name().to_str()?.parse().ok()?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut() {
        let mut begin = Excerpt::new(true);
        begin.take(&vec![b'a'; OUTPUT_BYTES_MAX - 1]);
        begin.take(b"bc");
        begin.take(b"d");
        assert_eq!((begin.bytes.len(), begin.beyond), (OUTPUT_BYTES_MAX, 2));
        assert_eq!(begin.bytes.last(), Some(&b'b'));
        let mut end = Excerpt::new(false);
        end.take(&[b'a'; ERRORS_BYTES_MAX]);
        end.take(b"bc");
        assert_eq!((end.bytes.len(), end.beyond), (ERRORS_BYTES_MAX, 2));
        assert!(end.bytes.ends_with(b"abc"));
    }

    #[test]
    fn programs_are_checked() {
        let refused = |program: Program, said: &str| {
            let error = program.check().unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        };
        let second = Duration::from_secs(1);
        refused(Program::new([""; 0], second), "no program");
        refused(Program::new(["a\0b"], second), "zero byte");
        refused(Program::new(["a"], Duration::ZERO), "limited to 0 ns");
        let error = Program::new(["/no/such/program"], second)
            .start("m")
            .unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
        assert!(error.remedy().contains("install"), "{error}");
    }
}
