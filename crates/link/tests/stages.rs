//! Blocking stages against what is known of omega networks: which permutations pass, and what random traffic gets through.
//!
//! Source:  Lawrie 1975 (the omega network passes identity and shifts, and blocks bit reversal); Patel 1981, equation 4: of
//!          `p` requests a wire, 1 - (1 - p/k)^k get through an element of `k` x `k`.

use crate::drive::{Drive, Exit, Fate, network, written};
use sonde_link::{
    Cause, Command, Fault, Headers, Network, NetworkSpec, Place, overhead, tcp_max, udp_max,
};
use sonde_units::{BitRate, Bytes, Instant, Span};

/// Stages of elements of `radix`, frames of 1000 bytes in 10 us, no other time.
fn omega(radix: u16, paths: u16) -> NetworkSpec {
    written(&format!(
        "name = \"omega\"\nsummary = \"omega\"\ntechnology = \"allnode\"\ntopology = \"multistage\"\nmtu = 1000\n\
         [line]\nrate = \"800Mbit\"\nframing = \"none\"\n[station]\nqueue = \"8000B\"\n\
         [stages]\nradix = {radix}\npaths = {paths}\nhop = \"0ns\"\n"
    ))
}

/// How many frames arrive in the first turn if each station sends one at once, `pairs` in that order.
fn first_turn(spec: &NetworkSpec, ports: u16, pairs: &[(u16, u16)], seed: u64) -> (usize, usize) {
    let mut drive = Drive::new(spec, ports, seed);
    for &(from, to) in pairs {
        assert!(drive.offer(from, to, 1_000));
    }
    let exits = drive.drain();
    let turn = Instant::START + Span::micros(10);
    let first = exits.iter().filter(|exit| exit.at == turn).count();
    (first, exits.len())
}

/// All stations but those that would send to themselves.
fn permutation(ports: u16, to: impl Fn(u16) -> u16) -> Vec<(u16, u16)> {
    let pairs = (0..ports).map(|from| (from, to(from)));
    pairs.filter(|(from, to)| from != to).collect()
}

fn reversed(value: u16, bits: u32) -> u16 {
    value.reverse_bits() >> (16 - bits)
}

/// Every shift passes without a conflict, with elements of any size.
#[test]
fn shifts_pass() {
    for (radix, ports) in [(2, 8), (2, 64), (4, 64), (8, 64), (8, 8)] {
        let spec = omega(radix, 1);
        for shift in 1..ports {
            let pairs = permutation(ports, |from| (from + shift) % ports);
            let (first, all) = first_turn(&spec, ports, &pairs, 1);
            assert_eq!((first, all), (pairs.len(), pairs.len()), "{radix} {shift}");
        }
    }
}

/// Bit reversal does not (its complement is taken: as many conflicts, and no station sends to itself where the digits are
/// odd in number): of those whose paths meet behind a stage, one passes. More paths let more pass.
#[test]
fn bit_reversal_blocks() {
    for (radix, ports, bits) in [(2u16, 8u16, 3u32), (2, 64, 6), (4, 64, 6)] {
        let pairs = permutation(ports, |from| reversed(from, bits) ^ (ports - 1));
        let (one, all) = first_turn(&omega(radix, 1), ports, &pairs, 1);
        assert_eq!(all, pairs.len(), "held back, not lost");
        assert!(one < pairs.len(), "{radix}: {one} of {}", pairs.len());
        let (many, _) = first_turn(&omega(radix, 8), ports, &pairs, 1);
        assert!(many > one, "{radix}: {many} on eight paths, {one} on one");
    }
    // Digits of 8 swapped: (a, b) -> (b, a). All from residue b go to the eighth b by one wire: one of 8 passes.
    let swap = permutation(64, |from| from % 8 * 8 + from / 8);
    let turns = |paths| {
        let mut drive = Drive::new(&omega(8, paths), 64, 1);
        for &(from, to) in &swap {
            assert!(drive.offer(from, to, 1_000));
        }
        let last = drive
            .drain()
            .last()
            .map(|exit| exit.at.since(Instant::START));
        last.expect("they arrive") / Span::micros(10)
    };
    // 56 stations, 7 for each wire.
    assert_eq!([1, 2, 4, 7].map(turns), [7, 4, 2, 1]);
}

/// Patel's recursion: what of full load gets through so many stages of elements of `radix`.
fn patel(radix: u16, stages: u32) -> f64 {
    let k = f64::from(radix);
    (0..stages).fold(1.0, |p: f64, _| 1.0 - (1.0 - p / k).powf(k))
}

/// One turn of independent requests: one stage gives Patel's share exactly; more stages give at least that, since a request
/// that is stopped behind the first stage keeps no wire from others: at most a tenth more in up to three, a fifth in six.
#[test]
fn one_turn_of_random_requests_passes_as_patel_says() {
    const TURNS: u64 = 2_000;
    for (radix, ports, stages) in [(8, 8, 1), (2, 4, 2), (8, 64, 2), (2, 64, 6), (4, 64, 3)] {
        let spec = omega(radix, 1);
        let mut dice = Drive::new(&spec, 2, 9);
        let mut passed = 0;
        for turn in 0..TURNS {
            let mut order: Vec<u16> = (0..ports).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, dice.draw(last as u64 + 1) as usize);
            }
            let pairs: Vec<_> = order
                .into_iter()
                .map(|from| (from, dice.draw(u64::from(ports)) as u16))
                .collect();
            // Patel's inputs may ask for the output of their own number, which a station cannot: his share is counted by
            // hand, and the network must agree with the same count without those.
            passed += by_hand(radix, stages, &pairs);
            if turn < 200 {
                let others: Vec<_> = pairs.into_iter().filter(|pair| pair.0 != pair.1).collect();
                let (first, _) = first_turn(&spec, ports, &others, turn);
                assert_eq!(
                    first,
                    by_hand(radix, stages, &others),
                    "{radix} {ports} {turn}"
                );
            }
        }
        let share = passed as f64 / (TURNS * u64::from(ports)) as f64;
        let want = patel(radix, stages);
        let most = match stages {
            1 => 1.005,
            2 | 3 => 1.1,
            _ => 1.2,
        };
        assert!(
            share > want * 0.995 && share < want * most,
            "{radix} x {stages}: {share} for {want}"
        );
    }
}

/// How many of the requests get all wires, in their order, written out by digits: behind stage `i` a request is on the wire
/// of the last digits of its source and the first `i + 1` of its destination.
fn by_hand(radix: u16, stages: u32, pairs: &[(u16, u16)]) -> usize {
    let digits = |value: u16| -> Vec<u16> {
        (0..stages)
            .rev()
            .map(|place| value / radix.pow(place) % radix)
            .collect()
    };
    let mut taken: Vec<Vec<Vec<u16>>> = vec![Vec::new(); stages as usize];
    let mut passed = 0;
    for &(from, to) in pairs {
        let (source, target) = (digits(from), digits(to));
        let wires: Vec<Vec<u16>> = (1..=stages as usize)
            .map(|used| [&source[used..], &target[..used]].concat())
            .collect();
        if wires
            .iter()
            .zip(&taken)
            .all(|(wire, taken)| !taken.contains(wire))
        {
            passed += 1;
            for (wire, taken) in wires.into_iter().zip(&mut taken) {
                taken.push(wire);
            }
        }
    }
    passed
}

/// Saturated stations to any of the others: held heads lower what Patel's fresh requests reach, not below seven tenths of
/// it; more paths raise it, up to the limit of input queues.
#[test]
fn random_traffic_gets_through_as_far_as_patel_lets_it() {
    for (radix, ports, stages) in [(8, 8, 1), (8, 64, 2), (2, 16, 4)] {
        let mut shares = Vec::new();
        for paths in [1, 2, 8] {
            let mut drive = Drive::new(&omega(radix, paths), ports, 4);
            let until = Instant::START + Span::millis(20);
            let exits = drive.saturate(ports, 1_000, until, |drive, source| {
                let other = drive.draw(u64::from(ports) - 1) as u16;
                other + u16::from(other >= source)
            });
            shares.push(exits.len() as f64 / (2_000.0 * f64::from(ports)));
        }
        let bound = patel(radix, stages);
        assert!(
            shares[0] < bound * 1.1 && shares[0] > bound * 0.7,
            "{radix} x {stages}: {shares:?} for {bound}"
        );
        assert!(shares.is_sorted(), "{shares:?}");
        assert!(shares[2] < 0.70 && shares[2] > 0.55, "{shares:?}");
    }
}

/// Two flows that are never idle at once cannot keep a third from its wires for ever.
#[test]
fn no_one_starves() {
    // Elements of 2, 8 stations: 0 -> 1 shares the wire behind the first stage with 4 -> 0 and ends where 3 -> 1 does.
    let spec = omega(2, 1);
    let mut drive = Drive::new(&spec, 8, 1);
    assert!(drive.offer(4, 2, 1_000));
    drive.now = drive.now + Span::micros(5);
    assert!(drive.offer(3, 1, 1_000));
    let until = Instant::START + Span::millis(10);
    let exits = drive.saturate(5, 1_000, until, |_, source| match source {
        0 => 1,
        3 => 1,
        4 => 2,
        _ => source + 5 - 2 * (source % 2),
    });
    let of = |port: u16| exits.iter().filter(|exit| exit.from.0 == port).count();
    assert!(of(0) > 50, "{} of {}", of(0), exits.len());
}

/// Nothing is lost, whatever eight or more stations send; to one station they fill its wire, and each has its share.
#[test]
fn nothing_is_lost() {
    let spec = network("allnode");
    let each = spec.frame_time(Bytes(spec.mtu));
    let until = Instant::START + each * 4_000;
    let mut incast = Drive::new(&spec, 9, 5);
    let mut all = incast.saturate(8, spec.mtu, until, |_, _| 8);
    assert!(all.len() >= 3_999);
    for port in 0..8 {
        let share = all.iter().filter(|exit| exit.from.0 == port).count();
        assert!((400..=600).contains(&share), "{port}: {share}");
    }
    let mut blast = Drive::new(&spec, 20, 5);
    all.extend(blast.saturate(20, spec.mtu, until, |drive, source| {
        let other = drive.draw(19) as u16;
        other + u16::from(other >= source)
    }));
    all.extend(incast.drain());
    all.extend(blast.drain());
    assert!(all.iter().all(|exit: &Exit| exit.fate == Fate::Delivered));
    assert_eq!(incast.network.counters().lost_total(), 0);
    assert_eq!(blast.network.counters().lost_total(), 0);
}

/// 28.8 Mb/s of the link, in frames of 1500 bytes: 28.03 Mb/s of TCP, where TP-3532 had 28 of one cold UDP message; twice that on ALLNODE-F.
#[test]
fn ceilings_are_nine_tenths() {
    for (selector, want) in [
        ("allnode", 28.8 * 1_460.0 / 1_500.0),
        ("allnode:rate=64Mbit", 57.6 * 1_460.0 / 1_500.0),
    ] {
        let spec = network(selector);
        let most = tcp_max(&spec, Headers::Plain).expect("it has a rate") as f64 / 1e6;
        assert!((most / want - 1.0).abs() < 1e-4, "{selector}: {most}");
        let udp = udp_max(&spec, Bytes(1_472)).expect("it has a rate") as f64 / 1e6;
        assert!((udp / want * 1_460.0 / 1_472.0 - 1.0).abs() < 1e-4);
        let mut drive = Drive::new(&spec, 2, 1);
        let until = Instant::START + Span::secs(2);
        let exits = drive.saturate(1, 1_500, until, |_, _| 1);
        let took = exits[exits.len() - 1].at.since(exits[0].at).as_picos() as f64;
        let mbit = (exits.len() - 1) as f64 * 1_460.0 * 8e6 / took;
        assert!((mbit / want - 1.0).abs() < 1e-5, "{selector}: {mbit}");
    }
    let steps = overhead(&network("allnode"), Headers::Plain);
    let names: Vec<_> = steps.iter().map(|step| step.step).collect();
    assert_eq!(names, ["line", "payload", "framing", "ip", "tcp"]);
}

/// Through the user's interface a frame takes 20 us longer, and the line no longer (N9).
#[test]
fn the_api_has_its_own_latency() {
    let one_way = |selector: &str| {
        let mut drive = Drive::new(&network(selector), 9, 1);
        assert!(drive.offer(0, 8, 64));
        drive.drain()[0].at.since(Instant::START)
    };
    let by_ip = one_way("allnode");
    assert_eq!(one_way("allnode:interface=api"), by_ip + Span::micros(20));
    // Nine stations are two stages of 1 us, and twice 20 m.
    let line = network("allnode").frame_time(Bytes(64));
    assert_eq!(by_ip, line + Span::nanos(2_200));
    assert_eq!(one_way("allnode:depth=4"), line + Span::nanos(4_200));
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    let read = |_: &str| Err(String::new());
    let rows = [
        ("radix=1", "stages.radix"),
        ("paths=0", "stages.paths"),
        ("depth=17", "stages.depth"),
        ("radix=64:depth=5", "stages.depth"),
        ("hop=61s", "stages.hop"),
        ("burst=1KiB", "line.burst"),
    ];
    for (knobs, key) in rows {
        let error = sonde_link::resolve(&format!("allnode:{knobs}"), &read);
        let error = error.expect_err(knobs).to_string();
        assert!(error.contains(key), "{knobs}: {error}");
    }
    let few = network("allnode:depth=1");
    let error = sonde_link::Fabric::new(&few, 9, 1).err().expect("8 fit");
    assert_eq!(error.key, "stages.depth");
    assert!(sonde_link::Fabric::new(&few, 8, 1).is_ok());
}

/// The rate changes from the next frame on; a restart takes what is on its way and what asks.
#[test]
fn it_changes_and_restarts() {
    let mut drive = Drive::new(&omega(2, 1), 4, 1);
    let tell = |drive: &mut Drive, fault| {
        let now = drive.now;
        let command = Command::Fault(fault);
        drive.network.command(now, command).expect("it is its own");
    };
    for _ in 0..3 {
        assert!(drive.offer(0, 1, 1_000));
    }
    let rate = Some(BitRate::mbit(400));
    tell(&mut drive, Fault::Rate { rate });
    let mut exits = Vec::new();
    drive.advance(Instant::START + Span::micros(15), &mut exits);
    tell(&mut drive, Fault::Rate { rate: None });
    exits.extend(drive.drain());
    let at: Vec<_> = exits.iter().map(|exit| exit.at.as_nanos()).collect();
    assert_eq!(at, [10_000, 30_000, 40_000]);

    // Four frames each of two stations to a third, 10 us each; at 25 us there are two delivered, and 25 us of silence.
    let mut drive = Drive::new(&omega(2, 1), 4, 1);
    for _ in 0..4 {
        assert!(drive.offer(0, 2, 1_000) && drive.offer(1, 2, 1_000));
    }
    let mut exits = Vec::new();
    drive.advance(Instant::START + Span::micros(25), &mut exits);
    assert_eq!(exits.len(), 2);
    let down = Span::micros(12);
    tell(&mut drive, Fault::Restart { down });
    exits.extend(drive.drain());
    let lost = Fate::Lost(Place::Medium, Cause::Restart);
    let story: Vec<_> = exits
        .iter()
        .map(|exit| (exit.at.as_nanos() / 1_000, exit.fate))
        .collect();
    // Cut at 25 us: one on its way, one that waits; then both lines send into nothing at 25 and 35 us, and none is left.
    let want = [
        (10, Fate::Delivered),
        (20, Fate::Delivered),
        (25, lost),
        (25, lost),
        (25, lost),
        (25, lost),
        (35, lost),
        (35, lost),
    ];
    assert_eq!(story, want);
}

/// The file for a network of one's own is right, carries frames and meets its ceiling.
#[test]
fn the_example_is_a_network() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../plans/examples/networks/stages.toml"
    );
    let spec = written(&std::fs::read_to_string(path).expect(path));
    let mut drive = Drive::new(&spec, 9, 1);
    let until = Instant::START + Span::millis(500);
    let exits = drive.saturate(1, spec.mtu, until, |_, _| 8);
    let took = exits[exits.len() - 1].at.since(exits[0].at);
    let each = spec.frame_time(Bytes(spec.mtu));
    assert_eq!(took, each * (exits.len() as u64 - 1));
}
