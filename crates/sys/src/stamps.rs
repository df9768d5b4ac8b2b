//! Kernel time stamps of messages: when one passed the scheduler, left by the driver, was acknowledged, and arrived.
//!
//! Model:   SO_TIMESTAMPING with OPT_ID and OPT_TSONLY: of what is sent, stamps come to the socket's error queue, each with
//!          the number of its message (datagrams and frames: their count; TCP: the byte). Of what is received, the stamp
//!          comes with the message; of a TCP stream it is that of the last segment read. Enabling stamps of received
//!          packets takes the kernel a moment: the first messages may have none.
//! Source:  Documentation/networking/timestamping.rst; include/uapi/linux/errqueue.h.
//! Units:   nanoseconds on CLOCK_REALTIME; hardware stamps on the clock of their NIC.
//! Checked: `a_datagram_has_its_stamps`, `any_control_message_is_read`.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::Result;
use crate::error::{Attempt, checked};
use crate::socket::set_option;

/// Room for the stamps, and for what else the kernel may say.
const CONTROL_BYTES: usize = 256;

/// What happened to a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It was handed to the packet scheduler.
    Scheduled,
    /// The driver has it, or the NIC sent it.
    Left,
    /// TCP: the peer acknowledged its last byte.
    Acknowledged,
}

/// A stamp of a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentStamp {
    /// Which moment.
    pub what: Sent,
    /// The message's number, modulo 2^32: see the module's head.
    pub number: u32,
    /// By the kernel.
    pub software_ns: Option<u64>,
    /// By the NIC.
    pub hardware_ns: Option<u64>,
}

/// A received message's stamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes received.
    pub bytes: usize,
    /// When the kernel took it from the driver.
    pub software_ns: Option<u64>,
    /// When the NIC had it.
    pub hardware_ns: Option<u64>,
}

/// Asks for stamps of what is sent through a socket.
///
/// # Errors
/// The kernel refuses.
pub fn stamp_sent(socket: impl AsFd, is_stream: bool) -> Result<()> {
    let mut flags = libc::SOF_TIMESTAMPING_TX_SCHED
        | libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_HARDWARE
        | REPORT
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    // An answer's stamp by the card is of the same clock as the question's.
    flags |= libc::SOF_TIMESTAMPING_RX_HARDWARE | OPT_TX_BOTH;
    if is_stream {
        flags |= libc::SOF_TIMESTAMPING_TX_ACK | OPT_ID_TCP;
    }
    set(socket, flags)
}

/// Asks for stamps of what is received.
///
/// # Errors
/// The kernel refuses.
pub fn stamp_received(socket: impl AsFd) -> Result<()> {
    set(
        socket,
        libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE | REPORT,
    )
}

const REPORT: u32 = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
/// Numbers of a stream begin with its first byte, also when something was in flight (Linux 6.2).
const OPT_ID_TCP: u32 = 1 << 16;

/// The driver's stamp too, where the card has one (Linux 4.13).
const OPT_TX_BOTH: u32 = 1 << 14;

fn set(socket: impl AsFd, flags: u32) -> Result<()> {
    let wanted = flags;
    let set = |flags: u32| {
        set_option(
            socket.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            &flags,
        )
    };
    match set(wanted) {
        // An older kernel without this option: numbers are the same when nothing is in flight.
        Err(Errno::INVAL) => match set(wanted & !OPT_ID_TCP) {
            Err(Errno::INVAL) => set(wanted & !OPT_ID_TCP & !OPT_TX_BOTH),
            other => other,
        },
        other => other,
    }
    .attempt(|| "ask for kernel time stamps (SO_TIMESTAMPING)".into())
}

/// The next stamp in a socket's error queue; `None` when there is none, or something else was there.
///
/// # Errors
/// The kernel refuses.
pub fn next_sent(socket: impl AsFd) -> Result<Option<SentStamp>> {
    let mut control = [0u64; CONTROL_BYTES / 8];
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    let received = receive(socket, &mut [], flags, &mut control);
    match received {
        Ok((_, length)) => Ok(sent(as_bytes(&control, length))),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno).attempt(|| "read a time stamp of a sent message".into()),
    }
}

/// Receives into `buffer` and tells the stamps; `None` when nothing came within the socket's time-out, or where it is not to
/// wait.
///
/// # Errors
/// The peer is gone, or another failure of the socket.
#[inline]
pub fn recv(socket: impl AsFd, buffer: &mut [u8], wait: bool) -> Result<Option<Arrival>> {
    let mut control = [0u64; CONTROL_BYTES / 8];
    let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
    match receive(socket, buffer, flags, &mut control) {
        Ok((bytes, length)) => Ok(Some(Arrival {
            bytes,
            ..arrival(as_bytes(&control, length))
        })),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno).attempt(|| "receive a message with its time stamp".into()),
    }
}

/// recvmsg: bytes received, and bytes of control messages.
#[inline]
fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    flags: i32,
    control: &mut [u64; CONTROL_BYTES / 8],
) -> rustix::io::Result<(usize, usize)> {
    let mut vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: msghdr is plain data for which zero is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the header points at live buffers of the lengths given, exclusively borrowed.
    let status = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut header, flags) };
    let bytes = checked(status)?;
    Ok((bytes as usize, header.msg_controllen as usize))
}

fn as_bytes(control: &[u64; CONTROL_BYTES / 8], length: usize) -> &[u8] {
    // SAFETY: a slice of u64 seen as its bytes; the length is kept within it.
    unsafe { std::slice::from_raw_parts(control.as_ptr().cast(), length.min(CONTROL_BYTES)) }
}

/// Level, type and data of each control message.
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = (i32, i32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        const HEAD: usize = size_of::<libc::cmsghdr>();
        let word = size_of::<usize>();
        let head = self.0.get(..HEAD)?;
        let length = usize::from_ne_bytes(*head.first_chunk()?);
        let level = i32::from_ne_bytes(*head[word..].first_chunk()?);
        let kind = i32::from_ne_bytes(*head[word + 4..].first_chunk()?);
        let data = self.0.get(HEAD..length)?;
        let next = length.checked_next_multiple_of(word)?;
        self.0 = self.0.get(next..).unwrap_or(&[]);
        Some((level, kind, data))
    }
}

/// The software and the hardware stamp of struct scm_timestamping: the first and the third timespec.
fn both(data: &[u8]) -> (Option<u64>, Option<u64>) {
    let word = |at: usize| {
        let bytes = data.get(8 * at..8 * at + 8)?.first_chunk()?;
        u64::try_from(i64::from_ne_bytes(*bytes)).ok()
    };
    let time = |at: usize| {
        let (seconds, ns) = (word(at)?, word(at + 1)?);
        let all = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
        (all > 0).then_some(all)
    };
    (time(0), time(4))
}

fn is_stamp(level: i32, kind: i32) -> bool {
    level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPING
}

fn arrival(control: &[u8]) -> Arrival {
    let stamp = Parts(control).find(|(level, kind, _)| is_stamp(*level, *kind));
    let (software_ns, hardware_ns) = stamp.map_or((None, None), |(_, _, data)| both(data));
    Arrival {
        bytes: 0,
        software_ns,
        hardware_ns,
    }
}

fn sent(control: &[u8]) -> Option<SentStamp> {
    let (mut times, mut about) = (None, None);
    for (level, kind, data) in Parts(control) {
        if is_stamp(level, kind) {
            times = Some(both(data));
            continue;
        }
        // struct sock_extended_err, whatever the level: errno, origin, type, code, pad, info, data.
        let u32_at = |at: usize| {
            let bytes = data.get(at..at + 4)?.first_chunk()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        if data.get(4) == Some(&libc::SO_EE_ORIGIN_TIMESTAMPING) {
            about = u32_at(8).zip(u32_at(12));
        }
    }
    let (software_ns, hardware_ns) = times?;
    let (info, number) = about?;
    let what = match info {
        0 => Sent::Left, // SCM_TSTAMP_SND
        1 => Sent::Scheduled,
        2 => Sent::Acknowledged,
        _ => return None,
    };
    Some(SentStamp {
        what,
        number,
        software_ns,
        hardware_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::realtime_ns;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn a_datagram_has_its_stamps() {
        let (one, two) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        one.connect(two.local_addr().unwrap()).unwrap();
        two.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stamp_sent(&one, false).unwrap();
        stamp_received(&two).unwrap();
        // The kernel enables the stamps of received packets a moment later.
        std::thread::sleep(Duration::from_millis(50));
        for number in 0..3 {
            let before = realtime_ns();
            one.send(b"abc").unwrap();
            let arrived = recv(&two, &mut [0; 10], true).unwrap().unwrap();
            let after = realtime_ns();
            assert_eq!(arrived.bytes, 3);
            let mut left = None;
            while let Some(stamp) = next_sent(&one).unwrap() {
                assert_eq!(stamp.number, number);
                if stamp.what == Sent::Left {
                    left = stamp.software_ns;
                }
            }
            let (left, arrived) = (left.unwrap(), arrived.software_ns.unwrap());
            assert!(
                before <= left && left <= arrived && arrived <= after,
                "{before} {left} {arrived} {after}"
            );
        }
        assert_eq!(next_sent(&one).unwrap(), None);
        assert_eq!(recv(&two, &mut [0; 10], false).unwrap(), None);
    }

    #[test]
    fn any_control_message_is_read() {
        // Cut, empty and senseless ones: by a generator of bytes that knows of lengths.
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            for _ in 0..state % 12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let word = match state >> 61 {
                    0 => 16 + (state >> 40) % 64,
                    1 => (37u64 << 32) | 1,
                    2 => u64::MAX,
                    _ => state,
                };
                bytes.extend(word.to_ne_bytes());
            }
            bytes.truncate(bytes.len().saturating_sub((state >> 33) as usize % 9));
            arrival(&bytes);
            sent(&bytes);
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(7);
        }
        assert_eq!(sent(&[]), None);
    }
}
