//! LU: symmetric successive over-relaxation of the Navier-Stokes equations.
//!
//! Model:   a time step sweeps the residual times dt through a lower and an upper block-triangular system, adds it to u by
//!          1 / (omega (2 - omega)) and makes the residual anew. Ranks hold pencils along z in a grid over x and y; the sweeps pass
//!          plane by plane from rank to rank.
//! Source:  RNR-94-007 §3.4, §4.3, NPB 3.4.3 as npb.md 7 and 10 have it. Deviations: at the sweeps; the surface integral is a
//!          weighted sum of own points, without messages between neighbours; the norm of the last correction, which nobody reads,
//!          is not made; no stop before the last step, which no class makes.
//! Units:   operations by the formula of the benchmark.
//! Checked: `official_values`, `a_wrong_coefficient_fails`, `messages_are_as_many_as_counted`.

mod edges;
mod sweep;

use serde::{Deserialize, Serialize};
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Operation, Result};

use super::cfd::{self, Derived, Exact, Official, Point, TOLERANCE, VARIABLES};
use super::flow::{Planes, Shape, Site, right_hand_side};
use super::{Check, Class, Outcome, now_ns};
use edges::{Axis, Edges};
use sweep::{Direction, OMEGA, Sweeper};

/// How large the problem is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// Points along an edge of the cube, at least 5.
    pub points: usize,
    /// Time steps.
    pub steps: usize,
    /// Length of a time step.
    pub dt: f64,
}

impl Size {
    /// That of a class.
    pub const fn of(class: Class) -> Self {
        let (points, steps, dt) = match class {
            Class::S => (12, 50, 0.5),
            Class::W => (33, 300, 0.0015),
            Class::A => (64, 250, 2.0),
            Class::B => (102, 250, 2.0),
            Class::C => (162, 250, 2.0),
            Class::D => (408, 300, 1.0),
        };
        Self { points, steps, dt }
    }

    /// Operations as the benchmark counts them.
    pub fn operations(&self) -> f64 {
        let n = self.points as f64;
        let step = 1984.77 * n.powi(3) - 10923.3 * n.powi(2) + 27770.9 * n - 144_010.0;
        self.steps as f64 * step
    }

    /// Bytes of the arrays of one rank.
    pub fn memory_bytes(&self, ranks: usize) -> u64 {
        let Some([x, y]) = grid(ranks) else { return 0 };
        let [x, y] = [self.points.div_ceil(x), self.points.div_ceil(y)];
        let shape = Shape::new([x, y, self.points]);
        let beside = if ranks > 1 { Edges::numbers(&shape) } else { 0 };
        let planes = Planes::numbers(&shape) + Sweeper::numbers(&shape);
        8 * (3 * shape.numbers() + planes + beside) as u64
    }

    /// Whether it can run on so many ranks.
    ///
    /// # Errors
    /// Why not, with the nearest number that can.
    pub fn admits(&self, ranks: usize) -> std::result::Result<(), String> {
        if self.points < 5 {
            return Err(format!(
                "lu takes at least 5 points along an edge, not {}",
                self.points
            ));
        }
        let fits = |ranks: usize| {
            grid(ranks).is_some_and(|along| along.iter().all(|along| self.points / along >= 3))
        };
        if fits(ranks) {
            return Ok(());
        }
        let near = (1..=ranks).rev().find(|ranks| fits(*ranks)).unwrap_or(1);
        Err(format!(
            "lu with {} points along an edge runs on n1 n2 ranks, n1 / 2 <= n2 <= n1, with at least 3 points each, not on {ranks}: {near} is near",
            self.points
        ))
    }

    /// The values that it should have; none where none are known.
    pub fn reference(&self) -> Option<Reference> {
        let known = cfd::official("lu", self.points, self.steps, self.dt)?;
        Some(Reference {
            residual: known.xcr,
            error: known.xce,
            integral: known.xci?,
        })
    }

    fn official(&self) -> Option<Official> {
        cfd::official("lu", self.points, self.steps, self.dt)
    }
}

/// Official values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Norms of the residual.
    pub residual: Point,
    /// Norms of the solution's error.
    pub error: Point,
    /// The surface integral.
    pub integral: f64,
}

/// Ranks along x and y: as near to a square as can be.
fn grid(ranks: usize) -> Option<[usize; 2]> {
    let along_y = (1..=ranks)
        .take_while(|y| y * y <= ranks)
        .filter(|y| ranks % y == 0)
        .max()?;
    let along_x = ranks / along_y;
    (along_x <= 2 * along_y).then_some([along_x, along_y])
}

/// Runs the benchmark.
///
/// # Errors
/// Those of messages.
///
/// # Panics
/// The size does not admit so many ranks.
pub fn run<M: Messenger + ?Sized>(world: &mut Communicator<'_, M>, size: &Size) -> Result<Outcome> {
    run_with(world, size, OMEGA)
}

fn run_with<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    size: &Size,
    omega: f64,
) -> Result<Outcome> {
    assert_eq!(size.admits(world.size()), Ok(()));
    world.messenger().phase("setup");
    let mut flow = Flow::new(size, world.rank(), world.size(), omega);
    flow.start(world)?;
    flow.step(world)?;
    flow.start(world)?;
    world.messenger().phase("setup");
    world.barrier()?;
    let begin = now_ns(world);
    for _ in 0..size.steps {
        flow.step(world)?;
    }
    world.messenger().phase("norm");
    let residual = flow.norms(world, |flow, at, _| flow.point(&flow.residual, at))?;
    let timed_ns = now_ns(world) - begin;
    world.messenger().phase("verification");
    let error = flow.norms(world, |flow, at, index| {
        let (exact, found) = (flow.exact.at(index), flow.point(&flow.u, at));
        std::array::from_fn(|m| exact[m] - found[m])
    })?;
    let integral = flow.surface_integral(world)?;
    world.messenger().phase("end");
    let official = size.official();
    let mut checks = cfd::checks(&residual, &error, official.as_ref());
    checks.push(Check {
        name: "surface integral".into(),
        found: integral,
        wanted: official.and_then(|official| official.xci),
        tolerance: TOLERANCE,
    });
    Ok(Outcome { timed_ns, checks })
}

/// The flow on one rank.
struct Flow {
    site: Site,
    exact: Exact,
    u: Vec<f64>,
    residual: Vec<f64>,
    forcing: Vec<f64>,
    planes: Planes,
    sweeper: Sweeper,
    edges: Edges,
    relaxation: f64,
}

impl Flow {
    fn new(size: &Size, rank: usize, ranks: usize, omega: f64) -> Self {
        let along = grid(ranks).expect("the size admits the ranks");
        let at = [rank % along[0], rank / along[0]];
        let n = size.points;
        let part = |axis: usize| {
            let (ranks, at) = (along[axis], at[axis]);
            let (each, more) = (n / ranks, n % ranks);
            (each * at + more.min(at), each + usize::from(at < more))
        };
        let [(x, nx), (y, ny)] = [part(0), part(1)];
        let site = Site::new(n, [x, y, 0], [nx, ny, n]);
        let numbers = site.shape.numbers();
        let mut flow = Self {
            exact: Exact::new(n),
            u: vec![1.0; numbers],
            residual: vec![0.0; numbers],
            forcing: vec![0.0; numbers],
            planes: Planes::new(&site.shape),
            sweeper: Sweeper::new(&site, size.dt),
            edges: Edges::new(&site, along, at),
            relaxation: 1.0 / (omega * (2.0 - omega)),
            site,
        };
        flow.each_point(|flow, at, index| {
            let forcing = flow.exact.forcing(index);
            for (m, forcing) in forcing.into_iter().enumerate() {
                flow.forcing[m * flow.site.shape.points + at] = forcing;
            }
        });
        flow
    }

    /// All own points: their place and their index in the cube.
    fn each_point(&mut self, mut each: impl FnMut(&mut Self, usize, [usize; 3])) {
        let Site { shape, origin, .. } = self.site;
        let [nx, ny, nz] = shape.extent;
        for k in 0..nz {
            for j in 0..ny {
                for i in 0..nx {
                    let at = shape.at([i as isize, j as isize, k as isize]);
                    let index = [origin[0] + i, origin[1] + j, origin[2] + k];
                    each(self, at, index);
                }
            }
        }
    }

    fn point(&self, of: &[f64], at: usize) -> Point {
        std::array::from_fn(|m| of[m * self.site.shape.points + at])
    }

    /// The start, and its residual.
    fn start<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        self.each_point(|flow, at, index| {
            let start = flow.exact.start(index);
            for (m, start) in start.into_iter().enumerate() {
                flow.u[m * flow.site.shape.points + at] = start;
            }
        });
        self.renew(world)
    }

    /// The residual of u.
    fn renew<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        world.messenger().phase("residual");
        self.edges.layers(world, &self.site, &mut self.u, Axis::X)?;
        self.edges.layers(world, &self.site, &mut self.u, Axis::Y)?;
        let Self {
            site,
            u,
            forcing,
            residual,
            planes,
            ..
        } = self;
        right_hand_side(site, u, forcing, residual, 1.0, planes);
        Ok(())
    }

    fn step<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        let (low, high) = self.site.inside[2];
        world.messenger().phase("lower");
        for k in low..high {
            self.sweep(world, k, Direction::Up)?;
        }
        world.messenger().phase("upper");
        for k in (low..high).rev() {
            self.sweep(world, k, Direction::Down)?;
            self.add(k);
        }
        self.renew(world)
    }

    fn sweep<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        k: usize,
        way: Direction,
    ) -> Result<()> {
        let site = &self.site;
        self.sweeper.derive(site, &self.u, k);
        for axis in [Axis::X, Axis::Y] {
            self.edges
                .take(world, site, &mut self.residual, (axis, way), k)?;
        }
        self.sweeper.sweep(site, &mut self.residual, k, way);
        for axis in [Axis::X, Axis::Y] {
            self.edges
                .give(world, site, &self.residual, (axis, way), k)?;
        }
        Ok(())
    }

    /// The correction of plane k to u.
    fn add(&mut self, k: usize) {
        let Site { shape, inside, .. } = self.site;
        let [columns, rows, _] = inside;
        for m in 0..VARIABLES {
            for j in rows.0..rows.1 {
                let at = shape.at([columns.0 as isize, j as isize, k as isize]);
                let at = m * shape.points + at;
                let row = at..at + columns.1 - columns.0;
                for (u, change) in self.u[row.clone()].iter_mut().zip(&self.residual[row]) {
                    *u += self.relaxation * change;
                }
            }
        }
    }

    /// The norms over the points inside of what `of` gives.
    fn norms<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        of: impl Fn(&Self, usize, [usize; 3]) -> Point,
    ) -> Result<Point> {
        let last = self.site.n - 1;
        let mut squares = [0.0; VARIABLES];
        self.each_point(|flow, at, index| {
            if index.iter().all(|index| (1..last).contains(index)) {
                let point = of(flow, at, index);
                (squares.iter_mut().zip(point))
                    .for_each(|(square, value)| *square += value * value);
            }
        });
        cfd::norms(world, &squares, self.site.n)
    }

    /// The pressure's integral over the surface of a box inside.
    fn surface_integral<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
    ) -> Result<f64> {
        let n = self.site.n;
        let bounds = [(1, n - 2), (1, n - 3), (2, n - 2)];
        // Trapezes: half as much at ends.
        let weight = |axis: usize, at: usize| {
            let (low, high) = bounds[axis];
            match at {
                at if at < low || at > high => 0.0,
                at if at == low || at == high => 1.0,
                _ => 2.0,
            }
        };
        let is_end = |axis: usize, at: usize| at == bounds[axis].0 || at == bounds[axis].1;
        let mut sum = 0.0;
        self.each_point(|flow, at, index| {
            for axis in 0..3 {
                let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
                let weight = weight(a, index[a]) * weight(b, index[b]);
                if is_end(axis, index[axis]) && weight > 0.0 {
                    sum += weight * Derived::of(&flow.point(&flow.u, at)).pressure;
                }
            }
        });
        let mut all = [0.0];
        world.allreduce(&[sum], &mut all, Operation::Sum)?;
        Ok(0.25 * all[0] / ((n - 1) * (n - 1)) as f64)
    }
}

#[cfg(test)]
mod tests {
    use sonde_message::Comm;
    use sonde_message::collectives::Choice;
    use sonde_message::counted::Counted;
    use sonde_message::native::Memory;

    use super::*;

    fn outcomes(class: Class, ranks: usize, omega: f64) -> Vec<Outcome> {
        Memory::run(ranks, |messenger| {
            let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
            run_with(&mut world, &Size::of(class), omega).unwrap()
        })
    }

    fn checked(class: Class, ranks: usize) {
        let outcome = outcomes(class, ranks, OMEGA).swap_remove(0);
        let worst = outcome
            .checks
            .iter()
            .filter_map(Check::error)
            .fold(0.0, f64::max);
        assert!(worst < 1e-11, "{class} {ranks} {outcome:?}");
        assert_eq!(outcome.passes(), Some(true));
    }

    #[test]
    fn official_values() {
        for ranks in [1, 2, 4, 6, 8, 9] {
            checked(Class::S, ranks);
        }
        for ranks in [1, 2, 4] {
            checked(Class::W, ranks);
        }
    }

    #[test]
    fn a_wrong_coefficient_fails() {
        let outcome = outcomes(Class::S, 2, OMEGA * (1.0 + 1e-4)).swap_remove(0);
        assert_eq!(outcome.passes(), Some(false));
    }

    /// npb.md 10: of class S on 2 x 2 ranks, rank 0 sends each step 10 edges of 200 B and one layer of 5760 B to each of two.
    #[test]
    fn messages_are_as_many_as_counted() {
        let of = |messenger: &mut Memory| {
            let mut counted = Counted::new(messenger);
            let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
            run(&mut world, &Size::of(Class::S)).unwrap();
            let phases = counted.profile().phases;
            ["lower", "upper", "residual"].map(|name| {
                let phase = phases.iter().find(|phase| phase.name == name).unwrap();
                let total = &phase.sent.total;
                (total.messages, total.bytes)
            })
        };
        let [lower, upper, residual] = Memory::run(4, of)[0];
        let (steps, residuals) = (50, 50);
        assert_eq!(lower, (steps * 20, steps * 20 * 200));
        assert_eq!(upper, (0, 0));
        assert_eq!(residual, (residuals * 2, residuals * 2 * 5_760));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let size = Size::of(Class::S);
        for ranks in [1, 2, 4, 6, 8, 9, 12, 16] {
            assert_eq!(size.admits(ranks), Ok(()));
        }
        for ranks in [3, 5, 7, 10] {
            assert!(size.admits(ranks).unwrap_err().contains("is near"));
        }
    }
}
