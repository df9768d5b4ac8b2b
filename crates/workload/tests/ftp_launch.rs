//! A launch of FTP as the workers of two agents make it, within this process: its rows, and each stage that was measured apart.

use crate::files_launch::{launch, median, spec};
use sonde_measure::files::Stages;
use sonde_measure::{Procedure, Quantity};

const SIZES: [u64; 3] = [1, 8_192, 300_000];

#[test]
fn each_stage_is_measured_apart() {
    for knobs in [
        &[("op", "read")][..],
        &[("op", "write"), ("store", "scratch"), ("sync", "no")],
        &[
            ("op", "read"),
            ("type", "ascii"),
            ("translate", "character"),
        ],
        &[
            ("op", "write"),
            ("type", "ascii"),
            ("window", "32KiB"),
            ("sndbuf", "64KiB"),
            ("rcvbuf", "64KiB"),
            ("copy", "4KiB"),
        ],
    ] {
        let spec = spec("ftp", knobs, &SIZES);
        let Procedure::Files(files) = spec.procedure else {
            panic!("not of files");
        };
        let (mut measured, served) = launch(&spec);
        assert_eq!(served.refused, 0);
        measured.evidence.merge(served.evidence);
        for side in measured.evidence.sides() {
            // Read back, and never less than was asked for.
            let granted = side.socket.recv_buffer.as_ref().unwrap().granted_bytes as u64;
            assert!(granted >= files.receive_buffer_bytes.unwrap_or(1));
            let window = side.socket.window.as_ref();
            let window = window.map(|window| window.granted_bytes as u64);
            assert_eq!(window, files.ftp.window_bytes);
        }
        for (at, size) in SIZES.into_iter().enumerate() {
            let of = |quantity| median(&measured, at, quantity).unwrap();
            assert!(of(Quantity::ThroughputBps) > 0 && of(Quantity::RatePerS) > 0);
            assert!(of(Quantity::ServiceNs) > 1_000 && of(Quantity::CpuSrcNsPerByte) > 0);
            assert!(of(Quantity::CpuDstNsPerByte) > 0);
            let facts = &measured.evidence.files[&size];
            let stages = Stages::of(&files, size, facts).unwrap();
            assert!(
                stages.expected_ns > 0 && facts.trip_ns > Some(0),
                "{facts:?}"
            );
            let is_text = knobs.contains(&("type", "ascii"));
            assert_eq!(facts.translate_source_ns.is_some(), is_text);
            assert_eq!(facts.translate_sink_ns.is_some(), is_text);
            assert!(facts.calls > Some(0) && facts.span_ns > Some(0));
        }
    }
}

#[test]
fn disks_are_worked_out_for_the_end_that_has_them() {
    // 300,000 bytes at 96 and 16 Mb/s, and a seek of 10 ms where a file starts.
    let disks = [
        ("disk", "96Mbit"),
        ("client-disk", "16Mbit"),
        ("client-seek", "10ms"),
    ];
    for (op, source_ns, sink_ns) in [
        ("read", 25_000_000, 160_000_000),
        ("write", 160_000_000, 25_000_000),
    ] {
        let knobs = [&[("op", op)], &disks[..]].concat();
        let spec = spec("ftp", &knobs, &[300_000]);
        let (mut measured, served) = launch(&spec);
        measured.evidence.merge(served.evidence);
        let facts = &measured.evidence.files[&300_000];
        assert_eq!(facts.source_ns, Some(source_ns));
        assert_eq!(facts.sink_ns, Some(sink_ns));
        // A disk is never faster than it is.
        let took_ns = median(&measured, 0, Quantity::ServiceNs).unwrap();
        assert!(took_ns >= 160_000_000, "{took_ns}");
    }
}
