//! Which numbered messages came: how many, which late, which again.
//!
//! Model:   a bit for each of the last [`WINDOW`] numbers below the highest. One that comes after a higher one is reordered;
//!          one whose bit is set came again. One from before the window was late if any of those is missing, else it came
//!          again. Numbers are of 32 bits and go round: the one meant is the nearest to the highest so far.
//! Units:   memory is half a MiB for any number of messages.
//! Checked: `numbers_are_counted`, `numbers_go_round`, `memory_does_not_grow`, `any_order_is_accounted_for`.

/// How far back numbers are distinguished: at 10 million messages per second, 0.4 s.
const WINDOW: u64 = 1 << 22;

/// The numbers that came so far.
#[derive(Debug)]
pub(crate) struct ArrivedNumbers {
    /// Of number n at n modulo the window.
    bits: Box<[u64]>,
    /// One above the highest so far.
    next: u64,
    /// Numbers from before the window that have not come.
    missing: u64,
    /// Different numbers.
    pub(crate) distinct: u64,
    /// Of these, those that came after a higher one.
    pub(crate) reordered: u64,
    /// Messages whose number had come before.
    pub(crate) duplicated: u64,
}

impl Default for ArrivedNumbers {
    fn default() -> Self {
        Self {
            bits: vec![0; (WINDOW / 64) as usize].into(),
            next: 0,
            missing: 0,
            distinct: 0,
            reordered: 0,
            duplicated: 0,
        }
    }
}

impl ArrivedNumbers {
    /// Takes a number.
    #[inline]
    pub(crate) fn on_number(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.next as u32) as i32;
        let Some(number) = self.next.checked_add_signed(ahead.into()) else {
            // Before the first of all: only after a leap of half of all numbers.
            return self.on_stale();
        };
        if number >= self.next {
            self.advance(number + 1);
            self.mark(number);
            self.distinct += 1;
        } else if self.next - number > WINDOW {
            self.on_stale();
        } else if self.mark(number) {
            self.duplicated += 1;
        } else {
            self.distinct += 1;
            self.reordered += 1;
        }
    }

    /// Sets a bit; whether it was set.
    #[inline]
    fn mark(&mut self, number: u64) -> bool {
        let at = number % WINDOW;
        let (word, bit) = (&mut self.bits[(at / 64) as usize], 1 << (at % 64));
        let was = *word & bit != 0;
        *word |= bit;
        was
    }

    /// Moves the window: the bits of those that leave it become those of the new ones.
    fn advance(&mut self, next: u64) {
        let begin = self.next.max(next.saturating_sub(WINDOW));
        // Whole windows that were leapt over came and went without a message.
        self.missing += begin - self.next;
        for number in begin..next {
            let at = number % WINDOW;
            let (word, bit) = (&mut self.bits[(at / 64) as usize], 1 << (at % 64));
            if number >= WINDOW && *word & bit == 0 {
                self.missing += 1;
            }
            *word &= !bit;
        }
        self.next = next;
    }

    #[cold]
    fn on_stale(&mut self) {
        if self.missing == 0 {
            self.duplicated += 1;
        } else {
            self.missing -= 1;
            self.distinct += 1;
            self.reordered += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(numbers: impl IntoIterator<Item = u64>) -> (u64, u64, u64) {
        let mut seen = ArrivedNumbers::default();
        for number in numbers {
            seen.on_number(number as u32);
        }
        (seen.distinct, seen.reordered, seen.duplicated)
    }

    #[test]
    fn numbers_are_counted() {
        assert_eq!(counted([0, 1, 3, 2, 3, 200, 0, 199]), (6, 2, 2));
    }

    #[test]
    fn numbers_go_round() {
        let mut seen = ArrivedNumbers {
            next: (1 << 32) - 2,
            ..ArrivedNumbers::default()
        };
        for number in [u32::MAX - 1, 0, u32::MAX, 1, 0] {
            seen.on_number(number);
        }
        assert_eq!((seen.distinct, seen.reordered, seen.duplicated), (4, 1, 1));
        assert_eq!(seen.next, (1 << 32) + 2);
    }

    #[test]
    fn memory_does_not_grow() {
        let mut seen = ArrivedNumbers::default();
        let words = seen.bits.len();
        // Every third is missing, over two windows; then one of the missing, and one more than there are.
        for number in (0..2 * WINDOW).filter(|number| number % 3 != 2) {
            seen.on_number(number as u32);
        }
        assert_eq!(
            (seen.bits.len(), seen.reordered, seen.duplicated),
            (words, 0, 0)
        );
        let missing = (0..=seen.next - 1 - WINDOW).filter(|number| number % 3 == 2);
        assert_eq!(seen.missing, missing.count() as u64);
        seen.on_number(2);
        assert_eq!((seen.reordered, seen.duplicated), (1, 0));
        seen.missing = 0;
        seen.on_number(2);
        assert_eq!((seen.reordered, seen.duplicated), (1, 1));
        // A leap over more than the window.
        let before = seen.distinct;
        seen.on_number((10 * WINDOW) as u32);
        assert_eq!((seen.distinct, seen.bits.len()), (before + 1, words));
    }

    proptest! {
        #[test]
        fn any_order_is_accounted_for(numbers in prop::collection::vec(0u64..300, 0..600)) {
            let (distinct, reordered, duplicated) = counted(numbers.iter().copied());
            let different: std::collections::BTreeSet<u64> = numbers.iter().copied().collect();
            prop_assert_eq!(distinct, different.len() as u64);
            prop_assert_eq!(distinct + duplicated, numbers.len() as u64);
            prop_assert!(reordered < distinct.max(1));
        }
    }
}
