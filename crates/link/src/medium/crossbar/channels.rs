//! The channels of a destination: which are busy, and which is taken next.
//!
//! Model:   a bit a channel; the free one is chosen by number, in turn or at random.
//! Checked: `each_rule_chooses_as_it_says`.

use super::Choice;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// The channels of one destination.
#[derive(Clone, Copy)]
pub(super) struct Channels {
    free: u64,
    /// The one after that which was taken last.
    next: u32,
    /// As `free` when none is taken.
    all: u64,
}

impl Channels {
    /// `channels` free ones, 1 to 64.
    pub fn new(channels: u16) -> Self {
        let all = u64::MAX >> (64 - u32::from(channels));
        Self {
            free: all,
            next: 0,
            all,
        }
    }

    /// How many are free.
    pub fn free(&self) -> u32 {
        self.free.count_ones()
    }

    /// Takes `count` of those that are free; their bits.
    pub fn take(&mut self, count: u16, choice: Choice, random: &mut Pcg64Mcg) -> u64 {
        let before = self.free;
        for _ in 0..count {
            self.free &= !(1 << self.choose(choice, random));
        }
        before & !self.free
    }

    /// Gives channels back.
    pub fn release(&mut self, taken: u64) {
        self.free |= taken & self.all;
    }

    /// One that is free.
    fn choose(&mut self, choice: Choice, random: &mut Pcg64Mcg) -> u32 {
        debug_assert!(self.free != 0, "one is free");
        match choice {
            Choice::Priority => self.free.trailing_zeros(),
            Choice::RoundRobin => {
                let from = self.next % 64;
                let chosen = (self.free.rotate_right(from).trailing_zeros() + from) % 64;
                self.next = chosen + 1;
                chosen
            }
            Choice::Random => {
                let skip = (u128::from(random.next_u64()) * u128::from(self.free())) >> 64;
                let rest = (0..skip).fold(self.free, |free, _| free & (free - 1));
                rest.trailing_zeros()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn each_rule_chooses_as_it_says() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut taken = |choice| {
            let mut channels = Channels::new(4);
            let order = (0..12).map(|_| {
                let one = channels.take(1, choice, &mut random);
                channels.release(one);
                one.trailing_zeros()
            });
            order.collect::<Vec<_>>()
        };
        assert_eq!(taken(Choice::Priority), [0; 12]);
        assert_eq!(
            taken(Choice::RoundRobin),
            [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]
        );
        let drawn = taken(Choice::Random);
        assert!((0..4).all(|channel| drawn.contains(&channel)), "{drawn:?}");
    }

    #[test]
    fn what_is_taken_is_not_free() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for choice in [Choice::Priority, Choice::RoundRobin, Choice::Random] {
            let mut channels = Channels::new(64);
            let two = channels.take(2, choice, &mut random);
            let rest = channels.take(62, choice, &mut random);
            assert_eq!((two.count_ones(), two & rest, two | rest), (2, 0, u64::MAX));
            assert_eq!(channels.free(), 0);
            channels.release(two);
            assert_eq!(channels.take(2, choice, &mut random), two);
        }
    }
}
