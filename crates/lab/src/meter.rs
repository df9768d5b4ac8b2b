//! The lab's own measure of itself: lateness, losses in the attachment, and the verdict.
//!
//! Model:   a delivery is late by the time between the model's instant and the moment when the frame was written to the host,
//!          plus what its arrival had to be moved to keep time from going backwards. What counts as late, and what fails a
//!          cell, is the rule of [`Verdict`]. Late deliveries of less than 1 ms between them (0.1 ms where one between them was not late)
//!          are one span of time in which the lab was behind its model; of more than 2,048 spans (64, where a launch is kept) the two with the least time between
//!          them are joined.
//! Units:   nanoseconds; the histogram keeps three digits, the largest value is exact.
//! Checked: `the_verdict_follows_its_rule`, `spans_are_few_and_cover_what_was_late`.

use std::collections::BTreeMap;
use std::fmt;

use crate::priority::HadPriority;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use sonde_link::HostPort;
use sonde_measure::{Away, Disturbance, Disturber, Fidelity, Lateness, Loss, Verdict};

/// Late deliveries with less between them are of one span.
const APART_NS: u64 = 1_000_000;
/// The same where one between them was not late, so that the lab had caught up.
const APART_CAUGHT_UP_NS: u64 = 100_000;
/// The most spans of a report.
const SPANS_MAX: usize = 2_048;
/// The most of them that are kept with a launch.
const KEPT_MAX: usize = 64;
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

impl fmt::Display for AttachmentLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = [
            (self.interface_tx, "at an interface that sent"),
            (self.interface_rx, "at an interface that received"),
            (self.gate, "at a gate"),
            (self.socket, "at a packet socket"),
            (self.handover, "on the path to an interface"),
        ];
        let places = places.iter().filter(|(count, _)| *count > 0);
        let places: Vec<_> = places
            .map(|(count, place)| format!("{count} {place}"))
            .collect();
        f.write_str(&places.join(", "))
    }
}

/// What the switch did since the last mark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The lab's start, in ns since 1970.
    pub epoch_unix_ns: u64,
    /// The same by CLOCK_MONOTONIC.
    pub epoch_ns: u64,
    /// The time it covers.
    pub span_ns: u64,
    /// Frames that the model took.
    pub taken: u64,
    /// Offers that found no room; the frames waited.
    pub blocked: u64,
    /// Frames that the model lost.
    pub lost: BTreeMap<Loss, u64>,
    /// Copies handed to hosts.
    pub deliveries: u64,
    /// Those that were late.
    pub late: u64,
    /// The smallest bound by which one was judged; null without deliveries.
    pub bound_ns: Option<u64>,
    /// When the switch was behind its model, in order of time.
    pub behind: Vec<Behind>,
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
    /// The priority of the lab's own processes.
    pub priority: HadPriority,
    /// The plan of its CPUs.
    pub cpu_plan: String,
    /// Times that the switch moved between its own CPUs and the programs', which it does by the plan `auto`.
    pub cpu_moves: u64,
    /// How long it shared the programs' CPUs by its own choice.
    pub cpu_shared_ns: u64,
    /// Circuits that were set up by signalling.
    pub circuit_setups: u64,
    /// Background traffic, since it began.
    pub flows: Vec<FlowReport>,
    /// Frames of background traffic that are on their way now, of flows that have ended too.
    pub load_underway: u64,
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

/// A span of time in which deliveries were late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behind {
    /// When the first of them was due, in ns since the lab's start.
    pub from_ns: u64,
    /// When the last of them was written.
    pub to_ns: u64,
    /// The most that one was late.
    pub most_ns: u64,
    /// The host to which that one went, counted from 1.
    pub host: u16,
    /// Its interface, counted from 0.
    pub interface: u16,
    /// How many were late.
    pub late: u64,
}

impl Behind {
    fn join(&mut self, other: &Self) {
        if other.most_ns > self.most_ns {
            (self.most_ns, self.host, self.interface) =
                (other.most_ns, other.host, other.interface);
        }
        self.from_ns = self.from_ns.min(other.from_ns);
        self.to_ns = self.to_ns.max(other.to_ns);
        self.late += other.late;
    }
}

impl Report {
    /// When the switch was behind its model, by names and times of day.
    pub fn disturbances(&self) -> Vec<Disturbance> {
        let of = |span: &Behind| Disturbance {
            source: Disturber::Emulation,
            host: format!("h{}", span.host),
            interface: Some(format!("eth{}", span.interface)),
            from_unix_ns: self.epoch_unix_ns + span.from_ns,
            to_unix_ns: self.epoch_unix_ns + span.to_ns,
            most_ns: span.most_ns,
            events: span.late,
        };
        let mut few = self.behind.clone();
        while few.len() > KEPT_MAX {
            join_nearest(&mut few);
        }
        few.iter().map(of).collect()
    }

    /// The same by CLOCK_MONOTONIC, all of them.
    pub fn away(&self) -> Vec<Away> {
        let of = |span: &Behind| Away {
            from_ns: self.epoch_ns + span.from_ns,
            to_ns: self.epoch_ns + span.to_ns,
            most_ns: span.most_ns,
        };
        self.behind.iter().map(of).collect()
    }

    /// For what share of the time the switch was behind its model, 0 to 1, and by how much at most, in ns; `None` where it never was.
    pub fn lag(&self) -> Option<(f64, u64)> {
        let behind_ns: u64 = self
            .behind
            .iter()
            .map(|span| span.to_ns - span.from_ns)
            .sum();
        let most_ns = self.behind.iter().map(|span| span.most_ns).max()?;
        let share = behind_ns as f64 / self.span_ns.max(1) as f64;
        Some((share.min(1.0), most_ns))
    }

    /// Whether the emulation was true to the model, and why not.
    pub fn verdict(&self) -> Verdict {
        let lateness = Lateness {
            count: self.deliveries,
            p50_ns: self.lateness_ns_p50,
            p99_ns: self.lateness_ns_p99,
            max_ns: self.lateness_ns_max,
            ..Lateness::default()
        };
        let fidelity = Fidelity {
            late: self.late,
            bound_ns: self.bound_ns,
            attachment_losses: self.attachment.total(),
            gate_rearmed: self.gate_rearmed,
        };
        Verdict::judge(&lateness, fidelity)
    }
}

/// Counts while the switch runs.
pub(crate) struct Meter {
    lateness: Histogram<u64>,
    max_ns: u64,
    /// Whether a delivery that was due after the last late one was written was not late.
    is_caught_up: bool,
    pub report: Report,
}

impl Meter {
    pub fn new() -> Self {
        let lateness = Histogram::new_with_max(HISTOGRAM_MAX_NS, 3)
            .expect("the bounds are those of the library");
        Self {
            lateness,
            max_ns: 0,
            is_caught_up: true,
            report: Report::default(),
        }
    }

    /// A copy for `to` that was due at `at_ns`, `due_ns` after it was taken, and was written `late_ns` after that.
    pub fn delivered(&mut self, to: HostPort, at_ns: u64, due_ns: u64, late_ns: u64) {
        let bound_ns = Verdict::bound_ns(due_ns);
        let report = &mut self.report;
        report.deliveries += 1;
        report.bound_ns = Some(report.bound_ns.map_or(bound_ns, |one| one.min(bound_ns)));
        self.max_ns = self.max_ns.max(late_ns);
        self.lateness.saturating_record(late_ns);
        if late_ns > bound_ns {
            report.late += 1;
            fall_behind(
                &mut report.behind,
                Behind {
                    from_ns: at_ns,
                    to_ns: at_ns + late_ns,
                    most_ns: late_ns,
                    host: to.host + 1,
                    interface: to.number,
                    late: 1,
                },
                self.is_caught_up,
            );
            self.is_caught_up = false;
        } else if !self.is_caught_up {
            let last = report.behind.last();
            self.is_caught_up = last.is_none_or(|last| last.to_ns < at_ns);
        }
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

/// Adds a late delivery to the spans, which are few and in order of time.
fn fall_behind(spans: &mut Vec<Behind>, late: Behind, is_caught_up: bool) {
    let apart_ns = match is_caught_up {
        true => APART_CAUGHT_UP_NS,
        false => APART_NS,
    };
    match spans.last_mut() {
        Some(last) if late.from_ns < last.to_ns.saturating_add(apart_ns) => last.join(&late),
        Some(_) | None => spans.push(late),
    }
    if spans.len() > SPANS_MAX {
        join_nearest(spans);
    }
}

/// Joins the two of several spans with the least time between them.
fn join_nearest(spans: &mut Vec<Behind>) {
    let between = |at: &usize| spans[at + 1].from_ns.saturating_sub(spans[*at].to_ns);
    let least = (0..spans.len() - 1).min_by_key(between);
    let least = least.expect("there are several");
    let next = spans.remove(least + 1);
    spans[least].join(&next);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// eth0 of a host.
    fn eth0(host: u16) -> HostPort {
        HostPort {
            host,
            number: 0,
            segment: 0,
            carrier: 0,
            station: host,
        }
    }

    #[test]
    fn the_verdict_follows_its_rule() {
        let to = eth0(1);
        let mut meter = Meter::new();
        let passed = |meter: &Meter| meter.report().verdict().passed();
        assert!(!passed(&meter), "an empty cell shows nothing");
        for _ in 0..990 {
            meter.delivered(to, 0, 100_000, 50_000);
        }
        for _ in 0..10 {
            meter.delivered(to, 0, 100_000, 50_001);
        }
        assert!(passed(&meter));
        assert_eq!(meter.report().lateness_ns_max, Some(50_001));
        meter.delivered(to, 0, 100_000, 60_000);
        assert_eq!(meter.report().late, 11);
        assert!(!passed(&meter));
        // On a long way more is allowed.
        let mut meter = Meter::new();
        meter.delivered(to, 0, 10_000_000, 500_000);
        assert!(passed(&meter));
        assert_eq!(meter.report().verdict().bound_ns, 500_000);
        meter.report.attachment.socket = 1;
        assert!(meter.report().verdict().reasons[0].contains("1 frames were lost"));
        meter.report.attachment.socket = 0;
        assert!(passed(&meter));
        meter.report.gate_rearmed = 2;
        assert!(meter.report().verdict().reasons[0].contains("restored 2 times"));
    }

    #[test]
    fn spans_are_few_and_cover_what_was_late() {
        let mut meter = Meter::new();
        meter.delivered(eth0(0), 1_000_000, 0, 60_000);
        meter.delivered(eth0(1), 1_900_000, 0, 300_000);
        meter.delivered(eth0(0), 2_000_000, 0, 10_000);
        let first = Behind {
            from_ns: 1_000_000,
            to_ns: 2_200_000,
            most_ns: 300_000,
            host: 2,
            interface: 0,
            late: 2,
        };
        meter.report.span_ns = 12_000_000;
        assert_eq!(meter.report().behind, [first]);
        assert_eq!(meter.report().lag(), Some((0.1, 300_000)));
        // What was on time after it ends a span, but for a moment.
        meter.delivered(eth0(0), 2_210_000, 0, 10_000);
        meter.delivered(eth0(0), 2_290_000, 0, 60_000);
        assert_eq!(meter.report().behind.len(), 1);
        meter.delivered(eth0(0), 2_360_000, 0, 10_000);
        meter.delivered(eth0(0), 2_500_000, 0, 60_000);
        assert_eq!(meter.report().behind.len(), 2);
        // Each further from the last than that one from its own last.
        let mut at_ns = 2_560_000;
        for more in 1..=3_000 {
            at_ns += APART_NS + more;
            meter.delivered(eth0(0), at_ns, 0, 50_001);
            at_ns += 50_001;
        }
        let report = meter.report();
        assert_eq!(report.behind.len(), SPANS_MAX);
        let all: u64 = report.behind.iter().map(|span| span.late).sum();
        assert_eq!(all, report.late);
        assert_eq!(report.behind[0].from_ns, 1_000_000);
        assert_eq!(report.behind[SPANS_MAX - 1].to_ns, at_ns);
        assert!(
            report
                .behind
                .is_sorted_by(|one, next| one.to_ns < next.from_ns)
        );
        let kept = report.disturbances();
        assert_eq!(kept.len(), KEPT_MAX);
        assert_eq!(kept.iter().map(|one| one.events).sum::<u64>(), all);
        assert_eq!(report.away().len(), SPANS_MAX);
    }
}
