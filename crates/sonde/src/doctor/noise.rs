//! How disturbed this machine is now: a line for people, an object for programs.
//!
//! Units:   ns and shares of 1; ms and % for people.
//! Checked: `a_quiet_machine_is_told_so`, `what_disturbs_is_limited`, `programs_have_all_of_it`; `sonde_sys::noise`.

use super::machine::within;
use super::{Check, Group, topic};
use crate::campaign::unix_ns;
use sonde_measure::{Gap, Noise};
use sonde_sys::{host, noise};
use std::time::Duration;

/// It takes 0.3 s where each CPU is to be had.
const LOOKING: Duration = Duration::from_secs(10);

/// What was seen, or why nothing.
pub type NoiseReport = Result<noise::Noise, String>;

/// Looks at this machine for 0.3 s, before sonde itself disturbs it.
pub fn look() -> NoiseReport {
    match within(LOOKING, noise::measure) {
        Some(seen) => seen.map_err(|error| error.to_string()),
        None => Err(format!(
            "not finished within {} s: a CPU is not available",
            LOOKING.as_secs()
        )),
    }
}

/// Whether timings that are taken now are this machine's own.
pub fn check(seen: &NoiseReport) -> Check {
    let topic = topic(Group::Time, "noise", "repeatable figures");
    let remedy =
        "end other programs, give a container the CPUs that it may use, or measure at another hour";
    let noise = match seen {
        Ok(noise) => noise,
        Err(why) => return topic.limited(why, remedy),
    };
    let causes: Vec<String> = noise.causes().iter().map(ToString::to_string).collect();
    let mut value = if causes.is_empty() {
        quiet(noise)
    } else {
        causes.join("; ")
    };
    if let Some(load) = noise.load_1min {
        value += &format!("; load {load:.2} (1 min)");
    }
    topic.judge(causes.is_empty(), value, remedy)
}

fn quiet(noise: &noise::Noise) -> String {
    let mut words = vec![match noise.worst_gap() {
        Some(gap) => format!(
            "no CPU of {} away for more than {:.2} ms",
            noise.cpus_allowed,
            gap.gap_ns_max as f64 * 1e-6
        ),
        None => "no CPU could be bound to".into(),
    }];
    if let (Some(others), Some(stolen)) = (noise.others_share, noise.stolen_share) {
        words.push(format!(
            "others used {:.1} %, a hypervisor took {:.1} %",
            others * 100.0,
            stolen * 100.0
        ));
    }
    words.join("; ")
}

/// The same as it is kept and printed.
pub fn record(seen: &noise::Noise) -> Noise {
    let gaps = seen.gaps.iter().map(|gap| Gap {
        cpu: gap.cpu,
        gap_ns_max: gap.gap_ns_max,
    });
    let causes = seen.causes();
    Noise {
        machine: host::names().0,
        at_unix_ns: unix_ns(),
        span_ns: seen.span_ns,
        cpus_online: seen.cpus_online,
        cpus_allowed: seen.cpus_allowed,
        load_1min: seen.load_1min,
        stolen_share: seen.stolen_share,
        others_share: seen.others_share,
        tick_share: seen.tick_share,
        gaps: gaps.collect(),
        wake_late_ns_p50: seen.wake_late_ns_p50,
        wake_late_ns_p99: seen.wake_late_ns_p99,
        wake_late_ns_max: seen.wake_late_ns_max,
        quiet: causes.is_empty(),
        causes: causes.iter().map(|cause| cause.name().into()).collect(),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::doctor::Status;

    /// A quiet machine of two CPUs, on which sleeps end so late.
    pub fn made_up(p50: u64, p99: u64) -> noise::Noise {
        noise::Noise {
            span_ns: 301_000_000,
            cpus_online: 2,
            cpus_allowed: 2,
            load_1min: Some(0.25),
            stolen_share: Some(0.0),
            others_share: Some(0.012),
            tick_share: 0.0166,
            gaps: [(0, 30_000), (1, 84_000)]
                .map(|(cpu, gap_ns_max)| noise::Gap { cpu, gap_ns_max })
                .into(),
            wake_late_ns_p50: p50,
            wake_late_ns_p99: p99,
            wake_late_ns_max: p99,
        }
    }

    #[test]
    fn a_quiet_machine_is_told_so() {
        let found = check(&Ok(made_up(40_000, 90_000)));
        assert_eq!(
            (found.status, found.value.as_str()),
            (
                Status::Ok,
                "no CPU of 2 away for more than 0.08 ms; others used 1.2 %, a hypervisor took 0.0 %; load 0.25 (1 min)"
            )
        );
        let bare = noise::Noise {
            load_1min: None,
            stolen_share: None,
            gaps: Vec::new(),
            ..made_up(40_000, 90_000)
        };
        assert_eq!(check(&Ok(bare)).value, "no CPU could be bound to");
    }

    #[test]
    fn what_disturbs_is_limited() {
        let busy = noise::Noise {
            others_share: Some(0.5),
            ..made_up(40_000, 6_000_000)
        };
        let found = check(&Ok(busy));
        assert_eq!(found.status, Status::Limited);
        assert_eq!(
            found.value,
            "other work used 50 % of the CPU time; a sleep of 1 ms ended 6.0 ms late; load 0.25 (1 min)"
        );
        let unknown = check(&Err("no threads".into()));
        assert_eq!(
            (unknown.status, unknown.value.as_str()),
            (Status::Limited, "no threads")
        );
    }

    #[test]
    fn programs_have_all_of_it() {
        let busy = noise::Noise {
            load_1min: None,
            others_share: Some(0.5),
            ..made_up(40_000, 90_000)
        };
        let json = serde_json::to_value(record(&busy)).unwrap();
        assert_eq!(json["quiet"], false);
        assert_eq!(json["causes"], serde_json::json!(["others"]));
        assert!(json["load_1min"].is_null() && json.get("load_1min").is_some());
        assert_eq!(
            json["gaps"][1],
            serde_json::json!({"cpu": 1, "gap_ns_max": 84_000})
        );
        assert_eq!(json["wake_late_ns_p50"], 40_000);
        let schema = serde_json::to_value(schemars::schema_for!(Noise)).unwrap();
        let fields = schema["properties"].as_object().unwrap();
        let there = json.as_object().unwrap();
        assert!(fields.keys().eq(there.keys()), "{schema:#}");
    }
}
