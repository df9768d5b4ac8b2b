//! BT: the equations of fluids by block-tridiagonal systems.
//!
//! Model:   a time step is du = B_z^-1 B_y^-1 B_x^-1 of dt times the right-hand side, u + du. B_d is I + dt times the differences
//!          along d of the Jacobians of flux (central) and viscous flux (second), with the artificial second differences:
//!          blocks of 5x5 on three diagonals, solved by Gauss along each line without pivoting.
//! Source:  RNR-94-007 §3.5; npb.md §8. Deviations: blocks are eliminated as they are made; messages at `sweeps.rs`.
//! Units:   none.
//! Checked: `classes_are_verified`, `a_wrong_coefficient_fails`, `messages_are_those_of_the_benchmark`,
//!          `blocks_are_the_jacobians`.

use pulp::Simd;
use sonde_message::Messenger;
use sonde_message::collectives::Communicator;

use super::cfd::{CONDUCTION, GAMMA, GAMMA_LESS_ONE, Official, SECOND, VISCOSITY, official};
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
            Class::S => (12, 60, 0.01),
            Class::W => (24, 200, 0.0008),
            Class::A => (64, 200, 0.0008),
            Class::B => (102, 200, 0.0003),
            Class::C => (162, 200, 0.0001),
            Class::D => (408, 250, 0.000_02),
        };
        Self { n, steps, dt }
    }

    /// Operations as the benchmark counts them.
    pub fn operations(&self) -> f64 {
        let n = self.n as f64;
        let step = ((3_478.8 * n - 17_655.7) * n + 28_023.7) * n;
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
        official("bt", self.n, self.steps, self.dt)
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

/// The block-tridiagonal systems.
#[derive(Debug)]
struct Systems {
    /// dt / 2h and dt / h^2.
    first: f64,
    second: f64,
}

impl Systems {
    fn new(size: &Size) -> Self {
        let inverse = (size.n - 1) as f64;
        Self {
            first: 0.5 * size.dt * inverse,
            second: size.dt * inverse * inverse,
        }
    }
}

/// Whether a block of a direction has something at this row and column.
const fn is_there(direction: usize, row: usize, column: usize) -> bool {
    let own = direction + 1;
    match row {
        0 => column == 0 || column == own,
        4 => true,
        _ => row == own || column == 0 || column == own || column == row,
    }
}

/// The two blocks of a point.
#[derive(Clone, Copy)]
struct Blocks<S: Simd> {
    /// dt / 2h times the Jacobian of the flux.
    flux: [[S::f64s; 5]; 5],
    /// dt / h^2 times that of the viscous flux and the artificial one.
    viscous: [[S::f64s; 5]; 5],
}

impl<S: Simd> Blocks<S> {
    #[inline(always)]
    fn set<const D: usize>(&mut self, set: S, systems: &Systems, u: [Wide<S>; 5]) {
        let first = Wide::splat(set, systems.first);
        let inverse = u[0].inverse();
        let v = [u[1] * inverse, u[2] * inverse, u[3] * inverse];
        let half_square = v[0].fused(v[0], v[1].fused(v[1], v[2] * v[2])) * 0.5;
        let energy = u[4] * inverse;
        let kinetic = half_square * GAMMA_LESS_ONE;
        let enthalpy = energy * GAMMA;
        let own = v[D];
        let scaled = own * first;
        let flux = &mut self.flux;

        flux[0][D + 1] = first.lanes;
        for m in 0..3 {
            flux[m + 1][0] = (Wide::splat(set, 0.0) - v[m] * scaled).lanes;
            flux[m + 1][D + 1] = (v[m] * first).lanes;
            flux[m + 1][m + 1] = scaled.lanes;
            flux[4][m + 1] = (v[m] * scaled * -GAMMA_LESS_ONE).lanes;
        }
        for m in 0..3 {
            flux[D + 1][m + 1] = (v[m] * (-GAMMA_LESS_ONE * systems.first)).lanes;
        }
        flux[D + 1][0] = ((kinetic - own * own) * first).lanes;
        flux[D + 1][D + 1] = (scaled * (2.0 - GAMMA_LESS_ONE)).lanes;
        flux[D + 1][4] = Wide::splat(set, GAMMA_LESS_ONE * systems.first).lanes;
        flux[4][0] = ((kinetic + kinetic - enthalpy) * scaled).lanes;
        let work = (enthalpy - kinetic) * first;
        flux[4][D + 1] = work
            .less(own * scaled, Wide::splat(set, GAMMA_LESS_ONE))
            .lanes;
        flux[4][4] = (scaled * GAMMA).lanes;
        self.set_viscous::<D>(set, systems, inverse, v, energy);
    }

    #[inline(always)]
    fn set_viscous<const D: usize>(
        &mut self,
        set: S,
        systems: &Systems,
        inverse: Wide<S>,
        v: [Wide<S>; 3],
        energy: Wide<S>,
    ) {
        let viscous = &mut self.viscous;
        let over = inverse * (VISCOSITY * systems.second);
        let artificial = Wide::splat(set, SECOND[D] * systems.second);
        let mut heat = energy * CONDUCTION;
        for m in 0..3 {
            let factor = if m == D { 4.0 / 3.0 } else { 1.0 };
            let shear = over * factor;
            let rest = v[m] * (factor - CONDUCTION);
            viscous[m + 1][0] = (Wide::splat(set, 0.0) - shear * v[m]).lanes;
            viscous[m + 1][m + 1] = (shear + artificial).lanes;
            viscous[4][m + 1] = (rest * over).lanes;
            heat = rest.fused(v[m], heat);
        }
        viscous[0][0] = artificial.lanes;
        viscous[4][0] = (Wide::splat(set, 0.0) - heat * over).lanes;
        viscous[4][4] = (over * CONDUCTION + artificial).lanes;
    }
}

/// A row of blocks: the diagonal one, the one after it, the right-hand side.
type Row<S> = [[<S as Simd>::f64s; 11]; 5];

/// One of five lines of a row: made of its point's blocks, less what the row before it (`kept`) gives.
#[inline(always)]
fn make_line<S: Simd, const D: usize, const R: usize>(
    set: S,
    ring: [&Blocks<S>; 3],
    kept: &[S::f64s],
    line: &mut [S::f64s; 11],
    r: Wide<S>,
) {
    let [before, at, after] = ring;
    let zero = Wide::splat(set, 0.0);
    let mut sums = [zero; 6];
    for (column, sum) in sums.iter_mut().enumerate().take(5) {
        if is_there(D, R, column) {
            let viscous = Wide::new(set, at.viscous[R][column]);
            *sum = viscous + viscous;
            let flux = Wide::new(set, after.flux[R][column]);
            line[5 + column] = (flux - Wide::new(set, after.viscous[R][column])).lanes;
        } else {
            line[5 + column] = zero.lanes;
        }
    }
    sums[R] = sums[R] + Wide::splat(set, 1.0);
    sums[5] = r;
    for column in 0..5 {
        if is_there(D, R, column) {
            let lower = Wide::new(set, before.flux[R][column]);
            let lower = lower + Wide::new(set, before.viscous[R][column]);
            for (place, sum) in sums.iter_mut().enumerate().take(5) {
                *sum = lower.fused(Wide::new(set, kept[5 * column + place]), *sum);
            }
            sums[5] = lower.fused(Wide::new(set, kept[25 + column]), sums[5]);
        }
    }
    for (to, sum) in line.iter_mut().zip(&sums[..5]) {
        *to = sum.lanes;
    }
    line[10] = sums[5].lanes;
}

/// Gauss and Jordan with the P-th line.
#[inline(always)]
fn pivot<S: Simd, const P: usize>(set: S, row: &mut Row<S>) {
    let inverse = Wide::new(set, row[P][P]).inverse();
    let mut scaled = [inverse; 11];
    for place in P + 1..11 {
        scaled[place] = Wide::new(set, row[P][place]) * inverse;
        row[P][place] = scaled[place].lanes;
    }
    for (number, line) in row.iter_mut().enumerate() {
        if number != P {
            let factor = Wide::new(set, line[P]);
            for place in P + 1..11 {
                line[place] = Wide::new(set, line[place])
                    .less(factor, scaled[place])
                    .lanes;
            }
        }
    }
}

impl Lines for Systems {
    const REACH: usize = 1;
    const KEPT: usize = 30;
    const FORMED: usize = 0;

    #[inline(always)]
    fn eliminate<S: Simd, const D: usize>(
        &self,
        set: S,
        tile: &Tile,
        u: &[f64],
        rhs: &[f64],
        rows: &mut [S::f64s],
        _: &[S::f64s],
    ) {
        let (u, rhs) = (tile.split(u), tile.split(rhs));
        let none = [[set.splat_f64s(0.0); 5]; 5];
        let mut ring = [Blocks {
            flux: none,
            viscous: none,
        }; 3];
        let mut row: Row<S> = [[set.splat_f64s(0.0); 11]; 5];
        let first = tile.at - tile.stride;
        ring[0].set::<D>(set, self, tile.load::<S, D>(set, u, first));
        ring[1].set::<D>(set, self, tile.load::<S, D>(set, u, tile.at));
        for place in 0..tile.count {
            let at = tile.at + place * tile.stride;
            let after = tile.load::<S, D>(set, u, at + tile.stride);
            ring[(place + 2) % 3].set::<D>(set, self, after);
            let of = [
                &ring[place % 3],
                &ring[(place + 1) % 3],
                &ring[(place + 2) % 3],
            ];
            let r = tile.load::<S, D>(set, rhs, at);
            let (before, now) = rows[30 * place..30 * place + 60].split_at_mut(30);
            make_line::<S, D, 0>(set, of, before, &mut row[0], r[0]);
            make_line::<S, D, 1>(set, of, before, &mut row[1], r[1]);
            make_line::<S, D, 2>(set, of, before, &mut row[2], r[2]);
            make_line::<S, D, 3>(set, of, before, &mut row[3], r[3]);
            make_line::<S, D, 4>(set, of, before, &mut row[4], r[4]);
            pivot::<S, 0>(set, &mut row);
            pivot::<S, 1>(set, &mut row);
            pivot::<S, 2>(set, &mut row);
            pivot::<S, 3>(set, &mut row);
            pivot::<S, 4>(set, &mut row);
            for (number, line) in row.iter().enumerate() {
                now[5 * number..5 * number + 5].copy_from_slice(&line[5..10]);
                now[25 + number] = line[10];
            }
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
        for place in (0..tile.count).rev() {
            let rows = &mut rows[30 * (place + 1)..][..60];
            let mut solution = [Wide::splat(set, 0.0); 5];
            for (number, solution) in solution.iter_mut().enumerate() {
                let mut sum = Wide::new(set, rows[25 + number]);
                for column in 0..5 {
                    let factor = Wide::new(set, rows[5 * number + column]);
                    sum = sum.less(factor, Wide::new(set, rows[55 + column]));
                }
                *solution = sum;
            }
            for (to, value) in rows[25..30].iter_mut().zip(solution) {
                *to = value.lanes;
            }
            let at = tile.at + place * tile.stride;
            if D < 2 {
                tile.store::<S, D>(&mut rhs, at, solution);
            } else {
                let mut sum = tile.load_mut::<S, D>(set, &u, at);
                for (sum, change) in sum.iter_mut().zip(solution) {
                    *sum = *sum + change;
                }
                tile.store::<S, D>(&mut u, at, sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use super::super::cfd::{Derived, flux};
    use super::super::multipartition::tested;
    use super::*;
    use pulp::Scalar;

    const MARGIN: f64 = 1e-11;
    // The benchmark's are 11760 and 1960, of lines that are padded.
    const FORTH: u64 = 6_000;
    const BACK: u64 = 1_000;
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
            (Class::W, 9),
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

    /// What the viscous fluxes along a direction are the second differences of.
    fn viscous(u: &[f64; 5], direction: usize) -> [f64; 5] {
        let point = Derived::of(u);
        let v = point.velocity;
        let factor = |m: usize| if m == direction { 4.0 / 3.0 } else { 1.0 };
        let energy = (1.0 - CONDUCTION) * point.half_square
            + v[direction].powi(2) / 6.0
            + CONDUCTION * point.specific_energy;
        [
            0.0,
            factor(0) * v[0],
            factor(1) * v[1],
            factor(2) * v[2],
            energy,
        ]
        .map(|f| f * VISCOSITY)
    }

    fn is_jacobian(found: [[f64; 5]; 5], of: impl Fn(&[f64; 5]) -> [f64; 5], diagonal: f64) {
        for column in 0..5 {
            let at = |step: f64| {
                let mut u = POINT;
                u[column] += step;
                of(&u)
            };
            let (up, down) = (at(1e-5), at(-1e-5));
            for row in 0..5 {
                let own = if row == column { diagonal } else { 0.0 };
                let wanted = (up[row] - down[row]) / 2e-5 + own;
                let found = found[row][column];
                assert!(
                    (found - wanted).abs() < 1e-8,
                    "{row} {column}: {found} {wanted}"
                );
            }
        }
    }

    const POINT: [f64; 5] = [1.3, 0.7, -0.4, 0.9, 4.1];

    fn blocks_along<const D: usize>() {
        let systems = Systems {
            first: 1.0,
            second: 1.0,
        };
        let none = [[0.0; 5]; 5];
        let mut blocks = Blocks::<Scalar> {
            flux: none,
            viscous: none,
        };
        blocks.set::<D>(
            Scalar,
            &systems,
            POINT.map(|value| Wide::new(Scalar, value)),
        );
        is_jacobian(blocks.flux, |u| flux(u, &Derived::of(u), D), 0.0);
        is_jacobian(blocks.viscous, |u| viscous(u, D), SECOND[D]);
        for row in 0..5 {
            for column in 0..5 {
                let value = blocks.flux[row][column].abs() + blocks.viscous[row][column].abs();
                assert_eq!(value > 0.0, is_there(D, row, column));
            }
        }
    }

    #[test]
    fn blocks_are_the_jacobians() {
        blocks_along::<0>();
        blocks_along::<1>();
        blocks_along::<2>();
    }
}
