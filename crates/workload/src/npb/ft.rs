//! FT: the heat equation in three dimensions by Fourier transforms.
//!
//! Model:   a random complex field is transformed once; at each time its modes are multiplied by exp(-4 alpha pi^2 |k|^2 t) and
//!          transformed back, and 1024 points are summed. Ranks hold layers of z while x and y are transformed, and rows of y while
//!          z is. More ranks than layers share each of them: rows while x is transformed, stretches of x afterwards. Rows of a
//!          layer, and pieces of rows, lie in the order of the ranks that get them, so that all to all takes them and leaves
//!          them as they are. The factor of a time is the product of one of each axis, made for that time: the transformed
//!          field stays.
//! Source:  RNR-94-007 §2.5, NPB 3.4.3 as npb.md 4 has it. Deviations: ranks that share a layer have eight rows and eight
//!          points along x of it at least; factors are not accumulated.
//! Units:   operations by the formula of the benchmark.
//! Checked: `official_values`, `a_wrong_coefficient_fails`, `messages_are_as_many_as_counted`,
//!          `pencils_are_as_one_rank`.

mod axes;
mod fourier;

use serde::{Deserialize, Serialize};
use sonde_message::collectives::Communicator;
use sonde_message::{Comm, Messenger, Operation, Result};

use super::random::Stream;
use super::{Check, Class, Outcome, now_ns, reference, wide};
use axes::{Across, Along, Factors, Rows};
use fourier::{LANES, Lanes, Lines, Roots};

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
    pub fn memory_bytes(&self, ranks: usize) -> u64 {
        let fields = if ranks == 1 { 2 } else { 3 };
        let axes = [self.nx, self.ny, self.nz];
        let longest = axes.into_iter().max().unwrap_or(0);
        let lines = 4 * longest * size_of::<Lanes>() + axes.iter().sum::<usize>() * 24;
        (fields * 16 * self.points() / ranks + lines + SUMMED * 8) as u64
    }

    /// Ranks along z, and of each layer.
    const fn grid(&self, ranks: usize) -> [usize; 2] {
        if ranks <= self.nz {
            [ranks, 1]
        } else {
            [self.nz, ranks / self.nz]
        }
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
        // A rank has a row of y across z at least.
        let most = if self.nz <= self.ny {
            self.nz * (self.nx.min(self.ny) / LANES)
        } else {
            self.ny
        };
        if ranks > most {
            return Err(format!(
                "ft of {} layers of {} rows of {} points runs on at most {most} ranks, not on {ranks}: {most} is near",
                self.nz, self.ny, self.nx
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
    let mut field = Field::new(world, size)?;
    let mut sums = vec![[0.0; 2]; size.iterations];
    field.start();
    field.forth(world)?;
    world.barrier()?;
    let begin = now_ns(world);
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
    let timed_ns = now_ns(world) - begin;
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
    /// Ranks along z and of each layer, and this one's place among them.
    grid: [usize; 2],
    at: [usize; 2],
    /// Where ranks share layers: those of the own layer, and those that hold the same part of each.
    groups: Option<[Comm; 2]>,
    /// The modes: z, own rows of y, own x.
    modes: Vec<f64>,
    /// What goes back: as the modes; of one rank, and of those that share layers, in the end the field.
    work: Vec<f64>,
    /// The field: ranks that get rows, own layers, rows, x; where layers are shared, ranks that get x, own rows, x. Empty on
    /// one rank.
    layers: Vec<f64>,
    roots: [Roots; 3],
    /// Factors of a time, by axis.
    factors: [Vec<f64>; 3],
    lines: [Lines; 2],
    /// The own points of a checksum, as places of their real parts.
    summed: Vec<usize>,
}

impl Field {
    fn new<M: Messenger + ?Sized>(world: &mut Communicator<'_, M>, size: &Size) -> Result<Self> {
        let (rank, ranks) = (world.rank(), world.size());
        let axes = [size.nx, size.ny, size.nz];
        let doubles = 2 * size.points() / ranks;
        let longest = axes.into_iter().max().unwrap_or(0);
        let grid = size.grid(ranks);
        let at = [rank / grid[1], rank % grid[1]];
        let groups = if grid[1] > 1 {
            let comm = world.comm();
            let mut part = |colour: usize, key: usize| {
                let part = (world.messenger()).split(comm, Some(colour as u32), key as i32)?;
                Ok(part.expect("there is a colour"))
            };
            Some([part(at[0], at[1])?, part(at[1], at[0])?])
        } else {
            None
        };
        Ok(Self {
            size: *size,
            rank,
            grid,
            at,
            groups,
            modes: vec![0.0; doubles],
            work: vec![0.0; doubles],
            layers: vec![0.0; if ranks == 1 { 0 } else { doubles }],
            roots: axes.map(Roots::new),
            factors: axes.map(|points| vec![0.0; points]),
            lines: [Lines::new(longest), Lines::new(longest)],
            summed: Vec::with_capacity(SUMMED),
        })
    }

    const fn is_alone(&self) -> bool {
        self.grid[0] * self.grid[1] == 1
    }

    /// Layers of z and rows of y of one rank.
    const fn own(&self) -> (usize, usize) {
        (self.size.nz / self.grid[0], self.size.ny / self.grid[0])
    }

    /// Points of a row, or of a piece of it, in one rank.
    const fn width(&self) -> usize {
        self.size.nx / self.grid[1]
    }

    /// The rows of layer z while y is transformed.
    const fn layer(&self, z: usize) -> Rows {
        let (layers, part) = self.own();
        let near = 2 * self.width();
        Rows {
            first: z * part * near,
            part,
            near,
            far: layers * part * near,
        }
    }

    /// The own rows of layer z while x is transformed, how many there are, and from piece to piece of a row.
    const fn whole_rows(&self, z: usize) -> (Rows, usize, usize) {
        let count = self.size.ny / self.grid[1];
        if self.grid[1] == 1 {
            return (self.layer(z), count, 0);
        }
        let near = 2 * self.width();
        let rows = Rows {
            first: 0,
            part: count,
            near,
            far: 0,
        };
        (rows, count, count * near)
    }

    /// The rows of the modes across z, of own row y.
    const fn pillar(&self, y: usize) -> Rows {
        let (near, part) = (2 * self.width(), self.size.nz);
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
        let width = self.width();
        let first = layers * self.at[0];
        let (_, count, apart) = self.whole_rows(0);
        let rows = count * self.at[1]..count * (self.at[1] + 1);
        self.summed.clear();
        for j in 1..=SUMMED {
            let (x, y, z) = (j % nx, 3 * j % ny, 5 * j % nz);
            if (first..first + layers).contains(&z) && rows.contains(&y) {
                let row = self.whole_rows(z - first).0.at(y - rows.start);
                self.summed.push(row + x / width * apart + x % width);
            }
        }
        for z in 0..layers {
            let (whole, ..) = self.whole_rows(z);
            let before = 2 * nx * (ny * (first + z) + rows.start);
            let mut stream = Stream::new(SEED).jumped(before as u64);
            let field = if self.is_alone() {
                &mut self.modes
            } else {
                &mut self.layers
            };
            for y in 0..count {
                for piece in 0..nx / width {
                    let at = whole.at(y) + piece * apart;
                    let (re, im) = field[at..at + 2 * width].split_at_mut(width);
                    for (re, im) in re.iter_mut().zip(im) {
                        *re = stream.next();
                        *im = stream.next();
                    }
                }
            }
        }
    }

    /// Transforms the field into the modes.
    fn forth<M: Messenger + ?Sized>(&mut self, world: &mut Communicator<'_, M>) -> Result<()> {
        if let Some([layer, pillar]) = self.groups {
            self.along_x(Which::Layers, 0, false);
            (world.within(layer)).alltoall(&self.layers, &mut self.work)?;
            self.across_y(Which::Work, 0, false);
            (world.within(pillar)).alltoall(&self.work, &mut self.modes)?;
        } else if self.is_alone() {
            self.transform_layers(Which::Modes, false);
        } else {
            self.transform_layers(Which::Layers, false);
            world.alltoall(&self.layers, &mut self.modes)?;
        }
        let width = self.width();
        for y in 0..self.own().1 {
            wide::run(Across {
                from: None,
                rows: self.pillar(y),
                to: &mut self.modes,
                nx: width,
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
        self.back_across_z(rate);
        if let Some([layer, pillar]) = self.groups {
            (world.within(pillar)).alltoall(&self.work, &mut self.layers)?;
            self.across_y(Which::Layers, 0, true);
            (world.within(layer)).alltoall(&self.layers, &mut self.work)?;
            self.along_x(Which::Work, 0, true);
        } else if self.is_alone() {
            self.transform_layers(Which::Work, true);
        } else {
            world.alltoall(&self.work, &mut self.layers)?;
            self.transform_layers(Which::Layers, true);
        }
        Ok(())
    }

    /// The modes times exp(`rate` |k|^2), transformed across z.
    fn back_across_z(&mut self, rate: f64) {
        for factors in &mut self.factors {
            let points = factors.len();
            for (k, factor) in factors.iter_mut().enumerate() {
                let folded = if k < points / 2 { k } else { points - k };
                *factor = (rate * (folded * folded) as f64).exp();
            }
        }
        let (rows, width) = (self.own().1, self.width());
        for y in 0..rows {
            let factors = Factors {
                rows: &self.factors[2],
                along: &self.factors[0][width * self.at[1]..][..width],
                all: self.factors[1][rows * self.at[0] + y],
            };
            wide::run(Across {
                from: Some((&self.modes, factors)),
                rows: self.pillar(y),
                to: &mut self.work,
                nx: width,
                roots: &self.roots[2],
                lines: &mut self.lines,
                back: true,
            });
        }
    }

    /// Transforms whole layers along x and y, each while it is in the cache.
    fn transform_layers(&mut self, which: Which, back: bool) {
        for z in 0..self.own().0 {
            self.across_y(which, z, back);
            self.along_x(which, z, back);
        }
    }

    fn across_y(&mut self, which: Which, z: usize, back: bool) {
        let (rows, nx) = (self.layer(z), self.width());
        wide::run(Across {
            from: None,
            rows,
            to: which.of(&mut self.modes, &mut self.work, &mut self.layers),
            nx,
            roots: &self.roots[1],
            lines: &mut self.lines,
            back,
        });
    }

    fn along_x(&mut self, which: Which, z: usize, back: bool) {
        let (rows, count, apart) = self.whole_rows(z);
        let piece = (self.width(), apart);
        wide::run(Along {
            field: which.of(&mut self.modes, &mut self.work, &mut self.layers),
            rows,
            count,
            piece,
            roots: &self.roots[0],
            lines: &mut self.lines,
            back,
        });
    }

    /// The sum of the own points of a checksum.
    fn sum(&self) -> [f64; 2] {
        let field = if self.is_alone() || self.groups.is_some() {
            &self.work
        } else {
            &self.layers
        };
        let mut sum = [0.0; 2];
        for place in &self.summed {
            sum[0] += field[*place];
            sum[1] += field[place + self.width()];
        }
        sum
    }
}

/// Which array of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Modes,
    Work,
    Layers,
}

impl Which {
    const fn of<'a>(
        self,
        modes: &'a mut Vec<f64>,
        work: &'a mut Vec<f64>,
        layers: &'a mut Vec<f64>,
    ) -> &'a mut Vec<f64> {
        match self {
            Self::Modes => modes,
            Self::Work => work,
            Self::Layers => layers,
        }
    }
}

#[cfg(test)]
mod tests {
    use sonde_message::Comm;
    use sonde_message::collectives::Choice;
    use sonde_message::counted::Counted;
    use sonde_message::native::Memory;

    use super::*;

    fn outcomes(size: Size, ranks: usize, alpha: f64) -> Vec<Outcome> {
        Memory::run(ranks, |messenger| {
            let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
            run_with(&mut world, &size, alpha).unwrap()
        })
    }

    fn checked(class: Class, ranks: usize) {
        let outcome = outcomes(Size::of(class), ranks, ALPHA).swap_remove(0);
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
        // With 64, two ranks share each layer.
        for ranks in [1, 2, 4, 64] {
            checked(Class::W, ranks);
        }
    }

    const SMALL: Size = Size {
        nx: 32,
        ny: 16,
        nz: 4,
        iterations: 2,
    };

    #[test]
    fn pencils_are_as_one_rank() {
        for (size, most) in [(SMALL, 8), (Size { ny: 64, ..SMALL }, 16)] {
            let wanted = outcomes(size, 1, 1e-4).swap_remove(0);
            assert_eq!(wanted.checks.len(), 4);
            for ranks in [4, 8, 16].into_iter().filter(|ranks| *ranks <= most) {
                let found = outcomes(size, ranks, 1e-4).swap_remove(0);
                for (found, wanted) in found.checks.iter().zip(&wanted.checks) {
                    let error = (found.found / wanted.found - 1.0).abs();
                    assert!(error < 1e-12, "{ranks} {found:?} {wanted:?}");
                }
            }
            assert!(size.admits(2 * most).is_err());
        }
    }

    /// npb.md 4: two all-to-alls for each transform, N / (P P1) to each of P1 - 1 and N / (P P2) to each of P2 - 1.
    #[test]
    fn pencils_send_as_much_as_counted() {
        let (forth, back) = Memory::run(8, |messenger| {
            let mut counted = Counted::new(messenger);
            let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
            run(&mut world, &SMALL).unwrap();
            let phases = counted.profile().phases;
            let sent = |name: &str| {
                let phase = phases.iter().find(|phase| phase.name == name).unwrap();
                (phase.sent.total.messages, phase.sent.total.bytes)
            };
            (sent("forth"), sent("back"))
        })[0];
        let bytes = 16 * 32 * 16 * 4 / 8;
        let each = (3 + 1, 3 * bytes / 4 + bytes / 2);
        assert_eq!(forth, each);
        assert_eq!(back, (2 * each.0, 2 * each.1));
    }

    #[test]
    fn a_wrong_coefficient_fails() {
        let outcome = outcomes(Size::of(Class::S), 2, ALPHA * (1.0 + 1e-6)).swap_remove(0);
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
        assert_eq!(size.admits(512), Ok(()));
        assert!(size.admits(1024).unwrap_err().contains("at most 512"));
        assert!(size.admits(3).unwrap_err().contains("2 is near"));
    }
}
