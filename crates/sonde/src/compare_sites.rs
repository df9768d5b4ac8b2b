//! `sonde lab compare-sites`: what an option for a site changes and costs, and what its paths gain.
//!
//! Model:   hosts are matched by name. A host keeps the interfaces whose networks it has before and after; the others are new or go. A subnet
//!          goes on as the one with which it shares the most hosts, the largest shares first; a host in a subnet that goes on from none of its
//!          own needs another address there. Whoever has such a change is interrupted. Ports are those of hosts, bridges and routers on all segments.
//!          Paths are to one host from one of each kind; hosts of a kind are on the same segments before, and after.
//! Checked: `tests/lab_sites.rs`.

use crate::document::{self, Command, Document};
use crate::failure::Failure;
use crate::measure::command_line;
use crate::networks::{mbit, micros};
use crate::output::{self, Print, say};
use crate::sites::PathFigures;
use crate::testbed;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_lab::Profile;
use sonde_link::{By, SiteSpec, Subnets};
use sonde_record::Judgement;
use sonde_report::sheet;
use sonde_sys::tell;
use sonde_virtual::Between;
use std::collections::{BTreeMap, BTreeSet};

/// What one site has that another has not.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SiteChange {
    /// The first site.
    before: SiteSize,
    /// The other one.
    after: SiteSize,
    /// Hosts that only the first has.
    hosts_removed: u64,
    /// Hosts that only the other has.
    hosts_added: u64,
    /// Interfaces that hosts of both sites have only in the first.
    interfaces_removed: u64,
    /// Interfaces that hosts of both sites have only in the other.
    interfaces_added: u64,
    /// Hosts of both whose line goes to another network.
    hosts_recabled: u64,
    /// Hosts of both that need another address.
    hosts_readdressed: u64,
    /// Hosts of both with another interface, line or address: users who are interrupted.
    hosts_interrupted: u64,
    /// Paths, by the models in virtual time.
    paths: Vec<PathChange>,
}

/// How much a site is made of.
#[derive(Debug, Serialize, JsonSchema)]
struct SiteSize {
    /// Its name.
    name: String,
    /// Hosts.
    hosts: u64,
    /// Their interfaces.
    interfaces: u64,
    /// Segments.
    segments: u64,
    /// Bridges.
    bridges: u64,
    /// Routers, without hosts that are one.
    routers: u64,
    /// What is plugged into networks: lines of hosts, bridges and routers.
    ports: u64,
    /// Subnets.
    subnets: u64,
    /// Addresses of hosts and routers.
    addresses: u64,
}

/// A path in both sites.
#[derive(Debug, Serialize, JsonSchema)]
struct PathChange {
    /// The host at its begin, which stands for its kind.
    from: String,
    /// How many hosts are of this kind.
    hosts: u64,
    /// The host at its end.
    to: String,
    /// In the first site.
    before: PathFigures,
    /// In the other one.
    after: PathFigures,
}

/// An interface of a host: the line, the network that it joins, the segment, and the subnet.
struct End<'a> {
    line: (usize, u16),
    network: &'a str,
    segment: &'a str,
    subnet: usize,
}

/// A site, and what its hosts have there.
struct Plan<'a> {
    site: &'a SiteSpec,
    subnets: Subnets,
    /// By name: its number, and its interfaces.
    hosts: BTreeMap<&'a str, (u16, Vec<End<'a>>)>,
}

impl<'a> Plan<'a> {
    fn new(site: &'a SiteSpec) -> Result<Self, Failure> {
        let subnets = site.subnets().map_err(Failure::usage)?;
        let mut hosts = BTreeMap::new();
        for (number, name) in (0..).zip(site.names()) {
            let ends = subnets.ends.iter().filter(|end| end.host == number);
            let of = |end: &sonde_link::HostPort| End {
                line: (end.carrier, end.station),
                network: &site.segment[end.segment].network.name,
                segment: &site.segment[end.segment].name,
                subnet: subnets.of[end.segment],
            };
            hosts.insert(name, (number, ends.map(of).collect()));
        }
        Ok(Self {
            site,
            subnets,
            hosts,
        })
    }

    fn size(&self) -> SiteSize {
        let site = self.site;
        let (interfaces, ports) = self.subnets.lines();
        let boxes = site.router.iter().filter(|one| one.by == By::Model);
        let routed: usize = boxes.clone().map(|one| one.joins.len()).sum();
        SiteSize {
            name: site.name.clone(),
            hosts: self.hosts.len() as u64,
            interfaces: interfaces as u64,
            segments: site.segment.len() as u64,
            bridges: site.bridge.len() as u64,
            routers: boxes.count() as u64,
            ports: ports as u64,
            subnets: self.subnets.count() as u64,
            addresses: (self.subnets.ends.len() + routed) as u64,
        }
    }

    fn ends(&self, host: &str) -> &[End<'a>] {
        self.hosts.get(host).map_or(&[], |(_, ends)| ends)
    }

    fn figures(
        &self,
        (from, to): (&str, &str),
        profile: Profile,
        warnings: &mut Vec<String>,
    ) -> Result<PathFigures, Failure> {
        let ports = self.subnets.between(self.hosts[from].0, self.hosts[to].0);
        let Some((first, last)) = ports else {
            return Ok(PathFigures::default());
        };
        let path = Between {
            site: self.site,
            from: first,
            to: last,
        };
        let called = format!("{from} to {to}");
        PathFigures::of(&self.subnets, path, profile, &called, warnings)
    }
}

/// Where a host is on something else than before, of subnets or of networks: one after goes on from that before with which it shares the most
/// hosts.
fn moved<'a>(
    (before, after): (&Plan<'_>, &Plan<'_>),
    kept: &[&'a str],
    of: fn(&End<'_>) -> usize,
) -> BTreeSet<&'a str> {
    let mut shared: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for host in kept {
        for new in after.ends(host) {
            for old in before.ends(host) {
                *shared.entry((of(new), of(old))).or_default() += 1;
            }
        }
    }
    let mut shared: Vec<_> = shared.into_iter().collect();
    shared.sort_by_key(|(_, hosts)| std::cmp::Reverse(*hosts));
    let mut goes_on = BTreeMap::new();
    for ((new, old), _) in shared {
        let is_taken = goes_on.values().any(|taken| *taken == old);
        if !is_taken {
            goes_on.entry(new).or_insert(old);
        }
    }
    let is_moved = |host: &&str| {
        let is_known = |end: &End<'_>| {
            let was = goes_on.get(&of(end));
            before.ends(host).iter().any(|old| was == Some(&of(old)))
        };
        !after.ends(host).iter().all(is_known)
    };
    kept.iter().copied().filter(is_moved).collect()
}

/// How many networks of `these` are not among `those`, where virtual LANs on one line are one.
fn beyond(these: &[End<'_>], those: &[End<'_>]) -> u64 {
    let networks = |ends: &[End<'_>]| -> Vec<String> {
        let lines: BTreeMap<_, _> = ends.iter().map(|end| (end.line, end.network)).collect();
        lines.into_values().map(str::to_owned).collect()
    };
    let mut rest = networks(those);
    let mut count = 0;
    for network in networks(these) {
        match rest.iter().position(|other| *other == network) {
            Some(at) => drop(rest.swap_remove(at)),
            None => count += 1,
        }
    }
    count
}

fn change(
    (before, after): (&Plan<'_>, &Plan<'_>),
    to: Option<&str>,
    profile: Profile,
    warnings: &mut Vec<String>,
) -> Result<SiteChange, Failure> {
    let names = before.site.names();
    let is_kept = |name: &&str| after.hosts.contains_key(name);
    let kept: Vec<&str> = names.iter().copied().filter(is_kept).collect();
    let to = match to {
        Some(named) => kept
            .iter()
            .copied()
            .find(|host| *host == named)
            .ok_or_else(|| {
                Failure::usage(format!(
                    "`{named}` is not a host of both sites, which have {}",
                    kept.iter().copied().take(8).collect::<Vec<_>>().join(", ")
                ))
            })?,
        // The first of those with the most interfaces: a server, where there is one.
        None => {
            let most = |host: &&str| before.ends(host).len().max(after.ends(host).len());
            let first = kept.iter().copied().rev().max_by_key(most);
            first.ok_or_else(|| {
                Failure::usage(format!(
                    "`{}` and `{}` have no host of one name, by which they could be compared",
                    before.site.name, after.site.name
                ))
            })?
        }
    };
    let readdressed = moved((before, after), &kept, |end| end.subnet);
    let recabled = moved((before, after), &kept, |end| end.line.0);
    let (mut added, mut removed, mut interrupted) = (0, 0, 0);
    // By the segments before and after: the first host, and how many.
    let mut kinds: BTreeMap<[Vec<&str>; 2], (usize, &str, u64)> = BTreeMap::new();
    for (place, host) in kept.iter().enumerate() {
        let (old, new) = (before.ends(host), after.ends(host));
        let (more, fewer) = (beyond(new, old), beyond(old, new));
        let is_moved = readdressed.contains(host) || recabled.contains(host);
        added += more;
        removed += fewer;
        interrupted += u64::from(is_moved || more + fewer > 0);
        let kind = [old, new].map(|ends| ends.iter().map(|end| end.segment).collect());
        if *host != to {
            kinds.entry(kind).or_insert((place, host, 0)).2 += 1;
        }
    }
    let mut ordered: Vec<_> = kinds.into_values().collect();
    ordered.sort_unstable();
    let mut paths = Vec::new();
    for (_, from, hosts) in ordered {
        paths.push(PathChange {
            from: from.to_owned(),
            hosts,
            to: to.to_owned(),
            before: before.figures((from, to), profile, warnings)?,
            after: after.figures((from, to), profile, warnings)?,
        });
    }
    Ok(SiteChange {
        before: before.size(),
        after: after.size(),
        hosts_removed: (before.hosts.len() - kept.len()) as u64,
        hosts_added: (after.hosts.len() - kept.len()) as u64,
        interfaces_removed: removed,
        interfaces_added: added,
        hosts_recabled: recabled.len() as u64,
        hosts_readdressed: readdressed.len() as u64,
        hosts_interrupted: interrupted,
        paths,
    })
}

/// `sonde lab compare-sites`.
pub fn compare(
    selectors: [&str; 2],
    to: Option<&str>,
    profile: Profile,
    print: Print,
) -> Result<i32, Failure> {
    let [before, after] = selectors.map(testbed::site);
    let (before, after) = (before?, after?);
    let mut warnings = Vec::new();
    let plans = (&Plan::new(&before)?, &Plan::new(&after)?);
    let change = change(plans, to, profile, &mut warnings)?;
    match print {
        Print::Csv => {
            return Err(Failure::usage(
                "what sites change has rows of several kinds, which no CSV has: write `--json`",
            ));
        }
        Print::Json => {
            let verdict = Judgement::none("a comparison of sites makes no judgement");
            document::print(&Document {
                warnings,
                ..Document::new(Command::LabCompareSites(&change), &command_line(), verdict)
            })?;
            return Ok(0);
        }
        _ => {}
    }
    show(&change);
    warnings
        .iter()
        .for_each(|warning| tell!("sonde: {warning}"));
    Ok(0)
}

fn show(change: &SiteChange) {
    let (before, after) = (&change.before, &change.after);
    let rows = [
        ("hosts", before.hosts, after.hosts),
        ("interfaces of hosts", before.interfaces, after.interfaces),
        ("segments", before.segments, after.segments),
        ("bridges", before.bridges, after.bridges),
        ("routers", before.routers, after.routers),
        ("ports", before.ports, after.ports),
        ("subnets", before.subnets, after.subnets),
        ("addresses", before.addresses, after.addresses),
    ];
    let rows = rows
        .map(|(what, before, after)| vec![what.to_owned(), before.to_string(), after.to_string()]);
    let shown = |text: String| say!("{text}");
    shown(
        sheet(&["", &before.name, &after.name], rows.to_vec())
            .loose()
            .text(output::width()),
    );
    let SiteChange {
        hosts_removed,
        hosts_added,
        interfaces_removed,
        interfaces_added,
        hosts_recabled,
        hosts_readdressed,
        hosts_interrupted,
        ..
    } = change;
    let kept = before.hosts - hosts_removed;
    output::paragraph(&format!(
        "{kept} hosts stay, {hosts_removed} go and {hosts_added} come. Of those that stay {hosts_interrupted} are interrupted: they get {interfaces_added}          interfaces for {interfaces_removed}, {hosts_recabled} a line to another network, and {hosts_readdressed} need another address."
    ));
    let nodes = |figures: &PathFigures| {
        figures
            .nodes
            .map_or_else(|| "-".into(), |nodes| nodes.to_string())
    };
    let times = |path: &PathChange| {
        let ends = path
            .before
            .tcp_expected_bps
            .zip(path.after.tcp_expected_bps);
        let ratio = ends.filter(|(before, _)| *before > 0);
        ratio.map_or_else(
            || "-".into(),
            |(before, after)| format!("{:.2}", after as f64 / before as f64),
        )
    };
    let rows = change.paths.iter().map(|path| {
        vec![
            format!("{} to {}", path.from, path.to),
            path.hosts.to_string(),
            format!("{}, {}", nodes(&path.before), nodes(&path.after)),
            micros(path.before.one_way_1b_ns),
            micros(path.after.one_way_1b_ns),
            mbit(path.before.tcp_expected_bps),
            mbit(path.after.tcp_expected_bps),
            times(path),
        ]
    });
    let heads = [
        "path, of one host of each kind",
        "hosts",
        "nodes",
        "1 B one way
before, µs",
        "
after, µs",
        "TCP expected
before, Mb/s",
        "
after, Mb/s",
        "times",
    ];
    shown(
        sheet(&heads, rows.collect::<Vec<_>>())
            .loose()
            .text(output::width()),
    );
    output::paragraph(
        "Ports are those of hosts, bridges and routers. Paths are by the models, with nothing else on the site. Run something on either: `sonde lab run --site NAME -- PROGRAM`.",
    );
}
