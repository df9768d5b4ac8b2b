//! The virtual clock: drives the networks of `sonde-link` without wall time.
//!
//! Model:   [`Clock`] moves from one happening to the next: an event of the network, or an action that its caller planned.
//!          Its callers: the times of an idle network, the replay of a ledger, and TCP, whose streams lose, recover and share.
//! Units:   times are the model's, in picoseconds; rates are bits a second of user bytes, rounded down.
//! Checked: closed forms beside each part; `tests/ceilings.rs`, `tests/determinism.rs`, `tests/parity.rs`, `tests/table.rs`,
//!          `tests/loss.rs`, `tests/incast.rs`, `tests/discard.rs`, `tests/marks.rs`.
#![forbid(unsafe_code)]

mod blast;
mod clock;
mod idle;
mod incast;
mod loaded;
mod meter;
mod outages;
mod pairs;
mod replay;
mod site;
mod steady;
mod stream;
mod tcp;

pub use blast::udp_expected;
pub use clock::{AGENDA_MAX, Clock, Happening};
pub use idle::{TimeError, first_one_way, neighbour, one_way, round_trip, train};
pub use incast::{Incast, incast, incast_at};
pub use loaded::{LoadedError, loaded_round_trips};
pub use meter::Reason;
pub use outages::{Downtime, Outage, downtime};
pub use pairs::{PairTime, pair_times};
pub use replay::{Difference, Lateness, Parity, ReplayError, replay, replay_with};
pub use site::Between;
pub use stream::{Shared, share, streams, tcp_expected, tcp_expected_over};
pub use tcp::{Congestion, Sender};
