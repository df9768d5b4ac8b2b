//! A blast of UDP datagrams from a program whose `send` blocks.
//!
//! Model:   the sender offers one datagram after the other as long as its station is ready, and goes on at its
//!          [`Event::Ready`]: nothing is lost at the sender. What a loss element takes on the way is missing at the receiver.
//! Source:  RFC 791 §3.1 and RFC 768: 28 bytes of headers.
//! Checked: `the_line_is_filled`.

use crate::idle::{Built, FAR, NEAR, built, frame, raise_circuit};
use crate::meter::{ENOUGH, Meter, Reason};
use crate::{Clock, Happening};
use sonde_link::{Admission, Class, Event, NetworkSpec, Port};
use sonde_units::{Bytes, Span};

/// Those of IPv4 and UDP.
pub(crate) const HEADERS: u64 = 28;

/// The rate of user bytes at the receiver of datagrams of `payload` bytes in the second after the first, in bits a second.
///
/// # Errors
/// [`Reason`]: why nothing can be expected.
pub fn udp_expected(spec: &NetworkSpec, payload: Bytes) -> Result<u64, Reason> {
    let len = Bytes(payload.0.saturating_add(HEADERS));
    if len.0 > spec.mtu {
        let mtu = spec.mtu;
        return Err(Reason::Fragments { payload, mtu });
    }
    if spec.line.rate.is_none() {
        return Err(Reason::Boundless);
    }
    let mut clock: Clock<Built> = Clock::new(built(spec, 2)?);
    raise_circuit(&mut clock, spec);
    blast(clock, (NEAR, FAR), payload, spec.station.queue)
}

/// The same from one port to another of what a clock drives, where all stations on the way queue so many bytes together.
pub(crate) fn blast(
    mut clock: Clock<Built>,
    (from, to): (Port, Port),
    payload: Bytes,
    queues: Bytes,
) -> Result<u64, Reason> {
    let len = Bytes(payload.0.saturating_add(HEADERS));
    // The stations' queues turn over: from then on every turn is alike.
    let turn = queues.0.div_ceil(len.0);
    let mut meter = Meter::new(
        clock.now(),
        Span::secs(1),
        Span::secs(1),
        ENOUGH.max(8 * turn),
    );
    let (mut sent, mut arrived) = (0, 0);
    let mut send = |clock: &mut Clock<Built>| {
        while clock.ready(from, Class::default())
            && clock.offer(frame(sent, from, to, len)) == Admission::Taken
        {
            sent += 1;
        }
    };
    send(&mut clock);
    while let Some(happening) = clock.step(meter.until()) {
        match happening {
            Happening::Event(Event::Deliver {
                at, to: at_port, ..
            }) if at_port == to => {
                arrived += 1;
                if arrived == 2 * turn {
                    meter.settle(at);
                }
                if !meter.deliver(at, payload)? {
                    break;
                }
            }
            Happening::Event(Event::Ready { .. }) => send(&mut clock),
            _ => {}
        }
    }
    meter.rate()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_link::{catalogue, resolve, udp_max};

    #[test]
    fn the_line_is_filled() {
        for spec in catalogue().iter().filter(|spec| spec.line.rate.is_some()) {
            for payload in [1, 64, 524, spec.mtu - 28].map(Bytes) {
                let most = udp_max(spec, payload).unwrap();
                let got = udp_expected(spec, payload).unwrap();
                let least = most - most / 1_000;
                assert!(
                    got <= most && got >= least,
                    "{} {payload}: {got} of {most}",
                    spec.name
                );
            }
        }
    }

    #[test]
    fn losses_are_missing_at_the_receiver() {
        let spec = resolve("ethernet-100:loss=10%", &|_| unreachable!()).unwrap();
        let (got, most) = (
            udp_expected(&spec, Bytes(1_472)).unwrap(),
            udp_max(&spec, Bytes(1_472)).unwrap(),
        );
        assert!(got > most * 88 / 100 && got < most * 92 / 100, "{got}");
    }

    #[test]
    fn nothing_is_expected_without_a_reason() {
        let spec = |name| resolve(name, &|_| unreachable!()).unwrap();
        assert_eq!(
            udp_expected(&spec("wire:delay=1ms"), Bytes(1)),
            Err(Reason::Boundless)
        );
        let fragments = udp_expected(&spec("ethernet-100"), Bytes(1_473)).unwrap_err();
        assert!(fragments.to_string().contains("1501"), "{fragments}");
    }
}
