//! Starting this program again as the ranks of a library, each wait with an end.

use std::fmt;
use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sonde_message::adapters;

use crate::rank;

/// What ranks wait for each other.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// All ranks have ended by then, or are ended.
const LIMIT: Duration = Duration::from_secs(150);
const PVM_ROOT: &str = "/usr/lib/pvm3";

/// One at a time: each has as many ranks as this machine can bear.
static ONE: Mutex<()> = Mutex::new(());

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    OpenMpi,
    Mpich,
    PvmDefault,
    PvmDirect,
    UcxTcp,
    UcxPosix,
    OfiTcp,
    OfiShm,
}

impl Library {
    pub const ALL: [Self; 8] = [
        Self::OpenMpi,
        Self::Mpich,
        Self::PvmDefault,
        Self::PvmDirect,
        Self::UcxTcp,
        Self::UcxPosix,
        Self::OfiTcp,
        Self::OfiShm,
    ];

    /// Its adapter's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::PvmDefault | Self::PvmDirect => "pvm",
            Self::UcxTcp | Self::UcxPosix => "ucx",
            Self::OfiTcp | Self::OfiShm => "ofi",
        }
    }

    /// Options of the library, `name=value` with commas.
    fn settings(self) -> &'static str {
        match self {
            Self::OpenMpi | Self::Mpich => "",
            Self::PvmDefault => "route=default,encoding=default",
            Self::PvmDirect => "route=direct,encoding=inplace",
            Self::UcxTcp | Self::OfiTcp => "transport=tcp",
            Self::UcxPosix => "transport=posix",
            Self::OfiShm => "transport=shm",
        }
    }
}

/// How the ranks ended.
pub struct Ended {
    /// Of what was started: mpirun, or rank 0.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, took) = (self.code, self.took);
        write!(
            f,
            "code {code:?} after {took:?}\n{}\n{}",
            self.stdout, self.stderr
        )
    }
}

/// Runs `job` on `ranks` ranks.
///
/// # Errors
/// What is missing for it on this machine.
pub fn run(library: Library, job: &str, ranks: usize) -> Result<Ended, String> {
    let alone = ONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let adapter = adapter(library.name())?;
    let own = std::env::current_exe().unwrap();
    let rank = |program: &mut Command| {
        program
            .env(rank::JOB, job)
            .env(rank::ADAPTER, &adapter)
            .env(rank::SETTINGS, library.settings())
            .env(rank::RANKS, ranks.to_string())
            .env("RUST_BACKTRACE", "0");
    };
    let count = ranks.to_string();
    let mut first = Command::new(&own);
    let ended = match library {
        Library::OpenMpi => {
            let mut mpirun = program("mpirun.openmpi")?;
            mpirun.args([
                "--allow-run-as-root",
                "--oversubscribe",
                "--bind-to",
                "none",
            ]);
            mpirun.args(["--mca", "mpi_yield_when_idle", "1", "-np", &count]);
            rank(mpirun.arg(&own).args(rank::ARGUMENTS));
            finished(vec![mpirun])
        }
        Library::Mpich => {
            let mut mpiexec = program("mpiexec.mpich")?;
            mpiexec.args(["-bind-to", "none", "-n", &count]);
            rank(mpiexec.arg(&own).args(rank::ARGUMENTS));
            finished(vec![mpiexec])
        }
        Library::PvmDefault | Library::PvmDirect => {
            let machine = Machine::start()?;
            rank(machine.within(first.args(rank::ARGUMENTS)));
            finished(vec![first])
        }
        _ => {
            // Free now; nobody else takes it so soon.
            let port = TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port();
            let one = |number: usize| {
                let mut one = Command::new(&own);
                rank(one.args(rank::ARGUMENTS));
                one.env(rank::RANK, number.to_string());
                one.env(rank::PORT, port.to_string());
                one
            };
            finished((0..ranks).map(one).collect())
        }
    };
    drop(alone);
    Ok(ended)
}

/// The adapter's file: $SONDE_ADAPTERS, else where scripts/build.sh puts it.
fn adapter(library: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap().join("adapters");
    let named = std::env::var_os(adapters::VARIABLE).map(PathBuf::from);
    let folders: Vec<PathBuf> = named.into_iter().chain([built]).collect();
    adapters::find_in(library, &folders).map_err(|absent| absent.to_string())
}

fn program(name: &str) -> Result<Command, String> {
    match Command::new(name).arg("--version").output() {
        Ok(_) => Ok(Command::new(name)),
        Err(_) => Err(format!("no {name}")),
    }
}

type Reader = JoinHandle<String>;

fn reader(mut stream: impl Read + Send + 'static) -> Reader {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // What was read until then is what is told.
        drop(stream.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Starts all and waits for them: the code of the first that failed, else of the first.
fn finished(commands: Vec<Command>) -> Ended {
    let begin = Instant::now();
    let start = |mut command: Command| -> (Child, Reader, Reader) {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        (child, reader(out), reader(err))
    };
    let mut started: Vec<_> = commands.into_iter().map(start).collect();
    let mut codes = Vec::new();
    for (child, ..) in &mut started {
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if begin.elapsed() > LIMIT {
                drop(child.kill());
                drop(child.wait());
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        codes.push(status.and_then(|status| status.code()));
    }
    let took = begin.elapsed();
    let (mut stdout, mut stderr) = (String::new(), String::new());
    for (_, out, err) in started {
        stdout += &out.join().unwrap();
        stderr += &err.join().unwrap();
    }
    let failed = codes.iter().find(|code| **code != Some(0));
    Ended {
        code: *failed.unwrap_or(&codes[0]),
        stdout,
        stderr,
        took,
    }
}

/// A virtual machine of PVM of this host alone, in a folder of its own; both go with it.
struct Machine {
    daemon: Child,
    folder: PathBuf,
}

impl Machine {
    fn start() -> Result<Self, String> {
        let program = PathBuf::from(PVM_ROOT).join("lib/pvmd");
        if !program.exists() {
            return Err(format!("no {}", program.display()));
        }
        let folder = std::env::temp_dir().join(format!("sonde-pvm-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(program);
        environment(&mut command, &folder);
        let daemon = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let machine = Self { daemon, folder };
        let begin = Instant::now();
        // It is ready when its socket's address is in a file.
        while !machine.is_ready() {
            if begin.elapsed() > LIMIT {
                return Err("pvmd did not begin".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(machine)
    }

    fn is_ready(&self) -> bool {
        let entries = std::fs::read_dir(&self.folder).unwrap();
        entries.flatten().any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("pvmd.") && entry.metadata().is_ok_and(|data| data.len() > 0)
        })
    }

    fn within<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        environment(command, &self.folder);
        let passed = [rank::JOB, rank::ADAPTER, rank::SETTINGS, rank::RANKS];
        command.env("PVM_EXPORT", passed.join(":"))
    }
}

fn environment(command: &mut Command, folder: &std::path::Path) {
    command
        .env("PVM_ROOT", PVM_ROOT)
        .env("PVM_ARCH", "LINUX64")
        .env("PVM_DPATH", format!("{PVM_ROOT}/lib/pvmd"))
        .env("PVM_ALLOW_ROOT", "1")
        .env("PVM_TMP", folder)
        .env("PVM_VMID", format!("sonde{}", std::process::id()));
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It ends its tasks when it is told to end.
        let number = self.daemon.id().to_string();
        drop(Command::new("kill").args(["-TERM", &number]).status());
        let begin = Instant::now();
        while self.daemon.try_wait().is_ok_and(|status| status.is_none()) {
            if begin.elapsed() > Duration::from_secs(10) {
                drop(self.daemon.kill());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
