//! What is set of a mounted file system alone: where, and how the host's memory takes part.
//!
//! Model:   the client's host reads and writes files itself, by calls of POSIX or by io_uring; there is no server and no network of sonde's. Before
//!          each pass the file's pages are dropped from memory, unless it is to be cached or memory is passed over (O_DIRECT).
//! Source:  open(2), posix_fadvise(2).
//! Units:   bytes.
//! Checked: `settings_of_a_file_system_are_read_by_name`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::yes;

/// The longest path of a directory.
pub const DIRECTORY_BYTES_MAX: usize = 255;
/// What reads and writes past memory are multiples of.
pub const DIRECT_BYTES: u64 = 4_096;

/// The path of a directory, of at most [`DIRECTORY_BYTES_MAX`] bytes: kept in place, so that what is measured stays a plain value.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Directory {
    bytes: [u8; DIRECTORY_BYTES_MAX],
    length: u8,
}

impl Directory {
    /// As text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length));
        bytes.map_or("", |bytes| std::str::from_utf8(bytes).unwrap_or_default())
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl TryFrom<String> for Directory {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "write the whole path of a directory, as /mnt/scratch, of at most {DIRECTORY_BYTES_MAX} bytes"
            )
        };
        if !text.starts_with('/') || text.contains('\0') {
            return Err(wrong());
        }
        let mut bytes = [0; DIRECTORY_BYTES_MAX];
        let to = bytes.get_mut(..text.len()).ok_or_else(wrong)?;
        to.copy_from_slice(text.as_bytes());
        let length = u8::try_from(text.len()).map_err(|_| wrong())?;
        Ok(Self { bytes, length })
    }
}

impl From<Directory> for String {
    fn from(directory: Directory) -> Self {
        directory.as_str().into()
    }
}

/// What is set of a file system alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fs {
    /// `directory`: where a directory for the files is made; null is the host's place for temporary files.
    pub directory: Option<Directory>,
    /// `direct`: reads and writes pass memory over (O_DIRECT).
    pub is_direct: bool,
    /// `cached`: pages of the file stay in memory between passes.
    pub is_cached: bool,
}

impl Fs {
    /// The names of what can be set, with what they take.
    pub(super) const NAMES: [(&'static str, &'static str); 3] = [
        (
            "directory",
            "a directory on the file system, as /mnt/scratch",
        ),
        ("direct", "memory is passed over (O_DIRECT): yes or no"),
        (
            "cached",
            "the file stays in memory between passes: yes or no",
        ),
    ];

    /// Where temporary files are, by way of memory, from which the file is dropped before each pass.
    pub const USUAL: Self = Self {
        directory: None,
        is_direct: false,
        is_cached: false,
    };

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "directory" => self.directory = Some(value.to_owned().try_into()?),
            "direct" => self.is_direct = yes(value)?,
            _ => self.is_cached = yes(value)?,
        }
        Ok(())
    }
}
