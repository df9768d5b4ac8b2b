//! What a lab is asked to be, and what it turned out to be.
//!
//! Checked: `profiles_parse`, `plans_fit_the_machine`.
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

use crate::priority::Priority;
use serde::{Deserialize, Serialize};
use sonde_link::SiteSpec;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fmt, io, str::FromStr};

/// The fewest and the most hosts of a lab.
pub const HOSTS: std::ops::RangeInclusive<u16> = 2..=256;
/// The largest MTU that a TAP carries on Linux.
pub const MTU_MAX: u64 = 65_521;

/// How a host's interface is joined to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attachment {
    /// TAP where its device can be opened, else veth.
    Auto,
    /// A TAP device a host.
    Tap,
    /// A veth pair a host, with a packet socket on the switch's end.
    Veth,
}

impl Attachment {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tap => "tap",
            Self::Veth => "veth",
        }
    }
}

/// A host's TCP settings, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileKind {
    /// CUBIC, SACK, time stamps, window scaling, large buffers.
    Modern,
    /// Reno, none of the options, a fixed window a route.
    Era,
}

/// A host's TCP settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Which.
    pub kind: ProfileKind,
    /// The window of `era`, in bytes.
    pub window_bytes: u32,
}

impl Profile {
    /// CUBIC and all options.
    pub const MODERN: Self = Self {
        kind: ProfileKind::Modern,
        window_bytes: 6_291_456,
    };
    /// Reno and the largest window without scaling.
    pub const ERA: Self = Self {
        kind: ProfileKind::Era,
        window_bytes: 65_535,
    };
}

impl FromStr for Profile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let window = |text: &str| {
            text.parse()
                .ok()
                .filter(|bytes| (1_024..=65_535).contains(bytes))
        };
        match text.split_once(":window=") {
            None if text == "modern" => Ok(Self::MODERN),
            None if text == "era" => Ok(Self::ERA),
            Some(("era", bytes)) => {
                let window_bytes = window(bytes).ok_or_else(|| format!("`{bytes}` is not a window: write 1024 to 65535 bytes, as in `era:window=16384`"))?;
                Ok(Self {
                    window_bytes,
                    ..Self::ERA
                })
            }
            _ => Err(format!(
                "there is no profile `{text}`: write `modern`, `era` or `era:window=16384`"
            )),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ProfileKind::Modern => f.write_str("modern"),
            ProfileKind::Era if *self == Self::ERA => f.write_str("era"),
            ProfileKind::Era => write!(f, "era:window={}", self.window_bytes),
        }
    }
}

/// Which CPUs the switch and the hosts' programs use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlan {
    /// Its name: `auto`, `one`, `split` or `free`.
    pub name: String,
    /// The switch's.
    pub switch: Vec<usize>,
    /// The programs'.
    pub hosts: Vec<usize>,
}

impl CpuPlan {
    /// The plan by which the switch chooses while programs run.
    pub const AUTO: &'static str = "auto";

    /// The plan `name` on the CPUs `online`: `auto` is `split`, but the switch shares the programs' CPUs while these answer each
    /// other and that makes them faster; `one` puts all on one (no wake-up crosses CPUs: for latency), `split` gives the
    /// switch the last one and the programs the others (for throughput), `free` binds nothing.
    ///
    /// # Errors
    /// A sentence, where there is no such plan.
    pub fn named(name: &str, online: &[usize]) -> Result<Self, String> {
        let (last, others) = online.split_last().ok_or("no CPU is online")?;
        let (switch, hosts) = match name {
            "one" => (vec![*last], vec![*last]),
            Self::AUTO | "split" if others.is_empty() => (vec![*last], vec![*last]),
            Self::AUTO | "split" => (vec![*last], others.to_vec()),
            "free" => (Vec::new(), Vec::new()),
            _ => {
                return Err(format!(
                    "there is no CPU plan `{name}`: write `auto`, `one`, `split` or `free`"
                ));
            }
        };
        Ok(Self {
            name: name.to_owned(),
            switch,
            hosts,
        })
    }
}

/// Who the programs of a lab are: the ids that they see, and those of the lab behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Their user id.
    pub uid: u32,
    /// Their group id.
    pub gid: u32,
    /// The lab's user and group behind these. (0, 0) is the lab's root, so whoever started it: its files are theirs.
    pub behind: (u32, u32),
}

/// What is said of a file that the lab writes and that was opened before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// As it was named.
    pub path: String,
    /// Where its file system begins.
    pub disk: String,
}

impl WrittenFile {
    /// The file `path`, which is there.
    pub fn of(path: &Path) -> Self {
        let device = |path: &Path| path.metadata().map(|about| about.dev()).ok();
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let folder = whole.parent().unwrap_or(&whole);
        let is_there = |one: &&Path| device(one) == device(folder);
        let disk = folder.ancestors().take_while(is_there).last();
        Self {
            path: path.display().to_string(),
            disk: disk.unwrap_or(folder).display().to_string(),
        }
    }

    /// That it could not be written, what it was to be, and what to do.
    pub(crate) fn told(&self, what: &str, error: &io::Error) -> String {
        let Self { path, disk } = self;
        let remedy = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                format!("the disk at {disk} is full: free space, or name a file on another")
            }
            io::ErrorKind::FileTooLarge => "raise the limit of a file's size (`ulimit -f`)".into(),
            _ => format!("look at the file system at {disk}"),
        };
        format!(
            "cannot write the {what} {path}: {error}; {remedy}. What was written before can be read; the lab went on without it"
        )
    }
}

impl User {
    /// Whether the lab is another's than who started it, as under sudo: its root is then nobody outside.
    pub(crate) fn is_another(self) -> bool {
        self.behind.0 != 0
    }
}

/// A lab to be started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// What joins the hosts, of which there are 2 to 256: a network, several of the same hosts, or segments that bridges and routers join.
    pub site: SiteSpec,
    /// How they are attached.
    pub attachment: Attachment,
    /// The device file of TAPs.
    pub tun: PathBuf,
    /// Their TCP settings.
    pub profile: Profile,
    /// The CPUs.
    pub cpus: CpuPlan,
    /// The priority of its own processes.
    pub priority: Priority,
    /// Where the model's random draws begin.
    pub seed: u64,
    /// The port of the capture and its file, if one is written.
    pub pcap: Option<(u16, WrittenFile)>,
    /// The file of the ledger, if one is written.
    pub ledger: Option<WrittenFile>,
    /// Folders that programs must find in the hosts even below /tmp or /run.
    pub keep: Vec<PathBuf>,
    /// Who its programs are.
    pub user: User,
    /// Whether other users of the lab may start programs and change the network too.
    pub share: bool,
    /// Whether an interface loses its carrier with its line, and hosts go by others then.
    pub fail_over: bool,
}

impl Config {
    /// How many hosts it has.
    pub fn hosts(&self) -> u16 {
        self.site.count()
    }
}

/// What a started lab is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Info {
    /// How the hosts are attached: never `Auto`.
    pub attachment: Attachment,
    /// Why not as the first choice, if so.
    pub attachment_reason: Option<String>,
    /// `gate`, or `none` where the network never holds a sender back.
    pub backpressure: String,
    /// Settings of the hosts, read back.
    pub settings: Vec<(String, String)>,
    /// What could not be had though the lab runs without it.
    pub notes: Vec<String>,
    /// Process id of the switch, in the lab's own numbering seen from the caller.
    pub switch_pid: u32,
    /// Its start on CLOCK_MONOTONIC, in nanoseconds: the model's zero.
    pub epoch_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_parse() {
        for text in ["modern", "era", "era:window=16384"] {
            assert_eq!(text.parse::<Profile>().unwrap().to_string(), text);
        }
        for text in ["", "old", "modern:window=1", "era:window=70000"] {
            assert!(
                text.parse::<Profile>().unwrap_err().contains("write"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_with_its_disk() {
        let file = WrittenFile::of(Path::new("/proc/self/status"));
        assert_eq!((&*file.path, &*file.disk), ("/proc/self/status", "/proc"));
        let told = file.told("ledger", &io::ErrorKind::StorageFull.into());
        assert!(
            told.contains("cannot write the ledger /proc/self/status"),
            "{told}"
        );
        assert!(told.contains("the disk at /proc is full"), "{told}");
    }

    #[test]
    fn plans_fit_the_machine() {
        let split = CpuPlan::named("split", &[0, 1, 2]).unwrap();
        assert_eq!((split.switch, split.hosts), (vec![2], vec![0, 1]));
        let split = CpuPlan::named("split", &[3]).unwrap();
        assert_eq!((split.switch, split.hosts), (vec![3], vec![3]));
        assert!(
            CpuPlan::named("half", &[0])
                .unwrap_err()
                .contains("`split`")
        );
    }
}
