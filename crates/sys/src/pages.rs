//! The pages of a file that are in memory.
//!
//! Model:   the file is mapped, which reads nothing, and the kernel is asked page by page. What is dropped is asked for by posix_fadvise: a kernel keeps
//!          pages that are dirty, and all of a file system that is memory itself.
//! Source:  mincore(2), of one's own files; posix_fadvise(2).
//! Units:   bytes.
//! Checked: `what_was_written_is_in_memory`.

use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;

use crate::Result;
use crate::error::Attempt;

const PAGE_BYTES: u64 = 4_096;

/// Drops what the kernel lets go of a file's pages.
///
/// # Errors
/// The kernel refuses.
pub fn drop_all(file: BorrowedFd<'_>) -> Result<()> {
    fadvise(file, 0, None::<NonZeroU64>, Advice::DontNeed).attempt(|| "drop a file's pages".into())
}

/// How much of the first `length` bytes of a file is in memory.
///
/// # Errors
/// The file cannot be mapped, or is another's.
pub fn resident_bytes(file: BorrowedFd<'_>, length: u64) -> Result<u64> {
    let pages = length.div_ceil(PAGE_BYTES) as usize;
    if pages == 0 {
        return Ok(0);
    }
    let mut known = vec![0_u8; pages];
    // SAFETY: a new mapping at an address of the kernel's choice, which nobody reads or writes and which is unmapped below.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length as usize,
            libc::PROT_NONE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(last()).attempt(|| "map a file".into());
    }
    // SAFETY: the range is the mapping above, and `known` has a byte for each of its pages.
    let asked = unsafe { libc::mincore(mapped, length as usize, known.as_mut_ptr()) };
    let asked = if asked == 0 { Ok(()) } else { Err(last()) };
    // SAFETY: the mapping above, which nothing refers to.
    unsafe { libc::munmap(mapped, length as usize) };
    asked.attempt(|| "ask for a file's pages".into())?;
    let resident = known.iter().filter(|page| **page & 1 == 1).count() as u64;
    Ok((resident * PAGE_BYTES).min(length))
}

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn what_was_written_is_in_memory() {
        let path = std::env::temp_dir().join(format!("sonde-pages-{}", std::process::id()));
        let mut options = std::fs::File::options();
        let opened = options.read(true).write(true).create_new(true).open(&path);
        let mut file = opened.unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(&[7; 100_000]).unwrap();
        assert_eq!(resident_bytes(file.as_fd(), 100_000).unwrap(), 100_000);
        assert_eq!(resident_bytes(file.as_fd(), 0).unwrap(), 0);
        // A hole beyond what was written has no pages.
        file.set_len(1 << 20).unwrap();
        let resident = resident_bytes(file.as_fd(), 1 << 20).unwrap();
        assert!((100_000..200_000).contains(&resident), "{resident}");
        file.sync_all().unwrap();
        drop_all(file.as_fd()).unwrap();
        // On a disk they are gone; a file system that is memory keeps them.
        let kept = resident_bytes(file.as_fd(), 100_000).unwrap();
        assert!(kept <= 100_000, "{kept}");
    }
}
