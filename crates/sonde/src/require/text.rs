//! A requirement as a person writes it: `throughput>=23.0Gbit`, `latency.p99@tcp@ethernet-100<=30us`.
//!
//! Model:   `QUANTITY[.STATISTIC][@SCOPE]...` then `>=` or `<=`, then a value. A scope is a path, a size of messages, or else the
//!          name of a network; `load=LEVEL` is that background load. A share of a throughput is one of the ceiling. A file has
//!          one in each line, or the `[[require]]` of a plan; `#` begins a comment.
//! Units:   those of [`sonde_units`]; a share is 0.01 or 1%; a count has none.
//! Checked: `texts_are_read`, `what_is_wrong_is_named_with_its_remedy`, `files_are_read_in_both_forms`.

use super::{NAMES, Requirement, Statistic, column};
use crate::plan::size_text;
use serde::Deserialize;
use sonde_measure::Quantity;
use sonde_sys::file;
use sonde_units::{BitRate, Ratio, Span, excerpt, excerpts};
use std::path::Path;

/// What a right one looks like.
const EXAMPLE: &str =
    "write QUANTITY>=VALUE or QUANTITY<=VALUE, as in throughput>=23.0Gbit or latency.p99<=30us";

/// A requirement's text.
///
/// # Errors
/// What is wrong with it, where, and the remedy.
pub fn requirement(text: &str) -> Result<Requirement, String> {
    let shown = excerpt(text);
    let found = [(">=", true), ("≥", true), ("<=", false), ("≤", false)]
        .into_iter()
        .find_map(|(sign, is_min)| text.split_once(sign).map(|parts| (parts, is_min)));
    let Some(((subject, value), is_min)) = found else {
        return Err(format!(
            "`{shown}` is not a requirement: it has neither >= nor <=; {EXAMPLE}"
        ));
    };
    let mut words = subject.split('@').map(str::trim);
    let name = words.next().unwrap_or_default();
    let (name, statistic) = match name.split_once('.') {
        Some((name, statistic)) => (name, Some(statistic)),
        None => (name, None),
    };
    let quantity = quantity(name.trim()).map_err(|why| format!("{why} in `{shown}`; {EXAMPLE}"))?;
    let statistic = match statistic.map(str::trim) {
        None => Statistic::P50,
        Some(word) => self::statistic(word).map_err(|why| format!("{why} in `{shown}`"))?,
    };
    let mut one = Requirement::new(quantity, statistic);
    for word in words {
        scope(&mut one, word).map_err(|why| format!("{why} in `{shown}`"))?;
    }
    bound(&mut one, value.trim(), is_min).map_err(|why| format!("{why} in `{shown}`"))?;
    one.check().map_err(|failure| failure.to_string())?;
    Ok(one)
}

/// The one of `known` that is nearest to a word.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    let like = |name: &str| strsim::jaro_winkler(name, word);
    known
        .max_by(|one, other| like(one).total_cmp(&like(other)))
        .unwrap_or_default()
}

fn quantity(name: &str) -> Result<Quantity, String> {
    let lower = name.to_lowercase().replace('_', "-");
    if let Some((_, of)) = NAMES.iter().find(|(known, _)| *known == lower) {
        return Ok(*of);
    }
    // As rows and plans have it.
    if let Some((_, of)) = NAMES.iter().find(|(_, of)| column(*of) == name) {
        return Ok(*of);
    }
    let mut firsts: Vec<&str> = Vec::new();
    for (known, of) in NAMES {
        let is_first = NAMES
            .iter()
            .find(|(_, other)| *other == of)
            .is_some_and(|(first, _)| *first == known);
        firsts.extend(is_first.then_some(known));
    }
    let all = firsts.join(", ");
    Err(format!(
        "`{}` is not a quantity (the nearest is {}; known are {all})",
        excerpt(name),
        nearest(&lower, NAMES.iter().map(|(known, _)| *known)),
    ))
}

fn statistic(word: &str) -> Result<Statistic, String> {
    let lower = word.to_lowercase();
    let named = match lower.as_str() {
        "median" => Some(Statistic::P50),
        "p99.9" => Some(Statistic::P999),
        "avg" | "average" => Some(Statistic::Mean),
        name => Statistic::ALL.into_iter().find(|one| one.name() == name),
    };
    named.ok_or_else(|| {
        let names = Statistic::ALL.map(Statistic::name);
        format!(
            "`{}` is not a statistic (the nearest is {}): write {}",
            excerpt(word),
            nearest(&lower, names.into_iter()),
            names.join(", "),
        )
    })
}

fn scope(one: &mut Requirement, word: &str) -> Result<(), String> {
    if word.is_empty() {
        return Err("nothing follows @: write a path, a size or a network, as in @tcp".into());
    }
    if let Some(load) = word.strip_prefix("load=") {
        one.load = Some(load.into());
    } else if let Ok(path) = word.parse() {
        one.path = Some(path);
    } else if word.starts_with(|first: char| first.is_ascii_digit()) && size_text(word).is_ok() {
        one.size_bytes = Some(size_text(word)?);
    } else {
        one.network = Some(word.into());
    }
    Ok(())
}

fn bound(one: &mut Requirement, text: &str, is_min: bool) -> Result<(), String> {
    let name = column(one.quantity);
    let value = match name.rsplit_once('_').map(|(_, unit)| unit) {
        Some("bps") if text.ends_with('%') => {
            if !is_min {
                return Err(format!(
                    "`{text}` is a part of the ceiling, which is a lower bound: write >={text}"
                ));
            }
            one.min_of_ceiling = Some(part(text)?);
            return Ok(());
        }
        Some("bps") => text
            .parse::<BitRate>()
            .map_err(|error| error.to_string())?
            .bps() as f64,
        Some("ns") => {
            let span: Span = text
                .parse()
                .map_err(|error: sonde_units::ParseQuantityError| error.to_string())?;
            span.as_picos() as f64 / 1e3
        }
        Some("share") => part(text)?,
        _ => text
            .parse()
            .map_err(|_| format!("`{}` is not a number: {} has no unit", excerpt(text), name))?,
    };
    match is_min {
        true => one.min = Some(value),
        false => one.max = Some(value),
    }
    Ok(())
}

fn part(text: &str) -> Result<f64, String> {
    let ratio: Ratio = text.parse().map_err(|error| format!("{error}"))?;
    let (numerator, denominator) = ratio.parts();
    Ok(numerator as f64 / denominator as f64)
}

/// The requirements of a file.
///
/// # Errors
/// It cannot be read, has none, or what is wrong in which line.
pub fn of_file(path: &str) -> Result<Vec<Requirement>, String> {
    let text = file::text(Path::new(path))
        .map_err(|error| format!("cannot read the requirements {path}: {error}"))?;
    of_text(&text).map_err(|why| format!("the requirements {path}: {why}"))
}

fn of_text(text: &str) -> Result<Vec<Requirement>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        require: Vec<Requirement>,
    }
    let is_table = text.lines().any(|line| line.trim_start().starts_with("[["));
    let all = if is_table {
        let table: Table = toml::from_str(text).map_err(|error| excerpts(&error.to_string()))?;
        for one in &table.require {
            one.check().map_err(|failure| failure.to_string())?;
        }
        table.require
    } else {
        let lines = text.lines().enumerate().filter_map(|(number, line)| {
            let words = line.split('#').next().unwrap_or_default().trim();
            (!words.is_empty()).then_some((number + 1, words))
        });
        let read = lines.map(|(number, words)| {
            requirement(words).map_err(|why| format!("line {number}: {why}"))
        });
        read.collect::<Result<Vec<_>, _>>()?
    };
    match all.is_empty() {
        true => Err(format!("there is none in it; {EXAMPLE}, one a line")),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_path::AnyPath;

    #[test]
    fn texts_are_read() {
        for (text, quantity, statistic, bounds) in [
            (
                "throughput>=23.0Gbit",
                Quantity::ThroughputBps,
                Statistic::P50,
                ">= 23.00 Gb/s",
            ),
            (
                " bandwidth >= 100Mbit ",
                Quantity::ThroughputBps,
                Statistic::P50,
                ">= 100.0 Mb/s",
            ),
            (
                "throughput_bps>=1Gbit",
                Quantity::ThroughputBps,
                Statistic::P50,
                ">= 1.000 Gb/s",
            ),
            (
                "throughput>=95%",
                Quantity::ThroughputBps,
                Statistic::P50,
                ">= 95.0 % of the ceiling",
            ),
            (
                "latency.p99<=30us",
                Quantity::LatencyNs,
                Statistic::P99,
                "<= 30.00 µs",
            ),
            (
                "Latency.p99.9 ≤ 1.5ms",
                Quantity::LatencyNs,
                Statistic::P999,
                "<= 1.500 ms",
            ),
            (
                "lat.median<=1us",
                Quantity::LatencyNs,
                Statistic::P50,
                "<= 1.000 µs",
            ),
            (
                "loss<=0.1%",
                Quantity::LostShare,
                Statistic::P50,
                "<= 0.10 %",
            ),
            (
                "loss.max<=0.01",
                Quantity::LostShare,
                Statistic::Max,
                "<= 1.0 %",
            ),
            (
                "message-rate>=1000",
                Quantity::RatePerS,
                Statistic::P50,
                ">= 1000",
            ),
            (
                "retransmits<=0",
                Quantity::Retransmits,
                Statistic::P50,
                "<= 0",
            ),
        ] {
            let one = requirement(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(
                (one.quantity, one.statistic),
                (quantity, statistic),
                "{text}"
            );
            assert_eq!(one.bounds(), bounds, "{text}");
        }
        let scoped = requirement("latency@openmpi:tcp@64KiB@ib@load=0.6<=1ms").unwrap();
        let path: AnyPath = "openmpi:tcp".parse().unwrap();
        assert_eq!(
            (
                scoped.path,
                scoped.size_bytes,
                scoped.network.as_deref(),
                scoped.load.as_deref()
            ),
            (Some(path), Some(65_536), Some("ib"), Some("0.6"))
        );
        let knobs = requirement("throughput@ethernet-100:rate=20Mbit>=10Mbit").unwrap();
        assert_eq!(knobs.network.as_deref(), Some("ethernet-100:rate=20Mbit"));
        assert_eq!(knobs.min, Some(1e7));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_remedy() {
        for (text, said) in [
            ("throughput", "neither >= nor <="),
            ("througput>=1Gbit", "the nearest is throughput"),
            ("latency.p98<=1us", "write min, p50, p90, p99"),
            ("latency@<=1us", "nothing follows @"),
            ("throughput>=fast", "`fast` is not a rate"),
            ("latency<=soon", "`soon` is not a time"),
            ("throughput<=95%", "write >=95%"),
            ("throughput>=120%", "nothing is above the ceiling"),
            ("loss<=x", "`x`"),
            ("retransmits<=few", "not a number"),
            ("", "is not a requirement"),
            (">=1Gbit", "is not a quantity"),
        ] {
            let why = requirement(text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
    }

    #[test]
    fn files_are_read_in_both_forms() {
        let lines =
            of_text("# contract\nthroughput>=23Gbit  # streams\n\nlatency.p99<=30us\n").unwrap();
        let table = of_text(
            "[[require]]\nquantity = \"throughput_bps\"\nmin = 23e9\n\
             [[require]]\nquantity = \"latency_ns\"\nstatistic = \"p99\"\nmax = 30e3\n",
        )
        .unwrap();
        assert_eq!(lines, table);
        assert!(
            of_text("throughput>=1Gbit\nlatency=3\n")
                .unwrap_err()
                .contains("line 2")
        );
        assert!(of_text("# none\n").unwrap_err().contains("there is none"));
        assert!(
            of_text("[[require]]\nquantity = \"latency_ns\"\n")
                .unwrap_err()
                .contains("no bound")
        );
        assert!(
            of_file("/no/such/file")
                .unwrap_err()
                .contains("/no/such/file")
        );
    }
}
