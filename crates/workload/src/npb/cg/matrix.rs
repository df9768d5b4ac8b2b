//! The matrix of CG, and its product with a vector.
//!
//! Model:   A = sum w_i v_i v_i^T + (rcond - shift) I. v_i has `nonzer` random entries at random places, and 1/2 at place i;
//!          w_1 = 1, w_(i+1) = w_i rcond^(1/n). Every rank makes all v_i, and of A the block that is its own: row after row,
//!          in a dense row of sums. A block is stored by rows in panels of at most 2^16 columns, so that a column is 16
//!          bits and the part of the vector that a panel takes stays in the cache.
//! Source:  RNR-94-007 §2.2.2. Deviations: the order of the sums.
//! Checked: `class_s_is_that_of_the_dense_evaluation`, `panels_make_the_same_product`.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::super::random::Stream;
use super::Size;

/// Columns that a 16-bit number tells apart.
const PANEL: usize = 1 << 16;

/// What the matrix is made of, beside its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipe {
    pub seed: u64,
    pub rcond: f64,
    pub own_entry: f64,
}

impl Recipe {
    pub const OFFICIAL: Self = Self {
        seed: 314_159_265,
        rcond: 0.1,
        own_entry: 0.5,
    };
}

/// Rows of places and values, one after the other.
#[derive(Debug)]
struct Rows {
    ends: Vec<usize>,
    places: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    fn row(&self, index: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        let range = begin..self.ends[index];
        let values = self.values[range.clone()].iter().copied();
        self.places[range].iter().copied().zip(values)
    }
}

/// The v_i, places from zero.
fn vectors(size: &Size, recipe: &Recipe) -> Rows {
    let entries = size.n * (size.nonzer + 1);
    let mut rows = Rows {
        ends: Vec::with_capacity(size.n),
        places: Vec::with_capacity(entries),
        values: Vec::with_capacity(entries),
    };
    let scale = size.n.next_power_of_two().max(2) as f64;
    let mut stream = Stream::new(recipe.seed);
    stream.next();
    for own in 0..size.n {
        let begin = rows.places.len();
        while rows.places.len() < begin + size.nonzer {
            let value = stream.next();
            let place = (scale * stream.next()) as usize;
            if place < size.n && !rows.places[begin..].contains(&(place as u32)) {
                rows.places.push(place as u32);
                rows.values.push(value);
            }
        }
        let known = rows.places[begin..]
            .iter()
            .position(|place| *place as usize == own);
        match known {
            Some(index) => rows.values[begin + index] = recipe.own_entry,
            None => {
                rows.places.push(own as u32);
                rows.values.push(recipe.own_entry);
            }
        }
        rows.ends.push(rows.places.len());
    }
    rows
}

/// The same entries by places in `rows`: which vectors have one there, and which.
fn turned(vectors: &Rows, rows: &Range<usize>) -> Rows {
    let mut ends = vec![0_usize; rows.len()];
    let is_in = |place: u32| rows.contains(&(place as usize));
    for place in vectors.places.iter().filter(|place| is_in(**place)) {
        ends[*place as usize - rows.start] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        // For now where the row begins.
        sum += std::mem::replace(end, sum);
    }
    let (mut places, mut values) = (vec![0; sum], vec![0.0; sum]);
    for vector in 0..vectors.ends.len() {
        for (place, value) in vectors.row(vector).filter(|(place, _)| is_in(*place)) {
            let next = &mut ends[place as usize - rows.start];
            (places[*next], values[*next]) = (vector as u32, value);
            *next += 1;
        }
    }
    Rows {
        ends,
        places,
        values,
    }
}

/// At most 2^16 columns of a block.
#[derive(Debug)]
struct Panel {
    /// The first, within the block.
    first: usize,
    /// How many entries each row has.
    counts: Vec<u32>,
    columns: Vec<u16>,
    values: Vec<f64>,
}

/// A rank's part of the matrix.
#[derive(Debug)]
pub(super) struct Block {
    panels: Vec<Panel>,
    panel_columns: usize,
}

impl Block {
    pub fn new(size: &Size, recipe: &Recipe, rows: Range<usize>, columns: Range<usize>) -> Self {
        Self::with_panels(size, recipe, rows, columns, PANEL)
    }

    fn with_panels(
        size: &Size,
        recipe: &Recipe,
        rows: Range<usize>,
        columns: Range<usize>,
        panel: usize,
    ) -> Self {
        let vectors = vectors(size, recipe);
        let turned = turned(&vectors, &rows);
        let ratio = recipe.rcond.powf(1.0 / size.n as f64);
        let weights: Vec<f64> = std::iter::successors(Some(1.0), |weight| Some(weight * ratio))
            .take(size.n)
            .collect();
        let count = columns.len().div_ceil(panel);
        let panel_columns = columns.len().div_ceil(count);
        let entries = rows.len() * (size.nonzer + 1) * (size.nonzer + 1);
        let share = columns.len().min(panel_columns) as f64 / size.n as f64;
        let room = (entries as f64 * share) as usize;
        let mut panels: Vec<Panel> = (0..count)
            .map(|index| Panel {
                first: index * panel_columns,
                counts: Vec::with_capacity(rows.len()),
                columns: Vec::with_capacity(room),
                values: Vec::with_capacity(room),
            })
            .collect();
        let mut sums = vec![0.0; columns.len()];
        let mut is_there = vec![false; columns.len()];
        let mut there: Vec<usize> = Vec::new();
        for row in rows.clone() {
            let mut add = |column: usize, value: f64| {
                sums[column] += value;
                if !std::mem::replace(&mut is_there[column], true) {
                    there.push(column);
                }
            };
            for (vector, value) in turned.row(row - rows.start) {
                let scaled = weights[vector as usize] * value;
                let entries = vectors.row(vector as usize);
                for (place, other) in entries.filter(|(at, _)| columns.contains(&(*at as usize))) {
                    add(place as usize - columns.start, scaled * other);
                }
            }
            if columns.contains(&row) {
                add(row - columns.start, recipe.rcond - size.shift);
            }
            there.sort_unstable();
            panels.iter_mut().for_each(|panel| panel.counts.push(0));
            for column in there.drain(..) {
                let panel = &mut panels[column / panel_columns];
                panel.columns.push((column - panel.first) as u16);
                panel.values.push(std::mem::take(&mut sums[column]));
                is_there[column] = false;
                panel.counts[row - rows.start] += 1;
            }
        }
        Self {
            panels,
            panel_columns,
        }
    }

    /// The room that a vector of `columns` needs, of which a product takes as many: a panel reads by any 16-bit number.
    pub fn padded(&self, columns: usize) -> usize {
        columns.next_multiple_of(self.panel_columns) + PANEL
    }

    /// `to` = A `of`; `of` has the length [`padded`](Self::padded).
    pub fn product(&self, arch: Arch, of: &[f64], to: &mut [f64]) {
        for panel in &self.panels {
            let part = of[panel.first..panel.first + PANEL].try_into();
            arch.dispatch(Product {
                panel,
                of: part.expect("a panel's length"),
                to,
            });
        }
    }

    #[cfg(test)]
    fn entries(&self) -> usize {
        self.panels.iter().map(|panel| panel.values.len()).sum()
    }
}

struct Product<'a> {
    panel: &'a Panel,
    of: &'a [f64; PANEL],
    to: &'a mut [f64],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if S::IS_SCALAR {
            self.made::<false>();
        } else {
            self.made::<true>();
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn made<const FMA: bool>(self) {
        const WIDTH: usize = 8;
        let Self { panel, of, to } = self;
        let is_first = panel.first == 0;
        let (mut columns, mut values) = (&panel.columns[..], &panel.values[..]);
        for (to, count) in to.iter_mut().zip(&panel.counts) {
            let (row_columns, row_values);
            (row_columns, columns) = columns.split_at(*count as usize);
            (row_values, values) = values.split_at(*count as usize);
            let mut sums = [0.0; WIDTH];
            let eights = row_columns.chunks_exact(WIDTH);
            let value_eights = row_values.chunks_exact(WIDTH);
            let (last, value_last) = (eights.remainder(), value_eights.remainder());
            for (columns, values) in eights.zip(value_eights) {
                for ((sum, column), value) in sums.iter_mut().zip(columns).zip(values) {
                    *sum = madd::<FMA>(*value, of[usize::from(*column)], *sum);
                }
            }
            let mut sum = 0.0;
            for (column, value) in last.iter().zip(value_last) {
                sum = madd::<FMA>(*value, of[usize::from(*column)], sum);
            }
            let [a, b, c, d, e, f, g, h] = sums;
            sum += ((a + b) + (c + d)) + ((e + f) + (g + h));
            *to = if is_first { sum } else { *to + sum };
        }
    }
}

/// a b + c; in one rounding where the processor has it.
#[inline(always)]
fn madd<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npb::Class;

    fn product(block: &Block, of: &[f64], rows: usize) -> Vec<f64> {
        let mut padded = of.to_vec();
        padded.resize(block.padded(of.len()), f64::NAN);
        let mut to = vec![f64::NAN; rows];
        block.product(Arch::new(), &padded, &mut to);
        to
    }

    #[test]
    fn class_s_is_that_of_the_dense_evaluation() {
        let size = Size::of(Class::S);
        let block = Block::new(&size, &Recipe::OFFICIAL, 0..size.n, 0..size.n);
        assert_eq!(block.entries(), 78_148);
        let (mut x, mut y) = (vec![0.0; size.n], vec![0.0; size.n]);
        for index in 0..size.n {
            (x[index], y[index]) = ((index as f64).sin(), (index as f64 * 0.7).cos());
        }
        let (to_x, to_y) = (product(&block, &x, size.n), product(&block, &y, size.n));
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (left, right) = (dot(&y, &to_x), dot(&x, &to_y));
        assert!(
            (left / right - 1.0).abs() < 1e-11,
            "symmetric: {left} {right}"
        );
        assert!(dot(&x, &to_x) < 0.0, "negative definite");
    }

    #[test]
    fn panels_make_the_same_product() {
        let size = Size::of(Class::S);
        let recipe = Recipe::OFFICIAL;
        let of: Vec<f64> = (0..700).map(|index| f64::from(index).sin()).collect();
        let whole = Block::new(&size, &recipe, 100..450, 700..1400);
        let parted = Block::with_panels(&size, &recipe, 100..450, 700..1400, 123);
        assert_eq!(parted.panels.len(), 6);
        assert_eq!(whole.entries(), parted.entries());
        let (whole, parted) = (product(&whole, &of, 350), product(&parted, &of, 350));
        for (a, b) in whole.iter().zip(&parted) {
            assert!((a - b).abs() < 1e-13, "{a} {b}");
        }
    }
}
