//! How far figures can be trusted while they are still being measured.
//!
//! Model:   counts over the launches so far, so that it costs nothing beside a measurement: those in which the emulation was behind
//!          schedule, and the CPU time that a hypervisor took. The limits are those of the screen, of launches where that counts
//!          cells; what only the whole run shows, repetitions and intervals, is not in it.
//! Units:   launches; nanoseconds of CPU time.
//! Checked: `a_tally_follows_the_launches`.

use sonde_measure::LaunchRecord;

use super::TrustLevel;
use super::trust::{LATE, STOLEN};
use crate::finding::noise;
use crate::format::percent;

/// What was counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    emulated: u64,
    late: u64,
    stolen_ns: u64,
    watched_ns: u64,
}

impl Tally {
    /// With one more launch; of flows that went together, one of them.
    pub fn add(&mut self, launch: &LaunchRecord) {
        if let Some(verdict) = &launch.verdict {
            self.emulated += 1;
            self.late += u64::from(!verdict.kept_times());
        }
        for at in &launch.interference {
            if let Some(steal_ns) = at.steal_ns {
                self.stolen_ns = self.stolen_ns.saturating_add(steal_ns);
                let watched_ns = at.span_ns.saturating_mul(at.cpus);
                self.watched_ns = self.watched_ns.saturating_add(watched_ns);
            }
        }
    }

    fn stolen(&self) -> f64 {
        self.stolen_ns as f64 / self.watched_ns.max(1) as f64
    }

    /// How far the figures so far can be trusted.
    pub fn level(&self) -> TrustLevel {
        let late = self.late as f64 / self.emulated.max(1) as f64;
        if late >= LATE || self.stolen() >= STOLEN {
            TrustLevel::Low
        } else if self.late > 0 || self.stolen() >= noise::STOLEN {
            TrustLevel::Medium
        } else {
            TrustLevel::High
        }
    }

    /// The same in words, with why it is not high.
    pub fn words(&self) -> String {
        let late = (self.late > 0).then(|| format!("{} of {} late", self.late, self.emulated));
        let is_stolen = self.stolen() >= noise::STOLEN;
        let stolen = is_stolen.then(|| format!("{} % stolen", percent(self.stolen())));
        let why: Vec<String> = late.into_iter().chain(stolen).collect();
        let why = match why.is_empty() {
            true => String::new(),
            false => format!(" ({})", why.join(", ")),
        };
        format!("trust {}{why}", self.level().word())
    }
}

impl TrustLevel {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::verdict;
    use sonde_measure::Interference;

    fn launch(late: u64, steal_ns: u64) -> LaunchRecord {
        LaunchRecord {
            verdict: Some(verdict(late)),
            interference: vec![Interference {
                span_ns: 1_000_000,
                cpus: 2,
                steal_ns: Some(steal_ns),
                ..Interference::default()
            }],
            ..LaunchRecord::default()
        }
    }

    #[test]
    fn a_tally_follows_the_launches() {
        let mut tally = Tally::default();
        assert_eq!(tally.words(), "trust high");
        for _ in 0..7 {
            tally.add(&launch(0, 0));
        }
        assert_eq!(tally.level(), TrustLevel::High);
        tally.add(&launch(3_200, 0));
        assert_eq!(tally.words(), "trust medium (1 of 8 late)");
        for _ in 0..2 {
            tally.add(&launch(3_200, 0));
        }
        assert_eq!(tally.words(), "trust low (3 of 10 late)");
        let mut stolen = Tally::default();
        stolen.add(&launch(0, 30_000));
        assert_eq!(stolen.words(), "trust medium (1.5 % stolen)");
        stolen.add(&launch(0, 400_000));
        assert_eq!(stolen.level(), TrustLevel::Low);
        // On real hosts nothing is emulated.
        let mut real = Tally::default();
        real.add(&LaunchRecord::default());
        assert_eq!(real.words(), "trust high");
    }
}
