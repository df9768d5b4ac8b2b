//! What a measurement is and what it saw: factors, launches, rows.
//!
//! Model:   a [`Run`] has cells and launches. A cell is a set of resolved [`Factors`]; its id is their hash. A launch holds the
//!          series that one start of its programs gave, and what was seen beside them. A [`ResultRow`] is one quantity of one
//!          cell over its launches, and is of the [`Line`] that its cell's factors say. Absent is null, never NaN and never left out.
//! Units:   times are integer nanoseconds, rates integer bits per second, sizes bytes; shares are fractions of one.
//! Checked: the tests of each module; `a_row_has_exactly_the_fields_of_the_contract`.
#![forbid(unsafe_code)]

mod cell;
mod evidence;
mod facts;
pub mod files;
mod fixed;
mod knob_values;
mod knobs;
mod lengths;
mod line;
mod loss;
mod moments;
mod network;
mod noise;
pub mod npb;
mod number;
mod pace;
mod path;
pub mod replay;
mod row;
mod rows;
mod run;
mod settings;
pub mod spec;
mod state;
mod text;
mod verdict;
pub mod workload;

pub use cell::{CellError, cell_id};
pub use evidence::{
    Application, Check, Datagrams, Emulation, Evidence, FilesFacts, Flow, HostSetting,
    InterfaceCounters, Library, Load, LoadFlow, NetworkLoss, Others, Place, Ranks, Side, SizeFacts,
    Socket, StartUp, Transfer, UdpCounter,
};
pub use facts::Unread;
pub use fixed::{Fixed, RelativeError, Shares};
pub use knob_values::{KnobValues, NotANumber};
pub use knobs::{BadKnob, Buffers, Clock, Knobs, Seat};
pub use lengths::{Collectives, LengthsRow, Power, Total};
pub use line::{Line, LineField};
pub use loss::Loss;
pub use moments::{Away, Moments};
pub use network::{NetworkRow, OverheadStep};
pub use noise::{Gap, Noise};
pub use number::Number;
pub use pace::{Pace, RATE_MAX, Spacing};
pub use path::{Method, Path, Unnamed, Wait};
pub use row::{
    Backpressure, CSV_COLUMNS, Layer, Phase, Quantity, ResultRow, Status, Step, Testbed,
};
pub use run::{
    Ceiling, CellRecord, CellResult, ClockRecord, Disturbance, Disturber, EventRecord, Factors,
    HostFacts, HostRecord, Interference, LaunchRecord, Measurement, NetworkRecord, Repetition, Run,
    RunHead, RunState, Touch,
};
pub use settings::{SetBy, Setting, SettingValue, Settings};
pub use spec::{Probe, Procedure, Quota, Sampling, Spec, Startup, Unmeasurable};
pub use state::{Doubt, State};
pub use text::{
    Buffer, ColdBuffers, EndedBy, HostChange, LoadLimit, LongMessages, Name, Names, Neighbour,
    Placed, RingShape, SampleClock, Splice, Strayed, Text, Verification, Words, XdpMode,
    ZerocopyNote,
};
pub use verdict::{Fidelity, Judged, Lateness, LatenessBucket, Verdict, VerdictStatus};
