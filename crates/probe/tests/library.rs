//! Every job at the library layer among ranks of one process, and what goes wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use sonde_measure::{EndedBy, Phase, Quantity, Sampling, Step, Wait};
use sonde_message::native::{Manner, Memory};
use sonde_message::{
    Call, Capabilities, Comm, Completion, Messenger, Op, Request, Source, Status, Tag, Tagged,
};
use sonde_probe::library::{COLLECTIVE, Job, MARKER, Report, Task, begun};
use sonde_probe::{Error, Outcome, Result};

const LATENCY: Task = Task::Latency(Sampling::LATENCY);
const MESSAGE: Task = Task::Message(Sampling::MESSAGE);
const STREAM: Task = Task::Stream {
    window_ns: 1_000_000_000,
};

fn batches(window: u64) -> Task {
    Task::Batches {
        window,
        sampling: Sampling::MESSAGE,
    }
}

/// Few samples, soon over.
fn job(task: Task, sizes: &[u64]) -> Job {
    let mut job = Job::new(task, Wait::Block);
    job.sizes_bytes = sizes.to_vec();
    if let Some(sampling) = job.task.sampling_mut() {
        sampling.samples_min = sampling.samples_min.min(20);
        sampling.samples_max = sampling.samples_max.min(200);
    }
    job.verify = true;
    job
}

/// Runs it among `ranks` ranks, and reads rank 0's report as an orchestrator does.
fn outcome(job: &Job, ranks: usize) -> Result<Outcome> {
    let began_ns = begun().main_ns;
    let mut reports: Vec<Option<Report>> = Memory::run(ranks, |messenger| {
        let mut marks = begun();
        marks.open_ns = marks.main_ns + 1;
        job.run(messenger, marks).unwrap()
    });
    assert!(reports[1..].iter().all(Option::is_none));
    let report = reports[0].take().unwrap();
    let text = format!("{MARKER}\n{}\n", serde_json::to_string(&report).unwrap());
    let report = Report::find(&text).unwrap().unwrap();
    report.outcome(job, began_ns, ["a", "b"])
}

fn samples(outcome: &Outcome, at: usize, quantity: Quantity, phase: Phase) -> u64 {
    let of = |one: &&sonde_measure::Measurement| one.quantity == quantity && one.phase == phase;
    let found = outcome.sizes[at].measurements.iter().find(of);
    found.unwrap().series.count()
}

#[test]
fn latency_is_of_round_trips() {
    let job = job(LATENCY, &[1, 8, 100_000]);
    let outcome = outcome(&job, 3).unwrap();
    assert_eq!(outcome.sizes.len(), 3);
    for at in 0..3 {
        assert_eq!(samples(&outcome, at, Quantity::LatencyNs, Phase::Cold), 1);
        assert!(samples(&outcome, at, Quantity::LatencyNs, Phase::Warm) >= 20);
    }
    assert_eq!(outcome.evidence.library.library, Some("native".into()));
    assert_eq!(outcome.evidence.ranks.count, Some(3));
    assert!(outcome.interference.iter().all(|one| one.span_ns > 0));
    assert_eq!(outcome.interference[1].host, "b");
}

#[test]
fn message_is_rated_with_its_answer() {
    let job = job(MESSAGE, &[1, 4_096]);
    let outcome = outcome(&job, 2).unwrap();
    assert!(samples(&outcome, 1, Quantity::ThroughputBps, Phase::Warm) >= 10);
}

#[test]
fn rate_is_of_volleys() {
    let job = job(batches(16), &[1, 8, 3_000]);
    let outcome = outcome(&job, 2).unwrap();
    for at in 0..3 {
        assert!(samples(&outcome, at, Quantity::RatePerS, Phase::Warm) >= 10);
    }
    assert_eq!(outcome.evidence.ranks.burst_messages, Some(16));
}

#[test]
fn stream_is_rated_by_its_receiver() {
    let job = job(STREAM, &[1 << 20, 1_000]);
    let outcome = outcome(&job, 2).unwrap();
    assert_eq!(outcome.sizes.len(), 2);
    let rows: BTreeMap<Quantity, u64> = outcome.sizes[0]
        .measurements
        .iter()
        .map(|one| (one.quantity, one.series.min().unwrap()))
        .collect();
    assert_eq!(
        rows.keys().copied().collect::<Vec<_>>(),
        [
            Quantity::ThroughputBps,
            Quantity::CpuSrcNsPerByte,
            Quantity::CpuDstNsPerByte
        ]
    );
    assert!(rows.values().all(|value| *value > 0), "{rows:?}");
    assert!(outcome.sizes[0].slots.bytes.len() >= 20);
}

#[test]
fn a_stream_over_a_slow_line_keeps_little_under_way() {
    // A message takes 70 ms, and a grain 280: the whole window of 64 would be under way for more than four seconds.
    let job = job(STREAM, &[64 << 10]);
    let began_ns = begun().main_ns;
    let mut reports = Memory::run(2, |inner| {
        let mut marks = begun();
        marks.open_ns = marks.main_ns + 1;
        let mut messenger = Troubled {
            inner,
            received: 0,
            changed: None,
            each: Duration::from_millis(70),
        };
        job.run(&mut messenger, marks).unwrap()
    });
    let report = reports.swap_remove(0).unwrap();
    let outcome = report.outcome(&job, began_ns, ["a", "b"]).unwrap();
    assert_eq!(outcome.evidence.sizes[&65_536].window_messages, Some(8));
    let rate = &outcome.sizes[0].measurements[0];
    let bps = rate.series.min().unwrap();
    // The line's, which is never exceeded; sleeps are late on a busy machine.
    let line_bps = (64 << 10) * 8 * 1_000 / 70;
    assert!(bps <= line_bps && bps > line_bps / 2, "{bps} of {line_bps}");
}

#[test]
fn waits_follow_what_is_under_way() {
    let timeout = |task, size| job(task, &[size]).timeout();
    let plain = Duration::from_secs(10);
    assert_eq!(timeout(LATENCY, 1 << 20), plain);
    // Half a megabyte at 100 kbit/s, and two messages where these are more.
    let more = |bytes: u64| plain + Duration::from_nanos(bytes * 80_000);
    assert_eq!(timeout(STREAM, 64 << 10), more(512 << 10));
    assert_eq!(timeout(STREAM, 16 << 20), more(32 << 20));
}

#[test]
fn startup_has_steps() {
    let job = job(Task::Startup {}, &[8]);
    let outcome = outcome(&job, 2).unwrap();
    let steps: Vec<Option<Step>> = outcome.sizes[0]
        .measurements
        .iter()
        .map(|one| one.step)
        .collect();
    for step in [
        None,
        Some(Step::Spawn),
        Some(Step::Init),
        Some(Step::First),
        Some(Step::Second),
    ] {
        assert!(steps.contains(&step), "{steps:?}");
    }
}

#[test]
fn collective_calls_are_timed_and_checked() {
    for kind in [
        "barrier",
        "broadcast",
        "reduce",
        "allreduce",
        "gather",
        "scatter",
        "allgather",
        "alltoall",
        "scan",
    ] {
        for ranks in [2, 5] {
            let task = Task::Collective {
                kind: kind.into(),
                algorithm: None,
                sampling: COLLECTIVE,
            };
            let mut job = job(task, &[1, 1_000]);
            let sampling = job.task.sampling_mut().unwrap();
            (sampling.samples_min, sampling.samples_max) = (5, 5);
            let outcome = outcome(&job, ranks).unwrap();
            for size in &outcome.sizes {
                let warm = &size.measurements[1];
                assert_eq!(warm.quantity, Quantity::CollectiveNs);
                // Where a machine holds ranks up all the time there is a reason instead.
                let by = outcome.evidence.sizes[&size.size_bytes].ended_by.unwrap();
                let is_short = warm.reason.is_some() || by == EndedBy::Budget;
                assert!(warm.series.count() == 5 || is_short, "{by:?}");
                let entry = &size.measurements[2];
                assert_eq!(entry.quantity, Quantity::EntryLateNs);
                assert_eq!(entry.series.count(), warm.series.count());
                let most = entry.series.max().zip(warm.series.max());
                assert!(most.is_none_or(|(entry, call)| entry <= call / 2));
            }
        }
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused = |job: Job, said: &str| {
        let error = job.check().unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    };
    refused(job(LATENCY, &[]), "0 sizes");
    refused(job(batches(0), &[1]), "batch of 0");
    let task = Task::Collective {
        kind: "gossip".into(),
        algorithm: None,
        sampling: COLLECTIVE,
    };
    refused(job(task, &[1]), "`gossip`");
    let alone = job(LATENCY, &[1]);
    let said = Memory::run(1, |messenger| {
        alone.run(messenger, begun()).unwrap_err().to_string()
    });
    assert!(said[0].contains("1 rank"), "{said:?}");
}

/// A library that changes a byte of one message that it receives, or gives large ones no sooner than a slow line would.
struct Troubled<'a> {
    inner: &'a mut Memory,
    received: u32,
    /// Which message is changed.
    changed: Option<u32>,
    /// What each message of a thousand bytes and more takes on the line.
    each: Duration,
}

impl Troubled<'_> {
    fn corrupt(&mut self, bytes: &mut [u8]) {
        if bytes.len() >= 1_000 {
            std::thread::sleep(self.each);
        }
        self.received += 1;
        if self.changed == Some(self.received) {
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
        }
    }
}

impl Messenger for Troubled<'_> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn rank(&self, comm: Comm) -> usize {
        self.inner.rank(comm)
    }
    fn size(&self, comm: Comm) -> usize {
        self.inner.size(comm)
    }
    fn send(
        &mut self,
        comm: Comm,
        to: usize,
        tag: Tag,
        payload: &[u8],
    ) -> sonde_message::Result<()> {
        self.inner.send(comm, to, tag, payload)
    }
    fn recv(
        &mut self,
        comm: Comm,
        from: Source,
        tag: Tagged,
        room: &mut [u8],
    ) -> sonde_message::Result<Status> {
        let status = self.inner.recv(comm, from, tag, room)?;
        self.corrupt(&mut room[..status.bytes]);
        Ok(status)
    }
    fn exchange(
        &mut self,
        comm: Comm,
        ops: &mut [Op<'_>],
        statuses: &mut [Status],
    ) -> sonde_message::Result<()> {
        self.inner.exchange(comm, ops, statuses)
    }
    fn isend(
        &mut self,
        comm: Comm,
        to: usize,
        tag: Tag,
        payload: Vec<u8>,
    ) -> sonde_message::Result<Request> {
        self.inner.isend(comm, to, tag, payload)
    }
    fn irecv(
        &mut self,
        comm: Comm,
        from: Source,
        tag: Tagged,
        room: Vec<u8>,
    ) -> sonde_message::Result<Request> {
        self.inner.irecv(comm, from, tag, room)
    }
    fn test(
        &mut self,
        request: Request,
    ) -> sonde_message::Result<std::result::Result<Completion, Request>> {
        self.inner.test(request)
    }
    fn wait(&mut self, request: Request) -> sonde_message::Result<Completion> {
        let mut done = self.inner.wait(request)?;
        let bytes = done.status.bytes.min(done.buffer.len());
        self.corrupt(&mut done.buffer[..bytes]);
        Ok(done)
    }
    fn iprobe(
        &mut self,
        comm: Comm,
        from: Source,
        tag: Tagged,
    ) -> sonde_message::Result<Option<Status>> {
        self.inner.iprobe(comm, from, tag)
    }
    fn split(
        &mut self,
        comm: Comm,
        colour: Option<u32>,
        key: i32,
    ) -> sonde_message::Result<Option<Comm>> {
        self.inner.split(comm, colour, key)
    }
    fn collective(&mut self, comm: Comm, call: &mut Call<'_>) -> sonde_message::Result<bool> {
        self.inner.collective(comm, call)
    }
    fn progress(&mut self) -> sonde_message::Result<()> {
        self.inner.progress()
    }
    fn facts(&self) -> sonde_message::Result<sonde_measure::Library> {
        self.inner.facts()
    }
    fn abort(&mut self, why: &str) {
        self.inner.abort(why);
    }
    fn finish(&mut self) -> sonde_message::Result<()> {
        self.inner.finish()
    }
}

#[test]
fn a_changed_byte_is_seen() {
    for task in [LATENCY, batches(4), STREAM] {
        let job = job(task, &[64]);
        let said = std::sync::Mutex::new(String::new());
        let all = Memory::with(
            2,
            Manner {
                wait: Wait::Block,
                timeout: Duration::from_millis(500),
            },
        );
        std::thread::scope(|scope| {
            for (rank, mut inner) in all.into_iter().enumerate() {
                let (job, said) = (&job, &said);
                // Rank 0 waits for an answer that never comes; rank 1 says why.
                let thread = scope.spawn(move || {
                    let mut messenger = Troubled {
                        inner: &mut inner,
                        received: 0,
                        changed: (rank == 1).then_some(10),
                        each: Duration::ZERO,
                    };
                    job.run(&mut messenger, begun()).map(drop)
                });
                if rank == 1 {
                    let error = thread.join().unwrap().unwrap_err();
                    assert!(matches!(error, Error::Integrity(_)), "{error}");
                    *said.lock().unwrap() = error.to_string();
                }
            }
        });
        let said = said.into_inner().unwrap();
        assert!(said.contains("byte 63 of message"), "{said}");
    }
}
