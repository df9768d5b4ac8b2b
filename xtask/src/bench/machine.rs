//! This machine, on which members run: scripts of the shell, alone or in a lab of the built command.
//!
//! Model:   a script gets `sonde` as the built command, `$SCRATCH`, a folder of its own, and `$XTASK`, this program; it starts in the root of
//!          the workspace. With a lab it runs on h1, in `sonde lab run --report`. What has not ended in its time is ended. The exit code
//!          is not looked at, since sonde ends with 1 where a check failed and its figures are whole: a reader that finds no figure says
//!          with which code and words the program ended.
//! Units:   `late_us` is the lateness of deliveries at the 99th percentile, in microseconds.
//! Checked: `scripts_run_and_are_ended`, `a_lab_s_report_is_read`, `what_is_missing_names_its_package`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::bench::file::{Lab, Member, Values, filled};
use crate::bench::floor;
use crate::bench::play::{Machine, Printed};

/// What members run on.
pub struct Here {
    pub root: PathBuf,
    /// The built command.
    pub sonde: PathBuf,
    pub scratch: PathBuf,
    /// When no further round begins.
    pub deadline: Option<Instant>,
    /// Whether every round counts, whatever goes on beside it.
    pub any_noise: bool,
}

/// What a lab says of itself.
#[derive(Deserialize)]
struct Report {
    deliveries: u64,
    late: u64,
    lateness_ns_p99: Option<u64>,
    attachment: BTreeMap<String, u64>,
}

impl Report {
    /// Whether it passed its own verdict (no more than 1 % of the deliveries late, nothing lost beside the model), how late it was,
    /// and how many frames were lost between the hosts and the switch.
    fn figures(&self) -> [f64; 3] {
        let lost: u64 = self.attachment.values().sum();
        let passed = self.deliveries > 0 && self.late * 100 <= self.deliveries && lost == 0;
        let late_us = self.lateness_ns_p99.map_or(f64::NAN, |ns| ns as f64 / 1e3);
        [f64::from(u8::from(passed)), late_us, lost as f64]
    }
}

impl Here {
    /// The newer one of the static and the plain build, of the workspace at `root`.
    ///
    /// # Errors
    /// There is none.
    pub fn new(root: &Path) -> Result<Self> {
        let places = ["target/static/sonde", "target/release/sonde"].map(|place| root.join(place));
        let built = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
        let newest = places.into_iter().filter(|path| built(path).is_some());
        let sonde = newest
            .max_by_key(built)
            .context("there is no built command; build it with `make build`")?;
        let scratch = root.join("target/bench");
        std::fs::create_dir_all(&scratch)
            .with_context(|| format!("making {}", scratch.display()))?;
        Ok(Self {
            root: root.to_path_buf(),
            sonde,
            scratch,
            deadline: None,
            any_noise: false,
        })
    }

    /// The program and the machine, as far as they bear on the figures.
    pub fn told(&self) -> String {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let release = read("/proc/sys/kernel/osrelease");
        // The version alone; what follows the first dash names a build.
        let kernel = release.split('-').next().unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let mut lines = processors.lines();
        let model =
            lines.find_map(|line| Some(line.strip_prefix("model name")?.split_once(": ")?.1));
        let cpus = processors
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count();
        let place = self.sonde.strip_prefix(&self.root).unwrap_or(&self.sonde);
        format!(
            "`{}` on Linux {}, {cpus} × {}",
            place.display(),
            kernel.trim(),
            model.unwrap_or("CPUs")
        )
    }

    /// A command that is ended after so long.
    fn timed(&self, seconds: u64) -> Result<Command> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", &seconds.to_string()]);
        let mut path = vec![self.sonde.parent().unwrap_or(&self.root).to_path_buf()];
        path.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        command.env(
            "PATH",
            std::env::join_paths(path).context("the PATH of the environment")?,
        );
        command.env("SCRATCH", &self.scratch);
        command.env(
            "XTASK",
            std::env::current_exe().context("finding this program")?,
        );
        command.current_dir(&self.root).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a script for so long at most.
    fn script(
        &self,
        script: &str,
        lab: Option<&Lab>,
        values: &Values,
        seconds: u64,
    ) -> Result<Printed> {
        let mut command = self.timed(seconds)?;
        let report = self.scratch.join("report.json");
        if let Some(lab) = lab {
            drop(std::fs::remove_file(&report));
            let fill = |text: &str| filled(text, values);
            command
                .arg(&self.sonde)
                .args(["lab", "run", "--network", &fill(&lab.network)]);
            command.args([
                "--attachment",
                &fill(&lab.attachment),
                "--cpus",
                &fill(&lab.cpus),
            ]);
            command
                .args(["--hosts", &lab.hosts.to_string(), "--report"])
                .arg(&report);
            command
                .args(fill(&lab.options).split_whitespace())
                .arg("--");
        }
        let path = if lab.is_some() {
            "PATH=/run/sonde/bin:$PATH; "
        } else {
            ""
        };
        command.args(["sh", "-c", &format!("{path}{script}")]);
        let output = command
            .output()
            .context("starting `timeout` (of coreutils)")?;
        let is_ended = matches!(output.status.code(), Some(124 | 137));
        ensure!(!is_ended, "it had not ended after {seconds} s");
        let said = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = said.lines().rev().take(2).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        let lab = lab.map(|_| lab_figures(&report)).transpose();
        Ok(Printed {
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            lab: lab.with_context(|| last.join("; "))?,
            said: format!("{}: {}", output.status, last.join("; ")),
        })
    }
}

fn lab_figures(report: &Path) -> Result<[f64; 3]> {
    let text = std::fs::read_to_string(report).context("reading the lab's report")?;
    let report: Report = serde_json::from_str(&text).context("reading the lab's report")?;
    Ok(report.figures())
}

impl Machine for Here {
    fn causes(&mut self) -> Result<Vec<String>> {
        if self.any_noise {
            return Ok(Vec::new());
        }
        let noise = sonde_sys::noise::measure()?;
        Ok(noise.causes().iter().map(ToString::to_string).collect())
    }

    fn line_ns(&mut self) -> Result<f64> {
        floor::state_ns()
    }

    fn run(&mut self, member: &Member, values: &Values) -> Result<Printed> {
        let script = filled(member.run.get_ref(), values);
        self.script(&script, member.lab.as_ref(), values, member.seconds)
    }

    fn is_over(&self) -> Option<bool> {
        self.deadline.map(|deadline| Instant::now() >= deadline)
    }
}

/// What a member needs and this machine lacks, with how to get it.
pub fn missing(member: &Member) -> Option<String> {
    let folders: Vec<PathBuf> = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .collect();
    let is_missing = |(name, what): &&(String, String)| match name.strip_prefix('$') {
        Some(variable) => std::env::var_os(variable).is_none(),
        None => !folders.iter().any(|folder| folder.join(name).is_file()) && !what.is_empty(),
    };
    let all: Vec<String> = member
        .needs
        .0
        .iter()
        .filter(is_missing)
        .map(|(name, what)| match name.strip_prefix('$') {
            Some(variable) => format!("{variable} is not set: {what}"),
            None => format!("{name} is not there: apt-get install {what}"),
        })
        .collect();
    (!all.is_empty()).then(|| format!("{}: {}", member.name.get_ref(), all.join("; ")))
}

/// Where the two ends of a pair run that share nothing: senders on all CPUs but the last, receivers on the last.
///
/// # Errors
/// The CPUs of this process cannot be read.
pub fn places() -> Result<Values> {
    let mut cpus = sonde_sys::cpu::online()?;
    let dst = cpus.pop().context("no CPU")?.to_string();
    let src: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let src = if src.is_empty() {
        dst.clone()
    } else {
        src.join(",")
    };
    Ok([("src".to_owned(), src), ("dst".to_owned(), dst)].into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::file::Bench;

    fn here(name: &str) -> Here {
        let scratch = std::env::temp_dir().join(format!("bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).unwrap();
        Here {
            root: scratch.clone(),
            sonde: scratch.join("sonde"),
            scratch,
            deadline: None,
            any_noise: false,
        }
    }

    #[test]
    fn scripts_run_and_are_ended() {
        let here = here("scripts");
        let none = Values::new();
        let printed = here
            .script(
                "echo a 1; test -d $SCRATCH && echo b 2; echo why >&2; exit 3",
                None,
                &none,
                20,
            )
            .unwrap();
        assert_eq!((printed.text.as_str(), printed.lab), ("a 1\nb 2\n", None));
        assert!(printed.said.ends_with("3: why"), "{}", printed.said);
        let late = here
            .script("sleep 20", None, &none, 1)
            .unwrap_err()
            .to_string();
        assert_eq!(late, "it had not ended after 1 s");
        std::fs::remove_dir_all(&here.scratch).unwrap();
    }

    #[test]
    fn a_lab_s_report_is_read() {
        let here = here("report");
        let path = here.scratch.join("report.json");
        let figures = |late: u64, lost: u64| {
            let text = format!(
                "{{\"deliveries\": 1000, \"late\": {late}, \"lateness_ns_p99\": 4500, \"more\": 1, \"attachment\": {{\"a\": {lost}, \"b\": 0}}}}"
            );
            std::fs::write(&path, text).unwrap();
            lab_figures(&path)
                .unwrap()
                .map(|figure| (figure * 10.0) as u64)
        };
        assert_eq!(figures(10, 0), [10, 45, 0]);
        assert_eq!(figures(11, 0)[0], 0, "too many were late");
        assert_eq!(figures(0, 2), [0, 45, 20]);
        std::fs::write(&path, "{}").unwrap();
        assert!(lab_figures(&path).is_err());
        std::fs::remove_dir_all(&here.scratch).unwrap();
    }

    #[test]
    fn what_is_missing_names_its_package() {
        let text = "title = \"t\"\nanswers = \"fast\"\nnote = \"n\"\nrounds = 1\n[[member]]\nname = \"a\"\nrun = \"a\"\nread = \"values\"\nneeds = { sh = \"dash\", no-such-tool = \"its-package\", \"$NO_SUCH_DIR\" = \"a folder\" }\n[[row]]\nwhat = \"a\"\nof = \"a.x\"\n";
        let bench = Bench::parse("t", text).unwrap();
        let said = missing(&bench.member[0]).unwrap();
        assert_eq!(
            said,
            "a: no-such-tool is not there: apt-get install its-package; NO_SUCH_DIR is not set: a folder"
        );
    }
}
