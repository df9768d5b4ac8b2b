//! One TCP stream, and the rate that a kernel-like sender reaches with it.
//!
//! Model:   sender at port 0, receiver at port 1, all segments full. The congestion window starts at ten segments and
//!          grows by one for each that is acknowledged (slow start); it ends at the cap: the smaller of the receiver's
//!          window and the sender's buffer, in whole segments. The sender stops at a station that is not ready and goes
//!          on at its [`Event::Ready`]. The receiver reads at once; it acknowledges every second segment, a lone one after
//!          a delay, and the first few at once. Acknowledgements are frames of their own and use the line.
//! Source:  RFC 6928 §2 (ten segments), RFC 5681 §3.1 (slow start) and §4.2 (delayed acknowledgements), RFC 3465 §2 (by
//!          what is acknowledged), RFC 7323 (time stamps); Linux `net/ipv4/tcp_input.c`: `__tcp_ack_snd_check`,
//!          `TCP_MAX_QUICKACKS` 16, `TCP_DELACK_MIN` 40 ms. Deviations: no loss recovery, a loss is a [`Reason`]; slow start
//!          does not end early (HyStart); no segment is cut to fill a window, as with Nagle's rule; connecting is not in it,
//!          nor the host's time.
//! Checked: `lines_are_filled`, `a_window_a_round_trip`, `slow_start_doubles`, property `never_above_tcp_max`.

use crate::idle::{FAR, NEAR, frame, raise_circuit};
use crate::meter::{ENOUGH, Meter, Reason};
use crate::{Clock, Happening};
use sonde_link::{Admission, Class, Event, Fabric, Headers, NetworkSpec, Port, Signalling};
use sonde_units::{Bytes, Instant, Span};

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
}

impl Sender {
    /// A Linux host of today: time stamps, windows of 6 MiB (the largest of `net.ipv4.tcp_rmem` as it comes).
    pub const fn modern() -> Self {
        Self {
            headers: Headers::Timestamps,
            initial_segments: 10,
            send_buffer: Bytes::mib(6),
            receive_window: Bytes::mib(6),
            delayed_ack: Span::millis(40),
            quick_acks: 16,
        }
    }

    /// A host of the 1990s: no options, a fixed window and a buffer of the same size.
    pub const fn era(window: Bytes) -> Self {
        Self {
            headers: Headers::Plain,
            send_buffer: window,
            receive_window: window,
            ..Self::modern()
        }
    }
}

/// The rate of user bytes at the receiver in the second after the first, in bits a second.
///
/// # Errors
/// [`Reason`]: why nothing can be expected.
pub fn tcp_expected(spec: &NetworkSpec, sender: &Sender) -> Result<u64, Reason> {
    tcp_expected_over(spec, sender, Span::secs(1))
}

/// The same over `length` after the first second.
///
/// # Errors
/// [`Reason`]: why nothing can be expected.
pub fn tcp_expected_over(spec: &NetworkSpec, sender: &Sender, length: Span) -> Result<u64, Reason> {
    if spec.line.rate.is_none() && (spec.line.propagation() + spec.path.delay).is_zero() {
        return Err(Reason::Boundless);
    }
    let mut stream = Stream::new(spec, *sender)?;
    let start = stream.clock.now();
    let mut meter = Meter::new(start, length, ENOUGH.max(8 * stream.cap));
    let end = meter.until().since(start);
    let stands = spec.circuits.is_none_or(|circuits| {
        circuits.signalling == Signalling::Pvc || circuits.resolution_lifetime > end
    });
    // The window stands still when it has been at its cap for two turns of it.
    let mut still_at = None;
    stream.send();
    while let Some(happening) = stream.clock.step(meter.until()) {
        let Some(at) = stream.take(happening)? else {
            continue;
        };
        if stands && stream.window >= stream.cap {
            let target = *still_at.get_or_insert(stream.received + 2 * stream.cap);
            if stream.received == target {
                meter.settle(at);
            }
        }
        if !meter.deliver(at, Bytes(stream.segment))? {
            break;
        }
    }
    meter.rate()
}

/// The only planned action: the delayed acknowledgement may be due.
struct AckDue;

/// Both ends of the connection; they count in segments.
struct Stream {
    clock: Clock<Fabric, AckDue>,
    sender: Sender,
    /// User bytes of a segment, and layer-3 bytes around them.
    segment: u64,
    header: u64,
    cap: u64,
    window: u64,
    sent: u64,
    acked: u64,
    received: u64,
    acknowledged: u64,
    quick_acks: u64,
    /// When the lone segment must be acknowledged; none where there is no such.
    ack_due: Option<Instant>,
    /// Whether an [`AckDue`] is planned: never more than one.
    timer: bool,
    /// An acknowledgement waits for its station.
    ack_waits: bool,
}

impl Stream {
    fn new(spec: &NetworkSpec, sender: Sender) -> Result<Self, Reason> {
        let mut clock = Clock::new(Fabric::new(spec, 2, 0)?);
        raise_circuit(&mut clock);
        let mtu = Bytes(spec.mtu);
        let full = sender.headers.segment(mtu);
        let limit = sender.receive_window.min(sender.send_buffer);
        let segment = full.min(limit).0;
        if segment == 0 {
            return Err(Reason::NoWindow);
        }
        let cap = limit.0 / segment;
        Ok(Self {
            clock,
            segment,
            header: (mtu - full).0,
            cap,
            window: sender.initial_segments.clamp(1, cap),
            sent: 0,
            acked: 0,
            received: 0,
            acknowledged: 0,
            quick_acks: sender.quick_acks,
            ack_due: None,
            timer: false,
            ack_waits: false,
            sender,
        })
    }

    /// Sends what window and station allow.
    fn send(&mut self) {
        while self.sent - self.acked < self.window && self.clock.ready(NEAR, Class::default()) {
            let len = Bytes(self.segment + self.header);
            if self.clock.offer(frame(2 * self.sent, NEAR, FAR, len)) == Admission::Blocked {
                return;
            }
            self.sent += 1;
        }
    }

    /// Acknowledges all that was received, or waits for the station.
    fn acknowledge(&mut self) {
        let ack = frame(2 * self.received + 1, FAR, NEAR, Bytes(self.header));
        self.ack_waits =
            !self.clock.ready(FAR, Class::default()) || self.clock.offer(ack) == Admission::Blocked;
        if !self.ack_waits {
            self.acknowledged = self.received;
            self.ack_due = None;
        }
    }

    /// Takes what happened; the time of a segment's arrival, if it was one.
    fn take(&mut self, happening: Happening<AckDue>) -> Result<Option<Instant>, Reason> {
        match happening {
            Happening::Event(Event::Deliver {
                at, id, to: FAR, ..
            }) => {
                if id.0 != 2 * self.received {
                    return Err(Reason::Reordered);
                }
                self.on_segment(at);
                return Ok(Some(at));
            }
            Happening::Event(Event::Deliver { id, .. }) => self.on_ack(id.0 / 2),
            Happening::Event(Event::Lost { place, cause, .. }) => {
                return Err(Reason::Lost { place, cause });
            }
            Happening::Event(Event::Ready { port: Port(0), .. }) => self.send(),
            Happening::Event(Event::Ready { .. }) if self.ack_waits => self.acknowledge(),
            Happening::Event(_) => {}
            Happening::Action(AckDue) => self.on_ack_due(),
        }
        Ok(None)
    }

    fn on_segment(&mut self, now: Instant) {
        self.received += 1;
        if self.quick_acks > 0 || self.received - self.acknowledged >= 2 {
            self.quick_acks = self.quick_acks.saturating_sub(1);
            return self.acknowledge();
        }
        let due = now + self.sender.delayed_ack;
        self.ack_due = Some(due);
        if !self.timer {
            self.timer = true;
            self.clock.plan(due, AckDue);
        }
    }

    fn on_ack_due(&mut self) {
        self.timer = false;
        match self.ack_due {
            Some(due) if due > self.clock.now() => {
                self.timer = true;
                self.clock.plan(due, AckDue);
            }
            Some(_) => self.acknowledge(),
            None => {}
        }
    }

    /// All before segment `next` arrived. An acknowledgement that was overtaken says nothing new.
    fn on_ack(&mut self, next: u64) {
        if next > self.acked {
            self.window = (self.window + next - self.acked).min(self.cap);
            self.acked = next;
            self.send();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{one_way, round_trip};
    use proptest::prelude::*;
    use sonde_link::{catalogue, parse, resolve, tcp_max};

    fn spec(selector: &str) -> NetworkSpec {
        resolve(selector, &|_| unreachable!()).unwrap()
    }

    fn window(bytes: u64) -> Sender {
        Sender {
            receive_window: Bytes(bytes),
            ..Sender::modern()
        }
    }

    #[test]
    fn lines_are_filled() {
        for (selector, kbit) in [
            ("ethernet-100", 94_148),
            ("ethernet-1g", 941_482),
            ("atm-oc3c", 134_336),
            ("atm-oc3c:vc=svc", 134_336),
            ("atm-oc3c:mtu=1500", 127_861),
            ("wan-100m-20ms", 94_148),
            ("ethernet-100:rate=400Gbit", 376_592_977),
        ] {
            let spec = spec(selector);
            let (most, got) = (
                tcp_max(&spec, Headers::Timestamps).unwrap(),
                tcp_expected(&spec, &Sender::modern()).unwrap(),
            );
            assert!(got <= most, "{selector}: {got} above {most}");
            assert!(got >= most - most / 500, "{selector}: {got} of {most}");
            assert!(got.abs_diff(kbit * 1_000) <= kbit * 2, "{selector}: {got}");
        }
    }

    /// Without a rate all segments of a turn arrive together: the window, in whole segments, every round trip. The last of
    /// an odd number is acknowledged with the first of the next turn.
    #[test]
    fn a_window_a_round_trip() {
        let wire = spec("wire:delay=10ms");
        let segments = 6 * (1 << 20) / 1_448;
        assert_eq!(segments % 2, 0);
        let rate = |segments: u64| Ok(segments * 1_448 * 8 * 50);
        assert_eq!(tcp_expected(&wire, &Sender::modern()), rate(segments));
        for (bytes, turn) in [(65_536, 44), (66_608, 46), (1_448, 1), (2_896, 2)] {
            let round_trip = if turn == 1 {
                Span::millis(60)
            } else {
                Span::millis(20)
            };
            let want = turn * 1_448 * 8_000_000_000_000 / round_trip.as_picos();
            assert_eq!(tcp_expected(&wire, &window(bytes)), Ok(want), "{bytes}");
        }
    }

    #[test]
    fn a_window_a_round_trip_with_a_rate() {
        let wan = spec("wan-100m-20ms");
        let time = |len| one_way(&wan, Bytes(len)).unwrap().0;
        for pairs in [1, 4, 22, 60] {
            // The second segment of a pair lets the acknowledgement go.
            let turn = time(1_500) + time(52) + wan.line.time(Bytes(1_500));
            let bits = u128::from(pairs * 2 * 1_448u64) * 8_000_000_000_000;
            let want = (bits / u128::from(turn.as_picos())) as u64;
            let got = tcp_expected(&wan, &window(pairs * 2 * 1_448)).unwrap();
            assert!(
                got.abs_diff(want) <= want / 100,
                "{pairs}: {got}, not {want}"
            );
        }
        let (small, large) = (
            tcp_expected(&wan, &Sender::era(Bytes::kib(32))).unwrap(),
            tcp_expected(&wan, &Sender::era(Bytes::kib(64))).unwrap(),
        );
        assert!(small * 19 / 10 < large && large < small * 21 / 10);
    }

    /// The window at each round trip of the start: ten, and all that was acknowledged.
    #[test]
    fn slow_start_doubles() {
        let mut stream = Stream::new(&spec("wire:delay=10ms"), Sender::modern()).unwrap();
        stream.send();
        let mut windows = Vec::new();
        for turn in 1..=9 {
            let until = Instant::START + Span::millis(20 * turn);
            while let Some(happening) = stream.clock.step(until) {
                stream.take(happening).unwrap();
            }
            windows.push(stream.window);
        }
        assert_eq!(windows, [20, 40, 80, 160, 320, 640, 1_280, 2_560, 4_344]);
    }

    #[test]
    fn nothing_is_expected_without_a_reason() {
        let expected = |selector| tcp_expected(&spec(selector), &Sender::modern());
        assert_eq!(expected("wire"), Err(Reason::Boundless));
        assert!(matches!(
            expected("wan-100m-20ms:loss=1%"),
            Err(Reason::Lost { .. })
        ));
        assert_eq!(
            expected("wan-100m-20ms:reorder=1%:reorder_by=1ms"),
            Err(Reason::Reordered)
        );
        assert!(matches!(
            expected("ethernet-100:rate=1kbit"),
            Err(Reason::TooFew { .. })
        ));
        let wire = spec("wire:delay=1ms");
        assert_eq!(tcp_expected(&wire, &window(0)), Err(Reason::NoWindow));
    }

    /// A longer window of measurement says the same of what stands still.
    #[test]
    fn the_length_does_not_matter() {
        for spec in catalogue().iter().filter(|spec| spec.line.rate.is_some()) {
            let over = |secs| tcp_expected_over(spec, &Sender::modern(), Span::secs(secs));
            let (short, long) = (over(1).unwrap(), over(3).unwrap());
            assert!(short.abs_diff(long) <= short / 1_000, "{}", spec.name);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_above_tcp_max(
            kbit in (1u32..=8).prop_flat_map(|digits| 10u64.pow(digits - 1)..10u64.pow(digits)),
            mtu in 68u64..9_000,
            delay_us in prop_oneof![Just(0), 1u64..100_000],
            window in prop_oneof![1u64..10_000, 10_000u64..2_000_000],
            forwarding in prop_oneof![Just("store-and-forward"), Just("cut-through")],
            queue in 2u64..100,
        ) {
            let text = format!(
                "name = \"x\"\nsummary = \"x\"\ntechnology = \"ethernet\"\ntopology = \"star\"\nmtu = {mtu}\n\
                 [line]\nrate = \"{kbit}kbit\"\nframing = \"ethernet\"\n[station]\nqueue = \"{}B\"\n\
                 [switch]\nforwarding = \"{forwarding}\"\nlatency = \"3us\"\nbuffer = \"64KiB\"\n\
                 [path]\ndelay = \"{delay_us}us\"\n", queue * mtu
            );
            let spec = parse("x", &text).unwrap();
            let sender = Sender { receive_window: Bytes(window), ..Sender::modern() };
            let most = tcp_max(&spec, sender.headers).unwrap();
            match tcp_expected(&spec, &sender) {
                Ok(got) => prop_assert!(got > 0 && got <= most, "{got} above {most}"),
                // Segments come one by one, and a second holds no two of them.
                Err(Reason::TooFew { .. }) => {
                    let turn = round_trip(&spec, Bytes(mtu)).unwrap().0;
                    prop_assert!(turn > Span::millis(450), "{turn}");
                }
                Err(reason) => prop_assert!(false, "{reason}"),
            }
        }
    }
}
