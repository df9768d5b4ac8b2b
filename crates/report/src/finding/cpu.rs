//! Streams and hosts that have no CPU left.
//!
//! Model:   `cpu-bound`: the CPU time that one end's thread takes for a byte, times the rate, is at least 90 % of one CPU.
//!          Threads that poll use a whole CPU always, and are left out. `host-exhausted`: the busier host of a launch used
//!          at least 90 % of all its CPUs, in the median launch of a cell; said once a network and load. The hosts of a lab are one
//!          machine, which also emulates the network: where that kept its times, this is a note, else a warning. Kernels are left
//!          out elsewhere: they compute on all CPUs that they have. What was watched for less than 200 ms has no such figure: the
//!          kernel counts in ticks.
//! Source:  iperf3's and netperf's reports of CPU use, which name no CPU: here it is said of how many. Threshold: a
//!          thread above 90 % spends no noticeable time waiting for the network.
//! Checked: `a_few_ticks_say_nothing`, `a_busy_thread_is_named`, `pollers_are_always_busy`, `a_busy_host_is_said_once`,
//!          `a_kernel_fills_its_own_machine`.

use std::collections::BTreeMap;

use sonde_measure::{Line, Quantity, ResultRow, Status, Testbed};

use super::{Finding, Severity};
use crate::index::{Index, KERNEL, is_main, p50};
use crate::limit::BUSY;
use crate::words::cpu as words;

/// The rule of hosts without CPU.
pub(super) const HOST_EXHAUSTED: &str = "host-exhausted";

/// `cpu-bound`.
pub(super) fn thread(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = (!line.polls()).then(|| index.stream(line))??;
    let ends = [
        (true, Quantity::CpuSrcNsPerByte),
        (false, Quantity::CpuDstNsPerByte),
    ];
    let (sends, quantity, used) = ends
        .into_iter()
        .zip(index.cpu_shares(stream))
        .filter_map(|((sends, quantity), share)| Some((sends, quantity, share?)))
        .filter(|(_, _, share)| *share >= BUSY)
        .max_by(|one, other| one.2.total_cmp(&other.2))?;
    let found = words::Thread {
        line,
        sends,
        used,
        ns_per_byte: index.beside(stream, quantity)?,
        rate_bps: p50(stream),
    };
    Some(Finding::said("cpu-bound", Severity::Advice, &found).on(line))
}

/// `host-exhausted` under a load or idle, once a network. In a lab that kept its times the emulation had the CPU that it needed: a note.
pub(super) fn host_exhausted(index: &Index<'_>, load: Option<&str>) -> Vec<Finding> {
    let mut networks: BTreeMap<&str, (usize, usize, f64)> = BTreeMap::new();
    let same = |row: &&ResultRow| is_main(row) && row.load.as_deref() == load;
    for row in index.rows.iter().filter(same) {
        let polls = row.wait.as_deref() == Some("poll");
        // A kernel computes on all CPUs that it has: that tells something only where they emulate, too.
        let computes = row.probe == KERNEL && row.testbed != Testbed::Lab;
        if row.status != Status::Measured || polls || computes {
            continue;
        }
        let Some(busy) = index.host_busy(&row.cell) else {
            continue;
        };
        let (all, full, most) = networks.entry(&row.network).or_default();
        *all += 1;
        *full += usize::from(busy >= BUSY);
        *most = most.max(busy);
    }
    let disturbed = super::disturbed::of_load(index, load);
    networks
        .into_iter()
        .filter(|(_, (_, full, _))| *full > 0)
        .map(|(network, (all, full, most))| {
            let emulates = index
                .rows
                .iter()
                .any(|row| row.network == network && row.testbed == Testbed::Lab);
            let found = words::Host {
                network,
                load,
                full,
                all,
                most,
                emulates,
            };
            let is_disturbed = disturbed
                .iter()
                .any(|one| one.network.as_deref() == Some(network));
            let severity = match emulates && !is_disturbed {
                true => Severity::Note,
                false => Severity::Warning,
            };
            Finding::said(HOST_EXHAUSTED, severity, &found).on_network(network)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};

    fn stream(wait: &str, dst_ps_per_byte: u64) -> Option<Finding> {
        let run = Runs::new()
            .network(net("wire"))
            .wait(wait)
            .stream("wire", "tcp", 20_000_000_000)
            .beside(Quantity::CpuSrcNsPerByte, 150)
            .beside(Quantity::CpuDstNsPerByte, dst_ps_per_byte)
            .done();
        let index = Index::new(&run);
        let line = Line {
            wait: Some(wait.into()),
            ..line("wire", "tcp")
        };
        thread(&index, &line)
    }

    #[test]
    fn a_busy_thread_is_named() {
        let finding = stream("block", 388).unwrap();
        assert_eq!(
            finding.sentence,
            "The receiving thread uses 97.0 % of one CPU for the stream over tcp on wire: the host, not the network, limits \
             it to 20.00 Gb/s."
        );
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("0.388 ns/B x 2500 MB/s = 0.970 CPU")
        );
        assert_eq!(stream("block", 300), None);
    }

    #[test]
    fn pollers_are_always_busy() {
        assert_eq!(stream("poll", 400), None);
    }

    #[test]
    fn a_busy_host_is_said_once() {
        let run = |busy| {
            Runs::new()
                .network(net("wire"))
                .disturbed(|at| {
                    at.cpus = 2;
                    at.span_ns = 1_000_000_000;
                    at.host_cpu_ns = Some(busy);
                })
                .latency("wire", "tcp", 1, 10_000)
                .latency("wire", "udp", 1, 10_000)
                .done()
        };
        let loaded = run(1_960_000_000);
        let found = host_exhausted(&Index::new(&loaded), None);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].sentence,
            "CPU was saturated in 2 of 2 measurements on wire: up to 98.0 % of a host's CPUs were in use."
        );
        let idle = run(900_000_000);
        assert_eq!(host_exhausted(&Index::new(&idle), None), []);
        // No host has more than all of its CPUs: what ticks make above that is none of it.
        let ticks = run(2_040_000_000);
        let found = host_exhausted(&Index::new(&ticks), None);
        assert!(found[0].sentence.contains("up to 100.0 % of"), "{found:?}");
    }

    #[test]
    fn a_few_ticks_say_nothing() {
        // As a run of latency had it: 20 ms of ticks in a watch of 2.2 ms.
        let run = Runs::new()
            .network(net("wire"))
            .disturbed(|at| {
                at.cpus = 2;
                at.span_ns = 2_200_000;
                at.host_cpu_ns = Some(20_000_000);
            })
            .latency("wire", "tcp", 1, 10_000)
            .done();
        assert_eq!(host_exhausted(&Index::new(&run), None), []);
    }

    #[test]
    fn a_kernel_fills_its_own_machine() {
        let mut run = Runs::new()
            .network(net("wire"))
            .disturbed(|at| {
                at.cpus = 2;
                at.span_ns = 1_000_000_000;
                at.host_cpu_ns = Some(1_960_000_000);
            })
            .kernel("wire", "native:shm", "is S 4", 10_000)
            .done();
        assert_eq!(host_exhausted(&Index::new(&run), None).len(), 1);
        for cell in &mut run.cells {
            cell.factors.testbed = Testbed::Local;
        }
        assert_eq!(host_exhausted(&Index::new(&run), None), []);
    }
}
