//! The networks that come with sonde, and reading a user's own.
//!
//! Model:   one schema for both, [`NetworkSpec`] in TOML. A selector is `NAME[:knob=value]…` or `PATH[:knob=value]…`, a path
//!          being what contains a `/`. A knob replaces one value of the file before it is checked.
//! Checked: `tests/catalogue.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::{NetworkSpec, SpecError};
use sonde_units::{excerpt, excerpts};
use thiserror::Error;

/// One family after the other, each from the slowest; the networks of today at the end.
const FILES: &[(&str, &str)] = &[
    ("wire", include_str!("../catalogue/wire.toml")),
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

/// A knob: its name in a selector, the table and key that it sets, and whether the value is a bare number.
struct Knob(&'static str, &'static str, &'static str, bool);

const KNOBS: &[Knob] = &[
    Knob("mtu", "", "mtu", true),
    Knob("rate", "line", "rate", false),
    Knob("payload", "line", "payload", false),
    Knob("framing", "line", "framing", false),
    Knob("encapsulation", "line", "encapsulation", false),
    Knob("propagation", "line", "propagation", false),
    Knob("length_m", "line", "length_m", true),
    Knob("coding", "line", "coding", false),
    Knob("queue", "station", "queue", false),
    Knob("forwarding", "switch", "forwarding", false),
    Knob("latency", "switch", "latency", false),
    Knob("buffer", "switch", "buffer", false),
    Knob("memory", "switch", "memory", false),
    Knob("mark", "switch", "mark", false),
    Knob("flow_control", "switch", "flow_control", false),
    Knob("assign", "fabric", "assign", false),
    Knob("trunk_rate", "fabric", "rate", false),
    Knob("trunk_buffer", "fabric", "buffer", false),
    Knob("vc", "circuits", "signalling", false),
    Knob("setup", "circuits", "setup", false),
    Knob("idle_release", "circuits", "idle_release", false),
    Knob("table", "circuits", "table", true),
    Knob("resolution_delay", "circuits", "resolution_delay", false),
    Knob(
        "resolution_lifetime",
        "circuits",
        "resolution_lifetime",
        false,
    ),
    Knob("host", "host", "preset", false),
    Knob("copies", "host", "copies", true),
    Knob("cpu_speed", "host", "speed", false),
    Knob("burst", "line", "burst", false),
    Knob("gap", "line", "gap", false),
    Knob("fill", "line", "fill", false),
    Knob("setup", "crossbar", "setup", false),
    Knob("crossbars", "crossbar", "crossbars", true),
    Knob("crossing", "crossbar", "crossing", false),
    Knob("busy", "crossbar", "busy", false),
    Knob("camp_limit", "crossbar", "camp_limit", false),
    Knob("order", "crossbar", "order", false),
    Knob("retry", "crossbar", "retry", false),
    Knob("tries", "crossbar", "tries", true),
    Knob("channels", "crossbar", "channels", true),
    Knob("choice", "crossbar", "choice", false),
    Knob("stripes", "crossbar", "stripes", true),
    Knob("credits", "crossbar", "credits", true),
    Knob("hold", "crossbar", "hold", false),
    Knob("signals", "crossbar", "signals", false),
    Knob("slot", "crossbar", "slot", false),
    Knob("resolution_delay", "crossbar", "resolution_delay", false),
    Knob("radix", "stages", "radix", true),
    Knob("depth", "stages", "depth", true),
    Knob("paths", "stages", "paths", true),
    Knob("hop", "stages", "hop", false),
    Knob("interface", "stages", "interface", false),
    Knob("api_latency", "stages", "api_latency", false),
    Knob("resolution_delay", "stages", "resolution_delay", false),
    Knob("class", "credit", "class", true),
    Knob("credits", "credit", "credits", true),
    Knob("shared", "credit", "shared", true),
    Knob("end_credits", "credit", "end_credits", true),
    Knob("packet", "credit", "packet", false),
    Knob("around", "credit", "around", false),
    Knob("header", "credit", "header", false),
    Knob("head", "credit", "head", false),
    Knob("adapter_rate", "credit", "adapter_rate", false),
    Knob("connect", "credit", "connect", false),
    Knob("hold", "credit", "hold", false),
    Knob("login", "credit", "login", false),
    Knob("discard_after", "credit", "discard_after", false),
    Knob("resolution_delay", "credit", "resolution_delay", false),
    Knob("slot", "bus", "slot", false),
    Knob("jam", "bus", "jam", false),
    Knob("attempts", "bus", "attempts", true),
    Knob("backoff_limit", "bus", "backoff_limit", true),
    Knob("turnaround", "bus", "turnaround", false),
    Knob("ttrt", "token", "ttrt", false),
    Knob("stations", "token", "stations", true),
    Knob("station_delay", "token", "station_delay", false),
    Knob("fibre_m", "token", "fibre_m", true),
    Knob("nodes", "sci", "nodes", true),
    Knob("rings", "sci", "rings", true),
    Knob("node_delay", "sci", "node_delay", false),
    Knob("block", "sci", "block", true),
    Knob("store", "sci", "store", true),
    Knob("offset", "sci", "offset", true),
    Knob("host_rate", "sci", "host_rate", false),
    Knob("store_time", "sci", "store_time", false),
    Knob("dma_setup", "sci", "dma_setup", false),
    Knob("active", "sci", "active", true),
    Knob("input", "sci", "input", true),
    Knob("retry", "sci", "retry", false),
    Knob("switch_delay", "sci", "switch_delay", false),
    Knob("resolution_delay", "sci", "resolution_delay", false),
    Knob("aging", "sci", "aging", false),
    Knob("fair", "sci", "fair", false),
    Knob("response", "sci", "response", false),
    Knob("switch_queue", "sci", "switch_queue", true),
    Knob("layout", "circuits", "layout", false),
    Knob("llc_setup", "circuits", "llc_setup", false),
    Knob("reallocation", "circuits", "reallocation", false),
    Knob("reallocate_after", "circuits", "reallocate_after", false),
    Knob("boot", "circuits", "boot", false),
    Knob("restoration", "circuits", "restoration", false),
    Knob("restore", "circuits", "restore", false),
    Knob("discard", "atm", "discard", false),
    Knob("threshold", "atm", "threshold", true),
    Knob("fair_share", "atm", "fair_share", false),
    Knob("module", "atm", "module", true),
    Knob("cell_loss", "atm", "cell_loss", false),
    Knob("pcr", "atm", "pcr", false),
    Knob("unknown_rate", "lane", "unknown_rate", true),
    Knob("bus_delay", "lane", "bus_delay", false),
    Knob("arp_delay", "lane", "arp_delay", false),
    Knob("delay", "path", "delay", false),
    Knob("loss", "path", "loss", false),
    Knob("reorder", "path", "reorder", false),
    Knob("reorder_by", "path", "reorder_by", false),
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

fn text_of(name: &str) -> Result<&'static str, CatalogueError> {
    let found = FILES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let mut names: Vec<_> = FILES
            .iter()
            .map(|(known, _)| (strsim::damerau_levenshtein(known, name), *known))
            .collect();
        names.sort_unstable();
        let nearest: Vec<_> = names.iter().take(3).map(|(_, known)| *known).collect();
        CatalogueError::Unknown {
            name: name.to_owned(),
            nearest: format!("the nearest are {}", nearest.join(", ")),
        }
    })
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
    let Some(Knob(_, place, key, number)) = knob_of(table, name) else {
        let known: Vec<_> = KNOBS
            .iter()
            .filter(|knob| has_place(table, knob.1))
            .map(|knob| knob.0)
            .collect();
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
    let value = if *number {
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
