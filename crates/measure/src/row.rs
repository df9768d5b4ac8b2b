//! One result: one quantity of one cell, with every factor that it was measured under.
//!
//! Units:   the last part of [`Quantity`]'s name is the unit of `min` to `mean` and of the interval. A row is one
//!          population: all its statistics are of the same samples.
//! Checked: `a_row_has_exactly_the_fields_of_the_contract`, `figures_come_from_one_population`.

use crate::KnobValues;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_stats::Pooled;

use crate::{Doubt, Number, State, Verdict};

/// Where between the wire and the application a result was taken.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Frames, without the kernel's protocols.
    Wire,
    /// The kernel's sockets.
    Transport,
    /// A communication library.
    Library,
    /// A program that computes.
    Application,
    /// Files over the network.
    Files,
    /// Stages joined by streams.
    Pipeline,
    /// Requests to objects.
    Objects,
}

/// What the hosts were.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Testbed {
    /// This machine.
    Local,
    /// An emulated cluster on this machine.
    Lab,
    /// Real machines.
    Hosts,
    /// Virtual time.
    Virtual,
}

/// Whether anything was set up before the first sample.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// First use: nothing was connected, resolved or cached.
    Cold,
    /// After warm-up messages, which were discarded.
    Warm,
}

/// The part of a start-up that a row measures; a row without a step is the whole start-up.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Of a library: from the start of its ranks to the first line of rank 0's program.
    Spawn,
    /// Of a library: from there until it can send.
    Init,
    /// Address resolution.
    Neighbour,
    /// The set-up of a virtual circuit.
    Vc,
    /// The transport's handshake.
    Connect,
    /// The round trip of the first message.
    First,
    /// The round trip of the second message, beside `first`: what was paid only once is the difference.
    Second,
    /// The first message after a pause.
    Idle,
}

/// What was measured, with its unit last.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Half a round trip, always.
    LatencyNs,
    /// A round trip.
    RttNs,
    /// From a start-up's begin to its end, or one of its steps.
    StartupNs,
    /// From the begin of a step, in which every host sends to its neighbours at once, to the arrival of the whole message.
    ExchangeNs,
    /// User bytes at the receiver; of files those of a pass over a whole file.
    ThroughputBps,
    /// CPU time of the sending thread for each user byte; of files the client's.
    CpuSrcNsPerByte,
    /// CPU time of the receiving thread for each user byte; of files the server's.
    CpuDstNsPerByte,
    /// Datagrams sent and never received, of all sent.
    LostShare,
    /// Datagrams that came after a later one, of all received.
    ReorderedShare,
    /// Datagrams that came again, of all received.
    DuplicatedShare,
    /// Time with something to send, of the timed window, at the sender.
    BusyShare,
    /// Time that the peer's window held the sender back, of the timed window.
    RwndLimitedShare,
    /// Time that the send buffer held the sender back, of the timed window.
    SndbufLimitedShare,
    /// Segments sent again in the timed window; of files messages of the client beyond one for each call, by FTP segments of both ends.
    Retransmits,
    /// Of one message: from the call that sends to the return of the call that receives; the sum of the five that follow.
    OneWayNs,
    /// From the call that sends until the packet scheduler has the message.
    SendCallNs,
    /// From there until the driver has it.
    QueueNs,
    /// From there until the peer's kernel took it from its driver.
    WireNs,
    /// From there until the reader runs: the protocols of the receiving kernel, and the waking of a reader that sleeps.
    WakeNs,
    /// The call that receives, from there to its return.
    ReceiveNs,
    /// From the call that sends until the sending kernel has the peer's acknowledgement.
    AckNs,
    /// By the sender's network card alone: from the message's leaving it to the answer's arrival at it.
    NicTripNs,
    /// Messages at a rate: from the time at which a message was due to its answer.
    ResponseNs,
    /// Messages at a rate: from the call that sent a message to its answer. Files: from the first send of a call to its reply; by FTP of a whole transfer.
    ServiceNs,
    /// Messages at a rate: how many were sent in a second. Files: calls, by FTP transfers, in a second.
    RatePerS,
    /// A collective call: from its agreed begin to its end at the last rank.
    CollectiveNs,
    /// Of the calls that are samples of it: from the agreed begin until the last rank called, which is no part of the call.
    EntryLateNs,
    /// Messages at a rate: those sent only when the next was due already, of all.
    LateShare,
    /// A kernel: its timed part at the longest rank, of FT at rank 0.
    KernelNs,
    /// A kernel: millions of operations a second, as its benchmark counts operations.
    MopPerS,
    /// A kernel: the share of the ranks' time that they were in calls of the library, in the timed part.
    CommunicatingShare,
    /// A replay of messages: from its first step to the end of the last one at the longest rank.
    ReplayNs,
    /// A kernel or a replay: messages of all ranks in the timed part.
    Messages,
    /// A replay of messages: their lengths, summed.
    MessageBytes,
    /// A kernel or a replay: the mean length of these messages.
    MessageBytesMean,
    /// A kernel or a replay: the lower median of their lengths, off by at most a 64th of itself.
    MessageBytesMedian,
    /// A kernel or a replay in a lab: frames of programs that the network lost, of all that it took.
    NetworkLostShare,
    /// A check of a library: collective calls and messages that were held against what they must give.
    Checks,
    /// A program under a placement: its own time on the slowest rank.
    ProgramNs,
}

impl Quantity {
    /// How many of the integers in a series make one of the unit in the name: a share is held in millionths, CPU time for
    /// a byte in picoseconds.
    pub const fn per_unit(self) -> u64 {
        match self {
            Self::LatencyNs
            | Self::RttNs
            | Self::StartupNs
            | Self::ExchangeNs
            | Self::ThroughputBps
            | Self::Retransmits
            | Self::OneWayNs
            | Self::SendCallNs
            | Self::QueueNs
            | Self::WireNs
            | Self::WakeNs
            | Self::ReceiveNs
            | Self::AckNs
            | Self::NicTripNs
            | Self::ResponseNs
            | Self::ServiceNs
            | Self::CollectiveNs
            | Self::EntryLateNs
            | Self::KernelNs
            | Self::Messages
            | Self::MessageBytesMedian
            | Self::ReplayNs
            | Self::MessageBytes
            | Self::Checks
            | Self::ProgramNs => 1,
            Self::MopPerS
            | Self::MessageBytesMean
            | Self::RatePerS
            | Self::CpuSrcNsPerByte
            | Self::CpuDstNsPerByte => 1_000,
            Self::LostShare
            | Self::ReorderedShare
            | Self::DuplicatedShare
            | Self::BusyShare
            | Self::RwndLimitedShare
            | Self::SndbufLimitedShare
            | Self::LateShare
            | Self::CommunicatingShare
            | Self::NetworkLostShare => 1_000_000,
        }
    }

    /// Whether it is a share, from 0 to 1.
    pub const fn is_share(self) -> bool {
        self.per_unit() == 1_000_000
    }

    /// Whether the program alone decides it, whatever the network and the machine do.
    pub const fn is_of_program(self) -> bool {
        matches!(
            self,
            Self::Messages
                | Self::MessageBytes
                | Self::MessageBytesMean
                | Self::MessageBytesMedian
                | Self::Checks
        )
    }

    /// Whether it is a time of what is measured, in nanoseconds.
    pub const fn is_time(self) -> bool {
        matches!(
            self,
            Self::LatencyNs
                | Self::RttNs
                | Self::StartupNs
                | Self::ExchangeNs
                | Self::OneWayNs
                | Self::SendCallNs
                | Self::QueueNs
                | Self::WireNs
                | Self::WakeNs
                | Self::ReceiveNs
                | Self::AckNs
                | Self::NicTripNs
                | Self::ResponseNs
                | Self::ServiceNs
                | Self::CollectiveNs
                | Self::EntryLateNs
                | Self::KernelNs
                | Self::ReplayNs
                | Self::ProgramNs
        )
    }
}

/// Whether a row holds a measurement.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Measured.
    Measured,
    /// Tried, and failed; `reason` says why.
    Failed,
    /// Not tried; `reason` names the missing capability.
    Skipped,
}

/// What holds a sending host back when its network is busy.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Backpressure {
    /// A queueing discipline that the emulated network opens and closes.
    Gate,
    /// Nothing: what does not fit is dropped.
    None,
}

/// One quantity of one cell. The statistics of a row that was not measured are all null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultRow {
    /// The kind of measurement: `startup`, `latency`, `throughput`.
    pub probe: String,
    /// The layer.
    pub layer: Layer,
    /// `library[:transport[:provider]]`, for example `tcp`.
    pub path: String,
    /// How bytes are handed over: `plain`, `zerocopy`.
    pub method: Option<String>,
    /// What else was set, by name: `streams` = `4`. Empty where all was left to the kernel.
    pub knobs: KnobValues,
    /// Of throughput: `stream`, or `message` (single messages, each with everything in it); null else.
    pub mode: Option<String>,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// The network's name with its knobs.
    pub network: String,
    /// What the hosts were.
    pub testbed: Testbed,
    /// The hosts' settings: `modern`, `era`, `asis`.
    pub profile: Option<String>,
    /// Background traffic; null when idle.
    pub load: Option<String>,
    /// The sending host.
    pub src: Option<String>,
    /// The receiving host.
    pub dst: Option<String>,
    /// User bytes in a message; null of a kernel, whose messages have sizes of their own.
    pub size_bytes: Option<u64>,
    /// Cold or warm; never mixed.
    pub phase: Option<Phase>,
    /// The part of a start-up.
    pub step: Option<Step>,
    /// The id of the cell: the hash of its resolved factors.
    pub cell: String,
    /// Launches that gave samples.
    pub launches: u64,
    /// Launches that were set aside and made again, since a disturbance met most of their time.
    pub set_aside: u64,
    /// Samples in all of them.
    pub samples: u64,
    /// What was measured.
    pub quantity: Quantity,
    /// The smallest sample.
    pub min: Option<Number>,
    /// The median sample.
    pub p50: Option<Number>,
    /// The 90th percentile.
    pub p90: Option<Number>,
    /// The 99th percentile; null below 1,000 samples.
    pub p99: Option<Number>,
    /// The 99.9th percentile; null below 10,000 samples.
    pub p999: Option<Number>,
    /// The largest sample.
    pub max: Option<Number>,
    /// The mean, rounded as the samples are.
    pub mean: Option<Number>,
    /// Lower end of the interval of the launches' median; null below six launches.
    pub ci95_low: Option<Number>,
    /// Upper end of the interval of the launches' median; null below six launches.
    pub ci95_high: Option<Number>,
    /// The share of the samples whose time met a disturbance, 0 to 1; null where it was not seen which did.
    pub touched_share: Option<Number>,
    /// The median of the samples that met none, of a stream that of its launches; null where it was not seen which did.
    pub undisturbed_p50: Option<Number>,
    /// Lower end of the interval within which the median of an undisturbed machine lies, whatever the disturbance did to the samples
    /// that it met, or to all of them where it was not seen which it met; of fewer than six launches that of their medians. Null where there is no bound.
    pub undisturbed_low: Option<Number>,
    /// Its upper end, likewise.
    pub undisturbed_high: Option<Number>,
    /// Whether it was measured.
    pub status: Status,
    /// Why not, or what to know before trusting it.
    pub reason: Option<String>,
    /// What the figure is worth.
    pub state: State,
    /// Why it is uncertain, in kind.
    pub doubts: Vec<Doubt>,
    /// The same in words; null else.
    pub why: Option<String>,
    /// What holds the sender back.
    pub backpressure: Option<Backpressure>,
    /// Whether the emulation kept its own times.
    pub verdict: Option<Verdict>,
}

impl ResultRow {
    /// Whether a quieter machine would have given a better figure.
    pub fn is_disturbed(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.is_disturbance())
    }

    /// Whether each of its repetitions can be relied on, however few they are and however far they differ.
    pub fn is_reliable(&self) -> bool {
        self.doubts.iter().all(|doubt| doubt.is_of_repetitions())
    }
}

/// The names of the columns: the fields of a row in their order, and of its verdict what fits a table.
pub const CSV_COLUMNS: [&str; 43] = [
    "probe",
    "layer",
    "path",
    "method",
    "knobs",
    "mode",
    "wait",
    "network",
    "testbed",
    "profile",
    "load",
    "src",
    "dst",
    "size_bytes",
    "phase",
    "step",
    "cell",
    "launches",
    "set_aside",
    "samples",
    "quantity",
    "min",
    "p50",
    "p90",
    "p99",
    "p999",
    "max",
    "mean",
    "ci95_low",
    "ci95_high",
    "touched_share",
    "undisturbed_p50",
    "undisturbed_low",
    "undisturbed_high",
    "status",
    "reason",
    "state",
    "doubts",
    "why",
    "backpressure",
    "verdict",
    "verdict_deliveries",
    "verdict_late",
];

impl ResultRow {
    /// Fills the statistics from one pooled population, whose integers are in the base unit of this row's quantity.
    #[must_use]
    pub fn with_statistics(mut self, pooled: &Pooled) -> Self {
        let per_unit = self.quantity.per_unit();
        let number = |integer: u64| Number::of(integer, per_unit);
        let summary = pooled.summary;
        self.launches = pooled.launches;
        self.samples = summary.count;
        self.min = Some(number(summary.min));
        self.p50 = Some(number(summary.p50));
        self.p90 = Some(number(summary.p90));
        self.p99 = summary.p99.map(number);
        self.p999 = summary.p999.map(number);
        self.max = Some(number(summary.max));
        self.mean = Some(number(summary.mean));
        self.ci95_low = pooled.interval.map(|interval| number(interval.low));
        self.ci95_high = pooled.interval.map(|interval| number(interval.high));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use sonde_stats::Series;

    /// A row without any figure.
    fn bare() -> ResultRow {
        ResultRow {
            probe: "latency".into(),
            layer: Layer::Transport,
            path: "tcp".into(),
            method: Some("plain".into()),
            knobs: KnobValues::new(),
            mode: None,
            wait: Some("block".into()),
            network: "wire".into(),
            testbed: Testbed::Lab,
            profile: Some("modern".into()),
            load: None,
            src: Some("h1".into()),
            dst: Some("h2".into()),
            size_bytes: Some(1),
            phase: Some(Phase::Warm),
            step: None,
            cell: "0123456789abcdef".into(),
            launches: 0,
            set_aside: 0,
            samples: 0,
            quantity: Quantity::LatencyNs,
            min: None,
            p50: None,
            p90: None,
            p99: None,
            p999: None,
            max: None,
            mean: None,
            ci95_low: None,
            ci95_high: None,
            touched_share: None,
            undisturbed_p50: None,
            undisturbed_low: None,
            undisturbed_high: None,
            status: Status::Failed,
            reason: Some("the peer is gone".into()),
            state: State::NotMeasured,
            doubts: Vec::new(),
            why: None,
            backpressure: Some(Backpressure::Gate),
            verdict: None,
        }
    }

    const CONTRACT: &str = "probe layer path method knobs mode wait network testbed profile load src dst size_bytes phase step \
        cell launches set_aside samples quantity min p50 p90 p99 p999 max mean ci95_low ci95_high touched_share undisturbed_p50 \
        undisturbed_low undisturbed_high status reason state doubts why backpressure verdict";

    #[test]
    fn a_row_has_exactly_the_fields_of_the_contract() {
        let text = serde_json::to_string(&bare()).unwrap();
        let row: Value = serde_json::from_str(&text).unwrap();
        let mut at = 0;
        for name in CONTRACT.split_whitespace() {
            let place = text[at..].find(&format!("\"{name}\":"));
            at += place.unwrap_or_else(|| panic!("{name} is missing or out of order in {text}"));
        }
        assert_eq!(
            row.as_object().unwrap().len(),
            CONTRACT.split_whitespace().count()
        );
        for name in [
            "load", "step", "min", "p99", "max", "mean", "ci95_low", "verdict",
        ] {
            assert_eq!(row[name], Value::Null, "{name}");
        }
        let words = [
            ("layer", "transport"),
            ("testbed", "lab"),
            ("quantity", "latency_ns"),
            ("backpressure", "gate"),
        ];
        for (name, word) in words {
            assert_eq!(row[name], word);
        }
        assert_eq!(serde_json::from_str::<ResultRow>(&text).unwrap(), bare());
    }

    #[test]
    fn figures_come_from_one_population() {
        let launches: Vec<Series> = (1..=6)
            .map(|launch| (0..200).map(|n| launch * 1_000 + n).collect())
            .collect();
        let pooled = sonde_stats::pool(&launches).unwrap();
        let row = bare().with_statistics(&pooled);
        let number = |value| Some(Number(value));
        assert_eq!((row.launches, row.samples), (6, 1_200));
        assert_eq!((row.min, row.max), (number(1_000.0), number(6_199.0)));
        assert_eq!(row.ci95_low, number(1_099.0));
        assert_eq!(row.ci95_high, number(6_099.0));
        assert!(row.p99.is_some() && row.p999.is_none());
        // The same integers as millionths.
        let share = ResultRow {
            quantity: Quantity::LostShare,
            ..bare()
        };
        let share = share.with_statistics(&pooled);
        assert_eq!((share.min, share.max), (number(0.001), number(0.006_199)));
        assert_eq!(share.ci95_low, number(0.001_099));
    }
}
