//! How much else goes on on this machine at this moment: what a timing that is taken now has to put up with.
//!
//! Model:   two parts of 150 ms. First one thread sleeps 1 ms again and again, with a timer slack of 1 ns, and nothing of this
//!          figure keeps a CPU busy. Then a thread on each CPU that this process may use reads the clock without a pause: the
//!          longest time between two readings is for how long something else had that CPU (another thread, an interrupt, a
//!          hypervisor, the limit of a container). Over both parts /proc/stat tells what a hypervisor took of those CPUs and
//!          what ran on them that was not this figure; other threads of this process are others too.
//! Source:  proc_stat(5), proc_loadavg(5), clock_nanosleep(2), PR_SET_TIMERSLACK(2const), sched_setaffinity(2).
//! Units:   nanoseconds of CLOCK_MONOTONIC; shares of the CPU time, 0 to 1. /proc/stat counts by CPU and kind in ticks, usually
//!          of 10 ms: of two CPUs one tick is 1.7 % of the span.
//! Checked: `gaps_are_between_readings`, `shares_are_of_all_cpus`, `what_disturbs_is_named`, `a_machine_has_a_figure`,
//!          `one_cpu_will_do`, `busy_threads_are_seen`.

mod trial;

use std::thread;

pub use trial::measured;

use crate::Result;
use crate::clock::{monotonic_ns, sleep_until_ns, timer_slack_min};
use crate::cpu;
use crate::error::{Attempt, read_text};
use crate::host::{self, CpuTimes};

/// How long the thread sleeps each time.
pub const SLEEP_NS: u64 = 1_000_000;
/// Each of the two parts takes this at least.
const PART_NS: u64 = 150_000_000;

/// A hypervisor that takes more, and more than one tick, is noticed in figures.
pub const STOLEN_SHARE_MAX: f64 = 0.01;
/// Other programs that use more, and more than two ticks, are met by chance: on two CPUs this is a fifth of one.
pub const OTHERS_SHARE_MAX: f64 = 0.1;
/// A CPU that is away for longer was another's for more than one slice of the scheduler, which is 0.7 ms and more, rounded up to its
/// tick of 1 to 10 ms (`sysctl_sched_base_slice` in kernel/sched/fair.c). Interrupts take some 10 us. Seen on Linux 6.18 at 250 Hz
/// beside builds on two CPUs: 8 to 12 ms.
pub const GAP_NS_MAX: u64 = 5_000_000;

/// For how long one CPU was another's at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The CPU, as Linux counts them.
    pub cpu: usize,
    /// The longest time between two successive readings of the clock; above zero.
    pub gap_ns_max: u64,
}

/// What was seen of the machine in a span.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    /// How long it was looked at; 300 ms or more.
    pub span_ns: u64,
    /// CPUs online; 1 or more.
    pub cpus_online: u64,
    /// CPUs that the calling thread may use; 1 or more.
    pub cpus_allowed: u64,
    /// Threads that ran or wanted to, of the whole machine: the kernel's mean over about the last minute. Told, not judged: it
    /// knows long after a build that there was one. `None` where /proc/loadavg cannot be read.
    pub load_1min: Option<f64>,
    /// What a hypervisor took of the allowed CPUs, 0 to 1. `None` where /proc/stat does not list them.
    pub stolen_share: Option<f64>,
    /// What all but this figure used of the allowed CPUs, 0 to 1. `None` as `stolen_share`.
    pub others_share: Option<f64>,
    /// What one tick of /proc/stat is of the same CPU time: the two shares are to be trusted to about this.
    pub tick_share: f64,
    /// One for each allowed CPU, ascending; a CPU is not listed where no thread could be bound to it.
    pub gaps: Vec<Gap>,
    /// By how much sleeps of 1 ms ended late, at the median.
    pub wake_late_ns_p50: u64,
    /// The same at the 99th percentile: of some 140 sleeps the second longest.
    pub wake_late_ns_p99: u64,
    /// The same at worst.
    pub wake_late_ns_max: u64,
}

/// Why a machine is not quiet.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Cause {
    /// More than [`STOLEN_SHARE_MAX`] was stolen.
    #[error("a hypervisor took {:.1} % of the CPU time", share * 100.0)]
    Stolen {
        /// Of the allowed CPUs' time, 0 to 1.
        share: f64,
    },
    /// Others used more than [`OTHERS_SHARE_MAX`].
    #[error("other work used {:.0} % of the CPU time", share * 100.0)]
    Others {
        /// Of the allowed CPUs' time, 0 to 1.
        share: f64,
    },
    /// A CPU was another's for longer than [`GAP_NS_MAX`].
    #[error("CPU {cpu} was taken away for {:.1} ms at a time", *gap_ns as f64 * 1e-6)]
    Gap {
        /// The CPU with the longest one.
        cpu: usize,
        /// The longest one.
        gap_ns: u64,
    },
    /// A sleep ended later than [`GAP_NS_MAX`].
    #[error("a sleep of 1 ms ended {:.1} ms late", *late_ns as f64 * 1e-6)]
    Late {
        /// By how much, at worst.
        late_ns: u64,
    },
}

impl Cause {
    /// One word for programs: `stolen`, `others`, `gap`, `late`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Stolen { .. } => "stolen",
            Self::Others { .. } => "others",
            Self::Gap { .. } => "gap",
            Self::Late { .. } => "late",
        }
    }

    /// What it is and how much, in a few words: `gap 12 ms`.
    fn figure(&self) -> String {
        match self {
            Self::Stolen { share } => format!("stolen {:.1} % of the CPU time", share * 100.0),
            Self::Others { share } => format!("others {:.0} % of the CPU time", share * 100.0),
            Self::Gap { gap_ns, .. } => format!("gap {:.0} ms", *gap_ns as f64 * 1e-6),
            Self::Late { late_ns } => format!("sleep {:.0} ms late", *late_ns as f64 * 1e-6),
        }
    }
}

impl Noise {
    /// The CPU that was another's for longest; `None` where no thread could be bound to one.
    pub fn worst_gap(&self) -> Option<Gap> {
        self.gaps.iter().copied().max_by_key(|gap| gap.gap_ns_max)
    }

    /// All that disturbs timings here, what is stolen first; empty on a quiet machine.
    pub fn causes(&self) -> Vec<Cause> {
        let stolen = self.stolen_share.filter(|share| {
            // What is stolen is added up exactly and shown in ticks: the first one may have been full before.
            *share > STOLEN_SHARE_MAX + self.tick_share
        });
        let others = self
            .others_share
            .filter(|share| *share > OTHERS_SHARE_MAX.max(2.0 * self.tick_share));
        let gap = self.worst_gap().filter(|gap| gap.gap_ns_max > GAP_NS_MAX);
        let late_ns = Some(self.wake_late_ns_max).filter(|late_ns| *late_ns > GAP_NS_MAX);
        let all = [
            stolen.map(|share| Cause::Stolen { share }),
            others.map(|share| Cause::Others { share }),
            gap.map(|gap| Cause::Gap {
                cpu: gap.cpu,
                gap_ns: gap.gap_ns_max,
            }),
            late_ns.map(|late_ns| Cause::Late { late_ns }),
        ];
        all.into_iter().flatten().collect()
    }

    /// Whether nothing disturbs timings: at most 1 % (and a tick) stolen, at most 10 % (or two ticks) used by others, no CPU
    /// away and no sleep late for more than 5 ms. [`causes`](Self::causes) says why not.
    pub fn is_quiet(&self) -> bool {
        self.causes().is_empty()
    }
}

/// Looks at this machine for some 300 ms, during half of which it keeps every allowed CPU busy. The calling thread only waits;
/// its affinity and its timer slack stay as they are.
///
/// It takes longer only where a CPU is kept from its thread, and ends once each has had its CPU for a moment.
///
/// # Errors
/// The CPU affinity cannot be read, or a thread cannot be started.
pub fn measure() -> Result<Noise> {
    let cpus = cpu::online()?;
    let (begin_ns, before) = (monotonic_ns(), host::cpu_times_of(&cpus));
    let own_ns = cpu::thread_cpu_ns();
    let slept = on_threads(&[()], |()| sleep())?.remove(0);
    let spun = on_threads(&cpus, |cpu| spin(*cpu))?;
    let own_ns = cpu::thread_cpu_ns() - own_ns;
    let (after, span_ns) = (host::cpu_times_of(&cpus), monotonic_ns() - begin_ns);

    let spun: Vec<Spun> = spun.into_iter().flatten().collect();
    let own_ns = own_ns + slept.cpu_ns + spun.iter().map(|spun| spun.cpu_ns).sum::<u64>();
    let whole_ns = span_ns.saturating_mul(cpus.len() as u64);
    let shares = before
        .zip(after)
        .map(|(before, after)| shares(before, after, own_ns, whole_ns));
    let late = |percent| percentile(&slept.late_ns, percent);
    Ok(Noise {
        span_ns,
        cpus_online: host::cpus(),
        cpus_allowed: cpus.len() as u64,
        load_1min: read_text("/proc/loadavg")
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok()),
        stolen_share: shares.map(|[stolen, _]| stolen),
        others_share: shares.map(|[_, others]| others),
        tick_share: host::tick_ns() as f64 / whole_ns.max(1) as f64,
        gaps: spun.iter().map(|spun| spun.gap).collect(),
        wake_late_ns_p50: late(50),
        wake_late_ns_p99: late(99),
        wake_late_ns_max: late(100),
    })
}

/// Does `work` for each of `over` at once, on a thread each; what they gave, in this order.
fn on_threads<A: Sync, R: Send>(over: &[A], work: impl Fn(&A) -> R + Sync) -> Result<Vec<R>> {
    thread::scope(|scope| {
        let started: Vec<_> = over
            .iter()
            .map(|one| {
                let work = &work;
                thread::Builder::new().spawn_scoped(scope, move || work(one))
            })
            .collect();
        let done = started.into_iter().map(|thread| {
            let thread = thread.attempt(|| "start a thread".into())?;
            Ok(thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        done.collect()
    })
}

/// What the sleeping thread saw.
struct Slept {
    /// By how much each sleep ended late, ascending; one or more.
    late_ns: Vec<u64>,
    /// The CPU time of the thread.
    cpu_ns: u64,
}

fn sleep() -> Slept {
    // Without it sleeps are some 50 us later, which is then what is seen.
    drop(timer_slack_min());
    let begin_ns = monotonic_ns();
    let mut late_ns = Vec::new();
    loop {
        let wanted_ns = monotonic_ns() + SLEEP_NS;
        sleep_until_ns(wanted_ns);
        let now_ns = monotonic_ns();
        late_ns.push(now_ns.saturating_sub(wanted_ns));
        if now_ns - begin_ns >= PART_NS {
            break;
        }
    }
    late_ns.sort_unstable();
    Slept {
        late_ns,
        cpu_ns: cpu::thread_cpu_ns(),
    }
}

/// What a spinning thread saw.
struct Spun {
    gap: Gap,
    /// The CPU time of the thread.
    cpu_ns: u64,
}

/// Reads the clock on one CPU; nothing where it cannot be bound to.
fn spin(cpu: usize) -> Option<Spun> {
    cpu::pin(&[cpu]).ok()?;
    let end_ns = monotonic_ns() + PART_NS;
    let mut is_over = false;
    // The reading that is past the end is the last one and counts: a gap may lie before it.
    let readings = std::iter::from_fn(|| {
        let now_ns = monotonic_ns();
        let is_last = std::mem::replace(&mut is_over, now_ns >= end_ns);
        (!is_last).then_some(now_ns)
    });
    let gap_ns_max = widest_ns(readings);
    Some(Spun {
        gap: Gap { cpu, gap_ns_max },
        cpu_ns: cpu::thread_cpu_ns(),
    })
}

/// The longest time between two successive readings; 0 of fewer than two.
fn widest_ns(readings: impl IntoIterator<Item = u64>) -> u64 {
    let mut readings = readings.into_iter();
    let Some(mut last_ns) = readings.next() else {
        return 0;
    };
    let mut widest_ns = 0;
    for now_ns in readings {
        widest_ns = widest_ns.max(now_ns.saturating_sub(last_ns));
        last_ns = now_ns;
    }
    widest_ns
}

/// What a hypervisor took and what others used of `whole_ns`, of which this figure used `own_ns`. Stolen time steps back when a
/// guest moves to another machine; then it is none.
fn shares(before: CpuTimes, after: CpuTimes, own_ns: u64, whole_ns: u64) -> [f64; 2] {
    let share = |ns: u64| (ns as f64 / whole_ns.max(1) as f64).min(1.0);
    let busy_ns = after.busy_ns.saturating_sub(before.busy_ns);
    [
        share(after.steal_ns.saturating_sub(before.steal_ns)),
        share(busy_ns.saturating_sub(own_ns)),
    ]
}

/// By nearest rank; `sorted` has one or more, `percent` is 1 to 100.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    const QUIET: Noise = Noise {
        span_ns: 300_000_000,
        cpus_online: 4,
        cpus_allowed: 2,
        load_1min: Some(9.0),
        stolen_share: Some(0.0),
        others_share: Some(0.02),
        tick_share: 0.0167,
        gaps: Vec::new(),
        wake_late_ns_p50: 40_000,
        wake_late_ns_p99: 90_000,
        wake_late_ns_max: 400_000,
    };

    #[test]
    fn gaps_are_between_readings() {
        assert_eq!(widest_ns([]), 0);
        assert_eq!(widest_ns([7]), 0);
        assert_eq!(widest_ns([7, 7, 8, 20, 25]), 12);
        // The clock never goes back; if it did, that would be no gap.
        assert_eq!(widest_ns([9, 3, 5]), 2);
        assert_eq!(
            [1, 50, 51, 99, 100].map(|percent| percentile(&[10, 20], percent)),
            [10, 10, 20, 20, 20]
        );
        assert_eq!(percentile(&[3], 1), 3);
    }

    #[test]
    fn shares_are_of_all_cpus() {
        let times = |busy_ns, steal_ns| CpuTimes { busy_ns, steal_ns };
        let per_mille = |shares: [f64; 2]| shares.map(|share| (share * 1e3).round() as u64);
        let seen = |after, own_ns| per_mille(shares(times(500, 40), after, own_ns, 200));
        assert_eq!(seen(times(600, 50), 60), [50, 200]);
        // Ticks are coarse: more may be this figure's than was counted.
        assert_eq!(seen(times(550, 40), 60), [0, 0]);
        assert_eq!(seen(times(400, 30), 0), [0, 0]);
        assert_eq!(seen(times(900, 540), 0), [1_000, 1_000]);
        let of_nothing = shares(times(0, 0), times(1, 0), 0, 0);
        assert_eq!(per_mille(of_nothing), [0, 1_000], "{of_nothing:?}");
    }

    #[test]
    fn what_disturbs_is_named() {
        assert!(QUIET.is_quiet(), "the load of the last minute is not now");
        let gaps = [(0, 5_000_000), (1, 5_000_001)];
        let disturbed = Noise {
            stolen_share: Some(0.034),
            others_share: Some(0.37),
            gaps: gaps.map(|(cpu, gap_ns_max)| Gap { cpu, gap_ns_max }).into(),
            wake_late_ns_max: 7_200_000,
            ..QUIET
        };
        let found = disturbed.causes();
        let names: Vec<&str> = found.iter().map(Cause::name).collect();
        assert_eq!(names, ["stolen", "others", "gap", "late"]);
        let words: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "a hypervisor took 3.4 % of the CPU time",
                "other work used 37 % of the CPU time",
                "CPU 1 was taken away for 5.0 ms at a time",
                "a sleep of 1 ms ended 7.2 ms late",
            ]
        );
        assert!(!disturbed.is_quiet());
        // One tick says nothing of 300 ms.
        let tick = Noise {
            stolen_share: Some(0.0167),
            ..QUIET
        };
        assert!(tick.is_quiet());
        let unknown = Noise {
            stolen_share: None,
            others_share: None,
            ..QUIET
        };
        assert!(unknown.is_quiet() && unknown.worst_gap().is_none());
    }

    fn assert_is_sound(noise: &Noise) {
        assert!(noise.span_ns >= 300_000_000, "{noise:?}");
        assert!(noise.cpus_online >= 1 && noise.cpus_allowed >= 1);
        assert!(noise.load_1min.is_none_or(|load| load >= 0.0), "{noise:?}");
        for share in [
            noise.stolen_share,
            noise.others_share,
            Some(noise.tick_share),
        ] {
            assert!(
                share.is_none_or(|share| (0.0..=1.0).contains(&share)),
                "{noise:?}"
            );
        }
        assert!(noise.gaps.is_sorted_by_key(|gap| gap.cpu), "{noise:?}");
        assert!(noise.gaps.iter().all(|gap| gap.gap_ns_max > 0), "{noise:?}");
        assert!(
            noise.wake_late_ns_p50 <= noise.wake_late_ns_p99
                && noise.wake_late_ns_p99 <= noise.wake_late_ns_max,
            "{noise:?}"
        );
    }

    #[test]
    fn a_machine_has_a_figure() {
        let before = cpu::online().unwrap();
        let noise = measure().unwrap();
        println!("{noise:?}: {:?}", noise.causes());
        assert_is_sound(&noise);
        let cpus: Vec<usize> = noise.gaps.iter().map(|gap| gap.cpu).collect();
        assert_eq!(cpus, before);
        assert_eq!(cpu::online().unwrap(), before, "the caller keeps its CPUs");
    }

    #[test]
    fn one_cpu_will_do() {
        let of_one = thread::spawn(|| {
            let last = cpu::online().unwrap().pop().unwrap();
            cpu::pin(&[last]).unwrap();
            (last, measure().unwrap())
        });
        let (last, noise) = of_one.join().unwrap();
        assert_is_sound(&noise);
        assert_eq!((noise.cpus_allowed, noise.gaps.len()), (1, 1));
        assert_eq!(noise.gaps[0].cpu, last);
    }

    /// Two threads on one CPU take turns: that of the figure is put aside for the other's slice, which is 0.1 ms at least.
    #[test]
    fn busy_threads_are_seen() {
        let is_over = AtomicBool::new(false);
        let threads = 2 * cpu::online().unwrap().len();
        let noise = thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let noise = measure();
            is_over.store(true, Ordering::Relaxed);
            noise.unwrap()
        });
        println!("{noise:?}: {:?}", noise.causes());
        assert_is_sound(&noise);
        for gap in &noise.gaps {
            assert!(gap.gap_ns_max >= 100_000, "{noise:?}");
        }
        // Between two and four fifths are theirs, of what a hypervisor or a limit left.
        assert!(!noise.is_quiet(), "{noise:?}");
        if let Some(share) = noise.others_share {
            assert!(share > 0.1, "{noise:?}");
        }
    }
}
