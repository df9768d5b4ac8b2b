//! XDP between two ends of a veth pair in a network namespace of its own; as real root only.

use std::time::{Duration, Instant};

use sonde_sys::frames::{ETHERTYPE, FrameSocket, ROLE_AT};
use sonde_sys::netlink::{LinkChange, Netlink, VethEnd};
use sonde_sys::xdp::{self, FRAME_BYTES_MAX, Xdp};

fn head(role: u8) -> [u8; 20] {
    let mut head = [0; 20];
    head[..6].copy_from_slice(&[0xff; 6]);
    head[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
    head[ROLE_AT] = role;
    head
}

fn next(xdp: &mut Xdp) -> Vec<u8> {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if let Some(frame) = xdp.take(<[u8]>::to_vec) {
            return frame;
        }
    }
    panic!("no frame within 10 s");
}

#[test]
fn frames_go_through_memory_of_the_program_and_others_pass() {
    if let Some(why) = xdp::obstacle() {
        println!("skipped: {why}");
        return;
    }
    // The test's own thread alone is in the new namespace, and it goes with the thread.
    // SAFETY: a new network namespace for this thread takes no memory away from any other.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        println!(
            "skipped: no network namespace ({})",
            std::io::Error::last_os_error()
        );
        return;
    }
    let mut netlink = Netlink::open().unwrap();
    let end = |name| VethEnd {
        name,
        mtu_bytes: 1_500,
        mac: None,
        netns: None,
    };
    netlink.add_veth(&end("one"), &end("two")).unwrap();
    let [one, two] = ["one", "two"].map(|name| netlink.index(name).unwrap());
    for index in [one, two] {
        let up = LinkChange {
            up: Some(true),
            ..LinkChange::default()
        };
        netlink.set_link(index, &up).unwrap();
    }
    netlink.wait_running(one, 5_000_000_000).unwrap();
    netlink.wait_running(two, 5_000_000_000).unwrap();
    let mut near = Xdp::open(one, 1).unwrap();
    let mut far = Xdp::open(two, 2).unwrap();
    println!(
        "attached by {} and {}",
        near.mode().name(),
        far.mode().name()
    );
    // One program an interface.
    assert_eq!(
        Xdp::open(two, 2).unwrap_err().errno(),
        Some(rustix::io::Errno::BUSY)
    );
    // More than there are chunks, so that each is used again.
    for number in 0..2_000usize {
        let body = vec![number as u8; 40 + number % 1_000];
        while !near.send(&[&head(2), &body]).unwrap() {}
        let frame = next(&mut far);
        assert_eq!((&frame[..20], &frame[20..]), (&head(2)[..], &body[..]));
        while !far.send(&[&head(1), &body[..1], &[0; 60]]).unwrap() {}
        assert_eq!(next(&mut near)[20], number as u8);
    }
    // Frames of another role go their way, to the kernel and its packet sockets.
    let other = FrameSocket::open(two, 9).unwrap();
    while !near.send(&[&head(9), &[7; 60]]).unwrap() {}
    let mut buffer = [0; 200];
    let (_, size) =
        rustix::net::recv(&other, &mut buffer, rustix::net::RecvFlags::empty()).unwrap();
    assert_eq!((size, buffer[20]), (80, 7));
    assert!(!far.is_ready());
    assert!(near.send(&[&vec![0; FRAME_BYTES_MAX + 1]]).is_err());
    // The program goes with its socket: another can come.
    drop(far);
    Xdp::open(two, 2).unwrap();
}
