//! What a server answers, from its store.
//!
//! Model:   a handle is the server's start and the file's number, in 32 bytes for both versions: one of another start is stale.
//!          Owners, groups and rights of callers are not looked at: who has the token may what the server may.
//! Checked: `server/tests.rs`.

use sonde_units::Instant;

use super::Terms;
use crate::files::disk::Disk;
use crate::files::nfs::{
    Call, Entry, Handle, Limits, MountCall, MountReply, Reply, Stable, Status, Version,
};
use crate::files::store::{File, Named, Result, Store};

const HANDLE_BYTES: usize = 32;
/// The least that a name takes in an answer.
const ENTRY_BYTES_MIN: usize = 16;
/// Around the entries of an answer.
const ENTRIES_BESIDE: usize = 128;

#[derive(Debug)]
pub(super) struct Answers<S> {
    pub(super) store: S,
    boot: u64,
    transfer_max: u32,
    is_async: bool,
    export: Vec<u8>,
}

impl<S: Store> Answers<S> {
    pub(super) fn new(store: S, terms: &Terms) -> Self {
        Self {
            store,
            boot: terms.boot,
            transfer_max: terms.transfer_max,
            is_async: terms.is_async,
            export: terms.export.clone(),
        }
    }

    fn handle(&self, file: File) -> Handle {
        let mut bytes = [0; HANDLE_BYTES];
        bytes[..8].copy_from_slice(&self.boot.to_be_bytes());
        bytes[8..16].copy_from_slice(&file.0.to_be_bytes());
        Handle::new(&bytes).expect("32 bytes are a handle")
    }

    fn file(&self, handle: &Handle) -> Result<File> {
        let bytes: [u8; HANDLE_BYTES] = handle.bytes().try_into().map_err(|_| Status::BadHandle)?;
        let word = |at: usize| {
            let word: [u8; 8] = bytes[at..at + 8].try_into().expect("8 of 32 bytes");
            u64::from_be_bytes(word)
        };
        if bytes[16..].iter().any(|byte| *byte != 0) {
            return Err(Status::BadHandle);
        }
        if word(0) != self.boot {
            return Err(Status::Stale);
        }
        Ok(File(word(8)))
    }

    pub(super) fn mount<'a>(&'a self, call: MountCall<'_>) -> MountReply<'a> {
        match call {
            MountCall::Null | MountCall::Unmount => MountReply::Null,
            MountCall::Dump => MountReply::Nobody,
            MountCall::Exports => MountReply::Exported(&self.export),
            MountCall::Mount { path } => {
                let path = path.strip_suffix(b"/").unwrap_or(path);
                if path == self.export {
                    MountReply::Mounted(self.handle(File::ROOT))
                } else {
                    MountReply::Failed(Status::Absent)
                }
            }
        }
    }

    /// When the disk is done with a call.
    pub(super) fn wait(
        &mut self,
        disk: &mut Disk,
        at: Instant,
        call: &Call<'_>,
        is_async: bool,
    ) -> Instant {
        match call {
            Call::Read {
                file,
                offset,
                count,
            } => {
                let Ok(file) = self.file(file) else {
                    return at;
                };
                let size = self.store.attributes(file).map_or(0, |of| of.size_bytes);
                let count = u64::from((*count).min(self.transfer_max));
                disk.on_read(at, file, *offset, count.min(size.saturating_sub(*offset)))
            }
            Call::Write {
                file,
                offset,
                stable,
                data,
            } => {
                let Ok(file) = self.file(file) else {
                    return at;
                };
                let is_sync = *stable == Stable::Sync && !is_async;
                disk.on_write(at, file, *offset, data.len() as u64, is_sync)
            }
            Call::Commit { file, .. } => match self.file(file) {
                Ok(file) => disk.on_commit(at, file),
                Err(_) => at,
            },
            Call::Remove { directory, name } => {
                let directory = self.file(directory);
                let removed = directory.and_then(|of| self.store.lookup(of, name));
                if let Ok(file) = removed {
                    disk.on_remove(file);
                }
                at
            }
            _ => at,
        }
    }

    pub(super) fn nfs(&mut self, version: Version, call: &Call<'_>) -> Reply<'_> {
        // Data is borrowed from the store: it goes apart from what follows.
        if let Call::Read {
            file,
            offset,
            count,
        } = call
        {
            let count = (*count).min(self.transfer_max);
            let known = self
                .file(file)
                .and_then(|file| Ok((file, self.store.attributes(file)?)));
            return match known {
                Err(status) => Reply::Failed(status),
                Ok((file, attributes)) => match self.store.read(file, *offset, count) {
                    Ok((data, end)) => Reply::Data {
                        attributes: Some(attributes),
                        data,
                        end,
                    },
                    Err(status) => Reply::Failed(status),
                },
            };
        }
        self.other(version, call).unwrap_or_else(Reply::Failed)
    }

    fn found(&mut self, file: File) -> Result<Reply<'static>> {
        let attributes = self.store.attributes(file)?;
        Ok(Reply::Found(self.handle(file), Some(attributes)))
    }

    fn other(&mut self, version: Version, call: &Call<'_>) -> Result<Reply<'static>> {
        Ok(match call {
            Call::Null | Call::Read { .. } => Reply::Null,
            Call::GetAttributes { file } => {
                let file = self.file(file)?;
                Reply::Attributes(Some(self.store.attributes(file)?))
            }
            Call::SetAttributes { file, changes } => {
                let file = self.file(file)?;
                self.store.change(file, changes)?;
                Reply::Attributes(Some(self.store.attributes(file)?))
            }
            Call::Lookup { directory, name } => {
                let directory = self.file(directory)?;
                let file = self.store.lookup(directory, name)?;
                self.found(file)?
            }
            Call::Access { file, wanted } => {
                self.file(file)?;
                Reply::Access(wanted & 0x3f)
            }
            Call::Write {
                file,
                offset,
                stable,
                data,
            } => self.write(version, file, *offset, *stable, data)?,
            Call::Create {
                directory,
                name,
                changes,
                guarded,
            } => {
                let directory = self.file(directory)?;
                let file = self.store.create(directory, name, *guarded)?;
                // Of a file that was there only its length is changed: RFC 1813 §3.3.8.
                self.store.change(file, changes)?;
                self.found(file)?
            }
            Call::MakeDirectory { directory, name } => {
                let directory = self.file(directory)?;
                let file = self.store.make_directory(directory, name)?;
                self.found(file)?
            }
            Call::Remove { directory, name } => {
                let directory = self.file(directory)?;
                self.store.remove(directory, name)?;
                Reply::Done
            }
            Call::RemoveDirectory { directory, name } => {
                let directory = self.file(directory)?;
                self.store.remove_directory(directory, name)?;
                Reply::Done
            }
            Call::Rename {
                from,
                name,
                to,
                new,
            } => {
                let (from, to) = (self.file(from)?, self.file(to)?);
                self.store.rename(from, name, to, new)?;
                Reply::Done
            }
            Call::ReadDirectory {
                directory,
                place,
                count,
                plus,
                ..
            } => self.entries(directory, *place, *count, *plus)?,
            Call::FileSystem { root } => {
                self.file(root)?;
                Reply::Room(self.store.room())
            }
            Call::Capabilities { root } => {
                self.file(root)?;
                Reply::Limits(Limits {
                    read_max: self.transfer_max,
                    write_max: self.transfer_max,
                })
            }
            Call::PathLimits { file } => {
                self.file(file)?;
                Reply::PathLimits
            }
            Call::Commit { file, .. } => {
                let file = self.file(file)?;
                self.store.commit(file)?;
                Reply::Committed {
                    verifier: self.boot,
                }
            }
            Call::Unsupported { .. } => return Err(Status::Unsupported),
        })
    }

    fn write(
        &mut self,
        version: Version,
        file: &Handle,
        offset: u64,
        stable: Stable,
        data: &[u8],
    ) -> Result<Reply<'static>> {
        let file = self.file(file)?;
        let most = self.transfer_max as usize;
        let data = match version {
            // It has no way to say that less was written.
            Version::V2 if data.len() > most => return Err(Status::TooLarge),
            _ => &data[..data.len().min(most)],
        };
        let asked = if self.is_async {
            Stable::Unstable
        } else {
            stable
        };
        self.store.write(file, offset, data, asked)?;
        Ok(Reply::Written {
            attributes: Some(self.store.attributes(file)?),
            count: data.len() as u32,
            stable,
            verifier: self.boot,
        })
    }

    fn entries(
        &mut self,
        directory: &Handle,
        place: u64,
        count: u32,
        plus: bool,
    ) -> Result<Reply<'static>> {
        let directory = self.file(directory)?;
        let room = (count.min(self.transfer_max) as usize).saturating_sub(ENTRIES_BESIDE);
        let most = room / ENTRY_BYTES_MIN + 1;
        let named = self.store.list(directory, place, most)?;
        let is_all = named.len() < most;
        let mut entries: Vec<Entry> = Vec::with_capacity(named.len());
        let mut used = 0;
        let all = named.len();
        for Named { file, name, place } in named {
            used += ENTRY_BYTES_MIN + 8 + name.len().next_multiple_of(4);
            if plus {
                used += 4 + 84 + 8 + HANDLE_BYTES;
            }
            if used > room && !entries.is_empty() {
                break;
            }
            let attributes = plus.then(|| self.store.attributes(file).ok()).flatten();
            entries.push(Entry {
                id: file.0,
                name,
                place,
                known: attributes.map(|known| (self.handle(file), known)),
            });
        }
        let end = is_all && entries.len() == all;
        Ok(Reply::Entries {
            entries,
            verifier: 0,
            end,
        })
    }
}
