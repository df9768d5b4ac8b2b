//! The matrix as the page draws it: a heat map of each figure, rows are senders and columns receivers.
//!
//! Model:   up to [`SIDE_MAX`] hosts each cell is one ordered pair. Of more hosts the next ones stand together, as many as it
//!          takes, and a cell has the median of its pairs; beside it stands the worst of them. So the page has at most
//!          `SIDE_MAX`² cells of each of three figures, whatever the number of hosts. A mark is a verdict's host, link or
//!          direction.
//! Units:   nanoseconds of half a round trip; bits a second. Values are rounded to four digits.
//! Checked: `a_cell_is_a_pair`, `many_hosts_share_cells`, `a_thousand_hosts_are_bounded`, `marks_are_of_the_verdict`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Number, Run};

use super::blame::blames;
use super::{Kind, Matrix, Reading, Stage, Whom};
use crate::index::median;
use crate::words::Words;

/// The most cells on a side of a heat map.
pub const SIDE_MAX: usize = 128;

/// The heat maps of a run of all pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeatView {
    /// The network.
    pub network: String,
    /// The hosts, in the order of rows and columns.
    pub hosts: Vec<String>,
    /// So many hosts next to each other share a row and a column: 1 up to [`SIDE_MAX`] hosts.
    pub share: usize,
    /// Cells on a side.
    pub side: usize,
    /// One for each figure that was measured of any pair.
    pub maps: Vec<HeatMap>,
    /// Whom the verdict blames.
    pub marks: Vec<HeatMark>,
}

/// What a heat map is of, with its unit last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeatFigure {
    /// Half a round trip.
    LatencyNs,
    /// A stream.
    RateBps,
    /// A stream beside one the other way.
    DuplexBps,
}

/// One figure of all pairs; cells row by row, null where nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeatMap {
    /// What the values are of.
    pub figure: HeatFigure,
    /// The median over a cell's launches, and over its pairs where there are several.
    pub values: Vec<Option<Number>>,
    /// The lower end of the interval of each; empty where no pair has six launches, or pairs share a cell.
    pub low: Vec<Option<Number>>,
    /// The upper end.
    pub high: Vec<Option<Number>>,
    /// The worst of the pairs of a cell; empty where each is one pair.
    pub worst: Vec<Option<Number>>,
}

/// Whom a verdict blames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeatMark {
    /// The rule, as `host-slow`.
    pub rule: String,
    /// The host of a row and column, or the sender.
    pub src: usize,
    /// The receiver; null where the mark is of a host.
    pub dst: Option<usize>,
    /// Whether the way back is meant too.
    pub both: bool,
    /// The verdict.
    pub sentence: String,
}

const FIGURES: [(Kind, HeatFigure); 3] = [
    (Kind::Latency, HeatFigure::LatencyNs),
    (Kind::Stream, HeatFigure::RateBps),
    (Kind::Duplex, HeatFigure::DuplexBps),
];

/// The heat maps of a run, if it is of all pairs.
pub(crate) fn heat(run: &Run) -> Option<HeatView> {
    Some(view(&Matrix::of(run)?))
}

fn view(matrix: &Matrix) -> HeatView {
    let hosts = matrix.hosts.len();
    let share = hosts.div_ceil(SIDE_MAX).max(1);
    let side = hosts.div_ceil(share);
    let mark = |whom: Whom| match whom {
        Whom::Host(host) => Some((host, None, true)),
        Whom::Link((src, dst)) => Some((src, Some(dst), true)),
        Whom::Direction((src, dst)) => Some((src, Some(dst), false)),
        Whom::Fabric => None,
    };
    let marks = blames(matrix).into_iter().filter_map(|blame| {
        let (src, dst, both) = mark(blame.whom)?;
        Some(HeatMark {
            rule: blame.rule.into(),
            src,
            dst,
            both,
            sentence: blame.found.sentence(),
        })
    });
    let maps = FIGURES
        .iter()
        .filter_map(|(kind, figure)| map(matrix, *kind, *figure, share, side));
    HeatView {
        network: matrix.network.clone(),
        hosts: matrix.hosts.clone(),
        share,
        side,
        maps: maps.collect(),
        marks: marks.collect(),
    }
}

fn map(
    matrix: &Matrix,
    kind: Kind,
    figure: HeatFigure,
    share: usize,
    side: usize,
) -> Option<HeatMap> {
    let mut cells: Vec<Vec<&Reading>> = vec![Vec::new(); side * side];
    for ((src, dst), reading) in matrix.grid(Stage::Together, kind) {
        cells[src / share * side + dst / share].push(reading);
    }
    if cells.iter().all(Vec::is_empty) {
        return None;
    }
    let of = |figure: &dyn Fn(&[&Reading]) -> Option<f64>| -> Vec<Option<Number>> {
        let all: Vec<Option<Number>> = cells
            .iter()
            .map(|cell| figure(cell).filter(|value| value.is_finite()).map(rounded))
            .collect();
        match all.iter().all(Option::is_none) {
            true => Vec::new(),
            false => all,
        }
    };
    let all = |cell: &[&Reading]| -> Vec<f64> { cell.iter().map(|one| one.value).collect() };
    let end = |upper: bool| {
        move |cell: &[&Reading]| match cell {
            [one] if share == 1 => one.ends.map(|(low, high)| if upper { high } else { low }),
            _ => None,
        }
    };
    let worst = |cell: &[&Reading]| {
        let worse = |one: &f64, other: &f64| match kind {
            Kind::Latency => one.total_cmp(other),
            Kind::Stream | Kind::Duplex => other.total_cmp(one),
        };
        (share > 1).then(|| all(cell).into_iter().max_by(worse))?
    };
    Some(HeatMap {
        figure,
        values: of(&|cell| median(all(cell))),
        low: of(&end(false)),
        high: of(&end(true)),
        worst: of(&worst),
    })
}

/// Four digits: what a colour and a line of text can tell.
fn rounded(value: f64) -> Number {
    if value == 0.0 {
        return Number(value);
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    Number(if digits >= 0 {
        (value * scale).round() / scale
    } else {
        (value / scale).round() * scale
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Grid;
    use super::*;

    #[test]
    fn a_cell_is_a_pair() {
        let mut grid = Grid::healthy(6, 1);
        grid.worsen(Kind::Stream, |pair| (pair == (4, 1)).then_some(3.0));
        let heat = view(&grid.matrix());
        let figures: Vec<HeatFigure> = heat.maps.iter().map(|map| map.figure).collect();
        assert_eq!(figures, FIGURES.map(|(_, figure)| figure));
        assert_eq!((heat.share, heat.side), (1, 6));
        let rate = &heat.maps[1];
        let at = |src: usize, dst: usize| rate.values[src * 6 + dst].map(|value| value.0);
        assert_eq!(at(3, 3), None);
        assert!(at(4, 1).unwrap() < 0.5 * at(1, 4).unwrap());
        assert_eq!((rate.low.len(), rate.worst.len()), (0, 0));
    }

    #[test]
    fn many_hosts_share_cells() {
        let mut grid = Grid::healthy(SIDE_MAX + 2, 1);
        grid.worsen(Kind::Stream, |pair| (pair == (2, 7)).then_some(30.0));
        let heat = view(&grid.matrix());
        assert_eq!((heat.share, heat.side), (2, 65));
        let rate = &heat.maps[1];
        let cell = 65 + 3; // Row 2 / 2, column 7 / 2.
        let (value, worst) = (rate.values[cell].unwrap().0, rate.worst[cell].unwrap().0);
        assert!(value > 7e7 && worst < 4e6, "{value} {worst}");
    }

    #[test]
    fn a_thousand_hosts_are_bounded() {
        let hosts = 1_000;
        let reading = Reading {
            value: 123_456_789.0,
            ..Reading::default()
        };
        let mut matrix = Matrix {
            network: "lan".into(),
            hosts: (0..hosts).map(|host| format!("node{host:04}")).collect(),
            ..Matrix::default()
        };
        // Enough of all pairs to fill each cell.
        for src in (0..hosts).step_by(8) {
            for dst in (0..hosts).filter(|dst| *dst != src && dst % 8 < 2) {
                for (kind, _) in FIGURES {
                    let key = (Stage::Together, kind, (src, dst));
                    matrix.readings.insert(key, reading.clone());
                }
            }
        }
        let heat = view(&matrix);
        assert_eq!((heat.share, heat.side), (8, 125));
        assert!(
            heat.maps
                .iter()
                .all(|map| map.values.iter().all(Option::is_some))
        );
        let bytes = serde_json::to_string(&heat).unwrap().len();
        assert!(bytes < 1_500_000, "{bytes} bytes");
    }

    #[test]
    fn marks_are_of_the_verdict() {
        let mut grid = Grid::healthy(8, 1);
        grid.worsen(Kind::Stream, |(_, dst)| (dst == 5).then_some(4.0));
        let heat = view(&grid.matrix());
        let [mark] = &heat.marks[..] else {
            panic!("{:?}", heat.marks)
        };
        assert_eq!((mark.src, mark.dst), (5, None));
        assert!(
            mark.rule.starts_with("host-") && mark.sentence.contains("h6"),
            "{mark:?}"
        );
        assert_eq!(view(&Grid::healthy(8, 1).matrix()).marks, []);
    }

    #[test]
    fn four_digits_are_kept() {
        for (value, kept) in [
            (123_456_789.0, 123_500_000.0),
            (0.123_456, 0.1235),
            (0.0, 0.0),
            (99_999.0, 100_000.0),
        ] {
            assert_eq!(rounded(value), Number(kept));
        }
    }
}
