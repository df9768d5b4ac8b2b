//! FT: the heat equation in three dimensions by Fourier transforms.
//!
//! Model:   a random complex field is transformed once; at each time its modes are multiplied by exp(-4 alpha pi^2 |k|^2 t) and
//!          transformed back, and 1024 points are summed. Ranks hold layers of z while x and y are transformed, and rows of y while
//!          z is. Rows of a layer lie in the order of the ranks that get them, so that all to all takes them and leaves them as they
//!          are. The factor of a time is the product of one of each axis, made for that time: the transformed field stays.
//! Source:  RNR-94-007 §2.5, NPB 3.4.3 as npb.md 4 has it. Deviations: no pencils, hence at most as many ranks as layers;
//!          factors are not accumulated.
//! Units:   operations by the formula of the benchmark.
//! Checked: `official_values`, `a_wrong_coefficient_fails`, `messages_are_as_many_as_counted`.

mod axes;
mod fourier;

use serde::{Deserialize, Serialize};
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Operation, Result};
use sonde_sys::clock::monotonic_ns;

use super::random::Stream;
use super::{Check, Class, Outcome, reference, wide};
use axes::{Across, Along, Factors, Rows};
use fourier::{LANES, Lines, Roots};

const SEED: u64 = 314_159_265;
const ALPHA: f64 = 1e-6;
const TOLERANCE: f64 = 1e-12;
/// Points of a checksum.
const SUMMED: usize = 1_024;

/// How large the problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Points along x: a power of two, at least 8.
    pub nx: usize,
    /// Points along y: a power of two, at least 8.
    pub ny: usize,
    /// Points along z: a power of two, at least 2.
    pub nz: usize,
    /// Times that are computed.
    pub iterations: usize,
}

impl Size {
    /// That of a class.
    pub const fn of(class: Class) -> Self {
        let (nx, ny, nz, iterations) = match class {
            Class::S => (64, 64, 64, 6),
            Class::W => (128, 128, 32, 6),
            Class::A => (256, 256, 128, 6),
            Class::B => (512, 256, 256, 20),
            Class::C => (512, 512, 512, 20),
            Class::D => (2048, 1024, 1024, 25),
        };
        Self {
            nx,
            ny,
            nz,
            iterations,
        }
    }

    const fn points(&self) -> usize {
        self.nx * self.ny * self.nz
    }

    /// Operations as the benchmark counts them.
    pub fn operations(&self) -> f64 {
        let n = self.points() as f64;
        let step = 5.23518 + 7.21113 * n.ln();
        n * (14.8157 + 7.19641 * n.ln() + step * self.iterations as f64)
    }

    /// Bytes of the arrays of one rank.
    pub const fn memory_bytes(&self, ranks: usize) -> u64 {
        let fields = if ranks == 1 { 2 } else { 3 };
        (fields * 16 * self.points() / ranks) as u64
    }

    /// Whether it can run on so many ranks.
    ///
    /// # Errors
    /// Why not, with the nearest number that can.
    pub fn admits(&self, ranks: usize) -> std::result::Result<(), String> {
        let axes = [
            ("x", self.nx, LANES),
            ("y", self.ny, LANES),
            ("z", self.nz, 2),
        ];
        for (axis, points, least) in axes {
            if !points.is_power_of_two() || points < least {
                let near = points.next_power_of_two().max(least);
                return Err(format!(
                    "ft takes a power of two points along {axis}, at least {least}, not {points}: {near} is near"
                ));
            }
        }
        if !ranks.is_power_of_two() {
            let near = 1 << ranks.max(1).ilog2();
            return Err(format!(
                "ft runs on a power of two ranks, not on {ranks}: {near} is near"
            ));
        }
        let most = self.nz.min(self.ny);
        if ranks > most {
            return Err(format!(
                "ft of {} layers of {} rows runs on at most {most} ranks, not on {ranks}",
                self.nz, self.ny
            ));
        }
        Ok(())
    }

    /// The checksums it should have, real and imaginary part; none where none are known.
    pub fn reference(&self) -> Option<Vec<[f64; 2]>> {
        #[derive(Deserialize)]
        struct Official {
            checksums: Vec<[f64; 2]>,
        }
        let class = Class::ALL
            .into_iter()
            .find(|class| Self::of(*class) == *self)?;
        reference::of::<Official>("ft", class).map(|official| official.checksums)
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
    run_with(world, size, ALPHA)
}

fn run_with<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    size: &Size,
    alpha: f64,
) -> Result<Outcome> {
    assert_eq!(size.admits(world.size()), Ok(()));
    world.messenger().phase("setup");
    let mut field = Field::new(size, world.rank(), world.size());
    let mut sums = vec![[0.0; 2]; size.iterations];
    field.start();
    field.forth(world)?;
    world.barrier()?;
    let begin = monotonic_ns();
    world.messenger().phase("start");
    field.start();
    world.messenger().phase("forth");
    field.forth(world)?;
    for (step, sum) in sums.iter_mut().enumerate() {
        world.messenger().phase("back");
        field.back(
            world,
            -4.0 * alpha * std::f64::consts::PI.powi(2) * (step + 1) as f64,
        )?;
        world.messenger().phase("checksum");
        let own = field.sum();
        world.reduce(
            0,
            &own,
            if field.rank == 0 {
                &mut sum[..]
            } else {
                &mut []
            },
            Operation::Sum,
        )?;
        *sum = sum.map(|part| part / size.points() as f64);
    }
    let timed_ns = monotonic_ns() - begin;
    world.messenger().phase("end");
    let checks = if field.rank == 0 {
        checks(size, &sums)
    } else {
        Vec::new()
    };
    Ok(Outcome { timed_ns, checks })
}

fn checks(size: &Size, sums: &[[f64; 2]]) -> Vec<Check> {
    let wanted = size.reference();
    let each = sums.iter().enumerate().flat_map(|(step, sum)| {
        let wanted = wanted.as_ref().and_then(|wanted| wanted.get(step));
        [(0, "real"), (1, "imaginary")].map(|(part, name)| Check {
            name: format!("checksum {} {name}", step + 1),
            found: sum[part],
            wanted: wanted.map(|wanted| wanted[part]),
            tolerance: TOLERANCE,
        })
    });
    each.collect()
}

/// The field on one rank.
struct Field {
    size: Size,
    rank: usize,
    ranks: usize,
    /// The modes: z, own rows of y, x.
    modes: Vec<f64>,
    /// What goes back: as the modes; of one rank, in the end the field.
    work: Vec<f64>,
    /// The field: ranks that get rows, own layers, rows, x. Empty on one rank.
    layers: Vec<f64>,
    roots: [Roots; 3],
    /// Factors of a time, by axis.
    factors: [Vec<f64>; 3],
    lines: [Lines; 2],
    /// The own points of a checksum, as places of their real parts.
    summed: Vec<usize>,
}

impl Field {
    fn new(size: &Size, rank: usize, ranks: usize) -> Self {
        let axes = [size.nx, size.ny, size.nz];
        let doubles = 2 * size.points() / ranks;
        let longest = axes.into_iter().max().unwrap_or(0);
        Self {
            size: *size,
            rank,
            ranks,
            modes: vec![0.0; doubles],
            work: vec![0.0; doubles],
            layers: vec![0.0; if ranks == 1 { 0 } else { doubles }],
            roots: axes.map(Roots::new),
            factors: axes.map(|points| vec![0.0; points]),
            lines: [Lines::new(longest), Lines::new(longest)],
            summed: Vec::with_capacity(SUMMED),
        }
    }

    /// Layers of z and rows of y of one rank.
    const fn own(&self) -> (usize, usize) {
        (self.size.nz / self.ranks, self.size.ny / self.ranks)
    }

    /// The rows of layer z.
    const fn layer(&self, z: usize) -> Rows {
        let (layers, part) = self.own();
        let near = 2 * self.size.nx;
        Rows {
            first: z * part * near,
            part,
            near,
            far: layers * part * near,
        }
    }

    /// The rows of the modes across z, of own row y.
    const fn pillar(&self, y: usize) -> Rows {
        let (near, part) = (2 * self.size.nx, self.size.nz);
        Rows {
            first: y * near,
            part,
            near: self.own().1 * near,
            far: 0,
        }
    }

    /// Roots, points of the checksum and the random field.
    fn start(&mut self) {
        self.roots.iter_mut().for_each(Roots::fill);
        let Size { nx, ny, nz, .. } = self.size;
        let (layers, _) = self.own();
        let first = layers * self.rank;
        self.summed.clear();
        for j in 1..=SUMMED {
            let (x, y, z) = (j % nx, 3 * j % ny, 5 * j % nz);
            if (first..first + layers).contains(&z) {
                let place = self.layer(z - first).at(y) + x;
                self.summed.push(place);
            }
        }
        for z in 0..layers {
            let rows = self.layer(z);
            let mut stream = Stream::new(SEED).jumped((2 * nx * ny * (first + z)) as u64);
            let field = if self.ranks == 1 {
                &mut self.modes
            } else {
                &mut self.layers
            };
            for y in 0..ny {
                let row = &mut field[rows.at(y)..][..2 * nx];
                let (re, im) = row.split_at_mut(nx);
                for (re, im) in re.iter_mut().zip(im) {
                    *re = stream.next();
                    *im = stream.next();
                }
            }
        }
    }

    /// Transforms the field into the modes.
    fn forth<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        self.transform_layers(false);
        if self.ranks > 1 {
            world.alltoall(&self.layers, &mut self.modes)?;
        }
        for y in 0..self.own().1 {
            wide::run(Across {
                from: None,
                rows: self.pillar(y),
                to: &mut self.modes,
                nx: self.size.nx,
                roots: &self.roots[2],
                lines: &mut self.lines,
                back: false,
            });
        }
        Ok(())
    }

    /// Transforms the modes times exp(`rate` |k|^2) into the field.
    fn back<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        rate: f64,
    ) -> Result<()> {
        for factors in &mut self.factors {
            let points = factors.len();
            for (k, factor) in factors.iter_mut().enumerate() {
                let folded = if k < points / 2 { k } else { points - k };
                *factor = (rate * (folded * folded) as f64).exp();
            }
        }
        let rows = self.own().1;
        for y in 0..rows {
            let factors = Factors {
                rows: &self.factors[2],
                along: &self.factors[0],
                all: self.factors[1][rows * self.rank + y],
            };
            wide::run(Across {
                from: Some((&self.modes, factors)),
                rows: self.pillar(y),
                to: &mut self.work,
                nx: self.size.nx,
                roots: &self.roots[2],
                lines: &mut self.lines,
                back: true,
            });
        }
        if self.ranks > 1 {
            world.alltoall(&self.work, &mut self.layers)?;
        }
        self.transform_layers(true);
        Ok(())
    }

    /// Transforms the layers along x and y.
    fn transform_layers(&mut self, back: bool) {
        let Size { nx, ny, .. } = self.size;
        for z in 0..self.own().0 {
            let rows = self.layer(z);
            let field = match (self.ranks, back) {
                (1, false) => &mut self.modes,
                (1, true) => &mut self.work,
                _ => &mut self.layers,
            };
            wide::run(Across {
                from: None,
                rows,
                to: field,
                nx,
                roots: &self.roots[1],
                lines: &mut self.lines,
                back,
            });
            wide::run(Along {
                field,
                rows,
                count: ny,
                roots: &self.roots[0],
                lines: &mut self.lines,
                back,
            });
        }
    }

    /// The sum of the own points of a checksum.
    fn sum(&self) -> [f64; 2] {
        let field = if self.ranks == 1 {
            &self.work
        } else {
            &self.layers
        };
        let mut sum = [0.0; 2];
        for place in &self.summed {
            sum[0] += field[*place];
            sum[1] += field[place + self.size.nx];
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use sonde_message::Comm;
    use sonde_message::collectives::Choice;
    use sonde_message::counted::Counted;
    use sonde_message::native::Memory;

    use super::*;

    fn outcomes(class: Class, ranks: usize, alpha: f64) -> Vec<Outcome> {
        Memory::run(ranks, |messenger| {
            let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
            run_with(&mut world, &Size::of(class), alpha).unwrap()
        })
    }

    fn checked(class: Class, ranks: usize) {
        let outcome = outcomes(class, ranks, ALPHA).swap_remove(0);
        let worst = outcome
            .checks
            .iter()
            .filter_map(Check::error)
            .fold(0.0, f64::max);
        assert!(worst < 3e-13, "{class} {ranks} {outcome:?}");
        assert_eq!(outcome.passes(), Some(true));
    }

    #[test]
    fn official_values() {
        for ranks in [1, 2, 4, 8, 16] {
            checked(Class::S, ranks);
        }
        for ranks in [1, 2, 4] {
            checked(Class::W, ranks);
        }
    }

    #[test]
    fn a_wrong_coefficient_fails() {
        let outcome = outcomes(Class::S, 2, ALPHA * (1.0 + 1e-6)).swap_remove(0);
        assert_eq!(outcome.passes(), Some(false));
    }

    /// npb.md 4: 1 + 6 transforms are timed, each of N / P^2 points to each other rank; and a reduction each time.
    #[test]
    fn messages_are_as_many_as_counted() {
        for (ranks, bytes) in [(2, 1_048_576), (4, 262_144)] {
            let of = |messenger: &mut Memory| {
                let mut counted = Counted::new(messenger);
                let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
                run(&mut world, &Size::of(Class::S)).unwrap();
                let phases = counted.profile().phases;
                let sent = |name: &str| {
                    let phase = phases.iter().find(|phase| phase.name == name).unwrap();
                    (phase.sent.total.messages, phase.sent.total.bytes)
                };
                (sent("forth"), sent("back"))
            };
            let others = ranks as u64 - 1;
            let (forth, back) = Memory::run(ranks, of)[0];
            assert_eq!(forth, (others, others * bytes));
            assert_eq!(back, (6 * others, 6 * others * bytes));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let size = Size::of(Class::W);
        assert_eq!(size.admits(32), Ok(()));
        assert!(size.admits(64).unwrap_err().contains("at most 32"));
        assert!(size.admits(3).unwrap_err().contains("2 is near"));
    }
}
