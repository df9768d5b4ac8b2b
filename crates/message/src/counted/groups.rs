//! Which ranks of the world the groups of a messenger have, as those who watch it find out.
//!
//! Model:   when a group is parted its members tell each other their ranks of the world, by messages that are not counted.
//! Checked: `ranks_are_those_of_the_world`, of the counts and of the timeline.

use crate::collectives::{Choice, Communicator, Maker};
use crate::{Comm, Messenger, Result};

/// Groups but the world, and their members.
#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<(Comm, Vec<usize>)>);

/// A new group and its members.
pub(crate) type Parted = Option<(Comm, Vec<usize>)>;

impl Groups {
    /// The rank of the world that is this one of a group; of a group that is not known the rank itself.
    #[inline]
    pub(crate) fn world_rank(&self, comm: Comm, rank: usize) -> usize {
        if comm == Comm::WORLD {
            return rank;
        }
        let group = self.0.iter().find(|(known, _)| *known == comm);
        group.map_or(rank, |(_, members)| members[rank])
    }

    /// Parts a group and asks its members who they are.
    pub(crate) fn split<M: Messenger>(
        inner: &mut M,
        comm: Comm,
        colour: Option<u32>,
        key: i32,
    ) -> Result<Parted> {
        let Some(part) = inner.split(comm, colour, key)? else {
            return Ok(None);
        };
        let own = [inner.rank(Comm::WORLD) as i64];
        let mut group = uncounted(inner, part);
        let mut members = vec![0; group.size()];
        group.allgather(&own, &mut members)?;
        let members = members.into_iter().map(|rank| rank as usize).collect();
        Ok(Some((part, members)))
    }

    /// Keeps what was parted.
    pub(crate) fn keep(&mut self, parted: Parted) -> Option<Comm> {
        let (part, members) = parted?;
        self.0.retain(|(known, _)| *known != part);
        self.0.push((part, members));
        Some(part)
    }
}

/// A group for the decorator's own messages: of every library the same.
pub(crate) fn uncounted<M: Messenger>(inner: &mut M, comm: Comm) -> Communicator<'_, M> {
    let choice = Choice::all(Maker::Sonde).expect("of every kind");
    Communicator::new(inner, comm, choice)
}
