//! Messages at a rate between two agents that are processes, with one of them standing still for a while.

use std::time::Duration;

use crate::agents::{Agent, agents, conversation};
use crate::processes::{children, signal, soon};
use sonde_measure::{Pace, Probe, Procedure, Quota, Sampling, Spacing, Spec};
use sonde_measure::{Path, Wait};
use sonde_measure::{Phase, Quantity};
use sonde_probe::Outcome;
use sonde_stats::Series;
use sonde_sys::noise::measured;

const MS: u64 = 1_000_000;

fn at_rate(path: Path, rate_per_s: u64, budget_ms: u64, law: Spacing) -> Spec {
    Spec {
        procedure: Procedure::Rate {
            pace: Pace {
                rate_per_s,
                law,
                seed: 5,
            },
            quota: Quota {
                budget_ns: budget_ms * MS,
                ..Quota::RATE
            },
        },
        ..Spec::new(Probe::Rate, path, Wait::Block)
    }
}

fn series(outcome: &Outcome, quantity: Quantity) -> &Series {
    let mut rows = outcome.sizes[0].measurements.iter();
    let row = rows.find(|row| row.quantity == quantity && row.phase == Phase::Warm);
    &row.unwrap_or_else(|| panic!("no {quantity:?}")).series
}

fn only(outcome: &Outcome, quantity: Quantity) -> u64 {
    let series = series(outcome, quantity);
    assert_eq!(series.count(), 1, "{quantity:?}");
    series.max().unwrap()
}

/// Has a conversation in which the worker of one agent stands still from 400 ms after it began, for 300 ms.
fn stalled(spec: Spec, victim_serves: bool) -> Outcome {
    let (mut client, mut server) = agents();
    let victim = if victim_serves { &server } else { &client }.child.id();
    let stopper = std::thread::spawn(move || {
        soon("no worker starts", || !children(victim).is_empty());
        std::thread::sleep(Duration::from_millis(400));
        let worker = children(victim)[0];
        signal("-STOP", worker);
        std::thread::sleep(Duration::from_millis(300));
        signal("-CONT", worker);
    });
    let outcome = conversation(spec)
        .run(&mut client.link, &mut server.link)
        .unwrap_or_else(|error| panic!("{error}"));
    stopper.join().unwrap();
    outcome
}

#[test]
fn every_planned_message_is_sent_and_answered() {
    measured(|| {
        for (path, law) in [
            (Path::Tcp, Spacing::Constant),
            (Path::Udp, Spacing::Poisson),
        ] {
            let (mut client, mut server): (Agent, Agent) = agents();
            let spec = Spec {
                sizes_bytes: vec![8, 1_000],
                verify: true,
                ..at_rate(path, 500, 600, law)
            };
            let outcome = conversation(spec)
                .run(&mut client.link, &mut server.link)
                .unwrap();
            assert_eq!(outcome.sizes.len(), 2);
            let discarded = outcome.evidence.sizes[&8].discarded.unwrap();
            assert!((1..=100).contains(&discarded), "{discarded}");
            assert_eq!(outcome.evidence.sizes[&8].unsent, Some(0));
            let counted = series(&outcome, Quantity::ResponseNs).count();
            assert_eq!(series(&outcome, Quantity::ServiceNs).count(), counted);
            if law == Spacing::Constant {
                assert_eq!(counted + discarded, 300, "one each 2 ms for 600 ms");
                let achieved = only(&outcome, Quantity::RatePerS);
                assert!((490_000..=510_000).contains(&achieved), "{achieved}");
            } else {
                assert!((200..=400).contains(&(counted + discarded)), "{counted}");
            }
            // What was due is before what was sent.
            let least = |quantity| series(&outcome, quantity).min().unwrap();
            assert!(least(Quantity::ResponseNs) >= least(Quantity::ServiceNs));
            assert!(only(&outcome, Quantity::LateShare) < 500_000);
            if path == Path::Udp {
                assert_eq!(only(&outcome, Quantity::LostShare), 0);
            }
        }
    });
}

#[test]
fn a_stalled_peer_is_in_the_response_and_not_in_a_closed_loop() {
    measured(|| {
        for path in [Path::Tcp, Path::Udp] {
            let open = stalled(at_rate(path, 200, 1_500, Spacing::Constant), true);
            let response = series(&open, Quantity::ResponseNs);
            // 60 of 300 were due while it stood still: a twentieth waited for more than half of that time.
            let p95 = response.quantile(19, 20).unwrap();
            assert!(p95 > 100 * MS, "{path}: {p95}");
            // The same stall in a closed loop: one message of many thousands.
            let closed = stalled(
                Spec {
                    sizes_bytes: vec![64],
                    procedure: Procedure::Latency(Sampling {
                        samples_max: 1_000_000_000,
                        precision_per_mille: None,
                        budget_ns: 1_500 * MS,
                        ..Sampling::LATENCY
                    }),
                    ..Spec::new(Probe::Latency, path, Wait::Block)
                },
                true,
            );
            let closed = series(&closed, Quantity::LatencyNs);
            let p99 = closed.quantile(99, 100).unwrap();
            assert!(p99 < 10 * MS, "{path}: {p99} of {}", closed.count());
            if path == Path::Tcp {
                assert!(closed.max().unwrap() > 100 * MS);
            }
        }
    });
}

#[test]
fn a_stalled_sender_sends_late_and_leaves_nothing_out() {
    measured(|| {
        for path in [Path::Tcp, Path::Udp] {
            let outcome = stalled(at_rate(path, 200, 1_500, Spacing::Constant), false);
            let [response, service] = [Quantity::ResponseNs, Quantity::ServiceNs]
                .map(|quantity| series(&outcome, quantity));
            assert_eq!(response.count(), service.count());
            let discarded = outcome.evidence.sizes[&64].discarded.unwrap();
            let lost = if path == Path::Udp {
                only(&outcome, Quantity::LostShare)
            } else {
                0
            };
            assert_eq!((response.count() + discarded, lost), (300, 0));
            let p95 = |series: &Series| series.quantile(19, 20).unwrap();
            assert!(p95(response) > 100 * MS, "{path}: {}", p95(response));
            assert!(p95(service) < 50 * MS, "{path}: {}", p95(service));
            assert!(only(&outcome, Quantity::LateShare) > 100_000);
        }
    });
}

#[test]
fn a_rate_beyond_what_can_be_sent_is_reached_as_far_as_it_can() {
    let (mut client, mut server) = agents();
    let spec = at_rate(Path::Tcp, 10_000_000, 200, Spacing::Constant);
    let outcome = conversation(spec)
        .run(&mut client.link, &mut server.link)
        .unwrap();
    let unsent = outcome.evidence.sizes[&64].unsent.unwrap();
    let achieved = only(&outcome, Quantity::RatePerS) / 1_000;
    assert!(unsent > 0 && achieved < 10_000_000, "{unsent} {achieved}");
    // All that was due is in the response: what was not sent, with how long it waited.
    let response = series(&outcome, Quantity::ResponseNs).count();
    assert_eq!(
        response,
        series(&outcome, Quantity::ServiceNs).count() + unsent
    );
    assert!(only(&outcome, Quantity::LateShare) > 900_000);
}
