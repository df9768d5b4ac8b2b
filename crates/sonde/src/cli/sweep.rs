//! `sonde probe sweep`: its options, lowered to a plan whose product is the sweep.

use super::options::Common;
use super::probe::knob;
use crate::failure::Failure;
use crate::limit::Search;
use crate::plan::{Effort, Kind, Mode, NetworkPlan, Plan, ProbeKind, ProbePlan, Repeat};
use crate::testbed;
use crate::way::Way;
use clap::Args;
use sonde_measure::{Method, Path, Wait};
use sonde_units::Span;
use std::collections::BTreeMap;

/// Examples below the help.
pub const EXAMPLES: &str = "Examples:
  sonde probe sweep --network hippi-sc --with buffer=64KiB,384KiB        the HIPPI study's: user buffer by socket buffer
  sonde probe sweep --network wan-100m-20ms --with window=64KiB,256KiB,1MiB --with scaling=on,off
  sonde probe sweep --network fddi --with mtu=576,1500,4352 --size 64KiB
  sonde probe sweep --testbed hosts:a,b --with offloads=on,off --with streams=1,4 --with congestion=cubic,reno
  sonde probe sweep --network ethernet-100 --udp-limit                   the highest rate of UDP with 0.1 % lost
  sonde probe sweep --network ethernet-100 --udp-limit --lost 0          the same with nothing lost (RFC 2544)
Knobs of the program's sockets: buffer (both ends of both), sndbuf, rcvbuf, congestion, streams. Knobs of both hosts, set for
each launch and put back after it: mtu, window, scaling, rmem, wmem, offloads, tso, gso, gro (as root on real hosts).";

/// What `sonde probe sweep` takes.
#[derive(Debug, Args)]
pub struct SweepOptions {
    #[command(flatten)]
    common: Common,
    /// By which path: tcp, udp.
    #[arg(long = "path", value_delimiter = ',', default_value = "tcp")]
    paths: Vec<Path>,
    /// How bytes are handed over: plain.
    #[arg(long = "method", value_delimiter = ',', default_value = "plain")]
    methods: Vec<Method>,
    /// A knob with its values; of several knobs every combination. Knobs are listed below.
    #[arg(long = "with", value_name = "KNOB=VALUE,...", value_parser = knob)]
    knobs: Vec<(String, Vec<String>)>,
    /// The program's buffers: bytes of each call. Without it: 1 KiB to 1 MiB in steps of four.
    #[arg(long = "size", value_delimiter = ',')]
    sizes: Vec<String>,
    /// What of each stream is rated, 1 s at least.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    budget: Span,
    /// Send datagrams at constant rates, and find the highest with no more lost than `--lost` by bisection below the line's
    /// rate; the last is confirmed by the other launches. With `--with rate=A,B,...` only those rates are sent.
    #[arg(long, conflicts_with = "paths")]
    udp_limit: bool,
    /// The share of datagrams that may be lost, as 0.1% or 0.001; 0 is the throughput of RFC 2544.
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = ppm, requires = "udp_limit")]
    lost: u64,
}

/// A share in parts of a million.
fn ppm(text: &str) -> Result<u64, String> {
    let (number, of) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 1e4),
        None => (text, 1e6),
    };
    let share = number.parse().ok().map(|share: f64| share * of);
    share
        .filter(|ppm| (0.0..1e6).contains(ppm))
        .map(|ppm| ppm.round() as u64)
        .ok_or_else(|| format!("`{text}` is no share: write 0 to below 1, or as 0.1%"))
}

const SIZES: [&str; 6] = ["1KiB", "4KiB", "16KiB", "64KiB", "256KiB", "1MiB"];

impl SweepOptions {
    /// Runs it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let plan = self.plan()?;
        let bisects =
            self.udp_limit && self.knobs().get("rate").is_none_or(|rates| rates.len() < 2);
        let search = bisects.then_some(Search {
            lost_ppm: self.lost,
            launches: plan.repeat.launches,
        });
        let mut measurement = self.common.measurement(plan, false);
        if search.is_some() && measurement.resume.is_some() {
            return Err(Failure::usage(
                "a search is not resumed, since each rate follows from those before: leave `--resume` out, or name the rates",
            ));
        }
        measurement.search = search;
        measurement.run()
    }

    fn knobs(&self) -> BTreeMap<String, Vec<String>> {
        let mut knobs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in &self.knobs {
            let known = knobs.entry(name.clone()).or_default();
            known.extend(values.iter().cloned());
        }
        knobs
    }

    /// The rate of the slowest line, unless rates are given.
    fn rates(
        &self,
        networks: &[NetworkPlan],
        knobs: &BTreeMap<String, Vec<String>>,
    ) -> Result<Vec<String>, Failure> {
        if let Some(rates) = knobs.get("rate") {
            return Ok(rates.clone());
        }
        let named: Vec<&str> = if self.common.networks.is_empty() {
            networks
                .iter()
                .map(|network| network.name.as_str())
                .collect()
        } else {
            self.common.networks.iter().map(String::as_str).collect()
        };
        let mut least: Option<u64> = None;
        for name in named {
            let line = testbed::network(name)?.line.usable().map(|rate| rate.bps());
            least = least.into_iter().chain(line).min();
        }
        let line = least.ok_or_else(|| {
            Failure::usage(
                "the line's rate is not known here: name the rates, as `--udp-limit --with rate=100Mbit,500Mbit,900Mbit`, or the \
                 highest to begin with, as `--with rate=1Gbit`",
            )
        })?;
        Ok(vec![format!("{line}bit")])
    }

    /// An MTU above the network's is a black hole, and no measurement.
    fn check_mtus(
        &self,
        networks: &[NetworkPlan],
        knobs: &BTreeMap<String, Vec<String>>,
    ) -> Result<(), Failure> {
        let Some(mtus) = knobs.get("mtu") else {
            return Ok(());
        };
        for network in networks {
            let most = testbed::network(&network.name)?.mtu;
            if let Some(mtu) = mtus
                .iter()
                .find(|mtu| mtu.parse().is_ok_and(|mtu: u64| mtu > most))
            {
                return Err(Failure::usage(format!(
                    "{} carries packets of {most} bytes at most: an MTU of {mtu} would lose every full one; write up to {most}",
                    network.name
                )));
            }
        }
        Ok(())
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let knobs = self.knobs();
        let mut testbed = self.common.testbed();
        if testbed.kind == Kind::Lab && testbed.hosts == 4 {
            // A sweep is of one pair.
            testbed.hosts = 2;
        }
        let launches = match self.common.effort.effort() {
            Effort::Quick => 2,
            Effort::Usual => 6,
            Effort::Thorough => 10,
        };
        let networks = match testbed.kind {
            Kind::Lab => vec![NetworkPlan::lab(testbed::DEFAULT_NETWORK)],
            _ => Vec::new(),
        };
        let texts = |all: &[&str]| all.iter().map(|one| (*one).into()).collect::<Vec<String>>();
        let probe = |kind, path: Path, size: Vec<String>, knobs| ProbePlan {
            floor: false,
            kind,
            mode: (kind == ProbeKind::Throughput).then_some(Mode::Stream),
            path: vec![Way::Channel(path)],
            method: self.methods.clone(),
            wait: vec![Wait::Block],
            size,
            launches: None,
            samples: Some(1_000),
            budget: Some(self.budget),
            knobs,
        };
        let mut latency = probe(
            ProbeKind::Latency,
            Path::Tcp,
            texts(&["1"]),
            BTreeMap::new(),
        );
        (latency.method, latency.budget) = (Vec::new(), Some(Span::millis(100)));
        let mut probes = vec![latency];
        let mut knobs = knobs;
        let paths = if self.udp_limit {
            let rates = self.rates(&networks, &knobs)?;
            knobs.insert("rate".into(), rates);
            vec![Path::Udp]
        } else {
            self.paths.clone()
        };
        for path in &paths {
            let sizes = match (self.sizes.is_empty(), path) {
                (false, _) => self.sizes.clone(),
                (true, Path::Tcp) => texts(&SIZES),
                (true, _) if self.udp_limit => texts(&["mtu"]),
                (true, _) => texts(&["64", "256", "1KiB", "mtu"]),
            };
            let mut stream = probe(ProbeKind::Throughput, *path, sizes, knobs.clone());
            let rates = knobs.get("rate").map_or(0, Vec::len);
            stream.launches = (self.udp_limit && rates == 1).then_some(1);
            probes.push(stream);
        }
        let plan = self.common.apply(Plan {
            testbed,
            profile: Default::default(),
            networks,
            loads: Vec::new(),
            probes,
            repeat: Repeat {
                launches,
                max: if launches == 10 { 20 } else { launches },
                ..Repeat::default()
            },
            requirements: Vec::new(),
        });
        self.check_mtus(&plan.networks, &knobs)?;
        Ok(plan)
    }
}
