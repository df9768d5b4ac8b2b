//! A network or site of the catalogue, a file, or what was measured between hosts, as the cluster that ranks are placed on.
//!
//! Model:   of a network and a site the legs are the model's own times: latency is what a frame with one byte takes, the rate what the MTU's
//!          user bytes (less 40 of TCP/IP) and the time of each further frame say. What hosts' processors and libraries add is not in it: it is
//!          the same wherever a rank runs. Background traffic of a network's file takes its share of each line that it passes, whenever it
//!          begins; that frames wait for it is not in the latency. Of a run of `probe pattern all-pairs` they are the medians of each pair, and a host's line
//!          carries what the best of its streams did. Hosts that fall into groups far from each other are taken as sites, and the
//!          best stream from one to another as what a line between the two carries, which all their pairs share.
//! Checked: `sites_of_a_network`, `a_run_of_all_pairs`, `load_takes_its_share_of_the_lines_that_it_passes`.

use crate::failure::Failure;
use crate::networks::UDP_1B;
use sonde_link::{LineOf, NetworkSpec, Port, SharedLines, SiteSpec, Subnets};
use sonde_place::{Cluster, Host, Leg, SharedLine};
use sonde_report::matrix::MatrixView;
use sonde_units::Span;
use std::collections::BTreeMap;

/// For messages of this size groups are looked for.
const GROUPED_BY: u64 = 65_536;
/// The headers of TCP and IP.
const HEADERS: u64 = 40;

fn seconds(span: Span) -> f64 {
    span.as_picos() as f64 * 1e-12
}

/// Bytes a second of frames of this MTU that take so long each; without limit where they take no time.
fn rate(mtu: u64, frame: Span) -> f64 {
    if frame.is_zero() {
        f64::INFINITY
    } else {
        mtu.saturating_sub(HEADERS).max(1) as f64 / seconds(frame)
    }
}

/// Of a line that is full with load: a placement that needs it costs much, and still has a cost.
const LEAST_LEFT: f64 = 0.001;

/// The lines of a segment's network among those of all, and its places among the sites.
struct Part {
    shared: SharedLines,
    first_line: usize,
    first_site: usize,
}

/// The lines and places of all segments, by segment; a virtual LAN's are its carrier's.
#[derive(Default)]
struct Parts {
    of: BTreeMap<usize, Part>,
    lines: Vec<SharedLine>,
    sites: Vec<String>,
}

impl Parts {
    /// Adds those of a segment's network; `alone` is the only one.
    fn add(
        &mut self,
        (number, name, spec): (usize, &str, &NetworkSpec),
        stations: u16,
        alone: bool,
        called: impl Fn(Port) -> String,
    ) -> Result<(), Failure> {
        let shared = sonde_link::shared_lines(spec, stations).map_err(Failure::usage)?;
        let of = |place: String| match alone {
            true => place,
            false => format!("{name}, {place}"),
        };
        let whole = if alone { spec.name.as_str() } else { name };
        let places = shared
            .site_of
            .iter()
            .map(|site| usize::from(*site) + 1)
            .max();
        let sites: Vec<String> = match (&shared.sites[..], places) {
            ([], Some(1) | None) => vec![whole.to_owned()],
            ([], Some(places)) => (0..places).map(|at| of(format!("switch {at}"))).collect(),
            (named, _) => named.iter().cloned().map(of).collect(),
        };
        let switch = |at: u16| {
            sites
                .get(usize::from(at))
                .cloned()
                .unwrap_or_else(|| of(format!("switch {at}")))
        };
        let on = if alone {
            String::new()
        } else {
            format!(" on {name}")
        };
        let first_line = self.lines.len();
        self.lines
            .extend(shared.lines.iter().map(|(of, frame)| SharedLine {
                name: match of {
                    LineOf::From(port) => format!("the line from {}{on}", called(*port)),
                    LineOf::To(port) => format!("the line to {}{on}", called(*port)),
                    LineOf::Trunk { from, to } => {
                        format!("the trunk {} > {}", switch(*from), switch(*to))
                    }
                    LineOf::All => format!("{whole}, which all share"),
                },
                bytes_per_s: rate(spec.mtu, *frame),
            }));
        let part = Part {
            shared,
            first_line,
            first_site: self.sites.len(),
        };
        part.load(spec, &mut self.lines[first_line..]);
        self.sites.extend(sites);
        self.of.insert(number, part);
        Ok(())
    }

    /// The lines on the way between two ports, among those of all.
    fn way(&self, subnets: &Subnets, from: Port, to: Port) -> Vec<u32> {
        let legs = subnets.legs(from, to).unwrap_or_default().into_iter();
        let on = |(near, far): (Port, Port)| {
            let ((segment, near), (_, far)) = subnets.station(near).zip(subnets.station(far))?;
            let part = self.of.get(&segment)?;
            let way = part.shared.way(near, far).iter();
            Some(
                way.map(|line| part.first_line as u32 + line)
                    .collect::<Vec<_>>(),
            )
        };
        legs.filter_map(on).flatten().collect()
    }
}

impl Part {
    /// Takes from its lines what the background traffic of the network's file takes.
    fn load(&self, spec: &NetworkSpec, lines: &mut [SharedLine]) {
        let whole: Vec<f64> = lines.iter().map(|line| line.bytes_per_s).collect();
        let known = self.shared.site_of.len() as u16;
        for load in &spec.load {
            let to = load.to;
            let into =
                |(of, _): &(LineOf, Span)| matches!(of, LineOf::All) || *of == LineOf::To(to);
            let Some(last) = self.shared.lines.iter().position(into) else {
                continue;
            };
            let (share, of) = load.rho.parts();
            let taken = whole[last] * share as f64 / of as f64;
            let pairs = match load.from.filter(|from| from.0 < known && to.0 < known) {
                Some(from) if load.duplex => vec![(from, to), (to, from)],
                Some(from) => vec![(from, to)],
                None => Vec::new(),
            };
            let ways = pairs
                .iter()
                .flat_map(|(from, to)| self.shared.way(*from, *to));
            let mut passed: Vec<usize> = ways.map(|line| *line as usize).collect();
            if pairs.is_empty() {
                passed.push(last);
            }
            for line in passed.into_iter().filter(|line| whole[*line].is_finite()) {
                let least = whole[line] * LEAST_LEFT;
                lines[line].bytes_per_s = (lines[line].bytes_per_s - taken).max(least);
            }
        }
    }
}

/// The hosts of a site, with `slots` each; a network is a site of one segment.
pub fn of_site(site: &SiteSpec, slots: usize) -> Result<Cluster, Failure> {
    let subnets = site.subnets().map_err(Failure::usage)?;
    let names = site.names();
    let mut called: BTreeMap<(usize, Port), &str> = BTreeMap::new();
    for end in &subnets.ends {
        let name = names[usize::from(end.host)];
        called.insert((end.carrier, Port(end.station)), name);
    }
    for (number, router) in site.router.iter().enumerate() {
        let stations = subnets.interfaces(number);
        for at in stations.filter_map(|(port, _)| subnets.station(port)) {
            called.entry(at).or_insert(&router.name);
        }
    }
    let mut parts = Parts::default();
    for (number, segment) in site.segment.iter().enumerate() {
        if segment.on.is_none() {
            let who = |port| called.get(&(number, port)).copied().unwrap_or("a bridge");
            parts.add(
                (number, &segment.name, &segment.network),
                subnets.stations(number),
                site.segment.len() == 1,
                |port| who(port).to_owned(),
            )?;
        }
    }
    let place = |host: u16| {
        let (segment, station) = subnets.station(*subnets.ports_of(host).first()?)?;
        let part = parts.of.get(&segment)?;
        let within = part.shared.site_of.get(usize::from(station.0))?;
        Some(part.first_site + usize::from(*within))
    };
    let hosts = (0..).zip(&names).map(|(at, name)| Host {
        name: (*name).to_owned(),
        slots,
        site: place(at).unwrap_or(0),
    });
    let times = sonde_virtual::pair_times(site, &subnets, UDP_1B).map_err(Failure::cannot)?;
    let count = names.len();
    let apart = |(from, to): &(usize, usize)| from != to && times[from * count + to].is_none();
    let pairs = (0..count * count).map(|at| (at / count, at % count));
    if let Some((from, to)) = pairs.clone().find(apart) {
        return Err(Failure::usage(format!(
            "no way leads from {} to {} in the site {}: ranks there could not talk",
            names[from], names[to], site.name
        )));
    }
    let way = |from: usize, to: usize| {
        let time = times[from * count + to].expect("a way leads there");
        let ends = subnets.between(from as u16, to as u16);
        let way = ends.map_or_else(Vec::new, |(from, to)| parts.way(&subnets, from, to));
        let lines = way
            .iter()
            .map(|line| parts.lines[*line as usize].bytes_per_s);
        let leg = Leg {
            latency_s: seconds(time.one_way),
            bytes_per_s: lines.fold(rate(time.mtu, time.each), f64::min),
        };
        (leg, way)
    };
    Cluster::new(
        hosts.collect(),
        parts.sites.clone(),
        parts.lines.clone(),
        way,
    )
    .map_err(Failure::usage)
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
        let of_network = |spec: &NetworkSpec, hosts: u16, slots: usize| {
            of_site(&SiteSpec::single(spec.clone(), hosts), slots)
        };
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

    /// Three places of two hosts, each with a line of 10 Mb/s to each other one; what is on that between a and b.
    fn three_places(load: &str) -> SiteSpec {
        let line = |name: &str, load: &str| {
            format!(
                "name = \"{name}\"\nsummary = \"x\"\ntechnology = \"wan\"\ntopology = \"line\"\nmtu = 1500\n[line]\nrate = \"10Mbit\"\nframing = \"ethernet\"\nlength_m = 1000000\n{load}"
            )
        };
        let mut text = String::from("name = \"places\"\nsummary = \"x\"\n");
        for place in ["a", "b", "c"] {
            text += &format!(
                "[[segment]]\nname = \"{place}\"\nnetwork = \"ethernet-100\"\nhosts = [\"{place}-[1-2]\"]\n"
            );
        }
        for between in ["ab", "ac", "bc"] {
            text += &format!(
                "[[segment]]\nname = \"{between}\"\nnetwork = \"./{between}\"\nhosts = []\n"
            );
        }
        for (place, lines) in [
            ("a", ["ab", "ac"]),
            ("b", ["ab", "bc"]),
            ("c", ["ac", "bc"]),
        ] {
            let [one, other] = lines;
            text += &format!(
                "[[router]]\nname = \"router-{place}\"\njoins = [\"{place}\", \"{one}\", \"{other}\"]\n"
            );
        }
        let read = |path: &str| match path {
            "./places" => Ok(text.clone()),
            "./ab" => Ok(line("ab", load)),
            path => Ok(line(path.trim_start_matches("./"), "")),
        };
        sonde_link::resolve_site("./places", &read).unwrap()
    }

    #[test]
    fn load_takes_its_share_of_the_lines_that_it_passes() {
        let rate = |cluster: &Cluster, from: usize, to: usize| cluster.leg(from, to).bytes_per_s;
        let idle = of_site(&three_places(""), 2).unwrap();
        let load = "[[load]]\nfrom = \"h1\"\nto = \"h2\"\nrho = \"0.8\"\nlaw = \"poisson\"\n";
        let loaded = of_site(&three_places(load), 2).unwrap();
        let names: Vec<_> = idle.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["a-1", "a-2", "b-1", "b-2", "c-1", "c-2"]);
        assert_eq!(idle.sites[..3], ["a", "b", "c"]);
        let sites: Vec<_> = idle.hosts.iter().map(|host| host.site).collect();
        assert_eq!(sites, [0, 0, 1, 1, 2, 2]);
        let way = |from, to| -> Vec<&str> {
            let way = idle.way(from, to).iter();
            way.map(|line| idle.lines[*line as usize].name.as_str())
                .collect()
        };
        assert_eq!(
            way(0, 3),
            [
                "the line from a-1 on a",
                "the line to router-a on a",
                "the line from router-a on ab",
                "the line to router-b on ab",
                "the line from router-b on b",
                "the line to b-2 on b"
            ]
        );
        assert_eq!(
            way(0, 1),
            ["the line from a-1 on a", "the line to a-2 on a"]
        );
        // 1460 of 1538 bytes of 10 Mb/s; from a to b a fifth of it is left, back all.
        let whole = 10e6 / 8.0 * 1_460.0 / 1_538.0;
        for (from, to) in [(0, 2), (0, 4), (2, 4)] {
            assert!((rate(&idle, from, to) / whole - 1.0).abs() < 0.01);
        }
        assert!((rate(&loaded, 0, 2) / whole - 0.2).abs() < 0.01);
        for (from, to) in [(2, 0), (0, 4), (2, 4)] {
            let (with, without) = (rate(&loaded, from, to), rate(&idle, from, to));
            assert!((with / without - 1.0).abs() < 1e-9, "{from} {to}");
        }
        // Four ranks that all talk need two places: with this load any two but a and b.
        let all = sonde_place::Pattern::AllToAll
            .matrix(8, 1 << 16, 10, 1)
            .unwrap();
        let mapped = sonde_place::map(&all, &loaded, 1).unwrap().placement;
        let sites = mapped.hosts().iter().map(|host| loaded.hosts[*host].site);
        let sites: std::collections::BTreeSet<_> = sites.collect();
        assert!(sites.len() == 2 && sites.contains(&2), "{sites:?}");
        let block = sonde_place::block(8, &loaded).unwrap();
        let cost = |placement| sonde_place::cost(&all, &loaded, placement).total_s();
        assert!(
            cost(&block) > 3.0 * cost(&mapped),
            "{} {}",
            cost(&block),
            cost(&mapped)
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
