//! What is told and kept of a machine that is busy before a measurement on it.

use crate::lab::{Case, Process, Stage, eventually, members};
use crate::paired::lab_files::document_of;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sonde_sys::noise::measured;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program on each CPU, in a session of its own, which does nothing but compute; ended when it goes out of scope.
struct Busy(Vec<Child>);

impl Busy {
    fn begin() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let program = |_| {
            let mut command = Command::new("setsid");
            command.args(["sh", "-c", "while :; do :; done"]);
            command.spawn().expect("setsid is of util-linux")
        };
        Self((0..cpus).map(program).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop((child.kill(), child.wait()));
        }
    }
}

/// What is kept of the machine in the run that began last, and what was told.
fn noise_of(stage: &Stage, words: &[&str]) -> (Value, String) {
    let out = stage.path("runs");
    let mut call = stage.sonde(&["probe", "latency", "--testbed", "local", "--out", &out]);
    call.command.env_remove("SONDE_NO_PREFLIGHT");
    call.command
        .args(["--launches", "1", "--samples", "50"])
        .args(words);
    let told = call.expect(0).err;
    let export = stage.sonde(&["report", "export", "latest", "--json", "--out", &out]);
    let run = &document_of(&export.expect(0).out)["run"];
    (run["hosts"][0]["facts"]["noise"].clone(), told)
}

#[test]
fn a_busy_machine_is_told_kept_and_waited_for() {
    let stage = Stage::new(Case::own("veth"));
    let busy = Busy::begin();
    let (first, told) = noise_of(&stage, &[]);
    assert_eq!(first["quiet"], false, "{first:#}");
    let causes = first["causes"].as_array().unwrap();
    assert!(causes.iter().any(|cause| cause == "others"), "{first:#}");
    let line = "used by other programs";
    assert!(
        told.contains("sonde: this machine is busy: ") && told.contains(line),
        "{told}"
    );
    // Within a minute one look serves all runs of a store.
    let (second, told) = noise_of(&stage, &[]);
    assert_eq!(second, first);
    assert!(told.contains(line), "{told}");
    // Who waits looks again, and measures in the end.
    let (third, told) = noise_of(&stage, &["--until-quiet=1s"]);
    assert!(third["at_unix_ns"].as_u64() > first["at_unix_ns"].as_u64());
    assert!(
        told.contains("waiting until this machine is quiet"),
        "{told}"
    );
    drop(busy);
    // Who does not look says nothing.
    let (none, told) = noise_of(&stage, &["--no-preflight"]);
    assert!(none.is_null() && !told.contains("busy"), "{told}");
}

#[test]
fn real_hosts_are_not_waited_for() {
    let stage = Stage::new(Case::own("veth"));
    let words = ["probe", "latency", "--testbed", "a,b", "--until-quiet"];
    let told = stage.sonde(&words).expect(64).err;
    assert!(told.contains("only steers the hosts"), "{told}");
}

/// The one row of this quantity over TCP on this machine.
fn row(stage: &Stage, quantity: &str, probe: &str) -> Value {
    let out = stage.path("rows");
    let words: Vec<&str> = probe.split(' ').collect();
    let all = ["--testbed", "local", "--json", "--out", &out];
    let outcome = stage.sonde(&[&words[..], &all].concat()).expect(0);
    let rows = document_of(&outcome.out)["results"].clone();
    let rows = rows.as_array().unwrap().iter();
    let mut warm = rows.filter(|row| row["phase"] == "warm" && row["quantity"] == quantity);
    warm.next().unwrap().clone()
}

/// Beside a program on each CPU that computes, some samples meet a time in which either end waited for its CPU; the median that an
/// undisturbed machine would have given lies within bounds that hold what this one gave.
#[test]
fn samples_beside_busy_programs_are_touched() {
    measured(|| {
        let stage = Stage::new(Case::own("veth"));
        let row = |stage: &Stage| row(stage, "latency_ns", "probe latency --samples 30000");
        let busy = Busy::begin();
        let beside = row(&stage);
        drop(busy);
        let share = beside["touched_share"].as_f64().unwrap();
        assert!(share > 0.0, "{beside:#}");
        let of = |name: &str| beside[name].as_f64();
        if let (Some(low), Some(high)) = (of("undisturbed_low"), of("undisturbed_high")) {
            assert!(
                low <= of("ci95_low").unwrap() && of("ci95_high").unwrap() <= high,
                "{beside:#}"
            );
        }
        let alone = row(&stage);
        assert!(alone["touched_share"].as_f64().unwrap() < 0.5, "{alone:#}");
    });
}

/// The emulation held up for nine of every ten milliseconds, until it goes out of scope.
struct Held(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Held {
    fn begin(switch: u32) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let is_ended = Arc::clone(&ended);
        let pid = Pid::from_raw(switch.try_into().unwrap()).unwrap();
        let hold = move || {
            while !is_ended.load(Ordering::Relaxed) {
                for (signal, for_ms) in [(Signal::STOP, 9), (Signal::CONT, 1)] {
                    // It fails where the run has ended.
                    kill_process(pid, signal).unwrap_or_default();
                    std::thread::sleep(Duration::from_millis(for_ms));
                }
            }
        };
        Self(ended, Some(std::thread::spawn(hold)))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().map(JoinHandle::join).unwrap().unwrap();
    }
}

/// A repetition that a disturbance met for most of its time is made again, at most twice; where that is in vain, it is done with.
#[test]
fn what_is_mostly_disturbed_is_made_again() {
    let stage = Stage::new(Case::own("veth"));
    let out = stage.path("runs");
    let words =
        "probe latency --network ethernet-100 --path tcp --size 1 --launches 6 --json --out";
    let words: Vec<&str> = words.split(' ').chain([out.as_str()]).collect();
    let running = stage.sonde(&words).start();
    let is_switch = |process: &Process| process.line.contains("--sonde-lab-switch");
    let switch = eventually(
        || members(&running.mark).into_iter().find(is_switch),
        Option::is_some,
    );
    let held = Held::begin(switch.unwrap().pid);
    let outcome = running.finish();
    drop(held);
    assert_eq!(outcome.code, 0, "{outcome}");
    let told = outcome.err.matches("is set aside and made again").count();
    // Beside other work of the machine the emulation is held up for less, and not all is in vain.
    assert!((1..=12).contains(&told), "{outcome}");
    let document = document_of(&outcome.out);
    let rows = document["results"].as_array().unwrap();
    let row = rows.iter().find(|row| row["phase"] == "warm").unwrap();
    let counts = (&row["launches"], &row["set_aside"]);
    assert_eq!(counts, (&6.into(), &told.into()), "{row:#}");
    // What was set aside is kept.
    let export = stage.sonde(&["report", "export", "latest", "--json", "--out", &out]);
    let run = &document_of(&export.expect(0).out)["run"];
    let launches = run["launches"].as_array().unwrap();
    let aside = launches.iter().filter(|one| one["set_aside"] == true);
    assert_eq!((aside.count(), launches.len()), (told, 6 + told));
}

/// The same of a stream, slice by slice. Over a loopback its two ends wait for each other's CPU without anybody else, too: how much more they
/// do beside others is not asked.
#[test]
fn slices_beside_busy_programs_are_touched() {
    measured(|| {
        let stage = Stage::new(Case::own("veth"));
        let probe = "probe throughput --launches 2 --budget 1s";
        let busy = Busy::begin();
        let beside = row(&stage, "throughput_bps", probe);
        drop(busy);
        let share = beside["touched_share"].as_f64().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{beside:#}");
    });
}
