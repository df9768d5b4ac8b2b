//! Before a measurement on this machine: how busy it is, told in a line and kept with the run, and waiting until it is quiet.
//!
//! Model:   the machine is looked at for 0.3 s before a lab or an agent is started. A look of a run of the same store and machine
//!          less than a minute ago serves again. Whoever waits looks every two seconds, and measures in the end whatever it is.
//!          Real hosts are not looked at: this machine only steers them.
//! Units:   times with a suffix.
//! Checked: `tests/lab_preflight.rs`.

use crate::campaign::unix_ns;
use crate::doctor::noise;
use crate::failure::Failure;
use clap::Args;
use sonde_measure::Noise;
use sonde_record::Store;
use sonde_sys::{host, tell};
use sonde_units::Span;
use std::time::{Duration, Instant};

/// A look serves for so long.
const SERVES_NS: u64 = 60_000_000_000;
/// Between two looks of one who waits.
const BETWEEN: Duration = Duration::from_secs(2);
/// Set to anything, nobody looks: for tests and nightly runs, which know their machine.
const SILENCED: &str = "SONDE_NO_PREFLIGHT";

/// What is done before a measurement on this machine.
#[derive(Debug, Clone, Default, Args)]
pub struct Preflight {
    /// Do not look for 0.3 s at how busy this machine is, before measuring on it; nor does the variable SONDE_NO_PREFLIGHT.
    #[arg(long, conflicts_with = "until_quiet")]
    pub no_preflight: bool,
    /// Begin as soon as this machine is quiet (at most 1 % of its CPU time stolen, at most 10 % used by other programs, no CPU away for
    /// more than 5 ms), or after TIME in any case; without a value after 10 minutes.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m", value_parser = Span::of_option)]
    pub until_quiet: Option<Span>,
}

impl Preflight {
    /// Nothing is done.
    pub const SKIPPED: Self = Self {
        no_preflight: true,
        until_quiet: None,
    };

    /// Looks, tells what disturbs, and waits where that was asked for. `None` where nobody looks or nothing could be seen.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn look(&self, store: &Store) -> Result<Option<Noise>, Failure> {
        let is_silenced = std::env::var_os(SILENCED).is_some_and(|set| !set.is_empty());
        let seen = match self.until_quiet {
            None if self.no_preflight || is_silenced => return Ok(None),
            None => {
                let since_ns = unix_ns().saturating_sub(SERVES_NS);
                let before = store
                    .noise_since(&host::names().0, since_ns)
                    .map_err(Failure::cannot)?;
                before.map_or_else(look, Some)
            }
            Some(most) => until_quiet(Duration::from_nanos(most.as_nanos())),
        };
        if let Some(told) = seen.as_ref().and_then(Noise::told) {
            tell!(
                "sonde: this machine is busy: {told}: latencies will be uncertain; `--until-quiet` waits until it is not"
            );
        }
        Ok(seen)
    }
}

/// Looks once; what cannot be seen is told.
fn look() -> Option<Noise> {
    match noise::look() {
        Ok(seen) => Some(noise::record(&seen)),
        Err(why) => {
            tell!("sonde: how busy this machine is could not be seen: {why}");
            None
        }
    }
}

/// Looks until the machine is quiet, for `most` at most; the last look.
fn until_quiet(most: Duration) -> Option<Noise> {
    let begin = Instant::now();
    let mut is_told = false;
    loop {
        let seen = look()?;
        let left = most.saturating_sub(begin.elapsed());
        let Some(told) = seen.told().filter(|_| !left.is_zero()) else {
            return Some(seen);
        };
        if !std::mem::replace(&mut is_told, true) {
            tell!(
                "sonde: waiting until this machine is quiet, at most {} s: {told}",
                left.as_secs()
            );
        }
        std::thread::sleep(BETWEEN.min(left));
    }
}
