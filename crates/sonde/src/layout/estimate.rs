//! How long a launch takes, by the model of its network and by what hosts usually take.
//!
//! Units:   nanoseconds, for people and for the progress bar: nothing measured depends on them.
//! Checked: `the_usual_plan_takes_three_minutes`, `all_pairs_of_four_hosts_take_ten_seconds`.

use super::{Block, TestNetwork, left_bps};
use crate::failure::Failure;
use crate::library;
use crate::model::{Bounds, Modelled};
use crate::plan::Work;
use sonde_lab::Profile;
use sonde_measure::files::{Disk, Files, Service};
use sonde_measure::spec::IDLE_NS;
use sonde_measure::{Path, Probe, Procedure, Sampling, Spec};
use sonde_probe::library::{Job, Task};

pub(super) const MILLI_NS: u64 = 1_000_000;
/// What both hosts take for a message, one way.
const HOST_NS: u64 = 25_000;
/// What a launch costs beside measuring: two processes, a port, the reports.
const LAUNCH_NS: u64 = 15 * MILLI_NS;
/// What TCP sends at once on a fresh connection: ten segments.
const WINDOW_BYTES: u64 = 14_480;
/// The second that is not rated, and what follows the window.
const STREAM_BESIDE_NS: u64 = 1_040 * MILLI_NS;
/// What a launch of files takes beside its budget.
const FILES_BESIDE_NS: u64 = 200 * MILLI_NS;

/// A round trip of a message, by the model where there is one.
fn round_trip_ns(net: &TestNetwork, path: Path, size: u64) -> Result<u64, Failure> {
    let Some(model) = &net.model else {
        return Ok(2 * HOST_NS);
    };
    let profile = net.profile.unwrap_or(Profile::MODERN);
    let bounds = Bounds { model, profile };
    Ok(2 * (bounds.one_way(path, size)?.as_nanos() + HOST_NS))
}

/// The time of a launch.
pub(super) fn launch_ns(net: &TestNetwork, block: &Block) -> Result<u64, Failure> {
    let ranks = match &block.work {
        Work::Channel(spec) => return estimate_ns(net, spec),
        Work::Rounds(rounds) => return Ok(rounds.estimate_ns()),
        Work::Ranks(ranks) => ranks,
        Work::Together(_) => unreachable!("it is estimated by its parts"),
    };
    let trip_ns = round_trip_ns(net, Path::Unix, 1)?;
    let line = net.model.as_ref().and_then(Modelled::usable);
    let left = line.map(|rate| left_bps(rate.bps(), block.load.as_ref()));
    let kernel_ns = ranks.kernel_ns(net.testbed);
    let replays_ns = || ranks.replays_ns(trip_ns, left);
    let checks_ns = || ranks.checks_ns(trip_ns);
    let runs_ns = match kernel_ns.or_else(replays_ns).or_else(checks_ns) {
        Some(runs_ns) => runs_ns,
        None => estimate_ns(net, &alike(&ranks.job))?,
    };
    Ok(runs_ns + library::beside_ns(block.path(), block.sizes_bytes(), trip_ns))
}

/// What takes about as long as a job among ranks, over a channel.
fn alike(job: &Job) -> Spec {
    let procedure = match &job.task {
        Task::Startup {} => Procedure::usual(Probe::Startup),
        Task::Stream { window_ns } => Procedure::Stream {
            window_ns: *window_ns,
        },
        Task::Latency(sampling) => Procedure::Latency(*sampling),
        Task::Message(sampling)
        | Task::Batches { sampling, .. }
        | Task::Collective { sampling, .. } => Procedure::Message(*sampling),
        Task::Npb { .. } | Task::Messages { .. } | Task::Check { .. } => {
            Procedure::Message(Sampling::MESSAGE)
        }
    };
    Spec {
        sizes_bytes: job.sizes_bytes.clone(),
        procedure,
        ..Spec::new(procedure.probe(), Path::Unix, job.wait)
    }
}

/// The time of a launch without that of ranks' start.
pub(super) fn estimate_ns(net: &TestNetwork, spec: &Spec) -> Result<u64, Failure> {
    let least = round_trip_ns(net, spec.path, 1)?;
    // The two sides meet, agree, and part.
    let mut sum = LAUNCH_NS + 8 * least;
    for size in &spec.sizes_bytes {
        let trip = match spec.probe() {
            // Its messages are transfers.
            Probe::Files => least,
            _ => round_trip_ns(net, spec.path, *size)?,
        };
        // The window of TCP opens over some round trips.
        let opens = u64::from((size / WINDOW_BYTES + 1).ilog2()) * least;
        sum += match &spec.procedure {
            // Whole: three trips. In steps: neighbour, circuit, handshake, and three messages.
            Procedure::Startup(_) => 2 * LAUNCH_NS + 2 * trip + IDLE_NS,
            Procedure::Latency(sampling) => trips_ns(sampling, trip) + 2 * opens,
            // There whole, back as one byte.
            Procedure::Message(sampling) => trips_ns(sampling, (trip + least) / 2) + opens,
            Procedure::Anatomy(quota) => (quota.samples_max * 2 * trip)
                .min(quota.budget_ns)
                .max(4 * trip),
            Procedure::Rate { quota, .. } => quota.budget_ns + 4 * trip,
            Procedure::Stream { window_ns } => window_ns + STREAM_BESIDE_NS + 2 * trip,
            // The server measures itself, and the file is written and passed once before.
            Procedure::Files(files) if files.service == Service::Ftp => {
                let wire = round_trip_ns(net, spec.path, *size)? / 2;
                files.quota.budget_ns + u64::from(files.clients) * transfers_ns(files, *size, wire)
            }
            Procedure::Files(files) => {
                let clients = u64::from(files.clients);
                files.quota.budget_ns + FILES_BESIDE_NS + (3 * clients + 1) * trip
            }
        };
    }
    Ok(sum)
}

/// What FTP takes beside its budget: five plain streams, and with both disks a put, a discarded round, and the round that outlasts the
/// budget.
fn transfers_ns(files: &Files, size: u64, wire_ns: u64) -> u64 {
    let disk_ns = |disk: Option<Disk>| {
        let rate = disk.map_or(u64::MAX, |disk| disk.rate_bps);
        (u128::from(size) * 8_000_000_000 / u128::from(rate.max(1))) as u64
    };
    let disks_ns = disk_ns(files.disk) + disk_ns(files.ftp.client_disk);
    2 * FILES_BESIDE_NS + 8 * wire_ns + 3 * disks_ns
}

/// Round trips of `trip` nanoseconds each: the first, a warm-up of a quarter of the budget or one round trip, and samples until
/// the budget is used up. That a size ends early, where its median is known, is left out.
fn trips_ns(sampling: &Sampling, trip: u64) -> u64 {
    let warmup = sampling.warmup.saturating_mul(trip);
    let warmup = warmup.min((sampling.budget_ns / 4).saturating_sub(trip).max(trip));
    let samples = sampling.samples_max.saturating_mul(trip);
    // The last one is begun within the budget.
    trip + warmup + samples.min(sampling.budget_ns.next_multiple_of(trip))
}
