//! Runs for other programs.

use crate::sample::full;
use crate::sample::{Shown, document};
use sonde_measure::CSV_COLUMNS;
use sonde_record::{Export, export_csv, export_json, schema};

/// A line's fields, by RFC 4180.
fn parse(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => field.push(rest.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut field));
                lines.push(std::mem::take(&mut line));
            }
            c => field.push(c),
        }
    }
    assert!(
        !quoted && field.is_empty() && line.is_empty(),
        "an open end"
    );
    lines
}

fn csv(run: &sonde_measure::Run) -> String {
    let mut text = Vec::new();
    export_csv(run, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn csv_has_the_fields_of_a_row() {
    let run = full("r");
    let lines = parse(&csv(&run));
    let rows = run.rows();
    assert_eq!(lines.len(), rows.len() + 1);
    assert_eq!(lines[0], CSV_COLUMNS);
    assert!(lines.iter().all(|line| line.len() == CSV_COLUMNS.len()));
    // All fields of a row are columns.
    let value = serde_json::to_value(&rows[0]).unwrap();
    for name in value.as_object().unwrap().keys() {
        assert!(CSV_COLUMNS.contains(&name.as_str()), "{name}");
    }
    let column = |name: &str| {
        CSV_COLUMNS
            .iter()
            .position(|column| *column == name)
            .unwrap()
    };
    for (line, row) in lines[1..].iter().zip(&rows) {
        assert_eq!(line[column("cell")], row.cell);
        assert_eq!(
            line[column("p50")],
            row.p50.map(|p50| p50.to_string()).unwrap_or_default()
        );
        assert_eq!(line[column("samples")], row.samples.to_string());
        assert_eq!(
            line[column("verdict")],
            if row.verdict.is_some() { "passed" } else { "" }
        );
    }
}

#[test]
fn text_is_quoted() {
    let run = full("r");
    let lines = parse(&csv(&run));
    let told = lines
        .iter()
        .flatten()
        .find(|field| field.contains("reset"))
        .unwrap();
    assert!(told.contains("at \"send\"\nafter 3 s"), "{told}");
}

#[test]
fn each_of_what_needs_quotes_is_quoted_alone() {
    for text in ["a,b", "a\nb", "a\rb", "a\"b"] {
        let row = std::collections::BTreeMap::from([("reason", text)]);
        let quoted = text.replace('"', "\"\"");
        let told = sonde_record::csv(&["reason"], &[row]).unwrap();
        assert_eq!(told, format!("reason\n\"{quoted}\"\n"));
    }
}

#[test]
fn json_comes_back() {
    let run = full("r");
    let mut text = Vec::new();
    export_json(document(&run), &run, &mut text).unwrap();
    let export: Export<Shown> = serde_json::from_slice(&text).unwrap();
    assert_eq!(export.run, run);
    assert_eq!(export.document, document(&run));
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value["schema"], "sonde-export/3");
    assert_eq!(
        value["run"]["launches"][0]["results"][0]["series"][0]["series"]["first"]
            .as_array()
            .unwrap()
            .len(),
        1_000
    );
}

#[test]
fn all_that_is_exported_is_in_the_schema() {
    let schema = schema::<Export<Shown>>();
    let defs = schema["$defs"].as_object().unwrap();
    for name in [
        "Run",
        "RunHead",
        "HostRecord",
        "HostFacts",
        "ClockRecord",
        "NetworkRecord",
        "Ceiling",
        "CellRecord",
        "Factors",
        "LaunchRecord",
        "Measurement",
        "Interference",
        "EventRecord",
        "Verdict",
    ] {
        let fields = defs[name]["properties"]
            .as_object()
            .unwrap_or_else(|| panic!("{name} has no fields"));
        for (field, described) in fields {
            assert!(
                described["description"].is_string() || described["$ref"].is_string(),
                "{name}.{field}: {described}"
            );
        }
    }
    assert_eq!(
        defs["Measurement"]["properties"]["series"]["type"],
        "object"
    );
}

#[test]
fn a_full_pipe_is_told() {
    let error = export_csv(&full("r"), &mut &mut [0_u8; 100][..]).unwrap_err();
    assert!(
        error.to_string().contains("cannot write the export"),
        "{error}"
    );
}
