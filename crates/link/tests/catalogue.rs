//! The catalogue, users' own files, and what is said about wrong ones.

use proptest::prelude::*;
use sonde_link::{CatalogueError, NetworkSpec, Signalling, catalogue, named, parse, resolve};
use sonde_units::Span;
use std::collections::BTreeSet;

const NAMES: [&str; 36] = [
    "wire",
    "link",
    "ethernet-100",
    "ethernet-1g",
    "ethernet-10",
    "fddi",
    "fddi-switched",
    "fc-266",
    "fc-1062",
    "hippi-800",
    "hippi-800-serial",
    "hippi-1600",
    "allnode",
    "sp2",
    "ultranet",
    "sci-sbus",
    "sci-1g8",
    "atm-ds1",
    "atm-e1",
    "atm-25",
    "atm-e3",
    "atm-ds3",
    "atm-ds3-direct",
    "atm-taxi",
    "atm-taxi140",
    "atm-oc3c",
    "atm-oc12c",
    "atm-oc48c",
    "wan-ds3",
    "wan-oc3c",
    "wan-100m-20ms",
    "satellite",
    "ethernet-10g",
    "ethernet-25g",
    "ethernet-100g",
    "ethernet-400g",
];

fn file(name: &str) -> String {
    let path = format!("{}/catalogue/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).expect(&path)
}

fn resolved(selector: &str) -> Result<NetworkSpec, CatalogueError> {
    resolve(selector, &|path| Err(format!("asked for {path}")))
}

fn refusal(selector: &str) -> String {
    resolved(selector).expect_err(selector).to_string()
}

/// The message about `text` with one line replaced.
fn complaint(name: &str, line: &str, by: &str) -> String {
    let text = file(name);
    assert!(text.contains(line), "{name} has no `{line}`");
    parse("my.toml", &text.replacen(line, by, 1))
        .expect_err(by)
        .to_string()
}

fn line_number(name: &str, line: &str) -> usize {
    file(name).lines().position(|l| l == line).expect(line) + 1
}

#[test]
fn every_file_is_in_the_catalogue() {
    let folder = format!("{}/catalogue", env!("CARGO_MANIFEST_DIR"));
    let files: BTreeSet<_> = std::fs::read_dir(folder)
        .expect("the catalogue is a folder")
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .filter(|name| name != "sites")
        .collect();
    let known: BTreeSet<_> = catalogue()
        .into_iter()
        .map(|spec| spec.name + ".toml")
        .collect();
    assert_eq!(known, files);
    assert_eq!(catalogue().len(), NAMES.len());
    for name in NAMES {
        assert_eq!(named(name).unwrap().name, name);
    }
}

/// Each figure says where it comes from, and nothing else is cited.
#[test]
fn every_figure_is_cited() {
    for name in NAMES {
        let table: toml::Table = toml::from_str(&file(name)).unwrap();
        let mut figures = BTreeSet::new();
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("cite" | "name" | "summary" | "technology" | "topology", _) => {}
                (_, toml::Value::Table(inner)) => {
                    figures.extend(inner.keys().map(|leaf| format!("{key}.{leaf}")));
                }
                _ => drop(figures.insert(key.clone())),
            }
        }
        let cited: BTreeSet<_> = named(name).unwrap().cite.into_keys().collect();
        assert_eq!(cited, figures, "{name}");
    }
}

#[test]
fn knobs_turn() {
    let spec = resolved("atm-oc3c:vc=svc:mtu=1500").unwrap();
    assert_eq!(spec.name, "atm-oc3c:vc=svc:mtu=1500");
    assert_eq!(spec.mtu, 1_500);
    assert_eq!(spec.circuits.unwrap().signalling, Signalling::Svc);
    let spec = resolved("wire:delay=10ms").unwrap();
    assert_eq!(spec.path.delay, Span::millis(10));
    // The last one holds, and a length takes the place of a propagation.
    let spec = resolved("ethernet-100:propagation=1us:length_m=400").unwrap();
    assert_eq!(spec.line.propagation(), Span::micros(2));
    let spec = resolved("ethernet-100:length_m=400:propagation=1us").unwrap();
    assert_eq!(spec.line.propagation(), Span::micros(1));
}

/// Every knob, at a value that is not the file's, changes the network.
#[test]
fn every_knob_turns() {
    for knob in [
        "mtu=1400",
        "rate=34Mbit",
        "payload=1/2",
        "encapsulation=null",
        "propagation=1ms",
        "length_m=7",
        "queue=64KiB",
        "latency=3us",
        "buffer=100cells",
        "vc=svc",
        "setup=1ms",
        "idle_release=1s",
        "table=7",
        "resolution_delay=2ms",
        "resolution_lifetime=1s",
        "delay=1ms",
        "loss=1%",
        "reorder_by=1ms",
        "reorder_by=1ms:reorder=1%",
    ] {
        let (was, is) = (
            named("atm-oc3c").unwrap(),
            resolved(&format!("atm-oc3c:{knob}")).unwrap(),
        );
        let text = |mut spec: NetworkSpec| {
            spec.name.clear();
            format!("{spec:?}")
        };
        assert_ne!(text(was), text(is), "{knob}");
    }
    for knob in [
        "forwarding=cut-through",
        "framing=none",
        "coding=1us",
        "memory=1MiB",
        "mark=64KiB",
    ] {
        assert!(resolved(&format!("ethernet-100:{knob}")).is_ok(), "{knob}");
    }
}

#[test]
fn unknown_networks_name_the_nearest() {
    let told = refusal("ethernet-1000");
    assert!(
        told.contains("`ethernet-1000`") && told.contains("nearest are ethernet-100,"),
        "{told}"
    );
    assert!(told.contains("sonde lab list"), "{told}");
    assert!(refusal("").contains("there is no network"));
}

#[test]
fn wrong_knobs_are_explained() {
    for (selector, words) in [
        ("ethernet-100:vc=svc", &["`vc=svc`", "no [circuits]"][..]),
        (
            "ethernet-100:speed=1",
            &["`speed=1`", "is not a knob", "mtu, rate"],
        ),
        ("wire:buffer=1frames", &["no [switch]"]),
        ("ethernet-100:mtu", &["`mtu`", "knob=value"]),
        ("ethernet-100:", &["knob=value"]),
        (
            "ethernet-100:mtu=1KiB",
            &["`mtu=1KiB`", "bare whole number"],
        ),
        ("ethernet-100:mtu=70000", &["`mtu`", "70000", "65535"]),
        ("ethernet-100:mtu=-1", &["mtu"]),
        ("ethernet-100:rate=fast", &["`fast`", "155.52Mbit"]),
        ("ethernet-100:latency=10", &["`10`", "ms"]),
        ("ethernet-100:forwarding=cells", &["atm"]),
        ("ethernet-100:loss=2", &["`path.loss`", "at most 1"]),
        ("ethernet-100:reorder=1%", &["`path.reorder_by`", "1ms"]),
        (
            "ethernet-100:payload=1/1000000",
            &["`line.payload`", "1kbit"],
        ),
        ("wire:rate=1Mbit", &["`topology`"]),
    ] {
        let told = refusal(selector);
        for word in words {
            assert!(told.contains(word), "{selector}: {told}");
        }
    }
}

#[test]
fn wrong_files_name_the_line() {
    let told = complaint("ethernet-100", "length_m = 20", "length_km = 20");
    let line = line_number("ethernet-100", "length_m = 20");
    assert!(
        told.starts_with("my.toml: ") && told.contains(&format!("line {line}")),
        "{told}"
    );
    assert!(
        told.contains("length_km") && told.contains("length_m"),
        "{told}"
    );

    let told = complaint("ethernet-100", "rate = \"100Mbit\"", "rate = \"900Gbit\"");
    let line = line_number("ethernet-100", "rate = \"100Mbit\"");
    assert!(
        told.starts_with(&format!("my.toml, line {line}: `line.rate` is 900Gbit")),
        "{told}"
    );

    let told = complaint("atm-oc3c", "mtu = 9180", "mtu = 65536");
    assert!(
        told.starts_with("my.toml, line 5: `mtu` is 65536"),
        "{told}"
    );

    let told = complaint("ethernet-1g", "buffer = \"1MiB\"", "buffer = \"10cells\"");
    let line = line_number("ethernet-1g", "buffer = \"1MiB\"");
    assert!(
        told.starts_with(&format!("my.toml, line {line}: `switch.buffer`")),
        "{told}"
    );

    // Where the key is missing, its table is shown; and other ways to write one are found.
    let told = complaint("atm-oc3c", "rate = \"155.52Mbit\"\n", "");
    let line = line_number("atm-oc3c", "[line]");
    assert!(
        told.starts_with(&format!("my.toml, line {line}: `line.rate` is missing")),
        "{told}"
    );
    let told = complaint(
        "wan-100m-20ms",
        "[path]\ndelay = \"10ms\"",
        "[path] # far\n\"delay\" = \"90s\"",
    );
    let line = line_number("wan-100m-20ms", "[path]") + 1;
    assert!(
        told.starts_with(&format!("my.toml, line {line}: `path.delay`")),
        "{told}"
    );
    let told = complaint(
        "wan-100m-20ms",
        "mtu = 1500",
        "mtu = 1500\npath.delay = \"90s\"",
    );
    assert!(told.contains("my.toml"), "{told}");
}

#[test]
fn a_file_of_the_user_s_is_read_by_its_path() {
    let read = |path: &str| match path {
        "./my.toml" => Ok(file("ethernet-100").replace("ethernet-100", "mine")),
        _ => Err("No such file or directory".to_owned()),
    };
    assert_eq!(resolve("./my.toml", &read).unwrap().name, "mine");
    let spec = resolve("./my.toml:mtu=9000", &read).unwrap();
    assert_eq!((spec.name.as_str(), spec.mtu), ("mine:mtu=9000", 9_000));
    let told = resolve("./your.toml", &read)
        .expect_err("it is not there")
        .to_string();
    assert_eq!(
        told,
        "cannot read the network file ./your.toml: No such file or directory"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400), selector in "\\PC{0,40}") {
        let text = String::from_utf8_lossy(&bytes);
        let _ = parse("any", &text);
        let _ = resolve(&selector, &|_| Ok(text.clone().into_owned()));
    }

    /// Bytes of a good file are changed, and words of good files put where others were.
    #[test]
    fn any_mutation_is_read_or_refused(
        index in 0..NAMES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        words in proptest::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..4),
        numbers in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..3),
    ) {
        let mut text = file(NAMES[index]);
        let all: Vec<String> = NAMES.iter().flat_map(|name| file(name).split('"').map(str::to_owned).collect::<Vec<_>>()).collect();
        for (from, to) in words {
            let mut parts: Vec<_> = text.split('"').map(str::to_owned).collect();
            let place = from.index(parts.len());
            parts[place] = to.get(&all).clone();
            text = parts.join("\"");
        }
        for (place, number) in numbers {
            let digits: Vec<_> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
            if !digits.is_empty() {
                let at = *place.get(&digits);
                text.replace_range(at..=at, &number.to_string());
            }
        }
        let mut bytes = text.into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(spec) = parse("mutated", &String::from_utf8_lossy(&bytes)) {
            prop_assert_eq!(spec.check(), Ok(()));
            prop_assert!(sonde_link::Fabric::new(&spec, 2, 1).is_ok());
            sonde_link::overhead(&spec, sonde_link::Headers::Timestamps);
        }
    }

    #[test]
    fn any_knob_is_taken_or_refused(
        index in 0..NAMES.len(),
        knob in prop::sample::select(vec![
            "mtu", "rate", "payload", "encapsulation", "propagation", "length_m", "queue", "forwarding", "framing",
            "latency", "buffer", "vc", "setup", "idle_release", "table", "resolution_delay", "resolution_lifetime",
            "delay", "loss", "reorder", "reorder_by",
        ]),
        number in any::<u64>(),
        unit in prop::sample::select(vec!["", "ps", "s", "B", "GiB", "bit", "Tbit", "/7", "%", "cells", "frames"]),
    ) {
        for number in [number, number % 1_000] {
            if let Ok(spec) = resolved(&format!("{}:{knob}={number}{unit}", NAMES[index])) {
                prop_assert!(sonde_link::Fabric::new(&spec, 2, 1).is_ok());
                sonde_link::overhead(&spec, sonde_link::Headers::Plain);
            }
        }
    }
}

/// The knobs of media that stations share.
#[test]
fn knobs_of_segments_and_rings_turn() {
    let text = |mut spec: NetworkSpec| {
        spec.name.clear();
        format!("{spec:?}")
    };
    for (name, knob) in [
        ("ethernet-10", "slot=128B"),
        ("ethernet-10", "jam=6B"),
        ("ethernet-10", "attempts=4"),
        ("ethernet-10", "backoff_limit=8"),
        ("ethernet-10", "turnaround=0s"),
        ("ethernet-10", "length_m=500"),
        ("fddi", "ttrt=20ms"),
        ("fddi", "stations=16"),
        ("fddi", "station_delay=1us"),
        ("fddi", "fibre_m=2000"),
    ] {
        let turned = resolved(&format!("{name}:{knob}")).expect(knob);
        assert_ne!(text(named(name).unwrap()), text(turned), "{knob}");
    }
}

/// The examples of users' own networks for media that stations share.
#[test]
fn examples_of_segments_and_rings_are_read() {
    for name in ["bus", "token"] {
        let path = format!(
            "{}/../../plans/examples/networks/{name}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(&path).expect(&path);
        let spec = parse(&path, &text).unwrap_or_else(|error| panic!("{error}"));
        assert!(sonde_link::Fabric::new(&spec, 6, 1).is_ok());
    }
}

#[test]
fn selectors_are_taken_as_people_type_them() {
    for (typed, selector) in [
        ("Ethernet-1G", "ethernet-1g"),
        ("ATM-OC3c:VC=svc:buffer=64k", "atm-oc3c:vc=svc:buffer=64KiB"),
        ("ethernet-100:buffer=512kB", "ethernet-100:buffer=512KiB"),
        ("atm-oc3c:buffer=100cells", "atm-oc3c:buffer=100cells"),
        ("ethernet-1g:rate=100mbit", "ethernet-1g:rate=100Mbit"),
        ("ethernet-1g:bandwidth=10G", "ethernet-1g:rate=10Gbit"),
        ("wire:delay=10ms:loss=0.1%", "wire:delay=10ms:loss=0.1%"),
        ("ethernet-10:slot=64B", "ethernet-10:slot=64B"),
        ("fddi:reorder-by=1ms", "fddi:reorder_by=1ms"),
        ("./Mine.toml:mtu=900", "./Mine.toml:mtu=900"),
        ("nowhere:delay=1ms", "nowhere:delay=1ms"),
    ] {
        assert_eq!(sonde_link::selector_of_option(typed).unwrap(), selector);
    }
    for (typed, why) in [
        ("wire:loss=1", "1% or 100%"),
        ("wire:delay=10", "10ms or 10s"),
        ("ethernet-1g:rate=10", "K, M, G, T"),
        ("ethernet-100:buffer=some", "as in `64KiB`"),
    ] {
        let error = sonde_link::selector_of_option(typed).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn what_may_be_meant_is_named() {
    for (name, meant) in [
        ("1g", "ethernet-1g"),
        ("10G", "ethernet-10g"),
        ("gigabit", "ethernet-1g"),
        ("10ms", "wire:delay=10ms"),
        ("eth=eth0", "--testbed hosts:a,b --network eth=eth0"),
        ("wan-100m", "wan-100m-20ms"),
        ("fdid", "fddi"),
        ("ethernet-1g:duplicate=1%", "sonde lab tell duplicate h2 1%"),
    ] {
        let error = resolve(name, &|_| unreachable!()).unwrap_err().to_string();
        assert!(error.contains(meant), "{error}");
    }
    // A network without a switch has one delay, whatever it is called.
    let spec = resolve("wire:latency=10ms", &|_| unreachable!()).unwrap();
    assert_eq!(spec.path.delay, sonde_units::Span::millis(10));
}
