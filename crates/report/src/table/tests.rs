//! Tables as a person sees them.

use super::*;
use crate::testing::{Runs, assessment, net, verdict};

fn two_networks() -> Runs {
    Runs::new()
        .network(net("loopback").mtu(65_536))
        .network(net("atm-oc3c:vc=svc").mtu(9_180).tcp_max(134_340_000))
        .latency("loopback", "tcp", 1, 4_021)
        .stream("loopback", "tcp", 19_970_000_000)
        .beside(Quantity::CpuSrcNsPerByte, 301)
        .beside(Quantity::CpuDstNsPerByte, 388)
        .verdict(verdict(0))
        .startup("atm-oc3c:vc=svc", "tcp", 8, None, 21_412_345)
        .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::First), 130_400)
        .startup("atm-oc3c:vc=svc", "tcp", 8, Some(Step::Second), 101_200)
        .latency("atm-oc3c:vc=svc", "tcp", 1, 48_700)
        .message("atm-oc3c:vc=svc", "tcp", 1_024, 30_000_000)
        .message("atm-oc3c:vc=svc", "tcp", 8_192, 90_000_000)
        .verdict(verdict(300))
        .stream("atm-oc3c:vc=svc", "tcp", 134_206_000)
        .latency("atm-oc3c:vc=svc", "udp", 1, 41_300)
}

const SUMMARY: &str = "
network          path  cold start  first  second  latency  stream  ceiling  reached    n½    src    dst          state
                               µs     µs      µs       µs    Mb/s     Mb/s        %     B   ns/B   ns/B
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
loopback         tcp            -      -       -    4.021  19 970        -        -     -  0.301  0.388          sound
atm-oc3c:vc=svc  tcp       21 412  130.4   101.2    48.70   134.2    134.3     99.9  3713      -      -  1/5 uncertain
atm-oc3c:vc=svc  udp            -      -       -    41.30       -        -        -     -      -      -  1/1 uncertain

Medians. cold start: time to first reply including ARP and connect (8 B); first, second: round trips of its first
messages; latency: one-way latency, RTT/2, warm (1 B); n½: half-performance size, at which single messages reach half of
the ceiling, or of their own best; src, dst: CPU time per byte of the sender and the receiver; state: whether the
figures are sound, or how many of them are uncertain. 2 of 8 figures uncertain: the emulation behind schedule (2).";

#[test]
fn the_summary_reads_without_a_plot() {
    let run = two_networks().done();
    let text = summary_table(&run, 200);
    assert_eq!(text, SUMMARY.trim_start_matches('\n'), "\n{text}");
}

const NARROW: &str = "
network          path  cold start  first  second  latency
                               µs     µs      µs       µs
──────────────────────────────────────────────────────────
loopback         tcp            -      -       -    4.021
atm-oc3c:vc=svc  tcp       21 412  130.4   101.2    48.70
atm-oc3c:vc=svc  udp            -      -       -    41.30

network          path  stream  ceiling  reached    n½    src    dst          state
                         Mb/s     Mb/s        %     B   ns/B   ns/B
──────────────────────────────────────────────────────────────────────────────────
loopback         tcp   19 970        -        -     -  0.301  0.388          sound
atm-oc3c:vc=svc  tcp    134.2    134.3     99.9  3713      -      -  1/5 uncertain
atm-oc3c:vc=svc  udp        -        -        -     -      -      -  1/1 uncertain
";

#[test]
fn a_narrow_terminal_has_two_tables() {
    let run = two_networks().done();
    let text = summary_table(&run, 82);
    let tables = text.split("\n\nMedians").next().unwrap();
    assert_eq!(tables, NARROW.trim_matches('\n'), "\n{text}");
}

#[test]
fn several_waits_are_a_column() {
    let run = two_networks()
        .wait("poll")
        .latency("atm-oc3c:vc=svc", "udp", 1, 38_000)
        .done();
    let text = summary_table(&run, 200);
    assert!(
        text.starts_with("network          path  completion "),
        "{text}"
    );
    assert!(text.contains("udp   poll        "), "{text}");
}

const LOADED: &str = "
network   path  load  cold start  first  second  latency  stream  ceiling  reached  n½   src   dst  state
                              µs     µs      µs       µs    Mb/s     Mb/s        %   B  ns/B  ns/B
──────────────────────────────────────────────────────────────────────────────────────────────────────────
atm-oc3c  udp   idle           -      -       -    40.00       -        -        -   -     -     -  sound
atm-oc3c  udp   0.9            -      -       -    52.10       -        -        -   -     -     -  sound
";

#[test]
fn a_load_is_a_line_of_its_own() {
    let runs = Runs::new()
        .network(net("atm-oc3c").line(155_520_000))
        .latency("atm-oc3c", "udp", 1, 40_000)
        .stream("atm-oc3c", "udp", 134_000_000);
    assert_eq!(queueing_table(&runs.done(), 200), None);
    let run = Runs::new()
        .network(net("atm-oc3c").line(155_520_000))
        .latency("atm-oc3c", "udp", 1, 40_000)
        .latency("atm-oc3c", "udp", 16_384, 2_000_000)
        .load("0.9")
        .latency("atm-oc3c", "udp", 16_384, 9_000_000)
        .setting("load.model_idle_ns", "16223")
        .setting("load.model_loaded_ns", "28323")
        .latency("atm-oc3c", "udp", 1, 52_100)
        .done();
    let text = summary_table(&run, 200);
    let table = text.split("\n\nMedians").next().unwrap();
    assert_eq!(table, LOADED.trim_matches('\n'), "\n{text}");
    assert!(
        text.contains("load: background traffic, as a share of a link"),
        "{text}"
    );
    let text = queueing_table(&run, 200).unwrap();
    assert_eq!(text, QUEUED.trim_matches('\n'), "\n{text}");
}

const QUEUED: &str = "
network   path  load    size   idle  loaded  waits  95 % interval  model  model is
                           B     µs      µs     µs             µs     µs
───────────────────────────────────────────────────────────────────────────────────
atm-oc3c  udp   0.9   16 384   2000    9000   7000    7000 – 7000      -         -
atm-oc3c  udp   0.9        1  40.00   52.10  12.10  12.10 – 12.10  12.10    within

One-way latency (RTT/2), warm; waits: loaded less idle, with its 95 % interval; model: the same on the virtual clock,
for messages of one frame, and whether it lies in the interval.
";

const ROWS: &str = "
network wire, path udp, method plain, completion block
probe              repetitions  phase  quantity    size B      p50      95 % interval       n      min  p99      max
─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
latency            6            warm   latency µs      64    10.00      10.00 – 15.00     120    10.00    -    15.00
throughput stream  6            warm   rate Mb/s   65 536    957.0      957.0 – 957.0       6    957.0    -    957.0
throughput stream  6            warm   lost %      65 536  0.03120  0.03120 – 0.03120       6  0.03120    -  0.03120
latency            0            warm   latency µs       8        -                  -  failed        -    -        -
6 failed: h2 is gone: \\u{1b}[31mlook there
";

#[test]
fn rows_name_what_differs() {
    let run = Runs::new()
        .network(net("wire"))
        .spread(0.5)
        .latency("wire", "udp", 64, 10_000)
        .spread(0.0)
        .stream("wire", "udp", 957_000_000)
        .beside(Quantity::LostShare, 312)
        .failed_cell("wire", "udp", "h2 is gone: \u{1b}[31mlook there")
        .done();
    let text = rows_table(&run.rows(), 200);
    assert_eq!(text, ROWS.trim_matches('\n'), "\n{text}");
}

const FINDINGS: &str = "
advice   The window limits the stream over tcp on wan: 65 535 B a round trip of
         20.05 ms is 26.15 Mb/s, and 26.00 Mb/s was measured, 27.6 % of what the
         network allows. [window-limited]
         = 65 535 B x 8 / 20.05 ms = 26.15 Mb/s
         → `--profile modern`; on real hosts give the receiving host room for
         235 959 B in flight: `sysctl -w net.ipv4.tcp_rmem=\"4096 131072 471918\"`
         (half of a buffer is the kernel's own), and
         net.ipv4.tcp_window_scaling=1 above 65 535 B
advice   The stream over tcp on wan reaches 26.00 Mb/s, 27.6 % of what the
         network allows. [below-expectation]
         = 26.00 Mb/s / 94.15 Mb/s = 27.6 %
         → see window-limited, which explains it
";

#[test]
fn findings_are_wrapped() {
    let run = Runs::new()
        .network(net("wan").tcp_max(94_148_000))
        .profile("era:window=65535")
        .latency("wan", "tcp", 1, 10_025_000)
        .stream("wan", "tcp", 26_000_000)
        .done();
    let text = findings_text(&View::of(&run), 80);
    assert_eq!(text, FINDINGS.trim_matches('\n'), "\n{text}");
}

#[test]
fn a_remedy_of_several_is_said_once() {
    let view = View::of(&assessment());
    let text = findings_text(&view, 100);
    let cold = view
        .findings
        .iter()
        .filter(|finding| finding.rule == "cold-start")
        .count();
    assert!(cold > 1);
    assert_eq!(text.matches("→ keep the addresses").count(), 1, "{text}");
    assert_eq!(text.matches("[cold-start]").count(), cold);
}

#[test]
fn hostile_names_stay_in_their_line() {
    let name = "evil\u{1b}[2J\nname\u{202e}";
    let run = Runs::new()
        .network(net(name))
        .latency(name, "tcp", 1, 10_000)
        .failed_cell(name, "udp", "a\nb\u{7}")
        .done();
    let view = View::of(&run);
    for text in [
        summary_table(&run, 80),
        rows_table(&run.rows(), 80),
        findings_text(&view, 80),
    ] {
        assert!(
            text.chars()
                .all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}')),
            "{text:?}"
        );
        assert!(!text.contains("\nname"), "{text}");
    }
}

#[test]
fn nothing_measured_is_said() {
    let empty = Runs::new().done();
    assert_eq!(summary_table(&empty, 80), "Nothing was measured.");
    assert_eq!(rows_table(&[], 80), "Nothing was measured.");
    assert!(findings_text(&View::of(&empty), 80).starts_with("warning  Nothing was measured."));
    let failed = Runs::new()
        .network(net("wire"))
        .failed_cell("wire", "tcp", "h2 is gone")
        .done();
    assert!(summary_table(&failed, 80).contains("wire     tcp"));
    assert!(rows_table(&failed.rows(), 80).contains("h2 is gone"));
    assert!(findings_text(&View::of(&failed), 80).contains("h2 is gone"));
    assert!(!View::of(&failed).verdict.is_empty());
}

fn kernels() -> Runs {
    let net = net("atm-oc3c").technology("atm");
    Runs::new()
        .network(net)
        .spread(0.01)
        .on(1)
        .kernel("atm-oc3c", "native:shm", "is upc 4", 100_000_000)
        .on(4)
        .kernel("atm-oc3c", "pvm:direct", "is upc 4", 250_000_000)
        .beside(Quantity::MopPerS, 20_972)
        .beside(Quantity::CommunicatingShare, 731_000)
        .beside(Quantity::Messages, 612)
        .beside(Quantity::MessageBytesMean, 51_234_000)
        .beside(Quantity::MessageBytesMedian, 131_072)
        .load("0.9")
        .kernel("atm-oc3c", "pvm:direct", "is upc 4", 900_000_000)
}

const KERNELS: &str = "
kernel  load      1 host     4 hosts
              native:shm  pvm:direct  printed
──────────────────────────────────────────────
is      idle        1.00        2.50     2.27
is      0.9            -        9.00     8.68

Kernels by place: relative to the idle time of 4 ranks over native:shm on one host; intervals are below. Printed: UPC
SABA, virtual parallel machine on a broadband ATM network, Table 2, relative to its own reference, SGI Origin 2000, four
of its processors. -: not measured, or not printed.

kernel  path        ranks  hosts  load    time             95 %  communicating  Mop/s  of reference         95 %  printed  of its own
                                             s                s              %                times        times        s       times
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
is      native:shm  4      1      idle  0.1000  0.1000 – 0.1010              -      -          1.00            -        -           -
is      pvm:direct  4      4      idle  0.2500  0.2500 – 0.2525           73.1  20.97          2.50  2.49 – 2.51    11.34        2.27
is      pvm:direct  4      4      0.9   0.9000  0.9000 – 0.9090              -      -          9.00  8.96 – 9.04    43.30        8.68

Kernels of sonde, verified against the official values of the NAS benchmarks; not NPB results. Time: of the longest rank
(ft: rank 0), the median of all runs; communicating: the ranks' time in calls of the library, the rest is computing. Of
reference: relative to the idle time of 4 ranks over native:shm on one host. Printed: UPC SABA, virtual parallel machine
on a broadband ATM network, Table 2, of machines of its time; of its own: relative to its own reference.

kernel  ranks  path        messages    mean   median   printed    mean   median
                                          B        B  messages       B        B
────────────────────────────────────────────────────────────────────────────────
is      4      pvm:direct       612  51 234  131 072       599  71 364  130 016

Messages of all ranks in the timed part, without a library's own collectives. Printed: UPC SABA, virtual parallel
machine on a broadband ATM network, Table 1.

kernel  machine                                               printed  of its own
                                                                    s       times
──────────────────────────────────────────────────────────────────────────────────
is      SGI Origin 2000, four of its processors                 4.990        1.00
is      an ideal ATM cluster, simulated, from the literature    3.600       0.721

Printed for other machines: UPC SABA, virtual parallel machine on a broadband ATM network, Table 2.";

#[test]
fn messages_are_told_with_their_statistic() {
    let run = Runs::new()
        .network(net("atm-oc3c").technology("atm"))
        .spread(0.01)
        .messages("atm-oc3c", "pvm:direct", "upc:cg 4", 250_000_000)
        .beside(Quantity::Messages, 7_116)
        .beside(Quantity::MessageBytes, 13_968_708)
        .beside(Quantity::MessageBytesMean, 1_963_000)
        .beside(Quantity::MessageBytesMedian, 8)
        .load("0.9")
        .setting("ranks", "4")
        .messages("atm-oc3c", "pvm:direct", "upc:cg", 900_000_000)
        .done();
    let text = messages_table(&run, 200).unwrap();
    let wanted = "
messages of  path        ranks  load   time           95 %  messages  bytes  mean  median
                                         ms             ms               MB     B       B
──────────────────────────────────────────────────────────────────────────────────────────
upc:cg       pvm:direct  4      idle  250.0  250.0 – 252.5      7116  13.97  1963       8
upc:cg       pvm:direct  4      0.9   900.0  900.0 – 909.0         -      -     -       -
";
    assert!(text.starts_with(wanted.trim()), "{text}");
    assert!(text.contains("without its computation"), "{text}");
    // It is not a line of a transport, nor a kernel.
    assert!(kernel_table(&run, 200).is_none());
    assert!(!summary_table(&run, 200).contains("pvm:direct"));
    assert!(messages_table(&kernels().done(), 200).is_none());
}

#[test]
fn checks_are_right_or_wrong() {
    let mut run = Runs::new()
        .network(net("lan"))
        .check("lan", "native:tcp", "2", [59, 40])
        .check("lan", "native:tcp", "5", [59, 100])
        .done();
    let wrong = run.launches.last_mut().unwrap();
    wrong.results[0].failure = Some("byte 3 of 8 is 0, not 7".into());
    let text = checks_table(&run, 200).unwrap();
    for line in text.lines().filter(|line| line.starts_with("native:tcp")) {
        let (ranks, result) = match line.contains("WRONG") {
            true => ("5", "159"),
            false => ("2", "right"),
        };
        assert!(
            line.contains(ranks) && !line.contains("idle"),
            "{result}: {line}"
        );
    }
    assert!(text.contains("right") && text.contains("WRONG"), "{text}");
    assert!(text.contains("byte 3 of 8"), "{text}");
    assert!(!summary_table(&run, 200).contains("native:tcp"));
    assert!(checks_table(&kernels().done(), 200).is_none());
}

#[test]
fn placements_stand_beside_the_first() {
    let run = Runs::new()
        .network(net("two-sites"))
        .spread(0.01)
        .placed("two-sites", "mapped", 2_000_000)
        .placed("two-sites", "random", 5_000_000)
        .done();
    let text = placements_table(&run, 200).unwrap();
    let figures = ["2.000", "1.00x", "5.000", "2.50x", "openmpi:tcp", "random"];
    for part in figures {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("network"), "{text}");
    assert!(!summary_table(&run, 200).contains("openmpi:tcp"));
    assert!(placements_table(&kernels().done(), 200).is_none());
}

#[test]
fn kernels_are_beside_their_reference_and_the_paper() {
    let run = kernels().done();
    let text = kernel_table(&run, 200).unwrap();
    assert_eq!(text, KERNELS.trim_start_matches('\n'), "\n{text}");
    // They are no lines of transports.
    assert_eq!(summary_table(&run, 200), "Nothing was measured.");
    assert_eq!(kernel_table(&two_networks().done(), 200), None);
}

#[test]
fn places_stand_beside_each_other() {
    let two = net("wire");
    let run = kernels()
        .network(two)
        .idle()
        .on(1)
        .kernel("loopback", "native:tcp", "is upc 1", 1_000_000_000)
        .on(4)
        .kernel("wire", "pvm:direct", "is upc 4", 120_000_000)
        .done();
    let text = kernel_table(&run, 200).unwrap();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    // One rank alone first; one host's idle times in the lines of both networks, the loopback in none of its own.
    assert_eq!(
        lines[3..],
        [
            vec![
                "is", "atm-oc3c", "idle", "10.0", "6.19", "1.00", "2.50", "2.27"
            ],
            vec!["is", "atm-oc3c", "0.9", "-", "-", "-", "9.00", "8.68"],
            vec!["is", "wire", "idle", "10.0", "6.19", "1.00", "1.20", "-"],
        ],
        "{text}"
    );
    // A narrow terminal has two tables.
    let narrow = kernel_table(&run, 60).unwrap();
    assert!(
        narrow.matches("is      atm-oc3c  idle").count() >= 2,
        "{narrow}"
    );
}

#[test]
fn one_place_is_no_table() {
    let run = Runs::new()
        .network(net("wire"))
        .kernel("wire", "pvm:direct", "cg S 2", 1_000)
        .done();
    let text = kernel_table(&run, 200).unwrap();
    assert!(!text.contains("Kernels by place"), "{text}");
    // Without anything on one host there are seconds.
    let run = Runs::new()
        .network(net("wire"))
        .kernel("wire", "pvm:direct", "cg S 2", 1_000_000)
        .kernel("wire", "pvm:default", "cg S 2", 2_000_000)
        .done();
    let text = kernel_table(&run, 200).unwrap();
    assert!(text.contains("Kernels by place, s: medians"), "{text}");
    // No paper prints anything of it: no column waits for one.
    assert!(!text.contains("printed"), "{text}");
}

#[test]
fn kernels_that_were_not_run_say_why() {
    let mut run = kernels()
        .knob("encoding", "raw")
        .kernel("atm-oc3c", "pvm:direct", "sp S 2", 1)
        .done();
    let last = run.cells.last_mut().unwrap();
    last.skipped = Some("sp S on 2: take a square number of ranks".into());
    let id = last.id.clone();
    run.launches.retain(|launch| launch.results[0].cell != id);
    let text = kernel_table(&run, 240).unwrap();
    let line = text.lines().find(|line| line.starts_with("sp ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let named = [
        "sp",
        "S",
        "pvm:direct",
        "encoding=raw",
        "2",
        "-",
        "0.9",
        "-",
    ];
    assert_eq!(words[..8], named, "{text}");
    assert!(
        text.contains("sp S on 2: take a square number of ranks"),
        "{text}"
    );
    // Nothing else of that run is left: the table is there all the same.
    run.cells.retain(|cell| cell.id == id);
    assert!(kernel_table(&run, 240).is_some());
}
