//! The ways of moving bytes and of timing them: which are here, and what the others need.
//!
//! Model:   each is tried as a probe would: a socket, a ring, a segment is made and thrown away; nothing is sent. The paths
//!          `tcp` and `udp` are in every kernel.
//! Checked: `each_way_is_tried`, `a_card_without_stamps_is_named`.

use super::{Check, Group, Topic, topic};
use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use sonde_sys::netlink::Netlink;
use sonde_sys::{batch, frames, nicstamps, shared, tsc, uring, xdp, zerocopy};

fn about(name: &str, needed_for: &str) -> Topic {
    topic(Group::Network, name, needed_for)
}

/// All checks of paths and methods.
pub fn checks() -> Vec<Check> {
    vec![
        unix(),
        shm(),
        packet(),
        rings(),
        xdp(),
        zerocopy(),
        uring(),
        gso(),
        hardware(),
    ]
}

fn judge<T, E: std::fmt::Display>(
    about: Topic,
    tried: Result<T, E>,
    found: &str,
    remedy: &str,
) -> Check {
    match tried {
        Ok(_) => about.ok(found),
        Err(error) => about.missing(error.to_string().replace('\n', " "), remedy),
    }
}

fn unix() -> Check {
    let tried = std::os::unix::net::UnixStream::pair();
    judge(
        about("path unix", "streams within this machine"),
        tried,
        "UNIX sockets can be opened",
        "allow AF_UNIX in the container's seccomp profile",
    )
}

fn shm() -> Check {
    judge(
        about(
            "path shm",
            "messages through memory that two processes share",
        ),
        shared::Shared::create(1 << 16),
        "memory can be shared (memfd), rings and segment",
        "allow memfd_create in the container's seccomp profile, and lift the limit of locked or shared memory",
    )
}

/// Whether frames past TCP/IP can be had.
fn packet() -> Check {
    let about = about(
        "path packet",
        "messages as raw frames, without TCP, UDP and IP",
    );
    judge(
        about,
        frames::obstacle().map_or(Ok(()), Err),
        "packet sockets can be opened",
        "run as root, or `setcap cap_net_raw+ep` the program; the lab's own hosts have it",
    )
}

/// Rings of packet sockets, tried on loopback.
fn rings() -> Check {
    const LOOPBACK: u32 = 1;
    const FRAME_BYTES: usize = 2_048;
    let about = about(
        "packet rings",
        "frames that are handed over without a system call",
    );
    let open = frames::FrameSocket::open(LOOPBACK, 0);
    let tried = open.and_then(|socket| sonde_sys::ring::Ring::new(socket, FRAME_BYTES));
    judge(
        about,
        tried,
        "rings of packet sockets can be mapped",
        "see path packet; where that is there, raise the limit of locked memory (`ulimit -l`)",
    )
}

/// Whether frames by AF_XDP can be had.
fn xdp() -> Check {
    let about = about(
        "path xdp",
        "messages as frames that bypass the kernel's protocol stack",
    );
    judge(
        about,
        xdp::obstacle().map_or(Ok(()), Err),
        "XDP programs can be loaded; frames of up to 3.5 kB, by copies",
        "run as real root on the host itself, outside user namespaces and labs",
    )
}

fn zerocopy() -> Check {
    let tried = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))
        .map_err(|errno| errno.to_string())
        .and_then(|socket| zerocopy::permit(socket).map_err(|error| error.to_string()));
    judge(
        about(
            "method zerocopy",
            "streams whose bytes the sender does not copy",
        ),
        tried,
        "MSG_ZEROCOPY is taken; loopback and veth copy all the same",
        "Linux 4.14 or newer",
    )
}

fn uring() -> Check {
    judge(
        about("method uring", "chains of calls in one"),
        uring::Ring::new(false),
        "io_uring can be set up",
        "as root: sysctl -w kernel.io_uring_disabled=0; in a container allow io_uring_setup in its seccomp profile",
    )
}

fn gso() -> Check {
    let tried = std::net::UdpSocket::bind("127.0.0.1:0")
        .map_err(|error| error.to_string())
        .and_then(|socket| batch::set_joined(&socket, true).map_err(|error| error.to_string()));
    judge(
        about(
            "method gso",
            "many datagrams in a call (UDP_SEGMENT, UDP_GRO)",
        ),
        tried,
        "UDP_SEGMENT and UDP_GRO are taken",
        "Linux 5.0 or newer",
    )
}

/// Whether a card of this machine stamps packets.
fn hardware() -> Check {
    let links = Netlink::open().and_then(|mut netlink| netlink.links());
    let names = links.unwrap_or_default().into_iter();
    judged(
        names
            .filter(|link| link.up && link.name != "lo")
            .map(|link| (link.name.clone(), nicstamps::obstacle(&link.name)))
            .collect(),
    )
}

fn judged(found: Vec<(String, Option<String>)>) -> Check {
    let about = about(
        "hardware time stamps",
        "an anatomy's row nic_trip_ns: the part of a round trip outside the sending host",
    );
    let has: Vec<&str> = found
        .iter()
        .filter(|(_, why)| why.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    if !has.is_empty() {
        return about.ok(format!("of all packets by {}", has.join(", ")));
    }
    let whys: Vec<String> = found.into_iter().filter_map(|(_, why)| why).collect();
    let value = match whys.is_empty() {
        true => "no interface but loopback is up".into(),
        false => whys.join("; "),
    };
    about.missing(
        value,
        "a card whose `ethtool -T IF` lists hardware-transmit, hardware-receive and the filter `all`; virtual interfaces have none",
    )
}

/// Whether round trips can be timed by the CPU's counter.
pub fn counter() -> Check {
    let about = topic(
        Group::Time,
        "time stamp counter",
        "round trips of less than a microsecond, timed at less cost",
    );
    match tsc::Counter::begin() {
        Ok(counter) => {
            let worth = counter.worth();
            about.ok(format!(
                "{} kHz, invariant; {} ns a reading, smallest step {} ns",
                counter.hz() / 1_000,
                worth.read_ns,
                worth.resolution_ns
            ))
        }
        Err(why) => about.limited(
            format!("round trips are timed by clock_gettime: {why}"),
            "use another machine or, on one with an invariant counter, the clock source tsc, see above",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn each_way_is_tried() {
        // Tests beside this one hold memory that both ways need: what is refused for a moment only is not judged.
        let tried = || [frames::obstacle(), xdp::obstacle()].map(|why| why.is_none());
        let before = tried();
        let all = checks();
        let after = tried();
        let names: Vec<&str> = all.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "path unix",
                "path shm",
                "path packet",
                "packet rings",
                "path xdp",
                "method zerocopy",
                "method uring",
                "method gso",
                "hardware time stamps"
            ]
        );
        let of = before.into_iter().zip(after);
        for (name, (before, after)) in ["path packet", "path xdp"].into_iter().zip(of) {
            let check = all.iter().find(|check| check.name == name).unwrap();
            if before == after {
                assert_eq!(check.status == Status::Ok, before, "{check:?}");
            }
        }
        for check in &all {
            assert_eq!(check.remedy.is_none(), check.status == Status::Ok);
        }
        let told = counter();
        assert_eq!(told.status == Status::Ok, tsc::obstacle().is_none());
    }

    #[test]
    fn a_card_without_stamps_is_named() {
        let none = judged(vec![("veth1".into(), Some("veth1 has none".into()))]);
        assert_eq!(
            (none.status, none.value.as_str()),
            (Status::Missing, "veth1 has none")
        );
        let some = judged(vec![
            ("veth1".into(), Some("veth1 has none".into())),
            ("eth0".into(), None),
        ]);
        assert_eq!(some.value, "of all packets by eth0");
        assert!(judged(Vec::new()).value.contains("no interface"));
    }
}
