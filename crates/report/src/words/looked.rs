//! What a diagnosis looked at, rule by rule: what each found where it did not speak.
//!
//! Checked: `what_was_looked_at_is_listed`.

use crate::diagnosis::{End, Evidence, Looked};
use crate::format::{counted, share, time};
use sonde_measure::Setting;

const UNKNOWN: &str = "not known";

/// What each rule of a pair looks at, in their order.
pub(crate) fn looked(evidence: &Evidence) -> Vec<Looked> {
    let (src, dst) = (&evidence.src, &evidence.dst);
    let of = |rule: &str, found: String| Looked {
        rule: rule.into(),
        found,
    };
    let part = |value: Option<f64>, what: &str| match value {
        Some(value) => format!("{} {what}", share(value)),
        None => UNKNOWN.into(),
    };
    let mtu = |end: &End| {
        end.mtu_bytes
            .map_or_else(|| UNKNOWN.into(), |mtu| mtu.to_string())
    };
    let stalled = match evidence.failures.len() as u64 {
        0 => "no stream stood still".into(),
        failures => format!("{} failed", counted(failures, "stream")),
    };
    let control = evidence.congestion.as_deref();
    vec![
        of(
            "mtu",
            format!("{stalled}; MTU {} and {}", mtu(src), mtu(dst)),
        ),
        of("nagle", slowest(evidence)),
        of(
            "receive-window",
            part(evidence.rwnd_share, "of the time held by it"),
        ),
        of(
            "send-buffer",
            part(evidence.sndbuf_share, "of the time held by it"),
        ),
        of(
            "loss",
            format!(
                "{}; congestion control {}",
                part(evidence.again_share, "of segments retransmitted"),
                control.unwrap_or(UNKNOWN)
            ),
        ),
        of(
            "reordering",
            part(
                evidence.reordered_share,
                "of datagrams came after a later one",
            ),
        ),
        of(
            "offload",
            format!(
                "{}; {}",
                offload(src, Setting::OffloadGso, "gso"),
                offload(dst, Setting::OffloadGro, "gro")
            ),
        ),
        of("cpu", format!("{}; {}", cpu(src), cpu(dst))),
        of("cpu-hog", format!("{}; {}", preempted(src), preempted(dst))),
    ]
}

/// The small size that takes longest, beside the fastest.
fn slowest(evidence: &Evidence) -> String {
    let small = evidence
        .latency_ns
        .iter()
        .filter(|(size, _)| *size <= 16_384);
    let (least, most) = small.fold((f64::MAX, 0.0_f64), |(least, most), (_, ns)| {
        (least.min(*ns), most.max(*ns))
    });
    match most >= least {
        true => format!("small messages take {} to {}", time(least), time(most)),
        false => UNKNOWN.into(),
    }
}

fn offload(end: &End, setting: Setting, name: &str) -> String {
    let state = match end.settings.is_on(setting) {
        Some(true) => "on",
        Some(false) => "off",
        None => UNKNOWN,
    };
    format!("{name} of {} {state}", end.host)
}

fn cpu(end: &End) -> String {
    let part = |value: Option<f64>| value.map_or_else(|| UNKNOWN.into(), share);
    format!(
        "{}: thread {} of a CPU, host {} of {}",
        end.host,
        part(end.thread_cpu),
        part(end.host_cpu),
        counted(end.cpus, "CPU")
    )
}

fn preempted(end: &End) -> String {
    match end.put_aside_per_s {
        Some(times) => format!("{}: thread preempted {times:.0} times per second", end.host),
        None => format!("{}: {UNKNOWN}", end.host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::diagnose;
    use crate::testing::{Runs, net};

    #[test]
    fn what_was_looked_at_is_listed() {
        let run = Runs::new()
            .network(net("lan").tcp_max(94_148_000))
            .latency("lan", "tcp", 1, 20_000)
            .stream("lan", "tcp", 40_000_000)
            .done();
        let diagnosis = diagnose(&run, "lan");
        assert_eq!(diagnosis.causes, []);
        let found = |rule: &str| {
            let mut all = diagnosis.looked.iter();
            all.find(|one| one.rule == rule)
                .map(|one| one.found.clone())
        };
        assert_eq!(found("reordering").as_deref(), Some(UNKNOWN));
        assert!(
            found("mtu")
                .unwrap()
                .starts_with("no stream stood still; MTU ")
        );
        assert!(found("nagle").unwrap().contains("20"), "{diagnosis:?}");
        // Each is a rule of a pair.
        for one in &diagnosis.looked {
            assert_ne!(
                crate::words::cause::terms(&one.rule),
                ("", ""),
                "{}",
                one.rule
            );
        }
    }
}
