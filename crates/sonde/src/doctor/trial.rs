//! A lab of two hosts, started, used and ended: whether it works is seen by doing it.
//!
//! Model:   all of it on one thread, since the lab's first process dies with the thread that started it; so a lab that does
//!          not answer is left to that thread, and goes when this program ends, at the latest.
//! Checked: `what_is_no_lab_fails_in_time`, `failures_have_remedies`; `tests/doctor.rs` starts a real one.

use super::machine::within;
use super::{Check, Group, topic};
use crate::testbed;
use sonde_lab::{Attachment, Config, CpuPlan, Ended, Exec, Info, Lab, Priority, Profile};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The name of this check.
pub const NAME: &str = "start of a lab";
/// A lab takes some 0.1 s to start and to end; the end alone may wait 10 s before it is forced.
const TIMEOUT: Duration = Duration::from_secs(20);
/// A network whose gate is a tbf, as all but a bare wire have.
const NETWORK: &str = "ethernet-1g";
/// Where the command itself is found in each host.
const COMMAND_INSIDE: &str = "/run/sonde/bin/sonde";

/// A lab that worked.
#[derive(Debug)]
struct Worked {
    info: Info,
    /// Why its own processes have no real-time priority; none where they have.
    usual: Option<String>,
    start: Duration,
    programs: Duration,
    end: Duration,
}

/// How the trial ended.
#[derive(Debug)]
pub struct Trial(Result<Worked, String>);

impl Trial {
    /// Starts a lab whose parts `program` plays, runs that program on both hosts, and ends the lab.
    pub fn run(program: &Path) -> Self {
        Self::run_within(program, TIMEOUT)
    }

    fn run_within(program: &Path, limit: Duration) -> Self {
        let program = program.to_owned();
        let outcome = within(limit, move || attempt(&program));
        Self(outcome.unwrap_or_else(|| Err(format!("no answer within {} s", limit.as_secs_f32()))))
    }

    /// As checks; `obstacle` is the remedy where user namespaces are known to be the reason.
    pub fn checks(&self, obstacle: Option<&str>) -> Vec<Check> {
        let start = topic(Group::Lab, NAME, "`sonde assess`, `sonde lab`");
        let gate = topic(
            Group::Lab,
            "gates (tbf)",
            "back-pressure on senders: all networks of the lab",
        );
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        match &self.0 {
            Ok(worked) => vec![
                start.ok(format!(
                    "2 hosts on {NETWORK}, attached by {}, {}: up in {:.0} ms, a program on each in {:.0} ms, gone in {:.0} ms",
                    worked.info.attachment.name(),
                    match &worked.usual {
                        None => "with real-time priority".into(),
                        Some(why) => format!("without real-time priority ({why})"),
                    },
                    millis(worked.start),
                    millis(worked.programs),
                    millis(worked.end)
                )),
                gate.ok("set on both hosts of that lab"),
            ],
            Err(problem) if problem.contains("Tbf") => vec![
                start.missing(problem, "the gates, below"),
                gate.missing(
                    "the kernel refused one",
                    "as root: modprobe sch_tbf (a kernel option is CONFIG_NET_SCH_TBF)",
                ),
            ],
            Err(problem) if problem.contains("id maps of the lab") => vec![start.missing(
                problem,
                "run sonde outside of this user namespace (`unshare -r`, a rootless container), or give that 65536 ids",
            )],
            Err(problem) => {
                let again = "look for the message in docs/troubleshooting.md; to see it again: sonde lab run --hosts 2 -- true";
                vec![start.missing(problem, obstacle.unwrap_or(again))]
            }
        }
    }
}

fn attempt(program: &Path) -> Result<Worked, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let config = config()?;
    let (begin, mut times) = (Instant::now(), [Duration::ZERO; 3]);
    let lab = Lab::start(program, &config, None, None).map_err(|e| text(&e))?;
    times[0] = begin.elapsed();
    for host in 1..=lab.hosts() {
        visit(&lab, host)?;
    }
    times[1] = begin.elapsed() - times[0];
    let info = lab.info().clone();
    let usual = lab.why_usual().map(str::to_owned);
    lab.stop().map_err(|e| text(&e))?;
    times[2] = begin.elapsed() - times[0] - times[1];
    let [start, programs, end] = times;
    Ok(Worked {
        info,
        usual,
        start,
        programs,
        end,
    })
}

/// Runs this program's `--version` on a host, as the lab's root, as agents run.
fn visit(lab: &Lab, host: u16) -> Result<(), String> {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|e| format!("cannot open /dev/null: {e}"))?;
    let exec = Exec {
        argv: [COMMAND_INSIDE, "--version"].map(OsString::from).to_vec(),
        environment: Vec::new(),
        directory: PathBuf::from("/"),
        root: true,
        detached: false,
        terminal: None,
        cpus: Vec::new(),
        keeps_priority: false,
    };
    let streams = [null.as_fd(), null.as_fd(), null.as_fd()];
    let (session, _) = lab.exec(host, &exec, streams).map_err(|e| e.to_string())?;
    match session.wait().map_err(|e| e.to_string())? {
        Ended::Code(0) => Ok(()),
        other => Err(format!(
            "this program ended with {} on h{host}",
            other.code()
        )),
    }
}

fn config() -> Result<Config, String> {
    let network = sonde_link::resolve(NETWORK, &|path| Err(format!("{path} is not read here")))
        .map_err(|e| e.to_string())?;
    let online = sonde_sys::cpu::online().map_err(|e| e.to_string())?;
    Ok(Config {
        site: sonde_link::SiteSpec::single(network, 2),
        attachment: Attachment::Auto,
        tun: PathBuf::from("/dev/net/tun"),
        profile: Profile::MODERN,
        cpus: CpuPlan::named("split", &online)?,
        priority: Priority::Auto,
        seed: 1,
        pcap: None,
        ledger: None,
        keep: Vec::new(),
        user: testbed::user(),
        share: false,
        fail_over: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use crate::doctor::machine::tests::Tree;

    #[test]
    fn what_is_no_lab_fails_in_time() {
        let tree = Tree::of(&[("usr/bin/slow", "#!/bin/sh\nexec sleep 2\n")]);
        let slow = tree.machine.program("slow").unwrap();
        let silent = Trial::run_within(&slow, Duration::from_millis(100));
        assert_eq!(silent.0.unwrap_err(), "no answer within 0.1 s");
        let wrong = Trial::run(Path::new("/bin/false")).0.unwrap_err();
        assert!(wrong.contains("the lab"), "{wrong}");
        let absent = Trial::run(Path::new("/no/such/program")).checks(None);
        assert_eq!(absent[0].status, Status::Missing);
        assert!(absent[0].value.contains("No such file"), "{absent:?}");
    }

    #[test]
    fn failures_have_remedies() {
        let failed = |text: &str| Trial(Err(text.into()));
        let tbf = failed(
            "cannot put Tbf { rate_bytes_per_s: 1 } on interface 2: No such file or directory",
        )
        .checks(None);
        assert!(tbf[1].remedy.as_ref().unwrap().contains("modprobe sch_tbf"));
        let refused = failed("user namespaces are off").checks(Some("sysctl -w this"));
        assert_eq!(refused[0].remedy.as_deref(), Some("sysctl -w this"));
        let narrow = failed("write the id maps of the lab: cannot write").checks(None);
        assert!(narrow[0].remedy.as_ref().unwrap().contains("65536 ids"));
        let other = failed("something else").checks(None);
        assert!(other[0].remedy.as_ref().unwrap().contains("sonde lab run"));
    }
}
