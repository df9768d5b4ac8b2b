//! A port's frames as a pcap file with nanosecond stamps.
//!
//! Model:   what a host sends is stamped when the model takes it, what it receives when it was handed over.
//! Source:  draft-ietf-opsawg-pcap-04 (magic 0xa1b23c4d, link type 1).
//! Checked: `a_capture_has_header_and_records`; read by tcpdump in the end-to-end tests.

use std::io::{self, BufWriter, Write};

/// A capture file being written.
pub(crate) struct Pcap<W: Write> {
    out: BufWriter<W>,
}

impl<W: Write> Pcap<W> {
    /// Writes the header; frames of up to `snap_bytes`.
    pub fn new(out: W, snap_bytes: u32) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 18, out);
        out.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
        out.write_all(&[2, 0, 4, 0])?;
        out.write_all(&[0; 8])?;
        out.write_all(&snap_bytes.to_le_bytes())?;
        out.write_all(&1u32.to_le_bytes())?;
        Ok(Self { out })
    }

    /// Adds a frame, stamped in nanoseconds since 1970.
    pub fn write(&mut self, realtime_ns: u64, frame: &[u8]) -> io::Result<()> {
        let length = (frame.len() as u32).to_le_bytes();
        let mut record = [0; 16];
        record[..4].copy_from_slice(&((realtime_ns / 1_000_000_000) as u32).to_le_bytes());
        record[4..8].copy_from_slice(&((realtime_ns % 1_000_000_000) as u32).to_le_bytes());
        record[8..12].copy_from_slice(&length);
        record[12..].copy_from_slice(&length);
        self.out.write_all(&record)?;
        self.out.write_all(frame)
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_header_and_records() {
        let mut bytes = Vec::new();
        let mut pcap = Pcap::new(&mut bytes, 1_514).unwrap();
        pcap.write(3_000_000_007, b"frame").unwrap();
        pcap.flush().unwrap();
        drop(pcap);
        assert_eq!(bytes.len(), 24 + 16 + 5);
        assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!((bytes[24], bytes[28], bytes[32]), (3, 7, 5));
    }
}
