//! The figures behind a verdict: what was measured of its pairs at each stage, beside the others', and which rows they are.
//!
//! Model:   a figure is the median over pairs, with its interval by ranks at 95 % where there are six pairs or more. Shares of
//!          segments have Wilson's interval.
//! Checked: `figures_have_intervals_and_rows`.

use super::score::scores;
use super::suspect::{COUNT_MIN, Sign, shares};
use super::{KINDS, Kind, Matrix, Pair, Stage, Whom};
use crate::index::median;
use crate::words::matrix::{Behind, Counted, Figure, Figures, OfKind, Rows};
use sonde_stats::{median_rank_interval, share_interval};

/// When pairs were measured that something is wrong with.
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

    /// The rows of its pairs.
    fn rows(&self, matrix: &Matrix) -> Rows {
        let name = |host: usize| matrix.name(host).to_owned();
        let way = |(a, b): Pair| (name(a), name(b));
        match *self {
            Self::Host(host) => Rows::Host(name(host)),
            Self::Link((a, b)) => Rows::Ways(vec![way((a, b)), way((b, a))]),
            Self::Direction(pair) => Rows::Ways(vec![way(pair)]),
            Self::Fabric => Rows::Fabric,
        }
    }
}

/// A median over pairs, its interval, and how many they are.
fn figure(matrix: &Matrix, kind: Kind, stage: Stage, of: impl Fn(Pair) -> bool) -> Option<Figure> {
    let grid = matrix.grid(stage, kind);
    let some: Vec<f64> = grid
        .iter()
        .filter(|(pair, _)| of(**pair))
        .map(|(_, reading)| reading.value)
        .collect();
    let whole: Vec<u64> = some.iter().map(|value| *value as u64).collect();
    Some(Figure {
        pairs: some.len(),
        middle: median(some)?,
        ends: median_rank_interval(&whole, 0.95).map(|ends| (ends.low as f64, ends.high as f64)),
    })
}

/// The figures of whom it is about, at each stage, and of all others; of the fabric those of the pairs that were suspected.
pub(super) fn evidence(matrix: &Matrix, whom: &Whom, suspected: impl Fn(Pair) -> bool) -> Behind {
    let inside = |pair: Pair| whom.is_of(pair) || (*whom == Whom::Fabric && suspected(pair));
    let of = |kind: Kind| {
        let stages = SUSPECTED.iter();
        let stages =
            stages.filter_map(|stage| Some((*stage, figure(matrix, kind, *stage, inside)?)));
        OfKind {
            kind,
            stages: stages.collect(),
            others: figure(matrix, kind, Stage::Together, |pair| !inside(pair)),
            reference: figure(matrix, kind, Stage::Reference, |_| true),
        }
    };
    let kinds = KINDS.into_iter().map(of);
    let spread = scores(matrix, Stage::Together, Kind::Stream);
    Behind::Figures(Figures {
        kinds: kinds.filter(|kind| !kind.stages.is_empty()).collect(),
        held: held_by_window(matrix, inside),
        spread: spread.map(|scores| (scores.pairs.len(), scores.spread.exp() - 1.0)),
        rows: whom.rows(matrix),
    })
}

fn held_by_window(matrix: &Matrix, of: impl Fn(Pair) -> bool) -> Option<f64> {
    let grid = matrix.grid(Stage::Together, Kind::Stream);
    let held = grid.iter().filter(|(pair, _)| of(**pair));
    median(held.map(|(_, reading)| reading.rwnd_share).collect()).filter(|held| *held >= 0.1)
}

/// What was counted of a host's streams on its worse side, at all stages: the share with its interval, and the usual one.
pub(super) fn counted(matrix: &Matrix, host: usize, sign: Sign) -> Option<Counted> {
    let (kind, of, _) = sign.counted()?;
    let all = shares(matrix, &SUSPECTED, (kind, of), &[]);
    let own = [0, 1].iter().filter_map(|side| all.get(&(host, *side)));
    let worst = own.max_by(|one, other| one.part().total_cmp(&other.part()))?;
    let others = all.iter().filter(|((one, _), _)| *one != host);
    let usual = median(others.map(|(_, share)| share.part()).collect()).unwrap_or(0.0);
    Some(Counted {
        count: worst.count,
        segments: worst.segments,
        part: worst.part(),
        ends: share_interval(worst.count, worst.segments).filter(|_| worst.count >= COUNT_MIN),
        usual,
    })
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
        let words = |whom: &Whom| match evidence(&matrix, whom, |_| false) {
            Behind::Figures(figures) => figures.words(),
            Behind::Failure(why) => why,
        };
        let text = words(&Whom::Host(2));
        for part in [
            " to ",
            "(30 pairs)",
            "(210 pairs)",
            "flow=h3>* and flow=*>h3",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = words(&Whom::Direction((0, 2)));
        assert!(text.contains("(1 pair)") && text.contains("rows: flow=h1>h3"));
        let text = counted(&matrix, 2, Sign::Loss).unwrap().words();
        assert!(
            text.contains("0.50 % [0.4") && text.ends_with("usual host's 0 %"),
            "{text}"
        );
    }
}
