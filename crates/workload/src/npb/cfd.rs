//! What BT, SP and LU share: the equations, their exact solution, the start field, the forcing and the norms.
//!
//! Model:   compressible Navier-Stokes of five variables u = (density, three momenta, energy) on the unit cube of n^3 points,
//!          du/dt = -sum_d dF_d/dx_d + sum_d d(V_d)/dx_d + artificial second and fourth differences + forcing. With v the
//!          velocity, q = |v|^2 / 2 and p = 0.4 (u5 - u1 q): F_d = v_d u + p on momentum d + p v_d on energy; the second
//!          differences of V_d are 0.1 / h^2 of v (4/3 of it for v_d itself), for energy of (1 - k) q + v_d^2 / 6 + k u5 / u1
//!          with k = 1.96. The forcing makes the exact polynomial a steady solution of the differences.
//! Source:  RNR-94-007 §3.4; npb.md §7. Deviations: the polynomial is summed by direction, the stencils' terms are merged:
//!          the last bits differ.
//! Units:   none; indices from 0 to n - 1.
//! Checked: `the_exact_solution_is_steady`, `the_start_is_exact_at_the_walls`; the kernels' verification.

use serde::Deserialize;
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Operation};

use super::{Check, Class, reference};

/// Variables of a point.
pub const VARIABLES: usize = 5;
/// A value for each variable.
pub type Point = [f64; VARIABLES];

/// Ratio of specific heats less one.
pub const GAMMA_LESS_ONE: f64 = 0.4;
/// Ratio of specific heats.
pub const GAMMA: f64 = 1.4;
/// Viscosity.
pub const VISCOSITY: f64 = 0.1;
/// Conductivity over viscosity: 1.4 times 1.4.
pub const CONDUCTION: f64 = 1.96;
/// Factor of the artificial second differences, by direction; the same for each variable.
pub const SECOND: [f64; 3] = [0.75, 0.75, 1.0];
/// Factor of the artificial fourth differences: a quarter of the greatest of [`SECOND`].
pub const FOURTH: f64 = 0.25;
/// The greatest relative error that passes.
pub const TOLERANCE: f64 = 1e-8;

/// Coefficients of the exact solution: 1, x, y, z, their squares, cubes and fourth powers.
const POLYNOMIALS: [[f64; 13]; VARIABLES] = [
    [
        2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3,
    ],
    [
        1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5,
    ],
    [
        2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4,
    ],
    [
        2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3,
    ],
    [
        5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2,
    ],
];

/// The official values of a class.
#[derive(Debug, Clone, Deserialize)]
pub struct Official {
    /// Points along an edge.
    pub n: usize,
    /// Time steps.
    pub niter: usize,
    /// Length of a time step.
    pub dt: f64,
    /// Norms of the right-hand side.
    pub xcr: Point,
    /// Norms of the solution's error.
    pub xce: Point,
    /// Surface integral (LU).
    pub xci: Option<f64>,
}

/// The official values of `kernel` where the size is that of a class.
pub fn official(kernel: &str, n: usize, steps: usize, dt: f64) -> Option<Official> {
    let known = Class::ALL.into_iter();
    let mut known = known.filter_map(|class| reference::of::<Official>(kernel, class));
    known.find(|values| {
        values.n == n && values.niter == steps && values.dt.to_bits() == dt.to_bits()
    })
}

/// Ten results, five norms each, against the official ones.
pub fn checks(residual: &Point, error: &Point, official: Option<&Official>) -> Vec<Check> {
    let mut checks = Vec::new();
    let pairs = [
        ("residual", residual, official.map(|values| &values.xcr)),
        ("error", error, official.map(|values| &values.xce)),
    ];
    for (name, found, wanted) in pairs {
        for (m, found) in found.iter().enumerate() {
            checks.push(Check {
                name: format!("{name} {}", m + 1),
                found: *found,
                wanted: wanted.map(|wanted| wanted[m]),
                tolerance: TOLERANCE,
            });
        }
    }
    checks
}

/// sqrt(sum / (n - 2)^3) of all ranks' sums of squares.
///
/// # Errors
/// Those of the messenger.
pub fn norms<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    squares: &Point,
    n: usize,
) -> sonde_message::Result<Point> {
    let mut sums = [0.0; VARIABLES];
    world.allreduce(squares, &mut sums, Operation::Sum)?;
    let count = ((n - 2) as f64).powi(3);
    Ok(sums.map(|sum| (sum / count).sqrt()))
}

/// Weights of u at -2 to 2 in the fourth difference at `index` of a line of `n` points; one-sided beside the walls.
pub const fn fourth_difference(index: usize, n: usize) -> [f64; 5] {
    match (index, n - 1 - index) {
        (1, _) => [0.0, 0.0, 5.0, -4.0, 1.0],
        (_, 1) => [1.0, -4.0, 5.0, 0.0, 0.0],
        (2, _) => [0.0, -4.0, 6.0, -4.0, 1.0],
        (_, 2) => [1.0, -4.0, 6.0, -4.0, 0.0],
        _ => [1.0, -4.0, 6.0, -4.0, 1.0],
    }
}

/// What follows from a point's variables.
#[derive(Debug, Clone, Copy)]
pub struct Derived {
    /// Velocity.
    pub velocity: [f64; 3],
    /// Half of its square.
    pub half_square: f64,
    /// Pressure.
    pub pressure: f64,
    /// Energy over density.
    pub specific_energy: f64,
}

impl Derived {
    /// Of these variables.
    #[inline(always)]
    pub fn of(u: &Point) -> Self {
        let inverse = 1.0 / u[0];
        let velocity = [u[1] * inverse, u[2] * inverse, u[3] * inverse];
        let [x, y, z] = velocity;
        let half_square = 0.5 * (x * x + y * y + z * z);
        Self {
            velocity,
            half_square,
            pressure: GAMMA_LESS_ONE * (u[4] - u[0] * half_square),
            specific_energy: u[4] * inverse,
        }
    }
}

/// The flux in a direction.
#[inline(always)]
pub fn flux(u: &Point, derived: &Derived, direction: usize) -> Point {
    let velocity = derived.velocity[direction];
    let mut flux = u.map(|u| u * velocity);
    flux[direction + 1] += derived.pressure;
    flux[4] += derived.pressure * velocity;
    flux
}

/// The right-hand side without forcing at a point inside, from the values around it: `at(direction, -2 to 2)`.
/// What every faster form of it is held against.
pub fn residual(n: usize, index: [usize; 3], at: impl Fn(usize, isize) -> Point) -> Point {
    let inverse = (n - 1) as f64;
    let mut sum = [0.0; VARIABLES];
    for direction in 0..3 {
        let line = [-2, -1, 0, 1, 2].map(|offset| {
            let position = index[direction] as isize + offset;
            let inside = (0..n as isize).contains(&position);
            if inside {
                at(direction, offset)
            } else {
                [0.0; 5]
            }
        });
        let [low, mid, high] = [1, 2, 3].map(|place| Derived::of(&line[place]));
        let fluxes = [
            flux(&line[1], &low, direction),
            flux(&line[3], &high, direction),
        ];
        let weights = fourth_difference(index[direction], n);
        for (m, sum) in sum.iter_mut().enumerate() {
            let second = line[1][m] - 2.0 * line[2][m] + line[3][m];
            let fourth: f64 = (0..5).map(|place| weights[place] * line[place][m]).sum();
            *sum += SECOND[direction] * inverse * inverse * second - FOURTH * fourth;
            *sum -= 0.5 * inverse * (fluxes[1][m] - fluxes[0][m]);
        }
        let viscous = VISCOSITY * inverse * inverse;
        let second = |of: &dyn Fn(&Derived) -> f64| of(&low) - 2.0 * of(&mid) + of(&high);
        for other in 0..3 {
            let factor = if other == direction { 4.0 / 3.0 } else { 1.0 };
            sum[other + 1] += viscous * factor * second(&|point| point.velocity[other]);
        }
        let energy = |point: &Derived| {
            (1.0 - CONDUCTION) * point.half_square
                + point.velocity[direction].powi(2) / 6.0
                + CONDUCTION * point.specific_energy
        };
        sum[4] += viscous * second(&energy);
    }
    sum
}

/// The exact solution at the points of a grid.
#[derive(Debug)]
pub struct Exact {
    n: usize,
    /// The parts of it that depend on x (with the constant), y and z.
    parts: [Vec<Point>; 3],
}

impl Exact {
    /// On n^3 points.
    pub fn new(n: usize) -> Self {
        // Not worked out by the compiler: a test changes a coefficient in the program, which must then fail to verify.
        let polynomials = std::hint::black_box(&POLYNOMIALS);
        let part = |direction: usize, index: usize| {
            // As the official values were made: the last bits of x move them.
            let x = index as f64 * (1.0 / (n - 1) as f64);
            polynomials.map(|c| {
                let constant = if direction == 0 { c[0] } else { 0.0 };
                let [c1, c2, c3, c4] = [1, 4, 7, 10].map(|first| c[first + direction]);
                constant + x * (c1 + x * (c2 + x * (c3 + x * c4)))
            })
        };
        Self {
            n,
            parts: [0, 1, 2].map(|direction| (0..n).map(|index| part(direction, index)).collect()),
        }
    }

    /// The solution at a point.
    #[inline]
    pub fn at(&self, [i, j, k]: [usize; 3]) -> Point {
        let [x, y, z] = [&self.parts[0][i], &self.parts[1][j], &self.parts[2][k]];
        std::array::from_fn(|m| x[m] + y[m] + z[m])
    }

    /// The start: exact at the walls; between them x + y + z - xy - yz - zx + xyz of the linear interpolations along x, y
    /// and z between walls, multiplied as numbers.
    pub fn start(&self, index: [usize; 3]) -> Point {
        let last = self.n - 1;
        if index.iter().any(|index| *index == 0 || *index == last) {
            return self.at(index);
        }
        let [x, y, z] = [0, 1, 2].map(|direction| {
            let [mut low, mut high] = [index; 2];
            (low[direction], high[direction]) = (0, last);
            let (low, high) = (self.at(low), self.at(high));
            let share = index[direction] as f64 / last as f64;
            std::array::from_fn::<f64, VARIABLES, _>(|m| share * high[m] + (1.0 - share) * low[m])
        });
        std::array::from_fn(|m| {
            let [x, y, z] = [x[m], y[m], z[m]];
            x + y + z - x * y - y * z - z * x + x * y * z
        })
    }

    /// What is added to the right-hand side; zero at the walls.
    pub fn forcing(&self, index: [usize; 3]) -> Point {
        let last = self.n - 1;
        if index.iter().any(|index| *index == 0 || *index == last) {
            return [0.0; VARIABLES];
        }
        let residual = residual(self.n, index, |direction, offset| {
            let mut place = index;
            place[direction] = place[direction].wrapping_add_signed(offset);
            self.at(place)
        });
        residual.map(|value| -value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomials_are_those_of_the_file() {
        #[derive(Deserialize)]
        struct File {
            cfd: Table,
        }
        #[derive(Deserialize)]
        struct Table {
            ce: Vec<[f64; 13]>,
        }
        let text = include_str!("../../data/npb-verification.toml");
        let file: File = toml::from_str(text).unwrap();
        for (ours, theirs) in POLYNOMIALS.iter().zip(&file.cfd.ce) {
            assert!(
                ours.iter()
                    .zip(theirs)
                    .all(|(a, b)| a.to_bits() == b.to_bits())
            );
        }
    }

    #[test]
    fn the_start_is_exact_at_the_walls() {
        let exact = Exact::new(12);
        // 2 + 4 + 5 + 3 + 0.5 + 0.02 + 0.01 + 0.03 + 0.5 + 0.4 + 0.3 at the far corner.
        assert!((exact.start([11, 11, 11])[0] - 15.76).abs() < 1e-13);
        let differs =
            |index| exact.start(index).map(f64::to_bits) != exact.at(index).map(f64::to_bits);
        assert!(!differs([0, 5, 6]));
        assert!(differs([1, 5, 6]));
    }

    #[test]
    fn the_exact_solution_is_steady() {
        let exact = Exact::new(12);
        let index = [1, 5, 9];
        let residual = residual(12, index, |direction, offset| {
            let mut place = index;
            place[direction] = place[direction].wrapping_add_signed(offset);
            exact.at(place)
        });
        let forcing = exact.forcing(index);
        for m in 0..VARIABLES {
            assert!(forcing[m] != 0.0);
            assert_eq!((residual[m] + forcing[m]).to_bits(), 0.0_f64.to_bits());
        }
        assert!(
            exact
                .forcing([0, 5, 9])
                .iter()
                .all(|value| value.abs() < f64::MIN_POSITIVE)
        );
    }
}
