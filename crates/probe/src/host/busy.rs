//! Programs that compute on a host meanwhile, as on a machine that is full of batch jobs.
//!
//! Model:   so many threads of the agent, each in a loop that never waits. They end when they are put back, and with the agent however
//!          it ends, so that the journal has nothing of them. For the kernel's scheduler a thread counts as a process does.
//! Checked: `loops_compute_until_they_are_put_back`; `busy_loops_end_with_their_agents` of the command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use sonde_sys::thread;

use super::{Change, wrong};
use crate::Result;

/// The name of the knob and of the setting.
pub(super) const BUSY: &str = "busy";
/// The most loops of a host.
const LOOPS_MAX: u32 = 1_024;
/// Between two looks at whether a loop is to end: far below a time slice.
const TURNS: u32 = 10_000;

/// How many loops a text asks for.
pub(super) fn count(text: &str) -> std::result::Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count <= LOOPS_MAX);
    count.ok_or_else(|| format!("write 0 to {LOOPS_MAX} programs"))
}

/// Loops that compute until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Loops {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Loops {
    /// Starts so many more; those that were started end with this where one cannot be.
    pub(super) fn add(&mut self, count: u32) -> Result<()> {
        for _ in 0..count {
            let is_over = Arc::clone(&self.is_over);
            let work = move || {
                while !is_over.load(Ordering::Relaxed) {
                    for turn in 0..TURNS {
                        std::hint::black_box(turn);
                    }
                }
            };
            self.threads
                .push(thread::start("a program that computes", work)?);
        }
        Ok(())
    }

    /// Whether nothing computes.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A loop does not panic.
            let _ = thread.join();
        }
    }
}

/// What a setting of this value changes; with `loops` it is done, without them it is only said.
pub(super) fn change(value: &str, loops: Option<&mut Loops>) -> Result<Change> {
    let count = count(value).map_err(|why| wrong(BUSY, value, &why))?;
    let mut after = "0";
    if let Some(loops) = loops {
        loops.add(count)?;
        after = value;
    }
    Ok(Change {
        name: BUSY.into(),
        before: "0".into(),
        asked: value.into(),
        after: after.into(),
        line: format!("for n in $(seq {count}); do (while :; do :; done) & done"),
        undo: "kill $(jobs -p)".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_sys::cpu::process_cpu_ns;
    use std::time::{Duration, Instant};

    /// What all threads of this process have computed.
    fn computed() -> Duration {
        Duration::from_nanos(process_cpu_ns(std::process::id()).unwrap())
    }

    #[test]
    fn loops_compute_until_they_are_put_back() {
        let mut loops = Loops::default();
        let before = computed();
        let said = change("2", Some(&mut loops)).unwrap();
        assert_eq!((&*said.after, loops.threads.len()), ("2", 2));
        let until = Instant::now() + Duration::from_secs(30);
        // However little of the machine they get, they go on computing.
        while computed() - before < Duration::from_millis(100) {
            assert!(Instant::now() < until, "nothing computes");
            std::thread::sleep(Duration::from_millis(5));
        }
        let is_over = Arc::downgrade(&loops.is_over);
        drop(loops);
        assert!(is_over.upgrade().is_none(), "a loop outlives them");
        assert_eq!(change("2", None).unwrap().after, "0", "only looked at");
        for value in ["1025", "-1", "many"] {
            assert!(count(value).unwrap_err().contains("0 to 1024"), "{value}");
        }
    }
}
