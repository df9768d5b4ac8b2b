//! Published figures of FTP and of tables 1 and 2 of the HIPPI study beside what stages and closed forms give.
//!
//! Model:   FTP is [`Stages`] of times that models give: disks by their rates, the socket by a stream between the hosts alone, the network
//!          by a stream between them over the line. What a study calls the slowest stage stands beside it: stages of a pipeline with buffers
//!          without end.
//! Source:  as `old_files.rs`.
//! Units:   as `old_files.rs`.

use serde::Deserialize;
use sonde_link::{Headers, NetworkSpec, tcp_max, udp_max};
use sonde_measure::files::{Files, Stages};
use sonde_measure::{FilesFacts, KnobValues};
use sonde_units::Bytes;
use sonde_virtual::tcp_expected;
use std::fmt::Write as _;

use crate::old_files::{
    CRAY, FILE_SERVER, SP2, SPARC_20, bytes, data, kib, millis, ms, network, printed, sender,
};

const SIZE: u64 = 16 << 20;
const WORKSTATION: &str = "preset = \"rs6000-590\"";
const FULL: Bytes = Bytes(1 << 16);

/// A transfer, all of whose stages are modelled.
struct Transfer {
    line: &'static str,
    hosts: Option<(&'static str, &'static str)>,
    window: Bytes,
    copy: u64,
    source_mbps: Option<f64>,
    sink_mbps: Option<f64>,
}

fn ns(size: u64, mbps: f64) -> u64 {
    (size as f64 * 8e3 / mbps) as u64
}

impl Transfer {
    fn over(&self, line: &str) -> NetworkSpec {
        let (client, server) = self.hosts.unwrap_or_default();
        network(line, client, server)
    }

    /// Mb/s of a stream over the line.
    fn stream(&self) -> f64 {
        let spec = self.over(self.line);
        tcp_expected(&spec, &sender(&spec, self.window)).unwrap() as f64 / 1e6
    }

    /// Mb/s of a stream between the hosts alone, in frames as long.
    fn socket(&self) -> Option<f64> {
        self.hosts?;
        let mtu = self.over(self.line).mtu;
        let alone = self.over(&format!("wire:delay=1us:mtu={mtu}"));
        Some(tcp_expected(&alone, &sender(&alone, self.window)).unwrap() as f64 / 1e6)
    }

    /// Mb/s of a file by the stages, after `trips` round trips of its opening.
    fn rate(&self, size: u64, opening_ns: u64) -> f64 {
        let disk = |mbps: Option<f64>| mbps.map_or(0, |mbps| ns(size, mbps));
        let facts = FilesFacts {
            null_ns: Some(opening_ns),
            own_null_ns: Some(0),
            own_call_ns: Some(self.socket().map_or(0, |mbps| ns(size, mbps))),
            stream_ns: Some(opening_ns + ns(size, self.stream())),
            source_ns: Some(disk(self.source_mbps)),
            sink_ns: Some(disk(self.sink_mbps)),
            ..FilesFacts::default()
        };
        let mut values: Vec<(&str, String)> = vec![
            ("op", "read".into()),
            ("copy", self.copy.to_string()),
            ("read-ahead", "1MiB".into()),
        ];
        values.extend(self.source_mbps.map(|mbps| ("disk", format!("{mbps}Mbit"))));
        let values: KnobValues = values
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        let files = Files::parse("ftp".parse().unwrap(), &values).unwrap();
        let stages = Stages::of(&files, size, &facts).unwrap();
        size as f64 * 8e3 / stages.expected_ns as f64
    }

    /// Mb/s of the slowest stage.
    fn slowest(&self) -> f64 {
        let disks = [self.source_mbps, self.sink_mbps].into_iter().flatten();
        disks.fold(self.stream(), f64::min)
    }
}

/// S44: file server to Sparc 20 over Ethernet and ATM, to an SP-2, and between two nodes of the SP-2.
fn sandia() -> [(&'static str, &'static str, Transfer); 4] {
    let (slow, fast) = (printed("disk.desktop"), printed("disk.server"));
    let of = |line, hosts, sink| Transfer {
        line,
        hosts: Some(hosts),
        window: FULL,
        copy: 8_192,
        source_mbps: Some(fast),
        sink_mbps: Some(sink),
    };
    let server = |line, to, sink| of(line, (FILE_SERVER, to), sink);
    [
        (
            "file server to Sparc 20, Ethernet",
            "ftp.ethernet",
            server("ethernet-10", SPARC_20, slow),
        ),
        (
            "file server to Sparc 20, ATM",
            "ftp.server_desktop",
            server("atm-oc3c", SPARC_20, slow),
        ),
        (
            "file server to SP-2, ATM",
            "ftp.server_sp2",
            server("atm-oc3c", SP2, fast),
        ),
        (
            "SP-2 to SP-2, ATM",
            "ftp.sp2_sp2",
            of("atm-oc3c", (SP2, SP2), fast),
        ),
    ]
}

pub(crate) fn sandia_table() -> String {
    let mut table = String::from(
        "| pair | printed Mb/s | by the stages | ours / printed | the slowest stage alone | ours / printed |\n|---|---|---|---|---|---|\n",
    );
    for (pair, key, transfer) in sandia() {
        let of = printed(key);
        let (stages, slowest) = (transfer.rate(SIZE, 0), transfer.slowest());
        let _ = writeln!(
            table,
            "| {pair} | {of} | {stages:.1} | {:.2} | {slowest:.1} | {:.2} |",
            stages / of,
            slowest / of
        );
    }
    table
}

/// Each printed rate lies between stages that take turns at the receiver and the slowest of them alone; 2 % for the print.
#[test]
fn sandias_transfers_lie_between_stages_in_turn_and_the_slowest_stage() {
    for (pair, key, transfer) in sandia() {
        let of = printed(key);
        let (least, most) = (transfer.rate(SIZE, 0), transfer.slowest());
        assert!(
            least < 1.02 * of && of < 1.02 * most,
            "{pair}: {least} {of} {most}"
        );
        assert!(
            least > 0.7 * of && most < 1.35 * of,
            "{pair}: {least} {of} {most}"
        );
    }
}

const WINDOWS: [u64; 6] = [8, 16, 24, 32, 48, 64];

/// S45: what the SP-2's nodes reach with a window of so many KiB.
fn windowed(window: u64) -> f64 {
    let [.., (_, _, mut pair)] = sandia();
    pair.window = Bytes(window << 10);
    pair.stream()
}

pub(crate) fn window_table() -> String {
    let mut table = String::from(
        "| default window | stream, Mb/s | of the printed FTP of 73.5 |\n|---|---|---|\n",
    );
    for window in WINDOWS {
        let rate = windowed(window);
        let _ = writeln!(
            table,
            "| {} | {rate:.1} | {:.2} |",
            kib(window),
            rate / printed("ftp.sp2_sp2")
        );
    }
    table
}

#[test]
fn below_the_printed_window_the_fastest_transfer_is_missed() {
    let (of, enough) = (printed("ftp.sp2_sp2"), bytes("ftp.window") >> 10);
    for window in WINDOWS {
        let rate = windowed(window);
        assert_eq!(rate >= of, window >= enough, "{window} KiB: {rate}");
    }
}

/// H36: a stream over HIPPI with the printed round trip, in segments of 60 KiB, and so many of them as its window: MB/s, and of the line.
fn segmented(segments: u64) -> (f64, f64) {
    let segment = bytes("hippi.segment");
    let half = millis("hippi.rtt").as_nanos() / 2;
    let line = format!("hippi-800:delay={half}ns:mtu={}", segment + 40);
    let spec = network(&line, "", "");
    let rate = tcp_expected(&spec, &sender(&spec, Bytes(segments * segment))).unwrap();
    let most = tcp_max(&spec, Headers::Plain).unwrap();
    (rate as f64 / 8e6, rate as f64 / most as f64)
}

/// The same between an RS/6000 and a Cray, in MB/s by the bytes of the window; their processors are the round trip.
fn clamped(window: u64) -> f64 {
    let segment = bytes("hippi.segment");
    let spec = network(
        &format!("hippi-800:mtu={}", segment + 40),
        WORKSTATION,
        CRAY,
    );
    tcp_expected(&spec, &sender(&spec, Bytes(window))).unwrap() as f64 / 8e6
}

pub(crate) fn segments_table() -> String {
    let mut table = String::from(
        "| segments of 60 KiB | window | MB/s, round trip of 3.1 ms | of the line | RS/6000 to Cray, MB/s |\n|---|---|---|---|---|\n",
    );
    for segments in 1..=8 {
        let window = segments * bytes("hippi.segment");
        let (rate, share) = segmented(segments);
        let _ = writeln!(
            table,
            "| {segments} | {} | {rate:.1} | {share:.2} | {:.1} |",
            kib(window >> 10),
            clamped(window)
        );
    }
    table
}

#[test]
fn six_segments_carry_the_printed_rate_and_the_clamp_suffices_a_workstation() {
    // 60 KiB: what an MTU close to 64 KiB leaves, down to a multiple of 4 KiB.
    let segment = (bytes("hippi.mtu") - 40) / 4_096 * 4_096;
    assert_eq!(segment, bytes("hippi.segment"));
    let six = bytes("hippi.segments");
    // No fewer of them carry what the study reached, in the round trip that it prints.
    let carries = (1..=8).find(|segments| segmented(*segments).0 >= printed("hippi.full"));
    assert_eq!(carries, Some(six));
    // With the clamp a workstation is as fast as it ever gets, to 1 %; with 64 KB it is not.
    let most = clamped(six * segment);
    assert!(clamped(bytes("hippi.clamp")) > 0.99 * most);
    assert!(clamped(bytes("hippi.small")) < 0.8 * most);
}

/// H37: a put of an RS/6000 from its memory to a Cray, and a get to its disk, which is as fast as Sandia's servers'.
fn swept(is_put: bool, window: u64, size: u64) -> f64 {
    let (client, server) = match is_put {
        true => (WORKSTATION, CRAY),
        false => (CRAY, WORKSTATION),
    };
    let transfer = Transfer {
        line: "hippi-800:mtu=61480",
        hosts: Some((client, server)),
        window: Bytes(window),
        copy: window,
        source_mbps: None,
        sink_mbps: (!is_put).then(|| printed("disk.server")),
    };
    // EPSV, connection, command and its end: four round trips.
    let opening_ns = 4 * millis("hippi.rtt").as_nanos();
    transfer.rate(size, opening_ns) / 8.0
}

const FILES: [u64; 7] = [64, 128, 256, 512, 1_024, 4_096, 16_384];

pub(crate) fn sweep_table() -> String {
    let mut table = String::from(
        "| file | put, 192 KiB, MB/s | put, 64 KiB | get, 192 KiB | get, 64 KiB |\n|---|---|---|---|---|\n",
    );
    let (large, small) = (bytes("hippi.clamp"), bytes("hippi.small"));
    for size in FILES {
        let rate = |is_put, window| swept(is_put, window, size << 10);
        let _ = writeln!(
            table,
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} |",
            kib(size),
            rate(true, large),
            rate(true, small),
            rate(false, large),
            rate(false, small)
        );
    }
    table
}

#[test]
fn tuned_buffers_help_puts_and_a_get_is_bound_by_the_disk() {
    let (large, small) = (bytes("hippi.clamp"), bytes("hippi.small"));
    let put = |window, size: u64| swept(true, window, size << 10);
    for window in [large, small] {
        let rates = FILES.map(|size| put(window, size));
        assert!(rates.is_sorted(), "{rates:?}");
    }
    // H40: a tuned buffer gives what was printed, for a large file.
    let gain = (put(large, FILES[6]) / put(small, FILES[6]) - 1.0) * 100.0;
    let range = printed("hippi.gain_least")..=printed("hippi.gain_most");
    assert!(range.contains(&gain), "{gain} %");
    // A get: below the disk, and little moved by buffers.
    let disk = printed("disk.server") / 8.0;
    let gets = [large, small].map(|window| swept(false, window, FILES[6] << 10));
    assert!(
        gets.iter().all(|rate| (0.5 * disk..disk).contains(rate)),
        "{gets:?}"
    );
}

#[derive(Deserialize)]
struct Applications {
    #[serde(rename = "application")]
    applications: Vec<Application>,
}

/// What is read here of a row of tables 1 and 2.
#[derive(Deserialize)]
struct Application {
    name: String,
    class: u8,
    datagram: Bytes,
    printed: Vec<Cell>,
    #[serde(default)]
    unreadable: Vec<String>,
}

#[derive(Deserialize)]
struct Cell {
    network: String,
    from: f64,
    to: Option<f64>,
}

impl Cell {
    fn most(&self) -> f64 {
        self.to.unwrap_or(self.from)
    }
}

fn applications() -> Vec<Application> {
    let text = include_str!("../data/applications.toml");
    toml::from_str::<Applications>(text).unwrap().applications
}

/// KB/s that a network has for datagrams of so many user bytes; one that is longer than a frame goes as full frames.
fn ours(column: &str, datagram: Bytes) -> f64 {
    let name = match column {
        "ethernet" => "ethernet-10",
        "hippi" => "hippi-800",
        other => other,
    };
    let spec = network(name, "", "");
    let payload = datagram.min(Bytes(spec.mtu - 28));
    udp_max(&spec, payload).unwrap() as f64 / 8e3
}

/// Why a cell is below its network, by what the print itself excludes, in this order.
fn cause(all: &[Application], one: &Application, cell: &Cell) -> &'static str {
    let rows = data().rows;
    let row = &rows[&one.name];
    if cell.most() >= 0.8 * ours(&cell.network, one.datagram) {
        return "none: the line";
    }
    if row.moves == "demand" {
        return "not tried";
    }
    if row.waits {
        return "window";
    }
    // A store that gives more in another cell is not what holds this one.
    let same_store = |other: &&Application| rows[&other.name].moves == row.moves;
    let cells = all.iter().filter(same_store).flat_map(|one| &one.printed);
    let most = cells.map(Cell::most).fold(0.0, f64::max);
    if row.moves != "memory" && cell.most() >= most {
        return "disk";
    }
    let window = bytes("hippi.window") as f64 / ms(millis("hippi.rtt"));
    if cell.most() >= 0.9 * window {
        return "window";
    }
    "host"
}

pub(crate) fn rates_table() -> String {
    let mut table = String::from(
        "| table | row | network | datagram | printed KB/s | ours | printed / ours | cause |\n|---|---|---|---|---|---|---|---|\n",
    );
    let all = applications();
    for one in &all {
        for cell in &one.printed {
            let rate = ours(&cell.network, one.datagram);
            let to = cell.to.map_or(String::new(), |to| format!(" to {to}"));
            let _ = writeln!(
                table,
                "| {} | {} | {} | {} | {}{to} | {rate:.0} | {:.2e} | {} |",
                one.class,
                one.name,
                cell.network,
                one.datagram,
                cell.from,
                cell.most() / rate,
                cause(&all, one, cell)
            );
        }
        for network in &one.unreadable {
            let rate = ours(network, one.datagram);
            let _ = writeln!(
                table,
                "| {} | {} | {network} | {} | unreadable | {rate:.0} | | |",
                one.class, one.name, one.datagram
            );
        }
    }
    table
}

#[test]
fn every_cell_of_both_tables_is_below_its_network_and_has_one_cause() {
    let all = applications();
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let rows = data().rows;
    assert!(rows.len() == names.len() && names.iter().all(|name| rows.contains_key(*name)));
    let mut count = std::collections::BTreeMap::new();
    for one in &all {
        for cell in &one.printed {
            let (rate, of) = (ours(&cell.network, one.datagram), cell.most());
            assert!(of <= rate, "{} {}: {of} of {rate}", one.name, cell.network);
            *count.entry(cause(&all, one, cell)).or_insert(0) += 1;
        }
    }
    let cause_of = |name: &str, network: &str| {
        let one = all.iter().find(|one| one.name == name).unwrap();
        let cell = one.printed.iter().find(|cell| cell.network == network);
        cause(&all, one, cell.unwrap())
    };
    assert_eq!(cause_of("ftp-binary", "hippi"), "disk");
    // The same disk gives more to another row, or over another network.
    assert_eq!(cause_of("ftp-ascii", "hippi"), "host");
    assert_eq!(cause_of("ftp-binary", "ethernet"), "host");
    // 384 KiB in 3.1 ms are more than 72 MB/s.
    assert_eq!(cause_of("tcp-mem", "hippi"), "host");
    assert_eq!(cause_of("framebuffer", "hippi"), "none: the line");
    assert_eq!(count.values().sum::<i32>(), 38);
}
