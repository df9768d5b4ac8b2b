//! Rounds until a budget is used up, of one client or of several at once.
//!
//! Model:   all clients begin at one agreed time. The first that has used up its budget as a round of it ends closes the window. The others go on,
//!          and so does that one, until each has ended the round that it was in: nobody is rated while others are idle. A client's rate is
//!          what it did within the window over the time of its rounds there, of the last round the part that lies in the window; that of all is their sum.
//!          One client has a sample for each round.
//! Units:   nanoseconds, bytes; rates in bits a second; CPU time for a byte in picoseconds, calls a second in thousandths; shares in millionths.
//! Checked: `what_lies_in_the_window_counts`, `one_that_fails_ends_all`; `clients_share_a_server` of `files_launch`.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sonde_measure::files::Files;
use sonde_measure::{Measurement, Phase, Quantity};
use sonde_probe::{Result, SizeMeasured};
use sonde_stats::Series;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::{cpu, thread};

/// What it takes to start the thread of a client, with room.
const START_NS: u64 = 5_000_000;

/// Who does an operation again and again.
pub(super) trait Turns {
    /// Bytes of the file.
    fn size_bytes(&self) -> u64;
    /// One round; the calls that it took.
    fn round(&mut self) -> Result<u64>;
    /// What a round changed is as it was before it.
    fn restore(&mut self) -> Result<()>;
    /// Takes what calls took.
    fn drain(&mut self, into: &mut Series);
}

/// A round of a client.
#[derive(Debug, Clone, Copy)]
struct Round {
    begin_ns: u64,
    end_ns: u64,
    calls: u64,
}

/// What one client did.
#[derive(Debug, Default)]
struct Turned {
    rounds: Vec<Round>,
    service: Series,
    cpu_ns: u64,
}

/// What the rounds gave.
#[derive(Debug)]
pub(super) struct Rounds {
    throughput: Series,
    calls_per_s: Series,
    service: Series,
    pub(super) calls: u64,
    bytes: u64,
    /// CPU time of the threads of all clients.
    cpu_ns: u64,
    /// What the slowest and the fastest of several clients have of the rate.
    pub(super) shares_ppm: Option<[u64; 2]>,
}

/// What the clients agree on.
struct Gate {
    clients: usize,
    begin_ns: u64,
    /// When the budget is used up.
    end_ns: u64,
    /// Calls that use it up too, of each client.
    calls_max: u64,
    /// The end of the window.
    closed_ns: AtomicU64,
    /// Clients that have ended a round since.
    done: AtomicUsize,
    is_broken: AtomicBool,
}

/// Rounds until the budget is used up.
///
/// # Errors
/// A round that failed, of any client.
pub(super) fn rounds<T: Turns + Send>(clients: &mut [T], files: &Files) -> Result<Rounds> {
    let count = clients.len() as u64;
    let lead_ns = if count > 1 { START_NS * count } else { 0 };
    let begin_ns = monotonic_ns() + lead_ns;
    let gate = Gate {
        clients: clients.len(),
        begin_ns,
        end_ns: begin_ns.saturating_add(files.quota.budget_ns),
        calls_max: (files.quota.samples_max / count.max(1)).max(1),
        closed_ns: AtomicU64::new(u64::MAX),
        done: AtomicUsize::new(0),
        is_broken: AtomicBool::new(false),
    };
    let size_bytes = clients.first().map_or(0, Turns::size_bytes);
    let turned = match clients {
        // Its calls are the one thread's that the machine was watched for.
        [one] => vec![turn(one, &gate)?],
        all => at_once(all, &gate)?,
    };
    let closed_ns = gate.closed_ns.load(Ordering::Relaxed);
    Ok(Rounds::of(turned, size_bytes, closed_ns))
}

fn at_once<T: Turns + Send>(clients: &mut [T], gate: &Gate) -> Result<Vec<Turned>> {
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for client in clients {
            let started = thread::start_in(scope, "a client of files", || {
                // Without it sleeps end some 50 µs late.
                sonde_sys::clock::timer_slack_min()?;
                turn(client, gate)
            });
            // The others would wait for one that is not there.
            let started = started.inspect_err(|_| gate.is_broken.store(true, Ordering::Relaxed));
            threads.push(started?);
        }
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(turned) => turned,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All of them are joined before the first failure is told.
        let ended: Vec<Result<Turned>> = ended.collect();
        ended.into_iter().collect()
    })
}

/// The rounds of one client, until each has ended one after the window.
fn turn(client: &mut impl Turns, gate: &Gate) -> Result<Turned> {
    let broken = |_: &sonde_probe::Error| gate.is_broken.store(true, Ordering::Relaxed);
    let mut turned = Turned::default();
    std::thread::sleep(Duration::from_nanos(
        gate.begin_ns.saturating_sub(monotonic_ns()),
    ));
    let cpu_ns = cpu::thread_cpu_ns();
    let (mut calls, mut is_done) = (0, false);
    loop {
        let begin_ns = monotonic_ns();
        let done = client.round().inspect_err(broken)?;
        let end_ns = monotonic_ns().max(begin_ns + 1);
        calls += done;
        turned.rounds.push(Round {
            begin_ns,
            end_ns,
            calls: done,
        });
        client.drain(&mut turned.service);
        let is_used_up = end_ns >= gate.end_ns || calls >= gate.calls_max;
        let is_closed = gate.closed_ns.load(Ordering::SeqCst) != u64::MAX;
        if !is_done && (is_used_up || is_closed) {
            gate.closed_ns.fetch_min(end_ns, Ordering::SeqCst);
            gate.done.fetch_add(1, Ordering::SeqCst);
            is_done = true;
        }
        let is_last = gate.done.load(Ordering::SeqCst) >= gate.clients;
        if is_done && is_last || gate.is_broken.load(Ordering::Relaxed) {
            turned.cpu_ns = cpu::thread_cpu_ns() - cpu_ns;
            return Ok(turned);
        }
        client.restore().inspect_err(broken)?;
        // What put it back is no sample.
        client.drain(&mut Series::new());
    }
}

fn per_s(count: u64, unit: u64, took_ns: u64) -> u64 {
    let all = u128::from(count) * u128::from(unit) * 1_000_000_000;
    u64::try_from(all / u128::from(took_ns.max(1))).unwrap_or(u64::MAX)
}

impl Turned {
    /// What lies in the window: parts of rounds in billionths, calls in thousandths, and the time of the rounds.
    fn within(&self, closed_ns: u64) -> [u64; 3] {
        let mut sums = [0; 3];
        for round in &self.rounds {
            let took_ns = round.end_ns - round.begin_ns;
            let inside_ns = closed_ns.min(round.end_ns).saturating_sub(round.begin_ns);
            let part = |of: u64| {
                (u128::from(of) * u128::from(inside_ns) / u128::from(took_ns.max(1))) as u64
            };
            sums[0] += part(1_000_000_000);
            sums[1] += part(round.calls * 1_000);
            sums[2] += inside_ns;
        }
        sums
    }
}

impl Rounds {
    fn of(turned: Vec<Turned>, size_bytes: u64, closed_ns: u64) -> Self {
        let mut all = Self {
            throughput: Series::new(),
            calls_per_s: Series::new(),
            service: Series::new(),
            calls: 0,
            bytes: 0,
            cpu_ns: 0,
            shares_ppm: None,
        };
        for one in &turned {
            all.calls += one.rounds.iter().map(|round| round.calls).sum::<u64>();
            all.bytes += size_bytes * one.rounds.len() as u64;
            all.cpu_ns += one.cpu_ns;
            all.service.merge(&one.service);
        }
        if let [one] = &*turned {
            for round in &one.rounds {
                let took_ns = round.end_ns - round.begin_ns;
                all.throughput.record(per_s(size_bytes, 8, took_ns));
                all.calls_per_s.record(per_s(round.calls, 1_000, took_ns));
            }
            return all;
        }
        let within = turned.iter().map(|one| one.within(closed_ns));
        let rates = within.map(|[rounds, milli_calls, ns]| {
            let bits = u128::from(rounds) * u128::from(size_bytes) * 8 / 1_000_000_000;
            let bits = u64::try_from(bits).unwrap_or(u64::MAX);
            [per_s(bits, 1, ns), per_s(milli_calls, 1, ns)]
        });
        let rates: Vec<[u64; 2]> = rates.collect();
        let sum = |at: usize| rates.iter().map(|rates| rates[at]).sum::<u64>();
        all.throughput.record(sum(0));
        all.calls_per_s.record(sum(1));
        let share = |rate: u64| {
            let share = u128::from(rate) * 1_000_000 / u128::from(sum(1).max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let shares = || rates.iter().map(|rates| share(rates[1]));
        all.shares_ppm = shares().min().zip(shares().max()).map(<[u64; 2]>::from);
        all
    }

    /// As rows; `server_ns`: CPU time of the server's threads, `retransmissions` of both ends, where there is a server.
    pub(super) fn measured(
        self,
        size_bytes: u64,
        retransmissions: Option<u64>,
        server_ns: Option<u64>,
    ) -> SizeMeasured {
        let warm = |quantity, series: Series| Measurement {
            touched: None,
            quantity,
            phase: Phase::Warm,
            step: None,
            reason: series
                .is_empty()
                .then(|| "no call of the rounds was answered".into()),
            series,
        };
        let one = |value: u64| std::iter::once(value).collect::<Series>();
        let per_byte = |cpu_ns: u64| {
            let ps = u128::from(cpu_ns) * 1_000 / u128::from(self.bytes.max(1));
            one(u64::try_from(ps).unwrap_or(u64::MAX))
        };
        let mut measurements = Vec::new();
        if size_bytes > 0 {
            measurements.push(warm(Quantity::ThroughputBps, self.throughput));
        }
        measurements.push(warm(Quantity::RatePerS, self.calls_per_s));
        measurements.push(warm(Quantity::ServiceNs, self.service));
        if size_bytes > 0 {
            measurements.push(warm(Quantity::CpuSrcNsPerByte, per_byte(self.cpu_ns)));
            let server = server_ns.map(|ns| warm(Quantity::CpuDstNsPerByte, per_byte(ns)));
            measurements.extend(server);
        }
        let again = retransmissions.map(|again| warm(Quantity::Retransmits, one(again)));
        measurements.extend(again);
        SizeMeasured {
            moments: None,
            size_bytes,
            measurements,
            round_trips: self.calls,
            sent: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(rounds: &[(u64, u64)]) -> Turned {
        let rounds = rounds.iter().map(|(begin_ns, end_ns)| Round {
            begin_ns: *begin_ns,
            end_ns: *end_ns,
            calls: 10,
        });
        Turned {
            rounds: rounds.collect(),
            ..Turned::default()
        }
    }

    #[test]
    fn what_lies_in_the_window_counts() {
        let second = 1_000_000_000;
        // The window is a second: a whole round of one, half a round of the other, whose time after it does not count.
        let one = turned(&[(0, second), (second, 3 * second)]);
        let other = turned(&[(0, 2 * second)]);
        let rounds = Rounds::of(vec![one, other], 1_000_000, second);
        assert_eq!(rounds.throughput.median(), Some(8_000_000 + 4_000_000));
        assert_eq!(rounds.calls_per_s.median(), Some(10_000 + 5_000));
        assert_eq!(rounds.shares_ppm, Some([333_333, 666_666]));
        assert_eq!((rounds.calls, rounds.bytes), (30, 3_000_000));
        // One alone has a sample for each round.
        let one = turned(&[(0, second), (second, 3 * second)]);
        let rounds = Rounds::of(vec![one], 1_000_000, second);
        assert_eq!(rounds.throughput.count(), 2);
        assert_eq!(rounds.throughput.max(), Some(8_000_000));
        assert_eq!(rounds.shares_ppm, None);
    }

    /// Fails at its so manieth round, or never.
    struct Failing(Option<u64>);

    impl Turns for Failing {
        fn size_bytes(&self) -> u64 {
            1
        }

        fn round(&mut self) -> Result<u64> {
            std::thread::sleep(Duration::from_millis(1));
            if let Some(left) = &mut self.0 {
                *left = left.checked_sub(1).ok_or(sonde_probe::Error::Files {
                    what: "planted".into(),
                    remedy: "none",
                })?;
            }
            Ok(1)
        }

        fn restore(&mut self) -> Result<()> {
            Ok(())
        }

        fn drain(&mut self, into: &mut Series) {
            into.record(1);
        }
    }

    #[test]
    fn one_that_fails_ends_all() {
        let mut files = Files::usual("nfs3".parse().unwrap());
        files.quota.budget_ns = 60_000_000_000;
        let mut clients = [Failing(None), Failing(Some(3)), Failing(None)];
        let error = rounds(&mut clients, &files).unwrap_err().to_string();
        assert!(error.contains("planted"), "{error}");
        // Without a failure each has a part.
        files.quota.budget_ns = 30_000_000;
        let mut clients = [Failing(None), Failing(None), Failing(None)];
        let all = rounds(&mut clients, &files).unwrap();
        let [least, most] = all.shares_ppm.unwrap();
        assert!(least > 0 && most < 1_000_000 && least <= most);
        assert_eq!(all.calls_per_s.count(), 1);
    }
}
