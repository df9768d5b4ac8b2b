//! Placements tried out: a program under each of them on the network itself, emulated.
//!
//! Model:   a lab of the network runs for the whole trial; each round launches the program once under each placement, in an
//!          order drawn anew, by Open MPI on h1 with a host a rank (`--map-by seq`). `random` is a new draw each round. The
//!          time is the program's own: of a program from the end of MPI_Init to the beginning of MPI_Finalize on the slowest
//!          rank, as the counting library says; where no program is given the matrix is replayed and says it itself. Each launch is
//!          in the store before the next; one that fails ends the trial.
//! Source:  Open MPI finds in the lab what it finds in every one: nothing bound, yield when idle, TCP over eth0 alone
//!          (`crates/lab/src/libraries.rs`).
//! Checked: `a_plan_is_written`, `crates/sonde/tests/lab_place.rs`.

use super::folder::Folder;
use super::kept::{Launch, TrialRun};
use super::outcome::Measured;
use super::{mpi, record};
use crate::campaign::unix_ns;
use crate::failure::Failure;
use crate::testbed::LabOptions;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_fleet::Mpi;
use sonde_lab::{Exec, Lab};
use sonde_measure::Run;
use sonde_place::{Cluster, Launcher, Matrix, Placement, Topology};
use sonde_record::{Store, StoreError};
use sonde_sys::epoll::{Epoll, Event, Interest};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A launch that takes longer has hung.
const LAUNCH_MAX: Duration = Duration::from_secs(300);
/// The most rounds of a replay, and the most bytes of one of its messages.
const ROUNDS_MAX: u64 = 200;
const MESSAGE_MAX: u64 = 1 << 30;
const SIGKILL: i32 = 9;

/// A placement under trial; `random` draws its own.
pub struct Entrant<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Where the ranks are in a round, from 0.
    pub placement: Box<dyn Fn(u64) -> Placement + 'a>,
    /// Of a replay: hosts forward along the circuits of this topology.
    pub forwarded: Option<Topology>,
}

/// What is tried.
pub struct Trial<'a> {
    /// The lab.
    pub lab: LabOptions,
    /// Its hosts.
    pub cluster: &'a Cluster,
    /// What the program sends; what is replayed where there is no program.
    pub matrix: &'a Matrix,
    /// The program and its arguments; empty: a replay.
    pub program: &'a [OsString],
    /// How often each placement is launched.
    pub launches: u64,
    /// Where the order begins.
    pub seed: u64,
    /// The folder of the store.
    pub out: &'a Path,
    /// What the run is called.
    pub name: Option<&'a str>,
}

/// What a trial gave.
pub struct TrialResult {
    /// The times of each entrant, in nanoseconds.
    pub times: Vec<Vec<u64>>,
    /// The run in the store.
    pub run: Run,
    /// Why some of it may be missing there.
    pub trouble: Option<StoreError>,
}

/// How the program is started.
struct Start {
    launcher: &'static str,
    folder: Folder,
    /// Where the program's own time is told.
    result: PathBuf,
    /// Options of the launcher.
    before: Vec<OsString>,
    /// The program and its arguments.
    words: Vec<OsString>,
}

impl Trial<'_> {
    /// Launches everything.
    ///
    /// # Errors
    /// What could not be started or launched.
    pub fn run(&self, entrants: &[Entrant<'_>]) -> Result<TrialResult, Failure> {
        let start = self.start()?;
        let store = Store::open(self.out).map_err(Failure::cannot)?;
        let (lab, config) = self.lab.start()?;
        let names: Vec<&str> = entrants.iter().map(|entrant| entrant.name).collect();
        let mut kept = TrialRun::begin(store, self, &names, &lab, &config)?;
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut times = vec![Vec::new(); entrants.len()];
        for round in 0..self.launches {
            for at in order(entrants.len(), &mut random) {
                let entrant = &entrants[at];
                let placement = (entrant.placement)(round);
                let exec = Exec {
                    cpus: config.cpus.hosts.clone(),
                    ..Exec::here(&self.argv(&start, &placement, entrant)?, false)
                };
                drop(std::fs::remove_file(&start.result));
                lab.mark()?;
                let (began_unix_ns, began) = (unix_ns(), Instant::now());
                let time_ns = launch(&lab, &exec, &start.folder, entrant.name)
                    .and_then(|()| time_of(&start.result, &start.folder, entrant.name));
                let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let launched = Launch {
                    at,
                    index: round,
                    placement: &placement,
                    began_unix_ns,
                    took_ns,
                    time_ns: time_ns.as_ref().copied().map_err(ToString::to_string),
                    report: lab.report().ok(),
                };
                kept.launched(self.cluster, launched);
                match time_ns {
                    Ok(time_ns) => times[at].push(time_ns),
                    Err(failure) => {
                        // That it failed is said first.
                        drop(kept.end(self.out));
                        return Err(failure);
                    }
                }
            }
        }
        lab.stop()?;
        let (run, trouble) = kept.end(self.out);
        Ok(TrialResult {
            times,
            run,
            trouble,
        })
    }

    fn start(&self) -> Result<Start, Failure> {
        let launcher = ["mpirun.openmpi", "mpirun"].into_iter().find(|name| {
            mpi::on_path(name).is_some() && matches!(sonde_fleet::mpi_of(name), Ok(Mpi::Open(_)))
        });
        let launcher = launcher.ok_or_else(|| {
            Failure::cannot("`--verify` starts programs by Open MPI's mpirun, which is not in PATH: install it (Debian: openmpi-bin, libopenmpi-dev)")
        })?;
        let folder = Folder::new()?;
        let result = folder.file("result.json");
        let (mut words, mut before) = (self.program.to_vec(), Vec::new());
        if self.program.is_empty() {
            words = vec![
                mpi::replay(Mpi::Open(4), folder.path())?.into(),
                folder.file("plan").into(),
                result.clone().into(),
            ];
        } else {
            let library = mpi::counting(Mpi::Open(4), folder.path())?;
            before = record::options(Mpi::Open(4), &library, &result);
        }
        Ok(Start {
            launcher,
            folder,
            result,
            before,
            words,
        })
    }

    /// The command of a launch, whose files are written.
    fn argv(
        &self,
        start: &Start,
        placement: &Placement,
        entrant: &Entrant<'_>,
    ) -> Result<Vec<OsString>, Failure> {
        if self.program.is_empty() {
            let route = self.routes(placement, entrant.forwarded.as_ref())?;
            start.folder.write("plan", &plan(self.matrix, route))?;
        }
        let hosts = Launcher::OpenMpiSeq.file(placement, self.cluster);
        let hosts = start.folder.write("hosts", &hosts)?;
        let mut argv: Vec<OsString> = vec![start.launcher.into()];
        argv.extend(["-np".into(), self.matrix.ranks().to_string().into()]);
        argv.extend(["--map-by", "seq", "--hostfile"].map(OsString::from));
        argv.push(hosts.into());
        argv.extend(start.before.iter().cloned());
        argv.extend(start.words.iter().cloned());
        Ok(argv)
    }
}

impl Trial<'_> {
    /// By which ranks a message goes: from the one to the other, or by the first rank of each host on the way.
    fn routes(
        &self,
        placement: &Placement,
        forwarded: Option<&Topology>,
    ) -> Result<impl Fn(usize, usize) -> Vec<usize>, Failure> {
        let hosts = self.cluster.hosts.len();
        let first: Vec<Option<usize>> = (0..hosts)
            .map(|host| placement.hosts().iter().position(|at| *at == host))
            .collect();
        if let Some(empty) = first
            .iter()
            .position(Option::is_none)
            .filter(|_| forwarded.is_some())
        {
            return Err(Failure::usage(format!(
                "{} has no rank, so it cannot forward in a trial: use as many ranks as hosts at least, and `--even`",
                self.cluster.hosts[empty].name
            )));
        }
        let (placement, forwarded) = (placement.clone(), forwarded.cloned());
        Ok(move |from: usize, to: usize| {
            let (a, b) = (placement.host(from), placement.host(to));
            let Some(topology) = forwarded.as_ref().filter(|_| a != b) else {
                return vec![from, to];
            };
            let way = topology.way(a, b);
            let between = way[1..way.len() - 1].iter().filter_map(|host| first[*host]);
            std::iter::once(from).chain(between).chain([to]).collect()
        })
    }
}

/// Runs it on h1 to its end.
fn launch(lab: &Lab, exec: &Exec, folder: &Folder, name: &str) -> Result<(), Failure> {
    let output = folder.file("output");
    let broken =
        |e: std::io::Error| Failure::cannot(format!("cannot write {}: {e}", output.display()));
    let written = File::create(&output).map_err(broken)?;
    let nothing = File::open("/dev/null").map_err(broken)?;
    let streams = [nothing.as_fd(), written.as_fd(), written.as_fd()];
    let (session, _) = lab.exec(1, exec, streams)?;
    let epoll = Epoll::new()?;
    epoll.add(session.fd(), 0, Interest::Read)?;
    let mut events = [Event::EMPTY; 1];
    if epoll.wait(&mut events, Some(LAUNCH_MAX))?.is_empty() {
        session.signal(SIGKILL)?;
        return Err(Failure::cannot(format!(
            "a repetition under the placement `{name}` had not ended after {} s{}",
            LAUNCH_MAX.as_secs(),
            said(folder)
        )));
    }
    match session.wait()?.code() {
        0 => Ok(()),
        code => Err(Failure::cannot(format!(
            "a repetition under the placement `{name}` ended with code {code}{}",
            said(folder)
        ))),
    }
}

/// The end of what a launch wrote.
fn said(folder: &Folder) -> String {
    let text = std::fs::read(folder.file("output")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(12)..];
    if last.is_empty() {
        String::new()
    } else {
        format!(": {}", last.join(" | "))
    }
}

fn time_of(result: &Path, folder: &Folder, name: &str) -> Result<u64, Failure> {
    let text = std::fs::read_to_string(result).map_err(|e| {
        Failure::cannot(format!(
            "a repetition under the placement `{name}` ended with code 0, but reported no time ({e}): a program must call MPI_Init and \
             MPI_Finalize in C \
             and be of Open MPI{}",
            said(folder)
        ))
    })?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(Failure::cannot)?;
    value["time_ns"]
        .as_u64()
        .ok_or_else(|| Failure::cannot(format!("there is no time in {text}")))
}

/// A shuffled order of `count`.
fn order(count: usize, random: &mut Pcg64Mcg) -> Vec<usize> {
    let mut order: Vec<_> = (0..count).collect();
    for at in (1..count).rev() {
        let with = ((u128::from(random.next_u64()) * (at as u128 + 1)) >> 64) as usize;
        order.swap(at, with);
    }
    order
}

/// What a replay does: as many rounds as a pair has messages on average, and in each a message of its share from each to each, by
/// the ranks that `route` gives.
fn plan(matrix: &Matrix, route: impl Fn(usize, usize) -> Vec<usize>) -> String {
    let ranks = matrix.ranks();
    let all = (0..ranks * ranks).map(|at| (at / ranks, at % ranks));
    let pairs: Vec<_> = all
        .filter(|(from, to)| {
            from != to && (matrix.bytes(*from, *to), matrix.messages(*from, *to)) != (0, 0)
        })
        .collect();
    let (_, messages) = matrix.total();
    let most = pairs
        .iter()
        .map(|(from, to)| matrix.bytes(*from, *to))
        .max()
        .unwrap_or(0);
    let rounds = (messages / pairs.len().max(1) as u64)
        .clamp(1, ROUNDS_MAX)
        .max(most.div_ceil(MESSAGE_MAX));
    let mut text = format!("{ranks} {rounds}\n");
    for (from, to) in pairs {
        let route = route(from, to);
        let words: Vec<_> = route.iter().map(usize::to_string).collect();
        let bytes = matrix.bytes(from, to).div_ceil(rounds);
        text += &format!("{bytes} {} {}\n", route.len() - 1, words.join(" "));
    }
    text
}

/// What came of the launches of each entrant beside those of the first.
pub fn compared(times: &[Vec<u64>], seed: u64) -> Vec<Measured> {
    let first = &times[0];
    let of = |(at, mine): (usize, &Vec<u64>)| {
        let mut sorted = mine.clone();
        sorted.sort_unstable();
        let p50_ns = sorted
            .get((sorted.len().max(1) - 1) / 2)
            .copied()
            .unwrap_or(0);
        let ratio = (at > 0)
            .then(|| sonde_stats::ratio(mine, first, seed))
            .flatten();
        Measured {
            times_ns: mine.clone(),
            p50_ns,
            ratio: ratio.map(|ratio| ratio.value),
            ratio_low: ratio.map(|ratio| ratio.low),
            ratio_high: ratio.map(|ratio| ratio.high),
            apart: (at > 0)
                .then(|| sonde_stats::is_apart(mine, first, 0.05, seed))
                .flatten(),
        }
    };
    times.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_written() {
        let straight = |from: usize, to: usize| vec![from, to];
        let mut matrix = Matrix::new(3).unwrap();
        matrix.add(0, 1, 1_000, 4);
        matrix.add(2, 0, 10, 2);
        matrix.add(1, 1, 99, 9);
        assert_eq!(plan(&matrix, straight), "3 3\n334 1 0 1\n4 1 2 0\n");
        let round = |from: usize, to: usize| vec![from, 3 - from - to, to];
        assert_eq!(plan(&matrix, round), "3 3\n334 2 0 2 1\n4 2 2 1 0\n");
        let mut large = Matrix::new(2).unwrap();
        large.add(0, 1, 3 << 30, 1);
        assert_eq!(plan(&large, straight), format!("2 3\n{} 1 0 1\n", 1 << 30));
        assert_eq!(plan(&Matrix::new(2).unwrap(), straight), "2 1\n");
    }

    #[test]
    fn launches_are_compared_with_the_first() {
        let fast: Vec<u64> = (100..106).collect();
        let slow: Vec<u64> = (200..206).collect();
        let [own, other] = &compared(&[fast.clone(), slow.clone()], 1)[..] else {
            panic!()
        };
        assert_eq!((own.ratio, own.apart, own.p50_ns), (None, None, 102));
        assert!(
            other.apart == Some(true) && other.ratio_low.unwrap() > 1.8,
            "{other:?}"
        );
        let few = compared(&[fast[..5].to_vec(), slow], 1);
        assert_eq!((few[1].ratio, few[1].apart), (None, None));
    }

    #[test]
    fn orders_are_whole() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let orders: std::collections::BTreeSet<_> =
            (0..40).map(|_| order(4, &mut random)).collect();
        assert!(orders.len() > 5);
        for mut one in orders {
            one.sort_unstable();
            assert_eq!(one, [0, 1, 2, 3]);
        }
    }
}
