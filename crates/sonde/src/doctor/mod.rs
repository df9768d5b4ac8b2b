//! `sonde doctor`: what this machine can do, what is missing, how to get it.
//!
//! Model:   a check reads files of /proc, /sys and /etc below a root folder, or asks the kernel, and becomes one line: a
//!          status, what was found, what it is needed for, and the remedy where there is one. Nothing is changed, no root
//!          is needed. What could wait for ever (a program, a lab, a network file system) gets a bounded time.
//! Checked: the tests of each file, on made-up trees; `this_machine_is_described`; `tests/doctor.rs` runs the command.

mod adapters;
mod host;
mod lab;
mod launcher;
pub mod leftovers;
mod machine;
mod network;
pub mod noise;
mod paths;
mod print;
mod store;
mod time;
mod trial;

use crate::document::{self, Command, Document};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::command_line;
use crate::output::{self, Print};
use machine::Machine;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::Noise;
use std::path::Path;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is there, and as it should be.
    Ok,
    /// It works, but less well or with less than it could.
    Limited,
    /// It is not there.
    Missing,
}

impl Status {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// The emulated cluster on this machine.
    Lab,
    /// Clocks, sleeping, and what disturbs them.
    Time,
    /// Measuring between real machines.
    Hosts,
    /// Message-passing libraries and their adapters.
    Libraries,
    /// This machine's own interfaces and TCP settings.
    Network,
    /// Other tools, to compare with.
    Peers,
    /// The page that shows results.
    Report,
    /// Where results are kept.
    Store,
}

impl Group {
    const fn title(self) -> &'static str {
        match self {
            Self::Lab => "Lab: an emulated cluster on this machine",
            Self::Time => "Time: clocks, sleeping, and what disturbs them",
            Self::Hosts => "Hosts: measuring between real machines",
            Self::Libraries => "Libraries: message passing, and the adapters to it",
            Self::Network => "Network: this machine's own interfaces and TCP",
            Self::Peers => "Peers: other tools, to compare with",
            Self::Report => "Report",
            Self::Store => "Store",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// What it belongs to.
    pub group: Group,
    /// What was found, in a word.
    pub status: Status,
    /// What was found.
    pub value: String,
    /// What does not work, or works less well, without it.
    pub needed_for: String,
    /// What to do, as a command where there is one; null where nothing is to be done.
    pub remedy: Option<String>,
}

/// The columns of `--csv`.
const CSV_COLUMNS: [&str; 6] = ["group", "name", "status", "value", "needed_for", "remedy"];

/// What is told of this machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MachineDiagnosis")]
pub struct Diagnosis {
    /// What was looked at, by group.
    pub checks: Vec<Check>,
    /// How disturbed this machine is; null of `--build-adapters`, and where it could not be seen.
    pub noise: Option<Noise>,
}

/// A check without its outcome.
struct Topic {
    group: Group,
    name: String,
    needed_for: String,
}

/// The topic `name` of `group`, which `needed_for` depends on.
fn topic(group: Group, name: impl Into<String>, needed_for: &str) -> Topic {
    Topic {
        group,
        name: name.into(),
        needed_for: needed_for.into(),
    }
}

impl Topic {
    fn ok(self, value: impl Into<String>) -> Check {
        self.found(Status::Ok, value.into(), None)
    }

    fn limited(self, value: impl Into<String>, remedy: impl Into<String>) -> Check {
        self.found(Status::Limited, value.into(), Some(remedy.into()))
    }

    fn missing(self, value: impl Into<String>, remedy: impl Into<String>) -> Check {
        self.found(Status::Missing, value.into(), Some(remedy.into()))
    }

    /// `ok` where `good`, else `limited`.
    fn judge(self, good: bool, value: impl Into<String>, remedy: impl Into<String>) -> Check {
        if good {
            self.ok(value)
        } else {
            self.limited(value, remedy)
        }
    }

    fn found(self, status: Status, value: String, remedy: Option<String>) -> Check {
        Check {
            name: self.name,
            group: self.group,
            status,
            value,
            needed_for: self.needed_for,
            remedy,
        }
    }
}

/// What is looked at beside the machine.
pub struct Look<'a> {
    /// The folder of the store.
    pub out: &'a Path,
    /// Whether this program holds the report page.
    pub page: bool,
    /// A folder of adapters that comes before all others.
    pub adapters: Option<&'a Path>,
}

/// `sonde doctor`: looks, prints, and gives 0 where `sonde assess` can measure on the lab and keep what it measured, else 1.
///
/// # Errors
/// The program cannot find itself.
pub fn run(look: &Look<'_>, print: Print) -> Result<i32, Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::cannot(format!("cannot find this program: {e}")))?;
    // First of all: what follows keeps the machine busy.
    let seen = noise::look();
    let checks = examine(&Machine::this(), &program, look, &seen);
    let why = print::blocking(&checks).map(|check| format!("{}: {}", check.name, check.value));
    let noise = seen.ok().map(|seen| noise::record(&seen));
    tell(checks, noise, why, print, print::text)
}

/// `sonde doctor --build-adapters`: builds what can be built into `folder`, else the usual one; gives 0 unless a compiler
/// refused an adapter. What is not here is no failure.
///
/// # Errors
/// There is no folder to build into.
pub fn build_adapters(folder: Option<&Path>, print: Print) -> Result<i32, Failure> {
    let folder = folder.map(Path::to_path_buf);
    let folder = folder.or_else(sonde_message::adapters::build_folder);
    let folder = folder.ok_or_else(|| {
        Failure::usage("there is no folder for adapters: neither $SONDE_ADAPTERS nor $HOME is set; name one: --adapters DIR")
    })?;
    let (checks, sound) = adapters::build(&Machine::this(), &folder);
    let why = (!sound).then(|| "a compiler refused an adapter".into());
    tell(checks, None, why, print, print::lines)
}

/// Prints what was found.
fn tell(
    checks: Vec<Check>,
    noise: Option<Noise>,
    why: Option<String>,
    print: Print,
    people: fn(&[Check]) -> String,
) -> Result<i32, Failure> {
    let outcome = Outcome {
        is_measured: true,
        is_judged: true,
        failed: why.into_iter().collect(),
        ..Outcome::default()
    };
    match print {
        Print::Json => {
            let diagnosis = Diagnosis { checks, noise };
            let command = Command::Doctor(&diagnosis);
            let document = Document::new(command, &command_line(), outcome.judgement());
            document::print(&document)?;
        }
        Print::Csv => output::csv(&CSV_COLUMNS, &checks)?,
        Print::Text => output::shown(&people(&checks)),
    }
    Ok(outcome.code())
}

/// All checks, in the order of their groups; `seen` is how disturbed the machine was before.
fn examine(
    machine: &Machine,
    program: &Path,
    look: &Look<'_>,
    seen: &noise::NoiseReport,
) -> Vec<Check> {
    let mut checks = lab::checks(machine, program);
    checks.extend(time::checks(machine, seen));
    checks.extend(host::checks(machine));
    checks.extend(launcher::checks(machine, sonde_fleet::Allocation::here()));
    checks.extend(adapters::checks(machine, look.adapters));
    checks.extend(network::checks(machine));
    checks.extend(host::peers(machine));
    checks.push(report_page(look.page));
    checks.extend(store::checks(machine, look.out));
    checks
}

/// Whether the report can be shown as a page.
fn report_page(page: bool) -> Check {
    let topic = topic(Group::Report, "report page", "the HTML report of a run");
    if page {
        topic.ok("built in")
    } else {
        topic.missing(
            "this program was built without it; reports are tables in the terminal",
            "where it was built, with Node.js 18 or newer (packages nodejs and npm): make build",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lab's hidden programs are not in a test program: its start is tested in `trial` and in `tests/doctor.rs`.
    #[test]
    fn this_machine_is_described() {
        let machine = Machine::this();
        let out = std::env::temp_dir().join("sonde-doctor-store");
        let look = Look {
            out: &out,
            page: false,
            adapters: None,
        };
        let checks = examine(&machine, Path::new("/bin/false"), &look, &noise::look());
        for check in &checks {
            assert!(
                !check.value.is_empty() && !check.needed_for.is_empty(),
                "{check:?}"
            );
            assert_eq!(
                check.remedy.is_none(),
                check.status == Status::Ok,
                "{check:?}"
            );
            assert!(!check.value.contains('\n'), "{check:?}");
        }
        let mut names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
        let groups = checks.chunk_by(|a, b| a.group == b.group);
        assert_eq!(groups.count(), 8, "each group is told once");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), checks.len(), "names tell checks apart");
        assert!(!out.exists(), "looking makes nothing");
        let blocking = print::blocking(&checks).map(|check| check.name.as_str());
        assert_eq!(blocking, Some("start of a lab"), "/bin/false is no lab");
    }

    #[test]
    fn the_document_is_as_promised() {
        let diagnosis = Diagnosis {
            checks: vec![report_page(true), report_page(false)],
            noise: None,
        };
        let json = serde_json::to_value(Command::Doctor(&diagnosis)).unwrap();
        assert_eq!(json["command"], "doctor");
        let [first, second] = [0, 1].map(|at| &json["checks"][at]);
        assert_eq!(
            (&first["status"], &first["group"]),
            (&"ok".into(), &"report".into())
        );
        assert!(first["remedy"].is_null(), "null, not absent: {first}");
        assert!(json.get("noise").is_some_and(serde_json::Value::is_null));
        assert_eq!(second["status"], "missing");
        let keys: Vec<&String> = first.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 6, "{keys:?}");
        let schema = serde_json::to_value(schemars::schema_for!(Diagnosis)).unwrap();
        assert_eq!(schema["required"], serde_json::json!(["checks"]));
    }
}
