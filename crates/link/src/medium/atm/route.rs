//! Which outputs a frame's cells go through.
//!
//! Model:   on a line none; with switches the links of [`Graph`], the same for all frames of a circuit while the same trunks
//!          are up. Each link is an output: that of a station, or one direction of a trunk, at whose far end is a switch.
//! Source:  NASA TP-3532 (two switches, a TAXI and two DS-3 trunks). Deviations: circuits are given another way at once when
//!          a trunk fails.
//! Checked: `tests/atm/trunks.rs`.

use super::queue::{Output, Pool};
use super::spec::AtmTraffic;
use crate::graph::{self, Graph, LinkId};
use crate::output::Limit;
use crate::{CELL_WIRE, Line, NetworkSpec, Port, SpecError};
use sonde_units::{BitRate, Span};
use std::collections::BTreeMap;

/// The most outputs on one way.
pub(crate) const HOPS: usize = 16;

/// The outputs on a way, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    hops: [u16; HOPS],
    len: u8,
}

impl Route {
    fn push(&mut self, hop: u16) {
        self.hops[usize::from(self.len)] = hop;
        self.len += 1;
    }

    /// How many outputs there are.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The output after `hop` others.
    pub fn hop(&self, hop: u8) -> u16 {
        self.hops[usize::from(hop)]
    }
}

/// The outputs of a network, and the ways through them.
pub(crate) struct Plan {
    line: Line,
    /// The switches; none on a line.
    graph: Option<Graph>,
    latency: Span,
}

impl Plan {
    /// For `ports` stations.
    ///
    /// # Errors
    /// Where they have no place, or are too far apart.
    pub fn new(spec: &NetworkSpec, ports: u16) -> Result<Self, SpecError> {
        let graph = spec.switch.map(|_| Graph::new(spec, ports)).transpose()?;
        if let Some(graph) = &graph {
            let each = |a| (0..ports).map(move |b| (Port(a), Port(b)));
            let far = (0..ports)
                .flat_map(each)
                .find(|(a, b)| a != b && graph.route(*a, *b, 0).count() > HOPS);
            if let Some((a, b)) = far {
                let problem = format!(
                    "has more than {HOPS} switches between hosts {} and {}; lay them out closer",
                    a.0, b.0
                );
                return Err(SpecError {
                    key: "topology",
                    problem,
                });
            }
        }
        Ok(Self {
            line: spec.line,
            graph,
            latency: spec.switch.map_or(Span::ZERO, |switch| switch.latency),
        })
    }

    /// Through the switch of a station.
    pub fn latency(&self) -> Span {
        self.latency
    }

    /// The cell time and length of the line by which a station sends.
    pub fn uplink(&self, port: Port) -> (Span, Span) {
        let line = self
            .graph
            .as_ref()
            .map_or(&self.line, |graph| graph.line(port));
        (line.unit_time(CELL_WIRE), line.propagation())
    }

    /// The cell time of the lines of a station at another rate; none: at their own.
    pub fn cell_at(&self, port: Port, rate: Option<BitRate>) -> Span {
        let line = self
            .graph
            .as_ref()
            .map_or(&self.line, |graph| graph.line(port));
        let mut line = *line;
        line.rate = rate.or(line.rate);
        line.unit_time(CELL_WIRE)
    }

    /// All outputs, those to stations first, in the order of the ports; and the buffers that they use.
    pub fn outputs(&self, traffic: &AtmTraffic) -> (Vec<Output>, Vec<Pool>) {
        let Some(graph) = &self.graph else {
            return (Vec::new(), Vec::new());
        };
        let (mut outputs, mut pools) = (Vec::new(), Vec::<Pool>::new());
        // By switch: the stations on it so far; by module: its buffer.
        let mut seats: BTreeMap<u16, u64> = BTreeMap::new();
        let mut modules: BTreeMap<(u16, u64), usize> = BTreeMap::new();
        for link in graph.links() {
            let limit = match link.buffer {
                Limit::Cells(cells) => cells,
                _ => unreachable!("ATM buffers are in cells; the specification was checked"),
            };
            let mut way = link.line.propagation();
            let shared = match link.to {
                graph::End::Switch(_) => {
                    way += self.latency;
                    None
                }
                graph::End::Host(_) => {
                    let seat = seats.entry(link.from).or_default();
                    *seat += 1;
                    Some((link.from, (*seat - 1) / traffic.module))
                }
            };
            let known = shared.and_then(|module| modules.get(&module).copied());
            let pool = known.unwrap_or(pools.len());
            if known.is_none() {
                pools.push(Pool::default());
                if let Some(module) = shared {
                    modules.insert(module, pool);
                }
            }
            pools[pool].enlarge(limit, traffic.threshold);
            outputs.push(Output::new(link.line.unit_time(CELL_WIRE), way, pool));
        }
        (outputs, pools)
    }

    /// The way of a frame; none while there is none.
    pub fn route(&self, from: Port, to: Port) -> Option<Route> {
        let mut route = Route::default();
        let Some(graph) = &self.graph else {
            return Some(route);
        };
        for link in graph.route(from, to, 0) {
            route.push(link.0 as u16);
        }
        let last = route.len().checked_sub(1)?;
        (route.hops[last] == to.0).then_some(route)
    }

    /// The last part of the way to a station.
    pub fn last(&self, to: Port) -> Route {
        let mut route = Route::default();
        if self.graph.is_some() {
            route.push(to.0);
        }
        route
    }

    /// A trunk is up, or down: its outputs, if there is such a trunk.
    pub fn turn_trunk(&mut self, trunk: u16, up: bool) -> Option<[u16; 2]> {
        let graph = self.graph.as_mut()?;
        let turned = graph.set_trunk(trunk, up);
        turned.then(|| graph.of_trunk(trunk).map(|link| link.0 as u16))
    }

    /// Whether the line after an output is up.
    pub fn is_up(&self, output: u16) -> bool {
        let graph = self.graph.as_ref();
        graph.is_none_or(|graph| graph.is_up(LinkId(u32::from(output))))
    }
}
