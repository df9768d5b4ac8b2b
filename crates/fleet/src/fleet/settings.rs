//! Settings of hosts: changed in layers, put back, kept.
//!
//! Model:   the agent of a host's first placement changes them, and puts them back when it ends. Where an agent is lost and
//!          another takes its place, that one changes them anew: what is measured next is measured as asked for.
//! Checked: `lab_tune` of the command.

use sonde_probe::host::{Change, Setting, Settings};
use sonde_probe::{Answer, Request};

use super::{FACTS_TIMEOUT, Fleet};
use crate::agent::Agent;
use crate::error::{FleetError, Result};
use crate::placement::Placement;

const CHANGE: &str = "change its settings";

impl Fleet {
    /// Changes settings of a host, or only looks at them; those of interface and route are of its way to `peer`. They hold
    /// until they are put back, or the agent ends. Hosts that are one machine have one set of settings: only the first of
    /// them is changed, and the others answer with nothing.
    ///
    /// # Errors
    /// The host refuses: nothing is changed then. Or it is lost.
    pub fn change(
        &mut self,
        host: usize,
        peer: usize,
        set: &[Setting],
        look: bool,
    ) -> Result<Vec<Change>> {
        if host > 0 && self.machines.one_machine() {
            return Ok(Vec::new());
        }
        let peer = self.address_of(peer);
        let set = set.to_vec();
        let layer = Settings { peer, set, look };
        let request = Request::Settings(layer.clone());
        let made = self.settings(host, CHANGE, &request)?;
        if !look {
            self.changed.entry(host).or_default().push(layer);
        }
        Ok(made)
    }

    /// An agent that was lost has put back what it had changed, or its guard has: what is to be changed is changed anew.
    pub(super) fn set_again(&mut self, host: usize, placement: Placement) -> Result<()> {
        if placement != self.machines.first_placement() {
            return Ok(());
        }
        for layer in self.changed.get(&host).cloned().unwrap_or_default() {
            self.have_set(host, CHANGE, &Request::Settings(layer))?;
        }
        Ok(())
    }

    /// Puts back what [`change`](Self::change) changed last of a host.
    ///
    /// # Errors
    /// It cannot be put back, or the host is lost.
    pub fn put_back(&mut self, host: usize) -> Result<()> {
        if host > 0 && self.machines.one_machine() {
            return Ok(());
        }
        // An agent that is lost has done it.
        let is_there = self
            .agents
            .0
            .get_mut(&(host, self.machines.first_placement()))
            .is_some_and(Agent::is_usable);
        self.changed.entry(host).or_default().pop();
        if !is_there && self.alive(host) {
            return self.ensure(host, self.machines.first_placement());
        }
        self.settings(host, "restore its settings", &Request::PutBack {})
            .map(drop)
    }

    /// Leaves the settings of a host as they are when its agent ends.
    ///
    /// # Errors
    /// The host is lost.
    pub fn keep(&mut self, host: usize) -> Result<()> {
        self.settings(host, "keep its settings", &Request::Keep {})?;
        self.changed.remove(&host);
        Ok(())
    }

    fn settings(
        &mut self,
        host: usize,
        attempt: &'static str,
        request: &Request,
    ) -> Result<Vec<Change>> {
        let placement = self.machines.first_placement();
        self.ensure(host, placement)?;
        self.have_set(host, attempt, request)
    }

    fn have_set(
        &mut self,
        host: usize,
        attempt: &'static str,
        request: &Request,
    ) -> Result<Vec<Change>> {
        let placement = self.machines.first_placement();
        let name = self.hosts[host].name.clone();
        let Some(agent) = self.agents.0.get_mut(&(host, placement)) else {
            unreachable!("it is checked");
        };
        let link = agent.link();
        let answer = link
            .send(request)
            .and_then(|()| link.answer(attempt, FACTS_TIMEOUT));
        match answer {
            Ok(Answer::Settings { changes }) => Ok(changes),
            Ok(other) => Err(FleetError::at(
                &name,
                attempt,
                format!("it broke the protocol: {other:?}"),
                "give all hosts the same version of sonde",
            )),
            Err(error) => {
                let failure = FleetError::at(&name, attempt, &error, error.remedy());
                Err(if error.lost() && !self.machines.restarts() {
                    self.lose(host, failure)
                } else {
                    failure
                })
            }
        }
    }
}
