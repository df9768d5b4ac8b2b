//! Which lines the ways of hosts share: what is loaded together where several pairs talk at once.
//!
//! Model:   in a network of switches the line of each host in either direction and each trunk in either direction; on a
//!          segment or a ring that all stations share, that alone; elsewhere the lines of the hosts. Where frames are spread
//!          over equal ways by flow, the way of flow 0 stands for all.
//! Units:   hosts, switches and trunks count from 0; the time is that of a frame of the MTU.
//! Checked: `a_trunk_is_shared_by_the_pairs_across`, `a_segment_is_shared_by_all`.

use crate::graph::{End, Graph};
use crate::{NetworkSpec, Port, SpecError, Topology};
use sonde_units::{Bytes, Span};

/// A line in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOf {
    /// From a host into the network.
    From(Port),
    /// Out of the network to a host.
    To(Port),
    /// Between two switches.
    Trunk {
        /// The switch that sends.
        from: u16,
        /// The switch that receives.
        to: u16,
    },
    /// A segment or a ring of all stations.
    All,
}

/// The lines of a network, and by which of them hosts reach each other.
#[derive(Clone, Debug)]
pub struct SharedLines {
    /// Each line, and how long a frame of the MTU holds it; zero where it has no rate.
    pub lines: Vec<(LineOf, Span)>,
    /// The switch or site of each host; 0 where there is one place.
    pub site_of: Vec<u16>,
    /// The names of the sites, where the network has named ones.
    pub sites: Vec<String>,
    ways: Vec<Vec<u32>>,
    hosts: usize,
}

impl SharedLines {
    /// The lines on the way from one host to another, by place in `lines`; none from a host to itself.
    pub fn way(&self, from: Port, to: Port) -> &[u32] {
        &self.ways[usize::from(from.0) * self.hosts + usize::from(to.0)]
    }
}

/// Whether all stations share one line: a segment, or a ring with a token.
pub fn is_one_line(spec: &NetworkSpec) -> bool {
    spec.bus.is_some() || spec.token.is_some()
}

/// The shared lines of a network of so many hosts.
///
/// # Errors
/// [`SpecError`] where so many hosts have no place.
pub fn shared_lines(spec: &NetworkSpec, hosts: u16) -> Result<SharedLines, SpecError> {
    let frame = Bytes(spec.mtu);
    let count = usize::from(hosts);
    let pairs = || (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
    let mut shared = SharedLines {
        lines: Vec::new(),
        site_of: vec![0; count],
        sites: Vec::new(),
        ways: Vec::with_capacity(count * count),
        hosts: count,
    };
    if is_one_line(spec) {
        shared.lines = vec![(LineOf::All, spec.frame_time(frame))];
        shared.ways = pairs()
            .map(|(from, to)| if from == to { Vec::new() } else { vec![0] })
            .collect();
        return Ok(shared);
    }
    let of_lines = spec.switch.is_some() && spec.crossbar.is_none();
    if !of_lines {
        let time = spec.frame_time(frame);
        shared.lines = (0..hosts)
            .map(|port| (LineOf::From(Port(port)), time))
            .collect();
        shared
            .lines
            .extend((0..hosts).map(|port| (LineOf::To(Port(port)), time)));
        let way = |(from, to)| -> Vec<u32> {
            if from == to {
                Vec::new()
            } else {
                vec![u32::from(from), u32::from(hosts) + u32::from(to)]
            }
        };
        shared.ways = pairs().map(way).collect();
        return Ok(shared);
    }
    let graph = Graph::new(spec, hosts)?;
    shared.lines = (0..hosts)
        .map(|port| (LineOf::From(Port(port)), graph.line(Port(port)).time(frame)))
        .collect();
    shared.lines.extend(graph.links().iter().map(|link| {
        let of = match link.to {
            End::Host(port) => LineOf::To(port),
            End::Switch(to) => LineOf::Trunk {
                from: link.from,
                to,
            },
        };
        (of, link.line.time(frame))
    }));
    shared.site_of = (0..hosts).map(|port| graph.switch_of(Port(port))).collect();
    if spec.topology == Topology::Sites {
        shared.sites = spec.site.iter().map(|site| site.name.clone()).collect();
    }
    for (from, to) in pairs() {
        let mut way = Vec::new();
        if from != to {
            way.push(u32::from(from));
            way.extend(
                graph
                    .route(Port(from), Port(to), 0)
                    .map(|link| u32::from(hosts) + link.0),
            );
        }
        shared.ways.push(way);
    }
    Ok(shared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{named, parse};

    #[test]
    fn a_trunk_is_shared_by_the_pairs_across() {
        let text = "name = \"x\"\nsummary = \"x\"\ntechnology = \"wan\"\ntopology = \"sites\"\nmtu = 1500\n\
            [line]\nrate = \"100Mbit\"\nframing = \"ethernet\"\n\
            [switch]\nforwarding = \"store-and-forward\"\nlatency = \"10us\"\nbuffer = \"512KiB\"\n\
            [[site]]\nname = \"a\"\nhosts = 2\n[[site]]\nname = \"b\"\nhosts = 2\n\
            [[trunk]]\nbetween = [0, 1]\nrate = \"10Mbit\"\n";
        let shared = shared_lines(&parse("x", text).unwrap(), 4).unwrap();
        assert_eq!(
            (&shared.site_of[..], shared.sites.join(" ")),
            (&[0, 0, 1, 1][..], "a b".into())
        );
        let way = |from, to| -> Vec<LineOf> {
            let way = shared.way(Port(from), Port(to)).iter();
            way.map(|line| shared.lines[*line as usize].0).collect()
        };
        let trunk = LineOf::Trunk { from: 0, to: 1 };
        assert_eq!(
            way(0, 3),
            [LineOf::From(Port(0)), trunk, LineOf::To(Port(3))]
        );
        assert_eq!(way(1, 2)[1], trunk);
        assert_eq!(way(2, 1)[1], LineOf::Trunk { from: 1, to: 0 });
        assert_eq!(way(0, 1).len(), 2);
        assert!(way(2, 2).is_empty());
        let slow = shared.lines.iter().find(|(of, _)| *of == trunk).unwrap();
        assert_eq!(slow.1, Span::nanos(1_230_400));
        assert!(shared_lines(&parse("x", text).unwrap(), 5).is_err());
    }

    #[test]
    fn a_segment_is_shared_by_all() {
        for (name, lines, way) in [
            ("ethernet-10", 1, 1),
            ("fddi", 1, 1),
            ("atm-oc3c", 8, 2),
            ("sci-1g8", 8, 2),
            ("hippi-800", 8, 2),
            ("wire", 8, 2),
        ] {
            let shared = shared_lines(&named(name).unwrap(), 4).unwrap();
            assert_eq!(
                (shared.lines.len(), shared.way(Port(1), Port(3)).len()),
                (lines, way),
                "{name}"
            );
        }
    }
}
