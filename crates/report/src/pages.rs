//! What the page is given beside one run: the list of a store's runs, two runs side by side, and a history.
//!
//! Model:   the page knows by `schema` which of them it holds. Words that the terminal has too are made where the terminal's are, so that
//!          a configuration is called the same everywhere.
//! Units:   as of the types within.
//! Checked: `a_comparison_has_its_words`, `a_list_has_the_newest`, `each_page_says_what_it_holds`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Number, Run, RunHead, RunState};

use crate::View;
use crate::compare::{Comparison, Limits, beside};
use crate::history::History;

/// The most runs of a list.
pub const LISTED_MAX: usize = 1_000;

/// What one page shows.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub enum PageData<'a> {
    /// A run.
    Run(&'a View),
    /// The runs of a store.
    Runs(&'a RunList),
    /// Two runs.
    Compared(&'a ComparedRuns),
    /// A history.
    History(&'a HistoryOfRuns),
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedRun {
    /// Its id.
    pub run: String,
    /// What it is called; null where it is not.
    pub name: Option<String>,
    /// When it began.
    pub began_unix_ns: u64,
    /// When it ended; null while it runs, and after it was killed.
    pub ended_unix_ns: Option<u64>,
    /// How far it came.
    pub state: RunState,
    /// The command as it was given.
    pub command: String,
}

impl ListedRun {
    /// A run of this head and name.
    pub fn of(head: &RunHead, name: Option<String>) -> Self {
        Self {
            run: head.id.clone(),
            name,
            began_unix_ns: head.began_unix_ns,
            ended_unix_ns: head.ended_unix_ns,
            state: head.state,
            command: head.command.clone(),
        }
    }
}

/// The name and version of a list's data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunListSchema {
    /// The first.
    #[default]
    #[serde(rename = "sonde-runs/1")]
    V1,
}

/// The runs of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// `sonde-runs/1`.
    pub schema: RunListSchema,
    /// The folder of the store.
    pub store: String,
    /// The runs, the newest first.
    pub runs: Vec<ListedRun>,
    /// How many older ones there are beside these.
    pub older: u64,
}

impl RunList {
    /// Of the runs in the store of this folder, the newest first.
    pub fn of(store: String, mut runs: Vec<ListedRun>) -> Self {
        let older = runs.len().saturating_sub(LISTED_MAX) as u64;
        runs.truncate(LISTED_MAX);
        Self {
            schema: RunListSchema::V1,
            store,
            runs,
            older,
        }
    }
}

/// The name and version of a comparison's data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ComparedSchema {
    /// The first.
    #[default]
    #[serde(rename = "sonde-compare/1")]
    V1,
}

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRuns {
    /// `sonde-compare/1`.
    pub schema: ComparedSchema,
    /// The first run, the baseline.
    pub a: ListedRun,
    /// The second.
    pub b: ListedRun,
    /// What both have, and in what they differ.
    pub comparison: Comparison,
    /// The rows of the comparison in words, in their order.
    pub names: Vec<String>,
    /// Configurations that only the first run has, in words.
    pub only_a: Vec<String>,
    /// Configurations that only the second run has, in words.
    pub only_b: Vec<String>,
    /// Changes below this share are none.
    pub threshold: Number,
    /// How far apart equal runs are, in a sentence.
    pub equal_runs: String,
    /// How configurations that differ can be compared, in a sentence; null where none differ.
    pub remedy: Option<String>,
}

impl ComparedRuns {
    /// These runs with what they are called, and what their comparison said.
    pub fn of(
        runs: [&Run; 2],
        names: [Option<String>; 2],
        comparison: Comparison,
        limits: &Limits,
    ) -> Self {
        let [a, b] = runs;
        let [name_a, name_b] = names;
        let words = beside(&comparison, runs);
        Self {
            schema: ComparedSchema::V1,
            a: ListedRun::of(&a.head, name_a),
            b: ListedRun::of(&b.head, name_b),
            names: comparison.rows.iter().map(|row| row.named()).collect(),
            only_a: words.only_a,
            only_b: words.only_b,
            threshold: Number::of(limits.threshold_per_mille, 1_000),
            equal_runs: words.equal_runs,
            remedy: words.remedy,
            comparison,
        }
    }
}

/// The name and version of a history's data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HistorySchema {
    /// The first.
    #[default]
    #[serde(rename = "sonde-history/1")]
    V1,
}

/// The history of a store's runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryOfRuns {
    /// `sonde-history/1`.
    pub schema: HistorySchema,
    /// What all its runs are called; null where runs of any name are in it.
    pub name: Option<String>,
    /// The history.
    pub history: History,
}

impl HistoryOfRuns {
    /// A history of runs of this name, or of any.
    pub fn of(name: Option<String>, history: History) -> Self {
        Self {
            schema: HistorySchema::V1,
            name,
            history,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::history::Chronicle;
    use crate::testing::{Runs, net};

    fn run(network: &str) -> Run {
        Runs::new()
            .network(net(network))
            .latency(network, "tcp", 1, 20_000)
            .done()
    }

    fn compared(a: &Run, b: &Run) -> ComparedRuns {
        let limits = Limits::default();
        let found = compare(a, b, &Chronicle::default(), &limits).unwrap();
        ComparedRuns::of([a, b], [Some("before".into()), None], found, &limits)
    }

    #[test]
    fn a_comparison_has_its_words() {
        let (wire, wan) = (run("wire"), run("wan"));
        let same = compared(&wire, &wire);
        assert_eq!(same.names, ["latency of 1 B over tcp on wire"]);
        assert_eq!((same.remedy, same.threshold), (None, Number(0.02)));
        assert!(same.equal_runs.contains("is not known"));
        assert_eq!(
            (same.a.name.as_deref(), same.b.name),
            (Some("before"), None)
        );
        let other = compared(&wire, &wan);
        assert_eq!(other.only_a, ["latency of 1 B over tcp on wire"]);
        assert_eq!(other.only_b, ["latency of 1 B over tcp on wan"]);
        let remedy = other.remedy.unwrap();
        assert!(remedy.starts_with("`--ignore network`"), "{remedy}");
    }

    #[test]
    fn a_list_has_the_newest() {
        let head = run("wire").head;
        let runs = |count: usize| {
            let of = |number: usize| {
                let one = ListedRun::of(&head, None);
                let run = number.to_string();
                ListedRun { run, ..one }
            };
            RunList::of("here".into(), (0..count).map(of).collect())
        };
        assert_eq!((runs(3).runs.len(), runs(3).older), (3, 0));
        let many = runs(LISTED_MAX + 7);
        assert_eq!((many.runs.len(), many.older), (LISTED_MAX, 7));
        assert_eq!(many.runs[0].run, "0");
    }

    #[test]
    fn each_page_says_what_it_holds() {
        let wire = run("wire");
        let view = View::of(&wire);
        let runs = RunList::of("here".into(), Vec::new());
        let compared = compared(&wire, &wire);
        let mut chronicle = Chronicle::default();
        chronicle.add(&wire);
        let history = HistoryOfRuns::of(None, chronicle.history(20));
        let schema = |data: PageData<'_>| serde_json::to_value(data).unwrap()["schema"].clone();
        assert_eq!(schema(PageData::Run(&view)), "sonde-view/1");
        assert_eq!(schema(PageData::Runs(&runs)), "sonde-runs/1");
        assert_eq!(schema(PageData::Compared(&compared)), "sonde-compare/1");
        assert_eq!(schema(PageData::History(&history)), "sonde-history/1");
    }
}
