//! The windows and buffers that may hold a stream, and which of them does.
//!
//! Model:   bounds of the receive window are the window that the program asked for (TCP_WINDOW_CLAMP), its SO_RCVBUF, else the last value of net.ipv4.tcp_rmem (the middle one where
//!          the kernel does not grow it), half of which is data; 65 535 bytes without window scaling; the route's `window`; the
//!          profile's. The smallest holds. Of the send buffer it is SO_SNDBUF, else half of net.ipv4.tcp_wmem. One holds the
//!          stream where bound / round trip explains the rate and is below what the network allows, no other bound is below
//!          it, and TCP says that it held the sender in half of the time. Where both are of one size TCP charges the wait now to the one, now to
//!          the other: then their sum counts, and that is named which has more of it. Where TCP says nothing, the rate
//!          must fill the bound. Where no bound is known TCP's account is all there is, and stands.
//! Source:  RFC 7323 §1.1; tcp(7), tcpi_rwnd_limited and tcpi_sndbuf_limited.
//! Units:   bytes that may be on the way; bits a second.
//! Checked: the tables of `rules`; `finding::window`.

use sonde_measure::Setting;

use super::Evidence;
use crate::limit::{EXPLAINS, FILLS, HELD, binds, explains, is_behind, window_bps};

/// The largest window without scaling.
pub(crate) const UNSCALED: u64 = 65_535;

/// Where a bound of a window is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The program asked for so much.
    Program(u64),
    /// The last value of the host's setting, or the middle one.
    Host(u64),
    /// No window scaling.
    Unscaled,
    /// The route's `window`.
    Route,
    /// The program bounds its window itself.
    Clamp,
    /// The profile of the measurement.
    Profile,
}

/// A bound of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub bytes: u64,
    /// No window of this origin is larger.
    pub most: u64,
    pub origin: Origin,
}

impl Window {
    fn exactly(bytes: u64, origin: Origin) -> Self {
        Self {
            bytes,
            most: bytes,
            origin,
        }
    }

    /// Half of it is the kernel's.
    fn of_buffer(buffer: u64) -> Self {
        Self {
            bytes: buffer / 2,
            most: buffer,
            origin: Origin::Host(buffer),
        }
    }

    fn asked(bytes: u64) -> Self {
        Self {
            bytes,
            most: 2 * bytes,
            origin: Origin::Program(bytes),
        }
    }

    /// The rates that it and the most of its origin allow.
    fn limits(&self, evidence: &Evidence) -> Option<(f64, f64)> {
        let rtt = evidence.rtt_ns?;
        Some((window_bps(self.bytes, rtt)?, window_bps(self.most, rtt)?))
    }
}

/// The bounds of the receive window, the smallest first.
pub(crate) fn windows(evidence: &Evidence) -> Vec<Window> {
    let dst = &evidence.dst;
    let buffer = dst.settings.receive_buffer_bytes();
    let first = evidence.rcvbuf_asked.map(Window::asked);
    let mut all: Vec<Window> = first
        .or_else(|| buffer.map(Window::of_buffer))
        .into_iter()
        .collect();
    let mut ends = [&evidence.src, dst].into_iter();
    if ends.any(|end| end.settings.is_on(Setting::TcpWindowScaling) == Some(false)) {
        all.push(Window::exactly(UNSCALED, Origin::Unscaled));
    }
    let route = dst.settings.number(Setting::RouteWindow);
    all.extend(route.map(|bytes| Window::exactly(bytes, Origin::Route)));
    let profile = evidence.profile_window;
    all.extend(profile.map(|bytes| Window::exactly(bytes, Origin::Profile)));
    let clamp = evidence.window_asked;
    all.extend(clamp.map(|bytes| Window::exactly(bytes, Origin::Clamp)));
    all.sort_by_key(|window| window.bytes);
    all
}

/// The bound of the send buffer.
fn buffer(evidence: &Evidence) -> Option<Window> {
    let asked = evidence.sndbuf_asked.map(Window::asked);
    let of_host = || evidence.src.settings.number(Setting::TcpWmem);
    asked.or_else(|| of_host().map(Window::of_buffer))
}

/// Which of two it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Receive,
    Send,
}

/// A window or buffer that holds a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hold {
    /// The bound with its rate; `None` where no bound is known.
    pub bound: Option<(Window, f64)>,
    /// The part of the time in which TCP says that it held the sender; `None` where TCP does not say.
    pub held: Option<f64>,
    /// The same of the other one, where both are of one size and share the wait.
    pub shared: Option<f64>,
}

/// The receive window, where it is what holds the stream.
pub(crate) fn receive(evidence: &Evidence) -> Option<Hold> {
    let bound = windows(evidence).first().copied();
    holds(evidence, Which::Receive, bound, buffer(evidence))
}

/// The send buffer, where it is what holds the stream. Without TCP's word it is never named.
pub(crate) fn send(evidence: &Evidence) -> Option<Hold> {
    evidence.sndbuf_share?;
    let other = windows(evidence).first().copied();
    holds(evidence, Which::Send, buffer(evidence), other)
}

fn holds(
    evidence: &Evidence,
    which: Which,
    bound: Option<Window>,
    other: Option<Window>,
) -> Option<Hold> {
    let bps = evidence.rate_bps?;
    let (held, of_other) = match which {
        Which::Receive => (evidence.rwnd_share, evidence.sndbuf_share),
        Which::Send => (evidence.sndbuf_share, evidence.rwnd_share),
    };
    let Some(window) = bound else {
        let half = held.is_some_and(|held| held >= HELD);
        return half.then_some(Hold {
            bound: None,
            held,
            shared: None,
        });
    };
    let (limit, most) = window.limits(evidence)?;
    let near = bps >= EXPLAINS.start() * limit && bps <= EXPLAINS.end() * most;
    if !near || !binds(limit, evidence.reach_bps) {
        return None;
    }
    let other = other.and_then(|other| Some(other.limits(evidence)?.0));
    let other = other.filter(|other| explains(bps, *other));
    // The other one is lower, and holds the stream before this one does.
    if other.is_some_and(|other| is_behind(limit, other)) && of_other.is_some_and(|of| of >= HELD) {
        return None;
    }
    let alike = other.is_some_and(|other| !is_behind(limit, other) && !is_behind(other, limit));
    let fills = FILLS.contains(&(bps / limit));
    let shared = of_other.filter(|_| alike && fills);
    let is_so = match (held, shared) {
        (Some(held), Some(shared)) => {
            let more = match which {
                Which::Receive => held >= shared,
                Which::Send => held > shared,
            };
            more && held + shared >= HELD
        }
        (Some(held), None) => held >= HELD,
        // Where nobody knows what the network allows, a window in full use is one to be raised only if TCP says so.
        (None, _) => fills && evidence.reach_bps.is_some(),
    };
    is_so.then_some(Hold {
        bound: Some((window, limit)),
        held,
        shared: shared.filter(|shared| *shared > 0.0),
    })
}
