//! What a plan leaves out, filled in: the same for a plan's file and for a command line.
//!
//! Model:   each field that says nothing gets what `sonde probe` takes where its option is not given. The usual size is of a kind
//!          and a path, so that a probe without sizes becomes one for each of its paths that differ in it. A plan that is filled in
//!          is stored and printed with all of it, and filling it in again changes nothing.
//! Units:   bytes and times as in [`super`].
//! Checked: `what_a_plan_leaves_out_is_filled_in`, `the_usual_plans_are_read_back`.

use super::{DEFAULT_NETWORK, Kind, Mode, NetworkPlan, Plan, ProbeKind, ProbePlan, flows};
use crate::any_path::AnyPath;
use sonde_measure::Path;
use sonde_measure::files::{FilesPath, Service};
use sonde_report::matrix;
use sonde_units::Span;

/// The most samples of each size in a launch.
const SAMPLES: u64 = 10_000;

impl Plan {
    /// With what it leaves out.
    #[must_use]
    pub fn filled(mut self) -> Self {
        if self.testbed.kind == Kind::Lab && self.networks.is_empty() {
            self.networks.push(NetworkPlan::lab(DEFAULT_NETWORK));
        }
        let probes = self.probes.into_iter();
        self.probes = probes.flat_map(ProbePlan::filled).collect();
        self
    }
}

impl ProbePlan {
    fn filled(mut self) -> Vec<Self> {
        let is_sampled = self.kind != ProbeKind::Startup && self.kind.is_sized();
        if self.kind == ProbeKind::Throughput {
            self.mode.get_or_insert(Mode::Stream);
        }
        if self.path.is_empty() {
            self.path.push(usual_path(self.kind));
        }
        if let Some(flows) = &self.flows {
            self.samples.get_or_insert(flows::SAMPLES);
            // A launch has every pair.
            if flows.pattern == matrix::ALL_PAIRS {
                self.launches.get_or_insert(1);
            }
        }
        if is_sampled {
            self.budget.get_or_insert(Span::secs(1));
        }
        let is_counted = self.kind != ProbeKind::Rate && self.mode != Some(Mode::Stream);
        if is_sampled && is_counted {
            self.samples.get_or_insert(SAMPLES);
        }
        let mut all: Vec<Self> = Vec::new();
        for path in std::mem::take(&mut self.path) {
            let mut one = self.clone();
            if one.size.is_empty() && one.kind.is_sized() && !one.is_of_names() {
                one.size.push(usual_size(one.kind, path).into());
            }
            if path.library().is_some() && one.kind == ProbeKind::Rate {
                // The messages of a library go as fast as they can.
                one.knobs.remove("rate");
                one.knobs.remove("law");
            }
            match all.last_mut() {
                Some(last) if last.size == one.size && last.knobs == one.knobs => {
                    last.path.push(path);
                }
                _ => {
                    one.path.push(path);
                    all.push(one);
                }
            }
        }
        all
    }
}

/// By which path: what only ranks do goes by the native engine.
fn usual_path(kind: ProbeKind) -> AnyPath {
    match kind {
        ProbeKind::Collective | ProbeKind::Npb | ProbeKind::Messages | ProbeKind::Check => {
            AnyPath::Library(sonde_message::Path {
                library: sonde_message::Library::Native,
                transport: "tcp",
            })
        }
        ProbeKind::Files => AnyPath::Files(FilesPath {
            service: Service::Nfs3,
            over: Path::Tcp,
        }),
        _ => AnyPath::TCP,
    }
}

fn usual_size(kind: ProbeKind, path: AnyPath) -> &'static str {
    match (kind, path.beneath()) {
        (ProbeKind::Collective, _) => "8",
        (ProbeKind::Files, _) => "1MiB",
        (ProbeKind::Rate, _) if path.library().is_some() => "8",
        (ProbeKind::Throughput, Path::Tcp | Path::Unix | Path::Shm) => "1MiB",
        (ProbeKind::Throughput, Path::Udp | Path::Packet | Path::Xdp) => "mtu",
        (ProbeKind::Rate, _) => "64",
        _ => "1",
    }
}
