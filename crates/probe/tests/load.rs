//! Loads between agents that are processes: what is planned, sent and received, and how they end.

use std::time::{Duration, Instant};

use crate::agents::agents;
use sonde_probe::load::{Load, LoadCounts, LoadFlow, Promised, Steer};
use sonde_probe::{AgentLink, Answer, Request};
use sonde_sys::noise::measured;

const TOKEN: &str = "00112233445566778899aabbccddeeff";
const TIMEOUT: Duration = Duration::from_secs(10);

fn promise(link: &mut AgentLink, sinks: Vec<Promised>) -> u16 {
    let load = Load {
        token: TOKEN.into(),
        bind: "127.0.0.1".parse().unwrap(),
        sinks,
        lease_ns: 5_000_000_000,
    };
    link.send(&Request::Load(load)).unwrap();
    match link.answer("its sink", TIMEOUT).unwrap() {
        Answer::Serving { port } => port,
        other => panic!("{other:?}"),
    }
}

fn steer(link: &mut AgentLink, steer: Steer) -> LoadCounts {
    link.send(&Request::Steer(steer)).unwrap();
    match link.answer("its counts", TIMEOUT).unwrap() {
        Answer::Loading(counts) | Answer::Loaded(counts) => counts,
        other => panic!("{other:?}"),
    }
}

fn flow(port: u16, law: &str) -> LoadFlow {
    LoadFlow {
        number: 3,
        to: ([127, 0, 0, 1], port).into(),
        size_bytes: 1_000,
        law: law.into(),
        rho: (1, 10),
        // 100 Mb/s: 1,066 bytes take 85 us.
        unit_ps: 85_280_000,
        seed: 5,
        lasts_ns: 400_000_000,
    }
}

#[test]
fn what_is_planned_is_sent_and_received() {
    measured(|| {
        for law in ["constant", "poisson", "on-off:20"] {
            let (mut from, mut to) = agents();
            let promised = Promised {
                number: 3,
                size_bytes: 1_000,
            };
            let port = promise(&mut to.link, vec![promised]);
            promise(&mut from.link, vec![]);
            let flows = vec![flow(port, law)];
            steer(&mut from.link, Steer::Begin { flows });
            // A stranger's datagrams change nothing but their own count.
            let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..20 {
                stranger.send_to(&[9; 1_000], ("127.0.0.1", port)).unwrap();
            }
            std::thread::sleep(Duration::from_millis(600));
            let sent = steer(&mut from.link, Steer::Halt {}).sent[0].clone();
            std::thread::sleep(Duration::from_millis(100));
            let end = steer(&mut to.link, Steer::End {});
            assert_eq!(steer(&mut from.link, Steer::End {}).sent[0].sent, sent.sent);
            assert!(
                sent.sent > 0 && sent.sent <= sent.planned,
                "{law}: {sent:?}"
            );
            assert_eq!(end.refused, 20);
            let received = end.received[0];
            assert!(
                received.received <= sent.sent && received.again == 0,
                "{law}: {received:?} of {sent:?}"
            );
            // However late a busy machine lets the sender in: what is late is sent all the same.
            assert!(sent.sent * 10 >= sent.planned * 9, "{law}: {sent:?}");
            assert!(
                received.received * 10 >= sent.sent * 9,
                "{law}: {received:?} of {sent:?}"
            );
            // Both agents can be used again.
            from.link.send(&Request::Clock {}).unwrap();
            assert!(matches!(
                from.link.answer("its clock", TIMEOUT),
                Ok(Answer::Clock { .. })
            ));
        }
    });
}

#[test]
fn a_load_ends_with_its_orchestrator() {
    let (mut from, mut to) = agents();
    let promised = Promised {
        number: 3,
        size_bytes: 1_000,
    };
    let port = promise(&mut to.link, vec![promised]);
    promise(&mut from.link, vec![]);
    let forever = LoadFlow {
        lasts_ns: 3_600_000_000_000,
        ..flow(port, "constant")
    };
    steer(
        &mut from.link,
        Steer::Begin {
            flows: vec![forever],
        },
    );
    // The end of its input ends the agent and the worker below it.
    drop(from);
    std::thread::sleep(Duration::from_millis(300));
    let then = steer(&mut to.link, Steer::Tell {}).received[0].received;
    std::thread::sleep(Duration::from_millis(300));
    let now = steer(&mut to.link, Steer::Tell {}).received[0].received;
    assert_eq!(then, now, "nothing comes any more");
}

#[test]
fn a_load_that_nobody_steers_ends() {
    let (mut from, _to) = agents();
    let load = Load {
        token: TOKEN.into(),
        bind: "127.0.0.1".parse().unwrap(),
        sinks: vec![],
        lease_ns: 100_000_000,
    };
    from.link.send(&Request::Load(load)).unwrap();
    from.link.answer("its sink", TIMEOUT).unwrap();
    let began = Instant::now();
    let end = from.link.answer("its end", TIMEOUT).unwrap_err();
    assert!(end.to_string().contains("given up"), "{end}");
    assert!(began.elapsed() < TIMEOUT / 2);
}
