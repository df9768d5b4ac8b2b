//! Starting this program again as the ranks of a library, each wait with an end.

use std::fmt;
use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sonde_message::adapters;

use super::machine::Machine;
use super::rank;

/// What ranks wait for each other.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// All ranks have ended by then, or are ended.
const LIMIT: Duration = Duration::from_secs(150);

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
    /// When the last rank was gone, whoever started it, since 1970.
    pub gone: Duration,
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
    let mark = mark();
    let rank = |program: &mut Command| {
        program
            .env(rank::MARK, &mark)
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
            finished(vec![mpirun], &mark)
        }
        Library::Mpich => {
            let mut mpiexec = program("mpiexec.mpich")?;
            mpiexec.args(["-bind-to", "none", "-n", &count]);
            rank(mpiexec.arg(&own).args(rank::ARGUMENTS));
            finished(vec![mpiexec], &mark)
        }
        Library::PvmDefault | Library::PvmDirect => {
            let machine = Machine::start()?;
            let passed = [
                rank::MARK,
                rank::JOB,
                rank::ADAPTER,
                rank::SETTINGS,
                rank::RANKS,
            ];
            rank(machine.within(first.args(rank::ARGUMENTS), &passed));
            finished(vec![first], &mark)
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
            finished((0..ranks).map(one).collect(), &mark)
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
fn finished(commands: Vec<Command>, mark: &str) -> Ended {
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
    // Those that a daemon has started end after the first.
    while begin.elapsed() < LIMIT && has_ranks(mark) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let gone = rank::since_1970();
    for (child, ..) in &started {
        swept(child.id());
    }
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
        gone,
    }
}

/// Takes away what libfabric's shm left of a process that was killed: its segments are named for it.
fn swept(process: u32) {
    let begin = format!("{process}:");
    for entry in std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_name().to_string_lossy().starts_with(&begin) {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// What the ranks of one start have in their environment, and no other process.
fn mark() -> String {
    static STARTS: AtomicU32 = AtomicU32::new(0);
    let number = STARTS.fetch_add(1, Ordering::Relaxed);
    format!("{}.{number}", std::process::id())
}

/// Whether a process with this mark runs.
fn has_ranks(mark: &str) -> bool {
    let wanted = format!("{}={mark}", rank::MARK);
    let is_one = |entry: std::io::Result<std::fs::DirEntry>| {
        let all = std::fs::read(entry.ok()?.path().join("environ")).ok()?;
        all.split(|byte| *byte == 0)
            .any(|one| one == wanted.as_bytes())
            .then_some(())
    };
    let mut processes = std::fs::read_dir("/proc").unwrap();
    processes.any(|entry| is_one(entry).is_some())
}
