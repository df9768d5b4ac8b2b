//! The lab's own measure of itself: lateness, losses in the attachment, and the verdict.
//!
//! Model:   a delivery is late by the time between the model's instant and the moment the frame was handed to the host,
//!          plus what its arrival had to be moved to keep time from going backwards. It counts as late when that is more
//!          than 50 us and more than 5 % of the model's own one-way time. The lab fails a cell when more than 1 % of
//!          its deliveries are late, or any frame is lost outside the model.
//! Units:   nanoseconds; the histogram keeps three digits, the largest value is exact.
//! Checked: `the_verdict_follows_its_rule`.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A delivery may be late by this much on any network.
const LATE_FLOOR_NS: u64 = 50_000;
/// Or by this share of the model's one-way time: 1/20.
const LATE_SHARE: u64 = 20;
/// The largest share of late deliveries, in one of so many.
const LATE_ONE_IN: u64 = 100;
const HISTOGRAM_MAX_NS: u64 = 60_000_000_000;

/// Frames lost between a host's kernel and the switch, by where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentLosses {
    /// Dropped by an interface when sending (a TAP's full ring).
    pub interface_tx: u64,
    /// Dropped by an interface when receiving.
    pub interface_rx: u64,
    /// Dropped by a gate's queue.
    pub gate: u64,
    /// Dropped by a packet socket's full buffer.
    pub socket: u64,
    /// That the switch could not hand to an interface.
    pub handover: u64,
}

impl AttachmentLosses {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.interface_tx + self.interface_rx + self.gate + self.socket + self.handover
    }

    /// What came since `before`. A gate that was put back counts anew.
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            interface_tx: self.interface_tx - before.interface_tx,
            interface_rx: self.interface_rx - before.interface_rx,
            gate: self.gate.saturating_sub(before.gate),
            socket: self.socket - before.socket,
            handover: self.handover - before.handover,
        }
    }
}

/// What the switch did since the last mark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The time it covers.
    pub span_ns: u64,
    /// Frames that the model took.
    pub taken: u64,
    /// Offers that found no room; the frames waited.
    pub blocked: u64,
    /// Frames that the model lost, by place and cause.
    pub lost: Vec<(String, u64)>,
    /// Copies handed to hosts.
    pub deliveries: u64,
    /// Those that were late.
    pub late: u64,
    /// Lateness at the median; null without deliveries.
    pub lateness_ns_p50: Option<u64>,
    /// At the 99th percentile; null below 1,000 deliveries.
    pub lateness_ns_p99: Option<u64>,
    /// The largest.
    pub lateness_ns_max: Option<u64>,
    /// Arrivals whose stamp was moved forward, and the largest move.
    pub clamped: u64,
    /// The largest such move.
    pub clamp_ns_max: u64,
    /// Frames lost in the attachment.
    pub attachment: AttachmentLosses,
    /// Times that a gate was shut.
    pub gate_shut: u64,
    /// Of these, because the switch could not keep up.
    pub overloads: u64,
    /// Times that a gate was put back, because the lab's root had put another queueing discipline in its place.
    pub gate_rearmed: u64,
    /// CPU time of the switch.
    pub cpu_ns: u64,
    /// Circuits that were set up by signalling.
    pub circuit_setups: u64,
    /// Background traffic, since it began.
    pub flows: Vec<FlowReport>,
}

/// What a flow of background traffic came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Where from, if from a host's own line.
    pub from: Option<String>,
    /// The host whose link it loads.
    pub to: String,
    /// The share of the link that was asked for.
    pub wanted: f64,
    /// The share that arrived at the end of the link.
    pub achieved: f64,
    /// Its frames that were lost on the way.
    pub lost: u64,
}

impl Report {
    /// Why the emulation was not true to the model; empty when it was.
    pub fn failures(&self) -> Vec<String> {
        let mut why = Vec::new();
        if self.late * LATE_ONE_IN > self.deliveries {
            let most = LATE_FLOOR_NS / 1_000;
            why.push(format!(
                "{} of {} deliveries were more than {most} us and 5 % of their time late",
                self.late, self.deliveries
            ));
        }
        if self.attachment.total() > 0 {
            why.push(format!(
                "{} frames were lost between host and switch: {:?}",
                self.attachment.total(),
                self.attachment
            ));
        }
        if self.gate_rearmed > 0 {
            why.push(format!(
                "a program of the lab's root replaced a host's queueing discipline, by which the network holds senders back; it was put back {} times",
                self.gate_rearmed
            ));
        }
        if self.deliveries == 0 {
            why.push("nothing was delivered, so nothing was shown".into());
        }
        why
    }

    /// Whether the emulation was true to the model.
    pub fn passed(&self) -> bool {
        self.failures().is_empty()
    }
}

/// Counts while the switch runs.
pub(crate) struct Meter {
    lateness: Histogram<u64>,
    max_ns: u64,
    pub report: Report,
}

impl Meter {
    pub fn new() -> Self {
        let lateness = Histogram::new_with_max(HISTOGRAM_MAX_NS, 3)
            .expect("the bounds are those of the library");
        Self {
            lateness,
            max_ns: 0,
            report: Report::default(),
        }
    }

    /// A copy that was due `due_ns` after it was taken, handed over `late_ns` after that.
    pub fn delivered(&mut self, due_ns: u64, late_ns: u64) {
        self.report.deliveries += 1;
        self.report.late += u64::from(late_ns > LATE_FLOOR_NS.max(due_ns / LATE_SHARE));
        self.max_ns = self.max_ns.max(late_ns);
        self.lateness.saturating_record(late_ns);
    }

    /// An arrival whose stamp was `by_ns` before the time used.
    pub fn clamped(&mut self, by_ns: u64) {
        self.report.clamped += 1;
        self.report.clamp_ns_max = self.report.clamp_ns_max.max(by_ns);
    }

    /// What was counted, with the quantiles.
    pub fn report(&self) -> Report {
        let known = |least: u64, value: u64| (self.report.deliveries >= least).then_some(value);
        Report {
            lateness_ns_p50: known(1, self.lateness.value_at_quantile(0.5)), // float: a quantile of statistics
            lateness_ns_p99: known(1_000, self.lateness.value_at_quantile(0.99)), // float: a quantile of statistics
            lateness_ns_max: known(1, self.max_ns),
            ..self.report.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_follows_its_rule() {
        let mut meter = Meter::new();
        assert!(!meter.report().passed(), "an empty cell shows nothing");
        for _ in 0..990 {
            meter.delivered(100_000, 50_000);
        }
        for _ in 0..10 {
            meter.delivered(100_000, 50_001);
        }
        assert!(meter.report().passed());
        assert_eq!(meter.report().lateness_ns_max, Some(50_001));
        meter.delivered(100_000, 60_000);
        assert_eq!(meter.report().late, 11);
        assert!(!meter.report().passed());
        // On a long way more is allowed.
        let mut meter = Meter::new();
        meter.delivered(10_000_000, 500_000);
        assert!(meter.report().passed());
        meter.report.attachment.socket = 1;
        assert!(!meter.report().passed());
        assert!(meter.report().failures()[0].contains("1 frames were lost"));
        meter.report.attachment.socket = 0;
        assert!(meter.report().passed());
        meter.report.gate_rearmed = 2;
        assert!(meter.report().failures()[0].contains("put back 2 times"));
    }
}
