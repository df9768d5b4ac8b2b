//! What is kept and printed of a run: the store, exports, the document behind `--json` and its schema.
//!
//! Model:   a [`Document`] is what one command prints. A [`Store`] keeps a [`Run`](sonde_measure::Run) while it is measured.
//! Units:   as in `measure`: integer nanoseconds, bits per second, bytes; shares are fractions of one.
//! Checked: the tests of each module.
#![forbid(unsafe_code)]

mod document;
mod export;
#[doc(hidden)]
pub mod fuzz;
mod store;

pub use document::{
    Document, DocumentFinding, JudgedRequirement, JudgedRow, Judgement, SchemaName, schema,
};
pub use export::{Export, ExportError, ExportName, csv, export_csv, export_json};
pub use store::{LATEST, NAMED, RunName, Store, StoreError};
