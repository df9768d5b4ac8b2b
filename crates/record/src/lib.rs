//! What a run is: the types behind `--json`, their schema, the identity of a cell, and the store.
//!
//! Model:   a [`Document`] is one command's results; a [`ResultRow`] one quantity of one cell; a [`NetworkRow`] one entry
//!          of the catalogue. Absent is null, never NaN and never left out. A [`Run`] is what they come from; a [`Store`]
//!          keeps it while it is measured.
//! Units:   times are integer nanoseconds, rates integer bits a second, sizes bytes; shares are fractions of one.
//! Checked: the tests of each module; `a_row_has_exactly_the_fields_of_the_contract`.
#![forbid(unsafe_code)]

mod cell;
mod document;
mod export;
mod network;
mod number;
mod row;
mod rows;
mod run;
mod store;
mod verdict;

pub use cell::{CellError, cell_id};
pub use document::{Document, NetworkList, Printed, SchemaName, schema};
pub use export::{
    CSV_COLUMNS, Export, ExportError, ExportName, export_csv, export_json, export_schema,
};
pub use network::{NetworkRow, OverheadStep};
pub use number::Number;
pub use row::{Backpressure, Layer, Phase, Quantity, ResultRow, Status, Step, Testbed};
pub use run::{
    Ceiling, CellRecord, ClockRecord, EventRecord, Factors, HostFacts, HostRecord, Interference,
    LaunchRecord, Measurement, NetworkRecord, Run, RunHead, RunState,
};
pub use store::{Store, StoreError};
pub use verdict::{Lateness, LatenessBucket, Verdict, VerdictStatus};
