//! The MPIs of this machine: which one a launcher is of, and C sources built with their compilers.
//!
//! Model:   a source is part of this program, and is built when it is needed, into a folder for such things
//!          (`$XDG_CACHE_HOME/sonde`, `~/.cache/sonde`) or one of the caller's; a build is moved into its place whole. Ranks load
//!          it, so that a folder in which others can write is never taken.
//! Checked: `crates/sonde/tests/lab_place.rs`.

use super::folder;
use crate::failure::Failure;
use sonde_fleet::Mpi;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Counts what MPI programs send.
pub const COUNTING: &str = include_str!("../../../../adapters/pmpi.c");
/// Talks as a matrix says.
pub const REPLAY: &str = include_str!("../../../../adapters/replay.c");

/// The words by which an MPI is chosen.
pub fn named(text: &str) -> Result<Mpi, String> {
    match text {
        "openmpi" => Ok(Mpi::Open(4)),
        "mpich" => Ok(Mpi::Hydra),
        _ => Err(format!("`{text}` is not an MPI: write openmpi or mpich")),
    }
}

/// What its files are called by.
pub const fn name(mpi: Mpi) -> &'static str {
    match mpi {
        Mpi::Open(_) => "openmpi",
        Mpi::Hydra => "mpich",
    }
}

/// The user's folder for builds; none where there is none that is the user's alone.
pub fn cache() -> Option<PathBuf> {
    std::fs::create_dir_all(of_user()?).ok()?;
    builds()
}

/// The same, if it is there.
pub fn builds() -> Option<PathBuf> {
    of_user().filter(|folder| folder::is_private(folder))
}

fn of_user() -> Option<PathBuf> {
    let caches = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    Some(caches?.join("sonde"))
}

/// The compiler of an MPI: Debian's name for it, else the usual one where `mpirun` is of that MPI.
fn compiler(mpi: Mpi) -> Result<PathBuf, Failure> {
    let own = format!("mpicc.{}", name(mpi));
    let found = on_path(&own).or_else(|| {
        let usual = on_path("mpicc")?;
        let launcher = usual.with_file_name("mpirun");
        let is_ours = sonde_fleet::mpi_of(&launcher.to_string_lossy())
            .is_ok_and(|found| name(found) == name(mpi));
        is_ours.then_some(usual)
    });
    found.ok_or_else(|| {
        let package = match mpi {
            Mpi::Open(_) => "libopenmpi-dev",
            Mpi::Hydra => "libmpich-dev",
        };
        Failure::cannot(format!(
            "there is no compiler of {} (`{own}`, or its `mpicc`) in PATH: install it (Debian: {package})",
            name(mpi)
        ))
    })
}

/// Where a program is.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&folders).map(|folder| folder.join(program));
    all.find(|path| path.is_file())
}

/// Builds the counting library for an MPI.
pub fn counting(mpi: Mpi, folder: &Path) -> Result<PathBuf, Failure> {
    let to = folder.join(format!("pmpi-{}.so", name(mpi)));
    build(mpi, COUNTING, &to, &["-shared", "-fPIC"])?;
    Ok(to)
}

/// Builds the program that talks as a matrix says.
pub fn replay(mpi: Mpi, folder: &Path) -> Result<PathBuf, Failure> {
    let to = folder.join("replay");
    build(mpi, REPLAY, &to, &[])?;
    Ok(to)
}

fn build(mpi: Mpi, source: &str, to: &Path, options: &[&str]) -> Result<(), Failure> {
    let compiler = compiler(mpi)?;
    let shown = compiler.display();
    let part = to.with_extension(format!("{}.part", std::process::id()));
    let file = to.with_extension(format!("{}.c", std::process::id()));
    let cannot = |e: std::io::Error| Failure::cannot(format!("cannot build {}: {e}", to.display()));
    std::fs::write(&file, source).map_err(cannot)?;
    let made = Command::new(&compiler)
        .args(["-O2", "-o"])
        .arg(&part)
        .args(options)
        .arg(&file)
        .arg("-lpthread")
        .stdin(Stdio::null())
        .output();
    drop(std::fs::remove_file(&file));
    let made = made.map_err(|e| Failure::cannot(format!("cannot start {shown}: {e}")))?;
    if !made.status.success() {
        drop(std::fs::remove_file(&part));
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(Failure::cannot(format!(
            "{shown} cannot build {}: {}",
            to.display(),
            said.trim()
        )));
    }
    std::fs::rename(&part, to).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_say_how_they_are_built() {
        for name in ["openmpi", "mpich"] {
            assert_eq!(super::name(named(name).unwrap()), name);
            assert!(COUNTING.contains(&format!("mpicc.{name}")));
        }
        assert!(named("lam").unwrap_err().contains("openmpi or mpich"));
        assert!(REPLAY.contains("mpicc.openmpi"));
        assert!(on_path("no-such-program-anywhere").is_none());
    }
}
