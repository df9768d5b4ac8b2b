//! By which service files are reached, and over what.
//!
//! Checked: `paths_of_files_are_read_back` of `files`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Path;

/// Which protocol, and over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FilesPath {
    /// The protocol.
    pub service: Service,
    /// Over what: TCP or UDP.
    pub over: Path,
}

/// A protocol of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// NFS version 2.
    Nfs2,
    /// NFS version 3.
    Nfs3,
    /// FTP.
    Ftp,
    /// A mounted file system of the client's host.
    Fs,
}

impl FilesPath {
    /// All, in the order of help texts.
    pub const ALL: [Self; 6] = [
        Self::new(Service::Nfs2, Path::Udp),
        Self::new(Service::Nfs2, Path::Tcp),
        Self::new(Service::Nfs3, Path::Udp),
        Self::new(Service::Nfs3, Path::Tcp),
        Self::new(Service::Ftp, Path::Tcp),
        // Nothing of it goes over a network: its two workers alone speak over TCP.
        Self::new(Service::Fs, Path::Tcp),
    ];

    const fn new(service: Service, over: Path) -> Self {
        Self { service, over }
    }

    /// As it is written: `nfs2:udp`.
    pub const fn name(self) -> &'static str {
        match (self.service, self.over) {
            (Service::Nfs2, Path::Tcp) => "nfs2:tcp",
            (Service::Nfs2, _) => "nfs2:udp",
            (Service::Nfs3, Path::Udp) => "nfs3:udp",
            (Service::Nfs3, _) => "nfs3:tcp",
            (Service::Ftp, _) => "ftp",
            (Service::Fs, _) => "fs",
        }
    }
}

impl fmt::Display for FilesPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FilesPath {
    type Err = String;

    /// `nfs2` is over UDP and `nfs3` over TCP, as they are used.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = match text {
            "nfs2" => "nfs2:udp",
            "nfs3" => "nfs3:tcp",
            other => other,
        };
        let found = Self::ALL.into_iter().find(|path| path.name() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(Self::name);
            format!("there is no service `{text}`: write {}", all.join(", "))
        })
    }
}

impl From<FilesPath> for String {
    fn from(path: FilesPath) -> Self {
        path.name().into()
    }
}

impl TryFrom<String> for FilesPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Serialize for Service {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Self::Nfs2 => "nfs2",
            Self::Nfs3 => "nfs3",
            Self::Ftp => "ftp",
            Self::Fs => "fs",
        })
    }
}

impl<'de> Deserialize<'de> for Service {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match &*String::deserialize(from)? {
            "nfs2" => Ok(Self::Nfs2),
            "nfs3" => Ok(Self::Nfs3),
            "ftp" => Ok(Self::Ftp),
            "fs" => Ok(Self::Fs),
            other => Err(serde::de::Error::custom(format!(
                "there is no service `{other}`"
            ))),
        }
    }
}
