//! Where flows of a load begin: one thread that sends all flows of a host by their schedules.
//!
//! Model:   a schedule is times from the begin, drawn ahead one by one; the times that have come are sent in batches of at
//!          most 64. Until the next time of any flow the thread sleeps; with four CPUs or more it watches the clock for
//!          the last 30 us, with fewer it leaves the CPU to what is measured, and is late by a wake-up. A flow for which the
//!          kernel has no room waits for it, and its schedule does not.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sonde_link::Distances;
use sonde_sys::clock::{monotonic_ns, sleep_until_ns, timer_slack_min};
use sonde_sys::cpu::{online, thread_cpu_ns};
use sonde_sys::datagrams::{self, BATCH_MAX};
use sonde_sys::thread;

use super::{HEADER_BYTES, LoadCounts, LoadFlow, SentFlow};
use crate::{Error, Result};

/// How long before a time the clock is watched.
const WATCH_NS: u64 = 30_000;
/// CPUs that it takes for watching.
const CPUS_MIN: usize = 4;
/// How long a sleep may be: what was told meanwhile waits for its end.
const SLEEP_NS_MAX: u64 = 20_000_000;
/// The pause where the kernel has no room: its socket's queue empties in pieces of some frames.
const ROOM_NS: u64 = 100_000;
/// Counts are told to others so often.
const TOLD_NS: u64 = 10_000_000;
const PS: u64 = 1_000;

/// The planned times of a flow, in picoseconds after its begin.
pub(super) struct Schedule {
    distances: Distances,
    random: Pcg64Mcg,
    next_ps: u64,
}

impl Schedule {
    /// # Errors
    /// The flow is none that can be made.
    pub(super) fn new(flow: &LoadFlow) -> Result<Self> {
        let (law, rho) = flow.checked()?;
        let mut random = Pcg64Mcg::seed_from_u64(flow.seed);
        let mut distances =
            Distances::new(law, flow.unit(), rho).expect("a replay is refused before");
        let next_ps = distances.first(0, &mut random);
        Ok(Self {
            distances,
            random,
            next_ps,
        })
    }

    /// The next time, if it is not after `now_ps`.
    pub(super) fn due(&mut self, now_ps: u64) -> Option<u64> {
        let due = (self.next_ps <= now_ps).then_some(self.next_ps)?;
        let gap = self.distances.next(&mut self.random);
        self.next_ps = self.next_ps.saturating_add(gap);
        Some(due)
    }
}

/// A flow being sent.
struct Flow {
    socket: UdpSocket,
    schedule: Schedule,
    buffers: Vec<Vec<u8>>,
    /// Buffers whose time has come, and the time of the first.
    waiting: usize,
    first_due_ps: u64,
    /// Times that were drawn.
    number: u64,
    lasts_ns: u64,
    /// The time of a datagram by the level: unit over rho.
    mean_ps: u64,
    blocked_since_ns: Option<u64>,
    counts: SentFlow,
}

impl Flow {
    fn new(bind: IpAddr, token: [u8; 16], flow: &LoadFlow) -> Result<Self> {
        let schedule = Schedule::new(flow)?;
        let control = |source| Error::Control {
            what: format!("open a socket from {bind} to {}", flow.to),
            source,
        };
        let socket = UdpSocket::bind(SocketAddr::new(bind, 0)).map_err(control)?;
        socket.connect(flow.to).map_err(control)?;
        let mut buffer = vec![0; flow.size_bytes as usize];
        buffer[..16].copy_from_slice(&token);
        buffer[16..20].copy_from_slice(&flow.number.to_be_bytes());
        let (part, of) = flow.rho;
        let mean_ps = u128::from(flow.unit_ps) * u128::from(of) / u128::from(part);
        Ok(Self {
            socket,
            schedule,
            buffers: vec![buffer; BATCH_MAX],
            waiting: 0,
            first_due_ps: 0,
            number: 0,
            lasts_ns: flow.lasts_ns,
            mean_ps: u64::try_from(mean_ps).unwrap_or(u64::MAX).max(1),
            blocked_since_ns: None,
            counts: SentFlow {
                number: flow.number,
                ..SentFlow::default()
            },
        })
    }

    /// Sends what is due at `now_ns` after the begin; when it wants to be called again, `None` when it is over.
    fn step(&mut self, now_ns: u64) -> Option<u64> {
        if self.counts.trouble.is_some() {
            return None;
        }
        let until_ns = now_ns.min(self.lasts_ns);
        while self.waiting < BATCH_MAX {
            let Some(due_ps) = self.schedule.due(until_ns * PS) else {
                break;
            };
            if self.waiting == 0 {
                self.first_due_ps = due_ps;
            }
            self.buffers[self.waiting][20..HEADER_BYTES]
                .copy_from_slice(&self.number.to_be_bytes());
            self.number += 1;
            self.waiting += 1;
        }
        self.counts.span_ns = until_ns;
        if self.waiting == 0 {
            self.counts.lag_ns = 0;
            let next_ns = self.schedule.next_ps / PS + 1;
            self.plan(until_ns);
            return (now_ns < self.lasts_ns).then_some(next_ns.min(self.lasts_ns));
        }
        let again_ns = self.send(now_ns);
        self.plan(until_ns);
        (now_ns < self.lasts_ns).then_some(again_ns)
    }

    /// Hands over what waits.
    fn send(&mut self, now_ns: u64) -> u64 {
        self.counts.lag_ns = now_ns.saturating_sub(self.first_due_ps / PS);
        self.counts.lag_ns_max = self.counts.lag_ns_max.max(self.counts.lag_ns);
        let waiting = self.waiting;
        let mut out: Vec<&mut [u8]> = self.buffers[..waiting]
            .iter_mut()
            .map(|one| &mut one[..])
            .collect();
        match datagrams::send(&self.socket, &mut out) {
            Ok(sent) => {
                if let Some(since_ns) = self.blocked_since_ns.take() {
                    self.counts.blocked_ns += now_ns.saturating_sub(since_ns);
                }
                self.counts.sent += sent as u64;
                self.buffers[..waiting].rotate_left(sent);
                self.waiting -= sent;
                now_ns
            }
            Err(errno) if is_room(errno) => {
                self.blocked_since_ns.get_or_insert(now_ns);
                now_ns + ROOM_NS
            }
            // The peer's port was closed: told once for each datagram that met it, by the call after.
            Err(errno) if errno.raw_os_error() == REFUSED => now_ns,
            Err(errno) => {
                self.counts.trouble = Some(format!("the kernel does not send: {errno}"));
                now_ns
            }
        }
    }

    /// Times that came, with those that were not drawn yet since the flow is behind.
    fn plan(&mut self, until_ns: u64) {
        let behind_ps = (until_ns * PS).saturating_sub(self.schedule.next_ps);
        self.counts.planned = self.number + behind_ps / self.mean_ps;
    }
}

/// ECONNREFUSED.
const REFUSED: i32 = 111;

/// Whether there will be room: EAGAIN, ENOBUFS, EINTR.
fn is_room(errno: impl Into<std::io::Error>) -> bool {
    let error: std::io::Error = errno.into();
    const NOBUFS: i32 = 105;
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted
    ) || error.raw_os_error() == Some(NOBUFS)
}

/// What the thread tells.
#[derive(Default)]
struct SenderReport {
    flows: Vec<SentFlow>,
    cpu_ns: u64,
}

/// All flows of a host.
pub(super) struct Sender {
    told: Arc<Mutex<SenderReport>>,
    halt: Arc<AtomicBool>,
    spins: bool,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    pub(super) fn start(bind: IpAddr, token: [u8; 16], flows: &[LoadFlow]) -> Result<Self> {
        let made = flows.iter().map(|flow| Flow::new(bind, token, flow));
        let made = made.collect::<Result<Vec<Flow>>>()?;
        let told = Arc::new(Mutex::new(SenderReport::default()));
        let halt = Arc::new(AtomicBool::new(false));
        let spins = online().is_ok_and(|cpus| cpus.len() >= CPUS_MIN);
        let (theirs, end) = (Arc::clone(&told), Arc::clone(&halt));
        publish(&made, &theirs);
        let thread = thread::start("a sender of load", move || {
            run(made, &theirs, &end, spins);
        })?;
        Ok(Self {
            told,
            halt,
            spins,
            thread: Some(thread),
        })
    }

    /// Ends it, and waits for that.
    pub(super) fn halt(&mut self) {
        self.halt.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of its is told by what it did not send.
            drop(thread.join());
        }
    }

    pub(super) fn tell(&self, counts: &mut LoadCounts) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        counts.sent.clone_from(&told.flows);
        counts.send_cpu_ns = told.cpu_ns;
        counts.spins = self.spins;
    }
}

fn publish(flows: &[Flow], told: &Mutex<SenderReport>) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    told.flows = flows.iter().map(|flow| flow.counts.clone()).collect();
    told.cpu_ns = thread_cpu_ns();
}

fn run(mut flows: Vec<Flow>, told: &Mutex<SenderReport>, halt: &AtomicBool, spins: bool) {
    // It is no more than later without it.
    drop(timer_slack_min());
    let begin_ns = monotonic_ns();
    let mut tell_ns = 0;
    while !halt.load(Ordering::Relaxed) {
        let now_ns = monotonic_ns() - begin_ns;
        let mut next = None;
        for flow in &mut flows {
            let wanted = flow.step(now_ns);
            next = wanted.into_iter().chain(next).min();
        }
        if now_ns >= tell_ns || next.is_none() {
            publish(&flows, told);
            tell_ns = now_ns + TOLD_NS;
        }
        let Some(next_ns) = next else { break };
        wait_until(begin_ns, next_ns.min(now_ns + SLEEP_NS_MAX), spins);
    }
    publish(&flows, told);
}

fn wait_until(begin_ns: u64, until_ns: u64, spins: bool) {
    let until_ns = begin_ns + until_ns;
    let asleep_ns = if spins {
        until_ns - WATCH_NS.min(until_ns)
    } else {
        until_ns
    };
    if monotonic_ns() < asleep_ns {
        sleep_until_ns(asleep_ns);
    }
    while spins && monotonic_ns() < until_ns {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(law: &str) -> LoadFlow {
        LoadFlow {
            number: 1,
            to: "127.0.0.1:9".parse().unwrap(),
            size_bytes: 1_472,
            law: law.into(),
            rho: (3, 5),
            // 1,538 bytes at 1 Gb/s.
            unit_ps: 12_304_000,
            seed: 7,
            lasts_ns: 1_000_000_000,
        }
    }

    #[test]
    fn the_schedule_is_the_laws() {
        for (law, bound) in [("constant", 0.001), ("poisson", 0.02), ("on-off:20", 0.15)] {
            let mut schedule = Schedule::new(&flow(law)).unwrap();
            let second_ps = 1_000_000_000_000;
            let (mut count, mut last) = (0_u64, 0);
            while let Some(due) = schedule.due(second_ps) {
                assert!(due >= last && due <= second_ps, "{law}");
                (count, last) = (count + 1, due);
            }
            let wanted = 0.6 * second_ps as f64 / 12_304_000.0;
            let off = count as f64 / wanted - 1.0;
            assert!(off.abs() < bound, "{law}: {count} for {wanted}");
            // The same seed is the same schedule, however often it is asked.
            let mut again = Schedule::new(&flow(law)).unwrap();
            let pieces = (1..=1_000).map(|piece| {
                let mut due = 0;
                while again.due(piece * 1_000_000_000).is_some() {
                    due += 1;
                }
                due
            });
            assert_eq!(pieces.sum::<u64>(), count, "{law}");
        }
    }

    #[test]
    fn what_is_late_is_sent_and_nothing_left_out() {
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        let terms = LoadFlow {
            to: sink.local_addr().unwrap(),
            size_bytes: 100,
            ..flow("constant")
        };
        let mut flow = Flow::new("127.0.0.1".parse().unwrap(), [1; 16], &terms).unwrap();
        // The thread comes only after 20 ms: some 975 times have come, which go out in batches of 64.
        let mut steps = 0;
        while flow.counts.sent < 975 {
            flow.step(20_000_000).unwrap();
            steps += 1;
            assert!(steps < 100, "{:?}", flow.counts);
        }
        assert!((15..=17).contains(&steps), "{steps}");
        assert!(flow.counts.planned >= 975 && flow.counts.lag_ns_max > 19_000_000);
        // A time that has not come is not sent.
        let next_ns = flow.step(20_000_000).unwrap();
        assert!(next_ns > 20_000_000 && flow.counts.sent == flow.counts.planned);
    }
}
