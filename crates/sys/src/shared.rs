//! Memory that two processes of one machine share, and sleeping on a word of it.
//!
//! Model:   an anonymous file (memfd) of a fixed size, which has no name in any file system and goes with its last
//!          descriptor or mapping. Its size is sealed before it is handed over, so that who maps it is never killed because
//!          the other side cut it (SIGBUS). The other process may write anything at any time: words are atomics, and bytes
//!          are only ever copied in or out, never borrowed; what they say is for the caller to doubt.
//! Source:  memfd_create(2), fcntl(2) F_ADD_SEALS, unix(7) SCM_RIGHTS, futex(2).
//! Units:   bytes; offsets count from the begin of the memory.
//! Checked: `two_mappings_are_one_memory`, `what_is_not_sealed_is_refused`, `a_sleeper_is_woken_and_a_changed_word_wakes_at_once`,
//!          `memory_crosses_a_socket`.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::thread::futex;

use crate::error::Attempt;
use crate::{Error, Result};

/// Bytes of a cache line, and the alignment of everything here.
pub const LINE_BYTES: usize = 64;

/// A mapped piece of shared memory.
#[derive(Debug)]
pub struct Shared {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is not tied to a thread; all access is by atomics or by copies through raw pointers.
unsafe impl Send for Shared {}
// SAFETY: as above; `put` and `take` of two threads are like those of two processes, see there.
unsafe impl Sync for Shared {}

/// The seals without which memory is not shared.
fn seals() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

impl Shared {
    /// New memory of `len` zero bytes, mapped, and the descriptor to hand over.
    ///
    /// # Errors
    /// The kernel has no memfd_create or no memory, or `len` is zero.
    pub fn create(len: usize) -> Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("sonde", flags)
            .attempt(|| "create shared memory (memfd_create)".into())?;
        rustix::fs::ftruncate(&fd, len as u64)
            .attempt(|| format!("give shared memory {len} bytes"))?;
        rustix::fs::fcntl_add_seals(&fd, seals())
            .attempt(|| "seal the size of shared memory".into())?;
        Ok((Self::map(&fd, len)?, fd))
    }

    /// Maps what another process created.
    ///
    /// # Errors
    /// Its size is not sealed, or not `len`.
    pub fn open(fd: impl AsFd, len: usize) -> Result<Self> {
        let found = rustix::fs::fcntl_get_seals(&fd)
            .attempt(|| "read the seals of what was handed over as shared memory".into())?;
        let size = rustix::fs::fstat(&fd)
            .attempt(|| "read the size of shared memory".into())?
            .st_size;
        if !found.contains(seals()) || size != len as i64 {
            return Err(Error::Answer {
                what: "map shared memory".into(),
                text: format!(
                    "it has {size} bytes and seals {found:?}; wanted are {len} bytes, sealed: use the same version of sonde at both ends"
                ),
            });
        }
        Self::map(&fd, len)
    }

    fn map(fd: impl AsFd, len: usize) -> Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing that Rust knows of; descriptor and
        // length are valid for the call, and a zero length is refused by the kernel.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_fd().as_raw_fd(),
                0,
            )
        };
        let failed = || Errno::from_io_error(&std::io::Error::last_os_error());
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { base, len }),
            _ => Err(failed().unwrap_or(Errno::NOMEM))
                .attempt(|| format!("map {len} bytes of shared memory")),
        }
    }

    /// Its size.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.len
    }

    /// The place of `len` bytes at `at`.
    #[inline]
    fn place(&self, at: usize, len: usize, align: usize) -> *mut u8 {
        assert!(
            at % align == 0 && at <= self.len && len <= self.len - at,
            "{len} bytes at {at} of {} shared bytes",
            self.len
        );
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.base.as_ptr().add(at) }
    }

    /// The word at `at`.
    ///
    /// # Panics
    /// If it lies outside, or not at a multiple of 4.
    #[inline]
    pub fn word(&self, at: usize) -> &AtomicU32 {
        let place = self.place(at, 4, 4);
        // SAFETY: inside the mapping and aligned (the mapping begins at a page), valid as long as `self`; all access to
        // words is atomic.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }

    /// The double word at `at`.
    ///
    /// # Panics
    /// If it lies outside, or not at a multiple of 8.
    #[inline]
    pub fn long(&self, at: usize) -> &AtomicU64 {
        let place = self.place(at, 8, 8);
        // SAFETY: as of `word`.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    /// Copies bytes in.
    ///
    /// # Panics
    /// If they reach outside.
    #[inline]
    pub fn put(&self, at: usize, bytes: &[u8]) {
        let place = self.place(at, bytes.len(), 1);
        // SAFETY: the target lies within the mapping; the source is the caller's own memory and does not overlap, since
        // nothing borrows the mapping's bytes. Whether the other side looks meanwhile is agreed by the words; one that does
        // not keep to it reads or makes garbage, in bytes that have no invalid value.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) }
    }

    /// Copies bytes out.
    ///
    /// # Panics
    /// If they reach outside.
    #[inline]
    pub fn take(&self, at: usize, bytes: &mut [u8]) {
        let place = self.place(at, bytes.len(), 1);
        // SAFETY: as of `put`, the other way.
        unsafe { std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it is this mapping, and no reference into it outlives `self`.
        let unmapped = unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
        assert_eq!(unmapped, 0, "a mapping can be unmapped");
    }
}

/// Sleeps while `word` is `value`, at most so long. Returns also for no reason.
///
/// # Errors
/// The kernel has no futex.
pub fn sleep(word: &AtomicU32, value: u32, timeout: Duration) -> Result<()> {
    let timeout = rustix::time::Timespec {
        tv_sec: timeout.as_secs() as _,
        tv_nsec: timeout.subsec_nanos() as _,
    };
    // Not FUTEX_PRIVATE: the other side is another process.
    match futex::wait(word, futex::Flags::empty(), value, Some(&timeout)) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
        Err(errno) => Err(errno).attempt(|| "sleep on a shared word (futex)".into()),
    }
}

/// Wakes who sleeps on `word`.
///
/// # Errors
/// The kernel has no futex.
pub fn wake(word: &AtomicU32) -> Result<()> {
    let woken = futex::wake(word, futex::Flags::empty(), 1);
    woken
        .map(|_| ())
        .attempt(|| "wake who sleeps on a shared word (futex)".into())
}

/// Hands a descriptor over, with a message of some bytes.
///
/// # Errors
/// The other side is gone.
pub fn hand_over(socket: impl AsFd, message: &[u8], fd: impl AsFd) -> rustix::io::Result<()> {
    let descriptors = [fd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
    assert!(fits, "there is space for one descriptor");
    let parts = [IoSlice::new(message)];
    let sent = rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?;
    if sent == message.len() {
        Ok(())
    } else {
        Err(Errno::MSGSIZE)
    }
}

/// Takes what was handed over: how many bytes of the message came, and the descriptor.
///
/// # Errors
/// Nothing comes within the socket's time-out.
pub fn take_over(
    socket: impl AsFd,
    message: &mut [u8],
) -> rustix::io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(message)];
    let came = rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.next().and_then(|mut list| list.next());
    Ok((came.bytes, descriptor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::Instant;

    #[test]
    fn two_mappings_are_one_memory() {
        let (one, fd) = Shared::create(8_192).unwrap();
        let other = Shared::open(&fd, 8_192).unwrap();
        assert_ne!(one.base, other.base);
        one.put(4_093, b"abcdef");
        one.word(64).store(7, SeqCst);
        one.long(128).store(u64::MAX - 1, SeqCst);
        let mut bytes = [0; 6];
        other.take(4_093, &mut bytes);
        assert_eq!(&bytes, b"abcdef");
        assert_eq!(other.word(64).load(SeqCst), 7);
        assert_eq!(other.long(128).load(SeqCst), u64::MAX - 1);
        // No name in a file system: the link in /proc says that it is deleted.
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
        assert!(link.to_string_lossy().ends_with("(deleted)"), "{link:?}");
        assert!(rustix::fs::ftruncate(&fd, 4_096).is_err());
        assert!(rustix::fs::ftruncate(&fd, 16_384).is_err());
    }

    #[test]
    #[should_panic(expected = "4 bytes at 4093 of 4096 shared bytes")]
    fn nothing_is_written_outside() {
        let (memory, _fd) = Shared::create(4_096).unwrap();
        memory.put(4_093, b"abcd");
    }

    #[test]
    fn what_is_not_sealed_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("unsealed", flags).unwrap();
        rustix::fs::ftruncate(&fd, 4_096).unwrap();
        let error = Shared::open(&fd, 4_096).unwrap_err().to_string();
        assert!(error.contains("4096 bytes, sealed"), "{error}");
        let (_memory, fd) = Shared::create(4_096).unwrap();
        assert!(Shared::open(&fd, 8_192).is_err());
        // A file that cannot be sealed at all.
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(Shared::open(&file, 4_096).is_err());
        assert!(Shared::create(0).is_err());
    }

    #[test]
    fn a_sleeper_is_woken_and_a_changed_word_wakes_at_once() {
        let long = Duration::from_secs(60);
        let (memory, fd) = Shared::create(4_096).unwrap();
        let begin = Instant::now();
        sleep(memory.word(0), 1, long).unwrap();
        let other = Shared::open(&fd, 4_096).unwrap();
        let sleeper = std::thread::spawn(move || {
            while other.word(0).load(SeqCst) == 0 {
                sleep(other.word(0), 0, long).unwrap();
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        memory.word(0).store(1, SeqCst);
        wake(memory.word(0)).unwrap();
        sleeper.join().unwrap();
        sleep(memory.word(4), 0, Duration::from_millis(1)).unwrap();
        assert!(begin.elapsed() < long);
    }

    #[test]
    fn memory_crosses_a_socket() {
        let (one, other) = UnixStream::pair().unwrap();
        let (memory, fd) = Shared::create(4_096).unwrap();
        memory.put(10, b"here");
        hand_over(&one, b"x", &fd).unwrap();
        let mut message = [0; 8];
        let (came, taken) = take_over(&other, &mut message).unwrap();
        assert_eq!((came, message[0]), (1, b'x'));
        let mapped = Shared::open(taken.unwrap(), 4_096).unwrap();
        let mut bytes = [0; 4];
        mapped.take(10, &mut bytes);
        assert_eq!(&bytes, b"here");
        drop(one);
        let (came, taken) = take_over(&other, &mut message).unwrap();
        assert!(came == 0 && taken.is_none());
    }
}
