//! Which CPUs a thread may use, how it is scheduled, and what it has used.
//!
//! Units:   nanoseconds of CPU time, bytes of memory, CPU numbers as Linux counts them.
//! Checked: unit tests below; each setting is read back before it is reported as done.

use std::fs::File;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;

use rustix::process::{Pid, Resource, Rlimit};
use rustix::thread::CpuSet;
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Attempt, checked, read_text};
use crate::{Error, Result};

fn listed(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

fn process(pid: u32) -> Result<Pid> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(Error::OutOfRange {
            what: "process id",
            value: pid.to_string(),
            remedy: "give the id of a process",
        })
}

/// The CPUs the calling thread may run on, ascending.
pub fn online() -> Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).attempt(|| "read the CPU affinity".into())?;
    Ok(listed(&set))
}

/// Binds the calling thread, and threads and processes it starts later, to `cpus`.
pub fn pin(cpus: &[usize]) -> Result<()> {
    bind(None, cpus)
}

/// Binds the thread `pid` (a process id names its main thread) to `cpus`.
pub fn pin_pid(pid: u32, cpus: &[usize]) -> Result<()> {
    bind(Some(process(pid)?), cpus)
}

fn bind(pid: Option<Pid>, cpus: &[usize]) -> Result<()> {
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            let remedy = "only CPUs below 1024 can be named";
            return Err(Error::OutOfRange {
                what: "CPU",
                value: cpu.to_string(),
                remedy,
            });
        }
        wanted.set(cpu);
    }
    rustix::thread::sched_setaffinity(pid, &wanted).attempt(|| format!("bind to CPUs {cpus:?}"))?;
    let found =
        rustix::thread::sched_getaffinity(pid).attempt(|| "read the CPU affinity".into())?;
    if found == wanted {
        return Ok(());
    }
    // A cpuset of the container narrows the set silently.
    Err(Error::NotTaken {
        name: "CPU affinity".into(),
        asked: format!("{:?}", listed(&wanted)),
        found: format!("{:?}", listed(&found)),
    })
}

/// The CPU that the calling thread runs on at this moment.
pub fn current() -> usize {
    rustix::thread::sched_getcpu()
}

/// CPU time used by the calling thread.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How long a thread waited for a CPU while it could have run.
#[derive(Debug)]
pub struct RunQueue(File);

impl RunQueue {
    /// Of the calling thread; `None` where the kernel keeps no such statistics.
    pub fn of_this_thread() -> Option<Self> {
        let queue = Self(File::open("/proc/thread-self/schedstat").ok()?);
        queue.waited_ns().map(|_| queue)
    }

    /// So far; reading it takes about a microsecond. `None` where it cannot be read.
    pub fn waited_ns(&self) -> Option<u64> {
        // Three numbers of at most 20 digits.
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// How often a thread gave up its CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    /// It waited.
    pub voluntary: u64,
    /// It was put aside for another.
    pub involuntary: u64,
}

/// The context switches of the calling thread so far.
///
/// # Errors
/// Never on Linux since 2.6.26.
pub fn thread_switches() -> Result<Switches> {
    switches(libc::RUSAGE_THREAD)
}

/// Those of all threads of the calling process, living or joined.
///
/// # Errors
/// Never on Linux.
pub fn process_switches() -> Result<Switches> {
    switches(libc::RUSAGE_SELF)
}

fn switches(of: i32) -> Result<Switches> {
    // SAFETY: rusage is plain data for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a live local.
    checked(unsafe { libc::getrusage(of, &mut usage) })
        .attempt(|| "read context switches".into())?;
    Ok(Switches {
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    })
}

/// CPU time used by all threads of a process, living or joined, in ns (not clock ticks).
pub fn process_cpu_ns(pid: u32) -> Result<u64> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `clock` is a live local.
    let status = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    let found = if status == 0 {
        // SAFETY: `time` is a live local.
        checked(unsafe { libc::clock_gettime(clock, &mut time) }).map(|_| ())
    } else {
        Err(rustix::io::Errno::from_raw_os_error(status))
    };
    found.attempt(|| format!("read the CPU time of process {pid}"))?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Memory of a process that is in RAM (resident set).
pub fn rss_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/statm");
    let text = read_text(&path)?;
    let pages: Option<u64> = text
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok());
    let pages = pages.ok_or_else(|| Error::Answer {
        what: format!("read {path}"),
        text,
    })?;
    // SAFETY: no pointers; the page size is always known.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    Ok(pages * page_bytes)
}

/// Lets a process (0: the calling thread) run only when no other wants the CPU; children inherit it.
///
/// With two hogs on two CPUs this takes the 99th percentile of a round trip from 3.6 ms to 95 us.
pub fn sched_idle(pid: u32) -> Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` is a live local.
    let status =
        unsafe { libc::sched_setscheduler(pid as libc::pid_t, libc::SCHED_IDLE, &parameters) };
    checked(status).attempt(|| format!("make process {pid} SCHED_IDLE"))?;
    Ok(())
}

/// Gives the thread `pid` (a process id names its main thread) real-time priority: SCHED_FIFO at `priority`, 1 to 99. It then runs
/// before all that has none, until it waits. What it forks has it too where `inherited`, else none.
///
/// # Errors
/// EPERM without CAP_SYS_NICE, and a limit RLIMIT_RTPRIO of the thread below `priority`; a control group without real-time budget.
pub fn real_time(pid: u32, priority: u8, inherited: bool) -> Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority.into(),
    };
    let fork = if inherited {
        0
    } else {
        libc::SCHED_RESET_ON_FORK
    };
    // SAFETY: `parameters` is a live local.
    let status = unsafe {
        libc::sched_setscheduler(pid as libc::pid_t, libc::SCHED_FIFO | fork, &parameters)
    };
    checked(status).attempt(|| format!("give process {pid} real-time priority"))?;
    Ok(())
}

/// Whether the thread `pid` (0: the calling one) has real-time priority.
///
/// # Errors
/// There is no such thread.
pub fn is_real_time(pid: u32) -> Result<bool> {
    has_real_time(pid).attempt(|| format!("read the scheduling policy of process {pid}"))
}

/// Takes real-time priority from the thread `pid` (0: the calling one) again; for one that has none, nothing. Everyone may do so to what is
/// theirs and inherits it. Its slice is the usual one then.
///
/// # Errors
/// There is no such thread, or it is another's.
pub fn usual_priority(pid: u32) -> Result<()> {
    take_real_time(pid).attempt(|| format!("take real-time priority from process {pid}"))
}

fn policy(pid: u32) -> rustix::io::Result<i32> {
    // SAFETY: no pointers.
    checked(unsafe { libc::sched_getscheduler(pid as libc::pid_t) })
}

fn has_real_time(pid: u32) -> rustix::io::Result<bool> {
    Ok(policy(pid)? & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO)
}

/// The same without a word of what failed: system calls only, for a child between fork and exec.
pub(crate) fn take_real_time(pid: u32) -> rustix::io::Result<()> {
    if !has_real_time(pid)? {
        return Ok(());
    }
    // That its children have none is kept: who is not root may not take it back.
    let usual = libc::SCHED_OTHER | policy(pid)? & libc::SCHED_RESET_ON_FORK;
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` is a live local.
    checked(unsafe { libc::sched_setscheduler(pid as libc::pid_t, usual, &parameters) }).map(|_| ())
}

/// The kernel's struct sched_attr, first version (48 bytes).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const SLICE_NS: u64 = 100_000;

/// Asks for slices of 0.1 ms for the thread `pid` (0: the calling one), the kernel's shortest; needs no privilege.
///
/// Linux before 6.12 accepts the call and ignores the slice: the read-back then shows another value and the
/// result is [`Error::NotTaken`], which a caller may take as "not available here".
pub fn short_slice(pid: u32) -> Result<()> {
    let mut attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        ..Default::default()
    };
    // SAFETY: `attributes` is a live repr(C) local whose size is given.
    let status = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            pid,
            &raw mut attributes,
            size_of::<Attributes>() as u32,
            0,
        )
    };
    checked(status).attempt(|| "read the scheduling attributes".into())?;
    attributes.runtime_ns = SLICE_NS;
    // SAFETY: as above; the kernel only reads.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attributes, 0) };
    checked(status).attempt(|| format!("ask for a scheduling slice of {SLICE_NS} ns"))?;
    let mut found = Attributes {
        size: size_of::<Attributes>() as u32,
        ..Default::default()
    };
    // SAFETY: as the first call.
    let status = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            pid,
            &raw mut found,
            size_of::<Attributes>() as u32,
            0,
        )
    };
    checked(status).attempt(|| "read the scheduling attributes".into())?;
    if found.runtime_ns == SLICE_NS {
        return Ok(());
    }
    Err(Error::NotTaken {
        name: "scheduling slice in ns".into(),
        asked: SLICE_NS.to_string(),
        found: found.runtime_ns.to_string(),
    })
}

/// Raises the limit of open files to the hard limit; returns the limit now in force.
pub fn raise_nofile() -> Result<u64> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, raised)
        .attempt(|| format!("raise the limit of open files to {:?}", limit.maximum))?;
    Ok(rustix::process::getrlimit(Resource::Nofile)
        .current
        .unwrap_or(RawFd::MAX as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let before = thread_switches().unwrap();
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(thread_switches().unwrap().voluntary >= before.voluntary + 3);
    }

    #[test]
    fn a_thread_can_be_pinned_and_released() {
        std::thread::spawn(|| {
            let all = online().unwrap();
            pin(&all[..1]).unwrap();
            assert_eq!(online().unwrap(), all[..1]);
            pin(&all).unwrap();
            assert_eq!(online().unwrap(), all);
            assert!(pin(&[]).is_err());
            assert!(pin(&[5000]).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn used_time_and_memory_are_counted() {
        let own = std::process::id();
        let (thread, process) = (thread_cpu_ns(), process_cpu_ns(own).unwrap());
        let work: u64 = (0..2_000_000u64).map(std::hint::black_box).sum();
        assert!(work > 0 && thread_cpu_ns() > thread && process_cpu_ns(own).unwrap() > process);
        assert!(rss_bytes(own).unwrap() > 100_000);
        assert!(rss_bytes(u32::MAX).is_err());
    }

    #[test]
    fn scheduling_can_be_lowered() {
        std::thread::spawn(|| {
            match short_slice(0) {
                Ok(()) => {}
                Err(Error::NotTaken { .. }) => {
                    println!("skipped: scheduling slices need Linux 6.12")
                }
                Err(error) => panic!("{error}"),
            }
            sched_idle(0).unwrap();
            // SAFETY: no pointers.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_IDLE);
        })
        .join()
        .unwrap();
        assert!(raise_nofile().unwrap() >= 256);
    }

    #[test]
    fn real_time_priority_is_given_and_taken() {
        std::thread::spawn(|| {
            // SAFETY: no pointers.
            let own = unsafe { libc::gettid() } as u32;
            assert!(!is_real_time(own).unwrap());
            usual_priority(own).unwrap();
            match real_time(own, 1, true) {
                Ok(()) => {
                    assert!(is_real_time(0).unwrap());
                    let heir = std::thread::spawn(|| is_real_time(0).unwrap());
                    assert!(heir.join().unwrap(), "it is inherited");
                    real_time(own, 1, false).unwrap();
                    let heir = std::thread::spawn(|| is_real_time(0).unwrap());
                    assert!(!heir.join().unwrap(), "it is not");
                    usual_priority(0).unwrap();
                    assert!(!is_real_time(own).unwrap());
                }
                Err(error) => println!("skipped: {error}"),
            }
            assert!(real_time(u32::MAX >> 1, 1, true).is_err());
        })
        .join()
        .unwrap();
    }
}
