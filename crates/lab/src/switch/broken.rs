//! What breaks while a lab runs and is not its end: a host whose init is gone, an interface that somebody removed.
//!
//! Model:   the others go on. What is gone is kept for who asks at the end, with the first cause: how the init ended, not what failed
//!          for want of it.
//! Source:  Found on Linux 6.18: a TAP whose interface was removed is read with EBADFD, the packet socket of a veth with ENETDOWN.
//! Checked: `a_killed_host_is_named`, `a_removed_interface_is_named` of the end-to-end tests.

use super::{HostProcess, Switch, SwitchError};
use sonde_sys::message::{self, Incoming};
use sonde_sys::process;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// An init whose socket has ended has ended too when its programs have, which are killed.
const END_TIMEOUT: Duration = Duration::from_secs(2);

impl Switch {
    /// A host's init speaks only when it ends. Its interface goes down, as a dead host's does; the others go on.
    pub(super) fn on_host(&mut self, index: usize) -> Result<(), SwitchError> {
        let host = &mut self.hosts[index];
        let heard = message::try_recv(&host.socket);
        if host.is_gone || matches!(heard, Ok(Incoming::Message(_) | Incoming::Nothing)) {
            return Ok(());
        }
        host.is_gone = true;
        self.epoll.remove(&self.hosts[index].socket)?;
        // Where that fails the interface is gone already.
        for (port, end) in self.ports.iter_mut().zip(&self.ends) {
            if usize::from(end.host) == index {
                drop(port.take_down());
            }
        }
        self.collect();
        Ok(())
    }

    /// Collects what has ended: inits, and programs of theirs that nobody else collects.
    fn collect(&mut self) {
        for (pid, status) in process::reap() {
            let host = self.hosts.iter_mut().find(|host| host.child.id() == pid);
            if let Some(host) = host {
                host.end = Some(status);
            }
        }
    }

    /// What failed at a port is no error where its interface was removed: the port is gone then.
    pub(super) fn unless_gone(
        &mut self,
        index: usize,
        outcome: sonde_sys::Result<()>,
    ) -> Result<(), SwitchError> {
        let Err(error) = outcome else {
            return Ok(());
        };
        let port = &mut self.ports[index];
        if !port.is_gone && !port.has_lost_interface() {
            return Err(error.into());
        }
        if !port.is_gone {
            port.is_gone = true;
            port.overloaded = false;
            self.epoll.remove(port.fd())?;
        }
        Ok(())
    }

    /// What is gone, each in a sentence without its end.
    pub(super) fn broken(&mut self) -> Vec<String> {
        for index in 0..self.hosts.len() {
            // An init may have ended just now. What fails here is told by who looks next.
            drop(self.on_host(index));
        }
        let until = Instant::now() + END_TIMEOUT;
        let is_ending = |host: &HostProcess| host.is_gone && host.end.is_none();
        while self.hosts.iter().any(is_ending) && Instant::now() < until {
            self.collect();
            std::thread::sleep(Duration::from_millis(1));
        }
        let hosts = (1..).zip(&self.hosts).filter(|(_, host)| host.is_gone);
        let hosts = hosts.map(|(number, host)| {
            let end = host.end.map(|end| (end.signal(), end.code()));
            match end {
                Some((Some(signal), _)) => {
                    format!("h{number} is gone: its init was killed by signal {signal}")
                }
                Some((_, Some(code))) => {
                    format!("h{number} is gone: its init ended with code {code}")
                }
                _ => format!("h{number} is gone: its init ended"),
            }
        });
        let ports = self.ports.iter().zip(&self.ends);
        let ports = ports.filter(|(port, _)| port.is_gone).map(|(_, end)| {
            format!(
                "eth{} of h{} is gone: it was removed while the lab ran, and what it was to send and receive was lost",
                end.number,
                end.host + 1
            )
        });
        hosts.chain(ports).collect()
    }
}
