//! The peer: two network namespaces joined by a loop of epoll, read and write.
//!
//! Model:   a process in fresh user, mount and network namespaces makes two more network namespaces, an interface in each as
//!          the lab sets them up for `wire` (MTU, ring, gate, checksums), starts sink and blaster there, and forwards until
//!          the sink has said what it counted.
//!
//! Not the same as the lab's switch: no host inits, no proc of their own; the gate is a tbf that is never shut, so what the
//! forwarder cannot carry is dropped by the TAP's ring or the socket's buffer.

use crate::traffic::{self, ADDRESS, Counted};
use crate::{Blast, Outcome, SETTLE};
use sonde_lab::{Attachment, CpuPlan};
use sonde_sys::epoll::{Epoll, Event, Interest};
use sonde_sys::exec::{Step, before_exec};
use sonde_sys::namespace::{self, IdMap, Kind, Namespaces};
use sonde_sys::netlink::{LinkChange, Netlink, VethEnd};
use sonde_sys::packet::{Batch, PacketSocket};
use sonde_sys::tap::Tap;
use sonde_sys::tbf::{self, LIMIT_BYTES, LinkLayer, Tbf};
use sonde_sys::{cpu, ethtool, process, sysctl};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub const TUN: &str = "/dev/net/tun";
const HEADER: usize = 14;
/// As the lab's: at most 32,768 frames, of full ones as many as make 64 MiB.
fn ring(mtu: u32) -> u32 {
    ((64 << 20) / (mtu + 1_024)).clamp(5_000, 32_768)
}

const RECEIVE_BUFFER: usize = 32 << 20;
/// Frames carried one way before the other is looked at.
const PORTION: usize = 64;
/// As the lab's gate of a network without a rate.
const GATE: Tbf = Tbf {
    rate_bytes_per_s: 12_500_000_000,
    burst_bytes: 1 << 20,
    limit_bytes: LIMIT_BYTES,
    mpu_bytes: 0,
    overhead_bytes: 0,
    link_layer: LinkLayer::Ethernet,
};

pub fn attachment(text: &str) -> Outcome<Attachment> {
    match text {
        "tap" => Ok(Attachment::Tap),
        "veth" => Ok(Attachment::Veth),
        _ => Err(format!("`{text}` is no attachment: write tap or veth").into()),
    }
}

/// Why there can be no TAP here.
pub fn tap_obstacle() -> Option<String> {
    std::fs::File::options()
        .read(true)
        .write(true)
        .open(TUN)
        .err()
        .map(|error| format!("cannot open {TUN}: {error}"))
}

/// One blast through the bare forwarder.
pub fn blast(attachment: Attachment, mtu: u64, cpus: &CpuPlan) -> Outcome<Blast> {
    let (uid, gid) = process::ids();
    let own = |outside| {
        vec![IdMap {
            inside: 0,
            outside,
            count: 1,
        }]
    };
    let mut command = Command::new("/proc/self/exe");
    command.args([
        "bare",
        attachment.name(),
        &mtu.to_string(),
        &list(&cpus.switch),
        &list(&cpus.hosts),
    ]);
    before_exec(
        &mut command,
        vec![
            Step::Unshare(Namespaces::of(&[Kind::User, Kind::Net, Kind::Mount])),
            Step::MapIds {
                uid: own(uid),
                gid: own(gid),
                deny_setgroups: true,
            },
            Step::DieWithParent {
                expected: std::process::id(),
            },
        ],
    );
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the bare forwarder failed: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn list(cpus: &[usize]) -> String {
    cpus.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

fn cpus(text: &str) -> Outcome<Vec<usize>> {
    Ok(text
        .split(',')
        .filter(|word| !word.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()?)
}

/// The forwarder's process.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let [attach, mtu, own_cpus, host_cpus] = arguments else {
        return Err("bare needs attachment, size and CPUs".into());
    };
    let (mtu, host_cpus) = (mtu.parse()?, cpus(host_cpus)?);
    // As the switch does; where it is refused, it is refused to both.
    drop(cpu::short_slice(0));
    let home = namespace::open(0, Kind::Net)?;
    let mut hosts = Vec::new();
    for index in 0..2 {
        namespace::unshare(Namespaces::of(&[Kind::Net]))?;
        let netns = namespace::open(0, Kind::Net)?;
        namespace::setns(&home, Kind::Net)?;
        hosts.push(Host {
            port: attach_host(attachment(attach)?, mtu, index, &netns, &home)?,
            netns,
        });
    }
    let mut sink = start(&hosts[1], &["sink".into()], &host_cpus)?;
    let mut says = BufReader::new(sink.stdout.take().ok_or("the sink has no output")?);
    says.read_line(&mut String::new())?;
    let pin = cpus(own_cpus)?;
    if !pin.is_empty() {
        cpu::pin(&pin)?;
    }
    std::thread::sleep(SETTLE);
    let mut blaster = start(&hosts[0], &traffic::blast_arguments(), &host_cpus)?;
    let begin_ns = cpu::thread_cpu_ns();
    let frames = forward(&hosts, mtu, says.get_ref())?;
    let cpu_ns = cpu::thread_cpu_ns() - begin_ns;
    let mut line = String::new();
    says.read_line(&mut line)?;
    blaster.kill()?;
    blaster.wait()?;
    sink.wait()?;
    let counted: Counted = serde_json::from_str(&line)?;
    println!("{}", serde_json::to_string(&counted.blast(cpu_ns, frames))?);
    Ok(())
}

enum Port {
    Tap(Tap),
    Packet(PacketSocket),
}

impl Port {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tap(tap) => tap.as_fd(),
            Self::Packet(socket) => socket.as_fd(),
        }
    }

    fn write(&self, frame: &[u8]) -> sonde_sys::Result<bool> {
        match self {
            Self::Tap(tap) => tap.write(frame),
            Self::Packet(socket) => socket.send(frame),
        }
    }
}

struct Host {
    port: Port,
    netns: OwnedFd,
}

/// Starts this program in a host.
fn start(host: &Host, arguments: &[String], cpus: &[usize]) -> Outcome<Child> {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    before_exec(
        &mut command,
        vec![
            Step::Join(host.netns.try_clone()?, Kind::Net),
            Step::DieWithParent {
                expected: std::process::id(),
            },
        ],
    );
    let child = command.spawn()?;
    if !cpus.is_empty() {
        cpu::pin_pid(child.id(), cpus)?;
    }
    Ok(child)
}

/// Makes a host's interface as the lab does for `wire`.
fn attach_host(
    attachment: Attachment,
    mtu: u32,
    index: usize,
    netns: &OwnedFd,
    home: &OwnedFd,
) -> Outcome<Port> {
    let mac = traffic::mac(index);
    let near = if attachment == Attachment::Veth {
        Some(veth(mtu, index, mac, netns)?)
    } else {
        None
    };
    namespace::setns(netns, Kind::Net)?;
    let made = || -> Outcome<Port> {
        let port = match near {
            Some(socket) => Port::Packet(socket),
            None => Port::Tap(Tap::open(Path::new(TUN), "eth0")?),
        };
        if let Port::Packet(_) = port {
            ethtool::tx_checksum_off("eth0")?;
        }
        if sysctl::read("net/ipv6/conf/all/disable_ipv6").is_ok() {
            sysctl::write("net/ipv6/conf/all/disable_ipv6", "1")?;
        }
        let mut netlink = Netlink::open()?;
        let eth0 = netlink.index("eth0")?;
        netlink.set_link(
            eth0,
            &LinkChange {
                mtu_bytes: Some(mtu),
                mac: Some(mac),
                txqueuelen: Some(ring(mtu)),
                ..LinkChange::default()
            },
        )?;
        netlink.set_link(
            eth0,
            &LinkChange {
                up: Some(true),
                ..LinkChange::default()
            },
        )?;
        netlink.wait_running(eth0, 5_000_000_000)?;
        netlink.add_address(eth0, ADDRESS[index], 24)?;
        tbf::replace(&mut netlink, eth0, &GATE)?;
        Ok(port)
    };
    let port = made();
    namespace::setns(home, Kind::Net)?;
    port
}

/// A veth pair with its far end in `netns`, and a packet socket on the near one.
fn veth(mtu: u32, index: usize, mac: [u8; 6], netns: &OwnedFd) -> Outcome<PacketSocket> {
    let name = format!("p{}", index + 1);
    let mut netlink = Netlink::open()?;
    let near = VethEnd {
        name: &name,
        mtu_bytes: mtu,
        mac: None,
        netns: None,
    };
    let far = VethEnd {
        name: "eth0",
        mtu_bytes: mtu,
        mac: Some(mac),
        netns: Some(netns.as_fd()),
    };
    netlink.add_veth(&near, &far)?;
    let number = netlink.index(&name)?;
    netlink.set_link(
        number,
        &LinkChange {
            up: Some(true),
            ..LinkChange::default()
        },
    )?;
    Ok(PacketSocket::open(number, RECEIVE_BUFFER)?)
}

/// Forwards until `end` becomes readable; how many frames.
fn forward(hosts: &[Host], mtu: u32, end: &ChildStdout) -> Outcome<u64> {
    const END: u64 = 2;
    let epoll = Epoll::new()?;
    epoll.add(end, END, Interest::Read)?;
    for (token, host) in hosts.iter().enumerate() {
        epoll.add(host.port.fd(), token as u64, Interest::Read)?;
    }
    let frame_bytes = mtu as usize + HEADER + 4;
    let (mut buffer, mut batch) = (vec![0; frame_bytes], Batch::new(PORTION, frame_bytes));
    let mut events = [Event::EMPTY; 4];
    let mut frames = 0;
    loop {
        for event in epoll.wait(&mut events, None)? {
            if event.token() == END {
                return Ok(frames);
            }
            let from = event.token() as usize;
            frames += carry(
                &hosts[from].port,
                &hosts[1 - from].port,
                &mut buffer,
                &mut batch,
            )?;
        }
    }
}

/// A portion from one port to the other.
fn carry(from: &Port, to: &Port, buffer: &mut [u8], batch: &mut Batch) -> sonde_sys::Result<u64> {
    match from {
        Port::Tap(tap) => {
            for count in 0..PORTION {
                let Some(length) = tap.read(buffer)? else {
                    return Ok(count as u64);
                };
                to.write(&buffer[..length])?;
            }
            Ok(PORTION as u64)
        }
        Port::Packet(socket) => {
            let count = socket.recv_batch(batch)?;
            for index in 0..count {
                to.write(batch.frame(index).0)?;
            }
            Ok(count as u64)
        }
    }
}
