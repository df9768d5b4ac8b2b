//! The options that describe a lab, lowered to its configuration.

use crate::cli;
use crate::failure::Failure;
use crate::plan::{DEFAULT_NETWORK, host_number};
use crate::quick_link::Link;
use clap::Args;
use sonde_fleet::Load;
use sonde_lab::{Attachment, Config, CpuPlan, Lab, Priority, Profile, User, WrittenFile};
use sonde_link::{CatalogueError, Command, NetworkSpec, Script, SiteSpec};
use sonde_sys::file;
use sonde_units::{Instant, Span};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The hosts of a lab.
#[derive(Clone, Debug, Args)]
pub struct HostOptions {
    /// Number of a lab's hosts, 2 to 256; they are h1 to hN at 10.9.0.1 to 10.9.0.N [default: 4].
    #[arg(long, value_name = "N", value_parser = cli::hosts)]
    pub hosts: Option<u16>,
    /// How hosts are attached: tap, veth, or auto for the first that is available.
    #[arg(long, default_value = "auto", value_parser = attachment)]
    pub attachment: Attachment,
    /// Priority of a lab's own processes: auto (real-time where the kernel permits it, as for root), or usual.
    #[arg(long, default_value = "auto", value_parser = Priority::from_str)]
    pub priority: Priority,
    /// TCP settings of the hosts: modern, era, or era:window=BYTES.
    #[arg(long, default_value = "modern", value_parser = cli::name::<Profile>)]
    pub profile: Profile,
    /// Random seed.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The device file of TAPs.
    #[arg(long, default_value = "/dev/net/tun", hide = true)]
    pub tun: PathBuf,
}

/// Whether this machine has an interface of this name.
fn is_interface(name: &str) -> bool {
    let is_name = !name.is_empty() && !name.contains(['/', '.']);
    is_name && Path::new("/sys/class/net").join(name).exists()
}

impl HostOptions {
    /// How many there are.
    pub fn count(&self) -> u16 {
        const USUAL: u16 = 4;
        self.hosts.unwrap_or(USUAL)
    }
}

/// The lab to start.
#[derive(Clone, Debug, Args)]
pub struct LabOptions {
    /// The network: a name of `sonde lab list` or a file of your own, with knobs. Several join the same hosts: the second
    /// is eth1 at 10.9.1.N, where host hN is called hN-eth1.
    #[arg(long = "network", value_name = "NAME[:KNOB=VALUE]...", value_delimiter = ',', value_parser = cli::network_name(), hide_possible_values = true, default_value = DEFAULT_NETWORK)]
    pub networks: Vec<String>,
    /// Instead of a network a site, of segments that bridges and routers join, with hosts of its own: a name of `sonde lab list --sites`
    /// or a file.
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["networks", "hosts"])]
    pub site: Option<String>,
    /// Instead of a network a link with this rate, delay in one direction, loss and jitter, as 100Mbit,10ms,1%,2ms; what is left out is
    /// none. A/B in place of one figure: A from the first host, B to it, as 100Mbit/10Mbit,10ms/30ms.
    #[arg(long, value_name = "RATE[,DELAY[,LOSS[,JITTER]]]", value_parser = Link::from_str, conflicts_with_all = ["networks", "site"])]
    pub link: Option<Link>,
    #[command(flatten)]
    pub hosts: HostOptions,
    /// CPUs: one (all on one: latency), split (the switch alone on one: throughput), auto (one while programs answer each
    /// other, split while they stream), or free.
    #[arg(long, default_value = DEFAULT_CPUS, value_name = "PLAN")]
    pub cpus: String,
    /// Background traffic inside the (first) network, to each host: RHO[:law=LAW][:size=BYTES], as in 0.6.
    #[arg(long, value_name = "RHO", value_parser = load)]
    pub load: Option<Load>,
    /// Faults and changes with their times: a file with lines of TIME COMMAND, as `2s link h2 down`; commands are those of
    /// `sonde lab tell`. Times count from the start of the lab.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Write all frames that enter and leave the network to this file, for `sonde lab replay`.
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Capture a host's frames into a pcap file.
    #[arg(long, value_name = "HOST=FILE", value_parser = capture)]
    pub pcap: Option<(u16, PathBuf)>,
    /// Let all users of the lab start programs in it and change its network, as after a login by ssh as another user.
    #[arg(long)]
    pub share: bool,
    /// Where a line is down (`sonde lab tell link all down`) take the interface's carrier away, and let hosts go by another of theirs.
    #[arg(long)]
    pub fail_over: bool,
}

const NETWORKS_MAX: usize = 8;
const DEFAULT_CPUS: &str = CpuPlan::AUTO;

fn load(text: &str) -> Result<Load, String> {
    cli::load(text)?.parse()
}

fn attachment(text: &str) -> Result<Attachment, String> {
    match text.to_lowercase().as_str() {
        "auto" => Ok(Attachment::Auto),
        "tap" => Ok(Attachment::Tap),
        "veth" => Ok(Attachment::Veth),
        _ => Err("write auto, tap or veth".into()),
    }
}

fn capture(text: &str) -> Result<(u16, PathBuf), String> {
    let (host, file) = text
        .split_once('=')
        .ok_or("write HOST=FILE, as in h2=/tmp/h2.pcap")?;
    Ok((host_number(host)?, file.into()))
}

/// The program that runs, which plays the lab's parts and the agents.
pub fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::cannot(format!("cannot find this program: {e}")))
}

/// The network that a selector names.
pub fn network(selector: &str) -> Result<NetworkSpec, Failure> {
    let found = sonde_link::resolve(selector, &|path| {
        file::text(Path::new(path)).map_err(|e| e.to_string())
    });
    found.map_err(|error| match &error {
        CatalogueError::Unknown { name, .. } if is_interface(name) => Failure::usage(format!(
            "`{name}` is an interface of this machine, and networks of the lab are emulated: measure it between hosts by \
             `--testbed hosts:a,b --network eth={name}`"
        )),
        _ => Failure::usage(error),
    })
}

/// The site that a selector names.
pub fn site(selector: &str) -> Result<SiteSpec, Failure> {
    let read = |path: &str| file::text(Path::new(path)).map_err(|e| e.to_string());
    sonde_link::resolve_site(selector, &read).map_err(Failure::usage)
}

/// The network that eth0 of all hosts of a lab is on.
pub fn sole(site: &SiteSpec) -> Result<NetworkSpec, Failure> {
    let network = site.network().cloned();
    network.ok_or_else(|| {
        Failure::usage(format!(
            "the site `{}` is of several networks: name one network here",
            site.name
        ))
    })
}

/// The script of a file.
pub fn script(path: &Path) -> Result<Script, Failure> {
    let shown = path.display();
    let text = file::text(path)
        .map_err(|e| Failure::usage(format!("cannot read the script {shown}: {e}")))?;
    Script::parse(&text).map_err(|error| Failure::usage(format!("the script {shown}, {error}")))
}

/// Puts a script into the networks that eth0 of hosts is on.
pub fn play(site: &mut SiteSpec, path: &Path, script: &Script) -> Result<(), Failure> {
    for (at, command) in &script.commands {
        let scheduled = site.schedule(at.since(Instant::START), *command);
        scheduled
            .map_err(|error| Failure::usage(format!("the script {}: {error}", path.display())))?;
    }
    Ok(())
}

impl LabOptions {
    /// The usual lab of these hosts.
    pub fn of_hosts(hosts: HostOptions) -> Self {
        Self {
            networks: vec![DEFAULT_NETWORK.into()],
            site: None,
            link: None,
            hosts,
            // A probe's launch moves the switch to where the probe wants it; programs that are compared have one plan throughout.
            cpus: "split".into(),
            load: None,
            script: None,
            ledger: None,
            pcap: None,
            share: false,
            fail_over: false,
        }
    }

    /// The configuration. Programs find the current folder and that of this command in each host.
    pub fn config(&self) -> Result<Config, Failure> {
        let online = sonde_sys::cpu::online()?;
        let count = self.networks.len();
        if count > NETWORKS_MAX {
            return Err(Failure::usage(format!(
                "hosts have at most {NETWORKS_MAX} networks at once, not {count}"
            )));
        }
        let mut site = match &self.site {
            Some(selector) => site(selector)?,
            None => {
                let quick = self
                    .link
                    .as_ref()
                    .map(|link| std::slice::from_ref(&link.selector));
                let networks = quick.unwrap_or(&self.networks).iter();
                let networks = networks.map(|selector| network(selector));
                let networks = networks.collect::<Result<Vec<_>, Failure>>()?;
                SiteSpec::parallel(networks, self.hosts.count())
            }
        };
        let hosts = site.count();
        for fault in self.link.iter().flat_map(|link| link.faults(hosts)) {
            let scheduled = site.schedule(Span::ZERO, Command::Fault(fault));
            scheduled.map_err(|error| Failure::usage(format!("--link: {error}")))?;
        }
        if self.fail_over && site.ends().iter().all(|end| end.number == 0) {
            return Err(Failure::usage(
                "`--fail-over` is for hosts on two networks or more: name another `--network`, or a site that has such hosts",
            ));
        }
        self.schedule(&mut site)?;
        let keep = [
            std::env::current_dir().ok(),
            std::env::current_exe()
                .ok()
                .and_then(|exe| exe.parent().map(Path::to_path_buf)),
        ];
        Ok(Config {
            site,
            attachment: self.hosts.attachment,
            tun: self.hosts.tun.clone(),
            profile: self.hosts.profile,
            cpus: CpuPlan::named(&self.cpus, &online).map_err(Failure::usage)?,
            priority: self.hosts.priority,
            seed: self.hosts.seed,
            pcap: None,
            ledger: None,
            keep: keep.into_iter().flatten().collect(),
            user: user(),
            share: self.share,
            fail_over: self.fail_over,
        })
    }

    /// Puts load and script into the networks that eth0 of hosts is on, whose own they become.
    fn schedule(&self, site: &mut SiteSpec) -> Result<(), Failure> {
        if let Some(load) = self
            .load
            .as_ref()
            .filter(|load| load.of.is_some() || !load.flows.is_empty())
        {
            return Err(Failure::usage(format!(
                "the load `{load}` names a rate or hosts: in the lab the switch makes it; leave `of` and `flow` out"
            )));
        }
        if let Some(load) = &self.load {
            let ends = site.ends();
            let first = ends.iter().filter(|end| end.number == 0);
            let first: BTreeSet<usize> = first.map(|end| end.carrier).collect();
            for number in first {
                let own = ends.iter().filter(|end| end.carrier == number);
                let stations: BTreeSet<u16> = own.map(|end| end.station).collect();
                let segment = &mut site.segment[number];
                let flows = load.scheduled(&segment.network, stations.len() as u16);
                segment.network.load.extend(flows);
            }
        }
        let Some(path) = &self.script else {
            return Ok(());
        };
        play(site, path, &script(path)?)
    }

    /// Starts the lab.
    pub fn start(&self) -> Result<(Lab, Config), Failure> {
        let mut config = self.config()?;
        let captured = self.pcap.as_ref().map(|(host, _)| *host);
        let hosts = config.hosts();
        if let Some(host) = captured.filter(|host| *host > hosts) {
            return Err(Failure::usage(format!(
                "cannot capture at h{host}: this lab has h1 to h{hosts}"
            )));
        }
        let ledger = self
            .ledger
            .as_deref()
            .map(|path| Output::open("ledger", path))
            .transpose()?;
        let pcap = self
            .pcap
            .as_ref()
            .map(|(_, path)| Output::open("capture", path))
            .transpose()?;
        config.ledger = self.ledger.as_deref().map(WrittenFile::of);
        let pcap_of = |(host, path): &(u16, PathBuf)| (host - 1, WrittenFile::of(path));
        config.pcap = self.pcap.as_ref().map(pcap_of);
        let program = this_program()?;
        let files = [&ledger, &pcap].map(|output| output.as_ref().map(|output| &output.file));
        let lab = Lab::start(&program, &config, files[0], files[1]).inspect_err(|_| {
            [&ledger, &pcap]
                .into_iter()
                .flatten()
                .for_each(Output::give_up);
        })?;
        Ok((lab, config))
    }
}

/// A file to be written by the lab. It is emptied once the lab is up, and not before.
struct Output<'a> {
    path: &'a Path,
    file: File,
    is_new: bool,
}

impl<'a> Output<'a> {
    fn open(what: &str, path: &'a Path) -> Result<Self, Failure> {
        let is_new = !path.exists();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.map_err(|e| {
            Failure::unwritten(format!("cannot write the {what} {}: {e}", path.display()))
        })?;
        Ok(Self { path, file, is_new })
    }

    /// Leaves things as they were.
    fn give_up(&self) {
        if self.is_new {
            // Who removed it meanwhile has done what was to be done.
            drop(std::fs::remove_file(self.path));
        }
    }
}

/// Who programs in hosts are: the caller, or under sudo who called it. Root itself is shown as another, for programs that
/// refuse to run as root, but keeps its files.
pub fn user() -> User {
    const SHOWN_FOR_ROOT: u32 = 1_000;
    /// The group of nobody, where sudo names none.
    const NO_GROUP: u32 = 65_534;
    let (uid, gid) = sonde_sys::process::ids();
    let variable = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    match (uid, variable("SUDO_UID").filter(|uid| *uid != 0)) {
        (0, Some(uid)) => {
            let gid = variable("SUDO_GID").unwrap_or(NO_GROUP);
            User {
                uid,
                gid,
                behind: (uid, gid),
            }
        }
        (0, None) => User {
            uid: SHOWN_FOR_ROOT,
            gid: SHOWN_FOR_ROOT,
            behind: (0, 0),
        },
        (uid, _) => User {
            uid,
            gid,
            behind: (0, 0),
        },
    }
}
