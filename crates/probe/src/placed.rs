//! Where a socket's packets are worked on, and where the thread that waits for them runs.
//!
//! Model:   the CPU of the last packet's receive path as the kernel tells it (SO_INCOMING_CPU), and the thread's CPU at the same
//!          moment, read after what is timed. On loopback the first is the sender's CPU.
//! Checked: `a_socket_tells_where_its_packets_came_in`.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use sonde_sys::{cpu, socket};

/// As settings: `src_cpu` and `src_rx_cpu` with the prefix `src_`; the second is left out where nothing was received.
pub(crate) fn placed(prefix: &str, fd: impl AsFd) -> BTreeMap<String, String> {
    let rx = socket::incoming_cpu(fd).map(|cpu| ("rx_cpu", cpu));
    let all = [Some(("cpu", cpu::current())), rx];
    let named = |(name, cpu): (&str, usize)| (format!("{prefix}{name}"), cpu.to_string());
    all.into_iter().flatten().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_socket_tells_where_its_packets_came_in() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let here = sonde_sys::cpu::online().unwrap();
        assert!(!placed("src_", &socket).contains_key("src_rx_cpu"));
        // With itself: the kernel keeps no such account of a socket without a peer.
        socket.connect(socket.local_addr().unwrap()).unwrap();
        socket.send(b"x").unwrap();
        socket.recv(&mut [0]).unwrap();
        let placed = placed("src_", &socket);
        for name in ["src_cpu", "src_rx_cpu"] {
            let cpu: usize = placed[name].parse().unwrap();
            assert!(here.contains(&cpu), "{name} {cpu} of {here:?}");
        }
    }
}
