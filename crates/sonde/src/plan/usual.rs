//! What is measured where no plan is given: the main job, by effort.
//!
//! Model:   the layers of a testbed, cold and warm: start-up, latency, single messages and streams over TCP and UDP, the libraries
//!          beside them, files of a server in memory, a kernel on top; in the lab also what this machine does without a network. Most of the time goes to
//!          streams, which take two seconds each: there are fewest of those that tell least. Before all else come all pairs of three
//!          hosts or more, by short windows: a bad host is named first.
//! Checked: `all_pairs_of_four_hosts_take_ten_seconds`, `the_usual_plans_are_read_back`, `the_usual_plan_takes_three_minutes`.

use super::{
    Effort, FlowsPlan, Kind, NETWORKS, NetworkPlan, Plan, ProbeKind, ProbePlan, Repeat, TestbedPlan,
};
use crate::allocation;
use crate::any_path::AnyPath;
use crate::plan::Mode;
use sonde_measure::files::{FilesPath, Service};
use sonde_measure::{Path, Wait};
use sonde_report::matrix;
use sonde_units::Span;

pub(super) const BOTH: [AnyPath; 2] = [AnyPath::TCP, AnyPath::UDP];

/// The emulated network on which all pairs are measured where it is one of several: slow enough for the emulation to be on
/// schedule, and fast enough for a short stream to fill it.
const ALL_PAIRS_ON: &str = "ethernet-100";
/// The fewest hosts of which one can stand out.
const HOSTS_MIN: usize = 3;

/// What this machine's memory and kernel do without a network: by both waits, since polled memory is the least of all.
fn within_machine(budget: Option<Span>, effort: Effort, kind: Kind) -> Vec<ProbePlan> {
    let paths = [Path::Unix, Path::Shm].map(AnyPath::Channel);
    let mut latency = ProbePlan::new(ProbeKind::Latency, &paths, &["8", "4KiB", "60KiB"]);
    latency.wait = vec![Wait::Block, Wait::Poll];
    (latency.budget, latency.samples) = (budget, Some(3_000));
    let mut probes = vec![latency];
    let thorough = effort == Effort::Thorough;
    // Streams take two seconds each: not beside networks, which are what is asked for.
    if thorough || (kind == Kind::Local && effort == Effort::Usual) {
        let mut stream = ProbePlan::new(ProbeKind::Throughput, &paths, &["64KiB"]);
        stream.budget = Some(Span::secs(1));
        stream.launches = (!thorough).then_some(1);
        probes.push(stream);
    }
    let floor = |probe| ProbePlan {
        floor: true,
        ..probe
    };
    probes.into_iter().map(floor).collect()
}

/// A figure of NFS and one of FTP: reads of a file that the server has in memory. With the usual effort all rounds are of one launch, without an
/// interval: the start of its server is most of its time.
fn files(effort: Effort) -> ProbePlan {
    let services = [(Service::Nfs3, Path::Tcp), (Service::Ftp, Path::Tcp)];
    let paths = services.map(|(service, over)| AnyPath::Files(FilesPath { service, over }));
    let mut files = ProbePlan::new(ProbeKind::Files, &paths, &["256KiB"]);
    files.knobs.insert("op".into(), vec!["read".into()]);
    files.budget = Some(Span::millis(100));
    files.launches = (effort == Effort::Usual).then_some(1);
    files
}

impl Plan {
    /// The main job on a testbed: cold, warm, single messages and streams, over TCP and UDP.
    ///
    /// The budgets make three minutes of it with the usual effort, and forty seconds with the quick one.
    pub fn assess(testbed: TestbedPlan, effort: Effort) -> Self {
        use ProbeKind::{Latency, Startup, Throughput};
        let millis = |n| Some(Span::millis(n));
        let budget = match effort {
            Effort::Quick | Effort::Usual => millis(10),
            Effort::Thorough => millis(200),
        };
        let thorough = effort == Effort::Thorough;
        let quick = effort == Effort::Quick;
        let mut startup = ProbePlan::new(Startup, &BOTH, &["8"]);
        let mut latency = ProbePlan::new(
            Latency,
            &BOTH,
            &["1", "8", "64", "512", "mtu", "4KiB", "16KiB", "60KiB"],
        );
        let mut message = ProbePlan::new(
            Throughput,
            &[AnyPath::TCP],
            &["1KiB", "8KiB", "64KiB", "512KiB"],
        );
        let mut tcp = ProbePlan::new(Throughput, &[AnyPath::TCP], &["64KiB"]);
        // A full frame: what a datagram can do best.
        let mut udp = ProbePlan::new(Throughput, &[AnyPath::UDP], &["mtu"]);
        message.mode = Some(Mode::Message);
        (latency.budget, message.budget) = (budget, budget);
        (latency.samples, message.samples) = (Some(3_000), Some(1_000));
        // Streams take most of the time. Those of datagrams have no window that opens: less of them is enough.
        (tcp.budget, udp.budget) = (millis(1_000), millis(300));
        if thorough {
            startup.size = vec!["8".into(), "mtu".into(), "60KiB".into()];
            latency.size = vec!["1..60KiB".into(), "1".into(), "mtu".into()];
            message.path = BOTH.to_vec();
            message.size = vec!["1..4MiB".into()];
            udp.budget = millis(1_000);
        }
        if effort == Effort::Usual {
            // No window, no recovery: what datagrams reach differs little from launch to launch, and needs no interval.
            udp.launches = Some(1);
        }
        let floors = testbed.kind == Kind::Lab;
        let mut probes = vec![startup, latency, message, tcp];
        probes.extend(crate::library::assessed(budget, effort));
        probes.extend(crate::kernel::assessed(testbed.kind, effort));
        if !quick {
            probes.extend([udp, files(effort)]);
        }
        if testbed.kind != Kind::Hosts {
            probes.extend(within_machine(budget, effort, testbed.kind));
        }
        let networks = match testbed.kind {
            Kind::Lab => NETWORKS.map(NetworkPlan::lab).to_vec(),
            _ => Vec::new(),
        };
        let repeat = Repeat {
            budget: thorough.then(|| Span::secs(1_800)),
            unrated: (floors && effort == Effort::Usual).then_some(1),
            reference: 4,
            ..Repeat::of(effort)
        };
        let plan = Self {
            networks,
            ..Self::new(TestbedPlan { floors, ..testbed }, probes, repeat)
        };
        plan.filled()
    }

    /// With all pairs before the other probes, where there are three hosts or more and no pattern of all pairs yet.
    #[must_use]
    pub fn with_all_pairs(mut self, quick: bool) -> Self {
        let has_matrix = self.probes.iter().any(|probe| {
            let flows = probe.flows.as_ref();
            flows.is_some_and(|flows| flows.pattern == matrix::ALL_PAIRS)
        });
        if has_matrix || self.hosts().is_some_and(|hosts| hosts < HOSTS_MIN) {
            return self;
        }
        let mut all_pairs = ProbePlan::new(ProbeKind::Pattern, &[AnyPath::TCP], &[]);
        all_pairs.flows = Some(FlowsPlan {
            pattern: matrix::ALL_PAIRS.into(),
            what: Vec::new(),
            size: None,
            senders: None,
            window: None,
            lead: None,
            gap: Span::millis(1),
            quick,
        });
        self.probes.insert(0, all_pairs);
        self.filled()
    }

    /// The plan of an assessment with all pairs first: of several networks on one of them, and not where background traffic or other
    /// paths alone are asked for. Short windows tell pairs apart, but not how fast they are in the end.
    #[must_use]
    pub fn assessing_all_pairs(self, quick: bool, paths: &[AnyPath]) -> Self {
        let is_other = !paths.is_empty() && !paths.contains(&AnyPath::TCP);
        if self.testbed.kind == Kind::Local || !self.loads.is_empty() || is_other {
            return self;
        }
        let mut plan = self.with_all_pairs(quick);
        // Named even where there is one: a lab has this machine's loopback beside it.
        let mut names = plan.networks.iter().map(|network| network.name.clone());
        let first = names.clone().next();
        let chosen = names.find(|name| name == ALL_PAIRS_ON).or(first);
        let is_matrix = |probe: &&mut ProbePlan| probe.kind == ProbeKind::Pattern;
        if let Some(probe) = plan.probes.iter_mut().find(is_matrix) {
            probe.networks = chosen.into_iter().collect();
        }
        plan
    }

    /// How many hosts there are, where that is known before they are up.
    fn hosts(&self) -> Option<usize> {
        match self.testbed.kind {
            Kind::Local => Some(1),
            Kind::Lab => Some(self.lab_hosts(None).into()),
            Kind::Hosts => self.testbed.targets().ok().map(|targets| targets.len()),
            Kind::Listen => self.testbed.count(),
            Kind::Slurm => allocation::nodes(),
            Kind::Mpirun => None,
        }
    }
}
