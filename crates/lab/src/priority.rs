//! Real-time priority of a lab's own processes, given and taken from outside.
//!
//! Model:   once a lab stands, the command gives its switch and the inits of its hosts SCHED_FIFO where the kernel permits it: nothing within
//!          the lab can, whose privileges end at its user namespace. An init's children inherit it; what they are to run does not, but for
//!          agents, whose workers keep it for what has one message under way. It ends before the lab does, and when a switch takes
//!          a CPU for itself. One command of a machine has it at a time: two would keep each other from their CPUs.
//! Units:   thousandths of a CPU.
//! Checked: `alone::lab_priority` of the command; `a_switch_that_keeps_a_cpu_falls`.

use serde::{Deserialize, Serialize};
use sonde_sys::cpu;
use std::collections::VecDeque;
use std::fmt;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The switch goes before all; then agents and their workers.
const SWITCH: u8 = 2;
const INIT: u8 = 1;
/// Whose turn it is: a name that goes with its process.
const TURN: &[u8] = b"sonde-real-time";
/// So long a switch is looked at.
const SPAN: Duration = Duration::from_secs(2);
/// All switches of this process together take no more of a CPU over that time.
const ALL_PER_MILLE: u64 = 900;
/// A switch that takes so little is not the reason.
const ONE_PER_MILLE: u64 = 100;
/// With the value `usual` as the option of this name: for tests of several labs at a time.
const VARIABLE: &str = "SONDE_PRIORITY";
/// The kernel's own limit: what real-time may take of each period, in us; -1 for none.
const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// With which priority the lab's own processes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Real-time where the kernel permits it.
    #[default]
    Auto,
    /// That of other programs.
    Usual,
}

impl Priority {
    /// Whether it is what is taken where nothing is said.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

impl FromStr for Priority {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "usual" => Ok(Self::Usual),
            _ => Err("write auto or usual".into()),
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Usual => "usual",
        })
    }
}

/// Which priority the lab's own processes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HadPriority {
    /// That of other programs.
    #[default]
    Usual,
    /// Real-time.
    RealTime,
    /// That of other programs, since the switch would have kept a CPU for itself.
    GivenUp,
}

impl HadPriority {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::RealTime => "real-time",
            Self::GivenUp => "given-up",
        }
    }
}

/// The labs of this process that have it, and their turn.
struct Labs {
    turn: Option<UnixListener>,
    given: Vec<Given>,
    is_watched: bool,
}

struct Given {
    /// All processes of the lab descend from it.
    cradle: u32,
    switch: u32,
    has_it: bool,
    /// When it was looked at, and the switch's CPU time then, in ns.
    seen: (Instant, u64),
}

static LABS: Mutex<Labs> = Mutex::new(Labs {
    turn: None,
    given: Vec::new(),
    is_watched: false,
});

/// No thread holds it while it could panic.
fn labs() -> MutexGuard<'static, Labs> {
    LABS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lab that was given real-time priority; it ends with this.
#[derive(Debug)]
pub(crate) struct Held {
    cradle: u32,
}

/// Gives it to the lab whose first process is `cradle`.
///
/// # Errors
/// Why it has the usual one, in a sentence without its end.
pub(crate) fn give(cradle: u32) -> Result<Held, String> {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "usual") {
        return Err(format!("{VARIABLE} says so"));
    }
    if cpu::online().map_err(|e| e.to_string())?.len() < 2 {
        return Err("other programs need the only CPU".into());
    }
    let limit = std::fs::read_to_string(LIMIT).unwrap_or_default();
    if limit.trim() == "-1" {
        return Err(format!(
            "the kernel sets real-time no limit ({LIMIT} is -1)"
        ));
    }
    let switch = *children(cradle)
        .first()
        .ok_or("the kernel does not list the children of a process")?;
    let mut labs = labs();
    if labs.turn.is_none() {
        let name = SocketAddr::from_abstract_name(TURN).map_err(|e| e.to_string())?;
        let turn = UnixListener::bind_addr(&name);
        labs.turn = Some(turn.map_err(|_| "another command of this machine has it".to_owned())?);
    }
    let given = children(switch)
        .into_iter()
        .map(|init| cpu::real_time(init, INIT, true))
        .chain([cpu::real_time(switch, SWITCH, false)])
        .collect::<Result<(), _>>();
    if let Err(error) = given {
        lay_down(cradle);
        labs.release();
        return Err(error.to_string());
    }
    labs.given.push(Given {
        cradle,
        switch,
        has_it: true,
        seen: (Instant::now(), cpu::process_cpu_ns(switch).unwrap_or(0)),
    });
    if !labs.is_watched {
        labs.is_watched = std::thread::Builder::new().spawn(watch).is_ok();
    }
    if !labs.is_watched {
        drop(labs);
        drop(Held { cradle });
        return Err("a thread that watches it cannot be started".into());
    }
    Ok(Held { cradle })
}

impl Held {
    /// Whether it is still so.
    pub(crate) fn now(&self) -> HadPriority {
        let labs = labs();
        let own = labs.given.iter().find(|one| one.cradle == self.cradle);
        match own.is_some_and(|one| one.has_it) {
            true => HadPriority::RealTime,
            false => HadPriority::GivenUp,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut labs = labs();
        lay_down(self.cradle);
        labs.given.retain(|one| one.cradle != self.cradle);
        labs.release();
    }
}

impl Labs {
    /// Lets another command have it where no lab of this one has.
    fn release(&mut self) {
        if self.given.is_empty() {
            self.turn = None;
        }
    }
}

/// Takes it from a switch that keeps a CPU for itself, until there is no lab any more.
fn watch() {
    loop {
        std::thread::sleep(SPAN);
        let mut labs = labs();
        if labs.given.is_empty() {
            labs.is_watched = false;
            return;
        }
        let shares: Vec<u64> = labs.given.iter_mut().map(Given::share).collect();
        for at in falling(&shares) {
            let fallen = &mut labs.given[at];
            fallen.has_it = false;
            lay_down(fallen.cradle);
            // Real-time has no slice, so the switch lost its own. A kernel that refuses one leaves the lab with the usual slice.
            drop(cpu::short_slice(fallen.switch));
        }
    }
}

impl Given {
    /// What its switch took of a CPU since it was looked at last, in thousandths; 0 where it has the usual priority, or too little time
    /// has gone by to say.
    fn share(&mut self) -> u64 {
        let (since, before_ns) = self.seen;
        let span_ns = since.elapsed().as_nanos() as u64;
        if !self.has_it || since.elapsed() < SPAN / 2 {
            return 0;
        }
        let used_ns = cpu::process_cpu_ns(self.switch).unwrap_or(before_ns);
        self.seen = (Instant::now(), used_ns);
        used_ns.saturating_sub(before_ns).saturating_mul(1_000) / span_ns.max(1)
    }
}

/// Of labs whose switches take these shares of a CPU those that may not have it.
fn falling(shares: &[u64]) -> Vec<usize> {
    let all: u64 = shares.iter().sum();
    let falls = |at: &usize| all > ALL_PER_MILLE && shares[*at] > ONE_PER_MILLE;
    (0..shares.len()).filter(falls).collect()
}

/// Takes it from all processes of a lab. What has ended meanwhile needs nothing.
fn lay_down(cradle: u32) {
    let mut left = VecDeque::from([cradle]);
    while let Some(process) = left.pop_front() {
        for thread in threads(process) {
            drop(cpu::usual_priority(thread));
        }
        // After its own turn: a child that it starts from here on inherits none.
        left.extend(children(process));
    }
}

fn threads(process: u32) -> Vec<u32> {
    let folder = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
    let entries = folder.into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.filter_map(number).collect()
}

/// The processes that the threads of `process` started and that have not ended.
fn children(process: u32) -> Vec<u32> {
    let of = |thread: u32| {
        let path = format!("/proc/{process}/task/{thread}/children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let numbers = text.split_ascii_whitespace();
        numbers
            .filter_map(|one| one.parse().ok())
            .collect::<Vec<u32>>()
    };
    threads(process).into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_keeps_a_cpu_falls() {
        assert_eq!(falling(&[900]), [0; 0]);
        assert_eq!(falling(&[901]), [0]);
        assert_eq!(falling(&[40, 860, 0, 101]), [1, 3]);
    }

    #[test]
    fn the_processes_of_a_lab_are_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let own = std::process::id();
        assert!(children(own).contains(&child.id()));
        assert!(threads(own).contains(&own));
        lay_down(own);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(children(child.id()), [0; 0], "it has ended");
    }

    #[test]
    fn priorities_are_read_back() {
        for text in ["auto", "usual"] {
            assert_eq!(text.parse::<Priority>().unwrap().to_string(), text);
        }
        assert!("high".parse::<Priority>().unwrap_err().contains("usual"));
    }
}
