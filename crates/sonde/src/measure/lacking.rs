//! What the hosts of a network have not of what a block takes.
//!
//! Checked: the end-to-end tests of paths and libraries that are missing.

use crate::any_path::AnyPath;
use crate::campaign::LiveNetwork;
use crate::failure::Failure;
use crate::kernel;
use crate::layout::Block;
use sonde_measure::{HostRecord, Path as Route, Testbed};

/// Leaves out what a host has not.
pub(super) fn leave_out(blocks: &mut [Block], live: &[LiveNetwork]) -> Result<(), Failure> {
    for block in blocks {
        let mut why = None;
        for part in block.parts() {
            why = match why {
                None => lacking(part, &live[part.net])?,
                known => known,
            };
        }
        if let Some(why) = why {
            block.skip(&why);
        }
    }
    Ok(())
}

/// What the hosts have not of what a block takes.
fn lacking(block: &Block, up: &LiveNetwork) -> Result<Option<String>, Failure> {
    if up.net.testbed == Testbed::Local && block.path() == AnyPath::Channel(Route::Xdp) {
        let why = "an interface has one XDP program, and on a loopback both ends would want theirs: measure between two hosts";
        return Ok(Some(why.into()));
    }
    let fleet = up.fleet.borrow();
    let hosts = fleet.hosts();
    let lacks = |host: &HostRecord| {
        let AnyPath::Channel(path) = block.path() else {
            return None;
        };
        let why = host.facts.absent.get(&path)?;
        Some(format!("{}: {why}", host.name))
    };
    if let Some(why) = hosts.iter().find_map(lacks) {
        return Ok(Some(why));
    }
    drop(fleet);
    let (AnyPath::Library(path), None) = (block.path(), block.skipped()) else {
        return Ok(None);
    };
    let mut fleet = up.fleet.borrow_mut();
    let alive: Vec<usize> = (0..fleet.hosts().len())
        .filter(|host| fleet.alive(*host))
        .collect();
    if let Some(why) = fleet.lacks(path, &alive).map_err(Failure::cannot)? {
        return Ok(Some(why));
    }
    Ok(block.ranks().and_then(|ranks| {
        let (available, here) = kernel::room(&fleet, ranks.count, ranks.spread)?;
        ranks.too_large(available, here)
    }))
}
