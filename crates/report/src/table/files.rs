//! Files of servers, as tables: what was reached, what a call or a transfer took, and what it should take by what was measured apart.
//!
//! Units:   megabits a second, calls a second; microseconds of calls, milliseconds of transfers.
//! Checked: `files_are_told_with_their_terms`, `transfers_are_told_with_their_stages`.

use sonde_measure::files::{Service, Stages};
use sonde_measure::{Quantity, Run};

use super::{DASH, Sheet, scaled, with, wrapped};
use crate::files::{FilesCell, cells};
use crate::format::bytes;
use crate::index::Index;
use sonde_units::plain;

const HEADS: [&str; 14] = [
    "files",
    "size",
    "network",
    "path",
    "with",
    "load",
    "rate\nMb/s",
    "calls\n1/s",
    "call\nµs",
    "server\nµs",
    "trip\nµs",
    "line\nµs",
    "rest\nµs",
    "retransmitted\n ",
];
/// Of transfers, in milliseconds.
const STAGE_HEADS: [&str; 17] = [
    "files",
    "size",
    "network",
    "path",
    "with",
    "load",
    "rate\nMb/s",
    "transfer\nms",
    "source\nms",
    "translate\nms",
    "socket\nms",
    "network\nms",
    "sink\nms",
    "line\nms",
    "window\nms",
    "rest\nms",
    "bottleneck\n ",
];
const SIZE: usize = 1;
const NETWORK: usize = 2;
const WITH: usize = 4;
const LOAD: usize = 5;

/// The cells of files, a line each, those of calls before transfers. `None` where none were asked for.
pub fn files_table(run: &Run, width: usize) -> Option<String> {
    let index = Index::new(run);
    let (transfers, calls): (Vec<_>, Vec<_>) =
        cells(&index).into_iter().partition(FilesCell::is_transfer);
    let calls = calls.iter().map(|cell| line(&index, cell)).collect();
    let transfers = transfers.iter().map(transfer_line).collect();
    let legend = "Files of a server, medians. call: from the first send of a call to its reply. Measured apart: server: what the call takes \
        on the server's own loopback beyond a call that does nothing; trip: a call that does nothing, over the network; line: what the \
        network's model has for the bytes beyond it. rest: of a call where one is outstanding, what these do not explain. retransmitted: \
        messages beyond one for each call, of all repetitions.";
    let stages = "Transfers of whole files, medians. Measured apart, of a whole file: source and sink: the disk's model, or the store; translate: \
        text, at the slower end; socket: over the server's own loopback; network: a plain stream by the same sockets. Worked out: line: what the \
        network's model has for the bytes; window: one in each round trip. rest: what the stages together do not explain. bottleneck: the \
        slowest stage.";
    let tables = [
        sheet(&HEADS, calls, legend, width),
        sheet(&STAGE_HEADS, transfers, stages, width),
    ];
    let tables: Vec<String> = tables.into_iter().flatten().collect();
    (!tables.is_empty()).then(|| tables.join("\n\n"))
}

fn sheet(heads: &[&str], lines: Vec<Vec<String>>, legend: &str, width: usize) -> Option<String> {
    let first = lines.first()?.clone();
    let is = |column: usize, text: &str| (column, lines.iter().all(|line| line[column] == text));
    let marked = [
        is(LOAD, "idle"),
        is(WITH, DASH),
        is(NETWORK, &first[NETWORK]),
        is(SIZE, DASH),
    ];
    let mut sheet = Sheet {
        heads: heads.iter().map(|head| (*head).into()).collect(),
        lines,
        keys: LOAD + 1,
        first: 3,
        words: LOAD + 1,
        loose: false,
    };
    sheet.leave_out_marked(marked);
    Some(format!(
        "{}\n\n{}",
        sheet.text(width),
        wrapped(legend, width, "")
    ))
}

/// What a cell is.
fn keys(cell: &FilesCell<'_>) -> Vec<String> {
    let FilesCell { row, files, .. } = cell;
    let mut others = row.knobs.clone();
    others.remove("op");
    vec![
        files.operation.name().into(),
        row.size_bytes.map_or_else(|| DASH.into(), bytes),
        plain(&row.network),
        plain(&row.path),
        with(&others),
        plain(row.load.as_deref().unwrap_or("idle")),
    ]
}

/// What is left of a time, in units of `unit`.
fn rest(took_ns: f64, expected_ns: u64, unit: f64) -> String {
    let rest = took_ns - expected_ns as f64;
    let text = scaled(Some(rest.abs()), unit, 3);
    if rest < 0.0 { format!("-{text}") } else { text }
}

fn transfer_line(cell: &FilesCell<'_>) -> Vec<String> {
    let millis = |ns: Option<u64>| scaled(ns.map(|ns| ns as f64), 1e6, 4);
    let stage = |of: fn(&Stages) -> u64| millis(cell.stages.as_ref().map(of));
    let translation_ns = cell.stages.and_then(|stages| stages.translation_ns);
    let left = match (cell.call_ns, &cell.stages) {
        (Some(took_ns), Some(stages)) => rest(took_ns, stages.expected_ns, 1e6),
        _ => DASH.into(),
    };
    let slowest = cell.stages.map_or(DASH, |stages| stages.slowest.name());
    let mut line = keys(cell);
    line.extend([
        scaled(cell.row.p50.map(|number| number.0), 1e6, 4),
        scaled(cell.call_ns, 1e6, 4),
        stage(|stages| stages.source_ns),
        millis(translation_ns),
        stage(|stages| stages.socket_ns),
        stage(|stages| stages.network_ns),
        stage(|stages| stages.sink_ns),
        millis(cell.facts.wire_ns),
        millis(cell.window_ns),
        left,
        slowest.into(),
    ]);
    line
}

fn line(index: &Index<'_>, cell: &FilesCell<'_>) -> Vec<String> {
    let FilesCell {
        row, files, facts, ..
    } = cell;
    let micros = |ns: Option<u64>| scaled(ns.map(|ns| ns as f64), 1e3, 4);
    let left = match (cell.call_ns, facts.expected_ns()) {
        (Some(call_ns), Some(expected_ns)) if files.under_way() == 1 => {
            rest(call_ns, expected_ns, 1e3)
        }
        _ => DASH.into(),
    };
    let beside = |quantity| match row.quantity == quantity {
        true => row.p50.map(|number| number.0),
        false => index.beside(row, quantity),
    };
    let retransmitted = match files.service {
        Service::Fs => DASH.into(),
        _ => facts.retransmissions.to_string(),
    };
    let mut line = keys(cell);
    line.extend([
        scaled(row.size_bytes.and(beside(Quantity::ThroughputBps)), 1e6, 4),
        scaled(beside(Quantity::RatePerS), 1.0, 4),
        scaled(cell.call_ns, 1e3, 4),
        micros(facts.service_ns),
        micros(facts.trip_ns),
        micros(facts.wire_ns),
        left,
        retransmitted,
    ]);
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::{facts, run};

    #[test]
    fn files_are_told_with_their_terms() {
        let text = files_table(&run(&[("op", "read")], facts()), 200).unwrap();
        let line = text.lines().find(|line| line.contains("nfs2:udp")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        // 200 µs of a call are 40 at the server, 110 of a round trip, 35 on the line, and 15 that these do not explain.
        let wanted = [
            "read", "1", "MiB", "nfs2:udp", "303.0", "4620", "200.0", "40.00", "110.0", "35.00",
            "15.0", "0",
        ];
        assert_eq!(words, wanted, "{text}");
        // With more calls outstanding the terms do not add up to a call.
        let many = [("op", "read"), ("outstanding", "4")];
        let text = files_table(&run(&many, facts()), 200).unwrap();
        let line = text.lines().find(|line| line.contains("nfs2:udp")).unwrap();
        assert!(
            line.contains("outstanding=4") && line.contains(" - "),
            "{text}"
        );
        assert_eq!(files_table(&crate::testing::Runs::new().done(), 200), None);
    }

    #[test]
    fn transfers_are_told_with_their_stages() {
        let text = files_table(&crate::files::testing::transfer(), 250).unwrap();
        let line = text.lines().find(|line| line.contains("ftp")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let wanted = [
            "read",
            "1",
            "MiB",
            "ftp",
            "disk=16Mbit",
            "window=64KiB",
            "13.90",
            "603.0",
            "524.3",
            "-",
            "1.000",
            "70.00",
            "0.3000",
            "69.00",
            "3.200",
            "4.69",
            "source",
            "disk",
        ];
        assert_eq!(words, wanted, "{text}");
    }
}
