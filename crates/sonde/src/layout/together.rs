//! What is measured at once, laid out: a block for each set and network, with a cell for each of its measurements.
//!
//! Model:   each probe of a set is lowered as by itself, and lasts as long as the set. Its cell says by its load what the others are, in
//!          their own words, and by the knob `during` that it is of such a set, so that its rows are of one population: a set of one
//!          is what others are held against. Where each probe is on a network of its own, the set is over all of these.
//! Units:   nanoseconds; estimates are guesses.
//! Checked: `sets_become_blocks`, `sets_cross_networks_of_the_same_hosts`.

use super::{Block, TestNetwork, cells, is_on, of_probe};
use crate::failure::Failure;
use crate::plan::{LoadPlan, Plan, ProbePlan, Work};
use sonde_measure::spec::SAMPLES_MAX;
use sonde_measure::workload::{self, AND, DURING};
use sonde_measure::{Factors, Procedure, Quota, Sampling};
use sonde_probe::library::During;
use sonde_units::Span;

/// What making ready and telling what was measured takes, about.
const BESIDE_NS: u64 = 3_000_000_000;

/// The blocks of all sets of a plan, in its order.
pub(super) fn blocks(plan: &Plan, nets: &[TestNetwork]) -> Result<Vec<Block>, Failure> {
    let mut all = Vec::new();
    for set in plan.sets() {
        let probes = set.together.iter().filter_map(|name| plan.named(name));
        let places = probes.map(|probe| {
            let on = (0..nets.len()).filter(|net| is_on(plan, probe, nets, *net));
            (probe, on.collect::<Vec<usize>>())
        });
        let places: Vec<(&ProbePlan, Vec<usize>)> = places.collect();
        let own = places.iter().map(|(_, on)| match on[..] {
            [one] => Some(one),
            _ => None,
        });
        let own: Option<Vec<usize>> = own.collect();
        let crossing = own.filter(|own| own.iter().any(|net| Some(net) != own.first()));
        if let Some(own) = crossing {
            if !(plan.testbed.joined || plan.testbed.kind.is_real()) {
                return Err(Failure::usage(format!(
                    "{} are on networks that do not join the same hosts: write joined = true in [testbed]",
                    set.together.join(" and ")
                )));
            }
            let parts = places.iter().map(|(probe, _)| *probe).zip(own);
            all.push(block(plan, set, parts.collect(), nets)?);
            continue;
        }
        for net in 0..nets.len() {
            if places.iter().all(|(_, on)| on.contains(&net)) {
                let parts = places.iter().map(|(probe, _)| (*probe, net));
                all.push(block(plan, set, parts.collect(), nets)?);
            }
        }
    }
    Ok(all)
}

/// The block of a set, whose probes are each on one network.
fn block(
    plan: &Plan,
    set: &LoadPlan,
    probes: Vec<(&ProbePlan, usize)>,
    nets: &[TestNetwork],
) -> Result<Block, Failure> {
    let load = set.load()?;
    let mut parts = Vec::new();
    for (probe, net) in probes {
        let mut made = of_probe(plan, probe, (nets, net), std::slice::from_ref(&load))?;
        let one = made
            .pop()
            .filter(|one| made.is_empty() && one.cells.len() == 1);
        let mut part = one.ok_or_else(|| {
            Failure::usage(format!(
                "`{}` is not one measurement on {}: what is measured at once has one size, which its path can carry",
                probe.name.as_deref().unwrap_or_default(),
                nets[net].name
            ))
        })?;
        if !part.host.is_empty() {
            return Err(Failure::usage(format!(
                "`{}` sets something of its hosts, which all that is measured at once would have: leave it out",
                probe.name.as_deref().unwrap_or_default()
            )));
        }
        let skipped = part.skipped().map(str::to_owned);
        lasts(&mut part, set.during);
        part.cells = cells(&nets[net], &part, &[])?;
        if let Some(why) = skipped {
            part.skip(&why);
        }
        parts.push(part);
    }
    tell_each_other(&mut parts)?;
    let (Some(first), skipped) = (parts.first(), parts.iter().find_map(Block::skipped)) else {
        unreachable!("a set has a name at least");
    };
    let mut block = Block {
        cells: parts.iter().flat_map(|part| part.cells.clone()).collect(),
        knobs: Default::default(),
        estimate_ns: set.during.as_nanos() + BESIDE_NS,
        lost: None,
        ..first.clone()
    };
    let skipped = skipped.map(str::to_owned);
    block.work = Work::Together(parts);
    if let Some(why) = skipped {
        block.skip(&why);
    }
    Ok(block)
}

/// Has a measurement last so long, whatever it knows by then.
fn lasts(part: &mut Block, during: Span) {
    part.knobs.insert(DURING.into(), during.to_string());
    let budget_ns = during.as_nanos();
    let lasting = |sampling: Sampling| Sampling {
        samples_max: SAMPLES_MAX,
        precision_per_mille: None,
        budget_ns,
        ..sampling
    };
    let quota = |quota: Quota| Quota {
        samples_max: SAMPLES_MAX,
        budget_ns,
        ..quota
    };
    match &mut part.work {
        Work::Channel(spec) => match &mut spec.procedure {
            Procedure::Latency(sampling) | Procedure::Message(sampling) => {
                *sampling = lasting(*sampling);
            }
            Procedure::Stream { window_ns } => *window_ns = budget_ns,
            Procedure::Anatomy(of) | Procedure::Rate { quota: of, .. } => *of = quota(*of),
            Procedure::Files(files) => files.quota = quota(files.quota),
            Procedure::Startup(_) => {}
        },
        Work::Ranks(ranks) => {
            ranks.job.during = Some(During {
                begin_ns: None,
                window_ns: budget_ns,
            });
        }
        Work::Rounds(_) | Work::Together(_) => {}
    }
}

/// Each cell says what the others are, and the load that all have.
fn tell_each_other(parts: &mut [Block]) -> Result<(), Failure> {
    let all: Vec<Factors> = parts
        .iter()
        .flat_map(|part| &part.cells)
        .map(|cell| cell.factors.clone())
        .collect();
    for (at, part) in parts.iter_mut().enumerate() {
        for cell in &mut part.cells {
            let others = all.iter().enumerate().filter(|(other, _)| *other != at);
            let others = others.map(|(_, other)| {
                let name = workload::name(other);
                match other.network == cell.factors.network {
                    true => name,
                    false => format!("{name}@{}", other.network),
                }
            });
            let mut beside: Vec<String> = others.collect();
            beside.sort();
            beside.extend(cell.factors.load.take());
            cell.factors.load = (!beside.is_empty()).then(|| beside.join(AND));
            cell.id = cell.factors.cell().map_err(Failure::cannot)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{self as layout, tests::net};
    use super::*;
    use std::collections::BTreeSet;

    const TWO: &str = "[[probe]]\nkind = \"throughput\"\nname = \"stream\"\n[[probe]]\nkind = \"files\"\nname = \"nfs\"\n\
                       size = [\"256KiB\"]\nwith.op = [\"write\"]\n[[load]]\ntogether = [\"stream\"]\n[[load]]\n\
                       together = [\"stream\", \"nfs\"]\n[[load]]\ntogether = [\"nfs\"]\nlevel = \"0.6\"\nduring = \"2s\"\n";

    #[test]
    fn sets_become_blocks() {
        let plan = Plan::parse(&format!("[testbed]\nkind = \"lab\"\n{TWO}")).unwrap();
        let nets = [net("ethernet-10"), net("atm-oc3c")];
        let blocks = layout::blocks(&plan, &nets).unwrap();
        assert_eq!(blocks.len(), 6, "three sets on each of two networks");
        let loads = |block: &Block| -> Vec<Option<String>> {
            block
                .cells
                .iter()
                .map(|cell| cell.factors.load.clone())
                .collect()
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(loads(&blocks[0]), [None]);
        assert_eq!(loads(&blocks[2]), [text("nfs:write"), text("stream")]);
        assert_eq!(loads(&blocks[4]), [text("0.6")]);
        assert_eq!(blocks[4].cells[0].factors.knobs[DURING], "2s");
        assert!(blocks[4].load.is_some() && blocks[2].load.is_none());
        let ids: BTreeSet<&str> = blocks
            .iter()
            .flat_map(|block| &block.cells)
            .map(|cell| cell.id.as_str())
            .collect();
        assert_eq!(ids.len(), 8);
        let [stream, files] = blocks[2].parts() else {
            panic!("{:?}", blocks[2]);
        };
        let window = |block: &Block| block.channel().unwrap().procedure;
        assert_eq!(
            window(stream),
            Procedure::Stream {
                window_ns: 3_000_000_000
            }
        );
        assert!(
            matches!(window(files), Procedure::Files(files) if files.quota.budget_ns == 3_000_000_000)
        );
    }

    #[test]
    fn sets_cross_networks_of_the_same_hosts() {
        let of = |joined: bool| {
            // A level has no place there.
            let (two, _) = TWO.split_once("[[load]]\ntogether = [\"nfs\"]").unwrap();
            let text = format!(
                "[testbed]\nkind = \"lab\"\njoined = {joined}\n[[network]]\nname = \"ethernet-10\"\n[[network]]\nname = \"fddi\"\n{two}"
            );
            let mut plan = Plan::parse(&text).unwrap();
            for (probe, network) in plan.probes.iter_mut().zip(["ethernet-10", "fddi"]) {
                probe.networks = vec![network.into()];
            }
            layout::blocks(&plan, &[net("ethernet-10"), net("fddi")])
        };
        let blocks = of(true).unwrap();
        let cells = blocks.iter().flat_map(|block| &block.cells);
        let told: Vec<(&str, Option<&str>)> = cells
            .map(|cell| (cell.factors.network.as_str(), cell.factors.load.as_deref()))
            .collect();
        assert_eq!(
            told,
            [
                ("ethernet-10", None),
                ("ethernet-10", Some("nfs:write@fddi")),
                ("fddi", Some("stream@ethernet-10"))
            ]
        );
        let error = of(false).unwrap_err().to_string();
        assert!(error.contains("joined = true"), "{error}");
    }
}
