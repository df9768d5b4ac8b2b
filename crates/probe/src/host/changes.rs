//! What an agent has changed of its host, in layers, and what puts each change back.
//!
//! Model:   each change is noted in the [journal](super::journal) before it is made, so that what is not noted was not
//!          changed; programs that compute end with the agent and are not. Where a killed agent's change is undone by another process, only what still is as the agent set it
//!          is touched: what somebody has set since then is theirs.
//! Checked: `what_others_have_set_since_is_left`; `a_look_changes_nothing` of `host.rs`; `lab_tune` of the command.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use sonde_sys::ethtool::{self, Offload};
use sonde_sys::netlink::{Netlink, Route, RouteMetrics};
use sonde_sys::sysctl;
use sonde_sys::tell;

use super::busy::Loops;
use super::journal::Journal;
use super::{Change, METRICS, RouteTo, Settings, metric, set_metric, set_mtu};
use crate::{Error, Result};

/// What puts a change back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Undo {
    Sysctl {
        path: String,
        before: String,
        set: String,
    },
    Mtu {
        index: u32,
        before: u32,
        set: u32,
    },
    Offload {
        interface: String,
        name: String,
        before: bool,
    },
    Route {
        set: RouteText,
        before: Option<RouteText>,
    },
}

/// A route in words that a file can hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteText {
    destination: Ipv4Addr,
    prefix_len: u8,
    index: u32,
    gateway: Option<Ipv4Addr>,
    source: Option<Ipv4Addr>,
    metrics: Vec<(String, String)>,
}

impl From<&Route> for RouteText {
    fn from(route: &Route) -> Self {
        let one = |name: &&str| (name.to_string(), metric(&route.metrics, name));
        Self {
            destination: route.destination,
            prefix_len: route.prefix_len,
            index: route.ifindex,
            gateway: route.gateway,
            source: route.source,
            metrics: METRICS
                .iter()
                .map(one)
                .filter(|(_, value)| value != super::NONE)
                .collect(),
        }
    }
}

impl RouteText {
    fn route(&self) -> Result<Route> {
        let mut metrics = RouteMetrics::default();
        for (name, value) in &self.metrics {
            set_metric(&mut metrics, name, value)?;
        }
        Ok(Route {
            gateway: self.gateway,
            source: self.source,
            metrics,
            ..Route::on_link(self.destination, self.prefix_len, self.index)
        })
    }

    /// The route to the same place that there is now.
    fn now(&self, netlink: &mut Netlink) -> Result<Option<Self>> {
        let same = |route: &&Route| {
            (route.destination, route.prefix_len, route.ifindex)
                == (self.destination, self.prefix_len, self.index)
        };
        Ok(netlink.routes()?.iter().find(same).map(Self::from))
    }
}

/// What became of a change that another process puts back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It was as the agent had set it, and is as before now.
    PutBack,
    /// It was as before.
    AsBefore,
    /// It was neither, and was left.
    Other,
}

impl Undo {
    /// Puts it back, whatever it is now.
    fn put_back(&self) -> Result<()> {
        match self {
            Self::Sysctl { path, before, .. } => sysctl::write(path, before)?,
            Self::Mtu { index, before, .. } => set_mtu(&mut Netlink::open()?, *index, *before)?,
            Self::Offload {
                interface,
                name,
                before,
            } => ethtool::set(interface, offload(name)?, *before)?,
            Self::Route { set, before } => {
                let mut netlink = Netlink::open()?;
                match before {
                    Some(before) => netlink.set_route(&before.route()?)?,
                    None => netlink.delete_route(&set.route()?)?,
                }
            }
        }
        Ok(())
    }

    /// Puts it back if it still is as it was set.
    pub(super) fn put_back_if_as_set(&self) -> Result<Found> {
        let (is_set, is_before) = match self {
            Self::Sysctl { path, before, set } => {
                let now = sysctl::read(path)?;
                let same = |text: &str| now.split(' ').eq(text.split_whitespace());
                (same(set), same(before))
            }
            Self::Mtu { index, before, set } => {
                let now = Netlink::open()?.link(*index)?.mtu_bytes;
                (now == *set, now == *before)
            }
            Self::Offload {
                interface,
                name,
                before,
            } => {
                let now = ethtool::is_on(interface, offload(name)?)?;
                (now != *before, now == *before)
            }
            Self::Route { set, before } => {
                let now = set.now(&mut Netlink::open()?)?;
                (now.as_ref() == Some(set), now == *before)
            }
        };
        match (is_before, is_set) {
            (true, _) => Ok(Found::AsBefore),
            (_, true) => self.put_back().map(|()| Found::PutBack),
            _ => Ok(Found::Other),
        }
    }

    /// What it is about, and what it was before.
    pub(super) fn words(&self) -> String {
        let on = |on: &bool| if *on { "on" } else { "off" };
        match self {
            Self::Sysctl { path, before, .. } => {
                format!("{}=\"{before}\"", path.replace('/', "."))
            }
            Self::Mtu { index, before, .. } => format!("mtu {before} of interface {index}"),
            Self::Offload {
                interface,
                name,
                before,
            } => format!("{name} {} of {interface}", on(before)),
            Self::Route { set, before } => {
                let what = if before.is_some() { "its" } else { "no" };
                format!("{what} own route to {}", set.destination)
            }
        }
    }
}

fn offload(name: &str) -> Result<Offload> {
    let known = Offload::NAMES.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, which)| *which)
        .ok_or_else(|| Error::Setting {
            what: format!("`{name}` is not an offload"),
            remedy: "give all hosts the same version of sonde".into(),
        })
}

/// What one request changed.
#[derive(Debug, Default)]
struct Layer {
    /// Each with its place in the journal.
    undo: Vec<(usize, Undo)>,
    /// What computes meanwhile.
    loops: Loops,
}

/// What an agent has changed of its host. Dropping it puts everything back.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    layers: Vec<Layer>,
    journal: Option<Journal>,
}

impl Changes {
    /// Looks, or changes and reads back: a new layer.
    pub(crate) fn make(&mut self, asked: &Settings) -> Result<Vec<Change>> {
        let way = RouteTo::to(asked.peer)?;
        if asked.look {
            return way.make(asked, self);
        }
        self.layers.push(Layer::default());
        let made = way.make(asked, self);
        if made.is_err() {
            // What failed is what counts.
            let _ = self.put_back();
        }
        made
    }

    /// Says what is going to be changed. An error: nothing may be.
    pub(super) fn note(&mut self, undo: Undo) -> Result<()> {
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => none.insert(Journal::open()?),
        };
        let place = journal.note(&undo)?;
        self.layer().undo.push((place, undo));
        Ok(())
    }

    /// What computes until the last layer is put back.
    pub(super) fn loops(&mut self) -> &mut Loops {
        &mut self.layer().loops
    }

    fn layer(&mut self) -> &mut Layer {
        self.layers.last_mut().expect("a layer is made")
    }

    /// Whether anything is changed now.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |layer: &Layer| layer.undo.is_empty() && layer.loops.is_empty();
        self.layers.iter().all(is_empty)
    }

    /// Puts the last layer back, what can be, last first; the first failure. What cannot be put back stays in the journal.
    pub(crate) fn put_back(&mut self) -> Result<()> {
        let mut first = Ok(());
        let layer = self.layers.pop().unwrap_or_default();
        drop(layer.loops);
        for (place, undo) in layer.undo.into_iter().rev() {
            let mut done = undo.put_back();
            match (&mut self.journal, &done) {
                (Some(journal), Ok(())) => done = journal.strike(place),
                (Some(journal), Err(_)) => journal.leave(),
                (None, _) => {}
            }
            first = first.and(done);
        }
        if self.is_empty() {
            self.journal = None;
        }
        first
    }

    /// Leaves everything as it is now.
    pub(crate) fn keep(&mut self) {
        self.layers.clear();
        self.journal = None;
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        while !self.layers.is_empty() {
            if let Err(error) = self.put_back() {
                tell!("sonde agent: a setting was not restored: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_set_since_is_left() {
        // Nothing is written: what is asked for is there, or is left.
        let path = "net/ipv4/tcp_rmem".to_owned();
        let now = sysctl::read(&path).unwrap();
        let undo = |before: &str, set: &str| Undo::Sysctl {
            path: path.clone(),
            before: before.into(),
            set: set.into(),
        };
        let there = undo(&now.replace(' ', "\t"), "1 2 3");
        assert_eq!(there.put_back_if_as_set().unwrap(), Found::AsBefore);
        assert_eq!(
            undo("4 5 6", "1 2 3").put_back_if_as_set().unwrap(),
            Found::Other
        );
        assert_eq!(sysctl::read(&path).unwrap(), now);
        assert!(there.words().starts_with("net.ipv4.tcp_rmem="));
    }

    #[test]
    fn routes_survive_a_file() {
        let mut route = Route {
            gateway: Some([10, 0, 0, 1].into()),
            ..Route::on_link([10, 9, 0, 2].into(), 32, 3)
        };
        for (name, value) in [("window", "65536"), ("rto_min", "200"), ("congctl", "bbr")] {
            set_metric(&mut route.metrics, name, value).unwrap();
        }
        let undo = Undo::Route {
            set: RouteText::from(&route),
            before: None,
        };
        let text = serde_json::to_string(&undo).unwrap();
        let again: Undo = serde_json::from_str(&text).unwrap();
        assert_eq!(again, undo);
        let Undo::Route { set, .. } = again else {
            panic!("{text}")
        };
        assert_eq!(set.route().unwrap(), route);
    }
}
