//! What holds a service of files.
//!
//! Model:   calls outstanding are those of all clients. Of each line the largest files, or the calls on names; one of these, the first that holds. `lost-at-receive-buffer`: datagrams
//!          were lost at the server's socket, and one in a thousand messages or more was sent again. `disk-bound`: the rate is 0.8 to 1.1 of
//!          that of the modelled disk. `daemons-short`: with fewer daemons than calls outstanding, these were held in nine tenths of the
//!          time. Where the terms that were measured apart explain the call (0.5 to 1.1 of it, [`crate::limit`]'s bounds): with one call
//!          outstanding `service-bound` where the server takes half of it, `transfer-size-bound` where the round trip does; with more
//!          `window-bound` where the call takes no longer than 1.5 times its terms, so that nothing waits: more outstanding would give more.
//!          A transfer by FTP has `stage-bound` instead, where its stages explain it.
//! Source:  requirements S41, S44, H35, H43 to H50.
//! Units:   nanoseconds, bits a second, shares.
//! Checked: `each_bound_is_named`, `of_a_line_one_is_named`, `what_is_not_explained_is_not_named`.

use super::{Finding, Severity, VERIFY};
use crate::files::{Facts, FilesCell, cells};
use crate::index::{Index, p50};
use crate::words::files::{Bound, Held};
use sonde_measure::Status;
use sonde_measure::files::Files;

/// Below this part of messages nothing is said of what was lost.
const NOTEWORTHY: f64 = 1e-3;
/// Daemons that were held for so much of the time are short.
const BUSY: f64 = 0.9;

/// The rules of this file.
pub(super) const IDS: &[&str] = &[
    "lost-at-receive-buffer",
    "disk-bound",
    "daemons-short",
    "service-bound",
    "transfer-size-bound",
    "window-bound",
    "stage-bound",
];

/// Of each line one.
pub(super) fn held(index: &Index<'_>) -> Vec<Finding> {
    let all = held_cells(index);
    let found = |(cell, bound): &(FilesCell<'_>, Bound)| {
        let held = said(cell, *bound)?;
        Some(Finding::said(bound.rule(), Severity::Advice, &held).on(&cell.line))
    };
    all.iter().filter_map(found).collect()
}

/// What is said of a cell that is held.
pub(crate) fn said<'c>(cell: &'c FilesCell<'_>, bound: Bound) -> Option<Held<'c>> {
    Some(Held {
        line: &cell.line,
        operation: cell.files.operation.name(),
        size_bytes: cell.row.size_bytes,
        rate_bps: cell.row.size_bytes.map(|_| p50(cell.row)),
        call_ns: cell.call_ns?,
        bound,
    })
}

/// Of each line the cell of its largest files, with what holds it; without what was measured to look into a finding.
pub(crate) fn held_cells<'i>(index: &'i Index<'_>) -> Vec<(FilesCell<'i>, Bound)> {
    let mut largest: Vec<FilesCell<'_>> = Vec::new();
    let cells = cells(index).into_iter();
    let cells = cells.filter(|cell| cell.row.status == Status::Measured);
    for cell in cells.filter(|cell| !cell.row.knobs.contains_key(VERIFY)) {
        match largest.iter_mut().find(|known| known.line == cell.line) {
            Some(known) if known.row.size_bytes < cell.row.size_bytes => *known = cell,
            Some(_) => {}
            None => largest.push(cell),
        }
    }
    let held = |cell: FilesCell<'i>| {
        let rate_bps = cell.row.size_bytes.map(|_| p50(cell.row));
        let bound = match cell.is_transfer() {
            true => stage(&cell)?,
            false => bound(&cell.files, &cell.facts, rate_bps, cell.call_ns?)?,
        };
        Some((cell, bound))
    };
    largest.into_iter().filter_map(held).collect()
}

/// The slowest stage, where all of them explain the transfer.
fn stage(cell: &FilesCell<'_>) -> Option<Bound> {
    let stages = cell.stages?;
    let expected_ns = stages.expected_ns as f64;
    let part = expected_ns / cell.call_ns?.max(1.0);
    (0.5..=1.1).contains(&part).then_some(Bound::Stage {
        stage: stages.slowest,
        stage_ns: stages.ns(stages.slowest) as f64,
        expected_ns,
    })
}

fn bound(files: &Files, facts: &Facts, rate_bps: Option<f64>, call_ns: f64) -> Option<Bound> {
    let messages = facts.calls + facts.retransmissions;
    let again = facts.retransmissions as f64 / messages.max(1) as f64;
    if facts.lost_server_buffer > 0 && again >= NOTEWORTHY {
        return Some(Bound::ReceiveBuffer {
            lost: facts.lost_server_buffer,
            again: facts.retransmissions,
            messages,
            buffer_bytes: facts.receive_buffer_bytes,
        });
    }
    if let (Some(disk), Some(bps)) = (files.disk, rate_bps) {
        let part = bps / disk.rate_bps as f64;
        if (0.8..=1.1).contains(&part) {
            let disk_bps = disk.rate_bps as f64;
            return Some(Bound::Disk { disk_bps });
        }
    }
    let daemons = u64::from(files.daemons);
    let busy = facts.held_ns as f64 / (facts.span_ns.max(1) * daemons) as f64;
    if busy >= BUSY && files.daemons < files.under_way() {
        return Some(Bound::Daemons { daemons, busy });
    }
    let expected_ns = facts.expected_ns()? as f64;
    let (service_ns, trip_ns) = (facts.service_ns? as f64, facts.trip_ns? as f64);
    let part = expected_ns / call_ns.max(1.0);
    if files.under_way() > 1 {
        let outstanding = u64::from(files.under_way());
        return (0.67..=1.1).contains(&part).then_some(Bound::Window {
            outstanding,
            expected_ns,
        });
    }
    if !(0.5..=1.1).contains(&part) {
        return None;
    }
    // A round trip of a call that does nothing has the daemon's service in it too.
    let line_ns = (trip_ns - files.service_ns as f64).max(0.0);
    let server_ns = service_ns + files.service_ns as f64;
    if server_ns >= expected_ns / 2.0 {
        return Some(Bound::Service {
            server_ns,
            expected_ns,
        });
    }
    (line_ns >= expected_ns / 2.0).then_some(Bound::TransferSize {
        trip_ns: line_ns,
        expected_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::KnobValues;

    fn files(pairs: &[(&str, &str)]) -> Files {
        let knobs = pairs.iter();
        let knobs: KnobValues = knobs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Files::parse("nfs2".parse().unwrap(), &knobs).unwrap()
    }

    fn facts() -> Facts {
        Facts {
            calls: 1_000,
            span_ns: 1_000_000_000,
            service_ns: Some(50_000),
            trip_ns: Some(100_000),
            wire_ns: Some(40_000),
            ..Facts::default()
        }
    }

    fn rule(files: &Files, facts: &Facts, rate_bps: f64, call_ns: f64) -> Option<&'static str> {
        bound(files, facts, Some(rate_bps), call_ns).map(|bound| bound.rule())
    }

    #[test]
    fn each_bound_is_named() {
        let one = files(&[]);
        assert_eq!(
            rule(&one, &facts(), 3e8, 200_000.0),
            Some("transfer-size-bound")
        );
        let slow = Facts {
            service_ns: Some(400_000),
            ..facts()
        };
        assert_eq!(rule(&one, &slow, 1e8, 550_000.0), Some("service-bound"));
        // A service that the server was told to take is in both round trips.
        let told = files(&[("service", "7ms")]);
        let waiting = Facts {
            trip_ns: Some(7_100_000),
            ..facts()
        };
        assert_eq!(
            rule(&told, &waiting, 9e6, 7_200_000.0),
            Some("service-bound")
        );
        let many = files(&[("outstanding", "4")]);
        assert_eq!(rule(&many, &facts(), 1e9, 220_000.0), Some("window-bound"));
        let few = files(&[("outstanding", "8"), ("daemons", "2")]);
        let held = Facts {
            held_ns: 1_950_000_000,
            ..facts()
        };
        assert_eq!(rule(&few, &held, 1e7, 9_000_000.0), Some("daemons-short"));
        let disk = files(&[("disk", "16Mbit"), ("outstanding", "4")]);
        assert_eq!(
            rule(&disk, &facts(), 15.2e6, 4_000_000.0),
            Some("disk-bound")
        );
        let lost = Facts {
            retransmissions: 30,
            lost_server_buffer: 29,
            ..facts()
        };
        assert_eq!(
            rule(&many, &lost, 1e8, 220_000.0),
            Some("lost-at-receive-buffer")
        );
    }

    #[test]
    fn of_a_line_one_is_named() {
        use crate::files::testing;
        let run = testing::run(&[("op", "read")], testing::facts());
        let found = held(&Index::new(&run));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, "transfer-size-bound");
        assert_eq!(
            found[0].sentence,
            "A read of files of 1 MiB over nfs2:udp on ethernet-100 reaches 303.0 Mb/s: one call is outstanding, and the round trip takes \
             110.0 µs of the 185.0 µs that it should take."
        );
        // It is one of all findings of the run.
        let all = crate::findings_of(&run);
        assert!(all.iter().any(|one| one.rule == "transfer-size-bound"));
    }

    #[test]
    fn of_a_transfer_the_slowest_stage_is_named() {
        let run = crate::files::testing::transfer();
        let found = held(&Index::new(&run));
        assert_eq!((found.len(), &*found[0].rule), (1, "stage-bound"));
        assert_eq!(
            found[0].sentence,
            "A read of files of 1 MiB over ftp (disk=16Mbit, window=64KiB) on ethernet-100 reaches 13.90 Mb/s: of its stages the source \
             disk takes longest, 524.3 ms of the 598.3 ms that it should take."
        );
    }

    #[test]
    fn what_is_not_explained_is_not_named() {
        let one = files(&[]);
        // Ten times what the terms give: something else holds it.
        assert_eq!(rule(&one, &facts(), 3e7, 1_900_000.0), None);
        let unknown = Facts {
            service_ns: None,
            ..facts()
        };
        assert_eq!(rule(&one, &unknown, 3e8, 200_000.0), None);
        // A line that is full is neither.
        let line = Facts {
            wire_ns: Some(7_000_000),
            ..facts()
        };
        assert_eq!(rule(&one, &line, 9e6, 7_200_000.0), None);
        // Calls that wait for each other have no room for more of them.
        let many = files(&[("outstanding", "16")]);
        assert_eq!(rule(&many, &facts(), 9e8, 1_200_000.0), None);
    }
}
