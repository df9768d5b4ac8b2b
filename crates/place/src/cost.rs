//! What a placement costs.
//!
//! Model:   the cost is the mean over ranks of the time that its messages take one after the other, plus the time of the
//!          most loaded line:
//!          `sum over ordered pairs of ranks (messages x latency + bytes / rate) / ranks + max over lines (bytes / rate)`,
//!          with latency and rate of the leg between the two hosts. The first term is what a rank waits for where nothing
//!          is in its way; the second what the narrowest shared place needs however well the ranks overlap. It is a figure
//!          to compare placements by: a program that overlaps takes less, and what ranks compute is the same everywhere and
//!          left out. Balance is a bound, the slots of a host.
//! Source:  the linear cost of a message (Hockney 1994), the most congested link as in mapping by dilation and congestion
//!          (Hoefler & Snir 2011, §2). Deviations: both in one sum, as time.
//! Units:   seconds.
//! Checked: `the_sum_is_as_by_hand`, `changes_add_up` (property).

use crate::{Cluster, Matrix, Placement};

/// What a placement costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// What a rank's messages take one after the other, on average.
    pub rank_s: f64,
    /// What the most loaded line takes.
    pub line_s: f64,
    /// That line, by place in [`Cluster::lines`]; none where nothing goes by a shared line.
    pub line: Option<usize>,
}

impl Cost {
    /// What is minimised.
    pub fn total_s(&self) -> f64 {
        self.rank_s + self.line_s
    }
}

/// How much of what ranks send goes how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that stay within a host.
    pub within_bytes: u64,
    /// Bytes between hosts of one site.
    pub site_bytes: u64,
    /// Bytes between sites.
    pub far_bytes: u64,
}

impl Traffic {
    /// Of a matrix, placed so.
    pub fn of(matrix: &Matrix, cluster: &Cluster, placement: &Placement) -> Self {
        let mut traffic = Self::default();
        let ranks = 0..matrix.ranks();
        for (from, to) in ranks
            .clone()
            .flat_map(|from| ranks.clone().map(move |to| (from, to)))
        {
            if from == to {
                continue;
            }
            let (a, b) = (placement.host(from), placement.host(to));
            let sum = if a == b {
                &mut traffic.within_bytes
            } else if cluster.hosts[a].site == cluster.hosts[b].site {
                &mut traffic.site_bytes
            } else {
                &mut traffic.far_bytes
            };
            *sum += matrix.bytes(from, to);
        }
        traffic
    }
}

/// What a placement costs.
pub fn cost(matrix: &Matrix, cluster: &Cluster, placement: &Placement) -> Cost {
    let links = links(matrix);
    State::new(&links, cluster, placement.hosts().to_vec()).cost()
}

/// What a rank has with another: what it sends to it and gets from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub with: usize,
    pub sent: (u64, u64),
    pub got: (u64, u64),
}

/// By rank: with whom it has to do. Messages to oneself are none.
pub(crate) fn links(matrix: &Matrix) -> Vec<Vec<Link>> {
    let ranks = matrix.ranks();
    let of = |rank: usize| {
        let others = (0..ranks).filter(move |with| *with != rank);
        let all = others.map(move |with| Link {
            with,
            sent: (matrix.bytes(rank, with), matrix.messages(rank, with)),
            got: (matrix.bytes(with, rank), matrix.messages(with, rank)),
        });
        all.filter(|link| link.sent != (0, 0) || link.got != (0, 0))
            .collect()
    };
    (0..ranks).map(of).collect()
}

/// A placement with what it costs, kept while ranks move.
pub(crate) struct State<'a> {
    links: &'a [Vec<Link>],
    cluster: &'a Cluster,
    of: Vec<usize>,
    legs_s: f64,
    loads: Vec<u64>,
    /// How many steps the arithmetic has taken.
    pub steps: u64,
}

impl<'a> State<'a> {
    pub fn new(links: &'a [Vec<Link>], cluster: &'a Cluster, of: Vec<usize>) -> Self {
        let mut state = Self {
            links,
            cluster,
            of,
            legs_s: 0.0,
            loads: vec![0; cluster.lines.len()],
            steps: 0,
        };
        for (rank, all) in links.iter().enumerate() {
            for link in all {
                let (from, to) = (state.of[rank], state.of[link.with]);
                state.carry(from, to, link.sent, true);
            }
        }
        state
    }

    pub fn host(&self, rank: usize) -> usize {
        self.of[rank]
    }

    pub fn ranks(&self) -> usize {
        self.of.len()
    }

    pub fn into_hosts(self) -> Vec<usize> {
        self.of
    }

    /// Puts what goes from one host to another on its way, or takes it away.
    fn carry(&mut self, from: usize, to: usize, (bytes, messages): (u64, u64), more: bool) {
        let time = self.cluster.leg(from, to).time_s(bytes, messages);
        self.legs_s += if more { time } else { -time };
        let way = self.cluster.way(from, to);
        for line in way {
            let load = &mut self.loads[*line as usize];
            *load = if more { *load + bytes } else { *load - bytes };
        }
        self.steps += 1 + way.len() as u64;
    }

    /// Moves a rank to a host.
    pub fn shift(&mut self, rank: usize, host: usize) {
        let links = self.links;
        let here = self.of[rank];
        for link in &links[rank] {
            let other = self.of[link.with];
            self.carry(here, other, link.sent, false);
            self.carry(other, here, link.got, false);
            self.carry(host, other, link.sent, true);
            self.carry(other, host, link.got, true);
        }
        self.of[rank] = host;
    }

    pub fn cost(&self) -> Cost {
        let times = self.loads.iter().zip(&self.cluster.lines);
        let times = times.map(|(bytes, line)| *bytes as f64 / line.bytes_per_s);
        let most = times
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let most = most.filter(|(line, _)| self.loads[*line] > 0);
        Cost {
            rank_s: self.legs_s.max(0.0) / self.links.len() as f64,
            line_s: most.map_or(0.0, |(_, time)| time),
            line: most.map(|(line, _)| line),
        }
    }

    /// What is minimised.
    pub fn total_s(&mut self) -> f64 {
        self.steps += self.loads.len() as u64;
        self.cost().total_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::sites;
    use crate::{Pattern, random};
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
    }

    #[test]
    fn the_sum_is_as_by_hand() {
        let cluster = sites(2, 2, 1);
        let mut matrix = Matrix::new(3).unwrap();
        matrix.add(0, 1, 12_500_000, 10);
        matrix.add(1, 2, 5_625_000, 2);
        matrix.add(2, 1, 11_250_000, 1);
        matrix.add(2, 2, 1 << 40, 9);
        // Ranks 0 and 1 at one site, 2 at the other.
        let placement = Placement::new(vec![0, 1, 2]);
        let cost = cost(&matrix, &cluster, &placement);
        let sum = (1.0 + 10.0 * 50e-6) + (1.0 + 2.0 * 5e-3) + (2.0 + 5e-3);
        assert!(near(cost.rank_s, sum / 3.0), "{cost:?}");
        assert!(near(cost.line_s, 2.0) && cost.line == Some(2), "{cost:?}");
        let traffic = Traffic::of(&matrix, &cluster, &placement);
        assert_eq!(
            (traffic.within_bytes, traffic.site_bytes, traffic.far_bytes),
            (0, 12_500_000, 16_875_000)
        );
        let silent = super::cost(&Matrix::new(3).unwrap(), &cluster, &placement);
        assert_eq!((silent.line, silent.total_s().to_bits()), (None, 0));
    }

    proptest! {
        /// Moves change the cost to what it is when counted anew.
        #[test]
        fn changes_add_up(seed in 0u64..200, moves in prop::collection::vec((0usize..12, 0usize..6), 1..20)) {
            let cluster = sites(3, 2, 4);
            let matrix = Pattern::Random.matrix(12, 3_000, 2, seed).unwrap();
            let links = links(&matrix);
            let start = random(12, &cluster, seed).unwrap();
            let mut state = State::new(&links, &cluster, start.hosts().to_vec());
            for (rank, host) in moves {
                state.shift(rank, host);
            }
            let kept = state.cost();
            let anew = cost(&matrix, &cluster, &Placement::new(state.into_hosts()));
            prop_assert!(near(kept.rank_s, anew.rank_s) && near(kept.line_s, anew.line_s), "{kept:?} {anew:?}");
        }
    }
}
