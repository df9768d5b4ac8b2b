//! The networks that come with sonde, and reading a user's own.
//!
//! Model:   one schema for both, [`NetworkSpec`] in TOML. A selector is `NAME[:knob=value]…` or `PATH[:knob=value]…`, a path
//!          being what contains a `/`. A knob replaces one value of the file before it is checked. What people type
//!          ([`selector_of_option`]) becomes a selector first: names in any case, and values as options have them.
//! Checked: `tests/catalogue.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::{NetworkSpec, SpecError};
use sonde_units::{BitRate, Bytes, Ratio, Span, excerpt, excerpts};
use thiserror::Error;

/// One family after the other, each from the slowest; the networks of today at the end.
const FILES: &[(&str, &str)] = &[
    ("wire", include_str!("../catalogue/wire.toml")),
    ("link", include_str!("../catalogue/link.toml")),
    (
        "ethernet-100",
        include_str!("../catalogue/ethernet-100.toml"),
    ),
    ("ethernet-1g", include_str!("../catalogue/ethernet-1g.toml")),
    ("ethernet-10", include_str!("../catalogue/ethernet-10.toml")),
    ("fddi", include_str!("../catalogue/fddi.toml")),
    (
        "fddi-switched",
        include_str!("../catalogue/fddi-switched.toml"),
    ),
    ("fc-266", include_str!("../catalogue/fc-266.toml")),
    ("fc-1062", include_str!("../catalogue/fc-1062.toml")),
    ("hippi-800", include_str!("../catalogue/hippi-800.toml")),
    (
        "hippi-800-serial",
        include_str!("../catalogue/hippi-800-serial.toml"),
    ),
    ("hippi-1600", include_str!("../catalogue/hippi-1600.toml")),
    ("allnode", include_str!("../catalogue/allnode.toml")),
    ("sp2", include_str!("../catalogue/sp2.toml")),
    ("ultranet", include_str!("../catalogue/ultranet.toml")),
    ("sci-sbus", include_str!("../catalogue/sci-sbus.toml")),
    ("sci-1g8", include_str!("../catalogue/sci-1g8.toml")),
    ("atm-ds1", include_str!("../catalogue/atm-ds1.toml")),
    ("atm-e1", include_str!("../catalogue/atm-e1.toml")),
    ("atm-25", include_str!("../catalogue/atm-25.toml")),
    ("atm-e3", include_str!("../catalogue/atm-e3.toml")),
    ("atm-ds3", include_str!("../catalogue/atm-ds3.toml")),
    (
        "atm-ds3-direct",
        include_str!("../catalogue/atm-ds3-direct.toml"),
    ),
    ("atm-taxi", include_str!("../catalogue/atm-taxi.toml")),
    ("atm-taxi140", include_str!("../catalogue/atm-taxi140.toml")),
    ("atm-oc3c", include_str!("../catalogue/atm-oc3c.toml")),
    ("atm-oc12c", include_str!("../catalogue/atm-oc12c.toml")),
    ("atm-oc48c", include_str!("../catalogue/atm-oc48c.toml")),
    ("wan-ds3", include_str!("../catalogue/wan-ds3.toml")),
    ("wan-oc3c", include_str!("../catalogue/wan-oc3c.toml")),
    (
        "wan-100m-20ms",
        include_str!("../catalogue/wan-100m-20ms.toml"),
    ),
    ("satellite", include_str!("../catalogue/satellite.toml")),
    (
        "ethernet-10g",
        include_str!("../catalogue/ethernet-10g.toml"),
    ),
    (
        "ethernet-25g",
        include_str!("../catalogue/ethernet-25g.toml"),
    ),
    (
        "ethernet-100g",
        include_str!("../catalogue/ethernet-100g.toml"),
    ),
    (
        "ethernet-400g",
        include_str!("../catalogue/ethernet-400g.toml"),
    ),
];

/// A knob: its name in a selector, the table and key that it sets, and what it takes.
struct Knob(&'static str, &'static str, &'static str, Takes);

/// What a knob takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// A bare number.
    Number,
    /// Bytes.
    Size,
    /// Bytes, or a number of frames or cells.
    Limit,
    /// Bits a second.
    Rate,
    /// A time, with its unit.
    Time,
    /// A share of the whole.
    Share,
    /// A word, or a factor.
    Word,
}

use Takes::{Limit, Number, Rate, Share, Size, Time, Word};

const KNOBS: &[Knob] = &[
    Knob("mtu", "", "mtu", Number),
    Knob("rate", "line", "rate", Rate),
    Knob("payload", "line", "payload", Word),
    Knob("framing", "line", "framing", Word),
    Knob("encapsulation", "line", "encapsulation", Word),
    Knob("propagation", "line", "propagation", Time),
    Knob("length_m", "line", "length_m", Number),
    Knob("coding", "line", "coding", Time),
    Knob("queue", "station", "queue", Size),
    Knob("forwarding", "switch", "forwarding", Word),
    Knob("latency", "switch", "latency", Time),
    Knob("buffer", "switch", "buffer", Limit),
    Knob("memory", "switch", "memory", Size),
    Knob("mark", "switch", "mark", Limit),
    Knob("flow_control", "switch", "flow_control", Word),
    Knob("assign", "fabric", "assign", Word),
    Knob("trunk_rate", "fabric", "rate", Rate),
    Knob("trunk_buffer", "fabric", "buffer", Limit),
    Knob("vc", "circuits", "signalling", Word),
    Knob("setup", "circuits", "setup", Time),
    Knob("idle_release", "circuits", "idle_release", Time),
    Knob("table", "circuits", "table", Number),
    Knob("resolution_delay", "circuits", "resolution_delay", Time),
    Knob(
        "resolution_lifetime",
        "circuits",
        "resolution_lifetime",
        Time,
    ),
    Knob("host", "host", "preset", Word),
    Knob("copies", "host", "copies", Number),
    Knob("cpu_speed", "host", "speed", Word),
    Knob("burst", "line", "burst", Size),
    Knob("gap", "line", "gap", Size),
    Knob("fill", "line", "fill", Word),
    Knob("setup", "crossbar", "setup", Time),
    Knob("crossbars", "crossbar", "crossbars", Number),
    Knob("crossing", "crossbar", "crossing", Time),
    Knob("busy", "crossbar", "busy", Word),
    Knob("camp_limit", "crossbar", "camp_limit", Time),
    Knob("order", "crossbar", "order", Word),
    Knob("retry", "crossbar", "retry", Time),
    Knob("tries", "crossbar", "tries", Number),
    Knob("channels", "crossbar", "channels", Number),
    Knob("choice", "crossbar", "choice", Word),
    Knob("stripes", "crossbar", "stripes", Number),
    Knob("credits", "crossbar", "credits", Number),
    Knob("hold", "crossbar", "hold", Time),
    Knob("signals", "crossbar", "signals", Word),
    Knob("slot", "crossbar", "slot", Time),
    Knob("resolution_delay", "crossbar", "resolution_delay", Time),
    Knob("radix", "stages", "radix", Number),
    Knob("depth", "stages", "depth", Number),
    Knob("paths", "stages", "paths", Number),
    Knob("hop", "stages", "hop", Time),
    Knob("interface", "stages", "interface", Word),
    Knob("api_latency", "stages", "api_latency", Time),
    Knob("resolution_delay", "stages", "resolution_delay", Time),
    Knob("class", "credit", "class", Number),
    Knob("credits", "credit", "credits", Number),
    Knob("shared", "credit", "shared", Number),
    Knob("end_credits", "credit", "end_credits", Number),
    Knob("packet", "credit", "packet", Size),
    Knob("around", "credit", "around", Size),
    Knob("header", "credit", "header", Size),
    Knob("head", "credit", "head", Size),
    Knob("adapter_rate", "credit", "adapter_rate", Rate),
    Knob("connect", "credit", "connect", Time),
    Knob("hold", "credit", "hold", Time),
    Knob("login", "credit", "login", Time),
    Knob("discard_after", "credit", "discard_after", Time),
    Knob("resolution_delay", "credit", "resolution_delay", Time),
    Knob("slot", "bus", "slot", Size),
    Knob("jam", "bus", "jam", Size),
    Knob("attempts", "bus", "attempts", Number),
    Knob("backoff_limit", "bus", "backoff_limit", Number),
    Knob("turnaround", "bus", "turnaround", Time),
    Knob("ttrt", "token", "ttrt", Time),
    Knob("stations", "token", "stations", Number),
    Knob("station_delay", "token", "station_delay", Time),
    Knob("fibre_m", "token", "fibre_m", Number),
    Knob("nodes", "sci", "nodes", Number),
    Knob("rings", "sci", "rings", Number),
    Knob("node_delay", "sci", "node_delay", Time),
    Knob("block", "sci", "block", Number),
    Knob("store", "sci", "store", Number),
    Knob("offset", "sci", "offset", Number),
    Knob("host_rate", "sci", "host_rate", Rate),
    Knob("store_time", "sci", "store_time", Time),
    Knob("dma_setup", "sci", "dma_setup", Time),
    Knob("active", "sci", "active", Number),
    Knob("input", "sci", "input", Number),
    Knob("retry", "sci", "retry", Time),
    Knob("switch_delay", "sci", "switch_delay", Time),
    Knob("resolution_delay", "sci", "resolution_delay", Time),
    Knob("aging", "sci", "aging", Word),
    Knob("fair", "sci", "fair", Word),
    Knob("response", "sci", "response", Word),
    Knob("switch_queue", "sci", "switch_queue", Number),
    Knob("layout", "circuits", "layout", Word),
    Knob("llc_setup", "circuits", "llc_setup", Time),
    Knob("reallocation", "circuits", "reallocation", Time),
    Knob("reallocate_after", "circuits", "reallocate_after", Time),
    Knob("boot", "circuits", "boot", Time),
    Knob("restoration", "circuits", "restoration", Word),
    Knob("restore", "circuits", "restore", Time),
    Knob("discard", "atm", "discard", Word),
    Knob("threshold", "atm", "threshold", Number),
    Knob("fair_share", "atm", "fair_share", Word),
    Knob("module", "atm", "module", Number),
    Knob("cell_loss", "atm", "cell_loss", Share),
    Knob("misdelivery", "atm", "misdelivery", Share),
    Knob("pcr", "atm", "pcr", Rate),
    Knob("unknown_rate", "lane", "unknown_rate", Number),
    Knob("bus_delay", "lane", "bus_delay", Time),
    Knob("arp_delay", "lane", "arp_delay", Time),
    Knob("delay", "path", "delay", Time),
    // Of networks without a switch.
    Knob("latency", "path", "delay", Time),
    Knob("loss", "path", "loss", Share),
    Knob("reorder", "path", "reorder", Share),
    Knob("reorder_by", "path", "reorder_by", Time),
    Knob("jitter", "path", "jitter", Time),
];

/// What people also call a knob.
const KNOB_ALIASES: &[(&str, &str)] = &[("bandwidth", "rate"), ("bw", "rate")];

/// What other tools have as a knob and a network has not, with what there is.
const NOT_KNOBS: &[(&str, &str)] = &[
    (
        "duplicate",
        "frames are duplicated by a script or by `sonde lab tell duplicate h2 1%`",
    ),
    (
        "corrupt",
        "frames are corrupted by a script or by `sonde lab tell corrupt h2 1%`",
    ),
];

/// Why a network could not be had. Each message says what was asked for and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// No network of this name.
    #[error(
        "there is no network `{}`; {nearest}. `sonde lab list` shows them all; a path to a file of your own contains a `/`",
        excerpt(name)
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// A sentence with the nearest names.
        nearest: String,
    },
    /// The file could not be read.
    #[error("cannot read the network file {}: {problem}", excerpt(path))]
    Read {
        /// Its path.
        path: String,
        /// What the system said.
        problem: String,
    },
    /// The file is not TOML, or has a key that is unknown, missing or of the wrong kind.
    #[error("{file}: {problem}")]
    Parse {
        /// Its path, or the name in the catalogue.
        file: String,
        /// Line, column, what is wrong and what would be right.
        problem: String,
    },
    /// A value is out of its range, or does not fit the others.
    #[error("{file}, line {line}: {error}")]
    Value {
        /// Its path, or the name in the catalogue.
        file: String,
        /// The line of the key; 1 where it is missing.
        line: usize,
        /// What is wrong with it.
        error: SpecError,
    },
    /// A knob that this network does not have, or that is written wrongly.
    #[error("network {}: `{}` {problem}", excerpt(network), excerpt(text))]
    Knob {
        /// The network.
        network: String,
        /// The text after the colon.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// All networks that come with sonde, in the order of the catalogue.
///
/// # Panics
/// Never: the files are part of the program and tested.
#[allow(clippy::expect_used)] // The files are constants, and `every_file_is_in_the_catalogue` of the tests reads all of them.
pub fn catalogue() -> Vec<NetworkSpec> {
    FILES
        .iter()
        .map(|(name, text)| parse(name, text).expect("the catalogue is tested"))
        .collect()
}

/// The network `name` of the catalogue.
///
/// # Errors
/// [`CatalogueError::Unknown`], with the nearest names.
pub fn named(name: &str) -> Result<NetworkSpec, CatalogueError> {
    parse(name, text_of(name)?)
}

/// Reads a network from the text of `file`.
///
/// # Errors
/// [`CatalogueError::Parse`] or [`CatalogueError::Value`], with the line.
pub fn parse(file: &str, text: &str) -> Result<NetworkSpec, CatalogueError> {
    let problem = |e: toml::de::Error| CatalogueError::Parse {
        file: file.to_owned(),
        problem: excerpts(&e.to_string()),
    };
    let spec: NetworkSpec = toml::from_str(text).map_err(problem)?;
    spec.check().map_err(|error| CatalogueError::Value {
        file: file.to_owned(),
        line: line_of(text, error.key),
        error,
    })?;
    Ok(spec)
}

/// The network that `selector` names, its knobs applied; `read` reads a file of the user's.
///
/// # Errors
/// Every variant of [`CatalogueError`].
pub fn resolve(
    selector: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<NetworkSpec, CatalogueError> {
    let mut parts = selector.split(':');
    let name = parts.next().unwrap_or_default();
    let text = if name.contains('/') {
        read(name).map_err(|problem| CatalogueError::Read {
            path: name.to_owned(),
            problem,
        })?
    } else {
        text_of(name)?.to_owned()
    };
    let spec = parse(name, &text)?;
    let mut table: toml::Table = toml::from_str(&text).map_err(|e| CatalogueError::Parse {
        file: name.to_owned(),
        problem: e.to_string(),
    })?;
    let mut turned = false;
    for part in parts {
        turn(&mut table, &spec.name, part)?;
        turned = true;
    }
    if !turned {
        return Ok(spec);
    }
    let knob_error = |problem: String| CatalogueError::Knob {
        network: name.to_owned(),
        text: selector.to_owned(),
        problem,
    };
    let mut spec: NetworkSpec = table
        .try_into()
        .map_err(|e: toml::de::Error| knob_error(format!("does not fit: {}", e.message())))?;
    spec.check()
        .map_err(|error| knob_error(format!("does not fit: {error}")))?;
    spec.name = if name.contains('/') {
        selector.replacen(name, &spec.name, 1)
    } else {
        selector.to_owned()
    };
    Ok(spec)
}

/// The selector of a network as people type it: its name in any case, its knobs' values as options have them. A name that is not
/// there stays as it is.
///
/// # Errors
/// A value that can be read in two ways, or that its knob does not take.
pub fn selector_of_option(text: &str) -> Result<String, CatalogueError> {
    let mut parts = text.split(':');
    let typed = parts.next().unwrap_or_default();
    let known = FILES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(typed));
    let name = known.map_or(typed, |(name, _)| *name);
    let mut selector = name.to_owned();
    for part in parts {
        selector.push(':');
        let Some((knob, value)) = part.split_once('=') else {
            selector.push_str(part);
            continue;
        };
        let knob = knob.to_ascii_lowercase().replace('-', "_");
        let alias = KNOB_ALIASES.iter().find(|(alias, _)| *alias == knob);
        let knob = alias.map_or(knob.as_str(), |(_, knob)| *knob);
        // Several tables may have a knob of this name, which take different things.
        let takes = KNOBS.iter().filter(|known| known.0 == knob);
        let mut values = takes.map(|known| value_of_option(known.3, value));
        let first = values.next().unwrap_or_else(|| Ok(value.to_owned()));
        let value = first.or_else(|problem| {
            values
                .find_map(Result::ok)
                .ok_or_else(|| CatalogueError::Knob {
                    network: name.to_owned(),
                    text: part.to_owned(),
                    problem,
                })
        })?;
        selector.push_str(&format!("{knob}={value}"));
    }
    Ok(selector)
}

/// A value as files have it; one that files have in the same meaning stays as it is.
fn value_of_option(takes: Takes, text: &str) -> Result<String, String> {
    let bad = |error: &dyn std::fmt::Display| format!("cannot be set: {error}");
    let is_counted = text.ends_with("frames") || text.ends_with("cells");
    Ok(match takes {
        Size => sonde_units::as_file(text, Bytes::of_option).map_err(|e| bad(&e))?,
        Limit if !is_counted => {
            sonde_units::as_file(text, Bytes::of_option).map_err(|e| bad(&e))?
        }
        Rate => sonde_units::as_file(text, BitRate::of_option).map_err(|e| bad(&e))?,
        Time if text.ends_with(|c: char| c.is_ascii_digit()) && text != "0" => {
            return Err(format!(
                "cannot be set: its unit is missing: write {text}ms or {text}s"
            ));
        }
        Time => sonde_units::as_file(text, Span::of_option).map_err(|e| bad(&e))?,
        Share => {
            Ratio::of_option(text).map_err(|e| bad(&e))?;
            text.to_owned()
        }
        Number | Limit | Word => text.to_owned(),
    })
}

fn text_of(name: &str) -> Result<&'static str, CatalogueError> {
    let found = FILES.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, text)| *text)
        .ok_or_else(|| CatalogueError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name),
        })
}

/// A sentence with what may be meant by a name that is not there.
fn nearest(name: &str) -> String {
    const NAMED_MAX: usize = 3;
    if let Some((network, interface)) = name.split_once('=') {
        return format!(
            "NAME=INTERFACE is of real hosts: `--testbed hosts:a,b --network {}={}`",
            excerpt(network),
            excerpt(interface)
        );
    }
    let is_number = name.starts_with(|c: char| c.is_ascii_digit());
    let has_unit = name.ends_with(|c: char| !c.is_ascii_digit());
    if is_number && has_unit && name.parse::<Span>().is_ok() {
        return format!("a delay and nothing else is `wire:delay={name}`");
    }
    let rate = BitRate::of_option(name).ok().filter(|_| is_number);
    let word = name.to_ascii_lowercase();
    let all = catalogue();
    let is_meant = |spec: &&NetworkSpec| match rate {
        Some(_) => spec.line.rate == rate,
        None => {
            let is_word = word.len() >= 3;
            is_word && (spec.name.contains(&word) || spec.summary.to_lowercase().contains(&word))
        }
    };
    let meant: Vec<&str> = all
        .iter()
        .filter(is_meant)
        .map(|spec| spec.name.as_str())
        .take(NAMED_MAX)
        .collect();
    if let (false, Some(rate)) = (meant.is_empty(), rate) {
        return format!("of {rate} there are {}", meant.join(", "));
    }
    if !meant.is_empty() {
        return format!("there are {}", meant.join(", "));
    }
    let mut names: Vec<_> = FILES
        .iter()
        .map(|(known, _)| (strsim::damerau_levenshtein(known, name), *known))
        .collect();
    names.sort_unstable();
    let nearest: Vec<_> = names
        .iter()
        .take(NAMED_MAX)
        .map(|(_, known)| *known)
        .collect();
    format!("the nearest are {}", nearest.join(", "))
}

/// Sets one knob, written `name=value`.
fn turn(table: &mut toml::Table, network: &str, text: &str) -> Result<(), CatalogueError> {
    let error = |problem: String| CatalogueError::Knob {
        network: network.to_owned(),
        text: text.to_owned(),
        problem,
    };
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| error("is not a knob: write `knob=value`, as in `mtu=1500`".into()))?;
    let Some(Knob(_, place, key, takes)) = knob_of(table, name) else {
        if let Some((_, instead)) = NOT_KNOBS.iter().find(|(other, _)| *other == name) {
            return Err(error(format!("is not a knob; {instead}")));
        }
        let mut known: Vec<&str> = Vec::new();
        for knob in KNOBS.iter().filter(|knob| has_place(table, knob.1)) {
            if !known.contains(&knob.0) {
                known.push(knob.0);
            }
        }
        return Err(error(format!(
            "is not a knob; this network has {}",
            known.join(", ")
        )));
    };
    if !has_place(table, place) {
        return Err(error(format!(
            "does not apply: this network has no [{place}]"
        )));
    }
    let value = if *takes == Number {
        let parsed = value
            .parse()
            .map_err(|_| error("needs a bare whole number, as in `mtu=1500`".into()))?;
        toml::Value::Integer(parsed)
    } else if let Ok(flag) = value.parse() {
        toml::Value::Boolean(flag)
    } else {
        toml::Value::String(value.to_owned())
    };
    let target = if place.is_empty() {
        table
    } else {
        let entry = table
            .entry(*place)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        entry
            .as_table_mut()
            .ok_or_else(|| error(format!("does not fit: `{place}` is not a table")))?
    };
    // Length and propagation say the same: the one that was turned holds.
    match *key {
        "propagation" => drop(target.remove("length_m")),
        "length_m" => drop(target.remove("propagation")),
        _ => {}
    }
    target.insert((*key).to_owned(), value);
    Ok(())
}

/// The knob of this name: where several tables have one, that of a table which the network has.
fn knob_of(table: &toml::Table, name: &str) -> Option<&'static Knob> {
    let named = || KNOBS.iter().filter(|knob| knob.0 == name);
    let mut there = named().filter(|knob| has_place(table, knob.1));
    there.next().or_else(|| named().next())
}

/// Tables that a network may leave out and still have.
fn has_place(table: &toml::Table, place: &str) -> bool {
    let always = matches!(place, "" | "path" | "station" | "host");
    let with_circuits = matches!(place, "atm" | "lane") && table.contains_key("circuits");
    always || with_circuits || table.contains_key(place)
}

/// The line of `key`, written `table.key` or `key`; that of its table where it is not there, else 1.
fn line_of(text: &str, key: &str) -> usize {
    let (table, leaf) = key.split_once('.').unwrap_or(("", key));
    let (mut here, mut found) = ("", 1);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some((name, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            // A list of tables has two brackets.
            here = name.trim_start_matches('[').trim();
            if here == table || here == key {
                found = number;
            }
            continue;
        }
        let name = line.split('=').next().unwrap_or_default();
        let name = name.trim().trim_matches(['"', '\'']);
        if (here == table && name == leaf) || (here.is_empty() && name == key) {
            return number;
        }
    }
    found
}
