//! `sonde lab check`: its options, lowered to a plan.

use super::options::Common;
use super::refused::Command;
use super::typed;
use crate::check::{self, Task};
use crate::failure::Failure;
use crate::shown::Form;
use clap::Args;

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde lab check --network atm-oc3c --attachment veth
  sonde lab check --network ./mine.toml --launches 10
  sonde lab check --site two-rooms --between 'a1>b2'          a path over a bridge

The round trip of 1 B is compared with that on a `wire` with the model's delay, rates with those of the model. Each repetition is stored,
and `sonde report` shows it again. Exit 1 where a bound is missed or a verdict failed, 2 where nothing could be measured.";

/// What `sonde lab check` takes.
#[derive(Debug, Args)]
#[command(mut_arg("testbed", |testbed| testbed.default_value("lab")))]
#[command(mut_arg("launches", |launches| launches.help("Repetitions of each measurement [default: 3]")))]
pub struct LabCheckOptions {
    /// The network, as `--network` names it.
    #[arg(value_name = "NETWORK", value_parser = typed::network_name(), hide_possible_values = true, conflicts_with_all = ["network_lists", "sites"])]
    network: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl LabCheckOptions {
    /// Checks; the exit code.
    pub fn run(mut self) -> Result<i32, Failure> {
        let network = self.network.take().map(|network| vec![network]);
        self.common.network_lists.extend(network);
        self.common.check(Command::LabCheck)?;
        let plan = check::plan(&self.common)?;
        Task {
            measurement: self.common.measurement(plan, Form::Rows)?,
        }
        .run()
    }
}
