//! What the models say of a network, or of a path over a site, before it is measured: the lines beside the measured ones.
//!
//! Model:   warm latency is bounded by the time of the message's frames, offered back to back, on the idle network; no
//!          acknowledgement, window or host is in it. A single message's rate is its bytes over that time and the way of
//!          the answer. A cold start adds the question for the address, the circuit and, for TCP, the handshake. A
//!          stream's ceiling is its share of each frame.
//! Source:  RFC 791 §3.2 for fragments: all but the last carry a multiple of 8 bytes.
//!          stream's ceiling over a site is that of its path's slowest network, with frames that come through as one.
//! Checked: `messages_become_frames`, `ceilings_are_of_the_model`, `a_switched_circuit_is_in_the_cold_ceiling`,
//!          `a_path_over_a_site_has_bounds`.

use crate::failure::Failure;
use crate::networks;
use crate::plan::{NetworkPlan, TestbedPlan};
use crate::testbed;
use sonde_channel::UDP_MESSAGE_BYTES_MAX;
use sonde_fleet::Load;
use sonde_lab::Profile;
use sonde_link::{By, Headers, NetworkSpec, Port, SiteSpec};
use sonde_measure::Path;
use sonde_measure::files::Files;
use sonde_measure::{Backpressure, Ceiling, NetworkRecord, NetworkRow, Phase, Quantity};
use sonde_units::{BitRate, Bytes, Span};
use sonde_virtual::Between;
use sonde_workload::files::Exchange;
use std::collections::BTreeSet;

const IP: u64 = 20;
const UDP: u64 = 8;
/// sonde's own header in a frame past IP, which is as long as those of IP and UDP.
const FRAME: u64 = sonde_channel::PACKET_HEADER_BYTES as u64;
/// A handshake's segment: headers and the options of the first one.
const HANDSHAKE: Bytes = Bytes(60);

/// The layer-3 frames of a message.
pub fn frames(path: Path, size: u64, mtu: u64, headers: Headers) -> Vec<Bytes> {
    let (mut left, most, header) = match path {
        // Within one machine there are no frames: sizes around a frame are TCP's, so that rows stand side by side.
        Path::Tcp | Path::Unix | Path::Shm => {
            let segment = headers.segment(Bytes(mtu)).0;
            (size, segment, mtu - segment)
        }
        Path::Udp => (size + UDP, (mtu - IP) / 8 * 8, IP),
        // Never more than one.
        Path::Packet | Path::Xdp => return vec![Bytes(size + FRAME)],
    };
    let mut frames = Vec::with_capacity(left.div_ceil(most) as usize);
    // The last fragment may fill the frame.
    let last = if path == Path::Udp { mtu - IP } else { most };
    while left > last {
        frames.push(Bytes(most + header));
        left -= most;
    }
    frames.push(Bytes(left + header));
    frames
}

/// User bytes of the largest message in one frame.
pub fn frame_payload(path: Path, mtu: u64, headers: Headers) -> u64 {
    match path {
        Path::Tcp | Path::Unix | Path::Shm => headers.segment(Bytes(mtu)).0,
        // The loopback's frames are larger than any datagram.
        Path::Udp => mtu
            .saturating_sub(IP + UDP)
            .min(UDP_MESSAGE_BYTES_MAX as u64),
        Path::Packet => mtu.saturating_sub(FRAME),
        Path::Xdp => mtu
            .min(sonde_channel::XDP_MTU_BYTES_MAX as u64)
            .saturating_sub(FRAME),
    }
}

/// What is emulated, and the path whose bounds stand beside what is measured.
#[derive(Debug, Clone)]
pub struct Modelled {
    site: SiteSpec,
    ends: (Port, Port),
    /// The hosts of the path, counted from 0, where each pair has a path of its own: launches are between them alone.
    pub pair: Option<(usize, usize)>,
}

impl Modelled {
    /// A network, on which all pairs of hosts are alike.
    pub fn network(spec: NetworkSpec) -> Self {
        Self {
            site: SiteSpec::single(spec, 2),
            ends: (Port(0), Port(1)),
            pair: None,
        }
    }

    /// A site: the path between two of its hosts, without any from the first to the last that it reaches.
    ///
    /// # Errors
    /// No way leads there.
    pub fn site(site: SiteSpec, pair: Option<(usize, usize)>) -> Result<Self, Failure> {
        let subnets = site.subnets().map_err(Failure::usage)?;
        let ends = |from: usize, to: usize| subnets.between(from as u16, to as u16);
        let names = site.names();
        let last = || (1..names.len()).rev().find(|to| ends(0, *to).is_some());
        let pair = pair.or_else(|| Some((0, last()?)));
        let reached = pair.and_then(|(from, to)| Some(((from, to), ends(from, to)?)));
        let (pair, ends) = reached.ok_or_else(|| {
            let (from, to) = pair.unwrap_or((0, 0));
            Failure::usage(format!(
                "no way leads from {} to {} in the site {}: name two other hosts, as in `--between a>b`",
                names[from], names[to], site.name
            ))
        })?;
        Ok(Self {
            site,
            ends,
            pair: Some(pair),
        })
    }

    /// That of a plan's network, which is this site in the lab.
    ///
    /// # Errors
    /// The plan is between hosts that are not there, or reach each other by nothing.
    pub fn of(
        network: &NetworkPlan,
        site: SiteSpec,
        testbed: &TestbedPlan,
    ) -> Result<Self, Failure> {
        if !network.site {
            return Ok(Self::network(testbed::sole(&site)?));
        }
        let names: Vec<String> = site.names().into_iter().map(str::to_owned).collect();
        Self::site(site, testbed.between(&names)?)
    }

    /// The same by its name, before there is a lab.
    ///
    /// # Errors
    /// There is no such network or site, or as [`Self::of`].
    pub fn named(network: &NetworkPlan, testbed: &TestbedPlan) -> Result<Self, Failure> {
        let site = match network.site {
            true => testbed::site(&network.name)?,
            false => SiteSpec::single(testbed::network(&network.name)?, 2),
        };
        Self::of(network, site, testbed)
    }

    /// The same as a run's record describes it.
    ///
    /// # Errors
    /// The description is none of it, or as [`Self::of`].
    pub fn described(
        network: &NetworkPlan,
        spec: &str,
        testbed: &TestbedPlan,
    ) -> Result<Self, Failure> {
        let site = match network.site {
            true => toml::from_str(spec),
            false => toml::from_str(spec).map(|network| SiteSpec::single(network, 2)),
        };
        Self::of(network, site.map_err(Failure::cannot)?, testbed)
    }

    /// The networks on which both hosts of the path are.
    pub fn networks_in_common(&self) -> usize {
        let Some(((from, to), subnets)) = self.pair.zip(self.site.subnets().ok()) else {
            return 1;
        };
        let on = |host: usize| {
            let ports = subnets.ports_of(host as u16).iter();
            let all = ports.filter_map(|port| subnets.of_port(*port));
            all.collect::<BTreeSet<_>>()
        };
        on(from).intersection(&on(to)).count()
    }

    /// Its name in all rows.
    pub fn name(&self) -> &str {
        &self.site.name
    }

    /// The longest IP packet that comes through as one, in bytes.
    pub fn mtu(&self) -> u64 {
        self.path().mtu()
    }

    /// The rate of the path's slowest line; none where none has a rate.
    pub fn line(&self) -> Option<BitRate> {
        let all = self.path().networks().into_iter();
        all.filter_map(|network| network.line.rate).min()
    }

    /// The same as far as it carries frames.
    pub fn usable(&self) -> Option<BitRate> {
        let all = self.path().networks().into_iter();
        all.filter_map(|network| network.line.usable()).min()
    }

    /// A datagram of one byte to the other host.
    ///
    /// # Errors
    /// No frame comes through.
    pub fn one_way_1b(&self) -> Result<Span, Failure> {
        let time = self.path().one_way(networks::UDP_1B);
        time.map(|time| time.0).map_err(Failure::cannot)
    }

    /// What a blast of full datagrams leaves at its receiver, in bits a second; none where nothing bounds it.
    pub fn blast_bps(&self) -> Option<u64> {
        self.line()?;
        let payload = self.mtu().saturating_sub(IP + UDP);
        self.path().udp(Bytes(payload)).ok()
    }

    /// The host that sends on for others, if there is one: its kernel takes a time that no model has.
    pub fn sender_on(&self) -> Option<&str> {
        let mut all = self.site.router.iter();
        let host = all.find(|router| router.by == By::Host);
        host.map(|router| &*router.name)
    }

    /// Whether a circuit is set up that no command can release: of a path over several segments.
    pub fn keeps_circuits(&self) -> bool {
        let networks = self.path().networks();
        networks.len() > 1 && networks.iter().any(NetworkSpec::joins_first)
    }

    /// The network, where it is no site.
    fn alone(&self) -> Option<&NetworkSpec> {
        let first = self.site.segment.first().filter(|_| self.pair.is_none());
        first.map(|one| &one.network)
    }

    fn path(&self) -> Between<'_> {
        let (from, to) = self.ends;
        Between {
            site: &self.site,
            from,
            to,
        }
    }

    /// As a row has it; what could not be worked out is a warning.
    fn row(&self, profile: Profile, warnings: &mut Vec<String>) -> Result<NetworkRow, Failure> {
        match self.alone() {
            Some(spec) => networks::row(spec, profile, warnings),
            None => networks::row_of_path(self.path(), profile, warnings),
        }
    }

    /// Its description, as TOML.
    fn spec(&self) -> Result<String, Failure> {
        let text = match self.alone() {
            Some(spec) => toml::to_string(spec),
            None => toml::to_string(&self.site),
        };
        text.map_err(Failure::cannot)
    }
}

/// The bounds of one network, or of a path over a site.
pub struct Bounds<'a> {
    /// Of what.
    pub model: &'a Modelled,
    /// The hosts' settings.
    pub profile: Profile,
}

impl Bounds<'_> {
    fn headers(&self) -> Headers {
        networks::headers(self.profile)
    }

    /// From the first bit of a message to its last, there.
    pub fn one_way(&self, path: Path, size: u64) -> Result<Span, Failure> {
        let frames = frames(path, size, self.model.mtu(), self.headers());
        let time = self.model.path().train(&frames);
        time.map(|time| time.0).map_err(Failure::cannot)
    }

    /// What the messages of a call on files of so many bytes take on the line, both ways, beyond those of a call that does nothing.
    pub fn wire(&self, path: Path, files: &Files, size_bytes: u64) -> Result<Span, Failure> {
        let both = |exchange: Exchange| {
            let there = self.one_way(path, exchange.call)?;
            Ok::<_, Failure>(there + self.one_way(path, exchange.reply)?)
        };
        let measured = both(Exchange::measured(files, path, size_bytes))?;
        let null = both(Exchange::null(files, path))?;
        Ok(measured.saturating_sub(null))
    }

    /// Half a round trip of a message of one frame under a load to both hosts, at the median, where hosts take `think` for
    /// each message; none of a longer message.
    pub fn loaded(
        &self,
        path: Path,
        size: u64,
        load: &Load,
        think: Span,
    ) -> Result<Option<Span>, Failure> {
        /// Enough for a median within some percent of the load's share of it.
        const COUNT: usize = 4_001;
        let Modelled { site, pair, .. } = self.model;
        let [len] = frames(path, size, self.model.mtu(), self.headers())[..] else {
            return Ok(None);
        };
        let (from, to) = pair.unwrap_or((0, 1));
        let flows = load.to_hosts(site, &[from as u16, to as u16]);
        let halves = self.model.path().loaded(&flows, len, COUNT, think);
        let mut halves = halves.map_err(Failure::cannot)?;
        halves.sort_unstable();
        Ok(Some(halves[COUNT / 2]))
    }

    /// Single messages: bits a second with the way of the answer of one byte.
    fn message_bps(&self, path: Path, size: u64) -> Result<Option<u64>, Failure> {
        let time = self.one_way(path, size)? + self.one_way(path, 1)?;
        let bits = u128::from(size) * 8 * 1_000_000_000_000;
        let bps = bits.checked_div(time.as_picos().into());
        Ok(bps.and_then(|bps| u64::try_from(bps).ok()))
    }

    /// From nothing to the first answer.
    fn cold(&self, path: Path, size: u64) -> Result<Span, Failure> {
        let over = self.model.path();
        let time = |time: Result<sonde_units::OneWay, sonde_virtual::TimeError>| {
            time.map(|time| time.0).map_err(Failure::cannot)
        };
        let question = over.neighbour().map_err(Failure::cannot)?.0;
        let message = self.one_way(path, size)? + self.one_way(path, size)?;
        Ok(question
            + match path {
                Path::Tcp | Path::Unix | Path::Shm => {
                    let syn = time(over.first_one_way(HANDSHAKE))?;
                    syn + time(over.one_way(HANDSHAKE))? + message
                }
                Path::Udp | Path::Packet | Path::Xdp => {
                    // The circuit is paid by the first frame; the rest of the message is as when warm.
                    let byte = Bytes(IP + UDP + 1);
                    let circuit = time(over.first_one_way(byte))?;
                    circuit.saturating_sub(time(over.one_way(byte))?) + message
                }
            })
    }

    /// The bound of one quantity; none where the network has none.
    fn ceiling(
        &self,
        path: Path,
        quantity: Quantity,
        size: Option<u64>,
    ) -> Result<Option<Ceiling>, Failure> {
        let phase = match quantity {
            Quantity::StartupNs => Phase::Cold,
            _ => Phase::Warm,
        };
        let value = match (quantity, size) {
            (Quantity::StartupNs, Some(size)) => Some(self.cold(path, size)?.as_nanos()),
            (Quantity::LatencyNs, Some(size)) => Some(self.one_way(path, size)?.as_nanos()),
            (Quantity::ThroughputBps, Some(size)) => self.message_bps(path, size)?,
            (Quantity::ThroughputBps, None) => {
                let networks = self.model.path().networks().into_iter();
                let all = networks.filter_map(|network| match path {
                    Path::Tcp => sonde_link::tcp_max(&network, self.headers()),
                    // Frames carry as much beside their message as datagrams do.
                    Path::Udp | Path::Packet | Path::Xdp => {
                        let payload = frame_payload(path, network.mtu, self.headers());
                        sonde_link::udp_max(&network, Bytes(payload))
                    }
                    Path::Unix | Path::Shm => None,
                });
                all.min()
            }
            _ => None,
        };
        Ok(value.map(|value| Ceiling {
            path: path.name().into(),
            quantity,
            phase,
            size_bytes: size,
            value,
        }))
    }
}

/// A network or site of the lab as it is stored: its row, and the bounds of everything in `points`.
pub fn network(
    model: &Modelled,
    profile: Profile,
    points: impl IntoIterator<Item = (Path, Quantity, Option<u64>)>,
    warnings: &mut Vec<String>,
) -> Result<NetworkRecord, Failure> {
    let bounds = Bounds { model, profile };
    let mut ceilings = Vec::new();
    for (path, quantity, size) in points {
        ceilings.extend(bounds.ceiling(path, quantity, size)?);
    }
    Ok(NetworkRecord {
        row: model.row(profile, warnings)?,
        ceilings,
        attachment: None,
        backpressure: None,
        spec: Some(model.spec()?),
    })
}

/// This machine's loopback, or the network of real hosts: without a model, but for the ceiling of a line of known rate.
pub fn real(name: &str, summary: &str, mtu_bytes: u64, line_bps: Option<u64>) -> NetworkRecord {
    // A line whose rate is known is taken as Ethernet, whose framing costs the least that an interface can have.
    let line = line_bps.and_then(|bps| {
        let selector = format!("ethernet-1g:rate={bps}bit:mtu={mtu_bytes}");
        sonde_link::resolve(&selector, &|_| Err("no file".into())).ok()
    });
    let tcp_max_bps = line
        .as_ref()
        .and_then(|spec| sonde_link::tcp_max(spec, Headers::Timestamps));
    let udp_max_bps = line
        .as_ref()
        .and_then(|spec| sonde_link::udp_max(spec, Bytes(mtu_bytes.saturating_sub(IP + UDP))));
    let stream = |path: Path, value: Option<u64>| {
        value.map(|value| Ceiling {
            path: path.name().into(),
            quantity: Quantity::ThroughputBps,
            phase: Phase::Warm,
            size_bytes: None,
            value,
        })
    };
    NetworkRecord {
        row: NetworkRow {
            name: name.into(),
            technology: "interface".into(),
            summary: Some(summary.into()),
            topology: None,
            mtu_bytes,
            line_bps,
            tcp_max_bps,
            tcp_expected_bps: None,
            one_way_1b_ns: None,
            overhead: line.as_ref().map_or_else(Vec::new, |spec| {
                networks::overhead(spec, Headers::Timestamps)
            }),
        },
        ceilings: [
            stream(Path::Tcp, tcp_max_bps),
            stream(Path::Udp, udp_max_bps),
        ]
        .into_iter()
        .flatten()
        .collect(),
        attachment: None,
        backpressure: Some(Backpressure::None),
        spec: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(selector: &str) -> Modelled {
        Modelled::network(sonde_link::resolve(selector, &|_| Err("no file".into())).unwrap())
    }

    #[test]
    fn messages_become_frames() {
        let tcp = |size| frames(Path::Tcp, size, 1_500, Headers::Timestamps);
        assert_eq!(tcp(1), [Bytes(53)]);
        assert_eq!(tcp(1_448), [Bytes(1_500)]);
        assert_eq!(tcp(1_449), [Bytes(1_500), Bytes(53)]);
        let udp = |size| frames(Path::Udp, size, 1_500, Headers::Timestamps);
        assert_eq!(udp(1_472), [Bytes(1_500)]);
        assert_eq!(udp(1_473), [Bytes(1_500), Bytes(21)]);
        // At 9180 bytes a fragment carries 9160, a multiple of 8; at 1006 it carries 984 and not 986.
        assert_eq!(
            frames(Path::Udp, 978, 1_006, Headers::Plain),
            [Bytes(1_006)]
        );
        assert_eq!(
            frames(Path::Udp, 979, 1_006, Headers::Plain),
            [Bytes(1_004), Bytes(23)]
        );
        let all = frames(Path::Udp, 65_507, 9_180, Headers::Plain);
        let carried: u64 = all.iter().map(|frame| frame.0 - IP).sum();
        assert_eq!((all.len(), carried), (8, 65_515));
    }

    #[test]
    fn ceilings_are_of_the_model() {
        let model = model("ethernet-100");
        let points = [
            (Path::Udp, Quantity::LatencyNs, Some(1)),
            (Path::Tcp, Quantity::ThroughputBps, None),
            (Path::Tcp, Quantity::ThroughputBps, Some(1 << 20)),
        ];
        let record = network(&model, Profile::MODERN, points, &mut Vec::new()).unwrap();
        let values: Vec<u64> = record
            .ceilings
            .iter()
            .map(|ceiling| ceiling.value)
            .collect();
        assert_eq!(values[0], record.row.one_way_1b_ns.unwrap());
        assert_eq!(Some(values[1]), record.row.tcp_max_bps);
        // Large messages come near the ceiling of streams, and stay below it.
        assert!(
            values[2] < values[1] && values[2] > values[1] / 100 * 99,
            "{values:?}"
        );
        let back: NetworkSpec = toml::from_str(&record.spec.unwrap()).unwrap();
        assert_eq!(back.name, model.name());
    }

    #[test]
    fn a_switched_circuit_is_in_the_cold_ceiling() {
        let cold = |selector, path| {
            let model = model(selector);
            let bounds = Bounds {
                model: &model,
                profile: Profile::MODERN,
            };
            bounds.cold(path, 8).unwrap().as_nanos()
        };
        for path in [Path::Tcp, Path::Udp] {
            let setup = cold("atm-oc3c:vc=svc", path) - cold("atm-oc3c", path);
            assert!(
                (20_900_000..=21_100_000).contains(&setup),
                "{path:?} {setup}"
            );
        }
    }

    #[test]
    fn a_path_over_a_site_has_bounds() {
        let points = [
            (Path::Udp, Quantity::LatencyNs, Some(1)),
            (Path::Tcp, Quantity::ThroughputBps, None),
            (Path::Udp, Quantity::StartupNs, Some(1)),
        ];
        let of = |model: &Modelled| {
            let record = network(model, Profile::MODERN, points, &mut Vec::new()).unwrap();
            let values: Vec<u64> = record.ceilings.iter().map(|one| one.value).collect();
            (record, values)
        };
        let site = sonde_link::resolve_site("sandia-trial", &|_| Err("no file".into())).unwrap();
        let path = Modelled::site(site.clone(), None).unwrap();
        let (record, [latency, tcp, startup]) = (of(&path).0, of(&path).1[..].try_into().unwrap());
        let back: SiteSpec = toml::from_str(&record.spec.unwrap()).unwrap();
        assert_eq!(back.names(), site.names());
        // To the nanosecond below, and above.
        assert!(record.row.one_way_1b_ns.unwrap() - latency <= 1);
        assert_eq!(Some(tcp), record.row.tcp_max_bps);
        assert!(startup >= latency && record.row.tcp_expected_bps.unwrap() <= tcp);
        // The same two hosts on the slowest of its networks alone: the way over more is longer, and no faster.
        let slowest = path.path().networks().into_iter();
        let slowest = slowest.min_by_key(|one| one.line.rate).unwrap();
        let (_, alone) = of(&Modelled::network(slowest));
        assert!(
            latency > alone[0] && tcp <= alone[1],
            "{latency} {tcp} {alone:?}"
        );
    }

    #[test]
    fn a_real_line_has_the_ceiling_of_its_rate() {
        let record = real("lan", "", 1_500, Some(1_000_000_000));
        assert_eq!(record.row.tcp_max_bps, Some(941_482_444));
        assert_eq!(real("loopback", "", 65_536, None).row.tcp_max_bps, None);
    }
}
