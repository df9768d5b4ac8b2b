//! NFS: what versions 2 and 3 can ask and answer, in one form for both, and the programs around them.
//!
//! Model:   a [`Call`] is what a client wants of a file, a [`Reply`] what the server says. `v2` and `v3` write and read both in
//!          the form of their version, `mount` has the program by which a client gets the handle to begin with. What a version
//!          does not have (COMMIT in 2) cannot be written in it.
//! Source:  RFC 1094 (NFS version 2, MOUNT version 1), RFC 1813 (NFS version 3, MOUNT version 3). Deviations: links, devices and
//!          links by name are not made; a server answers that they are not supported.
//! Units:   sizes and offsets in bytes, times in nanoseconds since 1970.
//! Checked: the tests of `v2`, `v3` and `mount`; the fuzz target `files`.

mod mount;
mod v2;
mod v3;

pub use mount::{MountCall, MountReply};

use super::rpc::Procedure;
use super::xdr::{Decoder, Encoder, Result};

/// The program NFS.
pub const NFS: u32 = 100_003;
/// The program MOUNT.
pub const MOUNT: u32 = 100_005;
/// The longest handle (RFC 1813 §2.4: NFS3_FHSIZE).
pub const HANDLE_BYTES_MAX: usize = 64;
/// The longest name (RFC 1094 §2.3.9: MAXNAMLEN).
pub const NAME_BYTES_MAX: u32 = 255;
/// The longest path to mount (RFC 1094 §A.4: MNTPATHLEN).
pub const PATH_BYTES_MAX: u32 = 1_024;
/// The most bytes of a read or write in version 2 (RFC 1094 §2.3.1: MAXDATA).
pub const V2_BYTES_MAX: u32 = 8_192;
/// The most bytes of a read or write in version 3 here.
pub const V3_BYTES_MAX: u32 = 1 << 20;

/// The version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 1094.
    V2,
    /// RFC 1813.
    V3,
}

impl Version {
    /// As RPC counts it.
    pub const fn number(self) -> u32 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    /// That of the program MOUNT that goes with it.
    pub const fn mount(self) -> u32 {
        match self {
            Self::V2 => 1,
            Self::V3 => 3,
        }
    }
}

/// What a server calls a file by; a client does not look into it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    length: u8,
    bytes: [u8; HANDLE_BYTES_MAX],
}

impl Handle {
    /// Of these bytes; none for more than [`HANDLE_BYTES_MAX`].
    pub fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; HANDLE_BYTES_MAX];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self {
            length: from.len() as u8,
            bytes,
        })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        let length = usize::from(self.length).min(HANDLE_BYTES_MAX);
        self.bytes.get(..length).unwrap_or_default()
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle ")?;
        self.bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes.
    Regular,
    /// Names of files.
    Directory,
    /// What is served, but not looked into: links, devices, sockets.
    Other,
}

/// What a server says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: Kind,
    /// Who may do what with it: the lower 12 bits.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// Its length.
    pub size_bytes: u64,
    /// Its number within what is exported.
    pub id: u64,
    /// When it was changed last.
    pub changed_ns: u64,
}

/// What is to be changed of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Its length.
    pub size_bytes: Option<u64>,
    /// Who may do what with it.
    pub mode: Option<u32>,
}

/// How safe written bytes are when they are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stable {
    /// In the server's memory: a COMMIT makes them safe.
    Unstable,
    /// On the disk.
    Sync,
}

/// Why a server did not do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Status {
    /// Not the owner.
    #[error("the caller is not the owner (NFSERR_PERM)")]
    NotOwner,
    /// There is no such file.
    #[error("there is no such file (NFSERR_NOENT)")]
    Absent,
    /// The disk failed.
    #[error("the server's disk failed (NFSERR_IO)")]
    Disk,
    /// Permission denied.
    #[error("permission denied (NFSERR_ACCES)")]
    Denied,
    /// The name is taken.
    #[error("there is such a file already (NFSERR_EXIST)")]
    Exists,
    /// It is not a directory.
    #[error("it is not a directory (NFSERR_NOTDIR)")]
    NotDirectory,
    /// It is a directory.
    #[error("it is a directory (NFSERR_ISDIR)")]
    IsDirectory,
    /// The arguments have no meaning.
    #[error("the arguments have no meaning (NFS3ERR_INVAL)")]
    Invalid,
    /// It is too large.
    #[error("the file is too large (NFSERR_FBIG)")]
    TooLarge,
    /// There is no room.
    #[error("there is no room on the server (NFSERR_NOSPC)")]
    Full,
    /// Nothing may be written.
    #[error("nothing may be written there (NFSERR_ROFS)")]
    ReadOnly,
    /// The name is too long.
    #[error("the name is too long (NFSERR_NAMETOOLONG)")]
    LongName,
    /// The directory has files in it.
    #[error("the directory is not empty (NFSERR_NOTEMPTY)")]
    NotEmpty,
    /// The handle is of a file that is gone, or of a server before it was started anew.
    #[error(
        "the handle is of a file that is gone, or of the server before it was started anew (NFSERR_STALE)"
    )]
    Stale,
    /// The bytes are not a handle of this server.
    #[error("the handle is not one of this server's (NFS3ERR_BADHANDLE)")]
    BadHandle,
    /// The place in a directory is of another state of it.
    #[error("the place in the directory is of another state of it (NFS3ERR_BAD_COOKIE)")]
    BadPlace,
    /// It cannot do that.
    #[error("the server cannot do that (NFS3ERR_NOTSUPP)")]
    Unsupported,
    /// Another reason.
    #[error("the server refuses (nfsstat {0})")]
    Other(u32),
}

/// All that have a number of their own.
const STATUSES: [(Status, u32); 17] = [
    (Status::NotOwner, 1),
    (Status::Absent, 2),
    (Status::Disk, 5),
    (Status::Denied, 13),
    (Status::Exists, 17),
    (Status::NotDirectory, 20),
    (Status::IsDirectory, 21),
    (Status::Invalid, 22),
    (Status::TooLarge, 27),
    (Status::Full, 28),
    (Status::ReadOnly, 30),
    (Status::LongName, 63),
    (Status::NotEmpty, 66),
    (Status::Stale, 70),
    (Status::BadHandle, 10_001),
    (Status::BadPlace, 10_003),
    (Status::Unsupported, 10_004),
];

impl Status {
    /// As NFS numbers it: those below 10,000 are of both versions.
    pub fn number(self) -> u32 {
        if let Self::Other(number) = self {
            return number;
        }
        let found = STATUSES.iter().find(|(status, _)| *status == self);
        found.map_or(5, |(_, number)| *number)
    }

    /// By its number.
    pub fn of(number: u32) -> Self {
        let found = STATUSES.iter().find(|(_, known)| *known == number);
        found.map_or(Self::Other(number), |(status, _)| *status)
    }
}

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    /// Nothing: a round trip.
    Null,
    /// What is to be known of a file.
    GetAttributes {
        /// Which.
        file: Handle,
    },
    /// That it be changed.
    SetAttributes {
        /// Which.
        file: Handle,
        /// How.
        changes: Changes,
    },
    /// The handle of a name.
    Lookup {
        /// Where.
        directory: Handle,
        /// The name.
        name: &'a [u8],
    },
    /// What the caller may do with a file. Version 3.
    Access {
        /// Which.
        file: Handle,
        /// What it would do.
        wanted: u32,
    },
    /// Bytes of a file.
    Read {
        /// Which.
        file: Handle,
        /// From where.
        offset: u64,
        /// At most so many.
        count: u32,
    },
    /// That bytes of a file be these.
    Write {
        /// Which.
        file: Handle,
        /// From where.
        offset: u64,
        /// How safe they must be when this is answered. Version 2 is always synchronous.
        stable: Stable,
        /// The bytes.
        data: &'a [u8],
    },
    /// A new file.
    Create {
        /// Where.
        directory: Handle,
        /// Its name.
        name: &'a [u8],
        /// What is set of it.
        changes: Changes,
        /// Whether one that is there is an error.
        guarded: bool,
    },
    /// A new directory.
    MakeDirectory {
        /// Where.
        directory: Handle,
        /// Its name.
        name: &'a [u8],
    },
    /// That a file be removed.
    Remove {
        /// Where.
        directory: Handle,
        /// Its name.
        name: &'a [u8],
    },
    /// That an empty directory be removed.
    RemoveDirectory {
        /// Where.
        directory: Handle,
        /// Its name.
        name: &'a [u8],
    },
    /// Another name for a file.
    Rename {
        /// Where it is.
        from: Handle,
        /// Its name.
        name: &'a [u8],
        /// Where it is to be.
        to: Handle,
        /// Its new name.
        new: &'a [u8],
    },
    /// Names in a directory.
    ReadDirectory {
        /// Which.
        directory: Handle,
        /// From behind the entry with this place; 0 is the begin.
        place: u64,
        /// The verifier of the places, as the directory's first answer had it. Version 3.
        verifier: u64,
        /// Bytes of the answer, at most.
        count: u32,
        /// With handles and attributes. Version 3.
        plus: bool,
    },
    /// How much room there is.
    FileSystem {
        /// Any file of it.
        root: Handle,
    },
    /// What the server can do. Version 3.
    Capabilities {
        /// Any file of it.
        root: Handle,
    },
    /// The limits of names. Version 3.
    PathLimits {
        /// Any file of it.
        file: Handle,
    },
    /// That what was written be on the disk. Version 3.
    Commit {
        /// Which file.
        file: Handle,
        /// From where.
        offset: u64,
        /// So many bytes; 0 is to the end.
        count: u32,
    },
    /// What this server does not do; it says so in the form of the procedure.
    Unsupported {
        /// The procedure's number.
        number: u32,
    },
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The file's number.
    pub id: u64,
    /// The name.
    pub name: Vec<u8>,
    /// Its place: where to go on behind it.
    pub place: u64,
    /// Its handle and attributes, where they were asked for.
    pub known: Option<(Handle, Attributes)>,
}

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// In all.
    pub total_bytes: u64,
    /// Free.
    pub free_bytes: u64,
}

/// What a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a read, at most.
    pub read_max: u32,
    /// Bytes of a write, at most.
    pub write_max: u32,
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<'a> {
    /// It is there.
    Null,
    /// Why it did not do it.
    Failed(Status),
    /// Of GETATTR and SETATTR.
    Attributes(Option<Attributes>),
    /// Of LOOKUP, CREATE and MKDIR.
    Found(Handle, Option<Attributes>),
    /// Of ACCESS: what of it the caller may.
    Access(u32),
    /// Of READ.
    Data {
        /// Of the file, where the server says them.
        attributes: Option<Attributes>,
        /// What was read.
        data: &'a [u8],
        /// Whether the file ends there.
        end: bool,
    },
    /// Of WRITE.
    Written {
        /// Of the file, where the server says them.
        attributes: Option<Attributes>,
        /// How many bytes; version 2 writes all or fails.
        count: u32,
        /// How safe they are.
        stable: Stable,
        /// Another value than before means that what was unstable is lost. Version 3.
        verifier: u64,
    },
    /// Of REMOVE, RMDIR and RENAME.
    Done,
    /// Of READDIR.
    Entries {
        /// The names.
        entries: Vec<Entry>,
        /// The verifier of the places. Version 3.
        verifier: u64,
        /// Whether these are the last.
        end: bool,
    },
    /// Of FSSTAT and STATFS.
    Room(Room),
    /// Of FSINFO.
    Limits(Limits),
    /// Of PATHCONF.
    PathLimits,
    /// Of COMMIT.
    Committed {
        /// As of writes.
        verifier: u64,
    },
}

impl Call<'_> {
    /// The procedure that it is in a version; none where the version does not have it.
    pub const fn procedure(&self, version: Version) -> Option<Procedure> {
        let number = match version {
            Version::V2 => v2::number(self),
            Version::V3 => v3::number(self),
        };
        match number {
            None => None,
            Some(number) => Some(Procedure {
                program: NFS,
                version: version.number(),
                number,
            }),
        }
    }

    /// Writes its arguments.
    pub fn write(&self, version: Version, to: &mut Encoder) {
        match version {
            Version::V2 => v2::write_call(self, to),
            Version::V3 => v3::write_call(self, to),
        }
    }

    /// Whether a second execution would do or answer something else than the first: such a reply is kept for a while.
    pub const fn is_idempotent(&self) -> bool {
        !matches!(
            self,
            Self::SetAttributes { .. }
                | Self::Create { .. }
                | Self::MakeDirectory { .. }
                | Self::Remove { .. }
                | Self::RemoveDirectory { .. }
                | Self::Rename { .. }
        )
    }
}

/// Reads the arguments of a procedure of NFS; none where the version does not have it.
///
/// # Errors
/// They are not its arguments.
pub fn read_call<'a>(
    version: Version,
    number: u32,
    from: &mut Decoder<'a>,
) -> Result<Option<Call<'a>>> {
    match version {
        Version::V2 => v2::read_call(number, from),
        Version::V3 => v3::read_call(number, from),
    }
}

/// Writes the results of a procedure.
pub fn write_reply(version: Version, number: u32, reply: &Reply<'_>, to: &mut Encoder) {
    match version {
        Version::V2 => v2::write_reply(number, reply, to),
        Version::V3 => v3::write_reply(number, reply, to),
    }
}

/// Reads the results of a procedure.
///
/// # Errors
/// They are not its results.
pub fn read_reply<'a>(version: Version, number: u32, from: &mut Decoder<'a>) -> Result<Reply<'a>> {
    match version {
        Version::V2 => v2::read_reply(number, from),
        Version::V3 => v3::read_reply(number, from),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Calls and replies of every kind.

    use super::*;

    pub(crate) fn handle(bytes: usize) -> Handle {
        let all: Vec<u8> = (1..=bytes as u8).collect();
        Handle::new(&all).unwrap()
    }

    pub(crate) fn attributes(kind: Kind) -> Attributes {
        Attributes {
            kind,
            mode: 0o644,
            links: 2,
            size_bytes: 123_456,
            id: 77,
            changed_ns: 1_000_000_000_123_000,
        }
    }

    pub(crate) fn calls(handle_bytes: usize) -> Vec<Call<'static>> {
        let file = handle(handle_bytes);
        let changes = Changes {
            size_bytes: Some(12),
            mode: Some(0o600),
        };
        let (directory, name) = (file, &b"a name"[..]);
        vec![
            Call::Null,
            Call::GetAttributes { file },
            Call::SetAttributes { file, changes },
            Call::Lookup { directory, name },
            Call::Access { file, wanted: 63 },
            Call::Read {
                file,
                offset: 8_192,
                count: 8_192,
            },
            Call::Write {
                file,
                offset: 3,
                stable: Stable::Unstable,
                data: b"seven b",
            },
            Call::Create {
                directory,
                name,
                changes,
                guarded: true,
            },
            Call::MakeDirectory { directory, name },
            Call::Remove { directory, name },
            Call::RemoveDirectory { directory, name },
            Call::Rename {
                from: directory,
                name,
                to: directory,
                new: b"another",
            },
            Call::ReadDirectory {
                directory,
                place: 4,
                verifier: 9,
                count: 4_096,
                plus: false,
            },
            Call::ReadDirectory {
                directory,
                place: 4,
                verifier: 9,
                count: 4_096,
                plus: true,
            },
            Call::FileSystem { root: file },
            Call::Capabilities { root: file },
            Call::PathLimits { file },
            Call::Commit {
                file,
                offset: 0,
                count: 0,
            },
        ]
    }

    /// A call of each kind with its reply, and with a refusal. `full`: with what version 3 alone says.
    pub(crate) fn replies(handle_bytes: usize, full: bool) -> Vec<(Call<'static>, Reply<'static>)> {
        let known = attributes(Kind::Regular);
        let entry = |id: u64, plus: bool| Entry {
            id,
            name: format!("name {id}").into_bytes(),
            place: id + 1,
            known: (plus && full).then(|| (handle(handle_bytes), known)),
        };
        let reply = |call: &Call<'_>| match *call {
            Call::Null => Reply::Null,
            Call::GetAttributes { .. } | Call::SetAttributes { .. } => {
                Reply::Attributes(Some(known))
            }
            Call::Lookup { .. } | Call::Create { .. } | Call::MakeDirectory { .. } => {
                Reply::Found(handle(handle_bytes), Some(known))
            }
            Call::Access { .. } => Reply::Access(3),
            Call::Read { .. } => Reply::Data {
                attributes: Some(known),
                data: b"what was read",
                end: full,
            },
            Call::Write { .. } => Reply::Written {
                attributes: Some(known),
                count: if full { 7 } else { u32::MAX },
                stable: if full { Stable::Unstable } else { Stable::Sync },
                verifier: if full { 12 } else { 0 },
            },
            Call::ReadDirectory { plus, .. } => Reply::Entries {
                entries: (1..4).map(|id| entry(id, plus)).collect(),
                verifier: if full { 5 } else { 0 },
                end: true,
            },
            Call::FileSystem { .. } => Reply::Room(Room {
                total_bytes: 1 << 20,
                free_bytes: 1 << 16,
            }),
            Call::Capabilities { .. } => Reply::Limits(Limits {
                read_max: 65_536,
                write_max: 32_768,
            }),
            Call::PathLimits { .. } => Reply::PathLimits,
            Call::Commit { .. } => Reply::Committed { verifier: 12 },
            _ => Reply::Done,
        };
        let mut all = Vec::new();
        for call in calls(handle_bytes) {
            let done = reply(&call);
            all.push((call, done));
            if call != Call::Null {
                all.push((call, Reply::Failed(Status::Stale)));
            }
        }
        all
    }

    #[test]
    fn statuses_come_back_by_their_numbers() {
        for (status, number) in STATUSES {
            assert_eq!((status.number(), Status::of(number)), (number, status));
        }
        assert_eq!(Status::of(69), Status::Other(69));
        assert_eq!(Status::Other(69).number(), 69);
    }
}
