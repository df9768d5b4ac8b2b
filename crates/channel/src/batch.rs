//! Datagrams of one size, numbered, by each method of UDP: the end that sends them and the end that receives them.
//!
//! Model:   `plain`: one call for a datagram. `mmsg`: one call for many (sendmmsg, recvmmsg). `gso`: one buffer for many,
//!          cut on its way out (UDP_SEGMENT) and joined on its way in (UDP_GRO); where the device or the path below does
//!          neither, the kernel cuts it and joins nothing, which the datagrams a call show. Every datagram has its own
//!          number whatever the method, so that each loss, change of order and repetition is seen.
//! Units:   bytes of user data.
//! Checked: `every_method_numbers_its_datagrams`, `what_does_not_fit_the_buffer_is_missed_by_number`.

use rustix::io::Errno;
use sonde_sys::batch::{Batch, SEGMENTED_BYTES_MAX, SEGMENTS_MAX, set_joined};

use crate::udp::Datagram;
use crate::wait::Spin;
use crate::{Aligned, Channel, Error, Result, Room, UDP_MESSAGE_BYTES_MAX, Udp, payload};
use sonde_measure::{Buffers, Fixed, Method, Transfer, Wait};

/// Datagrams of a call by `mmsg`, at most.
const BATCH_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Slots of joined datagrams, each with room for the largest.
const JOINED_SLOTS: usize = 8;
/// What steers a conversation must fit a slot too.
const CAUGHT_BYTES_MIN: usize = 4 << 10;

/// Calls and what they moved.
#[derive(Debug, Default, Clone, Copy)]
struct Calls {
    calls: u64,
    datagrams: u64,
}

impl Calls {
    #[inline]
    fn add(&mut self, datagrams: usize) {
        self.calls += 1;
        self.datagrams += datagrams as u64;
    }

    fn transfer(self) -> Transfer {
        let mean = (self.calls > 0).then(|| self.datagrams as f64 / self.calls as f64);
        Transfer {
            datagrams_per_call: mean.and_then(Fixed::of),
            ..Transfer::default()
        }
    }
}

/// The sending end.
#[derive(Debug)]
pub struct BatchSender {
    size_bytes: usize,
    by: By,
    calls: Calls,
}

#[derive(Debug)]
enum By {
    Plain(Aligned),
    Mmsg(Batch),
    Gso { batch: Batch, segments: usize },
}

impl BatchSender {
    /// For datagrams of `size_bytes` by the socket's method.
    ///
    /// # Errors
    /// Cold buffers cannot be had here.
    pub fn open(channel: &Udp, size_bytes: usize) -> Result<Self> {
        let message = payload::message(size_bytes);
        let by = match channel.options.method {
            Method::Mmsg => {
                let slots = (BATCH_BYTES_MAX / size_bytes).clamp(1, BATCH_MAX);
                let mut batch = Batch::new(slots, size_bytes);
                for index in 0..slots {
                    batch.slot_mut(index).copy_from_slice(&message);
                }
                By::Mmsg(batch)
            }
            Method::Gso => {
                let segments = Self::segments(size_bytes);
                let mut batch = Batch::new(1, segments * size_bytes);
                let datagrams = batch.slot_mut(0).chunks_exact_mut(size_bytes);
                datagrams.for_each(|datagram| datagram.copy_from_slice(&message));
                By::Gso { batch, segments }
            }
            _ => By::Plain(Aligned::new(message, &channel.options.knobs)?),
        };
        Ok(Self {
            size_bytes,
            by,
            calls: Calls::default(),
        })
    }

    /// Datagrams of this size in a buffer by `gso`; one is as good as none.
    pub fn segments(size_bytes: usize) -> usize {
        (SEGMENTED_BYTES_MAX / size_bytes.max(1)).clamp(1, SEGMENTS_MAX)
    }

    /// Sends datagrams numbered from `sequence`, waiting until the kernel takes some; how many went.
    ///
    /// # Errors
    /// No room within the timeout; with `gso` a datagram that does not fit the interface's MTU.
    #[inline]
    pub fn send_some(&mut self, channel: &mut Udp, sequence: u64) -> Result<usize> {
        let first = sequence as u32;
        let went = match &mut self.by {
            By::Plain(message) => {
                message.number(first);
                channel.send(message)?;
                message.used(first);
                1
            }
            By::Mmsg(batch) => {
                let slots = batch.slots();
                for index in 0..slots {
                    payload::stamp(batch.slot_mut(index), first.wrapping_add(index as u32));
                }
                let size = self.size_bytes;
                room(channel, size, |channel, flags| {
                    batch.send(&channel.socket, 0, slots, size, flags)
                })?
            }
            By::Gso { batch, segments } => {
                let size = self.size_bytes;
                let datagrams = batch.slot_mut(0).chunks_exact_mut(size);
                for (index, datagram) in datagrams.enumerate() {
                    payload::stamp(datagram, first.wrapping_add(index as u32));
                }
                let bytes = size * *segments;
                room(channel, bytes, |channel, flags| {
                    batch.send_cut(&channel.socket, 0, bytes, size as u16, flags)
                })?;
                *segments
            }
        };
        self.calls.add(went);
        Ok(went)
    }

    /// How they were sent.
    pub fn transfer(&self) -> Transfer {
        self.calls.transfer()
    }
}

/// Repeats a call until there is room for what it sends.
#[inline]
fn room<T>(
    channel: &Udp,
    bytes: usize,
    mut call: impl FnMut(&Udp, i32) -> rustix::io::Result<T>,
) -> Result<T> {
    let is_poll = channel.options.wait == Wait::Poll;
    let flags = if is_poll { MSG_DONTWAIT } else { 0 };
    let mut spin = Spin::new(channel.options.timeout);
    loop {
        match call(channel, flags) {
            Ok(done) => return Ok(done),
            Err(Errno::INTR) => {}
            // See `Udp::send`.
            Err(Errno::AGAIN | Errno::NOBUFS) if is_poll && spin.again() => {}
            Err(Errno::NOBUFS) if spin.again() => {}
            Err(Errno::AGAIN | Errno::NOBUFS) => {
                return Err(Error::Timeout {
                    peer: channel.peer,
                    awaited: format!("room to send {bytes} bytes"),
                    waited: channel.options.timeout,
                });
            }
            Err(Errno::INVAL) => {
                let attempt = "send several datagrams, each of which must fit the interface's MTU";
                return Err(channel.failed(attempt, Errno::INVAL));
            }
            Err(errno) => return Err(channel.failed("send several datagrams", errno)),
        }
    }
}

const MSG_DONTWAIT: i32 = rustix::net::RecvFlags::DONTWAIT.bits() as i32;

/// Where a caught datagram lies.
#[derive(Debug, Clone, Copy)]
struct Piece {
    slot: usize,
    at: usize,
    /// What of it was kept.
    bytes: usize,
    /// Its size.
    size: usize,
}

/// The receiving end.
#[derive(Debug)]
pub struct BatchReceiver {
    batch: Batch,
    /// By `plain`.
    one: Option<Room>,
    is_gso: bool,
    pieces: Vec<Piece>,
    calls: Calls,
    /// Datagrams that came joined with others.
    joined: u64,
}

impl BatchReceiver {
    /// For datagrams of `size_bytes` by the socket's method.
    ///
    /// # Errors
    /// The kernel has not what the method needs.
    pub fn open(channel: &Udp, size_bytes: usize) -> Result<Self> {
        let slot_bytes = size_bytes.max(CAUGHT_BYTES_MIN);
        let batch = match channel.options.method {
            Method::Mmsg => {
                let slots = (BATCH_BYTES_MAX / slot_bytes).clamp(1, BATCH_MAX);
                Batch::new(slots, slot_bytes)
            }
            Method::Gso => {
                set_joined(&channel.socket, true)?;
                Batch::new(JOINED_SLOTS, 1 << 16)
            }
            _ => Batch::new(1, 1),
        };
        let knobs = &channel.options.knobs;
        let one = match channel.options.method {
            Method::Plain if knobs.buffers == Buffers::Cold => Some(Room::new(slot_bytes, knobs)?),
            Method::Plain => Some(Room::new(UDP_MESSAGE_BYTES_MAX, knobs)?),
            _ => None,
        };
        Ok(Self {
            batch,
            one,
            is_gso: channel.options.method == Method::Gso,
            pieces: Vec::with_capacity(JOINED_SLOTS * SEGMENTS_MAX),
            calls: Calls::default(),
            joined: 0,
        })
    }

    /// Takes what there is, waiting for the first as long as the socket's time to resend; how many datagrams, none where
    /// nothing came.
    ///
    /// # Errors
    /// The peer's port is closed, or another failure of the socket.
    #[inline]
    pub fn recv(&mut self, channel: &mut Udp) -> Result<usize> {
        self.pieces.clear();
        if let Some(room) = &mut self.one {
            if let Datagram::Of(size) = channel.recv_datagram(room.piece())? {
                let bytes = room.taken(size).len();
                self.pieces.push(Piece {
                    slot: 0,
                    at: 0,
                    bytes,
                    size,
                });
            }
            return Ok(self.pieces.len());
        }
        let is_poll = channel.options.wait == Wait::Poll;
        let flags = if is_poll { MSG_DONTWAIT } else { 0 };
        let mut spin = Spin::new(channel.resend_after);
        loop {
            match self.batch.recv(&channel.socket, flags) {
                Ok(slots) => {
                    self.divide(slots);
                    self.calls.add(self.pieces.len());
                    return Ok(self.pieces.len());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if is_poll && spin.again() => {}
                Err(Errno::AGAIN) => return Ok(0),
                Err(errno) => return Err(channel.failed("receive several datagrams", errno)),
            }
        }
    }

    /// Finds the datagrams in the filled slots.
    fn divide(&mut self, slots: usize) {
        for slot in 0..slots {
            let filled = self.batch.filled(slot);
            let kept = filled.bytes.min(self.batch.slot(slot).len());
            let Some(segment) = filled.segment_bytes else {
                self.pieces.push(Piece {
                    slot,
                    at: 0,
                    bytes: kept,
                    size: filled.bytes,
                });
                continue;
            };
            self.joined += kept.div_ceil(segment) as u64;
            for at in (0..kept).step_by(segment) {
                let bytes = segment.min(kept - at);
                self.pieces.push(Piece {
                    slot,
                    at,
                    bytes,
                    size: bytes,
                });
            }
        }
    }

    /// The datagram of this index among those just taken: its bytes as far as they were kept, and its size.
    ///
    /// # Panics
    /// Beyond those that came.
    #[inline]
    pub fn datagram(&self, index: usize) -> (&[u8], usize) {
        let piece = self.pieces[index];
        if let Some(room) = &self.one {
            return (room.last(), piece.size);
        }
        let bytes = &self.batch.slot(piece.slot)[piece.at..piece.at + piece.bytes];
        (bytes, piece.size)
    }

    /// How they were received: with `gso` also which share of them the path below had joined, none where it cannot.
    pub fn transfer(&self) -> Transfer {
        let joins = self.is_gso && self.calls.datagrams > 0;
        let share = joins.then(|| self.joined as f64 / self.calls.datagrams as f64);
        Transfer {
            joined_share: share.and_then(Fixed::of),
            ..self.calls.transfer()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, UdpPort};
    use sonde_measure::{Knobs, Path};
    use std::time::Duration;

    fn pair(method: Method, wait: Wait, knobs: Knobs) -> (Udp, Udp) {
        let options = Options {
            timeout: Duration::from_secs(5),
            method,
            knobs,
            ..Options::new(wait)
        };
        let mut port = UdpPort::bind("127.0.0.1:0".parse().unwrap(), options.clone()).unwrap();
        let mut client = Udp::connect(port.local(), options).unwrap();
        client.send(b"who is there").unwrap();
        let (_, from) = port
            .recv_from(&mut [0; 64], None, Duration::from_secs(5))
            .unwrap()
            .unwrap();
        (client, port.join(from).unwrap())
    }

    #[test]
    fn every_method_numbers_its_datagrams() {
        for method in Path::Udp.methods() {
            for wait in [Wait::Block, Wait::Poll] {
                for size in [8, 100, 1_472, 9_000, 30_000] {
                    let knobs = Knobs {
                        recv_buffer_bytes: Some(8 << 20),
                        ..Knobs::default()
                    };
                    let (mut client, mut server) = pair(*method, wait, knobs);
                    let room = server
                        .settings()
                        .unwrap()
                        .recv_buffer
                        .unwrap()
                        .granted_bytes;
                    if BATCH_MAX * size > room / 2 {
                        println!(
                            "skipped: {size} bytes by {method} need CAP_NET_ADMIN for their buffer"
                        );
                        continue;
                    }
                    let mut batch = BatchSender::open(&client, size).unwrap();
                    let mut burst = BatchReceiver::open(&server, size).unwrap();
                    let (mut sent, mut next) = (0, 0);
                    while next < 200 {
                        sent += batch.send_some(&mut client, sent).unwrap() as u64;
                        while next < sent as u32 {
                            let count = burst.recv(&mut server).unwrap();
                            assert!(count > 0, "{method} {size}: {next} of {sent} came");
                            for index in 0..count {
                                let (datagram, whole) = burst.datagram(index);
                                assert_eq!(whole, size);
                                assert_eq!(payload::verify(datagram, next), Ok(()));
                                next += 1;
                            }
                        }
                    }
                    let calls = batch.calls;
                    assert_eq!(calls.datagrams, sent);
                    assert_eq!(calls.datagrams > calls.calls, *method != Method::Plain);
                    let joined = burst.transfer().joined_share;
                    let wanted = (*method == Method::Gso).then_some(Fixed(1_000));
                    assert_eq!(joined, wanted, "loopback joins all");
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_the_buffer_is_missed_by_number() {
        for method in Path::Udp.methods() {
            let knobs = Knobs {
                recv_buffer_bytes: Some(20_000),
                ..Knobs::default()
            };
            let (mut client, mut server) = pair(*method, Wait::Block, knobs);
            server.set_resend_after(Duration::from_millis(50)).unwrap();
            let mut batch = BatchSender::open(&client, 1_000).unwrap();
            let mut burst = BatchReceiver::open(&server, 1_000).unwrap();
            let mut sent = 0;
            while sent < 2_000 {
                sent += batch.send_some(&mut client, sent).unwrap() as u64;
            }
            let mut came = 0;
            let mut last = None;
            loop {
                let count = burst.recv(&mut server).unwrap();
                if count == 0 {
                    break;
                }
                for index in 0..count {
                    let number = payload::sequence(burst.datagram(index).0);
                    assert!(number > last, "{number:?} after {last:?}");
                    last = number;
                    came += 1;
                }
            }
            assert!(came > 0 && came < sent, "{method}: {came} of {sent}");
        }
    }
}
