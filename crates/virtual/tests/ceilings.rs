//! Each network of the catalogue meets its ceiling.

use sonde_link::{Headers, catalogue, tcp_max, tcp_with_acks, udp_max};
use sonde_units::Bytes;
use sonde_virtual::{Sender, tcp_expected, udp_expected};

#[test]
fn table() {
    for spec in catalogue() {
        if spec.line.rate.is_none() { continue; }
        let t0 = std::time::Instant::now();
        let payload = Bytes(spec.mtu - 28);
        let um = udp_max(&spec, payload).unwrap();
        let ue = udp_expected(&spec, payload);
        let tm = tcp_max(&spec, Headers::Timestamps).unwrap();
        let ta = tcp_with_acks(&spec, Headers::Timestamps).unwrap();
        let t1 = t0.elapsed();
        let te = tcp_expected(&spec, &Sender::modern());
        let pct = |got: &Result<u64, _>, most: u64| match got { Ok(v) => format!("{:.3}", (1.0 - *v as f64 / most as f64) * 100.0), Err::<_, sonde_virtual::Reason>(e) => e.to_string() };
        println!("{:<16} {um:>13} {ue:?} {} | {tm} {ta} {te:?} {} {} {:?} {:?}", spec.name, pct(&ue, um), pct(&te, tm), pct(&te, ta), t1, t0.elapsed());
    }
}
