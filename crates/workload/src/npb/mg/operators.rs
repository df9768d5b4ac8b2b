//! The four operators of a cycle, a plane at a time.
//!
//! Model:   a plane has `rows` rows of `row` points, ghosts at both ends of both. Smoother and residual take 27 points with
//!          coefficients by distance c0 (centre) to c3 (corner). With e the point, f the sum of its four neighbours across the row
//!          and g that of its four diagonal ones, q = c1 e + c2 f + c3 g of the two neighbours along the row and
//!          c0 e + c1 f + c2 g of the point itself make the sum. Restriction (4 times the product of 1/4, 1/2, 1/4) and
//!          prolongation (trilinear) are products of one-dimensional ones and are done axis by axis.
//! Source:  RNR-94-007 §2.3.2. Deviations: sums in another order, which is in the last bits.
//! Checked: `operators_of_a_wave` (eigenvalues on plane waves), and the official values.

use pulp::{Simd, WithSimd};

use super::super::wide::{self, fused};

/// Coefficients by distance: centre, face, edge, corner.
pub type Coefficients = [f64; 4];

/// Of the residual. Its second is zero, which the code uses.
pub const RESIDUAL: Coefficients = [-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0];

/// How the points of a plane lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lie {
    /// Points of a row, ghosts included.
    pub row: usize,
    /// Rows of a plane, ghosts included.
    pub rows: usize,
}

impl Lie {
    /// Points of a plane.
    pub const fn plane(self) -> usize {
        self.row * self.rows
    }
}

/// Three planes above each other.
pub type Planes<'a> = [&'a [f64]; 3];

/// Room for rows that operators need; `ROOMS` rows of the longest.
pub const ROOMS: usize = 5;

/// A 27-point sum: what is taken from or added to `out`, in the inner points.
struct Sum<'a, const SMOOTH: bool> {
    of: Planes<'a>,
    coefficients: Coefficients,
    /// Residual: what it is subtracted from; none for `out` itself.
    from: Option<&'a [f64]>,
    out: &'a mut [f64],
    lie: Lie,
    room: &'a mut [f64],
}

impl<const SMOOTH: bool> WithSimd for Sum<'_, SMOOTH> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Lie { row, rows } = self.lie;
        let (sums, products) = self.room.split_at_mut(3 * row);
        let (mut before, sums) = sums.split_at_mut(row);
        let (mut here, mut after) = sums.split_at_mut(row);
        let (own, products) = products.split_at_mut(row);
        let across = &mut products[..row];
        let [below, middle, above] = self.of;
        let at = |j: usize| j * row..(j + 1) * row;
        across_sum(before, &below[at(0)], &above[at(0)]);
        across_sum(here, &below[at(1)], &above[at(1)]);
        for j in 1..rows - 1 {
            across_sum(after, &below[at(j + 1)], &above[at(j + 1)]);
            let centre = [&middle[at(j - 1)], &middle[at(j)], &middle[at(j + 1)]];
            weigh::<S, SMOOTH>(
                centre,
                [before, here, after],
                self.coefficients,
                own,
                across,
            );
            let out = &mut self.out[at(j)];
            match self.from {
                _ if SMOOTH => {
                    finish(own, across, out, |old, sum| old + sum);
                }
                None => finish(own, across, out, |old, sum| old - sum),
                Some(from) => {
                    out.copy_from_slice(&from[at(j)]);
                    finish(own, across, out, |old, sum| old - sum);
                }
            }
            (before, here, after) = (here, after, before);
        }
    }
}

/// sum = a + b.
#[inline(always)]
fn across_sum(sum: &mut [f64], a: &[f64], b: &[f64]) {
    for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
        *sum = a + b;
    }
}

/// What a point gives of itself and what it gives to its neighbours along the row.
#[inline(always)]
fn weigh<S: Simd, const SMOOTH: bool>(
    middle: [&[f64]; 3],
    sums: [&[f64]; 3],
    [c0, c1, c2, c3]: Coefficients,
    own: &mut [f64],
    across: &mut [f64],
) {
    let row = own.len();
    let [m0, m1, m2] = middle.map(|middle| &middle[..row]);
    let [s0, s1, s2] = sums.map(|sums| &sums[..row]);
    let across = &mut across[..row];
    for i in 0..row {
        let e = m1[i];
        let f = m0[i] + m2[i] + s1[i];
        let g = s0[i] + s2[i];
        if SMOOTH {
            own[i] = fused::<S>(c0, e, fused::<S>(c1, f, c2 * g));
            across[i] = fused::<S>(c1, e, c2 * f);
        } else {
            own[i] = fused::<S>(c0, e, c2 * g);
            across[i] = fused::<S>(c2, f, c3 * g);
        }
    }
}

/// The inner points of a row with the sum.
#[inline(always)]
fn finish(own: &[f64], across: &[f64], out: &mut [f64], with: impl Fn(f64, f64) -> f64) {
    let inner = out.len() - 2;
    let (left, right) = (&across[..inner], &across[2..2 + inner]);
    let (own, out) = (&own[1..=inner], &mut out[1..=inner]);
    for i in 0..inner {
        out[i] = with(out[i], own[i] + (left[i] + right[i]));
    }
}

/// r = v - A u in the inner points of a plane; r = r - A u without v.
pub fn residual(u: Planes<'_>, v: Option<&[f64]>, r: &mut [f64], lie: Lie, room: &mut [f64]) {
    wide::run(Sum::<false> {
        of: u,
        coefficients: RESIDUAL,
        from: v,
        out: r,
        lie,
        room,
    });
}

/// u = u + S r in the inner points of a plane. The fourth coefficient is taken as zero.
pub fn smooth(r: Planes<'_>, u: &mut [f64], by: Coefficients, lie: Lie, room: &mut [f64]) {
    wide::run(Sum::<true> {
        of: r,
        coefficients: by,
        from: None,
        out: u,
        lie,
        room,
    });
}

/// A coarse plane of three fine ones. Coarse c lies at fine 2c - `off`.
struct Restrict<'a> {
    fine: Planes<'a>,
    fine_lie: Lie,
    coarse: &'a mut [f64],
    coarse_lie: Lie,
    off: [usize; 2],
    room: &'a mut [f64],
}

impl WithSimd for Restrict<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (row, coarse_row) = (self.fine_lie.row, self.coarse_lie.row);
        let whole = &mut self.room[..row];
        let [below, middle, above] = self.fine;
        for c in 1..self.coarse_lie.rows - 1 {
            let j = 2 * c - self.off[1];
            let at = |plane: &'_ [f64], j: usize| -> std::ops::Range<usize> {
                debug_assert!(plane.len() >= (j + 1) * row);
                j * row..(j + 1) * row
            };
            let rows = |plane: &'_ [f64]| [at(plane, j - 1), at(plane, j), at(plane, j + 1)];
            let [b0, b1, b2] = rows(below).map(|at| &below[at]);
            let [m0, m1, m2] = rows(middle).map(|at| &middle[at]);
            let [a0, a1, a2] = rows(above).map(|at| &above[at]);
            for i in 0..row {
                let faces = (m0[i] + m2[i]) + (b1[i] + a1[i]);
                let edges = (b0[i] + b2[i]) + (a0[i] + a2[i]);
                whole[i] = fused::<S>(0.5, faces, fused::<S>(0.25, edges, m1[i]));
            }
            let out = &mut self.coarse[c * coarse_row..(c + 1) * coarse_row];
            let inner = out.len() - 2;
            let whole = &whole[1 - self.off[0]..];
            let pairs = whole[..2 * inner + 1].windows(3).step_by(2);
            for (out, three) in out[1..=inner].iter_mut().zip(pairs) {
                *out = fused::<S>(0.25, three[0] + three[2], 0.5 * three[1]);
            }
        }
    }
}

/// The inner points of a coarse plane by full weighting of three fine ones, the middle of which lies at it.
/// `off` is, by x and y, 1 where the only fine point lies at the only coarse one, else 0.
pub fn restrict(
    fine: (Planes<'_>, Lie),
    coarse: (&mut [f64], Lie),
    off: [usize; 2],
    room: &mut [f64],
) {
    wide::run(Restrict {
        fine: fine.0,
        fine_lie: fine.1,
        coarse: coarse.0,
        coarse_lie: coarse.1,
        off,
        room,
    });
}

/// A fine plane, ghosts too, of one coarse plane or of the mean of two.
struct Prolong<'a, const ADD: bool> {
    coarse: (&'a [f64], Option<&'a [f64]>),
    coarse_lie: Lie,
    fine: &'a mut [f64],
    fine_lie: Lie,
    off: [usize; 2],
    room: &'a mut [f64],
}

impl<const ADD: bool> WithSimd for Prolong<'_, ADD> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (row, coarse_row) = (self.fine_lie.row, self.coarse_lie.row);
        let (mean, next) = self.room.split_at_mut(coarse_row);
        let next = &mut next[..coarse_row];
        for j in 0..self.fine_lie.rows {
            let at = j + self.off[1];
            let c = at / 2;
            level(self.coarse, c, mean);
            if at % 2 == 1 {
                level(self.coarse, c + 1, next);
                for (mean, next) in mean.iter_mut().zip(&*next) {
                    *mean = 0.5 * (*mean + next);
                }
            }
            let out = &mut self.fine[j * row..(j + 1) * row];
            if self.off[0] == 0 && row % 2 == 0 {
                let windows = mean.windows(2);
                for (pair, two) in out.chunks_exact_mut(2).zip(windows) {
                    let (at, between) = (two[0], 0.5 * (two[0] + two[1]));
                    pair[0] = if ADD { pair[0] + at } else { at };
                    pair[1] = if ADD { pair[1] + between } else { between };
                }
                continue;
            }
            for (i, out) in out.iter_mut().enumerate() {
                let at = i + self.off[0];
                let (a, b) = (mean[at / 2], mean[(at / 2 + at % 2).min(coarse_row - 1)]);
                let value = 0.5 * (a + b);
                *out = if ADD { *out + value } else { value };
            }
        }
    }
}

/// Row c of a coarse plane, or of the mean of two.
#[inline(always)]
fn level((low, high): (&[f64], Option<&[f64]>), c: usize, into: &mut [f64]) {
    let at = c * into.len()..(c + 1) * into.len();
    let low = &low[at.clone()];
    match high {
        None => into.copy_from_slice(low),
        Some(high) => {
            for ((into, low), high) in into.iter_mut().zip(low).zip(&high[at]) {
                *into = 0.5 * (low + high);
            }
        }
    }
}

/// A fine plane, ghosts too, from the coarse ones below and above it, or from the one at its height. It is added to with
/// `add`, else set. `off` as of [`restrict`].
pub fn prolong(
    coarse: (&[f64], Option<&[f64]>, Lie),
    fine: (&mut [f64], Lie),
    add: bool,
    off: [usize; 2],
    room: &mut [f64],
) {
    macro_rules! prolong {
        ($add:literal) => {
            wide::run(Prolong::<$add> {
                coarse: (coarse.0, coarse.1),
                coarse_lie: coarse.2,
                fine: fine.0,
                fine_lie: fine.1,
                off,
                room,
            })
        };
    }
    if add {
        prolong!(true);
    } else {
        prolong!(false);
    }
}

/// The sum of the squares of a plane's inner points.
pub fn square(plane: &[f64], lie: Lie) -> f64 {
    let mut sum = 0.0;
    for row in plane.chunks_exact(lie.row).skip(1).take(lie.rows - 2) {
        let mut lanes = [0.0; 8];
        let mut eights = row[1..lie.row - 1].chunks_exact(8);
        for eight in &mut eights {
            for (lane, r) in lanes.iter_mut().zip(eight) {
                *lane += r * r;
            }
        }
        let rest: f64 = eights.remainder().iter().map(|r| r * r).sum();
        sum += lanes.iter().sum::<f64>() + rest;
    }
    sum
}

/// The ghosts of a plane's rows, along x, from its own other end.
pub fn wrap_x(plane: &mut [f64], lie: Lie) {
    for row in plane.chunks_exact_mut(lie.row) {
        row[0] = row[lie.row - 2];
        row[lie.row - 1] = row[1];
    }
}

/// The ghost rows of a plane, along y, from its own other end.
pub fn wrap_y(plane: &mut [f64], lie: Lie) {
    let (row, last) = (lie.row, lie.row * (lie.rows - 1));
    plane.copy_within(last - row..last, 0);
    plane.copy_within(row..2 * row, last);
}
