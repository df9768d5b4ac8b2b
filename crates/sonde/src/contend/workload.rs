//! What is measured beside other things, as it is written: `stream`, `nfs:write`, `npb:lu`, `load:0.6`, `latency:64KiB@fddi`.
//!
//! Model:   a kind, then parts behind colons in any order that makes sense: a path, a size, what is done, knobs as NAME=VALUE; and behind
//!          an `@` another network of the same hosts. Each becomes one probe of a plan. The name of what was measured is made of its
//!          factors alone, and leaves out what the text would not need to say, so that a name read again is the same workload.
//! Units:   sizes in bytes.
//! Checked: `texts_become_probes`, `names_are_read_again`, `what_is_wrong_is_said`.

use crate::any_path::AnyPath;
use crate::cli::typed;
use crate::layout::DURING;
use crate::plan::{LoadPlan, Mode, ProbeKind, ProbePlan};
use sonde_measure::files::{FilesPath, Operation};
use sonde_measure::{Factors, Quantity};
use sonde_units::Bytes;

/// The usual size of a file: a round of it fits into a window also where it is shared with others on a slow network.
const FILE_BYTES: u64 = 256 << 10;
/// How workloads are written.
pub const GRAMMAR: &str = "write stream, stream:udp, message:64KiB, latency, rate:1000, nfs:read, nfs:write, nfs2:write, npb:lu, npb:cg:W \
                           or load:0.6; @NETWORK behind one of them puts it on another network of the same hosts";

/// A kind over a channel: its word, its kind, its mode, its usual size.
type Kind = (&'static str, ProbeKind, Option<Mode>, u64);

const KINDS: [Kind; 4] = [
    ("stream", ProbeKind::Throughput, Some(Mode::Stream), 1 << 20),
    (
        "message",
        ProbeKind::Throughput,
        Some(Mode::Message),
        1 << 20,
    ),
    ("latency", ProbeKind::Latency, None, 1),
    ("rate", ProbeKind::Rate, None, 64),
];

/// One of several at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// What is measured itself.
    Probe(Box<ProbePlan>),
    /// Background traffic, of which only the others' figures tell.
    Load(String),
}

impl Workload {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, and how it is written.
    pub fn read(text: &str) -> Result<Self, String> {
        let (what, network) = match text.split_once('@') {
            Some((what, network)) => (what, Some(network)),
            None => (text, None),
        };
        let wrong = |why: String| format!("`{text}` is not a workload: {why}; {GRAMMAR}");
        if let Some(level) = what.strip_prefix("load:") {
            if network.is_some() {
                return Err(wrong("a load is on the network of the others".into()));
            }
            let level = typed::load(level).map_err(wrong)?;
            let load = LoadPlan::level(&level).load();
            return match load.map_err(|failure| wrong(failure.to_string()))? {
                Some(_) => Ok(Self::Load(level)),
                None => Err(wrong("a load of 0 is none".into())),
            };
        }
        let mut probe = probe(what).map_err(wrong)?;
        if let Some(network) = network {
            probe.networks.push(typed::network(network).map_err(wrong)?);
        }
        probe.name = Some(text.into());
        Ok(Self::Probe(Box::new(probe)))
    }
}

fn probe(text: &str) -> Result<ProbePlan, String> {
    let mut parts = text.split(':').peekable();
    let word = parts.next().unwrap_or_default().to_lowercase();
    let word = match word.as_str() {
        "messages" => "message",
        "streams" => "stream",
        other => other,
    };
    let mut probe = if word == "npb" {
        let kernel = parts.next().ok_or("npb needs a kernel, as npb:lu")?;
        let mut probe = ProbePlan::new(ProbeKind::Npb, &[], &[]);
        probe.knobs = knobs([("kernel", kernel.to_lowercase()), ("class", "S".into())]);
        if let Some(class) = parts.next_if(|part| part.len() == 1) {
            probe.knobs.extend(knobs([("class", class.to_uppercase())]));
        }
        probe
    } else if let Some((_, kind, mode, _)) = KINDS.iter().find(|(known, ..)| *known == word) {
        let mut probe = ProbePlan::new(*kind, &[], &[]);
        probe.mode = *mode;
        if *kind == ProbeKind::Rate {
            let rate = parts.next_if(|part| part.parse::<u64>().is_ok());
            let rate = rate.ok_or("rate needs messages per second, as rate:1000")?;
            probe.knobs = knobs([("rate", rate.into())]);
        }
        probe
    } else {
        let long = parts.peek().map(|over| format!("{word}:{over}"));
        let long = long.and_then(|long| service(&long)).inspect(|_| {
            parts.next();
        });
        let path = long.or_else(|| service(word));
        let path = path.ok_or_else(|| format!("there is no kind `{word}`"))?;
        let mut probe = ProbePlan::new(ProbeKind::Files, &[path], &[]);
        let does = parts.next().unwrap_or_default();
        let does = match does {
            "get" => "read",
            "put" => "write",
            other => other,
        };
        let does: Operation = does
            .parse()
            .map_err(|why| format!("`{word}` needs what is done with files: {why}"))?;
        probe.knobs = knobs([("op", does.name().into())]);
        if does.is_sized() {
            probe.size = vec![Bytes(FILE_BYTES).to_string()];
        }
        probe
    };
    for part in parts {
        if part.contains('=') {
            let (name, values) = typed::knob(part)?;
            if values.len() > 1 || name == DURING {
                return Err(format!("`{part}` is not one value of a knob"));
            }
            probe.knobs.insert(name, values);
        } else if let Ok(path) = typed::path(part) {
            probe.path = vec![path];
        } else if probe.kind.is_sized() {
            let bytes: Bytes = typed::sizes(part)?
                .parse()
                .map_err(|_| format!("`{part}` is neither a path nor a size nor NAME=VALUE"))?;
            probe.size = vec![bytes.to_string()];
        } else {
            return Err(format!("`{part}` is neither a path nor NAME=VALUE"));
        }
    }
    Ok(probe)
}

fn knobs<const N: usize>(
    values: [(&str, String); N],
) -> std::collections::BTreeMap<String, Vec<String>> {
    values
        .map(|(name, value)| (name.to_owned(), vec![value]))
        .into()
}

/// The service of files of this name; `nfs` is what is used most.
fn service(word: &str) -> Option<AnyPath> {
    let word = if word == "nfs" { "nfs3" } else { word };
    match word.parse() {
        Ok(path @ AnyPath::Files(_)) => Some(path),
        _ => None,
    }
}

/// The word of a service, the shortest that is read as it.
fn service_word(path: FilesPath) -> String {
    let name = path.name();
    let short = [Some("nfs"), name.split_once(':').map(|(word, _)| word)];
    let is_it = |word: &&str| service(word) == Some(AnyPath::Files(path));
    let short = short.into_iter().flatten().find(is_it);
    short.unwrap_or(name).into()
}

/// What was measured, in one word.
pub fn name(factors: &Factors) -> String {
    let path: Option<AnyPath> = factors.path.parse().ok();
    let mut knobs = factors.knobs.clone();
    knobs.remove(DURING);
    let mut take = |name: &str| knobs.remove(name).unwrap_or_default();
    let mut parts = match (factors.probe.as_str(), path) {
        ("files", Some(AnyPath::Files(path))) => vec![service_word(path), take("op")],
        ("npb", _) => {
            let (kernel, class) = (take("kernel"), take("class"));
            let class = (class != "S").then_some(class);
            ["npb".into(), kernel].into_iter().chain(class).collect()
        }
        ("rate", _) => vec!["rate".into(), take("rate")],
        (probe, _) => vec![factors.mode.clone().unwrap_or_else(|| probe.into())],
    };
    let is_usual_path = matches!(path, Some(AnyPath::Files(_)))
        || path == Some(AnyPath::TCP)
        || factors.probe == "npb" && factors.path == "native:tcp";
    if !is_usual_path {
        parts.push(factors.path.clone());
    }
    let usual = match factors.probe.as_str() {
        "files" => FILE_BYTES,
        _ => {
            let known = KINDS.iter().find(|(word, ..)| *word == parts[0]);
            known.map_or(0, |(.., size)| *size)
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
    use crate::layout::{blocks, tests::net};
    use crate::plan::{Plan, Repeat, TestbedPlan};

    fn read(text: &str) -> ProbePlan {
        match Workload::read(text) {
            Ok(Workload::Probe(probe)) => *probe,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn texts_become_probes() {
        let nfs = read("nfs:write");
        assert_eq!(
            (nfs.kind, nfs.path[0].to_string(), &*nfs.knobs["op"]),
            (
                ProbeKind::Files,
                "nfs3:tcp".into(),
                &["write".to_owned()][..]
            )
        );
        let udp = read("nfs2:udp:get:1M:outstanding=4@fddi");
        assert_eq!(udp.path[0].to_string(), "nfs2:udp");
        assert_eq!((&*udp.size[0], &*udp.networks[0]), ("1MiB", "fddi"));
        assert_eq!(
            (&*udp.knobs["op"][0], &*udp.knobs["outstanding"][0]),
            ("read", "4")
        );
        let lu = read("npb:LU:w:ranks=2");
        assert_eq!(
            (&*lu.knobs["kernel"][0], &*lu.knobs["class"][0]),
            ("lu", "W")
        );
        assert_eq!(read("messages:64K").mode, Some(Mode::Message));
        assert_eq!(read("rate:1000").knobs["rate"], ["1000"]);
        assert_eq!(
            Workload::read("load:0.6:law=on-off:20"),
            Ok(Workload::Load("0.6:law=on-off:20".into()))
        );
    }

    #[test]
    fn names_are_read_again() {
        for text in [
            "stream",
            "stream:udp",
            "stream:64KiB",
            "message",
            "latency",
            "latency:udp:1KiB",
            "rate:1000",
            "nfs:read",
            "nfs:write:1MiB",
            "nfs2:write",
            "nfs2:tcp:read",
            "nfs3:udp:write:outstanding=4",
            "nfs:getattr",
            "npb:lu",
            "npb:cg:W:ranks=2",
        ] {
            let mut probe = read(text);
            // What an option would say by itself is no part of a name.
            let testbed = TestbedPlan {
                kind: crate::plan::Kind::Lab,
                ..TestbedPlan::default()
            };
            probe.name = Some("one".into());
            let mut plan = Plan::new(testbed, vec![probe], Repeat::default()).filled();
            plan.loads = vec![LoadPlan {
                together: vec!["one".into()],
                ..LoadPlan::level("0")
            }];
            plan.check().unwrap();
            let blocks = blocks(&plan, &[net("ethernet-100")]).unwrap();
            assert_eq!(name(&blocks[0].cells[0].factors), text);
            assert_eq!(
                figure(&blocks[0].cells[0].factors),
                blocks[0].quantity(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, word) in [
            ("", "no kind"),
            ("gopher:get", "no kind `gopher`"),
            ("nfs", "read, write"),
            ("nfs:burn", "read, write"),
            ("npb", "npb:lu"),
            ("rate", "rate:1000"),
            ("stream:fast", "`fast`"),
            ("stream:streams=1,2", "not one value"),
            ("load:0", "is none"),
            ("load:0.6@fddi", "network of the others"),
            ("load:7", "two ways"),
        ] {
            let error = Workload::read(text).unwrap_err();
            assert!(
                error.contains(word) && error.contains("stream:udp"),
                "{text}: {error}"
            );
        }
    }
}
