//! Text on the way: lines end with CR LF there, and with LF in files.
//!
//! Model:   a sender puts CR before each LF, a receiver takes the CR before an LF out; a CR elsewhere stays. By character, each goes through
//!          two routines, as GETC and PUTC of the clients that the study found slow; by block, ends of lines are searched for and all that is between
//!          them is copied at once. Both give the same bytes.
//! Source:  RFC 959 §3.1.1.1, requirement H41. Deviation: CR NUL, which stands for a bare CR in a Telnet stream, stays as it is.
//! Units:   bytes.
//! Checked: `both_ways_give_the_same`, `what_was_sent_comes_back`; `crates/workload/tests/ftp_translate_times.rs` for the speed.

use sonde_measure::files::Translation;

/// For sending: a CR before each LF of `from`, at the end of `to`.
pub fn to_network(by: Translation, from: &[u8], to: &mut Vec<u8>) {
    match by {
        Translation::Block => {
            let mut begin = 0;
            for at in memchr::memchr_iter(b'\n', from) {
                to.extend_from_slice(&from[begin..at]);
                to.extend_from_slice(b"\r\n");
                begin = at + 1;
            }
            to.extend_from_slice(&from[begin..]);
        }
        Translation::Character => {
            let mut from = from;
            while let Some(byte) = getc(&mut from) {
                if byte == b'\n' {
                    putc(b'\r', to);
                }
                putc(byte, to);
            }
        }
    }
}

/// A receiver's side, which keeps a CR at the end of a piece until it sees what follows.
#[derive(Debug, Clone, Copy)]
pub struct FromNetwork {
    by: Translation,
    has_cr: bool,
}

impl FromNetwork {
    /// Where a file starts.
    pub const fn new(by: Translation) -> Self {
        let has_cr = false;
        Self { by, has_cr }
    }

    /// A piece that came, at the end of `to`.
    pub fn push(&mut self, from: &[u8], to: &mut Vec<u8>) {
        let Some(first) = from.first() else {
            return;
        };
        if std::mem::take(&mut self.has_cr) && *first != b'\n' {
            to.push(b'\r');
        }
        let (from, has_cr) = match from.split_last() {
            Some((b'\r', before)) => (before, true),
            _ => (from, false),
        };
        self.has_cr = has_cr;
        match self.by {
            Translation::Block => {
                let mut begin = 0;
                for at in memchr::memchr_iter(b'\r', from) {
                    if from.get(at + 1) == Some(&b'\n') {
                        to.extend_from_slice(&from[begin..at]);
                        begin = at + 1;
                    }
                }
                to.extend_from_slice(&from[begin..]);
            }
            Translation::Character => {
                let mut from = from;
                while let Some(byte) = getc(&mut from) {
                    if byte != b'\r' || from.first() != Some(&b'\n') {
                        putc(byte, to);
                    }
                }
            }
        }
    }

    /// The end of the file.
    pub fn finish(&mut self, to: &mut Vec<u8>) {
        if std::mem::take(&mut self.has_cr) {
            to.push(b'\r');
        }
    }
}

/// The next character. Not inlined: it is the cost of a call for each that is to be seen.
#[inline(never)]
fn getc(from: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = from.split_first()?;
    *from = rest;
    Some(*byte)
}

#[inline(never)]
fn putc(byte: u8, to: &mut Vec<u8>) {
    to.push(byte);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: [Translation; 2] = [Translation::Character, Translation::Block];

    fn sent(by: Translation, from: &[u8]) -> Vec<u8> {
        let mut to = Vec::new();
        to_network(by, from, &mut to);
        to
    }

    fn received(by: Translation, from: &[u8], piece: usize) -> Vec<u8> {
        let (mut way, mut to) = (FromNetwork::new(by), Vec::new());
        from.chunks(piece)
            .for_each(|piece| way.push(piece, &mut to));
        way.finish(&mut to);
        to
    }

    #[test]
    fn ends_of_lines_are_translated() {
        for by in BOTH {
            assert_eq!(sent(by, b"one\n\ntwo\r"), b"one\r\n\r\ntwo\r");
            for piece in 1..9 {
                let got = received(by, b"a\r\n\r\nb\rc\r\r\nd\r", piece);
                assert_eq!(got, b"a\n\nb\rc\r\nd\r", "{piece}");
            }
        }
    }

    /// Bytes with many ends of lines.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()];
        proptest::collection::vec(byte, 0..200)
    }

    proptest! {
        #[test]
        fn both_ways_give_the_same(bytes in text(), piece in 1_usize..50) {
            prop_assert_eq!(sent(BOTH[0], &bytes), sent(BOTH[1], &bytes));
            let whole = received(BOTH[0], &bytes, usize::MAX);
            prop_assert_eq!(&whole, &received(BOTH[1], &bytes, piece));
            prop_assert_eq!(&whole, &received(BOTH[0], &bytes, piece));
        }

        #[test]
        fn what_was_sent_comes_back(bytes in text(), piece in 1_usize..50) {
            for by in BOTH {
                prop_assert_eq!(&received(by, &sent(by, &bytes), piece), &bytes);
            }
        }
    }
}
