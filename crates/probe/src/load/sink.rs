//! Where flows of a load end: a socket whose datagrams are judged and counted.
//!
//! Model:   a datagram counts if it begins with the token, names a promised flow, has its size, and a number that has not
//!          come before. Numbers are remembered in a window of 65,536: older ones are as good as repeated. Memory is bounded
//!          by the number of flows alone.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sonde_channel::readable;
use sonde_sys::cpu::thread_cpu_ns;
use sonde_sys::datagrams::{self, BATCH_MAX};

use super::{HEADER_BYTES, Promised, ReceivedFlow};
use crate::{Error, Result};

/// Room for bursts while the thread is not let in; the kernel may grant less.
const BUFFER_BYTES: usize = 8 << 20;
const PAUSE: Duration = Duration::from_millis(50);
const WINDOW: u64 = 65_536;

/// The numbers that came lately.
struct Window {
    bits: Box<[u64]>,
    /// All numbers below are known or too old.
    next: u64,
}

impl Window {
    fn new() -> Self {
        Self {
            bits: vec![0; (WINDOW / 64) as usize].into(),
            next: 0,
        }
    }

    /// Whether `number` is new.
    fn take(&mut self, number: u64) -> bool {
        if number >= self.next.saturating_add(WINDOW) {
            self.bits.fill(0);
        } else {
            for passed in self.next..=number {
                if let Some((word, bit)) = self.place(passed) {
                    *word &= !bit;
                }
            }
        }
        let next = self.next;
        let Some((word, bit)) = self.place(number) else {
            return false;
        };
        if number < next && (next.saturating_sub(number) > WINDOW || *word & bit != 0) {
            return false;
        }
        *word |= bit;
        self.next = next.max(number.saturating_add(1));
        true
    }

    /// The word and the bit of a number: there is one for each of the last [`WINDOW`].
    fn place(&mut self, number: u64) -> Option<(&mut u64, u64)> {
        let within = number % WINDOW;
        let word = self.bits.get_mut((within / 64) as usize)?;
        Some((word, 1_u64.rotate_left((within % 64) as u32)))
    }
}

/// Judges datagrams.
pub(crate) struct Judge {
    token: [u8; 16],
    flows: Vec<(Promised, Window, ReceivedFlow)>,
    refused: u64,
}

impl Judge {
    pub(crate) fn new(token: [u8; 16], promised: &[Promised]) -> Self {
        let flow = |one: &Promised| {
            let counts = ReceivedFlow {
                number: one.number,
                ..ReceivedFlow::default()
            };
            (*one, Window::new(), counts)
        };
        Self {
            token,
            flows: promised.iter().map(flow).collect(),
            refused: 0,
        }
    }

    /// Takes a datagram of `size` bytes that begins with `begin`.
    pub(crate) fn take(&mut self, begin: &[u8], size: usize) {
        let Some((flow, number)) = read(begin, &self.token) else {
            self.refused = self.refused.saturating_add(1);
            return;
        };
        let promised = |(one, ..): &&mut (Promised, Window, ReceivedFlow)| {
            one.number == flow && one.size_bytes as usize == size
        };
        match self.flows.iter_mut().find(promised) {
            None => self.refused = self.refused.saturating_add(1),
            Some((_, window, counts)) => {
                let count = match window.take(number) {
                    true => &mut counts.received,
                    false => &mut counts.again,
                };
                *count = count.saturating_add(1);
            }
        }
    }

    /// How many datagrams it was given.
    pub(crate) fn seen(&self) -> u64 {
        let flows = self.flows.iter().map(|(.., counts)| counts);
        let counted = flows.map(|counts| counts.received.saturating_add(counts.again));
        counted.fold(self.refused, u64::saturating_add)
    }
}

/// Flow and number of a datagram with the token.
fn read(begin: &[u8], token: &[u8; 16]) -> Option<(u32, u64)> {
    let (found, rest) = begin.split_first_chunk()?;
    let (flow, rest) = rest.split_first_chunk()?;
    let (number, _) = rest.split_first_chunk()?;
    (found == token).then(|| (u32::from_be_bytes(*flow), u64::from_be_bytes(*number)))
}

/// The bytes that a token stands for.
pub(crate) fn token_bytes(token: &str) -> Result<[u8; 16]> {
    let refused = || Error::Unmeasurable {
        what: format!("a token has 32 characters, not {}", token.len()),
        remedy: "give 32 hexadecimal digits",
    };
    if token.len() != 32 || !token.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(refused());
    }
    let whole = u128::from_str_radix(token, 16).map_err(|_| refused())?;
    Ok(whole.to_be_bytes())
}

/// What the thread shares.
#[derive(Default)]
pub(super) struct Shared {
    flows: Mutex<Vec<ReceivedFlow>>,
    pub(super) refused: AtomicU64,
    pub(super) cpu_ns: AtomicU64,
    over: AtomicBool,
}

/// An open sink; its thread ends with it.
pub(super) struct Sink {
    port: u16,
    pub(super) shared: Arc<Shared>,
}

impl Sink {
    pub(super) fn open(bind: IpAddr, token: [u8; 16], promised: &[Promised]) -> Result<Self> {
        let local = SocketAddr::new(bind, 0);
        let control = |source| Error::Control {
            what: format!("open a sink at {bind}"),
            source,
        };
        let socket = UdpSocket::bind(local).map_err(control)?;
        let port = socket.local_addr().map_err(control)?.port();
        sonde_sys::socket::set_recv_buffer(&socket, BUFFER_BYTES)?;
        let shared = Arc::new(Shared::default());
        let (theirs, judge) = (Arc::clone(&shared), Judge::new(token, promised));
        theirs.publish(&judge);
        sonde_sys::thread::start("a receiver of load", move || {
            receive(&socket, judge, &theirs);
        })?;
        Ok(Self { port, shared })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn counts(&self) -> Vec<ReceivedFlow> {
        let flows = self.shared.flows.lock();
        flows.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn publish(&self, judge: &Judge) {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        flows.clear();
        flows.extend(judge.flows.iter().map(|(.., counts)| *counts));
        self.refused.store(judge.refused, Ordering::Relaxed);
        self.cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
    }
}

fn receive(socket: &UdpSocket, mut judge: Judge, shared: &Shared) {
    let mut space = vec![[0u8; HEADER_BYTES]; BATCH_MAX];
    let mut sizes = [0; BATCH_MAX];
    while !shared.over.load(Ordering::Relaxed) {
        // A failure of the wait is one of the next receive too.
        drop(readable(&[socket.as_fd()], PAUSE));
        loop {
            let mut into: Vec<&mut [u8]> = space.iter_mut().map(|one| &mut one[..]).collect();
            let Ok(count) = datagrams::recv(socket, &mut into, &mut sizes) else {
                break;
            };
            for (begin, size) in space.iter().zip(&sizes).take(count) {
                judge.take(begin.get(..*size).unwrap_or(begin), *size);
            }
            shared.publish(&judge);
            if count < BATCH_MAX {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(token: u8, flow: u32, number: u64) -> Vec<u8> {
        [&[token; 16][..], &flow.to_be_bytes(), &number.to_be_bytes()].concat()
    }

    #[test]
    fn only_promised_datagrams_count() {
        let promised =
            [(1, 100), (4, 200)].map(|(number, size_bytes)| Promised { number, size_bytes });
        let mut judge = Judge::new([7; 16], &promised);
        judge.take(&datagram(7, 1, 0), 100);
        judge.take(&datagram(7, 4, 0), 200);
        for (bytes, size) in [
            (datagram(8, 1, 1), 100),
            (datagram(7, 2, 1), 100),
            (datagram(7, 1, 1), 200),
            (vec![7; 27], 27),
            (Vec::new(), 0),
        ] {
            let before = judge.refused;
            judge.take(&bytes, size);
            assert_eq!(judge.refused, before + 1, "{bytes:?}");
        }
        let counts: Vec<u64> = judge.flows.iter().map(|(.., one)| one.received).collect();
        assert_eq!(counts, [1, 1]);
        // What was recorded and is sent again changes nothing.
        judge.take(&datagram(7, 1, 0), 100);
        assert_eq!((judge.flows[0].2.received, judge.flows[0].2.again), (1, 1));
    }

    #[test]
    fn a_number_counts_once() {
        let mut window = Window::new();
        assert!([0, 1, 3, 2].into_iter().all(|number| window.take(number)));
        assert!([0, 1, 2, 3].into_iter().all(|number| !window.take(number)));
        // Far ahead: what is older than the window is not told from what came.
        assert!(window.take(200_000) && !window.take(200_000));
        assert!(!window.take(200_000 - WINDOW - 1));
        assert!(window.take(200_000 - WINDOW + 1) && !window.take(200_000 - WINDOW + 1));
        assert!(window.take(199_999) && window.take(200_001 + WINDOW / 2));
        assert!(!window.take(200_000), "still within the window");
        assert!(window.take(u64::MAX) && !window.take(3));
    }
}
