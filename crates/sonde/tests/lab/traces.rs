//! What a run could leave on a machine, and draws of moments and victims that can be repeated.

use super::{eventually, number};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a machine has that a run could leave or change.
pub struct Traces {
    all: BTreeSet<String>,
    look: Box<dyn Fn() -> BTreeSet<String>>,
}

impl Traces {
    /// Devices, mounts, IPC objects, sonde's files by their name, and what is in this folder: for a test that runs beside others.
    pub fn of_sonde(folder: &Path) -> Self {
        let folder = folder.to_str().expect("a folder of a test").to_owned();
        Self::by(move || {
            let mut all = of_sonde();
            all.extend(files(&folder));
            all
        })
    }

    /// Devices, mounts, IPC objects, all files of `/tmp`, `/run` and `/dev/shm`, and the settings of this network: for a test that runs
    /// alone.
    pub fn of_all() -> Self {
        Self::by(of_all)
    }

    fn by(look: impl Fn() -> BTreeSet<String> + 'static) -> Self {
        Self {
            all: look(),
            look: Box::new(look),
        }
    }

    /// Fails unless there is nothing new, soon. What a run took away that an earlier one had left is no fault of it.
    pub fn assert_nothing_new(&self, story: &str) {
        let new = || (self.look)().difference(&self.all).cloned().collect();
        let new: Vec<String> = eventually(new, Vec::is_empty);
        assert!(new.is_empty(), "{new:#?} is left: {story}");
    }
}

fn of_sonde() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (path, part) in [
        ("/proc/net/dev", device as fn(&str) -> &str),
        ("/proc/self/mountinfo", whole),
        ("/proc/sysvipc/shm", key),
        ("/proc/sysvipc/sem", key),
        ("/proc/sysvipc/msg", key),
    ] {
        let text = fs::read_to_string(path).unwrap_or_default();
        all.extend(text.lines().map(|line| format!("{path}: {}", part(line))));
    }
    let names = ["/tmp", "/run", "/dev/shm"].into_iter().flat_map(files);
    all.extend(names.filter(|path| path.contains("sonde")));
    all
}

fn of_all() -> BTreeSet<String> {
    let mut all = of_sonde();
    all.extend(["/tmp", "/run", "/dev/shm"].into_iter().flat_map(files));
    for path in ["/proc/sys/net/core", "/proc/sys/net/ipv4"]
        .map(files)
        .concat()
    {
        // Not all can be read, and some are folders.
        if let Ok(value) = fs::read_to_string(&path) {
            all.insert(format!("{path}: {}", value.trim()));
        }
    }
    all
}

fn device(line: &str) -> &str {
    line.split_once(':').map_or("", |(name, _)| name.trim())
}

fn whole(line: &str) -> &str {
    line
}

/// Of an IPC object: its key and number.
fn key(line: &str) -> &str {
    line.get(..21).unwrap_or(line)
}

fn files(folder: &str) -> Vec<String> {
    let all = fs::read_dir(folder).into_iter().flatten();
    let paths = all.filter_map(|entry| Some(entry.ok()?.path().to_str()?.to_owned()));
    paths.collect()
}

/// SplitMix64, Steele et al. 2014.
pub struct Draws(u64);

impl Draws {
    /// By what `SONDE_SEED` says, or else this.
    pub fn seeded(default: u64) -> Self {
        Self(number("SONDE_SEED", default))
    }

    /// From 0 to below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % bound
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}
