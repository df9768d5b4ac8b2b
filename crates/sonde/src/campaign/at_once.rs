//! One launch of several measurements at once, kept as a record for each.
//!
//! Model:   all are between the same two hosts. Where one fails, none of them was measured beside all others: all have failed, and each
//!          says which one did. What the emulated network did is that of all.
//! Checked: `tests/lab_contend.rs`.

use super::{Block, Campaign, LaunchRecord, pair, record, seen, unix_ns};
use crate::defect;
use crate::plan::Work;
use sonde_fleet::{Between, Launched, Part, TogetherAsk, TogetherLaunched, What};
use sonde_measure::workload;
use sonde_record::StoreError;
use sonde_sys::tell;
use std::rc::Rc;
use std::time::Instant;

impl Campaign<'_> {
    /// Launches the parts of a block at once, and keeps what they gave together.
    pub(super) fn launch_at_once(
        &mut self,
        block: &Block,
        parts: &[Block],
        index: u64,
    ) -> Result<(), StoreError> {
        let up = &self.live[block.net];
        let shared = Rc::clone(&up.fleet);
        let mut fleet = shared.borrow_mut();
        let (src, dst) = block
            .pair
            .unwrap_or_else(|| pair(index, fleet.hosts().len()));
        let between = Between {
            src,
            dst,
            one_way_ns: up.one_way_ns,
            load: block.load.clone(),
        };
        let names: Vec<String> = parts.iter().map(name).collect();
        let host = |host: usize| {
            fleet
                .hosts()
                .get(host)
                .map_or("", |host| &host.name)
                .to_owned()
        };
        let (src_name, dst_name) = (host(src), host(dst));
        let load = block.load.as_ref().map(|load| format!(" under {load}"));
        let now = format!(
            "{}{} on {} from {src_name} to {dst_name}",
            names.join(" + "),
            load.unwrap_or_default(),
            up.net.name
        );
        self.progress.begins(&now);
        defect::doing(format!("in repetition {} of {now}", index + 1));
        let (began_unix_ns, began) = (unix_ns(), Instant::now());
        let asked = parts.iter().map(|part| Part {
            network: self.live[part.net].nth,
            what: what(part, &between),
        });
        let launched = fleet.together(&TogetherAsk {
            parts: asked.collect(),
            between: between.clone(),
        });
        drop(fleet);
        let took = began.elapsed();
        let (outcomes, report) = match launched {
            Ok(TogetherLaunched { parts, report, .. }) => (parts, report),
            Err(error) => (parts.iter().map(|_| Err(error.clone())).collect(), None),
        };
        let unverified = |outcome: &sonde_probe::Outcome| {
            let kernel = outcome.evidence.application.kernel.as_ref();
            kernel.and_then(sonde_measure::npb::Kernel::unverified)
        };
        let troubles = outcomes.iter().map(|outcome| match outcome {
            Ok(Some(outcome)) => unverified(outcome),
            // It was ended, since another one has failed.
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        });
        let troubles: Vec<Option<String>> = troubles.collect();
        let first = names.iter().zip(&troubles);
        let first = first
            .filter_map(|(name, why)| Some((name, why.as_ref()?)))
            .next();
        let mut records = Vec::new();
        for ((part, outcome), trouble) in parts.iter().zip(outcomes).zip(&troubles) {
            let launched = outcome.ok().flatten().map(|outcome| Launched {
                outcome,
                report: report.clone(),
                took,
            });
            let beside =
                first.map(|(name, why)| format!("{name}, measured at once, failed: {why}"));
            let failure = trouble.clone().or(beside);
            let mut record = LaunchRecord {
                src: src_name.clone(),
                dst: dst_name.clone(),
                began_unix_ns,
                took_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
                ..record(part, index, launched.as_ref(), failure.as_deref())
            };
            let succeeded = launched.as_ref().filter(|_| failure.is_none());
            seen::tell(&mut record, part, succeeded);
            if parts.len() == 1 {
                self.tell_wire(part, &mut record);
            }
            records.push(record);
        }
        self.keep(records)?;
        if let Some((name, why)) = first {
            let number = index + 1;
            self.progress.suspend(|| {
                tell!("sonde: {now}: repetition {number} failed: {name}: {why}");
            });
        }
        let network = self.live[block.net].net.name.clone();
        self.progress.saw(&network, block, &self.run, parts.len());
        self.progress.ended(block.estimate_ns);
        Ok(())
    }
}

/// What a part is called.
fn name(part: &Block) -> String {
    let cell = part.cells.first();
    cell.map_or_else(String::new, |cell| workload::name(&cell.factors))
}

/// What the fleet is asked for.
fn what(part: &Block, between: &Between) -> What {
    match &part.work {
        Work::Channel(spec) => What::Channel(spec.clone()),
        Work::Ranks(ranks) => What::Ranks(Box::new(ranks.asked(between.clone()))),
        Work::Rounds(_) | Work::Together(_) => unreachable!("the plan refuses these in sets"),
    }
}
