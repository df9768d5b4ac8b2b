//! What the adapter costs: a ping-pong of 8 bytes through it beside one of 30 lines of C over the same library.
//!
//! Model:   launches of both alternate, so that both meet the same machine; a launch gives the median of its batches (half
//!          a round trip), and told is the median of the launches, and the least. Shared memory within this machine.
//!
//! `cargo run --release -p sonde-adapter --example overhead -- [openmpi|mpich|pvm:default|pvm:direct] [launches]`; for PVM
//! a virtual machine of its own is started, also as root, and its tasks are found by absolute names.

#[path = "../../tests/libraries/machine.rs"]
mod machine;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use machine::Machine;
use sonde_adapter::{Options, open};
use sonde_message::{Comm, Messenger, Source, Tagged, adapters};

/// Names the adapter, in a rank.
const ADAPTER: &str = "SONDE_OVERHEAD_ADAPTER";
const ROUTE: &str = "SONDE_OVERHEAD_ROUTE";
const LAUNCHES: usize = 11;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    if let Ok(adapter) = std::env::var(ADAPTER) {
        return rank(Path::new(&adapter));
    }
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "openmpi".into());
    let launches = arguments.next().map_or(Ok(LAUNCHES), |text| text.parse())?;
    let (library, route) = path.split_once(':').unwrap_or((&path, "default"));
    let own = std::env::current_exe()?;
    let built = own.ancestors().nth(2).ok_or("no folder")?.join("adapters");
    let mut folders = adapters::folders();
    folders.push(built);
    let adapter = adapters::find_in(library, &folders)?;
    let reference = reference(library)?;
    let machine = match library {
        "pvm" => Some(Machine::start()?),
        _ => None,
    };
    let machine = machine.as_ref();
    let (mut direct, mut adapted) = (Vec::new(), Vec::new());
    for _ in 0..launches {
        direct.push(launch(library, route, &reference, None, machine)?);
        adapted.push(launch(library, route, &own, Some(&adapter), machine)?);
    }
    drop(std::fs::remove_file(reference));
    for of in [&mut direct, &mut adapted] {
        of.sort_by(f64::total_cmp);
    }
    let middle = |of: &[f64]| of[of.len() / 2];
    println!("{path}, 8 B, half a round trip, {launches} launches of each in turn:");
    for (name, of) in [("C", &direct), ("adapter", &adapted)] {
        println!(
            "  {name:<8} median {:.1} ns, least {:.1} ns",
            middle(of),
            of[0]
        );
    }
    let (median, least) = (middle(&adapted) - middle(&direct), adapted[0] - direct[0]);
    println!(
        "  more:    median {median:+.1} ns ({:.3}), least {least:+.1} ns ({:.3})",
        middle(&adapted) / middle(&direct),
        adapted[0] / direct[0]
    );
    Ok(())
}

/// Compiles the program in C.
fn reference(library: &str) -> Outcome<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/overhead");
    let program = std::env::temp_dir().join(format!("sonde-overhead-{}", std::process::id()));
    let (compiler, source, links): (_, _, &[&str]) = match library {
        "openmpi" => ("mpicc.openmpi", "mpi.c", &[]),
        "mpich" => ("mpicc.mpich", "mpi.c", &[]),
        "pvm" => ("cc", "pvm.c", &["-lpvm3"]),
        other => return Err(format!("no reference for `{other}`: openmpi, mpich, pvm").into()),
    };
    let mut command = Command::new(compiler);
    command.arg("-O2").arg(folder.join(source)).args(links);
    let status = command.arg("-o").arg(&program).status()?;
    if !status.success() {
        return Err(format!("{compiler} refuses {source}").into());
    }
    Ok(program)
}

/// Starts two ranks and takes what rank 0 tells.
fn launch(
    library: &str,
    route: &str,
    program: &Path,
    adapter: Option<&Path>,
    machine: Option<&Machine>,
) -> Outcome<f64> {
    let mut command = match library {
        "openmpi" => {
            let mut mpirun = Command::new("mpirun.openmpi");
            mpirun.args(["--allow-run-as-root", "--bind-to", "none", "-np", "2"]);
            mpirun
        }
        "mpich" => {
            let mut mpiexec = Command::new("mpiexec.mpich");
            mpiexec.args(["-bind-to", "none", "-n", "2"]);
            mpiexec
        }
        _ => Command::new(program),
    };
    if library != "pvm" {
        command.arg(program);
    } else if adapter.is_none() {
        command.arg(route);
    }
    if let Some(adapter) = adapter {
        command.env(ADAPTER, adapter).env(ROUTE, route);
    }
    if let Some(machine) = machine {
        machine.within(&mut command, &[ADAPTER, ROUTE]);
    }
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let told = said.lines().find_map(|line| line.strip_prefix("ns "));
    let wrong = || {
        format!(
            "{command:?}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    };
    Ok(told.ok_or_else(wrong)?.parse()?)
}

/// One of two ranks.
fn rank(adapter: &Path) -> Outcome<()> {
    let mut options = Options {
        ranks: Some(2),
        command: vec![std::env::current_exe()?.display().to_string()],
        ..Options::default()
    };
    let pvm = adapter.ends_with(adapters::file_name("pvm"));
    if pvm {
        let route = std::env::var(ROUTE)?;
        options.settings = vec![("route".into(), route), ("encoding".into(), "raw".into())];
    }
    // As many as the programs in C make.
    let (batches, rounds) = if pvm { (40, 50) } else { (400, 500) };
    let mut messenger = open(adapter, options)?;
    let world = Comm::WORLD;
    let (first, other) = (messenger.rank(world) == 0, 1 - messenger.rank(world));
    let (from, tag) = (Source::Rank(other), Tagged::With(1));
    let mut data = [0; 8];
    let mut each = Vec::with_capacity(batches);
    for _ in 0..batches {
        let begin = Instant::now();
        for _ in 0..rounds {
            if first {
                messenger.send(world, other, 1, &data)?;
                messenger.recv(world, from, tag, &mut data)?;
            } else {
                messenger.recv(world, from, tag, &mut data)?;
                messenger.send(world, other, 1, &data)?;
            }
        }
        each.push(begin.elapsed().as_nanos() as f64 / rounds as f64 / 2.0);
    }
    each.sort_by(f64::total_cmp);
    if first {
        println!("\nns {:.1}", each[batches / 2]);
    }
    messenger.finish()?;
    Ok(())
}
