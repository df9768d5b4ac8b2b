//! Available bit rate: a circuit whose sender is told its rate by the network.
//!
//! Model:   every 32nd cell of a circuit is a resource management cell. Each output that it leaves writes down the circuit's
//!          present rate and lowers the explicit rate to the max-min fair share of `TARGET` of its line, less what the
//!          categories before it took in the last interval; or marks it where more cells wait than its threshold (EFCI). Its
//!          destination returns it, without queueing. The sender then goes up by RIF of the peak, or marked down by RDF of its
//!          rate, never above the explicit rate or the peak nor below MCR (or a thousandth of the peak, so that it hears more).
//! Source:  ATM Forum TM 4.0 §5.10 (source, switch and destination behaviour); Charny, Clark and Jain 1995 (advertised rate).
//!          Deviations: EFCI is marked in the management cell itself; no ADTF, CRM or out-of-rate cells.
//! Units:   bits a second of whole cells.
//! Checked: `abr_circuits_share_fairly`, `a_short_share_is_given_to_others` in `tests/atm/abr.rs`.

use super::gcra::Gcra;
use super::spec::{Contract, Feedback};
use crate::CELL_WIRE;
use sonde_units::{BitRate, Instant, Ratio, Span};
use std::collections::BTreeMap;

/// One management cell in so many.
const NRM: u32 = 32;
/// What outputs give away of their lines, so that their queues drain.
const TARGET: Ratio = Ratio::new(95, 100);
/// A circuit that was silent for so long has no share.
const SILENT: Span = Span::millis(100);
/// Over which the load of other categories is measured.
const INTERVAL: Span = Span::millis(1);

/// What a management cell carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Management {
    /// The sender's present rate.
    pub current: u64,
    /// What it may have.
    pub explicit: u64,
    pub is_marked: bool,
}

/// The sender of a circuit.
#[derive(Clone)]
pub(crate) struct Source {
    rate: u64,
    peak: u64,
    least: u64,
    rif: Ratio,
    rdf: Ratio,
    feedback: Feedback,
    until_next: u32,
}

impl Source {
    /// Under `contract`, on a line that carries `usable` of cells.
    pub fn new(contract: &Contract, usable: u64) -> Self {
        let peak = contract.pcr.map_or(usable, BitRate::bps).min(usable);
        let least = contract
            .mcr
            .map_or(0, BitRate::bps)
            .max(peak / 1_000)
            .max(424);
        Self {
            rate: contract.rif.of(peak).max(least),
            peak,
            least,
            rif: contract.rif,
            rdf: contract.rdf,
            feedback: contract.feedback,
            until_next: 0,
        }
    }

    /// The management cell that is sent now, in place of a cell of a frame, if it is its turn.
    pub fn manage(&mut self) -> Option<Management> {
        if self.until_next > 0 {
            self.until_next -= 1;
            return None;
        }
        self.until_next = NRM - 1;
        Some(Management {
            current: self.rate,
            explicit: self.peak,
            is_marked: false,
        })
    }

    /// A management cell is back.
    pub fn hear(&mut self, cell: Management) {
        let by_rate = self.feedback == Feedback::ExplicitRate;
        self.rate = if cell.is_marked && !by_rate {
            self.rate - self.rdf.of(self.rate)
        } else {
            self.rate + self.rif.of(self.peak)
        };
        let most = if by_rate { cell.explicit } else { self.peak };
        self.rate = self.rate.min(most).min(self.peak).max(self.least);
    }

    /// From one cell to the next.
    pub fn gap(&self) -> Span {
        BitRate::new(self.rate)
            .expect("the least rate is above 0")
            .time(CELL_WIRE)
    }

    /// The bucket that it begins with.
    pub fn bucket(&self) -> Gcra {
        Gcra::new(self.gap(), Span::ZERO)
    }
}

/// What an output knows of the circuits that share its line.
#[derive(Default)]
pub(crate) struct Shares {
    circuits: BTreeMap<u32, (u64, Instant)>,
    /// Cells of earlier categories since then, and the bits a second that they took before.
    above: u64,
    since: Instant,
    taken: u64,
}

impl Shares {
    /// A cell of a category before ABR was sent.
    pub fn pass(&mut self) {
        self.above += 1;
    }

    /// A management cell of circuit `vc` leaves at `now`, on a line with this cell time.
    pub fn write(&mut self, now: Instant, vc: u32, cell: &mut Management, cell_time: Span) {
        let measured = now.since(self.since);
        if measured >= INTERVAL {
            self.taken = bits_a_second(self.above, measured);
            (self.above, self.since) = (0, now);
        }
        self.circuits.insert(vc, (cell.current, now));
        self.circuits
            .retain(|_, (_, seen)| now.since(*seen) < SILENT);
        let target = TARGET.of(bits_a_second(1, cell_time));
        let share = self.advertised(target.saturating_sub(self.taken));
        cell.explicit = cell.explicit.min(share);
    }

    /// The max-min fair share of `rate`: circuits that have less, since others hold them back, leave the rest to the others.
    fn advertised(&self, rate: u64) -> u64 {
        let count = self.circuits.len() as u64;
        let mut share = rate / count.max(1);
        for _ in 0..count {
            let short = self
                .circuits
                .values()
                .filter(|(current, _)| *current < share);
            let (less, held) = short.fold((0, 0), |(n, sum), (current, _)| (n + 1, sum + current));
            let next = match count - less {
                0 => rate - held + self.circuits.values().map(|(c, _)| *c).max().unwrap_or(0),
                others => (rate - held) / others,
            };
            if next <= share {
                break;
            }
            share = next;
        }
        share.min(rate)
    }
}

/// The rate of so many cells in `span`.
pub(crate) fn bits_a_second(cells: u64, span: Span) -> u64 {
    let bits = u128::from(cells * CELL_WIRE.bits()) * 1_000_000_000_000;
    (bits / u128::from(span.as_picos().max(1))) as u64
}
