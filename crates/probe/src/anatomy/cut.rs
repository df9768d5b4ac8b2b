//! Messages cut into parts at their moments.
//!
//! Model:   [`super`]'s. A part that most messages lack a stamp for is null, with the reason; one between two clocks is told
//!          only where it is larger than their error.
//! Units:   nanoseconds.
//! Checked: `anatomy::tests`.

use sonde_measure::Path;
use sonde_measure::{Measurement, Phase, Quantity};
use sonde_stats::Series;

use super::{Here, Offset, There};

/// The parts of messages, one series each; all have the same messages.
pub(super) struct Cut {
    pub(super) one_way: Vec<u64>,
    pub(super) parts: Vec<(Quantity, std::result::Result<Vec<u64>, String>)>,
    pub(super) acknowledged: Vec<u64>,
    /// Messages whose moments were not in their order, by one clock: left out.
    pub(super) out_of_order: u64,
}

/// The moments of one message, on the measuring side's clock: called, scheduled, left, arrived, ready, returned.
type Moments = [Option<i64>; 6];

/// What lies between each two of them.
const PARTS: [Quantity; 5] = [
    Quantity::SendCallNs,
    Quantity::QueueNs,
    Quantity::WireNs,
    Quantity::WakeNs,
    Quantity::ReceiveNs,
];
/// The stamps among them, in words.
const NAMES: [&str; 6] = [
    "",
    "the packet scheduler's stamp (TX_SCHED)",
    "the driver's stamp of what was sent (TX_SOFTWARE)",
    "the peer's stamp of what was received (RX_SOFTWARE)",
    "",
    "",
];
/// The place among the moments from which on they are the peer's.
const THERE: usize = 3;

impl Cut {
    pub(super) fn of(sent: &[Here], arrivals: &[There], clock: Offset) -> Self {
        let mut all: Vec<(Moments, Option<u64>)> = Vec::with_capacity(sent.len());
        let mut place = 0;
        for here in sent {
            while arrivals
                .get(place)
                .is_some_and(|there| there.index != here.index)
            {
                place += 1;
            }
            let Some(there) = arrivals.get(place) else {
                break;
            };
            all.push((
                moments(here, there, clock),
                here.acknowledged_ns
                    .map(|at| at.saturating_sub(here.called_ns)),
            ));
        }
        // A stamp that most messages lack is not had.
        let had: Vec<bool> = (0..6)
            .map(|at| 2 * all.iter().filter(|(of, _)| of[at].is_some()).count() > all.len())
            .collect();
        let mut cut = Self {
            one_way: Vec::new(),
            parts: Vec::new(),
            acknowledged: Vec::new(),
            out_of_order: 0,
        };
        let mut kept: Vec<Moments> = Vec::new();
        for (of, acknowledged) in all {
            let whole = (0..6).all(|at| !had[at] || of[at].is_some());
            let mut known = (0..6).filter(|at| had[*at]).filter_map(|at| of[at]);
            let ordered = clock.error_ns > 0 || known.by_ref().is_sorted();
            match (whole, ordered) {
                (true, true) => {
                    kept.push(of);
                    cut.acknowledged.extend(acknowledged);
                }
                (true, false) => cut.out_of_order += 1,
                _ => {}
            }
        }
        let part = |of: &Moments, from: usize, to: usize| {
            let span = of[to].unwrap_or(0) - of[from].unwrap_or(0);
            u64::try_from(span).unwrap_or(0)
        };
        cut.one_way = kept.iter().map(|of| part(of, 0, 5)).collect();
        for (place, quantity) in PARTS.iter().enumerate() {
            let (from, to) = (place, place + 1);
            let missing = [from, to].into_iter().find(|at| !had[*at]);
            let found = match missing {
                Some(at) => Err(format!("{} was not available here", NAMES[at])),
                None => Ok(kept
                    .iter()
                    .map(|of| part(of, from, to))
                    .collect::<Vec<u64>>()),
            };
            let found = found.and_then(|values| told(values, to == THERE, clock.error_ns));
            cut.parts.push((*quantity, found));
        }
        cut
    }

    pub(super) fn measurements(
        self,
        path: Path,
        nic_trips: std::result::Result<Vec<u64>, String>,
    ) -> Vec<Measurement> {
        let warm = |quantity, found: std::result::Result<Vec<u64>, String>| {
            let (values, reason) = match found {
                Ok(values) if values.is_empty() => (
                    values,
                    Some("no message had all its moments in order".to_string()),
                ),
                Ok(values) => (values, None),
                Err(reason) => (Vec::new(), Some(reason)),
            };
            Measurement {
                touched: None,
                quantity,
                phase: Phase::Warm,
                step: None,
                series: Series::from_iter(values),
                reason,
            }
        };
        let mut all = vec![warm(Quantity::OneWayNs, Ok(self.one_way))];
        all.extend(
            self.parts
                .into_iter()
                .map(|(quantity, found)| warm(quantity, found)),
        );
        if path == Path::Tcp {
            let found = match self.acknowledged.is_empty() {
                true => Err("no acknowledgement came before the answer".into()),
                false => Ok(self.acknowledged),
            };
            all.push(warm(Quantity::AckNs, found));
        }
        all.push(warm(Quantity::NicTripNs, nic_trips));
        all
    }
}

/// From leaving the card to the answer's arrival there; why not, where `card` says so or its stamps did not come.
pub(super) fn nic_trips(
    sent: &[Here],
    card: std::result::Result<(), String>,
) -> std::result::Result<Vec<u64>, String> {
    card?;
    let trip = |one: &Here| {
        let [left, came] = one.nic_ns;
        came?.checked_sub(left?)
    };
    let trips: Vec<u64> = sent.iter().filter_map(trip).collect();
    if 2 * trips.len() > sent.len() {
        return Ok(trips);
    }
    Err(format!(
        "the card's stamps came of {} of {} messages and their answers only",
        trips.len(),
        sent.len()
    ))
}

/// A part between two clocks is told only where it is larger than their error.
pub(super) fn told(
    values: Vec<u64>,
    two_clocks: bool,
    error_ns: u64,
) -> std::result::Result<Vec<u64>, String> {
    if !two_clocks || error_ns == 0 {
        return Ok(values);
    }
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    if median > error_ns {
        return Ok(values);
    }
    Err(format!(
        "the hosts' clocks agree within {error_ns} ns only, and this part is {median} ns by them"
    ))
}

fn moments(here: &Here, there: &There, clock: Offset) -> Moments {
    let near = |at: u64| Some(at as i64);
    let far = |at: u64| Some(at as i64 - clock.offset_ns);
    // An attempt that began before the message was there found it on its way.
    let ready_ns = there.ready_ns.max(there.stamped_ns).min(there.returned_ns);
    [
        near(here.called_ns),
        here.scheduled_ns.and_then(near),
        here.left_ns.and_then(near),
        Some(there.stamped_ns).filter(|at| *at > 0).and_then(far),
        far(ready_ns),
        far(there.returned_ns),
    ]
}
