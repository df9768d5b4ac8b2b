//! The sockets: one thread takes requests in and gives answers out, whoever is slow.
//!
//! Model:   no socket blocks. A connection is read until its head is whole, waits while its page is made, is written, and then lingers until
//!          the client has closed: bytes that nobody took in would take the answer with them. Each of these has a time limit. There are at
//!          most [`CONNECTIONS_MAX`]; for another one the one whose time is over first makes room. A page that is made and a signal
//!          wake this thread by a byte in a socket pair, so that it sleeps while nothing happens.
//! Source:  RFC 9112 §9.6 for the lingering close. Deviations: none.
//! Units:   bytes; times are of the monotonic clock.
//! Checked: `tests/serve.rs`: slow clients, clients that send more, that leave, and many at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use sonde_sys::{cpu, thread};

use super::pages;
use super::reads::Reads;
use super::reply::Reply;
use super::request::{HEAD_BYTES_MAX, Hosts, Request, parse};
use crate::failure::Failure;

/// The most connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// So many pages are made at a time.
const MAKERS: usize = 2;
/// A head is whole after so long.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// An answer is taken in after so long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A client closes after so long.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// How far a connection is.
enum State {
    /// The head so far.
    Reading(Vec<u8>),
    /// Its page is made.
    Waiting,
    /// The answer, and how much of it is written.
    Writing(Vec<u8>, usize),
    /// All is written.
    Lingering,
}

struct Connection {
    number: u64,
    stream: TcpStream,
    state: State,
    until: Instant,
}

/// What follows from a step of a connection.
enum Next {
    Stay,
    Gone,
    Ask(Request),
}

/// A request whose page is to be made, with the number of its connection.
type Job = (u64, Request);
/// An answer for a connection.
type Made = (u64, Vec<u8>);

/// What answers requests.
pub struct Sockets {
    listener: TcpListener,
    hosts: Hosts,
    policy: &'static str,
    connections: Vec<Connection>,
    next: u64,
    jobs: Sender<Job>,
    made: Receiver<Made>,
    woken: UnixStream,
}

impl Sockets {
    /// Starts those who make pages.
    ///
    /// # Errors
    /// A thread or a socket is refused.
    pub fn new(
        listener: TcpListener,
        hosts: Hosts,
        reads: Reads,
        policy: &'static str,
    ) -> Result<Self, Failure> {
        let cannot = |error: io::Error| Failure::cannot(format!("cannot serve: {error}"));
        listener.set_nonblocking(true).map_err(cannot)?;
        let (wake, woken) = UnixStream::pair().map_err(cannot)?;
        for socket in [&wake, &woken] {
            socket.set_nonblocking(true).map_err(cannot)?;
        }
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            let wake = wake.try_clone().map_err(cannot)?;
            signal_hook::low_level::pipe::register(signal, wake).map_err(cannot)?;
        }
        let (jobs, asked) = channel();
        let (give, made) = channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..MAKERS {
            let (asked, give, reads) = (Arc::clone(&asked), give.clone(), reads.clone());
            let wake = wake.try_clone().map_err(cannot)?;
            let work = move || make(&asked, &give, &wake, &reads, policy);
            thread::start("a maker of pages", work)?;
        }
        Ok(Self {
            listener,
            hosts,
            policy,
            connections: Vec::new(),
            next: 0,
            jobs,
            made,
            woken,
        })
    }

    /// Serves until it is interrupted.
    ///
    /// # Errors
    /// The sockets cannot be waited for.
    pub fn serve(mut self, interrupted: &AtomicBool) -> Result<(), Failure> {
        while !interrupted.load(Ordering::Relaxed) {
            let ready = self.wait();
            let ready = ready.map_err(|e| Failure::cannot(format!("cannot wait: {e}")))?;
            let now = Instant::now();
            // A full pair wakes as well as another byte in it.
            while matches!((&self.woken).read(&mut [0; 64]), Ok(1..)) {}
            self.connections.retain(|one| now < one.until);
            for number in ready {
                self.step(number, now);
            }
            while let Ok((number, bytes)) = self.made.try_recv() {
                self.answer(number, bytes, now);
            }
            self.accept(now);
        }
        Ok(())
    }

    /// Waits for something to do; the connections that have it.
    fn wait(&self) -> io::Result<Vec<u64>> {
        let waited: Vec<(&Connection, PollFlags)> = (self.connections.iter())
            .filter_map(|one| Some((one, one.waits_for()?)))
            .collect();
        let has_room = !self.is_full() || self.replaceable().is_some();
        let entering = match has_room {
            true => PollFlags::IN,
            false => PollFlags::empty(),
        };
        let mut all = vec![
            PollFd::new(&self.woken, PollFlags::IN),
            PollFd::new(&self.listener, entering),
        ];
        let others = all.len();
        all.extend(
            waited
                .iter()
                .map(|(one, flags)| PollFd::new(&one.stream, *flags)),
        );
        let first = self.connections.iter().map(|one| one.until).min();
        let left = first.map(|until| until.saturating_duration_since(Instant::now()));
        // Rounded up, so that it is over when it wakes.
        let left = left.map(|left| left + Duration::from_millis(1));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut all, left.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let ready = all.iter().skip(others).zip(&waited);
        let ready = ready.filter(|(polled, _)| !polled.revents().is_empty());
        Ok(ready.map(|(_, (one, _))| one.number).collect())
    }

    /// The place of the connection that makes room for another: the one whose time is over first, but none whose page is made.
    fn replaceable(&self) -> Option<usize> {
        let all = self.connections.iter().enumerate();
        let all = all.filter(|(_, one)| one.waits_for().is_some());
        all.min_by_key(|(_, one)| one.until).map(|(at, _)| at)
    }

    fn is_full(&self) -> bool {
        self.connections.len() >= CONNECTIONS_MAX
    }

    /// Takes in those who came, while there is room; then one in place of another, so that this one is read before the next takes its
    /// place. Where none makes room they wait to be taken in.
    fn accept(&mut self, now: Instant) {
        let mut is_last = false;
        while !is_last {
            is_last = self.is_full();
            let replaced = self.replaceable().filter(|_| is_last);
            if is_last && replaced.is_none() {
                return;
            }
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if let Some(oldest) = replaced {
                drop(self.connections.remove(oldest));
            }
            self.next += 1;
            self.connections.push(Connection {
                number: self.next,
                stream,
                state: State::Reading(Vec::new()),
                until: now + HEAD_TIMEOUT,
            });
        }
    }

    /// One connection goes on.
    fn step(&mut self, number: u64, now: Instant) {
        let Some(at) = self.place(number) else { return };
        let connection = &mut self.connections[at];
        match connection.step(&self.hosts, self.policy, now) {
            Next::Stay => {}
            Next::Gone => drop(self.connections.remove(at)),
            Next::Ask(request) => {
                let asked = self.jobs.send((number, request));
                asked.expect("the makers outlive the sockets");
            }
        }
    }

    /// Gives an answer to its connection, if that is still there.
    fn answer(&mut self, number: u64, bytes: Vec<u8>, now: Instant) {
        if let Some(at) = self.place(number) {
            self.connections[at].write(bytes, now);
            self.step(number, now);
        }
    }

    fn place(&self, number: u64) -> Option<usize> {
        (self.connections.iter()).position(|one| one.number == number)
    }
}

impl Connection {
    /// What its socket must be ready for; nothing while its page is made.
    fn waits_for(&self) -> Option<PollFlags> {
        match self.state {
            State::Reading(_) | State::Lingering => Some(PollFlags::IN),
            State::Writing(..) => Some(PollFlags::OUT),
            State::Waiting => None,
        }
    }

    /// From now on this is written.
    fn write(&mut self, bytes: Vec<u8>, now: Instant) {
        self.state = State::Writing(bytes, 0);
        self.until = now + ANSWER_TIMEOUT;
    }

    fn step(&mut self, hosts: &Hosts, policy: &str, now: Instant) -> Next {
        let done = match &mut self.state {
            State::Reading(head) => match taken_in(&mut self.stream, head) {
                Ok(0) => return Next::Gone,
                Ok(_) => match parse(head, hosts) {
                    Ok(None) => Ok(()),
                    Ok(Some(request)) => {
                        self.state = State::Waiting;
                        // It is answered, however long that takes.
                        self.until = now + Duration::from_secs(u32::MAX.into());
                        return Next::Ask(request);
                    }
                    Err(refused) => {
                        self.write(Reply::from(refused).bytes(policy, false), now);
                        return self.step(hosts, policy, now);
                    }
                },
                Err(error) => Err(error),
            },
            State::Waiting => Ok(()),
            State::Writing(bytes, written) => match given_out(&mut self.stream, bytes, written) {
                Ok(()) => {
                    self.state = State::Lingering;
                    self.until = now + LINGER_TIMEOUT;
                    self.stream.shutdown(Shutdown::Write)
                }
                Err(error) => Err(error),
            },
            State::Lingering => match self.stream.read(&mut [0; HEAD_BYTES_MAX]) {
                Ok(0) => return Next::Gone,
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            },
        };
        match done {
            Ok(()) => Next::Stay,
            Err(error) if is_later(&error) => Next::Stay,
            Err(_) => Next::Gone,
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Takes in more of a head; never more than it may have.
fn taken_in(stream: &mut TcpStream, head: &mut Vec<u8>) -> io::Result<usize> {
    let room = HEAD_BYTES_MAX.saturating_sub(head.len());
    let mut part = [0; HEAD_BYTES_MAX];
    let part = &mut part[..room];
    let count = stream.read(part)?;
    head.extend_from_slice(&part[..count]);
    Ok(count)
}

/// Gives out the rest of an answer, or as much as goes.
fn given_out(stream: &mut TcpStream, bytes: &[u8], written: &mut usize) -> io::Result<()> {
    while *written < bytes.len() {
        match stream.write(&bytes[*written..])? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => *written += count,
        }
    }
    Ok(())
}

/// Makes pages, and wakes who sends them.
fn make(
    asked: &Mutex<Receiver<Job>>,
    give: &Sender<Made>,
    wake: &UnixStream,
    reads: &Reads,
    policy: &str,
) {
    // Where it is refused pages are made all the same.
    drop(cpu::sched_idle(0));
    loop {
        let job = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, request)) = job else { return };
        let reply = pages::reply(request.place, reads);
        let bytes = reply.bytes(policy, request.is_head);
        if give.send((number, bytes)).is_err() {
            return;
        }
        // A full pair wakes as well.
        let _ = (&*wake).write(&[0]);
    }
}
