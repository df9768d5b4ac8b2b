//! The hosts of a plan.
//!
//! Checked: `the_usual_plans_are_read_back`, `what_a_plan_leaves_out_is_filled_in`; `typed.rs`.
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

use super::Kind;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use sonde_fleet::Target;
use sonde_lab::{Attachment, Priority};
use sonde_sys::file;
use sonde_units::BitRate;
use std::path::{Path, PathBuf};

/// The hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestbedPlan {
    /// What they are.
    pub kind: Kind,
    /// Lab: how many.
    #[serde(default = "four")]
    pub hosts: u16,
    /// Real hosts: what stands after `hosts:`, `slurm:`, `mpirun:` or `listen:` on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
    /// Real hosts: the rate of their line, where the interfaces report none, or not the right one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_rate: Option<BitRate>,
    /// Lab: how they are attached.
    #[serde(default = "auto")]
    pub attachment: Attachment,
    /// Lab: the priority of its own processes: real-time where the kernel permits it, or the usual one.
    #[serde(default, skip_serializing_if = "Priority::is_auto")]
    pub priority: Priority,
    /// Lab: measure this machine's loopback as well, which is the floor of what hosts cost.
    #[serde(default)]
    pub floors: bool,
    /// The two hosts that all launches are between, from the first to the second, as `h1>h2`. Without it every pair in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<String>,
    /// Lab: networks that join the same hosts beside the one that is measured: the first is eth1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// Lab: all networks join the same hosts, as those of real hosts do; without it each has hosts of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// Lab: a file that says what breaks and changes, and when, as `sonde lab run --script` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
    /// Lab: commands that hosts run as root before anything is measured, as `h3: sysctl -w net.ipv4.tcp_rmem='4096 4096 4096'`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
}

impl TestbedPlan {
    /// The real hosts that `names` says.
    ///
    /// # Errors
    /// What is wrong with a name, or with the file of hosts.
    pub fn targets(&self) -> Result<Vec<Target>, Failure> {
        let read = |path: &Path| {
            file::text(path).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".into(),
                _ => e.to_string(),
            })
        };
        let names = self.names.as_deref().unwrap_or_default();
        sonde_fleet::targets(names, read).map_err(Failure::usage)
    }

    /// How many hosts are to come, where that is what `names` says.
    pub fn count(&self) -> Option<usize> {
        self.names.as_deref()?.parse().ok()
    }
}

impl Default for TestbedPlan {
    fn default() -> Self {
        Self {
            kind: Kind::usual(),
            hosts: four(),
            names: None,
            line_rate: None,
            attachment: auto(),
            priority: Priority::Auto,
            floors: false,
            between: None,
            beside: Vec::new(),
            joined: false,
            script: None,
            prepare: Vec::new(),
        }
    }
}

fn four() -> u16 {
    4
}

fn auto() -> Attachment {
    Attachment::Auto
}
