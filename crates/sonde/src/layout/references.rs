//! The short ping-pongs that are repeated among a plan's launches, to see drift.
//!
//! Units:   nanoseconds.
//! Checked: `references_take_little_of_the_time`.

use super::estimate::{MILLI_NS, estimate_ns};
use super::{Block, TestNetwork, cells};
use crate::failure::Failure;
use crate::plan::{Plan, Work};
use sonde_measure::{Procedure, Sampling, Spec};

/// The longest that a reference measures.
const REFERENCE_NS: u64 = 10 * MILLI_NS;

/// The block of each network that is repeated to see drift: a short ping-pong of the first path that has one, of its smallest size,
/// idle. None where the plan wants none, or a network measures no latency.
///
/// # Errors
/// Its cell cannot be named.
pub fn references(
    plan: &Plan,
    nets: &[TestNetwork],
    blocks: &[Block],
) -> Result<Vec<Block>, Failure> {
    let Some(every) = std::num::NonZeroU64::new(plan.repeat.reference) else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for (index, net) in nets.iter().enumerate() {
        let here = || blocks.iter().filter(|block| block.net == index);
        let Some((first, spec)) = here().find_map(|block| Some((block, short(block.channel()?)?)))
        else {
            continue;
        };
        // Those of libraries are among them, and short: drift is seen all the same.
        let channels = here().filter(|block| block.ranks().is_none());
        let launches: u64 = channels.map(|block| block.launches).sum();
        let mut knobs = first.knobs.clone();
        knobs.insert("reference".into(), "idle".into());
        let mut block = Block {
            knobs,
            load: None,
            launches: launches.div_ceil(every.get()),
            estimate_ns: estimate_ns(net, &spec)?,
            work: Work::Channel(Box::new(spec)),
            cells: Vec::new(),
            reference: true,
            ..first.clone()
        };
        block.cells = cells(net, &block, &[])?;
        all.push(block);
    }
    Ok(all)
}

/// The short ping-pong of a latency's first size.
fn short(spec: &Spec) -> Option<Spec> {
    let Procedure::Latency(sampling) = spec.procedure else {
        return None;
    };
    let mut spec = spec.clone();
    spec.sizes_bytes.truncate(1);
    spec.procedure = Procedure::Latency(Sampling {
        samples_min: 1,
        samples_max: 1_000,
        precision_per_mille: None,
        warmup: sampling.warmup.min(20),
        budget_ns: sampling.budget_ns.min(REFERENCE_NS),
    });
    Some(spec)
}
