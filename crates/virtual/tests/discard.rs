//! TCP over congested ATM: ten Reno senders into one port of OC-3c.
//!
//! Model:   windows of 64 KiB, lines of some microseconds; hosts that send 40 Mb/s of cells each (`pcr`), so that no sender
//!          alone fills the port, and timers of 10 ms at least, so that it does not stand idle: then discard decides what is
//!          left. With senders as fast as the port and timers of 200 ms one keeps it for itself while the others wait, and
//!          plain discard looks good at the price of fairness.
//! Source:  Romanow and Floyd 1995 (order of the rules; threshold at half the buffer); Goyal, Jain et al. 1996 (no loss where
//!          the buffer is the sum of the windows). The bound of 0.9 is ours.

use sonde_link::{Cause, Headers, NetworkSpec, Place, Port, parse, resolve, tcp_max};
use sonde_units::{Bytes, Span};
use sonde_virtual::{Sender, Shared, share};

const SENDERS: u16 = 10;
const WINDOW: Bytes = Bytes::kib(64);

fn spec(selector: &str) -> NetworkSpec {
    resolve(selector, &|_| unreachable!()).unwrap()
}

fn reno() -> Sender {
    Sender {
        rto_min: Span::millis(10),
        ..Sender::era(WINDOW)
    }
}

fn into_one(senders: u16) -> Vec<(Port, Port)> {
    (1..=senders).map(|port| (Port(port), Port(0))).collect()
}

/// Ten senders; their rates together, in parts of what the headers leave.
fn run(spec: &NetworkSpec) -> (Shared, f64) {
    let shared = share(spec, &into_one(SENDERS), &reno(), Span::secs(1), 0).unwrap();
    let sum: u64 = shared.rates_bps.iter().sum();
    let most = tcp_max(&spec_of_port(spec), Headers::Plain).unwrap();
    (shared, sum as f64 / most as f64)
}

/// The line into the receiver, which keeps to no peak rate.
fn spec_of_port(spec: &NetworkSpec) -> NetworkSpec {
    let mut port = spec.clone();
    if let Some(traffic) = &mut port.atm {
        traffic.pcr = None;
    }
    port
}

/// Lines as long as those of the switch of packets.
fn atm(mtu: u64, buffer: u64, rule: &str) -> NetworkSpec {
    spec(&format!(
        "atm-oc3c:length_m=56:pcr=40Mbit:mtu={mtu}:buffer={buffer}cells:discard={rule}"
    ))
}

/// A switch of packets with the same rates, and room for as many user bytes.
fn packets(mtu: u64, buffer: u64) -> NetworkSpec {
    let mut text = format!(
        "name = \"packets\"\nsummary = \"x\"\ntechnology = \"ethernet\"\ntopology = \"star\"\nmtu = {mtu}\n\
         [line]\nrate = \"149.76Mbit\"\nframing = \"ethernet\"\nlength_m = 56\n\
         [switch]\nforwarding = \"store-and-forward\"\nlatency = \"10us\"\nbuffer = \"{}B\"\n",
        buffer * 48
    );
    for port in 1..=SENDERS {
        text += &format!("[[port]]\nport = {port}\nrate = \"40Mbit\"\n");
    }
    parse("packets", &text).unwrap()
}

fn cells(mtu: u64) -> u64 {
    (mtu + 16).div_ceil(48)
}

/// Plain < PPD < EPD at each buffer of 1.3 frames or more; where EPD's threshold, half the buffer, is less than a frame,
/// it is only above plain.
fn grid(mtu: u64) {
    println!("  MTU buffer    plain   PPD     EPD  packets  (parts of the ceiling)  wasted cells");
    for buffer in [256, 512, 1_000, 2_000, 3_000] {
        if buffer * 10 < cells(mtu) * 13 {
            continue;
        }
        let rules = ["tail", "ppd", "epd"];
        let [plain, ppd, epd] = rules.map(|rule| run(&atm(mtu, buffer, rule)));
        let packets = run(&packets(mtu, buffer)).1;
        let wasted = [&plain, &ppd, &epd].map(|result| result.0.counters.cells_wasted);
        println!(
            "{mtu:>5} {buffer:>6}    {:.3}  {:.3}  {:.3}  {packets:.3}  {wasted:?}",
            plain.1, ppd.1, epd.1
        );
        let is_early = buffer / 2 >= cells(mtu);
        assert!(plain.1 < ppd.1 && plain.1 < epd.1, "{mtu} {buffer}");
        assert!(ppd.1 < epd.1 || !is_early, "{mtu} {buffer}");
        assert!(wasted[0] > wasted[1] && wasted[1] > wasted[2], "{wasted:?}");
        if buffer * 48 >= 3 * mtu {
            assert!(epd.1 >= 0.9 * packets, "{mtu} {buffer}: {}", epd.1);
        }
    }
}

#[test]
fn order_at_552() {
    grid(552);
}

#[test]
fn order_at_1500() {
    grid(1_500);
}

#[test]
fn order_at_4352() {
    grid(4_352);
}

#[test]
fn order_at_9180() {
    grid(9_180);
}

/// What all windows hold fits: no rule takes anything, and all give the same.
#[test]
fn a_buffer_of_all_windows_loses_nothing() {
    for mtu in [1_500, 9_180] {
        let segments = WINDOW.0 / (mtu - 40);
        let buffer = u64::from(SENDERS) * segments * cells(mtu);
        let results = ["tail", "ppd", "epd"].map(|rule| {
            let mut spec = atm(mtu, buffer, rule);
            // Where EPD begins, half the buffer without it.
            spec.atm.as_mut().unwrap().threshold = Some(buffer);
            let (shared, part) = run(&spec);
            let lost = (shared.lost, shared.resent, shared.counters.cells_lost);
            assert_eq!(lost, (0, 0, 0), "{mtu} {rule}");
            // Gaps of the hosts cost up to 0.4 %, and the first segment of each is not counted.
            assert!(part > 0.99, "{mtu} {rule}: {part}");
            shared.rates_bps
        });
        assert!(results.iter().all(|rates| *rates == results[0]), "{mtu}");
    }
}

/// Two senders that fill their lines, each at its own port: the output of the third loses cells, unless hosts keep to half
/// the rate of its cells, or its buffer holds both windows.
#[test]
fn two_into_one_lose_in_the_output() {
    let flows = into_one(2);
    let sender = Sender::era(WINDOW);
    let run = |knobs: &str| {
        let spec = spec(&format!("atm-oc3c{knobs}"));
        share(&spec, &flows, &sender, Span::secs(1), 0).unwrap()
    };
    let small = run(":buffer=1000cells");
    assert!(small.lost > 0 && small.counters.cells_lost > 0);
    assert_eq!(
        small.counters.cells_lost_at.keys().collect::<Vec<_>>(),
        [&Port(0)]
    );
    for (place, cause, _) in small.counters.lost.keys() {
        assert_eq!((*place, *cause), (Place::Output, Cause::Overflow));
    }
    let windows = 2 * (WINDOW.0 / 9_140) * cells(9_180);
    // Half of 149.76 Mb/s.
    for knobs in [
        ":buffer=1000cells:pcr=74.88Mbit".to_owned(),
        format!(":buffer={windows}cells"),
    ] {
        let result = run(&knobs);
        let lost = (result.lost, result.resent, result.counters.cells_lost);
        assert_eq!(lost, (0, 0, 0), "{knobs}");
        let sum: u64 = result.rates_bps.iter().sum();
        assert!(sum > 133_000_000, "{knobs}: {sum}");
    }
}
