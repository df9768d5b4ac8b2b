//! `sonde lab list --sites`: the sites of the catalogue, or of the user's own, with what their paths do.
//!
//! Model:   the path to the last host of each segment from the site's first, or from the segment's own where that has no way there, by the
//!          models in virtual time, with nothing else on it.
//! Checked: `tests/lab_sites.rs`.

use crate::document::{self, Command, Document};
use crate::failure::Failure;
use crate::measure::command_line;
use crate::networks::{UDP_1B, mbit, micros, sender};
use crate::output::{self, Print, say};
use crate::testbed;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_lab::Profile;
use sonde_link::{By, HostPort, Port, SiteSpec, Subnets};
use sonde_record::Judgement;
use sonde_report::sheet;
use sonde_sys::tell;
use sonde_units::Bytes;
use sonde_virtual::Between;

/// The catalogue of sites, or sites that were named.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sites {
    /// One for each.
    sites: Vec<SiteRow>,
}

/// A site.
#[derive(Debug, Serialize, JsonSchema)]
struct SiteRow {
    /// Its name, as `--site` takes it.
    name: String,
    /// What it is.
    summary: String,
    /// How many hosts it has.
    hosts: u16,
    /// Its segments, in the order of its file.
    segments: Vec<SegmentRow>,
    /// What joins them to subnets.
    bridges: Vec<NodeRow>,
    /// What leads from one subnet to another.
    routers: Vec<NodeRow>,
}

/// A network of a site.
#[derive(Debug, Serialize, JsonSchema)]
struct SegmentRow {
    /// Its name.
    name: String,
    /// The network that it is.
    network: String,
    /// The segment whose network carries it as a virtual LAN; null where it has its own.
    on: Option<String>,
    /// Its hosts, which are also called h1 and so on.
    hosts: Vec<String>,
    /// The longest frame, in layer-3 bytes.
    mtu_bytes: u64,
    /// Bridges and routers between the site's first host, or where that has no way here the segment's own, and the last one here; null without
    /// two hosts.
    nodes: Option<u32>,
    /// A datagram with 1 byte between these two; null without two hosts.
    one_way_1b_ns: Option<u64>,
    /// What a stream by TCP reaches between these two; null without two hosts, or where a warning says why.
    tcp_expected_bps: Option<u64>,
}

/// A bridge or router.
#[derive(Debug, Serialize, JsonSchema)]
struct NodeRow {
    /// Its name.
    name: String,
    /// The segments that it joins.
    joins: Vec<String>,
    /// A host of this name that sends on by its own kernel.
    is_host: bool,
    /// The layer-3 bytes that it holds at most; null of a host.
    buffer_bytes: Option<u64>,
}

/// What a path does, by the models in virtual time with nothing else on it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PathFigures {
    /// Bridges and routers on it.
    pub nodes: Option<u32>,
    /// A datagram with 1 byte, in one direction.
    pub one_way_1b_ns: Option<u64>,
    /// What a stream by TCP reaches; null where a warning says why.
    pub tcp_expected_bps: Option<u64>,
}

impl PathFigures {
    /// Those of a path, which is called so in a warning.
    pub fn of(
        subnets: &Subnets,
        path: Between<'_>,
        profile: Profile,
        called: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Failure> {
        let time = path.one_way(UDP_1B).map_err(Failure::cannot)?.0;
        let tcp = path.tcp(&sender(profile)).map_err(|reason| {
            let site = &path.site.name;
            warnings.push(format!("{site}, {called}: no tcp_expected_bps: {reason}"));
        });
        Ok(Self {
            nodes: subnets
                .segments(path.from, path.to)
                .map(|all| all.len() as u32 - 1),
            one_way_1b_ns: Some(time.as_picos().div_ceil(1_000)),
            tcp_expected_bps: tcp.ok(),
        })
    }
}

impl NodeRow {
    fn new(name: &str, joins: &[String], buffer: Option<Bytes>) -> Self {
        Self {
            name: name.to_owned(),
            joins: joins.to_vec(),
            is_host: buffer.is_none(),
            buffer_bytes: buffer.map(|buffer| buffer.0),
        }
    }
}

fn row(site: &SiteSpec, profile: Profile, warnings: &mut Vec<String>) -> Result<SiteRow, Failure> {
    let subnets = site.subnets().map_err(Failure::usage)?;
    let mut segments = Vec::new();
    for (number, one) in site.segment.iter().enumerate() {
        // From the site's first host, or where that has no way here the segment's own, to the last one here.
        let here = (0..).map(Port).zip(&subnets.ends);
        let here = here.filter(|(_, end)| end.segment == number);
        let order = |(_, end): &(Port, &HostPort)| end.station;
        let (first, last) = (here.clone().min_by_key(order), here.max_by_key(order));
        let first = subnets
            .interface_to(0, subnets.of[number])
            .or(first.map(|(port, _)| port));
        let ends = first.zip(last.map(|(port, _)| port));
        let ends = ends.filter(|(from, to)| from != to);
        let path = ends.map(|(from, to)| Between { site, from, to });
        let figures = match path {
            Some(path) => PathFigures::of(&subnets, path, profile, &one.name, warnings)?,
            None => PathFigures::default(),
        };
        segments.push(SegmentRow {
            name: one.name.clone(),
            network: one.network.name.clone(),
            on: one.on.clone(),
            hosts: one.hosts.clone(),
            mtu_bytes: one.network.mtu,
            nodes: figures.nodes,
            one_way_1b_ns: figures.one_way_1b_ns,
            tcp_expected_bps: figures.tcp_expected_bps,
        });
    }
    Ok(SiteRow {
        name: site.name.clone(),
        summary: site.summary.clone(),
        hosts: site.count(),
        segments,
        bridges: site
            .bridge
            .iter()
            .map(|one| NodeRow::new(&one.name, &one.joins, Some(one.buffer)))
            .collect(),
        routers: site
            .router
            .iter()
            .map(|one| {
                let buffer = (one.by == By::Model).then_some(one.buffer);
                NodeRow::new(&one.name, &one.joins, buffer)
            })
            .collect(),
    })
}

/// `sonde lab list --sites`.
pub fn list(selectors: &[String], profile: Profile, print: Print) -> Result<i32, Failure> {
    let specs = if selectors.is_empty() {
        sonde_link::sites()
    } else {
        let all = selectors.iter().map(|selector| testbed::site(selector));
        all.collect::<Result<_, _>>()?
    };
    let mut warnings = Vec::new();
    let rows = specs.iter().map(|site| row(site, profile, &mut warnings));
    let sites = rows.collect::<Result<Vec<_>, _>>()?;
    match print {
        Print::Csv => {
            return Err(Failure::usage(
                "sites have rows of several kinds, which no CSV has: write `--json`",
            ));
        }
        Print::Json => {
            let sites = Sites { sites };
            let verdict = Judgement::none("a list makes no judgement");
            document::print(&Document {
                warnings,
                ..Document::new(Command::LabSites(&sites), &command_line(), verdict)
            })?;
            return Ok(0);
        }
        _ => {}
    }
    let heads = [
        "segment",
        "network",
        "hosts",
        "MTU\nB",
        "nodes\nbetween",
        "1 B one way\nµs",
        "TCP expected\nMb/s",
    ];
    for site in &sites {
        output::paragraph(&format!(
            "{}: {} ({} hosts)",
            site.name, site.summary, site.hosts
        ));
        let shown = site.segments.iter().map(|one| -> Vec<String> {
            let network = match &one.on {
                Some(on) => format!("on {on}"),
                None => one.network.clone(),
            };
            let hosts = match &one.hosts[..] {
                [] => "-".to_owned(),
                [only] => only.clone(),
                [first, .., last] => format!("{first} to {last}"),
            };
            vec![
                one.name.clone(),
                network,
                hosts,
                one.mtu_bytes.to_string(),
                one.nodes
                    .map_or_else(|| "-".into(), |nodes| nodes.to_string()),
                micros(one.one_way_1b_ns),
                mbit(one.tcp_expected_bps),
            ]
        });
        say!(
            "{}",
            sheet(&heads, shown.collect::<Vec<_>>())
                .loose()
                .text(output::width())
        );
        let of = |kind, nodes: Vec<&NodeRow>| {
            nodes
                .iter()
                .map(|one| format!("{} ({kind}): {}", one.name, one.joins.join(", ")))
                .collect::<Vec<_>>()
        };
        let (hosts, boxes): (Vec<_>, Vec<_>) = site.routers.iter().partition(|one| one.is_host);
        let bridges = site.bridges.iter().collect();
        let nodes = [
            of("bridge", bridges),
            of("router", boxes),
            of("host", hosts),
        ];
        let nodes = nodes.concat();
        if !nodes.is_empty() {
            output::paragraph(&format!("Joined by {}.", nodes.join("; ")));
        }
    }
    output::paragraph(
        "Nodes are bridges and routers. Times and rates are from the site's first host, or the segment's own where that has no way there, to the segment's last, by the models, with nothing else on it. Run \
         something: `sonde lab run --site NAME -- PROGRAM`; a site of your own: docs/sites.md.",
    );
    warnings
        .iter()
        .for_each(|warning| tell!("sonde: {warning}"));
    Ok(0)
}
