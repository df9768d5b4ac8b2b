//! What frames cost.
//!
//! Model:   `mtu-crossing`: two measured sizes one byte apart, of which the larger needs one frame more; its warm latency is
//!          at least 5 % and 1 µs higher, and where both have intervals these do not meet. The step is the cost of a frame.
//!          `small-frames`: a line of at least 1 Gb/s with an MTU of at most 1 500 bytes, whose stream is below 90 % of the
//!          ceiling while an end uses at least half of a CPU for it: larger frames spread that over more bytes.
//! Source:  NASA TM-107196 (sizes around each MTU); RFC 791 §3.2. Thresholds: 5 % is the interval that a run aims for; half
//!          of a CPU at one end is where the cost for a frame, not for a byte, begins to decide.
//! Checked: `a_step_at_the_mtu`, `a_byte_more_in_the_same_frame`, `fast_line_small_frames`.

use sonde_measure::Line;

use super::{Finding, Severity};
use crate::index::{Index, LATENCY, interval, p50};
use crate::limit::FULL;
use crate::words::mtu as words;

const STEP: f64 = 0.05;
const STEP_NS_MIN: f64 = 1_000.0;
const FAST_BPS: u64 = 1_000_000_000;
const SMALL_MTU_BYTES: u64 = 1_500;
/// Part of a CPU from which the cost of a frame begins to decide.
const USED: f64 = 0.5;

/// `mtu-crossing`.
pub(super) fn crossing(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let rows = index.of(line, LATENCY);
    let (below, above) = rows.windows(2).find_map(|pair| {
        let [below, above] = pair else {
            return None;
        };
        let (small, large) = (below.size_bytes?, above.size_bytes?);
        let frames = |size| index.frames(line, &below.cell, size);
        (large == small + 1 && frames(large)? == frames(small)? + 1).then_some((*below, *above))
    })?;
    let (low, high) = (p50(below), p50(above));
    let apart = interval(below)
        .zip(interval(above))
        .is_none_or(|(below, above)| below.1 < above.0);
    if low <= 0.0 || high < low * (1.0 + STEP) || high - low < STEP_NS_MIN || !apart {
        return None;
    }
    let found = words::Step {
        line,
        small_bytes: below.size_bytes?,
        large_bytes: above.size_bytes?,
        low_ns: low,
        high_ns: high,
    };
    Some(Finding::said("mtu-crossing", Severity::Note, &found).on(line))
}

/// `small-frames`.
pub(super) fn small_frames(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let network = &index.network(&line.network)?.row;
    let fast = network.line_bps.is_some_and(|bps| bps >= FAST_BPS);
    if !fast || network.mtu_bytes > SMALL_MTU_BYTES || line.polls() {
        return None;
    }
    let (stream, ceiling) = (index.stream(line)?, index.ceiling(line)?);
    let used = index
        .cpu_shares(stream)
        .into_iter()
        .flatten()
        .max_by(f64::total_cmp)?;
    if p50(stream) >= FULL * ceiling || used < USED {
        return None;
    }
    let found = words::SmallFrames {
        line,
        mtu_bytes: network.mtu_bytes,
        rate_bps: p50(stream),
        ceiling_bps: ceiling,
        used,
    };
    Some(Finding::said("small-frames", Severity::Advice, &found).on(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};
    use sonde_measure::Quantity;

    fn crossed(sizes: [u64; 2], times: [u64; 2]) -> Option<Finding> {
        let run = Runs::new()
            .network(net("ethernet-100"))
            .latency("ethernet-100", "udp", sizes[0], times[0])
            .latency("ethernet-100", "udp", sizes[1], times[1])
            .done();
        crossing(&Index::new(&run), &line("ethernet-100", "udp"))
    }

    #[test]
    fn a_step_at_the_mtu() {
        let finding = crossed([1_472, 1_473], [268_000, 290_000]).unwrap();
        assert_eq!(
            finding.sentence,
            "One byte more than a frame of ethernet-100 carries costs 22.00 µs over udp, 8.2 % more: a message of 1473 B needs \
             one frame more than one of 1472 B."
        );
        assert!(finding.remedy.unwrap().contains("1472 B"));
        assert_eq!(crossed([1_472, 1_473], [268_000, 270_000]), None);
        assert_eq!(crossed([1_472, 1_473], [290_000, 268_000]), None);
    }

    #[test]
    fn a_byte_more_in_the_same_frame() {
        assert_eq!(crossed([100, 101], [268_000, 290_000]), None);
        assert_eq!(crossed([1_400, 1_500], [268_000, 290_000]), None);
    }

    #[test]
    fn fast_line_small_frames() {
        let found = |mtu| {
            let run = Runs::new()
                .network(
                    net("ethernet-10g")
                        .mtu(mtu)
                        .line(10_000_000_000)
                        .tcp_max(9_414_000_000),
                )
                .stream("ethernet-10g", "tcp", 5_000_000_000)
                .beside(Quantity::CpuDstNsPerByte, 1_200)
                .done();
            small_frames(&Index::new(&run), &line("ethernet-10g", "tcp"))
        };
        let finding = found(1_500).unwrap();
        assert!(finding.sentence.contains("53.1 % of what"), "{finding:?}");
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("5.000 Gb/s / 8 / 1500 B = 416 666 frames/s")
        );
        assert_eq!(found(9_000), None);
    }
}
