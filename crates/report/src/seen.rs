//! What the launches saw, fact by fact: the page shows all of it, whether a rule reads it or not.
//!
//! Model:   the launches of one line and probe are taken together. A fact is a leaf of a launch beside its results, named by its
//!          path; numbers in lists and those of several launches give their least and greatest, words are listed. The flows of
//!          a pattern are of one line here.
//! Units:   in the names of facts, as in the record.
//! Checked: `facts_of_several_launches_are_one_line`; xtask: `nearly_every_leaf_of_a_launch_is_read`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sonde_measure::{CellRecord, KnobValues, LaunchRecord, Line, LineField};

use crate::index::Index;

/// More words of one fact are counted.
const WORDS_MAX: usize = 6;
/// A longer word is cut.
const WORD_MAX: usize = 300;

/// What the launches of a line and probe saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenRow {
    /// The network.
    pub network: String,
    /// The path.
    pub path: String,
    /// How bytes are handed over, as `zerocopy`.
    pub method: Option<String>,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// The load of the network, as `0.6`; null where it was idle.
    pub load: Option<String>,
    /// What else was set, by name.
    pub knobs: KnobValues,
    /// The probe.
    pub probe: String,
    /// How many launches.
    pub launches: u64,
    /// Each fact: its path in a launch, and what it was.
    pub facts: Vec<(String, String)>,
}

/// What one fact was in several launches.
#[derive(Default)]
struct Fact {
    /// The least and the greatest number, as they are written.
    range: Option<[(f64, String); 2]>,
    words: BTreeSet<String>,
}

impl Fact {
    fn add(&mut self, value: &Value) {
        match (value, value.as_f64()) {
            (Value::Null, _) => {}
            (_, Some(number)) => {
                let one = || (number, value.to_string());
                let [least, most] = self.range.get_or_insert_with(|| [one(), one()]);
                if number < least.0 {
                    *least = one();
                }
                if number > most.0 {
                    *most = one();
                }
            }
            (Value::String(word), _) => {
                self.words.insert(word.chars().take(WORD_MAX).collect());
            }
            (other, _) => {
                self.words.insert(other.to_string());
            }
        }
    }

    fn text(&self) -> Option<String> {
        let range = self.range.as_ref();
        let range = range.map(|[(_, least), (_, most)]| match least == most {
            true => least.clone(),
            false => format!("{least} to {most}"),
        });
        let mut all: Vec<String> = range.into_iter().collect();
        all.extend(self.words.iter().take(WORDS_MAX).cloned());
        let more = self.words.len().saturating_sub(WORDS_MAX);
        if more > 0 {
            all.push(format!("{more} more"));
        }
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// The facts of one launch, added to those of others.
fn add(value: &Value, path: &str, facts: &mut BTreeMap<String, Fact>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| add(one, path, facts)),
        Value::Object(all) => {
            for (name, one) in all {
                let path = match path {
                    "" => name.clone(),
                    _ => format!("{path}.{name}"),
                };
                add(one, &path, facts);
            }
        }
        leaf => facts.entry(path.to_owned()).or_default().add(leaf),
    }
}

/// A launch as JSON, without what stands in the page elsewhere: results, which are large, and when it was.
fn as_json(launch: &LaunchRecord) -> Value {
    json!({
        "src": launch.src,
        "dst": launch.dst,
        "took_ns": launch.took_ns,
        "evidence": launch.evidence,
        "interference": launch.interference,
        "verdict": launch.verdict,
        "disturbances": launch.disturbances,
    })
}

/// The line of a cell, and its probe.
type Key = (Line, String);

fn key(cell: &CellRecord) -> Key {
    let line = cell.factors.line();
    let line = match cell.factors.probe.as_str() {
        "pattern" => line.without(&[LineField::Knobs]),
        _ => line,
    };
    (line, cell.factors.probe.clone())
}

/// What all launches saw, in the plan's order.
pub(crate) fn seen(index: &Index<'_>) -> Vec<SeenRow> {
    let mut all: BTreeMap<Key, (u64, BTreeMap<String, Fact>)> = BTreeMap::new();
    for (launch, cell) in index.starts() {
        let (launches, facts) = all.entry(key(cell)).or_default();
        *launches += 1;
        add(&as_json(launch), "", facts);
    }
    let row = |key: Key| {
        let (launches, facts) = all.remove(&key)?;
        let (line, probe) = key;
        let facts = facts
            .into_iter()
            .filter_map(|(path, fact)| Some((path, fact.text()?)));
        Some(SeenRow {
            network: line.network,
            path: line.path,
            method: line.method,
            wait: line.wait,
            load: line.load,
            knobs: line.knobs,
            probe,
            launches,
            facts: facts.collect(),
        })
    };
    // Each is taken once, at its first cell.
    index.run.cells.iter().map(key).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn facts_of_several_launches_are_one_line() {
        let mut run = Runs::new()
            .network(net("wire"))
            .setting("src_mss_bytes", "1448")
            .setting("dst_congestion", "cubic")
            .latency("wire", "tcp", 1, 20_000)
            .done();
        let other = &mut run.launches[1].evidence;
        other.src.socket.mss_bytes = Some(536);
        other.dst.socket.congestion = Some("reno".into());
        let seen = seen(&Index::new(&run));
        assert_eq!((seen.len(), seen[0].launches), (1, 6));
        let fact = |path: &str| {
            let mut facts = seen[0].facts.iter();
            facts
                .find(|(name, _)| name == path)
                .map(|(_, text)| text.as_str())
        };
        assert_eq!(fact("evidence.src.socket.mss_bytes"), Some("536 to 1448"));
        assert_eq!(fact("evidence.dst.socket.congestion"), Some("cubic, reno"));
        assert_eq!(fact("interference.host"), Some("h1, h2"));
        assert_eq!(fact("began_unix_ns"), None);
    }
}
