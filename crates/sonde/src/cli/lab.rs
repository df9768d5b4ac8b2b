//! `sonde lab`: its subcommands, and which task each becomes.

use super::lab_check::{self, LabCheckOptions};
use super::output::OutputOptions;
use super::typed;
use crate::failure::Failure;
use crate::{compare_sites, downtime, lab, networks, plan, replay, sites, testbed};
use clap::{Args, Subcommand};
use sonde_link::SiteSpec;
use sonde_units::Span;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum LabTask {
    /// Run a program on h1 of a fresh lab; its exit code is the command's.
    #[command(after_help = "Examples:
  sonde lab run --network atm-oc3c:vc=svc -- ping -c 3 h2
  sonde lab run --network ethernet-100 --hosts 2 -- sh -c 'sonde lab exec --detach h2 -- iperf3 -s -1; sleep 1; iperf3 -c h2'
  sonde lab run --network wire:delay=1ms --pcap h2=/tmp/h2.pcap -- ping -c 3 h2
  sonde lab run --network ethernet-10 --network fddi -- ping -c 3 h2-eth1
  sonde lab run --network wan-ds3 --hosts 4 -- mpirun -np 4 ./anything
  sonde lab run --site two-rooms -- ping -c 3 b1")]
    Run {
        #[command(flatten)]
        lab: testbed::LabOptions,
        #[command(flatten)]
        program: ProgramOptions,
        /// Run the program on every host, and wait for all.
        #[arg(long)]
        each: bool,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// Open a shell on a host of a fresh lab.
    #[command(after_help = "Example:\n  sonde lab shell --network wan-ds3 h3")]
    Shell {
        /// The host.
        #[arg(value_parser = plan::host_number, default_value = "h1")]
        host: u16,
        #[command(flatten)]
        lab: testbed::LabOptions,
        #[command(flatten)]
        program: ProgramOptions,
    },
    /// Run a program on another host, from inside a lab.
    #[command(after_help = "Example, in a lab:\n  sonde lab exec h2 -- iperf3 -s -D")]
    Exec {
        /// The host: h2, or what the site's file calls it.
        host: String,
        /// Leave the program running when this command ends.
        #[arg(long)]
        detach: bool,
        /// Run the program as the lab's root.
        #[arg(long)]
        root: bool,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// Break, repair or load the network, from inside a lab.
    #[command(after_help = "Examples, in a lab (`sonde lab shell`):
  sonde lab tell link h2 down              and `link h2 up`; host h2 down; pause h2 on
  sonde lab tell loss h2 1%                also corrupt, duplicate; `all` for every host; 0 ends it
  sonde lab tell reorder all 5% 1ms        one in twenty is held back by 1 ms
  sonde lab tell delay all 20ms            and `delay all 0s` ends it
  sonde lab tell cut h1 h3 on              they cannot reach each other
  sonde lab tell rate 10Mbit               and `rate own`
  sonde lab tell trunk 0 down              between switches; restart 2s; manager down
  sonde lab tell load 1 h2 rho=0.6         background traffic; rho=0 ends it
  sonde lab tell vc release h1 h2          virtual circuits
  sonde lab tell eth1 link h2 down         of the lab's second network")]
    Tell {
        /// The change, as in the examples.
        #[arg(required = true, num_args = 1..)]
        words: Vec<String>,
    },
    /// List the networks of the catalogue, with the ceilings of each, or its sites.
    #[command(visible_alias = "show")]
    List {
        /// These networks, as `--network` names them; with `--sites` these sites.
        #[arg(value_name = "NETWORK", value_delimiter = ',', value_parser = typed::network_name(), hide_possible_values = true)]
        names: Vec<String>,
        /// Sites instead: segments that bridges join, for `lab run --site`.
        #[arg(long, conflicts_with = "networks")]
        sites: bool,
        #[command(flatten)]
        output: OutputOptions,
        /// These networks instead, with knobs, or files of your own.
        #[arg(long = "network", value_name = "NAME[:KNOB=VALUE]...", value_delimiter = ',', value_parser = typed::network_name(), hide_possible_values = true)]
        networks: Vec<String>,
        /// TCP settings for which the ceilings hold: modern, era, or era:window=BYTES.
        #[arg(long, default_value = "modern", value_parser = typed::name::<sonde_lab::Profile>)]
        profile: sonde_lab::Profile,
    },
    /// Compare two sites: what the second changes for hosts, interfaces, ports and addresses, and what paths gain.
    #[command(
        after_help = "Example:\n  sonde lab compare-sites sandia-engineering sandia-hybrid --host file-server"
    )]
    CompareSites {
        /// The site as it is: a name of `sonde lab list --sites` or a file.
        #[arg(value_name = "BEFORE")]
        before: String,
        /// The site as it could be, likewise.
        #[arg(value_name = "AFTER")]
        after: String,
        /// The host to which paths are compared; without it the first of those with the most interfaces.
        #[arg(long, value_name = "HOST")]
        host: Option<String>,
        #[command(flatten)]
        output: OutputOptions,
        /// TCP settings for which rates hold: modern, era, or era:window=BYTES.
        #[arg(long, default_value = "modern", value_parser = typed::name::<sonde_lab::Profile>)]
        profile: sonde_lab::Profile,
    },
    /// Say for how long hosts do not reach each other while what a schedule says breaks, by cause: networks or sites side by side.
    #[command(after_help = "Examples:
  sonde lab downtime ./trial-atm.toml ./trial-ethernet.toml --hosts 12
  sonde lab downtime atm-oc3c ethernet-10 --script outages.txt --for 1008h
A script has lines of TIME COMMAND, as `36h restart 5min`; a network's own file has `[[fault]]`.")]
    Downtime {
        /// These networks, as `--network` names them; with `--sites` these sites.
        #[arg(required = true, value_name = "NETWORK", value_delimiter = ',', value_parser = typed::network_name(), hide_possible_values = true)]
        names: Vec<String>,
        /// Sites instead, of `lab list --sites` or files.
        #[arg(long, conflicts_with = "hosts")]
        sites: bool,
        /// Number of hosts on each network.
        #[arg(long, value_name = "N", default_value_t = 4, value_parser = typed::hosts)]
        hosts: u16,
        /// What breaks, beside what the networks' own files say: a file with lines of TIME COMMAND.
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
        /// For how long, from the start of the schedule: six weeks where nothing else is said.
        #[arg(long = "for", value_name = "TIME", default_value = "1008h", value_parser = Span::of_option)]
        lasts: Span,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Measure the emulation itself: rate and delay error, lateness, frames per second.
    #[command(after_help = lab_check::EXAMPLES)]
    Check(Box<LabCheckOptions>),
    /// Replay a ledger of `lab run --ledger` under the virtual clock, and compare.
    #[command(
        after_help = "Example:\n  sonde lab run --ledger /tmp/l -- ping -c 3 h2; sonde lab replay /tmp/l"
    )]
    Replay {
        /// The ledger.
        ledger: PathBuf,
    },
}

/// How the programs of a lab are run.
#[derive(Debug, Args)]
pub struct ProgramOptions {
    /// Run as the lab's root, who may change the host's network.
    #[arg(long)]
    pub root: bool,
    /// Write a report on the emulation itself to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Exit with 125 where the emulation deviated from its model, whatever the program's code.
    #[arg(long)]
    pub strict: bool,
}

impl LabTask {
    /// Runs it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        match self {
            Self::Run {
                lab,
                program,
                each,
                command,
            } => lab::run(&lab, &program, each, &command).map_err(Failure::passing),
            Self::Shell { lab, program, host } => {
                lab::shell(&lab, &program, host).map_err(Failure::passing)
            }
            Self::Exec {
                host,
                detach,
                root,
                command,
            } => lab::exec(&host, detach, root, &command).map_err(Failure::passing),
            Self::Tell { words } => lab::tell(&words.join(" ")),
            Self::List {
                names,
                sites: true,
                output,
                profile,
                ..
            } => sites::list(&names, profile, output.take()?),
            Self::List {
                names,
                output,
                networks,
                profile,
                ..
            } => networks::list(&[names, networks].concat(), profile, output.take()?),
            Self::CompareSites {
                before,
                after,
                host,
                output,
                profile,
            } => {
                let named = host.as_deref();
                compare_sites::compare([&before, &after], named, profile, output.take()?)
            }
            Self::Downtime {
                names,
                sites,
                hosts,
                script,
                lasts,
                output,
            } => {
                let of = |name: &String| match sites {
                    true => testbed::site(name),
                    false => Ok(SiteSpec::single(testbed::network(name)?, hosts)),
                };
                let all = names.iter().map(of).collect::<Result<Vec<_>, _>>()?;
                downtime::show(&all, script.as_deref(), lasts, output.take()?)
            }
            Self::Check(options) => options.run(),
            Self::Replay { ledger } => replay::replay(&ledger),
        }
    }
}
