//! The ladder's rung as a table: what libraries cost over the transports beneath them.

use sonde_measure::Run;

use super::{DASH, Sheet, micros, wrapped};
use crate::format::significant;
use crate::index::Index;
use crate::library::{Cost, LibraryRow, libraries};
use sonde_units::plain;

const HEADS: [&str; 10] = [
    "network",
    "path",
    "over",
    "completion",
    "load",
    "per message\nµs",
    "95 %\nµs",
    "per byte\nns",
    "95 %\nns",
    "library µs\nby size",
];

/// What libraries cost, a line a library, network and wait; `None` where none was measured beside its transport.
pub fn library_table(run: &Run, width: usize) -> Option<String> {
    let rows = libraries(&Index::new(run));
    if rows.is_empty() {
        return None;
    }
    let mut sheet = Sheet {
        heads: HEADS.map(Into::into).to_vec(),
        lines: rows.iter().map(line).collect(),
        keys: 5,
        first: 3,
        words: 5,
        loose: false,
    };
    sheet.leave_out_marked([(4, rows.iter().all(|row| row.load.is_none()))]);
    let legend = "Libraries against the transport beneath, at equal completion: one-way latency (RTT/2), warm, the library's less the \
        transport's; per message: at the smallest size; per byte: by the slope to the largest. Negative: the library is faster.";
    Some(format!(
        "{}\n\n{}",
        sheet.text(width),
        wrapped(legend, width, "")
    ))
}

fn line(row: &LibraryRow) -> Vec<String> {
    let thousandths = |value: i64| significant(value as f64 / 1e3, 3);
    let interval = |cost: &Cost| match (cost.ci95_low, cost.ci95_high) {
        (Some(low), Some(high)) => format!("{} – {}", thousandths(low), thousandths(high)),
        _ => DASH.into(),
    };
    let sizes = row.sizes.iter();
    let sizes = sizes.map(|size| {
        format!(
            "{}: {}",
            size.size_bytes,
            micros(Some(size.library_ns as f64))
        )
    });
    vec![
        plain(&row.network),
        plain(&row.path),
        plain(&row.beneath),
        plain(row.wait.as_deref().unwrap_or(DASH)),
        plain(row.load.as_deref().unwrap_or("idle")),
        thousandths(row.per_message_ns.value),
        interval(&row.per_message_ns),
        row.per_byte_ps
            .map_or(DASH.into(), |cost| thousandths(cost.value)),
        row.per_byte_ps.as_ref().map_or(DASH.into(), interval),
        sizes.collect::<Vec<_>>().join(", "),
    ]
}
