//! The hierarchy of a cluster: sites of sites, sites, hosts, as the legs between hosts say it.
//!
//! Model:   hosts are as far from each other as a message of the program's mean size takes, the slower way. A group is
//!          divided where it is widest: into the parts that remain when every step of its shortest spanning tree that is as
//!          long as the longest (within 1 %) is taken out. So hosts at one switch are one level, sites the next.
//! Source:  single-linkage clustering by the minimum spanning tree (Gower & Ross 1969). Deviations: equal steps are taken
//!          out at once.
//! Units:   seconds.
//! Checked: `sites_are_levels`, `equal_hosts_are_one_level`.

use crate::{Cluster, Leg};

/// Steps this near the longest are as long.
const AS_LONG: f64 = 0.99;

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
    let far = |a: usize, b: usize| {
        let time = |from, to| cluster.leg(from, to).time_s(message_bytes, 1);
        time(a, b).max(time(b, a))
    };
    let steps = spanning(hosts.len(), far);
    divided(cluster, hosts, steps)
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
    fn equal_hosts_are_one_level() {
        assert_eq!(shape(&tree(&sites(1, 5, 1), 1)), "[0 1 2 3 4]");
        assert_eq!(shape(&tree(&sites(1, 1, 1), 1)), "0");
    }
}
