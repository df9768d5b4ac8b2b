//! What is said of sweeps.
//!
//! Units:   bytes of a call or window; bits a second; nanoseconds.
//! Checked: the tests of `finding::sweep`.

use sonde_measure::KnobValues;

use super::Words;
use crate::format::{bytes, count, rate, share, significant, time};
use crate::sweep::SweepCurve;

/// Linux delays an acknowledgement so long at least.
const DELAYED_NS: f64 = 40e6;

/// Where a curve levels off.
pub(crate) struct Knee<'c>(pub &'c SweepCurve);

impl Words for Knee<'_> {
    fn sentence(&self) -> String {
        let curve = self.0;
        let interval = match (curve.knee_low, curve.knee_high) {
            (Some(low), Some(high)) => format!(" (95 %: {} to {})", bytes(low), bytes(high)),
            _ => String::new(),
        };
        format!(
            "Over {} on {} with {} the rate levels off at {}; calls of {}{interval} reach 95 % of that.",
            curve.by(),
            curve.network,
            curve.setting(),
            rate(curve.plateau_bps.0),
            bytes(curve.knee_bytes)
        )
    }
}

/// A window that binds.
pub(crate) struct Law<'c> {
    pub curve: &'c SweepCurve,
    pub window_bytes: u64,
    pub limit_bps: f64,
}

impl Law<'_> {
    fn trip_ns(&self) -> f64 {
        self.window_bytes as f64 * 8e9 / self.limit_bps
    }
}

impl Words for Law<'_> {
    fn sentence(&self) -> String {
        format!(
            "The window binds over {} on {} with {}: {} in a round trip of {} is {}, and the plateau is {}.",
            self.curve.by(),
            self.curve.network,
            self.curve.setting(),
            bytes(self.window_bytes),
            time(self.trip_ns()),
            rate(self.limit_bps),
            rate(self.curve.plateau_bps.0)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} B x 8 / {} = {}",
            count(self.window_bytes),
            time(self.trip_ns()),
            rate(self.limit_bps)
        ))
    }
}

/// A sender that starts and stops.
pub(crate) struct StartStop<'c> {
    pub curve: &'c SweepCurve,
    pub window_bytes: u64,
    pub segment_bytes: u64,
    /// What is sent at a time, and how long it is until the next.
    pub sent_bytes: f64,
    pub pause_ns: f64,
}

impl Words for StartStop<'_> {
    fn sentence(&self) -> String {
        let why = match self.pause_ns >= DELAYED_NS {
            true => ", which the peer delays",
            false => "",
        };
        format!(
            "Start and stop over {} on {} with {}: the window of {} holds less than two segments of {}, so each waits for the \
             acknowledgement of the one before{why}: {} windows per second, {}.",
            self.curve.by(),
            self.curve.network,
            self.curve.setting(),
            bytes(self.window_bytes),
            bytes(self.segment_bytes),
            significant(1e9 / self.pause_ns, 3),
            rate(self.curve.plateau_bps.0)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} B x 8 / {} = {} from one window to the next",
            significant(self.sent_bytes, 5),
            rate(self.curve.plateau_bps.0),
            time(self.pause_ns)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some("give windows room for several segments, or lower the MTU".into())
    }
}

/// The constant rates of UDP that a network carries.
pub(crate) struct UdpLimit<'c> {
    pub network: &'c str,
    pub by: &'c str,
    pub knobs: &'c KnobValues,
    /// The share that may be lost.
    pub most_lost: f64,
    /// The lowest rate that was sent.
    pub lowest_bps: f64,
    /// The highest rate with no more lost, and what was lost of it; and the lowest with more.
    pub held: Option<(f64, f64)>,
    pub next: Option<(f64, f64)>,
}

impl Words for UdpLimit<'_> {
    fn sentence(&self) -> String {
        let by = (self.by != "udp").then(|| self.by.to_owned());
        let set: Vec<String> = by.into_iter().chain(self.knobs.words()).collect();
        let of = match set.is_empty() {
            true => "UDP".to_owned(),
            false => format!("UDP ({})", set.join(", ")),
        };
        let network = self.network;
        match (self.held, self.next) {
            (Some((held, lost)), Some((sent, much))) => format!(
                "{of} on {network} carries {} with {} lost; of {} sent {} are lost.",
                rate(held),
                share(lost),
                rate(sent),
                share(much)
            ),
            (Some((held, _)), None) => format!(
                "{of} on {network} carries every constant rate that was sent, up to {}, with {} lost or less.",
                rate(held),
                share(self.most_lost)
            ),
            (None, _) => format!(
                "{of} on {network} loses more than {} at every constant rate that was sent, from {} on.",
                share(self.most_lost),
                rate(self.lowest_bps)
            ),
        }
    }
}
