//! How disturbed a machine was when it was looked at.
//!
//! Units:   nanoseconds; times of day are nanoseconds since 1970, UTC; shares are of the CPU time that the program may use, 0 to 1.
//! Checked: `a_busy_machine_is_told_in_a_line`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was seen of a machine in some 300 ms, while sonde did nothing else on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// The name that the machine gives itself.
    pub machine: String,
    /// When it was looked at.
    pub at_unix_ns: u64,
    /// How long it was looked at.
    pub span_ns: u64,
    /// CPUs online.
    pub cpus_online: u64,
    /// CPUs that this program may use.
    pub cpus_allowed: u64,
    /// The kernel's mean of threads that run or want to, over the last minute; null where it does not tell.
    pub load_1min: Option<f64>,
    /// What a hypervisor took of the allowed CPUs' time, 0 to 1; null where /proc/stat cannot be read.
    pub stolen_share: Option<f64>,
    /// What others used of it, 0 to 1; null likewise.
    pub others_share: Option<f64>,
    /// How exact the two shares are: one tick of /proc/stat.
    pub tick_share: f64,
    /// For how long each allowed CPU was away at most.
    pub gaps: Vec<Gap>,
    /// By how much sleeps of 1 ms ended late: the median.
    pub wake_late_ns_p50: u64,
    /// The 99th percentile.
    pub wake_late_ns_p99: u64,
    /// The latest.
    pub wake_late_ns_max: u64,
    /// Whether nothing disturbs timings.
    pub quiet: bool,
    /// What does: of `stolen`, `others`, `gap`, `late`.
    pub causes: Vec<String>,
}

/// A CPU, and the longest time between two readings of the clock by a thread that did nothing else there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The CPU, as Linux counts them.
    pub cpu: usize,
    /// The longest time.
    pub gap_ns_max: u64,
}

impl Noise {
    /// In a word or two, without figures: `quiet`, or `busy: stolen, others`.
    pub fn state(&self) -> String {
        match self.quiet {
            true => "quiet".into(),
            false => format!("busy: {}", self.causes.join(", ")),
        }
    }

    /// What disturbs, with figures: `load 10.2 on 2 CPUs, 9 % stolen`; `None` of a quiet machine.
    pub fn told(&self) -> Option<String> {
        if self.quiet {
            return None;
        }
        let percent = |share: Option<f64>| format!("{:.0} %", share.unwrap_or(0.0) * 100.0);
        let ms = |ns: u64| format!("{:.1} ms", ns as f64 * 1e-6);
        let longest = self.gaps.iter().map(|gap| gap.gap_ns_max).max();
        let cause = |name: &String| match name.as_str() {
            "stolen" => format!("{} stolen", percent(self.stolen_share)),
            "others" => format!("{} used by other programs", percent(self.others_share)),
            "gap" => format!("a CPU away for {} at a time", ms(longest.unwrap_or(0))),
            _ => format!("a sleep of 1 ms ended {} late", ms(self.wake_late_ns_max)),
        };
        let plural = if self.cpus_allowed == 1 {
            "CPU"
        } else {
            "CPUs"
        };
        let load = self
            .load_1min
            .map(|load| format!("load {load:.1} on {} {plural}", self.cpus_allowed));
        let parts: Vec<String> = load
            .into_iter()
            .chain(self.causes.iter().map(cause))
            .collect();
        Some(parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_told_in_a_line() {
        let quiet = Noise {
            cpus_allowed: 2,
            load_1min: Some(10.24),
            quiet: true,
            ..Noise::default()
        };
        assert_eq!((quiet.state().as_str(), quiet.told()), ("quiet", None));
        let busy = Noise {
            stolen_share: Some(0.09),
            others_share: Some(0.61),
            gaps: vec![Gap {
                cpu: 1,
                gap_ns_max: 12_340_000,
            }],
            wake_late_ns_max: 6_000_000,
            quiet: false,
            causes: ["stolen", "others", "gap", "late"].map(String::from).into(),
            ..quiet
        };
        assert_eq!(busy.state(), "busy: stolen, others, gap, late");
        assert_eq!(
            busy.told().unwrap(),
            "load 10.2 on 2 CPUs, 9 % stolen, 61 % used by other programs, a CPU away for 12.3 ms at a time, a sleep of 1 ms ended \
             6.0 ms late"
        );
    }
}
