//! Every kind of conversation over loopback between two agents that are processes.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::agents::{
    self, Agent, HERE, SOON, agents, conversation, impatient, measure, sampled, samples, serve,
};
use crate::processes;
use sonde_channel::CONTROL;
use sonde_measure::{EndedBy, Fixed};
use sonde_measure::{Knobs, Method, Path, Wait};
use sonde_measure::{Measurement, Phase, Quantity, Step};
use sonde_measure::{Probe, Procedure, Sampling, Spec, Startup};
use sonde_probe::{Answer, Error, Outcome, Request, SizeOutcome, clock};
use sonde_stats::Parts;

fn have(spec: Spec) -> Outcome {
    let (mut client, mut server) = agents();
    conversation(spec)
        .run(&mut client.link, &mut server.link)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Why no further sample of the only size was taken.
fn ended_by(outcome: &Outcome) -> Option<EndedBy> {
    outcome.evidence.sizes[&only(outcome).size_bytes].ended_by
}

/// What was measured of the only size.
fn only(outcome: &Outcome) -> &SizeOutcome {
    assert_eq!(outcome.sizes.len(), 1);
    &outcome.sizes[0]
}

fn find(size: &SizeOutcome, quantity: Quantity, phase: Phase, step: Option<Step>) -> &Measurement {
    let wanted = (quantity, phase, step);
    let mut rows = size
        .measurements
        .iter()
        .filter(|row| (row.quantity, row.phase, row.step) == wanted);
    let row = rows.next().unwrap_or_else(|| panic!("no {wanted:?}"));
    assert!(rows.next().is_none(), "{wanted:?} twice");
    assert_eq!(row.series.is_empty(), row.reason.is_some(), "{wanted:?}");
    row
}

fn warm(size: &SizeOutcome, quantity: Quantity) -> Parts {
    Parts::from(find(size, quantity, Phase::Warm, None).series.clone())
}

/// The only sample of a row.
fn sample(row: &Measurement) -> u64 {
    let parts = Parts::from(row.series.clone());
    assert_eq!(parts.first.len(), 1, "{:?} {:?}", row.quantity, row.step);
    parts.first[0]
}

#[test]
fn startup_whole_is_one_time_for_each_size() {
    for (path, wait) in [
        (Path::Tcp, Wait::Block),
        (Path::Tcp, Wait::Poll),
        (Path::Udp, Wait::Block),
        (Path::Udp, Wait::Poll),
        (Path::Unix, Wait::Block),
        (Path::Shm, Wait::Block),
        (Path::Shm, Wait::Poll),
    ] {
        let outcome = have(Spec {
            sizes_bytes: vec![64, 1, 20_000],
            verify: true,
            ..Spec::new(Probe::Startup, path, wait)
        });
        let sizes: Vec<u64> = outcome.sizes.iter().map(|size| size.size_bytes).collect();
        assert_eq!(sizes, [64, 1, 20_000]);
        for size in &outcome.sizes {
            assert_eq!(size.measurements.len(), 1);
            let whole = find(size, Quantity::StartupNs, Phase::Cold, None);
            assert!(whole.reason.is_some() || sample(whole) > 0);
        }
        assert_eq!(outcome.interference[1].strangers, 0);
        let nodelay = outcome.evidence.src.socket.nodelay;
        assert_eq!(nodelay, (path == Path::Tcp).then_some(true));
    }
}

#[test]
fn startup_in_parts_has_its_steps_in_order() {
    for (path, circuits) in [
        (Path::Tcp, false),
        (Path::Tcp, true),
        (Path::Udp, true),
        (Path::Unix, false),
        (Path::Shm, false),
    ] {
        let outcome = have(Spec {
            sizes_bytes: vec![64],
            procedure: Procedure::Startup(Startup::Steps {
                idle_ns: 30_000_000,
                circuits,
            }),
            verify: true,
            ..Spec::new(Probe::Startup, path, Wait::Block)
        });
        let size = only(&outcome);
        let steps: Vec<Step> = size
            .measurements
            .iter()
            .map(|row| row.step.unwrap())
            .collect();
        let mut wanted = vec![Step::Neighbour, Step::Vc];
        wanted.extend((path != Path::Udp).then_some(Step::Connect));
        wanted.extend([Step::First, Step::Second, Step::Idle]);
        assert_eq!(steps, wanted);
        let of = |step| find(size, Quantity::StartupNs, Phase::Cold, Some(step));
        let reason = of(Step::Neighbour).reason.as_deref().unwrap();
        assert!(reason.contains("no right to flush"), "{reason}");
        match &of(Step::Vc).reason {
            Some(reason) => assert!(!circuits && reason.contains("no circuits"), "{reason}"),
            None => assert!(circuits && of(Step::Vc).series.count() == 1),
        }
        for step in &wanted[2..] {
            assert!(of(*step).reason.is_some() || sample(of(*step)) > 0);
        }
        // The pause is in no step.
        let sum: u64 = wanted[2..].iter().map(|step| sample(of(*step))).sum();
        assert!(outcome.interference[0].span_ns >= sum + 30_000_000);
    }
}

#[test]
fn latency_is_half_a_round_trip_and_its_first_is_apart() {
    for (path, wait, sizes) in [
        (Path::Tcp, Wait::Block, vec![1, 64, 1 << 20]),
        (Path::Tcp, Wait::Poll, vec![100_000]),
        (Path::Udp, Wait::Block, vec![65_507, 1, 1_472]),
        (Path::Udp, Wait::Poll, vec![1_000]),
        (Path::Unix, Wait::Block, vec![1, 100_000]),
        (Path::Shm, Wait::Block, vec![1, 64, 1 << 20]),
        (Path::Shm, Wait::Poll, vec![8, 100_000]),
    ] {
        let spec = Spec {
            sizes_bytes: sizes.clone(),
            knobs: Knobs {
                // Both kinds of socket by UDP.
                connected: path == Path::Tcp || wait == Wait::Block,
                ..Knobs::default()
            },
            verify: true,
            wait,
            ..sampled(samples(path, 500), |sampling| {
                (sampling.budget_ns, sampling.warmup) = (2_000_000_000, 20);
            })
        };
        let outcome = have(spec);
        assert_eq!(outcome.sizes.len(), sizes.len());
        for (size, bytes) in outcome.sizes.iter().zip(sizes) {
            assert_eq!(size.size_bytes, bytes);
            let first = find(size, Quantity::LatencyNs, Phase::Cold, Some(Step::First));
            let warm = warm(size, Quantity::LatencyNs);
            // A busy machine may use up the budget when both sides spin; a datagram may be lost.
            let count = warm.first.len();
            let ended_by = outcome.evidence.sizes[&bytes].ended_by.unwrap();
            let short = ended_by == EndedBy::Budget || path == Path::Udp;
            assert!(count == 500 || count > 0 && short, "{count}");
            assert!(first.reason.is_some() || sample(first) > 0);
            // The largest is the largest, and the smallest the smallest, of these very samples.
            assert_eq!(Some(&warm.max), warm.first.iter().max());
            assert_eq!(Some(&warm.min), warm.first.iter().min());
            let rows = if path == Path::Udp { 3 } else { 2 };
            assert_eq!(size.measurements.len(), rows);
        }
        let [src, dst] = &outcome.interference[..] else {
            panic!()
        };
        assert_eq!((src.host.as_str(), dst.host.as_str()), ("h1", "h2"));
        for side in [src, dst] {
            assert!(side.span_ns > 0 && side.thread_cpu_ns > 0 && side.cpus > 0);
            assert_eq!(side.retransmits.is_some(), path == Path::Tcp);
        }
        if wait == Wait::Block {
            assert!(src.voluntary_switches > 0, "{src:?}");
        }
    }
}

#[test]
fn latency_ends_by_precision_by_samples_or_by_budget() {
    let (mut client, mut server) = agents();
    let mut ended = |spec| {
        let outcome = conversation(spec).run(&mut client.link, &mut server.link);
        let outcome = outcome.unwrap();
        let count = warm(only(&outcome), Quantity::LatencyNs).buckets;
        let count: u64 = count.iter().map(|(_, count)| count).sum();
        (ended_by(&outcome).unwrap(), count)
    };
    assert_eq!(ended(samples(Path::Tcp, 1_234)), (EndedBy::Samples, 1_234));
    let (by, count) = ended(sampled(samples(Path::Tcp, 1_000_000), |sampling| {
        sampling.budget_ns = 50_000_000;
    }));
    assert!(by == EndedBy::Budget && count < 1_000_000);
    // Any median is known within its hundredfold.
    let (by, count) = ended(sampled(samples(Path::Tcp, 1_000_000), |sampling| {
        (sampling.samples_min, sampling.precision_per_mille) = (30, Some(100_000));
    }));
    assert_eq!((by, count), (EndedBy::Precision, 30));
}

#[test]
fn message_has_everything_in_its_time() {
    for (path, wait, sizes) in [
        (Path::Tcp, Wait::Block, vec![1_024, 4 << 20]),
        (Path::Tcp, Wait::Poll, vec![64 << 10]),
        (Path::Udp, Wait::Block, vec![1, 1_472, 60_000]),
        (Path::Unix, Wait::Poll, vec![64 << 10]),
        (Path::Shm, Wait::Block, vec![1, 4 << 20]),
    ] {
        let spec = Spec {
            sizes_bytes: sizes.clone(),
            procedure: Procedure::Message(Sampling::MESSAGE.up_to(50)),
            verify: true,
            wait,
            ..Spec::new(Probe::Message, path, wait)
        };
        let outcome = have(spec);
        for (size, bytes) in outcome.sizes.iter().zip(sizes) {
            assert_eq!(size.size_bytes, bytes);
            let warm = warm(size, Quantity::ThroughputBps);
            assert!((1..=50).contains(&warm.first.len()) && warm.min > 0);
            find(
                size,
                Quantity::ThroughputBps,
                Phase::Cold,
                Some(Step::First),
            );
            println!("{path:?} {wait:?} {bytes} B: at most {} bit/s", warm.max);
        }
    }
}

#[test]
fn message_takes_one_sample_at_least() {
    let outcome = have(Spec {
        sizes_bytes: vec![8 << 20],
        procedure: Procedure::Message(Sampling {
            budget_ns: 1,
            ..Sampling::MESSAGE
        }),
        ..Spec::new(Probe::Message, Path::Tcp, Wait::Block)
    });
    assert_eq!(warm(only(&outcome), Quantity::ThroughputBps).first.len(), 1);
    assert_eq!(ended_by(&outcome), Some(EndedBy::Budget));
}

#[test]
fn stream_tcp_is_rated_by_its_receiver() {
    let spec = Spec {
        sizes_bytes: vec![70_000],
        verify: true,
        knobs: Knobs {
            send_buffer_bytes: Some(200_000),
            ..Knobs::default()
        },
        ..Spec::new(Probe::Stream, Path::Tcp, Wait::Block)
    };
    let begin = Instant::now();
    let outcome = have(spec);
    println!("a stream of 1 s took {:?}", begin.elapsed());
    let size = only(&outcome);
    let one = |quantity| sample(find(size, quantity, Phase::Warm, None));
    assert!(one(Quantity::ThroughputBps) > 0);
    assert!(one(Quantity::CpuSrcNsPerByte) > 0 && one(Quantity::CpuDstNsPerByte) > 0);
    let busy = one(Quantity::BusyShare);
    assert!(busy > 0 && busy <= 1_000_000);
    for limited in [Quantity::RwndLimitedShare, Quantity::SndbufLimitedShare] {
        assert!(one(limited) <= busy);
    }
    one(Quantity::Retransmits);
    // The stream lasted at least its first second and its window.
    assert!(size.slots.bytes.len() >= 20);
    assert_eq!(size.measurements.len(), 7);
    let buffer = outcome.evidence.src.socket.send_buffer.unwrap();
    assert_eq!(buffer.granted_bytes, 200_000);
    // The sender's is its window, the receiver's the whole visit.
    let [src, dst] = &outcome.interference[..] else {
        panic!()
    };
    assert!(src.span_ns > 500_000_000 && dst.span_ns > src.span_ns);
}

#[test]
fn every_method_of_tcp_moves_a_stream() {
    for method in Path::Tcp.methods() {
        let spec = Spec {
            sizes_bytes: vec![300_000],
            verify: true,
            method: *method,
            ..Spec::new(Probe::Stream, Path::Tcp, Wait::Block)
        };
        let (mut client, mut server) = agents();
        let outcome = match conversation(spec).run(&mut client.link, &mut server.link) {
            Ok(outcome) => outcome,
            Err(error) if *method == Method::Uring && error.to_string().contains("io_uring") => {
                println!("skipped: {error}");
                continue;
            }
            Err(error) => panic!("{method}: {error}"),
        };
        let rate = sample(find(
            only(&outcome),
            Quantity::ThroughputBps,
            Phase::Warm,
            None,
        ));
        assert!(rate > 0);
        let copied = outcome.evidence.src.transfer.zerocopy_copied_share;
        assert_eq!(copied.is_some(), *method == Method::Zerocopy);
        assert!(
            copied.is_none_or(|share| share == Fixed(1_000)),
            "{copied:?}"
        );
    }
}

#[test]
fn round_trips_go_by_uring() {
    for (probe, wait) in [
        (Probe::Latency, Wait::Block),
        (Probe::Latency, Wait::Poll),
        (Probe::Message, Wait::Block),
    ] {
        let spec = Spec {
            sizes_bytes: vec![1, 100_000],
            verify: true,
            method: Method::Uring,
            ..sampled(Spec::new(probe, Path::Tcp, wait), |sampling| {
                (sampling.samples_min, sampling.samples_max) = (50, 200);
            })
        };
        let (mut client, mut server) = agents();
        match conversation(spec).run(&mut client.link, &mut server.link) {
            Ok(outcome) => {
                let quantity = match probe {
                    Probe::Message => Quantity::ThroughputBps,
                    _ => Quantity::LatencyNs,
                };
                for size in &outcome.sizes {
                    assert!(!warm(size, quantity).first.is_empty());
                }
            }
            Err(error) if error.to_string().contains("set up io_uring") => {
                println!("skipped: {error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn several_streams_share_a_window() {
    let spec = Spec {
        sizes_bytes: vec![70_000, 1_000],
        verify: true,
        knobs: Knobs {
            streams: 3,
            ..Knobs::default()
        },
        ..Spec::new(Probe::Stream, Path::Tcp, Wait::Block)
    };
    let outcome = have(spec);
    assert_eq!(outcome.sizes.len(), 2);
    for size in &outcome.sizes {
        let one = |quantity| sample(find(size, quantity, Phase::Warm, None));
        assert!(one(Quantity::ThroughputBps) > 0);
        assert!(one(Quantity::CpuSrcNsPerByte) > 0 && one(Quantity::CpuDstNsPerByte) > 0);
        assert!(one(Quantity::BusyShare) <= 1_000_000);
        assert!(size.slots.bytes.len() >= 20);
        let facts = &outcome.evidence.sizes[&size.size_bytes];
        for shares in [&facts.src_stream_shares, &facts.dst_stream_shares] {
            let shares = &shares.as_ref().unwrap().0;
            let shares: Vec<f64> = shares.iter().map(|share| share.value()).collect();
            let sum: f64 = shares.iter().sum();
            assert!(shares.len() == 3 && (sum - 1.0).abs() < 0.01, "{shares:?}");
            assert!(shares.iter().all(|share| *share > 0.0), "{shares:?}");
        }
    }
    // The threads' time, not that of the one that watches them.
    assert!(
        outcome
            .interference
            .iter()
            .all(|host| host.thread_cpu_ns > 10_000_000)
    );
}

#[test]
fn batches_of_datagrams_are_counted_one_by_one() {
    for method in [Method::Mmsg, Method::Gso] {
        let spec = Spec {
            sizes_bytes: vec![1_000],
            verify: true,
            method,
            knobs: Knobs {
                recv_buffer_bytes: Some(20_000),
                ..Knobs::default()
            },
            ..Spec::new(Probe::Stream, Path::Udp, Wait::Block)
        };
        let outcome = have(spec);
        let size = only(&outcome);
        let one = |quantity| sample(find(size, quantity, Phase::Warm, None));
        let lost = one(Quantity::LostShare);
        // The buffer holds less than a batch.
        assert!(lost > 0 && lost < 1_000_000, "{method}: {lost}");
        assert_eq!(one(Quantity::DuplicatedShare), 0);
        let [sent, received] = outcome
            .evidence
            .sides()
            .map(|side| side.transfer.datagrams_per_call);
        assert!(sent > Some(Fixed(20)), "{method}: {sent:?}");
        assert!(received.is_some());
    }
}

#[test]
fn an_answer_that_comes_late_was_not_lost() {
    let (mut client, mut server) = agents();
    let agent = server.child.id();
    let mut spec = samples(Path::Udp, 1_000_000);
    spec = sampled(spec, |sampling| sampling.budget_ns = 1_000_000_000);
    // After the warm-up the server stands still for longer than a ping is waited for.
    let pause = std::thread::spawn(move || {
        processes::soon("no worker came", || !processes::children(agent).is_empty());
        std::thread::sleep(Duration::from_millis(700));
        let workers = processes::children(agent);
        workers
            .iter()
            .for_each(|pid| processes::signal("-STOP", *pid));
        std::thread::sleep(Duration::from_millis(200));
        workers
            .iter()
            .for_each(|pid| processes::signal("-CONT", *pid));
    });
    let outcome = conversation(spec)
        .run(&mut client.link, &mut server.link)
        .unwrap();
    pause.join().unwrap();
    let lost = find(only(&outcome), Quantity::LostShare, Phase::Warm, None);
    assert_eq!(sample(lost), 0);
}

#[test]
fn stream_udp_accounts_for_every_datagram() {
    let (mut client, mut server) = agents();
    let spec = Spec {
        sizes_bytes: vec![1_472, 9_000],
        ..Spec::new(Probe::Stream, Path::Udp, Wait::Block)
    };
    let outcome = conversation(spec)
        .run(&mut client.link, &mut server.link)
        .unwrap();
    assert_eq!(outcome.sizes.len(), 2);
    for size in &outcome.sizes {
        let one = |quantity| sample(find(size, quantity, Phase::Warm, None));
        assert!(one(Quantity::ThroughputBps) > 0);
        let lost = one(Quantity::LostShare);
        assert!(lost < 1_000_000, "{lost}");
        assert_eq!(one(Quantity::DuplicatedShare), 0);
        one(Quantity::ReorderedShare);
        println!("udp {} B: {} millionths lost", size.size_bytes, lost);
    }
}

#[test]
fn segments_and_alignments_carry_every_kind() {
    for (method, align, verify) in [
        (Method::Segment, None, true),
        (Method::Segment, Some(1), false),
        (Method::Plain, Some(63), true),
    ] {
        for probe in [
            Probe::Startup,
            Probe::Latency,
            Probe::Message,
            Probe::Stream,
        ] {
            let knobs = Knobs {
                align,
                ..Knobs::default()
            };
            let sizes = match probe {
                Probe::Stream => vec![3 << 20],
                _ => vec![8, 48, 49, 5_000, 1 << 20],
            };
            let outcome = have(Spec {
                sizes_bytes: sizes.clone(),
                method,
                knobs,
                verify,
                ..sampled(Spec::new(probe, Path::Shm, Wait::Block), |sampling| {
                    (sampling.samples_min, sampling.samples_max) = (30, 30);
                })
            });
            assert_eq!(outcome.sizes.len(), sizes.len());
            let room = outcome.evidence.src.socket.send_buffer.unwrap();
            let room = room.wanted_bytes().unwrap();
            let is_room = room >= *sizes.iter().max().unwrap();
            assert_eq!(is_room, method == Method::Segment, "{probe:?} {room}");
            for row in outcome.sizes.iter().flat_map(|size| &size.measurements) {
                assert!(row.series.count() > 0, "{probe:?} {row:?}");
            }
        }
    }
}

#[test]
fn streams_within_one_machine_are_rated_by_their_receiver() {
    for (path, wait) in [
        (Path::Unix, Wait::Block),
        (Path::Shm, Wait::Block),
        (Path::Shm, Wait::Poll),
    ] {
        let outcome = have(Spec {
            sizes_bytes: vec![70_000],
            verify: true,
            ..Spec::new(Probe::Stream, path, wait)
        });
        let size = only(&outcome);
        let one = |quantity| sample(find(size, quantity, Phase::Warm, None));
        assert!(one(Quantity::ThroughputBps) > 0 && one(Quantity::CpuDstNsPerByte) > 0);
        assert_eq!(size.measurements.len(), 3);
    }
}

/// A relay of datagrams that loses every tenth from the client, once there were a hundred.
fn losing_relay(server: SocketAddr) -> SocketAddr {
    let near = UdpSocket::bind((HERE, 0)).unwrap();
    let far = agents::announced("t");
    far.connect(server).unwrap();
    let address = near.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 70_000];
        let timeout = Some(Duration::from_millis(1));
        near.set_read_timeout(timeout).unwrap();
        far.set_read_timeout(timeout).unwrap();
        let (mut client, mut count, mut idle) = (None, 0u64, 0);
        while idle < 3_000 {
            idle += 1;
            if let Ok((size, from)) = near.recv_from(&mut buffer) {
                (client, idle) = (Some(from), 0);
                count += 1;
                let kept = buffer.starts_with(CONTROL) || count < 100 || count % 10 != 0;
                if kept {
                    let _ = far.send(&buffer[..size]);
                }
            }
            while let (Ok(size), Some(client)) = (far.recv(&mut buffer), client) {
                let _ = near.send_to(&buffer[..size], client);
                idle = 0;
                if !buffer.starts_with(CONTROL) {
                    break;
                }
            }
        }
    });
    address
}

#[test]
fn lost_datagrams_are_counted_and_are_no_samples() {
    let (mut client, mut server) = agents();
    let spec = Spec {
        sizes_bytes: vec![64],
        ..sampled(samples(Path::Udp, 300), |sampling| sampling.warmup = 5)
    };
    let peer = losing_relay(serve(&mut server.link, &spec, "t"));
    let measured = match measure(&mut client.link, &spec, peer, "t").unwrap() {
        Answer::Measured(measured) => measured,
        other => panic!("{other:?}"),
    };
    let rows = &measured.sizes[0].measurements;
    let lost = rows.iter().find(|row| row.quantity == Quantity::LostShare);
    let lost = sample(lost.unwrap());
    let warm = rows.iter().find(|row| row.phase == Phase::Warm).unwrap();
    let warm = Parts::from(warm.series.clone());
    // A ping that was sent again after 50 ms is no sample; those before and after it are.
    assert!(
        (200..300).contains(&warm.first.len()),
        "{}",
        warm.first.len()
    );
    assert!((50_000..150_000).contains(&lost), "{lost}");
    assert!(warm.max < 25_000_000, "{}", warm.max);
}

#[test]
fn a_corrupted_message_is_an_error_that_says_where() {
    let mut client = Agent::start("h1");
    let port = std::net::TcpListener::bind((HERE, 0)).unwrap();
    let peer = port.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = port.accept().unwrap();
        let mut head = [0; 4];
        stream.read_exact(&mut head).unwrap();
        let mut hello = vec![0; u32::from_be_bytes(head) as usize];
        stream.read_exact(&mut hello).unwrap();
        let reply = sonde_probe::frame::encode(&serde_json::json!({"accepted": {}})).unwrap();
        stream.write_all(&reply).unwrap();
        let mut message = [0; 100];
        stream.read_exact(&mut message).unwrap();
        message[77] ^= 1;
        stream.write_all(&message).unwrap();
    });
    let spec = Spec {
        sizes_bytes: vec![100],
        verify: true,
        ..impatient(Probe::Latency, Path::Tcp)
    };
    let error = measure(&mut client.link, &spec, peer, "t").unwrap_err();
    let words = format!("agent h1: {peer}: byte 77 of message 0 (100 bytes)");
    assert!(error.to_string().contains(&words), "{error}");
    assert!(!error.lost());
    server.join().unwrap();
}

#[test]
fn clocks_and_facts_are_told() {
    let mut agent = Agent::start("h1");
    let record = clock::offset(&mut agent.link, 20).unwrap();
    // It is the same clock.
    assert!(
        record.offset_ns.unsigned_abs() <= record.bound_ns,
        "{record:?}"
    );
    let peer = Some(HERE.into());
    agent.link.send(&Request::Facts { peer }).unwrap();
    match agent.link.answer("its description", SOON).unwrap() {
        Answer::Facts { facts, .. } => assert_eq!(facts.interface.as_deref(), Some("lo")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn neighbours_are_forgotten_on_request() {
    let (mut client, mut server) = agents();
    let mut cold = conversation(Spec {
        sizes_bytes: vec![1, 64],
        procedure: Procedure::Startup(Startup::Steps {
            idle_ns: 1_000_000,
            circuits: false,
        }),
        ..Spec::new(Probe::Startup, Path::Udp, Wait::Block)
    });
    (cold.flush_client, cold.flush_server) = (Some("lo".into()), Some("lo".into()));
    match cold.run(&mut client.link, &mut server.link) {
        Ok(outcome) => {
            for size in &outcome.sizes {
                let step = Some(Step::Neighbour);
                let row = find(size, Quantity::StartupNs, Phase::Cold, step);
                let reason = row.reason.as_deref().unwrap();
                assert!(reason.contains("this host"), "{reason}");
            }
        }
        Err(Error::Agent { what, .. }) if what.contains("forget") => {
            println!("skipped: CAP_NET_ADMIN ({what})")
        }
        Err(error) => panic!("{error}"),
    }
    cold.flush_client = Some("nosuch0".into());
    let error = cold
        .run(&mut client.link, &mut server.link)
        .unwrap_err()
        .to_string();
    assert!(error.contains("nosuch0"), "{error}");
}

/// Whether frames can be had here.
fn frames() -> bool {
    let obstacle = sonde_sys::frames::obstacle();
    if let Some(why) = &obstacle {
        println!("skipped: {why}");
    }
    obstacle.is_none()
}

#[test]
fn packet_round_trips_and_messages_by_each_method() {
    if !frames() {
        return;
    }
    for method in [Method::Plain, Method::Ring] {
        for wait in [Wait::Block, Wait::Poll] {
            for probe in [Probe::Latency, Probe::Message] {
                let outcome = have(Spec {
                    sizes_bytes: vec![1, 1_400],
                    method,
                    verify: true,
                    ..sampled(Spec::new(probe, Path::Packet, wait), |sampling| {
                        *sampling = Sampling {
                            precision_per_mille: None,
                            ..sampling.up_to(30)
                        };
                    })
                });
                assert_eq!(outcome.sizes.len(), 2);
                for size in &outcome.sizes {
                    let quantity = match probe {
                        Probe::Latency => Quantity::LatencyNs,
                        _ => Quantity::ThroughputBps,
                    };
                    // How many answers come before their ping is sent again after 50 ms is the machine's.
                    let count = warm(size, quantity).first.len();
                    let lost = sample(find(size, Quantity::LostShare, Phase::Warm, None));
                    assert!((1..=30).contains(&count), "{count}, lost {lost}");
                    assert!(lost < 1_000_000, "{count}, lost {lost}");
                }
                let [src, dst] = outcome.evidence.sides().map(|side| &side.transfer);
                assert_eq!(src.interface, Some("lo".into()));
                let has_ring = dst.ring.is_some();
                assert_eq!(has_ring, method == Method::Ring);
            }
        }
    }
}

#[test]
fn packet_stream_accounts_for_every_frame() {
    if !frames() {
        return;
    }
    for method in [Method::Plain, Method::Ring] {
        let outcome = have(Spec {
            sizes_bytes: vec![1_400],
            method,
            ..Spec::new(Probe::Stream, Path::Packet, Wait::Block)
        });
        let size = only(&outcome);
        assert!(sample(find(size, Quantity::ThroughputBps, Phase::Warm, None)) > 0);
        let lost = sample(find(size, Quantity::LostShare, Phase::Warm, None));
        assert!(lost < 1_000_000, "{lost}");
        assert_eq!(
            sample(find(size, Quantity::DuplicatedShare, Phase::Warm, None)),
            0
        );
    }
}

#[test]
fn packet_refuses_what_fits_in_no_frame_and_start_ups() {
    if !frames() {
        return;
    }
    let (mut client, mut server) = agents();
    let large = Spec {
        sizes_bytes: vec![66_000],
        ..Spec::new(Probe::Latency, Path::Packet, Wait::Block)
    };
    let error = conversation(large).run(&mut client.link, &mut server.link);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("66000 bytes does not fit in a frame"),
        "{error}"
    );
    let start = Spec::new(Probe::Startup, Path::Packet, Wait::Block);
    let error = start.check().unwrap_err().to_string();
    assert!(error.contains("frames have no start-up"), "{error}");
}
