//! Groups of ranks: who is in them, and the number by which their messages are apart from those of other groups.
//!
//! Model:   the world is all ranks and has the number 0. A split gives each new group the least number above all that its
//!          members' messengers know of; groups of one split that differ in colour share it, for they share no rank.
//! Units:   ranks from zero, in the group or in the world.
//! Checked: `ranks_are_translated`; `splits_part_and_order` of the messenger.

use crate::{Comm, Error, Result};

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) context: u32,
    members: Members,
    /// This rank in it.
    pub(crate) rank: usize,
}

#[derive(Debug)]
enum Members {
    /// The first so many of the world.
    All(usize),
    /// These, and where each is, in the order of the world.
    Some {
        world: Box<[u32]>,
        sorted: Box<[(u32, u32)]>,
    },
}

/// The groups of one rank.
#[derive(Debug)]
pub(crate) struct Groups {
    all: Vec<Group>,
    pub(crate) next_context: u32,
}

impl Group {
    pub(crate) fn size(&self) -> usize {
        match &self.members {
            Members::All(size) => *size,
            Members::Some { world, .. } => world.len(),
        }
    }

    /// A rank of the group, in the world.
    #[inline]
    pub(crate) fn world(&self, rank: usize) -> Result<u32> {
        let found = match &self.members {
            Members::All(size) => (rank < *size).then_some(rank as u32),
            Members::Some { world, .. } => world.get(rank).copied(),
        };
        found.ok_or_else(|| Error::Argument {
            what: "a rank",
            value: rank.to_string(),
            wanted: format!("below the size of its group, {}", self.size()),
        })
    }

    /// A rank of the world, in the group.
    #[inline]
    pub(crate) fn of_world(&self, rank: u32) -> usize {
        match &self.members {
            Members::All(_) => rank as usize,
            Members::Some { sorted, .. } => {
                let at = sorted.binary_search_by_key(&rank, |(world, _)| *world);
                sorted[at.expect("messages of a group are from its members")].1 as usize
            }
        }
    }
}

impl Groups {
    pub(crate) fn new(rank: usize, size: usize) -> Self {
        let world = Group {
            context: 0,
            members: Members::All(size),
            rank,
        };
        Self {
            all: vec![world],
            next_context: 1,
        }
    }

    #[inline]
    pub(crate) fn of(&self, comm: Comm) -> Result<&Group> {
        self.all
            .get(comm.0 as usize)
            .ok_or_else(|| Error::Argument {
                what: "a group",
                value: comm.0.to_string(),
                wanted: "one of those that `split` gave, or the world".into(),
            })
    }

    /// Adds a group of these ranks of the world, in their order, of which `own` is this one.
    pub(crate) fn add(&mut self, context: u32, world: Vec<u32>, own: u32) -> Comm {
        let rank = world.iter().position(|rank| *rank == own);
        let mut sorted: Vec<_> = world.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        self.all.push(Group {
            context,
            rank: rank.expect("its own groups only"),
            members: Members::Some {
                world: world.into(),
                sorted: sorted.into(),
            },
        });
        Comm(self.all.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_translated() {
        let mut groups = Groups::new(3, 8);
        let comm = groups.add(1, vec![7, 0, 3], 3);
        let group = groups.of(comm).unwrap();
        assert_eq!((group.rank, group.size(), group.context), (2, 3, 1));
        for (rank, world) in [(0, 7), (1, 0), (2, 3)] {
            assert_eq!(group.world(rank).unwrap(), world);
            assert_eq!(group.of_world(world), rank);
        }
        let error = group.world(3).unwrap_err().to_string();
        assert!(error.contains("a rank is 3"), "{error}");
        let world = groups.of(Comm::WORLD).unwrap();
        assert_eq!((world.rank, world.size(), world.of_world(5)), (3, 8, 5));
        assert!(groups.of(Comm(2)).is_err());
    }
}
