//! MOUNT: how a client gets the handle of what is exported.
//!
//! Model:   MNT answers a path with a handle; EXPORT lists the paths. Who has mounted what is not kept: DUMP is empty.
//! Source:  RFC 1094 appendix A (version 1), RFC 1813 §5 (version 3). Deviations: none.
//! Checked: `calls_and_replies_come_back`; the fuzz target `files`.
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

use super::{HANDLE_BYTES_MAX, Handle, MOUNT, PATH_BYTES_MAX, Status, Version};
use crate::files::rpc::Procedure;
use crate::files::xdr::{Decoder, Encoder, Malformed, Result};

const NULL: u32 = 0;
const MNT: u32 = 1;
const DUMP: u32 = 2;
const UMNT: u32 = 3;
const UMNTALL: u32 = 4;
const EXPORT: u32 = 5;

const V2_HANDLE_BYTES: usize = 32;
/// The most flavours of authentication that a server may name.
const FLAVOURS_MAX: u32 = 64;
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountCall<'a> {
    /// Nothing.
    Null,
    /// The handle of a path.
    Mount {
        /// Which.
        path: &'a [u8],
    },
    /// Who has mounted what.
    Dump,
    /// To be forgotten, with one path or all.
    Unmount,
    /// What is exported.
    Exports,
}

/// What a server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountReply<'a> {
    /// Of what has no results.
    Null,
    /// Of MNT.
    Mounted(Handle),
    /// Of MNT: why not.
    Failed(Status),
    /// Of DUMP: nobody.
    Nobody,
    /// Of EXPORT: the one path.
    Exported(&'a [u8]),
}

impl MountCall<'_> {
    /// The procedure that it is beside a version of NFS.
    pub const fn procedure(&self, version: Version) -> Procedure {
        Procedure {
            program: MOUNT,
            version: version.mount(),
            number: match self {
                Self::Null => NULL,
                Self::Mount { .. } => MNT,
                Self::Dump => DUMP,
                Self::Unmount => UMNTALL,
                Self::Exports => EXPORT,
            },
        }
    }

    /// Writes its arguments.
    pub fn write(&self, to: &mut Encoder) {
        if let Self::Mount { path } = self {
            to.opaque(path);
        }
    }
}

impl<'a> MountCall<'a> {
    /// Reads the arguments of a procedure; none where the program does not have it.
    ///
    /// # Errors
    /// They are not its arguments.
    pub fn read(number: u32, from: &mut Decoder<'a>) -> Result<Option<Self>> {
        Ok(Some(match number {
            NULL => Self::Null,
            MNT => Self::Mount {
                path: from.opaque(PATH_BYTES_MAX)?,
            },
            DUMP => Self::Dump,
            UMNT | UMNTALL => Self::Unmount,
            EXPORT => Self::Exports,
            _ => return Ok(None),
        }))
    }
}

impl MountReply<'_> {
    /// Writes the results.
    pub fn write(&self, version: Version, to: &mut Encoder) {
        match self {
            Self::Null => {}
            Self::Mounted(handle) => {
                to.u32(0);
                match version {
                    Version::V2 => {
                        let mut bytes = [0; V2_HANDLE_BYTES];
                        for (to, from) in bytes.iter_mut().zip(handle.bytes()) {
                            *to = *from;
                        }
                        to.fixed(&bytes);
                    }
                    Version::V3 => {
                        to.opaque(handle.bytes());
                        to.u32(2);
                        to.u32(AUTH_SYS);
                        to.u32(AUTH_NONE);
                    }
                }
            }
            Self::Failed(status) => to.u32(status.number()),
            Self::Nobody => to.bool(false),
            Self::Exported(path) => {
                to.bool(true);
                to.opaque(path);
                // To everybody, and nothing else.
                to.bool(false);
                to.bool(false);
            }
        }
    }

    /// Reads the results of MNT.
    ///
    /// # Errors
    /// They are not its results.
    pub fn read_mounted(
        version: Version,
        from: &mut Decoder<'_>,
    ) -> Result<std::result::Result<Handle, Status>> {
        let status = from.u32()?;
        if status != 0 {
            return Ok(Err(Status::of(status)));
        }
        let bytes = match version {
            Version::V2 => from.fixed(V2_HANDLE_BYTES)?,
            Version::V3 => {
                let bytes = from.opaque(HANDLE_BYTES_MAX as u32)?;
                let flavours = from.u32()?;
                if flavours > FLAVOURS_MAX {
                    return Err(Malformed::TooLong {
                        length: flavours,
                        max: FLAVOURS_MAX,
                    });
                }
                for _ in 0..flavours {
                    from.u32()?;
                }
                bytes
            }
        };
        Handle::new(bytes).map(Ok).ok_or(Malformed::Truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::handle;
    use super::*;

    #[test]
    fn calls_and_replies_come_back() {
        for version in [Version::V2, Version::V3] {
            for call in [
                MountCall::Null,
                MountCall::Mount { path: b"/export" },
                MountCall::Dump,
                MountCall::Unmount,
                MountCall::Exports,
            ] {
                let mut to = Encoder::default();
                call.write(&mut to);
                let bytes = to.finish();
                let number = call.procedure(version).number;
                let read = MountCall::read(number, &mut Decoder::new(&bytes));
                assert_eq!(read, Ok(Some(call)));
            }
            for reply in [
                MountReply::Mounted(handle(32)),
                MountReply::Failed(Status::Absent),
            ] {
                let mut to = Encoder::default();
                reply.write(version, &mut to);
                let bytes = to.finish();
                let read = MountReply::read_mounted(version, &mut Decoder::new(&bytes));
                let wanted = match reply {
                    MountReply::Mounted(handle) => Ok(handle),
                    _ => Err(Status::Absent),
                };
                assert_eq!(read, Ok(wanted));
            }
        }
    }
}
