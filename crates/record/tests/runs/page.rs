//! docs/store.md names every table and column, and no other, and every field of an export.

use crate::sample::Folder;
use crate::sample::Shown;
use rusqlite::Connection;
use sonde_record::{Document, Export, Store, schema};
use std::collections::BTreeSet;

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/store.md");
    std::fs::read_to_string(page).unwrap()
}

/// What stands in backquotes at the begin of a table's lines below each heading that is a table's name.
fn documented() -> BTreeSet<(String, String)> {
    let text = page();
    let mut table = String::new();
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            table = heading
                .strip_prefix('`')
                .and_then(|rest| rest.strip_suffix('`'))
                .unwrap_or_default()
                .into();
        } else if let Some(cell) = line
            .strip_prefix("| `")
            .and_then(|rest| rest.split(" |").next())
        {
            if !table.is_empty() {
                found.extend(
                    cell.split('`')
                        .filter(|part| !part.trim_matches([',', ' ']).is_empty())
                        .map(|column| (table.clone(), column.to_string())),
                );
            }
        }
    }
    found
}

#[test]
fn every_column_is_documented() {
    let dir = Folder::new("page");
    let path = Store::open(&dir).unwrap().path().to_path_buf();
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
        WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let columns: BTreeSet<(String, String)> = columns.map(Result::unwrap).collect();
    assert!(columns.len() > 60, "{columns:?}");
    assert_eq!(documented(), columns);
}

#[test]
fn every_field_of_an_export_is_documented() {
    let (export, printed) = (schema::<Export<Shown>>(), schema::<Document<Shown>>());
    // What a network is stands in json.md, with what `lab list` prints.
    let json = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let text = page() + &std::fs::read_to_string(json).unwrap();
    let mut fields = 0;
    let definitions = export["$defs"].as_object().unwrap().iter();
    for (kind, definition) in definitions.chain([(&"Export".to_string(), &export)]) {
        // What `--json` prints is in json.md, which a test of its own holds to it.
        if printed["$defs"].get(kind).is_some() || kind == "Document" {
            continue;
        }
        for field in definition["properties"].as_object().into_iter().flatten() {
            fields += 1;
            assert!(
                text.contains(&format!("`{}`", field.0)),
                "{kind}.{} is not in docs/store.md",
                field.0
            );
        }
    }
    assert!(fields > 60, "{fields}");
}
