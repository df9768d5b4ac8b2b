//! MG: V-cycles of multigrid on a periodic Poisson problem.
//!
//! Model:   del^2 u = v on n^3 periodic points, v being +1 at the ten largest and -1 at the ten smallest of n^3 random numbers. Each
//!          cycle restricts the residual to 2^3 points, smooths there and comes back with a correction, a residual and a smoothing
//!          on each level. Where planes are whole on a rank, what is done on the way up on a level is done in one pass over
//!          its planes, each step as many planes behind as it needs; the outermost planes wait for their ghosts.
//! Source:  RNR-94-007 §2.3, NPB 3.4.3 as npb.md 5 has it. Deviations: sums in another order; the norm of the start and the
//!          greatest residual, which nobody reads, are not made.
//! Units:   operations are 58 for each point and cycle.
//! Checked: `official_values`, `another_size_of_the_nineties`, `cycles_fall_as_they_should`, `a_wrong_coefficient_fails`,
//!          `messages_are_as_many_as_counted`.

mod charges;
mod grid;
mod operators;

use serde::{Deserialize, Serialize};
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Operation, Result};

use super::{Check, Class, Outcome, now_ns, reference};
use grid::{Array, Faces, Level, Place};
use operators::{Coefficients, ROOMS, prolong, residual, restrict, smooth, square, wrap_x, wrap_y};

/// The greatest relative error of the norm.
const TOLERANCE: f64 = 1e-8;
/// Planes of a rank from when on one pass over them is made.
const PASS_PLANES: usize = 4;

/// The smoother's coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Smoother {
    /// -3/8, 1/32, -1/64, 0: of the small classes.
    A,
    /// -3/17, 1/33, -1/61, 0: from class B on.
    B,
}

impl Smoother {
    const fn coefficients(self) -> Coefficients {
        match self {
            Self::A => [-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0],
            Self::B => [-3.0 / 17.0, 1.0 / 33.0, -1.0 / 61.0, 0.0],
        }
    }
}

/// How large the problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Points along each axis: a power of two, at least 4.
    pub points: usize,
    /// Cycles that are timed.
    pub cycles: usize,
    /// The smoother.
    pub smoother: Smoother,
}

impl Size {
    /// That of the UPC study; no official value is known of it.
    pub const UPC: Self = Self {
        points: 64,
        cycles: 4,
        smoother: Smoother::A,
    };

    /// That of a class.
    pub const fn of(class: Class) -> Self {
        let (points, cycles) = match class {
            Class::S => (32, 4),
            Class::W => (128, 4),
            Class::A => (256, 4),
            Class::B => (256, 20),
            Class::C => (512, 20),
            Class::D => (1024, 50),
        };
        let smoother = match class {
            Class::S | Class::W | Class::A => Smoother::A,
            Class::B | Class::C | Class::D => Smoother::B,
        };
        Self {
            points,
            cycles,
            smoother,
        }
    }

    /// Operations as the benchmark counts them.
    pub fn operations(&self) -> f64 {
        58.0 * self.cycles as f64 * (self.points as f64).powi(3)
    }

    /// Bytes of the arrays of one rank.
    pub fn memory_bytes(&self, ranks: usize) -> u64 {
        let Place { ranks, .. } = Place::of(0, ranks);
        let logs = 1..=self.points.ilog2();
        let of = |log: u32| -> u64 {
            let along = |ranks: usize| ((1_usize << log) / ranks).max(1) as u64 + 2;
            ranks.map(along).iter().product()
        };
        8 * (2 * logs.map(of).sum::<u64>() + of(self.points.ilog2()))
    }

    /// Whether it can run on so many ranks.
    ///
    /// # Errors
    /// Why not, with the nearest number that can.
    pub fn admits(&self, ranks: usize) -> std::result::Result<(), String> {
        let points = self.points;
        if !points.is_power_of_two() || points < 4 {
            let near = points.next_power_of_two().max(4);
            return Err(format!(
                "mg takes a power of two points along each axis, at least 4, not {points}: {near} is near"
            ));
        }
        if !ranks.is_power_of_two() {
            let near = 1 << ranks.max(1).ilog2();
            return Err(format!(
                "mg runs on a power of two ranks, not on {ranks}: {near} is near"
            ));
        }
        let Place { ranks: along, .. } = Place::of(0, ranks);
        if along.iter().any(|along| *along > points) {
            return Err(format!(
                "mg with {points} points along each axis runs on at most as many ranks along each: {} is near, {ranks} are too many",
                points * points * points
            ));
        }
        Ok(())
    }

    /// The norm of the last residual that it should have; none where none is known.
    pub fn reference(&self) -> Option<f64> {
        #[derive(Deserialize)]
        struct Official {
            rnm2: f64,
        }
        #[derive(Deserialize)]
        struct Unofficial {
            n: usize,
            nit: usize,
            rnm2_smoother_a: f64,
            rnm2_smoother_b: f64,
        }
        if let Some(class) = Class::ALL
            .into_iter()
            .find(|class| Self::of(*class) == *self)
        {
            return reference::of::<Official>("mg", class).map(|official| official.rnm2);
        }
        let known: Unofficial = reference::unofficial("mg_64_4")?;
        ((known.n, known.nit) == (self.points, self.cycles)).then_some(match self.smoother {
            Smoother::A => known.rnm2_smoother_a,
            Smoother::B => known.rnm2_smoother_b,
        })
    }
}

/// Runs the benchmark.
///
/// # Errors
/// Those of messages.
///
/// # Panics
/// The size does not admit so many ranks.
pub fn run<M: Messenger + ?Sized>(world: &mut Communicator<'_, M>, size: &Size) -> Result<Outcome> {
    let (outcome, _) = run_with(world, size, size.smoother.coefficients())?;
    Ok(outcome)
}

/// The outcome, and the norm of the first residual.
fn run_with<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    size: &Size,
    smoother: Coefficients,
) -> Result<(Outcome, f64)> {
    assert_eq!(size.admits(world.size()), Ok(()));
    world.messenger().phase("setup");
    let mut multigrid = Multigrid::new(world, size, smoother)?;
    multigrid.start(world)?;
    multigrid.cycle(world)?;
    world.messenger().phase("setup");
    multigrid.clear();
    let charges = multigrid.norm(world, size)?;
    world.barrier()?;
    let begin = now_ns(world);
    multigrid.start(world)?;
    for _ in 0..size.cycles {
        multigrid.cycle(world)?;
    }
    world.messenger().phase("norm");
    let norm = multigrid.norm(world, size)?;
    let timed_ns = now_ns(world) - begin;
    world.messenger().phase("end");
    let check = Check {
        name: "residual norm".into(),
        found: norm,
        wanted: size.reference(),
        tolerance: TOLERANCE,
    };
    let outcome = Outcome {
        timed_ns,
        checks: vec![check],
    };
    Ok((outcome, charges))
}

/// All levels on one rank.
struct Multigrid {
    /// By log2 of the points along an axis, from 1; the last is the top.
    levels: Vec<Level>,
    v: Vec<f64>,
    smoother: Coefficients,
    faces: Faces,
    room: Vec<f64>,
    handed: Vec<f64>,
}

impl Multigrid {
    fn new<M: Messenger + ?Sized>(
        world: &mut Communicator<'_, M>,
        size: &Size,
        smoother: Coefficients,
    ) -> Result<Self> {
        let place = Place::of(world.rank(), world.size());
        let logs = 1..=size.points.ilog2();
        let levels: Vec<_> = logs.map(|log| Level::new(log, &place)).collect();
        let top = levels.last().expect("two levels at least");
        let faces = levels.iter().map(Level::face).max().unwrap_or(0);
        // Only levels of one cell a rank along some axis hand anything over.
        let given = |level: &&Level| level.cells.contains(&1);
        let layers = |level: &Level| 2 * level.points() / 3;
        let handed = levels.iter().filter(given).map(layers).max().unwrap_or(0);
        Ok(Self {
            v: charges::charges(world, size.points, &place, top)?,
            smoother,
            faces: Faces::new(faces),
            room: vec![0.0; ROOMS * top.lie().row],
            handed: vec![0.0; handed],
            levels,
        })
    }

    fn top(&mut self) -> &mut Level {
        self.levels.last_mut().expect("two levels at least")
    }

    /// The first residual, of no solution.
    fn start<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        world.messenger().phase("start");
        let Self {
            levels,
            v,
            faces,
            room,
            ..
        } = self;
        let top = levels.last_mut().expect("two levels at least");
        let mut step = Step::new(top, None, Some(v), self.smoother, room);
        (1..=step.planes).for_each(|k| step.residual(k));
        top.exchange(world, Array::R, faces)
    }

    /// No solution again.
    fn clear(&mut self) {
        let Self { levels, v, .. } = self;
        let top = levels.last_mut().expect("two levels at least");
        top.u.fill(0.0);
        top.r.copy_from_slice(v);
    }

    /// sqrt(sum r^2 / n^3).
    fn norm<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        size: &Size,
    ) -> Result<f64> {
        let top = self.top();
        let (lie, planes) = (top.lie(), top.cells[2]);
        let inner = top.r.chunks_exact(lie.plane()).skip(1).take(planes);
        let own: f64 = inner.map(|plane| square(plane, lie)).sum();
        let mut sum = [0.0];
        world.allreduce(&[own], &mut sum, Operation::Sum)?;
        Ok((sum[0] / (size.points as f64).powi(3)).sqrt())
    }

    /// One cycle, and the residual after it.
    fn cycle<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        world.messenger().phase("down");
        for fine in (1..self.levels.len()).rev() {
            if self.levels[fine - 1].is_held() {
                self.down(fine);
                self.levels[fine - 1].exchange(world, Array::R, &mut self.faces)?;
            }
        }
        world.messenger().phase("up");
        self.bottom(world)?;
        let top = self.levels.len() - 1;
        for fine in 1..=top {
            if fine == top {
                world.messenger().phase("top");
            }
            if self.levels[fine].is_held() {
                self.levels[fine - 1].hand_over(world, &mut self.handed)?;
                self.up(world, fine)?;
            }
        }
        Ok(())
    }

    /// The residual of a level restricted to the next.
    fn down(&mut self, fine: usize) {
        let (coarse, fine) = self.levels.split_at_mut(fine);
        let (coarse, fine) = (coarse.last_mut().expect("a coarser one"), &fine[0]);
        let (fine_lie, lie) = (fine.lie(), coarse.lie());
        let inner = coarse.r.chunks_exact_mut(lie.plane()).enumerate();
        for (c, plane) in inner.skip(1).take(coarse.cells[2]) {
            let k = 2 * c - coarse.off[2];
            let off = [coarse.off[0], coarse.off[1]];
            let three = three(&fine.r, fine_lie.plane(), k);
            restrict((three, fine_lie), (plane, lie), off, &mut self.room);
        }
    }

    /// The smoothing of nothing on the coarsest level.
    fn bottom<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        let bottom = &mut self.levels[0];
        if !bottom.is_held() {
            return Ok(());
        }
        bottom.u.fill(0.0);
        let mut step = Step::new(bottom, None, None, self.smoother, &mut self.room);
        (1..=step.planes).for_each(|k| step.smooth(k));
        bottom.exchange(world, Array::U, &mut self.faces)
    }

    /// Correction, residual and smoothing of a level; at the top another residual.
    fn up<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        fine: usize,
    ) -> Result<()> {
        let top = self.levels.len() - 1;
        let v = (fine == top).then_some(&self.v[..]);
        let (coarse, level) = self.levels.split_at_mut(fine);
        let (coarse, level) = (coarse.last().expect("a coarser one"), &mut level[0]);
        if level.has_whole_planes() && level.cells[2] >= PASS_PLANES {
            return pass(world, coarse, level, v, self.smoother, &mut self.room);
        }
        let faces = &mut self.faces;
        let mut step = Step::new(level, Some(coarse), v, self.smoother, &mut self.room);
        step.prolong(0);
        step.prolong(1);
        for k in 1..=step.planes {
            step.prolong(k + 1);
            step.residual(k);
        }
        level.exchange(world, Array::R, faces)?;
        let mut step = Step::new(level, None, v, self.smoother, &mut self.room);
        (1..=step.planes).for_each(|k| step.smooth(k));
        level.exchange(world, Array::U, faces)?;
        if v.is_none() {
            return Ok(());
        }
        let mut step = Step::new(level, None, v, self.smoother, &mut self.room);
        (1..=step.planes).for_each(|k| step.residual(k));
        level.exchange(world, Array::R, faces)
    }
}

/// What [`Multigrid::up`] does, in one pass over planes that are whole here.
fn pass<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    coarse: &Level,
    level: &mut Level,
    v: Option<&[f64]>,
    smoother: Coefficients,
    room: &mut [f64],
) -> Result<()> {
    let n = level.cells[2];
    let mut step = Step::new(level, Some(coarse), v, smoother, room);
    step.prolong(0);
    step.prolong(1);
    for k in 1..=n {
        step.prolong(k + 1);
        step.whole_residual(k);
        if k >= 3 {
            step.whole_smooth(k - 1);
        }
        if v.is_some() && k >= 5 {
            step.whole_residual(k - 2);
        }
    }
    level.exchange_z(world, Array::R)?;
    let mut step = Step::new(level, None, v, smoother, room);
    step.whole_smooth(1);
    step.whole_smooth(n);
    level.exchange_z(world, Array::U)?;
    if v.is_none() {
        return Ok(());
    }
    let mut step = Step::new(level, None, v, smoother, room);
    for k in [1, 2, n - 1, n] {
        step.whole_residual(k);
    }
    level.exchange_z(world, Array::R)
}

/// Planes k - 1, k and k + 1.
fn three(array: &[f64], plane: usize, k: usize) -> operators::Planes<'_> {
    [k - 1, k, k + 1].map(|k| &array[k * plane..(k + 1) * plane])
}

/// What is done with a plane of a level.
struct Step<'a> {
    level: &'a mut Level,
    coarse: Option<&'a Level>,
    v: Option<&'a [f64]>,
    smoother: Coefficients,
    room: &'a mut [f64],
    planes: usize,
}

impl<'a> Step<'a> {
    const fn new(
        level: &'a mut Level,
        coarse: Option<&'a Level>,
        v: Option<&'a [f64]>,
        smoother: Coefficients,
        room: &'a mut [f64],
    ) -> Self {
        let planes = level.cells[2];
        Self {
            level,
            coarse,
            v,
            smoother,
            room,
            planes,
        }
    }

    /// The correction of plane k, ghosts too, from the coarser level; at the top it is added.
    fn prolong(&mut self, k: usize) {
        let Some(coarse) = self.coarse else { return };
        let (lie, fine_lie) = (coarse.lie(), self.level.lie());
        let at = k + coarse.off[2];
        let of = |c: usize| &coarse.u[c * lie.plane()..(c + 1) * lie.plane()];
        let above = (at % 2 == 1).then(|| of(at / 2 + 1));
        let plane = &mut self.level.u[k * fine_lie.plane()..(k + 1) * fine_lie.plane()];
        prolong(
            (of(at / 2), above, lie),
            (plane, fine_lie),
            self.v.is_some(),
            [coarse.off[0], coarse.off[1]],
            self.room,
        );
    }

    fn residual(&mut self, k: usize) {
        let lie = self.level.lie();
        let at = k * lie.plane()..(k + 1) * lie.plane();
        let v = self.v.map(|v| &v[at.clone()]);
        let u = three(&self.level.u, lie.plane(), k);
        residual(u, v, &mut self.level.r[at], lie, self.room);
    }

    fn smooth(&mut self, k: usize) {
        let lie = self.level.lie();
        let r = three(&self.level.r, lie.plane(), k);
        let u = &mut self.level.u[k * lie.plane()..(k + 1) * lie.plane()];
        smooth(r, u, self.smoother, lie, self.room);
    }

    /// With the ghosts along x and y.
    fn whole_residual(&mut self, k: usize) {
        self.residual(k);
        let lie = self.level.lie();
        let plane = &mut self.level.r[k * lie.plane()..(k + 1) * lie.plane()];
        wrap_x(plane, lie);
        wrap_y(plane, lie);
    }

    /// With the ghosts along x and y.
    fn whole_smooth(&mut self, k: usize) {
        self.smooth(k);
        let lie = self.level.lie();
        let plane = &mut self.level.u[k * lie.plane()..(k + 1) * lie.plane()];
        wrap_x(plane, lie);
        wrap_y(plane, lie);
    }
}

#[cfg(test)]
mod tests;
