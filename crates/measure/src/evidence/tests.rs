//! Evidence as JSON, and as the texts of old stores.

use std::collections::BTreeSet;

use super::*;
use crate::text::Text;
use proptest::prelude::*;
use serde_json::Value;
use sonde_link::{Cause, Place as At};

/// A text of each fact, with a key in place of each `*`.
const TEXTS: &[(&str, &str)] = &[
    ("src_send_buffer_bytes", "106496 (the kernel's)"),
    ("dst_recv_buffer_bytes", "65536 (asked for 131072)"),
    ("src_window_bytes", "65536"),
    ("dst_nodelay", "true"),
    ("dst_congestion", "cubic"),
    ("src_mss_bytes", "1448"),
    ("src_busy_poll_us", "50"),
    ("dst_connected", "false"),
    ("src_cpu", "1"),
    ("dst_rx_cpu", "0"),
    (
        "src_place",
        "CPU 3: near; eth0's packets are taken off by CPU 2",
    ),
    (
        "dst_buffers",
        "cold: areas of 65536 KiB, twice the last-level cache (L3, 32768 KiB)",
    ),
    ("src_clock", "tsc, 2499997 kHz"),
    ("dst_clock", "clock_gettime (asked for)"),
    ("dst_chunk_bytes", "262144"),
    ("src_datagrams_per_call", "53.7"),
    ("dst_joined_share", "0.998"),
    ("src_zerocopy_copied_share", "1.000"),
    ("src_zerocopy_waits", "745"),
    (
        "src_zerocopy_note",
        "the kernel copied every byte after all, as it does where frames stay on this host (loopback, veth) or the device cannot gather",
    ),
    ("src_uring_chain_messages", "1"),
    (
        "src_splice",
        "each header by send, each body by sendfile from memory",
    ),
    ("src_interface", "eth0"),
    ("dst_ring", "512 slots of 2048 bytes each way"),
    ("src_xdp", "skb, by copies, past the queueing discipline"),
    ("src_frames_refused", "0"),
    ("dst_frames_without_room", "7"),
    ("src_address", "10.9.0.1"),
    ("src_if.eth0.100.rx_bytes", "12"),
    ("src_if.eth0.tx_bytes", "13"),
    ("src_if.eth0.rx_packets", "14"),
    ("src_if.eth0.tx_packets", "15"),
    ("dst_if.eth0.rx_dropped", "16"),
    ("dst_if.eth0.rx_missed", "17"),
    ("dst_if.eth0.rx_errors", "18"),
    ("src_if.eth0.tx_dropped", "19"),
    ("src_if.eth0.tx_errors", "20"),
    ("src_if.eth0.queue_dropped", "21"),
    ("dst_udp.rcvbuf_errors", "7"),
    (
        "dst_host.ipv4.tcp_rmem",
        "4096 87380 65536 (asked for 64KiB, was 4096 131072 6291456)",
    ),
    ("src.others_share", "0.031"),
    ("ended_by.64", "samples"),
    ("made_by.8", "recursive-doubling"),
    ("window.1048576", "4"),
    ("rate.discarded.64", "100"),
    ("rate.unsent.64", "0"),
    ("rate.ended_by.64", "budget"),
    ("anatomy.clock_error_ns.1", "0"),
    ("anatomy.lost.1", "2"),
    ("anatomy.out_of_order.1", "0"),
    ("src_stream_shares.1048576", "0.244 0.257 0.253 0.246"),
    ("dst_stream_shares.1048576", "1.000"),
    (
        "src_clock.1",
        "clock_gettime, all samples taken again: the time stamp counter strayed by 812 ppm, allowed are 200",
    ),
    ("library", "openmpi"),
    ("version", "Open MPI v4.1.4"),
    ("standard", "3.1"),
    ("transport", "tcp"),
    ("provider", "lane 0: tcp/eth0"),
    ("wait", "block"),
    (
        "large messages",
        "through rings, in two copies: the kernel forbids process_vm_readv",
    ),
    ("thread_level", "single"),
    ("idle", "yield"),
    ("pml", "ob1"),
    ("btl", "tcp,self"),
    ("mtl", "ofi"),
    ("device", "ch4:ucx"),
    ("asked", "tcp,self"),
    ("domain", "eth0"),
    ("route", "direct"),
    ("encoding", "raw"),
    ("hosts", "2"),
    ("fragment_bytes", "4080"),
    ("adapter", "/usr/lib/sonde/adapters/sonde-pvm.so"),
    ("topology", "ring"),
    ("topology_mode", "neighbours"),
    ("aged", "25/2"),
    ("ranks", "2"),
    ("ranks.hosts", "h1 h2"),
    ("ranks.end", "ended with 1: out of memory"),
    ("yield", "yes"),
    ("window", "64"),
    ("neighbour", "10.9.0.2 (the peer)"),
    ("peer_neighbour_ns", "51000"),
    ("datagrams.sent", "1000"),
    ("datagrams.lost", "3"),
    ("emulation.switch_cpu_ns", "1350000000"),
    ("emulation.priority", "real-time"),
    ("load.switch_cpu_share", "0.5332"),
    ("load.model_idle_ns", "23640"),
    ("load.model_loaded_ns", "62929"),
    ("load.wanted.h1>h2", "0.6000"),
    ("load.planned.h1>h2", "0.6100"),
    ("load.sent.h1>h2", "0.6001"),
    ("load.achieved.h1", "0.6041"),
    ("load.sender_cpu_share.h1>h2", "0.0312"),
    (
        "load.limit.h1>h2",
        "the sender's CPU was the limit: it was 12.5 ms behind at the end; larger datagrams need less of it",
    ),
    ("network.lost.output-overflow-from-h1", "9"),
    ("npb.trace", "[]"),
    ("npb.age", "166.6000"),
    ("npb.age.recorded_ns", "16660000000"),
    ("npb.age.own_ns", "100000000"),
    ("npb.verification", "successful"),
    ("npb.error", "2.0e-15"),
    (
        "npb",
        concat!(
            r#"{"kernel":"is","size":"S","runs":[{"time_ns":5,"mop_per_s":0.1,"verified":null,"checks":["#,
            r#"{"name":"zeta","found":1.5,"wanted":null,"error":null,"tolerance":1e-8,"passes":null}],"#,
            r#""computing_ns":3,"communicating_ns":2,"sent":{"messages":3,"bytes":12,"bytes_min":4,"bytes_max":4,"#,
            r#""bytes_mean":4.0,"bytes_median":4,"powers":[{"from_bytes":4,"messages":3}]}}],"#,
            r#""ranks":[{"timed_ns":5,"clock":"tsc","memory_bytes":null,"phases":[{"name":"sort","timed":true,"#,
            r#""computing_ns":3,"held_ns":0,"communicating_ns":2,"sent":{"messages":0,"bytes":0,"bytes_min":0,"#,
            r#""bytes_max":0,"bytes_mean":null,"bytes_median":null,"powers":[]},"#,
            r#""collectives":[{"kind":"allreduce","count":1,"bytes":8,"time_ns":2}]}],"#,
            r#""sent":{"messages":0,"bytes":0,"bytes_min":0,"bytes_max":0,"bytes_mean":null,"bytes_median":null,"#,
            r#""powers":[]},"bytes_to":[0,12],"messages_to":[0,3]}],"#,
            r#""age":{"factor":166.6,"recorded_ns":null,"own_ns":null}}"#,
        ),
    ),
    (
        "messages",
        "{\"asked\":{\"messages\":400,\"bytes\":800000,\"bytes_median\":8,\"graph\":\"ring\",\"seed\":1},\"runs\":[]}",
    ),
    ("check.collectives", "120"),
    ("check.collectives.by_library", "80"),
    ("check.messages", "44"),
    ("check.left_out", "wildcards,probe"),
    ("flows", "6"),
    ("together", "6"),
    ("start_bound_ns", "812"),
    ("late_ns", "31000"),
    ("segments", "81000"),
    ("retransmits", "4"),
    ("in_vain", "1"),
    ("overtaken", "2"),
    ("busy_us", "100000"),
    ("rwnd_limited_us", "0"),
    ("min_rtt_us", "88"),
    ("early", "0"),
    ("rounds_again", "1"),
];

fn texts<'t>(of: impl IntoIterator<Item = &'t (&'t str, &'t str)>) -> BTreeMap<String, String> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_string(), (*text).to_string());
    of.into_iter().map(owned).collect()
}

/// The facts of a group that have no text above; of the two sides one will do.
fn without_text<F: Facts>(side: &str) -> Vec<&'static str> {
    let has = |fact: &str| {
        let sides = match side {
            "" => vec![String::new()],
            between => vec![format!("src{between}"), format!("dst{between}")],
        };
        let is_of = |name: &str, pattern: String| match pattern.split_once('*') {
            Some((before, after)) => name.starts_with(before) && name.ends_with(after),
            None => name == pattern,
        };
        let mut names = TEXTS.iter().map(|(name, _)| *name);
        names.any(|name| {
            sides
                .iter()
                .any(|side| is_of(name, format!("{side}{fact}")))
        })
    };
    F::NAMES.iter().copied().filter(|fact| !has(fact)).collect()
}

#[test]
fn each_fact_has_a_text() {
    let left = [
        without_text::<Socket>("_"),
        without_text::<Place>("_"),
        without_text::<Transfer>("_"),
        without_text::<InterfaceCounters>("_"),
        without_text::<UdpCounter>("_"),
        without_text::<HostSetting>("_"),
        without_text::<Others>("."),
        without_text::<SizeFacts>(""),
        without_text::<Library>(""),
        without_text::<Ranks>(""),
        without_text::<StartUp>(""),
        without_text::<Datagrams>(""),
        without_text::<Load>(""),
        without_text::<LoadFlow>(""),
        without_text::<NetworkLoss>(""),
        without_text::<Application>(""),
        without_text::<Check>(""),
        without_text::<Flow>(""),
    ];
    assert_eq!(left.concat(), Vec::<&str>::new());
}

/// The size of the cell whose launch has the texts.
const SIZE: u64 = 4_096;

fn read(texts: BTreeMap<String, String>) -> Evidence {
    Evidence::read(texts, SIZE).unwrap()
}

fn json(evidence: &Evidence) -> Value {
    serde_json::to_value(evidence).unwrap()
}

#[test]
fn texts_of_a_run_are_read() {
    let all = read(texts(TEXTS));
    assert_eq!(
        all.src.interfaces[&Name::from("eth0.100")].rx_bytes,
        Some(12)
    );
    let achieved = all.load_flows[&Name::from("h1")].achieved;
    assert_eq!(achieved, Some(Fixed(6_041)));
    // No size is in the names of these: they are of the cell's, beside what else is known of it.
    let of_cell = SizeFacts {
        window_messages: Some(8),
        load_model_idle_ns: Some(23_640),
        load_model_loaded_ns: Some(62_929),
        ..SizeFacts::default()
    };
    let mut loaded: Vec<_> = TEXTS.to_vec();
    loaded.extend([("window.4096", "8"), ("window.1", "9")]);
    assert_eq!(read(texts(&loaded)).sizes[&SIZE], of_cell);
    let mut joined = Evidence::default();
    for one in TEXTS {
        joined.merge(read(texts([one])));
    }
    assert_eq!(joined, all);
}

#[test]
fn each_text_is_a_fact_of_its_own() {
    let alone: BTreeSet<String> = TEXTS
        .iter()
        .map(|one| json(&read(texts([one]))).to_string())
        .collect();
    assert_eq!(alone.len(), TEXTS.len());
    assert!(!alone.contains("{}"));
    let facts = |value: &Value| {
        let text = value.to_string();
        serde_json::from_str::<Evidence>(&text).unwrap()
    };
    for one in TEXTS {
        let evidence = read(texts([one]));
        assert_eq!(facts(&json(&evidence)), evidence);
    }
}

/// What stands at the ends of JSON, by its path.
#[test]
fn json_is_typed() {
    let all = json(&read(texts(TEXTS)));
    for (path, wanted) in [
        ("/src/socket/send_buffer", r#"{"granted_bytes":106496}"#),
        (
            "/dst/socket/recv_buffer",
            r#"{"asked_bytes":131072,"granted_bytes":65536}"#,
        ),
        ("/src/place/clock", r#"{"tsc":{"khz":2499997}}"#),
        ("/dst/place/clock", r#"{"monotonic":{"why":"asked for"}}"#),
        ("/src/transfer/zerocopy_note", r#""copied_all""#),
        ("/src/transfer/datagrams_per_call", "53.7"),
        ("/src/transfer/address", r#""10.9.0.1""#),
        ("/src/interfaces/eth0.100", r#"{"rx_bytes":12}"#),
        ("/sizes/64/ended_by", r#""samples""#),
        (
            "/sizes/1048576/src_stream_shares",
            "[0.244,0.257,0.253,0.246]",
        ),
        (
            "/library/long_messages/rings/why",
            r#""the kernel forbids process_vm_readv""#,
        ),
        ("/ranks/hosts", r#"["h1","h2"]"#),
        (
            "/load_flows/h1>h2/limit",
            r#"{"sender_cpu_behind_ms":12.5}"#,
        ),
        ("/network_losses/output-overflow-from-h1", r#"{"frames":9}"#),
        ("/application/error", "2e-15"),
        ("/application/replay/asked/graph", r#""ring""#),
        ("/check/left_out", r#"["wildcards","probe"]"#),
    ] {
        let found = all.pointer(path).map(Value::to_string);
        assert_eq!(found.as_deref(), Some(wanted), "{path}");
    }
    assert_eq!(json(&Evidence::default()).to_string(), "{}");
}

/// The maps of evidence, whose keys are any.
const KEYED: [&str; 6] = [
    "interfaces",
    "udp",
    "host",
    "sizes",
    "load_flows",
    "network_losses",
];

/// Every object of `value`, by its path.
fn objects(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(path.into());
            for (name, one) in fields {
                objects(one, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(all) => {
            for (at, one) in all.iter().enumerate() {
                objects(one, &format!("{path}/{at}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_field_that_is_not_known_is_an_error() {
    let all = json(&read(texts(TEXTS)));
    let mut paths = Vec::new();
    objects(&all, "", &mut paths);
    assert!(paths.len() > 60, "{paths:?}");
    for path in paths {
        let mut more = all.clone();
        let object = more.pointer_mut(&path).unwrap().as_object_mut().unwrap();
        object.insert("colour".into(), "red".into());
        let error = serde_json::from_str::<Evidence>(&more.to_string()).unwrap_err();
        let is_keyed = KEYED.iter().any(|map| path.ends_with(&format!("/{map}")));
        let said = error.to_string();
        assert!(is_keyed || said.contains(" `colour`"), "{path}: {said}");
    }
}

#[test]
fn what_no_one_knows_is_an_error() {
    for (name, text, why) in [
        ("src_colour", "red", "is not known"),
        ("window.many", "4", "is not known"),
        ("window.08", "4", "is not known"),
        ("ended_by.64", "lunch", "not of its form"),
        ("src_cpu", "+1", "not of its form"),
        (
            "src_send_buffer_bytes",
            "5 (asked for 5)",
            "not of its form",
        ),
        ("load.wanted.h1", "0.6", "not of its form"),
        ("npb", "{}", "not of its form"),
        ("load.model_idle_ns", "0x1", "not of its form"),
        ("load.model_idle_ns.8", "1", "is not known"),
    ] {
        let error = Evidence::read(texts(&[(name, text)]), SIZE).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(name) && said.contains(why), "{said}");
    }
    let long = Evidence::read(texts(&[("src_cpu", &*"é".repeat(300))]), SIZE).unwrap_err();
    assert_eq!(long.text.len(), 200);
}

#[test]
fn sides_are_joined() {
    let mut all = read(texts(&TEXTS[..40]));
    all.merge(read(texts(&TEXTS[40..])));
    assert_eq!(all, read(texts(TEXTS)));
    all.merge(read(texts(&[("src_cpu", "5")])));
    assert_eq!(
        (all.src.place.cpu, all.src.socket.mss_bytes),
        (Some(5), Some(1_448))
    );
}

/// A number of which [`Fixed`] says that it comes back.
fn fixed<const DIGITS: u32>() -> impl Strategy<Value = Option<Fixed<DIGITS>>> {
    prop::option::of((0..1_u64 << 52).prop_map(Fixed))
}

fn word() -> impl Strategy<Value = Option<Words>> {
    prop::option::of(any::<String>().prop_map(Words))
}

fn name() -> impl Strategy<Value = Name> {
    any::<String>().prop_map(Name)
}

prop_compose! {
    fn side()(
        granted_bytes: usize, asked_bytes: Option<usize>, nodelay: Option<bool>, address: Option<IpAddr>,
        cpu: usize, why in any::<String>().prop_map(Words), counted: Option<u64>,
        interface in name(), counter in name(), joined_share in fixed(), datagrams_per_call in fixed(),
    ) -> Side {
        let mut side = Side::default();
        side.socket.recv_buffer = Some(Buffer { asked_bytes, granted_bytes });
        side.socket.nodelay = nodelay;
        side.place.bound = Some(Placed { cpu, why: why.clone() });
        side.place.clock = Some(SampleClock::Monotonic { why });
        side.transfer = Transfer {
            address,
            joined_share,
            datagrams_per_call,
            interface: Some(interface.clone()),
            ..Transfer::default()
        };
        let counts = InterfaceCounters { rx_bytes: counted, ..InterfaceCounters::default() };
        side.interfaces.insert(interface, counts);
        side.udp.insert(counter, UdpCounter { count: counted });
        side
    }
}

prop_compose! {
    fn size()(
        made_by in prop::option::of(name()), window_messages: Option<u64>, load_model_idle_ns: Option<u64>,
        shares in prop::option::of(prop::collection::vec(0..1_u64 << 52, 0..4)),
        ended_by in prop::sample::select(vec![None, Some(EndedBy::Precision), Some(EndedBy::Budget)]),
        strayed in prop::option::of((any::<u64>(), any::<u64>())),
    ) -> SizeFacts {
        SizeFacts {
            ended_by,
            made_by,
            window_messages,
            src_stream_shares: shares.map(|all| Shares(all.into_iter().map(Fixed).collect())),
            strayed: strayed.map(|(ppm, allowed_ppm)| Strayed { ppm, allowed_ppm }),
            load_model_idle_ns,
            ..SizeFacts::default()
        }
    }
}

fn limit() -> impl Strategy<Value = LoadLimit> {
    prop_oneof![
        (0..1_u64 << 52).prop_map(|percent| LoadLimit::NoRoom(Fixed(percent))),
        (0..1_u64 << 52).prop_map(|behind_ms| LoadLimit::SenderCpu(Fixed(behind_ms))),
        any::<String>().prop_map(|words| LoadLimit::Failed(Words(words))),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    let place = prop::sample::select(vec![At::Station, At::Output, At::Medium]);
    let cause = prop::sample::select(vec![Cause::NoSuchPort, Cause::Overflow, Cause::Parted]);
    (place, cause, any::<u16>(), any::<u16>()).prop_map(|(place, cause, host, interface)| Loss {
        place,
        cause,
        host,
        interface,
    })
}

proptest! {
    #[test]
    fn any_evidence_comes_back(
        which in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        src in side(), dst in prop::option::of(side()), count: u64,
        sizes in prop::collection::btree_map(any::<u64>(), size(), 0..4),
        version in word(), hosts in prop::collection::vec(name(), 0..4), planned in fixed(),
        flows in prop::collection::btree_map(name(), limit(), 0..3),
        losses in prop::collection::btree_map(loss(), any::<u64>(), 0..4),
        error in prop::option::of(any::<f64>().prop_filter("a number", |error| error.is_finite())),
    ) {
        let mut all = read(texts(which.iter().map(|at| at.get(TEXTS))));
        all.merge(Evidence {
            src,
            dst: dst.unwrap_or_default(),
            sizes,
            library: Library { version, ..Library::default() },
            ranks: Ranks { hosts: Some(Names(hosts)), ..Ranks::default() },
            ..Evidence::default()
        });
        for (name, limit) in flows {
            let flow = LoadFlow { limit: Some(limit), planned, ..LoadFlow::default() };
            all.load_flows.insert(name, flow);
        }
        for (loss, frames) in losses {
            all.network_losses.insert(loss, NetworkLoss { frames: Some(frames) });
        }
        all.application.error = error.map(RelativeError);
        all.flow.late_ns = Some(count);
        let text = serde_json::to_string(&all).unwrap();
        prop_assert_eq!(serde_json::from_str::<Evidence>(&text).unwrap(), all);
    }

    #[test]
    fn keys_of_texts_are_any(size: u64, count: u64, host: u16, name in "[a-z][a-z0-9.>-]{0,12}") {
        let all = BTreeMap::from([
            (format!("window.{size}"), count.to_string()),
            (format!("network.lost.path-random-from-h{host}"), count.to_string()),
            (format!("dst_if.{name}.rx_bytes"), count.to_string()),
            (format!("load.wanted.{name}"), Fixed::<4>(count).write()),
        ]);
        let evidence = read(all);
        prop_assert_eq!(evidence.sizes[&size].window_messages, Some(count));
        prop_assert_eq!(evidence.network_losses.len(), 1);
        let named = Name(name);
        prop_assert_eq!(evidence.dst.interfaces[&named].rx_bytes, Some(count));
        prop_assert_eq!(evidence.load_flows[&named].wanted, Some(Fixed(count)));
    }
}
