//! `sonde lab list`: the catalogue by families, or networks of the user's own, with their ceilings and times.

use crate::document::{self, Command, Document};
use crate::failure::Failure;
use crate::measure::command_line;
use crate::output::{self, Print, say};
use crate::testbed;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_lab::{Profile, ProfileKind};
use sonde_link::{Headers, NetworkSpec, Port, Technology};
use sonde_measure::{NetworkRow, OverheadStep};
use sonde_record::Judgement;
use sonde_report::sheet;
use sonde_sys::tell;
use sonde_units::{BitRate, Bytes, Span};
use sonde_virtual::{Between, Sender};

/// The catalogue, or networks that were named.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Networks {
    /// One for each name that `--network` takes.
    networks: Vec<NetworkRow>,
}

/// A datagram with 1 byte: 20 of IP, 8 of UDP.
pub const UDP_1B: Bytes = Bytes(29);

/// The headers of a profile's TCP segments.
pub fn headers(profile: Profile) -> Headers {
    match profile.kind {
        ProfileKind::Modern => Headers::Timestamps,
        ProfileKind::Era => Headers::Plain,
    }
}

/// The model's kernel-like sender of a profile.
pub fn sender(profile: Profile) -> Sender {
    match profile.kind {
        ProfileKind::Modern => Sender::modern(),
        ProfileKind::Era => Sender::era(Bytes(u64::from(profile.window_bytes))),
    }
}

/// What the model's kernel-like sender reaches; none where there is no such figure.
pub fn tcp_expected(spec: &NetworkSpec, profile: Profile) -> Result<u64, String> {
    // Without a rate only the window would limit, and long before it the hosts do.
    spec.line.rate.ok_or("the network has no rate")?;
    sonde_virtual::tcp_expected(spec, &sender(profile)).map_err(|reason| reason.to_string())
}

/// The model's time for a frame of `len` layer-3 bytes.
pub fn one_way(spec: &NetworkSpec, len: Bytes) -> Result<Span, Failure> {
    sonde_virtual::one_way(spec, len)
        .map(|time| time.0)
        .map_err(Failure::cannot)
}

/// The chain from the line to user bytes.
pub fn overhead(spec: &NetworkSpec, headers: Headers) -> Vec<OverheadStep> {
    sonde_link::overhead(spec, headers)
        .into_iter()
        .map(|step| OverheadStep {
            step: step.step.into(),
            bps: step.bps,
            bytes: step.bytes,
        })
        .collect()
}

/// A network as `sonde lab list` shows it; what could not be worked out is a warning.
pub fn row(
    spec: &NetworkSpec,
    profile: Profile,
    warnings: &mut Vec<String>,
) -> Result<NetworkRow, Failure> {
    let expected = tcp_expected(spec, profile);
    if let (Err(reason), Some(_)) = (&expected, spec.line.rate) {
        warnings.push(format!("{}: no tcp_expected_bps: {reason}", spec.name));
    }
    Ok(NetworkRow {
        name: spec.name.clone(),
        technology: spec.technology.name().into(),
        summary: Some(spec.summary.clone()),
        topology: topology(spec),
        mtu_bytes: spec.mtu,
        line_bps: spec.line.rate.map(sonde_units::BitRate::bps),
        tcp_max_bps: sonde_link::tcp_max(spec, headers(profile)),
        tcp_expected_bps: expected.ok(),
        one_way_1b_ns: Some(one_way(spec, UDP_1B)?.as_picos().div_ceil(1_000)),
        overhead: overhead(spec, headers(profile)),
    })
}

/// A path over a site as if it were a network: its ceilings are those of its slowest one.
pub fn row_of_path(
    path: Between<'_>,
    profile: Profile,
    warnings: &mut Vec<String>,
) -> Result<NetworkRow, Failure> {
    let networks = path.networks();
    let rate = |network: &&NetworkSpec| sonde_link::tcp_max(network, headers(profile));
    let slowest = networks.iter().filter(|one| rate(one).is_some());
    let slowest = slowest.min_by_key(rate);
    let site = path.site;
    let name = |port: Port| {
        site.names()
            .get(usize::from(site.ends()[usize::from(port.0)].host))
            .copied()
    };
    let expected = path.tcp(&sender(profile));
    if let Err(reason) = &expected {
        warnings.push(format!("{}: no tcp_expected_bps: {reason}", site.name));
    }
    let time = path.one_way(UDP_1B).map_err(Failure::cannot)?.0;
    Ok(NetworkRow {
        name: site.name.clone(),
        technology: "site".into(),
        summary: Some(format!(
            "{}; from {} to {} over {}",
            site.summary,
            name(path.from).unwrap_or_default(),
            name(path.to).unwrap_or_default(),
            networks
                .iter()
                .map(|one| &*one.name)
                .collect::<Vec<_>>()
                .join(", ")
        )),
        topology: None,
        mtu_bytes: path.mtu(),
        line_bps: slowest.and_then(|one| one.line.rate).map(BitRate::bps),
        tcp_max_bps: slowest.as_ref().and_then(rate),
        tcp_expected_bps: expected.ok(),
        one_way_1b_ns: Some(time.as_picos().div_ceil(1_000)),
        overhead: slowest.map_or_else(Vec::new, |one| overhead(one, headers(profile))),
    })
}

/// How its stations are joined, as a file says it.
fn topology(spec: &NetworkSpec) -> Option<String> {
    let name = serde_json::to_value(spec.topology).ok()?;
    name.as_str().map(str::to_owned)
}

/// Bits a second in Mb/s, to the nearest hundredth; a dash where there is none.
pub fn mbit(bps: Option<u64>) -> String {
    bps.map_or_else(
        || "-".into(),
        |bps| {
            let hundredths = (bps + 5_000) / 10_000;
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        },
    )
}

/// Nanoseconds in microseconds; a dash where there is none.
pub fn micros(ns: Option<u64>) -> String {
    ns.map_or_else(
        || "-".into(),
        |ns| format!("{}.{}", ns / 1_000, ns % 1_000 / 100),
    )
}

/// From here on a network is one of today's machine rooms, for comparison.
const TODAY: BitRate = BitRate::gbit(10);
/// From here on a line joins sites.
const FAR: Span = Span::millis(1);

/// The heading under which a network of the catalogue stands.
fn family(spec: &NetworkSpec) -> &'static str {
    match spec.technology {
        Technology::Wire => "A line of your own",
        Technology::Ethernet if spec.line.rate.is_some_and(|rate| rate >= TODAY) => {
            "Ethernet of today"
        }
        Technology::Ethernet => "Ethernet",
        Technology::Fddi => "FDDI",
        Technology::FibreChannel => "Fibre Channel",
        Technology::Hippi => "HIPPI",
        Technology::Allnode | Technology::Sp2 | Technology::Ultranet => "Switches of vendors",
        Technology::Sci => "SCI rings",
        Technology::Atm if spec.line.propagation() < FAR => "ATM",
        Technology::Atm | Technology::Wan => "Wide area",
    }
}

/// A network's row; with `brief` its name stands below that of its family, and of its summary the first words suffice.
fn shown(network: &NetworkRow, brief: bool) -> Vec<String> {
    let summary = network.summary.as_deref().unwrap_or_default();
    let (indent, summary) = if brief {
        let end = summary.find([':', ';', ',', '(']);
        ("  ", summary[..end.unwrap_or(summary.len())].trim_end())
    } else {
        ("", summary)
    };
    vec![
        format!("{indent}{}", network.name),
        network.mtu_bytes.to_string(),
        mbit(network.line_bps),
        mbit(network.tcp_max_bps),
        mbit(network.tcp_expected_bps),
        micros(network.one_way_1b_ns),
        summary.to_owned(),
    ]
}

/// The columns of `--csv`.
const CSV_COLUMNS: [&str; 8] = [
    "name",
    "technology",
    "topology",
    "mtu_bytes",
    "line_bps",
    "tcp_max_bps",
    "tcp_expected_bps",
    "one_way_1b_ns",
];

/// `sonde lab list`.
pub fn list(selectors: &[String], profile: Profile, print: Print) -> Result<i32, Failure> {
    let specs = if selectors.is_empty() {
        sonde_link::catalogue()
    } else {
        selectors
            .iter()
            .map(|selector| testbed::network(selector))
            .collect::<Result<_, _>>()?
    };
    let mut warnings = Vec::new();
    let networks = specs
        .iter()
        .map(|spec| row(spec, profile, &mut warnings))
        .collect::<Result<Vec<_>, _>>()?;
    if print == Print::Csv {
        output::csv(&CSV_COLUMNS, &networks)?;
        return Ok(0);
    }
    if print == Print::Json {
        let networks = Networks { networks };
        let verdict = Judgement::none("a list makes no judgement");
        let command = Command::LabList(&networks);
        document::print(&Document {
            warnings,
            ..Document::new(command, &command_line(), verdict)
        })?;
        return Ok(0);
    }
    let is_catalogue = selectors.is_empty();
    let mut rows = Vec::new();
    let mut last = "";
    for (spec, network) in specs.iter().zip(&networks) {
        let family = family(spec);
        if is_catalogue && family != last {
            rows.push(vec![family.to_owned()]);
            last = family;
        }
        rows.push(shown(network, is_catalogue));
    }
    let heads = [
        "network",
        "MTU\nB",
        "line\nMb/s",
        "TCP at most\nMb/s",
        "TCP expected\nMb/s",
        "1 B one way\nµs",
        "",
    ];
    say!("{}", sheet(&heads, rows).loose().text(output::width()));
    if is_catalogue {
        output::paragraph(
            "One of them with its whole summary: `sonde lab list NAME`; what each models: docs/networks.md.",
        );
    }
    output::paragraph(
        "Knobs: NAME:knob=value, as in atm-oc3c:vc=svc:mtu=1500 or link:rate=20M:delay=10ms; a wrong one lists those of its network.",
    );
    warnings
        .iter()
        .for_each(|warning| tell!("sonde: {warning}"));
    Ok(0)
}
