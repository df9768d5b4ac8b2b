//! The programs in the hosts: a blaster, a sink, and one that only says that it is there.
//!
//! Model:   the blaster sends datagrams of 40 full frames each to an address that nobody has, by way of h2's link address:
//!          IP cuts them at the MTU, and h2 drops each as soon as it has been received and counted. So a call of the sender's is
//!          40 frames, for one that sends each by itself is slower than what it is to saturate (here 190,000 calls a
//!          second). The sink counts the frames at h2's interface (/proc/net/dev) over a second that begins 0.2 s after the
//!          first hundred.

use crate::{Blast, Outcome};
use serde::{Deserialize, Serialize};
use sonde_sys::netlink::Netlink;
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

/// The discard service.
const PORT: u16 = 9;
const FRAGMENTS: usize = 40;
const NO_BUFFERS: i32 = 105;
/// The hosts' addresses.
pub const ADDRESS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 250);
const WARM_UP: Duration = Duration::from_millis(200);
const WINDOW: Duration = Duration::from_secs(1);
/// Beyond the sink's window, so that it never sees the end.
const BLAST: Duration = Duration::from_millis(1_600);

/// What the sink says at its end.
#[derive(Debug, Serialize, Deserialize)]
pub struct Counted {
    arrived: u64,
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
            cpu_ns_per_frame: cpu_ns / frames.max(1),
            lost: 0,
        }
    }
}

/// The link address of a host, from 0.
pub fn mac(index: usize) -> [u8; 6] {
    [0x02, 0, 0x0a, 9, 0, index as u8 + 1]
}

/// The arguments of the blaster.
pub fn blast_arguments() -> Vec<String> {
    vec!["blast".into()]
}

/// Sends datagrams of several full frames for a while, as root of its host.
pub fn blast() -> Outcome<()> {
    let mut netlink = Netlink::open()?;
    let eth0 = netlink.link_named("eth0")?;
    netlink.set_neighbour(eth0.index, NOBODY, mac(1))?;
    let frame = (eth0.mtu_bytes as usize - 20) & !7;
    let payload = vec![0; FRAGMENTS * frame - 8];
    let socket = UdpSocket::bind((ADDRESS[0], 0))?;
    socket.connect((NOBODY, PORT))?;
    let begin = Instant::now();
    while begin.elapsed() < BLAST {
        match socket.send(&payload) {
            Ok(_) => {}
            // The queue of the interface is full.
            Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Counts what arrives, and says it. The first word is said when it is ready to count.
pub fn sink() -> Outcome<()> {
    println!("ready");
    let start = interface_frames()?;
    while interface_frames()? < start + 100 {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(WARM_UP);
    let (begin, before) = (Instant::now(), interface_frames()?);
    std::thread::sleep(WINDOW);
    let (window, after) = (begin.elapsed(), interface_frames()?);
    let counted = Counted {
        arrived: after - before,
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
