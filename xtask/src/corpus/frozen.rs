//! The files of the corpus: read, written, compressed by `xz` where they are large.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use sonde_measure::Run;
use sonde_record::Store;

use super::program::Folder;
use super::{Files, Kind, Manifest};

const STORE: &str = "sonde.db";
const XZ: &str = "xz";
/// What the command printed when it measured: kept for reading, not compared.
const PRINTED: &str = "printed.txt";
/// The tables and findings, for which a commit is looked at.
const SHOWN: &str = "show.txt";
/// Files that are kept as they are, so that a change shows in a commit: the others are compressed.
const PLAIN_BYTES_MAX: usize = 2_000;

/// The frozen stores, unpacked once.
#[derive(Debug)]
pub struct Stores {
    folder: Folder,
    corpus: PathBuf,
}

impl Stores {
    /// Those of this corpus.
    ///
    /// # Errors
    /// No temporary folder can be made.
    pub fn new(corpus: &Path) -> Result<Self> {
        Ok(Self {
            folder: Folder::new("corpus")?,
            corpus: corpus.to_path_buf(),
        })
    }

    /// A folder with a copy of a run's store as `sonde.db`; what earlier calls did to it is undone.
    ///
    /// # Errors
    /// There is none, or `xz` is not installed.
    pub fn copy(&self, name: &str) -> Result<PathBuf> {
        let to = self.folder.path().join(name);
        std::fs::create_dir_all(&to)?;
        let packed = self
            .corpus
            .join("runs")
            .join(name)
            .join(format!("{STORE}.{XZ}"));
        let pristine = self.folder.path().join(format!("{name}.db"));
        if !pristine.exists() {
            std::fs::write(&pristine, unpack(&packed)?)?;
        }
        std::fs::copy(&pristine, to.join(STORE))?;
        Ok(to)
    }

    /// What changes of a run's store when it is brought up to this version, as measuring into it does: the runs that do.
    ///
    /// # Errors
    /// It cannot be read or brought up.
    pub fn changed_by_version(&self, name: &str) -> Result<Vec<String>> {
        let folder = self.copy(name)?;
        let all = |store: Store| -> Result<Vec<Run>> {
            let heads = store.runs()?.into_iter();
            Ok(heads
                .map(|head| store.load(&head.id))
                .collect::<Result<_, _>>()?)
        };
        let (before, after) = (all(Store::read(&folder)?)?, all(Store::open(&folder)?)?);
        let pairs = before.into_iter().zip(after);
        let changed = pairs.filter(|(before, after)| before != after);
        Ok(changed.map(|(before, _)| before.head.id).collect())
    }

    /// The names of its runs, the oldest first.
    ///
    /// # Errors
    /// It is not a store.
    pub fn runs(&self, name: &str) -> Result<Vec<String>> {
        let store = Connection::open(self.copy(name)?.join(STORE))?;
        let mut ids = store.prepare("SELECT id FROM run ORDER BY began_unix_ns, id")?;
        let ids = ids.query_map([], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }
}

fn unpack(path: &Path) -> Result<Vec<u8>> {
    let output = Command::new(XZ)
        .arg("-dc")
        .arg(path)
        .output()
        .context("starting xz, which unpacks the corpus: install xz-utils")?;
    ensure!(
        output.status.success(),
        "{}: {}",
        path.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}

fn pack(bytes: &[u8], to: &Path) -> Result<()> {
    let mut child = Command::new(XZ)
        .args(["-9e", "-c"])
        .stdin(Stdio::piped())
        .stdout(std::fs::File::create(to)?)
        .spawn()
        .context("starting xz, which packs the corpus: install xz-utils")?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(bytes)?;
    }
    ensure!(
        child.wait()?.success(),
        "xz could not write {}",
        to.display()
    );
    Ok(())
}

/// All texts of a folder, unpacked; no store.
///
/// # Errors
/// A file cannot be read.
pub fn read(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if is_of_its_time(&path) {
            continue;
        }
        let (name, bytes) = match name.strip_suffix(".xz") {
            Some(name) => (name.to_owned(), unpack(&path)?),
            None => (name, std::fs::read(&path)?),
        };
        files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(files)
}

/// Writes texts in place of those that are there; a store stays.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, files: &Files) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !is_of_its_time(&path) {
            std::fs::remove_file(path)?;
        }
    }
    files
        .iter()
        .try_for_each(|(name, text)| write_one(folder, name, text))
}

fn write_one(folder: &Path, name: &str, text: &str) -> Result<()> {
    let is_long = name.starts_with("completions") || name.starts_with("networks.json");
    let is_plain = name == SHOWN || (folder.ends_with(super::INVENTORY) && !is_long);
    if text.len() <= PLAIN_BYTES_MAX || is_plain {
        return Ok(std::fs::write(folder.join(name), text)?);
    }
    pack(text.as_bytes(), &folder.join(format!("{name}.{XZ}")))
}

/// Whether a file is of the time of the measurement, and never made anew.
fn is_of_its_time(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(STORE) || name.starts_with(PRINTED)
}

/// Keeps a store, without what its pages have free.
///
/// # Errors
/// It is none, or cannot be written.
pub fn keep_store(from: &Path, folder: &Path) -> Result<()> {
    let fresh = Folder::new("store")?;
    let copy = fresh.path().join(STORE);
    std::fs::copy(from, &copy)?;
    let store = Connection::open(&copy)?;
    store.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM")?;
    drop(store);
    pack(
        &std::fs::read(&copy)?,
        &folder.join(format!("{STORE}.{XZ}")),
    )
}

/// Takes over what scripts/corpus.sh made, in place of all that is there.
///
/// # Errors
/// A file cannot be read or written.
pub fn take(from: &Path, corpus: &Path, manifest: &Manifest) -> Result<()> {
    let runs = corpus.join("runs");
    if runs.exists() {
        std::fs::remove_dir_all(&runs)?;
    }
    for entry in &manifest.run {
        let (old, new) = (from.join("runs").join(&entry.name), runs.join(&entry.name));
        std::fs::create_dir_all(&new)?;
        match entry.kind {
            Kind::Store => {
                keep_store(&old.join(STORE), &new).with_context(|| entry.name.clone())?;
                let printed = std::fs::read_to_string(old.join("out.txt")).unwrap_or_default();
                write_one(&new, PRINTED, &printed)?;
            }
            Kind::Said => {
                let mut files = read(&old).with_context(|| entry.name.clone())?;
                files.retain(|name, text| {
                    name != "code" && !text.is_empty() && !name.ends_with(".html")
                });
                write(&new, &files)?;
            }
        }
    }
    std::fs::copy(from.join("MANIFEST.toml"), corpus.join("MANIFEST.toml"))?;
    Ok(())
}

/// Digits as `N`.
pub fn folded(text: &str) -> String {
    let mut folded = String::new();
    for character in text.chars() {
        if !character.is_ascii_digit() {
            folded.push(character);
        } else if !folded.ends_with('N') {
            folded.push('N');
        }
    }
    folded
}

/// Bytes of all files below a folder.
///
/// # Errors
/// A folder cannot be read.
pub fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
