//! The figures behind a verdict: what was measured of its pairs at each stage, beside the others', and which rows they are.
//!
//! Model:   a figure is the median over pairs, with its interval by ranks at 95 % where there are six pairs or more. Shares of
//!          segments have Wilson's interval.
//! Checked: `figures_have_intervals_and_rows`.

use super::score::scores;
use super::suspect::{COUNT_MIN, Sign, shares};
use super::{KINDS, Kind, Matrix, Pair, Stage, Whom};
use crate::format::{rate, share, time};
use crate::index::median;
use sonde_stats::{median_rank_interval, share_interval};

/// When pairs were measured that something is wrong with.
const WHEN: [(Stage, &str); 3] = [
    (Stage::Together, "together"),
    (Stage::Again, "again"),
    (Stage::Alone, "alone"),
];
pub(super) const SUSPECTED: [Stage; 3] = [Stage::Together, Stage::Again, Stage::Alone];

impl Whom {
    /// Whether it is about this ordered pair.
    pub fn is_of(&self, (src, dst): Pair) -> bool {
        match *self {
            Self::Host(host) => host == src || host == dst,
            Self::Link((a, b)) => (a, b) == (src, dst) || (b, a) == (src, dst),
            Self::Direction(pair) => pair == (src, dst),
            Self::Fabric => false,
        }
    }

    /// The rows of its pairs, by their knob.
    fn rows(&self, matrix: &Matrix) -> String {
        let flow = |(a, b): Pair| format!("flow={}>{}", matrix.name(a), matrix.name(b));
        match *self {
            Self::Host(host) => {
                let name = matrix.name(host);
                format!("rows: flow={name}>* and flow=*>{name}")
            }
            Self::Link((a, b)) => format!("rows: {} and {}", flow((a, b)), flow((b, a))),
            Self::Direction(pair) => format!("rows: {}", flow(pair)),
            Self::Fabric => "rows: stage=again beside stage=alone".into(),
        }
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Latency => "latency",
        Kind::Stream => "rate",
        Kind::Duplex => "rate beside one the other way",
    }
}

/// A median over pairs, its interval, and how many they are.
fn figure(matrix: &Matrix, kind: Kind, stage: Stage, of: impl Fn(Pair) -> bool) -> Option<String> {
    let grid = matrix.grid(stage, kind);
    let some: Vec<f64> = grid
        .iter()
        .filter(|(pair, _)| of(**pair))
        .map(|(_, reading)| reading.value)
        .collect();
    let show = |value: f64| match kind {
        Kind::Latency => time(value),
        Kind::Stream | Kind::Duplex => rate(value),
    };
    let whole: Vec<u64> = some.iter().map(|value| *value as u64).collect();
    let pairs = match some.len() {
        1 => "1 pair".to_owned(),
        count => format!("{count} pairs"),
    };
    let middle = show(median(some)?);
    Some(match median_rank_interval(&whole, 0.95) {
        Some(interval) => format!(
            "{middle} [{} to {}] ({pairs})",
            show(interval.low as f64),
            show(interval.high as f64)
        ),
        None => format!("{middle} ({pairs})"),
    })
}

/// The figures of whom it is about, at each stage, and of all others; of the fabric those of the pairs that were suspected.
pub(super) fn evidence(matrix: &Matrix, whom: &Whom, suspected: impl Fn(Pair) -> bool) -> String {
    let inside = |pair: Pair| whom.is_of(pair) || (*whom == Whom::Fabric && suspected(pair));
    let mut parts = Vec::new();
    for kind in KINDS {
        let stages: Vec<String> = WHEN
            .iter()
            .filter_map(|(stage, when)| {
                let figure = figure(matrix, kind, *stage, inside)?;
                Some(format!("{when} {figure}"))
            })
            .collect();
        if stages.is_empty() {
            continue;
        }
        let others = figure(matrix, kind, Stage::Together, |pair| !inside(pair));
        let reference = figure(matrix, kind, Stage::Reference, |_| true);
        parts.push(format!(
            "{}: {}{}{}",
            name(kind),
            stages.join(", "),
            others.map_or_else(String::new, |text| format!("; others {text}")),
            reference.map_or_else(String::new, |text| format!(", alone {text}"))
        ));
    }
    parts.extend(held_by_window(matrix, inside));
    if let Some(scores) = scores(matrix, Stage::Together, Kind::Stream) {
        parts.push(format!(
            "of {} pairs, spread of rates {}",
            scores.pairs.len(),
            share(scores.spread.exp() - 1.0)
        ));
    }
    parts.push(whom.rows(matrix));
    parts.join("; ")
}

fn held_by_window(matrix: &Matrix, of: impl Fn(Pair) -> bool) -> Option<String> {
    let grid = matrix.grid(Stage::Together, Kind::Stream);
    let held = grid.iter().filter(|(pair, _)| of(**pair));
    let held = median(held.map(|(_, reading)| reading.rwnd_share).collect())?;
    (held >= 0.1).then(|| {
        format!(
            "the receiver's window held the senders {} of the time",
            share(held)
        )
    })
}

/// What was counted of a host's streams on its worse side, at all stages: the share with its interval, and the usual one.
pub(super) fn counted(matrix: &Matrix, host: usize, sign: Sign) -> String {
    let Some((kind, of, _)) = sign.counted() else {
        return String::new();
    };
    let all = shares(matrix, &SUSPECTED, (kind, of), &[]);
    let own = [0, 1].iter().filter_map(|side| all.get(&(host, *side)));
    let Some(worst) = own.max_by(|one, other| one.part().total_cmp(&other.part())) else {
        return String::new();
    };
    let interval = share_interval(worst.count, worst.segments)
        .filter(|_| worst.count >= COUNT_MIN)
        .map_or_else(String::new, |(low, high)| {
            format!(" [{} to {}]", share(low), share(high))
        });
    let others = all.iter().filter(|((one, _), _)| *one != host);
    let usual = median(others.map(|(_, share)| share.part()).collect()).unwrap_or(0.0);
    format!(
        "{}{interval} of segments ({} of {}), of the usual host's {}",
        share(worst.part()),
        worst.count,
        worst.segments,
        share(usual)
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::Grid;
    use super::*;

    #[test]
    fn figures_have_intervals_and_rows() {
        let mut grid = Grid::healthy(16, 5);
        grid.worsen(Kind::Stream, |(_, b)| (b == 2).then_some(4.0));
        grid.count(|(_, b), reading| reading.lost = 5 * u64::from(b == 2));
        let matrix = grid.matrix();
        let text = evidence(&matrix, &Whom::Host(2), |_| false);
        for part in [
            " to ",
            "(30 pairs)",
            "(210 pairs)",
            "flow=h3>* and flow=*>h3",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = evidence(&matrix, &Whom::Direction((0, 2)), |_| false);
        assert!(text.contains("(1 pair)") && text.contains("rows: flow=h1>h3"));
        let text = counted(&matrix, 2, Sign::Loss);
        assert!(
            text.contains("0.50 % [0.4") && text.ends_with("usual host's 0 %"),
            "{text}"
        );
    }
}
