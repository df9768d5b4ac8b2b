//! Several networks that the same hosts are on.
//!
//! Model:   the ports of the second follow those of the first, and so on: host h of H has port n H + h on network n. The
//!          networks know nothing of each other; what they tell is put in the order of its times, the first network's first.
//! Checked: `hosts_are_on_each_and_none_disturbs_another`.

use crate::network::{Admission, Command, Event, Network, Refused};
use crate::{Class, Counters, Frame, Port, SiteSpec, SpecError, To, join};
use sonde_units::Instant;

/// The networks of some hosts.
pub struct Several {
    parts: Vec<Box<dyn Network + Send>>,
    hosts: u16,
    now: Instant,
}

impl Several {
    /// Joins the same hosts by each of `networks`; the first draws from `seed`, the others from those after it.
    ///
    /// # Errors
    /// [`SpecError`] where a network is wrong, or cannot join so many.
    pub fn new<'a>(
        networks: impl Iterator<Item = &'a SiteSpec> + Clone,
        seed: u64,
    ) -> Result<Self, SpecError> {
        let parts = (0..).zip(networks.clone());
        let parts = parts.map(|(n, site)| join(site, seed.wrapping_add(n), Vec::new()));
        Ok(Self {
            parts: parts.collect::<Result<_, _>>()?,
            hosts: networks.map(SiteSpec::count).min().unwrap_or(0),
            now: Instant::START,
        })
    }

    /// Gives a command to one of the networks, which counts its ports from 0.
    ///
    /// # Errors
    /// [`Refused`] by it, or where there is no such network.
    pub fn command_on(
        &mut self,
        network: usize,
        now: Instant,
        command: Command,
    ) -> Result<(), Refused> {
        self.now = self.now.max(now);
        let part = self.parts.get_mut(network).ok_or(Refused::NotHere {
            what: "such network",
            remedy: "count them from eth0, in the order in which they were named",
        })?;
        part.command(now, command)
    }

    /// The network of a port, and its number there.
    fn part(&self, port: Port) -> (usize, Port) {
        // A site alone has ports behind its hosts too.
        if self.parts.len() == 1 {
            return (0, port);
        }
        let (network, host) = (port.0 / self.hosts, port.0 % self.hosts);
        (usize::from(network), Port(host))
    }

    /// The port here of a port of a network.
    fn whole(&self, network: usize, port: Port) -> Port {
        Port(network as u16 * self.hosts + port.0)
    }

    fn lift(&self, network: usize, event: Event) -> Event {
        let lift = |port| self.whole(network, port);
        match event {
            Event::Deliver {
                at,
                id,
                to,
                mark,
                edit,
            } => Event::Deliver {
                at,
                id,
                to: lift(to),
                mark,
                edit,
            },
            Event::Lost {
                at,
                id,
                to,
                place,
                cause,
            } => Event::Lost {
                at,
                id,
                to: lift(to),
                place,
                cause,
            },
            Event::Ready { at, port, class } => Event::Ready {
                at,
                port: lift(port),
                class,
            },
            Event::Busy { at, port, span } => Event::Busy {
                at,
                port: lift(port),
                span,
            },
            Event::Done { .. } | Event::State { .. } => event,
        }
    }
}

impl Network for Several {
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission {
        self.now = self.now.max(now);
        let (network, from) = self.part(frame.from);
        let to = match frame.to {
            To::One(port) => match self.part(port) {
                (other, port) if other == network => To::One(port),
                _ => To::Unknown,
            },
            to => to,
        };
        self.parts[network].offer(now, Frame { from, to, ..frame })
    }

    fn ready(&self, port: Port, class: Class) -> bool {
        let (network, port) = self.part(port);
        self.parts[network].ready(port, class)
    }

    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.command_on(0, now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        self.now = self.now.max(now);
        loop {
            let due = self.parts.iter().map(|part| part.poll_at()).enumerate();
            let due = due.filter_map(|(network, at)| at.map(|at| (at, network)));
            let (at, network) = due.min().filter(|(at, _)| *at <= now)?;
            if let Some(event) = self.parts[network].poll(at) {
                return Some(self.lift(network, event));
            }
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        let due = self.parts.iter().filter_map(|part| part.poll_at()).min();
        due.map(|at| at.max(self.now))
    }

    fn counters(&self) -> Counters {
        let mut all = Counters::default();
        for (network, part) in self.parts.iter().enumerate() {
            all.add(part.counters(), network as u16 * self.hosts);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameId, resolve};
    use sonde_units::{Bytes, Span};

    fn of_two(name: &str) -> SiteSpec {
        SiteSpec::single(resolve(name, &|_| unreachable!()).unwrap(), 2)
    }

    #[test]
    fn hosts_are_on_each_and_none_disturbs_another() {
        let networks = ["ethernet-100:rate=10Mbit", "ethernet-100"].map(of_two);
        let frame = |id, from, to| Frame::datagram(FrameId(id), Port(from), Port(to), Bytes(1_000));
        let arrivals = |frames: &[Frame]| {
            let mut network = Several::new(networks.iter(), 0).unwrap();
            for frame in frames {
                assert_eq!(network.offer(Instant::START, *frame), Admission::Taken);
            }
            let mut arrivals = Vec::new();
            while let Some(at) = network.poll_at() {
                while let Some(event) = network.poll(at) {
                    if let Event::Deliver { at, id, to, .. } = event {
                        arrivals.push((at, id, to));
                    }
                }
            }
            assert!(arrivals.is_sorted());
            (arrivals, network.counters())
        };
        let (alone, _) = arrivals(&[frame(1, 2, 3)]);
        // Ten more on the other network change nothing on this one.
        let mut frames = vec![frame(1, 2, 3)];
        frames.extend((2..12).map(|id| frame(id, 0, 1)));
        let (all, counters) = arrivals(&frames);
        assert_eq!((all.len(), all[0]), (11, alone[0]));
        assert_eq!(counters.ports[3].delivered, 1);
        assert_eq!(counters.ports[1].delivered, 10);
        // From one network to the other there is no way.
        let (none, counters) = arrivals(&[frame(1, 0, 3)]);
        assert!(none.iter().all(|(_, _, to)| *to == Port(1)));
        assert_eq!(counters.ports[3].delivered, 0);
    }

    #[test]
    fn each_network_has_draws_of_its_own() {
        let mut network = Several::new(["ethernet-100"; 2].map(of_two).iter(), 0).unwrap();
        for of in 0..2 {
            let loss = "loss all 50%".parse().unwrap();
            network.command_on(of, Instant::START, loss).unwrap();
        }
        let mut came = [Vec::new(), Vec::new()];
        for id in 0..64 {
            let now = Instant::START + Span::millis(id);
            for from in [0, 2] {
                let frame = Frame::datagram(FrameId(id), Port(from), Port(from + 1), Bytes(1_000));
                network.offer(now, frame);
            }
            while let Some(event) = network.poll(now + Span::micros(999)) {
                if let Event::Deliver { to, .. } = event {
                    came[usize::from(to.0 / 2)].push(id);
                }
            }
        }
        assert_ne!(came[0], came[1]);
    }
}
