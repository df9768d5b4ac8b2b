//! What a message costs on each line: start-up, message, frame and byte apart; and the size that reaches half of the rate.
//!
//! Model:   warm latency against size is fitted as message + frames × frame + bytes × byte, none negative. What is paid
//!          only once is the whole cold start less a warm round trip of the same size; where no message of that size was
//!          measured warm, less twice the fitted latency. The half-performance size is where single messages reach half of
//!          the ceiling of a stream, or where the network has none, half of their own largest rate. All of it is of idle
//!          networks: under load a message also waits.
//! Source:  Hockney, Parallel Computing 20 (1994) §2, r∞ and n½; NASA TM-107196, cold less warm. Deviations: frames apart.
//! Units:   nanoseconds and bytes.
//! Checked: `a_line_is_taken_apart`, `a_cold_start_less_a_warm_round_trip`, `half_the_ceiling_or_half_of_its_own`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{KnobValues, Line, Number};
use sonde_stats::{Fit, FitPoint};

use crate::index::{Index, LATENCY, MESSAGE, START, p50};

/// The cost of messages on one (network, path, method, wait, knobs).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FitRow {
    /// The network.
    pub network: String,
    /// The path.
    pub path: String,
    /// How bytes are handed over, as `zerocopy`.
    #[serde(default)]
    pub method: Option<String>,
    /// What else was set, by name.
    #[serde(default)]
    pub knobs: KnobValues,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// For each message, one way; null below two sizes.
    pub per_message_ns: Option<Number>,
    /// For each frame of it; null where frames and bytes cannot be told apart.
    pub per_frame_ns: Option<Number>,
    /// For each user byte of it; null below two sizes.
    pub per_byte_ns: Option<Number>,
    /// Once, at first use; null where no cold start was measured.
    pub setup_ns: Option<Number>,
    /// Where single messages reach half of the rate; null where no measured pair of sizes spans it.
    pub half_size_bytes: Option<u64>,
    /// The largest distance of a point from the fit, as a share of the point; null below two sizes.
    pub residual: Option<Number>,
}

/// The fits of a run, in the order of its lines.
pub(crate) fn fits(index: &Index<'_>) -> Vec<FitRow> {
    index.lines().filter_map(|line| fit(index, line)).collect()
}

fn fit(index: &Index<'_>, line: &Line) -> Option<FitRow> {
    let points: Vec<FitPoint> = index
        .of(line, LATENCY)
        .into_iter()
        .filter_map(|row| {
            let size_bytes = row.size_bytes?;
            Some(FitPoint {
                size_bytes,
                frames: index.frames(line, &row.cell, size_bytes).unwrap_or(1),
                ns: p50(row).round() as u64,
            })
        })
        .collect();
    let fit = sonde_stats::fit(&points);
    let row = FitRow {
        network: line.network.clone(),
        path: line.path.clone(),
        method: line.method.clone(),
        knobs: line.knobs.clone(),
        wait: line.wait.clone(),
        per_message_ns: fit.map(|fit| Number(fit.per_message_ns as f64)),
        per_frame_ns: fit.and_then(|fit| Some(Number(fit.per_frame_ns? as f64))),
        per_byte_ns: fit.map(|fit| Number(fit.per_byte_ps as f64 / 1e3)),
        setup_ns: setup_ns(index, line, fit.as_ref()).map(Number),
        half_size_bytes: half_size(index, line).and_then(HalfSize::at),
        residual: fit.map(|fit| Number(fit.residual_per_mille_max as f64 / 1e3)),
    };
    let says = fit.is_some() || row.setup_ns.is_some() || row.half_size_bytes.is_some();
    says.then_some(row)
}

/// The whole cold start less a warm round trip of the same size; never below zero.
fn setup_ns(index: &Index<'_>, line: &Line, fit: Option<&Fit>) -> Option<f64> {
    let starts = index.of(line, START);
    let warm = index.of(line, LATENCY);
    let start = starts
        .iter()
        .find(|start| warm.iter().any(|row| row.size_bytes == start.size_bytes))
        .or(starts.first())?;
    let size = start.size_bytes?;
    let measured = warm
        .iter()
        .find(|row| row.size_bytes == Some(size))
        .map(|row| p50(row));
    let one_way = measured.or_else(|| {
        let fit = fit?;
        let frames = index.frames(line, &start.cell, size).unwrap_or(1);
        let of_frames = fit.per_frame_ns.unwrap_or(0) as f64 * frames as f64;
        let of_bytes = fit.per_byte_ps as f64 / 1e3 * size as f64;
        Some(fit.per_message_ns as f64 + of_frames + of_bytes)
    })?;
    Some((p50(start) - 2.0 * one_way).max(0.0))
}

/// Where single messages reach half of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HalfSize {
    /// Between two measured sizes, interpolated.
    At(u64),
    /// Above the largest that was measured.
    Above(u64),
    /// At or below the smallest that was measured.
    Below(u64),
}

impl HalfSize {
    fn at(self) -> Option<u64> {
        match self {
            Self::At(size) => Some(size),
            Self::Above(_) | Self::Below(_) => None,
        }
    }
}

/// The half-performance size of an idle line; `None` where no single messages were measured.
pub(crate) fn half_size(index: &Index<'_>, line: &Line) -> Option<HalfSize> {
    if !line.is_idle() {
        return None;
    }
    let points: Vec<(u64, u64)> = index
        .of(line, MESSAGE)
        .into_iter()
        .filter_map(|row| Some((row.size_bytes?, p50(row).round() as u64)))
        .collect();
    let (first, last) = (points.first()?, points.last()?);
    if points.len() < 2 && index.ceiling(line).is_none() {
        // One size is its own best.
        return None;
    }
    let own = points.iter().map(|(_, bps)| *bps).max()?;
    let peak = index.ceiling(line).map_or(own, |bps| bps as u64);
    if let Some(size) = sonde_stats::half_size(&points, peak) {
        return Some(HalfSize::At(size));
    }
    if 2 * u128::from(first.1) >= u128::from(peak) {
        Some(HalfSize::Below(first.0))
    } else {
        Some(HalfSize::Above(last.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};
    use sonde_measure::Step;

    #[test]
    fn a_line_is_taken_apart() {
        let mut run = Runs::new().network(net("ethernet-100").line(100_000_000));
        for size in [1u64, 64, 512, 1_448, 1_449, 4_096, 16_384, 61_440] {
            // 30 µs a message, 2 µs a frame, 80 ns a byte.
            let ns = 30_000 + 2_000 * size.div_ceil(1_448) + 80 * size;
            run = run.latency("ethernet-100", "tcp", size, ns);
        }
        let run = run.done();
        let fits = fits(&Index::new(&run));
        assert_eq!(fits.len(), 1);
        let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.05;
        assert!(near(fits[0].per_byte_ns.unwrap().0, 80.0), "{fits:?}");
        assert!(
            near(fits[0].per_message_ns.unwrap().0, 30_000.0),
            "{fits:?}"
        );
        assert!(near(fits[0].per_frame_ns.unwrap().0, 2_000.0), "{fits:?}");
        assert_eq!((fits[0].setup_ns, fits[0].half_size_bytes), (None, None));
        assert!(fits[0].residual.unwrap().0 < 0.05);
    }

    #[test]
    fn a_cold_start_less_a_warm_round_trip() {
        let run = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 8, 10_000)
            .latency("wire", "tcp", 4_096, 30_000)
            .latency("wire", "tcp", 16_384, 90_000)
            .startup("wire", "tcp", 8, None, 170_000)
            .startup("wire", "tcp", 8, Some(Step::Connect), 40_000)
            .done();
        let fits = fits(&Index::new(&run));
        assert_eq!(fits[0].setup_ns, Some(Number(150_000.0)));
    }

    #[test]
    fn half_the_ceiling_or_half_of_its_own() {
        let line = |network: &str| crate::testing::line(network, "tcp");
        let run = Runs::new()
            .network(net("ethernet-100").line(100_000_000))
            .network(net("wire"))
            .message("ethernet-100", "tcp", 1_024, 10_000_000)
            .message("ethernet-100", "tcp", 16_384, 70_000_000)
            .message("wire", "tcp", 1_024, 90_000_000)
            .message("wire", "tcp", 65_536, 100_000_000)
            .done();
        let index = Index::new(&run);
        let Some(HalfSize::At(size)) = half_size(&index, &line("ethernet-100")) else {
            panic!("{:?}", half_size(&index, &line("ethernet-100")));
        };
        assert!((1_025..16_384).contains(&size), "{size}");
        // Without a ceiling its own largest counts, and the smallest message has more than half of it.
        assert_eq!(
            half_size(&index, &line("wire")),
            Some(HalfSize::Below(1_024))
        );
        let slow = Runs::new()
            .network(net("ethernet-100").line(100_000_000))
            .message("ethernet-100", "tcp", 1_024, 10_000_000)
            .done();
        assert_eq!(
            half_size(&Index::new(&slow), &line("ethernet-100")),
            Some(HalfSize::Above(1_024))
        );
    }
}
