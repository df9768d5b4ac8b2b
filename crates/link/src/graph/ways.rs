//! The tables of a graph: shortest ways, what each of them gets, the spanning tree.
//!
//! Model:   distances in trunks from every switch; the links that lead nearer are the choices. Ways of unequal rate are taken
//!          in turn by smooth weighted rotation. The tree is that of fewest trunks from the lowest switch of each part.
//! Checked: `ways_are_shortest_and_end`, `the_tree_reaches_each_once`, `unequal_trunks_share_by_rate`.

use super::{End, Graph, LinkId};
use crate::Port;
use std::collections::VecDeque;

/// Most slots among which ways of unequal rate are shared out.
const SLOTS: usize = 64;

impl Graph {
    /// Makes all tables anew.
    pub(super) fn find_ways(&mut self) {
        let count = usize::from(self.switches);
        let mut out: Vec<Vec<(LinkId, u16)>> = vec![Vec::new(); count];
        for (id, link) in (0..).map(LinkId).zip(&self.links) {
            if let (End::Switch(to), true) = (link.to, self.is_up(id)) {
                out[usize::from(link.from)].push((id, to));
            }
        }
        self.slots = vec![Vec::new(); count * count];
        for end in 0..self.switches {
            // Links go both ways, so that the distance from the end is that to it.
            let far = distances(&out, end);
            for at in 0..count {
                let Some(own) = far[at].filter(|own| *own > 0) else {
                    continue;
                };
                let nearer = out[at]
                    .iter()
                    .filter(|(_, to)| far[usize::from(*to)] == Some(own - 1));
                let choices: Vec<_> = nearer.map(|(link, _)| *link).collect();
                self.slots[at * count + usize::from(end)] = self.share(&choices);
            }
        }
        self.plant(&out);
    }

    /// Ways of equal length in turn, each as often as its rate says.
    fn share(&self, choices: &[LinkId]) -> Vec<LinkId> {
        let rate = |link: &LinkId| self.link(*link).line.usable().map_or(1, |rate| rate.bps());
        let rates: Vec<_> = choices.iter().map(|link| i128::from(rate(link))).collect();
        if rates.iter().all(|rate| *rate == rates[0]) {
            return choices.to_vec();
        }
        let total: i128 = rates.iter().sum();
        let mut due = vec![0i128; rates.len()];
        let turn = |_| {
            for (due, rate) in due.iter_mut().zip(&rates) {
                *due += rate;
            }
            let most = (0..due.len()).max_by_key(|&i| (due[i], std::cmp::Reverse(i)));
            let most = most.expect("there is a choice");
            due[most] -= total;
            choices[most]
        };
        (0..SLOTS.max(choices.len())).map(turn).collect()
    }

    /// Makes the spanning tree, one for each part where trunks are down.
    fn plant(&mut self, out: &[Vec<(LinkId, u16)>]) {
        let count = out.len();
        self.tree = vec![Vec::new(); count];
        let mut parent: Vec<Option<LinkId>> = vec![None; count];
        let mut part: Vec<Option<u16>> = vec![None; count];
        let mut order = Vec::with_capacity(count);
        for root in 0..self.switches {
            if part[usize::from(root)].is_some() {
                continue;
            }
            part[usize::from(root)] = Some(root);
            let mut next = VecDeque::from([root]);
            while let Some(at) = next.pop_front() {
                order.push(at);
                for &(link, to) in &out[usize::from(at)] {
                    if part[usize::from(to)].is_none() {
                        part[usize::from(to)] = Some(root);
                        parent[usize::from(to)] = Some(link);
                        let back = self.back(link);
                        self.tree[usize::from(at)].push(link);
                        self.tree[usize::from(to)].push(back);
                        next.push_back(to);
                    }
                }
            }
        }
        // From the leaves up: what is below each switch; the rest of its part is beyond the way up.
        let mut below = self.hosts.clone();
        for &at in order.iter().rev() {
            if let Some(link) = parent[usize::from(at)] {
                let mine = below[usize::from(at)].clone();
                below[usize::from(self.link(link).from)].extend_from_slice(&mine);
            }
        }
        let of_part = |places: &[(u16, u16)], at: u16, same: bool| -> Vec<Port> {
            let all = (0..).map(Port).zip(places);
            let here = |place: &(u16, u16)| part[usize::from(place.0)] == part[usize::from(at)];
            all.filter(|(_, place)| here(place) == same)
                .map(|(port, _)| port)
                .collect()
        };
        for at in 0..self.switches {
            let Some(link) = parent[usize::from(at)] else {
                continue;
            };
            let mut mine = std::mem::take(&mut below[usize::from(at)]);
            mine.sort_unstable();
            let mut rest = of_part(&self.places, at, true);
            rest.retain(|port| mine.binary_search(port).is_err());
            let back = self.back(link);
            self.beyond[link.0 as usize] = mine;
            self.beyond[back.0 as usize] = rest;
        }
        self.apart = (0..self.switches)
            .map(|at| of_part(&self.places, at, false))
            .collect();
    }
}

/// Trunks from each switch to `end`; none where no way leads there.
pub(super) fn distances(out: &[Vec<(LinkId, u16)>], end: u16) -> Vec<Option<u32>> {
    let mut far = vec![None; out.len()];
    far[usize::from(end)] = Some(0);
    let mut next = VecDeque::from([(end, 0)]);
    while let Some((at, own)) = next.pop_front() {
        for &(_, to) in &out[usize::from(at)] {
            let far = &mut far[usize::from(to)];
            if far.is_none() {
                *far = Some(own + 1);
                next.push_back((to, own + 1));
            }
        }
    }
    far
}
