//! The lines of a fabric, the buffers at their ends, and which line a packet takes next.
//!
//! Model:   host -> (adapter) -> line -> switch -> line -> (adapter) -> host. The switch is one, or chips in two stages: those of
//!          the first hold the stations, each is joined to each of the second, and two stations at different chips meet
//!          at the second-stage chip (from + to) modulo their number, always the same. Beside each line towards a station
//!          stands an input for what comes from elsewhere: answers of the fabric's server, ghost traffic.
//! Source:  IBM Systems Journal 34(2) 1995 (SP-2: two stages of 8 x 8 chips, routes by source). Deviations: a board of the SP-2 has four middle
//!          chips for 16 hosts; more hosts widen these in place of a third stage; one of the four routes is used.
//! Checked: `every_way_ends_at_its_host`.

use crate::{Credit, NetworkSpec, Topology};

/// Where a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// The host of a station.
    Source(u16),
    /// Its adapter, towards the network.
    Up(u16),
    /// A chip of the first stage, or the switch.
    Chip(u16),
    /// A chip of the second stage.
    Middle(u16),
    /// A station's adapter, towards the host.
    Down(u16),
    /// The end of the line to a station, for what comes from elsewhere.
    Elsewhere(u16),
}

/// Which times a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Line,
    Adapter,
}

/// Where a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// In this input.
    Input(u32),
    /// In a host, which takes what comes.
    Host,
}

/// A line in one direction.
pub(super) struct Wire {
    pub pace: Pace,
    pub end: End,
    /// Packet buffers at its end.
    pub buffers: u32,
}

/// All lines and inputs. The inputs of sources come first, those from elsewhere next.
pub(super) struct Wiring {
    pub ports: u16,
    /// Stations a chip, and chips of the second stage.
    chip: u16,
    middles: u16,
    pub has_switch: bool,
    pub wires: Vec<Wire>,
    /// Where each input is, and the line that ends there.
    pub inputs: Vec<(Node, Option<u32>)>,
    /// The first line of each source; the line from its adapter into the network; the line to its side; the last line.
    first: Vec<u32>,
    up: Vec<u32>,
    down: Vec<u32>,
    last: Vec<u32>,
    /// From each chip to each middle, and back.
    rise: Vec<u32>,
    fall: Vec<u32>,
}

impl Wiring {
    pub fn new(spec: &NetworkSpec, credit: &Credit, ports: u16, buffers: u32) -> Self {
        let has_switch = spec.topology != Topology::Line;
        let chip = credit.chip.unwrap_or(ports).max(1);
        let mut wiring = Self {
            ports,
            chip,
            middles: credit.middle.unwrap_or(0),
            has_switch,
            wires: Vec::new(),
            inputs: Vec::new(),
            first: Vec::new(),
            up: Vec::new(),
            down: Vec::new(),
            last: Vec::new(),
            rise: Vec::new(),
            fall: Vec::new(),
        };
        let sources = (0..ports).map(Node::Source);
        let elsewhere = (0..ports).map(Node::Elsewhere);
        wiring.inputs = sources.chain(elsewhere).map(|node| (node, None)).collect();
        for port in 0..ports {
            wiring.join(port, credit, buffers);
        }
        wiring.join_stages(buffers);
        wiring
    }

    fn wire(&mut self, pace: Pace, end: Option<Node>, buffers: u32) -> u32 {
        let wire = self.wires.len() as u32;
        let end = end.map_or(End::Host, |node| {
            self.inputs.push((node, Some(wire)));
            End::Input(self.inputs.len() as u32 - 1)
        });
        self.wires.push(Wire { pace, end, buffers });
        wire
    }

    /// The lines of one station: into the network, and on a line into the other station.
    fn join(&mut self, port: u16, credit: &Credit, buffers: u32) {
        let has_adapter = credit.adapter_rate.is_some();
        let down = |port| has_adapter.then_some(Node::Down(port));
        let into =
            has_adapter.then(|| self.wire(Pace::Adapter, Some(Node::Up(port)), credit.credits));
        let up = if self.has_switch {
            self.wire(Pace::Line, Some(Node::Chip(port / self.chip)), buffers)
        } else {
            self.wire(Pace::Line, down(1 - port), credit.credits)
        };
        self.first.push(into.unwrap_or(up));
        self.up.push(up);
        if self.has_switch {
            let wire = self.wire(Pace::Line, down(port), credit.credits);
            self.down.push(wire);
        } else {
            // Two stations: the line to one is that from the other.
            self.down.insert(0, up);
        }
        let last = if has_adapter {
            self.wire(Pace::Adapter, None, credit.credits)
        } else {
            0
        };
        self.last.push(last);
    }

    fn join_stages(&mut self, buffers: u32) {
        for _chip in 0..self.chips() {
            for middle in 0..self.middles {
                let wire = self.wire(Pace::Line, Some(Node::Middle(middle)), buffers);
                self.rise.push(wire);
            }
        }
        for _middle in 0..self.middles {
            for chip in 0..self.chips() {
                let wire = self.wire(Pace::Line, Some(Node::Chip(chip)), buffers);
                self.fall.push(wire);
            }
        }
    }

    /// Chips of the first stage.
    fn chips(&self) -> u16 {
        self.ports.div_ceil(self.chip)
    }

    /// Chips of both stages.
    pub fn all_chips(&self) -> usize {
        usize::from(self.chips()) + usize::from(self.middles)
    }

    /// The number of a chip among all; none where there is no chip.
    pub fn chip_number(&self, node: Node) -> Option<usize> {
        match node {
            Node::Chip(chip) => Some(usize::from(chip)),
            Node::Middle(middle) => Some(usize::from(self.chips() + middle)),
            _ => None,
        }
    }

    /// The chip before each line.
    pub fn chips_before(&self) -> Vec<Option<usize>> {
        let mut before = vec![None; self.wires.len()];
        for (port, wire) in (0..self.ports).zip(&self.down) {
            let chip = self.has_switch.then(|| usize::from(port / self.chip));
            before[*wire as usize] = chip;
        }
        let (chips, middles) = (usize::from(self.chips()), usize::from(self.middles));
        for (index, wire) in self.rise.iter().enumerate() {
            before[*wire as usize] = Some(index / middles);
        }
        for (index, wire) in self.fall.iter().enumerate() {
            before[*wire as usize] = Some(chips + index / chips);
        }
        before
    }

    /// Whether datagrams begin at `input`.
    pub fn is_source(&self, input: u32) -> bool {
        input < 2 * u32::from(self.ports)
    }

    /// The line that a packet for `to` takes at `node`.
    pub fn next(&self, node: Node, from: u16, to: u16) -> u32 {
        let place = usize::from;
        match node {
            Node::Source(port) => self.first[place(port)],
            Node::Up(port) => self.up[place(port)],
            Node::Elsewhere(port) => self.down[place(port)],
            Node::Down(port) => self.last[place(port)],
            Node::Chip(chip) if chip == to / self.chip => self.down[place(to)],
            Node::Chip(chip) => {
                let middle = (u32::from(from) + u32::from(to)) % u32::from(self.middles);
                self.rise[place(chip) * place(self.middles) + middle as usize]
            }
            Node::Middle(middle) => {
                self.fall[place(middle) * place(self.chips()) + place(to / self.chip)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named;

    /// From each host to each other: the last line ends in a host, and it is that host's.
    #[test]
    fn every_way_ends_at_its_host() {
        for (name, ports, lines) in [("fc-266", 9, 2), ("sp2", 16, 6), ("sp2", 7, 6)] {
            let spec = named(name).unwrap();
            let credit = spec.credit.as_ref().unwrap();
            let wiring = Wiring::new(&spec, credit, ports, 2);
            let mut last = vec![Vec::new(); usize::from(ports)];
            for (from, to) in (0..ports).flat_map(|a| (0..ports).map(move |b| (a, b))) {
                let (mut node, mut count) = (Node::Source(from), 0);
                let end = loop {
                    let line = wiring.next(node, from, to);
                    count += 1;
                    match wiring.wires[line as usize].end {
                        End::Host => break line,
                        End::Input(input) => node = wiring.inputs[input as usize].0,
                    }
                };
                assert!(count <= lines, "{name}: {from} to {to} takes {count} lines");
                last[usize::from(to)].push(end);
            }
            last.iter_mut().for_each(Vec::dedup);
            let mut ends: Vec<_> = last.concat();
            ends.dedup();
            assert_eq!(ends.len(), usize::from(ports), "{name}");
        }
    }
}
