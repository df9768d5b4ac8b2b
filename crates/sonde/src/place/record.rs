//! `sonde place record`: an unmodified MPI program run once, with what its ranks send to each other counted.
//!
//! Model:   the counting library is built for the launcher's MPI and loaded into each rank by LD_PRELOAD. A launcher gets it by its own options, so that
//!          it is in the ranks alone: Open MPI `-x NAME=VALUE`, Hydra `-genv NAME VALUE`. Another command, such as a script
//!          that calls mpirun, or srun, gets it in its environment (for Open MPI as OMPI_MCA_mca_base_env_list), and has to
//!          be told by `--mpi` which MPI it will be. Open MPI refuses root until two variables say otherwise: who runs sonde as
//!          root has decided that, so they are set, and said, where the caller has set neither.
//! Source:  mpirun(1) of Open MPI 4.1; the Hydra wiki, "Environment settings".
//! Checked: `launchers_get_it_by_their_options`, `crates/sonde/tests/lab_place.rs`.

use super::folder::Folder;
use super::mpi;
use crate::exit::PASSING;
use crate::failure::Failure;
use sonde_fleet::Mpi;
use sonde_place::Matrix;
use sonde_sys::{file, tell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where ranks find the name of the file.
pub const VARIABLE: &str = "SONDE_MATRIX";
const LAUNCHERS: [&str; 7] = [
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpiexec.hydra",
];

/// Runs the command; its own exit code.
pub fn run(to: &Path, mpi: Option<Mpi>, command: &[OsString]) -> Result<i32, Failure> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| Failure::usage("there is no command"))?;
    let launcher = launcher(program);
    let mpi = match (&launcher, mpi) {
        (_, Some(mpi)) => mpi,
        (true, None) => sonde_fleet::mpi_of(&program.to_string_lossy()).map_err(Failure::cannot)?,
        (false, None) => {
            return Err(Failure::usage(format!(
                "`{}` is not a launcher that sonde knows (mpirun, mpiexec), so it cannot see which MPI it is: say `--mpi openmpi` or `--mpi mpich`",
                program.to_string_lossy()
            )));
        }
    };
    let mut own = None;
    let folder = match mpi::cache() {
        Some(folder) => folder,
        None => own.insert(Folder::new()?).path().to_owned(),
    };
    let library = mpi::counting(mpi, &folder)?;
    let to = std::path::absolute(to).map_err(Failure::cannot)?;
    // What stood there must not be taken for what is counted now.
    match std::fs::remove_file(&to) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(Failure::unwritten(format!(
                "cannot write {}: {e}",
                to.display()
            )));
        }
        _ => {}
    }
    let mut call = Command::new(program);
    if launcher {
        call.args(options(mpi, &library, &to));
    } else {
        environment(&mut call, mpi, &library, &to);
    }
    if matches!(mpi, Mpi::Open(_)) && sonde_sys::process::ids().0 == 0 && !decides_of_root() {
        tell!(
            "sonde: note: Open MPI is allowed to run as root ({})",
            AS_ROOT.join(", ")
        );
        call.envs(AS_ROOT.map(|name| (name, "1")));
    }
    let status = call
        .args(arguments)
        .status()
        .map_err(|e| Failure::cannot(format!("cannot start {}: {e}", program.to_string_lossy())))?;
    let code = status.code().unwrap_or(PASSING);
    report(&to, code)
}

/// What Open MPI 4 and 5 want to find before they run for root.
const AS_ROOT: [&str; 2] = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];

/// Whether the caller has said whether root may.
fn decides_of_root() -> bool {
    AS_ROOT.iter().any(|name| std::env::var_os(name).is_some())
}

/// Whether a command is a launcher, by its name.
fn launcher(program: &OsString) -> bool {
    let name = Path::new(program)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    LAUNCHERS.contains(&name.as_str()) || name == "mpiexec.mpich" || name == "mpirun.mpich"
}

/// What a launcher is told before its own arguments.
pub fn options(mpi: Mpi, library: &Path, to: &Path) -> Vec<OsString> {
    let pairs = [("LD_PRELOAD", library), (VARIABLE, to)];
    let mut words = Vec::new();
    for (name, value) in pairs {
        match mpi {
            Mpi::Open(_) => {
                let mut pair = OsString::from(format!("{name}="));
                pair.push(value);
                words.extend(["-x".into(), pair]);
            }
            Mpi::Hydra => words.extend(["-genv".into(), name.into(), value.into()]),
        }
    }
    words
}

fn environment(call: &mut Command, mpi: Mpi, library: &Path, to: &Path) {
    match mpi {
        Mpi::Open(_) => {
            let list = format!(
                "LD_PRELOAD={};{VARIABLE}={}",
                library.display(),
                to.display()
            );
            call.env("OMPI_MCA_mca_base_env_list", list);
        }
        Mpi::Hydra => {
            call.env("LD_PRELOAD", library).env(VARIABLE, to);
        }
    }
}

/// Says what was counted. Where the program itself failed its code is the command's.
fn report(to: &Path, code: i32) -> Result<i32, Failure> {
    let shown = to.display();
    let file = match file::bounded(to, file::MADE_BYTES_MAX) {
        Ok(file) => file,
        Err(_) if code != 0 => return Ok(code),
        Err(e) => {
            return Err(Failure::cannot(format!(
                "the program ended, but left no matrix in {shown} ({e}): it must call MPI_Init and MPI_Finalize in C (Fortran bindings \
                 of Open MPI bypass the counting), be linked dynamically, and be of the MPI that was counted for (`--mpi`)"
            ))
            .passing());
        }
    };
    let matrix =
        Matrix::read(file).map_err(|e| Failure::cannot(format!("{shown}: {e}")).passing())?;
    let (bytes, messages) = matrix.total();
    tell!(
        "sonde: {} ranks sent {messages} messages, {} to each other{}: {shown}",
        matrix.ranks(),
        sonde_report::bytes(bytes),
        matrix.time_ns.map_or_else(String::new, |ns| format!(
            " in {}",
            sonde_report::time(ns as f64)
        )),
    );
    Ok(code)
}

/// The usual file.
pub fn usual() -> PathBuf {
    "matrix.json".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_get_it_by_their_options() {
        let words = |mpi| -> Vec<String> {
            let all = options(mpi, Path::new("/c/l.so"), Path::new("/m.json"));
            all.into_iter()
                .map(|word| word.into_string().unwrap())
                .collect()
        };
        assert_eq!(
            words(Mpi::Open(4)),
            ["-x", "LD_PRELOAD=/c/l.so", "-x", "SONDE_MATRIX=/m.json"]
        );
        assert_eq!(
            words(Mpi::Hydra),
            [
                "-genv",
                "LD_PRELOAD",
                "/c/l.so",
                "-genv",
                "SONDE_MATRIX",
                "/m.json"
            ]
        );
        assert!(launcher(&"/usr/bin/mpirun.openmpi".into()) && launcher(&"mpiexec.mpich".into()));
        assert!(!launcher(&"srun".into()) && !launcher(&"./run.sh".into()));
        let refused = run(Path::new("m"), None, &["./run.sh".into()]).unwrap_err();
        assert_eq!(refused.code(), 64);
    }
}
