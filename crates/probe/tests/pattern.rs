//! Patterns between agents that are processes, over loopback: every kind of flow, strangers, replay, and a worker that dies.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::agents::{Agent, HERE, SOON};
use sonde_measure::Knobs;
use sonde_probe::pattern::{Due, Go, Join, Kind, OutgoingFlow, Went, What};
use sonde_probe::{Answer, Request};
use sonde_sys::clock::monotonic_ns;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const MS: u64 = 1_000_000;

fn join(agent: &mut Agent) -> SocketAddr {
    let request = Join {
        peers: vec![HERE.into()],
        bind: HERE.into(),
        token: TOKEN.into(),
        knobs: Knobs::default(),
        timeout_ns: 5_000 * MS,
    };
    agent.link.send(&Request::Join(request)).unwrap();
    match agent.link.answer("its data port", SOON).unwrap() {
        Answer::Serving { port } => SocketAddr::new(HERE.into(), port),
        other => panic!("{other:?}"),
    }
}

fn go(leaving: Vec<OutgoingFlow>, coming: Vec<Due>, settle_ms: u64) -> Go {
    Go {
        start_ns: monotonic_ns() + settle_ms * MS,
        lead_ns: 20 * MS,
        window_ns: 200 * MS,
        late_max_ns: 5_000 * MS,
        gap_ns: MS,
        samples_max: 50,
        log_max: 50,
        leaving,
        coming,
    }
}

fn went(agent: &mut Agent) -> Went {
    match agent.link.answer("its flows", SOON).unwrap() {
        Answer::Went(went) => went,
        other => panic!("{other:?}"),
    }
}

fn stop(agent: &mut Agent) -> u64 {
    agent.link.send(&Request::Stop {}).unwrap();
    match agent.link.answer("the end", SOON).unwrap() {
        Answer::Left { refused } => refused,
        other => panic!("{other:?}"),
    }
}

/// Rounds of flows among agents; each with what every host saw.
fn rounds(hosts: usize, rounds: &[Vec<(usize, usize, What)>]) -> Vec<Vec<Went>> {
    let mut agents: Vec<Agent> = (0..hosts).map(|n| Agent::start(&format!("h{n}"))).collect();
    let peers: Vec<SocketAddr> = agents.iter_mut().map(join).collect();
    let mut flow = 0;
    let all = rounds
        .iter()
        .map(|round| {
            let mut parts: BTreeMap<usize, (Vec<OutgoingFlow>, Vec<Due>)> = BTreeMap::new();
            for (src, dst, what) in round {
                flow += 1;
                let (what, peer) = (*what, peers[*dst]);
                parts
                    .entry(*src)
                    .or_default()
                    .0
                    .push(OutgoingFlow { flow, peer, what });
                parts.entry(*dst).or_default().1.push(Due { flow, what });
            }
            let asks: Vec<_> = parts.into_iter().collect();
            let start_ns = monotonic_ns() + 150 * MS;
            for (host, (leaving, coming)) in &asks {
                let mut go = go(leaving.clone(), coming.clone(), 0);
                go.start_ns = start_ns;
                agents[*host].link.send(&Request::Go(go)).unwrap();
            }
            asks.iter()
                .map(|(host, _)| went(&mut agents[*host]))
                .collect()
        })
        .collect();
    for agent in &mut agents {
        assert_eq!(stop(agent), 0, "nobody was turned away");
    }
    all
}

const fn what(kind: Kind, size_bytes: u64) -> What {
    What { kind, size_bytes }
}

#[test]
fn every_kind_of_flow_goes_in_one_session() {
    let stream = what(Kind::Stream, 65_536);
    let ring = |what| vec![(0, 1, what), (1, 2, what), (2, 0, what)];
    let all = rounds(
        3,
        &[
            ring(stream),
            ring(what(Kind::Latency, 1)),
            ring(what(Kind::LatencyUdp, 700)),
            ring(what(Kind::Exchange, 10_000)),
            vec![
                (1, 0, stream),
                (2, 0, stream),
                (2, 0, what(Kind::Latency, 1)),
            ],
        ],
    );
    for round in &all {
        for host in round {
            let left = host.left.iter().filter_map(|one| one.failure.as_ref());
            let came = host.came.iter().filter_map(|one| one.failure.as_ref());
            assert_eq!(left.chain(came).next(), None);
            assert!(host.others_cpu_ns.is_some() && host.refused == 0);
        }
    }
    for host in &all[0] {
        let window = host.came[0].window.unwrap();
        assert!(
            window.bytes > 0 && window.bps > 0 && window.window_ns >= 150 * MS,
            "{window:?}"
        );
        assert!(host.came[0].bytes <= host.left.iter().map(|one| one.bytes).max().unwrap() * 1_000);
        assert!(host.left[0].counts.segments.is_some_and(|count| count > 0));
    }
    // What left one host came to another, byte by byte, where no deadline cut it off.
    for (at, next) in [(0, 1), (1, 2), (2, 0)] {
        let (sent, came) = (all[0][at].left[0].bytes, all[0][next].came[0].bytes);
        assert!(came <= sent && came > 0, "{came} of {sent}");
    }
    for kind in [1, 2] {
        for host in &all[kind] {
            let trips = &host.left[0].trips;
            assert!((1..=50).contains(&trips.count()), "{}", trips.count());
            assert!(trips.min().unwrap() > 0 && host.left[0].lost == 0);
        }
    }
    for host in &all[3] {
        assert!((1..=50).contains(&host.came[0].steps.count()));
        assert_eq!(host.came[0].bytes % 10_000, 0);
    }
    // Two streams and one that asks, at once.
    assert_eq!(all[4][0].came.len(), 3);
    assert!(all[4][2].left[1].trips.count() > 0);
}

/// What a stranger says, and whether it is refused.
fn is_turned_away(to: SocketAddr, said: &[u8]) -> bool {
    let mut stream = TcpStream::connect(to).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(8)))
        .unwrap();
    stream.write_all(said).unwrap();
    let mut answer = [0; 3];
    !matches!(stream.read(&mut answer), Ok(count @ 1..) if count > 0)
}

fn hello(token: &str, flow: u64) -> Vec<u8> {
    [token.as_bytes(), &flow.to_be_bytes()[..], &[0, 0][..]].concat()
}

#[test]
fn strangers_are_turned_away_and_change_nothing() {
    let (mut client, mut server) = (Agent::start("h1"), Agent::start("h2"));
    let (_, peer) = (join(&mut client), join(&mut server));
    let latency = what(Kind::Latency, 8);
    let due = Due {
        flow: 7,
        what: latency,
    };
    let way = OutgoingFlow {
        flow: 7,
        peer,
        what: latency,
    };
    let mut ask = go(vec![way], vec![], 1_500);
    server
        .link
        .send(&Request::Go(Go {
            leaving: vec![],
            coming: vec![due],
            ..ask.clone()
        }))
        .unwrap();
    // Nonsense, another token, and a slow one that says nothing.
    let silent = TcpStream::connect(peer).unwrap();
    assert!(is_turned_away(peer, &[0xff; 64]));
    assert!(is_turned_away(peer, &hello(&"x".repeat(32), 7)));
    client.link.send(&Request::Go(ask.clone())).unwrap();
    let (one, other) = (went(&mut client), went(&mut server));
    assert_eq!(
        (one.left[0].failure.clone(), other.came[0].failure.clone()),
        (None, None)
    );
    assert!(one.left[0].trips.count() > 0 && other.refused >= 2);
    drop(silent);
    // Replay: the same hello again, for a flow of an earlier round, is not let in.
    let due = Due {
        flow: 8,
        what: latency,
    };
    ask.start_ns = monotonic_ns() + 1_500 * MS;
    ask.leaving = vec![OutgoingFlow {
        flow: 8,
        peer,
        what: latency,
    }];
    server
        .link
        .send(&Request::Go(Go {
            leaving: vec![],
            coming: vec![due],
            ..ask.clone()
        }))
        .unwrap();
    client.link.send(&Request::Go(ask)).unwrap();
    let mut again = TcpStream::connect(peer).unwrap();
    again.write_all(&hello(TOKEN, 7)).unwrap();
    let mut twice = TcpStream::connect(peer).unwrap();
    twice.write_all(&hello(TOKEN, 8)).unwrap();
    let (one, other) = (went(&mut client), went(&mut server));
    // Either ours or the one with our token came first; both cannot be in.
    let (left, came) = (&one.left[0], &other.came[0]);
    assert!(
        left.failure.is_none() || came.bytes == 0,
        "{left:?} {came:?}"
    );
    stop(&mut client);
    assert!(stop(&mut server) >= 3);
}

/// Two at a time, and then nobody: one that comes while the other is taken waits for nobody.
#[test]
fn who_speaks_is_judged_at_once() {
    let mut server = Agent::start("h1");
    let peer = join(&mut server);
    let wrong = hello(&"x".repeat(32), 7);
    let both = std::sync::Barrier::new(2);
    let is_late = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    both.wait();
                    if is_late.load(Relaxed) {
                        return;
                    }
                    let begin = std::time::Instant::now();
                    let is_sound = is_turned_away(peer, &wrong);
                    if !is_sound || begin.elapsed() > Duration::from_millis(1_500) {
                        is_late.store(true, Relaxed);
                    }
                }
            });
        }
    });
    assert!(!is_late.into_inner());
    assert_eq!(stop(&mut server), 4_000);
}

#[test]
fn who_does_not_come_is_told_and_others_go_on() {
    let (mut client, mut server) = (Agent::start("h1"), Agent::start("h2"));
    let (_, peer) = (join(&mut client), join(&mut server));
    let stream = what(Kind::Stream, 1_000);
    let due = |flow| Due { flow, what: stream };
    let way = OutgoingFlow {
        flow: 1,
        peer,
        what: stream,
    };
    let ask = go(vec![way], vec![], 400);
    let both = Go {
        leaving: vec![],
        coming: vec![due(1), due(2)],
        ..ask.clone()
    };
    server.link.send(&Request::Go(both)).unwrap();
    client.link.send(&Request::Go(ask)).unwrap();
    let (one, other) = (went(&mut client), went(&mut server));
    assert_eq!(one.left[0].failure, None);
    assert_eq!(other.came[0].failure, None);
    assert!(other.came[0].window.unwrap().bytes > 0);
    let why = other.came[1].failure.clone().unwrap();
    assert!(why.contains("did not connect before the start"), "{why}");
    // A round that cannot be ends the worker, and the agent says why.
    let none = go(vec![], vec![], 10);
    client.link.send(&Request::Go(none)).unwrap();
    let error = client
        .link
        .answer("its flows", SOON)
        .unwrap_err()
        .to_string();
    assert!(error.contains("a number of flows of 0"), "{error}");
    // It takes part again, with a fresh worker.
    join(&mut client);
    assert_eq!((stop(&mut client), stop(&mut server)), (0, 0));
}
