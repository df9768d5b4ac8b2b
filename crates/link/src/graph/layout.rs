//! Several switches as data: where the hosts are, what joins the switches, who goes by which trunk.
//!
//! Model:   a ring, full mesh, torus or fat-tree follows from a few numbers; in `switches` and `sites` each trunk is written.
//! Source:  Leiserson 1985 and Al-Fares 2008 (the k-ary fat-tree: k pods, k/2 edge and k/2 aggregation switches in each,
//!          k*k/4 core switches, k*k*k/4 hosts).
//! Units:   hosts, switches and trunks are counted from 0; rates, times and sizes carry their unit in the text.
//! Checked: `crates/link/tests/topology.rs`.

use crate::spec::{in_time, refuse};
use crate::{Circuits, Limit, Line, NetworkSpec, Signalling, SpecError, Topology};
use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Ratio, Span};

/// The most switches of a network.
const SWITCHES_MAX: u64 = 1_024;
/// The most trunks of a network.
const TRUNKS_MAX: u64 = 16_384;
/// 5 us a kilometre of fibre.
const PROPAGATION_PER_KM: Span = Span::micros(5);

/// How the switches of a network are laid out (`[fabric]`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Layout {
    /// How many switches, in `switches`, `ring` and `full-mesh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<u16>,
    /// How many in each dimension of a `torus`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<u16>,
    /// Lines a switch of a `fat-tree`: an even number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u16>,
    /// Hosts at each switch, one switch filled after the other; without it they are spread evenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts_per_switch: Option<u16>,
    /// The switch of each host; takes the place of `hosts_per_switch`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<u16>,
    /// What a trunk has that does not say it itself; what is missing here too is as the hosts' lines.
    #[serde(flatten)]
    pub trunks: Wire,
    /// How pairs of hosts are spread over ways of equal length.
    pub assign: Assign,
}

/// A line with figures of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wire {
    /// Its nominal rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// The share of it for frames or cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Ratio>,
    /// From one end to the other.
    #[serde(alias = "delay", skip_serializing_if = "Option::is_none")]
    pub propagation: Option<Span>,
    /// Its length in metres, 5 ns each, in place of `propagation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_m: Option<u64>,
    /// Its length in kilometres, 5 us each, in place of `propagation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance_km: Option<u64>,
    /// What waits for it at a switch, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Limit>,
}

/// Lines between two switches (`[[trunk]]`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trunk {
    /// The two switches, or sites.
    #[serde(deserialize_with = "sonde_units::two")]
    pub between: [u16; 2],
    /// What it is called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How many equal ones.
    #[serde(default = "one")]
    pub count: u16,
    /// Its own figures.
    #[serde(flatten)]
    pub wire: Wire,
}

/// Hosts in one place, at a switch of their own (`[[site]]`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// What it is called.
    pub name: String,
    /// How many hosts are there at most; sites are filled one after the other.
    pub hosts: u16,
    /// The way to the exchange in the middle, where no `[[trunk]]` joins the sites.
    #[serde(flatten)]
    pub wire: Wire,
}

/// A host whose line is not as the others' (`[[port]]`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortLine {
    /// The host.
    pub port: u16,
    /// After the start its adapter sets up its permanent circuits, by its maker's procedure: both hosts of a circuit must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Span>,
    /// What its line has of its own.
    #[serde(flatten)]
    pub wire: Wire,
}

/// The trunk that one host's frames to another take (`[[assign]]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The sender.
    pub from: u16,
    /// The receiver.
    pub to: u16,
    /// The trunk, while it is up.
    pub trunk: u16,
}

/// How pairs of hosts are spread over ways of equal length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assign {
    /// All go by the first.
    First,
    /// The hosts behind a switch in turn, each way as often as its rate says (in a fat-tree: D-mod-k).
    #[default]
    Spread,
    /// By a hash of sender, receiver and flow, each way as often as its rate says.
    FlowHash,
}

const fn one() -> u16 {
    1
}

impl Wire {
    /// What is given here, and from `other` what is not.
    pub(super) fn or(self, other: Self) -> Self {
        let far = self.propagation.is_some() || self.length_m.is_some();
        let way = if far || self.distance_km.is_some() {
            self
        } else {
            other
        };
        Self {
            rate: self.rate.or(other.rate),
            payload: self.payload.or(other.payload),
            propagation: way.propagation,
            length_m: way.length_m,
            distance_km: way.distance_km,
            buffer: self.buffer.or(other.buffer),
        }
    }

    /// `line` with the figures that are given here.
    pub(super) fn line(&self, line: &Line) -> Line {
        let far = self
            .distance_km
            .map(|km| PROPAGATION_PER_KM * km)
            .or(self.propagation);
        line.altered(self.rate, self.payload, far, self.length_m)
    }

    /// Checks the figures that `keys` name: rate, way, buffer.
    fn check(
        &self,
        spec: &NetworkSpec,
        keys: [&'static str; 3],
        who: &str,
    ) -> Result<(), SpecError> {
        let [rate, way, buffer] = keys;
        let ways = [
            self.propagation.is_some(),
            self.length_m.is_some(),
            self.distance_km.is_some(),
        ];
        if ways.into_iter().filter(|given| *given).count() > 1 {
            return refuse(
                way,
                format!(
                    "of {who} is given twice; keep one of `propagation`, `length_m` and `distance_km`"
                ),
            );
        }
        if self.distance_km.is_some_and(|km| km > 1_000_000) {
            return refuse(
                way,
                format!("of {who} is above 1 000 000 km; give `propagation` if it is meant"),
            );
        }
        let line = self.line(&spec.line);
        if let Err(error) = line.check() {
            let key = if error.key.ends_with("rate") || error.key.ends_with("payload") {
                rate
            } else {
                way
            };
            return refuse(key, format!("of {who}: {}", error.problem));
        }
        in_time(way, line.propagation(), Span::secs(10))?;
        self.buffer
            .map_or(Ok(()), |limit| spec.check_buffer(buffer, limit))
    }
}

/// The switches of a network and what joins them.
pub(super) struct Plan {
    pub switches: u16,
    /// Each between two switches, in the order of their numbers.
    pub trunks: Vec<(u16, u16, Wire)>,
}

/// Whether the topology is made of several switches.
pub(crate) fn is_of_switches(spec: &NetworkSpec) -> bool {
    match spec.topology {
        Topology::Switches | Topology::FullMesh | Topology::Torus => true,
        Topology::FatTree | Topology::Sites => true,
        Topology::Ring => spec.switch.is_some() && spec.token.is_none() && spec.sci.is_none(),
        _ => false,
    }
}

/// Whether the tables on switches fit together.
pub(crate) fn check(spec: &NetworkSpec) -> Result<(), SpecError> {
    if !is_of_switches(spec) {
        let several = [
            ("fabric", spec.fabric.is_some()),
            ("trunk", !spec.trunk.is_empty()),
            ("site", !spec.site.is_empty()),
            ("assign", !spec.assign.is_empty()),
            ("port", !spec.port.is_empty() && spec.switch.is_none()),
        ];
        return match several.into_iter().find(|(_, there)| *there) {
            Some((key, _)) => refuse(
                key,
                "needs a topology of switches: \"switches\", \"ring\", \"full-mesh\", \"torus\", \"fat-tree\" or \"sites\", and a [switch]".into(),
            ),
            None => check_ports(spec),
        };
    }
    if spec.switch.is_none() {
        return refuse(
            "switch",
            "is missing; say what each switch of the network is like".into(),
        );
    }
    let plan = plan(spec)?;
    let fabric = spec.fabric.clone().unwrap_or_default();
    let keys = ["fabric.rate", "fabric.propagation", "fabric.buffer"];
    fabric.trunks.check(spec, keys, "the trunks")?;
    let keys = ["trunk.rate", "trunk.propagation", "trunk.buffer"];
    for (number, trunk) in spec.trunk.iter().enumerate() {
        trunk
            .wire
            .check(spec, keys, &format!("[[trunk]] entry {number}"))?;
    }
    let keys = ["site.rate", "site.propagation", "site.buffer"];
    for site in &spec.site {
        site.wire
            .check(spec, keys, &format!("site {}", site.name))?;
    }
    for wanted in &spec.assign {
        if usize::from(wanted.trunk) >= plan.trunks.len() {
            let problem = format!(
                "is {}, but the network has {} trunks, counted from 0",
                wanted.trunk,
                plan.trunks.len()
            );
            return refuse("assign.trunk", problem);
        }
    }
    check_ports(spec)
}

fn check_ports(spec: &NetworkSpec) -> Result<(), SpecError> {
    let keys = ["port.rate", "port.propagation", "port.buffer"];
    for (index, entry) in spec.port.iter().enumerate() {
        if spec.port[..index]
            .iter()
            .any(|other| other.port == entry.port)
        {
            return refuse(
                "port.port",
                format!("is {} twice; keep one entry a host", entry.port),
            );
        }
        entry
            .wire
            .check(spec, keys, &format!("host {}", entry.port))?;
        let is_permanent = |circuits: Circuits| circuits.signalling == Signalling::Pvc;
        if entry.boot.is_some() && !spec.circuits.is_some_and(is_permanent) {
            return refuse(
                "port.boot",
                "is of permanent circuits, and this network has none; leave it out".into(),
            );
        }
        in_time(
            "port.boot",
            entry.boot.unwrap_or_default(),
            Span::secs(3_600),
        )?;
    }
    Ok(())
}

/// The switches and trunks of a specification.
///
/// # Errors
/// The first key that is wrong: a number that is missing or out of range, a trunk to a switch that is not there, switches
/// that nothing joins.
pub(super) fn plan(spec: &NetworkSpec) -> Result<Plan, SpecError> {
    let fabric = spec.fabric.clone().unwrap_or_default();
    let mut pairs = Vec::new();
    let mut counted = None;
    let switches = match spec.topology {
        Topology::Ring => {
            let n = number(fabric.switches, "fabric.switches", 2..=SWITCHES_MAX)?;
            let ends = if n == 2 { 1 } else { n };
            pairs.extend((0..ends).map(|i| (i, (i + 1) % n)));
            n
        }
        Topology::FullMesh => {
            let n = number(fabric.switches, "fabric.switches", 2..=128)?;
            pairs.extend((0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))));
            n
        }
        Topology::Torus => torus(&fabric.dimensions, &mut pairs)?,
        Topology::FatTree => fat_tree(number(fabric.k, "fabric.k", 2..=24)?, &mut pairs)?,
        Topology::Sites => {
            let n = spec.site.len() as u64;
            if !(2..=256).contains(&n) {
                return refuse(
                    "site",
                    format!(
                        "is there {n} times, but sites are 2 to 256; write a [[site]] for each"
                    ),
                );
            }
            counted = Some(n);
            n + u64::from(spec.trunk.is_empty())
        }
        Topology::Switches => number(fabric.switches, "fabric.switches", 1..=SWITCHES_MAX)?,
        _ => 1,
    };
    let mut trunks: Vec<_> = pairs
        .into_iter()
        .map(|(a, b)| (a as u16, b as u16, fabric.trunks))
        .collect();
    if spec.topology == Topology::Sites && spec.trunk.is_empty() {
        let ways = (0..).zip(&spec.site);
        trunks
            .extend(ways.map(|(i, site)| (i, (switches - 1) as u16, site.wire.or(fabric.trunks))));
    }
    for trunk in &spec.trunk {
        let [a, b] = trunk.between;
        if a == b || u64::from(a.max(b)) >= counted.unwrap_or(switches) {
            let problem = format!(
                "is [{a}, {b}], but a trunk joins two of {} switches, counted from 0",
                counted.unwrap_or(switches)
            );
            return refuse("trunk.between", problem);
        }
        let wires = (0..trunk.count).map(|_| (a, b, trunk.wire.or(fabric.trunks)));
        trunks.extend(wires);
    }
    if trunks.len() as u64 > TRUNKS_MAX {
        return refuse(
            "trunk",
            format!(
                "are {} in all, but at most {TRUNKS_MAX} are possible",
                trunks.len()
            ),
        );
    }
    let plan = Plan {
        switches: switches as u16,
        trunks,
    };
    plan.joined()?;
    Ok(plan)
}

fn number(
    value: Option<u16>,
    key: &'static str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, SpecError> {
    let (least, most) = (range.start(), range.end());
    match value {
        None => refuse(
            key,
            format!("is missing; write a number from {least} to {most}"),
        ),
        Some(n) if !range.contains(&u64::from(n)) => {
            refuse(key, format!("is {n}, but {least} to {most} are possible"))
        }
        Some(n) => Ok(u64::from(n)),
    }
}

fn torus(dimensions: &[u16], pairs: &mut Vec<(u64, u64)>) -> Result<u64, SpecError> {
    let mut switches = 1u64;
    for size in dimensions {
        switches = switches.saturating_mul(u64::from(*size));
    }
    if dimensions.is_empty() || !(2..=SWITCHES_MAX).contains(&switches) {
        let problem = format!(
            "are {dimensions:?}, but a torus has 2 to {SWITCHES_MAX} switches; write how many stand in each dimension, as in [4, 4]"
        );
        return refuse("fabric.dimensions", problem);
    }
    let mut stride = 1;
    for size in dimensions.iter().map(|size| u64::from(*size)) {
        for at in 0..switches {
            let place = at / stride % size;
            // Two in a row are joined once, not twice.
            if size > 2 || (size == 2 && place == 0) {
                pairs.push((at, at - place * stride + (place + 1) % size * stride));
            }
        }
        stride *= size;
    }
    Ok(switches)
}

/// Edge switches first, then the aggregation of each pod, then the core.
fn fat_tree(k: u64, pairs: &mut Vec<(u64, u64)>) -> Result<u64, SpecError> {
    if k % 2 != 0 {
        return refuse(
            "fabric.k",
            format!("is {k}, but half of a switch's lines go up: use an even number"),
        );
    }
    let half = k / 2;
    let (edges, core) = (k * half, 2 * k * half);
    for edge in 0..edges {
        let pod = edge / half;
        pairs.extend((0..half).map(|j| (edge, edges + pod * half + j)));
    }
    for aggregation in 0..edges {
        let j = aggregation % half;
        pairs.extend((0..half).map(|i| (edges + aggregation, core + j * half + i)));
    }
    Ok(core + half * half)
}

impl Plan {
    fn joined(&self) -> Result<(), SpecError> {
        let mut reached = vec![false; usize::from(self.switches)];
        let mut next = vec![0u16];
        reached[0] = true;
        while let Some(at) = next.pop() {
            for &(a, b, _) in &self.trunks {
                let other = if a == at {
                    b
                } else if b == at {
                    a
                } else {
                    continue;
                };
                if !std::mem::replace(&mut reached[usize::from(other)], true) {
                    next.push(other);
                }
            }
        }
        match reached.iter().position(|reached| !reached) {
            Some(lost) => refuse(
                "trunk",
                format!(
                    "does not join switch {lost} to the others; add a [[trunk]] with `between = [0, {lost}]`"
                ),
            ),
            None => Ok(()),
        }
    }

    /// The switch of each of `ports` hosts.
    ///
    /// # Errors
    /// [`SpecError`] where there is no place for so many.
    pub fn places(&self, spec: &NetworkSpec, ports: u16) -> Result<Vec<u16>, SpecError> {
        let fabric = spec.fabric.clone().unwrap_or_default();
        let full = |key, most: u64| {
            let problem = format!(
                "has places for {most} hosts, not for {ports}; add places, or ask for fewer hosts"
            );
            refuse(key, problem)
        };
        if spec.topology == Topology::Sites {
            let places: Vec<_> = (0..)
                .zip(&spec.site)
                .flat_map(|(at, site)| (0..site.hosts).map(move |_| at))
                .collect();
            if places.len() < usize::from(ports) {
                return full("site.hosts", places.len() as u64);
            }
            return Ok(places[..usize::from(ports)].to_vec());
        }
        if !fabric.placement.is_empty() {
            if let Some(absent) = fabric.placement.iter().find(|at| **at >= self.switches) {
                let problem = format!(
                    "names switch {absent}, but there are {}, counted from 0",
                    self.switches
                );
                return refuse("fabric.placement", problem);
            }
            if fabric.placement.len() < usize::from(ports) {
                return full("fabric.placement", fabric.placement.len() as u64);
            }
            return Ok(fabric.placement[..usize::from(ports)].to_vec());
        }
        let (seats, key) = match fabric.k.filter(|_| spec.topology == Topology::FatTree) {
            Some(k) => (u64::from(k) * u64::from(k) / 2, "fabric.k"),
            None => (u64::from(self.switches), "fabric.hosts_per_switch"),
        };
        let per = fabric
            .hosts_per_switch
            .or(fabric.k.map(|k| k / 2).filter(|_| key == "fabric.k"));
        match per {
            Some(0) => refuse(key, "is 0; each switch needs room for a host".into()),
            Some(per) if seats * u64::from(per) < u64::from(ports) => {
                full(key, seats * u64::from(per))
            }
            Some(per) => Ok((0..ports).map(|port| port / per).collect()),
            None => Ok((0..ports)
                .map(|port| (u64::from(port) * seats / u64::from(ports)) as u16)
                .collect()),
        }
    }
}
