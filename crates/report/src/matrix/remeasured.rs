//! Whether what stood out does so again.
//!
//! Model:   together again, a rate or time must be beyond what the spread explains among as many suspects; alone, beyond six tenths of
//!          the least effect beside pairs of which nothing stood out. Of what is counted, half of the least share will do, of two
//!          segments at least, where it is three times that of those pairs. Bad both times: it is a host's or a way's. Bad together and good alone: the fabric's.
//! Checked: the tests of `blame`.

use super::score::{badness, bound, effect, scores};
use super::suspect::{Share, Sign, Standing, TIMES};
use super::{Kind, Matrix, Pair, Stage};
use crate::index::median;

/// The part of the least effect that must be left alone.
const LEFT: f64 = 0.6;

/// How what stood out came out of being measured again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remeasured {
    Bad,
    Fabric,
    Gone,
    /// It was not measured again.
    Unknown,
}

/// Whether a sign of these pairs is there again, together and alone. `among` is what stood out with it.
pub(super) fn held(
    matrix: &Matrix,
    sign: Sign,
    among: &Standing,
    of: impl Fn(Pair) -> bool,
) -> Remeasured {
    let (again, alone) = match sign {
        Sign::Slow(kind) => slow_again(matrix, kind, among, &of),
        _ => (
            counted_again(matrix, Stage::Again, sign, &of),
            counted_again(matrix, Stage::Alone, sign, &of),
        ),
    };
    match (again, alone) {
        // What was left out where others were measured again is not known to be bad.
        (None, None) if was_again(matrix) => Remeasured::Gone,
        (None, None) => Remeasured::Unknown,
        (Some(false), _) => Remeasured::Gone,
        (_, Some(true)) => Remeasured::Bad,
        // Only so many are measured alone: of the others it is not known whose it is.
        (Some(true), None) if was_alone(matrix) && !failed_alone(matrix, &of) => Remeasured::Gone,
        (Some(true), None) => Remeasured::Bad,
        (Some(true), Some(false)) => Remeasured::Fabric,
        (None, Some(false)) => Remeasured::Gone,
    }
}

fn was_again(matrix: &Matrix) -> bool {
    let stages = matrix.readings.keys().chain(matrix.failed.keys());
    stages
        .into_iter()
        .any(|(stage, ..)| *stage == Stage::Again || *stage == Stage::Alone)
}

fn was_alone(matrix: &Matrix) -> bool {
    let mut stages = matrix.readings.keys().chain(matrix.failed.keys());
    stages.any(|(stage, ..)| *stage == Stage::Alone)
}

/// Whether a flow of these pairs gave nothing with nothing beside it.
fn failed_alone(matrix: &Matrix, of: impl Fn(Pair) -> bool) -> bool {
    let mut failed = matrix.failed.keys();
    failed.any(|(stage, _, pair)| *stage == Stage::Alone && of(*pair))
}

fn slow_again(
    matrix: &Matrix,
    kind: Kind,
    among: &Standing,
    of: impl Fn(Pair) -> bool,
) -> (Option<bool>, Option<bool>) {
    let middle = |stage: Stage, usual: f64| {
        let grid = matrix.grid(stage, kind);
        let some = grid.iter().filter(|(pair, _)| of(**pair));
        median(
            some.map(|(_, reading)| badness(kind, reading.value, usual))
                .collect(),
        )
    };
    let suspects = among.hosts.len() + among.pairs.len();
    // The first measurement has the most pairs to tell the spread by.
    let first = scores(matrix, Stage::Together, kind).map(|first| first.spread);
    let again = scores(matrix, Stage::Again, kind).and_then(|own| {
        let bound = bound(kind, first.unwrap_or(own.spread), suspects);
        Some(middle(Stage::Again, own.usual)? > bound)
    });
    let reference = matrix.grid(Stage::Reference, kind);
    let reference = median(reference.values().map(|reading| reading.value).collect());
    let alone =
        reference.and_then(|usual| Some(middle(Stage::Alone, usual)? > LEFT * effect(kind)));
    (again, alone)
}

/// Whether the streams of these pairs have it again, and more than pairs of which nothing stood out.
fn counted_again(
    matrix: &Matrix,
    stage: Stage,
    sign: Sign,
    of: impl Fn(Pair) -> bool,
) -> Option<bool> {
    let (kind, count, least) = sign.counted()?;
    let sum = |stage: Stage, of: &dyn Fn(Pair) -> bool| {
        let mut sum = Share::default();
        for (pair, reading) in matrix.grid(stage, kind) {
            if of(pair) {
                sum.add(count(reading), reading.segments);
            }
        }
        sum
    };
    let own = sum(stage, &of);
    let usual = sum(Stage::Reference, &|_| true).part();
    let enough = own.count >= 2 && own.part() >= (least / 2.0).max(TIMES * usual);
    (own.segments > 0).then_some(enough)
}
