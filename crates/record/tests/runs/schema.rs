//! The JSON schemas beside the frozen ones of `corpus/inventory`, since no command prints them.
//!
//! Checked: with `CORPUS_WRITE` set they are written instead.

use std::path::PathBuf;

#[test]
fn the_schemas_are_those_of_the_inventory() {
    for (name, schema) in [
        ("schema.json", sonde_record::schema()),
        ("export-schema.json", sonde_record::export_schema()),
    ] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../corpus/inventory")
            .join(name);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("CORPUS_WRITE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let frozen = std::fs::read_to_string(&path).unwrap();
        let lines = frozen.lines().zip(text.lines()).enumerate();
        let first = lines.into_iter().find(|(_, (old, new))| old != new);
        assert!(
            frozen == text,
            "{name} differs from corpus/inventory/{name}, first in {first:?}: say so in the CHANGELOG, and run this test with \
             CORPUS_WRITE=1"
        );
    }
}
