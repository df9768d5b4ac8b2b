//! What each tool prints, read into figures by name: the one home of these readers.
//!
//! Model:   a reader gets all of a program's standard output. Most know their tool, and give its figures by fixed names; three are told
//!          by the bench what to look for. `sonde`: a row of its JSON, as `QUANTITY.FIELD KEY=VALUE ...` (`phase=warm` unless it says
//!          otherwise; exactly one row must fit, but for the field `rows`, how many do), or a pointer such as `/tune/trials/0/gain`, with
//!          ` == TEXT | TEXT` behind it 1 or 0. `text`: the first number after these words,
//!          or the n-th with ` #n` behind them; with `? ` before them 1 or 0, whether one line has all of them (` & ` between, ` | `
//!          between alternatives). `values`: lines of a name and a number.
//! Source:  iperf3 3.x by `-J`: the rate is over the server's own whole intervals that are not omitted, where `--get-server-output` gave
//!          them, for the client's last one ends when it stops sending; of datagrams those that were not lost. sockperf prints half of a
//!          round trip. NetPIPE 3.7.2 prints columns into its file: bytes, 2^20 bits a second, seconds one way.
//! Units:   as the names say; `criterion` nanoseconds.
//! Checked: `each_sample_is_read`, `nothing_is_read_from_nothing`, `rows_of_sonde_are_found_by_what_they_are`, `words_are_found_in_text`.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

/// Figures by name, in the order in which they were found.
pub type Figures = Vec<(String, f64)>;

/// A tool whose output is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// `bps` at the receiver; of datagrams also `sent_bps` and `lost`.
    Iperf3,
    /// `bps`, of `-fparse`.
    Nuttcp,
    /// `p50_us` and `p99_us`, half round trips; `sent` and `received`.
    Sockperf,
    /// `mean_us`, half a round trip.
    Qperf,
    /// `us`, half a round trip of the last size.
    Netpipe,
    /// `ms_1`, `ms_2`, ...: round trips in their order.
    Ping,
    /// `mops`, of NPB's closing block.
    Npb,
    /// `p50_ns`, half a round trip.
    Ucx,
    /// The middle of each time, by its name.
    Criterion,
    Sonde,
    Text,
    Values,
}

impl Reader {
    /// Whether the bench says what it looks for.
    pub fn is_told(self) -> bool {
        matches!(self, Self::Sonde | Self::Text)
    }

    /// The names of its figures; `None` where the output or the bench gives them.
    pub fn names(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::Iperf3 => &["bps", "sent_bps", "lost"],
            Self::Nuttcp => &["bps"],
            Self::Sockperf => &["p50_us", "p99_us", "sent", "received"],
            Self::Qperf => &["mean_us"],
            Self::Netpipe => &["us"],
            Self::Ping => &["ms_1", "ms_2"],
            Self::Npb => &["mops"],
            Self::Ucx => &["p50_ns"],
            Self::Criterion | Self::Sonde | Self::Text | Self::Values => return None,
        })
    }

    /// Reads what was printed; `wanted` are names and what to look for.
    ///
    /// # Errors
    /// Nothing of what this tool prints is there, or one of `wanted` is not.
    pub fn read(self, text: &str, wanted: &[(String, String)]) -> Result<Figures> {
        let one = |name: &str, value: f64| Ok(vec![(name.to_owned(), value)]);
        match self {
            Self::Iperf3 => iperf3(text),
            Self::Nuttcp => one("bps", number(text, "rate_Mbps=", 1)? * 1e6),
            Self::Sockperf => sockperf(text),
            Self::Qperf => one("mean_us", qperf(text)?),
            Self::Netpipe => one("us", netpipe(text)?),
            Self::Ping => ping(text),
            Self::Npb => one("mops", npb(text)?),
            Self::Ucx => one("p50_ns", ucx(text)?),
            Self::Criterion => criterion(text),
            Self::Values => values(text),
            Self::Sonde => {
                let document = serde_json::from_str(text).context("reading the JSON of sonde")?;
                every(wanted, |what| sonde(&document, what))
            }
            Self::Text => every(wanted, |what| words(text, what)),
        }
    }
}

fn every(wanted: &[(String, String)], find: impl Fn(&str) -> Result<f64>) -> Result<Figures> {
    let found = wanted.iter().map(|(name, what)| {
        let value = find(what).with_context(|| format!("the figure {name}"))?;
        Ok((name.clone(), value))
    });
    found.collect()
}

/// A document of iperf3.
#[derive(Deserialize)]
struct Iperf3 {
    #[serde(default)]
    end: End,
    server_output_json: Option<Server>,
}

#[derive(Deserialize, Default)]
struct End {
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct Server {
    #[serde(default)]
    intervals: Vec<Interval>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(Deserialize)]
struct Sum {
    #[serde(default)]
    bytes: f64,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    bits_per_second: f64,
    lost_packets: Option<f64>,
    lost_percent: Option<f64>,
    #[serde(default)]
    omitted: bool,
}

fn iperf3(text: &str) -> Result<Figures> {
    let all: Iperf3 = serde_json::from_str(text).context("reading the JSON of iperf3")?;
    let mut found = Vec::new();
    let is_datagrams = all
        .end
        .sum
        .as_ref()
        .is_some_and(|sum| sum.lost_percent.is_some());
    let intervals = all
        .server_output_json
        .iter()
        .flat_map(|server| &server.intervals);
    let whole: Vec<&Sum> = intervals
        .map(|interval| &interval.sum)
        .filter(|sum| !sum.omitted && sum.seconds > 0.5)
        .collect();
    let seconds: f64 = whole.iter().map(|sum| sum.seconds).sum();
    let received = all.end.sum_received.as_ref();
    let of_server = whole.iter().map(|sum| sum.bytes).sum::<f64>() * 8.0 / seconds;
    let of_older = all.end.sum.as_ref().map(|sum| {
        let lost = sum.lost_percent.unwrap_or(0.0);
        sum.bits_per_second * (1.0 - lost / 100.0)
    });
    let of_client = received.map(|sum| sum.bits_per_second).or(of_older);
    let bps = if seconds > 0.9 {
        Some(of_server)
    } else {
        of_client
    };
    let bps = bps
        .filter(|bps| *bps > 0.0)
        .context("iperf3 printed no rate")?;
    found.push(("bps".to_owned(), bps));
    if let Some(sent) = all
        .end
        .sum_sent
        .filter(|sum| is_datagrams && sum.seconds > 0.0)
    {
        found.push(("sent_bps".to_owned(), sent.bytes * 8.0 / sent.seconds));
    }
    if let Some(lost) = received.and_then(|sum| sum.lost_packets) {
        found.push(("lost".to_owned(), lost));
    }
    Ok(found)
}

fn sockperf(text: &str) -> Result<Figures> {
    let looked = [
        ("p50_us", "percentile 50.000 ="),
        ("p99_us", "percentile 99.000 ="),
        ("sent", "sockperf: Total of"),
        ("received", "sockperf: Total"),
    ];
    let found = looked.iter().filter_map(|(name, words)| {
        // `Total` stands before other words as well: the first with a number behind it counts.
        let mut behind = text
            .match_indices(words)
            .map(|(at, _)| &text[at + words.len()..]);
        let value = behind.find_map(|rest| rest.split_whitespace().next()?.parse().ok());
        Some(((*name).to_owned(), value?))
    });
    let found: Figures = found.collect();
    ensure!(
        !found.is_empty(),
        "sockperf printed no percentile and no count"
    );
    Ok(found)
}

fn qperf(text: &str) -> Result<f64> {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("latency"));
    let mut words = line
        .context("qperf printed no latency")?
        .split_whitespace()
        .skip(2);
    let value: f64 = words.next().context("qperf printed no number")?.parse()?;
    let factor = match words.next() {
        Some("ns") => 1e-3,
        Some("us") => 1.0,
        Some("ms") => 1e3,
        other => bail!("qperf's unit {other:?} is not known"),
    };
    Ok(value * factor)
}

/// `0: 14 bytes 1000 times --> 10.00 Mbps in 3.79 usec` of the screen, or the columns of its file.
fn netpipe(text: &str) -> Result<f64> {
    let on_screen = text.lines().rev().find(|line| line.contains(" usec"));
    if let Some(line) = on_screen {
        return number(line, " in ", 1);
    }
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let words: Vec<&str> = last.unwrap_or_default().split_whitespace().collect();
    let [_, _, seconds] = words[..] else {
        bail!("NetPIPE printed no time");
    };
    let seconds: f64 = seconds.parse().context("NetPIPE printed no time")?;
    ensure!(seconds > 0.0, "NetPIPE printed a time of {seconds} s");
    Ok(seconds * 1e6)
}

fn ping(text: &str) -> Result<Figures> {
    let times = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" time=")?;
        rest.split_whitespace().next()?.parse().ok()
    });
    let found: Figures = times
        .enumerate()
        .map(|(at, ms)| (format!("ms_{}", at + 1), ms))
        .collect();
    ensure!(!found.is_empty(), "ping printed no time");
    Ok(found)
}

fn npb(text: &str) -> Result<f64> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(head, _)| head.trim() == name);
        found.map(|(_, value)| value.trim())
    };
    ensure!(
        value("Verification") != Some("UNSUCCESSFUL"),
        "the verification was UNSUCCESSFUL"
    );
    let rate = value("Mop/s total").context("no `Mop/s total` was printed")?;
    let rate: f64 = rate.parse().with_context(|| format!("Mop/s of {rate}"))?;
    ensure!(rate.is_finite() && rate > 0.0, "Mop/s of {rate}");
    Ok(rate)
}

/// The last line of `ucx_perftest -f`: iterations, then microseconds at the median.
fn ucx(text: &str) -> Result<f64> {
    let median = |line: &str| -> Option<f64> {
        let mut words = line.split_whitespace();
        words.next()?.parse::<u64>().ok()?;
        words.next()?.parse().ok()
    };
    let us = text.lines().rev().find_map(median);
    Ok(us.context("ucx_perftest printed no result")? * 1e3)
}

/// `NAME  time: [low ns middle ns high ns]`, the name on the line before where it is long.
fn criterion(text: &str) -> Result<Figures> {
    let mut found = Vec::new();
    let mut before = "";
    for line in text.lines() {
        if let Some((name, times)) = line.split_once(" time:") {
            let name = if name.trim().is_empty() { before } else { name };
            let words: Vec<&str> = times
                .split(['[', ']', ' '])
                .filter(|word| !word.is_empty())
                .collect();
            let [_, _, middle, unit, ..] = words[..] else {
                bail!("criterion printed `{line}`, which has no three times");
            };
            let factor = match unit {
                "ps" => 1e-3,
                "ns" => 1.0,
                "µs" | "us" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                other => bail!("criterion's unit {other} is not known"),
            };
            found.push((name.trim().to_owned(), middle.parse::<f64>()? * factor));
        }
        before = line;
    }
    ensure!(!found.is_empty(), "criterion printed no time");
    Ok(found)
}

fn values(text: &str) -> Result<Figures> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next()?, words.next()?.parse().ok()?);
        words.next().is_none().then(|| (name.to_owned(), value))
    };
    let found: Figures = text.lines().filter_map(line).collect();
    ensure!(!found.is_empty(), "no line is a name and a number");
    Ok(found)
}

/// A figure of sonde's own document.
fn sonde(document: &Value, what: &str) -> Result<f64> {
    if let Some((pointer, wanted)) = what.split_once(" == ") {
        let found = document.pointer(pointer).and_then(Value::as_str);
        let found = found.with_context(|| format!("sonde gave no text at {pointer}"))?;
        return Ok(f64::from(u8::from(
            wanted.split(" | ").any(|one| one == found),
        )));
    }
    if what.starts_with('/') {
        let found = document.pointer(what).and_then(|value| match value {
            Value::Bool(is_so) => Some(f64::from(u8::from(*is_so))),
            Value::Array(all) => Some(all.len() as f64),
            other => other.as_f64(),
        });
        return found.with_context(|| format!("sonde gave no number at {what}"));
    }
    let mut words = what.split_whitespace();
    let (quantity, field) = words
        .next()
        .and_then(|word| word.rsplit_once('.'))
        .with_context(|| format!("`{what}` is not QUANTITY.FIELD KEY=VALUE ..."))?;
    let mut keys: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
    if !keys.iter().any(|(key, _)| *key == "phase") {
        keys.push(("phase", "warm"));
    }
    let fits = |row: &&Value| {
        row["quantity"] == quantity
            && keys.iter().all(|(key, wanted)| {
                let at = row.pointer(&format!("/{}", key.replace('.', "/")));
                match at {
                    None | Some(Value::Null) => *wanted == "null",
                    Some(Value::String(text)) => text == wanted,
                    Some(other) => *wanted == other.to_string().as_str(),
                }
            })
    };
    let rows = document["results"]
        .as_array()
        .context("sonde printed no results")?;
    let rows: Vec<&Value> = rows.iter().filter(fits).collect();
    if field == "rows" && !rows.is_empty() {
        return Ok(rows.len() as f64);
    }
    let [row] = rows[..] else {
        bail!("{} rows of sonde are `{what}`, not one", rows.len());
    };
    row[field]
        .as_f64()
        .with_context(|| format!("the row `{what}` has no {field}: {}", row["reason"]))
}

/// A figure after words of a text, or whether the words are there.
fn words(text: &str, what: &str) -> Result<f64> {
    if let Some(wanted) = what.strip_prefix("? ") {
        let has = |line: &str| {
            let mut ways = wanted.split(" | ");
            ways.any(|way| way.split(" & ").all(|words| line.contains(words)))
        };
        return Ok(f64::from(u8::from(text.lines().any(has))));
    }
    let (words, place) = match what.rsplit_once(" #") {
        Some((words, place)) => (
            words,
            place
                .parse()
                .with_context(|| format!("`{what}`: the number behind # is not one"))?,
        ),
        None => (what, 1),
    };
    number(text, words, place)
}

/// The n-th number after words, on the line on which they first stand with so many behind them.
fn number(text: &str, words: &str, place: usize) -> Result<f64> {
    let of = |line: &str| {
        let (_, rest) = line.split_once(words)?;
        let numbers =
            rest.split(|letter: char| letter.is_whitespace() || "|,;=()[]%".contains(letter));
        numbers
            .filter_map(|word| word.parse::<f64>().ok())
            .nth(place.checked_sub(1)?)
    };
    let found = text.lines().find_map(of);
    found.with_context(|| format!("no line has {place} numbers after `{words}`"))
}

#[cfg(test)]
mod tests;
