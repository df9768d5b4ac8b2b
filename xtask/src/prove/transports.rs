//! Every way of moving bytes by TCP and UDP over loopback, beside the tools that are known for it, in rounds.
//!
//! Model:   a short scouting runs every setting of each tool, and of sonde, three times in one state of the machine, as the way
//!          of a cache line tells it, and chooses the best of each by medians. Then only these play: rounds with the order
//!          turned each time, ratios within a round, a row for each state ([`crate::prove::rounds`]). Each run has servers
//!          and clients of its own, bound to the CPUs where `sonde probe --testbed local` puts its two ends: streams
//!          and polling round trips with the sender on all CPUs but the last and the receiver on the last, sleeping round trips
//!          both on the last. A stream's rate is of user bytes at the receiver, every one read into memory. Round trips are
//!          halved, and compared by the tool's own statistic: sockperf's median with sonde's median, qperf's mean with sonde's
//!          mean of the same launch, NPtcp's mean of its best of seven trials with sonde's mean of its best of seven launches.
//! Source:  the calls of the others as strace shows them: sockperf 3.7 sendto and recvfrom with an address (TCP too; UDP is
//!          never connected), qperf and NPtcp write and read; sonde send and recv, by UDP with `connected=no` sendto and
//!          recvfrom. iperf3's UDP receiver selects and reads, sonde's reads: by `block` it sleeps at each datagram.
//! Units:   Gb/s are 10^9 bits of user data a second; microseconds.
//! Checked: `outputs_are_read`, `the_best_is_chosen_by_medians`; those of `rounds`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::prove::own::{Sought, launches, sonde};
use crate::prove::rounds::{self, Bar, Member, Rounds, is_steady};
use crate::prove::table::Table;
use crate::prove::{Ground, Proof, floor, median};

/// Round trips by the same calls agree within this.
const ALIKE: f64 = 0.03;
/// What sonde's best way is to reach of the others' best.
const BEST: f64 = 1.1;
/// What joined datagrams are to reach of iperf3's single ones.
const JOINED: f64 = 3.0;
const DATAGRAM: &str = "1472";
const ROUND_TRIP: &str = "14";
/// Scouting runs of a setting, and attempts at one in the state of the others.
const SCOUTED: usize = 3;
const SCOUT_TRIES: usize = 3;
/// Trials of NPtcp, of which it prints the best.
const TRIALS: &str = "7";

/// A tool, what of it must be there, and how to get it.
const TOOLS: [(&str, &str); 6] = [
    ("iperf3", "iperf3"),
    ("nuttcp", "nuttcp"),
    ("sockperf", "sockperf"),
    ("qperf", "qperf"),
    ("NPtcp", "netpipe-tcp"),
    ("taskset", "util-linux"),
];

/// Who is meant, and what is asked of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// A tool; which of sonde's figures is its statistic's.
    Theirs(Statistic),
    /// sonde by the same calls.
    Like,
    /// sonde by any way.
    Best,
    /// sonde's best of some launches, for [`Statistic::BestMean`].
    Trials,
    /// Shown alone.
    Shown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Statistic {
    Median,
    Mean,
    BestMean,
}

struct Contestant {
    /// As it is typed.
    command: String,
    how: How,
}

enum How {
    /// A script of the shell, and how its output is read.
    Tool(String, fn(&str) -> Result<f64>),
    /// Words for sonde, the quantity, and what it is divided by: median and mean.
    Own(Vec<String>, &'static str, &'static str, f64),
    /// The same: the least mean of the launches.
    Trials(Vec<String>),
}

/// One side with its settings, of which scouting chooses.
struct Group {
    side: Side,
    settings: Vec<Contestant>,
}

/// Where the two ends run.
struct Places {
    src: String,
    dst: String,
}

impl Places {
    fn here() -> Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").context("reading the CPUs")?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .context("no list of CPUs in /proc/self/status")?;
        let mut cpus = Vec::new();
        for part in list.trim().split(',') {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            cpus.extend(low.parse::<usize>()?..=high.parse::<usize>()?);
        }
        let last = cpus.pop().context("no CPU")?;
        let others: Vec<String> = cpus.iter().map(usize::to_string).collect();
        let dst = last.to_string();
        let src = if others.is_empty() {
            dst.clone()
        } else {
            others.join(",")
        };
        Ok(Self { src, dst })
    }

    /// A server and its client, each where it belongs; the server ends with the script.
    fn script(&self, together: bool, server: &str, client: &str) -> String {
        let src = if together { &self.dst } else { &self.src };
        format!(
            "taskset -c {} {server} >/dev/null 2>&1 & s=$!; sleep 0.4; timeout 30 taskset -c {src} {client} 2>&1; \
             c=$?; kill $s 2>/dev/null; wait $s 2>/dev/null; exit $c",
            self.dst
        )
    }

    fn tool(
        &self,
        together: bool,
        server: &str,
        client: &str,
        read: fn(&str) -> Result<f64>,
    ) -> Contestant {
        Contestant {
            command: client.into(),
            how: How::Tool(self.script(together, server, client), read),
        }
    }
}

fn own(probe: &'static str, rest: &str) -> Contestant {
    let words = format!("probe {probe} --testbed local --launches 1 {rest}");
    let (quantity, unit) = match probe {
        "latency" => ("latency_ns", 1e3),
        _ => ("throughput_bps", 1e9),
    };
    Contestant {
        how: How::Own(words_of(&words), probe, quantity, unit),
        command: format!("sonde {words}"),
    }
}

/// As many launches as NPtcp makes trials.
fn trials(rest: &str) -> Contestant {
    let words = format!("probe latency --testbed local --launches {TRIALS} --budget 100ms {rest}");
    Contestant {
        how: How::Trials(words_of(&words)),
        command: format!("sonde {words}"),
    }
}

fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

impl Contestant {
    /// Its figures, the first of which scouting looks at.
    fn run(&self, ground: &Ground) -> Result<Vec<f64>> {
        match &self.how {
            How::Tool(script, read) => {
                let output = Command::new("sh")
                    .args(["-c", script])
                    .current_dir(&ground.scratch)
                    .stdin(Stdio::null())
                    .output()
                    .context("starting a shell")?;
                let text = String::from_utf8_lossy(&output.stdout);
                let figure = read(&text);
                Ok(vec![figure.with_context(|| {
                    format!("{}: {}", self.command, text.trim())
                })?])
            }
            How::Own(words, probe, quantity, unit) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let rows = sonde(ground, &words)?;
                let sought = Sought::warm(probe, quantity);
                Ok(vec![rows.p50(sought)? / unit, rows.mean(sought)? / unit])
            }
            How::Trials(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                sonde(ground, &words)?;
                let means = launches(ground, "latency_ns")?;
                let least = means.into_iter().map(|one| one.mean).reduce(f64::min);
                Ok(vec![least.context("no launch has samples")? / 1e3])
            }
        }
    }
}

/// One comparison: its sides, and what is to be met.
struct Match {
    title: &'static str,
    groups: Vec<Group>,
    /// More is better: rates, not times.
    is_rate: bool,
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let missing: Vec<_> = TOOLS.iter().filter(|(tool, _)| !is_there(tool)).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|(tool, _)| *tool).collect();
        let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
        bail!(
            "{} is missing; get it with `apt-get install {}`",
            names.join(", "),
            packages.join(" ")
        );
    }
    let places = Places::here()?;
    let mut scouted = Table::new(&["what", "setting", "scouted", "chosen"]);
    let mut figures = Table::new(&[
        "what",
        "command",
        "state",
        "floor, ns",
        "turns",
        "median",
        "lowest to highest",
    ]);
    let mut verdicts = Table::new(&rounds::HEADS);
    let mut unmet = Vec::new();
    let mut told = Vec::new();
    for matched in matches(&places) {
        let chosen = matched.scout(ground, &mut scouted)?;
        let rounds = matched.play(ground, &chosen)?;
        told.push(format!("{}: {}", matched.title, rounds.told()));
        matched.rows(&rounds, &chosen, &mut figures);
        matched.judge(&rounds, &chosen, &mut verdicts, &mut unmet);
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("transports"), ground.runs),
        note: format!(
            "Over loopback; receivers and both ends of a sleeping round trip on CPU {}, senders on {}. First the scouting: every setting {SCOUTED} times in one state of the machine, medians; then rounds of the chosen ones ({}). Ratios are taken within a round, between floors (the way of a cache line from core to core) that differ by less than 15 %. Streams in Gb/s at the receiver, half round trips of {ROUND_TRIP} bytes in us. sockperf's median is compared with sonde's median, qperf's mean with sonde's mean, NPtcp's best of {TRIALS} trials with the best mean of {TRIALS} launches of sonde. A row that is marked *few pairs* has fewer than ten and is no claim.",
            places.dst,
            places.src,
            told.join("; ")
        ),
        tables: vec![scouted, figures, verdicts],
        unmet,
    })
}

fn is_there(tool: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {tool}")])
        .stdout(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

fn matches(places: &Places) -> Vec<Match> {
    let mut all = vec![tcp_streams(places), udp_streams(places)];
    for (title, path, is_poll) in [
        ("TCP round trip, block", "tcp", false),
        ("TCP round trip, poll", "tcp", true),
        ("UDP round trip, block", "udp", false),
        ("UDP round trip, poll", "udp", true),
    ] {
        all.push(round_trips(places, title, path, is_poll));
    }
    all
}

fn tcp_streams(places: &Places) -> Match {
    let (mut iperf, mut nut) = (Vec::new(), Vec::new());
    for (length, window) in [("128K", ""), ("128K", "1M"), ("1M", ""), ("1M", "1M")] {
        let option = |letter: &str| {
            if window.is_empty() {
                String::new()
            } else {
                format!(" {letter} {window}")
            }
        };
        let client = format!(
            "iperf3 -c 127.0.0.1 -p 5391 -t 1 -O 1 -J -l {length}{}",
            option("-w")
        );
        iperf.push(places.tool(false, "iperf3 -s -1 -p 5391", &client, iperf3));
        let client = format!(
            "nuttcp -P 5392 -p 5393 -T 2 -fparse -l {}{} 127.0.0.1",
            length.to_lowercase(),
            option("-w").to_lowercase()
        );
        nut.push(places.tool(false, "nuttcp -S --nofork -P 5392 -p 5393", &client, nuttcp));
    }
    let low = "--with nodelay=no --with rcvbuf=1MiB --with lowat=256KiB";
    let like = ["--with nodelay=no", "--with nodelay=no --with rcvbuf=1MiB"];
    let best = [
        "",
        "--method uring ",
        "--method splice ",
        "--method zerocopy ",
    ]
    .map(|method| format!("{method}{low}"));
    Match {
        title: "TCP stream",
        groups: vec![
            Group {
                side: Side::Theirs(Statistic::Median),
                settings: iperf,
            },
            Group {
                side: Side::Like,
                settings: like.map(|rest| own("throughput", rest)).into(),
            },
            Group {
                side: Side::Theirs(Statistic::Median),
                settings: nut,
            },
            Group {
                side: Side::Best,
                settings: best.map(|rest| own("throughput", &rest)).into(),
            },
        ],
        is_rate: true,
    }
}

fn udp_streams(places: &Places) -> Match {
    let client = format!("iperf3 -c 127.0.0.1 -p 5391 -u -b 0 -t 1 -O 1 -J -l {DATAGRAM}");
    let iperf = places.tool(false, "iperf3 -s -1 -p 5391", &client, iperf3);
    let by = |method: &str| {
        let rest = format!("--path udp --size {DATAGRAM} --method {method}");
        own("throughput", &rest)
    };
    Match {
        title: "UDP stream",
        groups: vec![
            Group {
                side: Side::Shown,
                settings: vec![by("plain --wait block")],
            },
            Group {
                side: Side::Theirs(Statistic::Median),
                settings: vec![iperf],
            },
            Group {
                side: Side::Like,
                settings: vec![by("plain --wait block"), by("plain --wait poll")],
            },
            Group {
                side: Side::Best,
                settings: vec![by("mmsg"), by("gso")],
            },
        ],
        is_rate: true,
    }
}

fn round_trips(places: &Places, title: &'static str, path: &str, is_poll: bool) -> Match {
    let together = !is_poll;
    let tcp = if path == "tcp" { " --tcp" } else { "" };
    let poll = if is_poll { " --nonblocked" } else { "" };
    let server = format!("sockperf sr -p 5394{tcp}{poll}");
    let client = format!("sockperf pp -i 127.0.0.1 -p 5394{tcp}{poll} -t 1 -m {ROUND_TRIP}");
    let wait = if is_poll { "poll" } else { "block" };
    let common = format!("--path {path} --size {ROUND_TRIP} --wait {wait}");
    let (like, best) = if path == "udp" {
        (format!("{common} --with connected=no"), common.clone())
    } else {
        (common.clone(), format!("{common} --method uring"))
    };
    let group = |side, settings: Vec<Contestant>| Group { side, settings };
    let theirs = Side::Theirs;
    let mut groups = vec![
        group(
            theirs(Statistic::Median),
            vec![places.tool(together, &server, &client, sockperf)],
        ),
        group(Side::Like, vec![own("latency", &like)]),
    ];
    if !is_poll {
        let client = format!("qperf -lp 5395 -t 1 -m {ROUND_TRIP} 127.0.0.1 {path}_lat");
        let tool = places.tool(together, "qperf -lp 5395", &client, qperf);
        groups.push(group(theirs(Statistic::Mean), vec![tool]));
    }
    if path == "tcp" && !is_poll {
        let both = format!("NPtcp -P 5396 -l {ROUND_TRIP} -u {ROUND_TRIP} -p 0");
        let client = format!("{both} -h 127.0.0.1 -o np.out");
        let tool = places.tool(together, &both, &client, netpipe);
        groups.push(group(theirs(Statistic::BestMean), vec![tool]));
        groups.push(group(Side::Trials, vec![trials(&common)]));
    }
    let both = vec![own("latency", &like), own("latency", &best)];
    groups.push(group(Side::Best, both));
    Match {
        title,
        groups,
        is_rate: false,
    }
}

/// The place of the best median.
fn best_of(figures: &[Vec<f64>], is_rate: bool) -> usize {
    let better = |a: &f64, b: &f64| {
        if is_rate {
            b.total_cmp(a)
        } else {
            a.total_cmp(b)
        }
    };
    let medians: Vec<f64> = figures.iter().map(|list| median(list.clone())).collect();
    let first = medians.iter().enumerate().min_by(|a, b| better(a.1, b.1));
    first.map_or(0, |(at, _)| at)
}

impl Match {
    /// The chosen setting of each group.
    fn scout(&self, ground: &Ground, table: &mut Table) -> Result<Vec<usize>> {
        let choices = |group: &&Group| group.settings.len() > 1;
        let mut figures: Vec<Vec<Vec<f64>>> = self
            .groups
            .iter()
            .map(|group| vec![Vec::new(); group.settings.len()])
            .collect();
        let mut state = floor::state_ns()?;
        for _ in 0..SCOUTED.min(ground.runs) {
            for (group, figures) in self.groups.iter().zip(&mut figures) {
                if !choices(&group) {
                    continue;
                }
                for (setting, found) in group.settings.iter().zip(figures) {
                    let mut tries = 0;
                    let figure = loop {
                        let before = floor::state_ns()?;
                        let figure = setting.run(ground)?[0];
                        tries += 1;
                        let after = floor::state_ns()?;
                        if is_steady(&[state, before, after]) {
                            break figure;
                        }
                        if tries == SCOUT_TRIES {
                            // The state went and stays away: what comes is scouted in the new one.
                            state = after;
                            break figure;
                        }
                    };
                    eprintln!(
                        "prove transports: scouting {}: {figure:.3} {}",
                        self.title, setting.command
                    );
                    found.push(figure);
                }
            }
        }
        let mut chosen = Vec::new();
        for (group, figures) in self.groups.iter().zip(&figures) {
            if !choices(&group) {
                chosen.push(0);
                continue;
            }
            let best = best_of(figures, self.is_rate);
            for (at, (setting, figures)) in group.settings.iter().zip(figures).enumerate() {
                table.row(vec![
                    self.title.into(),
                    format!("`{}`", setting.command),
                    format!("{:.3}", median(figures.clone())),
                    if at == best { "yes" } else { "–" }.into(),
                ]);
            }
            chosen.push(best);
        }
        Ok(chosen)
    }

    fn play(&self, ground: &Ground, chosen: &[usize]) -> Result<Rounds> {
        let mut members: Vec<Member<'_>> = self
            .groups
            .iter()
            .zip(chosen)
            .map(|(group, at)| {
                let setting = &group.settings[*at];
                Member {
                    name: setting.command.clone(),
                    run: Box::new(move || setting.run(ground)),
                }
            })
            .collect();
        let what = format!("transports: {}", self.title);
        Rounds::play(&what, ground.runs, &mut members, floor::state_ns)
    }

    fn rows(&self, rounds: &Rounds, chosen: &[usize], table: &mut Table) {
        for (at, (group, setting)) in self.groups.iter().zip(chosen).enumerate() {
            let command = format!("`{}`", group.settings[*setting].command);
            let listed = match (group.side, self.is_rate) {
                (Side::Like, false) => vec![
                    (format!("{command}, median"), (at, 0)),
                    (format!("{command}, mean"), (at, 1)),
                ],
                _ => vec![(command, (at, 0))],
            };
            rounds.rows(self.title, &listed, table);
        }
    }

    fn place(&self, side: Side) -> Option<usize> {
        self.groups.iter().position(|group| group.side == side)
    }

    fn judge(&self, rounds: &Rounds, chosen: &[usize], table: &mut Table, unmet: &mut Vec<String>) {
        for (at, error) in rounds.broken.iter().enumerate() {
            if let Some(error) = error {
                let command = &self.groups[at].settings[chosen[at]].command;
                unmet.push(format!("{}: {command}: {error:#}", self.title));
            }
        }
        let mut row = |ours: (usize, usize), theirs: usize, how: &str, bounds: (f64, f64)| {
            let command = &self.groups[theirs].settings[chosen[theirs]].command;
            let tool = command.split(' ').next().unwrap_or_default();
            let bar = Bar {
                what: format!("{}, {how}, to {tool}", self.title),
                least: bounds.0,
                most: bounds.1,
            };
            if rounds.broken[ours.0].is_none() && rounds.broken[theirs].is_none() {
                let found = rounds.ratios(ours, (theirs, 0));
                rounds::judge(&found, &bar, table, unmet);
            }
        };
        let joined = self.title == "UDP stream";
        for (theirs, group) in self.groups.iter().enumerate() {
            let Side::Theirs(statistic) = group.side else {
                continue;
            };
            if self.is_rate {
                let wanted = if joined { JOINED } else { BEST };
                for (side, how, least) in [
                    (Side::Shown, "plain by block", 0.0),
                    (Side::Like, "plain", 1.0),
                    (Side::Best, "the best way", wanted),
                ] {
                    if let Some(at) = self.place(side) {
                        row((at, 0), theirs, how, (least, f64::INFINITY));
                    }
                }
                continue;
            }
            let (side, figure, how) = match statistic {
                Statistic::Median => (Side::Like, 0, "same calls, medians"),
                Statistic::Mean => (Side::Like, 1, "same calls, means"),
                Statistic::BestMean => (Side::Trials, 0, "same calls, best of seven means"),
            };
            let alike = (1.0 - ALIKE, 1.0 + ALIKE);
            if let Some(at) = self.place(side) {
                row((at, figure), theirs, how, alike);
            }
            if let (Some(at), Statistic::Median) = (self.place(Side::Best), statistic) {
                row((at, 0), theirs, "the best way, medians", (0.0, 1.0 + ALIKE));
            }
        }
    }
}

/// Gb/s at iperf3's receiver; of datagrams those that were not lost.
fn iperf3(text: &str) -> Result<f64> {
    let document: serde_json::Value =
        serde_json::from_str(text).context("reading iperf3's JSON")?;
    let end = &document["end"];
    let received = end["sum_received"]["bits_per_second"].as_f64();
    if let Some(rate) = received.filter(|rate| *rate > 0.0) {
        return Ok(rate / 1e9);
    }
    let rate = end["sum"]["bits_per_second"].as_f64();
    let lost = end["sum"]["lost_percent"].as_f64();
    let (rate, lost) = rate.zip(lost).context("iperf3 printed no rate")?;
    Ok(rate * (1.0 - lost / 100.0) / 1e9)
}

/// Gb/s of nuttcp's `-fparse`.
fn nuttcp(text: &str) -> Result<f64> {
    let word = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("rate_Mbps="));
    Ok(word.context("nuttcp printed no rate")?.parse::<f64>()? / 1e3)
}

/// Half a round trip of sockperf, its median.
fn sockperf(text: &str) -> Result<f64> {
    let line = text.lines().find(|line| line.contains("percentile 50.000"));
    let word = line.and_then(|line| line.rsplit('=').next());
    Ok(word.context("sockperf printed no median")?.trim().parse()?)
}

/// Half a round trip of qperf, its mean, in us.
fn qperf(text: &str) -> Result<f64> {
    let line = text.lines().find(|line| line.contains("latency"));
    let words: Vec<&str> = line.map_or(Vec::new(), |line| line.split_whitespace().collect());
    let [_, _, number, unit] = words[..] else {
        bail!("qperf printed no latency");
    };
    let factor = match unit {
        "ns" => 1e-3,
        "us" => 1.0,
        "ms" => 1e3,
        other => bail!("qperf's unit {other} is not known"),
    };
    Ok(number.parse::<f64>()? * factor)
}

/// Half a round trip of NetPIPE: the last line `0: 14 bytes 1000 times --> 10.00 Mbps in 3.79 usec`.
fn netpipe(text: &str) -> Result<f64> {
    let line = text.lines().rev().find(|line| line.contains(" usec"));
    let word = line.and_then(|line| line.split(" in ").nth(1)?.split_whitespace().next());
    Ok(word.context("NPtcp printed no time")?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read() {
        let near = |found: Result<f64>, wanted: f64| {
            let found = found.unwrap();
            assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
        };
        near(
            iperf3(r#"{"end": {"sum_received": {"bits_per_second": 5e9}}}"#),
            5.0,
        );
        let udp = r#"{"end": {"sum": {"bits_per_second": 4e9, "lost_percent": 25}}}"#;
        near(iperf3(udp), 3.0);
        near(
            nuttcp("megabytes=2278.9 real_seconds=1.00 rate_Mbps=19084.5 tx_cpu=7"),
            19.0845,
        );
        near(
            sockperf("sockperf: ---> percentile 50.000 =    7.125"),
            7.125,
        );
        near(qperf("tcp_lat:\n    latency  =  25.9 us\n"), 25.9);
        near(qperf("udp_lat:\n    latency  =  1.5 ms\n"), 1500.0);
        near(
            netpipe(
                "Sending\n  0:      14 bytes  38241 times -->     54.30 Mbps in       3.79 usec\n",
            ),
            3.79,
        );
        for read in [iperf3, nuttcp, sockperf, qperf, netpipe] {
            assert!(read("nothing").is_err());
        }
    }

    #[test]
    fn the_best_is_chosen_by_medians() {
        let figures = [vec![1.0, 9.0, 2.0], vec![3.0; 3], vec![2.5; 3]];
        assert_eq!(best_of(&figures, true), 1);
        assert_eq!(best_of(&figures, false), 0);
        let places = Places {
            src: "0".into(),
            dst: "1".into(),
        };
        for one in matches(&places) {
            assert!(one.place(Side::Like).is_some() && one.place(Side::Best).is_some());
            let is_there = |group: &Group| !group.settings.is_empty();
            assert!(one.groups.iter().all(is_there), "{}", one.title);
        }
    }
}
