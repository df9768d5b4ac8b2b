//! Ping-pong of two ranks over the native engine: what a 30-line program of an MPI library prints, for comparison with it.
//!
//! Run by `examples/pingpong.sh`, or by hand twice: `pingpong RANK TRANSPORT MEETING [block]`. Rank 0 writes a line: half the
//! median round trip of 8 B in ns, then the rates of 1 MiB and 16 MiB in MB/s (10^6 B/s).

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use sonde_measure::Wait;
use sonde_message::native::{Bootstrap, Meeting, Transport};
use sonde_message::{Comm, Messenger, Source, Tagged};

/// Message bytes, round trips before, and round trips that count.
const SIZES: [(usize, usize, usize); 3] =
    [(8, 2_000, 20_000), (1 << 20, 20, 100), (16 << 20, 3, 12)];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, rank, transport, meeting, rest @ ..] = &arguments[..] else {
        return Err("usage: pingpong RANK TRANSPORT MEETING [block]".into());
    };
    let transport = Transport::ALL
        .into_iter()
        .find(|known| known.name() == transport)
        .ok_or("TRANSPORT is tcp, unix or shm")?;
    let rank: usize = rank.parse()?;
    let boot = Bootstrap {
        rank,
        size: 2,
        transport,
        meeting: match transport {
            Transport::Tcp => Meeting::Address(meeting.parse()?),
            _ => Meeting::Name(meeting.clone()),
        },
        own: None,
        token: "pingpong".into(),
        wait: if rest.is_empty() {
            Wait::Poll
        } else {
            Wait::Block
        },
        timeout: Duration::from_secs(20),
    };
    let mut messenger = boot.join()?;
    let mut line = Vec::new();
    for (bytes, before, counted) in SIZES {
        let median = turns(&mut *messenger, rank, bytes, (before, counted))?;
        let half_ns = median.as_nanos() as f64 / 2.0;
        line.push(if bytes == 8 {
            format!("{half_ns:.0}")
        } else {
            format!("{:.0}", bytes as f64 / half_ns * 1e3)
        });
    }
    if rank == 0 {
        println!("{}", line.join(" "));
    }
    messenger.finish()?;
    Ok(())
}

/// The median round trip.
fn turns(
    messenger: &mut dyn Messenger,
    rank: usize,
    bytes: usize,
    (before, counted): (usize, usize),
) -> sonde_message::Result<Duration> {
    let (world, tag, peer) = (Comm::WORLD, Tagged::With(1), 1 - rank);
    let ping = vec![1; bytes];
    let mut pong = vec![0; bytes];
    let mut times = Vec::with_capacity(counted);
    for turn in 0..before + counted {
        let begin = Instant::now();
        if rank == 0 {
            messenger.send(world, peer, 1, &ping)?;
            messenger.recv(world, Source::Rank(peer), tag, &mut pong)?;
        } else {
            messenger.recv(world, Source::Rank(peer), tag, &mut pong)?;
            messenger.send(world, peer, 1, &ping)?;
        }
        if turn >= before {
            times.push(begin.elapsed());
        }
        black_box(&pong);
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
