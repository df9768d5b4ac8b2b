//! Transforms of a field along its axes.
//!
//! Model:   a row of the field is its real parts along x, then its imaginary ones; or it is cut in pieces which are so, each at
//!          the same distance from the one before. Along y and z eight neighbours along x are taken together from each row; along
//!          x, eight rows.
//! Checked: the official values.

use pulp::{Simd, WithSimd};

use super::fourier::{LANES, Lines, Roots};

/// Where rows begin: row k is at first + (k / part) far + (k mod part) near.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    /// The first.
    pub first: usize,
    /// Rows of a part.
    pub part: usize,
    /// From row to row in a part.
    pub near: usize,
    /// From part to part.
    pub far: usize,
}

impl Rows {
    #[inline(always)]
    pub const fn at(&self, k: usize) -> usize {
        self.first + k / self.part * self.far + k % self.part * self.near
    }
}

/// What points are multiplied by before a transform: `rows` by the row, `along` by x, and `all`.
#[derive(Debug, Clone, Copy)]
pub struct Factors<'a> {
    /// Of each row.
    pub rows: &'a [f64],
    /// Of each x.
    pub along: &'a [f64],
    /// Of all.
    pub all: f64,
}

/// Transforms across rows, at each x.
pub struct Across<'a> {
    /// Where points are from, where not from `to`, and by what they are multiplied.
    pub from: Option<(&'a [f64], Factors<'a>)>,
    /// Where results go.
    pub to: &'a mut [f64],
    /// Rows of both.
    pub rows: Rows,
    /// Points of a row.
    pub nx: usize,
    /// Of as many roots as there are rows.
    pub roots: &'a Roots,
    /// Room.
    pub lines: &'a mut [Lines; 2],
    /// The other sign.
    pub back: bool,
}

#[inline(always)]
fn eight(of: &[f64], at: usize) -> [f64; LANES] {
    let mut eight = [0.0; LANES];
    eight.copy_from_slice(&of[at..at + LANES]);
    eight
}

impl WithSimd for Across<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let nx = self.nx;
        let n = self.roots.length();
        for x in (0..nx).step_by(LANES) {
            let first = &mut self.lines[0];
            let room = first.re[..n].iter_mut().zip(&mut first.im[..n]);
            match &self.from {
                None => {
                    for (k, (re, im)) in room.enumerate() {
                        let at = self.rows.at(k) + x;
                        re.0 = eight(self.to, at);
                        im.0 = eight(self.to, at + nx);
                    }
                }
                Some((from, factors)) => {
                    let along = eight(factors.along, x).map(|along| along * factors.all);
                    let each = room.zip(&factors.rows[..n]);
                    for (k, ((re, im), row)) in each.enumerate() {
                        let at = self.rows.at(k) + x;
                        let (a, b) = (eight(from, at), eight(from, at + nx));
                        for lane in 0..LANES {
                            let factor = along[lane] * row;
                            re.0[lane] = a[lane] * factor;
                            im.0[lane] = b[lane] * factor;
                        }
                    }
                }
            }
            self.roots.transform::<S>(self.lines, self.back);
            let first = &self.lines[0];
            for (k, (re, im)) in first.re[..n].iter().zip(&first.im[..n]).enumerate() {
                let at = self.rows.at(k) + x;
                self.to[at..at + LANES].copy_from_slice(&re.0);
                self.to[at + nx..at + nx + LANES].copy_from_slice(&im.0);
            }
        }
    }
}

/// Transforms along rows.
pub struct Along<'a> {
    /// Points and results.
    pub field: &'a mut [f64],
    /// The rows' first pieces.
    pub rows: Rows,
    /// How many; a multiple of eight.
    pub count: usize,
    /// Points of a piece, and from piece to piece of a row.
    pub piece: (usize, usize),
    /// Of as many roots as a row has points.
    pub roots: &'a Roots,
    /// Room.
    pub lines: &'a mut [Lines; 2],
    /// The other sign.
    pub back: bool,
}

impl WithSimd for Along<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (width, apart) = self.piece;
        let pieces = self.roots.length() / width;
        for k in (0..self.count).step_by(LANES) {
            let rows: [usize; LANES] = std::array::from_fn(|lane| self.rows.at(k + lane));
            for piece in 0..pieces {
                let points = piece * width..(piece + 1) * width;
                let Lines { re, im } = &mut self.lines[0];
                let into = [(0, &mut re[points.clone()]), (width, &mut im[points])];
                for (part, into) in into {
                    let from = rows.map(|row| &self.field[row + piece * apart + part..][..width]);
                    for (x, into) in into.iter_mut().enumerate() {
                        for (into, from) in into.0.iter_mut().zip(&from) {
                            *into = from[x];
                        }
                    }
                }
            }
            self.roots.transform::<S>(self.lines, self.back);
            for piece in 0..pieces {
                let points = piece * width..(piece + 1) * width;
                let Lines { re, im } = &self.lines[0];
                for (part, from) in [(0, &re[points.clone()]), (width, &im[points])] {
                    for (lane, row) in rows.iter().enumerate() {
                        let into = &mut self.field[row + piece * apart + part..][..width];
                        for (into, from) in into.iter_mut().zip(from) {
                            *into = from.0[lane];
                        }
                    }
                }
            }
        }
    }
}
