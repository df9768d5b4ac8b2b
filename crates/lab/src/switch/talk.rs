//! Who speaks to the switch while it runs: the command, programs of the lab that change the network, and the hosts' inits.
//!
//! Model:   each says one thing and gets one answer; a command that changes the network goes into the ledger.
//! Checked: the end-to-end tests of the lab.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::{Switch, SwitchError, TOKEN_VISITOR, VISITORS_MAX};
use crate::control::{Answer, Request, TalkError, say};
use crate::exec;
use sonde_link::ledger::Entry;
use sonde_link::{Command, Network};
use sonde_sys::epoll::Interest;
use sonde_sys::message::{self, Incoming};
use sonde_sys::{clock, cpu};
use sonde_units::Instant;
use std::os::fd::{AsFd, OwnedFd};

impl Switch {
    pub(super) fn on_control(&mut self) -> Result<(), SwitchError> {
        let Incoming::Message((bytes, _)) = message::try_recv(&self.control)? else {
            // The command has ended, and with it the lab.
            self.stopping = true;
            return Ok(());
        };
        let request = serde_json::from_slice(&bytes).map_err(TalkError::from)?;
        let answer = match request {
            Request::Connect(number) => match message::connect(&exec::socket_path(number)) {
                Ok(connection) => {
                    return Ok(say(
                        &self.control,
                        &Answer::Connected,
                        &[connection.as_fd()],
                    )?);
                }
                Err(error) => Answer::Failed(format!("h{number} does not answer: {error}")),
            },
            Request::Mark => {
                self.mark()?;
                Answer::Done
            }
            Request::Broken => Answer::Broken(self.broken()),
            Request::Report => Answer::Report(Box::new(self.report()?)),
            Request::Pin(cpus) => {
                self.seat = None;
                cpu::pin(&cpus).map_or_else(|e| Answer::Failed(e.to_string()), |()| Answer::Done)
            }
            Request::Command(text) => self.on_command(&text),
            Request::Stop => {
                self.stopping = true;
                let ended = self.end_files();
                ended.map_or_else(|e| Answer::Failed(e.to_string()), |()| Answer::Done)
            }
            Request::Mapped | Request::Start(_) | Request::Tun => {
                Answer::Failed("the lab runs already".into())
            }
        };
        Ok(say(&self.control, &answer, &[])?)
    }

    /// Lets a program in. Beyond the most, it is shown out and hears that the connection ended.
    pub(super) fn on_door(&mut self) -> Result<(), SwitchError> {
        let Some(visitor) = message::accept(&self.listener)? else {
            return Ok(());
        };
        let free = self.visitors.iter().position(Option::is_none);
        let index = free.unwrap_or(self.visitors.len());
        if index >= VISITORS_MAX {
            return Ok(());
        }
        if free.is_none() {
            self.visitors.push(None);
        }
        let token = TOKEN_VISITOR.saturating_add(index as u64);
        self.epoll.add(&visitor, token, Interest::Read)?;
        self.seat_visitor(index, visitor);
        Ok(())
    }

    fn seat_visitor(&mut self, index: usize, visitor: OwnedFd) {
        if let Some(seat) = self.visitors.get_mut(index) {
            *seat = Some(visitor);
        }
    }

    pub(super) fn on_visitor(&mut self, index: usize) -> Result<(), SwitchError> {
        let Some(visitor) = self.visitors.get_mut(index).and_then(Option::take) else {
            return Ok(());
        };
        let heard = message::try_recv(&visitor);
        let answer = match &heard {
            Ok(Incoming::Message((bytes, _))) => match serde_json::from_slice(bytes) {
                Ok(Request::Command(text)) => self.on_command(&text),
                _ => Answer::Failed("only commands that change the network come this way".into()),
            },
            Ok(Incoming::Nothing) => Answer::Done,
            // It is gone, or broken.
            Ok(Incoming::Closed) | Err(_) => return Ok(self.epoll.remove(&visitor)?),
        };
        if !matches!(heard, Ok(Incoming::Nothing)) {
            // One that went without waiting for its answer does not matter.
            drop(say(&visitor, &answer, &[]));
        }
        self.seat_visitor(index, visitor);
        Ok(())
    }

    fn on_command(&mut self, text: &str) -> Answer {
        let named = text.split_once(' ');
        let named = named.and_then(|(name, rest)| Some((name.strip_prefix("eth")?, rest)));
        let (number, text) = match named {
            Some((number, rest)) => (number.parse().ok(), rest),
            None => (Some(0), text),
        };
        let Some(number) = number else {
            return Answer::Failed("interfaces are written eth0, eth1 and so on".into());
        };
        let command: Command = match text.parse() {
            Ok(command) => command,
            Err(error) => return Answer::Failed(format!("{error}")),
        };
        self.now_ns = self.now_ns.max(clock::monotonic_ns());
        let now = Instant::from_nanos(self.now_ns.saturating_sub(self.epoch_ns));
        if let Err(refused) = self.net.command_on(now, number, command) {
            return Answer::Failed(refused.to_string());
        }
        self.files.append(&Entry::Command {
            at: now,
            number,
            command,
        });
        Answer::Done
    }
}
