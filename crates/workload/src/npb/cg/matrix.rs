//! The matrix of CG, and its product with a vector.
//!
//! Model:   A = sum w_i v_i v_i^T + (rcond - shift) I. v_i has `nonzer` random entries at random places, and 1/2 at place i;
//!          w_1 = 1, w_(i+1) = w_i rcond^(1/n). Every rank makes all v_i, and of A the block that is its own: row after row,
//!          in a dense row of sums. A block is stored by rows in panels of at most 2^16 columns, so that a column is 16
//!          bits and the part of the vector that a panel takes stays in the cache. A large block of one or two ranks keeps
//!          the symmetric square on the diagonal by its upper half.
//! Source:  RNR-94-007 §2.2.2. Deviations: the order of the sums.
//! Checked: `class_s_is_that_of_the_dense_evaluation`, `however_it_is_kept_the_product_is_the_same`.

use std::cmp::Ordering;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::super::random::Stream;
use super::super::wide::{self, fused};
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

impl Panel {
    fn push(&mut self, column: usize, value: f64) {
        self.columns.push((column - self.first) as u16);
        self.values.push(value);
        *self.counts.last_mut().expect("a row was begun") += 1;
    }
}

/// Entries in panels.
#[derive(Debug)]
struct Panels {
    panels: Vec<Panel>,
    width: usize,
}

impl Panels {
    /// With room for so many entries of all panels.
    fn new(rows: usize, columns: usize, width_max: usize, entries: f64) -> Self {
        let count = columns.div_ceil(width_max);
        let room = (entries / count as f64) as usize;
        let width = columns.div_ceil(count);
        let panel = |index| Panel {
            first: index * width,
            counts: Vec::with_capacity(rows),
            columns: Vec::with_capacity(room),
            values: Vec::with_capacity(room),
        };
        Self {
            panels: (0..count).map(panel).collect(),
            width,
        }
    }

    fn begin_row(&mut self) {
        self.panels
            .iter_mut()
            .for_each(|panel| panel.counts.push(0));
    }

    fn push(&mut self, column: usize, value: f64) {
        self.panels[column / self.width].push(column, value);
    }
}

/// The block's square on the diagonal, which is symmetric: what is above the diagonal stands for what is below it.
#[derive(Debug)]
struct Mirror {
    /// The first of its rows, within the block; its columns are all of the block.
    first: usize,
    diagonal: Vec<f64>,
    above: Panels,
    /// What entries below the diagonal add to a product.
    below: Vec<f64>,
}

/// What a rank has of the matrix, and how it keeps it.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    /// The columns are among the rows, and a square is kept as half of it: less to read, more to do.
    pub is_mirrored: bool,
    /// Columns of a panel at most.
    pub panel: usize,
}

impl Shape {
    /// The square is halved only where its columns are among the rows and entries are too many for a cache next to the processor.
    pub fn new(size: &Size, rows: Range<usize>, columns: Range<usize>) -> Self {
        const CACHE_ENTRIES: usize = 800_000;
        let entries = columns.len() * (size.nonzer + 1) * (size.nonzer + 1);
        let is_whole = rows.len() == size.n;
        Self {
            is_mirrored: is_whole && entries > CACHE_ENTRIES,
            rows,
            columns,
            panel: PANEL,
        }
    }

    /// Bytes of all that is kept for a product, nearly.
    pub fn memory_bytes(&self, size: &Size) -> u64 {
        const ENTRY: usize = size_of::<u16>() + size_of::<f64>();
        let (height, width) = (self.rows.len() as f64, self.columns.len());
        // Each vector has an entry more than its random ones; two vectors seldom have one at the same place.
        let pairs = (size.nonzer * (size.nonzer + 1)) as f64;
        let n = size.n as f64;
        let density = (1.0 + n * (1.0 - (-pairs / n).exp())) / n;
        let (cells, mirrored) = if self.is_mirrored {
            (height - width as f64 / 2.0, 16 * width)
        } else {
            (height, 0)
        };
        let counts = 4 * self.rows.len() * width.div_ceil(self.panel);
        (cells * width as f64 * density * ENTRY as f64) as u64 + (mirrored + counts) as u64
    }
}

/// A rank's part of the matrix.
#[derive(Debug)]
pub(super) struct Block {
    plain: Option<Panels>,
    mirror: Option<Mirror>,
}

impl Block {
    pub fn new(size: &Size, recipe: &Recipe, shape: &Shape) -> Self {
        let Shape { rows, columns, .. } = shape;
        let per_row =
            ((size.nonzer + 1) * (size.nonzer + 1) * columns.len()) as f64 / size.n as f64;
        let square = if shape.is_mirrored { columns.len() } else { 0 };
        let panels = |rows: usize, per_row: f64| {
            let entries = per_row * rows as f64;
            Panels::new(rows, columns.len(), shape.panel, entries)
        };
        let is_more = rows.len() > square;
        let mut block = Self {
            plain: is_more.then(|| {
                panels(
                    rows.len(),
                    per_row * (1.0 - square as f64 / rows.len() as f64),
                )
            }),
            mirror: shape.is_mirrored.then(|| Mirror {
                first: columns.start - rows.start,
                diagonal: Vec::with_capacity(square),
                above: panels(square, per_row / 2.0),
                below: Vec::new(),
            }),
        };
        if let Some(mirror) = &mut block.mirror {
            mirror.below = vec![0.0; padded(columns.len())];
        }
        each_row(size, recipe, shape, |row, entries| {
            block.push(shape, row, entries)
        });
        block
    }

    fn push(&mut self, shape: &Shape, row: usize, entries: &[(usize, f64)]) {
        if let Some(plain) = &mut self.plain {
            plain.begin_row();
        }
        let mirror = self
            .mirror
            .as_mut()
            .filter(|_| shape.columns.contains(&row));
        if let Some(mirror) = mirror {
            let own = row - shape.columns.start;
            mirror.above.begin_row();
            for (column, value) in entries.iter().copied() {
                match column.cmp(&own) {
                    Ordering::Less => {}
                    Ordering::Equal => mirror.diagonal.push(value),
                    Ordering::Greater => mirror.above.push(column, value),
                }
            }
        } else if let Some(plain) = &mut self.plain {
            for (column, value) in entries {
                plain.push(*column, *value);
            }
        }
    }

    /// `to` = A `of`; `of` has the length [`padded`].
    pub fn product(&mut self, of: &[f64], to: &mut [f64]) {
        match &self.plain {
            Some(plain) => {
                for panel in &plain.panels {
                    wide::run(Product {
                        panel,
                        of: window(of, panel.first),
                        to,
                    });
                }
            }
            None => to.fill(0.0),
        }
        let Some(mirror) = &mut self.mirror else {
            return;
        };
        let to = &mut to[mirror.first..mirror.first + mirror.diagonal.len()];
        mirror.below[..mirror.diagonal.len()].fill(0.0);
        for panel in &mirror.above.panels {
            let below = &mut mirror.below[panel.first..panel.first + PANEL];
            wide::run(Mirrored {
                panel,
                all: of,
                of: window(of, panel.first),
                to,
                below: below.try_into().expect("a panel's length"),
            });
        }
        let diagonal = mirror.diagonal.iter().zip(&mirror.below).zip(of);
        for (to, ((diagonal, below), of)) in to.iter_mut().zip(diagonal) {
            *to += diagonal * of + below;
        }
    }

    /// Entries of the matrix, however they are kept.
    #[cfg(test)]
    fn entries(&self) -> usize {
        let count = |panels: &Panels| -> usize {
            let panels = panels.panels.iter();
            panels.map(|panel| panel.values.len()).sum()
        };
        let mirrored = |mirror: &Mirror| mirror.diagonal.len() + 2 * count(&mirror.above);
        self.plain.as_ref().map_or(0, count) + self.mirror.as_ref().map_or(0, mirrored)
    }
}

/// The room that a vector of which a product takes `columns` needs: a panel reads by any 16-bit number.
pub(super) const fn padded(columns: usize) -> usize {
    columns + PANEL
}

fn window(of: &[f64], first: usize) -> &[f64; PANEL] {
    let part = &of[first..first + PANEL];
    part.try_into().expect("a panel's length")
}

/// Calls `take` with each of the rows, and its entries by column within the block.
fn each_row(
    size: &Size,
    recipe: &Recipe,
    shape: &Shape,
    mut take: impl FnMut(usize, &[(usize, f64)]),
) {
    let Shape { rows, columns, .. } = shape;
    let vectors = vectors(size, recipe);
    let turned = turned(&vectors, rows);
    let ratio = recipe.rcond.powf(1.0 / size.n as f64);
    let weights = std::iter::successors(Some(1.0), |weight| Some(weight * ratio));
    let weights: Vec<f64> = weights.take(size.n).collect();
    let mut sums = vec![0.0; columns.len()];
    let mut is_there = vec![false; columns.len()];
    let mut there: Vec<usize> = Vec::new();
    let mut entries = Vec::new();
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
        entries.clear();
        for column in there.drain(..) {
            entries.push((column, std::mem::take(&mut sums[column])));
            is_there[column] = false;
        }
        take(row, &entries);
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
                    *sum = fused::<S>(*value, of[usize::from(*column)], *sum);
                }
            }
            let mut sum = 0.0;
            for (column, value) in last.iter().zip(value_last) {
                sum = fused::<S>(*value, of[usize::from(*column)], sum);
            }
            let [a, b, c, d, e, f, g, h] = sums;
            sum += ((a + b) + (c + d)) + ((e + f) + (g + h));
            *to = if is_first { sum } else { *to + sum };
        }
    }
}

/// A panel's entries above the diagonal, for themselves and for those below it.
struct Mirrored<'a> {
    panel: &'a Panel,
    /// The vector from the square's begin.
    all: &'a [f64],
    of: &'a [f64; PANEL],
    to: &'a mut [f64],
    below: &'a mut [f64; PANEL],
}

impl WithSimd for Mirrored<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        const WIDTH: usize = 4;
        let Self {
            panel,
            all,
            of,
            to,
            below,
        } = self;
        let (mut columns, mut values) = (&panel.columns[..], &panel.values[..]);
        for ((to, count), own) in to.iter_mut().zip(&panel.counts).zip(all) {
            let (row_columns, row_values);
            (row_columns, columns) = columns.split_at(*count as usize);
            (row_values, values) = values.split_at(*count as usize);
            let mut sums = [0.0; WIDTH];
            let fours = row_columns.chunks_exact(WIDTH);
            let value_fours = row_values.chunks_exact(WIDTH);
            let (last, value_last) = (fours.remainder(), value_fours.remainder());
            for (columns, values) in fours.zip(value_fours) {
                for ((sum, column), value) in sums.iter_mut().zip(columns).zip(values) {
                    let column = usize::from(*column);
                    *sum = fused::<S>(*value, of[column], *sum);
                    below[column] = fused::<S>(*value, *own, below[column]);
                }
            }
            for ((sum, column), value) in sums.iter_mut().zip(last).zip(value_last) {
                let column = usize::from(*column);
                *sum = fused::<S>(*value, of[column], *sum);
                below[column] = fused::<S>(*value, *own, below[column]);
            }
            let [a, b, c, d] = sums;
            *to += (a + b) + (c + d);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npb::Class;

    fn product(block: &mut Block, of: &[f64], rows: usize) -> Vec<f64> {
        let mut room = of.to_vec();
        room.resize(padded(of.len()), f64::NAN);
        let mut to = vec![f64::NAN; rows];
        block.product(&room, &mut to);
        to
    }

    fn shape(rows: Range<usize>, columns: Range<usize>) -> Shape {
        Shape {
            rows,
            columns,
            is_mirrored: false,
            panel: PANEL,
        }
    }

    #[test]
    fn class_s_is_that_of_the_dense_evaluation() {
        let size = Size::of(Class::S);
        let mut block = Block::new(&size, &Recipe::OFFICIAL, &shape(0..size.n, 0..size.n));
        assert_eq!(block.entries(), 78_148);
        let (mut x, mut y) = (vec![0.0; size.n], vec![0.0; size.n]);
        for index in 0..size.n {
            (x[index], y[index]) = ((index as f64).sin(), (index as f64 * 0.7).cos());
        }
        let (to_x, to_y) = (
            product(&mut block, &x, size.n),
            product(&mut block, &y, size.n),
        );
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (left, right) = (dot(&y, &to_x), dot(&x, &to_y));
        assert!(
            (left / right - 1.0).abs() < 1e-11,
            "symmetric: {left} {right}"
        );
        assert!(dot(&x, &to_x) < 0.0, "negative definite");
    }

    #[test]
    fn however_it_is_kept_the_product_is_the_same() {
        let size = Size::of(Class::S);
        let recipe = Recipe::OFFICIAL;
        let of: Vec<f64> = (0..1400).map(|index| f64::from(index).sin()).collect();
        for (rows, columns) in [
            (0..1400, 0..1400),
            (0..1400, 0..700),
            (0..1400, 701..1400),
            (100..450, 700..1400),
        ] {
            let plain = shape(rows, columns);
            let (height, of) = (plain.rows.len(), &of[plain.columns.clone()]);
            let mut block = Block::new(&size, &recipe, &plain);
            let wanted = product(&mut block, of, height);
            for (is_mirrored, panel) in [(false, 123), (true, PANEL), (true, 123)] {
                let is_mirrored = is_mirrored && height == size.n;
                let other = Shape {
                    is_mirrored,
                    panel,
                    ..plain.clone()
                };
                let mut other = Block::new(&size, &recipe, &other);
                assert_eq!(other.entries(), block.entries());
                for (a, b) in product(&mut other, of, height).iter().zip(&wanted) {
                    assert!((a - b).abs() < 1e-12, "{a} {b}");
                }
            }
        }
    }
}
