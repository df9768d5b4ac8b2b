//! The catalogue's networks against arithmetic done by hand: one-way times, ceilings, and what fits into a queue.
//!
//! Source:  IEEE 802.3 §3.1.1, §4.4.2: 38 bytes around at least 46; ITU-T I.432.2: 149.76 Mb/s, so that a cell of 424 bits
//!          takes 2,831,196.6 ps, rounded up; I.363.5 and RFC 2684: (length + 16) / 48 cells; 5 ns a metre.

use sonde_link::{
    Admission, Cause, Class, Event, Fabric, Frame, FrameId, Network, NetworkSpec, Place, Port,
    catalogue, resolve,
};
use sonde_units::{Bytes, Instant};

fn network(selector: &str) -> NetworkSpec {
    resolve(selector, &|path| panic!("{path} is not in the catalogue")).expect(selector)
}

/// A network with frames of one length before each sender, as many as the station wants at a time.
struct Flood {
    network: Fabric,
    now: Instant,
    len: Bytes,
    /// Sender, receiver, frames still to send.
    senders: Vec<(Port, Port, u64)>,
    offered: u64,
    /// When, from whom.
    delivered: Vec<(u64, Port)>,
    lost: Vec<Port>,
    from: Vec<Port>,
}

impl Flood {
    /// Sends all and waits for the end.
    fn run(spec: &NetworkSpec, len: u64, senders: &[(u16, u16, u64)]) -> Self {
        let ports = senders.iter().map(|sender| sender.0.max(sender.1) + 1);
        let ports = ports.max().expect("there is a sender");
        let mut flood = Self {
            network: Fabric::new(spec, ports, 1).expect("the network can be built"),
            now: Instant::START,
            len: Bytes(len),
            senders: senders
                .iter()
                .map(|&(from, to, left)| (Port(from), Port(to), left))
                .collect(),
            offered: 0,
            delivered: Vec::new(),
            lost: Vec::new(),
            from: Vec::new(),
        };
        flood.fill();
        while let Some(at) = flood.network.poll_at() {
            flood.now = at;
            while let Some(event) = flood.network.poll(at) {
                flood.hear(event);
            }
            flood.fill();
        }
        flood
    }

    fn fill(&mut self) {
        for (from, to, left) in &mut self.senders {
            while *left > 0 && self.network.ready(*from, Class::default()) {
                let frame = Frame::datagram(FrameId(self.offered), *from, *to, self.len);
                assert_eq!(self.network.offer(self.now, frame), Admission::Taken);
                (self.offered, *left) = (self.offered + 1, *left - 1);
                self.from.push(*from);
            }
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Deliver { at, id, .. } => {
                let from = self.from[id.0 as usize];
                self.delivered.push((at.as_picos(), from));
            }
            Event::Lost {
                id, place, cause, ..
            } => {
                assert_eq!((place, cause), (Place::Output, Cause::Overflow));
                self.lost.push(self.from[id.0 as usize]);
            }
            _ => {}
        }
    }
}

/// When a lone frame arrives.
fn alone(selector: &str, len: u64) -> u64 {
    let flood = Flood::run(&network(selector), len, &[(0, 1, 1)]);
    assert_eq!(flood.delivered.len(), 1, "{selector} {len}");
    flood.delivered[0].0
}

/// One byte over UDP is 29 at layer 3.
#[test]
fn one_way_times_are_sums_of_their_parts() {
    let rows = [
        // Two times 84 and 1538 bytes of 80 ns, twice 20 m, 10 us.
        ("ethernet-100", 29, 2 * 6_720_000 + 2 * 100_000 + 10_000_000),
        (
            "ethernet-100",
            1_500,
            2 * 123_040_000 + 2 * 100_000 + 10_000_000,
        ),
        // The same bytes of 8 ns, 5 us.
        ("ethernet-1g", 29, 2 * 672_000 + 2 * 100_000 + 5_000_000),
        (
            "ethernet-1g",
            1_500,
            2 * 12_304_000 + 2 * 100_000 + 5_000_000,
        ),
        // All cells on the first line, the last again on the second; 56 m in all, 10 us.
        (
            "atm-oc3c",
            29,
            (1 + 1) * 2_831_197 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-oc3c",
            9_180,
            (192 + 1) * 2_831_197 + 2 * 140_000 + 10_000_000,
        ),
        // The same on the other rates: the time of a cell is 424 bits at what is left for cells, rounded up.
        (
            "atm-taxi",
            29,
            (1 + 1) * 4_240_000 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-taxi",
            9_180,
            (192 + 1) * 4_240_000 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-taxi140",
            29,
            (1 + 1) * 3_028_572 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-taxi140",
            9_180,
            (192 + 1) * 3_028_572 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-25",
            29,
            (1 + 1) * 16_562_500 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-25",
            9_180,
            (192 + 1) * 16_562_500 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-ds1",
            29,
            (1 + 1) * 276_041_667 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-ds1",
            9_180,
            (192 + 1) * 276_041_667 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-ds3",
            29,
            (1 + 1) * 10_416_667 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-ds3",
            9_180,
            (192 + 1) * 10_416_667 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-ds3-direct",
            29,
            (1 + 1) * 9_590_657 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-ds3-direct",
            9_180,
            (192 + 1) * 9_590_657 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-e1",
            29,
            (1 + 1) * 220_833_334 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-e1",
            9_180,
            (192 + 1) * 220_833_334 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-e3",
            29,
            (1 + 1) * 12_500_000 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-e3",
            9_180,
            (192 + 1) * 12_500_000 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-oc12c",
            29,
            (1 + 1) * 707_800 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-oc12c",
            9_180,
            (192 + 1) * 707_800 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-oc48c",
            29,
            (1 + 1) * 176_950 + 2 * 140_000 + 10_000_000,
        ),
        (
            "atm-oc48c",
            9_180,
            (192 + 1) * 176_950 + 2 * 140_000 + 10_000_000,
        ),
        (
            "wan-oc3c",
            29,
            (1 + 1) * 2_831_197 + 2 * 1_250_000_000 + 10_000_000 + 40_000_000,
        ),
        (
            "wan-oc3c",
            9_180,
            (192 + 1) * 2_831_197 + 2 * 1_250_000_000 + 10_000_000 + 40_000_000,
        ),
        (
            "wan-ds3",
            29,
            (1 + 1) * 10_416_667 + 2 * 1_250_000_000 + 10_000_000 + 40_000_000,
        ),
        (
            "wan-ds3",
            9_180,
            (192 + 1) * 10_416_667 + 2 * 1_250_000_000 + 10_000_000 + 40_000_000,
        ),
        // 64 bytes on the first line, all on the second, 10 ms.
        ("wan-100m-20ms", 29, 5_120_000 + 6_720_000 + 10_000_000_000),
        (
            "wan-100m-20ms",
            1_500,
            5_120_000 + 123_040_000 + 10_000_000_000,
        ),
        // Signals there and back in 4 x 25 m and 500 ns, 1 us of set-up; a burst with its gap; half of the way back again.
        ("hippi-800", 29, 2_000_000 + 1_040 * 10_000 + 500_000),
        (
            "hippi-800",
            65_280,
            2_000_000 + 64 * 1_040 * 10_000 + 500_000,
        ),
        // The same over lines of 5.08 us.
        (
            "hippi-800-serial",
            29,
            21_820_000 + 1_040 * 10_000 + 10_410_000,
        ),
        (
            "hippi-800-serial",
            65_280,
            21_820_000 + 64 * 1_040 * 10_000 + 10_410_000,
        ),
        ("hippi-1600", 29, 2_000_000 + 2_080 * 5_000 + 500_000),
        (
            "hippi-1600",
            65_280,
            2_000_000 + 32 * 2_080 * 5_000 + 500_000,
        ),
        // 28.8 Mb/s, one stage of 1 us, twice 20 m.
        ("allnode", 29, 8_055_556 + 1_000_000 + 200_000),
        ("allnode", 1_500, 416_666_667 + 1_000_000 + 200_000),
        // 64 bytes on the first line, all on the second; twice 20 m and the coding, 500 ns.
        ("ethernet-10g", 29, 51_200 + 67_200 + 2 * 100_000 + 500_000),
        (
            "ethernet-10g",
            1_500,
            51_200 + 1_230_400 + 2 * 100_000 + 500_000,
        ),
        ("ethernet-25g", 29, 20_480 + 26_880 + 2 * 555_000 + 500_000),
        (
            "ethernet-25g",
            1_500,
            20_480 + 492_160 + 2 * 555_000 + 500_000,
        ),
        ("ethernet-100g", 29, 5_120 + 6_720 + 2 * 251_000 + 500_000),
        (
            "ethernet-100g",
            1_500,
            5_120 + 123_040 + 2 * 251_000 + 500_000,
        ),
        ("ethernet-400g", 29, 1_280 + 1_680 + 2 * 201_000 + 500_000),
        (
            "ethernet-400g",
            1_500,
            1_280 + 30_760 + 2 * 201_000 + 500_000,
        ),
        // A frame of 29 bytes has no 64 to wait for; 250 ms.
        ("satellite", 29, 2 * 120_833_334 + 250_000_000_000),
        (
            "satellite",
            1_500,
            266_666_667 + 6_250_000_000 + 250_000_000_000,
        ),
        // 72 and 1526 bytes of 800 ns without their gap, 185 m.
        ("ethernet-10", 29, 57_600_000 + 925_000),
        ("ethernet-10", 1_500, 1_220_800_000 + 925_000),
        // 65 and 4388 bytes of 80 ns, half the way round; the token left at the start and comes back after 2.217 us.
        ("fddi", 29, 5_200_000 + 2_217_000 + 1_108_500),
        ("fddi", 4_352, 351_040_000 + 2_217_000 + 1_108_500),
        // 64 bytes on the first line, all on the second; twice 100 m, 17 us.
        (
            "fddi-switched",
            29,
            5_120_000 + 5_200_000 + 2 * 500_000 + 17_000_000,
        ),
        (
            "fddi-switched",
            4_352,
            5_120_000 + 351_040_000 + 2 * 500_000 + 17_000_000,
        ),
        // Blocks of 64 bytes at 36 Mb/s, 14.222223 us each; behind the last a request of 82 bytes of 8 ns, 500 ns and 3 m.
        ("sci-sbus", 29, 14_222_223 + 656_000 + 515_000),
        ("sci-sbus", 1_500, 24 * 14_222_223 + 656_000 + 515_000),
        // The host takes no time. 24 requests of 82 ns and 200 ns and 3 m; a response comes back 540 ns after each began
        // (10 ns of echo before its 18), so that 18 echoes of 10 ns go before the last, from the eighth on one each but two
        // before the thirteenth.
        ("sci-1g8", 29, 82_000 + 215_000),
        ("sci-1g8", 1_500, 24 * 82_000 + 18 * 10_000 + 215_000),
        // The head on the first line, which has no length; all on the second.
        ("link", 29, 5_120_000 + 6_720_000),
        ("link", 1_500, 5_120_000 + 123_040_000),
        ("wire", 29, 0),
        ("wire", 1_500, 0),
        ("wire:delay=10ms", 1_500, 10_000_000_000),
    ];
    for (selector, len, picos) in rows {
        assert_eq!(alone(selector, len), picos, "{selector} {len}");
    }
    // Fabrics with credits: `tests/credit.rs`.
    for spec in catalogue().iter().filter(|spec| spec.credit.is_none()) {
        for len in [29, spec.mtu] {
            let row = |row: &(&str, u64, u64)| row.0 == spec.name && row.1 == len;
            assert!(
                rows.iter().any(row),
                "{} {len} is not in the table",
                spec.name
            );
        }
    }
}

/// 56 m take 0.28 us, which is all of the way between two hosts of UPC: half of it lies on either side of the switch.
#[test]
fn a_metre_takes_5_ns() {
    assert_eq!(
        alone("atm-oc3c", 29) - alone("atm-oc3c:length_m=0", 29),
        280_000
    );
    for (metres, picos) in [
        (0, 0),
        (1, 5_000),
        (56, 280_000),
        (2_000_000, 10_000_000_000),
    ] {
        let spec = network(&format!("atm-oc3c:length_m={metres}"));
        assert_eq!(spec.line.propagation().as_picos(), picos, "{metres} m");
        let far = alone(&format!("atm-oc3c:length_m={metres}"), 29);
        assert_eq!(
            far - alone("atm-oc3c:length_m=0", 29),
            2 * picos,
            "{metres} m"
        );
    }
}

#[test]
fn cut_through_saves_all_but_the_head() {
    let (stored, cut) = (
        alone("ethernet-100", 1_500),
        alone("ethernet-100:forwarding=cut-through", 1_500),
    );
    assert_eq!(stored - cut, 123_040_000 - 5_120_000);
    // The shortest frame is 84 bytes with its gap: 64 of them suffice.
    let (stored, cut) = (
        alone("ethernet-100", 1),
        alone("ethernet-100:forwarding=cut-through", 1),
    );
    assert_eq!(stored - cut, (84 - 64) * 80_000);
}

/// Full frames one after the other: bytes on the wire at the usable rate, never above it, and within two millionths: a cell's time is rounded up to the picosecond.
#[test]
fn a_full_station_reaches_the_ceiling() {
    let rows = [
        ("ethernet-100", 1_500, 1_538, 100_000_000),
        ("ethernet-1g", 1_500, 1_538, 1_000_000_000),
        ("atm-oc3c", 9_180, 192 * 53, 149_760_000),
        ("atm-taxi", 9_180, 192 * 53, 100_000_000),
        ("atm-taxi140", 9_180, 192 * 53, 140_000_000),
        ("atm-25", 9_180, 192 * 53, 25_600_000),
        ("atm-ds1", 9_180, 192 * 53, 1_536_000),
        ("atm-ds3", 9_180, 192 * 53, 40_704_000),
        ("atm-ds3-direct", 9_180, 192 * 53, 44_209_694),
        ("atm-e1", 9_180, 192 * 53, 1_920_000),
        ("atm-e3", 9_180, 192 * 53, 33_920_000),
        ("atm-oc12c", 9_180, 192 * 53, 599_040_000),
        ("atm-oc48c", 9_180, 192 * 53, 2_396_160_000),
        ("wan-oc3c", 9_180, 192 * 53, 149_760_000),
        ("wan-ds3", 9_180, 192 * 53, 40_704_000),
        ("wan-100m-20ms", 1_500, 1_538, 100_000_000),
        // 2 us of set-up and its signals are 200 bytes of line, or 400.
        ("hippi-800", 65_280, 66_560 + 200, 800_000_000),
        ("hippi-1600", 65_280, 66_560 + 400, 1_600_000_000),
        // Over four lines of 1 km with their coding these are 21.82 us.
        ("hippi-800-serial", 65_280, 66_560 + 2_182, 800_000_000),
        ("allnode", 1_500, 1_500, 28_800_000),
        ("ethernet-10g", 1_500, 1_538, 10_000_000_000),
        ("ethernet-25g", 1_500, 1_538, 25_000_000_000),
        ("ethernet-100g", 1_500, 1_538, 100_000_000_000),
        ("ethernet-400g", 1_500, 1_538, 400_000_000_000),
        ("satellite", 1_500, 1_500, 1_920_000),
        ("ethernet-10:turnaround=0s", 1_500, 1_538, 10_000_000),
        ("link", 1_500, 1_538, 100_000_000),
        ("fddi-switched", 4_352, 4_388, 100_000_000),
    ];
    // What a token's way takes of a ring is in `tests/token.rs`; SCI's hosts are in `tests/sci.rs`.
    let is_here = |spec: &&NetworkSpec| {
        let elsewhere = spec.credit.is_some() || spec.token.is_some() || spec.sci.is_some();
        spec.line.rate.is_some() && !elsewhere
    };
    for spec in catalogue().iter().filter(is_here) {
        let is_its = |row: &&str| row.split(':').next() == Some(&spec.name);
        assert!(rows.iter().any(|row| is_its(&row.0)), "{}", spec.name);
    }
    for (name, len, wire, usable) in rows {
        let flood = Flood::run(&network(name), len, &[(0, 1, 5_000)]);
        assert_eq!(flood.delivered.len(), 5_000);
        let took = u128::from(flood.delivered[4_999].0 - flood.delivered[0].0);
        let bits: u128 = 4_999 * wire * 8;
        // bits / took <= usable, both sides times took.
        assert!(
            bits * 1_000_000_000_000 <= usable * took,
            "{name} is above its rate"
        );
        assert!(
            bits * 1_000_000_000_000 * 1_000_002 >= usable * took * 1_000_000,
            "{name}"
        );
    }
}

/// Two stations send to a third in step: with each pair of frames one more waits, so that as many pairs fit as the limit
/// holds frames, and then one of each pair is lost.
#[test]
fn the_tail_is_dropped_at_the_limit() {
    for (buffer, frames) in [
        ("5frames", 5),
        ("7500B", 5),
        ("8999B", 5),
        ("9000B", 6),
        ("20frames", 20),
    ] {
        let spec = network(&format!("ethernet-100:buffer={buffer}"));
        let flood = Flood::run(&spec, 1_500, &[(0, 2, 20), (1, 2, 20)]);
        assert_eq!(flood.lost.len(), 20 - frames, "{buffer}");
        assert_eq!(flood.delivered.len(), 20 + frames, "{buffer}");
        // The line never ran dry.
        let ends = flood.delivered.iter().map(|(at, _)| *at);
        let ends: Vec<_> = ends.collect();
        assert!(ends.windows(2).all(|pair| pair[1] - pair[0] == 123_040_000));
    }
}

/// The same in cells: two trains of 192 need room for 192, and each cell less costs a cell. One cell lost is a frame lost.
#[test]
fn cells_are_dropped_one_by_one() {
    for (room, cells, frames) in [(192, 0, 0), (191, 1, 1), (190, 2, 1), (100, 92, 1)] {
        let spec = network(&format!("atm-oc3c:buffer={room}cells"));
        let flood = Flood::run(&spec, 9_180, &[(0, 2, 1), (1, 2, 1)]);
        assert_eq!(flood.network.counters().cells_lost, cells, "{room}");
        assert_eq!(flood.lost, vec![Port(1); frames], "{room}");
    }
}

#[test]
fn many_into_one_share_its_line() {
    let senders: Vec<_> = (0..7).map(|from| (from, 7, 10)).collect();
    let flood = Flood::run(&network("ethernet-1g"), 1_500, &senders);
    let first = 2 * 12_304_000 + 2 * 100_000 + 5_000_000;
    let want: Vec<_> = (0..70u64)
        .map(|n| (first + n * 12_304_000, Port(n as u16 % 7)))
        .collect();
    assert_eq!(flood.delivered, want);

    // Three trains mix cell by cell, so that their last cells come one after the other.
    let senders: Vec<_> = (0..3).map(|from| (from, 3, 1)).collect();
    let flood = Flood::run(&network("atm-oc3c"), 9_180, &senders);
    let start = 2_831_197 + 2 * 140_000 + 10_000_000;
    let want: Vec<_> = (0..3)
        .map(|n| (start + (3 * 191 + 1 + n) * 2_831_197, Port(n as u16)))
        .collect();
    assert_eq!(flood.delivered, want);
}
