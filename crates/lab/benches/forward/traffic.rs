//! The programs in the hosts: a blaster, a sink, and one that only says that it is there.
//!
//! Model:   both pin nothing and set nothing. The sink counts frames at its interface (/proc/net/dev) and the datagrams that
//!          it reads, over a second that begins 0.2 s after the first datagram.

use crate::{Blast, Outcome};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

const PORT: u16 = 7_000;
pub const ADDRESS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];
const WARM_UP: Duration = Duration::from_millis(200);
const WINDOW: Duration = Duration::from_secs(1);
/// Beyond the sink's window, so that it never sees the end.
const BLAST: Duration = Duration::from_millis(1_600);

/// What the sink says at its end.
#[derive(Debug, Serialize, Deserialize)]
pub struct Counted {
    arrived: u64,
    read: u64,
    window_ns: u64,
}

impl Counted {
    /// With what the forwarder spent on `frames`.
    pub fn blast(&self, cpu_ns: u64, frames: u64) -> Blast {
        let per_s = |count: u64| {
            (u128::from(count) * 1_000_000_000 / u128::from(self.window_ns.max(1))) as u64
        };
        Blast {
            arrived_per_s: per_s(self.arrived),
            read_per_s: per_s(self.read),
            cpu_ns_per_frame: cpu_ns / frames.max(1),
        }
    }
}

pub fn blast_arguments(payload: usize) -> Vec<String> {
    vec!["blast".into(), payload.to_string()]
}

/// Sends datagrams of the given size for a while.
pub fn blast(arguments: &[String]) -> Outcome<()> {
    let payload = vec![0; arguments.first().ok_or("blast needs a size")?.parse()?];
    let socket = UdpSocket::bind((ADDRESS[0], 0))?;
    socket.connect((ADDRESS[1], PORT))?;
    let begin = Instant::now();
    while begin.elapsed() < BLAST {
        for _ in 0..16 {
            // A refusal is the answer of a sink that has ended.
            drop(socket.send(&payload));
        }
    }
    Ok(())
}

/// Says `ready`, counts, and says what it counted.
pub fn sink() -> Outcome<()> {
    let socket = UdpSocket::bind((ADDRESS[1], PORT))?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    println!("ready");
    let mut buffer = [0; 2_048];
    let mut read = |end: Instant| -> Outcome<u64> {
        let mut count = 0;
        while Instant::now() < end {
            socket.recv(&mut buffer)?;
            count += 1;
        }
        Ok(count)
    };
    read(Instant::now() + Duration::from_nanos(1))?;
    read(Instant::now() + WARM_UP)?;
    let (begin, before) = (Instant::now(), interface_frames()?);
    let count = read(begin + WINDOW)?;
    let (window, after) = (begin.elapsed(), interface_frames()?);
    let counted = Counted {
        arrived: after - before,
        read: count,
        window_ns: window.as_nanos() as u64,
    };
    println!("{}", serde_json::to_string(&counted)?);
    Ok(std::io::stdout().flush()?)
}

/// Frames that `eth0` has received.
fn interface_frames() -> Outcome<u64> {
    let table = std::fs::read_to_string("/proc/self/net/dev")?;
    let line = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("eth0:"))
        .ok_or("there is no eth0 here")?;
    Ok(line
        .split_whitespace()
        .nth(1)
        .ok_or("/proc/net/dev has no count of frames")?
        .parse()?)
}

/// The first output of a program.
pub fn hello() -> Outcome<()> {
    println!("hello");
    Ok(std::io::stdout().flush()?)
}
