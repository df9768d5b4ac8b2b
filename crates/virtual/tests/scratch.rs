use sonde_link::*;
use sonde_units::*;
use sonde_virtual::*;
#[test]
fn show() {
    for name in ["ethernet-10", "fddi", "fddi-switched"] {
        let spec = named(name).unwrap();
        println!(
            "{name} tcp {:?} max {:?} udp {:?} max {:?}",
            tcp_expected(&spec, &Sender::modern()),
            tcp_max(&spec, Headers::Timestamps),
            udp_expected(&spec, Bytes(spec.mtu - 28)),
            udp_max(&spec, Bytes(spec.mtu - 28))
        );
        for len in [1u64, 2, 5, 10, 30] {
            println!(
                "  {len}s {:?}",
                tcp_expected_over(&spec, &Sender::modern(), Span::secs(len))
            );
        }
        println!(
            "  era64 {:?} era 16 {:?}",
            tcp_expected(&spec, &Sender::era(Bytes::kib(64))),
            tcp_expected(&spec, &Sender::era(Bytes::kib(16)))
        );
    }
}
