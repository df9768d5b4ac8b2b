//! A lab of as many hosts as there can be: up, idle, down.
//!
//! Model:   up is from the start until a program on h1 has said its first word; down is from its end until nothing is left.
//!          Between them the switch is watched from outside: its memory that is in RAM (VmRSS), and its CPU time
//!          (/proc/PID/schedstat) while nothing happens.
//! Units:   milliseconds; MB are 10^6 bytes; shares of one CPU.

use crate::{Outcome, config, exec};
use sonde_lab::{Attachment, CpuPlan, Lab};
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const HOSTS: u16 = 64;
const WATCH: Duration = Duration::from_secs(5);

/// Measures a lab of each attachment, on a switched network.
pub fn run(attachments: &[Attachment], cpus: &CpuPlan) -> Outcome<()> {
    println!(
        "| attachment | hosts | up, ms | of at most | down, ms | of at most | switch, MB | of at most | idle switch, % of a CPU | of at most |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for &attachment in attachments {
        let begin = Instant::now();
        let lab = Lab::start(
            &std::env::current_exe()?,
            &config("ethernet-1g", HOSTS, attachment, cpus)?,
            None,
            None,
        )?;
        let (input, errors) = (std::fs::File::open("/dev/null")?, std::io::stderr());
        let (ours, theirs) = UnixStream::pair()?;
        let (session, _) = lab.exec(
            1,
            &exec(&["hello".into()], cpus)?,
            [input.as_fd(), theirs.as_fd(), errors.as_fd()],
        )?;
        BufReader::new(ours).read_line(&mut String::new())?;
        let up = begin.elapsed();
        session.wait()?;
        let switch = only_child(lab.cradle_pid())?;
        let before = busy_ns(switch)?;
        std::thread::sleep(WATCH);
        let busy = Duration::from_nanos(busy_ns(switch)? - before);
        let rss_bytes = sonde_sys::cpu::rss_bytes(switch)?;
        let end = Instant::now();
        lab.stop()?;
        let down = end.elapsed();
        println!(
            "| {} | {HOSTS} | {} | 5000 | {} | 1000 | {:.1} | 30.0 | {:.3} | 1.000 |",
            attachment.name(),
            up.as_millis(),
            down.as_millis(),
            rss_bytes as f64 / 1e6,
            100.0 * busy.as_secs_f64() / WATCH.as_secs_f64(),
        );
    }
    Ok(())
}

fn only_child(pid: u32) -> Outcome<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(children
        .split_whitespace()
        .next()
        .ok_or("the lab's first process has no child")?
        .parse()?)
}

/// CPU time since the process began.
fn busy_ns(pid: u32) -> Outcome<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    Ok(text
        .split_whitespace()
        .next()
        .ok_or("schedstat is empty")?
        .parse()?)
}
