//! What a command prints with `--json`, and the schema of it.
//!
//! Checked: `a_document_names_its_schema`, `the_schema_requires_every_field_of_a_row`.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Deserialize, Serialize};

use sonde_measure::{NetworkRow, ResultRow, Run};

/// The name and version of the schema. A field is never removed or changed in meaning without a new number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SchemaName {
    /// The first.
    #[default]
    #[serde(rename = "sonde/1")]
    V1,
}

/// The results of one command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// `sonde/1`.
    pub schema: SchemaName,
    /// The command as it was given.
    pub command: String,
    /// The id of the run in the store; null where nothing was stored.
    pub run: Option<String>,
    /// One for each quantity of each cell.
    pub results: Vec<ResultRow>,
    /// Check these before trusting the results.
    pub warnings: Vec<String>,
}

impl Document {
    /// What `--json` prints of a run.
    pub fn of(run: &Run) -> Self {
        Self {
            schema: SchemaName::V1,
            command: run.head.command.clone(),
            run: (!run.head.id.is_empty()).then(|| run.head.id.clone()),
            results: run.rows(),
            warnings: run.warnings.clone(),
        }
    }
}

/// The catalogue of networks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkList {
    /// `sonde/1`.
    pub schema: SchemaName,
    /// The command as it was given.
    pub command: String,
    /// One for each name that `--network` takes.
    pub networks: Vec<NetworkRow>,
    /// Check these before trusting the figures.
    pub warnings: Vec<String>,
}

/// Anything that `--json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Printed {
    /// Results.
    Results(Document),
    /// `sonde lab list`.
    Networks(NetworkList),
}

/// The JSON schema (2020-12) of [`Printed`], made from the types.
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Printed>()
        .to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use sonde_measure::{CellRecord, Factors, Layer, RunHead, RunState, Testbed};

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
        let document = Document {
            command: "probe".into(),
            ..Default::default()
        };
        assert_eq!(
            serde_json::to_value(&document).unwrap(),
            json!({"schema": "sonde/1", "command": "probe", "run": null, "results": [], "warnings": []})
        );
        let other =
            json!({"schema": "sonde/2", "command": "", "run": null, "results": [], "warnings": []});
        assert!(serde_json::from_value::<Document>(other).is_err());
        let list =
            json!({"schema": "sonde/1", "command": "lab list", "networks": [], "warnings": []});
        assert!(matches!(
            serde_json::from_value(list).unwrap(),
            Printed::Networks(_)
        ));
    }

    #[test]
    fn the_schema_requires_every_field_of_a_row() {
        let schema = schema();
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
        assert_eq!(required.len(), 33);
        assert_eq!(row["properties"]["p99"]["type"], json!(["number", "null"]));
        assert!(
            schema["$defs"]["NetworkRow"].is_object() && schema["$defs"]["Verdict"].is_object()
        );
    }
}
