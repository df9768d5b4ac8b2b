//! The agent: it obeys one orchestrator over two byte streams, its stdio.
//!
//! Model:   it writes the marker, then for each request frame its answers (see [`crate::Request`]). What is measured is
//!          measured by a worker: a fresh start of the program for every conversation, so that none inherits warm memory,
//!          learned times or a bad placement from the one before, and a launch is a fresh pair of processes. The agent
//!          itself sleeps meanwhile; it hands whole frames on, requests to the worker's standard input and answers from its
//!          standard output. A worker that dies is an answered failure that names it. What goes wrong in a conversation
//!          is an answer; the end of the input ends the worker and the agent, as does a stream that is not frames.
//!          The worker dies with the agent, by the parent-death signal and by the end of its input; one that runs a program
//!          by the latter alone, when it has ended it.
//! Checked: `tests/conversation.rs`, `tests/trouble.rs`; `a_bad_request_is_answered`.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sonde_channel::{Options, Woken, readable};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::{cpu, process, tell, thread};

use sonde_measure::{Probe, Procedure, Wait};

use crate::frame::{self, FrameError};
use crate::host::{Changes, GUARD, guard, recover};
use crate::{
    Answer, Error, Measure, Measured, Request, Result, Serve, Served, anatomy, facts, interfaces,
    load, pattern, placed, program, rate, serve, startup, stream, trips,
};

/// The first argument of a worker; see [`entry`].
pub const WORKER: &str = "--sonde-worker";
/// An orchestrator that has settings changed and says nothing for so long is taken for gone: a connection that was cut
/// without a word would leave them changed for as long as TCP's keepalive waits, which is hours.
const LEASE: Duration = Duration::from_secs(600);
/// The agent waits for something to happen in pieces of this.
const LONG: Duration = Duration::from_secs(3_600);
/// For how long copies are made, and the largest of them.
const COPY_SPAN: Duration = Duration::from_millis(50);
const COPY_BYTES_MAX: u32 = 4 << 20;
/// What a worker may take to end the program that it runs.
const ENDING: Duration = Duration::from_millis(2_500);
/// What a worker may write before its marker.
const NOISE_BYTES_MAX: usize = 64 << 10;

/// Takes the number of the port that is open now.
pub type Opened<'a> = &'a mut dyn FnMut(u16) -> Result<()>;

/// What measures files: a workload, which this room does not see, handed in by the program.
#[derive(Debug, Clone, Copy)]
pub struct FileService {
    /// Serves until a descriptor can be read; says the number of its port as soon as it is open.
    pub serve: fn(&Serve, BorrowedFd<'_>, Opened<'_>) -> Result<Served>,
    /// Measures against a serving peer.
    pub measure: fn(&Measure) -> Result<Measured>,
}

/// Plays the worker, or the guard of changed settings, if this program was started as one, and gives its exit code; `None` for any other start. To be called
/// first of all in `main` of a program that calls [`run`]; `files` is what measures files, where the program has it.
pub fn entry(files: Option<&FileService>) -> Option<i32> {
    let first = std::env::args_os().nth(1)?;
    match first.to_str()? {
        WORKER => Some(work(std::io::stdin(), std::io::stdout(), files)),
        GUARD => Some(guard(std::io::stdin(), std::io::stdout())),
        _ => None,
    }
}

/// Obeys until the input ends. Workers are fresh starts of this program, from which [`entry`] must be called; it may have
/// been unlinked since it was started.
///
/// The input is read below any buffer of its own, since its readiness means that the orchestrator says something: give
/// a descriptor from which nothing was read ahead. Workers die with the thread that calls this: let it be the main thread.
///
/// # Errors
/// The streams fail, or the input is no sequence of frames.
pub fn run(from: impl AsFd, to: impl Write) -> Result<()> {
    run_with(from, to, || {
        let mut command = Command::new("/proc/self/exe");
        command.arg(WORKER);
        command
    })
}

/// Obeys until the input ends, with workers that `worker` starts: programs that call [`work`] on their stdio.
///
/// # Errors
/// Those of [`run`].
pub fn run_with(
    from: impl AsFd,
    mut to: impl Write,
    mut worker: impl FnMut() -> Command,
) -> Result<()> {
    let mut from = unbuffered(from)?;
    let mut restored = recover();
    restored
        .iter()
        .for_each(|words| tell!("sonde agent: {words}"));
    greet(&mut to)?;
    let mut said_meanwhile = None;
    // Puts everything back at the end, whichever it is.
    let mut changes = Changes::default();
    loop {
        let body = match said_meanwhile.take() {
            Some(body) => body,
            None => {
                if !changes.is_empty() {
                    heard(&from, LEASE)?;
                }
                match read_request(&mut from, &mut to)? {
                    Some(body) => body,
                    None => return Ok(()),
                }
            }
        };
        let answer = match frame::parse::<Request>(&body) {
            Ok(Request::Stop {} | Request::Abort {} | Request::Steer(_)) => continue,
            Ok(Request::Clock {}) => Ok(Answer::Clock {
                monotonic_ns: monotonic_ns(),
            }),
            Ok(Request::Source { peer }) => Ok(source(peer)),
            Ok(Request::Facts { peer }) => Ok(describe(peer, std::mem::take(&mut restored))),
            Ok(Request::Interfaces {}) => interfaces::here().map(Answer::Interfaces),
            Ok(Request::Go(_)) => Err(Error::Abandoned),
            Ok(Request::Settings(asked)) => changes
                .make(&asked)
                .map(|changes| Answer::Settings { changes }),
            Ok(Request::PutBack {}) => changes.put_back().map(|()| no_changes()),
            Ok(Request::Copy { bytes }) => copy(bytes),
            Ok(Request::Keep {}) => {
                changes.keep();
                Ok(no_changes())
            }
            Ok(
                Request::Serve(_)
                | Request::Measure(_)
                | Request::Load(_)
                | Request::Join(_)
                | Request::Run(_),
            ) => match delegate(&body, &mut from, &mut to, &mut worker) {
                Ok(After::Answered(said)) => {
                    said_meanwhile = said;
                    continue;
                }
                Ok(After::InputEnded) => return Ok(()),
                Err(error @ Error::Frame(_)) => return Err(error),
                Err(error) => Err(error),
            },
            Err(error) => Err(error.into()),
        };
        frame::write(&mut to, &answer.unwrap_or_else(|error| failed(&error)))?;
    }
}

/// Plays the worker: one request, its answers, the end. Gives the exit code.
pub fn work(from: impl AsFd, mut to: impl Write, files: Option<&FileService>) -> i32 {
    let worked = unbuffered(from).and_then(|mut from| {
        // Should the agent have ended before this, the input has ended too.
        process::die_with_parent(process::parent())?;
        greet(&mut to)?;
        let Some(body) = read_request(&mut from, &mut to)? else {
            return Ok(());
        };
        let request = frame::parse::<Request>(&body)?;
        if !is_prompt(&request) {
            cpu::usual_priority(0)?;
        }
        let answer = match request {
            Request::Measure(request) => measure(&request, files).map(Answer::Measured),
            Request::Serve(request) => serve_one(&request, &from, &mut to, files),
            Request::Load(request) => load::work(&request, &mut from, &mut to),
            Request::Join(request) => pattern::take_part(&request, &mut from, &mut to),
            Request::Run(request) => program::run(&request, &mut from).map(Answer::Ran),
            _ => Err(Error::Abandoned),
        };
        Ok(frame::write(
            &mut to,
            &answer.unwrap_or_else(|error| failed(&error)),
        )?)
    });
    match worked {
        Ok(()) => 0,
        Err(error) => {
            tell!("sonde worker: {error}");
            1
        }
    }
}

/// Whether a worker keeps the real-time priority that a lab's agents have: where it has one message under way and sleeps till the next, so
/// that it and its peer cannot keep a CPU from others for long, and have one together.
fn is_prompt(request: &Request) -> bool {
    let spec = match request {
        Request::Measure(request) => &request.spec,
        Request::Serve(request) => &request.spec,
        _ => return false,
    };
    let is_of_one = matches!(
        spec.probe(),
        Probe::Startup | Probe::Latency | Probe::Anatomy
    );
    is_of_one && spec.wait == Wait::Block
}

fn unbuffered(from: impl AsFd) -> Result<File> {
    let owned = from.as_fd().try_clone_to_owned();
    Ok(File::from(owned.map_err(control("read requests"))?))
}

fn greet(to: &mut impl Write) -> Result<()> {
    to.write_all(frame::MARKER)
        .and_then(|()| to.flush())
        .map_err(control("greet the orchestrator"))
}

fn control(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Control {
        what: what.into(),
        source,
    }
}

/// The address that the kernel's routes choose; nothing is sent.
fn source(peer: IpAddr) -> Answer {
    let local = Options::new(Wait::Block).local(SocketAddr::new(peer, 0));
    // Any port does: a socket for datagrams is only told whom it is for.
    let address = UdpSocket::bind(local)
        .and_then(|socket| socket.connect(SocketAddr::new(peer, 9)).map(|()| socket))
        .and_then(|socket| socket.local_addr());
    Answer::Source {
        address: address.ok().map(|address| address.ip()),
    }
}

fn describe(peer: Option<IpAddr>, restored: Vec<String>) -> Answer {
    Answer::Facts {
        facts: Box::new(facts::here(peer)),
        restored,
    }
}

/// Waits until the orchestrator says something, or has ended.
fn heard(from: &File, lease: Duration) -> Result<()> {
    match readable(&[from.as_fd()], lease).map_err(control("wait for a request"))? {
        Woken::Readable(_) => Ok(()),
        Woken::Silence => Err(Error::Setting {
            what: format!(
                "the orchestrator sent nothing for {} s while settings of this host were changed: they are restored",
                lease.as_secs()
            ),
            remedy: "look at the connection to this host, and run it again".into(),
        }),
    }
}

fn copy(bytes: u32) -> Result<Answer> {
    let bytes = bytes.clamp(1, COPY_BYTES_MAX) as usize;
    let bps = sonde_sys::host::copy_bps(bytes, COPY_SPAN);
    bps.map(|bps| Answer::Copy { bps })
        .ok_or_else(|| Error::Setting {
            what: format!("the kernel copies no {bytes} bytes through a pair of UNIX sockets"),
            remedy: "look at the limits of this host's memory and sockets".into(),
        })
}

fn no_changes() -> Answer {
    Answer::Settings {
        changes: Vec::new(),
    }
}

fn failed(error: &Error) -> Answer {
    Answer::Failed {
        what: error.to_string(),
        remedy: error.remedy(),
    }
}

/// The next body; what is not a frame is answered before it ends the agent.
fn read_request(from: &mut File, to: &mut impl Write) -> Result<Option<Vec<u8>>> {
    match frame::read(from) {
        Err(error @ (FrameError::TooLong(_) | FrameError::Truncated { .. })) => {
            let error = Error::from(error);
            // The orchestrator may be gone already; the error itself is what counts.
            let _ = frame::write(to, &failed(&error));
            Err(error)
        }
        read => Ok(read?),
    }
}

/// How a delegated request ended.
enum After {
    /// With what the orchestrator said meanwhile.
    Answered(Option<Vec<u8>>),
    InputEnded,
}

/// A running worker; it does not outlive this.
struct Worker {
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    /// It has programs to end when its input ends.
    ends_itself: bool,
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.to.take());
        let until = Instant::now() + ENDING;
        while self.ends_itself
            && Instant::now() < until
            && matches!(self.child.try_wait(), Ok(None))
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    fn start(mut command: Command, body: &[u8]) -> Result<Self> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| thread::refused("a worker", error))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let mut worker = Self {
            child,
            to,
            from: from.expect("its standard output is a pipe"),
            ends_itself: false,
        };
        worker.tell(body)?;
        Ok(worker)
    }

    /// Ends it, whatever it does.
    fn kill(&mut self) {
        // It fails only for one that has ended.
        let _ = self.child.kill();
    }

    /// Hands a request's body on.
    fn tell(&mut self, body: &[u8]) -> Result<()> {
        let Some(to) = &mut self.to else {
            return Ok(());
        };
        let length = (body.len() as u32).to_be_bytes();
        let told = to.write_all(&[&length, body].concat());
        match told {
            // It has ended: the end of its output tells.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            told => told.map_err(control("tell a worker what to do")),
        }
    }

    /// Passes over what comes before the marker.
    fn pass_noise(&mut self) -> Result<bool> {
        let mut seen = Vec::new();
        let mut byte = [0];
        while !seen.ends_with(frame::MARKER) {
            let read = self.from.read(&mut byte);
            match read.map_err(control("hear a worker"))? {
                1 if seen.len() < NOISE_BYTES_MAX => seen.push(byte[0]),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The failure that its death is.
    fn death(&mut self, doing: &str) -> Answer {
        let pid = self.child.id();
        let how = match self.child.wait() {
            Ok(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => format!("was killed by signal {signal}"),
                (None, Some(code)) => format!("ended with code {code}"),
                (None, None) => "ended".into(),
            },
            Err(error) => format!("is lost ({error})"),
        };
        Answer::Failed {
            what: format!("the worker (process {pid}) {how} while it {doing}"),
            remedy: "look at the agent's standard error, and whether memory ran out: `dmesg`"
                .into(),
        }
    }
}

/// Has a worker do what `body` says, and hands its answers on.
fn delegate(
    body: &[u8],
    from: &mut File,
    to: &mut impl Write,
    start: &mut impl FnMut() -> Command,
) -> Result<After> {
    let mut worker = Worker::start(start(), body)?;
    worker.ends_itself = matches!(frame::parse(body), Ok(Request::Run(_)));
    let doing = match frame::parse::<Request>(body) {
        Ok(Request::Serve(_)) => "served",
        Ok(Request::Load(_)) => "made a load",
        Ok(Request::Join(_)) => "took part in a pattern",
        Ok(Request::Run(_)) => "ran a program",
        _ => "measured",
    };
    let (mut greeted, mut meanwhile) = (false, None);
    loop {
        let woken = readable(&[worker.from.as_fd(), from.as_fd()], LONG);
        match woken.map_err(control("wait for a worker"))? {
            Woken::Silence => {}
            Woken::Readable(0) => {
                if !greeted && worker.pass_noise()? {
                    greeted = true;
                    // What it says next may take long: meanwhile the orchestrator is heard.
                    continue;
                }
                let answer = if greeted {
                    frame::read(&mut worker.from).unwrap_or(None)
                } else {
                    None
                };
                let Some(answer) = answer else {
                    frame::write(to, &worker.death(doing))?;
                    return Ok(After::Answered(meanwhile));
                };
                let more = matches!(
                    frame::parse(&answer),
                    Ok(Answer::Serving { .. } | Answer::Loading(_) | Answer::Went(_))
                );
                relay(to, &answer)?;
                if !more {
                    return Ok(After::Answered(meanwhile));
                }
            }
            Woken::Readable(_) => match read_request(from, to)? {
                // The worker is of no use to anybody any more.
                None => return Ok(After::InputEnded),
                // The end of its output tells. One that runs a program ends that first.
                Some(said) if !worker.ends_itself && is_abort(&said) => worker.kill(),
                // Whatever it is, it ends the wait for a peer; other than a stop it is also done afterwards.
                Some(said) => {
                    worker.tell(&said)?;
                    // A round is for the worker alone.
                    if !matches!(frame::parse(&said), Ok(Request::Go(_))) {
                        meanwhile = Some(said);
                    }
                }
            },
        }
    }
}

fn is_abort(said: &[u8]) -> bool {
    matches!(frame::parse(said), Ok(Request::Abort {}))
}

fn relay(to: &mut impl Write, body: &[u8]) -> Result<()> {
    let length = (body.len() as u32).to_be_bytes();
    let written = to
        .write_all(&[&length, body].concat())
        .and_then(|()| to.flush());
    Ok(written.map_err(FrameError::from)?)
}

fn serve_one(
    request: &Serve,
    from: &File,
    to: &mut impl Write,
    files: Option<&FileService>,
) -> Result<Answer> {
    request.spec.check()?;
    let settled = placed::serving(request)?;
    let mut opened = |port: u16| Ok(frame::write(to, &Answer::Serving { port })?);
    let mut served = if let Procedure::Files(_) = request.spec.procedure {
        let serve = files.ok_or_else(no_files)?.serve;
        serve(request, from.as_fd(), &mut opened)?
    } else {
        let port = serve::open(request)?;
        opened(port.number())?;
        port.serve(request, from.as_fd())?
    };
    served.evidence.dst.place.merge(settled);
    Ok(Answer::Served(served))
}

fn no_files() -> Error {
    Error::Unmeasurable {
        what: "this program has no service of files".into(),
        remedy: "run the agent of sonde itself",
    }
}

fn measure(request: &Measure, files: Option<&FileService>) -> Result<Measured> {
    request.spec.check()?;
    let settled = placed::measuring(request)?;
    let mut measured = match request.spec.procedure {
        Procedure::Startup(startup) => startup::measure(request, startup),
        Procedure::Latency(sampling) | Procedure::Message(sampling) => {
            trips::measure(request, sampling)
        }
        Procedure::Stream { window_ns } => stream::measure(request, window_ns),
        Procedure::Anatomy(quota) => anatomy::measure(request, quota),
        Procedure::Rate { pace, quota } => rate::measure(request, (pace, quota)),
        Procedure::Files(_) => (files.ok_or_else(no_files)?.measure)(request),
    }?;
    measured.evidence.src.place.merge(settled);
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    /// What an agent says to these bytes, after the marker, and how it ends.
    fn said(input: &[u8]) -> (Vec<Answer>, Result<()>) {
        let path =
            std::env::temp_dir().join(format!("sonde-agent-{}-{:p}", std::process::id(), input));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(input).unwrap();
        file.rewind().unwrap();
        let mut output = Vec::new();
        let end = run(file, &mut output);
        let mut rest = output.strip_prefix(frame::MARKER).unwrap();
        let mut answers = Vec::new();
        while let Some(body) = frame::read(&mut rest).unwrap() {
            answers.push(frame::parse(&body).unwrap());
        }
        (answers, end)
    }

    #[test]
    fn a_bad_request_is_answered() {
        let input = [
            frame::encode(&"hello").unwrap(),
            frame::encode(&Request::Stop {}).unwrap(),
            frame::encode(&Request::Clock {}).unwrap(),
        ];
        let (answers, end) = said(&input.concat());
        assert!(
            matches!(
                &answers[..],
                [Answer::Failed { what, .. }, Answer::Clock { .. }] if what.contains("something else")
            ),
            "{answers:?}"
        );
        end.unwrap();
    }

    #[test]
    fn what_is_no_frame_ends_the_agent_with_an_error() {
        for (input, words) in [
            (&b"GET / HTTP/1.0\r\n\r\n"[..], "was announced"),
            (&[0, 0, 1][..], "the stream ended"),
        ] {
            let (answers, end) = said(input);
            assert!(
                matches!(&answers[..], [Answer::Failed { what, .. }] if what.contains(words)),
                "{answers:?}"
            );
            assert!(end.unwrap_err().to_string().contains(words));
        }
        let (answers, end) = said(b"");
        assert!(answers.is_empty() && end.is_ok());
    }
}
