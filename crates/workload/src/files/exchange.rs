//! How long the messages of a call are: what its arithmetic puts on the line.
//!
//! Model:   the call and its reply are written as client and server write them, and their bytes counted. A listing is of as many names
//!          as one answer holds, at most those that there are.
//! Source:  RFC 4506, 5531, 1094, 1813: by the code that writes them.
//! Units:   bytes of a datagram, or of a record with its mark.
//! Checked: `exchanges_are_those_of_the_standard`.

use sonde_measure::Path;
use sonde_measure::files::{Files, Meta, Operation, Service};

use super::nfs::{self, Attributes, Call, Changes, Entry, Handle, Kind, Reply, Stable, Version};
use super::rpc;
use super::xdr::Encoder;

/// The token of a run: 32 hexadecimal digits.
const TOKEN: [u8; 32] = [b'0'; 32];
const MARK: u64 = 4;
const NAME: &[u8; 10] = b"f000000000";

/// Bytes of a call and of its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// From the client.
    pub call: u64,
    /// From the server.
    pub reply: u64,
}

impl Exchange {
    /// Of the call that is measured, on files of so many bytes.
    pub fn measured(files: &Files, over: Path, size_bytes: u64) -> Self {
        if files.service == Service::Ftp {
            return match files.operation {
                Operation::Read {} => Self::by_stream(0, size_bytes),
                _ => Self::by_stream(size_bytes, 0),
            };
        }
        let transfer = files.transfer_bytes.min(size_bytes.max(1)) as usize;
        let data = vec![0; transfer];
        let file = handle();
        let known = Some(Attributes {
            kind: Kind::Regular,
            mode: 0,
            links: 1,
            size_bytes,
            id: 1,
            changed_ns: 0,
        });
        let found = Reply::Found(file, known);
        let (call, reply) = match files.operation {
            Operation::Read {} => (
                Call::Read {
                    file,
                    offset: 0,
                    count: transfer as u32,
                },
                Reply::Data {
                    attributes: known,
                    data: &data,
                    end: false,
                },
            ),
            Operation::Write {} => (
                Call::Write {
                    file,
                    offset: 0,
                    stable: Stable::Sync,
                    data: &data,
                },
                Reply::Written {
                    attributes: known,
                    count: transfer as u32,
                    stable: Stable::Sync,
                    verifier: 0,
                },
            ),
            Operation::Meta { call } => match call {
                Meta::Getattr => (Call::GetAttributes { file }, Reply::Attributes(known)),
                Meta::Lookup => (
                    Call::Lookup {
                        directory: file,
                        name: NAME,
                    },
                    found,
                ),
                Meta::Create => (
                    Call::Create {
                        directory: file,
                        name: NAME,
                        changes: Changes {
                            size_bytes: Some(0),
                            mode: Some(0),
                        },
                        guarded: true,
                    },
                    found,
                ),
                Meta::Remove => (
                    Call::Remove {
                        directory: file,
                        name: NAME,
                    },
                    Reply::Done,
                ),
                Meta::Readdir => (
                    Call::ReadDirectory {
                        directory: file,
                        place: 0,
                        verifier: 0,
                        count: 8_192,
                        plus: false,
                    },
                    listing(files.names),
                ),
            },
        };
        Self::of(files, over, &call, &reply)
    }

    /// Of the call that does nothing.
    pub fn null(files: &Files, over: Path) -> Self {
        if files.service == Service::Ftp {
            return Self::by_stream(0, 0);
        }
        Self::of(files, over, &Call::Null, &Reply::Null)
    }

    /// Of a data connection, whose opening and end an empty one has too: a file's bytes and one more segment.
    const fn by_stream(there: u64, back: u64) -> Self {
        Self {
            call: there.saturating_add(1),
            reply: back.saturating_add(1),
        }
    }

    fn of(files: &Files, over: Path, call: &Call<'_>, reply: &Reply<'_>) -> Self {
        let version = match files.service {
            Service::Nfs2 => Version::V2,
            Service::Nfs3 | Service::Ftp | Service::Fs => Version::V3,
        };
        let beside = if over == Path::Tcp { MARK } else { 0 };
        let Some(procedure) = call.procedure(version) else {
            unreachable!("each version has the calls that are measured");
        };
        let length = |to: Encoder| to.finish().len() as u64 + beside;
        let mut to = rpc::begin_call(0, procedure, &TOKEN, 0);
        call.write(version, &mut to);
        let mut back = rpc::begin_reply(0, 0);
        nfs::write_reply(version, procedure.number, reply, &mut back);
        Self {
            call: length(to),
            reply: length(back),
        }
    }
}

fn handle() -> Handle {
    Handle::new(&[0; 32]).expect("32 bytes are a handle")
}

fn listing(names: u32) -> Reply<'static> {
    // `.` and `..` are names too; one answer holds about 8 KiB of them.
    let entries = (0..u64::from(names.min(200)) + 2).map(|id| Entry {
        id,
        name: NAME.to_vec(),
        place: id + 1,
        known: None,
    });
    Reply::Entries {
        entries: entries.collect(),
        verifier: 0,
        end: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_are_those_of_the_standard() {
        let usual = |path: &str| Files::usual(path.parse().unwrap());
        // A header with a name of 32 bytes: 24 + 8 + (20 + 32) + 8; a reply's: 24.
        let files = usual("nfs2:udp");
        let null = Exchange::null(&files, Path::Udp);
        assert_eq!((null.call, null.reply), (92, 24));
        let read = Exchange::measured(&files, Path::Udp, 1 << 20);
        assert_eq!((read.call, read.reply), (92 + 44, 24 + 4 + 68 + 4 + 8_192));
        // A small file is read in one small piece.
        let small = Exchange::measured(&files, Path::Udp, 100);
        assert_eq!(small.reply, 24 + 4 + 68 + 4 + 100);
        let files = Files {
            operation: Operation::Write {},
            ..usual("nfs3:tcp")
        };
        let write = Exchange::measured(&files, Path::Tcp, 1 << 20);
        assert_eq!(write.call, 4 + 92 + 4 + 32 + 20 + 65_536);
        assert_eq!(write.reply, 4 + 24 + 4 + 4 + 88 + 16);
        // Of FTP the bytes of a file go the way that is asked for.
        let ftp = usual("ftp");
        let get = Exchange::measured(&ftp, Path::Tcp, 1 << 20);
        assert_eq!((get.call, get.reply), (1, (1 << 20) + 1));
        let put = Files {
            operation: Operation::Write {},
            ..ftp
        };
        let put = Exchange::measured(&put, Path::Tcp, 1 << 20);
        assert_eq!((put.call, put.reply), ((1 << 20) + 1, 1));
        for call in Meta::ALL {
            for path in ["nfs2:udp", "nfs3:udp"] {
                let files = Files {
                    operation: Operation::Meta { call },
                    ..usual(path)
                };
                let one = Exchange::measured(&files, Path::Udp, 0);
                let null = Exchange::null(&files, Path::Udp);
                assert!(one.call > null.call && one.reply > null.reply && one.reply < 9_000);
            }
        }
    }
}
