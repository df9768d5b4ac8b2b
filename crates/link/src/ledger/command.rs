//! A command as a part of a record.
//!
//! Model:   verb 41, ports 32 and 34 (all ones: none), flag 42. A share: numerator 8, denominator 16; a span or a rate 24. A
//!          flow: share 8 and 16, size 24, burst 36, number 42, law 43, class 44. The interface that it is for: 46. All else is 0.
//! Checked: property `any_entry_round_trips`, property `any_record_is_read_or_refused`.

use super::record::Record;
use crate::{Class, Command, Fault, Flow, Law, Port, VcCommand};
use sonde_units::{BitRate, Bytes, Ratio, Span};

const NO_PORT: u16 = u16::MAX;

/// The verbs, in the order of their numbers.
#[derive(Clone, Copy)]
enum Verb {
    Establish,
    Release,
    Busy,
    Load,
    Link,
    Host,
    Pause,
    Cut,
    Loss,
    Corruption,
    Duplication,
    Reordering,
    Delay,
    Rate,
    Trunk,
    Restart,
    Manager,
    Narrow,
    Collision,
    Slow,
}

const VERBS: [Verb; 20] = [
    Verb::Establish,
    Verb::Release,
    Verb::Busy,
    Verb::Load,
    Verb::Link,
    Verb::Host,
    Verb::Pause,
    Verb::Cut,
    Verb::Loss,
    Verb::Corruption,
    Verb::Duplication,
    Verb::Reordering,
    Verb::Delay,
    Verb::Rate,
    Verb::Trunk,
    Verb::Restart,
    Verb::Manager,
    Verb::Narrow,
    Verb::Collision,
    Verb::Slow,
];

impl Record {
    pub(super) fn command(&mut self, command: &Command) {
        let verb = match *command {
            Command::Vc(VcCommand::Establish(a, b)) => self.pair(Verb::Establish, a, b),
            Command::Vc(VcCommand::Release(a, b)) => self.pair(Verb::Release, a, b),
            Command::Busy(port, span) => {
                self.u16(32, port.0);
                self.u64(24, span.as_picos());
                Verb::Busy
            }
            Command::Load(flow) => self.flow(&flow),
            Command::Fault(fault) => self.fault(&fault),
        };
        self.byte(41, verb as u8);
    }

    fn pair(&mut self, verb: Verb, a: Port, b: Port) -> Verb {
        self.u16(32, a.0);
        self.u16(34, b.0);
        verb
    }

    fn flow(&mut self, flow: &Flow) -> Verb {
        let (law, burst) = match flow.law {
            Law::Constant => (0, 0),
            Law::Poisson => (1, 0),
            Law::Geometric => (2, 0),
            Law::OnOff(frames) => (3, frames),
            Law::SelfSimilar(frames) => (4, frames),
            Law::Replay => (5, 0),
        };
        self.u16(32, flow.from.map_or(NO_PORT, |port| port.0));
        self.u16(34, flow.to.0);
        self.share(flow.rho);
        self.u64(24, flow.size.0);
        self.u32(36, burst);
        self.byte(42, flow.number);
        self.byte(43, law);
        self.byte(44, flow.class.0);
        Verb::Load
    }

    fn share(&mut self, share: Ratio) {
        let (numerator, denominator) = share.parts();
        self.u64(8, numerator);
        self.u64(16, denominator);
    }

    fn state(&mut self, verb: Verb, port: u16, on: bool) -> Verb {
        self.u16(32, port);
        self.byte(42, u8::from(on));
        verb
    }

    fn chance(&mut self, verb: Verb, port: Option<Port>, share: Ratio) -> Verb {
        self.u16(32, port.map_or(NO_PORT, |port| port.0));
        self.share(share);
        verb
    }

    fn fault(&mut self, fault: &Fault) -> Verb {
        match *fault {
            Fault::Link { port, up } => {
                self.state(Verb::Link, port.map_or(NO_PORT, |port| port.0), up)
            }
            Fault::Host { port, up } => self.state(Verb::Host, port.0, up),
            Fault::Pause { port, on } => self.state(Verb::Pause, port.0, on),
            Fault::Trunk { trunk, up } => self.state(Verb::Trunk, trunk, up),
            Fault::Manager { up } => self.state(Verb::Manager, 0, up),
            Fault::Cut { a, b, on } => {
                self.byte(42, u8::from(on));
                self.pair(Verb::Cut, a, b)
            }
            Fault::Loss { port, share } => self.chance(Verb::Loss, port, share),
            Fault::Corruption { port, share } => self.chance(Verb::Corruption, port, share),
            Fault::Duplication { port, share } => self.chance(Verb::Duplication, port, share),
            Fault::Reordering { port, share, by } => {
                self.u64(24, by.as_picos());
                self.chance(Verb::Reordering, port, share)
            }
            Fault::Delay { port, by } => {
                self.u16(32, port.map_or(NO_PORT, |port| port.0));
                self.u64(24, by.as_picos());
                Verb::Delay
            }
            Fault::Narrow { port, longest } => {
                self.u64(24, longest.map_or(0, |longest| longest.0));
                self.state(
                    Verb::Narrow,
                    port.map_or(NO_PORT, |port| port.0),
                    longest.is_some(),
                )
            }
            Fault::Collision { port, share } => self.chance(Verb::Collision, port, share),
            Fault::Slow { from, to, rate } => {
                self.u64(24, rate.map_or(0, BitRate::bps));
                self.u16(32, from.map_or(NO_PORT, |port| port.0));
                self.u16(34, to.0);
                Verb::Slow
            }
            Fault::Rate { rate } => {
                self.u64(24, rate.map_or(0, BitRate::bps));
                Verb::Rate
            }
            Fault::Restart { down } => {
                self.u64(24, down.as_picos());
                Verb::Restart
            }
        }
    }

    fn read_share(&self) -> Result<Ratio, &'static str> {
        match self.read_u64(16) {
            0 => Err("has a share of nothing"),
            denominator => Ok(Ratio::new(self.read_u64(8), denominator)),
        }
    }

    fn read_span(&self) -> Result<Span, &'static str> {
        self.time(24).map(|at| Span::picos(at.as_picos()))
    }

    fn read_flow(&self) -> Result<Flow, &'static str> {
        let burst = self.read_u32(36);
        let law = match self.0[43] {
            0 => Law::Constant,
            1 => Law::Poisson,
            2 => Law::Geometric,
            3 => Law::OnOff(burst),
            4 => Law::SelfSimilar(burst),
            5 => Law::Replay,
            _ => return Err("has an unknown law of load"),
        };
        Ok(Flow {
            number: self.0[42],
            from: self.port_or_none(),
            to: Port(self.read_u16(34)),
            rho: self.read_share()?,
            law,
            size: Bytes(self.read_u64(24)),
            class: Class(self.0[44]),
        })
    }

    fn port_or_none(&self) -> Option<Port> {
        Some(Port(self.read_u16(32))).filter(|port| port.0 != NO_PORT)
    }

    pub(super) fn read_command(&self) -> Result<Command, &'static str> {
        let verb = VERBS.get(usize::from(self.0[41]));
        let (a, b) = (Port(self.read_u16(32)), Port(self.read_u16(34)));
        let (port, on) = (self.port_or_none(), self.0[42] == 1);
        let fault = match *verb.ok_or("has an unknown command")? {
            Verb::Establish => return Ok(Command::Vc(VcCommand::Establish(a, b))),
            Verb::Release => return Ok(Command::Vc(VcCommand::Release(a, b))),
            Verb::Busy => return Ok(Command::Busy(a, self.read_span()?)),
            Verb::Load => return self.read_flow().map(Command::Load),
            Verb::Link => Fault::Link { port, up: on },
            Verb::Host => Fault::Host { port: a, up: on },
            Verb::Pause => Fault::Pause { port: a, on },
            Verb::Cut => Fault::Cut { a, b, on },
            Verb::Trunk => Fault::Trunk { trunk: a.0, up: on },
            Verb::Manager => Fault::Manager { up: on },
            Verb::Loss => Fault::Loss {
                port,
                share: self.read_share()?,
            },
            Verb::Corruption => Fault::Corruption {
                port,
                share: self.read_share()?,
            },
            Verb::Duplication => Fault::Duplication {
                port,
                share: self.read_share()?,
            },
            Verb::Reordering => Fault::Reordering {
                port,
                share: self.read_share()?,
                by: self.read_span()?,
            },
            Verb::Delay => Fault::Delay {
                port,
                by: self.read_span()?,
            },
            Verb::Narrow => Fault::Narrow {
                port,
                longest: on.then(|| Bytes(self.read_u64(24))),
            },
            Verb::Collision => Fault::Collision {
                port,
                share: self.read_share()?,
            },
            Verb::Slow => Fault::Slow {
                from: port,
                to: b,
                rate: BitRate::new(self.read_u64(24)),
            },
            Verb::Rate => Fault::Rate {
                rate: BitRate::new(self.read_u64(24)),
            },
            Verb::Restart => Fault::Restart {
                down: self.read_span()?,
            },
        };
        Ok(Command::Fault(fault))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares() -> impl Strategy<Value = Ratio> {
        (0u64..1_000).prop_map(|n| Ratio::new(n, 1_000))
    }

    /// Commands that a network of four ports can be given.
    pub fn commands() -> impl Strategy<Value = Command> {
        let port = || (0u16..4).prop_map(Port);
        let maybe = || proptest::option::of(port());
        let span = || any::<u32>().prop_map(|n| Span::nanos(u64::from(n)));
        let pair = || (0u16..3).prop_map(|a| (Port(a), Port(a + 1)));
        let law = (0u8..6, 1u32..99).prop_map(|(law, burst)| match law {
            0 => Law::Constant,
            1 => Law::Poisson,
            2 => Law::Geometric,
            3 => Law::OnOff(burst),
            4 => Law::SelfSimilar(burst),
            _ => Law::Replay,
        });
        let load = (
            0u8..64,
            maybe(),
            port(),
            shares(),
            law,
            0u64..9_000,
            any::<u8>(),
        )
            .prop_map(|(number, from, to, rho, law, size, class)| {
                Command::Load(Flow {
                    number,
                    from,
                    to,
                    rho,
                    law,
                    size: Bytes(size),
                    class: Class(class),
                })
            });
        let fault = prop_oneof![
            (maybe(), any::<bool>()).prop_map(|(port, up)| Fault::Link { port, up }),
            (port(), any::<bool>()).prop_map(|(port, up)| Fault::Host { port, up }),
            (port(), any::<bool>()).prop_map(|(port, on)| Fault::Pause { port, on }),
            (pair(), any::<bool>()).prop_map(|((a, b), on)| Fault::Cut { a, b, on }),
            (maybe(), shares()).prop_map(|(port, share)| Fault::Loss { port, share }),
            (maybe(), shares()).prop_map(|(port, share)| Fault::Corruption { port, share }),
            (maybe(), shares()).prop_map(|(port, share)| Fault::Duplication { port, share }),
            (maybe(), shares(), span()).prop_map(|(port, share, by)| Fault::Reordering {
                port,
                share,
                by
            }),
            (maybe(), span()).prop_map(|(port, by)| Fault::Delay { port, by }),
            (maybe(), proptest::option::of(any::<u16>())).prop_map(|(port, longest)| {
                Fault::Narrow {
                    port,
                    longest: longest.map(|bytes| Bytes(bytes.into())),
                }
            }),
            (maybe(), shares()).prop_map(|(port, share)| Fault::Collision { port, share }),
            (pair(), any::<bool>(), any::<u32>()).prop_map(|((a, b), alone, n)| Fault::Slow {
                from: (!alone).then_some(a),
                to: b,
                rate: BitRate::new(u64::from(n)),
            }),
            any::<u32>().prop_map(|n| Fault::Rate {
                rate: BitRate::new(u64::from(n))
            }),
            (any::<u16>(), any::<bool>()).prop_map(|(trunk, up)| Fault::Trunk { trunk, up }),
            span().prop_map(|down| Fault::Restart { down }),
            any::<bool>().prop_map(|up| Fault::Manager { up }),
        ];
        prop_oneof![
            pair().prop_map(|(a, b)| Command::Vc(VcCommand::Establish(a, b))),
            pair().prop_map(|(a, b)| Command::Vc(VcCommand::Release(a, b))),
            (port(), span()).prop_map(|(port, span)| Command::Busy(port, span)),
            load,
            fault.prop_map(Command::Fault),
        ]
    }
}
