//! The timed token against its theory.
//!
//! Model:   saturated stations on rings whose idle rotation, with the token's own time, is the theory's D.
//! Source:  Jain 1991 (DTJ 3(3)): n saturated stations leave n (T - D) / (n T + D) of the rate, and wait for at most
//!          (n - 1) T + 2 D; Johnson 1987: rotation at most 2 T, in the mean at most T.

use sonde_link::{
    Admission, Class, Command, Ecn, Event, Fabric, Fault, Frame, FrameId, Headers, Kind, Network,
    NetworkSpec, Port, Refused, To, named, resolve, tcp_max, tcp_with_acks,
};
use sonde_units::{BitRate, Bytes, Instant, Span};
use std::collections::BTreeMap;

/// The share of the rate that is left for frames where `busy` stations always send, and once round takes `latency` with the
/// token's own time: n (T - D) / (n T + D) (Jain 1991).
fn formula(spec: &NetworkSpec, busy: u16, latency: Span) -> f64 {
    let ring = spec.token.as_ref().expect("it is a ring");
    let (n, t) = (f64::from(busy), ring.ttrt.as_picos() as f64);
    let d = latency.as_picos() as f64;
    n * (t - d) / (n * t + d)
}

/// The token's own time: 11 bytes.
const TOKEN: Span = Span::nanos(880);

/// A ring of `stations` on which the theory's D and T are `latency` and `ttrt`.
fn ring(stations: u64, ttrt: Span, latency: Span) -> NetworkSpec {
    let mut spec = named("fddi").expect("it is in the catalogue");
    let token = spec.token.as_mut().expect("it is a ring");
    let delay = latency.as_picos() / stations;
    (token.ttrt, token.stations, token.fibre_m) = (ttrt, stations, 0);
    token.station_delay = Span::picos(delay);
    spec
}

fn resolved(selector: &str) -> NetworkSpec {
    resolve(selector, &|path| Err(format!("asked for {path}"))).expect(selector)
}

fn frame(id: u64, from: u16, to: To, len: u64) -> Frame {
    Frame {
        id: FrameId(id),
        from: Port(from),
        to,
        len: Bytes(len),
        kind: Kind::Ip,
        class: Class::default(),
        ecn: Ecn::NotCapable,
        flow: 0,
    }
}

fn at(span: Span) -> Instant {
    Instant::START + span
}

/// Stations of which the first few always have frames to send, each to the next.
struct Saturated {
    network: Fabric,
    ports: u16,
    len: u64,
    offered: u64,
    senders: BTreeMap<u64, u16>,
    delivered: Vec<u64>,
    /// The sender of each delivery, and when.
    order: Vec<(Instant, u16)>,
}

impl Saturated {
    fn run(spec: &NetworkSpec, ports: u16, busy: u16, len: u64, length: Span) -> Self {
        let mut ring = Self {
            network: Fabric::new(spec, ports, 1).expect("the ring is right"),
            ports,
            len,
            offered: 0,
            senders: BTreeMap::new(),
            delivered: vec![0; usize::from(ports)],
            order: Vec::new(),
        };
        for from in 0..busy {
            ring.fill(Instant::START, from);
        }
        while let Some(now) = ring.network.poll_at().filter(|now| *now <= at(length)) {
            while let Some(event) = ring.network.poll(now) {
                match event {
                    Event::Deliver { at, id, .. } => {
                        let from = ring.senders.remove(&id.0).expect("it was sent once");
                        ring.delivered[usize::from(from)] += 1;
                        ring.order.push((at, from));
                    }
                    Event::Lost { .. } => panic!("{event:?}: a ring loses nothing"),
                    Event::Ready { port, .. } => ring.fill(now, port.0),
                    _ => {}
                }
            }
        }
        ring
    }

    fn fill(&mut self, now: Instant, from: u16) {
        while self.network.ready(Port(from), Class::default()) {
            let to = To::One(Port((from + 1) % self.ports));
            self.senders.insert(self.offered, from);
            let offer = frame(self.offered, from, to, self.len);
            assert_eq!(self.network.offer(now, offer), Admission::Taken);
            self.offered += 1;
        }
    }

    /// The share of a rate that frames had in a window.
    fn efficiency(&self, rate: BitRate, from: Span, length: Span) -> f64 {
        let window = at(from)..at(from + length);
        let frames = self.order.iter().filter(|(at, _)| window.contains(at));
        let bits = frames.count() as u64 * (self.len + 36) * 8;
        bits as f64 * 1e12 / rate.bps() as f64 / length.as_picos() as f64
    }
}

/// Efficiency over whole cycles, worst wait of a station, mean and longest rotation.
fn saturated(spec: &NetworkSpec, busy: u16, d: Span, len: u64) -> (f64, Span, Span, Span) {
    let token = spec.token.as_ref().expect("it is a ring");
    let rate = spec.line.rate.expect("there is one");
    let cycle = token.ttrt * u64::from(busy) + d;
    let length = cycle * (Span::secs(4).as_picos() / cycle.as_picos());
    let end = length + Span::secs(1);
    let run = Saturated::run(spec, busy.max(2), busy, len, end);
    let counters = run.network.counters();
    let waits = counters.access.iter().map(|access| access.access_max);
    let mean = Span::picos(end.as_picos() / counters.token_rotations);
    (
        run.efficiency(rate, Span::secs(1), length),
        waits.max().expect("all have sent"),
        mean,
        counters.token_rotation_max,
    )
}

/// Jain's four points, and one station on a long ring. The formula knows neither the token's own time nor what the last
/// frame overruns, so frames and token are short here (10 Gb/s), and a number of frames fills T - D.
#[test]
fn four_points_of_the_formula() {
    for (n, ttrt_ms, d_us, len, want) in [
        (1u16, 8, 2_000, 3_714, 0.6000),
        (5, 8, 2_000, 3_714, 0.7142),
        (20, 8, 2_000, 3_714, 0.7407),
        (20, 4, 120, 3_844, 0.9685),
        (1, 4, 2_000, 2_464, 0.3333),
    ] {
        let (ttrt, d) = (Span::millis(ttrt_ms), Span::micros(d_us));
        let mut spec = ring(u64::from(n.max(2)), ttrt, d);
        spec.line.rate = Some(BitRate::gbit(10));
        let (got, waited, mean, longest) = saturated(&spec, n, d, len);
        assert!(
            (got - want).abs() < 1e-4,
            "n {n}, T {ttrt}, D {d}: {got}, not {want}"
        );
        let formula = formula(&spec, n, d);
        assert!((formula - want).abs() < 1e-4, "{formula}");
        // A frame's overrun and the tokens of a cycle come on top: below 0.1 %.
        let bound = ttrt * u64::from(n - 1) + d * 2;
        assert!(
            waited <= bound + Span::picos(bound.as_picos() / 1_000),
            "{waited} above {bound}"
        );
        assert!(waited + Span::micros(50) > bound, "{waited} below {bound}");
        assert!(mean <= ttrt && longest <= ttrt * 2, "{mean}, {longest}");
    }
}

/// At FDDI's own rate: tokens cost up to 0.1 %, and full frames overrun by half a frame in the mean, which uses the ring
/// better and holds it longer.
#[test]
fn fddi_itself_is_near_the_formula() {
    for (n, ttrt_ms, d_us) in [
        (1u16, 8, 2_000),
        (5, 8, 2_000),
        (20, 8, 2_000),
        (20, 4, 120),
    ] {
        let (ttrt, d) = (Span::millis(ttrt_ms), Span::micros(d_us));
        let spec = ring(u64::from(n.max(2)), ttrt, d);
        let formula = formula(&spec, n, d);
        let fitted = if ttrt_ms == 8 { 3_714 } else { 2_389 };
        let (got, ..) = saturated(&spec, n, d, fitted);
        assert!(
            (got / formula - 1.0).abs() < 1e-3,
            "{n}: {got}, not {formula}"
        );
        let (got, _, mean, longest) = saturated(&spec, n, d, spec.mtu);
        assert!(
            (-0.002..0.025).contains(&(got / formula - 1.0)),
            "{n}: {got}, not {formula}"
        );
        assert!(mean <= ttrt && longest <= ttrt * 2, "{mean}, {longest}");
    }
}

/// Many stations: 1 - D / T.
#[test]
fn many_stations_reach_the_limit() {
    let (ttrt, d) = (Span::millis(4), Span::millis(2));
    let mut spec = ring(100, ttrt, d);
    spec.line.rate = Some(BitRate::gbit(10));
    spec.mtu = 9_000;
    spec.station.queue = Bytes::kib(256);
    let (got, ..) = saturated(&spec, 100, d, 8_964);
    assert!((got - 0.5).abs() < 0.005, "{got}");
}

/// Stations have the same share, whoever had the token first.
#[test]
fn shares_are_even() {
    let spec = ring(8, Span::millis(8), Span::micros(26));
    let run = Saturated::run(&spec, 8, 8, 4_352, Span::secs(10));
    let (least, most) = (run.delivered.iter().min(), run.delivered.iter().max());
    let (least, most) = (*least.expect("8 stations"), *most.expect("8 stations"));
    assert!(least * 100 > most * 97, "{:?}", run.delivered);
    // Within any second as well.
    for second in 1..9 {
        let window = at(Span::secs(second))..at(Span::secs(second + 1));
        let mut shares = [0u64; 8];
        for (_, from) in run.order.iter().filter(|(at, _)| window.contains(at)) {
            shares[usize::from(*from)] += 1;
        }
        let (least, most) = (shares.iter().min(), shares.iter().max());
        assert!(least.map(|n| n * 100) > most.map(|n| n * 75), "{shares:?}");
    }
}

/// Offers frames one by one to an idle ring and tells when each was offered and arrived.
fn one_by_one(
    spec: &NetworkSpec,
    ports: u16,
    frames: &[(Span, Frame)],
) -> Vec<(Instant, Vec<(Instant, Port)>)> {
    let mut network = Fabric::new(spec, ports, 1).expect("it is right");
    let mut now = Instant::START;
    let mut told = Vec::new();
    for (pause, frame) in frames {
        assert_eq!(network.poll_at(), None, "an idle ring has no events");
        now = now + *pause;
        let offered = now;
        network.offer(now, *frame);
        let mut arrived = Vec::new();
        while let Some(due) = network.poll_at() {
            now = due;
            while let Some(event) = network.poll(due) {
                if let Event::Deliver { at, to, .. } = event {
                    arrived.push((at, to));
                }
            }
        }
        told.push((offered, arrived));
    }
    told
}

/// The token goes round an idle ring without events, and a frame waits for it: half a round in the mean, at most one.
#[test]
fn a_frame_waits_for_the_token() {
    let round = Span::micros(100);
    let spec = ring(10, Span::millis(8), round);
    let mut phase = 1u64;
    let frames: Vec<_> = (0..400u64)
        .map(|id| {
            // From microseconds to an hour of silence, of any phase.
            phase = phase
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let pause = Span::picos((phase >> 40) * 4u64.pow(id as u32 % 14));
            let (from, to) = ((id % 10) as u16, ((id + 3) % 10) as u16);
            (pause, frame(id, from, To::One(Port(to)), 1_000))
        })
        .collect();
    // 1036 bytes at 100 Mb/s, and three tenths of the way round.
    let least = Span::nanos(82_880 + 30_000);
    let told = one_by_one(&spec, 10, &frames);
    let waits: Vec<_> = told
        .iter()
        .map(|(offered, arrived)| {
            let wait = arrived[0]
                .0
                .as_picos()
                .checked_sub((*offered + least).as_picos());
            wait.expect("it is never early")
        })
        .collect();
    assert!(
        waits.iter().all(|wait| *wait <= round.as_picos()),
        "{waits:?}"
    );
    let mean = waits.iter().sum::<u64>() / 400;
    assert!((45_000_000..55_000_000).contains(&mean), "{mean}");
}

/// At the start the token leaves the first station: the second waits for a quarter of the way round, and all others have
/// copied its frame, each at its place, when it comes back.
#[test]
fn a_broadcast_is_one_turn() {
    let spec = ring(4, Span::millis(8), Span::micros(40));
    let told = one_by_one(&spec, 4, &[(Span::ZERO, frame(0, 1, To::All, 4_352))]);
    // Wire overhead is 36 bytes.
    let sent = Span::micros(10) + Span::nanos(4_388 * 80);
    let want: Vec<_> = [(2, 10), (3, 20), (0, 30)]
        .into_iter()
        .map(|(port, us)| (at(sent + Span::micros(us)), Port(port)))
        .collect();
    assert_eq!(told[0].1, want);
}

/// Repeating stations make the way longer, fibre too: 16 stations of 0.6 us and 2 km, as on a campus.
#[test]
fn others_only_repeat() {
    let spec = resolved("fddi:stations=16:fibre_m=2000");
    let token = spec.token.clone().expect("it is a ring");
    assert_eq!(
        token.latency(2),
        Span::nanos(16 * 600) + Span::picos(2_000 * 5_085)
    );
    assert_eq!(
        token.latency(20),
        Span::nanos(20 * 600) + Span::picos(2_000 * 5_085)
    );
    // Two hosts stand opposite.
    let told = one_by_one(
        &spec,
        2,
        &[(Span::ZERO, frame(0, 1, To::One(Port(0)), 100))],
    );
    let half = token.latency(2).as_picos() / 2;
    let want = Instant::from_picos(half + 136 * 80_000 + (token.latency(2).as_picos() - half));
    assert_eq!(told[0].1, [(want, Port(0))]);
}

/// A stream has the ring but for the token's way: 97.99 Mb/s of users' bytes at most.
#[test]
fn one_stream_has_nearly_the_whole_ring() {
    let spec = resolved("fddi");
    let run = Saturated::run(&spec, 2, 1, 4_352, Span::secs(2));
    let user = run.delivered[0] as f64 * 4_300.0 * 8.0 / 2.0;
    let most = tcp_max(&spec, Headers::Timestamps).expect("there is a rate") as f64;
    assert!(user <= most && user > most * 0.998, "{user} of {most}");
    let latency = spec.token.as_ref().expect("it is a ring").latency(2) + TOKEN;
    let formula = formula(&spec, 1, latency);
    assert!(
        (user / most - formula).abs() < 3e-4,
        "{user} of {most}, {formula}"
    );
}

/// With an acknowledgement for every second segment 97.02 Mb/s; the token's way takes a thousandth of it.
#[test]
fn acknowledgements_use_the_ring() {
    let spec = resolved("fddi");
    let most = tcp_with_acks(&spec, Headers::Timestamps).expect("there is a rate") as f64;
    assert!((most / 1e6 - 97.02).abs() < 5e-3, "{most}");
    let length = Span::secs(2);
    let mut network = Fabric::new(&spec, 2, 1).expect("it is right");
    let (mut sent, mut received, mut acked, mut now) = (0u64, 0u64, 0, Instant::START);
    while now < at(length) {
        while sent < acked + 1_000 && network.ready(Port(0), Class::default()) {
            network.offer(now, frame(2 * sent, 0, To::One(Port(1)), 4_352));
            sent += 1;
        }
        now = network.poll_at().expect("the stream goes on");
        while let Some(event) = network.poll(now) {
            match event {
                Event::Deliver { to: Port(1), .. } => {
                    received += 1;
                    if received % 2 == 0 {
                        network.offer(now, frame(2 * received + 1, 1, To::One(Port(0)), 52));
                    }
                }
                Event::Deliver { id, .. } => acked = id.0 / 2,
                _ => {}
            }
        }
    }
    let user = received as f64 * 4_300.0 * 8.0 / 2.0;
    assert!(
        user <= most * 1.0005 && user > most * 0.998,
        "{user} of {most}"
    );
}

#[test]
fn a_ring_takes_a_rate_and_nothing_else() {
    let spec = resolved("fddi:stations=20");
    let mut network = Fabric::new(&spec, 2, 1).expect("it is right");
    let rate = |rate| Command::Fault(Fault::Rate { rate });
    let start = Instant::START;
    assert_eq!(
        network.command(start, rate(Some(BitRate::mbit(50)))),
        Ok(())
    );
    network.offer(start, frame(0, 1, To::One(Port(0)), 964));
    let mut arrived = None;
    while let Some(now) = network.poll_at() {
        while let Some(event) = network.poll(now) {
            if let Event::Deliver { at, .. } = event {
                arrived = Some(at);
            }
        }
    }
    let round = spec.token.as_ref().expect("it is a ring").latency(2);
    assert_eq!(arrived, Some(start + round + Span::nanos(160_000)));
    let late = at(Span::secs(1));
    // At 1 Mb/s a frame takes 35 ms, four times the target rotation time.
    let refused = network.command(late, rate(Some(BitRate::mbit(1))));
    assert!(matches!(refused, Err(Refused::Value { .. })), "{refused:?}");
    for fault in [
        Fault::Restart { down: Span::ZERO },
        Fault::Trunk {
            trunk: 0,
            up: false,
        },
        Fault::Manager { up: false },
    ] {
        let refused = network.command(late, Command::Fault(fault));
        assert!(
            matches!(refused, Err(Refused::NotHere { .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let message = |selector: &str| {
        resolve(selector, &|_| unreachable!())
            .expect_err(selector)
            .to_string()
    };
    for (selector, words) in [
        ("fddi:ttrt=300us", "once round, a token, a frame"),
        ("fddi:ttrt=1s", "335ms"),
        ("fddi:stations=2000", "at most 1000"),
        (
            "fddi:station_delay=100ns:fibre_m=0",
            "too short for the token",
        ),
        ("fddi:fibre_m=300000", "at most 200000"),
        ("fddi:framing=ethernet", "fddi"),
        ("fddi:propagation=1us", "fibre_m"),
    ] {
        assert!(message(selector).contains(words), "{}", message(selector));
    }
    // A ring of so many hosts is too long for its target rotation time.
    let spec = resolved("fddi:ttrt=400us");
    assert!(Fabric::new(&spec, 60, 1).is_ok() && Fabric::new(&spec, 200, 1).is_err());
}

/// MAC-switched: each station has both directions of a line to the switch, which forwards 64 bytes and 17 us later.
#[test]
fn a_switch_parts_the_rings() {
    let spec = resolved("fddi-switched");
    let told = one_by_one(
        &spec,
        2,
        &[(Span::ZERO, frame(0, 0, To::One(Port(1)), 4_352))],
    );
    let want = at(Span::nanos(64 * 80 + 17_000 + 4_388 * 80 + 2 * 500));
    assert_eq!(told[0].1, [(want, Port(1))]);
    let run = Saturated::run(&spec, 8, 8, 4_352, Span::secs(1));
    let all = run.efficiency(BitRate::mbit(100), Span::millis(100), Span::millis(900));
    assert!(all > 7.99 && all < 8.01, "{all}");
}
