//! What two studies print of file services beside what the models give, and docs/old-files.md, whose tables are these.
//!
//! Model:   NFS runs on virtual time over networks of the catalogue, between hosts whose processors cost time. FTP is the arithmetic of its
//!          stages (`old_files_ftp.rs`), whose times are those of modelled disks and of streams on virtual time. The rate of a network for
//!          datagrams is its closed form. One service time is fitted, and its row says so.
//! Source:  `old_files.toml`; crates/sonde/data/applications.toml for the rows of tables 1 and 2; requirements S41 to S45, H20, H36,
//!          H37, H40, H46 to H51, H66.
//! Units:   as printed: Mb/s, MB/s and KB/s of 1000 bytes, ms; bytes otherwise.

use serde::Deserialize;
use sonde_link::{NetworkSpec, resolve};
use sonde_units::{BitRate, Bytes, Span};
use sonde_virtual::{Sender, tcp_expected};
use sonde_workload::files::disk;
use sonde_workload::files::nfs::{Stable, Version};
use sonde_workload::files::server;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::files_virtual::{Carrier, World, client, mbps, service};
use crate::old_files_ftp as ftp;

const PAGE: &str = include_str!("../../../docs/old-files.md");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    #[serde(rename = "figure")]
    figures: Vec<Figure>,
    pub(crate) rows: BTreeMap<String, Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    key: String,
    value: f64,
    #[expect(dead_code, reason = "for who reads the file")]
    unit: String,
    #[expect(dead_code, reason = "for who reads the file")]
    kind: String,
    #[expect(dead_code, reason = "for who reads the file")]
    at: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) moves: String,
    #[serde(default)]
    pub(crate) waits: bool,
}

pub(crate) fn data() -> Data {
    toml::from_str(include_str!("old_files.toml")).unwrap()
}

pub(crate) fn printed(key: &str) -> f64 {
    let all = data().figures;
    let found = all.iter().find(|figure| figure.key == key);
    found.unwrap_or_else(|| panic!("no figure {key}")).value
}

pub(crate) fn bytes(key: &str) -> u64 {
    printed(key) as u64
}

pub(crate) fn millis(key: &str) -> Span {
    Span::micros((printed(key) * 1e3) as u64)
}

/// A network, with two hosts where a client is given: h1, from which a stream goes, and h2.
pub(crate) fn network(selector: &str, client: &str, server: &str) -> NetworkSpec {
    let mut spec = resolve(selector, &|_| Err("no file".into())).unwrap();
    if !client.is_empty() {
        let hosts = format!("{client}\n[[unlike]]\nat = [2]\n{server}");
        spec.host = Some(toml::from_str(&hosts).unwrap());
    }
    spec
}

/// A host of that time. A receiver tells its window at once where a segment is half of it or more (4.3BSD-Reno, `tcp_output`), so that a
/// window of one segment does not wait for a delayed acknowledgement.
pub(crate) fn sender(spec: &NetworkSpec, window: Bytes) -> Sender {
    let mut sender = Sender::era(window);
    if 2 * sender.headers.segment(Bytes(spec.mtu)).0 >= window.0 {
        sender.delayed_ack = Span::micros(1);
    }
    sender
}

// Solaris 2.3 copies three times; the file server has the older processors.
pub(crate) const FILE_SERVER: &str = "preset = \"sparccenter\"\ncopies = 3\nspeed = \"37/45\"";
pub(crate) const SPARC_20: &str = "preset = \"sparc-20\"";
const UPGRADED: &str = "preset = \"sparccenter\"\nspeed = \"37/45\"";
const COMPUTE_SERVER: &str = "preset = \"sparccenter\"\ncopies = 3";
pub(crate) const SP2: &str = "preset = \"sp2-node\"";
pub(crate) const CRAY: &str = "preset = \"cray-c90\"";

/// Reads of 8 KiB by version 2: how many are outstanding, and how many the server works on at once.
#[derive(Clone, Copy)]
struct Mount {
    outstanding: usize,
    daemons: usize,
}

const WAITS: Mount = Mount {
    outstanding: 1,
    daemons: 1,
};
const AHEAD: Mount = Mount {
    outstanding: 2,
    daemons: 1,
};

fn reads(spec: &NetworkSpec, mount: Mount, each: Span) -> f64 {
    let transfer = bytes("nfs.transfer");
    let terms = client(Version::V2, transfer as u32, mount.outstanding);
    let server = service(each, mount.daemons);
    let mut world = World::over(spec, Carrier::Datagram, terms, server, 1 << 20);
    let file = world.create();
    let size = 64 * transfer;
    world.write(file, size);
    mbps(size, world.read(file, size))
}

/// The service time with which a pair reads at a rate.
fn fitted(spec: &NetworkSpec, mount: Mount, rate: f64) -> Span {
    let (mut low, mut high) = (0, 30_000);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if reads(spec, mount, Span::micros(middle)) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    Span::micros(low)
}

pub(crate) fn ms(span: Span) -> f64 {
    span.as_picos() as f64 / 1e9
}

struct Pairs {
    service: Span,
    atm: f64,
    sp2: f64,
    /// The service time that the third pair would need.
    other: Span,
}

/// S41: the service time comes of the pair over Ethernet, the other pairs from it.
fn pairs(mount: Mount) -> Pairs {
    let desktop = |selector| network(selector, SPARC_20, FILE_SERVER);
    let each = fitted(&desktop("ethernet-10"), mount, printed("nfs.ethernet"));
    let sp2 = network("atm-oc3c", SP2, COMPUTE_SERVER);
    Pairs {
        service: each,
        atm: reads(&desktop("atm-oc3c"), mount, each),
        sp2: reads(&sp2, mount, each),
        other: fitted(&sp2, mount, printed("nfs.sp2")),
    }
}

/// S42: 64 KiB by version 3 with asynchronous writes, over TCP, by the service time that was fitted.
fn version_three(mount: Mount, each: Span) -> f64 {
    let transfer = bytes("nfs3.transfer");
    let mut terms = client(Version::V3, transfer as u32, mount.outstanding);
    terms.stable = Stable::Unstable;
    let spec = network("atm-oc3c", SPARC_20, FILE_SERVER);
    let server = service(each, mount.daemons);
    let mut world = World::over(&spec, Carrier::Record, terms, server, 1 << 20);
    let file = world.create();
    let size = 64 * transfer;
    mbps(size, world.write(file, size))
}

/// S43: what fewer copies at the server give, in per cent.
fn upgrade(each: Span) -> f64 {
    let rate = |server| reads(&network("atm-oc3c", SPARC_20, server), WAITS, each);
    (rate(UPGRADED) / rate(FILE_SERVER) - 1.0) * 100.0
}

fn sandia_nfs() -> String {
    let mut table = String::from(
        "| pair, and what is fitted | printed Mb/s | one call outstanding | ours / printed | two outstanding | ours / printed |\n|---|---|---|---|---|---|\n",
    );
    let (waits, ahead) = (pairs(WAITS), pairs(AHEAD));
    let _ = writeln!(
        table,
        "| Sparc 20 to file server, Ethernet | {} | fitted: {:.1} ms each | | fitted: {:.1} ms each | |",
        printed("nfs.ethernet"),
        ms(waits.service),
        ms(ahead.service)
    );
    for (pair, key, one, two) in [
        (
            "Sparc 20 to file server, ATM",
            "nfs.atm",
            waits.atm,
            ahead.atm,
        ),
        (
            "SP-2 to compute server, ATM",
            "nfs.sp2",
            waits.sp2,
            ahead.sp2,
        ),
    ] {
        let of = printed(key);
        let _ = writeln!(
            table,
            "| {pair} | {of} | {one:.2} | {:.2} | {two:.2} | {:.2} |",
            one / of,
            two / of
        );
    }
    let _ = writeln!(
        table,
        "| the same, another service time | {} | fitted: {:.1} ms each | | fitted: {:.1} ms each | |",
        printed("nfs.sp2"),
        ms(waits.other),
        ms(ahead.other)
    );
    let _ = writeln!(
        table,
        "| Sparc 20 to file server, ATM, version 3, 64 KiB, asynchronous | above {} | {:.1} | | {:.1} | |",
        printed("ethernet"),
        version_three(WAITS, waits.service),
        version_three(AHEAD, ahead.service)
    );
    let _ = writeln!(
        table,
        "| gain of Solaris 2.4, its fewer copies alone | {} % claimed | {:.1} % | {:.2} | | |",
        printed("nfs.upgrade"),
        upgrade(waits.service),
        upgrade(waits.service) / printed("nfs.upgrade")
    );
    table
}

#[test]
fn sandias_pairs_follow_from_one_service_time_but_for_the_other_server() {
    let (waits, ahead) = (pairs(WAITS), pairs(AHEAD));
    let off = |pair: &Pairs| pair.atm / printed("nfs.atm");
    // A client that reads ahead hides what the network takes: 7 % off. One that waits gains all the wire's 7 ms, and is not what was seen.
    assert!((0.92..1.0).contains(&off(&ahead)), "{}", off(&ahead));
    assert!(off(&waits) > 1.2, "{}", off(&waits));
    // The third pair has another server: its figure does not follow from the first one's service time.
    for pair in [&waits, &ahead] {
        assert!(pair.sp2 < 0.5 * printed("nfs.sp2"), "{}", pair.sp2);
        assert!(
            ms(pair.other) < 0.6 * ms(pair.service),
            "{}",
            ms(pair.other)
        );
    }
}

#[test]
fn sandias_version_three_is_well_above_ethernet() {
    for mount in [WAITS, AHEAD] {
        let rate = version_three(mount, pairs(mount).service);
        // Well above: half as much again at least.
        assert!(rate > 1.5 * printed("ethernet"), "{rate}");
    }
}

#[test]
fn fewer_copies_do_not_give_the_claimed_upgrade() {
    let gain = upgrade(pairs(WAITS).service);
    assert!(
        gain > 0.0 && gain < 0.3 * printed("nfs.upgrade"),
        "{gain} %"
    );
}

/// Writes or reads of the HIPPI study's server: calls of `transfer`, so many outstanding, of so many contexts.
struct Asked<'a> {
    network: &'a str,
    version: Version,
    transfer: u64,
    outstanding: usize,
    contexts: usize,
    each: Span,
}

/// Megabytes and calls a second.
fn served(asked: &Asked<'_>) -> (f64, f64) {
    let mut terms = client(asked.version, asked.transfer as u32, asked.outstanding);
    if asked.version == Version::V3 {
        terms.stable = Stable::Unstable;
    }
    let spec = network(asked.network, "", "");
    let server = service(asked.each, asked.contexts);
    let mut world = World::over(&spec, Carrier::Datagram, terms, server, 2 << 20);
    let file = world.create();
    let calls = 240;
    let size = calls * asked.transfer;
    let rate = mbps(size, world.write(file, size)) / 8.0;
    (rate, rate * 1e6 / asked.transfer as f64)
}

fn usual(network: &str) -> Asked<'_> {
    Asked {
        network,
        version: Version::V2,
        transfer: bytes("hippi.transfer"),
        outstanding: 1,
        contexts: 4,
        each: millis("hippi.service"),
    }
}

fn capacity(network: &str, each: Span) -> f64 {
    served(&Asked {
        outstanding: 16,
        each,
        ..usual(network)
    })
    .1
}

fn large_window(network: &str) -> f64 {
    served(&Asked {
        transfer: bytes("hippi.outstanding") / 6,
        outstanding: 6,
        contexts: 8,
        ..usual(network)
    })
    .0
}

fn standard(network: &str) -> f64 {
    served(&Asked {
        transfer: 8_192,
        ..usual(network)
    })
    .0
}

fn version_three_beside(network: &str) -> f64 {
    served(&Asked {
        version: Version::V3,
        transfer: 57_344,
        ..usual(network)
    })
    .0
}

fn hippi_nfs() -> String {
    let mut table = String::from(
        "| what | printed | the service alone | ours / printed | with the line, `hippi-800` | ours / printed |\n|---|---|---|---|---|---|\n",
    );
    let mut row = |what: &str, of: Option<(f64, &str)>, alone: f64, line: f64| {
        let text = of.map_or("not printed".into(), |(of, unit)| format!("{of} {unit}"));
        let share = |ours: f64| of.map_or(String::new(), |(of, _)| format!("{:.2}", ours / of));
        let digits = usize::from(alone < 100.0) + usize::from(alone < 10.0);
        let _ = writeln!(
            table,
            "| {what} | {text} | {alone:.digits$} | {} | {line:.digits$} | {} |",
            share(alone),
            share(line)
        );
    };
    let (alone, line) = (served(&usual("wire")), served(&usual("hippi-800")));
    let of = |key, unit| Some((printed(key), unit));
    row(
        "60 KiB, 7 ms, one outstanding",
        of("hippi.nfs", "MB/s"),
        alone.0,
        line.0,
    );
    row("the same", of("hippi.calls", "calls/s"), alone.1, line.1);
    for (what, micros) in [("7", 7_000), ("6.5", 6_500), ("7.5", 7_500)] {
        let each = Span::micros(micros);
        row(
            &format!("four contexts of {what} ms"),
            of("hippi.capacity", "calls/s, or more"),
            capacity("wire", each),
            capacity("hippi-800", each),
        );
    }
    row(
        "342 KB outstanding: six calls of 57 KiB, eight contexts",
        of("hippi.large", "MB/s"),
        large_window("wire"),
        large_window("hippi-800"),
    );
    row(
        "8 KiB in place of 60, MB/s",
        None,
        standard("wire"),
        standard("hippi-800"),
    );
    table
}

#[test]
fn the_service_alone_gives_what_the_study_prints() {
    let near = |ours: f64, key: &str, share: f64| {
        let of = printed(key);
        assert!((ours / of - 1.0).abs() <= share, "{key}: {ours} of {of}");
    };
    // Printed with two digits each.
    let (rate, calls) = served(&usual("wire"));
    near(rate, "hippi.nfs", 0.01);
    near(calls, "hippi.calls", 0.025);
    near(large_window("wire"), "hippi.large", 0.01);
    // The line is what they leave out.
    let (rate, calls) = served(&usual("hippi-800"));
    near(rate, "hippi.nfs", 0.10);
    near(calls, "hippi.calls", 0.10);
    near(large_window("hippi-800"), "hippi.large", 0.10);
    // 7 ms are printed with one digit: 6.5 to 7.5, between which is the capacity.
    let of = printed("hippi.capacity");
    near(capacity("wire", Span::millis(7)), "hippi.capacity", 0.05);
    let [most, least] = [6_500, 7_500].map(|each| capacity("wire", Span::micros(each)));
    assert!(least < of && of < most, "{least} {of} {most}");
}

#[test]
fn large_transfers_are_what_the_service_is_divided_by() {
    let ratio = served(&usual("wire")).0 / standard("wire");
    assert!((ratio / 7.5 - 1.0).abs() < 0.01, "{ratio}");
    // On the line 60 KiB take 0.6 ms.
    let ratio = served(&usual("hippi-800")).0 / standard("hippi-800");
    assert!((6.5..7.5).contains(&ratio), "{ratio}");
}

/// H51: comparable, which we read as within a factor of two, where one call is outstanding.
#[test]
fn version_three_is_comparable_over_atm() {
    let [hippi, oc3, oc12] = ["hippi-800", "atm-oc3c", "atm-oc12c"].map(version_three_beside);
    assert!(oc3 < oc12 && oc12 < hippi && hippi < 2.0 * oc3);
}

fn version_three_table() -> String {
    let mut table = String::from("| network | MB/s | of HIPPI's |\n|---|---|---|\n");
    let hippi = version_three_beside("hippi-800");
    for network in ["hippi-800", "atm-oc12c", "atm-oc3c"] {
        let rate = version_three_beside(network);
        let _ = writeln!(table, "| `{network}` | {rate:.2} | {:.2} |", rate / hippi);
    }
    table
}

/// How a file comes or goes, of the sweep of H48.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Disk,
    Memory,
    Sync,
    Async,
}

const SIZES: [u64; 8] = [8, 32, 64, 128, 256, 512, 2_048, 8_192];

/// MB/s of a file of so many bytes by calls of `transfer`, over HIPPI; the server has four contexts of 1 ms and a disk.
fn filed(how: How, size: u64, transfer: u32) -> f64 {
    let disk = disk::Terms {
        rate: BitRate::mbit(printed("disk.server") as u64),
        seek: Span::millis(10),
        cache: Bytes(if how == How::Disk { 0 } else { 16 << 20 }),
    };
    let terms = server::Terms {
        disk: Some(disk),
        is_async: how != How::Sync,
        ..service(Span::millis(1), 4)
    };
    let spec = network("hippi-800", CRAY, CRAY);
    let mount = client(Version::V2, transfer, 6);
    let mut world = World::over(&spec, Carrier::Datagram, mount, terms, 2 << 20);
    let file = world.create();
    let written = world.write(file, size);
    let took = match how {
        How::Disk | How::Memory => world.read(file, size),
        How::Sync | How::Async => written,
    };
    mbps(size, took) / 8.0
}

pub(crate) fn kib(size: u64) -> String {
    match size {
        1_024.. => format!("{} MiB", size >> 10),
        _ => format!("{size} KiB"),
    }
}

const HOWS: [How; 4] = [How::Disk, How::Memory, How::Sync, How::Async];

fn writes_table() -> String {
    let mut table = String::from(
        "| file | read, from the disk | read, from the server's memory | written, synchronous | written, asynchronous |\n|---|---|---|---|---|\n",
    );
    for size in SIZES {
        let rates = HOWS.map(|how| format!("{:.2}", filed(how, size << 10, 61_440)));
        let _ = writeln!(table, "| {} | {} |", kib(size), rates.join(" | "));
    }
    table
}

/// The least file of the sweep by which half of what large reads from the disk reach is passed.
fn edge(how: How) -> u64 {
    let half = filed(How::Disk, SIZES[7] << 10, 61_440) / 2.0;
    let passes = |size: &&u64| filed(how, **size << 10, 61_440) >= half;
    *SIZES.iter().find(passes).unwrap()
}

#[test]
fn synchronous_writes_stay_below_and_the_edge_of_asynchronous_ones_is_earlier() {
    for size in SIZES {
        let [_, memory, sync, behind] = HOWS.map(|how| filed(how, size << 10, 61_440));
        assert!(sync < 0.6 * memory && sync < behind, "{size}");
    }
    // They rise with what is asked for at once.
    let by = [1_024, 8_192, 61_440].map(|transfer| filed(How::Async, 1 << 20, transfer));
    assert!(by[1] > 4.0 * by[0] && by[2] > 2.0 * by[1], "{by:?}");
    // Reads wait for the disk. Those from memory do not, and have the edge where writes have it.
    assert!(edge(How::Async) < edge(How::Disk));
    assert_eq!(edge(How::Async), edge(How::Memory));
}

/// H66: what the network takes of a request, from the host's stages as printed and a stream on virtual time.
struct Request {
    network_ms: f64,
    share: f64,
    line: f64,
}

fn request() -> Request {
    let spec = network("hippi-800", CRAY, CRAY);
    let window = Bytes(bytes("hippi.segments") * bytes("hippi.segment"));
    let rate = tcp_expected(&spec, &sender(&spec, window)).unwrap() as f64;
    let bits = printed("request.size") * 8.0;
    let network_ms = bits / rate * 1e3;
    let before = printed("request.before");
    let all = before + network_ms + printed("request.after");
    // As the study has it: until the network is done, of a line of 100 MB/s.
    let line = bits / (before + network_ms) * 1e3 / 800e6;
    Request {
        network_ms,
        share: network_ms / all * 100.0,
        line: line * 100.0,
    }
}

fn request_table() -> String {
    let mut table =
        String::from("| of a request | printed | ours | ours / printed |\n|---|---|---|---|\n");
    let ours = request();
    for (what, key, value) in [
        ("network, ms", "request.network", ours.network_ms),
        ("its share of the time, %", "request.share", ours.share),
        ("of the line, %", "request.line", ours.line),
    ] {
        let of = printed(key);
        let _ = writeln!(table, "| {what} | {of} | {value:.0} | {:.2} |", value / of);
    }
    let waits = served(&usual("hippi-800")).1;
    let each = ms(millis("hippi.service"));
    let share = (1.0 - each * waits / 1e3) * 100.0;
    let _ = writeln!(
        table,
        "| network's share of an NFS call of 60 KiB and 7 ms, % | not printed | {share:.0} | |"
    );
    table
}

#[test]
fn the_networks_share_of_a_request_is_what_was_printed() {
    let ours = request();
    for (key, value) in [("request.share", ours.share), ("request.line", ours.line)] {
        let ratio = value / printed(key);
        // The hosts' costs come of the 70 MB/s of another figure; their split is uncertain.
        assert!((ratio - 1.0).abs() < 0.12, "{key}: {value}");
    }
}

/// The table below a heading of the page.
fn table_of<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("## {heading}\n"))
        .unwrap_or_else(|| panic!("the page has no `{heading}`"));
    let begin = rest.find("\n|").map_or(0, |at| at + 1);
    let end = rest[begin..]
        .find("\n\n")
        .map_or(rest.len(), |at| begin + at + 1);
    &rest[begin..end]
}

#[test]
fn the_page_has_the_tables() {
    let tables = [
        ("NFS at Sandia", sandia_nfs()),
        ("NFS over HIPPI", hippi_nfs()),
        ("Version 3 over HIPPI and over ATM", version_three_table()),
        ("Synchronous and asynchronous writes", writes_table()),
        ("A request's network", request_table()),
        ("FTP at Sandia", ftp::sandia_table()),
        ("A window that FTP cannot set", ftp::window_table()),
        ("Six segments", ftp::segments_table()),
        ("Puts and gets", ftp::sweep_table()),
        ("Tables 1 and 2 of the HIPPI study", ftp::rates_table()),
    ];
    let mut wrong = String::new();
    for (heading, table) in &tables {
        if table_of(PAGE, heading) != table {
            let _ = writeln!(wrong, "## {heading}\n\n{table}");
        }
    }
    assert!(wrong.is_empty(), "these tables are now:\n{wrong}");
}
