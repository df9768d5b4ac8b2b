//! A server on a host's sockets: UDP and TCP under one port number, NFS and MOUNT and sonde's own counts behind it.
//!
//! Model:   one thread. What waits beyond the server's queue stays in the sockets, as with daemons that read a socket themselves: so
//!          datagrams are lost at the receive buffer, and a stream's sender is held by its window.
//! Units:   nanoseconds, bytes.
//! Checked: `crates/workload/tests/files_sockets.rs`, `files_partners.rs`.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant as Clock};

use sonde_sys::clock::monotonic_ns;
use sonde_sys::{cpu, socket};
use sonde_units::{Instant, Span};

use super::counts::{self, Counts};
use super::rpc;
use super::server::{Caller, Server};
use super::sockets::{self, Connection, DATAGRAM_BYTES, Wanted};
use super::store::Store;
use super::xdr::Decoder;

/// Attempts at a number that is free for UDP and TCP.
const PAIR_TRIES: u32 = 16;
/// Connections at once.
const CONNECTIONS_MAX: usize = 256;
/// Addresses from which datagrams came that are told apart.
const PEERS_MAX: usize = 4_096;
/// Datagrams read before replies are sent again.
const BATCH: usize = 64;
/// Bytes of replies that wait for a connection before no more calls of it are read.
const OUT_BYTES_MAX: usize = 8 << 20;
/// Replies by datagrams that wait for the kernel.
const DATAGRAMS_MAX: usize = 4_096;
/// The longest sleep.
const LONG: Duration = Duration::from_secs(3_600);

/// What a host knows of its server that the server does not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Own {
    /// As in [`Counts::own_null_ns`].
    pub null_ns: u64,
    /// As in [`Counts::own_call_ns`].
    pub call_ns: u64,
}

/// A server and its sockets.
#[derive(Debug)]
pub struct Host<S> {
    server: Server<S>,
    began_ns: u64,
    udp: UdpSocket,
    listener: TcpListener,
    connections: BTreeMap<Caller, Connection>,
    peers: BTreeMap<SocketAddr, Caller>,
    addresses: BTreeMap<Caller, SocketAddr>,
    callers: u64,
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    replied: u64,
    receive_buffer_bytes: u64,
    buffer: Vec<u8>,
    /// The message of a stream that is worked on.
    record: Vec<u8>,
    /// What was measured of it on its own loopback.
    pub own: Own,
}

impl<S: Store> Host<S> {
    /// Opens both ports at an address, of the number `port` or of any that is free; the UDP socket with a receive buffer of so many
    /// bytes, or as the kernel has it.
    ///
    /// # Errors
    /// The kernel refuses the ports or the buffer.
    pub fn open(
        server: Server<S>,
        address: IpAddr,
        port: u16,
        receive_buffer: Option<u64>,
    ) -> std::io::Result<Self> {
        let mut tries = 0;
        let (listener, udp) = loop {
            let listener = TcpListener::bind((address, port))?;
            tries += 1;
            match UdpSocket::bind(listener.local_addr()?) {
                Ok(udp) => break (listener, udp),
                // Another program has the number for datagrams.
                Err(_) if port == 0 && tries < PAIR_TRIES => {}
                Err(error) => return Err(error),
            }
        };
        listener.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        if let Some(bytes) = receive_buffer {
            socket::set_recv_buffer(&udp, bytes as usize).map_err(std::io::Error::other)?;
        }
        let granted = rustix::net::sockopt::socket_recv_buffer_size(&udp)? / 2;
        Ok(Self {
            server,
            began_ns: monotonic_ns(),
            udp,
            listener,
            connections: BTreeMap::new(),
            peers: BTreeMap::new(),
            addresses: BTreeMap::new(),
            callers: 0,
            datagrams: VecDeque::new(),
            replied: 0,
            buffer: vec![0; DATAGRAM_BYTES],
            record: Vec::new(),
            receive_buffer_bytes: granted as u64,
            own: Own::default(),
        })
    }

    /// Where it is.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The server.
    pub const fn server_mut(&mut self) -> &mut Server<S> {
        &mut self.server
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.began_ns))
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let counters = self.server.counters();
        Counts {
            cpu_ns: cpu::thread_cpu_ns(),
            received: counters.received,
            executed: counters.executed,
            overflowed: counters.overflowed,
            in_progress: counters.in_progress,
            repeated: counters.repeated,
            refused: counters.refused,
            replied: self.replied,
            waited_ns: counters.waited.as_nanos(),
            held_ns: counters.held.as_nanos(),
            socket_dropped: sockets::dropped(&self.udp).unwrap_or(0),
            reassembly_failed: sockets::reassembly_failed().unwrap_or(0),
            receive_buffer_bytes: self.receive_buffer_bytes,
            own_null_ns: self.own.null_ns,
            own_call_ns: self.own.call_ns,
        }
    }

    /// Serves until `stop` can be read, for at most `limit`; whether it was stopped.
    ///
    /// # Errors
    /// The kernel fails at what concerns all callers.
    pub fn serve(&mut self, stop: BorrowedFd<'_>, limit: Duration) -> std::io::Result<bool> {
        let end = Clock::now() + limit;
        loop {
            self.send_replies()?;
            while self.take_records()? {
                self.send_replies()?;
            }
            let left = end.saturating_duration_since(Clock::now());
            if left.is_zero() {
                return Ok(false);
            }
            let sleep = self.sleep().min(left).min(LONG);
            let is_ready = self.server.is_ready();
            let callers: Vec<Caller> = self.connections.keys().copied().collect();
            let woken = {
                let wanted = |socket, read, write| Wanted {
                    socket,
                    read,
                    write,
                };
                let mut all = vec![
                    wanted(stop, true, false),
                    wanted(self.udp.as_fd(), is_ready, !self.datagrams.is_empty()),
                    wanted(self.listener.as_fd(), true, false),
                ];
                all.extend(self.connections.values().map(|one| {
                    let read = is_ready && one.waiting() < OUT_BYTES_MAX;
                    wanted(one.as_fd(), read, one.waiting() > 0)
                }));
                sockets::wait(&all, sleep)?
            };
            if woken[0] {
                return Ok(true);
            }
            if woken[1] {
                self.read_datagrams()?;
            }
            if woken[2] {
                self.accept()?;
            }
            for (caller, is_woken) in callers.into_iter().zip(&woken[3..]) {
                if *is_woken {
                    self.read_stream(caller);
                }
            }
        }
    }

    /// Until the server has something to do of itself.
    fn sleep(&self) -> Duration {
        let now = self.now();
        self.server.poll_at().map_or(LONG, |at| {
            let left = if at > now { at.since(now) } else { Span::ZERO };
            Duration::from_nanos(left.as_nanos())
        })
    }

    fn send_replies(&mut self) -> std::io::Result<()> {
        loop {
            while let Some((to, message)) = self.datagrams.front() {
                if !self.send_datagram(message, *to)? {
                    break;
                }
                self.replied += 1;
                self.datagrams.pop_front();
            }
            let now = self.now();
            let Some((caller, reply)) = self.server.poll_reply(now) else {
                return Ok(());
            };
            self.send(caller, reply)?;
        }
    }

    /// A datagram that cannot be sent to whom it is for is lost, as on the way; that is no end of the server.
    fn send_datagram(&self, message: &[u8], to: SocketAddr) -> std::io::Result<bool> {
        match sockets::send_to(&self.udp, message, Some(to)) {
            Err(error) if error.kind() != ErrorKind::OutOfMemory => Ok(true),
            sent => sent,
        }
    }

    fn send(&mut self, caller: Caller, reply: Vec<u8>) -> std::io::Result<()> {
        if let Some(connection) = self.connections.get_mut(&caller) {
            if connection.send(&reply).is_err() {
                self.end(caller);
            } else {
                self.replied += 1;
            }
            return Ok(());
        }
        let Some(to) = self.addresses.get(&caller).copied() else {
            return Ok(());
        };
        if !self.datagrams.is_empty() || !self.send_datagram(&reply, to)? {
            if self.datagrams.len() < DATAGRAMS_MAX {
                self.datagrams.push_back((to, reply));
            }
            return Ok(());
        }
        self.replied += 1;
        Ok(())
    }

    fn end(&mut self, caller: Caller) {
        self.connections.remove(&caller);
        self.server.on_gone(caller);
    }

    /// Of an address that is new a caller.
    fn caller(&mut self, from: SocketAddr) -> Caller {
        if let Some(caller) = self.peers.get(&from) {
            return *caller;
        }
        if self.peers.len() >= PEERS_MAX {
            self.peers.clear();
            for caller in std::mem::take(&mut self.addresses).into_keys() {
                self.server.on_gone(caller);
            }
        }
        let caller = self.next_caller();
        self.peers.insert(from, caller);
        self.addresses.insert(caller, from);
        caller
    }

    const fn next_caller(&mut self) -> Caller {
        self.callers += 1;
        Caller(self.callers)
    }

    fn read_datagrams(&mut self) -> std::io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = self.read_batch(&mut buffer);
        self.buffer = buffer;
        read
    }

    fn read_batch(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        for _ in 0..BATCH {
            if !self.server.is_ready() {
                return Ok(());
            }
            match self.udp.recv_from(buffer) {
                Ok((length, from)) => {
                    let caller = self.caller(from);
                    self.take(caller, &buffer[..length])?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // Said of a reply to an address that nobody has open any more.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> std::io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if self.connections.len() < CONNECTIONS_MAX
                        && let Ok(connection) = Connection::new(stream)
                    {
                        let caller = self.next_caller();
                        self.connections.insert(caller, connection);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // A peer that has gone again, or a table that is full for now.
                Err(_) => return Ok(()),
            }
        }
    }

    fn read_stream(&mut self, caller: Caller) {
        let Some(connection) = self.connections.get_mut(&caller) else {
            return;
        };
        // What it does not take is not read.
        let is_ready = self.server.is_ready();
        let read = connection.flush().and_then(|()| match is_ready {
            true => connection.fill().map(drop),
            false => Ok(()),
        });
        if read.is_err() {
            self.end(caller);
        }
    }

    /// Hands records on that have come, as far as the server takes them; whether it took any. What it does not take waits here, and
    /// what waits here holds the connection's window.
    fn take_records(&mut self) -> std::io::Result<bool> {
        let callers: Vec<Caller> = self.connections.keys().copied().collect();
        let mut has_taken = false;
        // The connection that it came over may answer while it is worked on.
        let mut message = std::mem::take(&mut self.record);
        for caller in callers {
            while self.server.is_ready()
                && let Some(connection) = self.connections.get_mut(&caller)
            {
                message.clear();
                match connection.poll_record() {
                    Ok(Some(record)) => message.extend_from_slice(record),
                    Ok(None) => break,
                    Err(_) => {
                        self.end(caller);
                        break;
                    }
                }
                has_taken = true;
                self.take(caller, &message)?;
            }
        }
        self.record = message;
        Ok(has_taken)
    }

    /// A call: of sonde's counts it is answered here.
    fn take(&mut self, caller: Caller, message: &[u8]) -> std::io::Result<()> {
        let header = rpc::read_call(&mut Decoder::new(message));
        let asked = header.ok().filter(|header| {
            let token = self.server.token();
            header.procedure == counts::PROCEDURE && (token.is_empty() || header.machine == token)
        });
        if let Some(header) = asked {
            let mut to = rpc::begin_reply(header.xid, 128);
            self.counts().write(&mut to);
            return self.send(caller, to.finish());
        }
        let now = self.now();
        self.server.on_message(now, caller, message);
        // What is done at once goes out at once.
        if self.server.poll_at() == Some(Instant::START) {
            self.send_replies()?;
        }
        Ok(())
    }
}
