//! How the clocks of all ranks stand to that of rank 0.
//!
//! Model:   rank 0 asks each rank for its time, several times, and takes the shortest round trip: the other's time then was at
//!          some moment of the trip, so that the middle is wrong by half of the trip at the most. Ranks whose processes have
//!          one CLOCK_MONOTONIC (the same boot and time namespace) have no offset, unless the reading says that they
//!          have. Clocks drift: with a reading before and one after a run, times between are moved by the straight line.
//! Source:  Cristian, Distributed Computing 3 (1989), for the reading and its bound.
//! Units:   nanoseconds of CLOCK_MONOTONIC.
//! Checked: `an_offset_is_bounded_by_its_trip`, `times_are_moved_along_a_line_in_their_order`, `one_machine_has_one_clock`.

use serde::{Deserialize, Serialize};
use sonde_sys::clock::{identity, monotonic_ns};

use super::{TAG, receive};
use crate::{Comm, Messenger, Result};

/// Round trips of one reading; the shortest counts.
const READINGS: u32 = 32;

/// How a rank's clock stood to rank 0's at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// When, by rank 0's clock.
    pub at_ns: u64,
    /// Its clock less rank 0's.
    pub offset_ns: i64,
    /// By how much the offset may be wrong, to either side.
    pub bound_ns: u64,
    /// It is the same clock.
    pub is_same: bool,
}

/// How the clocks of all ranks stood at one time; rank 0 knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clocks {
    /// By rank; empty but at rank 0.
    pub(super) ranks: Vec<Standing>,
}

impl Clocks {
    /// Reads them: all ranks call it.
    ///
    /// # Errors
    /// Those of the messenger; messages of the program are in the way.
    pub fn read<M: Messenger + ?Sized>(messenger: &mut M) -> Result<Self> {
        let (rank, size) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
        let own = identity().map_or(0, |text| fingerprint(&text));
        if rank > 0 {
            answer(messenger, own)?;
            return Ok(Self { ranks: Vec::new() });
        }
        let mut ranks = vec![Standing {
            at_ns: monotonic_ns(),
            offset_ns: 0,
            bound_ns: 0,
            is_same: true,
        }];
        for other in 1..size {
            ranks.push(ask(messenger, other, own)?);
        }
        Ok(Self { ranks })
    }
}

fn answer<M: Messenger + ?Sized>(messenger: &mut M, own: u64) -> Result<()> {
    for _ in 0..READINGS {
        receive(messenger, 0, &mut [])?;
        let words = [monotonic_ns(), own];
        messenger.send(Comm::WORLD, 0, TAG, bytemuck::cast_slice(&words))?;
    }
    Ok(())
}

fn ask<M: Messenger + ?Sized>(messenger: &mut M, other: usize, own: u64) -> Result<Standing> {
    let mut best: Option<Standing> = None;
    for _ in 0..READINGS {
        let mut words = [0_u64; 2];
        let begin_ns = monotonic_ns();
        messenger.send(Comm::WORLD, other, TAG, &[])?;
        receive(messenger, other, bytemuck::cast_slice_mut(&mut words))?;
        let end_ns = monotonic_ns();
        let [theirs_ns, identity] = words;
        let read = standing(begin_ns, end_ns, theirs_ns, own != 0 && own == identity);
        if best.is_none_or(|best| (read.bound_ns, !read.is_same) < (best.bound_ns, !best.is_same)) {
            best = Some(read);
        }
    }
    Ok(best.expect("a reading"))
}

/// What a trip says of the other's clock.
fn standing(begin_ns: u64, end_ns: u64, theirs_ns: u64, one_kernel: bool) -> Standing {
    let trip_ns = end_ns - begin_ns;
    let at_ns = begin_ns + trip_ns / 2;
    let (offset_ns, bound_ns) = (theirs_ns as i64 - at_ns as i64, trip_ns.div_ceil(2));
    let is_same = one_kernel && offset_ns.unsigned_abs() <= bound_ns;
    if is_same {
        return Standing {
            at_ns,
            offset_ns: 0,
            bound_ns: 0,
            is_same,
        };
    }
    Standing {
        at_ns,
        offset_ns,
        bound_ns,
        is_same,
    }
}

/// FNV-1a: one number of a text.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// A rank's clock over a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Course {
    pub first: Standing,
    pub last: Standing,
}

impl Course {
    /// A time of the rank's clock as rank 0's has it.
    pub(super) fn moved(&self, own_ns: u64) -> u64 {
        let own_at =
            |standing: &Standing| i128::from(standing.at_ns) + i128::from(standing.offset_ns);
        let (begin, end) = (own_at(&self.first), own_at(&self.last));
        let (first, last) = (
            i128::from(self.first.offset_ns),
            i128::from(self.last.offset_ns),
        );
        let own = i128::from(own_ns);
        let offset = if end > begin {
            let since = own.clamp(begin, end) - begin;
            first + ((last - first) * since).div_euclid(end - begin)
        } else {
            last
        };
        u64::try_from(own - offset).unwrap_or(0)
    }

    /// By how much a moved time may be wrong.
    pub(super) fn bound_ns(&self) -> u64 {
        self.first.bound_ns.max(self.last.bound_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Memory;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_offset_is_bounded_by_its_trip(begin in 0_u64..1 << 40, there in 0_u64..1 << 30, back in 0_u64..1 << 30, offset in -(1_i64 << 39)..1 << 39) {
            let end = begin + there + back;
            let theirs = (begin + there) as i64 + offset + (1 << 40);
            let read = standing(begin, end, theirs as u64, false);
            prop_assert!(read.offset_ns.abs_diff(offset + (1 << 40)) <= read.bound_ns);
            prop_assert!((begin..=end).contains(&read.at_ns) && !read.is_same);
            prop_assert_eq!(read.bound_ns, (there + back).div_ceil(2));
        }

        #[test]
        fn times_are_moved_along_a_line_in_their_order(
            begin in 1_u64 << 41..1 << 42, run in 1_u64..1 << 40,
            offset in -(1_i64 << 40)..1 << 40, drift_ppm in -500_i64..500, at in 0_u64..1 << 42, step in 0_u64..1_000,
        ) {
            let drift = (i128::from(run) * i128::from(drift_ppm) / 1_000_000) as i64;
            let standing = |at_ns, offset_ns| Standing { at_ns, offset_ns, bound_ns: 3, is_same: false };
            let course = Course { first: standing(begin, offset), last: standing(begin + run, offset + drift) };
            let own = |at: u64, offset: i64| at.saturating_add_signed(offset);
            prop_assert_eq!(course.moved(own(begin, offset)), begin);
            prop_assert_eq!(course.moved(own(begin + run, offset + drift)), begin + run);
            let at = begin / 2 + at;
            prop_assert!(course.moved(at) <= course.moved(at + step));
        }
    }

    #[test]
    fn one_machine_has_one_clock() {
        if identity().is_none() {
            return println!(
                "skipped: the boot's id: /proc/sys/kernel/random/boot_id cannot be read"
            );
        }
        let mut read = Memory::run(3, |messenger| Clocks::read(messenger).unwrap().ranks);
        assert!(read[1].is_empty() && read[2].is_empty());
        let first = read.remove(0);
        assert_eq!(first.len(), 3);
        for standing in first {
            assert!(standing.is_same && standing.offset_ns == 0 && standing.bound_ns == 0);
        }
    }

    #[test]
    fn another_clock_is_not_taken_for_the_same() {
        let read = standing(1_000, 2_000, 9_000, true);
        assert_eq!(
            (read.offset_ns, read.bound_ns, read.is_same),
            (7_500, 500, false)
        );
        assert!(standing(1_000, 2_000, 1_900, true).is_same);
        assert_ne!(fingerprint("boot a"), fingerprint("boot b"));
    }

    #[test]
    fn a_moved_time_is_as_wrong_as_the_worse_reading() {
        let standing = |bound_ns| Standing {
            at_ns: 1,
            offset_ns: 0,
            bound_ns,
            is_same: false,
        };
        for [first, last] in [[3, 5], [5, 3]].map(|bounds| bounds.map(standing)) {
            assert_eq!(Course { first, last }.bound_ns(), 5);
        }
    }
}
