//! The eight kernels of class A on one and two ranks of this machine, beside the benchmark's own programs where they are given.
//!
//! Model:   a round runs each kernel once by each contestant, one after the other: by sonde's own engine (alone on one rank), by
//!          Open MPI, and the benchmark's program by the same Open MPI; every second round goes backwards. Each tells its own
//!          rate, and a ratio is of two rates of the same round. The geometric mean is of a round's ratios. `sp` and `bt` take
//!          a square of ranks, so that two are for six kernels.
//! Source:  NPB 3.4.3 for the programs' names (`ep.A.x`) and for what they print. sonde's kernels are NPB-verified; they give no
//!          NPB results.
//! Units:   Mop/s as the benchmark counts operations.
//! Checked: `a_rate_is_read_from_a_block`, `means_are_of_whole_rounds`, `rows_have_their_verdicts`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::prove::rounds::{interval, range};
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof, median};

const KERNELS: [&str; 8] = ["ep", "cg", "mg", "ft", "is", "lu", "sp", "bt"];
/// Those that take two ranks.
const TWO: usize = 6;
const MEAN_LEAST: f64 = 1.2;
const EACH_LEAST: f64 = 1.0;
/// After so many seconds a program of the benchmark is ended.
const TIMEOUT: &str = "600";
const HEADS: [&str; 10] = [
    "kernel",
    "ranks",
    "path",
    "sonde, Mop/s",
    "benchmark, Mop/s",
    "ratio",
    "95 % interval",
    "lowest to highest",
    "bound",
    "verdict",
];

/// Who runs a kernel, and on how many ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    ranks: usize,
    by: By,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    /// sonde by this path, whose ranks wait for each other so.
    Sonde {
        path: &'static str,
        wait: &'static str,
    },
    /// The benchmark's program.
    Benchmark,
}

const ALONE: Way = sonde(1, "native:shm", "block");
const SHARED: Way = sonde(2, "native:shm", "block");
const POLLING: Way = sonde(2, "native:shm", "poll");
const LIBRARY: Way = sonde(2, "openmpi", "block");
const OURS: [Way; 4] = [ALONE, SHARED, POLLING, LIBRARY];
/// In the order of a round.
const WAYS: [Way; 6] = [ALONE, benchmark(1), SHARED, POLLING, LIBRARY, benchmark(2)];

const fn sonde(ranks: usize, path: &'static str, wait: &'static str) -> Way {
    let by = By::Sonde { path, wait };
    Way { ranks, by }
}

const fn benchmark(ranks: usize) -> Way {
    let by = By::Benchmark;
    Way { ranks, by }
}

impl Way {
    fn is_polling(self) -> bool {
        matches!(self.by, By::Sonde { wait: "poll", .. })
    }

    /// As a row names it.
    fn name(self) -> String {
        match self.by {
            _ if self == ALONE => "alone".into(),
            By::Sonde { path, .. } if self.is_polling() => format!("{path}, `--wait poll`"),
            By::Sonde { path, .. } => path.into(),
            By::Benchmark => "the benchmark".into(),
        }
    }
}

/// What came out of one kernel by one way, round by round.
struct Series {
    kernel: &'static str,
    way: Way,
    /// Mop/s.
    rates: Vec<f64>,
    /// Why it takes no turn any more.
    broken: Option<anyhow::Error>,
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let reference = ground.reference.as_deref();
    let mut all = contestants(|kernel| reference.is_some_and(|dir| program(dir, kernel).is_file()));
    for round in 1..=ground.runs {
        // Figures of one kernel are next to each other in time.
        let order: Vec<usize> = if round % 2 == 1 {
            (0..all.len()).collect()
        } else {
            (0..all.len()).rev().collect()
        };
        for index in order {
            turn(ground, round, &mut all[index]);
        }
    }
    let mut unmet = Vec::new();
    let mut tables = vec![against(&all, &mut unmet), apart(&all)];
    if reference.is_none() {
        tables.remove(0);
        unmet.push("the benchmark's programs were not given: --reference DIR with ep.A.x, cg.A.x, … of NPB 3.4.3, built by mpif90.openmpi".into());
    }
    for series in &all {
        if let Some(error) = &series.broken {
            let (kernel, ranks, way) = (series.kernel, series.way.ranks, series.way.name());
            unmet.push(format!("{kernel} on {ranks}, {way}: {error:#}"));
        }
    }
    let given = reference.map_or(String::new(), |_| " --reference DIR".into());
    Ok(Proof {
        command: format!("{} --runs {}{given}", Ground::retry("kernels"), ground.runs),
        note: format!(
            "`sonde npb KERNEL --class A --ranks 1|2 --path native:shm|openmpi` (ranks that wait for each other sleep; with `--wait poll` they do not, as Open MPI's do not) and the benchmark's MPI programs by `mpirun.openmpi --bind-to none`, in turns, {} rounds; medians of what each prints, in Mop/s. Ratios are of rates of the same round. `sp` and `bt` take a square of ranks.",
            ground.runs
        ),
        tables,
        unmet,
    })
}

/// All that take their turns; those of the benchmark where its program is there.
fn contestants(is_there: impl Fn(&str) -> bool) -> Vec<Series> {
    let mut all = Vec::new();
    for (place, kernel) in KERNELS.into_iter().enumerate() {
        for way in WAYS {
            let is_wanted = way.by != By::Benchmark || is_there(kernel);
            if is_wanted && (way.ranks == 1 || place < TWO) {
                all.push(Series {
                    kernel,
                    way,
                    rates: Vec::new(),
                    broken: None,
                });
            }
        }
    }
    all
}

fn program(dir: &Path, kernel: &str) -> std::path::PathBuf {
    dir.join(format!("{kernel}.A.x"))
}

/// One run, and a second one where it fails.
fn turn(ground: &Ground, round: usize, series: &mut Series) {
    if series.broken.is_some() {
        return;
    }
    let (kernel, ranks, way) = (series.kernel, series.way.ranks, series.way.name());
    match run(ground, kernel, series.way).or_else(|_| run(ground, kernel, series.way)) {
        Ok(rate) => {
            let runs = ground.runs;
            eprintln!("prove kernels: {round}/{runs} {kernel} on {ranks}, {way}: {rate:.1} Mop/s");
            series.rates.push(rate);
        }
        Err(error) => {
            eprintln!("prove kernels: {kernel} on {ranks}, {way} failed: {error:#}");
            series.broken = Some(error);
        }
    }
}

/// Its rate, Mop/s.
fn run(ground: &Ground, kernel: &str, way: Way) -> Result<f64> {
    let ranks = way.ranks.to_string();
    let mut command = match way.by {
        By::Sonde { path, wait } => {
            let mut command = Command::new(&ground.sonde);
            command.args(["npb", kernel, "--class", "A", "--ranks", &ranks]);
            command.args(["--path", path, "--wait", wait, "--out"]);
            command.arg(ground.scratch.join("runs"));
            command
        }
        By::Benchmark => {
            let dir = ground.reference.as_deref().context("no --reference")?;
            let mut command = Command::new("timeout");
            command.args([TIMEOUT, "mpirun.openmpi", "--allow-run-as-root"]);
            command.args(["--oversubscribe", "--bind-to", "none", "-np", &ranks]);
            command.arg(program(dir, kernel)).current_dir(dir);
            command
        }
    };
    let output = command
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    rate(&said).with_context(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        let last: Vec<_> = why.lines().rev().take(2).collect();
        format!("{command:?} ended with {}: {last:?}", output.status)
    })
}

/// Of the block that the benchmark prints, and sonde too.
fn rate(text: &str) -> Result<f64> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(head, _)| head.trim() == name);
        found.map(|(_, value)| value.trim())
    };
    if let Some(word @ "UNSUCCESSFUL") = value("Verification") {
        bail!("the verification was {word}");
    }
    let rate = value("Mop/s total").context("no `Mop/s total` was printed")?;
    let rate: f64 = rate.parse().with_context(|| format!("Mop/s of {rate}"))?;
    if rate.is_finite() && rate > 0.0 {
        return Ok(rate);
    }
    bail!("Mop/s of {rate}")
}

fn series<'a>(all: &'a [Series], kernel: &str, way: Way) -> Option<&'a Series> {
    let mut found = all.iter();
    found.find(|one| one.kernel == kernel && one.way == way && !one.rates.is_empty())
}

/// Ratios within rounds.
fn ratios(ours: &Series, theirs: &Series) -> Vec<f64> {
    let both = ours.rates.iter().zip(&theirs.rates);
    both.map(|(ours, theirs)| ours / theirs).collect()
}

/// Of each round that has all of them.
fn geometric_means(ratios: &[Vec<f64>]) -> Vec<f64> {
    let rounds = ratios.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |round: usize| {
        let logarithms: f64 = ratios.iter().map(|one| one[round].ln()).sum();
        (logarithms / ratios.len() as f64).exp()
    };
    (0..rounds).map(mean).collect()
}

/// Ours beside the benchmark's.
fn against(all: &[Series], unmet: &mut Vec<String>) -> Table {
    let mut table = Table::new(&HEADS);
    for ours in OURS {
        let ranks = ours.ranks;
        // Others are beside it; the promise is of sonde's own engine as it is usually called.
        let is_judged = ours == ALONE || ours == SHARED;
        let path = &*ours.name();
        let mut every = Vec::new();
        let kernels = if ranks == 1 { KERNELS.len() } else { TWO };
        for kernel in &KERNELS[..kernels] {
            let pair = series(all, kernel, ours).zip(series(all, kernel, benchmark(ranks)));
            let head = [kernel, &*ranks.to_string(), path].map(str::to_owned);
            let Some((mine, theirs)) = pair else {
                table.broken(&[kernel, &head[1], path], &anyhow::anyhow!("not there"));
                if is_judged {
                    unmet.push(format!("{kernel} on {ranks}: there is no pair of figures"));
                }
                continue;
            };
            let ratios = ratios(mine, theirs);
            let rates = [mine, theirs].map(|one| format!("{:.0}", median(one.rates.clone())));
            let bound = is_judged.then_some(EACH_LEAST);
            row(&mut table, unmet, (head, rates), &ratios, bound);
            every.push(ratios);
        }
        let means = geometric_means(&every);
        if !means.is_empty() {
            let head = ["geometric mean", &*ranks.to_string(), path].map(str::to_owned);
            let bound = is_judged.then_some(MEAN_LEAST);
            let rates = ["–", "–"].map(str::to_owned);
            row(&mut table, unmet, (head, rates), &means, bound);
        }
    }
    table
}

fn row(
    table: &mut Table,
    unmet: &mut Vec<String>,
    (head, rates): ([String; 3], [String; 2]),
    ratios: &[f64],
    bound: Option<f64>,
) {
    let ratio = median(ratios.to_vec());
    let said = bound.map_or_else(|| "–".into(), |least| verdict(ratio >= least));
    if let Some(least) = bound.filter(|least| ratio < *least) {
        let [kernel, ranks, path] = &head;
        unmet.push(format!(
            "{kernel} on {ranks}, {path}: {ratio:.2} of the benchmark's rate, at least {least}"
        ));
    }
    let mut cells: Vec<String> = head.into_iter().chain(rates).collect();
    cells.extend([
        format!("{ratio:.2}"),
        within(ratios),
        range(ratios),
        bound.map_or_else(|| "–".into(), |least| format!("at least {least}")),
        said,
    ]);
    table.row(cells);
}

/// The interval of the median; a dash of too few.
fn within(values: &[f64]) -> String {
    interval(values).map_or("–".into(), |(low, high)| format!("{low:.2} to {high:.2}"))
}

/// Ours alone: what the second rank brings, and what the library changes.
fn apart(all: &[Series]) -> Table {
    let mut table = Table::new(&[
        "kernel",
        "one rank, Mop/s",
        "two, native:shm",
        "speed-up",
        "95 % interval",
        "two, native:shm, `--wait poll`",
        "speed-up",
        "95 % interval",
        "two, openmpi",
        "speed-up",
        "95 % interval",
    ]);
    for kernel in KERNELS {
        let Some(alone) = series(all, kernel, ALONE) else {
            table.broken(&[kernel], &anyhow::anyhow!("no figures"));
            continue;
        };
        let mut cells = vec![kernel.into(), format!("{:.0}", median(alone.rates.clone()))];
        for way in [SHARED, POLLING, LIBRARY] {
            let Some(two) = series(all, kernel, way) else {
                cells.extend(["–", "–", "–"].map(str::to_owned));
                continue;
            };
            let ratios = ratios(two, alone);
            cells.push(format!("{:.0}", median(two.rates.clone())));
            cells.push(format!("{:.2}", median(ratios.clone())));
            cells.push(within(&ratios));
        }
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_from_a_block() {
        let block = " Time in seconds =                     0.79\n Mop/s total     =                  1904.10\n Mop/s/process   =                  1904.10\n Verification    =               SUCCESSFUL\n";
        assert!((rate(block).unwrap() - 1904.1).abs() < 1e-9);
        for (wrong, why) in [
            (
                &*block.replace("  SUCCESSFUL", "UNSUCCESSFUL"),
                "verification",
            ),
            (&*block.replace("1904.10", "0.0"), "Mop/s of 0"),
            (&*block.replace("1904.10", "NaN"), "Mop/s of NaN"),
            (&*block.replace("1904.10", "******"), "Mop/s of ***"),
            ("mpirun was unable to find it\n", "Mop/s total"),
        ] {
            let said = format!("{:#}", rate(wrong).unwrap_err());
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn means_are_of_whole_rounds() {
        let means = geometric_means(&[vec![1.0, 2.0, 9.0], vec![4.0, 8.0]]);
        assert_eq!(means.len(), 2);
        assert!((means[0] - 2.0).abs() < 1e-12 && (means[1] - 4.0).abs() < 1e-12);
        assert!(geometric_means(&[]).is_empty());
    }

    #[test]
    fn rows_have_their_verdicts() {
        let mut all = contestants(|kernel| kernel != "bt");
        assert_eq!(all.len(), 6 * 6 + 2 + 1, "sp and bt on one rank only");
        for one in &mut all {
            // 1.1 times the benchmark, and `is` on two ranks half of it.
            let is_slow = one.kernel == "is" && one.way == SHARED;
            let own = if is_slow { 50.0 } else { 110.0 };
            let rate = if one.way.by == By::Benchmark {
                100.0
            } else {
                own
            };
            one.rates = vec![rate; 6];
        }
        let mut unmet = Vec::new();
        let table = against(&all, &mut unmet).to_string();
        let wanted = "| ep | 1 | alone | 110 | 100 | 1.10 | 1.10 to 1.10 | 1.100 to 1.100 | at least 1 | met |";
        assert!(table.contains(wanted), "{table}");
        assert!(
            table.contains("| is | 2 | openmpi | 110 | 100 | 1.10 |"),
            "{table}"
        );
        let starts = [
            "bt on 1:",
            "geometric mean on 1",
            "is on 2, native:shm: 0.50",
            "geometric mean on 2",
        ];
        assert_eq!(unmet.len(), starts.len(), "{unmet:#?}");
        for (what, start) in unmet.iter().zip(starts) {
            assert!(what.starts_with(start), "{what}");
        }
        let own = apart(&all).to_string();
        assert!(own.contains("| is | 110 | 50 | 0.45 |"), "{own}");
        assert!(own.contains("| bt | 110 | – |"), "{own}");
    }
}
