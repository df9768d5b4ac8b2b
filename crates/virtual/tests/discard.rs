//! TCP over congested ATM.

use sonde_link::{NetworkSpec, Port, resolve};
use sonde_units::{Bytes, Span};
use sonde_virtual::{Sender, share};

fn spec(selector: &str) -> NetworkSpec {
    resolve(selector, &|_| unreachable!()).unwrap()
}

#[test]
fn table() {
    let secs: u64 = std::env::var("SECS").map_or(2, |s| s.parse().unwrap());
    let seeds: u64 = std::env::var("SEEDS").map_or(1, |s| s.parse().unwrap());
    let flows: Vec<_> = (1..=10).map(|p| (Port(p), Port(0))).collect();
    let rto: u64 = std::env::var("RTO").map_or(200, |s| s.parse().unwrap());
    let delay: u64 = std::env::var("DELAY").map_or(0, |s| s.parse().unwrap());
    let wnd: u64 = std::env::var("WND").map_or(64, |s| s.parse().unwrap());
    let sender = Sender { rto_min: Span::millis(rto), sack: std::env::var("SACK").is_ok(), ..Sender::era(Bytes::kib(wnd)) };
    for mtu in [552u64, 1500, 4352, 9180] {
        let pdu = (mtu + 16).div_ceil(48);
        for buffer in [256u64, 512, 1000, 2000, 3000] {
            if buffer * 10 < pdu * 13 { continue; }
            print!("{mtu} {buffer}:");
            for seed in 0..seeds {
            for discard in ["tail", "ppd", "epd"] {
                let spec = spec(&format!("atm-oc3c:mtu={mtu}:buffer={buffer}cells:discard={discard}:delay={delay}us{}", std::env::var("PCR").map_or(String::new(), |p| format!(":pcr={p}Mbit"))));
                
                let s = share(&spec, &flows, &sender, Span::secs(secs), seed).unwrap();
                let sum: u64 = s.rates_bps.iter().sum();
                print!(" {discard} {:.2} l{} t{} w{}", sum as f64 / 1e6, s.lost, s.timeouts, s.counters.cells_wasted);
            }
            println!();
            }
        }
    }
}
