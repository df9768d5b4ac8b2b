//! The calls of a job, and what follows from their replies.
//!
//! Checked: `session/tests.rs`.

use std::collections::VecDeque;

use sonde_measure::files::Meta;

use super::{Done, Failure, Job, NEW, One, Sink, Terms};
use crate::files::nfs::{Call, Changes, Reply, Stable, Version};
use crate::files::pattern;

/// Bytes of the answer to a READDIR.
const ENTRIES_BYTES: u32 = 8_192;
/// A listing that has more has no end.
const NAMES_MAX: usize = 1 << 20;
const LISTING_CALLS_MAX: u64 = 1 << 24;

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    offset: u64,
    count: u32,
}

/// A call of a job that is outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The one call of its job.
    Single,
    /// One of many: its number.
    Numbered(u64),
    /// Attributes before a transfer.
    Fresh(Piece),
    /// A transfer.
    Piece(Piece),
    /// What was written is to be safe.
    Commit,
    /// A listing goes on behind a place.
    Behind(u64, u64),
}

impl Step {
    /// Whether what it took is a sample of its job.
    pub(super) const fn is_sampled(&self) -> bool {
        !matches!(self, Self::Fresh(_) | Self::Commit | Self::Single)
    }

    /// The name that it is about, where its job makes names.
    pub(super) fn name(&self, job: &Job) -> Vec<u8> {
        match (self, job) {
            (Self::Numbered(at), Job::Meta { first, names, .. }) => {
                let number = first + at % (*names).max(1);
                format!("f{number:09}").into_bytes()
            }
            _ => Vec::new(),
        }
    }

    /// What it calls, in words.
    pub(super) fn what(&self, job: &Job) -> &'static str {
        let terms = Terms {
            version: Version::V3,
            transfer: 1,
            outstanding: 1,
            stable: Stable::Sync,
            keeps_attributes: true,
        };
        super::what(&self.call(job, &Transfer::new(), &terms, b""))
    }

    /// The call that it is.
    pub(super) fn call<'a>(
        &self,
        job: &'a Job,
        transfer: &Transfer,
        terms: &Terms,
        name: &'a [u8],
    ) -> Call<'a> {
        match (job, self) {
            (Job::Read { file, .. } | Job::Write { file, .. }, Self::Fresh(_)) => {
                Call::GetAttributes { file: *file }
            }
            (Job::Read { file, .. }, Self::Piece(piece)) => Call::Read {
                file: *file,
                offset: piece.offset,
                count: piece.count,
            },
            (Job::Write { file, content, .. }, Self::Piece(piece)) => {
                let count = piece.count as usize;
                let data = match content {
                    Some(content) => &content[piece.offset as usize..][..count],
                    None => pattern::piece(piece.offset, count),
                };
                Call::Write {
                    file: *file,
                    offset: piece.offset,
                    stable: terms.stable,
                    data,
                }
            }
            (Job::Write { file, .. }, _) => Call::Commit {
                file: *file,
                offset: 0,
                count: 0,
            },
            (Job::One(one), _) => one.call(),
            (
                Job::Meta {
                    call, directory, ..
                },
                _,
            ) => match call {
                Meta::Getattr => Call::GetAttributes { file: *directory },
                Meta::Lookup => Call::Lookup {
                    directory: *directory,
                    name,
                },
                Meta::Create => Call::Create {
                    directory: *directory,
                    name,
                    changes: NEW,
                    guarded: true,
                },
                Meta::Remove => Call::Remove {
                    directory: *directory,
                    name,
                },
                Meta::Readdir => self.listing(directory, transfer),
            },
            (Job::List { directory }, _) => self.listing(directory, transfer),
            (Job::Null { .. } | Job::Mount { .. } | Job::Read { .. }, _) => Call::Null,
        }
    }

    fn listing(&self, directory: &crate::files::nfs::Handle, transfer: &Transfer) -> Call<'static> {
        let place = match self {
            Self::Behind(_, place) => *place,
            _ => 0,
        };
        Call::ReadDirectory {
            directory: *directory,
            place,
            verifier: transfer.places,
            count: ENTRIES_BYTES,
            plus: false,
        }
    }
}

impl One {
    fn call(&self) -> Call<'_> {
        match self {
            Self::Lookup(directory, name) => Call::Lookup {
                directory: *directory,
                name,
            },
            Self::Create(directory, name) => Call::Create {
                directory: *directory,
                name,
                changes: NEW,
                guarded: false,
            },
            Self::MakeDirectory(directory, name) => Call::MakeDirectory {
                directory: *directory,
                name,
            },
            Self::Remove(directory, name) => Call::Remove {
                directory: *directory,
                name,
            },
            Self::RemoveDirectory(directory, name) => Call::RemoveDirectory {
                directory: *directory,
                name,
            },
            Self::Rename(from, name, to, new) => Call::Rename {
                from: *from,
                name,
                to: *to,
                new,
            },
            Self::Attributes(file) => Call::GetAttributes { file: *file },
            Self::Truncate(file, size) => Call::SetAttributes {
                file: *file,
                changes: Changes {
                    size_bytes: Some(*size),
                    mode: None,
                },
            },
            Self::Limits(root) => Call::Capabilities { root: *root },
        }
    }
}

/// How far a job is.
#[derive(Debug)]
pub(super) struct Transfer {
    /// The next offset, or number.
    next: u64,
    /// What is to be asked for again.
    again: VecDeque<Piece>,
    /// Written and not yet safe, with the verifier that the write had.
    unsafe_pieces: Vec<(Piece, u64)>,
    /// A commit is under way.
    committing: bool,
    /// The verifier of the places in a directory.
    places: u64,
}

impl Transfer {
    pub(super) const fn new() -> Self {
        Self {
            next: 0,
            again: VecDeque::new(),
            unsafe_pieces: Vec::new(),
            committing: false,
            places: 0,
        }
    }

    /// The next call; none while there is nothing to do. `outstanding`: those without a reply.
    pub(super) fn next(&mut self, job: &Job, terms: &Terms, outstanding: usize) -> Option<Step> {
        match job {
            Job::Read { size_bytes, .. } | Job::Write { size_bytes, .. } => {
                if let Some(piece) = self.again.pop_front() {
                    return Some(Step::Piece(piece));
                }
                if self.next < *size_bytes {
                    let left = size_bytes - self.next;
                    let count = left.min(terms.transfer.max(1).into()) as u32;
                    let piece = Piece {
                        offset: self.next,
                        count,
                    };
                    self.next += u64::from(count);
                    return Some(if terms.keeps_attributes {
                        Step::Piece(piece)
                    } else {
                        Step::Fresh(piece)
                    });
                }
                // All is written: it is committed when all is answered.
                let is_due = outstanding == 0 && !self.unsafe_pieces.is_empty() && !self.committing;
                is_due.then(|| {
                    self.committing = true;
                    Step::Commit
                })
            }
            Job::Null { count } => self.numbered(*count),
            Job::Meta { call, count, .. } => match call {
                Meta::Readdir => {
                    let next = self.numbered(*count)?;
                    Some(match next {
                        Step::Numbered(at) => Step::Behind(at, 0),
                        other => other,
                    })
                }
                _ => self.numbered(*count),
            },
            Job::Mount { .. } | Job::One(_) => self.numbered(1).map(|_| Step::Single),
            Job::List { .. } => self.numbered(1).map(|_| Step::Behind(0, 0)),
        }
    }

    fn numbered(&mut self, count: u64) -> Option<Step> {
        (self.next < count).then(|| {
            self.next += 1;
            Step::Numbered(self.next - 1)
        })
    }

    /// Takes the reply of a step; gives the call that follows it at once.
    pub(super) fn on_reply(
        &mut self,
        job: &Job,
        terms: &Terms,
        done: &mut Done,
        step: Step,
        reply: Reply<'_>,
    ) -> Result<Option<Step>, Failure> {
        match (job, step, reply) {
            (_, Step::Fresh(piece), _) => return Ok(Some(Step::Piece(piece))),
            (
                Job::Read {
                    size_bytes, sink, ..
                },
                Step::Piece(piece),
                Reply::Data { data, end, .. },
            ) => return self.on_data(*size_bytes, *sink, done, piece, data, end),
            (
                Job::Write { .. },
                Step::Piece(piece),
                Reply::Written {
                    count,
                    stable,
                    verifier,
                    ..
                },
            ) => {
                let count = count.min(piece.count);
                done.bytes += u64::from(count);
                let written = Piece { count, ..piece };
                if stable == Stable::Unstable && terms.version == Version::V3 {
                    self.unsafe_pieces.push((written, verifier));
                }
                if count == 0 {
                    return Err(Failure::Short {
                        offset: piece.offset,
                        size_bytes: piece.offset + u64::from(piece.count),
                    });
                }
                if count < piece.count {
                    return Ok(Some(Step::Piece(piece.behind(count))));
                }
            }
            (Job::Write { .. }, Step::Commit, Reply::Committed { verifier }) => {
                self.committing = false;
                for (piece, of) in std::mem::take(&mut self.unsafe_pieces) {
                    if of != verifier {
                        // The server was started anew, and lost it.
                        done.bytes -= u64::from(piece.count);
                        done.written_again += u64::from(piece.count);
                        self.again.push_back(piece);
                    }
                }
            }
            (
                _,
                Step::Behind(number, _),
                Reply::Entries {
                    entries,
                    verifier,
                    end,
                },
            ) => {
                self.places = verifier;
                let last = entries.last().map(|entry| entry.place);
                if let Job::List { .. } = job {
                    done.entries.extend(entries);
                }
                if done.entries.len() > NAMES_MAX || done.calls > LISTING_CALLS_MAX {
                    return Err(Failure::Endless);
                }
                return Ok(match last {
                    Some(place) if !end => Some(Step::Behind(number, place)),
                    _ => None,
                });
            }
            (_, _, Reply::Found(handle, attributes)) => {
                done.handle = Some(handle);
                done.attributes = attributes;
            }
            (_, _, Reply::Attributes(attributes)) => done.attributes = attributes,
            (_, _, Reply::Limits(limits)) => done.limits = Some(limits),
            _ => {}
        }
        Ok(None)
    }

    fn on_data(
        &mut self,
        size_bytes: u64,
        sink: Sink,
        done: &mut Done,
        piece: Piece,
        data: &[u8],
        end: bool,
    ) -> Result<Option<Step>, Failure> {
        let data = &data[..data.len().min(piece.count as usize)];
        let count = data.len() as u32;
        match sink {
            Sink::Discard => {}
            Sink::Check => {
                let wanted = pattern::piece(piece.offset, data.len());
                if data != wanted {
                    let same = data.iter().zip(wanted).take_while(|(a, b)| a == b).count();
                    return Err(Failure::Content {
                        offset: piece.offset + same as u64,
                    });
                }
            }
            Sink::Keep => {
                let (begin, end) = (piece.offset as usize, piece.offset as usize + data.len());
                if done.content.len() < end {
                    done.content.resize(end, 0);
                }
                done.content[begin..end].copy_from_slice(data);
            }
        }
        done.bytes += u64::from(count);
        if count == piece.count {
            return Ok(None);
        }
        if end || count == 0 {
            return Err(Failure::Short {
                offset: piece.offset + u64::from(count),
                size_bytes,
            });
        }
        Ok(Some(Step::Piece(piece.behind(count))))
    }
}

impl Piece {
    /// What is left behind so many bytes.
    const fn behind(self, count: u32) -> Self {
        Self {
            offset: self.offset + count as u64,
            count: self.count - count,
        }
    }
}
