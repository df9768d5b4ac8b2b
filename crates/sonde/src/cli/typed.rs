//! What people type in options, and what plans have of it: one home of spellings.
//!
//! Model:   plans have one spelling of each thing and keep it. Here names are taken in any case, with or without hyphens, and by the
//!          names that MPI, OSU and others give them; quantities as `sonde_units` reads them in options. A text that plans would
//!          read in the same meaning stays as it is, so that cells keep their ids.
//! Checked: the tests below; `tests/typed.rs`, a transcript of what was typed.

use crate::any_path::AnyPath;
use crate::plan;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use sonde_lab::HOSTS;
use sonde_measure::files::{FilesPath, Meta, Operation};
use sonde_message::{Kind as Call, adapters};
use sonde_units::{BitRate, Bytes, Ratio, as_file};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;

/// A parser with names for a shell to complete; it takes more than these.
#[derive(Clone)]
pub struct Among<T> {
    parse: fn(&str) -> Result<T, String>,
    names: fn() -> Vec<String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Among<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, option: Option<&Arg>, text: &OsStr) -> Result<T, Error> {
        TypedValueParser::parse_ref(&self.parse, command, option, text)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = (self.names)().into_iter().map(PossibleValue::new);
        Some(Box::new(names))
    }
}

fn network_names() -> Vec<String> {
    let all = sonde_link::catalogue().into_iter();
    all.map(|network| network.name).collect()
}

/// Networks of an option, with those of the catalogue to complete.
pub fn network_list() -> Among<Vec<String>> {
    Among {
        parse: networks,
        names: network_names,
    }
}

/// One network, or one part of a list of them.
pub fn network_name() -> Among<String> {
    Among {
        parse: network,
        names: network_names,
    }
}

/// Paths of all layers.
pub fn path_name() -> Among<AnyPath> {
    Among {
        parse: path,
        names: || {
            let channels = sonde_measure::Path::ALL
                .iter()
                .map(|path| path.name().to_owned());
            let libraries = sonde_message::Path::all().map(|path| path.to_string());
            let services = FilesPath::ALL.map(|path| path.name().to_owned());
            channels.chain(libraries).chain(services).collect()
        },
    }
}

/// What is done with files.
pub fn operation() -> Among<String> {
    Among {
        parse: |text| {
            let name = plain(text);
            match name.as_str() {
                "meta" => Ok(name),
                one => one
                    .parse::<Operation>()
                    .map(|operation| operation.name().into()),
            }
        },
        names: || {
            let calls = Meta::ALL.map(|call| call.name().to_owned());
            let whole = ["read", "write", "meta"].map(str::to_owned);
            whole.into_iter().chain(calls).collect()
        },
    }
}

/// Collective calls.
pub fn call_name() -> Among<String> {
    Among {
        parse: call,
        names: || Call::ALL.map(|call| call.name().to_owned()).to_vec(),
    }
}

/// A name as it is written in plans: no case, and hyphens where they belong.
fn plain(text: &str) -> String {
    let letters = text.chars().filter(|c| !matches!(c, '-' | '_'));
    letters.collect::<String>().to_lowercase()
}

/// What others call things.
const ALIASES: [(&str, &str); 3] = [
    ("bcast", "broadcast"),
    ("neighbors", "neighbours"),
    ("ring", "natural-ring"),
];

/// The one of `names` that is meant.
fn spelled<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = plain(text);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == typed);
    let alias = alias.map(|(_, name)| plain(name));
    let is_meant = |name: &&str| {
        let name = plain(name);
        name == typed || alias.as_ref() == Some(&name)
    };
    names.into_iter().find(is_meant)
}

/// A name in any case.
pub fn name<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.to_lowercase().parse()
}

/// A class of a kernel, S to D.
pub fn upper<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.to_uppercase().parse()
}

/// A collective call.
pub fn call(text: &str) -> Result<String, String> {
    let names = Call::ALL.map(Call::name);
    spelled(text, names).map(String::from).ok_or_else(|| {
        format!(
            "`{text}` is not a collective call: write {}",
            names.join(", ")
        )
    })
}

/// Patterns of flows, one after the other; what is none stays as it is.
pub fn patterns(text: &str) -> String {
    const NAMES: [&str; 14] = [
        "even-next",
        "odd-previous",
        "half-ring",
        "shift",
        "reverse",
        "all-to-one",
        "one-to-all",
        "all-to-all",
        "neighbours",
        "natural-ring",
        "random-ring",
        "random",
        "all-pairs",
        "incast",
    ];
    let one = |word: &str| {
        let (name, number) = word.split_at(word.find(':').unwrap_or(word.len()));
        spelled(name, NAMES).unwrap_or(name).to_owned() + number
    };
    text.split(',').map(one).collect::<Vec<_>>().join(",")
}

/// A pattern or graph of another kind, by its names.
pub fn graph(text: &str) -> String {
    const NAMES: [&str; 10] = [
        "all-to-all",
        "ring",
        "mesh",
        "torus",
        "hypercube",
        "stencil-2d",
        "stencil-3d",
        "transpose",
        "random",
        "star",
    ];
    let (name, shape) = text.split_at(text.find(':').unwrap_or(text.len()));
    let exact = NAMES.into_iter().find(|known| plain(known) == plain(name));
    exact.unwrap_or(name).to_owned() + shape
}

/// A pattern of a matrix.
pub fn matrix_pattern(text: &str) -> Result<sonde_place::Pattern, sonde_place::PatternError> {
    graph(text).parse()
}

/// A path; `mpi` is the MPI that is here.
pub fn path(text: &str) -> Result<AnyPath, String> {
    message_path(text, str::parse)
}

/// The same of libraries only.
pub fn library(text: &str) -> Result<sonde_message::Path, String> {
    message_path(text, |text| {
        text.parse()
            .map_err(|error: sonde_message::Unnamed| error.to_string())
    })
}

fn message_path<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    let lower = path_text(text);
    parse(&lower).map_err(|error| match no_path(&lower) {
        Some(why) => format!("there is no path `{text}`: {why}"),
        None => error,
    })
}

/// The text of a path in plans' spelling.
pub fn path_text(text: &str) -> String {
    let lower = text.to_lowercase();
    let (library, transport) = lower.split_at(lower.find(':').unwrap_or(lower.len()));
    let library = match library {
        "mpi" => ["openmpi", "mpich"]
            .into_iter()
            .find(|library| adapters::find(library).is_ok())
            .unwrap_or("openmpi"),
        "ompi" | "open-mpi" => "openmpi",
        "libfabric" => "ofi",
        library => library,
    };
    library.to_owned() + transport
}

/// Why there is no such path, where one might look for it.
fn no_path(text: &str) -> Option<&'static str> {
    const RDMA: [&str; 9] = [
        "rdma",
        "ib",
        "infiniband",
        "verbs",
        "roce",
        "rc",
        "cxi",
        "efa",
        "psm2",
    ];
    const GPU: [&str; 5] = ["nccl", "rccl", "gpu", "cuda", "rocm"];
    let has = |names: &[&str]| text.split(':').any(|part| names.contains(&part));
    if has(&RDMA) {
        return Some(
            "sonde measures TCP, UDP and message libraries over them, of InfiniBand its IP (`--network ib=ib0`), and no RDMA: \
             use perftest or the OSU benchmarks",
        );
    }
    has(&GPU).then_some("sonde moves no memory of GPUs: use nccl-tests or the OSU benchmarks")
}

/// Networks, separated by commas. An interface of real hosts has commas of its own, as in `ib=a/ib0,b/ib1`.
pub fn networks(text: &str) -> Result<Vec<String>, String> {
    let is_real = |text: &str| {
        let head = text.split(':').next().unwrap_or_default();
        head.contains('=')
    };
    if !is_real(text) {
        let all = text.split(',').map(sonde_link::selector_of_option);
        return all
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string());
    }
    let mut all: Vec<String> = Vec::new();
    for part in text.split(',') {
        match all.last_mut() {
            Some(last) if !part.contains('=') => *last += &format!(",{part}"),
            _ => all.push(part.to_owned()),
        }
    }
    Ok(all)
}

/// One network.
pub fn network(text: &str) -> Result<String, String> {
    let mut all = networks(text)?;
    let one = all.pop().unwrap_or_default();
    match all.is_empty() {
        true => Ok(one),
        false => Err("name one network: this command takes one after the other".into()),
    }
}

/// A size as plans have it; what is none stays as it is and is refused where it is used.
fn size(text: &str) -> String {
    let is_bare = text.parse::<u64>().is_ok();
    match as_file(text, Bytes::of_option) {
        Ok(size) if !is_bare => size,
        _ => text.to_owned(),
    }
}

/// A size, or a range of sizes: `64k`, `1..64K`, also `1:1024` and `1-1024`.
pub fn sizes(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("mtu") {
        return Ok("mtu".into());
    }
    let ends = text
        .split_once("..")
        .or_else(|| text.split_once([':', '-']));
    Ok(match ends {
        Some((low, high)) => format!("{}..{}", size(low.trim()), size(high.trim())),
        None => size(text),
    })
}

/// One size, in bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    plan::size_text(&size(text.trim()))
}

/// A length that need not be whole.
pub fn length(text: &str) -> Result<String, String> {
    Ok(size(text))
}

/// Parameters that are bytes, and those that are rates.
const SIZED: [&str; 13] = [
    "buffer",
    "sndbuf",
    "rcvbuf",
    "window",
    "chunk",
    "lowat",
    "rmem",
    "wmem",
    "transfer",
    "cache",
    "client-cache",
    "copy",
    "read-ahead",
];
const RATED: [&str; 3] = ["rate", "disk", "client-disk"];

/// `KNOB=VALUE,...`.
pub fn knob(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, values) = text
        .split_once('=')
        .ok_or("write KNOB=VALUE, as in streams=1,4")?;
    let name = name.to_lowercase();
    let value = |text: &str| match name.as_str() {
        name if SIZED.contains(&name) => size(text),
        name if RATED.contains(&name) => {
            as_file(text, BitRate::of_option).unwrap_or_else(|_| text.to_owned())
        }
        _ => text.to_owned(),
    };
    let values = values.split(',').map(value).collect();
    Ok((name, values))
}

/// A level of background traffic: its share, size and rate as options have them.
pub fn load(text: &str) -> Result<String, String> {
    let mut parts = text.split(':');
    let level = parts.next().unwrap_or_default();
    rho(level)?;
    let mut load = level.to_owned();
    for part in parts {
        load.push(':');
        load += &match part.split_once('=') {
            Some(("size", text)) => format!("size={}", size(text)),
            Some(("of", text)) => {
                let rate = as_file(text, BitRate::of_option).map_err(|error| error.to_string())?;
                format!("of={rate}")
            }
            _ => part.to_owned(),
        };
    }
    Ok(load)
}

/// The load of a link as a share of it: `0.6`, `60%`. One is the whole link.
pub fn rho(text: &str) -> Result<Ratio, String> {
    if text.trim() == "1" {
        return Ok(Ratio::ONE);
    }
    let share = Ratio::of_option(text).map_err(|error| error.to_string())?;
    Some(share).filter(|share| *share <= Ratio::ONE).ok_or_else(|| {
        format!("`{text}` is not a level of load: write a share of the link from 0 to 1, as in 0.6 or 60%")
    })
}

/// A share up to `most` per mille, in per mille as plans have it.
pub fn per_mille<const MOST: u64>(text: &str) -> Result<u64, String> {
    const WHOLE: u64 = 1_000;
    let share = Ratio::of_option_in(text, WHOLE).map_err(|error| error.to_string())?;
    let (numerator, denominator) = share.parts();
    let thousandths = u128::from(numerator) * u128::from(WHOLE);
    let is_whole = thousandths % u128::from(denominator) == 0;
    u64::try_from(thousandths / u128::from(denominator))
        .ok()
        .filter(|per_mille| is_whole && *per_mille <= MOST)
        .ok_or_else(|| {
            format!(
                "`{text}` is not a share that can be taken: write 0 to {}% in steps of 0.1%, as in 5%",
                MOST / 10
            )
        })
}

/// A change to be found, which is none of 0.
pub fn change(text: &str) -> Result<u64, String> {
    match per_mille::<10_000>(text)? {
        0 => Err("a change of 0 is found by no number of repetitions: write 0.1% or more".into()),
        per_mille => Ok(per_mille),
    }
}

/// A whole number, which may be in thousands or millions: `10k`.
pub fn count<const MOST: u64>(text: &str) -> Result<u64, String> {
    let (digits, worth) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        _ => (text, 1),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(worth))
        .filter(|number| (1..=MOST).contains(number))
        .ok_or_else(|| {
            format!("`{text}` is not a whole number from 1 to {MOST}, as in 1000 or 10k")
        })
}

/// What a run is called: no id, and no word that means a run already.
pub fn run_name(text: &str) -> Result<String, String> {
    const MOST: usize = 64;
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.len() <= MOST
        && text
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one));
    match is_word && text != sonde_record::LATEST {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "`{text}` cannot be the name of a run: write a letter, then up to {} letters, digits, `-`, `_` or `.`, as in before",
            MOST - 1
        )),
    }
}

/// The file of a page, which is taken for no plan and no store.
pub fn page(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(OsStr::to_str);
    match ending {
        Some("html" | "htm") => Ok(path),
        _ => Err(format!(
            "`{text}` is not the name of a report: write {text}.html"
        )),
    }
}

/// How many hosts a lab has.
pub fn hosts(text: &str) -> Result<u16, String> {
    let number = text.parse().ok();
    let is_list = text.contains([',', '[']);
    number
        .filter(|hosts| HOSTS.contains(hosts))
        .ok_or_else(|| match is_list {
            true => format!(
                "`{text}` are hosts, and this is the number of a lab's: write `--testbed hosts:{text}`"
            ),
            false => format!(
                "`{text}` is not a number of hosts: a lab has {} to {} hosts",
                HOSTS.start(),
                HOSTS.end()
            ),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_in_any_spelling() {
        for (typed, wanted) in [
            ("Allreduce", "allreduce"),
            ("all-reduce", "allreduce"),
            ("all-to-all", "alltoall"),
            ("bcast", "broadcast"),
            ("Reduce", "reduce"),
        ] {
            assert_eq!(call(typed).as_deref(), Ok(wanted));
        }
        assert!(call("sum").unwrap_err().contains("allreduce"));
        for (typed, wanted) in [
            ("alltoall", "all-to-all"),
            ("All_Pairs", "all-pairs"),
            ("neighbors,ring", "neighbours,natural-ring"),
            ("randomring:7,SHIFT:2", "random-ring:7,shift:2"),
            ("h1>h2,h3>h4", "h1>h2,h3>h4"),
            ("sideways", "sideways"),
        ] {
            assert_eq!(patterns(typed), wanted);
        }
        assert_eq!(graph("Torus:2x2"), "torus:2x2");
        assert_eq!(graph("ring"), "ring");
        assert_eq!(path("UDP"), Ok(AnyPath::UDP));
        assert_eq!(path("OpenMPI").unwrap().name(), "openmpi:tcp");
        assert!(path("mpi").unwrap().library().is_some());
        assert!(path("ofi:verbs").unwrap_err().contains("perftest"));
        assert!(path("nccl").unwrap_err().contains("GPU"));
        assert!(path("tpc").unwrap_err().contains("native:tcp"));
    }

    #[test]
    fn networks_are_lists() {
        let all = |text| networks(text).unwrap().join(" ");
        assert_eq!(all("Ethernet-1G,fddi:mtu=900"), "ethernet-1g fddi:mtu=900");
        assert_eq!(all("ib=a/ib0,b/ib1"), "ib=a/ib0,b/ib1");
        assert_eq!(all("eth=eth0,ib=a/ib0,b/ib1"), "eth=eth0 ib=a/ib0,b/ib1");
        assert!(network("fddi,wire").unwrap_err().contains("one network"));
    }

    #[test]
    fn quantities_become_those_of_plans() {
        for (typed, wanted) in [
            ("64", "64"),
            ("64k", "64KiB"),
            ("1kB", "1KiB"),
            ("64KiB", "64KiB"),
            ("1500B", "1500B"),
            ("1..64K", "1..64KiB"),
            ("1:1024", "1..1024"),
            ("1-1024", "1..1024"),
            ("MTU", "mtu"),
            ("many", "many"),
        ] {
            assert_eq!(sizes(typed).as_deref(), Ok(wanted));
        }
        let values = |text| knob(text).unwrap().1.join(" ");
        assert_eq!(values("rcvbuf=64k,64KiB,65536"), "64KiB 64KiB 65536");
        assert_eq!(values("rate=10G,50Mbit"), "10Gbit 50Mbit");
        assert_eq!(values("streams=1,4"), "1 4");
        assert_eq!(
            load("60%:law=on-off:20:size=1k").unwrap(),
            "60%:law=on-off:20:size=1KiB"
        );
        assert!(load("60").unwrap_err().contains("60% or 6000%"));
        assert_eq!(
            (count::<9>("9"), count::<10_000>("10k")),
            (Ok(9), Ok(10_000))
        );
        assert!(count::<10>("1e1").is_err() && count::<10>("0").is_err());
    }

    #[test]
    fn a_share_says_percent() {
        for (typed, wanted) in [
            ("5%", 50),
            ("0.05", 50),
            ("0", 0),
            ("0.1%", 1),
            ("100%", 1_000),
        ] {
            assert_eq!(per_mille::<1_000>(typed), Ok(wanted), "{typed}");
        }
        let refused = |text| per_mille::<1_000>(text).unwrap_err();
        assert!(refused("50").contains("50% or 5%"), "{}", refused("50"));
        assert!(refused("0.05%").contains("steps of 0.1%"));
        assert!(refused("101%").contains("100%"));
    }

    #[test]
    fn hosts_are_a_number() {
        assert_eq!(hosts("8"), Ok(8));
        assert!(hosts("a,b").unwrap_err().contains("--testbed hosts:a,b"));
        assert!(hosts("1").unwrap_err().contains("2 to 256"));
    }

    #[test]
    fn knobs_with_units_are_known() {
        let known = |name: &str| {
            let of_sockets = sonde_measure::Knobs::NAMES
                .iter()
                .any(|(known, _)| *known == name);
            let of_files = sonde_measure::files::Files::NAMES
                .iter()
                .any(|(known, _)| *known == name);
            of_sockets
                || of_files
                || sonde_probe::host::KNOBS
                    .iter()
                    .any(|(known, _)| *known == name)
        };
        for name in SIZED.iter().chain(&RATED) {
            // `buffer` of a sweep is both of a socket's.
            assert!(known(name) || *name == "buffer", "{name}");
        }
    }
}
