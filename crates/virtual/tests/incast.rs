//! Many senders and one receiver: where the collapse begins, and what is left of the line.

use sonde_link::{Headers, NetworkSpec, Port, SiteSpec, parse_site, resolve, tcp_with_acks};
use sonde_units::{Bytes, Span};
use sonde_virtual::{Incast, Reason, Sender, incast, incast_at};

fn spec(selector: &str) -> NetworkSpec {
    resolve(selector, &|_| unreachable!()).unwrap()
}

/// Answers of one first window each: 10 segments of 1448 bytes.
fn first_windows(senders: u16, buffer: u64) -> Incast {
    let spec = spec(&format!("ethernet-1g:buffer={buffer}frames"));
    incast(&spec, senders, Bytes(14_480), &Sender::modern()).unwrap()
}

/// Frames of all senders arrive side by side, the output takes one frame in the time in which each brings one: of N senders
/// with W frames each, N W - W are waiting when the last arrive. That is lost which finds the buffer full.
#[test]
fn loss_begins_where_the_first_windows_pass_the_buffer() {
    for buffer in [64, 256] {
        let fits = |senders: u64| senders * 10 - 10 <= buffer;
        for senders in 2..=32u16 {
            let result = first_windows(senders, buffer);
            if fits(u64::from(senders)) {
                assert_eq!((result.lost, result.timeouts), (0, 0), "{senders} {buffer}");
                assert!(result.goodput_bps > 850_000_000, "{result:?}");
            } else {
                assert!(result.lost > 0, "{senders} {buffer}");
            }
        }
    }
}

/// A little further the last is done only after a timeout (senders whose first window lost less still repair it at once), and
/// the rate is that of all bytes in 200 ms and the time of the rest.
#[test]
fn a_timeout_bounds_what_is_left() {
    let bytes = Bytes::kib(256);
    for (buffer, many) in [(64u64, [16u16, 24, 32]), (256, [48, 64, 100])] {
        let spec = spec(&format!("ethernet-1g:buffer={buffer}frames"));
        for senders in many {
            let result = incast(&spec, senders, bytes, &Sender::modern()).unwrap();
            let last = *result.completion.iter().max().unwrap();
            assert!(
                result.timeouts > 0 && last > Span::millis(200),
                "{result:?}"
            );
            let all = u64::from(senders) * bytes.bits();
            assert!(result.goodput_bps <= all * 5, "{senders}: {result:?}");
            assert!(result.goodput_bps >= all * 2, "{senders}: {result:?}");
        }
    }
    // The same senders with a minimum of 1 ms are done before that.
    let spec = spec("ethernet-1g:buffer=64frames");
    let quick = Sender {
        rto_min: Span::millis(1),
        ..Sender::modern()
    };
    for senders in [16, 24, 32] {
        let slow = incast(&spec, senders, bytes, &Sender::modern()).unwrap();
        let fast = incast(&spec, senders, bytes, &quick).unwrap();
        assert!(fast.goodput_bps > 3 * slow.goodput_bps, "{fast:?}");
    }
}

#[test]
fn a_buffer_of_all_windows_never_collapses() {
    let sender = Sender::era(Bytes::kib(64));
    // 44 segments each.
    let spec = spec("ethernet-1g:buffer=704frames");
    let result = incast(&spec, 16, Bytes::mib(1), &sender).unwrap();
    assert_eq!(
        (result.lost, result.timeouts, result.retransmits),
        (0, 0, 0)
    );
    assert!(result.goodput_bps > 940_000_000 && result.completion.len() == 16);
}

#[test]
fn one_sender_alone_is_a_transfer() {
    let result = incast(&spec("ethernet-100"), 1, Bytes(1), &Sender::modern()).unwrap();
    // 84 bytes twice at 100 Mb/s, 10 us and 40 m; one byte is a segment of 53 bytes.
    assert_eq!(result.completion, [Span::nanos(2 * 7_280 + 200 + 10_000)]);
    let none = incast(
        &spec("ethernet-100:loss=100%"),
        2,
        Bytes(1),
        &Sender::modern(),
    );
    assert!(matches!(none, Err(Reason::Lost { .. })), "{none:?}");
}

#[test]
fn one_seed_one_outcome() {
    for selector in [
        "ethernet-1g:buffer=64frames",
        "ethernet-1g:loss=1%",
        "atm-oc3c",
    ] {
        let run = || {
            let result = incast(&spec(selector), 12, Bytes::kib(100), &Sender::modern());
            format!("{result:?}")
        };
        let first = run();
        assert!((0..5).all(|_| run() == first), "{selector}");
    }
}

/// Eight senders of 2 MiB each into one, on media that hold their senders back.
#[test]
fn lossless_media_lose_nothing() {
    const SENDERS: u16 = 8;
    let bytes = Bytes::mib(2);
    println!("network          goodput   ceiling  part  (rates in kb/s)");
    for name in [
        "hippi-800",
        "fc-266",
        "sp2",
        "sci-sbus",
        "allnode",
        "fddi",
        "ultranet",
        "ethernet-1g:flow_control=pause",
    ] {
        let spec = spec(name);
        let result = incast(&spec, SENDERS, bytes, &Sender::modern()).unwrap();
        let most = tcp_with_acks(&spec, Headers::Timestamps).unwrap();
        let part = result.goodput_bps as f64 / most as f64;
        println!(
            "{:<14} {:>9} {:>9}  {part:.3}",
            spec.name,
            result.goodput_bps / 1_000,
            most / 1_000
        );
        assert_eq!(
            (result.lost, result.timeouts, result.retransmits),
            (0, 0, 0),
            "{name}"
        );
        assert_eq!(result.completion.len(), usize::from(SENDERS), "{name}");
        assert!((0.9..=1.0).contains(&part), "{name}: {part}");
    }
}

/// So many senders on HIPPI and their receiver on FDDI, with a router of this buffer between.
fn behind_a_router(senders: u16, buffer: Bytes) -> SiteSpec {
    let text = format!(
        "name = \"x\"\nsummary = \"x\"\n\
         [[segment]]\nname = \"ring\"\nnetwork = \"fddi:queue=16KiB\"\nhosts = [\"sink\"]\n\
         [[segment]]\nname = \"hippi\"\nnetwork = \"hippi-800\"\nhosts = [\"from-[1-{senders}]\"]\n\
         [[router]]\nname = \"r\"\njoins = [\"ring\", \"hippi\"]\nbuffer = \"{}B\"\n",
        buffer.0
    );
    parse_site("x", &text, &|_| unreachable!()).unwrap()
}

/// HIPPI is loss free and FDDI slower, so the windows wait in the router. Not in its buffer are what its station took (half of a queue of 16 KiB: two
/// frames), what is on the ring (one), and what has come but is not acknowledged yet (up to two): so many less are room enough, and no more.
#[test]
fn a_router_holds_the_sum_of_all_windows() {
    /// Bytes of a full frame on FDDI, and frames of a window.
    const FRAME: u64 = 4_352;
    const WINDOW: u64 = 15;
    let sender = Sender::era(Bytes(WINDOW * (FRAME - 40)));
    for senders in [2, 4, 8, 16, 32] {
        let lost = |frames: u64| {
            let site = behind_a_router(senders, Bytes(frames * FRAME));
            let outcome = incast_at(&site, Port(0), Bytes::kib(512), &sender);
            outcome.unwrap().lost
        };
        let all = u64::from(senders) * WINDOW;
        for less in 0..=3 {
            assert_eq!(lost(all - less), 0, "{senders} {less}");
        }
        for less in [6, 7, all / 2] {
            assert!(lost(all - less) > 0, "{senders} {less}");
        }
    }
}
