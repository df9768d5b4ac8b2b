//! SCI networks as a host sees them: idle times, ceilings, incast, order, the switch.
//!
//! Source:  IEEE 1596-1992: header 16, data 64, echo 8, one idle symbol of 2 bytes after each packet.

use sonde_link::{
    Admission, Cause, Class, Command, Event, Fabric, Fault, Frame, FrameId, Headers, Network,
    NetworkSpec, Place, Port, Refused, resolve, tcp_max, udp_max,
};
use sonde_units::{Bytes, Instant, Span};
use std::collections::BTreeMap;

fn spec(selector: &str) -> NetworkSpec {
    resolve(selector, &|path| panic!("{path} is not in the catalogue")).expect(selector)
}

fn frame(id: u64, from: u16, to: u16, len: u64) -> Frame {
    Frame::datagram(FrameId(id), Port(from), Port(to), Bytes(len))
}

/// When, which, and where and why if it was lost.
type Told = (Instant, u64, Option<(Place, Cause)>);

/// All deliveries and losses, in their order.
fn play(network: &mut Fabric, until: Instant) -> Vec<Told> {
    let mut story = Vec::new();
    while let Some(at) = network.poll_at().filter(|at| *at <= until) {
        while let Some(event) = network.poll(at) {
            match event {
                Event::Deliver { at, id, .. } => story.push((at, id.0, None)),
                Event::Lost {
                    at,
                    id,
                    place,
                    cause,
                    ..
                } => story.push((at, id.0, Some((place, cause)))),
                _ => {}
            }
        }
    }
    story
}

const END: Instant = Instant::from_picos(u64::MAX / 2);

fn lone(selector: &str, ports: u16, to: u16, len: u64) -> u64 {
    let mut network = Fabric::new(&spec(selector), ports, 1).expect("it can be built");
    assert_eq!(
        network.offer(Instant::START, frame(1, 0, to, len)),
        Admission::Taken
    );
    let story = play(&mut network, END);
    assert_eq!(story.len(), 1);
    story[0].0.as_picos()
}

/// Node delays and wire a hop, and the request's 82 bytes once; the host's 64 bytes before.
#[test]
fn an_idle_ring_takes_its_hops_and_one_packet() {
    for hops in 1..8u64 {
        let hop = 15_000 + 500_000;
        let host = 64 * 8 * 1_000_000_000_000u64.div_ceil(36_000_000);
        let time = lone("sci-sbus", 8, hops as u16, 64);
        let want = hop * hops + 82 * 8_000;
        assert!(time.abs_diff(want + host) <= 512, "{hops} hops: {time}");
        assert_eq!(
            lone("sci-1g8:rate=1Gbit:node_delay=500ns", 8, hops as u16, 64),
            want
        );
    }
}

/// 4 bytes in one store: 12 to 15 us in the study, most of it the host's.
#[test]
fn a_small_message_is_host_time() {
    let time = lone("sci-sbus:store=8:store_time=12us", 10, 5, 4);
    let link = 5 * 515_000 + 34 * 8_000;
    assert_eq!(time, 12_000_000 + link);
    assert!(link * 4 < time);
}

/// A datagram of 1,500 bytes is 24 blocks, or 188 stores, or from offset 32 on stores and blocks.
#[test]
fn aligned_is_faster() {
    let block = 14_222_222_223u64 / 1_000;
    let aligned = lone("sci-sbus", 2, 1, 1_500);
    assert!(
        aligned.abs_diff(24 * block + 82 * 8_000 + 515_000) < 100,
        "{aligned}"
    );
    let stores = lone("sci-sbus:store=8", 2, 1, 1_500);
    assert_eq!(stores, 188 * 2_000_000 + 34 * 8_000 + 515_000);
    // 32 bytes before in 4 stores, 22 blocks, 60 bytes after in 8.
    let split = lone("sci-sbus:offset=32", 2, 1, 1_500);
    assert!(
        split.abs_diff(12 * 2_000_000 + 22 * block + 34 * 8_000 + 515_000) < 100,
        "{split}"
    );
    let setup = lone("sci-sbus:dma_setup=30us", 2, 1, 1_500);
    assert_eq!(setup, aligned + 30_000_000);
}

/// Keeps every sender's station full for some time; bytes that came from each in the second half.
fn saturate(
    spec: &NetworkSpec,
    ports: u16,
    flows: &[(u16, u16)],
    len: u64,
    half: Span,
) -> Vec<u64> {
    let mut network = Fabric::new(spec, ports, 1).expect("it can be built");
    let (mut now, mut sent) = (Instant::START, 0u64);
    let (mut bytes, mut last) = (vec![0; flows.len()], vec![None; flows.len()]);
    loop {
        for (number, &(from, to)) in flows.iter().enumerate() {
            while network.ready(Port(from), Class::default()) {
                let id = sent << 8 | number as u64;
                assert_eq!(
                    network.offer(now, frame(id, from, to, len)),
                    Admission::Taken
                );
                sent += 1;
            }
        }
        now = network.poll_at().expect("there is always more");
        if now > Instant::START + half * 2 {
            return bytes;
        }
        while let Some(event) = network.poll(now) {
            match event {
                Event::Deliver { id, .. } => {
                    let number = (id.0 & 255) as usize;
                    // One pair stays in its order, retries or not.
                    assert!(last[number] < Some(id.0));
                    last[number] = Some(id.0);
                    bytes[number] += if now > Instant::START + half { len } else { 0 };
                }
                Event::Lost { .. } => panic!("{event:?}"),
                _ => {}
            }
        }
    }
}

/// Datagrams of a full frame: by the host 24 x 64 bytes at 36 Mb/s, by the link 24 x (82 + 10) bytes.
#[test]
fn a_stream_meets_its_ceiling() {
    for (selector, bps) in [
        ("sci-sbus", 1_500.0 * 36e6 / (24.0 * 64.0)),
        (
            "sci-sbus:host_rate=1Gbit:active=64:input=64",
            1_500.0 * 1e9 / (24.0 * 92.0),
        ),
        ("sci-1g8", 1_500.0 * 8e9 / (24.0 * 92.0)),
        ("sci-1g8:response=false", 1_500.0 * 8e9 / (24.0 * 82.0)),
        ("sci-sbus:store=8", 1_500.0 * 8.0 / (188.0 * 2e-6)),
        (
            "sci-sbus:active=1:host_rate=36Mbit",
            1_500.0 * 8.0 / (24.0 * (14.222_223e-6 + 1.03e-6 + 110.0 * 8e-9)),
        ),
    ] {
        let spec = spec(selector);
        let udp = udp_max(&spec, Bytes(1_472)).expect("it has a rate") as f64;
        assert!(
            (udp / (bps * 1_472.0 / 1_500.0) - 1.0).abs() < 1e-6,
            "{selector}: {udp}"
        );
        let half = Span::millis(if bps < 1e8 { 200 } else { 2 });
        let got =
            saturate(&spec, 2, &[(0, 1)], 1_500, half)[0] as f64 * 8e12 / half.as_picos() as f64;
        println!("{selector}: {got:.0} of {bps:.0}");
        let one = 1_500.0 * 8e12 / half.as_picos() as f64;
        assert!(
            got > bps * 0.998 - one && got <= bps * 1.0001 + one,
            "{selector}: {got} of {bps}"
        );
    }
    let tcp = tcp_max(&spec("sci-sbus"), Headers::Timestamps).expect("it has a rate");
    assert_eq!(tcp / 1_000, 33_937);
}

/// Eight into one: nothing is lost, whatever the queue holds.
#[test]
fn incast_loses_nothing() {
    let flows: Vec<_> = (0..8).map(|from| (from, 8)).collect();
    for selector in [
        "sci-sbus",
        "sci-sbus:input=1",
        "sci-sbus:input=1:rings=3:switch_queue=1",
        "sci-1g8",
    ] {
        let half = Span::millis(if selector == "sci-1g8" { 1 } else { 60 });
        let bytes = saturate(&spec(selector), 9, &flows, 1_500, half);
        println!("{selector}: {bytes:?}");
        assert!(bytes.iter().sum::<u64>() > 0);
    }
}

/// Some senders send to one. One whose refused request the target waits for must get in before those whom the target
/// refuses for its sake: of any five in a ring of eight, these once filled the ring before it for ever.
#[test]
fn who_is_waited_for_gets_in() {
    const FRAMES: u64 = 20;
    for set in 1..128_u32 {
        let mut network = Fabric::new(&spec("sci-sbus"), 8, 1).expect("it can be built");
        let senders: Vec<u16> = (1..8).filter(|host| set >> (host - 1) & 1 == 1).collect();
        let (mut id, mut delivered) = (0, 0);
        for from in &senders {
            let at = Instant::START + Span::nanos(u64::from(*from) * 737_729);
            delivered += play(&mut network, at).len() as u64;
            for _ in 0..FRAMES {
                let frame = frame(id, *from, 0, 1_500);
                assert_eq!(network.offer(at, frame), Admission::Taken);
                id += 1;
            }
        }
        delivered += play(&mut network, Instant::START + Span::millis(200)).len() as u64;
        assert_eq!(delivered, id, "{senders:?}");
        assert_eq!(
            network.poll_at(),
            None,
            "nothing goes round for ever: {senders:?}"
        );
    }
}

/// Through the switch: what is idle takes both rings and the switch; what a restart holds is lost, once a frame.
#[test]
fn a_switch_joins_rings_and_restarts() {
    // Hosts 0, 1, switch; 2, 3, switch: from 0 two hops to the switch, then one to host 2.
    let hop = 15_000 + 200_000;
    let time = lone("sci-1g8:rings=2", 4, 2, 64);
    assert_eq!(time, 3 * hop + 2 * 82 * 1_000 + 1_000_000);

    let spec = spec("sci-1g8:rings=2:rate=100Mbit");
    let mut network = Fabric::new(&spec, 4, 1).expect("it can be built");
    for id in 0..40 {
        assert_eq!(
            network.offer(Instant::START, frame(id, 0, 2, 1_500)),
            Admission::Taken
        );
    }
    for id in 40..50 {
        assert_eq!(
            network.offer(Instant::START, frame(id, 1, 0, 1_500)),
            Admission::Taken
        );
    }
    let at = Instant::START + Span::millis(1);
    let mut story = play(&mut network, at);
    let restart = Fault::Restart {
        down: Span::millis(2),
    };
    network
        .command(at, Command::Fault(restart))
        .expect("it has a switch");
    story.extend(play(&mut network, END));
    let mut ends = BTreeMap::new();
    for (at, id, loss) in story {
        assert!(ends.insert(id, (at, loss)).is_none(), "{id} ended twice");
        if let Some(why) = loss {
            assert_eq!(why, (Place::Medium, Cause::Restart));
            assert!(id < 40, "{id} did not cross");
        }
    }
    assert_eq!(ends.len(), 50);
    let lost = ends.values().filter(|(_, loss)| loss.is_some()).count();
    assert!(lost > 5 && lost < 35, "{lost}");
    assert_eq!(network.poll_at(), None);
    let refused = Fabric::new(&spec_of_one_ring(), 2, 1)
        .expect("it can be built")
        .command(at, Command::Fault(restart));
    assert!(matches!(
        refused,
        Err(Refused::NotHere { what: "switch", .. })
    ));
}

fn spec_of_one_ring() -> NetworkSpec {
    spec("sci-1g8")
}

/// Wrong values are refused with what can be.
#[test]
fn wrong_values_are_refused() {
    for (selector, part) in [
        ("sci-1g8:block=32", "16, 64 or 256"),
        ("sci-1g8:active=65", "1 to 64"),
        ("sci-1g8:nodes=1", "2 to 1024"),
        ("sci-1g8:offset=64", "0 to 63"),
        ("sci-1g8:node_delay=2ms", "at most 1ms"),
        ("sci-1g8:framing=ethernet", "must be \"none\""),
    ] {
        let problem = resolve(selector, &|path| panic!("{path}"))
            .expect_err(selector)
            .to_string();
        assert!(problem.contains(part), "{selector}: {problem}");
    }
}
