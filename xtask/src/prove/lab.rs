//! A shell script in a lab of the built command, and what the lab says of itself.
//!
//! Model:   one start of `sonde lab run --report FILE -- sh -c SCRIPT`. In the script `sonde` is the command that runs the lab.
//!          A lab that has not ended after two minutes is ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::prove::Ground;

const SECONDS_MAX: &str = "120";

/// A lab to be run.
pub struct Lab<'a> {
    pub network: &'a str,
    pub hosts: usize,
    pub attachment: &'a str,
    pub cpus: &'a str,
    /// Whether the script may change the hosts' networks.
    pub root: bool,
    pub ledger: Option<PathBuf>,
}

/// What came of it.
pub struct Ran {
    pub output: String,
    pub report: Report,
}

/// What the prover reads of a lab's report.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    pub deliveries: u64,
    pub late: u64,
    pub lateness_ns_p99: Option<u64>,
    pub attachment: BTreeMap<String, u64>,
}

impl Report {
    /// Frames that were lost between the hosts and the switch.
    pub fn lost(&self) -> u64 {
        self.attachment.values().sum()
    }

    /// The lab's own verdict: no more than 1 % of the deliveries late, and nothing lost beside the model.
    pub fn passed(&self) -> bool {
        self.deliveries > 0 && self.late * 100 <= self.deliveries && self.lost() == 0
    }
}

impl<'a> Lab<'a> {
    /// Two hosts, the switch on a CPU of its own.
    pub fn new(network: &'a str, attachment: &'a str) -> Self {
        Self {
            network,
            hosts: 2,
            attachment,
            cpus: "split",
            root: false,
            ledger: None,
        }
    }

    /// Runs `script` on h1.
    pub fn sh(&self, ground: &Ground, script: &str) -> Result<Ran> {
        let report = ground.scratch.join("report.json");
        let script = format!("PATH=/run/sonde/bin:$PATH; {script}");
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=5", SECONDS_MAX])
            .arg(&ground.sonde);
        command.args([
            "lab",
            "run",
            "--network",
            self.network,
            "--hosts",
            &self.hosts.to_string(),
        ]);
        command
            .args([
                "--attachment",
                self.attachment,
                "--cpus",
                self.cpus,
                "--report",
            ])
            .arg(&report);
        if let Some(ledger) = &self.ledger {
            command.arg("--ledger").arg(ledger);
        }
        if self.root {
            command.arg("--root");
        }
        command.args(["--", "sh", "-c", &script]);
        let output = command
            .current_dir(&ground.root)
            .stdin(Stdio::null())
            .output()
            .context("starting `timeout` (of coreutils)")?;
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        if !output.status.success() {
            let said = if err.trim().is_empty() { &out } else { &err };
            let last: Vec<_> = said.lines().rev().take(3).collect();
            let last: Vec<_> = last.into_iter().rev().collect();
            bail!(
                "{} on {}, {}: {}",
                output.status,
                self.network,
                self.attachment,
                last.join("; ")
            );
        }
        let text = std::fs::read_to_string(&report).context("reading the lab's report")?;
        let report = serde_json::from_str(&text).context("reading the lab's report")?;
        Ok(Ran {
            output: out,
            report,
        })
    }
}

/// The model of a network, by its selector.
pub fn spec(selector: &str) -> Result<sonde_link::NetworkSpec> {
    sonde_link::resolve(selector, &|path| {
        std::fs::read_to_string(path).map_err(|e| e.to_string())
    })
    .with_context(|| format!("the network {selector}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_passes_by_the_lab_s_rule() {
        let read = |late: u64, gate: u64| {
            let text = format!(
                "{{\"deliveries\": 1000, \"late\": {late}, \"lateness_ns_p99\": null, \"attachment\": {{\"gate\": {gate}}}, \"span_ns\": 1}}"
            );
            serde_json::from_str::<Report>(&text).unwrap()
        };
        assert!(read(10, 0).passed());
        assert!(!read(11, 0).passed());
        assert!(!read(0, 1).passed());
    }
}
