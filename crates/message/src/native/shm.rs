//! Ranks of one machine over shared memory.
//!
//! Model:   short messages go through rings, two copies; the bytes of long ones are copied once, by the receiver out of the
//!          sender's memory, where the kernel lets it; else through the rings too, in pieces.
//! Units:   bytes.
//! Checked: `shm_joins_ranks`, `rings_carry_long_messages_too`; with processes, `tests/join.rs`.

use std::time::Duration;

use sonde_channel::Mesh;
use sonde_measure::LongMessages;
use sonde_sys::foreign;

use super::engine::Limits;
use super::wires::{Broken, Wired, Wires};

/// The bounds of messages over shared memory.
pub(super) const LIMITS: Limits = Limits {
    eager_bytes: 16 << 10,
    window_bytes: 256 << 10,
    envelopes: 16_384,
};

/// The rings of one rank, and the processes of all.
#[derive(Debug)]
pub struct Rings {
    mesh: Mesh,
    /// By rank.
    processes: Vec<u32>,
    /// Why bytes cannot be copied from another rank's memory, if they cannot.
    why_not: Option<String>,
}

fn broken(rank: u32, error: &sonde_channel::Error) -> Broken {
    let why = error.to_string();
    Broken { rank, why }
}

impl Rings {
    pub(super) fn new(mesh: Mesh, processes: Vec<u32>, why_not: Option<String>) -> Self {
        Self {
            mesh,
            processes,
            why_not,
        }
    }
}

impl Wires for Rings {
    const LOOKS: u32 = 1_024;
    const LOOKS_BEFORE_SLEEP: u32 = 1;
    const SAYS_BYE: bool = true;

    #[inline]
    fn push(&mut self, to: u32, head: &[u8], body: &[u8]) -> Wired<usize> {
        let offered = self.mesh.offer(to as usize, head, body);
        offered.map_err(|error| broken(to, &error))
    }

    #[inline]
    fn push_short(&mut self, to: u32, head: [u64; 3], body: &[u8]) -> Wired<usize> {
        let offered = self.mesh.offer_words(to as usize, head, body);
        offered.map_err(|error| broken(to, &error))
    }

    #[inline]
    fn next_head(&mut self, from: u32) -> Wired<Option<[u64; 3]>> {
        let taken = self.mesh.take_words(from as usize);
        taken.map_err(|error| broken(from, &error))
    }

    #[inline]
    fn pull(&mut self, from: u32, into: &mut [u8]) -> Wired<usize> {
        let read = self.mesh.read(from as usize, into);
        read.map_err(|error| broken(from, &error))
    }

    #[inline]
    fn look(&mut self, _: Option<u32>, _: bool, list: &mut Vec<u32>) -> Wired<()> {
        list.extend(self.mesh.written().map(|rank| rank as u32));
        Ok(())
    }

    fn sleep(&mut self, nap: Duration, stuck: &[u32]) -> Wired<()> {
        let stuck = stuck.iter().map(|rank| *rank as usize);
        let slept = self.mesh.sleep(nap, stuck);
        slept.map_err(|error| broken(0, &error))
    }

    fn lost(&mut self) -> Option<Broken> {
        self.mesh.gone().map(|rank| Broken {
            rank: rank as u32,
            why: format!("its process {} has ended", self.processes[rank]),
        })
    }

    fn on_bye(&mut self, from: u32) {
        self.mesh.leave_out(from as usize);
    }

    fn tell_loss(&mut self, _: u32, _: &str) -> bool {
        false
    }

    fn finish(&mut self) {}

    fn copy_from(&mut self, from: u32, address: u64, into: &mut [u8]) -> bool {
        let copied = foreign::read(self.processes[from as usize], address, into);
        if let Err(error) = &copied {
            self.why_not = Some(error.to_string());
        }
        copied.is_ok()
    }

    fn copies(&self) -> bool {
        self.why_not.is_none()
    }

    fn long_messages(&self) -> Option<LongMessages> {
        Some(match &self.why_not {
            None => LongMessages::OneCopy,
            Some(why) => LongMessages::Rings {
                why: why.clone().into(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use sonde_channel::inbox_bytes;
    use sonde_measure::Wait;
    use sonde_sys::shared::Shared;

    use super::super::messenger::{Manner, Native};
    use super::super::tests::whole;
    use super::*;
    use crate::Messenger;

    /// Where no rank may copy from the memory of another, all goes through rings.
    #[test]
    fn rings_carry_long_messages_too() {
        const RANKS: usize = 3;
        let bytes = inbox_bytes(RANKS);
        let inboxes: Vec<_> = (0..RANKS).map(|_| Shared::create(bytes).unwrap()).collect();
        let pairs: Vec<_> = (0..RANKS).map(|_| UnixStream::pair().unwrap()).collect();
        let manner = Manner {
            wait: Wait::Block,
            timeout: Duration::from_secs(30),
        };
        let one = |rank: usize| {
            let opened = inboxes
                .iter()
                .map(|(_, fd)| Shared::open(fd, bytes).unwrap());
            let lives = pairs.iter().enumerate().map(|(of, (own, others))| {
                let end = if of == rank { own } else { others };
                OwnedFd::from(end.try_clone().unwrap())
            });
            let mesh = Mesh::new(rank, opened.collect(), lives.collect(), manner.wait);
            let why_not = Some("forbidden here".to_string());
            let rings = Rings::new(mesh, vec![std::process::id(); RANKS], why_not);
            Native::new((rank, RANKS), "shm", LIMITS, rings, manner)
        };
        let ranks: Vec<_> = (0..RANKS).map(one).collect();
        std::thread::scope(|scope| {
            for mut messenger in ranks {
                scope.spawn(move || {
                    whole(&mut messenger);
                    let how = messenger.facts().unwrap().long_messages;
                    let why = "forbidden here".into();
                    assert_eq!(how, Some(LongMessages::Rings { why }));
                    messenger.finish().unwrap();
                });
            }
        });
    }
}
