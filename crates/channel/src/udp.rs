//! Datagrams by UDP, one to a message, with answers that may be lost.
//!
//! Model:   a ping that is not answered within `resend_after` is sent again with the same number; an answer with another
//!          number is one that came late. What was resent and never came late was lost: counted, never hidden. Datagrams
//!          that begin with [`CONTROL`] steer a conversation and are no messages. `Wait::Poll` uses MSG_DONTWAIT.
//! Units:   bytes of user data.
//! Checked: `a_lost_ping_is_counted`, `a_late_answer_is_no_loss`, `sizes_are_exact`, `every_wait_ends`,
//!          `strangers_are_counted_and_not_heard`.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use crate::others::Others;
use crate::payload::HEADER_BYTES;
use crate::settings::read_back;
use crate::wait::{Spin, Woken, bound_recv, bound_send, readable};
use crate::{Channel, Error, Options, Result};
use sonde_measure::{Method, Path, Socket, Wait};

pub use sonde_measure::spec::UDP_MESSAGE_BYTES_MAX;

/// How a datagram begins that steers a conversation. No message does: byte 8 and the next are 8, 9, 10….
pub const CONTROL: &[u8; 16] = b"sonde-control/1 ";

/// The first time to wait for an answer, that of RFC 6298 §2.1 for an unknown path.
const RESEND_AFTER_UNKNOWN: Duration = Duration::from_secs(1);

/// What happened to pings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Pings sent again.
    pub resent: u64,
    /// Answers that came after their ping had been sent again.
    pub late: u64,
}

impl Losses {
    /// Pings or answers that never came.
    pub fn lost(&self) -> u64 {
        self.resent.saturating_sub(self.late)
    }
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram {
    /// A datagram of this size; the buffer holds as much of it as fits.
    Of(usize),
    /// Nothing within the wait.
    Silence,
}

/// A UDP socket with one peer.
#[derive(Debug)]
pub struct Udp {
    pub(crate) socket: UdpSocket,
    pub(crate) peer: SocketAddr,
    pub(crate) options: Options,
    pub(crate) resend_after: Duration,
    losses: Losses,
    others: Option<Others>,
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Udp {
    /// A socket for datagrams to and from `peer`. Nothing is sent.
    ///
    /// # Errors
    /// There is no route; an option does not take.
    pub fn connect(peer: SocketAddr, options: Options) -> Result<Self> {
        let local = options.local(peer);
        let socket = UdpSocket::bind(local).map_err(|error| Error::Local {
            attempt: "send from this address",
            local,
            errno: errno(&error),
        })?;
        options.apply(&socket, Path::Udp)?;
        Self::joined(socket, peer, options)
    }

    fn joined(socket: UdpSocket, peer: SocketAddr, options: Options) -> Result<Self> {
        let failed = |attempt| {
            move |errno| Error::Call {
                peer,
                attempt,
                errno,
            }
        };
        if options.knobs.connected {
            socket
                .connect(peer)
                .map_err(|error| failed("connect")(errno(&error)))?;
        }
        bound_send(&socket, options.timeout).map_err(failed("bound sends"))?;
        let mut channel = Self {
            socket,
            peer,
            options,
            resend_after: Duration::ZERO,
            losses: Losses::default(),
            others: None,
        };
        channel.set_resend_after(RESEND_AFTER_UNKNOWN)?;
        Ok(channel)
    }

    /// How long to wait before a ping is sent again, at most the timeout.
    ///
    /// # Errors
    /// The kernel refuses the time-out.
    pub fn set_resend_after(&mut self, wait: Duration) -> Result<()> {
        self.resend_after = wait.clamp(Duration::from_millis(1), self.options.timeout);
        bound_recv(&self.socket, self.resend_after)
            .map_err(|errno| self.failed("bound receives", errno))
    }

    /// What happened to the pings so far.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn failed(&self, attempt: &'static str, errno: Errno) -> Error {
        Error::Call {
            peer: self.peer,
            attempt,
            errno,
        }
    }

    #[cold]
    fn silence(&self, awaited: String, waited: Duration) -> Error {
        Error::Timeout {
            peer: self.peer,
            awaited,
            waited,
        }
    }

    /// One receive, of at most `resend_after`.
    #[inline]
    pub fn recv_datagram(&mut self, buffer: &mut [u8]) -> Result<Datagram> {
        let mut flags = RecvFlags::TRUNC;
        if self.options.wait == Wait::Poll {
            flags |= RecvFlags::DONTWAIT;
        }
        let mut spin = Spin::new(self.resend_after);
        loop {
            match self.recv_call(buffer, flags) {
                Ok(Some(size)) => return Ok(Datagram::Of(size)),
                Ok(None) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.options.wait == Wait::Poll && spin.again() => {}
                Err(Errno::AGAIN) => return Ok(Datagram::Silence),
                Err(errno) => return Err(self.failed("receive", errno)),
            }
        }
    }

    /// One call: the size of a datagram of the peer's, `None` for somebody else's.
    #[inline]
    fn recv_call(&self, buffer: &mut [u8], flags: RecvFlags) -> rustix::io::Result<Option<usize>> {
        if self.options.knobs.connected {
            return rustix::net::recv(&self.socket, &mut *buffer, flags)
                .map(|(_, size)| Some(size));
        }
        let (_, size, from) = rustix::net::recvfrom(&self.socket, &mut *buffer, flags)?;
        let is_peer = from.is_some_and(|from| SocketAddr::try_from(from) == Ok(self.peer));
        Ok(is_peer.then_some(size))
    }

    #[inline]
    fn send_call(&self, message: &[u8], flags: SendFlags) -> rustix::io::Result<usize> {
        if self.options.knobs.connected {
            rustix::net::send(&self.socket, message, flags)
        } else {
            rustix::net::sendto(&self.socket, message, flags, &self.peer)
        }
    }

    /// Receives without waiting.
    ///
    /// # Errors
    /// The peer's port is closed, or another failure of the socket.
    pub fn recv_now(&mut self, buffer: &mut [u8]) -> Result<Datagram> {
        let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        match self.recv_call(buffer, flags) {
            Ok(Some(size)) => Ok(Datagram::Of(size)),
            Ok(None) | Err(Errno::AGAIN | Errno::INTR) => Ok(Datagram::Silence),
            Err(errno) => Err(self.failed("receive", errno)),
        }
    }

    /// Sends without waiting; `false` when the kernel does not take it now.
    ///
    /// # Errors
    /// The peer's port is closed, or another failure of the socket.
    #[inline]
    pub fn send_now(&mut self, message: &[u8]) -> Result<bool> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::send(&self.socket, message, flags) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(false),
            Err(errno) => Err(self.failed("send", errno)),
        }
    }

    /// Datagrams that others than the peer have sent to its port since it was joined, those from `is_known` left out. Without a
    /// connection they come to the channel itself, which passes them over; then this is 0.
    pub fn strangers(&self, is_known: impl Fn(SocketAddr) -> bool) -> u64 {
        let others = self.others.as_ref();
        others.map_or(0, |others| others.count(is_known))
    }

    /// From here on with anybody again; the port stays where it was bound to an address.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn leave(self) -> Result<UdpPort> {
        let peer = self.peer;
        let failed = |attempt| {
            move |errno| Error::Call {
                peer,
                attempt,
                errno,
            }
        };
        if self.options.knobs.connected {
            rustix::net::connect_unspec(&self.socket).map_err(failed("leave the peer"))?;
        }
        if self.options.method == Method::Gso {
            // A port takes one datagram at a time.
            sonde_sys::batch::set_joined(&self.socket, false)?;
        }
        if self.others.is_some() {
            drop(self.others);
            let alone = sockopt::set_socket_reuseport(&self.socket, false);
            alone.map_err(failed("have the port alone"))?;
        }
        let local = self.socket.local_addr();
        let local = local.map_err(|error| failed("read the address")(errno(&error)))?;
        Ok(UdpPort {
            socket: self.socket,
            local,
            options: self.options,
        })
    }

    /// One receive of a message of exactly this size; `false` for silence or a datagram that is none.
    #[inline]
    fn recv_message(&mut self, message: &mut [u8]) -> Result<Received> {
        // A message shorter than the prefix of a control datagram could not be told from one.
        let mut short = [0; CONTROL.len()];
        let direct = message.len() >= short.len();
        let received = if direct {
            self.recv_datagram(message)?
        } else {
            self.recv_datagram(&mut short)?
        };
        let Datagram::Of(size) = received else {
            return Ok(Received::Silence);
        };
        let begin = if direct { &*message } else { &short[..] };
        if size >= CONTROL.len() && begin.first_chunk() == Some(CONTROL) {
            return Ok(Received::Control);
        }
        if size != message.len() {
            return Err(Error::Size {
                peer: self.peer,
                found_bytes: size,
                wanted_bytes: message.len(),
            });
        }
        match message {
            _ if direct => {}
            [only] => *only = short[0],
            message => message.copy_from_slice(&short[..size]),
        }
        Ok(Received::Message)
    }
}

/// Whether a message has the number of its question, as far as both have room for it.
#[inline]
fn is_answer(pong: &[u8], ping: &[u8]) -> bool {
    // As whole words first: this is done for every round trip.
    match (pong.first_chunk::<HEADER_BYTES>(), ping.first_chunk()) {
        (Some(pong), Some(ping)) => pong == ping,
        _ if pong.len() == 1 && !ping.is_empty() => pong[0] == ping[0],
        _ => {
            let cut = pong.len().min(ping.len()).min(HEADER_BYTES);
            pong[..cut] == ping[..cut]
        }
    }
}

enum Received {
    Message,
    Control,
    Silence,
}

impl Channel for Udp {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let mut flags = SendFlags::NOSIGNAL;
        if self.options.wait == Wait::Poll {
            flags |= SendFlags::DONTWAIT;
        }
        let mut spin = Spin::new(self.options.timeout);
        loop {
            match self.send_call(message, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // ENOBUFS: the device's queue is full and the kernel did not wait for it (IP_RECVERR is off, yet
                // some drivers say so). As with EAGAIN there will be room.
                Err(Errno::AGAIN | Errno::NOBUFS)
                    if self.options.wait == Wait::Poll && spin.again() => {}
                Err(Errno::NOBUFS) if spin.again() => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    let awaited = format!("room to send {} bytes", message.len());
                    return Err(self.silence(awaited, self.options.timeout));
                }
                Err(errno) => return Err(self.failed("send", errno)),
            }
        }
    }

    #[inline]
    fn recv(&mut self, message: &mut [u8]) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Received::Message = self.recv_message(message)? {
                return Ok(());
            }
            if begin.elapsed() >= self.options.timeout {
                return Err(self.silence(
                    format!("a message of {} bytes", message.len()),
                    begin.elapsed(),
                ));
            }
        }
    }

    #[inline]
    fn exchange(&mut self, ping: &[u8], pong: &mut [u8]) -> Result<u32> {
        let mut resends = 0;
        let mut begin = None;
        self.send(ping)?;
        loop {
            let received = self.recv_message(pong)?;
            match received {
                Received::Message if is_answer(pong, ping) => return Ok(resends),
                Received::Message => self.losses.late += 1,
                Received::Control => {}
                Received::Silence => {
                    resends += 1;
                    self.losses.resent += 1;
                }
            }
            // Reached only when something went wrong, so that the clock is not read on the ordinary way.
            let since = *begin.get_or_insert_with(Instant::now);
            let waited = since.elapsed() + self.resend_after;
            if waited > self.options.timeout {
                return Err(self.silence(
                    format!("the answer to {} bytes, sent {resends} times", ping.len()),
                    waited,
                ));
            }
            if let Received::Silence = received {
                self.send(ping)?;
            }
        }
    }

    fn settings(&self) -> Result<Socket> {
        read_back(&self.socket, &self.options, Path::Udp)
    }
}

/// A UDP socket for datagrams from anybody, before it is known who the peer is.
#[derive(Debug)]
pub struct UdpPort {
    socket: UdpSocket,
    local: SocketAddr,
    options: Options,
}

impl UdpPort {
    /// Opens `local`; port zero takes a free one.
    ///
    /// # Errors
    /// The address is not one of this host's, or is in use; an option does not take.
    pub fn bind(local: SocketAddr, options: Options) -> Result<Self> {
        let refused = |attempt| Error::refused(local, attempt);
        let socket = bind_for_good(local).map_err(refused("receive datagrams"))?;
        options.apply(&socket, Path::Udp)?;
        let local = socket.local_addr().map_err(refused("read the address"))?;
        bound_send(&socket, options.timeout).map_err(|errno| Error::Local {
            attempt: "bound sends",
            local,
            errno,
        })?;
        Ok(Self {
            socket,
            local,
            options,
        })
    }

    /// The address with its port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Waits for a datagram: its size and sender. `Ok(None)` when `stop` can be read first.
    ///
    /// # Errors
    /// None within `timeout`.
    pub fn recv_from(
        &mut self,
        buffer: &mut [u8],
        stop: Option<BorrowedFd<'_>>,
        timeout: Duration,
    ) -> Result<Option<(usize, SocketAddr)>> {
        let local = self.local;
        let refused = |attempt| {
            move |errno| Error::Local {
                attempt,
                local,
                errno,
            }
        };
        let mut spin = Spin::new(timeout);
        loop {
            match rustix::net::recvfrom(
                &self.socket,
                &mut *buffer,
                RecvFlags::DONTWAIT | RecvFlags::TRUNC,
            ) {
                Ok((_, size, Some(from))) => {
                    let from =
                        SocketAddr::try_from(from).map_err(refused("read a sender's address"))?;
                    return Ok(Some((size, from)));
                }
                // An ICMP error for an earlier answer: that peer is gone, others may come.
                Ok((_, _, None)) | Err(Errno::INTR | Errno::CONNREFUSED) => continue,
                Err(Errno::AGAIN) => {}
                Err(errno) => return Err(refused("receive a datagram")(errno)),
            }
            if self.options.wait == Wait::Poll && stop.is_none() {
                if spin.again() {
                    continue;
                }
            } else {
                let mut descriptors = vec![self.socket.as_fd()];
                descriptors.extend(stop);
                match readable(&descriptors, timeout)
                    .map_err(|error| refused("wait for a datagram")(errno(&error)))?
                {
                    Woken::Readable(0) => continue,
                    Woken::Readable(_) => return Ok(None),
                    Woken::Silence => {}
                }
            }
            return Err(Error::Timeout {
                peer: local,
                awaited: "a datagram".into(),
                waited: timeout,
            });
        }
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// There is no route, or no room within the timeout.
    pub fn send_to(&mut self, datagram: &[u8], to: SocketAddr) -> Result<()> {
        match self.socket.send_to(datagram, to) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Call {
                peer: to,
                attempt: "send",
                errno: errno(&error),
            }),
        }
    }

    /// From here on with one peer only; the port stays.
    ///
    /// # Errors
    /// There is no route.
    pub fn join(self, peer: SocketAddr) -> Result<Udp> {
        let mut channel = Udp::joined(self.socket, peer, self.options)?;
        if channel.options.knobs.connected {
            channel.others = Others::beside(&channel.socket);
        }
        Ok(channel)
    }

    /// What the kernel made of the options.
    ///
    /// # Errors
    /// It refuses to tell.
    pub fn settings(&self) -> Result<Socket> {
        read_back(&self.socket, &self.options, Path::Udp)
    }
}

/// Attempts at a port that nobody takes in between.
const BIND_TRIES: u32 = 16;

/// Binds to a port by its number, so that the socket keeps it when it leaves a peer.
///
/// A port that the kernel chose is given up by connect(AF_UNSPEC): __udp_disconnect in net/ipv4/udp.c unhashes a socket
/// without SOCK_BINDPORT_LOCK, and datagrams to it are refused from then on. To see it: bind to port 0, connect, connect to
/// AF_UNSPEC, getsockname.
fn bind_for_good(local: SocketAddr) -> std::io::Result<UdpSocket> {
    if local.port() != 0 {
        return UdpSocket::bind(local);
    }
    let mut tries = 0;
    loop {
        let chosen = UdpSocket::bind(local)?.local_addr()?;
        tries += 1;
        match UdpSocket::bind(chosen) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && tries < BIND_TRIES => {}
            bound => return bound,
        }
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for UdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload;
    use sonde_measure::Knobs;

    fn options(wait: Wait, timeout_ms: u64) -> Options {
        Options {
            timeout: Duration::from_millis(timeout_ms),
            ..Options::new(wait)
        }
    }

    fn pair(wait: Wait, timeout_ms: u64) -> (Udp, UdpPort) {
        let port = UdpPort::bind(
            "127.0.0.1:0".parse().unwrap(),
            options(Wait::Block, timeout_ms),
        )
        .unwrap();
        (
            Udp::connect(port.local(), options(wait, timeout_ms)).unwrap(),
            port,
        )
    }

    fn next(port: &mut UdpPort) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 65_536];
        let (size, from) = port
            .recv_from(&mut buffer, None, Duration::from_secs(10))
            .unwrap()
            .unwrap();
        (buffer[..size].to_vec(), from)
    }

    #[test]
    fn a_lost_ping_is_counted() {
        for wait in [Wait::Block, Wait::Poll] {
            let (mut client, mut port) = pair(wait, 10_000);
            client.set_resend_after(Duration::from_millis(20)).unwrap();
            let server = std::thread::spawn(move || {
                let (lost, _) = next(&mut port);
                let (again, from) = next(&mut port);
                assert_eq!(lost, again);
                port.send_to(&again, from).unwrap();
            });
            let ping = payload::message(1);
            assert!(client.exchange(&ping, &mut [0]).unwrap() >= 1);
            server.join().unwrap();
            assert!(
                client.losses().lost() >= 1 && client.losses().late == 0,
                "{:?}",
                client.losses()
            );
        }
    }

    #[test]
    fn a_late_answer_is_no_loss() {
        let (mut client, mut port) = pair(Wait::Block, 10_000);
        client.set_resend_after(Duration::from_millis(20)).unwrap();
        let server = std::thread::spawn(move || {
            let (first, from) = next(&mut port);
            let _same = next(&mut port);
            port.send_to(&first, from).unwrap();
            port.send_to(&first, from).unwrap(); // Late: the answer to the second.
            let (mut second, from) = next(&mut port);
            while second == first {
                second = next(&mut port).0;
            }
            port.send_to(&second, from).unwrap();
        });
        let mut ping = payload::message(64);
        let mut pong = vec![0; 64];
        let resent = client.exchange(&ping, &mut pong).unwrap();
        assert!(resent >= 1);
        payload::stamp(&mut ping, 1);
        client.exchange(&ping, &mut pong).unwrap();
        assert_eq!(payload::verify(&pong, 1), Ok(()));
        server.join().unwrap();
        assert_eq!(client.losses().late, 1);
    }

    #[test]
    fn a_port_outlives_its_peers() {
        let (mut first, mut port) = pair(Wait::Block, 2_000);
        let local = port.local();
        for _ in 0..3 {
            first.send(b"one").unwrap();
            let (_, from) = next(&mut port);
            let mut joined = port.join(from).unwrap();
            joined.send(b"two").unwrap();
            first.recv(&mut [0; 3]).unwrap();
            port = joined.leave().unwrap();
            assert_eq!(port.local(), local);
            first = Udp::connect(local, options(Wait::Block, 2_000)).unwrap();
        }
    }

    #[test]
    fn strangers_are_counted_and_not_heard() {
        let (mut client, mut port) = pair(Wait::Block, 2_000);
        let local = port.local();
        let strangers = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        client.send(b"first").unwrap();
        let (_, from) = next(&mut port);
        let mut server = port.join(from).unwrap();
        for number in 0..1_000 {
            strangers[number % 2].send_to(b"three", local).unwrap();
        }
        client.send(b"peers").unwrap();
        let mut message = [0; 5];
        server.recv(&mut message).unwrap();
        assert_eq!(&message, b"peers");
        assert_eq!(server.recv_now(&mut message).unwrap(), Datagram::Silence);
        let known = strangers[0].local_addr().unwrap();
        let count = server.strangers(|from| from == known);
        // The socket has room for some; whose the others were is not known.
        assert!((500..1_000).contains(&count), "{count}");
        let mut port = server.leave().unwrap();
        strangers[0].send_to(b"again", local).unwrap();
        assert_eq!(next(&mut port).1, known);
        assert!(UdpSocket::bind(local).is_err());
    }

    #[test]
    fn without_a_connection_strangers_are_passed_over() {
        let apart = Options {
            knobs: Knobs {
                connected: false,
                ..Knobs::default()
            },
            ..options(Wait::Block, 2_000)
        };
        let mut port = UdpPort::bind("127.0.0.1:0".parse().unwrap(), apart.clone()).unwrap();
        let mut client = Udp::connect(port.local(), apart).unwrap();
        client.send(b"first").unwrap();
        let (_, from) = next(&mut port);
        let here = SocketAddr::new([127, 0, 0, 1].into(), from.port());
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut server = port.join(from).unwrap();
        stranger.send_to(b"three", here).unwrap();
        server.send(b"peers").unwrap();
        let mut message = [0; 5];
        client.recv(&mut message).unwrap();
        assert_eq!(&message, b"peers");
        assert_eq!(client.settings().unwrap().connected, Some(false));
        let port = server.leave().unwrap();
        assert_eq!(port.local(), client.peer());
    }

    #[test]
    fn sizes_are_exact() {
        for (asked, sent) in [(1, 2), (2, 1), (64, 63), (64, 65), (100, 3)] {
            let (mut client, mut port) = pair(Wait::Block, 2_000);
            let server = std::thread::spawn(move || {
                let (_, from) = next(&mut port);
                // What steers the conversation is no message.
                port.send_to(&[CONTROL.as_slice(), b"{}"].concat(), from)
                    .unwrap();
                port.send_to(&vec![0; sent], from).unwrap();
            });
            let error = client
                .exchange(&payload::message(asked), &mut vec![0; asked])
                .unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains(&format!("of {sent} bytes came where {asked}")),
                "{error}"
            );
            server.join().unwrap();
        }
    }

    #[test]
    fn every_wait_ends() {
        for wait in [Wait::Block, Wait::Poll] {
            let (mut client, port) = pair(wait, 60);
            client.set_resend_after(Duration::from_millis(10)).unwrap();
            let error = client
                .exchange(&[0; 64], &mut [0; 64])
                .unwrap_err()
                .to_string();
            assert!(error.contains("for the answer to 64 bytes"), "{error}");
            let error = client.recv(&mut [0; 64]).unwrap_err().to_string();
            assert!(error.contains("for a message of 64 bytes"), "{error}");
            drop(port);
            client.send(&[0; 64]).unwrap();
            let error = client.recv(&mut [0; 64]).unwrap_err();
            assert!(error.remedy().contains("nothing listens"), "{error}");
        }
        let mut port =
            UdpPort::bind("127.0.0.1:0".parse().unwrap(), options(Wait::Poll, 60)).unwrap();
        let error = port
            .recv_from(&mut [0], None, Duration::from_millis(60))
            .unwrap_err();
        assert!(error.to_string().contains("for a datagram"), "{error}");
    }

    #[test]
    fn settings_are_read_back() {
        let asked = Options {
            knobs: Knobs {
                recv_buffer_bytes: Some(100_000),
                ..Knobs::default()
            },
            ..options(Wait::Block, 100)
        };
        let port = UdpPort::bind("127.0.0.1:0".parse().unwrap(), asked).unwrap();
        let settings = port.settings().unwrap();
        assert_eq!(
            (
                settings.recv_buffer.unwrap().granted_bytes,
                settings.nodelay
            ),
            (100_000, None)
        );
    }
}
