//! NFS version 3 as it is written.
//!
//! Model:   handles have up to 64 bytes, offsets and sizes 64 bits; most results carry attributes beside what was asked, before and
//!          after for what was changed. A write says how safe its bytes are, and a verifier that changes when a server lost them.
//! Source:  RFC 1813 §2.6 and §3.3. Deviations: an exclusive create is taken as a guarded one, whose repetition the server's cache
//!          of replies answers; attributes before a change are not sent, and not looked at.
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
    Attributes, Call, Changes, Entry, HANDLE_BYTES_MAX, Handle, Kind, Limits, NAME_BYTES_MAX,
    Reply, Room, Stable, Status, V3_BYTES_MAX,
};
use crate::files::xdr::{Decoder, Encoder, Malformed, Result};

const NULL: u32 = 0;
const GETATTR: u32 = 1;
const SETATTR: u32 = 2;
const LOOKUP: u32 = 3;
const ACCESS: u32 = 4;
const READLINK: u32 = 5;
const READ: u32 = 6;
const WRITE: u32 = 7;
const CREATE: u32 = 8;
const MKDIR: u32 = 9;
const SYMLINK: u32 = 10;
const MKNOD: u32 = 11;
const REMOVE: u32 = 12;
const RMDIR: u32 = 13;
const RENAME: u32 = 14;
const LINK: u32 = 15;
const READDIR: u32 = 16;
const READDIRPLUS: u32 = 17;
const FSSTAT: u32 = 18;
const FSINFO: u32 = 19;
const PATHCONF: u32 = 20;
const COMMIT: u32 = 21;

/// The most entries that are taken of an answer.
const ENTRIES_MAX: usize = 16_384;
const BILLION: u64 = 1_000_000_000;
/// Files have one length for all, and times can be set (RFC 1813 §3.3.19).
const PROPERTIES: u32 = 0x18;

/// The number of the procedure.
pub(super) const fn number(call: &Call<'_>) -> Option<u32> {
    Some(match call {
        Call::Null => NULL,
        Call::GetAttributes { .. } => GETATTR,
        Call::SetAttributes { .. } => SETATTR,
        Call::Lookup { .. } => LOOKUP,
        Call::Access { .. } => ACCESS,
        Call::Read { .. } => READ,
        Call::Write { .. } => WRITE,
        Call::Create { .. } => CREATE,
        Call::MakeDirectory { .. } => MKDIR,
        Call::Remove { .. } => REMOVE,
        Call::RemoveDirectory { .. } => RMDIR,
        Call::Rename { .. } => RENAME,
        Call::ReadDirectory { plus: false, .. } => READDIR,
        Call::ReadDirectory { plus: true, .. } => READDIRPLUS,
        Call::FileSystem { .. } => FSSTAT,
        Call::Capabilities { .. } => FSINFO,
        Call::PathLimits { .. } => PATHCONF,
        Call::Commit { .. } => COMMIT,
        Call::Unsupported { number } => *number,
    })
}

fn read_handle(from: &mut Decoder<'_>) -> Result<Handle> {
    let bytes = from.opaque(HANDLE_BYTES_MAX as u32)?;
    Handle::new(bytes).ok_or(Malformed::Truncated)
}

fn write_changes(changes: &Changes, to: &mut Encoder) {
    to.bool(changes.mode.is_some());
    if let Some(mode) = changes.mode {
        to.u32(mode);
    }
    to.bool(false);
    to.bool(false);
    to.bool(changes.size_bytes.is_some());
    if let Some(size) = changes.size_bytes {
        to.u64(size);
    }
    // Neither time.
    to.u32(0);
    to.u32(0);
}

fn read_changes(from: &mut Decoder<'_>) -> Result<Changes> {
    let mut word = || {
        Ok(if from.bool()? {
            Some(from.u32()?)
        } else {
            None
        })
    };
    let mode = word()?;
    word()?;
    word()?;
    let size_bytes = if from.bool()? {
        Some(from.u64()?)
    } else {
        None
    };
    for _ in 0..2 {
        // 2 is a time of the client's.
        if from.u32()? == 2 {
            from.u64()?;
        }
    }
    Ok(Changes { size_bytes, mode })
}

fn stable(value: u32) -> Stable {
    // DATA_SYNC is taken as the stronger FILE_SYNC.
    match value {
        0 => Stable::Unstable,
        _ => Stable::Sync,
    }
}

const fn stable_number(stable: Stable) -> u32 {
    match stable {
        Stable::Unstable => 0,
        Stable::Sync => 2,
    }
}

/// Writes the arguments.
pub(super) fn write_call(call: &Call<'_>, to: &mut Encoder) {
    match call {
        Call::GetAttributes { file }
        | Call::FileSystem { root: file }
        | Call::Capabilities { root: file }
        | Call::PathLimits { file } => to.opaque(file.bytes()),
        Call::SetAttributes { file, changes } => {
            to.opaque(file.bytes());
            write_changes(changes, to);
            to.bool(false);
        }
        Call::Lookup { directory, name }
        | Call::Remove { directory, name }
        | Call::RemoveDirectory { directory, name } => {
            to.opaque(directory.bytes());
            to.opaque(name);
        }
        Call::Access { file, wanted } => {
            to.opaque(file.bytes());
            to.u32(*wanted);
        }
        Call::Read {
            file,
            offset,
            count,
        }
        | Call::Commit {
            file,
            offset,
            count,
        } => {
            to.opaque(file.bytes());
            to.u64(*offset);
            to.u32(*count);
        }
        Call::Write {
            file,
            offset,
            stable,
            data,
        } => {
            to.opaque(file.bytes());
            to.u64(*offset);
            to.u32(u32::try_from(data.len()).unwrap_or(u32::MAX));
            to.u32(stable_number(*stable));
            to.opaque(data);
        }
        Call::Create {
            directory,
            name,
            changes,
            guarded,
        } => {
            to.opaque(directory.bytes());
            to.opaque(name);
            to.u32((*guarded).into());
            write_changes(changes, to);
        }
        Call::MakeDirectory { directory, name } => {
            to.opaque(directory.bytes());
            to.opaque(name);
            write_changes(&Changes::default(), to);
        }
        Call::Rename {
            from,
            name,
            to: directory,
            new,
        } => {
            to.opaque(from.bytes());
            to.opaque(name);
            to.opaque(directory.bytes());
            to.opaque(new);
        }
        Call::ReadDirectory {
            directory,
            place,
            verifier,
            count,
            plus,
        } => {
            to.opaque(directory.bytes());
            to.u64(*place);
            to.u64(*verifier);
            if *plus {
                to.u32(*count);
            }
            to.u32(*count);
        }
        Call::Null | Call::Unsupported { .. } => {}
    }
}

/// Reads the arguments; none where the version does not have the procedure.
pub(super) fn read_call<'a>(number: u32, from: &mut Decoder<'a>) -> Result<Option<Call<'a>>> {
    Ok(Some(match number {
        NULL => Call::Null,
        GETATTR => Call::GetAttributes {
            file: read_handle(from)?,
        },
        SETATTR => {
            let file = read_handle(from)?;
            let changes = read_changes(from)?;
            if from.bool()? {
                from.u64()?;
            }
            Call::SetAttributes { file, changes }
        }
        LOOKUP => Call::Lookup {
            directory: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
        },
        ACCESS => Call::Access {
            file: read_handle(from)?,
            wanted: from.u32()?,
        },
        READ => Call::Read {
            file: read_handle(from)?,
            offset: from.u64()?,
            count: from.u32()?,
        },
        WRITE => {
            let file = read_handle(from)?;
            let offset = from.u64()?;
            from.u32()?;
            Call::Write {
                file,
                offset,
                stable: stable(from.u32()?),
                data: from.opaque(V3_BYTES_MAX)?,
            }
        }
        CREATE => {
            let directory = read_handle(from)?;
            let name = from.opaque(NAME_BYTES_MAX)?;
            let (changes, guarded) = match from.u32()? {
                2 => {
                    from.u64()?;
                    (Changes::default(), true)
                }
                how => (read_changes(from)?, how == 1),
            };
            Call::Create {
                directory,
                name,
                changes,
                guarded,
            }
        }
        MKDIR => {
            let directory = read_handle(from)?;
            let name = from.opaque(NAME_BYTES_MAX)?;
            read_changes(from)?;
            Call::MakeDirectory { directory, name }
        }
        REMOVE => Call::Remove {
            directory: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
        },
        RMDIR => Call::RemoveDirectory {
            directory: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
        },
        RENAME => Call::Rename {
            from: read_handle(from)?,
            name: from.opaque(NAME_BYTES_MAX)?,
            to: read_handle(from)?,
            new: from.opaque(NAME_BYTES_MAX)?,
        },
        READDIR | READDIRPLUS => {
            let plus = number == READDIRPLUS;
            let directory = read_handle(from)?;
            let place = from.u64()?;
            let verifier = from.u64()?;
            if plus {
                from.u32()?;
            }
            Call::ReadDirectory {
                directory,
                place,
                verifier,
                count: from.u32()?,
                plus,
            }
        }
        FSSTAT => Call::FileSystem {
            root: read_handle(from)?,
        },
        FSINFO => Call::Capabilities {
            root: read_handle(from)?,
        },
        PATHCONF => Call::PathLimits {
            file: read_handle(from)?,
        },
        COMMIT => Call::Commit {
            file: read_handle(from)?,
            offset: from.u64()?,
            count: from.u32()?,
        },
        READLINK | SYMLINK | MKNOD | LINK => Call::Unsupported { number },
        _ => return Ok(None),
    }))
}

fn write_attributes(of: &Attributes, to: &mut Encoder) {
    to.u32(match of.kind {
        Kind::Regular => 1,
        Kind::Directory => 2,
        // A socket, which no client looks into.
        Kind::Other => 6,
    });
    for word in [of.mode & 0o7_777, of.links, 0, 0] {
        to.u32(word);
    }
    for word in [of.size_bytes, of.size_bytes, 0, 1, of.id] {
        to.u64(word);
    }
    for _ in 0..3 {
        to.u32(u32::try_from(of.changed_ns / BILLION).unwrap_or(u32::MAX));
        to.u32((of.changed_ns % BILLION) as u32);
    }
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
    let size_bytes = from.u64()?;
    // What it takes on the disk, its device, its file system.
    for _ in 0..3 {
        from.u64()?;
    }
    let id = from.u64()?;
    from.u64()?;
    let seconds = u64::from(from.u32()?);
    let nanos = u64::from(from.u32()?);
    from.u64()?;
    Ok(Attributes {
        kind,
        mode,
        links,
        size_bytes,
        id,
        changed_ns: seconds.saturating_mul(BILLION).saturating_add(nanos),
    })
}

fn write_after(of: Option<&Attributes>, to: &mut Encoder) {
    to.bool(of.is_some());
    if let Some(of) = of {
        write_attributes(of, to);
    }
}

fn read_after(from: &mut Decoder<'_>) -> Result<Option<Attributes>> {
    Ok(if from.bool()? {
        Some(read_attributes(from)?)
    } else {
        None
    })
}

/// Attributes before a change, which are never sent, and after it.
fn write_change(after: Option<&Attributes>, to: &mut Encoder) {
    to.bool(false);
    write_after(after, to);
}

fn read_change(from: &mut Decoder<'_>) -> Result<Option<Attributes>> {
    if from.bool()? {
        // Size, and two times.
        for _ in 0..3 {
            from.u64()?;
        }
    }
    read_after(from)
}

/// Behind the status of a refusal: attributes that are not said.
fn write_refusal(number: u32, to: &mut Encoder) {
    match number {
        GETATTR => {}
        SETATTR | WRITE | CREATE | MKDIR | SYMLINK | MKNOD | REMOVE | RMDIR | COMMIT => {
            write_change(None, to);
        }
        RENAME => {
            write_change(None, to);
            write_change(None, to);
        }
        LINK => {
            write_after(None, to);
            write_change(None, to);
        }
        _ => write_after(None, to),
    }
}

/// Writes the results.
pub(super) fn write_reply(number: u32, reply: &Reply<'_>, to: &mut Encoder) {
    if number == NULL {
        return;
    }
    if let Reply::Failed(status) = reply {
        to.u32(status.number());
        write_refusal(number, to);
        return;
    }
    to.u32(0);
    match reply {
        Reply::Attributes(attributes) if number == SETATTR => {
            write_change(attributes.as_ref(), to);
        }
        Reply::Attributes(attributes) => {
            if let Some(attributes) = attributes {
                write_attributes(attributes, to);
            }
        }
        Reply::Found(handle, attributes) if number == LOOKUP => {
            to.opaque(handle.bytes());
            write_after(attributes.as_ref(), to);
            write_after(None, to);
        }
        Reply::Found(handle, attributes) => {
            to.bool(true);
            to.opaque(handle.bytes());
            write_after(attributes.as_ref(), to);
            write_change(None, to);
        }
        Reply::Access(may) => {
            write_after(None, to);
            to.u32(*may);
        }
        Reply::Data {
            attributes,
            data,
            end,
        } => {
            write_after(attributes.as_ref(), to);
            to.u32(u32::try_from(data.len()).unwrap_or(u32::MAX));
            to.bool(*end);
            to.opaque(data);
        }
        Reply::Written {
            attributes,
            count,
            stable,
            verifier,
        } => {
            write_change(attributes.as_ref(), to);
            to.u32(*count);
            to.u32(stable_number(*stable));
            to.u64(*verifier);
        }
        Reply::Entries {
            entries,
            verifier,
            end,
        } => {
            write_after(None, to);
            to.u64(*verifier);
            for entry in entries {
                write_entry(entry, number == READDIRPLUS, to);
            }
            to.bool(false);
            to.bool(*end);
        }
        Reply::Room(room) => {
            write_after(None, to);
            for word in [room.total_bytes, room.free_bytes, room.free_bytes] {
                to.u64(word);
            }
            // Files: as many as may be.
            for _ in 0..3 {
                to.u64(1 << 32);
            }
            to.u32(0);
        }
        Reply::Limits(limits) => write_limits(limits, to),
        Reply::PathLimits => {
            write_after(None, to);
            to.u32(1);
            to.u32(NAME_BYTES_MAX);
            // Long names are refused, owners stay, capitals count.
            for truth in [true, true, false, true] {
                to.bool(truth);
            }
        }
        Reply::Committed { verifier } => {
            write_change(None, to);
            to.u64(*verifier);
        }
        Reply::Done => {
            write_change(None, to);
            if number == RENAME {
                write_change(None, to);
            }
        }
        Reply::Null | Reply::Failed(_) => {}
    }
}

fn write_entry(entry: &Entry, plus: bool, to: &mut Encoder) {
    to.bool(true);
    to.u64(entry.id);
    to.opaque(&entry.name);
    to.u64(entry.place);
    if plus {
        write_after(entry.known.as_ref().map(|(_, known)| known), to);
        to.bool(entry.known.is_some());
        if let Some((handle, _)) = &entry.known {
            to.opaque(handle.bytes());
        }
    }
}

fn write_limits(limits: &Limits, to: &mut Encoder) {
    write_after(None, to);
    // The most, the best, and what they should be a multiple of; directories last.
    for word in [
        limits.read_max,
        limits.read_max,
        4_096,
        limits.write_max,
        limits.write_max,
        4_096,
        65_536,
    ] {
        to.u32(word);
    }
    to.u64(i64::MAX as u64);
    // Times are kept to the nanosecond.
    to.u32(0);
    to.u32(1);
    to.u32(PROPERTIES);
}

/// Reads the results.
pub(super) fn read_reply<'a>(number: u32, from: &mut Decoder<'a>) -> Result<Reply<'a>> {
    if number == NULL {
        return Ok(Reply::Null);
    }
    let status = from.u32()?;
    if status != 0 {
        // The attributes behind it are of no use to the caller.
        return Ok(Reply::Failed(Status::of(status)));
    }
    Ok(match number {
        GETATTR => Reply::Attributes(Some(read_attributes(from)?)),
        SETATTR => Reply::Attributes(read_change(from)?),
        LOOKUP => {
            let handle = read_handle(from)?;
            let attributes = read_after(from)?;
            read_after(from)?;
            Reply::Found(handle, attributes)
        }
        ACCESS => {
            read_after(from)?;
            Reply::Access(from.u32()?)
        }
        READ => {
            let attributes = read_after(from)?;
            from.u32()?;
            let end = from.bool()?;
            Reply::Data {
                attributes,
                data: from.opaque(V3_BYTES_MAX)?,
                end,
            }
        }
        WRITE => Reply::Written {
            attributes: read_change(from)?,
            count: from.u32()?,
            stable: stable(from.u32()?),
            verifier: from.u64()?,
        },
        CREATE | MKDIR => {
            if !from.bool()? {
                return Err(Malformed::Value {
                    what: "a handle of what was made",
                    value: 0,
                });
            }
            let handle = read_handle(from)?;
            let attributes = read_after(from)?;
            read_change(from)?;
            Reply::Found(handle, attributes)
        }
        READDIR | READDIRPLUS => read_entries(number == READDIRPLUS, from)?,
        FSSTAT => {
            read_after(from)?;
            let room = Room {
                total_bytes: from.u64()?,
                free_bytes: from.u64()?,
            };
            for _ in 0..4 {
                from.u64()?;
            }
            from.u32()?;
            Reply::Room(room)
        }
        FSINFO => {
            read_after(from)?;
            let read_max = from.u32()?;
            from.u64()?;
            let write_max = from.u32()?;
            from.fixed(32)?;
            Reply::Limits(Limits {
                read_max,
                write_max,
            })
        }
        PATHCONF => {
            read_after(from)?;
            from.fixed(24)?;
            Reply::PathLimits
        }
        COMMIT => {
            read_change(from)?;
            Reply::Committed {
                verifier: from.u64()?,
            }
        }
        RENAME => {
            read_change(from)?;
            read_change(from)?;
            Reply::Done
        }
        _ => {
            read_change(from)?;
            Reply::Done
        }
    })
}

fn read_entries<'a>(plus: bool, from: &mut Decoder<'a>) -> Result<Reply<'a>> {
    read_after(from)?;
    let verifier = from.u64()?;
    let mut entries = Vec::new();
    while from.bool()? {
        if entries.len() >= ENTRIES_MAX {
            return Err(Malformed::TooLong {
                length: ENTRIES_MAX as u32,
                max: ENTRIES_MAX as u32,
            });
        }
        let (id, name) = (from.u64()?, from.opaque(NAME_BYTES_MAX)?.to_vec());
        let place = from.u64()?;
        let mut known = None;
        if plus {
            let attributes = read_after(from)?;
            let handle = if from.bool()? {
                Some(read_handle(from)?)
            } else {
                None
            };
            known = handle.zip(attributes);
        }
        entries.push(Entry {
            id,
            name,
            place,
            known,
        });
    }
    Ok(Reply::Entries {
        entries,
        verifier,
        end: from.bool()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{attributes, calls, handle, replies};
    use super::*;

    #[test]
    fn sizes_are_those_of_the_standard() {
        let mut to = Encoder::default();
        write_attributes(&attributes(Kind::Directory), &mut to);
        assert_eq!(to.finish().len(), 84);
        let data = [1; 100];
        let reply = Reply::Data {
            attributes: Some(attributes(Kind::Regular)),
            data: &data,
            end: true,
        };
        let mut to = Encoder::default();
        write_reply(READ, &reply, &mut to);
        assert_eq!(to.finish().len(), 4 + 88 + 12 + 100);
        let mut to = Encoder::default();
        let call = Call::Write {
            file: handle(32),
            offset: 0,
            stable: Stable::Sync,
            data: &data,
        };
        write_call(&call, &mut to);
        assert_eq!(to.finish().len(), 4 + 32 + 20 + 100);
    }

    #[test]
    fn calls_and_replies_come_back() {
        for length in [0, 31, 32, 64] {
            for call in calls(length) {
                let number = number(&call).unwrap();
                let mut to = Encoder::default();
                write_call(&call, &mut to);
                let bytes = to.finish();
                let mut from = Decoder::new(&bytes);
                assert_eq!(read_call(number, &mut from).unwrap(), Some(call));
                assert!(from.rest().is_empty(), "{call:?}");
            }
            for (call, reply) in replies(length, true) {
                let number = number(&call).unwrap();
                let mut to = Encoder::default();
                write_reply(number, &reply, &mut to);
                let bytes = to.finish();
                let mut from = Decoder::new(&bytes);
                assert_eq!(read_reply(number, &mut from).unwrap(), reply, "{call:?}");
                let refused = matches!(reply, Reply::Failed(_));
                assert!(refused || from.rest().is_empty(), "{call:?}");
            }
        }
    }
}
