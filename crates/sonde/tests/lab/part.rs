//! The programs that traffic tests run on hosts: this test program, started again with its part in the environment.
//!
//! Model:   datagrams carry their number, then one byte repeated that follows from it; a stream's bytes follow from their
//!          place. Results are a line `part: name=value …` on standard output.

use crate::lab::{Outcome, Stage, report};
use serde_json::Value;
use sonde_sys::socket::{set_recv_buffer, set_send_buffer};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

/// The variable that holds a part and its arguments.
pub const PART: &str = "SONDE_TEST_PART";
const PORT: u16 = 7_777;
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 77);
const BUFFER: usize = 4 << 20;

/// Defines the shell functions `part` (a part with arguments) and `wait_for FILE` (its first line is there), and runs `script`.
pub fn traffic(stage: &Stage, options: &[&str], script: &str) -> (Outcome, Value) {
    ended(stage, options, script, 0)
}

/// The same of a command that ends with this code.
pub fn ended(stage: &Stage, options: &[&str], script: &str, code: i32) -> (Outcome, Value) {
    // Hosts do not see the machine's /tmp, where this may lie.
    let program = stage.copy_in(&std::env::current_exe().unwrap());
    let functions = "part() { SONDE_TEST_PART=\"$*\" $PROGRAM --ignored --exact part::play --nocapture; }
        on() { host=$1; shift; SONDE_TEST_PART=\"$*\" sonde lab exec $host -- $PROGRAM --ignored --exact part::play --nocapture; }
        wait_for() { for i in $(seq 1000); do grep -q listening $1 2>/dev/null && return; sleep 0.02; done; echo not listening; exit 3; }\n";
    let script = format!("{functions}{script}");
    let written = stage.path("report.json");
    let call = stage.run(
        &[options, &["--report", &written]].concat(),
        &["sh", "-c", &script],
    );
    let outcome = call.env("PROGRAM", program).limit(120).expect(code);
    (outcome, report(&written))
}

/// Not a test: the way in for the hosts' programs, which play the part of the environment.
#[test]
#[ignore = "a part that the other tests start inside a lab"]
fn play() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let words: Vec<_> = part.split_whitespace().collect();
    let number = |index: usize| words[index].parse::<usize>().unwrap();
    match words[0] {
        "blast" => blast(words[1], number(2), number(3)),
        "receive" => receive(words.get(1).map(|_| number(1)), words.get(2).copied()),
        "send-stream" => send_stream(words[1], number(2)),
        "receive-stream" => receive_stream(),
        "announce" => announce(),
        "hear" => hear(),
        other => panic!("there is no part {other}"),
    }
}

/// Sends `count` datagrams of `size` bytes as fast as it may.
fn blast(to: &str, size: usize, count: usize) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((to, PORT)).unwrap();
    let (mut held_back, mut longest) = (0, Duration::ZERO);
    let started = Instant::now();
    for number in 0..count as u64 {
        let mut datagram = vec![fill(number); size];
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        socket.set_nonblocking(true).unwrap();
        let sent = match socket.send(&datagram) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                held_back += 1;
                socket.set_nonblocking(false).unwrap();
                let before = Instant::now();
                let sent = socket.send(&datagram);
                longest = longest.max(before.elapsed());
                sent
            }
            sent => sent,
        };
        assert_eq!(sent.unwrap(), size);
    }
    let (took, longest) = (started.elapsed().as_micros(), longest.as_micros());
    println!("part: sent={count} held_back={held_back} took_us={took} longest_us={longest}");
}

fn fill(number: u64) -> u8 {
    (number % 251) as u8
}

/// Counts datagrams until none comes for a second, and what the host's own kernel lost at this socket. With the `count`
/// that is to come, it waits longer for what a busy machine keeps, and hardly after the last; with the file `over`, which
/// its sender's host makes, no pause ends it before that.
fn receive(count: Option<usize>, over: Option<&str>) {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    set_recv_buffer(&socket, BUFFER).unwrap();
    println!("listening");
    let wait = |millis| {
        let timeout = Some(Duration::from_millis(millis));
        socket.set_read_timeout(timeout).unwrap();
    };
    wait(15_000);
    let mut buffer = vec![0; 65_536];
    let (mut received, mut wrong, mut disorder, mut next) = (0u64, 0u64, 0u64, 0u64);
    let began = Instant::now();
    loop {
        let was_over = over.is_none_or(|over| Path::new(over).exists());
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(_) if was_over || began.elapsed() > Duration::from_secs(90) => break,
            Err(_) => continue,
        };
        if received == 0 {
            wait(if count.is_some() { 5_000 } else { 1_000 });
        }
        let number = u64::from_be_bytes(buffer[..8].try_into().unwrap());
        let expected = fill(number);
        wrong += u64::from(buffer[8..length].iter().any(|byte| *byte != expected));
        disorder += u64::from(number < next);
        next = number + 1;
        received += 1;
        if Some(received) == count.map(|count| count as u64) {
            wait(200);
        }
    }
    let (overrun, torn) = (snmp("Udp:", "RcvbufErrors"), snmp("Ip:", "ReasmFails"));
    println!(
        "part: received={received} wrong={wrong} disorder={disorder} overrun={overrun} torn={torn}"
    );
}

/// A counter of a line of /proc/net/snmp.
fn snmp(layer: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/net/snmp").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with(layer));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names
        .split_whitespace()
        .position(|word| word == name)
        .unwrap();
    values.split_whitespace().nth(at).unwrap().parse().unwrap()
}

/// The bytes of a stream at `place`, a multiple of eight.
fn pattern(place: u64) -> [u8; 8] {
    // SplitMix64, Steele et al. 2014.
    let mut x = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 27)).to_be_bytes()
}

fn send_stream(to: &str, bytes: usize) {
    let mut stream = TcpStream::connect((to, PORT)).unwrap();
    let mut place = 0;
    while place < bytes as u64 {
        let piece: Vec<u8> = (0..4_096).flat_map(|i| pattern(place + 8 * i)).collect();
        let length = piece.len().min(bytes - place as usize);
        stream.write_all(&piece[..length]).unwrap();
        place += length as u64;
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // The other side closes when it has read all.
    let _ = stream.read(&mut [0]).unwrap();
    println!("part: sent={bytes}");
}

fn receive_stream() {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
    println!("listening");
    let (mut stream, _) = listener.accept().unwrap();
    let mut all = 0u64;
    let mut wrong = 0u64;
    let mut piece = vec![0; 1 << 16];
    loop {
        let mut length = 0;
        while length < piece.len() {
            match stream.read(&mut piece[length..]).unwrap() {
                0 => break,
                count => length += count,
            }
        }
        for (index, bytes) in piece[..length].chunks(8).enumerate() {
            let expected = pattern(all + 8 * index as u64);
            wrong += u64::from(*bytes != expected[..bytes.len()]);
        }
        all += length as u64;
        if length < piece.len() {
            break;
        }
    }
    println!("part: received={all} wrong={wrong}");
}

/// This host's address.
fn own() -> Ipv4Addr {
    let host = std::env::var("SONDE_HOST").unwrap();
    Ipv4Addr::new(10, 9, 0, host[1..].parse().unwrap())
}

/// Ten datagrams to all and ten to a group, from a socket with room for them.
fn announce() {
    let socket = UdpSocket::bind((own(), 0)).unwrap();
    set_send_buffer(&socket, BUFFER).unwrap();
    socket.set_broadcast(true).unwrap();
    for _ in 0..10 {
        socket
            .send_to(b"all", (Ipv4Addr::new(10, 9, 0, 255), PORT))
            .unwrap();
        socket.send_to(b"group", (GROUP, PORT)).unwrap();
    }
}

fn hear() {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    socket.join_multicast_v4(&GROUP, &own()).unwrap();
    println!("listening");
    socket
        .set_read_timeout(Some(Duration::from_millis(1_500)))
        .unwrap();
    let (mut all, mut group) = (0, 0);
    let mut buffer = [0; 64];
    while let Ok(length) = socket.recv(&mut buffer) {
        match &buffer[..length] {
            b"all" => all += 1,
            _ => group += 1,
        }
    }
    println!("part: all={all} group={group}");
}
