//! How a layer-3 frame becomes bytes or cells on a line.
//!
//! Model:   Ethernet: header 14, FCS 4, preamble 8, gap 12, payload padded to 46. ATM: encapsulation and AAL5 trailer,
//!          padded to whole 48-byte payloads, 53 bytes a cell. HIPPI: headers of 40 bytes, bursts of 256 words, the last
//!          one short or filled, a gap after each.
//! Source:  IEEE 802.3 §3.1, §4.2.3.2, §4.4.2; ITU-T I.363.5 (AAL5: trailer 8 bytes); ITU-T I.361 (cell 5 + 48 bytes);
//!          RFC 2684 §5.1 (LLC/SNAP 8 bytes), §6.1 (VC multiplexing 0 bytes); ATM Forum LANE 1.0 §4.1.1 (2 bytes and an
//!          Ethernet header without FCS). Deviations: none.
//! Checked: `ethernet_pads_and_adds_38`, `aal5_is_exact_to_the_cell`.

use serde::{Deserialize, Serialize};
use sonde_units::Bytes;

/// Bytes of an ATM cell on the wire.
pub const CELL_WIRE: Bytes = Bytes(53);
/// Bytes that a cell carries.
pub const CELL_PAYLOAD: Bytes = Bytes(48);
const AAL5_TRAILER: u64 = 8;
const ETHERNET_MIN_PAYLOAD: u64 = 46;
const ETHERNET_OVERHEAD: u64 = 8 + 14 + 4 + 12;
/// Preamble 8, SD 1, FC 1, DA 6, SA 6, LLC/SNAP 8, FCS 4, ED and FS 2.
const FDDI_OVERHEAD: u64 = 36;
/// LLC/SNAP 8 and network header 16 (RFC 2625).
pub(crate) const FC_DATAGRAM: u64 = 24;
/// SOF 4, header 24, CRC 4, EOF 4, and six fill words.
pub(crate) const FC_FRAME: u64 = 36 + 24;
pub(crate) const FC_PAYLOAD: u64 = 2_112;
/// HIPPI-FP 8, HIPPI-LE 24, LLC/SNAP 8.
const HIPPI_HEADER: u64 = 40;
/// Words of a full burst: 4 bytes each at 800 Mb/s, 8 at 1600.
const HIPPI_WORDS: u64 = 256;

/// How IP is put into AAL5 (RFC 2684).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// Several protocols on a circuit: 8 bytes a frame.
    LlcSnap,
    /// One protocol on a circuit: nothing.
    Null,
    /// LAN emulation 1.0: a header of 2 bytes and that of an Ethernet frame, 16 bytes a frame.
    Lane,
}

impl Encapsulation {
    /// Bytes before the datagram.
    pub const fn header(self) -> Bytes {
        match self {
            Self::LlcSnap => Bytes(8),
            Self::Lane => Bytes(16),
            Self::Null => Bytes::ZERO,
        }
    }
}

/// The bursts of HIPPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Bytes of a full burst, 256 words: 1 KiB at 800 Mb/s, 2 KiB at 1600.
    pub burst: Bytes,
    /// Bytes of time from one burst to the next, with its checksum word (LLRC).
    pub gap: Bytes,
    /// What the last burst of a packet is filled up to.
    pub fill: Fill,
}

/// What the last burst of a HIPPI packet is filled up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// A full burst.
    Burst,
    /// A whole word: the last burst may be short.
    Word,
}

impl Bursts {
    /// How many bursts a datagram of `len` bytes takes.
    pub const fn count(self, len: Bytes) -> u64 {
        (len.0 + HIPPI_HEADER).div_ceil(self.burst.0)
    }

    /// Bytes of the words that it takes, without gaps.
    pub fn words(self, len: Bytes) -> Bytes {
        match self.fill {
            Fill::Burst => self.burst * self.count(len),
            Fill::Word => {
                let word = self.burst.0 / HIPPI_WORDS;
                Bytes((len.0 + HIPPI_HEADER).next_multiple_of(word))
            }
        }
    }

    /// Bytes of line that it takes, gaps included.
    pub fn wire(self, len: Bytes) -> Bytes {
        self.words(len) + self.gap * self.count(len)
    }
}

/// The framing of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Layer-3 bytes as they are.
    None,
    /// IEEE 802.3 frames.
    Ethernet,
    /// AAL5 in cells.
    Atm(Encapsulation),
    /// FDDI frames.
    Fddi,
    /// A sequence of Fibre Channel frames for each datagram.
    FibreChannel,
    /// A HIPPI packet of bursts for each datagram.
    Hippi(Bursts),
}

impl Framing {
    /// Bytes that a frame of `len` layer-3 bytes takes on the wire, with everything between it and the next.
    pub fn wire(self, len: Bytes) -> Bytes {
        match self {
            Self::None => len,
            Self::Ethernet => Bytes(len.0.max(ETHERNET_MIN_PAYLOAD) + ETHERNET_OVERHEAD),
            Self::Atm(_) => CELL_WIRE * self.units(len),
            Self::Fddi => len + Bytes(FDDI_OVERHEAD),
            Self::FibreChannel => len + Bytes(FC_DATAGRAM) + Bytes(FC_FRAME) * self.units(len),
            Self::Hippi(bursts) => bursts.wire(len),
        }
    }

    /// How many units a switch handles apart: cells of a frame on ATM, else 1.
    pub fn units(self, len: Bytes) -> u64 {
        match self {
            Self::Atm(encapsulation) => {
                (len.0 + encapsulation.header().0 + AAL5_TRAILER).div_ceil(CELL_PAYLOAD.0)
            }
            Self::FibreChannel => (len.0 + FC_DATAGRAM).div_ceil(FC_PAYLOAD),
            Self::Hippi(bursts) => bursts.count(len),
            Self::None | Self::Ethernet | Self::Fddi => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hippi_counts_bursts() {
        let low = |fill| Bursts {
            burst: Bytes(1_024),
            gap: Bytes(16),
            fill,
        };
        // RFC 2067's largest datagram: 65,320 bytes are 63 bursts and 808 bytes.
        let filled = Framing::Hippi(low(Fill::Burst));
        assert_eq!(filled.units(Bytes(65_280)), 64);
        assert_eq!(filled.wire(Bytes(65_280)), Bytes(64 * 1_040));
        assert_eq!(filled.wire(Bytes(1)), Bytes(1_040));
        let short = Framing::Hippi(low(Fill::Word));
        assert_eq!(short.wire(Bytes(65_280)), Bytes(65_320 + 64 * 16));
        assert_eq!(short.wire(Bytes(1)), Bytes(44 + 16));
        // With 64-bit words a burst is twice as long, and a word too.
        let high = Bursts {
            burst: Bytes(2_048),
            gap: Bytes(32),
            fill: Fill::Word,
        };
        assert_eq!(high.count(Bytes(65_280)), 32);
        assert_eq!(high.words(Bytes(1)), Bytes(48));
    }

    #[test]
    fn ethernet_pads_and_adds_38() {
        assert_eq!(Framing::Ethernet.wire(Bytes(1)), Bytes(84));
        assert_eq!(Framing::Ethernet.wire(Bytes(46)), Bytes(84));
        assert_eq!(Framing::Ethernet.wire(Bytes(1_500)), Bytes(1_538));
        assert_eq!(Framing::Ethernet.wire(Bytes(9_000)), Bytes(9_038));
    }

    #[test]
    fn aal5_is_exact_to_the_cell() {
        let (llc, null) = (
            Framing::Atm(Encapsulation::LlcSnap),
            Framing::Atm(Encapsulation::Null),
        );
        // An acknowledgement of 40 bytes is one cell without encapsulation and two with it.
        assert_eq!((null.units(Bytes(40)), llc.units(Bytes(40))), (1, 2));
        assert_eq!((null.units(Bytes(41)), llc.units(Bytes(32))), (2, 1));
        for (len, cells) in [(552, 12), (1_500, 32), (4_352, 91), (9_180, 192)] {
            assert_eq!(llc.units(Bytes(len)), cells, "{len}");
        }
        assert_eq!(llc.wire(Bytes(9_180)), Bytes(10_176));
        // LAN emulation at Ethernet's MTU costs no cell more than LLC/SNAP.
        let lane = Framing::Atm(Encapsulation::Lane);
        assert_eq!((lane.units(Bytes(1_500)), lane.units(Bytes(24))), (32, 1));
        assert_eq!((lane.units(Bytes(25)), llc.units(Bytes(32))), (2, 1));
    }
}
