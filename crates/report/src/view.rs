//! What the report page is given: one run, worked out as far as a page needs it.
//!
//! Model:   rows as in `--json`, and what they cannot hold: distributions as at most [`BUCKETS_MAX`] buckets, launches'
//!          medians, fits, findings, conditions and what disturbed the hosts. Distributions are of what a probe is for, where there
//!          are at least [`SAMPLES_FOR_SHAPE`] samples; when many would make the page heavy, all have fewer buckets.
//!          Of a pattern with very many flows the heat maps and the rows of all together are kept, and it says so.
//! Units:   the values of distributions and medians are in the unit of their quantity's name.
//! Checked: `the_usual_assessment_is_light`, `flows_that_are_too_many_for_a_page_are_left_out`, `buckets_keep_their_samples`, `nothing_is_nan`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{
    EventRecord, HostRecord, Interference, KnobValues, LaunchRecord, Line, LineField,
    NetworkRecord, Noise, Number, Phase, Quantity, Repetition, ResultRow, Run, RunHead, Step,
};
use sonde_stats::Series;

use crate::anatomy::{AnatomyRow, anatomies};
use crate::contention::ContentionView;
use crate::files::FilesRow;
use crate::finding::{Finding, Severity, findings};
use crate::fit::{FitRow, fits};
use crate::format::{count, counted, share, time, utc};
use crate::index::{Index, busy, is_main, median, p50};
use crate::kernels::{
    KernelPhase, KernelRow, KernelTraffic, PrintedElsewhere, elsewhere, kernels, phases, traffic,
};
use crate::library::{LibraryRow, libraries};
use crate::matrix::{AllPairs, HeatView, heat};
use crate::queueing::{QueueingRow, queueing};
use crate::screen::Assessment;
use crate::seen::{SeenRow, seen};
use crate::sweep::{SweepCurve, curves};
use crate::timeline::{Moment, timeline};

/// The most buckets of a distribution.
pub const BUCKETS_MAX: usize = 64;
/// The fewest samples whose distribution says more than their quantiles.
pub const SAMPLES_FOR_SHAPE: u64 = 16;
/// Rows of a pattern's single flows that a page holds: about 150 bytes each, with their launches.
const FLOW_ROWS_MAX: usize = 5_000;
/// Rows whose launches have their medians in a page: about 150 bytes each.
const MEDIANS_MAX: usize = 2_000;
/// Buckets of all distributions together: about 13 bytes each in the page.
const ALL_BUCKETS_MAX: usize = 12_000;

/// The name and version of the page's data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ViewSchema {
    /// The first.
    #[default]
    #[serde(rename = "sonde-view/1")]
    V1,
}

/// What the page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// `sonde-view/1`.
    pub schema: ViewSchema,
    /// What was asked, when and by what.
    pub run: RunHead,
    /// The run in a sentence or two.
    pub verdict: String,
    /// What the screen of an assessment says; null of other runs.
    #[serde(default)]
    pub answer: Option<Assessment>,
    /// The hosts.
    pub hosts: Vec<HostRecord>,
    /// The networks, with ceilings and overhead chains.
    pub networks: Vec<NetworkRecord>,
    /// One for each quantity of each cell, as in `--json`.
    pub results: Vec<ResultRow>,
    /// How samples are spread.
    pub distributions: Vec<Distribution>,
    /// The medians that intervals are made of, of what each probe is for.
    pub launch_medians: Vec<LaunchMedians>,
    /// The cost of messages.
    pub fits: Vec<FitRow>,
    /// What load adds to latency.
    #[serde(default)]
    pub queueing: Vec<QueueingRow>,
    /// What libraries cost over the transports beneath them.
    #[serde(default)]
    pub library: Vec<LibraryRow>,
    /// The kernels, with what papers print of them.
    #[serde(default)]
    pub kernels: Vec<KernelRow>,
    /// What papers print of these kernels on machines of other kinds.
    #[serde(default)]
    pub kernels_elsewhere: Vec<PrintedElsewhere>,
    /// The messages of these kernels.
    #[serde(default)]
    pub kernels_traffic: Vec<KernelTraffic>,
    /// The phases of these kernels.
    #[serde(default)]
    pub kernels_phases: Vec<KernelPhase>,
    /// Where the time of messages goes.
    #[serde(default)]
    pub anatomy: Vec<AnatomyRow>,
    /// Rates against the program's buffer; empty where only one was measured.
    #[serde(default)]
    pub sweep: Vec<SweepCurve>,
    /// Files of servers; empty where none were asked for.
    #[serde(default)]
    pub files: Vec<FilesRow>,
    /// Workloads at once, and who slows whom; null where none were measured so.
    #[serde(default)]
    pub contention: Option<ContentionView>,
    /// All pairs of hosts as heat maps; null of a run that is not of all pairs.
    #[serde(default)]
    pub heat: Option<HeatView>,
    /// Which host, link or direction stands out among all pairs; null of a run that is not of all pairs.
    #[serde(default)]
    pub all_pairs: Option<AllPairs>,
    /// What is too much for a page: a sentence each.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// What a person can act on, warnings first.
    pub findings: Vec<Finding>,
    /// Name and value of what held for the whole run.
    pub conditions: Vec<(String, String)>,
    /// What disturbed the hosts.
    pub interference: Vec<InterferenceRow>,
    /// How busy the hosts were over the run.
    #[serde(default)]
    pub timeline: Vec<Moment>,
    /// What the launches saw beside their samples.
    #[serde(default)]
    pub seen: Vec<SeenRow>,
    /// Check these before trusting the results.
    pub warnings: Vec<String>,
    /// What happened meanwhile.
    pub events: Vec<EventRecord>,
}

/// How the samples of a row are spread, all launches together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// The cell.
    pub cell: String,
    /// What was measured.
    pub quantity: Quantity,
    /// Cold or warm.
    pub phase: Phase,
    /// The part of a start-up.
    pub step: Option<Step>,
    /// The largest value that a bucket counts, and how many; ascending.
    pub buckets: Vec<(Number, u64)>,
}

/// The median of each launch of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchMedians {
    /// The cell.
    pub cell: String,
    /// What was measured.
    pub quantity: Quantity,
    /// Cold or warm.
    pub phase: Phase,
    /// The part of a start-up.
    pub step: Option<Step>,
    /// In the order in which the launches ended.
    pub medians: Vec<Number>,
    /// When each launch began, since the run did.
    pub began_ms: Vec<u64>,
}

/// What disturbed the hosts while one probe measured one (network, path, method, knobs).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterferenceRow {
    /// The network.
    pub network: String,
    /// The path.
    pub path: String,
    /// How bytes are handed over, as `zerocopy`.
    #[serde(default)]
    pub method: Option<String>,
    /// What else was set, by name.
    #[serde(default)]
    pub knobs: KnobValues,
    /// The probe.
    pub probe: String,
    /// The load of the network, as `0.6`; null where it was idle.
    pub load: Option<String>,
    /// Times that a measuring thread was put aside, at all hosts and in all launches.
    pub involuntary_switches: u64,
    /// CPU time that a hypervisor took; null where no host can tell.
    pub steal_ns: Option<u64>,
    /// TCP segments sent again; null where no host can tell.
    pub retransmits: Option<u64>,
    /// Part of all its CPUs that the busier host used, in the median launch; null where no host can tell.
    pub cpu_busy_share: Option<Number>,
}

impl View {
    /// A run as the page shows it.
    pub fn of(run: &Run) -> Self {
        let mut index = Index::new(run);
        let findings = findings(&index);
        let verdict = verdict(&index, &findings);
        let answer = Assessment::is_of(run).then(|| Assessment::of_index(&index, &findings));
        let all_pairs = match &answer {
            Some(answer) => answer.all_pairs.clone(),
            None => AllPairs::of_index(&index, &findings),
        };
        let mut left_out = lighten(&mut index);
        let kernels = kernels(&index);
        let (distributions, mut launch_medians) = populations(&index);
        left_out.extend(thin(&mut launch_medians));
        Self {
            schema: ViewSchema::V1,
            run: run.head.clone(),
            hosts: run.hosts.clone(),
            networks: run.networks.clone(),
            distributions,
            launch_medians,
            fits: fits(&index),
            queueing: queueing(&index),
            library: libraries(&index),
            kernels_elsewhere: elsewhere(&index, &kernels),
            kernels_traffic: traffic(&index, &kernels),
            kernels_phases: phases(&index, &kernels),
            kernels,
            anatomy: anatomies(&index),
            sweep: curves(&index),
            files: FilesRow::all(&index),
            contention: ContentionView::of(run),
            heat: heat(run),
            all_pairs,
            left_out,
            verdict,
            answer,
            findings,
            conditions: conditions(&index),
            interference: interference(&index),
            timeline: timeline(run),
            seen: seen(&index),
            warnings: run.warnings.clone(),
            events: run.events.clone(),
            results: index.rows,
        }
    }
}

/// Takes the flows of a pattern out of the rows where they are more than a page holds; what was left out, in words.
fn lighten(index: &mut Index<'_>) -> Vec<String> {
    let is_flow = |row: &ResultRow| {
        row.probe == "pattern" && row.knobs.get("flow").is_some_and(|flow| flow != "all")
    };
    let flows = index.rows.iter().filter(|row| is_flow(row)).count();
    if flows <= FLOW_ROWS_MAX {
        return Vec::new();
    }
    index.rows.retain(|row| !is_flow(row));
    vec![format!(
        "{} rows of single flows are not in this page, which would be too large: `sonde report export` has them all.",
        count(flows as u64)
    )]
}

/// Keeps the medians of some rows where all are more than a page holds, evenly over them; says so.
fn thin(medians: &mut Vec<LaunchMedians>) -> Option<String> {
    let all = medians.len();
    let each = all.div_ceil(MEDIANS_MAX);
    if each < 2 {
        return None;
    }
    *medians = std::mem::take(medians).into_iter().step_by(each).collect();
    Some(format!(
        "The medians of single repetitions are here of {} of {} rows: `sonde report export` has them all.",
        count(medians.len() as u64),
        count(all as u64)
    ))
}

/// The run in a sentence or two: what was measured, how near streams come to their ceilings, and what to check first.
fn verdict(index: &Index<'_>, findings: &[Finding]) -> String {
    let all = index.run.cells.len();
    let measured = index
        .run
        .cells
        .iter()
        .filter(|cell| index.launches(&cell.id).next().is_some())
        .count();
    let mut text = format!(
        "{measured} of {all} cells on {} were measured.",
        counted(index.run.networks.len() as u64, "network")
    );
    let mut reached: Vec<f64> = index
        .lines()
        .filter(|line| line.path.starts_with("tcp"))
        .filter_map(|line| Some(p50(index.stream(line)?) / index.ceiling(line)?))
        .collect();
    reached.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (reached.first(), reached.last()) {
        let (least, most) = (share(*least), share(*most));
        let range = if least == most {
            least
        } else {
            format!("{least} to {most}")
        };
        text += &format!(" Streams over TCP reach {range} of what the networks allow.");
    }
    let warnings = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Warning)
        .count();
    if warnings > 0 {
        let them = if warnings == 1 { "it" } else { "them" };
        text += &format!(
            " {}: read {them} before the figures.",
            counted(warnings as u64, "warning")
        );
    }
    text
}

/// A number of the page; what is not finite is left out by the caller.
fn number(value: f64) -> Option<Number> {
    value.is_finite().then_some(Number(value))
}

fn populations(index: &Index<'_>) -> (Vec<Distribution>, Vec<LaunchMedians>) {
    let mut shapes: Vec<(&ResultRow, Phase, Series)> = Vec::new();
    let mut medians = Vec::new();
    for row in &index.rows {
        let Some(phase) = row.phase else {
            continue;
        };
        let launches: Vec<(&LaunchRecord, &Series)> = index
            .repetitions(&row.cell)
            .flat_map(|Repetition { launch, result }| {
                result.series.iter().map(move |one| (launch, one))
            })
            .filter(|(_, one)| {
                one.quantity == row.quantity && one.phase == phase && one.step == row.step
            })
            .map(|(launch, one)| (launch, &one.series))
            .collect();
        let per_unit = row.quantity.per_unit() as f64;
        let (of_launches, began_ms): (Vec<Number>, Vec<u64>) = launches
            .iter()
            .filter_map(|(launch, series)| {
                let since = launch
                    .began_unix_ns
                    .saturating_sub(index.run.head.began_unix_ns);
                Some((
                    number(series.median()? as f64 / per_unit)?,
                    since / 1_000_000,
                ))
            })
            .unzip();
        if is_main(row) && !of_launches.is_empty() {
            medians.push(LaunchMedians {
                cell: row.cell.clone(),
                quantity: row.quantity,
                phase,
                step: row.step,
                medians: of_launches,
                began_ms,
            });
        }
        let samples: u64 = launches.iter().map(|(_, series)| series.count()).sum();
        if is_main(row) && samples >= SAMPLES_FOR_SHAPE {
            let mut all = Series::new();
            launches.iter().for_each(|(_, series)| all.merge(series));
            shapes.push((row, phase, all));
        }
    }
    let each = (ALL_BUCKETS_MAX / shapes.len().max(1)).clamp(4, BUCKETS_MAX);
    let distributions = shapes
        .into_iter()
        .map(|(row, phase, all)| {
            let per_unit = row.quantity.per_unit() as f64;
            Distribution {
                cell: row.cell.clone(),
                quantity: row.quantity,
                phase,
                step: row.step,
                buckets: merged(&all.buckets(), each)
                    .into_iter()
                    .filter_map(|(value, count)| Some((number(value as f64 / per_unit)?, count)))
                    .collect(),
            }
        })
        .collect();
    (distributions, medians)
}

/// At most `most` buckets of about the same width on a logarithmic axis; each keeps the largest value that it counts.
fn merged(buckets: &[(u64, u64)], most: usize) -> Vec<(u64, u64)> {
    let (Some((low, _)), Some((high, _))) = (buckets.first(), buckets.last()) else {
        return Vec::new();
    };
    if buckets.len() <= most {
        return buckets.to_vec();
    }
    let log = |value: u64| (value.max(1) as f64).ln();
    let width = (log(*high) - log(*low)) / most as f64;
    let mut all: Vec<(usize, u64, u64)> = Vec::with_capacity(most);
    for (value, samples) in buckets {
        let place = (((log(*value) - log(*low)) / width) as usize).min(most - 1);
        match all.last_mut() {
            Some((last, largest, sum)) if *last == place => {
                *largest = *value;
                *sum += samples;
            }
            _ => all.push((place, *value, *samples)),
        }
    }
    all.into_iter()
        .map(|(_, value, samples)| (value, samples))
        .collect()
}

/// What held for the whole run.
fn conditions(index: &Index<'_>) -> Vec<(String, String)> {
    let run = index.run;
    let head = &run.head;
    let mut all = vec![
        ("command".to_string(), head.command.clone()),
        ("sonde".into(), head.version.clone()),
        ("began".into(), format!("{} UTC", utc(head.began_unix_ns))),
    ];
    if let Some(ended) = head.ended_unix_ns {
        let took = ended.saturating_sub(head.began_unix_ns);
        all.push(("took".into(), time(took as f64)));
    }
    all.push(("seed".into(), head.seed.to_string()));
    let mut distinct = |name: &str, values: Vec<Option<String>>| {
        let mut seen: Vec<String> = Vec::new();
        for value in values.into_iter().flatten() {
            if !value.is_empty() && !seen.contains(&value) {
                seen.push(value);
            }
        }
        if !seen.is_empty() {
            all.push((name.into(), seen.join(", ")));
        }
    };
    let factors = |of: fn(&sonde_measure::Factors) -> Option<String>| {
        run.cells.iter().map(|cell| of(&cell.factors)).collect()
    };
    let facts = |of: fn(&HostRecord) -> Option<String>| run.hosts.iter().map(of).collect();
    distinct(
        "hosts",
        vec![(!run.hosts.is_empty()).then(|| run.hosts.len().to_string())],
    );
    distinct("profile", factors(|of| of.profile.clone()));
    distinct("load", factors(|of| of.load.clone()));
    distinct("attachment", factors(|of| of.attachment.clone()));
    distinct("kernel", facts(|host| Some(host.facts.kernel.clone())));
    distinct("cpu", facts(|host| host.facts.cpu.clone()));
    distinct(
        "cpus",
        facts(|host| Some(host.facts.cpus.to_string()).filter(|_| host.facts.cpus > 0)),
    );
    distinct(
        "memory",
        facts(|host| {
            host.facts
                .memory_bytes
                .map(|bytes| format!("{} MiB", count(bytes >> 20)))
        }),
    );
    distinct(
        "this machine before",
        facts(|host| host.facts.noise.as_ref().map(Noise::state)),
    );
    distinct("clock", facts(|host| host.facts.clock_source.clone()));
    distinct(
        "reading the clock",
        facts(|host| host.facts.clock_read_ns.map(|ns| format!("{ns} ns"))),
    );
    let clocks = run.hosts.iter().filter_map(|host| host.clock);
    distinct(
        "clocks agree within",
        vec![
            clocks
                .map(|clock| clock.bound_ns)
                .max()
                .map(|ns| time(ns as f64)),
        ],
    );
    let launches = run.repetitions().count() as u64;
    distinct("repetitions of cells", vec![Some(count(launches))]);
    all
}

fn interference(index: &Index<'_>) -> Vec<InterferenceRow> {
    #[derive(Default)]
    struct Sums {
        all: Interference,
        busy: Vec<f64>,
    }
    // The flows of a pattern began together, and met the same: they count once.
    let mut launches = BTreeMap::new();
    // Of both waits together.
    type Key<'k> = (Line, &'k str);
    let mut order: Vec<Key<'_>> = Vec::new();
    for cell in &index.run.cells {
        let factors = &cell.factors;
        let line = factors.line().without(&[LineField::Wait]);
        let key: Key<'_> = (line, factors.probe.as_str());
        if !order.contains(&key) {
            order.push(key.clone());
        }
        for launch in index.launches(&cell.id) {
            let one = (
                key.clone(),
                factors.mode.as_deref(),
                factors.wait.as_deref(),
                launch.began_unix_ns,
            );
            launches.entry(one).or_insert(&launch.interference);
        }
    }
    let mut sums: BTreeMap<Key<'_>, Sums> = BTreeMap::new();
    for ((key, ..), hosts) in launches {
        let sum = sums.entry(key).or_default();
        hosts.iter().for_each(|at| sum.all.add(at));
        sum.busy
            .extend(hosts.iter().filter_map(busy).max_by(f64::total_cmp));
    }
    order
        .into_iter()
        .filter_map(|key| {
            let sum = sums.remove(&key)?;
            let (line, probe) = key;
            Some(InterferenceRow {
                network: line.network,
                path: line.path,
                probe: probe.into(),
                method: line.method,
                knobs: line.knobs,
                load: line.load,
                involuntary_switches: sum.all.involuntary_switches,
                steal_ns: sum.all.steal_ns,
                retransmits: sum.all.retransmits,
                cpu_busy_share: median(sum.busy).and_then(number),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, all_pairs, assessment, net};
    use serde_json::Value;

    fn nulls_only(value: &Value, at: &str) {
        match value {
            Value::Array(all) => all.iter().for_each(|one| nulls_only(one, at)),
            Value::Object(all) => all
                .iter()
                .for_each(|(name, one)| nulls_only(one, &format!("{at}.{name}"))),
            Value::String(text) => assert!(
                !text.contains("NaN") && !text.contains("inf "),
                "{at}: {text}"
            ),
            _ => {}
        }
    }

    #[test]
    fn flows_that_are_too_many_for_a_page_are_left_out() {
        let few = View::of(&all_pairs(6));
        assert_eq!((few.results.len(), few.left_out.len()), (30, 0));
        let run = all_pairs(72);
        let many = View::of(&run);
        assert_eq!((many.results.len(), many.launch_medians.len()), (0, 0));
        assert!(
            many.left_out[0].starts_with("5112 rows"),
            "{:?}",
            many.left_out
        );
        let heat = many.heat.as_ref().unwrap();
        let told = heat.maps[0].values.iter().flatten().count();
        assert_eq!((heat.share, told), (1, 72 * 71));
        let bytes = serde_json::to_string(&many).unwrap().len();
        assert!(bytes < 200_000, "{bytes} bytes");
    }

    #[test]
    fn the_usual_assessment_is_light() {
        let run = assessment();
        assert!(run.cells.len() >= 150, "{}", run.cells.len());
        let view = View::of(&run);
        let text = serde_json::to_string(&view).unwrap();
        assert!(text.len() < 720_000, "{} bytes", text.len());
        let most = view
            .distributions
            .iter()
            .map(|one| one.buckets.len())
            .max()
            .unwrap();
        assert!((16..=BUCKETS_MAX).contains(&most), "{most}");
        let back: View = serde_json::from_str(&text).unwrap();
        assert_eq!(back, view);
    }

    #[test]
    fn buckets_keep_their_samples() {
        let series: Series = (0..50_000u64).map(|n| 1_000 + n * n % 900_001).collect();
        let buckets = merged(&series.buckets(), 64);
        assert!(buckets.len() <= 64 && buckets.len() > 32);
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 50_000);
        assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(
            buckets.last().unwrap().0,
            series.buckets().last().unwrap().0
        );
        assert_eq!(merged(&[], 64), []);
        assert_eq!(merged(&[(0, 3)], 64), [(0, 3)]);
    }

    #[test]
    fn medians_are_thinned_evenly() {
        let of = |at: usize| LaunchMedians {
            cell: at.to_string(),
            quantity: Quantity::LatencyNs,
            phase: Phase::Warm,
            step: None,
            medians: vec![Number(1.0)],
            began_ms: vec![0],
        };
        let mut few: Vec<LaunchMedians> = (0..MEDIANS_MAX).map(of).collect();
        assert_eq!(thin(&mut few), None);
        assert_eq!(few.len(), MEDIANS_MAX);
        let mut many: Vec<LaunchMedians> = (0..5_000).map(of).collect();
        let said = thin(&mut many).unwrap();
        let wanted = format!("of {} of {} rows", count(1_667), count(5_000));
        assert!(said.contains(&wanted), "{said}");
        let cells: Vec<&str> = many.iter().map(|one| one.cell.as_str()).collect();
        assert_eq!((cells.len(), cells[1], cells[1_666]), (1_667, "3", "4998"));
    }

    #[test]
    fn nothing_is_nan() {
        let zeros = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 1, 0)
            .stream("wire", "tcp", 0)
            .startup("wire", "tcp", 1, None, 0)
            .message("wire", "tcp", 1_024, 0)
            .failed_cell("wire", "udp", "h2 is gone")
            .done();
        for run in [Runs::new().done(), zeros] {
            let view = View::of(&run);
            let value = serde_json::to_value(&view).unwrap();
            nulls_only(&value, "view");
            assert_eq!(value["schema"], "sonde-view/1");
            for name in "run hosts networks results distributions launch_medians fits findings conditions interference \
                warnings events"
                .split_whitespace()
            {
                assert!(value.get(name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn a_launch_of_many_sizes_counts_once() {
        let run = Runs::new()
            .network(net("wire"))
            .disturbed(|at| {
                at.involuntary_switches = 1;
                at.cpus = 2;
                at.span_ns = 1_000_000_000;
                at.host_cpu_ns = Some(500_000_000);
            })
            .together()
            .latency("wire", "tcp", 1, 10_000)
            .latency("wire", "tcp", 64, 10_000)
            .done();
        let view = View::of(&run);
        assert_eq!(view.interference.len(), 1);
        let row = &view.interference[0];
        // Six launches, two hosts.
        assert_eq!(row.involuntary_switches, 12);
        assert_eq!(
            (row.steal_ns, row.cpu_busy_share),
            (None, Some(Number(0.25)))
        );
    }
}
