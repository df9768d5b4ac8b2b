//! What every command prints with `--json`: one document, whose schema is made from the types.
//!
//! Model:   `command` names the command, and with it what stands in its document beside what is in all of them: rows, findings, the
//!          verdict, warnings. `C` is that part, an enum with the tag `command`; the command has its variants beside what makes them.
//!          Nothing is left out of a document: what is not known is null.
//! Checked: `a_document_names_its_schema`, `the_schema_requires_every_field_of_a_row`; `tests/json.rs` of the command, which holds
//!          what each command prints to the schema.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Deserialize, Serialize};

use sonde_measure::{Judged, Number, Quantity, ResultRow, Run};

/// The name and version of the schema. A field is never removed or changed in meaning without a new number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SchemaName {
    /// One document for all commands.
    #[default]
    #[serde(rename = "sonde/2")]
    V2,
}

/// What a command prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct Document<C> {
    /// `sonde/2`.
    pub schema: SchemaName,
    /// Which command it is, and what stands in its document alone.
    #[serde(flatten)]
    pub command: C,
    /// The command line as it was given, of what measured the run; without the program's name.
    pub arguments: String,
    /// The id of the run in the store; null where nothing was stored.
    pub run: Option<String>,
    /// One for each quantity of each cell; empty where nothing was measured.
    pub results: Vec<ResultRow>,
    /// What follows from the results, as the report says it; warnings first.
    pub findings: Vec<DocumentFinding>,
    /// What was judged.
    pub verdict: Judgement,
    /// Check these before trusting the results.
    pub warnings: Vec<String>,
}

/// A sentence that follows from the results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Finding")]
pub struct DocumentFinding {
    /// The rule that found it, as `window-limited`.
    pub id: String,
    /// `note`: it is so; `advice`: something can be changed for the better; `warning`: check this before trusting the results.
    pub severity: String,
    /// The network that it is about; null where it is about several.
    pub network: Option<String>,
    /// The path that it is about; null where it is about several.
    pub path: Option<String>,
    /// What was found.
    pub sentence: String,
    /// The figures that it follows from, with their units.
    pub figures: Option<String>,
    /// What to do.
    pub remedy: Option<String>,
}

/// A judgement, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// What it is; null where the command judges nothing.
    pub state: Option<Judged>,
    /// Why it is not `pass`, or why there is none.
    pub reasons: Vec<String>,
    /// The result of each requirement, in the plan's order; empty where nothing is required.
    pub requirements: Vec<JudgedRequirement>,
}

/// The result of a requirement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgedRequirement {
    /// It in words, as `latency p99 of 1 B over tcp <= 30.00 µs`.
    pub requirement: String,
    /// What is bounded.
    pub quantity: Quantity,
    /// Which figure of it: `p50`, `p99`, `max`.
    pub statistic: String,
    /// `fail` with any row that fails, or without a row; else `inconclusive` with any that is; else `pass`.
    pub state: Judged,
    /// The figure of the worst row, in the unit of the quantity; null where that has none.
    pub figure: Option<Number>,
    /// The bound that it was held against; of a part of the ceiling, the rate.
    pub bound: Option<Number>,
    /// How far it is on the right side of the bound, in parts of the bound; below 0 on the wrong side.
    pub margin: Option<Number>,
    /// Rows that pass.
    pub passed: u64,
    /// Rows that fail.
    pub failed: u64,
    /// Rows that are inconclusive.
    pub inconclusive: u64,
    /// Hosts that all failing rows have in common, where there are several rows.
    pub hosts: Vec<String>,
    /// The rows, the worst first; at most 20.
    pub worst: Vec<JudgedRow>,
}

/// The result of a requirement in one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgedRow {
    /// What it is.
    pub state: Judged,
    /// The figure, in the unit of the quantity; null where there is none.
    pub figure: Option<Number>,
    /// How far it is on the right side of the bound, in parts of the bound.
    pub margin: Option<Number>,
    /// The row's cell.
    pub cell: String,
    /// Its network.
    pub network: String,
    /// Its path.
    pub path: String,
    /// Its probe.
    pub probe: String,
    /// User bytes in a message.
    pub size_bytes: Option<u64>,
    /// The sending host; null where the row is of several pairs.
    pub src: Option<String>,
    /// The receiving host.
    pub dst: Option<String>,
    /// Why it does not pass, beside the figure; how it is known where it does.
    pub why: Option<String>,
}

impl Judgement {
    /// Nothing is judged, and why.
    pub fn none(why: &str) -> Self {
        Self {
            state: None,
            reasons: vec![why.into()],
            requirements: Vec::new(),
        }
    }
}

impl<C> Document<C> {
    /// A document of which nothing was stored.
    pub fn new(command: C, arguments: &str, verdict: Judgement) -> Self {
        Self {
            schema: SchemaName::V2,
            command,
            arguments: arguments.into(),
            run: None,
            results: Vec::new(),
            findings: Vec::new(),
            verdict,
            warnings: Vec::new(),
        }
    }

    /// The document of a run, with what was found of it.
    pub fn of(command: C, run: &Run, findings: Vec<DocumentFinding>, verdict: Judgement) -> Self {
        Self {
            run: (!run.head.id.is_empty()).then(|| run.head.id.clone()),
            results: run.rows(),
            findings,
            warnings: run.warnings.clone(),
            ..Self::new(command, &run.head.command, verdict)
        }
    }
}

/// The JSON schema (2020-12) of what is printed, made from the types.
pub fn schema<T: JsonSchema>() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use sonde_measure::{CellRecord, Factors, Layer, RunHead, RunState, Testbed};

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "command")]
    enum Command {
        #[serde(rename = "assess")]
        Assess,
    }

    /// A run with one cell that was not measured yet.
    fn planned() -> Run {
        let factors = Factors {
            probe: "latency".into(),
            mode: None,
            layer: Layer::Transport,
            path: "tcp".into(),
            method: None,
            knobs: Default::default(),
            wait: None,
            network: "wire".into(),
            testbed: Testbed::Lab,
            hosts: vec!["h1".into(), "h2".into()],
            profile: None,
            attachment: None,
            load: None,
            size_bytes: 1,
        };
        Run {
            head: RunHead {
                id: String::new(),
                command: "probe".into(),
                plan: String::new(),
                seed: 0,
                version: "0".into(),
                began_unix_ns: 0,
                ended_unix_ns: None,
                state: RunState::Open,
            },
            hosts: Vec::new(),
            networks: Vec::new(),
            cells: vec![CellRecord {
                id: factors.cell().unwrap(),
                factors,
                launches: 1,
                skipped: None,
            }],
            launches: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_document_names_its_schema() {
        let document = Document::new(Command::Assess, "assess", Judgement::none("why"));
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(
            value,
            json!({"schema": "sonde/2", "command": "assess", "arguments": "assess", "run": null, "results": [], "findings": [],
                "verdict": {"state": null, "reasons": ["why"], "requirements": []}, "warnings": []})
        );
        let again: Document<Command> = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(again, document);
        for (field, wrong) in [("schema", "sonde/1"), ("command", "nosuch")] {
            let mut other = value.clone();
            other[field] = wrong.into();
            assert!(serde_json::from_value::<Document<Command>>(other).is_err());
        }
    }

    #[test]
    fn the_schema_requires_every_field_of_a_row() {
        let schema = schema::<Document<Command>>();
        let row = &schema["$defs"]["ResultRow"];
        let required: Vec<&str> = row["required"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let printed = serde_json::to_value(&planned().rows()[0]).unwrap();
        for name in printed.as_object().unwrap().keys() {
            assert!(required.contains(&name.as_str()), "{name} may be absent");
            let described = &row["properties"][name];
            assert!(
                described["description"].is_string(),
                "{name} is not described: {described}"
            );
        }
        assert_eq!(required.len(), 41);
        assert_eq!(row["properties"]["p99"]["type"], json!(["number", "null"]));
        assert!(schema["$defs"]["Verdict"].is_object());
    }
}
