//! Hostile peers of a running data port: whatever strangers do, the conversation of the peer that holds the token gives all its
//! samples, and those who were turned away are counted.
//!
//! Each attack is made alone, so that what it changes is seen; then all at once; then by thousands while it measures
//! (`SONDE_TESTS=long`: 10,000 at each port). The first kind of stranger has the peer's address and one of its ports; thousands come
//! from where they may, and none of these is read or answered.

use crate::agents;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::agents::{Agent, SOON, measure, sampled, samples, serve};
use sonde_channel::{CONTROL, Options, Tcp};
use sonde_measure::{Path, Phase, Probe, Procedure, Quantity, Sampling, Spec, Wait};
use sonde_probe::{Answer, Measured, Served};

const SAMPLES: u64 = 300;

/// The spec under attack: two sizes, so that strangers have a pause between two visits too.
fn spec(path: Path) -> Spec {
    Spec {
        sizes_bytes: vec![64, 1_000],
        verify: true,
        timeout_ns: 8_000_000_000,
        ..samples(path, SAMPLES)
    }
}

fn hello(token: &str, spec: &Spec) -> Vec<u8> {
    let hello = serde_json::json!({"hello": {"token": token, "spec": spec, "visit": {"size": 0, "last": true}}});
    hello.to_string().into_bytes()
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes(), body].concat()
}

fn datagram(body: &[u8]) -> Vec<u8> {
    [CONTROL.as_slice(), body].concat()
}

/// Connects as one who has guessed a port of the conversation's first connection, so that he is heard.
fn connect(peer: SocketAddr) -> TcpStream {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let ports = sonde_probe::fuzz::ports("right", 0);
    for _ in 0..ports.len() {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let options = Options {
            source_port: ports[next % ports.len()],
            ..Options::new(Wait::Block)
        };
        // Another test may have the port.
        let Ok(tcp) = Tcp::connect(peer, options) else {
            continue;
        };
        let stream = TcpStream::from(tcp.as_fd().try_clone_to_owned().unwrap());
        stream.set_read_timeout(Some(SOON)).unwrap();
        return stream;
    }
    panic!("all ports are taken");
}

/// A stranger by TCP; what it returns is kept open while the peer measures.
type Stranger = fn(SocketAddr, &Spec) -> Vec<TcpStream>;

/// What strangers do by TCP, by name, and whether each is one that is turned away for sure before the peer comes.
const BY_TCP: [(&str, Stranger); 10] = [
    ("a wrong token", |peer, spec| {
        let mut stream = connect(peer);
        stream.write_all(&framed(&hello("wrong", spec))).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        assert!(
            String::from_utf8_lossy(&said).contains("refused"),
            "{said:?}"
        );
        vec![]
    }),
    ("the hello of another conversation", |peer, spec| {
        // What was overheard elsewhere: another token, and other spec.
        let other = Spec {
            sizes_bytes: vec![1],
            ..spec.clone()
        };
        let mut stream = connect(peer);
        stream
            .write_all(&framed(&hello(&"0".repeat(32), &other)))
            .unwrap();
        vec![stream]
    }),
    ("an end at once", |peer, _| {
        drop(connect(peer));
        vec![]
    }),
    ("half a length, then an end", |peer, _| {
        connect(peer).write_all(&[0, 0]).unwrap();
        vec![]
    }),
    ("half a hello, then an end", |peer, spec| {
        let whole = framed(&hello("wrong", spec));
        connect(peer).write_all(&whole[..whole.len() / 2]).unwrap();
        vec![]
    }),
    ("the greatest length", |peer, _| {
        let mut stream = connect(peer);
        stream.write_all(&[0xff; 4]).unwrap();
        vec![stream]
    }),
    ("a request of the web", |peer, _| {
        let mut stream = connect(peer);
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: sonde\r\n\r\n")
            .unwrap();
        vec![stream]
    }),
    ("a frame of zeros", |peer, _| {
        let mut stream = connect(peer);
        stream.write_all(&framed(&[0; 10_000])).unwrap();
        vec![stream]
    }),
    ("silence, with the connection open", |peer, _| {
        vec![connect(peer)]
    }),
    ("one byte each 100 ms", |peer, spec| {
        let stream = connect(peer);
        let mut slow = stream.try_clone().unwrap();
        let whole = framed(&hello("wrong", spec));
        std::thread::spawn(move || {
            for byte in whole {
                if slow.write_all(&[byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        vec![stream]
    }),
];

/// What strangers send by UDP.
fn by_udp(spec: &Spec) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a wrong token", datagram(&hello("wrong", spec))),
        (
            "the hello of another conversation",
            datagram(&hello(
                &"0".repeat(32),
                &Spec {
                    sizes_bytes: vec![1],
                    ..spec.clone()
                },
            )),
        ),
        ("nothing", Vec::new()),
        ("one byte", vec![0]),
        ("a message of the size that is measured", vec![0; 64]),
        (
            "an end without a hello",
            datagram(br#"{"end":{"messages":1}}"#),
        ),
        ("a control datagram of nonsense", datagram(b"}{")),
        ("a control datagram without a word", datagram(b"")),
        ("a hello cut off", datagram(&hello("wrong", spec)[..100])),
        ("the longest datagram", vec![0x5a; 65_507]),
        ("deep nesting", datagram(&[b'['; 10_000])),
    ]
}

/// Measures as the peer with the token, and checks that nothing is missing.
fn measured(
    client: &mut Agent,
    server: &mut Agent,
    spec: &Spec,
    peer: SocketAddr,
    what: &str,
) -> Served {
    let answer = measure(&mut client.link, spec, peer, "right")
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let Answer::Measured(Measured { sizes, .. }) = answer else {
        panic!("{what}: {answer:?}");
    };
    assert_eq!(sizes.len(), 2, "{what}");
    for size in &sizes {
        let warm = size
            .measurements
            .iter()
            .find(|one| one.quantity == Quantity::LatencyNs && one.phase == Phase::Warm);
        assert_eq!(warm.unwrap().series.count(), SAMPLES, "{what}");
    }
    match server.link.answer("its report", SOON).unwrap() {
        Answer::Served(served) => {
            for (size, one) in sizes.iter().zip(&served.sizes) {
                assert_eq!(
                    (one.messages, one.bytes),
                    (size.round_trips, size.round_trips * size.size_bytes),
                    "{what}"
                );
            }
            served
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn strangers_by_tcp_change_nothing() {
    let (mut client, mut server) = agents::agents();
    let spec = spec(Path::Tcp);
    for (what, stranger) in BY_TCP {
        let peer = serve(&mut server.link, &spec, "right");
        let kept = stranger(peer, &spec);
        let served = measured(&mut client, &mut server, &spec, peer, what);
        assert_eq!(served.refused, 1, "{what}");
        drop(kept);
    }
    // One after the other at the same port.
    let peer = serve(&mut server.link, &spec, "right");
    let kept: Vec<TcpStream> = BY_TCP
        .iter()
        .flat_map(|(_, stranger)| stranger(peer, &spec))
        .collect();
    let served = measured(&mut client, &mut server, &spec, peer, "all");
    assert_eq!(served.refused, BY_TCP.len() as u64);
    drop(kept);
}

#[test]
fn strangers_by_udp_change_nothing() {
    let (mut client, mut server) = agents::agents();
    let spec = spec(Path::Udp);
    let attacks = by_udp(&spec);
    for (what, bytes) in &attacks {
        let peer = serve(&mut server.link, &spec, "right");
        let socket = agents::announced("right");
        socket.send_to(bytes, peer).unwrap();
        drop(socket);
        let served = measured(&mut client, &mut server, &spec, peer, what);
        assert_eq!(served.refused, 1, "{what}");
    }
    let peer = serve(&mut server.link, &spec, "right");
    for (_, bytes) in &attacks {
        // Another address of this host, too.
        for from in ["127.0.0.1", "127.0.0.2"] {
            let socket = UdpSocket::bind((from, 0)).unwrap();
            socket.send_to(bytes, peer).unwrap();
        }
    }
    let served = measured(&mut client, &mut server, &spec, peer, "all");
    assert_eq!(served.refused, 2 * attacks.len() as u64);
}

/// A hello that is sent again stays in the buffer behind a short message, which begins as it does.
#[test]
fn a_short_message_behind_a_hello_is_a_message() {
    let (_client, mut server) = agents::agents();
    let spec = Spec {
        sizes_bytes: vec![1],
        timeout_ns: 4_000_000_000,
        ..samples(Path::Udp, SAMPLES)
    };
    let peer = serve(&mut server.link, &spec, "right");
    let socket = agents::announced("right");
    socket.set_read_timeout(Some(SOON)).unwrap();
    let mut answer = [0; 2_000];
    for _ in 0..2 {
        let hello = datagram(&hello("right", &spec));
        socket.send_to(&hello, peer).unwrap();
        let (size, _) = socket.recv_from(&mut answer).unwrap();
        assert!(answer[..size].starts_with(CONTROL), "{size} bytes");
    }
    socket.send_to(&CONTROL[..1], peer).unwrap();
    let (size, _) = socket.recv_from(&mut answer).unwrap();
    assert_eq!(&answer[..size], &CONTROL[..1]);
}

/// Sends all kinds of datagrams and opens connections until it is told to stop.
fn flood(
    peer: SocketAddr,
    path: Path,
    spec: &Spec,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<u64> {
    let (stop, spec) = (Arc::clone(stop), spec.clone());
    std::thread::spawn(move || {
        let mut sent = 0;
        let socket = UdpSocket::bind(("127.0.0.2", 0)).unwrap();
        let attacks = by_udp(&spec);
        while !stop.load(Ordering::Relaxed) {
            match path {
                Path::Udp => {
                    for (_, bytes) in &attacks {
                        // The kernel may tell of a port that is closed by now.
                        sent += u64::from(socket.send_to(bytes, peer).is_ok());
                    }
                }
                _ => {
                    let stranger = TcpStream::connect_timeout(&peer, Duration::from_millis(50));
                    if let Ok(mut stranger) = stranger {
                        sent += 1;
                        // It may be closed already.
                        drop(stranger.write_all(b"GET / HTTP/1.1\r\n\r\n"));
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        sent
    })
}

#[test]
fn strangers_who_go_on_all_the_while_change_nothing() {
    for path in [Path::Tcp, Path::Udp] {
        let (mut client, mut server) = agents::agents();
        let spec = spec(path);
        let peer = serve(&mut server.link, &spec, "right");
        let stop = Arc::new(AtomicBool::new(false));
        let flood = flood(peer, path, &spec, &stop);
        // Some are there before the peer is.
        std::thread::sleep(Duration::from_millis(50));
        let served = measured(&mut client, &mut server, &spec, peer, path.name());
        stop.store(true, Ordering::Relaxed);
        let sent = flood.join().unwrap();
        assert!(
            served.refused > 0 && served.refused <= sent,
            "{} {sent}",
            served.refused
        );
    }
}

#[test]
fn a_stranger_before_a_cold_start_is_not_heard() {
    let (mut client, mut server) = agents::agents();
    let spec = Spec {
        sizes_bytes: vec![8],
        timeout_ns: 4_000_000_000,
        ..Spec::new(Probe::Startup, Path::Udp, sonde_measure::Wait::Block)
    };
    let peer = serve(&mut server.link, &spec, "right");
    let stranger = UdpSocket::bind(("127.0.0.2", 0)).unwrap();
    stranger
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    for size in [0, 1, 7, 8, 9, 1_000] {
        stranger.send_to(&vec![7; size], peer).unwrap();
        let answer = stranger.recv_from(&mut [0; 2_000]);
        assert!(answer.is_err(), "an answer to {size} bytes: {answer:?}");
    }
    let begin = Instant::now();
    measure(&mut client.link, &spec, peer, "right").unwrap();
    let Answer::Served(served) = server.link.answer("its report", SOON).unwrap() else {
        panic!("no report after {:?}", begin.elapsed());
    };
    assert_eq!(served.refused, 6);
}

/// Who connects first and says nothing was once the one that was answered: his silence was the start-up.
#[test]
fn a_silent_stranger_before_a_cold_start_takes_none_of_its_time() {
    let (mut client, mut server) = agents::agents();
    let spec = Spec {
        sizes_bytes: vec![8],
        timeout_ns: 8_000_000_000,
        ..Spec::new(Probe::Startup, Path::Tcp, sonde_measure::Wait::Block)
    };
    let peer = serve(&mut server.link, &spec, "right");
    let mut strangers: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(peer).unwrap()).collect();
    let begin = Instant::now();
    measure(&mut client.link, &spec, peer, "right").unwrap();
    // A stranger that was waited for takes its part of the timeout, a second.
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
    let Answer::Served(served) = server.link.answer("its report", SOON).unwrap() else {
        panic!("no report after {:?}", begin.elapsed());
    };
    assert_eq!(served.refused, 20);
    for stranger in &mut strangers {
        let said = stranger.read(&mut [0; 16]);
        assert!(!matches!(said, Ok(1..)), "{said:?}");
    }
}

/// The most that an agent and its worker may take while thousands come.
const MEMORY_BYTES: u64 = 16 << 20;
/// Of strangers that stay.
const KEPT: usize = 200;

fn is_long() -> bool {
    std::env::var_os("SONDE_TESTS").is_some_and(|tier| tier == "long")
}

/// The largest resident set of a process and of its children so far.
fn memory_bytes(agent: u32) -> u64 {
    let of = |pid: u32| -> Option<(u32, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse().ok()
        };
        Some((number("PPid:")? as u32, number("VmHWM:")? << 10))
    };
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let family = pids.filter_map(|pid: u32| Some((pid, of(pid)?)));
    let sizes = family.filter(|(pid, (parent, _))| *pid == agent || *parent == agent);
    sizes.map(|(_, (_, bytes))| bytes).max().unwrap_or(0)
}

/// Connects and says something of all kinds, from two addresses of this machine: how many came. None is answered.
fn thousands(peer: SocketAddr, count: u64, replayed: &[u8]) -> u64 {
    let mut kept = std::collections::VecDeque::new();
    for number in 0..count {
        let from = if number % 2 == 0 {
            "127.0.0.1"
        } else {
            "127.0.0.2"
        };
        let options = Options {
            source: Some(from.parse().unwrap()),
            ..Options::new(Wait::Block)
        };
        let tcp = Tcp::connect(peer, options).unwrap();
        let mut stranger = TcpStream::from(tcp.as_fd().try_clone_to_owned().unwrap());
        let words: &[u8] = match number % 4 {
            0 => b"",
            1 => b"GET / HTTP/1.1\r\n\r\n",
            2 => &replayed[..replayed.len() / 2],
            _ => replayed,
        };
        // It may be closed already.
        drop(stranger.write_all(words));
        kept.push_back(stranger);
        if kept.len() > KEPT {
            kept.pop_front().into_iter().for_each(is_unanswered);
        }
    }
    kept.into_iter().for_each(is_unanswered);
    count
}

fn is_unanswered(mut stranger: TcpStream) {
    stranger.set_read_timeout(Some(SOON)).unwrap();
    let said = stranger.read(&mut [0; 64]);
    assert!(
        !matches!(said, Ok(1..)),
        "a stranger was answered: {said:?}"
    );
}

/// The same by datagrams, a burst at a time, so that none is lost before it is read.
fn thousands_by_udp(peer: SocketAddr, count: u64, spec: &Spec) -> u64 {
    let attacks = by_udp(spec);
    let sockets = ["127.0.0.1", "127.0.0.2"].map(|from| UdpSocket::bind((from, 0)).unwrap());
    let mut sent = 0;
    while sent < count {
        for (_, bytes) in attacks.iter().filter(|(_, bytes)| bytes.len() < 2_000) {
            // The kernel tells that the port is another's by now.
            sent += u64::from(sockets[sent as usize % 2].send_to(bytes, peer).is_ok());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    for socket in sockets {
        socket.set_nonblocking(true).unwrap();
        let answer = socket.recv_from(&mut [0; 64]);
        assert!(answer.is_err(), "a stranger was answered: {answer:?}");
    }
    sent
}

/// For so long it is measured, so that all come meanwhile.
fn lasting(mut spec: Spec, span: Duration) -> Spec {
    let span_ns = span.as_nanos() as u64;
    spec.timeout_ns = 8_000_000_000;
    match &mut spec.procedure {
        Procedure::Stream { window_ns } => *window_ns = span_ns,
        _ => {
            return sampled(spec, |sampling| {
                *sampling = Sampling {
                    precision_per_mille: None,
                    budget_ns: span_ns,
                    ..sampling.up_to(1_000_000)
                };
            });
        }
    }
    spec
}

#[test]
fn thousands_while_it_measures_are_closed_unread_and_all_counted() {
    let (count, span) = match is_long() {
        true => (10_000, Duration::from_secs(12)),
        false => (1_000, Duration::from_secs(2)),
    };
    for probe in [Probe::Latency, Probe::Stream] {
        let (mut client, mut server) = agents::agents();
        let spec = lasting(Spec::new(probe, Path::Tcp, Wait::Block), span);
        let replayed = framed(&hello(&"0".repeat(32), &spec));
        let peer = serve(&mut server.link, &spec, "right");
        let attack = std::thread::spawn(move || thousands(peer, count, &replayed));
        measure(&mut client.link, &spec, peer, "right").unwrap();
        let memory = memory_bytes(server.child.id());
        let came = attack.join().expect("all came while it measured");
        let Answer::Served(served) = server.link.answer("its report", SOON).unwrap() else {
            panic!("no report");
        };
        assert_eq!(served.refused, came, "{probe:?}");
        assert!(memory < MEMORY_BYTES, "{probe:?}: {memory} bytes");
    }
}

#[test]
fn thousands_before_a_cold_start_are_closed_unread_and_all_counted() {
    let count = if is_long() { 10_000 } else { 1_000 };
    let (mut client, mut server) = agents::agents();
    let spec = Spec {
        sizes_bytes: vec![8],
        timeout_ns: 15_000_000_000,
        ..Spec::new(Probe::Startup, Path::Tcp, Wait::Block)
    };
    let peer = serve(&mut server.link, &spec, "right");
    let came = thousands(peer, count, &framed(&hello("wrong", &spec)));
    let memory = memory_bytes(server.child.id());
    let begin = Instant::now();
    measure(&mut client.link, &spec, peer, "right").unwrap();
    let Answer::Served(served) = server.link.answer("its report", SOON).unwrap() else {
        panic!("no report after {:?}", begin.elapsed());
    };
    assert_eq!(served.refused, came);
    assert!(memory < MEMORY_BYTES, "{memory} bytes");
}

#[test]
fn thousands_of_datagrams_are_passed_over_unanswered() {
    let count = if is_long() { 10_000 } else { 1_000 };
    for probe in [Probe::Latency, Probe::Startup] {
        let (mut client, mut server) = agents::agents();
        let spec = Spec {
            sizes_bytes: vec![64],
            timeout_ns: 15_000_000_000,
            ..Spec::new(probe, Path::Udp, Wait::Block)
        };
        let peer = serve(&mut server.link, &spec, "right");
        // Before the peer comes; what comes while it measures the kernel itself keeps from the peer's socket.
        let came = thousands_by_udp(peer, count, &spec);
        let memory = memory_bytes(server.child.id());
        measure(&mut client.link, &spec, peer, "right").unwrap();
        let Answer::Served(served) = server.link.answer("its report", SOON).unwrap() else {
            panic!("no report");
        };
        // What the kernel had no room for nobody has seen.
        let counted = came * 9 / 10..=came;
        assert!(
            counted.contains(&served.refused),
            "{probe:?}: {} of {came}",
            served.refused
        );
        assert!(memory < MEMORY_BYTES, "{probe:?}: {memory} bytes");
    }
}
