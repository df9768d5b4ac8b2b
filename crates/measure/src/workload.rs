//! What is measured at once with others: its name and its own figure, of its cell's factors alone.
//!
//! Model:   a cell of a set of several has the knob [`DURING`], and its load names what was beside it, joined by [`AND`]. The name of a
//!          workload leaves out what the command line would not need to say, so that a name read again is the same workload.
//! Units:   sizes in bytes.
//! Checked: `names_leave_out_what_is_usual`; `names_are_read_again` of the command.

use sonde_units::Bytes;

use crate::files::FilesPath;
use crate::{Factors, Quantity};

/// The knob of cells that are measured at once: how long.
pub const DURING: &str = "during";
/// What stands between what is measured at once.
pub const AND: &str = " + ";
/// The usual size of a file: a round of it fits into a window also where it is shared with others on a slow network.
pub const FILE_BYTES: u64 = 256 << 10;
/// The usual bytes of a message, by the word of what is measured over a channel.
const USUAL_BYTES: [(&str, u64); 4] = [
    ("stream", 1 << 20),
    ("message", 1 << 20),
    ("latency", 1),
    ("rate", 64),
];

/// The service of files of this name; `nfs` is what is used most.
pub fn service(word: &str) -> Option<FilesPath> {
    let word = if word == "nfs" { "nfs3" } else { word };
    word.parse().ok()
}

/// The word of a service, the shortest that is read as it.
fn service_word(path: FilesPath) -> String {
    let name = path.name();
    let short = [Some("nfs"), name.split_once(':').map(|(word, _)| word)];
    let is_it = |word: &&str| service(word) == Some(path);
    let short = short.into_iter().flatten().find(is_it);
    short.unwrap_or(name).into()
}

/// What was measured, in one word.
pub fn name(factors: &Factors) -> String {
    let service: Option<FilesPath> = factors.path.parse().ok();
    let mut knobs = factors.knobs.clone();
    knobs.remove(DURING);
    let mut take = |name: &str| knobs.remove(name).unwrap_or_default();
    let mut parts = match (factors.probe.as_str(), service) {
        ("files", Some(path)) => vec![service_word(path), take("op")],
        ("npb", _) => {
            let (kernel, class) = (take("kernel"), take("class"));
            let class = (class != "S").then_some(class);
            ["npb".into(), kernel].into_iter().chain(class).collect()
        }
        ("rate", _) => vec!["rate".into(), take("rate")],
        (probe, _) => vec![factors.mode.clone().unwrap_or_else(|| probe.into())],
    };
    let is_usual_path = service.is_some()
        || factors.path == "tcp"
        || factors.probe == "npb" && factors.path == "native:tcp";
    if !is_usual_path {
        parts.push(factors.path.clone());
    }
    let usual = match factors.probe.as_str() {
        "files" => FILE_BYTES,
        _ => {
            let known = USUAL_BYTES.iter().find(|(word, _)| *word == parts[0]);
            known.map_or(0, |(_, bytes)| *bytes)
        }
    };
    // Datagrams of a stream are as long as a frame, whichever that is.
    let is_cut = factors.path == "udp" && factors.probe == "throughput";
    if factors.size_bytes > 0 && factors.size_bytes != usual && !is_cut {
        parts.push(Bytes(factors.size_bytes).to_string());
    }
    knobs.retain(|name, value| !(name == "outstanding" && value == "1"));
    parts.extend(knobs.iter().map(|(name, value)| format!("{name}={value}")));
    parts.join(":")
}

/// Its own figure, by which it is slower beside others.
pub fn figure(factors: &Factors) -> Quantity {
    match factors.probe.as_str() {
        "latency" => Quantity::LatencyNs,
        "rate" => Quantity::ResponseNs,
        "npb" => Quantity::KernelNs,
        "files" if factors.size_bytes == 0 => Quantity::RatePerS,
        _ => Quantity::ThroughputBps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layer, Testbed};

    fn factors(probe: &str, mode: Option<&str>, path: &str, size_bytes: u64) -> Factors {
        Factors {
            probe: probe.into(),
            mode: mode.map(Into::into),
            layer: Layer::Transport,
            path: path.into(),
            method: None,
            knobs: [(DURING.to_owned(), "3s".to_owned())].into_iter().collect(),
            wait: None,
            network: "ethernet-10".into(),
            testbed: Testbed::Lab,
            hosts: Vec::new(),
            profile: None,
            attachment: None,
            load: None,
            size_bytes,
        }
    }

    #[test]
    fn names_leave_out_what_is_usual() {
        let with = |factors: Factors, knobs: &[(&str, &str)]| {
            let mut factors = factors;
            for (name, value) in knobs {
                factors.knobs.insert((*name).into(), (*value).into());
            }
            factors
        };
        let stream = factors("throughput", Some("stream"), "tcp", 1 << 20);
        let files = factors("files", None, "nfs3:tcp", FILE_BYTES);
        for (factors, wanted, quantity) in [
            (stream.clone(), "stream", Quantity::ThroughputBps),
            (
                factors("throughput", Some("stream"), "udp", 1_472),
                "stream:udp",
                Quantity::ThroughputBps,
            ),
            (
                factors("latency", None, "tcp", 64),
                "latency:64B",
                Quantity::LatencyNs,
            ),
            (
                with(files.clone(), &[("op", "write"), ("outstanding", "1")]),
                "nfs:write",
                Quantity::ThroughputBps,
            ),
            (
                with(
                    factors("files", None, "nfs2:udp", 0),
                    &[("op", "getattr"), ("outstanding", "4")],
                ),
                "nfs2:getattr:outstanding=4",
                Quantity::RatePerS,
            ),
            (
                with(
                    factors("npb", None, "native:tcp", 0),
                    &[("kernel", "lu"), ("class", "W")],
                ),
                "npb:lu:W",
                Quantity::KernelNs,
            ),
            (
                with(factors("rate", None, "tcp", 64), &[("rate", "1000")]),
                "rate:1000",
                Quantity::ResponseNs,
            ),
        ] {
            assert_eq!(
                (name(&factors).as_str(), figure(&factors)),
                (wanted, quantity)
            );
        }
    }
}
