//! A port's frames as a pcap file with nanosecond stamps.
//!
//! Model:   what a host sends is stamped when the model takes it, what it receives when it was handed over.
//! Source:  draft-ietf-opsawg-pcap-04 (magic 0xa1b23c4d, link type 1).
//! Checked: `a_capture_has_header_and_records`, `of_a_full_disk_whole_frames_count`; read by tcpdump in the end-to-end tests.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::io::{self, Write};

/// Bytes that are gathered for one write.
const GATHERED: usize = 1 << 18;
const HEADER: usize = 24;
const RECORD: usize = 16;

/// A capture file being written.
pub(crate) struct Pcap<W: Write> {
    out: W,
    /// What is not written: the header at first, then whole records.
    gathered: Vec<u8>,
    /// Bytes of the header and of whole records that were written.
    whole_bytes: u64,
}

impl<W: Write> Pcap<W> {
    /// Begins with the header; frames of up to `snap_bytes`.
    pub fn new(out: W, snap_bytes: u32) -> Self {
        let mut gathered = Vec::with_capacity(GATHERED);
        gathered.extend(0xa1b2_3c4d_u32.to_le_bytes());
        gathered.extend([2, 0, 4, 0]);
        gathered.extend([0; 8]);
        gathered.extend(snap_bytes.to_le_bytes());
        gathered.extend(1u32.to_le_bytes());
        Self {
            out,
            gathered,
            whole_bytes: 0,
        }
    }

    /// Adds a frame, stamped in nanoseconds since 1970.
    pub fn write(&mut self, realtime_ns: u64, frame: &[u8]) -> io::Result<()> {
        let length = (frame.len() as u32).to_le_bytes();
        let seconds = (realtime_ns / 1_000_000_000) as u32;
        let nanos = (realtime_ns % 1_000_000_000) as u32;
        self.gathered.extend(seconds.to_le_bytes());
        self.gathered.extend(nanos.to_le_bytes());
        self.gathered.extend(length);
        self.gathered.extend(length);
        self.gathered.extend(frame);
        if self.gathered.len() < GATHERED {
            return Ok(());
        }
        self.flush()
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut at = 0_usize;
        let outcome = loop {
            if at == self.gathered.len() {
                break self.out.flush();
            }
            match self.out.write(self.gathered.get(at..).unwrap_or_default()) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => at = at.saturating_add(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let whole = self.whole_within(at) as u64;
        self.whole_bytes = self.whole_bytes.saturating_add(whole);
        self.gathered.clear();
        outcome
    }

    /// Where it is written, and how many bytes of it are header and whole records.
    pub fn whole(&self) -> (&W, u64) {
        (&self.out, self.whole_bytes)
    }

    /// How much of the first `bytes` gathered is header and whole records.
    fn whole_within(&self, bytes: usize) -> usize {
        let mut whole = 0;
        let mut next: usize = if self.whole_bytes == 0 { HEADER } else { 0 };
        while next <= bytes {
            whole = next;
            let record = self.gathered.get(next..).and_then(<[u8]>::first_chunk);
            let Some([.., a, b, c, d, _, _, _, _]) = record.copied() as Option<[u8; RECORD]> else {
                break;
            };
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            next = next.saturating_add(RECORD).saturating_add(length);
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_header_and_records() {
        let mut bytes = Vec::new();
        let mut pcap = Pcap::new(&mut bytes, 1_514);
        pcap.write(3_000_000_007, b"frame").unwrap();
        pcap.flush().unwrap();
        assert_eq!(pcap.whole().1, 24 + 16 + 5);
        drop(pcap);
        assert_eq!(bytes.len(), 24 + 16 + 5);
        assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!((bytes[24], bytes[28], bytes[32]), (3, 7, 5));
    }

    /// Takes so many bytes, then no more.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.0).min(7);
            self.0 -= count;
            match count {
                0 => Err(io::ErrorKind::StorageFull.into()),
                count => Ok(count),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_a_full_disk_whole_frames_count() {
        // A header, and records of 16 bytes with frames of 5 and of 10.
        for (room, whole) in [(0, 0), (23, 0), (24, 24), (44, 24), (45, 45), (70, 45)] {
            let mut pcap = Pcap::new(Disk(room), 1_514);
            pcap.write(1, &[1; 5]).unwrap();
            pcap.write(2, &[2; 10]).unwrap();
            assert!(pcap.flush().is_err(), "{room}");
            assert_eq!(pcap.whole().1, whole, "{room}");
        }
        let mut pcap = Pcap::new(Disk(45 + 20), 1_514);
        pcap.write(1, &[1; 5]).unwrap();
        pcap.flush().unwrap();
        pcap.write(2, &[2; 10]).unwrap();
        assert!(pcap.flush().is_err());
        assert_eq!(pcap.whole().1, 45);
    }
}
