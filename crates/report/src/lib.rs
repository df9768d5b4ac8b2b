//! What a run says: tables, findings, fits, and the report page with its data.
//!
//! Model:   everything is derived from a [`Run`](sonde_measure::Run) alone, and nothing is measured here. Rows give the
//!          statistics; launches give what lies between hosts and what disturbed them.
//! Units:   as in the records; for people microseconds, Mb/s (decimal) and bytes, with the unit in the head of a column.
//! Checked: the tests of each module.
#![forbid(unsafe_code)]

mod anatomy;
mod compare;
mod contention;
pub mod diagnosis;
mod files;
mod finding;
mod fit;
mod format;
mod history;
mod index;
mod kernels;
mod library;
mod limit;
mod lost;
pub mod matrix;
mod metrics;
mod page;
mod pages;
mod queueing;
mod screen;
mod seen;
mod sweep;
mod table;
#[cfg(test)]
mod testing;
mod timeline;
#[cfg(test)]
mod told_apart;
mod verifiable;
mod view;
mod words;

pub use anatomy::AnatomyRow;
pub use compare::{
    Change, CompareError, CompareRow, Comparison, Difference, Limits, compare, compare_table,
};
pub use contention::{
    CPU_ALONE, Contention, ContentionView, SLOWED, Slowdown, SlowdownMatrix, SlowdownRow,
    SlowdownState,
};
pub use files::{FilesPart, FilesRow};
pub use finding::{Finding, Severity, VERIFY, findings_of, is_verdict};
pub use fit::FitRow;
pub use format::{bytes, counted, figure, lasted, rate, reasons, share, significant, time, utc};
pub use history::{
    Chronicle, Condition, Configuration, History, LevelChange, Past, PastRun, history_text,
};
pub use index::has_own_tables;
pub use kernels::{
    KernelPhase, KernelRow, KernelTraffic, PrintedElsewhere, PrintedMessages, PrintedTime, Times,
    sequential_time,
};
pub use library::{Cost, LibraryRow, SizeCost};
pub use lost::{Lost, LostAt, LostPart, LostUnit};
pub use metrics::open_metrics;
pub use page::{PageError, Served, has_page, html, page, policy};
pub use pages::{
    ComparedRuns, ComparedSchema, HistoryOfRuns, HistorySchema, LISTED_MAX, ListedRun, PageData,
    RunList, RunListSchema,
};
pub use queueing::QueueingRow;
pub use screen::{
    AssessedFiles, AssessedNetwork, AssessedPath, Assessment, COLUMNS, Figures, LINES, Loss,
    LossFigure, Next, OneWay, Place, Scope, Tally, Trust, TrustLevel, findings_by_rule,
};
pub use seen::SeenRow;
pub use sweep::{PLATEAU, SweepCurve, SweepPoint, sweep};
pub use table::{
    Sheet, anatomy_table, checks_table, files_table, findings_text, flows_table, kernel_table,
    library_table, messages_table, placements_table, queueing_table, rows_table, sheet,
    summary_table, sweep_table, wrapped,
};
pub use timeline::Moment;
pub use verifiable::{SettingChange, Verifiable, verifiable};
pub use view::{Distribution, InterferenceRow, LaunchMedians, View, ViewSchema};
pub use words::files::Settled;
