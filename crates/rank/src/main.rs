//! `sonde-rank`: one rank of a message-passing library.
//!
//! Model:   it joins the others, by sonde's own engine or by an adapter, runs its job, and rank 0 writes the report behind a
//!          marker line. Whatever goes wrong is said once on standard error, with the rank and its host, and the others are
//!          told. Exit codes: 0 done, 1 failed, 64 usage.
//! Checked: `tests/lab_library.rs` of the command, and `arguments`.
#![forbid(unsafe_code)]
// What is told goes by `sonde_sys::tell!`, which does not panic.
#![deny(clippy::print_stderr)]

mod arguments;
mod leavings;
mod meeting;

use std::process::ExitCode;

use arguments::{Joins, Order, USAGE};
use sonde_adapter::{Options, meet};
use sonde_message::{BEST, Best, Comm, Library, Messenger, Path, adapters};
use sonde_probe::library::{During, Job, MARKER, Marks, Report, Task, Way, begun};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu;
use sonde_sys::tell;
use sonde_workload::npb::Problem;
use sonde_workload::npb::launch::Launch;
use sonde_workload::replay;

const FAILED: u8 = 1;
const USED_WRONGLY: u8 = 64;

fn main() -> ExitCode {
    let marks = begun();
    let order = match arguments::parse(std::env::args().skip(1)) {
        Ok(order) => order,
        Err(what) => {
            tell!("sonde-rank: {what}\n\nusage: {USAGE}");
            return ExitCode::from(USED_WRONGLY);
        }
    };
    let done = match order {
        Order::Check(path) => check(path),
        Order::Be { joins, cpus, job } => be(&joins, &cpus, &job, marks),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            tell!("sonde-rank: {what}");
            ExitCode::from(FAILED)
        }
    }
}

/// Whether ranks can be joined by this path here, as far as that is known without beginning.
fn check(path: Path) -> Result<(), String> {
    if path.library == Library::Native {
        return Ok(());
    }
    let found = adapters::find(path.library.name());
    found
        .map(drop)
        .map_err(|absent| format!("{absent}; it is compiled against {}", package(path.library)))
}

/// What is to be installed for a library, on Debian.
fn package(library: Library) -> &'static str {
    match library {
        Library::Native => "nothing",
        Library::OpenMpi => "Open MPI (libopenmpi-dev, openmpi-bin)",
        Library::Mpich => "MPICH (libmpich-dev, mpich)",
        Library::Pvm => "PVM (pvm-dev, pvm)",
        Library::Ucx => "UCX (libucx-dev)",
        Library::Ofi => "libfabric (libfabric-dev)",
    }
}

fn be(joins: &Joins, cpus: &[Vec<usize>], job: &Job, mut marks: Marks) -> Result<(), String> {
    let mut beside = None;
    let _sweeper = match joins {
        Joins::Adapter { path, .. } if path.to_string() == "ofi:shm" => leavings::Sweeper::begin(),
        _ => None,
    };
    let opened: Result<Box<dyn Messenger>, String> = match joins {
        Joins::Native => native(job, &mut beside),
        Joins::Adapter {
            path,
            settings,
            ranks,
        } => adapter(*path, settings, *ranks, job, &mut beside),
    };
    let mut messenger = opened.map_err(|what| format!("on {}: {what}", hostname()))?;
    marks.open_ns = monotonic_ns();
    let rank = messenger.rank(Comm::WORLD);
    let named = |what: String| format!("rank {rank} on {}: {what}", hostname());
    if let Some(own) = cpus.get(rank).filter(|own| !own.is_empty()) {
        cpu::pin_pid(std::process::id(), own).map_err(|error| named(error.to_string()))?;
    }
    let done = run(job, &mut *messenger, marks).map_err(|what| {
        let what = named(what);
        messenger.abort(&what);
        what
    });
    if let Some(report) = done? {
        let text = serde_json::to_string(&report).map_err(|error| named(error.to_string()))?;
        // Before the end: what was measured is not lost by a library that does not end well.
        println!("{MARKER}\n{text}");
    }
    messenger
        .finish()
        .map_err(|error| named(error.to_string()))?;
    // Those beside wait for its end too, in the sockets by which they met.
    drop(messenger);
    beside.map_or(Ok(()), meeting::Beside::end)
}

/// Does the job, of which kernels and their messages are not in the probe's room; the report, at rank 0.
fn run(job: &Job, messenger: &mut dyn Messenger, marks: Marks) -> Result<Option<Report>, String> {
    let done = match &job.task {
        Task::Npb {
            kernel,
            size,
            age,
            trace,
            ..
        } => {
            let problem = Problem::named(kernel, size).map_err(|error| error.to_string())?;
            problem.admits(messenger.size(Comm::WORLD))?;
            let mut launch =
                Launch::new(problem, *age, *trace).until(job.during.and_then(During::end_ns));
            job.run_kernel(messenger, marks, |messenger, is_last| {
                launch.once(messenger, is_last)
            })
        }
        Task::Messages { asked, .. } => {
            let sequence = replay::launch::sequence(asked, messenger.size(Comm::WORLD));
            let sequence = sequence.map_err(|error| error.to_string())?;
            job.run_messages(messenger, marks, |messenger| {
                replay::launch::once(&sequence, messenger)
            })
        }
        _ => job.run(messenger, marks),
    };
    done.map_err(|error| format!("{error}; {}", error.remedy()))
}

fn native(job: &Job, beside: &mut Option<meeting::Beside>) -> Result<Box<dyn Messenger>, String> {
    let told = meeting::told()?;
    *beside = Some(meeting::Beside::start(&told)?);
    let join = |way: &Way| {
        let joined = meeting::bootstrap(&told, way, job)?.join();
        joined.map_err(|error| format!("rank {}: {error}", told.rank))
    };
    if told.transport != BEST {
        return join(meeting::sole(&told)?);
    }
    let named = |way: &Way| Ok((way.name.clone(), join(way)?));
    let ways: Result<Vec<_>, String> = told.ways.iter().map(named).collect();
    let best = Best::measured(ways?);
    let best = best.map_err(|error| format!("rank {}: {error}", told.rank))?;
    Ok(Box::new(best.with_timeout(job.timeout())))
}

fn adapter(
    path: Path,
    settings: &[(String, String)],
    ranks: Option<usize>,
    job: &Job,
    beside: &mut Option<meeting::Beside>,
) -> Result<Box<dyn Messenger>, String> {
    let file = adapters::find(path.library.name()).map_err(|absent| absent.to_string())?;
    let mut options = Options {
        timeout: job.timeout(),
        settings: settings.to_vec(),
        ranks,
        ..Options::default()
    };
    match path.library {
        Library::Pvm => {
            options
                .settings
                .push(("route".into(), path.transport.into()));
            options.command = std::env::args().collect();
        }
        Library::Ucx | Library::Ofi => {
            let transport = ("transport".into(), path.transport.into());
            options.settings.push(transport);
            let told = meeting::told()?;
            *beside = Some(meeting::Beside::start(&told)?);
            let boot = meeting::bootstrap(&told, meeting::sole(&told)?, job)?;
            options.bootstrap = Some(meet(boot).map_err(|error| error.to_string())?);
        }
        Library::OpenMpi | Library::Mpich | Library::Native => {}
    }
    let loaded = sonde_adapter::open(&file, options);
    loaded
        .map(|loaded| Box::new(loaded) as Box<dyn Messenger>)
        .map_err(|error| error.to_string())
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "this host".into(), |name| name.trim().into())
}
