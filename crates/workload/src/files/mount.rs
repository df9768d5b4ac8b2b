//! A client on a socket: a mount that does one job after the other.
//!
//! Model:   one thread, one socket. Over UDP a datagram that the kernel does not take now is sent later; over TCP a connection that is
//!          lost is made again and told all that is not answered, for as long as the mount may go without progress.
//! Units:   nanoseconds, bytes.
//! Checked: `crates/workload/tests/files_sockets.rs`, `files_partners.rs`.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant as Clock};

use sonde_sys::clock::monotonic_ns;
use sonde_sys::socket;
use sonde_units::{Instant, Span};

use super::client::{Calls, Timers};
use super::counts::{self, Counts};
use super::nfs::Handle;
use super::session::{Done, Failure, Job, Session, Terms};
use super::sockets::{self, Broken, Connection, DATAGRAM_BYTES, Wanted};

/// Between attempts at a connection that was lost.
const AGAIN: Duration = Duration::from_millis(100);
/// Bytes of calls that wait for a connection before no more are written.
const OUT_BYTES_MAX: usize = 4 << 20;

/// Over what calls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// A datagram each.
    Udp,
    /// Records of a stream.
    Tcp,
}

/// How a client reaches its server.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Over what.
    pub over: Over,
    /// The server.
    pub server: SocketAddr,
    /// The address to send from; none leaves it to the routes.
    pub source: Option<IpAddr>,
    /// When calls are sent again, over UDP.
    pub timers: Timers,
    /// The longest without an answer.
    pub limit: Duration,
    /// What stands in the credential as the machine's name.
    pub token: Vec<u8>,
    /// The receive buffer; none leaves it to the kernel.
    pub receive_buffer: Option<u64>,
}

/// Why a mount did not do its job.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The server refused, or gave what it should not.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// It does not answer.
    #[error("{server} answered nothing for {:.3} s", waited.as_secs_f64())]
    Silence {
        /// Which.
        server: SocketAddr,
        /// How long.
        waited: Duration,
    },
    /// A socket failed.
    #[error("cannot {what} {server}: {source}")]
    Socket {
        /// What was attempted.
        what: &'static str,
        /// With whom.
        server: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The connection is of no use.
    #[error("{server}: {source}")]
    Broken {
        /// With whom.
        server: SocketAddr,
        /// Why.
        source: Broken,
    },
}

#[derive(Debug)]
enum Link {
    Udp(UdpSocket),
    Tcp(Connection),
}

/// A client and its socket.
#[derive(Debug)]
pub struct Mount {
    session: Session,
    reach: Reach,
    link: Link,
    /// For calls outside of a session: counts.
    aside: Calls,
    /// A datagram that the kernel had no room for.
    held: Option<Vec<u8>>,
    began_ns: u64,
    buffer: Vec<u8>,
}

impl Mount {
    /// Opens the socket, and of a stream the connection. `first` is the identifier of the first call, another at each mount of a
    /// host, so that a server does not take calls of one for those of another.
    ///
    /// # Errors
    /// The kernel refuses; nobody is there.
    pub fn open(reach: Reach, terms: Terms, first: u32) -> Result<Self, Trouble> {
        let timers = match reach.over {
            Over::Udp => Some(reach.timers),
            Over::Tcp => None,
        };
        let link = connect(&reach)?;
        Ok(Self {
            session: Session::new(terms, Calls::new(timers, reach.token.clone(), first)),
            aside: Calls::new(timers, reach.token.clone(), first ^ 0x8000_0000),
            link,
            reach,
            held: None,
            began_ns: monotonic_ns(),
            buffer: vec![0; DATAGRAM_BYTES],
        })
    }

    /// The client, to look at.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The client.
    pub const fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Datagrams that its own socket had no room for.
    pub fn dropped(&self) -> u64 {
        match &self.link {
            Link::Udp(socket) => sockets::dropped(socket).unwrap_or(0),
            Link::Tcp(_) => 0,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.began_ns))
    }

    /// Does a job.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn run(&mut self, job: Job) -> Result<Done, Trouble> {
        self.session.begin(job);
        let mut since = Clock::now();
        let mut answered = self.session.answered();
        loop {
            let moved = self.receive(None).and_then(|()| self.transmit(false));
            if let Some(outcome) = self.session.poll_outcome() {
                return Ok(outcome?);
            }
            if let Err(broken) = moved.and_then(|()| self.wait(self.session.poll_at())) {
                self.reconnect(broken, since)?;
            }
            if answered != self.session.answered() {
                (answered, since) = (self.session.answered(), Clock::now());
            }
            self.check(since)?;
        }
    }

    /// The handle of what is exported under a path.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn mount(&mut self, path: &[u8]) -> Result<Handle, Trouble> {
        let path = path.to_vec();
        let done = self.run(Job::Mount { path })?;
        done.handle.ok_or(Trouble::Failure(Failure::GivenUp))
    }

    /// What the server has counted.
    ///
    /// # Errors
    /// [`Trouble`]; of a server of another make that it does not have the program.
    pub fn counts(&mut self) -> Result<Counts, Trouble> {
        self.aside.call(counts::PROCEDURE, 0, |_| {});
        let since = Clock::now();
        let mut found = None;
        loop {
            let moved = self
                .receive(Some(&mut found))
                .and_then(|()| self.transmit(true));
            if let Some(found) = found {
                return Ok(found?);
            }
            if let Err(broken) = moved.and_then(|()| self.wait(self.aside.poll_at())) {
                self.reconnect(broken, since)?;
                self.aside.on_reconnected();
            }
            self.check(since)?;
        }
    }

    fn check(&self, since: Clock) -> Result<(), Trouble> {
        let waited = since.elapsed();
        if waited > self.reach.limit {
            let server = self.reach.server;
            return Err(Trouble::Silence { server, waited });
        }
        Ok(())
    }

    /// A connection that was lost is made again, until the mount has gone too long without an answer.
    fn reconnect(&mut self, broken: Broken, since: Clock) -> Result<(), Trouble> {
        let server = self.reach.server;
        if let Broken::Malformed(_) = broken {
            let source = broken;
            return Err(Trouble::Broken { server, source });
        }
        loop {
            if since.elapsed() > self.reach.limit {
                let source = broken;
                return Err(Trouble::Broken { server, source });
            }
            match connect(&self.reach) {
                Ok(link) => {
                    self.link = link;
                    self.session.on_reconnected();
                    return Ok(());
                }
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    }

    /// Waits until something comes, there is room for what waits, or `at`.
    fn wait(&self, at: Option<Instant>) -> Result<(), Broken> {
        let now = self.now();
        let mut sleep = at.map_or(self.reach.limit, |at| {
            let left = if at > now { at.since(now) } else { Span::ZERO };
            Duration::from_nanos(left.as_nanos())
        });
        let write = self.held.is_some() || self.waiting() > 0;
        if write {
            // Timers that are due wait for room too.
            sleep = sleep.max(Duration::from_millis(1));
        }
        let socket = match &self.link {
            Link::Udp(socket) => socket.as_fd(),
            Link::Tcp(connection) => connection.as_fd(),
        };
        let wanted = Wanted {
            socket,
            read: true,
            write,
        };
        sockets::wait(&[wanted], sleep.min(self.reach.limit))?;
        Ok(())
    }

    fn waiting(&self) -> usize {
        match &self.link {
            Link::Udp(_) => 0,
            Link::Tcp(connection) => connection.waiting(),
        }
    }

    fn transmit(&mut self, is_aside: bool) -> Result<(), Broken> {
        if let Link::Tcp(connection) = &mut self.link {
            connection.flush()?;
        }
        loop {
            if let (Some(held), Link::Udp(socket)) = (&self.held, &self.link) {
                if !sockets::send_to(socket, held, None)? {
                    return Ok(());
                }
                self.held = None;
            }
            let now = self.now();
            match &mut self.link {
                Link::Udp(socket) => {
                    let message = if is_aside {
                        self.aside.poll_transmit(now)
                    } else {
                        self.session.poll_transmit(now)
                    };
                    let Some(message) = message else {
                        return Ok(());
                    };
                    if !sockets::send_to(socket, message, None)? {
                        self.held = Some(message.to_vec());
                    }
                }
                Link::Tcp(connection) => {
                    if connection.waiting() >= OUT_BYTES_MAX {
                        return Ok(());
                    }
                    let message = if is_aside {
                        self.aside.poll_transmit(now)
                    } else {
                        self.session.poll_transmit(now)
                    };
                    let Some(message) = message else {
                        return Ok(());
                    };
                    connection.send(message)?;
                }
            }
        }
    }

    /// Takes in all that has come, up to the counts that are asked for.
    fn receive(
        &mut self,
        mut found: Option<&mut Option<Result<Counts, Failure>>>,
    ) -> Result<(), Broken> {
        loop {
            let now = Instant::from_nanos(monotonic_ns().saturating_sub(self.began_ns));
            let message = match &mut self.link {
                Link::Udp(socket) => match socket.recv(&mut self.buffer) {
                    Ok(length) => &self.buffer[..length],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::Interrupted | ErrorKind::ConnectionRefused
                        ) =>
                    {
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
                Link::Tcp(connection) => match connection.poll_record()? {
                    Some(record) => record,
                    None => match connection.fill()? {
                        true => continue,
                        false => return Ok(()),
                    },
                },
            };
            let asked = found.as_deref_mut();
            let answer =
                asked.and_then(|found| Some((found, self.aside.on_message(now, message)?)));
            match answer {
                Some((found, answer)) => {
                    *found = Some(match answer.results {
                        Ok(mut from) => Counts::read(&mut from).map_err(Failure::from),
                        Err(rejected) => Err(rejected.into()),
                    });
                    return Ok(());
                }
                None => self.session.on_message(now, message),
            }
        }
    }
}

fn connect(reach: &Reach) -> Result<Link, Trouble> {
    let server = reach.server;
    let failed = |what: &'static str| {
        move |source: std::io::Error| Trouble::Socket {
            what,
            server,
            source,
        }
    };
    match reach.over {
        Over::Udp => {
            let any: IpAddr = if server.is_ipv4() {
                std::net::Ipv4Addr::UNSPECIFIED.into()
            } else {
                std::net::Ipv6Addr::UNSPECIFIED.into()
            };
            let bound = UdpSocket::bind((reach.source.unwrap_or(any), 0));
            let socket = bound.map_err(failed("open a socket for"))?;
            let opened = socket
                .connect(server)
                .and_then(|()| socket.set_nonblocking(true));
            opened.map_err(failed("reach"))?;
            if let Some(bytes) = reach.receive_buffer {
                let set = socket::set_recv_buffer(&socket, bytes as usize);
                set.map_err(|error| {
                    failed("set the receive buffer for")(std::io::Error::other(error))
                })?;
            }
            Ok(Link::Udp(socket))
        }
        Over::Tcp => {
            let stream = sockets::dial(server, reach.source, reach.limit, |_| Ok(()))
                .map_err(failed("connect to"))?;
            let connection = Connection::new(stream).map_err(failed("use the connection to"))?;
            Ok(Link::Tcp(connection))
        }
    }
}
