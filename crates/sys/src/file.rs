//! Files of users, read up to a size: a device or a pipe in their place ends there as well.
//!
//! Units:   bytes.
//! Checked: `no_more_is_read_than_may_be`.
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

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The most of what a person writes: a script, a plan, a network, hosts, a cluster.
pub const WRITTEN_BYTES_MAX: u64 = 1 << 20;
/// The most of what a program writes: a communication matrix, a document.
pub const MADE_BYTES_MAX: u64 = 512 << 20;

/// What a person wrote.
///
/// # Errors
/// It cannot be opened or read, is longer than [`WRITTEN_BYTES_MAX`], or is not UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    bounded(path, WRITTEN_BYTES_MAX)?.read_to_string(&mut text)?;
    Ok(text)
}

/// A file of which reading fails after `most` bytes.
///
/// # Errors
/// It cannot be opened.
pub fn bounded(path: &Path, most: u64) -> io::Result<BufReader<impl Read + use<>>> {
    Ok(BufReader::new(Bounded {
        file: File::open(path)?,
        left: most,
        most,
    }))
}

struct Bounded {
    file: File,
    left: u64,
    most: u64,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => {
                let text = format!(
                    "it is longer than {} KiB, the most that such a file has",
                    self.most >> 10
                );
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_may_be() {
        let device = Path::new("/dev/zero");
        let error = text(device).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(
            error.to_string().contains("longer than 1024 KiB"),
            "{error}"
        );
        let mut read = Vec::new();
        let most = bounded(device, 5_000).unwrap().read_to_end(&mut read);
        assert!(most.is_err() && read.len() <= 5_000, "{}", read.len());
        assert!(!text(Path::new("/proc/self/status")).unwrap().is_empty());
        assert!(text(Path::new("/nowhere")).is_err());
    }
}
