//! TCP: the kernel-like sender and receiver whose streams run over a network in virtual time.
//!
//! Model:   both ends count in segments, all full but the last of a bounded flow. [`Sender`] says how they behave; its parts
//!          are in the modules: what is out and what is lost, the window, the timer, the receiving end, and the flows of
//!          one network.
//! Source:  RFC 6928 §2 (ten segments), RFC 5681, RFC 9438, RFC 6675, RFC 6582, RFC 6298, RFC 7323; Linux
//!          `net/ipv4/tcp_input.c`: `__tcp_ack_snd_check`, `TCP_MAX_QUICKACKS` 16, `TCP_DELACK_MIN` 40 ms, `TCP_RTO_MIN`
//!          200 ms. Deviations: in each module; connecting is not in it, nor the host's time; no segment is cut to fill a
//!          window, as with Nagle's rule.
//! Checked: `tcp/traffic/tests.rs`, `tests/loss.rs`, `tests/incast.rs`.

mod congestion;
mod receive;
mod recovery;
mod timer;
pub(crate) mod traffic;
mod transmit;

pub use congestion::Congestion;
pub(crate) use transmit::Transmit;

use sonde_link::Headers;
use sonde_units::{Bytes, Span};

/// What decides how a host sends and receives a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// With time stamps or without.
    pub headers: Headers,
    /// The congestion window at the start, in segments, above 0.
    pub initial_segments: u64,
    /// User bytes that may be unacknowledged at the sender.
    pub send_buffer: Bytes,
    /// User bytes that the receiver lets come.
    pub receive_window: Bytes,
    /// How long a lone segment waits for its acknowledgement.
    pub delayed_ack: Span,
    /// Segments at the start that are acknowledged at once.
    pub quick_acks: u64,
    /// What sets the window after a loss.
    pub congestion: Congestion,
    /// With selective acknowledgements or without.
    pub sack: bool,
    /// What the timer waits at least, beyond the round trip.
    pub rto_min: Span,
    /// Whether marks of congestion are asked for and heeded.
    pub ecn: bool,
}

impl Sender {
    /// A Linux host of today: time stamps, CUBIC, selective acknowledgements, windows of 6 MiB (the largest of
    /// `net.ipv4.tcp_rmem` as it comes), marks of congestion not asked for (`tcp_ecn` as it comes).
    pub const fn modern() -> Self {
        Self {
            headers: Headers::Timestamps,
            initial_segments: 10,
            send_buffer: Bytes::mib(6),
            receive_window: Bytes::mib(6),
            delayed_ack: Span::millis(40),
            quick_acks: 16,
            congestion: Congestion::Cubic,
            sack: true,
            rto_min: Span::millis(200),
            ecn: false,
        }
    }

    /// A host of the 1990s: no options, Reno (NewReno's recovery), a fixed window and a buffer of the same size.
    pub const fn era(window: Bytes) -> Self {
        Self {
            headers: Headers::Plain,
            send_buffer: window,
            receive_window: window,
            congestion: Congestion::Reno,
            sack: false,
            ..Self::modern()
        }
    }
}
