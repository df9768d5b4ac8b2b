//! A run: everything that one command measured, as it is held in memory and in the store.
//!
//! Model:   a run has hosts, networks, cells and launches. A cell is a set of resolved [`Factors`]; its id is their hash. A
//!          launch is one start of the programs; it holds what they saw, and for each cell that they measured a
//!          [`CellResult`] with its series. Rows are worked out from these, never stored.
//! Units:   a series holds integers in its quantity's [base unit](crate::Quantity::per_unit); times of day are
//!          nanoseconds since 1970, UTC.
//! Checked: `a_series_has_the_shape_of_its_schema`, `what_a_part_does_not_know_is_not_known_of_the_sum`; the round trips of the store and of the export.

use crate::KnobValues;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sonde_stats::{FIRST_MAX, Series};

use crate::{
    Backpressure, CellError, Evidence, Layer, NetworkRow, Noise, Path, Phase, Quantity, Settings,
    Step, Testbed, Verdict, Words, cell_id,
};

/// Everything that one command measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What was asked, when and by what.
    pub head: RunHead,
    /// The hosts, in the order of the testbed: the first is the reference of the clocks.
    pub hosts: Vec<HostRecord>,
    /// The networks, in the plan's order.
    pub networks: Vec<NetworkRecord>,
    /// The cells, in the plan's order; planned ones are here before they are measured.
    pub cells: Vec<CellRecord>,
    /// The launches, in the order in which they ended.
    pub launches: Vec<LaunchRecord>,
    /// What happened meanwhile.
    pub events: Vec<EventRecord>,
    /// Check these before trusting the results.
    pub warnings: Vec<String>,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunHead {
    /// Its id: the time of its begin and six random digits, as in `20261121T043302Z-1f09c3`.
    pub id: String,
    /// The command as it was given.
    pub command: String,
    /// The plan that it became, as TOML.
    pub plan: String,
    /// Where random draws began: the order of launches, the networks' losses.
    pub seed: u64,
    /// Version of sonde that began it.
    pub version: String,
    /// When it began.
    pub began_unix_ns: u64,
    /// When it ended; null while it runs, and after it was killed.
    pub ended_unix_ns: Option<u64>,
    /// How it ended.
    pub state: RunState,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Begun and not ended: it is running, or it was killed.
    Open,
    /// All launches were made.
    Complete,
    /// It ended before all launches were made: interrupted, out of budget, or a host was lost. `--resume` goes on.
    Partial,
}

/// A host as its agent describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostRecord {
    /// Its name: `h1` in the lab, as given on the command line else.
    pub name: String,
    /// Its address on the network that is measured.
    pub address: String,
    /// What it is.
    pub facts: HostFacts,
    /// Its clock against the first host's; null for the first host, and where one clock serves all.
    pub clock: Option<ClockRecord>,
}

/// What a host is, by its own account. What it does not tell is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFacts {
    /// The name that it gives itself.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// CPU model.
    pub cpu: Option<String>,
    /// CPUs online.
    pub cpus: u64,
    /// Main memory.
    pub memory_bytes: Option<u64>,
    /// What of it programs could have when the host was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_available_bytes: Option<u64>,
    /// The kernel's clock source: `tsc`, `kvm-clock`.
    pub clock_source: Option<String>,
    /// What reading the clock costs.
    pub clock_read_ns: Option<u64>,
    /// The smallest difference between two readings that is not zero.
    pub clock_resolution_ns: Option<u64>,
    /// How disturbed it was before the measurement; null where it was not looked at, as on hosts other than this machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// The interface by which its peers are reached.
    pub interface: Option<String>,
    /// That interface's MTU.
    pub mtu_bytes: Option<u64>,
    /// That interface's rate.
    pub line_bps: Option<u64>,
    /// Settings of its TCP: the sysctl's name below `net.`, and its value.
    #[schemars(with = "BTreeMap<String, String>")]
    pub settings: Settings,
    /// Paths that it has not, by name, with the reason and what to do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub absent: BTreeMap<Path, Words>,
}

/// A clock against another: theirs minus ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockRecord {
    /// At the begin of the run.
    pub offset_ns: i64,
    /// Change of the offset, in nanoseconds a second; null before it was asked a second time.
    pub drift_ppb: Option<i64>,
    /// The true offset is at most so far from it: half of the shortest exchange.
    pub bound_ns: u64,
}

/// A network as it was resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkRecord {
    /// Ceilings and overhead chain. Its name is the selector with knobs, and names the network in all rows.
    pub row: NetworkRow,
    /// What the model allows, beside what is measured.
    pub ceilings: Vec<Ceiling>,
    /// How hosts are attached to an emulated network: `tap` or `veth`.
    pub attachment: Option<String>,
    /// What holds senders back.
    pub backpressure: Option<Backpressure>,
    /// The resolved description, as TOML; null for a real network.
    pub spec: Option<String>,
}

/// What the model allows for one quantity: a point of a line on the plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The path: `tcp`, `udp`.
    pub path: String,
    /// What it bounds.
    pub quantity: Quantity,
    /// Warm, or cold with everything that is paid once.
    pub phase: Phase,
    /// A stream's ceiling does not depend on the size of messages: null.
    pub size_bytes: Option<u64>,
    /// The bound, in the quantity's base unit.
    pub value: u64,
}

/// The resolved factors of a cell. Their hash is its id: a factor that changes what is measured stands here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Factors {
    /// `startup`, `latency`, `throughput`.
    pub probe: String,
    /// `stream`, or `message` (single messages, each with everything in it), for throughput; null else.
    pub mode: Option<String>,
    /// The layer.
    pub layer: Layer,
    /// `tcp`, `udp`.
    pub path: String,
    /// How bytes are handed over: `plain`, `zerocopy`.
    pub method: Option<String>,
    /// What else is set, by name: `streams` = `4`.
    #[serde(default, skip_serializing_if = "KnobValues::is_empty")]
    pub knobs: KnobValues,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// The network's name with its knobs.
    pub network: String,
    /// What the hosts are.
    pub testbed: Testbed,
    /// Their names, in order.
    pub hosts: Vec<String>,
    /// Their settings.
    pub profile: Option<String>,
    /// How they are attached.
    pub attachment: Option<String>,
    /// Background traffic; null when idle.
    pub load: Option<String>,
    /// User bytes in a message.
    pub size_bytes: u64,
}

impl Factors {
    /// The id of the cell.
    ///
    /// # Errors
    /// Never for these types; the hash is over JSON, which could refuse others.
    pub fn cell(&self) -> Result<String, CellError> {
        cell_id(self)
    }
}

/// A cell and how often it is to be launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellRecord {
    /// Its id.
    pub id: String,
    /// Its factors.
    pub factors: Factors,
    /// Launches that the plan wants.
    pub launches: u64,
    /// Why it is not measured at all, if so: a missing capability with its remedy.
    pub skipped: Option<String>,
}

/// One start of the programs: what they measured of each cell, and what was seen meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchRecord {
    /// The sending or measuring host.
    pub src: String,
    /// The receiving or answering host.
    pub dst: String,
    /// When it began.
    pub began_unix_ns: u64,
    /// How long it took, all its cells together.
    pub took_ns: u64,
    /// What it gave, a cell each.
    pub results: Vec<CellResult>,
    /// What was seen beside the samples.
    pub evidence: Evidence,
    /// What else the hosts did meanwhile: `src`, then `dst`.
    pub interference: Vec<Interference>,
    /// Whether the emulation kept its own times.
    pub verdict: Option<Verdict>,
    /// When it was disturbed, in order of time.
    pub disturbances: Vec<Disturbance>,
    /// Whether it was made again, since a disturbance met most of its time: it counts in no figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set_aside: bool,
}

/// What one launch gave for one cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellResult {
    /// The cell.
    pub cell: String,
    /// The launch's number among those of the cell, from 0.
    pub index: u64,
    /// Why it failed, with the host that did; null when it gave what it should.
    pub failure: Option<String>,
    /// What was measured.
    pub series: Vec<Measurement>,
}

/// A launch and what it gave for one of its cells.
#[derive(Debug, Clone, Copy)]
pub struct Repetition<'a> {
    /// The launch.
    pub launch: &'a LaunchRecord,
    /// What it gave.
    pub result: &'a CellResult,
}

impl LaunchRecord {
    /// What it gave, with itself.
    pub fn repetitions(&self) -> impl Iterator<Item = Repetition<'_>> {
        let of = |result| Repetition {
            launch: self,
            result,
        };
        self.results.iter().map(of)
    }

    /// Whether unauthenticated peers came to a data port of it.
    pub fn met_strangers(&self) -> bool {
        self.interference.iter().any(|host| host.strangers > 0)
    }
}

impl CellResult {
    /// The samples of a quantity as a whole, not of a step of it.
    pub fn samples(&self, quantity: Quantity, phase: Phase) -> Option<&Series> {
        let of = |one: &&Measurement| {
            one.quantity == quantity && one.phase == phase && one.step.is_none()
        };
        self.series.iter().find(of).map(|one| &one.series)
    }
}

impl Repetition<'_> {
    /// Whether it gave what it should.
    pub fn succeeded(&self) -> bool {
        self.result.failure.is_none()
    }
}

impl Run {
    /// The launches that were not set aside, in the order in which they ended.
    pub fn counted(&self) -> impl Iterator<Item = &LaunchRecord> {
        self.launches.iter().filter(|launch| !launch.set_aside)
    }

    /// The repetitions of all cells that were not set aside, in the order in which their launches ended.
    pub fn repetitions(&self) -> impl Iterator<Item = Repetition<'_>> {
        self.counted().flat_map(LaunchRecord::repetitions)
    }

    /// What was set aside, likewise.
    pub fn set_aside(&self) -> impl Iterator<Item = Repetition<'_>> {
        let aside = self.launches.iter().filter(|launch| launch.set_aside);
        aside.flat_map(LaunchRecord::repetitions)
    }

    /// The repetitions of a cell, failed ones too.
    pub fn repetitions_of(&self, cell: &str) -> impl Iterator<Item = Repetition<'_>> {
        self.repetitions()
            .filter(move |one| one.result.cell == cell)
    }

    /// Keeps the results that `keeps` chooses, and the launches that have any.
    pub fn retain_results(&mut self, keeps: impl Fn(&LaunchRecord, &CellResult) -> bool) {
        for launch in &mut self.launches {
            let mut results = std::mem::take(&mut launch.results);
            results.retain(|result| keeps(launch, result));
            launch.results = results;
        }
        self.launches.retain(|launch| !launch.results.is_empty());
    }
}

/// A span of time in which something other than the network changed the times of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    /// What did.
    pub source: Disturber,
    /// The host that was met most.
    pub host: String,
    /// Its interface; null where all of the host was met.
    pub interface: Option<String>,
    /// When it began.
    pub from_unix_ns: u64,
    /// When it ended.
    pub to_unix_ns: u64,
    /// The longest that one event was held up.
    pub most_ns: u64,
    /// How many events were: deliveries of an emulation.
    pub events: u64,
}

/// What disturbs a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disturber {
    /// The emulation was behind its model: frames were delivered later than their bound.
    Emulation,
}

/// One quantity of one launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// What.
    pub quantity: Quantity,
    /// Cold or warm.
    pub phase: Phase,
    /// The part of a start-up.
    pub step: Option<Step>,
    /// The samples; empty when it could not be had.
    #[schemars(schema_with = "series_schema")]
    pub series: Series,
    /// What of it met a disturbance; null where that was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touched: Option<Touch>,
    /// Why there are no samples, with the remedy; null where there are.
    pub reason: Option<String>,
}

/// What of a measurement met a disturbance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Touch {
    /// Those of the samples whose time met one.
    Samples(#[schemars(schema_with = "series_schema")] Series),
    /// Of a stream, whose rate is one sample: the rates of equal parts of its time.
    Slices {
        /// Of each, bits a second.
        #[schemars(schema_with = "series_schema")]
        all: Series,
        /// Of those whose time met one.
        #[schemars(schema_with = "series_schema")]
        touched: Series,
        /// The time of all, ns; 0 in older records.
        #[serde(default)]
        span_ns: u64,
        /// How late its begin may have been, ns: what is rated begins with an arrival, and one that was held up is followed by others.
        #[serde(default)]
        late_ns: u64,
    },
}

/// The schema of [`sonde_stats::Parts`], which knows none itself.
fn series_schema(_: &mut SchemaGenerator) -> Schema {
    let whole = |what: &str| json_schema!({"type": "integer", "minimum": 0, "description": what});
    let bucket = json_schema!({
        "type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2
    });
    json_schema!({
        "type": "object",
        "description": "The samples, in the quantity's base unit.",
        "additionalProperties": false,
        "required": ["min", "max", "sum", "first", "buckets"],
        "properties": {
            "min": whole("The smallest sample; 0 when there is none."),
            "max": whole("The largest sample; 0 when there is none."),
            "sum": whole("The sum of all samples; it may need more than 64 bits."),
            "first": {
                "type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": FIRST_MAX,
                "description": "The first samples, in order."
            },
            "buckets": {
                "type": "array", "items": bucket,
                "description": "Every bucket of the histogram that is not empty, ascending: the largest value that it \
                    counts, and how many."
            }
        }
    })
}

/// What disturbed a launch at one host, from the begin of its measurement to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Interference {
    /// The host.
    pub host: String,
    /// How long it was watched.
    pub span_ns: u64,
    /// CPU time of the measuring thread.
    pub thread_cpu_ns: u64,
    /// CPU time of the whole host, all CPUs, idle not counted; null where /proc/stat cannot be read.
    pub host_cpu_ns: Option<u64>,
    /// CPUs that the host has: what `host_cpu_ns` is a part of.
    pub cpus: u64,
    /// CPU time that a hypervisor took away.
    pub steal_ns: Option<u64>,
    /// Times that the thread was put aside for another.
    pub involuntary_switches: u64,
    /// Times that it waited.
    pub voluntary_switches: u64,
    /// TCP segments sent again.
    pub retransmits: Option<u64>,
    /// Connections and datagrams of others at its data port, which were turned away.
    #[serde(default, skip_serializing_if = "is_none_seen")]
    pub strangers: u64,
}

fn is_none_seen(strangers: &u64) -> bool {
    *strangers == 0
}

impl Interference {
    /// Adds another part of the same host's: what one of them does not know is not known of the sum. A part that was not
    /// watched says nothing.
    pub fn add(&mut self, part: &Self) {
        self.strangers += part.strangers;
        if part.span_ns == 0 {
            return;
        }
        if self.span_ns == 0 {
            *self = Self {
                host: std::mem::take(&mut self.host),
                strangers: self.strangers,
                ..part.clone()
            };
            return;
        }
        let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.span_ns += part.span_ns;
        self.thread_cpu_ns += part.thread_cpu_ns;
        self.host_cpu_ns = both(self.host_cpu_ns, part.host_cpu_ns);
        self.cpus = self.cpus.max(part.cpus);
        self.steal_ns = both(self.steal_ns, part.steal_ns);
        self.involuntary_switches += part.involuntary_switches;
        self.voluntary_switches += part.voluntary_switches;
        self.retransmits = both(self.retransmits, part.retransmits);
    }
}

/// Something that happened during a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventRecord {
    /// When.
    pub at_unix_ns: u64,
    /// `interrupted`, `host_lost`, `resumed`, `budget`.
    pub kind: String,
    /// In words.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_a_part_does_not_know_is_not_known_of_the_sum() {
        let part = |span_ns, steal_ns| Interference {
            host: "h2".into(),
            span_ns,
            steal_ns,
            cpus: 2,
            retransmits: Some(1),
            ..Interference::default()
        };
        let mut sum = Interference {
            host: "h1".into(),
            ..Interference::default()
        };
        sum.add(&part(10, Some(3)));
        assert_eq!((sum.host.as_str(), sum.steal_ns), ("h1", Some(3)));
        sum.add(&part(0, None));
        sum.add(&part(10, Some(4)));
        assert_eq!((sum.span_ns, sum.steal_ns, sum.cpus), (20, Some(7), 2));
        sum.add(&part(5, None));
        assert_eq!((sum.steal_ns, sum.retransmits), (None, Some(3)));
    }

    #[test]
    fn a_series_has_the_shape_of_its_schema() {
        let schema = series_schema(&mut SchemaGenerator::default()).to_value();
        let written = serde_json::to_value([3, 1, 2].into_iter().collect::<Series>()).unwrap();
        let fields = |value: &Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(fields(&written), fields(&schema["properties"]));
        assert_eq!(
            schema["required"].as_array().unwrap().len(),
            fields(&written).len()
        );
        assert_eq!(
            written["buckets"],
            serde_json::json!([[1, 1], [2, 1], [3, 1]])
        );
    }
}
