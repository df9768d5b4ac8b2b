//! Messages over a virtual topology: from neighbour to neighbour, or on a way of each pair's own.
//!
//! Model:   forwarding, a rank talks to its neighbours only and carries on what is for others, each message whole, in the order
//!          of [`Topology::next`]; in pairs, each message goes straight. Between two ranks there is one way, and each step keeps
//!          the order, so that none overtakes another. What a rank carries for others waits in it without bound; it carries
//!          in its calls only. The two modes are what requirement N50 compares: as many ways as there are neighbours, or as
//!          pairs that communicate.
//! Source:  the dimension order is that of [`Topology`].
//! Units:   bytes, with the head of 24 of each letter.
//! Checked: `every_pair_arrives_over_neighbours_only`, `collectives_go_over_every_topology`, `both_modes_are_compared`.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::letters::{Carrier, Head, Letter, Letters};
use crate::postbox::{Leaving, Postbox};
use crate::{Comm, Error, Messenger, Result};
use sonde_measure::Total;
use sonde_units::Topology;

/// A messenger over a virtual topology.
pub type Routed<M> = Letters<Routes<M>>;

/// How ranks that are no neighbours reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By those between them.
    Forwarding,
    /// Each pair has a way of its own.
    Pairs,
}

/// What a rank did for a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// Ranks that this one sent to or received from directly.
    pub ways: usize,
    /// Messages for this rank.
    pub arrived: u64,
    /// Steps that they came, summed.
    pub hops: u64,
    /// Letters of others that it carried on.
    pub carried: Total,
}

/// What carries letters over a topology.
#[derive(Debug)]
pub struct Routes<M> {
    postbox: Postbox<M>,
    topology: Topology,
    mode: Mode,
    rank: usize,
    come: VecDeque<Letter>,
    moved: u64,
    met: BTreeSet<usize>,
    arrived: u64,
    hops: u64,
    carried: Total,
}

impl<M: Messenger> Letters<Routes<M>> {
    /// Over a topology of all ranks of a messenger that can probe. All ranks do so alike.
    ///
    /// # Errors
    /// The messenger cannot probe; the topology has another number of ranks.
    pub fn new(inner: M, topology: Topology, mode: Mode) -> Result<Self> {
        let (rank, ranks) = (inner.rank(Comm::WORLD), inner.size(Comm::WORLD));
        if topology.ranks() != ranks {
            return Err(Error::Argument {
                what: "the topology",
                value: format!("{topology} of {} ranks", topology.ranks()),
                wanted: format!("of {ranks} ranks"),
            });
        }
        let from = match mode {
            Mode::Forwarding => topology.neighbours(rank),
            Mode::Pairs => (0..ranks).filter(|other| *other != rank).collect(),
        };
        Ok(Self::over(Routes {
            postbox: Postbox::new(inner, &from)?,
            topology,
            mode,
            rank,
            come: VecDeque::new(),
            moved: 0,
            met: BTreeSet::new(),
            arrived: 0,
            hops: 0,
            carried: Total::NONE,
        }))
    }

    /// What this rank did until now.
    pub fn traffic(&self) -> Traffic {
        let routes = &self.carrier;
        Traffic {
            ways: routes.met.len(),
            arrived: routes.arrived,
            hops: routes.hops,
            carried: routes.carried,
        }
    }

    /// The messenger below.
    pub const fn inner(&mut self) -> &mut M {
        &mut self.carrier.postbox.inner
    }
}

impl<M: Messenger> Routes<M> {
    fn next(&self, to: usize) -> usize {
        match self.mode {
            Mode::Forwarding => self.topology.next(self.rank, to),
            Mode::Pairs => to,
        }
    }

    fn send(&mut self, letter: Letter) -> Result<()> {
        self.moved += 1;
        let next = self.next(letter.head.to as usize);
        if next == self.rank {
            self.arrived += 1;
            self.hops += u64::from(letter.head.hops);
            self.come.push_back(letter);
            return Ok(());
        }
        self.met.insert(next);
        self.postbox.post(next, letter.into_bytes())
    }

    /// Takes in what has come, and sends on what is for others.
    fn carry(&mut self) -> Result<()> {
        self.postbox.progress()?;
        while let Some(bytes) = self.postbox.take()? {
            let mut letter = Letter::of_bytes(bytes, self.topology.ranks())?;
            letter.head.hops += 1;
            if letter.head.to as usize != self.rank {
                let bytes = Head::BYTES + letter.payload().len();
                self.carried.add(bytes as u64);
            }
            self.send(letter)?;
        }
        Ok(())
    }

    /// The tree of the ways to rank 0.
    fn leaving(&self) -> Leaving {
        let parent_of = |rank: usize| match self.mode {
            _ if rank == 0 => None,
            Mode::Forwarding => Some(self.topology.next(rank, 0)),
            Mode::Pairs => Some(0),
        };
        let children =
            (1..self.topology.ranks()).filter(|rank| parent_of(*rank) == Some(self.rank));
        Leaving::new(parent_of(self.rank), children.collect())
    }
}

impl<M: Messenger> Carrier for Routes<M> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.topology.ranks()
    }

    fn bytes_max(&self) -> u64 {
        self.postbox.inner.capabilities().message_bytes_max
    }

    fn post(&mut self, letter: Letter) -> Result<()> {
        self.send(letter)
    }

    fn poll(&mut self) -> Result<Option<Letter>> {
        if self.come.is_empty() {
            self.carry()?;
        }
        Ok(self.come.pop_front())
    }

    fn moved(&self) -> u64 {
        self.moved
    }

    fn leave(&mut self, timeout: Duration) -> Result<()> {
        let mut leaving = self.leaving();
        let begin = Instant::now();
        loop {
            self.carry()?;
            let is_sent = self.postbox.is_sent();
            let only = std::slice::from_mut(&mut self.postbox);
            if leaving.poll(only, |_| 0, is_sent)? {
                return self.postbox.inner.finish();
            }
            if begin.elapsed() > timeout {
                return Err(Error::Silent {
                    rank: leaving.awaited(),
                    during: "ending together over a topology".into(),
                    timeout,
                });
            }
            std::thread::yield_now();
        }
    }

    fn facts(&self) -> Result<sonde_measure::Library> {
        let mode = match self.mode {
            Mode::Forwarding => "forwarding",
            Mode::Pairs => "pairs",
        };
        Ok(sonde_measure::Library {
            topology: Some(self.topology.to_string().into()),
            topology_mode: Some(mode.into()),
            ..self.postbox.inner.facts()?
        })
    }

    fn abort(&mut self, why: &str) {
        self.postbox.inner.abort(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::{Choice, Communicator};
    use crate::counted::Counted;
    use crate::native::Memory;
    use crate::{Source, Tagged, oracle};

    const SOME: [(&str, usize); 5] = [
        ("ring", 7),
        ("mesh:3x4", 12),
        ("torus:2x3x2", 12),
        ("hypercube", 8),
        ("ring", 1),
    ];

    /// Each rank sends two messages to each other one, and receives them in order.
    fn all_pairs<M: Messenger>(messenger: &mut M) {
        let (rank, size) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
        for to in 0..size {
            for number in 0..2_u8 {
                let payload = [rank as u8, number].repeat(to + 1);
                messenger.send(Comm::WORLD, to, 4, &payload).unwrap();
            }
        }
        for from in 0..size {
            for number in 0..2_u8 {
                let mut room = vec![0; 2 * size];
                let (source, tag) = (Source::Rank(from), Tagged::With(4));
                let status = messenger.recv(Comm::WORLD, source, tag, &mut room);
                assert_eq!(status.unwrap().bytes, 2 * (rank + 1));
                assert_eq!(room[..2], [from as u8, number]);
            }
        }
    }

    #[test]
    fn every_pair_arrives_over_neighbours_only() {
        for (text, ranks) in SOME {
            let topology = Topology::parse(text, ranks).unwrap();
            Memory::run(ranks, |messenger| {
                let counted = Counted::new(messenger);
                let mut routed = Routed::new(counted, topology.clone(), Mode::Forwarding).unwrap();
                all_pairs(&mut routed);
                let (rank, traffic) = (routed.rank(Comm::WORLD), routed.traffic());
                let hops: usize = (0..ranks).map(|from| topology.hops(from, rank)).sum();
                assert_eq!(
                    (traffic.arrived, traffic.hops),
                    (2 * ranks as u64, 2 * hops as u64)
                );
                routed.finish().unwrap();
                let between = |other: usize| {
                    let on_way = |from: usize, to: usize| {
                        let mut at = from;
                        while at != to && at != rank {
                            at = topology.next(at, to);
                        }
                        at == rank && to != rank && from != rank && to == other
                    };
                    (0..ranks).filter(|from| on_way(*from, other)).count() as u64
                };
                let carried: u64 = (0..ranks).map(between).sum();
                assert_eq!(routed.traffic().carried.messages, 2 * carried, "{text}");
                let neighbours = topology.neighbours(rank);
                let profile = routed.inner().profile();
                for flow in &profile.phases[0].flows {
                    assert!(
                        neighbours.contains(&flow.rank),
                        "{text}: {rank} and {}",
                        flow.rank
                    );
                }
                assert!(routed.traffic().ways <= neighbours.len());
            });
        }
    }

    /// The same messages, from each to each: fewer ways and more steps, or more ways and fewer steps.
    #[test]
    fn both_modes_are_compared() {
        // Neighbours of each rank, and steps from all others to it.
        for (text, ranks, ways, hops) in [
            ("ring", 6, 2, 9),
            ("hypercube", 8, 3, 12),
            ("torus:4x4", 16, 4, 32),
        ] {
            let topology = Topology::parse(text, ranks).unwrap();
            let traffic = |mode| {
                Memory::run(ranks, |messenger| {
                    let mut routed = Routed::new(messenger, topology.clone(), mode).unwrap();
                    all_pairs(&mut routed);
                    routed.finish().unwrap();
                    routed.traffic()
                })
            };
            let others = ranks as u64 - 1;
            for pairs in traffic(Mode::Pairs) {
                assert_eq!(
                    (pairs.ways as u64, pairs.hops),
                    (others, 2 * others),
                    "{text}"
                );
                assert_eq!(pairs.carried, Total::NONE);
            }
            let forwarding = traffic(Mode::Forwarding);
            for of in &forwarding {
                assert_eq!((of.ways, of.hops), (ways, 2 * hops), "{text}");
            }
            // What is more than one step is carried by somebody.
            let carried: u64 = forwarding.iter().map(|of| of.carried.messages).sum();
            assert_eq!(carried, 2 * (hops - others) * ranks as u64, "{text}");
        }
    }

    #[test]
    fn collectives_go_over_every_topology() {
        for (text, ranks) in SOME {
            let topology = Topology::parse(text, ranks).unwrap();
            Memory::run(ranks, |messenger| {
                let mut routed =
                    Routed::new(messenger, topology.clone(), Mode::Forwarding).unwrap();
                let part = routed.split(Comm::WORLD, Some(0), -(routed.rank(Comm::WORLD) as i32));
                let part = part.unwrap().unwrap();
                for comm in [Comm::WORLD, part] {
                    let mut group = Communicator::new(&mut routed, comm, Choice::default());
                    for case in oracle::cases(ranks as u64, oracle::round()) {
                        oracle::check_in(&mut group, &case).unwrap();
                    }
                }
                routed.finish().unwrap();
            });
        }
    }

    #[test]
    fn another_number_of_ranks_is_refused() {
        Memory::run(2, |messenger| {
            let topology = Topology::parse("ring", 3).unwrap();
            let refused = Routed::new(messenger, topology, Mode::Pairs);
            let error = refused.map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("ring of 3 ranks"), "{error}");
        });
    }
}
