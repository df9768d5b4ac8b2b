//! What a measurement of file services is: over which protocol, what is done, and what is set of client and server.
//!
//! Model:   a client does the same operation on whole files again and again, or a call on names many times, with so many calls
//!          outstanding; a server of sonde's own answers from its memory, or from a scratch directory. What is set has names and
//!          values as texts, so that plans, sweeps and records say them alike.
//! Units:   names end in their unit.
//! Checked: `paths_of_files_are_read_back`, `settings_are_read_by_name`, `wrong_settings_are_refused`.
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

mod fs;
mod ftp;
mod path;
mod stages;

pub use fs::{DIRECT_BYTES, Directory, Fs};
pub use ftp::{COPY_BYTES_MAX, Ftp, Representation, Translation};
pub use path::{FilesPath, Service};
pub use stages::{Stage, Stages, window_ns};

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Bytes, Span};

use ftp::CLIENT_DISK;

use crate::{BadKnob, KnobValues, Path, Quota, Unmeasurable};

/// The most bytes of a read or write in a datagram: what 65,507 bytes leave beside the headers of a call (60 KiB).
pub const DATAGRAM_TRANSFER_BYTES_MAX: u64 = 61_440;
/// The most bytes of a read or write over TCP.
pub const TRANSFER_BYTES_MAX: u64 = 1 << 20;
/// The most bytes that version 2 has room for (RFC 1094).
pub const V2_TRANSFER_BYTES_MAX: u64 = 8_192;
/// The largest file, which a server keeps in its memory.
pub const FILE_BYTES_MAX: u64 = 1 << 30;
/// The most clients of a server at once.
pub const CLIENTS_MAX: u32 = 32;
/// The usual number of names in a directory.
pub const NAMES: u32 = 100;

/// A call on names or attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meta {
    /// Attributes of a file.
    Getattr,
    /// The handle of a name.
    Lookup,
    /// Names in a directory.
    Readdir,
    /// New files.
    Create,
    /// Their end.
    Remove,
}

impl Meta {
    /// All, in the order of help texts.
    pub const ALL: [Self; 5] = [
        Self::Getattr,
        Self::Lookup,
        Self::Readdir,
        Self::Create,
        Self::Remove,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Getattr => "getattr",
            Self::Lookup => "lookup",
            Self::Readdir => "readdir",
            Self::Create => "create",
            Self::Remove => "remove",
        }
    }
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Files are read.
    Read {},
    /// Files are written.
    Write {},
    /// A call on names.
    Meta {
        /// Which.
        call: Meta,
    },
}

impl Operation {
    /// As it is written: `read`, `write`, or the call.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read {} => "read",
            Self::Write {} => "write",
            Self::Meta { call } => call.name(),
        }
    }

    /// Whether bytes of files are moved, so that files have sizes.
    pub const fn is_sized(self) -> bool {
        !matches!(self, Self::Meta { .. })
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let meta = Meta::ALL.into_iter().find(|call| call.name() == text);
        match (text, meta) {
            ("read", _) => Ok(Self::Read {}),
            ("write", _) => Ok(Self::Write {}),
            (_, Some(call)) => Ok(Self::Meta { call }),
            _ => Err("write read, write, getattr, lookup, readdir, create or remove".into()),
        }
    }
}

/// A disk that a server waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Its sustained rate.
    pub rate_bps: u64,
    /// What a move of its arm takes.
    pub seek_ns: u64,
    /// The server's memory for it.
    pub cache_bytes: u64,
}

/// Where a server keeps its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Store {
    /// In its memory.
    Memory,
    /// In a directory of its host's `/tmp` that goes with it.
    Scratch,
}

/// What is measured of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// The protocol.
    pub service: Service,
    /// What is done.
    pub operation: Operation,
    /// `transfer`: bytes of a read or write call.
    pub transfer_bytes: u64,
    /// `outstanding`: calls that a client has under way: one more than its block daemons.
    pub outstanding: u32,
    /// `clients`: clients of the one server at once, each with its own connection and file.
    pub clients: u32,
    /// `sync`: writes are on the disk when they are answered; otherwise version 3 commits them at the end of a file, and a server
    /// of version 2 answers before they are safe.
    pub is_sync: bool,
    /// `attribute-cache`: a client keeps attributes; otherwise each transfer is preceded by a GETATTR.
    pub keeps_attributes: bool,
    /// `retransmit`: over UDP a call is sent again after this, doubled each time.
    pub retransmit_ns: u64,
    /// `daemons`: calls that the server works on at once.
    pub daemons: u32,
    /// `service`: what each takes of a daemon, beside what the server really takes.
    pub service_ns: u64,
    /// `queue`: calls that the server takes from its sockets while all daemons work.
    pub queue: u32,
    /// `rcvbuf`: the receive buffer of the server's UDP socket, or of both ends of FTP's data connections; null is the host's.
    pub receive_buffer_bytes: Option<u64>,
    /// `reply-cache`: the server keeps replies to calls that must not be done twice.
    pub keeps_replies: bool,
    /// `disk`, `seek`, `cache`: a disk that the server waits for.
    pub disk: Option<Disk>,
    /// `store`: where the server keeps files.
    pub store: Store,
    /// `names`: names in the directory, of calls on names.
    pub names: u32,
    /// What is set of FTP alone.
    pub ftp: Ftp,
    /// What is set of a file system alone.
    pub fs: Fs,
    /// How many.
    pub quota: Quota,
}

const OPERATION: &str = "op";
const DISK: &str = "disk";
/// What services of calls have, and FTP has not.
const OF_CALLS: [&str; 8] = [
    "transfer",
    "attribute-cache",
    "retransmit",
    "daemons",
    "service",
    "queue",
    "reply-cache",
    "names",
];

/// What a file system has.
const OF_FS: [&str; 8] = [
    OPERATION,
    "transfer",
    "outstanding",
    "sync",
    "names",
    "directory",
    "direct",
    "cached",
];

impl Files {
    /// The names of what can be set, with what they take, for help texts.
    pub const NAMES: &'static [(&'static str, &'static str)] = &[
        (
            OPERATION,
            "what is done: read, write, getattr, lookup, readdir, create or remove",
        ),
        ("transfer", "bytes of a read or write call, as 8KiB"),
        ("outstanding", "calls under way, 1 to 256"),
        (
            "clients",
            "clients of the server at once, each with its connection and file, 1 to 32",
        ),
        (
            "sync",
            "writes are on the disk when they are answered: yes or no",
        ),
        ("attribute-cache", "attributes are kept: yes or no"),
        ("retransmit", "a call is sent again after, as 1100ms"),
        ("daemons", "calls worked on at once, 1 to 256"),
        ("service", "what each call takes of a daemon, as 7ms"),
        (
            "queue",
            "calls that wait in the server beyond its sockets, 0 to 4096",
        ),
        (
            "rcvbuf",
            "receive buffer of the server's UDP socket, or of data connections, as 64KiB",
        ),
        (
            "reply-cache",
            "replies to what must not be done twice are kept: yes or no",
        ),
        (DISK, "rate of a modelled disk, as 16Mbit"),
        ("seek", "what a move of its arm takes, as 10ms"),
        ("cache", "the server's memory for it, as 4MiB"),
        ("store", "where files are: memory or scratch"),
        ("names", "names in a directory, 1 to 100000"),
        Ftp::NAMES[0],
        Ftp::NAMES[1],
        Ftp::NAMES[2],
        Ftp::NAMES[3],
        Ftp::NAMES[4],
        Ftp::NAMES[5],
        Ftp::NAMES[6],
        Ftp::NAMES[7],
        Ftp::NAMES[8],
        Fs::NAMES[0],
        Fs::NAMES[1],
        Fs::NAMES[2],
    ];

    /// The usual one of a path: reads of 8 KiB by version 2, of 64 KiB over TCP and 56 KiB over UDP by version 3, one call outstanding,
    /// eight daemons without a service time, and no disk.
    pub const fn usual(path: FilesPath) -> Self {
        Self {
            service: path.service,
            operation: Operation::Read {},
            transfer_bytes: match (path.service, path.over) {
                (Service::Nfs2, _) => V2_TRANSFER_BYTES_MAX,
                (Service::Nfs3, Path::Udp) => 57_344,
                (Service::Nfs3 | Service::Ftp | Service::Fs, _) => 65_536,
            },
            outstanding: 1,
            clients: 1,
            is_sync: true,
            keeps_attributes: true,
            retransmit_ns: 1_100_000_000,
            daemons: 8,
            service_ns: 0,
            queue: 0,
            receive_buffer_bytes: None,
            keeps_replies: true,
            disk: None,
            store: Store::Memory,
            names: NAMES,
            ftp: Ftp::USUAL,
            fs: Fs::USUAL,
            quota: Quota {
                samples_max: 10_000,
                warmup: 0,
                budget_ns: 1_000_000_000,
            },
        }
    }

    /// What these names and values set of a path.
    ///
    /// # Errors
    /// A name that is none, a value that it does not take.
    pub fn parse(path: FilesPath, values: &KnobValues) -> Result<Self, BadKnob> {
        let mut files = Self::usual(path);
        // What is said of a disk means nothing without one.
        let lacks = |disk: &str| !values.contains_key(disk);
        let without = |disk| {
            Err(format!(
                "it is of a disk: write `{disk}` too, as {disk}=16Mbit"
            ))
        };
        for (name, value) in values {
            let set = match &**name {
                name if path.service == Service::Ftp && OF_CALLS.contains(&name) => {
                    Err("ftp has none: it is of nfs2 and nfs3".into())
                }
                name if path.service == Service::Fs && !OF_FS.contains(&name) => {
                    Err(format!("fs has none: it has {}", OF_FS.join(", ")))
                }
                name if path.service != Service::Ftp && is_of_ftp(name) => {
                    Err(format!("{path} has none: it is of ftp"))
                }
                name if path.service != Service::Fs && is_of_fs(name) => {
                    Err(format!("{path} has none: it is of fs"))
                }
                "seek" | "cache" if lacks(DISK) => without(DISK),
                "client-seek" | "client-cache" if lacks(CLIENT_DISK) => without(CLIENT_DISK),
                _ => files.set(name, value),
            };
            set.map_err(|why| BadKnob {
                name: name.clone(),
                value: value.clone(),
                why,
            })?;
        }
        Ok(files)
    }

    /// Calls that are under way at once, of all clients.
    pub const fn under_way(&self) -> u32 {
        self.outstanding.saturating_mul(self.clients)
    }

    /// The disk that a name is of: the client's or the server's. That of FTP has no memory unless it is given some, since what a
    /// repetition reads again would come out of it.
    fn disk(&mut self, name: &str) -> &mut Disk {
        let cache_bytes = match self.service {
            Service::Ftp => 0,
            Service::Nfs2 | Service::Nfs3 | Service::Fs => 4 << 20,
        };
        let disk = match name.starts_with("client-") {
            true => &mut self.ftp.client_disk,
            false => &mut self.disk,
        };
        disk.get_or_insert(Disk {
            rate_bps: 0,
            seek_ns: 0,
            cache_bytes,
        })
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            OPERATION => self.operation = value.parse()?,
            "transfer" => self.transfer_bytes = bytes(value, 512, TRANSFER_BYTES_MAX)?,
            "outstanding" => self.outstanding = within(value, 1, 256)?,
            "clients" => self.clients = within(value, 1, CLIENTS_MAX)?,
            "sync" => self.is_sync = yes(value)?,
            "attribute-cache" => self.keeps_attributes = yes(value)?,
            "retransmit" => self.retransmit_ns = time(value, Span::secs(60))?,
            "daemons" => self.daemons = within(value, 1, 256)?,
            "service" => self.service_ns = time(value, Span::secs(1))?,
            "queue" => self.queue = within(value, 0, 4_096)?,
            "rcvbuf" => self.receive_buffer_bytes = Some(bytes(value, 2_048, 1 << 30)?),
            "reply-cache" => self.keeps_replies = yes(value)?,
            DISK | CLIENT_DISK => {
                let rate = value.parse::<BitRate>().ok().map(BitRate::bps);
                let rate = rate.filter(|bps| (100_000..=1_000_000_000_000).contains(bps));
                self.disk(name).rate_bps = rate.ok_or("write a rate from 100kbit on, as 16Mbit")?;
            }
            "seek" | "client-seek" => self.disk(name).seek_ns = time(value, Span::secs(1))?,
            "cache" | "client-cache" => self.disk(name).cache_bytes = bytes(value, 0, 1 << 36)?,
            "store" => {
                self.store = match value {
                    "memory" => Store::Memory,
                    "scratch" => Store::Scratch,
                    _ => return Err("write memory or scratch".into()),
                };
            }
            "names" => self.names = within(value, 1, 100_000)?,
            name if is_of_ftp(name) => self.ftp.set(name, value)?,
            name if is_of_fs(name) => self.fs.set(name, value)?,
            _ => {
                let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "files have no such knob; there are {}",
                    names.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Refuses what cannot be measured over a path.
    ///
    /// # Errors
    /// A transfer that does not fit; an empty quota.
    pub fn check(&self, over: Path) -> Result<(), Unmeasurable> {
        let refuse = |what: String, remedy| Err(Unmeasurable { what, remedy });
        let transfer = self.transfer_bytes;
        if !matches!(over, Path::Tcp | Path::Udp) {
            let what = format!("files do not go over {over}");
            return refuse(what, "take nfs2:udp or nfs3:tcp");
        }
        if self.service == Service::Ftp {
            self.check_ftp(over)?;
        }
        if self.service == Service::Fs {
            self.check_fs()?;
        }
        if over == Path::Udp && transfer > DATAGRAM_TRANSFER_BYTES_MAX {
            return refuse(
                format!(
                    "a transfer of {transfer} bytes and its headers do not fit in a datagram of 65,507 bytes"
                ),
                "ask for at most 60KiB (transfer=60KiB), or for tcp",
            );
        }
        if !(512..=TRANSFER_BYTES_MAX).contains(&transfer) {
            return refuse(
                format!("a transfer of {transfer} bytes cannot be measured"),
                "ask for 512 B to 1 MiB",
            );
        }
        // 60 KB by version 2 is the variant of the studies; anything between is neither.
        let is_variant = transfer == DATAGRAM_TRANSFER_BYTES_MAX;
        if self.service == Service::Nfs2 && transfer > V2_TRANSFER_BYTES_MAX && !is_variant {
            return refuse(
                format!(
                    "version 2 of NFS has transfers of up to 8,192 bytes, and {transfer} were asked for"
                ),
                "ask for 8KiB, for the variant with 60KiB (transfer=60KiB), or for nfs3",
            );
        }
        if [self.outstanding, self.clients, self.daemons, self.names].contains(&0) {
            let what =
                "no call outstanding, no client, no daemon or no name: nothing would be done";
            return refuse(what.into(), "ask for 1 or more of each");
        }
        let disks = [self.disk, self.ftp.client_disk];
        if disks.iter().flatten().any(|disk| disk.rate_bps == 0) {
            return refuse("a disk has no rate".into(), "write one, as disk=16Mbit");
        }
        self.quota.check()
    }

    fn check_fs(&self) -> Result<(), Unmeasurable> {
        let refuse = |what: String, remedy| Err(Unmeasurable { what, remedy });
        if !self.operation.is_sized() && self.outstanding != 1 {
            let what = format!("{} of names has one call at a time", self.operation.name());
            return refuse(what, "leave outstanding out, or ask for read or write");
        }
        if self.clients != 1 {
            let what = format!(
                "a file system has one client here, and not {}",
                self.clients
            );
            return refuse(what, "leave clients out, and ask for more outstanding");
        }
        if self.fs.is_direct && self.transfer_bytes.checked_rem(DIRECT_BYTES) != Some(0) {
            let what = format!(
                "transfers of {} bytes cannot pass memory over (direct=yes)",
                self.transfer_bytes
            );
            return refuse(what, "ask for multiples of 4 KiB, or for direct=no");
        }
        Ok(())
    }

    fn check_ftp(&self, over: Path) -> Result<(), Unmeasurable> {
        let refuse = |what: String, remedy| Err(Unmeasurable { what, remedy });
        if over != Path::Tcp {
            return refuse(format!("ftp does not go over {over}"), "take tcp");
        }
        if !self.operation.is_sized() {
            let name = self.operation.name();
            return refuse(
                format!("ftp has no {name}: it moves whole files"),
                "ask for read or write, or for nfs3",
            );
        }
        if self.outstanding != 1 {
            let what = format!(
                "ftp has one transfer at a time, and not {}",
                self.outstanding
            );
            return refuse(what, "leave outstanding out");
        }
        let copy = self.ftp.copy_bytes;
        if !(512..=COPY_BYTES_MAX).contains(&copy) {
            return refuse(
                format!("a copy buffer cannot have {copy} bytes"),
                "ask for 512 B to 1 MiB",
            );
        }
        Ok(())
    }
}

/// Whether a name is of a file system alone.
fn is_of_fs(name: &str) -> bool {
    Fs::NAMES.iter().any(|(known, _)| *known == name)
}

/// Whether a name is of FTP alone.
fn is_of_ftp(name: &str) -> bool {
    Ftp::NAMES.iter().any(|(known, _)| *known == name)
}

fn bytes(value: &str, low: u64, high: u64) -> Result<u64, String> {
    let bytes = value.parse::<u64>().ok();
    bytes
        .or_else(|| value.parse::<Bytes>().ok().map(|bytes| bytes.0))
        .filter(|bytes| (low..=high).contains(bytes))
        .ok_or_else(|| format!("write {low} to {high} bytes, or as 8KiB"))
}

fn yes(value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("write yes or no".into()),
    }
}

fn time(value: &str, most: Span) -> Result<u64, String> {
    let span = value.parse::<Span>().ok().filter(|span| *span <= most);
    span.map(Span::as_nanos)
        .ok_or_else(|| format!("write a time up to {most}, as 7ms"))
}

fn within(value: &str, low: u32, high: u32) -> Result<u32, String> {
    value
        .parse()
        .ok()
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| format!("write a number from {low} to {high}"))
}

#[cfg(test)]
mod tests;
