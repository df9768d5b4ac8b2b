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
use super::wide::{self, Wide};

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
        Self {
            numbers: vec![0.0; Self::numbers(shape)],
            plane: shape.strides[2] + SLACK,
        }
    }

    /// How many numbers that is.
    pub const fn numbers(shape: &Shape) -> usize {
        VARIABLES * 3 * (shape.strides[2] + SLACK)
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
    for plane in site.inside[2].0..site.inside[2].1 {
        of_plane(site, [u, forcing], rhs, scale, planes, plane);
    }
}

/// The right-hand side times `scale` at the points of a plane that are not at a wall; at walls and ghosts it is undefined.
/// Planes come in their order, without gaps, from the first inside on.
pub fn of_plane(
    site: &Site,
    [u, forcing]: [&[f64]; 2],
    rhs: &mut [f64],
    scale: f64,
    planes: &mut Planes,
    plane: usize,
) {
    wide::run(Pass {
        site,
        u,
        forcing,
        rhs,
        scale,
        planes,
        plane,
    });
}

struct Pass<'a> {
    site: &'a Site,
    u: &'a [f64],
    forcing: &'a [f64],
    rhs: &'a mut [f64],
    scale: f64,
    planes: &'a mut Planes,
    plane: usize,
}

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, set: S) {
        let [_, rows, planes] = self.site.inside;
        let at = self.plane as isize;
        let first = if self.plane == planes.0 {
            at - 1
        } else {
            at + 1
        };
        for plane in first..=at + 1 {
            self.derive(set, plane);
        }
        for row in rows.0..rows.1 {
            self.row(set, row, self.plane);
            self.side(set, 1, row, self.plane);
            self.side(set, 2, row, self.plane);
            self.ends(row, self.plane);
        }
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
        let from = [
            cut::<S>(self.u, first, count),
            cut::<S>(self.u, shape.points + first, count),
            cut::<S>(self.u, 2 * shape.points + first, count),
            cut::<S>(self.u, 3 * shape.points + first, count),
            cut::<S>(self.u, 4 * shape.points + first, count),
        ];
        let kept = self.kept(0, plane) + offset;
        let apart = 3 * self.planes.plane;
        for place in 0..count {
            let mut u = [Wide::splat(set, 0.0); VARIABLES];
            for (u, from) in u.iter_mut().zip(from) {
                *u = Wide::new(set, from[place]);
            }
            let inverse = u[0].inverse();
            let [x, y, z] = [u[1] * inverse, u[2] * inverse, u[3] * inverse];
            let half_square = x.fused(x, y.fused(y, z * z)) * 0.5;
            let pressure = u[4].less(u[0], half_square) * GAMMA_LESS_ONE;
            let heat = u[4] * inverse * CONDUCTION + half_square * (1.0 - CONDUCTION);
            let at = kept + place * S::F64_LANES;
            let numbers = &mut self.planes.numbers;
            x.store(numbers, at);
            y.store(numbers, at + apart);
            z.store(numbers, at + 2 * apart);
            pressure.store(numbers, at + 3 * apart);
            heat.store(numbers, at + 4 * apart);
        }
    }

    /// A row: what is linear in each variable, then what is not.
    #[inline(always)]
    fn row<S: Simd>(&mut self, set: S, row: usize, plane: usize) {
        let (site, points) = (self.site, self.site.shape.points);
        let (from, to) = site.inside[0];
        let count = (to - from).div_ceil(S::F64_LANES);
        let place = [from as isize, row as isize, plane as isize];
        let at = site.shape.at(place);
        let [_, sy, sz] = site.shape.strides;
        let inverse = (site.n - 1) as f64;
        let linear = Linear::new(set, self);
        let kept = PlaneRows {
            numbers: &self.planes.numbers,
            planes: [
                self.kept(0, place[2] - 1),
                self.kept(0, place[2]),
                self.kept(0, place[2] + 1),
            ],
            apart: 3 * self.planes.plane,
            place: at - site.shape.at([-2, -2, place[2]]),
            stride: sy,
        };
        let nonlinear = Nonlinear {
            set,
            kept,
            slope: -0.5 * inverse * self.scale,
            viscous: VISCOSITY * inverse * inverse * self.scale,
            strides: [1, sy, sz],
            at,
            count,
        };
        let [u0, u1, u2, u3, u4] = [0, 1, 2, 3, 4].map(|m| &self.u[m * points..(m + 1) * points]);
        for (m, u) in [u0, u1, u2, u3, u4].into_iter().enumerate() {
            let forcing = &self.forcing[m * points + at..];
            let out = &mut self.rhs[m * points + at..];
            linear.add(u, at, [sy, sz], forcing, out, count);
        }
        nonlinear.mass([u1, u2, u3], &mut self.rhs[at..]);
        nonlinear.momentum::<0>(u1, &mut self.rhs[points + at..]);
        nonlinear.momentum::<1>(u2, &mut self.rhs[2 * points + at..]);
        nonlinear.momentum::<2>(u3, &mut self.rhs[3 * points + at..]);
        nonlinear.energy(u4, &mut self.rhs[4 * points + at..]);
    }

    /// Sets the fourth differences of a row beside the walls of y or z right.
    #[inline(always)]
    fn side<S: Simd>(&mut self, set: S, direction: usize, row: usize, plane: usize) {
        let site = self.site;
        let shape = site.shape;
        let index = site.origin[direction] + if direction == 1 { row } else { plane };
        let true_weights = fourth_difference(index, site.n);
        if true_weights == PLAIN {
            return;
        }
        let (from, to) = site.inside[0];
        let at = shape.at([from as isize, row as isize, plane as isize]);
        let first = at - 2 * shape.strides[direction];
        let length = (to - from).div_ceil(S::F64_LANES) * S::F64_LANES;
        for m in 0..VARIABLES {
            let out = &mut self.rhs[m * shape.points + at..][..length];
            let out = S::as_mut_simd_f64s(out).0;
            for (place, (weight, plain)) in true_weights.into_iter().zip(PLAIN).enumerate() {
                let factor = (plain - weight) * FOURTH * self.scale;
                let factor = Wide::splat(set, factor);
                let at = m * shape.points + first + place * shape.strides[direction];
                let u = S::as_simd_f64s(&self.u[at..at + length]).0;
                for (out, u) in out.iter_mut().zip(u) {
                    *out = Wide::new(set, *u).fused(factor, Wide::new(set, *out)).lanes;
                }
            }
        }
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

/// So many registers from `at` on.
#[inline(always)]
fn cut<S: Simd>(from: &[f64], at: usize, count: usize) -> &[S::f64s] {
    &S::as_simd_f64s(&from[at..at + count * S::F64_LANES]).0[..count]
}

/// The same, to be written.
#[inline(always)]
fn cut_mut<S: Simd>(to: &mut [f64], count: usize) -> &mut [S::f64s] {
    &mut S::as_mut_simd_f64s(&mut to[..count * S::F64_LANES]).0[..count]
}

/// The 13-point stencil of a row far from walls.
struct Linear<S: Simd> {
    set: S,
    /// Of the second differences over one point, by direction; over two points; of the forcing.
    near: [Wide<S>; 3],
    far: Wide<S>,
    scale: Wide<S>,
}

impl<S: Simd> Linear<S> {
    #[inline(always)]
    fn new(set: S, pass: &Pass<'_>) -> Self {
        let site = pass.site;
        let squared = ((site.n - 1) * (site.n - 1)) as f64;
        // The fourth difference is the second one over two points less four times that over one.
        let [x, y, z] = SECOND.map(|factor| (factor * squared + 4.0 * FOURTH) * pass.scale);
        Self {
            set,
            near: [
                Wide::splat(set, x),
                Wide::splat(set, y),
                Wide::splat(set, z),
            ],
            far: Wide::splat(set, -FOURTH * pass.scale),
            scale: Wide::splat(set, pass.scale),
        }
    }

    /// Sets a variable's row. Differences first: the products of a sum of weights are so large that their last bits would show.
    /// Of these the centre first: less twice of it, a neighbour is nearly always exact; their sum would lose its last bit.
    #[inline(always)]
    fn add(
        &self,
        u: &[f64],
        at: usize,
        [sy, sz]: [usize; 2],
        forcing: &[f64],
        out: &mut [f64],
        count: usize,
    ) {
        let set = self.set;
        let out = cut_mut::<S>(out, count);
        let forcing = cut::<S>(forcing, 0, count);
        let row = |at: usize| cut::<S>(u, at, count);
        let centre = row(at);
        let (xa, xb, xc, xd) = (row(at - 2), row(at - 1), row(at + 1), row(at + 2));
        let (ya, yb) = (row(at - 2 * sy), row(at - sy));
        let (yc, yd) = (row(at + sy), row(at + 2 * sy));
        let (za, zb) = (row(at - 2 * sz), row(at - sz));
        let (zc, zd) = (row(at + sz), row(at + 2 * sz));
        for c in 0..count {
            let twice = Wide::new(set, centre[c]) * -2.0;
            let sum = Wide::new(set, forcing[c]) * self.scale;
            let one = twice + Wide::new(set, xb[c]) + Wide::new(set, xc[c]);
            let two = twice + Wide::new(set, xa[c]) + Wide::new(set, xd[c]);
            let sum = two.fused(self.far, one.fused(self.near[0], sum));
            let one = twice + Wide::new(set, yb[c]) + Wide::new(set, yc[c]);
            let two = twice + Wide::new(set, ya[c]) + Wide::new(set, yd[c]);
            let sum = two.fused(self.far, one.fused(self.near[1], sum));
            let one = twice + Wide::new(set, zb[c]) + Wide::new(set, zc[c]);
            let two = twice + Wide::new(set, za[c]) + Wide::new(set, zd[c]);
            out[c] = two.fused(self.far, one.fused(self.near[2], sum)).lanes;
        }
    }
}

/// The rows of what is kept of planes.
#[derive(Clone, Copy)]
struct PlaneRows<'a> {
    numbers: &'a [f64],
    /// Where the first variable of the planes below, at and above is.
    planes: [usize; 3],
    /// From one variable to the next.
    apart: usize,
    /// The row in its plane.
    place: usize,
    /// From row to row.
    stride: usize,
}

impl<'a> PlaneRows<'a> {
    /// A variable's row, and those one point down and up along a direction.
    #[inline(always)]
    fn rows<S: Simd>(&self, variable: usize, d: usize, count: usize) -> [&'a [S::f64s]; 3] {
        let at = variable * self.apart + self.place;
        let [below, here, above] = self.planes;
        let (down, up) = match d {
            0 => (here + at - 1, here + at + 1),
            1 => (here + at - self.stride, here + at + self.stride),
            _ => (below + at, above + at),
        };
        [
            cut::<S>(self.numbers, down, count),
            cut::<S>(self.numbers, here + at, count),
            cut::<S>(self.numbers, up, count),
        ]
    }
}

/// Differences of the fluxes along a row.
struct Nonlinear<'a, S: Simd> {
    set: S,
    kept: PlaneRows<'a>,
    /// -1 / 2h and 0.1 / h^2, scaled.
    slope: f64,
    viscous: f64,
    strides: [usize; 3],
    at: usize,
    count: usize,
}

impl<S: Simd> Nonlinear<'_, S> {
    /// A variable's row one point down and up along a direction.
    #[inline(always)]
    fn sides<'u>(&self, u: &'u [f64], d: usize) -> [&'u [S::f64s]; 2] {
        let stride = self.strides[d];
        [
            cut::<S>(u, self.at - stride, self.count),
            cut::<S>(u, self.at + stride, self.count),
        ]
    }

    #[inline(always)]
    fn mass(&self, momenta: [&[f64]; 3], out: &mut [f64]) {
        let set = self.set;
        let out = cut_mut::<S>(out, self.count);
        let slope = Wide::splat(set, self.slope);
        let [xa, xb] = self.sides(momenta[0], 0);
        let [ya, yb] = self.sides(momenta[1], 1);
        let [za, zb] = self.sides(momenta[2], 2);
        for c in 0..self.count {
            let x = Wide::new(set, xb[c]) - Wide::new(set, xa[c]);
            let y = Wide::new(set, yb[c]) - Wide::new(set, ya[c]);
            let z = Wide::new(set, zb[c]) - Wide::new(set, za[c]);
            out[c] = (x + y + z).fused(slope, Wide::new(set, out[c])).lanes;
        }
    }

    #[inline(always)]
    fn momentum<const M: usize>(&self, u: &[f64], out: &mut [f64]) {
        let (set, count) = (self.set, self.count);
        let out = cut_mut::<S>(out, count);
        let slope = Wide::splat(set, self.slope);
        let minus_two = Wide::splat(set, -2.0);
        let viscous = Wide::splat(set, self.viscous);
        let along = Wide::splat(set, self.viscous * (4.0 / 3.0));
        let factor = |d: usize| if d == M { along } else { viscous };
        let factors = [factor(0), factor(1), factor(2)];
        let [pa, _, pb] = self.kept.rows::<S>(3, M, count);
        let ([xa, xb], [ya, yb], [za, zb]) = (self.sides(u, 0), self.sides(u, 1), self.sides(u, 2));
        let [vxa, _, vxb] = self.kept.rows::<S>(0, 0, count);
        let [vya, _, vyb] = self.kept.rows::<S>(1, 1, count);
        let [vza, _, vzb] = self.kept.rows::<S>(2, 2, count);
        let [oxa, own, oxb] = self.kept.rows::<S>(M, 0, count);
        let [oya, _, oyb] = self.kept.rows::<S>(M, 1, count);
        let [oza, _, ozb] = self.kept.rows::<S>(M, 2, count);
        for c in 0..count {
            let flux = Wide::new(set, pb[c]) - Wide::new(set, pa[c]);
            let flux = Wide::new(set, xb[c]).fused(Wide::new(set, vxb[c]), flux);
            let flux = flux.less(Wide::new(set, xa[c]), Wide::new(set, vxa[c]));
            let flux = Wide::new(set, yb[c]).fused(Wide::new(set, vyb[c]), flux);
            let flux = flux.less(Wide::new(set, ya[c]), Wide::new(set, vya[c]));
            let flux = Wide::new(set, zb[c]).fused(Wide::new(set, vzb[c]), flux);
            let flux = flux.less(Wide::new(set, za[c]), Wide::new(set, vza[c]));
            let sum = flux.fused(slope, Wide::new(set, out[c]));
            // Weights of one sum would not cancel to the last bit, the same way at every point.
            let twice = Wide::new(set, own[c]) * minus_two;
            let second = twice + Wide::new(set, oxa[c]) + Wide::new(set, oxb[c]);
            let sum = second.fused(factors[0], sum);
            let second = twice + Wide::new(set, oya[c]) + Wide::new(set, oyb[c]);
            let sum = second.fused(factors[1], sum);
            let second = twice + Wide::new(set, oza[c]) + Wide::new(set, ozb[c]);
            out[c] = second.fused(factors[2], sum).lanes;
        }
    }

    #[inline(always)]
    fn energy(&self, u: &[f64], out: &mut [f64]) {
        let out = cut_mut::<S>(out, self.count);
        self.energy_along::<0>(u, out);
        self.energy_along::<1>(u, out);
        self.energy_along::<2>(u, out);
    }

    #[inline(always)]
    fn energy_along<const D: usize>(&self, u: &[f64], out: &mut [S::f64s]) {
        let (set, count) = (self.set, self.count);
        let out = &mut out[..count];
        let slope = Wide::splat(set, self.slope);
        let viscous = Wide::splat(set, self.viscous);
        let sixth = Wide::splat(set, self.viscous / 6.0);
        let [ua, ub] = self.sides(u, D);
        let [pa, _, pb] = self.kept.rows::<S>(3, D, count);
        let [va, v, vb] = self.kept.rows::<S>(D, D, count);
        let [ha, h, hb] = self.kept.rows::<S>(4, D, count);
        for c in 0..count {
            let (down, up) = (Wide::new(set, va[c]), Wide::new(set, vb[c]));
            let mid = Wide::new(set, v[c]);
            let flux = (Wide::new(set, ub[c]) + Wide::new(set, pb[c])) * up;
            let flux = flux.less(Wide::new(set, ua[c]) + Wide::new(set, pa[c]), down);
            let sum = flux.fused(slope, Wide::new(set, out[c]));
            let shear = up.fused(up, down * down).less(mid + mid, mid);
            let sum = shear.fused(sixth, sum);
            let twice = Wide::new(set, h[c]) * -2.0;
            let warm = twice + Wide::new(set, ha[c]) + Wide::new(set, hb[c]);
            out[c] = warm.fused(viscous, sum).lanes;
        }
    }
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
            let [x, y, z] = site.inside;
            right_hand_side(&site, &u, &forcing, &mut rhs, 0.5, &mut planes);
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
