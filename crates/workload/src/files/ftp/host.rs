//! A server of FTP on a host's sockets.
//!
//! Model:   a thread waits for clients, and each control connection has a thread, which does one command after the other and moves the bytes of its
//!          transfers itself. Data connections are taken from the client's own address alone. All end when the server does.
//! Source:  RFC 959, RFC 2428, RFC 2577 §3 and §4.
//! Units:   bytes, nanoseconds.
//! Checked: `crates/workload/tests/ftp_sockets.rs`, `ftp_partners.rs`.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant as Clock};

use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use sonde_measure::Socket;
use sonde_measure::files::Representation;
use sonde_sys::{cpu, thread};

use super::data::{Broken, Buffers, Data};
use super::dialogue::{self, Command, Lines, Reply};
use super::flow::{self, Shelf, Terms};
use super::session::{Path, Session, Step, Way, What};
use crate::files::nfs::{Kind, Status};
use crate::files::sockets::{self, Wanted};
use crate::files::store::{File, Store};

/// Control connections at once.
const CLIENTS_MAX: usize = 64;
/// How long a client has to log in, and to make a data connection.
const WELCOME: Duration = Duration::from_secs(10);
/// The longest sleep.
const LONG: Duration = Duration::from_secs(3_600);
/// Names of a directory that are listed at once.
const NAMES_AT_ONCE: usize = 1_000;

/// What a server is given.
#[derive(Debug, Clone)]
pub struct Offer {
    /// What clients must know; empty: anything.
    pub password: Vec<u8>,
    /// What is set of data connections.
    pub buffers: Buffers,
    /// How files are moved; clients choose the representation.
    pub terms: Terms,
    /// A transfer ends after so long without a byte.
    pub limit: Duration,
}

/// A server and its port.
#[derive(Debug)]
pub struct Host<S> {
    listener: TcpListener,
    shelf: Shelf<S>,
    offer: Offer,
    clients: AtomicUsize,
    refused: AtomicU64,
    retransmitted: AtomicU64,
    socket: Mutex<Socket>,
}

impl<S: Store + Send> Host<S> {
    /// Opens a port at an address, any that is free where it is 0.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open(shelf: Shelf<S>, offer: Offer, at: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            shelf,
            offer,
            clients: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            retransmitted: AtomicU64::new(0),
            socket: Mutex::default(),
        })
    }

    /// Where it is.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Its files.
    pub const fn shelf(&self) -> &Shelf<S> {
        &self.shelf
    }

    /// Its files, without the server.
    pub fn into_shelf(self) -> Shelf<S> {
        self.shelf
    }

    /// Clients that did not know the password.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// What the kernel made of the buffers of the last data connection.
    pub fn socket(&self) -> Socket {
        let socket = self.socket.lock();
        socket.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves until `stop` can be read, for at most `limit`; whether it was stopped.
    ///
    /// # Errors
    /// The kernel fails at what concerns all clients.
    pub fn serve(&self, stop: BorrowedFd<'_>, limit: Duration) -> std::io::Result<bool> {
        let (end, ended) = UnixStream::pair()?;
        std::thread::scope(|scope| {
            // Whatever ends this ends the threads: they see the end of the pair.
            let _end = end;
            let until = Clock::now() + limit;
            loop {
                let left = until.saturating_duration_since(Clock::now());
                if left.is_zero() {
                    return Ok(false);
                }
                let all = [reading(stop), reading(self.listener.as_fd())];
                let woken = sockets::wait(&all, left.min(LONG))?;
                if woken[0] {
                    return Ok(true);
                }
                let Ok((stream, peer)) = self.listener.accept() else {
                    continue;
                };
                if self.clients.load(Ordering::Relaxed) >= CLIENTS_MAX {
                    continue;
                }
                self.clients.fetch_add(1, Ordering::Relaxed);
                let ended = ended.as_fd();
                // A thread that is refused ends that client alone.
                let _ = thread::start_in(scope, "a client of FTP", move || {
                    let control = Control {
                        host: self,
                        stream,
                        peer: peer.ip(),
                        ended,
                    };
                    // A client that is gone is no failure of the server.
                    drop(control.run());
                    self.clients.fetch_sub(1, Ordering::Relaxed);
                });
            }
        })
    }
}

const fn reading(socket: BorrowedFd<'_>) -> Wanted<'_> {
    Wanted {
        socket,
        read: true,
        write: false,
    }
}

/// A client and its thread.
struct Control<'h, S> {
    host: &'h Host<S>,
    stream: TcpStream,
    peer: IpAddr,
    ended: BorrowedFd<'h>,
}

impl<'h, S: Store + Send> Control<'h, S> {
    fn run(mut self) -> Result<(), Broken> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_nodelay(true)?;
        self.stream.set_write_timeout(Some(WELCOME))?;
        let mut session = Session::new(self.peer, self.host.offer.password.clone());
        let (mut lines, mut buffer) = (Lines::default(), [0; 1_024]);
        let mut listener: Option<TcpListener> = None;
        let welcome = Clock::now() + WELCOME;
        self.say(&Reply::new(220, "sonde"))?;
        loop {
            while let Some(line) = lines.poll_line().map_err(std::io::Error::other)? {
                let step = session.on_command(Command::parse(&line));
                let reply = match step {
                    Step::Close(reply) => return self.say(&reply),
                    Step::TurnAway(reply) => {
                        self.host.refused.fetch_add(1, Ordering::Relaxed);
                        return self.say(&reply);
                    }
                    Step::Listen { extended } => self.listen(extended, &mut listener)?,
                    Step::Transfer {
                        way,
                        what,
                        representation,
                    } => self.transfer(way, what, representation, listener.take())?,
                    Step::Enter(path) => match self.directory(&path) {
                        Ok(_) => {
                            session.enter(path);
                            Reply::new(250, "Directory successfully changed.")
                        }
                        Err(status) => Reply::new(550, status.to_string()),
                    },
                    step => self.answer(step),
                };
                self.say(&reply)?;
            }
            let left = match session.is_in() {
                true => LONG,
                false => welcome.saturating_duration_since(Clock::now()),
            };
            if left.is_zero() {
                return self.say(&Reply::new(421, "Timeout."));
            }
            let all = [reading(self.ended), reading(self.stream.as_fd())];
            let woken = sockets::wait(&all, left)?;
            if woken[0] {
                return self.say(&Reply::new(421, "The server ends."));
            }
            if woken[1] {
                match self.stream.read(&mut buffer)? {
                    0 => return Ok(()),
                    count => lines.push(&buffer[..count]),
                }
            }
        }
    }

    fn say(&mut self, reply: &Reply) -> Result<(), Broken> {
        Ok(self.stream.write_all(&reply.write())?)
    }

    /// What needs no data connection.
    fn answer(&self, step: Step) -> Reply {
        let done = match step {
            Step::Say(reply) => Ok(reply),
            Step::Size(path) => self
                .size(&path)
                .map(|size| Reply::new(213, size.to_string())),
            Step::Hash(path) => {
                let hash = self.file(&path).and_then(|file| self.host.shelf.hash(file));
                hash.map(|hash| Reply::new(213, hash))
            }
            Step::Delete(path) => self.delete(&path).map(|()| Reply::new(250, "Deleted.")),
            Step::Counts => {
                let sent_again = self.host.retransmitted.load(Ordering::Relaxed);
                Ok(Reply::new(
                    213,
                    format!("{} {sent_again}", cpu::thread_cpu_ns()),
                ))
            }
            // The others are done where the control connection is.
            _ => Ok(Reply::new(502, "That is not offered.")),
        };
        done.unwrap_or_else(|status| Reply::new(550, status.to_string()))
    }

    fn directory(&self, path: &Path) -> Result<File, Status> {
        self.host.shelf.with(|store| {
            let walk = |at, name: &Vec<u8>| store.lookup(at, name);
            let at = path.iter().try_fold(File::ROOT, walk)?;
            match store.attributes(at)?.kind {
                Kind::Directory => Ok(at),
                _ => Err(Status::NotDirectory),
            }
        })
    }

    fn file(&self, path: &Path) -> Result<File, Status> {
        self.host.shelf.with(|store| {
            let walk = |at, name: &Vec<u8>| store.lookup(at, name);
            let at = path.iter().try_fold(File::ROOT, walk)?;
            match store.attributes(at)?.kind {
                Kind::Directory => Err(Status::IsDirectory),
                _ => Ok(at),
            }
        })
    }

    fn size(&self, path: &Path) -> Result<u64, Status> {
        let file = self.file(path)?;
        let shelf = &self.host.shelf;
        Ok(shelf.with(|store| store.attributes(file))?.size_bytes)
    }

    fn delete(&self, path: &Path) -> Result<(), Status> {
        self.file(path)?;
        let (name, above) = path.split_last().ok_or(Status::IsDirectory)?;
        let directory = self.directory(&above.to_vec())?;
        self.host.shelf.with(|store| store.remove(directory, name))
    }

    /// Opens a port for a data connection at the address of the control connection.
    fn listen(&self, extended: bool, to: &mut Option<TcpListener>) -> Result<Reply, Broken> {
        let at = self.stream.local_addr()?;
        let family = if at.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let opened = || {
            let socket: OwnedFd = net::socket_with(family, SocketType::STREAM, flags, None)?;
            self.host.offer.buffers.apply(socket.as_fd())?;
            net::bind(&socket, &SocketAddr::new(at.ip(), 0))?;
            net::listen(&socket, 4)?;
            Ok::<_, std::io::Error>(TcpListener::from(socket))
        };
        let listener = match opened() {
            Ok(listener) => listener,
            Err(error) => return Ok(Reply::new(425, format!("No port: {error}"))),
        };
        let port = listener.local_addr()?.port();
        *to = Some(listener);
        Ok(match (extended, at.ip()) {
            (false, IpAddr::V4(address)) => dialogue::passive(address, port),
            _ => dialogue::extended_passive(port),
        })
    }

    /// Makes the data connection, moves what is to be moved, and says how it went.
    fn transfer(
        &mut self,
        way: Way,
        what: What,
        representation: Representation,
        listener: Option<TcpListener>,
    ) -> Result<Reply, Broken> {
        let host = self.host;
        let terms = Terms {
            representation,
            ..host.offer.terms
        };
        // What there is not is said before a connection is waited for.
        let file = match &what {
            What::Send(path) => self.file(path).map(Some),
            What::Receive(path) => self.create(path).map(Some),
            What::List { path, .. } => self.directory(path).map(Some),
            What::SendBare(_) | What::ReceiveBare => Ok(None),
        };
        let file = match file {
            Ok(file) => file.unwrap_or(File::ROOT),
            Err(status) => return Ok(Reply::new(550, status.to_string())),
        };
        self.say(&Reply::new(150, "Here it comes."))?;
        let mut data = match self.connect(way, listener) {
            Ok(data) => data,
            Err(Broken::Stopped) => return Err(Broken::Stopped),
            Err(broken) => return Ok(Reply::new(425, broken.to_string())),
        };
        let shelf = &host.shelf;
        let moved = match &what {
            What::Send(_) => shelf.send(file, &mut data, &terms),
            What::Receive(_) => shelf.receive(file, &mut data, &terms),
            What::SendBare(size) => flow::send_bare(*size, &mut data, &terms),
            What::ReceiveBare => flow::receive_bare(&mut data, &terms),
            What::List { long, .. } => self.list(file, *long, &mut data),
        };
        host.retransmitted
            .fetch_add(data.retransmitted(), Ordering::Relaxed);
        // After it, since the kernel tunes what nobody set.
        if let Ok(socket) = data.read_back() {
            *host.socket.lock().unwrap_or_else(PoisonError::into_inner) = socket;
        }
        drop(data);
        Ok(match moved {
            Ok(_) => Reply::new(226, "Transfer complete."),
            Err(Broken::Store(Status::Full)) => Reply::new(452, "There is no room."),
            Err(Broken::Store(status)) => Reply::new(451, status.to_string()),
            Err(broken) => Reply::new(426, broken.to_string()),
        })
    }

    fn create(&self, path: &Path) -> Result<File, Status> {
        let (name, above) = path.split_last().ok_or(Status::IsDirectory)?;
        let directory = self.directory(&above.to_vec())?;
        self.host.shelf.create(directory, name)
    }

    fn connect(&self, way: Way, listener: Option<TcpListener>) -> Result<Data<'h>, Broken> {
        let Offer { buffers, limit, .. } = &self.host.offer;
        let stream = match (way, listener) {
            (Way::Listen, Some(listener)) => self.accept(&listener)?,
            (Way::Connect(to), _) => {
                let source = Some(self.stream.local_addr()?.ip());
                sockets::dial(to, source, WELCOME, |fd| buffers.apply(fd))?
            }
            (Way::Listen, None) => return Err(std::io::Error::from(ErrorKind::NotConnected).into()),
        };
        Ok(Data::new(stream, buffers, Some(self.ended), *limit)?)
    }

    /// A connection of the client's own; others are ended (RFC 2577 §4).
    fn accept(&self, listener: &TcpListener) -> Result<TcpStream, Broken> {
        let until = Clock::now() + WELCOME;
        loop {
            let left = until.saturating_duration_since(Clock::now());
            let all = [reading(self.ended), reading(listener.as_fd())];
            let woken = sockets::wait(&all, left)?;
            if woken[0] {
                return Err(Broken::Stopped);
            }
            if let Ok((stream, peer)) = listener.accept()
                && peer.ip() == self.peer
            {
                return Ok(stream);
            }
            if left.is_zero() {
                return Err(Broken::Slow(WELCOME));
            }
        }
    }

    fn list(&self, directory: File, long: bool, data: &mut Data<'_>) -> Result<u64, Broken> {
        let (mut place, mut sent) = (0, 0);
        loop {
            let lines = self.host.shelf.with(|store| {
                let names = store.list(directory, place, NAMES_AT_ONCE)?;
                let Some(last) = names.last() else {
                    return Ok(None);
                };
                place = last.place;
                let mut lines = Vec::new();
                for one in names {
                    if matches!(&*one.name, b"." | b"..") {
                        continue;
                    }
                    // What went meanwhile is left out.
                    let Ok(known) = store.attributes(one.file) else {
                        continue;
                    };
                    if long {
                        let is_directory = known.kind == Kind::Directory;
                        let kind = if is_directory {
                            "drwxr-xr-x"
                        } else {
                            "-rw-r--r--"
                        };
                        let size = known.size_bytes;
                        lines.extend(format!("{kind} 1 ftp ftp {size} Jan 01 1970 ").into_bytes());
                    }
                    lines.extend_from_slice(&one.name);
                    lines.extend_from_slice(b"\r\n");
                }
                Ok::<_, Status>(Some(lines))
            })?;
            let Some(lines) = lines else {
                return Ok(sent);
            };
            data.write_all(&lines)?;
            sent += lines.len() as u64;
        }
    }
}
