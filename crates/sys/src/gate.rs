//! The gate: back-pressure for a host's interface, opened and closed from the switch.
//!
//! Model:   a tbf on the host's interface, either *open* (the line's own rate) or *shut* (1 byte a second,
//!          bucket of one frame). While it is shut, frames wait in its queue, the senders' buffers fill,
//!          and `send` blocks. Nothing is lost. Each shutting lets at most one more frame out, and each
//!          opening at most a burst: the caller keeps room for both.
//!          A gate that another has replaced or removed (`tc qdisc`, as root of that namespace may) is put back when it is
//!          next to move, and that is counted; what waited in the other queue is gone.
//! Source:  trials on Linux 6.18 and net/sched/sch_tbf.c, sch_api.c.
//! Checked: `tests/gate.rs`: 10,000 openings on a TAP and on a veth without a stall or a loss; `a_gate_is_put_back`.
//!
//! A tbf that waits for tokens sleeps on a timer set by the *old* rate, here some 1500 s; a change of rate
//! does not touch it. A frame sent through the interface after the change makes the kernel look at the queue
//! again: the *kick*. It is 60 bytes of ethertype 0x88b5 (IEEE 802 local experimental) and goes out behind
//! what waits; the switch drops it. Without it the first reopening stalls.
//!
//! A change of a tbf that is not there is refused by ENOENT (none), EEXIST (another handle) or EINVAL (another kind by this
//! handle); the last also refuses to replace it (`tc qdisc replace dev eth0 root handle 1: pfifo`), so that what is there is
//! removed first.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::error::Attempt;
use crate::netlink::{Netlink, Parts};
use crate::packet::PacketSender;
use crate::tbf::{self, Tbf};
use crate::{Error, Result};

/// The ethertype of the kick: local experimental ethertype 1.
pub const KICK_ETHERTYPE: u16 = 0x88b5;
/// Length of the kick: header and the shortest payload.
pub const KICK_BYTES: usize = 14 + 46;

/// Whether a frame is a kick, which a switch must drop.
pub fn is_kick(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&KICK_ETHERTYPE.to_be_bytes())
}

/// The kick of the interface with address `mac`: to nobody (a locally administered address not in use).
pub fn kick(mac: [u8; 6]) -> [u8; KICK_BYTES] {
    let mut frame = [0; KICK_BYTES];
    frame[..6].copy_from_slice(&[0x02, 0, 0, 0, 0x88, 0xb5]);
    frame[6..12].copy_from_slice(&mac);
    frame[12..14].copy_from_slice(&KICK_ETHERTYPE.to_be_bytes());
    frame
}

/// What a gate has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Toggles {
    /// Times it was opened.
    pub opened: u64,
    /// Times it was shut.
    pub shut: u64,
    /// Kicks the socket had no room for; the next [`Gate::nudge`] repeats them.
    pub kicks_refused: u64,
    /// Times it was put back, because another queueing discipline was found in its place.
    pub rearmed: u64,
}

/// A prepared request.
#[derive(Clone, Copy)]
enum Wish {
    Open,
    Shut,
    Remove,
    Create,
}

/// A tbf that one netlink message opens or shuts, without allocating.
pub struct Gate {
    netlink: OwnedFd,
    kick_socket: PacketSender,
    kick: [u8; KICK_BYTES],
    open_request: Vec<u8>,
    shut_request: Vec<u8>,
    remove_request: Vec<u8>,
    create_request: Vec<u8>,
    sequence: u32,
    is_open: bool,
    owes_kick: bool,
    ifindex: u32,
    toggles: Toggles,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Gate {{ ifindex: {}, is_open: {}, toggles: {:?} }}",
            self.ifindex, self.is_open, self.toggles
        )
    }
}

impl Gate {
    /// Puts a tbf with the parameters `open` on interface `ifindex` and leaves it open.
    ///
    /// `netlink` and `kick_socket` must have been opened in the interface's network namespace; the gate
    /// works from any other one. The MTU and address are read now: make a new gate after changing them.
    pub fn new(
        mut netlink: Netlink,
        kick_socket: PacketSender,
        ifindex: u32,
        open: Tbf,
    ) -> Result<Self> {
        let link = netlink.link(ifindex)?;
        let frame_bytes = link.mtu_bytes + 14;
        if open.burst_bytes < frame_bytes {
            return Err(Error::OutOfRange {
                what: "burst of the gate",
                value: open.burst_bytes.to_string(),
                remedy: "frames longer than the burst are dropped: use at least MTU + 14 bytes, better 4 MTU",
            });
        }
        tbf::replace(&mut netlink, ifindex, &open)?;
        let shut = open.shut(frame_bytes);
        Ok(Self {
            kick_socket,
            kick: kick(link.mac),
            open_request: open.change_request(ifindex, 0),
            shut_request: shut.change_request(ifindex, 0),
            remove_request: tbf::remove_request(ifindex),
            create_request: open.create_request(ifindex),
            netlink: netlink.into_fd(),
            sequence: 1 << 31,
            is_open: true,
            owes_kick: false,
            ifindex,
            toggles: Toggles::default(),
        })
    }

    /// Whether frames may pass.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The interface.
    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// What it has done.
    pub fn toggles(&self) -> Toggles {
        self.toggles
    }

    /// Shuts the gate; nothing happens if it is shut. At most one frame passes afterwards.
    pub fn close(&mut self) -> Result<()> {
        if self.is_open {
            self.request(false)?;
            self.is_open = false;
            self.owes_kick = false;
            self.toggles.shut += 1;
        }
        Ok(())
    }

    /// Opens the gate and sends the kick; nothing happens if it is open.
    pub fn open(&mut self) -> Result<()> {
        if !self.is_open {
            self.request(true)?;
            self.is_open = true;
            self.toggles.opened += 1;
            self.owes_kick = true;
            self.nudge()?;
        }
        Ok(())
    }

    /// Repeats a kick for which there was no room; returns whether one is still owed.
    ///
    /// The room is used up only by kicks that wait behind a long queue, and those that leave make room.
    pub fn nudge(&mut self) -> Result<bool> {
        if self.owes_kick {
            self.owes_kick = !self.kick_socket.send(&self.kick)?;
            self.toggles.kicks_refused += u64::from(self.owes_kick);
        }
        Ok(self.owes_kick)
    }

    /// The socket of its kicks, for whose end the kernel waits.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.kick_socket.as_fd()
    }

    /// Opens or shuts the tbf; where it is no longer there, puts it back first.
    fn request(&mut self, open: bool) -> Result<()> {
        let wish = if open { Wish::Open } else { Wish::Shut };
        match self.ask(wish) {
            Err(Error::Netlink {
                errno: Errno::NOENT | Errno::EXIST | Errno::INVAL,
                ..
            }) => {}
            outcome => return outcome,
        }
        // Where there is none but the kernel's own there is nothing to remove.
        match self.ask(Wish::Remove) {
            Ok(()) | Err(Error::Netlink { .. }) => {}
            Err(error) => return Err(error),
        }
        self.ask(Wish::Create)?;
        self.toggles.rearmed += 1;
        self.ask(wish)
    }

    /// Sends one prepared request and reads its acknowledgement, which is there when the send returns.
    fn ask(&mut self, wish: Wish) -> Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let (request, verb) = match wish {
            Wish::Open => (&mut self.open_request, "open"),
            Wish::Shut => (&mut self.shut_request, "shut"),
            Wish::Remove => (&mut self.remove_request, "remove what replaces"),
            Wish::Create => (&mut self.create_request, "put back"),
        };
        request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        let what = || format!("{verb} the gate of interface {}", self.ifindex);
        rustix::net::send(&self.netlink, request, SendFlags::empty()).attempt(what)?;
        let mut answer = [0u8; 1024];
        loop {
            let length = match rustix::net::recv(&self.netlink, &mut answer, RecvFlags::empty()) {
                Ok((_, length)) => length.min(answer.len()),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno).attempt(what),
            };
            for part in Parts(&answer[..length]) {
                match part.outcome() {
                    Some(Ok(())) if part.sequence == self.sequence => return Ok(()),
                    Some(Err((errno, text))) if part.sequence == self.sequence => {
                        return Err(Error::Netlink {
                            what: what(),
                            errno,
                            text,
                        });
                    }
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_is_known() {
        let frame = kick([2, 0, 0, 0, 0, 1]);
        assert!(is_kick(&frame) && frame.len() == 60 && frame[6..12] == [2, 0, 0, 0, 0, 1]);
        assert!(!is_kick(&frame[..13]) && !is_kick(&[0; 60]));
    }
}
