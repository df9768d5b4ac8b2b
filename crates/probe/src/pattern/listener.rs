//! Who may come to a pattern's data port: flows that are expected in this round, with the token.
//!
//! Model:   a peer comes from the address of a host of the pattern; whoever else connects is closed unread. It says 32 bytes of token,
//!          the number of its flow and, for datagrams, the port that they come from; it is answered by one byte and a port. Who says
//!          something else, says nothing for long, or comes for a flow that is not expected or is here already, is turned away and
//!          counted. One thread takes and reads all who come, in rounds and between them: a slow one holds up nobody, and a host that
//!          has heard of the next round before this one did is kept for it.
//! Checked: `strangers_are_turned_away`; `tests/pattern.rs`; `lab_strangers.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sonde_channel::{Acceptor, Announced, Arrivals, Bounds, Said as Heard, Tcp, Woken, readable};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::thread;

use super::{Due, Go, Join, Kind, OutgoingFlow};
use crate::{Error, Result};

/// A token's length.
pub(super) const TOKEN_BYTES: usize = 32;
const HELLO_BYTES: usize = TOKEN_BYTES + 8 + 2;
const WELCOME: u8 = b'Y';
/// Who has said nothing whole for so long is turned away.
const SPEAK_WITHIN: Duration = Duration::from_secs(2);
/// What peers that have not spoken may take.
const BOUNDS: Bounds = Bounds {
    at_a_time: 1_024,
    bytes: HELLO_BYTES,
    within: SPEAK_WITHIN,
};
/// Between two looks of the thread, where nobody comes.
const LONG: Duration = Duration::from_secs(3_600);
/// Those who wait are taken so many at a time, then heard.
const AT_ONCE: usize = 256;

/// A socket of a flow, to be read and written with deadlines, and its counters.
pub(super) struct Line {
    pub(super) stream: TcpStream,
    pub(super) datagrams: Option<UdpSocket>,
    tcp: Tcp,
}

impl Line {
    fn new(tcp: Tcp) -> Result<Self> {
        let fd = tcp.as_fd().try_clone_to_owned();
        let stream = TcpStream::from(fd.map_err(control("keep a connection"))?);
        stream
            .set_nonblocking(true)
            .map_err(control("wait for a peer"))?;
        Ok(Self {
            stream,
            datagrams: None,
            tcp,
        })
    }

    pub(super) fn info(&self) -> Option<sonde_sys::socket::TcpInfo> {
        self.tcp.info().ok()
    }
}

fn control(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Control {
        what: what.into(),
        source,
    }
}

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A peer that has shown who it is: its flow, the port of its datagrams, its connection.
type Peer = (u64, u16, Line);

/// Who has come to the data port.
#[derive(Default)]
struct Hall {
    /// Peers with the token that no round has let in yet.
    peers: Vec<Peer>,
    /// All others so far, those who have not said all among them.
    others: u64,
}

/// What the thread and the rounds share.
#[derive(Default)]
struct Shared {
    hall: Mutex<Hall>,
    come: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The data port.
pub(super) struct Listener {
    local: SocketAddr,
    shared: Arc<Shared>,
    /// The thread, and what ends it as it is closed.
    porter: Option<(JoinHandle<()>, UnixStream)>,
    /// Peers with the token that came for no flow of their round.
    refused: u64,
}

impl Listener {
    pub(super) fn open(join: &Join) -> Result<Self> {
        let mut acceptor = Acceptor::bind(SocketAddr::new(join.bind, 0), join.options())?;
        let hosts = join.peers.iter().map(|address| address.to_canonical());
        acceptor.expect(Announced {
            addresses: Some(hosts.collect()),
            ports: None,
        });
        let (own, theirs) = UnixStream::pair().map_err(control("watch the data port"))?;
        let shared = Arc::<Shared>::default();
        let local = acceptor.local();
        let mut porter = Porter {
            acceptor,
            arrivals: Arrivals::new(BOUNDS),
            token: join.token.as_bytes().to_vec(),
            at_the_port: 0,
            shared: Arc::clone(&shared),
        };
        let thread = thread::start("the watch over the data port", move || {
            porter.serve(&theirs);
        })?;
        Ok(Self {
            local,
            shared,
            porter: Some((thread, own)),
            refused: 0,
        })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Who else came so far.
    pub(super) fn refused(&self) -> u64 {
        self.refused.saturating_add(self.shared.lock().others)
    }

    /// Nobody is awaited any more: who else came, those who wait at this moment among them.
    pub(super) fn close(mut self) -> u64 {
        self.end();
        self.refused()
    }

    fn end(&mut self) {
        if let Some((thread, own)) = self.porter.take() {
            drop(own);
            // A thread that panicked has counted nobody since.
            drop(thread.join());
        }
    }

    /// Lets in the flows that are expected, until all are here or the start has come.
    pub(super) fn admit(&mut self, join: &Join, go: &Go, mut take: impl FnMut(Due, Line)) {
        let mut expected: BTreeMap<u64, Due> =
            go.coming.iter().map(|due| (due.flow, *due)).collect();
        let timeout = join.options().timeout;
        let begin = Instant::now();
        let newest = go.coming.iter().map(|due| due.flow).max();
        loop {
            let mut hall = self.shared.lock();
            let (later, come): (Vec<Peer>, Vec<Peer>) = std::mem::take(&mut hall.peers)
                .into_iter()
                .partition(|peer| Some(peer.0) > newest);
            hall.peers = later;
            drop(hall);
            for peer in come {
                // Who came too late for an earlier round is none of this one, and its host has told that.
                if go.coming.iter().any(|due| due.flow == peer.0) {
                    self.welcome(&mut expected, peer, &mut take);
                }
            }
            let left_ns = go.start_ns.saturating_sub(monotonic_ns());
            let left = Duration::from_nanos(left_ns).min(timeout.saturating_sub(begin.elapsed()));
            if expected.is_empty() || left.is_zero() {
                return;
            }
            let nobody = |hall: &mut Hall| hall.peers.iter().all(|peer| Some(peer.0) > newest);
            let hall = self.shared.lock();
            drop(self.shared.come.wait_timeout_while(hall, left, nobody));
        }
    }

    fn refuse(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    fn welcome(
        &mut self,
        expected: &mut BTreeMap<u64, Due>,
        (flow, port, mut line): Peer,
        take: &mut impl FnMut(Due, Line),
    ) {
        let Some(due) = expected.remove(&flow) else {
            return self.refuse();
        };
        let answer = answer_port(due.what.kind, &mut line, port).and_then(|own| {
            let own = own.to_be_bytes();
            line.stream.set_nonblocking(false)?;
            line.stream.write_all(&[WELCOME, own[0], own[1]])
        });
        match answer {
            Ok(()) => take(due, line),
            Err(_) => self.refuse(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}

/// Takes and reads all who come.
struct Porter {
    acceptor: Acceptor,
    arrivals: Arrivals<Line>,
    token: Vec<u8>,
    /// Those that were turned away unread.
    at_the_port: u64,
    shared: Arc<Shared>,
}

impl Porter {
    /// Until it is over; then those who wait at that moment.
    fn serve(&mut self, over: &UnixStream) {
        loop {
            let mut descriptors = vec![over.as_fd(), self.acceptor.as_fd()];
            descriptors.extend(self.arrivals.descriptors());
            let woken = readable(&descriptors, self.arrivals.left().unwrap_or(LONG));
            self.look();
            if !matches!(woken, Ok(Woken::Readable(1..) | Woken::Silence)) {
                return;
            }
        }
    }

    fn look(&mut self) {
        let (come, away) = self.acceptor.waiting();
        self.at_the_port = self.at_the_port.saturating_add(away.count);
        let mut come = come.into_iter().peekable();
        loop {
            for (from, tcp) in come.by_ref().take(AT_ONCE) {
                match tcp.map_err(Error::from).and_then(Line::new) {
                    Ok(line) => self.arrivals.come(line, from, HELLO_BYTES),
                    Err(error) => self.arrivals.turn_away(from, error),
                }
            }
            self.hear();
            if come.peek().is_none() {
                return;
            }
        }
    }

    fn hear(&mut self) {
        let token = &self.token;
        let spoken = self.arrivals.hear(|_, bytes| match said(bytes, token) {
            Said::Stranger => Heard::Unknown("wrong token".into()),
            Said::Part => Heard::Wants(HELLO_BYTES.saturating_sub(bytes.len())),
            Said::Hello { flow, port } => Heard::Peer((flow, port)),
        });
        let speaking = self.arrivals.descriptors().count() as u64;
        let away = self.arrivals.away().count;
        let mut hall = self.shared.lock();
        hall.others = self
            .at_the_port
            .saturating_add(away)
            .saturating_add(speaking);
        let peers = spoken
            .into_iter()
            .map(|(line, (flow, port))| (flow, port, line));
        hall.peers.extend(peers);
        drop(hall);
        self.shared.come.notify_all();
    }
}

/// Why a peer that did not answer in time, or broke off, counts as refusing.
fn unaccepted(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            "it did not accept the connection in time, so this flow is skipped".into()
        }
        _ => format!("it did not accept the connection before the start ({error})"),
    }
}

/// What a peer has said so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Not the token.
    Stranger,
    /// A part of a hello.
    Part,
    /// The number of its flow, and the port that its datagrams come from.
    Hello { flow: u64, port: u16 },
}

/// Judges what a peer has said: the token, eight bytes of a flow, two of a port, big-endian.
pub(crate) fn said(bytes: &[u8], token: &[u8]) -> Said {
    let prefix = bytes.get(..TOKEN_BYTES).unwrap_or(bytes);
    if !token.starts_with(prefix) {
        return Said::Stranger;
    }
    let hello = || {
        let (flow, rest) = bytes.get(TOKEN_BYTES..)?.split_first_chunk()?;
        let flow = u64::from_be_bytes(*flow);
        let port = u16::from_be_bytes(*rest.first_chunk()?);
        Some(Said::Hello { flow, port })
    };
    hello().unwrap_or(Said::Part)
}

/// Opens the answering end of datagrams, where the round has them; its port.
fn answer_port(kind: Kind, line: &mut Line, port: u16) -> std::io::Result<u16> {
    if kind != Kind::LatencyUdp {
        return Ok(0);
    }
    let (own, peer) = (line.stream.local_addr()?, line.stream.peer_addr()?);
    let socket = UdpSocket::bind(SocketAddr::new(own.ip(), 0))?;
    socket.connect(SocketAddr::new(peer.ip(), port))?;
    let own = socket.local_addr()?.port();
    line.datagrams = Some(socket);
    Ok(own)
}

/// Goes to a peer's listener and waits to be let in, until the start.
pub(super) fn enter(join: &Join, go: &Go, way: &OutgoingFlow) -> Result<Line> {
    let mut line = Line::new(Tcp::connect(way.peer, join.options())?)?;
    let failed = control("say hello to a peer");
    line.stream.set_nonblocking(false).map_err(&failed)?;
    let mut port = 0;
    if way.what.kind == Kind::LatencyUdp {
        let own = line.stream.local_addr().map_err(&failed)?;
        let socket = UdpSocket::bind(SocketAddr::new(own.ip(), 0)).map_err(&failed)?;
        port = socket.local_addr().map_err(&failed)?.port();
        line.datagrams = Some(socket);
    }
    let mut hello = Vec::with_capacity(HELLO_BYTES);
    hello.extend_from_slice(join.token.as_bytes());
    hello.extend_from_slice(&way.flow.to_be_bytes());
    hello.extend_from_slice(&port.to_be_bytes());
    line.stream.write_all(&hello).map_err(&failed)?;
    let mut answer = [0; 3];
    let left_ns = go.start_ns.saturating_sub(monotonic_ns());
    let timeout = Duration::from_nanos(left_ns).max(Duration::from_millis(100));
    line.stream
        .set_read_timeout(Some(timeout))
        .map_err(&failed)?;
    line.stream
        .read_exact(&mut answer)
        .map_err(|error| Error::Refused {
            peer: way.peer,
            reason: unaccepted(&error),
        })?;
    if let Some(socket) = &line.datagrams {
        let port = u16::from_be_bytes([answer[1], answer[2]]);
        socket
            .connect(SocketAddr::new(way.peer.ip(), port))
            .map_err(&failed)?;
    }
    Ok(line)
}
