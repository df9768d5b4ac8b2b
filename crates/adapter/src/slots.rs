//! Transfers under way, by number.
//!
//! Model:   a slot is taken when a transfer is posted and given back when it is done; a request is the slot's place and how
//!          often the slot was taken before, so that an old request does not find a new transfer.
//! Checked: `a_request_finds_its_own_transfer`.

use sonde_message::{Comm, Request, Status};

/// A transfer under way.
#[derive(Debug)]
pub struct Pending {
    /// The adapter's own number for it.
    pub handle: u64,
    /// The bytes that it owns: the library reads or writes them until it is done.
    pub buffer: Vec<u8>,
    /// Its group.
    pub comm: Comm,
    /// Of a send: its own envelope.
    pub sent: Option<Status>,
    /// Whose it is, in the world; null where that may be any.
    pub peer: Option<usize>,
}

#[derive(Debug, Default)]
struct Slot {
    taken: u32,
    pending: Option<Pending>,
}

/// All of a rank.
#[derive(Debug, Default)]
pub struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    /// Keeps a transfer.
    pub fn keep(&mut self, pending: Pending) -> Request {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[at as usize];
        slot.taken = slot.taken.wrapping_add(1);
        slot.pending = Some(pending);
        Request(u64::from(slot.taken) << 32 | u64::from(at))
    }

    /// The transfer of a request; none of one that is void.
    pub fn find(&mut self, request: &Request) -> Option<&mut Pending> {
        let slot = self.slots.get_mut(request.0 as u32 as usize)?;
        slot.pending
            .as_mut()
            .filter(|_| u64::from(slot.taken) == request.0 >> 32)
    }

    /// Gives the transfer of a request back: the library does not touch its bytes any more.
    pub fn take(&mut self, request: &Request) -> Option<Pending> {
        self.find(request)?;
        let at = request.0 as u32;
        self.free.push(at);
        self.slots[at as usize].pending.take()
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(handle: u64) -> Pending {
        Pending {
            handle,
            buffer: Vec::new(),
            comm: Comm::WORLD,
            sent: None,
            peer: None,
        }
    }

    #[test]
    fn a_request_finds_its_own_transfer() {
        let mut slots = Slots::default();
        let (first, second) = (slots.keep(pending(1)), slots.keep(pending(2)));
        assert_eq!(slots.find(&second).unwrap().handle, 2);
        let void = Request(first.0);
        assert_eq!(slots.take(&first).unwrap().handle, 1);
        let third = slots.keep(pending(3));
        assert_eq!(slots.len(), 2, "the free slot was taken");
        assert_eq!(slots.find(&third).unwrap().handle, 3);
        assert!(slots.find(&void).is_none() && slots.take(&void).is_none());
        assert!(slots.find(&Request(u64::MAX)).is_none());
    }
}
