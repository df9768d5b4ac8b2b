//! What the verdict on all pairs says beside the sentences of its findings.
//!
//! Checked: the tests of `matrix::all_pairs`.

use crate::format::{counted, share};
use crate::matrix::Sensitivity;

/// Nothing stands out of so many hosts and ordered pairs; fewer may have been measured than there are.
pub(crate) fn none_stands_out(hosts: u64, pairs: u64, all: u64) -> String {
    let pairs = match pairs == all {
        true => counted(pairs, "ordered pair"),
        false => format!("{pairs} of {}", counted(all, "ordered pair")),
    };
    format!("of {} and {pairs} none stands out", counted(hosts, "host"))
}

/// So many cells were behind schedule.
pub(crate) fn behind(late: usize, all: usize) -> String {
    format!("the emulation was behind schedule in {late} of {all} cells")
}

/// What is blamed, with its remedy.
pub(crate) fn blamed(sentence: &str, remedy: Option<&str>) -> String {
    let sentence = sentence.trim_end_matches('.');
    match remedy {
        Some(remedy) => format!("{sentence}; {remedy}"),
        None => sentence.into(),
    }
}

/// What is blamed, and why that is not sure.
pub(crate) fn but(sentence: &str, why: &str) -> String {
    format!("{}; but {why}", sentence.trim_end_matches('.'))
}

/// Flows that failed, and the host that all of them share.
pub(crate) fn failed(flows: u64, host: Option<&str>) -> String {
    match host {
        Some(host) => format!(
            "{host} is bad: {} failed, all of them to or from it; look at its line (`ethtool -S`, `ip -s link`), cable and switch port",
            counted(flows, "flow")
        ),
        None => format!("{} failed", counted(flows, "flow")),
    }
}

/// Nothing is blamed, but it may be hidden.
pub(crate) fn hidden(behind: &str) -> String {
    format!("nothing stands out, but {behind}: a slow host can be hidden")
}

/// Why slowness is not sure.
pub(crate) const DISTURBED: &str =
    "disturbed samples leave it open: undisturbed, it may be as fast as the others";

/// Nothing is blamed, but these may be slow.
pub(crate) fn may_be_slow(names: &[String]) -> String {
    const NAMED: usize = 4;
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "nothing stands out, but disturbed samples leave open whether {}{more} {} slow",
        names[..names.len().min(NAMED)].join(", "),
        if names.len() == 1 { "is" } else { "are" },
    )
}

/// The smallest faults that a matrix would have shown, of those that it measured.
pub(crate) fn detectable(seen: &Sensitivity) -> Option<String> {
    let less = |times: f64| share(1.0 - 1.0 / times);
    let parts = [
        seen.host_stream
            .map(|times| format!("a host whose streams are {} slower", less(times))),
        seen.host_latency
            .map(|times| format!("a host whose latency is {times:.1} times that of others")),
        seen.host_loss
            .map(|part| format!("a host that loses {} of segments", share(part))),
        seen.way_stream.map(|times| {
            format!(
                "one direction between two of the measured hosts {} slower",
                less(times)
            )
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
