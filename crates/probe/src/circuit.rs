//! The set-up of a virtual circuit by itself: the step `vc`.
//!
//! Model:   two datagrams to the data port's number; the first sets up the circuit, so that its round trip minus the second's
//!          is the set-up. Where a network answers ARP by itself (ATM), the peer has not learned this host's address from the
//!          question, as it has on a bus, and has to ask too before it can answer: it does so by itself, and says in its
//!          answer how long that took, which is subtracted. It is in no step, and stands in the settings as
//!          `peer_neighbour_ns`.
//! Units:   nanoseconds.
//! Checked: `answers_are_no_longer_than_questions`; `tests/conversation.rs`, `startup_in_parts_has_its_steps_in_order`; in a
//!          lab the step is the configured time within 1 ms.
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

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sonde_channel::{Channel, Options, Udp, payload};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::netlink::{Netlink, Resolved};

use crate::Result;
use crate::talk::Serve;

/// The size of these datagrams: the header of any message, then a word.
pub(crate) const BYTES: usize = 16;
const WORD: std::ops::Range<usize> = 8..16;
/// In a question: what the answer is to say here.
const HOW_LONG: &[u8; 8] = b"resolved";
/// In an answer: it could not be found out.
const UNKNOWN: u64 = u64::MAX;
/// A datagram without an answer is sent again after this, and is then no sample: longer than any set-up.
pub(crate) const RESEND_AFTER: Duration = Duration::from_secs(5);

/// The set-up of a circuit, as the measuring side saw it.
pub(crate) struct SetUp {
    pub(crate) ns: u64,
    /// The peer's own question for this host's address.
    pub(crate) peer_neighbour_ns: u64,
}

/// The measuring side; the text says why there is no time.
pub(crate) fn measure(
    peer: SocketAddr,
    options: Options,
) -> Result<std::result::Result<SetUp, String>> {
    let mut channel = Udp::connect(peer, options)?;
    channel.set_resend_after(RESEND_AFTER)?;
    let mut trips_ns = [0; 2];
    let mut peer_neighbour_ns = 0;
    for (sequence, trip_ns) in trips_ns.iter_mut().enumerate() {
        let mut question = payload::message(BYTES);
        payload::stamp(&mut question, sequence as u32);
        put(&mut question, *HOW_LONG);
        let mut answer = vec![0; BYTES];
        let begin_ns = monotonic_ns();
        let resent = channel.exchange(&question, &mut answer)?;
        *trip_ns = monotonic_ns().saturating_sub(begin_ns);
        if resent > 0 {
            return Ok(Err("a datagram was lost and retransmitted".into()));
        }
        payload::check(&answer, sequence as u32)
            .map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?;
        if sequence == 0 {
            peer_neighbour_ns = word(&answer).map_or(UNKNOWN, u64::from_le_bytes);
        }
    }
    if peer_neighbour_ns == UNKNOWN {
        return Ok(Err(
            "the peer could not resolve this host by itself, so the circuit's set-up is not distinguishable from that".into(),
        ));
    }
    let [first_ns, second_ns] = trips_ns;
    let ns = first_ns
        .saturating_sub(second_ns)
        .saturating_sub(peer_neighbour_ns);
    Ok(Ok(SetUp {
        ns,
        peer_neighbour_ns,
    }))
}

/// The serving side: makes an answer of a datagram, of the same size. Whether it was such a question.
pub(crate) fn answer(datagram: &mut [u8], from: IpAddr, serve: &Serve) -> bool {
    if !is_question(datagram) {
        return false;
    }
    let ns = match &serve.flush_neighbour {
        Some(interface) => resolve(interface, from, serve.spec.timeout()).unwrap_or(UNKNOWN),
        // Whoever is known need not be asked for.
        None => 0,
    };
    put(datagram, ns.to_le_bytes());
    true
}

/// Whether a datagram asks how long this side took.
pub(crate) fn is_question(datagram: &[u8]) -> bool {
    datagram.len() == BYTES && word(datagram) == Some(*HOW_LONG)
}

/// The word of a datagram that has one.
fn word(datagram: &[u8]) -> Option<[u8; 8]> {
    datagram.get(WORD)?.first_chunk().copied()
}

fn put(datagram: &mut [u8], word: [u8; 8]) {
    let place = datagram.get_mut(WORD);
    if let Some(place) = place.and_then(<[u8]>::first_chunk_mut) {
        *place = word;
    }
}

fn resolve(interface: &str, from: IpAddr, timeout: Duration) -> Result<u64> {
    let mut netlink = Netlink::open()?;
    let index = netlink.index(interface)?;
    let way = netlink.way_to(from)?;
    let whom = match (way.gateway, from) {
        _ if way.local || way.ifindex != index => return Ok(0),
        (Some(gateway), _) => gateway,
        (None, IpAddr::V4(from)) => from,
        (None, IpAddr::V6(_)) => return Ok(UNKNOWN),
    };
    Ok(match netlink.resolve_neighbour(index, whom, timeout)? {
        Resolved::After { ns } => ns,
        Resolved::Needless => 0,
        Resolved::Failed | Resolved::Silence => UNKNOWN,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::{Path, Probe, Spec, Wait};

    #[test]
    fn answers_are_no_longer_than_questions() {
        let serve = Serve {
            spec: Spec::new(Probe::Startup, Path::Udp, Wait::Block),
            bind: [127, 0, 0, 1].into(),
            token: "t".into(),
            peer: None,
            flush_neighbour: None,
        };
        let here = serve.bind;
        let mut question = payload::message(BYTES);
        // A message of that size is no question, and stays as it is.
        assert!(!answer(&mut question, here, &serve));
        assert_eq!(question, payload::message(BYTES));
        question[WORD].copy_from_slice(HOW_LONG);
        assert!(!answer(&mut question[1..], here, &serve));
        assert!(answer(&mut question, here, &serve));
        assert_eq!(question[WORD], [0; 8]);
    }
}
