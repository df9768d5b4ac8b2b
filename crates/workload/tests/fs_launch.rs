//! A launch of a mounted file system as two workers make it: its rows, what it says of memory, its refusals, and that nothing is left behind.

use crate::files_launch::{launch, median, spec};
use sonde_measure::{Quantity, Spec};
use sonde_probe::Measure;
use sonde_workload::files::SERVICE;
use std::path::{Path, PathBuf};

/// A directory of a test's own, which goes with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("sonde-fs-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.0).unwrap().count() == 0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn error_of(spec: &Spec) -> String {
    let measure = Measure {
        moments: false,
        spec: spec.clone(),
        peer: "127.0.0.1:1".parse().unwrap(),
        token: String::new(),
        flush_neighbour: None,
        source: None,
        begin_ns: None,
    };
    let error = (SERVICE.measure)(&measure).unwrap_err();
    format!("{error}: {}", error.remedy())
}

#[test]
fn a_file_system_is_rated_at_every_size() {
    let place = Place::new("rated");
    for more in [
        &[("op", "read")][..],
        &[("op", "read"), ("cached", "yes")],
        &[("op", "read"), ("outstanding", "4"), ("transfer", "16KiB")],
        &[("op", "write"), ("sync", "no")],
        &[("op", "write"), ("outstanding", "8"), ("transfer", "4KiB")],
    ] {
        let knobs = [more, &[("directory", place.text())]].concat();
        let sizes = [1, 8_192, 300_000];
        let (measured, served) = launch(&spec("fs", &knobs, &sizes));
        assert_eq!(served.sizes.len(), 3);
        for (at, size) in sizes.into_iter().enumerate() {
            let of = |quantity| median(&measured, at, quantity);
            assert!(of(Quantity::ThroughputBps).unwrap() > 0, "{knobs:?}");
            assert!(of(Quantity::RatePerS).unwrap() > 0);
            assert!(of(Quantity::ServiceNs).unwrap() > 0);
            assert!(of(Quantity::CpuSrcNsPerByte).is_some());
            // There is no server.
            assert_eq!(of(Quantity::CpuDstNsPerByte), None);
            assert_eq!(of(Quantity::Retransmits), None);
            let facts = &measured.evidence.files[&size];
            let resident = facts.resident_bytes.unwrap();
            assert!(resident <= size, "{facts:?}");
            if more.contains(&("cached", "yes")) {
                assert_eq!(resident, size, "{facts:?}");
            }
            assert!(facts.calls.unwrap() > 0 && facts.span_ns.unwrap() > 0);
        }
        assert!(place.is_empty(), "{knobs:?}");
    }
}

#[test]
fn names_of_a_file_system_have_rates() {
    let place = Place::new("names");
    for op in ["getattr", "lookup", "readdir", "create", "remove"] {
        let knobs = [("op", op), ("names", "30"), ("directory", place.text())];
        let (measured, _) = launch(&spec("fs", &knobs, &[1]));
        assert_eq!(measured.sizes[0].size_bytes, 0);
        assert_eq!(median(&measured, 0, Quantity::ThroughputBps), None);
        assert!(median(&measured, 0, Quantity::RatePerS).unwrap() > 0);
        assert!(median(&measured, 0, Quantity::ServiceNs).unwrap() > 0);
        let facts = &measured.evidence.files[&0];
        assert_eq!(facts.resident_bytes, None);
        // Thirty names are listed by two calls: the second says that there are no more.
        if op == "readdir" {
            let rounds = measured.sizes[0].measurements[0].series.count();
            assert_eq!(facts.calls.unwrap(), 2 * rounds, "{facts:?}");
        }
        assert!(place.is_empty(), "{op}");
    }
}

#[test]
fn what_a_file_system_refuses_is_said() {
    let place = Place::new("refused");
    let gone = place.0.join("gone");
    let file = place.0.join("file");
    std::fs::write(&file, "x").unwrap();
    for directory in [&gone, &file] {
        let text = directory.to_str().unwrap();
        let error = error_of(&spec(
            "fs",
            &[("op", "read"), ("directory", text)],
            &[4_096],
        ));
        assert!(
            error.contains("cannot make") && error.contains(text),
            "{error}"
        );
        assert!(error.contains("name a directory that is there"), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    // Nobody makes a directory there, root neither.
    let error = error_of(&spec(
        "fs",
        &[("op", "read"), ("directory", "/proc")],
        &[4_096],
    ));
    assert!(error.contains("cannot make /proc/sonde-files-"), "{error}");
    // 1 B is no multiple of a block, whatever the file system.
    let knobs = [
        ("op", "read"),
        ("direct", "yes"),
        ("directory", place.text()),
    ];
    let error = error_of(&spec("fs", &knobs, &[1]));
    assert!(error.contains("a file of 1 bytes cannot"), "{error}");
    assert!(place.is_empty());
}

#[test]
fn memory_is_passed_over_or_that_is_refused() {
    let place = Place::new("direct");
    let plain = launch(&spec(
        "fs",
        &[("op", "read"), ("directory", place.text())],
        &[1 << 20],
    ))
    .0;
    for outstanding in ["1", "8"] {
        let knobs = [
            ("op", "read"),
            ("direct", "yes"),
            ("transfer", "4KiB"),
            ("outstanding", outstanding),
            ("directory", place.text()),
        ];
        let spec = spec("fs", &knobs, &[1 << 20]);
        if takes_direct(&place.0) {
            let (measured, _) = launch(&spec);
            assert!(median(&measured, 0, Quantity::ThroughputBps).unwrap() > 0);
            // What is read past memory does not come into it.
            let of_plain = plain.evidence.files[&(1 << 20)].resident_bytes;
            let resident = measured.evidence.files[&(1 << 20)].resident_bytes;
            assert!(
                resident <= of_plain.max(Some(0)),
                "{resident:?} {of_plain:?}"
            );
        } else {
            let error = error_of(&spec);
            assert!(
                error.contains("O_DIRECT") && error.contains("direct=no"),
                "{error}"
            );
        }
        assert!(place.is_empty());
    }
}

fn takes_direct(place: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let path = place.join("tried");
    let opened = std::fs::File::options()
        .write(true)
        .create(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&path);
    drop(std::fs::remove_file(&path));
    opened.is_ok()
}
