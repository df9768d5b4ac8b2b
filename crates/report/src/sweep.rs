//! A sweep: the rate of a stream against the program's buffer, a curve for each combination of the other settings.
//!
//! Model:   the plateau of a curve is the largest of its medians; its knee is the smallest buffer whose median reaches
//!          [`PLATEAU`] of that. Launches that measured all buffers have knees of their own, and the knee's interval is the
//!          rank interval of these. A window that was set (as `window`, `rcvbuf` or `buffer`) bounds the rate by window /
//!          round trip; where it has less than two segments the sender stops after each one until it is acknowledged, and the
//!          peer delays that: start/stop.
//! Source:  the HIPPI study's socket tests (throughput against user buffer for each socket buffer); RFC 7323 §1.1;
//!          RFC 1122 §4.2.3.2 for the delayed acknowledgement.
//! Units:   bits a second, bytes, nanoseconds; CPU in ns a user byte.
//! Checked: `a_curve_has_knee_and_plateau`, `a_window_bounds_its_curve`, `launches_give_the_knee_its_interval`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{
    Buffer, KnobValues, Line, LineField, Number, Phase, Quantity, Repetition, ResultRow, Run,
    Socket,
};
use sonde_stats::median_rank_interval;

use crate::index::{Index, STREAM, grouped, interval, p50};

/// Part of the largest rate from which a buffer is on the plateau.
pub const PLATEAU: f64 = 0.95;
const CONFIDENCE: f64 = 0.95;

/// One buffer of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepPoint {
    /// The program's buffer: bytes of each call.
    pub size_bytes: u64,
    /// The median rate.
    pub bps: Number,
    /// Lower end of its interval; null below six launches.
    pub ci95_low: Option<Number>,
    /// Upper end.
    pub ci95_high: Option<Number>,
    /// The sender's buffer as its kernel granted it; null where no launch read it back.
    #[serde(default)]
    pub granted_send_bytes: Option<u64>,
    /// The receiver's.
    #[serde(default)]
    pub granted_recv_bytes: Option<u64>,
    /// CPU time of the sender, in ns a byte.
    pub cpu_src: Option<Number>,
    /// CPU time of the receiver, in ns a byte.
    pub cpu_dst: Option<Number>,
    /// Datagrams lost, of all sent.
    pub lost: Option<Number>,
}

/// The rate against the program's buffer, all else being equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepCurve {
    /// The network.
    pub network: String,
    /// The path.
    pub path: String,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// How bytes are handed over.
    pub method: Option<String>,
    /// What was set, by name.
    pub knobs: KnobValues,
    /// By ascending buffer.
    pub points: Vec<SweepPoint>,
    /// The largest median.
    pub plateau_bps: Number,
    /// The smallest buffer on the plateau.
    pub knee_bytes: u64,
    /// Lower end of its interval; null below six launches.
    pub knee_low: Option<u64>,
    /// Upper end.
    pub knee_high: Option<u64>,
    /// The window that was set.
    pub window_bytes: Option<u64>,
    /// What that window allows: window / round trip.
    pub bound_bps: Option<Number>,
    /// User bytes in a segment.
    pub segment_bytes: Option<u64>,
}

impl SweepCurve {
    /// What it is of; its network was idle.
    pub(crate) fn line(&self) -> Line {
        Line {
            network: self.network.clone(),
            path: self.path.clone(),
            method: self.method.clone(),
            wait: self.wait.clone(),
            load: None,
            knobs: self.knobs.clone(),
        }
    }

    /// The path, with method and wait where they are not the usual ones.
    pub fn by(&self) -> String {
        self.line().without(&[LineField::Knobs]).by()
    }

    /// What was set in words: `buffer=64KiB window=1MiB`; `as it is` where nothing was.
    pub fn setting(&self) -> String {
        if self.knobs.is_empty() {
            return "as it is".into();
        }
        self.knobs.to_string()
    }
}

/// The curves of a run: of each (network, path, wait) with more than one buffer, method or setting.
pub(crate) fn curves<'i>(index: &'i Index<'_>) -> Vec<SweepCurve> {
    let apart = [LineField::Method, LineField::Knobs];
    let siblings = grouped(index.lines(), |line| (*line).clone().without(&apart));
    let curves_of = |lines: Vec<&'i Line>| {
        let streams: Vec<(&Line, Vec<&ResultRow>)> = lines
            .into_iter()
            .map(|line| (line, index.of(line, STREAM)))
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        let many = streams.len() > 1 || streams.iter().any(|(_, rows)| rows.len() > 1);
        let streams = streams.into_iter().filter(move |_| many);
        streams.filter_map(move |(line, rows)| curve(index, line, &rows))
    };
    siblings
        .into_iter()
        .flat_map(|(_, lines)| curves_of(lines))
        .collect()
}

fn curve(index: &Index<'_>, line: &Line, rows: &[&ResultRow]) -> Option<SweepCurve> {
    let first = rows.first()?;
    let number = |value: f64| Number(value);
    let point = |row: &&ResultRow| {
        let beside = |quantity| index.beside(row, quantity).map(number);
        let granted = |buffer: fn(&Socket) -> Option<Buffer>| {
            index.least(&row.cell, |socket| {
                Some(buffer(socket)?.granted_bytes as u64)
            })
        };
        let (low, high) = interval(row).map_or((None, None), |(low, high)| (Some(low), Some(high)));
        Some(SweepPoint {
            size_bytes: row.size_bytes?,
            bps: number(p50(row)),
            ci95_low: low.map(number),
            ci95_high: high.map(number),
            granted_send_bytes: granted(|socket| socket.send_buffer),
            granted_recv_bytes: granted(|socket| socket.recv_buffer),
            cpu_src: beside(Quantity::CpuSrcNsPerByte),
            cpu_dst: beside(Quantity::CpuDstNsPerByte),
            lost: beside(Quantity::LostShare),
        })
    };
    let points: Vec<SweepPoint> = rows.iter().filter_map(point).collect();
    let rates: Vec<(u64, f64)> = points
        .iter()
        .map(|one| (one.size_bytes, one.bps.0))
        .collect();
    let (knee_bytes, plateau) = knee(&rates)?;
    let known = knees(index, rows);
    let ends = median_rank_interval(&known, CONFIDENCE);
    let is_tcp = line.path.starts_with("tcp");
    let window = is_tcp.then(|| window(&line.knobs)).flatten();
    let trip = index.round_trip_ns(line).filter(|ns| *ns > 0.0);
    Some(SweepCurve {
        network: line.network.clone(),
        path: line.path.clone(),
        wait: line.wait.clone(),
        method: line.method.clone(),
        knobs: line.knobs.clone(),
        plateau_bps: number(plateau),
        knee_bytes,
        knee_low: ends.map(|ends| ends.low),
        knee_high: ends.map(|ends| ends.high),
        window_bytes: window,
        bound_bps: window
            .zip(trip)
            .map(|(bytes, ns)| number(bytes as f64 * 8e9 / ns)),
        segment_bytes: index.segment_bytes(line, &first.cell),
        points,
    })
}

/// The smallest buffer on the plateau, and the plateau.
fn knee(rates: &[(u64, f64)]) -> Option<(u64, f64)> {
    let plateau = rates.iter().map(|(_, bps)| *bps).max_by(f64::total_cmp)?;
    let on = rates.iter().find(|(_, bps)| *bps >= PLATEAU * plateau)?;
    Some((on.0, plateau))
}

/// The knee of each launch that measured all buffers.
fn knees(index: &Index<'_>, rows: &[&ResultRow]) -> Vec<u64> {
    let mut launches: BTreeMap<u64, Vec<(u64, f64)>> = BTreeMap::new();
    for row in rows {
        let Some(size) = row.size_bytes else { continue };
        for Repetition { result, .. } in index.repetitions(&row.cell) {
            let rate = result.samples(Quantity::ThroughputBps, Phase::Warm);
            if let Some(bps) = rate.and_then(sonde_stats::Series::median) {
                launches
                    .entry(result.index)
                    .or_default()
                    .push((size, bps as f64));
            }
        }
    }
    let whole = launches.values().filter(|rates| rates.len() == rows.len());
    whole
        .filter_map(|rates| knee(rates))
        .map(|(knee, _)| knee)
        .collect()
}

/// The smallest window that knobs set; without scaling none is above 65 535.
fn window(knobs: &KnobValues) -> Option<u64> {
    let sizes = ["window", "rcvbuf", "buffer"]
        .iter()
        .filter_map(|name| bytes(knobs.get(*name)?));
    let unscaled = knobs
        .get("scaling")
        .filter(|value| *value == "off")
        .map(|_| 65_535);
    sizes.chain(unscaled).min()
}

/// A size as knobs have it.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let units = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("B", 1),
    ];
    let (number, unit) = units
        .iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)))
        .unwrap_or((text, 1));
    number.trim().parse::<u64>().ok()?.checked_mul(unit)
}

/// The curves of a run, for tables of one's own.
pub fn sweep(run: &Run) -> Vec<SweepCurve> {
    curves(&Index::new(run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    fn hippi() -> Runs {
        Runs::new()
            .network(net("hippi").line(800_000_000))
            .latency("hippi", "tcp", 1, 1_550_000)
    }

    #[test]
    fn a_curve_has_knee_and_plateau() {
        let run = [
            (1_024, 50),
            (4_096, 110),
            (10_240, 157),
            (65_536, 160),
            (262_144, 158),
        ]
        .into_iter()
        .fold(hippi(), |run, (size, mega)| {
            run.stream_of("hippi", "tcp", size, mega * 1_000_000)
        })
        .done();
        let all = sweep(&run);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].plateau_bps, Number(160e6));
        assert_eq!(all[0].knee_bytes, 10_240);
        assert_eq!(all[0].points.len(), 5);
        assert_eq!(
            (all[0].window_bytes, all[0].setting()),
            (None, "as it is".into())
        );
        assert_eq!(sweep(&hippi().stream("hippi", "tcp", 1_000_000).done()), []);
    }

    #[test]
    fn a_window_bounds_its_curve() {
        let run = hippi()
            .knob("buffer", "64KiB")
            .stream("hippi", "tcp", 160_000_000)
            .knob("buffer", "384KiB")
            .stream("hippi", "tcp", 560_000_000)
            .done();
        let all = sweep(&run);
        assert_eq!(all.len(), 2);
        // The study's plateau of 20 MB/s at 64 KiB and 3.1 ms.
        let bound = all[0].bound_bps.unwrap().0;
        assert!((bound / 8e6 - 21.1).abs() < 0.1, "{bound}");
        assert_eq!(all[1].window_bytes, Some(393_216));
    }

    #[test]
    fn launches_give_the_knee_its_interval() {
        let run = hippi()
            .launches(8)
            .stream_of("hippi", "tcp", 1_024, 80_000_000)
            .stream_of("hippi", "tcp", 65_536, 160_000_000)
            .done();
        let all = sweep(&run);
        assert_eq!(
            (all[0].knee_low, all[0].knee_high),
            (Some(65_536), Some(65_536))
        );
        let few = hippi()
            .launches(2)
            .stream_of("hippi", "tcp", 1_024, 80_000_000)
            .stream_of("hippi", "tcp", 65_536, 160_000_000)
            .done();
        assert_eq!(sweep(&few)[0].knee_low, None);
    }

    #[test]
    fn sizes_are_read_as_knobs_have_them() {
        for (text, size) in [
            ("64KiB", Some(65_536)),
            ("1MiB", Some(1 << 20)),
            ("1500", Some(1_500)),
            ("on", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(bytes(text), size, "{text}");
        }
    }
}
