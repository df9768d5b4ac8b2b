//! What a server keeps: files by number, in memory or in a directory of its host.
//!
//! Model:   a store knows files by numbers that are never given twice; what is done to them follows POSIX as far as NFS needs it.
//!          Nothing here takes time that is not the host's own: a slower disk is a [model](super::disk) of the server.
//! Units:   bytes; times in nanoseconds since 1970.
//! Checked: `crates/workload/tests/files_store.rs`, which holds each store to the same rules.

mod directory;
mod memory;

pub use directory::Folder;
pub use memory::Memory;

use super::nfs::{Attributes, Changes, Room, Stable, Status};

/// What a store or a server answers.
pub type Result<T> = std::result::Result<T, Status>;

/// A file's number within a store. The first is the directory that is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct File(pub u64);

impl File {
    /// The directory that is exported.
    pub const ROOT: Self = Self(1);
}

/// A name in a directory, with its place: where a reader goes on behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Which file.
    pub file: File,
    /// The name.
    pub name: Vec<u8>,
    /// Its place, above 0 and above those of the names before it.
    pub place: u64,
}

/// Files and directories.
pub trait Store {
    /// What is to be known of a file.
    ///
    /// # Errors
    /// It is gone.
    fn attributes(&mut self, file: File) -> Result<Attributes>;

    /// Changes it.
    ///
    /// # Errors
    /// It is gone, is a directory whose length is to be set, or there is no room.
    fn change(&mut self, file: File, changes: &Changes) -> Result<()>;

    /// The file of a name; `.` and `..` are names.
    ///
    /// # Errors
    /// There is no such name; the directory is gone or is not one.
    fn lookup(&mut self, directory: File, name: &[u8]) -> Result<File>;

    /// At most `count` bytes from `offset`, and whether the file ends with them.
    ///
    /// # Errors
    /// It is gone, or is a directory.
    fn read(&mut self, file: File, offset: u64, count: u32) -> Result<(&[u8], bool)>;

    /// Writes bytes at an offset; what is between the file's end and there becomes zeros.
    ///
    /// # Errors
    /// It is gone, or is a directory; there is no room.
    fn write(&mut self, file: File, offset: u64, data: &[u8], stable: Stable) -> Result<()>;

    /// Makes what was written to a file safe.
    ///
    /// # Errors
    /// It is gone; the disk fails.
    fn commit(&mut self, file: File) -> Result<()>;

    /// A file of a name, made if it is not there.
    ///
    /// # Errors
    /// It is there and `guarded`; it is a directory; the name is not one.
    fn create(&mut self, directory: File, name: &[u8], guarded: bool) -> Result<File>;

    /// A new directory.
    ///
    /// # Errors
    /// The name is taken, or is not one.
    fn make_directory(&mut self, directory: File, name: &[u8]) -> Result<File>;

    /// Removes a file.
    ///
    /// # Errors
    /// There is no such name; it is a directory.
    fn remove(&mut self, directory: File, name: &[u8]) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// There is no such name; it is not a directory, or not empty.
    fn remove_directory(&mut self, directory: File, name: &[u8]) -> Result<()>;

    /// Gives a file another name; a file that has it is removed.
    ///
    /// # Errors
    /// There is no such name; the other is a directory that is not empty, or is within what is renamed.
    fn rename(&mut self, from: File, name: &[u8], to: File, new: &[u8]) -> Result<()>;

    /// At most `most` names behind a place, in the order of their places. `.` and `..` come first.
    ///
    /// # Errors
    /// The directory is gone, or is not one.
    fn list(&mut self, directory: File, place: u64, most: usize) -> Result<Vec<Named>>;

    /// How much room there is.
    fn room(&mut self) -> Room;
}

/// Whether a file of this name can be made.
///
/// # Errors
/// It is empty, `.` or `..`, has a slash or a zero byte in it, or is longer than 255 bytes.
pub(crate) fn name_of_new(name: &[u8]) -> Result<()> {
    match name {
        b"" => Err(Status::Denied),
        b"." | b".." => Err(Status::Exists),
        name if name.len() > 255 => Err(Status::LongName),
        name if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Status::Denied),
        _ => Ok(()),
    }
}
