//! What a campaign keeps: launches, events and warnings as they come, and at the end how far it came.
//!
//! Checked: the end-to-end tests of interrupts, full disks and resumption.

use super::{
    Block, Campaign, CellResult, EventRecord, LaunchRecord, Repetition, Run, RunState, unix_ns,
};
use sonde_record::StoreError;
use std::collections::BTreeSet;

impl Campaign<'_> {
    /// Keeps what one launch gave, in memory first: what cannot be stored is printed all the same.
    pub(super) fn keep(&mut self, mut records: Vec<LaunchRecord>) -> Result<(), StoreError> {
        let key = |result: &CellResult| (result.cell.clone(), result.index);
        // A resumed launch may have been made for some of its cells before.
        for record in &mut records {
            record
                .results
                .retain(|result| !self.done.contains(&key(result)));
        }
        records.retain(|record| !record.results.is_empty());
        if records.is_empty() {
            return Ok(());
        }
        // What is set aside stands beside what is made in its place.
        let counted = records.iter().filter(|record| !record.set_aside);
        let all: Vec<Repetition<'_>> = counted.flat_map(LaunchRecord::repetitions).collect();
        // By reference: this passes over all results of the run.
        let new: BTreeSet<(&str, u64)> = all
            .iter()
            .map(|one| (one.result.cell.as_str(), one.result.index))
            .collect();
        self.run.retain_results(|launch, old| {
            launch.set_aside || !new.contains(&(old.cell.as_str(), old.index))
        });
        let succeeded = all.iter().filter(|one| one.succeeded());
        self.done.extend(succeeded.map(|one| key(one.result)));
        let kept = self.store.launches(&self.run.head.id, &records);
        self.run.launches.extend(records);
        let (run, observer) = (&self.run, &mut self.observer);
        self.progress.suspend(|| observer.launched(run));
        kept
    }

    /// Keeps a warning, once.
    pub(super) fn warn(&mut self, text: String) -> Result<(), StoreError> {
        if !self.run.warnings.contains(&text) {
            self.store.warning(&self.run.head.id, &text)?;
            self.run.warnings.push(text);
        }
        Ok(())
    }

    pub(super) fn event(&mut self, kind: &str, text: &str) -> Result<(), StoreError> {
        let event = EventRecord {
            at_unix_ns: unix_ns(),
            kind: kind.into(),
            text: text.into(),
        };
        self.run.events.push(event.clone());
        self.store.event(&self.run.head.id, &event)
    }

    /// Ends the run: warnings and clocks as they are now, and how far it came. Returned with the blocks of which it was made.
    pub fn end(mut self, warnings: Vec<String>) -> (Run, Vec<Block>, Result<(), StoreError>) {
        let missing = !self.run.missing().is_empty();
        let state = if missing {
            RunState::Partial
        } else {
            RunState::Complete
        };
        self.run.head.state = state;
        self.run.head.ended_unix_ns = Some(unix_ns());
        let kept = self.write_end(warnings, state);
        (self.run, self.blocks, kept)
    }

    fn write_end(&mut self, mut warnings: Vec<String>, state: RunState) -> Result<(), StoreError> {
        let id = self.run.head.id.clone();
        for up in self.live.iter() {
            let mut fleet = up.fleet.borrow_mut();
            if up.nth.is_none_or(|nth| nth == 0) {
                fleet.resync();
                // Some are found out only by measuring.
                warnings.extend(fleet.notes());
            }
            for host in fleet.hosts() {
                let mut hosts = self.run.hosts.iter_mut();
                let mut now = host.clone();
                if let Some(kept) = hosts.find(|kept| kept.name == host.name) {
                    // What was seen before the measurement no agent knows.
                    now.facts.noise = kept.facts.noise.take();
                    *kept = now.clone();
                }
                self.store.host(&id, &now)?;
            }
        }
        warnings.into_iter().try_for_each(|text| self.warn(text))?;
        self.store.end_at(&id, state, self.run.head.ended_unix_ns)
    }
}
