//! The levels of what is measured again and again, and where one ends and another begins.
//!
//! Model:   values about a level are independent and normal. Windows are looked at: all values, and windows of 8, 16, 32… of them, each
//!          half of its length after the one before, so that a level between two like ones is seen. A window is divided where the
//!          means before and after differ most by Student's t against what chance gives once in a thousand looks at all
//!          [`Sequences`] together, with all their windows and divisions (Bonferroni); if it is beyond that; if the means are `least`
//!          apart; and if they are half as far apart still without the value that moves them most. The best division of all windows
//!          is made, then each half is looked at again. A level has two values at least. Below six values nothing is divided. The
//!          deviation is never taken to be less than a thousandth.
//! Source:  Kovács, Bühlmann, Li and Munk 2023, seeded binary segmentation; Wallace 1959, the normal deviate of Student's t; Abramowitz & Stegun 26.2.23.
//!          Deviations: none.
//! Units:   of the values; logarithms where changes are relative.
//! Checked: `steady_values_have_one_level`, `a_change_is_found_after_two`, `what_stands_alone_is_no_level`,
//!          `what_can_be_found_is_found`, `values_of_a_level_are_as_far_apart_as_their_scatter_says`, `students_quantiles_are_known`.

use std::ops::Range;

/// A false level once in so many looks, over all sequences.
const FALSE_SHARE: f64 = 1e-3;
/// Values of a level.
const LEVEL_MIN: usize = 2;
/// Values that can be divided.
const VALUES_MIN: usize = 6;
/// Degrees of freedom that tell a deviation.
const FREE_MIN: usize = 5;
/// The least deviation of values.
const DEVIATION_MIN: f64 = 1e-3;

/// How levels are looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequences {
    /// How many sequences are looked at together.
    pub count: usize,
    /// Means that are nearer than this are of one level.
    pub least: f64,
}

impl Sequences {
    /// Where the levels of `values` after the first begin, in their order.
    pub fn changes(self, values: &[f64]) -> Vec<usize> {
        let looks = windows(0..values.len()).map(|window| window.len()).sum();
        let mut changes = Vec::new();
        self.divide(values, 0..values.len(), looks, &mut changes);
        changes
    }

    fn divide(self, values: &[f64], part: Range<usize>, looks: usize, changes: &mut Vec<usize>) {
        let found = windows(part.clone()).filter_map(|window| self.division(values, window, looks));
        if let Some((_, at)) = found.max_by(|one, other| one.0.total_cmp(&other.0)) {
            self.divide(values, part.start..at, looks, changes);
            changes.push(at);
            self.divide(values, at..part.end, looks, changes);
        }
    }

    /// The least change that would be found after two more values, of as many as these about one level; `None` below four.
    pub fn detectable(self, values: &[f64]) -> Option<f64> {
        let count = values.len();
        (count + LEVEL_MIN >= VALUES_MIN).then_some(())?;
        let deviation = (squares(values) / (count - 1) as f64)
            .sqrt()
            .max(DEVIATION_MIN);
        let parts = 1.0 / count as f64 + 1.0 / LEVEL_MIN as f64;
        let looks = windows(0..count + LEVEL_MIN)
            .map(|window| window.len())
            .sum();
        let t = self.bound(count + LEVEL_MIN, looks);
        Some((t * deviation * parts.sqrt()).max(self.least))
    }

    /// How values scatter about their levels.
    pub fn scatter(self, values: &[f64]) -> Scatter {
        let begins = self.changes(values);
        let ends = begins.iter().copied().chain([values.len()]);
        let starts = std::iter::once(0).chain(begins.iter().copied());
        let mut all = Scatter::default();
        for (start, end) in starts.zip(ends) {
            let level = values.get(start..end).unwrap_or_default();
            if !level.is_empty() {
                all.add(Scatter {
                    squares: squares(level),
                    free: level.len() - 1,
                });
            }
        }
        all
    }

    /// Where a window is divided best, and how far beyond its bound that is, if it is to be divided.
    fn division(self, values: &[f64], window: Range<usize>, looks: usize) -> Option<(f64, usize)> {
        let all = values.get(window.clone())?;
        (all.len() >= VALUES_MIN).then_some(())?;
        let bound = self.bound(all.len(), looks);
        let divisions = LEVEL_MIN..=all.len() - LEVEL_MIN;
        let judged = divisions.filter_map(|at| {
            let (before, after) = all.split_at(at);
            let squares = squares(before) + squares(after);
            let deviation = (squares / (all.len() - 2) as f64).sqrt();
            let parts = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
            let apart = mean(after) - mean(before);
            let t = apart.abs() / (deviation.max(DEVIATION_MIN) * parts.sqrt());
            let is_one_value = nearest(before, after, apart.signum()) < apart.abs() / 2.0;
            let is_found = t >= bound && apart.abs() >= self.least && !is_one_value;
            is_found.then_some((t / bound, window.start + at))
        });
        judged.max_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// Student's t that so many values have at one of their divisions by chance.
    fn bound(self, values: usize, looks: usize) -> f64 {
        let looks = self.count.max(1) * looks.max(1);
        students(FALSE_SHARE / (2 * looks) as f64, (values - 2) as f64)
    }
}

/// How values of one level scatter about it: of several sequences, or of one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scatter {
    squares: f64,
    free: usize,
}

impl Scatter {
    /// That of both together.
    pub fn add(&mut self, other: Self) {
        self.squares += other.squares;
        self.free += other.free;
    }

    /// How far apart two more values of the level are but by chance of this probability, below one half; `None` of fewer than
    /// five degrees of freedom.
    pub fn apart(self, probability: f64) -> Option<f64> {
        (self.free >= FREE_MIN).then_some(())?;
        let free = self.free as f64;
        let deviation = (self.squares / free).sqrt().max(DEVIATION_MIN);
        Some(students(probability / 2.0, free) * deviation * std::f64::consts::SQRT_2)
    }
}

/// All of a part, and the windows within it.
fn windows(part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let length = part.len();
    let lengths = (3..)
        .map(|power| 1 << power)
        .take_while(move |one| *one < length);
    let (start, end) = (part.start, part.end);
    let within = lengths.flat_map(move |one| {
        let starts = (start..=end - one).step_by(one / 2);
        // The newest values have a window of their own.
        starts.chain([end - one]).map(move |at| at..at + one)
    });
    std::iter::once(part).chain(within)
}

/// How far apart the means are, in the direction `sign`, without the value of either side that moves them most.
fn nearest(before: &[f64], after: &[f64], sign: f64) -> f64 {
    let without = |values: &[f64], sign: f64| {
        let farthest = values.iter().map(|value| sign * value);
        let farthest = sign * farthest.fold(f64::NEG_INFINITY, f64::max);
        (values.iter().sum::<f64>() - farthest) / (values.len() - 1) as f64
    };
    let after_less = sign * (without(after, sign) - mean(before));
    let before_less = sign * (mean(after) - without(before, -sign));
    after_less.min(before_less)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of squares about the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Student's t with so many degrees of freedom that is exceeded with this probability, below one half.
fn students(p: f64, free: f64) -> f64 {
    let z = normal_deviate(p) * (8.0 * free + 3.0) / (8.0 * free + 1.0);
    (free * (z * z / free).exp_m1()).sqrt()
}

/// The standard normal deviate that is exceeded with this probability, below one half; within 4.5·10⁻⁴.
pub(crate) fn normal_deviate(p: f64) -> f64 {
    let t = (-2.0 * p.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    const ONE: Sequences = Sequences {
        count: 1,
        least: 0.02,
    };

    /// Normal values of a deviation of one per cent.
    fn steady(draws: &mut Pcg64Mcg, count: usize) -> Vec<f64> {
        let uniform = |draws: &mut Pcg64Mcg| (draws.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let normal =
            |draws: &mut Pcg64Mcg| -> f64 { (0..12).map(|_| uniform(draws)).sum::<f64>() - 6.0 };
        (0..count).map(|_| 5.0 + 0.01 * normal(draws)).collect()
    }

    #[test]
    fn students_quantiles_are_known() {
        // Tables of Student's t.
        for (p, free, t) in [
            (0.025, 10.0, 2.228),
            (0.005, 5.0, 4.032),
            (0.0005, 20.0, 3.850),
            (0.025, 120.0, 1.980),
        ] {
            let found = students(p, free);
            assert!((found - t).abs() < 0.01 * t, "{p} {free}: {found}");
        }
        assert!((normal_deviate(1e-6) - 4.753_4).abs() < 1e-3);
    }

    #[test]
    fn steady_values_have_one_level() {
        let mut draws = Pcg64Mcg::seed_from_u64(1);
        let tight = Sequences { least: 0.0, ..ONE };
        let divided = (0..20_000)
            .filter(|_| !tight.changes(&steady(&mut draws, 30)).is_empty())
            .count();
        // Once in a thousand at most, so 20; the bound is loose.
        assert!(divided <= 35, "{divided}");
        assert!(ONE.changes(&[]).is_empty());
        assert!(ONE.changes(&[1.0; 30]).is_empty());
    }

    #[test]
    fn a_change_is_found_after_two() {
        let mut draws = Pcg64Mcg::seed_from_u64(2);
        let many = Sequences { count: 50, ..ONE };
        let mut found = 0;
        for _ in 0..1_000 {
            let mut values = steady(&mut draws, 22);
            values[20..].iter_mut().for_each(|value| *value += 0.1);
            found += usize::from(many.changes(&values) == [20]);
        }
        assert!(found >= 990, "{found} of 1000");
        // And back again: three levels.
        let mut values = steady(&mut draws, 40);
        values[15..25].iter_mut().for_each(|value| *value -= 0.1);
        assert_eq!(many.changes(&values), [15, 25]);
    }

    #[test]
    fn what_stands_alone_is_no_level() {
        let mut draws = Pcg64Mcg::seed_from_u64(3);
        for at in [5, 29] {
            let mut values = steady(&mut draws, 30);
            values[at] += 0.5;
            assert!(ONE.changes(&values).is_empty());
        }
    }

    #[test]
    fn values_of_a_level_are_as_far_apart_as_their_scatter_says() {
        let mut draws = Pcg64Mcg::seed_from_u64(5);
        let mut beyond = 0;
        for _ in 0..2_000 {
            // Two levels, of which the scatter knows nothing.
            let mut values = steady(&mut draws, 20);
            values[10..].iter_mut().for_each(|value| *value += 0.2);
            let apart = ONE.scatter(&values).apart(0.05).unwrap();
            let two = steady(&mut draws, 2);
            beyond += usize::from((two[0] - two[1]).abs() > apart);
        }
        // One in twenty: 100, give or take 10.
        assert!((60..=140).contains(&beyond), "{beyond} of 2000");
        assert_eq!(ONE.scatter(&[1.0; 5]).apart(0.05), None);
        let mut few = ONE.scatter(&[1.0, 1.01]);
        (0..4).for_each(|_| few.add(ONE.scatter(&[5.0, 5.01])));
        // Student's t of five, of a deviation of 0.01/√2: 2.571 · 0.01.
        assert!((few.apart(0.05).unwrap() - 0.02571).abs() < 3e-4);
    }

    #[test]
    fn what_can_be_found_is_found() {
        let mut draws = Pcg64Mcg::seed_from_u64(4);
        let mut found = 0;
        for _ in 0..1_000 {
            let mut values = steady(&mut draws, 20);
            let change = ONE.detectable(&values).unwrap();
            // Below it half is chance; with half as much again little is.
            let more = steady(&mut draws, 2);
            values.extend(more.iter().map(|value| value + 1.5 * change));
            found += usize::from(ONE.changes(&values).len() == 1);
        }
        assert!(found >= 950, "{found} of 1000");
        assert_eq!(ONE.detectable(&[1.0; 3]), None);
        assert_eq!(ONE.detectable(&[1.0; 9]), Some(0.02));
    }
}
