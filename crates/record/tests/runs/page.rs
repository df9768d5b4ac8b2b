//! docs/store.md names every table and column, and no other.

use crate::sample::Folder;
use rusqlite::Connection;
use sonde_record::Store;
use std::collections::BTreeSet;

/// What stands in backquotes at the begin of a table's lines below each heading that is a table's name.
fn documented() -> BTreeSet<(String, String)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/store.md");
    let text = std::fs::read_to_string(page).unwrap();
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
