//! What is measured where no plan is given: the main job, by effort.
//!
//! Model:   the layers of a testbed, cold and warm: start-up, latency, single messages and streams over TCP and UDP, the libraries
//!          beside them, a kernel on top; in the lab also what this machine does without a network. Most of the time goes to
//!          streams, which take two seconds each: there are fewest of those that tell least.
//! Checked: `the_usual_plans_are_read_back`, `the_usual_plan_takes_three_minutes`.

use super::{Effort, Kind, NETWORKS, NetworkPlan, Plan, ProbeKind, ProbePlan, Repeat, TestbedPlan};
use crate::any_path::AnyPath;
use crate::plan::Mode;
use sonde_measure::{Path, Wait};
use sonde_units::Span;

pub(super) const BOTH: [AnyPath; 2] = [AnyPath::TCP, AnyPath::UDP];

/// What this machine's memory and kernel do without a network: by both waits, since polled memory is the least of all.
fn within_machine(budget: Option<Span>, effort: Effort) -> Vec<ProbePlan> {
    let paths = [Path::Unix, Path::Shm].map(AnyPath::Channel);
    let mut latency = ProbePlan::new(ProbeKind::Latency, &paths, &["8", "4KiB", "60KiB"]);
    latency.wait = vec![Wait::Block, Wait::Poll];
    (latency.budget, latency.samples) = (budget, Some(3_000));
    let mut stream = ProbePlan::new(ProbeKind::Throughput, &paths, &["64KiB"]);
    stream.budget = Some(Span::secs(1));
    if effort != Effort::Thorough {
        // Beside the networks, which are what is asked for: no interval.
        stream.launches = Some(2);
    }
    let probes = match effort {
        Effort::Quick => vec![latency],
        _ => vec![latency, stream],
    };
    let floor = |probe| ProbePlan {
        floor: true,
        ..probe
    };
    probes.into_iter().map(floor).collect()
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
            udp.launches = Some(2);
        }
        let floors = testbed.kind == Kind::Lab;
        let mut probes = vec![startup, latency, message, tcp];
        probes.extend(crate::library::assessed(budget, effort));
        probes.extend(crate::kernel::assessed(testbed.kind, effort));
        if !quick {
            probes.push(udp);
        }
        if testbed.kind != Kind::Hosts {
            probes.extend(within_machine(budget, effort));
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
}
