//! Whole frames, past TCP, UDP and IP: one to a message, with answers that may be lost.
//!
//! Model:   a frame of the local experimental ethertype 0x88b6 has Ethernet's header, then sonde's: magic, role, version,
//!          conversation, tag, sequence, length. The tag is made of the conversation's token by both ends; every
//!          transmission has a sequence of its own, also when it repeats a message, so that a frame that comes again is
//!          known as such. An answer has the sequence of its question. A frame with another tag, conversation or version, of
//!          a length that is not its own, or with a sequence that was there before is refused: counted, never a message.
//!          `plain` makes one call for each frame each way; `ring` shares slots with the kernel (TPACKET_V2), where
//!          `Wait::Poll` reads a status word and makes no call to receive. The path `xdp` is the same by AF_XDP.
//! Source:  IEEE 802 §9.2.3 (local experimental ethertypes); packet(7); `sonde_sys::{frames, ring}`.
//! Units:   bytes; the header is 28 bytes, little-endian.
//! Checked: `any_bytes_are_judged`, `a_frame_is_read_back`, `a_lost_ping_is_counted_and_a_replay_refused`, `every_wait_ends`.

pub(crate) mod head;

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use sonde_sys::frames::{ETHERNET_BYTES, ETHERTYPE, FrameSocket};
use sonde_sys::netlink::Netlink;
use sonde_sys::ring::Ring;
use sonde_sys::xdp::{self, Xdp};

use crate::settings::read_back;
use crate::wait::{Spin, Woken, bound_recv, bound_send, readable};
use crate::{Channel, Error, Losses, Options, Result};
use sonde_measure::{Method, Path, RingShape, Socket, Transfer, Wait, XdpMode};

use head::{Head, MESSAGE_AT};
#[cfg(test)]
use head::{MAGIC, VERSION};

/// sonde's header in a frame.
pub const PACKET_HEADER_BYTES: usize = 28;
/// The most that a frame by AF_XDP carries behind Ethernet's header.
pub const XDP_MTU_BYTES_MAX: usize = xdp::FRAME_BYTES_MAX - ETHERNET_BYTES;

/// The end that sends a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The measuring end.
    Measuring = 1,
    /// The serving end.
    Serving = 2,
}

impl Role {
    const fn other(self) -> Self {
        match self {
            Self::Measuring => Self::Serving,
            Self::Serving => Self::Measuring,
        }
    }
}

/// What tells the frames of a conversation from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Of the token.
    pub tag: u64,
    /// The part of the conversation.
    pub conversation: u32,
}

/// Where frames leave and enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The interface's number.
    pub interface: u32,
    /// Its name.
    pub name: String,
    /// Its address.
    pub mac: [u8; 6],
    /// What a frame carries behind Ethernet's header.
    pub mtu_bytes: usize,
    /// `packet` or `xdp`.
    pub path: Path,
}

impl Place {
    /// The interface by which the kernel would reach `peer` now.
    ///
    /// # Errors
    /// There is no way, it leads over a router, or the interface has no Ethernet addresses.
    pub fn towards(peer: IpAddr, path: Path) -> Result<Self> {
        let refuse = |why: String| Error::NoFrames { peer, why };
        let mut netlink = Netlink::open()?;
        let way = netlink.way_to(peer)?;
        if let Some(router) = way.gateway {
            return Err(refuse(format!(
                "the path leads over the router {router}, and frames do not pass routers"
            )));
        }
        let link = netlink.link(way.ifindex)?;
        if link.mac == [0; 6] && !way.local {
            return Err(refuse(format!("{} has no Ethernet address", link.name)));
        }
        Ok(Self {
            interface: link.index,
            name: link.name,
            mac: link.mac,
            mtu_bytes: match path {
                Path::Xdp => (link.mtu_bytes as usize).min(XDP_MTU_BYTES_MAX),
                _ => link.mtu_bytes as usize,
            },
            path,
        })
    }

    /// The largest message in one frame.
    pub fn message_bytes_max(&self) -> usize {
        self.mtu_bytes.saturating_sub(PACKET_HEADER_BYTES)
    }
}

/// How frames are handed over.
#[derive(Debug)]
enum Device {
    Plain(FrameSocket),
    Ring(Box<Ring>),
    Xdp(Box<Xdp>),
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// A message of the agreed size, which is in the buffer.
    Message {
        /// Its transmission's number.
        sequence: u64,
    },
    /// Nothing within the wait.
    Silence,
}

/// One end of a conversation by frames.
#[derive(Debug)]
pub struct Packet {
    device: Device,
    place: Place,
    peer: SocketAddr,
    options: Options,
    role: Role,
    mark: Mark,
    /// Ethernet's header and room for ours.
    head: [u8; MESSAGE_AT],
    buffer: Vec<u8>,
    within: Duration,
    sent: u64,
    highest: u64,
    losses: Losses,
    refused: u64,
}

impl Packet {
    /// Opens an end at `place`; `peer_mac` is that of the other end's interface. `peer` names it in messages.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW; no memory for a ring.
    pub fn open(
        place: Place,
        peer: SocketAddr,
        peer_mac: [u8; 6],
        role: Role,
        mark: Mark,
        options: Options,
    ) -> Result<Self> {
        let failed = |attempt| {
            move |errno| Error::Call {
                peer,
                attempt,
                errno,
            }
        };
        let frame_bytes = place.mtu_bytes + ETHERNET_BYTES;
        let theirs = role.other() as u8;
        let device = if place.path == Path::Xdp {
            Device::Xdp(Box::new(Xdp::open(place.interface, theirs)?))
        } else {
            let socket = FrameSocket::open(place.interface, theirs)?;
            socket.set_buffers(
                options.knobs.send_buffer_bytes,
                options.knobs.recv_buffer_bytes,
            )?;
            bound_send(&socket, options.timeout).map_err(failed("bound sends"))?;
            match options.method {
                Method::Ring => Device::Ring(Box::new(Ring::new(socket, frame_bytes)?)),
                _ => Device::Plain(socket),
            }
        };
        let mut head = [0; MESSAGE_AT];
        head[..6].copy_from_slice(&peer_mac);
        head[6..12].copy_from_slice(&place.mac);
        head[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        let mut packet = Self {
            device,
            buffer: vec![0; frame_bytes],
            place,
            peer,
            options,
            role,
            mark,
            head,
            within: Duration::ZERO,
            sent: 0,
            highest: 0,
            losses: Losses::default(),
            refused: 0,
        };
        packet.set_within(Duration::from_secs(1))?;
        Ok(packet)
    }

    /// How long one receive waits, and after which a ping is sent again; at most the timeout.
    ///
    /// # Errors
    /// The kernel refuses the time-out.
    pub fn set_within(&mut self, wait: Duration) -> Result<()> {
        self.within = wait.clamp(Duration::from_millis(1), self.options.timeout);
        let Device::Plain(socket) = &self.device else {
            return Ok(());
        };
        bound_recv(socket, self.within).map_err(|errno| self.failed("bound receives", errno))
    }

    /// What happened to the pings so far.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Frames that were none of this conversation's, or came again.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Frames that the kernel had no room for at this end, since the last call.
    ///
    /// # Errors
    /// It refuses to tell.
    pub fn drops(&self) -> Result<Option<u64>> {
        Ok(match &self.device {
            Device::Plain(socket) => Some(socket.drops()?),
            Device::Ring(ring) => Some(ring.socket().drops()?),
            Device::Xdp(_) => None,
        })
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The interface.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How frames pass between it and the kernel; of a plain socket nothing is to be known.
    pub fn transfer(&self) -> Transfer {
        let mut transfer = Transfer::default();
        match &self.device {
            Device::Plain(_) => {}
            Device::Ring(ring) => {
                let (slots, slot_bytes) = ring.shape();
                transfer.ring = Some(RingShape {
                    slots: slots as u64,
                    slot_bytes: slot_bytes as u64,
                });
            }
            Device::Xdp(xdp) => {
                transfer.xdp = Some(match xdp.mode() {
                    sonde_sys::xdp::Mode::Driver => XdpMode::Driver,
                    sonde_sys::xdp::Mode::Skb => XdpMode::Skb,
                });
            }
        }
        transfer
    }

    /// The socket below.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::Plain(socket) => socket.as_fd(),
            Device::Ring(ring) => ring.as_fd(),
            Device::Xdp(xdp) => xdp.as_fd(),
        }
    }

    fn failed(&self, attempt: &'static str, errno: Errno) -> Error {
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

    #[cold]
    fn too_large(&self, bytes: usize) -> Error {
        Error::NoFrames {
            peer: self.peer.ip(),
            why: format!(
                "a message of {bytes} bytes does not fit in one: {} carries at most {}",
                self.place.name,
                self.place.message_bytes_max()
            ),
        }
    }

    /// Sends a message as transmission `sequence`: an answer has that of its question.
    ///
    /// # Errors
    /// It fits in no frame; no room within the timeout.
    #[inline]
    pub fn send_as(&mut self, sequence: u64, message: &[u8]) -> Result<()> {
        if message.len() > self.place.message_bytes_max() {
            return Err(self.too_large(message.len()));
        }
        let mut head = [0; PACKET_HEADER_BYTES];
        Head {
            role: self.role as u8,
            mark: self.mark,
            sequence,
            length: message.len() as u32,
        }
        .write(&mut head);
        self.head[ETHERNET_BYTES..].copy_from_slice(&head);
        let mut spin = Spin::new(self.options.timeout);
        loop {
            let errno = match &mut self.device {
                Device::Plain(socket) => {
                    let mut flags = SendFlags::empty();
                    if self.options.wait == Wait::Poll {
                        flags |= SendFlags::DONTWAIT;
                    }
                    let parts = [IoSlice::new(&self.head), IoSlice::new(message)];
                    let mut none = SendAncillaryBuffer::default();
                    match rustix::net::sendmsg(socket, &parts, &mut none, flags) {
                        Ok(_) => return Ok(()),
                        Err(errno) => errno,
                    }
                }
                Device::Xdp(xdp) => match xdp.send(&[&self.head, message]) {
                    Ok(true) => return Ok(()),
                    Ok(false) => Errno::AGAIN,
                    Err(error) => return Err(error.into()),
                },
                Device::Ring(ring) => match ring.send(&[&self.head, message]) {
                    Ok(true) => return Ok(()),
                    Ok(false) => Errno::AGAIN,
                    Err(error) => return Err(error.into()),
                },
            };
            match errno {
                Errno::INTR => {}
                // ENOBUFS: the interface's queue was full and dropped the frame; there will be room.
                Errno::AGAIN | Errno::NOBUFS if spin.again() => {}
                Errno::AGAIN | Errno::NOBUFS => {
                    let awaited = format!("room to send {} bytes", message.len());
                    return Err(self.silence(awaited, self.options.timeout));
                }
                Errno::MSGSIZE => return Err(self.too_large(message.len())),
                errno => return Err(self.failed("send", errno)),
            }
        }
    }

    /// One receive of a message of exactly this size, by the wait of the options, of at most the time that was set.
    ///
    /// # Errors
    /// The interface is gone or down.
    #[inline]
    pub fn recv_message(&mut self, message: &mut [u8]) -> Result<Came> {
        let mut spin = Spin::new(self.within);
        let mut flooded: Option<Instant> = None;
        loop {
            let (mark, role) = (self.mark, self.role.other() as u8);
            let judge = |frame: &[u8], message: &mut [u8]| {
                let (head, body) = Head::read(frame)?;
                if head.mark != mark || head.role != role || body.len() != message.len() {
                    return None;
                }
                message.copy_from_slice(body);
                Some(head.sequence)
            };
            let judged = match &mut self.device {
                Device::Ring(ring) => ring.take(|frame| judge(frame, message)),
                Device::Xdp(xdp) => xdp.take(|frame| judge(frame, message)),
                Device::Plain(socket) => {
                    let flags = match self.options.wait {
                        Wait::Poll => RecvFlags::DONTWAIT,
                        Wait::Block => RecvFlags::empty(),
                    };
                    match rustix::net::recv(&*socket, &mut self.buffer[..], flags) {
                        Ok((_, size)) => Some(judge(&self.buffer[..size], message)),
                        Err(Errno::INTR) => continue,
                        Err(Errno::AGAIN) if self.options.wait == Wait::Block => {
                            return Ok(Came::Silence);
                        }
                        Err(Errno::AGAIN) => None,
                        Err(errno) => return Err(self.failed("receive", errno)),
                    }
                }
            };
            match judged {
                Some(Some(sequence)) => return Ok(Came::Message { sequence }),
                Some(None) => {
                    self.refused += 1;
                    // Whoever floods this end does not hold it for ever.
                    if flooded.get_or_insert_with(Instant::now).elapsed() >= self.within {
                        return Ok(Came::Silence);
                    }
                    continue;
                }
                None => {}
            }
            if self.options.wait == Wait::Block {
                let woken = readable(&[self.fd()], self.within).map_err(|error| {
                    self.failed(
                        "wait for a frame",
                        Errno::from_io_error(&error).unwrap_or(Errno::IO),
                    )
                })?;
                if woken == Woken::Silence {
                    return Ok(Came::Silence);
                }
            } else if !spin.again() {
                return Ok(Came::Silence);
            }
        }
    }

    /// The transmission's number of a frame that was received past this end, with its message; `None` for what is refused.
    pub fn open_frame(&self, frame: &[u8], message: &mut [u8]) -> Option<u64> {
        let (head, body) = Head::read(frame)?;
        let ours = head.mark == self.mark && head.role == self.role.other() as u8;
        if !ours || body.len() != message.len() {
            return None;
        }
        message.copy_from_slice(body);
        Some(head.sequence)
    }

    /// As [`recv_message`](Self::recv_message), of a transmission later than all before: a replay is refused.
    ///
    /// # Errors
    /// Those of [`recv_message`](Self::recv_message).
    #[inline]
    pub fn recv_fresh(&mut self, message: &mut [u8]) -> Result<Came> {
        loop {
            match self.recv_message(message)? {
                Came::Message { sequence } if sequence <= self.highest => self.refused += 1,
                Came::Message { sequence } => {
                    self.highest = sequence;
                    return Ok(Came::Message { sequence });
                }
                Came::Silence => return Ok(Came::Silence),
            }
        }
    }

    fn late(&mut self) {
        // Of what was never sent again nothing can be late.
        if self.losses.late < self.losses.resent {
            self.losses.late += 1;
        } else {
            self.refused += 1;
        }
    }
}

impl Channel for Packet {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.sent += 1;
        self.send_as(self.sent, message)
    }

    #[inline]
    fn recv(&mut self, message: &mut [u8]) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Came::Message { .. } = self.recv_fresh(message)? {
                return Ok(());
            }
            if begin.elapsed() >= self.options.timeout {
                let awaited = format!("a message of {} bytes", message.len());
                return Err(self.silence(awaited, begin.elapsed()));
            }
        }
    }

    #[inline]
    fn exchange(&mut self, ping: &[u8], pong: &mut [u8]) -> Result<u32> {
        let mut resends = 0;
        let mut begin = None;
        self.send(ping)?;
        let first = self.sent;
        loop {
            match self.recv_message(pong)? {
                Came::Message { sequence } if (first..=self.sent).contains(&sequence) => {
                    return Ok(resends);
                }
                Came::Message { .. } => {
                    self.late();
                    continue;
                }
                Came::Silence => {}
            }
            let since = *begin.get_or_insert_with(Instant::now);
            let waited = since.elapsed() + self.within;
            if waited > self.options.timeout {
                return Err(self.silence(
                    format!("the answer to {} bytes, sent {resends} times", ping.len()),
                    waited,
                ));
            }
            resends += 1;
            self.losses.resent += 1;
            self.send(ping)?;
        }
    }

    fn settings(&self) -> Result<Socket> {
        read_back(self.fd(), &self.options, self.place.path)
    }
}

#[cfg(test)]
mod tests;
