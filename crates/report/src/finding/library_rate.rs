//! Libraries that reach a small part of what their network allows.
//!
//! Model:   `library-rate`: a library's fastest stream, or where none was measured its largest single messages, reach less than half
//!          of what the network allows for the same, and less than half of what the transport beneath reaches. A transport
//!          that is as slow is the larger cause, and told by the rules of streams. Where the network has no known limit the transport's
//!          rate stands for it. Idle networks only.
//! Source:  half of a rate is where Hockney's half-performance size lies: below it most of the time is not transfer.
//! Units:   bits a second.
//! Checked: `a_library_that_reaches_little_is_named`, `a_library_that_reaches_half_is_not`, `a_slow_transport_is_the_larger_cause`,
//!          `late_emulation_is_said_first`, `a_slow_library_is_said_once`.

use sonde_measure::{Layer, Line, Quantity, ResultRow};

use super::{Finding, Severity};
use crate::index::{Index, MESSAGE, p50};
use crate::library::beneath;
use crate::words::library_rate::Slow;

/// The part of what is allowed below which a library's rate is told.
const SMALL: f64 = 0.5;

/// `library-rate`.
pub(super) fn slow(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let row = rated(index, line).filter(|row| row.layer == Layer::Library)?;
    let rate_bps = p50(row);
    let transport_bps = transport(index, line, row);
    let possible_bps = allowed(index, line, row).or(transport_bps)?;
    let is_small = |bps: f64| rate_bps < SMALL * bps;
    if !is_small(possible_bps) || !transport_bps.is_none_or(is_small) {
        return None;
    }
    let found = Slow {
        line,
        message_bytes: row
            .size_bytes
            .filter(|_| row.mode.as_deref() == MESSAGE.mode),
        rate_bps,
        possible_bps,
        transport: transport_bps.map(|bps| (beneath(&line.path), bps)),
        is_disturbed: row.is_disturbed(),
    };
    Some(Finding::said("library-rate", Severity::Advice, &found).on(line))
}

/// The fastest stream, else the largest single messages.
fn rated<'i>(index: &'i Index<'_>, line: &Line) -> Option<&'i ResultRow> {
    let messages = || index.of(line, MESSAGE).into_iter().next_back();
    index.stream(line).or_else(messages)
}

/// What the transport beneath reaches in the same way, by whichever wait is the faster.
fn transport(index: &Index<'_>, line: &Line, row: &ResultRow) -> Option<f64> {
    let rows = index.rows.iter().filter(|one| {
        one.layer == Layer::Transport
            && one.path == beneath(&line.path)
            && (&one.network, &one.load, &one.mode) == (&row.network, &row.load, &row.mode)
            && (one.quantity, one.phase, one.step) == (row.quantity, row.phase, row.step)
            && (row.mode.as_deref() != MESSAGE.mode || one.size_bytes == row.size_bytes)
    });
    let rates = rows.map(p50).filter(|bps| *bps > 0.0);
    rates.max_by(f64::total_cmp)
}

/// What the network allows of it: of messages of this size where the model knows them, else of a stream.
fn allowed(index: &Index<'_>, line: &Line, row: &ResultRow) -> Option<f64> {
    let of_messages = || {
        let size = row
            .size_bytes
            .filter(|_| row.mode.as_deref() == MESSAGE.mode)?;
        let network = index.network(&line.network)?;
        let mut ceilings = network.ceilings.iter();
        let of = ceilings.find(|one| {
            one.path == beneath(&line.path)
                && one.quantity == Quantity::ThroughputBps
                && one.size_bytes == Some(size)
        })?;
        Some(of.value as f64)
    };
    let of_streams = || {
        let transport = Line {
            path: beneath(&line.path).into(),
            ..line.clone()
        };
        index.ceiling(line).or_else(|| index.ceiling(&transport))
    };
    of_messages().or_else(of_streams)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net, verdict};

    fn lan() -> Runs {
        Runs::new().network(net("ethernet-1g").line(1_000_000_000))
    }

    fn found(runs: Runs, path: &str) -> Option<Finding> {
        let run = runs.done();
        slow(&Index::new(&run), &line("ethernet-1g", path))
    }

    #[test]
    fn a_library_that_reaches_little_is_named() {
        let stream = lan().stream("ethernet-1g", "tcp", 930_000_000).stream(
            "ethernet-1g",
            "native:tcp",
            56_000_000,
        );
        let finding = found(stream, "native:tcp").unwrap();
        assert_eq!(
            finding.sentence,
            "A stream over native:tcp on ethernet-1g reaches 56.00 Mb/s, 5.9 % of what the network allows, where tcp reaches 930.0 Mb/s."
        );
        assert_eq!(finding.severity, Severity::Advice);
        assert_eq!(finding.lost.unwrap().left(), 56_000_000);
        let messages = lan().message("ethernet-1g", "native:tcp", 65_536, 56_000_000);
        let finding = found(messages, "native:tcp").unwrap();
        assert!(
            finding.sentence.starts_with(
                "Messages of 64 KiB over native:tcp on ethernet-1g reach 56.00 Mb/s, 5.9 %"
            ),
            "{finding:?}"
        );
        // Without a known limit the transport's rate stands for it.
        let unrated = Runs::new()
            .network(net("ethernet-1g"))
            .stream("ethernet-1g", "tcp", 930_000_000)
            .stream("ethernet-1g", "native:tcp", 56_000_000);
        let finding = found(unrated, "native:tcp").unwrap();
        assert!(
            finding.sentence.contains("6.0 % of what tcp reaches"),
            "{finding:?}"
        );
    }

    #[test]
    fn a_library_that_reaches_half_is_not() {
        let half = lan().stream("ethernet-1g", "tcp", 930_000_000).stream(
            "ethernet-1g",
            "native:tcp",
            480_000_000,
        );
        assert_eq!(found(half, "native:tcp"), None);
        // And it is not a rule of transports.
        let tcp = lan().stream("ethernet-1g", "tcp", 56_000_000);
        assert_eq!(found(tcp, "tcp"), None);
    }

    #[test]
    fn a_slow_transport_is_the_larger_cause() {
        let both = lan().stream("ethernet-1g", "tcp", 90_000_000).stream(
            "ethernet-1g",
            "native:tcp",
            56_000_000,
        );
        assert_eq!(found(both, "native:tcp"), None);
        // Of messages those of the same size are held against it, not a stream that is fast.
        let messages = lan()
            .stream("ethernet-1g", "tcp", 930_000_000)
            .message("ethernet-1g", "tcp", 65_536, 90_000_000)
            .message("ethernet-1g", "native:tcp", 65_536, 56_000_000);
        assert_eq!(found(messages, "native:tcp"), None);
    }

    #[test]
    fn late_emulation_is_said_first() {
        let late = lan()
            .verdict(verdict(2_000))
            .stream("ethernet-1g", "native:tcp", 56_000_000);
        let remedy = found(late, "native:tcp").unwrap().remedy.unwrap();
        assert!(remedy.contains("measure again"), "{remedy}");
    }

    #[test]
    fn a_slow_library_is_said_once() {
        let run = lan()
            .stream("ethernet-1g", "tcp", 930_000_000)
            .stream("ethernet-1g", "native:tcp", 56_000_000)
            .done();
        let of_library: Vec<String> = crate::findings_of(&run)
            .into_iter()
            .filter(|one| one.path.as_deref() == Some("native:tcp"))
            .map(|one| one.rule)
            .collect();
        assert_eq!(of_library, ["library-rate"]);
    }
}
