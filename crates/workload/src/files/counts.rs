//! What a server of sonde's says of itself: a program of its own beside NFS, by which a client reads it before and after a part.
//!
//! Model:   procedure 1 has no arguments; its results are so many words, of which a reader takes those that it knows. The host answers
//!          it at once, without a daemon, so that asking disturbs nothing that is counted.
//! Source:  RFC 5531 §8.3: program numbers from 0x20000000 to 0x3fffffff are for their users to define.
//! Units:   nanoseconds, messages, datagrams.
//! Checked: `counts_come_back`; the fuzz target `files`.
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

use super::rpc::Procedure;
use super::xdr::{Decoder, Encoder, Malformed, Result};

/// The procedure.
pub const PROCEDURE: Procedure = Procedure {
    program: 0x2053_4e44,
    version: 1,
    number: 1,
};

/// The most words that are looked at.
const WORDS_MAX: u32 = 64;

/// What a server has counted since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// CPU time of its thread.
    pub cpu_ns: u64,
    /// Calls that came to it, without those of this program.
    pub received: u64,
    /// Of these, done.
    pub executed: u64,
    /// Of these, dropped at its full queue.
    pub overflowed: u64,
    /// Of these, dropped: the same was being worked on.
    pub in_progress: u64,
    /// Of these, answered by a kept reply.
    pub repeated: u64,
    /// Of these, refused.
    pub refused: u64,
    /// Replies handed to the kernel, of all programs.
    pub replied: u64,
    /// Time that calls waited for a daemon, summed.
    pub waited_ns: u64,
    /// Time that daemons were held, summed.
    pub held_ns: u64,
    /// Datagrams that its UDP socket had no room for.
    pub socket_dropped: u64,
    /// Datagrams of which fragments were missing, on its whole host.
    pub reassembly_failed: u64,
    /// The receive buffer of its UDP socket, as granted, in bytes.
    pub receive_buffer_bytes: u64,
    /// A round trip of a call that does nothing, on the server's own loopback; 0 where it was not measured.
    pub own_null_ns: u64,
    /// The call that is measured, on the server's own loopback and from its cache; 0 where it was not measured.
    pub own_call_ns: u64,
}

impl Counts {
    fn words(&self) -> [u64; 15] {
        [
            self.cpu_ns,
            self.received,
            self.executed,
            self.overflowed,
            self.in_progress,
            self.repeated,
            self.refused,
            self.replied,
            self.waited_ns,
            self.held_ns,
            self.socket_dropped,
            self.reassembly_failed,
            self.receive_buffer_bytes,
            self.own_null_ns,
            self.own_call_ns,
        ]
    }

    /// Writes them as results.
    pub fn write(&self, to: &mut Encoder) {
        let words = self.words();
        to.u32(words.len() as u32);
        words.iter().for_each(|word| to.u64(*word));
    }

    /// Reads them.
    ///
    /// # Errors
    /// They are not results of the procedure.
    pub fn read(from: &mut Decoder<'_>) -> Result<Self> {
        let length = from.u32()?;
        if length > WORDS_MAX {
            return Err(Malformed::TooLong {
                length,
                max: WORDS_MAX,
            });
        }
        let mut counts = Self::default();
        let fields = [
            &mut counts.cpu_ns,
            &mut counts.received,
            &mut counts.executed,
            &mut counts.overflowed,
            &mut counts.in_progress,
            &mut counts.repeated,
            &mut counts.refused,
            &mut counts.replied,
            &mut counts.waited_ns,
            &mut counts.held_ns,
            &mut counts.socket_dropped,
            &mut counts.reassembly_failed,
            &mut counts.receive_buffer_bytes,
            &mut counts.own_null_ns,
            &mut counts.own_call_ns,
        ];
        for (field, _) in fields.into_iter().zip(0..length) {
            *field = from.u64()?;
        }
        Ok(counts)
    }

    /// What was counted since `before`; what does not grow stays as it is.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            received: self.received.saturating_sub(before.received),
            executed: self.executed.saturating_sub(before.executed),
            overflowed: self.overflowed.saturating_sub(before.overflowed),
            in_progress: self.in_progress.saturating_sub(before.in_progress),
            repeated: self.repeated.saturating_sub(before.repeated),
            refused: self.refused.saturating_sub(before.refused),
            replied: self.replied.saturating_sub(before.replied),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
            held_ns: self.held_ns.saturating_sub(before.held_ns),
            socket_dropped: self.socket_dropped.saturating_sub(before.socket_dropped),
            reassembly_failed: self
                .reassembly_failed
                .saturating_sub(before.reassembly_failed),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_back() {
        let counts = Counts {
            cpu_ns: 1,
            received: 2,
            replied: 3,
            reassembly_failed: 4,
            own_call_ns: 5,
            ..Counts::default()
        };
        let mut to = Encoder::default();
        counts.write(&mut to);
        let bytes = to.finish();
        assert_eq!(Counts::read(&mut Decoder::new(&bytes)), Ok(counts));
        assert!(Counts::read(&mut Decoder::new(&bytes[..bytes.len() - 1])).is_err());
        let later = Counts {
            cpu_ns: 5,
            ..counts
        };
        let since = later.since(&counts);
        assert_eq!((since.cpu_ns, since.received, since.own_call_ns), (4, 0, 5));
    }

    #[test]
    fn each_word_has_its_place_and_what_grows_is_of_the_part() {
        let words: [u64; 15] = std::array::from_fn(|at| at as u64 + 1);
        let mut to = Encoder::default();
        to.u32(15);
        words.iter().for_each(|word| to.u64(*word));
        let counts = Counts::read(&mut Decoder::new(&to.finish())).unwrap();
        assert_eq!(counts.words(), words);
        // A size and two start times do not grow.
        let mut kept = [0; 15];
        kept[12..].copy_from_slice(&words[12..]);
        assert_eq!(counts.since(&counts).words(), kept);
    }
}
