//! How a layer-3 frame becomes bytes or cells on a line.
//!
//! Model:   Ethernet: header 14, FCS 4, preamble 8, gap 12, payload padded to 46. ATM: encapsulation and AAL5 trailer,
//!          padded to whole 48-byte payloads, 53 bytes a cell.
//! Source:  IEEE 802.3 §3.1, §4.2.3.2, §4.4.2; ITU-T I.363.5 (AAL5: trailer 8 bytes); ITU-T I.361 (cell 5 + 48 bytes);
//!          RFC 2684 §5.1 (LLC/SNAP 8 bytes), §6.1 (VC multiplexing 0 bytes). Deviations: none.
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
const FC_DATAGRAM: u64 = 24;
/// SOF 4, header 24, CRC 4, EOF 4, and six fill words.
const FC_FRAME: u64 = 36 + 24;
const FC_PAYLOAD: u64 = 2_112;
/// HIPPI-FP 8, HIPPI-LE 24, LLC/SNAP 8.
const HIPPI_HEADER: u64 = 40;
const HIPPI_BURST: u64 = 1_024;
/// LLRC and gap between bursts.
const HIPPI_GAP: u64 = 16;

/// How IP is put into AAL5 (RFC 2684).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encapsulation {
    /// Several protocols on a circuit: 8 bytes a frame.
    LlcSnap,
    /// One protocol on a circuit: nothing.
    Null,
}

impl Encapsulation {
    /// Bytes before the datagram.
    pub const fn header(self) -> Bytes {
        match self {
            Self::LlcSnap => Bytes(8),
            Self::Null => Bytes::ZERO,
        }
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
    Hippi,
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
            Self::Hippi => (Bytes(HIPPI_BURST) + Bytes(HIPPI_GAP)) * self.units(len),
        }
    }

    /// How many units a switch handles apart: cells of a frame on ATM, else 1.
    pub fn units(self, len: Bytes) -> u64 {
        match self {
            Self::Atm(encapsulation) => {
                (len.0 + encapsulation.header().0 + AAL5_TRAILER).div_ceil(CELL_PAYLOAD.0)
            }
            Self::FibreChannel => (len.0 + FC_DATAGRAM).div_ceil(FC_PAYLOAD),
            Self::Hippi => (len.0 + HIPPI_HEADER).div_ceil(HIPPI_BURST),
            Self::None | Self::Ethernet | Self::Fddi => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
