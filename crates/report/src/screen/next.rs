//! What to do about an assessment: first what its figures lack, then what cures its losses.
//!
//! Model:   each action follows from one fact, and has the command where there is one. The testbed is that of the run.
//! Checked: the tests of `screen`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::Testbed;

use super::{Loss, Scope, Trust, TrustLevel, networks};
use crate::finding::precision::LAUNCHES_MIN;
use crate::index::Index;
use crate::lost::LostAt;

/// One action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Next {
    /// What.
    pub what: String,
    /// The command that does it; null where there is none.
    pub command: Option<String>,
}

impl Next {
    fn new(what: &str, command: Option<String>) -> Self {
        Self {
            what: what.into(),
            command,
        }
    }
}

pub(super) fn all(index: &Index<'_>, scope: &Scope, trust: &Trust, lost: &[Loss]) -> Vec<Next> {
    let mut all = Vec::new();
    let testbed = testbed(scope);
    if trust.missing > 0 {
        let command = format!("sonde assess --resume {}", scope.run);
        all.push(Next::new("what is missing", Some(command)));
    }
    if trust.level == TrustLevel::Low && trust.repetitions.is_some() {
        let command = (scope.testbed == Some(Testbed::Lab)).then(|| {
            let names = index.run.cells.iter().map(|cell| &cell.factors.network);
            let mut names = names.filter(|name| !super::is_floor(index, name));
            let network = names.next().map_or("", String::as_str);
            format!("sonde assess --hosts 2 --network {network}")
        });
        all.push(Next::new("on a quiet machine", command));
    }
    let is_real = scope.testbed == Some(Testbed::Hosts);
    if is_real && scope.hosts.len() > 2 && scope.pairs < scope.pairs_all {
        let command = format!("sonde probe pattern all-pairs{testbed}");
        all.push(Next::new("measure every pair", Some(command)));
    }
    if trust
        .repetitions
        .is_some_and(|(_, most)| most < LAUNCHES_MIN)
    {
        let command = again(&index.run.head.command);
        all.push(Next::new("for intervals", command));
    }
    let cures = lost.iter().filter_map(|loss| cure(loss, scope, &testbed));
    all.extend(cures);
    all
}

/// The command of the run with as many repetitions as an interval needs; none where it was of a plan.
fn again(command: &str) -> Option<String> {
    let mut words = command.split(' ').peekable();
    words.next_if_eq(&"assess")?;
    if words.peek().is_some_and(|word| !word.starts_with("--")) {
        return None;
    }
    let mut kept = String::from("sonde assess");
    while let Some(word) = words.next() {
        match word {
            "--quick" | "--json" | "--json-stream" | "--table" | "--findings" => {}
            "--launches" => {
                words.next();
            }
            word => kept += &format!(" {word}"),
        }
    }
    Some(format!("{kept} --launches {LAUNCHES_MIN}"))
}

/// The option that names the run's testbed.
fn testbed(scope: &Scope) -> String {
    match scope.testbed {
        Some(Testbed::Local) => " --testbed local".into(),
        Some(Testbed::Hosts) => format!(" --testbed hosts:{}", scope.hosts.join(",")),
        _ => String::new(),
    }
}

fn cure(loss: &Loss, scope: &Scope, testbed: &str) -> Option<Next> {
    let worst = loss.figures.first()?;
    let by = worst.lost.by.as_str();
    let largest = worst.lost.parts.first().map(|part| part.name.as_str());
    match loss.at {
        LostAt::Stream if by.starts_with("udp") => None,
        LostAt::Stream => {
            let network = match scope.testbed {
                Some(Testbed::Lab) => format!(" --network {}", worst.network),
                _ => String::new(),
            };
            let command = format!("sonde tune{testbed}{network}");
            Some(Next::new("find what limits TCP", Some(command)))
        }
        LostAt::Library => {
            let of = |path: &str| {
                let figures = loss.figures.iter();
                let own = figures.filter(|one| one.lost.by == path);
                own.map(|one| one.lost.value).max().unwrap_or(0)
            };
            let is_daemons = by == "pvm:default" && of("pvm:direct") < of("pvm:default");
            is_daemons.then(|| {
                let command = "pvm_setopt(PvmRoute, PvmRouteDirect)".into();
                Next::new("PVM's direct route", Some(command))
            })
        }
        LostAt::LibraryRate => {
            let command = format!(
                "sonde probe throughput --mode message --path {by} --size 1KiB..4MiB{testbed}"
            );
            Some(Next::new("compare sizes", Some(command)))
        }
        LostAt::Start => Some(match largest {
            Some("ARP") => Next::new(
                "keep addresses",
                Some("ip neigh replace HOST lladdr MAC dev IF nud permanent".into()),
            ),
            Some("circuit") => Next::new("use permanent circuits, or keep them open", None),
            Some("handshake") => Next::new("keep connections open between messages", None),
            _ => Next::new("send a message ahead, when the program starts", None),
        }),
        LostAt::Pause => Some(Next::new(
            "let CPUs wake quickly",
            Some("tuned-adm profile network-latency".into()),
        )),
        LostAt::Datagrams => Some(Next::new(
            "give receivers of datagrams room",
            Some("sysctl -w net.core.rmem_max=4194304".into()),
        )),
        LostAt::Host => {
            let what = format!("look at {by}: its interface, cable, port and CPUs");
            Some(Next::new(&what, None))
        }
        LostAt::Route => {
            let what = format!("look at what lies between {by}: route, trunk, queue");
            Some(Next::new(&what, None))
        }
        LostAt::Hosts => {
            let what = format!("where a message of {} goes", networks::name(by));
            let command = format!("sonde probe anatomy --path {by}{testbed}");
            Some(Next::new(&what, Some(command)))
        }
    }
}
