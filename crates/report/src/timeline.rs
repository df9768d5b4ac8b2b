//! How busy the hosts were over a run: a point for each launch, or for several that follow each other.
//!
//! Model:   of the hosts of a launch the one that is worst counts; of several launches the worst of them. Launches that began together,
//!          as the flows of a pattern do, are one point. There are at most [`MOMENTS_MAX`] points.
//! Units:   milliseconds since the run began; parts of all CPUs of a host, or of all deliveries of the emulated network.
//! Checked: the tests below.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Interference, LaunchRecord, Number, Run};

use crate::index::{busy, of_cpus};

/// The most points of a line.
pub const MOMENTS_MAX: usize = 1_000;

/// How busy the hosts were during one launch, or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// When it began, since the run did.
    pub began_ms: u64,
    /// When it ended.
    pub ended_ms: u64,
    /// Part of all its CPUs that the busiest host used; null where no host can tell, or none was watched for long enough.
    pub busy_share: Option<Number>,
    /// The same of what a hypervisor took.
    pub stolen_share: Option<Number>,
    /// Part of the deliveries that the emulated network made behind schedule; null where none was emulated.
    pub late_share: Option<Number>,
}

/// The points of a run, in order of time.
pub(crate) fn timeline(run: &Run) -> Vec<Moment> {
    let mut launches: Vec<&LaunchRecord> = run.launches.iter().collect();
    launches.sort_by_key(|launch| launch.began_unix_ns);
    let together: Vec<&[&LaunchRecord]> = launches
        .chunk_by(|one, other| one.began_unix_ns == other.began_unix_ns)
        .collect();
    let each = together.len().div_ceil(MOMENTS_MAX).max(1);
    let of = |some: &[&[&LaunchRecord]]| Moment::of(&some.concat(), run.head.began_unix_ns);
    together.chunks(each).map(of).collect()
}

impl Moment {
    fn of(launches: &[&LaunchRecord], begin_ns: u64) -> Self {
        let since_ms = |unix_ns: u64| unix_ns.saturating_sub(begin_ns) / 1_000_000;
        let began = launches.iter().map(|launch| launch.began_unix_ns).min();
        let ended = launches
            .iter()
            .map(|launch| launch.began_unix_ns.saturating_add(launch.took_ns))
            .max();
        let worst = |share: fn(&Interference) -> Option<f64>| {
            let hosts = launches.iter().flat_map(|launch| &launch.interference);
            hosts.filter_map(share).reduce(f64::max).map(Number)
        };
        let (late, deliveries) = launches
            .iter()
            .filter_map(|launch| launch.verdict.as_ref())
            .fold((0, 0), |(late, deliveries), verdict| {
                (late + verdict.late, deliveries + verdict.deliveries)
            });
        Self {
            began_ms: since_ms(began.unwrap_or(begin_ns)),
            ended_ms: since_ms(ended.unwrap_or(begin_ns)),
            busy_share: worst(busy),
            stolen_share: worst(|host| of_cpus(host, host.steal_ns)),
            late_share: (deliveries > 0).then(|| Number(late as f64 / deliveries as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn the_worst_host_of_what_began_together_counts() {
        let mut run = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 1, 10_000)
            .done();
        let begin_ns = run.head.began_unix_ns;
        let host = |busy_ms: u64, steal_ms: Option<u64>| Interference {
            span_ns: 1_000_000_000,
            cpus: 2,
            host_cpu_ns: Some(busy_ms * 1_000_000),
            steal_ns: steal_ms.map(|ms| ms * 1_000_000),
            ..Interference::default()
        };
        let of = |began_ms: u64, took_ms: u64, interference| LaunchRecord {
            began_unix_ns: begin_ns + began_ms * 1_000_000,
            took_ns: took_ms * 1_000_000,
            interference,
            verdict: None,
            ..run.launches[0].clone()
        };
        run.launches = vec![
            of(9, 1, vec![host(2_020, Some(20))]),
            of(4, 2, vec![host(500, None), host(1_000, Some(0))]),
            of(4, 3, vec![host(1_500, Some(100))]),
            of(20, 1, vec![Interference::default()]),
        ];
        let all = timeline(&run);
        let told: Vec<(u64, u64, Option<f64>, Option<f64>)> = (all.iter())
            .map(|at| {
                let share = |share: &Option<Number>| share.as_ref().map(|share| share.0);
                let (busy, stolen) = (share(&at.busy_share), share(&at.stolen_share));
                (at.began_ms, at.ended_ms, busy, stolen)
            })
            .collect();
        assert_eq!(
            told,
            [
                (4, 7, Some(0.75), Some(0.05)),
                (9, 10, Some(1.0), Some(0.01)),
                // A host that was not watched tells nothing, and no zero.
                (20, 21, None, None),
            ]
        );
        assert!(all.iter().all(|at| at.late_share.is_none()));
    }

    #[test]
    fn a_long_run_has_no_more_points_than_a_page_draws() {
        let mut run = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 1, 10_000)
            .done();
        let one = run.launches[0].clone();
        let begin_ns = run.head.began_unix_ns;
        run.launches = (0..2_500)
            .map(|at| LaunchRecord {
                began_unix_ns: begin_ns + at * 1_000_000,
                took_ns: 1_000_000,
                ..one.clone()
            })
            .collect();
        let all = timeline(&run);
        assert_eq!(all.len(), 834);
        assert_eq!((all[0].began_ms, all[0].ended_ms), (0, 3));
        assert_eq!(all[833].ended_ms, 2_500);
    }
}
