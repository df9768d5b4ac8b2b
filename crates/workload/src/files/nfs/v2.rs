//! NFS version 2 as it is written.
//!
//! Model:   handles are 32 bytes, offsets and sizes 32 bits; a write is on the disk when it is answered.
//! Source:  RFC 1094 §2.2 and §2.3. Deviations: a count of data is bounded by what a datagram carries and not by 8,192, so that
//!          the variant with larger transfers can be written too; how long it may be is for the two ends to agree.
//! Units:   bytes.
//! Checked: `calls_and_replies_come_back`, `sizes_are_those_of_the_standard`; the fuzz target `files`.
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

use super::{
    Attributes, Call, Changes, Entry, Handle, Kind, NAME_BYTES_MAX, Reply, Room, Stable, Status,
};
use crate::files::xdr::{Decoder, Encoder, Malformed, Result};

const NULL: u32 = 0;
const GETATTR: u32 = 1;
const SETATTR: u32 = 2;
const LOOKUP: u32 = 4;
const READLINK: u32 = 5;
const READ: u32 = 6;
const WRITE: u32 = 8;
const CREATE: u32 = 9;
const REMOVE: u32 = 10;
const RENAME: u32 = 11;
const LINK: u32 = 12;
const SYMLINK: u32 = 13;
const MKDIR: u32 = 14;
const RMDIR: u32 = 15;
const READDIR: u32 = 16;
const STATFS: u32 = 17;

const HANDLE_BYTES: usize = 32;
/// What is not to be set (RFC 1094 §2.3.7).
const UNSET: u32 = u32::MAX;
/// The most data of a read or write: what a datagram carries.
const DATA_BYTES_MAX: u32 = 64 << 10;
/// The most entries that are taken of an answer.
const ENTRIES_MAX: usize = 4_096;
const BLOCK_BYTES: u64 = 4_096;
const BILLION: u64 = 1_000_000_000;

/// The number of the procedure.
pub(super) const fn number(call: &Call<'_>) -> Option<u32> {
    Some(match call {
        Call::Null => NULL,
        Call::GetAttributes { .. } => GETATTR,
        Call::SetAttributes { .. } => SETATTR,
        Call::Lookup { .. } => LOOKUP,
        Call::Read { .. } => READ,
        Call::Write { .. } => WRITE,
        Call::Create { .. } => CREATE,
        Call::Remove { .. } => REMOVE,
        Call::Rename { .. } => RENAME,
        Call::MakeDirectory { .. } => MKDIR,
        Call::RemoveDirectory { .. } => RMDIR,
        Call::ReadDirectory { plus: false, .. } => READDIR,
        Call::FileSystem { .. } => STATFS,
        Call::Unsupported { number } => *number,
        Call::Access { .. }
        | Call::ReadDirectory { plus: true, .. }
        | Call::Capabilities { .. }
        | Call::PathLimits { .. }
        | Call::Commit { .. } => return None,
    })
}

fn short(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn write_handle(handle: &Handle, to: &mut Encoder) {
    let mut bytes = [0; HANDLE_BYTES];
    for (to, from) in bytes.iter_mut().zip(handle.bytes()) {
        *to = *from;
    }
    to.fixed(&bytes);
}

fn read_handle(from: &mut Decoder<'_>) -> Result<Handle> {
    Handle::new(from.fixed(HANDLE_BYTES)?).ok_or(Malformed::Truncated)
}

fn write_changes(changes: &Changes, to: &mut Encoder) {
    to.u32(changes.mode.unwrap_or(UNSET));
    to.u32(UNSET);
    to.u32(UNSET);
    to.u32(changes.size_bytes.map_or(UNSET, short));
    // Neither time.
    for _ in 0..4 {
        to.u32(UNSET);
    }
}

fn read_changes(from: &mut Decoder<'_>) -> Result<Changes> {
    let set = |value: u32| (value != UNSET).then_some(value);
    let mode = set(from.u32()?);
    from.u64()?;
    let size_bytes = set(from.u32()?).map(u64::from);
    from.u64()?;
    from.u64()?;
    Ok(Changes { size_bytes, mode })
}

/// Writes the arguments; nothing for what the version does not have.
pub(super) fn write_call(call: &Call<'_>, to: &mut Encoder) {
    match call {
        Call::GetAttributes { file } | Call::FileSystem { root: file } => write_handle(file, to),
        Call::SetAttributes { file, changes } => {
            write_handle(file, to);
            write_changes(changes, to);
        }
        Call::Lookup { directory, name }
        | Call::Remove { directory, name }
        | Call::RemoveDirectory { directory, name } => {
            write_handle(directory, to);
            to.opaque(name);
        }
        Call::Read {
            file,
            offset,
            count,
        } => {
            write_handle(file, to);
            to.u32(short(*offset));
            to.u32(*count);
            // Total count: unused (RFC 1094 §2.2.7).
            to.u32(0);
        }
        Call::Write {
            file, offset, data, ..
        } => {
            write_handle(file, to);
            // Begin offset: unused (RFC 1094 §2.2.9).
            to.u32(0);
            to.u32(short(*offset));
            to.u32(0);
            to.opaque(data);
        }
        Call::Create {
            directory,
            name,
            changes,
            ..
        } => {
            write_handle(directory, to);
            to.opaque(name);
            write_changes(changes, to);
        }
        Call::MakeDirectory { directory, name } => {
            write_handle(directory, to);
            to.opaque(name);
            write_changes(&Changes::default(), to);
        }
        Call::Rename {
            from,
            name,
            to: directory,
            new,
        } => {
            write_handle(from, to);
            to.opaque(name);
            write_handle(directory, to);
            to.opaque(new);
        }
        Call::ReadDirectory {
            directory,
            place,
            count,
            ..
        } => {
            write_handle(directory, to);
            to.u32(short(*place));
            to.u32(*count);
        }
        _ => {}
    }
}

/// Reads the arguments; none where the version does not have the procedure.
pub(super) fn read_call<'a>(number: u32, from: &mut Decoder<'a>) -> Result<Option<Call<'a>>> {
    Ok(Some(match number {
        NULL => Call::Null,
        GETATTR => Call::GetAttributes {
            file: read_handle(from)?,
        },
        SETATTR => Call::SetAttributes {
            file: read_handle(from)?,
            changes: read_changes(from)?,
        },
        LOOKUP => Call::Lookup {
            directory: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
        },
        READ => {
            let (file, offset, count) = (read_handle(from)?, from.u32()?.into(), from.u32()?);
            // The standard's "totalcount", which nobody uses.
            from.u32()?;
            Call::Read {
                file,
                offset,
                count,
            }
        }
        WRITE => {
            let file = read_handle(from)?;
            from.u32()?;
            let offset = from.u32()?.into();
            from.u32()?;
            Call::Write {
                file,
                offset,
                stable: Stable::Sync,
                data: from.opaque(DATA_BYTES_MAX)?,
            }
        }
        CREATE => Call::Create {
            directory: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
            changes: read_changes(from)?,
            guarded: false,
        },
        REMOVE => Call::Remove {
            directory: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
        },
        RENAME => Call::Rename {
            from: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
            to: read_handle(from)?,
            new: from.opaque(NAME_BYTES_MAX)?,
        },
        MKDIR => {
            let directory = read_handle(from)?;
            let name = from.opaque(NAME_BYTES_MAX)?;
            // A directory's are those that the server gives.
            read_changes(from)?;
            Call::MakeDirectory { directory, name }
        }
        RMDIR => Call::RemoveDirectory {
            directory: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
        },
        READDIR => Call::ReadDirectory {
            directory: read_handle(from)?,
            place: from.u32()?.into(),
            verifier: 0,
            count: from.u32()?,
            plus: false,
        },
        STATFS => Call::FileSystem {
            root: read_handle(from)?,
        },
        READLINK | LINK | SYMLINK => Call::Unsupported { number },
        _ => return Ok(None),
    }))
}

fn write_attributes(of: &Attributes, to: &mut Encoder) {
    let (kind, bits) = match of.kind {
        Kind::Regular => (1, 0o100_000),
        Kind::Directory => (2, 0o040_000),
        // NFNON: not a file.
        Kind::Other => (0, 0),
    };
    let seconds = short(of.changed_ns / BILLION);
    let micros = short(of.changed_ns % BILLION / 1_000);
    for word in [
        kind,
        bits | of.mode & 0o7_777,
        of.links,
        0,
        0,
        short(of.size_bytes),
        BLOCK_BYTES as u32,
        0,
        short(of.size_bytes.div_ceil(512)),
        1,
        short(of.id),
        seconds,
        micros,
        seconds,
        micros,
        seconds,
        micros,
    ] {
        to.u32(word);
    }
}

/// This version has no way to leave them out: a server of it knows them.
fn write_known(of: Option<&Attributes>, to: &mut Encoder) {
    let unknown = Attributes {
        kind: Kind::Other,
        mode: 0,
        links: 0,
        size_bytes: 0,
        id: 0,
        changed_ns: 0,
    };
    write_attributes(of.unwrap_or(&unknown), to);
}

fn read_attributes(from: &mut Decoder<'_>) -> Result<Attributes> {
    let kind = match from.u32()? {
        1 => Kind::Regular,
        2 => Kind::Directory,
        _ => Kind::Other,
    };
    let mode = from.u32()? & 0o7_777;
    let links = from.u32()?;
    from.u64()?;
    let size_bytes = from.u32()?.into();
    from.u64()?;
    from.u64()?;
    let id = from.u32()?.into();
    from.u64()?;
    let seconds = u64::from(from.u32()?);
    let micros = u64::from(from.u32()?);
    from.u64()?;
    let changed_ns = seconds
        .saturating_mul(BILLION)
        .saturating_add(micros.saturating_mul(1_000));
    Ok(Attributes {
        kind,
        mode,
        links,
        size_bytes,
        id,
        changed_ns,
    })
}

/// Writes the results.
pub(super) fn write_reply(number: u32, reply: &Reply<'_>, to: &mut Encoder) {
    if number == NULL {
        return;
    }
    if let Reply::Failed(status) = reply {
        // Numbers of version 3 alone have no meaning here: the disk failed, or it is not allowed.
        to.u32(match status {
            Status::BadHandle => Status::Stale.number(),
            Status::Unsupported => Status::NotOwner.number(),
            other if other.number() >= 10_000 => Status::Disk.number(),
            other => other.number(),
        });
        return;
    }
    to.u32(0);
    match reply {
        Reply::Attributes(attributes) | Reply::Written { attributes, .. } => {
            write_known(attributes.as_ref(), to);
        }
        Reply::Found(handle, attributes) => {
            write_handle(handle, to);
            write_known(attributes.as_ref(), to);
        }
        Reply::Data {
            attributes, data, ..
        } => {
            write_known(attributes.as_ref(), to);
            to.opaque(data);
        }
        Reply::Entries { entries, end, .. } => {
            for entry in entries {
                to.bool(true);
                to.u32(short(entry.id));
                to.opaque(&entry.name);
                to.u32(short(entry.place));
            }
            to.bool(false);
            to.bool(*end);
        }
        Reply::Room(room) => {
            let blocks = |bytes: u64| short(bytes / BLOCK_BYTES);
            for word in [
                super::V2_BYTES_MAX,
                BLOCK_BYTES as u32,
                blocks(room.total_bytes),
                blocks(room.free_bytes),
                blocks(room.free_bytes),
            ] {
                to.u32(word);
            }
        }
        _ => {}
    }
}

/// Reads the results.
pub(super) fn read_reply<'a>(number: u32, from: &mut Decoder<'a>) -> Result<Reply<'a>> {
    if number == NULL {
        return Ok(Reply::Null);
    }
    match from.u32()? {
        0 => {}
        other => return Ok(Reply::Failed(Status::of(other))),
    }
    Ok(match number {
        GETATTR | SETATTR => Reply::Attributes(Some(read_attributes(from)?)),
        LOOKUP | CREATE | MKDIR => {
            let handle = read_handle(from)?;
            Reply::Found(handle, Some(read_attributes(from)?))
        }
        READ => {
            let attributes = Some(read_attributes(from)?);
            let data = from.opaque(DATA_BYTES_MAX)?;
            // It does not say where the file ends: a caller that knows its length knows.
            Reply::Data {
                attributes,
                data,
                end: false,
            }
        }
        WRITE => Reply::Written {
            attributes: Some(read_attributes(from)?),
            // It wrote all or failed.
            count: u32::MAX,
            stable: Stable::Sync,
            verifier: 0,
        },
        READDIR => {
            let mut entries = Vec::new();
            while from.bool()? {
                if entries.len() >= ENTRIES_MAX {
                    return Err(Malformed::TooLong {
                        length: ENTRIES_MAX as u32,
                        max: ENTRIES_MAX as u32,
                    });
                }
                entries.push(Entry {
                    id: from.u32()?.into(),
                    name: from.opaque(NAME_BYTES_MAX)?.to_vec(),
                    place: from.u32()?.into(),
                    known: None,
                });
            }
            Reply::Entries {
                entries,
                verifier: 0,
                end: from.bool()?,
            }
        }
        STATFS => {
            from.u32()?;
            let block = u64::from(from.u32()?);
            let total = u64::from(from.u32()?);
            let free = u64::from(from.u32()?);
            from.u32()?;
            Reply::Room(Room {
                total_bytes: total.saturating_mul(block),
                free_bytes: free.saturating_mul(block),
            })
        }
        _ => Reply::Done,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{attributes, calls, handle, replies};
    use super::*;

    #[test]
    fn sizes_are_those_of_the_standard() {
        let length = |call: &Call<'_>| {
            let mut to = Encoder::default();
            write_call(call, &mut to);
            to.finish().len()
        };
        let file = handle(32);
        let read = Call::Read {
            file,
            offset: 8_192,
            count: 8_192,
        };
        assert_eq!(length(&read), 44);
        let write = Call::Write {
            file,
            offset: 0,
            stable: Stable::Sync,
            data: &[7; 8_192],
        };
        assert_eq!(length(&write), 48 + 8_192);
        let mut to = Encoder::default();
        write_attributes(&attributes(Kind::Regular), &mut to);
        assert_eq!(to.finish().len(), 68);
    }

    #[test]
    fn calls_and_replies_come_back() {
        let mut seen = 0;
        for call in calls(32) {
            let Some(number) = number(&call) else {
                continue;
            };
            let mut to = Encoder::default();
            write_call(&call, &mut to);
            let bytes = to.finish();
            let mut from = Decoder::new(&bytes);
            let read = read_call(number, &mut from).unwrap().unwrap();
            // What the version cannot say is the same whatever was asked.
            let wanted = match call {
                Call::Write {
                    file, offset, data, ..
                } => Call::Write {
                    file,
                    offset,
                    stable: Stable::Sync,
                    data,
                },
                Call::Create {
                    directory,
                    name,
                    changes,
                    ..
                } => Call::Create {
                    directory,
                    name,
                    changes,
                    guarded: false,
                },
                Call::ReadDirectory {
                    directory,
                    place,
                    count,
                    plus,
                    ..
                } => Call::ReadDirectory {
                    directory,
                    place,
                    verifier: 0,
                    count,
                    plus,
                },
                other => other,
            };
            assert_eq!(read, wanted);
            assert!(from.rest().is_empty(), "{call:?}");
            seen += 1;
        }
        assert!(seen >= 13, "{seen}");
        for (call, reply) in replies(32, false) {
            let Some(number) = number(&call) else {
                continue;
            };
            let mut to = Encoder::default();
            write_reply(number, &reply, &mut to);
            let bytes = to.finish();
            let mut from = Decoder::new(&bytes);
            assert_eq!(read_reply(number, &mut from).unwrap(), reply, "{call:?}");
            assert!(from.rest().is_empty(), "{call:?}");
        }
    }
}
