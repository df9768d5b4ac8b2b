//! What a run is: the types behind `--json`, their schema, and the identity of a cell.
//!
//! Model:   a [`Document`] is one command's results; a [`ResultRow`] one quantity of one cell; a [`NetworkRow`] one entry
//!          of the catalogue. Absent is null, never NaN and never left out.
//! Units:   times are integer nanoseconds, rates integer bits a second, sizes bytes; shares are fractions of one.
//! Checked: the tests of each module; `a_row_has_exactly_the_fields_of_the_contract`.
#![forbid(unsafe_code)]

mod cell;
mod document;
mod network;
mod row;
mod run;
mod verdict;

pub use cell::{CellError, cell_id};
pub use document::{Document, NetworkList, Printed, SchemaName, schema};
pub use network::{NetworkRow, OverheadStep};
pub use row::{Backpressure, Layer, Method, Phase, Quantity, ResultRow, Status, Step, Testbed};
pub use run::{
    CellRecord, Ceiling, ClockRecord, EventRecord, Factors, HostFacts, HostRecord, Interference,
    LaunchRecord, Measurement, NetworkRecord, Run, RunHead, RunState,
};
pub use verdict::{Lateness, LatenessBucket, Verdict, VerdictStatus};
