//! Whether the parts of a site fit together: names, bridges that form a tree, subnets that routers join, and a way between any two hosts.
//!
//! Checked: `tests/site.rs` and `tests/router.rs` read good and bad files.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::spec::{
    Bridge, By, NODE_PORTS_MAX, PARTS_MAX, Router, SITE_HOSTS_MAX, Segment, SiteSpec, names_of,
    no_carrier,
};
use sonde_units::{Span, excerpt};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with the parts: of which table, the how manieth, which key.
pub(super) struct Wrong {
    pub table: &'static str,
    pub number: usize,
    pub key: &'static str,
    pub problem: String,
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

/// A host, while a file is checked.
struct Attached {
    /// Its number, counted from 1.
    place: usize,
    /// The segments that it is on.
    to: Vec<usize>,
}

impl SiteSpec {
    /// What joins which segments, if everything fits together.
    pub(super) fn check(&self) -> Result<Joined, Wrong> {
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
        let mut hosts: BTreeMap<&str, Attached> = BTreeMap::new();
        let mut interfaces = 0_usize;
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
            if one.on.is_none() && number >= self.carriers() {
                return of(
                    "name",
                    format!(
                        "segment `{}` stands behind a virtual LAN: write it before all of these",
                        one.name
                    ),
                );
            }
            if let Some(problem) = one.on.as_ref().and_then(|on| self.uncarried(number, on)) {
                return of("on", problem);
            }
            for name in &one.hosts {
                if let Some(problem) = misnamed(name) {
                    return of("hosts", problem);
                }
                interfaces = interfaces.saturating_add(1);
                if interfaces > SITE_HOSTS_MAX {
                    return of(
                        "hosts",
                        format!(
                            "these are more than {SITE_HOSTS_MAX} interfaces of hosts, the most of a site"
                        ),
                    );
                }
                let place = hosts.len().saturating_add(1);
                let own = hosts.entry(name).or_insert_with(|| Attached {
                    place,
                    to: Vec::new(),
                });
                if own.to.last() == Some(&number) {
                    return of(
                        "hosts",
                        format!("host `{name}` is named twice: it is once on a segment"),
                    );
                }
                own.to.push(number);
                if let Some(problem) = mistaken(name, own.place) {
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
        for number in (0..self.segment.len()).filter(|number| self.is_divided(*number)) {
            let mut own = (0..self.segment.len()).filter(|other| self.carrier(*other) == number);
            // It is no subnet beside its virtual LANs.
            if let (Some(carrier), Some(first)) = (own.next(), own.next()) {
                unite(&mut group, &[first, carrier]);
            }
        }
        let mut all = Vec::new();
        let mut taken: BTreeSet<String> = hosts.keys().map(|name| (*name).to_owned()).collect();
        for (number, bridge) in self.bridge.iter().enumerate() {
            let of = |key, problem| Err(wrong("bridge", number, key, problem));
            if let Some(problem) = misnamed(&bridge.name) {
                return of("name", problem);
            }
            if !taken.insert(bridge.name.clone()) {
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
                let is_unlike = |first: &&Segment| first.network.mtu != one.network.mtu;
                if let (None, Some(first)) = (bridge.too_long, first.filter(is_unlike)) {
                    return of(
                        "joins",
                        format!(
                            "segments `{}` and `{name}` carry frames of {} and {} bytes at most: give both the same, as in `{}:mtu={}`, or \
                             write what becomes of longer ones, as `too_long = \"fragment\"`",
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
        let mut carried = BTreeMap::new();
        for (number, one) in self.segment.iter().enumerate() {
            let carrier = self.carrier(number);
            let place = (group.get(number), carrier);
            let other = carried
                .insert(place, number)
                .filter(|other| *other != carrier || !self.is_divided(carrier));
            if let Some(other) = other.and_then(|other| self.segment.get(other)) {
                let problem = format!(
                    "bridges join `{}` and `{}`, which would be one, since both are on one network: leave a bridge out, or one of the two",
                    other.name, one.name
                );
                return Err(wrong("segment", number, "on", problem));
            }
        }
        for (name, attached) in hosts.iter().filter(|(_, one)| one.to.len() > 1) {
            let mut subnets = BTreeMap::new();
            for (interface, segment) in attached.to.iter().enumerate() {
                let called = |segment: usize| self.segment.get(segment).map_or("", |one| &one.name);
                let of = |problem| Err(wrong("segment", *segment, "hosts", problem));
                let own = called(*segment);
                if let Some(other) = subnets.insert(group.get(*segment), *segment) {
                    return of(format!(
                        "host `{name}` is on segments `{}` and `{own}`, which bridges join: name it on one of them",
                        called(other)
                    ));
                }
                let names = names_of(name, attached.place, interface, own);
                if let Some(other) = names.into_iter().find(|name| !taken.insert(name.clone())) {
                    return of(format!(
                        "host `{name}` is called `{other}` there, as something else is: give one of them, or the segment, another name"
                    ));
                }
            }
        }
        let mut joined = Joined {
            bridges: all,
            subnet: numbered(&group),
            routers: Vec::new(),
        };
        if self.router.len() > PARTS_MAX {
            let problem = format!("a site has at most {PARTS_MAX} routers: name fewer");
            return Err(wrong("router", 0, "name", problem));
        }
        let mut senders = BTreeSet::new();
        for (number, router) in self.router.iter().enumerate() {
            let of = |key, problem| Err(wrong("router", number, key, problem));
            if let Some(problem) = misnamed(&router.name) {
                return of("name", problem);
            }
            let host = hosts.get(router.name.as_str());
            if router.by == By::Host {
                if let Some(problem) = unsent(router, host.is_some()) {
                    return of("by", problem);
                }
                if !senders.insert(&router.name) {
                    let problem = format!(
                        "host `{}` is a router twice: name all that it joins in one",
                        router.name
                    );
                    return of("name", problem);
                }
            } else if !taken.insert(router.name.clone()) {
                return of(
                    "name",
                    format!(
                        "there are two of the name `{}`: give one another, or write `by = \"host\"` for a host that sends on",
                        router.name
                    ),
                );
            } else if is_numbered(&router.name) {
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
                if let Some(other) = subnets.insert(joined.subnet.get(segment), name) {
                    return of(
                        "joins",
                        format!(
                            "segments `{other}` and `{name}` are of one subnet already: name one of them"
                        ),
                    );
                }
                if router.by == By::Host {
                    if host.is_none_or(|host| !host.to.contains(&segment)) {
                        return of(
                            "joins",
                            format!(
                                "host `{}` is not on segment `{name}`: name it in `hosts` there",
                                router.name
                            ),
                        );
                    }
                } else if !taken.insert(format!("{}-{name}", router.name)) {
                    return of(
                        "joins",
                        format!(
                            "the router is called `{}-{name}` there, as something else is: give one of them another name",
                            router.name
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
            let is_used = !one.hosts.is_empty() || self.is_divided(segment);
            if !is_used && all.filter(|joined| joined.contains(&segment)).count() < 2 {
                let problem = format!(
                    "segment `{}` has no hosts, and leads between no two bridges or routers: name its hosts",
                    one.name
                );
                return Err(wrong("segment", segment, "hosts", problem));
            }
        }
        let nodes = joined.bridges.iter().chain(&joined.routers);
        if nodes.map(Vec::len).sum::<usize>() > NODE_PORTS_MAX {
            let problem = format!(
                "bridges and routers have at most {NODE_PORTS_MAX} interfaces together: leave some out"
            );
            return Err(wrong("router", 0, "joins", problem));
        }
        self.check_ways(&hosts, &group)?;
        Ok(joined)
    }

    /// That each host reaches each, where what bridges and routers join is of one group.
    fn check_ways(&self, hosts: &BTreeMap<&str, Attached>, group: &[usize]) -> Result<(), Wrong> {
        let wrong = |number, problem| Wrong {
            table: "segment",
            number,
            key: "name",
            problem,
        };
        // Hosts of the same groups reach the same: one of them, in the order of the file, and its segment.
        let mut kinds: BTreeMap<Vec<usize>, (usize, &str, usize)> = BTreeMap::new();
        for (name, attached) in hosts {
            let of = |segment: &usize| group.get(*segment).copied();
            let mut own: Vec<usize> = attached.to.iter().filter_map(of).collect();
            own.sort_unstable();
            let first = attached.to.first().copied().unwrap_or(0);
            let one = (attached.place, *name, first);
            let kept = kinds.entry(own).or_insert(one);
            *kept = one.min(*kept);
        }
        let mut ordered: Vec<_> = kinds.iter().map(|(own, one)| (*one, own)).collect();
        ordered.sort_unstable();
        for (number, ((_, name, segment), own)) in ordered.iter().enumerate() {
            let meets = |others: &[usize]| own.iter().any(|group| others.contains(group));
            let before = ordered.iter().take(number);
            if let Some(((_, other, _), _)) = before.into_iter().find(|(_, others)| !meets(others))
            {
                let on = self.segment.get(*segment).map_or("", |one| &one.name);
                return Err(wrong(
                    *segment,
                    format!(
                        "nothing leads from host `{other}` to segment `{on}`, where host `{name}` is: write a `[[bridge]]` or a `[[router]]`, or \
                         name one of the two hosts on a segment of the other"
                    ),
                ));
            }
        }
        let is_met = |of: &usize| kinds.keys().any(|own| own.contains(of));
        match group.iter().position(|of| !is_met(of)) {
            Some(segment) => {
                let on = self.segment.get(segment).map_or("", |one| &one.name);
                let problem = format!(
                    "nothing leads from a host to segment `{on}`: write a `[[bridge]]` or a `[[router]]`, or name its hosts"
                );
                Err(wrong(segment, problem))
            }
            None => Ok(()),
        }
    }

    /// Whether a segment is there for virtual LANs alone.
    fn is_divided(&self, number: usize) -> bool {
        let has_none = |one: &Segment| one.on.is_none() && one.hosts.is_empty();
        let name = self.segment.get(number).filter(|one| has_none(one));
        let name = name.map(|one| one.name.as_str());
        name.is_some() && self.segment.iter().any(|one| one.on.as_deref() == name)
    }

    /// Why a virtual LAN, the segment of this number, cannot be on a segment, if so.
    fn uncarried(&self, number: usize, on: &str) -> Option<String> {
        let mut before = self.segment.iter().take(number);
        let Some(carrier) = before.find(|one| one.name == on && one.on.is_none()) else {
            return Some(no_carrier(on));
        };
        let network = &carrier.network;
        let is_shared = network.bus.is_some() || network.token.is_some();
        let is_shared = is_shared.then(|| {
            format!(
                "all stations of segment `{on}` ({}) hear each frame, so that it is not divided: a virtual LAN is on a network with a switch",
                network.name
            )
        });
        is_shared.or_else(|| costly(carrier))
    }

    /// A segment by its name.
    fn known(
        &self,
        segments: &BTreeMap<&str, usize>,
        name: &str,
    ) -> Result<(usize, &Segment), String> {
        let found = segments.get(name).copied();
        if found.is_some_and(|at| self.is_divided(at)) {
            let own = self
                .segment
                .iter()
                .find(|one| one.on.as_deref() == Some(name));
            return Err(format!(
                "segment `{name}` is divided into virtual LANs: name one of them, such as `{}`",
                own.map_or("", |one| &one.name)
            ));
        }
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

/// Why a router cannot be a host, which is there or not, if so.
fn unsent(router: &Router, is_there: bool) -> Option<String> {
    if !is_there {
        return Some(format!(
            "`{}` is not the name of a host, which could send on: name it in `hosts` of the segments that it joins",
            router.name
        ));
    }
    let times = [router.frame_time, router.byte_time, router.latency];
    let is_plain = times == [Span::ZERO; 3] && router.buffer == Bridge::usual_buffer();
    (!is_plain).then(|| {
        "a host sends on by its own kernel, which takes what it takes: leave `frame_time`, `byte_time`, `latency` and `buffer` out".into()
    })
}

/// Why no node can join a segment, if so.
fn costly(one: &Segment) -> Option<String> {
    let name = &one.name;
    one.network.host.as_ref().map(|_| {
        format!("segment `{name}` has the times of its hosts (`[host]`), which a bridge or router would have too: leave them out")
    })
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
