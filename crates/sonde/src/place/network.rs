//! A network of the catalogue, a file, or what was measured between hosts, as the cluster that ranks are placed on.
//!
//! Model:   of a network the legs are the model's own times: latency is what a frame with one byte takes, the rate what the MTU's user bytes
//!          (less 40 of TCP/IP) and the time of each further frame say. What hosts' processors and libraries add is not in it: it is
//!          the same wherever a rank runs. Of a run of `probe pattern all-pairs` they are the medians of each pair, and a host's line
//!          carries what the best of its streams did. Hosts that fall into groups far from each other are taken as sites, and the
//!          best stream from one to another as what a line between the two carries, which all their pairs share.
//! Checked: `sites_of_a_network`, `a_run_of_all_pairs`.

use crate::failure::Failure;
use crate::networks::UDP_1B;
use sonde_link::{LineOf, NetworkSpec, Port};
use sonde_place::{Cluster, Host, Leg, SharedLine};
use sonde_report::matrix::MatrixView;
use sonde_units::Span;

/// For messages of this size groups are looked for.
const GROUPED_BY: u64 = 65_536;
/// The headers of TCP and IP.
const HEADERS: u64 = 40;

fn seconds(span: Span) -> f64 {
    span.as_picos() as f64 * 1e-12
}

/// Bytes a second of frames that take so long each; without limit where they take no time.
fn rate(spec: &NetworkSpec, frame: Span) -> f64 {
    if frame.is_zero() {
        f64::INFINITY
    } else {
        spec.mtu.saturating_sub(HEADERS).max(1) as f64 / seconds(frame)
    }
}

/// The hosts h1 to hN of a network, with `slots` each.
pub fn of_network(spec: &NetworkSpec, hosts: u16, slots: usize) -> Result<Cluster, Failure> {
    let shared = sonde_link::shared_lines(spec, hosts).map_err(Failure::usage)?;
    let times = sonde_virtual::pair_times(spec, hosts, UDP_1B).map_err(Failure::cannot)?;
    let places = shared
        .site_of
        .iter()
        .map(|site| usize::from(*site) + 1)
        .max();
    let sites = match (&shared.sites[..], places) {
        ([], Some(1) | None) => vec![spec.name.clone()],
        ([], Some(places)) => (0..places).map(|at| format!("switch {at}")).collect(),
        (named, _) => named.to_vec(),
    };
    let switch = |at: u16| {
        sites
            .get(usize::from(at))
            .cloned()
            .unwrap_or_else(|| format!("switch {at}"))
    };
    let lines = shared.lines.iter().map(|(of, frame)| SharedLine {
        name: match of {
            LineOf::From(Port(port)) => format!("the line from h{}", port + 1),
            LineOf::To(Port(port)) => format!("the line to h{}", port + 1),
            LineOf::Trunk { from, to } => format!("the trunk {} > {}", switch(*from), switch(*to)),
            LineOf::All => format!("{}, which all share", spec.name),
        },
        bytes_per_s: rate(spec, *frame),
    });
    let all = (0..hosts).map(|at| Host {
        name: format!("h{}", at + 1),
        slots,
        site: usize::from(shared.site_of[usize::from(at)]),
    });
    let way = |from: usize, to: usize| {
        let time = times[from * usize::from(hosts) + to].expect("two hosts");
        let leg = Leg {
            latency_s: seconds(time.one_way),
            bytes_per_s: rate(spec, time.each),
        };
        (leg, shared.way(Port(from as u16), Port(to as u16)).to_vec())
    };
    Cluster::new(all.collect(), sites.clone(), lines.collect(), way).map_err(Failure::usage)
}

/// The hosts of a run of all pairs, with `slots` each.
pub fn of_pairs(view: &MatrixView, slots: usize) -> Result<Cluster, Failure> {
    let count = view.hosts.len();
    let mut legs: Vec<Option<Leg>> = vec![None; count * count];
    for pair in &view.pairs {
        let (Some(latency), Some(rate)) = (pair.latency_ns, pair.rate_bps) else {
            continue;
        };
        legs[pair.src * count + pair.dst] = Some(Leg {
            latency_s: latency.0 * 1e-9,
            bytes_per_s: rate.0 / 8.0,
        });
    }
    for (from, to) in (0..count * count).map(|at| (at / count, at % count)) {
        // What was measured one way stands for the other where that was not.
        let leg = legs[from * count + to].or(legs[to * count + from]);
        if from != to && leg.is_none() {
            return Err(Failure::cannot(format!(
                "the run has no latency and stream between {} and {}: measure all pairs of these hosts with \
                 `sonde probe pattern all-pairs`",
                view.hosts[from], view.hosts[to]
            )));
        }
        legs[from * count + to] = leg;
    }
    let best = |of: &dyn Fn(usize) -> usize| {
        let rates = (0..count)
            .filter_map(|other| legs[of(other)])
            .map(|leg| leg.bytes_per_s);
        rates.fold(0.0, f64::max)
    };
    let mut lines = Vec::new();
    for host in 0..count {
        lines.push(SharedLine {
            name: format!("the line from {}", view.hosts[host]),
            bytes_per_s: best(&|other| host * count + other),
        });
        lines.push(SharedLine {
            name: format!("the line to {}", view.hosts[host]),
            bytes_per_s: best(&|other| other * count + host),
        });
    }
    let hosts: Vec<_> = view
        .hosts
        .iter()
        .map(|name| Host {
            name: name.clone(),
            slots,
            site: 0,
        })
        .collect();
    let leg = |from: usize, to: usize| legs[from * count + to].expect("each pair was looked at");
    let way = |from: usize, to: usize| (leg(from, to), vec![2 * from as u32, 2 * to as u32 + 1]);
    let whole =
        Cluster::new(hosts, vec![view.network.clone()], lines, way).map_err(Failure::usage)?;
    let group = sonde_place::groups(&whole, GROUPED_BY);
    let groups = group.iter().max().map_or(1, |last| last + 1);
    if groups == 1 {
        return Ok(whole);
    }
    in_groups(&whole, &group, groups)
}

/// The same hosts at sites of their own, with a line between each two of them.
fn in_groups(whole: &Cluster, group: &[usize], groups: usize) -> Result<Cluster, Failure> {
    let count = whole.hosts.len();
    let name = |of: usize| {
        let mine = (0..count).filter(|host| group[*host] == of);
        mine.map(|host| whole.hosts[host].name.as_str())
            .collect::<Vec<_>>()
            .join("+")
    };
    let sites: Vec<_> = (0..groups).map(name).collect();
    let mut lines = whole.lines.clone();
    let first = lines.len();
    for (from, to) in (0..groups * groups).map(|at| (at / groups, at % groups)) {
        let all = (0..count * count).map(|at| (at / count, at % count));
        let across = all.filter(|(a, b)| from != to && group[*a] == from && group[*b] == to);
        lines.push(SharedLine {
            name: format!("what joins {} > {}", sites[from], sites[to]),
            bytes_per_s: across
                .map(|(a, b)| whole.leg(a, b).bytes_per_s)
                .fold(0.0, f64::max),
        });
    }
    let hosts = whole.hosts.iter().zip(group).map(|(host, site)| Host {
        site: *site,
        ..host.clone()
    });
    let way = |from: usize, to: usize| {
        let mut way = whole.way(from, to).to_vec();
        if group[from] != group[to] {
            way.insert(1, (first + group[from] * groups + group[to]) as u32);
        }
        (*whole.leg(from, to), way)
    };
    Cluster::new(hosts.collect(), sites.clone(), lines, way).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::Number;
    use sonde_report::matrix::MatrixPair;

    #[test]
    fn sites_of_a_network() {
        let text = include_str!("../../../../plans/examples/networks/sites.toml");
        let spec = sonde_link::parse("sites", text).unwrap();
        let cluster = of_network(&spec, 6, 2).unwrap();
        assert_eq!(
            (cluster.slots(), cluster.sites.join(" ")),
            (12, "bergen oslo svalbard".into())
        );
        let sites: Vec<_> = cluster.hosts.iter().map(|host| host.site).collect();
        assert_eq!(sites, [0, 0, 1, 1, 2, 2]);
        let far = cluster.leg(0, 3);
        assert!((2.5e-3..2.7e-3).contains(&far.latency_s), "{far:?}");
        // 1460 of 1538 bytes of 45 Mb/s.
        assert!(
            (far.bytes_per_s * 8.0 / 45e6 - 1_460.0 / 1_538.0).abs() < 0.01,
            "{far:?}"
        );
        assert!(cluster.leg(0, 4).latency_s > 0.25);
        let names: Vec<_> = cluster
            .way(0, 4)
            .iter()
            .map(|line| cluster.lines[*line as usize].name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "the line from h1",
                "the trunk bergen > oslo",
                "the trunk oslo > svalbard",
                "the line to h5"
            ]
        );
        let bus = of_network(&sonde_link::named("ethernet-10").unwrap(), 3, 1).unwrap();
        assert_eq!(bus.lines.len(), 1);
        assert!(bus.lines[0].name.contains("ethernet-10"));
        assert!(
            of_network(&spec, 40, 1).is_err(),
            "the sites have twelve places"
        );
    }

    #[test]
    fn a_run_of_all_pairs() {
        let pair = |src, dst, rate| MatrixPair {
            src,
            dst,
            latency_ns: Some(Number(50_000.0)),
            tail_ns: None,
            rate_bps: Some(Number(rate)),
            duplex_bps: None,
            bad: false,
        };
        let mut view = MatrixView {
            network: "eth".into(),
            hosts: ["a", "b", "c"].map(String::from).to_vec(),
            pairs: vec![pair(0, 1, 8e8), pair(1, 0, 4e8), pair(0, 2, 8e6)],
        };
        let refused = of_pairs(&view, 1).unwrap_err().to_string();
        assert!(
            refused.contains("between b and c") && refused.contains("all-pairs"),
            "{refused}"
        );
        view.pairs.push(pair(2, 1, 8e7));
        let cluster = of_pairs(&view, 2).unwrap();
        assert!(
            (cluster.leg(1, 2).bytes_per_s - 1e7).abs() < 1.0,
            "the other way stands for it"
        );
        assert!(
            (cluster.lines[0].bytes_per_s - 1e8).abs() < 1.0
                && cluster.lines[0].name == "the line from a"
        );
        assert_eq!(cluster.sites, ["a+b", "c"], "c is far from both");
        let joins = cluster.way(0, 2)[1] as usize;
        let line = &cluster.lines[joins];
        assert!(
            line.name == "what joins a+b > c" && (line.bytes_per_s - 1e7).abs() < 1.0,
            "{line:?}"
        );
        assert_eq!(cluster.way(1, 2)[1] as usize, joins);
        assert_eq!(cluster.way(0, 1).len(), 2);
    }
}
