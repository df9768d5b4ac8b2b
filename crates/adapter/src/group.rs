//! Groups of ranks: the library's own communicators, or lists of ranks over messages that are kept apart by a number.
//!
//! Model:   a library without groups (PVM, UCX, libfabric) gets ranks of the world and the group's number, which its members
//!          agreed on: each tells rank 0 of the parent its colour, its key and the least number that it has not used; rank
//!          0 tells all to all; the greatest of the numbers is taken. All groups of one split have the same number: they
//!          have no member in common.
//! Checked: `members_stand_in_the_order_of_keys`, `numbers_are_agreed_upon`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

/// A group as this rank is in it.
#[derive(Debug)]
pub struct Group {
    /// The adapter's number for it.
    pub comm: u32,
    /// This rank in it.
    pub rank: usize,
    /// Of so many.
    pub ranks: usize,
    /// Its ranks in the world; none where the library translates, and for the world.
    pub members: Option<Vec<usize>>,
}

impl Group {
    /// A rank of the group as the adapter is told it.
    pub fn outside(&self, rank: usize) -> usize {
        let members = self.members.as_ref();
        members.map_or(rank, |members| members.get(rank).copied().unwrap_or(rank))
    }

    /// A rank as the adapter tells it, in the group; the number itself where it is none of it.
    pub fn inside(&self, rank: usize) -> usize {
        let members = self.members.as_ref();
        let found = members.and_then(|members| members.iter().position(|member| *member == rank));
        found.unwrap_or(rank)
    }
}

/// What a rank tells of itself when a group is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// None joins no group.
    pub colour: Option<u32>,
    /// Its place.
    pub key: i32,
    /// The least number that it has not used.
    pub number: u32,
}

impl Membership {
    /// Bytes on the way.
    pub const BYTES: usize = 13;

    /// As it is sent.
    pub fn bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.colour.unwrap_or(0).to_le_bytes();
        let [e, f, g, h] = self.key.to_le_bytes();
        let [i, j, k, l] = self.number.to_le_bytes();
        let joins = u8::from(self.colour.is_some());
        [joins, a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// All that were told, one after the other.
    pub fn all(bytes: &[u8]) -> Vec<Self> {
        let one = |bytes: &[u8]| {
            let [joins, a, b, c, d, e, f, g, h, i, j, k, l] = *bytes.first_chunk()?;
            Some(Self {
                colour: (joins != 0).then(|| u32::from_le_bytes([a, b, c, d])),
                key: i32::from_le_bytes([e, f, g, h]),
                number: u32::from_le_bytes([i, j, k, l]),
            })
        };
        let all = bytes.chunks_exact(Self::BYTES);
        all.filter_map(one).collect()
    }
}

/// The number that a split takes.
pub fn agreed(told: &[Membership]) -> u32 {
    told.iter().map(|one| one.number).max().unwrap_or(1)
}

/// The ranks of the parent that are in the group of `own`, in the order of their keys, then of their ranks.
pub fn members(told: &[Membership], own: usize) -> Option<Vec<usize>> {
    let colour = told.get(own)?.colour?;
    let mut found: Vec<(i32, usize)> = told
        .iter()
        .enumerate()
        .filter(|(_, one)| one.colour == Some(colour))
        .map(|(rank, one)| (one.key, rank))
        .collect();
    found.sort_unstable();
    Some(found.into_iter().map(|(_, rank)| rank).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(colour: Option<u32>, key: i32, number: u32) -> Membership {
        Membership {
            colour,
            key,
            number,
        }
    }

    #[test]
    fn members_stand_in_the_order_of_keys() {
        let all = [
            told(Some(7), 2, 1),
            told(None, 0, 1),
            told(Some(7), -1, 1),
            told(Some(0), 0, 1),
            told(Some(7), 2, 1),
        ];
        assert_eq!(members(&all, 4), Some(vec![2, 0, 4]));
        assert_eq!(members(&all, 1), None);
        assert_eq!(members(&all, 3), Some(vec![3]));
        let group = Group {
            comm: 1,
            rank: 2,
            ranks: 3,
            members: members(&all, 4),
        };
        assert_eq!((group.outside(0), group.inside(4)), (2, 2));
    }

    #[test]
    fn numbers_are_agreed_upon() {
        let all = [told(Some(1), -5, 3), told(None, 9, 17)];
        let bytes: Vec<u8> = all.iter().flat_map(|one| one.bytes()).collect();
        assert_eq!(Membership::all(&bytes), all);
        assert_eq!(agreed(&all), 17);
    }
}
