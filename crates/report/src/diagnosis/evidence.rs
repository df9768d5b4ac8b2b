//! What the rules look at: one pair of hosts, from a run's rows, launches and host facts.
//!
//! Checked: `evidence_is_of_the_pair`, `settings_are_those_of_the_launches`.

use std::collections::{BTreeMap, BTreeSet};

use sonde_measure::{
    Buffer, LaunchRecord, Line, Phase, Quantity, Repetition, ResultRow, Run, Setting, Settings,
    Socket, Testbed,
};

use crate::index::{Index, LATENCY, busy, median, p50};
use crate::limit::{FULL, explains, on_the_way_bytes};

/// One end of the stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct End {
    /// The host.
    pub host: String,
    /// Its settings.
    pub settings: Settings,
    /// Its interface's MTU.
    pub mtu_bytes: Option<u64>,
    /// Its CPUs.
    pub cpus: u64,
    /// Part of one CPU that the thread of the stream used.
    pub thread_cpu: Option<f64>,
    /// CPU time a byte of that thread, in nanoseconds.
    pub cpu_ns_per_byte: Option<f64>,
    /// Part of all its CPUs in use by anything, meanwhile.
    pub host_cpu: Option<f64>,
    /// Times a second that the thread was put aside for another.
    pub put_aside_per_s: Option<f64>,
}

impl End {
    /// Takes the settings that were changed for a launch as they were then.
    fn was_set(&mut self, launch: &LaunchRecord) {
        let [src, dst] = launch.evidence.sides();
        let sides = [(&launch.src, src), (&launch.dst, dst)];
        let own = sides.into_iter().filter(|(host, _)| **host == self.host);
        for (name, set) in own.flat_map(|(_, side)| &side.host) {
            let Some(change) = &set.change else { continue };
            let (name, after): (&str, &str) = (name, &change.after);
            let known = |setting: &&Setting| setting.name() == name.trim_start_matches("net.");
            if let Some(setting) = Setting::ALL.iter().find(known) {
                self.settings.read(*setting, after);
            } else if name == "mtu" {
                self.mtu_bytes = after.parse().ok().or(self.mtu_bytes);
            }
        }
    }
}

/// What is known of one pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// The network.
    pub network: String,
    /// Whether the hosts are real and apart, so that what a host uses of its CPUs is its own.
    pub apart: bool,
    /// The MTU of the network itself, where it is known.
    pub network_mtu: Option<u64>,
    /// Median rate of the stream; `None` where no launch gave one.
    pub rate_bps: Option<f64>,
    /// What the network allows: what a TCP like the kernel's reaches by the model, else the ceiling of the line.
    pub reach_bps: Option<f64>,
    /// Round trip of the smallest message.
    pub rtt_ns: Option<f64>,
    /// Half round trips by size, at the median.
    pub latency_ns: Vec<(u64, f64)>,
    /// Part of the time that the peer's window held the sender back.
    pub rwnd_share: Option<f64>,
    /// Part of the time that the send buffer did.
    pub sndbuf_share: Option<f64>,
    /// Segments sent again, of all sent.
    pub again_share: Option<f64>,
    /// User bytes in a segment.
    pub mss_bytes: Option<u64>,
    /// The receive buffer that the program asked for, usable bytes.
    pub rcvbuf_asked: Option<u64>,
    /// The send buffer that it asked for.
    pub sndbuf_asked: Option<u64>,
    /// The window above which the program's socket offers none.
    pub window_asked: Option<u64>,
    /// The largest window that the profile of the measurement allows.
    pub profile_window: Option<u64>,
    /// The congestion control in use.
    pub congestion: Option<String>,
    /// Of a blast of datagrams: part lost.
    pub lost_share: Option<f64>,
    /// Of a blast of datagrams: part that came after a later one.
    pub reordered_share: Option<f64>,
    /// Sender and receiver of the streams, where one way is slower than the other, or only one was taken.
    pub way: Option<[String; 2]>,
    /// Why streams failed.
    pub failures: Vec<String>,
    /// The sending end.
    pub src: End,
    /// The receiving end.
    pub dst: End,
}

/// A way is slower than the other where its streams' median is below this part of the other's.
const SLOWER: f64 = 0.8;

fn is_stream(cell: &sonde_measure::CellRecord, network: &str) -> bool {
    let of = &cell.factors;
    of.network == network && of.path == "tcp" && of.mode.as_deref() == Some("stream")
}

/// The rates of a pair's streams by their way.
struct Streams {
    cells: BTreeSet<String>,
    rates: BTreeMap<[String; 2], Vec<u64>>,
}

impl Streams {
    fn of(run: &Run, network: &str) -> Self {
        let streams = run.cells.iter().filter(|cell| is_stream(cell, network));
        let cells: BTreeSet<String> = streams.map(|cell| cell.id.clone()).collect();
        let mut rates: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        let of_stream = |one: &Repetition<'_>| cells.contains(&one.result.cell);
        for Repetition { launch, result } in run.repetitions().filter(of_stream) {
            let series = result.samples(Quantity::ThroughputBps, Phase::Warm);
            if let Some(rate) = series.and_then(sonde_stats::Series::median) {
                let way = [launch.src.clone(), launch.dst.clone()];
                rates.entry(way).or_default().push(rate);
            }
        }
        Self { cells, rates }
    }

    /// The only way, or the one all of whose streams are slower than any of the other, with a median below
    /// [`SLOWER`] of the other's.
    fn slower(&self) -> Option<[String; 2]> {
        let mut ways: Vec<_> = self.rates.iter().collect();
        ways.sort_by_key(|(_, rates)| rates.iter().min().copied());
        match ways[..] {
            [(way, _)] => Some(way.clone()),
            [(way, slow), (_, fast)] => {
                let middle =
                    |rates: &[u64]| median(rates.iter().map(|rate| *rate as f64).collect());
                let apart = slow.iter().max() < fast.iter().min();
                let less = middle(slow)? < SLOWER * middle(fast)?;
                (apart && less).then(|| way.clone())
            }
            _ => None,
        }
    }

    /// The run without the streams of other ways.
    fn only(&self, run: &Run, way: &[String; 2]) -> Run {
        let mut run = run.clone();
        run.retain_results(|launch, result| {
            !self.cells.contains(&result.cell) || [&launch.src, &launch.dst] == [&way[0], &way[1]]
        });
        run
    }
}

impl Evidence {
    /// The evidence of a run on one network. Launches go both ways; the ends are the run's first two hosts of it, with the
    /// median of both ways, unless one way is slower: then it is of that one, from its sender to its receiver.
    pub fn of(run: &Run, network: &str) -> Self {
        let streams = Streams::of(run, network);
        let Some(way) = streams.slower() else {
            return Self::of_way(run, network, None);
        };
        let run = streams.only(run, &way);
        Self::of_way(&run, network, Some(way))
    }

    fn of_way(run: &Run, network: &str, way: Option<[String; 2]>) -> Self {
        let index = Index::new(run);
        let mut evidence = Self {
            network: network.into(),
            ..Self::default()
        };
        let of_line =
            |row: &&ResultRow| row.network == network && row.path == "tcp" && row.load.is_none();
        let Some(first) = index.rows.iter().find(of_line) else {
            return evidence;
        };
        // Streams may have been set otherwise than messages: the fastest counts.
        let line = index.line(first);
        evidence.apart = first.testbed == Testbed::Hosts;
        evidence.ends(&index, first);
        if let Some([src, _]) = &way {
            if evidence.dst.host == *src {
                std::mem::swap(&mut evidence.src, &mut evidence.dst);
            }
        }
        evidence.way = way;
        evidence.of_network(&index, line);
        let sizes = index.of(line, LATENCY);
        evidence.latency_ns = sizes
            .iter()
            .filter_map(|row| Some((row.size_bytes?, p50(row))))
            .collect();
        evidence.rtt_ns = index.round_trip_ns(line);
        let streams = index
            .lines()
            .filter(|one| one.network == network && one.path == "tcp")
            .filter_map(|one| Some((one, index.stream(one)?)));
        let fastest = streams.max_by(|(_, one), (_, other)| p50(one).total_cmp(&p50(other)));
        if let Some((line, stream)) = fastest {
            evidence.of_stream(&index, line, stream);
        }
        for cell in run.cells.iter().filter(|cell| is_stream(cell, network)) {
            let made = run.repetitions_of(&cell.id);
            evidence
                .failures
                .extend(made.filter_map(|one| one.result.failure.clone()));
        }
        evidence.of_datagrams(&index, network);
        evidence
    }

    /// The evidence of one line that has a stream: of that alone, and of both ways.
    pub(crate) fn of_line(index: &Index<'_>, line: &Line) -> Option<Self> {
        let stream = index.stream(line)?;
        let mut evidence = Self {
            network: line.network.clone(),
            apart: stream.testbed == Testbed::Hosts,
            ..Self::default()
        };
        evidence.ends(index, stream);
        evidence.of_network(index, line);
        evidence.rtt_ns = index.round_trip_ns(line);
        evidence.of_stream(index, line, stream);
        let profile = index
            .cell(&stream.cell)
            .and_then(|cell| cell.factors.profile.as_deref());
        evidence.profile_window =
            profile
                .and_then(|profile| profile.strip_prefix("era"))
                .map(|rest| {
                    rest.strip_prefix(":window=")
                        .and_then(|window| window.parse().ok())
                        .unwrap_or(super::window::UNSCALED)
                });
        Some(evidence)
    }

    fn ends(&mut self, index: &Index<'_>, row: &ResultRow) {
        let names = index
            .cell(&row.cell)
            .map_or_else(Vec::new, |cell| cell.factors.hosts.clone());
        let end = |at: usize| {
            let name = names.get(at)?;
            let host = index.run.hosts.iter().find(|host| host.name == *name)?;
            Some(End {
                host: host.name.clone(),
                settings: host.facts.settings.clone(),
                mtu_bytes: host.facts.mtu_bytes,
                cpus: host.facts.cpus,
                ..End::default()
            })
        };
        self.src = end(0).unwrap_or_default();
        self.dst = end(1).unwrap_or_else(|| self.src.clone());
    }

    fn of_network(&mut self, index: &Index<'_>, line: &Line) {
        let expected = index
            .network(&line.network)
            .and_then(|network| network.row.tcp_expected_bps)
            .map(|bps| bps as f64);
        // What was expected of the hosts' settings as they are may be less than what the network allows.
        let ceiling = index.ceiling(line);
        self.reach_bps = match (expected, ceiling) {
            (Some(expected), Some(ceiling)) if expected >= FULL * ceiling => Some(expected),
            (expected, ceiling) => ceiling.or(expected),
        };
        let real = index.network(&line.network);
        self.network_mtu = real.map(|network| network.row.mtu_bytes);
    }

    fn of_stream(&mut self, index: &Index<'_>, line: &Line, stream: &ResultRow) {
        let rate = p50(stream);
        self.rate_bps = Some(rate);
        for launch in index.launches(&stream.cell) {
            self.src.was_set(launch);
            self.dst.was_set(launch);
        }
        self.rwnd_share = index.beside(stream, Quantity::RwndLimitedShare);
        self.sndbuf_share = index.beside(stream, Quantity::SndbufLimitedShare);
        self.mss_bytes = index.segment_bytes(line, &stream.cell);
        let asked = |buffer: fn(&Socket) -> Option<Buffer>| {
            index.least(&stream.cell, |socket| buffer(socket)?.wanted_bytes())
        };
        self.rcvbuf_asked = asked(|socket| socket.recv_buffer);
        self.sndbuf_asked = asked(|socket| socket.send_buffer);
        self.window_asked = asked(|socket| socket.window);
        // The receiver's comes first, as its name does.
        let congestion = index.launches(&stream.cell).find_map(|launch| {
            let [src, dst] = launch.evidence.sides().map(|side| &side.socket.congestion);
            dst.as_ref().or(src.as_ref())
        });
        let congestion = congestion.or_else(|| self.src.settings.congestion());
        self.congestion = congestion.map(ToString::to_string);
        // Retransmissions are counted in the rated time, a second or more; the median launch is about one second.
        let seconds = index
            .launches(&stream.cell)
            .filter_map(|launch| launch.interference.first())
            .map(|at| at.span_ns as f64 / 1e9);
        let watched = median(seconds.collect()).unwrap_or(0.0);
        if let (Some(again), Some(mss)) =
            (index.beside(stream, Quantity::Retransmits), self.mss_bytes)
        {
            let segments = rate / 8.0 / mss as f64;
            self.again_share = (segments > 0.0).then(|| again / (segments + again));
        }
        // Threads that poll use a whole CPU always.
        let [src, dst] = match line.polls() {
            true => [None, None],
            false => index.cpu_shares(stream),
        };
        (self.src.thread_cpu, self.dst.thread_cpu) = (src, dst);
        self.src.cpu_ns_per_byte = index.beside(stream, Quantity::CpuSrcNsPerByte);
        self.dst.cpu_ns_per_byte = index.beside(stream, Quantity::CpuDstNsPerByte);
        for (at, end) in [&mut self.src, &mut self.dst].into_iter().enumerate() {
            let of = |launch: &'_ sonde_measure::LaunchRecord| launch.interference.get(at).cloned();
            let all: Vec<_> = index.launches(&stream.cell).filter_map(of).collect();
            end.host_cpu = median(all.iter().filter_map(busy).collect());
            let aside = |one: &sonde_measure::Interference| {
                (watched > 0.0).then(|| one.involuntary_switches as f64 / watched)
            };
            end.put_aside_per_s = median(all.iter().filter_map(aside).collect());
        }
    }

    fn of_datagrams(&mut self, index: &Index<'_>, network: &str) {
        let share = |quantity: Quantity| {
            let of = |row: &&ResultRow| {
                row.network == network && row.path == "udp" && row.quantity == quantity
            };
            let row = index.rows.iter().find(of)?;
            row.p50.map(|share| share.0)
        };
        self.lost_share = share(Quantity::LostShare);
        self.reordered_share = share(Quantity::ReorderedShare);
    }

    /// Whether the stream fills what the network allows.
    pub fn is_full(&self) -> bool {
        match (self.rate_bps, self.reach_bps) {
            (Some(rate), Some(reach)) => rate >= FULL * reach,
            _ => false,
        }
    }

    /// Bytes that must be on the way to fill the path.
    pub fn needed_bytes(&self) -> Option<u64> {
        Some(on_the_way_bytes(self.reach_bps?, self.rtt_ns?).ceil() as u64)
    }

    /// Whether a limit explains the rate of the stream.
    pub(crate) fn is_explained_by(&self, limit_bps: f64) -> bool {
        self.rate_bps.is_some_and(|bps| explains(bps, limit_bps))
    }

    /// The part of a CPU that the busier thread of the stream used.
    pub(crate) fn thread_cpu(&self) -> Option<f64> {
        let both = [self.src.thread_cpu, self.dst.thread_cpu];
        both.into_iter().flatten().max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn evidence_is_of_the_pair() {
        let mut run = Runs::new()
            .network(net("wan").line(100_000_000).tcp_max(94_148_000))
            .setting("dst_recv_buffer_bytes", "65536")
            .setting("src_congestion", "reno")
            .latency("wan", "tcp", 1, 10_000_000)
            .stream("wan", "tcp", 26_000_000)
            .beside(Quantity::RwndLimitedShare, 990_000)
            .done();
        let settings = &mut run.hosts[1].facts.settings;
        settings.read(Setting::TcpRmem, "4096 131072 6291456");
        let evidence = Evidence::of(&run, "wan");
        assert_eq!(evidence.rate_bps, Some(26e6));
        assert_eq!(evidence.rtt_ns, Some(20e6));
        assert_eq!(evidence.needed_bytes(), Some(235_370));
        assert_eq!(evidence.rcvbuf_asked, Some(65_536));
        assert_eq!(evidence.congestion.as_deref(), Some("reno"));
        assert_eq!(
            evidence.dst.settings.number(Setting::TcpRmem),
            Some(6_291_456)
        );
        assert!(!evidence.is_full() && !evidence.apart);
        assert_eq!(Evidence::of(&run, "elsewhere").rate_bps, None);
    }

    #[test]
    fn settings_are_those_of_the_launches() {
        let change = "(asked for 4096 65536 65536, was 4096 131072 6291456)";
        let mut run = Runs::new()
            .network(net("wan").line(100_000_000))
            .setting(
                "dst_host.net.ipv4.tcp_rmem",
                &format!("4096 65536 65536 {change}"),
            )
            .setting("dst_host.mtu", "1400 (asked for 1400, was 1500)")
            .latency("wan", "tcp", 1, 10_000_000)
            .stream("wan", "tcp", 26_000_000)
            .done();
        for host in &mut run.hosts {
            host.facts.mtu_bytes = Some(1_500);
            let usual = "4096 131072 6291456";
            host.facts.settings.read(Setting::TcpRmem, usual);
        }
        let evidence = Evidence::of(&run, "wan");
        let of = |end: &End| (end.settings.number(Setting::TcpRmem), end.mtu_bytes);
        assert_eq!(of(&evidence.dst), (Some(65_536), Some(1_400)));
        // Launches go both ways.
        assert_eq!(of(&evidence.src), of(&evidence.dst));
    }
}
