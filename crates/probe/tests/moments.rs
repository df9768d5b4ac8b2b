//! Preemptions that are planted beside round trips, and what the agents say of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::agents::{agents, conversation, samples};
use sonde_measure::{Away, Moments, Path, Spec};
use sonde_probe::Seen;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu;
use sonde_sys::noise::measured;

/// Round trips of 256 KiB for 1.5 s at most.
fn spec() -> Spec {
    let spec = Spec {
        sizes_bytes: vec![256 << 10],
        ..samples(Path::Unix, 50_000)
    };
    crate::agents::sampled(spec, |sampling| sampling.budget_ns = 1_500_000_000)
}

/// On one CPU with both agents: a thread that sleeps 6 ms and then computes for `length_ns`, again and again (nobody where that is 0);
/// when it did, and what was seen of it.
fn beside(length_ns: u64) -> (Vec<Away>, Moments) {
    let cpu = cpu::online().unwrap()[0];
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let planted = scope.spawn(|| {
            cpu::pin(&[cpu]).unwrap();
            let mut planted = Vec::new();
            while length_ns > 0 && !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(6));
                let (from_ns, cpu_ns) = (monotonic_ns(), cpu::thread_cpu_ns());
                while cpu::thread_cpu_ns() - cpu_ns < length_ns {}
                planted.push(Away {
                    from_ns,
                    to_ns: monotonic_ns(),
                    most_ns: length_ns,
                });
            }
            planted
        });
        let seen = scope.spawn(|| {
            cpu::pin(&[cpu]).unwrap();
            let (mut client, mut server) = agents();
            let mut conversation = conversation(spec());
            conversation.moments = true;
            let outcome = conversation.run(&mut client.link, &mut server.link);
            is_over.store(true, Ordering::Relaxed);
            let size = outcome.unwrap().sizes.remove(0);
            match size.seen {
                Some(Seen::Samples(moments)) => moments,
                other => panic!("this kernel keeps statistics of the scheduler: {other:?}"),
            }
        });
        (planted.join().unwrap(), seen.join().unwrap())
    })
}

/// What came of preemptions of one length.
struct Planted {
    /// How many there were, and how many of them were found.
    all: usize,
    found: usize,
    /// How long samples took, and for how much of that somebody is said to have run in between.
    span_ns: u64,
    away_ns: u64,
}

fn planted(length_ns: u64) -> Planted {
    let (planted, moments) = beside(length_ns);
    let begin_ns = moments.origin_ns;
    let times = moments.samples.iter();
    let span_ns: u64 = times.map(|[pause, took, _]| pause + took).sum();
    let is_within = |one: &&Away| begin_ns < one.from_ns && one.to_ns < begin_ns + span_ns;
    let meets = |one: &Away, other: &Away| one.from_ns <= other.to_ns && other.from_ns <= one.to_ns;
    let within: Vec<&Away> = planted.iter().filter(is_within).collect();
    let is_seen = |one: &&&Away| moments.away.iter().any(|other| meets(one, other));
    let found = within.iter().filter(is_seen).count();
    // Of both ends, each time once.
    let (mut away_ns, mut until_ns) = (0, 0);
    let mut spans = moments.away.clone();
    spans.sort_unstable();
    for one in spans {
        away_ns += one.to_ns.saturating_sub(one.from_ns.max(until_ns));
        until_ns = one.to_ns.max(until_ns);
    }
    let all = within.len();
    println!(
        "{length_ns} ns: {found} of {all} found, {away_ns} ns of {span_ns} ns disturbed, {} samples",
        moments.samples.len()
    );
    Planted {
        all,
        found,
        span_ns,
        away_ns,
    }
}

/// Of a hundred 92 to 100 are found on this project's machines, 83 once beside other work; where nobody disturbs 2 to 8 % of the time is said to be
/// disturbed, some of it rightly: the kernel's own threads run there too. Asserted is less, of the best of three for each length, so that this fails by a
/// defect alone: other work hides some of them now and then, a defect each time.
#[test]
fn planted_preemptions_are_found() {
    measured(|| {
        let quiet = [0; 3].map(planted);
        let [away_ns, span_ns] = [
            quiet.iter().map(|one| one.away_ns).sum::<u64>(),
            quiet.iter().map(|one| one.span_ns).sum(),
        ];
        assert!(away_ns * 10 <= span_ns, "{away_ns} of {span_ns}");
        for length_ns in [200_000, 1_000_000, 4_000_000] {
            let is_found = |_| {
                let one = planted(length_ns);
                assert!(one.all > 50, "{}", one.all);
                one.found * 100 >= one.all * 85
            };
            assert!((0..3).any(is_found), "{length_ns} ns");
        }
    });
}
