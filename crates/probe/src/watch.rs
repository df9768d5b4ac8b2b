//! What disturbed a measurement at one host.
//!
//! Model:   counters of the measuring thread and of its host, read where the timed part begins and where it ends; parts of
//!          one conversation add up. Reading them takes some 10 µs and lies outside of what is timed.
//! Units:   nanoseconds; /proc/stat counts in ticks, so that the host's figures are coarse over short parts.
//! Checked: `parts_add_up`.

use sonde_measure::Interference;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::{Switches, process_cpu_ns, process_switches, thread_cpu_ns, thread_switches};
use sonde_sys::host::{self, CpuTimes};

use crate::Result;

/// A part being watched.
pub struct Watch {
    begin_ns: u64,
    thread_cpu_ns: u64,
    switches: Switches,
    times: Option<CpuTimes>,
    /// Of the whole process: several threads move the bytes.
    whole: bool,
}

/// The CPU time of this thread, or of all threads of the process.
pub(crate) fn cpu_ns(whole: bool) -> Result<u64> {
    if whole {
        return Ok(process_cpu_ns(std::process::id())?);
    }
    Ok(thread_cpu_ns())
}

fn switches(whole: bool) -> Result<Switches> {
    Ok(if whole {
        process_switches()?
    } else {
        thread_switches()?
    })
}

impl Watch {
    /// Begins with this thread's counters.
    ///
    /// # Errors
    /// The kernel does not say them.
    pub fn begin() -> Result<Self> {
        Self::begin_of(false)
    }

    /// Of this thread, or of all threads of the process.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn begin_of(whole: bool) -> Result<Self> {
        // In this order, so that what is read last is closest to the timed part.
        let times = host::cpu_times();
        let switches = switches(whole)?;
        Ok(Self {
            times,
            switches,
            thread_cpu_ns: cpu_ns(whole)?,
            begin_ns: monotonic_ns(),
            whole,
        })
    }

    /// Ends the part and adds it; `retransmits` of the socket, where it has any.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn end(self, sum: &mut Interference, retransmits: Option<u64>) -> Result<()> {
        sum.span_ns += monotonic_ns() - self.begin_ns;
        sum.thread_cpu_ns += cpu_ns(self.whole)? - self.thread_cpu_ns;
        let switches = switches(self.whole)?;
        sum.involuntary_switches += switches.involuntary - self.switches.involuntary;
        sum.voluntary_switches += switches.voluntary - self.switches.voluntary;
        sum.cpus = host::cpus();
        if let (Some(end), Some(begin)) = (host::cpu_times(), self.times) {
            let busy_ns = end.busy_ns.saturating_sub(begin.busy_ns);
            // Steal may step back when a guest moves to another machine.
            let steal_ns = end.steal_ns.saturating_sub(begin.steal_ns);
            *sum.host_cpu_ns.get_or_insert(0) += busy_ns;
            *sum.steal_ns.get_or_insert(0) += steal_ns;
        }
        if let Some(count) = retransmits {
            *sum.retransmits.get_or_insert(0) += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn parts_add_up() {
        let mut sum = Interference::default();
        for retransmits in [Some(2), None, Some(3)] {
            let watch = Watch::begin().unwrap();
            std::thread::sleep(Duration::from_millis(2));
            watch.end(&mut sum, retransmits).unwrap();
        }
        assert_eq!(sum.retransmits, Some(5));
        assert!(
            sum.span_ns >= 6_000_000 && sum.voluntary_switches >= 3,
            "{sum:?}"
        );
        assert!(sum.thread_cpu_ns > 0 && sum.cpus >= 1 && sum.host_cpu_ns.is_some());
    }
}
