//! Which way frames go: the directed lines behind each switch, and the next of them on the shortest way to a host.
//!
//! Model:   each switch sends to its hosts and, by trunks, to other switches. The way has the fewest trunks; among ways of
//!          equal length the rule of [`Assign`] decides, always the same for the same frame. A frame to all goes along a
//!          spanning tree, so that it crosses each trunk at most once. Where a trunk goes down or comes up, the tables are
//!          made anew; a frame under way takes the new way from the switch where it is.
//! Source:  IEEE 802.1D (spanning tree: here the tree of fewest trunks from the lowest switch); Zahavi 2010 (D-mod-k in
//!          fat-trees).
//! Units:   switches, trunks and links are counted from 0. The link to host p has number p; trunk t has two links.
//! Checked: `ways_are_shortest_and_end`, `the_tree_reaches_each_once`, `crates/link/tests/topology.rs`.

mod layout;
mod ways;

pub use layout::{Assign, Assignment, Layout, PortLine, Site, Trunk, Wire};
pub(crate) use layout::{check, is_of_switches};

use crate::spec::refuse;
use crate::{Limit, Line, NetworkSpec, Port, SpecError};

/// A directed line from a switch: its place in [`Graph::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub u32);

/// Where a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At a host.
    Host(Port),
    /// At another switch.
    Switch(u16),
}

/// A directed line from a switch, and the queue before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The switch that it leaves.
    pub from: u16,
    /// Where it ends.
    pub to: End,
    /// Rate, framing, propagation.
    pub line: Line,
    /// What waits for it, at most.
    pub buffer: Limit,
    /// The trunk that it is a direction of.
    pub trunk: Option<u16>,
}

/// The switches of a network, their links and the ways over them.
pub(crate) struct Graph {
    switches: u16,
    ports: u16,
    assign: Assign,
    wanted: Vec<Assignment>,
    links: Vec<Link>,
    /// The line of each host, as it sends.
    lines: Vec<Line>,
    /// The switch of each host, and which of its hosts it is.
    places: Vec<(u16, u16)>,
    /// Whether each trunk is up.
    up: Vec<bool>,
    /// The hosts of each switch.
    hosts: Vec<Vec<Port>>,
    /// By switch and destination switch: the links on shortest ways, each as often as it shall be used.
    slots: Vec<Vec<LinkId>>,
    /// By switch: its trunk links in the spanning tree.
    tree: Vec<Vec<LinkId>>,
    /// By link: the hosts that the tree reaches by it.
    beyond: Vec<Vec<Port>>,
    /// By switch: the hosts that it can reach.
    apart: Vec<Vec<Port>>,
}

impl Graph {
    /// The graph of a specification with a switch, for `ports` hosts.
    ///
    /// # Errors
    /// [`SpecError`] where so many hosts have no place, or an entry names a host or a way that is not there.
    pub fn new(spec: &NetworkSpec, ports: u16) -> Result<Self, SpecError> {
        let Some(switch) = spec.switch else {
            return refuse(
                "switch",
                "is missing; a network of switches needs one".into(),
            );
        };
        let plan = layout::plan(spec)?;
        let places = plan.places(spec, ports)?;
        let fabric = spec.fabric.clone().unwrap_or_default();
        let own = |port: u16| spec.port.iter().find(|entry| entry.port == port);
        if let Some(entry) = spec.port.iter().find(|entry| entry.port >= ports) {
            let problem = format!(
                "is {}, but there are {ports} hosts, counted from 0",
                entry.port
            );
            return refuse("port.port", problem);
        }
        let lines: Vec<_> = (0..ports)
            .map(|port| own(port).map_or(spec.line, |entry| entry.wire.line(&spec.line)))
            .collect();
        let mut links: Vec<_> = (0..ports)
            .map(|port| Link {
                from: places[usize::from(port)],
                to: End::Host(Port(port)),
                line: lines[usize::from(port)],
                buffer: own(port)
                    .and_then(|entry| entry.wire.buffer)
                    .unwrap_or(switch.buffer),
                trunk: None,
            })
            .collect();
        for (number, (a, b, wire)) in (0u16..).zip(&plan.trunks) {
            for (from, to) in [(*a, *b), (*b, *a)] {
                links.push(Link {
                    from,
                    to: End::Switch(to),
                    line: wire.line(&spec.line),
                    buffer: wire.buffer.unwrap_or(switch.buffer),
                    trunk: Some(number),
                });
            }
        }
        let mut hosts = vec![Vec::new(); usize::from(plan.switches)];
        let mut seats = Vec::with_capacity(places.len());
        for (port, at) in (0..ports).map(Port).zip(places) {
            let here: &mut Vec<Port> = &mut hosts[usize::from(at)];
            seats.push((at, here.len() as u16));
            here.push(port);
        }
        let mut graph = Self {
            switches: plan.switches,
            ports,
            assign: fabric.assign,
            wanted: spec.assign.clone(),
            lines,
            places: seats,
            up: vec![true; plan.trunks.len()],
            hosts,
            slots: Vec::new(),
            tree: Vec::new(),
            beyond: vec![Vec::new(); links.len()],
            apart: Vec::new(),
            links,
        };
        graph.find_ways();
        graph.check_wanted()?;
        Ok(graph)
    }

    /// Each trunk that a pair was given must be on its way.
    fn check_wanted(&self) -> Result<(), SpecError> {
        for wanted in &self.wanted {
            if wanted.from.max(wanted.to) >= self.ports || wanted.from == wanted.to {
                let problem = format!(
                    "is from {} to {}, but there are {} hosts, counted from 0",
                    wanted.from, wanted.to, self.ports
                );
                return refuse("assign.from", problem);
            }
            let mut way = self.route(Port(wanted.from), Port(wanted.to), 0);
            if !way.any(|link| self.link(link).trunk == Some(wanted.trunk)) {
                let problem = format!(
                    "is {}, which is on no shortest path from host {} to {}; choose a trunk between their switches",
                    wanted.trunk, wanted.from, wanted.to
                );
                return refuse("assign.trunk", problem);
            }
        }
        Ok(())
    }

    /// Every directed line that leaves a switch: first one to each host in the order of the hosts, then the trunks.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One of them.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.0 as usize]
    }

    /// The link to a host.
    pub fn last(&self, to: Port) -> LinkId {
        LinkId(u32::from(to.0))
    }

    /// The line by which a host sends.
    pub fn line(&self, port: Port) -> &Line {
        &self.lines[usize::from(port.0)]
    }

    /// The switch of a host.
    pub fn switch_of(&self, port: Port) -> u16 {
        self.places[usize::from(port.0)].0
    }

    /// How many trunks there are.
    pub fn trunks(&self) -> u16 {
        self.up.len() as u16
    }

    /// How many switches there are.
    pub fn switches(&self) -> u16 {
        self.switches
    }

    /// Whether the trunk of a link is up; a host's line always is.
    pub fn is_up(&self, link: LinkId) -> bool {
        self.link(link)
            .trunk
            .is_none_or(|trunk| self.up[usize::from(trunk)])
    }

    /// Whether a trunk is up.
    pub fn is_trunk_up(&self, trunk: u16) -> bool {
        self.up[usize::from(trunk)]
    }

    /// The two directions of a trunk.
    pub fn of_trunk(&self, trunk: u16) -> [LinkId; 2] {
        let first = u32::from(self.ports) + 2 * u32::from(trunk);
        [LinkId(first), LinkId(first + 1)]
    }

    /// The switch at the end of a trunk; of a host's link, that at its beginning.
    pub fn far(&self, link: LinkId) -> u16 {
        match self.link(link).to {
            End::Switch(to) => to,
            End::Host(_) => self.link(link).from,
        }
    }

    /// The link by which the switch `at` sends a frame on; none where no way is left.
    pub fn next(&self, at: u16, from: Port, to: Port, flow: u64) -> Option<LinkId> {
        let (end, seat) = self.places[usize::from(to.0)];
        if end == at {
            return Some(self.last(to));
        }
        let slots = &self.slots[usize::from(at) * usize::from(self.switches) + usize::from(end)];
        if !self.wanted.is_empty() {
            let wanted = self
                .wanted
                .iter()
                .filter(|w| w.from == from.0 && w.to == to.0);
            for wanted in wanted {
                let ours = |link: &&LinkId| self.link(**link).trunk == Some(wanted.trunk);
                if let Some(link) = slots.iter().find(ours) {
                    return Some(*link);
                }
            }
        }
        let first = *slots.first()?;
        let draw = match self.assign {
            Assign::First => return Some(first),
            // By the host where the way begins, by its switch further on, so that the choices do not go together.
            Assign::Spread if self.switch_of(from) == at => u64::from(seat),
            Assign::Spread => u64::from(end),
            Assign::FlowHash => {
                mix(mix(flow ^ (u64::from(from.0) << 48) ^ (u64::from(to.0) << 32)) ^ u64::from(at))
            }
        };
        Some(slots[(draw % slots.len() as u64) as usize])
    }

    /// The links of the way from one host to another, in order; it ends early where no way is left.
    pub fn route(&self, from: Port, to: Port, flow: u64) -> impl Iterator<Item = LinkId> + '_ {
        let mut at = Some(self.switch_of(from));
        std::iter::from_fn(move || {
            let link = self.next(at?, from, to, flow)?;
            at = match self.link(link).to {
                End::Switch(next) => Some(next),
                End::Host(_) => None,
            };
            Some(link)
        })
    }

    /// The hosts of a switch.
    pub fn hosts(&self, at: u16) -> &[Port] {
        &self.hosts[usize::from(at)]
    }

    /// The trunk links by which the switch `at` sends a frame to all, but for the way back of the one that it came by.
    pub fn flood(&self, at: u16, came_by: Option<LinkId>) -> impl Iterator<Item = LinkId> + '_ {
        let back = came_by.map(|link| self.back(link));
        let tree = self.tree[usize::from(at)].iter().copied();
        tree.filter(move |link| Some(*link) != back)
    }

    /// The hosts that a frame to all reaches by this trunk link.
    pub fn beyond(&self, link: LinkId) -> &[Port] {
        &self.beyond[link.0 as usize]
    }

    /// The hosts that a switch cannot reach, since trunks are down.
    pub fn apart(&self, at: u16) -> &[Port] {
        &self.apart[usize::from(at)]
    }

    /// The other direction of a trunk.
    fn back(&self, link: LinkId) -> LinkId {
        let first = u32::from(self.ports);
        LinkId(first + ((link.0 - first) ^ 1))
    }

    /// Takes a trunk down, or up; false where there is no such trunk.
    pub fn set_trunk(&mut self, trunk: u16, up: bool) -> bool {
        let Some(was) = self.up.get_mut(usize::from(trunk)) else {
            return false;
        };
        if *was != up {
            *was = up;
            self.find_ways();
        }
        true
    }
}

/// Two switches, and the line that joins them.
pub(crate) type TrunkLine = (u16, u16, Line);

/// How many switches a specification has, and its trunks.
///
/// # Errors
/// As [`Graph::new`].
pub(crate) fn trunks(spec: &NetworkSpec) -> Result<(u16, Vec<TrunkLine>), SpecError> {
    let plan = layout::plan(spec)?;
    let trunks = plan
        .trunks
        .iter()
        .map(|(a, b, wire)| (*a, *b, wire.line(&spec.line)));
    Ok((plan.switches, trunks.collect()))
}

/// Spreads the bits of a number (the finalizer of splitmix64).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::ways::distances;
    use super::*;

    fn graph(ports: u16, words: &str) -> Result<Graph, String> {
        let text = format!(
            "name = \"x\"\nsummary = \"x\"\ntechnology = \"ethernet\"\nmtu = 1500\n{words}\n\
             [line]\nrate = \"100Mbit\"\nframing = \"ethernet\"\n\
             [switch]\nforwarding = \"store-and-forward\"\nlatency = \"0s\"\nbuffer = \"64KiB\"\n"
        );
        let spec = crate::parse("x", &text).map_err(|error| error.to_string())?;
        Graph::new(&spec, ports).map_err(|error| error.to_string())
    }

    fn some() -> Vec<Graph> {
        [
            (5, "topology = \"star\""),
            (9, "topology = \"ring\"\nfabric = { switches = 7 }"),
            (9, "topology = \"full-mesh\"\nfabric = { switches = 4 }"),
            (16, "topology = \"torus\"\nfabric = { dimensions = [4, 2, 3] }"),
            (16, "topology = \"fat-tree\"\nfabric = { k = 4 }"),
            (16, "topology = \"fat-tree\"\nfabric = { k = 4, assign = \"flow-hash\" }"),
            (6, "topology = \"sites\"\nsite = [{ name = \"a\", hosts = 3 }, { name = \"b\", hosts = 4, distance_km = 500 }]"),
            (6, "topology = \"two-switches\"\nfabric = { switches = 2 }\ntrunk = [{ between = [0, 1], count = 2 }, { between = [1, 0], rate = \"45Mbit\" }]"),
        ]
        .map(|(ports, words)| graph(ports, words).unwrap())
        .into()
    }

    #[test]
    fn ways_are_shortest_and_end() {
        for graph in some() {
            let mut out = vec![Vec::new(); usize::from(graph.switches)];
            for (id, link) in (0..).map(LinkId).zip(&graph.links) {
                if let End::Switch(to) = link.to {
                    out[usize::from(link.from)].push((id, to));
                }
            }
            for (from, to) in pairs(graph.ports) {
                let way: Vec<_> = graph.route(from, to, 7).collect();
                let far = distances(&out, graph.switch_of(to))[usize::from(graph.switch_of(from))];
                assert_eq!(way.len() as u32, far.unwrap() + 1);
                assert_eq!(way.last(), Some(&graph.last(to)));
            }
        }
    }

    fn pairs(ports: u16) -> impl Iterator<Item = (Port, Port)> {
        let all = move |a| {
            (0..ports)
                .filter(move |b| a != *b)
                .map(move |b| (Port(a), Port(b)))
        };
        (0..ports).flat_map(all)
    }

    /// Whom a frame to all reaches from the switch of `from`, by following the tree.
    fn reached(graph: &Graph, from: Port) -> Vec<Port> {
        let (mut next, mut reached) = (vec![(graph.switch_of(from), None)], Vec::new());
        while let Some((at, came_by)) = next.pop() {
            reached.extend(graph.hosts(at));
            for link in graph.flood(at, came_by) {
                let before = reached.len();
                let End::Switch(to) = graph.link(link).to else {
                    panic!("a trunk")
                };
                next.push((to, Some(link)));
                assert!(
                    graph
                        .beyond(link)
                        .iter()
                        .all(|port| !reached[..before].contains(port))
                );
            }
        }
        reached.sort_unstable();
        reached
    }

    #[test]
    fn the_tree_reaches_each_once() {
        for mut graph in some() {
            for from in (0..graph.ports).map(Port) {
                assert_eq!(
                    reached(&graph, from),
                    (0..graph.ports).map(Port).collect::<Vec<_>>()
                );
            }
            for trunk in 0..graph.trunks() {
                assert!(graph.set_trunk(trunk, false));
                for from in (0..graph.ports).map(Port) {
                    let mut all = reached(&graph, from);
                    all.extend(graph.apart(graph.switch_of(from)));
                    all.sort_unstable();
                    assert_eq!(all, (0..graph.ports).map(Port).collect::<Vec<_>>());
                    for to in graph.apart(graph.switch_of(from)) {
                        assert_eq!(graph.route(from, *to, 0).count(), 0);
                    }
                }
                assert!(trunk % 2 == 0 || graph.set_trunk(trunk, true));
            }
            assert!(!graph.set_trunk(graph.trunks(), false));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (words, want) in [
            ("topology = \"ring\"", "`fabric.switches` is missing"),
            ("topology = \"torus\"", "`fabric.dimensions` are []"),
            (
                "topology = \"fat-tree\"\nfabric = { k = 3 }",
                "`fabric.k` is 3",
            ),
            (
                "topology = \"star\"\nfabric = { k = 4 }",
                "`fabric` needs a topology",
            ),
            (
                "topology = \"switches\"\nfabric = { switches = 2 }",
                "does not join switch 1",
            ),
            (
                "topology = \"switches\"\nfabric = { switches = 2 }\ntrunk = [{ between = [0, 2] }]",
                "`trunk.between` is [0, 2]",
            ),
            (
                "topology = \"ring\"\nfabric = { switches = 3, rate = \"1bit\" }",
                "`fabric.rate` of the trunks",
            ),
            (
                "topology = \"ring\"\nfabric = { switches = 3, hosts_per_switch = 1 }",
                "has places for 3 hosts, not for 4",
            ),
            (
                "topology = \"ring\"\nfabric = { switches = 3, placement = [0, 1, 2, 3] }",
                "names switch 3",
            ),
            (
                "topology = \"ring\"\nfabric = { switches = 3, speed = 1 }",
                "unknown field `speed`",
            ),
            (
                "topology = \"ring\"\nfabric = { switches = 3 }\nassign = [{ from = 0, to = 3, trunk = 3 }]",
                "`assign.trunk` is 3",
            ),
            (
                "topology = \"ring\"\nfabric = { switches = 3 }\nassign = [{ from = 0, to = 3, trunk = 1 }]",
                "on no shortest path",
            ),
            (
                "topology = \"star\"\nport = [{ port = 4, rate = \"10Mbit\" }]",
                "`port.port` is 4",
            ),
            (
                "topology = \"sites\"\nsite = [{ name = \"a\", hosts = 3 }]",
                "`site` is there 1 times",
            ),
        ] {
            let error = graph(4, words).err().expect(words);
            assert!(error.contains(want), "{error}");
        }
    }

    /// One TAXI and two DS-3: of 64 frames in turn each trunk gets its share.
    #[test]
    fn unequal_trunks_share_by_rate() {
        let words = "topology = \"switches\"\nfabric = { switches = 2, hosts_per_switch = 64 }\n\
             trunk = [{ between = [0, 1], rate = \"100Mbit\" }, { between = [0, 1], rate = \"45Mbit\", count = 2 }]";
        let graph = graph(128, words).unwrap();
        let mut used = [0; 3];
        for to in 64..128 {
            let link = graph.next(0, Port(0), Port(to), 0).unwrap();
            used[usize::from(graph.link(link).trunk.unwrap())] += 1;
        }
        // 64 * 100/190 and 64 * 45/190.
        assert_eq!(used, [34, 15, 15]);
        let first: Vec<_> = (64..67)
            .map(|to| graph.next(0, Port(0), Port(to), 0))
            .collect();
        assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
    }
}
