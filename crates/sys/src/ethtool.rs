//! Offloads of an interface.
//!
//! Model:   one ioctl a setting (SIOCETHTOOL), read back. A veth hands over partial checksums and
//!          super-packets by default: a raw forwarder then loses all UDP and TCP, and ping still works,
//!          which hides it. Turning transmit checksums off implies TSO off; GSO may stay on, since it
//!          segments before the veth.
//! Source:  include/uapi/linux/ethtool.h.
//! Checked: `tests/netlink.rs`.

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType};

use crate::error::{Attempt, checked};
use crate::{Error, Result};

/// An offload that can be read and set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// Checksums of sent frames.
    TxChecksum,
    /// TCP segmentation by the device.
    Tso,
    /// Segmentation just before the device.
    Gso,
    /// Merging of received frames.
    Gro,
}

impl Offload {
    /// All, by the names that `ethtool -K` has for them.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("tx", Self::TxChecksum),
        ("tso", Self::Tso),
        ("gso", Self::Gso),
        ("gro", Self::Gro),
    ];

    /// The commands that read and set it.
    fn commands(self) -> (u32, u32) {
        match self {
            Self::TxChecksum => (0x16, 0x17),
            Self::Tso => (0x1e, 0x1f),
            Self::Gso => (0x23, 0x24),
            Self::Gro => (0x2b, 0x2c),
        }
    }
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// struct ethtool_value.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn control(interface: &str, command: u32, data: u32) -> rustix::io::Result<u32> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut value = Value { command, data };
    // SAFETY: ifreq is plain data for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(rustix::io::Errno::NODEV);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request and the value it points to live across the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    Ok(value.data)
}

/// Whether an offload is on for `interface` of the current network namespace.
pub fn is_on(interface: &str, offload: Offload) -> Result<bool> {
    control(interface, offload.commands().0, 0)
        .map(|data| data != 0)
        .attempt(|| format!("read offload {offload:?} of {interface}"))
}

/// Turns an offload on or off and reads it back.
pub fn set(interface: &str, offload: Offload, on: bool) -> Result<()> {
    control(interface, offload.commands().1, u32::from(on)).attempt(|| {
        format!(
            "turn offload {offload:?} of {interface} {}",
            if on { "on" } else { "off" }
        )
    })?;
    if is_on(interface, offload)? == on {
        return Ok(());
    }
    Err(Error::NotTaken {
        name: format!("offload {offload:?} of {interface}"),
        asked: on.to_string(),
        found: (!on).to_string(),
    })
}

/// Makes every frame leave with a full checksum; compulsory on the host's end of a veth.
pub fn tx_checksum_off(interface: &str) -> Result<()> {
    set(interface, Offload::TxChecksum, false)
}
