//! A port of the switch: reading and writing frames, the gate, and the counters of what got lost outside the model.
//!
//! Model:   a read empties the port in portions; a frame is stamped by the kernel where it can (veth), else when it is read
//!          (TAP). The gate is shut when the station wants no more, or when the port has not run empty for so long that its
//!          ring may overflow.
//! Checked: the end-to-end tests of the blast and of the gate.

use crate::interface;
use crate::meter::AttachmentLosses;
use crate::pool::Pool;
use crate::wire;
use sonde_link::FrameId;
use sonde_sys::gate::{self, Gate};
use sonde_sys::netlink::{LinkChange, Netlink};
use sonde_sys::packet::{Batch, PacketSocket};
use sonde_sys::tap::Tap;
use sonde_sys::{Result, clock};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

/// Frames read from a port at a time.
pub(crate) const PORTION: usize = 32;
/// Bytes read from a port without finding it empty, after which its ring may be near full.
const RUN_BYTES: usize = 1 << 20;
/// Frames read likewise.
const RUN_FRAMES: usize = 1_000;
/// What a queued frame costs beside its bytes.
const RUN_FRAME_COST: usize = 512;

/// ENODEV and ENETDOWN.
const NO_SUCH_DEVICE: i32 = 19;
const NETWORK_DOWN: i32 = 100;

fn is_of(error: &sonde_sys::Error, number: i32) -> bool {
    error.errno().map(|errno| errno.raw_os_error()) == Some(number)
}

/// The way to a host.
pub(crate) enum Tx {
    Tap(Tap),
    Packet(PacketSocket),
}

/// A frame that has been read.
pub(crate) struct Arrival {
    pub stamp_ns: u64,
    pub port: sonde_link::Port,
    pub id: FrameId,
}

/// A port of the switch.
pub(crate) struct Port {
    pub number: sonde_link::Port,
    tx: Tx,
    pub gate: Gate,
    netlink: Netlink,
    pub index: u32,
    /// Frames that the model had no room for, in their order.
    pub pending: VecDeque<FrameId>,
    /// Frames that the model has taken and is not done with.
    pub under_way: u64,
    /// Whether reading is suspended.
    pub suspended: bool,
    /// Read since the port was last empty.
    run: (usize, usize),
    /// Whether the gate is shut because of that.
    pub overloaded: bool,
    pub overloads: u64,
    /// Its interface was removed by somebody: nothing is sent or received any more.
    pub is_gone: bool,
    /// Whether its carrier was ever taken away.
    was_down: bool,
    handover_losses: u64,
    /// As they were last counted.
    losses: AttachmentLosses,
}

impl Port {
    pub fn new(number: sonde_link::Port, tx: Tx, gate: Gate, netlink: Netlink, index: u32) -> Self {
        Self {
            number,
            tx,
            gate,
            netlink,
            index,
            pending: VecDeque::new(),
            under_way: 0,
            suspended: false,
            run: (0, 0),
            overloaded: false,
            overloads: 0,
            is_gone: false,
            was_down: false,
            handover_losses: 0,
            losses: AttachmentLosses::default(),
        }
    }

    /// The descriptor that becomes readable.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.tx {
            Tx::Tap(tap) => tap.as_fd(),
            Tx::Packet(socket) => socket.as_fd(),
        }
    }

    /// Reads a portion into `pool` and lists it in `inbox`. `monotonic` turns the kernel's stamps into the monotonic clock.
    pub fn read(
        &mut self,
        pool: &mut Pool,
        batch: &mut Batch,
        inbox: &mut Vec<Arrival>,
        monotonic: impl Fn(u64) -> u64,
    ) -> Result<()> {
        let before = inbox.len();
        let mut bytes = 0;
        match &self.tx {
            Tx::Tap(tap) => {
                for _ in 0..PORTION {
                    let id = pool.take();
                    let slot = pool.slot(id);
                    let Some(length) = tap.read(&mut slot.bytes)? else {
                        pool.give(id);
                        break;
                    };
                    slot.length = length;
                    bytes += length;
                    inbox.push(Arrival {
                        stamp_ns: clock::monotonic_ns(),
                        port: self.number,
                        id,
                    });
                }
            }
            Tx::Packet(socket) => {
                let read = match socket.recv_batch(batch) {
                    // That it was down, which the kernel says once.
                    Err(error) if self.was_down && is_of(&error, NETWORK_DOWN) => 0,
                    read => read?,
                };
                for index in 0..read {
                    let (frame, stamp) = batch.frame(index);
                    let id = pool.take();
                    let slot = pool.slot(id);
                    slot.bytes[..frame.len()].copy_from_slice(frame);
                    slot.length = frame.len();
                    bytes += frame.len();
                    let stamp_ns = if stamp.realtime_ns == 0 {
                        clock::monotonic_ns()
                    } else {
                        monotonic(stamp.realtime_ns)
                    };
                    inbox.push(Arrival {
                        stamp_ns,
                        port: self.number,
                        id,
                    });
                }
            }
        }
        self.count_run(inbox.len() - before, bytes);
        Ok(())
    }

    /// Finds out whether frames come faster than they are read.
    fn count_run(&mut self, frames: usize, bytes: usize) {
        if frames < PORTION {
            self.run = (0, 0);
            self.overloaded = false;
            return;
        }
        self.run.0 += frames;
        self.run.1 += bytes + frames * RUN_FRAME_COST;
        if !self.overloaded && (self.run.0 > RUN_FRAMES || self.run.1 > RUN_BYTES) {
            self.overloaded = true;
            self.overloads += 1;
        }
    }

    /// Hands a frame to the host. What the kernel cannot take is counted.
    pub fn write(&mut self, frame: &[u8]) -> Result<()> {
        let taken = match &self.tx {
            _ if self.is_gone => false,
            Tx::Tap(tap) => tap.write(frame)?,
            Tx::Packet(socket) => socket.send(frame)?,
        };
        self.handover_losses += u64::from(!taken);
        Ok(())
    }

    /// Gives the host's interface a carrier, or takes it away. A veth has one while its other end, which is here, is up.
    pub fn set_carrier(&mut self, on: bool) -> Result<()> {
        self.was_down |= !on;
        match &self.tx {
            Tx::Tap(_) => {
                let change = LinkChange {
                    carrier: Some(on),
                    ..LinkChange::default()
                };
                self.netlink.set_link(self.index, &change)
            }
            Tx::Packet(_) => {
                let mut here = Netlink::open()?;
                let index = here.index(&interface::near_end(self.number))?;
                let change = LinkChange {
                    up: Some(on),
                    ..LinkChange::default()
                };
                here.set_link(index, &change)
            }
        }
    }

    /// Takes the host's interface down: nothing is sent or received there any more.
    pub fn take_down(&mut self) -> Result<()> {
        let change = LinkChange {
            up: Some(false),
            ..LinkChange::default()
        };
        self.netlink.set_link(self.index, &change)
    }

    /// Whether its interface is no longer there, which is behind what failed at it.
    pub fn has_lost_interface(&mut self) -> bool {
        let found = self.netlink.stats(self.index);
        found.is_err_and(|error| is_of(&error, NO_SUCH_DEVICE))
    }

    /// Whether a frame is no frame of the host's programs.
    pub fn is_own(frame: &[u8]) -> bool {
        gate::is_kick(frame) || frame.len() < wire::HEADER
    }

    /// What was lost on the way since the port was made.
    pub fn losses(&mut self) -> Result<AttachmentLosses> {
        if !self.is_gone {
            self.losses = self.count_losses()?;
        }
        Ok(AttachmentLosses {
            handover: self.handover_losses,
            ..self.losses
        })
    }

    fn count_losses(&mut self) -> Result<AttachmentLosses> {
        let stats = self.netlink.stats(self.index)?;
        // Another queueing discipline drops what its maker wants; none is there while the interface is down.
        let gate = match self.netlink.qdisc(self.index) {
            Ok(qdisc) if qdisc.kind == "tbf" => qdisc.drops,
            Ok(_) | Err(sonde_sys::Error::Answer { .. }) => 0,
            Err(error) => return Err(error),
        };
        let socket = match &mut self.tx {
            Tx::Tap(_) => 0,
            Tx::Packet(socket) => socket.drops()?,
        };
        Ok(AttachmentLosses {
            interface_tx: stats.tx_dropped,
            interface_rx: stats.rx_dropped,
            gate,
            socket,
            handover: 0,
        })
    }
}
