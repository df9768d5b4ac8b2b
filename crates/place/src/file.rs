//! A cluster written as TOML.
//!
//! Model:   `[[site]]` has a `name`, `hosts`, `slots` (1), the `rate` of each host's line and the `latency` between two of its
//!          hosts; `[[trunk]]` joins two sites `between` with a `rate` and a `latency`; `[within]` says what a message takes
//!          within a host. Between sites a message takes the trunks of least latency in sum, half of the latency of either
//!          site, and the least rate on the way. Trunks and hosts' lines are shared lines, in either direction.
//! Units:   rates and times carry theirs in the text.
//! Checked: `a_cluster_is_read`, `what_is_wrong_is_said`.

use crate::{Cluster, ClusterError, Host, Leg, SharedLine};
use serde::Deserialize;
use sonde_units::{BitRate, Span, excerpt, excerpts};
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
    for host in &hosts {
        for direction in ["from", "to"] {
            lines.push(SharedLine {
                name: format!("the line {direction} {}", host.name),
                bytes_per_s: rate(written.site[host.site].rate),
            });
        }
    }
    let first_trunk = lines.len();
    for (trunk, [a, b]) in written.trunk.iter().zip(&trunks) {
        for (from, to) in [(a, b), (b, a)] {
            lines.push(SharedLine {
                name: format!(
                    "the trunk {} > {}",
                    written.site[*from].name, written.site[*to].name
                ),
                bytes_per_s: rate(trunk.rate),
            });
        }
    }
    let site_of: Vec<usize> = hosts.iter().map(|host| host.site).collect();
    let way = |from: usize, to: usize| {
        let (a, b) = (site_of[from], site_of[to]);
        let ends = [&written.site[a], &written.site[b]];
        let mut latency = ends
            .map(|site| seconds(site.latency) / 2.0)
            .iter()
            .sum::<f64>();
        let mut least = rate(ends[0].rate).min(rate(ends[1].rate));
        let mut way = vec![2 * from as u32];
        for (trunk, backwards) in &routes[a * written.site.len() + b] {
            latency += seconds(written.trunk[*trunk].latency);
            least = least.min(rate(written.trunk[*trunk].rate));
            way.push((first_trunk + 2 * trunk + usize::from(*backwards)) as u32);
        }
        way.push(2 * to as u32 + 1);
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
        .map(|trunk| Ok([place(&trunk.between[0])?, place(&trunk.between[1])?]))
        .collect()
}

/// By pair of sites: the trunks of least latency in sum, and which of them are gone along backwards (Dijkstra).
fn routes(written: &Written, trunks: &[[usize; 2]]) -> Result<Vec<Route>, FileError> {
    let count = written.site.len();
    let mut all = Vec::with_capacity(count * count);
    for from in 0..count {
        let mut best: Vec<Option<(Span, Route)>> = vec![None; count];
        best[from] = Some((Span::ZERO, Vec::new()));
        let mut open: Vec<usize> = (0..count).collect();
        loop {
            let nearest = open
                .iter()
                .filter_map(|at| Some((best[*at].as_ref()?.0, *at)))
                .min();
            let Some((far, at)) = nearest else { break };
            open.retain(|other| *other != at);
            let path = best[at]
                .as_ref()
                .map(|(_, path)| path.clone())
                .unwrap_or_default();
            for (trunk, [a, b]) in trunks.iter().enumerate() {
                let (to, backwards) = match at {
                    _ if at == *a => (*b, false),
                    _ if at == *b => (*a, true),
                    _ => continue,
                };
                let length = far + written.trunk[trunk].latency;
                if best[to].as_ref().is_none_or(|(known, _)| length < *known) {
                    let mut path = path.clone();
                    path.push((trunk, backwards));
                    best[to] = Some((length, path));
                }
            }
        }
        for (to, route) in best.into_iter().enumerate() {
            let name = |at: usize| written.site[at].name.clone();
            let (_, path) = route.ok_or_else(|| FileError::Apart(name(from), name(to)))?;
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
        assert!(wrong(&TWO.replace("\"o1\"", "\"b1\"")).contains("`b1` is there twice"));
        assert!(wrong(&TWO.replace("slots = 4", "slots = -4")).contains("-4"));
        assert!(wrong(&TWO.replace("45Mbit", "45")).contains("45"));
        assert!(wrong("").contains("no host"));
    }
}
