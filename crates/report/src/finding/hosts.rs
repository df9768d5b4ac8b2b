//! Hosts that are set otherwise than the others, but for what the verdict on all pairs tells of them.
//!
//! Model:   [`apart_but`] over the hosts of the run, without this machine where it stands beside a lab: it is the floor of what
//!          hosts cost, and none of them.
//! Checked: the tests of `diagnosis::apart`; `the_floor_is_no_host`.

use std::collections::BTreeSet;

use sonde_measure::Testbed;

use super::Finding;
use crate::diagnosis::apart_but;
use crate::index::Index;
use crate::matrix;

/// `host-set-apart` and `mtu-apart`.
pub(super) fn apart(index: &Index<'_>) -> Vec<Finding> {
    let mut hosts = index.run.hosts.clone();
    let cells = index.run.cells.iter().map(|cell| &cell.factors);
    let floors = cells.filter(|factors| factors.testbed == Testbed::Local);
    let floors: BTreeSet<&String> = floors.flat_map(|factors| &factors.hosts).collect();
    hosts.retain(|host| !floors.contains(&host.name));
    apart_but(&hosts, &matrix::told(index.run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn the_floor_is_no_host() {
        let mut run = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 1, 10_000)
            .done();
        (run.hosts[0].facts.mtu_bytes, run.hosts[1].facts.mtu_bytes) = (Some(1_500), Some(9_000));
        let rules = |run: &sonde_measure::Run| -> Vec<String> {
            let found = apart(&Index::new(run)).into_iter();
            found.map(|finding| finding.rule).collect()
        };
        assert_eq!(rules(&run), ["mtu-apart"]);
        for cell in &mut run.cells {
            cell.factors.testbed = Testbed::Local;
        }
        assert_eq!(rules(&run), [""; 0]);
    }
}
