//! One launch between two agents: what is asked, what it gives, and how a cold one is made of pieces.
//!
//! Model:   a start-up is two conversations a size: the whole, undivided, then in steps, each after everything was made
//!          cold, since a message of one size warms the way for the next. Before the whole both hosts forget their
//!          neighbours, before the steps only the measuring one, since it alone has a step for it. All other probes are one
//!          conversation.
//! Checked: `pieces_of_a_start_up_are_joined`; `tests/`.

use std::net::IpAddr;
use std::time::Duration;

use sonde_measure::spec::IDLE_NS;
use sonde_measure::{Procedure, Spec, Startup};
use sonde_probe::{Conversation, Outcome};

use crate::agent::Agent;
use crate::error::FleetError;
use crate::load::Load;

/// A launch to be made between two agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What both sides agree on. Whether a start-up is whole or in steps is set by the fleet, which makes both.
    pub spec: Spec,
    /// Where.
    pub between: Between,
}

/// Where a launch is, and what is there meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Between {
    /// The measuring or sending host.
    pub src: usize,
    /// The answering or receiving host.
    pub dst: usize,
    /// What the model of an emulated network takes for the message: before a circuit is released, so long is waited.
    pub one_way_ns: Option<u64>,
    /// Background traffic meanwhile.
    pub load: Option<Load>,
}

/// What a launch gave.
#[derive(Debug, Clone)]
pub struct Launched {
    /// The measurements.
    pub outcome: Outcome,
    /// What an emulated network did meanwhile; none for other networks.
    pub report: Option<sonde_lab::Report>,
    /// How long it took, with everything that had to be made ready.
    pub took: Duration,
}

/// Two agents and how they are to be used.
pub(crate) struct Pair<'a> {
    pub client: &'a mut Agent,
    pub server: &'a mut Agent,
    pub address: IpAddr,
    /// The measuring side's own, where it is to send from that one.
    pub source: Option<IpAddr>,
    pub flush_client: Option<String>,
    pub flush_server: Option<String>,
    /// Both have one clock.
    pub one_clock: bool,
}

/// Why there is no outcome.
pub(crate) enum Trouble {
    /// The conversation failed.
    Conversation(sonde_probe::Error),
    /// The network could not be made ready.
    Machines(FleetError),
}

impl Pair<'_> {
    /// Makes the launch; `cool` makes the network cold.
    pub(crate) fn launch(
        &mut self,
        spec: &Spec,
        circuits: bool,
        mut cool: impl FnMut() -> Result<(), FleetError>,
    ) -> Result<Outcome, Trouble> {
        let Procedure::Startup(_) = spec.procedure else {
            return self.converse(spec.clone());
        };
        let idle_ns = IDLE_NS;
        let mut joined: Option<Outcome> = None;
        for size in &spec.sizes_bytes {
            for startup in [Startup::Whole {}, Startup::Steps { idle_ns, circuits }] {
                cool().map_err(Trouble::Machines)?;
                let piece = self.converse(Spec {
                    procedure: Procedure::Startup(startup),
                    ..spec.for_size(*size)
                })?;
                match &mut joined {
                    Some(joined) => join(joined, piece),
                    none => *none = Some(piece),
                }
            }
        }
        // A specification without a size is refused by the conversation itself.
        joined.map_or_else(|| self.converse(spec.clone()), Ok)
    }

    fn converse(&mut self, spec: Spec) -> Result<Outcome, Trouble> {
        let procedure = spec.procedure;
        let mut conversation =
            Conversation::new(spec, self.address).map_err(Trouble::Conversation)?;
        conversation.client = self.source;
        conversation.moments = self.one_clock;
        if let Procedure::Startup(startup) = procedure {
            conversation.flush_client.clone_from(&self.flush_client);
            // Where hosts ask a server for addresses (ATM), the answering one does not learn its peer from being asked, and
            // would resolve it within the step `vc`, on atm-oc3c 1.1 ms of it. It knows it from the whole just before.
            if startup == (Startup::Whole {}) {
                conversation.flush_server.clone_from(&self.flush_server);
            }
        }
        conversation
            .run(self.client.link(), self.server.link())
            .map_err(Trouble::Conversation)
    }
}

/// Adds a piece to what there is: measurements of a size to those of the same size.
pub(crate) fn join(joined: &mut Outcome, piece: Outcome) {
    for size in piece.sizes {
        match joined
            .sizes
            .iter_mut()
            .find(|known| known.size_bytes == size.size_bytes)
        {
            Some(known) => known.measurements.extend(size.measurements),
            None => joined.sizes.push(size),
        }
    }
    joined.evidence.merge(piece.evidence);
    joined.moved.add(&piece.moved);
    for (sum, one) in joined.interference.iter_mut().zip(&piece.interference) {
        sum.add(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::{EndedBy, Evidence, Interference, Measurement, Phase, Quantity, Step};
    use sonde_probe::SizeOutcome;
    use sonde_stats::Series;

    fn piece(size_bytes: u64, step: Option<Step>, retransmits: Option<u64>) -> Outcome {
        let mut series = Series::new();
        series.record(size_bytes);
        let measurement = Measurement {
            touched: None,
            quantity: Quantity::StartupNs,
            phase: Phase::Cold,
            step,
            series,
            reason: None,
        };
        let interference = |host: &str| Interference {
            host: host.into(),
            span_ns: 10,
            cpus: 2,
            voluntary_switches: 3,
            steal_ns: Some(1),
            retransmits,
            strangers: 1,
            ..Default::default()
        };
        let mut evidence = Evidence::default();
        evidence.size(size_bytes).ended_by = Some(EndedBy::Samples);
        Outcome {
            sizes: vec![SizeOutcome {
                seen: None,
                size_bytes,
                measurements: vec![measurement],
                slots: Default::default(),
            }],
            moved: sonde_probe::Moved {
                trips: 2,
                ..Default::default()
            },
            evidence,
            interference: vec![interference("src"), interference("dst")],
        }
    }

    #[test]
    fn pieces_of_a_start_up_are_joined() {
        let mut joined = piece(1, None, Some(1));
        join(&mut joined, piece(1, Some(Step::Connect), Some(2)));
        join(&mut joined, piece(64, None, None));
        let steps = |at: usize| -> Vec<_> {
            joined.sizes[at]
                .measurements
                .iter()
                .map(|one| one.step)
                .collect()
        };
        assert_eq!(joined.sizes.len(), 2);
        assert_eq!(steps(0), [None, Some(Step::Connect)]);
        assert_eq!((joined.sizes[1].size_bytes, steps(1)), (64, vec![None]));
        assert_eq!(joined.evidence.sizes.len(), 2);
        assert_eq!(joined.moved.trips, 6);
        for (interference, host) in joined.interference.iter().zip(["src", "dst"]) {
            assert_eq!(interference.host, host);
            assert_eq!((interference.span_ns, interference.cpus), (30, 2));
            assert_eq!(
                (interference.steal_ns, interference.voluntary_switches),
                (Some(3), 9)
            );
            assert_eq!(interference.strangers, 3);
            // What one piece could not tell is not told of the sum.
            assert_eq!(interference.retransmits, None);
        }
    }
}
