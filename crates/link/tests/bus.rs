//! A shared segment against what is known of CSMA/CD.
//!
//! Model:   saturated stations, pairs and Poisson loads on `ethernet-10`, without its turnaround where the standard's own
//!          MAC is shown; "carried" counts frames with preamble and gap, as
//!          Boggs, Mogul and Kent do. `bus.txt`: Mb/s carried, frames in a row of one station, Jain's index over 25 ms
//!          and over 5 s, and the share of frames given up.
//! Source:  Boggs, Mogul, Kent 1988 (SIGCOMM), figure 12; Metcalfe and Boggs 1976 (CACM 19(7)), the bound; Shoch and Hupp
//!          1980; the 10BASE-T1S showcase of INET 4.7 (CSMA/CD mode): 9.56 to 9.59 Mb/s of goodput at 1518 B, 53 % of
//!          payload at 64 B, worst access delay 0.2 to 0.28 s at 70 to 85 % of load.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_link::{
    Admission, Cause, Class, Command, Ecn, Event, Fabric, Fault, Frame, FrameId, Headers, Kind,
    Network, NetworkSpec, Place, Port, Refused, To, resolve, tcp_max, tcp_with_acks,
};
use sonde_units::{BitRate, Bytes, Instant, Span};
use std::collections::BTreeMap;

/// Layer-3 bytes of the smallest and of the largest frame.
const SMALL: u64 = 46;
const LARGE: u64 = 1_500;

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

/// The segment with the standard's own MAC.
fn standard() -> NetworkSpec {
    resolved("ethernet-10:turnaround=0s")
}

/// Stations that always have frames to send, each to the next.
struct Saturated {
    network: Fabric,
    stations: u16,
    len: u64,
    offered: u64,
    senders: BTreeMap<u64, u16>,
    delivered: Vec<u64>,
    lost: Vec<(Place, Cause)>,
    /// The sender of each delivery, in order, and when.
    order: Vec<(Instant, u16)>,
    /// The collisions of each station until then, if they are wanted.
    counted: Option<Vec<Vec<u64>>>,
}

impl Saturated {
    fn new(spec: &NetworkSpec, stations: u16, len: u64, seed: u64) -> Self {
        Self {
            network: Fabric::new(spec, stations.max(2), seed).expect("the catalogue is right"),
            stations,
            len,
            offered: 0,
            senders: BTreeMap::new(),
            delivered: vec![0; usize::from(stations)],
            lost: Vec::new(),
            order: Vec::new(),
            counted: None,
        }
    }

    /// The same, with the collisions of each station at each delivery.
    fn counting(mut self) -> Self {
        self.counted = Some(Vec::new());
        self
    }

    fn fill(&mut self, now: Instant, from: u16) {
        let ports = self.stations.max(2);
        while self.network.ready(Port(from), Class::default()) {
            let to = To::One(Port((from + 1) % ports));
            self.senders.insert(self.offered, from);
            let offer = frame(self.offered, from, to, self.len);
            assert_eq!(self.network.offer(now, offer), Admission::Taken);
            self.offered += 1;
        }
    }

    fn run(mut self, length: Span) -> Self {
        for from in 0..self.stations {
            self.fill(Instant::START, from);
        }
        while let Some(now) = self.network.poll_at().filter(|now| *now <= at(length)) {
            while let Some(event) = self.network.poll(now) {
                match event {
                    Event::Deliver { at, id, .. } => {
                        let from = self.senders.remove(&id.0).expect("it was sent once");
                        self.delivered[usize::from(from)] += 1;
                        self.order.push((at, from));
                        if let Some(counted) = &mut self.counted {
                            let access = self.network.counters().access;
                            counted.push(access.iter().map(|one| one.collisions).collect());
                        }
                    }
                    Event::Lost {
                        id, place, cause, ..
                    } => {
                        self.senders.remove(&id.0);
                        self.lost.push((place, cause));
                    }
                    Event::Ready { port, .. } => self.fill(now, port.0),
                    _ => {}
                }
            }
        }
        self
    }

    /// Mb/s of frames, with preamble and gap.
    fn carried(&self, length: Span) -> f64 {
        let bits = self.delivered.iter().sum::<u64>() * (self.len.max(46) + 38) * 8;
        bits as f64 / (length.as_picos() as f64 / 1e6)
    }

    /// How many frames a station sends before another does, on average.
    fn run_mean(&self) -> f64 {
        let pairs = self.order.windows(2);
        let changes = pairs.filter(|pair| pair[0].1 != pair[1].1).count();
        self.order.len() as f64 / (changes + 1) as f64
    }

    /// Jain's index of the frames of each station within `window`, the mean over the windows of `length` after the first.
    fn fairness(&self, length: Span, window: Span) -> f64 {
        let windows = (length / window) as usize;
        let mut frames = vec![vec![0.0f64; self.delivered.len()]; windows];
        for (at, from) in &self.order {
            if let Some(frames) = frames.get_mut((at.since(Instant::START) / window) as usize) {
                frames[usize::from(*from)] += 1.0;
            }
        }
        let index = |frames: &Vec<f64>| {
            let squares: f64 = frames.iter().map(|n| n * n).sum();
            frames.iter().sum::<f64>().powi(2) / (frames.len() as f64 * squares)
        };
        let rated = || {
            frames
                .iter()
                .skip(1)
                .filter(|one| one.iter().sum::<f64>() > 0.0)
        };
        rated().map(index).sum::<f64>() / rated().count() as f64
    }

    fn collisions(&self) -> u64 {
        self.network
            .counters()
            .access
            .iter()
            .map(|a| a.collisions)
            .sum()
    }
}

/// Mb/s that saturated stations carry on the standard's segment with these knobs.
fn carried(knobs: &str, stations: u16, len: u64) -> f64 {
    let length = Span::secs(4);
    let spec = resolved(&format!("ethernet-10:turnaround=0s{knobs}"));
    let run = Saturated::new(&spec, stations, len, 7).run(length);
    run.carried(length)
}

/// Stations that get frames at random times: the delays, in seconds, and the share of frames that was lost.
fn poisson(
    spec: &NetworkSpec,
    stations: u16,
    len: u64,
    load: f64,
    length: Span,
) -> (Vec<f64>, f64) {
    let mut network = Fabric::new(spec, stations, 3).expect("the catalogue is right");
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let frame_s = spec.frame_time(Bytes(len)).as_picos() as f64 / 1e12;
    let (mut now, mut id, mut lost, mut blocked) = (Instant::START, 0, 0, 0);
    let mut offered = BTreeMap::new();
    let mut delays = Vec::new();
    while now < at(length) {
        let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let gap = -(1.0 - uniform).ln() * frame_s / load;
        now = now + Span::picos((gap * 1e12) as u64);
        while let Some(due) = network.poll_at().filter(|due| *due <= now) {
            while let Some(event) = network.poll(due) {
                match event {
                    Event::Deliver { at, id, .. } => {
                        let since: Instant = offered.remove(&id.0).expect("it was sent once");
                        delays.push(at.since(since).as_picos() as f64 / 1e12);
                    }
                    Event::Lost { .. } => lost += 1,
                    _ => {}
                }
            }
        }
        let from = (random.next_u64() >> 32) as u16 % stations;
        let offer = frame(id, from, To::One(Port((from + 1) % stations)), len);
        match network.offer(now, offer) {
            Admission::Taken => drop(offered.insert(id, now)),
            Admission::Blocked => blocked += 1,
        }
        id += 1;
    }
    (delays, f64::from(lost + blocked) / id as f64)
}

/// (a) Twenty-four stations with full frames: Boggs, Mogul and Kent read more than 9.5 Mb/s.
#[test]
fn long_frames_fill_the_segment() {
    let got = carried("", 24, LARGE);
    assert!((9.4..9.8).contains(&got), "{got}");
    // Users' bytes of 8 stations and a controller in INET's showcase: 9.56 to 9.59 Mb/s of frames without preamble and gap.
    let got = carried(":length_m=25", 9, LARGE) * 1_518.0 / 1_538.0;
    assert!((9.5..9.75).contains(&got), "{got}");
}

/// (b) Twenty-four stations with the smallest frames: 8.0 to 9.1 Mb/s on the long net, counted with preamble and gap; on one
/// segment signals are there sooner.
#[test]
fn short_frames_collide_more() {
    let long = carried(":propagation=10us", 24, SMALL);
    assert!((8.0..9.1).contains(&long), "{long}");
    let short = carried("", 24, SMALL);
    assert!((long..9.2).contains(&short), "{short}");
    // INET: 53.0 to 53.3 % of payload, of 54.8 % at most.
    let payload = carried(":length_m=25", 9, SMALL) * 46.0 / 84.0 / 10.0;
    assert!((0.525..0.536).contains(&payload), "{payload}");
}

/// (c) What is carried grows with the size and falls with the number of stations; always above the bound of Metcalfe and
/// Boggs, whose contention takes whole slots.
#[test]
fn size_and_number_decide() {
    let numbers = [2u16, 5, 10, 24, 60];
    let sizes = [SMALL, 494, LARGE];
    let rows = sizes.map(|len| numbers.map(|n| carried("", n, len)));
    for (row, len) in rows.iter().zip(sizes) {
        assert!(
            row.is_sorted_by(|more, fewer| more > fewer),
            "{len}: {row:?}"
        );
        for (got, n) in row.iter().zip(numbers) {
            let bound = metcalfe_boggs(n, len);
            assert!(*got > bound, "{n} x {len}: {got} below {bound}");
        }
    }
    // Two stations capture the segment at any size.
    for column in 1..numbers.len() {
        let sizes: Vec<_> = rows.iter().map(|row| row[column]).collect();
        assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
    }
}

/// (d) A frame is given up after its sixteenth collision, and not before.
#[test]
fn sixteen_attempts() {
    let length = Span::secs(4);
    let tried = |knobs: &str| resolved(&format!("ethernet-10:turnaround=0s{knobs}"));
    for (attempts, knobs) in [(16, ""), (3, ":attempts=3")] {
        let run = Saturated::new(&tried(knobs), 24, SMALL, 7).run(length);
        let excessive: u64 = run
            .network
            .counters()
            .access
            .iter()
            .map(|a| a.excessive)
            .sum();
        assert!(excessive > 100, "{excessive}");
        assert_eq!(run.lost.len() as u64, excessive);
        let expected = (Place::Medium, Cause::Collisions);
        assert!(run.lost.iter().all(|lost| *lost == expected));
        assert!(run.collisions() >= attempts * excessive);
        let tried: u64 = run
            .network
            .counters()
            .access
            .iter()
            .map(|a| a.attempts)
            .sum();
        // Each attempt came through, or collided, or is on the line.
        let through = run.order.len() as u64 + run.collisions();
        assert!(
            (through..=through + 24).contains(&tried),
            "{tried} for {through}"
        );
    }
    // One attempt: whoever collides has lost.
    let run = Saturated::new(&tried(":attempts=1"), 2, SMALL, 7).run(length);
    assert_eq!(run.collisions(), run.lost.len() as u64);
    assert!(
        run.delivered.iter().all(|frames| *frames == 0),
        "{:?}",
        run.delivered
    );
}

/// (e) Who wins once has a fresh counter, and wins again: two stations send in runs of hundreds, and are even in the end.
#[test]
fn the_winner_captures() {
    let length = Span::secs(60);
    let run = Saturated::new(&standard(), 2, LARGE, 7).run(length);
    let mean = run.run_mean();
    assert!((40.0..400.0).contains(&mean), "runs of {mean}");
    let share = run.delivered[0] as f64 / run.order.len() as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
    // One of two for itself has an index of 0.5; even shares have 1.
    let (short, long) = (
        run.fairness(length, Span::millis(25)),
        run.fairness(length, Span::secs(20)),
    );
    assert!((0.5..0.6).contains(&short), "{short} over 25 ms");
    assert!(long > 0.9, "{long} over 20 s");
    // With the turnaround of the catalogue each has every second frame, over any time.
    let run = Saturated::new(&resolved("ethernet-10"), 2, LARGE, 7).run(length);
    assert!(run.run_mean() < 1.01, "runs of {}", run.run_mean());
    let short = run.fairness(length, Span::millis(25));
    assert!(short > 0.99, "{short} over 25 ms");
}

/// Who has sent last wins the next contest as often as the counters of both say: its own frame is fresh, the other's has
/// collided before.
#[test]
fn the_counters_give_the_odds() {
    let run = Saturated::new(&standard(), 2, SMALL, 7)
        .counting()
        .run(Span::secs(120));
    let counted = run.counted.as_ref().expect("they were wanted");
    // By the collisions of the other's frame before the contest: contests, and those that the last sender won.
    // None comes after none: who has lost the segment has collided.
    let mut contests = [(0u32, 0u32); 7];
    let mut since = [0u64; 2];
    for place in 1..run.order.len() {
        let (last, next) = (usize::from(run.order[place - 1].1), run.order[place].1);
        let other = 1 - last;
        // The counter of the other's frame starts when its own last one was delivered.
        since[last] = counted[place - 1][last];
        let before = (counted[place - 1][other] - since[other]) % 16;
        let collided = counted[place][last] > counted[place - 1][last];
        if let Some((all, won)) = contests.get_mut(before as usize).filter(|_| collided) {
            (*all, *won) = (*all + 1, *won + u32::from(usize::from(next) == last));
        }
    }
    let mut shares = Vec::new();
    for (before, (all, won)) in (0..).zip(contests).skip(1) {
        assert!(all > 400, "{all} contests after {before} collisions");
        let (got, want) = (f64::from(won) / f64::from(all), odds(1, before + 1));
        // Three standard errors.
        let error = 3.0 * (want * (1.0 - want) / f64::from(all)).sqrt();
        assert!(
            (got - want).abs() < error.max(0.01),
            "{before}: {got}, not {want}"
        );
        shares.push(got);
    }
    assert!(shares.is_sorted(), "{shares:?}");
}

/// How likely a frame of `own` collisions is sent before one of `other`: who draws fewer slots sends, and equal draws collide
/// again.
fn odds(own: u32, other: u32) -> f64 {
    if own.max(other) > 40 {
        return 0.5;
    }
    let (mine, theirs) = (
        2f64.powi(own.min(10) as i32),
        2f64.powi(other.min(10) as i32),
    );
    let less = mine.min(theirs);
    // Pairs of draws in which mine is less: for each of mine, those of theirs above it.
    let wins: f64 = (0..less as u32)
        .map(|draw| theirs - 1.0 - f64::from(draw))
        .sum();
    (wins + less * odds(own + 1, other + 1)) / (mine * theirs)
}

/// What several stations carry by either MAC, beside the bound of Metcalfe and Boggs, and how evenly: as a table.
#[test]
fn several_senders() {
    let length = Span::secs(10);
    let mut table = String::from(
        "                        standard (turnaround=0s)                ethernet-10 (turnaround=2us)
stations frame   bound    Mb/s  runs  25 ms    5 s  lost%      Mb/s  runs  25 ms    5 s  lost%
",
    );
    for stations in [2u16, 5, 10, 24] {
        for len in [SMALL, 494, LARGE] {
            let bound = metcalfe_boggs(stations, len);
            table += &format!("{stations:>8} {:>5} {bound:>7.3}", len + 18);
            for spec in [standard(), resolved("ethernet-10")] {
                let run = Saturated::new(&spec, stations, len, 7).run(length);
                let carried = run.carried(length);
                assert!(
                    carried > bound && carried <= 10.0,
                    "{stations} x {len}: {carried}"
                );
                let fates = (run.order.len() + run.lost.len()) as f64;
                table += &format!(
                    " {carried:>7.3} {:>5.1} {:>6.3} {:>6.3} {:>6.2}  ",
                    run.run_mean(),
                    run.fairness(length, Span::millis(25)),
                    run.fairness(length, Span::secs(5)),
                    run.lost.len() as f64 * 100.0 / fates,
                );
            }
            table = table.trim_end().to_owned() + "\n";
        }
    }
    assert!(
        table == include_str!("bus.txt"),
        "the table is now:\n{table}"
    );
}

/// Mb/s of frames by the bound of Metcalfe and Boggs (1976, §6), whose contention takes whole slots.
fn metcalfe_boggs(stations: u16, len: u64) -> f64 {
    let q = f64::from(stations);
    let a = (1.0 - 1.0 / q).powf(q - 1.0);
    let frame = (len.max(46) + 18) as f64 * 0.8;
    10.0 * frame / (frame + (1.0 - a) / a * 51.2 + 9.6)
}

/// (f) A port of a switch has a line of its own in each direction.
#[test]
fn a_switch_has_no_collisions() {
    let length = Span::secs(2);
    for (selector, mbit) in [("ethernet-100", 100.0), ("ethernet-100:rate=10Mbit", 10.0)] {
        let run = Saturated::new(&resolved(selector), 2, LARGE, 7).run(length);
        assert!(run.network.counters().access.is_empty() && run.lost.is_empty());
        let both = run.carried(length);
        assert!(
            (1.99 * mbit..=2.0 * mbit).contains(&both),
            "{selector}: {both}"
        );
    }
    // The same two on a segment of that rate.
    let run = Saturated::new(&standard(), 2, LARGE, 7).run(length);
    assert!(run.collisions() > 0 && run.carried(length) < 10.0);
}

/// S18: the segment at ten times the rate carries nearly ten times as much; its ends are further apart, in bits.
#[test]
fn a_faster_segment() {
    let (slow, fast) = (carried("", 10, LARGE), carried(":rate=100Mbit", 10, LARGE));
    assert!(fast > 9.8 * slow && fast < 10.0 * slow, "{fast} to {slow}");
}

/// S18: what congests the slow segment leaves the fast one alone, and ten times as much congests that as well.
#[test]
fn a_faster_segment_congests_again() {
    let fast = resolved("ethernet-10:turnaround=0s:rate=100Mbit:length_m=100");
    let length = Span::secs(4);
    let mean = |delays: &[f64]| delays.iter().sum::<f64>() / delays.len() as f64;
    let (slow_delays, slow_lost) = poisson(&standard(), 9, LARGE, 0.9, length);
    let (delays, lost) = poisson(&fast, 9, LARGE, 0.09, length);
    assert!(slow_lost > 0.0 && lost == 0.0, "{slow_lost}, {lost}");
    let idle = mean(&delays);
    assert!(idle * 10.0 < mean(&slow_delays), "{idle}");
    let (delays, lost) = poisson(&fast, 9, LARGE, 0.9, length);
    assert!(
        lost > 0.0 && mean(&delays) > 5.0 * idle,
        "{lost}, {} to {idle}",
        mean(&delays)
    );
}

/// S50: all send to their neighbours at once. A switch takes as long for any number; a segment longer for each.
#[test]
fn a_neighbour_exchange() {
    let exchange = |selector: &str, stations: u16| {
        let mut network = Fabric::new(&resolved(selector), stations, 11).expect("it is right");
        for from in 0..stations {
            let to = To::One(Port((from + 1) % stations));
            network.offer(Instant::START, frame(u64::from(from), from, to, LARGE));
        }
        let (mut last, mut arrived) = (Instant::START, 0);
        while let Some(now) = network.poll_at() {
            while let Some(event) = network.poll(now) {
                if let Event::Deliver { at, .. } = event {
                    (last, arrived) = (at, arrived + 1);
                }
            }
        }
        assert_eq!(arrived, stations);
        last.since(Instant::START)
    };
    let numbers = [2, 4, 8, 16];
    let switched = numbers.map(|n| exchange("ethernet-100:rate=10Mbit", n));
    assert!(switched.iter().all(|time| *time == switched[0]));
    for (time, n) in numbers
        .map(|n| exchange("ethernet-10", n))
        .into_iter()
        .zip(numbers)
    {
        // Frames one after the other, and collisions that cost at most as much again.
        let least = Span::nanos(1_230_400) * u64::from(n) - Span::nanos(9_600);
        assert!(time > least && time < least * 2, "{n}: {time}");
    }
}

/// The frame without its gap, and the way between the two places: 500 ns for 100 m.
#[test]
fn one_way_is_frame_and_distance() {
    for (len, bytes) in [(1, 72), (46, 72), (47, 73), (1_500, 1_526)] {
        for (from, to, way) in [(0u16, 3u16, 900_000), (3, 2, 300_000), (1, 3, 600_000)] {
            let spec = resolved("ethernet-10:length_m=180");
            let mut network = Fabric::new(&spec, 4, 1).expect("it is right");
            network.offer(Instant::START, frame(0, from, To::One(Port(to)), len));
            let want = Instant::from_picos(bytes * 800_000 + way);
            let events: Vec<_> = std::iter::from_fn(|| network.poll(want)).collect();
            let delivered =
                |event: &Event| matches!(event, Event::Deliver { at, .. } if *at == want);
            assert!(
                events.iter().any(delivered),
                "{len} from {from}: {events:?}"
            );
            assert_eq!(network.poll_at(), None);
        }
    }
}

/// One frame reaches all, each at its own distance, for the time of one.
#[test]
fn all_hear_a_broadcast() {
    let mut network =
        Fabric::new(&resolved("ethernet-10:length_m=300"), 4, 1).expect("it is right");
    network.offer(Instant::START, frame(0, 0, To::All, LARGE));
    let mut heard = Vec::new();
    while let Some(now) = network.poll_at() {
        while let Some(event) = network.poll(now) {
            if let Event::Deliver { at, to, .. } = event {
                heard.push((to.0, at.as_picos() - 1_220_800_000));
            }
        }
    }
    assert_eq!(heard, [(1, 500_000), (2, 1_000_000), (3, 1_500_000)]);
}

/// The mean and the worst delay grow with the load, and frames are lost from about 70 % on, as in INET's showcase.
#[test]
fn delay_grows_with_load() {
    let spec = standard();
    for len in [SMALL, LARGE] {
        let loads = [0.1, 0.3, 0.5, 0.7, 0.9];
        let rows = loads.map(|load| {
            let (delays, lost) = poisson(&spec, 9, len, load, Span::secs(8));
            let mean = delays.iter().sum::<f64>() / delays.len() as f64;
            (mean, delays.iter().copied().fold(0.0, f64::max), lost)
        });
        assert!(rows.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{rows:?}");
        assert!(rows[..3].iter().all(|(.., lost)| *lost == 0.0), "{rows:?}");
        assert!(rows[4].2 > 0.0 && rows[4].1 > 0.1, "{rows:?}");
    }
}

#[test]
fn one_stream_has_the_whole_segment() {
    let length = Span::secs(10);
    let spec = resolved("ethernet-10");
    let run = Saturated::new(&spec, 1, LARGE, 7).run(length);
    assert_eq!(run.collisions(), 0);
    // 1448 user bytes of 1538, and 2 us of turnaround: 9.400 Mb/s. By the standard's MAC 9.415.
    let met = |spec: &NetworkSpec, run: &Saturated| {
        let user = run.delivered[0] as f64 * 1_448.0 * 8.0 / 10.0;
        let most = tcp_max(spec, Headers::Timestamps).expect("there is a rate") as f64;
        assert!(user <= most && user > most * 0.999, "{user} of {most}");
        user
    };
    let turned = met(&spec, &run);
    let run = Saturated::new(&standard(), 1, LARGE, 7).run(length);
    assert!(met(&standard(), &run) > turned * 1.001);
}

/// Segments and their acknowledgements share the segment; the standard's MAC takes more from them.
#[test]
fn acknowledgements_use_the_segment() {
    let spec = resolved("ethernet-10");
    let most = tcp_with_acks(&spec, Headers::Timestamps).expect("there is a rate") as f64;
    assert!((most / 1e6 - 9.140).abs() < 5e-4, "{most}");
    for window in [2, 11, 44] {
        let got = stream(&spec, window);
        assert_eq!((got.lost, got.collisions), (0, 0), "{window}");
        let user = got.user;
        assert!(user < most && user > most * 0.995, "{user} of {most}");
    }
    // Two segments a turn: nobody contends, and only the way there and back is lost.
    let most = tcp_with_acks(&standard(), Headers::Timestamps).expect("there is a rate") as f64;
    assert!((most / 1e6 - 9.147).abs() < 5e-4, "{most}");
    let alone = stream(&standard(), 2).user;
    assert!(alone < most && alone > most * 0.998, "{alone} of {most}");
    // A sender that always has more collides with each acknowledgement, where adapters lose no time.
    let full = stream(&standard(), 11);
    assert!(
        full.user > most * 0.75 && full.user < most * 0.97,
        "{} of {most}",
        full.user
    );
    assert!(full.collisions > 1_000, "{}", full.collisions);
}

/// Two that always have frames take turns, however long the segment: who waits hears the other's end, and is heard, before
/// the turnaround is over.
#[test]
fn two_stations_take_turns() {
    for (selector, len) in [
        ("ethernet-10", LARGE),
        ("ethernet-10", SMALL),
        ("ethernet-10:propagation=10us:turnaround=21us", LARGE),
    ] {
        let length = Span::secs(4);
        let run = Saturated::new(&resolved(selector), 2, len, 7).run(length);
        // Both begin at once, and the loser may wait for some slots.
        let later = &run.order[20..];
        assert!(
            later.windows(2).all(|pair| pair[0].1 != pair[1].1),
            "{selector} {len}"
        );
        assert!(run.collisions() < 20 && run.lost.is_empty());
        // A frame each, and the way there.
        assert!(run.carried(length) > if len == LARGE { 9.9 } else { 9.8 });
    }
}

/// What a stream came to.
struct Stream {
    /// Bits a second of user bytes.
    user: f64,
    lost: u64,
    collisions: u64,
}

/// A window of so many segments and an acknowledgement for every second one.
fn stream(spec: &NetworkSpec, window: u64) -> Stream {
    let length = Span::secs(10);
    let mut network = Fabric::new(spec, 2, 1).expect("it is right");
    let (mut sent, mut received, mut acked, mut lost) = (0, 0, 0, 0);
    let mut now = Instant::START;
    loop {
        while sent < acked + window && network.ready(Port(0), Class::default()) {
            network.offer(now, frame(2 * sent, 0, To::One(Port(1)), LARGE));
            sent += 1;
        }
        now = network.poll_at().expect("the stream goes on");
        if now > at(length) {
            let access = &network.counters().access;
            return Stream {
                user: received as f64 * 1_448.0 * 8.0 / 10.0,
                lost,
                collisions: access.iter().map(|station| station.collisions).sum(),
            };
        }
        while let Some(event) = network.poll(now) {
            match event {
                Event::Deliver { to: Port(1), .. } => {
                    received += 1;
                    if received % 2 == 0 {
                        network.offer(now, frame(2 * received + 1, 1, To::One(Port(0)), 52));
                    }
                }
                Event::Deliver { id, .. } => acked = acked.max(id.0 / 2),
                // What is lost is sent again at once; only the time counts here.
                Event::Lost { id, .. } if id.0 % 2 == 0 => (sent, lost) = (sent - 1, lost + 1),
                Event::Lost { id, .. } => {
                    lost += 1;
                    network.offer(now, frame(id.0, 1, To::One(Port(0)), 52));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_segment_takes_a_rate_and_nothing_else() {
    let mut network = Fabric::new(&resolved("ethernet-10"), 2, 1).expect("it is right");
    let start = Instant::START;
    let rate = |rate| Command::Fault(Fault::Rate { rate });
    assert_eq!(network.command(start, rate(Some(BitRate::mbit(5)))), Ok(()));
    network.offer(start, frame(0, 0, To::One(Port(1)), LARGE));
    let at = network.poll_at().expect("it is on its way");
    assert_eq!(network.command(at, rate(None)), Ok(()));
    network.offer(at, frame(1, 0, To::One(Port(1)), LARGE));
    let mut times = Vec::new();
    while let Some(now) = network.poll_at() {
        while let Some(event) = network.poll(now) {
            if let Event::Deliver { at, .. } = event {
                times.push(at.as_picos());
            }
        }
    }
    // At 5 Mb/s; then a gap, the turnaround and a frame at 10.
    assert_eq!(
        times,
        [
            2_441_600_000 + 925_000,
            2_441_600_000 + 925_000 + 1_230_400_000 + 2_000_000
        ]
    );
    // A slot of 512 bits at 1 Gb/s is too short for 185 m.
    let refused = network.command(now_of(&network), rate(Some(BitRate::gbit(1))));
    assert!(matches!(refused, Err(Refused::Value { .. })), "{refused:?}");
    for fault in [
        Fault::Restart { down: Span::ZERO },
        Fault::Trunk {
            trunk: 0,
            up: false,
        },
        Fault::Manager { up: false },
    ] {
        let refused = network.command(now_of(&network), Command::Fault(fault));
        assert!(
            matches!(refused, Err(Refused::NotHere { .. })),
            "{refused:?}"
        );
    }
}

/// Late enough for any of these tests.
fn now_of(network: &Fabric) -> Instant {
    network.poll_at().unwrap_or(at(Span::secs(1)))
}

#[test]
fn what_cannot_be_is_refused() {
    let message = |selector: &str| {
        resolve(selector, &|_| unreachable!())
            .expect_err(selector)
            .to_string()
    };
    for (selector, words) in [
        ("ethernet-10:propagation=30us", "shorten the segment"),
        ("ethernet-10:rate=1Gbit", "lower the rate"),
        ("ethernet-10:attempts=0", "1 to 64"),
        ("ethernet-10:backoff_limit=40", "1 to 20"),
        ("ethernet-10:framing=fddi", "ethernet"),
        ("ethernet-10:turnaround=1001us", "0 to 1ms"),
    ] {
        assert!(message(selector).contains(words), "{}", message(selector));
    }
    assert!(resolve("ethernet-10:turnaround=1ms", &|_| unreachable!()).is_ok());
}
