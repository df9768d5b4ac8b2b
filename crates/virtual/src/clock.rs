//! A clock that jumps: from one event of a network, or planned action, to the next.
//!
//! Model:   time moves to the earlier of the network's `poll_at` and the first entry of an agenda. At equal times the
//!          network's events come first, then actions in the order in which they were planned. Each step is bounded by a
//!          time that the caller gives.
//! Checked: `ties_go_to_the_network_then_by_insertion`, `a_step_stops_at_its_bound`.

use sonde_link::{Admission, Class, Command, Event, Frame, Network, Port, Refused};
use sonde_units::Instant;
use std::collections::BTreeMap;

/// The most actions that an agenda holds.
pub const AGENDA_MAX: usize = 1 << 20;

/// What a step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening<A> {
    /// The network tells something.
    Event(Event),
    /// The time of a planned action has come.
    Action(A),
}

/// A network under virtual time, with an agenda of actions `A` of its caller.
pub struct Clock<N, A = ()> {
    network: N,
    now: Instant,
    agenda: BTreeMap<(Instant, u64), A>,
    planned: u64,
}

impl<N: Network, A> Clock<N, A> {
    /// Starts at [`Instant::START`] with an empty agenda.
    pub fn new(network: N) -> Self {
        Self {
            network,
            now: Instant::START,
            agenda: BTreeMap::new(),
            planned: 0,
        }
    }

    /// The model's time. It never decreases.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The network, to look at.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// The network, to prepare it for a test.
    #[cfg(test)]
    pub fn network_mut(&mut self) -> &mut N {
        &mut self.network
    }

    /// Offers a frame now.
    pub fn offer(&mut self, frame: Frame) -> Admission {
        self.network.offer(self.now, frame)
    }

    /// Whether a station wants more frames.
    pub fn ready(&self, port: Port, class: Class) -> bool {
        self.network.ready(port, class)
    }

    /// Changes the network now.
    ///
    /// # Errors
    /// What the network refuses.
    pub fn command(&mut self, command: Command) -> Result<(), Refused> {
        self.network.command(self.now, command)
    }

    /// Plans an action; one whose time is past comes at once.
    ///
    /// # Panics
    /// Beyond [`AGENDA_MAX`] actions: a caller whose agenda grows without end is broken.
    pub fn plan(&mut self, at: Instant, action: A) {
        assert!(
            self.agenda.len() < AGENDA_MAX,
            "an agenda holds at most {AGENDA_MAX} actions"
        );
        self.agenda.insert((at.max(self.now), self.planned), action);
        self.planned += 1;
    }

    /// The time of the next step; none where nothing is to come.
    pub fn next_at(&self) -> Option<Instant> {
        [self.event_at(), self.action_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn event_at(&self) -> Option<Instant> {
        self.network.poll_at().map(|at| at.max(self.now))
    }

    fn action_at(&self) -> Option<Instant> {
        self.agenda.first_key_value().map(|((at, _), _)| *at)
    }

    /// Moves to the next happening, if there is one at `until` or before. Otherwise time stays where it is.
    ///
    /// # Panics
    /// Where the network asks to be polled and then neither tells anything nor names a later time.
    pub fn step(&mut self, until: Instant) -> Option<Happening<A>> {
        loop {
            let at = self.next_at().filter(|at| *at <= until)?;
            self.now = at;
            if self.event_at() != Some(at) {
                let (_, action) = self.agenda.pop_first()?;
                return Some(Happening::Action(action));
            }
            if let Some(event) = self.network.poll(at) {
                return Some(Happening::Event(event));
            }
            assert!(
                self.event_at() != Some(at),
                "a network with nothing to tell names a later time"
            );
        }
    }

    /// Takes every step until `until`, telling each to `on`; time is `until` then.
    pub fn run_until(&mut self, until: Instant, mut on: impl FnMut(&mut Self, Happening<A>)) {
        while let Some(happening) = self.step(until) {
            on(self, happening);
        }
        self.now = self.now.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_link::{Ecn, Fabric, FrameId, Kind, To, resolve};
    use sonde_units::{Bytes, Span};

    fn clock() -> Clock<Fabric, char> {
        let spec = resolve("wire:delay=10ms", &|_| unreachable!()).unwrap();
        Clock::new(Fabric::new(&spec, 2, 0).unwrap())
    }

    fn frame(id: u64) -> Frame {
        let (from, to) = (Port(0), To::One(Port(1)));
        Frame {
            id: FrameId(id),
            from,
            to,
            len: Bytes(100),
            kind: Kind::Ip,
            class: Class(0),
            ecn: Ecn::NotCapable,
            flow: 0,
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::START + Span::millis(millis)
    }

    #[test]
    fn ties_go_to_the_network_then_by_insertion() {
        let mut clock = clock();
        clock.plan(at(10), 'b');
        clock.plan(at(10), 'c');
        clock.plan(at(1), 'a');
        assert_eq!(clock.offer(frame(1)), Admission::Taken);
        let mut order = String::new();
        clock.run_until(at(20), |clock, happening| match happening {
            Happening::Action('a') => {
                order.push('a');
                // What is past comes at once.
                clock.plan(Instant::START, 'x');
            }
            Happening::Action(name) => order.push(name),
            Happening::Event(Event::Deliver { .. }) => order.push('D'),
            Happening::Event(_) => order.push('.'),
        });
        assert_eq!(order, "axD.bc");
        assert_eq!(clock.now(), at(20));
    }

    #[test]
    fn a_step_stops_at_its_bound() {
        let mut clock = clock();
        clock.offer(frame(1));
        assert_eq!(clock.step(at(9)), None);
        assert_eq!((clock.now(), clock.next_at()), (at(0), Some(at(10))));
        assert!(matches!(
            clock.step(at(10)),
            Some(Happening::Event(Event::Deliver { .. }))
        ));
        assert_eq!(clock.now(), at(10));
        assert!(clock.step(at(10)).is_some());
        assert_eq!((clock.step(at(99)), clock.next_at()), (None, None));
    }
}
