//! Where the flows of one host wait for each other between two steps of an exchange.
//!
//! Model:   a step begins when all have arrived. A flow that fails leaves for good, and the others go on without it; after
//!          the deadline nobody waits any more.
//! Checked: `all_begin_together`, `who_leaves_is_not_waited_for`, `nobody_waits_beyond_the_deadline`.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sonde_sys::clock::monotonic_ns;

#[derive(Debug)]
struct State {
    parties: usize,
    waiting: usize,
    step: u64,
    begin_ns: u64,
}

/// The gate of one host's flows.
#[derive(Debug)]
pub(super) struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

impl Gate {
    pub(super) fn new(parties: usize) -> Self {
        Self {
            state: Mutex::new(State {
                parties,
                waiting: 0,
                step: 0,
                begin_ns: 0,
            }),
            opened: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, state: &mut State) {
        if state.waiting > 0 && state.waiting >= state.parties {
            state.waiting = 0;
            state.step += 1;
            state.begin_ns = monotonic_ns();
            self.opened.notify_all();
        }
    }

    /// Waits for all; when the step began, or `None` after the deadline.
    pub(super) fn arrive(&self, deadline_ns: u64) -> Option<u64> {
        let mut state = self.lock();
        let step = state.step;
        state.waiting += 1;
        self.open(&mut state);
        while state.step == step {
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                return None;
            }
            let waited = self
                .opened
                .wait_timeout(state, Duration::from_nanos(left_ns));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(state.begin_ns)
    }

    /// So many will not arrive any more.
    pub(super) fn leave(&self, parties: usize) {
        let mut state = self.lock();
        state.parties = state.parties.saturating_sub(parties);
        self.open(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn soon() -> u64 {
        monotonic_ns() + 20_000_000_000
    }

    #[test]
    fn all_begin_together() {
        let (gate, arrived) = (Gate::new(3), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for step in 1..=50 {
                        arrived.fetch_add(1, Ordering::SeqCst);
                        assert!(gate.arrive(soon()).is_some());
                        assert!(arrived.load(Ordering::SeqCst) >= 3 * step);
                    }
                });
            }
        });
    }

    #[test]
    fn who_leaves_is_not_waited_for() {
        let gate = Gate::new(3);
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| gate.arrive(soon())))
                .collect();
            gate.leave(1);
            for one in waiting {
                assert!(one.join().unwrap().is_some());
            }
        });
    }

    #[test]
    fn nobody_waits_beyond_the_deadline() {
        let gate = Gate::new(2);
        assert_eq!(gate.arrive(monotonic_ns() + 1_000_000), None);
    }
}
