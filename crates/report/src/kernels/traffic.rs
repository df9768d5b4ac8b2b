//! What the ranks of a kernel did, from what each launch told of them: to whom they sent how much, how long messages were, and
//! how long they were in each phase.
//!
//! Model:   messages are those of the timed part of a launch's last run. What two paths carry alike is told once, for both.
//!          A phase's times are means of all ranks of all launches; phases outside the timed part are left out.
//! Source:  [`sonde_measure::npb::Kernel`] of a launch.
//! Units:   bytes; nanoseconds.
//! Checked: `paths_that_carry_the_same_are_told_once`, `phases_are_means_of_ranks_and_launches`, `without_a_kernel_there_is_nothing`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::npb::{Kernel, Rank};

use super::KernelRow;
use crate::index::Index;

/// Of more ranks a page has no matrix.
pub(crate) const MATRIX_RANKS_MAX: usize = 32;

/// The messages of a kernel among so many ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelTraffic {
    /// The kernel.
    pub kernel: String,
    /// How large it is.
    pub class: String,
    /// Among how many ranks.
    pub ranks: u64,
    /// What carries these messages, each with what was set of it.
    pub paths: Vec<String>,
    /// How many messages there are from each power of two bytes on, below the next; ascending. Those without are left out.
    pub lengths: Vec<(u64, u64)>,
    /// From each rank to each, sender by sender: bytes; empty of more ranks than a page shows.
    pub bytes: Vec<u64>,
    /// The same: messages.
    pub messages: Vec<u64>,
}

/// A phase of a kernel's timed part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelPhase {
    /// The cell.
    pub cell: String,
    /// Its name.
    pub name: String,
    /// Between calls of the library: the mean of ranks and launches.
    pub computing_ns: u64,
    /// In calls of the library: the same.
    pub communicating_ns: u64,
}

/// What each launch of a cell gave.
fn given<'r>(index: &Index<'r>, cell: &str) -> Vec<&'r Kernel> {
    let launches = index.launches(cell);
    launches
        .filter_map(|launch| launch.evidence.application.kernel.as_ref())
        .collect()
}

/// The messages of all kernels, in the order of the rows.
pub(crate) fn traffic(index: &Index<'_>, rows: &[KernelRow]) -> Vec<KernelTraffic> {
    let mut all: Vec<KernelTraffic> = Vec::new();
    for row in rows.iter().filter(|row| row.ranks > 1) {
        let by = row.by();
        let is_known = |one: &KernelTraffic| one.is_of(row) && one.paths.contains(&by);
        if all.iter().any(is_known) {
            continue;
        }
        let Some(own) = given(index, &row.cell)
            .first()
            .and_then(|kernel| traffic_of(&kernel.ranks, row))
        else {
            continue;
        };
        let same = |one: &&mut KernelTraffic| {
            one.is_of(row)
                && (&one.lengths, &one.bytes, &one.messages)
                    == (&own.lengths, &own.bytes, &own.messages)
        };
        match all.iter_mut().find(same) {
            Some(known) => known.paths.push(by),
            None => all.push(own),
        }
    }
    all
}

impl KernelTraffic {
    fn is_of(&self, row: &KernelRow) -> bool {
        (&self.kernel, &self.class, self.ranks) == (&row.kernel, &row.class, row.ranks)
    }
}

/// The messages of all ranks; `None` where none was sent.
fn traffic_of(ranks: &[Rank], row: &KernelRow) -> Option<KernelTraffic> {
    let mut lengths = std::collections::BTreeMap::<u64, u64>::new();
    for power in ranks.iter().flat_map(|rank| &rank.sent.powers) {
        *lengths.entry(power.from_bytes).or_default() += power.messages;
    }
    if lengths.is_empty() {
        return None;
    }
    let is_shown = ranks.len() <= MATRIX_RANKS_MAX;
    let matrix = |of: fn(&Rank) -> &Vec<u64>| -> Vec<u64> {
        let ranks = ranks.iter().filter(|_| is_shown);
        ranks.flat_map(|rank| of(rank).clone()).collect()
    };
    Some(KernelTraffic {
        kernel: row.kernel.clone(),
        class: row.class.clone(),
        ranks: row.ranks,
        paths: vec![row.by()],
        lengths: lengths.into_iter().collect(),
        bytes: matrix(|rank| &rank.bytes_to),
        messages: matrix(|rank| &rank.messages_to),
    })
}

/// The phases of all kernels, cell by cell, in the order in which ranks enter them.
pub(crate) fn phases(index: &Index<'_>, rows: &[KernelRow]) -> Vec<KernelPhase> {
    rows.iter()
        .flat_map(|row| phases_of(&row.cell, &given(index, &row.cell)))
        .collect()
}

fn phases_of(cell: &str, launches: &[&Kernel]) -> Vec<KernelPhase> {
    let mut all: Vec<KernelPhase> = Vec::new();
    let ranks = || launches.iter().flat_map(|kernel| &kernel.ranks);
    let count = ranks().count().max(1) as u64;
    for phase in ranks()
        .flat_map(|rank| &rank.phases)
        .filter(|phase| phase.timed)
    {
        let at = all.iter().position(|one| one.name == phase.name);
        let at = at.unwrap_or_else(|| {
            all.push(KernelPhase {
                cell: cell.into(),
                name: phase.name.clone(),
                computing_ns: 0,
                communicating_ns: 0,
            });
            all.len() - 1
        });
        all[at].computing_ns += phase.computing_ns;
        all[at].communicating_ns += phase.communicating_ns;
    }
    for phase in &mut all {
        phase.computing_ns /= count;
        phase.communicating_ns /= count;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::kernels;
    use crate::testing::{Runs, net};
    use sonde_measure::{LengthsRow, Power, Text, Total, npb};

    /// Two ranks, of which the first sends and the second answers; `bytes` of each message.
    fn setting(bytes: u64) -> String {
        let lengths = LengthsRow {
            total: Total {
                messages: 1,
                bytes,
                bytes_min: bytes,
                bytes_max: bytes,
            },
            bytes_mean: Some(bytes as f64),
            bytes_median: Some(bytes),
            powers: vec![Power {
                from_bytes: bytes,
                messages: 1,
            }],
        };
        let phase = |name: &str, timed, computing_ns, communicating_ns| npb::Phase {
            name: name.into(),
            timed,
            computing_ns,
            held_ns: 0,
            communicating_ns,
            sent: lengths.clone(),
            collectives: Vec::new(),
        };
        let rank = |bytes_to| Rank {
            timed_ns: 9,
            clock: "tsc".into(),
            memory_bytes: None,
            phases: vec![
                phase("setup", false, 50, 50),
                phase("sweep", true, bytes, 4),
                phase("norm", true, 2, 0),
            ],
            sent: lengths.clone(),
            bytes_to,
            messages_to: vec![1, 0],
        };
        let kernel = Kernel {
            ranks: vec![rank(vec![0, bytes]), rank(vec![bytes, 0])],
            ..Kernel::new("cg", "S")
        };
        kernel.write()
    }

    fn runs() -> Runs {
        Runs::new().network(net("wire")).on(2)
    }

    #[test]
    fn paths_that_carry_the_same_are_told_once() {
        let run = runs()
            .setting("npb", &setting(64))
            .kernel("wire", "pvm:default", "cg S 2", 1_000)
            .kernel("wire", "pvm:direct", "cg S 2", 1_000)
            .load("0.6")
            .kernel("wire", "pvm:direct", "cg S 2", 1_000)
            .setting("npb", &setting(128))
            .kernel("wire", "openmpi:tcp", "cg S 2", 1_000)
            .done();
        let index = Index::new(&run);
        let all = traffic(&index, &kernels(&index));
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[0].paths, ["pvm:default", "pvm:direct"]);
        assert_eq!(all[0].lengths, [(64, 2)]);
        assert_eq!(all[0].bytes, [0, 64, 64, 0]);
        assert_eq!(all[0].messages, [1, 0, 1, 0]);
        assert_eq!(
            (all[1].paths.len(), &all[1].lengths[..]),
            (1, &[(128, 2)][..])
        );
    }

    #[test]
    fn phases_are_means_of_ranks_and_launches() {
        let run = runs()
            .launches(3)
            .setting("npb", &setting(10))
            .kernel("wire", "pvm:direct", "cg S 2", 1_000)
            .done();
        let index = Index::new(&run);
        let all = phases(&index, &kernels(&index));
        let told: Vec<(&str, u64, u64)> = all
            .iter()
            .map(|one| (one.name.as_str(), one.computing_ns, one.communicating_ns))
            .collect();
        assert_eq!(told, [("sweep", 10, 4), ("norm", 2, 0)]);
    }

    #[test]
    fn without_a_kernel_there_is_nothing() {
        let run = runs()
            .kernel("wire", "pvm:direct", "cg S 2", 1_000)
            .kernel("wire", "pvm:default", "cg S 2", 1_000)
            .done();
        let index = Index::new(&run);
        let rows = kernels(&index);
        assert_eq!(rows.len(), 2);
        assert_eq!(traffic(&index, &rows), []);
        assert_eq!(phases(&index, &rows), []);
    }
}
