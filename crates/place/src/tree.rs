//! The hierarchy of a cluster: sites of sites, sites, hosts, as the legs between hosts say it.
//!
//! Model:   hosts are as far from each other as a message of the program's mean size takes, the slower way. A group is
//!          divided where it is widest: into the parts that remain when every step of its shortest spanning tree that is as
//!          long as the longest (within 1 %) is taken out. So hosts at one switch are one level, sites the next.
//!          [`groups`] looks for one such level where distances were measured and no two are equal: the steps in order of length,
//!          divided where one is most above the one before it, if that is by half or more.
//! Source:  single-linkage clustering by the minimum spanning tree (Gower & Ross 1969). Deviations: equal steps are taken
//!          out at once.
//! Units:   seconds.
//! Checked: `sites_are_levels`, `equal_hosts_are_one_level`, `groups_are_found_in_noise`.

use crate::{Cluster, Leg};

/// Steps this near the longest are as long.
const AS_LONG: f64 = 0.99;
/// Steps between groups are so many times those within, at least.
const APART: f64 = 1.5;

/// Hosts, or groups of them that are equally far from each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    /// One host.
    Host(usize),
    /// Parts, and what is between two of them.
    Group { parts: Vec<Tree>, leg: Leg },
}

impl Tree {
    /// How many ranks there is room for.
    pub fn slots(&self, cluster: &Cluster) -> usize {
        match self {
            Self::Host(host) => cluster.hosts[*host].slots,
            Self::Group { parts, .. } => parts.iter().map(|part| part.slots(cluster)).sum(),
        }
    }
}

/// A step of the spanning tree.
#[derive(Clone, Copy)]
struct Step {
    ends: [usize; 2],
    far: f64,
}

/// The hierarchy for messages of so many bytes.
pub(crate) fn tree(cluster: &Cluster, message_bytes: u64) -> Tree {
    let hosts: Vec<_> = (0..cluster.hosts.len()).collect();
    let steps = spanning(hosts.len(), |a, b| far(cluster, message_bytes, a, b));
    divided(cluster, hosts, steps)
}

/// How far two hosts are from each other, the slower way.
fn far(cluster: &Cluster, message_bytes: u64, a: usize, b: usize) -> f64 {
    let time = |from, to| cluster.leg(from, to).time_s(message_bytes, 1);
    time(a, b).max(time(b, a))
}

/// The group of each host, from 0 in the order of their first hosts, where hosts fall into groups that are far from each
/// other for messages of so many bytes; else all are of group 0.
pub fn groups(cluster: &Cluster, message_bytes: u64) -> Vec<usize> {
    let count = cluster.hosts.len();
    let mut steps = spanning(count, |a, b| far(cluster, message_bytes, a, b));
    steps.sort_by(|a, b| a.far.total_cmp(&b.far));
    let jump = |at: &usize| steps[*at].far / steps[at - 1].far.max(f64::MIN_POSITIVE);
    let widest = (1..steps.len()).max_by(|a, b| jump(a).total_cmp(&jump(b)));
    let within = widest.filter(|at| jump(at) >= APART).unwrap_or(steps.len());
    let mut group: Vec<usize> = (0..count).collect();
    for step in &steps[..within] {
        let [a, b] = step.ends.map(|end| group[end]);
        group
            .iter_mut()
            .filter(|of| **of == a.max(b))
            .for_each(|of| *of = a.min(b));
    }
    let mut order: Vec<usize> = group.clone();
    order.sort_unstable();
    order.dedup();
    let place = |of: &usize| order.iter().position(|one| one == of).unwrap_or(0);
    group.iter().map(place).collect()
}

/// The shortest spanning tree (Prim).
fn spanning(count: usize, far: impl Fn(usize, usize) -> f64) -> Vec<Step> {
    let mut nearest: Vec<_> = (0..count).map(|at| (far(0, at), 0)).collect();
    let mut left: Vec<_> = (1..count).collect();
    let mut steps = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let by_distance = |a: &usize, b: &usize| nearest[*a].0.total_cmp(&nearest[*b].0);
        let (place, _) = (0..left.len())
            .map(|place| (place, left[place]))
            .min_by(|a, b| by_distance(&a.1, &b.1))
            .expect("one is left");
        let next = left.swap_remove(place);
        let (length, from) = nearest[next];
        steps.push(Step {
            ends: [from, next],
            far: length,
        });
        for at in &left {
            let length = far(next, *at);
            if length < nearest[*at].0 {
                nearest[*at] = (length, next);
            }
        }
    }
    steps
}

fn divided(cluster: &Cluster, hosts: Vec<usize>, steps: Vec<Step>) -> Tree {
    let longest = steps.iter().max_by(|a, b| a.far.total_cmp(&b.far)).copied();
    let Some(longest) = longest else {
        return Tree::Host(hosts[0]);
    };
    let (cut, kept): (Vec<Step>, Vec<Step>) = steps
        .into_iter()
        .partition(|step| step.far >= longest.far * AS_LONG);
    debug_assert!(!cut.is_empty());
    // Each host under the first one of its part.
    let mut first: Vec<usize> = (0..cluster.hosts.len()).collect();
    fn root(first: &[usize], mut at: usize) -> usize {
        while first[at] != at {
            at = first[at];
        }
        at
    }
    for step in &kept {
        let [a, b] = step.ends.map(|end| root(&first, end));
        first[a.max(b)] = a.min(b);
    }
    let mut roots: Vec<usize> = hosts.iter().map(|host| root(&first, *host)).collect();
    roots.sort_unstable();
    roots.dedup();
    let parts = roots.into_iter().map(|of| {
        let ours = |host: &usize| root(&first, *host) == of;
        let mut members: Vec<_> = hosts.iter().copied().filter(ours).collect();
        members.sort_unstable();
        let inside = kept.iter().copied().filter(|step| ours(&step.ends[0]));
        divided(cluster, members, inside.collect())
    });
    let [a, b] = longest.ends;
    Tree::Group {
        parts: parts.collect(),
        leg: *cluster.leg(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::sites;

    fn shape(tree: &Tree) -> String {
        match tree {
            Tree::Host(host) => host.to_string(),
            Tree::Group { parts, .. } => {
                let all: Vec<_> = parts.iter().map(shape).collect();
                format!("[{}]", all.join(" "))
            }
        }
    }

    #[test]
    fn sites_are_levels() {
        let cluster = sites(3, 2, 4);
        let tree = tree(&cluster, 1_000);
        assert_eq!(shape(&tree), "[[0 1] [2 3] [4 5]]");
        assert_eq!(tree.slots(&cluster), 24);
        let Tree::Group { leg, .. } = tree else {
            panic!()
        };
        assert!(leg.latency_s > 1e-3, "the leg between sites");
    }

    #[test]
    fn groups_are_found_in_noise() {
        let cluster = sites(2, 3, 1);
        let noisy = |from: usize, to: usize| {
            let leg = cluster.leg(from, to);
            let more = 1.0 + 0.03 * ((from * 7 + to * 5) % 11) as f64;
            let leg = Leg {
                latency_s: leg.latency_s * more,
                ..*leg
            };
            (leg, Vec::new())
        };
        let of = |hosts: &Cluster| {
            let names = hosts.sites.clone();
            let noisy = Cluster::new(hosts.hosts.clone(), names, Vec::new(), noisy).unwrap();
            groups(&noisy, 1_000)
        };
        assert_eq!(of(&cluster), [0, 0, 0, 1, 1, 1]);
        let mut one = cluster.clone();
        one.hosts.truncate(3);
        assert_eq!(of(&one), [0, 0, 0]);
        assert_eq!(groups(&sites(1, 1, 1), 1), [0]);
    }

    #[test]
    fn equal_hosts_are_one_level() {
        assert_eq!(shape(&tree(&sites(1, 5, 1), 1)), "[0 1 2 3 4]");
        assert_eq!(shape(&tree(&sites(1, 1, 1), 1)), "0");
    }
}
