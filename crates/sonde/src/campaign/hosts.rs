//! Settings of both hosts, and of all that ranks may be on, for the time of a launch.
//!
//! Checked: `lab_tune` of the command.

use crate::layout::Block;
use sonde_fleet::Fleet;
use sonde_measure::{Evidence, HostChange, HostSetting};
use sonde_probe::host::Change;

/// The hosts that have a block's settings, each with the peer that its way is to; the source first, then the other end.
pub(super) fn hosts_of(
    fleet: &Fleet,
    block: &Block,
    [src, dst]: [usize; 2],
) -> Vec<(usize, usize)> {
    if block.host.is_empty() {
        return Vec::new();
    }
    let is_other = |host: &usize| ![src, dst].contains(host) && fleet.alive(*host);
    let of_ranks = (0..fleet.hosts().len()).filter(|_| block.ranks().is_some());
    let others = of_ranks.filter(is_other).map(|host| (host, src));
    [(src, dst), (dst, src)].into_iter().chain(others).collect()
}

/// Sets what a block wants of all of these hosts, or of none; what became of it at both ends, with the side in front.
pub(super) fn set_hosts(
    fleet: &mut Fleet,
    block: &Block,
    hosts: &[(usize, usize)],
) -> sonde_fleet::Result<Vec<(&'static str, Change)>> {
    let mut all = Vec::new();
    for (at, (host, peer)) in hosts.iter().enumerate() {
        let set = match fleet.change(*host, *peer, &block.host, false) {
            Ok(set) => set.into_iter(),
            Err(error) => {
                let before = hosts.iter().take(at);
                before
                    .map(|(host, _)| *host)
                    .try_for_each(|host| fleet.put_back(host))?;
                return Err(error);
            }
        };
        if let Some(side) = ["src", "dst"].get(at) {
            all.extend(set.map(|change| (*side, change)));
        }
    }
    Ok(all)
}

/// What became of every setting of a host that was changed.
pub(super) fn tell_changes(changes: &[(&'static str, Change)], evidence: &mut Evidence) {
    for (side, change) in changes {
        let side = match *side {
            "src" => &mut evidence.src,
            _ => &mut evidence.dst,
        };
        let told = HostChange {
            before: change.before.as_str().into(),
            asked: change.asked.as_str().into(),
            after: change.after.as_str().into(),
        };
        let setting = HostSetting { change: Some(told) };
        side.host.insert(change.name.as_str().into(), setting);
    }
}
