//! Who may come to a pattern's data port: flows that are expected in this round, with the token.
//!
//! Model:   a peer comes from the address of a host of the pattern; whoever else connects is closed unread. It says 32 bytes of token,
//!          the number of its flow and, for datagrams, the port that they come from; it is answered by one byte and a port. Who says
//!          something else, says nothing for long, or comes for a flow that is not expected or is here already, is turned away and
//!          counted. Peers are read as they speak: a slow one holds up nobody.
//! Checked: `strangers_are_turned_away`; `tests/pattern.rs`.
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
use std::time::{Duration, Instant};

use sonde_channel::{Acceptor, Announced, Arrivals, Bounds, Said as Heard, Tcp};
use sonde_sys::clock::monotonic_ns;

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
/// Between two looks at peers that have not spoken.
const LOOK: Duration = Duration::from_millis(1);

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

/// The data port.
pub(super) struct Listener {
    acceptor: Acceptor,
    refused: u64,
    /// Peers of a later round, which its request lets in.
    early: Vec<(u64, u16, Line)>,
    unauthenticated: Arrivals<Line>,
    token: Vec<u8>,
}

impl Listener {
    pub(super) fn open(join: &Join) -> Result<Self> {
        let mut acceptor = Acceptor::bind(SocketAddr::new(join.bind, 0), join.options())?;
        let hosts = join.peers.iter().map(|address| address.to_canonical());
        acceptor.expect(Announced {
            addresses: Some(hosts.collect()),
            ports: None,
        });
        Ok(Self {
            acceptor,
            refused: 0,
            early: Vec::new(),
            unauthenticated: Arrivals::new(BOUNDS),
            token: join.token.as_bytes().to_vec(),
        })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.acceptor.local()
    }

    /// Who was turned away so far.
    pub(super) fn refused(&mut self) -> u64 {
        let at_the_port = self.acceptor.turned_away().count;
        self.refused = self.refused.saturating_add(at_the_port);
        self.refused
            .saturating_add(self.unauthenticated.away().count)
    }

    /// Nobody is awaited until the next round: whoever comes is counted meanwhile.
    pub(super) fn watch(&mut self) -> Result<()> {
        Ok(self.acceptor.watch()?)
    }

    /// Lets in the flows that are expected, until all are here or the start has come.
    pub(super) fn admit(
        &mut self,
        join: &Join,
        go: &Go,
        mut take: impl FnMut(Due, Line),
    ) -> Result<()> {
        let mut expected: BTreeMap<u64, Due> =
            go.coming.iter().map(|due| (due.flow, *due)).collect();
        let timeout = join.options().timeout;
        let begin = Instant::now();
        let newest = go.coming.iter().map(|due| due.flow).max();
        for peer in std::mem::take(&mut self.early) {
            if expected.contains_key(&peer.0) {
                self.welcome(&mut expected, peer, &mut take);
            } else if Some(peer.0) > newest {
                self.early.push(peer);
            }
            // Else it came too late for its round, and its host has told that.
        }
        while !expected.is_empty() {
            let left_ns = go.start_ns.saturating_sub(monotonic_ns());
            let left = Duration::from_nanos(left_ns).min(timeout.saturating_sub(begin.elapsed()));
            if left.is_zero() {
                return Ok(());
            }
            let pause = self.unauthenticated.left().map_or(left, |_| LOOK);
            match self.acceptor.accept(None, pause.min(left)) {
                Ok(Some(tcp)) => self.let_speak(tcp)?,
                Ok(None) => {}
                Err(sonde_channel::Error::Timeout { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            for peer in self.spoken() {
                if go.coming.iter().any(|due| due.flow == peer.0) {
                    self.welcome(&mut expected, peer, &mut take);
                } else {
                    // Its host may have heard of the next round before this one did.
                    self.early.push(peer);
                }
            }
        }
        Ok(())
    }

    fn let_speak(&mut self, tcp: Tcp) -> Result<()> {
        let line = Line::new(tcp)?;
        line.stream
            .set_nonblocking(true)
            .map_err(control("wait for a peer"))?;
        let from = line.tcp.peer();
        self.unauthenticated.come(line, from, HELLO_BYTES);
        Ok(())
    }

    /// The peers with the token that have said all: flow, port of datagrams, socket.
    fn spoken(&mut self) -> Vec<(u64, u16, Line)> {
        let token = &self.token;
        let spoken = self
            .unauthenticated
            .hear(|_, bytes| match said(bytes, token) {
                Said::Stranger => Heard::Unknown("wrong token".into()),
                Said::Part => Heard::Wants(HELLO_BYTES.saturating_sub(bytes.len())),
                Said::Hello { flow, port } => Heard::Peer((flow, port)),
            });
        let flat = |(line, (flow, port))| (flow, port, line);
        spoken.into_iter().map(flat).collect()
    }

    fn refuse(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    fn welcome(
        &mut self,
        expected: &mut BTreeMap<u64, Due>,
        (flow, port, mut line): (u64, u16, Line),
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
