//! Interfaces, addresses, routes, neighbours and queueing disciplines, through rtnetlink.
//!
//! Model:   one request, then its acknowledgement or the parts of its dump; a refusal carries the
//!          operation's name and the kernel's own sentence. The socket stays with the network namespace in
//!          which it was opened, wherever its holder goes.
//! Source:  rtnetlink(7), netlink(7); messages by the crate netlink-packet-route.
//! Checked: `tests/netlink.rs`.

mod link;
mod resolve;
mod route;

pub use link::{Link, LinkChange, LinkStats, VethEnd};
pub use resolve::{NextHop, Resolved};
pub use route::{Neighbour, Route, RouteMetrics};

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::error::Attempt;
use crate::socket::set_option;
use crate::{Error, Result};

/// A dump's part is at most 32 KiB.
const ANSWER_BYTES: usize = 64 * 1024;

/// A connection to the routing part of the kernel, for one network namespace.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    sequence: u32,
    answer: Vec<u8>,
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Netlink {
    /// Opens a connection to the current network namespace.
    pub fn open() -> Result<Self> {
        let fd = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // NETLINK_ROUTE is protocol 0.
            None,
        )
        .attempt(|| "open a netlink socket".into())?;
        rustix::net::bind(&fd, &SocketAddrNetlink::new(0, 0))
            .attempt(|| "bind a netlink socket".into())?;
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            set_option(fd.as_fd(), libc::SOL_NETLINK, option, &1i32)
                .attempt(|| "ask netlink for short acknowledgements with a reason".into())?;
        }
        Ok(Self {
            fd,
            sequence: 0,
            answer: vec![0; ANSWER_BYTES],
        })
    }

    /// The socket itself, for a holder that speaks netlink by itself.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Sends a change and waits for its acknowledgement.
    pub(crate) fn change(
        &mut self,
        what: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<()> {
        self.exchange(what, message, NLM_F_ACK | flags).map(|_| ())
    }

    /// Asks for one object.
    pub(crate) fn query(
        &mut self,
        what: &str,
        message: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        self.exchange(what, message, NLM_F_ACK)
    }

    /// Asks for all objects of a kind.
    pub(crate) fn dump(
        &mut self,
        what: &str,
        message: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        self.exchange(what, message, NLM_F_DUMP)
    }

    fn exchange(
        &mut self,
        what: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = encode(message, flags, self.sequence);
        rustix::net::send(&self.fd, &request, SendFlags::empty()).attempt(|| what.to_string())?;
        let mut found = Vec::new();
        loop {
            let length =
                match rustix::net::recv(&self.fd, self.answer.as_mut_slice(), RecvFlags::TRUNC) {
                    Ok((_, length)) => length,
                    Err(Errno::INTR) => continue,
                    Err(errno) => return Err(errno).attempt(|| format!("{what} (no answer)")),
                };
            if length > self.answer.len() {
                return Err(Error::Answer {
                    what: what.into(),
                    text: format!("an answer of {length} bytes"),
                });
            }
            for part in Parts(&self.answer[..length]) {
                if part.sequence != self.sequence {
                    // Left over from a request whose answer was cut short.
                    continue;
                }
                match part.outcome() {
                    Some(Ok(())) => return Ok(found),
                    Some(Err((errno, text))) => {
                        return Err(Error::Netlink {
                            what: what.into(),
                            errno,
                            text,
                        });
                    }
                    None => found.push(decode(what, part.bytes)?),
                }
            }
        }
    }

    /// Counters of the root queueing discipline of an interface.
    pub fn qdisc(&mut self, ifindex: u32) -> Result<QdiscStats> {
        let what = format!("read the queueing discipline of interface {ifindex}");
        let request =
            RouteNetlinkMessage::GetQueueDiscipline(TcMessage::with_index(ifindex as i32));
        for message in self.dump(&what, request)? {
            let RouteNetlinkMessage::NewQueueDiscipline(message) = message else {
                continue;
            };
            if message.header.index == ifindex as i32 && message.header.parent == TcHandle::ROOT {
                return Ok(QdiscStats::from(&message));
            }
        }
        Err(Error::Answer {
            what,
            text: "it has none (is the interface up?)".into(),
        })
    }

    /// Removes the root queueing discipline of an interface; the default one takes its place.
    pub fn delete_qdisc(&mut self, ifindex: u32) -> Result<()> {
        let mut message = TcMessage::with_index(ifindex as i32);
        message.header.parent = TcHandle::ROOT;
        let what = format!("remove the queueing discipline of interface {ifindex}");
        self.change(&what, RouteNetlinkMessage::DelQueueDiscipline(message), 0)
    }
}

/// Counters of a queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QdiscStats {
    /// Its kind, such as `tbf`.
    pub kind: String,
    /// Frames passed on.
    pub packets: u64,
    /// Bytes passed on.
    pub bytes: u64,
    /// Frames dropped.
    pub drops: u64,
    /// Times it had to wait for tokens.
    pub overlimits: u64,
    /// Frames waiting.
    pub queued: u64,
    /// Bytes waiting.
    pub backlog_bytes: u64,
}

impl From<&TcMessage> for QdiscStats {
    fn from(message: &TcMessage) -> Self {
        let mut stats = Self::default();
        for attribute in &message.attributes {
            match attribute {
                TcAttribute::Kind(kind) => stats.kind = kind.clone(),
                TcAttribute::Stats2(parts) => {
                    for part in parts {
                        stats.add(part);
                    }
                }
                _ => {}
            }
        }
        stats
    }
}

impl QdiscStats {
    fn add(&mut self, part: &TcStats2) {
        match part {
            TcStats2::Basic(basic) => {
                self.packets = basic.packets.into();
                self.bytes = basic.bytes;
            }
            TcStats2::Queue(queue) => {
                self.drops = queue.drops.into();
                self.overlimits = queue.overlimits.into();
                self.queued = queue.qlen.into();
                self.backlog_bytes = queue.backlog.into();
            }
            _ => {}
        }
    }
}

/// A whole request as bytes.
pub(crate) fn encode(message: RouteNetlinkMessage, flags: u16, sequence: u32) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    bytes
}

fn decode(what: &str, bytes: &[u8]) -> Result<RouteNetlinkMessage> {
    let wrong = |text: String| Error::Answer {
        what: what.to_string(),
        text,
    };
    let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes)
        .map_err(|error| wrong(format!("the answer could not be read: {error}")))?;
    match message.payload {
        NetlinkPayload::InnerMessage(message) => Ok(message),
        other => Err(wrong(format!("unexpected answer {other:?}"))),
    }
}

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;
const HEADER_BYTES: usize = 16;

/// One message of an answer. Parsed here, since the hot path must not allocate and the library's error
/// payload leaves out the kernel's sentence.
pub(crate) struct Part<'a> {
    kind: u16,
    flags: u16,
    pub(crate) sequence: u32,
    bytes: &'a [u8],
}

impl Part<'_> {
    /// `None` for data; for an acknowledgement or the end of a dump, its result.
    pub(crate) fn outcome(&self) -> Option<std::result::Result<(), (Errno, String)>> {
        if self.kind != NLMSG_ERROR && self.kind != NLMSG_DONE {
            return None;
        }
        let code = self.bytes.get(HEADER_BYTES..HEADER_BYTES + 4);
        let code = code.map_or(0, |b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        if code >= 0 {
            return Some(Ok(()));
        }
        Some(Err((
            Errno::from_raw_os_error(-code),
            self.sentence().unwrap_or_default(),
        )))
    }

    fn sentence(&self) -> Option<String> {
        if self.flags & NLM_F_ACK_TLVS == 0 {
            return None;
        }
        // After the code: the header of the request, and the request itself unless it was left out.
        let mut at = HEADER_BYTES + 4;
        if self.kind == NLMSG_ERROR {
            let length = self.bytes.get(at..at + 4)?;
            let length = u32::from_ne_bytes(length.try_into().ok()?) as usize;
            let capped = self.flags & NLM_F_CAPPED != 0;
            at += if capped {
                HEADER_BYTES
            } else {
                length.next_multiple_of(4)
            };
        }
        while let Some(head) = self.bytes.get(at..at + 4) {
            let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
            let kind = u16::from_ne_bytes([head[2], head[3]]);
            if kind == NLMSGERR_ATTR_MSG {
                let text = self.bytes.get(at + 4..at + length)?;
                return Some(
                    String::from_utf8_lossy(text)
                        .trim_end_matches('\0')
                        .to_string(),
                );
            }
            at += length.next_multiple_of(4).max(4);
        }
        None
    }
}

/// The messages of a datagram.
pub(crate) struct Parts<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let head = self.0.get(..HEADER_BYTES)?;
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let bytes = self.0.get(..length).filter(|_| length >= HEADER_BYTES)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Part {
            kind: u16::from_ne_bytes([head[4], head[5]]),
            flags: u16::from_ne_bytes([head[6], head[7]]),
            sequence: u32::from_ne_bytes([head[8], head[9], head[10], head[11]]),
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_answers_end_without_a_panic() {
        let mut bytes = Vec::new();
        for word in [20u32, 2 | 0x300 << 16, 9, 0, (-22i32) as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        let part = Parts(&bytes).next().unwrap();
        assert_eq!(part.outcome(), Some(Err((Errno::INVAL, String::new()))));
        for cut in 0..bytes.len() {
            assert!(Parts(&bytes[..cut]).next().is_none());
        }
        bytes[0] = 3;
        assert!(Parts(&bytes).next().is_none());
    }
}
