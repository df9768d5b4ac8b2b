//! The cost of a match, with 1, 100 and 10,000 receives posted or messages kept: it has to be the same.
//!
//! Run: `cargo bench -p sonde-message --bench matching`. What grows a little with 10,000 is the way to memory.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sonde_message::native::matching::{Envelope, Matching, Pattern};
use std::hint::black_box;

fn envelope(number: u32) -> Envelope {
    Envelope {
        context: 0,
        source: number % 64,
        tag: number / 64,
    }
}

fn exact(number: u32) -> Pattern {
    let Envelope { source, tag, .. } = envelope(number);
    Pattern {
        context: 0,
        source: Some(source),
        tag: Some(tag),
    }
}

/// What one receive takes, of so many.
fn pattern(kind: &str, number: u32) -> Pattern {
    let exact = exact(number);
    match kind {
        "exact" => exact,
        "any_source" => Pattern {
            source: None,
            ..exact
        },
        _ => Pattern { tag: None, ..exact },
    }
}

fn matching(c: &mut Criterion) {
    for kind in ["exact", "any_source", "any_tag"] {
        let mut group = c.benchmark_group(format!("posted_{kind}"));
        for count in [1_u32, 100, 10_000] {
            let mut matching = Matching::default();
            (0..count).for_each(|number| matching.post(pattern(kind, number), number));
            let mut next = 0;
            group.bench_function(BenchmarkId::from_parameter(count), |b| {
                b.iter(|| {
                    // The message for one that is there; that receive is posted again, behind all others.
                    let token = matching.claim(black_box(envelope(next))).expect("posted");
                    matching.post(pattern(kind, token), token);
                    next = (next + 1) % count;
                });
            });
            assert_eq!(matching.posted(), count as usize);
        }
        group.finish();
        let mut group = c.benchmark_group(format!("unexpected_{kind}"));
        for count in [1_u32, 100, 10_000] {
            let mut matching = Matching::default();
            (0..count).for_each(|number| matching.arrive(envelope(number), number));
            let mut next = 0;
            group.bench_function(BenchmarkId::from_parameter(count), |b| {
                b.iter(|| {
                    let token = matching
                        .take(black_box(pattern(kind, next)))
                        .expect("there");
                    matching.arrive(envelope(token), token);
                    next = (next + 1) % count;
                });
            });
            assert_eq!(matching.unexpected(), count as usize);
        }
        group.finish();
    }
}

criterion_group!(benches, matching);
criterion_main!(benches);
