//! What travels: a frame's description without its bytes.

use crate::network::Answer;
use sonde_units::Bytes;

/// The name of a frame, chosen by who offers it; unique among the frames inside a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u64);

/// A station's place on the network, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// A multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// Who shall have a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One station.
    One(Port),
    /// Every other station.
    All,
    /// The members of a group, which a network that is divided knows; else flooded, as by a switch without group membership.
    Group(GroupId),
    /// An address that no station has; flooded.
    Unknown,
}

/// What a frame carries, as far as a network treats it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An IP datagram.
    Ip,
    /// An IP datagram for a host of another subnet, which is addressed on the link to a router of its own, or one that a bridge may have to cut up.
    Routed(Routed),
    /// An answer to an address request, or a request sent to one station.
    Arp,
    /// A request for the link address of this station, sent to all. A network with an address server (ATM) answers it
    /// by delivering it to its own sender.
    Resolve(Port),
    /// Anything else.
    Other,
}

/// What routers, and bridges that translate, know of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The host that it is for, or the interface of a router, which answers.
    pub to: Port,
    /// How many routers it may pass, and one more.
    pub ttl: u8,
    /// It may not be cut into fragments.
    pub is_whole: bool,
}

/// A datagram on its way over routers and bridges.
#[derive(Clone, Copy)]
pub(crate) struct Datagram {
    pub to: Port,
    pub ttl: u8,
    pub is_whole: bool,
    /// How many routers it has passed.
    pub hops: u8,
    /// It is a router's answer to what had this name: of that interface, and which.
    pub answer: Option<(Port, Answer)>,
    /// What of it this is, where it was cut up.
    pub piece: Option<Piece>,
}

/// A fragment that a router or bridge made of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes behind the datagram's header that come before it.
    pub offset: u16,
    /// Bytes behind its own header, above 0.
    pub len: u16,
}

/// Bytes of an IPv4 header without options: a datagram with some is not cut up.
pub(crate) const IP_HEADER: u64 = 20;

impl Piece {
    /// The pieces of what has `len` layer-3 bytes and is this piece of a datagram already, none longer than `mtu`: all but the last carry a
    /// multiple of 8 bytes (RFC 791 §3.2).
    pub(crate) fn cut(whole: Option<Self>, len: u64, mtu: u64) -> impl Iterator<Item = Self> {
        let begin = whole.map_or(0, |piece| u64::from(piece.offset));
        let payload = len.saturating_sub(IP_HEADER);
        let most = (mtu.saturating_sub(IP_HEADER) / 8 * 8).max(8);
        (0..payload.div_ceil(most)).map(move |number| Self {
            offset: (begin + number * most).min(u16::MAX.into()) as u16,
            len: most.min(payload - number * most) as u16,
        })
    }
}

impl Datagram {
    /// The usual TTL of a host.
    pub const TTL: u8 = 64;

    pub const fn of(to: Port, ttl: u8, is_whole: bool) -> Self {
        Self {
            to,
            ttl,
            is_whole,
            hops: 0,
            answer: None,
            piece: None,
        }
    }
}

/// The class of service; 0 is best effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u8);

/// Explicit congestion notification as the sender set it (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not take part.
    #[default]
    NotCapable,
    /// The transport takes part.
    Capable,
    /// Congestion was met already.
    Experienced,
}

/// A frame as the models see it. Its bytes stay with who offered it until [`Event::Done`](crate::Event::Done).
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its name.
    pub id: FrameId,
    /// The station that sends it.
    pub from: Port,
    /// Who shall have it.
    pub to: To,
    /// Its length at layer 3, without any link header.
    pub len: Bytes,
    /// What it carries.
    pub kind: Kind,
    /// Its class of service.
    pub class: Class,
    /// Its congestion mark on entry.
    pub ecn: Ecn,
    /// A number that frames of one conversation share.
    pub flow: u64,
}

impl Frame {
    /// An IP datagram of `len` layer-3 bytes from one station to another: best effort, no congestion mark, flow 0.
    pub const fn datagram(id: FrameId, from: Port, to: Port, len: Bytes) -> Self {
        Self {
            id,
            from,
            to: To::One(to),
            len,
            kind: Kind::Ip,
            class: Class(0),
            ecn: Ecn::NotCapable,
            flow: 0,
        }
    }
}
