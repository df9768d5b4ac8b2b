//! What is measured beside other things, as it is written: `stream`, `nfs:write`, `npb:lu`, `load:0.6`, `latency:64KiB@fddi`.
//!
//! Model:   a kind, then parts behind colons in any order that makes sense: a path, a size, what is done, knobs as NAME=VALUE; and behind
//!          an `@` another network of the same hosts. Each becomes one probe of a plan. `sonde_measure::workload` names what was measured.
//! Units:   sizes in bytes.
//! Checked: `texts_become_probes`, `names_are_read_again`, `what_is_wrong_is_said`.

use crate::any_path::AnyPath;
use crate::cli::typed;
use crate::plan::{LoadPlan, Mode, ProbeKind, ProbePlan};
use sonde_measure::files::Operation;
use sonde_measure::workload::{self, DURING, FILE_BYTES};
use sonde_units::Bytes;

/// How workloads are written.
pub const GRAMMAR: &str = "write stream, stream:udp, message:64KiB, latency, rate:1000, nfs:read, nfs:write, nfs2:write, npb:lu, npb:cg:W \
                           or load:0.6; @NETWORK behind one of them puts it on another network of the same hosts";

/// A kind over a channel: its word, its kind, its mode.
type Kind = (&'static str, ProbeKind, Option<Mode>);

const KINDS: [Kind; 4] = [
    ("stream", ProbeKind::Throughput, Some(Mode::Stream)),
    ("message", ProbeKind::Throughput, Some(Mode::Message)),
    ("latency", ProbeKind::Latency, None),
    ("rate", ProbeKind::Rate, None),
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
    } else if let Some((_, kind, mode)) = KINDS.iter().find(|(known, ..)| *known == word) {
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

/// The service of files of this name.
fn service(word: &str) -> Option<AnyPath> {
    workload::service(word).map(AnyPath::Files)
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
            assert_eq!(workload::name(&blocks[0].cells[0].factors), text);
            assert_eq!(
                workload::figure(&blocks[0].cells[0].factors),
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
