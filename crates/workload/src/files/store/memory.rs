//! A store in memory, bounded.
//!
//! Model:   files are vectors of bytes; a directory has its names in their order and each a place that no later name gets. A file
//!          whose last name is removed is gone at once: its handle is stale. Bytes beyond the bound are refused as a full disk.
//! Units:   bytes; a change is stamped by a count, since a pure store has no clock: one nanosecond each.
//! Checked: `crates/workload/tests/files_store.rs`.

use super::{File, Named, Result, Store, name_of_new};
use crate::files::nfs::{Attributes, Changes, Kind, Room, Stable, Status};
use std::collections::BTreeMap;

/// What a file without bytes takes.
const FILE_BYTES: u64 = 512;

/// Files in memory.
#[derive(Debug)]
pub struct Memory {
    nodes: BTreeMap<File, Node>,
    /// The number of the next file.
    next: u64,
    changes: u64,
    used_bytes: u64,
    room_bytes: u64,
}

#[derive(Debug)]
struct Node {
    mode: u32,
    changed: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    Names {
        parent: File,
        names: BTreeMap<Vec<u8>, (u64, File)>,
        /// The place of the next name.
        next: u64,
    },
}

/// Places of `.` and `..`.
const SELF: u64 = 1;
const PARENT: u64 = 2;

impl Memory {
    /// An empty one for so many bytes.
    pub fn new(room_bytes: u64) -> Self {
        let mut memory = Self {
            nodes: BTreeMap::new(),
            next: File::ROOT.0,
            changes: 0,
            used_bytes: 0,
            room_bytes,
        };
        memory.insert(Content::empty_names(File::ROOT), 0o755);
        memory
    }

    fn insert(&mut self, content: Content, mode: u32) -> File {
        let file = File(self.next);
        self.next += 1;
        self.used_bytes += FILE_BYTES;
        let changed = self.tick();
        self.nodes.insert(
            file,
            Node {
                mode,
                changed,
                content,
            },
        );
        file
    }

    fn tick(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    fn node(&mut self, file: File) -> Result<&mut Node> {
        self.nodes.get_mut(&file).ok_or(Status::Stale)
    }

    fn bytes(&mut self, file: File) -> Result<&mut Vec<u8>> {
        match &mut self.node(file)?.content {
            Content::Bytes(bytes) => Ok(bytes),
            Content::Names { .. } => Err(Status::IsDirectory),
        }
    }

    fn names(&mut self, directory: File) -> Result<&mut BTreeMap<Vec<u8>, (u64, File)>> {
        match &mut self.node(directory)?.content {
            Content::Names { names, .. } => Ok(names),
            Content::Bytes(_) => Err(Status::NotDirectory),
        }
    }

    fn named(&mut self, directory: File, name: &[u8]) -> Result<File> {
        let found = self.names(directory)?.get(name);
        found.map(|(_, file)| *file).ok_or(Status::Absent)
    }

    fn is_directory(&self, file: File) -> bool {
        matches!(
            self.nodes.get(&file),
            Some(Node {
                content: Content::Names { .. },
                ..
            })
        )
    }

    fn link(&mut self, directory: File, name: &[u8], file: File) -> Result<()> {
        let changed = self.tick();
        let node = self.node(directory)?;
        let Content::Names { names, next, .. } = &mut node.content else {
            return Err(Status::NotDirectory);
        };
        node.changed = changed;
        names.insert(name.to_vec(), (*next, file));
        *next += 1;
        Ok(())
    }

    fn unlink(&mut self, directory: File, name: &[u8]) -> Result<()> {
        let changed = self.tick();
        self.names(directory)?.remove(name).ok_or(Status::Absent)?;
        self.node(directory)?.changed = changed;
        Ok(())
    }

    fn drop_file(&mut self, file: File) {
        if let Some(node) = self.nodes.remove(&file) {
            let bytes = match node.content {
                Content::Bytes(bytes) => bytes.len() as u64,
                Content::Names { .. } => 0,
            };
            self.used_bytes = self.used_bytes.saturating_sub(bytes + FILE_BYTES);
        }
    }

    /// A file has this length from now on.
    fn resize(&mut self, file: File, length: u64) -> Result<()> {
        let (used, room) = (self.used_bytes, self.room_bytes);
        let bytes = self.bytes(file)?;
        let now = bytes.len() as u64;
        if used - now + length.min(room + 1) > room && length > now {
            return Err(Status::Full);
        }
        bytes.resize(length as usize, 0);
        self.used_bytes = used - now + length;
        Ok(())
    }

    /// Whether `file` is `directory` or within it.
    fn is_within(&self, mut file: File, directory: File) -> bool {
        loop {
            if file == directory {
                return true;
            }
            match self.nodes.get(&file).map(|node| &node.content) {
                Some(Content::Names { parent, .. }) if *parent != file => file = *parent,
                _ => return false,
            }
        }
    }
}

impl Content {
    const fn empty_names(parent: File) -> Self {
        Self::Names {
            parent,
            names: BTreeMap::new(),
            next: PARENT + 1,
        }
    }
}

impl Store for Memory {
    fn attributes(&mut self, file: File) -> Result<Attributes> {
        let node = self.node(file)?;
        let (kind, links, size_bytes) = match &node.content {
            Content::Bytes(bytes) => (Kind::Regular, 1, bytes.len() as u64),
            Content::Names { names, .. } => (Kind::Directory, 2, names.len() as u64),
        };
        Ok(Attributes {
            kind,
            mode: node.mode,
            links,
            size_bytes,
            id: file.0,
            changed_ns: node.changed,
        })
    }

    fn change(&mut self, file: File, changes: &Changes) -> Result<()> {
        if let Some(length) = changes.size_bytes {
            self.resize(file, length)?;
        }
        let changed = self.tick();
        let node = self.node(file)?;
        node.changed = changed;
        if let Some(mode) = changes.mode {
            node.mode = mode & 0o7_777;
        }
        Ok(())
    }

    fn lookup(&mut self, directory: File, name: &[u8]) -> Result<File> {
        match name {
            b"." => self.names(directory).map(|_| directory),
            b".." => match self.node(directory)?.content {
                Content::Names { parent, .. } => Ok(parent),
                Content::Bytes(_) => Err(Status::NotDirectory),
            },
            name => self.named(directory, name),
        }
    }

    fn read(&mut self, file: File, offset: u64, count: u32) -> Result<(&[u8], bool)> {
        let bytes = self.bytes(file)?;
        let begin = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let end = begin.saturating_add(count as usize).min(bytes.len());
        Ok((&bytes[begin..end], end == bytes.len()))
    }

    fn write(&mut self, file: File, offset: u64, data: &[u8], _: Stable) -> Result<()> {
        let end = offset.checked_add(data.len() as u64);
        let end = end.ok_or(Status::TooLarge)?;
        let length = self.bytes(file)?.len() as u64;
        if end > length {
            self.resize(file, end)?;
        }
        let changed = self.tick();
        let bytes = self.bytes(file)?;
        bytes[offset as usize..end as usize].copy_from_slice(data);
        self.node(file)?.changed = changed;
        Ok(())
    }

    fn commit(&mut self, file: File) -> Result<()> {
        self.bytes(file).map(|_| ())
    }

    fn create(&mut self, directory: File, name: &[u8], guarded: bool) -> Result<File> {
        name_of_new(name)?;
        match self.named(directory, name) {
            Ok(_) if guarded => Err(Status::Exists),
            Ok(file) if self.is_directory(file) => Err(Status::IsDirectory),
            Ok(file) => Ok(file),
            Err(Status::Absent) => {
                if self.used_bytes + FILE_BYTES > self.room_bytes {
                    return Err(Status::Full);
                }
                let file = self.insert(Content::Bytes(Vec::new()), 0o644);
                self.link(directory, name, file)?;
                Ok(file)
            }
            Err(status) => Err(status),
        }
    }

    fn make_directory(&mut self, directory: File, name: &[u8]) -> Result<File> {
        name_of_new(name)?;
        match self.named(directory, name) {
            Ok(_) => Err(Status::Exists),
            Err(Status::Absent) if self.used_bytes + FILE_BYTES > self.room_bytes => {
                Err(Status::Full)
            }
            Err(Status::Absent) => {
                let file = self.insert(Content::empty_names(directory), 0o755);
                self.link(directory, name, file)?;
                Ok(file)
            }
            Err(status) => Err(status),
        }
    }

    fn remove(&mut self, directory: File, name: &[u8]) -> Result<()> {
        let file = self.named(directory, name)?;
        if self.is_directory(file) {
            return Err(Status::IsDirectory);
        }
        self.unlink(directory, name)?;
        self.drop_file(file);
        Ok(())
    }

    fn remove_directory(&mut self, directory: File, name: &[u8]) -> Result<()> {
        let file = self.named(directory, name)?;
        if !self.names(file)?.is_empty() {
            return Err(Status::NotEmpty);
        }
        self.unlink(directory, name)?;
        self.drop_file(file);
        Ok(())
    }

    fn rename(&mut self, from: File, name: &[u8], to: File, new: &[u8]) -> Result<()> {
        let file = self.named(from, name)?;
        name_of_new(new)?;
        match self.named(to, new) {
            Ok(other) if other == file => return Ok(()),
            Ok(other) => match (self.is_directory(file), self.is_directory(other)) {
                (false, false) => self.remove(to, new)?,
                (true, true) => self.remove_directory(to, new)?,
                (true, false) => return Err(Status::NotDirectory),
                (false, true) => return Err(Status::IsDirectory),
            },
            Err(Status::Absent) => {}
            Err(status) => return Err(status),
        }
        if self.is_directory(file) && self.is_within(to, file) {
            return Err(Status::Invalid);
        }
        self.unlink(from, name)?;
        self.link(to, new, file)?;
        if let Content::Names { parent, .. } = &mut self.node(file)?.content {
            *parent = to;
        }
        Ok(())
    }

    fn list(&mut self, directory: File, place: u64, most: usize) -> Result<Vec<Named>> {
        let Content::Names { parent, names, .. } = &self.node(directory)?.content else {
            return Err(Status::NotDirectory);
        };
        let fixed = [(&b"."[..], SELF, directory), (b"..", PARENT, *parent)];
        let fixed = fixed.into_iter();
        let mut all: Vec<(u64, &[u8], File)> = fixed.map(|(n, p, file)| (p, n, file)).collect();
        all.extend(names.iter().map(|(name, (p, file))| (*p, &name[..], *file)));
        all.retain(|(p, ..)| *p > place);
        all.sort_unstable();
        let named = |(place, name, file): (u64, &[u8], File)| Named {
            file,
            name: name.to_vec(),
            place,
        };
        Ok(all.into_iter().take(most).map(named).collect())
    }

    fn room(&mut self) -> Room {
        Room {
            total_bytes: self.room_bytes,
            free_bytes: self.room_bytes.saturating_sub(self.used_bytes),
        }
    }
}
