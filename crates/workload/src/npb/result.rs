//! A run as users of the benchmark know it: a block of names and values, and the results beside the official ones.
//!
//! Model:   text of what is given; nothing is measured here. Without a known value there is no verification; a run of several
//!          results of which one has no value is not successful, as in the benchmark.
//! Source:  the lines are those of NPB's result block. Deviations: the heading, since this is not NPB's program; the table.
//! Units:   seconds; millions of operations each second, as [`operation`] names them.
//! Checked: `a_block_is_as_users_know_it`, `what_has_no_value_is_not_verified`.

use std::fmt::{self, Display};

use super::{Check, Class, Kernel, Outcome};

/// What these kernels are called, wherever their results are shown.
pub const NAME: &str = "sonde kernels, NPB-verified";

/// What a kernel counts.
pub const fn operation(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::Ep => "random numbers generated",
        Kernel::Is => "keys ranked",
        _ => "floating point",
    }
}

/// A run that has ended. Its [`Display`] is the block.
#[derive(Debug, Clone)]
pub struct Block<'a> {
    /// Which kernel.
    pub kernel: Kernel,
    /// Which class; none is a size of one's own, written `U`.
    pub class: Option<Class>,
    /// The size as text: `64 x 64 x 64`, `14000`.
    pub size: &'a str,
    /// Iterations or time steps.
    pub iterations: u64,
    /// The time of the longest rank.
    pub seconds: f64,
    /// Ranks.
    pub ranks: usize,
    /// Operations of the timed part.
    pub operations: f64,
    /// The results.
    pub outcome: &'a Outcome,
}

impl Block<'_> {
    /// Millions of operations each second.
    pub fn rate(&self) -> f64 {
        self.operations / self.seconds * 1e-6
    }

    /// The verification's word.
    pub fn verification(&self) -> &'static str {
        match self.outcome.passes() {
            Some(true) => "SUCCESSFUL",
            Some(false) => "UNSUCCESSFUL",
            None => "NOT PERFORMED",
        }
    }
}

impl Display for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: &dyn Display| {
            let value = value.to_string();
            writeln!(f, " {name:<15} = {value:>28}")
        };
        let kernel = self.kernel.name().to_uppercase();
        let rate = self.rate();
        line("Benchmark", &kernel)?;
        line("Class", &self.class.map_or("U", Class::name))?;
        line("Size", &self.size)?;
        line("Iterations", &self.iterations)?;
        line("Time in seconds", &seconds(self.seconds))?;
        line("Total processes", &self.ranks)?;
        line("Mop/s total", &format!("{rate:.2}"))?;
        let each = rate / self.ranks as f64;
        line("Mop/s/process", &format!("{each:.2}"))?;
        line("Operation type", &operation(self.kernel))?;
        line("Verification", &self.verification())?;
        line("Made by", &NAME)?;
        writeln!(f)?;
        table(f, &self.outcome.checks)
    }
}

/// Six digits at least, however short a run is.
fn seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{seconds:.6}")
    } else {
        format!("{seconds:.3}")
    }
}

fn table(f: &mut fmt::Formatter<'_>, checks: &[Check]) -> fmt::Result {
    let names = checks.iter().map(|check| check.name.chars().count());
    let width = names.max().unwrap_or(0).max("result".len());
    writeln!(
        f,
        " {:<width$}  {:>22}  {:>22}  {:>9}",
        "result", "found", "official", "error"
    )?;
    for check in checks {
        let wanted = check.wanted.map_or_else(|| "not known".into(), number);
        let error = check
            .error()
            .map_or_else(String::new, |error| format!("{error:.1e}"));
        let word = match check.passes() {
            Some(true) => "passes",
            Some(false) => "FAILS",
            None => "",
        };
        let row = format!(
            " {:<width$}  {:>22}  {wanted:>22}  {error:>9}  {word}",
            check.name,
            number(check.found)
        );
        writeln!(f, "{}", row.trim_end())?;
    }
    Ok(())
}

/// A whole number as such, else fourteen digits behind the point.
fn number(value: f64) -> String {
    const EXACT: f64 = (1_u64 << 53) as f64;
    if value.abs() < EXACT && value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.14e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, found: f64, wanted: Option<f64>, tolerance: f64) -> Check {
        Check {
            name: name.into(),
            found,
            wanted,
            tolerance,
        }
    }

    fn block(outcome: &Outcome) -> Block<'_> {
        Block {
            kernel: Kernel::Ep,
            class: Some(Class::S),
            size: "16777216 pairs",
            iterations: 1,
            seconds: 0.125,
            ranks: 4,
            operations: 33_554_432.0,
            outcome,
        }
    }

    #[test]
    fn a_block_is_as_users_know_it() {
        let checks = vec![
            check("sum of |X|", 10_512_994.25, Some(10_512_993.953_1), 1e-8),
            check("accepted pairs", 13_176_389.0, Some(13_176_389.0), 0.0),
        ];
        let outcome = Outcome {
            timed_ns: 125_000_000,
            checks,
        };
        let wanted = [
            " Benchmark       =                           EP",
            " Class           =                            S",
            " Size            =               16777216 pairs",
            " Iterations      =                            1",
            " Time in seconds =                     0.125000",
            " Total processes =                            4",
            " Mop/s total     =                       268.44",
            " Mop/s/process   =                        67.11",
            " Operation type  =     random numbers generated",
            " Verification    =                 UNSUCCESSFUL",
            " Made by         =  sonde kernels, NPB-verified",
            "",
            " result                           found                official      error",
            " sum of |X|          1.05129942500000e7      1.05129939531000e7     2.8e-8  FAILS",
            " accepted pairs                13176389                13176389      0.0e0  passes",
        ];
        let text = block(&outcome).to_string();
        assert_eq!(text.lines().collect::<Vec<_>>(), wanted, "\n{text}");
    }

    #[test]
    fn what_has_no_value_is_not_verified() {
        let outcome = Outcome {
            timed_ns: 1,
            checks: vec![check("zeta", 8.5, None, 1e-10)],
        };
        let own = Block {
            class: None,
            kernel: Kernel::Cg,
            ..block(&outcome)
        };
        let text = own.to_string();
        assert!(text.contains("=                            U\n"), "{text}");
        assert!(text.contains("=                NOT PERFORMED\n"), "{text}");
        assert!(text.contains("not known\n"), "{text}");
        assert!(text.contains("=               floating point\n"), "{text}");
    }
}
