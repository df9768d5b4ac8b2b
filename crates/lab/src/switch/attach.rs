//! How the hosts are joined to the switch: by TAP or by veth, and their ports.
//!
//! Model:   the network of a TAP is that in which its device file was opened. Under sudo the lab's root is nobody outside, and may
//!          open the file only where everybody may; there the command, which is root, opens it in the network that the
//!          switch shows it.
//! Checked: the end-to-end tests.

use super::{HostProcess, SwitchError};
use crate::config::{Attachment, Config};
use crate::control::{Answer, HostRequest, Request, TalkError, hear, say};
use crate::interface::{self, Plan};
use crate::port::Port;
use crate::wire::Addresses;
use sonde_link::Subnets;
use sonde_sys::namespace::{self, Kind};
use sonde_sys::tap::{self, Tap};
use std::os::fd::{AsFd, OwnedFd};

/// The attachment, and why not the first choice.
pub(super) fn choose(
    control: &OwnedFd,
    config: &Config,
    home: &OwnedFd,
) -> Result<(Attachment, Option<String>), SwitchError> {
    if config.attachment == Attachment::Veth {
        return Ok((Attachment::Veth, None));
    }
    let attached = match device(control, config, home, home)? {
        Ok(device) => Tap::attach(device, "probe").map(drop),
        Err(error) => Err(error),
    };
    match attached {
        Ok(()) => Ok((Attachment::Tap, None)),
        Err(error) if config.attachment == Attachment::Auto => {
            Ok((Attachment::Veth, Some(error.to_string())))
        }
        Err(error) => Err(error.into()),
    }
}

/// The device file of TAPs, opened in `netns`, or why it cannot be.
fn device(
    control: &OwnedFd,
    config: &Config,
    netns: &OwnedFd,
    home: &OwnedFd,
) -> Result<sonde_sys::Result<OwnedFd>, SwitchError> {
    let opened = interface::inside(netns, home, || tap::device(&config.tun));
    if opened.is_ok() || !config.user.is_another() {
        return Ok(opened);
    }
    say(control, &Answer::LendTun, &[netns.as_fd()])?;
    match hear::<Request>(control)? {
        (Request::Tun, mut fds) => Ok(fds.pop().map_or(opened, Ok)),
        _ => Err(TalkError::Ended.into()),
    }
}

type Settings = Vec<(String, String)>;

/// The ports of all interfaces, and the settings of the first as they read.
pub(super) fn build(
    control: &OwnedFd,
    (config, addresses, subnets): (&Config, &Addresses, &Subnets),
    (attachment, home): (Attachment, &OwnedFd),
    hosts: &[HostProcess],
) -> Result<(Vec<Port>, Settings), SwitchError> {
    let mut ports = Vec::new();
    let mut settings = Vec::new();
    for (number, end) in (0..).map(sonde_link::Port).zip(&subnets.ends) {
        let host = &hosts[usize::from(end.host)];
        let plan = Plan {
            config,
            addresses,
            subnets,
            network: (end.number, &config.site.segment[end.segment].network),
            attachment,
            home,
        };
        let netns = namespace::open(host.child.id(), Kind::Net)?;
        let tun = match attachment {
            Attachment::Veth => None,
            _ => Some(device(control, config, &netns, home)??),
        };
        let port = interface::build(&plan, number, &netns, tun)?;
        if ports.is_empty() {
            settings = interface::read_back(&plan, number, &netns, port.index)?;
        }
        let held = [port.fd(), port.gate.socket()];
        say(&host.socket, &HostRequest::Hold, &held)?;
        ports.push(port);
    }
    Ok((ports, settings))
}
