//! The right-hand side of a cell, in one pass over its planes.
//!
//! Model:   velocity, pressure and what heat and shear do to energy are kept for three planes around the one at work; each row
//!          of it is then the sum of a 13-point stencil of each variable with constant weights and the differences of the
//!          fluxes. Weights beside walls are those of the row (y, z) or set right afterwards (x).
//! Source:  `cfd.rs`, whose `residual` it equals but for rounding.
//! Units:   none; a cell's numbers are kept by variable, plane, row, with two layers of ghosts around.
//! Checked: `a_cell_is_as_the_plain_stencil`.

use pulp::{Simd, WithSimd};

use super::cfd::{
    CONDUCTION, FOURTH, GAMMA_LESS_ONE, SECOND, VARIABLES, VISCOSITY, fourth_difference,
};
use super::wide::Wide;

/// Layers around a cell.
pub const GHOSTS: usize = 2;
/// Most lanes of a register: so many numbers past a row are read, and some written.
const SLACK: usize = 8;

/// Where the numbers of a cell are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Points along x, y and z without ghosts.
    pub extent: [usize; 3],
    /// From one point to the next along x, y and z.
    pub strides: [usize; 3],
    /// Numbers of a variable, with ghosts.
    pub points: usize,
}

impl Shape {
    /// Of a cell of so many points.
    pub fn new(extent: [usize; 3]) -> Self {
        let [x, y, z] = extent.map(|points| points + 2 * GHOSTS);
        Self {
            extent,
            strides: [1, x, x * y],
            points: x * y * z,
        }
    }

    /// Numbers of all variables, and what is read past the last.
    pub const fn numbers(&self) -> usize {
        VARIABLES * self.points + SLACK
    }

    /// Place of a point in its variable; ghosts are -2, -1 and n, n + 1.
    #[inline(always)]
    pub const fn at(&self, [i, j, k]: [isize; 3]) -> usize {
        let ghosts = GHOSTS as isize;
        let [sx, sy, sz] = self.strides;
        (i + ghosts) as usize * sx + (j + ghosts) as usize * sy + (k + ghosts) as usize * sz
    }
}

/// Where a cell is in the cube.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// Its numbers.
    pub shape: Shape,
    /// Points along an edge of the cube.
    pub n: usize,
    /// Its first point.
    pub origin: [usize; 3],
    /// Which of its points are not at a wall: from, to.
    pub inside: [(usize, usize); 3],
}

impl Site {
    /// A cell of `extent` from `origin` on in a cube of n^3.
    pub fn new(n: usize, origin: [usize; 3], extent: [usize; 3]) -> Self {
        let inside = [0, 1, 2].map(|d| {
            let low = usize::from(origin[d] == 0);
            let high = extent[d] - usize::from(origin[d] + extent[d] == n);
            (low, high)
        });
        Self {
            shape: Shape::new(extent),
            n,
            origin,
            inside,
        }
    }
}

/// Rows' weights along a direction: of u at -2 to 2.
fn weights(direction: usize, index: usize, n: usize) -> [f64; 5] {
    let squared = ((n - 1) * (n - 1)) as f64;
    let second = [0.0, 1.0, -2.0, 1.0, 0.0].map(|weight| weight * SECOND[direction] * squared);
    let fourth = fourth_difference(index, n);
    std::array::from_fn(|place| second[place] - FOURTH * fourth[place])
}

/// What is kept of planes: velocities, pressure, and the part of energy's viscous flux that has no direction.
#[derive(Debug)]
pub struct Planes {
    numbers: Vec<f64>,
    /// Of one variable of one plane.
    plane: usize,
}

impl Planes {
    /// For cells of at most this shape.
    pub fn new(shape: &Shape) -> Self {
        let plane = shape.strides[2] + SLACK;
        Self {
            numbers: vec![0.0; VARIABLES * 3 * plane],
            plane,
        }
    }
}

/// The right-hand side times `scale` at all points of a cell that are not at a wall; at walls and ghosts it is undefined.
pub fn right_hand_side(
    site: &Site,
    u: &[f64],
    forcing: &[f64],
    rhs: &mut [f64],
    scale: f64,
    planes: &mut Planes,
) {
    pulp::Arch::new().dispatch(Pass {
        site,
        u,
        forcing,
        rhs,
        scale,
        planes,
    });
}

struct Pass<'a> {
    site: &'a Site,
    u: &'a [f64],
    forcing: &'a [f64],
    rhs: &'a mut [f64],
    scale: f64,
    planes: &'a mut Planes,
}

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, set: S) {
        let [_, rows, planes] = self.site.inside;
        for plane in [planes.0 as isize - 1, planes.0 as isize] {
            self.derive(set, plane);
        }
        for plane in planes.0..planes.1 {
            self.derive(set, plane as isize + 1);
            for row in rows.0..rows.1 {
                self.row(set, row, plane);
                self.ends(row, plane);
            }
        }
    }
}

/// One row's numbers around `at`.
struct Around<'a, S: Simd> {
    set: S,
    centre: &'a [S::f64s],
    /// One point up and down along x, y and z.
    sides: [[&'a [S::f64s]; 2]; 3],
}

impl<'a, S: Simd> Around<'a, S> {
    /// `up[d]` and `down[d]` are one point up and down along d.
    #[inline(always)]
    fn new(
        set: S,
        centre: &'a [f64],
        up: [&'a [f64]; 3],
        down: [&'a [f64]; 3],
        count: usize,
    ) -> Self {
        let cut = |from: &'a [f64]| &S::as_simd_f64s(from).0[..count];
        Self {
            set,
            centre: cut(centre),
            sides: [
                [cut(up[0]), cut(down[0])],
                [cut(up[1]), cut(down[1])],
                [cut(up[2]), cut(down[2])],
            ],
        }
    }

    #[inline(always)]
    fn centre(&self, place: usize) -> Wide<S> {
        Wide::new(self.set, self.centre[place])
    }

    #[inline(always)]
    fn side(&self, direction: usize, down: usize, place: usize) -> Wide<S> {
        Wide::new(self.set, self.sides[direction][down][place])
    }
}

impl Pass<'_> {
    /// Place of a plane among those that are kept.
    fn kept(&self, variable: usize, plane: isize) -> usize {
        (variable * 3 + (plane + 3) as usize % 3) * self.planes.plane
    }

    #[inline(always)]
    fn derive<S: Simd>(&mut self, set: S, plane: isize) {
        let shape = self.site.shape;
        let first = shape.at([-1, -1, plane]);
        let last = shape.at([shape.extent[0] as isize, shape.extent[1] as isize, plane]);
        let count = (last + 1 - first).div_ceil(S::F64_LANES);
        let offset = first - shape.at([-2, -2, plane]);
        let from: [&[S::f64s]; VARIABLES] = std::array::from_fn(|m| {
            let from = &self.u[m * shape.points + first..];
            &S::as_simd_f64s(from).0[..count]
        });
        let kept = [0, 1, 2, 3, 4].map(|variable| self.kept(variable, plane) + offset);
        for place in 0..count {
            let u = from.map(|from| Wide::new(set, from[place]));
            let inverse = u[0].inverse();
            let [x, y, z] = [u[1] * inverse, u[2] * inverse, u[3] * inverse];
            let half_square = x.fused(x, y.fused(y, z * z)) * 0.5;
            let pressure = u[4].less(u[0], half_square) * GAMMA_LESS_ONE;
            let heat = u[4] * inverse * CONDUCTION + half_square * (1.0 - CONDUCTION);
            for (kept, value) in kept.iter().zip([x, y, z, pressure, heat]) {
                let at = kept + place * S::F64_LANES;
                value.scatter(&mut self.planes.numbers, at, 1, S::F64_LANES);
            }
        }
    }

    /// A variable's row and those around it.
    #[inline(always)]
    fn around<S: Simd>(&self, set: S, m: usize, at: usize, count: usize) -> Around<'_, S> {
        let [_, sy, sz] = self.site.shape.strides;
        let u = &self.u[m * self.site.shape.points..];
        Around::new(
            set,
            &u[at..],
            [&u[at + 1..], &u[at + sy..], &u[at + sz..]],
            [&u[at - 1..], &u[at - sy..], &u[at - sz..]],
            count,
        )
    }

    /// A kept row and those around it.
    #[inline(always)]
    fn kept_around<S: Simd>(
        &self,
        set: S,
        variable: usize,
        (place, plane): (usize, usize),
        count: usize,
    ) -> Around<'_, S> {
        let sy = self.site.shape.strides[1];
        let numbers = &self.planes.numbers;
        let [below, at, above] =
            [-1, 0, 1].map(|offset| self.kept(variable, plane as isize + offset) + place);
        Around::new(
            set,
            &numbers[at..],
            [&numbers[at + 1..], &numbers[at + sy..], &numbers[above..]],
            [&numbers[at - 1..], &numbers[at - sy..], &numbers[below..]],
            count,
        )
    }

    #[inline(always)]
    fn row<S: Simd>(&mut self, set: S, row: usize, plane: usize) {
        let site = self.site;
        let shape = site.shape;
        let [from, to] = [site.inside[0].0, site.inside[0].1];
        let count = (to - from).div_ceil(S::F64_LANES);
        let at = shape.at([from as isize, row as isize, plane as isize]);
        let place = at - shape.at([-2, -2, plane as isize]);
        let inverse = (site.n - 1) as f64;
        let rhs = std::mem::take(&mut self.rhs);
        let this = &*self;

        let velocity: [Around<'_, S>; 3] =
            std::array::from_fn(|d| this.kept_around(set, d, (place, plane), count));
        let pressure = this.kept_around(set, 3, (place, plane), count);
        let heat = this.kept_around(set, 4, (place, plane), count);
        let slope = Wide::splat(set, -0.5 * inverse);
        let viscous = VISCOSITY * inverse * inverse;
        let linear = Linear::new(set, this, row, plane, at);

        for m in 0..VARIABLES {
            let out = &mut rhs[m * shape.points + at..][..count * S::F64_LANES];
            let out = &mut S::as_mut_simd_f64s(out).0[..count];
            let forcing = &this.forcing[m * shape.points + at..][..count * S::F64_LANES];
            let forcing = &S::as_simd_f64s(forcing).0[..count];
            let sum = linear.variable(m, count);
            let near = this.around(set, m, at, count);
            let scale = Wide::splat(set, this.scale);
            if m == 0 {
                let momenta: [Around<'_, S>; 3] =
                    std::array::from_fn(|d| this.around(set, d + 1, at, count));
                for c in 0..count {
                    let flux = |d: usize| momenta[d].side(d, 0, c) - momenta[d].side(d, 1, c);
                    let flux = flux(0) + flux(1) + flux(2);
                    let all = flux.fused(slope, sum.at(c) + Wide::new(set, forcing[c]));
                    out[c] = (all * scale).lanes;
                }
            } else if m < 4 {
                let own = m - 1;
                let factor = |d: usize| if d == own { 4.0 / 3.0 } else { 1.0 } * viscous;
                let factors = [0, 1, 2].map(|d| Wide::splat(set, factor(d)));
                let middle = Wide::splat(set, -2.0 * (10.0 / 3.0) * viscous);
                for c in 0..count {
                    let mut flux = pressure.side(own, 0, c) - pressure.side(own, 1, c);
                    let mut all = sum.at(c) + Wide::new(set, forcing[c]);
                    for d in 0..3 {
                        flux = near.side(d, 0, c).fused(velocity[d].side(d, 0, c), flux);
                        flux = flux.less(near.side(d, 1, c), velocity[d].side(d, 1, c));
                        let sides = velocity[own].side(d, 0, c) + velocity[own].side(d, 1, c);
                        all = sides.fused(factors[d], all);
                    }
                    all = velocity[own].centre(c).fused(middle, all);
                    out[c] = (flux.fused(slope, all) * scale).lanes;
                }
            } else {
                let whole = Wide::splat(set, viscous);
                let sixth = Wide::splat(set, viscous / 6.0);
                for c in 0..count {
                    let mut all = sum.at(c) + Wide::new(set, forcing[c]);
                    let mut flux = Wide::splat(set, 0.0);
                    let mut shear = flux;
                    let mut warm = heat.centre(c) * -6.0;
                    for d in 0..3 {
                        let [up, down] = [0, 1].map(|side| velocity[d].side(d, side, c));
                        let mid = velocity[d].centre(c);
                        flux = (near.side(d, 0, c) + pressure.side(d, 0, c)).fused(up, flux);
                        flux = flux.less(near.side(d, 1, c) + pressure.side(d, 1, c), down);
                        shear = up.fused(up, down.fused(down, shear));
                        shear = shear.less(mid + mid, mid);
                        warm = warm + (heat.side(d, 0, c) + heat.side(d, 1, c));
                    }
                    all = warm.fused(whole, shear.fused(sixth, all));
                    out[c] = (flux.fused(slope, all) * scale).lanes;
                }
            }
        }
        self.rhs = rhs;
    }

    /// Sets the fourth differences beside the walls of x right.
    #[inline(always)]
    fn ends(&mut self, row: usize, plane: usize) {
        let site = self.site;
        let shape = site.shape;
        let (from, to) = site.inside[0];
        let mut points = [from, from + 1, to - 2, to - 1];
        if to - from < 4 {
            points = [from, from + 1, to - 1, usize::MAX];
        }
        for (number, i) in points.into_iter().enumerate() {
            if i >= to || points[..number].contains(&i) {
                continue;
            }
            let true_weights = fourth_difference(site.origin[0] + i, site.n);
            if true_weights == PLAIN {
                continue;
            }
            let at = shape.at([i as isize, row as isize, plane as isize]);
            for m in 0..VARIABLES {
                let around = &self.u[m * shape.points + at - 2..][..5];
                let mut wrong = 0.0;
                for (place, u) in around.iter().enumerate() {
                    wrong += (true_weights[place] - PLAIN[place]) * u;
                }
                self.rhs[m * shape.points + at] -= self.scale * FOURTH * wrong;
            }
        }
    }
}

const PLAIN: [f64; 5] = [1.0, -4.0, 6.0, -4.0, 1.0];

/// The 13-point stencil of a row.
struct Linear<'a, S: Simd> {
    set: S,
    u: &'a [f64],
    points: usize,
    at: usize,
    strides: [usize; 3],
    weights: [[S::f64s; 5]; 3],
    centre: S::f64s,
}

/// One variable's.
struct Stencil<'a, S: Simd> {
    of: &'a Linear<'a, S>,
    centre: &'a [S::f64s],
    rows: [[&'a [S::f64s]; 4]; 3],
}

impl<'a, S: Simd> Linear<'a, S> {
    #[inline(always)]
    fn new(set: S, pass: &'a Pass<'_>, row: usize, plane: usize, at: usize) -> Self {
        let site = pass.site;
        // Any index far from the walls: the ends of x are set right afterwards.
        let along = [
            plain_weights(site.n),
            weights(1, site.origin[1] + row, site.n),
            weights(2, site.origin[2] + plane, site.n),
        ];
        let splat = |weight: f64| set.splat_f64s(weight);
        Self {
            set,
            u: pass.u,
            points: site.shape.points,
            at,
            strides: site.shape.strides,
            weights: along.map(|weights| weights.map(splat)),
            centre: splat(along[0][2] + along[1][2] + along[2][2]),
        }
    }

    #[inline(always)]
    fn variable(&'a self, m: usize, count: usize) -> Stencil<'a, S> {
        let u = &self.u[m * self.points..];
        let cut = |at: usize| &S::as_simd_f64s(&u[at..]).0[..count];
        let at = self.at;
        Stencil {
            of: self,
            centre: cut(at),
            rows: self.strides.map(|stride| {
                [
                    cut(at - 2 * stride),
                    cut(at - stride),
                    cut(at + stride),
                    cut(at + 2 * stride),
                ]
            }),
        }
    }
}

impl<S: Simd> Stencil<'_, S> {
    #[inline(always)]
    fn at(&self, place: usize) -> Wide<S> {
        let set = self.of.set;
        let mut sum = Wide::new(set, self.centre[place]) * Wide::new(set, self.of.centre);
        for (rows, weights) in self.rows.iter().zip(&self.of.weights) {
            for (row, weight) in rows.iter().zip([0, 1, 3, 4]) {
                sum = Wide::new(set, row[place]).fused(Wide::new(set, weights[weight]), sum);
            }
        }
        sum
    }
}

/// Weights along x far from the walls.
fn plain_weights(n: usize) -> [f64; 5] {
    let squared = ((n - 1) * (n - 1)) as f64;
    let second = [0.0, 1.0, -2.0, 1.0, 0.0];
    std::array::from_fn(|place| SECOND[0] * squared * second[place] - FOURTH * PLAIN[place])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npb::cfd::{self, Exact};

    #[test]
    fn a_cell_is_as_the_plain_stencil() {
        let n = 13;
        let exact = Exact::new(n);
        for (origin, extent) in [
            ([0, 0, 0], [13, 13, 13]),
            ([0, 4, 7], [4, 3, 6]),
            ([4, 10, 0], [6, 3, 5]),
            ([7, 0, 3], [6, 5, 7]),
        ] {
            let site = Site::new(n, origin, extent);
            let shape = site.shape;
            let mut u = vec![1.0; shape.numbers()];
            let forcing = vec![0.0; shape.numbers()];
            let mut rhs = vec![0.0; shape.numbers()];
            let range = |d: usize| -2..extent[d] as isize + 2;
            for k in range(2) {
                for j in range(1) {
                    for i in range(0) {
                        let place = [i, j, k];
                        let global = [0, 1, 2].map(|d| origin[d] as isize + place[d]);
                        if global.iter().any(|g| !(0..n as isize).contains(g)) {
                            continue;
                        }
                        let point = exact.start(global.map(|g| g as usize));
                        for (m, value) in point.iter().enumerate() {
                            u[m * shape.points + shape.at(place)] = *value;
                        }
                    }
                }
            }
            let mut planes = Planes::new(&shape);
            right_hand_side(&site, &u, &forcing, &mut rhs, 0.5, &mut planes);
            let [x, y, z] = site.inside;
            let all = (z.0..z.1).flat_map(|k| (y.0..y.1).map(move |j| (j, k)));
            for (i, (j, k)) in all.flat_map(|jk| (x.0..x.1).map(move |i| (i, jk))) {
                let global = [origin[0] + i, origin[1] + j, origin[2] + k];
                let plain = cfd::residual(n, global, |direction, offset| {
                    let mut place = global;
                    place[direction] = place[direction].wrapping_add_signed(offset);
                    exact.start(place)
                });
                let at = shape.at([i as isize, j as isize, k as isize]);
                for (m, plain) in plain.iter().enumerate() {
                    let found = rhs[m * shape.points + at];
                    let scale = plain.abs() + 1e3;
                    assert!(
                        (found - 0.5 * plain).abs() < 1e-12 * scale,
                        "{global:?} {m}: {found} {plain}"
                    );
                }
            }
        }
    }
}
