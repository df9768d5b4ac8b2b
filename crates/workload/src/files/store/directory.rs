//! A store in a directory of the host, which nothing leaves.
//!
//! Model:   a file is known by the directory that it was found in and its name there; the store opens each beneath the exported
//!          directory by `openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, so that neither `..` nor a link leads out of it, and
//!          whoever changes the directory meanwhile changes nothing of that. What is neither a file nor a directory is listed, and
//!          cannot be opened. Handles are those of one start of the server: afterwards they are stale.
//! Source:  openat2(2).
//! Units:   bytes; times in nanoseconds since 1970.
//! Checked: `crates/workload/tests/files_store.rs`: `nothing_leads_out_of_a_folder`.

use super::{File, Named, Result, Store, name_of_new};
use crate::files::nfs::{Attributes, Changes, Kind, Room, Stable, Status};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The most files that are known at once.
const KNOWN_MAX: usize = 1 << 20;
/// The most files that are kept open.
const OPEN_MAX: usize = 64;
const LARGEST_READ: usize = 1 << 20;

/// A directory of the host.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    known: BTreeMap<File, Known>,
    numbers: BTreeMap<(File, Vec<u8>), File>,
    next: u64,
    open: BTreeMap<File, std::fs::File>,
    buffer: Vec<u8>,
    read_only: bool,
}

#[derive(Debug, Clone)]
struct Known {
    parent: File,
    name: Vec<u8>,
}

fn status(errno: Errno) -> Status {
    match errno {
        Errno::NOENT => Status::Absent,
        Errno::ACCESS | Errno::XDEV | Errno::LOOP => Status::Denied,
        Errno::PERM => Status::NotOwner,
        Errno::EXIST => Status::Exists,
        Errno::NOTDIR => Status::NotDirectory,
        Errno::ISDIR => Status::IsDirectory,
        Errno::INVAL => Status::Invalid,
        Errno::FBIG => Status::TooLarge,
        Errno::NOSPC | Errno::DQUOT => Status::Full,
        Errno::ROFS => Status::ReadOnly,
        Errno::NAMETOOLONG => Status::LongName,
        Errno::NOTEMPTY => Status::NotEmpty,
        Errno::STALE => Status::Stale,
        _ => Status::Disk,
    }
}

fn io_status(error: &std::io::Error) -> Status {
    Errno::from_io_error(error).map_or(Status::Disk, status)
}

impl Folder {
    /// Of a directory; `read_only` refuses every change.
    ///
    /// # Errors
    /// It cannot be opened, or is not a directory.
    pub fn open(path: &Path, read_only: bool) -> std::io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: fs::open(path, flags, Mode::empty())?,
            known: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next: File::ROOT.0 + 1,
            open: BTreeMap::new(),
            buffer: vec![0; LARGEST_READ],
            read_only,
        })
    }

    /// The way to a file from the exported directory.
    fn way(&self, file: File) -> Result<PathBuf> {
        let mut names = Vec::new();
        let mut at = file;
        while at != File::ROOT {
            let known = self.known.get(&at).ok_or(Status::Stale)?;
            names.push(&known.name[..]);
            at = known.parent;
        }
        let mut way = PathBuf::from(".");
        way.extend(names.iter().rev().map(|name| OsStr::from_bytes(name)));
        Ok(way)
    }

    fn open_at(&self, way: &Path, flags: OFlags) -> Result<OwnedFd> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        fs::openat2(&self.root, way, flags, Mode::empty(), beneath).map_err(status)
    }

    /// A file that is gone from where it was known has a stale handle.
    fn look(&self, file: File) -> Result<OwnedFd> {
        let gone = |status| match status {
            Status::Absent | Status::NotDirectory => Status::Stale,
            other => other,
        };
        self.open_at(&self.way(file)?, OFlags::PATH).map_err(gone)
    }

    /// A directory, to name files in.
    fn directory(&self, file: File) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = self.open_at(&self.way(file)?, flags);
        opened.map_err(|status| match status {
            Status::Absent => Status::Stale,
            other => other,
        })
    }

    fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Status::ReadOnly);
        }
        Ok(())
    }

    fn number(&mut self, parent: File, name: &[u8]) -> Result<File> {
        let key = (parent, name.to_vec());
        if let Some(file) = self.numbers.get(&key) {
            return Ok(*file);
        }
        if self.known.len() >= KNOWN_MAX {
            return Err(Status::Full);
        }
        let file = File(self.next);
        self.next += 1;
        let name = name.to_vec();
        self.known.insert(file, Known { parent, name });
        self.numbers.insert(key, file);
        Ok(file)
    }

    /// A name is of another file from now on, or of none.
    fn forget(&mut self, parent: File, name: &[u8]) {
        if let Some(file) = self.numbers.remove(&(parent, name.to_vec())) {
            self.known.remove(&file);
            self.open.remove(&file);
        }
    }

    fn opened(&mut self, file: File) -> Result<&std::fs::File> {
        if !self.open.contains_key(&file) {
            let way = self.way(file)?;
            // What is not a file must not be opened: a fifo would block, a device do something.
            let kind = fs::fstat(self.look(file)?).map_err(status)?.st_mode;
            match FileType::from_raw_mode(kind) {
                FileType::RegularFile => {}
                FileType::Directory => return Err(Status::IsDirectory),
                _ => return Err(Status::Denied),
            }
            let flags = if self.read_only {
                OFlags::RDONLY
            } else {
                OFlags::RDWR
            };
            let opened = match self.open_at(&way, flags | OFlags::NONBLOCK) {
                Err(Status::Denied) => self.open_at(&way, OFlags::RDONLY | OFlags::NONBLOCK)?,
                opened => opened?,
            };
            if self.open.len() >= OPEN_MAX {
                self.open.pop_first();
            }
            self.open.insert(file, std::fs::File::from(opened));
        }
        self.open.get(&file).ok_or(Status::Stale)
    }
}

fn named(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

impl Store for Folder {
    fn attributes(&mut self, file: File) -> Result<Attributes> {
        let found = fs::fstat(self.look(file)?).map_err(status)?;
        let kind = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Kind::Regular,
            FileType::Directory => Kind::Directory,
            _ => Kind::Other,
        };
        let seconds = u64::try_from(found.st_mtime).unwrap_or(0);
        let nanos = found.st_mtime_nsec;
        Ok(Attributes {
            kind,
            mode: found.st_mode & 0o7_777,
            links: u32::try_from(found.st_nlink).unwrap_or(u32::MAX),
            size_bytes: u64::try_from(found.st_size).unwrap_or(0),
            id: file.0,
            changed_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
        })
    }

    fn change(&mut self, file: File, changes: &Changes) -> Result<()> {
        self.writable()?;
        if changes.mode.is_some() && file == File::ROOT {
            return Err(Status::NotOwner);
        }
        if let Some(length) = changes.size_bytes {
            let opened = self.opened(file)?;
            opened.set_len(length).map_err(|error| io_status(&error))?;
        }
        if let Some(mode) = changes.mode {
            // Never set-user-id and the like: a client has no say over who runs what here.
            let mode = Mode::from_raw_mode(mode & 0o777);
            let attributes = self.attributes(file)?;
            match attributes.kind {
                Kind::Regular => fs::fchmod(self.opened(file)?, mode).map_err(status)?,
                Kind::Directory => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                    let opened = self.open_at(&self.way(file)?, flags)?;
                    fs::fchmod(opened, mode).map_err(status)?;
                }
                Kind::Other => return Err(Status::Denied),
            }
        }
        Ok(())
    }

    fn lookup(&mut self, directory: File, name: &[u8]) -> Result<File> {
        let within = self.directory(directory)?;
        match name {
            b"." => return Ok(directory),
            b".." => {
                let known = self.known.get(&directory);
                // Above what is exported is nothing.
                return Ok(known.map_or(File::ROOT, |known| known.parent));
            }
            name => {
                if name_of_new(name).is_err() {
                    return Err(Status::Absent);
                }
            }
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        fs::statat(&within, named(name), flags).map_err(status)?;
        self.number(directory, name)
    }

    fn read(&mut self, file: File, offset: u64, count: u32) -> Result<(&[u8], bool)> {
        let count = (count as usize).min(LARGEST_READ);
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut got = 0;
        let read = self.opened(file).and_then(|opened| {
            while got < count {
                let at = offset.saturating_add(got as u64);
                // The kernel has no file as long.
                if i64::try_from(at).is_err() {
                    break;
                }
                match opened.read_at(&mut buffer[got..count], at) {
                    Ok(0) => break,
                    Ok(bytes) => got += bytes,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(io_status(&error)),
                }
            }
            let found = opened.metadata().map_err(|error| io_status(&error))?;
            Ok(offset.saturating_add(got as u64) >= found.len())
        });
        self.buffer = buffer;
        read.map(|end| (&self.buffer[..got], end))
    }

    fn write(&mut self, file: File, offset: u64, data: &[u8], stable: Stable) -> Result<()> {
        self.writable()?;
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(Status::TooLarge);
        }
        let opened = self.opened(file)?;
        let written = opened.write_all_at(data, offset);
        written.map_err(|error| io_status(&error))?;
        match stable {
            Stable::Unstable => Ok(()),
            Stable::Sync => self.commit(file),
        }
    }

    fn commit(&mut self, file: File) -> Result<()> {
        let opened = self.opened(file)?;
        opened.sync_data().map_err(|error| io_status(&error))
    }

    fn create(&mut self, directory: File, name: &[u8], guarded: bool) -> Result<File> {
        name_of_new(name)?;
        self.writable()?;
        let within = self.directory(directory)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let made = fs::openat(&within, named(name), flags, Mode::from_raw_mode(0o644));
        match made.map_err(status) {
            Ok(made) => {
                self.forget(directory, name);
                let file = self.number(directory, name)?;
                if self.open.len() < OPEN_MAX {
                    self.open.insert(file, std::fs::File::from(made));
                }
                Ok(file)
            }
            Err(Status::Exists) if !guarded => {
                let file = self.number(directory, name)?;
                match self.attributes(file)?.kind {
                    Kind::Regular => Ok(file),
                    Kind::Directory => Err(Status::IsDirectory),
                    Kind::Other => Err(Status::Denied),
                }
            }
            Err(status) => Err(status),
        }
    }

    fn make_directory(&mut self, directory: File, name: &[u8]) -> Result<File> {
        name_of_new(name)?;
        self.writable()?;
        let within = self.directory(directory)?;
        let mode = Mode::from_raw_mode(0o755);
        fs::mkdirat(&within, named(name), mode).map_err(status)?;
        self.forget(directory, name);
        self.number(directory, name)
    }

    fn remove(&mut self, directory: File, name: &[u8]) -> Result<()> {
        self.unlink(directory, name, AtFlags::empty())
    }

    fn remove_directory(&mut self, directory: File, name: &[u8]) -> Result<()> {
        self.unlink(directory, name, AtFlags::REMOVEDIR)
    }

    fn rename(&mut self, from: File, name: &[u8], to: File, new: &[u8]) -> Result<()> {
        name_of_new(name).map_err(|_| Status::Absent)?;
        name_of_new(new)?;
        self.writable()?;
        let (old, young) = (self.directory(from)?, self.directory(to)?);
        let none = RenameFlags::empty();
        fs::renameat_with(&old, named(name), &young, named(new), none).map_err(status)?;
        if (from, name) == (to, new) {
            return Ok(());
        }
        self.forget(to, new);
        // Its handle goes with it.
        if let Some(file) = self.numbers.remove(&(from, name.to_vec())) {
            let name = new.to_vec();
            self.numbers.insert((to, name.clone()), file);
            self.known.insert(file, Known { parent: to, name });
        }
        Ok(())
    }

    fn list(&mut self, directory: File, place: u64, most: usize) -> Result<Vec<Named>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = self.open_at(&self.way(directory)?, flags);
        let opened = opened.map_err(|status| match status {
            Status::Absent => Status::Stale,
            other => other,
        })?;
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(opened.as_fd()).map_err(status)? {
            let name = entry.map_err(status)?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        // A place is the count of names before it in the order of names: it holds as long as nothing is made or removed.
        names.sort_unstable();
        let fixed = [b".".to_vec(), b"..".to_vec()];
        let all = fixed.into_iter().chain(names);
        let behind = usize::try_from(place).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for (at, name) in all.enumerate().skip(behind).take(most) {
            let file = match &name[..] {
                b"." => directory,
                b".." => self.lookup(directory, b"..")?,
                name => self.number(directory, name)?,
            };
            found.push(Named {
                file,
                name,
                place: at as u64 + 1,
            });
        }
        Ok(found)
    }

    fn room(&mut self) -> Room {
        let found = fs::fstatvfs(&self.root).ok();
        let bytes = |blocks: u64, size: u64| blocks.saturating_mul(size);
        Room {
            total_bytes: found.as_ref().map_or(0, |f| bytes(f.f_blocks, f.f_frsize)),
            free_bytes: found.map_or(0, |f| bytes(f.f_bavail, f.f_frsize)),
        }
    }
}

impl Folder {
    fn unlink(&mut self, directory: File, name: &[u8], flags: AtFlags) -> Result<()> {
        name_of_new(name).map_err(|_| Status::Absent)?;
        self.writable()?;
        let within = self.directory(directory)?;
        fs::unlinkat(&within, named(name), flags).map_err(status)?;
        self.forget(directory, name);
        Ok(())
    }
}
