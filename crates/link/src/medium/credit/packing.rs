//! A datagram as a sequence of packets, and their times.
//!
//! Model:   header and datagram are cut into packets of equal payload, the last with what is left; each has the same
//!          bytes around it.
//! Source:  FC-PH: payload up to 2112; RFC 2625 §4: 24 bytes before the datagram.
//! Units:   picoseconds, rounded up a packet.
//! Checked: `packets_carry_all`.

use crate::framing::{FC_DATAGRAM, FC_FRAME, FC_PAYLOAD};
use crate::{Credit, Framing, NetworkSpec};
use sonde_units::{BitRate, Bytes, Span};

/// Lengths whose times are kept, by their last bits.
const KEPT: usize = 32;

/// How datagrams are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packing {
    payload: u64,
    around: u64,
    header: u64,
}

impl Packing {
    pub fn new(spec: &NetworkSpec, credit: &Credit) -> Self {
        if spec.line.framing() == Framing::FibreChannel {
            return Self {
                payload: FC_PAYLOAD,
                around: FC_FRAME,
                header: FC_DATAGRAM,
            };
        }
        let of = |bytes: Option<Bytes>| bytes.map_or(0, |bytes| bytes.0);
        Self {
            payload: of(credit.packet).max(1),
            around: of(credit.around),
            header: of(credit.header),
        }
    }

    /// How many packets a datagram of `len` takes: one at least.
    pub fn packets(self, len: Bytes) -> u32 {
        (len.0 + self.header).div_ceil(self.payload).max(1) as u32
    }

    /// Bytes of the last packet with what is around it.
    fn last(self, len: Bytes) -> Bytes {
        let before = (u64::from(self.packets(len)) - 1) * self.payload;
        Bytes(len.0 + self.header - before + self.around)
    }

    /// Bytes of every other.
    fn full(self) -> Bytes {
        Bytes(self.payload + self.around)
    }

    /// How long all packets of a datagram take one after the other.
    pub fn time(self, rate: BitRate, len: Bytes) -> Span {
        rate.time(self.full()) * u64::from(self.packets(len) - 1) + rate.time(self.last(len))
    }
}

/// The times of a datagram's packets at one rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub full: Span,
    pub last: Span,
}

/// The times of packets at one rate, kept for recent lengths.
pub(super) struct PacketPace {
    packing: Packing,
    rate: BitRate,
    full: Span,
    /// A packet without payload: an acknowledgement, a connect frame.
    bare: Span,
    /// What a cut-through switch reads.
    head: Span,
    kept: [(u64, Span); KEPT],
}

impl PacketPace {
    pub fn new(packing: Packing, rate: BitRate, head: Bytes) -> Self {
        Self {
            packing,
            rate,
            full: rate.time(packing.full()),
            bare: rate.time(Bytes(packing.around)),
            head: rate.time(head),
            kept: [(u64::MAX, Span::ZERO); KEPT],
        }
    }

    pub fn times(&mut self, len: Bytes) -> Times {
        let kept = &mut self.kept[len.0 as usize % KEPT];
        if kept.0 != len.0 {
            *kept = (len.0, self.rate.time(self.packing.last(len)));
        }
        Times {
            full: self.full,
            last: kept.1,
        }
    }

    pub fn bare(&self) -> Span {
        self.bare
    }

    pub fn head(&self) -> Span {
        self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_carry_all() {
        let packing = Packing {
            payload: FC_PAYLOAD,
            around: FC_FRAME,
            header: FC_DATAGRAM,
        };
        for len in [0, 1, 2_088, 2_089, 4_096, 65_280].map(Bytes) {
            let packets = packing.packets(len);
            let wire = packing.full() * u64::from(packets - 1) + packing.last(len);
            assert_eq!(wire, Framing::FibreChannel.wire(len), "{len}");
            assert_eq!(
                u64::from(packets),
                Framing::FibreChannel.units(len),
                "{len}"
            );
        }
        assert_eq!(packing.packets(Bytes(65_280)), 31);
    }
}
