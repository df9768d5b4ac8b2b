//! Libraries beside sockets, PVM's routes beside each other, and what adapters and the native engine cost.
//!
//! Model:   three measurements. The plan of the published figure: on each network and at each size the interval of PVM's
//!          direct route must lie below that of its default route. The ping-pong of the native engine beside the MPIs, by
//!          turns: no slower at 8 B, and at 1 and 16 MiB no less. Each adapter beside 30 lines of C over the same library,
//!          by turns: no more than 5 % or 30 ns above, whichever is more. PVM's tasks there run under a daemon that is
//!          started for it and halted afterwards.
//! Source:  requirements N17, N18, N36, U2, U39.
//! Units:   microseconds of half a round trip; nanoseconds and MB/s where the examples print them.
//! Checked: `routes_are_paired`, `outputs_are_read`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::prove::own::document;
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof};

const PLAN: &str = "plans/papers/libraries.toml";
const DEFAULT: &str = "pvm:default";
const DIRECT: &str = "pvm:direct";
/// In the order of the figure.
const PATHS: [&str; 7] = [
    "tcp",
    "udp",
    "native:tcp",
    DEFAULT,
    DIRECT,
    "openmpi:tcp",
    "mpich:tcp",
];
const ADAPTED: [&str; 4] = ["openmpi", "mpich", DEFAULT, DIRECT];
/// What an adapter may cost: this share of the library's own time, or so many nanoseconds.
const OVERHEAD: f64 = 0.05;
const OVERHEAD_NS: f64 = 30.0;

/// A median with its interval, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    p50: f64,
    ci95: Option<(f64, f64)>,
}

/// One size on one network, by each of [`PATHS`].
#[derive(Debug, Clone, PartialEq)]
struct Point {
    network: String,
    size_bytes: u64,
    by: [Option<Figure>; PATHS.len()],
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut unmet = Vec::new();
    let points = points(&document(ground, &["assess", PLAN])?)?;
    let mut curves = Table::new(&[&["network", "bytes"][..], &PATHS].concat());
    for point in &points {
        let mut cells = vec![point.network.clone(), point.size_bytes.to_string()];
        cells.extend(point.by.iter().map(|one| one.map_or("–".into(), median)));
        curves.row(cells);
    }
    let tables = vec![
        curves,
        routes(&points, &mut unmet),
        engine(ground, &mut unmet)?,
        overhead(ground, &mut unmet)?,
    ];
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("library"), ground.runs),
        note: format!(
            "First table: `sonde assess {PLAN}`, half a round trip in µs, medians; MPI waits by polling, all else asleep. Second: PVM's two routes in it, with the 95 % intervals over the launches; they must be apart at every size. Third: `crates/message/examples/pingpong.sh {}`, within this machine, all polling; below 1 is better at 8 B, above 1 elsewhere. Fourth: `cargo run --release -p sonde-adapter --example overhead`, 8 B within this machine beside a program in C over the same library, at most {:.0} % or {OVERHEAD_NS:.0} ns above.",
            ground.runs,
            OVERHEAD * 100.0
        ),
        tables,
        unmet,
    })
}

fn median(figure: Figure) -> String {
    micros(figure.p50)
}

fn micros(ns: f64) -> String {
    format!("{:.1}", ns / 1e3)
}

/// Warm latencies, by network and size in the rows' order.
fn points(document: &Value) -> Result<Vec<Point>> {
    let rows = document["results"].as_array().context("no results")?;
    let mut all: Vec<Point> = Vec::new();
    for row in rows {
        let place = PATHS.iter().position(|path| row["path"] == *path);
        let is_warm = row["quantity"] == "latency_ns"
            && row["phase"] == "warm"
            && !row["knobs"]
                .as_object()
                .is_some_and(|knobs| knobs.contains_key("reference"));
        let (Some(place), true) = (place, is_warm) else {
            continue;
        };
        let network = row["network"].as_str().context("a row without a network")?;
        let size_bytes = row["size_bytes"].as_u64().context("a row without a size")?;
        let same = |point: &Point| point.network == network && point.size_bytes == size_bytes;
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(Point {
                network: network.into(),
                size_bytes,
                by: [None; PATHS.len()],
            });
            all.len() - 1
        });
        // A transport waits asleep here; where it was polled too, that is another row.
        if row["wait"] == "poll" && PATHS[place] == "tcp" {
            continue;
        }
        all[at].by[place] = row["p50"].as_f64().map(|p50| Figure {
            p50,
            ci95: row["ci95_low"].as_f64().zip(row["ci95_high"].as_f64()),
        });
    }
    let networks: Vec<String> = all.iter().map(|point| point.network.clone()).collect();
    let rank = |point: &Point| networks.iter().position(|name| *name == point.network);
    all.sort_by_key(|point| (rank(point), point.size_bytes));
    if all.is_empty() {
        bail!("no latency was measured");
    }
    Ok(all)
}

/// Both routes of PVM at each size, and whether the direct one is surely the faster.
fn routes(points: &[Point], unmet: &mut Vec<String>) -> Table {
    let mut table = Table::new(&[
        "network",
        "bytes",
        "default, µs",
        "95 %",
        "direct, µs",
        "95 %",
        "direct / default",
        "verdict",
    ]);
    let place = |path: &str| PATHS.iter().position(|one| *one == path).unwrap_or(0);
    for point in points {
        let size = point.size_bytes.to_string();
        let (by_daemons, direct) = (point.by[place(DEFAULT)], point.by[place(DIRECT)]);
        let Some((by_daemons, direct)) = by_daemons.zip(direct) else {
            unmet.push(format!(
                "{} B on {}: not both routes were measured",
                size, point.network
            ));
            continue;
        };
        let apart =
            matches!((by_daemons.ci95, direct.ci95), (Some(slow), Some(fast)) if fast.1 < slow.0);
        if !apart {
            unmet.push(format!(
                "{size} B on {}: the direct route's interval does not lie below the default route's",
                point.network
            ));
        }
        let interval = |figure: Figure| {
            figure.ci95.map_or("–".into(), |(low, high)| {
                format!("{} to {}", micros(low), micros(high))
            })
        };
        table.row(vec![
            point.network.clone(),
            size,
            median(by_daemons),
            interval(by_daemons),
            median(direct),
            interval(direct),
            format!("{:.3}", direct.p50 / by_daemons.p50),
            verdict(apart),
        ]);
    }
    table
}

/// The native engine beside the MPIs.
fn engine(ground: &Ground, unmet: &mut Vec<String>) -> Result<Table> {
    let script = ground.root.join("crates/message/examples/pingpong.sh");
    let runs = ground.runs.to_string();
    let said = printed(Command::new(script).arg(runs).current_dir(&ground.root))?;
    let mut table = Table::new(&["path", "8 B", "1 MiB", "16 MiB", "verdict"]);
    for line in engine_lines(&said) {
        let met = line.is_ratio.then(|| {
            let [small, large, largest] = line.figures;
            small <= 1.0 && large >= 1.0 && largest >= 1.0
        });
        if met == Some(false) {
            unmet.push(format!(
                "{}: {:?} at 8 B, 1 MiB, 16 MiB",
                line.name, line.figures
            ));
        }
        let mut cells = vec![line.name];
        cells.extend(line.figures.map(|figure| match line.is_ratio {
            true => format!("{figure:.3}"),
            false => format!("{figure:.0}"),
        }));
        cells.push(met.map_or("–".into(), verdict));
        table.row(cells);
    }
    Ok(table)
}

/// A line of the ping-pong's table.
#[derive(Debug, PartialEq)]
struct EngineLine {
    name: String,
    figures: [f64; 3],
    /// Of the native engine to a library; else nanoseconds and MB/s.
    is_ratio: bool,
}

fn engine_lines(text: &str) -> Vec<EngineLine> {
    let read = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, figures) = words.split_at_checked(words.len().checked_sub(3)?)?;
        let figures: Vec<f64> = figures
            .iter()
            .filter_map(|word| word.parse().ok())
            .collect();
        Some(EngineLine {
            name: name.join(" "),
            is_ratio: name.contains(&"/"),
            figures: figures.try_into().ok()?,
        })
    };
    text.lines().filter_map(read).collect()
}

/// Each adapter beside the library alone.
fn overhead(ground: &Ground, unmet: &mut Vec<String>) -> Result<Table> {
    let mut table = Table::new(&[
        "library",
        "in C, ns",
        "by the adapter, ns",
        "more, ns",
        "ratio",
        "verdict",
    ]);
    let machine = VirtualMachine::start(&ground.scratch);
    for path in ADAPTED {
        let mut command = Command::new("cargo");
        command.args(["run", "-q", "--release", "-p", "sonde-adapter"]);
        command.args(["--example", "overhead", "--", path]);
        command.arg(ground.runs.to_string());
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .current_dir(&ground.root);
        let told = match (&machine, path.starts_with("pvm")) {
            (Err(error), true) => Err(anyhow::anyhow!("no virtual machine of PVM: {error:#}")),
            (Ok(machine), true) => printed(machine.within(&mut command)),
            _ => printed(&mut command),
        };
        let figures =
            told.and_then(|text| overhead_of(&text).with_context(|| format!("reading {text:?}")));
        match figures {
            Err(error) => {
                unmet.push(format!("the adapter of {path}: {error:#}"));
                table.broken(&[path], &error);
            }
            Ok((alone, adapted)) => {
                let met = adapted - alone <= (alone * OVERHEAD).max(OVERHEAD_NS);
                if !met {
                    unmet.push(format!(
                        "the adapter of {path} takes {adapted:.0} ns, the library alone {alone:.0} ns"
                    ));
                }
                table.row(vec![
                    path.into(),
                    format!("{alone:.1}"),
                    format!("{adapted:.1}"),
                    format!("{:+.1}", adapted - alone),
                    format!("{:.3}", adapted / alone),
                    verdict(met),
                ]);
            }
        }
    }
    Ok(table)
}

/// The medians in C and by the adapter.
fn overhead_of(text: &str) -> Option<(f64, f64)> {
    let median = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name))?;
        let (_, rest) = line.split_once("median ")?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Some((median("C ")?, median("adapter ")?))
}

/// What a program printed.
fn printed(command: &mut Command) -> Result<String> {
    let output = ended(command)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn ended(command: &mut Command) -> Result<Output> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {}", output.status, said.trim());
    }
    Ok(output)
}

/// A daemon of PVM on this machine alone, halted when dropped.
struct VirtualMachine {
    /// Its sockets and its log.
    folder: PathBuf,
}

impl VirtualMachine {
    fn start(scratch: &Path) -> Result<Self> {
        let machine = Self {
            folder: scratch.join("pvm"),
        };
        std::fs::create_dir_all(&machine.folder)?;
        machine.console("conf")?;
        Ok(machine)
    }

    /// The program sees this machine, and no other's.
    fn within<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let name = format!("prove{}", std::process::id());
        command
            .env("PVM_ROOT", "/usr/lib/pvm3")
            .env("PVM_ALLOW_ROOT", "1")
            .env("PVM_VMID", name)
            .env("PVM_TMP", &self.folder)
    }

    /// One command of the console, which starts the daemon where there is none.
    fn console(&self, word: &str) -> Result<()> {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo \"$0\" | timeout 20 pvm", word]);
        let output = self.within(&mut shell).stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        if word == "conf" && !said.contains("1 host") {
            bail!(
                "`pvm` has not started: {said}{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(())
    }
}

impl Drop for VirtualMachine {
    fn drop(&mut self) {
        drop(self.console("halt"));
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_paired() {
        let row = |network: &str, path: &str, size: u64, p50: u64, half: u64| {
            serde_json::json!({"network": network, "path": path, "wait": "block", "size_bytes": size, "knobs": {},
                "quantity": "latency_ns", "phase": "warm", "p50": p50, "ci95_low": p50 - half, "ci95_high": p50 + half})
        };
        let rows = [
            row("fddi", DEFAULT, 4096, 900_000, 90_000),
            row("fddi", DIRECT, 4096, 800_000, 90_000),
            row("fddi", DEFAULT, 1, 100_000, 1_000),
            row("fddi", DIRECT, 1, 50_000, 1_000),
            row("atm", DEFAULT, 1, 100_000, 1_000),
        ];
        let points = points(&serde_json::json!({ "results": rows })).unwrap();
        let order: Vec<_> = points
            .iter()
            .map(|point| (point.network.as_str(), point.size_bytes))
            .collect();
        assert_eq!(order, [("fddi", 1), ("fddi", 4096), ("atm", 1)]);
        let mut unmet = Vec::new();
        let text = routes(&points, &mut unmet).to_string();
        assert!(
            text.contains(
                "| fddi | 1 | 100.0 | 99.0 to 101.0 | 50.0 | 49.0 to 51.0 | 0.500 | met |"
            ),
            "{text}"
        );
        assert!(text.contains("| 0.889 | **not met** |"), "{text}");
        assert_eq!(unmet.len(), 2, "{unmet:?}");
        assert!(unmet[1].contains("1 B on atm"), "{unmet:?}");
    }

    #[test]
    fn outputs_are_read() {
        let said = "path  8 B, ns  1 MiB, MB/s  16 MiB, MB/s\nnative:shm 150 9000 8000\nmpich:sm 1 - 2\n\
                    native:shm / openmpi:sm  0.9 1.1 1.2\n";
        let lines = engine_lines(said);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(!lines[0].is_ratio && lines[1].is_ratio);
        assert_eq!(lines[1].name, "native:shm / openmpi:sm");
        assert!((lines[1].figures[2] - 1.2).abs() < 1e-9);
        let said = "openmpi, 8 B, half a round trip, 11 launches of each in turn:\n  C        median 200.5 ns, least 190.0 ns\n  \
                    adapter  median 210.0 ns, least 195.0 ns\n  more:    median +9.5 ns (1.047), least +5.0 ns (1.026)\n";
        let (alone, adapted) = overhead_of(said).unwrap();
        assert!((alone - 200.5).abs() < 1e-9 && (adapted - 210.0).abs() < 1e-9);
        assert_eq!(overhead_of("nothing"), None);
    }
}
