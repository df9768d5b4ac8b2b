//! A site as data: segments, the hosts on them, and what joins the segments.
//!
//! Model:   a host is on one segment or several, of different subnets; its interfaces are in the order of these in the file. The segments that
//!          bridges join are one subnet, and form a tree. A virtual LAN is a segment on the network of another one, its carrier; who is on several of one
//!          carrier has one line there, that of its first. A network alone is a site of one segment, several networks of the same hosts are one of
//!          as many. A segment's network is a selector in a file, [`NetworkSpec`] once it is read.
//! Units:   sizes, rates and times carry their unit in the text, as in a network's file.
//! Checked: `tests/site.rs` reads good and bad files.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::check::{Joined, Wrong};
use super::subnets::Subnets;
use crate::{CatalogueError, Command, FaultSpec, NetworkSpec, Port, Refused, resolve};
use serde::{Deserialize, Serialize};
use sonde_units::{Bytes, Span, excerpt, excerpts};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// The most interfaces that the hosts of a site have, and the most segments.
pub(super) const SITE_HOSTS_MAX: usize = 4_096;
pub(super) const PARTS_MAX: usize = 1_024;
/// The most interfaces that its bridges and routers have.
pub(super) const NODE_PORTS_MAX: usize = 16_384;

/// Segments with what joins them; `N` is how a segment's network is said.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteSpec<N = NetworkSpec> {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub summary: String,
    /// The segments.
    pub segment: Vec<Segment<N>>,
    /// What joins them to subnets.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub bridge: Vec<Bridge>,
    /// What leads from one subnet to another.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub router: Vec<Router>,
    /// Where each figure comes from, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cite: BTreeMap<String, String>,
}

/// A network of its own within a site.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment<N = NetworkSpec> {
    /// Its name.
    pub name: String,
    /// What it is; in a file as `--network` has it. Of a virtual LAN that of its carrier.
    pub network: N,
    /// The segment whose network carries this one, as a virtual LAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The hosts on it, by name; in a file `h[1-16]` is sixteen.
    pub hosts: Vec<String>,
}

/// A learning bridge between two segments or more, or a switch between rings.
///
/// It keeps a frame until its last bit is there, looks up where the destination was heard last, and sends it on there; what it has not
/// heard of goes to all other segments. Frames have one processor, in the order in which they came, then wait at each segment until
/// its station may send.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// The segments that it joins, two or more.
    pub joins: Vec<String>,
    /// What its processor takes for a frame.
    #[serde(default)]
    pub frame_time: Span,
    /// And for each byte of it.
    #[serde(default)]
    pub byte_time: Span,
    /// From there to the station.
    #[serde(default)]
    pub latency: Span,
    /// Layer-3 bytes that it holds at most, for all segments together.
    #[serde(default = "Bridge::usual_buffer")]
    pub buffer: Bytes,
    /// It forgets a station that it has not heard for so long.
    #[serde(default = "Bridge::usual_ageing")]
    pub ageing: Span,
    /// What becomes of a frame that is longer than the MTU of a segment; without it all of them have one MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_long: Option<TooLong>,
}

/// What a translational bridge does with a frame that is longer than the next segment's MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TooLong {
    /// It is sent on in fragments, if it is an IPv4 datagram to one host that may be cut up; else dropped.
    Fragment,
    /// It is dropped, and nobody is told: an MTU black hole.
    Drop,
}

/// A router between subnets: it sends datagrams on by their addresses, by the shortest way.
///
/// It keeps a datagram until its last bit is there and has one processor, as a bridge has. It answers what is too old, or too long for the next
/// segment and may not be cut up, and echo requests for itself. Several between the same segments are in a file one of several
/// names, and share what passes: a gateway of as many interfaces.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Its name; in a file `gateway-[1-4]` is four.
    pub name: String,
    /// The segments that it joins, two or more, each of another subnet.
    pub joins: Vec<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "By::is_model")]
    pub by: By,
    /// What its processor takes for a datagram.
    #[serde(default)]
    pub frame_time: Span,
    /// And for each byte of it.
    #[serde(default)]
    pub byte_time: Span,
    /// From there to the station.
    #[serde(default)]
    pub latency: Span,
    /// Layer-3 bytes that it holds at most, for all segments together.
    #[serde(default = "Bridge::usual_buffer")]
    pub buffer: Bytes,
}

/// What a router is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// A box of its own, with the times that the file gives it.
    #[default]
    Model,
    /// The host of this name: in the lab its kernel sends on, at what that costs there; under the virtual clock it costs nothing.
    Host,
}

impl By {
    const fn is_model(&self) -> bool {
        matches!(self, Self::Model)
    }
}

/// An interface of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// The host, counted from 0 in the order in which hosts come first in the file.
    pub host: u16,
    /// Which of its interfaces, counted from 0: eth0 and so on, in the order of its segments.
    pub number: u16,
    /// The segment.
    pub segment: usize,
    /// The segment whose network carries it: itself, but of a virtual LAN.
    pub carrier: usize,
    /// Its station there, which is one for all virtual LANs of a carrier.
    pub station: u16,
}

/// What a node takes for a frame, and holds.
pub(crate) struct Works {
    pub frame_time: Span,
    pub byte_time: Span,
    pub latency: Span,
    pub buffer: Bytes,
}

impl Router {
    pub(crate) fn works(&self) -> Works {
        Works {
            frame_time: self.frame_time,
            byte_time: self.byte_time,
            latency: self.latency,
            buffer: self.buffer,
        }
    }
}

impl Bridge {
    pub(crate) fn works(&self) -> Works {
        Works {
            frame_time: self.frame_time,
            byte_time: self.byte_time,
            latency: self.latency,
            buffer: self.buffer,
        }
    }

    pub(super) const fn usual_buffer() -> Bytes {
        Bytes::kib(512)
    }

    /// IEEE 802.1D-1998, table 7-4.
    const fn usual_ageing() -> Span {
        Span::secs(300)
    }
}

/// Why a site is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SiteError {
    /// The catalogue does not have it.
    #[error(
        "there is no site `{}`: there are {known}; a file of your own has a `/`, as in ./{}.toml",
        excerpt(name),
        excerpt(name)
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read the site {file}: {problem}")]
    Read {
        /// Its path.
        file: String,
        /// Why.
        problem: String,
    },
    /// The file is not TOML, or has a key that is unknown, missing or of the wrong kind.
    #[error("{file}: {problem}")]
    Parse {
        /// Its path or name.
        file: String,
        /// Line, column, what is wrong and what would be right.
        problem: String,
    },
    /// What stands behind a site's name is no knob.
    #[error(
        "`{}` is not a knob of a site: write SEGMENT.KNOB=VALUE, as in two-cities:line.delay=2ms",
        excerpt(knob)
    )]
    Knob {
        /// As it was written.
        knob: String,
    },
    /// A knob is of a segment that is not there.
    #[error(
        "{file}: there is no segment `{}` whose `{}` could be set: there are {known}",
        excerpt(segment),
        excerpt(knob)
    )]
    NoSegment {
        /// Its path or name.
        file: String,
        /// As it was written.
        segment: String,
        /// The knob with its value.
        knob: String,
        /// Those that are there.
        known: String,
    },
    /// The network of a segment is refused.
    #[error("{file}, line {line}: segment `{}`: {error}", excerpt(segment))]
    Network {
        /// Its path or name.
        file: String,
        /// The line of the key.
        line: usize,
        /// Of which segment.
        segment: String,
        /// Why.
        error: Box<CatalogueError>,
    },
    /// The parts do not fit together.
    #[error("{file}, line {line}: {problem}")]
    Value {
        /// Its path or name.
        file: String,
        /// The line of the part or its key.
        line: usize,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

/// Reads a site from the text of `file`; `read` reads network files of the user's.
///
/// # Errors
/// Every variant of [`SiteError`], with the line.
pub fn parse_site(
    file: &str,
    text: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<SiteSpec, SiteError> {
    parse_turned(file, text, &[], read)
}

/// The same with knobs of segments turned, by the segments' names.
pub(super) fn parse_turned(
    file: &str,
    text: &str,
    turned: &[(&str, &str)],
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<SiteSpec, SiteError> {
    let mut told: SiteSpec<Option<String>> =
        toml::from_str(text).map_err(|e| SiteError::Parse {
            file: file.to_owned(),
            problem: excerpts(&e.to_string()),
        })?;
    for (name, knob) in turned {
        let own = told.segment.iter_mut().find(|one| one.name == *name);
        let Some(network) = own.and_then(|one| one.network.as_mut()) else {
            let have = told.segment.iter().filter(|one| one.network.is_some());
            let names = have.map(|one| excerpt(&one.name).to_string());
            return Err(SiteError::NoSegment {
                file: file.to_owned(),
                segment: (*name).to_owned(),
                knob: (*knob).to_owned(),
                known: names.take(PARTS_MAX).collect::<Vec<_>>().join(", "),
            });
        };
        *network += &format!(":{knob}");
    }
    let mut segment: Vec<Segment> = Vec::new();
    // One more than a site may have, which is told.
    let mut room = SITE_HOSTS_MAX.saturating_add(1);
    for (number, one) in told
        .segment
        .into_iter()
        .enumerate()
        .take(PARTS_MAX.saturating_add(1))
    {
        let wrong = |key, problem| SiteError::Value {
            file: file.to_owned(),
            line: line_of(text, "segment", number, key),
            problem,
        };
        let network = match (&one.network, &one.on) {
            (Some(network), None) => {
                resolve(network, read).map_err(|error| SiteError::Network {
                    file: file.to_owned(),
                    line: line_of(text, "segment", number, "network"),
                    segment: one.name.clone(),
                    error: Box::new(error),
                })?
            }
            (None, Some(on)) => {
                let carrier = segment.iter().find(|other| other.name == *on);
                let carrier = carrier.ok_or_else(|| wrong("on", no_carrier(on)))?;
                carrier.network.clone()
            }
            (Some(_), Some(_)) => {
                let problem = "a virtual LAN has the network of the segment that it is `on`: leave `network` out";
                return Err(wrong("network", problem.into()));
            }
            (None, None) => {
                let problem = format!(
                    "segment `{}` has no network: write one, as `network = \"ethernet-100\"`, or for a virtual LAN the segment that it is `on`",
                    excerpt(&one.name)
                );
                return Err(wrong("name", problem));
            }
        };
        segment.push(Segment {
            name: one.name,
            network,
            on: one.on,
            hosts: one
                .hosts
                .iter()
                .flat_map(|text| expanded(text))
                .take(room)
                .collect(),
        });
        room = room.saturating_sub(segment.last().map_or(0, |one| one.hosts.len()));
    }
    // One more than a site may have, which is told; by number its table.
    let several = |(number, one): (usize, Router)| {
        let names = expanded(&one.name).into_iter();
        let named = names.map(|name| Router {
            name,
            ..one.clone()
        });
        named.map(|one| (number, one)).collect::<Vec<_>>()
    };
    let routers = told.router.into_iter().enumerate().flat_map(several);
    let (tables, router): (Vec<_>, _) = routers.take(PARTS_MAX.saturating_add(1)).unzip();
    let site = SiteSpec {
        name: told.name,
        summary: told.summary,
        segment,
        bridge: told.bridge,
        router,
        cite: told.cite,
    };
    match site.check() {
        Ok(_) => Ok(site),
        Err(Wrong {
            table,
            number,
            key,
            problem,
        }) => Err(SiteError::Value {
            file: file.to_owned(),
            line: match (table, tables.get(number)) {
                ("router", Some(number)) => line_of(text, table, *number, key),
                _ => line_of(text, table, number, key),
            },
            problem,
        }),
    }
}

/// Why a virtual LAN cannot be on a segment of this name.
pub(super) fn no_carrier(on: &str) -> String {
    format!(
        "there is no segment `{}` with a network of its own before this one: name one, and write virtual LANs behind all other segments",
        excerpt(on)
    )
}

/// The line of a key in the table of this name and number (from 0), or of its head where it is not there; else 1.
fn line_of(text: &str, table: &str, number: usize, key: &str) -> usize {
    let (mut here, mut seen, mut found) = (false, 0_usize, 1);
    for (line_number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            let is_of = head
                .trim_start_matches('[')
                .split(']')
                .next()
                .map(str::trim)
                == Some(table);
            here = is_of && seen == number;
            seen = seen.saturating_add(usize::from(is_of));
            if here {
                found = line_number;
            }
        } else if here && line.split('=').next().map(str::trim) == Some(key) {
            return line_number;
        }
    }
    found
}

impl SiteSpec {
    /// A network of so many hosts h1, h2, …: a site of one segment.
    pub fn single(network: NetworkSpec, hosts: u16) -> Self {
        Self::parallel(vec![network], hosts)
    }

    /// So many hosts h1, h2, … that are on each of these networks: eth0, eth1 and so on.
    pub fn parallel(networks: Vec<NetworkSpec>, hosts: u16) -> Self {
        let told = |what: fn(&NetworkSpec) -> &str| {
            let all: Vec<&str> = networks.iter().map(what).collect();
            all.join(" and ")
        };
        Self {
            name: told(|network| &network.name),
            summary: told(|network| &network.summary),
            segment: (0..)
                .zip(&networks)
                .map(|(number, network)| Segment {
                    name: format!("eth{number}"),
                    network: network.clone(),
                    on: None,
                    hosts: (1..=hosts).map(|number| format!("h{number}")).collect(),
                })
                .collect(),
            bridge: Vec::new(),
            router: Vec::new(),
            cite: BTreeMap::new(),
        }
    }

    /// The network that eth0 of every host is on; none where these are several.
    pub fn network(&self) -> Option<&NetworkSpec> {
        // The first interface of each host of the first segment is there.
        let first = self.segment.first();
        let is_of_all = |one: &&Segment| one.hosts.len() == self.names().len();
        first.filter(is_of_all).map(|one| &one.network)
    }

    /// How many hosts it has.
    pub fn count(&self) -> u16 {
        u16::try_from(self.names().len()).unwrap_or(u16::MAX)
    }

    /// The names of the hosts, in the order in which they come first in the file.
    pub fn names(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let hosts = self.segment.iter().flat_map(|one| &one.hosts);
        let first = hosts.filter(|name| seen.insert(*name));
        first.map(String::as_str).collect()
    }

    /// The interfaces of the hosts, in the order of their ports: eth0 of each host, then eth1 of each that has one, and so on.
    pub fn ends(&self) -> Vec<HostPort> {
        // By name: the number of the host, and how many interfaces it has so far.
        let mut hosts: BTreeMap<&str, (u16, u16)> = BTreeMap::new();
        let mut stations = Stations::default();
        let mut all = Vec::new();
        for (segment, one) in self.segment.iter().enumerate() {
            let carrier = self.carrier(segment);
            for name in &one.hosts {
                let next = hosts.len() as u16;
                let (host, number) = hosts.entry(name).or_insert((next, 0));
                all.push(HostPort {
                    host: *host,
                    number: *number,
                    segment,
                    carrier,
                    station: stations.of(carrier, name),
                });
                *number = number.saturating_add(1);
            }
        }
        all.sort_by_key(|end| (end.number, end.host));
        all
    }

    /// The segment whose network carries a segment: itself, but of a virtual LAN.
    pub fn carrier(&self, segment: usize) -> usize {
        let on = self.segment.get(segment).and_then(|one| one.on.as_ref());
        let carrier = on.and_then(|on| self.segment.iter().position(|one| one.name == *on));
        carrier.unwrap_or(segment)
    }

    /// How many segments have a network of their own; they are before the others.
    pub(crate) fn carriers(&self) -> usize {
        self.segment.iter().filter(|one| one.on.is_none()).count()
    }

    /// The network that a host's port is on; none for one that is not there.
    pub fn network_of(&self, port: Port) -> Option<&NetworkSpec> {
        let ends = self.ends();
        let end = ends.get(usize::from(port.0))?;
        self.segment.get(end.segment).map(|one| &one.network)
    }

    /// The longest frame of any segment.
    pub fn mtu(&self) -> u64 {
        let all = self.segment.iter().map(|one| one.network.mtu);
        all.max().unwrap_or(0)
    }

    /// The networks that a datagram passes from one port to another, in their order; none where no way leads there.
    pub fn networks_between(&self, from: Port, to: Port) -> Vec<&NetworkSpec> {
        let subnets = self.subnets().ok();
        let segments = subnets.and_then(|subnets| subnets.segments(from, to));
        let segments = segments.unwrap_or_default().into_iter();
        let network = |segment: usize| self.segment.get(segment).map(|one| &one.network);
        segments.filter_map(network).collect()
    }

    /// Adds a command at a time from the start: to the segment of eth0 of the hosts that it names, to each such segment where it names none.
    ///
    /// # Errors
    /// [`Refused`] where the hosts are on two segments, or not there.
    pub fn schedule(&mut self, at: Span, command: Command) -> Result<(), Refused> {
        for (segment, command) in inside(&self.ends(), self.carriers(), 0, command)? {
            if let Some(one) = self.segment.get_mut(segment) {
                one.network.fault.push(FaultSpec {
                    at,
                    command,
                    lasts: None,
                    every: None,
                    until: None,
                });
            }
        }
        Ok(())
    }

    /// Its subnets, and how its routers lead from one to another.
    ///
    /// # Errors
    /// What does not fit together, in a sentence.
    pub fn subnets(&self) -> Result<Subnets, String> {
        let joined = match self.segment.as_slice() {
            // A network alone is what it is called.
            [_] => Joined {
                bridges: Vec::new(),
                subnet: vec![0],
                routers: Vec::new(),
            },
            _ => self.check().map_err(|wrong| wrong.problem)?,
        };
        Ok(Subnets::new(self, joined))
    }
}

/// Who has which station of the networks of a site.
#[derive(Default)]
pub(super) struct Stations<'a> {
    /// By carrier and name.
    of: BTreeMap<(usize, &'a str), u16>,
    /// By carrier: how many it has.
    count: BTreeMap<usize, u16>,
}

impl<'a> Stations<'a> {
    /// The station of this name on a carrier, where it has one line.
    pub fn of(&mut self, carrier: usize, name: &'a str) -> u16 {
        if let Some(own) = self.of.get(&(carrier, name)) {
            return *own;
        }
        let own = self.more(carrier);
        self.of.insert((carrier, name), own);
        own
    }

    /// The stations up to this one are somebody's.
    pub fn pass(&mut self, carrier: usize, station: u16) {
        let next = self.count.entry(carrier).or_default();
        *next = (*next).max(station.saturating_add(1));
    }

    /// A station more.
    pub fn more(&mut self, carrier: usize) -> u16 {
        let next = self.count.entry(carrier).or_default();
        let own = *next;
        *next = next.saturating_add(1);
        own
    }
}

/// What a host on several segments is called by one of its interfaces: by the segment, and by number.
pub fn names_of(name: &str, number: usize, interface: usize, segment: &str) -> Vec<String> {
    let mut names = vec![
        format!("{name}-{segment}"),
        format!("h{number}-eth{interface}"),
    ];
    names.dedup();
    names
}

/// What a command for interface `number` of hosts becomes on the segments that it is for, of so many. One that names no host is for each on
/// which such an interface is, and by the first number also for those without hosts.
///
/// # Errors
/// [`Refused`] where it names hosts that are not there, have no such interface, or have it on two segments.
pub(crate) fn inside(
    ends: &[HostPort],
    segments: usize,
    number: u16,
    command: Command,
) -> Result<Vec<(usize, Command)>, Refused> {
    command.check(ends.iter().filter(|end| end.number == 0).count() as u16)?;
    let named = command.ports().into_iter().flatten();
    let place = |host: Port| {
        let mut all = ends.iter();
        all.find(|end| (end.host, end.number) == (host.0, number))
    };
    let places: Vec<_> = named.map(place).collect();
    if places.contains(&None) {
        return Err(Refused::NO_SUCH_INTERFACE);
    }
    let mut of_named = places.into_iter().flatten().map(|end| end.carrier);
    let Some(segment) = of_named.next() else {
        let is_of = |segment: &usize| {
            let mut on = ends.iter().filter(|end| end.carrier == *segment).peekable();
            on.peek().is_none() && number == 0 || on.any(|end| end.number == number)
        };
        let all: Vec<_> = (0..segments).filter(is_of).collect();
        return match all.is_empty() {
            true => Err(Refused::NO_SUCH_INTERFACE),
            false => Ok(all.into_iter().map(|segment| (segment, command)).collect()),
        };
    };
    if of_named.any(|other| other != segment) {
        return Err(Refused::NotHere {
            what: "segment that both are on",
            remedy: "name two hosts of the same segment",
        });
    }
    let station = |host| place(host).map_or(host, |end| Port(end.station));
    Ok(vec![(segment, command.with_ports(station))])
}

/// The names that a text is for: `h[1-16]` is sixteen, and leading zeros stay.
fn expanded(text: &str) -> Vec<String> {
    let one = || vec![text.to_owned()];
    let Some((begin, rest)) = text.split_once('[') else {
        return one();
    };
    let Some((low, high)) = rest
        .strip_suffix(']')
        .and_then(|range| range.split_once('-'))
    else {
        return one();
    };
    match (low.parse::<usize>(), high.parse::<usize>()) {
        (Ok(first), Ok(last)) if first <= last && last <= SITE_HOSTS_MAX => {
            let width = low.len();
            (first..=last)
                .map(|number| format!("{begin}{number:0width$}"))
                .collect()
        }
        _ => one(),
    }
}
