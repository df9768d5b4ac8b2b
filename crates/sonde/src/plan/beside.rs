//! Probes that are measured at once, as a plan names them.
//!
//! Checked: `sets_are_of_probes_that_are_there`; `sets_become_blocks` of the layout.

use super::{Kind, LoadPlan, Plan, ProbeKind, ProbePlan};
use crate::failure::Failure;
use sonde_units::Span;

/// The most that are measured at once: each has an agent on every host, and a cell.
pub const TOGETHER_MAX: usize = 8;

impl Plan {
    /// The probe of this name.
    pub fn named(&self, name: &str) -> Option<&ProbePlan> {
        self.probes
            .iter()
            .find(|probe| probe.name.as_deref() == Some(name))
    }

    /// Refuses a set that cannot be measured at once.
    pub(super) fn check_set(&self, set: &LoadPlan) -> Result<(), Failure> {
        let refuse = |what: String| Err(Failure::usage(what));
        if let Kind::Slurm | Kind::Mpirun | Kind::Listen = self.testbed.kind {
            return refuse(
                "several measurements at once take agents of their own on each host, which a launcher does not start: use \
                 `--testbed hosts:a,b`, lab or local"
                    .into(),
            );
        }
        if set.during < Span::secs(1) || set.during > Span::secs(3_600) {
            return refuse(format!(
                "measurements at once last 1 s to an hour, not {}: a stream is rated over 1 s at least",
                set.during
            ));
        }
        if set.together.len() > TOGETHER_MAX {
            return refuse(format!(
                "{} measurements at once are too many: name up to {TOGETHER_MAX}",
                set.together.len()
            ));
        }
        for (at, name) in set.together.iter().enumerate() {
            let Some(probe) = self.named(name) else {
                let names = self.probes.iter().filter_map(|probe| probe.name.as_deref());
                let names: Vec<&str> = names.collect();
                return refuse(format!(
                    "`together` of a [[load]] names `{name}`, and no [[probe]] has this `name`: there are {}",
                    names.join(", ")
                ));
            };
            if set.together.iter().take(at).any(|other| other == name) {
                return refuse(format!(
                    "`{name}` stands twice in `together`: its rows would not be distinguishable; several streams of one are streams=2"
                ));
            }
            probe.check_at_once(name)?;
        }
        Ok(())
    }
}

impl ProbePlan {
    /// Refuses what cannot be measured beside something else.
    fn check_at_once(&self, name: &str) -> Result<(), Failure> {
        let cannot = match self.kind {
            ProbeKind::Startup => "a start-up makes its hosts cold, and others use them meanwhile",
            ProbeKind::Anatomy => "an anatomy stamps every packet of its host",
            ProbeKind::Pattern => "a pattern has all hosts at once: its flows are the contention",
            ProbeKind::Collective | ProbeKind::Check | ProbeKind::Messages => {
                "of ranks only kernels can begin at an agreed time"
            }
            _ if self.lost.is_some() => "a search for the highest rate has no rate of its own",
            _ if self.kind != ProbeKind::Npb
                && self.path.iter().any(|path| path.library().is_some()) =>
            {
                "of ranks only kernels can begin at an agreed time"
            }
            _ => "",
        };
        let why = match cannot {
            "" if self.path.len() != 1
                || self.method.len() > 1
                || self.wait.len() != 1
                || self.settings().len() != 1
                || self.size.len() > 1 =>
            {
                "what is measured at once has one path, method, completion and size, and one value of each knob"
            }
            why => why,
        };
        if why.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "`{name}` cannot be measured beside others: {why}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(probe: &str, load: &str) -> Result<Plan, Failure> {
        Plan::parse(&format!(
            "[testbed]\nkind = \"lab\"\n[[load]]\n{load}\n[[probe]]\nkind = \"throughput\"\nname = \"stream\"\n\
             [[probe]]\n{probe}\nname = \"other\"\n"
        ))
    }

    #[test]
    fn sets_are_of_probes_that_are_there() {
        let files = "kind = \"files\"\nwith.op = [\"write\"]";
        let both = "together = [\"stream\", \"other\"]";
        let plan = parsed(files, both).unwrap();
        assert_eq!((plan.sets().count(), plan.loads().unwrap().len()), (1, 0));
        let again = Plan::parse(&plan.text().unwrap()).unwrap();
        assert_eq!(again, plan);
        for (probe, load, word) in [
            (
                files,
                "together = [\"stream\", \"files\"]",
                "there are stream, other",
            ),
            (files, "together = [\"other\", \"other\"]", "twice"),
            (
                files,
                &format!("{both}\nduring = \"10ms\""),
                "1 s to an hour",
            ),
            ("kind = \"startup\"", both, "cold"),
            ("kind = \"anatomy\"", both, "stamps"),
            (
                "kind = \"latency\"\npath = [\"native:tcp\"]",
                both,
                "only kernels",
            ),
            (
                "kind = \"latency\"\nsize = [\"1\", \"8\"]",
                both,
                "one path",
            ),
            (
                "kind = \"latency\"\nwait = [\"block\", \"poll\"]",
                both,
                "one path",
            ),
        ] {
            let error = parsed(probe, load).unwrap_err().to_string();
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}
