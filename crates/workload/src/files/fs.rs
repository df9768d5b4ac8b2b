//! A launch of a measurement of a mounted file system: the client's host reads and writes by itself.
//!
//! Model:   a directory is made where it is asked for, and goes with the launch. Of reads and writes one file is made in it and its name removed at once, so
//!          that the kernel takes the file back whoever is killed. It is passed over by pread and pwrite, one at a time, or by io_uring with several
//!          outstanding. Before each pass its pages are written and dropped, unless it is to be cached; how much stays in memory is asked and
//!          told. With `sync` a pass ends with fsync. A call on names is one call of the kernel, of `lookup` an open without access and its close.
//! Source:  pread(2), io_uring(7), posix_fadvise(2), open(2) for O_DIRECT.
//! Units:   nanoseconds, bytes.
//! Checked: `crates/workload/tests/fs_launch.rs`; `lab_fs` of the command.

use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Clock};

use rustix::fs::{self, AtFlags, Mode, OFlags, RawDir};
use rustix::io::Errno;
use sonde_measure::files::{DIRECT_BYTES, Files, Meta, Operation};
use sonde_measure::{FilesFacts, Interference};
use sonde_probe::agent::Opened;
use sonde_probe::{
    Error, Measure, Measured, Result, Serve, Served, SizeMeasured, SizeServed, Watch, await_begin,
};
use sonde_stats::Series;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::pages;
use sonde_sys::uring::Ring;

use super::launch::{Scratch, control, was_stopped};
use super::pattern::piece;
use super::rounds::{Turns, rounds};
use super::sockets::{self, Wanted};

/// What is read of a directory at once.
const LISTED_BYTES: usize = 32 << 10;

/// Waits until it is stopped: nothing of a file system is served.
pub(super) fn serve(request: &Serve, stop: BorrowedFd<'_>, opened: Opened<'_>) -> Result<Served> {
    let spec = &request.spec;
    let listener = TcpListener::bind(SocketAddr::new(request.bind, 0));
    let listener = listener.map_err(control("open a port"))?;
    let address = listener.local_addr().map_err(control("ask for a port"))?;
    opened(address.port())?;
    let until = Clock::now() + spec.duration_max();
    let wanted = [Wanted {
        socket: stop,
        read: true,
        write: false,
    }];
    loop {
        let left = until.saturating_duration_since(Clock::now());
        let woken = sockets::wait(&wanted, left).map_err(control("wait for the end"))?;
        if woken.first() == Some(&true) || left.is_zero() {
            was_stopped(!left.is_zero())?;
            return Ok(Served {
                sizes: vec![SizeServed::default(); spec.sizes_bytes.len()],
                interference: Interference::default(),
                ..Served::default()
            });
        }
    }
}

/// Memory whose address O_DIRECT takes.
struct Aligned {
    memory: Vec<u8>,
    begin: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let memory = vec![0; length + DIRECT_BYTES as usize];
        let begin = memory.as_ptr().align_offset(DIRECT_BYTES as usize);
        Self {
            memory,
            begin,
            length,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.length]
    }
}

/// What reads and writes.
enum By {
    Posix,
    Ring(Box<Ring>),
}

/// A client of its own host's file system.
struct Local {
    /// Where the files are.
    place: PathBuf,
    /// The directory of the names.
    directory: OwnedFd,
    file: Option<std::fs::File>,
    by: By,
    memory: Aligned,
    files: Files,
    size_bytes: u64,
    timeout: Duration,
    /// The most that was in memory as a pass began.
    resident_bytes: u64,
    took: Vec<u64>,
}

impl Local {
    fn open(scratch: &Scratch, files: &Files, size_bytes: u64, timeout: Duration) -> Result<Self> {
        let place = scratch.path();
        let directory = fs::open(&place, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let by = match files.outstanding {
            1 => By::Posix,
            depth => By::Ring(Box::new(Ring::of_depth(depth)?)),
        };
        let pieces = usize::try_from(files.outstanding).unwrap_or(1);
        let mut local = Self {
            directory: directory.map_err(|errno| refused("open", &place, errno))?,
            place,
            file: None,
            by,
            memory: Aligned::new(pieces * files.transfer_bytes as usize),
            files: *files,
            size_bytes,
            timeout,
            resident_bytes: 0,
            took: Vec::new(),
        };
        // What is written is no hole, and nothing that a file system could pack.
        for (at, bytes) in local.memory.bytes().chunks_mut(1 << 20).enumerate() {
            bytes.copy_from_slice(piece((at as u64) << 20, bytes.len()));
        }
        if files.operation.is_sized() {
            local.make_file()?;
        } else if !matches!(files.operation, Operation::Meta { call: Meta::Create }) {
            local.create_all()?;
        }
        local.took.clear();
        Ok(local)
    }

    /// The file, whole and on its disk, without a name.
    fn make_file(&mut self) -> Result<()> {
        let path = self.place.join("file");
        let refuse = |what| {
            let path = path.clone();
            move |error: std::io::Error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                refused(what, &path, errno)
            }
        };
        let mut options = std::fs::File::options();
        options.read(true).write(true).create_new(true);
        let file = options.open(&path).map_err(refuse("create"))?;
        let mut offset = 0;
        while offset < self.size_bytes {
            let bytes = piece(offset, (self.size_bytes - offset).min(1 << 20) as usize);
            file.write_all_at(bytes, offset).map_err(refuse("write"))?;
            offset += bytes.len() as u64;
        }
        file.sync_all().map_err(refuse("write to the disk"))?;
        self.file = Some(match self.files.fs.is_direct {
            false => file,
            true => {
                if self.size_bytes % DIRECT_BYTES != 0 {
                    return Err(Error::Files {
                        what: format!(
                            "a file of {} bytes cannot be read or written past memory (direct=yes)",
                            self.size_bytes
                        ),
                        remedy: "ask for sizes that are multiples of 4 KiB, or for direct=no",
                    });
                }
                let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
                let direct = fs::open(&path, flags, Mode::empty());
                let direct = direct.map_err(|errno| match errno {
                    Errno::INVAL => Error::Files {
                        what: format!(
                            "the file system of {} does not let memory be passed over (O_DIRECT)",
                            sonde_units::plain(&self.place.display().to_string())
                        ),
                        remedy: "ask for direct=no, or for a directory on another file system (--with directory=/path)",
                    },
                    errno => refused("open", &path, errno),
                });
                std::fs::File::from(direct?)
            }
        });
        // Whoever is killed from here on, the file goes with its last descriptor.
        std::fs::remove_file(&path).map_err(refuse("remove the name of"))
    }

    /// A pass over the file; the calls that it took.
    fn pass(&mut self, is_write: bool) -> Result<u64> {
        let path = &self.place;
        let what = if is_write { "write" } else { "read" };
        let Some(file) = &self.file else {
            return Err(refused(what, path, Errno::NOENT));
        };
        let before = self.took.len();
        let transfer = self.files.transfer_bytes;
        match &mut self.by {
            By::Posix => {
                let memory = self.memory.bytes();
                let mut offset = 0;
                while offset < self.size_bytes {
                    let length = transfer.min(self.size_bytes - offset) as usize;
                    let begin_ns = monotonic_ns();
                    let moved = match is_write {
                        true => file.write_all_at(&memory[..length], offset),
                        false => file.read_exact_at(&mut memory[..length], offset),
                    };
                    self.took.push(monotonic_ns() - begin_ns);
                    moved.map_err(|error| {
                        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                        refused(what, path, errno)
                    })?;
                    offset += length as u64;
                }
            }
            By::Ring(ring) => {
                let sizes = [transfer, self.size_bytes];
                let memory = self.memory.bytes();
                let took = ring.pass(file.as_fd(), is_write, memory, sizes, self.timeout);
                let took = took.map_err(|error| match error {
                    sonde_sys::Error::Call { errno, .. } => refused(what, path, errno),
                    other => other.into(),
                });
                self.took.extend(took?);
            }
        }
        if is_write && self.files.is_sync {
            fs::fsync(file).map_err(|errno| refused("write to the disk", path, errno))?;
        }
        Ok((self.took.len() - before) as u64)
    }

    /// The file is as it was before a pass, in memory or not, as is asked for.
    fn settle(&mut self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        if !self.files.fs.is_cached {
            let path = &self.place;
            // The kernel keeps pages that are not written yet.
            fs::fsync(file).map_err(|errno| refused("write to the disk", path, errno))?;
            pages::drop_all(file.as_fd())?;
        }
        let resident = pages::resident_bytes(file.as_fd(), self.size_bytes)?;
        self.resident_bytes = self.resident_bytes.max(resident);
        Ok(())
    }

    /// Bytes of the file are those that were written.
    fn check(&mut self) -> Result<()> {
        let (Some(file), Operation::Read {}) = (&self.file, self.files.operation) else {
            return Ok(());
        };
        let memory = self.memory.bytes();
        let transfer = self.files.transfer_bytes;
        let mut offset = 0;
        while offset < self.size_bytes {
            let length = transfer.min(self.size_bytes - offset) as usize;
            let read = file.read_exact_at(&mut memory[..length], offset);
            if read.is_err() || memory[..length] != *piece(offset, length) {
                return Err(Error::Files {
                    what: format!("the bytes at {offset} are not those that were written"),
                    remedy: "look at the disk and at the kernel's log: the file system has lost them",
                });
            }
            offset += length as u64;
        }
        Ok(())
    }

    fn name(nth: u32) -> String {
        format!("f{nth:09}")
    }

    /// One call on each name.
    fn each(
        &mut self,
        what: &'static str,
        call: impl Fn(&OwnedFd, &str) -> rustix::io::Result<()>,
    ) -> Result<u64> {
        for nth in 0..self.files.names {
            let name = Self::name(nth);
            let begin_ns = monotonic_ns();
            let done = call(&self.directory, &name);
            self.took.push(monotonic_ns() - begin_ns);
            done.map_err(|errno| refused(what, &self.place.join(name), errno))?;
        }
        Ok(self.files.names.into())
    }

    fn create_all(&mut self) -> Result<u64> {
        self.each("create", |directory, name| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map(drop)
        })
    }

    fn remove_all(&mut self) -> Result<u64> {
        self.each("remove", |directory, name| {
            fs::unlinkat(directory, name, AtFlags::empty())
        })
    }

    /// All names once; the calls of the kernel that it took.
    fn list(&mut self) -> Result<u64> {
        let path = &self.place;
        let refuse = |errno| refused("read", path, errno);
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let begun = self.took.len();
        let mut begin_ns = monotonic_ns();
        let directory = fs::openat(&self.directory, ".", flags, Mode::empty()).map_err(refuse)?;
        let mut memory = vec![MaybeUninit::uninit(); LISTED_BYTES];
        let mut listing = RawDir::new(directory, &mut memory);
        loop {
            let is_call = listing.is_buffer_empty();
            let entry = listing.next();
            if is_call {
                self.took.push(monotonic_ns() - begin_ns);
            }
            match entry {
                Some(Ok(_)) => {}
                Some(Err(errno)) => return Err(refuse(errno)),
                None => return Ok((self.took.len() - begun) as u64),
            }
            begin_ns = monotonic_ns();
        }
    }

    /// What changed in the directory is on its disk.
    fn sync_names(&self) -> Result<()> {
        if !self.files.is_sync {
            return Ok(());
        }
        let path = &self.place;
        fs::fsync(&self.directory).map_err(|errno| refused("write to the disk", path, errno))
    }
}

impl Turns for Local {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn round(&mut self) -> Result<u64> {
        let call = match self.files.operation {
            Operation::Read {} => return self.pass(false),
            Operation::Write {} => return self.pass(true),
            Operation::Meta { call } => call,
        };
        match call {
            Meta::Getattr => self.each("look at", |directory, name| {
                fs::statat(directory, name, AtFlags::empty()).map(drop)
            }),
            Meta::Lookup => self.each("look up", |directory, name| {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                fs::openat(directory, name, flags, Mode::empty()).map(drop)
            }),
            Meta::Readdir => self.list(),
            Meta::Create => {
                let calls = self.create_all()?;
                self.sync_names().map(|()| calls)
            }
            Meta::Remove => {
                let calls = self.remove_all()?;
                self.sync_names().map(|()| calls)
            }
        }
    }

    fn restore(&mut self) -> Result<()> {
        match self.files.operation {
            Operation::Meta { call: Meta::Create } => self.remove_all().map(drop),
            Operation::Meta { call: Meta::Remove } => self.create_all().map(drop),
            _ => self.settle(),
        }
    }

    fn drain(&mut self, into: &mut Series) {
        self.took.drain(..).for_each(|took_ns| into.record(took_ns));
    }
}

/// An error that names what, where and the remedy.
pub(super) fn refused(what: &str, path: &Path, errno: Errno) -> Error {
    let remedy = match errno {
        Errno::NOENT | Errno::NOTDIR => {
            "name a directory that is there, on the measuring host (--with directory=/path)"
        }
        Errno::ACCESS | Errno::PERM => {
            "give the user of the agent the right to write there, or name another directory (--with directory=/path)"
        }
        Errno::NOSPC | Errno::DQUOT => {
            "free space there, ask for smaller files (--size) or fewer names, or name another directory (--with directory=/path)"
        }
        Errno::ROFS => {
            "mount it for writing, or name a directory on another file system (--with directory=/path)"
        }
        Errno::FBIG => "ask for smaller files (--size)",
        _ => {
            "look at the file system and at the kernel's log, or name another directory (--with directory=/path)"
        }
    };
    Error::Files {
        what: format!(
            "cannot {what} {}: {errno}",
            sonde_units::plain(&path.display().to_string())
        ),
        remedy,
    }
}

/// Measures files of one size, or names.
pub(super) fn one_size(
    request: &Measure,
    files: &Files,
    size_bytes: u64,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let place = files
        .fs
        .directory
        .map_or_else(std::env::temp_dir, |directory| {
            PathBuf::from(directory.as_str())
        });
    let scratch = Scratch::within(&place)?;
    let mut local = Local::open(&scratch, files, size_bytes, request.spec.timeout())?;
    if request.spec.verify {
        local.check()?;
    }
    local.settle()?;
    local.round()?;
    local.restore()?;
    local.took.clear();
    local.resident_bytes = 0;
    local.settle()?;

    await_begin(request.begin_ns, 0)?;
    let watch = Watch::begin()?;
    let begin_ns = monotonic_ns();
    let mut clients = [local];
    let rounds = rounds(&mut clients, files)?;
    let [local] = clients;
    let facts = FilesFacts {
        calls: Some(rounds.calls),
        span_ns: Some(monotonic_ns() - begin_ns),
        resident_bytes: files.operation.is_sized().then_some(local.resident_bytes),
        ..FilesFacts::default()
    };
    watch.end(&mut measured.interference, None)?;
    measured.evidence.files.insert(size_bytes, facts);
    Ok(rounds.measured(size_bytes, None, None))
}
