//! Offloads of an interface, and the speed that it says it has.
//!
//! Model:   one ioctl a setting (SIOCETHTOOL), read back. A TAP says 10000 Mb/s until it is told another speed (Linux 4.20 or
//!          newer keep what they are told; `ethtool eth0` shows it); a veth always says 10000 Mb/s and takes none. A veth hands over partial checksums and
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
    let mut value = Value { command, data };
    call(interface, (&raw mut value).cast())?;
    Ok(value.data)
}

/// One call for `interface`. `data` begins with the command and is as long as that command reads and writes.
fn call(interface: &str, data: *mut libc::c_char) -> rustix::io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: ifreq is plain data for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(rustix::io::Errno::NODEV);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = data;
    // SAFETY: the request and the value it points to live across the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    Ok(())
}

const GET_SETTINGS: u32 = 0x01;
const SET_SETTINGS: u32 = 0x02;
/// PORT_OTHER: neither twisted pair nor fibre is claimed.
const PORT_OTHER: u8 = 0xff;
/// SPEED_UNKNOWN, and what drivers of old say in 16 bits.
const UNKNOWN: [u32; 2] = [u32::MAX, 0xffff];

/// struct ethtool_cmd.
#[repr(C)]
#[derive(Default)]
struct Settings {
    command: u32,
    supported: u32,
    advertising: u32,
    speed_low: u16,
    duplex: u8,
    port: u8,
    phy_address: u8,
    transceiver: u8,
    autoneg: u8,
    mdio_support: u8,
    packets: [u32; 2],
    speed_high: u16,
    tp_mdix: [u8; 2],
    partner: u32,
    reserved: [u32; 2],
}

/// What an interface says of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSpeed {
    /// Whole Mb/s; none where it is not known.
    pub mbit: Option<u32>,
    /// Whether both directions are used at once.
    pub is_full_duplex: bool,
}

/// The speed that `interface` of the current network namespace says it has.
pub fn link_speed(interface: &str) -> Result<LinkSpeed> {
    let mut settings = Settings {
        command: GET_SETTINGS,
        ..Settings::default()
    };
    call(interface, (&raw mut settings).cast())
        .attempt(|| format!("read the speed of {interface}"))?;
    let mbit = u32::from(settings.speed_high) << 16 | u32::from(settings.speed_low);
    Ok(LinkSpeed {
        mbit: (!UNKNOWN.contains(&mbit)).then_some(mbit),
        is_full_duplex: settings.duplex == 1,
    })
}

/// Tells a TAP what it should say of its line, and reads it back. A veth refuses (EOPNOTSUPP).
pub fn set_link_speed(interface: &str, speed: LinkSpeed) -> Result<()> {
    let mbit = speed.mbit.unwrap_or(u32::MAX);
    let mut settings = Settings {
        command: SET_SETTINGS,
        speed_low: mbit as u16,
        speed_high: (mbit >> 16) as u16,
        duplex: u8::from(speed.is_full_duplex),
        port: PORT_OTHER,
        ..Settings::default()
    };
    call(interface, (&raw mut settings).cast())
        .attempt(|| format!("tell {interface} its speed, {speed:?}"))?;
    let found = link_speed(interface)?;
    if found == speed {
        return Ok(());
    }
    Err(Error::NotTaken {
        name: format!("the speed of {interface}"),
        asked: format!("{speed:?}"),
        found: format!("{found:?}"),
    })
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
