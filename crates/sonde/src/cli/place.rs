//! `sonde place`: its options, lowered to a task.

use super::output::{OutputOptions, PageOptions};
use super::typed;
use crate::failure::Failure;
use crate::place::{self, NAMES, Task, Verify};
use crate::report;
use crate::testbed::{self, HostOptions, LabOptions};
use clap::{Args, Subcommand};
use sonde_fleet::Mpi;
use sonde_link::SiteSpec;
use sonde_place::{Cluster, Launcher, Matrix, Pattern, Topology};
use sonde_sys::file;
use sonde_units::Bytes;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Examples below the help.
pub const EXAMPLES: &str = "Examples:
  sonde place --pattern stencil-2d --network ./plans/examples/networks/two-sites.toml --hosts 4 --slots 2
  sonde place record -- mpirun -np 8 ./prog          counts what an unmodified MPI program sends, into matrix.json
  sonde place --matrix matrix.json --cluster cluster.toml --write openmpi:rankfile --write mpich:hosts
  sonde place --matrix matrix.json --measured latest --slots 4      hosts of the latest `sonde probe pattern all-pairs`
  sonde place --pattern transpose --network ./plans/examples/networks/two-sites.toml --slots 2 --verify
  sonde place --matrix matrix.json --network wan-ds3 --slots 2 --verify -- ./prog
  sonde place --pattern all-to-all --network atm-oc3c --hosts 8 --topology hypercube
  sonde place --pattern ring --site edge-sites --slots 2        hosts behind routers, and lines that they share

A matrix is JSON ({\"schema\": \"sonde-matrix/1\", \"ranks\": N, \"bytes\": [[...]], \"messages\": [[...]]}: row sends to
column), or comma-separated bytes. A cluster is TOML: [[site]] name, hosts, slots, rate, latency; [[trunk]] between, rate,
latency.";

/// What `sonde place` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PlaceOptions {
    #[command(subcommand)]
    task: Option<PlaceTask>,
    #[command(flatten)]
    map: MapOptions,
}

/// What else `sonde place` does.
#[derive(Debug, Subcommand)]
enum PlaceTask {
    /// Run an unmodified MPI program and record its communication matrix: who sends how much to whom.
    #[command(after_help = "Examples:
  sonde place record -- mpirun -np 8 ./prog
  sonde place record --to fft.json -- mpiexec.mpich -n 16 ./fft
  sonde place record --mpi openmpi -- ./job.sh      a script that calls mpirun")]
    Record {
        /// The file for the matrix.
        #[arg(long, value_name = "FILE", default_value_os_t = place::usual_matrix())]
        to: PathBuf,
        /// The program's MPI, where its launcher does not show it: openmpi or mpich.
        #[arg(long, value_parser = place::mpi_named)]
        mpi: Option<Mpi>,
        /// The launcher, its arguments, the program.
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
}

/// What is mapped, onto what.
#[derive(Debug, Args)]
struct MapOptions {
    /// The communication matrix (who sends how much to whom): a file.
    #[arg(long, value_name = "FILE", conflicts_with = "pattern")]
    matrix: Option<PathBuf>,
    /// Or a pattern: stencil-2d (or mesh), stencil-3d, transpose, ring, hypercube, all-to-all, random.
    #[arg(long, value_parser = typed::matrix_pattern)]
    pattern: Option<Pattern>,
    /// Of a pattern: number of ranks [default: as many as slots].
    #[arg(long, conflicts_with = "matrix")]
    ranks: Option<usize>,
    /// Of a pattern: bytes in a message.
    #[arg(long, default_value = "64KiB", value_parser = Bytes::of_option, conflicts_with = "matrix")]
    size: Bytes,
    /// Of a pattern: messages along each pair.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with = "matrix")]
    messages: u64,
    /// The hosts h1 to hN (`--hosts`) of this network: a name of `sonde lab list` or a file of your own, with knobs.
    #[arg(long, value_name = "NAME[:KNOB=VALUE]...", value_parser = typed::network_name(), hide_possible_values = true, conflicts_with_all = ["site", "cluster", "measured"])]
    network: Option<String>,
    /// Or the hosts of a site, of segments that bridges and routers join: a name of `sonde lab list --sites` or a file.
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["cluster", "measured", "hosts"])]
    site: Option<String>,
    /// Or hosts in sites, from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "measured")]
    cluster: Option<PathBuf>,
    /// Or the hosts of a run of `sonde probe pattern all-pairs`: its id or a prefix of it, `latest` or `latest~1`.
    #[arg(long, value_name = "RUN")]
    measured: Option<String>,
    /// The folder of the store: with that run, and for the repetitions of a trial.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = super::OUT)]
    out: PathBuf,
    /// Ranks that a host takes: a number for all, or some by name, as in 4,h1=2.
    #[arg(long, value_name = "N|HOST=N,...", value_delimiter = ',', value_parser = slots)]
    slots: Vec<(Option<String>, usize)>,
    /// Spread ranks over all hosts in proportion to their slots, instead of as many as a host takes.
    #[arg(long)]
    even: bool,
    /// Number of random placements to compare with; that of median cost is shown.
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    draws: u64,
    /// Write the placement for a launcher: openmpi (a rankfile), openmpi-hosts, openmpi-seq, mpich, slurm.
    #[arg(long = "write", value_name = "KIND:FILE", value_parser = file)]
    files: Vec<(Launcher, PathBuf)>,
    /// The placement that is written and whose circuits are computed: mapped, block, round-robin, random.
    #[arg(long, default_value = NAMES[0], value_parser = NAMES)]
    placement: String,
    /// Also compute the virtual circuits: one for each pair of hosts, against those of this topology with hosts that forward: ring,
    /// mesh, mesh:AxB, torus:AxBxC, hypercube.
    #[arg(long)]
    topology: Option<String>,
    /// Try each placement on the emulated network or site: with the program behind `--` (of Open MPI), else with a replay of the matrix.
    #[arg(long)]
    verify: bool,
    /// Of a trial: repetitions of each placement; fewer than 6 give no confidence interval.
    #[arg(short = 'n', long, visible_alias = "repetitions", value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=1_000), requires = "verify")]
    launches: u64,
    #[command(flatten)]
    hosts: HostOptions,
    /// Of a trial: name the run, so that reports find it.
    #[arg(long, visible_alias = "tag", value_name = "NAME", value_parser = typed::run_name, requires = "verify")]
    name: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    page: PageOptions,
    /// Of a trial: the program and its arguments, without a launcher.
    #[arg(last = true, requires = "verify")]
    program: Vec<OsString>,
}

fn slots(text: &str) -> Result<(Option<String>, usize), String> {
    let (host, number) = match text.split_once('=') {
        Some((host, number)) => (Some(host.to_owned()), number),
        None => (None, text),
    };
    let slots = number
        .parse::<usize>()
        .ok()
        .filter(|slots| *slots <= sonde_place::RANKS_MAX);
    slots.map(|slots| (host, slots)).ok_or_else(|| {
        format!(
            "`{number}` is not a number of slots: write 0 to {}, as in 4 or h1=2",
            sonde_place::RANKS_MAX
        )
    })
}

fn file(text: &str) -> Result<(Launcher, PathBuf), String> {
    let (kind, path) = text
        .split_once(':')
        .filter(|(_, path)| !path.is_empty())
        .ok_or("write KIND:FILE, as in openmpi:rankfile")?;
    let launcher = kind
        .parse::<Launcher>()
        .map_err(|error| error.to_string())?;
    Ok((launcher, path.into()))
}

fn read(path: &Path) -> Result<String, Failure> {
    file::text(path).map_err(|error| unread(path, &error))
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", path.display()))
}

impl PlaceOptions {
    /// Runs it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        match self.task {
            Some(PlaceTask::Record { to, mpi, command }) => {
                place::record(&to, mpi, &command).map_err(Failure::passing)
            }
            None => self.map.run(),
        }
    }
}

impl MapOptions {
    fn run(self) -> Result<i32, Failure> {
        if self.matrix.is_none() && self.pattern.is_none() {
            return Err(Failure::usage(
                "the communication matrix is missing: give `--matrix FILE` (`sonde place record` records that of a program) or \
                 `--pattern stencil-2d`",
            ));
        }
        if self.verify && self.network.is_none() && self.site.is_none() {
            return Err(Failure::usage(
                "`--verify` needs an emulated network: name one by `--network`, or a site by `--site`; for your own hosts write files by `--write` and time the \
                 program yourself",
            ));
        }
        if self.page.is_wanted() && !self.verify {
            return Err(Failure::usage(
                "a page is of a run, and nothing is measured here: give `--verify`, or leave `--html` and `--open` out",
            ));
        }
        let print = self.output.take()?;
        let mut cluster = self.cluster()?;
        let matrix = self.matrix(&cluster)?;
        if self.even {
            cluster.even_out(matrix.ranks());
        }
        let is_grouped = self.measured.is_some() && cluster.sites.len() > 1;
        let note = is_grouped.then(|| {
            format!(
                "the measurements divide the hosts into {} groups ({}), taken as sites with one line between each two, at the rate of \
                 its best stream; `--cluster` describes them exactly",
                cluster.sites.len(),
                cluster.sites.join(", ")
            )
        });
        let verify = self.verify.then(|| {
            let mut lab = LabOptions::of_hosts(self.hosts.clone());
            lab.networks = self.network.iter().cloned().collect();
            lab.site.clone_from(&self.site);
            Verify {
                lab,
                launches: self.launches,
                program: self.program.clone(),
                out: self.out.clone(),
                name: self.name.clone(),
                page: self.page.clone().taken(),
            }
        });
        let topology = self
            .topology
            .as_ref()
            .map(|text| Topology::parse(&typed::graph(text), cluster.hosts.len()))
            .transpose()
            .map_err(|error| {
                Failure::usage(format!("--topology: its ranks are the hosts: {error}"))
            })?;
        Task {
            matrix,
            cluster,
            seed: self.hosts.seed,
            draws: self.draws,
            files: self.files,
            chosen: self.placement,
            topology,
            verify,
            notes: note.into_iter().collect(),
            print,
        }
        .run()
    }

    fn cluster(&self) -> Result<Cluster, Failure> {
        let all = self.slots.iter().rev().find(|(host, _)| host.is_none());
        let usual = all.map_or(1, |(_, slots)| *slots);
        let site = match (&self.network, &self.site) {
            (Some(selector), _) => {
                let spec = testbed::network(selector)?;
                Some(SiteSpec::single(spec, self.hosts.count()))
            }
            (None, Some(selector)) => Some(testbed::site(selector)?),
            (None, None) => None,
        };
        let mut cluster = match (&site, &self.cluster, &self.measured) {
            (Some(site), ..) => place::of_site(site, usual)?,
            (None, Some(path), _) => {
                let cluster = sonde_place::parse_cluster(&read(path)?)
                    .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
                self.of_file(cluster, all.map(|(_, slots)| *slots))
            }
            (None, None, Some(run)) => {
                let run = report::load(&self.out, Some(run.as_str()))?;
                let view = sonde_report::matrix::matrix(&run).ok_or_else(|| {
                    Failure::usage(format!(
                        "the run {} did not measure all pairs of hosts: `sonde probe pattern all-pairs` does",
                        run.head.id
                    ))
                })?;
                place::of_pairs(&view, usual)?
            }
            (None, None, None) => {
                return Err(Failure::usage(
                    "the hosts are missing: give `--network NAME`, `--site NAME`, `--cluster FILE` or `--measured latest`",
                ));
            }
        };
        for (host, slots) in &self.slots {
            if let Some(host) = host {
                cluster
                    .set_slots(host, *slots)
                    .map_err(|error| Failure::usage(format!("--slots: {error}")))?;
            }
        }
        Ok(cluster)
    }

    /// A file says slots itself; a number on the command line takes their place.
    fn of_file(&self, mut cluster: Cluster, slots: Option<usize>) -> Cluster {
        if let Some(slots) = slots {
            cluster.hosts.iter_mut().for_each(|host| host.slots = slots);
        }
        cluster
    }

    fn matrix(&self, cluster: &Cluster) -> Result<Matrix, Failure> {
        if let Some(path) = &self.matrix {
            let file = file::bounded(path, file::MADE_BYTES_MAX);
            let file = file.map_err(|error| unread(path, &error))?;
            return Matrix::read(file)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())));
        }
        let pattern = self.pattern.unwrap_or(Pattern::Stencil2d);
        let ranks = self.ranks.unwrap_or_else(|| cluster.slots());
        if self.size.0 > 1 << 30 {
            return Err(Failure::usage(format!(
                "--size {}: a message has at most 1GiB",
                self.size
            )));
        }
        pattern
            .matrix(ranks, self.size.0, self.messages, self.hosts.seed)
            .map_err(|error| Failure::usage(format!("--pattern {pattern}: {error}")))
    }
}
