//! What hosts have of programs: `sonde-rank` and the launchers of libraries, looked up once a host.
//!
//! Model:   `sonde-rank` is looked for where `SONDE_RANK` says, beside the command that runs the agent, and in PATH; where a host
//!          does not see the file, it has none. It says itself whether it can open a library's path there.
//!          On real hosts a library's launcher goes on by the ssh of the host where it runs, which is tried beforehand.
//! Checked: `lab_library` and `lab_hosts` of the command.

use std::collections::BTreeMap;
use std::time::Duration;

use sonde_message::{Library, Path};
use sonde_probe::Program;

use super::{RanksAsk, failed, went_well, words};
use crate::error::FleetError;
use crate::fleet::Fleet;
use crate::placement::Placement;
use crate::ssh::remedy_of_ssh;

/// What looking for a program may take.
const LOOK: Duration = Duration::from_secs(20);
/// Says where `sonde-rank` is: of its arguments the first that is a program, else in PATH or where users install programs.
const FIND_RANK: &str = "for file in \"$SONDE_RANK\" \"$@\" \"$(command -v sonde-rank)\" \
    \"$HOME/.local/bin/sonde-rank\" \"$HOME/.cargo/bin/sonde-rank\"; do \
    if [ -n \"$file\" ] && [ -f \"$file\" ] && [ -x \"$file\" ]; then echo \"$file\"; exit 0; fi; done; exit 1";
const NO_RANK: &str = "there is no program `sonde-rank` here: put it beside `sonde` or into PATH (on a real host into the PATH of a \
     command that ssh runs, or ~/.local/bin, with the folder `adapters` beside it), or say where it is in SONDE_RANK";

/// What is known of the hosts so far.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    ranks: BTreeMap<usize, Result<String, String>>,
    paths: BTreeMap<(usize, Path), Result<(), String>>,
    launchers: BTreeMap<(usize, Library), Result<String, String>>,
    /// From a host to another one, by what was tried.
    reached: BTreeMap<(usize, String), Result<(), String>>,
}

impl Fleet {
    /// Where `sonde-rank` is on a host that can be reached by this path from there; or why not.
    pub(crate) fn tool(&mut self, key: (usize, Placement), path: Path) -> Result<String, String> {
        let rank = self.rank_program(key)?;
        if let Some(known) = self.tools.paths.get(&(key.0, path)) {
            return known.clone().map(|()| rank);
        }
        let found = match path.library {
            Library::Native => Ok(()),
            Library::Pvm | Library::Ucx | Library::Ofi => Ok(()),
            Library::OpenMpi | Library::Mpich => self.launcher(key, path.library).map(drop),
        };
        let found = found.and_then(|()| self.opens(key, &rank, path));
        if self.has_told(key) {
            self.tools.paths.insert((key.0, path), found.clone());
        }
        found.map(|()| rank)
    }

    /// Where `sonde-rank` is on all these hosts: a launcher starts it everywhere by the same path. There is a seat at least.
    pub(super) fn one_tool(
        &mut self,
        ask: &RanksAsk,
        seats: &[(usize, Placement)],
    ) -> Result<String, FleetError> {
        let mut at = |seat: (usize, Placement)| {
            let found = self.tool(seat, ask.path);
            found.map_err(|why| failed(ask, format!("{}: {why}", self.name(seat.0)), ""))
        };
        let first = at(seats[0])?;
        for seat in &seats[1..] {
            let found = at(*seat)?;
            if found != first {
                let (here, there) = (self.name(seats[0].0), self.name(seat.0));
                let what = format!("sonde-rank is {first} on {here} and {found} on {there}");
                let remedy = "put it to the same place, or set SONDE_RANK";
                return Err(failed(ask, what, remedy));
            }
        }
        Ok(first)
    }

    /// Whether what a library starts on this host can go on to another one; why not, where ssh is what takes it there.
    pub(super) fn goes_on(
        &mut self,
        key: (usize, Placement),
        to: usize,
        library: Library,
    ) -> Result<(), String> {
        let command = match library {
            Library::Native | Library::Ucx | Library::Ofi => return Ok(()),
            // In a lab its own shell does it, on one machine none, and in an allocation its launcher.
            _ if self.machines.remote_shell().is_some() => return Ok(()),
            Library::Pvm => self.machines.route(to),
            Library::OpenMpi | Library::Mpich => self.machines.route(to).map(|_| {
                let options = "-o BatchMode=yes -o LogLevel=ERROR -o ConnectTimeout=10";
                format!("ssh {options} {}", self.address_of(to))
            }),
        };
        let Some(command) = command else {
            return Ok(());
        };
        if let Some(known) = self.tools.reached.get(&(key.0, command.clone())) {
            return known.clone();
        }
        let program = Program::new(["sh", "-c", &format!("exec {command} true")], LOOK);
        let tried = self
            .run_program(key, program, "try ssh to the next host")
            .map_err(unasked)
            .and_then(|ran| {
                if went_well(&ran) {
                    return Ok(());
                }
                let (said, address) = (ran.errors.trim(), self.address_of(to).to_string());
                Err(format!(
                    "{} goes on from here by ssh, and `ssh {address} true` must work on {} without a password: it {}{}: {}",
                    library.name(),
                    self.name(key.0),
                    ran.told(),
                    words(said),
                    remedy_of_ssh(said, &address),
                ))
            });
        if self.has_told(key) {
            self.tools.reached.insert((key.0, command), tried.clone());
        }
        tried
    }

    /// Whether `sonde-rank` has what this path takes.
    fn opens(&mut self, key: (usize, Placement), rank: &str, path: Path) -> Result<(), String> {
        let mut program = Program::new([rank, "--check", &path.to_string()], LOOK);
        program.environment = self.rank_environment();
        let ran = self
            .run_program(key, program, "ask sonde-rank what it has")
            .map_err(unasked)?;
        if went_well(&ran) {
            return Ok(());
        }
        let said = ran.errors.trim();
        Err(match said.strip_prefix("sonde-rank: ") {
            Some(why) => why.to_string(),
            None => format!("sonde-rank {}{}", ran.told(), words(said)),
        })
    }

    /// Whether the agent is there after what it was asked. Of what it did not tell because it ended nothing is kept: the next one may.
    fn has_told(&mut self, key: (usize, Placement)) -> bool {
        let agent = self.agents.0.get_mut(&key);
        agent.is_some_and(|agent| agent.is_usable())
    }

    fn rank_program(&mut self, key: (usize, Placement)) -> Result<String, String> {
        if let Some(known) = self.tools.ranks.get(&key.0) {
            return known.clone();
        }
        let mut argv = vec!["sh".to_string(), "-c".into(), FIND_RANK.into(), "sh".into()];
        argv.extend(self.tools_beside());
        let found = self
            .run_program(key, Program::new(argv, LOOK), "look for sonde-rank")
            .map_err(unasked)
            .and_then(|ran| match ran.output.lines().next() {
                Some(file) if went_well(&ran) => Ok(file.trim().to_string()),
                _ => Err(NO_RANK.into()),
            });
        if self.has_told(key) {
            self.tools.ranks.insert(key.0, found.clone());
        }
        found
    }

    /// Where it would be as this command sees it, which hosts of this machine do too.
    fn tools_beside(&self) -> Vec<String> {
        let own = std::env::var("SONDE_RANK").ok();
        let beside = std::env::current_exe().ok().and_then(|exe| {
            let file = exe.parent()?.join("sonde-rank");
            Some(file.to_str()?.to_string())
        });
        own.into_iter().chain(beside).collect()
    }

    /// The program that starts ranks of an MPI: of the two under its own name, or under the common one.
    pub(super) fn launcher(
        &mut self,
        key: (usize, Placement),
        library: Library,
    ) -> Result<String, String> {
        if let Some(known) = self.tools.launchers.get(&(key.0, library)) {
            return known.clone();
        }
        let (names, sign, package): (&[&str], _, _) = match library {
            Library::OpenMpi => (
                &["mpirun.openmpi", "mpirun"],
                "Open MPI",
                "install Open MPI (openmpi-bin)",
            ),
            _ => (
                &["mpiexec.mpich", "mpiexec.hydra", "mpiexec"],
                "HYDRA",
                "install MPICH (mpich)",
            ),
        };
        let mut found = Err(format!(
            "there is no launcher of {} here ({}): {package}",
            library.name(),
            names.join(", ")
        ));
        for name in names {
            let program = Program::new([name, "--version"], LOOK);
            match self.run_program(key, program, "look for a launcher") {
                Ok(ran) if ran.output.contains(sign) || ran.errors.contains(sign) => {
                    found = Ok((*name).to_string());
                    break;
                }
                Err(error) if !self.has_told(key) => return Err(unasked(error)),
                // It is of another library, or not there.
                Ok(_) | Err(_) => {}
            }
        }
        self.tools.launchers.insert((key.0, library), found.clone());
        found
    }
}

/// Why a host could not be asked, for a sentence that names the host.
fn unasked(error: FleetError) -> String {
    FleetError {
        host: None,
        ..error
    }
    .to_string()
}
