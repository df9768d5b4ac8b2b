//! What is said of one network: its stream beside what is possible, and a small message taken apart.
//!
//! Model:   the stream is the fastest of TCP on the idle network. The one-way time of the smallest message is told of two paths: the MPI that
//!          is quickest over all networks and PVM by its daemons (else from task to task); where they are not there sonde's
//!          own engine, TCP and UDP, in this order. Its parts are the model's time, what the transport takes above it with its hosts, and
//!          what the library takes above the transport at equal wait. A part that is not known is null; one that is not distinguishable
//!          from 0 says so.
//! Units:   nanoseconds of half a round trip, bits a second.
//! Checked: the tests of `screen`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Line, Number, ResultRow};

use super::{bps, is_floor};
use crate::files::{self, FilesCell};
use crate::index::{Index, LATENCY, p50};
use crate::kernels::{KernelRow, kernels};
use crate::library::{LibraryRow, beneath, libraries, wire_ns};

/// What was found of a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssessedNetwork {
    /// The network.
    pub network: String,
    /// Whether it is this machine's loopback beside networks.
    pub is_floor: bool,
    /// What a stream of TCP can reach; null where that is not known.
    pub possible_bps: Option<u64>,
    /// What the fastest one reached; null where none was measured.
    pub reached_bps: Option<u64>,
    /// Whether a disturbance leaves it uncertain.
    pub is_stream_disturbed: bool,
    /// The one-way times, in the order of `paths`; null where the path was not measured here.
    pub one_way: Vec<Option<OneWay>>,
    /// The kernel's time over that on one host; null where it was not measured on both.
    pub kernel_times: Option<Number>,
    /// What files of a server on another host reach, a service and operation each.
    #[serde(default)]
    pub files: Vec<AssessedFiles>,
}

/// What files of a server reach on a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssessedFiles {
    /// The path, as `nfs3:tcp`.
    pub path: String,
    /// Its name, as `NFS v3`.
    pub name: String,
    /// `read` or `write`.
    pub operation: String,
    /// The fastest of its cells.
    pub reached_bps: u64,
    /// Whether a disturbance leaves it uncertain.
    pub is_disturbed: bool,
}

/// A path whose small messages are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssessedPath {
    /// The path, as `openmpi:tcp`.
    pub path: String,
    /// Its name, as `Open MPI`.
    pub name: String,
}

/// The one-way time of a small message, and its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneWay {
    /// All of it.
    pub whole_ns: u64,
    /// The network's model; null where there is none.
    pub wire_ns: Option<u64>,
    /// The transport and the hosts above it, or all of the transport where the wire is not known; null where that was not measured.
    pub hosts_ns: Option<u64>,
    /// The library above the transport; null of a transport, and where that was not measured.
    pub library_ns: Option<i64>,
    /// Whether the hosts' part is not distinguishable from 0.
    pub is_hosts_unsure: bool,
    /// Whether the library's part is not distinguishable from 0.
    pub is_library_unsure: bool,
    /// Whether a disturbance leaves it uncertain.
    pub is_disturbed: bool,
}

/// What users call a path.
pub(crate) fn name(path: &str) -> String {
    match path {
        "openmpi:tcp" => "Open MPI".into(),
        "mpich:tcp" => "MPICH".into(),
        "pvm:default" => "PVM by daemons".into(),
        "pvm:direct" => "PVM direct".into(),
        "native:tcp" => "native".into(),
        "tcp" => "TCP".into(),
        "udp" => "UDP".into(),
        "nfs2:udp" => "NFS v2".into(),
        "nfs3:tcp" => "NFS v3".into(),
        "ftp" => "FTP".into(),
        other => other.into(),
    }
}

/// The paths that are told, at most two.
pub(super) fn paths(index: &Index<'_>) -> Vec<AssessedPath> {
    let measured: BTreeSet<&str> = index
        .lines()
        .filter(|line| !index.of(line, LATENCY).is_empty())
        .map(|line| line.path.as_str())
        .collect();
    let pvm = ["pvm:default", "pvm:direct"]
        .into_iter()
        .find(|path| measured.contains(path));
    let others = ["native:tcp", "tcp", "udp"];
    let others = others.into_iter().filter(|path| measured.contains(path));
    let best = best_mpi(index, &measured);
    let chosen = best.into_iter().chain(pvm).chain(others).take(2);
    let path = |path: &str| AssessedPath {
        path: path.into(),
        name: name(path),
    };
    chosen.map(path).collect()
}

/// The MPI whose smallest messages are the quickest, over the networks on which each was measured.
fn best_mpi<'a>(index: &Index<'_>, measured: &BTreeSet<&'a str>) -> Option<&'a str> {
    let is_mpi = |path: &&&str| path.starts_with("openmpi:") || path.starts_with("mpich:");
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for path in measured.iter().filter(is_mpi) {
        let lines = index.lines().filter(|line| line.path == *path);
        let smallest = lines.filter_map(|line| Some(p50(index.of(line, LATENCY).first()?)));
        times.insert(path, smallest.collect());
    }
    let mean = |times: &[f64]| {
        let logs = times.iter().map(|ns| ns.max(1.0).ln());
        logs.sum::<f64>() / times.len().max(1) as f64
    };
    let mut all = times.into_iter();
    let first = all.next()?;
    let best = all.fold(first, |best, one| {
        // One that was measured on fewer networks is not compared by their mean.
        let is_better = one.1.len() > best.1.len()
            || one.1.len() == best.1.len() && mean(&one.1) < mean(&best.1);
        if is_better { one } else { best }
    });
    Some(best.0)
}

/// The smallest message of the first of the paths.
pub(super) fn message_bytes(index: &Index<'_>, paths: &[AssessedPath]) -> Option<u64> {
    let smallest = |path: &AssessedPath| {
        let lines = index.lines().filter(|line| line.path == path.path);
        let sizes = lines.filter_map(|line| index.of(line, LATENCY).first()?.size_bytes);
        sizes.max()
    };
    paths.iter().find_map(smallest)
}

/// The libraries whose cost for a message is on no network distinguishable from 0.
pub(super) fn not_distinguishable(index: &Index<'_>) -> Vec<String> {
    let mut paths: BTreeMap<String, bool> = BTreeMap::new();
    for row in libraries(index).iter().filter(|row| row.load.is_none()) {
        let is_none = row.per_message_ns.is_none_possible();
        *paths.entry(row.path.clone()).or_insert(true) &= is_none;
    }
    let none = paths.into_iter().filter(|(_, is_none)| *is_none);
    none.map(|(path, _)| name(&path)).collect()
}

/// Kernels among several hosts that are held against one host, idle.
fn placed(index: &Index<'_>) -> Vec<KernelRow> {
    let mut rows = kernels(index);
    rows.retain(|row| row.load.is_none() && row.ranks > 1 && row.of_reference.is_some());
    rows
}

/// The kernel that is told: the first that ran among several hosts.
pub(super) fn kernel(index: &Index<'_>) -> Option<String> {
    let rows = placed(index).into_iter();
    rows.filter(|row| row.hosts > 1)
        .map(|row| row.kernel)
        .next()
}

/// All networks, in the run's order.
pub(super) fn all(
    index: &Index<'_>,
    paths: &[AssessedPath],
    size: Option<u64>,
    kernel: Option<&str>,
) -> Vec<AssessedNetwork> {
    let libraries = libraries(index);
    let kernels = placed(index);
    let files = files::cells(index);
    let mut names: Vec<&str> = Vec::new();
    for cell in &index.run.cells {
        if !names.contains(&cell.factors.network.as_str()) {
            names.push(&cell.factors.network);
        }
    }
    let of_network = |network: &&str| {
        let network = *network;
        let lines = index.lines().filter(|line| line.network == network);
        let lines: Vec<&Line> = lines.filter(|line| line.path == "tcp").collect();
        let streams = lines.iter().filter_map(|line| index.stream(line));
        let stream = streams.max_by(|one, other| p50(one).total_cmp(&p50(other)));
        let one_way = paths.iter().map(|path| {
            let size = size?;
            one_way(index, &libraries, network, &path.path, size)
        });
        let own = kernels
            .iter()
            .filter(|row| row.network == network && Some(row.kernel.as_str()) == kernel);
        let times = own.filter_map(|row| Some(row.of_reference?.value.0));
        AssessedNetwork {
            network: network.into(),
            is_floor: is_floor(index, network),
            possible_bps: lines
                .iter()
                .find_map(|line| index.ceiling(line))
                .or_else(|| Some(index.network(network)?.row.tcp_max_bps? as f64))
                .map(bps),
            reached_bps: stream.map(p50).map(bps),
            is_stream_disturbed: stream.is_some_and(ResultRow::is_disturbed),
            one_way: one_way.collect(),
            kernel_times: times.min_by(f64::total_cmp).map(Number),
            files: files_of(&files, network),
        }
    };
    names.iter().map(of_network).collect()
}

/// The fastest of each service and operation on an idle network, in the order of the rows.
fn files_of(cells: &[FilesCell<'_>], network: &str) -> Vec<AssessedFiles> {
    let mut all: Vec<AssessedFiles> = Vec::new();
    let is_told = |cell: &&FilesCell<'_>| {
        let row = cell.row;
        row.network == network && row.load.is_none() && row.size_bytes.is_some()
    };
    for cell in cells.iter().filter(is_told) {
        let Some(reached) = cell.row.p50 else {
            continue;
        };
        let one = AssessedFiles {
            path: cell.row.path.clone(),
            name: name(&cell.row.path),
            operation: cell.files.operation.name().into(),
            reached_bps: bps(reached.0),
            is_disturbed: cell.row.is_disturbed(),
        };
        let is_same =
            |known: &&mut AssessedFiles| known.path == one.path && known.operation == one.operation;
        match all.iter_mut().find(is_same) {
            Some(known) if known.reached_bps < one.reached_bps => *known = one,
            Some(_) => {}
            None => all.push(one),
        }
    }
    all
}

fn one_way(
    index: &Index<'_>,
    libraries: &[LibraryRow],
    network: &str,
    path: &str,
    size: u64,
) -> Option<OneWay> {
    let lines = index
        .lines()
        .filter(|line| line.network == network && line.path == path);
    let measured = lines.filter_map(|line| {
        let rows = index.of(line, LATENCY);
        let row = rows.into_iter().find(|row| row.size_bytes == Some(size))?;
        Some((line, row))
    });
    let (line, row) = measured.min_by(|one, other| p50(one.1).total_cmp(&p50(other.1)))?;
    let wire_ns = wire_ns(index, line, size);
    let known = libraries
        .iter()
        .find(|row| row.network == network && row.path == path && row.wait == line.wait)
        .filter(|row| row.load.is_none())
        .and_then(|row| row.sizes.iter().find(|one| one.size_bytes == size));
    // The median of the launches' medians, of which the parts are, where these are known.
    let whole_ns = known.map_or(p50(row).round() as u64, |size| size.library_ns);
    let is_transport = beneath(path) == path || !path.contains(':');
    let transport_ns = match is_transport {
        true => Some(whole_ns),
        false => known.map(|size| size.transport_ns),
    };
    let hosts_ns = transport_ns.map(|ns| ns.saturating_sub(wire_ns.unwrap_or(0)));
    Some(OneWay {
        whole_ns,
        wire_ns,
        // A transport that took longer than the library over it tells nothing of its part.
        is_hosts_unsure: hosts_ns == Some(0) || transport_ns > Some(whole_ns),
        hosts_ns,
        library_ns: known.map(|size| size.cost_ns.value),
        is_library_unsure: known
            .is_some_and(|size| size.cost_ns.is_none_possible() || size.cost_ns.value <= 0),
        is_disturbed: row.is_disturbed(),
    })
}
