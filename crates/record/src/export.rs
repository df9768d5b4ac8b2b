//! A run for other programs: its rows as CSV, or everything as JSON.
//!
//! Model:   CSV has one line for each row after a line of names, quoted where needed, with nothing for null; a row's
//!          verdict is its status, its deliveries and how many were late. JSON is the document that `--json` printed, and
//!          the run with every series, from which all can be worked out again.
//! Source:  RFC 4180. Deviations: lines end with a line feed alone.
//! Units:   as in a row.
//! Checked: `csv_has_the_fields_of_a_row`, `text_is_quoted`, `json_comes_back`, in tests/export.rs.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use sonde_measure::{CSV_COLUMNS, ResultRow, Run};

use crate::Document;

/// The name and version of an export's schema. A field is never removed or changed in meaning without a new number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExportName {
    /// The document is `sonde/2`; a launch is one record with a result for each of its cells, and what it saw is typed.
    #[default]
    #[serde(rename = "sonde-export/3")]
    V3,
}

/// Everything that is known of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Export")]
pub struct Export<C> {
    /// `sonde-export/3`.
    pub schema: ExportName,
    /// The results, as `--json` prints them.
    pub document: Document<C>,
    /// What they were worked out from.
    pub run: Run,
}

/// A run that could not be exported.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the export: {0}; look at the space and the permissions where it goes")]
pub struct ExportError(#[from] io::Error);

/// Writes everything as JSON.
///
/// # Errors
/// When it cannot be written.
pub fn export_json<C: Serialize>(
    document: Document<C>,
    run: &Run,
    mut to: impl Write,
) -> Result<(), ExportError> {
    let export = Export {
        schema: ExportName::V3,
        document,
        run: run.clone(),
    };
    serde_json::to_writer_pretty(&mut to, &export).map_err(io::Error::from)?;
    to.write_all(b"\n")?;
    Ok(to.flush()?)
}

/// Writes the rows as CSV.
///
/// # Errors
/// When it cannot be written.
pub fn export_csv(run: &Run, mut to: impl Write) -> Result<(), ExportError> {
    writeln!(to, "{}", CSV_COLUMNS.join(","))?;
    for row in run.rows() {
        let fields = fields(&row)?;
        writeln!(to, "{}", fields.join(","))?;
    }
    Ok(to.flush()?)
}

/// Rows as CSV, with these of their members as columns; what is not a plain value is its JSON.
///
/// # Errors
/// A row that is no JSON.
pub fn csv<T: Serialize>(columns: &[&str], rows: &[T]) -> Result<String, serde_json::Error> {
    let mut lines = vec![columns.join(",")];
    for row in rows {
        let value = serde_json::to_value(row)?;
        let fields = columns.iter().map(|name| text(&value[*name]));
        lines.push(fields.collect::<Vec<_>>().join(","));
    }
    Ok(lines.join("\n") + "\n")
}

fn fields(row: &ResultRow) -> Result<Vec<String>, io::Error> {
    let value = serde_json::to_value(row)?;
    let verdict = &value["verdict"];
    let field = |name: &&str| match *name {
        "verdict" => text(&verdict["status"]),
        "verdict_deliveries" => text(&verdict["deliveries"]),
        "verdict_late" => text(&verdict["late"]),
        "knobs" => {
            let knobs = row
                .knobs
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            quoted(&knobs.collect::<Vec<_>>().join(" "))
        }
        "doubts" => {
            let doubts = value["doubts"].as_array().into_iter().flatten();
            let doubts = doubts.filter_map(Value::as_str);
            quoted(&doubts.collect::<Vec<_>>().join(" "))
        }
        name => text(&value[name]),
    };
    Ok(CSV_COLUMNS.iter().map(field).collect())
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}
