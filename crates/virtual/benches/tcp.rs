//! The cost of a segment in virtual time: sent, carried, acknowledged, repaired; network included.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sonde_link::{Port, resolve};
use sonde_units::{Bytes, Span};
use sonde_virtual::{Sender, incast, streams};
use std::hint::black_box;

/// Long streams: with and without loss, alone and eight into one port.
fn segment(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("segment");
    group.sample_size(10);
    for (name, selector, senders) in [
        ("lossless", "ethernet-1g", 1),
        ("lossless-cells", "atm-oc3c", 1),
        ("loss-0.1%", "wire:delay=5ms:loss=0.1%", 1),
        ("loss-1%", "ethernet-1g:delay=1ms:loss=1%", 1),
        ("overflow-8", "ethernet-1g:buffer=256frames", 8),
    ] {
        let spec = resolve(selector, &|_| unreachable!()).expect("it is in the catalogue");
        let flows: Vec<_> = (1..=senders).map(|port| (Port(port), Port(0))).collect();
        let run = |sender: &Sender| {
            let rates = streams(&spec, &flows, sender, Span::secs(1)).expect("it recovers");
            rates.iter().sum::<u64>()
        };
        for (kind, sender) in [
            ("modern", Sender::modern()),
            ("era", Sender::era(Bytes::mib(1))),
        ] {
            // Two seconds are run, and the first is as busy as the second.
            let bits = Bytes(sender.headers.segment(Bytes(spec.mtu)).0).bits();
            group.throughput(Throughput::Elements(2 * run(&sender) / bits));
            group.bench_function(BenchmarkId::new(name, kind), |bencher| {
                bencher.iter(|| run(black_box(&sender)));
            });
        }
    }
    group.finish();
}

/// 64 senders of 256 KiB each, with the building of network and flows.
fn burst(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("incast");
    let spec = resolve("ethernet-1g:buffer=64frames", &|_| unreachable!()).expect("it is there");
    group.throughput(Throughput::Elements(64 * Bytes::kib(256).0.div_ceil(1_448)));
    group.bench_function("64 x 256 KiB", |bencher| {
        bencher.iter(|| incast(&spec, 64, Bytes::kib(256), black_box(&Sender::modern())));
    });
    group.finish();
}

criterion_group!(benches, segment, burst);
criterion_main!(benches);
