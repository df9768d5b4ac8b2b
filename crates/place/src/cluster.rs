//! The hosts that ranks can run on, and what is between them.
//!
//! Model:   a host has slots and stands at a site. Between two hosts a message takes a latency and its bytes a rate (a
//!          [`Leg`]); some lines are shared by the ways of several pairs: the line of a host in either direction, a trunk
//!          between sites in either direction, a segment or ring of all. Within a host messages cost the leg `within`.
//! Units:   seconds; bytes a second, infinite where nothing limits them. Hosts, sites and lines count from 0.
//! Checked: `slots_are_set_by_name`, `what_no_launcher_takes_is_refused`, and the tests of `cost`, `tree` and `file`.
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

use sonde_units::{RANKS_MAX, excerpt};
use std::collections::BTreeSet;
use thiserror::Error;

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, as launchers call it.
    pub name: String,
    /// How many ranks it takes at most.
    pub slots: usize,
    /// Its site, by place in [`Cluster::sites`].
    pub site: usize,
}

impl Host {
    /// The name goes into launchers' files, a host a line.
    fn check(&self) -> Result<(), ClusterError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let name = &self.name;
        if !(1..=253).contains(&name.len()) || !name.bytes().all(is_plain) || name.starts_with('-')
        {
            return Err(ClusterError::Name(name.clone()));
        }
        check_slots(name, self.slots)
    }
}

fn check_slots(name: &str, slots: usize) -> Result<(), ClusterError> {
    match (0..=RANKS_MAX).contains(&slots) {
        true => Ok(()),
        false => Err(ClusterError::Slots {
            name: name.into(),
            slots,
        }),
    }
}

/// What a message meets between two ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg {
    /// For each message.
    pub latency_s: f64,
    /// For its bytes; infinite where they take no time.
    pub bytes_per_s: f64,
}

impl Leg {
    /// Within a host, where nothing else is known: likely, about what shared memory gives (1 us, 2 GB/s).
    pub const WITHIN: Self = Self {
        latency_s: 1e-6,
        bytes_per_s: 2e9,
    };

    /// The time that so many bytes in so many messages take after each other.
    pub fn time_s(&self, bytes: u64, messages: u64) -> f64 {
        messages as f64 * self.latency_s + bytes as f64 / self.bytes_per_s
    }
}

/// A line that the ways of several pairs share, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedLine {
    /// What it is called.
    pub name: String,
    /// How much it carries.
    pub bytes_per_s: f64,
}

/// Hosts, and what is between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The names of the sites.
    pub sites: Vec<String>,
    /// Between two ranks of one host.
    pub within: Leg,
    /// The lines that are shared.
    pub lines: Vec<SharedLine>,
    legs: Vec<Leg>,
    ways: Vec<Vec<u32>>,
}

/// The most hosts: what is between each two of them is held in memory.
pub const HOSTS_MAX: usize = 1_024;

/// Why hosts are not as asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClusterError {
    /// There is none.
    #[error("there is no host: name at least one")]
    Empty,
    /// Two have one name.
    #[error("the host `{}` is given twice: give each a name of its own", excerpt(.0))]
    Twice(String),
    /// More than can be held.
    #[error("there are {0} hosts, and 1 to {HOSTS_MAX} are possible")]
    Many(usize),
    /// More ranks than there can be.
    #[error(
        "the host `{}` has {slots} slots, and 0 to {RANKS_MAX} are possible",
        excerpt(name)
    )]
    Slots {
        /// The host.
        name: String,
        /// What was asked for.
        slots: usize,
    },
    /// No launcher takes it.
    #[error(
        "`{}` is not the name of a host: write letters, digits, `.`, `-` and `_`, 253 at most, and no `-` in front",
        excerpt(.0)
    )]
    Name(String),
    /// Nothing is called so.
    #[error("there is no host `{}`: there are {}", excerpt(name), excerpt(known))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those that are there.
        known: String,
    },
}

impl Cluster {
    /// Of these hosts at these sites. `way` gives for each ordered pair of different hosts the leg between them and the lines on
    /// the way.
    ///
    /// # Errors
    /// [`ClusterError::Empty`], [`ClusterError::Many`], [`ClusterError::Slots`], [`ClusterError::Name`],
    /// [`ClusterError::Twice`].
    ///
    /// # Panics
    /// A site or a line is not there.
    pub fn new(
        hosts: Vec<Host>,
        sites: Vec<String>,
        lines: Vec<SharedLine>,
        mut way: impl FnMut(usize, usize) -> (Leg, Vec<u32>),
    ) -> Result<Self, ClusterError> {
        if hosts.is_empty() {
            return Err(ClusterError::Empty);
        }
        if hosts.len() > HOSTS_MAX {
            return Err(ClusterError::Many(hosts.len()));
        }
        let mut names = BTreeSet::new();
        for host in &hosts {
            host.check()?;
            assert!(host.site < sites.len(), "a site that is there");
            if !names.insert(host.name.as_str()) {
                return Err(ClusterError::Twice(host.name.clone()));
            }
        }
        let count = hosts.len();
        let (mut legs, mut ways) = (Vec::new(), Vec::new());
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            let (leg, lines_of) = if from == to {
                (Leg::WITHIN, Vec::new())
            } else {
                way(from, to)
            };
            assert!(
                lines_of.iter().all(|line| (*line as usize) < lines.len()),
                "a line that is there"
            );
            legs.push(leg);
            ways.push(lines_of);
        }
        Ok(Self {
            hosts,
            sites,
            within: Leg::WITHIN,
            lines,
            legs,
            ways,
        })
    }

    /// What a message meets between two hosts, or within one.
    pub fn leg(&self, from: usize, to: usize) -> &Leg {
        if from == to {
            &self.within
        } else {
            // Of hosts that are not there nothing is known.
            self.legs.get(self.pair(from, to)).unwrap_or(&self.within)
        }
    }

    /// The shared lines on the way, in order; none within a host.
    pub fn way(&self, from: usize, to: usize) -> &[u32] {
        let way = self.ways.get(self.pair(from, to));
        way.map_or(&[], Vec::as_slice)
    }

    /// Where a pair stands in the tables.
    fn pair(&self, from: usize, to: usize) -> usize {
        from.saturating_mul(self.hosts.len()).saturating_add(to)
    }

    /// How many ranks there is room for.
    pub fn slots(&self) -> usize {
        self.hosts.iter().map(|host| host.slots).sum()
    }

    /// Gives one host so many slots.
    ///
    /// # Errors
    /// [`ClusterError::Unknown`], [`ClusterError::Slots`].
    pub fn set_slots(&mut self, name: &str, slots: usize) -> Result<(), ClusterError> {
        check_slots(name, slots)?;
        match self.hosts.iter_mut().find(|host| host.name == name) {
            Some(host) => host.slots = slots,
            None => {
                const SHOWN: usize = 8;
                let names = self.hosts.iter().map(|host| host.name.as_str());
                let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
                let more = if self.hosts.len() > SHOWN {
                    ", …"
                } else {
                    ""
                };
                return Err(ClusterError::Unknown {
                    name: name.into(),
                    known: format!("{shown}{more}"),
                });
            }
        }
        Ok(())
    }

    /// Takes room away until no host has more ranks than an even share of `ranks`: its slots as a share of all, rounded up.
    pub fn even_out(&mut self, ranks: usize) {
        let all = self.slots().max(1);
        for host in &mut self.hosts {
            host.slots = host
                .slots
                .min(host.slots.saturating_mul(ranks).div_ceil(all));
        }
    }
}

/// Clusters for the tests of this crate.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// `sites` sites of `hosts` hosts with `slots` slots each; 100 Mb/s and 50 us at a site, trunks of 45 Mb/s and 5 ms between
    /// each two of them.
    pub fn sites(sites: usize, hosts: usize, slots: usize) -> Cluster {
        let all = (0..sites * hosts).map(|at| Host {
            name: format!("h{}", at + 1),
            slots,
            site: at / hosts,
        });
        let trunk = |a: usize, b: usize| (a * sites + b) as u32;
        let lines = (0..sites * sites).map(|at| SharedLine {
            name: format!("{}>{}", at / sites, at % sites),
            bytes_per_s: 45e6 / 8.0,
        });
        let names = (0..sites).map(|at| format!("site {at}")).collect();
        Cluster::new(all.collect(), names, lines.collect(), |from, to| {
            let (a, b) = (from / hosts, to / hosts);
            if a == b {
                let leg = Leg {
                    latency_s: 50e-6,
                    bytes_per_s: 12.5e6,
                };
                return (leg, Vec::new());
            }
            let leg = Leg {
                latency_s: 5e-3,
                bytes_per_s: 45e6 / 8.0,
            };
            (leg, vec![trunk(a, b)])
        })
        .unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::sites;
    use super::*;

    #[test]
    fn what_no_launcher_takes_is_refused() {
        let of = |names: &[&str], slots: usize| {
            let host = |name: &&str| Host {
                name: (*name).into(),
                slots,
                site: 0,
            };
            let hosts = names.iter().map(host).collect();
            let leg = |_, _| (Leg::WITHIN, Vec::new());
            Cluster::new(hosts, vec!["here".into()], Vec::new(), leg)
        };
        for name in [
            "b1\nrank 0=evil slot=0",
            "",
            "-x",
            "a b",
            "a:9",
            "\u{1b}[31m",
            "a=b",
        ] {
            let refused = of(&["h1", name], 1).unwrap_err().to_string();
            assert!(refused.contains("is not the name of a host"), "{refused}");
            assert!(!refused.contains(['\n', '\u{1b}']), "{refused:?}");
        }
        for slots in [4_097, u32::MAX as usize, usize::MAX] {
            let refused = of(&["h1", "h2"], slots).unwrap_err();
            assert!(matches!(refused, ClusterError::Slots { .. }), "{refused}");
        }
        of(&["node-01.example_net", "7"], 4_096).unwrap();
        let names: Vec<String> = (0..=HOSTS_MAX).map(|at| at.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(of(&names, 1).unwrap_err(), ClusterError::Many(1_025));
    }

    #[test]
    fn slots_are_set_by_name() {
        let mut cluster = sites(2, 2, 2);
        cluster.set_slots("h3", 7).unwrap();
        assert_eq!((cluster.slots(), cluster.hosts[2].slots), (13, 7));
        let unknown = cluster.set_slots("b", 1).unwrap_err().to_string();
        assert_eq!(unknown, "there is no host `b`: there are h1, h2, h3, h4");
        cluster.even_out(7);
        let slots: Vec<_> = cluster.hosts.iter().map(|host| host.slots).collect();
        assert_eq!(slots, [2, 2, 4, 2]);
    }
}
