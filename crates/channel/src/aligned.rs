//! User buffers that begin where they are asked to, against the lines of the cache.
//!
//! Model:   a buffer with 127 spare bytes, of which the part is used that begins the wanted number of bytes after a line.
//! Units:   bytes.
//! Checked: `buffers_begin_where_they_are_asked_to`.

use std::ops::{Deref, DerefMut};

use crate::Knobs;

const LINE_BYTES: usize = 64;

/// Bytes at an offset from a line of 64; as the allocator gives them where none is asked for.
#[derive(Debug)]
pub struct Aligned {
    bytes: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Aligned {
    /// A buffer with the content of `bytes`.
    pub fn new(bytes: Vec<u8>, knobs: &Knobs) -> Self {
        let len = bytes.len();
        let Some(align) = knobs.align else {
            return Self {
                bytes,
                begin: 0,
                len,
            };
        };
        let mut spacious = vec![0; len + 2 * LINE_BYTES];
        let begin = spacious.as_ptr().align_offset(LINE_BYTES) + align as usize % LINE_BYTES;
        spacious[begin..begin + len].copy_from_slice(&bytes);
        Self {
            bytes: spacious,
            begin,
            len,
        }
    }
}

impl Deref for Aligned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.begin..self.begin + self.len]
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.begin..self.begin + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_where_they_are_asked_to() {
        for align in [0, 1, 32, 63] {
            let knobs = Knobs {
                align: Some(align),
                ..Knobs::default()
            };
            for size in [1, 63, 64, 1_000] {
                let mut buffer = Aligned::new(vec![7; size], &knobs);
                assert_eq!(buffer.as_ptr() as usize % 64, align as usize);
                buffer[size - 1] = 8;
                assert_eq!((buffer.len(), buffer[size - 1]), (size, 8));
            }
        }
        assert_eq!(Aligned::new(vec![1, 2], &Knobs::default())[..], [1, 2]);
    }
}
