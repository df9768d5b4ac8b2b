//! A file of an NFS server, read or written by the client of this crate, for benches beside other clients.
//!
//! Model:   `nfs get|put SERVER MOUNTPORT PORT EXPORT NAME BYTES OUTSTANDING TRANSFER`: version 3 over TCP. A get discards what it reads, a put writes
//!          unstable and commits. Prints `bps N` and `memory_kib N`, the most that this process had in memory.
//! Units:   bytes; bits a second.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sonde_workload::files::client::Timers;
use sonde_workload::files::mount::{Mount, Over, Reach};
use sonde_workload::files::nfs::{Handle, Stable, Version};
use sonde_workload::files::session::{Job, One, Sink, Terms};

const USAGE: &str = "nfs get|put SERVER MOUNTPORT PORT EXPORT NAME BYTES OUTSTANDING TRANSFER";

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match transfer(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn transfer(words: &[String]) -> Result<(), Failure> {
    let [
        op,
        server,
        mount_port,
        port,
        export,
        name,
        bytes,
        outstanding,
        size,
    ] = words
    else {
        return Err(USAGE.into());
    };
    let (server, size_bytes): (IpAddr, u64) = (server.parse()?, bytes.parse()?);
    let terms = Terms {
        version: Version::V3,
        transfer: size.parse()?,
        outstanding: outstanding.parse()?,
        stable: Stable::Unstable,
        keeps_attributes: true,
    };
    let reach = |port: &str| -> Result<Reach, Failure> {
        Ok(Reach {
            over: Over::Tcp,
            server: SocketAddr::new(server, port.parse()?),
            source: None,
            timers: Timers::HARD,
            limit: Duration::from_secs(60),
            token: b"bench".to_vec(),
            receive_buffer: None,
        })
    };
    let root = Mount::open(reach(mount_port)?, terms, 1)?.mount(export.as_bytes())?;
    let mut mount = Mount::open(reach(port)?, terms, 1_000)?;
    let name = name.clone().into_bytes();
    let (call, job): (One, fn(Handle, u64) -> Job) = match op.as_str() {
        "get" => (One::Lookup(root, name), |file, size_bytes| Job::Read {
            file,
            size_bytes,
            sink: Sink::Discard,
        }),
        "put" => (One::Create(root, name), |file, size_bytes| Job::Write {
            file,
            size_bytes,
            content: None,
        }),
        _ => return Err(USAGE.into()),
    };
    let file = mount.run(Job::One(call))?.handle.ok_or("no such file")?;
    let began = Instant::now();
    let done = mount.run(job(file, size_bytes))?;
    let took_ns = began.elapsed().as_nanos().max(1);
    if done.bytes != size_bytes {
        return Err(format!("{} of {size_bytes} bytes", done.bytes).into());
    }
    println!("bps {}", u128::from(size_bytes) * 8_000_000_000 / took_ns);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let memory = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let memory = memory.and_then(|text| text.split_whitespace().next());
    println!("memory_kib {}", memory.unwrap_or("0"));
    Ok(())
}
