//! Sends and receives of a socket, and reads and writes of a file, through a ring shared with the kernel (io_uring).
//!
//! Model:   [`Ring`] does calls whose memory is the caller's: it returns when the kernel is done with all of them, and cancels
//!          what did not end in time, so that no borrow outlives the call. Several sends are linked: they go in their order,
//!          and one that is cut short ends the chain. [`Inflow`] is one receive that stays (multishot) and fills buffers that
//!          were given to the kernel beforehand. [`Ring::pass`] goes over a file with so many reads or writes
//!          outstanding. One thread has each.
//! Source:  io_uring(7), io_uring_setup(2): SINGLE_ISSUER (Linux 6.0), DEFER_TASKRUN (6.1); multishot receive (6.0), ring of
//!          provided buffers (5.19), synchronous cancel (6.0). Without them there is an error, no substitute.
//! Checked: `a_file_is_passed_over`, `a_pass_that_does_not_go_on_is_cancelled`, `chains_send_in_order_and_receives_fill`,
//!          `what_does_not_end_is_cancelled`, `an_inflow_ends`.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use io_uring::squeue::Flags;
use io_uring::types::{BufRingEntry, CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;

use crate::error::Attempt;
use crate::{Error, Result};

/// The most calls of a chain.
pub const CHAIN_MAX: usize = 64;
/// The call of a pass that ends when nothing else does.
const WATCH: u64 = u64::MAX;

/// A ring of one thread.
struct Queue {
    ring: IoUring,
    /// Spin on the completions instead of sleeping.
    poll: bool,
    outstanding: usize,
    /// The kernel takes calls of this thread only.
    owner: std::thread::ThreadId,
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn unavailable(error: &io::Error) -> Error {
    let state = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let state = state.map_or("not there".into(), |text| text.trim().to_string());
    Error::Call {
        what: format!(
            "set up io_uring (Linux 6.1; kernel.io_uring_disabled is {state} and must be 0; containers often forbid it by seccomp)"
        ),
        errno: errno(error),
    }
}

impl Queue {
    fn new(poll: bool, entries: u32) -> Result<Self> {
        let mut builder = IoUring::builder();
        if !poll {
            // Work is done when this thread waits; a spinning one would have to ask for it.
            builder.setup_defer_taskrun();
        }
        Self::of(builder, poll, entries)
    }

    fn of(mut builder: io_uring::Builder, poll: bool, entries: u32) -> Result<Self> {
        builder.setup_single_issuer().setup_clamp();
        let ring = builder
            .build(entries)
            .map_err(|error| unavailable(&error))?;
        Ok(Self {
            ring,
            poll,
            outstanding: 0,
            owner: std::thread::current().id(),
        })
    }

    /// Hands a call to the kernel with the next wait.
    ///
    /// # Safety
    /// Its memory is live until its completion was read.
    unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: as the caller promises.
        let pushed = unsafe { self.ring.submission().push(entry) };
        assert!(pushed.is_ok(), "no more calls than the ring has entries");
        self.outstanding += 1;
    }

    fn is_owned(&self) -> bool {
        std::thread::current().id() == self.owner
    }

    fn pop(&mut self) -> Option<cqueue::Entry> {
        let done = self.ring.completion().next()?;
        self.outstanding -= usize::from(!cqueue::more(done.flags()));
        Some(done)
    }

    /// Waits for a completion; `None` after the timeout.
    fn next(&mut self, timeout: Duration) -> Result<Option<cqueue::Entry>> {
        let mut begin = None;
        loop {
            if let Some(done) = self.pop() {
                return Ok(Some(done));
            }
            let entered = if self.poll {
                if self.ring.submission().is_empty() {
                    std::hint::spin_loop();
                    Ok(0)
                } else {
                    self.ring.submit()
                }
            } else {
                let most = Timespec::from(timeout);
                let arguments = SubmitArgs::new().timespec(&most);
                self.ring.submitter().submit_with_args(1, &arguments)
            };
            match entered.map_err(|error| errno(&error)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::TIME) => return Ok(self.pop()),
                Err(error) => return Err(error).attempt(|| "wait for io_uring".into()),
            }
            if self.poll && begin.get_or_insert_with(Instant::now).elapsed() >= timeout {
                return Ok(None);
            }
        }
    }

    /// Waits for a completion as long as it takes: without a timer of its own, which costs more than many a call.
    fn ended(&mut self) -> Result<cqueue::Entry> {
        loop {
            if let Some(done) = self.pop() {
                return Ok(done);
            }
            match self.ring.submit_and_wait(1).map_err(|error| errno(&error)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).attempt(|| "wait for io_uring".into()),
            }
        }
    }

    /// Hands what was pushed to the kernel now.
    fn submit(&mut self) -> Result<()> {
        loop {
            match self.ring.submit().map_err(|error| errno(&error)) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).attempt(|| "submit to io_uring".into()),
            }
        }
    }

    /// Ends all that is outstanding; the kernel touches none of its memory afterwards. By its own thread only.
    fn cancel(&mut self) {
        if self.outstanding == 0 {
            return;
        }
        // What the kernel has not taken yet it could not cancel.
        let submitted = self.submit();
        let cancelled = self
            .ring
            .submitter()
            .register_sync_cancel(None, CancelBuilder::any());
        let begin = Instant::now();
        while self.outstanding > 0 {
            match self.next(Duration::from_millis(100)) {
                Ok(Some(_)) => {}
                // Memory that the kernel may still write to must not be used again.
                _ if begin.elapsed() > Duration::from_secs(10) => {
                    crate::tell!(
                        "io_uring keeps {} calls ({submitted:?}, {cancelled:?})",
                        self.outstanding
                    );
                    std::process::abort();
                }
                _ => {}
            }
        }
    }
}

/// Calls with the caller's memory.
pub struct Ring {
    queue: Queue,
    results: [i32; CHAIN_MAX],
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

/// One call of a chain.
#[derive(Debug)]
pub enum Call<'a> {
    /// Sends all of it.
    Send(&'a [u8]),
    /// Fills all of it.
    Recv(&'a mut [u8]),
}

impl Ring {
    /// A ring of the calling thread, which alone may use it; `poll` spins where others sleep.
    ///
    /// # Errors
    /// The kernel forbids io_uring or is too old for it.
    pub fn new(poll: bool) -> Result<Self> {
        Ok(Self {
            queue: Queue::new(poll, 2 * CHAIN_MAX as u32)?,
            results: [0; CHAIN_MAX],
        })
    }

    /// Does the calls in their order, each when the one before is whole; what each returned, ECANCELED for those behind one
    /// that was not. After `timeout` without any completion what is outstanding is cancelled.
    ///
    /// # Errors
    /// The ring itself fails.
    ///
    /// # Panics
    /// With no call, or more than [`CHAIN_MAX`]; in another thread than made it.
    pub fn chain(
        &mut self,
        socket: BorrowedFd<'_>,
        calls: &mut [Call<'_>],
        timeout: Duration,
    ) -> Result<&[i32]> {
        let count = calls.len();
        assert!(count > 0 && count <= CHAIN_MAX, "a chain of {count} calls");
        assert!(self.queue.is_owned(), "a ring is used by one thread");
        let fd = Fd(socket.as_raw_fd());
        for (index, call) in calls.iter_mut().enumerate() {
            self.results[index] = -libc::ECANCELED;
            let entry = match call {
                Call::Send(bytes) => opcode::Send::new(fd, bytes.as_ptr(), bytes.len() as u32)
                    .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
                    .build(),
                Call::Recv(bytes) => opcode::Recv::new(fd, bytes.as_mut_ptr(), bytes.len() as u32)
                    .flags(libc::MSG_WAITALL)
                    .build(),
            };
            let link = if index + 1 < count {
                Flags::IO_LINK
            } else {
                Flags::empty()
            };
            // SAFETY: the memory is borrowed for this call, which returns only when all completions were read, or does not
            // return (`cancel`).
            unsafe { self.queue.push(&entry.flags(link).user_data(index as u64)) };
        }
        let mut waited = Ok(());
        let mut left = count;
        while left > 0 {
            match self.queue.next(timeout) {
                Ok(Some(done)) => {
                    self.results[done.user_data() as usize] = done.result();
                    left -= 1;
                }
                Ok(None) => {
                    left -= self.cancelled();
                    break;
                }
                Err(error) => {
                    waited = Err(error);
                    self.queue.cancel();
                    break;
                }
            }
        }
        waited?;
        assert_eq!(left, 0, "every call of the chain has ended");
        Ok(&self.results[..count])
    }

    /// A ring of the calling thread that holds so many reads or writes of a file at once.
    ///
    /// # Errors
    /// The kernel forbids io_uring or is too old for it.
    pub fn of_depth(depth: u32) -> Result<Self> {
        // What workers of the kernel end is told when this thread calls the kernel anyway, and interrupts it for nothing.
        let mut builder = IoUring::builder();
        builder.setup_coop_taskrun();
        Ok(Self {
            queue: Queue::of(builder, false, depth + 1)?,
            results: [0; CHAIN_MAX],
        })
    }

    /// Goes over the first `file_bytes` of a file in pieces of `piece_bytes`, with as many outstanding as `memory` has room for; what each
    /// took, in nanoseconds, in the order in which they ended. What is cut short goes on where it was.
    ///
    /// # Errors
    /// A read or write fails, the file ends before, or nothing ends within `timeout`.
    ///
    /// # Panics
    /// With no room for a piece; in another thread than made it.
    pub fn pass(
        &mut self,
        file: BorrowedFd<'_>,
        is_write: bool,
        memory: &mut [u8],
        [piece_bytes, file_bytes]: [u64; 2],
        timeout: Duration,
    ) -> Result<Vec<u64>> {
        assert!(self.queue.is_owned(), "a ring is used by one thread");
        let slots: Vec<&mut [u8]> = memory.chunks_exact_mut(piece_bytes as usize).collect();
        assert!(!slots.is_empty(), "memory for a piece");
        // It lives until nothing is outstanding.
        let limit = Timespec::from(timeout);
        let watch = opcode::Timeout::new(&limit).build().user_data(WATCH);
        let passed = self.pass_by(file, is_write, slots, [piece_bytes, file_bytes], &watch);
        if passed.is_err() {
            self.queue.cancel();
        }
        passed
    }

    fn pass_by(
        &mut self,
        file: BorrowedFd<'_>,
        is_write: bool,
        mut slots: Vec<&mut [u8]>,
        [piece_bytes, file_bytes]: [u64; 2],
        watch: &squeue::Entry,
    ) -> Result<Vec<u64>> {
        let fd = Fd(file.as_raw_fd());
        let what = if is_write { "write" } else { "read" };
        let mut took_ns = Vec::new();
        let mut pieces: Vec<Option<Piece>> = slots.iter().map(|_| None).collect();
        // SAFETY: its limit is the caller's, who keeps it until nothing is outstanding (`pass`).
        unsafe { self.queue.push(watch) };
        let (mut next, mut watched) = (0, 0);
        loop {
            for (slot, piece) in pieces.iter_mut().enumerate() {
                if piece.is_some() || next >= file_bytes {
                    continue;
                }
                let length = piece_bytes.min(file_bytes - next);
                let one = piece.insert(Piece {
                    offset: next,
                    done: 0,
                    length,
                    begun: Instant::now(),
                });
                next += length;
                let entry = one.entry(fd, is_write, slots[slot]);
                // SAFETY: the memory is the caller's, who gets it back when nothing is outstanding (`pass`).
                unsafe { self.queue.push(&entry.user_data(slot as u64)) };
                self.queue.submit()?;
            }
            if self.queue.outstanding == 1 {
                self.queue.cancel();
                return Ok(took_ns);
            }
            let done = self.queue.ended()?;
            if done.user_data() == WATCH {
                if watched == took_ns.len() {
                    return Err(Errno::TIMEDOUT).attempt(|| format!("{what} by io_uring"));
                }
                watched = took_ns.len();
                // SAFETY: as above.
                unsafe { self.queue.push(watch) };
                continue;
            }
            let slot = done.user_data() as usize;
            let one = pieces[slot].as_mut().expect("what ended was begun");
            match done.result() {
                error @ ..=-1 => {
                    let errno = Errno::from_raw_os_error(-error);
                    return Err(errno).attempt(|| format!("{what} by io_uring"));
                }
                0 => return Err(Errno::NODATA).attempt(|| format!("{what} all of a file")),
                moved => one.done += moved as u64,
            }
            if one.done >= one.length {
                took_ns.push(u64::try_from(one.begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
                pieces[slot] = None;
                continue;
            }
            let entry = one.entry(fd, is_write, slots[slot]);
            // SAFETY: as above.
            unsafe { self.queue.push(&entry.user_data(slot as u64)) };
        }
    }

    /// Cancels what is outstanding and keeps what it came to, which may be a part.
    fn cancelled(&mut self) -> usize {
        let before = self.queue.outstanding;
        let _ = self
            .queue
            .ring
            .submitter()
            .register_sync_cancel(None, CancelBuilder::any());
        while self.queue.outstanding > 0 {
            match self.queue.next(Duration::from_secs(1)) {
                Ok(Some(done)) => self.results[done.user_data() as usize] = done.result(),
                _ => self.queue.cancel(),
            }
        }
        before
    }
}

/// A part of a file that is under way.
struct Piece {
    offset: u64,
    done: u64,
    length: u64,
    begun: Instant,
}

impl Piece {
    /// What is left of it.
    fn entry(&self, fd: Fd, is_write: bool, memory: &mut [u8]) -> squeue::Entry {
        let left = &mut memory[self.done as usize..self.length as usize];
        let (length, offset) = (left.len() as u32, self.offset + self.done);
        match is_write {
            true => opcode::Write::new(fd, left.as_ptr(), length)
                .offset(offset)
                .build(),
            false => opcode::Read::new(fd, left.as_mut_ptr(), length)
                .offset(offset)
                .build(),
        }
    }
}

/// Buffers in a ring that the kernel takes them from.
struct Provided {
    entries: *mut BufRingEntry,
    layout: std::alloc::Layout,
    memory: Vec<u8>,
    buffer_bytes: usize,
    count: u16,
    tail: u16,
}

impl Provided {
    fn new(count: u16, buffer_bytes: usize) -> Self {
        assert!(count.is_power_of_two() && buffer_bytes > 0);
        let bytes = usize::from(count) * size_of::<BufRingEntry>();
        let layout = std::alloc::Layout::from_size_align(bytes, 4096)
            .unwrap_or_else(|_| unreachable!("a page's alignment and a size below it"));
        // SAFETY: the layout has a size above zero; zeroes are valid entries.
        let entries = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<BufRingEntry>();
        if entries.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Self {
            entries,
            layout,
            memory: vec![0; usize::from(count) * buffer_bytes],
            buffer_bytes,
            count,
            tail: 0,
        }
    }

    /// Gives a buffer to the kernel.
    fn give(&mut self, buffer: u16) {
        let at = usize::from(buffer) * self.buffer_bytes;
        let address = self.memory.as_mut_ptr().wrapping_add(at);
        // SAFETY: the entry is within the ring, which has `count` of them and lives as long as this value; the kernel reads it
        // only after the tail says so, which is written with release order.
        unsafe {
            let entry = &mut *self.entries.add(usize::from(self.tail & (self.count - 1)));
            entry.set_addr(address as u64);
            entry.set_len(self.buffer_bytes as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.entries)
                .cast_mut()
                .cast::<std::sync::atomic::AtomicU16>();
            (*tail).store(self.tail, std::sync::atomic::Ordering::Release);
        }
    }
}

impl Drop for Provided {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; the kernel was told to use it no more (`Inflow`).
        unsafe { std::alloc::dealloc(self.entries.cast(), self.layout) };
    }
}

/// A receive that stays.
pub struct Inflow {
    queue: Queue,
    provided: ManuallyDrop<Provided>,
    is_armed: bool,
    held: Option<u16>,
}

// SAFETY: the pointer in `provided` is to memory of this value's own.
unsafe impl Send for Inflow {}

impl Drop for Inflow {
    fn drop(&mut self) {
        if !self.queue.is_owned() {
            // Only its own thread may cancel. The kernel does so when the ring is closed, at some later time: until then
            // the memory stays.
            return;
        }
        self.queue.cancel();
        // SAFETY: nothing is outstanding, and the value is not used again.
        unsafe { ManuallyDrop::drop(&mut self.provided) };
    }
}

impl std::fmt::Debug for Inflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Inflow of {} x {} bytes",
            self.provided.count, self.provided.buffer_bytes
        )
    }
}

impl Inflow {
    /// With so many buffers (a power of two) of so many bytes, for the calling thread.
    ///
    /// # Errors
    /// The kernel forbids io_uring or is too old for it.
    ///
    /// # Panics
    /// With another number of buffers, or no bytes.
    pub fn new(buffers: u16, buffer_bytes: usize, poll: bool) -> Result<Self> {
        let queue = Queue::new(poll, 2 * CHAIN_MAX as u32)?;
        let mut provided = Provided::new(buffers, buffer_bytes);
        // SAFETY: the ring of buffers and their memory live until the queue has cancelled what uses them (`Drop`).
        let registered = unsafe {
            queue.ring.submitter().register_buf_ring_with_flags(
                provided.entries as u64,
                buffers,
                0,
                0,
            )
        };
        registered.map_err(|error| unavailable(&error))?;
        (0..buffers).for_each(|buffer| provided.give(buffer));
        Ok(Self {
            queue,
            provided: ManuallyDrop::new(provided),
            is_armed: false,
            held: None,
        })
    }

    /// The next bytes: empty at the stream's end, `None` when nothing came within the timeout. They stay until the next call.
    ///
    /// # Errors
    /// The socket is broken, or the ring.
    ///
    /// # Panics
    /// In another thread than made it.
    pub fn recv(&mut self, socket: impl AsFd, timeout: Duration) -> Result<Option<&[u8]>> {
        assert!(self.queue.is_owned(), "a ring is used by one thread");
        if let Some(buffer) = self.held.take() {
            self.provided.give(buffer);
        }
        loop {
            if !self.is_armed {
                let fd = Fd(socket.as_fd().as_raw_fd());
                let entry = opcode::RecvMulti::new(fd, 0).build();
                // SAFETY: the provided buffers live until it was cancelled (`Drop`).
                unsafe { self.queue.push(&entry) };
                self.is_armed = true;
            }
            let Some(done) = self.queue.next(timeout)? else {
                return Ok(None);
            };
            self.is_armed = cqueue::more(done.flags());
            let result = done.result();
            if result < 0 {
                match Errno::from_raw_os_error(-result) {
                    // All buffers were full: those given back meanwhile are taken by the next.
                    Errno::NOBUFS | Errno::INTR => continue,
                    errno => return Err(errno).attempt(|| "receive by io_uring".into()),
                }
            }
            let Some(buffer) = cqueue::buffer_select(done.flags()).filter(|_| result > 0) else {
                return Ok(Some(&[]));
            };
            self.held = Some(buffer);
            let at = usize::from(buffer) * self.provided.buffer_bytes;
            return Ok(Some(&self.provided.memory[at..at + result as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    const SOON: Duration = Duration::from_secs(5);

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn ring(poll: bool) -> Option<Ring> {
        match Ring::new(poll) {
            Ok(ring) => Some(ring),
            Err(error) => {
                println!("skipped: {error}");
                None
            }
        }
    }

    #[test]
    fn chains_send_in_order_and_receives_fill() {
        for poll in [false, true] {
            let Some(mut ring) = ring(poll) else { return };
            let (client, mut server) = pair();
            let parts: Vec<Vec<u8>> = (0..CHAIN_MAX).map(|part| vec![part as u8; 3_000]).collect();
            let mut calls: Vec<_> = parts.iter().map(|part| Call::Send(part)).collect();
            let results = ring.chain(client.as_fd(), &mut calls, SOON).unwrap();
            assert!(results.iter().all(|result| *result == 3_000));
            let mut all = vec![0; CHAIN_MAX * 3_000];
            server.read_exact(&mut all).unwrap();
            assert_eq!(all, parts.concat());
            // A round trip is one chain.
            let echo = std::thread::spawn(move || {
                server.read_exact(&mut [0; 10]).unwrap();
                for part in [[1; 4], [2; 4]] {
                    server.write_all(&part).unwrap();
                }
            });
            let mut answer = [0; 8];
            let mut calls = [Call::Send(&[9; 10]), Call::Recv(&mut answer)];
            let results = ring.chain(client.as_fd(), &mut calls, SOON).unwrap();
            assert_eq!(results, [10, 8]);
            assert_eq!(answer, [1, 1, 1, 1, 2, 2, 2, 2]);
            echo.join().unwrap();
        }
    }

    #[test]
    fn a_file_is_passed_over() {
        let path = std::env::temp_dir().join(format!("sonde-uring-{}", std::process::id()));
        let mut options = std::fs::File::options();
        let file = options.read(true).write(true).create_new(true).open(&path);
        let file = file.unwrap();
        std::fs::remove_file(&path).unwrap();
        if ring(false).is_none() {
            return;
        }
        let mut ring = Ring::of_depth(4).unwrap();
        let mut memory: Vec<u8> = [1_u8, 2, 3, 4]
            .iter()
            .flat_map(|one| [*one; 1_000])
            .collect();
        // 10 pieces, the last of which is short, of which 4 are outstanding.
        let sizes = [1_000, 9_500];
        let took = ring
            .pass(file.as_fd(), true, &mut memory, sizes, SOON)
            .unwrap();
        assert_eq!((took.len(), file.metadata().unwrap().len()), (10, 9_500));
        let mut whole = Vec::new();
        (&file).read_to_end(&mut whole).unwrap();
        // Each piece is of one slot's bytes; the first four are of theirs.
        for (at, piece) in whole.chunks(1_000).enumerate() {
            assert!(piece.iter().all(|byte| *byte == piece[0]), "piece {at}");
        }
        assert_eq!(
            [whole[0], whole[1_000], whole[2_000], whole[3_000]],
            [1, 2, 3, 4]
        );
        let mut memory = vec![0; 4_000];
        let took = ring
            .pass(file.as_fd(), false, &mut memory, sizes, SOON)
            .unwrap();
        assert_eq!(took.len(), 10);
        assert!(memory.iter().all(|byte| (1..=4).contains(byte)));
        // A file that ends before is an error, after which the ring is good for the next.
        let error = ring.pass(file.as_fd(), false, &mut memory, [1_000, 20_000], SOON);
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("read all of a file")
        );
        let took = ring
            .pass(file.as_fd(), false, &mut memory, sizes, SOON)
            .unwrap();
        assert_eq!(took.len(), 10);
    }

    #[test]
    fn a_pass_that_does_not_go_on_is_cancelled() {
        if ring(false).is_none() {
            return;
        }
        let (client, mut server) = pair();
        let mut ring = Ring::of_depth(4).unwrap();
        let mut memory = vec![0; 4_000];
        let mut pass = |file: BorrowedFd<'_>, timeout| {
            // A stream has the place 0 alone: one piece.
            ring.pass(file, false, &mut memory, [4_000, 4_000], timeout)
        };
        let error = pass(client.as_fd(), Duration::from_millis(30)).unwrap_err();
        let Error::Call { errno, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(errno, Errno::TIMEDOUT);
        // Nothing of it is left, and the ring is good for the next.
        server.write_all(&[7; 4_000]).unwrap();
        assert_eq!(pass(client.as_fd(), SOON).unwrap().len(), 1);
    }

    #[test]
    fn what_does_not_end_is_cancelled() {
        for poll in [false, true] {
            let Some(mut ring) = ring(poll) else { return };
            let (client, mut server) = pair();
            let mut answer = [0; 8];
            let mut calls = [Call::Send(&[9; 10]), Call::Recv(&mut answer)];
            let little = Duration::from_millis(30);
            let results = ring.chain(client.as_fd(), &mut calls, little).unwrap();
            assert_eq!(results, [10, -libc::ECANCELED]);
            // The memory is this program's again, and the ring is good for the next.
            server.write_all(&[5; 8]).unwrap();
            let mut calls = [Call::Recv(&mut answer)];
            assert_eq!(ring.chain(client.as_fd(), &mut calls, SOON).unwrap(), [8]);
            assert_eq!(answer, [5; 8]);
        }
    }

    #[test]
    fn an_inflow_ends() {
        for poll in [false, true] {
            if ring(poll).is_none() {
                return;
            }
            let (mut client, server) = pair();
            let mut inflow = Inflow::new(4, 1_000, poll).unwrap();
            let little = Duration::from_millis(30);
            assert!(inflow.recv(&server, little).unwrap().is_none());
            let sent: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
            let whole = sent.clone();
            let sender = std::thread::spawn(move || client.write_all(&whole).unwrap());
            let mut received = Vec::new();
            loop {
                let came = inflow.recv(&server, SOON).unwrap().unwrap();
                if came.is_empty() {
                    break;
                }
                received.extend_from_slice(came);
            }
            assert_eq!(received, sent);
            sender.join().unwrap();
        }
    }
}
