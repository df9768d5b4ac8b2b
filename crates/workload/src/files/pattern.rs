//! What files that are measured have in them: bytes that follow from their offset.
//!
//! Model:   the byte at an offset is that of a table of random bytes at the offset modulo its period, a prime, so that blocks that
//!          are mixed up, shifted or left out show. Any piece of up to [`PIECE_BYTES_MAX`] is one slice of the table.
//! Checked: `pieces_of_a_file_are_its_own`.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::sync::LazyLock;

/// The longest piece.
pub const PIECE_BYTES_MAX: usize = 1 << 20;

const PERIOD: usize = 65_521;

static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut period = vec![0; PERIOD];
    Pcg64Mcg::seed_from_u64(23).fill_bytes(&mut period);
    let mut table = Vec::with_capacity(PERIOD + PIECE_BYTES_MAX);
    while table.len() < PERIOD + PIECE_BYTES_MAX {
        let left = PERIOD + PIECE_BYTES_MAX - table.len();
        table.extend_from_slice(&period[..PERIOD.min(left)]);
    }
    table
});

/// The same as text: lines of 64 characters on average, that can be printed.
static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let printed = |byte: &u8| match byte {
        0..4 => b'\n',
        byte => b' ' + byte % 95,
    };
    TABLE.iter().map(printed).collect()
});

/// What stands from an offset on, at most [`PIECE_BYTES_MAX`] bytes.
pub fn piece(offset: u64, count: usize) -> &'static [u8] {
    let begin = (offset % PERIOD as u64) as usize;
    &TABLE[begin..begin + count.min(PIECE_BYTES_MAX)]
}

/// The same of a file of text.
pub fn text(offset: u64, count: usize) -> &'static [u8] {
    let begin = (offset % PERIOD as u64) as usize;
    &TEXT[begin..begin + count.min(PIECE_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_lines() {
        let text = text(7, 64_000);
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        assert!((900..1_100).contains(&lines), "{lines}");
        let is_text = |byte: &u8| *byte == b'\n' || (b' '..=b'~').contains(byte);
        assert!(text.iter().all(is_text));
    }

    #[test]
    fn pieces_of_a_file_are_its_own() {
        let whole = piece(0, 300_000);
        for (offset, count) in [(0, 1), (65_520, 3), (200_000, 100_000), (7, 131_072)] {
            assert_eq!(piece(offset as u64, count), &whole[offset..offset + count]);
        }
        // Blocks of the usual transfer sizes differ from all others.
        for size in [8_192, 32_768, 57_344, 61_440, 65_536] {
            let blocks: std::collections::BTreeSet<&[u8]> =
                (0..40).map(|at| piece(at * size as u64, size)).collect();
            assert_eq!(blocks.len(), 40, "{size}");
        }
    }
}
