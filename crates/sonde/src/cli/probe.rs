//! `sonde probe`: one kind of measurement, lowered to a plan of its own.

use super::options::Common;
use super::pattern::{self, PatternOptions};
use super::typed;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::plan::{Mode, Plan, ProbeKind, ProbePlan};
use crate::shown::Form;
use clap::{Args, Subcommand};
use sonde_measure::spec::SAMPLES_MAX;
use sonde_measure::{Method, RATE_MAX, Spacing};
use sonde_units::Span;
use std::collections::BTreeMap;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum ProbeTask {
    /// Cold start: time to the first reply, with no connection, ARP entry or circuit yet.
    #[command(after_help = "Example:
  sonde probe startup --network atm-oc3c:vc=svc --size 8 --json")]
    Startup(ChannelOptions),
    /// One-way latency (RTT/2) of a warm connection against message size.
    #[command(
        alias = "lat",
        after_help = "Examples:
  sonde probe latency --network atm-oc3c --path udp --size 1..64KiB
  sonde probe latency --network ethernet-1g --path udp,packet --method plain,ring
  sonde probe latency --testbed hosts:a,b --wait block,poll
  sonde probe latency --testbed hosts:a,b --budget 1h --samples 1000000000000 --precision 0 --launches 1
  sonde probe latency --testbed local --path shm,unix --method plain,segment --wait poll --size 8
  sonde probe latency --testbed local --path shm --with align=0,1 --size 64..4KiB"
    )]
    Latency(ChannelOptions),
    /// Throughput of a stream or of single messages.
    #[command(visible_aliases = ["bw", "bandwidth"], after_help = "Examples:
  sonde probe throughput --network wan-100m-20ms --profile era
  sonde probe throughput --testbed hosts:a,b --with streams=1,4 --with congestion=cubic,reno
  sonde probe throughput --testbed local --method plain,splice,uring --with rcvbuf=1MiB --with lowat=256KiB
  sonde probe throughput --testbed local --path udp --method plain,mmsg,gso --size 1472
  sonde probe throughput --mode message --size 1KiB..4MiB --testbed hosts:a,b")]
    Throughput {
        /// Of a stream, or of single messages with all that each of them costs.
        #[arg(long, default_value = "stream", ignore_case = true)]
        mode: Mode,
        /// Connections that carry a stream at once; with several values, each of them. The same as `--with streams=N`.
        #[arg(short = 'P', long, value_name = "N,...", value_delimiter = ',')]
        streams: Vec<u32>,
        #[command(flatten)]
        options: ChannelOptions,
    },
    /// Where the time of a message goes: send call, queueing, wire, wake-up, by the kernel's time stamps.
    #[command(after_help = "Examples:
  sonde probe anatomy --network ethernet-1g --path udp,tcp,packet --size 1..1KiB
  sonde probe anatomy --network ethernet-100 --path udp --load 0,0.6 --wait block,poll
  sonde probe anatomy --testbed hosts:a,b --path tcp")]
    Anatomy(ChannelOptions),
    /// Latency of messages that are sent at a rate, each from the time at which it was due.
    #[command(after_help = "Examples:
  sonde probe rate --network ethernet-1g --rate 1000,10000 --path udp
  sonde probe rate --testbed hosts:a,b --rate 5000 --law constant,poisson --budget 10s")]
    Rate {
        /// Messages per second; with several values, each of them.
        #[arg(long, value_delimiter = ',', default_value = "1000", value_parser = typed::count::<RATE_MAX>)]
        rate: Vec<u64>,
        /// Gaps between messages: constant, poisson.
        #[arg(long, value_delimiter = ',', default_value = "constant", value_parser = typed::name::<Spacing>)]
        law: Vec<Spacing>,
        #[command(flatten)]
        options: ChannelOptions,
    },
    /// Time of a collective call among all ranks, from its agreed begin to its end at the last rank.
    #[command(after_help = "Examples:
  sonde probe collective allreduce --path openmpi:tcp,mpich:tcp --ranks 4 --size 8,64KiB --network ethernet-1g
  sonde probe collective broadcast --path native:tcp --ranks 2,4,8 --algorithm binomial,chain --testbed hosts:a,b,c,d")]
    Collective {
        /// The call: barrier, broadcast, reduce, allreduce, gather, scatter, allgather, alltoall, scan.
        #[arg(value_parser = typed::call_name(), hide_possible_values = true)]
        call: String,
        /// Number of ranks; with several values, each of them.
        #[arg(long, value_delimiter = ',', default_value = "4")]
        ranks: Vec<u64>,
        /// Implementation: library, or the name of an algorithm of sonde's [default: library, where it has the call].
        #[arg(long, value_delimiter = ',')]
        algorithm: Vec<String>,
        #[command(flatten)]
        options: ChannelOptions,
    },
    /// Send the messages of a program without its computation: by number, mean and median length, and who sends to whom.
    #[command(after_help = super::messages::EXAMPLES)]
    Messages(super::messages::MessagesOptions),
    /// Throughput, call times and rates of files on a server: NFS versions 2 and 3, by reads, writes and calls on names; FTP, by whole files.
    #[command(after_help = super::files::EXAMPLES)]
    Files(super::files::FilesOptions),
    /// Check message-passing libraries for correct results on these hosts: every collective, every kind of message.
    #[command(after_help = super::check::EXAMPLES)]
    Check(super::check::CheckOptions),
    /// Concurrent flows: all-pairs matrix that finds the bad host, permutations, incast.
    #[command(after_help = pattern::EXAMPLES)]
    Pattern(PatternOptions),
    /// Throughput of a stream against the program's buffer, for each combination of buffers, windows, MTUs and offloads.
    #[command(after_help = super::sweep::EXAMPLES)]
    Sweep(super::sweep::SweepOptions),
}

/// What all measurements between two hosts take.
#[derive(Debug, Args)]
pub struct ChannelOptions {
    #[command(flatten)]
    pub common: Common,
    /// Transport or library: tcp, udp, packet, xdp; within one machine (`--testbed local`) also unix, shm. Libraries are native:tcp,
    /// native:unix, native:shm, pvm:default, pvm:direct, openmpi:tcp, openmpi:sm, mpich:tcp, mpich:sm, ucx:tcp, ofi:tcp.
    /// [default: tcp, and native:tcp for collective calls]
    #[arg(short = 'p', long = "path", value_delimiter = ',', value_parser = typed::path_name(), hide_possible_values = true)]
    pub paths: Vec<AnyPath>,
    /// How bytes are handed over: plain; for streams also zerocopy, splice, uring (tcp), mmsg, gso (udp); for round trips
    /// uring; with shm also segment; with packet also ring.
    #[arg(long = "method", value_delimiter = ',', default_value = "plain", value_parser = typed::name::<Method>)]
    pub methods: Vec<Method>,
    /// Other parameters; with several values, each of them: sndbuf, rcvbuf (as 64KiB), congestion, streams, busy-poll (us),
    /// chunk, lowat (as 128KiB), nodelay, connected (yes, no), align; for PVM encoding (default, raw, inplace).
    #[arg(long = "with", value_name = "KNOB=VALUE,...", value_parser = typed::knob)]
    pub knobs: Vec<(String, Vec<String>)>,
    /// User bytes in a message: 1, 64K, 1..64K (powers of two, and around the MTU), mtu [default: 1 B, and 1 MiB for
    /// throughput (UDP: one full frame)].
    #[arg(long = "size", value_delimiter = ',', value_parser = typed::sizes)]
    pub sizes: Vec<String>,
    /// Measuring time for each size, in each repetition.
    #[arg(short = 't', long, aliases = ["time", "duration"], value_name = "TIME", default_value = "1s", value_parser = Span::of_option)]
    pub budget: Span,
    /// Stop a size early when the 95 % confidence interval of its median is within this share of it; 0 goes on until the budget or
    /// the samples end.
    #[arg(long = "precision", value_name = "SHARE", default_value = "5%", value_parser = typed::per_mille::<1_000>)]
    pub precision_per_mille: u64,
    /// The most samples of each size in a repetition [default: 10000; at a rate as many as the budget holds].
    #[arg(long, value_parser = typed::count::<SAMPLES_MAX>)]
    pub samples: Option<u64>,
}

impl ProbeTask {
    /// Runs it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        match self {
            Self::Startup(options) => options.run(ProbeKind::Startup, None),
            Self::Latency(options) => options.run(ProbeKind::Latency, None),
            Self::Anatomy(options) => options.run(ProbeKind::Anatomy, None),
            Self::Pattern(options) => options.run(),
            Self::Sweep(options) => options.run(),
            Self::Check(options) => options.run(),
            Self::Messages(options) => options.run(),
            Self::Files(options) => options.run(),
            Self::Throughput {
                mode,
                streams,
                mut options,
            } => {
                if !streams.is_empty() {
                    let streams = streams.iter().map(u32::to_string).collect();
                    options.knobs.push(("streams".into(), streams));
                }
                options.run(ProbeKind::Throughput, Some(mode))
            }
            Self::Collective {
                call,
                ranks,
                algorithm,
                mut options,
            } => {
                let ranks = ranks.iter().map(u64::to_string).collect();
                options
                    .knobs
                    .extend([("call".into(), vec![call]), ("ranks".into(), ranks)]);
                if !algorithm.is_empty() {
                    options.knobs.push(("algorithm".into(), algorithm));
                }
                options.run(ProbeKind::Collective, None)
            }
            Self::Rate {
                rate,
                law,
                mut options,
            } => {
                let rates = rate.iter().map(u64::to_string).collect();
                let laws = law.iter().map(|law| law.name().into()).collect();
                options
                    .knobs
                    .extend([("rate".into(), rates), ("law".into(), laws)]);
                options.run(ProbeKind::Rate, None)
            }
        }
    }
}

impl ChannelOptions {
    /// Measures one kind.
    pub fn run(self, kind: ProbeKind, mode: Option<Mode>) -> Result<i32, Failure> {
        let plan = self.plan(kind, mode);
        self.common.measurement(plan, Form::Rows)?.run()
    }

    fn plan(&self, kind: ProbeKind, mode: Option<Mode>) -> Plan {
        let mut knobs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in &self.knobs {
            knobs
                .entry(name.clone())
                .or_default()
                .extend(values.iter().cloned());
        }
        let mut probe = ProbePlan::new(kind, &self.paths, &[]);
        (probe.mode, probe.method) = (mode, self.methods.clone());
        (probe.size, probe.knobs) = (self.sizes.clone(), knobs);
        (probe.samples, probe.budget) = (self.samples, Some(self.budget));
        let mut plan = self.common.plan(vec![probe]);
        plan.repeat.precision_per_mille = self.precision_per_mille;
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        task: ProbeTask,
    }

    fn plan(words: &[&str]) -> Plan {
        let line = Line::parse_from([&["probe"], words].concat());
        match line.task {
            ProbeTask::Startup(options) => options.plan(ProbeKind::Startup, None),
            ProbeTask::Latency(options) => options.plan(ProbeKind::Latency, None),
            ProbeTask::Anatomy(options) => options.plan(ProbeKind::Anatomy, None),
            ProbeTask::Throughput { mode, options, .. } => {
                options.plan(ProbeKind::Throughput, Some(mode))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_plan_leaves_out_is_filled_in() {
        for (words, text) in [
            (&["latency"][..], "[[probe]]\nkind = \"latency\""),
            (&["startup"], "[[probe]]\nkind = \"startup\""),
            (&["anatomy"], "[[probe]]\nkind = \"anatomy\""),
            (&["throughput"], "[[probe]]\nkind = \"throughput\""),
            (
                &[
                    "throughput",
                    "--mode",
                    "message",
                    "--path",
                    "udp,tcp,packet,native:tcp",
                ],
                "[[probe]]\nkind = \"throughput\"\nmode = \"message\"\npath = [\"udp\", \"tcp\", \"packet\", \"native:tcp\"]",
            ),
            (
                &["latency", "--network", "fddi", "--quick"],
                "[[network]]\nname = \"fddi\"\n[[probe]]\nkind = \"latency\"\n[repeat]\nlaunches = 2\nmax = 2",
            ),
        ] {
            let by_options = plan(words);
            let mut by_text = Plan::parse(text).unwrap();
            for probe in &mut by_text.probes {
                // The command writes them out; start-up has no budget, and the usual method is plain.
                probe.method = vec![Method::Plain];
                probe.budget.get_or_insert(Span::secs(1));
            }
            assert_eq!(by_text, by_options, "{text}");
            let printed = by_options.text().unwrap();
            assert_eq!(Plan::parse(&printed).unwrap(), by_options, "{printed}");
        }
        let of_two = plan(&["throughput", "--path", "udp,tcp,packet"]);
        let sizes = of_two
            .probes
            .iter()
            .map(|probe| (probe.path.len(), &*probe.size[0]));
        assert_eq!(
            sizes.collect::<Vec<_>>(),
            [(1, "mtu"), (1, "1MiB"), (1, "mtu")],
            "a probe for each usual size, in the order of the paths"
        );
        let ranks = "[[probe]]\nkind = \"collective\"\n[probe.with]\ncall = [\"barrier\"]";
        let ranks = &Plan::parse(ranks).unwrap().probes[0];
        assert_eq!(
            (ranks.path[0].name(), &*ranks.size[0]),
            ("native:tcp".into(), "8")
        );
    }
}
