//! Which numbered messages came: how many, which late, which again.
//!
//! Model:   a bit for each number. One that comes after a higher one is reordered; one whose bit is set came again.
//! Checked: `numbers_are_counted`.

/// The numbers that came so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    bits: Vec<u64>,
    highest: Option<u32>,
    /// Different numbers.
    pub(crate) distinct: u64,
    /// Of these, those that came after a higher one.
    pub(crate) reordered: u64,
    /// Messages whose number had come before.
    pub(crate) duplicated: u64,
}

impl Seen {
    /// Takes a number.
    #[inline]
    pub(crate) fn on_number(&mut self, number: u32) {
        let (word, bit) = ((number / 64) as usize, 1u64 << (number % 64));
        if word >= self.bits.len() {
            self.bits.resize((word + 1).next_power_of_two(), 0);
        }
        if self.bits[word] & bit != 0 {
            self.duplicated += 1;
            return;
        }
        self.bits[word] |= bit;
        self.distinct += 1;
        self.reordered += u64::from(self.highest > Some(number));
        self.highest = self.highest.max(Some(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted() {
        let mut seen = Seen::default();
        for number in [0, 1, 3, 2, 3, 200, 0, 199] {
            seen.on_number(number);
        }
        assert_eq!(
            (seen.distinct, seen.reordered, seen.duplicated, seen.highest),
            (6, 2, 2, Some(200))
        );
    }
}
