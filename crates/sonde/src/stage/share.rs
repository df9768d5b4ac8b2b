//! Shares of a job's time: its input in, the job itself, its output out, of a stored run.
//!
//! Model:   job time = input + kernel + output, each by the medians of its repetitions. A move of a file takes its bytes over the
//!          throughput of a round. With r the ratio of both moves, added repetition by repetition, to the kernel, the share is
//!          r / (1 + r); so are the ends of the interval of r over repetitions ([`sonde_stats::ratio`]), since r / (1 + r) grows with r.
//! Source:  requirement S48 of the study of an ATM network for parallel computing, H42 of the HIPPI study.
//! Units:   seconds; shares of 1.
//! Checked: `planted_times_become_shares`, `few_repetitions_have_no_interval`, `what_failed_is_said`.

use crate::failure::Failure;
use crate::plan::{Plan, ProbeKind, ProbePlan, size_text};
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::workload;
use sonde_measure::{CellRecord, Factors, Number, Phase, Quantity, Repetition, Run};
use sonde_report::{counted, share, sheet, time};
use sonde_stats::{Series, ratio};
use std::collections::BTreeMap;

/// The knob that says how many programs compute on each host meanwhile.
pub const BUSY: &str = "busy";
/// The bootstrap draws the same each time.
const SEED: u64 = 1;
const SECOND_NS: u64 = 1_000_000_000;

/// A job whose files are moved one way over one network.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Share {
    /// The network, with its knobs.
    pub network: String,
    /// Background traffic; null when idle.
    pub load: Option<String>,
    /// How files are moved: a service of files, or `tcp`, a plain stream.
    pub path: String,
    /// Programs that compute on each host meanwhile.
    pub busy: u64,
    /// The cell of the input; null where none was planned, as of the two that follow.
    pub cell_input: Option<String>,
    /// The cell of the kernel.
    pub cell_kernel: Option<String>,
    /// The cell of the output.
    pub cell_output: Option<String>,
    /// What the input takes: the median of the repetitions' medians, as of the two that follow; null where it has no figure.
    pub input_s: Option<Number>,
    /// What the kernel takes.
    pub kernel_s: Option<Number>,
    /// What the output takes.
    pub output_s: Option<Number>,
    /// What the job takes with both moves; null where one of the three has no figure, as of the share.
    pub job_s: Option<Number>,
    /// The moves' share of it.
    pub share: Option<Number>,
    /// Lower end of its interval at 95 %; null below six repetitions.
    pub low: Option<Number>,
    /// Upper end of its interval at 95 %.
    pub high: Option<Number>,
    /// Repetitions of the fewest of the three.
    pub launches: u64,
    /// Why there is no interval, or no share.
    pub why: Option<String>,
}

/// What a run says of a job's files.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Staging {
    /// The job, as the command line has it.
    pub job: String,
    /// Bytes that are moved to it.
    pub input_bytes: u64,
    /// Bytes that are moved from it.
    pub output_bytes: u64,
    /// Each network, load, way and number of busy programs, in the order in which they were asked for.
    pub shares: Vec<Share>,
}

/// What is alike in all three parts of a job.
#[derive(PartialEq)]
struct Place<'a> {
    network: &'a str,
    load: Option<&'a str>,
    busy: u64,
}

impl<'a> Place<'a> {
    fn of(factors: &'a Factors) -> Self {
        Self {
            network: &factors.network,
            load: factors.load.as_deref(),
            busy: busy(factors),
        }
    }
}

fn busy(factors: &Factors) -> u64 {
    let value = factors.knobs.get(BUSY);
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn is_kernel(cell: &CellRecord) -> bool {
    cell.factors.probe == ProbeKind::Npb.name()
}

/// Whether a cell is a move of `bytes` by this path; of files, what this does.
fn moves(cell: &CellRecord, path: &str, operation: &str, bytes: u64) -> bool {
    let factors = &cell.factors;
    let does = factors.knobs.get("op").is_none_or(|op| op == operation);
    !is_kernel(cell) && does && factors.path == path && factors.size_bytes == bytes
}

/// What a cell's part takes in each repetition, by its number.
fn times_ns(run: &Run, cell: Option<&CellRecord>) -> BTreeMap<u64, u64> {
    let Some(cell) = cell else {
        return BTreeMap::new();
    };
    let bits = 8 * u128::from(cell.factors.size_bytes);
    let time = |one: Repetition<'_>| {
        let median = |quantity| one.result.samples(quantity, Phase::Warm)?.median();
        let ns = match is_kernel(cell) {
            true => median(Quantity::KernelNs)?,
            false => {
                let bps = u128::from(median(Quantity::ThroughputBps)?);
                let ns = (bits * u128::from(SECOND_NS)).checked_div(bps)?;
                u64::try_from(ns).ok()?
            }
        };
        Some((one.result.index, ns))
    };
    let all = run.repetitions_of(&cell.id);
    all.filter(Repetition::succeeded).filter_map(time).collect()
}

fn middle<'a>(values: impl IntoIterator<Item = &'a u64>) -> Option<u64> {
    values.into_iter().copied().collect::<Series>().median()
}

/// The cells of a job.
struct Parts<'a> {
    input: Option<&'a CellRecord>,
    kernel: Option<&'a CellRecord>,
    output: Option<&'a CellRecord>,
}

impl Parts<'_> {
    /// What they come to.
    fn share(&self, run: &Run, factors: &Factors) -> Share {
        let [input, kernel, output] =
            [self.input, self.kernel, self.output].map(|cell| times_ns(run, cell));
        let both = input
            .iter()
            .filter_map(|(index, input)| Some(input.saturating_add(*output.get(index)?)));
        let both: Vec<u64> = both.collect();
        let alone: Vec<u64> = kernel.values().copied().collect();
        let launches = both.len().min(alone.len()) as u64;
        let known = ratio(&both, &alone, SEED);
        let of_job = middle(&both).zip(middle(&alone).filter(|kernel| *kernel > 0));
        let plain = of_job.map(|(both, kernel)| both as f64 / kernel as f64);
        let share = |ratio: f64| Number(ratio / (1.0 + ratio));
        let seconds = |ns: u64| Number::of(ns, SECOND_NS);
        let id = |cell: Option<&CellRecord>| cell.map(|cell| cell.id.clone());
        Share {
            network: factors.network.clone(),
            load: factors.load.clone(),
            path: factors.path.clone(),
            busy: busy(factors),
            cell_input: id(self.input),
            cell_kernel: id(self.kernel),
            cell_output: id(self.output),
            input_s: middle(input.values()).map(seconds),
            kernel_s: middle(kernel.values()).map(seconds),
            output_s: middle(output.values()).map(seconds),
            job_s: of_job.map(|(both, kernel)| seconds(both.saturating_add(kernel))),
            share: known.map(|known| known.value).or(plain).map(share),
            low: known.map(|known| share(known.low)),
            high: known.map(|known| share(known.high)),
            launches,
            why: match (plain, known) {
                (None, _) => Some(self.why_none(run)),
                (Some(_), None) => Some(format!(
                    "{}: 6 are needed for an interval",
                    counted(launches, "repetition")
                )),
                (Some(_), Some(_)) => None,
            },
        }
    }

    /// Why there is no share.
    fn why_none(&self, run: &Run) -> String {
        for (what, cell) in [
            ("input", self.input),
            ("kernel", self.kernel),
            ("output", self.output),
        ] {
            let Some(cell) = cell else {
                return format!("its {what} was not measured");
            };
            let mut all = run.repetitions_of(&cell.id);
            let skipped = cell.skipped.clone();
            let why = skipped.or_else(|| all.find_map(|one| one.result.failure.clone()));
            if let Some(why) = why {
                return format!("its {what}: {why}");
            }
        }
        "no repetition gave all of its parts".into()
    }
}

impl Staging {
    /// Of a run of this plan, or of what it has so far.
    ///
    /// # Errors
    /// The plan is not one of moves and a job.
    pub fn of(run: &Run, plan: &Plan) -> Result<Self, Failure> {
        let (input_bytes, output_bytes) = sizes(plan)?;
        let (kernels, moved): (Vec<&CellRecord>, Vec<&CellRecord>) =
            run.cells.iter().partition(|cell| is_kernel(cell));
        let mut shares: Vec<Share> = Vec::new();
        for cell in &moved {
            let (place, path) = (Place::of(&cell.factors), cell.factors.path.as_str());
            let is_it = |one: &Share| one.place() == place && one.path == path;
            if shares.iter().any(is_it) {
                continue;
            }
            let is_here = |one: &&CellRecord| Place::of(&one.factors) == place;
            let found = |operation, bytes| {
                let mut here = moved.iter().copied().filter(is_here);
                here.find(|one| moves(one, path, operation, bytes))
            };
            let parts = Parts {
                input: found("read", input_bytes),
                kernel: kernels.iter().copied().find(is_here),
                output: found("write", output_bytes),
            };
            shares.push(parts.share(run, &cell.factors));
        }
        let job = kernels.first().map(|cell| job(&cell.factors));
        Ok(Self {
            job: job.unwrap_or_default(),
            input_bytes,
            output_bytes,
            shares,
        })
    }

    /// The table: a line for each network and way, with what busy hosts make of it beside.
    pub fn text(&self, width: usize) -> String {
        let mut levels: Vec<u64> = self.shares.iter().map(|one| one.busy).collect();
        levels.sort_unstable();
        levels.dedup();
        let (quiet, busy) = levels.split_first().unwrap_or((&0, &[]));
        let heads = [
            "network", "files by", "input", "kernel", "output", "job", "files",
        ];
        let mut heads: Vec<String> = heads.map(str::to_owned).into();
        for level in busy {
            heads.extend([format!("job, {level} busy"), format!("files, {level} busy")]);
        }
        let line = |one: &Share| {
            let mut line = vec![one.on(), one.path.clone()];
            line.extend([one.input_s, one.kernel_s, one.output_s].map(seconds));
            let all = |level: &u64| {
                let is_it = |other: &&Share| {
                    (other.on(), &other.path, other.busy) == (one.on(), &one.path, *level)
                };
                self.shares.iter().find(is_it)
            };
            for level in std::iter::once(quiet).chain(busy) {
                let other = all(level);
                line.push(seconds(other.and_then(|other| other.job_s)));
                line.push(other.map_or_else(|| "-".into(), Share::percent));
            }
            line
        };
        let quiet = self.shares.iter().filter(|one| one.busy == *quiet);
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let table = sheet(&heads, quiet.map(line)).loose().text(width);
        format!(
            "{} with {} of input and {} of output, and the share of files in the job's time\n\n{table}",
            self.job,
            sonde_report::bytes(self.input_bytes),
            sonde_report::bytes(self.output_bytes)
        )
    }

    /// Why there is no interval or no share, each reason once.
    pub fn reasons(&self) -> Vec<String> {
        let of = self.shares.iter();
        let of = of.filter_map(|one| Some((one.name(), one.why.as_deref()?)));
        sonde_report::reasons(self.shares.len(), of)
    }
}

/// Bytes in and out, as the plan has them: files that are read are input, and of two messages the first is.
fn sizes(plan: &Plan) -> Result<(u64, u64), Failure> {
    let of = |operation: &str| {
        let does = |probe: &&ProbePlan| {
            let does = probe.knobs.get("op");
            does.is_some_and(|does| does.iter().any(|one| one == operation))
        };
        plan.probes.iter().find(does)?.size.first()
    };
    let is_message = |probe: &&ProbePlan| probe.kind == ProbeKind::Throughput;
    let messages = plan.probes.iter().find(is_message).map(|probe| &probe.size);
    let input = of("read").or_else(|| messages?.first());
    let output = of("write").or_else(|| messages?.last());
    let (Some(input), Some(output)) = (input, output) else {
        return Err(Failure::usage(
            "no files are moved to a job and from it in this run, which another command made: `sonde report show` shows it",
        ));
    };
    let bytes = |text: &str| size_text(text).map_err(Failure::usage);
    Ok((bytes(input)?, bytes(output)?))
}

/// The job as the command line has it: how busy its hosts are is no part of its name.
fn job(factors: &Factors) -> String {
    let mut factors = factors.clone();
    factors.knobs.remove(BUSY);
    workload::name(&factors)
}

fn seconds(value: Option<Number>) -> String {
    value.map_or_else(|| "-".into(), |value| time(value.0 * SECOND_NS as f64))
}

impl Share {
    fn place(&self) -> Place<'_> {
        Place {
            network: &self.network,
            load: self.load.as_deref(),
            busy: self.busy,
        }
    }

    /// The network, with what is on it.
    fn on(&self) -> String {
        match &self.load {
            Some(load) => format!("{}, load {load}", self.network),
            None => self.network.clone(),
        }
    }

    fn name(&self) -> String {
        let busy = match self.busy {
            0 => String::new(),
            count => format!(" with {count} busy"),
        };
        format!("{} on {}{busy}", self.path, self.on())
    }

    /// The share with its interval.
    fn percent(&self) -> String {
        match (self.share, self.low, self.high) {
            (Some(value), Some(low), Some(high)) => format!(
                "{} ({:.1}-{:.1})",
                share(value.0),
                100.0 * low.0,
                100.0 * high.0
            ),
            (Some(value), ..) => share(value.0),
            _ => "not measured".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::planted::planted;

    const PLAN: &str = r#"
[testbed]
kind = "lab"
[[probe]]
kind = "files"
path = ["nfs2:udp", "ftp"]
size = ["8MiB"]
with.op = ["read"]
with.busy = ["0", "4"]
[[probe]]
kind = "files"
path = ["nfs2:udp", "ftp"]
size = ["2MiB"]
with.op = ["write"]
with.busy = ["0", "4"]
[[probe]]
kind = "throughput"
mode = "message"
size = ["8MiB", "2MiB"]
with.busy = ["0", "4"]
[[probe]]
kind = "npb"
with.kernel = ["lu"]
with.class = ["S"]
with.busy = ["0", "4"]
"#;

    /// What a MiB takes by a path, and what the kernel does, in milliseconds: four busy programs triple the kernel and double the moves.
    fn planted_ms(cell: &CellRecord) -> u64 {
        let (quiet, busier) = match cell.factors.path.as_str() {
            "native:tcp" => (6_000, 3),
            "nfs2:udp" => (400, 2),
            "ftp" => (200, 2),
            _ => (100, 2),
        };
        match busy(&cell.factors) {
            0 => quiet,
            _ => quiet * busier,
        }
    }

    /// A run of the plan with so many repetitions; those of cells that `fails` names failed.
    fn run(launches: u64, fails: impl Fn(&CellRecord) -> bool) -> (Run, Plan) {
        let figure = |cell: &CellRecord, _| {
            let figure = match is_kernel(cell) {
                true => (Quantity::KernelNs, planted_ms(cell) * 1_000_000),
                false => (Quantity::ThroughputBps, (8_000 << 20) / planted_ms(cell)),
            };
            (!fails(cell)).then_some(figure)
        };
        let run = planted(PLAN, &["ethernet-10"], launches, figure);
        (run, Plan::parse(PLAN).unwrap())
    }

    fn of(found: &Staging, path: &str, busy: u64) -> Share {
        let mut all = found.shares.iter();
        let found = all.find(|one| one.path == path && one.busy == busy);
        found.unwrap().clone()
    }

    fn is_near(value: Option<Number>, wanted: f64) {
        let value = value.unwrap().0;
        assert!((value - wanted).abs() < 1e-4, "{value} is not {wanted}");
    }

    #[test]
    fn planted_times_become_shares() {
        let (run, plan) = run(6, |_| false);
        let found = Staging::of(&run, &plan).unwrap();
        assert_eq!(found.shares.len(), 6, "three ways, quiet and busy");
        assert_eq!(
            (&*found.job, found.input_bytes, found.output_bytes),
            ("npb:lu", 8 << 20, 2 << 20)
        );
        // Of 0.4 s a MiB: 3.2 s of input, 6 s of the kernel, 0.8 s of output are 10 s, and 4 s of them are moves.
        let nfs = of(&found, "nfs2:udp", 0);
        is_near(nfs.input_s, 3.2);
        is_near(nfs.kernel_s, 6.0);
        is_near(nfs.output_s, 0.8);
        is_near(nfs.job_s, 10.0);
        for end in [nfs.share, nfs.low, nfs.high] {
            is_near(end, 0.4);
        }
        is_near(of(&found, "ftp", 0).share, 2.0 / 8.0);
        is_near(of(&found, "tcp", 0).share, 1.0 / 7.0);
        // Of four busy programs: 6.4 + 18 + 1.6 s.
        is_near(of(&found, "nfs2:udp", 4).job_s, 26.0);
        is_near(of(&found, "nfs2:udp", 4).share, 8.0 / 26.0);
        assert_eq!(found.reasons(), Vec::<String>::new());
        let text = found.text(200);
        for part in [
            "npb:lu with 8 MiB of input and 2 MiB of output",
            "files, 4 busy",
            "40.0 % (40.0-40.0)",
            "30.8 % (30.8-30.8)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let lines = text.lines().filter(|line| line.contains("ethernet-10"));
        assert_eq!(lines.count(), 3, "one for each way: {text}");
    }

    #[test]
    fn few_repetitions_have_no_interval() {
        let (run, plan) = run(5, |_| false);
        let found = Staging::of(&run, &plan).unwrap();
        let nfs = of(&found, "nfs2:udp", 0);
        is_near(nfs.share, 0.4);
        assert_eq!((nfs.low, nfs.launches), (None, 5));
        assert_eq!(
            found.reasons(),
            ["all: 5 repetitions: 6 are needed for an interval"]
        );
    }

    #[test]
    fn what_failed_is_said() {
        let is_put =
            |cell: &CellRecord| cell.factors.path == "ftp" && cell.factors.size_bytes == 2 << 20;
        let (run, plan) = run(6, is_put);
        let found = Staging::of(&run, &plan).unwrap();
        let ftp = of(&found, "ftp", 0);
        assert_eq!((ftp.share, ftp.output_s, ftp.job_s), (None, None, None));
        is_near(ftp.input_s, 1.6);
        assert_eq!(
            found.reasons(),
            ["ftp on ethernet-10, ftp on ethernet-10 with 4 busy: its output: h2 is gone"]
        );
        assert!(found.text(200).contains("not measured"));
        is_near(of(&found, "tcp", 0).share, 1.0 / 7.0);
        let other = Plan::parse("[[probe]]\nkind = \"latency\"").unwrap();
        let error = Staging::of(&run, &other).unwrap_err().to_string();
        assert!(error.contains("sonde report show"), "{error}");
    }
}
