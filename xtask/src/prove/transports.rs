//! Every way of moving bytes by TCP and UDP over loopback, beside the tools that are known for it, in turns.
//!
//! Model:   a turn runs every contestant once, each with servers and clients of its own, bound to the CPUs where `sonde probe
//!          --testbed local` puts its two ends: streams and polling round trips with the sender on all CPUs but the last
//!          and the receiver on the last, sleeping round trips both on the last. A contestant's figure is the median over
//!          the turns, so that the best of several settings is chosen by medians on both sides. A stream's rate is of user
//!          bytes at the receiver, every one read into memory. Round trips are halved. sockperf and sonde print medians
//!          of single round trips; qperf prints the mean and NPtcp its best trial's mean, which is said beside them.
//! Source:  the calls of the others as strace shows them: sockperf 3.7 sendto and recvfrom with an address (TCP too; UDP is
//!          never connected), qperf and NPtcp write and read; sonde send and recv, by UDP with `connected=no` sendto and
//!          recvfrom.
//! Units:   Gb/s are 10^9 bits of user data a second; microseconds.
//! Checked: `outputs_are_read`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::prove::own::{Sought, sonde};
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof, median};

/// Round trips by the same calls agree within this.
const ALIKE: f64 = 0.03;
/// What sonde's best way is to reach of the others' best.
const BEST: f64 = 1.1;
/// What joined datagrams are to reach of iperf3's single ones.
const JOINED: f64 = 3.0;
const DATAGRAM: &str = "1472";
const ROUND_TRIP: &str = "14";

/// A tool, what of it must be there, and how to get it.
const TOOLS: [(&str, &str); 6] = [
    ("iperf3", "iperf3"),
    ("nuttcp", "nuttcp"),
    ("sockperf", "sockperf"),
    ("qperf", "qperf"),
    ("NPtcp", "netpipe-tcp"),
    ("taskset", "util-linux"),
];

/// Which side a contestant is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Theirs,
    /// sonde by the same calls.
    Like,
    /// sonde by any way.
    Best,
}

struct Contestant {
    side: Side,
    /// As it is typed.
    command: String,
    how: How,
    figures: Vec<f64>,
}

enum How {
    /// A script of the shell, and how its output is read.
    Tool(String, fn(&str) -> Result<f64>),
    /// Words for sonde, the quantity, and what it is divided by.
    Own(Vec<String>, &'static str, &'static str, f64),
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
            side: Side::Theirs,
            command: client.into(),
            how: How::Tool(self.script(together, server, client), read),
            figures: Vec::new(),
        }
    }
}

fn own(side: Side, probe: &'static str, rest: &str) -> Contestant {
    let words = format!("probe {probe} --testbed local --launches 1 {rest}");
    let (quantity, unit) = match probe {
        "latency" => ("latency_ns", 1e3),
        _ => ("throughput_bps", 1e9),
    };
    Contestant {
        side,
        how: How::Own(
            words.split_whitespace().map(String::from).collect(),
            probe,
            quantity,
            unit,
        ),
        command: format!("sonde {words}"),
        figures: Vec::new(),
    }
}

impl Contestant {
    fn run(&self, ground: &Ground) -> Result<f64> {
        match &self.how {
            How::Tool(script, read) => {
                let output = Command::new("sh")
                    .args(["-c", script])
                    .current_dir(&ground.scratch)
                    .stdin(Stdio::null())
                    .output()
                    .context("starting a shell")?;
                let text = String::from_utf8_lossy(&output.stdout);
                read(&text).with_context(|| format!("{}: {}", self.command, text.trim()))
            }
            How::Own(words, probe, quantity, unit) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                Ok(sonde(ground, &words)?.p50(Sought::warm(probe, quantity))? / unit)
            }
        }
    }

    fn median(&self) -> f64 {
        median(self.figures.clone())
    }
}

/// One comparison: its contestants, and what is to be met.
struct Match {
    title: &'static str,
    contestants: Vec<Contestant>,
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
    let mut table = Table::new(&[
        "what",
        "command",
        "median",
        "lowest to highest",
        "to the others' best",
    ]);
    let mut verdicts = Table::new(&["promise", "ratio", "bound", "verdict"]);
    let mut unmet = Vec::new();
    for mut matched in matches(&places) {
        matched.play(ground)?;
        matched.rows(&mut table);
        matched.judge(&mut verdicts, &mut unmet);
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("transports"), ground.runs),
        note: format!(
            "Over loopback, {} turns of all contestants; receivers and both ends of a sleeping round trip on CPU {}, senders on {}. \
             Streams in Gb/s at the receiver, half round trips of {ROUND_TRIP} bytes in us; medians over the turns. qperf prints a mean and NPtcp the \
             mean of its best trial; the others medians of single round trips.",
            ground.runs, places.dst, places.src
        ),
        tables: vec![table, verdicts],
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
    let mut contestants = Vec::new();
    for (length, window) in [("128K", ""), ("128K", "1M"), ("1M", ""), ("1M", "1M")] {
        let option = |letter: &str| {
            if window.is_empty() {
                String::new()
            } else {
                format!(" {letter} {window}")
            }
        };
        let client = format!(
            "iperf3 -c 127.0.0.1 -p 5391 -t 2 -O 1 -J -l {length}{}",
            option("-w")
        );
        contestants.push(places.tool(false, "iperf3 -s -1 -p 5391", &client, iperf3));
        let client = format!(
            "nuttcp -P 5392 -p 5393 -T 2 -fparse -l {}{} 127.0.0.1",
            length.to_lowercase(),
            option("-w").to_lowercase()
        );
        contestants.push(places.tool(false, "nuttcp -S --nofork -P 5392 -p 5393", &client, nuttcp));
    }
    for (side, with) in [
        (Side::Like, "--with nodelay=no"),
        (Side::Like, "--with nodelay=no --with rcvbuf=1MiB"),
        (
            Side::Best,
            "--with nodelay=no --with rcvbuf=1MiB --with lowat=256KiB",
        ),
        (
            Side::Best,
            "--method uring --with nodelay=no --with rcvbuf=1MiB --with lowat=256KiB",
        ),
        (
            Side::Best,
            "--method splice --with nodelay=no --with rcvbuf=1MiB --with lowat=256KiB",
        ),
        (
            Side::Best,
            "--method zerocopy --with nodelay=no --with rcvbuf=1MiB --with lowat=256KiB",
        ),
        (Side::Best, "--with nodelay=no --with streams=2"),
    ] {
        contestants.push(own(side, "throughput", with));
    }
    Match {
        title: "TCP stream",
        contestants,
        is_rate: true,
    }
}

fn udp_streams(places: &Places) -> Match {
    let client = format!("iperf3 -c 127.0.0.1 -p 5391 -u -b 0 -t 2 -J -l {DATAGRAM}");
    let mut contestants = vec![places.tool(false, "iperf3 -s -1 -p 5391", &client, iperf3)];
    for (side, method) in [
        (Side::Like, "plain"),
        (Side::Best, "mmsg"),
        (Side::Best, "gso"),
    ] {
        let rest = format!("--path udp --size {DATAGRAM} --method {method}");
        contestants.push(own(side, "throughput", &rest));
    }
    Match {
        title: "UDP stream",
        contestants,
        is_rate: true,
    }
}

fn round_trips(places: &Places, title: &'static str, path: &str, is_poll: bool) -> Match {
    let together = !is_poll;
    let tcp = if path == "tcp" { " --tcp" } else { "" };
    let poll = if is_poll { " --nonblocked" } else { "" };
    let server = format!("sockperf sr -p 5394{tcp}{poll}");
    let client = format!("sockperf pp -i 127.0.0.1 -p 5394{tcp}{poll} -t 2 -m {ROUND_TRIP}");
    let mut contestants = vec![places.tool(together, &server, &client, sockperf)];
    if !is_poll {
        let client = format!("qperf -lp 5395 -t 2 -m {ROUND_TRIP} 127.0.0.1 {path}_lat");
        contestants.push(places.tool(together, "qperf -lp 5395", &client, qperf));
    }
    if path == "tcp" && !is_poll {
        let both = format!("NPtcp -P 5396 -l {ROUND_TRIP} -u {ROUND_TRIP} -p 0");
        let client = format!("{both} -h 127.0.0.1 -o np.out");
        contestants.push(places.tool(together, &both, &client, netpipe));
    }
    let wait = if is_poll { "poll" } else { "block" };
    let common = format!("--path {path} --size {ROUND_TRIP} --wait {wait}");
    if path == "udp" {
        let apart = format!("{common} --with connected=no");
        contestants.push(own(Side::Like, "latency", &apart));
        contestants.push(own(Side::Best, "latency", &common));
    } else {
        contestants.push(own(Side::Like, "latency", &common));
        let ring = format!("{common} --method uring");
        contestants.push(own(Side::Best, "latency", &ring));
    }
    Match {
        title,
        contestants,
        is_rate: false,
    }
}

impl Match {
    fn play(&mut self, ground: &Ground) -> Result<()> {
        for turn in 1..=ground.runs {
            for contestant in &mut self.contestants {
                let figure = contestant.run(ground)?;
                eprintln!(
                    "prove transports: {} {turn}/{}: {figure:.3} {}",
                    self.title, ground.runs, contestant.command
                );
                contestant.figures.push(figure);
            }
        }
        Ok(())
    }

    /// The best median of a side; sonde's best may be by the same calls.
    fn best(&self, side: Side) -> f64 {
        let is_of = |contestant: &&Contestant| match side {
            Side::Best => contestant.side != Side::Theirs,
            side => contestant.side == side,
        };
        let medians = self
            .contestants
            .iter()
            .filter(is_of)
            .map(Contestant::median);
        if self.is_rate {
            medians.fold(0.0, f64::max)
        } else {
            medians.fold(f64::INFINITY, f64::min)
        }
    }

    fn rows(&self, table: &mut Table) {
        let theirs = self.best(Side::Theirs);
        for contestant in &self.contestants {
            let low = contestant
                .figures
                .iter()
                .copied()
                .fold(f64::INFINITY, f64::min);
            let high = contestant.figures.iter().copied().fold(0.0, f64::max);
            table.row(vec![
                self.title.into(),
                format!("`{}`", contestant.command),
                format!("{:.3}", contestant.median()),
                format!("{low:.3} to {high:.3}"),
                format!("{:.3}", contestant.median() / theirs),
            ]);
        }
    }

    fn judge(&self, table: &mut Table, unmet: &mut Vec<String>) {
        let mut row = |what: String, ratio: f64, bound: String, is_met: bool| {
            if !is_met {
                unmet.push(format!("{what}: {ratio:.3}, {bound}"));
            }
            table.row(vec![what, format!("{ratio:.3}"), bound, verdict(is_met)]);
        };
        let theirs = self.best(Side::Theirs);
        let (like, best) = (
            self.best(Side::Like) / theirs,
            self.best(Side::Best) / theirs,
        );
        if self.is_rate {
            let what = format!("{}, plain, to the others' best", self.title);
            row(what, like, "at least 1.0".into(), like >= 1.0);
            let wanted = if self.title == "UDP stream" {
                JOINED
            } else {
                BEST
            };
            let what = format!("{}, the best way, to the others' best", self.title);
            row(what, best, format!("at least {wanted}"), best >= wanted);
            return;
        }
        for contestant in &self.contestants {
            if contestant.side == Side::Theirs {
                let tool = contestant.command.split(' ').next().unwrap_or_default();
                let ratio = self.best(Side::Like) / contestant.median();
                let is_met = (ratio - 1.0).abs() <= ALIKE;
                let what = format!("{}, same calls, to {tool}", self.title);
                row(what, ratio, "0.97 to 1.03".into(), is_met);
            }
        }
        let what = format!("{}, the best way, to the others' best", self.title);
        row(what, best, "at most 1.03".into(), best <= 1.0 + ALIKE);
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
    fn medians_choose_the_best_of_each_side() {
        let of = |side, figures: &[f64]| Contestant {
            side,
            figures: figures.to_vec(),
            ..own(side, "throughput", "")
        };
        let contestants = vec![
            of(Side::Theirs, &[1.0, 9.0, 2.0]),
            of(Side::Theirs, &[3.0, 3.0, 3.0]),
            of(Side::Like, &[3.0, 4.0, 5.0]),
            of(Side::Best, &[2.0, 2.0, 2.0]),
        ];
        let mut rates = Match {
            title: "TCP stream",
            contestants,
            is_rate: true,
        };
        let best =
            |rates: &Match| [Side::Theirs, Side::Like, Side::Best].map(|side| rates.best(side));
        assert_eq!(best(&rates).map(|figure| figure as u32), [3, 4, 4]);
        rates.is_rate = false;
        assert_eq!(best(&rates).map(|figure| figure as u32), [2, 4, 2]);
    }
}
