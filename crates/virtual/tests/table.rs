//! The catalogue as a person reads it: what each network can do, what a stream reaches, how long a frame takes.

use sonde_link::{Headers, NetworkSpec, catalogue, resolve, tcp_max};
use sonde_units::{Bytes, Span};
use sonde_virtual::{Sender, first_one_way, neighbour, one_way, tcp_expected, udp_expected};

/// Rates in kb/s, times in nanoseconds, rounded down.
fn row(spec: &NetworkSpec) -> String {
    let kbit = |bps: Option<u64>| bps.map_or("-".to_owned(), |bps| (bps / 1_000).to_string());
    let nanos = |span: Span| span.as_nanos();
    let (mtu, sender) = (Bytes(spec.mtu), Sender::modern());
    format!(
        "{:<18} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10} {:>10} {:>10}\n",
        spec.name,
        kbit(spec.line.rate.map(|rate| rate.bps())),
        kbit(tcp_max(spec, Headers::Timestamps)),
        kbit(tcp_expected(spec, &sender).ok()),
        kbit(udp_expected(spec, Bytes(mtu.0 - 28)).ok()),
        nanos(one_way(spec, Bytes(1)).unwrap().0),
        nanos(one_way(spec, mtu).unwrap().0),
        nanos(first_one_way(spec, mtu).unwrap().0),
        nanos(neighbour(spec).unwrap().0),
    )
}

#[test]
fn the_catalogue() {
    let mut table = String::from(
        "network                line  tcp_max tcp_expd udp_expd      1 B ns     MTU ns   first ns neighbr ns\n",
    );
    let knobs = ["wire:delay=10ms", "atm-oc3c:vc=svc", "atm-oc3c:mtu=1500"];
    let turned = knobs.map(|selector| resolve(selector, &|_| unreachable!()).unwrap());
    for spec in catalogue().iter().chain(&turned) {
        table += &row(spec);
    }
    assert!(
        table == include_str!("table.txt"),
        "the table is now:\n{table}"
    );
}
