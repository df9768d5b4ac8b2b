//! How far apart the frames of one station arrive, against the arithmetic of the standards alone.
//!
//! Model:   a station that always has frames; 1,001 arrivals once its queue has turned over. In virtual time, which no busy
//!          machine disturbs.
//! Source:  IEEE 802.3 §3.1.1, §4.4.2: 8 + 14 + 4 + 12 bytes around at least 46, at 10 Mb/s. ITU-T I.432.2: 149.76 Mb/s of
//!          cells at STM-1; RFC 2684 §5.1 (8 bytes of LLC/SNAP) and ITU-T I.363.5 (8 bytes of trailer), 48 bytes a cell of 53.

use sonde_link::{Admission, Class, Event, Frame, FrameId, Port, build, resolve};
use sonde_units::{Bytes, Instant, Span};
use sonde_virtual::{Clock, Happening};

/// The mean gap between 1,001 arrivals of frames of `len` bytes, in picoseconds.
fn mean_gap(selector: &str, len: u64) -> f64 {
    const FIRST: usize = 3_000;
    const GAPS: usize = 1_000;
    let spec = resolve(selector, &|_| unreachable!()).unwrap();
    let mut clock: Clock<_> = Clock::new(build(&spec, 2, 1).unwrap());
    // Permanent circuits come up by themselves.
    while clock.step(Instant::START + Span::secs(10)).is_some() {}
    let (near, far) = (Port(0), Port(1));
    let (mut sent, mut arrived) = (0, Vec::new());
    while arrived.len() <= FIRST + GAPS {
        while clock.ready(near, Class::default())
            && clock.offer(Frame::datagram(FrameId(sent), near, far, Bytes(len)))
                == Admission::Taken
        {
            sent += 1;
        }
        match clock
            .step(Instant::from_picos(u64::MAX / 2))
            .expect("frames are under way")
        {
            Happening::Event(Event::Deliver { at, .. }) => arrived.push(at),
            Happening::Event(Event::Lost { place, cause, .. }) => panic!("{place:?} {cause:?}"),
            _ => {}
        }
    }
    let span = arrived[FIRST + GAPS].since(arrived[FIRST]);
    span.as_picos() as f64 / GAPS as f64
}

#[test]
fn frames_are_as_far_apart_as_the_standards_say() {
    let slot = |len: u64| (len.max(46) + 38) as f64 * 0.8;
    let cells = |len: u64| (len + 16).div_ceil(48) as f64 * 424.0 / 149.76;
    let mut rows = 0;
    for len in [29, 46, 128, 576, 1_024, 1_500] {
        for (selector, want_us) in [
            ("ethernet-10", slot(len) + 2.0),
            ("ethernet-10:turnaround=0s", slot(len)),
            ("atm-oc3c", cells(len)),
        ] {
            let got_us = mean_gap(selector, len) / 1e6;
            let ratio = got_us / want_us;
            println!("{selector} {len} B: {got_us:.4} us, ratio {ratio:.6}");
            assert!((ratio - 1.0).abs() < 0.000_5, "{selector} {len} B: {ratio}");
            rows += 1;
        }
    }
    assert_eq!(rows, 18);
}
