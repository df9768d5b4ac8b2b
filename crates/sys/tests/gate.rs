//! The gate under load: no stall, no loss, nothing through while it is shut; and a tbf's rate.

use crate::fresh;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sonde_sys::clock::{monotonic_ns, realtime_minus_monotonic_ns, sleep_until_ns};
use sonde_sys::epoll::{Epoll, Event, Interest};
use sonde_sys::gate::{Gate, is_kick};
use sonde_sys::namespace::{Kind, Namespaces};
use sonde_sys::netlink::{LinkChange, Netlink, VethEnd};
use sonde_sys::packet::{Batch, PacketSender, PacketSocket};
use sonde_sys::socket::TcpInfo;
use sonde_sys::tap::Tap;
use sonde_sys::tbf::{self, Tbf};
use sonde_sys::{cpu, ethtool, namespace, socket, sysctl};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const MTU: u32 = 1500;
const PAYLOAD: usize = 1472;

/// Runs `body` in a thread that has joined `netns`; sockets it makes stay there.
fn within<T: Send + 'static>(netns: &OwnedFd, body: impl FnOnce() -> T + Send + 'static) -> T {
    let netns = netns.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        namespace::setns(&netns, Kind::Net).unwrap();
        body()
    });
    thread.join().unwrap()
}

/// The switch's end of a host's wire.
enum Port {
    Tap(Tap, Vec<u8>),
    Packet(PacketSocket, Box<Batch>, Netlink, u32),
}

/// Frames that came out of a port.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    data: u64,
    kicks: u64,
    last_ns: u64,
}

impl Port {
    fn tap(netns: &OwnedFd) -> Option<Self> {
        let tap = within(netns, || Tap::open(Path::new("/dev/net/tun"), "eth0"));
        match tap {
            Ok(tap) => Some(Self::Tap(tap, vec![0; MTU as usize + 18])),
            Err(error) => {
                println!("skipped: {error}");
                None
            }
        }
    }

    fn veth(netns: &OwnedFd) -> Self {
        let mut outer = Netlink::open().unwrap();
        let near = VethEnd {
            name: "p1",
            mtu_bytes: MTU,
            mac: None,
            netns: None,
        };
        let far = VethEnd {
            name: "eth0",
            mtu_bytes: MTU,
            mac: Some([2, 0, 0, 0, 0, 1]),
            netns: Some(netns.as_fd()),
        };
        sysctl::write("net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        outer.add_veth(&near, &far).unwrap();
        let index = outer.index("p1").unwrap();
        outer
            .set_link(
                index,
                &LinkChange {
                    up: Some(true),
                    ..LinkChange::default()
                },
            )
            .unwrap();
        within(netns, || ethtool::tx_checksum_off("eth0")).unwrap();
        let socket = PacketSocket::open(index, 32 << 20).unwrap();
        Self::Packet(
            socket,
            Box::new(Batch::new(64, MTU as usize + 18)),
            outer,
            index,
        )
    }

    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Self::Tap(tap, _) => tap.as_fd(),
            Self::Packet(socket, ..) => socket.as_fd(),
        }
    }

    /// Takes what is waiting.
    fn drain(&mut self, count: &mut Count) {
        let mut add = |frame: &[u8], at_ns| {
            if is_kick(frame) {
                count.kicks += 1;
            } else {
                assert_eq!(
                    (&frame[12..14], frame.len()),
                    ([8, 0].as_slice(), PAYLOAD + 42)
                );
                count.data += 1;
                count.last_ns = at_ns;
            }
        };
        match self {
            Self::Tap(tap, buffer) => {
                while let Some(length) = tap.read(buffer).unwrap() {
                    add(&buffer[..length], monotonic_ns());
                }
            }
            Self::Packet(socket, batch, ..) => {
                let offset = realtime_minus_monotonic_ns();
                while socket.recv_batch(batch).unwrap() > 0 {
                    for index in 0..batch.len() {
                        let (frame, stamp) = batch.frame(index);
                        add(frame, offset.monotonic_ns(stamp.realtime_ns));
                    }
                }
            }
        }
    }

    /// Frames lost in the attachment on the switch's side.
    fn lost(&mut self) -> u64 {
        match self {
            Self::Tap(..) => 0,
            Self::Packet(socket, _, outer, index) => {
                socket.drops().unwrap() + outer.stats(*index).unwrap().rx_dropped
            }
        }
    }
}

/// A host with an interface `eth0`, its wire's other end, and what the test needs from inside.
struct Host {
    netns: OwnedFd,
    netlink: Netlink,
    ifindex: u32,
    port: Port,
}

fn host(use_tap: bool) -> Option<Host> {
    let made = std::thread::spawn(|| {
        namespace::unshare(Namespaces::of(&[Kind::Net])).unwrap();
        sysctl::write("net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        (
            namespace::open(0, Kind::Net).unwrap(),
            Netlink::open().unwrap(),
        )
    });
    let (netns, mut netlink) = made.join().unwrap();
    let port = if use_tap {
        Port::tap(&netns)?
    } else {
        Port::veth(&netns)
    };
    let ifindex = netlink.index("eth0").unwrap();
    let change = LinkChange {
        mac: Some([2, 0, 0, 0, 0, 1]),
        mtu_bytes: Some(MTU),
        txqueuelen: Some(10_000),
        ..LinkChange::default()
    };
    netlink.set_link(ifindex, &change).unwrap();
    netlink
        .set_link(
            ifindex,
            &LinkChange {
                up: Some(true),
                ..LinkChange::default()
            },
        )
        .unwrap();
    netlink.wait_running(ifindex, 5_000_000_000).unwrap();
    netlink.add_address(ifindex, HOST, 24).unwrap();
    netlink
        .set_neighbour(ifindex, PEER, [2, 0, 0, 0, 0, 2])
        .unwrap();
    Some(Host {
        netns,
        netlink,
        ifindex,
        port,
    })
}

/// A thread that sends full frames as fast as it may.
struct Blaster {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Blaster {
    fn start(netns: &OwnedFd) -> Self {
        let socket = within(netns, || UdpSocket::bind((HOST, 0)).unwrap());
        socket.connect((PEER, 9)).unwrap();
        let (stop, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (thread_stop, thread_sent) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            let payload = [7; PAYLOAD];
            while !thread_stop.load(Ordering::Relaxed) {
                socket.send(&payload).unwrap();
                thread_sent.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { stop, sent, thread }
    }
}

/// Waits until `wanted` frames of data have come since `start`, at most 3 s.
fn wait_for(port: &mut Port, epoll: &Epoll, count: &mut Count, wanted: u64) -> bool {
    let deadline = monotonic_ns() + 3_000_000_000;
    let mut events = [Event::EMPTY; 1];
    loop {
        port.drain(count);
        if count.data >= wanted {
            return true;
        }
        if monotonic_ns() > deadline {
            return false;
        }
        epoll
            .wait(&mut events, Some(Duration::from_millis(100)))
            .unwrap();
    }
}

/// Stops the blaster and takes everything that is still on its way.
fn finish(blaster: Blaster, port: &mut Port, epoll: &Epoll, count: &mut Count) -> u64 {
    blaster.stop.store(true, Ordering::Relaxed);
    while !blaster.thread.is_finished() {
        let wanted = count.data + 1;
        if !wait_for(port, epoll, count, wanted) {
            break;
        }
    }
    blaster.thread.join().unwrap();
    let sent = blaster.sent.load(Ordering::Relaxed);
    wait_for(port, epoll, count, sent);
    sent
}

fn line(burst_bytes: u32) -> Tbf {
    Tbf::ethernet(155_520_000 / 8 * 1002 / 1000, burst_bytes)
}

fn percentiles(mut times_ns: Vec<u64>) -> String {
    times_ns.sort_unstable();
    let at = |share: f64| times_ns[((times_ns.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    format!(
        "p50 {:.1} us, p99 {:.1} us, max {:.1} us",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

fn toggles(use_tap: bool) {
    const TOGGLES: u64 = 10_000;
    let Some(Host {
        netns,
        mut netlink,
        ifindex,
        mut port,
    }) = host(use_tap)
    else {
        return;
    };
    let gate_netlink = within(&netns, || Netlink::open().unwrap());
    let kick_socket = within(&netns, move || PacketSender::open(ifindex).unwrap());
    let mut gate = Gate::new(gate_netlink, kick_socket, ifindex, line(4 * 1514)).unwrap();
    let epoll = Epoll::new().unwrap();
    epoll.add(port.fd(), 0, Interest::Read).unwrap();
    let mut count = Count::default();
    let blaster = Blaster::start(&netns);
    assert!(
        wait_for(&mut port, &epoll, &mut count, 100),
        "nothing passes an open gate"
    );
    let (mut open_ns, mut shut_ns, mut leaks) = (Vec::new(), Vec::new(), 0);
    for toggle in 0..TOGGLES {
        let start = monotonic_ns();
        gate.close().unwrap();
        shut_ns.push(monotonic_ns() - start);
        port.drain(&mut count);
        if toggle % 500 == 0 {
            leaks = leaks.max(leak(&mut port, &mut count));
        }
        let start = monotonic_ns();
        gate.open().unwrap();
        open_ns.push(monotonic_ns() - start);
        // One frame may pass a gate that shuts: only more than that tell of the opening.
        let wanted = count.data + 3;
        assert!(
            wait_for(&mut port, &epoll, &mut count, wanted),
            "stalled at opening {toggle}: {gate:?} {count:?}"
        );
        gate.nudge().unwrap();
    }
    let sent = finish(blaster, &mut port, &epoll, &mut count);
    let name = if use_tap { "TAP" } else { "veth" };
    println!("{name}: open {}", percentiles(open_ns));
    println!("{name}: shut {}", percentiles(shut_ns));
    println!(
        "{name}: sent {sent}, received {}, kicks {}, leak {leaks}, {gate:?}",
        count.data, count.kicks
    );
    let qdisc = netlink.qdisc(ifindex).unwrap();
    println!("{name}: {qdisc:?}");
    assert_eq!(count.data, sent, "frames were lost or made up");
    assert_eq!(
        (qdisc.kind.as_str(), qdisc.drops, port.lost()),
        ("tbf", 0, 0)
    );
    assert_eq!(netlink.stats(ifindex).unwrap().tx_dropped, 0);
    assert_eq!(
        (gate.toggles().opened, gate.toggles().shut),
        (TOGGLES, TOGGLES)
    );
    assert!(leaks <= 1, "{leaks} frames passed a shut gate");
    assert_eq!(count.kicks + gate.toggles().kicks_refused, TOGGLES);
}

/// Frames that pass a shut gate, once what was on its way has been taken.
fn leak(port: &mut Port, count: &mut Count) -> u64 {
    std::thread::sleep(Duration::from_millis(2));
    port.drain(count);
    let before = count.data;
    std::thread::sleep(Duration::from_millis(20));
    port.drain(count);
    count.data - before
}

/// A stream of super-packets through a gate that opens and shuts: all bytes, nothing twice, no drop.
fn stream() {
    const BYTES: usize = 20_000_000;
    // What passes a veth is queued on the CPU that sends it: on two of them, which the gate's thread and the stream's are, one frame may
    // overtake another.
    cpu::pin(&cpu::online().unwrap()[..1]).unwrap();
    let Some(Host {
        netns,
        mut netlink,
        ifindex,
        port,
    }) = host(false)
    else {
        return;
    };
    let Port::Packet(_, _, mut outer, index) = port else {
        unreachable!("made without TAP")
    };
    outer.add_address(index, PEER, 24).unwrap();
    let peer_mac = outer.link(index).unwrap().mac;
    netlink.set_neighbour(ifindex, PEER, peer_mac).unwrap();
    ethtool::tx_checksum_off("p1").unwrap();
    let gate_netlink = within(&netns, || Netlink::open().unwrap());
    let kick_socket = within(&netns, move || PacketSender::open(ifindex).unwrap());
    let mut gate = Gate::new(gate_netlink, kick_socket, ifindex, line(4 * 1514)).unwrap();
    let listener = TcpListener::bind((PEER, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let client = within(&netns, move || TcpStream::connect(address).unwrap());
    let (mut server, _) = listener.accept().unwrap();
    // Generous: only a stalled gate takes so long.
    server
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut writer = client.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&vec![5; BYTES]).unwrap());
    let receiver = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        let mut received = 0;
        while received < BYTES {
            received += server.read(&mut buffer).unwrap();
        }
        (received, server)
    });
    while !receiver.is_finished() {
        gate.close().unwrap();
        sleep_until_ns(monotonic_ns() + 100_000);
        gate.open().unwrap();
        sleep_until_ns(monotonic_ns() + 200_000);
        gate.nudge().unwrap();
    }
    sender.join().unwrap();
    let (received, server) = receiver.join().unwrap();
    assert_eq!(received, BYTES);
    // Where a busy machine let the sender wait it sends a segment again that has come (a probe of the tail): the peer says so.
    let needless = |info: &TcpInfo| info.dsack_dups == Some(info.total_retrans);
    let end = Instant::now() + Duration::from_secs(1);
    while !needless(&socket::tcp_info(&client).unwrap()) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (info, qdisc) = (
        socket::tcp_info(&client).unwrap(),
        netlink.qdisc(ifindex).unwrap(),
    );
    println!(
        "stream: {gate:?}, {qdisc:?}, repeated {}, rtt {} us",
        info.total_retrans, info.rtt_us
    );
    assert!(gate.toggles().opened > 100);
    assert!(needless(&info), "{info:?}");
    let overtaken = socket::tcp_info(&server).unwrap().rcv_ooopack;
    assert_eq!((qdisc.drops, overtaken), (0, Some(0)));
}

/// What the root of a host puts in the gate's place is replaced by the gate, whatever it is, and counted.
fn put_back(use_tap: bool) {
    let Some(mut host) = host(use_tap) else {
        return;
    };
    let ifindex = host.ifindex;
    let gate_netlink = within(&host.netns, || Netlink::open().unwrap());
    let kick_socket = within(&host.netns, move || PacketSender::open(ifindex).unwrap());
    let mut gate = Gate::new(gate_netlink, kick_socket, ifindex, line(4 * 1514)).unwrap();
    let mut meddle = |words: Option<&'static str>| match words {
        None => host.netlink.delete_qdisc(ifindex).unwrap(),
        Some(words) => within(&host.netns, move || {
            let tc = std::process::Command::new("tc")
                .args(words.split(' '))
                .status();
            assert!(tc.unwrap().success(), "{words}");
        }),
    };
    let mut others = vec![None];
    if std::process::Command::new("tc").arg("-V").output().is_ok() {
        others.extend([
            Some("qdisc replace dev eth0 root pfifo limit 10"),
            Some("qdisc add dev eth0 root handle 1: pfifo limit 10"),
        ]);
    } else {
        println!("left out: other kinds, for want of tc (iproute2)");
    }
    for (number, other) in (1..).zip(others) {
        // By another handle, and by the gate's own.
        if other.is_some_and(|words| words.contains("add")) {
            meddle(None);
        }
        meddle(other);
        if number % 2 == 1 {
            gate.close().unwrap();
            gate.open().unwrap();
        } else {
            gate.close().unwrap();
        }
        assert_eq!(gate.toggles().rearmed, number, "{other:?}");
    }
    gate.close().unwrap();
    assert_eq!(host.netlink.qdisc(ifindex).unwrap().kind, "tbf");
    // It holds back: of a blast nothing but what was on its way comes through, and all of it once it is open.
    let epoll = Epoll::new().unwrap();
    epoll.add(host.port.fd(), 0, Interest::Read).unwrap();
    let mut count = Count::default();
    let blaster = Blaster::start(&host.netns);
    assert!(leak(&mut host.port, &mut count) <= 1);
    gate.open().unwrap();
    assert!(wait_for(&mut host.port, &epoll, &mut count, 100));
    finish(blaster, &mut host.port, &epoll, &mut count);
}

#[test]
fn a_gate_is_put_back() {
    fresh::inside(
        "a_gate_is_put_back",
        Namespaces::of(&[Kind::User, Kind::Net]),
        || {
            put_back(false);
            put_back(true);
        },
    );
}

#[test]
fn a_stream_passes_a_toggled_gate_whole() {
    fresh::inside(
        "a_stream_passes_a_toggled_gate_whole",
        Namespaces::of(&[Kind::User, Kind::Net]),
        stream,
    );
}

#[test]
fn a_gate_on_a_tap_never_stalls_or_loses() {
    fresh::inside(
        "a_gate_on_a_tap_never_stalls_or_loses",
        Namespaces::of(&[Kind::User, Kind::Net]),
        || toggles(true),
    );
}

#[test]
fn a_gate_on_a_veth_never_stalls_or_loses() {
    fresh::inside(
        "a_gate_on_a_veth_never_stalls_or_loses",
        Namespaces::of(&[Kind::User, Kind::Net]),
        || toggles(false),
    );
}

/// Blasts through 100 Mb/s; returns the share of the line used, and checks that nothing is lost.
fn line_share(host: &mut Host, epoll: &Epoll) -> f64 {
    const FRAMES: u64 = 8_000;
    let Host {
        netns,
        netlink,
        ifindex,
        port,
    } = host;
    let rate = 12_500_000;
    let tbf = Tbf::ethernet(rate, (rate / 200) as u32);
    tbf::replace(netlink, *ifindex, &tbf).unwrap();
    let mut count = Count::default();
    let blaster = Blaster::start(netns);
    // The first bucket passes at once.
    assert!(wait_for(port, epoll, &mut count, 100));
    let (first, start) = (count.data, count.last_ns);
    assert!(wait_for(port, epoll, &mut count, first + FRAMES));
    let wire_bytes = (count.data - first) as f64 * (PAYLOAD + 42 + 24) as f64;
    let share = wire_bytes / ((count.last_ns - start) as f64 / 1e9) / rate as f64;
    // A sender that blocks is ahead by what its socket buffer holds and no more.
    let ahead = blaster.sent.load(Ordering::Relaxed) - count.data;
    assert!(
        ahead < 400,
        "the sender is {ahead} frames ahead: it was not held back"
    );
    let sent = finish(blaster, port, epoll, &mut count);
    assert_eq!(count.data, sent, "frames were lost or made up");
    let qdisc = netlink.qdisc(*ifindex).unwrap();
    assert_eq!(
        (
            qdisc.drops,
            port.lost(),
            netlink.stats(*ifindex).unwrap().tx_dropped
        ),
        (0, 0, 0)
    );
    println!(
        "share of the line {share:.4}, sent {sent}, received {}, ahead {ahead}",
        count.data
    );
    share
}

fn back_pressure(use_tap: bool) {
    let Some(mut host) = host(use_tap) else {
        return;
    };
    let epoll = Epoll::new().unwrap();
    epoll.add(host.port.fd(), 0, Interest::Read).unwrap();
    // Other programs may take the CPUs for longer than the bucket lasts: the best of a few counts for
    // "fast enough", each one for "never faster than the line" (1 %: the bucket and the stamps).
    let mut shares = vec![line_share(&mut host, &epoll)];
    while shares.len() < 5 && shares.iter().all(|&share| share <= 0.99) {
        shares.push(line_share(&mut host, &epoll));
    }
    assert!(
        shares.iter().all(|&share| share < 1.01),
        "faster than the line: {shares:?}"
    );
    assert!(
        shares.iter().any(|&share| share > 0.99),
        "slower than the line: {shares:?}"
    );
}

#[test]
fn a_tbf_blocks_its_sender_on_a_tap() {
    fresh::inside(
        "a_tbf_blocks_its_sender_on_a_tap",
        Namespaces::of(&[Kind::User, Kind::Net]),
        || back_pressure(true),
    );
}

#[test]
fn a_tbf_blocks_its_sender_on_a_veth() {
    fresh::inside(
        "a_tbf_blocks_its_sender_on_a_veth",
        Namespaces::of(&[Kind::User, Kind::Net]),
        || back_pressure(false),
    );
}
