//! A launch of files as the workers of two agents make it, within this process: its rows, and that what is counted adds up.

use crate::files_sockets::LOOPBACK;
use sonde_measure::files::{Files, FilesPath};
use sonde_measure::{FilesFacts, KnobValues, Probe, Procedure, Quantity, Spec, Wait};
use sonde_probe::{Measure, Measured, Serve, Served};
use sonde_workload::files::SERVICE;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;

pub fn spec(path: &str, knobs: &[(&str, &str)], sizes: &[u64]) -> Spec {
    let path: FilesPath = path.parse().unwrap();
    let knobs = knobs.iter();
    let knobs: KnobValues = knobs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let mut files = Files::parse(path, &knobs).unwrap();
    files.quota.budget_ns = 50_000_000;
    let spec = Spec {
        sizes_bytes: sizes.to_vec(),
        verify: true,
        procedure: Procedure::Files(files),
        ..Spec::new(Probe::Files, path.over, Wait::Block)
    };
    spec.check().unwrap();
    spec
}

pub fn launch(spec: &Spec) -> (Measured, Served) {
    let token = "0123456789abcdef0123456789abcdef".to_owned();
    let (stop, stopped) = UnixStream::pair().unwrap();
    let (tell, told) = mpsc::channel();
    let serve = Serve {
        spec: spec.clone(),
        bind: LOOPBACK,
        peer: Some(LOOPBACK),
        token: token.clone(),
        flush_neighbour: None,
    };
    let served = std::thread::spawn(move || {
        let mut opened = |port: u16| {
            tell.send(port).unwrap();
            Ok(())
        };
        (SERVICE.serve)(&serve, stopped.as_fd(), &mut opened).unwrap()
    });
    let port = told.recv().unwrap();
    let measure = Measure {
        moments: false,
        spec: spec.clone(),
        peer: SocketAddr::new(LOOPBACK, port),
        token,
        flush_neighbour: None,
        source: Some(LOOPBACK),
        begin_ns: None,
    };
    let measured = (SERVICE.measure)(&measure).unwrap();
    drop(stop);
    (measured, served.join().unwrap())
}

pub fn median(measured: &Measured, at: usize, quantity: Quantity) -> Option<u64> {
    let mut all = measured.sizes[at].measurements.iter();
    all.find(|one| one.quantity == quantity)?.series.median()
}

fn all_is_accounted_for(facts: &FilesFacts) {
    let sent = facts.calls.unwrap() + facts.retransmissions.unwrap();
    let lost = facts.lost_server_buffer.unwrap();
    // Fragments are counted for the whole host: others' may be among them.
    assert!(facts.received.unwrap() + lost <= sent, "{facts:?}");
    let torn = facts.lost_server_fragments.unwrap();
    assert!(facts.received.unwrap() + lost + torn >= sent, "{facts:?}");
    assert!(facts.null_ns.unwrap() > 0 && facts.own_null_ns.unwrap() > 0);
    assert!(facts.own_call_ns.unwrap() > 0 && facts.span_ns.unwrap() > 0);
}

#[test]
fn files_are_rated_at_every_size() {
    for path in ["nfs2:udp", "nfs2:tcp", "nfs3:udp", "nfs3:tcp"] {
        for knobs in [
            &[("op", "read"), ("outstanding", "4")][..],
            &[("op", "write"), ("sync", "no")],
            &[
                ("op", "write"),
                ("attribute-cache", "no"),
                ("store", "scratch"),
            ],
        ] {
            let sizes = [1, 8_192, 300_000];
            let (measured, served) = launch(&spec(path, knobs, &sizes));
            assert_eq!(served.sizes.len(), 3);
            for (at, size) in sizes.into_iter().enumerate() {
                assert_eq!(measured.sizes[at].size_bytes, size);
                let of = |quantity| median(&measured, at, quantity).unwrap();
                assert!(of(Quantity::ThroughputBps) > 0 && of(Quantity::RatePerS) > 0);
                assert!(of(Quantity::ServiceNs) > 1_000);
                assert!(of(Quantity::CpuSrcNsPerByte) > 0);
                assert!(of(Quantity::CpuDstNsPerByte) > 0);
                all_is_accounted_for(&measured.evidence.files[&size]);
            }
        }
    }
}

#[test]
fn calls_on_names_have_rates() {
    for path in ["nfs2:udp", "nfs3:tcp"] {
        for op in ["getattr", "lookup", "readdir", "create", "remove"] {
            let knobs = [("op", op), ("names", "30"), ("outstanding", "2")];
            let (measured, _) = launch(&spec(path, &knobs, &[1]));
            assert_eq!(measured.sizes[0].size_bytes, 0);
            assert_eq!(median(&measured, 0, Quantity::ThroughputBps), None);
            assert!(median(&measured, 0, Quantity::RatePerS).unwrap() > 0);
            assert!(median(&measured, 0, Quantity::ServiceNs).unwrap() > 1_000);
            all_is_accounted_for(&measured.evidence.files[&0]);
        }
    }
}

#[test]
fn a_service_time_is_in_each_call() {
    let knobs = [("op", "read"), ("service", "3ms"), ("daemons", "2")];
    let (measured, _) = launch(&spec("nfs2:udp", &knobs, &[65_536]));
    let call_ns = median(&measured, 0, Quantity::ServiceNs).unwrap();
    // Never early: a call holds its daemon for all of it.
    assert!(call_ns >= 3_000_000, "{call_ns}");
    let facts = &measured.evidence.files[&65_536];
    assert!(facts.null_ns.unwrap() >= 3_000_000);
    let calls = facts.calls.unwrap();
    assert!(facts.held_ns.unwrap() >= calls * 3_000_000, "{facts:?}");
    // One call at a time: all were answered within the time of the rounds.
    assert!(facts.span_ns.unwrap() >= calls * 3_000_000);
}

#[test]
fn clients_share_a_server() {
    for (path, op, more) in [
        ("nfs3:tcp", "read", ("outstanding", "2")),
        ("nfs2:udp", "create", ("names", "20")),
        ("ftp", "write", ("copy", "8KiB")),
    ] {
        let knobs = [("op", op), ("clients", "3"), more];
        let (measured, _) = launch(&spec(path, &knobs, &[100_000]));
        let of = |quantity| median(&measured, 0, quantity).unwrap();
        let facts = measured.evidence.files.values().next().unwrap();
        let least = facts.client_share_least_ppm.unwrap();
        let most = facts.client_share_most_ppm.unwrap();
        // Of three, one has a third of the rate at most where it has least.
        assert!(least > 0 && least <= 333_334, "{facts:?}");
        assert!((333_333..1_000_000).contains(&most), "{facts:?}");
        // The calls of all, each of which had a round at least.
        let calls = facts.calls.unwrap();
        assert!(calls >= 3 && of(Quantity::ServiceNs) > 1_000);
        if path != "ftp" {
            all_is_accounted_for(facts);
        }
        let rate = of(Quantity::RatePerS);
        match measured.sizes[0].size_bytes {
            0 => assert!(rate > 0),
            size => {
                // Each client's bytes and calls are of the same rounds.
                let bits = of(Quantity::ThroughputBps) as f64;
                let calls_of_file = match path {
                    "ftp" => 1,
                    _ => size.div_ceil(65_536),
                };
                let wanted = rate as f64 / 1e3 / calls_of_file as f64 * size as f64 * 8.0;
                assert!((bits / wanted - 1.0).abs() < 0.01, "{bits} {wanted}");
            }
        }
    }
}
