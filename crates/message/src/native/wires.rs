//! What joins a rank to all others: streams of bytes, one to and one from each, whatever carries them.

use std::time::Duration;

use sonde_measure::LongMessages;

use super::frame::HEAD_BYTES;

/// A rank that is gone, and what is known of it.
#[derive(Debug)]
pub struct Broken {
    /// Which, in the world.
    pub rank: u32,
    /// What is known.
    pub why: String,
}

/// Its result.
pub type Wired<T> = Result<T, Broken>;

/// The streams of one rank. No call but [`sleep`](Self::sleep) waits.
pub trait Wires {
    /// How many looks in vain are between two looks at the clock: some 20 µs.
    const LOOKS: u32;
    /// How many looks for one rank's message are worth while before a sleep.
    const LOOKS_BEFORE_SLEEP: u32;
    /// Whether a rank says goodbye to each other one when it leaves, and waits for theirs.
    const SAYS_BYE: bool;

    /// Takes of head and body what there is room for; how many bytes.
    fn push(&mut self, to: u32, head: &[u8], body: &[u8]) -> Wired<usize>;

    /// As [`push`](Self::push), of a short body whose head is given as words.
    #[inline]
    fn push_short(&mut self, to: u32, head: [u64; 3], body: &[u8]) -> Wired<usize> {
        let mut bytes = [0; HEAD_BYTES];
        for (part, word) in bytes.chunks_exact_mut(8).zip(head) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        self.push(to, &bytes, body)
    }

    /// The head of the next frame from that rank, as words, if it is there in one piece and nothing of it was read; to be
    /// asked again and again, of a rank whose last frame was read to its end.
    fn next_head(&mut self, from: u32) -> Wired<Option<[u64; 3]>>;

    /// Gives what has come, up to what `into` holds; how many bytes, zero when nothing is there.
    fn pull(&mut self, from: u32, into: &mut [u8]) -> Wired<usize>;

    /// Appends the ranks from which something may have come. From `awaited` it would be of use at once. Who `sleeps` next if
    /// there is nothing finds out then what would cost a system call now.
    fn look(&mut self, awaited: Option<u32>, sleeps: bool, list: &mut Vec<u32>) -> Wired<()>;

    /// Sleeps until something comes, or room for one of `stuck`, at most so long.
    fn sleep(&mut self, nap: Duration, stuck: &[u32]) -> Wired<()>;

    /// A rank that is gone without a word in its stream.
    fn lost(&mut self) -> Option<Broken>;

    /// It has said goodbye: its end is in order.
    fn on_bye(&mut self, from: u32);

    /// Tells all others at once that a rank is lost; false where frames have to.
    fn tell_loss(&mut self, rank: u32, why: &str) -> bool;

    /// Nothing is sent or received any more.
    fn finish(&mut self);

    /// Copies from the memory of another rank; false where that cannot be.
    fn copy_from(&mut self, from: u32, address: u64, into: &mut [u8]) -> bool;

    /// Whether [`copy_from`](Self::copy_from) can be.
    fn copies(&self) -> bool;

    /// How long messages are handed over, where they are.
    fn long_messages(&self) -> Option<LongMessages>;
}
