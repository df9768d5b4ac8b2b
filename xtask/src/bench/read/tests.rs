//! Tests of the readers, by samples of what each tool printed.

use super::*;

/// A sample, its reader, and some of its figures.
type Sample<'a> = (Reader, &'a str, &'a [(&'a str, f64)]);

const SAMPLES: [Sample<'static>; 13] = [
    (
        Reader::Iperf3,
        include_str!("../samples/iperf3.json"),
        &[("bps", 93_745_657.659_487_9)],
    ),
    (
        Reader::Iperf3,
        include_str!("../samples/iperf3-udp.json"),
        &[
            ("bps", 9_550_979.418_604),
            ("sent_bps", 9_520_190.403_808),
            ("lost", 0.0),
        ],
    ),
    (
        Reader::Nuttcp,
        include_str!("../samples/nuttcp.txt"),
        &[("bps", 19_084.5e6)],
    ),
    (
        Reader::Sockperf,
        include_str!("../samples/sockperf.txt"),
        &[("p50_us", 47.819), ("p99_us", 1_853.957)],
    ),
    (
        Reader::Sockperf,
        include_str!("../samples/sockperf-counts.txt"),
        &[("sent", 940.0), ("received", 940.0)],
    ),
    (
        Reader::Qperf,
        include_str!("../samples/qperf.txt"),
        &[("mean_us", 25.9)],
    ),
    (
        Reader::Netpipe,
        include_str!("../samples/netpipe-file.txt"),
        &[("us", 59.10)],
    ),
    (
        Reader::Netpipe,
        include_str!("../samples/netpipe-screen.txt"),
        &[("us", 19.76)],
    ),
    (
        Reader::Ping,
        include_str!("../samples/ping.txt"),
        &[("ms_1", 32.1), ("ms_2", 0.183)],
    ),
    (
        Reader::Npb,
        include_str!("../samples/npb.txt"),
        &[("mops", 1_359.74)],
    ),
    (
        Reader::Ucx,
        include_str!("../samples/ucx_perftest.txt"),
        &[("p50_ns", 85.0)],
    ),
    (
        Reader::Criterion,
        include_str!("../samples/criterion.txt"),
        &[
            ("frame/ethernet-1g/2 ports", 158.01),
            ("cell/atm-oc3c/8 ports", 1_070.3),
        ],
    ),
    (
        Reader::Values,
        "# of a script\nup_s 0.071\nmemory_mb 8.9\n",
        &[("up_s", 0.071), ("memory_mb", 8.9)],
    ),
];

#[test]
fn each_sample_is_read() {
    for (reader, text, wanted) in SAMPLES {
        let found = reader
            .read(text, &[])
            .unwrap_or_else(|error| panic!("{reader:?}: {error:#}"));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.len(), wanted.len(), "{reader:?}: {names:?}");
        for (name, value) in wanted {
            let figure = found.iter().find(|(found, _)| found == name);
            let (_, figure) =
                figure.unwrap_or_else(|| panic!("{reader:?} has no {name}: {names:?}"));
            assert!(
                (figure - value).abs() <= 1e-9 * value.abs(),
                "{reader:?}, {name}: {figure} is not {value}"
            );
        }
    }
}

#[test]
fn nothing_is_read_from_nothing() {
    for (reader, _, _) in SAMPLES {
        for text in ["", "nothing\n", "{}"] {
            assert!(reader.read(text, &[]).is_err(), "{reader:?} of {text:?}");
        }
    }
    let block = include_str!("../samples/npb.txt");
    for (wrong, why) in [
        (
            block.replace("  SUCCESSFUL", "UNSUCCESSFUL"),
            "the verification was UNSUCCESSFUL",
        ),
        (block.replace("1359.74", "0.0"), "Mop/s of 0"),
        (block.replace("1359.74", "NaN"), "Mop/s of NaN"),
        (block.replace("1359.74", "******"), "Mop/s of ***"),
    ] {
        let said = format!("{:#}", Reader::Npb.read(&wrong, &[]).unwrap_err());
        assert!(said.contains(why), "{said}");
    }
    assert!(Reader::Qperf.read("latency = 3 weeks\n", &[]).is_err());
    assert!(Reader::Netpipe.read("1 0.0 0.0\n", &[]).is_err());
}

#[test]
fn rows_of_sonde_are_found_by_what_they_are() {
    let text = include_str!("../samples/sonde.json");
    let read = |what: &str| {
        let found = Reader::Sonde.read(text, &[("x".into(), what.into())]);
        found
            .map(|found| found[0].1)
            .map_err(|error| format!("{error:#}"))
    };
    for (what, wanted) in [
        ("startup_ns.p50 phase=cold step=vc", 21e6),
        ("startup_ns.p50 phase=cold step=null", 3.0),
        ("latency_ns.p50 size_bytes=64", 9_500.0),
        ("latency_ns.mean size_bytes=8 knobs.connected=no", 9_100.5),
        ("latency_ns.rows", 2.0),
        ("/tune/trials/0/gain", 4.15),
        ("/tune/trials/0/kept", 1.0),
        ("/tune/recommendations", 0.0),
        ("/tune/trials/0/rule == send-buffer | receive-window", 1.0),
        ("/tune/trials/0/rule == loss", 0.0),
    ] {
        let found = read(what).unwrap();
        assert!((found - wanted).abs() < 1e-9, "{what}: {found}");
    }
    for (what, why) in [
        (
            "latency_ns.p50",
            "2 rows of sonde are `latency_ns.p50`, not one",
        ),
        ("latency_ns.p50 knobs.connected=yes", "0 rows of sonde"),
        (
            "startup_ns.p50 phase=cold step=neighbour",
            "has no p50: \"not root\"",
        ),
        ("latency", "`latency` is not QUANTITY.FIELD"),
        ("/tune/nothing == x", "sonde gave no text at /tune/nothing"),
        ("/tune/nothing", "sonde gave no number at /tune/nothing"),
    ] {
        let said = read(what).unwrap_err();
        assert!(said.contains(why), "{what}: {said}");
    }
    assert!(
        Reader::Sonde
            .read("{}", &[("x".into(), "a.b".into())])
            .is_err()
    );
}

#[test]
fn words_are_found_in_text() {
    let text = "verdict: [host-loss] h3 is bad\n| tap | 92 B | 903516 | 1023011 | 1.13 |\nC  median 95.1 ns\nnative:tcp / mpich:tcp  0.913 1.078 0.996\n";
    let read = |what: &str| {
        let found = Reader::Text.read(text, &[("x".into(), what.into())]);
        found
            .map(|found| found[0].1)
            .map_err(|error| format!("{error:#}"))
    };
    for (what, wanted) in [
        ("| tap | 92 B | #3", 1.13),
        ("| tap | 92 B |", 903_516.0),
        ("C  median", 95.1),
        ("native:tcp / mpich:tcp #2", 1.078),
        ("? [host-loss] & h3", 1.0),
        ("? [host-loss] & h2", 0.0),
        ("? [host-odd] & h3 | [host-loss] & h3", 1.0),
    ] {
        let found = read(what).unwrap();
        assert!((found - wanted).abs() < 1e-9, "{what}: {found}");
    }
    for (what, why) in [
        (
            "adapter median",
            "the figure x: no line has 1 numbers after `adapter median`",
        ),
        ("native:tcp / mpich:tcp #4", "no line has 4 numbers"),
        ("native:tcp / mpich:tcp #0", "no line has 0 numbers"),
        ("x #y", "the number behind # is not one"),
    ] {
        let said = read(what).unwrap_err();
        assert!(said.contains(why), "{what}: {said}");
    }
}
