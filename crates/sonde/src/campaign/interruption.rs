//! Signals that end a program: the first is noted and the campaign ends in order, the second ends it at once.
//!
//! Checked: `an_interrupted_run_is_printed_and_resumed`, in `tests/lab_assess.rs`.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Turns true with the first signal that ends a program; the second one ends it at once, and with it its labs and agents.
/// Of several campaigns of one command all hear of it, also of one that came between two of them.
pub fn interruption() -> Result<Arc<AtomicBool>, Failure> {
    static WATCHED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = WATCHED.get() {
        return Ok(Arc::clone(flag));
    }
    let flag = Arc::clone(WATCHED.get_or_init(Arc::default));
    let cannot = |e: std::io::Error| Failure::cannot(format!("cannot watch for interrupts: {e}"));
    let first = SIGNAL.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the second signal finds the flag set by the first.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))
            .map_err(cannot)?;
        signal_hook::flag::register_usize(
            signal,
            Arc::clone(first),
            signal.unsigned_abs() as usize,
        )
        .map_err(cannot)?;
        signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(cannot)?;
    }
    Ok(flag)
}

/// The number of the signal that came, 0 before one did.
static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// The signal by which this command was interrupted, if it was.
pub fn interrupted() -> Option<i32> {
    let signal = SIGNAL.get()?.load(Ordering::Relaxed);
    i32::try_from(signal).ok().filter(|signal| *signal > 0)
}
