//! Parity: a ledger written under one clock, replayed under this one and compared.
//!
//! Model:   each offer and command of the ledger is given to a fresh network at its recorded time. The network must say
//!          the same to each offer, and tell the same deliveries and losses in the same order at the same model times.
//!          What the ledger's driver had not polled when it ended is no difference, unless the ledger says that it is whole.
//!          Lateness is what the real clock added: the time at which bytes were written, less the model's.
//! Units:   picoseconds; lateness counts from the model's time.
//! Checked: `tests/parity.rs`.

use crate::idle::Built;
use sonde_link::ledger::{Entry, Header, LedgerError};
use sonde_link::{Admission, Captured, FrameId, Network, SpecError, join};
use sonde_units::{Instant, Span};
use std::collections::VecDeque;
use std::fmt;
use thiserror::Error;

/// What a replay found.
#[derive(Clone, Debug, Default)]
pub struct Parity {
    /// Offers that were repeated.
    pub offers: u64,
    /// Deliveries that the ledger has.
    pub deliveries: u64,
    /// Losses that the ledger has.
    pub losses: u64,
    /// Whether the ledger was ended, so that nothing is missing from it.
    pub whole: bool,
    /// How late the deliveries really were.
    pub lateness: Lateness,
    /// Where ledger and model part; none where they agree. Nothing after it was replayed.
    pub first_difference: Option<Difference>,
}

/// How much later than in the model deliveries really happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Deliveries whose real time is in the ledger.
    pub deliveries: u64,
    /// Those that were later than the tolerance.
    pub beyond: u64,
    /// The latest.
    pub max: Span,
    /// Mean, rounded down; an early one counts as 0.
    pub mean: Span,
    /// Those that happened before their time in the model: never, if the driver is right.
    pub early: u64,
}

/// Where ledger and model part.
#[derive(Clone, Copy, Debug)]
pub enum Difference {
    /// The model said something else to an offer.
    Admission {
        /// When.
        at: Instant,
        /// Which frame.
        id: FrameId,
        /// What the ledger says.
        ledger: Admission,
        /// What the model says.
        model: Admission,
    },
    /// The next delivery or loss is another one, or missing on one side.
    Event {
        /// Counted from 1 over deliveries and losses.
        number: u64,
        /// What the ledger has.
        ledger: Option<Entry>,
        /// What the model has.
        model: Option<Entry>,
    },
    /// The model refused a command that the ledger's network had obeyed.
    Command {
        /// When.
        at: Instant,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admission {
                at,
                id,
                ledger,
                model,
            } => write!(
                f,
                "frame {} offered at {}: {ledger:?} in the ledger, {model:?} in the model",
                id.0,
                at.since(Instant::START)
            ),
            Self::Event {
                number,
                ledger,
                model,
            } => {
                write!(f, "event {number}: in the ledger ")?;
                write_entry(f, ledger)?;
                f.write_str(", in the model ")?;
                write_entry(f, model)
            }
            Self::Command { at } => write!(
                f,
                "a command at {} was obeyed in the ledger and refused in the model",
                at.since(Instant::START)
            ),
        }
    }
}

fn write_entry(f: &mut fmt::Formatter<'_>, entry: &Option<Entry>) -> fmt::Result {
    match entry {
        None => f.write_str("nothing"),
        Some(Entry::Deliver { at, id, to, .. }) => write!(
            f,
            "frame {} at port {} at {}",
            id.0,
            to.0,
            at.since(Instant::START)
        ),
        Some(Entry::Lost {
            at,
            id,
            to,
            place,
            cause,
        }) => write!(
            f,
            "frame {} for port {} lost at {} ({place:?}, {cause:?})",
            id.0,
            to.0,
            at.since(Instant::START)
        ),
        Some(other) => write!(f, "{other:?}"),
    }
}

/// Why a ledger could not be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// It could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Its network cannot be built.
    #[error("the network of the ledger cannot be built: {0}")]
    Network(#[from] SpecError),
}

/// Replays `entries`, as a [`Reader`](sonde_link::ledger::Reader) gives them, on the network of `header`; deliveries that
/// were later than `tolerance` are counted.
///
/// # Errors
/// [`ReplayError`]. That ledger and model differ is a result, not an error.
pub fn replay(
    header: &Header,
    entries: impl IntoIterator<Item = Result<Entry, LedgerError>>,
    tolerance: Span,
) -> Result<Parity, ReplayError> {
    replay_with(header, entries, tolerance, Vec::new())
}

/// The same for a ledger whose network was given a capture to replay, which the ledger does not have.
///
/// # Errors
/// As [`replay`].
pub fn replay_with(
    header: &Header,
    entries: impl IntoIterator<Item = Result<Entry, LedgerError>>,
    tolerance: Span,
    capture: Vec<Captured>,
) -> Result<Parity, ReplayError> {
    let mut replay = Replay {
        network: join(&header.site, header.seed, capture)?,
        now: Instant::START,
        told: VecDeque::new(),
        parity: Parity::default(),
        late: 0,
        tolerance,
    };
    for entry in entries {
        if let Err(difference) = replay.take(entry?) {
            replay.parity.first_difference = Some(difference);
            break;
        }
    }
    let Replay {
        mut parity, late, ..
    } = replay;
    let mean = late / u128::from(parity.lateness.deliveries.max(1));
    parity.lateness.mean = Span::picos(mean as u64);
    Ok(parity)
}

struct Replay {
    network: Built,
    now: Instant,
    /// Deliveries and losses of the model that the ledger has not come to yet.
    told: VecDeque<Entry>,
    parity: Parity,
    /// The sum of what was late.
    late: u128,
    tolerance: Span,
}

impl Replay {
    /// Hears what the model tells until `at`.
    fn hear(&mut self, at: Instant) {
        self.now = self.now.max(at);
        while let Some(event) = self.network.poll(self.now) {
            self.told.extend(Entry::of_event(&event, None));
        }
    }

    fn take(&mut self, entry: Entry) -> Result<(), Difference> {
        self.hear(entry.at());
        match entry {
            Entry::Offer {
                at,
                frame,
                admission: ledger,
            } => {
                self.parity.offers += 1;
                let model = self.network.offer(self.now, frame);
                if model != ledger {
                    let id = frame.id;
                    return Err(Difference::Admission {
                        at,
                        id,
                        ledger,
                        model,
                    });
                }
            }
            Entry::Command {
                at,
                number,
                command,
            } => {
                let done = self.network.command_on(self.now, number, command);
                done.map_err(|_| Difference::Command { at })?;
            }
            Entry::Deliver { at, actual, .. } => {
                self.parity.deliveries += 1;
                self.expect(entry)?;
                if let Some(actual) = actual {
                    self.note_lateness(at, actual);
                }
            }
            Entry::Lost { .. } => {
                self.parity.losses += 1;
                self.expect(entry)?;
            }
            Entry::End { .. } => {
                self.parity.whole = true;
                if let Some(model) = self.told.pop_front() {
                    return Err(self.part(None, Some(model)));
                }
            }
        }
        Ok(())
    }

    /// The ledger's next delivery or loss must be the model's.
    fn expect(&mut self, ledger: Entry) -> Result<(), Difference> {
        let model = self.told.pop_front();
        if model.is_some_and(|model| model.encode() == without_actual(ledger).encode()) {
            return Ok(());
        }
        Err(self.part(Some(ledger), model))
    }

    fn part(&self, ledger: Option<Entry>, model: Option<Entry>) -> Difference {
        let seen = self.parity.deliveries + self.parity.losses;
        Difference::Event {
            number: seen + u64::from(ledger.is_none()),
            ledger,
            model,
        }
    }

    fn note_lateness(&mut self, at: Instant, actual: Instant) {
        let (lateness, late) = (&mut self.parity.lateness, actual.since(at));
        lateness.deliveries += 1;
        lateness.early += u64::from(actual < at);
        lateness.beyond += u64::from(late > self.tolerance);
        lateness.max = lateness.max.max(late);
        self.late += u128::from(late.as_picos());
    }
}

/// The model's part of an entry.
fn without_actual(entry: Entry) -> Entry {
    match entry {
        Entry::Deliver {
            at,
            id,
            to,
            mark,
            edit,
            actual: _,
        } => Entry::Deliver {
            at,
            id,
            to,
            mark,
            edit,
            actual: None,
        },
        other => other,
    }
}
