//! `sonde lab downtime`: for how long hosts do not reach each other while what a schedule says breaks, by cause, for networks side by side.
//!
//! Model:   the schedule is that of a network's own file (`[[fault]]`), and a script's. The models say under the virtual clock who reaches whom.
//! Checked: `tests/lab_sites.rs`.

use crate::document::{self, Command, Document};
use crate::failure::Failure;
use crate::measure::command_line;
use crate::output::{self, Print, say};
use crate::testbed;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_link::{Cause, SiteSpec};
use sonde_record::Judgement;
use sonde_report::sheet;
use sonde_units::Span;
use sonde_virtual::Outage;
use std::path::Path;

/// What was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Downtimes {
    /// For how long.
    lasts_s: f64,
    /// One for each network or site.
    networks: Vec<NetworkDowntime>,
}

/// The down-time of a network or site.
#[derive(Debug, Serialize, JsonSchema)]
struct NetworkDowntime {
    /// Its name.
    name: String,
    /// Hosts.
    hosts: u16,
    /// All of it.
    all: DowntimeFigures,
    /// The longest time for which any two hosts were apart.
    longest_s: f64,
    /// The share of the time for which two hosts reached each other, in the mean over all pairs.
    availability: f64,
    /// By cause, the longest first.
    causes: Vec<CauseRow>,
}

/// The down-time of one cause.
#[derive(Debug, Serialize, JsonSchema)]
struct CauseRow {
    /// The cause.
    cause: String,
    #[serde(flatten)]
    figures: DowntimeFigures,
}

/// How often and how long hosts were apart.
#[derive(Debug, Serialize, JsonSchema)]
struct DowntimeFigures {
    /// How often it began.
    times: u64,
    /// For how long, in the mean over all pairs of hosts.
    mean_s: f64,
    /// For how long any two were.
    any_s: f64,
}

fn seconds(span: Span) -> f64 {
    span.as_picos() as f64 / 1e12
}

impl DowntimeFigures {
    fn new(outage: Outage) -> Self {
        Self {
            times: outage.times,
            mean_s: seconds(outage.mean),
            any_s: seconds(outage.any),
        }
    }
}

/// A cause in words.
fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::LinkDown => "line or trunk down",
        Cause::HostDown => "host down or standing still",
        Cause::Parted => "network parted",
        Cause::Restart => "switch restarting",
        Cause::NoCircuit => "no circuit",
        Cause::Rejected => "circuit refused or lost",
        Cause::TooLong => "frame too long",
        _ => "no way",
    }
}

fn row(site: &SiteSpec, lasts: Span) -> Result<NetworkDowntime, Failure> {
    let found = sonde_virtual::downtime(site, lasts).map_err(Failure::usage)?;
    let mut causes: Vec<_> = found.by_cause.iter().collect();
    causes.sort_by_key(|(_, outage)| std::cmp::Reverse(outage.mean));
    let up = 1.0 - seconds(found.all.mean) / seconds(lasts);
    Ok(NetworkDowntime {
        name: site.name.clone(),
        hosts: site.count(),
        all: DowntimeFigures::new(found.all),
        longest_s: seconds(found.longest),
        availability: up,
        causes: causes
            .into_iter()
            .map(|(cause, outage)| CauseRow {
                cause: words(*cause).to_owned(),
                figures: DowntimeFigures::new(*outage),
            })
            .collect(),
    })
}

/// `sonde lab downtime`.
pub fn show(
    sites: &[SiteSpec],
    script: Option<&Path>,
    lasts: Span,
    print: Print,
) -> Result<i32, Failure> {
    if lasts.is_zero() {
        return Err(Failure::usage(
            "`--for` is no time: write 1008h for six weeks",
        ));
    }
    let script = match script {
        Some(path) => Some((path, testbed::script(path)?)),
        None => None,
    };
    let mut rows = Vec::new();
    for site in sites {
        let mut site = site.clone();
        if let Some((path, script)) = &script {
            testbed::play(&mut site, path, script)?;
        }
        rows.push(row(&site, lasts)?);
    }
    match print {
        Print::Csv => {
            return Err(Failure::usage(
                "down-time has rows of several kinds, which no CSV has: write `--json`",
            ));
        }
        Print::Json => {
            let all = Downtimes {
                lasts_s: seconds(lasts),
                networks: rows,
            };
            let verdict = Judgement::none("down-time of a schedule makes no judgement");
            document::print(&Document::new(
                Command::LabDowntime(&all),
                &command_line(),
                verdict,
            ))?;
            return Ok(0);
        }
        _ => {}
    }
    let minutes = |seconds: f64| format!("{:.2}", seconds / 60.0);
    let line = |name: &str, cause: &str, figures: &DowntimeFigures| {
        vec![
            name.to_owned(),
            cause.to_owned(),
            figures.times.to_string(),
            minutes(figures.mean_s),
            minutes(figures.any_s),
        ]
    };
    let mut lines = Vec::new();
    for one in &rows {
        lines.push(line(&one.name, "all", &one.all));
        let causes = one.causes.iter();
        lines.extend(causes.map(|row| line("", &row.cause, &row.figures)));
    }
    let heads = [
        "network",
        "cause",
        "times",
        "a pair of hosts\nmin in the mean",
        "any pair\nmin",
    ];
    say!("{}", sheet(&heads, lines).loose().text(output::width()));
    for one in &rows {
        output::paragraph(&format!(
            "{}: two of its {} hosts reach each other for {:.4} % of {} h; the longest outage lasts {} min.",
            one.name,
            one.hosts,
            one.availability * 100.0,
            seconds(lasts) / 3_600.0,
            minutes(one.longest_s)
        ));
    }
    output::paragraph(
        "By the models under the virtual clock, from the schedules of the networks' files and the script. What ends by itself, as a circuit that is set up anew, is looked at 10 ms to 100 s after the change \
         before it. Play it in a lab: `sonde lab run --script FILE`.",
    );
    Ok(0)
}
