//! What a launch saw beside its samples: sockets, interfaces, places, libraries, loads, losses.
//!
//! Model:   an [`Evidence`] is of one launch: two sides, what is of each size, of the ranks, of the load and of the network. What was
//!          not seen is absent. The names of facts are those of stored runs (versions 1 and 2) and of `sonde-export/1`: there
//!          evidence is a map of texts, and this is the only place that writes and reads it.
//! Units:   in the names: nanoseconds, bytes, parts of one.
//! Checked: `any_evidence_comes_back`, `what_no_one_knows_is_an_error`, `texts_of_a_run_come_back`, `sides_are_joined`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::facts::{Facts, Reader, Unread, Visit, Writer, facts, merge_all, visit_all};
use crate::loss::Loss;
use crate::npb::Kernel;
use crate::replay::Replay;
use crate::text::{
    Buffer, ColdBuffers, EndedBy, Fixed, HostChange, LoadLimit, LongMessages, Name, Names,
    Neighbour, Placed, RelativeError, RingShape, SampleClock, Shares, Splice, Strayed,
    Verification, Words, XdpMode, ZerocopyNote,
};

facts! {
    /// What the kernel says that a socket or a shared segment is, read back after it was asked.
    Socket {
        /// The send buffer.
        "send_buffer_bytes" send_buffer: Buffer,
        /// The receive buffer.
        "recv_buffer_bytes" recv_buffer: Buffer,
        /// TCP only: the largest window that it offers, where one was asked for.
        "window_bytes" window: Buffer,
        /// TCP only: small messages are sent at once.
        "nodelay" nodelay: bool,
        /// TCP only: the congestion control in use.
        "congestion" congestion: Name,
        /// TCP only: user bytes in a segment.
        "mss_bytes" mss_bytes: u32,
        /// How long a receive looks at the device's queue before it sleeps, microseconds; absent where it was not asked for.
        "busy_poll_us" busy_poll_us: u32,
        /// UDP only: the socket has one peer in the kernel.
        "connected" connected: bool,
    }

    /// Where an end ran.
    Place {
        /// The CPU of its thread after what was timed.
        "cpu" cpu: usize,
        /// The CPU of the last packet's receive path (SO_INCOMING_CPU).
        "rx_cpu" rx_cpu: usize,
        /// The CPU that it was bound to.
        "place" bound: Placed,
        /// Users' buffers, where no cache was to have them.
        "buffers" buffers: ColdBuffers,
        /// What timed its samples.
        "clock" clock: SampleClock,
    }

    /// How bytes were handed over.
    Transfer {
        /// TCP: bytes that a receive asked for.
        "chunk_bytes" chunk_bytes: usize,
        /// UDP: datagrams in a call, the mean.
        "datagrams_per_call" datagrams_per_call: Fixed<1>,
        /// UDP with `gso`: of the datagrams received, those that came joined.
        "joined_share" joined_share: Fixed<3>,
        /// MSG_ZEROCOPY: of the bytes, those that the kernel copied after all.
        "zerocopy_copied_share" zerocopy_copied_share: Fixed<3>,
        /// MSG_ZEROCOPY: waits for the kernel to be done with what was sent.
        "zerocopy_waits" zerocopy_waits: u64,
        /// MSG_ZEROCOPY: whether it was of no use.
        "zerocopy_note" zerocopy_note: ZerocopyNote,
        /// io_uring: messages in a chain of calls.
        "uring_chain_messages" uring_chain_messages: usize,
        /// sendfile.
        "splice" splice: Splice,
        /// Packet sockets: the interface.
        "interface" interface: Name,
        /// Packet sockets: slots shared with the kernel.
        "ring" ring: RingShape,
        /// AF_XDP: where frames are taken.
        "xdp" xdp: XdpMode,
        /// Packet sockets: frames that the device refused.
        "frames_refused" frames_refused: u64,
        /// Packet sockets: frames for which there was no room.
        "frames_without_room" frames_without_room: u64,
        /// The address that it used on the network.
        "address" address: IpAddr,
    }

    /// What an interface counted during the launch. Drops and errors are absent where there were none.
    InterfaceCounters {
        /// Bytes received.
        "if.*.rx_bytes" rx_bytes: u64,
        /// Bytes sent.
        "if.*.tx_bytes" tx_bytes: u64,
        /// Frames received.
        "if.*.rx_packets" rx_packets: u64,
        /// Frames sent.
        "if.*.tx_packets" tx_packets: u64,
        /// Frames received for which the kernel had no room.
        "if.*.rx_dropped" rx_dropped: u64,
        /// Frames for which the device had no room in its ring.
        "if.*.rx_missed" rx_missed: u64,
        /// Broken frames received.
        "if.*.rx_errors" rx_errors: u64,
        /// Frames to send for which the device had no room.
        "if.*.tx_dropped" tx_dropped: u64,
        /// Frames that could not be sent.
        "if.*.tx_errors" tx_errors: u64,
        /// Frames dropped by the queueing discipline before the device.
        "if.*.queue_dropped" queue_dropped: u64,
    }

    /// A counter of the kernel's UDP, by its name.
    UdpCounter {
        /// By how much it grew.
        "udp.*" count: u64,
    }

    /// A setting of a host that was changed for the launch, by its name.
    HostSetting {
        /// How.
        "host.*" change: HostChange,
    }

    /// How busy others kept the host of an end in a pattern.
    Others {
        /// Their CPU time, of all CPUs.
        "others_share" share: Fixed<3>,
    }

    /// What is to be known of one size of messages.
    SizeFacts {
        /// Why no further sample was taken.
        "ended_by.*" ended_by: EndedBy,
        /// A collective: who made it, `library` or an algorithm.
        "made_by.*" made_by: Name,
        /// A stream by a library: messages under way.
        "window.*" window_messages: u64,
        /// Messages at a rate: those sent before the count began.
        "rate.discarded.*" discarded: u64,
        /// Messages at a rate: those due that were never sent.
        "rate.unsent.*" unsent: u64,
        /// Messages at a rate: why no further one was sent.
        "rate.ended_by.*" rate_ended_by: EndedBy,
        /// One-way times: the bound of the clocks' offset.
        "anatomy.clock_error_ns.*" clock_error_ns: u64,
        /// One-way times: messages lost.
        "anatomy.lost.*" anatomy_lost: u64,
        /// One-way times: stamps that were not in their order.
        "anatomy.out_of_order.*" out_of_order: u64,
        /// Several streams: what each sent, of all.
        "src_stream_shares.*" src_stream_shares: Shares,
        /// Several streams: what of each was received, of all.
        "dst_stream_shares.*" dst_stream_shares: Shares,
        /// The time stamp counter went astray.
        "src_clock.*" strayed: Strayed,
    }

    /// What a library says of itself.
    Library {
        /// Its name: `native`, `openmpi`, `mpich`, `pvm`, `ucx`, `ofi`.
        "library" library: Name,
        /// Its version.
        "version" version: Words,
        /// The standard that it implements.
        "standard" standard: Words,
        /// What carries its messages.
        "transport" transport: Words,
        /// What that is made of.
        "provider" provider: Words,
        /// How a native rank waits: `block`, `poll`.
        "wait" wait: Name,
        /// How native ranks hand over long messages.
        "large messages" long_messages: LongMessages,
        /// `single`, `funneled`, `serialized`, `multiple`.
        "thread_level" thread_level: Name,
        /// What it does when it finds nothing: `spin`, `yield`, `auto`.
        "idle" idle: Name,
        /// Open MPI: point-to-point layers.
        "pml" pml: Words,
        /// Open MPI: transports of bytes.
        "btl" btl: Words,
        /// Open MPI: transports with matching.
        "mtl" mtl: Words,
        /// MPICH: its device.
        "device" device: Words,
        /// UCX: the transports that were asked for.
        "asked" asked: Words,
        /// libfabric: the domain.
        "domain" domain: Words,
        /// PVM: `direct`, `default`.
        "route" route: Name,
        /// PVM: `default`, `raw`, `inplace`.
        "encoding" encoding: Name,
        /// PVM: hosts of the virtual machine.
        "hosts" hosts: u64,
        /// PVM: the longest fragment.
        "fragment_bytes" fragment_bytes: u64,
        /// The adapter's file.
        "adapter" adapter: Words,
        /// The virtual topology by which messages go.
        "topology" topology: Words,
        /// How they go by it.
        "topology_mode" topology_mode: Words,
        /// By how much ranks were held, as a ratio.
        "aged" aged: Words,
    }

    /// The ranks of a launch.
    Ranks {
        /// How many.
        "ranks" count: u64,
        /// The host of each, in their order, as it names itself.
        "ranks.hosts" hosts: Names<' '>,
        /// How they ended, where not well.
        "ranks.end" end: Words,
        /// Whether the library yields the CPU when it finds nothing, as who started it knows.
        "yield" yields: Words,
        /// A burst of messages: how many.
        "window" burst_messages: u64,
    }

    /// A start-up in parts.
    StartUp {
        /// Whose address was resolved.
        "neighbour" neighbour: Neighbour,
        /// The same at the peer, in nanoseconds, where a circuit was set up.
        "peer_neighbour_ns" peer_neighbour_ns: u64,
    }

    /// Datagrams of all sizes.
    Datagrams {
        /// Sent.
        "datagrams.sent" sent: u64,
        /// Sent and never received.
        "datagrams.lost" lost: u64,
    }

    /// A load as a whole.
    Load {
        /// A lab's: the switch's part of a CPU, for the load and all else.
        "load.switch_cpu_share" switch_cpu_share: Fixed<4>,
        /// Half a round trip on the virtual clock, idle.
        "load.model_idle_ns" model_idle_ns: u64,
        /// The same under the load.
        "load.model_loaded_ns" model_loaded_ns: u64,
    }

    /// A load's flow: by its port in a lab, by `src>dst` between hosts. Shares are of the link.
    LoadFlow {
        /// The level that was asked for.
        "load.wanted.*" wanted: Fixed<4>,
        /// What the law's chance planned.
        "load.planned.*" planned: Fixed<4>,
        /// What was sent.
        "load.sent.*" sent: Fixed<4>,
        /// What was received.
        "load.achieved.*" achieved: Fixed<4>,
        /// The sending thread's part of a CPU.
        "load.sender_cpu_share.*" sender_cpu_share: Fixed<4>,
        /// What held it below what was planned.
        "load.limit.*" limit: LoadLimit,
    }

    /// Frames of a program that an emulated network lost, by place, cause and port.
    NetworkLoss {
        /// How many.
        "network.lost.*" frames: u64,
    }

    /// Results of a kernel.
    Application {
        /// All that its runs gave.
        "npb" kernel: Kernel,
        /// What its ranks did when, packed.
        "npb.trace" trace: Words,
        /// By how much computing was stretched.
        "npb.age" age: Fixed<4>,
        /// The timed part of a sequential run on the old host.
        "npb.age.recorded_ns" age_recorded_ns: u64,
        /// The same here.
        "npb.age.own_ns" age_own_ns: u64,
        /// Whether its results are the official ones.
        "npb.verification" verification: Verification,
        /// The largest relative error of its results.
        "npb.error" error: RelativeError,
        /// What the replays of a program's messages gave.
        "messages" replay: Replay,
    }

    /// What was checked of a library.
    Check {
        /// Collective calls.
        "check.collectives" collectives: u64,
        /// Of these, the library's own.
        "check.collectives.by_library" by_library: u64,
        /// Messages.
        "check.messages" messages: u64,
        /// What it does not have.
        "check.left_out" left_out: Names<','>,
    }

    /// One flow of a pattern, or all of a kind together.
    Flow {
        /// All of a kind together: how many flows.
        "flows" flows: u64,
        /// Flows of the round, beside this one.
        "together" together: u64,
        /// By how much the hosts' starts may differ.
        "start_bound_ns" start_bound_ns: u64,
        /// How late it started.
        "late_ns" late_ns: u64,
        /// TCP: segments sent.
        "segments" segments: u64,
        /// TCP: segments sent again.
        "retransmits" retransmits: u64,
        /// TCP: segments sent again for nothing, as the receiver said (DSACK).
        "in_vain" in_vain: u64,
        /// TCP: segments that were overtaken.
        "overtaken" overtaken: u64,
        /// TCP: time with something to send, microseconds.
        "busy_us" busy_us: u64,
        /// TCP: of it, time that the peer's window held it back, microseconds.
        "rwnd_limited_us" rwnd_limited_us: u64,
        /// TCP: the shortest round trip, microseconds.
        "min_rtt_us" min_rtt_us: u64,
        /// What came before the start.
        "early" early: u64,
        /// How often the round was measured again.
        "rounds_again" rounds_again: u64,
    }
}

/// One end of a launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Side {
    /// Its socket, read back.
    pub socket: Socket,
    /// Where it ran.
    pub place: Place,
    /// How it handed bytes over.
    pub transfer: Transfer,
    /// What its interfaces counted, by name.
    pub interfaces: BTreeMap<Name, InterfaceCounters>,
    /// Counters of UDP that grew, by name.
    pub udp: BTreeMap<Name, UdpCounter>,
    /// Settings of its host that were changed, by name.
    pub host: BTreeMap<Name, HostSetting>,
    /// What others did on its host.
    pub others: Others,
}

impl Side {
    fn visit(&mut self, to: &mut impl Visit, side: &str) {
        let name = |name: &str| format!("{side}_{name}");
        self.socket.visit(to, &name);
        self.place.visit(to, &name);
        self.transfer.visit(to, &name);
        let prefix = format!("{side}_");
        visit_all(&mut self.interfaces, to, &prefix);
        visit_all(&mut self.udp, to, &prefix);
        visit_all(&mut self.host, to, &prefix);
        self.others.visit(to, &|name| format!("{side}.{name}"));
    }

    /// Takes over what `other` has.
    pub fn merge(&mut self, other: Self) {
        self.socket.merge(other.socket);
        self.place.merge(other.place);
        self.transfer.merge(other.transfer);
        merge_all(&mut self.interfaces, other.interfaces);
        merge_all(&mut self.udp, other.udp);
        merge_all(&mut self.host, other.host);
        self.others.merge(other.others);
    }
}

/// What a launch saw beside its samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// The sending or measuring end.
    pub src: Side,
    /// The receiving or answering end.
    pub dst: Side,
    /// What is of one size, by user bytes in a message.
    pub sizes: BTreeMap<u64, SizeFacts>,
    /// What the library says of itself.
    pub library: Library,
    /// The ranks.
    pub ranks: Ranks,
    /// A start-up in parts.
    pub start_up: StartUp,
    /// Datagrams of all sizes.
    pub datagrams: Datagrams,
    /// A load as a whole.
    pub load: Load,
    /// Its flows.
    pub load_flows: BTreeMap<Name, LoadFlow>,
    /// Frames that an emulated network lost.
    pub network_losses: BTreeMap<Loss, NetworkLoss>,
    /// A kernel or a replay.
    pub application: Application,
    /// A check of a library.
    pub check: Check,
    /// A flow of a pattern.
    pub flow: Flow,
}

impl Evidence {
    fn visit(&mut self, to: &mut impl Visit) {
        let own = |name: &str| name.to_string();
        // Names with a fixed part come before those that a `*` could take for a key.
        self.src.visit(to, "src");
        self.dst.visit(to, "dst");
        self.library.visit(to, &own);
        self.ranks.visit(to, &own);
        self.start_up.visit(to, &own);
        self.datagrams.visit(to, &own);
        self.load.visit(to, &own);
        self.application.visit(to, &own);
        self.check.visit(to, &own);
        self.flow.visit(to, &own);
        visit_all(&mut self.sizes, to, "");
        visit_all(&mut self.load_flows, to, "");
        visit_all(&mut self.network_losses, to, "");
    }

    /// The evidence that a stored run's texts say.
    ///
    /// # Errors
    /// A name that no fact has; a text that its fact does not write.
    pub fn read(texts: BTreeMap<String, String>) -> Result<Self, Unread> {
        let mut evidence = Self::default();
        let mut reader = Reader::new(texts);
        evidence.visit(&mut reader);
        reader.finish().map(|()| evidence)
    }

    /// As texts by name.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let mut writer = Writer::default();
        self.clone().visit(&mut writer);
        writer.all
    }

    /// Takes over what `other` has.
    pub fn merge(&mut self, other: Self) {
        self.src.merge(other.src);
        self.dst.merge(other.dst);
        merge_all(&mut self.sizes, other.sizes);
        self.library.merge(other.library);
        self.ranks.merge(other.ranks);
        self.start_up.merge(other.start_up);
        self.datagrams.merge(other.datagrams);
        self.load.merge(other.load);
        merge_all(&mut self.load_flows, other.load_flows);
        merge_all(&mut self.network_losses, other.network_losses);
        self.application.merge(other.application);
        self.check.merge(other.check);
        self.flow.merge(other.flow);
    }

    /// What is known of one size, to be filled.
    pub fn size(&mut self, size_bytes: u64) -> &mut SizeFacts {
        self.sizes.entry(size_bytes).or_default()
    }

    /// Both sides: `src`, `dst`.
    pub fn sides(&self) -> [&Side; 2] {
        [&self.src, &self.dst]
    }
}

impl Library {
    /// What a library or an adapter says of itself, by the names of these facts.
    ///
    /// # Errors
    /// A name that no fact has; a text that its fact does not write.
    pub fn read(told: impl IntoIterator<Item = (String, String)>) -> Result<Self, Unread> {
        let mut library = Self::default();
        let mut reader = Reader::new(told.into_iter().collect());
        library.visit(&mut reader, &|name| name.to_string());
        reader.finish().map(|()| library)
    }
}

impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.texts().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Evidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = BTreeMap::deserialize(deserializer)?;
        Self::read(texts).map_err(D::Error::custom)
    }
}

impl JsonSchema for Evidence {
    fn schema_name() -> Cow<'static, str> {
        "Evidence".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, String>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;
    use proptest::prelude::*;

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
            "{\"kernel\":\"is\",\"size\":\"S\",\"runs\":[],\"ranks\":[],\"age\":{\"factor\":166.6,\"recorded_ns\":null,\"own_ns\":null}}",
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

    #[test]
    fn texts_of_a_run_come_back() {
        let all = texts(TEXTS);
        let evidence = Evidence::read(all.clone()).unwrap();
        assert_eq!(evidence.texts(), all);
        let text = serde_json::to_string(&evidence).unwrap();
        assert_eq!(serde_json::from_str::<Evidence>(&text).unwrap(), evidence);
        assert_eq!(
            evidence.src.interfaces[&Name::from("eth0.100")].rx_bytes,
            Some(12)
        );
        let achieved = evidence.load_flows[&Name::from("h1")].achieved;
        assert_eq!(achieved, Some(Fixed(6_041)));
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
        ] {
            let error = Evidence::read(texts(&[(name, text)])).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(name) && said.contains(why), "{said}");
        }
        let long = Evidence::read(texts(&[("src_cpu", &*"é".repeat(300))])).unwrap_err();
        assert_eq!(long.text.len(), 200);
    }

    #[test]
    fn sides_are_joined() {
        let mut all = Evidence::read(texts(&TEXTS[..40])).unwrap();
        all.merge(Evidence::read(texts(&TEXTS[40..])).unwrap());
        assert_eq!(all, Evidence::read(texts(TEXTS)).unwrap());
        let other = Evidence::read(texts(&[("src_cpu", "5")])).unwrap();
        all.merge(other);
        assert_eq!(
            (all.src.place.cpu, all.src.socket.mss_bytes),
            (Some(5), Some(1_448))
        );
    }

    proptest! {
        #[test]
        fn any_evidence_comes_back(
            which in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            size: u64, count: u64, host: u16, name in "[a-z][a-z0-9.>-]{0,12}",
        ) {
            let mut all = texts(which.iter().map(|at| at.get(TEXTS)));
            all.insert(format!("window.{size}"), count.to_string());
            all.insert(format!("network.lost.path-random-from-h{host}"), count.to_string());
            all.insert(format!("dst_if.{name}.rx_bytes"), count.to_string());
            all.insert("load.wanted.x".into(), Fixed::<4>(count).write());
            let evidence = Evidence::read(all.clone()).unwrap();
            prop_assert_eq!(evidence.sizes[&size].window_messages, Some(count));
            prop_assert_eq!(evidence.texts(), all);
        }
    }
}
