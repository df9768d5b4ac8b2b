//! Settings of both hosts for the time of a launch.
//!
//! Checked: `lab_tune` of the command.

use crate::layout::Block;
use sonde_fleet::Fleet;
use sonde_measure::{Evidence, HostChange, HostSetting};
use sonde_probe::host::Change;

/// Sets what a block wants of both hosts, or of none; what became of it, with the side in front.
pub(super) fn set_hosts(
    fleet: &mut Fleet,
    block: &Block,
    hosts: [usize; 2],
) -> sonde_fleet::Result<Vec<(&'static str, Change)>> {
    let mut all = Vec::new();
    if block.host.is_empty() {
        return Ok(all);
    }
    let [src, dst] = hosts;
    let set = fleet.change(src, dst, &block.host, false)?;
    all.extend(set.into_iter().map(|change| ("src", change)));
    match fleet.change(dst, src, &block.host, false) {
        Ok(set) => all.extend(set.into_iter().map(|change| ("dst", change))),
        Err(error) => {
            fleet.put_back(src)?;
            return Err(error);
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
