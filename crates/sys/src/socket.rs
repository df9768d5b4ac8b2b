//! What the kernel knows of a socket: TCP_INFO, congestion control, buffers.
//!
//! Source:  include/uapi/linux/tcp.h, struct tcp_info (fields are only ever added at its end).
//! Units:   as the field names say; times in TCP_INFO are microseconds in the kernel and stay so.
//! Checked: `a_loopback_stream_has_figures`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::net::sockopt;

use crate::Result;
use crate::error::{Attempt, checked};

/// A typed part of TCP_INFO. `None`: this kernel does not report the field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// The connection's state, as include/net/tcp_states.h numbers it.
    pub state: u8,
    /// Retransmissions of the segment now waited for.
    pub retransmits: u8,
    /// Retransmission time-out.
    pub rto_us: u32,
    /// Segment size in sending.
    pub snd_mss_bytes: u32,
    /// Segments that were sent and not acknowledged.
    pub unacked_segments: u32,
    /// Smoothed round trip.
    pub rtt_us: u32,
    /// Its mean deviation.
    pub rttvar_us: u32,
    /// Slow-start threshold, in segments.
    pub snd_ssthresh: u32,
    /// Congestion window, in segments.
    pub snd_cwnd: u32,
    /// Segments sent again since the start.
    pub total_retrans: u32,
    /// Pacing; `None` also when it is off (all ones in the kernel).
    pub pacing_rate_bytes_per_s: Option<u64>,
    /// Bytes acknowledged; the SYN counts as one.
    pub bytes_acked: Option<u64>,
    /// Bytes received in order.
    pub bytes_received: Option<u64>,
    /// Shortest round trip seen.
    pub min_rtt_us: Option<u32>,
    /// Latest rate at which data was delivered.
    pub delivery_rate_bytes_per_s: Option<u64>,
    /// Time with something to send.
    pub busy_time_us: Option<u64>,
    /// Part of it held back by the peer's window.
    pub rwnd_limited_us: Option<u64>,
    /// Part of it held back by the own send buffer.
    pub sndbuf_limited_us: Option<u64>,
    /// Payload bytes sent, repeats included.
    pub bytes_sent: Option<u64>,
    /// Payload bytes sent again.
    pub bytes_retrans: Option<u64>,
    /// Segments with data sent, repeats included.
    pub data_segs_out: Option<u32>,
    /// Repeats of which the peer said that it had them already.
    pub dsack_dups: Option<u32>,
    /// Times that segments were seen to have overtaken others on the way to the peer.
    pub reord_seen: Option<u32>,
    /// Segments received before one that precedes them.
    pub rcv_ooopack: Option<u32>,
    /// Bytes that were handed over and not yet sent.
    pub notsent_bytes: Option<u32>,
}

/// TCP_CLOSE: nothing is left to be sent or awaited.
const TCP_CLOSE: u8 = 7;

impl TcpInfo {
    /// Whether the connection is over on this side: both ends were sent and acknowledged, or it was reset.
    pub fn is_closed(&self) -> bool {
        self.state == TCP_CLOSE
    }
}

fn parse(bytes: &[u8]) -> TcpInfo {
    let u32_at = |at: usize| {
        bytes
            .get(at..at + 4)
            .map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
    };
    let u64_at = |at: usize| {
        let bytes = bytes.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let old = |at: usize| u32_at(at).unwrap_or(0);
    TcpInfo {
        state: bytes.first().copied().unwrap_or(0),
        retransmits: bytes.get(2).copied().unwrap_or(0),
        rto_us: old(8),
        snd_mss_bytes: old(16),
        unacked_segments: old(24),
        rtt_us: old(68),
        rttvar_us: old(72),
        snd_ssthresh: old(76),
        snd_cwnd: old(80),
        total_retrans: old(100),
        pacing_rate_bytes_per_s: u64_at(104).filter(|&rate| rate != u64::MAX),
        bytes_acked: u64_at(120),
        bytes_received: u64_at(128),
        min_rtt_us: u32_at(148),
        delivery_rate_bytes_per_s: u64_at(160),
        busy_time_us: u64_at(168),
        rwnd_limited_us: u64_at(176),
        sndbuf_limited_us: u64_at(184),
        bytes_sent: u64_at(200),
        bytes_retrans: u64_at(208),
        data_segs_out: u32_at(156),
        dsack_dups: u32_at(216),
        reord_seen: u32_at(220),
        rcv_ooopack: u32_at(224),
        notsent_bytes: u32_at(144),
    }
}

/// Reads TCP_INFO.
pub fn tcp_info(socket: impl AsFd) -> Result<TcpInfo> {
    let mut bytes = [0u8; 512];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the buffer is a live local of the length given; the kernel writes at most that.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &mut length,
        )
    };
    checked(status).attempt(|| "read TCP_INFO".into())?;
    Ok(parse(&bytes[..length as usize]))
}

/// The congestion control in use; what a route's `congctl` gave shows here once connected.
pub fn congestion(socket: impl AsFd) -> Result<String> {
    sockopt::tcp_congestion(socket).attempt(|| "read TCP_CONGESTION".into())
}

/// Chooses the congestion control and reads it back.
pub fn set_congestion(socket: impl AsFd, name: &str) -> Result<()> {
    sockopt::set_tcp_congestion(socket, name).attempt(|| {
        format!("use congestion control {name} (see net.ipv4.tcp_allowed_congestion_control; by route any loaded one)")
    })
}

/// The CPU that worked on the last packet received for a socket (SO_INCOMING_CPU); `None` before there was one.
pub fn incoming_cpu(socket: impl AsFd) -> Option<usize> {
    let number = rustix::net::sockopt::socket_incoming_cpu(socket).ok()?;
    // -1 before the first packet.
    (number != u32::MAX).then_some(number as usize)
}

/// Sends small segments at once (TCP_NODELAY).
pub fn set_nodelay(socket: impl AsFd, on: bool) -> Result<()> {
    sockopt::set_tcp_nodelay(socket, on).attempt(|| format!("set TCP_NODELAY to {on}"))
}

/// Lets a receive that would sleep look at the device's queue for this long (SO_BUSY_POLL), and reads back what it is.
///
/// # Errors
/// More than net.core.busy_read without CAP_NET_ADMIN; a kernel without busy polling.
pub fn set_busy_poll(socket: impl AsFd, us: u32) -> Result<u32> {
    let fd = socket.as_fd();
    let asked = i32::try_from(us).unwrap_or(i32::MAX);
    set_option(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &asked).attempt(|| {
        format!("busy-poll for {us} us (more than net.core.busy_read needs CAP_NET_ADMIN: be root, or raise that sysctl)")
    })?;
    busy_poll(fd)
}

/// Bounds the window that a TCP socket offers (TCP_WINDOW_CLAMP), and reads back what it is.
///
/// The bound does not last: whenever segments take less of the buffer than Linux (seen with 6.18) had thought, it puts the
/// bound to the buffer times the new share (`tcp_measure_rcv_mss`), unless the bound is above the buffer. Seen by 32 KiB,
/// 20 ms and a buffer of 128 KiB: set once, the bound read 174080 after some seconds and the rate was 1.74 windows a round
/// trip; set after each receive it read 32768, with 0.89 windows a round trip. Set it again while it is to hold.
///
/// # Errors
/// The kernel refuses; it takes no less than about 1 KiB, which is read back.
pub fn set_window(socket: impl AsFd, bytes: usize) -> Result<usize> {
    let value = bytes.min(i32::MAX as usize) as i32;
    set_option(
        socket.as_fd(),
        libc::IPPROTO_TCP,
        libc::TCP_WINDOW_CLAMP,
        &value,
    )
    .attempt(|| format!("bound the window to {bytes} bytes (TCP_WINDOW_CLAMP)"))?;
    window(socket)
}

/// Has the kernel send no more than so many bytes a second from a TCP socket, by timers of its own where no queueing discipline
/// does it (tcp(7), SO_MAX_PACING_RATE; since Linux 4.13). What the kernel took is read back.
///
/// # Errors
/// The kernel refuses, or takes another bound.
pub fn set_pacing(socket: impl AsFd, bytes_per_s: u64) -> Result<()> {
    let fd = socket.as_fd();
    let value = libc::c_ulong::try_from(bytes_per_s).unwrap_or(libc::c_ulong::MAX);
    let what =
        || format!("bound a connection to {bytes_per_s} bytes per second (SO_MAX_PACING_RATE)");
    set_option(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &value).attempt(what)?;
    let mut found: libc::c_ulong = 0;
    let mut length = size_of::<libc::c_ulong>() as libc::socklen_t;
    // SAFETY: a live local of the length given.
    let status = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw mut found).cast(),
            &mut length,
        )
    };
    checked(status).attempt(what)?;
    match found == value {
        true => Ok(()),
        false => Err(rustix::io::Errno::INVAL).attempt(what),
    }
}

/// Datagrams that a socket has not taken since it was opened, for want of room or by its own filter (SO_MEMINFO,
/// include/uapi/linux/sock_diag.h, SK_MEMINFO_DROPS).
///
/// # Errors
/// The kernel does not tell.
pub fn dropped(socket: impl AsFd) -> Result<u64> {
    const DROPS: usize = 8;
    let mut memory = [0u32; DROPS + 1];
    let mut length = size_of_val(&memory) as libc::socklen_t;
    // SAFETY: a live local of the length given.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            memory.as_mut_ptr().cast(),
            &mut length,
        )
    };
    checked(status).attempt(|| "read SO_MEMINFO".into())?;
    Ok(memory[DROPS].into())
}

/// The bound of the window that a TCP socket offers, now.
///
/// # Errors
/// The kernel refuses.
pub fn window(socket: impl AsFd) -> Result<usize> {
    let mut bytes = 0i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: a live local of the length given.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw mut bytes).cast(),
            &mut length,
        )
    };
    checked(status).attempt(|| "read TCP_WINDOW_CLAMP".into())?;
    Ok(bytes.max(0) as usize)
}

/// Lets a receive return only when this many bytes have come, or the stream's end (SO_RCVLOWAT). The kernel widens a receive
/// buffer that it tunes itself to twice of it.
///
/// # Errors
/// The kernel refuses.
pub fn set_low_water(socket: impl AsFd, bytes: usize) -> Result<()> {
    let value = bytes.min(i32::MAX as usize) as i32;
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, &value)
        .attempt(|| format!("let receives wait for {bytes} bytes (SO_RCVLOWAT)"))
}

/// How long a receive looks at the device's queue before it sleeps, microseconds.
///
/// # Errors
/// The kernel does not tell.
pub fn busy_poll(socket: impl AsFd) -> Result<u32> {
    let mut us = 0i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: a live local of the length given.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BUSY_POLL,
            (&raw mut us).cast(),
            &mut length,
        )
    };
    checked(status).attempt(|| "read SO_BUSY_POLL".into())?;
    Ok(us.max(0) as u32)
}

/// A buffer size as asked for and as the kernel reports it, which is twice what it granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSize {
    /// Asked for.
    pub asked_bytes: usize,
    /// Usable bytes granted: half of what the kernel reports; capped by net.core.{r,w}mem_max.
    pub granted_bytes: usize,
}

/// Sets the send buffer, by force where permitted.
pub fn set_send_buffer(socket: impl AsFd, bytes: usize) -> Result<BufferSize> {
    let fd = socket.as_fd();
    force_buffer(fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, bytes)?;
    let reported =
        sockopt::socket_send_buffer_size(fd).attempt(|| "read the send buffer size".into())?;
    Ok(BufferSize {
        asked_bytes: bytes,
        granted_bytes: reported / 2,
    })
}

/// Sets the receive buffer, by force where permitted.
pub fn set_recv_buffer(socket: impl AsFd, bytes: usize) -> Result<BufferSize> {
    let fd = socket.as_fd();
    force_buffer(fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, bytes)?;
    let reported =
        sockopt::socket_recv_buffer_size(fd).attempt(|| "read the receive buffer size".into())?;
    Ok(BufferSize {
        asked_bytes: bytes,
        granted_bytes: reported / 2,
    })
}

fn force_buffer(fd: BorrowedFd<'_>, force: i32, plain: i32, bytes: usize) -> Result<()> {
    let value = bytes.min(i32::MAX as usize / 2) as i32;
    if set_option(fd, libc::SOL_SOCKET, force, &value).is_ok() {
        return Ok(());
    }
    set_option(fd, libc::SOL_SOCKET, plain, &value)
        .attempt(|| format!("set a socket buffer of {bytes} bytes"))
}

/// setsockopt with a plain value.
pub(crate) fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
) -> rustix::io::Result<()> {
    // SAFETY: `value` is live and its size is given; the kernel only reads.
    let status = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    checked(status).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_loopback_stream_has_figures() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        set_nodelay(&client, true).unwrap();
        assert!(client.nodelay().unwrap());
        client.write_all(&[1; 1000]).unwrap();
        let mut bytes = [0; 1000];
        server.read_exact(&mut bytes).unwrap();
        server.write_all(b"x").unwrap();
        client.read_exact(&mut bytes[..1]).unwrap();
        let info = tcp_info(&client).unwrap();
        // bytes_acked counts the SYN.
        assert_eq!(info.bytes_acked, Some(1001));
        assert_eq!(
            (info.bytes_received, info.bytes_retrans),
            (Some(1), Some(0))
        );
        assert!(
            info.snd_cwnd > 0 && info.snd_mss_bytes > 500 && info.rtt_us > 0,
            "{info:?}"
        );
        let name = congestion(&client).unwrap();
        set_congestion(&client, &name).unwrap();
        assert!(set_congestion(&client, "no_such").is_err());
        let size = set_recv_buffer(&client, 100_000).unwrap();
        assert_eq!(size.granted_bytes, 100_000);
        assert_eq!(
            set_send_buffer(&client, 50_000).unwrap().granted_bytes,
            50_000
        );
    }

    #[test]
    fn a_short_answer_leaves_new_fields_out() {
        let info = parse(&[0; 104]);
        assert_eq!(
            (info.bytes_acked, info.min_rtt_us, info.total_retrans),
            (None, None, 0)
        );
    }
}
