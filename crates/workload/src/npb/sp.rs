//! SP: the equations of fluids by scalar pentadiagonal systems.
//!
//! Model:   a time step is du = -(T_x P_x (T_x^-1 T_y) P_y (T_y^-1 T_z) P_z T_z^-1) applied inversely to dt times the right-hand
//!          side, u + du. T_d are the eigenvectors of the flux's Jacobian along d, P_d the pentadiagonal operators of the
//!          eigenvalues v_d (three times), v_d + c and v_d - c, with the greatest of the viscous coefficients and the fourth
//!          differences. Each T is multiplied into the sweep that follows it, the last into the sum.
//! Source:  RNR-94-007 §3.7; Pulliam and Chaussee 1981 for the eigenvectors; npb.md §9. Deviations: messages at
//!          `sweeps.rs`.
//! Units:   none.
//! Checked: `classes_are_verified`, `a_wrong_coefficient_fails`, `messages_are_those_of_the_benchmark`,
//!          `the_vectors_diagonalise_the_jacobian`.

use pulp::Simd;
use sonde_message::Messenger;
use sonde_message::collectives::Communicator;

use super::cfd::{
    CONDUCTION, FOURTH, GAMMA, GAMMA_LESS_ONE, Official, SECOND, VARIABLES, VISCOSITY,
    fourth_difference, official,
};
use super::multipartition::admits;
use super::sweeps::{Lines, Tile, march, memory_bytes};
use super::wide::Wide;
use super::{Class, Outcome};

/// How large.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Points along an edge; at least 6.
    pub n: usize,
    /// Time steps.
    pub steps: usize,
    /// Length of a time step.
    pub dt: f64,
}

impl Size {
    /// That of a class.
    pub const fn of(class: Class) -> Self {
        let (n, steps, dt) = match class {
            Class::S => (12, 100, 0.015),
            Class::W => (36, 400, 0.0015),
            Class::A => (64, 400, 0.0015),
            Class::B => (102, 400, 0.001),
            Class::C => (162, 400, 0.00067),
            Class::D => (408, 500, 0.0003),
        };
        Self { n, steps, dt }
    }

    /// Operations as the benchmark counts them.
    pub fn operations(&self) -> f64 {
        let n = self.n as f64;
        let step = ((881.174 * n - 4683.91) * n + 11_484.5) * n - 19_272.4;
        self.steps as f64 * step
    }

    /// Bytes of the arrays of the rank that has most.
    pub fn memory_bytes(&self, ranks: usize) -> u64 {
        memory_bytes::<Systems>(self.n, ranks)
    }

    /// Whether so many ranks can share it.
    ///
    /// # Errors
    /// Why not, with the nearest count that can.
    pub fn admits(&self, ranks: usize) -> Result<(), String> {
        admits(ranks, self.n)
    }

    /// The official values, where it is the size of a class.
    pub fn reference(&self) -> Option<Official> {
        official("sp", self.n, self.steps, self.dt)
    }
}

/// Runs it on a rank.
///
/// # Errors
/// Those of the messenger.
///
/// # Panics
/// The size does not admit so many ranks.
pub fn run<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    size: &Size,
) -> sonde_message::Result<Outcome> {
    run_with(world, size, &Systems::new(size))
}

fn run_with<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    size: &Size,
    systems: &Systems,
) -> sonde_message::Result<Outcome> {
    assert_eq!(size.admits(world.size()), Ok(()));
    let steps = (size.steps, size.dt);
    march(world, systems, size.n, steps, size.reference().as_ref())
}

/// The scalar pentadiagonal systems.
#[derive(Debug)]
struct Systems {
    n: usize,
    /// dt / 2h and dt / h^2.
    first: f64,
    second: f64,
    /// dt times the factor of fourth differences.
    fourth: f64,
}

impl Systems {
    fn new(size: &Size) -> Self {
        let inverse = (size.n - 1) as f64;
        Self {
            n: size.n,
            first: 0.5 * size.dt * inverse,
            second: size.dt * inverse * inverse,
            fourth: size.dt * FOURTH,
        }
    }
}

/// A point's velocities and speed of sound, and what they are made of.
struct State<S: Simd> {
    density: Wide<S>,
    inverse: Wide<S>,
    velocity: [Wide<S>; 3],
    half_square: Wide<S>,
    /// Speed of sound, and its square.
    sound: Wide<S>,
    sound_squared: Wide<S>,
}

impl<S: Simd> State<S> {
    #[inline(always)]
    fn of(u: [Wide<S>; VARIABLES]) -> Self {
        let inverse = u[0].inverse();
        let [x, y, z] = [u[1] * inverse, u[2] * inverse, u[3] * inverse];
        let half_square = x.fused(x, y.fused(y, z * z)) * 0.5;
        let inner = u[4].less(u[0], half_square);
        let sound_squared = inner * inverse * (GAMMA * GAMMA_LESS_ONE);
        Self {
            density: u[0],
            inverse,
            velocity: [x, y, z],
            half_square,
            sound: sound_squared.sqrt(),
            sound_squared,
        }
    }
}

const HALF_ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// T_x^-1 r.
#[inline(always)]
fn into_x<S: Simd>(state: &State<S>, r: [Wide<S>; 5]) -> [Wide<S>; 5] {
    let [x, y, z] = state.velocity;
    let work = state.half_square.fused(r[0], r[4]);
    let work = work.less(x, r[1]).less(y, r[2]).less(z, r[3]);
    let pressure = work * GAMMA_LESS_ONE;
    let entropy = pressure * state.sound_squared.inverse();
    let root = state.inverse * HALF_ROOT;
    let along = root * x.fused(r[0], Wide::splat(x.set, 0.0) - r[1]);
    let wave = root * state.sound * entropy;
    [
        r[0] - entropy,
        state.inverse * r[3].less(z, r[0]),
        state.inverse * y.fused(r[0], Wide::splat(x.set, 0.0) - r[2]),
        wave - along,
        wave + along,
    ]
}

/// T_x^-1 T_y r: the same at every point.
#[inline(always)]
fn x_to_y<S: Simd>(r: [Wide<S>; 5]) -> [Wide<S>; 5] {
    let zero = Wide::splat(r[0].set, 0.0);
    let turned = r[2] * HALF_ROOT;
    let half = (r[3] + r[4]) * 0.5;
    [
        zero - r[1],
        r[0],
        (r[3] - r[4]) * HALF_ROOT,
        half - turned,
        half + turned,
    ]
}

/// T_y^-1 T_z r: the same at every point.
#[inline(always)]
fn y_to_z<S: Simd>(r: [Wide<S>; 5]) -> [Wide<S>; 5] {
    let zero = Wide::splat(r[0].set, 0.0);
    let turned = r[0] * HALF_ROOT;
    let half = (r[3] + r[4]) * 0.5;
    [
        (r[3] - r[4]) * HALF_ROOT,
        zero - r[2],
        r[1],
        half - turned,
        half + turned,
    ]
}

/// T_z r.
#[inline(always)]
fn out_of_z<S: Simd>(state: &State<S>, r: [Wide<S>; 5]) -> [Wide<S>; 5] {
    let [x, y, z] = state.velocity;
    let root = state.density * HALF_ROOT;
    let wave = root * state.sound.inverse() * (r[3] + r[4]);
    let mass = r[2] + wave;
    let along = root * (r[3] - r[4]);
    let (turned, other) = (state.density * r[1], state.density * r[0]);
    let energy = y.fused(other, state.half_square * mass).less(x, turned);
    let energy = (state.sound_squared * wave * (1.0 / GAMMA_LESS_ONE)) + energy;
    [
        mass,
        x * mass - turned,
        y.fused(mass, other),
        z.fused(mass, along),
        z.fused(along, energy),
    ]
}

impl Lines for Systems {
    const REACH: usize = 2;
    const KEPT: usize = 11;
    const FORMED: usize = 3;

    /// Of each point and the two beside the line: convection, sound, diffusion. Of those inside the right-hand side.
    #[inline(always)]
    fn form<S: Simd, const D: usize>(
        &self,
        set: S,
        tile: &Tile,
        u: &[f64],
        rhs: &[f64],
        rows: &mut [S::f64s],
        formed: &mut [S::f64s],
    ) {
        let (u, rhs) = (tile.split(u), tile.split(rhs));
        let terms = &mut formed[..3 * (tile.count + 2)];
        let rows = &mut rows[..11 * (tile.count + 2)];
        let least = Wide::splat(set, SECOND[D] * self.second);
        let viscous = Wide::splat(set, CONDUCTION * VISCOSITY * self.second);
        for place in 0..tile.count + 2 {
            let at = tile.at + place * tile.stride - tile.stride;
            let state = State::of(tile.load::<S, D>(set, u, at));
            let term = &mut terms[3 * place..][..3];
            term[0] = (state.velocity[D] * self.first).lanes;
            term[1] = (state.sound * self.first).lanes;
            term[2] = state.inverse.fused(viscous, least).lanes;
            if (1..=tile.count).contains(&place) {
                let r = tile.load::<S, D>(set, rhs, at);
                let r = match D {
                    0 => into_x(&state, r),
                    1 => x_to_y(r),
                    _ => y_to_z(r),
                };
                let row = &mut rows[11 * (place + 1)..][..11];
                for (to, r) in row[6..].iter_mut().zip(r) {
                    *to = r.lanes;
                }
            }
        }
    }

    #[inline(always)]
    fn eliminate<S: Simd, const D: usize>(
        &self,
        set: S,
        tile: &Tile,
        _: &[f64],
        _: &[f64],
        rows: &mut [S::f64s],
        formed: &[S::f64s],
    ) {
        let terms = &formed[..3 * (tile.count + 2)];
        let rows = &mut rows[..11 * (tile.count + 2)];
        for place in 0..tile.count {
            let term = &terms[3 * place..][..9];
            let mut fourth = [Wide::splat(set, 0.0); 5];
            let weights = fourth_difference(tile.first + place, self.n);
            for (fourth, weight) in fourth.iter_mut().zip(weights) {
                *fourth = Wide::splat(set, weight * self.fourth);
            }
            let [low, high] = [Wide::new(set, term[2]), Wide::new(set, term[8])];
            let mid = Wide::new(set, term[5]);
            let row = Row {
                outer: [fourth[0], fourth[4]],
                inner: [
                    fourth[1] - low - Wide::new(set, term[0]),
                    fourth[3] - high + Wide::new(set, term[6]),
                ],
                centre: mid + mid + (fourth[2] + Wide::splat(set, 1.0)),
            };
            let rows = &mut rows[11 * place..][..33];
            let sound = [Wide::new(set, term[1]), Wide::new(set, term[7])];
            eliminate_row(row, sound, rows);
        }
    }

    #[inline(always)]
    fn substitute<S: Simd, const D: usize>(
        &self,
        set: S,
        tile: &Tile,
        u: &mut [f64],
        rhs: &mut [f64],
        rows: &mut [S::f64s],
    ) {
        let (mut u, mut rhs) = (tile.split_mut(u), tile.split_mut(rhs));
        let rows = &mut rows[..11 * (tile.count + 4)];
        for place in (0..tile.count).rev() {
            let rows = &mut rows[11 * (place + 2)..][..33];
            let mut solution = [Wide::splat(set, 0.0); 5];
            for (m, solution) in solution.iter_mut().enumerate() {
                let factor = 2 * m.saturating_sub(2);
                let (one, two) = (rows[factor], rows[factor + 1]);
                let [one, two] = [Wide::new(set, one), Wide::new(set, two)];
                let [next, after] = [Wide::new(set, rows[17 + m]), Wide::new(set, rows[28 + m])];
                *solution = Wide::new(set, rows[6 + m]).less(one, next).less(two, after);
                rows[6 + m] = solution.lanes;
            }
            let at = tile.at + place * tile.stride;
            if D < 2 {
                tile.store::<S, D>(&mut rhs, at, solution);
            } else {
                let mut sum = tile.load_mut::<S, D>(set, &u, at);
                let change = out_of_z(&State::of(sum), solution);
                for (sum, change) in sum.iter_mut().zip(change) {
                    *sum = *sum + change;
                }
                tile.store::<S, D>(&mut u, at, sum);
            }
        }
    }
}

/// A row's coefficients of the eigenvalue v.
struct Row<S: Simd> {
    /// Of the points two before and two after.
    outer: [Wide<S>; 2],
    /// Of the points before and after.
    inner: [Wide<S>; 2],
    centre: Wide<S>,
}

/// Eliminates the third of three rows, for v, v + c and v - c; `sound` is that of the points before and after.
#[inline(always)]
fn eliminate_row<S: Simd>(row: Row<S>, sound: [Wide<S>; 2], rows: &mut [S::f64s]) {
    let set = row.centre.set;
    let Row {
        outer,
        inner,
        centre,
    } = row;
    let inners = [
        inner,
        [inner[0] - sound[0], inner[1] + sound[1]],
        [inner[0] + sound[0], inner[1] - sound[1]],
    ];
    for (factor, inner) in inners.into_iter().enumerate() {
        let of = |row: usize, place: usize| Wide::new(set, rows[11 * row + place]);
        let (one, two) = (2 * factor, 2 * factor + 1);
        let before = inner[0].less(outer[0], of(0, one));
        let pivot = centre.less(outer[0], of(0, two)).less(before, of(1, one));
        let inverse = pivot.inverse();
        let next = inner[1].less(before, of(1, two)) * inverse;
        let after = outer[1] * inverse;
        let sides = if factor == 0 {
            0..3
        } else {
            factor + 2..factor + 3
        };
        for m in sides {
            let of = |row: usize| Wide::new(set, rows[11 * row + 6 + m]);
            let value = of(2).less(outer[0], of(0)).less(before, of(1));
            rows[28 + m] = (value * inverse).lanes;
        }
        rows[22 + one] = next.lanes;
        rows[22 + two] = after.lanes;
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use super::super::cfd::{Derived, flux};
    use super::super::multipartition::tested;
    use super::*;
    use crate::npb::cfd::checks;
    use crate::npb::multipartition::Fields;
    use crate::npb::sweeps::Sweeps;
    use pulp::Scalar;

    const MARGIN: f64 = 1e-11;
    const FORTH: u64 = 4_400;
    const BACK: u64 = 2_000;
    const MEMORY: RangeInclusive<u64> = 30..=40;

    #[test]
    fn classes_are_verified() {
        for (class, ranks) in [
            (Class::S, 1),
            (Class::S, 4),
            (Class::S, 9),
            (Class::S, 16),
            (Class::W, 1),
            (Class::W, 4),
        ] {
            let size = Size::of(class);
            let (outcomes, _) = tested::run(ranks, |world| run(world, &size));
            for outcome in &outcomes {
                let worst = tested::worst(outcome);
                // The official residuals of W have as many digits as their last bits allow.
                assert!(worst < MARGIN, "{class} on {ranks}: {worst:e}");
                assert_eq!(outcome.passes(), Some(true), "{:?}", outcome.checks);
            }
            let rate = size.operations() / outcomes[0].timed_ns as f64 * 1e3;
            let worst = tested::worst(&outcomes[0]);
            println!("{class} on {ranks}: {worst:.1e}, {rate:.0} Mop/s");
        }
    }

    /// The outcome of a class on one rank whose start is another by a last bit at every `apart`-th point inside.
    fn nudged(size: &Size, apart: usize) -> Outcome {
        let (mut outcomes, _) = tested::run(1, |world| {
            let systems = Systems::new(size);
            let mut fields = Fields::new(size.n, 0, 1);
            let mut sweeps = Sweeps::new::<Systems>(&fields.partition);
            fields.start();
            let cell = fields.partition.cells[0];
            let [x, y, z] = cell.inside;
            let rows = (z.0..z.1).flat_map(|k| (y.0..y.1).map(move |j| (j, k)));
            for (j, k) in rows {
                for i in (x.0..x.1).step_by(apart) {
                    let at = cell.shape.at([i as isize, j as isize, k as isize]);
                    for m in 0..VARIABLES {
                        let number = &mut fields.u[0][m * cell.shape.points + at];
                        *number = f64::from_bits(number.to_bits() + 1);
                    }
                }
            }
            for _ in 0..size.steps {
                sweeps.step(world, &systems, &mut fields, size.dt)?;
            }
            let [residual, error] = fields.norms(world)?;
            let checks = checks(&residual, &error, size.reference().as_ref());
            Ok(Outcome {
                timed_ns: 0,
                checks,
            })
        });
        outcomes.swap_remove(0)
    }

    /// Last bits of the start move the results of W by as much as these are off: no margin could be smaller.
    #[test]
    fn margins_are_last_bits() {
        let size = Size::of(Class::W);
        let outcomes = [2, 3, 5].map(|apart| nudged(&size, apart));
        let mut widest = 0.0_f64;
        for (number, check) in outcomes[0].checks.iter().enumerate() {
            let found = || outcomes.iter().map(|outcome| outcome.checks[number].found);
            let (least, most) = (
                found().fold(f64::INFINITY, f64::min),
                found().fold(0.0, f64::max),
            );
            let errors = outcomes.iter().filter_map(|of| of.checks[number].error());
            let worst = errors.fold(0.0, f64::max);
            let spread = (most - least) / most;
            println!("{}: off by {worst:.1e}, apart by {spread:.1e}", check.name);
            assert!(worst < MARGIN, "{check:?}");
            widest = widest.max(spread);
        }
        assert!(widest > MARGIN / 10.0, "{widest:e}");
    }

    #[test]
    fn a_wrong_coefficient_fails() {
        let size = Size::of(Class::S);
        let mut systems = Systems::new(&size);
        systems.second *= 1.000_01;
        let (outcomes, _) = tested::run(1, |world| run_with(world, &size, &systems));
        assert_eq!(outcomes[0].passes(), Some(false));
    }

    #[test]
    fn messages_are_those_of_the_benchmark() {
        let size = Size {
            steps: 3,
            ..Size::of(Class::S)
        };
        let (outcomes, sent) = tested::run(4, |world| run(world, &size));
        assert_eq!(outcomes[0].passes(), None);
        // Three timed steps and the one before; for the faces the check's as well.
        let faces = (0..6).map(|tag| (tag, (5, 2_880, 2_880)));
        let forth = [6, 8, 10].map(|tag| (tag, (4, FORTH, FORTH)));
        let back = [7, 9, 11].map(|tag| (tag, (4, BACK, BACK)));
        let wanted: tested::Sent = faces.chain(forth).chain(back).collect();
        assert_eq!(sent, wanted);
    }

    #[test]
    fn memory_is_told() {
        let size = Size::of(Class::A);
        let mib = [1, 4, 9].map(|ranks| size.memory_bytes(ranks) >> 20);
        assert!(MEMORY.contains(&mib[0]), "{mib:?}");
        assert!(mib[1] < mib[0] && mib[2] < mib[1], "{mib:?}");
        assert!(size.admits(2).is_err());
    }

    const POINT: [f64; 5] = [1.3, 0.7, -0.4, 0.9, 4.1];

    fn state() -> State<Scalar> {
        State::of(POINT.map(|value| Wide::new(Scalar, value)))
    }

    /// Values of lanes of one.
    fn plain(values: [Wide<Scalar>; 5]) -> [f64; 5] {
        values.map(|value| value.lanes)
    }

    fn wide(values: [f64; 5]) -> [Wide<Scalar>; 5] {
        values.map(|value| Wide::new(Scalar, value))
    }

    fn is_close(found: [f64; 5], wanted: [f64; 5], margin: f64) {
        for (a, b) in found.into_iter().zip(wanted) {
            assert!((a - b).abs() < margin, "{found:?} {wanted:?}");
        }
    }

    #[test]
    fn the_vectors_are_inverse_to_each_other() {
        let r = [0.3, -1.1, 0.8, 2.3, -0.9];
        let turned = y_to_z(x_to_y(into_x(&state(), wide(r))));
        is_close(plain(out_of_z(&state(), turned)), r, 1e-13);
    }

    #[test]
    fn the_vectors_diagonalise_the_jacobian() {
        let r = [0.3, -1.1, 0.8, 2.3, -0.9];
        let state = state();
        for direction in 0..3 {
            let along = |share: f64| {
                let u: [f64; 5] = std::array::from_fn(|m| POINT[m] + share * r[m]);
                flux(&u, &Derived::of(&u), direction)
            };
            let (up, down) = (along(1e-5), along(-1e-5));
            let jacobian = std::array::from_fn(|m| (up[m] - down[m]) / 2e-5);
            let into = |r: [f64; 5]| {
                let x = into_x(&state, wide(r));
                plain(match direction {
                    0 => x,
                    1 => x_to_y(x),
                    _ => y_to_z(x_to_y(x)),
                })
            };
            let (v, c) = (state.velocity[direction].lanes, state.sound.lanes);
            let values = [v, v, v, v + c, v - c];
            let wanted = into(r);
            let wanted = std::array::from_fn(|m| values[m] * wanted[m]);
            is_close(into(jacobian), wanted, 1e-8);
        }
    }
}
