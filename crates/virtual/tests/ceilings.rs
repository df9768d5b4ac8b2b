//! Each network of the catalogue carries datagrams and a stream, and meets its ceiling within 0.2 %.

use sonde_link::{Headers, NetworkSpec, catalogue, resolve, tcp_max, tcp_with_acks, udp_max};
use sonde_units::Bytes;
use sonde_virtual::{Reason, Sender, tcp_expected, udp_expected};

/// Within 0.2 %.
fn meets((most, got): (u64, u64)) -> bool {
    got.abs_diff(most) <= most / 500
}

/// What a stream can reach, and by which closed form.
fn ceiling(spec: &NetworkSpec) -> (u64, &'static str) {
    let headers = Headers::Timestamps;
    if spec.name == "sci-1g8" {
        // Of a segment: 24 blocks in packets of 82 bytes, and the echoes of their responses, of 10. Of an acknowledgement
        // for two of them, the same link carries the response to its one block, of 18, and the echo that takes its place.
        let (segment, ack) = (24 * (82 + 10), 18 + 10);
        let bits = u128::from(2 * headers.segment(Bytes(spec.mtu)).bits());
        let rate = u128::from(spec.line.rate.unwrap().bps());
        let on_link = (2 * segment + ack) * 8;
        return ((bits * rate / on_link) as u64, "link with responses");
    }
    let with_acks = tcp_with_acks(spec, headers).unwrap();
    if with_acks < tcp_max(spec, headers).unwrap() {
        return (with_acks, "medium with acknowledgements");
    }
    (with_acks, "headers")
}

#[test]
fn every_row_meets_its_ceiling() {
    let (mut failed, mut rows) = (Vec::new(), 0);
    println!(
        "network             udp_max   udp_expd  below %    ceiling   tcp_expd  below %  ceiling of (rates in kb/s)"
    );
    for spec in catalogue().iter().filter(|spec| spec.line.rate.is_some()) {
        let payload = Bytes(spec.mtu - 28);
        let udp = (
            udp_max(spec, payload).unwrap(),
            udp_expected(spec, payload).unwrap(),
        );
        let (most, by) = ceiling(spec);
        let tcp = (most, tcp_expected(spec, &Sender::modern()).unwrap());
        let below = |(most, got): (u64, u64)| (most as f64 / got as f64 - 1.0) * 100.0;
        println!(
            "{:<16} {:>10} {:>10} {:>8.3} {:>10} {:>10} {:>8.3}  {by}",
            spec.name,
            udp.0 / 1_000,
            udp.1 / 1_000,
            below(udp),
            tcp.0 / 1_000,
            tcp.1 / 1_000,
            below(tcp)
        );
        let above = udp.1 > udp.0 || tcp.1 > tcp_max(spec, Headers::Timestamps).unwrap();
        if above || !meets(udp) || !meets(tcp) {
            failed.push(spec.name.clone());
        }
        rows += 1;
    }
    assert!(failed.is_empty(), "{failed:?} of {rows} rows");
    assert!(rows >= 33, "{rows} rows");
}

/// Rows without a rate: nothing bounds a stream on `wire`; with a delay, a window goes in each round trip.
#[test]
fn a_row_without_a_ceiling_meets_its_window() {
    let all = catalogue();
    let without: Vec<_> = all.iter().filter(|spec| spec.line.rate.is_none()).collect();
    assert_eq!(without.len(), 1);
    let sender = Sender::modern();
    assert_eq!(tcp_expected(without[0], &sender), Err(Reason::Boundless));
    for (delay_ms, mtu) in [(1, 1_500), (10, 1_500), (10, 552), (40, 1_500)] {
        let selector = format!("wire:delay={delay_ms}ms:mtu={mtu}");
        let spec = resolve(&selector, &|_| unreachable!()).unwrap();
        let segment = sender.headers.segment(Bytes(mtu));
        let segments = sender.receive_window.0 / segment.0;
        // An odd one is acknowledged with the first of the next turn.
        assert_eq!(segments % 2, 0, "{selector}");
        let want = segments * segment.bits() * 1_000 / (2 * delay_ms);
        assert_eq!(tcp_expected(&spec, &sender), Ok(want), "{selector}");
    }
}
