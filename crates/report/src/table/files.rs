//! Files of servers, as a table: what was reached, what a call took, and what it should take by terms that were measured apart.
//!
//! Units:   megabits a second, calls a second, microseconds.
//! Checked: `files_are_told_with_their_terms`.

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
const SIZE: usize = 1;
const NETWORK: usize = 2;
const WITH: usize = 4;
const LOAD: usize = 5;

/// The cells of files, a line each. `None` where none were asked for.
pub fn files_table(run: &Run, width: usize) -> Option<String> {
    let index = Index::new(run);
    let lines: Vec<Vec<String>> = cells(&index)
        .iter()
        .map(|cell| line(&index, cell))
        .collect();
    let first = lines.first()?.clone();
    let is = |column: usize, text: &str| (column, lines.iter().all(|line| line[column] == text));
    let marked = [
        is(LOAD, "idle"),
        is(WITH, DASH),
        is(NETWORK, &first[NETWORK]),
        is(SIZE, DASH),
    ];
    let mut sheet = Sheet {
        heads: HEADS.map(Into::into).to_vec(),
        lines,
        keys: LOAD + 1,
        first: 3,
        words: LOAD + 1,
        loose: false,
    };
    sheet.leave_out_marked(marked);
    let legend = "Files of a server, medians. call: from the first send of a call to its reply. Measured apart: server: what the call takes \
        on the server's own loopback beyond a call that does nothing; trip: a call that does nothing, over the network; line: what the \
        network's model has for the bytes beyond it. rest: of a call where one is outstanding, what these do not explain. retransmitted: \
        messages beyond one for each call, of all repetitions.";
    Some(format!(
        "{}\n\n{}",
        sheet.text(width),
        wrapped(legend, width, "")
    ))
}

fn line(index: &Index<'_>, cell: &FilesCell<'_>) -> Vec<String> {
    let FilesCell {
        row, files, facts, ..
    } = cell;
    let mut others = row.knobs.clone();
    others.remove("op");
    let micros = |ns: Option<u64>| scaled(ns.map(|ns| ns as f64), 1e3, 4);
    let rest = match (cell.call_ns, facts.expected_ns()) {
        (Some(call_ns), Some(expected_ns)) if files.outstanding == 1 => {
            let rest = call_ns - expected_ns as f64;
            let text = scaled(Some(rest.abs()), 1e3, 3);
            if rest < 0.0 { format!("-{text}") } else { text }
        }
        _ => DASH.into(),
    };
    let beside = |quantity| match row.quantity == quantity {
        true => row.p50.map(|number| number.0),
        false => index.beside(row, quantity),
    };
    vec![
        files.operation.name().into(),
        row.size_bytes.map_or_else(|| DASH.into(), bytes),
        plain(&row.network),
        plain(&row.path),
        with(&others),
        plain(row.load.as_deref().unwrap_or("idle")),
        scaled(row.size_bytes.and(beside(Quantity::ThroughputBps)), 1e6, 4),
        scaled(beside(Quantity::RatePerS), 1.0, 4),
        scaled(cell.call_ns, 1e3, 4),
        micros(facts.service_ns),
        micros(facts.trip_ns),
        micros(facts.wire_ns),
        rest,
        facts.retransmissions.to_string(),
    ]
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
}
