//! A plan: what is to be measured, where and how often, as TOML. Every command that measures becomes one.
//!
//! Model:   cells are the product of networks, probes, paths, waits and sizes. `mtu` among the sizes stands for the largest
//!          message that fits one frame of the network at hand, and for one byte more; sizes that a path cannot carry are
//!          left out there. What a plan leaves out is filled in when it is read, as the command does it.
//! Units:   sizes in bytes where bare, else with a binary or decimal suffix; times with a suffix.
//! Checked: `the_usual_plans_are_read_back`, `what_a_plan_leaves_out_is_filled_in`, `sizes_expand`,
//!          `wrong_plans_are_refused_with_their_place`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use crate::allowance::Allowance;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::require::Requirement;
use serde::{Deserialize, Serialize};
use sonde_channel::UDP_MESSAGE_BYTES_MAX;
use sonde_fleet::{Allocation, Load};
use sonde_lab::Profile;
use sonde_measure::files::Operation;
use sonde_measure::{Factors, KnobValues, Method, Run, Wait};
use sonde_sys::file;
use sonde_units::{Span, excerpts};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How long probes measure at once where nothing is said.
pub const DURING: Span = Span::secs(3);

/// The network of a lab for which none was chosen.
pub const DEFAULT_NETWORK: &str = "ethernet-1g";

/// The networks that are assessed when none is named.
pub const NETWORKS: [&str; 5] = [
    "wire",
    "ethernet-100",
    "ethernet-1g",
    "atm-oc3c",
    "wan-100m-20ms",
];

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The hosts. Without it the lab, and within a Slurm allocation of several nodes these.
    #[serde(default)]
    pub testbed: TestbedPlan,
    /// Their settings.
    #[serde(default)]
    pub profile: ProfilePlan,
    /// How they are joined. On this machine there is one, and none is named; in the lab none named is ethernet-1g; on real hosts
    /// none named is the one by which they reach each other.
    #[serde(default, rename = "network", skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkPlan>,
    /// Background traffic in the lab's networks or between real hosts: everything is measured under each. Without any, idle.
    #[serde(default, rename = "load", skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadPlan>,
    /// What is measured on each.
    #[serde(rename = "probe")]
    pub probes: Vec<ProbePlan>,
    /// How often.
    #[serde(default)]
    pub repeat: Repeat,
    /// What may be taken of the networks.
    #[serde(default, skip_serializing_if = "Allowance::is_none")]
    pub allow: Allowance,
    /// What must hold, else the command ends with 1.
    #[serde(default, rename = "require", skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
}

/// The kind of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// This machine.
    Local,
    /// An emulated cluster on this machine.
    Lab,
    /// Real machines, through ssh.
    Hosts,
    /// The nodes of the Slurm allocation that this process is in.
    Slurm,
    /// Where an MPI's `mpirun` starts processes.
    Mpirun,
    /// Where users start agents.
    Listen,
}

impl Kind {
    /// What is measured when nothing is said: the nodes of a Slurm allocation of several, else a lab.
    pub fn usual() -> Self {
        match Allocation::here() {
            Ok(Some(_)) => Self::Slurm,
            _ => Self::Lab,
        }
    }

    /// Whether these are machines as they are.
    pub const fn is_real(self) -> bool {
        matches!(
            self,
            Self::Hosts | Self::Slurm | Self::Mpirun | Self::Listen
        )
    }
}

/// Their settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfilePlan {
    /// `modern`, `era`, `era:window=BYTES`; real hosts and this machine are taken as they are.
    pub name: String,
}

impl Default for ProfilePlan {
    fn default() -> Self {
        Self {
            name: Profile::MODERN.to_string(),
        }
    }
}

/// What is on the network beside what is measured: background traffic, or other probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// `0` is none; else `RHO[:law=LAW][:size=BYTES]`: the share of each link that it takes, how its frames are spread in
    /// time (poisson), their layer-3 bytes (one cell on ATM, else a full frame).
    #[serde(default = "no_level")]
    pub level: String,
    /// Names of probes that are measured at once: each has what the others do on its network. Without any, each probe is measured by
    /// itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<String>,
    /// How long probes measure at once.
    #[serde(default = "during", skip_serializing_if = "is_usual_during")]
    pub during: Span,
}

fn no_level() -> String {
    "0".into()
}

const fn during() -> Span {
    DURING
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_usual_during(during: &Span) -> bool {
    *during == DURING
}

impl LoadPlan {
    /// Background traffic of this level.
    pub fn level(level: &str) -> Self {
        Self {
            level: level.into(),
            together: Vec::new(),
            during: DURING,
        }
    }

    /// What it names; none of level 0.
    ///
    /// # Errors
    /// What is wrong with its text.
    pub fn load(&self) -> Result<Option<Load>, Failure> {
        let load: Load = self.level.parse().map_err(Failure::usage)?;
        Ok(Some(load).filter(|load| !load.rho.is_zero()))
    }
}

/// The kind of measurement.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// Cold: the first message over nothing that was set up.
    Startup,
    /// Warm: half a round trip against size.
    Latency,
    /// Bits a second, of a stream or of single messages.
    Throughput,
    /// Where the time of a message goes, by the kernel's stamps.
    Anatomy,
    /// What messages at a rate take, from the time at which each was due. Its knobs `rate` and `law` say when that is.
    Rate,
    /// A call among all ranks of a library. Its knobs say which and among how many: `call`, `ranks`, `algorithm`.
    Collective,
    /// A kernel of the NAS benchmarks among ranks of a library. Its knobs say which, how large and among how many: `kernel`,
    /// `class` or `size`, `ranks`; `runs` of a launch, and round how many `hosts` the ranks go.
    Npb,
    /// The messages of a program without what it computes. Its knobs say which: `of`, or `count`, `mean`, `median`, `graph`; `ranks`,
    /// `runs` and `hosts` as of a kernel.
    Messages,
    /// Whether a library does what it should. Its knobs say among how many `ranks`, by how many `cases`, drawn from which `seed`.
    Check,
    /// Many flows at once among all hosts, which its [probe.flows] say.
    Pattern,
    /// Files of a server on the other host: read, written, or calls on names. Its knobs say which and how: `op`, `transfer`,
    /// `outstanding`, `daemons`, `service`, and more.
    Files,
}

impl ProbeKind {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Anatomy => "anatomy",
            Self::Rate => "rate",
            Self::Collective => "collective",
            Self::Npb => "npb",
            Self::Messages => "messages",
            Self::Check => "check",
            Self::Pattern => "pattern",
            Self::Files => "files",
        }
    }

    /// Whether ranks do what a program does, whose messages have sizes of their own.
    pub const fn is_of_programs(self) -> bool {
        matches!(self, Self::Npb | Self::Messages)
    }

    /// Whether the plan says of which sizes its messages are.
    pub const fn is_sized(self) -> bool {
        !(self.is_of_programs() || matches!(self, Self::Check | Self::Pattern))
    }
}

/// What throughput is of.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Messages back to back, rated after the first second.
    Stream,
    /// One message at a time, with everything in it.
    Message,
}

impl Mode {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Message => "message",
        }
    }
}

/// One kind of measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// The kind.
    pub kind: ProbeKind,
    /// What `together` of a [[load]] calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Throughput: of what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// By which paths: of channels, or of libraries. Without any: `tcp`, and `native:tcp` of what only ranks do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<AnyPath>,
    /// How bytes are handed over; a path leaves out what it does not have. Without any: `plain`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub method: Vec<Method>,
    /// How both sides wait.
    #[serde(default = "block")]
    pub wait: Vec<Wait>,
    /// Only within this machine, as a floor beside what is measured between hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub floor: bool,
    /// Only beside what is asked for: where nothing else could be measured, nothing was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// Only on these networks, each named as in its [[network]]. Without any: on all.
    #[serde(default, rename = "network", skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<String>,
    /// User bytes in a message: `1`, `64KiB`, `1..64KiB` (powers of two, and around the MTU), `mtu`. Without any: 1 B, 1 MiB of
    /// throughput (of datagrams a full frame), 64 B at a rate, 8 B of a collective call. A kernel has none, nor have messages of a
    /// program or a check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size: Vec<String>,
    /// Launches of these cells, instead of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<u64>,
    /// The most samples of a launch, for each size. Without it 10,000, and at a rate what the budget holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// The longest that a launch samples, for each size; of a stream, what is rated. Without it 1 s; of kernels and programs' messages
    /// many times what they are expected to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// What else is set: each knob with its values, of which every combination is measured.
    #[serde(default, rename = "with", skip_serializing_if = "BTreeMap::is_empty")]
    pub knobs: BTreeMap<String, Vec<String>>,
    /// Of a stream of datagrams at one rate: below it the highest rate is looked for at which no more than this share is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Of kind pattern: which flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowsPlan>,
}

fn block() -> Vec<Wait> {
    vec![Wait::Block]
}

impl Plan {
    /// These probes on a testbed, so often; all else as usual.
    pub fn new(testbed: TestbedPlan, probes: Vec<ProbePlan>, repeat: Repeat) -> Self {
        Self {
            testbed,
            profile: ProfilePlan::default(),
            networks: Vec::new(),
            loads: Vec::new(),
            probes,
            repeat,
            allow: Allowance::default(),
            requirements: Vec::new(),
        }
    }

    /// Whether a cell is only beside what is asked for.
    pub fn is_beside(&self, cell: &Factors) -> bool {
        let same = |probe: &&ProbePlan| probe.kind.name() == cell.probe;
        let mut alike = self.probes.iter().filter(same);
        cell.knobs.is_empty() && alike.any(|probe| probe.beside)
    }

    /// Why there is nothing to measure at all, where every cell that was asked for was left out.
    pub fn all_skipped<'a>(&self, run: &'a Run) -> Option<&'a str> {
        let asked = run.cells.iter();
        let asked = asked.filter(|cell| !self.is_beside(&cell.factors));
        let reasons: Option<Vec<&str>> = asked.map(|cell| cell.skipped.as_deref()).collect();
        reasons?.first().copied()
    }

    /// Whether streams are compared over buffers or settings.
    pub fn is_sweep(&self) -> bool {
        let varies = |probe: &ProbePlan| {
            probe.mode() == Some(Mode::Stream)
                && (probe.size.len() > 1 || probe.settings().len() > 1)
        };
        self.probes.iter().any(varies)
    }
}

impl ProbePlan {
    /// Waiting asleep.
    pub fn new(kind: ProbeKind, path: &[AnyPath], size: &[&str]) -> Self {
        Self {
            kind,
            name: None,
            mode: None,
            path: path.to_vec(),
            method: Vec::new(),
            wait: block(),
            floor: false,
            beside: false,
            networks: Vec::new(),
            size: size.iter().map(|size| (*size).into()).collect(),
            launches: None,
            samples: None,
            budget: None,
            knobs: BTreeMap::new(),
            lost: None,
            flows: None,
        }
    }

    /// Whether it is of calls on names alone, which have no size.
    pub fn is_of_names(&self) -> bool {
        let is_sized = |op: &String| op.parse().is_ok_and(Operation::is_sized);
        let operations = self.knobs.get("op");
        self.kind == ProbeKind::Files
            && operations.is_some_and(|all| !all.is_empty() && !all.iter().any(is_sized))
    }

    /// What it is of: a stream unless it says otherwise.
    pub fn mode(&self) -> Option<Mode> {
        (self.kind == ProbeKind::Throughput).then(|| self.mode.unwrap_or(Mode::Stream))
    }

    /// Its sizes by `path` where one frame carries `frame_payload` user bytes, ascending, each once.
    ///
    /// # Errors
    /// A text that is not a size.
    pub fn sizes(&self, path: AnyPath, frame_payload: Option<u64>) -> Result<Vec<u64>, Failure> {
        let mut sizes = BTreeSet::new();
        if !self.kind.is_sized() || self.is_of_names() {
            // Its messages have sizes of their own, and names have none.
            sizes.insert(1);
            return Ok(sizes.into_iter().collect());
        }
        for text in &self.size {
            size::expand(text, frame_payload, &mut sizes)?;
        }
        if path == AnyPath::UDP {
            sizes.retain(|size| *size <= UDP_MESSAGE_BYTES_MAX as u64);
        }
        if !path.is_lossless() && matches!(self.kind, ProbeKind::Throughput | ProbeKind::Rate) {
            // A datagram of a stream has a number of 8 bytes in it.
            sizes.retain(|size| *size >= 8);
        }
        Ok(sizes.into_iter().collect())
    }
}

/// One combination of what a probe varies on one path: method, wait, knobs, load.
pub type Combination = (Method, Wait, KnobValues, Option<Load>);

impl ProbePlan {
    /// Every combination of methods that `path` has, waits, knobs and loads.
    pub fn product(&self, path: AnyPath, loads: &[Option<Load>]) -> Vec<Combination> {
        let methods: Vec<Method> = if self.method.is_empty() {
            vec![Method::Plain]
        } else {
            let has = |method: &&Method| path.methods().contains(method);
            self.method.iter().filter(has).copied().collect()
        };
        let mut all = Vec::new();
        for method in methods {
            for wait in &path.waits(&self.wait) {
                for knobs in self.settings() {
                    all.extend(
                        loads
                            .iter()
                            .map(|load| (method, *wait, knobs.clone(), load.clone())),
                    );
                }
            }
        }
        all
    }

    /// Every combination of the knobs' values; one empty one where there are no knobs.
    pub fn settings(&self) -> Vec<KnobValues> {
        let mut all = vec![KnobValues::new()];
        for (name, values) in &self.knobs {
            let with = |known: KnobValues| {
                values.iter().map(move |value| {
                    let mut more = known.clone();
                    more.insert(name.clone(), value.clone());
                    more
                })
            };
            all = all.into_iter().flat_map(with).collect();
        }
        all
    }
}

impl ProbePlan {
    /// Refuses what no run can do.
    fn check(&self) -> Result<(), Failure> {
        let refuse = |what: String| Err(Failure::usage(what));
        let name = self.kind.name();
        if self.wait.is_empty() {
            return refuse(format!(
                "a [[probe]] of kind {name} needs at least one completion (`wait`): write block or poll"
            ));
        }
        if !self.kind.is_sized() && !self.size.is_empty() {
            return refuse(format!(
                "messages of programs and of checks have sizes of their own: remove `size` from the [[probe]] of kind {name}; a \
                 kernel's own size, or the lengths of messages, are in [probe.with], those of a pattern in [probe.flows]"
            ));
        }
        if self.mode.is_some() && self.kind != ProbeKind::Throughput {
            return refuse(format!(
                "`mode` is of throughput; remove it from the [[probe]] of kind {name}"
            ));
        }
        let has_one_rate = || self.knobs.get("rate").is_some_and(|rates| rates.len() == 1);
        let are_datagrams = || {
            self.path
                .iter()
                .all(|path| path.channel().is_some() && !path.is_lossless())
        };
        let is_rated = self.mode() == Some(Mode::Stream) && are_datagrams() && has_one_rate();
        if self.lost.is_some() && !is_rated {
            return refuse(format!(
                "`lost` bounds what a stream of datagrams loses while its highest rate is looked for: remove it from the [[probe]] \
                 of kind {name}, or write kind = \"throughput\", path = [\"udp\"] and the highest rate to begin with, as \
                 with.rate = [\"1Gbit\"]"
            ));
        }
        if self.launches == Some(0) {
            return refuse(format!(
                "`launches` of kind {name} is 0, which measures nothing: remove the [[probe]]"
            ));
        }
        for path in &self.path {
            self.sizes(*path, Some(1_448))?;
            if self.product(*path, &[None]).is_empty() {
                let has: Vec<&str> = path.methods().iter().map(|one| one.name()).collect();
                return refuse(format!(
                    "nothing of the [[probe]] of kind {name} can be measured over {path}, whose methods are {}; a knob needs at least \
                     one value",
                    has.join(", ")
                ));
            }
        }
        let mut others = self
            .path
            .iter()
            .filter(|path| !matches!(path, AnyPath::Files(_)));
        if let (ProbeKind::Files, Some(path)) = (self.kind, others.next()) {
            return refuse(format!("{path} has no files: write a service, as nfs3:tcp"));
        }
        let mut channels = self.path.iter().filter(|path| path.channel().is_some());
        let of_ranks = match self.kind {
            ProbeKind::Collective => Some("collective calls"),
            ProbeKind::Npb => Some("ranks that a kernel could run on"),
            ProbeKind::Messages => Some("ranks that could send these messages"),
            ProbeKind::Check => Some("library that could be checked"),
            _ => None,
        };
        if let (Some(what), Some(path)) = (of_ranks, channels.next()) {
            return refuse(format!(
                "{path} has no {what}: write a library's path, as native:tcp or openmpi:tcp"
            ));
        }
        Ok(())
    }

    /// Refuses knobs that nobody takes; for each kernel that is asked for, why it cannot be, if it cannot.
    fn check_knobs(&self, repeat: &Repeat) -> Result<Vec<Option<String>>, Failure> {
        let mut kernels = Vec::new();
        if self.kind == ProbeKind::Pattern {
            return Ok(kernels);
        }
        for knobs in self.settings() {
            for path in &self.path {
                let how = (Method::Plain, Wait::Block);
                let (_, work) = self.lower(*path, how, &knobs, vec![1], repeat)?;
                if let Work::Ranks(ranks) = work {
                    kernels.extend(ranks.kernel.map(|kernel| kernel.refused()));
                }
            }
        }
        Ok(kernels)
    }
}

impl Plan {
    /// A plan's file.
    ///
    /// # Errors
    /// What is wrong in it, with its line.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = file::text(path)
            .map_err(|e| Failure::usage(format!("cannot read the plan {shown}: {e}")))?;
        Self::parse(&text).map_err(|failure| Failure::usage(format!("the plan {shown}: {failure}")))
    }

    /// A plan's text, with what it leaves out filled in.
    ///
    /// # Errors
    /// What is wrong in it, with its line.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let plan: Self =
            toml::from_str(text).map_err(|e| Failure::usage(excerpts(&e.to_string())))?;
        let plan = plan.filled();
        plan.check()?;
        Ok(plan)
    }

    /// The levels of background traffic under which probes are measured by themselves, none being idle.
    ///
    /// # Errors
    /// A level that is none.
    pub fn loads(&self) -> Result<Vec<Option<Load>>, Failure> {
        if self.loads.is_empty() {
            return Ok(vec![None]);
        }
        let alone = self.loads.iter().filter(|load| load.together.is_empty());
        alone.map(LoadPlan::load).collect()
    }

    /// What is measured at once.
    pub fn sets(&self) -> impl Iterator<Item = &LoadPlan> {
        self.loads.iter().filter(|load| !load.together.is_empty())
    }

    /// As it is stored.
    pub fn text(&self) -> Result<String, Failure> {
        toml::to_string(self).map_err(Failure::cannot)
    }

    fn check_loads(&self) -> Result<(), Failure> {
        if self.allow.rate.is_some() && !self.loads.is_empty() && self.testbed.kind.is_real() {
            return Err(Failure::usage(
                "background traffic between real hosts is a share of the link, which `--max-rate` (`rate` of [allow]) does not bound: \
                 leave one of them out",
            ));
        }
        self.sets().try_for_each(|set| self.check_set(set))?;
        let loads = self.loads.iter().map(LoadPlan::load);
        for load in loads.collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
            let of_hosts = load.of.is_some() || !load.flows.is_empty();
            match self.testbed.kind {
                Kind::Local => {
                    return Err(Failure::usage(
                        "background traffic is made inside the lab's networks or between real hosts: use `--testbed lab` or \
                         `--testbed hosts:a,b`, or leave `--load` out ([[load]] of a plan)",
                    ));
                }
                Kind::Lab if self.testbed.joined && self.networks.len() > 1 => {
                    return Err(Failure::usage(
                        "the switch makes background traffic on the first of several networks of the same hosts alone: leave the level \
                         or the second network out",
                    ));
                }
                Kind::Lab if of_hosts => {
                    return Err(Failure::usage(format!(
                        "the load `{load}` names a rate or hosts: in the lab the switch makes it, as a share of the line; leave `of` and \
                         `flow` out"
                    )));
                }
                Kind::Slurm | Kind::Mpirun | Kind::Listen => {
                    return Err(Failure::usage(
                        "background traffic is made by a second agent on each host, which a launcher does not start: use \
                         `--testbed hosts:a,b`, or leave `--load` out ([[load]] of a plan)",
                    ));
                }
                Kind::Lab | Kind::Hosts => {}
            }
        }
        Ok(())
    }

    /// Refuses kernels of which none can be. Where others can, they are left out with their reason.
    fn check_kernels(&self) -> Result<(), Failure> {
        let mut kernels = Vec::new();
        for probe in &self.probes {
            kernels.extend(probe.check_knobs(&self.repeat)?);
        }
        let refused: Option<Vec<String>> = kernels.into_iter().collect();
        match refused.iter().flatten().next() {
            Some(why) => Err(Failure::usage(why)),
            None => Ok(()),
        }
    }

    /// Refuses what no run can do.
    ///
    /// # Errors
    /// What it is, and the remedy.
    pub fn check(&self) -> Result<(), Failure> {
        let refuse = |what: String| Err(Failure::usage(what));
        if self.probes.is_empty() {
            return refuse("a plan needs a [[probe]]: nothing would be measured".into());
        }
        self.probes.iter().try_for_each(ProbePlan::check)?;
        self.check_kernels()?;
        self.check_loads()?;
        self.check_places()?;
        self.check_flows()?;
        self.requirements.iter().try_for_each(Requirement::check)?;
        let repeat = &self.repeat;
        if repeat.unrated == Some(0) {
            return refuse("[repeat] needs an `unrated` of 1 or more".into());
        }
        if repeat.again > 10 {
            return refuse("[repeat] has an `again` above 10; write 0 to 10".into());
        }
        if repeat.launches == 0 || repeat.max < repeat.launches || repeat.max > 1_000 {
            return refuse(format!(
                "[repeat] has {} to {} repetitions; write 1 to 1000, `max` not below `launches`",
                repeat.launches, repeat.max
            ));
        }
        match self.testbed.kind {
            Kind::Lab | Kind::Local if self.testbed.line_rate.is_some() => refuse(
                "`--line-rate` (`line_rate` of [testbed]) is of real hosts: a lab's network says its rate, as in `--network \
                 ethernet-1g:rate=25Gbit`, and this machine's loopback has none; leave it out"
                    .into(),
            ),
            Kind::Hosts if self.testbed.names.is_none() => {
                refuse("real hosts need `names` in [testbed], as in names = \"a,b[01-16]\"".into())
            }
            Kind::Listen if !matches!(self.testbed.count(), Some(2..=sonde_fleet::HOSTS_MAX)) => refuse(format!(
                "`listen` needs to know how many hosts are to come, 2 to {}, as in names = \"4\"",
                sonde_fleet::HOSTS_MAX
            )),
            Kind::Local if !self.networks.is_empty() => refuse(
                "this machine has only its loopback: leave `--network` out ([[network]] of a plan), or use `--testbed lab` or `--testbed hosts:a,b`".into(),
            ),
            kind if kind.is_real() => self.networks.iter().try_for_each(|network| network.choice().map(drop)),
            Kind::Lab if self.networks.iter().any(|network| network.interface.is_some()) => refuse(
                "a network of the lab has no `interface`: its name says what it is; take kind = \"hosts\" for real ones".into(),
            ),
            _ => self.profile.name.parse::<Profile>().map(drop).map_err(Failure::usage),
        }
    }
}

mod beside;
mod fill;
mod flows;
mod lost;
mod lower;
mod network;
mod places;
mod repeat;
mod size;
mod testbed;
mod usual;

pub use flows::{FlowsPlan, host_number, prepared, senders};
pub use lost::Lost;
pub use lower::{BUDGET, SECOND, Work, apart};
pub use network::NetworkPlan;
pub use places::listed;
pub use repeat::{Effort, Repeat};
pub use size::size_text;
pub use testbed::TestbedPlan;

#[cfg(test)]
mod tests;
