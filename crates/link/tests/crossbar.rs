//! The crossbar against closed forms: ceilings, blocking of a busy destination, the limit of input queues.
//!
//! Source:  HIPPI/RUS study and RFC 2067; Engset's loss formula (closed, no waiting: insensitive to the law of
//!          holding times); Karol, Hluchyj, Morgan 1987 (head of line: 0.75, 0.6825 …, 2 - sqrt 2).

use crate::drive::{Drive, Exit, Fate, network, written};
use rand_core::Rng;
use sonde_link::{
    Cause, Class, Command, Fault, Flow, Headers, Law, Network, NetworkSpec, Place, Port, overhead,
    tcp_max,
};
use sonde_units::{BitRate, Bytes, Instant, Ratio, Span};
use std::collections::BTreeMap;

/// HIPPI without signals' ways: `setup` is all that goes before data.
fn ideal(rate: u32, knobs: &str) -> NetworkSpec {
    network(&format!("hippi-{rate}:crossing=0ns:length_m=0{knobs}"))
}

/// MB/s of TCP without options.
fn ceiling(spec: &NetworkSpec) -> f64 {
    tcp_max(spec, Headers::Plain).expect("it has a rate") as f64 / 8e6
}

fn near(value: f64, want: f64, share: f64, what: &str) {
    assert!(
        (value / want - 1.0).abs() <= share,
        "{what}: {value} for {want}"
    );
}

/// Full bursts: 65,240 of 66,560 bytes, 784.1 Mb/s. The study's figures with set-up count the last burst as short.
#[test]
fn ceilings_are_those_of_the_study() {
    let rows = [
        (800, ":setup=0ns", 98.02),
        (1600, ":setup=0ns", 196.03),
        (800, ":setup=5us:fill=word", 97.6),
        (800, ":setup=50us:fill=word", 91.5),
        (800, ":setup=0ns:gap=0B", 799.0 / 8.0 * 0.9969),
    ];
    for (rate, knobs, want) in rows {
        near(ceiling(&ideal(rate, knobs)), want, 0.002, knobs);
    }
    // Without a gap, in short bursts: 65,240 of 65,320 bytes, 799.0 Mb/s.
    let short = ideal(800, ":setup=0ns:gap=0B:fill=word");
    near(ceiling(&short) * 8.0, 799.0, 0.0001, "799");
    let spec = network("hippi-800");
    let steps: Vec<_> = overhead(&spec, Headers::Plain)
        .into_iter()
        .map(|step| (step.step, step.bytes))
        .collect();
    let want = [
        ("line", 66_560),
        ("framing", 65_280),
        ("ip", 65_260),
        ("tcp", 65_240),
    ];
    assert_eq!(steps, want);
}

/// A saturated source reaches the ceiling of its specification, with every way of signalling.
#[test]
fn a_stream_meets_its_ceiling() {
    let selectors = [
        "hippi-800",
        "hippi-1600",
        "hippi-800:fill=word:setup=50us",
        "hippi-800:signals=outband:setup=50us",
        "hippi-800:signals=outband:setup=2ms",
        "hippi-800:length_m=10000:credits=8",
        "hippi-800:channels=2:stripes=2",
        "hippi-800:mtu=65496",
        "hippi-1600:mtu=9180",
        "hippi-800:slot=1ms",
    ];
    for selector in selectors {
        let spec = network(selector);
        let mut drive = Drive::new(&spec, 2, 1);
        let until = Instant::START + Span::millis(1_500);
        let exits = drive.saturate(1, spec.mtu, until, |_, _| 1);
        let took = exits[exits.len() - 1].at.since(exits[0].at).as_picos() as f64;
        let segment = Headers::Plain.segment(Bytes(spec.mtu)).0 as f64;
        let bps = (exits.len() - 1) as f64 * segment * 8e12 / took;
        let most = tcp_max(&spec, Headers::Plain).expect("it has a rate") as f64;
        near(bps, most, 1e-6, selector);
    }
}

/// With outband signals the set-up of the next connection hides behind the data of this one, until it is the longer one.
#[test]
fn outband_signals_hide_the_set_up() {
    let bare = ceiling(&ideal(800, ":setup=0ns"));
    let hidden = ceiling(&ideal(800, ":setup=600us:signals=outband"));
    near(hidden, bare, 1e-9, "hidden");
    near(
        ceiling(&ideal(800, ":setup=1331200ns:signals=outband")),
        bare / 2.0,
        1e-6,
        "twice as long as the data",
    );
    // A frame that comes alone gains nothing: it asks when it comes.
    let alone = |knobs: &str| {
        let mut drive = Drive::new(&ideal(800, knobs), 2, 1);
        let mut at = Vec::new();
        for gap in [0, 700, 3_000] {
            drive.now = drive.now + Span::micros(gap);
            assert!(drive.offer(0, 1, 65_280));
            let offered = drive.now;
            let exits = drive.drain();
            at.push(exits[0].at.since(offered));
        }
        at
    };
    assert_eq!(
        alone(":setup=50us:signals=outband"),
        [Span::nanos(715_600); 3]
    );
    assert_eq!(alone(":setup=50us"), [Span::nanos(715_600); 3]);
}

/// READYs come back over the way: where they take longer than the credits last, they are the rate (H6).
#[test]
fn distance_limits_by_credits() {
    // 8 bursts of 10.4 us, then a burst and four times 50 us until the first is answered.
    let spec = ideal(800, ":setup=0ns:credits=8");
    let far = network("hippi-800:crossing=0ns:length_m=10000:setup=0ns:credits=8");
    let (near_by, far_off) = (
        spec.frame_time(Bytes(65_280)),
        far.frame_time(Bytes(65_280)),
    );
    let stall = Span::nanos(210_400 - 83_200) * 7;
    assert_eq!(far_off, near_by + stall + Span::micros(200));
    // All 63 credits last 655.2 us: for less than 161 km each way nothing waits.
    let full = |metres: u64| {
        network(&format!(
            "hippi-800:crossing=0ns:length_m={metres}:setup=0ns"
        ))
        .frame_time(Bytes(65_280))
        .saturating_sub(Span::nanos(20 * metres))
    };
    assert_eq!(full(32_000), near_by);
    assert!(full(40_000) > near_by);
}

/// Parallel copper and serial fibre (H8): 20B24B makes 48 bits of a word of 40, so that 1.2 GBd carry what the cable does; what differs is
/// the way, and a word that is collected at each end of a line.
#[test]
fn serial_fibre_carries_what_copper_does_and_later() {
    let copper = network("hippi-800");
    let fibre = network("hippi-800-serial");
    let (words, bauds) = (25_000_000, 24 * 40 / 20);
    assert_eq!(fibre.line.rate.unwrap().bps(), words * bauds);
    assert_eq!(fibre.line.usable(), copper.line.usable());
    assert_eq!(copper.line.usable().unwrap().bps(), words * 32);
    for bytes in [1_024, 66_560] {
        let both = [&copper, &fibre].map(|one| one.line.unit_time(Bytes(bytes)));
        assert_eq!(both[0], both[1]);
    }
    // 975 m more of each line, and 80 ns.
    let more = Span::nanos(975 * 5 + 80);
    assert_eq!(fibre.line.propagation(), copper.line.propagation() + more);
    let connection = |spec: &NetworkSpec| spec.frame_time(Bytes(65_280));
    assert_eq!(connection(&fibre), connection(&copper) + more * 4);
    let stretched = network("hippi-800-serial:length_m=10000");
    assert_eq!(
        stretched.line.propagation(),
        Span::micros(50) + Span::nanos(80)
    );
}

/// The data of one packet hold a connection for 660 us at most: what would be longer is no network.
#[test]
fn packets_keep_to_the_hold_limit() {
    let refused = |knobs: &str| {
        let selector = format!("hippi-800:{knobs}");
        let read = |_: &str| Err(String::new());
        sonde_link::resolve(&selector, &read)
            .expect_err(&selector)
            .to_string()
    };
    assert!(refused("rate=400Mbit").contains("crossbar.hold"));
    assert!(refused("mtu=65500").contains("lower `mtu`"));
    assert!(refused("hold=600us").contains("655.36"));
    // RFC 2067's and the study's largest.
    for mtu in [65_280, 65_496] {
        let spec = network(&format!("hippi-800:mtu={mtu}"));
        assert_eq!(spec.line.unit_time(Bytes(65_536)), Span::nanos(655_360));
    }
    let mut drive = Drive::new(&network("hippi-800:mtu=9180"), 2, 1);
    assert!(drive.offer(0, 1, 9_181));
    let lost = Fate::Lost(Place::Station, Cause::TooLong);
    assert_eq!(drive.drain()[0].fate, lost);
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    let read = |_: &str| Err(String::new());
    let rows = [
        ("busy=reject:camp_limit=1ms", "crossbar.camp_limit"),
        ("busy=reject:slot=1ms", "crossbar.slot"),
        ("busy=reject:retry=0ns", "crossbar.retry"),
        ("channels=0", "crossbar.channels"),
        ("stripes=2", "crossbar.stripes"),
        ("credits=0", "crossbar.credits"),
        ("burst=3KiB", "line.burst"),
        ("framing=ethernet", "line.burst"),
        ("setup=61s", "crossbar.setup"),
    ];
    for (knobs, key) in rows {
        let error = sonde_link::resolve(&format!("hippi-800:{knobs}"), &read);
        let error = error.expect_err(knobs).to_string();
        assert!(error.contains(key), "{knobs}: {error}");
    }
}

/// A closed system: each of `sources` thinks, asks station `sources` once and thinks again. The share that is refused.
fn refused_share(spec: &NetworkSpec, sources: u16, load: f64, calls: usize, seed: u64) -> f64 {
    let hold = spec.frame_time(Bytes(spec.mtu)).as_picos() as f64;
    let mut drive = Drive::new(spec, sources + 1, seed);
    let think = |drive: &mut Drive| {
        let even = (drive.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        Span::picos((-(1.0 - even).ln() * hold / load) as u64)
    };
    let mut wakes = BTreeMap::new();
    for source in 0..sources {
        let at = drive.now + think(&mut drive);
        wakes.insert((at, source), ());
    }
    let (mut exits, mut seen, mut refused) = (Vec::new(), 0, 0);
    while seen < calls {
        let (wake, source) = *wakes
            .keys()
            .next()
            .unwrap_or(&(Instant::from_picos(u64::MAX), 0));
        match drive.network.poll_at().filter(|at| *at <= wake) {
            Some(at) => drive.advance(at, &mut exits),
            None => {
                wakes.remove(&(wake, source));
                drive.now = wake;
                assert!(drive.offer(source, sources, spec.mtu));
                drive.advance(wake, &mut exits);
            }
        }
        for exit in exits.drain(..) {
            seen += 1;
            if exit.fate == Fate::Lost(Place::Medium, Cause::Rejected) {
                refused += 1;
            } else {
                assert_eq!(exit.fate, Fate::Delivered);
            }
            let at = drive.now + think(&mut drive);
            wakes.insert((at, exit.from.0), ());
        }
    }
    f64::from(refused) / seen as f64
}

/// Engset's call congestion: `sources` of `load` each while they think, `channels` to serve them.
fn engset(sources: u16, load: f64, channels: u16) -> f64 {
    let mut terms = vec![1.0];
    for busy in 1..=channels {
        let last: f64 = terms[terms.len() - 1];
        terms.push(last * load * f64::from(sources - busy) / f64::from(busy));
    }
    terms[terms.len() - 1] / terms.iter().sum::<f64>()
}

/// The share of refused requests is Engset's, within five standard deviations of its estimate; more channels refuse fewer.
#[test]
fn a_busy_destination_refuses_as_engset_says() {
    const CALLS: usize = 60_000;
    for (sources, load) in [(2, 0.5), (8, 0.1), (8, 0.5), (40, 0.05)] {
        let mut before = 1.0;
        for channels in [1, 2, 4] {
            if channels >= sources {
                continue;
            }
            let knobs = format!(":busy=reject:tries=1:channels={channels}");
            for choice in ["priority", "round-robin", "random"] {
                let spec = ideal(800, &format!("{knobs}:choice={choice}"));
                let want = engset(sources, load, channels);
                let share = refused_share(&spec, sources, load, CALLS, 7);
                // Refusals come in bunches: twice the variance of independent ones.
                let deviation = (2.0 * want * (1.0 - want) / CALLS as f64).sqrt();
                assert!(
                    (share - want).abs() < 5.0 * deviation,
                    "{sources} at {load}, {channels} {choice}: {share} for {want}"
                );
                assert!(share < before, "{channels} channels refuse fewer");
            }
            before = engset(sources, load, channels) + 0.001;
        }
    }
}

/// What comes from FDDI by a router holds a server's port for a share of the time, in the study a tenth at most, and so often a server finds it
/// busy: arrivals see time averages.
#[test]
fn server_traffic_meets_a_port_that_fddi_holds_for_a_tenth_at_most() {
    const CALLS: usize = 20_000;
    const DATAGRAM: u64 = 4_352;
    let spec = ideal(800, ":busy=reject:tries=1");
    for (share, part) in [(2, 50), (5, 20), (10, 10)] {
        let mut drive = Drive::new(&spec, 2, 11);
        let flow = Flow {
            number: 0,
            from: None,
            to: Port(1),
            rho: Ratio::new(share, 100),
            law: Law::Poisson,
            size: Bytes(DATAGRAM),
            class: Class::default(),
        };
        let load = Command::Load(flow);
        let begun = drive.network.command(drive.now, load);
        begun.expect("it can be loaded");
        let (mut exits, mut refused) = (Vec::new(), 0);
        for _ in 0..CALLS {
            // Servers call each other for datagrams of 64 KiB now and then.
            let even = (drive.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let next =
                drive.now + Span::picos((-(1.0 - even).ln() * 2e10) as u64) + Span::millis(2);
            drive.advance(next, &mut exits);
            drive.now = next;
            assert!(drive.offer(0, 1, spec.mtu));
        }
        drive.advance(drive.now + Span::millis(2), &mut exits);
        assert_eq!(exits.len(), CALLS);
        for exit in &exits {
            refused += u32::from(exit.fate == Fate::Lost(Place::Medium, Cause::Rejected));
        }
        let want = 1.0 / f64::from(part);
        let met = f64::from(refused) / CALLS as f64;
        let deviation = (want * (1.0 - want) / CALLS as f64).sqrt();
        assert!((met - want).abs() < 5.0 * deviation, "{met} for {want}");
    }
}

/// Requests that wait are served in the order in which they came.
#[test]
fn camp_on_is_first_come_first_served() {
    let order = |knobs: &str| {
        let mut drive = Drive::new(&network(&format!("hippi-800{knobs}")), 10, 3);
        let arrivals = [4u16, 7, 1, 0, 8, 2, 6, 3, 5];
        for source in arrivals {
            assert!(drive.offer(source, 9, 65_280));
            drive.now = drive.now + Span::micros(1);
        }
        let exits = drive.drain();
        assert!(exits.iter().all(|exit| exit.fate == Fate::Delivered));
        let order: Vec<_> = exits.iter().map(|exit| exit.from.0).collect();
        (arrivals.to_vec(), order)
    };
    let (came, served) = order("");
    assert_eq!(came, served);
    let (came, served) = order(":order=random");
    assert_ne!(came, served);
    assert_eq!(served.len(), 9);
}

/// Eight saturated stations, all to one or to any: nothing is lost, and the destination is never idle.
#[test]
fn nothing_is_lost_with_camp_on() {
    let until = Instant::START + Span::millis(300);
    for selector in [
        "hippi-800",
        "hippi-1600",
        "hippi-800:channels=2",
        "hippi-800:signals=outband",
    ] {
        let spec = network(selector);
        let mut incast = Drive::new(&spec, 9, 5);
        let exits = incast.saturate(8, spec.mtu, until, |_, _| 8);
        let each = spec.frame_time(Bytes(spec.mtu));
        let channels = u64::from(spec.crossbar.as_ref().map_or(1, |c| c.channels));
        let fit = Span::millis(300) / each * channels;
        assert!(
            exits.len() as u64 + 2 * channels >= fit,
            "{selector}: {} of {fit}",
            exits.len()
        );
        let mut blast = Drive::new(&spec, 8, 5);
        let mut all = blast.saturate(8, spec.mtu, until, |drive, source| {
            let other = drive.draw(7) as u16;
            other + u16::from(other >= source)
        });
        all.extend(exits);
        all.extend(incast.drain());
        all.extend(blast.drain());
        let is_delivered = |exit: &Exit| exit.fate == Fate::Delivered;
        assert!(all.iter().all(is_delivered), "{selector}");
        for drive in [&incast, &blast] {
            assert_eq!(drive.network.counters().lost_total(), 0);
            assert_eq!(drive.network.counters().rejections, 0);
        }
    }
}

/// A refused source asks again until it is served, or until it has been refused `tries` times; each refusal is counted.
#[test]
fn refusals_are_counted_and_end() {
    let mut drive = Drive::new(&ideal(800, ":busy=reject:retry=400us:tries=3"), 3, 1);
    assert!(drive.offer(0, 2, 65_280));
    assert!(drive.offer(1, 2, 65_280));
    let exits = drive.drain();
    // The first holds for 670.6 us: the other is refused at once and again after 400 to 800 us if that is earlier.
    assert!(exits.iter().all(|exit| exit.fate == Fate::Delivered));
    let refusals = drive.network.counters().rejections;
    assert!((1..=2).contains(&refusals), "{refusals}");

    // Every 1 to 2 us for 3 tries: given up long before the other ends, and its next frame after it.
    let mut drive = Drive::new(&ideal(800, ":busy=reject:retry=1us:tries=3"), 3, 1);
    for (from, to) in [(0, 2), (1, 2), (1, 2), (1, 0)] {
        assert!(drive.offer(from, to, 65_280));
    }
    let exits = drive.drain();
    let lost = Fate::Lost(Place::Medium, Cause::Rejected);
    let fates: Vec<_> = exits.iter().map(|exit| (exit.id, exit.fate)).collect();
    let want = [
        (1, lost),
        (2, lost),
        (0, Fate::Delivered),
        (3, Fate::Delivered),
    ];
    assert_eq!(fates, want);
    let counters = drive.network.counters();
    assert_eq!((counters.rejections, counters.circuit_setups), (6, 2));
    assert_eq!(counters.lost[&(Place::Medium, Cause::Rejected, Port(1))], 2);
    let first = exits[0].at.since(Instant::START);
    assert!(
        (Span::micros(2)..=Span::micros(4)).contains(&first),
        "{first}"
    );

    // A request that may camp on for 100 us, three times, with 200 to 400 us between: one is served, one is not.
    let knobs = ":camp_limit=100us:retry=200us:tries=3";
    let mut drive = Drive::new(&ideal(800, knobs), 3, 1);
    for _ in 0..2 {
        assert!(drive.offer(0, 2, 65_280));
    }
    assert!(drive.offer(1, 2, 65_280));
    let exits = drive.drain();
    let counters = drive.network.counters();
    assert_eq!(exits.len(), 3);
    assert!(counters.rejections >= 1, "{counters:?}");
    assert_eq!(
        exits.iter().filter(|exit| exit.fate == lost).count() as u64,
        counters.lost_total()
    );
}

/// Datagrams over two channels at once take half of the time, and as many channels (H10).
#[test]
fn stripes_share_a_datagram() {
    let spec = ideal(800, ":setup=0ns:channels=4:stripes=2");
    // 32,640 + 40 bytes are 32 bursts a channel.
    assert_eq!(spec.frame_time(Bytes(65_280)), Span::nanos(32 * 10_400));
    let mut drive = Drive::new(&spec, 4, 1);
    for source in 0..3 {
        assert!(drive.offer(source, 3, 65_280));
    }
    let at: Vec<_> = drive
        .drain()
        .iter()
        .map(|exit| exit.at.as_nanos())
        .collect();
    assert_eq!(at, [332_800, 332_800, 665_600]);
}

/// Time in the switch is paid twice a datagram, by the signals: the rate falls with it (H32), and with small MTUs (H28).
#[test]
fn latency_and_small_datagrams_lower_the_rate() {
    let rate = |knobs: &str| ceiling(&network(&format!("hippi-800:{knobs}")));
    let slower: Vec<_> = ["500ns", "10us", "100us", "1ms"]
        .map(|crossing| rate(&format!("crossing={crossing}")))
        .into();
    assert!(
        slower.windows(2).all(|pair| pair[1] < pair[0]),
        "{slower:?}"
    );
    // 65,240 bytes in 665.6 + 1.5 + 100 us.
    near(slower[2], 65_240.0 / 767.1, 1e-4, "100 us");
    let crossbars = rate("crossbars=4");
    near(crossbars, 65_240.0 / (667.1 + 2.0), 1e-4, "four crossbars");
    let smaller: Vec<_> = [65_280, 32_000, 9_180, 4_352, 1_500, 576]
        .map(|mtu| rate(&format!("mtu={mtu}")))
        .into();
    assert!(
        smaller.windows(2).all(|pair| pair[1] < pair[0]),
        "{smaller:?}"
    );
}

/// A crossbar of slots with frames of one slot, first in first out at the inputs, contenders drawn evenly.
fn slots(ports: u16) -> NetworkSpec {
    written(&format!(
        "name = \"slots{ports}\"\nsummary = \"slots\"\ntechnology = \"wire\"\ntopology = \"star\"\nmtu = 1000\n\
         [line]\nrate = \"800Mbit\"\nframing = \"none\"\n[station]\nqueue = \"8000B\"\n\
         [crossbar]\nsetup = \"0ns\"\ncrossing = \"0ns\"\norder = \"random\"\nslot = \"10us\"\n"
    ))
}

/// Frames a slot and output, with every input saturated and every output as likely as any. A station is an input with its
/// number and an output with its number + `ports`, so that it may have any of them.
fn head_of_line(ports: u16, slots_counted: u64, seed: u64) -> f64 {
    const WARM: u64 = 500;
    let mut drive = Drive::new(&slots(ports), 2 * ports, seed);
    let until = Instant::START + Span::micros(10) * (WARM + slots_counted);
    let exits = drive.saturate(ports, 1_000, until, |drive, _| {
        ports + drive.draw(u64::from(ports)) as u16
    });
    let from = Instant::START + Span::micros(10) * WARM;
    let counted = exits.iter().filter(|exit| exit.at > from).count();
    counted as f64 / (slots_counted * u64::from(ports)) as f64
}

/// Karol, Hluchyj and Morgan 1987, table I, and its limit 2 - sqrt 2 (0.5858), approached as 1/N from above.
#[test]
fn input_queues_reach_58_6_percent() {
    for (ports, want, tolerance) in [
        (2, 0.75, 0.004),
        (4, 0.6553, 0.004),
        (8, 0.6184, 0.004),
        (16, 0.6013, 0.004),
        (32, 0.5930, 0.004),
        (128, 2.0 - 2f64.sqrt(), 0.006),
    ] {
        let slots = 400_000 / u64::from(ports);
        let share = head_of_line(ports, slots, 11);
        assert!(
            (share - want).abs() < tolerance,
            "{ports}: {share} for {want}"
        );
    }
}

/// Without slots, HIPPI's own contention loses about as much: eight saturated stations to any of eight.
#[test]
fn connections_without_slots_lose_as_much() {
    let spec = ideal(800, "");
    let mut drive = Drive::new(&spec, 16, 2);
    let each = spec.frame_time(Bytes(spec.mtu));
    let until = Instant::START + each * 20_000;
    let exits = drive.saturate(8, spec.mtu, until, |drive, _| 8 + drive.draw(8) as u16);
    let share = exits.len() as f64 / (20_000.0 * 8.0);
    assert!((share - 0.62).abs() < 0.02, "{share}");
}

/// Background traffic for a station takes its channels as other stations do: what is wanted arrives, beside a stream that
/// gets the rest.
#[test]
fn background_takes_its_share_of_a_destination() {
    for (channels, wanted) in [(1, Ratio::new(1, 2)), (2, Ratio::new(9, 10))] {
        let spec = network(&format!("hippi-800:channels={channels}:mtu=9180"));
        let mut drive = Drive::new(&spec, 3, 4);
        let flow = Flow {
            number: 0,
            from: None,
            to: Port(2),
            rho: wanted,
            law: Law::Poisson,
            size: Bytes::ZERO,
            class: Class::default(),
        };
        let start = drive.now;
        let load = Command::Load(flow);
        drive
            .network
            .command(start, load)
            .expect("it can be loaded");
        let until = start + Span::secs(2);
        let exits = drive.saturate(1, 9_180, until, |_, _| 2);
        let flow = drive.network.counters().flows[0];
        let (n, d) = flow.achieved(until).parts();
        let achieved = n as f64 / d as f64;
        let (n, d) = wanted.parts();
        near(achieved, n as f64 / d as f64, 0.03, "background");
        assert_eq!(flow.lost, 0);
        let most = Span::secs(2) / spec.frame_time(Bytes(9_180));
        let stream = exits.len() as f64 / most as f64;
        let left = (f64::from(channels) - achieved).min(1.0);
        assert!(
            stream > left * 0.6 && stream < left * 1.001,
            "{stream} of {left}"
        );
    }
}

#[test]
fn the_rate_changes_from_the_next_frame_on() {
    let spec = ideal(800, ":setup=0ns");
    let mut drive = Drive::new(&spec, 2, 1);
    let change = |drive: &mut Drive, rate| {
        let command = Command::Fault(Fault::Rate { rate });
        let now = drive.now;
        drive.network.command(now, command).expect("it has a rate");
    };
    for _ in 0..3 {
        assert!(drive.offer(0, 1, 65_280));
    }
    change(&mut drive, Some(BitRate::mbit(400)));
    let mut exits = Vec::new();
    while exits.len() < 2 {
        let at = drive.network.poll_at().expect("frames are under way");
        drive.advance(at, &mut exits);
    }
    change(&mut drive, None);
    assert!(drive.offer(0, 1, 65_280));
    exits.extend(drive.drain());
    let at: Vec<_> = exits.iter().map(|exit| exit.at.as_nanos()).collect();
    let one = 665_600;
    assert_eq!(at, [one, 3 * one, 5 * one, 6 * one]);
}

/// A restart takes what is on its way, what has asked, and what asks until the switch is up again; then all is as before.
#[test]
fn a_restart_loses_what_it_holds() {
    for knobs in [
        "",
        ":busy=reject:retry=10us:tries=1000",
        ":slot=700us",
        ":channels=2:stripes=2",
    ] {
        let spec = ideal(800, &format!(":queue=4MiB{knobs}"));
        let mut drive = Drive::new(&spec, 3, 1);
        let mut exits = drive.saturate(2, 65_280, Instant::START + Span::millis(5), |_, _| 2);
        let before = exits.len();
        drive.now = Instant::START + Span::millis(5);
        let down = Command::Fault(Fault::Restart {
            down: Span::millis(3),
        });
        let now = drive.now;
        drive.network.command(now, down).expect("it has a switch");
        exits.extend(drive.drain());
        let lost = |exit: &&Exit| exit.fate == Fate::Lost(Place::Medium, Cause::Restart);
        let times: Vec<_> = exits.iter().filter(lost).map(|exit| exit.at).collect();
        assert!(times.len() >= 4, "{knobs}: {}", times.len());
        assert!(
            times
                .iter()
                .all(|at| *at >= now && *at <= now + Span::millis(3))
        );
        let first_after = exits[before..]
            .iter()
            .find(|exit| exit.fate == Fate::Delivered)
            .expect("it comes up again");
        assert!(first_after.at > now + Span::millis(3));
        // What was lost in 3 ms is what two lines could have sent, not more.
        assert!(times.len() <= 2 * (3_000 / 332 + 2), "{}", times.len());
        assert_eq!(drive.network.counters().lost_total(), times.len() as u64);
    }
    let mut drive = Drive::new(&network("hippi-800"), 2, 1);
    let now = drive.now;
    let trunk = Command::Fault(Fault::Trunk {
        trunk: 0,
        up: false,
    });
    assert!(drive.network.command(now, trunk).is_err());
}

/// The file for a network of one's own is right, carries frames and meets its ceiling.
#[test]
fn the_example_is_a_network() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../plans/examples/networks/crossbar.toml"
    );
    let spec = written(&std::fs::read_to_string(path).expect(path));
    let mut drive = Drive::new(&spec, 9, 1);
    let until = Instant::START + Span::millis(500);
    let exits = drive.saturate(1, spec.mtu, until, |_, _| 8);
    let took = exits[exits.len() - 1].at.since(exits[0].at);
    let each = spec.frame_time(Bytes(spec.mtu));
    assert_eq!(took, each * (exits.len() as u64 - 1));
}
