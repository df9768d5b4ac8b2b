//! The two triangular sweeps of a time step.
//!
//! Model:   with K_d = s a/2h F_d' + b/h^2 (V_d' + second differences) of a neighbour along d, F' and V' the Jacobians of flux and
//!          viscous flux, the lower sweep (s = 1) makes v = D^-1 (dt r + sum K v) of the three neighbours below, the upper one (s = -1)
//!          v = D^-1 (D v + sum K v) of the three above. Jacobians are multiplied without being made: they are the
//!          differentials of the fluxes. D, the sum of the viscous ones and a diagonal, is lower triangular.
//!          In a plane, what comes from the plane before is summed along rows; then as many rows as a register has lanes
//!          advance together, each one point behind the one it depends on; a point that is done pushes its share along y.
//! Source:  RNR-94-007 §3.4, §4.3; npb.md 10. Deviations: the zeros of D are used.
//! Units:   none.
//! Checked: `official_values`, `a_wrong_coefficient_fails`.

use pulp::{Simd, WithSimd};

use super::super::cfd::{CONDUCTION, GAMMA, GAMMA_LESS_ONE, SECOND, VARIABLES, VISCOSITY};
use super::super::flow::{Shape, Site};
use super::super::wide::{self, Wide};

/// Over-relaxation.
pub const OMEGA: f64 = 1.2;
/// What is kept of a point: 1/density, three velocities, energy over density, half the square of the velocity.
const KEPT: usize = 6;
/// So many numbers past a row are read and written.
const SLACK: usize = 8;

/// An array, one after the other. A closure would be compiled apart, without the instructions of the registers.
macro_rules! array {
    ($set:expr, $index:ident in $count:expr => $value:expr) => {{
        let mut array = [Wide::splat($set, 0.0); $count];
        let mut $index = 0;
        while $index < $count {
            array[$index] = $value;
            $index += 1;
        }
        array
    }};
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Lower triangle: x, y and z upwards.
    Up,
    /// Upper triangle: downwards.
    Down,
}

/// Weights of the parts of the Jacobians.
#[derive(Debug, Clone, Copy)]
struct Weights {
    dt: f64,
    flux: f64,
    viscous: f64,
    second: [f64; 3],
    diagonal: f64,
    /// Of viscosity in the diagonal blocks: momenta, work, heat.
    momentum: f64,
    work: f64,
    heat: f64,
}

impl Weights {
    fn new(n: usize, dt: f64) -> Self {
        let inverse = (n - 1) as f64;
        let squared = inverse * inverse;
        let around = 2.0 * dt * squared * VISCOSITY;
        Self {
            dt,
            flux: OMEGA * dt * 0.5 * inverse,
            viscous: OMEGA * dt * squared * VISCOSITY,
            second: SECOND.map(|second| OMEGA * dt * squared * second),
            diagonal: 1.0 + 2.0 * dt * squared * SECOND.iter().sum::<f64>(),
            momentum: around * (10.0 / 3.0),
            work: around * (3.0 * (1.0 - CONDUCTION) + 1.0 / 3.0),
            heat: around * 3.0 * CONDUCTION,
        }
    }
}

/// What sweeps need beside the field.
#[derive(Debug)]
pub struct Sweeper {
    weights: Weights,
    /// Kept numbers of two planes.
    kept: [Vec<f64>; 2],
    /// Right-hand sides of a plane.
    sums: Vec<f64>,
    /// Numbers of a variable of a plane, with what is past it.
    plane: usize,
    /// Where a plane begins among them.
    front: usize,
}

impl Sweeper {
    /// For a cell.
    pub fn new(site: &Site, dt: f64) -> Self {
        let (front, whole) = room(&site.shape);
        Self {
            weights: Weights::new(site.n, dt),
            kept: [vec![0.0; KEPT * whole], vec![0.0; KEPT * whole]],
            sums: vec![0.0; VARIABLES * whole],
            plane: whole,
            front,
        }
    }

    /// Numbers of all that.
    pub const fn numbers(shape: &Shape) -> usize {
        (2 * KEPT + VARIABLES) * room(shape).1
    }

    /// Keeps what is needed of plane k.
    pub fn derive(&mut self, site: &Site, u: &[f64], k: usize) {
        wide::run(Derive {
            site,
            u,
            kept: &mut self.kept[k % 2],
            whole: self.plane,
            front: self.front,
            k,
        });
    }

    /// Sweeps plane k of `v`, which is kept; the plane before it, in the way, is kept too unless it is a wall.
    pub fn sweep(&mut self, site: &Site, v: &mut [f64], k: usize, way: Direction) {
        let [low, high] = &mut self.kept;
        let (here, before) = if k % 2 == 0 { (low, high) } else { (high, low) };
        wide::run(Plane {
            site,
            weights: &self.weights,
            here,
            before,
            sums: &mut self.sums,
            whole: self.plane,
            front: self.front,
            v,
            k,
            way,
        });
    }
}

/// Where a plane begins among the numbers of one variable, and how many these are.
const fn room(shape: &Shape) -> (usize, usize) {
    let [_, row, plane] = shape.strides;
    let front = SLACK * (row + 1);
    (front, plane + 2 * front)
}

struct Derive<'a> {
    site: &'a Site,
    u: &'a [f64],
    kept: &'a mut [f64],
    whole: usize,
    front: usize,
    k: usize,
}

impl WithSimd for Derive<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, set: S) {
        let shape = self.site.shape;
        let first = shape.at([-2, -2, self.k as isize]);
        let count = shape.strides[2] / S::F64_LANES;
        let from: [&[S::f64s]; VARIABLES] = std::array::from_fn(|m| {
            &S::as_simd_f64s(&self.u[m * shape.points + first..]).0[..=count]
        });
        #[expect(
            clippy::needless_range_loop,
            reason = "five arrays are read at the place"
        )]
        for place in 0..=count {
            let u = array!(set, m in VARIABLES => Wide::new(set, from[m][place]));
            let inverse = u[0].inverse();
            let [x, y, z] = [u[1] * inverse, u[2] * inverse, u[3] * inverse];
            let half_square = x.fused(x, y.fused(y, z * z)) * 0.5;
            let kept = [inverse, x, y, z, u[4] * inverse, half_square];
            for (number, kept) in kept.into_iter().enumerate() {
                let at = number * self.whole + self.front + place * S::F64_LANES;
                kept.scatter(self.kept, at, 1, S::F64_LANES);
            }
        }
    }
}

struct Plane<'a> {
    site: &'a Site,
    weights: &'a Weights,
    here: &'a [f64],
    before: &'a [f64],
    sums: &'a mut [f64],
    whole: usize,
    front: usize,
    v: &'a mut [f64],
    k: usize,
    way: Direction,
}

/// Five numbers of several points.
type Five<S> = [Wide<S>; VARIABLES];
/// What is kept of several points.
type Kept<S> = [Wide<S>; KEPT];

/// Weights in each lane.
#[derive(Clone, Copy)]
struct Spread<S: Simd> {
    flux: Wide<S>,
    viscous: Wide<S>,
    second: [Wide<S>; 3],
    diagonal: Wide<S>,
    inverse_diagonal: Wide<S>,
    momentum: Wide<S>,
    work: Wide<S>,
    heat: Wide<S>,
}

impl<S: Simd> Spread<S> {
    #[inline(always)]
    fn new(set: S, weights: &Weights, way: Direction) -> Self {
        Self {
            flux: Wide::splat(
                set,
                if way == Direction::Up {
                    weights.flux
                } else {
                    -weights.flux
                },
            ),
            viscous: Wide::splat(set, weights.viscous),
            second: [
                Wide::splat(set, weights.second[0]),
                Wide::splat(set, weights.second[1]),
                Wide::splat(set, weights.second[2]),
            ],
            diagonal: Wide::splat(set, weights.diagonal),
            inverse_diagonal: Wide::splat(set, 1.0 / weights.diagonal),
            momentum: Wide::splat(set, weights.momentum),
            work: Wide::splat(set, weights.work),
            heat: Wide::splat(set, weights.heat),
        }
    }

    /// K v of points along a direction.
    #[inline(always)]
    fn share<const DIRECTION: usize>(&self, kept: &Kept<S>, v: &Five<S>) -> Five<S> {
        let [inverse, x, y, z, energy, half_square] = *kept;
        let velocity = [x, y, z];
        let along = velocity[DIRECTION];
        // Density times the change of each velocity.
        let turns = array!(x.set, d in 3 => v[d + 1].less(velocity[d], v[0]));
        let work = x.fused(turns[0], y.fused(turns[1], z * turns[2]));
        let pressure = (v[4] - work).less(half_square, v[0]) * GAMMA_LESS_ONE;
        let turn = turns[DIRECTION];
        let enthalpy = (energy * GAMMA).less(half_square, half_square.splat_like(GAMMA_LESS_ONE));
        let viscous = self.viscous * inverse;
        let mut share = [v[DIRECTION + 1] * self.flux; VARIABLES];
        for d in 0..3 {
            let mut flux = velocity[d].fused(turn, along * v[d + 1]);
            let mut factor = viscous;
            if d == DIRECTION {
                flux = flux + pressure;
                factor = factor * (4.0 / 3.0);
            }
            share[d + 1] = flux.fused(self.flux, factor * turns[d]);
        }
        let flux = enthalpy.fused(turn, along * (v[4] + pressure));
        let heat = v[4].less(energy, v[0]) * CONDUCTION;
        let viscosity = work.fused(work.splat_like(1.0 - CONDUCTION), heat);
        let viscosity = (along * turn).fused(work.splat_like(1.0 / 3.0), viscosity);
        share[4] = flux.fused(self.flux, viscous * viscosity);
        let second = self.second[DIRECTION];
        array!(second.set, m in VARIABLES => v[m].fused(second, share[m]))
    }

    /// D v.
    #[inline(always)]
    fn block(&self, kept: &Kept<S>, v: &Five<S>) -> Five<S> {
        let [inverse, x, y, z, energy, _] = *kept;
        let velocity = [x, y, z];
        let turns = array!(x.set, d in 3 => v[d + 1].less(velocity[d], v[0]));
        let work = x.fused(turns[0], y.fused(turns[1], z * turns[2]));
        let momentum = self.momentum * inverse;
        let mut product = array!(x.set, m in VARIABLES => v[m] * self.diagonal);
        for d in 0..3 {
            product[d + 1] = turns[d].fused(momentum, product[d + 1]);
        }
        let heat = v[4].less(energy, v[0]) * self.heat;
        product[4] = work.fused(self.work, heat).fused(inverse, product[4]);
        product
    }

    /// D^-1 r.
    #[inline(always)]
    fn solve(&self, kept: &Kept<S>, r: &Five<S>) -> Five<S> {
        let [inverse, x, y, z, energy, _] = *kept;
        let velocity = [x, y, z];
        let momentum = self.momentum * inverse;
        let heat = self.heat * inverse;
        let by_momentum = (self.diagonal + momentum).inverse();
        let by_heat = (self.diagonal + heat).inverse();
        let density = r[0] * self.inverse_diagonal;
        let mut v = [density; VARIABLES];
        for d in 0..3 {
            let drag = momentum * velocity[d];
            v[d + 1] = drag.fused(density, r[d + 1]) * by_momentum;
        }
        let turns = array!(x.set, d in 3 => v[d + 1].less(velocity[d], density));
        let work = x.fused(turns[0], y.fused(turns[1], z * turns[2]));
        let rest = (heat * energy).fused(density, r[4]);
        v[4] = rest.less(self.work * inverse, work) * by_heat;
        v
    }
}

impl WithSimd for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, set: S) {
        match self.way {
            Direction::Up => self.sweep::<S, true>(set),
            Direction::Down => self.sweep::<S, false>(set),
        }
    }
}

impl Plane<'_> {
    /// Place of a point in a plane's buffers.
    #[inline(always)]
    fn place(&self, i: isize, j: isize) -> usize {
        let row = self.site.shape.strides[1] as isize;
        (self.front as isize + (j + 2) * row + i + 2) as usize
    }

    #[inline(always)]
    fn sweep<S: Simd, const UP: bool>(&mut self, set: S) {
        let [columns, rows, _] = self.site.inside;
        let spread = Spread::new(set, self.weights, self.way);
        for j in rows.0..rows.1 {
            self.add_before::<S, UP>(set, &spread, j as isize);
        }
        self.add_beside::<S, UP>(set, &spread);
        let lanes = S::F64_LANES;
        let groups = (rows.1 - rows.0).div_ceil(lanes);
        for group in 0..groups {
            // The lowest row, and the column of the lane in front.
            let row = if UP {
                (rows.0 + group * lanes) as isize
            } else {
                rows.1 as isize - ((group + 1) * lanes) as isize
            };
            self.quiet::<UP>(row, lanes);
            let steps = columns.1 - columns.0 + lanes - 1;
            let mut shares = [Wide::splat(set, 0.0); VARIABLES];
            for step in 0..steps {
                let column = if UP {
                    (columns.0 + step) as isize
                } else {
                    (columns.1 + lanes) as isize - 2 - step as isize
                };
                shares = self.step::<S, UP>(set, &spread, column, row, &shares);
            }
        }
    }

    /// What comes of the own right-hand side and of the plane before, along a row.
    #[inline(always)]
    fn add_before<S: Simd, const UP: bool>(&mut self, set: S, spread: &Spread<S>, j: isize) {
        let site = self.site;
        let shape = site.shape;
        let [columns, _, planes] = site.inside;
        let count = (columns.1 - columns.0).div_ceil(S::F64_LANES);
        let at = shape.at([columns.0 as isize, j, self.k as isize]);
        let place = self.place(columns.0 as isize, j);
        let is_first = self.k == if UP { planes.0 } else { planes.1 - 1 };
        let before = if UP {
            at - shape.strides[2]
        } else {
            at + shape.strides[2]
        };
        let dt = Wide::splat(set, self.weights.dt);
        for c in (0..count * S::F64_LANES).step_by(S::F64_LANES) {
            let v: Five<S> =
                array!(set, m in VARIABLES => Wide::load(set, self.v, m * shape.points + at + c));
            let mut sums = if UP {
                array!(set, m in VARIABLES => v[m] * dt)
            } else {
                let kept = self.load(set, self.here, place + c);
                spread.block(&kept, &v)
            };
            if !is_first {
                let v: Five<S> = array!(set, m in VARIABLES => Wide::load(set, self.v, m * shape.points + before + c));
                let kept = self.load(set, self.before, place + c);
                let share = spread.share::<2>(&kept, &v);
                sums = array!(set, m in VARIABLES => sums[m] + share[m]);
            }
            for (m, sum) in sums.into_iter().enumerate() {
                sum.scatter(self.sums, m * self.whole + place + c, 1, S::F64_LANES);
            }
        }
    }

    #[inline(always)]
    fn load<S: Simd>(&self, set: S, kept: &[f64], place: usize) -> Kept<S> {
        array!(set, number in KEPT => Wide::load(set, kept, number * self.whole + place))
    }

    /// What comes from ranks beside: the shares of their edges.
    #[inline(always)]
    fn add_beside<S: Simd, const UP: bool>(&mut self, set: S, spread: &Spread<S>) {
        let site = self.site;
        let shape = site.shape;
        let [columns, rows, _] = site.inside;
        let k = self.k as isize;
        let lanes = S::F64_LANES;
        let (x, is_wall) = if UP {
            (-1, columns.0 > 0)
        } else {
            (columns.1 as isize, columns.1 < shape.extent[0])
        };
        let step = if UP { 1 } else { -1 };
        if !is_wall {
            let row = shape.strides[1];
            for j in (rows.0..rows.1).step_by(lanes) {
                let count = lanes.min(rows.1 - j);
                let at = shape.at([x, j as isize, k]);
                let place = self.place(x, j as isize);
                let v: Five<S> = array!(set, m in VARIABLES => Wide::gather(set, self.v, m * shape.points + at, row));
                let kept: Kept<S> = array!(set, number in KEPT => Wide::gather(set, self.here, number * self.whole + place, row));
                let share = spread.share::<0>(&kept, &v);
                let into = self.place(x + step, j as isize);
                for (m, share) in share.into_iter().enumerate() {
                    let at = m * self.whole + into;
                    let sum = share + Wide::gather(set, self.sums, at, row);
                    sum.scatter(self.sums, at, row, count);
                }
            }
        }
        let (y, is_wall) = if UP {
            (-1, rows.0 > 0)
        } else {
            (rows.1 as isize, rows.1 < shape.extent[1])
        };
        if !is_wall {
            let at = shape.at([columns.0 as isize, y, k]);
            let place = self.place(columns.0 as isize, y);
            let into = self.place(columns.0 as isize, y + step);
            for c in (0..columns.1 - columns.0).step_by(lanes) {
                let v: Five<S> = array!(set, m in VARIABLES => Wide::load(set, self.v, m * shape.points + at + c));
                let kept = self.load(set, self.here, place + c);
                let share = spread.share::<1>(&kept, &v);
                for (m, share) in share.into_iter().enumerate() {
                    let at = m * self.whole + into + c;
                    let sum = share + Wide::load(set, self.sums, at);
                    sum.scatter(self.sums, at, 1, lanes);
                }
            }
        }
    }

    /// Nothing is to come of points before the rows of a group.
    #[inline(always)]
    fn quiet<const UP: bool>(&mut self, row: isize, lanes: usize) {
        let columns = self.site.inside[0];
        let first = if UP {
            columns.0 as isize - lanes as isize + 1
        } else {
            columns.1 as isize
        };
        for m in 0..VARIABLES {
            for lane in 0..lanes {
                let place = m * self.whole + self.place(first, row + lane as isize);
                self.sums[place..place + lanes - 1].fill(0.0);
            }
        }
    }

    /// One point of each row of a group: those of a diagonal. Gives the shares along x.
    #[inline(always)]
    fn step<S: Simd, const UP: bool>(
        &mut self,
        set: S,
        spread: &Spread<S>,
        column: isize,
        row: isize,
        shares: &Five<S>,
    ) -> Five<S> {
        let shape = self.site.shape;
        let stride = shape.strides[1] - 1;
        let place = self.place(column, row);
        let at = shape.at([0, 0, self.k as isize]) as isize;
        let at = (at + row * shape.strides[1] as isize + column) as usize;
        let kept: Kept<S> = array!(set, number in KEPT => Wide::gather(set, self.here, number * self.whole + place, stride));
        let right: Five<S> = array!(set, m in VARIABLES => Wide::gather(set, self.sums, m * self.whole + place, stride) + shares[m]);
        let v = spread.solve(&kept, &right);
        for (m, v) in v.iter().enumerate() {
            v.scatter(self.v, m * shape.points + at, stride, S::F64_LANES);
        }
        let aside = spread.share::<1>(&kept, &v);
        let row = shape.strides[1];
        let next = if UP { place + row } else { place - row };
        for (m, share) in aside.into_iter().enumerate() {
            let at = m * self.whole + next;
            let sum = share + Wide::gather(set, self.sums, at, stride);
            sum.scatter(self.sums, at, stride, S::F64_LANES);
        }
        spread.share::<0>(&kept, &v)
    }
}

impl<S: Simd> Wide<S> {
    /// The same number in each lane of another register of the set.
    #[inline(always)]
    fn splat_like(self, value: f64) -> Self {
        Self::splat(self.set, value)
    }
}
