//! Time stamps by the network card itself: whether an interface has them, and having them switched on for a while.
//!
//! Model:   the driver tells what it can (ETHTOOL_GET_TS_INFO): stamps of all that is sent and of all that is received are
//!          wanted. They are off until somebody turns them on (SIOCSHWTSTAMP), which is a setting of the whole interface:
//!          one that is on already is left alone, one that was turned on is put back when its value is dropped. The
//!          stamps are times of the card's own clock, which nothing ties to the kernel's.
//! Source:  Documentation/networking/timestamping.rst §3; include/uapi/linux/net_tstamp.h, ethtool.h.
//! Checked: `what_has_no_card_is_told`, `what_a_driver_says_is_judged`.

use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use crate::error::checked;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const SIOCSHWTSTAMP: libc::c_ulong = 0x89b0;
const SIOCGHWTSTAMP: libc::c_ulong = 0x89b1;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const TX_ON: i32 = 1;
const FILTER_NONE: i32 = 0;
const FILTER_ALL: i32 = 1;

/// struct ethtool_ts_info.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Info {
    command: u32,
    stamping: u32,
    clock: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// struct hwtstamp_config.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Config {
    flags: i32,
    tx_type: i32,
    rx_filter: i32,
}

fn control<T>(interface: &str, request: libc::c_ulong, data: &mut T) -> rustix::io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: ifreq is plain data for which zero is valid.
    let mut named: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= named.ifr_name.len() {
        return Err(Errno::NODEV);
    }
    for (to, from) in named.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    named.ifr_ifru.ifru_data = std::ptr::from_mut(data).cast();
    // SAFETY: the request and the structure it points to live across the call, and the kernel writes no more than the
    // structure of this request, which is what each caller gives.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut named) }).map(|_| ())
}

/// Why the card of an interface stamps nothing; `None` where it can stamp all that is sent and received.
pub fn obstacle(interface: &str) -> Option<String> {
    let mut info = Info {
        command: ETHTOOL_GET_TS_INFO,
        ..Info::default()
    };
    if let Err(errno) = control(interface, SIOCETHTOOL, &mut info) {
        return Some(format!(
            "{interface} does not report its time stamps: {errno}"
        ));
    }
    judged(interface, &info)
}

fn judged(interface: &str, info: &Info) -> Option<String> {
    let hardware = libc::SOF_TIMESTAMPING_TX_HARDWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
    if info.stamping & hardware != hardware {
        return Some(format!(
            "{interface} has no time stamps by hardware: its driver offers the kernel's alone"
        ));
    }
    if info.tx_types & 1 << TX_ON == 0 || info.rx_filters & 1 << FILTER_ALL == 0 {
        return Some(format!(
            "{interface} stamps some packets by hardware (those of PTP), not all"
        ));
    }
    None
}

/// Stamps that are on. Dropped, they are as they were.
#[derive(Debug)]
pub struct NicStamps {
    interface: String,
    before: Option<Config>,
}

impl NicStamps {
    /// Turns them on, where they are not.
    ///
    /// # Errors
    /// Why there are none, with what to do.
    pub fn on(interface: &str) -> Result<Self, String> {
        if let Some(why) = obstacle(interface) {
            return Err(why);
        }
        let mut found = Config::default();
        let told = control(interface, SIOCGHWTSTAMP, &mut found);
        if told.is_ok() && found.tx_type == TX_ON && found.rx_filter == FILTER_ALL {
            return Ok(Self {
                interface: interface.into(),
                before: None,
            });
        }
        let mut wanted = Config {
            flags: 0,
            tx_type: TX_ON,
            rx_filter: FILTER_ALL,
        };
        match control(interface, SIOCSHWTSTAMP, &mut wanted) {
            Ok(()) if wanted.rx_filter != FILTER_NONE => Ok(Self {
                interface: interface.into(),
                before: Some(found),
            }),
            Ok(()) => Err(format!(
                "{interface} took no time stamps of what is received"
            )),
            Err(Errno::PERM) => Err(format!(
                "{interface}'s time stamps by hardware are off, and turning them on needs CAP_NET_ADMIN: run as root, or as root \
                 once `hwstamp_ctl -i {interface} -t 1 -r 1`"
            )),
            Err(errno) => Err(format!(
                "{interface}'s time stamps by hardware cannot be turned on: {errno}"
            )),
        }
    }
}

impl Drop for NicStamps {
    fn drop(&mut self) {
        if let Some(mut before) = self.before {
            // An interface that went meanwhile has nothing to be put back.
            let _ = control(&self.interface, SIOCSHWTSTAMP, &mut before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_card_is_told() {
        let why = obstacle("lo").unwrap();
        assert!(why.contains("lo ") && why.contains("time stamps"), "{why}");
        assert_eq!(NicStamps::on("lo").unwrap_err(), why);
        assert!(obstacle("none-such").unwrap().contains("does not report"));
        assert!(obstacle(&"x".repeat(40)).is_some());
    }

    #[test]
    fn what_a_driver_says_is_judged() {
        let all = libc::SOF_TIMESTAMPING_TX_HARDWARE
            | libc::SOF_TIMESTAMPING_RX_HARDWARE
            | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
        let card = Info {
            stamping: all,
            tx_types: 0b11,
            rx_filters: 0b11,
            ..Info::default()
        };
        assert_eq!(judged("eth0", &card), None);
        let only_ptp = Info {
            rx_filters: 0b1000_0000_0001,
            ..card
        };
        assert!(judged("eth0", &only_ptp).unwrap().contains("PTP"));
        let software = Info {
            stamping: libc::SOF_TIMESTAMPING_TX_SOFTWARE,
            ..card
        };
        assert!(
            judged("eth0", &software)
                .unwrap()
                .contains("kernel's alone")
        );
    }
}
