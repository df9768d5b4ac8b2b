//! Documents and exports that are read back.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use sonde_measure::Run;
use sonde_record::{Document, Export};

type Anything = BTreeMap<String, IgnoredAny>;

pub fn run(bytes: &[u8]) {
    if let Ok(run) = serde_json::from_slice::<Run>(bytes) {
        same(&run);
    }
    if let Ok(export) = serde_json::from_slice::<Export<Anything>>(bytes) {
        same(&export.run);
    }
    let _ = serde_json::from_slice::<Document<Anything>>(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        sonde_cli::fuzz::messages(text);
    }
}

/// What was read is written so that it is read again.
fn same(run: &Run) {
    let again = serde_json::to_vec(run).expect("a run is JSON");
    let read: Run = serde_json::from_slice(&again).expect("it was written by us");
    assert_eq!(&read, run);
}
