//! An MPI's own launcher: `mpirun` starts an agent on each host of its allocation or host file, whatever that is.
//!
//! Model:   which MPI it is comes from `mpirun --version`; Open MPI is asked for one process a node, MPICH's Hydra (and Intel
//!          MPI, which is one) likewise. Neither says beforehand which hosts those are: each agent says how many were started.
//! Source:  mpirun(1) of Open MPI 4.1 and 5.0; mpiexec of MPICH 4.0 and 4.2.
//! Checked: `makes_are_told_apart`, `arguments_are_each_ones_own`; `crates/sonde/tests/lab_slurm.rs`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{FleetError, Result};

const ATTEMPT: &str = "start agents by mpirun";

/// Which MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// Open MPI of this major version.
    Open(u32),
    /// MPICH, MVAPICH or Intel MPI.
    Hydra,
}

impl Make {
    pub(crate) fn of(version: &str) -> Option<Self> {
        if version.contains("Open MPI") || version.contains("OpenRTE") || version.contains("PRRTE")
        {
            let digits = version.split(|letter: char| !letter.is_ascii_digit());
            let major = digits.filter_map(|digits| digits.parse().ok()).next();
            return Some(Self::Open(major.unwrap_or(4)));
        }
        let hydra = [
            "HYDRA",
            "Hydra",
            "MPICH",
            "Intel(R) MPI",
            "mvapich",
            "MVAPICH",
        ];
        hydra
            .iter()
            .any(|word| version.contains(word))
            .then_some(Self::Hydra)
    }

    /// One process a node, bound to no CPU, with the token in its environment.
    fn arguments(self, as_root: bool) -> Vec<&'static str> {
        let mut words = match self {
            Self::Open(_) => vec![
                "--map-by",
                "ppr:1:node",
                "--bind-to",
                "none",
                "-x",
                super::TOKEN_VARIABLE,
            ],
            Self::Hydra => vec!["-ppn", "1", "-genvall"],
        };
        if let Self::Open(..=4) = self {
            // An agent that fails is that host's loss alone.
            words.extend(["--mca", "orte_abort_on_non_zero_status", "0"]);
        }
        if as_root && matches!(self, Self::Open(_)) {
            words.push("--allow-run-as-root");
        }
        words
    }
}

/// Which MPI a launcher is of, by what it says of its version.
///
/// # Errors
/// It cannot be started, or says neither.
pub fn mpi_of(launcher: &str) -> std::result::Result<Make, String> {
    let version = Command::new(launcher)
        .arg("--version")
        .output()
        .map_err(|error| format!("cannot start {launcher}: {error}"))?;
    let text = [version.stdout, version.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    Make::of(&text).ok_or_else(|| {
        let first = text.lines().next().unwrap_or("nothing").to_owned();
        format!("`{launcher} --version` says `{first}`, which is neither Open MPI nor MPICH")
    })
}

/// What is to be started.
pub(crate) struct Ready {
    make: Make,
    launcher: String,
    arguments: Vec<String>,
    program: PathBuf,
}

impl Ready {
    pub(super) fn find(program: &Path, arguments: &[String]) -> Result<Self> {
        let (launcher, arguments) = named(arguments);
        let make = mpi_of(&launcher).map_err(|problem| {
            let remedy = if problem.contains("--version") {
                "start the agents yourself: `--testbed listen:N`"
            } else {
                REMEDY("not found")
            };
            FleetError::of_all(ATTEMPT, problem, remedy)
        })?;
        Ok(Self {
            make,
            launcher,
            arguments: arguments.to_vec(),
            program: program.into(),
        })
    }

    pub(super) fn command(&self, at: SocketAddr) -> Command {
        let as_root = sonde_sys::process::ids().0 == 0;
        let mut command = Command::new(&self.launcher);
        command
            .args(self.make.arguments(as_root))
            .args(&self.arguments);
        command.arg(&self.program);
        command.args(["agent", "--connect", &at.to_string()]);
        command
    }
}

/// The program, and its arguments.
fn named(arguments: &[String]) -> (String, &[String]) {
    match arguments.split_first() {
        Some((first, rest)) if first.contains("mpirun") || first.contains("mpiexec") => {
            (first.clone(), rest)
        }
        _ => ("mpirun".into(), arguments),
    }
}

/// What to do about what it said.
pub(super) const REMEDY: fn(&str) -> &'static str = |said| {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["not found"]) {
        "put an mpirun into PATH (`module load openmpi`; Debian: openmpi-bin or mpich), or name it: `--testbed mpirun:/opt/mpi/bin/mpirun`"
    } else if has(&["slots", "No executable", "No such file", "execvp"]) {
        "see whether `mpirun hostname` runs with the same arguments, and put sonde where all hosts see it"
    } else {
        "see whether `mpirun hostname` runs with the same arguments on two hosts at least"
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_are_told_apart() {
        for (text, make) in [
            (
                "mpirun (Open MPI) 4.1.4\n\nReport bugs to",
                Some(Make::Open(4)),
            ),
            ("mpirun (Open MPI) 5.0.3", Some(Make::Open(5))),
            (
                "HYDRA build details:\n    Version:  4.0.2",
                Some(Make::Hydra),
            ),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.9",
                Some(Make::Hydra),
            ),
            ("GNU bash 5.2", None),
            ("", None),
        ] {
            assert_eq!(Make::of(text), make, "{text}");
        }
    }

    #[test]
    fn arguments_are_each_ones_own() {
        let root = Make::Open(4).arguments(true);
        assert!(
            root.contains(&"--allow-run-as-root")
                && root.contains(&"orte_abort_on_non_zero_status")
        );
        assert!(!Make::Open(5).arguments(false).contains(&"--mca"));
        assert!(!Make::Hydra.arguments(true).contains(&"--allow-run-as-root"));
        let words: Vec<String> = ["/opt/mpirun", "-f", "hosts"].map(Into::into).to_vec();
        let (program, rest) = named(&words);
        assert_eq!((program.as_str(), rest.len()), ("/opt/mpirun", 2));
        assert_eq!(named(&words[1..]).0, "mpirun");
    }

    #[test]
    fn what_is_no_mpi_is_refused() {
        let said = |word: &str| {
            Ready::find(Path::new("/x"), &[word.into()])
                .err()
                .unwrap()
                .to_string()
        };
        assert!(said("/nowhere/mpirun").contains("openmpi-bin"));
    }
}
