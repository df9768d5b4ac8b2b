//! A site as data: segments, the hosts on them, and what joins the segments.
//!
//! Model:   a host is on one segment. The segments that bridges join are one subnet, and form a tree: between any two hosts there is one
//!          way. A network alone is a site of one segment. A segment's network is a selector in a file, [`NetworkSpec`] once it is read.
//! Units:   sizes, rates and times carry their unit in the text, as in a network's file.
//! Checked: `tests/site.rs` reads good and bad files.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::subnets::Subnets;
use crate::{CatalogueError, Command, FaultSpec, NetworkSpec, Port, Refused, resolve};
use serde::{Deserialize, Serialize};
use sonde_units::{Bytes, Span, excerpt, excerpts};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// The most hosts of a site, and the most segments.
const SITE_HOSTS_MAX: usize = 4_096;
const PARTS_MAX: usize = 1_024;

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
    /// What it is; in a file as `--network` has it.
    pub network: N,
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
}

/// A router between subnets: it sends datagrams on by their addresses, by the shortest way.
///
/// It keeps a datagram until its last bit is there and has one processor, as a bridge has. It answers what is too old, or too long for the next
/// segment and may not be cut up, and echo requests for itself; it cuts nothing up.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Its name.
    pub name: String,
    /// The segments that it joins, two or more, each of another subnet.
    pub joins: Vec<String>,
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

    const fn usual_buffer() -> Bytes {
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

/// What is wrong with the parts: of which table, the how manieth, which key.
struct Wrong {
    table: &'static str,
    number: usize,
    key: &'static str,
    problem: String,
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
    let told: SiteSpec<String> = toml::from_str(text).map_err(|e| SiteError::Parse {
        file: file.to_owned(),
        problem: excerpts(&e.to_string()),
    })?;
    let mut segment: Vec<Segment> = Vec::new();
    // One more than a site may have, which is told.
    let mut room = SITE_HOSTS_MAX.saturating_add(1);
    for (number, one) in told
        .segment
        .into_iter()
        .enumerate()
        .take(PARTS_MAX.saturating_add(1))
    {
        let network = resolve(&one.network, read).map_err(|error| SiteError::Network {
            file: file.to_owned(),
            line: line_of(text, "segment", number, "network"),
            segment: one.name.clone(),
            error: Box::new(error),
        })?;
        segment.push(Segment {
            name: one.name,
            network,
            hosts: one
                .hosts
                .iter()
                .flat_map(|text| expanded(text))
                .take(room)
                .collect(),
        });
        room = room.saturating_sub(segment.last().map_or(0, |one| one.hosts.len()));
    }
    let site = SiteSpec {
        name: told.name,
        summary: told.summary,
        segment,
        bridge: told.bridge,
        router: told.router,
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
            line: line_of(text, table, number, key),
            problem,
        }),
    }
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
        Self {
            name: network.name.clone(),
            summary: network.summary.clone(),
            segment: vec![Segment {
                name: network.name.clone(),
                network,
                hosts: (1..=hosts).map(|number| format!("h{number}")).collect(),
            }],
            bridge: Vec::new(),
            router: Vec::new(),
            cite: BTreeMap::new(),
        }
    }

    /// The only network; none where segments are joined.
    pub fn network(&self) -> Option<&NetworkSpec> {
        match self.segment.as_slice() {
            [one] => Some(&one.network),
            _ => None,
        }
    }

    /// How many hosts it has; their ports come first.
    pub fn count(&self) -> u16 {
        let counts = self.segment.iter().map(|one| one.hosts.len());
        u16::try_from(counts.sum::<usize>()).unwrap_or(u16::MAX)
    }

    /// The names of the hosts, in the order of their ports.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let hosts = self.segment.iter().flat_map(|one| &one.hosts);
        hosts.map(String::as_str)
    }

    /// By host: its segment and its station there.
    pub(crate) fn places(&self) -> Vec<(usize, u16)> {
        let of = |(segment, one): (usize, &Segment)| {
            (0..one.hosts.len() as u16).map(move |station| (segment, station))
        };
        self.segment.iter().enumerate().flat_map(of).collect()
    }

    /// The network that a host is on; none for one that is not there.
    pub fn network_of(&self, host: Port) -> Option<&NetworkSpec> {
        let mut before = 0_usize;
        let is_of = |one: &&Segment| {
            before = before.saturating_add(one.hosts.len());
            usize::from(host.0) < before
        };
        self.segment.iter().find(is_of).map(|one| &one.network)
    }

    /// The longest frame of any segment.
    pub fn mtu(&self) -> u64 {
        let all = self.segment.iter().map(|one| one.network.mtu);
        all.max().unwrap_or(0)
    }

    /// The longest frame that comes from one host to another as one; none where one is not there.
    pub fn path_mtu(&self, from: Port, to: Port) -> Option<u64> {
        let subnets = self.subnets().ok()?;
        let (from, to) = (subnets.of_port(from)?, subnets.of_port(to)?);
        let mtu = |segment: usize| self.segment.get(segment).map(|one| one.network.mtu);
        // What bridges join has one MTU.
        let of = |subnet| mtu(subnets.of.iter().position(|of| *of == subnet)?);
        subnets.way(from, to).filter_map(of).min()
    }

    /// Bridges and routers between two segments; none where one is not there.
    pub fn nodes_between(&self, from: usize, to: usize) -> Option<u32> {
        let joined = self.check().ok()?;
        let mut reached: Vec<Option<u32>> = vec![None; self.segment.len()];
        *reached.get_mut(from)? = Some(0);
        let nodes = self.bridge.len().saturating_add(self.router.len());
        // Each round reaches all that is one node farther.
        for round in 0..nodes as u32 {
            for segments in joined.bridges.iter().chain(&joined.routers) {
                let is_next =
                    |segment: &usize| reached.get(*segment).copied().flatten() == Some(round);
                if segments.iter().any(is_next) {
                    for segment in segments {
                        if let Some(place @ None) = reached.get_mut(*segment) {
                            *place = Some(round.saturating_add(1));
                        }
                    }
                }
            }
        }
        reached.get(to).copied().flatten()
    }

    /// Adds a command at a time from the start: to the segment of the hosts that it names, to each where it names none.
    ///
    /// # Errors
    /// [`Refused`] where the hosts are on two segments, or not there.
    pub fn schedule(&mut self, at: Span, command: Command) -> Result<(), Refused> {
        command.check(self.count())?;
        for (segment, command) in inside(&self.places(), self.segment.len(), command)? {
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

    /// What joins which segments, if everything fits together.
    fn check(&self) -> Result<Joined, Wrong> {
        let wrong = |table, number, key, problem: String| Wrong {
            table,
            number,
            key,
            problem,
        };
        if self.segment.is_empty() || self.segment.len() > PARTS_MAX {
            let problem = format!("a site has 1 to {PARTS_MAX} segments: write `[[segment]]`");
            return Err(wrong("", 0, "", problem));
        }
        let mut segments: BTreeMap<&str, usize> = BTreeMap::new();
        let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, one) in self.segment.iter().enumerate() {
            let of = |key, problem| Err(wrong("segment", number, key, problem));
            if let Some(problem) = misnamed(&one.name) {
                return of("name", problem);
            }
            if segments.insert(&one.name, number).is_some() {
                return of(
                    "name",
                    format!(
                        "there are two segments `{}`: give one another name",
                        one.name
                    ),
                );
            }
            for name in &one.hosts {
                if let Some(problem) = misnamed(name) {
                    return of("hosts", problem);
                }
                if hosts.len() >= SITE_HOSTS_MAX {
                    return of(
                        "hosts",
                        format!("these are more than {SITE_HOSTS_MAX} hosts, the most of a site"),
                    );
                }
                if let Some(other) = hosts.insert(name, number) {
                    let other = self.segment.get(other).map_or("", |one| &one.name);
                    return of(
                        "hosts",
                        format!(
                            "host `{name}` is on segment `{other}` already: a host is on one segment"
                        ),
                    );
                }
                if let Some(problem) = mistaken(name, hosts.len()) {
                    return of("hosts", problem);
                }
            }
        }
        if hosts.len() < 2 {
            let problem =
                "a site has two hosts or more: name them in `hosts` of a segment".to_owned();
            return Err(wrong("segment", 0, "hosts", problem));
        }
        // By segment: the first of those that it is joined to.
        let mut group: Vec<usize> = (0..self.segment.len()).collect();
        let (mut all, mut nodes) = (Vec::new(), BTreeSet::new());
        for (number, bridge) in self.bridge.iter().enumerate() {
            let of = |key, problem| Err(wrong("bridge", number, key, problem));
            if let Some(problem) = misnamed(&bridge.name) {
                return of("name", problem);
            }
            if !nodes.insert(&bridge.name) || hosts.contains_key(&*bridge.name) {
                return of(
                    "name",
                    format!("there are two of the name `{}`", bridge.name),
                );
            }
            if bridge.joins.len() < 2 {
                return of("joins", "a bridge joins two segments or more".into());
            }
            let mut joined: Vec<usize> = Vec::new();
            for name in &bridge.joins {
                let (segment, one) = match self.known(&segments, name) {
                    Ok(found) => found,
                    Err(problem) => return of("joins", problem),
                };
                if let Some(problem) = unbridged(one) {
                    return of("joins", problem);
                }
                if joined
                    .iter()
                    .any(|other| group.get(*other) == group.get(segment))
                {
                    return of(
                        "joins",
                        format!(
                            "there is another way to segment `{name}` already: frames would go round for ever; leave one of the \
                             bridges out"
                        ),
                    );
                }
                let first = joined.first().and_then(|first| self.segment.get(*first));
                if let Some(first) = first.filter(|first| first.network.mtu != one.network.mtu) {
                    return of(
                        "joins",
                        format!(
                            "segments `{}` and `{name}` carry frames of {} and {} bytes at most, and a bridge cuts none up: give both \
                             the same, as in `{}:mtu={}`",
                            first.name,
                            first.network.mtu,
                            one.network.mtu,
                            if first.network.mtu > one.network.mtu {
                                &first.network.name
                            } else {
                                &one.network.name
                            },
                            first.network.mtu.min(one.network.mtu)
                        ),
                    );
                }
                joined.push(segment);
            }
            unite(&mut group, &joined);
            all.push(joined);
        }
        let mut joined = Joined {
            bridges: all,
            subnet: numbered(&group),
            routers: Vec::new(),
        };
        for (number, router) in self.router.iter().enumerate() {
            let of = |key, problem| Err(wrong("router", number, key, problem));
            if let Some(problem) = misnamed(&router.name) {
                return of("name", problem);
            }
            if !nodes.insert(&router.name) || hosts.contains_key(&*router.name) {
                return of(
                    "name",
                    format!("there are two of the name `{}`", router.name),
                );
            }
            if is_numbered(&router.name) {
                return of(
                    "name",
                    format!(
                        "`{}` is what a host is called: give the router another name",
                        router.name
                    ),
                );
            }
            if router.joins.len() < 2 {
                return of("joins", "a router joins two segments or more".into());
            }
            let (mut own, mut subnets) = (Vec::new(), BTreeMap::new());
            for name in &router.joins {
                let (segment, one) = match self.known(&segments, name) {
                    Ok(found) => found,
                    Err(problem) => return of("joins", problem),
                };
                if let Some(problem) = costly(one) {
                    return of("joins", problem);
                }
                if hosts.contains_key(&*format!("{}-{name}", router.name)) {
                    return of(
                        "joins",
                        format!(
                            "the router is called `{}-{name}` there, as a host is: give one of them another name",
                            router.name
                        ),
                    );
                }
                if let Some(other) = subnets.insert(joined.subnet.get(segment), name) {
                    return of(
                        "joins",
                        format!(
                            "segments `{other}` and `{name}` are of one subnet already: name one of them"
                        ),
                    );
                }
                own.push(segment);
            }
            unite(&mut group, &own);
            joined.routers.push(own);
        }
        for (segment, one) in self.segment.iter().enumerate() {
            let all = joined.bridges.iter().chain(&joined.routers);
            if one.hosts.is_empty() && all.filter(|joined| joined.contains(&segment)).count() < 2 {
                let problem = format!(
                    "segment `{}` has no hosts, and leads between no two bridges or routers: name its hosts",
                    one.name
                );
                return Err(wrong("segment", segment, "hosts", problem));
            }
        }
        let first = group.first();
        if let Some(alone) = group.iter().position(|of| Some(of) != first) {
            let name = self.segment.get(alone).map_or("", |one| &one.name);
            let problem = format!(
                "nothing joins segment `{name}` to the others: write a `[[bridge]]` or a `[[router]]`"
            );
            return Err(wrong("segment", alone, "name", problem));
        }
        Ok(joined)
    }

    /// A segment by its name.
    fn known(
        &self,
        segments: &BTreeMap<&str, usize>,
        name: &str,
    ) -> Result<(usize, &Segment), String> {
        let found = segments.get(name).copied();
        found
            .and_then(|at| Some((at, self.segment.get(at)?)))
            .ok_or_else(|| {
                let known: Vec<&str> = segments.keys().copied().take(8).collect();
                format!(
                    "there is no segment `{}`: there are {}",
                    excerpt(name),
                    known.join(", ")
                )
            })
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

/// What joins which segments.
pub(crate) struct Joined {
    /// By bridge and interface: the segment.
    pub bridges: Vec<Vec<usize>>,
    /// By segment: the number of its subnet.
    pub subnet: Vec<usize>,
    /// By router and interface: the segment.
    pub routers: Vec<Vec<usize>>,
}

/// Makes one group of those of these segments.
fn unite(group: &mut [usize], joined: &[usize]) {
    let old: Vec<usize> = joined
        .iter()
        .filter_map(|segment| group.get(*segment))
        .copied()
        .collect();
    for of in group {
        if let (true, Some(first)) = (old.contains(of), old.first()) {
            *of = *first;
        }
    }
}

/// The groups by numbers from 0, in the order of their first members.
fn numbered(group: &[usize]) -> Vec<usize> {
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let number = |of: &usize| {
        let next = numbers.len();
        *numbers.entry(*of).or_insert(next)
    };
    group.iter().map(number).collect()
}

/// Why no bridge can join a segment, if so.
fn unbridged(one: &Segment) -> Option<String> {
    let (name, network) = (&one.name, &one.network);
    if !network.broadcasts() {
        return Some(format!(
            "segment `{name}` ({}) carries no frames to all, which a bridge needs",
            network.name
        ));
    }
    costly(one)
}

/// Why no node can join a segment, if so.
fn costly(one: &Segment) -> Option<String> {
    let name = &one.name;
    one.network.host.as_ref().map(|_| {
        format!("segment `{name}` has the times of its hosts (`[host]`), which a bridge or router would have too: leave them out")
    })
}

/// What a command becomes on the segments that it is for, by these places of the ports that it may name.
///
/// # Errors
/// [`Refused`] where it names ports of two segments.
pub(crate) fn inside(
    places: &[(usize, u16)],
    segments: usize,
    command: Command,
) -> Result<Vec<(usize, Command)>, Refused> {
    let place = |port: Port| places.get(usize::from(port.0)).copied();
    let mut named = command.ports().into_iter().flatten().filter_map(place);
    let Some((segment, _)) = named.next() else {
        return Ok((0..segments).map(|segment| (segment, command)).collect());
    };
    if named.any(|(other, _)| other != segment) {
        return Err(Refused::NotHere {
            what: "segment that both are on",
            remedy: "name two hosts of the same segment",
        });
    }
    let station = |port| place(port).map_or(port, |(_, station)| Port(station));
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

/// Why the host of this number cannot have a name: each is also called h1, h2 and so on.
fn mistaken(name: &str, number: usize) -> Option<String> {
    let usual = format!("h{number}");
    (is_numbered(name) && name != usual || name == "localhost")
        .then(|| format!("a host of this place cannot be called `{name}`, for it is called {usual} too: give it another name"))
}

/// Whether a name is as h1, which each host of that number has.
fn is_numbered(name: &str) -> bool {
    let rest = name.strip_prefix('h');
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Why a text is no name of a host, segment, bridge or router.
fn misnamed(name: &str) -> Option<String> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_name = (1..=63).contains(&name.len())
        && name.chars().all(is_letter)
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !name.ends_with('-');
    (!is_name).then(|| {
        format!(
            "`{}` is no name: write letters, digits and hyphens, at most 63, a letter first; several as `h[1-16]`",
            excerpt(name)
        )
    })
}
