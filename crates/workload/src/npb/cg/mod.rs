//! CG: the largest eigenvalue of a sparse matrix by shifted inverse power iteration.
//!
//! Model:   B = A - shift I. x is all ones; each step solves B z = x by 25 iterations of conjugate gradients from zero, then
//!          zeta = shift + 1 / (x z) and x = z / |z|.
//! Source:  RNR-94-007 §2.2.2; NPB 3.4.3 for sizes. Deviations: those of `matrix` and `grid`.
//! Units:   operations are nominal: 2 steps n (3 + e + 25 (5 + e) + 3) with e = nonzer (nonzer + 1).
//! Checked: `official_values_on_any_ranks`, `a_wrong_coefficient_fails`, `messages_are_not_more_than_counted`.

mod grid;
mod matrix;

use pulp::{Simd, WithSimd};
use serde::Deserialize;
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Result};

use super::{Check, Class, Outcome, now_ns, reference, wide};
use grid::Grid;
use matrix::{Block, Recipe, Shape, padded};

const ITERATIONS: usize = 25;
const TOLERANCE: f64 = 1e-10;

/// The matrix's size and how often it is solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Rows.
    pub n: usize,
    /// Random entries of a vector that the matrix is made of.
    pub nonzer: usize,
    /// Steps of the power iteration.
    pub steps: usize,
    /// Above all eigenvalues.
    pub shift: f64,
}

impl Size {
    /// That of the UPC study: n is class S's.
    pub const UPC: Self = Self::of(Class::S);

    /// That of a class.
    pub const fn of(class: Class) -> Self {
        let (n, nonzer, steps, shift) = match class {
            Class::S => (1_400, 7, 15, 10.0),
            Class::W => (7_000, 8, 15, 12.0),
            Class::A => (14_000, 11, 15, 20.0),
            Class::B => (75_000, 13, 75, 60.0),
            Class::C => (150_000, 15, 75, 110.0),
            Class::D => (1_500_000, 21, 100, 500.0),
        };
        Self {
            n,
            nonzer,
            steps,
            shift,
        }
    }

    /// Nominal floating point operations.
    pub fn operations(&self) -> f64 {
        let entries = (self.nonzer * (self.nonzer + 1)) as f64;
        let iterations = ITERATIONS as f64;
        let row = 3.0 + entries + iterations * (5.0 + entries) + 3.0;
        2.0 * self.steps as f64 * self.n as f64 * row
    }

    /// The matrix's block, and what is more: the vectors it is made of at first, or then those of the iteration.
    pub fn memory_bytes(&self, ranks: usize) -> u64 {
        let grid = Grid::new(0, ranks.max(1));
        let (rows, columns) = (grid.row_block(self.n), grid.column_block(self.n));
        let (height, width) = (rows.len(), columns.len());
        let per_row = self.nonzer + 1;
        let made_of = self.n * (12 * per_row + 16) + height * (12 * per_row + 8) + 17 * width;
        let vectors = 8 * (5 * width + if ranks > 1 { 2 * height } else { 0 });
        Shape::new(self, rows, columns).memory_bytes(self) + made_of.max(vectors) as u64
    }

    /// Powers of two.
    ///
    /// # Errors
    /// It is none, or there are more columns of ranks than of the matrix; the size is none that can be.
    pub fn admits(&self, ranks: usize) -> std::result::Result<(), String> {
        if self.n < 2 * self.nonzer.max(1) || self.n > 1 << 31 {
            return Err(format!(
                "CG takes at most 2^31 rows, and at least twice the {} entries of a vector, not {}",
                self.nonzer, self.n
            ));
        }
        let most = 1_usize << (2 * self.n.ilog2());
        if ranks.is_power_of_two() && ranks <= most {
            return Ok(());
        }
        let below = ranks.checked_ilog2().map_or(1, |log| 1 << log);
        let above = below * 2;
        let near = if ranks == 0 || ranks - below <= above - ranks {
            below
        } else {
            above
        };
        Err(format!(
            "CG runs on a power of two of ranks, not on {ranks}: take {}",
            near.min(most)
        ))
    }

    /// The official zeta.
    pub fn reference(&self) -> Option<f64> {
        #[derive(Deserialize)]
        struct Values {
            zeta: f64,
        }
        let class = Class::ALL
            .into_iter()
            .find(|class| Self::of(*class) == *self);
        class
            .and_then(|class| reference::of("cg", class))
            .map(|values: Values| values.zeta)
    }
}

/// Runs it; all ranks call it.
///
/// # Errors
/// Those of the messenger.
pub fn run<M: Messenger + ?Sized>(world: &mut Communicator<'_, M>, size: &Size) -> Result<Outcome> {
    run_with(world, size, &Recipe::OFFICIAL)
}

fn run_with<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    size: &Size,
    recipe: &Recipe,
) -> Result<Outcome> {
    world.messenger().phase("setup");
    let mut solver = Solver::new(size, recipe, world.rank(), world.size());
    solver.step(world)?;
    solver.x.fill(1.0);
    solver.is_timed = true;
    world.barrier()?;
    let begin = now_ns(world);
    let mut zeta = 0.0;
    for _ in 0..size.steps {
        zeta = solver.step(world)?;
    }
    let timed_ns = now_ns(world) - begin;
    world.messenger().phase("end");
    let check = Check {
        name: "zeta".into(),
        found: zeta,
        wanted: size.reference(),
        tolerance: TOLERANCE,
    };
    Ok(Outcome {
        timed_ns,
        checks: vec![check],
    })
}

/// A rank's part of all.
struct Solver {
    /// The untimed step belongs to the setup.
    is_timed: bool,
    size: Size,
    grid: Grid,
    block: Block,
    x: Vec<f64>,
    z: Vec<f64>,
    r: Vec<f64>,
    q: Vec<f64>,
    /// Longer than the others, as a product wants it.
    p: Vec<f64>,
    /// A product's partial sums, and room for those of others; empty on one rank.
    parts: Vec<f64>,
    room: Vec<f64>,
}

impl Solver {
    fn new(size: &Size, recipe: &Recipe, rank: usize, ranks: usize) -> Self {
        let grid = Grid::new(rank, ranks);
        let (rows, columns) = (grid.row_block(size.n), grid.column_block(size.n));
        let (height, width) = (rows.len(), columns.len());
        let shared = if ranks == 1 { 0 } else { height };
        let shape = Shape::new(size, rows, columns);
        Self {
            is_timed: false,
            size: *size,
            grid,
            x: vec![1.0; width],
            z: vec![0.0; width],
            r: vec![0.0; width],
            q: vec![0.0; width],
            p: vec![0.0; padded(width)],
            parts: vec![0.0; shared],
            room: vec![0.0; shared],
            block: Block::new(size, recipe, &shape),
        }
    }

    fn phase<M: Messenger + ?Sized>(&self, world: &mut Communicator<'_, M>, name: &str) {
        if self.is_timed {
            world.messenger().phase(name);
        }
    }

    /// A step of the power iteration: zeta.
    fn step<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<f64> {
        self.phase(world, "solve");
        self.solve(world)?;
        self.phase(world, "norms");
        // The residual is computed as the benchmark does, although nobody checks it.
        let width = self.z.len();
        self.p[..width].copy_from_slice(&self.z);
        self.product(world)?;
        let own = wide::run(Norms {
            x: &self.x,
            z: &self.z,
            q: &self.q,
        });
        let [x_z, z_z, _residual] = self.grid.sum(world, own)?;
        let inverse = 1.0 / z_z.sqrt();
        for (x, z) in self.x.iter_mut().zip(&self.z) {
            *x = inverse * z;
        }
        Ok(self.size.shift + 1.0 / x_z)
    }

    /// z of B z = x, nearly.
    fn solve<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        let width = self.x.len();
        self.z.fill(0.0);
        self.r.copy_from_slice(&self.x);
        self.p[..width].copy_from_slice(&self.x);
        let own = wide::run(Dot(&self.r, &self.r));
        let [mut rho] = self.grid.sum(world, [own])?;
        for _ in 0..ITERATIONS {
            self.product(world)?;
            let own = wide::run(Dot(&self.p[..width], &self.q));
            let [p_q] = self.grid.sum(world, [own])?;
            let own = wide::run(Advance {
                alpha: rho / p_q,
                p: &self.p[..width],
                q: &self.q,
                z: &mut self.z,
                r: &mut self.r,
            });
            let [next] = self.grid.sum(world, [own])?;
            let beta = next / rho;
            rho = next;
            for (p, r) in self.p[..width].iter_mut().zip(&self.r) {
                *p = r + beta * *p;
            }
        }
        Ok(())
    }

    /// q = B p.
    fn product<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        if self.parts.is_empty() {
            self.block.product(&self.p, &mut self.q);
            return Ok(());
        }
        self.block.product(&self.p, &mut self.parts);
        let (parts, room) = (&mut self.parts, &mut self.room);
        let n = self.size.n;
        self.grid.gathered(world, n, parts, room, &mut self.q)
    }
}

/// Sums that go side by side, so that one addition need not wait for the other.
const SIDE: usize = 8;

/// a b.
struct Dot<'a>(&'a [f64], &'a [f64]);

impl WithSimd for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let (a, b) = (self.0.chunks_exact(SIDE), self.1.chunks_exact(SIDE));
        let last = a.remainder().iter().zip(b.remainder());
        let last: f64 = last.map(|(a, b)| a * b).sum();
        let mut sums = [0.0; SIDE];
        for (a, b) in a.zip(b) {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum += a * b;
            }
        }
        sums.iter().sum::<f64>() + last
    }
}

/// z += alpha p, r -= alpha q; gives r r.
struct Advance<'a> {
    alpha: f64,
    p: &'a [f64],
    q: &'a [f64],
    z: &'a mut [f64],
    r: &'a mut [f64],
}

impl WithSimd for Advance<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let alpha = self.alpha;
        let mut sums = [0.0; SIDE];
        let from = self.p.chunks(SIDE).zip(self.q.chunks(SIDE));
        let to = self.z.chunks_mut(SIDE).zip(self.r.chunks_mut(SIDE));
        for ((p, q), (z, r)) in from.zip(to) {
            let lanes = sums.iter_mut().zip(p).zip(q).zip(z).zip(r);
            for ((((sum, p), q), z), r) in lanes {
                *z += alpha * p;
                *r -= alpha * q;
                *sum += *r * *r;
            }
        }
        sums.iter().sum()
    }
}

/// x z, z z and |x - q|².
struct Norms<'a> {
    x: &'a [f64],
    z: &'a [f64],
    q: &'a [f64],
}

impl WithSimd for Norms<'_> {
    type Output = [f64; 3];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> [f64; 3] {
        let mut sums = [[0.0; SIDE]; 3];
        let rows = self.x.chunks(SIDE).zip(self.z.chunks(SIDE));
        for ((x, z), q) in rows.zip(self.q.chunks(SIDE)) {
            for (lane, ((x, z), q)) in x.iter().zip(z).zip(q).enumerate() {
                sums[0][lane] += x * z;
                sums[1][lane] += z * z;
                sums[2][lane] += (x - q) * (x - q);
            }
        }
        sums.map(|lanes| lanes.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use sonde_message::Comm;
    use sonde_message::collectives::Choice;
    use sonde_message::counted::Counted;
    use sonde_message::native::Memory;

    use super::*;

    fn outcomes(size: Size, recipe: Recipe, ranks: usize) -> Vec<Outcome> {
        Memory::run(ranks, |messenger| {
            let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
            run_with(&mut world, &size, &recipe).unwrap()
        })
    }

    #[test]
    fn official_values_on_any_ranks() {
        for (class, ranks) in [
            (Class::S, 1),
            (Class::S, 2),
            (Class::S, 4),
            (Class::S, 8),
            (Class::W, 1),
            (Class::W, 4),
        ] {
            for outcome in outcomes(Size::of(class), Recipe::OFFICIAL, ranks) {
                let error = outcome.checks[0].error().unwrap();
                println!("{class} {ranks} {error:e}");
                assert!(error < 1e-13, "{class} {ranks} {outcome:?}");
            }
        }
    }

    #[test]
    fn uneven_blocks_are_one_matrix() {
        let size = Size {
            n: 1_403,
            ..Size::of(Class::S)
        };
        let zeta = |ranks| outcomes(size, Recipe::OFFICIAL, ranks)[0].checks[0].found;
        let one = zeta(1);
        for ranks in [2, 4, 8] {
            assert!((zeta(ranks) / one - 1.0).abs() < 1e-13);
        }
        assert_eq!(size.reference(), None);
    }

    #[test]
    fn a_wrong_coefficient_fails() {
        let official = Recipe::OFFICIAL;
        let wrong = [
            Recipe {
                rcond: 0.100_001,
                ..official
            },
            Recipe {
                own_entry: 0.500_001,
                ..official
            },
        ];
        for recipe in wrong {
            let outcome = &outcomes(Size::of(Class::S), recipe, 1)[0];
            assert_eq!(outcome.passes(), Some(false), "{recipe:?}");
        }
    }

    #[test]
    fn messages_are_not_more_than_counted() {
        let size = Size::of(Class::S);
        // By npb.md §3: 79 L + 26 of a rank and step, L the logarithm of the columns; 8 ranks have 4.
        for (ranks, columns_log2) in [(2, 1), (4, 1), (8, 2)] {
            let profiles = Memory::run(ranks, |messenger| {
                let mut counted = Counted::new(messenger);
                let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
                run(&mut world, &size).unwrap();
                counted.profile()
            });
            let steps = size.steps as u64;
            for profile in profiles {
                let timed = profile.phases.iter().filter(|phase| phase.name != "setup");
                let sent: u64 = timed.map(|phase| phase.sent.total.messages).sum();
                let transposed = sent - steps * 78 * columns_log2;
                assert!(transposed == 0 || transposed == steps * 26, "{sent}");
            }
        }
    }

    #[test]
    fn ranks_are_a_power_of_two() {
        let size = Size::of(Class::S);
        for ranks in [1, 2, 4, 64] {
            size.admits(ranks).unwrap();
        }
        for (ranks, near) in [(0, 1), (3, 2), (7, 8), (12, 8)] {
            let error = size.admits(ranks).unwrap_err();
            assert!(error.ends_with(&format!("take {near}")), "{error}");
        }
    }
}
