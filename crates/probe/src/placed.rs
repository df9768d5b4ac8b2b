//! Where a socket's packets are worked on, and where the thread that waits for them runs.
//!
//! Model:   the CPU of the last packet's receive path as the kernel tells it (SO_INCOMING_CPU), and the thread's CPU at the same
//!          moment, read after what is timed. On loopback the first is the sender's CPU.
//!          Where a specification names a place, an end is bound before it opens anything: against the CPU that takes its interface's
//!          packets off, on its own host. Loopback, veth, TAP and what never leaves the machine have no such CPU, since
//!          their packets are worked on where they are sent: there the asking end gets this machine's first CPU and the
//!          answering end its place against that one.
//! Checked: `a_socket_tells_where_its_packets_came_in`, `places_are_chosen`, `what_is_not_there_is_told`;
//!          `ends_take_their_place` of `tests/method.rs`.

use std::net::IpAddr;
use std::os::fd::AsFd;

use sonde_channel::cold_buffers;
use sonde_measure::{Path, Place, Placed, Seat, Spec};
use sonde_sys::netlink::Netlink;
use sonde_sys::topology::Topology;
use sonde_sys::{cpu, host, socket};

use crate::{Error, Measure, Result, Serve};

/// The CPU of this thread and that of the last packet; the second is left out where nothing was received.
pub(crate) fn placed(fd: impl AsFd, place: &mut Place) {
    place.cpu = Some(cpu::current());
    place.rx_cpu = socket::incoming_cpu(fd);
}

/// Drivers without a device: their packets are worked on where they are sent.
const VIRTUAL: [&str; 5] = ["tun", "veth", "bridge", "dummy", "ipvlan"];

/// Which end this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Asking,
    Answering,
}

/// Binds the measuring end where its specification wants it; what is to be known of it and of its buffers.
pub(crate) fn measuring(measure: &Measure) -> Result<Place> {
    let interface = || {
        let mut netlink = Netlink::open().ok()?;
        let way = netlink.way_to(measure.peer.ip()).ok()?;
        Some(netlink.link(way.ifindex).ok()?.name)
    };
    settle(&measure.spec, End::Asking, interface)
}

/// The same for the serving end.
pub(crate) fn serving(serve: &Serve) -> Result<Place> {
    settle(&serve.spec, End::Answering, || holder(serve.bind))
}

/// The interface that has an address.
fn holder(address: IpAddr) -> Option<String> {
    let IpAddr::V4(address) = address else {
        return None;
    };
    let mut netlink = Netlink::open().ok()?;
    let links = netlink.links().ok()?;
    links.into_iter().find_map(|link| {
        let held = netlink.addresses(link.index).ok()?;
        let here = held.iter().any(|(own, _)| *own == address)
            || link.name == "lo" && address.is_loopback();
        here.then_some(link.name)
    })
}

fn settle(spec: &Spec, end: End, interface: impl FnOnce() -> Option<String>) -> Result<Place> {
    let mut place = Place::default();
    if let Some(seat) = spec.knobs.place {
        let interface = match spec.path {
            Path::Unix | Path::Shm => None,
            _ => interface(),
        };
        place.bound = Some(take(seat, end, interface)?);
    }
    place.buffers = cold_buffers(&spec.knobs)?;
    Ok(place)
}

/// Binds this process; where, and why there.
fn take(seat: Seat, end: End, interface: Option<String>) -> Result<Placed> {
    let here = Topology::here();
    let refuse = |why: String| Error::Setting {
        what: format!(
            "the place `{}` is not available on this host: {why}",
            name(seat)
        ),
        remedy: "ask for another place: same, sibling, near, far, or the number of a CPU".into(),
    };
    let base = base(&here, interface.as_deref(), end);
    let (cpus, why) = chosen(&here, &base, seat, end).map_err(refuse)?;
    // The first that this process may have: a container or a job may have fewer than the machine.
    let mut denied = String::new();
    for cpu in cpus {
        match cpu::pin(&[cpu]) {
            Ok(()) => {
                return Ok(Placed {
                    cpu,
                    why: why.into(),
                });
            }
            Err(error) => denied = error.to_string(),
        }
    }
    Err(refuse(denied))
}

fn name(seat: Seat) -> String {
    match seat {
        Seat::Same => "same".into(),
        Seat::Sibling => "sibling".into(),
        Seat::Near => "near".into(),
        Seat::Far => "far".into(),
        Seat::Cpu(number) => number.to_string(),
    }
}

/// What places are against.
#[derive(Debug, PartialEq, Eq)]
struct Base {
    /// The CPUs that take packets off; empty where nothing tells.
    cpus: Vec<usize>,
    /// The node of the device, where it is told.
    node: Option<usize>,
    /// Whether packets are worked on where they are sent.
    by_sender: bool,
    /// How that is known, in words.
    how: String,
}

fn base(machine: &Topology, interface: Option<&str>, end: End) -> Base {
    let is_device = |name: &&str| {
        // Names of other namespaces' interfaces are the same: the driver is asked for by ioctl.
        let driver = host::driver(name).map_or_else(String::new, |driver| driver.name);
        machine.has_device(name) && !VIRTUAL.contains(&driver.as_str())
    };
    let Some(name) = interface.filter(is_device) else {
        let which = interface.unwrap_or("what stays within the machine");
        let who = match end {
            End::Asking => "the asking end has the first CPU",
            End::Answering => "against the first CPU, which the asking end has",
        };
        return Base {
            cpus: machine.cpus().into_iter().take(1).collect(),
            node: None,
            by_sender: true,
            how: format!(
                "{which} has no receive interrupt, its packets are worked on by the sender's CPU; {who}"
            ),
        };
    };
    let (cpus, how) = machine.serving(name);
    Base {
        cpus,
        node: machine.node_of(name),
        by_sender: false,
        how,
    }
}

/// CPUs for an end, the best first, and why these.
fn chosen(
    machine: &Topology,
    base: &Base,
    seat: Seat,
    end: End,
) -> std::result::Result<(Vec<usize>, String), String> {
    if let Seat::Cpu(number) = seat {
        return Ok((vec![number as usize], "asked for".into()));
    }
    let how = &base.how;
    if base.by_sender && end == End::Asking {
        return Ok((base.cpus.clone(), how.clone()));
    }
    let nodes = machine.nodes();
    let of = |cpu: usize| nodes.iter().find(|(_, cpus)| cpus.contains(&cpu));
    let served = base.cpus.first().copied();
    let home = match served {
        Some(cpu) => of(cpu),
        None => nodes.iter().find(|(node, _)| Some(*node) == base.node),
    };
    let untold = || "it is not known which CPU serves the interface's interrupts".to_string();
    let found: Vec<usize> = match seat {
        Seat::Same | Seat::Cpu(_) => base.cpus.clone(),
        Seat::Sibling => {
            let cpu = served.ok_or_else(untold)?;
            let threads = machine.threads(cpu).into_iter();
            threads.filter(|other| *other != cpu).collect()
        }
        Seat::Near => {
            let (_, cpus) = home.ok_or_else(untold)?;
            let core = served.map_or(Vec::new(), |cpu| machine.threads(cpu));
            let cache = served.map_or(Vec::new(), |cpu| machine.sharing(cpu));
            let mut near: Vec<usize> = cpus
                .iter()
                .copied()
                .filter(|cpu| !core.contains(cpu))
                .collect();
            near.sort_by_key(|cpu| !cache.contains(cpu));
            near
        }
        Seat::Far => {
            let (home, _) = home.ok_or_else(untold)?;
            let others = nodes.iter().filter(|(node, _)| node != home);
            others.flat_map(|(_, cpus)| cpus.clone()).collect()
        }
    };
    if !found.is_empty() {
        return Ok((found, format!("{}; {how}", name(seat))));
    }
    Err(match seat {
        Seat::Far => "it has one memory node".into(),
        Seat::Sibling => "its cores have one thread each".into(),
        Seat::Near => "its memory node has one core".into(),
        _ => untold(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_socket_tells_where_its_packets_came_in() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let here = sonde_sys::cpu::online().unwrap();
        let mut place = Place::default();
        placed(&socket, &mut place);
        assert_eq!(place.rx_cpu, None);
        // With itself: the kernel keeps no such account of a socket without a peer.
        socket.connect(socket.local_addr().unwrap()).unwrap();
        socket.send(b"x").unwrap();
        socket.recv(&mut [0]).unwrap();
        placed(&socket, &mut place);
        for cpu in [place.cpu, place.rx_cpu].map(Option::unwrap) {
            assert!(here.contains(&cpu), "{cpu} of {here:?}");
        }
    }

    /// Two nodes of two cores of two threads; CPU 1 serves, and shares its cache with 3.
    fn machine(name: &str) -> (std::path::PathBuf, Topology) {
        let root = std::env::temp_dir().join(format!("sonde-{name}-{}", std::process::id()));
        let cpu = "sys/devices/system/cpu";
        for (path, text) in [
            (format!("{cpu}/online"), "0-7"),
            (format!("{cpu}/cpu1/topology/thread_siblings_list"), "1,5"),
            (format!("{cpu}/cpu1/cache/index3/type"), "Unified"),
            (format!("{cpu}/cpu1/cache/index3/level"), "3"),
            (format!("{cpu}/cpu1/cache/index3/size"), "8M"),
            (format!("{cpu}/cpu1/cache/index3/shared_cpu_list"), "1,3,5"),
            ("sys/devices/system/node/node0/cpulist".into(), "0-3,5"),
            ("sys/devices/system/node/node1/cpulist".into(), "4,6-7"),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (root.clone(), Topology::below(root))
    }

    fn served(cpus: &[usize], node: Option<usize>) -> Base {
        Base {
            cpus: cpus.to_vec(),
            node,
            by_sender: false,
            how: "told".into(),
        }
    }

    #[test]
    fn places_are_chosen() {
        let (root, machine) = machine("places");
        let base = served(&[1], Some(0));
        for (seat, cpus) in [
            (Seat::Same, &[1][..]),
            (Seat::Sibling, &[5]),
            (Seat::Near, &[3, 0, 2]),
            (Seat::Far, &[4, 6, 7]),
            (Seat::Cpu(6), &[6]),
        ] {
            for end in [End::Asking, End::Answering] {
                let (found, why) = chosen(&machine, &base, seat, end).unwrap();
                assert_eq!(found, cpus, "{seat:?} {why}");
            }
        }
        // Without an interrupt that tells, the device's node does.
        let silent = served(&[], Some(1));
        let near = chosen(&machine, &silent, Seat::Near, End::Asking).unwrap();
        assert_eq!(near.0, [4, 6, 7]);
        // Where packets are worked on by their sender, one end is where it is.
        let own = super::base(&machine, Some("lo"), End::Answering);
        assert!(own.by_sender && own.how.contains("sender's CPU"), "{own:?}");
        let asking = super::base(&machine, None, End::Asking);
        let (cpus, why) = chosen(&machine, &asking, Seat::Far, End::Asking).unwrap();
        assert!(cpus == [0] && why.contains("within the machine"), "{why}");
        let (cpus, _) = chosen(&machine, &own, Seat::Far, End::Answering).unwrap();
        assert_eq!(cpus, [4, 6, 7]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_is_not_there_is_told() {
        let root = std::env::temp_dir().join(format!("sonde-bare-{}", std::process::id()));
        let folder = root.join("sys/devices/system/cpu");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("online"), "0").unwrap();
        let machine = Topology::below(&root);
        let told = |base: &Base, seat| chosen(&machine, base, seat, End::Answering).unwrap_err();
        let base = served(&[0], None);
        assert_eq!(told(&base, Seat::Far), "it has one memory node");
        assert_eq!(told(&base, Seat::Sibling), "its cores have one thread each");
        assert_eq!(told(&base, Seat::Near), "its memory node has one core");
        assert!(told(&served(&[], None), Seat::Same).contains("is not known which"));
        std::fs::remove_dir_all(root).unwrap();
        let error = take(Seat::Cpu(1_023), End::Asking, None).unwrap_err();
        assert!(
            error.to_string().contains("`1023` is not available")
                && error.remedy().contains("near"),
            "{error}"
        );
    }
}
