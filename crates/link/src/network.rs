//! The one interface of every network: offers in, events out, time as an argument.
//!
//! Model:   `offer` puts a frame before its station, `poll` drains what has happened until `now`, `poll_at` says when to
//!          come back. Every copy of a taken frame leaves by exactly one [`Event::Deliver`] or [`Event::Lost`]; the frame
//!          itself by exactly one [`Event::Done`], after its last copy. An event's time is never after the `now` of the
//!          poll that returned it, events come in the order of their times, and the outcome does not depend on when `poll`
//!          is called. An idle network has no events.
//! Checked: `tests/properties.rs`.

use crate::{Class, Counters, Frame, FrameId, Port};
use sonde_units::{Instant, Span};
use thiserror::Error;

/// Whether an offered frame was taken. An offer is never a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The network has it now.
    Taken,
    /// The station has no room; offer it again after [`Event::Ready`].
    Blocked,
}

/// A network under either clock.
pub trait Network {
    /// Puts `frame` before its station.
    ///
    /// # Panics
    /// If `now` is before an earlier `now`, or the sender is not on the network.
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission;
    /// Whether a station wants more frames. It may turn false by an offer; that it turned true is announced by
    /// [`Event::Ready`]. Between the two the station still takes what its queue can hold.
    fn ready(&self, port: Port, class: Class) -> bool;
    /// Changes the network from outside.
    ///
    /// # Errors
    /// [`Refused`] where this network has no such thing, no such port or no room; nothing is changed then.
    ///
    /// # Panics
    /// If `now` is before an earlier `now`.
    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused>;
    /// The next thing that has happened until `now`; none when all is told.
    fn poll(&mut self, now: Instant) -> Option<Event>;
    /// When there will be something to poll, the latest `now` if there is already; none while idle.
    fn poll_at(&self) -> Option<Instant>;
    /// What was counted so far.
    fn counters(&self) -> &Counters;
}

/// A change of the network from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Establish or release a virtual circuit.
    Vc(VcCommand),
}

/// What to do with the virtual circuit between two stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VcCommand {
    /// Set it up: at once as a PVC, after the set-up time as an SVC.
    Establish(Port, Port),
    /// Take it down.
    Release(Port, Port),
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The network has no circuits.
    #[error("this network has no virtual circuits; choose an ATM network, such as atm-oc3c")]
    NoCircuits,
    /// A port is not on this network, or is named twice.
    #[error("port {} is not usable here: the network has {ports} ports, counted from 0, and a circuit joins two of them", .port.0)]
    NoSuchPort {
        /// The port asked for.
        port: Port,
        /// How many there are.
        ports: u16,
    },
    /// All circuits of a port are being set up, so that none can be given up for another.
    #[error("all {table} circuits of port {} are being set up; wait for one, or enlarge the table (`table=1024`)", .port.0)]
    TableFull {
        /// The port.
        port: Port,
        /// How many circuits it can have.
        table: u64,
    },
}

/// What a network tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The last bit of a copy reached a station.
    Deliver {
        /// When.
        at: Instant,
        /// Which frame.
        id: FrameId,
        /// Which station.
        to: Port,
        /// Its state on arrival.
        mark: Mark,
    },
    /// A copy is gone.
    Lost {
        /// When.
        at: Instant,
        /// Which frame.
        id: FrameId,
        /// For which station.
        to: Port,
        /// Where.
        place: Place,
        /// Why.
        cause: Cause,
    },
    /// No copy of the frame is left inside: its bytes may go.
    Done {
        /// Which frame.
        id: FrameId,
    },
    /// A station that wanted no frames wants them again.
    Ready {
        /// When.
        at: Instant,
        /// Which station.
        port: Port,
        /// For which class.
        class: Class,
    },
    /// Something of the network's own changed.
    State {
        /// When.
        at: Instant,
        /// What.
        change: Change,
    },
}

/// The state of a delivered copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As it was sent.
    Ok,
    /// With a mark of congestion.
    Ce,
    /// With damaged bytes.
    Corrupt,
}

/// Where a copy was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// At the sending station, before the line.
    Station,
    /// On the way between station and switch, or between two stations.
    Path,
    /// In an output queue of the switch.
    Output,
}

/// Why a copy was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// It is longer than the network's MTU.
    TooLong,
    /// The queue was full.
    Overflow,
    /// A loss element drew it.
    Random,
    /// There is no circuit to its destination and none may be set up.
    NoCircuit,
    /// The network cannot send to all.
    NoBroadcast,
    /// Its destination is not on this network, or is its own sender.
    NoSuchPort,
}

/// A change of state of the network's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The circuit between two stations carries frames now; it took this long to set up.
    CircuitUp(Port, Port, Span),
    /// It was released: idle too long, its address entry too old, evicted from a full table, or on command.
    CircuitDown(Port, Port),
}
