//! Where the curves of two paths cross: below that size the one is faster, above it the other.
//!
//! Model:   two idle lines of one network, at least one of them a library's, whose warm latency was measured at the same sizes.
//!          At a size one is surely the faster where the 95 % interval of the difference of the launches' medians leaves out
//!          zero. The curves cross between two such sizes of opposite signs with none between them: those two sizes are the
//!          interval of the crossing. Within it the place is where the medians' lines, straight over the logarithm of the
//!          size, meet. Lines that wait otherwise are set beside each other only where both are libraries', which wait as
//!          they do.
//! Source:  N43; `sonde_stats::difference`.
//! Checked: `curves_cross_once`, `what_is_not_sure_is_no_crossing`.

use sonde_measure::{Line, LineField};

use super::{Finding, Severity};
use crate::index::{Index, LATENCY};
use crate::library::{SEED, medians, middle};

/// The medians of the launches of both lines at one size.
struct Both {
    size_bytes: u64,
    one_ns: Vec<u64>,
    other_ns: Vec<u64>,
}

/// `curves-cross`.
pub(super) fn curves(index: &Index<'_>) -> Vec<Finding> {
    let lines: Vec<&Line> = index.lines().collect();
    let mut all = Vec::new();
    for (place, one) in lines.iter().enumerate() {
        for other in &lines[place + 1..] {
            if are_rivals(one, other) {
                let sizes = both(index, one, other);
                all.extend(crossings(&sizes).map(|at| told(one, other, &at)));
            }
        }
    }
    all
}

fn is_library(line: &Line) -> bool {
    line.path.contains(':')
}

fn are_rivals(one: &Line, other: &Line) -> bool {
    // Libraries wait as they do.
    let apart: &[LineField] = match (is_library(one), is_library(other)) {
        (true, true) => &[LineField::Path, LineField::Wait],
        (true, false) | (false, true) => &[LineField::Path],
        (false, false) => return false,
    };
    one.is_same_but(other, apart)
}

fn both(index: &Index<'_>, one: &Line, other: &Line) -> Vec<Both> {
    let theirs = index.of(other, LATENCY);
    let paired = index.of(one, LATENCY).into_iter().filter_map(|row| {
        let same = theirs
            .iter()
            .find(|that| that.size_bytes == row.size_bytes)?;
        let of = |id: &str| -> Option<Vec<u64>> {
            Some(medians(index, index.cell(id)?).into_values().collect())
        };
        Some(Both {
            size_bytes: row.size_bytes?,
            one_ns: of(&row.cell)?,
            other_ns: of(&same.cell)?,
        })
    });
    paired.collect()
}

/// One place where the curves cross.
#[derive(Debug, PartialEq)]
struct Crossing {
    /// Surely not crossed yet, and surely crossed.
    between: (u64, u64),
    /// About where.
    about: u64,
    /// Whether the first line is the faster one below.
    first_below: bool,
}

fn crossings(sizes: &[Both]) -> impl Iterator<Item = Crossing> + '_ {
    let sure = |at: usize| {
        let both = &sizes[at];
        let apart = sonde_stats::difference(&both.one_ns, &both.other_ns, SEED)?;
        match (apart.low, apart.high) {
            (low, _) if low > 0 => Some((at, false)),
            (_, high) if high < 0 => Some((at, true)),
            _ => None,
        }
    };
    let sure: Vec<(usize, bool)> = (0..sizes.len()).filter_map(sure).collect();
    let turns: Vec<_> = sure
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .map(|pair| (pair[0], pair[1]))
        .collect();
    turns
        .into_iter()
        .filter_map(|((low, first_below), (high, _))| {
            Some(Crossing {
                between: (sizes[low].size_bytes, sizes[high].size_bytes),
                about: meeting(&sizes[low..=high])?,
                first_below,
            })
        })
}

/// Where the medians' lines meet, over the logarithm of the size.
fn meeting(sizes: &[Both]) -> Option<u64> {
    let apart = |both: &Both| Some(middle(&both.one_ns)? as f64 - middle(&both.other_ns)? as f64);
    for pair in sizes.windows(2) {
        let (low, high) = (apart(&pair[0])?, apart(&pair[1])?);
        if (low < 0.0) != (high < 0.0) {
            let (from, to) = (pair[0].size_bytes as f64, pair[1].size_bytes as f64);
            let along = low / (low - high);
            return Some((from * (to / from).powf(along)).round() as u64);
        }
    }
    None
}

fn told(one: &Line, other: &Line, at: &Crossing) -> Finding {
    let (below, above) = match at.first_below {
        true => (one, other),
        false => (other, one),
    };
    let found = crate::words::crossing::Crossing {
        below,
        above,
        about_bytes: at.about,
        between_bytes: at.between,
    };
    Finding::said("curves-cross", Severity::Note, &found).on_network(&one.network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    const SIZES: [u64; 4] = [16, 256, 4_096, 65_536];

    /// Two paths by a fixed part and one for each byte, in nanoseconds and picoseconds.
    fn run(one: (u64, u64), other: (u64, u64), launches: u64) -> sonde_measure::Run {
        let mut run = Runs::new()
            .network(net("ethernet-10"))
            .launches(launches)
            .spread(0.01);
        for (path, (message, byte)) in [("pvm:direct", one), ("openmpi:tcp", other)] {
            for size in SIZES {
                run = run.latency("ethernet-10", path, size, message + byte * size / 1_000);
            }
        }
        run.done()
    }

    #[test]
    fn curves_cross_once() {
        // 20 µs more at once against 20 ns a byte more: alike at 1,000 B.
        let crossed = run((60_000, 100_000), (40_000, 120_000), 6);
        let found = curves(&Index::new(&crossed));
        assert_eq!(found.len(), 1, "{found:?}");
        let sentence = &found[0].sentence;
        assert!(
            sentence.starts_with("On ethernet-10 openmpi:tcp is faster up to about "),
            "{sentence}"
        );
        assert!(
            sentence.ends_with("and pvm:direct above: the curves cross between 256 B and 4 KiB."),
            "{sentence}"
        );
        let index = Index::new(&crossed);
        let lines: Vec<&Line> = index.lines().collect();
        let at = crossings(&both(&index, lines[0], lines[1])).next().unwrap();
        assert!(
            (257..4_096).contains(&at.about) && !at.first_below,
            "{at:?}"
        );
    }

    #[test]
    fn what_is_not_sure_is_no_crossing() {
        for (one, other, launches) in [
            ((60_000, 100_000), (40_000, 120_000), 2),
            ((60_000, 120_000), (40_000, 100_000), 6),
            ((40_000, 100_000), (40_000, 100_000), 6),
        ] {
            let run = run(one, other, launches);
            assert_eq!(curves(&Index::new(&run)), []);
        }
    }
}
