//! The eight kernels of the NAS parallel benchmarks, from their mathematics, over any messenger.
//!
//! Model:   every rank calls [`Problem::run`]. One untimed pass where the benchmark has one, a barrier, the timed part, then the
//!          results against the official values. The time of a run is the longest of its ranks' (FT: rank 0's).
//! Source:  Bailey et al., RNR-94-007; NPB 3.4.3 for what is timed, checked and counted as an operation. Deviations: at each kernel.
//! Units:   nanoseconds of CLOCK_MONOTONIC; operations as the benchmark counts them (nominal ones).
//! Checked: each kernel's tests: the official values of its classes among ranks of one process.

pub mod bt;
mod cfd;
pub mod cg;
pub mod ep;
mod flow;
pub mod ft;
pub mod is;
pub mod launch;
pub mod lu;
pub mod mg;
mod multipartition;
mod random;
mod reference;
pub mod result;
mod size;
pub mod sp;
mod sweeps;
mod wide;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sonde_message::Messenger;
use sonde_message::collectives::Communicator;
use sonde_sys::clock::monotonic_ns;

pub use size::Unsized;

/// One of the eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// Pairs of Gaussian numbers: hardly a message.
    Ep,
    /// Conjugate gradients: exchanges of medium length with few partners.
    Cg,
    /// Multigrid: near neighbours, all lengths.
    Mg,
    /// Three-dimensional Fourier transform: all to all, long.
    Ft,
    /// Integer sort: all to all.
    Is,
    /// Successive over-relaxation in a pipeline: many short messages.
    Lu,
    /// Scalar pentadiagonal systems: multi-partition sweeps.
    Sp,
    /// Block-tridiagonal systems: multi-partition sweeps.
    Bt,
}

impl Kernel {
    /// All, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Ep,
        Self::Cg,
        Self::Mg,
        Self::Ft,
        Self::Is,
        Self::Lu,
        Self::Sp,
        Self::Bt,
    ];

    /// As it is written: `ep`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ep => "ep",
            Self::Cg => "cg",
            Self::Mg => "mg",
            Self::Ft => "ft",
            Self::Is => "is",
            Self::Lu => "lu",
            Self::Sp => "sp",
            Self::Bt => "bt",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How large, as the benchmark defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Sample: for tests.
    S,
    /// Workstation of the nineties.
    W,
    /// The first of the standard ones.
    A,
    /// About four times A.
    B,
    /// About four times B.
    C,
    /// About sixteen times C.
    D,
}

impl Class {
    /// All, the smallest first.
    pub const ALL: [Self; 6] = [Self::S, Self::W, Self::A, Self::B, Self::C, Self::D];

    /// As it is written: `S`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::W => "W",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no kernel or class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} `{text}`: write {wanted}")]
pub struct Unnamed {
    what: &'static str,
    text: String,
    wanted: String,
}

impl FromStr for Kernel {
    type Err = Unnamed;

    fn from_str(text: &str) -> Result<Self, Unnamed> {
        let found = Self::ALL.into_iter().find(|kernel| kernel.name() == text);
        found.ok_or_else(|| Unnamed {
            what: "kernel",
            text: text.into(),
            wanted: Self::ALL.map(Self::name).join(", "),
        })
    }
}

impl FromStr for Class {
    type Err = Unnamed;

    fn from_str(text: &str) -> Result<Self, Unnamed> {
        let found = Self::ALL.into_iter().find(|class| class.name() == text);
        found.ok_or_else(|| Unnamed {
            what: "class",
            text: text.into(),
            wanted: Self::ALL.map(Self::name).join(", "),
        })
    }
}

macro_rules! problems {
    ($($kernel:ident: $module:ident,)*) => {
        /// A kernel and how large it is.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Problem {
            $(
                #[doc = concat!("The kernel `", stringify!($module), "`.")]
                $kernel($module::Size),
            )*
        }

        impl Problem {
            /// A class of a kernel; none where the kernel is not there.
            pub fn of(kernel: Kernel, class: Class) -> Option<Self> {
                match kernel {
                    $(Kernel::$kernel => Some(Self::$kernel($module::Size::of(class))),)*
                    #[allow(unreachable_patterns, reason = "once all eight are joined")]
                    _ => None,
                }
            }

            /// Which kernel.
            pub const fn kernel(&self) -> Kernel {
                match self {
                    $(Self::$kernel(_) => Kernel::$kernel,)*
                }
            }

            /// Operations of the timed part as the benchmark counts them.
            pub fn operations(&self) -> f64 {
                match self {
                    $(Self::$kernel(size) => size.operations(),)*
                }
            }

            /// What each of so many ranks keeps in arrays.
            pub fn memory_bytes(&self, ranks: usize) -> u64 {
                match self {
                    $(Self::$kernel(size) => size.memory_bytes(ranks),)*
                }
            }

            /// Whether so many ranks can run it.
            ///
            /// # Errors
            /// Why not, and the nearest count that can.
            pub fn admits(&self, ranks: usize) -> Result<(), String> {
                match self {
                    $(Self::$kernel(size) => size.admits(ranks),)*
                }
            }

            /// Runs it; all ranks call it.
            ///
            /// # Errors
            /// Those of the messenger.
            pub fn run<M: Messenger + ?Sized>(
                &self,
                world: &mut Communicator<'_, M>,
            ) -> sonde_message::Result<Outcome> {
                match self {
                    $(Self::$kernel(size) => $module::run(world, size),)*
                }
            }
        }
    };
}

problems! {
    Ep: ep,
    Cg: cg,
    Is: is,
    Mg: mg,
    Ft: ft,
    Lu: lu,
    Sp: sp,
    Bt: bt,
}

/// The clock of what is timed. On a host of another age what was computed until now has taken its time before it is read.
fn now_ns<M: Messenger + ?Sized>(world: &mut Communicator<'_, M>) -> u64 {
    world.messenger().due();
    monotonic_ns()
}

/// One result against its official value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What it is: `zeta`, `residual 3`.
    pub name: String,
    /// What came out.
    pub found: f64,
    /// What should; null where no value is known of this size.
    pub wanted: Option<f64>,
    /// The greatest relative error that passes; 0 for exact.
    pub tolerance: f64,
}

impl Check {
    /// The relative error; null without a value to hold it against.
    pub fn error(&self) -> Option<f64> {
        self.wanted.map(|wanted| {
            let difference = (self.found - wanted).abs();
            if difference == 0.0 {
                0.0
            } else {
                difference / wanted.abs()
            }
        })
    }

    /// Whether it passes; null without a value to hold it against. What is not a number fails.
    pub fn passes(&self) -> Option<bool> {
        self.error().map(|error| error <= self.tolerance)
    }
}

/// What one rank has of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The timed part on this rank.
    pub timed_ns: u64,
    /// The results; on rank 0 all, on others what they have of them.
    pub checks: Vec<Check>,
}

impl Outcome {
    /// Whether all results pass, none being without a value. Null where no value is known of any.
    pub fn passes(&self) -> Option<bool> {
        let known: Vec<bool> = self.checks.iter().filter_map(Check::passes).collect();
        (!known.is_empty()).then(|| known.len() == self.checks.len() && known.iter().all(|ok| *ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for kernel in Kernel::ALL {
            assert_eq!(kernel.name().parse(), Ok(kernel));
        }
        for class in Class::ALL {
            assert_eq!(class.name().parse(), Ok(class));
        }
        let error = "dg".parse::<Kernel>().unwrap_err().to_string();
        assert!(error.contains("ep, cg"), "{error}");
    }

    #[test]
    fn class_c_fits_into_8_gib() {
        for kernel in Kernel::ALL.into_iter().filter(|of| *of != Kernel::Ft) {
            let problem = Problem::of(kernel, Class::C).unwrap();
            for ranks in [1, 4, 16] {
                let all = problem.memory_bytes(ranks) * ranks as u64;
                assert!(all <= 8 << 30, "{kernel} on {ranks}: {all} B");
            }
        }
    }

    #[test]
    fn what_is_no_number_fails() {
        let check = |found, wanted| Check {
            name: "x".into(),
            found,
            wanted,
            tolerance: 1e-8,
        };
        assert_eq!(check(f64::NAN, Some(1.0)).passes(), Some(false));
        assert_eq!(check(1.0 + 1e-9, Some(1.0)).passes(), Some(true));
        assert_eq!(check(1.0 + 1e-7, Some(1.0)).passes(), Some(false));
        assert_eq!(check(0.0, Some(0.0)).passes(), Some(true));
        assert_eq!(check(1.0, None).passes(), None);
    }
}
