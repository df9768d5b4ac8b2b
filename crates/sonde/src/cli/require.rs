//! The options that say what must hold of the results.

use crate::require::{self, Baseline, Requirement, Sources};
use clap::Args;
use sonde_units::Ratio;

/// What must hold.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requirements")]
pub struct RequireOptions {
    /// What must hold of the results, else the exit code is 1, or 3 where it is inconclusive; may be given several times. As
    /// QUANTITY[.STATISTIC][@PATH][@SIZE][@NETWORK]>=VALUE, or <=: throughput>=23.0Gbit, throughput>=95% (of the ceiling),
    /// latency.p99<=30us, latency@udp@64<=25us, loss<=0.1%, startup@ib<=2ms.
    #[arg(long = "require", value_name = "REQUIREMENT", value_parser = require::requirement, conflicts_with = "resume")]
    given: Vec<Requirement>,
    /// A file of requirements: one in each line, or as [[require]] of a plan.
    #[arg(long = "require-from", value_name = "FILE", conflicts_with = "resume")]
    files: Vec<String>,
    /// Require what an earlier run in the store reached: each rate and time of it that is measured again.
    #[arg(
        long = "require-baseline",
        value_name = "RUN",
        conflicts_with = "resume"
    )]
    baseline: Option<String>,
    /// How much worse than the baseline a figure may be.
    #[arg(
        long = "require-within",
        value_name = "SHARE",
        default_value = "10%",
        requires = "baseline"
    )]
    within: Ratio,
}

impl RequireOptions {
    /// Whether anything is required.
    pub fn is_given(&self) -> bool {
        !(self.given.is_empty() && self.files.is_empty() && self.baseline.is_none())
    }

    /// Those that are given.
    pub fn given(&self) -> Vec<Requirement> {
        self.given.clone()
    }

    /// Where others are.
    pub fn sources(&self) -> Sources {
        let within = self.within;
        let baseline = self.baseline.clone();
        Sources {
            files: self.files.clone(),
            baseline: baseline.map(|run| Baseline { run, within }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        require: RequireOptions,
        #[arg(long)]
        resume: Option<String>,
    }

    #[test]
    fn all_sources_are_read() {
        let line = |words: &[&str]| Line::try_parse_from([&["line"], words].concat());
        assert!(!line(&[]).unwrap().require.is_given());
        let words = [
            "--require",
            "throughput>=1Gbit",
            "--require-from",
            "contract.txt",
            "--require",
            "latency<=1ms",
            "--require-baseline",
            "R",
            "--require-within",
            "5%",
        ];
        let read = line(&words).unwrap().require;
        assert!(read.is_given());
        let given = read.given();
        let subjects: Vec<String> = given.iter().map(Requirement::subject).collect();
        assert_eq!(subjects, ["throughput", "latency"]);
        let sources = read.sources();
        assert_eq!(sources.files, ["contract.txt"]);
        assert_eq!(sources.baseline.unwrap().within, Ratio::new(5, 100));
        for (words, said) in [
            (["--require", "through>=1Gbit"], "the nearest is throughput"),
            (["--require", "latency.p99"], "neither >= nor <="),
        ] {
            let error = line(&words).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(line(&["--require", "latency<=1ms", "--resume", "R"]).is_err());
    }
}
