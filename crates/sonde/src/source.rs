//! What a campaign measures next, by what was seen.
//!
//! Model:   a source looks at the run alone, so that one that was cut off goes on by being asked again: it names the blocks that
//!          followed before, which are made already, and then the next.
//! Checked: `its_own_command_goes_on_with_a_run`; `lab_tune` of the command, which kills and resumes a search and a trial.

use crate::campaign::{End, LiveNetwork};
use crate::failure::Failure;
use crate::layout::{Block, TestNetwork};
use crate::limit;
use crate::pattern;
use crate::verify::Verified;
use sonde_measure::{CellRecord, Run};
use std::collections::{BTreeMap, BTreeSet};

/// What a source looks at.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// The run so far.
    pub run: &'a Run,
    /// Its blocks, those that followed among them.
    pub blocks: &'a [Block],
    /// Where they are measured.
    pub live: &'a [LiveNetwork],
    /// Launches that the plan wants of a block.
    pub launches: u64,
}

impl Seen<'_> {
    /// Whether a block was launched as often as it wants, or is left out.
    pub fn is_made(&self, block: &Block) -> bool {
        let mut made: BTreeMap<&str, u64> = BTreeMap::new();
        for one in self.run.repetitions() {
            *made.entry(&one.result.cell).or_default() += 1;
        }
        let is_made = |cell: &CellRecord| made.get(cell.id.as_str()) >= Some(&block.launches);
        self.is_left_out(block) || block.cells.iter().all(is_made)
    }

    /// Whether a block's hosts turned out to be unable to.
    pub fn is_left_out(&self, block: &Block) -> bool {
        let ids: BTreeSet<&str> = block.cells.iter().map(|cell| cell.id.as_str()).collect();
        let skipped = self.run.cells.iter().filter(|cell| cell.skipped.is_some());
        skipped
            .map(|cell| cell.id.as_str())
            .any(|id| ids.contains(id))
    }

    /// What the run holds of some blocks alone.
    pub fn only(&self, blocks: &[Block]) -> Run {
        let cells = blocks.iter().flat_map(|block| &block.cells);
        let ids: BTreeSet<&str> = cells.map(|cell| cell.id.as_str()).collect();
        let mut run = self.run.clone();
        run.cells.retain(|cell| ids.contains(cell.id.as_str()));
        run.retain_results(|_, result| ids.contains(result.cell.as_str()));
        run
    }
}

/// Who says what follows from what was seen.
pub trait Source {
    /// The command that goes on with its runs.
    fn command(&self) -> &'static str;

    /// The blocks that follow, in their order: those that were made, and the next; no next where nothing follows.
    ///
    /// # Errors
    /// A block that cannot be made.
    fn follow(&mut self, seen: Seen<'_>) -> Result<Vec<Block>, Failure>;

    /// Before blocks that followed are first launched: the events to be kept, kind and text; none where they are not to be launched.
    ///
    /// # Errors
    /// Who would have to be asked is not there.
    fn begins(&mut self, _seen: Seen<'_>) -> Result<Option<Vec<(&'static str, String)>>, Failure> {
        Ok(Some(Vec::new()))
    }

    /// What became of the findings that it looked into; none where it looks into none.
    fn verified(&self) -> Option<&Verified> {
        None
    }

    /// After the run has ended, while its hosts are up.
    ///
    /// # Errors
    /// What is to be left at the hosts cannot be.
    fn ended(&mut self, _seen: Seen<'_>, _end: &End) -> Result<(), Failure> {
        Ok(())
    }
}

/// The command that goes on with a run and says all that follows from it: the one that began the run where it says more than its rows, else
/// `other`.
pub fn goes_on(run: &Run, other: &'static str) -> &'static str {
    match run.head.command.split(' ').next() {
        Some("accept") => "sonde accept",
        Some("contend") => "sonde contend",
        Some("npb") => "sonde npb",
        Some("stage") => "sonde stage",
        _ => other,
    }
}

/// The source of a plan: the searches for a limit that are in it, and of a matrix what stands out of it.
pub struct Searches;

impl Source for Searches {
    fn command(&self) -> &'static str {
        "sonde assess"
    }

    fn follow(&mut self, seen: Seen<'_>) -> Result<Vec<Block>, Failure> {
        let nets: Vec<&TestNetwork> = seen.live.iter().map(|up| &up.net).collect();
        let mut all = limit::trials(seen.run, seen.blocks, &nets, seen.launches)?;
        all.extend(pattern::again(seen)?);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure;

    #[test]
    fn its_own_command_goes_on_with_a_run() {
        let mut run = Run {
            head: measure::begun("plan".into(), 1).unwrap(),
            hosts: Vec::new(),
            networks: Vec::new(),
            cells: Vec::new(),
            launches: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
        };
        for (command, wanted) in [
            (
                "contend nfs:write stream --network ethernet-10",
                "sonde contend",
            ),
            ("stage --input 1MiB", "sonde stage"),
            ("accept --quick", "sonde accept"),
            ("assess contend.toml", "sonde assess"),
            ("", "sonde assess"),
        ] {
            run.head.command = command.into();
            assert_eq!(goes_on(&run, Searches.command()), wanted, "{command}");
        }
    }
}
