//! FTP over a lab, measured: disks and windows that hold a transfer, and what read-ahead gives.
//!
//! Model:   the lab of `lab_ftp.rs`. A bound is worked out here, from the rate of a disk or from a window and a round trip.

use crate::lab::{Stage, attachments};
use crate::paired::lab_files::{document_of, fact, files, median};
use crate::paired::lab_ftp::{evidence, over};
use sonde_sys::noise::measured;

/// Bits a second of transfers of `size` bytes over a network, and the facts of these by name.
fn rate(
    network: &str,
    op: &str,
    size: u64,
    with: &[&str],
) -> Option<(f64, impl Fn(&str) -> u64 + use<>)> {
    let case = attachments().first().copied()?;
    let stage = Stage::new(case);
    let text = size.to_string();
    let mut words = vec!["--op", op, "--size", &text];
    words.extend(with.iter().flat_map(|knob| ["--with", *knob]));
    let outcome = files(&stage, &over(case, network, &words)).expect(0);
    let document = document_of(&outcome.out);
    let bps = median(&document, "ftp", op, Some(size), "throughput_bps");
    let evidence = evidence(&stage);
    println!(
        "{op} {network} {with:?}: {bps:.0} b/s, {:#}",
        evidence["files"][&text]
    );
    Some((bps, move |name: &str| fact(&evidence, &text, name)))
}

#[test]
fn matched_buffers_reach_the_slowest_disk() {
    // Copy and socket buffers of the same size, and the disk at work while the socket sends.
    let matched = ["copy=64KiB", "buffer=64KiB", "read-ahead=128KiB"];
    for (op, disk) in [
        // Each direction from a slow source and, as the studies found of a get, to a slow sink.
        ("read", "disk=16Mbit"),
        ("write", "client-disk=16Mbit"),
        ("read", "client-disk=16Mbit"),
        ("write", "disk=16Mbit"),
    ] {
        measured(|| {
            let with = [&matched[..], &[disk]].concat();
            let Some((bps, _)) = rate("ethernet-100", op, 2 << 20, &with) else {
                return;
            };
            assert!((14.4e6..=16e6).contains(&bps), "{op} {disk}: {bps}");
        });
    }
}

#[test]
fn without_read_ahead_disk_and_network_take_turns() {
    measured(|| {
        let disk = "disk=96Mbit";
        let Some((turns, of)) = rate("ethernet-100", "read", 2 << 20, &[disk]) else {
            return;
        };
        let expected_ns = of("expected_ns") as f64;
        let took_ns = (2 << 20) as f64 * 8e9 / turns;
        assert!(
            (0.9..=1.1).contains(&(expected_ns / took_ns)),
            "{expected_ns} {took_ns}"
        );
        let ahead = [disk, "read-ahead=128KiB"];
        let Some((at_once, _)) = rate("ethernet-100", "read", 2 << 20, &ahead) else {
            return;
        };
        // 96 Mb/s and some 94 in turn are 47; at once nearly the slower of them.
        assert!(at_once > 1.5 * turns, "{turns} {at_once}");
    });
}

#[test]
fn what_the_cache_holds_is_faster_than_the_disk() {
    measured(|| {
        let with = ["client-disk=16Mbit", "client-cache=1MiB", "read-ahead=1MiB"];
        let of = |size| rate("ethernet-100", "write", size, &with);
        let (Some((held, _)), Some((larger, _))) = (of(1 << 20), of(2 << 20)) else {
            return;
        };
        assert!(held > 2.0 * 16e6, "{held}");
        assert!((14.4e6..=16e6).contains(&larger), "{larger}");
    });
}

#[test]
fn a_window_goes_once_a_round_trip() {
    for window in [8_192_u64, 32_768, 65_536] {
        measured(|| {
            let network = "hippi-800:delay=1.2ms";
            let knob = format!("window={window}");
            let size = 64 * window;
            let Some((bps, of)) = rate(network, "read", size, &[&knob]) else {
                return;
            };
            // A window is one or two segments there, which are acknowledged when they have come whole: at 800 Mb/s. No
            // acknowledgement is faster than the wire, and none slower than a request that a server answers.
            let windows = size as f64 / window as f64;
            let came_ns = window as f64 * 10.0;
            let (wire_ns, asked_ns) = (2.4e6 + came_ns, of("trip_ns") as f64 + came_ns);
            let took_ns = size as f64 * 8e9 / bps - of("null_ns") as f64;
            let each_ns = took_ns / windows;
            assert!(
                (0.97 * wire_ns..=asked_ns / 0.9).contains(&each_ns),
                "window {window}: {each_ns} of {wire_ns} to {asked_ns}"
            );
        });
    }
}
