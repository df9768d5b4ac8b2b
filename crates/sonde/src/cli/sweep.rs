//! `sonde probe sweep`: its options, lowered to a plan whose product is the sweep.

use super::options::Common;
use super::typed;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::model::Modelled;
use crate::plan::{Kind, Lost, Plan, ProbeKind, ProbePlan, Repeat};
use crate::shown::Form;
use clap::Args;
use sonde_measure::{Method, Path};
use sonde_units::{Ratio, Span};
use std::collections::BTreeMap;
use std::iter;

/// Examples below the help.
pub const EXAMPLES: &str = "Examples:
  sonde probe sweep --network hippi-sc --with buffer=64KiB,384KiB        as in the HIPPI study: user buffer by socket buffer
  sonde probe sweep --network wan-100m-20ms --with window=64KiB,256KiB,1MiB --with scaling=on,off
  sonde probe sweep --network fddi --with mtu=576,1500,4352 --size 64KiB
  sonde probe sweep --testbed hosts:a,b --with offloads=on,off --with streams=1,4 --with congestion=cubic,reno
  sonde probe sweep --network ethernet-100 --udp-limit                   the highest UDP rate with 0.1 % lost
  sonde probe sweep --network ethernet-100 --udp-limit --lost 0          the same with nothing lost (RFC 2544)
Knobs of the program's sockets: buffer (both ends of both), sndbuf, rcvbuf, congestion, streams. Knobs of both hosts, set for
each repetition and restored after it: mtu, window, scaling, rmem, wmem, offloads, tso, gso, gro (as root on real hosts).";

/// What `sonde probe sweep` takes.
#[derive(Debug, Args)]
pub struct SweepOptions {
    #[command(flatten)]
    common: Common,
    /// Transport: tcp, udp.
    #[arg(short = 'p', long = "path", value_delimiter = ',', default_value = "tcp", value_parser = typed::name::<Path>)]
    paths: Vec<Path>,
    /// How bytes are handed over: plain.
    #[arg(long = "method", value_delimiter = ',', default_value = "plain", value_parser = typed::name::<Method>)]
    methods: Vec<Method>,
    /// A parameter with its values; of several parameters every combination. They are listed below.
    #[arg(long = "with", value_name = "KNOB=VALUE,...", value_parser = typed::knob)]
    knobs: Vec<(String, Vec<String>)>,
    /// The program's buffers: bytes of each call [default: 1 KiB to 1 MiB in steps of four].
    #[arg(long = "size", value_delimiter = ',', value_parser = typed::sizes)]
    sizes: Vec<String>,
    /// Measuring time of each stream, 1 s at least.
    #[arg(short = 't', long, aliases = ["time", "duration"], value_name = "TIME", default_value = "1s", value_parser = Span::of_option)]
    budget: Span,
    /// Send datagrams at constant rates, and find the highest with no more lost than `--lost` by bisection below the line's
    /// rate; the last is confirmed by the other repetitions. With `--with rate=A,B,...` only those rates are sent.
    #[arg(long, conflicts_with = "paths")]
    udp_limit: bool,
    /// The share of datagrams that may be lost, as 0.1% or 0.001; 0 is the throughput of RFC 2544.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.1%",
        value_parser = lost,
        requires = "udp_limit"
    )]
    lost: Lost,
}

fn lost(text: &str) -> Result<Lost, String> {
    Ratio::of_option(text).map_err(|error| error.to_string())?;
    text.parse()
}

const SIZES: [&str; 6] = ["1KiB", "4KiB", "16KiB", "64KiB", "256KiB", "1MiB"];

impl SweepOptions {
    /// Runs it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let plan = self.plan()?;
        self.common.measurement(plan, Form::Table)?.run()
    }

    fn knobs(&self) -> BTreeMap<String, Vec<String>> {
        let mut knobs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in &self.knobs {
            let known = knobs.entry(name.clone()).or_default();
            known.extend(values.iter().cloned());
        }
        knobs
    }

    /// The rate of the slowest line.
    fn rate(networks: &[Modelled]) -> Result<String, Failure> {
        let lines = networks.iter().filter_map(Modelled::usable);
        let least = lines.map(|rate| rate.bps()).min();
        let line = least.ok_or_else(|| {
            Failure::usage(
                "the line's rate is not known here: name the rates, as `--udp-limit --with rate=100Mbit,500Mbit,900Mbit`, or the \
                 highest to begin with, as `--with rate=1Gbit`",
            )
        })?;
        Ok(format!("{line}bit"))
    }

    /// An MTU above the network's is a black hole, and no measurement.
    fn check_mtus(
        networks: &[Modelled],
        knobs: &BTreeMap<String, Vec<String>>,
    ) -> Result<(), Failure> {
        let Some(mtus) = knobs.get("mtu") else {
            return Ok(());
        };
        for network in networks {
            let most = network.mtu();
            if let Some(mtu) = mtus
                .iter()
                .find(|mtu| mtu.parse().is_ok_and(|mtu: u64| mtu > most))
            {
                return Err(Failure::usage(format!(
                    "{} carries packets of {most} bytes at most: an MTU of {mtu} would lose every full one; write up to {most}",
                    network.name()
                )));
            }
        }
        Ok(())
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let knobs = self.knobs();
        let mut testbed = self.common.testbed();
        let testbed_kind = testbed.kind;
        if testbed.kind == Kind::Lab && self.common.hosts.hosts.is_none() {
            // A sweep is of one pair.
            testbed.hosts = 2;
        }
        let mut latency = ProbePlan::new(ProbeKind::Latency, &[AnyPath::TCP], &["1"]);
        (latency.samples, latency.budget) = (Some(1_000), Some(Span::millis(100)));
        latency.beside = true;
        let paths = match self.udp_limit {
            true => vec![Path::Udp],
            false => self.paths.clone(),
        };
        let stream = |path: &Path| {
            let sizes: &[&str] = match path {
                Path::Tcp => &SIZES,
                _ if self.udp_limit => &["mtu"],
                _ => &["64", "256", "1KiB", "mtu"],
            };
            let mut stream =
                ProbePlan::new(ProbeKind::Throughput, &[AnyPath::Channel(*path)], sizes);
            if !self.sizes.is_empty() {
                stream.size.clone_from(&self.sizes);
            }
            (stream.method, stream.knobs) = (self.methods.clone(), knobs.clone());
            (stream.samples, stream.budget) = (Some(1_000), Some(self.budget));
            stream
        };
        let probes = iter::once(latency).chain(paths.iter().map(stream));
        let repeat = Repeat::of(self.common.effort.effort());
        let plan = Plan::new(testbed, probes.collect(), repeat);
        let mut plan = self.common.apply(plan);
        let of_lab = plan
            .networks
            .iter()
            .filter(|_| testbed_kind == Kind::Lab)
            .map(|network| Modelled::named(network, &plan.testbed));
        let networks = of_lab.collect::<Result<Vec<_>, _>>()?;
        Self::check_mtus(&networks, &knobs)?;
        if self.udp_limit {
            let stream = &mut plan.probes[1];
            if !knobs.contains_key("rate") {
                let rate = Self::rate(&networks)?;
                stream.knobs.insert("rate".into(), vec![rate]);
            }
            stream.lost = (stream.knobs["rate"].len() == 1).then_some(self.lost);
        }
        Ok(plan)
    }
}
