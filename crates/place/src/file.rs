//! A cluster written as TOML.
//!
//! Model:   `[[site]]` has a `name`, `hosts`, `slots` (1), the `rate` of each host's line and the `latency` between two of its
//!          hosts; `[[trunk]]` joins two sites `between` with a `rate` and a `latency`; `[within]` says what a message takes
//!          within a host. Between sites a message takes the trunks of least latency in sum, half of the latency of either
//!          site, and the least rate on the way. Trunks and hosts' lines are shared lines, in either direction.
//! Units:   rates and times carry theirs in the text.
//! Checked: `a_cluster_is_read`, `what_is_wrong_is_said`.
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

use crate::{Cluster, ClusterError, Host, Leg, SharedLine};
use serde::Deserialize;
use sonde_units::{BitRate, Span, excerpt, excerpts};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Why a text is not a cluster.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FileError {
    /// It is not of the form.
    #[error("{0}")]
    Form(String),
    /// A trunk joins what is not there.
    #[error(
        "a trunk is between `{}` and another site, but the sites are {}",
        excerpt(name),
        excerpt(known)
    )]
    NoSuchSite {
        /// What it names.
        name: String,
        /// What is there.
        known: String,
    },
    /// Sites that nothing joins.
    #[error(
        "nothing joins the sites `{}` and `{}`: write a [[trunk]] with both in `between`, a rate and a latency",
        excerpt(.0),
        excerpt(.1)
    )]
    Apart(String, String),
    /// The hosts are not as they should be.
    #[error(transparent)]
    Hosts(#[from] ClusterError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    site: Vec<Site>,
    #[serde(default)]
    trunk: Vec<Trunk>,
    within: Option<Within>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Site {
    name: String,
    hosts: Vec<String>,
    #[serde(default = "one")]
    slots: usize,
    rate: BitRate,
    latency: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trunk {
    #[serde(deserialize_with = "sonde_units::two")]
    between: [String; 2],
    rate: BitRate,
    latency: Span,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Within {
    rate: BitRate,
    latency: Span,
}

/// Trunks from one site to another, and whether each is gone along backwards.
type Route = Vec<(usize, bool)>;

const fn one() -> usize {
    1
}

fn seconds(span: Span) -> f64 {
    span.as_picos() as f64 * 1e-12
}

fn rate(rate: BitRate) -> f64 {
    rate.bps() as f64 / 8.0
}

/// Reads a cluster.
///
/// # Errors
/// [`FileError`].
pub fn parse(text: &str) -> Result<Cluster, FileError> {
    let written: Written =
        toml::from_str(text).map_err(|error| FileError::Form(excerpts(&error.to_string())))?;
    let trunks = ends(&written)?;
    let routes = routes(&written, &trunks)?;
    let sites = written.site.iter().enumerate();
    let hosts: Vec<Host> = sites
        .flat_map(|(at, site)| {
            site.hosts.iter().map(move |name| Host {
                name: name.clone(),
                slots: site.slots,
                site: at,
            })
        })
        .collect();
    let mut lines = Vec::new();
    for site in &written.site {
        for host in &site.hosts {
            for direction in ["from", "to"] {
                lines.push(SharedLine {
                    name: format!("the line {direction} {host}"),
                    bytes_per_s: rate(site.rate),
                });
            }
        }
    }
    let first_trunk = lines.len();
    for trunk in &written.trunk {
        let [a, b] = &trunk.between;
        for (from, to) in [(a, b), (b, a)] {
            lines.push(SharedLine {
                name: format!("the trunk {from} > {to}"),
                bytes_per_s: rate(trunk.rate),
            });
        }
    }
    // Two lines of each host, then two of each trunk.
    let line = |first: usize, at: usize, back: bool| {
        let pair = at.saturating_mul(2).saturating_add(usize::from(back));
        first.saturating_add(pair) as u32
    };
    let site_of: Vec<(usize, &Site)> = written
        .site
        .iter()
        .enumerate()
        .flat_map(|(at, site)| site.hosts.iter().map(move |_| (at, site)))
        .collect();
    let way = |from: usize, to: usize| {
        let ends = site_of.get(from).zip(site_of.get(to));
        let Some(((a, one), (b, other))) = ends else {
            return (Leg::WITHIN, Vec::new());
        };
        let mut latency = (seconds(one.latency) + seconds(other.latency)) / 2.0;
        let mut least = rate(one.rate).min(rate(other.rate));
        let mut way = vec![line(0, from, false)];
        let pair = a.saturating_mul(written.site.len()).saturating_add(*b);
        for (trunk, backwards) in routes.get(pair).into_iter().flatten() {
            if let Some(written) = written.trunk.get(*trunk) {
                latency += seconds(written.latency);
                least = least.min(rate(written.rate));
            }
            way.push(line(first_trunk, *trunk, *backwards));
        }
        way.push(line(0, to, true));
        (
            Leg {
                latency_s: latency,
                bytes_per_s: least,
            },
            way,
        )
    };
    let names = written.site.iter().map(|site| site.name.clone()).collect();
    let mut cluster = Cluster::new(hosts, names, lines, way)?;
    if let Some(within) = written.within {
        cluster.within = Leg {
            latency_s: seconds(within.latency),
            bytes_per_s: rate(within.rate),
        };
    }
    Ok(cluster)
}

/// The two sites of each trunk.
fn ends(written: &Written) -> Result<Vec<[usize; 2]>, FileError> {
    let place = |name: &String| {
        let at = written.site.iter().position(|site| site.name == *name);
        at.ok_or_else(|| {
            let known: Vec<_> = written.site.iter().map(|site| site.name.as_str()).collect();
            FileError::NoSuchSite {
                name: name.clone(),
                known: known.join(", "),
            }
        })
    };
    let trunks = written.trunk.iter();
    trunks
        .map(|trunk| {
            let [one, other] = &trunk.between;
            Ok([place(one)?, place(other)?])
        })
        .collect()
}

/// By pair of sites: the trunks of least latency in sum, and which of them are gone along backwards (Dijkstra).
fn routes(written: &Written, trunks: &[[usize; 2]]) -> Result<Vec<Route>, FileError> {
    let count = written.site.len();
    let mut all = Vec::new();
    for (from, begin) in written.site.iter().enumerate() {
        // What is reached, and what of it is settled.
        let mut best: BTreeMap<usize, (Span, Route)> = BTreeMap::new();
        best.insert(from, (Span::ZERO, Route::new()));
        let mut open: BTreeSet<usize> = (0..count).collect();
        loop {
            let reached = best.iter().filter(|(at, _)| open.contains(at));
            let nearest = reached.min_by_key(|(at, (far, _))| (*far, **at));
            let Some((&at, (far, path))) = nearest else {
                break;
            };
            let (far, path) = (*far, path.clone());
            open.remove(&at);
            for (trunk, ([a, b], written)) in trunks.iter().zip(&written.trunk).enumerate() {
                let (to, backwards) = match at {
                    _ if at == *a => (*b, false),
                    _ if at == *b => (*a, true),
                    _ => continue,
                };
                let length = far.saturating_add(written.latency);
                if best.get(&to).is_none_or(|(known, _)| length < *known) {
                    let mut path = path.clone();
                    path.push((trunk, backwards));
                    best.insert(to, (length, path));
                }
            }
        }
        for (to, end) in written.site.iter().enumerate() {
            let (_, path) = best
                .remove(&to)
                .ok_or_else(|| FileError::Apart(begin.name.clone(), end.name.clone()))?;
            all.push(path);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
        [within]
        rate = "8Gbit"
        latency = "2us"
        [[site]]
        name = "bergen"
        hosts = ["b1", "b2"]
        slots = 4
        rate = "1Gbit"
        latency = "100us"
        [[site]]
        name = "oslo"
        hosts = ["o1"]
        rate = "100Mbit"
        latency = "200us"
        [[trunk]]
        between = ["bergen", "oslo"]
        rate = "45Mbit"
        latency = "3ms"
    "#;

    #[test]
    fn a_cluster_is_read() {
        let cluster = parse(TWO).unwrap();
        assert_eq!(
            (cluster.hosts.len(), cluster.slots(), cluster.sites.len()),
            (3, 9, 2)
        );
        let far = cluster.leg(0, 2);
        assert!(
            (far.latency_s - 3.15e-3).abs() < 1e-12 && (far.bytes_per_s - 45e6 / 8.0).abs() < 1.0
        );
        let near = cluster.leg(0, 1);
        assert!((near.latency_s - 100e-6).abs() < 1e-12 && (near.bytes_per_s - 125e6).abs() < 1.0);
        assert!((cluster.leg(1, 1).latency_s - 2e-6).abs() < 1e-12);
        let named = |from, to| -> Vec<&str> {
            let way = cluster.way(from, to).iter();
            way.map(|line| cluster.lines[*line as usize].name.as_str())
                .collect()
        };
        assert_eq!(
            named(2, 1),
            [
                "the line from o1",
                "the trunk oslo > bergen",
                "the line to b2"
            ]
        );
        assert_eq!(named(0, 1), ["the line from b1", "the line to b2"]);
        assert!(cluster.way(2, 2).is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| parse(text).unwrap_err().to_string();
        assert!(
            wrong(&TWO.replace("between = [\"bergen\"", "between = [\"bodo\""))
                .contains("the sites are bergen, oslo")
        );
        let apart = &TWO[..TWO.find("[[trunk]]").unwrap()];
        assert!(wrong(apart).contains("nothing joins the sites `bergen` and `oslo`"));
        assert!(wrong(&TWO.replace("\"o1\"", "\"b1\"")).contains("`b1` is given twice"));
        assert!(wrong(&TWO.replace("slots = 4", "slots = -4")).contains("-4"));
        assert!(wrong(&TWO.replace("45Mbit", "45")).contains("45"));
        assert!(wrong("").contains("no host"));
    }
}
