//! What cargo says of the crates of this workspace, with the dependencies and targets that each names itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// One crate, as `cargo metadata` describes it.
#[derive(Debug, Default, Deserialize)]
pub struct Package {
    /// As cargo calls it: `sonde-link`.
    pub name: String,
    /// Absolute.
    pub manifest_path: PathBuf,
    /// Of every kind, those of tests and build scripts too.
    pub dependencies: Vec<Dependency>,
    /// Libraries, programs, tests, benches, examples.
    pub targets: Vec<Target>,
}

/// A crate that another names.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// As cargo calls it.
    pub name: String,
    /// Where a crate of this workspace lies; none for one from a registry.
    pub path: Option<PathBuf>,
}

/// What one root file is built into.
#[derive(Debug, Deserialize)]
pub struct Target {
    /// As cargo calls it.
    pub name: String,
    /// `lib`, `bin`, `test`, `bench`, `example`, `custom-build`.
    pub kind: Vec<String>,
    /// The root file, absolute.
    pub src_path: PathBuf,
}

/// What `cargo metadata --no-deps` says of the workspace.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Its crates.
    pub packages: Vec<Package>,
    /// Its root, absolute.
    pub workspace_root: PathBuf,
}

impl Metadata {
    /// The folder of a crate, relative to the root.
    pub fn folder_of<'a>(&self, package: &'a Package) -> &'a Path {
        let folder = package.manifest_path.parent().unwrap_or(Path::new(""));
        folder.strip_prefix(&self.workspace_root).unwrap_or(folder)
    }
}

/// Asks cargo for the crates of the workspace at `root`.
///
/// # Errors
/// cargo cannot be started, refuses a manifest, or answers something else than its metadata.
pub fn cargo_metadata(root: &Path) -> Result<Metadata> {
    let output = Command::new(cargo())
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root)
        .output()
        .context("starting `cargo metadata`")?;
    if !output.status.success() {
        bail!(
            "`cargo metadata` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("reading the answer of `cargo metadata`")
}

/// The cargo that runs this program, else the one in PATH.
pub fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
