//! The one interface of every network: offers in, events out, time as an argument.
//!
//! Model:   `offer` puts a frame before its station, `poll` drains what has happened until `now`, `poll_at` says when to
//!          come back. Every copy of a taken frame leaves by exactly one [`Event::Deliver`] or [`Event::Lost`]; the frame
//!          itself by exactly one [`Event::Done`], after its last copy. An event's time is never after the `now` of the
//!          poll that returned it, events come in the order of their times, and the outcome does not depend on when `poll`
//!          is called. An idle network has no events.
//! Checked: `tests/properties.rs`.

use crate::{Class, Counters, Fault, Flow, Frame, FrameId, Piece, Port};
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
    /// The same for the segments of interface `number` of the hosts; [`Self::command`] is for 0.
    ///
    /// # Errors
    /// [`Refused`], also where no host has so many.
    ///
    /// # Panics
    /// As [`Self::command`].
    fn command_on(&mut self, now: Instant, number: u16, command: Command) -> Result<(), Refused> {
        match number {
            0 => self.command(now, command),
            _ => Err(Refused::NO_SUCH_INTERFACE),
        }
    }
    /// The next thing that has happened until `now`; none when all is told.
    fn poll(&mut self, now: Instant) -> Option<Event>;
    /// When there will be something to poll, the latest `now` if there is already; none while idle.
    fn poll_at(&self) -> Option<Instant>;
    /// What was counted so far.
    fn counters(&self) -> Counters;
}

/// A change of the network from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Establish or release a virtual circuit.
    Vc(VcCommand),
    /// Something breaks, is mended or changes.
    Fault(Fault),
    /// A flow of background traffic begins, changes its level or ends.
    Load(Flow),
    /// The processor of a host computes for this long, besides what it does for the network.
    Busy(Port, Span),
}

impl Command {
    /// The ports that it names: one, two or none.
    pub fn ports(&self) -> [Option<Port>; 2] {
        match *self {
            Self::Vc(VcCommand::Establish(a, b) | VcCommand::Release(a, b))
            | Self::Fault(Fault::Cut { a, b, .. }) => [Some(a), Some(b)],
            Self::Fault(Fault::Slow { from, to, .. }) => [from, Some(to)],
            Self::Load(flow) => [flow.from, Some(flow.to)],
            Self::Busy(port, _)
            | Self::Fault(Fault::Host { port, .. } | Fault::Pause { port, .. }) => {
                [Some(port), None]
            }
            Self::Fault(
                Fault::Link { port, .. }
                | Fault::Loss { port, .. }
                | Fault::Corruption { port, .. }
                | Fault::Duplication { port, .. }
                | Fault::Reordering { port, .. }
                | Fault::Delay { port, .. }
                | Fault::Narrow { port, .. }
                | Fault::Collision { port, .. },
            ) => [port, None],
            Self::Fault(
                Fault::Rate { .. }
                | Fault::Trunk { .. }
                | Fault::Restart { .. }
                | Fault::Manager { .. },
            ) => [None, None],
        }
    }

    /// The same with other ports.
    pub(crate) fn with_ports(self, of: impl Fn(Port) -> Port) -> Self {
        match self {
            Self::Vc(VcCommand::Establish(a, b)) => Self::Vc(VcCommand::Establish(of(a), of(b))),
            Self::Vc(VcCommand::Release(a, b)) => Self::Vc(VcCommand::Release(of(a), of(b))),
            Self::Fault(fault) => Self::Fault(fault.with_ports(of)),
            Self::Load(flow) => Self::Load(flow.with_ports(of)),
            Self::Busy(port, span) => Self::Busy(of(port), span),
        }
    }

    /// Whether the ports that it names are on a network of `ports` stations, and are two where it takes two.
    ///
    /// # Errors
    /// [`Refused::NoSuchPort`], with the first that is not.
    pub(crate) fn check(&self, ports: u16) -> Result<(), Refused> {
        let named = self.ports();
        let absent = named.into_iter().flatten().find(|port| port.0 >= ports);
        let twice = named[0].filter(|_| named[0] == named[1]);
        match absent.or(twice) {
            Some(port) => Err(Refused::NoSuchPort { port, ports }),
            None => Ok(()),
        }
    }
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
    /// The network is not made of such a thing.
    #[error("this network has no {what}; {remedy}")]
    NotHere {
        /// What it lacks.
        what: &'static str,
        /// A network that has it, or what to do instead.
        remedy: &'static str,
    },
    /// A value cannot be.
    #[error("{what} cannot be {value}; {remedy}")]
    Value {
        /// Of what.
        what: &'static str,
        /// The value asked for.
        value: String,
        /// What can be.
        remedy: &'static str,
    },
    /// A port is not on this network, or is named twice.
    #[error("h{} cannot be meant here: the network has h1 to h{ports}, and where two are named they differ", .port.0 + 1)]
    NoSuchPort {
        /// The port asked for.
        port: Port,
        /// How many there are.
        ports: u16,
    },
    /// All circuits of a port are being set up, so that none can be given up for another.
    #[error("all {table} circuits of h{} are being set up; wait for one, or enlarge the table (`table=1024`)", .port.0 + 1)]
    TableFull {
        /// The port.
        port: Port,
        /// How many circuits it can have.
        table: u64,
    },
}

impl Refused {
    /// A host that is named, or every one, has fewer interfaces.
    pub(crate) const NO_SUCH_INTERFACE: Self = Self::NotHere {
        what: "interface of this number there",
        remedy: "count those of a host from eth0, in the order of the networks that it is on",
    };
}

/// What routers made of a frame on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edit {
    /// Nothing: it comes as it was sent.
    #[default]
    None,
    /// They sent it on, or bridges did in fragments.
    Routed {
        /// The interface by which the last one did; the sender's where only bridges did.
        by: Port,
        /// How many routers did.
        hops: u8,
        /// What of it this is, where one of them cut it up; the other pieces arrive by themselves.
        piece: Option<Piece>,
    },
    /// One answered it, to its sender.
    Answer {
        /// The interface at which it had come to that one.
        of: Port,
        /// The interface by which the last one sent the answer on.
        by: Port,
        /// How many sent the answer on, beside who gave it.
        hops: u8,
        /// The answer.
        what: Answer,
    },
}

/// What a router answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was asked for an echo.
    Echo,
    /// The datagram has passed as many routers as it may.
    TimeExceeded,
    /// It is longer than what the next segment takes, and may not be cut up.
    TooLong {
        /// The most that it takes, in bytes.
        mtu: u16,
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
        /// What routers made of it.
        edit: Edit,
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
    /// A host's processor is busy with the network until `at + span` (host cost model).
    Busy {
        /// From when.
        at: Instant,
        /// Which host.
        port: Port,
        /// For how long.
        span: Span,
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
    /// On a medium that stations share.
    Medium,
    /// At the receiving station.
    Receiver,
    /// In a bridge between two segments.
    Bridge,
    /// In a router.
    Router,
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
    /// It collided too often (CSMA/CD: 16 times).
    Collisions,
    /// A switch discarded it early, so that whole frames are lost in place of parts of many (EPD).
    Discarded,
    /// It did not keep to the contract of its circuit (GCRA).
    Policed,
    /// A circuit or connection was refused or given up, or was lost while the frame was on it.
    Rejected,
    /// A link or trunk is down.
    LinkDown,
    /// The host is gone.
    HostDown,
    /// The network is parted between the two.
    Parted,
    /// The switch restarts.
    Restart,
    /// The datagram has passed as many routers as it may, and was an answer itself.
    Expired,
    /// A switch sent a part of it to another station.
    Misdelivered,
}

/// A change of state of the network's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The circuit between two stations carries frames now; it took this long to set up.
    CircuitUp(Port, Port, Span),
    /// It was released: idle too long, its address entry too old, evicted from a full table, lost or on command.
    CircuitDown(Port, Port),
    /// A fault began, ended or changed, by schedule or command.
    Fault(Fault),
    /// A flow of background traffic has this level from now on, by schedule or command.
    Load(Flow),
}

impl Network for Box<dyn Network + Send> {
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission {
        (**self).offer(now, frame)
    }
    fn ready(&self, port: Port, class: Class) -> bool {
        (**self).ready(port, class)
    }
    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        (**self).command(now, command)
    }
    fn command_on(&mut self, now: Instant, number: u16, command: Command) -> Result<(), Refused> {
        (**self).command_on(now, number, command)
    }
    fn poll(&mut self, now: Instant) -> Option<Event> {
        (**self).poll(now)
    }
    fn poll_at(&self) -> Option<Instant> {
        (**self).poll_at()
    }
    fn counters(&self) -> Counters {
        (**self).counters()
    }
}
