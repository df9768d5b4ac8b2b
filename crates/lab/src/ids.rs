//! Which ids of the machine stand behind those of a lab.
//!
//! Model:   three ways to start. Root alone: the lab's ids are the machine's. Root for another, as under sudo: that user's uid and
//!          gid are themselves, and all others, the lab's root among them, are of a block that belongs to nobody: what the
//!          lab's root may do, it may do in the lab only. An ordinary user: the lab's root is that user, and the others are of
//!          the user's subordinate ranges, where the setuid programs for these are there.
//! Source:  user_namespaces(7), subuid(5); "Users, Groups, UIDs and GIDs on systemd systems": nobody gives away 0x70000000 to
//!          0x7fffffff.
//! Checked: `the_callers_id_is_itself_and_the_others_are_nobodys`, `a_block_that_somebody_has_is_passed_over`,
//!          `where_there_is_no_block_one_id_does`, `the_same_ids_are_those_that_there_are`; `lab_powers` of the command.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use crate::config::User;
use sonde_sys::namespace::{self, IdMap};
use sonde_sys::process;
use std::ops::Range;

/// As many ids as systems give to people and services.
const COUNT: u32 = 65_536;
/// Blocks of so many ids, by their number, that are nobody's by convention.
const BLOCKS: Range<u32> = 0x7000..0x7fff;

/// Writes the id maps of the cradle `pid`, for programs that are `user`.
pub(crate) fn write(pid: u32, user: User) -> Result<(), String> {
    let text = |error: sonde_sys::Error| error.to_string();
    let (uid, gid) = process::ids();
    if uid != 0 {
        return of_user(pid, uid, gid).map_err(text);
    }
    if !user.is_another() {
        return write_same(pid, COUNT).map_err(text);
    }
    let map = |own, map, names, subordinate| {
        lent(own, &given(names, subordinate), &spans_here(map)).ok_or_else(|| {
            format!(
                "{own} of SUDO_UID or SUDO_GID, or an id beside it that is nobody's, is not available in this user namespace; \
                 start the lab as that user, without sudo"
            )
        })
    };
    let (own_uid, own_gid) = user.behind;
    let uids = map(own_uid, "uid_map", "/etc/passwd", "/etc/subuid")?;
    let gids = map(own_gid, "gid_map", "/etc/group", "/etc/subgid")?;
    namespace::write_id_maps(pid, &uids, &gids, false).map_err(text)
}

/// Writes the maps by which the first `count` ids of process `pid` are those of this one, as far as it has them: all in the first
/// namespace, one behind `unshare -r`, a range in a container.
pub(crate) fn write_same(pid: u32, count: u32) -> sonde_sys::Result<()> {
    let [uids, gids] = ["uid_map", "gid_map"].map(|name| same(&spans_here(name), count));
    let is_alone = matches!(&gids[..], [only] if only.count == 1);
    namespace::write_id_maps(pid, &uids, &gids, is_alone)
}

fn same(here: &[Range<u32>], count: u32) -> Vec<IdMap> {
    let map = |span: &Range<u32>| IdMap {
        inside: span.start,
        outside: span.start,
        count: span.end.min(count).saturating_sub(span.start),
    };
    here.iter().map(map).filter(|map| map.count > 0).collect()
}

/// Whether root of this process's namespace is root outside.
pub(crate) fn is_root_outside() -> bool {
    let text = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_itself = |line: &str| line.split_whitespace().take(2).all(|id| id == "0");
    text.lines().any(is_itself)
}

/// An ordinary user's own id as 0, and the subordinate range where it is to be had.
fn of_user(pid: u32, uid: u32, gid: u32) -> sonde_sys::Result<()> {
    let own = |outside| IdMap {
        inside: 0,
        outside,
        count: 1,
    };
    let ranges = namespace::subid_ranges(uid);
    if let (Some(uids), Some(gids)) = (ranges.uid.first(), ranges.gid.first()) {
        let rest = |range: &namespace::SubIds| IdMap {
            inside: 1,
            outside: range.first,
            count: range.count.min(COUNT.saturating_sub(1)),
        };
        let with_rest = namespace::newuidmap(pid, &[own(uid), rest(uids)])
            .and_then(|()| namespace::newgidmap(pid, &[own(gid), rest(gids)]));
        if with_rest.is_ok() {
            return Ok(());
        }
    }
    namespace::write_id_maps(pid, &[own(uid)], &[own(gid)], true)
}

/// `own` as itself and all others of the lab as ids of `here` that are none of `given`; where there is no block of these, the
/// lab's root alone. None where there is not even that.
fn lent(own: u32, given: &[Range<u32>], here: &[Range<u32>]) -> Option<Vec<IdMap>> {
    let map = |inside: Range<u32>, outside| IdMap {
        inside: inside.start,
        outside,
        count: inside.len() as u32,
    };
    here.iter().find(|span| span.contains(&own))?;
    let itself = map(own..own.saturating_add(1), own);
    let is_free = |wanted: &Range<u32>| {
        let meets = |span: &Range<u32>| span.start < wanted.end && wanted.start < span.end;
        let holds = |span: &Range<u32>| span.start <= wanted.start && wanted.end <= span.end;
        here.iter().any(holds) && !given.iter().any(meets) && !wanted.contains(&own)
    };
    // Labs of several users have blocks of their own, so that none of them owns what another's root has left in a folder.
    let all = BLOCKS.len();
    let turn = (own as usize).checked_rem(all).unwrap_or(0);
    let mut blocks = BLOCKS.cycle().skip(turn).take(all).map(|number| {
        let begin = COUNT.saturating_mul(number);
        begin..begin.saturating_add(COUNT)
    });
    let block = blocks.find(is_free);
    if let Some(block) = block {
        let part =
            |inside: Range<u32>| map(inside.clone(), block.start.saturating_add(inside.start));
        let parts = [
            part(0..own.min(COUNT)),
            itself,
            part(own.saturating_add(1).min(COUNT)..COUNT),
        ];
        return Some(parts.into_iter().filter(|part| part.count > 0).collect());
    }
    if own == 0 {
        return Some(vec![itself]);
    }
    let ids = here
        .iter()
        .rev()
        .flat_map(|span| span.clone().rev().take(COUNT as usize));
    let root = ids.map(|id| id..id.saturating_add(1)).find(is_free)?;
    Some(vec![map(0..1, root.start), itself])
}

/// The ids that this process's own namespace has.
fn spans_here(map: &str) -> Vec<Range<u32>> {
    let text = std::fs::read_to_string(format!("/proc/self/{map}")).unwrap_or_default();
    let span = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let (first, _, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let first = first.ok()?;
        Some(first..first.saturating_add(count.ok()?))
    };
    text.lines().filter_map(span).collect()
}

/// The ids that somebody has: of the third field of `names` (passwd, group), and the ranges of `subordinate` (subuid, subgid).
fn given(names: &str, subordinate: &str) -> Vec<Range<u32>> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    parse_given(&read(names), &read(subordinate))
}

pub(crate) fn parse_given(names: &str, subordinate: &str) -> Vec<Range<u32>> {
    let number = |line: &str, field| line.trim().split(':').nth(field)?.parse::<u32>().ok();
    let one = |line| number(line, 2).map(|id| id..id.saturating_add(1));
    let range = |line| {
        let first = number(line, 1)?;
        Some(first..first.saturating_add(number(line, 2)?))
    };
    let ones = names.lines().filter_map(one);
    ones.chain(subordinate.lines().filter_map(range)).collect()
}

#[cfg(test)]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "a list of spans may have one"
)]
mod tests {
    use super::*;

    const ALL: [Range<u32>; 1] = [0..u32::MAX];

    fn outside(maps: &[IdMap], id: u32) -> Option<u32> {
        let map = maps
            .iter()
            .find(|map| (map.inside..map.inside + map.count).contains(&id));
        map.map(|map| map.outside + (id - map.inside))
    }

    #[test]
    fn the_callers_id_is_itself_and_the_others_are_nobodys() {
        for own in [0, 1, 1_000, 65_534, 65_535, 65_536, 4_000_000] {
            let maps = lent(own, &[0..own + 1, 100_000..1_000_000], &ALL).unwrap();
            assert_eq!(outside(&maps, own), Some(own));
            let others = (0..COUNT)
                .filter(|id| *id != own)
                .map(|id| outside(&maps, id).unwrap());
            let mut others: Vec<_> = others.collect();
            assert!(
                others
                    .iter()
                    .all(|id| *id >= 0x7000_0000 && *id < 0x7fff_0000),
                "{maps:?}"
            );
            others.dedup();
            assert_eq!(others.len() as u32, COUNT - u32::from(own < COUNT));
        }
        let root = |own| outside(&lent(own, &[], &ALL).unwrap(), 0);
        assert_ne!(
            root(1_000),
            root(1_001),
            "another user's lab has another root"
        );
    }

    #[test]
    fn a_block_that_somebody_has_is_passed_over() {
        let text = "a:x:5:6::/:/bin/sh\nb:x:1879048200:7\n+\nc:x:much:8\n";
        let given = parse_given(text, "a:100000:65536\nb:1879113728:65536\nc:1:\n");
        assert_eq!(
            given,
            [
                5..6,
                1_879_048_200..1_879_048_201,
                100_000..165_536,
                1_879_113_728..1_879_179_264
            ]
        );
        let maps = lent(0, &given, &ALL).unwrap();
        assert_eq!(outside(&maps, 1), Some(0x7002_0001), "two blocks are taken");
    }

    #[test]
    fn where_there_is_no_block_one_id_does() {
        let map = |inside, outside| IdMap {
            inside,
            outside,
            count: 1,
        };
        let container = [0..65_536];
        assert_eq!(
            lent(1_000, &[65_535..65_536], &container).unwrap(),
            [map(0, 65_534), map(1_000, 1_000)]
        );
        assert_eq!(lent(0, &[], &container).unwrap(), [map(0, 0)]);
        assert_eq!(lent(70_000, &[], &container), None);
        assert_eq!(lent(1_000, &[0..65_536], &container), None);
    }

    #[test]
    fn the_same_ids_are_those_that_there_are() {
        let map = |id, count| IdMap {
            inside: id,
            outside: id,
            count,
        };
        assert_eq!(same(&[0..1], COUNT), [map(0, 1)]);
        assert_eq!(same(&[0..u32::MAX], COUNT), [map(0, COUNT)]);
        assert_eq!(
            same(&[0..1, 1..COUNT, 70_000..70_001], u32::MAX),
            [map(0, 1), map(1, COUNT - 1), map(70_000, 1)]
        );
        assert_eq!(same(&[0..1, 70_000..70_001], COUNT), [map(0, 1)]);
    }
}
