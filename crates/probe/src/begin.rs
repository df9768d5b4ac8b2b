//! The agreed begin of what is measured at once: everybody makes ready first, and waits for it.
//!
//! Model:   a begin is a time of the measuring host's clock. Who is ready before it sleeps until then; who is not has begun too late,
//!          and what it would measure is of another span than the others': an error, upon which the orchestrator asks for all of it
//!          again with more time to make ready.
//! Units:   nanoseconds of CLOCK_MONOTONIC.
//! Checked: `who_is_late_is_refused`; `tests/lab_contend.rs` of the command.

use sonde_sys::clock::{monotonic_ns, sleep_until_ns};

use crate::{Error, Result};

/// How late one may begin: within a window of 3 s less than a hundredth.
pub const LATE_NS_MAX: u64 = 20_000_000;
/// What stands in the message of who begins later than that.
pub const LATE: &str = "after the agreed begin";

/// Waits for the agreed begin, where there is one, or for the time by which it is to be preceded.
///
/// # Errors
/// It is over.
pub fn await_begin(begin_ns: Option<u64>, before_ns: u64) -> Result<()> {
    let Some(begin_ns) = begin_ns else {
        return Ok(());
    };
    let due_ns = begin_ns.saturating_sub(before_ns);
    let late_ns = monotonic_ns().saturating_sub(due_ns);
    if late_ns > LATE_NS_MAX {
        return Err(Error::Late { late_ns });
    }
    sleep_until_ns(due_ns);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_late_is_refused() {
        await_begin(None, 0).unwrap();
        let now_ns = monotonic_ns();
        await_begin(Some(now_ns + 30_000_000), 10_000_000).unwrap();
        assert!(monotonic_ns() >= now_ns + 20_000_000);
        let error = await_begin(Some(now_ns - LATE_NS_MAX), 0).unwrap_err();
        assert!(error.to_string().contains(LATE), "{error}");
        // Ready before the agreed time, and too late for what is to precede it.
        let soon_ns = monotonic_ns() + 50_000_000;
        assert!(await_begin(Some(soon_ns), 200_000_000).is_err());
    }
}
