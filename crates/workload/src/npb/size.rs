//! Sizes in words: a class, that of the UPC study, or parameters of one's own.
//!
//! Model:   `S`; `upc`; `points=64:cycles=4`, where what is not said is class S's. A class is found again by its parameters.
//!          Class D is known by its parameters alone and refused, since nothing of it has been run.
//! Source:  the sizes of the UPC study (NPB 1 era, PVM): what has none of its own there is class S.
//! Checked: `sizes_are_read`, `what_is_no_size_is_refused`, `every_size_is_admitted_or_refused`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::str::FromStr;

use super::mg::Smoother;
use super::{Class, Kernel, Problem, Unnamed, cg, ep, is, mg};

/// A text that is not a size of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsized {
    /// There is no such kernel.
    #[error(transparent)]
    Kernel(#[from] Unnamed),
    /// Class D.
    #[error(
        "class D is known here by its parameters alone and has not been run; take S, W, A, B or C"
    )]
    OnlyKnown,
    /// It names neither a class nor parameters.
    #[error("{kernel} has no size `{text}`: write S, W, A, B or C, upc, or parameters as {wanted}")]
    Text {
        /// Of which kernel.
        kernel: Kernel,
        /// What was written.
        text: String,
        /// All parameters, with class S's values.
        wanted: String,
    },
    /// A parameter has a value that it cannot have.
    #[error("{kernel} takes no {name}={value}: write {wanted}")]
    Value {
        /// Of which kernel.
        kernel: Kernel,
        /// The parameter.
        name: String,
        /// What was written.
        value: String,
        /// What can be.
        wanted: String,
    },
}

/// The most points along an edge, steps, and entries of a vector.
const POINTS_MAX: usize = 1 << 13;
const STEPS_MAX: usize = 1_000_000;
const ENTRIES_MAX: usize = 256;
const LOG2_MAX: u32 = 60;

impl Problem {
    /// The one with this kernel and size, in words.
    ///
    /// # Errors
    /// There is none; what could be written.
    pub fn named(kernel: &str, size: &str) -> Result<Self, Unsized> {
        let kernel: Kernel = kernel.parse()?;
        match size.parse() {
            Ok(Class::D) => return Err(Unsized::OnlyKnown),
            Ok(class) => return Ok(Self::sized(kernel, class)),
            Err(_) if size == "upc" => return Ok(Self::upc(kernel)),
            Err(_) => {}
        }
        let mut problem = Self::sized(kernel, Class::S);
        for part in size.split(':') {
            let Some((name, value)) = part.split_once('=') else {
                return Err(problem.unknown(part));
            };
            problem.set(name, value)?;
        }
        Ok(problem)
    }

    #[allow(clippy::expect_used)] // Both are of tables within the program; `sizes_are_read` goes through all of them.
    fn sized(kernel: Kernel, class: Class) -> Self {
        Self::of(kernel, class).expect("all eight are there")
    }

    /// That of the UPC study.
    fn upc(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Ep => Self::Ep(ep::Size::UPC),
            Kernel::Cg => Self::Cg(cg::Size::UPC),
            Kernel::Is => Self::Is(is::Size::UPC),
            Kernel::Mg => Self::Mg(mg::Size::UPC),
            _ => Self::sized(kernel, Class::S),
        }
    }

    /// The class that it is of; `None` of a size of one's own.
    pub fn class(&self) -> Option<Class> {
        let all = Class::ALL.into_iter();
        let mut same = all.filter(|class| Self::of(self.kernel(), *class) == Some(*self));
        same.next()
    }

    /// How large it is, as results say it.
    pub fn extent(&self) -> String {
        let cube = |points: usize| format!("{points} x {points} x {points}");
        let power = |log2: u32| 2_u64.saturating_pow(log2).to_string();
        match self {
            Self::Ep(size) => power(size.pairs_log2),
            Self::Cg(size) => size.n.to_string(),
            Self::Is(size) => power(size.keys_log2),
            Self::Mg(size) => cube(size.points),
            Self::Ft(size) => format!("{} x {} x {}", size.nx, size.ny, size.nz),
            Self::Lu(size) => cube(size.points),
            Self::Sp(size) => cube(size.n),
            Self::Bt(size) => cube(size.n),
        }
    }

    /// Iterations, steps or cycles of the timed part.
    pub fn iterations(&self) -> u64 {
        let iterations = match self {
            Self::Ep(_) => 1,
            Self::Cg(size) => size.steps,
            Self::Is(_) => is::ITERATIONS,
            Self::Mg(size) => size.cycles,
            Self::Ft(size) => size.iterations,
            Self::Lu(size) => size.steps,
            Self::Sp(size) => size.steps,
            Self::Bt(size) => size.steps,
        };
        iterations as u64
    }

    /// Its parameters by name, as they are written.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let text = |value: &dyn ToString| value.to_string();
        match self {
            Self::Ep(size) => vec![("pairs_log2", text(&size.pairs_log2))],
            Self::Cg(size) => vec![
                ("rows", text(&size.n)),
                ("nonzer", text(&size.nonzer)),
                ("steps", text(&size.steps)),
                ("shift", text(&size.shift)),
            ],
            Self::Is(size) => vec![
                ("keys_log2", text(&size.keys_log2)),
                ("range_log2", text(&size.range_log2)),
                ("buckets_log2", text(&size.buckets_log2)),
            ],
            Self::Mg(size) => vec![
                ("points", text(&size.points)),
                ("cycles", text(&size.cycles)),
                ("smoother", letter(size.smoother).into()),
            ],
            Self::Ft(size) => vec![
                ("nx", text(&size.nx)),
                ("ny", text(&size.ny)),
                ("nz", text(&size.nz)),
                ("iterations", text(&size.iterations)),
            ],
            Self::Lu(size) => flow(size.points, size.steps, size.dt),
            Self::Sp(size) => flow(size.n, size.steps, size.dt),
            Self::Bt(size) => flow(size.n, size.steps, size.dt),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Unsized> {
        let of = Parameter {
            kernel: self.kernel(),
            name,
            value,
        };
        match (&mut *self, name) {
            (Self::Ep(size), "pairs_log2") => size.pairs_log2 = of.whole(LOG2_MAX)?,
            (Self::Cg(size), "rows") => size.n = of.whole(1 << 31)?,
            (Self::Cg(size), "nonzer") => size.nonzer = of.whole(ENTRIES_MAX)?,
            (Self::Cg(size), "steps") => size.steps = of.whole(STEPS_MAX)?,
            (Self::Cg(size), "shift") => size.shift = of.positive()?,
            (Self::Is(size), "keys_log2") => size.keys_log2 = of.whole(LOG2_MAX)?,
            (Self::Is(size), "range_log2") => size.range_log2 = of.whole(LOG2_MAX)?,
            (Self::Is(size), "buckets_log2") => size.buckets_log2 = of.whole(LOG2_MAX)?,
            (Self::Mg(size), "points") => size.points = of.whole(POINTS_MAX)?,
            (Self::Mg(size), "cycles") => size.cycles = of.whole(STEPS_MAX)?,
            (Self::Mg(size), "smoother") => size.smoother = of.smoother()?,
            (Self::Ft(size), "nx") => size.nx = of.whole(POINTS_MAX)?,
            (Self::Ft(size), "ny") => size.ny = of.whole(POINTS_MAX)?,
            (Self::Ft(size), "nz") => size.nz = of.whole(POINTS_MAX)?,
            (Self::Ft(size), "iterations") => size.iterations = of.whole(STEPS_MAX)?,
            (Self::Lu(size), "points") => size.points = of.whole(POINTS_MAX)?,
            (Self::Lu(size), "steps") => size.steps = of.whole(STEPS_MAX)?,
            (Self::Lu(size), "dt") => size.dt = of.positive()?,
            (Self::Sp(size), "points") => size.n = of.whole(POINTS_MAX)?,
            (Self::Sp(size), "steps") => size.steps = of.whole(STEPS_MAX)?,
            (Self::Sp(size), "dt") => size.dt = of.positive()?,
            (Self::Bt(size), "points") => size.n = of.whole(POINTS_MAX)?,
            (Self::Bt(size), "steps") => size.steps = of.whole(STEPS_MAX)?,
            (Self::Bt(size), "dt") => size.dt = of.positive()?,
            _ => return Err(self.unknown(&format!("{name}={value}"))),
        }
        Ok(())
    }

    fn unknown(&self, text: &str) -> Unsized {
        let all = Self::sized(self.kernel(), Class::S).parameters();
        let all: Vec<String> = all
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Unsized::Text {
            kernel: self.kernel(),
            text: text.into(),
            wanted: all.join(":"),
        }
    }
}

fn flow(points: usize, steps: usize, dt: f64) -> Vec<(&'static str, String)> {
    vec![
        ("points", points.to_string()),
        ("steps", steps.to_string()),
        ("dt", dt.to_string()),
    ]
}

const fn letter(smoother: Smoother) -> &'static str {
    match smoother {
        Smoother::A => "a",
        Smoother::B => "b",
    }
}

/// A parameter as it was written.
struct Parameter<'a> {
    kernel: Kernel,
    name: &'a str,
    value: &'a str,
}

impl Parameter<'_> {
    fn refused(&self, wanted: impl Into<String>) -> Unsized {
        Unsized::Value {
            kernel: self.kernel,
            name: self.name.into(),
            value: self.value.into(),
            wanted: wanted.into(),
        }
    }

    /// 1 to `most`.
    fn whole<T: FromStr + PartialOrd + From<u8> + std::fmt::Display>(
        &self,
        most: T,
    ) -> Result<T, Unsized> {
        let number = self.value.parse().ok();
        number
            .filter(|number| (T::from(1)..=most).contains(number))
            .ok_or_else(|| {
                self.refused("a whole number within the range of this kernel, 1 at least")
            })
    }

    fn positive(&self) -> Result<f64, Unsized> {
        let number = self.value.parse().ok();
        number
            .filter(|number: &f64| number.is_finite() && *number > 0.0)
            .ok_or_else(|| self.refused("a number above 0, as 0.5"))
    }

    fn smoother(&self) -> Result<Smoother, Unsized> {
        match self.value {
            "a" => Ok(Smoother::A),
            "b" => Ok(Smoother::B),
            _ => Err(self.refused("a (of the classes up to A) or b")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is written, ranks and memory have an answer.
    #[test]
    fn every_size_is_admitted_or_refused() {
        let least = [1_u64, 2, 3, 4, 5, 6, 9, 11, 16, 17, 29, 30, 31, 39, 40, 41];
        let most = [44, 45, 59, 60, 162, 255, 256, 8_191, 8_192, 1 << 31];
        let mut admitted = 0;
        for kernel in Kernel::ALL {
            for (name, _) in Problem::sized(kernel, Class::S).parameters() {
                for value in least.iter().chain(&most) {
                    let text = format!("{name}={value}");
                    let Ok(problem) = Problem::named(kernel.name(), &text) else {
                        continue;
                    };
                    assert!(problem.operations().is_finite() && !problem.extent().is_empty());
                    for ranks in [0, 1, 2, 3, 4, 6, 9, 16, 64, 1_023, 1_024] {
                        match problem.admits(ranks) {
                            Ok(()) => {
                                admitted += 1;
                                let bytes = problem.memory_bytes(ranks);
                                let whole = problem.memory_bytes(1).max(1 << 20);
                                assert!(bytes <= 8 * whole, "{kernel} {text} on {ranks}: {bytes}");
                            }
                            Err(why) => assert!(!why.is_empty(), "{kernel} {text} on {ranks}"),
                        }
                    }
                }
            }
        }
        assert!(admitted > 1_000, "{admitted}");
    }

    #[test]
    fn sizes_are_read() {
        for kernel in Kernel::ALL {
            for class in Class::ALL.into_iter().filter(|class| *class != Class::D) {
                let problem = Problem::named(kernel.name(), class.name()).unwrap();
                assert_eq!(problem.kernel(), kernel);
                let found = problem.class().unwrap();
                assert_eq!(Problem::of(kernel, found), Some(problem));
                let words = problem.parameters();
                let words: Vec<String> = words
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                let again = Problem::named(kernel.name(), &words.join(":"));
                assert_eq!(again, Ok(problem));
                assert!(problem.iterations() > 0 && !problem.extent().is_empty());
            }
            assert!(Problem::named(kernel.name(), "upc").is_ok());
        }
        let own = Problem::named("mg", "points=64:cycles=4").unwrap();
        assert_eq!(
            (own, own.class()),
            (Problem::named("mg", "upc").unwrap(), None)
        );
        assert_eq!(own.extent(), "64 x 64 x 64");
        let lu = Problem::named("lu", "upc").unwrap();
        assert_eq!(lu.class(), Some(Class::S));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for (kernel, size, said) in [
            ("cg", "D", "parameters alone"),
            ("cg", "E", "no size `E`"),
            ("cg", "points=64", "rows=1400:nonzer=7"),
            ("mg", "points=0", "no points=0"),
            ("mg", "points=many", "whole number"),
            ("mg", "points=100000", "within the range"),
            ("mg", "smoother=c", "or b"),
            ("lu", "dt=-1", "above 0"),
            ("lu", "dt=NaN", "above 0"),
            ("dg", "S", "ep, cg"),
            ("ep", "", "no size ``"),
        ] {
            let error = Problem::named(kernel, size).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
