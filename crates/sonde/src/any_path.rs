//! The path by which something is measured, as plans and command lines write it: a channel's, a library's, or a service's.
//!
//! Model:   one name, whichever layer it is of: `tcp`, `packet`, `native:tcp`, `openmpi:sm`, `nfs3:tcp`. What all have is asked here;
//!          what only a channel has, after [`AnyPath::channel`].
//! Checked: `names_of_all_layers_are_read_back`.
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

use serde::{Deserialize, Serialize};
use sonde_measure::Layer;
use sonde_measure::files::FilesPath;
use sonde_measure::{Method, Path, Wait};
use std::fmt;
use std::str::FromStr;

/// By what something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AnyPath {
    /// Sockets, memory, frames.
    Channel(Path),
    /// Messages of a library.
    Library(sonde_message::Path),
    /// Files of a server.
    Files(FilesPath),
}

impl AnyPath {
    /// Over TCP.
    pub const TCP: Self = Self::Channel(Path::Tcp);
    /// Over UDP.
    pub const UDP: Self = Self::Channel(Path::Udp);

    /// The channel's path, where it is one.
    pub const fn channel(self) -> Option<Path> {
        match self {
            Self::Channel(path) => Some(path),
            Self::Library(_) | Self::Files(_) => None,
        }
    }

    /// The library's, where it is one.
    pub const fn library(self) -> Option<sonde_message::Path> {
        match self {
            Self::Channel(_) | Self::Files(_) => None,
            Self::Library(path) => Some(path),
        }
    }

    /// The service of files, where it is one.
    pub const fn files(self) -> Option<FilesPath> {
        match self {
            Self::Files(path) => Some(path),
            Self::Channel(_) | Self::Library(_) => None,
        }
    }

    /// The channel that a library's or a service's cost is held against: the kernel's transport beneath it, as far as a channel is that.
    pub fn beneath(self) -> Path {
        match self {
            Self::Channel(path) => path,
            Self::Files(path) => path.over,
            Self::Library(path) => match path.transport {
                "unix" => Path::Unix,
                _ if path.is_within_machine() => Path::Shm,
                "udp" => Path::Udp,
                _ => Path::Tcp,
            },
        }
    }

    /// As it is written.
    pub fn name(self) -> String {
        match self {
            Self::Channel(path) => path.name().into(),
            Self::Library(path) => path.to_string(),
            Self::Files(path) => path.name().into(),
        }
    }

    /// The methods that it has, the usual one first.
    pub const fn methods(self) -> &'static [Method] {
        match self {
            Self::Channel(path) => path.methods(),
            Self::Library(_) | Self::Files(_) => &[Method::Plain],
        }
    }

    /// How it waits, where this is asked for: a library may have but one way of it.
    pub fn waits(self, asked: &[Wait]) -> Vec<Wait> {
        use sonde_message::Library::{Mpich, Native, Ofi, OpenMpi, Pvm, Ucx};
        if self.files().is_some() {
            return vec![Wait::Block];
        }
        match self.library().map(|path| path.library) {
            // Who takes several networks looks at each in turn.
            Some(Native) if self.is_over_all_networks() => vec![Wait::Poll],
            None | Some(Native) => asked.to_vec(),
            Some(Pvm) => vec![Wait::Block],
            Some(OpenMpi | Mpich | Ucx | Ofi) => vec![Wait::Poll],
        }
    }

    /// Whether it takes all networks of its hosts at once.
    pub fn is_over_all_networks(self) -> bool {
        self.library()
            .is_some_and(sonde_message::Path::is_over_all_networks)
    }

    /// Whether it joins processes of one machine only.
    pub fn is_within_machine(self) -> bool {
        match self {
            Self::Channel(path) => path.is_within_machine(),
            Self::Library(path) => path.is_within_machine(),
            Self::Files(_) => false,
        }
    }

    /// Whether nothing is lost on it.
    pub const fn is_lossless(self) -> bool {
        match self {
            Self::Channel(path) => path.is_lossless(),
            // What is lost is sent again.
            Self::Library(_) | Self::Files(_) => true,
        }
    }

    /// Where its results stand.
    pub const fn layer(self) -> Layer {
        match self {
            Self::Channel(Path::Packet | Path::Xdp) => Layer::Wire,
            Self::Channel(_) => Layer::Transport,
            Self::Library(_) => Layer::Library,
            Self::Files(_) => Layer::Files,
        }
    }
}

impl fmt::Display for AnyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl From<Path> for AnyPath {
    fn from(path: Path) -> Self {
        Self::Channel(path)
    }
}

impl From<AnyPath> for String {
    fn from(path: AnyPath) -> Self {
        path.name()
    }
}

impl TryFrom<String> for AnyPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for AnyPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let channel = text.parse().map(Self::Channel).ok();
        let library = || text.parse().map(Self::Library).ok();
        let files = || text.parse().map(Self::Files).ok();
        channel.or_else(library).or_else(files).ok_or_else(|| {
            let channels = Path::ALL.iter().map(|path| path.name().to_string());
            let libraries = sonde_message::Path::all().map(|path| path.to_string());
            let services = FilesPath::ALL.iter().map(|path| path.name().to_string());
            let all = channels.chain(libraries).chain(services);
            let wanted = all.collect::<Vec<_>>().join(", ");
            format!("there is no path `{text}`: write {wanted}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_layers_are_read_back() {
        let channels = Path::ALL.iter().map(|path| AnyPath::Channel(*path));
        let all = channels.chain(sonde_message::Path::all().map(AnyPath::Library));
        let all = all.chain(FilesPath::ALL.map(AnyPath::Files));
        for path in all {
            assert_eq!(path.name().parse(), Ok(path));
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(json, format!("\"{path}\""));
            assert_eq!(serde_json::from_str::<AnyPath>(&json).unwrap(), path);
        }
        let usual: AnyPath = "pvm".parse().unwrap();
        assert_eq!(
            (usual.name().as_str(), usual.layer()),
            ("pvm:default", Layer::Library)
        );
        assert_eq!("tcp".parse::<AnyPath>().unwrap().layer(), Layer::Transport);
        let error = "infiniband".parse::<AnyPath>().unwrap_err();
        for name in ["xdp", "native:tcp", "openmpi:sm", "nfs3:tcp"] {
            assert!(error.contains(name), "{error}");
        }
        for (name, beneath) in [
            ("native:tcp", Path::Tcp),
            ("pvm:default", Path::Tcp),
            ("openmpi:sm", Path::Shm),
            ("native:unix", Path::Unix),
            ("ofi:udp", Path::Udp),
            ("nfs2", Path::Udp),
            ("nfs3:tcp", Path::Tcp),
        ] {
            assert_eq!(name.parse::<AnyPath>().unwrap().beneath(), beneath);
        }
    }
}
